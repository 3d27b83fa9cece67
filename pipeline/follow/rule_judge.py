"""Units rated as they complete, by raters that need no endpoint: rules and detectors.

As everywhere, the ledger is the memory: a unit that this version of a rater has rated is not rated again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...judges.rules import detectors, lexical
from ...schemas import Codebook, Trajectory, Unit
from ..errors import UsageError
from ..judge import embedded as raters
from ..judge.embedded import EmbeddedRater
from ..judge.scope import BATCH, prior_ratings
from ..store import Store
from ..store.queries.trajectories import reference_rows
from ..systems import References
from ..systems.registry import DETECTED, parsed_references
from .complete import Stillness, complete_units
from .ledger import LiveLedger
from .sink import Sink

REMEMBERED = 10_000
STILL = 2.0
"""Seconds without a change after which a trajectory whose log does not tell its end is taken to have ended.
"""
Key = tuple[str, int | None, str]
"""Codebook, seq of the unit's first event, hash of the unit."""


class LiveJudge:
    """Rates what was just stored."""

    def __init__(self, sink: Sink, books: Sequence[Codebook], rater: str | None = None) -> None:
        self.sink = sink
        self.rated = 0
        self.trajectories = RatedTrajectories(sink.store)
        self.raters = [(book, embedded_rater(book, rater, self.trajectories)) for book in books]
        self.still = Stillness(STILL)
        self.ledger = LiveLedger(sink)
        self._rated_units: OrderedDict[str, set[Key]] = OrderedDict()
        """Trajectory -> its units that are rated, for the latest trajectories; of the others the store knows.
        """

    async def __call__(self, trajectories: Sequence[Trajectory]) -> None:
        """Rate the units of these trajectories that are complete and new."""
        self.still.note(trajectories)
        if trajectories:
            await asyncio.to_thread(self._rate, trajectories)
        if still := self.still.take():
            await asyncio.to_thread(self._rate_still, still)

    async def finish(self) -> None:
        """Rate the trajectories that were not still for long enough."""
        await asyncio.to_thread(self._rate_still, self.still.take(everything=True))

    def summary(self) -> dict[str, float]:
        """What was rated."""
        return {"rated": self.rated}

    def _rate_still(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), BATCH):
            with self.sink.store.reading(synced=True) as connection:
                trajectories = self.sink.store.load(connection, ids[start : start + BATCH], states=True)
            self._rate(trajectories)

    def _rate(self, trajectories: Sequence[Trajectory]) -> None:
        for start in range(0, len(trajectories), BATCH):
            some = trajectories[start : start + BATCH]
            self._recall([t.id for t in some])
            self.trajectories.replace(some)
            for book, rater in self.raters:
                units = [unit for trajectory in some for unit in self._complete(trajectory, book)]
                ratings_by_unit = list(rater.rater.rate(units))
                self.ledger.write([rating for ratings in ratings_by_unit for rating in ratings])
                self.rated += sum(map(bool, ratings_by_unit))

    def _recall(self, ids: Sequence[str]) -> None:
        """Read what was rated of trajectories that are not remembered; the oldest ones that are remembered
        are forgotten."""
        unread = [key for key in ids if key not in self._rated_units and key not in self.sink.new_ids]
        for key in ids:
            self._rated_units.setdefault(key, set())
            self._rated_units.move_to_end(key)
        while len(self._rated_units) > max(REMEMBERED, len(ids)):
            self._rated_units.popitem(last=False)
        if not unread:
            return
        with self.sink.store.reading(synced=True) as connection:
            for book, rater in self.raters:
                for key, units in prior_ratings(connection, book, unread).items():
                    self._rated_units[key] |= {
                        (book.name, event, rating.unit_hash or "")
                        for event, ratings in units.items()
                        for rating in ratings
                        if (rating.rater, rating.rater_version) == rater.maker
                    }

    def _complete(self, trajectory: Trajectory, book: Codebook) -> Iterator[Unit]:
        keys = self._rated_units[trajectory.id]
        for unit in complete_units(trajectory, book, is_over=self.still.has_ended(trajectory)):
            key = (book.name, unit.event, unit.hash)
            if key not in keys:
                keys.add(key)
                yield unit


class RatedTrajectories:
    """The trajectories that are being rated, for detectors that need more than a unit."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.by_id: dict[str, Trajectory] = {}

    def replace(self, trajectories: Sequence[Trajectory]) -> None:
        """Take these as the trajectories that are being rated."""
        self.by_id = {trajectory.id: trajectory for trajectory in trajectories}
        self.__dict__.pop("references", None)

    @cached_property
    def references(self) -> Mapping[str, References]:
        """What Collab-Overcooked runs are measured against, as the store has it now."""
        with self.store.reading(synced=True) as connection:
            return parsed_references(reference_rows(connection))


@dataclass(frozen=True)
class SystemTrajectories:
    """The trajectories that are being rated, of one system."""

    trajectories: RatedTrajectories
    system: str

    @property
    def references(self) -> Mapping[str, References]:
        """System -> its references."""
        return self.trajectories.references

    def get(self, key: str) -> Trajectory | None:
        """The trajectory of that id; None where it is another system's."""
        result = self.trajectories.by_id.get(key)
        return result if result and result.system == self.system else None


def embedded_rater(book: Codebook, name: str | None, trajectories: RatedTrajectories) -> EmbeddedRater:
    """The embedded rater of that name, or the codebook's own one; UsageError names those there are."""
    if name is not None and name not in raters.EMBEDDED:
        raise UsageError(
            f"rater {name!r} does not rate while following, only {' and '.join(raters.EMBEDDED)} do, "
            "or a language model with --model"
        )
    by_detectors = (detectors.CODEBOOK, *DETECTED)
    if name is None and book.name not in (*lexical.CODEBOOKS, *by_detectors):
        raise UsageError(
            f"codebook {book.name!r} needs --model: rules rate {', '.join(lexical.CODEBOOKS)}, "
            f"detectors {', '.join(by_detectors)}"
        )
    rater = name or (detectors.NAME if book.name in by_detectors else lexical.NAME)
    return raters.embedded_rater(
        book, rater, lambda book: SystemTrajectories(trajectories, DETECTED[book.name].name)
    )
