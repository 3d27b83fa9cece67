"""Corrected comparisons: by hand, and that a judge that errs more in one condition is no finding."""

from dataclasses import replace

import numpy as np
import pytest

from coaudit.annotation.statistics.audit import UNCLEAR, Audit
from coaudit.annotation.statistics.corrected import FORMS, arm, corrected
from coaudit.annotation.statistics.estimate import UNIT, difference, totals
from coaudit.annotation.statistics.intervals import MISSING
from coaudit.annotation.statistics.rates import rate


def audit(flagged: int, clear: int, yes_flagged: int, yes_clear: int, labelled: int) -> Audit:
    """A judge's `flagged` and `clear` units, `labelled` ones of each checked by people, so many found yes."""
    judge = np.repeat([1, 0], [flagged, clear])
    human = np.full(flagged + clear, MISSING)
    for start, yes in ((0, yes_flagged), (flagged, yes_clear)):
        human[start : start + labelled] = np.arange(labelled) < yes
    inclusion = np.where(judge == 1, labelled / flagged, labelled / clear)
    return Audit(human, judge, inclusion)


def with_unanswered(own: Audit, n: int) -> Audit:
    """The same with `n` more units that the judge found unclear and nobody labelled."""
    assert own.judge is not None and own.inclusion is not None
    human = np.append(own.human, np.full(n, MISSING))
    return Audit(human, np.append(own.judge, np.full(n, UNCLEAR)), np.append(own.inclusion, np.full(n, 0.25)))


def names(n: int, start: int = 0) -> np.ndarray:  # type: ignore[type-arg]
    return np.arange(start, start + n)


def test_each_arm_is_corrected_by_its_own_labels() -> None:
    first, second = audit(100, 200, 30, 2, 40), audit(60, 240, 30, 2, 40)
    row = corrected(first, second, (names(300), names(300, 300)))
    assert row.first == pytest.approx(1 / 3 * 30 / 40 + 2 / 3 * 2 / 40)
    assert row.second == pytest.approx(0.2 * 30 / 40 + 0.8 * 2 / 40)
    assert row.n == 160
    # Variance: Σ W²·f(1 − f)/(n − 1) or a little more, and the spread of the judge's labels over N.
    error = 0.0
    for share, f, n in ((1 / 3, 0.75, 300), (0.2, 0.75, 300)):
        error += share**2 * f * (1 - f) / 39 + (1 - share) ** 2 * 0.05 * 0.95 / 39
        error += share * (1 - share) * (f - 0.05) ** 2 / n
    assert row.low is not None and row.high is not None
    assert (row.high - row.low) / 2 == pytest.approx(1.98 * error**0.5, rel=0.05)


def test_ppi_with_a_judge_of_two_labels_is_the_post_stratified_form() -> None:
    first, second = audit(100, 200, 30, 2, 40), audit(60, 240, 25, 4, 40)
    clusters = names(300), names(300, 300)
    one, other = (corrected(first, second, clusters, form=form) for form in ("post_stratified", "ppi"))
    assert other.effect == pytest.approx(one.effect) and other.p_value == pytest.approx(one.p_value, rel=0.05)


@pytest.mark.slow
def test_a_judge_that_errs_more_in_one_condition_is_no_finding() -> None:
    rng = np.random.default_rng(0)
    found, raw = [], []
    for _ in range(300):
        arms = []
        for specificity in (0.95, 0.80):
            true = rng.random(300) < 0.1
            judge = np.where(true, rng.random(300) < 0.8, rng.random(300) > specificity).astype(int)
            human = np.where(rng.random(300) < 0.25, true.astype(int), MISSING)
            arms.append(Audit(human, judge, np.full(300, 0.25)))
        row = corrected(arms[0], arms[1], (names(300), names(300, 300)))
        found.append(row.p_value is not None and row.p_value < 0.05)
        raw.append(abs(np.subtract(*(arm.judge.mean() for arm in arms if arm.judge is not None))) > 0.06)
    assert np.mean(raw) > 0.9
    assert np.mean(found) < 0.08


