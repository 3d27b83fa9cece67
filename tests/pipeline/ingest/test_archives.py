"""An archive costs what of it cannot be unpacked, and nothing beside it."""

from __future__ import annotations

import gzip
import inspect
import io
import json
import shutil
import sys
import tarfile
import zipfile
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest

from coaudit.pipeline.ingest.archives import archives_below, unpacked_folder
from coaudit.pipeline.ingest.run import preview
from coaudit.pipeline.store.memory import spill_folder
from coaudit.pipeline.systems import ReadOptions
from coaudit.schemas import Trajectory
from tests.conftest import Coaudit
from tests.pipeline.systems.cogym.folders import AGENT, Log, performance, simulated
from tests.shared import ROOT

MEMBERS = [
    ("first", "1"),
    ("x" * 300, "long"),
    ("twice", "a"),
    ("twice", "b"),
    ("a/" * 50 + "deep", "d"),
    ("b/" * 1500 + "too deep", "e"),
    ("last", "2"),
]
Usage = namedtuple("Usage", "total used free")


def zipped(path: Path, members: list[tuple[str, str]]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def taped(path: Path, members: list[tuple[str, str]]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content.encode()))
    return path


def test_no_folder_is_too_deep_to_find_an_archive_in(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 400)
    deep.mkdir(parents=True)
    (tmp_path / "link").symlink_to(deep)
    for one, other in (("there", "back"), ("back", "there")):  # nobody can look at these
        (tmp_path / one).symlink_to(tmp_path / other)
    path = zipped(deep / "logs.zip", [("first", "1")])
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 200)
    try:
        assert archives_below(tmp_path) == [path]
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("form", ["zip", "tar"])
def test_a_member_that_cannot_be_unpacked_drops_no_later_one(tmp_path: Path, form: str) -> None:
    path = (zipped if form == "zip" else taped)(tmp_path / f"logs.{form}", MEMBERS)
    with unpacked_folder(path) as (folder, refused):
        there = {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}
    assert there == {"first": "1", "twice": "a", "a/" * 50 + "deep": "d", "last": "2"}
    assert [item.reason for item in refused] == [
        "its name is longer than 255 bytes",
        "another member of this name came before; the first one counts",
        "it lies in more than 100 folders",
    ]


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_a_path_that_leads_out_is_refused_as_whichever_system_writes_it(tmp_path: Path, form: str) -> None:
    names = ["../a", "..\\a", "a\\..\\..\\b", "\\a", "/a"]
    members = [(name, "x") for name in [*names, "logs\\a"]]
    path = (zipped if form == "zip" else taped)(tmp_path / f"logs.{form}", members)
    with unpacked_folder(path) as (folder, refused):
        assert [p.name for p in folder.iterdir()] == ["logs\\a"]
    assert [item.reason for item in refused] == ["its path leads out of the archive"] * len(names)


def test_what_a_kill_leaves_unpacked_is_removed_by_the_next_run(tmp_path: Path) -> None:
    with unpacked_folder(zipped(tmp_path / "logs.zip", [("first", "1")])) as (folder, _):
        assert Path(spill_folder()) in folder.parents


def test_a_member_whose_name_no_file_can_have_is_refused_alone_and_no_time_matters(tmp_path: Path) -> None:
    path = tmp_path / "logs.tar"
    headers = [{}, {"path": "a\0b"}, {"path": "late", "mtime": "1e400"}, {"path": "last"}]
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for header in headers:
            info = tarfile.TarInfo("first")
            info.pax_headers = header
            archive.addfile(info)
    with unpacked_folder(path) as (folder, refused):
        assert {"first", "late", "last"} == {p.name for p in folder.iterdir()}
    assert [item.source.rpartition("!")[2] for item in refused] == ["a\0b"]


