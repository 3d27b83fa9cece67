"""What a process could not send before it ended is sent by the next, in the order that readers need."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store.remote.logs import Logs
from coaudit.pipeline.systems import ReadOptions
from tests.studies import logs, study

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("machines")]
pytest.importorskip("obstore", reason="the extra `remote` is not installed")


def test_a_log_that_could_not_be_sent_is_sent_before_the_line_that_notes_it(
    tmp_path: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = study(tmp_path, s3)
    (part,) = logs(tmp_path / "logs", parts=1, sessions=2)
    for name, value in {**s3, "COAUDIT_MIRRORS": str(first.folder)}.items():
        monkeypatch.setenv(name, value)
    with monkeypatch.context() as patch, pytest.raises(StoreError, match="no network"):
        patch.setattr(Logs, "hold", _refusing)
        ingest(Store(Workspace.at(first.workspace)), [part], ReadOptions())
    time.sleep(6)  # until then the part may be somebody's
    assert len(json.loads(first.run("trajectory", "list", "--json"))["rows"]) == 2
    part.rename(tmp_path / "elsewhere")
    assert len(json.loads(second.run("trajectory", "list", "--json"))["rows"]) == 2


def _refusing(kept: Logs, content: str, folder: Path) -> None:
    raise StoreError("no network")
