"""The estimator: textbook cases against the libraries, and what no interval may claim."""

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coaudit.annotation.statistics.estimate import (
    UNIT,
    Bounds,
    Estimate,
    difference,
    estimate,
    mean,
    ratio,
    share,
    totals,
)
from coaudit.annotation.statistics.intervals import wilson

COUNT: Bounds = (0.0, inf)


def limits(row: Estimate) -> tuple[float, float]:
    assert row.low is not None and row.high is not None, row.reason
    return row.low, row.high


@pytest.mark.library
@pytest.mark.parametrize(("yes", "n"), [(0, 5), (1, 10), (3, 20), (40, 40), (17, 200)])
def test_the_share_of_even_independent_rows_has_the_interval_of_agresti_and_coull(yes: int, n: int) -> None:
    from statsmodels.stats.proportion import proportion_confint

    row = share(np.arange(n) < yes)
    expected = np.clip(proportion_confint(yes, n, method="agresti_coull"), 0, 1)
    assert limits(row) == pytest.approx(tuple(expected))
    low, high, *_ = wilson(yes, n)
    assert low is not None and high is not None
    assert limits(row)[0] <= low and high <= limits(row)[1]
    assert row.effective == n


@pytest.mark.library
def test_an_unbounded_mean_has_students_interval() -> None:
    from scipy import stats

    values = np.random.default_rng(0).normal(3, 2, 17)
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    assert limits(mean(values)) == pytest.approx((expected.low, expected.high))


def left_out(y: NDArray[Any], x: NDArray[Any], stratum: NDArray[Any]) -> float:
    """The stratified jackknife's variance, cluster by cluster."""
    variance, whole = 0.0, y.sum() / x.sum()
    for c in range(len(y)):
        own = stratum == stratum[c]
        n = own.sum()
        weights = np.where(own, n / (n - 1), 1.0)
        weights[c] = 0
        variance += (n - 1) / n * ((weights @ y) / (weights @ x) - whole) ** 2
    return variance


def test_the_variance_is_the_jackknifes() -> None:
    rng = np.random.default_rng(1)
    y, x, weights = rng.poisson(3, 60) * 1.0, rng.poisson(9, 60) + 1.0, rng.uniform(1, 5, 60)
    clusters = np.arange(60) // 4
    strata = np.where(clusters < 6, 0, 1)
    sample = totals(y, x, weights=weights, clusters=clusters, strata=strata)
    expected = left_out(
        np.bincount(clusters, weights * y), np.bincount(clusters, weights * x), strata[::4].astype(np.int64)
    )
    assert (sample.influence**2).sum() == pytest.approx(expected, rel=1e-9)


@pytest.mark.library
def test_two_samples_without_a_shared_cluster_are_welchs() -> None:
    from scipy import stats

    rng = np.random.default_rng(2)
    first, second = rng.normal(0, 1, 12), rng.normal(1, 3, 20)
    names = np.arange(32)
    row = difference(totals(first, clusters=names[:12]), totals(second, clusters=names[12:]))
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert row.error is not None and row.value is not None
    assert row.value / row.error == pytest.approx(expected.statistic)
    assert row.df == pytest.approx(expected.df)


@pytest.mark.library
def test_two_samples_of_the_same_clusters_are_paired() -> None:
    from scipy import stats

    rng = np.random.default_rng(3)
    first = rng.normal(0, 1, 15)
    second = first + rng.normal(0.2, 0.3, 15)
    row = difference(totals(first), totals(second))
    expected = stats.ttest_rel(first, second)
    assert row.error is not None and row.value is not None
    assert row.value / row.error == pytest.approx(expected.statistic)
    assert row.df == pytest.approx(14)


def test_runs_of_one_instance_are_one_cluster() -> None:
    values, instances = np.repeat([0.0, 1.0, 2.0, 5.0, 7.0], 30), np.repeat(np.arange(5), 30)
    once = mean(np.array([0.0, 1.0, 2.0, 5.0, 7.0]))
    assert limits(mean(values, clusters=instances)) == pytest.approx(limits(once))
    clustered = share(values > 1, clusters=instances)
    assert clustered.clusters == 5 and clustered.effective is not None and clustered.effective < 6


