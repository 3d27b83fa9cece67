"""Into the store in short transactions: what has changed since the last one, all at once.

One writer a process, and at most two thirds of the time in transactions, so that readers and other
writers get their turn. What is derived is refreshed now and then, with one of them.
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
from ..ingest.blocks import Known
from ..ingest.forgetting import Outside, outside
from ..ingest.identity import Sessions, known_by_id, names_heard, settled, with_suffixes
from ..ingest.measure import save
from ..ingest.result import Ingested
from ..ingest.sources import Source, given_by, keep, noted, with_copy
from ..ingest.succession import superseded
from ..store import Store, delete, execute, insert
from ..store.columns import digest
from ..store.removal import clear, remove
from ..systems import ReadOptions, merge

PACE = 0.25
"""Seconds from one transaction to the next, at least."""
SHARE = 1.5
"""Of the time, one part in so many is spent in transactions at most."""
LONGEST_REST = 1.0
DERIVE = 3.0
"""Seconds from one refreshing of measures to the next: it costs half of what storing events does."""
OVERDUE = 15.0
"""Seconds after which somebody else refreshes them: then this process is gone."""
T = TypeVar("T")
REMEMBERED = 10_000
"""Trajectories whose last stored version this process remembers."""


@dataclass
class Changes:
    """What waits for the next transaction."""

    heard: dict[str, tuple[Trajectory, ReadOptions]] = field(default_factory=dict)
    """Trajectories by id."""
    read: dict[str, tuple[Source, Sequence[Trajectory]]] = field(default_factory=dict)
    """By its path, a source and all that it gives."""
    sources: dict[str, Source] = field(default_factory=dict)
    quarantined: dict[str, list[Quarantined]] = field(default_factory=dict)
    """By source, what could not be read of it."""
    anew: set[str] = field(default_factory=set)
    """Sources of which that is all, in place of what was quarantined of them before."""
    replaced: list[str] = field(default_factory=list)
    """Ids that turned out to be another trajectory's."""
    moment: str | None = None
    """When the last event was received."""
    more: list[Callable[[duckdb.DuckDBPyConnection], None]] = field(default_factory=list)

    def without(self, outside: Outside) -> Changes:
        """The same without what is to be left out."""
        sessions = {key: one for key, one in self.heard.items() if key not in outside.trajectories}
        return replace(
            self,
            heard={key: one for key, one in sessions.items() if one[0].source not in outside.sources},
            read=_but(self.read, outside.sources),
            sources=_but(self.sources, outside.sources),
            quarantined=_but(self.quarantined, outside.sources),
            anew=self.anew - outside.sources,
        )

    def __bool__(self) -> bool:
        trajectories = self.heard or self.read or self.replaced
        return bool(trajectories or self.sources or self.quarantined or self.more)


def _copy_of(source: Source) -> tuple[str, str, str | None]:
    """Which copy of a source a line of the ledger notes."""
    return source.path, source.content_hash, source.copied


def _but(by_source: dict[str, T], paths: Collection[str]) -> dict[str, T]:
    return {path: value for path, value in by_source.items() if path not in paths}


