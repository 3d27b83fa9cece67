"""Many raters, each of few units, against other programs and pair by pair."""

from __future__ import annotations

from itertools import combinations

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from coaudit.annotation.statistics import Ratings
from coaudit.annotation.statistics.agreement import Coefficient, agreement
from coaudit.annotation.statistics.crowds import PAIRS, closest_pairs, rater_names
from coaudit.annotation.statistics.intervals import MISSING, Ints

LABELS = ("no", "maybe", "yes")


def crowd(units: int, raters: int, each: int) -> Ints:
    """Ratings of which each unit has some, whoever they are by."""
    rng = np.random.default_rng(7)
    truth = rng.integers(len(LABELS), size=units)
    matrix = np.full((units, raters), MISSING)
    for unit in range(units):
        who = rng.choice(raters, each, replace=False)
        right = rng.random(each) < 0.8
        matrix[unit, who] = np.where(right, truth[unit], rng.integers(len(LABELS), size=each))
    return matrix


def measured(matrix: Ints, **more: object) -> list[Coefficient]:
    names = tuple(f"w{place:04}" for place in range(matrix.shape[1]))
    return agreement(Ratings(matrix, LABELS, names, "ordinal"), **more)  # type: ignore[arg-type]


def test_joint_coefficients_of_a_crowd_are_those_of_other_programs() -> None:
    matrix = crowd(400, 150, 3)
    rows = {row.coefficient: row for row in measured(matrix) if len(row.raters) == 150}
    given = np.where(matrix == MISSING, np.nan, matrix.astype(float)).T
    alpha = krippendorff.alpha(given, value_domain=[0, 1, 2], level_of_measurement="ordinal")
    assert rows["krippendorff_alpha"].value == pytest.approx(alpha, abs=1e-12)
    counts = np.stack([(matrix == label).sum(1) for label in range(3)], axis=1)
    observed = (counts * (counts - 1)).sum(1).mean() / 6
    chance = ((counts.sum(0) / counts.sum()) ** 2).sum()
    assert rows["percent_agreement"].value == pytest.approx(observed, abs=1e-12)
    assert rows["fleiss_kappa"].value == pytest.approx((observed - chance) / (1 - chance), abs=1e-12)
    assert (rows["fleiss_kappa"].n_units, rows["fleiss_kappa"].n_ratings) == (400, 1200)
    low, high = rows["krippendorff_alpha"].low, rows["krippendorff_alpha"].high
    assert low is not None and high is not None and 0.08 < high - low < 0.16


def test_kappas_of_pairs_that_share_nearly_nothing_are_left_out_with_their_number() -> None:
    rows = measured(crowd(400, 150, 3))
    assert {len(row.raters) for row in rows} == {150}
    mean = next(row for row in rows if row.coefficient == "mean_cohen_kappa")
    assert mean.value is None and mean.n_units == 400
    assert mean.reason is not None and "pairs of 150 raters share 1." in mean.reason
    assert "; 0 of them" in mean.reason


def test_the_mean_of_a_crowd_that_shares_some_units_is_that_of_its_pairs() -> None:
    matrix = crowd(1500, 25, 4)
    rows = measured(matrix)
    kappas = []
    for one, other in combinations(range(25), 2):
        both = (matrix[:, one] != MISSING) & (matrix[:, other] != MISSING)
        kappas.append(cohen_kappa_score(matrix[both, one], matrix[both, other], labels=[0, 1, 2]))
    mean = next(row for row in rows if row.coefficient == "mean_cohen_kappa")
    assert mean.value == pytest.approx(np.mean(kappas), abs=1e-12)
    assert mean.low is None and mean.reason is not None and mean.reason.startswith("no interval: 300 pairs")
    own = [row for row in rows if row.coefficient == "cohen_kappa"]
    assert len(own) == PAIRS and min(row.n_units for row in own) >= 10


def test_raters_who_rated_all_are_no_crowd_however_many() -> None:
    rows = measured(crowd(60, 22, 22), resamples=200)
    mean = next(row for row in rows if row.coefficient == "mean_cohen_kappa")
    assert mean.value is not None and mean.low is not None
    assert sum(row.coefficient == "cohen_kappa" for row in rows) == PAIRS


def test_a_judge_is_held_against_those_of_a_crowd_who_share_units_with_it() -> None:
    matrix = crowd(900, 60, 2)
    matrix[:, 0] = np.random.default_rng(1).integers(3, size=900)
    pairs = [(0, place) for place in range(1, 60)]
    rows = measured(matrix, pairs=pairs)
    own = [row for row in rows if row.coefficient == "cohen_kappa"]
    assert len(own) == 59 and all(row.raters[0] == "w0000" for row in own)
    mean = next(row for row in rows if row.coefficient == "mean_cohen_kappa")
    values = [row.value for row in own if row.value is not None]
    assert mean.value == pytest.approx(np.mean(values), abs=1e-12)


def test_the_pairs_of_the_most_units_have_rows_in_their_order() -> None:
    pairs = [(0, place) for place in range(1, 4)]
    assert closest_pairs(pairs, np.array([30, 9, 40])) == [(0, 1), (0, 3)]


def test_a_crowd_is_called_by_its_first_and_its_number() -> None:
    assert rater_names(("ann", "ben"), ", ") == "ann, ben"
    assert rater_names(tuple(f"w{place}" for place in range(500)), " · ") == "w0 · 499 more"
