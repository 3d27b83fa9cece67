"""What a source gave and gives no more, since what it gives now stands in its place.

An id may rest on what a log held when it was read: of a finished file on all of it, of a chat without an id
and of spans that come late on how it began. So the session of before has another id than the same one now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import duckdb

from ..store import AMONG, execute, texts
from ..systems.registry import system_of
from .sources import Source, unowned

_PAIRS = f"""
    SELECT one.id, other.id AS later, one.native_id = other.native_id AS alike
    FROM trajectories one JOIN trajectories other
        ON other.source = one.source AND other.condition IS NOT DISTINCT FROM one.condition
    WHERE one.id {AMONG} AND other.id {AMONG}
"""
"""Of one file and one run."""
_GROWN = f"""
    WITH pairs AS (SELECT id, later FROM ({_PAIRS}) WHERE alike),
    said AS (
        SELECT trajectory_id AS id, hash(row(actor, time, text, action, arguments)) AS what,
            row_number() OVER (PARTITION BY trajectory_id, what) AS nth
        FROM events
        WHERE trajectory_id IN (SELECT id FROM pairs UNION SELECT later FROM pairs) AND NOT live_only
    )
    SELECT DISTINCT id FROM pairs
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
    found: set[str] = set()
    for query, is_whole in ((f"SELECT DISTINCT id FROM ({_PAIRS})", True), (_GROWN, False)):
        paths = [path for path in lost if whole[path] == is_whole]
        old = gone & set().union(*(lost[path] for path in paths))
        new = set().union(*(now[path] if is_whole else now[path] - earlier[path] for path in paths))
        if old and new:
            found |= {key for (key,) in execute(connection, query, [texts(old), texts(new)]).fetchall()}
    return {path: some for path, left in lost.items() if (some := left & found)}
