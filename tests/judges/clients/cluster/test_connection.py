"""What is said of a dataset that failed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from coaudit.judges.clients.cluster.connection import Connection, failure_reason
from coaudit.judges.clients.engine import Engine
from coaudit.judges.clients.protocol import Fatal

WRAPPED = """\x1b[36mray::MapWorker.submit()\x1b[39m (pid=1, ip=127.0.0.1)
  File "transformers/utils/hub.py", line 1, in cached_file
OSError: /models/judge is not a local folder and is not a valid model identifier

The above exception was the direct cause of the following exception:

ray::MapWorker.submit() (pid=1)
ray.data.exceptions.UserCodeException: UDF failed to process a data block.
To change retry attempts, configure `ray.data.DataContext.get_current()`
"""


def test_what_was_raised_first_in_a_worker_is_the_reason() -> None:
    reason = "OSError: /models/judge is not a local folder and is not a valid model identifier"
    assert failure_reason(RuntimeError(WRAPPED)) == f"Ray gave up: {reason}"


def test_an_error_that_names_no_kind_is_said_by_its_last_line() -> None:
    assert failure_reason(RuntimeError("one\ntwo")) == "Ray gave up: two"
    assert failure_reason(RuntimeError()) == "Ray gave up: RuntimeError()"


def test_where_the_log_cannot_be_written_no_folder_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "file").touch()
    connection = Connection(Engine("ray", logs=tmp_path / "file" / "logs"))
    with pytest.raises(Fatal, match="Ray cannot be started"):
        connection._start()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
