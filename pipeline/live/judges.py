"""Units rated as they complete, by raters that need no endpoint: rules and detectors.

A question is complete when its reply came, a message when it was said, a trajectory when it ended. The
ledger is the memory here as everywhere: a unit that was rated so before is not rated again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from coaudit.pipeline import ledger
from coaudit.pipeline.judging import LocalRater, batches
from coaudit.pipeline.store import Store
from coaudit.pipeline.units import cut
from coaudit.schemas.codebook import Codebook
from coaudit.schemas.rating import Rating
from coaudit.schemas.trajectory import Trajectory
from coaudit.schemas.unit import Unit


@dataclass
class LiveJudge:
    """Rates what was just stored."""

    store: Store
    books: Sequence[Codebook]
    raters: Sequence[LocalRater]
    maker: tuple[str, str]
    """The raters' name and version."""
    stored: Callable[[], None] = lambda: None
    rated: int = 0
    _done: set[tuple[str, str, int | None, str]] = field(default_factory=set)
    _ledger: ledger.RatingLedger | None = None

    def open(self) -> None:
        """Learn what was rated before, and rate what is complete and was not."""
        self.store.sync()
        for book in self.books:
            for batch in batches(self.store, book):
                for key, units in batch.known.items():
                    self._done |= {
                        (book.name, key, event, k.unit_hash or "")
                        for event, known in units.items()
                        for k in known
                        if (k.rater, k.rater_version) == self.maker
                    }

    async def __call__(self, saved: Sequence[Trajectory]) -> None:
        """Rate the units of these trajectories that are complete and new."""
        if saved:
            await asyncio.to_thread(self._rate, saved)

    def close(self) -> None:
        """Bring the last ratings into the store."""
        if self._ledger is not None:
            self._ledger.close()
            self.store.sync()

    def _rate(self, saved: Sequence[Trajectory]) -> None:
        fresh: list[Rating] = []
        for book, rater in zip(self.books, self.raters, strict=True):
            for trajectory in saved:
                for unit in self._complete(trajectory, book):
                    fresh += rater.rate(unit)
                    self.rated += 1
        if not fresh:
            return
        if self._ledger is None:
            self._ledger = ledger.RatingLedger(self.store.workspace.ratings)
        self._ledger.append(fresh)

    def _complete(self, trajectory: Trajectory, book: Codebook) -> Iterator[Unit]:
        whole = book.unit == "trajectory"
        if whole and not ended(trajectory):
            return
        # What is not in the log yet may turn out not to be logged at all.
        pending = {e.seq for e in trajectory.events if e.kind != "message" and e.status is None}
        for unit in cut(trajectory, book):
            key = (book.name, trajectory.id, unit.event, unit.hash)
            if key not in self._done and (whole or unit.event not in pending):
                self._done.add(key)
                yield unit


def ended(trajectory: Trajectory) -> bool:
    """Whether no more is expected of it; a system that does not say so is taken to log what has ended."""
    reasons = [o.text for o in trajectory.outcomes if o.name == "end_reason"]
    return reasons[:1] != ["unfinished"]
