"""Rows that reports are made of: metrics, agreement and rates. An undefined number is null with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from pydantic import computed_field

from .base import Model

MEAN = " (mean)"
"""Ends the name of a code on a scale, of which the mean is estimated."""
BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("delivered", "success", "won", "exact_match"), (0.0, 1.0)),
    **dict.fromkeys(("task_performance", "collab_score", "initiative_entropy"), (0.0, 1.0)),
    **dict.fromkeys(("human_intervention_rate", "error_rate", "repeated_action_rate"), (0.0, 1.0)),
    **dict.fromkeys(("message_share", "task_reward", "progress", "tes", "progress_completeness"), (0.0, 1.0)),
    **dict.fromkeys(("initiating_capability", "responding_capability", "partial_structure"), (0.0, 1.0)),
    **dict.fromkeys(("collaboration", "initiation_errors"), (0.0, 1.0)),
    **dict.fromkeys(("outcome_rating", "satisfaction", "communication_rating"), (1.0, 5.0)),
    **dict.fromkeys(("events", "messages", "actions", "errors", "interventions"), (0.0, inf)),
    **dict.fromkeys(("effective_confirmations", "halting_messages"), (0.0, inf)),
    **dict.fromkeys(("steps", "timesteps", "invalid_actions", "extra_blocks"), (0.0, inf)),
    **dict.fromkeys(("illegal_placements", "breaks_without_effect"), (0.0, inf)),
    "workload_balance": (0.0, 0.5),
    "time_to_first_human_message": (0.0, inf),
    "ites": (-1.0, 1.0),
    "reward": (-inf, 1.0),
}
"""Values that a metric can take; what is not here may be any number."""


class Metric(Model):
    """One number of one metric for a group of trajectories, or for one trajectory.

    Where `value` or its interval is None, `reason` says why. `n` trajectories went into it, `missing` could
    not. `low` and `high` bound a 95 % interval.
    """

    metric: str
    group: dict[str, str | None] | None = None
    trajectory: str | None = None
    native_id: str | None = None
    participant: str | None = None
    rater: str | None = None
    scoring: str | None = None
    """For collab_score: `automatic` or `human`."""
    definition: str | None = None
    """`released` or `paper`, where a system's code and its paper differ (Co-Gym's initiative entropy too); of
    ReHAC's reward its λ.
    """
    value: float | None
    n: int
    missing: int = 0
    low: float | None = None
    high: float | None = None
    clusters: int | None = None
    """Independent groups of trajectories: the instances of a task where they are known."""
    answered: float | None = None
    """Of a metric that rests on ratings: the share of the units that have one."""
    bound_low: float | None = None
    """With `bound_high`: where the value lies whatever the unrated units are."""
    bound_high: float | None = None
    design: str | None = None
    """How rated units stand for unrated ones."""
    reason: str | None = None
    note: str | None = None
    """What a value rests on by its definition, such as sessions that it counts as 0."""


class Agreement(Model):
    """One coefficient of agreement between raters on one code."""

    codebook: str | None = None
    """None where the ratings came from a table of their own."""
    code: str
    coefficient: str
    raters: tuple[str, ...]
    value: float | None
    low: float | None = None
    high: float | None = None
    n_units: int
    n_ratings: int
    n_left_out: int = 0
    """More units that two of them were asked about and fewer than two gave a label: unclear, or no answer.
    Where that depends on what is so, agreement on the others is not that on all."""
    n_disputed: int = 0
    """More units, where these are settled ones, on which people differ and that gold does not settle."""
    population: str | None = None
    """Which units these are, where not simply all that they rated."""
    reason: str | None = None


def suffix(label: str | None, *, is_mean: bool) -> str:
    """Ends the name of a code of which one of several labels, or the mean of a scale, is estimated."""
    if is_mean:
        return MEAN
    return "" if label is None else f": {label}"


def without_suffix(name: str) -> str:
    """The code of a name that ends as `suffix` says."""
    return name.removesuffix(MEAN).partition(": ")[0]


class Rate(Model):
    """How often a code is there: the judge's own rate beside the one corrected by people.

    Of a scale, all values are means of the labels' numbers.
    """

    codebook: str
    code: str
    """A code, or a category: then the rate of the union of its codes."""
    label: str | None = None
    """Of more than two labels the one whose share this is."""
    is_mean: bool = False
    """Whether this is the mean of a scale."""
    group: dict[str, str | None] | None = None
    judge: str | None = None
    judge_rate: float | None
    rate: float | None
    low: float | None = None
    high: float | None = None
    estimator: str | None
    design: str | None
    n_units: int
    """Units that the rate is of: those that the judge was asked about and that the samples could take."""
    n_human: int
    n_judged: int
    n_unclear: int = 0
    """Human answers left out as unclear; counting all as absent or as present (on a scale as its least or
    greatest label) gives the next two."""
    rate_if_unclear_absent: float | None = None
    rate_if_unclear_present: float | None = None
    n_skipped: int = 0
    """Units that people were asked about and gave no answer to."""
    n_divided: int = 0
    """Labelled units on which people differ: these count as the mean of their labels."""
    between_people: float = 0.0
    """The share of the labels' variance that lies between people: it stays where every unit is labelled."""
    reason: str | None = None

    @property
    def suffix(self) -> str:
        """Ends the code's name where the row is of a label, or the mean of a scale."""
        return suffix(self.label, is_mean=self.is_mean)


Figure = Literal["rate", "mean", "kappa of the judge and people", "kappa of people"]
"""What of a code has an interval."""


class Need(Model):
    """What one figure needs: its interval of `n` units is from `low` to `high`, and by `units` ± `target`."""

    codebook: str
    code: str
    label: str | None = None
    """Of more than two labels the one whose share it is."""
    figure: Figure
    judge: str | None = None
    value: float | None
    low: float | None
    high: float | None
    target: float
    """On the figure's own scale: of a mean, that of the labels."""
    n: int
    """Units with labels of people; for their kappa, of two of them."""
    units: int | None
    n_units: int
    """Units that there are."""
    reason: str | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def more(self) -> int | None:
        """How many units are left to label."""
        return None if self.units is None else max(0, self.units - self.n)


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
