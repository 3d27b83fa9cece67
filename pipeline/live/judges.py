"""Units rated as they complete, by raters that need no endpoint: rules and detectors.

A question is complete when its reply came, a message when it was said, a trajectory when it ended. The
ledger is the memory here as everywhere: a unit that was rated so before is not rated again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from coaudit.pipeline import ledger
from coaudit.pipeline.judging import BATCH, LocalRater, known
from coaudit.pipeline.live.sink import Sink
from coaudit.pipeline.units import cut
from coaudit.schemas.codebook import Codebook
from coaudit.schemas.rating import Rating
from coaudit.schemas.trajectory import Trajectory
from coaudit.schemas.unit import Unit

REMEMBERED = 1000
Key = tuple[str, int | None, str]
"""Codebook, seq of the unit's first event, hash of the unit."""


@dataclass
class LiveJudge:
    """Rates what was just stored."""

    sink: Sink
    books: Sequence[Codebook]
    raters: Sequence[LocalRater]
    maker: tuple[str, str]
    """The raters' name and version."""
    rated: int = 0
    _done: OrderedDict[str, set[Key]] = field(default_factory=OrderedDict)
    """By trajectory, the latest ones; of the others the store knows."""
    _fresh: list[Rating] = field(default_factory=list)
    _ledger: ledger.RatingLedger | None = None

    async def __call__(self, saved: Sequence[Trajectory]) -> None:
        """Rate the units of these trajectories that are complete and new."""
        if saved:
            await asyncio.to_thread(self._rate, saved)

    def close(self) -> None:
        """Close the ledger."""
        if self._ledger is not None:
            self._ledger.close()

    def _write(self, connection: object) -> None:
        """Have the ratings on disk, in the transaction that loads them."""
        fresh, self._fresh = self._fresh, []
        if self._ledger is None:
            self._ledger = ledger.RatingLedger(self.sink.store.workspace.ratings)
        self._ledger.append(fresh)

    def _rate(self, saved: Sequence[Trajectory]) -> None:
        for start in range(0, len(saved), BATCH):
            some = saved[start : start + BATCH]
            self._recall([t.id for t in some if t.id not in self._done])
            for book, rater in zip(self.books, self.raters, strict=True):
                for unit in (u for t in some for u in self._complete(t, book)):
                    self._fresh += rater.rate(unit)
                    self.rated += 1
        if self._fresh:
            self.sink.also(self._write)

    def _recall(self, ids: Sequence[str]) -> None:
        """Learn what was rated of trajectories that are not remembered."""
        while len(self._done) > REMEMBERED:
            self._done.popitem(last=False)
        self._done |= {key: set() for key in ids}
        stored = [key for key in ids if key not in self.sink.new]
        if not stored:
            return
        with self.sink.store.reading(synced=True) as connection:
            for book in self.books:
                for key, units in known(connection, book, stored).items():
                    self._done[key] |= {
                        (book.name, event, said.unit_hash or "")
                        for event, many in units.items()
                        for said in many
                        if (said.rater, said.rater_version) == self.maker
                    }

    def _complete(self, trajectory: Trajectory, book: Codebook) -> Iterator[Unit]:
        whole = book.unit == "trajectory"
        if whole and not ended(trajectory):
            return
        # What is not in the log yet may turn out not to be logged at all.
        pending = {e.seq for e in trajectory.events if e.kind != "message" and e.status is None}
        done = self._done[trajectory.id]
        for unit in cut(trajectory, book):
            key = (book.name, unit.event, unit.hash)
            if key not in done and (whole or unit.event not in pending):
                done.add(key)
                yield unit


def ended(trajectory: Trajectory) -> bool:
    """Whether no more is expected of it; a system that does not say so is taken to log what has ended."""
    reasons = [o.text for o in trajectory.outcomes if o.name == "end_reason"]
    return reasons[:1] != ["unfinished"]
