"""What readers yield, collected into blocks of columns: the unit of work of an ingest, in this process or
another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...schemas import Measure, Quarantined, Trajectory
from ..store.tables.columns import Columns, Tables, concat_tables
from ..store.tables.parcel import Parcel
from ..systems import ReadOptions, References, Span, merge
from . import sources as provenance
from .measure import own_measures
from .remarks import Remarks
from .sources import Place

BLOCK_EVENTS = 20_000
"""Events that fill a block; a trajectory is never split."""
LAYERS = 16
"""At most so many blocks are filled side by side, where logs repeat a session again and again as it grew."""
LOOSE_EVENTS = 2_000
"""Events from which on pending trajectories become tables: as objects they take more memory."""
_UNFIT = (ValueError, TypeError, OverflowError, RecursionError)
"""What is raised for a value that no column holds."""


@dataclass(frozen=True)
class Reading:
    """A source to read, or a part of one; `source` numbers the sources of a run."""

    source: int
    place: Place
    options: ReadOptions
    size: int
    """Bytes, about."""
    span: Span | None = None


@dataclass(frozen=True)
class Summary:
    """What tells whether a trajectory that is read again is the same."""

    digest: str
    condition: str | None
    source: str
    """Where it was read."""
    has_times: bool
    events: int
    """Number of logged events."""


@dataclass(frozen=True)
class Head:
    """What of a trajectory decides whether the store has it already."""

    id: str
    native_id: str
    is_heard: bool
    source: int
    summary: Summary


@dataclass(frozen=True)
class Block:
    """Trajectories with different ids, as tables, and what could not be read among them, each with its
    source."""

    parcel: Parcel
    heads: Sequence[Head]
    quarantined: Sequence[tuple[Quarantined, int]]
    source: int | None
    """The source that was being read when the block was full: all before it have been read."""
    remarks: Remarks
    """On all the trajectories."""

    def set_aside(self, folder: Path) -> Block:
        """The same block with its tables in a file of that folder."""
        return replace(self, parcel=self.parcel.set_aside(folder))


def blocks(readings: Iterable[Reading], references: Mapping[str, References]) -> Iterator[Block]:
    """All trajectories of the readings, in their order. One that may repeat an earlier one comes in a later
    block, so that it is stored after that."""
    layers = [_OpenBlock(references)]
    began: int | None = None
    source: int | None = None
    for reading in readings:
        source = reading.source
        began = source if began is None else began
        for item in provenance.read(reading.place, reading.options, reading.span):
            if isinstance(item, Quarantined):
                layers[0].quarantined.append((item, reading.source))
                continue
            place = _layer_for(layers, item)
            if place == LAYERS or sum(layer.events for layer in layers) >= BLOCK_EVENTS:
                yield from _blocks_of(layers, began, source)
                layers, began, place = [], source, 0
            if place == len(layers):
                layers.append(_OpenBlock(references))
            layers[place].add(item, reading.source)
    yield from _blocks_of(layers, began, source)


def _layer_for(layers: Sequence[_OpenBlock], trajectory: Trajectory) -> int:
    """The place of the layer behind the last one that may hold the same session, and so must be stored
    first."""
    for place in range(len(layers), 0, -1):
        if layers[place - 1].meets(trajectory):
            return place
    return 0


def _blocks_of(layers: Sequence[_OpenBlock], began: int | None, source: int | None) -> Iterator[Block]:
    """The block of each layer. All but the last name the first source with a part in them as the one being
    read, and leave it to the last to say what is wrong: only with that are the sources stored whole."""
    *before, last = layers
    for layer in before:
        block = layer.block(began)
        last.quarantined += block.quarantined
        yield replace(block, quarantined=())
    yield last.block(source)


@dataclass
class _OpenBlock:
    """A block that is not full yet."""

    references: Mapping[str, References]
    heads: dict[str, Head] = field(default_factory=dict)
    names: dict[str, list[Head]] = field(default_factory=dict)
    quarantined: list[tuple[Quarantined, int]] = field(default_factory=list)
    columns: Columns = field(default_factory=Columns)
    pending: list[tuple[Trajectory, list[Measure], int]] = field(default_factory=list)
    """Trajectories that are in `columns` and in no table yet."""
    tables: list[Tables] = field(default_factory=list)
    remarks: Remarks = field(default_factory=Remarks)
    events: int = 0

    def meets(self, trajectory: Trajectory) -> bool:
        """Whether this block has to be stored before a trajectory, since it may hold the same session.

        A session that was heard live may have another id than the same one read from its folder.
        """
        if trajectory.id in self.heads:
            return True
        alike = self.names.get(trajectory.native_id)
        return alike is not None and (merge.was_heard(trajectory) or any(head.is_heard for head in alike))

    def add(self, trajectory: Trajectory, source: int) -> None:
        """Add a trajectory, or quarantine it where it holds a value that is not JSON."""
        measures = own_measures(trajectory, self.references)
        try:
            row = self.columns.add(trajectory, measures)
        except _UNFIT as error:
            self._refuse(trajectory, source, error)
            return
        self.pending.append((trajectory, measures, source))
        has_times = row["started"] is not None
        entry = Summary(row["digest"], row["condition"], row["source"], has_times, row["n_events"])
        head = Head(row["id"], row["native_id"], merge.was_heard(trajectory), source, entry)
        self.heads[head.id] = head
        self.names.setdefault(head.native_id, []).append(head)
        self.events += len(trajectory.events)
        if self.columns.events >= LOOSE_EVENTS:
            self._make_tables()

    def block(self, source: int | None) -> Block:
        """The finished block. A trajectory that no table can hold is quarantined, alone."""
        self._make_tables()
        parcel = Parcel.of(concat_tables(self.tables))
        return Block(parcel, list(self.heads.values()), self.quarantined, source, self.remarks)

    def _make_tables(self) -> None:
        """Turn the pending trajectories into tables."""
        try:
            tables = self.columns.tables()
            self.columns.clear()
        except _UNFIT:
            tables = self._storable_tables()
            self.columns = Columns()
        self.tables.append(tables)
        for trajectory, *_ in self.pending:
            self.remarks.take(trajectory)
        self.pending = []

    def _storable_tables(self) -> Tables:
        columns, pending = Columns(), self.pending
        self.pending = []
        for trajectory, measures, source in pending:
            alone = Columns()
            try:
                alone.add(trajectory, measures)
                alone.tables()
            except _UNFIT as error:
                head = self.heads.pop(trajectory.id)
                self.names[head.native_id].remove(head)
                self._refuse(trajectory, source, error)
            else:
                columns.add(trajectory, measures)
                self.pending.append((trajectory, measures, source))
        return columns.tables()

    def _refuse(self, trajectory: Trajectory, source: int, error: BaseException) -> None:
        reason = f"cannot be stored: {type(error).__name__}: {str(error)[:200]}"
        self.quarantined.append((Quarantined(source=trajectory.source, reason=reason), source))
