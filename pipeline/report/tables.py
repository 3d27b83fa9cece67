"""Tables of a report: cells that are words or numbers with their interval and n, drawn by each format."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...schemas import Metric
from ...schemas.text import INVISIBLE
from ..store.queries.selection import COLUMNS, name_of

PERCENT = (
    *("delivery_rate", "success_rate", "win_rate", "exact_match"),
    *("human_intervention_rate", "error_rate", "repeated_action_rate"),
)
"""Metrics that are shares of trajectories or of their steps and read best as per cent."""
DECIMALS = 2
"""Most decimals of a percentage."""
_COMMAND = re.compile(rf"`((?:coaudit|--)[^`\t\n{INVISIBLE}]*)(?<!\s)`")


@dataclass(frozen=True)
class Number:
    """A value with its 95 % interval and n; `reason` says why it is None."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: float | None = None
    """Sample size; not a whole number where units count in part."""
    missing: int = 0
    reason: str | None = None
    percent: bool = False
    mean: bool = False
    """A mean of labels, on a scale of its own."""
    plain: bool = False
    """A plain count: no interval, no n."""
    signed: bool = False
    """A difference: shown with its sign."""
    mark: str = ""
    """Printed after the value, such as the * of a significant difference."""
    corrected: Number | None = None
    """A judge's rate as corrected by people's labels; its n counts those labels."""
    of: tuple[tuple[str, str], ...] = ()
    """What the trajectories behind it have in common, such as ("task", "related_work")."""

    @property
    def text(self) -> str:
        """The value alone, for reading; a dash where it is undefined."""
        plus = "+" if self.signed and (self.value or 0) > 0 else ""
        return plus + self._figure(self.value) + self.mark

    @property
    def interval(self) -> str:
        """`low – high`, or nothing where there is none."""
        if self.low is None or self.high is None:
            return ""
        return f"{self._figure(self.low)} – {self._figure(self.high)}"

    @property
    def bounds(self) -> str:
        """`[low–high]` without units, for where there is little room."""
        return f"[{self.interval.replace(' – ', '–').replace(' %', '')}]" if self.interval else ""

    @property
    def note(self) -> str:
        """Interval and n, or the reason for there being no value."""
        if self.plain:
            return ""
        if self.value is None:
            return self.reason or ""
        count = f"n = {figure(self.n, whole=True)}" if self.n is not None else ""
        lacking = f"{self.missing:,} missing" if self.missing else ""
        words = ", ".join(part for part in (self.interval, count, lacking) if part)
        return f"{words}; {self.corrected._correction}" if self.corrected else words

    def _figure(self, value: float | None) -> str:
        """One of its values as text. A percentage has as many decimals as tell the ends of a narrow interval
        apart, a small share from 0 %, and a large one from 100 %."""
        low, high = 100 * (self.low or 0.0), 100 * (self.high or 0.0)
        share = 100 * (self.value or 0.0)
        apart = (digits for digits in range(DECIMALS + 1) if round(low, digits) != round(high, digits))
        telling = (digits for digits in range(DECIMALS + 1) if round(share, digits) not in (0, 100, -100))
        few = 0 if share in (0, 100, -100) else next(telling, DECIMALS)
        return figure(value, percent=self.percent, whole=self.plain, digits=max(next(apart, 0), few))

    @property
    def _correction(self) -> str:
        labelled = f"{self.n:,} labelled"
        if self.value is None:
            return f"not corrected ({labelled}): {self.reason}"
        return f"corrected {self.text} ({self.interval}, {labelled})"


Cell = str | Number


@dataclass(frozen=True)
class Table:
    """Rows under columns; `groups` span columns (name, how many) after the first `heads` ones."""

    name: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    heads: int = 1
    groups: tuple[tuple[str, int], ...] = ()
    shaded: bool = False
    """Whether cells are tinted by their value, as in a heatmap."""
    empty: str = ""
    """What to run, where there are no rows."""
    appendix: bool = False
    """Whether it belongs to the appendix, after the methods."""

    @cached_property
    def left_aligned(self) -> frozenset[int]:
        """Columns that are aligned left: the heads, and those of words alone."""
        columns = enumerate(zip(*self.rows, strict=True))
        return frozenset(range(self.heads)) | {i for i, column in columns if _is_text(column)}

    def parts(self, width: int = 0) -> list[tuple[str, Table]]:
        """(Name, table) for each group, for formats without room for all columns side by side.

        With a `width`, the table is split only where more columns follow the heads, and no part has more.
        """
        if width and len(self.columns) - self.heads <= width:
            return [("", self)]
        wide = self.groups or (("", len(self.columns) - self.heads),)
        result, at = [], self.heads
        for name, size in wide:
            step = width or max(1, size)
            for start in range(at, at + size, step):
                end = min(start + step, at + size)
                result.append((self._part_name(name, start, end), self._part(start, end)))
            at += size
        return result if self.groups or width else [("", self)]

    def _part(self, start: int, end: int) -> Table:
        keep = [*range(self.heads), *range(start, end)]
        whole = (tuple(row[i] for i in keep) for row in self.rows)
        rows = tuple(row for row in whole if not self.groups or _has_values(row, self.heads))
        columns = tuple(self.columns[i] for i in keep)
        return replace(self, caption="", columns=columns, rows=rows, groups=())

    def _part_name(self, group: str, start: int, end: int) -> str:
        return group or f"Columns {start - self.heads + 1} to {end - self.heads}"


