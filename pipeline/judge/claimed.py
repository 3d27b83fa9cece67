"""What a run may ask: trajectories that it has claimed, with what other runs have answered meanwhile.

A trajectory is claimed for one codebook and one way of asking before what is known of it is looked up, and
given back once all that was asked about it is where every machine can read it. So two runs share the work
of one judge, and no question is asked twice.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from ...schemas import Codebook, Rating, Trajectory, canonical_json
from ..store import Store, execute, ledger
from ..store.claims import Claims
from ..store.ledger import RatingLedger
from ..store.stream import Size, stream
from ..store.sync import reached
from .scope import BATCH, HELD, REST, Batch, Known, KnownUnits, known

FEW, SHARE = 10, 8
"""So many trajectories are claimed at a time at least, else this part of those left, up to `BATCH`."""
MANY = 100_000
"""Ratings of other runs that are held in memory at most."""
AGAIN = 1.0
"""Seconds until what other runs hold is tried again."""


class Elsewhere:
    """What other processes rated since the database was last brought up to the ledgers."""

    def __init__(self, store: Store, own: RatingLedger) -> None:
        self.store = store
        self.own = own
        self._begin()

    def _begin(self) -> None:
        with self.store.reading(synced=True) as connection:
            self._offsets = reached(connection)
        self._known: dict[tuple[str, str | None, str], KnownUnits] = {}
        self._rated: dict[tuple[str, str], set[str]] = {}
        self._count = 0

    def read(self) -> None:
        """Look at what was written since the last look; the store takes it in where it is much."""
        self._read()
        if self._count > MANY:
            self.store.sync(lags=True)
            self._begin()

    def rated(self, book: Codebook, ids: Sequence[str]) -> list[str]:
        """Those of these trajectories of which the database has known something since that time."""
        about = (book.name, book.version)
        if about not in self._rated:
            query = "SELECT DISTINCT trajectory_id FROM ratings WHERE codebook = ? AND codebook_version = ?"
            with self.store.reading(synced=True) as connection:
                rows = execute(connection, query, about).fetchall()
            self._rated[about] = {row[0] for row in rows}
        return [one for one in ids if one in self._rated[about]]

    def add(self, book: Codebook, to: dict[str, KnownUnits], ids: Sequence[str]) -> None:
        """Add what is known by now of these trajectories."""
        for trajectory in ids:
            for event, ratings in self._known.get((book.name, book.version, trajectory), {}).items():
                to.setdefault(trajectory, {}).setdefault(event, []).extend(ratings)

    def _read(self) -> None:
        self.store.workspace.pull(at_once=True)
        for path in ledger.changed(self.store.workspace.ratings, self._offsets):
            if self.own.wrote(path):
                continue
            for item, behind in ledger.ratings(path, self._offsets.get(path.name, 0)):
                self._offsets[path.name] = behind
                if isinstance(item, Rating) and not item.retracted:
                    about = (item.codebook, item.codebook_version, item.trajectory)
                    self._known.setdefault(about, {}).setdefault(item.event, []).append(_to_known(item))
                    self._count += 1


class Claimed:
    """The claims of a run, each until what it led to is answered and on disk."""

    def __init__(self, claims: Claims, elsewhere: Elsewhere, stopping: Callable[[], bool]) -> None:
        self.claims = claims
        self.elsewhere = elsewhere
        self.stopping = stopping
        self._turn = threading.Lock()
        self._left: dict[tuple[str, str], int] = {}
        """Codebook and trajectory -> units that are asked and not answered."""
        self._asked = 0
        self._planned: set[tuple[str, str]] = set()
        self._names: dict[tuple[str, str], str] = {}
        self.done: set[tuple[str, str]] = set()
        """Codebook and trajectory of which all that was asked is answered."""

    def batches(self, store: Store, book: Codebook, asking: str, sizes: Sequence[Size]) -> Iterator[Batch]:
        """These trajectories of the store; those that other runs hold come last, once they let go.

        Fewer at a time towards the end, so that runs that share the work end together; many where nothing
        was left to ask, as each look at the store has its price.
        """
        units = -1
        while sizes and not self.stopping():
            ahead = Ahead(store, sizes)
            rest: list[Size] = []
            start = 0
            while start < len(sizes):
                is_idle, units = units == self._asked, self._asked
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

    def asked(self, book: str, trajectory: str, units: int) -> None:
        """So many more units wait for an answer."""
        with self._turn:
            self._asked += units
            self._left[book, trajectory] = self._left.get((book, trajectory), 0) + units

    def planned(self, batch: Batch) -> None:
        """Nothing more is asked about these trajectories."""
        with self._turn:
            self._planned |= {(batch.book.name, one.id) for one in batch.trajectories}

    def answered(self, book: str, trajectory: str) -> None:
        """A unit's answer is where everybody can read it."""
        with self._turn:
            self._left[book, trajectory] -= 1

    def settled(self) -> frozenset[tuple[str, str]]:
        """What was planned by now: it can be given back once all that is written by now can be read."""
        with self._turn:
            return frozenset(self._planned)

    def give_back(self, plan: frozenset[tuple[str, str]]) -> None:
        """Let go of what of that is answered."""
        with self._turn:
            pairs = [pair for pair in plan & self._planned if not self._left.get(pair)]
            self._planned.difference_update(pairs)
            self.done.update(pairs)
            names = [self._names.pop(pair) for pair in pairs]
            for pair in pairs:
                self._left.pop(pair, None)
        self.claims.release(names)

    def _take(self, book: Codebook, asking: str, ids: Sequence[str]) -> set[str]:
        names = {f"{book.name}\0{book.version}\0{asking}\0{one}": one for one in ids}
        grants = self.claims.take(list(names))
        with self._turn:
            self._names |= {(book.name, names[name]): name for name in grants}
        return {names[name] for name in grants}

    def _batch(self, ahead: Ahead, book: Codebook, ids: Sequence[str]) -> Batch:
        self.elsewhere.read()
        hits = self.elsewhere.rated(book, ids)
        history: dict[str, KnownUnits] = {}
        if hits:
            with ahead.store.reading(synced=True) as connection:
                history = known(connection, book, hits)
        self.elsewhere.add(book, history, ids)
        return Batch(book, ahead.take(ids), history)


class Ahead:
    """The trajectories of a list, taken in the list's order."""

    def __init__(self, store: Store, sizes: Sequence[Size]) -> None:
        self.store = store
        self.sizes = sizes
        self._place = {key: place for place, (key, _) in enumerate(sizes)}
        self._read: Iterator[Trajectory] = iter(())
        self._next: Trajectory | None = None
        self._at = len(sizes)

    def take(self, ids: Sequence[str]) -> list[Trajectory]:
        """The trajectories of these ids; one that is no longer there is left out."""
        return [trajectory for one in ids if (trajectory := self._take(self._place[one]))]

    def _take(self, place: int) -> Trajectory | None:
        if place < self._at:
            self._read = itertools.chain.from_iterable(stream(self.store, self.sizes[place:], HELD))
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


def _to_known(rating: Rating) -> Known:
    return Known(
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
    )
