"""Notes on trajectories that a model has rated in full, so that a run with nothing to ask is one query.

A prompt follows from its trajectory, from who asks how, from references of its task and from the workspace's
secret. If none of them has changed since all prompts were answered, and the current ratings of each unit are
complete and no newer than the note, then there is nothing to ask, and no prompt has to be made to see it. A
newer rating voids the note: it may answer a prompt made from another state of the log or of the secret. The
notes are derived data: without them a run only takes longer.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...schemas import Maker, canonical_json, content_hash
from ..errors import StoreError
from ..store import AMONG, Store, execute, insert, texts
from ..store.queries.stream import Size
from ..store.queries.trajectories import reference_rows
from .scope import Scope

_UNITS = """
    WITH rated AS (
        SELECT trajectory_id, event, unit_hash, max(created) AS last FROM current_ratings
        WHERE codebook = ? AND codebook_version = ? AND rater = ? AND rater_version = ? AND parameters = ?
            AND repeat < ? AND NOT (? AND error IS NOT NULL)
        GROUP BY ALL HAVING count(*) >= ?
    ),
    asked AS (
        SELECT u.trajectory_id, count(*) AS units, count(r.unit_hash) AS rated, max(r.last) AS last
        FROM codebook_units u LEFT JOIN rated r ON r.trajectory_id = u.trajectory_id
            AND r.event IS NOT DISTINCT FROM u.event AND r.unit_hash = u.hash
        WHERE u.codebook = ? AND (? OR NOT u.opening)
            AND (? IS NULL OR EXISTS (
                SELECT 1 FROM samples s
                WHERE s.sample = ? AND s.codebook = ? AND s.trajectory_id = u.trajectory_id
                    AND s.event IS NOT DISTINCT FROM u.event
            ))
        GROUP BY u.trajectory_id
    )
    SELECT t.id, t.n_events, t.digest, a.units, a.units > a.rated AS is_open,
        s.noted IS NOT NULL AND coalesce(a.last <= s.noted, true) AS is_noted
    FROM trajectories t JOIN asked a ON a.trajectory_id = t.id
    LEFT JOIN (
        SELECT trajectory_id, digest, max(noted) AS noted FROM settled WHERE asking = ? GROUP BY ALL
    ) s ON s.trajectory_id = t.id AND s.digest = t.digest
    WHERE {condition}
    ORDER BY t.started, t.native_id, t.id
"""


@dataclass(frozen=True)
class Group:
    """Some trajectories with their numbers of events, and the number of all their units."""

    sizes: list[Size]
    n_units: int

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, ...]]) -> Group:
        """Those of these rows of `_UNITS`."""
        items = list(rows)
        return cls([(key, events) for key, events, *_ in items], sum(units for _, _, _, units, *_ in items))


@dataclass(frozen=True)
class OpenWork:
    """What a model may still have to be asked under one codebook."""

    asking: str
    """Hash of what prompts follow from beside the trajectory: codebook, rater, its version, scope, secret,
    references."""
    sizes: list[Size]
    """Trajectories that may have open questions, with their numbers of events, in the order they began."""
    digests: dict[str, str]
    """Trajectory -> hash of its content."""
    n_settled: int
    """Answers, over repeats, that need no look at their prompts."""
    unanswered: Group
    """Those of the trajectories that have a unit without an answer, whatever its prompt is by now."""
    answered: Group
    """The others: all of their units have answers, some perhaps to prompts that are no longer the same."""


def open_work(store: Store, maker: Maker, scope: Scope, secret: bytes) -> OpenWork:
    """The trajectories with units in scope that a rater may still have to be asked about."""
    book = maker.book
    parameters = canonical_json(maker.extra_fields["parameters"])
    by_rater = [book.name, book.version, maker.rater, maker.version, parameters]
    enough = [scope.repeats, scope.retry_errors, scope.repeats * len(book.codes)]
    within = [book.name, scope.include_query, scope.sample, scope.sample, book.name]
    by_maker = book.name, maker.rater, maker.version
    with store.reading(synced=True) as connection:
        references = content_hash(*itertools.chain.from_iterable(reference_rows(connection)))
        asking = content_hash(*by_maker, scope.include_query, secret.hex(), references)
        where, choices = scope.only.where()
        query = _UNITS.format(condition=where)
        values = [*by_rater, *enough, *within, asking, *choices]
        rows = execute(connection, query, values).fetchall()
    open_rows = [row for row in rows if row[4] or not row[5]]
    return OpenWork(
        asking,
        [(key, events) for key, events, *_ in open_rows],
        {key: digest for key, _, digest, *_ in open_rows},
        sum(scope.repeats * units for *_, units, is_open, is_noted in rows if is_noted and not is_open),
        Group.of(row for row in open_rows if row[4]),
        Group.of(row for row in open_rows if not row[4]),
    )


def note_answered(store: Store, about: OpenWork, ids: Collection[str]) -> None:
    """Note that all questions about these trajectories are answered, unless their content has changed since.

    Where the store cannot be written just now, nothing is noted.
    """
    if not ids:
        return
    with suppress(StoreError), store.writing() as connection:
        among = texts(ids)
        execute(
            connection,
            f"DELETE FROM settled WHERE asking = ? AND trajectory_id {AMONG}",
            [about.asking, among],
        )
        cursor = execute(connection, f"SELECT id, digest FROM trajectories WHERE id {AMONG}", [among])
        same = [key for key, digest in cursor.fetchall() if digest == about.digests[key]]
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")  # as ratings have it
        rows = [
            {"asking": about.asking, "trajectory_id": key, "digest": about.digests[key], "noted": moment}
            for key in same
        ]
        insert(connection, "settled", rows)
