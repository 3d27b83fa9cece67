"""Colours that people with any colour vision can tell apart, on light and dark alike (Okabe & Ito 2008).

Their yellow, which vanishes on white, is a brown here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from ...schemas.text import chartable

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D31")
REST = "#999999"
"""The colour of what has none of its own."""
GREY = {"symbolFillColor": REST, "symbolStrokeColor": REST}
"""Symbols in a legend of shapes, dashes or strengths: they must be visible on light and on dark."""
PARTIES = {"human": "#E69F00", "agent": "#0072B2"}
SOURCES = {"model": "#0072B2", "scaffolding": "#E69F00", "both": "#009E73", "not said": "#7A7A7A"}
SETTINGS = {"real": "#D55E00", "simulated": "#0072B2"}
LETTER = 7
"""Pixels of a letter of a legend, about."""
SYMBOL = 5
"""Letters that the symbol of an entry takes."""
HEAT = "#0072B2"
"""The colour of heatmaps; strength is opacity, so that little is faint on light and on dark."""


def colour(
    field: str, title: str, fixed: dict[str, str] | None = None, rows: Sequence[Mapping[str, Any]] = ()
) -> alt.Color:
    """A nominal colour in Okabe–Ito; `fixed` names the colour of each value.

    The legend has an entry for each value with a colour of its own (that occurs in `rows`, if given), and one
    for all others.
    """
    fixed = {chartable(name): hue for name, hue in (fixed or {}).items()}
    scale = alt.Scale(range=[*COLOURS, REST])
    look = {"orient": "top", "rowPadding": 2, "labelLimit": alt.ExprRef("min(320, width - 40)")}
    legend = alt.Legend(**look, columns=columns(row[field] for row in rows))
    if fixed:
        scale = alt.Scale(domain=list(fixed), range=list(fixed.values()))
        there = {chartable(row[field]) for row in rows}
        own = [name for name, hue in fixed.items() if hue != REST and (not rows or name in there)]
        rest = [name for name, hue in fixed.items() if hue == REST and name in there]
        expression = "datum.label"
        if len(rest) > 1:
            expression = f"datum.label == {json.dumps(rest[0])} ? 'others' : datum.label"
        names = [*own, *rest[:1]] or list(fixed)
        legend = alt.Legend(**look, columns=columns(names), values=names, labelExpr=expression)
    return alt.Color(f"{field}:N", title=title, scale=scale, legend=legend)


def room(pixels: int) -> alt.ExprRef:
    """Room for names beside a chart: at most 35 % of its width, so that a telephone still shows the chart."""
    return alt.ExprRef(f"min({pixels}, 0.35 * (containerSize()[0] || 2000))")


def columns(names: Iterable[Any]) -> alt.ExprRef:
    """Columns of a legend: 0 (one line) where all entries fit, else as many as fit by the longest entry."""
    sizes = [LETTER * (len(str(name)) + SYMBOL) for name in set(names)]
    fit = f"max(1, floor(width / {max(sizes, default=LETTER)}))"
    return alt.ExprRef(f"{sum(sizes)} <= width ? 0 : {fit}")
