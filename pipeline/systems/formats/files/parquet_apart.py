"""The process that reads one Parquet file with polars, which some files end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from .....schemas import JsonValue, Quarantined
from . import apart
from .parquet import MAX_BYTES
from .tables import ROWS, panic_as_error, plain_rows


def rows(path: str) -> Iterator[JsonValue | Quarantined]:
    import polars

    with panic_as_error():
        frame = polars.read_parquet(path, glob=False)
    for some in frame.iter_slices(ROWS):
        yield from plain_rows(some, 0, str(Path(path)))


if __name__ == "__main__":
    apart.write(lambda: rows(sys.argv[1]), 2 * MAX_BYTES)