def test_nothing_seen_leaves_room_that_shrinks_with_the_independent_number() -> None:
    assert limits(share(np.zeros(40)))[1] == pytest.approx(0.105, abs=0.001)
    clustered = share(np.zeros(40), clusters=np.arange(40) // 4)
    assert limits(clustered)[1] > limits(share(np.zeros(40)))[1] + 0.1


def test_values_that_are_all_alike_have_an_interval_only_where_bounds_say_how_far_others_may_lie() -> None:
    low, high = limits(mean(np.full(10, 0.8), bounds=UNIT))
    assert 0.6 < low < 0.75 and 0.83 < high < 0.95
    for bounds in ((0.0, inf), (-inf, inf)):
        row = mean(np.full(10, 3.0), bounds=bounds)
        assert (row.value, row.low) == (3.0, None) and "all 10 are alike" in str(row.reason)


def test_a_hairs_breadth_of_noise_is_no_better_than_none() -> None:
    noise = 1e-9 * np.arange(10)
    assert limits(mean(0.8 + noise, bounds=UNIT)) == pytest.approx(
        limits(mean(np.full(10, 0.8), bounds=UNIT))
    )


def test_only_a_census_has_no_width() -> None:
    assert limits(share(np.array([0, 1, 1, 0]), fraction=1.0)) == (0.5, 0.5)
    half, all_but = (share(np.arange(100) < 30, fraction=f) for f in (0.5, 0.99))
    assert 0 < np.diff(limits(all_but)) < np.diff(limits(half)) < np.diff(limits(share(np.arange(100) < 30)))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (mean(np.array([])), "no value"),
        (ratio(np.zeros(3), np.zeros(3)), "no value"),
        (share(np.array([1])), "too few for an interval: 1 independent, 2 needed"),
        (mean(np.array([1.0, 2.0, 4.0]), bounds=COUNT), "too few for an interval: 3 independent, 4 needed"),
        (share(np.ones(9), clusters=np.arange(9) // 3), "too few for an interval: 3 independent, 4 needed"),
        (mean(np.array([0, 0, 0, 5.0]), bounds=COUNT), "it would reach beyond 10 times the value"),
    ],
)
def test_what_is_too_small_for_an_interval_says_so(row: Estimate, reason: str) -> None:
    assert row.low is None and row.high is None and reason in str(row.reason)


def test_weights_lower_what_rows_tell() -> None:
    yes = np.arange(100) % 3 == 0
    even, uneven = share(yes), share(yes, weights=np.where(np.arange(100) < 50, 1.0, 6.0))
    assert uneven.effective is not None and uneven.effective < 70
    assert np.diff(limits(uneven)) > np.diff(limits(even))


def test_light_rows_that_are_all_alike_leave_room_for_what_the_few_heavy_ones_stand_for() -> None:
    """Of 50 sessions, all drawn, and 8 of 400 all are at the bound: 58 even ones would tell more of the rest.
    Intervals held the mean of such samples in .56 to .81."""
    sample = totals(np.zeros(58), weights=np.repeat([1.0, 50.0], [50, 8]), bounds=(0.0, 4.0))
    as_many = totals(np.zeros(10), bounds=(0.0, 4.0))
    assert sample.independent == pytest.approx(450**2 / (50 + 8 * 50**2))  # 10.1
    assert limits(estimate(sample))[1] == pytest.approx(limits(estimate(as_many))[1], rel=0.02)


def test_strata_take_their_differences_out_of_the_error() -> None:
    rng = np.random.default_rng(4)
    strata = np.arange(80) % 2
    values = strata * 5 + rng.normal(0, 1, 80)
    stratified, plain = mean(values, strata=strata), mean(values)
    assert stratified.error is not None and plain.error is not None
    assert stratified.error < plain.error / 2
    assert stratified.error == pytest.approx(
        0.5 * np.sqrt(values[::2].var(ddof=1) / 40 + values[1::2].var(ddof=1) / 40), rel=0.02
    )


SAMPLES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.0, 0.2, 0.7, 1.0]), st.integers(1, 9), st.integers(0, 6)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=150)
@given(SAMPLES, SAMPLES, st.booleans())
def test_limits_hold_the_value_and_never_leave_what_is_possible(
    first: list[tuple[float, int, int]], second: list[tuple[float, int, int]], clustered: bool
) -> None:
    samples = []
    for rows in (first, second):
        y, x, names = (np.array(column) for column in zip(*rows, strict=True))
        samples.append(totals(y * x, x, clusters=names if clustered else None, bounds=UNIT))
    one, other, both = estimate(samples[0]), estimate(samples[1]), difference(*samples)
    for row, least in ((one, 0), (other, 0), (both, -1)):
        assert row.value is not None and least <= row.value <= 1
        if row.low is not None and row.high is not None:
            assert least - 1e-12 <= row.low <= row.value <= row.high <= 1 + 1e-12
            assert row.high - row.low > 0.01


