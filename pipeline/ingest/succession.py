"""Trajectories that a source gave and gives no more, since what it gives now replaces them.

An id may rest on what a log held when it was read: of a finished file on all of it, of a chat without an id
and of spans that come late on how it began. So the same session may have had another id before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import duckdb

from ...schemas.text import count_of
from ..store import execute
from ..systems.base import System
from ..systems.registry import system_of
from .result import KEPT, NAMED
from .sources import Source, unowned_ids

_SIDES = """
    WITH said_of AS (
        SELECT unnest(?::JSON::INTEGER[]) AS reading, unnest(?::JSON::VARCHAR[]) AS id,
            unnest(?::JSON::BOOLEAN[]) AS is_new
    ),
    sides AS (SELECT reading, is_new, id, native_id, condition FROM said_of JOIN trajectories USING (id)),
    before AS (FROM sides WHERE NOT is_new),
    later AS (FROM sides WHERE is_new)
"""
"""By reading, the trajectories that a file gave no more, and those that it gave. Who gave a trajectory first
does not matter: several may."""
_WHOLE = f"""{_SIDES}
    SELECT reading, id FROM before WHERE EXISTS (
        FROM later
        WHERE later.reading = before.reading AND later.condition IS NOT DISTINCT FROM before.condition
    )
"""
_HELD = """
    SELECT DISTINCT reading, id FROM pairs
    WHERE NOT EXISTS (
        FROM acts one WHERE one.id = pairs.id AND NOT EXISTS (
            FROM acts other WHERE other.id = pairs.later AND other.what = one.what AND other.nth = one.nth
        )
    )
"""
"""Of pairs of trajectories, the earlier ones that have no act which the later one lacks."""
_GROWN = f"""{_SIDES},
    pairs AS (
        SELECT before.reading, before.id, later.id AS later
        FROM before JOIN later ON later.reading = before.reading AND later.native_id = before.native_id
            AND later.condition IS NOT DISTINCT FROM before.condition
    ),
    acts AS (
        SELECT trajectory_id AS id, hash(row(actor, time, text, action, arguments)) AS what,
            row_number() OVER (PARTITION BY trajectory_id, what) AS nth
        FROM events
        WHERE trajectory_id IN (SELECT id FROM pairs UNION SELECT later FROM pairs) AND NOT live_only
            AND (kind != 'start' OR coalesce(time, text, action, arguments) IS NOT NULL)
    )
    {_HELD}
"""
"""A start that says nothing is no act: a session whose list was empty has such a one alone."""
_TOLD_ANEW = f"""{_SIDES},
    acts AS (
        SELECT trajectory_id AS id, seq, time, hash(row(text, action)) AS what,
            row_number() OVER (PARTITION BY trajectory_id, what) AS nth
        FROM events
        WHERE trajectory_id IN (SELECT id FROM sides) AND NOT live_only AND kind NOT IN ('start', 'note')
    ),
    bounds AS (
        SELECT id, min(time) AS first, arg_max(row(what, time), row(time, seq)) AS latest
        FROM acts GROUP BY id HAVING count(*) = count(time)
    ),
    endings AS (
        SELECT reading, condition, latest AS act, min(id) AS id
        FROM before JOIN bounds USING (id)
        GROUP BY ALL HAVING count(*) = 1
    ),
    tellers AS (
        SELECT reading, condition, row(what, time) AS act, min(id) AS later
        FROM later JOIN acts USING (id)
        GROUP BY ALL HAVING min(id) = max(id)
    ),
    witnesses AS (
        SELECT one.reading, one.id, other.later
        FROM endings one JOIN tellers other ON other.reading = one.reading AND other.act = one.act
            AND other.condition IS NOT DISTINCT FROM one.condition
    ),
    namesakes AS (
        SELECT before.reading, before.id, later.id AS later
        FROM before JOIN later ON later.reading = before.reading AND later.native_id = before.native_id
            AND later.condition IS NOT DISTINCT FROM before.condition
    ),
    pairs AS (
        SELECT reading, one.id, later
        FROM (SELECT reading, id, later FROM witnesses UNION FROM namesakes) one
            JOIN bounds own ON own.id = one.id JOIN bounds other ON other.id = later
        WHERE other.first <= own.first
    )
    {_HELD}
