"""The alternative annotator test and its trap; drift between versions of a judge."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from coaudit.annotation.statistics.intervals import Ints
from coaudit.annotation.statistics.validation import alternative_annotator_test, clustered_mcnemar, drift

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


def test_units_of_one_trajectory_are_no_test_and_a_judge_without_answers_is_no_lack_of_labels() -> None:
    truth, humans = crowd(60, 0.5, 0.9)
    one = alternative_annotator_test(truth, humans, ANNOTATORS, positive=1, clusters=np.zeros(60, dtype=int))
    assert one.passed is None
    assert one.reason == "annotator ann shares fewer than two clusters with the judge and another"
    silent = alternative_annotator_test(np.full(60, -1), humans, ANNOTATORS, positive=1)
    assert silent.sensitivity.reason == "no unit labelled by both"


def test_a_win_is_counted_where_the_judge_agrees_at_least_as_well() -> None:
    # unit by unit the others of ann agree with: both, the judge, ann, neither
    humans = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]])
    judge = np.array([0, 0, 1, 1])
    row = alternative_annotator_test(judge, humans, ANNOTATORS, positive=1).annotators[0]
    assert (row.n, row.judge_advantage, row.human_advantage) == (4, 0.75, 0.75)


def test_few_units_show_nothing_even_where_all_agree() -> None:
    # A person who is better in every fifth unit, the margin, is so in none of ten in .8¹⁰ = .11 of samples.
    for n, least in ((3, 0.2), (10, 0.05)):
        humans = np.zeros((n, 3), dtype=np.int64)
        found = alternative_annotator_test(np.zeros(n, dtype=np.int64), humans, ANNOTATORS, positive=1)
        assert found.passed is False
        # Tango's statistic is −√(nε/(1 − ε)) there.
        assert found.annotators[0].p_value == pytest.approx(stats.t.cdf(-np.sqrt(n / 4), n - 1))
        assert found.annotators[0].p_value > least


def test_units_that_are_all_alike_in_few_trajectories_are_so_many_trajectories() -> None:
    alike, clusters = np.zeros(40, dtype=np.int64), np.arange(40) // 8
    humans = np.zeros((40, 3), dtype=np.int64)
    found = alternative_annotator_test(alike, humans, ANNOTATORS, positive=1, clusters=clusters)
    assert found.annotators[0].p_value == pytest.approx(stats.t.cdf(-np.sqrt(5 / 4), 4))


def test_the_score_test_is_tangos_by_hand() -> None:
    # Of 30 units ann is nearer to the others in 3 and the judge in 2; at margin .2 their shares are fitted as
    # q + .2 and q: 60q² + (−5 + (60 − 3 + 2)·.2)q − 2·.2·.8 = 0.
    humans = np.zeros((30, 3), dtype=np.int64)
    judge = np.zeros(30, dtype=np.int64)
    judge[:3], humans[3:5, 0] = 1, 1
    q = (np.sqrt(6.8**2 + 4 * 60 * 0.32) - 6.8) / 120
    z = (1 - 30 * 0.2) / np.sqrt(30 * (2 * q + 0.2 * 0.8))
    row = alternative_annotator_test(judge, humans, ANNOTATORS, positive=1).annotators[0]
    assert row.p_value == pytest.approx(stats.t.cdf(z, 29))


@pytest.mark.parametrize("units", [20, 29, 30, 60])
def test_a_judge_at_the_margin_passes_for_no_more_than_five_of_a_hundred_small_samples(units: int) -> None:
    # The judge is worse in each tenth unit and never better: Wilcoxon's test passed it in .86 of 20 units.
    humans = np.zeros((units, 3), dtype=np.int64)
    passed = 0.0
    for errors in range(units + 1):
        judge = (np.arange(units) < errors).astype(np.int64)
        found = alternative_annotator_test(judge, humans, ANNOTATORS, positive=1, margin=0.1)
        chance = float(stats.binom.pmf(errors, units, 0.1))
        passed += chance * (found.annotators[0].p_value < 0.05)
    assert passed <= 0.055


def test_a_margin_that_is_no_share_is_refused_and_none_at_all_is_met_by_better_judges_alone() -> None:
    truth, humans = crowd(200, 0.5, 0.85)
    with pytest.raises(ValueError, match="`margin` must lie in 0"):
        alternative_annotator_test(truth, humans, ANNOTATORS, positive=1, margin=-0.5)
    alike = np.zeros((30, 3), dtype=np.int64)
    same = alternative_annotator_test(alike[:, 0], alike, ANNOTATORS, positive=1, margin=0.0)
    assert (same.annotators[0].p_value, same.passed) == (1.0, False)
    assert alternative_annotator_test(truth, humans, ANNOTATORS, positive=1, margin=0.0).passed is True


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


def test_mcnemar_of_single_units_as_trajectories_is_the_mid_p_test() -> None:
    new, old = np.repeat([1.0, 0.0, 1.0], [9, 2, 30]), np.repeat([0.0, 1.0, 1.0], [9, 2, 30])
    found = clustered_mcnemar(new, old, np.arange(41))
    # 2·(P(X ≤ 2) − P(X = 2)/2) for X ~ Binomial(11, ½)
    assert found.p_value == pytest.approx(2 * (1 + 11 + 55 / 2) / 2**11)
    assert found.effect == pytest.approx(7 / 41)


def test_mcnemar_of_trajectories_flips_their_sums_by_hand() -> None:
    # sums 3, 2, −1: of the eight signs ±6 and ±4 reach |4|, the latter half
    new = np.array([1, 1, 1, 1, 1, 0], dtype=np.float64)
    found = clustered_mcnemar(new, 1 - new, np.array([0, 0, 0, 1, 1, 2]))
    assert found.p_value == pytest.approx((2 + 2 / 2) / 8)


def test_a_drift_that_one_trajectory_makes_is_none() -> None:
    old, new = np.zeros(200, dtype=np.int64), np.zeros(200, dtype=np.int64)
    new[:20] = 1
    clusters = np.arange(200) // 20
    within, apart = drift(old, new, positive=1, clusters=clusters).rate, drift(old, new, positive=1).rate
    assert apart.p_value is not None and apart.p_value < 1e-4
    few = "too few to decide: 1 cluster with a difference cannot reach .05"
    assert (within.p_value, within.reason) == (None, few)
    assert within.effect == apart.effect == 0.1


def test_units_that_differ_too_seldom_are_no_test_and_the_interval_never_contradicts_one() -> None:
    old = np.zeros(60, dtype=np.int64)
    p_values = []
    for gained in range(8):
        rate = drift(old, (np.arange(60) < gained).astype(np.int64), positive=1).rate
        p_values.append(rate.p_value)
    assert [p is None for p in p_values] == [True] * 6 + [False] * 2
    assert p_values[6] == pytest.approx(2 * 0.5**6)
    assert drift(old, old, positive=1).rate.reason == "nothing to test: no pair differs"
    # p = .031; .077, where the interval alone would begin above 0; .060 and .111
    for gained, lost in ((14, 4), (12, 4), (40, 24), (30, 18)):
        new = np.repeat([1, 0, 0], [gained, lost, 100])
        was = np.repeat([0, 1, 0], [gained, lost, 100])
        row = drift(was, new, positive=1).rate
        assert row.p_value is not None and row.low is not None
        assert (row.p_value < 0.05) == (row.low > 0)


def test_the_interval_of_units_that_are_too_few_to_decide_holds_0() -> None:
    """Of five of five that changed it began at .278, beside the word that so few show no drift."""
    old = np.ones(5, dtype=np.int64)
    row = drift(old, 1 - old, positive=0).rate
    assert (row.p_value, row.effect) == (None, 1)
    assert (row.low, row.high) == (0, 1)


def rejections(test: Any, runs: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    return float(np.mean([test(rng) < 0.05 for _ in range(runs)]))


def erring(rng: np.random.Generator, clusters: Ints, share: float) -> Any:
    """Units (n,) that err so often, with an intraclass correlation of .3 in trajectories."""
    own = rng.beta(share * 7 / 3, (1 - share) * 7 / 3, clusters.max() + 1)
    return rng.random(len(clusters)) < own[clusters]


@pytest.mark.slow
def test_versions_with_equal_rates_drift_in_five_of_a_hundred_samples_of_trajectories() -> None:
    clusters = np.repeat(np.arange(40), 8)

    def p_value(rng: np.random.Generator) -> float:
        old, new = (erring(rng, clusters, 0.2).astype(np.int64) for _ in range(2))
        found = drift(old, new, positive=1, clusters=clusters).rate.p_value
        assert found is not None
        return found

    assert 0.03 <= rejections(p_value, 600, 1) <= 0.07


@pytest.mark.slow
def test_a_judge_at_the_margin_passes_for_five_of_a_hundred_samples_of_trajectories() -> None:
    clusters = np.repeat(np.arange(40), 5)

    def p_value(rng: np.random.Generator) -> float:
        truth = erring(rng, clusters, 0.3)
        people = [truth ^ erring(rng, clusters, 0.1) for _ in range(3)]
        judge = truth ^ erring(rng, clusters, 0.35)  # people agree better by .2, the margin
        humans = np.stack(people, axis=1).astype(np.int64)
        found = alternative_annotator_test(
            judge.astype(np.int64), humans, ANNOTATORS, positive=1, clusters=clusters
        )
        return found.annotators[0].p_value

    assert 0.03 <= rejections(p_value, 600, 2) <= 0.07
