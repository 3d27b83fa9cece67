"""The process that reads one spreadsheet whose cells may take too much memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from .....schemas import JsonValue, Quarantined
from . import apart, excel


def rows(path: str) -> Iterator[JsonValue | Quarantined]:
    import fastexcel

    try:
        sheets = excel.read(Path(path))
    except fastexcel.FastExcelError as error:
        raise ValueError(str(error)) from error
    yield from excel.plain(sheets, path)


if __name__ == "__main__":
    apart.write(lambda: rows(sys.argv[1]), excel.MAX_MEMORY)
