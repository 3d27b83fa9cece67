"""What the readers of tables share: values as JSON has them, and the failures of their libraries."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from threading import RLock
from typing import TYPE_CHECKING, Any

from .....schemas import JsonValue, Quarantined

if TYPE_CHECKING:
    import polars

Row = tuple[int | None, JsonValue | Quarantined]
"""(number of a row from 1, its value or what is wrong with it); what is wrong with all of a table has no
number."""
_STDERR = RLock()
MAX_TEXT = 64 * 1024 * 1024
"""Bytes of a text file, and characters of a cell of a CSV; a longer one is quarantined."""
ROWS = 10_000
"""Rows of a table that are made plain values at a time."""


def plain_rows(frame: polars.DataFrame, above: int, source: str) -> Iterator[JsonValue | Quarantined]:
    """The rows of a frame as JSON has them; a row that Python cannot hold, such as one of the year 36812, is
    quarantined."""
    rows: Iterable[JsonValue | Quarantined]
    try:
        with panic_as_error():
            rows = [plain_value(row) for row in frame.iter_rows(named=True)]
    except (ValueError, OverflowError) as error:
        half = len(frame) // 2
        if half:
            above_and_below = (frame[:half], above), (frame[half:], above + half)
            rows = chain.from_iterable(plain_rows(part, place, source) for part, place in above_and_below)
        else:
            reason = f"cannot be read: {first_line(error)}"
            rows = [Quarantined(source=source, line=above + 1, reason=reason)]
    yield from rows


@contextmanager
def panic_as_error() -> Iterator[None]:
    """ValueError for a panic of Rust: it is no Exception, and would end the reading of all other logs.

    What Rust prints of each, up to hundreds of lines, is not shown.
    """
    try:
        with _silent_stderr():
            yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"its reader failed: {first_line(error)}") from error


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """The process's standard error goes nowhere; one thread at a time, since all of them share it."""
    with _STDERR, open(os.devnull, "wb") as nowhere:
        own = os.dup(2)
        try:
            os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(own, 2)
            os.close(own)


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def plain_value(value: Any) -> JsonValue:
    """A value of a table or a literal as JSON has it: times as ISO 8601, bytes as their text, a set as a
    list in one order, NaN as null."""
    if isinstance(value, dict):
        return {str(key): plain_value(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(one) for one in value]
    if isinstance(value, set):
        return [plain_value(one) for one in sorted(value, key=repr)]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or value != value:
        return None
    return value if isinstance(value, (str, int, float, bool)) else str(value)
