"""May a judge stand in for an annotator, and is the new version of a judge still the old one?"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from .comparisons import Comparison, adjusted_p_values, mcnemar
from .confusion import Share, confusion
from .intervals import MISSING, Floats, Ints, wilson

_NORMAL_FROM = 30  # units; below, Wilcoxon's signed ranks


@dataclass(frozen=True)
class LeftOut:
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
    annotators: tuple[LeftOut, ...]
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
) -> AlternativeAnnotatorTest:
    """Calderon, Reichart and Dror (2025): leave each human out, and ask who agrees better with the rest.

    `judge` (n,) and `humans` (n, annotators) are label indices, −1 missing; `positive` is the label whose
    sensitivity is shown, against the humans' majority. On each unit that the judge, the human and another
    human labelled, a rater's score is the share of the other humans with the same label. The judge wins
    against a human if it is shown not to be worse by `margin` (.2 for experts, .1–.15 for crowds): one-sided
    t, or Wilcoxon below 30 units, Benjamini–Yekutieli over humans.
    """
    found = sensitivity(judge, humans, positive)
    usable = (humans != MISSING).any(0)
    if usable.sum() < 3:
        reason = f"the test needs three annotators, got {int(usable.sum())}"
        return AlternativeAnnotatorTest(None, None, None, (), found, reason)
    rows: list[tuple[str, Floats, Floats]] = []
    for column in np.flatnonzero(usable):
        of_judge, of_human = _scores(judge, humans, int(column))
        if len(of_judge) < 2:
            reason = f"annotator {annotators[column]} shares fewer than two units with the judge and another"
            return AlternativeAnnotatorTest(None, None, None, (), found, reason)
        rows.append((annotators[column], of_judge, of_human))
    p_values = [_not_worse(ours, theirs, margin) for _, ours, theirs in rows]
    adjusted = adjusted_p_values(p_values, "benjamini_yekutieli")
    left_out = tuple(
        LeftOut(
            name, len(ours), float((ours >= theirs).mean()), float((theirs >= ours).mean()), p, q, q < level
        )
        for (name, ours, theirs), p, q in zip(rows, p_values, adjusted, strict=True)
    )
    omega = float(np.mean([row.judge_wins for row in left_out]))
    advantage = float(np.mean([row.judge_advantage for row in left_out]))
    return AlternativeAnnotatorTest(omega, omega >= 0.5, advantage, left_out, found)


def sensitivity(judge: Ints, humans: Ints, positive: int) -> Share:
    """Of the units that most humans labelled `positive` (ties are left out), how many the judge found."""
    votes = (humans == positive).sum(1)
    against = ((humans != MISSING) & (humans != positive)).sum(1)
    majority = np.where(votes > against, 1, np.where(against > votes, 0, MISSING))
    found = np.where(judge == MISSING, MISSING, judge == positive)
    return confusion(found, majority, ("other", "positive")).classes[1].sensitivity


def drift(old: Ints, new: Ints, *, positive: int, human: Ints | None = None) -> Drift:
    """Compare the labels (n,) of two versions of a judge on the same units; negative ones are unusable.

    The rate of `positive` and, with `human` (n,) labels, the accuracy are compared by McNemar's test.
    """
    both = (old >= 0) & (new >= 0)
    n, differing = int(both.sum()), int((old != new)[both].sum())
    low, high, reason, _ = wilson(differing, n)
    accuracy = None
    if human is not None:
        checked = both & (human >= 0)
        accuracy = _paired(new == human, old == human, checked)
    return Drift(
        n=n,
        only_old=int(((old >= 0) & (new < 0)).sum()),
        only_new=int(((new >= 0) & (old < 0)).sum()),
        changed=Share(differing / n if n else None, low, high, n, reason),
        rate=_paired(new == positive, old == positive, both),
        accuracy=accuracy,
    )


def _paired(new: NDArray[np.bool_], old: NDArray[np.bool_], units: NDArray[np.bool_]) -> Comparison:
    if not units.any():
        return Comparison("McNemar", None, None, None, None, None, None, 0, "no unit labelled by both")
    return mcnemar(new[units].astype(np.float64), old[units].astype(np.float64))


def _scores(judge: Ints, humans: Ints, column: int) -> tuple[Floats, Floats]:
    """Agreement of the judge and of one human with the others, on the units that allow the comparison."""
    own, others = humans[:, column], np.delete(humans, column, axis=1)
    present = others != MISSING
    units = (judge >= 0) & (own != MISSING) & present.any(1)
    rest = present[units].sum(1)

    def agreed(labels: Ints) -> Floats:
        return np.asarray((others[units] == labels[units, None]).sum(1) / rest, dtype=np.float64)

    return agreed(judge), agreed(own)


def _not_worse(judge: Floats, human: Floats, margin: float) -> float:
    """The p-value of "the human's advantage is at least `margin` above the judge's"."""
    behind = (human >= judge).astype(np.float64) - (judge >= human) - margin
    n, error = len(behind), float(behind.std(ddof=1)) / sqrt(len(behind))
    if not behind.any():
        return 1.0
    if n < _NORMAL_FROM:
        from scipy import stats

        return float(stats.wilcoxon(behind, alternative="less").pvalue)
    if error < 1e-12:  # the same on every unit: a sign test
        return float(0.5**n) if behind[0] < 0 else 1.0
    from scipy import special

    return float(special.stdtr(n - 1, float(behind.mean()) / error))
