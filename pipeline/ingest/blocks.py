"""What readers yield, as blocks of columns: the unit of work of an ingest, in this process or another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...schemas import Measure, Quarantined, Trajectory
from ..store.columns import Columns, Tables
from ..systems import ReadOptions, References, Span, merge
from . import sources as provenance
from .identity import may_be_one
from .measure import own_measures
from .remarks import Remarks
from .sources import Place

BLOCK_EVENTS = 20_000
"""A block is full with so many events; a trajectory is never cut."""
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
class Head:
    """What must be known of a trajectory to tell whether the store has it."""

    id: str
    native_id: str
    heard: bool
    source: int
    remarks: Remarks


@dataclass(frozen=True)
class Block:
    """Trajectories of different ids, as tables; what could not be read beside them, each with its source."""

    tables: Tables
    heads: Sequence[Head]
    quarantined: Sequence[tuple[Quarantined, int]]
    source: int | None
    """The source that was being read when the block was full: all before it have been read."""

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Rows of each table."""
        return {name: table.num_rows for name, table in self.tables.items()}

    @cached_property
    def bytes(self) -> int:
        """Of all tables in memory."""
        return sum(table.nbytes for table in self.tables.values())


def blocks(readings: Iterable[Reading], references: Mapping[str, References]) -> Iterator[Block]:
    """All that the readings hold, in their order."""
    making = _Making(references)
    source: int | None = None
    for reading in readings:
        source = reading.source
        for item in provenance.read(reading.place, reading.options, reading.span):
            if isinstance(item, Quarantined):
                making.quarantined.append((item, reading.source))
                continue
            if making.meets(item) or making.events >= BLOCK_EVENTS:
                yield making.block(source)
                making = _Making(references)
            making.add(item, reading.source)
    yield making.block(source)


@dataclass
class _Making:
    """A block that is not full yet."""

    references: Mapping[str, References]
    trajectories: dict[str, tuple[Trajectory, list[Measure], int]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    quarantined: list[tuple[Quarantined, int]] = field(default_factory=list)
    columns: Columns = field(default_factory=Columns)
    events: int = 0

    def meets(self, trajectory: Trajectory) -> bool:
        """Whether what is here has to be stored first, since it may be the same session."""
        if trajectory.id in self.trajectories:
            return True
        others = self.names.get(trajectory.native_id, ())
        return any(may_be_one(trajectory, self.trajectories[other][0]) for other in others)

    def add(self, trajectory: Trajectory, source: int) -> None:
        """Take a trajectory in, or quarantine it where it holds what is no JSON."""
        measures = own_measures(trajectory, self.references)
        try:
            self.columns.add(trajectory, measures)
        except _UNFIT as error:
            self._refuse(trajectory, source, error)
            return
        self.trajectories[trajectory.id] = (trajectory, measures, source)
        self.names.setdefault(trajectory.native_id, []).append(trajectory.id)
        self.events += len(trajectory.events)

    def block(self, source: int | None) -> Block:
        """What came in. A trajectory that no table can hold is quarantined, alone."""
        try:
            tables = self.columns.tables()
        except _UNFIT:
            tables = self._fitting()
        heads = [
            Head(t.id, t.native_id, merge.was_heard(t), source, Remarks.of(t))
            for t, _, source in self.trajectories.values()
        ]
        return Block(tables, heads, self.quarantined, source)

    def _fitting(self) -> Tables:
        columns = Columns()
        for key, (trajectory, measures, source) in list(self.trajectories.items()):
            alone = Columns()
            try:
                alone.add(trajectory, measures)
                alone.tables()
            except _UNFIT as error:
                del self.trajectories[key]
                self._refuse(trajectory, source, error)
            else:
                columns.add(trajectory, measures)
        return columns.tables()

    def _refuse(self, trajectory: Trajectory, source: int, error: BaseException) -> None:
        reason = f"cannot be stored: {type(error).__name__}: {str(error)[:200]}"
        self.quarantined.append((Quarantined(source=trajectory.source, reason=reason), source))
