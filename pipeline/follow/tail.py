"""Folders that grow: look what has changed, read it again, store it.

A source is read whole by its system's reader, whose ids and seq do not depend on what was appended
later; so halves of lines, truncation and re-runs need no bookkeeping of offsets that could be wrong.
What cannot be read is reported once a source has been still for a while: half a line is no error yet.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ...schemas import Quarantined, Trajectory, content_hash
from ..ingest import discover, sources
from ..ingest.sources import Place, Source
from ..store import ledger
from ..systems import ReadOptions
from .sink import Sink

STILL = 2.0
"""Seconds without a change after which a source counts as complete, until it changes again."""
REST = 4.0
"""A look is followed by a pause of so many times its own length."""
Signature = tuple[tuple[str, int, int, int], ...]
Read = Callable[[Path, Trajectory], None]


@dataclass
class Watched:
    """One source: how it looked when it was read, and since when it has been still."""

    system: str
    signature: Signature
    since: float
    settled: bool = False
    cost: float = 0.0
    read_at: float = 0.0
    quarantined: list[Quarantined] = field(default_factory=list)


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
        self.watched: dict[Path, Watched] = {}
        self.changed = time.monotonic()
        """When something was last seen to grow."""
        self._known = sources.known_sources(sink.store)
        self._refused: set[Path] = set()
        """Places that could not be looked into."""

    def look(self) -> float:
        """Read what has changed; seconds that the next look should wait."""
        start = time.monotonic()
        for root in self.roots:
            with contextlib.suppress(OSError):
                for path, system in discover.discover(root, self.system, self._refuse):
                    self._check(path, system)
        return max(0.25, min(5.0, REST * (time.monotonic() - start)))

    def settle(self) -> None:
        """Count every source as complete, as at the end of following."""
        for path, entry in self.watched.items():
            with contextlib.suppress(OSError):
                if (signature := _signature(path, entry.system)) != entry.signature:
                    self._read(path, entry, signature)
            if not entry.settled:
                self._settle(path, entry)

    def announce(self, path: Path, system: str) -> None:
        """Have the ledger know of a log before anything is in it; whose it is shows once it is read."""
        self.sink.note(self._source(path, Watched(system, (), 0.0), ""))

    def _refuse(self, path: Path, error: OSError) -> None:
        """Note that a place cannot be looked into; what is gone again since it was listed is none."""
        if path not in self._refused and not isinstance(error, FileNotFoundError):
            self._refused.add(path)
            item = discover.unreadable(str(path), error)
            self.sink.quarantine(item.source, [item], anew=True)

    def _check(self, path: Path, system: str) -> None:
        now = time.monotonic()
        try:
            signature = _signature(path, system)
        except OSError:
            return
        self._refused.discard(path)
        entry = self.watched.get(path)
        if entry is None or entry.system != system:
            entry = self._met(path, system, signature, now)
        if signature != entry.signature:
            # What takes long to read is read less often while it grows.
            if now - entry.read_at < REST * entry.cost:
                return
            self._read(path, entry, signature)
            self.changed = now
        elif not entry.settled and now - entry.since > STILL:
            self._settle(path, entry)

    def _met(self, path: Path, system: str, signature: Signature, now: float) -> Watched:
        entry = self.watched[path] = Watched(system, (), now)
        record = self._known.get(str(path.absolute()))
        if record is None or record.options != content_hash(self.options.model_dump()):
            # The ledger knows of a source before the store does, so that a rebuild finds it again.
            self.sink.note(self._source(path, entry, ""))
            return entry
        source = self._source(path, entry, sources.content(Place(path, str(path), system)))
        if record.holds(source):
            entry.signature, entry.settled = signature, True
            self.sink.met(source.model_copy(update={"trajectory_ids": record.ids}))
        return entry

    def _read(self, path: Path, entry: Watched, signature: Signature) -> None:
        """Read a source that looked so; what came to it since is read the next time."""
        start = time.monotonic()
        place = Place(path, str(path), entry.system)
        content = ""
        # Runs without times are told apart by what their files hold, where conditions were given. What comes
        # while it is read is not in the hash: else whoever reads on after a kill would take it for known.
        if self.options.condition is not None:
            with contextlib.suppress(OSError):  # its reading says so
                content = sources.content(place)
        items = list(sources.read(place, self.options))
        entry.quarantined = [i for i in items if isinstance(i, Quarantined)]
        trajectories = [i for i in items if isinstance(i, Trajectory)]
        if trajectories:
            self.sink.take(self._source(path, entry, content), trajectories)
            self.sink.heard(ledger.now())
        for trajectory in trajectories:
            self.on_read(path, trajectory)
        entry.signature, entry.since, entry.settled = signature, start, False
        entry.read_at, entry.cost = time.monotonic(), time.monotonic() - start

    def _settle(self, path: Path, entry: Watched) -> None:
        entry.settled = True
        with contextlib.suppress(OSError):
            content = sources.content(Place(path, str(path), entry.system))
            # What came since it was read is not known.
            is_read = _signature(path, entry.system) == entry.signature
            self.sink.note(self._source(path, entry, content if is_read else ""))
            self.sink.quarantine(str(path), entry.quarantined, anew=True)

    def _source(self, path: Path, entry: Watched, content: str) -> Source:
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


def _signature(path: Path, system: str) -> Signature:
    """How the files of a source look, and those beside it on which its reading depends."""
    return tuple(
        (file, state.st_size, state.st_mtime_ns, state.st_ino)
        for file in sources.files(Place(path, str(path), system))
        for state in (os.stat(file),)
    )
