"""Confusion and calibration by hand."""

import numpy as np
import pytest

from coaudit.annotation.statistics.confusion import calibration, confusion

HUMAN = np.repeat([0, 0, 1, 1], [40, 10, 5, 45])
JUDGE = np.repeat([0, 1, 0, 1], [40, 10, 5, 45])


def test_sensitivity_specificity_and_predictive_values_are_those_of_the_table() -> None:
    found = confusion(JUDGE, HUMAN, ("no", "yes"))
    assert found.counts.tolist() == [[40, 10], [5, 45]]
    yes = found.classes[1]
    assert (yes.label, yes.sensitivity.value, yes.specificity.value) == ("yes", 0.9, 0.8)
    assert [yes.ppv.value, yes.npv.value] == pytest.approx([45 / 55, 40 / 45])
    # statsmodels.stats.proportion.proportion_confint(45, 50, method="agresti_coull")
    assert [yes.sensitivity.low, yes.sensitivity.high] == pytest.approx([0.78206, 0.96086], abs=1e-5)


def test_more_than_two_labels_are_each_held_against_the_others() -> None:
    found = confusion(np.array([0, 1, 2, 2]), np.array([0, 1, 1, 2]), "abc")
    assert [c.sensitivity.value for c in found.classes] == [1.0, 0.5, 1.0]
    assert [c.ppv.value for c in found.classes] == [1.0, 1.0, 0.5]


def test_weights_undo_a_sample_that_looked_at_the_judge() -> None:
    weights = np.where(JUDGE == 1, 1.0, 4.0)
    yes = confusion(JUDGE, HUMAN, ("no", "yes"), weights).classes[1]
    assert yes.sensitivity.value == pytest.approx(45 / 65)
    assert yes.ppv.value == pytest.approx(45 / 55)


def test_a_share_of_nothing_is_null_with_the_reason() -> None:
    yes = confusion(np.array([0, 0]), np.array([0, 0]), ("no", "yes")).classes[1]
    assert (yes.sensitivity.value, yes.sensitivity.reason) == (None, "no human label 'yes'")
    assert (yes.ppv.value, yes.ppv.reason) == (None, "no judge label 'yes'")


def test_unusable_labels_are_left_out() -> None:
    assert confusion(np.array([0, -2, 1]), np.array([0, 1, -1]), ("no", "yes")).counts.sum() == 1


