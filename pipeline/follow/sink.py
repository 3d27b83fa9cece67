"""Into the store in short transactions: what has changed since the last one, all at once.

One writer a process, which rests after each transaction for half of its time (PACE to LONGEST_REST seconds),
so that readers and other writers get their turn. What is derived is refreshed now and then, with one of them.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import duckdb

from ...schemas import Quarantined, Trajectory
from ..errors import WriteError
from ..ingest.blocks import Summary
from ..ingest.copies import copy_notes
from ..ingest.forgetting import Exclusions, read_exclusions
from ..ingest.identity import Sessions, names_heard, resolve_identity, summaries_by_id, with_suffixes
from ..ingest.measure import save
from ..ingest.pieces import piece_notes, pieces
from ..ingest.refusals import refusal_of
from ..ingest.result import IngestResult
from ..ingest.sources import Source, ids_by_path, keep, read_ledger, with_copy
from ..ingest.succession import find_superseded, loss_notes, missing_ids
from ..store import Store, delete, execute, insert
from ..store.tables.columns import digest
from ..store.tables.removal import clear, remove
from ..systems import ReadOptions, merge

PACE = 0.25
"""Seconds from one transaction to the next, at least."""
PACE_FACTOR = 1.5
"""A transaction and the rest after it take so many times its own time, though the rest is PACE at least and
LONGEST_REST at most."""
LONGEST_REST = 1.0
DERIVE = 3.0
"""Seconds from one refresh of measures to the next: a refresh costs half of what storing events does."""
OVERDUE = 15.0
"""Seconds after which another process refreshes them: then this one is taken to be gone."""
T = TypeVar("T")
Companion = Callable[[duckdb.DuckDBPyConnection, Sequence[Trajectory]], None]
REMEMBERED = 10_000
"""Trajectories whose last stored version this process remembers."""


@dataclass
class Changes:
    """What waits for the next transaction."""

    heard_trajectories: dict[str, tuple[Trajectory, ReadOptions]] = field(default_factory=dict)
    """Trajectories by id."""
    read_sources: dict[str, tuple[Source, Sequence[Trajectory]]] = field(default_factory=dict)
    """Path of a source -> the source and all trajectories that it gives."""
    sources: dict[str, Source] = field(default_factory=dict)
    quarantined: dict[str, list[Quarantined]] = field(default_factory=dict)
    """Source -> what could not be read of it."""
    renewed_sources: set[str] = field(default_factory=set)
    """Sources whose items replace what was quarantined of them before."""
    replaced_ids: list[str] = field(default_factory=list)
    """Ids that turned out to be another trajectory's."""
    moment: str | None = None
    """When the last event was received."""
    works: list[Callable[[duckdb.DuckDBPyConnection], None]] = field(default_factory=list)

    def without(self, outside: Exclusions) -> Changes:
        """The same without what is to be left out."""
        sessions = {
            key: one for key, one in self.heard_trajectories.items() if key not in outside.trajectories
        }
        return replace(
            self,
            heard_trajectories={
                key: one for key, one in sessions.items() if one[0].source not in outside.sources
            },
            read_sources=_without_paths(self.read_sources, outside.sources),
            sources=_without_paths(self.sources, outside.sources),
            quarantined=_without_paths(self.quarantined, outside.sources),
            renewed_sources=self.renewed_sources - outside.sources,
        )

    def __bool__(self) -> bool:
        trajectories = self.heard_trajectories or self.read_sources or self.replaced_ids
        return bool(trajectories or self.sources or self.quarantined or self.works)


def _copy_of(source: Source) -> tuple[str, str, str | None]:
    """What identifies the copy of a source that a line of the ledger notes."""
    return source.path, source.content_hash, source.copied


def _without_paths(by_source: dict[str, T], paths: Collection[str]) -> dict[str, T]:
    return {path: value for path, value in by_source.items() if path not in paths}


