"""A report's figures: tables drawn as intervals or as a heatmap, as SVG and PDF that need no browser.

A figure is a Vega-Lite document over the numbers of a table; nothing is drawn before a format asks for it.
Lines and letters have the colour of the text around them, on light and on dark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, cos, radians
from typing import Any, TypeVar

from ...schemas.text import chartable
from .tables import Answer, Number, Table, free_name

INK = "currentColor"
BLUE = "#0072B2"
"""Okabe and Ito (2008)."""
LEGIBLE = 12
"""Columns up to which a heatmap has numbers in its cells; the table has all of them."""
PANEL = 210
"""Points in width of each panel of intervals."""
HEADS = 60
"""Degrees at which the heads of a heatmap's columns stand."""
WIDER = 0.2
"""Of their width letters of another font may be wider: DejaVu Sans than Liberation Sans by a sixth."""
_SIZE = re.compile(r'width="(\d+)" height="(\d+)" viewBox="0 0 \d+ \d+"')
_PLOT = re.compile(r"translate\(([\d.]+),([\d.]+)\)")
"""Where the plot begins, beside the names of its rows and below the heads of its columns."""
_NO_LETTER = re.compile("[\ud800-\udfff\ufffe\uffff]")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
T = TypeVar("T")
NOTHING: dict[str, Any] = {"grid": False, "ticks": False, "domain": False}


@dataclass(frozen=True)
class Figure:
    """A picture with its caption; `spec` is Vega-Lite."""

    name: str
    title: str
    caption: str
    spec: dict[str, Any]


def figures(answers: Sequence[Answer], failures: Table) -> tuple[Figure, ...]:
    """A figure for each answer that has intervals, and the failure modes as a heatmap."""
    charts = [intervals(answer.table) for answer in answers if answer.table]
    return tuple(figure for figure in (*charts, heatmap(failures)) if figure)


def intervals(table: Table) -> Figure | None:
    """Each number with its interval: a line for each row, a panel for each column; None without intervals."""
    names = _names(table)
    columns = {name: _numbers(table, names, at) for at, name in enumerate(table.columns)}
    with_intervals = {
        name: own for name, own in columns.items() if any(cell.interval for cell in own.values())
    }
    if not with_intervals:
        return None
    panels = [_panel(names, own, name, first=not i) for i, (name, own) in enumerate(with_intervals.items())]
    spec = {"hconcat": panels, "spacing": 24, "config": _look()}
    lines = "" if "interval" in table.caption else " Lines are 95 % intervals."
    return Figure(table.name, table.title, table.caption + lines, spec)


def heatmap(table: Table) -> Figure | None:
    """A shaded table as a heatmap of the same rows and columns; None where it is empty."""
    names = _names(table)
    cells = [
        {"row": names[i], "column": table.columns[at], "value": cell.value, "said": cell.text}
        for i, row in enumerate(table.rows)
        for at, cell in enumerate(row)
        if isinstance(cell, Number) and cell.value is not None
    ]
    if not cells:
        return None
    rows = _nominal("row", names, axis={**NOTHING, "labelLimit": 320, "title": None})
    axis = {**NOTHING, "labelAngle": -HEADS, "labelLimit": 220, "title": None, "orient": "top"}
    place = {"y": rows, "x": _nominal("column", list(table.columns[table.heads :]), axis=axis)}
    legible = len(table.columns) - table.heads <= LEGIBLE
    legend = {"title": None, "format": "%", "values": [0, 0.25, 0.5, 0.75, 1], "labelColor": INK}
    strength = {
        "field": "value", "type": "quantitative", "legend": None if legible else legend,
        "scale": {"domain": [0, 1], "range": [0.08, 0.8]},
    }  # fmt: skip
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rect", "color": BLUE}, "encoding": {**place, "opacity": strength}},
        {"mark": {"type": "text", "fontSize": 9, "color": INK}, "encoding": {**place, "text": _text("said")}},
    ]
    spec = {
        "data": {"values": cells},
        "width": {"step": 44 if legible else 18},
        "height": {"step": 17},
        "layer": layers if legible else layers[:1],
        "config": _look(),
    }
    rest = "Intervals are in the table; empty where nothing is known."
    return Figure(table.name, table.title, f"{table.caption} {rest}", spec)


def with_file_names(many: Sequence[Figure]) -> list[tuple[str, Figure]]:
    """(File name without suffix, figure), numbered from 1."""
    return [(f"figure-{number}-{figure.name}", figure) for number, figure in enumerate(many, 1)]


def svg(figure: Figure) -> str:
    """The figure as one `svg` element."""
    import vl_convert

    return _with_room(_converted(vl_convert.vegalite_to_svg, _document(figure)))


def _with_room(text: str) -> str:
    """An `svg` element with room beside its plot for letters that are WIDER than the converter's: it is shown
    in whatever font is there, and a name that begins beyond the edge is cut off."""
    size, plot = _SIZE.search(text), _PLOT.search(text)
    if size is None or plot is None:
        return text
    width, height = map(int, size.groups())
    left, top = (ceil(WIDER * float(offset)) for offset in plot.groups())
    right = ceil(top * cos(radians(HEADS)))
    wide, high = width + left + right, height + top
    box = f'width="{wide}" height="{high}" viewBox="{-left} {-top} {wide} {high}"'
    return _SIZE.sub(box, text, count=1)


