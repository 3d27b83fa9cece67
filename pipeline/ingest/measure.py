"""Where systems and store meet: trajectories stored together with what their own systems measure of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import duckdb

from ...schemas import Measure, Quarantined, Trajectory
from ..store import Store, delete, derived, execute, insert, listed, rows
from ..store.trajectories import reference_rows
from ..systems import SYSTEMS, References
from ..systems.registry import measures, parsed_references

TEAMWORK = (
    "metric, trajectory_id, value, 1, NULL, participant, NULL, NULL, NULL FROM count_measures",
    "metric, trajectory_id, value, weight, reason, participant, NULL, scoring, NULL FROM teamwork_measures",
)
"""What SQL says of any team, as the columns of `computed`."""
SHARED = ("human_intervention_rate", "workload_balance")
"""Measured for any team, unless its own system says it better."""
_REPLACED = "DELETE FROM computed WHERE metric = ? AND trajectory_id = ? AND scoring IS NULL"


def save(
    store: Store,
    trajectories: Sequence[Trajectory],
    connection: duckdb.DuckDBPyConnection,
    *,
    refresh: bool = True,
) -> None:
    """Store trajectories whole, with their measures, in place of what was stored under their ids.

    Without `refresh`, the caller sees to what is derived from them (`catch_up`, `postpone`).
    """
    store.save(trajectories, connection)
    _measure(connection, trajectories)
    if refresh:
        derived.refresh(connection, {t.id for t in trajectories})


def read_references(store: Store, folder: Path) -> list[Quarantined]:
    """Keep the references of a folder and measure anew what they concern; what was not understood of them."""
    unread: list[Quarantined] = []
    for system in SYSTEMS.values():
        references, quarantined = system.read_references(folder)
        unread += quarantined
        if references:
            with store.writing() as connection:
                _save_references(connection, system.name, references, str(folder))
                _measure_anew(store, connection, system.name, references)
    return unread


def _save_references(
    connection: duckdb.DuckDBPyConnection, system: str, references: References, source: str
) -> None:
    query = "DELETE FROM refs WHERE system = ? AND name IN (SELECT unnest(?))"
    execute(connection, query, [system, list(references)])
    kept = [
        {"system": system, "name": name, "content": one.model_dump_json(), "source": source}
        for name, one in references.items()
    ]
    insert(connection, "refs", kept)


def _measure_anew(
    store: Store, connection: duckdb.DuckDBPyConnection, system: str, tasks: Collection[str]
) -> None:
    """Compute the measures of a system's stored trajectories on these tasks anew."""
    query = "SELECT id FROM trajectories WHERE system = ? AND task IN (SELECT unnest(?))"
    ids = [row[0] for row in execute(connection, query, [system, list(tasks)]).fetchall()]
    delete(connection, "computed", "trajectory_id", ids)
    _measure(connection, store.load(connection, ids, states=True))
    derived.refresh(connection, set(ids))


def _measure(connection: duckdb.DuckDBPyConnection, trajectories: Sequence[Trajectory]) -> None:
    """Fill `computed`: what SQL says of any team, then what each system measures itself."""
    ids = listed(t.id for t in trajectories)
    for query in TEAMWORK:
        connection.execute(f"INSERT INTO computed SELECT {query} WHERE trajectory_id IN ({ids})")
    references = parsed_references(reference_rows(connection))
    own = [measure for t in trajectories for measure in _measures(t, references)]
    for metric, trajectory in sorted({(m.metric, m.trajectory) for m in own if m.scoring is None}):
        if metric in SHARED:
            execute(connection, _REPLACED, [metric, trajectory])
    insert(connection, "computed", [rows.measure(measure) for measure in own])


def _measures(trajectory: Trajectory, references: Mapping[str, References]) -> list[Measure]:
    """What a trajectory's system measures; where that fails, a null measure with the reason."""
    try:
        return list(measures(trajectory, references))
    except Exception as error:  # one log that nobody thought of must not stop the other thousand
        reason = f"its measures failed: {type(error).__name__}: {str(error)[:200]}"
        return [Measure(f"{trajectory.system}_measures", trajectory.id, None, reason=reason)]
