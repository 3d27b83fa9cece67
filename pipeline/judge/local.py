"""Rating with raters that look at whole units: a query a codebook finds what is left, one pass rates it.

Where everything is rated, these queries are all that is done. Otherwise the trajectories with units left are
read once, in the order they began, for all codebooks. The database is never open while a rater works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from ...schemas import Codebook, Rating, Trajectory, Unit
from ..store import Store, execute
from ..store.garbage import few_collections
from ..store.ledgers.ledger import RatingLedger
from ..store.queries.stream import stream
from ..units import cut
from .scope import Say, Scope, Summary, wait_notice

HELD = 10_000
"""Events that are in memory at a time, unless a single trajectory has more."""
RaterVersion = tuple[str, str]
"""Name and version of a rater."""
Show = Callable[[Sequence[Trajectory]], None]
"""Takes the trajectories that are rated next, with their states."""


class LocalRater(Protocol):
    """A rater that needs no endpoint: one verb, any number of ratings for each unit."""

    def rate(self, units: Sequence[Unit]) -> Iterable[list[Rating]]: ...


@dataclass(frozen=True)
class PendingUnits:
    """The units of a codebook that a rater has still to rate, and how many it has rated."""

    book: Codebook
    rater: LocalRater
    hashes: Mapping[str, Mapping[int | None, str]]
    """Trajectory -> seq of the first event of each unit that is left (None: the whole trajectory) -> hash."""
    n_rated: int

    def units(self, trajectories: Iterable[Trajectory]) -> Iterator[Unit]:
        """The units that are left of these trajectories."""
        for trajectory in trajectories:
            if hashes := self.hashes.get(trajectory.id):
                # The hashes hold opening queries only where these are in scope.
                for unit in cut(trajectory, self.book, include_query=True):
                    if unit.event in hashes:
                        # Already known, and slow to compute for a whole session.
                        vars(unit)["hash"] = hashes[unit.event]
                        yield unit


@contextmanager
def turn(store: Store, rater: str, summary: Summary, say: Say) -> Iterator[RatingLedger]:
    """Opens a ledger for one rater's run, while nobody else rates by that name; at the end the run is timed,
    and the store takes the ledger in."""
    began = time.monotonic()
    store.admit_writes()
    store.sync()
    with (
        store.tables.locks.exclusive(f"judge {rater}", wait_notice(rater, say)),
        store.workspace.new_ratings() as ledger,
    ):
        store.sync()  # what a run before us wrote while we waited
        yield ledger
    store.sync()
    summary.seconds = round(time.monotonic() - began, 3)


def judge_locally(
    store: Store,
    scope: Scope,
    raters: Sequence[LocalRater],
    maker: RaterVersion,
    say: Say,
    show: Show | None = None,
    systems: Mapping[str, str] = MappingProxyType({}),
) -> Summary:
    """Rate with a rater that needs no endpoint, one for each codebook; `maker` is its name and version.

    `show` gets the trajectories before their units are rated, for raters that need more than a unit.
    `systems`: codebook -> the only system that its rater rates.
    """
    summary = Summary()
    with turn(store, maker[0], summary, say) as ledger:
        pairs = zip(scope.books, raters, strict=True)
        pending = [
            _load_unrated(store, scope, book, rater, maker, systems.get(book.name)) for book, rater in pairs
        ]
        summary.already = sum(unrated.n_rated for unrated in pending)
        # A limit takes the first units of the first codebook, so then codebooks are rated one by one.
        for together in [pending] if scope.limit is None else [[unrated] for unrated in pending]:
            for trajectories in _trajectories(store, together, states=show is not None):
                if show:
                    show(trajectories)
                ledger.append(_ratings(together, trajectories, scope, summary))
                if is_full(scope, summary):
                    break
    return summary


@few_collections()
def _ratings(
    pending: Sequence[PendingUnits], trajectories: Sequence[Trajectory], scope: Scope, summary: Summary
) -> list[Rating]:
    fresh: list[Rating] = []
    for unrated in pending:
        for ratings in unrated.rater.rate(list(unrated.units(trajectories))):
            if is_full(scope, summary):
                break
            summary.count(ratings)
            fresh += ratings
    return fresh


def is_full(scope: Scope, summary: Summary) -> bool:
    """Whether a run has rated as many units as it may."""
    return scope.limit is not None and summary.rated + summary.errors >= scope.limit


def units_of(book: Codebook, maker: RaterVersion, scope: Scope) -> tuple[str, list[object]]:
    """A query, and its parameters, for a codebook's units in scope: `trajectory_id`, `event`, `hash`, and
    `is_left` where the rater of this name and version has not rated them as they are now.

    One that it failed to rate is left only where errors are to be retried.
    """
    where, choices = scope.only.where()
    among = f"AND u.trajectory_id IN (SELECT id FROM trajectories t WHERE {where})" if scope.only else ""
    query = f"""
        SELECT u.trajectory_id, u.event, u.hash, r.unit_hash IS NULL AS is_left
        FROM codebook_units u
        LEFT JOIN (
            SELECT trajectory_id, event, unit_hash FROM current_ratings
            WHERE codebook = ? AND codebook_version = ? AND rater = ? AND rater_version = ? AND repeat = 0
            GROUP BY ALL HAVING NOT (? AND bool_or(error IS NOT NULL))
        ) r ON r.trajectory_id = u.trajectory_id AND r.event IS NOT DISTINCT FROM u.event
            AND r.unit_hash = u.hash
        WHERE u.codebook = ? AND (? OR NOT u.opening)
            AND (? IS NULL OR EXISTS (
                SELECT 1 FROM samples s
                WHERE s.sample = ? AND s.codebook = ? AND s.trajectory_id = u.trajectory_id
                    AND s.event IS NOT DISTINCT FROM u.event
            ))
            {among}
    """
    by_rater = [book.name, book.version, *maker, scope.retry_errors]
    within = [book.name, scope.include_query, scope.sample, scope.sample, book.name]
    return query, [*by_rater, *within, *choices]


def _load_unrated(
    store: Store, scope: Scope, book: Codebook, rater: LocalRater, maker: RaterVersion, system: str | None
) -> PendingUnits:
    units, parameters = units_of(book, maker, scope)
    query = f"""
        SELECT trajectory_id, list((event, hash)) FILTER (is_left), count(*) FILTER (NOT is_left)
        FROM ({units})
        WHERE ? IS NULL OR trajectory_id IN (SELECT id FROM trajectories WHERE system = ?)
        GROUP BY trajectory_id
    """
    with store.reading(synced=True) as connection:
        rows = execute(connection, query, [*parameters, system, system]).fetchall()
    hashes = {key: dict(pairs) for key, pairs, _ in rows if pairs}
    book_in_context = book.model_copy(update={"context": scope.context or book.context})
    return PendingUnits(book_in_context, rater, hashes, sum(already for _, _, already in rows))


def _trajectories(
    store: Store, pending: Sequence[PendingUnits], *, states: bool
) -> Iterator[list[Trajectory]]:
    """The trajectories with units that are left, some at a time, in the order they began."""
    ids = {key for unrated in pending for key in unrated.hashes}
    if not ids:
        return
    with store.reading(synced=True) as connection:
        query = "SELECT id, n_events FROM trajectories ORDER BY started, native_id, id"
        rows = [row for row in connection.execute(query).fetchall() if row[0] in ids]
    yield from stream(store, rows, HELD, states=states)
