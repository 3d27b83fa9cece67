"""The report as one HTML page that opens offline: style and charts are inside, and there is no script."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

from ...schemas.text import visible
from .figures import svg
from .tables import Cell, Table, split_commands
from .transcript import excerpts
from .transcript.draw import style

if TYPE_CHECKING:
    from .document import Report

WIDE = 5
"""A table with more columns beside the heads is printed in landscape, whatever its words."""
LINE = {False: 97.0, True: 146.0}
"""Whether in landscape -> width of a printed line, in bold digits."""
PADDING = 1.6
"""Width of the space beside a column, in digits."""
LONGEST = 20
"""Letters of a word beyond which it may be broken."""
_LEFTWARD = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_NAME = re.compile(f"[{_LEFTWARD}](?:[^A-Za-z\u00c0-\u024f&<>:;,·()]*[{_LEFTWARD}])?")
"""What is written from right to left, to where other words or the marks of a list follow."""


def html(report: Report) -> str:
    """One self-contained page without scripts; the template engine escapes every word of a log.

    Characters that a browser would obey, such as those that turn the direction of writing, are made visible.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    engine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    engine.filters["shade"] = shade
    engine.filters["marked"] = split_commands
    engine.filters["interval"] = interval
    engine.filters["widths"] = widths
    engine.filters["isolated"] = lambda text: Markup(isolated(str(escape(text))))
    engine.filters["svg"] = lambda figure: Markup(svg(figure))
    engine.filters["drawn"] = lambda excerpt: Markup(excerpts.timeline(excerpt))
    engine.filters["caption"] = excerpts.caption
    engine.tests["wide"] = is_wide
    source = (resources.files("coaudit.pipeline.report") / "report.html.jinja").read_text(encoding="utf-8")
    page = engine.from_string(source).render(report=report, style=Markup(style()))
    return visible(page.replace("\r\n", "\n"))


def isolated(html: str) -> str:
    """Escaped words in which names that are written from right to left take no number that follows to their
    other side."""
    return _NAME.sub(r"<bdi>\g<0></bdi>", html)


def shade(cell: Cell, table: Table) -> str:
    """The strength of a heatmap cell's tint, from 0 to 1, as a CSS value; nothing elsewhere."""
    if not table.shaded or isinstance(cell, str) or cell.value is None:
        return ""
    return f"--tint: {min(1.0, max(0.0, cell.value)):.2f}"


def is_wide(part: Table) -> bool:
    """Whether a table is printed in landscape: it has many columns, or portrait would break its words."""
    return len(part.columns) - part.heads > WIDE or _scale(_least_widths(part), wide=False) < 1


def widths(part: Table, wide: bool) -> list[float]:
    """The least width of each column on paper, in digits: no word is broken where all of them have room."""
    least = _least_widths(part)
    scale = _scale(least, wide=wide)
    return [round(scale * width, 1) for width in least]


def _least_widths(part: Table) -> list[int]:
    return [max(map(_longest_word, column)) for column in zip(part.columns, *part.rows, strict=True)]


def _scale(least: list[int], *, wide: bool) -> float:
    """What part of their least widths columns have on a printed line."""
    return min(1.0, (LINE[wide] - PADDING * len(least)) / sum(least))


def _longest_word(cell: Cell) -> int:
    text = cell if isinstance(cell, str) else cell.text.replace(" ", "_")
    return 1 + min(LONGEST, max(map(len, text.split()), default=0))  # most letters are narrower than digits


def interval(cell: Cell) -> str:
    """Where value and ends of an interval lie on its scale, as CSS values; nothing without an interval.

    The scale is 0 to 1 for shares, −1 to 1 for coefficients and differences; what goes beyond, and the mean
    of labels, is not drawn.
    """
    if isinstance(cell, str) or cell.mean or cell.value is None or cell.low is None or cell.high is None:
        return ""
    least = 0.0 if cell.percent and not cell.signed else -1.0
    if not cell.percent and max(abs(cell.low), abs(cell.high)) > 1:
        return ""
    low, at, high = (
        min(1.0, max(0.0, (place - least) / (1.0 - least))) for place in (cell.low, cell.value, cell.high)
    )
    return f"--low: {low:.4f}; --at: {at:.4f}; --high: {high:.4f}"
