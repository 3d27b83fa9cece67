"""Blocks of trajectories on their way into the store: many a transaction, and sources noted with them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb

from ...schemas import Quarantined, Trajectory
from ...schemas.text import counted
from ..store import Store, delete, derived, execute, insert
from ..store.columns import trajectories
from ..store.garbage import few_collections
from ..store.memory import release
from ..store.parcel import ROW_GROUP, Parcel
from ..store.removal import remove
from ..store.sync import load_codebooks
from ..systems import References, Span
from . import forgetting
from . import sources as provenance
from .blocks import Block, Head, Known, Reading
from .copies import copies
from .identity import LATE_EVENTS, Sessions, content_of, known_by_id, names_heard, settled, with_suffixes
from .measure import references, save_parcels
from .pieces import pieces
from .remarks import Remarks
from .result import Ingested, Progress
from .sources import Place, Source
from .succession import superseded
from .workers import Readers

FLUSH_ROWS = ROW_GROUP * 8 // 5
"""Events from which on they are stored, in one transaction: a row group that is full goes to disk at once,
and the next one with it. Less than half of one would be merged with those around it, and written again."""
FLUSH_BYTES = 100 * 1024 * 1024
"""Of all tables in a transaction for each row group: DuckDB holds one that is not full."""
HELD_BYTES = 32 * 1024 * 1024
"""Of tables that wait in memory: more go into files."""
LATE = 100
"""Trajectories that are held against stored ones at a time."""
NAMED = 5
"""So many pairs of files that say the same, or go on with each other, are named."""
CUT = ("mapped", "otlp", "openinference")
"""Systems whose logs may be cut into files anywhere."""


@dataclass
class _Expected:
    """A source to be read, and what came of it so far."""

    source: Source
    fresh: bool
    """Not in the ledger yet."""
    line: int
    """The first one that is read."""
    ids: list[str] = field(default_factory=list)
    suffixed: dict[str, str] = field(default_factory=dict)
    """Id as it is read -> the one with a suffix by which the store has it."""


@dataclass(frozen=True)
class _Late:
    """A trajectory that may be one that the store has."""

    trajectory: Trajectory
    head: Head


class Intake:
    """The sources of one run: first all are announced, then they are read and stored."""

    def __init__(self, store: Store, result: Ingested, readers: Readers, *, derives: bool = True) -> None:
        self.store = store
        self.result = result
        self._readers = readers
        self._derives = derives
        """Else that waits for the caller's `Store.catch_up`."""
        self._expected: list[_Expected] = []
        self._readings: list[Reading] = []
        self._blocks: list[Block] = []
        self._sizes: Counter[str] = Counter()
        """Of the blocks: how many events, and bytes of all, of their states, and held in memory. There may be
        a block for each trajectory."""
        self._last: dict[str, int] = {}
        """Path -> the source of this run that is read last there: a rebuild reads every copy of one."""
        self._wrong: list[tuple[Quarantined, str]] = []
        self._opened = 0
        """So many sources have had what was wrong with them before taken out of the quarantine."""
        self._reported = 0
        self._taken: dict[str, int] = {}
        """Trajectory -> its events, of those that are new or have grown."""
        self._told_by: dict[str, int] = {}
        """Trajectory -> the source of this run that told of it last."""
        self._gave: set[int] = set()
        """Sources of this run of which anything was new."""
        self._noted = 0
        """So many sources are in the table of sources."""
        self._alike: Counter[tuple[int, str]] = Counter()
        """Source of this run, and one that has told the same without any times -> so many trajectories."""

    def expect(
        self,
        source: Source,
        place: Place,
        span: Span | None = None,
        before: Sequence[str] = (),
        *,
        fresh: bool = True,
    ) -> None:
        """Announce a source that gave the trajectories `before`, or of one that has grown the `span` behind.

        A `fresh` one is not in the ledger yet.
        """
        number, size = len(self._expected), span.end - span.start if span else provenance.size(place)
        ids, line = (list(before), span.line) if span else ([], 0)
        self._expected.append(_Expected(source, fresh, line, ids, with_suffixes(set(before))))
        self._last[source.path] = number
        self._readings.append(Reading(number, place, source.options, size, span))

    def refuse(self, item: Quarantined, source: str) -> None:
        """Announce what is wrong with a source that cannot even be read."""
        self._wrong.append((item, source))

    def run(self, progress: Progress | None = None) -> None:
        """Read and store everything; nobody waits for the store where there is nothing."""
        with few_collections():
            for block in self._readers.blocks(self._readings, self._references()):
                self._wait(block)
                if self._is_full():
                    self._flush(block.source)
                if progress:
                    self._report(block, progress)
            if self._expected or self._wrong or not self.store.is_made:
                self._flush(None)
            self._tell_alike()
            self._tell_copies()
            self._tell_pieces()

    def leave_out(self, ids: Iterable[str]) -> None:
        """Count trajectories no more that were read and are forgotten."""
        for key in ids:
            events = self._taken.pop(key, None)
            self.result.trajectories -= events is not None
            self.result.events -= events or 0

    def _tell_copies(self) -> None:
        """Say which logs count beside one of another name that says the same, as other runs should not."""
        sources = [self._expected[number].source for number in self._gave]
        if not sources:
            return
        apart = {one.path for one in sources if one.options.condition is not None}
        with self.store.reading(synced=True) as connection:
            pairs = [
                (path, other)
                for path, other, alike in copies(connection, [one.path for one in sources])
                if alike or path not in apart
            ]
        for path, other in pairs[:NAMED]:
            self.result.notes.append(
                f"{path}: says to the word what {other} says, and counts beside it; if it is a copy, "
                "`coaudit forget` it"
            )
        if len(pairs) > NAMED:
            self.result.notes.append(f"{len(pairs) - NAMED} more files say to the word what others say")

    def _tell_pieces(self) -> None:
        """Say which logs go on with sessions that another one began, which are named by the log itself."""
        sources = [self._expected[number].source for number in self._gave]
        paths = [one.path for one in sources if one.system in CUT]
        if not paths:
            return
        with self.store.reading(synced=True) as connection:
            parts = pieces(connection, paths)
        for one in parts[:NAMED]:
            more = f" and {one.sessions - 1} more" if one.sessions > 1 else ""
            self.result.notes.append(
                f"{one.source}: sessions have the names of those of {one.before} ({one.name}{more}), begin "
                "after these ended, and count beside them; if they go on with them, join the files into one"
            )
        if len(parts) > NAMED:
            self.result.notes.append(
                f"{len(parts) - NAMED} more pairs of files have sessions of the same names"
            )

    def _tell_alike(self) -> None:
        """Say which sources have what other ones have, for it may be another run of the same."""
        if not self._alike:
            return
        contents = self._contents()
        count = 0
        with self.store.reading(synced=True) as connection:
            for (number, before), n in self._alike.items():
                source = self._expected[number].source
                if content_of(connection, before, contents) in (None, source.content_hash):
                    continue
                count += 1
                if count <= NAMED:
                    self.result.notes.append(
                        f"{source.path}: {n} of its trajectories say the same as those of {before}, "
                        "without any times: they count once; if they are other runs, give "
                        "each file its own --condition"
                    )
        if count > NAMED:
            self.result.notes.append(
                f"{count - NAMED} more pairs of files say in part the same, without any times"
            )

    def _contents(self) -> Mapping[str, str]:
        """Hash of each source of this run by its path."""
        return {one.source.path: one.source.content_hash for one in self._expected}

    def _report(self, block: Block, progress: Progress) -> None:
        """Say of each source that a block is beyond."""
        while block.source is not None and self._reported <= block.source:
            source = self._expected[self._reported].source
            progress(source.path, self._reported, len(self._expected))
            self._reported += 1

    def _references(self) -> Mapping[str, References]:
        if not self._readings or not self.store.has_tables():
            return {}
        with self.store.reading(synced=True) as connection:
            return references(connection)

    def _wait(self, block: Block) -> None:
        """Have a block wait for a transaction, in a file where many do."""
        parcel = block.parcel
        self._blocks.append(block)
        self._sizes.update(events=parcel.rows["events"], all=parcel.bytes, states=parcel.sizes["states"])
        self._sizes.update(held=parcel.held)
        if self._sizes["held"] > HELD_BYTES:
            folder = self._readers.folder
            self._blocks = [one.set_aside(folder) for one in self._blocks]
            self._sizes["held"] = 0  # where there was no room, it is tried again when as many have come

    def _is_full(self) -> bool:
        """Whether what waits is enough for a transaction, or too much to wait for more."""
        groups = max(1, self._sizes["events"] / ROW_GROUP)
        return (
            self._sizes["events"] >= FLUSH_ROWS
            or self._sizes["all"] > FLUSH_BYTES * groups
            or self._sizes["states"] > FLUSH_BYTES
        )

    def _flush(self, position: int | None) -> None:
        """Store what has come together; `reached` is the source being read, None behind the last one."""
        release_end, note_end = (len(self._expected),) * 2 if position is None else (position + 1, position)
        for block in self._blocks:
            items = [(item, self._expected[n].source.path, n) for item, n in block.quarantined]
            self._wrong.extend((item, path) for item, path, n in items if self._last[path] == n)
        with self.store.writing() as connection:
            ids = self._save(connection)
            release(connection)
            _release(connection, self._expected[self._opened : release_end])
            insert(
                connection,
                "quarantine",
                [{**item.model_dump(), "read_from": path} for item, path in self._wrong],
            )
            self._note(connection, note_end)
            self._derive(connection, ids, last=self._derives and position is None)
            release(connection)
        self.result.quarantined.extend(item for item, _ in self._wrong)
        self._wrong = []
        self._opened, self._noted = release_end, note_end

    def _note(self, connection: duckdb.DuckDBPyConnection, end: int) -> None:
        """Note the sources before the `end` that gave something; one that gave nothing is read, and says why,
        every time.
        """
        readings = [one for one in self._expected[self._noted : end] if one.ids]
        unnoted = {key for one in self._expected[end:] for key in one.ids}
        sources = [one.source.model_copy(update={"trajectory_ids": tuple(one.ids)}) for one in readings]
        fresh = [source for source, one in zip(sources, readings, strict=True) if one.fresh]
        before = provenance.given_by(connection, [source.path for source in sources])
        provenance.keep(self.store, connection, sources, fresh)
        self._leave(connection, superseded(connection, sources, before), unnoted)

    def _leave(
        self, connection: duckdb.DuckDBPyConnection, by_path: Mapping[str, set[str]], unnoted: Collection[str]
    ) -> None:
        """Take out what sources gave before, since what they give now stands in its place; not what sources
        give that are `unnoted` yet."""
        by_path = {path: orphans for path, ids in by_path.items() if (orphans := ids - set(unnoted))}
        orphans = set().union(*by_path.values())
        if not orphans:
            return
        remark = forgetting.kept(forgetting.ratings_on(connection, orphans))
        remove(connection, orphans)
        self.leave_out(orphans)
        first = next(iter(by_path))
        before = counted(len(orphans), "trajectory", "trajectories")
        what = f"{first}: what it holds now replaces {before} that it gave before"
        if len(by_path) > 1:
            others = counted(len(by_path) - 1, "more file", "more files")
            what = f"{first} and {others}: what they hold now replaces {before} that they gave before"
        self.result.notes.append(what + remark)

    def _derive(self, connection: duckdb.DuckDBPyConnection, ids: Collection[str], *, last: bool) -> None:
        """Derive from all that was stored, once; until then it is noted as waiting for that.

        What a run that was killed left waiting is derived with it.
        """
        if last:
            waiting = connection.execute("SELECT trajectory_id FROM postponed").fetchall()
            connection.execute("DELETE FROM postponed")
            # Else the next command would, and derive everything once more.
            everything = load_codebooks(self.store.workspace, connection)
            derived.refresh(connection, None if everything else {*ids, *(key for (key,) in waiting)})
        else:
            until = time.time() + derived.OVERDUE
            insert(connection, "postponed", [{"trajectory_id": key, "until": until} for key in ids])

    def _save(self, connection: duckdb.DuckDBPyConnection) -> list[str]:
        """Store the blocks that wait; the ids of what is new or has grown."""
        heads = [head for block in self._blocks for head in block.heads]
        existing, heard_names = (
            known_by_id(connection, [head.id for head in heads]),
            _heard_names(connection, heads),
        )
        fresh: dict[str, Known] = {}
        clean: list[Parcel] = []
        late: list[tuple[Parcel, dict[str, Head]]] = []
        blocks, self._blocks = self._blocks, []
        self._sizes.clear()
        for block in blocks:
            out: set[str] = set()
            again: dict[str, Head] = {}
            for head in block.heads:
                entry = head.known
                reading = self._expected[head.source]
                condition = reading.source.options.condition
                before = fresh.get(head.id) or existing.get(head.id)
                if head.id in reading.suffixed:
                    again[head.id] = head
                elif before and before.digest == entry.digest and condition in (None, before.condition):
                    # A line that stands twice in one file is no second trajectory.
                    self.result.unchanged += self._told_by.get(head.id) != head.source
                    if not entry.timed and entry.source != before.source:
                        self._alike[head.source, before.source] += 1
                    out.add(head.id)
                    reading.ids.append(head.id)
                elif before or head.native_id in heard_names:
                    again[head.id] = head
                else:
                    fresh[head.id] = entry
                    reading.ids.append(head.id)
                    self._count(head.id, head.source, head.known.events)
                self._told_by[head.id] = head.source
            if not (out or again):
                self.result.remarks.add(block.remarks)
            elif len(out) < len(block.heads):
                ids = [head.id for head in block.heads if head.id not in out and head.id not in again]
                for one in trajectories(block.parcel.tables(), ids) if ids else ():
                    self.result.remarks.take(one)
                if again:
                    late.append((block.parcel.apart(), again))
            clean.append(block.parcel.without(out | set(again)))
        save_parcels(self.store, connection, clean)
        ids = [*fresh, *self._save_late(connection, _one_by_one(late))] if late else list(fresh)
        for parcel in clean:
            parcel.remove()
        return ids

    def _save_late(self, connection: duckdb.DuckDBPyConnection, late: Iterable[_Late]) -> list[str]:
        """Store what may be known already, each against what the store has by then."""
        ids: list[str] = []
        contents = self._contents()
        sessions = Sessions(self.store, connection)
        for some in _few(late):
            sessions.expect([self._named(one) for one in some])
            for one in some:
                reading = self._expected[one.head.source]
                read = one.trajectory.model_copy(update={"id": self._named(one)})
                options, run_ids = reading.source.options, reading.ids
                key, trajectory = settled(sessions, read, options, self.result, contents, run_ids)
                reading.ids.append(key)
                if trajectory is None:
                    self.result.unchanged += 1
                    continue
                ids.append(trajectory.id)
                if trajectory.id in self._taken:
                    self.result.remarks.drop(Remarks.of(sessions.whole(trajectory.id, states=True)))
                events = sum(not event.live_only for event in trajectory.events)
                self._count(trajectory.id, one.head.source, events)
                self.result.remarks.add(Remarks.of(trajectory))
                sessions.keep(trajectory)
            if sessions.events >= LATE_EVENTS:
                sessions.save()
        sessions.save()
        return ids

    def _named(self, one: _Late) -> str:
        """The id by which the store has it, where its source gave it before."""
        return self._expected[one.head.source].suffixed.get(one.head.id, one.head.id)

    def _count(self, key: str, source: int, events: int) -> None:
        """Count a trajectory, which a record may have told of before in this run."""
        before = self._taken.get(key)
        self.result.trajectories += before is None
        self.result.again += before is not None
        self.result.events += events - (before or 0)
        self._taken[key] = events
        self._gave.add(source)


