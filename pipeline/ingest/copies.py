"""Logs that say to the word what a log of another name says: where their file names sessions, both count."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from ..store import AMONG, execute, texts

_CONTENTS = """
    SELECT t.source, t.system, min(t.condition) AS condition, count(*) AS n,
        sum(hash(u.hash, t.started, t.ended)) AS mark
    FROM trajectories t JOIN units u ON u.trajectory_id = t.id AND u.kind = 'trajectory'
    GROUP BY t.source, t.system
    QUALIFY count(*) OVER (PARTITION BY t.system, n, mark) > 1
"""
"""What the sessions of a log say, and when, in whatever order: of each log that shares it with another."""

_CAME = """
    SELECT t.source, sum(hash(e.seq, e.sub, e.status, e.error, e.states)) AS mark
    FROM trajectories t JOIN events e ON e.trajectory_id = t.id
    WHERE t.source IN (SELECT source FROM said)
    GROUP BY t.source
"""
"""Of each of these, what came of its actions, which may differ where two runs do the same."""


def copies(connection: duckdb.DuckDBPyConnection, sources: Iterable[str]) -> list[tuple[str, str, bool]]:
    """Of sources that say what another one says, that one, and whether it is of the same condition.

    Of two among the `sources` the later name is the copy.
    """
    query = f"""
        WITH said AS ({_CONTENTS}), came AS ({_CAME}),
            whole AS (SELECT said.*, came.mark AS came FROM said JOIN came USING (source))
        SELECT a.source, min(b.source), bool_or(a.condition IS NOT DISTINCT FROM b.condition)
        FROM whole a JOIN whole b
            ON (b.system, b.n, b.mark, b.came) = (a.system, a.n, a.mark, a.came) AND a.source <> b.source
        WHERE a.source {AMONG} AND (b.source < a.source OR NOT b.source {AMONG})
        GROUP BY ALL ORDER BY ALL
    """
    names = texts(sources)
    rows: list[tuple[str, str, bool]] = execute(connection, query, [names, names]).fetchall()
    return rows
