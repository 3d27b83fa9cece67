"""The alternative annotator test and its trap; drift between versions of a judge."""

import numpy as np
import pytest

from coaudit.annotation.statistics.intervals import Ints
from coaudit.annotation.statistics.validation import alternative_annotator_test, drift

ANNOTATORS = ("ann", "ben", "cay")


def crowd(n: int, prevalence: float, accuracy: float, seed: int = 0) -> tuple[Ints, Ints]:
    """True labels (n,) and three annotators' (n, 3)."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < prevalence).astype(np.int64)
    right = rng.random((n, 3)) < accuracy
    return truth, np.where(right, truth[:, None], 1 - truth[:, None])


def test_a_judge_that_knows_the_truth_may_replace_fallible_annotators() -> None:
    truth, humans = crowd(200, 0.5, 0.85)
    found = alternative_annotator_test(truth, humans, ANNOTATORS, positive=1)
    assert (found.winning_rate, found.passed) == (1.0, True)
    assert found.advantage is not None and found.advantage > 0.8
    assert [row.annotator for row in found.annotators] == list(ANNOTATORS)


def test_a_judge_that_guesses_may_not() -> None:
    _, humans = crowd(200, 0.5, 0.95)
    judge = np.random.default_rng(9).integers(0, 2, 200)
    found = alternative_annotator_test(judge, humans, ANNOTATORS, positive=1)
    assert (found.winning_rate, found.passed) == (0.0, False)


def test_an_always_no_judge_passes_on_a_rare_code_and_its_sensitivity_beside_tells() -> None:
    _, humans = crowd(500, 0.02, 0.98)
    found = alternative_annotator_test(np.zeros(500, dtype=np.int64), humans, ANNOTATORS, positive=1)
    assert found.passed is True
    assert found.sensitivity.value == 0


def test_under_three_annotators_the_test_is_null_but_sensitivity_is_there() -> None:
    truth, humans = crowd(50, 0.5, 0.9)
    humans[:, 2] = -1
    found = alternative_annotator_test(truth, humans, ANNOTATORS, positive=1)
    assert (found.winning_rate, found.passed) == (None, None)
    assert found.reason == "the test needs three annotators, got 2"
    assert found.sensitivity.value is not None


def test_an_annotator_without_common_units_makes_the_test_null() -> None:
    truth, humans = crowd(20, 0.5, 0.9)
    humans[1:, 2] = -1
    found = alternative_annotator_test(truth, humans, ANNOTATORS, positive=1)
    assert found.reason == "annotator cay shares fewer than two units with the judge and another"


def test_a_win_is_counted_where_the_judge_agrees_at_least_as_well() -> None:
    # unit by unit the others of ann agree with: both, the judge, ann, neither
    humans = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]])
    judge = np.array([0, 0, 1, 1])
    row = alternative_annotator_test(judge, humans, ANNOTATORS, positive=1).annotators[0]
    assert (row.n, row.judge_advantage, row.human_advantage) == (4, 0.75, 0.75)


def test_few_units_show_nothing_even_where_all_agree() -> None:
    humans = np.zeros((3, 3), dtype=np.int64)
    found = alternative_annotator_test(np.zeros(3, dtype=np.int64), humans, ANNOTATORS, positive=1)
    assert found.passed is False
    assert found.annotators[0].p_value == pytest.approx(1 / 8)


def test_drift_counts_changed_labels_and_compares_rates_on_the_same_units() -> None:
    old = np.array([1] * 10 + [0] * 30 + [-2, 0])
    new = np.array([1] * 9 + [0] + [1] * 8 + [0] * 22 + [0, -3])
    found = drift(old, new, positive=1)
    assert (found.n, found.only_old, found.only_new) == (40, 1, 1)
    assert found.changed.value == 9 / 40
    assert found.rate.effect == pytest.approx(7 / 40)
    assert found.accuracy is None


def test_drift_against_human_labels_tells_which_version_is_better() -> None:
    human = np.array([1, 1, 0, 0, -1])
    found = drift(np.array([0, 0, 0, 0, 1]), np.array([1, 1, 0, 0, 0]), positive=1, human=human)
    assert found.accuracy is not None
    assert (found.accuracy.effect, found.accuracy.n) == (0.5, 4)


def test_drift_without_common_units_is_null() -> None:
    found = drift(np.array([-2]), np.array([1]), positive=1)
    assert (found.changed.value, found.rate.effect, found.rate.reason) == (
        None,
        None,
        "no unit labelled by both",
    )
