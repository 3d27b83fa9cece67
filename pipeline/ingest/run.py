"""From logs to the audit tables: find sources, read them, store what is new or has grown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ...schemas import Quarantined, Trajectory
from ...schemas.text import count_of
from ..errors import SourceError, StoreError
from ..store import Store
from ..systems import ReadOptions
from ..systems.formats.mapped.unused import unused_paths
from . import forgetting
from . import sources as provenance
from .announcer import Announcer, source_of
from .archives import archives_below, is_archive, unpacked_folder
from .discover import (
    Tree,
    discover,
    is_linked_folder,
    recognised_system,
    unreadable_item,
    unrecognised_reason,
)
from .intake import Intake
from .left_out import left_out_notes, link_notes
from .measure import read_references
from .refusals import Refusals
from .result import IngestResult, Progress
from .sources import Place
from .workers import Readers

NESTED = 2
"""Levels of archives within an archive that are unpacked."""
TOO_DEEP = f"lies in more than {NESTED} archives in an archive: unpack it"
SHOWN = 3
"""Trajectories in a preview, enough to see whether logs are read as meant."""


@dataclass(frozen=True)
class Plan:
    """How sources are looked for and read."""

    options: ReadOptions
    system: str
    copy: bool
    """Whether the workspace keeps a copy of each."""
    progress: Progress | None


def ingest(
    store: Store,
    paths: Sequence[Path],
    options: ReadOptions,
    *,
    system: str = "auto",
    reference: Path | None = None,
    copy: bool = False,
    progress: Progress | None = None,
) -> IngestResult:
    """Read every source at or below `paths` and store what is new or has grown.

    What cannot be read, a path that does not exist included, is quarantined with its address, and nothing
    else is lost.
    """
    store.admit_writes()
    result = IngestResult()
    if reference is not None:
        if not reference.exists():
            raise SourceError(f"{reference}: no such file or folder")
        _take_references(store, reference, copy or store.is_shared, result)
    plan = Plan(options, system, copy, progress)
    refusals = Refusals()
    for item in paths:
        refusals.look(os.path.abspath(item))
    with _naming_what_is_stored(result), Readers() as readers:
        for item in _with_archives(paths, system):
            path = Path(os.path.abspath(item))
            if not path.exists():
                result.quarantined.append(_missing(item))
            elif is_archive(path) and recognised_system(path, system) is None:
                for tree, refused in _archive_trees(path, str(path), system):
                    result.quarantined.extend(refused)
                    refusals.take(refused)
                    # What was unpacked is gone afterwards, so it is always kept.
                    if tree is not None:
                        refusals.take(_ingest_tree(store, tree, replace(plan, copy=True), result, readers))
            else:
                refusals.take(_ingest_tree(store, Tree(path, str(path)), plan, result, readers))
    refusals.keep(store)
    result.notes += result.exclusions()
    return result


@contextmanager
def _naming_what_is_stored(result: IngestResult) -> Iterator[None]:
    """Add to an error of the store what the run had stored by then."""
    try:
        yield
    except StoreError as error:
        trajectories, events = result.stored
        if not trajectories:
            raise
        before = count_of(trajectories, "trajectory", "trajectories")
        before += f" with {count_of(events, 'event', 'events')}"
        raise type(error)(f"{error}; this run had stored {before} before, which stay") from error


def preview(
    paths: Sequence[Path], options: ReadOptions, system: str = "auto", count: int = SHOWN
) -> list[Trajectory | Quarantined]:
    """The first trajectories as they would be read, and what could not be read before them."""
    items: list[Trajectory | Quarantined] = []
    rest = count
    for item in _read_all(paths, options, system):
        items.append(item)
        rest -= isinstance(item, Trajectory)
        if not rest:
            break
    return items


def _missing(item: Path) -> Quarantined:
    """What is wrong with a path at which there is nothing."""
    is_link = item.is_symlink()
    reason = "a link that leads nowhere, or in a circle" if is_link else "no such file or folder"
    return Quarantined(source=str(item), reason=reason)


def _read_all(paths: Sequence[Path], options: ReadOptions, system: str) -> Iterator[Trajectory | Quarantined]:
    for item in _with_archives(paths, system):
        path = Path(os.path.abspath(item))
        if not path.exists():
            yield _missing(item)
        elif is_archive(path) and recognised_system(path, system) is None:
            for tree, refused in _archive_trees(path, str(path), system):
                yield from refused
                if tree is not None:
                    yield from _read_tree(tree, options, system)
        else:
            yield from _read_tree(Tree(path, str(path)), options, system)


def _archive_trees(
    path: Path, name: str, system: str, depth: int = NESTED
) -> Iterator[tuple[Tree | None, list[Quarantined]]]:
    """The contents of an archive, then of each archive in it, unpacked until the next; and what was refused.

    None in place of the contents where they hold nothing of their own.
    """
    with unpacked_folder(path) as (folder, wrong):
        refused = [q.model_copy(update={"source": name + q.source.removeprefix(str(path))}) for q in wrong]
        inside = {f"{name}!{inner.relative_to(folder)}": inner for inner in archives_below(folder)}
        if not depth:
            refused += [Quarantined(source=address, reason=TOO_DEEP) for address in inside]
        has_logs = next(discover(folder, system), None) if inside else any(folder.iterdir()) or not refused
        yield Tree(folder, name, archive=True) if has_logs else None, refused
        for address, inner in inside.items() if depth else ():
            yield from _archive_trees(inner, address, system, depth - 1)


def _with_archives(paths: Sequence[Path], system: str) -> Iterator[Path]:
    """The places that were given, and the archives in those that are no source themselves."""
    for path in paths:
        inside = [] if path.is_dir() and recognised_system(path, system) else archives_below(path)
        if not inside or _has_logs(path, system):
            yield path
        yield from inside


def _has_logs(folder: Path, system: str) -> bool:
    """Whether a folder has logs beside archives, or what may be one and cannot be opened."""
    refused: list[Path] = []
    first = next(discover(folder, system, lambda path, _: refused.append(path)), None)
    return bool(first or refused)


def _read_tree(tree: Tree, options: ReadOptions, system: str) -> Iterator[Trajectory | Quarantined]:
    places = [Place(path, tree.name_of(path), name) for path, name in discover(tree.root, system)]
    for note in _unused_paths(tree, places, options):
        yield Quarantined(source=tree.name, reason=note.removeprefix(f"{tree.name}: "))
    for place in places:
        yield from provenance.read(place, options)
    if not places:
        yield Quarantined(source=tree.name, reason=unrecognised_reason(tree.root, system, tree.name))


def _ingest_tree(
    store: Store, tree: Tree, plan: Plan, result: IngestResult, readers: Readers
) -> list[Quarantined]:
    """Read the sources of a tree; returns what could not be opened."""
    refused: list[Quarantined] = []

    def refuse(path: Path, error: OSError) -> None:
        refused.append(unreadable_item(tree.name_of(path), error))
        result.quarantined.append(refused[-1])

    others: list[Path] = []
    places = [
        Place(path, tree.name_of(path), name)
        for path, name in discover(tree.root, plan.system, refuse, others.append)
    ]
    if not places:
        reason = unrecognised_reason(tree.root, plan.system, tree.name)
        result.quarantined.append(Quarantined(source=tree.name, reason=reason))
        return refused
    result.found += len(places)
    result.notes += link_notes(tree, others)
    if plan.system == "auto":
        used = _reference_folders(store) if others else set()
        left_out = [
            path for path in others if not is_linked_folder(path) and not used.intersection(path.parents)
        ]
        result.notes += left_out_notes(tree, left_out, places)
    intake = Intake(store, result, readers)
    announcer = Announcer(store, result, intake)
    new = [place for place in places if announcer.is_new(place)]
    result.notes += _unused_paths(tree, new, plan.options)
    readers.expect(sum(map(provenance.size, new)))
    for index, place in enumerate(places):
        if plan.progress:
            plan.progress(place.name, index, len(places))
        try:
            announcer.announce(place, plan.options, copy=plan.copy)
        except OSError as error:
            refuse(place.path, error)
    intake.run(plan.progress)
    # What another process had forgotten meanwhile is left out, too.
    excluded = forgetting.enforce(store).trajectories
    intake.leave_out(excluded)
    result.forgotten.update(excluded)
    return refused


def _unused_paths(tree: Tree, places: Sequence[Place], options: ReadOptions) -> Iterator[str]:
    """A note on what the mapping of logs looks for and no place has."""
    files = [place.path for place in places if place.system == "mapped"]
    if files and (note := unused_paths(files, options.map)):
        yield f"{tree.name}: {note}"


def _reference_folders(store: Store) -> set[Path]:
    """The folders whose references are in use."""
    return {Path(one.path) for one in provenance.read_ledger(store.workspace)[0] if one.reference}


def _take_references(store: Store, folder: Path, copy: bool, result: IngestResult) -> None:
    """Keep the reference trajectories of a folder, and note it in the ledger unless it is the last there."""
    references = read_references(store, folder)
    if not references.tasks and not references.unread:
        raise SourceError(f"{folder}: has neither reference action trajectories nor recipes")
    result.quarantined.extend(references.unread)
    anew = count_of(references.measured, "stored trajectory is", "stored trajectories are")
    remark = f", by which {anew} measured anew" if references.measured else ""
    result.notes.append(f"{folder}: references of {count_of(references.tasks, 'task', 'tasks')}{remark}")
    place = Place(folder, os.path.abspath(folder), "overcooked")
    source = source_of(place, ReadOptions()).model_copy(update={"reference": True})
    if copy:
        copy_path = provenance.copy_source(store.workspace, place, source.content_hash)
        source = source.model_copy(update={"copied": copy_path})
    there = [(*one.key, one.copied) for one in provenance.read_ledger(store.workspace)[0] if one.reference]
    if (*source.key, source.copied) not in there[-1:]:
        with store.writing() as connection:
            provenance.keep(store, connection, (), [source])
