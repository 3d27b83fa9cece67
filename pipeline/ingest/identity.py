"""Whether a log is new, the same, or a session that has grown: what should be stored of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import duckdb

from ...schemas import Trajectory, content_hash
from ...schemas.trajectory import COPY
from ..store import AMONG, Store, execute, texts
from ..store.tables import rows
from ..store.tables.columns import digest
from ..systems import ReadOptions, merge
from ..systems.registry import SYSTEMS
from ..units import columns
from .blocks import Summary
from .measure import save
from .result import IngestResult

SUFFIX = 7
"""Length of the suffix that tells two trajectories of one id apart: a hyphen, then the beginning of a
hash."""
LATE_EVENTS = 20_000
"""At about so many events, no more trajectories are held in memory to be compared with others, or to be
stored with them."""


class Sessions:
    """The trajectories of a store, and those that wait until several are stored at once."""

    def __init__(self, store: Store, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._store = store
        self._waiting: dict[str, Trajectory] = {}
        self._stored: dict[str, Trajectory] = {}
        self._summaries: dict[str, Summary | None] = {}
        """Id -> summary, of those that wait or were looked up; None where there is no trajectory."""
        self._ahead: list[str] = []
        """Ids of stored ones that will be asked for and are not in memory yet."""

    @property
    def events(self) -> int:
        """Number of events of the trajectories that wait."""
        return sum(len(one.events) for one in self._waiting.values())

    def waits(self, key: str) -> bool:
        """Whether a trajectory of that id waits to be stored."""
        return key in self._waiting

    def expect(self, ids: Sequence[str]) -> None:
        """Look up ids that will be asked for in this order, all at once, as each query scans the whole store;
        earlier look-ups are dropped."""
        self._summaries = {key: self._summaries[key] for key in self._waiting}
        self._look_up([key for key in ids if key not in self._waiting])
        there = dict.fromkeys(key for key in ids if self._summaries[key] and key not in self._waiting)
        self._ahead, self._stored = list(there), {}

    def summary(self, key: str) -> Summary | None:
        """The summary of the trajectory of an id; None where there is none."""
        if key not in self._summaries:
            self._look_up([key])
        return self._summaries[key]

    def whole(self, key: str, *, states: bool = False) -> Trajectory:
        """The trajectory of an id that has a `summary`; a stored one comes without its states unless they are
        wanted."""
        if key in self._waiting:
            return self._waiting[key]
        if key in self._ahead:
            self._stored = {trajectory.id: trajectory for trajectory in self._load(self._next(key))}
        trajectory = self._stored.get(key) or self._load([key])[0]
        return self._load([key], states=True)[0] if states and any(columns(trajectory).states) else trajectory

    def same_session(self, trajectory: Trajectory) -> Trajectory | None:
        """The trajectory of the same session, where one of the two was heard live and the other logged.

        Their ids may differ: that of a session without an opening query rests on when it began, by two
        clocks; that of one joined late on when it was joined.
        """
        query = """
            SELECT t.id FROM trajectories t
            WHERE t.native_id = ? AND t.system = ?
                AND (? OR EXISTS (SELECT 1 FROM outcomes o WHERE o.trajectory_id = t.id AND o.name = ?))
        """
        is_heard = merge.was_heard(trajectory)
        parameters = [trajectory.native_id, trajectory.system]
        result = execute(self.connection, query, [*parameters, is_heard, merge.HEARD]).fetchall()
        ids = [key for (key,) in result if key not in self._waiting]
        waiting = [
            one
            for one in self._waiting.values()
            if [one.native_id, one.system] == parameters and (is_heard or merge.was_heard(one))
        ]
        others = [*waiting, *(self._load(ids) if ids else ())]
        same = [one for one in others if merge.same_start(one, trajectory) and merge.agree(one, trajectory)]
        return min(same, key=lambda one: (merge.seconds_apart(one, trajectory), one.id), default=None)

    def keep(self, trajectory: Trajectory) -> None:
        """Let a trajectory wait to be stored, in place of any with its id."""
        self._waiting[trajectory.id] = trajectory
        times = [event.time for event in trajectory.events if event.time and not event.live_only]
        condition, source = trajectory.condition, trajectory.source
        events = sum(not event.live_only for event in trajectory.events)
        self._summaries[trajectory.id] = Summary(digest(trajectory), condition, source, bool(times), events)

    def save(self, but: Collection[str] = ()) -> list[Trajectory]:
        """Store those that wait except `but`; the caller refreshes what is derived from them."""
        trajectories = [one for one in self._waiting.values() if one.id not in but]
        save(self._store, trajectories, self.connection, refresh=False)
        self._waiting, self._stored, self._summaries, self._ahead = {}, {}, {}, []
        return trajectories

    def _look_up(self, ids: Sequence[str]) -> None:
        there = summaries_by_id(self.connection, ids)
        self._summaries |= {key: there.get(key) for key in ids}

    def _next(self, key: str) -> list[str]:
        """The ids from `key` on that will be asked for, as long as they have few events together."""
        self._ahead = self._ahead[self._ahead.index(key) :]
        some = [self._ahead.pop(0)]
        events = self._events(key)
        while self._ahead and (events := events + self._events(self._ahead[0])) <= LATE_EVENTS:
            some.append(self._ahead.pop(0))
        return some

    def _events(self, key: str) -> int:
        entry = self._summaries[key]
        return entry.events if entry else 0

    def _load(self, ids: Sequence[str], *, states: bool = False) -> list[Trajectory]:
        return self._store.load(self.connection, ids, states=states)


def summaries_by_id(connection: duckdb.DuckDBPyConnection, ids: Iterable[str]) -> dict[str, Summary]:
    """The summaries of those trajectories that the store has, by id."""
    query = f"""
        SELECT id, digest, condition, source, started IS NOT NULL, n_events
        FROM trajectories WHERE id {AMONG}
    """
    return {key: Summary(*fields) for key, *fields in execute(connection, query, [texts(ids)]).fetchall()}


def names_heard(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> set[str]:
    """Those of the names under which a session was heard live: its id may not be that of its log."""
    query = f"""
        SELECT native_id FROM trajectories JOIN outcomes ON trajectory_id = id
        WHERE name = ? AND native_id {AMONG}
    """
    return {name for (name,) in execute(connection, query, [merge.HEARD, texts(names)]).fetchall()}


def resolve_identity(
    sessions: Sessions,
    trajectory: Trajectory,
    options: ReadOptions,
    result: IngestResult,
    contents: Mapping[str, str] = MappingProxyType({}),
    run_ids: Collection[str] | None = None,
) -> tuple[str, Trajectory | None]:
    """The id of a trajectory, and the trajectory as it should be stored: None where the store has it, or a
    longer copy of it.

    Two logs with one id of which neither continues the other are two trajectories: the later one gets a
    suffix made from the first event in which they differ. So are two that say the same without any times, in
    files of other contents to which other conditions were given: two runs of one policy. `contents` are the
    hashes of the sources of this run by path.

    A log that contradicts what it said before was mended: its new version replaces the old one, as in a
    rebuild; under another condition it is another run. `run_ids` are the ids that it gave in this run: a
    second session of one of them is not mended.
    """
    while True:
        before = sessions.summary(trajectory.id)
        if before is None:
            same = sessions.same_session(trajectory)
            if same is None:
                return trajectory.id, trajectory
            trajectory = trajectory.model_copy(update={"id": same.id})
            continue
        if before.digest == digest(trajectory):
            if options.condition in (None, before.condition):
                result.note_whole(trajectory.source, trajectory.id)
                return trajectory.id, None
            if not before.has_times and _apart(sessions.connection, before.source, trajectory, contents):
                arm = content_hash(options.condition)[:6]
                trajectory = trajectory.model_copy(update={"id": f"{trajectory.id.partition('-')[0]}-{arm}"})
                continue
        previous = sessions.whole(trajectory.id)
        if together := merge.combine_readings(previous, trajectory):
            return trajectory.id, None if digest(together) == before.digest else together
        old, new = rows.event_digests(previous.events), rows.event_digests(trajectory.events)
        if new == old[: len(new)] and len(new) < len(old):
            again = run_ids is None or trajectory.id in run_ids
            if previous.source == trajectory.source and not again and not merge.was_heard(previous):
                name = trajectory.native_id
                result.note_shorter(trajectory.source, trajectory.id, name, len(new), len(old))
            return trajectory.id, None
        if old == new[: len(old)]:
            updated = _merge_stored(previous, trajectory, options)
            same_again = before.digest == digest(updated) and updated.condition == before.condition
            return trajectory.id, None if same_again else updated
        differs = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
        new_id = f"{trajectory.id.partition('-')[0]}-{new[differs][:6]}"
        same_run = options.condition in (None, previous.condition) and sessions.summary(new_id) is None
        if same_run and _is_mended(sessions.connection, previous, trajectory, run_ids):
            if not _comes_in_any_order(previous, trajectory):
                note = f"{trajectory.source}: from event {differs} on, differs from what was stored"
                result.notes.append(note)
            return trajectory.id, _merge_stored(previous, trajectory, options)
        remark = (
            f"same session as {previous.source} up to event {differs}, then another"
            if differs
            else f"has the id of a session of {previous.source} whose first event, or its time, is another"
        )
        result.notes.append(f"{trajectory.source}: {remark}; kept as a trajectory of its own")
        if new_id == trajectory.id:
            return trajectory.id, None
        trajectory = trajectory.model_copy(update={"id": new_id})


def with_suffixes(ids: Collection[str]) -> dict[str, str]:
    """Id without its suffix -> id with it, of the `ids` of one source; without those that have another
    suffix beside them, or none."""
    read = Counter(_as_read(key) for key in ids)
    return {_as_read(key): key for key in ids if key != _as_read(key) and read[_as_read(key)] == 1}


def _as_read(key: str) -> str:
    return key[:-SUFFIX] if key[-SUFFIX:].startswith("-") else key


def _apart(
    connection: duckdb.DuckDBPyConnection, before: str, trajectory: Trajectory, contents: Mapping[str, str]
) -> bool:
    """Whether a trajectory comes from a source of other content than the one that it was stored from."""
    stored_hash, own_hash = content_of(connection, before, contents), contents.get(trajectory.source)
    return before != trajectory.source and None not in (stored_hash, own_hash) and stored_hash != own_hash


def _comes_in_any_order(previous: Trajectory, trajectory: Trajectory) -> bool:
    """Whether a session differs from its stored version because spans of its trace came late: all words that
    were stored are still in it."""
    system = SYSTEMS.get(trajectory.system)
    before, now = (Counter(e.text for e in one.events if e.text) for one in (previous, trajectory))
    return system is not None and system.named_late and before <= now


def _is_mended(
    connection: duckdb.DuckDBPyConnection,
    previous: Trajectory,
    trajectory: Trajectory,
    run_ids: Collection[str] | None,
) -> bool:
    """Whether a session that contradicts its stored version was mended in its log: the stored one came from
    this log, which has not given that id in this run yet, and no other log gave it."""
    if run_ids is None or trajectory.id in run_ids or previous.source != trajectory.source:
        return False
    query = "SELECT path FROM sources WHERE list_contains(trajectory_ids, ?)"
    paths = {path for (path,) in execute(connection, query, [trajectory.id]).fetchall()}
    return len(paths) <= 1


def content_of(connection: duckdb.DuckDBPyConnection, path: str, contents: Mapping[str, str]) -> str | None:
    """Hash of a source's content when it was last noted, or in this run where it is not noted yet."""
    query = "SELECT content_hash FROM sources WHERE path = ? ORDER BY ingested DESC LIMIT 1"
    result = execute(connection, query, [path]).fetchall()
    return result[0][0] if result else contents.get(path)


