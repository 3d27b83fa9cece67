"""Estimators of a code's rate: each takes an audit and returns the rate with its interval, or why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from .audit import ERROR, Audit
from .intervals import MISSING, Floats, Interval, Ints, interval_around, student
from .strata import Shares, shares, typical_weights

Estimate = tuple[float | None, Interval]
_ROUNDING = 1e-9  # of a share


def post_stratified(audit: Audit, resamples: int, seed: int) -> Estimate:
    """Σ W_h·p_h over the judge's labels h, with the Jeffreys predictive interval of the finite corpus.

    In each stratum θ ~ Beta(y+½, n−y+½), and the N_h − n_h unlabelled units are Binomial(θ). For a judge with
    two labels this is PPI++ with its optimal λ: Q·PPV + (1−Q)·FOR. Labels that are means of several people's
    have the n of `shares`, and do not settle what their units add to the corpus. Wants units drawn evenly
    within the judge's labels; of units within trajectories it has no interval.
    """
    if (unchecked := audit.unchecked).any():
        return with_unanswered(
            post_stratified(audit.where(~unchecked), resamples, seed), float(unchecked.mean())
        )
    if audit.empty_stratum:
        return None, Interval(None, None, audit.empty_stratum)
    if not audit.even_within_strata:
        return None, Interval(None, None, "units were drawn unevenly: `difference` or `hajek` weighs them")
    rng = np.random.default_rng(seed)
    labels, (_, share, of_unit) = audit.labels, _strata(audit)
    n = len(audit.human)
    sums = shares(
        labels,
        np.ones(len(labels)),
        of_unit,
        None,
        share,
        on_scale=audit.on_scale,
        open_variance=audit.open_variance,
    )
    unknown = np.rint(share * n).astype(np.int64) - sums.counts
    theta = sums.draws(resamples, rng)
    if audit.divided or audit.is_open or audit.on_scale:
        draws = _unseen(audit, sums, share, theta)
    else:
        draws = (labels.sum() + rng.binomial(unknown[:, None], theta).sum(0)) / n
    value = float(share @ sums.means)
    return value, _independent(audit) or _bounded_interval(audit, interval_around(value, draws))


def human_only(audit: Audit, resamples: int, seed: int) -> Estimate:
    """The human labels alone, with the Jeffreys predictive interval of the finite corpus."""
    return post_stratified(replace(audit, judge=None), resamples, seed)


def difference(audit: Audit, resamples: int, seed: int) -> Estimate:
    """(Σ ŷ + Σ_s w(y − ŷ))/N with ŷ the weighted mean of the judge's label: Σ W_h·ȳ_h (Särndal et al. 1992).

    The interval is that of `shares`; deviations shrink by √(1 − n_h/N_h), of n_h even units by Kish. Where h
    are groups of a judge's labels the prior is that of `_spread_prior`.
    """
    if (unchecked := audit.unchecked).any():
        return with_unanswered(difference(audit.where(~unchecked), resamples, seed), float(unchecked.mean()))
    if audit.empty_stratum:
        return None, Interval(None, None, audit.empty_stratum)
    _, share, of_unit = _strata(audit)
    typical = _typical(audit, audit.strata)
    sums = shares(
        audit.labels,
        audit.weights,
        of_unit,
        _clusters(audit),
        share,
        1.0 if audit.groups is None else _spread_prior(of_unit, len(share)),
        every=_every(audit),
        typical=typical,
        on_scale=audit.on_scale,
        open_variance=audit.open_variance,
    )
    return _stratified_estimate(audit, sums, share, resamples, seed)


def hajek(audit: Audit, resamples: int, seed: int) -> Estimate:
    """Σ W_h·ȳ_h of the human labels alone; Σwy/Σw where the design has no strata h.

    It took fixed numbers of each, and all their units are known, so that W_h = N_h/N.

    The prior is that of `_spread_prior`.
    """
    alone = replace(audit, judge=None)
    if not audit.stratified:
        return difference(alone, resamples, seed)
    labels, (strata, weights) = alone.labels, alone.sized_strata
    sizes, of_unit = np.bincount(strata), strata[audit.labelled]
    share = sizes / sizes.sum()
    prior = _spread_prior(of_unit, len(sizes))
    typical = _typical(alone, strata)
    sums = shares(
        labels,
        weights,
        of_unit,
        _clusters(alone),
        share,
        prior,
        every=_every(alone),
        typical=typical,
        on_scale=audit.on_scale,
        open_variance=audit.open_variance,
    )
    return _stratified_estimate(audit, sums, share, resamples, seed)


def _stratified_estimate(audit: Audit, sums: Shares, share: Floats, resamples: int, seed: int) -> Estimate:
    """Σ W_h·ȳ_h with its interval. Where a stratum shows none of a label it may well have none, and half a
    label is no evidence of one: the lower end takes it at 0, and the upper one at 1 where it shows no other.
    """
    theta = sums.draws(resamples, np.random.default_rng(seed))
    value = float(share @ sums.means)
    least = np.where(sums.means[:, None] == 0, 0.0, theta)
    most = np.where(sums.means[:, None] == 1, 1.0, theta)
    low, high = (interval_around(value, _unseen(audit, sums, share, draws)) for draws in (least, most))
    return value, _bounded_interval(audit, Interval(low.low, high.high, low.reason, low.undefined_resamples))


def with_unanswered(rest: Estimate, share: float) -> Estimate:
    """The estimate of all units from the rest's, where a `share` has no answer of the judge and no label.

    It counts as the rest does, and the interval allows for none or all of it to have the code.
    """
    value, (low, high, reason, undefined) = rest
    if low is None or high is None:
        return rest
    return value, Interval((1 - share) * low, (1 - share) * high + share, reason, undefined)


def judge_only(audit: Audit, resamples: int, seed: int) -> Estimate:
    """No corrected rate: how often the judge errs is unknown."""
    return None, Interval(None, None, f"no human label tells how often the judge errs{_failures(audit)}")


def _failures(audit: Audit) -> str:
    """On how many units the judge failed, in words, with the rates of its own that these could make: whether
    it fails may depend on what it sees, as where only a finding has to quote."""
    if audit.judge is None or not (failures := int((audit.judge == ERROR).sum())):
        return ""
    answers, units = int((audit.judge >= 0).sum()), int((audit.judge != MISSING).sum())
    words = f"; it failed on {failures} of {units}"
    if audit.on_scale or not answers:
        return words
    positives, number = int((audit.judge == 1).sum()), failures + answers
    ends = positives / number, (positives + failures) / number
    return f"{words}: its rate is {ends[0]:.3f} if none of these has it, {ends[1]:.3f} if all have it"


def ppi(audit: Audit, resamples: int, seed: int) -> Estimate:
    """PPI++ with the optimal λ (Angelopoulos et al. 2023) and its normal interval, for comparison.

    ȳ − λ(f̄ − f̄_N), f being the judge's score or else its 0/1 label, λ the slope of y on f. Unlike `ppi_py` it
    takes the human sample as a part of the corpus and corrects for the finite corpus. The interval is too
    short for rare codes: prefer `post_stratified`. Wants independent units drawn evenly, and has no interval
    where the labels leave no residual, such as without a positive one.
    """
    if audit.judge is None and audit.score is None:
        return None, Interval(None, None, "ppi needs a judge")
    chances = audit.drawn_with
    if audit.clustered or (chances is not None and len(chances) and np.ptp(chances) > 1e-9):
        return None, Interval(None, None, "ppi needs independent units drawn with equal probability")
    labelled, total = audit.labelled, len(audit.human)
    n = int(labelled.sum())
    if n < 3:
        return None, Interval(None, None, f"ppi needs three human labels, got {n}")
    score = audit.predicted
    y, f = audit.labels, score[labelled]
    spread = float(f.var())
    slope = float(np.mean((y - y.mean()) * (f - f.mean()))) / spread if spread else 0.0
    residuals = y - slope * f
    value = min(1.0, max(0.0, float(residuals.mean() + slope * score.mean())))
    if n < total and float(residuals.var()) < 1e-12:
        return value, Interval(None, None, "ppi has no interval where the judge fits every label seen")
    variance = float(residuals.var(ddof=2)) / n
    open_part = min(1.0, float(audit.open_variance.sum()) / n**2 / variance) if variance else 0.0
    half = student(n - 2) * sqrt(variance * (1 - n / total * (1 - open_part)))
    return value, Interval(max(0.0, value - half), min(1.0, value + half))


def rogan_gladen(audit: Audit, resamples: int, seed: int) -> Estimate:
    """(Q + Sp − 1)/(Se + Sp − 1) from the judge's rate Q, weighted sensitivity and specificity (1978).

    An unclear or failed judgment counts as not positive in all three. The interval draws Se and Sp from their
    Jeffreys posteriors at Kish's effective sizes; units within trajectories have none. Sound while Se and
    Sp hold wherever Q was measured.
    """
    if audit.judge is None:
        return None, Interval(None, None, "rogan_gladen needs a judge")
    if audit.on_scale:
        return None, Interval(None, None, "rogan_gladen is of shares: a scale has no sensitivity")
    labels, flagged = audit.labels, audit.judge[audit.labelled] == 1
    if not (labels > 0).any() or not (labels < 1).any():
        return None, Interval(None, None, "rogan_gladen needs human labels of both kinds")
    rng = np.random.default_rng(seed)
    judge_rate = float((audit.judge == 1).mean())
    correct, posteriors = [], []
    for truth, right in ((1 - labels, ~flagged), (labels, flagged)):
        weights = audit.weights * truth
        share = float(weights @ right / weights.sum())
        size = weights.sum() ** 2 / (weights**2).sum()
        correct.append(share)
        posteriors.append(rng.beta(share * size + 0.5, (1 - share) * size + 0.5, resamples))
    if sum(correct) <= 1 + _ROUNDING:
        return None, Interval(None, None, "the judge is no better than chance: Se + Sp ≤ 1")
    value = min(1.0, max(0.0, (judge_rate + correct[0] - 1) / (sum(correct) - 1)))
    informed = posteriors[0] + posteriors[1] > 1
    draws = np.full(resamples, np.nan)
    draws[informed] = (judge_rate + posteriors[0] - 1)[informed] / (posteriors[0] + posteriors[1] - 1)[
        informed
    ]
    return value, _independent(audit) or interval_around(value, np.clip(draws, 0, 1))


def _independent(audit: Audit) -> Interval | None:
    """No interval, where one that supposes independent units would be too narrow."""
    if not audit.clustered:
        return None
    reason = "no interval: it would suppose that units of a trajectory are independent; `difference` does not"
    return Interval(None, None, reason)


def _unseen(audit: Audit, result: Shares, share: Floats, theta: Floats) -> Floats:
    """(resamples,) rates from draws (G, resamples) of strata's shares, closer by what is known of them.

    The variance of a sample without replacement is Σ(1 − π)/π²·r² over its units, of Σr²/π² with: less by
    Σ(1/π)/Σ(1/π²), which is n/N where π is even, and Kish's number over N. Units that were drawn for certain
    know themselves, not the others. What of it is between people stays: of a unit that is drawn, too, others
    might have said something else."""
    even = result.even
    part = (1 - result.between) * even / np.maximum(np.rint(share * len(audit.human)), even)
    shrinkage = np.sqrt(1 - part) * np.ones(len(share))
    rates: Floats = share @ (result.means[:, None] + shrinkage[:, None] * (theta - result.means[:, None]))
    return rates


def _bounded_interval(audit: Audit, interval: Interval) -> Interval:
    """The interval down to what is known where one positive label at most was seen, up where one other was.

    A single find in a sample that may well hold none says little of how rare a code is: Jeffreys' lower end
    is above the truth too often there, and Brown, Cai and DasGupta (2001) put it to 0.
    """
    low, high, reason, undefined = interval
    labels, n = audit.labels, len(audit.human)
    if low is not None and labels.sum() <= 1:
        low = min(low, float(labels.sum()) / n)
    if high is not None and (1 - labels).sum() <= 1:
        high = max(high, 1 - float((1 - labels).sum()) / n)
    return Interval(low, high, reason, undefined)


def _strata(audit: Audit) -> tuple[Ints, Floats, Ints]:
    """The judge's labels, their shares of the corpus, and the index of each labelled unit's."""
    strata, index, sizes = np.unique(audit.strata, return_inverse=True, return_counts=True)
    return strata, sizes / len(index), index[audit.labelled]


def _spread_prior(of_unit: Ints, size: int) -> Floats:
    """(size,) two priors of ½ and ½ spread over strata by their labels (labelled,), one in each at the most:
    that in each would outweigh the data where there are many."""
    prior: Floats = np.minimum(1.0, 2 * np.bincount(of_unit, minlength=size) / len(of_unit))
    return prior


def _typical(audit: Audit, strata: Ints) -> Floats | None:
    """(G,) the usual weights of all units of each stratum whose π is known, drawn or not."""
    if audit.inclusion is None:
        return None
    names, index = np.unique(strata, return_inverse=True)
    return typical_weights(audit.inclusion, index, audit.labelled, len(names))


def _clusters(audit: Audit) -> Ints | None:
    return audit.clusters[audit.labelled] if audit.clusters is not None and audit.clustered else None


def _every(audit: Audit) -> int | None:
    """How many trajectories the corpus has, labelled or not."""
    return None if audit.clusters is None else len(np.unique(audit.clusters))


ESTIMATORS: dict[str, Callable[[Audit, int, int], Estimate]] = {
    "post_stratified": post_stratified,
    "difference": difference,
    "hajek": hajek,
    "ppi": ppi,
    "rogan_gladen": rogan_gladen,
    "human_only": human_only,
    "judge_only": judge_only,
}
