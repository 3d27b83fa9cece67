"""Which systems have measures of their own, computed when a trajectory is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import get_args

from coaudit.pipeline.measure import Measure
from coaudit.pipeline.measures import coblock, overcooked, rehac
from coaudit.pipeline.measures.trajectory_efficiency import Definition
from coaudit.pipeline.sources.overcooked_references import Reference
from coaudit.schemas.trajectory import Trajectory

References = Mapping[str, Reference]
"""Order of Collab-Overcooked -> what its runs are measured against."""
GAMMA = overcooked.GAMMA
OF_ONE = {"success_rate": "success"}
"""A rate over many -> the 0/1 of one trajectory that stands behind it."""
AT_QUERY = ("reward",)
"""Metrics with a parameter that only the reader of a report chooses; made from stored ones."""


def measures(
    trajectory: Trajectory,
    references: References,
    gamma: float = GAMMA,
    optimal: Mapping[str, int] | None = None,
) -> Iterator[Measure]:
    """What a trajectory's own system measures; nothing for a system without Python measures.

    `gamma` and `optimal` (order -> steps) set Collab-Overcooked's time limit.
    """
    for row in _measures(trajectory, references, gamma, optimal or {}):
        if row.metric not in AT_QUERY:
            yield replace(row, metric=OF_ONE.get(row.metric, row.metric))


def _measures(
    trajectory: Trajectory, references: References, gamma: float, optimal: Mapping[str, int]
) -> Iterator[Measure]:
    if trajectory.system == "rehac":
        yield from rehac.measures(trajectory)
    elif trajectory.system == "coblock":
        yield from coblock.measures(trajectory)
    elif trajectory.system == "overcooked":
        order = trajectory.task or ""
        given = (references.get(order), gamma, optimal.get(order))
        yield from _under_each_definition(trajectory, *given)


def _under_each_definition(
    trajectory: Trajectory, reference: Reference | None, gamma: float, optimal: int | None
) -> Iterator[Measure]:
    """What the released code and the paper both define comes once."""
    for definition in get_args(Definition):
        for row in overcooked.measures(trajectory, reference, definition, gamma, optimal):
            if row.definition is not None or definition == "released":
                yield row
