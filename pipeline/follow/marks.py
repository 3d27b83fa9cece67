"""How far alerts have got, kept in the store, so that a stop or a kill loses none.

A session is marked in the transaction that stores it. The mark goes once its alerts were raised, unless
somebody waits in it for an answer. The next follower takes up what is marked: after a kill in between, an
alert is raised a second time rather than never.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from ...schemas import Trajectory
from ..store import ALERTS, Store, delete, execute, insert
from .alerts import Alerts, Mark
from .sink import Sink


@dataclass(frozen=True)
class OpenSessions:
    """What the last follower of some places left open."""

    seqs: dict[str, int]
    """Trajectory -> seq of the last event that there is nothing to raise about any more, of all that are
    stored."""
    marks: dict[str, Mark]
    """By trajectory."""
    trajectories: list[Trajectory]

    @classmethod
    def read(cls, store: Store, places: Sequence[Path], before: Mapping[str, int] | None) -> OpenSessions:
        """The sessions at or below these places that are marked or have grown.

        `before` has what was stored before this process first read what a kill had kept from the tables; None
        where there were none.
        """
        now = last_seqs(store)
        if now is None:
            return cls({}, {}, [])
        seqs = now if before is None else {key: min(seq, before.get(key, -1)) for key, seq in now.items()}
        with store.reading(synced=True) as connection:
            query = "SELECT key, value FROM meta WHERE starts_with(key, ?)"
            rows = execute(connection, query, [ALERTS]).fetchall()
            marks = {key.removeprefix(ALERTS): Mark(**json.loads(value)) for key, value in rows}
            ids = {*marks, *(key for key, seq in now.items() if seq > seqs[key])}
            trajectories = store.load(connection, sorted(ids)) if ids else []
        trajectories = [one for one in trajectories if _is_below(one.source, places)]
        marks = {one.id: marks.get(one.id, Mark(seqs.get(one.id, -1))) for one in trajectories}
        return cls(seqs | {key: mark.seq for key, mark in marks.items()}, marks, trajectories)


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
        self._alert_count = 0
        """How many alerts there were at the last look."""
        sink.companions.append(self.note)

    def note(self, connection: duckdb.DuckDBPyConnection, trajectories: Sequence[Trajectory]) -> None:
        """Mark what is being stored. A mark that is there stays: what came after it is not raised yet."""
        if self.sink.gone_ids:
            self.alerts.recall(self.sink.store.load(connection, sorted(self.sink.gone_ids)))
        new = {one.id: self.alerts.mark(one) for one in trajectories if one.id not in self.marks}
        self.marks |= new
        self._changed_ids |= new.keys()
        self._save(connection)

    async def __call__(self, trajectories: Sequence[Trajectory]) -> None:
        """Have only the marks of sessions in which somebody waits kept."""
        if not self.is_alerting():
            return
        waiting = self.alerts.waiting_marks(self.marks)
        ids = {key for key, mark in self.marks.items() if waiting.get(key) != mark and self.is_sent(key)}
        if not ids:
            return
        others = {key: mark for key, mark in self.marks.items() if key not in ids}
        self.marks = others | {key: waiting[key] for key in ids & waiting.keys()}
        self._changed_ids |= ids
        # What was raised is noted at once, so that a kill seldom comes in between.
        if self.alerts.count > self._alert_count:
            self._alert_count = self.alerts.count
            await asyncio.to_thread(self.sink.do, self._save)
        else:
            self.sink.add_work(self._save)

    def _save(self, connection: duckdb.DuckDBPyConnection) -> None:
        ids, self._changed_ids = self._changed_ids, set()
        if ids:
            delete(connection, "meta", "key", [ALERTS + key for key in ids])
            marks = {key: self.marks[key] for key in ids if key in self.marks}
            values = [{"key": ALERTS + key, "value": json.dumps(vars(mark))} for key, mark in marks.items()]
            insert(connection, "meta", values)


def _is_below(source: str, places: Sequence[Path]) -> bool:
    path = Path(source).absolute()
    return any(path.is_relative_to(place.absolute()) for place in places)
