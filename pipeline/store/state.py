"""One state of a lake, for all that is read while it is held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import duckdb

from .attach import Place, as_it_was, use
from .connection import first_row


class State:
    """The state that a connection to a lake sees, whatever is stored meanwhile.

    As long as nothing is stored, a transaction of that connection's lake is in it; for a catalog in SQLite a
    writer waits until it ends. To attach the lake as it was takes a second DuckDB, whose extensions and
    statistics take 0.4 s: so only once somebody has stored.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, place: Place) -> None:
        self._connection = connection
        self._place = place
        self._schema: str
        (self._schema,) = first_row(connection, "SELECT current_schema()") or ("main",)
        self._snapshot = _snapshot(connection)
        self._left = ExitStack()
        self._as_it_was: duckdb.DuckDBPyConnection | None = None

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own that is in this state."""
        if self._as_it_was is None:
            with closing(self._connection.cursor()) as cursor:
                cursor.begin()
                if _snapshot(cursor) == self._snapshot:
                    use(cursor, self._schema)
                    yield cursor
                    return
            self._as_it_was = self._attached()
        with closing(self._as_it_was.cursor()) as cursor:
            use(cursor, self._schema)
            yield cursor

    def close(self) -> None:
        """Leave it."""
        self._left.close()

    def _attached(self) -> duckdb.DuckDBPyConnection:
        return self._left.enter_context(as_it_was(self._place, self._snapshot))


def _snapshot(connection: duckdb.DuckDBPyConnection) -> int:
    """The state that a connection is in: of its transaction, where it has one."""
    (snapshot,) = first_row(connection, "FROM lake.current_snapshot()") or (0,)
    return int(snapshot)
