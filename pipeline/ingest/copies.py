"""Logs that repeat a log of another name, or sessions of one, word for word: where sessions are named after
files, both count."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import duckdb

from ...schemas.text import count_of
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

_SESSIONS = """
    SELECT t.id, t.source, t.system, t.condition, hash(u.hash, t.started, t.ended) AS mark
    FROM trajectories t JOIN units u ON u.trajectory_id = t.id AND u.kind = 'trajectory'
    WHERE t.started IS NOT NULL AND NOT (t.started = t.ended AND t.started LIKE '%T00:00:00%')
    QUALIFY count(*) OVER (PARTITION BY t.system, mark) > 1
"""
"""Hash of what a session with times says and when, for those that share it with another one. A day alone
tells no runs apart."""

_RESULTS_OF_SESSIONS = """
    SELECT trajectory_id AS id, sum(hash(seq, sub, status, error, states)) AS results
    FROM events WHERE trajectory_id IN (SELECT id FROM sessions) GROUP BY trajectory_id
"""


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


class Repetition(NamedTuple):
    """Sessions of a source that say to the word, at the same times, what those of other sources say."""

    source: str
    other: str
    """The first source that has them, too."""
    others: int
    """How many sources that are."""
    sessions: int


def repetitions(
    connection: duckdb.DuckDBPyConnection, sources: Iterable[str], apart: Iterable[str] = ()
) -> list[Repetition]:
    """What sessions of `sources` repeat, those with times: without, they may be other runs of the same.

    Sessions of the sources `apart` repeat those of their own condition alone.
    """
    query = f"""
        WITH sessions AS ({_SESSIONS}), results AS ({_RESULTS_OF_SESSIONS}),
            alike AS (
                SELECT source, system, condition, mark, results, count(*) AS n
                FROM sessions JOIN results USING (id) GROUP BY ALL),
            scoped AS (
                SELECT *, source {AMONG} AS is_new, unnest(['', 'of ' || coalesce(condition, '')]) AS scope
                FROM alike),
            firsts AS (
                SELECT system, mark, results, scope, is_new, min(source) AS source FROM scoped GROUP BY ALL),
            elsewhere AS (
                SELECT a.source, min(b.source) AS other, a.n
                FROM scoped a JOIN firsts b
                    ON (b.system, b.mark, b.results, b.scope) = (a.system, a.mark, a.results, a.scope)
                    AND a.source <> b.source
                WHERE a.is_new AND (b.source < a.source OR NOT b.is_new)
                    AND (a.scope <> '') = (a.source {AMONG})
                GROUP BY a.source, a.condition, a.mark, a.results, a.n)
        SELECT source, min(other), count(DISTINCT other), sum(n)::BIGINT
        FROM elsewhere GROUP BY source ORDER BY source
    """
    rows = execute(connection, query, [texts(sources), texts(apart)]).fetchall()
    return [Repetition(*row) for row in rows]


def copy_notes(connection: duckdb.DuckDBPyConnection, sources: Collection[Source]) -> Iterator[str]:
    """A sentence for each of the `sources` that repeats a log of another name, or sessions of one, and counts
    beside it; of more than NAMED, one for the rest."""
    if not sources:
        return
    apart = {one.path for one in sources if one.options.condition is not None}
    paths = [one.path for one in sources]
    pairs = [(path, other) for path, other, alike in copies(connection, paths) if alike or path not in apart]
    for path, other in pairs[:NAMED]:
        yield (
            f"{path}: says to the word what {other} says, and counts beside it; if it is a copy, "
            "`coaudit forget` it"
        )
    if len(pairs) > NAMED:
        yield f"{len(pairs) - NAMED} more files have exactly the same content as others"
    whole = {frozenset(pair) for pair in pairs}
    rows = [one for one in repetitions(connection, paths, apart) if frozenset(one[:2]) not in whole]
    yield from map(_sentence, rows[:NAMED])
    if len(rows) > NAMED:
        yield f"{len(rows) - NAMED} more files have sessions that say to the word what those of others say"


def _sentence(one: Repetition) -> str:
    more = f" and {count_of(one.others - 1, 'other log', 'other logs')}" if one.others > 1 else ""
    verbs = ("says", "counts") if one.sessions == 1 else ("say", "count")
    return (
        f"{one.source}: {count_of(one.sessions, 'session', 'sessions')} of it {verbs[0]} to the word, at the "
        f"same times, what those of {one.other}{more} say, and {verbs[1]} beside them; if they are copies, "
        "`coaudit forget` takes a log or a session out"
    )
