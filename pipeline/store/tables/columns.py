"""Trajectories as columns of the audit tables: the shape in which they travel from readers to the store.

A reader yields trajectories one by one; a `Columns` takes them in and gives Arrow tables, which pass from
process to process as bytes and into DuckDB by column name without a Python object for each row.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import not_
from typing import TYPE_CHECKING, Any

from ....schemas import Measure, Outcome, Participant, Trajectory, canonical_json
from ....schemas.event import EventColumns
from ....schemas.no_pandas import without_pandas
from ....schemas.unit import arguments_json, event_contents, unit_hashes
from ...units import columns as columns_of
from ...units import opening_query, places_by_kind
from ..connection import Row
from .rows import MEASURE, TOKENS, fields_beside, fields_of, hashes_of, to_trajectories

if TYPE_CHECKING:
    import pyarrow as pa

Tables = dict[str, "pa.Table"]
"""Name of a table of the store -> its rows."""

_HEAD = ("native_id", "source", "system", "setting", "condition", "task", "instance", "agent", "agent_model")
_LISTS = ("participants", "outcomes")
"""What a log says of a trajectory as lists of objects."""
_FIELDS = fields_beside(Trajectory, "id", "source", "condition", "states", "events", *_LISTS)
"""What else a log says of a trajectory, apart from its events: who did what."""


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
        **dict.fromkeys(TOKENS, "int64"),
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


def schema(name: str) -> pa.Schema:
    """The Arrow schema of a table."""
    import pyarrow as pa

    return pa.schema([(column, pa.type_for_alias(kind)) for column, kind in SCHEMAS[name].items()])


class Columns:
    """Collects trajectories, each as a whole, into tables."""

    def __init__(self) -> None:
        self._hashes: set[str] = set()
        self.clear()

    def clear(self) -> None:
        """Drop the rows, but remember which states came in: whoever has the tables has them."""
        self._parts: dict[str, list[Sequence[Sequence[Any]]]] = {name: [] for name in SCHEMAS}
        self.events = 0

    def add(self, trajectory: Trajectory, measures: Iterable[Measure] = ()) -> Row:
        """Add a trajectory with what its own system measures of it; all of it or nothing.

        Returns its row of `trajectories`. TypeError and ValueError for what has no JSON.
        """
        cells = _EventCells.of(trajectory)
        head = _head(trajectory, cells)
        fresh = [key for key in trajectory.states if key not in self._hashes]
        parts: dict[str, Sequence[Sequence[Any]]] = {
            "trajectories": [[value] for value in head],
            "participants": _participants(trajectory.id, trajectory.participants),
            "events": _events(trajectory.id, cells),
            "outcomes": _outcomes(trajectory.id, trajectory.outcomes),
            "units": _units(trajectory, cells),
            "computed": _measure_columns(measures),
            "states": [fresh, [_state(trajectory.states[key]) for key in fresh]],
        }
        for table, columns in parts.items():
            self._parts[table].append(columns)
        self._hashes.update(fresh)
        self.events += len(cells.events)
        return dict(zip(SCHEMAS["trajectories"], head, strict=True))

    @without_pandas()
    def tables(self) -> Tables:
        """What came in, as Arrow tables with the columns of `SCHEMAS`."""
        import pyarrow as pa

        tables = {}
        for name, parts in self._parts.items():
            fields = schema(name)
            columns = zip(*parts, strict=True) if parts else ((),) * len(fields)
            arrays = [_array(column, one.type) for column, one in zip(columns, fields, strict=True)]
            tables[name] = pa.Table.from_arrays(arrays, schema=fields)
        return tables


def _array(parts: Iterable[Iterable[Any]], kind: pa.DataType) -> pa.Array:
    """The parts of a column as one array; many columns hold only nulls."""
    import pyarrow as pa

    values = list(itertools.chain.from_iterable(parts))
    return pa.nulls(len(values), kind) if values.count(None) == len(values) else pa.array(values, kind)


@without_pandas()
def trajectories(tables: Tables, ids: Sequence[str]) -> list[Trajectory]:
    """Trajectories of the tables, in the order of the ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = pa.array(ids, "string")

    def rows(name: str, key: str = "trajectory_id") -> list[dict[str, Any]]:
        table = tables[name]
        records: list[dict[str, Any]] = table.filter(pc.is_in(table[key], keys)).to_pylist()
        return records

    parts = {name: rows(name) for name in ("participants", "events", "outcomes")}
    hashes = pa.array(sorted(hashes_of(parts["events"])), "string")
    states = tables["states"].filter(pc.is_in(tables["states"]["hash"], hashes)).to_pylist()
    contents = {row["hash"]: json.loads(row["content"]) for row in states}
    return to_trajectories(ids, rows("trajectories", "id"), parts, contents)


def concat_tables(parts: Sequence[Tables]) -> Tables:
    """Tables of the same names, concatenated."""
    import pyarrow as pa

    return {name: pa.concat_tables([tables[name] for tables in parts]) for name in SCHEMAS}