class Sink:
    """Collects changes from any thread; `flush` stores them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._changes = Changes()
        self._written: dict[str, str] = {}
        self._noted: dict[str, Source] = {}
        self._lock = threading.Lock()
        self._rest_until = 0.0
        self._derive_at = math.inf
        self._refused: Counter[str] = Counter()
        """By source, how much of it could not be read."""
        self.new: set[str] = set()
        """Ids that the last transaction stored for the first time."""
        self.gone: set[str] = set()
        """Ids that it took out, since another trajectory stands in their place."""

    def put(self, trajectory: Trajectory, options: ReadOptions) -> None:
        """Store this trajectory next time, in place of what waits under its id."""
        with self._lock:
            waiting = self._changes.heard.get(trajectory.id)
            together = waiting and merge.settled(waiting[0], trajectory)
            self._changes.heard[trajectory.id] = (together or trajectory, options)

    def take(self, source: Source, trajectories: Sequence[Trajectory]) -> None:
        """Store all that a source gives next time, in place of what waits of it.

        Two sources may give one id, and so may one of them twice: who is whose is told as it is stored.
        """
        with self._lock:
            self._changes.read[source.path] = (source, trajectories)

    def heard(self, moment: str) -> None:
        """Something was received at that time (UTC)."""
        with self._lock:
            self._changes.moment = moment

    def note(self, source: Source) -> None:
        """Have the source in the ledger and the store."""
        with self._lock:
            self._changes.sources[source.path] = source

    def met(self, source: Source) -> None:
        """A log that is known and as it was: a study may lack it, where whoever followed it was killed."""
        self._noted[source.path] = source

    def quarantine(self, source: str, items: Iterable[Quarantined], *, anew: bool) -> None:
        """What could not be read of a source; `anew`: in place of what was said of it before."""
        with self._lock:
            fresh = list(items)
            if anew:
                self._changes.anew.add(source)
                self._changes.quarantined[source] = []
                self._refused[source] = 0
            self._changes.quarantined.setdefault(source, []).extend(fresh)
            self._refused[source] += len(fresh)

    @property
    def quarantined(self) -> int:
        """How much of what was followed could not be read."""
        return self._refused.total()

    def replace(self, wrong: str) -> None:
        """Forget a trajectory that turned out to be another one."""
        with self._lock:
            self._changes.heard.pop(wrong, None)
            self._changes.replaced.append(wrong)

    def also(self, work: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Do this in the next transaction, before it loads the ledgers.

        A ledger that is written here is never seen ahead of the store: else every reader would load it.
        """
        with self._lock:
            self._changes.more.append(work)

    def open(self) -> None:
        """Make the tables where there are none, and load what the first transaction would wait for."""
        try:
            with self.store.writing() as connection:
                save(self.store, (), connection)
                self.store.catch_up(connection)
        except duckdb.Error as error:
            raise WriteError(f"{self.store.workspace.store_url}: cannot store: {error}") from error

    def due(self) -> float:
        """Seconds until the next transaction may be."""
        return max(0.0, self._rest_until - time.monotonic())

    def flush(self) -> list[Trajectory]:
        """Store what has changed, in one transaction; the trajectories as they are stored now."""
        with self._lock:
            changes, self._changes = self._changes, Changes()
        if not changes:
            return []
        with self._paced():
            trajectories = self._store(changes)
        return trajectories

    def derive(self, *, now: bool = False) -> None:
        """Refresh what is derived from what was stored, if that is due, or `now`, and no transaction did."""
        if time.monotonic() < self._derive_at and not (now and self._derive_at < math.inf):
            return
        with self._paced(), self.store.writing() as connection:
            self.store.catch_up(connection)
        self._derive_at = math.inf

    def share_logs(self) -> None:
        """Give the study the logs that were followed, so that other machines can read them again."""
        if not self.store.is_shared:
            return
        copies_before = {_copy_of(source) for source in noted(self.store.workspace)[0]}
        copies = [copy for source in self._noted.values() if (copy := with_copy(self.store, source))]
        copies = [copy for copy in copies if _copy_of(copy) not in copies_before]
        if copies:
            with self.store.writing() as connection:
                keep(self.store, connection, copies, copies)

    @contextmanager
    def _paced(self) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        except duckdb.Error as error:
            raise WriteError(f"{self.store.workspace.store_url}: cannot store: {error}") from error
        finally:
            seconds = time.monotonic() - start
            self._rest_until = time.monotonic() + min(LONGEST_REST, max(PACE, (SHARE - 1) * seconds))

    def _store(self, changes: Changes) -> list[Trajectory]:
        with self.store.writing() as connection:
            # Whoever forgets something after this takes out what is stored here.
            left_out = outside(self.store.workspace)
            changes = changes.without(left_out)
            clear(connection, changes.replaced)
            before = given_by(connection, [*changes.read, *changes.sources])
            ids_by_source = dict(before)
            trajectories = self._save(connection, changes, ids_by_source, left_out.trajectories)
            self._note(connection, changes, ids_by_source)
            now = [
                source.model_copy(update={"trajectory_ids": ids_by_source[path]})
                for path, (source, _) in changes.read.items()
            ]
            superseded_ids = set().union(*superseded(connection, now, before).values())
            self.gone = {*changes.replaced, *superseded_ids} - {t.id for t in trajectories}
            remove(connection, self.gone)
            self._quarantine(connection, changes)
            for work in changes.more:
                work(connection)
            due = time.monotonic() >= self._derive_at
            if due:
                self.store.catch_up(connection, {t.id for t in trajectories})
            else:
                self.store.postpone(connection, {t.id for t in trajectories}, time.time() + OVERDUE)
            if changes.moment:
                connection.execute("DELETE FROM meta WHERE key = 'live'")
                execute(connection, "INSERT INTO meta VALUES ('live', ?)", [changes.moment])
        self._derive_at = math.inf if due else min(self._derive_at, time.monotonic() + DERIVE)
        self._written |= {t.id: digest(t) for t in trajectories if merge.is_heard(t)}
        while len(self._written) > REMEMBERED:
            del self._written[next(iter(self._written))]
        return trajectories

    def _save(
        self,
        connection: duckdb.DuckDBPyConnection,
        changes: Changes,
        ids_by_source: dict[str, tuple[str, ...]],
        excluded_ids: Collection[str],
    ) -> list[Trajectory]:
        """Store what is new or has grown; `given`, what each source gave before, says what it gives now."""
        trajectories = [trajectory for _, some in changes.read.values() for trajectory in some]
        records = known_by_id(connection, [*changes.heard, *(trajectory.id for trajectory in trajectories)])
        self.new = {
            key
            for key in (*changes.heard, *(trajectory.id for trajectory in trajectories))
            if key not in records
        }
        sessions = Sessions(self.store, connection)
        result = Ingested()
        for key, (trajectory, options) in changes.heard.items():
            # What this process wrote last and nobody touched since needs no comparison.
            mine = (
                key in records
                and records[key].digest == self._written.get(key)
                and merge.is_heard(trajectory)
            )
            whole = trajectory if mine else settled(sessions, trajectory, options, result)[1]
            if whole is not None:
                sessions.keep(whole)
        live_names = names_heard(connection, {trajectory.native_id for trajectory in trajectories})
        live_names |= {trajectory.native_id for trajectory, _ in changes.heard.values()}
        late: list[tuple[Source, Trajectory]] = []
        for source, some in changes.read.values():
            late += _keep_fresh(sessions, source, some, records, live_names, ids_by_source)
        sessions.expect([trajectory.id for _, trajectory in late])
        for source, trajectory in late:
            now = ids_by_source[source.path]
            contents = {source.path: source.content_hash}
            key, whole = settled(sessions, trajectory, source.options, result, contents, now)
            ids_by_source[source.path] = (*now, key)
            if whole is not None:
                sessions.keep(whole)
        return sessions.save(but=excluded_ids)

    def _note(
        self,
        connection: duckdb.DuckDBPyConnection,
        changes: Changes,
        ids_by_source: Mapping[str, tuple[str, ...]],
    ) -> None:
        """Have the sources in the table with what they give, and those that are to be noted in the ledger."""
        sources = {path: source for path, (source, _) in changes.read.items()} | changes.sources
        now = {
            path: source.model_copy(update={"trajectory_ids": ids_by_source.get(path, ())})
            for path, source in sources.items()
        }
        keep(self.store, connection, list(now.values()), [now[path] for path in changes.sources])
        self._noted |= {path: now[path] for path in changes.sources}

    @staticmethod
    def _quarantine(connection: duckdb.DuckDBPyConnection, changes: Changes) -> None:
        delete(connection, "quarantine", "read_from", sorted(changes.anew))
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
    records: Mapping[str, Known],
    live_names: Collection[str],
    ids_by_source: dict[str, tuple[str, ...]],
) -> Iterator[tuple[Source, Trajectory]]:
    """Keep what is new of a source's trajectories; those that must be held against others, under the ids by
    which the store has them.
    """
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
