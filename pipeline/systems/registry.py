"""The systems there are: one line for each, in the order in which `auto` asks whose logs these are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf

from ...schemas import Finding, Measure, Model, Trajectory
from ...schemas.metric import BOUNDS
from ..errors import UsageError
from . import coblock, cogym, formats, mast, overcooked, rehac, trail, whowhen
from .base import LIMIT, OF_ONE, References, System, TimeLimit

SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        *(cogym.SYSTEM, rehac.SYSTEM, overcooked.SYSTEM, coblock.SYSTEM),
        *(whowhen.SYSTEM, mast.SYSTEM, trail.SYSTEM),
        *formats.SYSTEMS,
    )
}
DETECTED = {codebook: system for system in SYSTEMS.values() for codebook in system.findings}
"""Codebook -> the system whose detectors rate on it."""
AT_QUERY = ("reward",)
"""Metrics with a parameter that the reader of a report chooses: computed from stored ones when asked for."""
_ROUNDING = 1e-9


def system_of(name: str) -> System:
    """The system of that name; UsageError names the ones there are."""
    if name not in SYSTEMS:
        raise UsageError(f"unknown system {name!r}, expected one of auto, {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


def measures(
    trajectory: Trajectory, references: Mapping[str, References], limit: TimeLimit = LIMIT
) -> Iterator[Measure]:
    """What a trajectory's own system measures, given the references of each system.

    A value that its metric can't take, from an outcome that a log states wrongly, is null with the reason:
    cut to the range it would be a wrong one in every mean.
    """
    system = SYSTEMS.get(trajectory.system)
    if system is None:
        return
    for measure in system.measures(trajectory, references.get(system.name, {}), limit):
        if measure.metric not in AT_QUERY:
            yield _in_range(replace(measure, metric=OF_ONE.get(measure.metric, measure.metric)))


def _in_range(measure: Measure) -> Measure:
    low, high = BOUNDS.get(measure.metric, (-inf, inf))
    if measure.value is None or low - _ROUNDING <= measure.value <= high + _ROUNDING:
        return measure
    limits = f"{low:g} or more" if high == inf else f"from {low:g} to {high:g}"
    reason = f"{measure.metric} must be {limits}, got {measure.value:g}"
    return replace(measure, value=None, reason=reason)


def findings(
    codebook: str, trajectory: Trajectory, references: Mapping[str, References]
) -> Iterable[Finding] | None:
    """What a codebook's detector finds; None where the trajectory is another system's or it can't tell."""
    system = DETECTED[codebook]
    if trajectory.system != system.name:
        return None
    return system.findings[codebook](trajectory, references.get(system.name, {}))


def background(trajectory: Trajectory, references: Mapping[str, References]) -> str | None:
    """What who rates a trajectory must know of its task, and its log does not say."""
    system = SYSTEMS.get(trajectory.system)
    return system.background(trajectory, references.get(system.name, {})) if system else None


def parsed_references(rows: Iterable[tuple[str, str, str]]) -> dict[str, References]:
    """System -> its references, from rows of (system, task, content); what a later row of a task does not say
    is as an earlier one has it: actions and recipes lie in two folders."""
    references: dict[str, dict[str, Model]] = {}
    for name, task, content in rows:
        if (kind := SYSTEMS[name].reference) is not None:
            by_task, one = references.setdefault(name, {}), kind.model_validate_json(content)
            values = {field: value for field, value in one if value not in (None, ())}
            by_task[task] = by_task[task].model_copy(update=values) if task in by_task else one
    return {**references}
