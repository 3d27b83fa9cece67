"""Detectors that need more than a unit: the observation of each step, or an order's reference trajectories.

They rate on codebooks of their own, each for one system, as rater `detectors`: `present` with the events
that show it, else `absent`; trajectories of other systems get no rating.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...judges.rules.detectors import NAME, ByUnit
from ...schemas import Codebook, Finding, Rating, Trajectory, Unit, Verdict, content_hash
from ..store import Store
from ..store.queries.trajectories import reference_rows
from ..systems import References
from ..systems.registry import DETECTED, findings, parsed_references

VERSION = content_hash(NAME, {book: system.name for book, system in DETECTED.items()}, 1)[:12]


def books_of(store: Store) -> tuple[str, ...]:
    """The codebooks whose systems the store has trajectories of."""
    with store.reading() as connection:
        rows = {row[0] for row in connection.execute("SELECT DISTINCT system FROM trajectories").fetchall()}
    return tuple(book for book, system in DETECTED.items() if system.name in rows)


class Trajectories(Protocol):
    """Finds trajectories of a codebook's system by id, with their states, and the references that they are
    compared with; other systems' trajectories may be missing."""

    @property
    def references(self) -> Mapping[str, References]: ...

    def get(self, key: str) -> Trajectory | None: ...


class CurrentTrajectories:
    """The trajectories that are being rated, of all systems."""

    def __init__(self, store: Store) -> None:
        with store.reading() as connection:
            self.references = parsed_references(reference_rows(connection))
        self._held: dict[str, Trajectory] = {}

    def show(self, trajectories: Sequence[Trajectory]) -> None:
        """Hold these trajectories, which are rated next."""
        self._held = {trajectory.id: trajectory for trajectory in trajectories}

    def get(self, key: str) -> Trajectory | None:
        """The trajectory of that id."""
        return self._held.get(key)


@dataclass(frozen=True)
class SystemDetectors(ByUnit):
    """The detectors of one codebook of one system's own."""

    trajectories: Trajectories
    version = VERSION

    def of(self, unit: Unit) -> Iterator[Rating]:
        """A rating for each code, for a trajectory of the codebook's system."""
        trajectory = self.trajectories.get(unit.trajectory_id)
        if trajectory is None:
            return
        result = findings(self.codebook.name, trajectory, self.trajectories.references)
        if result is None:
            return
        rows = list(result)
        for code in self.codebook.codes:
            yield self.maker.rating(unit, _verdict(self.codebook, code.code, rows))


def _verdict(book: Codebook, code: str, rows: list[Finding]) -> Verdict:
    own = [finding for finding in rows if finding.code == code]
    if not own:
        return Verdict(code, book.labels[1], rationale="the detector of this code found nothing")
    cites = tuple(sorted({seq for finding in own for seq in finding.cites}))
    return Verdict(
        code, book.positive, cites=cites, rationale="; ".join(finding.why for finding in own)[:1000]
    )