class Sink:
    """Collects changes from any thread; `flush` stores them in one transaction."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._changes = Changes()
        self._live_digests: dict[str, str] = {}
        self._noted_sources: dict[str, Source] = {}
        self._lock = threading.Lock()
        self._rest_until = 0.0
        self._derive_at = math.inf
        self._bad_counts: Counter[str] = Counter()
        """Source -> how many pieces of it could not be read."""
        self.new_ids: set[str] = set()
        """Ids that the last transaction stored for the first time."""
        self.gone_ids: set[str] = set()
        """Ids that the last transaction removed, since another trajectory stands in their place."""
        self.notes: list[str] = []
        """Notes on what was taken in, to be reported."""
        self.companions: list[Companion] = []
        """Run in each transaction with the trajectories that it stores, before `gone_ids` are removed."""
        self._reported_notes: set[str] = set()
        self._shorter: set[tuple[str, str]] = set()
        """Sources and trajectories that were reported to be shorter than they were."""
        self._read_sources: dict[str, Source] = {}
        """Path -> source of all that was read and stored."""
        self._new_sources: dict[str, Source] = {}
        """Those of them that have had new trajectories since they were last compared with others."""
        self._reported_pieces: set[tuple[str, str]] = set()
        """Pairs of sources that were reported to share sessions."""
        self.storing_seconds: dict[str, float] = {}
        """Path of a source -> its share, by events, of the time that the last transaction with it took, where
        that is more than the rests between transactions make up for."""
        self._event_counts: dict[str, int] = {}
        """Path -> events of all sources that were stored since what is derived was refreshed."""

    def put(self, trajectory: Trajectory, options: ReadOptions) -> None:
        """Store this trajectory in the next transaction, in place of what waits under its id."""
        with self._lock:
            waiting = self._changes.heard_trajectories.get(trajectory.id)
            together = waiting and merge.combine_readings(waiting[0], trajectory)
            self._changes.heard_trajectories[trajectory.id] = (together or trajectory, options)

    def take(self, source: Source, trajectories: Sequence[Trajectory]) -> None:
        """Store all that a source gives in the next transaction, in place of what waits of it.

        Two sources may give one id, or one source may give it twice: which trajectory is which is decided
        when they are stored.
        """
        with self._lock:
            self._changes.read_sources[source.path] = (source, trajectories)

    def note_moment(self, moment: str) -> None:
        """Note when the last event was received (UTC)."""
        with self._lock:
            self._changes.moment = moment

    def note(self, source: Source) -> None:
        """Put the source into the ledger and the store with the next transaction."""
        with self._lock:
            self._changes.sources[source.path] = source

    def note_unchanged(self, source: Source) -> None:
        """Remember a log that is known and unchanged: the study may lack its copy, where its follower was
        killed."""
        self._noted_sources[source.path] = source

    def quarantine(self, source: str, items: Iterable[Quarantined], *, anew: bool) -> None:
        """Note what could not be read of a source; `anew`: in place of what was noted before."""
        with self._lock:
            fresh = list(items)
            if anew:
                self._changes.renewed_sources.add(source)
                self._changes.quarantined[source] = []
                self._bad_counts[source] = 0
                for notes in (self._changes.quarantined, self._bad_counts):
                    notes.pop(refusal_of(source), None)
            self._changes.quarantined.setdefault(source, []).extend(fresh)
            self._bad_counts[source] += len(fresh)

    def ids_of(self, path: str) -> tuple[str, ...]:
        """The trajectories that a source gave when it was stored last."""
        source = self._read_sources.get(path)
        return source.trajectory_ids if source else ()

    @property
    def quarantined(self) -> int:
        """How many pieces of what was followed could not be read."""
        return self._bad_counts.total()

    def replace(self, wrong: str) -> None:
        """Remove a trajectory that turned out to be another one."""
        with self._lock:
            self._changes.heard_trajectories.pop(wrong, None)
            self._changes.replaced_ids.append(wrong)

    def add_work(self, work: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Do this in the next transaction, before that loads the ledgers.

        So a ledger that is written here is never ahead of the store: else every reader would load it.
        """
        with self._lock:
            self._changes.works.append(work)

    def do(self, work: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Do this now, in a transaction of its own."""
        with self._pace_writes(), self.store.writing() as connection:
            work(connection)

    def open(self) -> None:
        """Make the tables where there are none, and load now what would delay the first transaction."""
        try:
            with self.store.writing() as connection:
                save(self.store, (), connection)
                self.store.catch_up(connection)
        except duckdb.Error as error:
            raise WriteError(f"{self.store.workspace.store_url}: cannot store: {error}") from error

    def due(self) -> float:
        """Seconds until the next transaction is allowed."""
        return max(0.0, self._rest_until - time.monotonic())

    def flush(self) -> list[Trajectory]:
        """Store what has changed, in one transaction; returns the trajectories as they are stored now."""
        with self._lock:
            changes, self._changes = self._changes, Changes()
        if not changes:
            return []
        with self._pace_writes():
            return self._store(changes)

    def _note_shares(self, changes: Changes, seconds: float, *, has_derived: bool) -> None:
        """Share the time of a transaction among the sources that it stored. What it derives is of all that
        was stored since that was done last."""
        sources = changes.read_sources.items()
        counts = {path: sum(len(one.events) for one in some) for path, (_, some) in sources}
        self._event_counts |= counts
        live_count = sum(len(one.events) for one, _ in changes.heard_trajectories.values())
        total = max(1, sum((self._event_counts if has_derived else counts).values()) + live_count)
        excess = seconds if seconds > LONGEST_REST / (PACE_FACTOR - 1) else 0.0
        self.storing_seconds |= {path: excess * count / total for path, count in counts.items()}

    def derive(self, *, now: bool = False) -> None:
        """Refresh what is derived if that is due, or `now`, unless a transaction has done so."""
        if time.monotonic() < self._derive_at and not (now and self._derive_at < math.inf):
            return
        with self._pace_writes(), self.store.writing() as connection:
            self.store.catch_up(connection)
        self._derive_at = math.inf
        self._event_counts.clear()

    def compare(self, *, last: bool = False) -> None:
        """Note which logs go on with sessions of others, as rotated ones do, once all is derived; at the
        `last` also which repeat another one."""
        if self._derive_at < math.inf or not (self._new_sources or (last and self._read_sources)):
            return
        with self.store.reading(synced=True) as connection:
            pairs = pieces(connection, self._new_sources.values())
            if last:
                self.notes += copy_notes(connection, self._read_sources.values())
        pairs = [one for one in pairs if (one.source, one.before) not in self._reported_pieces]
        self._reported_pieces |= {(one.source, one.before) for one in pairs}
        self._new_sources.clear()
        self.notes += piece_notes(pairs)

    def share_logs(self) -> None:
        """Copy the logs that were followed into the study, so that other machines can read them again."""
        if not self.store.is_shared:
            return
        copies_before = {_copy_of(source) for source in read_ledger(self.store.workspace)[0]}
        copies = [copy for source in self._noted_sources.values() if (copy := with_copy(self.store, source))]
        copies = [copy for copy in copies if _copy_of(copy) not in copies_before]
        if copies:
            with self.store.writing() as connection:
                keep(self.store, connection, copies, copies)

    @contextmanager
    def _pace_writes(self) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        except duckdb.Error as error:
            raise WriteError(f"{self.store.workspace.store_url}: cannot store: {error}") from error
        finally:
            seconds = time.monotonic() - start
            self._rest_until = time.monotonic() + min(LONGEST_REST, max(PACE, (PACE_FACTOR - 1) * seconds))

    def _store(self, changes: Changes) -> list[Trajectory]:
        with self.store.writing() as connection:
            start = time.monotonic()  # not when it began to wait for another process
            # Whoever forgets something after this takes out what is stored here.
            left_out = read_exclusions(self.store.workspace)
            changes = changes.without(left_out)
            clear(connection, changes.replaced_ids)
            before = ids_by_path(connection, [*changes.read_sources, *changes.sources])
            ids_by_source = dict(before)
            trajectories = self._save(connection, changes, ids_by_source, left_out.trajectories)
            self._note(connection, changes, ids_by_source)
            now = [
                source.model_copy(update={"trajectory_ids": ids_by_source[path]})
                for path, (source, _) in changes.read_sources.items()
            ]
            self._read_sources |= {source.path: source for source in now}
            self._new_sources |= {one.path: one for one in now if self.new_ids & {*one.trajectory_ids}}
            superseded_ids = set().union(*find_superseded(connection, now, before).values())
            self.notes += loss_notes(missing_ids(connection, now, before, superseded_ids))
            self.gone_ids = {*changes.replaced_ids, *superseded_ids} - {t.id for t in trajectories}
            for companion in self.companions:
                companion(connection, trajectories)
            remove(connection, self.gone_ids)
            self._quarantine(connection, changes)
            for work in changes.works:
                work(connection)
            due = time.monotonic() >= self._derive_at
            if due:
                self.store.catch_up(connection, {t.id for t in trajectories})
            else:
                self.store.postpone(connection, {t.id for t in trajectories}, time.time() + OVERDUE)
            if changes.moment:
                connection.execute("DELETE FROM meta WHERE key = 'live'")
                execute(connection, "INSERT INTO meta VALUES ('live', ?)", [changes.moment])
        self._note_shares(changes, time.monotonic() - start, has_derived=due)
        if due:
            self._event_counts.clear()
        self._derive_at = math.inf if due else min(self._derive_at, time.monotonic() + DERIVE)
        self._live_digests |= {t.id: digest(t) for t in trajectories if merge.is_heard(t)}
        while len(self._live_digests) > REMEMBERED:
            del self._live_digests[next(iter(self._live_digests))]
        return trajectories

    def _save(
        self,
        connection: duckdb.DuckDBPyConnection,
        changes: Changes,
        ids_by_source: dict[str, tuple[str, ...]],
        excluded_ids: Collection[str],
    ) -> list[Trajectory]:
        """Store what is new or has grown. `ids_by_source` holds the ids that each source gave before, and is
        updated to those that it gives now."""
        trajectories = [trajectory for _, some in changes.read_sources.values() for trajectory in some]
        records = summaries_by_id(
            connection, [*changes.heard_trajectories, *(trajectory.id for trajectory in trajectories)]
        )
        self.new_ids = {
            key
            for key in (*changes.heard_trajectories, *(trajectory.id for trajectory in trajectories))
            if key not in records
        }
        sessions = Sessions(self.store, connection)
        result = IngestResult()
        for key, (trajectory, options) in changes.heard_trajectories.items():
            # What this process wrote last and nobody touched since needs no comparison.
            mine = (
                key in records
                and records[key].digest == self._live_digests.get(key)
                and merge.is_heard(trajectory)
            )
            whole = trajectory if mine else resolve_identity(sessions, trajectory, options, result)[1]
            if whole is not None:
                sessions.keep(whole)
        live_names = names_heard(connection, {trajectory.native_id for trajectory in trajectories})
        live_names |= {trajectory.native_id for trajectory, _ in changes.heard_trajectories.values()}
        late: list[tuple[Source, Trajectory]] = []
        for source, some in changes.read_sources.values():
            late += _keep_fresh(sessions, source, some, records, live_names, ids_by_source)
        sessions.expect([trajectory.id for _, trajectory in late])
        for source, trajectory in late:
            now = ids_by_source[source.path]
            contents = {source.path: source.content_hash}
            key, whole = resolve_identity(sessions, trajectory, source.options, result, contents, now)
            ids_by_source[source.path] = (*now, key)
            if whole is not None:
                sessions.keep(whole)
                result.note_whole(source.path, key)
        self._remember(result)
        return sessions.save(but=excluded_ids)

    def _remember(self, result: IngestResult) -> None:
        """Keep what there is to say, once, though a log is read at each step; that it is shorter, too."""
        shorter = dict(result.shorter)
        result.shorter = {key: one for key, one in shorter.items() if key not in self._shorter}
        self.notes += [note for note in result.notes if note not in self._reported_notes]
        self.notes += result.losses()
        self._shorter |= shorter.keys()
        self._reported_notes |= {*result.notes}

    def _note(
        self,
        connection: duckdb.DuckDBPyConnection,
        changes: Changes,
        ids_by_source: Mapping[str, tuple[str, ...]],
    ) -> None:
        """Put the sources, with the ids that they give, into the table, and those that are to be noted into
        the ledger."""
        sources = {path: source for path, (source, _) in changes.read_sources.items()} | changes.sources
        now = {
            path: source.model_copy(update={"trajectory_ids": ids_by_source.get(path, ())})
            for path, source in sources.items()
        }
        keep(self.store, connection, list(now.values()), [now[path] for path in changes.sources])
        self._noted_sources |= {path: now[path] for path in changes.sources}

    @staticmethod
    def _quarantine(connection: duckdb.DuckDBPyConnection, changes: Changes) -> None:
        renewed = sorted(changes.renewed_sources)
        delete(connection, "quarantine", "read_from", [*renewed, *map(refusal_of, renewed)])
        for source, items in changes.quarantined.items():
            for item in items:
                execute(
                    connection,
                    "DELETE FROM quarantine WHERE source = ? AND line IS NOT DISTINCT FROM ?",
                    [item.source, item.line],
                )
            insert(connection, "quarantine", [{**q.model_dump(), "read_from": source} for q in items])


def _keep_fresh(
    sessions: Sessions,
    source: Source,
    trajectories: Sequence[Trajectory],
    records: Mapping[str, Summary],
    live_names: Collection[str],
    ids_by_source: dict[str, tuple[str, ...]],
) -> Iterator[tuple[Source, Trajectory]]:
    """Keep what is new of a source's trajectories; yields those that must be compared with others, under the
    ids that the store has for them."""
    ids_with_suffix = with_suffixes(set(ids_by_source.get(source.path, ())))
    now: list[str] = []
    for trajectory in trajectories:
        before = records.get(trajectory.id)
        condition = source.options.condition
        if trajectory.id in ids_with_suffix:
            yield source, trajectory.model_copy(update={"id": ids_with_suffix[trajectory.id]})
        elif (
            sessions.waits(trajectory.id) or trajectory.native_id in live_names or merge.was_heard(trajectory)
        ):
            yield source, trajectory
        elif before is None:
            sessions.keep(trajectory)
            now.append(trajectory.id)
        elif before.digest == digest(trajectory) and condition in (None, before.condition):
            now.append(trajectory.id)
        else:
            yield source, trajectory
    ids_by_source[source.path] = tuple(now)
