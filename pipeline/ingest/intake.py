"""Blocks of trajectories on their way into the store: many in a transaction, and their sources noted with
them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb

from ...schemas import Quarantined, Trajectory
from ...schemas.text import count_of
from ..store import Store, delete, execute, insert
from ..store.garbage import few_collections
from ..store.ledgers.sync import load_codebooks
from ..store.memory import release_memory
from ..store.tables import derived
from ..store.tables.columns import trajectories
from ..store.tables.parcel import ROW_GROUP, Parcel
from ..store.tables.removal import remove
from ..systems import References, Span
from . import forgetting
from . import sources as provenance
from .blocks import Block, Head, Reading, Summary
from .copies import copy_notes
from .identity import (
    LATE_EVENTS,
    Sessions,
    content_of,
    names_heard,
    resolve_identity,
    summaries_by_id,
    with_suffixes,
)
from .measure import references, save_parcels
from .pieces import piece_notes, pieces
from .refusals import refusal_of
from .remarks import Remarks
from .result import NAMED, IngestResult, Progress
from .sources import Place, Source
from .succession import find_superseded, loss_notes, missing_ids
from .workers import Readers

FLUSH_ROWS = ROW_GROUP * 8 // 5
"""Waiting events from which on they are stored, in one transaction: a full row group goes to disk at once,
and the next one with it. Less than half of one would be merged with those around it, and written again."""
FLUSH_BYTES = 100 * 1024 * 1024
"""Bytes of all tables in a transaction for each row group: DuckDB holds in memory one that is not full."""
HELD_BYTES = 32 * 1024 * 1024
"""Bytes of waiting tables that are kept in memory: beyond that they go into files."""
LATE = 100
"""Trajectories that are compared with stored ones at a time."""


@dataclass
class _Expected:
    """A source to be read, and what came of it so far."""

    source: Source
    fresh: bool
    """Whether it is not in the ledger yet."""
    line: int
    """The first line that is read."""
    ids: list[str] = field(default_factory=list)
    suffixed_ids: dict[str, str] = field(default_factory=dict)
    """Id as it is read -> the one with a suffix by which the store has it."""


@dataclass(frozen=True)
class _Candidate:
    """A trajectory that the store may have already."""

    trajectory: Trajectory
    head: Head


class Intake:
    """The sources of one run: first all are announced, then they are read and stored."""

    def __init__(self, store: Store, result: IngestResult, readers: Readers, *, derives: bool = True) -> None:
        self.store = store
        self.result = result
        self._readers = readers
        self._derives = derives
        """False where deriving waits for the caller's `Store.catch_up`."""
        self._expected: list[_Expected] = []
        self._readings: list[Reading] = []
        self._blocks: list[Block] = []
        self._sizes: Counter[str] = Counter()
        """Totals of the waiting blocks: events, and bytes of all, of their states, and held in memory. There
        may be a block for each trajectory."""
        self._last: dict[str, int] = {}
        """Path -> the last source of this run with it: a rebuild reads every copy of one."""
        self._wrong: list[tuple[Quarantined, str]] = []
        self._n_released = 0
        """How many sources have had their earlier entries taken out of the quarantine."""
        self._n_reported = 0
        self._events_by_id: dict[str, int] = {}
        """Trajectory -> number of its events, of those that are new or have grown."""
        self._last_source: dict[str, int] = {}
        """Trajectory -> the source of this run that gave it last."""
        self._news_sources: set[int] = set()
        """Sources of this run that gave anything new."""
        self._n_noted = 0
        """How many sources are in the table of sources."""
        self._same_contents: Counter[tuple[int, str]] = Counter()
        """(Source of this run, another source that says the same without any times) -> number of
        trajectories."""

    def expect(
        self,
        source: Source,
        place: Place,
        span: Span | None = None,
        before: Sequence[str] = (),
        *,
        fresh: bool = True,
    ) -> None:
        """Announce a source that gave the trajectories `before`, or only the `span` by which such a source
        has grown.

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
        """Read and store everything; the store is not waited for where there is nothing to do."""
        with few_collections():
            for block in self._readers.blocks(self._readings, self._references()):
                self._wait(block)
                if self._is_full():
                    self._flush(block.source)
                if progress:
                    self._report(block, progress)
            if self._expected or self._wrong or not self.store.is_made:
                self._flush(None)
            self._forgive_growing()
            self.result.notes += self.result.losses()
            self._tell_alike()
            self._tell_others()

    def leave_out(self, ids: Iterable[str]) -> None:
        """Take trajectories out of the counts that were read and are forgotten."""
        for key in ids:
            events = self._events_by_id.pop(key, None)
            self.result.trajectories -= events is not None
            self.result.events -= events or 0

    def _forgive_growing(self) -> None:
        """A log that has grown since it was announced has lost nothing: a follower had read more of it."""
        shorter = {path for path, _ in self.result.shorter}
        growing = {
            path
            for one in (self._readings if shorter else ())
            for path in [self._expected[one.source].source.path]
            if path in shorter and not one.span and provenance.size(one.place) > one.size
        }
        self.result.shorter = {k: one for k, one in self.result.shorter.items() if k[0] not in growing}

    def _tell_others(self) -> None:
        """Note the logs that repeat a log of another name word for word, and those that go on with sessions
        that another log began: they count beside it."""
        sources = [self._expected[number].source for number in self._news_sources]
        if sources:
            with self.store.reading(synced=True) as connection:
                self.result.notes += copy_notes(connection, sources)
                self.result.notes += piece_notes(pieces(connection, sources))

    def _tell_alike(self) -> None:
        """Note the sources that have the same as others, without times: they may be other runs of the
        same."""
        if not self._same_contents:
            return
        contents = self._contents()
        count = 0
        with self.store.reading(synced=True) as connection:
            for (number, before), n in self._same_contents.items():
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
        """Report progress on each source that has been read."""
        while block.source is not None and self._n_reported <= block.source:
            source = self._expected[self._n_reported].source
            progress(source.path, self._n_reported, len(self._expected))
            self._n_reported += 1

    def _references(self) -> Mapping[str, References]:
        if not self._readings or not self.store.has_tables():
            return {}
        with self.store.reading(synced=True) as connection:
            return references(connection)

    def _wait(self, block: Block) -> None:
        """Let a block wait for a transaction, in a file where many do."""
        parcel = block.parcel
        self._blocks.append(block)
        self._sizes.update(events=parcel.rows["events"], all=parcel.bytes, states=parcel.sizes["states"])
        self._sizes.update(held=parcel.bytes_held)
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
        """Store what waits. `position` is that of the source being read, None behind the last one."""
        release_end, note_end = (len(self._expected),) * 2 if position is None else (position + 1, position)
        for block in self._blocks:
            items = [(item, self._expected[n].source.path, n) for item, n in block.quarantined]
            self._wrong.extend((item, path) for item, path, n in items if self._last[path] == n)
        with self.store.writing() as connection:
            ids = self._save(connection)
            release_memory(connection)
            _release(connection, self._expected[self._n_released : release_end])
            insert(
                connection,
                "quarantine",
                [{**item.model_dump(), "read_from": path} for item, path in self._wrong],
            )
            self._note(connection, note_end)
            self._derive(connection, ids, last=self._derives and position is None)
            release_memory(connection)
        self.result.stored = self.result.trajectories, self.result.events
        self.result.quarantined.extend(item for item, _ in self._wrong)
        self._wrong = []
        self._n_released, self._n_noted = release_end, note_end

    def _note(self, connection: duckdb.DuckDBPyConnection, end: int) -> None:
        """Note the sources before the `end` that gave something; one that gave nothing is read, and says why,
        every time."""
        readings = [one for one in self._expected[self._n_noted : end] if one.ids]
        unnoted = {key for one in self._expected[end:] for key in one.ids}
        sources = [one.source.model_copy(update={"trajectory_ids": tuple(one.ids)}) for one in readings]
        fresh = [source for source, one in zip(sources, readings, strict=True) if one.fresh]
        before = provenance.ids_by_path(connection, [source.path for source in sources])
        provenance.keep(self.store, connection, sources, fresh)
        superseded = find_superseded(connection, sources, before)
        self._remove_replaced(connection, superseded, unnoted)
        removed_ids = unnoted.union(*superseded.values())
        missing = missing_ids(connection, sources, before, removed_ids) if self._derives else {}
        self.result.notes += loss_notes(missing)

    def _remove_replaced(
        self, connection: duckdb.DuckDBPyConnection, by_path: Mapping[str, set[str]], unnoted: Collection[str]
    ) -> None:
        """Remove the trajectories that sources have replaced by others, except those that a source gives
        which is not noted yet (`unnoted`)."""
        by_path = {path: orphans for path, ids in by_path.items() if (orphans := ids - set(unnoted))}
        orphans = set().union(*by_path.values())
        if not orphans:
            return
        remark = forgetting.kept_note(forgetting.ratings_on(connection, orphans))
        remove(connection, orphans)
        self.leave_out(orphans)
        first = next(iter(by_path))
        before = count_of(len(orphans), "trajectory", "trajectories")
        what = f"{first}: what it holds now replaces {before} that it gave before"
        if len(by_path) > 1:
            others = count_of(len(by_path) - 1, "more file", "more files")
            what = f"{first} and {others}: what they hold now replaces {before} that they gave before"
        self.result.notes.append(what + remark)

    def _derive(self, connection: duckdb.DuckDBPyConnection, ids: Collection[str], *, last: bool) -> None:
        """Derive from all that was stored, once; until then note that it waits for that.

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
        """Store the blocks that wait; returns the ids of what is new or has grown."""
        heads = [head for block in self._blocks for head in block.heads]
        existing = summaries_by_id(connection, [head.id for head in heads])
        heard_names = _heard_names(connection, heads)
        fresh: dict[str, Summary] = {}
        clean: list[Parcel] = []
        late: list[tuple[Parcel, dict[str, Head]]] = []
        late_ids: set[str] = set()
        blocks, self._blocks = self._blocks, []
        self._sizes.clear()
        for block in blocks:
            same, again = self._sort(block, fresh, existing, heard_names, late_ids)
            late_ids.update(again)
            self._remark(block, {*same, *again})
            if again:
                late.append((block.parcel.copy(), again))
            clean.append(block.parcel.without({*same, *again}))
        save_parcels(self.store, connection, clean)
        ids = [*fresh, *self._save_late(connection, _one_by_one(late))] if late else list(fresh)
        for parcel in clean:
            parcel.remove()
        return ids

    def _sort(
        self,
        block: Block,
        fresh: dict[str, Summary],
        existing: Mapping[str, Summary],
        heard_names: Collection[str],
        late_ids: Collection[str],
    ) -> tuple[set[str], dict[str, Head]]:
        """The trajectories of a block that the store has just so, and those that have to be compared with
        what it has, or with what an earlier block has under the same id (`late_ids`). All others are new:
        they are added to `fresh`, and counted."""
        same: set[str] = set()
        again: dict[str, Head] = {}
        for head in block.heads:
            entry, reading = head.summary, self._expected[head.source]
            condition = reading.source.options.condition
            before = fresh.get(head.id) or existing.get(head.id)
            if head.id in reading.suffixed_ids or head.id in late_ids:
                again[head.id] = head
            elif before and before.digest == entry.digest and condition in (None, before.condition):
                # A line that stands twice in one file is no second trajectory.
                if self._last_source.get(head.id) != head.source:
                    self.result.leave([head.id])
                if not entry.has_times and entry.source != before.source:
                    self._same_contents[head.source, before.source] += 1
                same.add(head.id)
                reading.ids.append(head.id)
                self.result.note_whole(reading.source.path, head.id)
            elif before or head.native_id in heard_names:
                again[head.id] = head
            else:
                fresh[head.id] = entry
                reading.ids.append(head.id)
                self._count(head.id, head.source, entry.events)
            self._last_source[head.id] = head.source
        return same, again

    def _remark(self, block: Block, old_ids: Collection[str]) -> None:
        """Take the remarks on the new trajectories of a block, all but the `old_ids`."""
        if not old_ids:
            self.result.remarks.add(block.remarks)
        elif ids := [head.id for head in block.heads if head.id not in old_ids]:
            for one in trajectories(block.parcel.tables(), ids):
                self.result.remarks.take(one)

    def _save_late(self, connection: duckdb.DuckDBPyConnection, late: Iterable[_Candidate]) -> list[str]:
        """Store what may be known already, each compared with what the store has by then; returns ids as
        `_save` does."""
        ids: list[str] = []
        contents = self._contents()
        sessions = Sessions(self.store, connection)
        for some in _batches(late):
            sessions.expect([self._stored_id(one) for one in some])
            for one in some:
                reading = self._expected[one.head.source]
                read = one.trajectory.model_copy(update={"id": self._stored_id(one)})
                options, run_ids = reading.source.options, reading.ids
                key, trajectory = resolve_identity(sessions, read, options, self.result, contents, run_ids)
                reading.ids.append(key)
                if trajectory is None:
                    self.result.leave([key])
                    continue
                self.result.note_whole(reading.source.path, key)
                ids.append(trajectory.id)
                if trajectory.id in self._events_by_id:
                    self.result.remarks.drop(Remarks.of(sessions.whole(trajectory.id, states=True)))
                events = sum(not event.live_only for event in trajectory.events)
                self._count(trajectory.id, one.head.source, events)
                self.result.remarks.add(Remarks.of(trajectory))
                sessions.keep(trajectory)
            if sessions.events >= LATE_EVENTS:
                sessions.save()
        sessions.save()
        return ids

    def _stored_id(self, one: _Candidate) -> str:
        """The id by which the store has a trajectory that its source gave before."""
        return self._expected[one.head.source].suffixed_ids.get(one.head.id, one.head.id)

    def _count(self, key: str, source: int, events: int) -> None:
        """Count a trajectory with its events; of one that was counted in this run before, only what it
        gained."""
        before = self._events_by_id.get(key)
        self.result.trajectories += before is None
        self.result.again += before is not None
        self.result.events += events - (before or 0)
        self._events_by_id[key] = events
        self._news_sources.add(source)


