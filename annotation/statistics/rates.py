"""How common a code is in a corpus that a judge rated whole and people rated in part.

The judge's own rate holds the truth anywhere between never and nearly always, so once people have labelled it
is never shown alone. What is estimated is the share of the N units that these people would label 1: not
truth, and not a population beyond the corpus. Within a stratum of the judge's labels every estimator that
corrects the judge is the same mean; they differ in what they assume of the sampling, and in their intervals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...schemas.text import count_of
from .audit import ERROR, UNCLEAR, Audit
from .estimators import ESTIMATORS, Estimate

RESAMPLES = 4000
"""Draws behind an interval."""


@dataclass(frozen=True)
class Rate:
    """`rate` with its 95 % interval, None with a `reason`; `judge_rate` is the judge's own, uncorrected.

    `n_human` counts usable human labels, `n_unclear` human answers left out as unclear; counting those all as
    absent or all as present would give `rate_if_unclear_absent` and `rate_if_unclear_present`. `n_skipped`
    counts units that people were asked about and gave no answer to; `n_judged` the judge's usable answers
    among `n_units`.
    """

    estimator: str
    design: str
    judge_rate: float | None
    rate: float | None
    low: float | None
    high: float | None
    n_units: int
    n_human: int
    n_judged: int
    n_unclear: int
    n_skipped: int
    rate_if_unclear_absent: float | None
    rate_if_unclear_present: float | None
    reason: str | None = None


def rate(audit: Audit, estimator: str | None = None, *, resamples: int = RESAMPLES, seed: int = 0) -> Rate:
    """The share of units with the code, by the named estimator or the one that the design calls for."""
    default, why = choose(audit)
    name = estimator or default
    if name not in ESTIMATORS:
        raise ValueError(f"unknown estimator {name!r}, expected one of {', '.join(ESTIMATORS)}")
    estimate = ESTIMATORS[name]
    value, interval = estimate(audit, resamples, seed)
    unclear = audit.human == UNCLEAR
    either = [
        estimate(replace(audit, human=np.where(unclear, label, audit.human)), 2, seed)[0] for label in (0, 1)
    ]
    design = why if name == default else f"asked for; {default} fits: {why}"
    if name in ("post_stratified", "difference"):
        design += unanswered(audit, (value, interval))
    judged_count = 0 if audit.judge is None else int((audit.judge >= 0).sum())
    return Rate(
        estimator=name,
        design=design,
        judge_rate=_judge_rate(audit),
        rate=value,
        low=interval.low,
        high=interval.high,
        n_units=len(audit.human),
        n_human=int(audit.labelled.sum()),
        n_judged=judged_count,
        n_unclear=int(unclear.sum()),
        n_skipped=int((audit.human == ERROR).sum()),
        rate_if_unclear_absent=either[0],
        rate_if_unclear_present=either[1],
        reason=interval.reason,
    )


def _judge_rate(audit: Audit) -> float | None:
    """The judge's own rate, on a scale its mean; None without a usable answer."""
    if audit.judge is None or not (audit.judge >= 0).any():
        return None
    numbers = audit.predicted if audit.on_scale else audit.judge == 1
    return float(numbers[audit.judge >= 0].mean())


def unanswered(audit: Audit, estimate: Estimate) -> str:
    """What an estimate assumes of the units that neither the judge answered nor people labelled, in words."""
    value, interval = estimate
    number = int(audit.unchecked.sum())
    if value is None or not number:
        return ""
    units = count_of(number, "unit", "units")
    words = f"; {units} without an answer of the judge and without a label taken to be like the others"
    return words if interval.low is None else f"{words}, and in the interval to be anything"


def choose(audit: Audit) -> tuple[str, str]:
    """The estimator that the design calls for, and the design in words."""
    if not audit.labelled.any():
        return "judge_only", "no human label: only what the judge says"
    if audit.clustered:
        name = "hajek" if audit.judge is None else "difference"
        return name, "units within trajectories: cluster variance"
    if not audit.even_within_strata:
        name = "hajek" if audit.judge is None else "difference"
        return name, "unequal inclusion: weighted by 1/π"
    if audit.judge is None and audit.stratified:
        return "hajek", "a stratified sample: variance within its strata"
    if audit.judge is None:
        return "human_only", "no judge: human labels of an even sample"
    if audit.groups is not None:
        return "difference", "inclusion even within groups of the judge's labels, units independent"
    return "post_stratified", "inclusion even within the judge's labels, units independent"
