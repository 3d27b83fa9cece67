"""Layout of a table in a terminal: rows are drawn one by one, so that any number of them is fast.

Cells are on one line; what does not fit is folded.
"""

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
        """Widths that these rows need. Where the terminal has less, the widest columns shrink, down to their
        longest words if possible."""
        columns = list(zip(*rows, strict=True))
        needs = [max(map(cell_len, column)) for column in columns]
        words = [max(cell_len(word) for cell in column for word in cell.split(" ")) for column in columns]
        room = _room(console, columns)
        widths = _level_widths(needs, _level_widths(words, [1] * len(columns), room), room)
        most_cut = max(range(len(columns)), key=lambda column: needs[column] - widths[column])
        spare = max(0, room - sum(widths))
        widths[most_cut] = min(needs[most_cut], widths[most_cut] + spare)
        return cls(console, tuple(widths))

    def wider(self, row: Sequence[str]) -> Layout:
        """The layout widened for one more row, as far as the terminal has room."""
        lacking = [max(0, cell_len(cell) - width) for cell, width in zip(row, self.widths, strict=True)]
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
        cells = [self._fold(cell, width) for cell, width in zip(row, self.widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            texts = [
                part + " " * (width - cell_len(part)) for part, width in zip(parts, self.widths, strict=True)
            ]
            yield GAP.join(texts).rstrip()

    def _fold(self, cell: str, width: int) -> list[str]:
        if cell_len(cell) <= width:
            return [cell]
        return [line.plain.rstrip() for line in Text(cell).wrap(self.console, width, overflow="fold")]


def _room(console: Console, columns: Sequence[object]) -> int:
    return console.width - len(GAP) * (len(columns) - 1)


def _level_widths(needs: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The largest widths up to `needs` that fit into the room, cut at one level; none below its `least`."""
    for most in range(max(needs), 0, -1):
        widths = [max(low, min(width, most)) for width, low in zip(needs, least, strict=True)]
        if sum(widths) <= room:
            break
    return widths