def test_an_archive_whose_header_is_no_number_gives_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "logs.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("first"))
        sparse = tarfile.TarInfo("sparse")
        sparse.pax_headers = {"GNU.sparse.size": "many"}
        archive.addfile(sparse)
    with unpacked_folder(path) as (folder, (refused,)):
        assert [p.name for p in folder.iterdir()] == ["first"]
    assert refused.reason.startswith("broken archive: invalid literal for int()")


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_nothing_is_left_of_a_member_that_is_cut_off(tmp_path: Path, form: str) -> None:
    members = [("whole", "1"), ("cut", "2\n" * 50_000)]
    path = (zipped if form == "zip" else taped)(tmp_path / f"logs.{form}", members)
    content = bytearray(path.read_bytes())
    if form == "zip":
        content[60_000] ^= 1  # what is cut off of a zip is its list of members
    else:
        del content[60_000:]
    path.write_bytes(content)
    with unpacked_folder(path) as (folder, refused):
        assert [p.name for p in folder.iterdir()] == ["whole"]
    assert [item.source for item in refused][:1] == [f"{path}!cut"]


def test_an_archive_with_a_thousand_headers_of_one_member_gives_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "logs.tar"
    name = tarfile.TarInfo("././@LongLink")
    name.type, name.size = tarfile.GNUTYPE_LONGNAME, 2
    more = name.tobuf() + b"a\0".ljust(512, b"\0")
    path.write_bytes(tarfile.TarInfo("first").tobuf() + more * 1500 + b"\0" * 1024)
    with unpacked_folder(path) as (folder, (refused,)):
        assert [p.name for p in folder.iterdir()] == ["first"]
    assert refused.reason.startswith("broken archive: ")


def test_a_size_below_zero_makes_no_room_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "logs.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, size in (("less", -1024), ("large", 900)):
            info = tarfile.TarInfo(name)
            if size < 0:
                info.pax_headers = {"GNU.sparse.realsize": str(size)}
            else:
                info.size = size
            archive.addfile(info, io.BytesIO(b"x" * 900))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2000, 1000, 1000))
    with unpacked_folder(path) as (folder, refused):
        assert not list(folder.iterdir())
    assert [item.reason[:13] for item in refused] == ["its size is -", "too large: 80"]


def test_no_archive_takes_the_disk_that_others_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "logs.zip", [("a", "x" * 700), ("b", "x" * 700), ("c", "x" * 10)])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2000, 1000, 1000))
    with unpacked_folder(path) as (folder, refused):
        assert sorted(p.name for p in folder.iterdir()) == ["a", "c"]
    assert "too large: 100 bytes may still be unpacked" in refused[0].reason


def test_one_compressed_file_is_read_as_the_file_it_holds(tmp_path: Path, coaudit: Coaudit) -> None:
    line = json.dumps({"id": "s1", "messages": [{"role": "user", "content": "Go."}]})
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(f"{line}\n".encode()))
    coaudit("ingest", path)
    (row,) = coaudit("trajectory", "list", "--json").json["rows"]
    assert (row["native_id"], row["source"]) == ("s1", f"{path}!log.jsonl")
    path.write_bytes(path.read_bytes()[:-9])
    assert "broken archive" in coaudit("ingest", path, status=None).err


@pytest.mark.parametrize(("suffix", "form"), [("txz", "xztar"), ("tbz2", "bztar"), ("tgz", "gztar")])
def test_short_names_of_compressed_archives_are_those_of_the_long_ones(
    tmp_path: Path, coaudit: Coaudit, suffix: str, form: str
) -> None:
    log = tmp_path / "logs" / "log.jsonl"
    log.parent.mkdir()
    log.write_text('{"id": "s1", "messages": [{"role": "user", "content": "Go."}]}\n')
    made = Path(shutil.make_archive(str(tmp_path / "packed"), form, log.parent))
    path = made.rename(tmp_path / f"packed.{suffix}")
    assert coaudit("ingest", path, "--json").json["trajectories"] == 1