def _release(connection: duckdb.DuckDBPyConnection, many: Iterable[_Expected]) -> None:
    """Take the entries of what is read once more out of the quarantine."""
    lines = [(one.source.path, one.line) for one in many]
    delete(connection, "quarantine", "read_from", [path for path, line in lines if line == 0])
    delete(connection, "quarantine", "read_from", [refusal_of(path) for path, _ in lines])
    for path, line in lines:
        if line:
            rule = "DELETE FROM quarantine WHERE read_from = ? AND (line IS NULL OR line >= ?)"
            execute(connection, rule, [path, line])


def _one_by_one(late: Iterable[tuple[Parcel, Mapping[str, Head]]]) -> Iterator[_Candidate]:
    """The trajectories of parcels that have these heads; those of one parcel at a time are in memory."""
    for parcel, heads in late:
        for one in trajectories(parcel.tables(), list(heads)):
            yield _Candidate(one, heads[one.id])


def _batches(late: Iterable[_Candidate]) -> Iterator[list[_Candidate]]:
    """Batches that fit into memory with what they are compared with."""
    some: list[_Candidate] = []
    for one in late:
        some.append(one)
        if len(some) == LATE or sum(each.head.summary.events for each in some) >= LATE_EVENTS:
            yield some
            some = []
    if some:
        yield some


def _heard_names(connection: duckdb.DuckDBPyConnection, heads: Collection[Head]) -> set[str]:
    """Names of sessions that were heard live, now or before: their ids may not be those of their logs."""
    return names_heard(connection, (head.native_id for head in heads)) | {
        h.native_id for h in heads if h.is_heard
    }
