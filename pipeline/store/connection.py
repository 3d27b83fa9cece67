"""DuckDB connections: opened with retries, and every function that passes rows or parameters through them."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from ...schemas.no_pandas import without_pandas
from ..errors import Busy, StoreError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

Row = Mapping[str, Any]
"""A row of a table, by column name."""
Reading = Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]]
"""Opens a connection that reads."""
VERSION = 16
"""Version of the tables: a database of an older one is rebuilt, one from a newer coaudit is refused."""
PATIENCE = 30.0
"""Seconds for which opening is tried again while another process or thread writes."""


STORAGE = "v1.3.0"
"""The oldest DuckDB that can read a new file. What DuckDB 2 writes by default 1.5 cannot open, and machines
with either may share a folder; a format older than this compresses texts in two ways to take the better one,
which needs 40 MiB more."""
OWN_SCHEMA = "tables_"
"""Prefix of a schema that is made with its tables and never made again, so that their version never changes.
"""
_versions: dict[str, int] = {}
ALERTS = "alerts of "
"""What stands before a trajectory's id in the table `meta`, where a follower keeps how far its alerts have
got: no ledger has that."""
NO_DOWNLOADS = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
"""Settings without which DuckDB fetches code from its site when a query names a URL, and then asks that: a
database that somebody else made may have views in place of tables."""
AMONG = "IN (SELECT unnest(?::JSON::VARCHAR[]))"
"""SQL condition: to be one of the texts in a parameter made by `texts`."""
FEW_ROWS = 8
"""Up to so many rows are stored faster as parameters (1 ms instead of 5) than by way of an Arrow table."""


LONG = 100
"""A list of more values is not passed as a parameter: DuckDB takes it apart in Python."""
_TYPES = {
    "VARCHAR": "string",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "DOUBLE": "double",
    "BOOLEAN": "bool",
}
"""DuckDB's name of a type -> Arrow's."""
_LOCK_MESSAGES = (
    "Could not set lock",
    "Conflicting lock",
    "being used by another process",
    "database is locked",
    # Of a connection of this process: one that reads is open beside one that writes, or the other way round.
    "different configuration than existing connections",
    "Unique file handle conflict",
)

_CHANGED = "Corrupt database file"
"""What DuckDB says of a block whose bytes are others than it wrote."""
_CUT_OFF = "Could not read enough bytes"
"""What it says of a block that was cut off, and of a Parquet file that a query names."""
_SYSTEM_ERRORS = ("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EFBIG", "EMFILE")
_SYSTEM_MESSAGES = tuple(os.strerror(getattr(errno, name)) for name in _SYSTEM_ERRORS)
"""Why a system refuses to open a file: it would refuse a new one, too."""
_REMEDY = "; `coaudit rebuild` makes a new one"


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    """Insert rows by column name. All have the same columns; a column of the table that is missing stays
    null."""
    if rows:
        insert_columns(connection, table, {name: [row[name] for row in rows] for name in rows[0]})


def insert_columns(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, Sequence[Any]]
) -> None:
    """Insert rows that are given as columns of one length."""
    count = len(next(iter(columns.values())))
    if count <= FEW_ROWS and not any(map(_is_long, itertools.chain.from_iterable(columns.values()))):
        places = ", ".join([f"({', '.join('?' * len(columns))})"] * count)
        values = [value for row in zip(*columns.values(), strict=True) for value in row]
        if values:
            execute(connection, f"INSERT INTO {table} ({', '.join(columns)}) VALUES {places}", values)
        return
    import pyarrow as pa

    kinds = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {table}").fetchall()}
    with without_pandas():
        arrays = [pa.array(values, _type(kinds[name])) for name, values in columns.items()]
        rows = pa.Table.from_arrays(arrays, names=list(columns))
        append(connection, table, rows.schema, drain(rows.to_batches()))


def _is_long(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > LONG


def append(
    connection: duckdb.DuckDBPyConnection, table: str, fields: pa.Schema, rows: Iterable[pa.RecordBatch]
) -> None:
    """Insert batches of rows by column name; a column that they lack stays null.

    A batch that nobody else holds (`drain`) leaves memory as it is stored.
    """
    with register_table(connection, "incoming", Batches(fields, rows)):
        connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")


def drain(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch in order, forgotten as soon as it is yielded."""
    queue = deque(batches)
    while queue:
        yield queue.popleft()


class Batches:
    """The batches of an Arrow table for a single read: each is forgotten as soon as it is read.

    A table itself would be kept by DuckDB until the transaction ends, though it is unregistered.
    """

    def __init__(self, fields: pa.Schema, rows: Iterable[pa.RecordBatch]) -> None:
        self._schema = fields
        self._rows = rows

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self._schema, self._rows)
        return reader.__arrow_c_stream__(requested_schema)


@contextmanager
def register_table(
    connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table | Batches
) -> Iterator[None]:
    """Have queries on this connection see an Arrow table under a name."""
    with without_pandas():
        connection.register(name, rows)
        try:
            yield
        finally:
            connection.unregister(name)


def delete(connection: duckdb.DuckDBPyConnection, table: str, column: str, values: Iterable[str]) -> None:
    """Delete the rows whose `column` has one of the values."""
    execute(
        connection,
        f"DELETE FROM {table} WHERE {column} {AMONG}",
        [texts(values)],
    )


def texts(values: Iterable[str]) -> str:
    """Texts as the one parameter of `AMONG`.

    DuckDB takes a list apart in Python, which costs thirty times as much for each text.
    """
    return json.dumps(list(values))


