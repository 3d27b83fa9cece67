"""Where trajectories came from: the ledger of sources, copies of logs under raw/, and reading either."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path

import duckdb
from pydantic import ValidationError

from ...schemas import Model, Quarantined, Trajectory, content_hash
from ..errors import StoreError
from ..store import AMONG, Store, Workspace, delete, dictionaries, disk, execute, insert, texts
from ..store.ledgers.sync import ledger_offsets, note_offsets
from ..store.tars import leads_out
from ..systems import ReadOptions, Span
from ..systems.registry import system_of

_FOLDERS_KEPT = 6
"""Parts of a source's path that its copy keeps: folders above it name condition and task."""


_ABANDONED = 24 * 3600.0
"""Seconds without change after which an unfinished copy is abandoned: whoever made it was killed."""

Way = tuple[str | None, str | None]
"""A system, and the text of a mapping."""


class Source(Model):
    """One line of the ledger: what was ingested, from where, how."""

    path: str
    """Its own path, or `archive!path inside`."""
    system: str | None = None
    content_hash: str
    bytes: int | None = None
    """How long the file was, where it is one."""
    options: ReadOptions
    trajectory_ids: tuple[str, ...] = ()
    ingested: str
    reference: bool = False
    """True for a folder of reference trajectories, which `--reference` gave."""
    copied: str | None = None
    """Where under the workspace a copy lies."""

    @property
    def way(self) -> Way:
        """As whose log it was read, by which mapping."""
        return self.system, self.options.map

    @property
    def key(self) -> tuple[str, str, str]:
        """What must be the same for a source to hold nothing new."""
        return self.path, self.content_hash, content_hash(self.options.model_dump())


@dataclass(frozen=True)
class Place:
    """A source where it can be read now (`path`), and what it is called (its own path, when it is a copy)."""

    path: Path
    name: str
    system: str


def read(place: Place, options: ReadOptions, span: Span | None = None) -> Iterator[Trajectory | Quarantined]:
    """What a source holds, or a part of it, under its own name. A reader that fails costs this source
    alone."""
    system = system_of(place.system)
    try:
        if span and system.read_span:
            items = system.read_span(place.path, options, span)
        else:
            items = system.read(place.path, options)
        for item in items:
            name = _original_path(item.source, place)
            yield item if name == item.source else item.model_copy(update={"source": name})
    except OSError as error:
        yield Quarantined(source=place.name, reason=f"cannot be read: {error.strerror or error}")
    except Exception as error:  # one log that nobody thought of must not stop the other thousand
        reason = f"its reader failed: {type(error).__name__}: {str(error)[:200]}"
        yield Quarantined(source=place.name, reason=reason)


def content(place: Place) -> str:
    """Hash of a source's files and their names, and of the files beside it on which its reading depends."""
    state = blake2b(digest_size=16)
    beside = [(str(file), _name(str(file), place.path)) for file in files_beside(place)]
    for path, name in [*_file_names(place), *beside]:
        state.update(_bytes(name))
        with open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                state.update(block)
    return state.hexdigest()


def size(place: Place) -> int:
    """Bytes of a source's files; 0 for what cannot be looked at."""
    try:
        return sum(os.stat(path).st_size for _, path in _files(place))
    except OSError:
        return 0


def copy_source(workspace: Workspace, place: Place, content: str) -> str:
    """Copy a source under raw/, whole or not at all; returns the copy's path, relative to the workspace."""
    tail = [part for part in re.split(r"[/!]", place.name) if part][-_FOLDERS_KEPT:]
    final = workspace.raw / "copied" / content
    if not final.exists():
        _remove_abandoned(final.parent)
        part = final.with_name(f"{content}.{disk.unique_part()}.part")
        try:
            _copy(place, part, tail)
            disk.share(part)
            part.rename(final)
        except OSError:
            if not final.exists():  # else another process was faster
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
    if workspace.remote:
        workspace.remote.logs.keep(content, final)
    return str(final.joinpath(*tail).relative_to(workspace.path))


def _remove_abandoned(folder: Path) -> None:
    """Remove copies that were never finished: they take as much room as their logs."""
    for part in folder.glob("*.part"):
        with suppress(FileNotFoundError):  # whole by now
            newest = max(path.lstat().st_ctime for path in (part, *part.rglob("*")))
            if time.time() - newest > _ABANDONED:
                shutil.rmtree(part, ignore_errors=True)


def with_copy(store: Store, source: Source) -> Source | None:
    """A source as it is now with a copy of it, for machines that cannot read it in its place; None where it
    is gone."""
    path = Path(source.path)
    if source.system is None or not path.exists():
        return None
    place = Place(path, source.path, source.system)
    now = content(place)
    return source.model_copy(
        update={"copied": copy_source(store.workspace, place, now), "content_hash": now, "bytes": size(place)}
    )


def locate(workspace: Workspace, source: Source) -> Place | None:
    """Where a source can be read now: its copy, which is as it was, else its own path; None where neither
    exists."""
    copy = workspace.path / source.copied if source.copied and _lies_inside(source) else None
    if copy and not copy.exists() and workspace.remote:
        workspace.remote.logs.fetch(source.content_hash, workspace.raw / "copied" / source.content_hash)
    for path in (copy, Path(source.path)):
        if path is not None and path.exists() and source.system is not None:
            return Place(path, source.path, source.system)
    return None


