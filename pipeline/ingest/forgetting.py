"""What is taken out of the store: forgotten sources and trajectories, and what a source gave when read
otherwise.

The ledger `forgotten` of the workspace notes what is forgotten and what is restored; rebuilds and later
ingests keep to it. Logs, and the ledgers of sources and ratings, stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from pydantic import ValidationError

from ...schemas import Model
from ...schemas.text import count_of
from ..errors import UsageError
from ..store import AMONG, Store, Workspace, delete, execute, first_row, texts
from ..store.ledgers import ledger
from ..store.queries.trajectories import matches, resolve
from ..store.tables.removal import remove
from . import sources as provenance
from .sources import existing_ids, unowned_ids


class ForgottenEntry(Model):
    """One line of the ledger: a source or a trajectory, forgotten or no more."""

    source: str | None = None
    trajectory: str | None = None
    called: str | None = None
    """What the trajectory was called when it was forgotten, where that is not its id."""
    undo: bool = False
    time: str


@dataclass(frozen=True)
class Exclusions:
    """Sources and trajectories that are forgotten now."""

    sources: frozenset[str] = frozenset()
    trajectories: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.sources or self.trajectories)


@dataclass
class Effect:
    """What forgetting, or its undoing, did."""

    sources: list[str] = field(default_factory=list)
    """Those named now, not those forgotten earlier."""
    trajectories: list[str] = field(default_factory=list)
    ratings: int = 0
    """Ratings on those trajectories, which the ledgers keep."""
    shared: list[str] = field(default_factory=list)
    """Trajectories of those sources, as ids: those that others gave, too; of restored sources all."""


def read_exclusions(workspace: Workspace) -> Exclusions:
    """What is forgotten, by the last entry on each source and trajectory."""
    sources, trajectories = set[str](), set[str]()
    for entry in _entries(workspace):
        for name, names in ((entry.source, sources), (entry.trajectory, trajectories)):
            if name is not None:
                (names.discard if entry.undo else names.add)(name)
    return Exclusions(frozenset(sources), frozenset(trajectories))


def _entries(workspace: Workspace, offsets: Mapping[str, int] | None = None) -> Iterator[ForgottenEntry]:
    for _, _, line in workspace.forgotten.lines(offsets):
        with suppress(ValidationError):  # cut off by a kill, so it never counted
            yield ForgottenEntry.model_validate_json(line)


def heed(store: Store, offsets: Mapping[str, int]) -> list[str]:
    """Do what the ledger notes behind these offsets; returns the sources and trajectories that are to be read
    again, also those that an earlier call, whose caller was killed, had taken out for it."""
    entries = list(_entries(store.workspace, offsets))
    enforce(store)
    names = [name for entry in entries if entry.undo and (name := entry.source or entry.trajectory)]
    sources = provenance.read_ledger(store.workspace)[0]
    ids = _noted_ids(sources, {entry.source for entry in entries if entry.source is not None})
    return [*names, *_take_out(store, sources, ids)]


def forget(store: Store, name: str) -> Effect:
    """Forget a source (its path, or a folder above several) or a trajectory; UsageError for neither, and for
    what is forgotten already."""
    store.admit_writes()
    _check(name)
    with store.reading() as connection:
        sources = _sources(connection, name)
        is_stored = bool(sources or matches(connection, name))
        if not is_stored and any(_excluded(store.workspace, name)):
            raise UsageError(f"{name!r} is left out already; --undo brings it back")
        trajectory = None if sources else resolve(connection, name)
        ids = _trajectory_ids(connection, sources)
    lines = [ForgottenEntry(source=one, time=ledger.now()) for one in sources]
    if trajectory is not None:
        alias = None if trajectory.startswith(name) else name
        lines = [ForgottenEntry(trajectory=trajectory, called=alias, time=ledger.now())]
    _append(store.workspace, lines)
    effect = enforce(store)
    effect.sources = sources
    effect.shared = sorted(ids.difference(effect.trajectories))
    return effect


def undo(store: Store, name: str) -> Effect:
    """Restore what was forgotten under a name, in the ledger alone: `heed` says what is to be read again."""
    store.admit_writes()
    _check(name)
    sources, trajectories = _excluded(store.workspace, name)
    if not sources and not trajectories:
        exclusions = read_exclusions(store.workspace)
        some = ", ".join(sorted(exclusions.sources | exclusions.trajectories)[:5]) or "nothing"
        raise UsageError(f"{name!r} is not left out; left out are (sources and ids): {some}")
    now = ledger.now()
    lines = [ForgottenEntry(source=one, undo=True, time=now) for one in sources]
    lines += [ForgottenEntry(trajectory=one, undo=True, time=now) for one in trajectories]
    _append(store.workspace, lines)
    ids = _noted_ids(provenance.read_ledger(store.workspace)[0], set(sources))
    return Effect(sources, trajectories, shared=sorted(ids))


def _excluded(workspace: Workspace, name: str) -> tuple[list[str], list[str]]:
    """The sources and the trajectories that are forgotten under a name."""
    exclusions = read_exclusions(workspace)
    sources = [one for one in exclusions.sources if one in _spellings(name) or _is_below(one, name)]
    by_alias = {one.trajectory for one in _entries(workspace) if one.called == name}
    trajectories = [one for one in exclusions.trajectories if one.startswith(name) or one in by_alias]
    return sources, trajectories


def enforce(store: Store) -> Effect:
    """Take what is forgotten out of the tables, from whichever source it came in since."""
    exclusions = read_exclusions(store.workspace)
    if not exclusions or not store.has_tables():
        return Effect()
    with store.writing() as connection:
        owned = _trajectory_ids(connection, exclusions.sources)
        delete(connection, "sources", "path", list(exclusions.sources))
        delete(connection, "quarantine", "read_from", list(exclusions.sources))
        ids = unowned_ids(connection, owned) | existing_ids(connection, exclusions.trajectories)
        effect = Effect(trajectories=sorted(ids), ratings=ratings_on(connection, ids))
        remove(connection, ids)
    return effect


def _noted_ids(sources: Iterable[provenance.Source], paths: Collection[str]) -> set[str]:
    """Ids of the trajectories that the sources of these paths gave, by the ledger."""
    return {key for source in sources if source.path in paths for key in source.trajectory_ids}


def _take_out(store: Store, sources: Iterable[provenance.Source], ids: Collection[str]) -> list[str]:
    """Take those of these trajectories out of the tables that a source is sure to give again; returns their
    ids, whether they were there or not, for the caller to read them again.

    The first of several sources that have a trajectory tells its condition: which one that is changes where a
    source is forgotten or restored.
    """
    exclusions = read_exclusions(store.workspace)
    owners = [
        source
        for source in sources
        if source.path not in exclusions.sources
        and any(key in ids for key in source.trajectory_ids)
        and _is_as_noted(store.workspace, source)
    ]
    readable = {key for source in owners for key in source.trajectory_ids}
    again = readable.intersection(ids) - exclusions.trajectories
    if again:
        with store.writing() as connection:
            delete(connection, "sources", "path", [source.path for source in owners])
            remove(connection, existing_ids(connection, again))
    return sorted(again)


def _is_as_noted(workspace: Workspace, source: provenance.Source) -> bool:
    """Whether a source still holds what the ledger says that it gave: its log is as it was, or has a copy."""
    try:
        place = provenance.locate(workspace, source)
        if place is None:
            return False
        return str(place.path) != source.path or provenance.content(place) == source.content_hash
    except OSError:
        return False


def stored(store: Store, ids: Collection[str]) -> int:
    """How many of these trajectories the tables have."""
    with store.reading() as connection:
        return len(existing_ids(connection, ids))


def replace(store: Store, path: str, ids: Collection[str]) -> Effect:
    """Take out what a source gave under another mapping, before it is read anew."""
    with store.writing() as connection:
        delete(connection, "sources", "path", [path])
        orphans = unowned_ids(connection, ids)
        effect = Effect([path], sorted(orphans), ratings_on(connection, orphans))
        remove(connection, orphans)
    return effect


def _check(name: str) -> None:
    """UsageError for an empty name, such as an unset variable of the shell: it would stand for the current
    folder."""
    if not name.strip():
        raise UsageError(f"forget takes a source, a folder above several, or a trajectory, got {name!r}")


def _append(workspace: Workspace, lines: Sequence[ForgottenEntry]) -> None:
    workspace.forgotten.append(line.model_dump_json(exclude_defaults=True) for line in lines)


def _sources(connection: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    """The sources of that path, or below it."""
    paths = [row[0] for row in connection.execute("SELECT path FROM sources ORDER BY path").fetchall()]
    return [path for path in paths if path in _spellings(name) or _is_below(path, name)]


def _spellings(name: str) -> set[str]:
    return {name, str(Path(name).absolute()), str(Path(name).resolve())}


def _is_below(path: str, name: str) -> bool:
    return any(path.startswith((f"{one.rstrip('/')}/", f"{one}!")) for one in _spellings(name))


def _trajectory_ids(connection: duckdb.DuckDBPyConnection, paths: Collection[str]) -> set[str]:
    query = f"SELECT unnest(trajectory_ids) FROM sources WHERE path {AMONG}"
    return {row[0] for row in execute(connection, query, [texts(paths)]).fetchall()}


def kept_note(ratings: int) -> str:
    """A note that so many ratings on removed trajectories are kept; empty for none."""
    uncounted = "`coaudit ratings uncounted` lists those that do not fit any more"
    return f"; {count_of(ratings, 'rating', 'ratings')} on them kept, {uncounted}" if ratings else ""


def ratings_on(connection: duckdb.DuckDBPyConnection, ids: Collection[str]) -> int:
    query = f"SELECT count(*) FROM current_ratings WHERE trajectory_id {AMONG}"
    row: Any = first_row(connection, query, [texts(ids)])
    return int(row[0])
