"""The report as Markdown and as text for a terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Container, Sequence
from html import escape
from typing import TYPE_CHECKING

from ...schemas.text import INVISIBLE, one_line, visible
from .tables import Cell, Number, Table, figure, split_commands

if TYPE_CHECKING:
    from .document import Report
    from .tables import Answer

_SPECIAL = re.compile(r"([\\`*{\[#|~$]|\](?=[(\[:])|(?<=\])\(|(?<![^\W_])_|_(?![^\W_]))")
"""What means something to Markdown within a line: an underscore at the edge of a word alone, brackets
where they make a link."""
_START = re.compile(r"^(\s*\d*)([-+=.)])")
"""What makes a list, a heading or a rule of a paragraph that begins with it."""
MANY = 8
"""A table with more columns beside the heads is split on a terminal."""
HEAD, COLUMN = 20, 14
"""Letters that a head takes, and a number with its interval."""
_CONTROL = re.compile(rf"[\t\n{INVISIBLE}]")


def markdown(report: Report) -> str:
    """Pipe tables under headings; words from logs are escaped."""
    facts = [f"* {_block(escaped(label))}: {escaped(value)}" for label, value in report.facts]
    parts = ["# Audit of human–agent collaboration", f"Made {report.created}.", "\n".join(facts)]
    for answer in report.answers:
        parts += [f"## {escaped(answer.question)}", _sentence(" ".join(answer.sentences))]
        parts += [_pipes(answer.table)] if answer.table else []
    parts += [part for table in report.main for part in _section(table)]
    parts += ["## Methods", *map(_sentence, report.methods)]
    parts += [part for table in report.appendix for part in _section(table)]
    return "\n\n".join(parts) + "\n"


def _section(table: Table) -> list[str]:
    """A table under its title and caption, or what to run for it."""
    parts = [f"## {escaped(table.title)}", _sentence(table.caption if table.rows else table.empty)]
    for name, part in table.parts() if table.rows else []:
        parts += [f"### {escaped(name)}"] if name else []
        parts.append(_pipes(part))
    return parts


def _pipes(table: Table) -> str:
    rule = ["---" if i in table.left_aligned else "---:" for i in range(len(table.columns))]
    lines = [[escaped(name) for name in table.columns], rule]
    lines += [[escaped(_cell_line(cell)) for cell in row] for row in table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def escaped(text: str) -> str:
    """Text as Markdown that shows it as it is, in a line that begins with something else."""
    return _SPECIAL.sub(r"\\\1", escape(_CONTROL.sub(" ", text), quote=False))


def _sentence(text: str) -> str:
    """One of our sentences as a paragraph: commands stay in backticks, the rest is escaped."""
    pieces = (f"`{piece}`" if command else escaped(piece) for command, piece in split_commands(text))
    return _block("".join(pieces))


def _block(line: str) -> str:
    """A line of Markdown that begins no list, heading or rule."""
    return _START.sub(r"\1\\\2", line)


def _cell_line(cell: Cell) -> str:
    """A cell in one line: the value, and in brackets its interval and n or why there is none."""
    if isinstance(cell, str):
        return cell
    return f"{cell.text} ({cell.note})" if cell.note else cell.text


def terminal(report: Report, width: int = 120) -> str:
    """Tables of at most `width` columns; nothing in them is taken for markup or escape codes."""
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True, highlight=False, legacy_windows=False)
    console.print(Text("Audit of human–agent collaboration"))
    console.print(Text(_line(" · ".join(f"{label} {value}" for label, value in report.facts))), "")
    for table in report.tables:
        console.rule(Text(visible(table.title)), align="left", characters="─")
        console.print(Text(visible(table.caption if table.rows else table.empty)), "")
        for name, part in _terminal_parts(table, width) if table.rows else []:
            console.print(_grid(_line(name), part), "")
    console.rule(Text("Methods"), align="left", characters="─")
    for line in report.methods:
        console.print(Text(_line(f"• {line}")))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _terminal_parts(table: Table, width: int) -> list[tuple[str, Table]]:
    """(Name, part) of a table, such as a terminal of this width has room for."""
    return [
        (" · ".join(filter(None, (name, columns))), piece)
        for name, part in table.parts()
        for columns, piece in (
            part.parts(max(2, (width - HEAD * part.heads) // COLUMN))
            if len(part.columns) - part.heads > MANY
            else [("", part)]
        )
    ]


def brief(answers: Sequence[Answer], facts: Sequence[tuple[str, str]], width: int = 80) -> str:
    """The answers to the three questions on about one screen of `width` columns."""
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True, highlight=False, legacy_windows=False)
    console.print(Text(_line(" · ".join(f"{label} {value}" for label, value in facts))))
    for answer in answers:
        console.print("")
        console.rule(Text(_line(answer.question)), align="left", characters="─")
        for sentence in answer.sentences:
            console.print(Text(_line(sentence)))
        if answer.table:
            console.print(_grid("", answer.table, inline=True))
        console.print(Text(_line(f"→ {answer.further}")))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _grid(name: str, table: Table, *, inline: bool = False) -> object:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(title=Text(name) if name else None, title_justify="left", box=None, pad_edge=False)
    for i, column in enumerate(table.columns):
        grid.add_column(
            Text(_line(column)), justify="left" if i in table.left_aligned else "right", overflow="fold"
        )
    for row in table.rows:
        counts = {cell.value for cell in row if isinstance(cell, Number) and cell.plain}
        cells = (_short(cell, counts) if inline else _lines(cell) for cell in row)
        grid.add_row(*(Text(visible(cell)) for cell in cells))
    return grid


def _short(cell: Cell, counts: Container[float | None]) -> str:
    """A cell in one line: the value, its interval, and its n where that is none of the row's own `counts`."""
    if isinstance(cell, str):
        return one_line(cell)
    words = f"{cell.text} {cell.bounds}".strip()
    return words if cell.value is None or cell.n is None or cell.n in counts else f"{words}, {_size(cell)}"


def _lines(cell: Cell) -> str:
    """The value, its interval and its n below each other."""
    if isinstance(cell, str):
        return one_line(cell)
    if cell.plain or cell.value is None:
        return cell.text
    return "\n".join(filter(None, (cell.text, cell.interval, _size(cell) if cell.n is not None else "")))


def _line(text: str) -> str:
    """A line for the terminal: a name in it makes no line of its own, and nothing in it is obeyed."""
    return visible(one_line(text))


def _size(cell: Number) -> str:
    return f"n={figure(cell.n, whole=True)}"
