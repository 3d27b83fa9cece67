"""The rows of spreadsheets, whatever is wrong with a file.

Their reader takes all of a file into memory. Packed ones are measured before that (sheets.py); a process of
its own, which may take no more than MAX_MEMORY, reads those whose texts may be too much, and those of old
(.xls), which cannot be measured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .....schemas import JsonValue, Quarantined
from . import apart
from .sheets import measure
from .tables import ROWS, Row, first_line, panic_as_error, plain_rows

if TYPE_CHECKING:
    import polars

MAX_TEXT = 1 << 29
"""Bytes of text in cells that are read in this process, maybe twice: cells may share one text."""
TYPED = 100
"""Rows that tell the types of a sheet's columns."""
MAX_MEMORY = 8 << 30
"""Bytes of memory that the process of its own may take."""
APART = "coaudit.pipeline.systems.formats.files.excel_apart"
"""The module that the process of its own runs."""
KIND = "a spreadsheet"
SHEET = ("sheet", "sheet_name")
"""Fields of which a row has one that says from which of several sheets it is: the first that no column is
called."""


def rows(path: Path) -> Iterator[Row]:
    """(row from 1, its value or what is wrong with it) of all sheets, each with its header in the first row;
    of several sheets, `sheet` names a row's. What is wrong with all of a file has no row."""
    import fastexcel
    import polars

    try:
        size = measure(path)
        if size is None or size > MAX_TEXT:
            reason = f"it takes more than {MAX_MEMORY >> 30} GiB of memory; save it as CSV"
            yield from apart.rows(APART, path, KIND, reason)
            return
        sheets = read(path)
    except (polars.exceptions.PolarsError, fastexcel.FastExcelError, OSError, ValueError) as error:
        yield None, Quarantined(source=str(path), reason=f"not {KIND}: {first_line(error)}")
        return
    yield from enumerate(plain(sheets, str(path)), start=1)


@dataclass(frozen=True)
class Sheet:
    """A sheet's rows as its first ones tell the types of its columns."""

    frame: polars.DataFrame
    late: polars.DataFrame
    """The columns that have cells which do not fit, and are null there; here all rows tell the types."""


def read(path: Path) -> dict[str, Sheet]:
    """The sheets of a file by their names. Late cells that do not fit a column's type change no others."""
    import polars

    read_sheets: Any = partial(
        polars.read_excel, path, engine="calamine", raise_if_empty=False, drop_empty_rows=False
    )
    with panic_as_error():
        frames: dict[str, polars.DataFrame] = read_sheets(sheet_id=0, infer_schema_length=TYPED)
        names = [name for name, one in frames.items() if len(one) >= TYPED and sum(one.null_count().row(0))]
        again: dict[str, polars.DataFrame] = {}
        if names:
            again = read_sheets(sheet_name=names, infer_schema_length=None)
    return {name: _sheet(frame, again.pop(name, None)) for name, frame in frames.items()}


def _sheet(frame: polars.DataFrame, again: polars.DataFrame | None) -> Sheet:
    """A sheet that was read with types of its first rows, and maybe again with those of all; without rows in
    which no cell has anything."""
    import polars

    late = polars.DataFrame() if again is None else again
    late = late.select(
        one for one in late if one.name in frame and one.null_count() < frame[one.name].null_count()
    )
    if frame.width:
        is_empty = frame.select(polars.all_horizontal(polars.all().is_null())).to_series()
        if late.width:
            is_empty &= late.select(polars.all_horizontal(polars.all().is_null())).to_series()
            late = late.filter(~is_empty)
        frame = frame.filter(~is_empty)
    return Sheet(frame, late)


def plain(sheets: dict[str, Sheet], source: str) -> Iterator[JsonValue | Quarantined]:
    """The rows of all sheets as JSON has them."""
    columns = {column for sheet in sheets.values() for column in sheet.frame.columns}
    key = next((one for one in SHEET if one not in columns), None)
    number = 0
    for name, sheet in sheets.items():
        place = {key: name} if len(sheets) > 1 and key else {}
        late = _values(sheet.late, number, source) if sheet.late.width else repeat({})
        for row, instead in zip(_values(sheet.frame, number, source), late, strict=False):
            number += 1
            if isinstance(row, dict):
                cells = instead if isinstance(instead, dict) else {}
                row = {**place, **{k: cells.get(k) if v is None else v for k, v in row.items()}}
            yield row


def _values(frame: polars.DataFrame, number: int, source: str) -> Iterator[JsonValue | Quarantined]:
    """The rows of a frame as JSON has them, below `number` others."""
    floats = {column for column, kind in frame.schema.items() if kind.is_float()}
    for some in frame.iter_slices(ROWS):
        for row in plain_rows(some, number, source):
            number += 1
            yield _cells(row, floats) if isinstance(row, dict) else row


def _cells(row: dict[str, Any], floats: Collection[str]) -> dict[str, JsonValue]:
    """The cells of a row; a spreadsheet has only floats, so in a column of `floats` a whole one is a whole
    number."""
    return {
        k: int(v) if k in floats and v is not None and v.is_integer() and abs(v) < 2**53 else v
        for k, v in row.items()
    }
