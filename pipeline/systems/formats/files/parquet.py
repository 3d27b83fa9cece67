"""The rows of Parquet files, whatever is wrong with a file.

Polars says what the values are, and aborts the process over some damaged files. So Arrow reads the files of
whose columns both say the same; others, and those at which Arrow fails, polars reads in a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from .....schemas import Quarantined
from . import apart
from .tables import ROWS, Row, first_line, panic_as_error, plain_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

MAX_BYTES = 8 * 1024**3
"""Bytes of a Parquet file, unpacked, with VALUE for each value."""
VALUE = 16
"""Bytes that a value takes beside its text: one text a billion times is a file of some kilobytes."""
APART = "coaudit.pipeline.systems.formats.files.parquet_apart"
"""The module that the process of its own runs."""


def rows(path: Path) -> Iterator[Row]:
    """(row from 1, its value or what is wrong with it) of a file; what is wrong with all of it has no row."""
    import polars  # a tenth of a second
    import pyarrow as pa
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as table:
            if _size(table.metadata) > MAX_BYTES:
                reason = f"not Parquet: more than {MAX_BYTES >> 30} GiB unpacked; split it"
                yield None, Quarantined(source=str(path), reason=reason)
                return
            if not _is_common(table):
                raise ValueError("its types are not read")
            schema = pa.schema([one.with_type(_with_zone(one.type)) for one in table.schema_arrow])
            for batch in table.iter_batches(ROWS):
                batch.validate(full=True)
                with panic_as_error():
                    frame = polars.DataFrame(pa.Table.from_batches([batch]).cast(schema))
                for value in plain_rows(frame, number, str(path)):
                    number += 1
                    yield number, value
    except (pa.ArrowException, polars.exceptions.PolarsError, OSError, ValueError, OverflowError) as error:
        for row, one in apart.rows(APART, path, "Parquet", first_line(error)):
            if row is None or row > number:
                yield row, one


def _size(about: parquet.FileMetaData) -> int:
    groups = (about.row_group(place) for place in range(about.num_row_groups))
    columns = (group.column(place) for group in groups for place in range(group.num_columns))
    return sum(one.total_uncompressed_size + one.num_values * VALUE for one in columns)


def _is_common(table: parquet.ParquetFile) -> bool:
    """Whether Arrow and polars say the same of all columns. Of INT96 Arrow takes the year 9999 for 1816; days
    that are times of midnight to polars are days to it."""
    names = table.schema_arrow.names
    physical = (table.schema.column(place).physical_type for place in range(len(table.schema)))
    return "" not in names and "INT96" not in physical and all(map(_is_common_type, table.schema_arrow.types))


def _is_common_type(kind: pa.DataType) -> bool:
    from pyarrow import types

    if types.is_struct(kind):
        return all(_is_common_type(one.type) for one in kind.fields)
    if types.is_list(kind) or types.is_large_list(kind):
        return _is_common_type(kind.value_type)
    same = (
        types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_boolean,
        types.is_integer, types.is_float32, types.is_float64, types.is_timestamp,
    )  # fmt: skip
    return any(one(kind) for one in same)


def _with_zone(kind: pa.DataType) -> pa.DataType:
    """A type whose times are in UTC, the same times, where they are in a zone that polars does not know, such
    as `Z` or `-05:30`."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_struct(kind):
        return pa.struct([one.with_type(_with_zone(one.type)) for one in kind.fields])
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_zone(kind.value_type)))
    if types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_with_zone(kind.value_type)))
    if not types.is_timestamp(kind) or kind.tz is None or _is_zone(kind.tz):
        return kind
    return pa.timestamp(kind.unit, "UTC")


@lru_cache(maxsize=64)
def _is_zone(name: str) -> bool:
    """Whether polars knows a time zone."""
    import polars

    try:
        polars.Series([0], dtype=polars.Datetime).dt.replace_time_zone(name)
    except polars.exceptions.PolarsError:
        return False
    return True
