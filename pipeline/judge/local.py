"""Rating with raters that need no endpoint: what is left is one query a codebook, the rest one pass.

A store in which everything is rated is asked what is left and nothing else; otherwise the trajectories with
units that are left are read once, in the order they began, for all codebooks. The database is open only
while some of them are fetched, never while a rater works.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...schemas import Codebook, Rating, Trajectory, Unit
from ..store import Store, execute
from ..units import cut
from .scope import Say, Scope, Summary, waiting_for

OF_MESSAGES = ("utterance", "question_reply", "human_message")
"""The kinds of units that nothing but messages belongs to."""
HELD = 10_000
"""Events that are in memory at a time, unless a single trajectory has more."""


class LocalRater(Protocol):
    """A rater that needs no endpoint: one verb, any number of ratings."""

    def rate(self, unit: Unit) -> Iterable[Rating]: ...


@dataclass(frozen=True)
class Unrated:
    """What is left of a codebook's units for a rater, and how many are not."""

    book: Codebook
    rater: LocalRater
    events: Mapping[str, frozenset[int | None]]
    """Trajectory -> seq of the first event of each unit that is left (None: the whole trajectory)."""
    already: int

    @property
    def is_dialogue(self) -> bool:
        """Whether messages are all that the rater sees."""
        return self.book.context == "none" and self.book.unit in OF_MESSAGES

    def units(self, trajectories: Iterable[Trajectory]) -> Iterator[Unit]:
        """The units that are left of these trajectories, of which a dialogue's may hold only messages."""
        for trajectory in trajectories:
            if left := self.events.get(trajectory.id):
                # The opening query is none of those left unless it is wanted.
                units = cut(trajectory, self.book, include_query=True)
                yield from (unit for unit in units if unit.event in left)


def judge_locally(
    store: Store, scope: Scope, raters: Sequence[LocalRater], maker: tuple[str, str], say: Say
) -> Summary:
    """Rate with a rater that needs no endpoint, one for each codebook; `maker` is its name and version."""
    began = time.monotonic()
    summary = Summary()
    store.sync()
    with (
        store.tables.locks.exclusive(f"judge {maker[0]}", waiting_for(maker[0], say)),
        store.workspace.new_ratings() as ledger,
    ):
        store.sync()  # what a run before us wrote while we waited
        left = [_unrated(store, scope, *pair, maker) for pair in zip(scope.books, raters, strict=True)]
        summary.already = sum(unrated.already for unrated in left)
        # A limit takes the first units of the first codebook, so that then each is passed through alone.
        for together in [left] if scope.limit is None else [[unrated] for unrated in left]:
            for trajectories in _trajectories(store, together):
                ledger.append(_rated(together, trajectories, scope, summary))
                if _is_full(scope, summary):
                    break
    store.sync()
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


def _rated(
    left: Sequence[Unrated], trajectories: Sequence[Trajectory], scope: Scope, summary: Summary
) -> list[Rating]:
    fresh: list[Rating] = []
    for unrated in left:
        for unit in unrated.units(trajectories):
            if _is_full(scope, summary):
                break
            ratings = list(unrated.rater.rate(unit))
            summary.count(ratings)
            fresh += ratings
    return fresh


def _is_full(scope: Scope, summary: Summary) -> bool:
    return scope.limit is not None and summary.rated + summary.errors >= scope.limit


def _unrated(
    store: Store, scope: Scope, book: Codebook, rater: LocalRater, maker: tuple[str, str]
) -> Unrated:
    """The units in scope that the rater of this name and version has not rated as they are now.

    One that it failed to rate is left only where errors are to be retried.
    """
    query = """
        WITH rated AS (
            SELECT trajectory_id, event, unit_hash FROM current_ratings
            WHERE codebook = ? AND codebook_version = ? AND rater = ? AND rater_version = ? AND repeat = 0
            GROUP BY ALL HAVING NOT (? AND bool_or(error IS NOT NULL))
        )
        SELECT u.trajectory_id, list(u.event) FILTER (r.unit_hash IS NULL), count(r.unit_hash)
        FROM codebook_units u
        LEFT JOIN rated r
            ON r.trajectory_id = u.trajectory_id AND r.event IS NOT DISTINCT FROM u.event
            AND r.unit_hash = u.hash
        WHERE u.codebook = ? AND (? OR NOT u.opening)
            AND (? IS NULL OR EXISTS (
                SELECT 1 FROM samples s
                WHERE s.sample = ? AND s.codebook = ? AND s.trajectory_id = u.trajectory_id
                    AND s.event IS NOT DISTINCT FROM u.event
            ))
        GROUP BY u.trajectory_id
    """
    rated = [book.name, book.version, *maker, scope.retry_errors]
    within = [book.name, scope.include_query, scope.sample, scope.sample, book.name]
    with store.reading(synced=True) as connection:
        rows = execute(connection, query, [*rated, *within]).fetchall()
    events = {key: frozenset(left) for key, left, _ in rows if left}
    seen = book.model_copy(update={"context": scope.context or book.context})
    return Unrated(seen, rater, events, sum(already for _, _, already in rows))


def _trajectories(store: Store, left: Sequence[Unrated]) -> Iterator[list[Trajectory]]:
    """Those with units that are left, some at a time, in the order they began."""
    wanted = {key for unrated in left for key in unrated.events}
    if not wanted:
        return
    with store.reading(synced=True) as connection:
        query = "SELECT id, n_events FROM trajectories ORDER BY started, native_id, id"
        rows = [row for row in connection.execute(query).fetchall() if row[0] in wanted]
    messages = all(unrated.is_dialogue for unrated in left)
    for ids in _held(rows):
        with store.reading(synced=True) as connection:
            some = store.load(connection, ids, messages=messages)
        yield some


def _held(sizes: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    """Names with their sizes -> the names, so many at a time as `HELD` allows."""
    names: list[str] = []
    total = 0
    for name, size in sizes:
        if names and total + size > HELD:
            yield names
            names, total = [], 0
        names.append(name)
        total += size
    if names:
        yield names
