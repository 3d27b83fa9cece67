"""Trajectories as a list: a link each, and what there is to tell of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from ...pipeline.report.names import metric_name
from .markup import link, safe

Row = dict[str, Any]
LONG = 48
WORDS = 200
"""Letters of a reason or a name that a list has room for."""
HEADS = {
    "native_id": "Trajectory",
    "said_by": "Said by",
    "found": "Found",
    "outcome": "Outcome",
    "differ": "Differ",
    "n_events": "Events",
    "tokens": "Tokens",
    "cost": "US$",
    "condition": "Condition",
    "task": "Task",
    "agent_model": "Agent model",
    "system": "System",
    "setting": "Setting",
    "started": "Began",
}
"""Column of a list of trajectories -> its head; those that no row has are left out."""


def listed(rows: list[Row], target: Callable[[Row], str]) -> str:
    """Trajectories as a table, each a link; with what was found in it, where that is asked."""
    names = [name for name in HEADS if any(row.get(name) is not None for row in rows)]
    heads = [HEADS[name] for name in names]
    if metric := rows[0].get("metric"):
        names, heads = ["native_id", "value", *names[1:]], [heads[0], metric_name(metric), *heads[1:]]
    if any(row.get("rationale") for row in rows):
        names, heads = ["native_id", "rationale", *names[1:]], [heads[0], "Why", *heads[1:]]
    models = _models({str(row["agent_model"]) for row in rows if row.get("agent_model")})
    rows = [{**row, "agent_model": models.get(str(row.get("agent_model")))} for row in rows]
    head = "".join(f'<th scope="col" class="head">{safe(name)}</th>' for name in heads)
    lines = "".join(
        f'<tr><td class="head">{link(target(row), short(row["native_id"] or row["id"]))}</td>'
        + "".join(
            f'<td class="head{" day" * (name == "started")}">{safe(_cell(name, row[name]))}</td>'
            for name in names[1:]
        )
        + "</tr>"
        for row in rows
    )
    frame = '<div class="ca list" tabindex="0" role="group" aria-label="Trajectories">'
    return f"{frame}<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"


def _models(names: set[str]) -> dict[str, str]:
    """Model -> its name without a provider, or as much more as no other model's in the list is like."""
    labels: dict[str, str] = {}
    for way in (lambda name: short(_without_provider(name)), short, str):
        counts = Counter(map(way, names))
        labels |= {name: way(name) for name in names - labels.keys() if counts[way(name)] == 1}
    return labels


def _without_provider(name: str) -> str:
    """A model's own name; a path's last folder alone, such as `final`, would be none."""
    is_path = name.startswith("/") or "//" in name
    return name if is_path else name.rpartition("/")[2] or name


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name == "started":
        return str(value)[:10]
    if isinstance(value, float):
        return f"{value:.2g}" if abs(value) < 1 else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else _shorten(str(value))


def _shorten(words: str) -> str:
    return words if len(words) <= WORDS else f"{words[:WORDS]} …"


def short(name: str) -> str:
    """A name of which beginning and end are kept."""
    return name if len(name) <= LONG else f"{name[: LONG // 2]} … {name[-LONG // 4 :]}"
