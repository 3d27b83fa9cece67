"""May a judge stand in for an annotator, and is the new version of a judge still the old one?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from .comparisons import LEVEL, Comparison, adjusted_p_values, mcnemar
from .confusion import Bools, Share, confusion
from .estimate import mean, share
from .intervals import MISSING, Floats, Ints

_EXACT_TO = 400  # clusters that differ


@dataclass(frozen=True)
class AnnotatorComparison:
    """One annotator and the judge: how often each agrees with the others at least as well as the other."""

    annotator: str
    n: int
    judge_advantage: float
    human_advantage: float
    p_value: float
    p_adjusted: float
    judge_wins: bool


@dataclass(frozen=True)
class AlternativeAnnotatorTest:
    """`winning_rate` ω is the share of annotators the judge may replace; it passes at ½.

    `sensitivity` stands beside it because a judge that never finds a rare code passes: at prevalence .02 it
    agrees with the others almost always.
    """

    winning_rate: float | None
    passed: bool | None
    advantage: float | None
    annotators: tuple[AnnotatorComparison, ...]
    sensitivity: Share
    reason: str | None = None


@dataclass(frozen=True)
class Drift:
    """Two versions of a judge on the same units: how many labels changed, and whether the rate moved.

    `only_old` and `only_new` count units that one version alone could label. `accuracy` compares how often
    each agrees with people, where they labelled.
    """

    n: int
    only_old: int
    only_new: int
    changed: Share
    rate: Comparison
    accuracy: Comparison | None


def alternative_annotator_test(
    judge: Ints,
    humans: Ints,
    annotators: tuple[str, ...],
    *,
    positive: int,
    margin: float = 0.2,
    level: float = 0.05,
    clusters: Ints | None = None,
) -> AlternativeAnnotatorTest:
    """Calderon, Reichart and Dror (2025): leave each human out, and ask who agrees better with the rest.

    `judge` (n,) and `humans` (n, annotators) are label indices, −1 missing; `positive` is the label whose
    sensitivity is shown, against the humans' labels. On each unit that the judge, the human and another
    human labelled, a rater's score is the share of the other humans with the same label. The judge wins
    against a human if it is shown not to be worse by `margin` (.2 for experts, .1–.15 for crowds), one-sided
    and Benjamini–Yekutieli over humans. The paper's tests don't keep their level here: differences of 1, 0
    and −1 are not symmetric, so that Wilcoxon's, below 30 units, passes up to nine of ten judges at the
    margin (.1), and the paired t one in six from 30 on. In their place stands Tango's (1998) score test with
    the quantile of t; where units have `clusters` in common the variance has their design effect.
    ValueError for a margin that is not in 0..1.
    """
    if not 0 <= margin < 1:
        raise ValueError(f"`margin` must lie in 0..1, below 1, got {margin:g}")
    outcome = sensitivity(judge, humans, positive, clusters)
    usable = (humans != MISSING).any(0)
    if usable.sum() < 3:
        reason = f"the test needs three annotators, got {int(usable.sum())}"
        return AlternativeAnnotatorTest(None, None, None, (), outcome, reason)
    rows: list[tuple[str, Floats, Floats]] = []
    p_values: list[float] = []
    for column in np.flatnonzero(usable):
        units, of_judge, of_human = _scores(judge, humans, int(column))
        within = None if clusters is None else clusters[units]
        if len(of_judge if within is None else np.unique(within)) < 2:
            what = f"{'units' if within is None else 'clusters'} with the judge and another"
            reason = f"annotator {annotators[column]} shares fewer than two {what}"
            return AlternativeAnnotatorTest(None, None, None, (), outcome, reason)
        rows.append((annotators[column], of_judge, of_human))
        p_values.append(_not_worse(of_judge, of_human, margin, within))
    adjusted = adjusted_p_values(p_values, "benjamini_yekutieli")
    left_out = tuple(
        AnnotatorComparison(
            name, len(ours), float((ours >= theirs).mean()), float((theirs >= ours).mean()), p, q, q < level
        )
        for (name, ours, theirs), p, q in zip(rows, p_values, adjusted, strict=True)
    )
    omega = float(np.mean([row.judge_wins for row in left_out]))
    advantage = float(np.mean([row.judge_advantage for row in left_out]))
    return AlternativeAnnotatorTest(omega, omega >= 0.5, advantage, left_out, outcome)


def sensitivity(judge: Ints, humans: Ints, positive: int, clusters: Ints | None = None) -> Share:
    """Of what humans labelled `positive`, how much the judge found; a divided unit counts in part."""
    present, answers = (humans == positive).sum(1), (humans != MISSING).sum(1)
    votes = np.stack([answers - present, present], axis=1) / np.maximum(answers, 1)[:, None]
    result = np.where(judge == MISSING, MISSING, judge == positive)
    return confusion(result, votes, ("other", "positive"), clusters=clusters).classes[1].sensitivity


def drift(
    old: Ints, new: Ints, *, positive: int, human: Ints | None = None, clusters: Ints | None = None
) -> Drift:
    """Compare the labels (n,) of two versions of a judge on the same units; negative ones are unusable.

    The rate of `positive` and, with `human` (n,) labels, the accuracy are compared by McNemar's test, or by
    that of the sums of `clusters` (n,) where units have these in common.
    """
    both = (old >= 0) & (new >= 0)
    n = int(both.sum())
    estimate = share(
        (old != new)[both].astype(np.float64), clusters=None if clusters is None else clusters[both]
    )
    accuracy = None
    if human is not None:
        accuracy = _paired_comparison(new == human, old == human, both & (human >= 0), clusters)
    return Drift(
        n=n,
        only_old=int(((old >= 0) & (new < 0)).sum()),
        only_new=int(((new >= 0) & (old < 0)).sum()),
        changed=Share(
            estimate.value,
            estimate.low,
            estimate.high,
            n,
            "no unit labelled by both" if not n else estimate.reason,
        ),
        rate=_paired_comparison(new == positive, old == positive, both, clusters),
        accuracy=accuracy,
    )


def clustered_mcnemar(new: Floats, old: Floats, clusters: Ints) -> Comparison:
    """Two yes/no outcomes (n,) of the same units within clusters (n,): do their rates differ?

    Where they don't, each cluster's difference of sums is as likely to have either sign: the mid-p value of
    that permutation distribution, exact up to 400 clusters that differ, then normal (Obuchowski 1998). For
    clusters of one unit it is McNemar's test with mid-p.
    """
    estimate = mean(new - old, clusters=clusters, bounds=(-1.0, 1.0))
    _, codes = np.unique(clusters, return_inverse=True)
    sums = np.rint(np.bincount(codes, weights=new - old)).astype(np.int64)
    p = _sign_flips(sums[sums != 0])
    one, other = float(new.mean()), float(old.mean())
    test = "McNemar, clusters"
    return Comparison(
        test, one, other, one - other, estimate.low, estimate.high, p, len(new), estimate.reason
    )


def _sign_flips(sums: Ints) -> float:
    """The two-sided mid-p value of Σ|sums| under random signs."""
    from scipy import special

    if not len(sums):
        return 1.0
    observed = abs(int(sums.sum()))
    if len(sums) > _EXACT_TO:
        return float(2 * special.ndtr(-observed / sqrt(float((sums.astype(np.float64) ** 2).sum()))))
    chances: Floats = np.ones(1, dtype=np.float64)  # of the sum of those with a plus sign
    for size in np.abs(sums):
        chances = 0.5 * (np.pad(chances, (0, size)) + np.pad(chances, (size, 0)))
    outcomes = np.abs(2 * np.arange(len(chances)) - int(np.abs(sums).sum()))
    p = chances[outcomes > observed].sum() + chances[outcomes == observed].sum() / 2
    return min(1.0, float(p))


def _paired_comparison(new: Bools, old: Bools, units: Bools, clusters: Ints | None) -> Comparison:
    """Null where the units that differ can't decide; the interval holds 0 where no difference is shown."""
    if not units.any():
        return Comparison("McNemar", None, None, None, None, None, None, 0, "no unit labelled by both")
    first, second = new[units].astype(np.float64), old[units].astype(np.float64)
    if clusters is None:
        row, differing = mcnemar(first, second), int((first != second).sum())
        least, what = 2 * 0.5**differing, "unit" + "s" * (differing > 1)
    else:
        row = clustered_mcnemar(first, second, clusters[units])
        _, codes = np.unique(clusters[units], return_inverse=True)
        differing = int((np.abs(np.bincount(codes, weights=first - second)) > 0.5).sum())
        least, what = 0.5**differing, "clusters" if differing > 1 else "cluster"
    if not differing:
        return replace(row, p_value=None, reason="nothing to test: no pair differs")
    if least >= LEVEL:
        few = f"too few to decide: {differing} {what} with a difference cannot reach .05"
        row = replace(row, p_value=None, reason=few)
    if row.low is None or row.high is None or (row.p_value is not None and row.p_value < LEVEL):
        return row
    return replace(row, low=min(row.low, 0.0), high=max(row.high, 0.0))


