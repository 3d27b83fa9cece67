"""Parts of a file with an event a line, whose sessions lie in each other: each part has whole sessions."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ....schemas import JsonValue, Quarantined
from ..base import Span, placed_lines
from . import inputs


@dataclass
class Extent:
    """Where the lines of a session lie."""

    end: int = 0
    size: int = 0
    lines: array[int] = field(default_factory=lambda: array("q"))
    begins: array[int] = field(default_factory=lambda: array("q"))

    def add(self, number: int, begin: int, end: int) -> None:
        """Take in a line."""
        self.lines.append(number)
        self.begins.append(begin)
        self.size += end - begin
        self.end = max(self.end, end)

    def join(self, other: Extent) -> None:
        """Take in the lines of another."""
        self.lines += other.lines
        self.begins += other.begins
        self.size += other.size
        self.end = max(self.end, other.end)


def spans(path: Path, name: Callable[[JsonValue], str | None], size: int) -> Iterator[Span]:
    """Parts of about `size` bytes, in the order in which their sessions end.

    `name` says whose an event is. A line of nobody's, or that cannot be read, is a session of its own.
    """
    extents: dict[str | int, Extent] = {}
    number = 0
    for number, begin, end, line in placed_lines(path):
        value = inputs.record(line, str(path), number)
        own = None if isinstance(value, Quarantined) else name(value)
        key = number if own is None else own
        if (extent := extents.get(key)) is None:
            extents[key] = extent = Extent()
        extent.add(number, begin, end)
    yield from together(extents.values(), size, number)


def together(extents: Iterable[Extent], size: int, last: int) -> Iterator[Span]:
    """Parts of about `size` bytes of a file whose last line is number `last`."""
    some: list[Extent] = []
    total = 0
    for extent in sorted(extents, key=lambda extent: max(extent.lines)):
        some.append(extent)
        total += extent.size
        if total >= size:
            yield _span(some, last)
            some, total = [], 0
    if some:
        yield _span(some, last)


def _span(some: list[Extent], last: int) -> Span:
    """What lies in one piece is read in one; but for the file's last line, which may still be written."""
    places = sorted({place for extent in some for place in zip(extent.lines, extent.begins, strict=True)})
    (line, start), *_, (behind, _) = (*places, places[-1])
    end = max(extent.end for extent in some)
    apart = behind - line + 1 > len(places) or behind == last
    return Span(start, end, line, tuple(places) if apart else None)
