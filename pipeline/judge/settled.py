"""Trajectories of which a model was asked all there is to ask, so that a run with nothing to ask is a query.

A prompt follows from what its trajectory holds, from who asks how, and from the workspace's secret. Where
none of them has changed since all prompts were answered, and each unit still has its answers as its rater's
last word, none of them newer than the note, no prompt has to be made to see it: a newer word may answer what
was asked while the log or the secret was another. The notes are derived: without them it only takes longer.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from ...schemas import Maker, canonical_json, content_hash
from ..errors import StoreError
from ..store import AMONG, Store, execute, insert, texts
from ..store.stream import Size
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
    ORDER BY t.started, t.native_id, t.id
"""


@dataclass(frozen=True)
class Left:
    """What a model may have to be asked of, under one codebook."""

    asking: str
    """Who asks how."""
    sizes: list[Size]
    """Trajectories with units that are not settled, in the order they began."""
    digests: dict[str, str]
    """What these hold."""
    already: int
    """Answers that are settled."""
    unanswered: list[Size]
    """Of the trajectories those that have a unit without an answer, whatever their prompts are by now."""


def left(store: Store, maker: Maker, scope: Scope, secret: bytes) -> Left:
    """The trajectories with units in scope that may have to be asked of."""
    book = maker.book
    asking = content_hash(book.name, maker.rater, maker.version, scope.include_query, secret.hex())
    parameters = canonical_json(maker.made["parameters"])
    by_rater = [book.name, book.version, maker.rater, maker.version, parameters]
    enough = [scope.repeats, scope.retry_errors, scope.repeats * len(book.codes)]
    within = [book.name, scope.include_query, scope.sample, scope.sample, book.name]
    with store.reading(synced=True) as connection:
        rows = execute(connection, _UNITS, [*by_rater, *enough, *within, asking]).fetchall()
    open_rows = [row for row in rows if row[4] or not row[5]]
    return Left(
        asking,
        [(key, events) for key, events, *_ in open_rows],
        {key: digest for key, _, digest, *_ in open_rows},
        sum(scope.repeats * units for *_, units, is_open, is_noted in rows if is_noted and not is_open),
        [(key, events) for key, events, _, _, is_open, _ in rows if is_open],
    )


def note(store: Store, about: Left, ids: Collection[str]) -> None:
    """All has been asked of these trajectories, and answered; of one that has changed since nothing is said.

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
