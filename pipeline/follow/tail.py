"""Folders that grow: find what has changed, read it again, store it.

A source is read whole by its system's reader, whose ids and seq do not depend on what was appended later; so
halves of lines, truncation and re-runs need no bookkeeping of offsets that could be wrong. What cannot be
read is reported once a source has been still for a while: half a line is no error yet.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import re
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from ...schemas import Quarantined, Trajectory, content_hash
from ..ingest import discover, sources
from ..ingest.archives import COMPRESSED, unpacked_folder
from ..ingest.refusals import refusal_of
from ..ingest.result import KEPT
from ..ingest.sources import Place, Source
from ..store import Store
from ..store.ledgers import ledger
from ..systems import ReadOptions
from ..systems.base import ending
from ..systems.formats.files import inputs
from ..systems.formats.mapped.reader import SYSTEM as MAPPED
from .sink import Sink

NAMED = 5
"""At most so many files that are gone, or shorter, are named in one note."""
LINES = (".jsonl", ".ndjson")
"""Endings of files that only grow."""
ENDED_BY_LINES = ("text", "csv")
"""Formats in which half a line is as good as a whole one."""
STILL = 2.0
"""Seconds without a change after which a source counts as complete, until it changes again."""
LATE = 10.0
"""Seconds after which a source that changes all the time is read though it ends within a line: some writers
put line breaks first."""
_IN_WORD = re.compile(r"[^\W\d_]{2}|\d{2}")
REST = 4.0
"""After a look comes a pause of so many times its own length, and a source that grows is read again after so
many times what reading and storing it took."""
Mark = tuple[str, int, int, int]
"""Of a file: its path, size in bytes, time of its last change (ns), and inode."""
Look = tuple[int, int, int]
"""The same without the path: a rotation renames what it compressed before, and may use a number again."""
Signature = tuple[Mark, ...]
Recognition = tuple[Mark, str | None]
"""How a file looked, and the system whose source it is, if any."""
Read = Callable[[Path, Trajectory], None]


@dataclass
class WatchedSource:
    """One source: its signature when it was last read, and since when it has been still."""

    system: str
    signature: Signature
    since: float
    is_settled: bool = False
    cost: float = 0.0
    read_at: float = 0.0
    newest_signature: Signature = ()
    """That of the last look, read or not."""
    changed_at: float = 0.0
    """When it was first seen."""
    unread_since: float | None = None
    """When the first change was seen that is not read yet."""
    quarantined: list[Quarantined] = field(default_factory=list)

    @property
    def known_signature(self) -> Signature:
        """The one that was read; of a source that was not read yet, the last one that was seen."""
        return self.signature or self.newest_signature


class Tail:
    """Follows the sources at or below some folders."""

    def __init__(
        self,
        sink: Sink,
        options: ReadOptions,
        system: str = "auto",
        on_read: Read = lambda path, trajectory: None,
    ) -> None:
        self.sink = sink
        self.options = options
        self.system = system
        self.on_read = on_read
        self.roots: list[Path] = []
        self.watched_sources: dict[Path, WatchedSource] = {}
        self.last_change = time.monotonic()
        """When something was last seen to grow."""
        self._known_sources = sources.known_sources(sink.store)
        self._packed: dict[Look, float] = {}
        """How compressed files look that are not read, and since when."""
        self._unpacked: set[Look] | None = None
        """How those look that are read, or need not be; None before the first look."""
        self._recognitions: dict[Path, Recognition] = {}
        """Files of the last look."""
        self._gone: set[Path] = set()
        """Sources that were there and are no more."""
        self._unreadable_places: set[Path] = set()
        """Places that could not be read."""

    def look(self) -> float:
        """Read what has changed; returns the seconds until the next look."""
        start = time.monotonic()
        before = {path: watched.known_signature for path, watched in self.watched_sources.items()}
        recognitions, self._recognitions = self._recognitions, {}
        current = set()
        for root in self.roots:
            with contextlib.suppress(OSError):
                recognise = partial(self._recognise, recognitions)
                places = discover.discover(root, self.system, self._refuse, recognise=recognise)
                for path, system in places:
                    current.add(path)
                    self._check(path, system)
        self._name_lost(before, current)
        self._look_rotated()
        return max(0.25, min(5.0, REST * (time.monotonic() - start)))

    def _name_lost(self, before: Mapping[Path, Signature], current: Collection[Path]) -> None:
        """Note which logs got shorter or are gone: what was added to them after the last look was not read.

        Those that another file holds whole, as after a rotation, are left out.
        """
        there = [one.known_signature for path, one in self.watched_sources.items() if path in current]
        sizes = {mark[3]: mark[1] for signature in there for mark in signature}
        fresh = [one.known_signature for path, one in self.watched_sources.items() if path not in before]
        copies = sorted((Path(mark[0]).name, mark[1]) for signature in fresh for mark in signature)
        cut, missing = set[Path](), set[Path]()
        for path, signature in before.items():
            for name, size, _, number in signature if path not in self._gone else ():
                file = Path(name)
                is_whole = sizes.get(number, -1) >= size
                if is_whole or _has_copy(copies, file.name, size):
                    continue
                if (left := self._size(path, file, path in current)) is None:
                    missing.add(file if path.exists() else path)
                elif left < size and ending(file) in LINES:
                    cut.add(file)
        self._gone = before.keys() - current
        self.sink.notes += [*_lost(sorted(cut), "shorter than when read"), *_lost(sorted(missing), "gone")]

    def _size(self, path: Path, file: Path, is_seen: bool) -> int | None:
        """Bytes of a source's file: as last read where the look has found the source, else as on the disk;
        None where it is gone."""
        if is_seen:
            marks = self.watched_sources[path].known_signature
            return next((mark[1] for mark in marks if mark[0] == str(file)), None)
        with contextlib.suppress(OSError):
            return file.stat().st_size
        return None

    def _look_rotated(self, *, last: bool = False) -> None:
        """Read what a rotation has compressed of the logs that are followed, once it is whole: what came to
        them since they were read is nowhere else."""
        now = time.monotonic()
        folders = {path.parent for path in self.watched_sources}
        there = {mark[1:]: Path(mark[0]) for folder in folders for mark in _packed(folder)}
        if self._unpacked is None:
            self._unpacked = there.keys() - self._missed(there)
        self._packed = {look: self._packed.get(look, now) for look in there.keys() - self._unpacked}
        due = {look: there[look] for look, since in self._packed.items() if last or now - since > STILL}
        logs = _Logs(self.watched_sources, due.values())
        for look, path in due.items():
            if logs.of(path):
                try:
                    path.stat()  # a rotation may just have renamed it
                    self._unpack(path)
                except OSError as error:  # tried again, when there is room for one
                    self._refuse(path, error)
                else:
                    self._unpacked.add(look)
                    self.last_change = now

    def _missed(self, there: Mapping[Look, Path]) -> set[Look]:
        """Of compressed files, those into which a log has gone while nobody followed, since it was noted
        last, and those that were read when they were not whole yet."""
        places = {look: path.absolute() for look, path in there.items()}
        logs = _Logs(map(Path, self._known_sources), places.values())
        read = {name[: at.start()] for name in self._known_sources for at in re.finditer("!", name)}
        unread_names = _broken(self.sink.store) if places else set()
        return {
            look
            for look, place in places.items()
            if (
                str(place) in unread_names
                if str(place) in read
                else any(look[1] / 1e9 > _noted(self._known_sources[str(log)]) for log in logs.of(place))
            )
        }

    def _unpack(self, path: Path) -> None:
        """Take in a log that was compressed, with a copy of it: what was unpacked is gone afterwards."""
        workspace = self.sink.store.workspace
        with unpacked_folder(path) as (folder, wrong):
            how = wrong[0].reason if wrong else "read to its end"
            tree = discover.Tree(folder, str(path), archive=True)
            read: list[tuple[Source, list[Trajectory]]] = []
            for inner, system in discover.discover(folder, self.system):
                place = Place(inner, tree.name_of(inner), system)
                content = sources.content(place)
                source = Source(
                    path=place.name,
                    system=system,
                    content_hash=content,
                    options=self.options,
                    ingested=ledger.now(),
                    copied=sources.copy_source(workspace, place, content),
                )
                items = list(sources.read(place, self.options))
                wrong += [item for item in items if isinstance(item, Quarantined)]
                read.append((source, [item for item in items if isinstance(item, Trajectory)]))
        # What is wrong goes first: after a kill the next follower does not read what is known and not broken.
        self.sink.quarantine(str(path), wrong, anew=True)
        for source, trajectories in read:
            self.sink.note(source)
            self.sink.take(source, trajectories)
        self.sink.notes.append(f"{path}: a log that was followed, rotated; {how}")

    def settle(self) -> None:
        """Take every source as complete, as at the end of following."""
        self._look_rotated(last=True)
        for path, entry in self.watched_sources.items():
            with contextlib.suppress(OSError):
                if (signature := _signature(path, entry.system)) != entry.signature:
                    self._read(path, entry, signature)
            if not entry.is_settled:
                self._settle(path, entry)

    def announce(self, path: Path, system: str) -> None:
        """Have the ledger know of a log before anything is in it; what it gives shows once it is read."""
        self.sink.note(self._source(path, WatchedSource(system, (), 0.0), ""))

    def _refuse(self, path: Path, error: OSError) -> None:
        """Report a place that cannot be read, unless it has vanished since it was listed."""
        if path not in self._unreadable_places and not isinstance(error, FileNotFoundError):
            self._unreadable_places.add(path)
            item = discover.unreadable_item(str(path), error)
            self.sink.quarantine(refusal_of(item.source), [item], anew=True)

    def _recognise(self, before: Mapping[Path, Recognition], path: Path, system: str) -> str | None:
        """The system whose source a path is, if any. A file that looks as it did has the system that it had
        before: of many that no one writes any more none is opened."""
        state = None
        with contextlib.suppress(OSError):  # whatever is wrong with it, recognising it says so
            state = path.stat()
        if state is None or not stat.S_ISREG(state.st_mode):
            return discover.recognised_system(path, system)
        mark = _mark(str(path), state)
        last = before.get(path)
        if last is None or last[0] != mark:
            last = mark, discover.recognised_system(path, system)
        self._recognitions[path] = last
        return last[1]

    def _check(self, path: Path, system: str) -> None:
        now = time.monotonic()
        try:
            signature = _signature(path, system)
        except OSError:
            return
        self._unreadable_places.discard(path)
        entry = self.watched_sources.get(path)
        if entry is None or entry.system != system:
            entry = self._start_watching(path, system, signature, now)
        if signature != entry.signature:
            if signature != entry.newest_signature:
                entry.newest_signature, entry.changed_at = signature, now
                self.last_change = now
            # What takes long to read and store is read less often while it grows.
            cost = entry.cost + self.sink.storing_seconds.get(str(path.absolute()), 0.0)
            if now - entry.read_at < REST * cost:
                return
            entry.unread_since = now if entry.unread_since is None else entry.unread_since
            is_waiting = now - entry.changed_at <= STILL and now - entry.unread_since <= LATE
            if is_waiting and _ends_within_line(path, system):
                return
            self._read(path, entry, signature)
            self.last_change = now
        elif not entry.is_settled and now - entry.since > STILL:
            self._settle(path, entry)

    def _start_watching(self, path: Path, system: str, signature: Signature, now: float) -> WatchedSource:
        entry = self.watched_sources[path] = WatchedSource(system, (), now)
        record = self._known_sources.get(str(path.absolute()))
        if record is None or record.options != content_hash(self.options.model_dump()):
            # The ledger knows of a source before the store does, so that a rebuild finds it again.
            self.sink.note(self._source(path, entry, ""))
            return entry
        source = self._source(path, entry, sources.content(Place(path, str(path), system)))
        if record.holds(source):
            entry.signature, entry.is_settled = signature, True
            self.sink.note_unchanged(source.model_copy(update={"trajectory_ids": record.ids}))
        return entry

    def _read(self, path: Path, entry: WatchedSource, signature: Signature) -> None:
        """Read a source whose files had this signature; what is added meanwhile is read the next time."""
        start = time.monotonic()
        place = Place(path, str(path), entry.system)
        content = ""
        # Runs without times are told apart by what their files hold, where conditions were given. What comes
        # while it is read is not in the hash: else whoever reads on after a kill would take it for known.
        if self.options.condition is not None:
            with contextlib.suppress(OSError):  # reading it will report that
                content = sources.content(place)
        items = list(sources.read(place, self.options))
        entry.quarantined = [i for i in items if isinstance(i, Quarantined)]
        trajectories = [i for i in items if isinstance(i, Trajectory)]
        if trajectories:
            self.sink.take(self._source(path, entry, content), trajectories)
            self.sink.note_moment(ledger.now())
        for trajectory in trajectories:
            self.on_read(path, trajectory)
        entry.signature, entry.since, entry.is_settled = signature, start, False
        entry.unread_since = None
        entry.read_at, entry.cost = time.monotonic(), time.monotonic() - start

    def _settle(self, path: Path, entry: WatchedSource) -> None:
        entry.is_settled = True
        with contextlib.suppress(OSError):
            content = sources.content(Place(path, str(path), entry.system))
            # Without a hash where something was added since it was read.
            is_read = _signature(path, entry.system) == entry.signature
            self.sink.note(self._source(path, entry, content if is_read else ""))
            self.sink.quarantine(str(path), entry.quarantined, anew=True)

    def _source(self, path: Path, entry: WatchedSource, content: str) -> Source:
        """A source; one that was recorded in the workspace itself is found there wherever that is moved."""
        above = self.sink.store.workspace.path.absolute()
        inside = path.absolute().is_relative_to(above)
        return Source(
            path=str(path.absolute()),
            system=entry.system,
            content_hash=content,
            options=self.options,
            ingested=ledger.now(),
            copied=str(path.absolute().relative_to(above)) if inside else None,
        )


class _Logs:
    """Logs by their names, for those that lie beside some compressed files."""

    def __init__(self, logs: Iterable[Path], packed: Collection[Path]) -> None:
        folders = {path.parent for path in packed}
        self._by_name: defaultdict[tuple[Path, str, str], list[Path]] = defaultdict(list)
        for log in logs if folders else ():
            if log.parent in folders:
                self._by_name[log.parent, log.name, ""].append(log)
                self._by_name[log.parent, log.stem, ending(log)].append(log)

    def of(self, packed: Path) -> list[Path]:
        """Those whose name a compressed file bears, with what a rotation adds: not `10.jsonl.gz` of
        `1.jsonl`."""
        name, end = packed.stem, ending(Path(packed.stem))
        starts = [name[:at] for at in range(1, len(name) + 1) if not _IN_WORD.search(name[at - 1 : at + 1])]
        keys = [(packed.parent, start, how) for start in starts for how in ("", end)]
        return [log for key in keys for log in self._by_name.get(key, ())]


def _broken(store: Store) -> set[str]:
    """The sources with an error that belongs to no line, such as an archive that breaks off."""
    if not store.has_tables():
        return set()
    with store.reading() as connection:
        rows = connection.execute("SELECT DISTINCT source FROM quarantine WHERE line IS NULL").fetchall()
    return {source for (source,) in rows}


def _noted(source: sources.KnownSource) -> float:
    return datetime.fromisoformat(source.ingested).timestamp()


def _packed(folder: Path) -> Iterator[Mark]:
    """The compressed files of a folder, as they look."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(COMPRESSED) and entry.is_file(follow_symlinks=False):
                state = entry.stat()
                yield entry.path, state.st_size, state.st_mtime_ns, state.st_ino


