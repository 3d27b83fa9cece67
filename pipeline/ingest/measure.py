"""Where systems and store meet: trajectories stored together with what their own systems measure of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import duckdb

from ...schemas import Measure, Quarantined, Trajectory
from ...schemas.trajectory import COPY
from ..store import AMONG, Store, constants, delete, execute, insert, texts
from ..store.connection import Batches, append, register_table
from ..store.memory import release_memory
from ..store.queries.trajectories import reference_rows
from ..store.tables import derived
from ..store.tables.columns import Columns, Tables, schema
from ..store.tables.parcel import Parcel
from ..store.tables.removal import clear
from ..systems import References
from ..systems.registry import SYSTEMS, measures, parsed_references

TEAMWORK = (resources.files("coaudit.pipeline.store.sql") / "teamwork.sql").read_text()
"""SQL of the measures of any team, with the columns of `computed`."""
MEASURED = {
    "trajectories": ("id", "tags"),
    "events": (
        *("trajectory_id", "seq", "time", "actor", "kind", "status", "action", "arguments", "states"),
        "live_only",
    ),
    "participants": ("trajectory_id", "name", "kind"),
    "units": ("trajectory_id", "event", "kind", "opening"),
    "computed": ("metric", "trajectory_id", "scoring"),
}
"""Table -> the columns that TEAMWORK reads."""
TOGETHER = 100_000
"""Events from which on no more parcels are measured by one query."""
SHARED = ("human_intervention_rate", "workload_balance")
"""Measured for any team, unless its own system says it better."""


def columns(trajectories: Iterable[Trajectory], references: Mapping[str, References]) -> Tables:
    """Trajectories with what their own systems measure of them, as tables."""
    making = Columns()
    for trajectory in trajectories:
        making.add(trajectory, own_measures(trajectory, references))
    return making.tables()


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
    if trajectories:
        ids = [t.id for t in trajectories]
        clear(connection, ids)
        parcel = Parcel.of(columns(trajectories, references(connection)))
        save_parcels(store, connection, [parcel])
        if refresh:
            derived.refresh(connection, ids)


def save_parcels(store: Store, connection: duckdb.DuckDBPyConnection, parcels: Sequence[Parcel]) -> None:
    """Store tables of trajectories of which nothing is stored, and measure them.

    The parcels are used up: of thousands of texts there is one copy at a time.
    """
    for some in _groups(parcels):
        _measure(connection, some)
        release_memory(connection)
    store.save(connection, parcels)


def _groups(parcels: Iterable[Parcel]) -> Iterator[list[Parcel]]:
    """Parcels that are measured by one query, which holds their columns in memory."""
    some: list[Parcel] = []
    for parcel in parcels:
        some.append(parcel)
        if sum(one.rows["events"] for one in some) >= TOGETHER:
            yield some
            some = []
    if some:
        yield some


def references(connection: duckdb.DuckDBPyConnection) -> Mapping[str, References]:
    """System -> what its runs are measured against."""
    return parsed_references(reference_rows(connection))


def own_measures(trajectory: Trajectory, references: Mapping[str, References]) -> list[Measure]:
    """What a trajectory's system measures; where that fails, a null measure with the reason."""
    try:
        return list(measures(trajectory, references))
    except Exception as error:  # one log that nobody thought of must not stop the other thousand
        reason = f"its measures failed: {type(error).__name__}: {str(error)[:200]}"
        return [Measure(f"{trajectory.system}_measures", trajectory.id, None, reason=reason)]


@dataclass(frozen=True)
class ReferenceImport:
    """The result of reading a folder of references."""

    tasks: int
    """Number of tasks that have one."""
    measured: int
    """Number of stored trajectories that were measured anew."""
    unread: list[Quarantined]
    """What was not understood."""


def read_references(store: Store, folder: Path) -> ReferenceImport:
    """Keep the references of a folder and measure anew what they concern."""
    unread: list[Quarantined] = []
    tasks = count = 0
    for system in SYSTEMS.values():
        references, quarantined = system.read_references(folder)
        unread += quarantined
        if references:
            with store.writing() as connection:
                concerned = _save_references(connection, system.name, references, str(folder))
                count += _measure_anew(store, connection, system.name, concerned)
            tasks += len(references)
    return ReferenceImport(tasks, count, unread)


def _save_references(
    connection: duckdb.DuckDBPyConnection, system: str, references: References, source: str
) -> set[str]:
    """Keep what a folder says in place of what it said before; returns the tasks that this concerns."""
    own = [system, source]
    before = execute(connection, "SELECT name FROM refs WHERE system = ? AND source = ?", own).fetchall()
    execute(connection, "DELETE FROM refs WHERE system = ? AND source = ?", own)
    rows = [
        {"system": system, "name": name, "content": one.model_dump_json(), "source": source}
        for name, one in references.items()
    ]
    insert(connection, "refs", rows)
    return {*references, *(name for (name,) in before)}


def _measure_anew(
    store: Store, connection: duckdb.DuckDBPyConnection, system: str, tasks: Collection[str]
) -> int:
    """Compute the measures of a system's stored trajectories on these tasks anew; returns how many those
    are."""
    query = f"SELECT id FROM trajectories WHERE system = ? AND task {AMONG}"
    ids = [row[0] for row in execute(connection, query, [system, texts(tasks)]).fetchall()]
    delete(connection, "computed", "trajectory_id", ids)
    parcel = Parcel.of(columns(store.load(connection, ids, states=True), references(connection)))
    append(connection, "computed", schema("computed"), parcel.batches("computed"))
    _measure(connection, [parcel])
    derived.refresh(connection, set(ids))
    return len(ids)


def _measure(connection: duckdb.DuckDBPyConnection, parcels: Sequence[Parcel]) -> None:
    """Add the measures of any team to `computed`, unless its own system measures them better; those of a
    shorter copy of another record are null for that reason."""
    with ExitStack() as stack:
        for name, columns in MEASURED.items():
            stack.enter_context(
                register_table(connection, f"incoming_{name}", _columns(parcels, name, columns))
            )
        own = f"SELECT metric, trajectory_id FROM incoming_computed WHERE metric IN ({constants(SHARED)})"
        copies = (
            f"SELECT id AS trajectory_id, json_extract_string(tags, '$.{COPY}') AS original "
            "FROM incoming_trajectories"
        )
        connection.execute(
            "INSERT INTO computed BY NAME SELECT shared.* REPLACE ("
            "CASE WHEN original IS NULL THEN value END AS value, "
            "coalesce('a shorter copy of record ' || original, reason) AS reason) "
            f"FROM ({TEAMWORK}) AS shared LEFT JOIN ({copies}) USING (trajectory_id) "
            f"WHERE scoring IS NOT NULL OR (metric, trajectory_id) NOT IN ({own} AND scoring IS NULL)"
        )


def _columns(parcels: Iterable[Parcel], name: str, columns: Sequence[str]) -> Batches:
    """Some columns of a table of the parcels."""
    import pyarrow as pa

    fields = pa.schema([schema(name).field(column) for column in columns])
    batches = (batch.select(columns) for parcel in parcels for batch in parcel.batches(name, columns))
    return Batches(fields, batches)
