"""The difference of two corrected rates: a judge that errs more in one condition is no finding.

Each arm's rate is corrected by its own human labels, so the judge's sensitivity and specificity may differ
between them. Both forms are written as one value a unit whose mean is the rate and whose clusters' jackknife
is its variance, over the units that the judge saw as a sample of the condition:

* `post_stratified`: the weighted mean label f_h of the judge's label, plus N_h/Ŵ_h·w(y − f_h) where people
  labelled (Särndal, Swensson and Wretman 1992, 7.6). Without a judge h are the `Audit.sized_strata`, whatever
  the form.
* `ppi`: λf + ē, plus N/Ŵ·w(e − ē) with e = y − λf where people labelled, λ the slope of y on the judge's
  score (Angelopoulos et al. 2023).

A stratum in which people and judge never differed has no variance of its own: ⅛ of a label of either kind is
added to each. Where people labelled units of L clusters alone, what these tell of the judge's errors is a
jackknife over L of them. Student's t with Satterthwaite's degrees of freedom, L' − 1 at the most with Kish's
effective number L' = (Σm)²/Σm² of clusters of m labelled units.

Without a judge, or with one that says one thing of all units, the interval joins those of the two rates, as
of any two shares (`estimate.mover_limits`): of 30 labels and 30, none of them positive, t reaches .03 to
either side, and contained a difference of .05 and 0 in .77 of samples. A rate of yes and no from strata of
known sizes has the interval of `estimators.hajek`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .audit import ERROR, UNCLEAR, Audit
from .comparisons import LEVEL, Comparison
from .estimate import UNIT, Estimate, Moments, effective_number, mover_limits, totals, with_interval
from .estimators import hajek
from .intervals import Floats, student
from .rates import RESAMPLES

FORMS = ("post_stratified", "ppi")
_PSEUDO = 0.125  # of a label of either kind, in each stratum of the judge's labels


@dataclass(frozen=True, eq=False)
class Arm:
    """One condition: the corrected rate, how far each cluster (C,) moves it, its variance."""

    rate: float
    names: NDArray[Any]
    pull: Floats
    variance: float
    df: float
    checked: int
    """Clusters in which people labelled a unit."""
    own: Estimate
    """The rate with an interval of its own, as that of a share of labelled units alone."""
    share: float = 1.0
    """Of the condition's units, those that this is of."""

    @property
    def known_rate(self) -> float:
        """What these units are of the rate of all."""
        return self.share * self.rate

    def part(self, share: float) -> Arm:
        """The same as a `share` of a condition: it moves the rate of all by so much less."""
        return replace(self, pull=share * self.pull, variance=share**2 * self.variance, share=share)


def corrected(
    first: Audit,
    second: Audit,
    clusters: tuple[NDArray[Any], NDArray[Any]],
    *,
    form: str = "post_stratified",
) -> Comparison:
    """Compare the corrected rates of two conditions; `clusters` (N₁,), (N₂,) name the cluster of each unit.

    Clusters of the same name in both are paired. None with the reason where a judge's label has no human one.
    The few units of `Audit.unchecked` are taken to be like the others; interval and test allow that none or
    all of them have the code.
    """
    if form not in FORMS:
        raise ValueError(f"unknown form {form!r}, expected one of {', '.join(FORMS)}")
    alone = first.judge is None and second.judge is None
    test = "rates by people's labels, t" if alone else f"corrected rates ({form}), t"
    counts = int(first.labelled.sum()), int(second.labelled.sum())
    n = sum(counts)
    left_out = _open_units(first), _open_units(second)
    sides, unknown, strata = [], [], []
    for place, audit, names in zip(("first", "second"), (first, second), clusters, strict=True):
        unchecked = audit.unchecked
        audit = audit.where(~unchecked)
        why = audit.empty_stratum
        if why:
            why = f"{place} sample: {why}"
            return Comparison(
                test, None, None, None, None, None, None, n, why, sizes=counts, left_out=left_out
            )
        unknown.append(float(unchecked.mean()))
        strata.append(len(np.unique(audit.strata)))
        sides.append(arm(audit, names[~unchecked], form).part(1 - unknown[-1]))
    one, other = sides
    _, here, there = np.intersect1d(one.names, other.names, assume_unique=True, return_indices=True)
    covariance = float(one.pull[here] @ other.pull[there])
    variance = one.variance + other.variance - 2 * covariance
    least = one.known_rate - other.known_rate - unknown[1]
    most = one.known_rate + unknown[0] - other.known_rate
    reason = _too_few(one, other, variance)
    low = high = p = None
    if reason is None:
        if any(unknown):
            test += ", unanswered units either way"
        error, df = sqrt(variance), _df(one, other)
        reach = student(df) * error
        low, high = max(-1.0, least - reach), min(1.0, most + reach)
        p = _two_sided(max(least, -most, 0.0) / error, df)
        if max(strata) == 1 and not any(unknown):
            low, high = _joined_limits(one, other, covariance, p)
            reason = one.own.reason or other.own.reason
    effect = one.rate - other.rate
    unpaired = len(one.names) - len(here), len(other.names) - len(here)
    return Comparison(
        test=test,
        first=one.rate,
        second=other.rate,
        effect=effect,
        low=low,
        high=high,
        p_value=p,
        n=n,
        reason=reason,
        pairs=len(here),
        alone=unpaired,
        sizes=counts,
        left_out=left_out,
    )