def sessions(rng: np.random.Generator, labelled: int) -> tuple[Audit, np.ndarray]:  # type: ignore[type-arg]
    """60 trajectories of 25 units, alike within each, so many of them labelled whole."""
    clusters = np.repeat(np.arange(60), 25)
    true = rng.random(1500) < rng.beta(0.7, 1.633, 60)[clusters]
    judge = np.where(true, rng.random(1500) < 0.8, rng.random(1500) < 0.1).astype(np.int64)
    asked = np.isin(clusters, rng.choice(60, labelled, replace=False))
    return Audit(np.where(asked, true, MISSING), judge, np.full(1500, labelled / 60), clusters), clusters


@pytest.mark.slow
def test_few_sessions_that_people_labelled_whole_are_as_many_as_they_are() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(300):
        (first, here), (second, there) = sessions(rng, 5), sessions(rng, 5)
        row = corrected(first, second, (here, there + 60))
        found.append(row.p_value is not None and row.p_value < 0.05)
    assert np.mean(found) < 0.08


def test_long_sessions_beside_short_ones_are_fewer_than_they_are() -> None:
    clusters = np.repeat(np.arange(12), [20, *[5] * 11])
    judge = np.arange(75) % 2
    human = np.where(clusters < 6, (np.arange(75) % 3 > 0), MISSING)
    found = arm(Audit(human, judge, np.full(75, 0.5), clusters), clusters, "post_stratified")
    assert found.checked == 6
    assert found.df == pytest.approx(45**2 / (20**2 + 5 * 5**2) - 1)


def test_of_fewer_than_four_labelled_sessions_nothing_is_decided() -> None:
    rng = np.random.default_rng(1)
    (first, here), (second, there) = sessions(rng, 3), sessions(rng, 20)
    row = corrected(first, second, (here, there + 60))
    assert (row.p_value, row.low, row.reason) == (None, None, "too few to decide: 3 independent, 4 needed")


def test_a_label_of_the_judge_that_nobody_checked_leaves_the_difference_open() -> None:
    first = audit(100, 200, 30, 2, 40)
    second = Audit(np.where(np.arange(300) < 50, 1, MISSING), np.repeat([1, 0], [100, 200]))
    row = corrected(first, second, (names(300), names(300, 300)))
    assert row.effect is None
    assert row.reason == "second sample: no human label among the 200 units that the judge did not mark"


def test_a_few_units_that_judge_and_people_left_open_may_be_anything_in_either_arm() -> None:
    first, second = audit(100, 200, 30, 2, 40), audit(60, 240, 10, 2, 40)
    plain = corrected(first, second, (names(300), names(300, 300)))
    wide = with_unanswered(first, 10)
    row = corrected(wide, second, (names(310), names(310, 310)[:300]))
    assert row.effect == pytest.approx(plain.effect) and row.first == pytest.approx(plain.first)
    known = 300 / 310
    assert plain.first is not None and plain.low is not None and plain.high is not None
    assert row.low is not None and row.high is not None and row.p_value is not None
    assert row.low == pytest.approx(plain.low - (1 - known) * plain.first, abs=0.002)
    assert row.high == pytest.approx(plain.high + (1 - known) * (1 - plain.first), abs=0.002)
    assert plain.p_value is not None and plain.p_value < row.p_value < 0.05
    assert row.test == f"{plain.test}, unanswered units either way"
    same = corrected(wide, first, (names(310), names(310, 310)[:300]))
    assert same.p_value == 1


def test_an_unknown_form_names_the_choices() -> None:
    with pytest.raises(ValueError, match="expected one of post_stratified, ppi"):
        corrected(audit(9, 9, 1, 1, 5), audit(9, 9, 1, 1, 5), (names(18), names(18)), form="best")


def test_a_stratified_sample_has_one_rate_in_comparisons_and_in_rates() -> None:
    """.6 of 300 units and .1 of 100, of each of which 20 were drawn; by 1/π of both arms together the arm's
    strata would weigh as the sample holds them, not as they are."""
    strata = np.repeat([0, 1], [300, 100])
    human = np.full(400, MISSING)
    human[:20], human[300:320] = np.arange(20) < 12, np.arange(20) < 2
    inclusion = np.where(strata == 0, 0.08, 0.15)
    one = Audit(human, inclusion=inclusion, design=strata)
    row = corrected(one, one, (names(400), names(400, 400)))
    assert row.first == pytest.approx(0.75 * 0.6 + 0.25 * 0.1)
    assert row.first == pytest.approx(rate(one, resamples=2).rate)
    assert row.low is not None and row.high is not None and row.low < 0 < row.high
    by_ppi = corrected(one, one, (names(400), names(400, 400)), form="ppi")
    assert by_ppi == row, "without a judge there is but one form"