def _has_copy(files: Sequence[tuple[str, int]], name: str, size: int) -> bool:
    """Whether one of `files`, sorted names with bytes, begins with this name and holds as many bytes."""
    for place in range(bisect.bisect_left(files, (name, 0)), len(files)):
        other, length = files[place]
        if not other.startswith(name):
            return False
        if length >= size:
            return True
    return False


def _lost(files: Sequence[Path], how: str) -> Iterator[str]:
    """The sentence on logs of which something may never have been read."""
    if files:
        more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
        names = ", ".join(map(str, files[:NAMED]))
        consequence = "what came since the last look was not read, unless a rotated log holds it"
        yield f"{names}{more}: {how}; {consequence}. {KEPT[0].upper()}{KEPT[1:]}"


def _ends_within_line(path: Path, system: str) -> bool:
    """Whether a text or table may be half written: half of its first turn would be another session's, and
    nothing in it says that it is half."""
    with contextlib.suppress(OSError):
        if system == MAPPED and path.is_file() and inputs.format_of(path) in ENDED_BY_LINES:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - 2))
                return file.read(2).rstrip(b"\0")[-1:] not in (b"\n", b"\r", b"")  # UTF-16 has zeros behind
    return False


def _signature(path: Path, system: str) -> Signature:
    """Size, time and inode of a source's files, and of those beside it on which its reading depends."""
    return tuple(_mark(file, os.stat(file)) for file in sources.files(Place(path, str(path), system)))


def _mark(file: str, state: os.stat_result) -> Mark:
    return file, state.st_size, state.st_mtime_ns, state.st_ino
