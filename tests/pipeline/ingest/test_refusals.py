"""What could not even be opened is shown by the quarantine until a run opens it."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

from tests.conftest import Coaudit
from tests.pipeline.systems.cogym.folders import Log

BROKEN = b"PK\x03\x04 and nothing more"


def quarantine(coaudit: Coaudit) -> list[tuple[str, str]]:
    rows = coaudit("quarantine", "list", "--json").json["rows"]
    return [(Path(row["source"]).name, row["reason"]) for row in rows]


def test_what_could_not_be_opened_is_in_the_quarantine_until_a_run_opens_it(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    """It was told once, by the run that met it: of a file that nobody may read no list or report knew."""
    logs = tmp_path / "logs"
    Log().folder(logs / "env_a")
    unnamed = Path(os.fsdecode(os.fsencode(logs) + b"/env_\xff"))
    Log(description="Another").folder(unnamed)
    archive = logs / "below" / "packed.zip"
    archive.parent.mkdir()
    archive.write_bytes(BROKEN)
    first = coaudit("ingest", logs, "--json").json
    listed = quarantine(coaudit)
    assert (first["trajectories"], len(first["quarantined"]), len(listed)) == (1, 2, 2)
    assert listed[0] == ("packed.zip", "broken archive: File is not a zip file")
    assert "not UTF-8" in listed[1][1]
    for place in (logs, tmp_path, archive.parent):
        coaudit("ingest", place, "--json", status=None)
        assert quarantine(coaudit) == listed, "each is there once, from whichever folder it is met"
    coaudit("rebuild")
    assert quarantine(coaudit) == listed
    unnamed.rename(logs / "env_b")
    archive.unlink()
    again = coaudit("ingest", tmp_path, "--json").json
    assert (again["trajectories"], again["quarantined"], quarantine(coaudit)) == (1, [], [])


def test_a_file_that_may_be_read_again_leaves_the_quarantine_when_it_is_read_alone(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    good = '{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}]}\n'
    (folder / "a.jsonl").write_text(good)
    closed = folder / "b.jsonl"
    closed.symlink_to("/proc/self/mem")  # may be opened, and not be read, by root as well
    first = coaudit("ingest", folder, "--json").json
    assert (first["trajectories"], [name for name, _ in quarantine(coaudit)]) == (1, ["b.jsonl"])
    closed.unlink()
    closed.write_text(good.replace("Hello", "Good day"))
    assert coaudit("ingest", closed, "--json").json["trajectories"] == 1
    assert quarantine(coaudit) == []


def test_what_is_deleted_or_opened_by_a_run_of_its_own_leaves_the_quarantine(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    """Also where a folder holds nothing but archives, which are opened one by one."""
    logs, other = tmp_path / "logs", tmp_path / "other"
    Log().folder(other / "env_a")
    coaudit("ingest", other)
    logs.mkdir()
    for name in ("a.zip", "b.zip", "c.zip"):
        (logs / name).write_bytes(BROKEN)
    closed = logs / "d.jsonl"
    closed.symlink_to("/proc/self/mem")
    coaudit("ingest", logs, status=1)
    names = [name for name, _ in quarantine(coaudit)]
    assert names == ["a.zip", "b.zip", "c.zip", "d.jsonl"], "a file beside archives alone was lost"
    (logs / "b.zip").unlink()
    coaudit("ingest", logs, status=1)
    assert [name for name, _ in quarantine(coaudit)] == ["a.zip", "c.zip", "d.jsonl"]
    (logs / "a.zip").unlink()
    Log(description="Another").folder(logs / "a.zip")
    closed.unlink()
    coaudit("ingest", logs / "a.zip")
    assert [name for name, _ in quarantine(coaudit)] == ["c.zip", "d.jsonl"]


def test_an_archive_whose_name_is_not_utf8_is_refused_and_stops_no_run(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    logs = tmp_path / "logs"
    Log().folder(logs / "env_a")
    Path(os.fsdecode(os.fsencode(logs) + b"/\xff.zip")).write_bytes(BROKEN)
    with tarfile.open(logs / "b.tar", "w") as archive:
        link = tarfile.TarInfo("\udcff")
        link.type = tarfile.SYMTYPE
        archive.addfile(link)
    result = coaudit("ingest", logs, "--json").json
    assert result["trajectories"] == 1
    assert [name for name, _ in quarantine(coaudit)] == ["\\udcff.zip", "b.tar!\\udcff"]


def test_who_else_meets_what_cannot_be_opened_lists_it_once(tmp_path: Path, coaudit: Coaudit) -> None:
    """Rebuilding reads what it knows, and following looks at all; what was opened since is not kept."""
    log = tmp_path / "logs" / "a.jsonl"
    log.parent.mkdir()
    good = '{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}]}\n'
    log.write_text(good)
    log.with_name("b.jsonl").write_text(good.replace("Hello", "Hi"))
    coaudit("ingest", log.parent)
    log.unlink()
    log.symlink_to("/proc/self/mem")
    coaudit("rebuild")
    for _ in range(2):
        coaudit("ingest", log.parent)
        assert [why.startswith("cannot be read") for _, why in quarantine(coaudit)].count(True) == 1
    log.unlink()
    log.write_text(good)
    coaudit("rebuild")
    assert quarantine(coaudit) == []