"""
"""Where spans come late, a session may get another name, and an act another actor, time or arguments: it is
known by what was said and done, by a session of the same name that began no later, or by the only one that
has the act with which it ended, at the same time. Notes are left out, for the result of a call that is not
known yet is one, and starts, which are notes where something comes before them. Times of one log are written
alike, so that texts compare as times."""


class _Candidate(NamedTuple):
    """A reading of a source that lacks trajectories which the one before gave."""

    path: str
    system: System
    missing: set[str]
    ids: set[str]
    """All that it gives."""
    fresh: set[str]
    """Those that the one before did not give."""


def missing_ids(
    connection: duckdb.DuckDBPyConnection,
    sources: Iterable[Source],
    before: Mapping[str, Collection[str]],
    excluded_ids: Collection[str] = (),
) -> dict[str, set[str]]:
    """Path of a source -> stored trajectories that it gave `before` and that no source gives now, without
    `excluded_ids`, which are about to be removed."""
    now = {source.path: set(source.trajectory_ids) for source in sources}
    lost_ids = {path: set(before.get(path, ())) - ids - set(excluded_ids) for path, ids in now.items()}
    if not any(lost_ids.values()):
        return {}
    orphans = unowned_ids(connection, set().union(*lost_ids.values()))
    return {path: some for path, ids in lost_ids.items() if (some := ids & orphans)}


def loss_notes(missing: Mapping[str, Collection[str]]) -> Iterator[str]:
    """A sentence for each source that no longer holds sessions it gave."""
    for path, ids in list(missing.items())[:NAMED]:
        sessions = count_of(len(ids), "session", "sessions")
        yield f"{path}: no longer contains {sessions} that it gave before; {KEPT}"
    if len(missing) > NAMED:
        yield (
            f"{count_of(len(missing) - NAMED, 'more file', 'more files')} no longer "
            f"{'holds' if len(missing) == NAMED + 1 else 'hold'} sessions that they gave"
        )


def find_superseded(
    connection: duckdb.DuckDBPyConnection, sources: Iterable[Source], before: Mapping[str, Collection[str]]
) -> dict[str, set[str]]:
    """Path of a source -> the trajectories that it gave `before` and no source gives now, replaced by what it
    gives now; sources without any are left out.

    A source that comes several times, such as copies of its earlier states, is compared with the one before
    it each time, as if it had been read then.

    A file that is written whole replaces all that it gave. In other logs a session replaces one of the same
    name if it has all of its events. Where names come late, it also replaces one of which it has all that was
    said and done, if it began no later and either has its name or alone has the act with which it ended:
    anything else is another run, and stays.
    """
    now = {path: set(ids) for path, ids in before.items()}
    candidates: list[_Candidate] = []
    for source in sources:
        if source.system is not None:
            earlier, ids = now.get(source.path, set()), set(source.trajectory_ids)
            if earlier - ids:
                system = system_of(source.system)
                candidates.append(_Candidate(source.path, system, earlier - ids, ids, ids - earlier))
            now[source.path] = ids
    if not candidates:
        return {}
    orphans = unowned_ids(connection, set().union(*(one.missing for one in candidates)))
    result: dict[str, set[str]] = {}
    whole = [(at, one) for at, one in enumerate(candidates) if one.system.written_whole]
    growing = [(at, one) for at, one in enumerate(candidates) if not one.system.written_whole]
    late = [(at, one) for at, one in growing if one.system.named_late]
    for query, some, is_fresh in ((_WHOLE, whole, False), (_GROWN, growing, True), (_TOLD_ANEW, late, False)):
        old = [(at, key, False) for at, one in some for key in one.missing & orphans]
        later = [(at, key, True) for at, one in some for key in (one.fresh if is_fresh else one.ids)]
        if old and later:
            sides = [json.dumps(column) for column in zip(*old, *later, strict=True)]
            for at, key in execute(connection, query, sides).fetchall():
                result.setdefault(candidates[at].path, set()).add(key)
    return result
