"""Claims: work is claimed before it is done, so that machines that judge one study never ask a question
twice.

A claim is given back once all can read what it led to; whoever claims next finds the answer. The claims of a
process that dies end with it: files and Postgres know at once, an object store by a missing heartbeat, timed
by its own clock alone.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from . import disk
from .locks import lock_key


class Claims(Protocol):
    """What this process may work on."""

    def take(self, names: Sequence[str]) -> set[str]:
        """Claim the names that nobody else has claimed; returns those."""

    def release(self, names: Collection[str]) -> None:
        """Give claims back."""

    def close(self) -> None:
        """Give everything back."""


class FolderClaims:
    """Claims as locks on single bytes of a file that all share."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path, flags = folder / "claims", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        try:
            self._file = os.open(path, flags, disk.mode_in(folder))
        except OSError as error:
            raise disk.write_error(path, error) from error

    def take(self, names: Sequence[str]) -> set[str]:
        return {name for name in names if self._lock(name, fcntl.F_WRLCK)}

    def release(self, names: Collection[str]) -> None:
        for name in names:
            self._lock(name, fcntl.F_UNLCK)

    def close(self) -> None:
        os.close(self._file)

    def _lock(self, name: str, kind: int) -> bool:
        offset = lock_key(name) & (2**62 - 1)
        try:
            if hasattr(fcntl, "F_OFD_SETLK"):  # held by this opening of the file, not by the whole process
                fcntl.fcntl(
                    self._file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, offset, 1, 0)
                )
            else:
                operation = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
                fcntl.lockf(self._file, operation, 1, offset)
        except OSError:
            return False
        return True
