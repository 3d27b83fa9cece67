"""One at a time: locks that the system takes back when their holder dies.

Machines that share a folder lock files in it; those that share a catalog in Postgres lock there. Neither
knows a time limit, so no clock has to be right and nobody who is merely slow loses what they hold.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Protocol, TextIO

from ...schemas import content_hash
from . import disk

_LOCK_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
Waiting = Callable[[str], None]
"""Called once with who holds the lock that is waited for."""


class Locks(Protocol):
    """Where locks are held, by name."""

    def exclusive(self, name: str, waiting: Waiting) -> AbstractContextManager[None]:
        """Hold the lock of that name alone, once its holder has released it."""

    def shared(self, name: str, waiting: Waiting = ...) -> AbstractContextManager[None]:
        """Hold the lock of that name together with others who share it, once nobody holds it alone."""

    def attempt(self, name: str) -> AbstractContextManager[str | None]:
        """Hold the lock of that name if it is free, and yield None; else yield who holds it."""


class FolderLocks:
    """Locks on files of a folder. On a disk that machines share, that disk must support them (NFS 4 does)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def exclusive(self, name: str, waiting: Waiting) -> Iterator[None]:
        with self._open_file(name) as file:
            is_reported = False
            while holder := _take_lock(file):
                if not is_reported:
                    waiting(holder)
                    is_reported = True
                time.sleep(0.2)
            yield

    @contextmanager
    def shared(self, name: str, waiting: Waiting = lambda holder: None) -> Iterator[None]:
        with self._open_file(name) as file:
            if holder := _take_lock(file, fcntl.LOCK_SH):
                waiting(holder)
                fcntl.flock(file.fileno(), fcntl.LOCK_SH)
            yield

    @contextmanager
    def attempt(self, name: str) -> Iterator[str | None]:
        with self._open_file(name) as file:
            yield _take_lock(file)

    def _open_file(self, name: str) -> TextIO:
        self.folder.mkdir(parents=True, exist_ok=True)
        readable = re.sub(r"[^\w.-]+", "-", name)[:60]
        path = self.folder / f"{readable}-{content_hash(name)[:8]}.lock"
        try:  # its holder's name takes the place of what a link leads to
            return os.fdopen(os.open(path, _LOCK_FLAGS, 0o666), "a+", encoding="utf-8")
        except OSError as error:
            raise disk.write_error(path, error) from error


def process_name() -> str:
    """This process, as others name it."""
    return f"process {os.getpid()} on {socket.gethostname()}"[:63]


def without_password(text: str) -> str:
    """Text with no password of a connection string or URL in it."""
    text = re.sub(
        r"(password\s*=\s*)('(?:[^'\\]|\\.)*'?|\"[^\"]*\"?|\S+)", r"\1...", text, flags=re.IGNORECASE
    )
    return re.sub(r"(\w+://[^\s/:@]*):\S*@", r"\1:...@", text)


def reason(error: BaseException) -> str:
    """What an error says, on one line and without any password, nor the query that a catalog did not answer,
    which may be kilobytes long."""
    text = " ".join(str(error).split())
    if query := _QUERY.match(text):
        text = text[query.end() :] or "the connection is lost"
    return without_password(_HINT.split(text)[0])


_QUERY = re.compile(r'.*(?:execute query|prepare COPY|read from Postgres|Postgres at) ".*":\s*')
_HINT = re.compile(r" (?:Is the server running|This probably means|LINE \d)")
"""Where Postgres, or DuckDB, begins to guess or to show the query."""


def lock_key(name: str) -> int:
    """A lock's number in Postgres: 64 bits of its name's hash."""
    return int.from_bytes(blake2b(f"coaudit {name}".encode(), digest_size=8).digest(), "big", signed=True)


def _take_lock(file: TextIO, operation: int = fcntl.LOCK_EX) -> str | None:
    """Take the lock; returns who holds it where that fails."""
    try:
        fcntl.flock(file.fileno(), operation | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        return file.read().strip() or "unknown"
    with suppress(OSError):  # a full disk has no room for the name, and the lock is held
        file.truncate(0)
        os.write(file.fileno(), f"{process_name()}\n".encode())
    return None
