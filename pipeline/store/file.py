"""The store as a DuckDB file: one machine, one writer at a time, readers while nobody writes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import duckdb

from . import disk
from .connection import Reading, connect, limited
from .locks import FolderLocks, Locks
from .turns import turns

_ASIDE = "rebuilding-"
GATE = "turn.lock"
"""The name of the file at which processes take turns."""


class File:
    """The tables of a workspace in a file, or (`aside`) those that are to take their place."""

    def __init__(self, path: Path, locks: Path, *, aside: bool = False) -> None:
        self.path = path
        self.locks: Locks = FolderLocks(locks)
        self._folder = locks
        self._aside = aside
        self._beside = path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_made(self) -> bool:
        """Whether there is a file; a kill may have left one without tables."""
        return self.path.exists()

    def written(self) -> tuple[str, float | None]:
        """A word that changes with every write, and when the last one was (Unix seconds)."""
        marks, last = [], None
        for file in (self.path, self.path.with_suffix(f"{self.path.suffix}.wal")):
            try:
                status = os.stat(file)
            except FileNotFoundError:
                marks.append("none")
                continue
            marks.append(f"{status.st_mtime_ns}-{status.st_size}")
            last = last or status.st_mtime
        return " ".join(marks), last

    def word(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The same, for a connection that is there."""
        return self.written()[0]

    @contextmanager
    def connected(self, *, read_only: bool, **settings: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection, once no other process or thread is in the way."""
        here = turns(self.path, None if self._aside else self._folder / GATE)
        with here.reading(self.path) if read_only else here.writing(self.path) as release:
            exists = self.path.exists()
            with closing(connect(str(self.path), read_only=read_only, **settings)) as connection:
                release()
                if not exists:
                    self.path.chmod(0o600)
                limited(connection, read_only=read_only)
                yield connection

    @contextmanager
    def held(self, connection: duckdb.DuckDBPyConnection) -> Iterator[Reading]:
        """What opens connections that all see one state: the first keeps writers out by itself."""
        yield lambda: closing(connection.cursor())

    def make(self, connection: duckdb.DuckDBPyConnection, statements: Iterable[str]) -> None:
        """New tables, by the statements that make them."""
        for statement in statements:
            connection.execute(statement)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Write, but not while a rebuild swaps."""
        with nullcontext() if self._aside else self.locks.shared("swap"):
            yield

    def tidy(self, connection: duckdb.DuckDBPyConnection) -> None:
        """A file sees to that itself."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every writer out, to put other tables in the place of these."""
        with self.locks.exclusive("swap", lambda holder: None):
            yield

    def beside(self) -> File:
        """Where tables are made that are to take the place of these; what such left behind goes."""
        for leftover in self.path.parent.glob(f"{_ASIDE}*.duckdb*"):
            leftover.unlink()
        self._beside = self.path.with_name(f"{_ASIDE}{os.getpid()}.duckdb")
        return File(self._beside, self._folder, aside=True)

    def replace(self) -> None:
        """Have others look at the tables that were made beside these, from now on."""
        self.clear()
        disk.rename(self._beside, self.path)

    def clear(self) -> None:
        """Throw the tables away."""
        for path in (self.path, self.path.with_suffix(f"{self.path.suffix}.wal")):
            path.unlink(missing_ok=True)
