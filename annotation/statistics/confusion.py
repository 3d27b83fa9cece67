"""How a judge errs against people: confusion by class, and calibration where it gives probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .estimate import LEAST, UNIT, mean, ratio
from .intervals import Floats, Ints, cluster_bootstrap, interval_around
from .strata import shares

RESAMPLES = 4000
_DRAWS = 400
NONE_SEEN = "no exception was seen: the middle of what the labels allow"
"""Of a share that is 1 or 0 in a weighted sample, where each unit that it lacks would stand for many."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Share:
    """A proportion of what `n` units show, with its 95 % interval."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class ClassQuality:
    """One label against all others: of the human's, how many the judge found, and the reverse."""

    label: str
    sensitivity: Share
    specificity: Share
    ppv: Share
    npv: Share


@dataclass(frozen=True, eq=False)
class Confusion:
    """`counts` (q, q) of units by human label (rows) and judge label (columns); `weighted` by 1/π.

    A unit that people label differently counts in part for each of their labels.
    """

    labels: tuple[str, ...]
    counts: Floats
    weighted: Floats
    classes: tuple[ClassQuality, ...]


@dataclass(frozen=True)
class Bin:
    """Units whose probability lies in (low, high]; the first bin takes 0 too."""

    low: float
    high: float
    n: int
    predicted: float | None
    observed: float | None


@dataclass(frozen=True)
class Calibration:
    """Expected calibration error, Brier score and the bins behind; None with a reason without units.

    `ece_by_chance` is what the error would be on average if every probability were right: 0 only of units
    without end. The Brier score has a 95 % interval; the error, which is biased, has that yardstick instead.
    """

    ece: float | None
    brier: float | None
    bins: tuple[Bin, ...]
    n: int
    reason: str | None = None
    ece_by_chance: float | None = None
    brier_low: float | None = None
    brier_high: float | None = None


def confusion(
    judge: Ints,
    human: Ints | Floats,
    labels: Sequence[str],
    weights: Floats | None = None,
    clusters: Ints | None = None,
    corpus: Floats | None = None,
    *,
    typical: Floats | None = None,
    from_sample: bool = True,
) -> Confusion:
    """Compare a judge's label indices (n,) with people's where both are usable (not negative).

    `human` is (n,) indices or (n, q) shares of people's labels, rows of 0 where there is none. `clusters`
    (n,) name what units have in common, their trajectory or instance. On a sample that looked at the judge
    (stratified by its label) sensitivity and specificity are wrong without `weights` (n,) 1/π; the predictive
    values are not.

    Intervals are those of the estimator core. With weights the sample knows little of the judge's misses,
    each of which stands for many: all four are then quotients of sums of W_j·θ_jk over judge labels j, the
    share θ_jk of people's label k in each having the posterior of `strata`. Where the sample has no exception
    the median of that is given, not a 1.000; where people checked no unit of a judge label that a quotient
    needs, it is undefined. W_j is how many units of the `corpus` (q,) the judge gave label j, itself a draw
    of a larger one, of clusters where it has those (clusters, q); without it the sum of the weights, as if
    the sample had taken fixed numbers of each. `typical` (q,) are the `typical_weights` of these units,
    for `strata.shares`: where one is above all weights, the sample lacks the heavier units and is uneven.

    Units that are not `from_sample` may have been chosen by the judge's label: whoever labels nothing but
    what it called positive makes any judge's sensitivity 1. So what needs a label of the corpus of which
    people checked no unit is undefined there, as with weights. These are those of all units, labelled or not:
    what is not labelled yet may be the other stratum.
    """
    q = len(labels)
    votes = _votes(human, q)
    usable = (judge >= 0) & (votes.sum(1) > 0)
    if not usable.any():
        nothing = Share(None, None, None, 0, "no unit labelled by both")
        classes = tuple(ClassQuality(name, nothing, nothing, nothing, nothing) for name in labels)
        return Confusion(tuple(labels), np.zeros((q, q)), np.zeros((q, q)), classes)
    is_even_design = weights is None or _is_even(weights, typical)
    judge, votes = judge[usable], votes[usable]
    within = None if clusters is None else clusters[usable]
    unit_weights = np.ones(len(judge)) if weights is None else weights[usable]
    even = weights is None or _is_even(unit_weights, None if typical is None else typical[judge])
    judgments = np.eye(q)[judge]
    corpus_counts = (judgments * unit_weights[:, None]).sum(0) if corpus is None else corpus
    totals = np.atleast_2d(corpus_counts).sum(0)
    checked = np.unique(judge)
    all_needed = corpus is not None and not (is_even_design and from_sample)
    judge_labels = np.union1d(checked, np.flatnonzero(totals)) if all_needed else checked
    rows = []
    for k, name in enumerate(labels):
        if even or len(judge_labels) == 1 or k not in judge_labels:  # never says it, or never anything else
            own = _quality(name, judgments[:, k], votes[:, k], within, None if even else unit_weights)
        else:
            own = _weighted_quality(name, k, judge, votes[:, k], unit_weights, within, corpus_counts, typical)
        rows.append(_where_checked(own, labels, k, judge_labels, checked))
    return Confusion(
        tuple(labels), votes.T @ judgments, (votes * unit_weights[:, None]).T @ judgments, tuple(rows)
    )