def digest(trajectory: Trajectory) -> str:
    """Hash of a trajectory's content, without where it was read."""
    return _digest(trajectory, _EventCells.of(trajectory))


@dataclass(frozen=True)
class _EventCells:
    """The columns of a trajectory's events, with what several tables derive from them."""

    events: EventColumns
    arguments: list[str | None]
    """The arguments of each event's action, as canonical JSON."""
    words: list[bytes]
    """Who did what, of each event (`event_contents`)."""
    states: list[str | None]
    """The hashes of the states that each event points at, as canonical JSON."""
    notices: list[str | None]

    @classmethod
    def of(cls, trajectory: Trajectory) -> _EventCells:
        events = columns_of(trajectory)
        arguments = arguments_json(events)
        return cls(
            events,
            arguments,
            event_contents(events, arguments),
            [canonical_json(one) if one else None for one in events.states],
            [
                canonical_json([notice.model_dump() for notice in items]) if items else None
                for items in events.notices
            ],
        )


def _head(trajectory: Trajectory, cells: _EventCells) -> list[Any]:
    mask = list(map(not_, cells.events.live_only))
    times = [time for time in itertools.compress(cells.events.time, mask) if time]
    return [
        trajectory.id,
        *[getattr(trajectory, name) for name in _HEAD],
        canonical_json(trajectory.tags),
        None if trajectory.hidden is None else canonical_json(trajectory.hidden),
        times[0] if times else None,
        times[-1] if times else None,
        sum(mask),
        _digest(trajectory, cells),
    ]


def _participants(key: str, participants: Sequence[Participant]) -> list[list[Any]]:
    return [
        [key] * len(participants),
        *[[getattr(one, name) for one in participants] for name in ("name", "kind", "model", "simulated")],
        *[[one.tokens.get(name) for one in participants] for name in TOKENS],
    ]


def _events(key: str, cells: _EventCells) -> list[Sequence[Any]]:
    events = cells.events
    return [
        [key] * len(events),
        *(events.seq, events.sub, events.live_only, events.time, events.actor, events.kind, events.text),
        *(
            events.action,
            cells.arguments,
            events.raw,
            events.status,
            events.error,
            cells.states,
            cells.notices,
        ),
    ]


def _outcomes(key: str, outcomes: Sequence[Outcome]) -> list[list[Any]]:
    return [
        [key] * len(outcomes),
        *[
            [getattr(one, name) for one in outcomes]
            for name in ("name", "value", "text", "baseline", "reason")
        ],
        [None if one.data is None else canonical_json(one.data) for one in outcomes],
        [False] * len(outcomes),
    ]


def _units(trajectory: Trajectory, cells: _EventCells) -> list[Sequence[Any]]:
    opening = opening_query(trajectory)
    seqs, actors, words = cells.events.seq, cells.events.actor, cells.words
    columns: list[list[Any]] = [[], [], [], [], []]
    kinds, firsts, hashes, participants, openings = columns
    for kind, units in places_by_kind(trajectory):
        kinds += [kind] * len(units)
        hashes += unit_hashes(kind, words, units)
        if kind == "trajectory":
            firsts.append(None)
            participants.append(None)
            openings.append(False)
            continue
        first = [places[0] for places in units]
        addresses = [seqs[place] for place in first]
        firsts += addresses
        participants += [actors[place] for place in first]
        openings += [kind != "participant" and address == opening for address in addresses]
    return [[trajectory.id] * len(kinds), *columns]


def _measure_columns(measures: Iterable[Measure]) -> list[list[Any]]:
    columns: dict[str, list[Any]] = defaultdict(list)
    for measure in measures:
        columns["trajectory_id"].append(measure.trajectory)
        for name in MEASURE:
            columns[name].append(getattr(measure, name))
    return [columns[name] for name in SCHEMAS["computed"]]


def _digest(trajectory: Trajectory, cells: _EventCells) -> str:
    """Hash of a trajectory's head, of who did what, and of the other columns of its events."""
    head = fields_of(trajectory, _FIELDS)
    head |= {name: [vars(one) for one in getattr(trajectory, name)] for name in _LISTS}
    events = cells.events
    more = (
        events.sub,
        events.live_only,
        events.time,
        events.status,
        events.error,
        cells.states,
        cells.notices,
    )
    beside = [_compact(column) for column in more]
    hasher = hashlib.blake2b(b"\n".join(cells.words), digest_size=16)
    hasher.update(f"\n{canonical_json(head)}\n{beside!r}".encode("utf-8", "surrogatepass"))
    return hasher.hexdigest()


def _compact(column: Sequence[Any]) -> Sequence[Any]:
    """The column, or its first value alone where all are equal."""
    return list(column[:1] if column and column.count(column[0]) == len(column) else column)


def _state(content: object) -> str:
    return json.dumps(content, ensure_ascii=False)
