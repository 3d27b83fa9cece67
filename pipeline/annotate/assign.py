"""Who labels what: each annotator has a project of their own, with only the units that are theirs.

Label Studio's free edition shows every member every annotation of a task. So the two labels of a unit that
two people are asked about must come from two tasks, in two projects.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...schemas import content_hash
from ..store.ledgers.samples import ADJUDICATION, Sample, SampledUnit


def annotator_shares(sample: Sample, units: Sequence[SampledUnit]) -> list[list[SampledUnit]]:
    """The units of each annotator, in the sample's order; the same sample is always divided the same way.

    Units that several people label come first and the others even out the loads, so that these differ by one
    unit at most; where trajectories were drawn whole, one goes whole to an annotator.
    """
    people = range(sample.design.annotators)
    by_trajectory = sample.design.unit == "trajectory"
    groups: dict[tuple[str, int | None], list[SampledUnit]] = {}
    for unit in units:
        groups.setdefault((unit.trajectory, None if by_trajectory else unit.event), []).append(unit)
    loads = [0] * len(people)
    assignment: dict[tuple[str, int | None], list[int]] = {}
    for place, group in sorted(groups.items(), key=lambda item: -max(unit.overlap for unit in item[1])):
        ties = [content_hash(sample.design.identity, *place, person) for person in people]
        order = sorted(people, key=lambda person: (loads[person], ties[person]))
        assignment[place] = order[: max(unit.overlap for unit in group)]
        for person in assignment[place]:
            loads[person] += len(group)
    return [
        [
            unit
            for unit in units
            if person in assignment[unit.trajectory, None if by_trajectory else unit.event]
        ]
        for person in people
    ]


def adjudicates(sample: Sample) -> bool:
    """Whether the sample is of disputes: one project for whoever settles them, with both labels shown."""
    return sample.design.method == ADJUDICATION