def calibration(
    probability: Floats,
    outcome: Ints,
    *,
    bins: int = 10,
    weights: Floats | None = None,
    clusters: Ints | None = None,
) -> Calibration:
    """How far a judge's probabilities (n,) of 1 are from the human 0/1 outcomes (n,), in equal-width bins.

    ECE is the weighted mean of |observed − predicted| over bins (Naeini et al. 2015), Brier the mean squared
    error. ECE is biased upwards in small samples, the more so the more bins: read it beside `ece_by_chance`,
    the mean over outcomes drawn with these probabilities. `clusters` (n,) name what units
    have in common: the Brier score's interval, that of the estimator core, rests on them.
    """
    if not np.all((probability >= 0) & (probability <= 1)):
        raise ValueError("`probability` must lie in 0..1")
    n = len(probability)
    if n == 0:
        return Calibration(None, None, (), 0, "no unit with a probability and a human label")
    weights = np.ones(n) if weights is None else weights
    edges = np.linspace(0, 1, bins + 1)
    of_unit = np.clip(np.searchsorted(edges, probability, side="left") - 1, 0, bins - 1)
    mass = _sums(of_unit, weights, bins)
    is_filled = mass > 0
    predicted = _ratio(_sums(of_unit, weights * probability, bins), mass)
    observed = _ratio(_sums(of_unit, weights * outcome, bins), mass)
    numbers = np.bincount(of_unit, minlength=bins)
    rows = [
        Bin(float(low), float(high), int(k), float(p) if k else None, float(o) if k else None)
        for low, high, k, p, o in zip(edges, edges[1:], numbers, predicted, observed, strict=False)
    ]
    gap = np.abs(observed - predicted)[is_filled]
    ece = float(mass[is_filled] @ gap / weights.sum())
    brier = mean((probability - outcome) ** 2, weights=weights, clusters=clusters, bounds=UNIT)
    outcomes = np.random.default_rng(0).random((_DRAWS, n)) < probability
    shares = (weights * (outcomes - probability)) @ np.eye(bins)[of_unit]
    return Calibration(
        ece,
        brier.value,
        tuple(rows),
        n,
        ece_by_chance=float(np.abs(shares).sum(1).mean() / weights.sum()),
        brier_low=brier.low,
        brier_high=brier.high,
    )


def _is_even(weights: Floats, typical: Floats | None) -> bool:
    """Whether units have one weight, and stand for none that are heavier than they."""
    heaviest = weights.max()
    is_alike = float(heaviest - weights.min()) < 1e-9
    return is_alike and (typical is None or bool((typical < heaviest * (1 + 1e-9)).all()))


def _votes(human: Ints | Floats, q: int) -> Floats:
    if human.ndim == 2:
        return human.astype(np.float64)
    votes = np.zeros((len(human), q))
    usable = human >= 0
    votes[usable, human[usable].astype(np.int64)] = 1
    return votes


def _quality(
    label: str, yes: Floats, true: Floats, clusters: Ints | None, weights: Floats | None = None
) -> ClassQuality:
    pairs = ((yes, true), (1 - yes, 1 - true), (true, yes), (1 - true, 1 - yes))
    rows = (_share(*pair, clusters, why, weights) for pair, why in zip(pairs, _none(label), strict=True))
    return ClassQuality(label, *rows)


