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
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from ...schemas import content_hash
from ..errors import StoreError

if TYPE_CHECKING:
    import psycopg

Waiting = Callable[[str], None]
"""Told once who holds what is waited for."""


class Locks(Protocol):
    """Where locks are held, by name."""

    def exclusive(self, name: str, waiting: Waiting) -> AbstractContextManager[None]:
        """Hold the lock of that name alone, after whoever holds it."""

    def shared(self, name: str, waiting: Waiting = ...) -> AbstractContextManager[None]:
        """Hold the lock of that name beside others who share it, after whoever has it alone."""

    def attempt(self, name: str) -> AbstractContextManager[str | None]:
        """Hold the lock of that name where nobody does (None); else who holds it."""


class FolderLocks:
    """Locks on files of a folder. On a disk that machines share, that disk must support them (NFS 4 does)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def exclusive(self, name: str, waiting: Waiting) -> Iterator[None]:
        with self._opened(name) as file:
            told = False
            while holder := _taken(file):
                if not told:
                    waiting(holder)
                    told = True
                time.sleep(0.2)
            yield

    @contextmanager
    def shared(self, name: str, waiting: Waiting = lambda holder: None) -> Iterator[None]:
        with self._opened(name) as file:
            if holder := _taken(file, fcntl.LOCK_SH):
                waiting(holder)
                fcntl.flock(file.fileno(), fcntl.LOCK_SH)
            yield

    @contextmanager
    def attempt(self, name: str) -> Iterator[str | None]:
        with self._opened(name) as file:
            yield _taken(file)

    def _opened(self, name: str) -> TextIO:
        self.folder.mkdir(parents=True, exist_ok=True)
        readable = re.sub(r"[^\w.-]+", "-", name)[:60]
        return (self.folder / f"{readable}-{content_hash(name)[:8]}.lock").open("a+", encoding="utf-8")


class CatalogLocks:
    """Advisory locks of a Postgres, each held by a connection of its own."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo

    @contextmanager
    def exclusive(self, name: str, waiting: Waiting) -> Iterator[None]:
        with self.attempt(name) as holder:
            if holder is None:
                yield
                return
        waiting(holder)
        with self._connected() as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [key(name)])
            yield

    @contextmanager
    def shared(self, name: str, waiting: Waiting = lambda holder: None) -> Iterator[None]:
        with self._connected() as connection:
            query = "SELECT pg_try_advisory_lock_shared(%s)"
            (free,) = connection.execute(query, [key(name)]).fetchone() or (0,)
            if not free:
                waiting(_holder(connection, name))
                connection.execute("SELECT pg_advisory_lock_shared(%s)", [key(name)])
            yield

    @contextmanager
    def attempt(self, name: str) -> Iterator[str | None]:
        with self._connected() as connection:
            (free,) = connection.execute("SELECT pg_try_advisory_lock(%s)", [key(name)]).fetchone() or (0,)
            yield None if free else _holder(connection, name)

    def _connected(self) -> psycopg.Connection[tuple[object, ...]]:
        return connected(self.conninfo)


def connected(conninfo: str) -> psycopg.Connection[tuple[object, ...]]:
    """A connection to Postgres that says who it is; StoreError without a password in it."""
    try:
        import psycopg
    except ImportError as error:
        raise StoreError("a catalog in Postgres needs the extra `lake`: pip install coaudit[lake]") from error
    try:
        return psycopg.connect(conninfo, autocommit=True, application_name=who(), connect_timeout=30)
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise StoreError(f"the catalog in Postgres cannot be reached: {without_password(reason)}") from error


def who() -> str:
    """This process, as others name it."""
    return f"process {os.getpid()} on {socket.gethostname()}"[:63]


def without_password(text: str) -> str:
    """Text with no password of a connection string or URL in it."""
    text = re.sub(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s'\"]+)", r"\1...", text, flags=re.IGNORECASE)
    return re.sub(r"(\w+://[^\s/:@]*):[^\s@]*@", r"\1:...@", text)


def key(name: str) -> int:
    """A lock's number in Postgres: 64 bits of its name's hash."""
    return int.from_bytes(blake2b(f"coaudit {name}".encode(), digest_size=8).digest(), "big", signed=True)


def _holder(connection: psycopg.Connection[tuple[object, ...]], name: str) -> str:
    query = """
        SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
            AND (l.classid::bigint << 32 | l.objid::bigint) = %s
    """
    row = connection.execute(query, [key(name)]).fetchone()
    return str(row[0]) if row else "unknown"


def _taken(file: TextIO, how: int = fcntl.LOCK_EX) -> str | None:
    """Take the lock; who holds it where that cannot be."""
    try:
        fcntl.flock(file.fileno(), how | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        return file.read().strip() or "unknown"
    file.truncate(0)
    file.write(f"{who()}\n")
    file.flush()
    return None
