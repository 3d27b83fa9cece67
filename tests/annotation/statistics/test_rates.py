"""Rates corrected for the judge: hand calculation, identities between estimators, coverage."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from coaudit.annotation.statistics import Audit
from coaudit.annotation.statistics.audit import ERROR, UNCLEAR, any_mode
from coaudit.annotation.statistics.estimators import ESTIMATORS
from coaudit.annotation.statistics.intervals import MISSING, Floats
from coaudit.annotation.statistics.rates import choose, rate
from coaudit.annotation.statistics.strata import design_effect, shares

# 100 units: the judge says 1 of 20, 0 of 80. Labelled: 10 of each; 8 of the ten "1" are, 1 of the ten "0" is.
JUDGE = np.repeat([1, 0], [20, 80])
HUMAN = np.concatenate([[1] * 8, [0] * 2, [MISSING] * 10, [1], [0] * 9, [MISSING] * 70])
EVEN = np.repeat([0.5, 0.125], [20, 80])  # inclusion, even within each judge label
UNEVEN: Floats = np.linspace(0.1, 0.9, 100, dtype=np.float64)


def test_the_post_stratified_rate_is_the_judges_rate_corrected_by_ppv_and_for() -> None:
    found = rate(Audit(HUMAN, JUDGE, EVEN))
    assert found.rate == pytest.approx(0.2 * 0.8 + 0.8 * 0.1)
    assert (found.judge_rate, found.estimator) == (0.2, "post_stratified")
    assert (found.n_units, found.n_human, found.n_judged, found.n_unclear) == (100, 20, 100, 0)
    assert found.low is not None and found.high is not None and found.rate is not None
    assert found.low < found.rate < found.high


def test_optimal_ppi_is_post_stratification_for_a_binary_judge() -> None:
    human = HUMAN.copy()
    ppi = rate(Audit(human, JUDGE), "ppi")
    assert ppi.rate == pytest.approx(0.24)


def test_the_weighted_estimator_equals_post_stratification_where_inclusion_is_even_within_strata() -> None:
    assert rate(Audit(HUMAN, JUDGE, EVEN), "difference").rate == pytest.approx(0.24)


def test_a_stratum_without_a_find_may_hold_none_so_that_the_rate_may_be_all_that_was_seen() -> None:
    human, judge = np.full(200, MISSING), np.repeat([1, 0, UNCLEAR], [10, 174, 16])
    human[:10], human[20:60], human[-2:] = [1, 1, 1] + [0] * 7, 0, 0
    inclusion = np.where(np.arange(200) % 2, 0.25, 0.3)
    inclusion[:10] = 1
    found = rate(Audit(human, judge, inclusion), "difference")
    assert found.low == pytest.approx(3 / 200)
    assert found.high is not None and found.high > 3 / 200


def test_rogan_gladen_weighs_sensitivity_and_specificity_by_inclusion() -> None:
    # weights 2 and 8: Se = 16/(16+8), Sp = 72/(72+4); with them the corrected rate is the post-stratified one
    found = rate(Audit(HUMAN, JUDGE, EVEN), "rogan_gladen")
    se, sp = 16 / 24, 72 / 76
    assert found.rate == pytest.approx((0.2 + sp - 1) / (se + sp - 1))
    assert found.rate == pytest.approx(0.24)


def test_hajek_is_the_weighted_mean_of_the_human_labels() -> None:
    found = rate(Audit(HUMAN, None, EVEN))
    assert found.estimator == "hajek"
    assert found.rate == pytest.approx((8 * 2 + 8) / (10 * 2 + 10 * 8))


def test_without_a_judge_the_interval_is_jeffreys_on_the_finite_corpus() -> None:
    human = np.concatenate([[1] * 5, [0] * 45, [MISSING] * 100_000])
    found = rate(Audit(human))
    low, high = (special.betaincinv(5.5, 45.5, level) for level in (0.025, 0.975))
    assert found.estimator == "human_only"
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.01)


def test_a_corpus_labelled_whole_has_a_rate_without_uncertainty() -> None:
    human = np.repeat([1, 0], [3, 7])
    found = rate(Audit(human, np.repeat([1, 0], 5)))
    assert [found.low, found.rate, found.high] == pytest.approx([0.3, 0.3, 0.3])


@pytest.mark.parametrize(
    ("audit", "estimator"),
    [
        (Audit(HUMAN, JUDGE), "post_stratified"),
        (Audit(HUMAN, JUDGE, EVEN), "post_stratified"),
        (Audit(HUMAN, JUDGE, UNEVEN), "difference"),
        (Audit(HUMAN, JUDGE, EVEN, np.arange(100) // 4), "difference"),
        (Audit(HUMAN, JUDGE, EVEN, np.arange(100)), "post_stratified"),
        (Audit(HUMAN, None, UNEVEN), "hajek"),
        (Audit(HUMAN, None, None, np.arange(100) // 4), "hajek"),
        (Audit(HUMAN), "human_only"),
        (Audit(np.full(100, MISSING), JUDGE), "judge_only"),
    ],
)
def test_the_estimator_follows_from_the_design_and_says_why(audit: Audit, estimator: str) -> None:
    assert choose(audit)[0] == estimator
    assert rate(audit, resamples=50).design == choose(audit)[1]


def test_a_design_is_uneven_though_those_drawn_happen_to_be_equally_likely() -> None:
    inclusion = np.where(HUMAN == MISSING, np.where(np.arange(100) % 2, 0.4, 0.1), EVEN)
    assert rate(Audit(HUMAN, JUDGE, inclusion)).estimator == "difference"
    inclusion[HUMAN == MISSING] = np.nan
    assert rate(Audit(HUMAN, JUDGE, inclusion)).estimator == "post_stratified"


def test_a_judges_rate_says_on_how_many_units_it_failed_and_what_they_could_make_of_it() -> None:
    """Only a finding has to quote: of 40 with the code 20 failed, and .25 stood there alone."""
    judge = np.repeat([1, -3, 0], [20, 20, 60])
    row = rate(Audit(np.full(100, MISSING), judge))
    assert (row.judge_rate, row.n_judged) == (0.25, 80)
    assert row.reason == (
        "no human label tells how often the judge errs; it failed on 20 of 100: its rate is 0.200 if none of "
        "these has it, 0.400 if all have it"
    )


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        ([1] * 20 + [-2] * 50 + [-3] * 20 + [0] * 10, "it failed on 20 of 100: its rate is 0.400 if none"),
        ([1] * 20 + [-1] * 50 + [-3] * 20 + [0] * 10, "it failed on 20 of 50: its rate is 0.400 if none"),
        ([-3] * 20 + [-2] * 5, "it failed on 20 of 25"),
    ],
)
def test_a_judge_failed_on_so_many_of_the_units_that_it_was_asked_about(judge: list[int], words: str) -> None:
    """What it found unclear counts among these; and without an answer it has no rate."""
    reason = str(rate(Audit(np.full(len(judge), MISSING), np.array(judge))).reason)
    assert words in reason and ("its rate" in words or reason.endswith(words))


def test_without_human_labels_the_judges_rate_stands_uncorrected_beside_a_null() -> None:
    found = rate(Audit(np.full(100, MISSING), JUDGE))
    assert (found.judge_rate, found.rate, found.low) == (0.2, None, None)
    assert found.reason == "no human label tells how often the judge errs"
    assert rate(Audit(np.full(9, MISSING)), "hajek").reason == "no human label"


def test_the_judges_unclear_and_error_are_strata_and_not_its_no() -> None:
    judge = np.concatenate([JUDGE, np.full(10, UNCLEAR), np.full(10, ERROR)])
    human = np.concatenate([HUMAN, [1] * 5, [MISSING] * 5, [0] * 5, [MISSING] * 5])
    found = rate(Audit(human, judge))
    assert found.rate == pytest.approx((20 * 0.8 + 80 * 0.1 + 10 * 1) / 120)
    assert (found.judge_rate, found.n_judged, found.n_units) == (0.2, 100, 120)


@pytest.mark.parametrize("estimator", ["post_stratified", "difference"])
def test_a_judge_label_that_nobody_checked_makes_the_rate_null(estimator: str) -> None:
    judge = np.concatenate([JUDGE, np.full(12, ERROR)])
    found = rate(Audit(np.concatenate([HUMAN, np.full(12, MISSING)]), judge), estimator)
    assert found.rate is None and found.low is None
    assert found.reason == "no human label among the 12 units on which the judge failed"
    marked = rate(Audit(np.where(JUDGE == 1, MISSING, HUMAN), JUDGE), estimator)
    assert (marked.rate, marked.reason) == (None, "no human label among the 20 units that the judge marked")


@pytest.mark.parametrize("estimator", ["post_stratified", "difference"])
def test_a_few_units_that_judge_and_people_left_open_may_be_anything(estimator: str) -> None:
    judge = np.concatenate([JUDGE, [UNCLEAR] * 2, [ERROR] * 8])
    found = rate(Audit(np.concatenate([HUMAN, np.full(10, MISSING)]), judge), estimator)
    rest = rate(Audit(HUMAN, JUDGE), estimator)
    assert found.rate == pytest.approx(rest.rate)
    assert rest.low is not None and rest.high is not None
    assert (found.low, found.high) == pytest.approx((rest.low * 100 / 110, (rest.high * 100 + 10) / 110))
    assert "; 10 units without an answer of the judge and without a label taken to be" in found.design
    checked = np.concatenate([HUMAN, [1, 0], np.full(8, MISSING)])
    only_errors = rate(Audit(checked, judge), estimator)
    assert only_errors.rate is not None and "; 8 units without an answer" in only_errors.design
    assert only_errors.n_human == 22


def test_nothing_is_said_to_be_assumed_where_there_is_no_rate_or_no_interval() -> None:
    judge = np.concatenate([JUDGE, [UNCLEAR] * 2])
    human = np.concatenate([HUMAN, [MISSING] * 2])
    nobody = rate(Audit(np.where(judge == 1, MISSING, human), judge))
    assert (nobody.rate, "taken to be" in nobody.design) == (None, False)
    found = rate(Audit(human, judge, clusters=np.arange(len(judge)) // 2), "post_stratified")
    assert found.rate is not None and found.low is None
    assert found.design.endswith("taken to be like the others")


@pytest.mark.long
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("present", [0.0, 0.5, 1.0])
def test_the_interval_holds_the_rate_where_the_judge_left_open_what_nobody_checked(
    present: float, clustered: bool
) -> None:
    rng = np.random.default_rng(3)
    held = []
    for seed in range(150):
        chance = rng.beta(0.4, 3.6, 125)[np.arange(1000) // 8] if clustered else np.full(1000, 0.1)
        truth = rng.random(1000) < chance
        judge = (rng.random(1000) < np.where(truth, 0.8, 0.1)).astype(np.int64)
        is_open = np.zeros(1000, dtype=bool)
        is_open[rng.permutation(1000)[:20]] = True
        judge[is_open] = UNCLEAR
        truth[is_open] = rng.random(20) < present
        drawn = np.zeros(1000, dtype=bool)
        drawn[rng.permutation(1000)[:60]] = True
        human = np.where(drawn, truth, MISSING)
        found = rate(Audit(human, judge, clusters=np.arange(1000) // 8 if clustered else None), seed=seed)
        assert found.low is not None and found.high is not None
        held.append(found.low <= truth.mean() <= found.high)
    assert np.mean(held) > 0.91


def test_a_humans_unclear_is_left_out_counted_and_bounded_both_ways() -> None:
    human = np.concatenate([[1] * 6, [0] * 2, [UNCLEAR] * 2, [MISSING] * 90])
    found = rate(Audit(human))
    assert found.rate == pytest.approx(0.75)
    assert (found.n_human, found.n_unclear) == (8, 2)
    assert found.rate_if_unclear_absent == pytest.approx(0.6)
    assert found.rate_if_unclear_present == pytest.approx(0.8)


def test_a_category_is_present_where_any_mode_is_and_unknown_where_a_mode_was_not_answered() -> None:
    modes = np.array([[1, 0], [0, 0], [1, MISSING], [1, UNCLEAR], [MISSING, UNCLEAR], [0, ERROR]])
    assert any_mode(modes).tolist() == [1, 0, MISSING, UNCLEAR, UNCLEAR, ERROR]


def test_a_category_is_as_common_where_answers_are_missing_as_where_all_were_given() -> None:
    draw = np.random.default_rng(5)
    modes = (draw.random((4000, 5)) < 0.1).astype(np.int64)
    whole = any_mode(modes).mean()
    some = any_mode(np.where(draw.random(modes.shape) < 0.1, ERROR, modes))
    assert (some == ERROR).any() and some[some >= 0].mean() == pytest.approx(whole, abs=0.03)


def test_a_judge_no_better_than_chance_has_no_rogan_gladen_rate() -> None:
    found = rate(Audit(1 - JUDGE, JUDGE), "rogan_gladen")
    assert found.rate is None and found.reason is not None and "no better than chance" in found.reason


@pytest.mark.parametrize("label", [0, 1])
def test_a_judge_that_says_one_thing_of_all_units_has_no_rogan_gladen_rate_whatever_the_weights(
    label: int,
) -> None:
    """By rounding, Se + Sp was above 1 in some of these, and the rate 1.000 or 0.000."""
    draw = np.random.default_rng(0)
    for _ in range(50):
        human, inclusion = draw.integers(4, size=90) / 3, draw.uniform(0.1, 1, 90)
        found = rate(Audit(human, np.full(90, label), inclusion), "rogan_gladen", resamples=2)
        assert found.rate is None and found.reason is not None and "no better than chance" in found.reason


@pytest.mark.parametrize(
    ("audit", "estimator", "reason"),
    [
        (Audit(HUMAN), "ppi", "ppi needs a judge"),
        (Audit(HUMAN), "rogan_gladen", "rogan_gladen needs a judge"),
        (Audit(HUMAN, JUDGE, EVEN), "ppi", "ppi needs independent units drawn with equal probability"),
        (Audit(np.array([1, 0]), np.array([1, 0])), "ppi", "ppi needs three human labels, got 2"),
        (
            Audit(np.ones(5, dtype=np.int64), np.ones(5, dtype=np.int64)),
            "rogan_gladen",
            "needs human labels of both kinds",
        ),
    ],
)
def test_an_estimator_that_does_not_fit_the_data_says_so(audit: Any, estimator: str, reason: str) -> None:
    found = rate(audit, estimator)
    assert found.rate is None and found.reason is not None and reason in found.reason


def test_an_estimator_asked_for_against_the_design_is_said_to_be() -> None:
    assert rate(Audit(HUMAN, JUDGE), "human_only").design.startswith("asked for; post_stratified fits")
    with pytest.raises(ValueError, match="unknown estimator 'magic', expected one of post_stratified"):
        rate(Audit(HUMAN, JUDGE), "magic")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judge": np.zeros(3)}, "one value for each of 100 units, got 3"),
        ({"inclusion": np.zeros(100)}, "above 0: a unit never drawn"),
        ({"human": np.full(100, 2)}, r"must be in 0\.\.1, MISSING"),
    ],
)
def test_an_audit_refuses_what_has_no_meaning(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Audit(**({"human": HUMAN, "judge": JUDGE} | change))


def covers(rng: np.random.Generator, clustered: bool, uneven: bool) -> bool:
    """One corpus of 1,000 units with a code of about 5 % and an imperfect judge; 120 drawn for people."""
    n, size = 1000, 5
    clusters: NDArray[np.int64] | None = np.repeat(np.arange(n // size), size) if clustered else None
    chance = rng.beta(0.2, 3.8, n // size)[np.arange(n) // size] if clustered else np.full(n, 0.05)
    truth = (rng.random(n) < chance).astype(np.int64)
    judge = (rng.random(n) < np.where(truth == 1, 0.7, 0.03)).astype(np.int64)
    wish = np.where(judge == 1, 0.6, 0.08) * (1 + uneven * rng.random(n))
    inclusion = np.minimum(1, wish * 120 / wish.sum())
    human = np.where(rng.random(n) < inclusion, truth, MISSING)
    audit = Audit(human, judge, inclusion, clusters)
    value, interval = ESTIMATORS[choose(audit)[0]](audit, 400, 0)
    assert value is not None and interval.low is not None and interval.high is not None
    return bool(interval.low <= truth.mean() <= interval.high)


@pytest.mark.slow
@pytest.mark.parametrize(("clustered", "uneven"), [(False, False), (False, True), (True, True)])
def test_the_interval_holds_the_corpus_rate_in_95_of_100_samples(clustered: bool, uneven: bool) -> None:
    rng = np.random.default_rng(1)
    held = np.mean([covers(rng, clustered, uneven) for _ in range(300)])
    assert 0.925 <= held <= 0.985


def test_a_label_that_is_the_mean_of_several_counts_as_such() -> None:
    human = np.concatenate([[1.0] * 4, [0.5] * 8, [0.0] * 88, np.full(900, MISSING)])
    found = rate(Audit(human))
    assert found.rate == pytest.approx(0.08)
    whole = rate(Audit(np.where(human == 0.5, 1, human)))
    assert (
        found.low is not None and found.high is not None and whole.low is not None and whole.high is not None
    )
    # 12 of 100 units have a positive label: relative to its rate, it is known about as well as 12 are.
    assert 0.75 < (found.high - found.low) / 0.08 / ((whole.high - whole.low) / 0.12) < 1.25


def width(audit: Audit, estimator: str | None = None) -> float:
    found = rate(audit, estimator)
    assert found.low is not None and found.high is not None
    return found.high - found.low


@pytest.mark.parametrize("estimator", ["post_stratified", "difference", "hajek", "human_only", "ppi"])
def test_one_unit_on_which_people_differ_hardly_changes_an_interval(estimator: str) -> None:
    """It took the whole correction for the finite corpus away: the interval of 200 of 250 units was 2.2 times
    as wide."""
    human = np.where(np.arange(250) < 200, np.arange(250) % 4 == 0, MISSING)
    judge = (np.arange(250) % 5 == 0).astype(np.int64)
    agreed = width(Audit(human, judge), estimator)
    for number, most in ((1, 1.05), (2, 1.06), (10, 1.3)):
        differing = human.astype(np.float64)
        differing[np.flatnonzero(human == 0)[:number]] = 0.5
        assert 0.95 < width(Audit(differing, judge), estimator) / agreed < most


@pytest.mark.parametrize("estimator", ["post_stratified", "difference", "hajek"])
def test_of_a_corpus_that_is_labelled_whole_the_variance_between_people_stays(estimator: str) -> None:
    """s²/m of each unit: ½/2 where two people differ, ⅓/3 where one of three does; of single labels the mean
    s² of the others, 0 where gold settled it."""
    human = np.concatenate([np.tile([0.0, 1.0], 180), np.full(40, 0.5)])
    found = width(Audit(human, people=np.full(400, 2)), estimator)
    assert found == pytest.approx(2 * 1.96 * (40 * 0.25) ** 0.5 / 400, rel=0.05)
    thirds = width(Audit(np.where(human == 0.5, 1 / 3, human), people=np.full(400, 3)), estimator)
    assert thirds == pytest.approx(2 * 1.96 * (40 / 9) ** 0.5 / 400, rel=0.05)
    people = np.where(np.arange(400) < 200, 1, 2)  # 40 of 200 pairs differ: s² is .1 on average
    alone = width(Audit(human, people=people), estimator)
    assert alone == pytest.approx(2 * 1.96 * (40 * 0.25 + 200 * 0.1) ** 0.5 / 400, rel=0.05)
    settled = width(Audit(human, people=np.where(np.arange(400) < 200, 0, 2)), estimator)
    assert settled == pytest.approx(found, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("judged", [False, True])
def test_intervals_hold_the_rate_where_people_differ(fraction: float, judged: bool) -> None:
    """Without the correction they held it in .97 to 1 where .6 of the units or more had labels."""
    rng, held = np.random.default_rng(3), []
    for _ in range(300):
        one = np.where(rng.random(400) < 0.3, 0.5, rng.random(400) < 0.3)  # of what people say
        pairs = rng.random((2, 400)) < one
        people = np.where(rng.random(400) < 0.5, 1, 2)
        human = np.where(people == 1, pairs[0], pairs.mean(0))
        human[rng.permutation(400)[round(400 * fraction) :]] = MISSING
        judge = (rng.random(400) < np.where(one > rng.random(400), 0.8, 0.1)).astype(np.int64)
        found = rate(Audit(human, judge if judged else None, people=people), resamples=1000)
        assert found.low is not None and found.high is not None
        held.append(found.low <= one.mean() <= found.high)
    assert 0.92 <= np.mean(held) <= 0.98


@pytest.mark.parametrize("estimator", ["post_stratified", "difference", "hajek", "human_only"])
def test_a_corpus_without_a_positive_label_may_still_have_some(estimator: str) -> None:
    human = np.concatenate([np.zeros(100), np.full(900, MISSING)])
    found = rate(Audit(human, np.zeros(1000, dtype=np.int64)), estimator)
    assert found.rate == 0 and found.low is not None and found.high is not None
    assert found.low == pytest.approx(0, abs=1e-4) and 0.01 < found.high < 0.04


@pytest.mark.parametrize("estimator", ["post_stratified", "human_only", "rogan_gladen"])
def test_what_supposes_independent_units_has_no_interval_of_units_within_trajectories(estimator: str) -> None:
    rng = np.random.default_rng(5)
    truth = (rng.random(400) < 0.4).astype(np.int64)
    judge = np.where(rng.random(400) < 0.9, truth, 1 - truth)
    human = np.where(np.arange(400) < 200, truth, MISSING)
    apart = rate(Audit(human, judge), estimator)
    within = rate(Audit(human, judge, clusters=np.arange(400) // 10), estimator)
    assert within.rate == apart.rate and apart.low is not None
    assert (within.low, within.high) == (None, None)
    assert within.reason and "independent" in within.reason


@pytest.mark.parametrize("estimator", ["post_stratified", "human_only"])
def test_what_does_not_weigh_has_no_rate_of_units_drawn_unevenly(estimator: str) -> None:
    human = np.where(np.arange(100) < 50, np.arange(100) % 2, MISSING)
    inclusion = np.where(np.arange(100) % 2 == 0, 0.2, 0.8)
    found = rate(Audit(human, np.zeros(100, dtype=np.int64), inclusion), estimator)
    assert (found.rate, found.low) == (None, None)
    assert found.reason and "drawn unevenly" in found.reason


def test_ppi_has_no_interval_where_no_positive_was_seen() -> None:
    human = np.concatenate([np.zeros(100), np.full(900, MISSING)])
    found = rate(Audit(human, np.zeros(1000, dtype=np.int64)), "ppi")
    assert (found.rate, found.low, found.high) == (0, None, None)
    assert found.reason == "ppi has no interval where the judge fits every label seen"


def test_a_stratified_sample_varies_only_within_its_strata() -> None:
    # every unit of stratum 1 has the code, none of stratum 0: 50 labels of each of 500
    human = np.tile(np.concatenate([np.ones(50), np.full(450, MISSING)]), 2)
    human[500:] = np.where(human[500:] == MISSING, MISSING, 0)
    design = np.repeat([1, 0], 500)
    within, without = rate(Audit(human, design=design)), rate(Audit(human), "hajek")
    assert within.estimator == "hajek" and within.design == "a stratified sample: variance within its strata"
    assert within.rate == without.rate == 0.5
    assert within.low and within.high and without.low and without.high
    assert within.high - within.low < 0.3 * (without.high - without.low)


def test_strata_weigh_by_the_units_they_hold_however_many_of_them_are_labelled() -> None:
    """All of stratum 1 has the code, none of stratum 0; of an unfinished sample 3 and 9 are labelled."""
    human, design = np.full(600, float(MISSING)), np.repeat([1, 0], 300)
    human[:3], human[300:309] = 1, 0
    found = rate(Audit(human, design=design))
    assert (found.estimator, found.rate) == ("hajek", 0.5)
    assert found.low and found.high and found.high - found.low > 0.15


@pytest.mark.parametrize("where", ["no label in a stratum", "a stratum not known"])
def test_strata_that_are_not_known_or_hold_no_label_tell_nothing(where: str) -> None:
    human, design = np.full(600, float(MISSING)), np.repeat([1, 0], 300)
    human[:30] = 1
    if where == "a stratum not known":
        human[300:330], design[599] = 0, -1
    assert not Audit(human, design=design).stratified


def test_a_stratum_that_shows_none_lifts_no_rate_from_below() -> None:
    """None of 40 in a stratum of 950, 16 of 20 in one of 50: the rate may be .05 times the least of those."""
    human, design = np.full(1000, float(MISSING)), np.repeat([0, 1], [950, 50])
    human[:40], human[950:966], human[966:970] = 0, 1, 0
    inclusion = np.where(design == 0, 40 / 950, 20 / 50)
    found = rate(Audit(human, None, inclusion, design=design))
    assert found.estimator == "hajek"
    assert found.rate == pytest.approx(0.04)
    assert found.low and found.high and found.low < 0.05 * 0.7 and found.high > 0.05


def test_the_stratified_share_weighs_strata_by_their_share() -> None:
    """Four of 40 units labelled, two present, and six of 30, two present."""
    strata, human = np.repeat([0, 1], [40, 30]), np.full(70, MISSING)
    human[:4], human[40:46] = [1, 0, 0, 1], [1, 0, 0, 0, 1, 0]
    found = rate(Audit(human, None, np.repeat([0.1, 0.2], [40, 30]), design=strata), "hajek")
    assert found.rate == pytest.approx((10 * 2 + 5 * 2) / 70)


def test_ppi_is_that_of_ppi_py_but_for_its_variance_of_the_score() -> None:
    # ppi_py 0.2.3: ppi_mean_pointestimate(Y, Yhat, Yhat_unlabeled) of these = .192214; its λ rests on the
    # variance over both parts of the corpus, ours on that of the labelled units.
    judge = np.repeat([1, 0, 1, 0], [44, 156, 160, 640])
    human = np.repeat([1, 0, 1, 0, MISSING], [35, 9, 6, 150, 800])
    assert rate(Audit(human, judge), "ppi").rate == pytest.approx(0.192214, abs=1e-3)


def test_ppi_of_a_scale_takes_a_missing_number_of_the_judge_for_the_mean_of_the_others() -> None:
    """One unclear answer among a thousand, and there was no mean at all."""
    rng = np.random.default_rng(3)
    truth = rng.choice(5, 200) / 4
    score = np.clip(truth + rng.choice([-0.25, 0, 0.25], 200), 0, 1)
    score[[5, 150]] = np.nan
    judge = np.where(np.isnan(score), UNCLEAR, np.nan_to_num(4 * score)).astype(np.int64)
    human, labelled = np.where(np.arange(200) < 40, truth, MISSING), np.arange(200) < 40
    found = rate(Audit(human, judge, score=score, spread=np.zeros(200)), "ppi")
    filled = np.where(np.isnan(score), np.nanmean(score), score)
    slope, level = np.polyfit(filled[labelled], truth[labelled], 1)
    assert found.rate == pytest.approx(slope * filled.mean() + level)
    assert found.low is not None and found.high is not None and found.low < truth.mean() < found.high
    assert found.judge_rate == pytest.approx(np.nanmean(score))


def test_half_a_trajectory_whose_units_are_alike_is_added_to_those_drawn() -> None:
    residuals, clusters = np.array([1, 1, -1, -1, 0.5, -0.5, 0, 0]), np.repeat(np.arange(4), 2)
    # Sums of 2, −2, 0, 0 are 8 · 4/3 by trajectory, 4.5 by unit.
    seen = 8 * 4 / 3 / 4.5
    assert design_effect(residuals, clusters) == pytest.approx((4 * seen + 0.5 * 2) / 4.5)
    assert design_effect(np.zeros(8), clusters) == pytest.approx(2)
    assert design_effect(residuals, None) == 1
    assert design_effect(residuals, clusters, 5) == pytest.approx((4 * seen + 0.1 * 2) / 4.1)
    assert design_effect(residuals, clusters, 4) == pytest.approx(seen)


def test_few_trajectories_widen_an_interval_by_t() -> None:
    """Four of 40 labelled: t of three degrees of freedom is 3.182, z 1.96."""
    labels, clusters = np.tile([1.0, 0.0], 8), np.repeat(np.arange(4), 4)
    one, every = shares(labels, np.ones(16), np.zeros(16, int), clusters, np.ones(1), every=4), 16.0
    assert one.sizes[0] - 1 == pytest.approx(every / (3.182446 / 1.959964) ** 2, rel=1e-5)


@pytest.mark.parametrize("with_judge", [False, True])
def test_sessions_that_are_alike_throughout_tell_no_more_than_so_many_units(with_judge: bool) -> None:
    """Six of 60 whole sessions of ten units; of a fifth of the sessions all units have the code."""
    rng, held, of = np.random.default_rng(4), 0, 400
    clusters = np.repeat(np.arange(60), 10)
    for _ in range(of):
        true = (rng.random(60) < 0.2).astype(np.int64)[clusters]
        judge = np.where(rng.random(600) < 0.1, 1 - true, true) if with_judge else None
        asked = np.isin(clusters, rng.permutation(60)[:6])
        found = rate(Audit(np.where(asked, true, MISSING), judge, np.full(600, 0.1), clusters), resamples=300)
        held += found.low is None or found.high is None or found.low <= true.mean() <= found.high
    assert held / of > 0.93


def test_no_find_in_all_trajectories_says_that_it_is_rare() -> None:
    """No positive among 300 units of all eight trajectories: no other may be full of them."""
    asked = np.random.default_rng(0).permutation(800) < 300
    human = np.where(asked, 0, MISSING)
    found = rate(Audit(human, None, np.full(800, 3 / 8), np.repeat(np.arange(8), 100)))
    assert found.high is not None and found.high < 0.02


def test_one_trajectory_of_many_tells_less_than_two() -> None:
    """Of 60 of ten units each; nobody has found the code."""
    clusters, widths = np.repeat(np.arange(60), 10), []
    for sampled in (1, 2):
        human = np.where(clusters < sampled, 0, MISSING)
        found = rate(Audit(human, None, np.full(600, sampled / 60), clusters))
        assert found.low == 0 and found.high is not None
        widths.append(found.high)
    assert widths[0] > widths[1]


@pytest.mark.parametrize("with_judge", [False, True])
def test_units_of_the_only_trajectory_there_is_are_independent(with_judge: bool) -> None:
    """300 of the 1,000 units of one session: there is no other that could be unlike it."""
    rng = np.random.default_rng(0)
    true = (rng.random(1000) < 0.3).astype(np.int64)
    judge = np.where(rng.random(1000) < 0.1, 1 - true, true) if with_judge else None
    human = np.where(rng.permutation(1000) < 300, true, MISSING)
    within = rate(Audit(human, judge, np.full(1000, 0.3), np.zeros(1000, dtype=np.int64)))
    assert within == rate(Audit(human, judge, np.full(1000, 0.3)))


def test_units_of_all_trajectories_lack_none_that_is_alike() -> None:
    """300 of 800 units that are independent, of all eight trajectories: t of seven degrees widens alone."""
    rng = np.random.default_rng(7)
    clusters, widths = np.repeat(np.arange(8), 100), []
    for _ in range(40):
        true = rng.random(800) < 0.2
        asked = np.isin(np.arange(800), rng.choice(800, 300, replace=False))
        found = rate(Audit(np.where(asked, true, MISSING), None, np.full(800, 3 / 8), clusters))
        assert found.low is not None and found.high is not None
        widths.append(found.high - found.low)
    independent = 2 * 1.96 * (0.2 * 0.8 / 300 * (1 - 300 / 800)) ** 0.5
    assert np.mean(widths) < 1.45 * independent


def test_units_drawn_for_certain_do_not_speak_for_those_that_the_sample_lacks() -> None:
    """The judge marks 50 units of a part that was all labelled, rightly, and 250 of the rest, which was drawn
    with .01: none of these, so that they may all lack the code."""
    part, marked = np.arange(5000) < 100, np.isin(np.arange(5000) % 100, [0, 2, 4, 6, 8])
    judge = np.where(part, np.arange(5000) < 50, marked).astype(np.int64)
    human = np.where(part, judge, MISSING)
    human[np.flatnonzero(~part & ~marked)[::100]] = 0
    found = rate(Audit(human, judge, np.where(part, 1.0, 0.01)))
    assert found.estimator == "difference" and found.n_human == 147
    assert found.low is not None and found.low < 0.015 and found.rate == pytest.approx(295 / 5000)


@pytest.mark.parametrize("with_judge", [False, True])
def test_intervals_hold_where_a_small_part_was_labelled_whole(with_judge: bool) -> None:
    """10 of 100 units for certain, half of them with the code, of the others a tenth, nearly all with it."""
    rng = np.random.default_rng(3)
    part, covered = np.arange(100) < 10, 0
    for seed in range(200):
        true = (rng.random(100) < np.where(part, 0.5, 0.95)).astype(np.int64)
        judge = np.where(rng.random(100) < 0.1, 1 - true, true)
        inclusion = np.where(part, 1.0, 0.1)
        human = np.where(rng.random(100) < inclusion, true, MISSING)
        found = rate(Audit(human, judge if with_judge else None, inclusion), resamples=500, seed=seed)
        assert found.low is not None and found.high is not None
        covered += found.low <= true.mean() <= found.high
    assert covered >= 0.93 * 200


@pytest.mark.parametrize(("sizes", "labels"), [([10] * 40, [1] * 40), ([30] * 8 + [40], [8] * 8 + [1])])
def test_strata_with_one_label_of_several_units_are_joined(sizes: list[int], labels: list[int]) -> None:
    """One label shows no variance within its stratum: intervals held the rate in .62 and .79 of samples."""
    rng = np.random.default_rng(4)
    numbers, drawn = np.array(sizes), np.array(labels)
    design = np.repeat(np.arange(len(numbers)), numbers)
    covered = 0
    for seed in range(100):
        true = (rng.random(len(design)) < rng.uniform(0, 0.55, len(numbers))[design]).astype(np.int64)
        places = np.concatenate(
            [rng.choice(np.flatnonzero(design == h), n, replace=False) for h, n in enumerate(drawn)]
        )
        human = np.full(len(design), MISSING)
        human[places] = true[places]
        found = rate(Audit(human, None, (drawn / numbers)[design], design=design), resamples=500, seed=seed)
        assert found.estimator == "hajek" and found.low is not None and found.high is not None
        means = np.bincount(design[places], weights=true[places]) / drawn
        assert found.rate == pytest.approx(numbers @ means / numbers.sum())
        covered += found.low <= true.mean() <= found.high
    assert covered >= 91


@pytest.mark.parametrize(("heavy", "widest"), [(1, 0.06), (5, 0.07), (50, 0.25)])
def test_units_that_were_hardly_ever_drawn_count_for_no_more_than_they_are(heavy: int, widest: float) -> None:
    """One of 1,000 units with a chance of 1e-6, which the sample lacks: the interval went up to .88."""
    chances = np.where(np.arange(1000) < heavy, 1e-6 if heavy == 1 else 1e-3, 0.1)
    judge = (np.arange(1000) % 10 == 3).astype(np.int64)
    human = np.where(np.arange(1000) % 9 == 4, judge, MISSING)
    human[:heavy] = MISSING
    found = rate(Audit(human, judge, chances))
    assert found.estimator == "difference" and found.low is not None and found.high is not None
    assert found.high - found.low < widest
    assert heavy < 50 or (found.low < 0.09 and found.high > 0.13)  # they may all lack the code, or have it


def test_units_drawn_for_certain_do_not_make_the_others_better_known() -> None:
    """500 of 2,000 units were all labelled, of the rest .2: its variance is Σ(1 − π)/π²·r², 300·20·¼ where
    half have the code. It shrank by 800/2,000 in place of 500/2,000, and .88 to .93 of intervals held the
    rate."""
    human = np.full(2000, MISSING)
    human[:800] = np.arange(800) % 2
    inclusion = np.where(np.arange(2000) < 500, 1.0, 0.2)
    value, interval = ESTIMATORS["hajek"](Audit(human, None, inclusion), 20_000, 0)
    assert value == 0.5 and interval.low is not None and interval.high is not None
    assert (interval.high - interval.low) / 2 == pytest.approx(1.96 * (300 * 20 / 4) ** 0.5 / 2000, rel=0.03)