def _none(label: str) -> tuple[str, str, str, str]:
    return (
        f"no human label {label!r}",
        f"no human label other than {label!r}",
        f"no judge label {label!r}",
        f"no judge label other than {label!r}",
    )


def _share(
    of: Floats, among: Floats, clusters: Ints | None, reason: str, weights: Floats | None = None
) -> Share:
    if not among.any():
        return Share(None, None, None, 0, reason)
    estimate = ratio(of * among, among, weights=weights, clusters=clusters, bounds=UNIT)
    return Share(estimate.value, estimate.low, estimate.high, int((among > 0).sum()), estimate.reason)


def _weighted_quality(
    label: str,
    k: int,
    judge: Ints,
    true: Floats,
    weights: Floats,
    clusters: Ints | None,
    corpus: Floats,
    typical: Floats | None,
) -> ClassQuality:
    rng = np.random.default_rng(0)
    strata, of_unit = np.unique(judge, return_inverse=True)
    sizes = np.atleast_2d(corpus).sum(0)[strata]
    usual = None if typical is None else typical[strata]
    result = shares(true, weights, of_unit, clusters, sizes / sizes.sum(), typical=usual)
    if corpus.ndim == 2 and len(corpus) > 1:
        draws = cluster_bootstrap(corpus[:, strata], RESAMPLES, rng).T
    else:
        draws = rng.standard_gamma(sizes[:, None], size=(len(sizes), RESAMPLES))
    units = np.column_stack([sizes, draws])
    present = units * np.column_stack([result.means, result.draws(RESAMPLES, rng)])
    absent, ours, theirs = units - present, strata == k, strata != k
    sums = (
        (present[ours], present, true > 0),
        (absent[theirs], absent, true < 1),
        (present[ours], (present + absent)[ours], judge == k),
        (absent[theirs], (present + absent)[theirs], judge != k),
    )
    rows = [_share_of_draws(*terms, reason) for terms, reason in zip(sums, _none(label), strict=True)]
    if clusters is not None and (few := len(np.unique(clusters))) < LEAST:
        why = f"too few for an interval: {few} independent, {LEAST} needed"
        rows = [replace(row, low=None, high=None, reason=row.reason or why) for row in rows]
    return ClassQuality(label, *rows)


def _where_checked(
    quality: ClassQuality, labels: Sequence[str], k: int, judge_labels: Ints, checked: Ints
) -> ClassQuality:
    """The same, undefined where it needs units of a judge label of which people checked none."""
    ours = judge_labels == k
    both = judge_labels if ours.any() else judge_labels[:0]  # what it never says it never finds
    rows = []
    for share, requirement in zip(
        (quality.sensitivity, quality.specificity, quality.ppv, quality.npv),
        (both, both, judge_labels[ours], judge_labels[~ours]),
        strict=True,
    ):
        if len(lacking := np.setdiff1d(requirement, checked)):
            reason = f"no human label among the units that the judge labelled {labels[lacking[0]]!r}"
            share = Share(None, None, None, share.n, reason)
        rows.append(share)
    return ClassQuality(quality.label, *rows)


def _share_of_draws(numerator: Floats, denominator: Floats, among: Bools, reason: str) -> Share:
    """A ratio (strata, 1 + draws) of sums over strata; the first column is the sample itself."""
    total, n = denominator.sum(0), int(among.sum())
    if not n or total[0] <= 0:
        return Share(None, None, None, 0, reason)
    with np.errstate(invalid="ignore"):  # a draw may hold none of a judge label that few clusters have
        values = np.clip(numerator.sum(0) / total, 0, 1)
    low, high, why, _ = interval_around(float(values[0]), values[1:])
    if values[0] in (0, 1):
        return Share(float(np.nanmedian(values[1:])), low, high, n, NONE_SEEN)
    return Share(float(values[0]), low, high, n, why)


def _sums(index: Ints, weights: Floats, size: int) -> Floats:
    return np.bincount(index, weights=weights, minlength=size).astype(np.float64)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.full_like(denominator, np.nan), where=denominator > 0)