def test_two_samples_that_agree_throughout_leave_room_for_a_difference() -> None:
    yes = totals(np.arange(20) % 2, bounds=UNIT)
    row = difference(yes, yes)
    assert row.value == 0
    assert limits(row) == pytest.approx((-0.1, 0.1), abs=0.03)


def test_what_cannot_be_added_up_is_an_error() -> None:
    with pytest.raises(ValueError, match="must be finite"):
        totals(np.array([np.nan]))
    with pytest.raises(ValueError, match="must be positive"):
        totals(np.ones(2), weights=np.zeros(2))


@pytest.mark.library
def test_few_events_reach_as_low_as_garwoods_limit_and_are_marked() -> None:
    from statsmodels.stats.rates import confint_poisson

    counts = np.array([1.0, 1.0, 1.0, *[0.0] * 17])
    row = estimate(totals(counts, bounds=(0, inf)))
    low, _ = confint_poisson(3, 20, method="exact-c")
    assert row.low == pytest.approx(low)
    assert row.note == "few events: 3"
    many = estimate(totals(np.repeat(counts, 4), bounds=(0, inf)))
    assert many.note is None


def test_values_that_are_all_alike_say_that_a_rare_other_one_would_leave_the_interval() -> None:
    alike = np.array([0.79, 0.8, 0.81, 0.8] * 5)
    row = estimate(totals(alike, bounds=UNIT))
    assert row.note == "all alike: one in 7 that is not, and was not seen, would move it further"
    few = estimate(totals(np.zeros(4), np.full(4, 2.0), bounds=UNIT))
    assert few.note == "all alike: 3 in 4 that are not, and were not seen, would move it further"
    assert estimate(totals(np.append(alike, 0), bounds=UNIT)).note is None
    assert estimate(totals(np.tile(alike, 10), bounds=UNIT)).note is None


def test_a_few_times_of_which_one_is_far_above_the_others_are_marked() -> None:
    row = estimate(totals(np.array([1.5, 2.5, 1.5, 2.5, 40.5]), bounds=(0, inf)))
    assert row.note is None and row.low is None, "no interval, no doubt about it"
    uneven = np.array([1.5, 2.5, 1.5, 2.5, 1.5, 2.5, 1.5, 2.5, 3.5, 12.5])
    assert estimate(totals(uneven, bounds=(0, inf))).note == (
        "10 very uneven values: the largest may not be among them"
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-13, 1e100, 1e300])
def test_a_ratio_has_no_unit(scale: float) -> None:
    """Squares of 1e-170 are 0, and of 1e160 beyond all floats."""
    x = np.array([1.0, 2, 3, 4, 5])
    plain, same = (ratio(np.array([0.1, 0.8, 0.6, 1.2, 2.5]) * k, x * k, bounds=UNIT) for k in (1, scale))
    assert (same.low, same.high, same.df) == pytest.approx((plain.low, plain.high, plain.df))
    weights = mean(x, weights=x * scale, bounds=(0.0, 9.0))
    assert weights.effective == pytest.approx(mean(x, weights=x, bounds=(0.0, 9.0)).effective)


def test_small_values_that_differ_are_not_all_alike() -> None:
    assert mean(np.array([1.0, 2, 3, 4]) * 1e-13).low is not None
    assert mean(np.full(4, 0.1 + 0.2)).reason == "no interval: all 4 are alike, and nothing bounds the others"
    runs = mean(np.full(9, 2.0), clusters=np.arange(9) % 5)
    assert runs.reason == "no interval: all 5 clusters are alike, and nothing bounds the others", "of n=9"


def test_differences_that_are_all_equal_have_no_interval_whatever_their_rounding() -> None:
    """Both variances less twice the covariance leave 1e-8 of rounding in one sample of five."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        values = rng.normal(100, 30, 12) ** 2
        result = difference(totals(values + 2), totals(values))
        assert (result.low, result.reason) == (None, "no interval: all differences are equal")
        assert result.value == pytest.approx(2)
