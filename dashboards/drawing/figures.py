"""The frame of every figure: title, chart or table, its data as a download, its definition a click away."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import streamlit as st

from ...pipeline.report import Number, Table
from ...pipeline.report.names import metric_name
from ...pipeline.report.tables import column_names
from ...schemas.text import chartable, inert_cell, visible
from ..sidebar import address
from .definitions import DEFINITIONS
from .markup import drawn, grid, sentence

STACKED = alt.ExprRef("{top: {direction: 'vertical'}}")
"""Two legends stand one below the other: beside each other a telephone has no room for them."""
FIT = alt.AutoSizeParams(type="fit", contains="padding", resize=True)
"""A legend whose lines depend on the width is given its room once that is known; else its first entries are
cut off."""
FEW, MANY, LINE = 3, 8, 20
"""Entries of a legend for which a chart has room, the most it has, and the pixels of a line of it."""
SOMETIMES = (" missing", " reason", " mark")
"""Endings of columns that hold something for few numbers only."""
OFTEN = (" low", " high", " n", *SOMETIMES)
ENDS = (*OFTEN, *(f" corrected{end}" for end in ("", *OFTEN)))
"""Endings, behind a number's name, of the columns that may stand beside it."""
_MARKDOWN = re.compile(r"([\\`*_\[\]<>$:~#!&])")
"""What Streamlit would take for markup in a title, such as a codebook's."""
WIDE = 8
"""From so many columns on, the groups of a table stand below each other."""


def chart(
    title: str,
    rows: Sequence[dict[str, Any]],
    draw: Callable[[alt.Data], alt.Chart],
    *,
    key: str,
    alternative: str,
    note: str = "",
    metrics: Sequence[str] = (),
    empty: str,
    height: int = 280,
    legend: str | None = None,
) -> None:
    """A chart of rows. `alternative` says in words what it shows; `empty` says what to run without rows.

    `legend`: the column of whose values it has an entry each. On a telephone an entry takes a line.
    """
    st.header(title)
    if not rows:
        st.info(empty)
        return
    data = alt.Data(values=[{name: _chartable(value) for name, value in row.items()} for row in rows])
    entries = min(MANY, len({row[legend] for row in rows})) if legend else 0
    height += LINE * max(0, entries - FEW)
    drawing = draw(data).properties(height=height, autosize=FIT).configure_legend(layout=STACKED)
    st.altair_chart(drawing, key=f"chart-{key}", alt=alternative)
    below(note, key, lambda: to_csv(rows), metrics)


def _chartable(value: Any) -> Any:
    """A value of a row, such as a group's name."""
    return chartable(value) if isinstance(value, str) else value


def table(
    content: Table,
    *,
    metrics: Sequence[str] = (),
    links: bool = True,
    pictures: bool = False,
    target: Callable[[Number], str | None] | None = None,
    titles: Mapping[str, str] | None = None,
) -> None:
    """A table; a number leads to the trajectories that it came from, or to its `target`.

    `pictures`: intervals are drawn. `titles` make it a heatmap of one number a cell, and say what codes are.
    """
    st.header(visible(_MARKDOWN.sub(r"\\\1", content.title)))
    if not content.rows:
        st.info(content.empty)
        return

    place = target or (sessions if links else lambda cell: None)
    if titles is not None:
        st.html(grid(content, place, titles))
        below(content.caption, content.name, lambda: to_csv(records(content)), metrics)
        return
    parts = content.parts(WIDE) if content.groups else [("", content)]
    st.html("".join(drawn(part, place, name, pictures=pictures) for name, part in parts))
    below(content.caption, content.name, lambda: to_csv(records(content)), metrics)


def sessions(cell: Number) -> str | None:
    """The address of the trajectories behind a number; none of a code that is in none of them."""
    of = dict(cell.of)
    is_in_none = "code" in of and not cell.value
    return address("trajectory", **of) if of and not is_in_none else None


def below(note: str, key: str, data: Callable[[], str], metrics: Sequence[str] = ()) -> None:
    """What stands below a figure: a note, definitions, and its data as a file."""
    if note:
        st.html(sentence(note))
    with st.container(horizontal=True):
        if metrics:
            with st.popover("Definition", type="tertiary"):
                for name in metrics:
                    st.markdown(f"**{metric_name(name)}**  \n{DEFINITIONS[name]}")
        st.download_button(
            "Data as CSV",
            data,
            f"{key}.csv",
            "text/csv",
            key=f"csv-{key}",
            on_click="ignore",
            type="tertiary",
        )


def records(content: Table) -> list[dict[str, Any]]:
    """A table's rows as flat records: a number gives its value, low, high and n; and, where any number of its
    column has them, how many are missing, the reason and the mark.
    """
    names = column_names(content, ENDS)
    rows = [
        {
            key: value
            for name, cell in zip(names, row, strict=True)
            for key, value in _flat(name, cell).items()
        }
        for row in content.rows
    ]
    empty = {key for row in rows for key in row if key.endswith(SOMETIMES) and key not in names}
    empty -= {key for row in rows for key, value in row.items() if value}
    return [{key: value for key, value in row.items() if key not in empty} for row in rows]


def _flat(name: str, cell: str | Number) -> dict[str, Any]:
    if isinstance(cell, str):
        return {name: cell}
    if cell.plain:
        return {name: cell.value}
    fields: dict[str, Any] = {name: cell.value}
    fields |= {f"{name} low": cell.low, f"{name} high": cell.high, f"{name} n": cell.n}
    sometimes = (cell.missing, cell.reason, cell.mark.removeprefix(" → "))
    fields |= {f"{name}{end}": value for end, value in zip(SOMETIMES, sometimes, strict=True)}
    return fields | (_flat(f"{name} corrected", cell.corrected) if cell.corrected else {})


def span(sizes: Iterable[int]) -> str:
    """The least and the most of some sizes, as `40 to 1,200`; 0 of none."""
    ends = sorted({min(own), max(own)} if (own := list(sizes)) else {0})
    return " to ".join(f"{size:,}" for size in ends)


def to_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as CSV in which no cell is taken for a formula by a spreadsheet."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([_harmless(name) for name in names])
    writer.writerows([_harmless(row.get(name)) for name in names] for row in rows)
    return out.getvalue()


def _harmless(value: Any) -> Any:
    """A text that a spreadsheet would compute gets an apostrophe in front (OWASP, CSV injection)."""
    if isinstance(value, (list, dict)):
        value = str(value)
    return inert_cell(value) if isinstance(value, str) else value
