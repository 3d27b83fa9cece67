"""What readers yield, as blocks of columns: the unit of work of an ingest, in this process or another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...schemas import Measure, Quarantined, Trajectory
from ..store.columns import Columns, Tables, together
from ..store.parcel import Parcel
from ..systems import ReadOptions, References, Span, merge
from . import sources as provenance
from .measure import own_measures
from .remarks import Remarks
from .sources import Place

BLOCK_EVENTS = 20_000
"""A block is full with so many events; a trajectory is never cut."""
LAYERS = 16
"""So many blocks are made side by side where logs tell of one session again and again, as it grew."""
LOOSE_EVENTS = 2_000
"""With so many, trajectories become tables: as objects they take more memory."""
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
class Known:
    """What a trajectory that comes again is held against."""

    digest: str
    condition: str | None
    source: str
    """Where it was read."""
    timed: bool
    events: int
    """Logged ones."""


@dataclass(frozen=True)
class Head:
    """What must be known of a trajectory to tell whether the store has it."""

    id: str
    native_id: str
    heard: bool
    source: int
    known: Known


@dataclass(frozen=True)
class Block:
    """Trajectories of different ids, as tables; what could not be read beside them, each with its source."""

    parcel: Parcel
    heads: Sequence[Head]
    quarantined: Sequence[tuple[Quarantined, int]]
    source: int | None
    """The source that was being read when the block was full: all before it have been read."""
    remarks: Remarks
    """On all the trajectories."""

    def set_aside(self, folder: Path) -> Block:
        """The same with its tables in a file of that folder."""
        return replace(self, parcel=self.parcel.set_aside(folder))


def blocks(readings: Iterable[Reading], references: Mapping[str, References]) -> Iterator[Block]:
    """All that the readings hold, in their order but for what is told again: that comes behind all that was
    told with it before."""
    layers = [_Making(references)]
    began: int | None = None
    source: int | None = None
    for reading in readings:
        source = reading.source
        began = source if began is None else began
        for item in provenance.read(reading.place, reading.options, reading.span):
            if isinstance(item, Quarantined):
                layers[0].quarantined.append((item, reading.source))
                continue
            place = _behind(layers, item)
            if place == LAYERS or sum(layer.events for layer in layers) >= BLOCK_EVENTS:
                yield from _blocks_of(layers, began, source)
                layers, began, place = [], source, 0
            if place == len(layers):
                layers.append(_Making(references))
            layers[place].add(item, reading.source)
    yield from _blocks_of(layers, began, source)


def _behind(layers: Sequence[_Making], trajectory: Trajectory) -> int:
    """The place behind the last layer that has to be stored before a trajectory."""
    for place in range(len(layers), 0, -1):
        if layers[place - 1].meets(trajectory):
            return place
    return 0


def _blocks_of(layers: Sequence[_Making], began: int | None, source: int | None) -> Iterator[Block]:
    """The block of each layer. Until the last one is stored, no source is read whole but those before the
    first that has a part in them, and what is wrong with the others is not to be said yet."""
    *before, last = layers
    for layer in before:
        block = layer.block(began)
        last.quarantined += block.quarantined
        yield replace(block, quarantined=())
    yield last.block(source)


@dataclass
class _Making:
    """A block that is not full yet."""

    references: Mapping[str, References]
    heads: dict[str, Head] = field(default_factory=dict)
    names: dict[str, list[Head]] = field(default_factory=dict)
    quarantined: list[tuple[Quarantined, int]] = field(default_factory=list)
    columns: Columns = field(default_factory=Columns)
    loose: list[tuple[Trajectory, list[Measure], int]] = field(default_factory=list)
    """What is in the columns and in no table yet."""
    tables: list[Tables] = field(default_factory=list)
    remarks: Remarks = field(default_factory=Remarks)
    events: int = 0

    def meets(self, trajectory: Trajectory) -> bool:
        """Whether what is here has to be stored before it, since it may be the same session.

        One that was heard and its folder may be one under ids that could not be the same.
        """
        if trajectory.id in self.heads:
            return True
        alike = self.names.get(trajectory.native_id)
        return alike is not None and (merge.was_heard(trajectory) or any(head.heard for head in alike))

    def add(self, trajectory: Trajectory, source: int) -> None:
        """Take a trajectory in, or quarantine it where it holds what is no JSON."""
        measures = own_measures(trajectory, self.references)
        try:
            row = self.columns.add(trajectory, measures)
        except _UNFIT as error:
            self._refuse(trajectory, source, error)
            return
        self.loose.append((trajectory, measures, source))
        timed = row["started"] is not None
        entry = Known(row["digest"], row["condition"], row["source"], timed, row["n_events"])
        head = Head(row["id"], row["native_id"], merge.was_heard(trajectory), source, entry)
        self.heads[head.id] = head
        self.names.setdefault(head.native_id, []).append(head)
        self.events += len(trajectory.events)
        if self.columns.events >= LOOSE_EVENTS:
            self._settle()

    def block(self, source: int | None) -> Block:
        """What came in. A trajectory that no table can hold is quarantined, alone."""
        self._settle()
        parcel = Parcel.of(together(self.tables))
        return Block(parcel, list(self.heads.values()), self.quarantined, source, self.remarks)

    def _settle(self) -> None:
        """Make tables of what is loose."""
        try:
            tables = self.columns.tables()
            self.columns.clear()
        except _UNFIT:
            tables = self._fitting()
            self.columns = Columns()
        self.tables.append(tables)
        for trajectory, *_ in self.loose:
            self.remarks.take(trajectory)
        self.loose = []

    def _fitting(self) -> Tables:
        columns, loose = Columns(), self.loose
        self.loose = []
        for trajectory, measures, source in loose:
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
                self.loose.append((trajectory, measures, source))
        return columns.tables()

    def _refuse(self, trajectory: Trajectory, source: int, error: BaseException) -> None:
        reason = f"cannot be stored: {type(error).__name__}: {str(error)[:200]}"
        self.quarantined.append((Quarantined(source=trajectory.source, reason=reason), source))
