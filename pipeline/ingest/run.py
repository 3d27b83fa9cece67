"""From logs to the audit tables: find sources, read them, store what is new or has grown."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from ...schemas import Quarantined, Trajectory
from ..errors import SourceError
from ..store import Store, delete, execute, insert, ledger
from ..systems import ReadOptions, merge
from . import sources as provenance
from .archives import is_archive, unpacked
from .discover import Tree, discover, recognised, unrecognised
from .identity import may_be_one, settled
from .measure import read_references, save
from .result import Ingested
from .sources import Place, Source, known_sources, quarantined_sources

BATCH_EVENTS = 20_000
SHOWN = 3
"""So many trajectories tell whether logs are read as meant."""


Progress = Callable[[str, int, int], None]
"""Called with what is being read, how many sources are done, and of how many."""


def ingest(
    store: Store,
    paths: Sequence[Path],
    options: ReadOptions,
    *,
    system: str = "auto",
    reference: Path | None = None,
    copy: bool = False,
    progress: Progress | None = None,
) -> Ingested:
    """Read every source at or below `paths` and store what is new or has grown.

    What cannot be read, a path that does not exist included, is quarantined with its address, and nothing
    else is lost.
    """
    with _few_collections():
        return _ingested(store, paths, options, system, reference, copy, progress)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Look for reference cycles once a batch only: thousands of events wait there, and none is in a cycle."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _ingested(
    store: Store,
    paths: Sequence[Path],
    options: ReadOptions,
    system: str,
    reference: Path | None,
    copy: bool,
    progress: Progress | None,
) -> Ingested:
    result = Ingested()
    if reference is not None:
        if not reference.exists():
            raise SourceError(f"{reference}: no such file or folder")
        _take_references(store, reference, result)
    for given in paths:
        path = Path(os.path.abspath(given))
        if not path.exists():
            result.quarantined.append(Quarantined(source=str(given), reason="no such file or folder"))
        elif is_archive(path) and recognised(path, system) is None:
            with unpacked(path) as (folder, refused):
                result.quarantined.extend(refused)
                # What was unpacked is gone afterwards, so it is always kept.
                tree = Tree(folder, str(path), archive=True)
                _ingest_tree(store, tree, options, system, True, progress, result)
        else:
            _ingest_tree(store, Tree(path, str(path)), options, system, copy, progress, result)
    return result


def preview(
    paths: Sequence[Path], options: ReadOptions, system: str = "auto", count: int = SHOWN
) -> list[Trajectory | Quarantined]:
    """The first trajectories as they would be read, with what could not be on the way there."""
    items: list[Trajectory | Quarantined] = []
    left = count
    for item in _read_all(paths, options, system):
        items.append(item)
        left -= isinstance(item, Trajectory)
        if not left:
            break
    return items


def _read_all(paths: Sequence[Path], options: ReadOptions, system: str) -> Iterator[Trajectory | Quarantined]:
    for given in paths:
        path = Path(os.path.abspath(given))
        if not path.exists():
            yield Quarantined(source=str(given), reason="no such file or folder")
        elif is_archive(path) and recognised(path, system) is None:
            with unpacked(path) as (folder, refused):
                yield from refused
                yield from _read_tree(Tree(folder, str(path), archive=True), options, system)
        else:
            yield from _read_tree(Tree(path, str(path)), options, system)


def _read_tree(tree: Tree, options: ReadOptions, system: str) -> Iterator[Trajectory | Quarantined]:
    empty = True
    for path, name in discover(tree.root, system):
        empty = False
        yield from provenance.read(Place(path, tree.called(path), name), options)
    if empty:
        yield Quarantined(source=tree.name, reason=unrecognised(tree.root, system, tree.name))


def _ingest_tree(
    store: Store,
    tree: Tree,
    options: ReadOptions,
    system: str,
    copy: bool,
    progress: Progress | None,
    result: Ingested,
) -> None:
    def unreadable(path: Path, error: OSError) -> None:
        reason = f"cannot be read: {error.strerror or error}"
        name = tree.called(path).encode("utf-8", "backslashreplace").decode()
        result.quarantined.append(Quarantined(source=name, reason=reason))

    sources = list(discover(tree.root, system, unreadable))
    if not sources:
        reason = unrecognised(tree.root, system, tree.name)
        result.quarantined.append(Quarantined(source=tree.name, reason=reason))
        return
    result.found += len(sources)
    known, wrong = known_sources(store), quarantined_sources(store)
    batch = Batch(store, result)
    for done, (path, name) in enumerate(sources):
        place = Place(path, tree.called(path), name)
        if progress:
            progress(place.name, done, len(sources))
        try:
            source = _source(place, options)
            if ids := known.get(source.key):
                result.unchanged += len(ids)
                result.quarantined += wrong.get(source.path, [])  # said again as long as it is so
                continue
            if copy:
                kept = provenance.copied(store.workspace, place, source.content_hash)
                source = source.model_copy(update={"copied": kept})
        except OSError as error:
            unreadable(path, error)
            continue
        batch.add(source, place)
    batch.flush()
    if progress:
        progress(tree.name, len(sources), len(sources))


def _source(place: Place, options: ReadOptions) -> Source:
    content = provenance.content(place)
    return Source(
        path=place.name, system=place.system, content_hash=content, options=options, ingested=ledger.now()
    )


def _take_references(store: Store, folder: Path, result: Ingested) -> None:
    """Keep the reference trajectories of a folder, and note it in the ledger unless it is there already."""
    result.quarantined.extend(read_references(store, folder))
    place = Place(folder, os.path.abspath(folder), "overcooked")
    source = _source(place, ReadOptions()).model_copy(update={"reference": True})
    if source.key not in {one.key for one in provenance.noted(store.workspace)[0] if one.reference}:
        with store.writing() as connection:
            provenance.keep(store, connection, (), [source])


class Batch:
    """Trajectories on their way into the store: many a transaction, and sources noted with them."""

    def __init__(self, store: Store, result: Ingested) -> None:
        self.store = store
        self.result = result
        self.trajectories: dict[str, tuple[Trajectory, ReadOptions]] = {}
        self.names: dict[str, list[str]] = {}
        self.sources: list[Source] = []
        self.fresh: list[Source] = []
        self.quarantined: list[tuple[Quarantined, str]] = []
        """What could not be read, and of which source."""
        self.read: list[str] = []
        self.size = 0

    def add(self, source: Source, place: Place, *, fresh: bool = True) -> None:
        """Read a source; a `fresh` one is not in the ledger yet."""
        ids = []
        self.read.append(source.path)
        for item in provenance.read(place, source.options):
            if isinstance(item, Quarantined):
                self.quarantined.append((item, source.path))
                continue
            if self._meets(item) or self.size >= BATCH_EVENTS:
                self.flush()
            self.trajectories[item.id] = (item, source.options)
            self.names.setdefault(item.native_id, []).append(item.id)
            ids.append(item.id)
            self.size += len(item.events)
        if ids:  # a source that gave nothing is read again next time, and says again why
            self.sources.append(source.model_copy(update={"trajectory_ids": tuple(ids)}))
            self.fresh.extend(self.sources[-1:] if fresh else [])

    def _meets(self, item: Trajectory) -> bool:
        """Whether what waits has to be stored first, since it may be the same session."""
        if item.id in self.trajectories:
            return True
        others = self.names.get(item.native_id, ())
        return any(may_be_one(item, self.trajectories[other][0]) for other in others)

    def flush(self) -> None:
        """Store what has come together; nobody waits where that is nothing."""
        if not (self.trajectories or self.sources or self.quarantined) and self.store.is_made:
            return
        with self.store.writing() as connection:
            self._save(connection)
            delete(connection, "quarantine", "read_from", self.read)
            kept = [{**item.model_dump(), "read_from": path} for item, path in self.quarantined]
            insert(connection, "quarantine", kept)
            provenance.keep(self.store, connection, self.sources, self.fresh)
        self.result.quarantined.extend(item for item, _ in self.quarantined)
        self.trajectories, self.names, self.size = {}, {}, 0
        self.sources, self.fresh, self.quarantined, self.read = [], [], [], []
        gc.collect(0)

    def _save(self, connection: duckdb.DuckDBPyConnection) -> None:
        fresh = []
        known = _stored(connection, self.trajectories)
        heard = _heard(connection, self.trajectories.values())
        for trajectory, options in self.trajectories.values():
            whole: Trajectory | None = trajectory
            if trajectory.id in known or trajectory.native_id in heard:
                whole = settled(self.store, connection, trajectory, options, self.result)
            if whole is None:
                self.result.unchanged += 1
                continue
            fresh.append(whole)
            self.result.remarks.take(whole)
            self.result.events += sum(not e.live_only for e in whole.events)
        self.result.trajectories += len(fresh)
        save(self.store, fresh, connection)


def _stored(connection: duckdb.DuckDBPyConnection, ids: Collection[str]) -> set[str]:
    """Those of the ids that the store has."""
    query = "SELECT id FROM trajectories WHERE id IN (SELECT unnest(?))"
    return {row[0] for row in execute(connection, query, [list(ids)]).fetchall()}


def _heard(
    connection: duckdb.DuckDBPyConnection, trajectories: Collection[tuple[Trajectory, ReadOptions]]
) -> set[str]:
    """Names of sessions that were heard, now or before: their ids may not be those of their logs."""
    query = """
        SELECT native_id FROM trajectories JOIN outcomes ON trajectory_id = id
        WHERE name = ? AND native_id IN (SELECT unnest(?))
    """
    names = [trajectory.native_id for trajectory, _ in trajectories]
    stored = {row[0] for row in execute(connection, query, [merge.HEARD, names]).fetchall()}
    return stored | {trajectory.native_id for trajectory, _ in trajectories if merge.was_heard(trajectory)}
