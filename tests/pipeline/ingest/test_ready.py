"""A store that cannot be brought up to its ledgers shows what it has."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from coaudit.pipeline.store import disk
from coaudit.pipeline.systems.cogym.generate import generate
from tests.conftest import Coaudit


def full(point: str, path: Path) -> None:
    """A disk without room for anything."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_on_a_full_disk_commands_that_read_show_what_the_tables_have_and_say_so(
    tmp_path: Path, workspace: Path, coaudit: Coaudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(tmp_path / "logs", 2, 1)
    coaudit("ingest", tmp_path / "logs")
    before = coaudit("metrics", "--json").json
    truth = tmp_path / "logs" / "truth.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("coaudit.pipeline.store.database.Store.sync", lambda *_, **__: None)
        coaudit("ratings", "import", truth)  # as a kill leaves it
    with monkeypatch.context() as patch:
        patch.setattr(disk, "fault", full)
        done = coaudit("metrics", "--json")
        assert (
            "No space left on device; until that is mended, nothing is written, and figures are without what"
            in done.err
        )
        assert done.json == before
        facts = coaudit("report", "--full", "--format", "json").json["facts"]
        assert facts["Without"].startswith("what the ledgers hold beyond the tables")
        refused = coaudit("judge", "--codebook", "halting", status=1)
        assert "No space left on device" in refused.err
        assert refused.err.endswith(
            "the tables could not be brought up to the ledgers, so nothing is written to it\n"
        )
    assert coaudit("ratings", "import", truth).out.startswith("0 imported")
    assert "Without" not in coaudit("report", "--full", "--format", "json").json["facts"]
