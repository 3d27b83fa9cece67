"""Estimators of a code's rate: each takes an audit and returns the rate with its interval, or why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from .audit import Audit
from .intervals import Floats, Interval, Ints, Z, around, student

Estimate = tuple[float | None, Interval]


def post_stratified(audit: Audit, resamples: int, seed: int) -> Estimate:
    """Σ W_h·p_h over the judge's labels h, with the Jeffreys predictive interval of the finite corpus.

    In each stratum θ ~ Beta(y+½, n−y+½), and the N_h − n_h unlabelled units are Binomial(θ). For a judge with
    two labels this is PPI++ with its optimal λ: Q·PPV + (1−Q)·FOR.
    """
    if audit.empty_stratum:
        return None, Interval(None, None, audit.empty_stratum)
    rng = np.random.default_rng(seed)
    total, draws = 0.0, np.zeros(resamples)
    for stratum in np.unique(audit.strata):
        units = audit.strata == stratum
        labels = audit.human[units & audit.labelled]
        unknown = int(units.sum()) - len(labels)
        present = int(labels.sum())
        theta = rng.beta(present + 0.5, len(labels) - present + 0.5, resamples)
        draws += present + rng.binomial(unknown, theta)
        total += units.sum() * present / len(labels)
    n = len(audit.human)
    value = float(total / n)
    return value, around(value, draws / n)


def human_only(audit: Audit, resamples: int, seed: int) -> Estimate:
    """The human labels alone, with the Jeffreys predictive interval of the finite corpus."""
    return post_stratified(replace(audit, judge=None), resamples, seed)


def difference(audit: Audit, resamples: int, seed: int) -> Estimate:
    """(Σ ŷ + Σ_s w(y − ŷ))/N with ŷ the weighted mean of the judge's label: Σ W_h·ȳ_h (Särndal et al. 1992).

    Each ȳ_h has a Beta posterior on its effective sample size, divided by the design effect of trajectories
    on the residuals and by the ratio of t to normal tails for few trajectories. Deviations shrink by
    √(1 − n_h/N_h). A Wald interval instead would be empty where the sample shows no judge's error.
    """
    if audit.empty_stratum:
        return None, Interval(None, None, audit.empty_stratum)
    rng = np.random.default_rng(seed)
    labels, weights = audit.human[audit.labelled], audit.weights
    strata, share, of_unit = _strata(audit)
    sums = np.bincount(of_unit, weights=weights)
    means = np.bincount(of_unit, weights=weights * labels) / sums
    calibrated = weights * (share / sums)[of_unit]  # sums to each stratum's share of the corpus
    effect = _design_effect(calibrated * (labels - means[of_unit]), _clusters(audit))
    draws = np.zeros(resamples)
    for stratum in range(len(strata)):
        own = weights[of_unit == stratum]
        size = _effective_size(own, labels[of_unit == stratum], means[stratum]) / effect
        theta = rng.beta(means[stratum] * size + 0.5, (1 - means[stratum]) * size + 0.5, resamples)
        unseen = sqrt(1 - len(own) / (audit.strata == strata[stratum]).sum())
        draws += share[stratum] * (means[stratum] + unseen * (theta - means[stratum]))
    value = float(share @ means)
    return value, around(value, draws)


def hajek(audit: Audit, resamples: int, seed: int) -> Estimate:
    """Σwy/Σw of the human labels alone, with the interval of `difference` for a single stratum."""
    return difference(replace(audit, judge=None), resamples, seed)


def judge_only(audit: Audit, resamples: int, seed: int) -> Estimate:
    """No corrected rate: how often the judge errs is unknown."""
    return None, Interval(None, None, "no human label tells how often the judge errs")


def ppi(audit: Audit, resamples: int, seed: int) -> Estimate:
    """PPI++ with the optimal λ (Angelopoulos et al. 2023) and its normal interval, for comparison.

    ȳ − λ(f̄ − f̄_N), f being the judge's score or else its 0/1 label, λ the slope of y on f. Unlike `ppi_py` it
    takes the human sample as a part of the corpus and corrects for the finite corpus. The interval is too
    short for rare codes: prefer `post_stratified`. Wants independent units drawn evenly.
    """
    if audit.judge is None and audit.score is None:
        return None, Interval(None, None, "ppi needs a judge")
    drawn = audit.drawn_with
    if audit.clustered or (drawn is not None and len(drawn) and np.ptp(drawn) > 1e-9):
        return None, Interval(None, None, "ppi needs independent units drawn with equal probability")
    labelled, total = audit.labelled, len(audit.human)
    n = int(labelled.sum())
    if n < 3:
        return None, Interval(None, None, f"ppi needs three human labels, got {n}")
    score = (audit.strata == 1).astype(np.float64) if audit.score is None else audit.score
    y, f = audit.human[labelled].astype(np.float64), score[labelled]
    spread = float(f.var())
    slope = float(np.mean((y - y.mean()) * (f - f.mean()))) / spread if spread else 0.0
    residuals = y - slope * f
    value = float(residuals.mean() + slope * score.mean())
    half = student(n - 2) * sqrt(float(residuals.var(ddof=2)) / n * (1 - n / total))
    return value, Interval(value - half, value + half)


def rogan_gladen(audit: Audit, resamples: int, seed: int) -> Estimate:
    """(Q + Sp − 1)/(Se + Sp − 1) from the judge's rate Q, weighted sensitivity and specificity (1978).

    An unclear or failed judgment counts as not positive in all three. The interval draws Se and Sp from their
    Jeffreys posteriors at Kish's effective sizes. Sound only while Se and Sp hold wherever Q was measured.
    """
    if audit.judge is None:
        return None, Interval(None, None, "rogan_gladen needs a judge")
    labels, flagged = audit.human[audit.labelled], audit.judge[audit.labelled] == 1
    if len(np.unique(labels)) < 2:
        return None, Interval(None, None, "rogan_gladen needs human labels of both kinds")
    rng = np.random.default_rng(seed)
    measured = float((audit.judge == 1).mean())
    correct, drawn = [], []
    for label in (0, 1):
        weights, right = audit.weights[labels == label], (flagged == label)[labels == label]
        share = float(weights @ right / weights.sum())
        size = weights.sum() ** 2 / (weights**2).sum()
        correct.append(share)
        drawn.append(rng.beta(share * size + 0.5, (1 - share) * size + 0.5, resamples))
    if sum(correct) <= 1:
        return None, Interval(None, None, "the judge is no better than chance: Se + Sp ≤ 1")
    value = min(1.0, max(0.0, (measured + correct[0] - 1) / (sum(correct) - 1)))
    informed = drawn[0] + drawn[1] > 1
    draws = np.full(resamples, np.nan)
    draws[informed] = (measured + drawn[0] - 1)[informed] / (drawn[0] + drawn[1] - 1)[informed]
    return value, around(value, np.clip(draws, 0, 1))


def _strata(audit: Audit) -> tuple[Ints, Floats, Ints]:
    """The judge's labels, their shares of the corpus, and the index of each labelled unit's."""
    strata, index, sizes = np.unique(audit.strata, return_inverse=True, return_counts=True)
    return strata, sizes / len(index), index[audit.labelled]


def _clusters(audit: Audit) -> Ints | None:
    return audit.clusters[audit.labelled] if audit.clusters is not None and audit.clustered else None


def _effective_size(weights: Floats, labels: Ints, mean: float) -> float:
    """Kish's (Σw)²/Σw², or p(1 − p)/variance where that is less: the sample may lack rare heavy units."""
    kish = float(weights.sum() ** 2 / (weights**2).sum())
    squares = float(((weights * (labels - mean)) ** 2).sum())
    return min(kish, mean * (1 - mean) * float(weights.sum()) ** 2 / squares) if squares > 0 else kish


def _design_effect(residuals: Floats, clusters: Ints | None) -> float:
    """Variance of a sum of residuals by cluster over that by unit (≥ 1), times (t/z)² for few clusters."""
    if clusters is None:
        return 1.0
    _, codes = np.unique(clusters, return_inverse=True)
    n = len(np.bincount(codes))
    if n < 2:
        return float(len(residuals))
    sizes = np.bincount(codes).astype(np.float64)
    by_cluster = float((np.bincount(codes, weights=residuals) ** 2).sum()) * n / (n - 1)
    by_unit = float((residuals**2).sum())
    ratio = by_cluster / by_unit if by_unit > 0 else len(residuals) / n
    effective = sizes.sum() ** 2 / (sizes**2).sum()
    return max(1.0, ratio) * (student(max(effective - 1, 1.0)) / Z) ** 2


ESTIMATORS: dict[str, Callable[[Audit, int, int], Estimate]] = {
    "post_stratified": post_stratified,
    "difference": difference,
    "hajek": hajek,
    "ppi": ppi,
    "rogan_gladen": rogan_gladen,
    "human_only": human_only,
    "judge_only": judge_only,
}
