"""From logs to the audit tables: find sources, read them, store what is new or has grown."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from coaudit.pipeline import ledger, provenance, rows
from coaudit.pipeline.archives import is_archive, unpacked
from coaudit.pipeline.errors import SourceError
from coaudit.pipeline.live import joining
from coaudit.pipeline.locks import exclusive
from coaudit.pipeline.provenance import ASKED, READERS, Place, Source, reader
from coaudit.pipeline.sources.reader import ReadOptions
from coaudit.pipeline.store import Store, delete, dictionaries, execute, insert
from coaudit.pipeline.workspace import Workspace
from coaudit.schemas.trajectory import Quarantined, Trajectory

BATCH_EVENTS = 20_000
SHOWN = 3
"""So many trajectories tell whether logs are read as meant."""


@dataclass
class Ingested:
    """What an ingest did. `trajectories` and `events` are new or updated, `unchanged` counts trajectories."""

    trajectories: int = 0
    events: int = 0
    unchanged: int = 0
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found: int = 0
    """Sources in which a reader recognised its system."""


Progress = Callable[[str, int, int], None]
"""Called with what is being read, how many sources are done, and of how many."""


@dataclass(frozen=True)
class _Tree:
    """A place that was given: where it can be read, and what it and what is below it are called."""

    root: Path
    name: str
    archive: bool = False

    def called(self, path: Path) -> str:
        below = "" if path == self.root else ("!" if self.archive else "/") + str(path.relative_to(self.root))
        return self.name + below


def recognised(path: Path, system: str = "auto") -> str | None:
    """The system whose source `path` is; None where it is none's, or not that system's."""
    candidates = [name for name in READERS if name not in ASKED] if system == "auto" else [system]
    return next((name for name in candidates if reader(name).recognises(path)), None)


def discover(
    root: Path, system: str = "auto", unreadable: Callable[[Path, OSError], None] | None = None
) -> Iterator[tuple[Path, str]]:
    """Sources at or below `root` with their systems; what lies inside a source belongs to it.

    Links to folders are not followed. `unreadable` is told what could not be looked into.
    """
    waiting = [root]
    while waiting:
        path = waiting.pop()
        try:
            found = recognised(path, system)
            inside = sorted(path.iterdir(), reverse=True) if not found and path.is_dir() else []
            waiting.extend(entry for entry in inside if not (entry.is_symlink() and entry.is_dir()))
        except OSError as error:
            if unreadable is not None:
                unreadable(path, error)
            continue
        if found:
            yield path, found


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
                tree = _Tree(folder, str(path), archive=True)
                _ingest_tree(store, tree, options, system, True, progress, result)
        else:
            _ingest_tree(store, _Tree(path, str(path)), options, system, copy, progress, result)
    return result


def preview(
    paths: Sequence[Path], options: ReadOptions, system: str = "auto", count: int = SHOWN
) -> list[Trajectory | Quarantined]:
    """The first trajectories as they would be read, with what could not be on the way there."""
    found: list[Trajectory | Quarantined] = []
    left = count
    for item in _read_all(paths, options, system):
        found.append(item)
        left -= isinstance(item, Trajectory)
        if not left:
            break
    return found


def _read_all(paths: Sequence[Path], options: ReadOptions, system: str) -> Iterator[Trajectory | Quarantined]:
    for given in paths:
        path = Path(os.path.abspath(given))
        if not path.exists():
            yield Quarantined(source=str(given), reason="no such file or folder")
        elif is_archive(path) and recognised(path, system) is None:
            with unpacked(path) as (folder, refused):
                yield from refused
                yield from _read_tree(_Tree(folder, str(path), archive=True), options, system)
        else:
            yield from _read_tree(_Tree(path, str(path)), options, system)


def _read_tree(tree: _Tree, options: ReadOptions, system: str) -> Iterator[Trajectory | Quarantined]:
    empty = True
    for path, found in discover(tree.root, system):
        empty = False
        yield from provenance.read(Place(path, tree.called(path), found), options)
    if empty:
        yield Quarantined(source=tree.name, reason=_unrecognised(tree.root, system))


def _ingest_tree(
    store: Store,
    tree: _Tree,
    options: ReadOptions,
    system: str,
    copy: bool,
    progress: Progress | None,
    result: Ingested,
) -> None:
    def unreadable(path: Path, error: OSError) -> None:
        reason = f"cannot be read: {error.strerror or error}"
        result.quarantined.append(Quarantined(source=tree.called(path), reason=reason))

    sources = list(discover(tree.root, system, unreadable))
    if not sources:
        reason = _unrecognised(tree.root, system)
        result.quarantined.append(Quarantined(source=tree.name, reason=reason))
        return
    result.found += len(sources)
    known = known_sources(store)
    batch = _Batch(store, result)
    for done, (path, found) in enumerate(sources):
        place = Place(path, tree.called(path), found)
        if progress:
            progress(place.name, done, len(sources))
        try:
            source = _source(place, options)
            if ids := known.get(source.key):
                result.unchanged += len(ids)
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
    _read_references(store, folder, result)
    place = Place(folder, os.path.abspath(folder), "overcooked")
    source = _source(place, ReadOptions()).model_copy(update={"reference": True})
    if source.key not in {one.key for one in provenance.noted(store.workspace)[0] if one.reference}:
        provenance.note(store.workspace, [source])


def _read_references(store: Store, folder: Path, result: Ingested) -> None:
    from coaudit.pipeline.sources.overcooked_references import references

    found, unread = references(folder)
    result.quarantined.extend(unread)
    with store.writing() as connection:
        store.recompute(connection, store.save_references(connection, found, str(folder)))


class _Batch:
    """Trajectories on their way into the store: many a transaction, and sources noted with them."""

    def __init__(self, store: Store, result: Ingested) -> None:
        self.store = store
        self.result = result
        self.trajectories: dict[str, tuple[Trajectory, ReadOptions]] = {}
        self.sources: list[Source] = []
        self.fresh: list[Source] = []
        self.quarantined: list[Quarantined] = []
        self.size = 0

    def add(self, source: Source, place: Place, *, fresh: bool = True) -> None:
        """Read a source; a `fresh` one is not in the ledger yet."""
        ids = []
        for item in provenance.read(place, source.options):
            if isinstance(item, Quarantined):
                self.quarantined.append(item)
                continue
            if item.id in self.trajectories or self.size >= BATCH_EVENTS:
                self.flush()
            self.trajectories[item.id] = (item, source.options)
            ids.append(item.id)
            self.size += len(item.events)
        if ids:  # a source that gave nothing is read again next time, and says again why
            self.sources.append(source.model_copy(update={"trajectory_ids": tuple(ids)}))
            self.fresh.extend(self.sources[-1:] if fresh else [])

    def flush(self) -> None:
        """Store what has come together; nobody waits where that is nothing."""
        if not (self.trajectories or self.sources or self.quarantined) and self.store.is_made:
            return
        with self.store.writing() as connection:
            self._save(connection)
            note_sources(connection, self.sources)
            insert(connection, "quarantine", [(q.source, q.line, q.reason, None) for q in self.quarantined])
            # On disk in the ledger before it is in the database, which a kill in between leaves behind.
            provenance.note(self.store.workspace, self.fresh)
        self.result.quarantined.extend(self.quarantined)
        self.trajectories, self.sources, self.fresh, self.quarantined, self.size = {}, [], [], [], 0
        gc.collect(0)

    def _save(self, connection: duckdb.DuckDBPyConnection) -> None:
        fresh = []
        known = _stored(connection, self.trajectories)
        for trajectory, options in self.trajectories.values():
            found: Trajectory | None = trajectory
            if trajectory.id in known:
                found = settled(self.store, connection, trajectory, options, self.result)
            if found is None:
                self.result.unchanged += 1
                continue
            fresh.append(found)
            self.result.events += sum(not e.live_only for e in found.events)
        self.result.trajectories += len(fresh)
        self.store.save(fresh, connection)


def _stored(connection: duckdb.DuckDBPyConnection, ids: Collection[str]) -> set[str]:
    """Those of the ids that the store has."""
    query = "SELECT id FROM trajectories WHERE id IN (SELECT unnest(?))"
    return {row[0] for row in execute(connection, query, [list(ids)]).fetchall()}


def settled(
    store: Store,
    connection: duckdb.DuckDBPyConnection,
    trajectory: Trajectory,
    options: ReadOptions,
    result: Ingested,
) -> Trajectory | None:
    """The trajectory as it should be stored; None where the store has it, or a longer copy of it.

    Two logs with one id of which neither continues the other are two trajectories: the later one gets a
    suffix made from the first event in which they differ.
    """
    while True:
        head = dictionaries(connection, "SELECT * FROM trajectories WHERE id = ?", [trajectory.id])
        if not head:
            return trajectory
        if head[0]["digest"] == rows.digest(trajectory) and options.condition in (None, head[0]["condition"]):
            return None
        stored = store.load(connection, [trajectory.id])[0]
        if together := joining.settled(stored, trajectory):
            return None if rows.digest(together) == head[0]["digest"] else together
        old, new = rows.event_digests(stored.events), rows.event_digests(trajectory.events)
        if new == old[: len(new)] and len(new) < len(old):
            return None
        if old == new[: len(old)]:
            updated = _updated(stored, trajectory, options)
            same = head[0]["digest"] == rows.digest(updated) and updated.condition == head[0]["condition"]
            return None if same else updated
        differs = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
        result.notes.append(
            f"{trajectory.source}: same session as {stored.source} up to event {differs}, then another; "
            "kept as a trajectory of its own"
        )
        renamed = f"{trajectory.id.partition('-')[0]}-{new[differs][:6]}"
        if renamed == trajectory.id:
            return None
        trajectory = trajectory.model_copy(update={"id": renamed})


def _updated(stored: Trajectory, read: Trajectory, options: ReadOptions) -> Trajectory:
    """What was read, with what is known from elsewhere: the first source, and what only live traffic told."""
    live = [event for event in stored.events if event.live_only]
    events = sorted([*read.events, *live], key=lambda event: (event.seq, event.sub))
    kept: dict[str, object] = {
        "source": stored.source,
        "events": tuple(events),
        "hidden": read.hidden or stored.hidden,
    }
    for name in ("condition", "agent"):
        if getattr(options, name) is None:
            kept[name] = getattr(stored, name) or getattr(read, name)
    if options.setting is None and read.setting is None:
        kept["setting"] = stored.setting
    if not options.tags:
        kept["tags"] = stored.tags
    return read.model_copy(update=kept)


def rebuild(store: Store, progress: Progress | None = None) -> Ingested:
    """Make the database anew from the ledgers; a log that is gone is named, and its ratings are kept.

    A database file is made beside the old one and takes its place once it is whole.
    """
    sources, broken = provenance.noted(store.workspace)
    if not store.is_file:
        store.clear()
        result = _filled(store, sources, progress)
    else:
        store.workspace.create()
        with exclusive(store.workspace.path / "locks", "rebuild", lambda holder: None):
            for leftover in store.workspace.path.glob("rebuilding-*.duckdb*"):
                leftover.unlink()
            aside = Store(Workspace(store.workspace.path, database=f"rebuilding-{os.getpid()}.duckdb"))
            try:
                result = _filled(aside, sources, progress)
                store.clear()
                aside.workspace.database.rename(store.workspace.database)
            finally:
                aside.clear()
    result.quarantined.extend(broken)
    return result


def _filled(store: Store, sources: Sequence[Source], progress: Progress | None) -> Ingested:
    """Read every source into an empty store, and the ledgers of ratings and outcomes after them."""
    from coaudit.pipeline.live import serving

    result = Ingested()
    batch = _Batch(store, result)
    for source in (one for one in sources if one.reference):
        if Path(source.path).exists():
            _read_references(store, Path(source.path), result)
        else:
            batch.quarantined.append(Quarantined(source=source.path, reason="the references are gone"))
    sources = [source for source in sources if not source.reference]
    for done, source in enumerate(sources):
        if progress:
            progress(source.path, done, len(sources))
        place = provenance.found_again(store.workspace, source)
        if place is None:
            reason = "the log is gone; its ratings are kept"
            batch.quarantined.append(Quarantined(source=source.path, reason=reason))
        else:
            batch.add(source, place, fresh=False)
    batch.flush()
    with store.writing() as connection:
        serving.replay(store, connection)
        store.catch_up(connection)
    return result


def known_sources(store: Store) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """The key of every source in the store -> the ids of its trajectories."""
    if not store.is_made or not store.workspace.exists():
        return {}
    with store.reading() as connection:
        found = connection.execute(
            "SELECT path, content_hash, options, trajectory_ids FROM sources"
        ).fetchall()
    return {(path, content, options): tuple(ids) for path, content, options, ids in found}


def note_sources(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]) -> None:
    """Keep where trajectories came from, each place as it was last read."""
    last = {source.path: source for source in sources}
    delete(connection, "sources", "path", list(last))
    many = []
    for source in last.values():
        path, content, options = source.key
        many.append((path, source.system, content, options, list(source.trajectory_ids), source.ingested))
    insert(connection, "sources", many)


def _unrecognised(root: Path, system: str) -> str:
    if system != "auto" and (found := {name for _, name in discover(root)}):
        return f"no logs of {system} in it; it looks like {', '.join(sorted(found))}"
    if root.is_file() and not root.stat().st_size:
        return "the file is empty"
    return f"no logs of a known system in it (known: {', '.join(READERS)})"
