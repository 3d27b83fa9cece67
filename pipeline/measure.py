"""A measure: one number of one trajectory, from which metrics are made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric's value for one trajectory.

    A group's metric is the mean of `value` weighted by `weight`: with weight 1 the mean over
    trajectories, with a ratio and its denominator as weight the pooled ratio.
    `value` is None exactly where `reason` says why; such trajectories count as missing.
    """

    metric: str
    trajectory: str
    value: float | None
    weight: float = 1.0
    reason: str | None = None
    participant: str | None = None
    rater: str | None = None
    scoring: str | None = None
    definition: str | None = None
