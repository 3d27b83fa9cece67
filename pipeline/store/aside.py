"""Rows that are gone through one by one, however many there are, while others use the store."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from .connection import constant
from .memory import spill, write_out

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")
MEMORY = "200MB"
"""While the file is written."""
AT_ONCE = 2000
"""Rows that are in memory at a time."""


def aside(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[dict[str, Any]]:
    """The rows of a query by column, out of a file of this process's own: the connection is free at once.

    Who takes one row in a minute holds up nobody, and a million take no more memory than a few thousand.
    """
    path = Path(spill(), f"{secrets.token_hex(8)}.parquet")
    write_out(
        connection,
        f"COPY ({query}) TO {constant(str(path))} (FORMAT parquet, ROW_GROUP_SIZE {10 * AT_ONCE})",
        MEMORY,
    )
    return (row for batch in batches(path, AT_ONCE) for row in batch.to_pylist())


def batches(path: Path, rows: int) -> Iterator[pa.RecordBatch]:
    """A file's rows, so many at a time; it is removed behind the last."""
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(rows)
    finally:
        path.unlink(missing_ok=True)


def parts(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in order, so many at a time."""
    iterator = iter(items)
    return iter(lambda: list(itertools.islice(iterator, size)), [])
