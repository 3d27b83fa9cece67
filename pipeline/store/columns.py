"""Trajectories as columns of the audit tables: the shape in which they travel from readers to the store.

A reader yields trajectories one by one; a `Columns` takes them in and gives Arrow tables, which pass from
process to process as bytes and into DuckDB by column name without a Python object for each row.
"""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...schemas import Action, Event, Measure, Outcome, Participant, Trajectory, canonical_json, text_hash
from ...schemas.no_pandas import without_pandas
from ...schemas.unit import said, said_hash
from ..units import all_spans, opening_query
from .rows import hashes_of, to_trajectories

if TYPE_CHECKING:
    import pyarrow as pa

Tables = dict[str, "pa.Table"]
"""Name of a table of the store -> its rows."""

_HEAD = ("native_id", "source", "system", "setting", "condition", "task", "instance", "agent", "agent_model")
_TOKENS = ("prompt_tokens", "completion_tokens")
_MEASURE = tuple(field.name for field in dataclasses.fields(Measure) if field.name != "trajectory")


def _texts(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "string")


SCHEMAS: Mapping[str, Mapping[str, str]] = {
    "trajectories": {
        **_texts("id", *_HEAD, "tags", "hidden", "started", "ended"),
        "n_events": "int32",
        "digest": "string",
    },
    "participants": {
        **_texts("trajectory_id", "name", "kind", "model"),
        "simulated": "bool",
        **dict.fromkeys(_TOKENS, "int64"),
    },
    "events": {
        "trajectory_id": "string",
        "seq": "int32",
        "sub": "int32",
        "live_only": "bool",
        **_texts("time", "actor", "kind", "text", "action", "arguments", "raw"),
        **_texts("status", "error", "states", "notices"),
    },
    "outcomes": {
        **_texts("trajectory_id", "name"),
        "value": "double",
        **_texts("text", "baseline", "reason", "data"),
        "imported": "bool",
    },
    "units": {
        **_texts("trajectory_id", "kind"),
        "event": "int32",
        **_texts("hash", "actor"),
        "opening": "bool",
    },
    "states": _texts("hash", "content"),
    "computed": {
        **_texts("metric", "trajectory_id"),
        "value": "double",
        "weight": "double",
        **_texts("reason", "participant", "rater", "scoring", "definition"),
    },
}
"""Every table that trajectories fill: column -> Arrow's name of its type."""


class Columns:
    """Trajectories in the making of tables; each comes in whole."""

    def __init__(self) -> None:
        self._columns: dict[str, list[list[Any]]] = {
            name: [[] for _ in schema] for name, schema in SCHEMAS.items()
        }
        self._hashes: set[str] = set()
        self.events = 0

    def add(self, trajectory: Trajectory, measures: Iterable[Measure] = ()) -> None:
        """Take a trajectory in, with what its own system measures of it; all of it or nothing.

        TypeError and ValueError for what has no JSON.
        """
        arguments = [_arguments(event.action) for event in trajectory.events]
        words = [said(event, done) for event, done in zip(trajectory.events, arguments, strict=True)]
        fresh = [key for key in trajectory.states if key not in self._hashes]
        parts: dict[str, Sequence[Sequence[Any]]] = {
            "trajectories": [[value] for value in _head(trajectory, words)],
            "participants": _participants(trajectory.id, trajectory.participants),
            "events": _events(trajectory.id, trajectory.events, arguments),
            "outcomes": _outcomes(trajectory.id, trajectory.outcomes),
            "units": _units(trajectory, words),
            "computed": _computed(measures),
            "states": [fresh, [_state(trajectory.states[key]) for key in fresh]],
        }
        for table, columns in parts.items():
            for column, values in zip(self._columns[table], columns, strict=True):
                column.extend(values)
        self._hashes.update(fresh)
        self.events += len(trajectory.events)

    @without_pandas()
    def tables(self) -> Tables:
        """What came in, as Arrow tables with the columns of `SCHEMAS`."""
        import pyarrow as pa

        tables = {}
        for name, columns in self._columns.items():
            types = {column: pa.type_for_alias(kind) for column, kind in SCHEMAS[name].items()}
            arrays = [pa.array(column, kind) for column, kind in zip(columns, types.values(), strict=True)]
            tables[name] = pa.Table.from_arrays(arrays, names=list(types))
        return tables


@without_pandas()
def without(tables: Tables, ids: Iterable[str]) -> Tables:
    """The tables less what they hold of some trajectories."""
    import pyarrow as pa
    import pyarrow.compute as pc

    left_out = pa.array(list(ids), "string")
    kept = {}
    for name, table in tables.items():
        key = "id" if name == "trajectories" else "trajectory_id"
        if len(left_out) and key in table.column_names:
            table = table.filter(pc.invert(pc.is_in(table[key], left_out)))
        kept[name] = table
    return kept


