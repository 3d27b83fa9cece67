"""The rows of spreadsheets, whatever is wrong with a file.

Their reader takes all of a file into memory. Packed ones are measured before that (sheets.py); a process of
its own, which may take no more than MAX_MEMORY, reads those whose texts may be too much, and those of old
(.xls), which cannot be measured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....schemas import JsonValue, Quarantined
from . import apart
from .sheets import measure
from .tables import ROWS, Row, first_line, panic_as_error, plain_rows

if TYPE_CHECKING:
    import polars

MAX_TEXT = 1 << 30
"""Bytes of text in cells that are read in this process: cells may share one text."""
MAX_MEMORY = 8 << 30
"""Bytes of memory that the process of its own may take."""
APART = "coaudit.pipeline.systems.formats.excel_apart"
"""The module that the process of its own runs."""
KIND = "a spreadsheet"


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


def read(path: Path) -> dict[str, polars.DataFrame]:
    """The sheets of a file by their names. All rows tell a column's type: cells that do not fit it would be
    null."""
    import polars

    with panic_as_error():
        return polars.read_excel(
            path, sheet_id=0, engine="calamine", raise_if_empty=False, infer_schema_length=None
        )


def plain(sheets: dict[str, polars.DataFrame], source: str) -> Iterator[JsonValue | Quarantined]:
    """The rows of all sheets as JSON has them."""
    number = 0
    for name, frame in sheets.items():
        floats = {column for column, kind in frame.schema.items() if kind.is_float()}
        for some in frame.iter_slices(ROWS):
            for row in plain_rows(some, number, source):
                number += 1
                if isinstance(row, dict):
                    row = {**({"sheet": name} if len(sheets) > 1 else {}), **_cells(row, floats)}
                yield row


def _cells(row: dict[str, Any], floats: Collection[str]) -> dict[str, JsonValue]:
    """The cells of a row; a spreadsheet has only floats, so in a column of `floats` a whole one is a whole
    number."""
    return {
        k: int(v) if k in floats and v is not None and v.is_integer() and abs(v) < 2**53 else v
        for k, v in row.items()
    }
