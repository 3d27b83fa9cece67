"""The trajectories that a run has claimed to ask about, with what other runs answered meanwhile.

A trajectory is claimed for one codebook and one way of asking before its ratings are looked up, and given
back once all answers about it are where every machine can read them. So two runs share the work of one
judge, and no question is asked twice.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from ...schemas import Codebook, Rating, Trajectory, canonical_json
from ...schemas.codebook import Views
from ..store import Store, execute
from ..store.claims import Claims
from ..store.ledgers import ledger
from ..store.ledgers.ledger import RatingLedger
from ..store.ledgers.sync import ledger_offsets
from ..store.queries.stream import Size
from .scope import BATCH, REST, Batch, PriorRating, PriorRatings, prior_ratings
from .shown import read

FEW, SHARE = 10, 8
"""Of the trajectories left, one in SHARE is claimed at a time: at least FEW, at most `BATCH`."""
MANY = 100_000
"""Ratings of other runs beyond which the store takes them in and memory is freed."""
AGAIN = 1.0
"""Seconds before trajectories that other runs hold are tried again."""


class OtherRuns:
    """Ratings that other processes wrote to their ledgers since the database last took the ledgers in."""

    def __init__(self, store: Store, own: RatingLedger) -> None:
        self.store = store
        self.own = own
        self._begin()

    def _begin(self) -> None:
        with self.store.reading(synced=True) as connection:
            self._offsets = ledger_offsets(connection)
        self._ratings: dict[tuple[str, str | None, str], PriorRatings] = {}
        self._ids_with_ratings: dict[tuple[str, str], set[str]] = {}
        self._count = 0

    def read(self) -> None:
        """Read what was written since the last call; more than `MANY` ratings go into the database."""
        self._read()
        if self._count > MANY:
            self.store.sync(lags=True)
            self._begin()

    def with_ratings(self, book: Codebook, ids: Sequence[str]) -> list[str]:
        """Those of these trajectories of which the database has ratings. It is asked once a codebook after
        each time that it took the ledgers in."""
        about = (book.name, book.version)
        if about not in self._ids_with_ratings:
            query = "SELECT DISTINCT trajectory_id FROM ratings WHERE codebook = ? AND codebook_version = ?"
            with self.store.reading(synced=True) as connection:
                rows = execute(connection, query, about).fetchall()
            self._ids_with_ratings[about] = {row[0] for row in rows}
        return [one for one in ids if one in self._ids_with_ratings[about]]

    def add(self, book: Codebook, to: dict[str, PriorRatings], ids: Sequence[str]) -> None:
        """Add the ratings of these trajectories that were read from ledgers."""
        for trajectory in ids:
            for event, ratings in self._ratings.get((book.name, book.version, trajectory), {}).items():
                to.setdefault(trajectory, {}).setdefault(event, []).extend(ratings)

    def _read(self) -> None:
        self.store.workspace.pull(at_once=True)
        for path in ledger.changed_files(self.store.workspace.ratings, self._offsets):
            if self.own.owns(path):
                continue
            for item, behind in ledger.ratings(path, self._offsets.get(path.name, 0)):
                self._offsets[path.name] = behind
                if isinstance(item, Rating) and not item.retracted:
                    about = (item.codebook, item.codebook_version, item.trajectory)
                    self._ratings.setdefault(about, {}).setdefault(item.event, []).append(_prior_rating(item))
                    self._count += 1


class RunClaims:
    """The claims of a run; each is held until all questions that it led to are answered and on disk."""

    def __init__(self, claims: Claims, other_runs: OtherRuns, stopping: Callable[[], bool]) -> None:
        self.claims = claims
        self.other_runs = other_runs
        self.stopping = stopping
        self._turn = threading.Lock()
        self._unanswered: dict[tuple[str, str], int] = {}
        """Codebook and trajectory -> units still to be answered."""
        self._n_expected = 0
        self._planned: set[tuple[str, str]] = set()
        self._names: dict[tuple[str, str], str] = {}
        self.done: set[tuple[str, str]] = set()
        """(Codebook, trajectory) whose questions are all answered."""

    def batches(self, store: Store, book: Codebook, asking: str, sizes: Sequence[Size]) -> Iterator[Batch]:
        """These trajectories as they are claimed; those that other runs hold come last, once they let go.

        Batches shrink towards the end, so that runs that share the work end together. They are full where
        the last one led to no question, as each look at the store has its price.
        """
        units = -1
        while sizes and not self.stopping():
            ahead = TrajectoryReader(store, sizes, book.views)
            rest: list[Size] = []
            start = 0
            while start < len(sizes):
                is_idle, units = units == self._n_expected, self._n_expected
                bite = BATCH if is_idle else max(FEW, min(BATCH, (len(sizes) - start) // SHARE))
                chunk = sizes[start : start + bite]
                start += bite
                mine = self._take(book, asking, [key for key, _ in chunk])
                rest += [one for one in chunk if one[0] not in mine]
                if mine:
                    yield self._batch(ahead, book, [key for key, _ in chunk if key in mine])
                else:
                    units = -1
            if len(rest) == len(sizes):
                time.sleep(AGAIN)
            sizes = rest

    def expect(self, book: str, trajectory: str, units: int) -> None:
        """Count units that are about to be asked about."""
        with self._turn:
            self._n_expected += units
            self._unanswered[book, trajectory] = self._unanswered.get((book, trajectory), 0) + units

    def mark_planned(self, batch: Batch) -> None:
        """Note that all questions about these trajectories are out: no more will follow."""
        with self._turn:
            self._planned |= {(batch.book.name, one.id) for one in batch.trajectories}

    def count_answer(self, book: str, trajectory: str) -> None:
        """Count a unit whose answer is on disk."""
        with self._turn:
            self._unanswered[book, trajectory] -= 1

    def plan(self) -> frozenset[tuple[str, str]]:
        """(Codebook, trajectory) of which no more questions follow: to be given back after the next flush."""
        with self._turn:
            return frozenset(self._planned)

    def give_back(self, plan: frozenset[tuple[str, str]]) -> None:
        """Release those of a plan whose questions are all answered."""
        with self._turn:
            pairs = [pair for pair in plan & self._planned if not self._unanswered.get(pair)]
            self._planned.difference_update(pairs)
            self.done.update(pairs)
            names = [self._names.pop(pair) for pair in pairs]
            for pair in pairs:
                self._unanswered.pop(pair, None)
        self.claims.release(names)

    def _take(self, book: Codebook, asking: str, ids: Sequence[str]) -> set[str]:
        names = {f"{book.name}\0{book.version}\0{asking}\0{one}": one for one in ids}
        grants = self.claims.take(list(names))
        with self._turn:
            self._names |= {(book.name, names[name]): name for name in grants}
        return {names[name] for name in grants}

    def _batch(self, ahead: TrajectoryReader, book: Codebook, ids: Sequence[str]) -> Batch:
        self.other_runs.read()
        hits = self.other_runs.with_ratings(book, ids)
        history: dict[str, PriorRatings] = {}
        if hits:
            with ahead.store.reading(synced=True) as connection:
                history = prior_ratings(connection, book, hits)
        self.other_runs.add(book, history, ids)
        return Batch(book, ahead.take(ids), history)


class TrajectoryReader:
    """Reads the trajectories of a list ahead, to be taken in the list's order."""

    def __init__(self, store: Store, sizes: Sequence[Size], views: Views) -> None:
        self.store = store
        self.sizes = sizes
        self.views = views
        self._place = {key: place for place, (key, _) in enumerate(sizes)}
        self._read: Iterator[Trajectory] = iter(())
        self._next: Trajectory | None = None
        self._at = len(sizes)

    def take(self, ids: Sequence[str]) -> list[Trajectory]:
        """The trajectories of these ids; one that the store no longer has is left out."""
        return [trajectory for one in ids if (trajectory := self._take(self._place[one]))]

    def _take(self, place: int) -> Trajectory | None:
        if place < self._at:
            self._read = itertools.chain.from_iterable(read(self.store, self.sizes[place:], self.views))
            self._advance()
        while self._at < place:
            self._advance()
        trajectory = self._next if self._at == place else None
        if trajectory:
            self._advance()
        return trajectory

    def _advance(self) -> None:
        self._next = next(self._read, None)
        self._at = len(self.sizes) if self._next is None else self._place[self._next.id]


def _prior_rating(rating: Rating) -> PriorRating:
    names = rating.external.get("left_out")  # anything, where it was made elsewhere
    return PriorRating(
        rater=rating.rater,
        rater_version=rating.rater_version,
        unit_hash=rating.unit_hash,
        prompt_hash=rating.prompt_hash,
        parameters=canonical_json(rating.parameters),
        failed=rating.error is not None,
        current=True,
        repeat=rating.repeat,
        label=rating.label,
        rest={name: getattr(rating, name) for name in REST},
        left_out=tuple(one for one in names if isinstance(one, str)) if isinstance(names, list) else (),
    )
