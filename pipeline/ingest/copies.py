"""Logs that repeat a log of another name word for word: where sessions are named after files, both count."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import duckdb

from ..store import AMONG, execute, texts
from .result import NAMED
from .sources import Source

_CONTENTS = """
    SELECT t.source, t.system, min(t.condition) AS condition, count(*) AS n,
        sum(hash(u.hash, t.started, t.ended)) AS mark
    FROM trajectories t JOIN units u ON u.trajectory_id = t.id AND u.kind = 'trajectory'
    GROUP BY t.source, t.system
    QUALIFY count(*) OVER (PARTITION BY t.system, n, mark) > 1
"""
"""Hash of what a log's sessions say and when, in whatever order, for logs that share it with another log."""

_RESULTS = """
    SELECT t.source, sum(hash(e.seq, e.sub, e.status, e.error, e.states)) AS mark
    FROM trajectories t JOIN events e ON e.trajectory_id = t.id
    WHERE t.source IN (SELECT source FROM contents)
    GROUP BY t.source
"""
"""For each of these, hash of what came of its actions, which may differ where two runs do the same."""


def copies(connection: duckdb.DuckDBPyConnection, sources: Iterable[str]) -> list[tuple[str, str, bool]]:
    """Each source that repeats another one word for word, that other one, and whether the condition is the
    same.

    Of two among the `sources` the later name is the copy.
    """
    query = f"""
        WITH contents AS ({_CONTENTS}), results AS ({_RESULTS}),
            whole AS (SELECT contents.*, results.mark AS results FROM contents JOIN results USING (source))
        SELECT a.source, min(b.source), bool_or(a.condition IS NOT DISTINCT FROM b.condition)
        FROM whole a JOIN whole b
            ON (b.system, b.n, b.mark, b.results) = (a.system, a.n, a.mark, a.results)
            AND a.source <> b.source
        WHERE a.source {AMONG} AND (b.source < a.source OR NOT b.source {AMONG})
        GROUP BY ALL ORDER BY ALL
    """
    names = texts(sources)
    rows: list[tuple[str, str, bool]] = execute(connection, query, [names, names]).fetchall()
    return rows


def copy_notes(connection: duckdb.DuckDBPyConnection, sources: Collection[Source]) -> Iterator[str]:
    """A sentence for each of the `sources` that repeats a log of another name, and counts beside it; of more
    than NAMED, one for the rest."""
    if not sources:
        return
    apart = {one.path for one in sources if one.options.condition is not None}
    pairs = [
        (path, other)
        for path, other, alike in copies(connection, [one.path for one in sources])
        if alike or path not in apart
    ]
    for path, other in pairs[:NAMED]:
        yield (
            f"{path}: says to the word what {other} says, and counts beside it; if it is a copy, "
            "`coaudit forget` it"
        )
    if len(pairs) > NAMED:
        yield f"{len(pairs) - NAMED} more files have exactly the same content as others"