def pdf(figure: Figure) -> bytes:
    """The figure as a PDF of its own size, for LaTeX."""
    import vl_convert

    return _converted(vl_convert.vegalite_to_pdf, _document(figure).replace(INK, "#000000"))


def _document(figure: Figure) -> str:
    return json.dumps(_drawable(figure.spec), ensure_ascii=False)


def _converted(convert: Callable[..., T], document: str) -> T:
    """What the converter makes of a document. It shortens long names by units of UTF-16, and fails where that
    cuts a character beyond U+FFFF, such as an emoji, in two: then these are replaced."""
    try:
        return convert(document, vl_version=_version())
    except ValueError:
        if not _BEYOND.search(document):
            raise
        return convert(_without_halves(document), vl_version=_version())


def _without_halves(document: str) -> str:
    """The document with U+FFFD for each character beyond U+FFFF, and as many zero-width spaces as make it
    another one than the others: rows that are told apart by an emoji alone stay rows of their own."""
    order = {sign: place for place, sign in enumerate(sorted(set(_BEYOND.findall(document))), 1)}
    return _BEYOND.sub(lambda match: "\ufffd" + "\u200b" * order[match[0]], document)


def _drawable(value: Any) -> Any:
    """A part of a document without characters that XML lacks, on which the converter ends the process, and
    with names that charts can draw."""
    if isinstance(value, dict):
        return {_drawable(key): _drawable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_drawable(one) for one in value]
    return chartable(_NO_LETTER.sub("\ufffd", value)) if isinstance(value, str) else value


@cache
def _version() -> str:
    """The newest Vega-Lite that the converter has."""
    import vl_convert

    return max(
        vl_convert.get_vegalite_versions(), key=lambda name: [int(n) for n in name.strip("v").split(".")]
    )


def _numbers(table: Table, names: list[str], at: int) -> dict[str, Number]:
    """Row -> its number in a column, where it has a value. Beside shares other numbers are left out: they
    have no place on an axis from 0 to 1."""
    cells = ((name, row[at]) for name, row in zip(names, table.rows, strict=True))
    numbers = {name: cell for name, cell in cells if isinstance(cell, Number) and cell.value is not None}
    has_shares = any(cell.percent for cell in numbers.values())
    return {name: cell for name, cell in numbers.items() if cell.percent or not has_shares}


def _panel(names: list[str], own: dict[str, Number], name: str, *, first: bool) -> dict[str, Any]:
    rows = [
        {"row": label, "value": cell.value, "low": cell.low, "high": cell.high} for label, cell in own.items()
    ]
    percent = any(cell.percent for cell in own.values())
    ticks = {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1]} if percent else {"tickCount": 5}
    axis = {"title": name, **ticks}
    domain = {"domain": [0, 1]} if percent else {"zero": False, "padding": 4}
    labels = {**NOTHING, "grid": True, "labels": first, "labelLimit": 340, "title": None}
    y = _nominal("row", names, axis=labels)

    def x(field: str) -> dict[str, Any]:
        return {"field": field, "type": "quantitative", "axis": {**axis, "grid": False}, "scale": domain}

    line = {"y": y, "x": x("low"), "x2": {"field": "high"}}
    return {
        "data": {"values": rows},
        "width": PANEL,
        "height": {"step": 20},
        "layer": [
            {"mark": {"type": "rule", "color": BLUE, "strokeWidth": 2}, "encoding": line},
            {
                "mark": {"type": "point", "filled": True, "color": BLUE, "size": 45, "opacity": 1},
                "encoding": {"y": y, "x": x("value")},
            },
        ],
    }


def _nominal(field: str, order: list[str], *, axis: dict[str, Any]) -> dict[str, Any]:
    return {"field": field, "type": "nominal", "sort": order, "scale": {"domain": order}, "axis": axis}


def _text(field: str) -> dict[str, Any]:
    return {"field": field, "type": "nominal"}


def _names(table: Table) -> list[str]:
    """A name a row, of its first heads; no two are alike."""
    heads = [row[: min(2, table.heads)] for row in table.rows]
    names: set[str] = set()
    return [free_name(" ".join(cell for cell in row if isinstance(cell, str)), names) for row in heads]


def _look() -> dict[str, Any]:
    """Letters and lines in the colour of the text around, nothing behind them."""
    inks = {name: INK for name in ("labelColor", "titleColor", "tickColor", "domainColor")}
    grid = {"gridColor": INK, "gridOpacity": 0.12}
    return {
        "background": None,
        "aria": False,
        "font": "Liberation Sans, Arial, sans-serif",
        "view": {"stroke": None},
        "axis": {**inks, **grid, "labelFontSize": 10, "titleFontSize": 11, "titleFontWeight": "normal"},
    }
