"""CoBlock: agents with complementary blocks build one structure, each knowing a part of the goal."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas.metric import Measure
from ....schemas.trajectory import Trajectory
from ..base import References, System, TimeLimit
from . import metrics, reader

__all__ = ["SYSTEM"]


def _measures(trajectory: Trajectory, references: References, limit: TimeLimit) -> Iterator[Measure]:
    return metrics.measures(trajectory)


SYSTEM = System(reader.SYSTEM, reader.recognises, reader.read, measures=_measures)