def alone(n: int, labelled: int, yes: int) -> Audit:
    """`n` units of which people found `yes` of the `labelled`; no judge."""
    human = np.full(n, MISSING)
    human[:labelled] = np.arange(labelled) < yes
    return Audit(human)


@pytest.mark.parametrize(
    ("yes", "effect", "least"), [((0, 0), 0.0, 0.1), ((3, 0), 0.1, 0.2), ((0, 3), -0.1, 0.2)]
)
def test_without_a_judge_the_interval_allows_for_positives_that_were_not_seen(
    yes: tuple[int, int], effect: float, least: float
) -> None:
    """By t alone 0 of 30 and 0 of 30 differed by .03 at the most, where Newcombe's limits are at .11."""
    row = corrected(alone(200, 30, yes[0]), alone(200, 30, yes[1]), (names(200), names(200, 200)))
    assert row.effect == pytest.approx(effect) and row.low is not None and row.high is not None
    assert row.low <= 0 <= row.high and max(-row.low, row.high) > least
    shares = (
        totals(np.arange(30) < count, clusters=names(30, start), bounds=UNIT)
        for count, start in zip(yes, (0, 30), strict=True)
    )
    other = difference(*shares)
    assert other.low is not None and other.high is not None
    assert row.low == pytest.approx(other.low, abs=0.02) and row.high == pytest.approx(other.high, abs=0.02)


@pytest.mark.parametrize("form", FORMS)
def test_a_judge_that_says_one_thing_of_all_units_narrows_no_interval(form: str) -> None:
    """Beside its labels, which tell nothing, 0 of 30 and 0 of 30 differed by .03 at the most again."""
    arms = alone(200, 30, 0), alone(200, 30, 0)
    judged = [replace(arm, judge=np.zeros(200, dtype=np.int64)) for arm in arms]
    own, beside = (
        corrected(one, two, (names(200), names(200, 200)), form=form) for one, two in (arms, judged)
    )
    assert beside.low is not None and beside.low < -0.1
    assert (beside.effect, beside.low, beside.high) == pytest.approx((own.effect, own.low, own.high))
    assert beside.p_value == pytest.approx(own.p_value) and beside.test.startswith("corrected rates")


def test_of_strata_the_interval_joins_those_of_the_two_rates() -> None:
    """As of labels with uneven weights it was twice as wide, and held 0 in .9 of samples that differ."""
    arms = []
    for yes in (12, 1):
        human = np.full(1000, float(MISSING))
        human[:40], human[100:140] = 0, 0
        human[:yes], human[100 : 100 + yes // 4] = 1, 1
        design = np.repeat([0, 1], [100, 900])
        arms.append(Audit(human, inclusion=np.repeat([0.4, 40 / 900], [100, 900]), design=design))
    row = corrected(arms[0], arms[1], (names(1000), names(1000, 1000)))
    one, other = rate(arms[0]), rate(arms[1])
    assert (
        one.rate and one.low and one.high and other.rate and other.high is not None and other.low is not None
    )
    assert row.effect == pytest.approx(one.rate - other.rate) and row.low is not None and row.high is not None
    assert row.low == pytest.approx(row.effect - np.hypot(one.rate - one.low, other.high - other.rate))
    assert row.high == pytest.approx(row.effect + np.hypot(one.high - one.rate, other.rate - other.low))


@pytest.mark.slow
def test_without_a_judge_intervals_contain_a_difference_of_rare_codes() -> None:
    rng, found = np.random.default_rng(2), []
    for _ in range(300):
        arms = [alone(200, 30, rng.binomial(30, rate)) for rate in (0.05, 0.005)]
        row = corrected(arms[0], arms[1], (names(200), names(200, 200)))
        assert row.low is not None and row.high is not None
        found.append(row.low <= 0.045 <= row.high)
    assert np.mean(found) > 0.95
