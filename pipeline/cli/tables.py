"""The columns of a table in a terminal, which no number of rows makes slow: each row is drawn by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

GAP = "  "


@dataclass(frozen=True)
class Layout:
    """How wide each column is, in cells of the terminal; what is longer is folded."""

    console: Console
    widths: tuple[int, ...]

    @classmethod
    def of(cls, rows: Sequence[Sequence[str]], console: Console) -> Layout:
        """As wide as these rows need. Where that is more than the terminal has, the widest give way, by words
        as far as that goes."""
        columns = list(zip(*rows, strict=True))
        needs = [max(map(_width, column)) for column in columns]
        words = [max(_width("\n".join(cell.split(" "))) for cell in column) for column in columns]
        room = _room(console, columns)
        widths = _level_widths(needs, _level_widths(words, [1] * len(columns), room), room)
        most_cut = max(range(len(columns)), key=lambda column: needs[column] - widths[column])
        spare = max(0, room - sum(widths))
        widths[most_cut] = min(needs[most_cut], widths[most_cut] + spare)
        return cls(console, tuple(widths))

    def wider(self, row: Sequence[str]) -> Layout:
        """As wide as this row needs, too, as far as the terminal has room."""
        lacking = [max(0, _width(cell) - width) for cell, width in zip(row, self.widths, strict=True)]
        spare = _room(self.console, row) - sum(self.widths)
        if not any(lacking) or spare <= 0:
            return self
        widths = []
        for width, more in zip(self.widths, lacking, strict=True):
            widths.append(width + min(more, spare))
            spare -= min(more, spare)
        return replace(self, widths=tuple(widths))

    def lines(self, row: Sequence[str]) -> Iterator[str]:
        """A row as one line of the terminal, or several."""
        cells = [self._folded(cell, width) for cell, width in zip(row, self.widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            texts = [
                part + " " * (width - cell_len(part)) for part, width in zip(parts, self.widths, strict=True)
            ]
            yield GAP.join(texts).rstrip()

    def _folded(self, cell: str, width: int) -> list[str]:
        if _width(cell) <= width:
            return cell.split("\n")
        return [line.plain.rstrip() for line in Text(cell).wrap(self.console, width, overflow="fold")]


def _width(cell: str) -> int:
    return max(map(cell_len, cell.split("\n")))


def _room(console: Console, columns: Sequence[object]) -> int:
    return console.width - len(GAP) * (len(columns) - 1)


def _level_widths(needs: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths of which none is more than it takes to fit into the room, and none less than its least."""
    for most in range(max(needs), 0, -1):
        widths = [max(low, min(width, most)) for width, low in zip(needs, least, strict=True)]
        if sum(widths) <= room:
            break
    return widths
