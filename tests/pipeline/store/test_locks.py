"""What is said of a catalog that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.pipeline.errors import WriteError
from coaudit.pipeline.store.claims import FolderClaims
from coaudit.pipeline.store.locks import FolderLocks, reason

LOST = "server closed the connection unexpectedly"
REFUSED = 'connection to server at "127.0.0.1", port 9 failed: Connection refused'
FULL = 'IO Error: Could not write file "/data/a": No space left'


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            f"Failed to commit: Failed to execute query \"INSERT INTO t VALUES ('{'x' * 9000}')\": {LOST}\n\t"
            "This probably means the server terminated abnormally\n",
            LOST,
        ),
        (
            f'Unable to connect to Postgres at "password=hush": {REFUSED}\n\tIs the server running there?\n'
            "\nLINE 2: SELECT 1\n        ^",
            REFUSED,
        ),
        ('Failed to commit: Failed to execute query "ROLLBACK":', "the connection is lost"),
        (FULL, FULL),
    ],
)
def test_a_catalog_that_fails_is_said_without_the_query_that_met_it(error: str, text: str) -> None:
    assert reason(RuntimeError(error)) == text


def test_a_link_that_somebody_put_in_place_of_a_lock_leads_to_no_file_of_whoever_locks(
    tmp_path: Path,
) -> None:
    own = tmp_path / "own"
    own.write_text("precious")
    locks = FolderLocks(tmp_path / "locks")
    with locks.exclusive("turn", print):
        (lock,) = locks.folder.iterdir()
    lock.unlink()
    lock.symlink_to(own)
    with pytest.raises(WriteError, match="it is a link"), locks.exclusive("turn", print):
        pass
    (locks.folder / "claims").symlink_to(tmp_path / "new")
    with pytest.raises(WriteError, match="it is a link"):
        FolderClaims(locks.folder)
    assert own.read_text() == "precious" and not (tmp_path / "new").exists()
