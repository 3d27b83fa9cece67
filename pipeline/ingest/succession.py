"""What a source gave and gives no more, since what it gives now stands in its place.

An id may rest on what a log held when it was read: of a finished file on all of it, of a chat without an id
and of spans that come late on how it began. So the session of before has another id than the same one now.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

import duckdb

from ..store import execute
from ..systems.registry import system_of
from .sources import Source, unowned

_SIDES = """
    WITH said_of AS (
        SELECT unnest(?::JSON::INTEGER[]) AS reading, unnest(?::JSON::VARCHAR[]) AS id,
            unnest(?::JSON::BOOLEAN[]) AS is_new
    ),
    sides AS (SELECT reading, is_new, id, native_id, condition FROM said_of JOIN trajectories USING (id)),
    before AS (FROM sides WHERE NOT is_new),
    later AS (FROM sides WHERE is_new)
"""
"""What a file gave no more when it was read, and what it gave. Who gave a trajectory first does not matter:
several may."""
_WHOLE = f"""{_SIDES}
    SELECT reading, id FROM before WHERE EXISTS (
        FROM later
        WHERE later.reading = before.reading AND later.condition IS NOT DISTINCT FROM before.condition
    )
"""
_GROWN = f"""{_SIDES},
    pairs AS (
        SELECT before.reading, before.id, later.id AS later
        FROM before JOIN later ON later.reading = before.reading AND later.native_id = before.native_id
            AND later.condition IS NOT DISTINCT FROM before.condition
    ),
    said AS (
        SELECT trajectory_id AS id, hash(row(actor, time, text, action, arguments)) AS what,
            row_number() OVER (PARTITION BY trajectory_id, what) AS nth
        FROM events
        WHERE trajectory_id IN (SELECT id FROM pairs UNION SELECT later FROM pairs) AND NOT live_only
    )
    SELECT DISTINCT reading, id FROM pairs
    WHERE NOT EXISTS (
        FROM said one WHERE one.id = pairs.id AND NOT EXISTS (
            FROM said other WHERE other.id = pairs.later AND other.what = one.what AND other.nth = one.nth
        )
    )
"""


def superseded(
    connection: duckdb.DuckDBPyConnection, sources: Iterable[Source], before: Mapping[str, Collection[str]]
) -> dict[str, set[str]]:
    """By path of a source, those of the trajectories that it gave `before`, and that no source gives now, in
    whose place stands what it gives now; sources without any are left out.

    Of a source that comes several times, such as states of it that were copied, each is held against the one
    before it, as if it had been read then.

    A file that is written whole holds what it says now. Of other logs a session stands in the place of one of
    the same name all of whose events it has: what is another run stays.
    """
    now = {path: set(ids) for path, ids in before.items()}
    candidates: list[tuple[str, bool, set[str], set[str]]] = []
    for source in sources:
        if source.system is not None:
            earlier, ids = now.get(source.path, set()), set(source.trajectory_ids)
            whole = system_of(source.system).written_whole
            if earlier - ids:
                candidates.append((source.path, whole, earlier - ids, ids if whole else ids - earlier))
            now[source.path] = ids
    if not candidates:
        return {}
    orphans = unowned(connection, set().union(*(missing for _, _, missing, _ in candidates)))
    result: dict[str, set[str]] = {}
    for query, is_whole in ((_WHOLE, True), (_GROWN, False)):
        some = [
            (at, missing & orphans, new)
            for at, (_, whole, missing, new) in enumerate(candidates)
            if whole == is_whole
        ]
        old = [(at, key, False) for at, missing, _ in some for key in missing]
        later = [(at, key, True) for at, _, new in some for key in new]
        if old and later:
            sides = [json.dumps(column) for column in zip(*old, *later, strict=True)]
            for at, key in execute(connection, query, sides).fetchall():
                result.setdefault(candidates[at][0], set()).add(key)
    return result
