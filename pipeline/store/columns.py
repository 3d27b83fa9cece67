"""Trajectories as columns of the audit tables: the shape in which they travel from readers to the store.

A reader yields trajectories one by one; a `Columns` takes them in and gives Arrow tables, which pass from
process to process as bytes and into DuckDB by column name without a Python object for each row.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter, not_
from typing import TYPE_CHECKING, Any

from ...schemas import Action, Measure, Outcome, Participant, Trajectory, canonical_json
from ...schemas.no_pandas import without_pandas
from ...schemas.unit import said, said_hash
from ..units import all_places, opening_query
from .connection import Row
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


def schema(name: str) -> pa.Schema:
    """Of a table."""
    import pyarrow as pa

    return pa.schema([(column, pa.type_for_alias(kind)) for column, kind in SCHEMAS[name].items()])


class Columns:
    """Trajectories in the making of tables; each comes in whole."""

    def __init__(self) -> None:
        self._hashes: set[str] = set()
        self.clear()

    def clear(self) -> None:
        """Forget all but which states came in: those who have the tables have them."""
        self._columns: dict[str, list[list[Any]]] = {
            name: [[] for _ in schema] for name, schema in SCHEMAS.items()
        }
        self.events = 0

    def add(self, trajectory: Trajectory, measures: Iterable[Measure] = ()) -> Row:
        """Take a trajectory in, with what its own system measures of it; all of it or nothing.

        Returns its row of `trajectories`. TypeError and ValueError for what has no JSON.
        """
        events, words = _events(trajectory)
        head = _head(trajectory, words, events)
        fresh = [key for key in trajectory.states if key not in self._hashes]
        parts: dict[str, Sequence[Sequence[Any]]] = {
            "trajectories": [[value] for value in head],
            "participants": _participants(trajectory.id, trajectory.participants),
            "events": events,
            "outcomes": _outcomes(trajectory.id, trajectory.outcomes),
            "units": _units(trajectory, words, events),
            "computed": _computed(measures),
            "states": [fresh, [_state(trajectory.states[key]) for key in fresh]],
        }
        for table, columns in parts.items():
            for column, values in zip(self._columns[table], columns, strict=True):
                column.extend(values)
        self._hashes.update(fresh)
        self.events += len(trajectory.events)
        return dict(zip(SCHEMAS["trajectories"], head, strict=True))

    @without_pandas()
    def tables(self) -> Tables:
        """What came in, as Arrow tables with the columns of `SCHEMAS`."""
        import pyarrow as pa

        tables = {}
        for name, columns in self._columns.items():
            fields = schema(name)
            arrays = [pa.array(column, one.type) for column, one in zip(columns, fields, strict=True)]
            tables[name] = pa.Table.from_arrays(arrays, schema=fields)
        return tables


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
    events, words = _events(trajectory)
    return _digest(trajectory, words, events)


def _head(trajectory: Trajectory, words: Sequence[bytes], events: Sequence[Sequence[Any]]) -> list[Any]:
    logged = list(map(not_, events[_LIVE]))
    times = [time for time in itertools.compress(events[_TIME], logged) if time]
    return [
        trajectory.id,
        *[getattr(trajectory, name) for name in _HEAD],
        canonical_json(trajectory.tags),
        None if trajectory.hidden is None else canonical_json(trajectory.hidden),
        times[0] if times else None,
        times[-1] if times else None,
        sum(logged),
        _digest(trajectory, words, events),
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


_EVENT = itemgetter(
    *("seq", "sub", "live_only", "time", "actor", "kind", "text", "action"),
    *("status", "error", "states", "notices"),
)


def _events(trajectory: Trajectory) -> tuple[list[Sequence[Any]], list[bytes]]:
    """The columns of a trajectory's events, and who did what in each."""
    events = trajectory.events
    fields = list(zip(*map(_EVENT, map(vars, events)), strict=True)) or [()] * 12
    seqs, subs, live, times, actors, kinds, texts, actions, statuses, errors, states, notices = fields
    arguments = [_arguments(action) for action in actions]
    columns: list[Sequence[Any]] = [
        *([trajectory.id] * len(events), seqs, subs, live, times, actors, kinds, texts),
        [action and action.name for action in actions],
        arguments,
        [action and action.raw for action in actions],
        *(statuses, errors),
        [canonical_json(one) if one else None for one in states],
        [canonical_json([notice.model_dump() for notice in many]) if many else None for many in notices],
    ]
    return columns, list(map(said, events, arguments))


def _outcomes(key: str, many: Sequence[Outcome]) -> list[list[Any]]:
    return [
        [key] * len(many),
        *[[getattr(one, name) for one in many] for name in ("name", "value", "text", "baseline", "reason")],
        [None if one.data is None else canonical_json(one.data) for one in many],
        [False] * len(many),
    ]


def _units(
    trajectory: Trajectory, words: Sequence[bytes], events: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    opening = opening_query(trajectory)
    seqs, actors = events[_SEQ], events[_ACTOR]
    columns: list[list[Any]] = [[], [], [], [], []]
    kinds, firsts, hashes, who, openings = columns
    for kind, places in all_places(trajectory):
        kinds.append(kind)
        hashes.append(said_hash(kind, [words[place] for place in places]))
        first = None if kind == "trajectory" else places[0]
        firsts.append(None if first is None else seqs[first])
        who.append(None if first is None else actors[first])
        openings.append(first is not None and seqs[first] == opening and kind != "participant")
    return [[trajectory.id] * len(kinds), *columns]


def _computed(measures: Iterable[Measure]) -> list[list[Any]]:
    columns: dict[str, list[Any]] = defaultdict(list)
    for measure in measures:
        columns["trajectory_id"].append(measure.trajectory)
        for name in _MEASURE:
            columns[name].append(getattr(measure, name))
    return [columns[name] for name in SCHEMAS["computed"]]


_PLACE = {name: place for place, name in enumerate(SCHEMAS["events"])}
_SEQ, _ACTOR, _LIVE, _TIME = (_PLACE[name] for name in ("seq", "actor", "live_only", "time"))
_BESIDE = [_PLACE[name] for name in ("sub", "live_only", "time", "status", "error", "states", "notices")]
"""Places of the columns of an event that say more than who did what."""


def _digest(given: Trajectory, words: Sequence[bytes], events: Sequence[Sequence[Any]]) -> str:
    """Hash of a trajectory's head, of who did what (`words`), and of what else the columns of events say."""
    head = given.model_dump(exclude={"id", "source", "condition", "states", "events"})
    beside = [_brief(events[place]) for place in _BESIDE]
    made = hashlib.blake2b(b"\n".join(words), digest_size=16)
    made.update(f"\n{canonical_json(head)}\n{beside!r}".encode("utf-8", "surrogatepass"))
    return made.hexdigest()


def _brief(column: Sequence[Any]) -> Sequence[Any]:
    """One value of a column that has no others."""
    return list(column[:1] if column and column.count(column[0]) == len(column) else column)


def _state(content: object) -> str:
    return json.dumps(content, ensure_ascii=False)
