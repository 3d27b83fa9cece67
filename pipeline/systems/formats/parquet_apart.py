"""The process that reads one Parquet file with polars, which some files end: a line of JSON for each row."""

from __future__ import annotations

import json
import resource
import sys

from ....schemas import Quarantined
from .parquet import MAX_BYTES
from .tables import ROWS, first_line, panic_as_error, plain_rows


def main(path: str) -> None:
    """Write `{"row": ...}` or `{"reason": ...}` for each row, or `{"failure": ...}` for all."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2 * MAX_BYTES if most < 0 else min(2 * MAX_BYTES, most), most))
    import polars

    try:
        with panic_as_error():
            frame = polars.read_parquet(path, glob=False)
    except (polars.exceptions.PolarsError, OSError, ValueError) as error:
        print(json.dumps({"failure": first_line(error)}))
        sys.exit(1)
    for some in frame.iter_slices(ROWS):
        for value in plain_rows(some, 0, path):
            line = {"reason": value.reason} if isinstance(value, Quarantined) else {"row": value}
            print(json.dumps(line))


if __name__ == "__main__":
    main(sys.argv[1])
