"""CoBlock: agents with complementary blocks build one structure, each knowing a part of the goal."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas.metric import Measure
from ....schemas.trajectory import Finding, Trajectory
from ..base import References, System, TimeLimit
from . import faults, metrics, reader
from .siblings import siblings

__all__ = ["SYSTEM"]


def _measures(trajectory: Trajectory, references: References, limit: TimeLimit) -> Iterator[Measure]:
    return metrics.measures(trajectory)


def _team_faults(trajectory: Trajectory, references: References) -> Iterator[Finding] | None:
    """None where it is not known what was to be built."""
    return faults.faults(trajectory) if metrics.task(trajectory).target else None


SYSTEM = System(
    reader.SYSTEM,
    reader.recognises,
    reader.read,
    beside=siblings,
    measures=_measures,
    findings={"team_faults": _team_faults},
)
