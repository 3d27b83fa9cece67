"""Into the store in short transactions: what has changed since the last one, all at once.

One writer a process, at most two transactions a second, and never more than half of the time in
them, so that readers and other writers get their turn.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import duckdb

from coaudit.pipeline import ledger, rows
from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.ingest import Ingested, note_sources, settled
from coaudit.pipeline.live import joining
from coaudit.pipeline.provenance import Source
from coaudit.pipeline.sources.reader import ReadOptions
from coaudit.pipeline.store import Store, delete, insert
from coaudit.schemas.trajectory import Quarantined, Trajectory

PACE = 0.5
"""Seconds from one transaction to the next, at least."""
SHARE = 2.0
"""Of the time, one part in so many is spent in transactions at most."""
LONGEST_REST = 1.0
DERIVE = 3.0
"""Seconds from one refreshing of measures to the next: it costs as much as all the rest."""
OVERDUE = 15.0
"""Seconds after which somebody else refreshes them: then this process is gone."""
REMEMBERED = 1000
"""Trajectories whose last stored version this process remembers."""
OWNED = ("participants", "events", "units", "computed", "outcomes")


@dataclass
class Changes:
    """What waits for the next transaction."""

    trajectories: dict[str, tuple[Trajectory, ReadOptions]] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    quarantined: dict[str, list[Quarantined]] = field(default_factory=dict)
    """By source; in place of what was quarantined of it before."""
    replaced: list[str] = field(default_factory=list)
    """Ids that turned out to be another trajectory's."""
    heard: str | None = None
    """When the last event was received."""
    more: list[Callable[[duckdb.DuckDBPyConnection], None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.trajectories or self.sources or self.quarantined or self.replaced or self.more)


class Sink:
    """Collects changes from any thread; `flush` stores them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.result = Ingested()
        self._changes = Changes()
        self._written: dict[str, str] = {}
        self._lock = threading.Lock()
        self._rest_until = 0.0
        self._underived: set[str] = set()
        self._derived = time.monotonic()
        self.quarantined = 0
        self.new: set[str] = set()
        """Ids that the last transaction stored for the first time."""
        self.last = False
        """Whether the next transaction is the last one."""
        self.ledgers: list[Callable[[], bool]] = []
        """Write to a ledger right before a transaction loads it; each says whether there was anything."""

    def put(self, trajectory: Trajectory, options: ReadOptions) -> None:
        """Store this trajectory next time, in place of what waits under its id."""
        with self._lock:
            waiting = self._changes.trajectories.get(trajectory.id)
            together = waiting and joining.settled(waiting[0], trajectory)
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
            if items := [*kept, *fresh]:
                self._changes.quarantined[source] = items

    def replace(self, wrong: str) -> None:
        """Forget a trajectory that turned out to be another one."""
        with self._lock:
            self._changes.trajectories.pop(wrong, None)
            self._changes.replaced.append(wrong)

    def also(self, work: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Do this in the next transaction."""
        with self._lock:
            self._changes.more.append(work)

    def open(self) -> None:
        """Make the tables where there are none, and load what the first transaction would wait for."""
        try:
            with self.store.writing() as connection:
                self.store.save((), connection)
                self.store.catch_up(connection)
        except duckdb.Error as error:
            raise StoreError(f"{self.store.workspace.store_url}: cannot store: {error}") from error

    def due(self) -> float:
        """Seconds until the next transaction may be."""
        return max(0.0, self._rest_until - time.monotonic())

    def flush(self) -> list[Trajectory]:
        """Store what has changed, in one transaction; the trajectories as they are stored now."""
        with self._lock:
            changes, self._changes = self._changes, Changes()
        wrote = [write() for write in self.ledgers]
        if not changes and not any(wrote) and not (self.last and self._underived):
            return []
        began = time.monotonic()
        try:
            return self._store(changes)
        except duckdb.Error as error:
            why = f"{self.store.workspace.store_url}: cannot store: {error}; follow again to go on"
            raise StoreError(why) from error
        finally:
            took = time.monotonic() - began
            self._rest_until = time.monotonic() + min(LONGEST_REST, max(PACE, (SHARE - 1) * took))

    def _store(self, changes: Changes) -> list[Trajectory]:
        with self.store.writing() as connection:
            for table in OWNED:
                delete(connection, table, "trajectory_id", changes.replaced)
            delete(connection, "trajectories", "id", changes.replaced)
            saved = self._save(connection, changes)
            for source in changes.sources.values():
                note_sources(connection, [source])
            self._quarantine(connection, changes.quarantined)
            for work in changes.more:
                work(connection)
            self._derive(connection, {t.id for t in saved})
            if changes.heard:
                connection.execute("DELETE FROM meta WHERE key = 'live'")
                connection.execute("INSERT INTO meta VALUES ('live', ?)", [changes.heard])
        if changes.sources:
            noted = [s.model_dump_json(exclude_defaults=True) for s in changes.sources.values()]
            ledger.append(self.store.workspace.sources, noted)
        self._written |= {t.id: rows.digest(t) for t in saved if joining.is_heard(t)}
        while len(self._written) > REMEMBERED:
            del self._written[next(iter(self._written))]
        return saved

    def _derive(self, connection: duckdb.DuckDBPyConnection, ids: set[str]) -> None:
        """Load the ledgers (else every reader would, as a writer); refresh what is derived now and then."""
        self._underived |= ids
        now = time.monotonic()
        if now < self._derived + DERIVE and not self.last:
            self._underived |= self.store.postpone(connection, time.time() + OVERDUE)
            return
        self.store.catch_up(connection, self._underived)
        self._underived, self._derived = set(), now

    def _save(self, connection: duckdb.DuckDBPyConnection, changes: Changes) -> list[Trajectory]:
        ids = list(changes.trajectories)
        query = "SELECT id, digest FROM trajectories WHERE id IN (SELECT unnest(?))"
        stored = dict(connection.execute(query, [ids]).fetchall())
        self.new = {key for key in ids if key not in stored}
        fresh = []
        for key, (given, options) in changes.trajectories.items():
            # What this process wrote last and nobody touched since needs no comparison.
            mine = stored.get(key, "") == self._written.get(key) and joining.is_heard(given)
            found = given if mine else settled(self.store, connection, given, options, self.result)
            if found is None:
                self.result.unchanged += 1
                continue
            fresh.append(found)
        self.store.save(fresh, connection, refresh=False)
        return fresh

    @staticmethod
    def _quarantine(connection: duckdb.DuckDBPyConnection, found: dict[str, list[Quarantined]]) -> None:
        for items in found.values():
            for item in items:
                connection.execute(
                    "DELETE FROM quarantine WHERE source = ? AND line IS NOT DISTINCT FROM ?",
                    [item.source, item.line],
                )
            insert(connection, "quarantine", [(q.source, q.line, q.reason, None) for q in items])
