"""Collab-Overcooked: two agents that must cooperate to serve an order, held against references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from ....schemas.metric import Measure
from ....schemas.trajectory import Finding, Trajectory
from ..base import References, System, TimeLimit
from . import collaboration, metrics, reader
from .collaboration import Definition
from .references import Reference, is_reference, references

__all__ = ["SYSTEM"]


def _reference(trajectory: Trajectory, by_task: References) -> Reference | None:
    reference = by_task.get(trajectory.task or "")
    return reference if isinstance(reference, Reference) else None


def _background(trajectory: Trajectory, by_task: References) -> str:
    """How its maps are read, and the order's recipe where it is known: only that says what furthers it."""
    reference = _reference(trajectory, by_task)
    recipe = reference and reference.recipe
    return f"{reader.LEGEND}\n\nThe order's recipe:\n{recipe.strip()}" if recipe else reader.LEGEND


def _measures(trajectory: Trajectory, by_task: References, limit: TimeLimit) -> Iterator[Measure]:
    """Under each definition; what the released code and the paper both define comes once."""
    reference, optimal = _reference(trajectory, by_task), limit.optimal.get(trajectory.task or "")
    for definition in get_args(Definition):
        for measure in metrics.measures(trajectory, reference, definition, limit.gamma, optimal):
            if measure.definition is not None or definition == "released":
                yield measure


def _collaborative_errors(trajectory: Trajectory, by_task: References) -> Iterable[Finding] | None:
    """None without the order's reference, which requests are judged against, or without plans, which hold
    them."""
    reference = _reference(trajectory, by_task)
    if reference is None or not metrics.plans_are_logged(trajectory):
        return None
    episode = metrics.run(trajectory, metrics.time_limit(reference))
    return collaboration.errors(metrics.run_collaborations(episode, reference, "paper"), reference)


SYSTEM = System(
    reader.SYSTEM,
    reader.recognises,
    reader.read,
    models_by_place=True,
    measures=_measures,
    background=_background,
    findings={"collaborative_errors": _collaborative_errors},
    reference=Reference,
    read_references=references,
    is_reference=is_reference,
)