def constants(values: Iterable[str]) -> str:
    """Texts as constants of a query's `IN (...)`: only constants are pushed below joins, windows and groups.

    NULL, which nothing equals, where there are none.
    """
    return ", ".join(map(constant, values)) or "NULL"


def constant(text: str) -> str:
    """A text as an SQL literal; a NUL, beyond which DuckDB reads no query, as chr(0)."""
    literal = "'" + text.replace("'", "''") + "'"
    return "(" + literal.replace("\0", "' || chr(0) || '") + ")" if "\0" in text else literal


def execute(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> duckdb.DuckDBPyConnection:
    """Run a query; everything that passes parameters goes through here."""
    with without_pandas():
        return connection.execute(query, list(parameters))


def first_row(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> tuple[Any, ...] | None:
    """The first row of a query that gives few; None where it gives none.

    All rows are fetched: an unfinished result keeps its transaction open, which locks a catalog in SQLite,
    and DuckDB 2 takes no other work on the connection meanwhile.
    """
    rows: list[tuple[Any, ...]] = execute(connection, query, parameters).fetchall()
    return rows[0] if rows else None


def dictionaries(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """The rows of a query as dictionaries by column."""
    cursor = execute(connection, query, parameters)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def rows_with_arrays(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """As `dictionaries`, but each list is an array: no Python object is made for its values."""
    with without_pandas():
        columns = execute(connection, query, parameters).fetchnumpy()
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]


def frame(connection: duckdb.DuckDBPyConnection, query: str) -> pl.DataFrame:
    """The rows of a query as a polars frame, without a Python object for each.

    The query has no parameters: with them DuckDB collects the rows first, in five times the time.
    """
    with without_pandas():
        rows: pl.DataFrame = connection.sql(query).pl()
    return rows


@cache
def cores() -> int:
    """How many cores this process may use: those that it is bound to, and no more than the quota of its
    container or batch system, which DuckDB knows."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with closing(duckdb.connect()) as connection:
        quota = first_row(connection, "SELECT current_setting('threads')")
    return min(bound, quota[0]) if quota else bound


def is_shared(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether other connections of this process may be at work in the same DuckDB: those of a lake."""
    query = "SELECT count(*) FROM duckdb_databases() WHERE database_name = 'lake'"
    return first_row(connection, query) != (0,)


def limit_threads(connection: duckdb.DuckDBPyConnection, *, read_only: bool) -> None:
    """Give a reader all cores and a writer half of them: on two, a second thread doubled the processor time
    of storing and saved no wall time."""
    connection.execute(f"SET threads = {cores() if read_only else max(1, cores() // 2)}")


def hide_progress_bar(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """The connection without DuckDB's progress bar, which goes to stdout where Python runs no file."""
    connection.execute("SET enable_progress_bar = false")
    return connection


def connect(url: str, *, read_only: bool, **settings: str) -> duckdb.DuckDBPyConnection:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            # Looking for tables among Python's variables would import pandas, which takes two seconds.
            config = {
                "python_enable_replacements": False,
                **NO_DOWNLOADS,
                "storage_compatibility_version": STORAGE,
                "write_buffer_row_group_count": "1",
                **settings,
            }
            return hide_progress_bar(duckdb.connect(url, read_only=read_only, config=config))
        except duckdb.Error as error:
            if not any(mark in str(error) for mark in _LOCK_MESSAGES):
                remedy = "" if str(error).endswith(_SYSTEM_MESSAGES) else _REMEDY
                raise StoreError(f"{url}: cannot open the store: {_reason(error)}{remedy}") from error
            if time.monotonic() > deadline:
                raise busy_error(url) from error
        time.sleep(random.uniform(0.01, 0.06))


@contextmanager
def refuse_damage(path: Path) -> Iterator[None]:
    """Raise StoreError where a database turns out to be damaged: opening it reads few of its blocks."""
    try:
        yield
    except duckdb.Error as error:
        if is_damage(error, path):
            raise StoreError(f"{path}: the database is damaged: {_reason(error)}{_REMEDY}") from error
        raise


def is_damage(error: BaseException, path: Path) -> bool:
    """Whether DuckDB met a damaged block of this database: an IOException of DuckDB 1, an Error of 2."""
    text = str(error)
    return isinstance(error, duckdb.Error) and (
        _CHANGED in text or (_CUT_OFF in text and f'/{path.name}"' in text)
    )


def _reason(error: duckdb.Error) -> str:
    return str(error).splitlines()[0]


def busy_error(url: str) -> Busy:
    """The error for a store that others hold for too long; its note on Python stands in a traceback alone."""
    error = Busy(f"{url}: another process held the store for {PATIENCE:.0f} s; try again once it has ended")
    error.add_note("A connection of this process may be open: `with ws.store.reading()` ends with its block.")
    return error


def _type(kind: str) -> pa.DataType:
    import pyarrow as pa

    if kind.endswith("[]"):
        return pa.list_(_type(kind[:-2]))
    return pa.type_for_alias(_TYPES[kind])


def version(connection: duckdb.DuckDBPyConnection) -> int | None:
    """The version of the tables; None where there are none.

    Asked outside a transaction, which a query of a missing table would end.
    """
    (schema,) = first_row(connection, "SELECT current_schema()") or ("",)
    if schema not in _versions:
        number = _query_version(connection)
        if number is None or not schema.startswith(OWN_SCHEMA):
            return number
        _versions[schema] = number
    return _versions[schema]


def _query_version(connection: duckdb.DuckDBPyConnection) -> int | None:
    try:
        row = first_row(connection, "SELECT value FROM meta WHERE key = 'version'")
    except duckdb.CatalogException:
        return None
    return int(row[0]) if row else VERSION