def test_calibration_error_and_brier_score_are_those_worked_out_by_hand() -> None:
    found = calibration(np.array([0.05, 0.1, 0.9, 1.0]), np.array([0, 1, 1, 1]))
    # (0, .1] holds .05 and .1: predicted .075, observed .5; (.8, .9]: .9 and 1; (.9, 1]: 1 and 1
    assert found.ece == pytest.approx((2 * 0.425 + 0.1) / 4)
    assert found.brier == pytest.approx((0.0025 + 0.81 + 0.01) / 4)
    assert [b.n for b in found.bins] == [2, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    assert found.bins[1].predicted is None


def test_a_brier_score_has_the_interval_of_its_trajectories() -> None:
    rng = np.random.default_rng(3)
    trajectory = np.repeat(np.arange(40), 5)
    often = np.repeat(rng.uniform(0.1, 0.9, 40), 5)  # what happens in a trajectory happens all through it
    told = (rng.random(200) < often).astype(np.int64)
    probability = np.full(200, 0.5)
    probability[told == 1] = 0.7
    together, apart = calibration(probability, told, clusters=trajectory), calibration(probability, told)
    assert together.brier == pytest.approx(apart.brier)
    (low, high), (lower, higher) = (
        (found.brier_low or 0, found.brier_high or 0) for found in (apart, together)
    )
    assert lower < low < (together.brier or 0) < high < higher
    single = calibration(probability[:5], told[:5], clusters=trajectory[:5])
    assert (single.brier is None, single.brier_low) == (False, None)


def test_calibration_error_stands_beside_what_chance_makes_of_right_probabilities() -> None:
    # Twenty units at .5: E|X − 10|/20 for X ~ Binomial(20, ½) is 20·C(19, 9)/2²⁰/20 = .0881.
    found = calibration(np.full(20, 0.5), np.repeat([0, 1], 10))
    assert found.ece == 0
    assert found.ece_by_chance == pytest.approx(0.0881, abs=0.01)
    assert calibration(np.array([]), np.array([])).ece_by_chance is None


def test_calibration_without_units_is_null_and_wrong_probabilities_are_refused() -> None:
    assert calibration(np.array([]), np.array([])).reason == "no unit with a probability and a human label"
    with pytest.raises(ValueError, match=r"in 0\.\.1"):
        calibration(np.array([1.2]), np.array([1]))


def test_where_a_weighted_sample_saw_no_miss_sensitivity_is_not_one() -> None:
    # 40 of 50 units that the judge flags are in the sample, 100 of 1,950 others: 20 hits, no miss
    judge = np.repeat([1, 0], [40, 100])
    human = np.concatenate([np.repeat([1, 0], 20), np.zeros(100, dtype=np.int64)])
    weights = np.repeat([50 / 40, 19.5], [40, 100])
    yes = confusion(judge, human, ("no", "yes"), weights, corpus=np.array([1950.0, 50.0])).classes[1]
    assert yes.sensitivity.reason == "no exception was seen: the middle of what the labels allow"
    # the median of Beta(½, 100½) is .00226, 4.4 misses
    assert yes.sensitivity.value == pytest.approx(25 / (25 + 4.4), abs=0.03)
    # a miss in 100 others would stand for 19.5: at 2.5 % there are 1950 · 0.0247 = 48 beside 25 hits
    assert yes.sensitivity.low == pytest.approx(25 / (25 + 48), abs=0.03)
    assert yes.sensitivity.high == 1.0


def test_how_often_a_judge_marks_is_as_uncertain_as_its_clusters_are_unlike() -> None:
    """How many it marks was drawn unit by unit: intervals of specificity held it in .79 of samples."""
    judge, human = np.repeat([1, 0], 40), np.tile([1, 1, 0, 0], 20)
    weights, clusters = np.repeat([2.5, 17.5], 40), np.arange(80) % 20
    widths = []
    for marked in (np.full(20, 5.0), np.repeat([0.0, 20.0], [15, 5])):
        corpus = np.column_stack([40 - marked, marked])
        assert corpus.sum(0).tolist() == [700, 100]
        yes = confusion(judge, human, ("no", "yes"), weights, clusters, corpus).classes[1]
        assert yes.specificity.value == pytest.approx(350 / 400)
        assert yes.specificity.low is not None and yes.specificity.high is not None
        widths.append(yes.specificity.high - yes.specificity.low)
    assert widths[1] > 1.3 * widths[0], widths


def test_three_clusters_of_a_weighted_sample_have_no_interval_either() -> None:
    judge, human = np.repeat([1, 0], 40), np.tile([1, 1, 0, 0], 20)
    weights, clusters = np.repeat([2.5, 17.5], 40), np.arange(80) % 3
    yes = confusion(judge, human, ("no", "yes"), weights, clusters).classes[1]
    why = "too few for an interval: 3 independent, 4 needed"
    assert yes.specificity.value == pytest.approx(350 / 400)
    assert (yes.specificity.low, yes.specificity.high, yes.specificity.reason) == (None, None, why)


def test_what_rests_on_a_judge_label_that_nobody_checked_is_null() -> None:
    human, weights = np.where(np.arange(60) < 4, 1, 0), np.where(np.arange(60) % 2, 5.0, 10.0)
    said, corpus = np.zeros(60, dtype=np.int64), np.array([450.0, 50.0])
    yes = confusion(said, human, ("no", "yes"), weights, corpus=corpus).classes[1]
    for share in (yes.sensitivity, yes.specificity, yes.ppv):
        assert (share.value, share.low) == (None, None)
        assert share.reason == "no human label among the units that the judge labelled 'yes'"
    assert yes.npv.value == pytest.approx(1 - 30 / 450)


def test_units_of_a_sample_that_are_not_labelled_yet_count_in_its_design() -> None:
    """30 of the judge's positives, all drawn, are labelled, and none of the ten of 200 others."""
    judge, inclusion = np.repeat([0, 1], [30, 10]), np.repeat([1.0, 0.05], [30, 10])
    human = np.where(np.arange(40) < 30, np.where(np.arange(40) < 25, 0, 1), -1)
    yes = confusion(judge, human, ("yes", "no"), 1 / inclusion, corpus=np.array([30.0, 200.0])).classes[0]
    assert (yes.sensitivity.value, yes.specificity.value) == (None, None)
    assert yes.sensitivity.reason == "no human label among the units that the judge labelled 'no'"


def test_a_label_that_the_judge_never_gives_is_never_found_whatever_the_rest_is() -> None:
    human = np.array([0] * 15 + [2] * 5)
    corpus = np.array([100.0, 50.0, 0.0])
    quality = confusion(
        np.zeros(20, dtype=np.int64), human, ("a", "b", "c"), corpus=corpus, from_sample=False
    )
    a, _, c = quality.classes
    assert (a.sensitivity.value, c.sensitivity.value, c.specificity.value, c.npv.value) == (None, 0, 1, None)


def test_four_positives_tell_little_of_a_judge_that_never_finds_one() -> None:
    human, weights = np.where(np.arange(60) < 4, 1, 0), np.where(np.arange(60) % 2, 5.0, 10.0)
    said, corpus = np.zeros(60, dtype=np.int64), np.array([500.0, 0.0])
    yes = confusion(said, human, ("no", "yes"), weights, corpus=corpus).classes[1]
    assert yes.sensitivity.value == 0 and (yes.sensitivity.high or 0) > 0.3
    assert yes.specificity.value == 1 and 0.9 < (yes.specificity.low or 0) < 1


def test_a_unit_that_people_label_differently_counts_in_part_for_each_label() -> None:
    votes = np.array([[1, 0], [0.5, 0.5], [0, 1], [0, 1], [1, 0]])
    yes = confusion(np.array([0, 1, 1, 0, 0]), votes, ("no", "yes")).classes[1]
    assert yes.sensitivity.value == pytest.approx(1.5 / 2.5)
    assert yes.ppv.value == pytest.approx(1.5 / 2)
    assert confusion(np.array([0, 1]), votes[:2], ("no", "yes")).counts.tolist() == [[1, 0.5], [0, 0.5]]


def test_units_of_a_trajectory_are_not_independent() -> None:
    judge, human = np.repeat([[1, 0], [0, 0]], 100, axis=0).ravel(), np.tile([1, 0], 200)
    clusters = np.repeat(np.arange(20), 20)
    apart = confusion(judge, human, ("no", "yes")).classes[1].sensitivity
    within = confusion(judge, human, ("no", "yes"), clusters=clusters).classes[1].sensitivity
    assert apart.value == within.value == 0.5
    assert apart.low and apart.high and within.low and within.high
    assert within.high - within.low > 2.5 * (
        apart.high - apart.low
    )  # ten trajectories found whole, ten missed


def test_units_drawn_for_certain_do_not_tell_how_a_judge_errs_on_those_that_the_sample_lacks() -> None:
    """It marks 50 units of a part that is all labelled, and 250 others, drawn with .01: none of them."""
    judge, human = np.repeat([1, 0, 0], 50), np.repeat([1, 0, 0], 50)
    weights, corpus = np.repeat([1.0, 1.0, 100.0], 50), np.array([4700.0, 300.0])
    lows = []
    for typical in (None, np.array([(50 + 4650 * 100) / 4700, (50 + 250 * 100) / 300])):
        yes = confusion(judge, human, ("no", "yes"), weights, corpus=corpus, typical=typical).classes[1]
        assert yes.ppv.low is not None
        lows.append(yes.ppv.low)
    assert lows[0] > 0.9 and lows[1] < 0.35


def test_a_sample_of_units_drawn_for_certain_alone_is_uneven_where_others_had_a_small_chance() -> None:
    """It marks 50 units of a part that is all labelled, and 250 others, drawn with .01: no unit of the rest
    was drawn at all, so that all weights are 1."""
    judge, human = np.repeat([1, 0], 50), np.repeat([1, 0], 50)
    typical, corpus = np.array([99.0, 83.5]), np.array([4700.0, 300.0])
    yes = confusion(judge, human, ("no", "yes"), np.ones(100), corpus=corpus, typical=typical).classes[1]
    assert yes.ppv.low is not None and yes.ppv.low < 0.35 and yes.npv.low is not None and yes.npv.low < 0.35
    marked = confusion(judge[:50], human[:50], ("no", "yes"), np.ones(50), corpus=corpus, typical=typical)
    found = marked.classes[1].sensitivity
    assert (
        found.value is None and found.reason == "no human label among the units that the judge labelled 'no'"
    )
    even = confusion(judge, human, ("no", "yes"), np.full(100, 50.0), corpus=corpus, typical=np.full(2, 50.0))
    alone = confusion(judge, human, ("no", "yes"), corpus=corpus)
    assert even.classes == alone.classes
