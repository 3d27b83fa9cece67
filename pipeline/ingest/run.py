"""From logs to the audit tables: find sources, read them, store what is new or has grown."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...schemas import Quarantined, Trajectory
from ...schemas.text import count_of, shortened
from ..errors import SourceError
from ..store import Store, ledger
from ..systems import ReadOptions
from ..systems.registry import SYSTEMS
from . import forgetting
from . import sources as provenance
from .archives import archives_below, companion_files, is_archive, unpacked_folder
from .discover import (
    Tree,
    discover,
    is_linked_folder,
    recognised_system,
    unreadable_item,
    unrecognised_reason,
)
from .intake import Intake
from .measure import read_references
from .result import IngestResult, Progress
from .sources import Place, Source, known_sources, quarantined_sources
from .workers import Readers

NESTED = 2
"""Levels of archives within an archive that are unpacked."""
TOO_DEEP = f"lies in more than {NESTED} archives in an archive: unpack it"
NAMED = 5
"""At most so many of the files that are left out are named."""
LONGEST = 60
"""Characters of a name that are shown."""
SHOWN = 3
"""Trajectories in a preview, enough to see whether logs are read as meant."""


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
    with Readers() as readers:
        for item in _with_archives(paths, system):
            path = Path(os.path.abspath(item))
            if not path.exists():
                result.quarantined.append(_missing(item))
            elif is_archive(path) and recognised_system(path, system) is None:
                for tree, refused in _archive_trees(path, str(path), system):
                    result.quarantined.extend(refused)
                    # What was unpacked is gone afterwards, so it is always kept.
                    if tree is not None:
                        _ingest_tree(store, tree, options, system, True, progress, result, readers)
            else:
                _ingest_tree(store, Tree(path, str(path)), options, system, copy, progress, result, readers)
    result.notes += result.exclusions()
    return result


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
        if not inside or next(discover(path, system), None):
            yield path
        yield from inside


def _read_tree(tree: Tree, options: ReadOptions, system: str) -> Iterator[Trajectory | Quarantined]:
    empty = True
    for path, name in discover(tree.root, system):
        empty = False
        yield from provenance.read(Place(path, tree.name_of(path), name), options)
    if empty:
        yield Quarantined(source=tree.name, reason=unrecognised_reason(tree.root, system, tree.name))


def _ingest_tree(
    store: Store,
    tree: Tree,
    options: ReadOptions,
    system: str,
    copy: bool,
    progress: Progress | None,
    result: IngestResult,
    readers: Readers,
) -> None:
    def refuse(path: Path, error: OSError) -> None:
        result.quarantined.append(unreadable_item(tree.name_of(path), error))

    others: list[Path] = []
    sources = list(discover(tree.root, system, refuse, others.append))
    if not sources:
        reason = unrecognised_reason(tree.root, system, tree.name)
        result.quarantined.append(Quarantined(source=tree.name, reason=reason))
        return
    result.found += len(sources)
    places = [Place(path, tree.name_of(path), name) for path, name in sources]
    links = [path for path in others if is_linked_folder(path)]
    if visible := [path for path in links if not path.name.startswith(".")]:
        result.notes.append(_links_note(tree, visible))
    if system == "auto":
        result.notes.extend(left_out_notes(tree, [path for path in others if path not in links], places))
    existing, wrong = known_sources(store), quarantined_sources(store)
    ways, exclusions = provenance.ways(store.workspace), forgetting.read_exclusions(store.workspace)
    fresh = [place for place in places if place.name not in existing and place.name not in exclusions.sources]
    readers.expect(sum(map(provenance.size, fresh)))
    intake = Intake(store, result, readers)
    for index, place in enumerate(places):
        if progress:
            progress(place.name, index, len(sources))
        try:
            source = _source(place, options)
            if source.path in exclusions.sources:
                result.forgotten_sources.append(source.path)
                continue
            before = existing.get(source.path)
            forgotten = exclusions.trajectories.intersection(before.ids if before else ())
            otherwise = before is not None and ways.get(source.path, source.way) != source.way
            if before and otherwise and provenance.gives_anything(place, options):
                effect = forgetting.replace(store, source.path, before.ids)
                result.notes.append(_replacement_note(source.path, effect))
                before = None
            if before and before.holds(source):
                result.unchanged += len(before.ids) - len(forgotten)
                result.forgotten |= forgotten
                result.quarantined += wrong.get(source.path, [])  # said again as long as it is so
                continue
            growth = before and provenance.growth(before, source, place)
            if copy or store.is_shared:
                copy_path = provenance.copy_source(store.workspace, place, source.content_hash)
                source = source.model_copy(update={"copied": copy_path})
        except OSError as error:
            refuse(place.path, error)
            continue
        if before and growth:
            intake.expect(source, place, growth, before.ids)
            result.unchanged += len(before.ids) - len(forgotten)
            result.forgotten |= forgotten
            result.quarantined += [q for q in wrong.get(source.path, []) if q.line and q.line < growth.line]
        else:
            intake.expect(source, place, before=before.ids if before else ())
    intake.run(progress)
    # What another process had forgotten meanwhile is left out, too.
    excluded = forgetting.enforce(store).trajectories
    intake.leave_out(excluded)
    result.forgotten.update(excluded)


def left_out_notes(tree: Tree, files: Sequence[Path], places: Sequence[Place]) -> Iterator[str]:
    """Notes on the files that no reader knows, hidden ones and archives aside, which are opened by
    themselves.

    Files that are read with a source are not among them; references get a hint of their own.
    """
    visible = [path for path in files if not path.name.startswith(".") and not is_archive(path)]
    if not visible:
        return
    companions = {path for place in places for path in provenance.files_beside(place)}
    companions.update(other for path in files if is_archive(path) for other in companion_files(path))
    references = [path for path in visible if any(system.is_reference(path) for system in SYSTEMS.values())]
    if references:
        folder = tree.name_of(Path(os.path.commonpath([path.parent for path in references])))
        yield (
            f"{len(references)} reference{'s and recipes' if len(references) > 1 else ''} of tasks; "
            f"`coaudit ingest {shlex.quote(tree.name)} --reference {shlex.quote(folder)}` uses them"
        )
    names = [_below(tree, path) for path in visible if path not in companions and path not in references]
    if names:
        some = "one file" if len(names) == 1 else f"{len(names)} files"
        yield (
            f"left out {some} that no known system wrote: {_some(names)}; `coaudit map FILE` drafts a mapping"
        )


def _links_note(tree: Tree, links: Sequence[Path]) -> str:
    """A note on links to folders outside of a place: what lies there is not read."""
    some = "one link to a folder is" if len(links) == 1 else f"{len(links)} links to folders are"
    return f"{some} not followed: {_some([_below(tree, path) for path in links])}; give its own path"


def _below(tree: Tree, path: Path) -> str:
    """The name of a path within a place."""
    return shortened(tree.name_of(path).removeprefix(tree.name).lstrip("/!"), LONGEST)


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def _replacement_note(path: str, effect: forgetting.Effect) -> str:
    count = count_of(len(effect.trajectories), "trajectory is", "trajectories are")
    return f"{path}: read in another way, {count} replaced{forgetting.kept_note(effect.ratings)}"


def _source(place: Place, options: ReadOptions) -> Source:
    content = provenance.content(place)
    return Source(
        path=place.name,
        system=place.system,
        content_hash=content,
        bytes=provenance.size(place) if place.path.is_file() else None,
        options=options,
        ingested=ledger.now(),
    )


def _take_references(store: Store, folder: Path, copy: bool, result: IngestResult) -> None:
    """Keep the reference trajectories of a folder, and note it in the ledger unless it is there already."""
    references = read_references(store, folder)
    if not references.tasks and not references.unread:
        raise SourceError(f"{folder}: has neither reference action trajectories nor recipes")
    result.quarantined.extend(references.unread)
    anew = count_of(references.measured, "stored trajectory is", "stored trajectories are")
    remark = f", by which {anew} measured anew" if references.measured else ""
    result.notes.append(f"{folder}: references of {count_of(references.tasks, 'task', 'tasks')}{remark}")
    place = Place(folder, os.path.abspath(folder), "overcooked")
    source = _source(place, ReadOptions()).model_copy(update={"reference": True})
    if copy:
        copy_path = provenance.copy_source(store.workspace, place, source.content_hash)
        source = source.model_copy(update={"copied": copy_path})
    there = {(*one.key, one.copied) for one in provenance.read_ledger(store.workspace)[0] if one.reference}
    if (*source.key, source.copied) not in there:
        with store.writing() as connection:
            provenance.keep(store, connection, (), [source])
