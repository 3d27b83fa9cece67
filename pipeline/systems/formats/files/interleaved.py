"""Parts of a file with an event a line and interleaved sessions, so that no session is in two parts."""

from __future__ import annotations

import itertools
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .....schemas import JsonValue, Quarantined
from ...base import Span, placed_lines
from . import inputs

STRAYS = 256 * 1024
"""Bytes of lines of no session that make one extent."""


@dataclass(slots=True)
class Extent:
    """Where the lines of a session lie in a file: runs of lines that follow each other."""

    end: int = 0
    size: int = 0
    last_line: int = 0
    """Number of the last line."""
    lines: array[int] = field(default_factory=lambda: array("q"))
    """The number of each run's first line; `begins` has the byte at which it begins, `counts` its lines."""
    begins: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))

    def add(self, number: int, begin: int, end: int) -> None:
        """Add a line, from byte `begin` to `end`."""
        if self.lines and self.lines[-1] + self.counts[-1] == number:
            self.counts[-1] += 1
        else:
            self.lines.append(number)
            self.begins.append(begin)
            self.counts.append(1)
        self.size += end - begin
        self.end, self.last_line = max(self.end, end), max(self.last_line, number)

    def borrow(self, number: int, begin: int, end: int) -> None:
        """Add a line that other extents have as well, without counting its bytes in `size`."""
        self.add(number, begin, end)
        self.size -= end - begin

    def join(self, other: Extent) -> None:
        """Add the lines of another extent."""
        self.lines += other.lines
        self.begins += other.begins
        self.counts += other.counts
        self.size += other.size
        self.end, self.last_line = max(self.end, other.end), max(self.last_line, other.last_line)


class StrayLines(list[Extent]):
    """Extents of lines of no session, many lines in each."""

    def add(self, number: int, begin: int, end: int) -> None:
        """Add a line, from byte `begin` to `end`."""
        if not self or self[-1].size > STRAYS:
            self.append(Extent())
        self[-1].add(number, begin, end)


def spans(path: Path, name: Callable[[JsonValue], str | None], size: int) -> Iterator[Span]:
    """Parts of about `size` bytes, in the order in which their sessions end.

    `name` gives the session of an event, None for no session. Lines of none, or that cannot be read, are
    together in parts with others.
    """
    extents: defaultdict[str, Extent] = defaultdict(Extent)
    strays = StrayLines()
    number = 0
    for number, begin, end, line in placed_lines(path):
        value = inputs.record(line, str(path), number)
        own = None if isinstance(value, Quarantined) else name(value)
        (strays if own is None else extents[own]).add(number, begin, end)
    return spans_of([*extents.values(), *strays], size, number)


def spans_of(extents: list[Extent], size: int, last: int) -> Iterator[Span]:
    """Parts of about `size` bytes of a file whose last line is number `last`, in the order in which extents
    end. The list is emptied on the way, so that no more is held than what is left."""
    extents.sort(key=lambda extent: -extent.last_line)
    while extents:
        some, total = list[Extent](), 0
        while extents and total < size:
            some.append(extents.pop())
            total += some[-1].size
        yield _span(some, last)


def _span(some: list[Extent], last: int) -> Span:
    """These extents as one part. Its runs are listed where there are several, and where it ends with the
    file's last line (number `last`): somebody may still be writing that."""
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
    apart = len(runs) > 1 or max(extent.last_line for extent in some) == last
    return Span(start, end, line, tuple(runs) if apart else None)
