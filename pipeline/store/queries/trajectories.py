"""Trajectories out of the store: the list, one whole, and as text."""

from __future__ import annotations

import json
from typing import Any

import duckdb

from ....schemas import Event, Trajectory, canonical_json
from ....schemas.text import shortened
from ...errors import UsageError
from ..connection import dictionaries, execute
from ..database import Store
from .selection import Selection

LINE = 160
"""Characters of an event's text that are shown on its line."""
RESULT = 300
"""Characters of a result that are shown."""
HEAD = (
    "id, native_id, source, system, setting, condition, task, instance, agent, agent_model, tags, "
    "started, ended, n_events AS events"
)


def heads(store: Store, only: Selection | None = None) -> list[dict[str, Any]]:
    """Every trajectory of a selection without its events, in the order they began."""
    where, values = (only or Selection()).where()
    query = f"SELECT {HEAD} FROM trajectories t WHERE {where} ORDER BY started, native_id, id"
    with store.reading() as connection:
        rows = dictionaries(connection, query, values)
    return [{**row, "tags": json.loads(row["tags"] or "{}")} for row in rows]


def one(store: Store, name: str, *, states: bool = False) -> Trajectory:
    """The trajectory of that id, beginning of an id, or unique native_id; UsageError names what is near."""
    with store.reading() as connection:
        trajectories = store.load(connection, [resolve(connection, name)], states=states)
    return trajectories[0]


def matches(connection: Any, name: str) -> list[tuple[str, str | None]]:
    """(Id, condition) of the trajectories that a name can mean: the one of that id, else those of that native
    id and those whose id begins with it. An empty one means none: every id begins with it.
    """
    exact = execute(connection, "SELECT id, condition FROM trajectories WHERE id = ?", [name]).fetchall()
    query = """
        SELECT id, condition FROM trajectories
        WHERE ? <> '' AND (native_id = ? OR starts_with(id, ?)) ORDER BY id
    """
    rows: list[tuple[str, str | None]] = exact or execute(connection, query, [name, name, name]).fetchall()
    return rows


def resolve(connection: Any, name: str) -> str:
    """The id that a name means; UsageError where it means none, or several."""
    rows = matches(connection, name)
    if not rows:
        raise UsageError(f"no trajectory {name!r}; `coaudit trajectory list` shows the ones there are")
    if len(rows) > 1:
        ids = ", ".join(f"{trajectory} ({condition})" for trajectory, condition in rows[:8])
        raise UsageError(f"{name!r} means {len(rows)} trajectories, give an id: {ids}")
    return rows[0][0]


def document(trajectory: Trajectory, *, hidden: bool = False, states: bool = False) -> dict[str, Any]:
    """The trajectory as `trajectory show --json` prints it; what only the human knew only where asked for."""
    fields = trajectory.model_dump(mode="json", exclude={"outcomes", "hidden", "states"})
    fields["outcome"] = {o.name: o.text if o.value is None else o.value for o in trajectory.outcomes}
    fields["inferred"] = {o.name: o.inferred for o in trajectory.outcomes if o.inferred}
    if hidden:
        fields["hidden"] = trajectory.hidden
    if states:
        fields["states"] = trajectory.states
    return fields


def line(event: Event) -> str:
    """An event on one line, for reading."""
    parts: list[str] = [] if event.kind == "message" and event.text else [event.kind]
    if event.action:
        arguments = ", ".join(
            f"{key}={value if isinstance(value, str) else canonical_json(value)}"
            for key, value in event.action.arguments.items()
        )
        parts = [f"{event.action.name}({arguments})"]
    text = ": ".join([*parts, *([event.text] if event.text else [])]).replace("\n", " ")
    failure = f"  [failed: {event.error}]" if event.status == "failed" else ""
    return f"{event.seq:>4}  {event.time or '':19}  {event.actor[:26]:26}  {shortened(text, LINE)}{failure}"


def result(trajectory: Trajectory, event: Event) -> str | None:
    """What an action gave back, on one line; None where it gave nothing, or a whole state."""
    state = trajectory.states.get(event.states.get("public", "")) if event.action else None
    observation = state.get("observation") if isinstance(state, dict) else None
    if observation is None:
        return None
    text = observation if isinstance(observation, str) else canonical_json(observation)
    flat = " ".join(text.split())
    return (
        flat if len(flat) <= RESULT else f"{flat[:RESULT]} … ({len(text):,} characters; --states shows all)"
    )


def reference_rows(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str]]:
    """(system, task, content) of the references that runs are measured against, as their system has them; of
    a task there is one from each folder, the one read last at the end."""
    query = "SELECT system, name, content FROM refs ORDER BY rowid"
    rows: list[tuple[str, str, str]] = connection.execute(query).fetchall()
    return rows
