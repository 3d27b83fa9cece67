"""One state of a lake, for all reads while it is held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import duckdb

from ..connection import first_row
from .attach import Place, snapshot_connection, use


class State:
    """The state that a connection to a lake sees, whatever is stored meanwhile.

    Until somebody stores, a transaction on the same attached lake sees it; with a catalog in SQLite a writer
    waits until that ends. Afterwards the lake is attached at the snapshot, in a second DuckDB: its extensions
    and statistics take 0.4 s.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, place: Place) -> None:
        self._connection = connection
        self._place = place
        self._schema: str
        (self._schema,) = first_row(connection, "SELECT current_schema()") or ("main",)
        self._snapshot = _snapshot(connection)
        self._exit_stack = ExitStack()
        self._snapshot_connection: duckdb.DuckDBPyConnection | None = None

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A new connection that sees this state."""
        if self._snapshot_connection is None:
            with closing(self._connection.cursor()) as cursor:
                cursor.begin()
                if _snapshot(cursor) == self._snapshot:
                    use(cursor, self._schema)
                    yield cursor
                    return
            self._snapshot_connection = self._attach_snapshot()
        with closing(self._snapshot_connection.cursor()) as cursor:
            use(cursor, self._schema)
            yield cursor

    def close(self) -> None:
        """Detach what was attached for it."""
        self._exit_stack.close()

    def _attach_snapshot(self) -> duckdb.DuckDBPyConnection:
        return self._exit_stack.enter_context(snapshot_connection(self._place, self._snapshot))


def _snapshot(connection: duckdb.DuckDBPyConnection) -> int:
    """The snapshot that a connection sees: that of its transaction, where it has one."""
    (snapshot,) = first_row(connection, "FROM lake.current_snapshot()") or (0,)
    return int(snapshot)
