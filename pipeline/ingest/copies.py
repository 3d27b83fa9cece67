"""Logs that say to the word what a log of another name says: where their file names sessions, both count."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from ..store import AMONG, execute, texts

_SAID = """
    SELECT t.source, t.system, min(t.condition) AS condition, count(*) AS n,
        sum(hash(u.hash, t.started, t.ended)) AS mark
    FROM trajectories t JOIN units u ON u.trajectory_id = t.id AND u.kind = 'trajectory'
    GROUP BY t.source, t.system
"""
"""Of each log what its sessions say, and when; in whatever order."""


def copies(connection: duckdb.DuckDBPyConnection, sources: Iterable[str]) -> list[tuple[str, str, bool]]:
    """Of sources that say what another one says, that one, and whether it is of the same condition.

    Of two among the `sources` the later name is the copy.
    """
    query = f"""
        WITH said AS ({_SAID})
        SELECT a.source, min(b.source), bool_or(a.condition IS NOT DISTINCT FROM b.condition)
        FROM said a JOIN said b ON (b.system, b.n, b.mark) = (a.system, a.n, a.mark) AND a.source <> b.source
        WHERE a.source {AMONG} AND (b.source < a.source OR NOT b.source {AMONG})
        GROUP BY ALL ORDER BY ALL
    """
    wanted = texts(sources)
    rows: list[tuple[str, str, bool]] = execute(connection, query, [wanted, wanted]).fetchall()
    return rows
