"""The annotator model against the closed form of three raters, and where it can't say anything."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from coaudit.annotation.statistics import Audit
from coaudit.annotation.statistics.annotators import dawid_skene, fit
from coaudit.annotation.statistics.audit import UNCLEAR
from coaudit.annotation.statistics.intervals import MISSING, Ints

PATTERNS = {
    (1, 1, 1): 70,
    (1, 1, 0): 25,
    (1, 0, 1): 30,
    (0, 1, 1): 28,
    (1, 0, 0): 32,
    (0, 1, 0): 20,
    (0, 0, 1): 24,
    (0, 0, 0): 571,
}
SAID: Ints = np.repeat(np.array(list(PATTERNS)), list(PATTERNS.values()), axis=0)


def closed_form() -> float:
    """Three raters and one hidden class leave no freedom: its share from the second and third moments.

    Covariances are π(1 − π)dₐd_b and the third moment π(1 − π)(1 − 2π)d₁d₂d₃, d being Youden's index of each.
    """
    moved = SAID - SAID.mean(0)
    third = float(moved.prod(1).mean())
    pairs = [float((moved[:, a] * moved[:, b]).mean()) for a, b in ((0, 1), (0, 2), (1, 2))]
    ratio = third**2 / np.prod(pairs)  # (1 − 2π)²/(π(1 − π))
    return float((1 - np.sqrt(ratio / (ratio + 4))) / 2)


def test_three_annotators_give_the_share_that_their_moments_determine() -> None:
    value, interval = dawid_skene(Audit(SAID.mean(1)), SAID, with_judge=False, resamples=200)
    assert value == pytest.approx(closed_form(), abs=1e-3)
    assert interval.low is not None and interval.high is not None and value is not None
    assert interval.low < value < interval.high


def test_labels_of_one_trajectory_tell_of_others_only_where_there_are_none() -> None:
    only, units = np.zeros(len(SAID), dtype=np.int64), Audit(SAID.mean(1))
    one = dawid_skene(Audit(SAID.mean(1), None, None, only), SAID, with_judge=False, resamples=20)
    assert one == dawid_skene(units, SAID, with_judge=False, resamples=20)
    said = np.vstack([SAID, np.full((10, 3), -1)])
    human, trajectories = np.append(SAID.mean(1), np.full(10, -1)), np.append(only, np.ones(10, np.int64))
    both = Audit(human, None, None, trajectories)
    value, interval = dawid_skene(both, said, with_judge=False, resamples=20)
    assert value == pytest.approx(one[0], abs=1e-4)
    assert interval == (None, None, "no interval: all labels are of one trajectory of several", 0)


def test_a_few_units_that_judge_and_people_left_open_may_be_anything() -> None:
    audit = Audit(SAID[:, :2].mean(1), SAID[:, 2])
    value, known = dawid_skene(audit, SAID[:, :2], with_judge=True, resamples=50)
    judge, human = np.append(SAID[:, 2], [UNCLEAR] * 50), np.append(audit.human, [MISSING] * 50)
    said = np.vstack([SAID[:, :2], np.full((50, 2), MISSING)])
    more, interval = dawid_skene(Audit(human, judge), said, with_judge=True, resamples=50)
    assert more == pytest.approx(value)
    assert known.low is not None and known.high is not None
    share = len(SAID) / len(judge)
    assert interval[:2] == pytest.approx((share * known.low, share * known.high + 1 - share))


def test_the_judge_is_one_more_rater_where_it_is_asked_for() -> None:
    audit = Audit(SAID[:, :2].mean(1), SAID[:, 2])
    value, _ = dawid_skene(audit, SAID[:, :2], with_judge=True, resamples=50)
    assert value == pytest.approx(closed_form(), abs=1e-3)


def test_the_fit_says_who_errs_how() -> None:
    counts = np.array([list(PATTERNS.values())], dtype=np.float64)
    present, sound = fit(counts, np.array(list(PATTERNS)), np.zeros(8, dtype=np.int64))
    assert sound.all()
    order = [float(present[0, place]) for place in (0, 1, 4, 7)]
    assert order == sorted(order, reverse=True) and order[0] > 0.99 and order[3] < 0.02


@pytest.mark.parametrize(
    ("said", "judge", "with_judge", "reason"),
    [
        (SAID[:, :2], None, False, "needs 3 raters of the same units, got 2; the judge may be one more"),
        (SAID[:, :1], SAID[:, 2], True, "needs 3 raters of the same units, got 2"),
        (SAID[:, :2], None, True, "no judge to be one more rater"),
        (
            SAID[150:],
            None,
            False,
            "agree that 3 units have it, of 650 units that 3 raters share",
        ),
    ],
)
def test_what_cannot_be_identified_is_null_with_the_reason(
    said: Any, judge: Any, with_judge: bool, reason: str
) -> None:
    value, interval = dawid_skene(Audit(said.mean(1), judge), said, with_judge=with_judge, resamples=20)
    assert value is None and interval.reason is not None and reason in interval.reason


def expected(share: float, found: Any, spared: Any, of_three: int, of_two: int) -> tuple[Any, Any]:
    """Patterns and how often they are expected of units that three raters share, and of two of three."""
    seen: dict[tuple[int, ...], float] = dict.fromkeys(((0, 1), (0, 2), (1, 2)), of_two / 3)
    seen[0, 1, 2] = of_three
    cells, counts = [], []
    for raters, units in seen.items():
        for answers in product((0, 1), repeat=len(raters)):
            cell = np.full(3, MISSING)
            cell[list(raters)] = answers
            hit = [found[r] if a else 1 - found[r] for r, a in zip(raters, answers, strict=True)]
            alarm = [1 - spared[r] if a else spared[r] for r, a in zip(raters, answers, strict=True)]
            cells.append(cell)
            counts.append(units * (share * np.prod(hit) + (1 - share) * np.prod(alarm)))
    return np.array(cells), np.array(counts)


def test_the_fit_is_followed_until_it_stands() -> None:
    # 200 steps end at .463 here.
    cells, counts = expected(0.5, (0.6, 0.7, 0.65), (0.9, 0.9, 0.9), 15_000, 185_000)
    present, _ = fit(counts[None], cells, np.zeros(len(cells), dtype=np.int64))
    assert float(counts @ present[0] / counts.sum()) == pytest.approx(0.5, abs=1e-3)


def test_pairs_of_three_raters_identify_nothing_however_many_units_there_are() -> None:
    # .15 have it; with five units that all three share the model said .27 [.23, .30].
    cells, counts = expected(0.15, (0.9, 0.95, 0.9), (0.85, 0.8, 0.9), 5, 1995)
    said = np.repeat(cells, np.rint(counts).astype(int), axis=0)
    given = np.where(said >= 0, said, 0).sum(1) / (said >= 0).sum(1)
    value, interval = dawid_skene(Audit(given), said, with_judge=False, resamples=20)
    assert value is None and interval.reason is not None
    assert "units that 3 raters share: too few to tell misses from false alarms" in interval.reason


def test_design_weights_and_single_labels_take_part() -> None:
    # Of the units on which all say no, three in ten were drawn.
    rng = np.random.default_rng(3)
    absent = (SAID == 0).all(1)
    kept = ~absent | (rng.random(len(SAID)) < 0.3)
    inclusion = np.where(absent, kept[absent].mean(), 1.0)
    human = np.where(kept, SAID.mean(1), MISSING)
    said = np.where(kept[:, None], SAID, MISSING)
    value, _ = dawid_skene(Audit(human, None, inclusion), said, with_judge=False, resamples=20)
    assert value == pytest.approx(closed_form(), abs=5e-3)
