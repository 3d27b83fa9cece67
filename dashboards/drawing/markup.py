"""HTML of our own for what Streamlit has no element for. Every word that is put in is escaped here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape

from ...pipeline.report import Cell, Number, Table
from ...pipeline.report.html import interval, isolated
from ...pipeline.report.modes import ANY
from ...pipeline.report.tables import split_commands
from ...schemas.text import shortened, visible

HEAD = 90
"""Letters of a name at the head of a column; all of it stands where one points at it."""
UPRIGHT = 12
"""Columns from which on the heads of a heatmap are turned."""


def grid(table: Table, target: Callable[[Number], str | None], titles: Mapping[str, str]) -> str:
    """A heatmap as HTML: a number a cell, in per cent, the rest where one points at it.

    `titles` say what codes are: those of rows, or of columns where groups are rows.
    """
    none: Mapping[str, str] = {}
    across, down = (titles, none) if table.heads == 1 else (none, titles)
    heads = "".join(
        f'<th scope="col"{_head_class(i, table)} title="{safe(across.get(name, name))}">'
        f"<span>{safe(shortened(name, HEAD))}</span></th>"
        for i, name in enumerate(table.columns)
    )
    body = "".join(_line(table, row, target, across, down) for row in table.rows)
    is_upright = len(table.columns) > UPRIGHT
    kind = "ca grid upright" if is_upright else "ca grid"
    items = "".join(f"<li>{safe(across[name])}</li>" for name in table.columns if name in across)
    body = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    key = f'<details class="ca outline"><summary>What the codes are</summary><ol>{items}</ol></details>'
    frame = f'<div class="{kind}" tabindex="0" role="group" aria-label="{safe(table.title)}">'
    return f"{frame}{body}</div>{key if is_upright else ''}"


def _line(
    table: Table,
    row: tuple[Cell, ...],
    target: Callable[[Number], str | None],
    across: Mapping[str, str],
    down: Mapping[str, str],
) -> str:
    first = str(row[0])
    cells = []
    for column, (name, cell) in enumerate(zip(table.columns, row, strict=True)):
        if isinstance(cell, str):
            cells.append(f"<td{_head_class(column, table)}>{safe(cell)}</td>")
            continue
        subject = f"{across.get(name, name)}, {down.get(first, first)}"
        about = f"{subject}: {cell.text}{f' ({cell.note})' if cell.note else ''}"
        words = cell.text.removesuffix(" %")
        place = target(cell) if cell.value is not None else None
        text = link(place, words) if place else safe(words)
        tint = f' class="tint" style="--tint: {cell.value:.2f}"' if cell.value is not None else ""
        cells.append(f'<td{tint} title="{safe(about)}">{text}</td>')
    total = ' class="total"' if first in down and str(row[1]).endswith(ANY) else ""
    return f"<tr{total}>{''.join(cells)}</tr>"


def drawn(
    table: Table, target: Callable[[Number], str | None], name: str = "", *, pictures: bool = False
) -> str:
    """A table as HTML, under a name; `target` gives the address that a number leads to.

    `pictures`: beside each number with an interval a small drawing of it.
    """
    body = "".join(_row(table, row, target, pictures) for row in table.rows)
    caption = f"<caption>{safe(name)}</caption>" if name else ""
    label = safe(" ".join(filter(None, (table.title, name))) or "Table")
    frame = f'<div class="ca" tabindex="0" role="group" aria-label="{label}">'
    return f"{frame}<table>{caption}{_head(table)}<tbody>{body}</tbody></table></div>"


def facts(pairs: tuple[tuple[str, str], ...]) -> str:
    """Labels with their values, side by side."""
    items = "".join(f"<div><dt>{safe(a)}</dt><dd>{safe(b)}</dd></div>" for a, b in pairs)
    return f'<div class="ca"><dl class="facts">{items}</dl></div>'


def sentence(text: str) -> str:
    """A note in small type, with its commands as code."""
    return f'<div class="ca-note">{_words(text)}</div>'


def _words(text: str) -> str:
    """Words of ours, with their commands as code."""
    pieces = split_commands(text)
    return "".join(f"<code>{safe(p)}</code>" if command else isolated(safe(p)) for command, p in pieces)


def safe(text: str) -> str:
    """Words of a log as HTML: no tags, and nothing that turns around or hides what stands behind them."""
    return escape(visible(text.replace("\r\n", "\n")))


def name(text: str) -> str:
    """A name before other words: written from right to left, it takes none of them to its other side."""
    return f"<bdi>{safe(text)}</bdi>"


def code(text: str) -> str:
    """A command as Markdown in one line, whatever the names in it hold."""
    line = visible(" ".join(filter(None, text.splitlines())))
    ticks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{ticks} {line} {ticks}" if "`" in line else f"`{line}`"


def link(address: str, name: str) -> str:
    """A link within the app, in the same tab."""
    return f'<a href="{escape(address)}" target="_self">{safe(name)}</a>'


def _head(table: Table) -> str:
    groups = ""
    if table.groups:
        cells = "".join(f'<th class="group" colspan="{n}">{safe(name)}</th>' for name, n in table.groups)
        groups = f'<tr><td colspan="{table.heads}"></td>{cells}</tr>'
    names = "".join(
        f'<th scope="col"{_head_class(i, table)}{_title(name)}>{safe(shortened(name, HEAD))}</th>'
        for i, name in enumerate(table.columns)
    )
    return f"<thead>{groups}<tr>{names}</tr></thead>"


def _title(name: str) -> str:
    return f' title="{safe(name)}"' if len(name) > HEAD else ""


def _head_class(column: int, table: Table) -> str:
    return ' class="head"' if column in table.left_aligned else ""


def _row(table: Table, row: tuple[Cell, ...], target: Callable[[Number], str | None], pictures: bool) -> str:
    total = ' class="total"' if table.shaded and table.heads > 1 and "." not in str(row[0]) else ""
    cells = "".join(_cell(table, i, cell, target, pictures) for i, cell in enumerate(row))
    return f"<tr{total}>{cells}</tr>"


def _cell(
    table: Table, column: int, cell: Cell, target: Callable[[Number], str | None], pictures: bool
) -> str:
    if isinstance(cell, str):
        return f"<td{_head_class(column, table)}>{safe(cell)}</td>"
    place = target(cell)
    words = link(place, cell.text) if place and cell.value is not None else safe(cell.text)
    note = _note(cell)
    tint = ""
    if table.shaded and cell.value is not None:
        tint = f' class="tint" style="--tint: {min(1.0, max(0.0, cell.value)):.2f}"'
    shape = interval(cell) if pictures else ""
    picture = (
        f'<span class="interval" style="{shape}" aria-hidden="true"><i></i><b></b></span>' if shape else ""
    )
    return f"<td{tint}>{words}{picture}{note}</td>"


def _note(cell: Number) -> str:
    """What stands below a number: a line, or where a table has no room for one, a line a part."""
    if cell.value is None:
        return f'<small class="why">{_words(cell.note)}</small>' if cell.note else ""
    parts = ", ".join(f"<span>{safe(part)}</span>" for part in cell.note.split(", "))
    return f"<small>{parts}</small>" if cell.note else ""