def _lies_inside(source: Source) -> bool:
    """Whether the place of a copy lies in the workspace: other machines write a study's ledger, too."""
    return not leads_out(source.copied or "") and not leads_out(source.content_hash)


def read_ledger(
    workspace: Workspace, offsets: Mapping[str, int] | None = None
) -> tuple[list[Source], list[Quarantined]]:
    """The sources of the ledger as they were last ingested, and broken lines.

    A path is there once for each set of options, and once for each copy of what it held over time. They are
    in the order in which they were first ingested, as the first of several that have a trajectory tells its
    condition; one that was ingested in another way since, or one of whose trajectories a source with other
    options gave since, is where it was ingested last. Lines before the byte offset of their file are left
    out.
    """
    last: dict[tuple[str, str, str | None], Source] = {}
    newest: dict[str, tuple[object, int]] = {}  # path -> its last key, and the line of that
    stretches: dict[
        str, tuple[str, int]
    ] = {}  # trajectory -> the options that gave it last, since which line
    bad_lines, count = [], 0
    for path, number, line in workspace.sources.lines(offsets):
        try:
            source = Source.model_validate_json(line)
        except ValidationError as error:
            if error.errors()[0]["type"] == "extra_forbidden":
                raise StoreError(f"{path}:{number}: written by a newer coaudit; update it") from error
            reason = "a line that was cut off; what it noted is not known"
            bad_lines.append(Quarantined(source=str(path), line=number, reason=reason))
            continue
        options, count = content_hash(source.options.model_dump()), count + 1
        key = (source.path, options, source.copied)
        before, since = newest.get(source.path, (None, 0))
        runs = [stretches[one] for one in source.trajectory_ids if one in stretches]
        # What a folder of references says goes before what those that were read earlier say.
        is_later = before != key or source.reference
        if is_later or any(other != options or start > since for other, start in runs):
            last.pop(key, None)
        newest[source.path] = key, count
        here = options, count
        for one in source.trajectory_ids:
            if (stretch := stretches.get(one)) is None or stretch[0] != options:
                stretches[one] = here
        last[key] = source
    return _one_mapping(list(last.values())), bad_lines


def _one_mapping(sources: Sequence[Source]) -> list[Source]:
    """The sources without those that were read in another way since: a changed mapping replaces."""
    ways = {source.path: source.way for source in sources}
    return [source for source in sources if source.reference or ways[source.path] == source.way]


def ways(workspace: Workspace) -> dict[str, Way]:
    """Path -> the way in which each source was read last."""
    return {source.path: source.way for source in read_ledger(workspace)[0] if not source.reference}


def gives_anything(place: Place, options: ReadOptions) -> bool:
    """Whether a source gives any trajectory."""
    return any(isinstance(item, Trajectory) for item in read(place, options))