def _release(connection: duckdb.DuckDBPyConnection, many: Iterable[_Expected]) -> None:
    """Take what is read once more out of the quarantine."""
    lines = [(one.source.path, one.line) for one in many]
    delete(connection, "quarantine", "read_from", [path for path, line in lines if line == 0])
    for path, line in lines:
        if line:
            rule = "DELETE FROM quarantine WHERE read_from = ? AND (line IS NULL OR line >= ?)"
            execute(connection, rule, [path, line])


def _one_by_one(late: Iterable[tuple[Parcel, Mapping[str, Head]]]) -> Iterator[_Late]:
    """The trajectories of parcels that have these heads; those of one parcel at a time are in memory."""
    for parcel, heads in late:
        for one in trajectories(parcel.tables(), list(heads)):
            yield _Late(one, heads[one.id])


def _few(late: Iterable[_Late]) -> Iterator[list[_Late]]:
    """Some at a time: what they are held against is in memory."""
    some: list[_Late] = []
    for one in late:
        some.append(one)
        if len(some) == LATE or sum(each.head.known.events for each in some) >= LATE_EVENTS:
            yield some
            some = []
    if some:
        yield some


def _heard_names(connection: duckdb.DuckDBPyConnection, heads: Collection[Head]) -> set[str]:
    """Names of sessions that were heard, now or before: their ids may not be those of their logs."""
    return names_heard(connection, (head.native_id for head in heads)) | {
        h.native_id for h in heads if h.heard
    }
