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
        SELECT unnest(?::JSON::VARCHAR[]) AS path, unnest(?::JSON::VARCHAR[]) AS id,
            unnest(?::JSON::BOOLEAN[]) AS is_new
    ),
    sides AS (SELECT path, is_new, id, native_id, condition FROM said_of JOIN trajectories USING (id)),
    before AS (FROM sides WHERE NOT is_new),
    later AS (FROM sides WHERE is_new)
"""
"""What each file gave before and gives now. Who gave a trajectory first does not matter: several may."""
_WHOLE = f"""{_SIDES}
    SELECT path, id FROM before WHERE EXISTS (
        FROM later
        WHERE later.path = before.path AND later.condition IS NOT DISTINCT FROM before.condition
    )
"""
_GROWN = f"""{_SIDES},
    pairs AS (
        SELECT before.path, before.id, later.id AS later
        FROM before JOIN later ON later.path = before.path AND later.native_id = before.native_id
            AND later.condition IS NOT DISTINCT FROM before.condition
    ),
    said AS (
        SELECT trajectory_id AS id, hash(row(actor, time, text, action, arguments)) AS what,
            row_number() OVER (PARTITION BY trajectory_id, what) AS nth
        FROM events
        WHERE trajectory_id IN (SELECT id FROM pairs UNION SELECT later FROM pairs) AND NOT live_only
    )
    SELECT DISTINCT path, id FROM pairs
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

    Of a source that comes twice, such as two states of it that were copied, the last is what it gives now.

    A file that is written whole holds what it says now. Of other logs a session stands in the place of one of
    the same name all of whose events it has: what is another run stays.
    """
    earlier = {path: set(ids) for path, ids in before.items()}
    now: dict[str, set[str]] = {}
    whole: dict[str, bool] = {}
    for source in sources:
        if source.system is not None:
            earlier.setdefault(source.path, set()).update(now.get(source.path, ()))
            now[source.path] = set(source.trajectory_ids)
            whole[source.path] = system_of(source.system).written_whole
    lost = {path: left for path in now if (left := earlier[path] - now[path])}
    if not lost:
        return {}
    gone = unowned(connection, set().union(*lost.values()))
    found: dict[str, set[str]] = {}
    for query, is_whole in ((_WHOLE, True), (_GROWN, False)):
        paths = [path for path in lost if whole[path] == is_whole]
        old = [(path, key, False) for path in paths for key in lost[path] & gone]
        fresh = now if is_whole else {path: now[path] - earlier[path] for path in paths}
        new = [(path, key, True) for path in paths for key in fresh[path]]
        if old and new:
            sides = [json.dumps(column) for column in zip(*old, *new, strict=True)]
            for path, key in execute(connection, query, sides).fetchall():
                found.setdefault(path, set()).add(key)
    return found
