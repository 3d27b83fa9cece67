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
class _Extent:
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
        self.end = end


def spans(path: Path, name: Callable[[JsonValue], str | None], size: int) -> Iterator[Span]:
    """Parts of about `size` bytes, in the order in which their sessions end.

    `name` says whose an event is. A line of nobody's, or that cannot be read, is a session of its own.
    """
    extents: dict[str | int, _Extent] = {}
    for number, begin, end, line in placed_lines(path):
        value = inputs.record(line, str(path), number)
        own = None if isinstance(value, Quarantined) else name(value)
        key = number if own is None else own
        if (extent := extents.get(key)) is None:
            extents[key] = extent = _Extent()
        extent.add(number, begin, end)
    yield from _together(sorted(extents.values(), key=lambda extent: extent.lines[-1]), size)


def _together(extents: Iterable[_Extent], size: int) -> Iterator[Span]:
    some: list[_Extent] = []
    total = 0
    for extent in extents:
        some.append(extent)
        total += extent.size
        if total >= size:
            yield _span(some)
            some, total = [], 0
    if some:
        yield _span(some)


def _span(some: list[_Extent]) -> Span:
    places = sorted(place for extent in some for place in zip(extent.lines, extent.begins, strict=True))
    (line, start), *_ = places
    return Span(start, max(extent.end for extent in some), line, tuple(places))
