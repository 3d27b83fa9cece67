"""Sessions that lie in pieces in several files, as where logs are rotated: every piece counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

from ..store import AMONG, execute, texts
from .result import NAMED
from .sources import Source

CUT = ("mapped", "otlp", "openinference")
"""Systems whose logs may be cut into files anywhere."""
_FOLLOWING = f"""
    SELECT native_id, source, lag(source) OVER session AS before, started >= lag(ended) OVER session AS later
    FROM trajectories
    WHERE started IS NOT NULL AND native_id IN (SELECT native_id FROM trajectories WHERE source {AMONG})
    WINDOW session AS (
        PARTITION BY system, native_id, setting, condition, task, instance, tags,
            CASE WHEN system NOT IN ('otlp', 'openinference') THEN agent_model END
        ORDER BY started, source
    )
"""
"""For each session, the one before it in time that has the same name and is alike in what is said once of a
session of the sources. In a conversation of traces the model may change."""


class Pieces(NamedTuple):
    """A file that begins where another one ended, with sessions of the same names."""

    source: str
    before: str
    sessions: int
    name: str
    """The name of the first of them."""


def pieces(connection: duckdb.DuckDBPyConnection, sources: Iterable[Source]) -> list[Pieces]:
    """The pairs of files, one of them among the `sources`, of which the later goes on with sessions of the
    earlier; of logs that themselves name their sessions."""
    paths = [source.path for source in sources if source.system in CUT]
    if not paths:
        return []
    query = f"""
        SELECT source, before, list(native_id ORDER BY native_id) FROM ({_FOLLOWING})
        WHERE later AND source <> before AND (source {AMONG} OR before {AMONG})
        GROUP BY ALL ORDER BY ALL
    """
    result = list[Pieces]()
    for source, before, names in execute(connection, query, [texts(paths)] * 3).fetchall():
        if common := [name for name in names if not _is_of_place(name, Path(source))]:
            result.append(Pieces(source, before, len(common), common[0]))
    return result


def piece_notes(pairs: Sequence[Pieces]) -> Iterator[str]:
    """A sentence for each pair of files; of more than NAMED, one for the rest."""
    for one in pairs[:NAMED]:
        more = f" and {one.sessions - 1} more" if one.sessions > 1 else ""
        yield (
            f"{one.source}: sessions have the names of those of {one.before} ({one.name}{more}), begin "
            "after these ended, and count beside them; if they go on with them, join the files into one"
        )
    if len(pairs) > NAMED:
        yield f"{len(pairs) - NAMED} more pairs of files have sessions of the same names"


def _is_of_place(name: str, path: Path) -> bool:
    """Whether a session is named by its file or a folder, and not by the log."""
    return name.rpartition(":")[0] == path.stem or name in (path.stem, *path.parts)
