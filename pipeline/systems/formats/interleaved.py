"""Parts of a file with an event a line, whose sessions lie in each other: each part has whole sessions."""

from __future__ import annotations

import itertools
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ....schemas import JsonValue, Quarantined
from ..base import Span, placed_lines
from . import inputs

NOBODYS = 256 * 1024
"""Bytes of lines that are of no session, which are together."""


@dataclass(slots=True)
class Extent:
    """Where the lines of a session lie: runs of them."""

    end: int = 0
    size: int = 0
    last: int = 0
    """Number of the last line."""
    lines: array[int] = field(default_factory=lambda: array("q"))
    """Of each run the number of its first line."""
    begins: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))

    def add(self, number: int, begin: int, end: int) -> None:
        """Take in a line."""
        if self.lines and self.lines[-1] + self.counts[-1] == number:
            self.counts[-1] += 1
        else:
            self.lines.append(number)
            self.begins.append(begin)
            self.counts.append(1)
        self.size += end - begin
        self.end, self.last = max(self.end, end), max(self.last, number)

    def borrow(self, number: int, begin: int, end: int) -> None:
        """Take in a line that others have as well, and that makes a part no larger."""
        self.add(number, begin, end)
        self.size -= end - begin

    def join(self, other: Extent) -> None:
        """Take in the lines of another."""
        self.lines += other.lines
        self.begins += other.begins
        self.counts += other.counts
        self.size += other.size
        self.end, self.last = max(self.end, other.end), max(self.last, other.last)


class Nobodys(list[Extent]):
    """Lines that are of no session, many together."""

    def add(self, number: int, begin: int, end: int) -> None:
        """Take in a line."""
        if not self or self[-1].size > NOBODYS:
            self.append(Extent())
        self[-1].add(number, begin, end)


def spans(path: Path, name: Callable[[JsonValue], str | None], size: int) -> Iterator[Span]:
    """Parts of about `size` bytes, in the order in which their sessions end.

    `name` says whose an event is. A line of nobody's, or that cannot be read, is in a part with others.
    """
    extents: defaultdict[str, Extent] = defaultdict(Extent)
    nobodys = Nobodys()
    number = 0
    for number, begin, end, line in placed_lines(path):
        value = inputs.record(line, str(path), number)
        own = None if isinstance(value, Quarantined) else name(value)
        (nobodys if own is None else extents[own]).add(number, begin, end)
    return together([*extents.values(), *nobodys], size, number)


def together(extents: list[Extent], size: int, last: int) -> Iterator[Span]:
    """Parts of about `size` bytes of a file whose last line is number `last`. The list is used up: what is in
    a part is held no longer."""
    extents.sort(key=lambda extent: -extent.last)
    while extents:
        some, total = list[Extent](), 0
        while extents and total < size:
            some.append(extents.pop())
            total += some[-1].size
        yield _span(some, last)


def _span(some: list[Extent], last: int) -> Span:
    """One run is a part like any other; but the last line of a file may be one that is still written."""
    runs: list[tuple[int, int, int]] = []
    places = (zip(extent.lines, extent.begins, extent.counts, strict=True) for extent in some)
    for line, begin, count in sorted(itertools.chain.from_iterable(places)):
        if runs and line <= runs[-1][0] + runs[-1][2]:
            first, start, before = runs[-1]
            runs[-1] = first, start, max(before, line + count - first)
        else:
            runs.append((line, begin, count))
    line, start, _ = runs[0]
    end = max(extent.end for extent in some)
    apart = len(runs) > 1 or max(extent.last for extent in some) == last
    return Span(start, end, line, tuple(runs) if apart else None)