def ids_by_path(connection: duckdb.DuckDBPyConnection, paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The ids of the trajectories that the sources of these paths gave when they were last read."""
    query = f"SELECT path, trajectory_ids FROM sources WHERE path {AMONG}"
    return {path: tuple(ids) for path, ids in execute(connection, query, [texts(paths)]).fetchall()}


def unowned_ids(connection: duckdb.DuckDBPyConnection, ids: Collection[str]) -> set[str]:
    """Those of the ids that are stored and that no source gives any more."""
    owned_ids = {
        row[0] for row in connection.execute("SELECT unnest(trajectory_ids) FROM sources").fetchall()
    }
    return existing_ids(connection, set(ids) - owned_ids)


def existing_ids(connection: duckdb.DuckDBPyConnection, ids: Collection[str]) -> set[str]:
    """Those of the ids that are stored."""
    query = f"SELECT id FROM trajectories WHERE id {AMONG}"
    return {row[0] for row in execute(connection, query, [texts(ids)]).fetchall()}


def keep(
    store: Store,
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[Source],
    fresh: Sequence[Source],
) -> None:
    """Put sources into the table, and the `fresh` ones into the ledger: on disk there before the commit.

    A kill in between leaves a ledger that is ahead of the database, which `Store.standing` tells.
    """
    _note(connection, sources)
    lines = [source.model_dump_json(exclude_defaults=True) for source in fresh]
    if lines:
        path, begin, end = store.workspace.sources.append(lines)
        if ledger_offsets(connection).get(path.name, 0) == begin:
            note_offsets(connection, {path.name: end})


def _original_path(source: str, place: Place) -> str:
    """A path at or beside `place` as it reads where the source was found."""
    own, above = str(place.path), str(place.path.parent)
    if source.startswith(own):
        return place.name + source[len(own) :]
    if source.startswith(above):
        return re.sub(r"[/!][^/!]*$", "", place.name) + source[len(above) :]
    return source


def files(place: Place) -> list[str]:
    """The files on which a source's reading depends, its own and those beside it."""
    return [*(path for _, path in _files(place)), *map(str, files_beside(place))]


def files_beside(place: Place) -> list[Path]:
    """Files outside a source on which its reading depends."""
    return list(system_of(place.system).beside(place.path))


def _copy(place: Place, part: Path, tail: Sequence[str]) -> None:
    """Copy a source's files under the last parts of its name, and those beside it that lie below these."""
    if place.path.is_dir():
        target, links = part.joinpath(*tail), partial(_links, system_of(place.system).link_names)
        shutil.copytree(place.path, target, ignore=links, copy_function=_copied_file)
    else:
        disk.copy(place.path, part.joinpath(*tail))
    for file in files_beside(place):
        target = Path(os.path.normpath(part.joinpath(*tail, os.path.relpath(file, place.path))))
        if target.is_relative_to(part):
            disk.copy(file, target)


def _copied_file(file: str, target: str) -> str:
    return str(disk.copy(Path(file), Path(target)))


def _links(read: Collection[str], folder: str, names: list[str]) -> set[str]:
    """The links of a folder except those to files that are read."""
    links = [name for name in names if (Path(folder) / name).is_symlink()]
    return {name for name in links if name not in read or not (Path(folder) / name).is_file()}


def _files(place: Place) -> list[tuple[tuple[str, ...], str]]:
    """A source's files in the order of their names, links left out except those to files that are read: the
    parts of a name below it, and a path."""
    source, linked = place.path, system_of(place.system).link_names
    if source.is_file():
        return [((), str(source))]
    files: list[tuple[tuple[str, ...], str]] = []
    waiting: list[tuple[tuple[str, ...], str]] = [((), str(source))]
    while waiting:
        parts, folder = waiting.pop()
        with suppress(PermissionError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(((*parts, entry.name), entry.path))
                elif entry.is_file(follow_symlinks=False) or (
                    entry.name in linked and os.path.isfile(entry.path)
                ):
                    files.append(((*parts, entry.name), entry.path))
    return sorted(files)


@dataclass(frozen=True)
class KnownSource:
    """A source as the store has it."""

    content_hash: str
    options: str
    bytes: int | None
    ids: tuple[str, ...]
    ingested: str = ""
    """When it was noted last, in UTC."""

    def holds(self, source: Source) -> bool:
        """Whether a source has nothing new."""
        _, content, options = source.key
        return bool(self.ids) and (content, options) == (self.content_hash, self.options)


def known_sources(store: Store) -> dict[str, KnownSource]:
    """Path -> the source as the store has it."""
    if not store.is_made or not store.workspace.exists():
        return {}
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT path, content_hash, options, bytes, trajectory_ids, ingested FROM sources"
        ).fetchall()
    return {
        path: KnownSource(content, options, size, tuple(ids), str(ingested))
        for path, content, options, size, ids, ingested in rows
    }


def growth(before: KnownSource, source: Source, place: Place) -> Span | None:
    """What a file of lines has gained; None where it has changed in another way.

    Everything before must be the same, byte for byte, and the last known line complete.
    """
    system, path = system_of(place.system), place.path
    if source.key[2] != before.options or not before.bytes or not source.bytes or source.bytes < before.bytes:
        return None
    if system.read_span is None or files_beside(place) or not system.lines_apart(path, source.options):
        return None
    state = blake2b(_bytes(_name(str(path), path)), digest_size=16)
    rest, lines, block = before.bytes, 0, b""
    with path.open("rb") as file:
        while rest and (block := file.read(min(rest, 1 << 20))):
            state.update(block)
            lines += block.count(b"\n")
            rest -= len(block)
    if state.hexdigest() != before.content_hash or not block.endswith(b"\n"):
        return None
    return Span(before.bytes, source.bytes, lines + 1)


def _file_names(place: Place) -> list[tuple[str, str]]:
    """Path and name of each of a source's files."""
    source = place.path
    if source.name in ("", ".."):  # whose parent is not what holds it
        return [(path, _name(path, source)) for _, path in _files(place)]
    return [(path, os.path.join(source.name, *parts)) for parts, path in _files(place)]


def _name(file: str, source: Path) -> str:
    return os.path.relpath(file, source.parent)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def quarantined_sources(store: Store) -> dict[str, list[Quarantined]]:
    """Source -> its entries in the quarantine."""
    if not store.is_made or not store.workspace.exists():
        return {}
    with store.reading() as connection:
        rows = dictionaries(connection, "SELECT * FROM quarantine WHERE read_from IS NOT NULL ORDER BY ALL")
    wrong: dict[str, list[Quarantined]] = {}
    for row in rows:
        wrong.setdefault(row.pop("read_from"), []).append(Quarantined(**row))
    return wrong


def _note(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]) -> None:
    """Store where trajectories came from, each path as it was last read."""
    last = {source.path: source for source in sources}
    delete(connection, "sources", "path", list(last))
    rows = []
    for source in last.values():
        path, content, options = source.key
        rows.append(
            {
                "path": path,
                "system": source.system,
                "content_hash": content,
                "bytes": source.bytes,
                "options": options,
                "trajectory_ids": list(source.trajectory_ids),
                "ingested": source.ingested,
            }
        )
    insert(connection, "sources", rows)
