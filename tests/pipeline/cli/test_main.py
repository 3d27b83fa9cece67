"""Bad input gets one clear message with its place, and nothing else is lost."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from coaudit.pipeline.cli import main
from coaudit.pipeline.cli.console import table
from coaudit.pipeline.errors import INTERRUPTED
from coaudit.pipeline.ingest.archives import unpacked_folder
from coaudit.pipeline.store import Store
from coaudit.pipeline.systems.base import MAX_LINE
from tests.conftest import ROOT, Coaudit
from tests.pipeline.stores import counts, made, opened, rows, take
from tests.pipeline.systems.cogym.folders import AGENT, USER, Log

NAME = "env_travel_planning_0"
LOG = "event_log.jsonl"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made(tmp_path / "workspace")


def talk() -> Log:
    return Log().say(AGENT, "One").say(USER, "Two")


def texts(store: Store) -> list[object]:
    found = rows(store, "SELECT text FROM events WHERE kind = 'message' AND seq > 1 ORDER BY seq")
    return [row["text"] for row in found]


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"role": "user"', "not JSON: EOF while parsing an object at column 15"),
        (b'{"role": "\xff\xfe"}', "not JSON: invalid unicode code point"),
        (b"\x00\x00\x00", "not JSON: expected value"),
        (DEEP, "not JSON: recursion limit exceeded"),
        (b'{"current_observation": ' + DEEP + b"}", "not JSON: recursion limit exceeded"),
        (b"7", "expected a JSON object, got int"),
        (b"{}", "role: Field required"),
        (b'"' + b"x" * 1000 + b'"', "expected a JSON object, got str"),
    ],
    ids=["cut", "not-utf8", "nul", "deep", "deep-inside", "number", "empty-object", "text"],
)
def test_a_bad_line_is_quarantined_with_file_and_line_and_the_others_are_read(
    tmp_path: Path, store: Store, line: bytes, reason: str
) -> None:
    folder = talk().folder(tmp_path / "logs" / NAME)
    lines = (folder / LOG).read_bytes().splitlines(keepends=True)
    (folder / LOG).write_bytes(b"".join([*lines[:2], line + b"\n", *lines[2:]]))
    result = take(store, tmp_path / "logs")
    assert counts(result) == (1, 0, 1)
    (wrong,) = result.quarantined
    assert (wrong.source, wrong.line) == (str(folder / LOG), 3)
    assert wrong.reason.startswith(reason), wrong.reason
    assert texts(store) == ["One", "Two"]


def test_blank_lines_and_a_byte_order_mark_are_nothing_bad(tmp_path: Path, store: Store) -> None:
    folder = talk().folder(tmp_path / "logs" / NAME)
    content = (folder / LOG).read_bytes()
    (folder / LOG).write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\n\n  \n").replace(b"\n", b"\r\n"))
    assert counts(take(store, tmp_path / "logs")) == (1, 0, 0)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (LOG, b"", "no record of a session in it"),
        (LOG, b"\n\n", "no record of a session in it"),
        ("empty.json", b"", "the file is empty"),
        ("notes.txt", b"Nothing.", "no logs of a known system in it"),
        ("x.json", DEEP, "no logs of a known system in it"),
        ("x.json", b'{"modelName": "m", "event_log": ' + DEEP + b"}", "not JSON: recursion limit exceeded"),
        ("x.jsonl", DEEP + b"\n", "no logs of a known system in it"),
        ("x.csv", b"=1,2\n", "no logs of a known system in it"),
        ("x.zip", b"PK broken", "broken archive: File is not a zip file"),
        ("x.tar", b"no tape", "broken archive: "),
        ("x.tar.gz", b"\x1f\x8bbroken", "broken archive: "),
    ],
)
def test_a_file_with_nothing_in_it_says_so_and_other_files_are_read(
    tmp_path: Path, store: Store, name: str, content: bytes, reason: str
) -> None:
    bad = tmp_path / "bad" / name
    bad.parent.mkdir()
    bad.write_bytes(content)
    good = talk().folder(tmp_path / "logs" / NAME)
    result = take(store, bad, good)
    assert result.trajectories == 1
    assert any(reason in wrong.reason and wrong.source == str(bad) for wrong in result.quarantined)


def test_a_folder_without_logs_and_a_path_that_does_not_exist_are_named_beside_what_is_read(
    tmp_path: Path, store: Store
) -> None:
    (tmp_path / "empty" / "inside").mkdir(parents=True)
    good = talk().folder(tmp_path / "logs" / NAME)
    result = take(store, tmp_path / "empty", tmp_path / "nowhere", good)
    assert counts(result) == (1, 0, 2)
    assert [(q.source, q.reason.partition(" (")[0]) for q in result.quarantined] == [
        (str(tmp_path / "empty"), "the folder is empty"),
        (str(tmp_path / "nowhere"), "no such file or folder"),
    ]


def test_a_log_that_may_not_be_read_is_named_and_others_are_read(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk().folder(tmp_path / "logs" / NAME)
    secret = tmp_path / "logs" / "env_secret"
    secret.mkdir()
    (secret / LOG).symlink_to(tmp_path / "nothing")
    whole = Path.iterdir

    def denied(path: Path) -> object:
        if path.name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    (tmp_path / "logs" / "locked").mkdir()
    monkeypatch.setattr(Path, "iterdir", denied)
    (secret / LOG).unlink()
    os.mkfifo(secret / "pipe")
    result = take(store, tmp_path / "logs")
    assert counts(result) == (1, 0, 1)
    (wrong,) = result.quarantined
    assert (wrong.source, wrong.reason) == (
        str(tmp_path / "logs" / "locked"),
        "cannot be read: Permission denied",
    )


def test_a_log_that_is_a_broken_link_is_named(tmp_path: Path, store: Store) -> None:
    talk().folder(tmp_path / "logs" / NAME)
    broken = tmp_path / "logs" / "env_b" / LOG
    broken.parent.mkdir()
    broken.symlink_to(tmp_path / "nothing")
    result = take(store, tmp_path / "logs")
    assert result.trajectories == 1
    assert [q.source for q in result.quarantined] == [str(broken)]


@pytest.mark.parametrize("system", ["rehac", "overcooked", "coblock", "coaudit"])
def test_logs_of_one_system_given_as_anothers_say_what_they_look_like(
    tmp_path: Path, store: Store, system: str
) -> None:
    folder = talk().folder(tmp_path / "logs" / NAME)
    (wrong,) = take(store, folder, system=system).quarantined
    assert wrong.reason == f"no logs of {system} in it; it looks like cogym"


@pytest.mark.parametrize("system", ["rehac", "overcooked", "coblock"])
def test_other_systems_given_as_co_gym_say_what_they_look_like(store: Store, system: str) -> None:
    (wrong,) = take(store, ROOT / "data" / system, system="cogym").quarantined
    assert wrong.reason == f"no logs of cogym in it; it looks like {system}"


def _zip(path: Path, members: list[tuple[str, str]]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            link = content.startswith("->")
            info.external_attr = (0o120777 if link else 0o100644) << 16
            archive.writestr(info, content.removeprefix("->"))
    return path


def _tar(path: Path, members: list[tuple[str, str]]) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content.startswith("->"):
                info.type, info.linkname = tarfile.SYMTYPE, content.removeprefix("->")
            elif content == "|":
                info.type = tarfile.FIFOTYPE
            else:
                info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()) if info.isreg() else None)
    return path


def test_a_name_of_a_file_or_link_with_a_line_feed_breaks_no_note_in_two(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    folder = tmp_path / "logs"
    talk().folder(folder / "arm" / NAME)
    (folder / "READ\nME.md").write_text("x")
    (tmp_path / "away").mkdir()
    (folder / "li\nnk").symlink_to(tmp_path / "away", target_is_directory=True)
    notes = coaudit("ingest", folder).err.splitlines()
    assert [note.partition("\\n")[0].rpartition(" ")[2] for note in notes if "\\n" in note] == ["li", "READ"]
    assert not [note for note in notes if note.startswith(("ME", "nk"))]


@pytest.mark.parametrize("name", ["logs.zip", "logs.tar", "logs.tar.gz"])
def test_links_and_ways_out_of_an_archive_are_refused_by_name_and_the_rest_is_read(
    tmp_path: Path, store: Store, name: str
) -> None:
    body = "".join(talk().lines())
    members = [
        (f"arm/{NAME}/{LOG}", body),
        ("../out.txt", "x"),
        ("arm/../../out.txt", "x"),
        ("/tmp/coaudit-out.txt", "x"),
        ("passwd", "->/etc/passwd"),
        (f"arm/{NAME}/again", "->../.."),
    ]
    make = _zip if name.endswith("zip") else _tar
    path = make(tmp_path / name, members + ([] if name.endswith("zip") else [("pipe", "|")]))
    result = take(store, path)
    assert result.trajectories == 1
    assert {q.source: q.reason for q in result.quarantined} == {
        f"{path}!../out.txt": "its path leads out of the archive",
        f"{path}!arm/../../out.txt": "its path leads out of the archive",
        f"{path}!/tmp/coaudit-out.txt": "its path leads out of the archive",
        f"{path}!passwd": "a link inside an archive is not followed",
        f"{path}!arm/{NAME}/again": "a link inside an archive is not followed",
        **({} if name.endswith("zip") else {f"{path}!pipe": "neither a file nor a folder"}),
    }
    assert not (tmp_path / "out.txt").exists() and not Path("/tmp/coaudit-out.txt").exists()


@pytest.mark.parametrize("end", ["gz", "zst"])
def test_a_compressed_file_that_is_cut_off_gives_the_lines_that_are_there(
    tmp_path: Path, store: Store, end: str
) -> None:
    words = random.Random(7)
    body = "".join(
        json.dumps({"id": f"s{n}", "messages": [{"role": "user", "content": words.randbytes(64).hex()}]})
        + "\n"
        for n in range(6000)
    ).encode()
    packed = gzip.compress(body) if end == "gz" else pa.compress(body, codec="zstd", asbytes=True)
    whole = tmp_path / f"whole.jsonl.{end}"
    whole.write_bytes(packed)
    assert take(made(tmp_path / "all"), whole).trajectories == 6000
    path = tmp_path / f"chat.jsonl.{end}"
    path.write_bytes(packed[: len(packed) * 3 // 4])
    result = take(store, path)
    assert 3000 < result.trajectories < 5000
    assert result.quarantined[0].reason.startswith("broken archive: ")


def test_an_archive_that_is_cut_off_gives_what_it_still_holds(tmp_path: Path, store: Store) -> None:
    body = "".join(talk().lines())
    noise = "".join(chr(33 + (i * i) % 90) for i in range(200_000))
    path = _tar(tmp_path / "logs.tar.gz", [(f"{NAME}/{LOG}", body), ("env_b/noise.txt", noise)])
    path.write_bytes(path.read_bytes()[:-500])
    result = take(store, path)
    assert result.trajectories == 1
    assert any(q.reason.startswith("broken archive: ") for q in result.quarantined)


def test_members_of_an_archive_that_are_damaged_or_encrypted_are_named(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("good.txt", "good" * 1000)
        archive.writestr("bad.txt", "bad" * 1000)
    content = bytearray(path.read_bytes())
    at = content.index(b"bad.txt") + len(b"bad.txt")
    content[at : at + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    with unpacked_folder(path) as (folder, refused):
        assert [p.name for p in folder.iterdir() if p.stat().st_size] == ["good.txt"]
    assert [q.source for q in refused] == [f"{path}!bad.txt"]
    assert refused[0].reason.startswith("damaged: ")
    content = bytearray(path.read_bytes())
    for mark, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + flag] |= 1
    path.write_bytes(content)
    with unpacked_folder(path) as (_, refused):
        assert "encrypted" in refused[0].reason


def test_an_archive_that_would_fill_the_disk_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaudit.pipeline.ingest.archives.MAX_BYTES", 10_000)
    for path in (
        _zip(tmp_path / "a.zip", [("a", "x" * 9000), ("b", "x" * 9000)]),
        _tar(tmp_path / "a.tar", [("a", "x" * 9000), ("b", "x" * 9000)]),
    ):
        with unpacked_folder(path) as (folder, refused):
            assert [p.name for p in folder.iterdir()] == ["a"]
        assert "too large: 1000 bytes may still be unpacked" in refused[0].reason


@pytest.mark.slow
def test_a_line_of_200_megabytes_is_quarantined_without_being_held_in_memory(tmp_path: Path) -> None:
    folder = talk().folder(tmp_path / "logs" / NAME)
    lines = (folder / LOG).read_bytes().splitlines(keepends=True)
    with (folder / LOG).open("wb") as file:
        file.writelines(lines[:2])
        file.seek(200 * 2**20, os.SEEK_CUR)
        file.writelines([b"\n", *lines[2:]])
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "ingest", "--json", str(folder)]
    environment = {**os.environ, "COAUDIT_WORKSPACE": str(tmp_path / "workspace")}
    # A process counts what its parent held when it was started, so a small one stands between.
    small = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    small += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
    between = [sys.executable, "-P", "-S", "-c", small, *command]
    done = subprocess.run(between, capture_output=True, text=True, env=environment, check=True)
    (wrong,) = json.loads(done.stdout)["quarantined"]
    assert (wrong["line"], wrong["reason"]) == (3, f"longer than {MAX_LINE // 2**20} MiB")
    assert texts(opened(tmp_path / "workspace")) == ["One", "Two"]
    assert int(done.stderr.split()[-1]) < 512 * 1024, "kilobytes"


# The command line: exit statuses, one document, one message.


@pytest.mark.long
def test_bad_lines_leave_the_status_0_and_are_in_the_document(tmp_path: Path, process: Coaudit) -> None:
    folder = talk().folder(tmp_path / "logs" / NAME, cut="{half")
    done = process("ingest", "--json", folder)
    assert done.json == {
        "trajectories": 1,
        "events": 4,
        "unchanged": 0,
        "quarantined": [
            {
                "source": str(folder / LOG),
                "line": 4,
                "reason": "not JSON: key must be a string at column 2 (the last line is cut off)",
            }
        ],
    }
    assert done.err == ""


def test_bad_lines_are_told_with_their_place_where_no_document_is_asked_for(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    folder = talk().folder(tmp_path / "logs" / NAME, cut="{half")
    done = coaudit("ingest", folder)
    assert done.out == "1 trajectory with 4 events; 0 unchanged\n"
    assert done.err.startswith(f"{folder / LOG}:4: not JSON")


def test_a_talk_without_an_id_that_comes_again_is_no_other_version_of_it(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    talk = json.dumps({"messages": [{"role": "user", "content": "Hi"}]})
    (tmp_path / "talks.jsonl").write_text(f"{talk}\n{talk}\n")
    done = coaudit("ingest", tmp_path / "talks.jsonl")
    assert done.out == "1 trajectory with 1 event; 0 unchanged\n"
    assert "one record tells of one of these trajectories again; they count once" in done.err


def test_one_is_no_many(
    one_session: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _main(monkeypatch, one_session, "trajectory", "list")
    assert capsys.readouterr().out.startswith("1 trajectory\n")


@pytest.mark.parametrize("target", ["nowhere", "log"])
def test_a_link_that_leads_nowhere_is_called_one(tmp_path: Path, coaudit: Coaudit, target: str) -> None:
    (tmp_path / "log").symlink_to(tmp_path / target)
    done = coaudit("ingest", tmp_path / "log", status=1)
    assert f"{tmp_path / 'log'}: a link that leads nowhere, or in a circle\n" in done.err


def test_nothing_read_is_status_1_with_a_document_and_a_message(tmp_path: Path, coaudit: Coaudit) -> None:
    done = coaudit("ingest", "--json", tmp_path / "nowhere", status=1)
    (wrong,) = done.json["quarantined"]
    assert wrong == {"source": str(tmp_path / "nowhere"), "line": None, "reason": "no such file or folder"}
    assert done.err == f"{tmp_path / 'nowhere'}: no such file or folder\ncoaudit: nothing could be read\n"


@pytest.fixture(scope="module")
def one_session(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A workspace that nobody changes."""
    folder = tmp_path_factory.mktemp("one")
    found = made(folder / "workspace")
    take(found, talk().folder(folder / "logs" / NAME))
    return found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ingest"], "Missing argument 'paths'"),
        (["ingest", ".", "--system", "cogim"], "unknown system 'cogim', expected one of auto, cogym, rehac"),
        (["ingest", ".", "--setting", "lab"], "--setting must be real or simulated, got 'lab'"),
        (["ingest", ".", "--tag", "lab"], "expected key=value, got 'lab'"),
        (["ingets", "."], "No such command 'ingets'"),
        (
            ["metrics", "--by", "colour"],
            "a tag 'colour', expected one of system, setting, condition",
        ),
        (["metrics", "--per", "event"], "--per must be trajectory, got 'event'"),
        (
            ["metrics", "--per", "trajectory", "--by", "task"],
            "--per trajectory has a row for each trajectory",
        ),
        (["metrics", "--rater", "nobody"], "no ratings by rater 'nobody', expected one of none yet"),
        (["compare", "--by", "task", "--rater", "nobody"], "no ratings by rater 'nobody', expected one of"),
        (["trajectory", "show", "none"], "no trajectory 'none'; `coaudit trajectory list` shows"),
        (["plan", "--prevalence", ","], "--prevalence must be numbers such as 0.3,0.1, got none"),
        (["plan", "--prevalence", "0.3,x"], "--prevalence must be numbers such as 0.3,0.1, got 'x'"),
        (["advise", "next", "x"], "advisor.json: no advisor there; `coaudit advise train` makes one"),
        (["export", "x", "--tables", ","], "--tables names no table"),
        (["export", "-"], "export writes files, not to stdout"),
        (["export", "x", "--tables", " units , none"], "no table 'none', expected one of"),
        (["export", "x", "--format", "xls"], "--format must be one of parquet, csv, jsonl, got 'xls'"),
        (["export", "x", "--tables", "secrets"], "no table 'secrets', expected one of trajectories"),
        (["export", "x", "--format", "jsonl", "--tables", "events"], "--tables is for parquet and csv"),
        (["export", "x", "--hidden"], "--hidden is for jsonl: parquet never has what only the human knew"),
        (["agreement", "--level", "ordinal"], "--labels and --level are for --ratings FILE"),
        (["agreement", "--codebook", "tone"], "unknown codebook 'tone', expected one of"),
        (["generate", "x", "--sessions", "0"], "'--sessions': Input should be greater than or equal to 1"),
    ],
)
def test_wrong_use_is_status_2_and_names_what_would_be_right(
    one_session: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    assert _main(monkeypatch, one_session, *arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert "Traceback" not in said.err and not said.out


def _main(monkeypatch: pytest.MonkeyPatch, store: Store, *arguments: str) -> int:
    """Run the command line in this process; its exit status."""
    monkeypatch.setattr(sys, "argv", ["coaudit", "--workspace", str(store.workspace.path), *arguments])
    with pytest.raises(SystemExit) as left:
        main.main()
    return int(left.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["metrics"], "no workspace here; `coaudit ingest PATH` makes one"),
        (["rebuild"], "no workspace here; `coaudit ingest PATH` makes one"),
        (["ratings", "import", "nothing.jsonl"], "no workspace here"),
        (["agreement", "--ratings", "nothing.csv"], "nothing.csv: cannot read: No such file or directory"),
        (["generate", "/proc/none/x", "--sessions", "1"], "coaudit: /proc/none"),
    ],
)
def test_what_cannot_be_done_is_status_1_and_one_message(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    assert _main(monkeypatch, opened(tmp_path / "nowhere"), *arguments) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


def test_errors_of_the_database_and_of_files_are_one_message(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    take(store, talk().folder(tmp_path / "logs" / NAME))
    (tmp_path / "out" / "events.csv").mkdir(parents=True)
    assert _main(monkeypatch, store, "export", str(tmp_path / "out"), "--format", "csv") == 1
    said = capsys.readouterr().err
    assert said.startswith("coaudit: ") and "events.csv" in said and said.count("\n") == 1
    with store.writing() as connection:
        connection.execute("DROP VIEW current_ratings CASCADE")
        connection.execute("DROP TABLE ratings CASCADE")
    assert _main(monkeypatch, store, "ratings", "export") == 1
    said = capsys.readouterr().err
    assert said.startswith("coaudit: the database: ") and said.count("\n") == 1


def test_an_error_that_nobody_foresaw_is_one_message_too(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise ZeroDivisionError("unforeseen\nby anybody")

    monkeypatch.setattr(main, "app", fails)
    assert _main(monkeypatch, store, "metrics") == 1
    message = "coaudit: unexpected ZeroDivisionError: unforeseen (COAUDIT_DEBUG=1 shows where)\n"
    assert capsys.readouterr().err == message
    monkeypatch.setenv("COAUDIT_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["coaudit"])
    with pytest.raises(ZeroDivisionError):
        main.main()


def test_an_interrupt_is_one_message_and_no_traceback(tmp_path: Path) -> None:
    fifo = tmp_path / "logs" / NAME / LOG
    fifo.parent.mkdir(parents=True)
    script = (
        "import os, signal, coaudit.pipeline.ingest.run as i, coaudit.pipeline.cli.main as c, sys\n"
        "i.ingest = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\n"
        f"sys.argv = ['coaudit', '--workspace', {str(tmp_path / 'w')!r}, 'ingest', {str(tmp_path)!r}]\n"
        "c.main()\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode in (1, 128 + signal.SIGINT)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["agreement", "rates"])
def test_before_any_rating_a_command_says_what_to_run_in_place_of_an_empty_table(
    command: str, tmp_path: Path, coaudit: Coaudit
) -> None:
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]))
    assert coaudit("ingest", str(chat)).status == 0
    done = coaudit(command)
    assert (done.status, done.out) == (0, "")
    assert "coaudit sample --codebook NAME" in done.err
    assert json.loads(coaudit(command, "--json").out)["rows"] == []


def test_an_interrupt_while_the_command_line_is_imported_ends_it_without_a_word() -> None:
    """It was a traceback through the modules of others."""
    script = (
        "import os, signal, sys\n"
        "class Press:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Press())\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from coaudit.pipeline.cli.start import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_an_interrupt_while_a_module_in_c_is_loaded_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise ImportError("initialization failed") from KeyboardInterrupt()  # as pybind11 has it

    monkeypatch.setattr(main, "app", interrupted)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == INTERRUPTED and capsys.readouterr() == ("", "")


def test_an_interrupt_in_the_middle_of_a_query_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise RuntimeError("Query interrupted")  # as DuckDB has it

    monkeypatch.setattr(main, "app", interrupted)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == INTERRUPTED and capsys.readouterr() == ("", "")


def test_a_dashboard_says_that_its_port_is_taken_before_where_it_would_be(coaudit: Coaudit) -> None:
    coaudit("ingest", ROOT / "data" / "coblock")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = coaudit("dashboard", "--port", str(port), status=1)
    assert f"port {port} on 127.0.0.1 is not available" in done.err and "http://" not in done.err


def test_a_table_that_goes_to_no_terminal_has_room_for_its_ids(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    row = ["f" * 32, "session of a long name", "coblock", "a note of some more words than that"]
    table("", ["id", "native_id", "system", "note"], [row])
    assert row[0] in capsys.readouterr().out.splitlines()[-1]
    monkeypatch.setenv("COLUMNS", "40")
    table("", ["id", "native_id", "system", "note"], [row])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 40


WORD = "hunter2"
LAKE = "ducklake:postgres:host=127.0.0.1 port=1 "


@pytest.mark.parametrize(
    ("settings", "arguments", "said"),
    [
        (f'store = "{LAKE}password=\'{WORD} x"', ["study", "show"], "password=..."),
        (f'store = "{LAKE}password={WORD}"', ["study", "show", "--json"], "password=..."),
        (f'store = "postgres:host=h password={WORD}"', ["metrics"], "got postgres:..."),
        (f'store = "postgresql://me:{WORD}@h/db"', ["metrics"], "got postgresql:..."),
        (f'store = "s3://me:{WORD}@bucket/x.duckdb"', ["study", "show", "--json"], "got s3:..."),
        ("", ["--workspace", f"ftp://me:{WORD}@h/x", "metrics"], "ftp://h/x: a workspace must be a folder"),
        ("", ["--workspace", f"s3://me:{WORD}@b/x", "metrics"], "s3://b/x: a workspace must be a folder"),
        ("", ["--workspace", f"s3://b/x?key={WORD}", "metrics"], "keys come from the environment"),
        ("", ["follow", ".", "--webhook", f"htp://me:{WORD}@h/x"], "got 'htp://h'"),
        ("", ["follow", ".", "--webhook", f"h.example/{WORD}"], "got 'h.example'"),
        ("", ["follow", ".", "--metrics", f"me:{WORD}@h/x"], "got 'me:h/x'"),
    ],
)
def test_a_word_that_is_secret_is_in_no_message_and_no_file_name_however_wrong_its_place_is(
    workspace: Path,
    coaudit: Coaudit,
    settings: str,
    arguments: list[str],
    said: str,
) -> None:
    workspace.mkdir()
    (workspace / "coaudit.toml").write_text(settings)
    told = coaudit(*arguments, status=None)
    assert said in told.err + told.out and WORD not in told.err + told.out
    assert not [path for path in workspace.parent.rglob("*") if WORD in path.name]


@pytest.mark.parametrize(
    "place", ["ftp://me:{}@h/x", "s3://me:{}@bucket/x", "s3://bucket/x?s3_secret_access_key={}"]
)
def test_the_place_of_a_lakes_files_has_no_key_in_it_since_the_catalog_keeps_it(
    workspace: Path, coaudit: Coaudit, place: str
) -> None:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    workspace.mkdir()
    lake = f'store = "ducklake:sqlite:catalog.db"\ndata = "{place.format(WORD)}"\n'
    (workspace / "coaudit.toml").write_text(lake)
    told = coaudit("ingest", Path(__file__).parent, status=1)
    assert WORD not in told.err and "/x: " in told.err
    assert not (workspace / "catalog.db").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_the_terminal_s_encoding_lacks_is_written_as_an_escape_that_json_has_too(
    one_session: Store, encoding: str
) -> None:
    command = [sys.executable, "-P", "-m", "coaudit.pipeline"]
    env = {**os.environ, "PYTHONIOENCODING": encoding, "COAUDIT_WORKSPACE": str(one_session.workspace.path)}
    for arguments in (["report"], ["report", "--format", "json"]):
        done = subprocess.run([*command, *arguments], capture_output=True, env=env, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        if encoding == "ascii" and arguments == ["report"]:
            assert "\\u2500" in done.stdout.decode("ascii")  # the line beside a heading
        if "json" in arguments:
            assert "κ" in json.dumps(json.loads(done.stdout), ensure_ascii=False)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_what_goes_to_a_program_is_utf_8_in_every_locale(tmp_path: Path, encoding: str) -> None:
    words = "café 東京 🚀"
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"who": words, "said": "hello"}) + "\n", encoding="utf-8")
    chat = tmp_path / "chat.jsonl"
    chat.write_text(json.dumps({"messages": [{"role": "user", "content": words}]}) + "\n", encoding="utf-8")
    env = {**os.environ, "PYTHONIOENCODING": encoding, "COAUDIT_WORKSPACE": str(tmp_path / "w")}

    def out(*arguments: str) -> str:
        command = [sys.executable, "-P", "-m", "coaudit.pipeline", *arguments]
        return subprocess.run(command, capture_output=True, env=env, check=True, cwd=tmp_path).stdout.decode()

    assert json.loads(out("ingest", "chat.jsonl", "--tag", f"place={words}", "--json"))["trajectories"] == 1
    row = json.loads(out("trajectory", "list", "--json"))["rows"][0]
    assert row["tags"] == {"place": words}
    shown = json.loads(out("trajectory", "show", row["id"], "--json"))
    assert shown["events"][0]["text"] == words
    tomllib.loads(out("map", "log.jsonl"))
    for form in ("html", "md"):
        assert "human–agent" in out("report", "--format", form)


@pytest.mark.parametrize("closed", ["stdin", "stdout", "stderr"])
def test_a_command_whose_stream_is_closed_does_its_work(tmp_path: Path, closed: str) -> None:
    talk().folder(tmp_path / "logs" / NAME)
    command = f"{sys.executable} -P -m coaudit.pipeline --workspace w ingest logs"
    close = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-"}[closed]
    for line in (f"{command} {close}", f"{command} {close}".replace("ingest logs", "metrics")):
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0 and "unexpected" not in done.stderr
        assert bool(done.stdout) == (closed != "stdout")


def test_programs_that_a_command_with_closed_streams_starts_have_streams() -> None:
    """Otherwise the first file that they open is where they print."""
    look = "import os; [os.fstat(number) for number in range(3)]"
    code = f"""if True:
        import subprocess, sys
        from coaudit.pipeline.cli import main
        main._prepare_streams()
        assert sys.stdin.read() == "" and not sys.stdin.isatty()
        sys.exit(subprocess.run([sys.executable, "-c", {look!r}]).returncode)"""
    line = f'"{sys.executable}" -P -c "$CODE" <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", line], env={**os.environ, "CODE": code}, check=False).returncode == 0


@pytest.mark.parametrize(
    "arguments", [["trajectory", "show", "\udcff"], ["ingest", ".", "--tag", "a=\udcff"], ["metrics\udcff"]]
)
def test_an_argument_that_is_not_utf_8_is_named(
    one_session: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    assert _main(monkeypatch, one_session, *arguments) == 2
    assert capsys.readouterr().err.startswith("coaudit: an argument must be UTF-8, got '")


def test_a_workspace_that_is_not_named_in_utf_8_is_refused(
    tmp_path: Path, coaudit: Coaudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "w\udcff"
    folder.mkdir()
    done = coaudit("metrics", status=1, COAUDIT_WORKSPACE=str(folder))
    assert "a workspace's path must be UTF-8" in done.err


def test_a_workspace_in_the_home_folder_lies_there_with_its_database(
    tmp_path: Path, coaudit: Coaudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No shell expands ~ in `--workspace=~/w`, and DuckDB did: ledgers and database lay apart."""
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    talk().folder(tmp_path / "logs" / NAME)
    coaudit("--workspace=~/w", "ingest", "logs", HOME=str(tmp_path / "home"))
    assert (tmp_path / "home" / "w" / "coaudit.duckdb").exists()
    assert (tmp_path / "home" / "w" / "sources").is_dir() and not (tmp_path / "~").exists()
    coaudit("--workspace=~/w", "export", "~x", "--format", "csv", HOME=str(tmp_path / "home"))
    assert (tmp_path / "~x" / "events.csv").exists()


@pytest.mark.parametrize("place", ["./~", "./~/w", "~nobody-of-this-name"])
def test_a_workspace_in_a_folder_that_is_called_like_the_home_folder_lies_there_with_its_database(
    tmp_path: Path, coaudit: Coaudit, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    talk().folder(tmp_path / "logs" / NAME)
    coaudit("--workspace", place, "ingest", "logs", HOME=str(tmp_path / "home"))
    assert (tmp_path / place / "coaudit.duckdb").exists() and (tmp_path / place / "sources").is_dir()
    assert not list((tmp_path / "home").iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ["--workspace", "w", "ingest", "LOGS"],
        ["ingest", "--workspace=w", "LOGS"],
        ["ingest", "LOGS", "--workspace", "w"],
        ["--workspace", "other", "ingest", "LOGS", "--workspace", "w"],
        ["ingest", "--workspace=other", "--workspace", "w", "--", "LOGS"],
    ],
)
def test_the_workspace_may_be_named_before_and_after_the_command(tmp_path: Path, words: list[str]) -> None:
    logs = str(ROOT / "data" / "coblock")
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", *(logs if w == "LOGS" else w for w in words)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


@pytest.mark.parametrize("words", [["judge", "--workspace"], ["ingest", "logs", "--workspace"]])
def test_a_command_is_not_taken_for_the_workspace_that_is_not_named(
    coaudit: Coaudit, words: list[str]
) -> None:
    """`ingest logs --workspace` was said to have no command `logs`."""
    assert "Option '--workspace' requires an argument" in coaudit(*words, status=2).err