def _merge_stored(previous: Trajectory, read: Trajectory, options: ReadOptions) -> Trajectory:
    """What was read, completed from the stored version: its first source, and events that only live traffic
    showed.

    The outcomes, and whose copy it is, are those of the last reading: another log may have gone, or this one
    have gone on in another way.
    """
    live = [event for event in previous.events if event.live_only]
    events = sorted([*read.events, *live], key=lambda event: (event.seq, event.sub))
    fields: dict[str, object] = {
        "source": previous.source,
        "events": tuple(events),
        "hidden": read.hidden or previous.hidden,
    }
    for name in ("condition", "agent"):
        if getattr(options, name) is None:
            fields[name] = getattr(previous, name) or getattr(read, name)
    if options.setting is None and read.setting is None:
        fields["setting"] = previous.setting
    if not options.tags:
        fields["tags"] = read.tags | {key: value for key, value in previous.tags.items() if key != COPY}
    system = SYSTEMS.get(read.system)
    if read.source != previous.source and system is not None and system.models_by_place:
        fields |= _models_as_stored(previous, read)
    return read.model_copy(update=fields)


def _models_as_stored(previous: Trajectory, read: Trajectory) -> dict[str, object]:
    """Who is which model, as the first source has it: what a copy's folder is called says nothing of that."""
    models = {one.name: one.model for one in previous.participants if one.model}
    participants = tuple(
        one.model_copy(update={"model": models.get(one.name, one.model)}) for one in read.participants
    )
    return {"participants": participants, "agent_model": previous.agent_model or read.agent_model}
