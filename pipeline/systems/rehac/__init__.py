"""ReHAC: at each step a policy decides whether the agent or a person acts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....schemas.metric import Measure
from ....schemas.trajectory import Finding, Trajectory
from ..base import References, System, TimeLimit
from . import dilemmas, metrics, reader

__all__ = ["SYSTEM"]


def _measures(trajectory: Trajectory, references: References, limit: TimeLimit) -> Iterator[Measure]:
    return metrics.measures(trajectory)


def _dilemmas(trajectory: Trajectory, references: References) -> Iterable[Finding]:
    return dilemmas.dilemmas(trajectory)


SYSTEM = System(
    reader.SYSTEM,
    reader.recognises,
    reader.read,
    written_whole=True,
    measures=_measures,
    findings={"dilemmas": _dilemmas},
)