@without_pandas()
def trajectories(tables: Tables, ids: Sequence[str]) -> list[Trajectory]:
    """Trajectories of the tables, in the order of the ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(ids, "string")

    def rows(name: str, key: str = "trajectory_id") -> list[dict[str, Any]]:
        table = tables[name]
        chosen: list[dict[str, Any]] = table.filter(pc.is_in(table[key], wanted)).to_pylist()
        return chosen

    parts = {name: rows(name) for name in ("participants", "events", "outcomes")}
    hashes = pa.array(sorted(hashes_of(parts["events"])), "string")
    states = tables["states"].filter(pc.is_in(tables["states"]["hash"], hashes)).to_pylist()
    contents = {row["hash"]: json.loads(row["content"]) for row in states}
    return to_trajectories(ids, rows("trajectories", "id"), parts, contents)


def together(many: Sequence[Tables]) -> Tables:
    """Tables of the same names as one."""
    import pyarrow as pa

    return {name: pa.concat_tables([tables[name] for tables in many]) for name in SCHEMAS}


def digest(trajectory: Trajectory) -> str:
    """Hash of what a log says, without where it was read."""
    return _digest(trajectory, [said(event) for event in trajectory.events])


def _head(trajectory: Trajectory, words: Sequence[str]) -> list[Any]:
    times = [event.time for event in trajectory.events if event.time and not event.live_only]
    return [
        trajectory.id,
        *[getattr(trajectory, name) for name in _HEAD],
        canonical_json(trajectory.tags),
        None if trajectory.hidden is None else canonical_json(trajectory.hidden),
        times[0] if times else None,
        times[-1] if times else None,
        sum(not event.live_only for event in trajectory.events),
        _digest(trajectory, words),
    ]


def _participants(key: str, many: Sequence[Participant]) -> list[list[Any]]:
    return [
        [key] * len(many),
        *[[getattr(one, name) for one in many] for name in ("name", "kind", "model", "simulated")],
        *[[one.tokens.get(name) for one in many] for name in _TOKENS],
    ]


def _arguments(action: Action | None) -> str | None:
    if action is None:
        return None
    return canonical_json(action.arguments) if action.arguments else "{}"


def _events(key: str, events: Sequence[Event], arguments: list[str | None]) -> list[list[Any]]:
    actions = [event.action for event in events]
    return [
        [key] * len(events),
        [e.seq for e in events],
        [e.sub for e in events],
        [e.live_only for e in events],
        [e.time for e in events],
        [e.actor for e in events],
        [e.kind for e in events],
        [e.text for e in events],
        [a and a.name for a in actions],
        arguments,
        [a and a.raw for a in actions],
        [e.status for e in events],
        [e.error for e in events],
        [canonical_json(e.states) if e.states else None for e in events],
        [canonical_json([n.model_dump() for n in e.notices]) if e.notices else None for e in events],
    ]


def _outcomes(key: str, many: Sequence[Outcome]) -> list[list[Any]]:
    return [
        [key] * len(many),
        *[[getattr(one, name) for one in many] for name in ("name", "value", "text", "baseline", "reason")],
        [None if one.data is None else canonical_json(one.data) for one in many],
        [False] * len(many),
    ]


def _units(trajectory: Trajectory, words: Sequence[str]) -> list[list[Any]]:
    opening = opening_query(trajectory)
    word = dict(zip(map(id, trajectory.events), words, strict=True))
    spans = list(all_spans(trajectory))
    kinds = [kind for kind, _ in spans]
    first = [None if kind == "trajectory" else events[0] for kind, events in spans]
    hashes = [said_hash(kind, [word[id(event)] for event in events]) for kind, events in spans]
    return [
        [trajectory.id] * len(kinds),
        kinds,
        [event and event.seq for event in first],
        hashes,
        [event and event.actor for event in first],
        [
            event is not None and kind != "participant" and event.seq == opening
            for kind, event in zip(kinds, first, strict=True)
        ],
    ]


def _computed(measures: Iterable[Measure]) -> list[list[Any]]:
    columns: dict[str, list[Any]] = defaultdict(list)
    for measure in measures:
        columns["trajectory_id"].append(measure.trajectory)
        for name in _MEASURE:
            columns[name].append(getattr(measure, name))
    return [columns[name] for name in SCHEMAS["computed"]]


def _digest(given: Trajectory, words: Sequence[str]) -> str:
    head = given.model_dump(exclude={"id", "source", "condition", "states", "events"})
    beside = [
        (
            e.sub,
            e.live_only,
            e.time,
            e.status,
            e.error,
            sorted(e.states.items()) if e.states else [],
            e.notices,
        )
        for e in given.events
    ]
    return text_hash("\n".join((canonical_json(head), *words, repr(beside))))


def _state(content: object) -> str:
    return json.dumps(content, ensure_ascii=False)
