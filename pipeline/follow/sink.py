"""Into the store in short transactions: what has changed since the last one, all at once.

One writer a process, and at most two thirds of the time in transactions, so that readers and other
writers get their turn. What is derived is refreshed now and then, with one of them.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb

from ...schemas import Quarantined, Trajectory
from ..errors import WriteError
from ..ingest.identity import Sessions, settled
from ..ingest.measure import save
from ..ingest.result import Ingested
from ..ingest.sources import Source, keep, with_copy
from ..store import AMONG, Store, delete, execute, insert, texts
from ..store.columns import digest
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
REMEMBERED = 10_000
"""Trajectories whose last stored version this process remembers."""
OWNED = ("participants", "events", "units", "computed", "outcomes")


@dataclass
class Changes:
    """What waits for the next transaction."""

    trajectories: dict[str, tuple[Trajectory, ReadOptions]] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    quarantined: dict[str, list[Quarantined]] = field(default_factory=dict)
    """By source."""
    read: set[str] = field(default_factory=set)
    """Sources that were read whole: what was quarantined of them before holds no more."""
    replaced: list[str] = field(default_factory=list)
    """Ids that turned out to be another trajectory's."""
    heard: str | None = None
    """When the last event was received."""
    more: list[Callable[[duckdb.DuckDBPyConnection], None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(
            self.trajectories or self.sources or self.quarantined or self.read or self.replaced or self.more
        )


class Sink:
    """Collects changes from any thread; `flush` stores them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.result = Ingested()
        self._changes = Changes()
        self._written: dict[str, str] = {}
        self._noted: dict[str, Source] = {}
        self._lock = threading.Lock()
        self._rest_until = 0.0
        self._derive_at = math.inf
        self.quarantined = 0
        self.new: set[str] = set()
        """Ids that the last transaction stored for the first time."""

    def put(self, trajectory: Trajectory, options: ReadOptions) -> None:
        """Store this trajectory next time, in place of what waits under its id."""
        with self._lock:
            waiting = self._changes.trajectories.get(trajectory.id)
            together = waiting and merge.settled(waiting[0], trajectory)
            self._changes.trajectories[trajectory.id] = (together or trajectory, options)

    def heard(self, moment: str) -> None:
        """Something was received at that time (UTC)."""
        with self._lock:
            self._changes.heard = moment

    def note(self, source: Source) -> None:
        """Have the source in the ledger and the store."""
        with self._lock:
            self._changes.sources[source.path] = source

    def quarantine(self, source: str, items: Iterable[Quarantined], *, anew: bool) -> None:
        """What could not be read of a source; `anew`: in place of what was said of it before."""
        with self._lock:
            kept = [] if anew else self._changes.quarantined.get(source, [])
            fresh = list(items)
            self.quarantined += len(fresh)
            self._changes.quarantined[source] = [*kept, *fresh]
            if anew:
                self._changes.read.add(source)

    def replace(self, wrong: str) -> None:
        """Forget a trajectory that turned out to be another one."""
        with self._lock:
            self._changes.trajectories.pop(wrong, None)
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
            saved = self._store(changes)
        return saved

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
        copies = [copy for source in self._noted.values() if (copy := with_copy(self.store, source))]
        if copies:
            with self.store.writing() as connection:
                keep(self.store, connection, copies, copies)

    @contextmanager
    def _paced(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        except duckdb.Error as error:
            raise WriteError(f"{self.store.workspace.store_url}: cannot store: {error}") from error
        finally:
            took = time.monotonic() - began
            self._rest_until = time.monotonic() + min(LONGEST_REST, max(PACE, (SHARE - 1) * took))

    def _store(self, changes: Changes) -> list[Trajectory]:
        with self.store.writing() as connection:
            for table in OWNED:
                delete(connection, table, "trajectory_id", changes.replaced)
            delete(connection, "trajectories", "id", changes.replaced)
            saved = self._save(connection, changes)
            sources = list(changes.sources.values())
            keep(self.store, connection, sources, sources)
            self._noted |= {source.path: source for source in sources}
            self._quarantine(connection, changes)
            for work in changes.more:
                work(connection)
            due = time.monotonic() >= self._derive_at
            if due:
                self.store.catch_up(connection, {t.id for t in saved})
            else:
                self.store.postpone(connection, {t.id for t in saved}, time.time() + OVERDUE)
            if changes.heard:
                connection.execute("DELETE FROM meta WHERE key = 'live'")
                execute(connection, "INSERT INTO meta VALUES ('live', ?)", [changes.heard])
        self._derive_at = math.inf if due else min(self._derive_at, time.monotonic() + DERIVE)
        self._written |= {t.id: digest(t) for t in saved if merge.is_heard(t)}
        while len(self._written) > REMEMBERED:
            del self._written[next(iter(self._written))]
        return saved

    def _save(self, connection: duckdb.DuckDBPyConnection, changes: Changes) -> list[Trajectory]:
        ids = list(changes.trajectories)
        query = f"SELECT id, digest FROM trajectories WHERE id {AMONG}"
        stored = dict(execute(connection, query, [texts(ids)]).fetchall())
        self.new = {key for key in ids if key not in stored}
        fresh = []
        sessions = Sessions(self.store, connection)
        for key, (given, options) in changes.trajectories.items():
            # What this process wrote last and nobody touched since needs no comparison.
            mine = stored.get(key, "") == self._written.get(key) and merge.is_heard(given)
            trajectory = given if mine else settled(sessions, given, options, self.result)[1]
            if trajectory is None:
                self.result.unchanged += 1
                continue
            fresh.append(trajectory)
        save(self.store, fresh, connection, refresh=False)
        return fresh

    @staticmethod
    def _quarantine(connection: duckdb.DuckDBPyConnection, changes: Changes) -> None:
        """What was read whole is known by its path, as what `ingest` reads is, which thus replaces it."""
        delete(connection, "quarantine", "read_from", list(changes.read))
        for source, items in changes.quarantined.items():
            for item in items:
                execute(
                    connection,
                    "DELETE FROM quarantine WHERE source = ? AND line IS NOT DISTINCT FROM ?",
                    [item.source, item.line],
                )
            read_from = source if source in changes.read else None
            insert(connection, "quarantine", [{**q.model_dump(), "read_from": read_from} for q in items])