def _is_text(column: tuple[Cell, ...]) -> bool:
    words = [cell for cell in column if cell != ""]
    return bool(words) and all(isinstance(cell, str) and cell[0].isalpha() for cell in words)


def _has_values(row: tuple[Cell, ...], heads: int) -> bool:
    return any(cell != "" for cell in row[heads:])


def figure(value: float | None, *, percent: bool = False, whole: bool = False, digits: int = 0) -> str:
    """A number for reading: per cent, a count, or with two or three digits; a dash where undefined."""
    if value is None:
        return "–"
    if percent:
        return f"{_decimals(100 * value, digits)} %"
    if whole:
        if value == int(value):
            return f"{value + 0.0:,.0f}"
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.2f}"
    return _decimals(value, 3) if abs(value) <= 1 else f"{value:,.2f}"


def _decimals(value: float, digits: int) -> str:
    """A number with so many decimals; what rounds to 0 has no sign."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def filter_of(by: str, group: str) -> tuple[str, str]:
    """The filter that selects a group's trajectories: (column, value), or ("tags", "key=value")."""
    return (by, group) if by in COLUMNS else ("tags", f"{by}={group}")


def of_metric(metric: Metric) -> Number:
    """A metric as a cell."""
    return Number(
        metric.value,
        metric.low,
        metric.high,
        metric.n,
        metric.missing,
        metric.reason,
        percent=metric.metric in PERCENT,
        of=tuple(filter_of(key, name_of(value)) for key, value in (metric.group or {}).items()),
    )


def count(value: float | None) -> Number:
    """A plain number as a cell."""
    return Number(value, plain=True)


def plain(cell: Cell) -> dict[str, Any] | str:
    """A cell as JSON."""
    if isinstance(cell, str):
        return cell
    fields = {
        key: value
        for key, value in vars(cell).items()
        if key == "value"
        or (key in ("low", "high", "n") and value is not None)
        or (value and key in ("missing", "reason", "mark"))
    }
    return fields | ({"corrected": plain(cell.corrected)} if cell.corrected else {})


@dataclass(frozen=True)
class Answer:
    """One question with the answer that the data give."""

    question: str
    sentences: tuple[str, ...]
    table: Table | None
    further: str
    """The command that shows more, or that must be run first; empty where none helps."""


def column_names(table: Table, ends: Sequence[str] = ()) -> list[str]:
    """The columns, each with its group in front, so that no two are the same, nor with one of the `ends`.

    Where names of others are alike, the second is `a · b (2)`.
    """
    names = list(table.columns[: table.heads])
    start = table.heads
    for group, width in table.groups:
        names += [f"{group} · {name}" for name in table.columns[start : start + width]]
        start += width
    earlier: set[str] = set()
    return [free_name(name, earlier, ends) for name in (*names, *table.columns[start:])]


def free_name(name: str, earlier: set[str], ends: Sequence[str] = ()) -> str:
    """A name that `earlier` does not have yet, alone or with one of the `ends`; both are added there. The
    second is `name (2)`."""
    tries = itertools.chain((name,), (f"{name} ({number})" for number in itertools.count(2)))
    free = next(one for one in tries if earlier.isdisjoint((one, *(one + end for end in ends))))
    earlier |= {free, *(free + end for end in ends)}
    return free


def split_commands(text: str) -> list[tuple[bool, str]]:
    """The pieces of one of our sentences: (whether it is a command, text). Names in it may hold backticks.

    A command is on one line and has no space at its end, so that a name that begins like one does not
    swallow what follows.
    """
    return [(bool(i % 2), piece) for i, piece in enumerate(_COMMAND.split(text)) if piece]