def _scores(judge: Ints, humans: Ints, column: int) -> tuple[Bools, Floats, Floats]:
    """The units that allow the comparison, and how far judge and human agree with the others there."""
    own, others = humans[:, column], np.delete(humans, column, axis=1)
    present = others != MISSING
    units = (judge >= 0) & (own != MISSING) & present.any(1)
    rest = present[units].sum(1)

    def agreed(labels: Ints) -> Floats:
        return np.asarray((others[units] == labels[units, None]).sum(1) / rest, dtype=np.float64)

    return units, agreed(judge), agreed(own)


def _not_worse(judge: Floats, human: Floats, margin: float, clusters: Ints | None) -> float:
    """The p-value of "the human's advantage is at least `margin` above the judge's"."""
    from scipy import special

    behind = (human >= judge).astype(np.float64) - (judge >= human)
    n = len(behind)
    codes = np.arange(n) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sizes = np.bincount(codes).astype(np.float64)
    variance = _at_margin(behind, margin) * _clustering(behind - behind.mean(), sizes, codes) / n
    if variance <= 0:  # a margin of 0, and no difference on any unit
        return 1.0
    df = max(1.0, sizes.sum() ** 2 / (sizes**2).sum() - 1)
    return float(special.stdtr(df, (float(behind.mean()) - margin) / sqrt(variance)))


def _at_margin(behind: Floats, margin: float) -> float:
    """The variance of a unit's difference (1, 0, −1), fitted so that its mean is the margin (Tango 1998)."""
    n, human, judge = len(behind), float((behind > 0).sum()), float((behind < 0).sum())
    linear = (2 * n - human + judge) * margin - human - judge
    square = linear**2 + 8 * n * judge * margin * (1 - margin)
    return (sqrt(square) - linear) / (2 * n) + margin * (1 - margin)


def _clustering(residuals: Floats, sizes: Floats, codes: Ints) -> float:
    """How many units of a cluster tell as much as an independent one, from 1 to the clusters' sizes.

    Those where all residuals are 0: what is alike throughout says nothing of how far clusters are.
    """
    most, single = float((sizes**2).sum() / sizes.sum()), float((residuals**2).sum())
    if single < 1e-12:
        return most
    between = float((np.bincount(codes, weights=residuals) ** 2).sum())
    return min(most, max(1.0, between / single * len(sizes) / (len(sizes) - 1)))
