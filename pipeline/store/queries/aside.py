"""Query results that are gone through row by row, however many there are, while others use the store."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from ..connection import constant
from ..memory import spill_folder, write_out

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")
MEMORY = "200MB"
"""For DuckDB while the file is written."""
AT_ONCE = 2000
"""Rows that are in memory at a time."""


def rows_aside(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[dict[str, Any]]:
    """The rows of a query as dictionaries, read from a file of this process's own: the connection is free at
    once.

    Who takes one row in a minute holds up nobody, and a million rows take no more memory than a few thousand.
    """
    path = Path(spill_folder(), f"{secrets.token_hex(8)}.parquet")
    write_out(
        connection,
        f"COPY ({query}) TO {constant(str(path))} (FORMAT parquet, ROW_GROUP_SIZE {10 * AT_ONCE})",
        MEMORY,
    )
    return (row for batch in batches(path, AT_ONCE) for row in batch.to_pylist())


def batches(path: Path, rows: int) -> Iterator[pa.RecordBatch]:
    """A file's rows, so many at a time; the file is removed after the last."""
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(rows)
    finally:
        path.unlink(missing_ok=True)


def parts(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in order, in lists of so many."""
    iterator = iter(items)
    return iter(lambda: list(itertools.islice(iterator, size)), [])
