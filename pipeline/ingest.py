"""From logs to the audit tables: find sources, read them, store what is new or has grown."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import duckdb

from coaudit.pipeline import ledger, rows
from coaudit.pipeline.archives import is_archive, unpacked
from coaudit.pipeline.errors import SourceError, UsageError
from coaudit.pipeline.sources.reader import Reader, ReadOptions
from coaudit.pipeline.store import Store, delete, dictionaries, execute, insert
from coaudit.schemas.base import Model, content_hash
from coaudit.schemas.trajectory import Quarantined, Trajectory

READERS = {
    "cogym": "cogym",
    "rehac": "rehac",
    "overcooked": "overcooked",
    "coblock": "coblock",
    "coaudit": "coaudit_jsonl",
    "inspect": "inspect_log",
    "otlp": "otlp",
    "chat": "chat",
    "mapped": "mapped",
}
"""System -> the module under sources/ that reads its logs; auto asks them in this order."""
ASKED = ("mapped",)
"""Read only where asked for: such logs are whatever their mapping says."""
BATCH_EVENTS = 20_000


class Source(Model):
    """One line of sources.jsonl: what was ingested, from where, how."""

    path: str
    system: str | None = None
    content_hash: str
    options: ReadOptions
    trajectory_ids: tuple[str, ...] = ()
    ingested: str
    reference: bool = False
    """True for a folder of reference trajectories, which `--reference` gave."""
    copied: str | None = None
    """Where under raw/ a copy lies."""


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


def reader(system: str) -> Reader:
    """The reader of a system; UsageError names the systems there are."""
    if system not in READERS:
        raise UsageError(f"unknown system {system!r}, expected one of auto, {', '.join(READERS)}")
    module: Reader = importlib.import_module(f"coaudit.pipeline.sources.{READERS[system]}")
    return module


def recognised(path: Path, system: str = "auto") -> str | None:
    """The system whose source `path` is; None where it is none's, or not that system's."""
    candidates = [name for name in READERS if name not in ASKED] if system == "auto" else [system]
    return next((name for name in candidates if reader(name).recognises(path)), None)


def discover(root: Path, system: str = "auto") -> Iterator[tuple[Path, str]]:
    """Sources at or below `root` with their systems; what lies inside a source belongs to it."""
    if found := recognised(root, system):
        yield root, found
    elif root.is_dir():
        for entry in sorted(root.iterdir()):
            if entry.is_symlink() and entry.is_dir():
                continue
            yield from discover(entry, system)


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

    Raises SourceError for a path that does not exist; everything inside a source that cannot be read is
    quarantined with its address, and nothing else is lost.
    """
    for path in (*paths, *([reference] if reference else [])):
        if not path.exists():
            raise SourceError(f"{path}: no such file or folder")
    result = Ingested()
    if reference is not None:
        _take_references(store, reference, result)
    for path in paths:
        if is_archive(path) and recognised(path, system) is None:
            with unpacked(path) as (folder, refused):
                result.quarantined.extend(refused)
                _ingest_tree(store, folder, options, system, True, progress, result, str(path))
        else:
            _ingest_tree(store, path, options, system, copy, progress, result, None)
    return result


def _ingest_tree(
    store: Store,
    root: Path,
    options: ReadOptions,
    system: str,
    copy: bool,
    progress: Progress | None,
    result: Ingested,
    archive: str | None,
) -> None:
    sources = list(discover(root, system))
    if not sources:
        result.quarantined.append(
            Quarantined(source=archive or str(root), reason=_unrecognised(root, system))
        )
        return
    result.found += len(sources)
    known = _known(store)
    batch = _Batch(store, result)
    for done, (path, found) in enumerate(sources):
        if progress:
            progress(str(path), done, len(sources))
        source = Source(
            path=str(path.absolute()),
            system=found,
            content_hash=_content(path),
            options=options,
            ingested=ledger.now(),
        )
        ids = known.get((source.path, source.content_hash, content_hash(options.model_dump())))
        if ids is not None:
            result.unchanged += len(ids)
            continue
        if copy:
            source = source.model_copy(update={"copied": _copy(store, path, source.content_hash)})
        batch.add(source, reader(found).read(path, options))
    batch.flush()
    if progress:
        progress(str(root), len(sources), len(sources))


def _take_references(store: Store, folder: Path, result: Ingested) -> None:
    """Keep the reference trajectories of a folder, and note it in the ledger."""
    _read_references(store, folder, result)
    source = Source(
        path=str(folder.absolute()),
        system="overcooked",
        content_hash=_content(folder),
        options=ReadOptions(),
        reference=True,
        ingested=ledger.now(),
    )
    ledger.append(store.workspace.sources, [source.model_dump_json(exclude_defaults=True)])


def _read_references(store: Store, folder: Path, result: Ingested) -> None:
    from coaudit.pipeline.sources.overcooked_references import references

    found, unread = references(folder)
    result.quarantined.extend(unread)
    with store.writing() as connection:
        store.recompute(connection, store.save_references(connection, found, str(folder)))


