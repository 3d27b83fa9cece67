"""Days along an axis: the same days wherever the page is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

FEW = 7
"""So many days are ticks of their own; of more, the axis chooses some."""


def axis(name: str, title: str, rows: Sequence[dict[str, Any]]) -> alt.X:
    """An axis of the days (ISO 8601) that rows have under a name."""
    few = len({row[name] for row in rows}) <= FEW
    return alt.X(_whole(name), title=title, axis=alt.Axis(tickCount="day") if few else alt.Axis())


def tooltip(name: str, title: str) -> alt.Tooltip:
    """The day of a row."""
    return alt.Tooltip(_whole(name), title=title)


def _whole(name: str) -> str:
    """A day as a browser reads it begins at midnight UTC: west of there, that is still the day before."""
    return f"utcyearmonthdate({name}):T"