def _open_units(audit: Audit) -> int:
    """The units that people were asked about and gave no label."""
    return int(np.isin(audit.human, (UNCLEAR, ERROR)).sum())


def arm(audit: Audit, names: NDArray[Any], form: str) -> Arm:
    """The corrected rate of one condition."""
    sums = totals(values(audit, form), clusters=names)
    checked = np.isin(sums.names, names[audit.labelled])
    n_checked, n_clusters = int(checked.sum()), len(sums.names)
    pull = sums.influence.copy()
    if 1 < n_checked < n_clusters:
        pull[checked] *= sqrt(n_checked / (n_checked - 1) * (n_clusters - 1) / n_clusters)
    extra, df = _smoothing_variance(audit)
    rate = float(sums.numerator.sum() / sums.denominator.sum())
    rate, between = min(1.0, max(0.0, rate)), float((pull**2).sum())
    _, of_unit = np.unique(names[audit.labelled], return_inverse=True)
    df = max(1.0, min(df, effective_number(np.bincount(of_unit, audit.weights).astype(np.float64)) - 1))
    yes_no = bool(np.isin(audit.labels, (0, 1)).all())
    own = with_interval(
        Moments(
            value=rate,
            error=sqrt(between),
            df=df,
            n=len(of_unit),
            clusters=n_checked,
            size=effective_number(audit.weights),
            yes_no=yes_no,
            plain=False,
            bounds=UNIT,
        )
    )
    if yes_no and own.low is not None and audit.judge is None and np.ptp(audit.sized_strata[0]):
        own = _of_strata(audit, names, own)
    return Arm(rate, sums.names, pull, between + extra, df, n_checked, own)


def _of_strata(audit: Audit, names: NDArray[Any], own: Estimate) -> Estimate:
    """The estimate with the interval of its rate: strata that differ tell more than as many labels of one,
    however uneven their weights."""
    clusters = np.unique(names, return_inverse=True)[1]
    low, high, reason, _ = hajek(replace(audit, clusters=clusters), RESAMPLES, 0)[1]
    return replace(own, low=low, high=high, reason=reason)


def _joined_limits(one: Arm, other: Arm, covariance: float, p: float) -> tuple[float | None, float | None]:
    """The intervals of the two rates joined; it holds 0 wherever the test shows no difference."""
    alike = covariance / sqrt(one.variance * other.variance)
    low, high = mover_limits(one.own, other.own, max(-1.0, min(1.0, alike)))
    if low is None or high is None or p < LEVEL:
        return low, high
    return min(low, 0.0), max(high, 0.0)


def values(audit: Audit, form: str) -> Floats:
    """(N,) values with the mean and, linearised, the variance of the corrected rate."""
    labelled, (group, weights) = audit.labelled, audit.sized_strata
    labels = audit.labels
    if form == "ppi" and audit.judge is not None:
        score = audit.predicted
        group = np.zeros_like(group)
        predicted = _slope(score[labelled], labels, weights) * score
    else:
        predicted = np.zeros(len(group))
    weight_sums = np.bincount(group[labelled], weights=weights)
    residual = labels - predicted[labelled]
    centre = np.bincount(group[labelled], weights=weights * residual) / weight_sums
    result: Floats = predicted + centre[group]
    expanded = (np.bincount(group) / weight_sums)[group[labelled]] * weights
    result[labelled] += expanded * (residual - centre[group[labelled]])
    return result


def _slope(score: Floats, labels: Floats, weights: Floats) -> float:
    share = weights / weights.sum()
    centred = score - share @ score
    spread = float(share @ centred**2)
    return float(share @ (centred * labels)) / spread if spread > 0 else 0.0


def _smoothing_variance(audit: Audit) -> tuple[float, float]:
    """What the added labels add to the variance, and Satterthwaite's degrees of freedom over the strata."""
    group, weights = audit.sized_strata
    of_unit, labels = group[audit.labelled], audit.labels
    weight_sums = np.bincount(of_unit, weights=weights)
    size = weight_sums**2 / np.bincount(of_unit, weights=weights**2)
    mean = np.bincount(of_unit, weights=weights * labels) / weight_sums
    # A label of 0 or 1 is its own square, and each of those on which people differ is one or the other.
    squares = np.bincount(of_unit, weights=weights * labels**2) / weight_sums if audit.on_scale else mean
    share = np.bincount(group) / len(group)
    smooth, smooth_squares = ((size * m + _PSEUDO) / (size + 2 * _PSEUDO) for m in (mean, squares))
    full = share**2 * (smooth_squares - smooth**2) / np.maximum(size - 1, 1)
    extra = np.maximum(full - share**2 * (squares - mean**2) / size, 0)
    between = float(share @ (mean - share @ mean) ** 2) / len(group)
    spread = float((full**2 / np.maximum(size - 1, 1)).sum()) + between**2 / len(group)
    return float(extra.sum()), (float(full.sum()) + between) ** 2 / spread if spread > 0 else 1.0


def _too_few(one: Arm, other: Arm, variance: float) -> str | None:
    few = [side.checked for side in (one, other) if side.checked < 4]
    if few:
        return f"too few to decide: {few[0]} independent, 4 needed"
    return None if variance > 0 else "the labels leave nothing to test"


def _df(one: Arm, other: Arm) -> float:
    return (one.variance + other.variance) ** 2 / (one.variance**2 / one.df + other.variance**2 / other.df)


def _two_sided(statistic: float, df: float) -> float:
    from scipy import special

    return 2 * float(special.stdtr(df, -abs(statistic)))