class _Batch:
    """Trajectories on their way into the store: many a transaction, sources noted once they are in it."""

    def __init__(self, store: Store, result: Ingested) -> None:
        self.store = store
        self.result = result
        self.trajectories: dict[str, tuple[Trajectory, ReadOptions]] = {}
        self.sources: list[Source] = []
        self.quarantined: list[Quarantined] = []
        self.size = 0

    def add(self, source: Source, read: Iterator[Trajectory | Quarantined], *, note: bool = True) -> None:
        """Take in what a reader yields; `note` the source in the ledger unless it is there already."""
        ids = []
        for item in read:
            if isinstance(item, Quarantined):
                self.quarantined.append(item)
                continue
            if item.id in self.trajectories:
                self._store(())
            self.trajectories[item.id] = (item, source.options)
            ids.append(item.id)
            self.size += len(item.events)
            if self.size >= BATCH_EVENTS:
                self._store(())
        if note:
            self.sources.append(source.model_copy(update={"trajectory_ids": tuple(ids)}))

    def flush(self) -> None:
        self._store(self.sources)
        self.sources = []

    def _store(self, sources: Sequence[Source]) -> None:
        with self.store.writing() as connection:
            self._save(connection)
            _note_sources(connection, sources)
            insert(connection, "quarantine", [(q.source, q.line, q.reason, None) for q in self.quarantined])
        if sources:
            lines = [source.model_dump_json(exclude_defaults=True) for source in sources]
            ledger.append(self.store.workspace.sources, lines)
        self.result.quarantined.extend(self.quarantined)
        self.trajectories, self.quarantined, self.size = {}, [], 0

    def _save(self, connection: duckdb.DuckDBPyConnection) -> None:
        fresh = []
        known = _stored(connection, self.trajectories)
        for trajectory, options in self.trajectories.values():
            settled: Trajectory | None = trajectory
            if trajectory.id in known:
                settled = _settled(self.store, connection, trajectory, options, self.result)
            if settled is None:
                self.result.unchanged += 1
                continue
            fresh.append(settled)
            self.result.events += sum(not e.live_only for e in settled.events)
        self.result.trajectories += len(fresh)
        self.store.save(fresh, connection)


def _stored(connection: duckdb.DuckDBPyConnection, ids: Collection[str]) -> set[str]:
    """Those of the ids that the store has."""
    query = "SELECT id FROM trajectories WHERE id IN (SELECT unnest(?))"
    return {row[0] for row in execute(connection, query, [list(ids)]).fetchall()}


def _settled(
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
        old, new = rows.event_digests(stored.events), rows.event_digests(trajectory.events)
        if new == old[: len(new)] and len(new) < len(old):
            return None
        if old == new[: len(old)]:
            return _updated(stored, trajectory, options)
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
    if options.condition is None:
        kept["condition"] = stored.condition
    if options.setting is None and read.setting is None:
        kept["setting"] = stored.setting
    if not options.tags:
        kept["tags"] = stored.tags
    return read.model_copy(update=kept)


def rebuild(store: Store, progress: Progress | None = None) -> Ingested:
    """Make the database anew from sources.jsonl and the ratings; a log that is gone is named."""
    workspace = store.workspace
    sources = list(_noted(store))
    for path in (workspace.database, workspace.database.with_suffix(".duckdb.wal")):
        path.unlink(missing_ok=True)
    result = Ingested()
    with store.writing():
        pass
    batch = _Batch(store, result)
    for source in (one for one in sources if one.reference):
        if Path(source.path).exists():
            _read_references(store, Path(source.path), result)
    sources = [source for source in sources if not source.reference]
    for done, source in enumerate(sources):
        if progress:
            progress(source.path, done, len(sources))
        place = _found_again(store, source)
        if place is None:
            reason = "the log is gone; its ratings are kept"
            batch.quarantined.append(Quarantined(source=source.path, reason=reason))
        elif source.system is not None:
            batch.add(source, reader(source.system).read(place, source.options), note=False)
    batch.flush()
    with store.writing() as connection:
        _note_sources(connection, sources)
    store.sync()
    return result


def _noted(store: Store) -> Iterator[Source]:
    """The sources of the ledger, each place once, as it was last ingested."""
    last: dict[tuple[str, str], Source] = {}
    path = store.workspace.sources
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            source = Source.model_validate_json(line)
        except ValueError as error:
            raise SourceError(f"{path}:{number}: {error}") from error
        last[(source.path, content_hash(source.options.model_dump()))] = source
    yield from last.values()


def _known(store: Store) -> dict[tuple[str, str, str], tuple[str, ...]]:
    if not store.workspace.database.exists():
        return {}
    with store.reading() as connection:
        found = connection.execute(
            "SELECT path, content_hash, options, trajectory_ids FROM sources"
        ).fetchall()
    return {(path, content, options): tuple(ids) for path, content, options, ids in found}


def _note_sources(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]) -> None:
    last = {source.path: source for source in sources}
    delete(connection, "sources", "path", list(last))
    many = [
        (
            source.path,
            source.system,
            source.content_hash,
            content_hash(source.options.model_dump()),
            list(source.trajectory_ids),
            source.ingested,
        )
        for source in last.values()
    ]
    insert(connection, "sources", many)


def _content(path: Path) -> str:
    """Hash of a source's files, names included."""
    state = blake2b(digest_size=16)
    files = (
        [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
    )
    for file in files:
        state.update(str(file.relative_to(path) if file != path else file.name).encode("utf-8", "replace"))
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                state.update(block)
    return state.hexdigest()


def _copy(store: Store, path: Path, content: str) -> str:
    target = store.workspace.raw / "copied" / content / path.name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, ignore=_links)
        else:
            shutil.copy2(path, target)
    return str(target.relative_to(store.workspace.path))


def _links(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if (Path(folder) / name).is_symlink()}


def _found_again(store: Store, source: Source) -> Path | None:
    """Where a source can be read now: its own place, else its copy under raw/."""
    copy = store.workspace.path / source.copied if source.copied else None
    return next((path for path in (Path(source.path), copy) if path and path.exists()), None)


def _unrecognised(root: Path, system: str) -> str:
    if system != "auto" and any(True for _ in discover(root)):
        looks = ", ".join(sorted({found for _, found in discover(root)}))
        return f"no logs of {system} in it; it looks like {looks}"
    return f"no logs of a known system in it (known: {', '.join(READERS)})"
