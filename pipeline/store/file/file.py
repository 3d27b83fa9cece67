"""The store as a DuckDB file: one machine, one writer at a time, readers while nobody writes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import duckdb

from ...errors import StoreError
from .. import disk
from ..connection import Reading, connect, limit_threads, refuse_damage
from ..locks import FolderLocks, Locks
from .turns import turns

_ASIDE = "rebuilding-"
_REMEDY = "move it away, and `coaudit rebuild` makes a database"
GATE = "turn.lock"
"""The name of the file at which processes take turns."""


class File:
    """The tables of a workspace in a file; `aside`: those that a rebuild makes to take their place."""

    def __init__(self, path: Path, locks: Path, *, aside: bool = False) -> None:
        self.path = path
        self.locks: Locks = FolderLocks(locks)
        self._folder = locks
        self._is_aside = aside
        self._replacement = path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_made(self) -> bool:
        """Whether there is a file; a kill may have left one without tables."""
        return self.path.exists()

    def last_write(self) -> tuple[str, float | None]:
        """A text that changes with every write, and when the last one was (Unix seconds)."""
        marks, last = list[str](), None
        for file in (self.path, self.path.with_suffix(f"{self.path.suffix}.wal")):
            try:
                status = os.stat(file)
            except (FileNotFoundError, NotADirectoryError):
                marks.append("none")
                continue
            marks.append(f"{status.st_mtime_ns}-{status.st_size}")
            last = max(last or 0.0, status.st_mtime)
        return " ".join(marks), last

    def state_word(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The same text, by way of an open connection."""
        return self.last_write()[0]

    @contextmanager
    def open_connection(self, *, read_only: bool, **settings: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection, once no other process or thread is in the way."""
        here = turns(self.path, None if self._is_aside else self._folder / GATE)
        with here.reading(self.path) if read_only else here.writing(self.path) as release:
            exists = self.path.exists()
            if exists and not self.path.is_file():
                # DuckDB would wait for whoever writes into a pipe.
                raise StoreError(f"{self.path}: no file, but a folder, pipe or device; {_REMEDY}")
            with closing(connect(str(self.path), read_only=read_only, **settings)) as connection:
                release()
                if not exists:
                    self.path.chmod(self.path.stat().st_mode & disk.mode_in(self.path.parent))
                with refuse_damage(self.path):
                    limit_threads(connection, read_only=read_only)
                    yield connection

    @contextmanager
    def hold_state(self, connection: duckdb.DuckDBPyConnection) -> Iterator[Reading]:
        """A function that opens connections to one state: the first one keeps writers out by itself."""
        yield lambda: closing(connection.cursor())

    def make_tables(self, connection: duckdb.DuckDBPyConnection, statements: Iterable[str]) -> None:
        """Make new tables by these statements."""
        for statement in statements:
            connection.execute(statement)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Write, but not while a rebuild swaps the tables."""
        with nullcontext() if self._is_aside else self.locks.shared("swap"):
            yield

    def tidy(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Nothing: DuckDB tidies a file up itself."""

    @contextmanager
    def exclude_writers(self) -> Iterator[None]:
        """Keep every writer out while other tables take the place of these."""
        with self.locks.exclusive("swap", lambda holder: None):
            yield

    def replacement(self) -> File:
        """A file for new tables that are to take the place of these; what earlier rebuilds left behind is
        removed."""
        for leftover in self.path.parent.glob(f"{_ASIDE}*.duckdb*"):
            leftover.unlink()
        self._replacement = self.path.with_name(f"{_ASIDE}{os.getpid()}.duckdb")
        return File(self._replacement, self._folder, aside=True)

    def replace(self) -> None:
        """Put the tables that were made beside these in their place."""
        self.clear()
        disk.rename(self._replacement, self.path)

    def clear(self) -> None:
        """Delete the tables."""
        for path in (self.path, self.path.with_suffix(f"{self.path.suffix}.wal")):
            path.unlink(missing_ok=True)