def packed(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.long
def test_archives_in_an_archive_are_read_by_the_names_inside_them(tmp_path: Path, coaudit: Coaudit) -> None:
    def line(key: str) -> bytes:
        turns = [{"role": "user", "content": f"Go {key}."}]
        return json.dumps({"id": key, "messages": turns}).encode() + b"\n"

    inner = packed(tmp_path / "inner.zip", {"b/two.jsonl": line("s2")}).read_bytes()
    outer = {"one.jsonl": line("s1"), "a/inner.zip": inner, "three.jsonl.gz": gzip.compress(line("s3"))}
    path = packed(tmp_path / "outer.zip", outer)
    coaudit("ingest", path)
    rows = coaudit("trajectory", "list", "--json").json["rows"]
    assert {row["native_id"]: row["source"] for row in rows} == {
        "s1": f"{path}!one.jsonl",
        "s2": f"{path}!a/inner.zip!b/two.jsonl",
        "s3": f"{path}!three.jsonl.gz!three.jsonl",
    }
    assert coaudit("ingest", path, "--json").json["unchanged"] == 3
    path.unlink()
    coaudit("rebuild")
    assert coaudit("trajectory", "list", "--json").json["rows"] == rows


def test_archives_are_opened_only_so_deep_and_what_is_broken_in_one_is_named(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    content = {"logs.jsonl": b'{"id": "s1", "messages": [{"role": "user", "content": "Go."}]}\n'}
    for depth in range(5):
        content = {f"{depth}.zip": packed(tmp_path / "deep.zip", content).read_bytes(), "x.zip": b"PK"}
    path = packed(tmp_path / "deep.zip", content)
    err = coaudit("ingest", path, status=None).err
    assert f"{path}!x.zip: broken archive" in err
    deeper = f"{path}!4.zip!3.zip!2.zip: lies in more than 2 archives in an archive: unpack it"
    assert deeper in err and "2.zip!" not in err


def test_an_archive_that_is_too_deep_is_named_beside_what_is_read(tmp_path: Path, coaudit: Coaudit) -> None:
    content = {}
    for depth in range(4):
        line = {"id": f"s{depth}", "messages": [{"role": "user", "content": "Go."}]}
        content["logs.jsonl"] = json.dumps(line).encode() + b"\n"
        content = {f"{depth}.zip": packed(tmp_path / "deep.zip", content).read_bytes()}
    path = packed(tmp_path / "deep.zip", content)
    done = coaudit("ingest", path, "--json").json
    assert done["trajectories"] == 2
    assert [q["source"] for q in done["quarantined"]] == [f"{path}!3.zip!2.zip!1.zip"]


@pytest.mark.slow
@pytest.mark.parametrize(("pack", "ending"), [(zipped, "zip"), (taped, "tar")])
@pytest.mark.parametrize("below", [False, True])
def test_an_archive_that_is_not_compressed_is_opened_and_no_log_itself(
    coaudit: Coaudit, tmp_path: Path, pack: Callable[..., Path], ending: str, below: bool
) -> None:
    """Its bytes show the records of a log, and the first of them was lost."""
    step = "<solver> agent\nThought 1: Yes.\nAction 1: Finish[yes]\nObservation 1: Episode finished\n"
    lines = [{"trajectory": f"Question: {name}?\n{step}", "em": 1, "f1": 1.0} for name in "abc"]
    (tmp_path / "logs").mkdir()
    path = pack(tmp_path / "logs" / f"a.{ending}", [("run.jsonl", "\n".join(map(json.dumps, lines)))])
    done = coaudit("ingest", str(path.parent if below else path), "--json").json
    assert (done["trajectories"], done["quarantined"]) == (3, [])


def heads(coaudit: Coaudit) -> list[dict[str, object]]:
    rows = coaudit("trajectory", "list", "--json").json["rows"]
    return [
        {key: row[key] for key in ("id", "native_id", "condition", "instance", "agent_model")} for row in rows
    ]


@pytest.mark.long
def test_a_log_that_was_compressed_by_itself_is_named_after_the_folders_around_it(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    cogym = (
        Log().say(AGENT, "Shall I?").folder(tmp_path / "arm" / "env_travel_planning_3") / "event_log.jsonl"
    )
    name = "experiment_2026-01-12_10-00-00_poached_pear.json"
    overcooked = tmp_path / "model_a" / "poached_pear" / name
    overcooked.parent.mkdir(parents=True)
    overcooked.write_bytes((ROOT / "data/overcooked/logs/model_a/poached_pear" / name).read_bytes())
    plain = [next(iter(preview([log], ReadOptions()))) for log in (cogym, overcooked)]
    for log in (cogym, overcooked):
        (log.parent / f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
        log.unlink()
    coaudit("ingest", tmp_path)
    before = heads(coaudit)
    assert [row["condition"] for row in before] == ["arm", "model_a"]
    assert before == [{key: getattr(run, key) for key in before[0]} for run in plain]
    coaudit("rebuild")
    assert heads(coaudit) == before


@pytest.mark.long
def test_a_log_that_was_compressed_by_itself_is_read_with_the_files_of_its_session(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    files = performance("Plan", performance_rating=0.5) | simulated()
    log = (
        Log().write(AGENT, "Plan").folder(tmp_path / "arm" / "env_travel_planning_3", files)
        / "event_log.jsonl"
    )
    plain = next(iter(preview([log.parent], ReadOptions())))
    assert isinstance(plain, Trajectory)
    (log.parent / f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    coaudit("ingest", tmp_path)
    for _ in range(2):
        (row,) = coaudit("trajectory", "list", "--json").json["rows"]
        shown = coaudit("trajectory", "show", row["id"], "--json").json
        assert shown["setting"] == "simulated"
        assert shown["participants"] == plain.model_dump(mode="json")["participants"]
        assert (shown["outcome"]["delivered"], shown["outcome"]["task_performance"]) == (1, 0.5)
        coaudit("rebuild")


@pytest.mark.long
@pytest.mark.parametrize(
    "configured", ["env_travel_planning_3_config.toml", "../env_config_tmp/travel_planning_3.toml"]
)
def test_a_log_that_was_compressed_by_itself_has_the_limit_of_the_configuration_beside_its_session(
    tmp_path: Path, coaudit: Coaudit, configured: str
) -> None:
    logs = tmp_path / "study" / "arm"
    log = Log().write(AGENT, "Plan").folder(logs / "env_travel_planning_3") / "event_log.jsonl"
    config = logs / configured
    config.parent.mkdir(exist_ok=True)
    config.write_text("[env_args]\nmax_steps = 1\n")
    (plain,) = preview([log.parent], ReadOptions())
    assert isinstance(plain, Trajectory)
    ends = [outcome.text for outcome in plain.outcomes if outcome.name == "end_reason"]
    assert ends == ["step_limit"]
    (log.parent / f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    coaudit("ingest", tmp_path / "study")
    for _ in range(2):
        (row,) = coaudit("trajectory", "list", "--json").json["rows"]
        assert coaudit("trajectory", "show", row["id"], "--json").json["outcome"]["end_reason"] == ends[0]
        coaudit("rebuild")


def test_what_is_read_with_a_log_that_was_compressed_by_itself_is_not_left_out(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    arm = tmp_path / "arm"
    Log().write(AGENT, "Plan").folder(arm / "env_travel_planning_1")
    log = Log().folder(arm / "env_travel_planning_2", performance() | simulated()) / "event_log.jsonl"
    (arm / "env_travel_planning_2_config.toml").write_text("")
    (log.parent / f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    assert "left out" not in coaudit("ingest", tmp_path).err


@pytest.mark.long
def test_a_session_that_is_all_of_an_archive_is_of_the_folder_with_the_archive(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    log = "".join(Log().say(AGENT, "Shall I?").lines())
    (tmp_path / "arm").mkdir()
    packed(tmp_path / "arm" / "session.zip", {"event_log.jsonl": log.encode()})
    coaudit("ingest", tmp_path)
    before = heads(coaudit)
    assert [row["condition"] for row in before] == ["arm"]
    coaudit("rebuild")
    assert heads(coaudit) == before
