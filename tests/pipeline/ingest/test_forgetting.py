"""What a changed mapping replaces, and what is forgotten and comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coaudit.pipeline.ingest import forgetting
from coaudit.pipeline.ingest.intake import Intake
from coaudit.pipeline.ingest.result import Progress
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store.ledgers.sync import ledger_offsets
from coaudit.pipeline.systems import ReadOptions
from tests.conftest import Coaudit
from tests.pipeline.stores import made, opened, rows

MAP = """
[constants]
system = "lab"
[trajectory]
native_id = "id"
[event]
role = "log[].who"
text = "log[].said"
[roles]
Ada = "human"
"""


def logged(path: Path, *names: str) -> Path:
    log = [{"who": "Ada", "said": "Go."}, {"who": "Bot", "said": "Done."}, {"who": "Ada", "said": "Thanks."}]
    path.write_text("".join(f"{json.dumps({'id': name, 'log': log})}\n" for name in names), encoding="utf-8")
    return path


def chat(path: Path, text: str) -> Path:
    path.write_text(json.dumps([{"role": "user", "content": text}]), encoding="utf-8")
    return path


def listed(coaudit: Coaudit) -> list[tuple[str, int]]:
    rows = coaudit("trajectory", "list", "--json").json["rows"]
    return sorted((row["native_id"], row["events"]) for row in rows)


def mapped(folder: Path, more: str = "") -> Path:
    path = folder / "map.toml"
    path.write_text(MAP + more, encoding="utf-8")
    return path


@pytest.mark.long
def test_a_corrected_mapping_replaces_what_the_source_gave(tmp_path: Path, coaudit: Coaudit) -> None:
    log = logged(tmp_path / "log.jsonl", "s1", "s2")
    coaudit("ingest", log, "--map", mapped(tmp_path))
    assert listed(coaudit) == [("s1", 2), ("s2", 2)]
    said = coaudit("ingest", log, "--map", mapped(tmp_path, 'Bot = "agent"\n')).err
    assert f"{log}: read in another way, 2 trajectories are replaced" in said
    assert listed(coaudit) == [("s1", 3), ("s2", 3)]
    coaudit("rebuild")
    assert listed(coaudit) == [("s1", 3), ("s2", 3)]
    assert (
        "0 trajectories with 0 events; 2 unchanged"
        in coaudit("ingest", log, "--map", mapped(tmp_path, 'Bot = "agent"\n')).out
    )


def test_what_is_forgotten_while_it_is_ingested_stays_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made(tmp_path / "workspace")
    log, kept = chat(tmp_path / "log.json", "Go."), chat(tmp_path / "kept.json", "Stay.")
    read = Intake.run

    def forgotten(intake: Intake, progress: Progress | None = None) -> None:
        store.workspace.forgotten.append([json.dumps({"source": str(log), "time": "2026-01-01"})])
        read(intake, progress)

    monkeypatch.setattr(Intake, "run", forgotten)
    assert ingest(store, [tmp_path], ReadOptions()).trajectories == 1
    assert [row["source"] for row in rows(store, "SELECT source FROM trajectories")] == [str(kept)]


def test_a_mapping_that_reads_nothing_replaces_nothing(tmp_path: Path, coaudit: Coaudit) -> None:
    log = logged(tmp_path / "log.jsonl", "s1")
    coaudit("ingest", log, "--map", mapped(tmp_path))
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(MAP.replace("log[]", "lgo[]"), encoding="utf-8")
    coaudit("ingest", log, "--map", wrong, status=1)
    assert listed(coaudit) == [("s1", 2)]


@pytest.mark.long
def test_ratings_of_what_was_replaced_are_kept_and_listed(tmp_path: Path, coaudit: Coaudit) -> None:
    log = logged(tmp_path / "log.jsonl", "s1")
    coaudit("ingest", log, "--map", mapped(tmp_path))
    rating = {"trajectory": "s1", "codebook": "failures", "code": "C.1", "rater": "ann", "label": "present"}
    path = tmp_path / "ratings.jsonl"
    path.write_text(json.dumps(rating), encoding="utf-8")
    coaudit("ratings", "import", path)
    assert coaudit("ratings", "uncounted", "--json").json["rows"] == []
    said = coaudit("ingest", log, "--map", mapped(tmp_path, 'Bot = "agent"\n')).err
    assert "1 rating on them kept" in said
    (row,) = coaudit("ratings", "uncounted", "--json").json["rows"]
    assert (row["code"], row["rater"], row["label"]) == ("C.1", "ann", "present")
    assert "its unit has changed" in row["reason"]


@pytest.mark.long
def test_a_source_is_forgotten_until_that_is_undone(tmp_path: Path, coaudit: Coaudit) -> None:
    one, two = logged(tmp_path / "one.jsonl", "s1", "s2"), logged(tmp_path / "two.jsonl", "s3")
    mapping = mapped(tmp_path)
    coaudit("ingest", one, two, "--map", mapping)
    assert coaudit("forget", one, "--json").json["sources"] == [str(one)]
    assert listed(coaudit) == [("s3", 2)]
    coaudit("rebuild")
    assert listed(coaudit) == [("s3", 2)]
    assert "forgotten; `coaudit forget --undo`" in coaudit("ingest", one, two, "--map", mapping).err
    assert listed(coaudit) == [("s3", 2)]
    coaudit("forget", "--undo", one)
    assert listed(coaudit) == [("s1", 2), ("s2", 2), ("s3", 2)]
    coaudit("rebuild")
    assert listed(coaudit) == [("s1", 2), ("s2", 2), ("s3", 2)]


@pytest.mark.long
def test_what_other_sources_have_too_stays_and_is_as_they_have_it(tmp_path: Path, coaudit: Coaudit) -> None:
    def arms() -> list[tuple[str, str, str]]:
        rows = coaudit("trajectory", "list", "--json").json["rows"]
        return sorted((row["native_id"], row["condition"], row["source"]) for row in rows)

    one, two = tmp_path / "one" / "log.jsonl", tmp_path / "two" / "log.jsonl"
    for path, names in ((one, ("s1", "s2")), (two, ("s1", "s3"))):
        path.parent.mkdir()
        path.write_text(
            "".join(
                json.dumps({"id": name, "messages": [{"role": "user", "content": "Go."}]}) + "\n"
                for name in names
            ),
            encoding="utf-8",
        )
    coaudit("ingest", one, two)
    before = [("s1", "one", str(one)), ("s2", "one", str(one)), ("s3", "two", str(two))]
    assert arms() == before
    assert "1 trajectory stays: other sources have it, too" in coaudit("forget", one).err
    after = [("s1", "two", str(two)), ("s3", "two", str(two))]
    assert arms() == after
    coaudit("rebuild")
    assert arms() == after
    undone = coaudit("forget", one, "--undo")
    assert "1 trajectory is back" in undone.out
    assert "1 trajectory had stayed" in undone.err
    assert arms() == before
    two.write_text("no log any more", encoding="utf-8")  # what no log is sure to give again stays as it is
    coaudit("forget", one)
    assert arms() == [("s1", "one", str(one)), ("s3", "two", str(two))]


@pytest.mark.long
@pytest.mark.parametrize("undo", [False, True])
def test_what_a_kill_interrupts_is_read_again_by_the_next_command(
    tmp_path: Path, coaudit: Coaudit, workspace: Path, undo: bool
) -> None:
    for arm in ("one", "two"):
        (tmp_path / arm).mkdir()
    logs = [chat(tmp_path / arm / "log.json", "Go.") for arm in ("one", "two")]
    coaudit("ingest", *logs)
    if undo:
        coaudit("forget", logs[0])
    store = opened(workspace)
    with store.reading() as connection:
        before = ledger_offsets(connection)
    (forgetting.undo if undo else forgetting.forget)(store, str(logs[0]))
    assert forgetting.heed(store, before)  # and killed before it reads
    with store.reading() as connection:
        assert connection.execute("SELECT count(*) FROM trajectories").fetchall() == [(0,)]
    (row,) = coaudit("trajectory", "list", "--json").json["rows"]
    assert row["condition"] == ("one" if undo else "two")
    assert coaudit("forget", logs[1], "--json").json["sources"] == [str(logs[1])]


@pytest.mark.long
def test_a_trajectory_is_forgotten_also_where_its_source_is_read_again(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    log = logged(tmp_path / "log.jsonl", "s1", "s2")
    coaudit("ingest", log, "--map", mapped(tmp_path))
    (name,) = coaudit("forget", "s1", "--json").json["trajectories"]
    assert listed(coaudit) == [("s2", 2)]
    assert (
        "0 trajectories with 0 events; 1 unchanged" in coaudit("ingest", log, "--map", mapped(tmp_path)).out
    )
    logged(log, "s1", "s2", "s3")
    grown = coaudit("ingest", log, "--map", mapped(tmp_path), "--json").json
    assert (grown["trajectories"], grown["events"], grown["unchanged"]) == (1, 2, 1)
    assert listed(coaudit) == [("s2", 2), ("s3", 2)]
    assert coaudit("rebuild", "--json").json == {"trajectories": 2, "events": 4}
    for again in ("s1", name):
        assert f"'{again}' is left out already; --undo" in coaudit("forget", again, status=2).err
    coaudit("forget", name, "--undo")
    assert listed(coaudit) == [("s1", 2), ("s2", 2), ("s3", 2)]


def test_an_ingest_of_nothing_but_what_is_forgotten_says_so_and_is_no_error(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    log, mapping = logged(tmp_path / "log.jsonl", "s1"), mapped(tmp_path)
    coaudit("ingest", log, "--map", mapping)
    coaudit("forget", "s1")
    note = "1 trajectory: forgotten; `coaudit forget --undo` brings it back"
    assert note in coaudit("ingest", log, "--map", mapping).err
    logged(log, "s1", "s1")  # read again, and left out again
    assert note in coaudit("ingest", log, "--map", mapping).err
    coaudit("forget", "s1", "--undo")
    coaudit("forget", log)
    note = f"{log}: forgotten; `coaudit forget --undo` brings it back"
    assert note in coaudit("ingest", log, "--map", mapping).err


@pytest.mark.long
def test_a_folder_forgets_all_below_it_and_nothing_beside_it(tmp_path: Path, coaudit: Coaudit) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "ab").mkdir()
    logged(tmp_path / "a" / "log.jsonl", "s1"), logged(tmp_path / "ab" / "log.jsonl", "s2")
    coaudit("ingest", tmp_path / "a", tmp_path / "ab", "--map", mapped(tmp_path))
    coaudit("forget", tmp_path / "a")
    assert listed(coaudit) == [("s2", 2)]


def test_what_is_not_there_cannot_be_forgotten_nor_brought_back(tmp_path: Path, coaudit: Coaudit) -> None:
    coaudit("ingest", logged(tmp_path / "log.jsonl", "s1"), "--map", mapped(tmp_path))
    assert "no trajectory 'else'" in coaudit("forget", "else", status=2).err
    assert "'else' is not left out" in coaudit("forget", "else", "--undo", status=2).err


@pytest.mark.long
def test_an_empty_name_forgets_nothing_and_brings_nothing_back(
    tmp_path: Path, coaudit: Coaudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    coaudit("ingest", logged(tmp_path / "log.jsonl", "s1", "s2"), "--map", mapped(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert "got ''" in coaudit("forget", "", status=2).err
    assert "no trajectory ''" in coaudit("trajectory", "show", "", status=2).err
    coaudit("forget", "s1")
    assert "got ''" in coaudit("forget", "", "--undo", status=2).err
    assert listed(coaudit) == [("s2", 2)]


@pytest.mark.long
def test_forget_names_the_sources_that_it_was_asked_for_and_not_earlier_ones(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    one, two = logged(tmp_path / "one.jsonl", "s1"), logged(tmp_path / "two.jsonl", "s2", "s3")
    coaudit("ingest", one, two, "--map", mapped(tmp_path))
    coaudit("forget", one)
    assert coaudit("forget", two, "--json").json["sources"] == [str(two)]


@pytest.mark.long
def test_a_trajectory_comes_back_by_the_name_it_was_forgotten_by(tmp_path: Path, coaudit: Coaudit) -> None:
    log = logged(tmp_path / "log.jsonl", "s1", "s2")
    log.write_text(log.read_text(encoding="utf-8") + "{cut", encoding="utf-8")
    coaudit("ingest", log, "--map", mapped(tmp_path))
    assert coaudit("forget", "s1").out.startswith("1 trajectory is left out")
    back = coaudit("forget", "s1", "--undo")
    assert back.out.endswith("back\n") and f"{log}:3: not JSON" in back.err
    assert [name for name, _ in listed(coaudit)] == ["s1", "s2"]
    assert f"{log}:3: not JSON" in coaudit("rebuild").err


def test_a_name_that_means_several_is_not_called_left_out_because_one_more_is(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    log = logged(tmp_path / "log.jsonl", *(f"s{number}" for number in range(40)))
    coaudit("ingest", log, "--map", mapped(tmp_path))
    ids = [row["id"] for row in coaudit("trajectory", "list", "--json").json["rows"]]
    firsts = [name[0] for name in ids]
    prefix = max(set(firsts), key=firsts.count)
    forgotten = next(name for name in ids if name.startswith(prefix))
    assert coaudit("forget", forgotten).out == "1 trajectory is left out\n"
    refusal = coaudit("forget", prefix, status=2).err
    assert f"'{prefix}' means {firsts.count(prefix) - 1} trajectories" in refusal
