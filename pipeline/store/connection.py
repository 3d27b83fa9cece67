"""DuckDB connections: opened with patience, and everything that passes rows or parameters through them."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from ..errors import StoreError

Row = Mapping[str, Any]
"""A row of a table, by column name."""
VERSION = 7
"""Of the tables; a database of another version is rebuilt, one from a newer coaudit is refused."""
PATIENCE = 30.0
"""Seconds that an open is retried while another process writes."""


FEW_ROWS = 8
"""So many are stored faster as parameters (1 ms instead of 5) than by way of a data frame."""


_LOCKED = ("Could not set lock", "Conflicting lock", "being used by another process", "database is locked")


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    """Insert rows by column name; all have the same columns, and one that they lack stays null."""
    if not rows:
        return
    names = list(rows[0])
    columns = ", ".join(names)
    if len(rows) <= FEW_ROWS:
        places = ", ".join([f"({', '.join('?' * len(names))})"] * len(rows))
        values = [row[name] for row in rows for name in names]
        execute(connection, f"INSERT INTO {table} ({columns}) VALUES {places}", values)
        return
    import polars as pl

    kinds = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {table}").fetchall()}
    series = [pl.Series(name, [row[name] for row in rows], dtype=_dtype(kinds[name])) for name in names]
    with _without_pandas():
        connection.register("incoming", pl.DataFrame(series))
        connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")
        connection.unregister("incoming")


def delete(connection: duckdb.DuckDBPyConnection, table: str, column: str, values: Sequence[str]) -> None:
    """Delete the rows whose `column` has one of the values."""
    execute(connection, f"DELETE FROM {table} WHERE {column} IN (SELECT unnest(?))", [list(values)])


def listed(values: Iterable[str]) -> str:
    """Texts as constants of a query's `IN (...)`: only they are pushed below joins, windows and groups.

    No text: a condition that nothing meets.
    """
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values) or "NULL"


def execute(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> duckdb.DuckDBPyConnection:
    """Run a query; everything that passes parameters goes through here."""
    with _without_pandas():
        return connection.execute(query, list(parameters))


@contextmanager
def _without_pandas() -> Iterator[None]:
    """Keep pandas out unless somebody has loaded it.

    DuckDB looks for pandas' types among parameters and tables, and where it is installed imports it for
    that, which takes over a second; nothing here uses it.
    """
    if "pandas" in sys.modules:
        yield
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["pandas"]


def dictionaries(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """The rows of a query as dictionaries by column."""
    cursor = execute(connection, query, parameters)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def connect(url: str, *, read_only: bool, **settings: str) -> duckdb.DuckDBPyConnection:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            # Looking for tables among Python's variables would import pandas, which takes two seconds.
            given = {"python_enable_replacements": False, **settings}
            return duckdb.connect(url, read_only=read_only, config=given)
        except duckdb.Error as error:
            if not any(mark in str(error) for mark in _LOCKED):
                reason = str(error).splitlines()[0]
                raise StoreError(
                    f"{url}: cannot open the store: {reason}; `coaudit rebuild` makes a new one"
                ) from error
            if time.monotonic() > deadline:
                raise StoreError(f"{url}: another process held the store for {PATIENCE:.0f} s") from error
        time.sleep(random.uniform(0.01, 0.06))


def _dtype(kind: str) -> Any:
    import polars as pl

    if kind.endswith("[]"):
        return pl.List(_dtype(kind[:-2]))
    return {
        "VARCHAR": pl.String,
        "INTEGER": pl.Int32,
        "BIGINT": pl.Int64,
        "DOUBLE": pl.Float64,
        "BOOLEAN": pl.Boolean,
    }[kind]


def version(connection: duckdb.DuckDBPyConnection) -> int | None:
    """Of the tables that are there; None where there are none.

    Asked outside a transaction: a table that is not there would end it.
    """
    try:
        row = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    except duckdb.CatalogException:
        return None
    return int(row[0]) if row else VERSION
