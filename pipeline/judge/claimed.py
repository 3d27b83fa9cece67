"""What a run may ask: trajectories that it has claimed, with what other runs have answered meanwhile.

A trajectory is claimed for one codebook and one way of asking before what is known of it is looked up, and
given back once all that was asked about it is where every machine can read it. So two runs share the work
of one judge, and no question is asked twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from ...schemas import Codebook, Rating, canonical_json
from ..store import Store, ledger
from ..store.claims import Claims
from ..store.ledger import RatingLedger
from ..store.sync import reached
from .scope import BATCH, REST, Batch, Known, KnownUnits, known, trajectory_ids

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
        self._count = 0

    def read(self) -> None:
        """Look at what was written since the last look; the store takes it in where it is much."""
        self._read()
        if self._count > MANY:
            self.store.sync(lags=True)
            self._begin()

    def add(self, book: Codebook, to: dict[str, KnownUnits], ids: Sequence[str]) -> None:
        """Add what is known by now of these trajectories."""
        for one in ids:
            for event, said in self._known.get((book.name, book.version, one), {}).items():
                to.setdefault(one, {}).setdefault(event, []).extend(said)

    def _read(self) -> None:
        self.store.workspace.pull(at_once=True)
        for path in ledger.files(self.store.workspace.ratings):
            if self.own.wrote(path) or self._offsets.get(path.name) == path.stat().st_size:
                continue
            for item, behind in ledger.ratings(path, self._offsets.get(path.name, 0)):
                self._offsets[path.name] = behind
                if isinstance(item, Rating) and not item.retracted:
                    about = (item.codebook, item.codebook_version, item.trajectory)
                    self._known.setdefault(about, {}).setdefault(item.event, []).append(_known(item))
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

    def batches(self, store: Store, book: Codebook, asking: str) -> Iterator[Batch]:
        """Every trajectory of the store; those that other runs hold come last, once they let go.

        Fewer at a time towards the end, so that runs that share the work end together; many where nothing
        was left to ask, as each look at the store has its price.
        """
        left = trajectory_ids(store)
        asked = -1
        while left and not self.stopping():
            held: list[str] = []
            start = 0
            while start < len(left):
                settled, asked = asked == self._asked, self._asked
                bite = BATCH if settled else max(FEW, min(BATCH, (len(left) - start) // SHARE))
                some = left[start : start + bite]
                start += bite
                mine = self._take(book, asking, some)
                held += [one for one in some if one not in mine]
                if mine:
                    yield self._batch(store, book, [one for one in some if one in mine])
                else:
                    asked = -1
            if len(held) == len(left):
                time.sleep(AGAIN)
            left = held

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

    def give_back(self, settled: frozenset[tuple[str, str]]) -> None:
        """Let go of what of that is answered."""
        with self._turn:
            done = [one for one in settled & self._planned if not self._left.get(one)]
            self._planned.difference_update(done)
            names = [self._names.pop(one) for one in done]
            for one in done:
                self._left.pop(one, None)
        self.claims.release(names)

    def _take(self, book: Codebook, asking: str, ids: Sequence[str]) -> set[str]:
        names = {f"{book.name}\0{book.version}\0{asking}\0{one}": one for one in ids}
        taken = self.claims.take(list(names))
        with self._turn:
            self._names |= {(book.name, names[name]): name for name in taken}
        return {names[name] for name in taken}

    def _batch(self, store: Store, book: Codebook, ids: Sequence[str]) -> Batch:
        self.elsewhere.read()
        with store.reading(synced=True) as connection:
            trajectories = store.load(connection, ids)
            said = known(connection, book, ids)
        self.elsewhere.add(book, said, ids)
        return Batch(book, trajectories, said)


def _known(rating: Rating) -> Known:
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
