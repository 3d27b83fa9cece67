"""What a source gave and gives no more, since what it gives now stands in its place.

An id may rest on what a log held when it was read: of a finished file on all of it, of a chat without an id
and of spans that come late on how it began. So the session of before has another id than the same one now.
"""

from __future__ import annotations

from collections.abc import Collection

import duckdb

from ..store import AMONG, execute, texts
from ..systems.registry import system_of
from .sources import Source, unowned

_OF_ONE_RUN = f"""
    SELECT id FROM trajectories
    WHERE id {AMONG} AND condition IN (SELECT condition FROM trajectories WHERE id {AMONG})
"""
_GROWN = f"""
    WITH said AS (
        SELECT trajectory_id AS id, hash(row(actor, time, text, action, arguments)) AS what,
            row_number() OVER (PARTITION BY trajectory_id, what) AS nth
        FROM events WHERE trajectory_id {AMONG} AND NOT live_only
    ),
    pairs AS (
        SELECT one.id, other.id AS later
        FROM trajectories one JOIN trajectories other
            ON other.native_id = one.native_id AND other.condition IS NOT DISTINCT FROM one.condition
        WHERE one.id {AMONG} AND other.id {AMONG}
    )
    SELECT DISTINCT id FROM pairs
    WHERE NOT EXISTS (
        FROM said one WHERE one.id = pairs.id AND NOT EXISTS (
            FROM said other WHERE other.id = pairs.later AND other.what = one.what AND other.nth = one.nth
        )
    )
"""


def superseded(connection: duckdb.DuckDBPyConnection, source: Source, before: Collection[str]) -> set[str]:
    """Those of the trajectories that a source gave `before`, and that no source gives now, in whose place
    stands what it gives now.

    A file that is written whole holds what it says now. Of other logs a session stands in the place of one of
    the same name all of whose events it has: what is another run stays.
    """
    lost = set(before) - set(source.trajectory_ids)
    if not lost or source.system is None:
        return set()
    gone = unowned(connection, lost)
    if not gone:
        return set()
    if system_of(source.system).written_whole:
        parameters = [texts(gone), texts(source.trajectory_ids)]
        found = execute(connection, _OF_ONE_RUN, parameters).fetchall()
    else:
        new = set(source.trajectory_ids) - set(before)
        parameters = [texts(gone | new), texts(gone), texts(new)]
        found = execute(connection, _GROWN, parameters).fetchall() if new else []
    return {key for (key,) in found}
