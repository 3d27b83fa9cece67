"""How far alerts have got, kept in the store, so that a stop or a kill loses none.

A session is marked in the transaction that stores it. The mark goes once its alerts were raised, unless
somebody waits in it for an answer. The next follower takes up what is marked: after a kill in between, an
alert is raised a second time rather than never.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path

import duckdb

from ...schemas import Trajectory
from ..store import ALERTS, AMONG, Store, delete, execute, insert, texts
from .alerts import Alerts, Mark
from .sink import Sink

BATCH = 500
"""Trajectories that are loaded at a time, and a few more."""


@dataclass(frozen=True)
class OpenSessions:
    """What the last follower of some places left open."""

    seqs: dict[str, int]
    """Trajectory -> seq of the last event that there is nothing to raise about any more, of all that are
    stored."""
    marks: dict[str, Mark]
    """By trajectory."""
    groups: Sequence[Sequence[str]] = ()
    """The trajectories that are marked; those that have one native id in a source together, since of these
    one that is looked at alone would seem to stand in the place of the other."""

    @classmethod
    def read(cls, store: Store, places: Sequence[Path], before: Mapping[str, int] | None) -> OpenSessions:
        """The sessions at or below these places that are marked or have grown.

        `before` has what was stored before this process first read what a kill had kept from the tables; None
        where there were none.
        """
        now = last_seqs(store)
        if now is None:
            return cls({}, {})
        seqs = now if before is None else {key: min(seq, before.get(key, -1)) for key, seq in now.items()}
        with store.reading(synced=True) as connection:
            query = "SELECT key, value FROM meta WHERE starts_with(key, ?)"
            rows = execute(connection, query, [ALERTS]).fetchall()
            marks = {key.removeprefix(ALERTS): Mark(**json.loads(value)) for key, value in rows}
            ids = {*marks, *(key for key, seq in now.items() if seq > seqs[key])}
            query = (
                f"SELECT list(id ORDER BY id), source FROM trajectories WHERE id {AMONG} "
                "GROUP BY source, native_id ORDER BY source, native_id"
            )
            groups = execute(connection, query, [texts(ids)]).fetchall()
        roots = {read(place) for place in places for read in (os.path.abspath, os.path.realpath)}
        is_below = cache(partial(_is_below, roots=roots))
        below = [group for group, source in groups if is_below(source)]
        marks = {key: marks.get(key, Mark(seqs.get(key, -1))) for key in chain(*below)}
        return cls(seqs | {key: mark.seq for key, mark in marks.items()}, marks, below)

    def trajectories(self, store: Store) -> Iterator[list[Trajectory]]:
        """Those that are marked, some at a time: a follower that was away for long may have left many."""
        ids: list[str] = []
        for group in self.groups:
            ids += group
            if len(ids) >= BATCH or group is self.groups[-1]:
                with store.reading(synced=True) as connection:
                    some = store.load(connection, ids)
                yield some
                ids = []


def last_seqs(store: Store) -> dict[str, int] | None:
    """Trajectory -> seq of its last event, of those that are stored; None where there are no tables."""
    if not store.has_tables():
        return None
    last = "SELECT trajectory_id, max(seq) FROM events WHERE NOT live_only GROUP BY trajectory_id"
    with store.reading(synced=True) as connection:
        return dict(connection.execute(last).fetchall())


class Marks:
    """A watcher behind `Alerts` that keeps the marks."""

    def __init__(
        self,
        sink: Sink,
        alerts: Alerts,
        marks: Mapping[str, Mark],
        *,
        is_alerting: Callable[[], bool] = lambda: True,
        is_sent: Callable[[str], bool] = lambda trajectory: True,
    ) -> None:
        self.sink = sink
        self.alerts = alerts
        self.marks = dict(marks)
        self.is_alerting = is_alerting
        """Whether what is stored still raises alerts: else all marks stay."""
        self.is_sent = is_sent
        """Whether the alerts about a trajectory have reached whom they are for: else its mark stays."""
        self._changed_ids: set[str] = set()
        """Trajectories whose marks the store does not have yet as they are."""
        self._open_ids: set[str] = set()
        """Trajectories whose marks may have to go, or to be others."""
        self._unsent_ids: dict[str, list[str]] = {}
        """Trajectory -> ids that it had before, with alerts that have not reached whom they are for."""
        self._alert_count = 0
        """How many alerts there were at the last look."""
        sink.companions.append(self.note)

    def note(self, connection: duckdb.DuckDBPyConnection, trajectories: Sequence[Trajectory]) -> None:
        """Mark what is being stored. A mark that is there stays: what came after it is not raised yet."""
        if self.sink.gone_ids:
            self.alerts.recall(self.sink.store.load(connection, sorted(self.sink.gone_ids)))
        ids = {one.id for one in trajectories}
        for one in trajectories:
            former = self.alerts.former_id(one, ids)
            if former is not None:
                self._rename(former, one.id)
            if one.id not in self.marks:
                self.marks[one.id] = self.alerts.mark(former or one.id)
                self._changed_ids.add(one.id)
        self._save(connection)

    def _rename(self, former: str, key: str) -> None:
        """Have a mark stay under the trajectory's new id."""
        ids = [former, *self._unsent_ids.pop(former, ())]
        self._unsent_ids |= {key: unsent} if (unsent := [one for one in ids if not self.is_sent(one)]) else {}
        if former in self.marks:
            self.marks[key] = self.marks.pop(former)
            self._changed_ids |= {former, key}

    async def __call__(self, trajectories: Sequence[Trajectory]) -> None:
        """Have only the marks of sessions in which somebody waits kept."""
        if not self.is_alerting():
            return
        self._open_ids |= self.alerts.changed_ids
        self.alerts.changed_ids.clear()
        waiting = self.alerts.waiting_marks(self._open_ids)
        there = self._open_ids & self.marks.keys()
        self._open_ids = {key for key in there if self.marks[key] != waiting.get(key)}
        ids = {key for key in self._open_ids if self._is_sent(key)}
        self._open_ids -= ids
        if not ids:
            return
        for key in ids:
            del self.marks[key]
            self._unsent_ids.pop(key, None)
        self.marks |= {key: waiting[key] for key in ids & waiting.keys()}
        self._changed_ids |= ids
        # What was raised is noted at once, so that a kill seldom comes in between.
        if self.alerts.count > self._alert_count:
            self._alert_count = self.alerts.count
            await asyncio.to_thread(self.sink.do, self._save)
        else:
            self.sink.add_work(self._save)

    def _is_sent(self, key: str) -> bool:
        return all(map(self.is_sent, (key, *self._unsent_ids.get(key, ()))))

    def _save(self, connection: duckdb.DuckDBPyConnection) -> None:
        ids, self._changed_ids = self._changed_ids, set()
        if ids:
            delete(connection, "meta", "key", [ALERTS + key for key in ids])
            marks = {key: self.marks[key] for key in ids if key in self.marks}
            values = [{"key": ALERTS + key, "value": json.dumps(vars(mark))} for key, mark in marks.items()]
            insert(connection, "meta", values)


def _is_below(source: str, roots: Collection[str]) -> bool:
    """Whether a source is at or below one of these places, also where a link leads there."""
    forms = (read(source) for read in (os.path.abspath, os.path.realpath))
    return any(Path(form).is_relative_to(root) for form in forms for root in roots)
