"""Comparisons: textbook tables and the libraries; what was not shown is said."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coaudit.annotation.statistics import Comparison, permutation
from coaudit.annotation.statistics.comparisons import (
    Method,
    adjust,
    adjusted_p_values,
    contrast,
    contrast_all,
    mcnemar,
)
from coaudit.annotation.statistics.estimate import ANY, UNIT, Bounds, Totals, difference, totals
from coaudit.annotation.statistics.permutation import Arms, arms, permutation_test, statistics


def outcomes(both: int, gained: int, lost: int, neither: int) -> tuple[Any, Any]:
    first = np.repeat([1.0, 1.0, 0.0, 0.0], [both, gained, lost, neither])
    second = np.repeat([1.0, 0.0, 1.0, 0.0], [both, gained, lost, neither])
    return first, second


@pytest.mark.library
@pytest.mark.parametrize(("gained", "lost"), [(1, 8), (3, 3), (0, 5), (12, 30), (59, 6)])
def test_mcnemar_equals_statsmodels_and_is_exact_when_small(gained: int, lost: int) -> None:
    from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

    row = mcnemar(*outcomes(20, gained, lost, 30))
    exact = gained + lost < 25
    expected = statsmodels_mcnemar([[20, gained], [lost, 30]], exact=exact, correction=True)
    assert row.p_value == pytest.approx(expected.pvalue)
    assert row.test == ("McNemar, exact" if exact else "McNemar")
    assert row.effect == pytest.approx((gained - lost) / (50 + gained + lost))


def test_a_correction_for_continuity_moves_no_two_equal_counts_apart() -> None:
    """25 gained and 25 lost gave p = .888, as in statsmodels; R's mcnemar.test corrects only what differs."""
    assert mcnemar(*outcomes(20, 25, 25, 30)).p_value == 1
    assert mcnemar(*outcomes(20, 26, 25, 30)).p_value == 1


def test_outcomes_that_never_differ_are_no_evidence_of_a_difference() -> None:
    row = mcnemar(*outcomes(5, 0, 0, 5))
    assert (row.effect, row.p_value) == (0, 1)
    assert row.low is not None and row.high is not None and row.low < 0 < row.high


def apart(first: Any, second: Any, bounds: Bounds = ANY) -> tuple[Totals, Totals]:
    """Two samples without a shared cluster."""
    names = np.arange(len(first) + len(second))
    return (
        totals(first, clusters=names[: len(first)], bounds=bounds),
        totals(second, clusters=names[len(first) :], bounds=bounds),
    )


def p_of(row: Comparison) -> float:
    assert row.p_value is not None, row.reason
    return row.p_value


@pytest.mark.library
def test_shared_instances_are_paired_whatever_their_order() -> None:
    from scipy import stats

    rng = np.random.default_rng(0)
    second = rng.normal(0, 3, 8)
    first = second + rng.normal(0.5, 0.5, 8)
    order = rng.permutation(8)
    row = contrast(totals(first, clusters=np.arange(8)), totals(second[order], clusters=order))
    signs = stats.permutation_test(
        (first - second,), lambda d: d.mean() / d.std(ddof=1), permutation_type="samples", n_resamples=np.inf
    )
    # Two of 256 arrangements are the observed and its mirror image, which count half.
    assert p_of(row) == pytest.approx(signs.pvalue - 1 / 256)
    assert (row.test, row.pairs, row.alone, row.n) == ("permutation, exact", 8, (0, 0), 16)


@pytest.mark.library
def test_yes_no_values_of_two_samples_are_fishers_table_with_ties_counted_half() -> None:
    from scipy import stats

    row = contrast(*apart([1] * 7 + [0] * 3, [1] * 2 + [0] * 10, UNIT))
    table = [[7, 3], [2, 10]]
    own = float(stats.hypergeom.pmf(7, 22, 9, 10))
    assert row.test == "Fisher, mid-p"
    assert p_of(row) == pytest.approx(stats.fisher_exact(table).pvalue - own / 2)
    assert row.first == 0.7 and row.second == pytest.approx(1 / 6)


@pytest.mark.library
@pytest.mark.slow
def test_random_arrangements_come_to_the_exact_p_value() -> None:
    from scipy import stats

    rng = np.random.default_rng(1)
    first, second = rng.lognormal(0, 1, 30), rng.lognormal(0.4, 1, 40)
    row = contrast(*apart(first, second, (0.0, np.inf)), draws=20_000)
    expected = stats.permutation_test(
        (first, second),
        lambda a, b: stats.ttest_ind(a, b, equal_var=False).statistic,
        n_resamples=4000,
        rng=rng,
        vectorized=False,
    )
    assert p_of(row) == pytest.approx(expected.pvalue, abs=0.02)
    assert row.test == "permutation (20,000 draws)"


def test_the_fast_ways_through_arrangements_give_what_the_general_one_gives() -> None:
    rng = np.random.default_rng(2)
    labels = rng.random((50, 12)) < 0.5
    values, other = rng.normal(0, 1, 12), rng.normal(0, 1, 12)
    alone, both = arms(*apart(values[:5], values[5:])), arms(totals(values), totals(other))
    for sample in (alone, both):
        # Twice the value over twice the weight is the same, and no longer of single values.
        doubled = replace(sample, y=2 * sample.y, x=2 * sample.x)
        assert statistics(sample, labels) == pytest.approx(statistics(doubled, labels))


@pytest.mark.library
def test_what_is_rare_among_thousands_is_no_surer_than_by_fishers_table() -> None:
    """None of 250 against .004 of 5,000, of which as many would be one: Student's t gives .00001."""
    from scipy import stats

    some = np.repeat([1.0, 0.0], [20, 4_980])
    row = contrast(*apart(np.zeros(250), some, UNIT))
    chances = stats.hypergeom.pmf(np.arange(21), 5_250, 20, 250)
    further = [abs(k / 250 - (20 - k) / 5_000) > 20 / 5_000 + 1e-12 for k in range(21)]
    assert row.test == "Fisher, mid-p"
    assert p_of(row) == pytest.approx(chances[further].sum() + chances[0] / 2)
    halves = contrast(*apart(np.zeros(250), some / 2, UNIT))
    assert (halves.test, halves.draws) == ("Fisher, effective sizes", 0)
    # Each ½ tells of at most one that would be 1: ten of 5,000, of which 250 have none.
    assert p_of(halves) == pytest.approx((1 - 0.002) ** 250, abs=0.01)
    paired = np.repeat([1.0, 0.0], [3, 5_997]), np.repeat([0.0, 1.0, 0.0], [3, 9, 5_988])
    row = contrast(*(totals(values, bounds=UNIT) for values in paired))
    assert row.test == "McNemar, mid-p"
    assert p_of(row) == pytest.approx(2 * stats.binom.cdf(2, 12, 0.5) + stats.binom.pmf(3, 12, 0.5))


@pytest.mark.library
@pytest.mark.parametrize("shared", [0, 100])
def test_thousands_against_a_group_that_is_all_alike_differ_without_arrangements(shared: int) -> None:
    """Arrangements of 20,000 take a second, and minutes where Holm's threshold hangs on them."""
    from scipy import stats

    def compared(*some: float, many: int = 5_000) -> Comparison:
        values = np.r_[some, np.zeros(many - len(some))]
        names = np.arange(250 - shared, 250 - shared + many)
        return contrast(totals(np.zeros(250)), totals(values, clusters=names))

    rare, clear = compared(*[1.0] * 20, *[3.0] * 10, many=5_000 + shared), compared(*np.arange(1.0, 5_000))
    assert (rare.draws, clear.draws) == (0, 0)
    both = np.r_[np.ones(20), np.full(10, 3.0), np.zeros(5_220 + shared)]
    error = both.std(ddof=1) * np.sqrt(1 / 250 + 1 / (5_000 + shared))
    assert rare.test == "Student's t"
    assert p_of(rare) == pytest.approx(2 * stats.t.sf(50 / (5_000 + shared) / error, 5_248 + shared))
    assert p_of(clear) < 1e-15
    # Of 5 in 5,200 all are in one half: Student's t gives .025.
    few = contrast(*apart(np.r_[np.ones(5), np.zeros(2_595)], np.zeros(2_600)))
    assert few.test == "Fisher, mid-p"
    assert p_of(few) == pytest.approx(stats.hypergeom.pmf(5, 5_200, 5, 2_600))
    same = contrast(*apart(np.full(3_000, 0.1), np.full(3_000, 0.1)))
    assert same.reason == "nothing to test: all values are the same"


@pytest.mark.library
def test_tables_have_the_chances_of_the_library() -> None:
    from scipy import stats

    row = contrast(*apart(np.r_[np.ones(40), np.zeros(9_960)], np.r_[np.ones(70), np.zeros(9_930)], UNIT))
    k = np.arange(111)
    chances = stats.hypergeom.pmf(k, 20_000, 110, 10_000)
    extreme = np.abs(2 * k - 110)
    assert p_of(row) == pytest.approx(chances[extreme > 30].sum() + chances[extreme == 30].sum() / 2)


def test_weighted_values_that_are_all_at_a_bound_are_there_whatever_their_rounding() -> None:
    """Weighted grades of 5 may come to 4.999999999999999, far from 5 in logits."""
    rng = np.random.default_rng(0)
    near = 5 - 4 * np.array([0.04, 0.06, 0.05, 0.03, 0.07, 0.05, 0.04, 0.06])
    rounded = 0
    for _ in range(200):
        weights = rng.uniform(1, 2, 8)
        rounded += (5 * weights).sum() / weights.sum() != 5
        fives = totals(np.full(8, 5.0), weights=weights, bounds=(1.0, 5.0))
        row = contrast(fives, totals(near, clusters=8 + np.arange(8), bounds=(1.0, 5.0)))
        assert row.first == 5 and p_of(row) > 0.5
    assert rounded


def test_a_row_names_the_test_whose_p_value_counts() -> None:
    rng = np.random.default_rng(0)
    few, many = rng.normal(2.0, 3, 5), rng.normal(0, 1, 50)
    assert contrast(*apart(few, many)).test == "Welch's t"
    even = np.repeat([0.0, 1, 2, 3, 4, 5], [8, 16, 16, 11, 6, 3])
    counts = contrast(*apart(even, [0.0] * 8 + [1, 1, 1, 4], (0.0, np.inf)))
    assert counts.test == "Welch's t of logs"
    assert ", Welch's t of logs, p=" in counts.statement("halts", "A", "B")
    assert contrast(*apart([0.0] * 8, [0.04, 0.06] * 4, UNIT)).test == "Fisher, effective sizes"
    shares = contrast(*apart([0.01, 0.02, 0.9] * 4, [0.45, 0.5, 0.55] * 4, UNIT))
    assert shares.test == "Welch's t of logits"


def test_none_of_ten_is_no_more_extreme_than_it_is_likely() -> None:
    """Welch's statistic would rank it first, for its error is 0."""
    first, second = np.zeros(10), np.r_[np.ones(11), np.zeros(89)]
    assert p_of(contrast(*apart(first, second, UNIT))) > 0.3
    four = np.r_[np.ones(4), np.zeros(6)]
    assert p_of(contrast(*apart(four, np.r_[np.ones(7), np.zeros(93)], UNIT))) < 0.05


def test_a_difference_of_counts_is_an_interval_of_both_samples_skewness() -> None:
    few, many = np.array([0, 1, 0, 2, 1, 0, 1, 1]), np.array([1, 9, 2, 30, 4, 3, 12, 2])
    row = contrast(*apart(many, few, (0.0, np.inf)))
    assert row.low is not None and row.high is not None and row.effect is not None
    assert row.high - row.effect > 1.5 * (row.effect - row.low)


@pytest.mark.library
def test_few_values_of_wide_spread_against_many_are_no_easier_to_tell_apart_than_by_welch() -> None:
    """In 5 against 50 with three times their spread, arrangements alone would reject .09."""
    from scipy import stats

    rng = np.random.default_rng(0)
    first, second = rng.normal(4.0, 3, 5), rng.normal(0, 1, 50)
    row = contrast(totals(first), totals(second, clusters=5 + np.arange(50)))
    welch = stats.ttest_ind(first, second, equal_var=False).pvalue
    assert row.p_value == pytest.approx(welch, rel=0.01)
    even = contrast(totals(first), totals(second[:6], clusters=5 + np.arange(6)))
    assert even.test == "permutation, exact"


@pytest.mark.library
def test_skewed_counts_against_even_ones_differ_no_surer_than_by_welch_of_their_logarithms() -> None:
    """High counts may be missing from the twelve: arrangements and Welch's t of the counts give .0035."""
    from scipy import stats

    even = np.repeat([0.0, 1, 2, 3, 4, 5], [8, 16, 16, 11, 6, 3])
    skewed = np.array([0.0] * 8 + [1, 1, 1, 4])
    row = contrast(*apart(even, skewed, (0.0, np.inf)))
    relative = [(np.log(v.mean()), v.std(ddof=1) / v.mean(), len(v)) for v in (even, skewed)]
    welch = stats.ttest_ind_from_stats(*relative[0], *relative[1], equal_var=False).pvalue
    assert p_of(row) == pytest.approx(welch)
    assert p_of(contrast(*apart(skewed, even, (0.0, np.inf)))) == pytest.approx(welch)
    assert p_of(contrast(*apart(even, skewed))) < 0.005


@pytest.mark.library
def test_shares_near_the_ends_against_even_ones_differ_no_surer_than_by_welch_of_their_logits() -> None:
    from scipy import stats

    ends = np.array([0.02, 0.05, 0.01, 0.9, 0.03, 0.04, 0.02, 0.85, 0.03, 0.01, 0.02, 0.05])
    even = np.array([0.45, 0.5, 0.4, 0.42, 0.48, 0.55, 0.43, 0.47, 0.46, 0.5, 0.44, 0.41])
    moments = [
        (np.log(m / (1 - m)), v.std(ddof=1) / (m * (1 - m)), len(v)) for v in (ends, even) for m in [v.mean()]
    ]
    welch = stats.ttest_ind_from_stats(*moments[0], *moments[1], equal_var=False).pvalue
    assert p_of(contrast(*apart(ends, even, UNIT))) == pytest.approx(welch)


def test_a_value_at_its_bound_is_tested_by_arrangements() -> None:
    """Of none there is no logarithm; one of 6,435 ways to choose 7 of 15 is as extreme, and counts half."""
    row = contrast(*apart([0.0] * 7, [2.0, 3, 1, 2, 4, 2, 1, 5], (0.0, np.inf)))
    assert p_of(row) == pytest.approx(0.5 / 6435)


def test_values_at_one_of_two_bounds_may_be_of_those_that_reach_the_other() -> None:
    """Eight of 0 against eight near .05: arrangements give .0001, yet one in ten of the former may be .5."""
    near = np.array([0.04, 0.06, 0.05, 0.03, 0.07, 0.05, 0.04, 0.06])
    for none, some in ((np.zeros(8), near), (np.ones(8), 1 - near)):
        for row in (contrast(*apart(none, some, UNIT)), contrast(*apart(some, none, UNIT))):
            assert p_of(row) == pytest.approx(0.95**8, rel=0.01)
            assert row.low is not None and row.high is not None and row.low <= 0 <= row.high
    clear = contrast(*apart(np.zeros(8), near + 0.45, UNIT))
    assert p_of(clear) == pytest.approx(0.5**8, rel=0.15)
    likert = contrast(*apart(1 + 4 * np.zeros(8), 1 + 4 * near, (1.0, 5.0)))
    assert p_of(likert) == pytest.approx(p_of(contrast(*apart(np.zeros(8), near, UNIT))))


@pytest.mark.parametrize("shared", [1, 4, 8])
def test_instances_that_both_hold_tell_no_more_of_values_that_were_not_seen(shared: int) -> None:
    near = np.array([0.04, 0.06, 0.05, 0.03, 0.07, 0.05, 0.04, 0.06])
    names = np.arange(8 - shared, 16 - shared)
    row = contrast(totals(np.zeros(8), bounds=UNIT), totals(near, clusters=names, bounds=UNIT))
    assert row.pairs == shared
    assert p_of(row) == pytest.approx(0.95**8, rel=0.01)


def test_one_instance_that_both_hold_leaves_skewed_counts_as_unsure_as_without() -> None:
    even = np.repeat([0.0, 1, 2, 3, 4, 5], [8, 16, 16, 11, 6, 3])
    skewed = np.array([0.0] * 8 + [1, 1, 1, 4])
    bounds = (0.0, np.inf)
    alone = p_of(contrast(*apart(even, skewed, bounds)))
    row = contrast(totals(even, bounds=bounds), totals(skewed, clusters=np.arange(59, 71), bounds=bounds))
    assert row.pairs == 1
    assert p_of(row) == pytest.approx(alone, rel=0.25)
    assert alone > 0.03


def test_counts_of_which_none_was_seen_differ_by_no_interval() -> None:
    """Student's t would take 20 zeros for certain, and held a difference of 0 in a tenth of samples."""
    some = np.repeat([0.0, 1, 2, 3], 8)
    for bounds, shared in (((0.0, np.inf), 0), ((0.0, np.inf), 12), (ANY, 0)):
        none = totals(np.zeros(20), bounds=bounds)
        row = contrast(none, totals(some, clusters=np.arange(20 - shared, 52 - shared), bounds=bounds))
        assert (row.low, row.high) == (None, None)
        assert row.reason == "first sample: no interval: all 20 are alike, and nothing bounds the others"
        named = row.reason.replace("first sample", "A")
        assert row.statement("halts", "A", "B").endswith(f"significant at .05 ({named}).")


@pytest.mark.library
def test_values_all_alike_against_skewed_ones_differ_no_surer_than_by_welch_of_their_logarithms() -> None:
    from scipy import stats

    alike, skewed = np.ones(8), np.array([0.0, 0, 0, 1, 0, 0, 2, 0])
    row = contrast(*apart(alike, skewed, (0.0, np.inf)))
    reach = abs(np.log(skewed.mean())) / (skewed.std(ddof=1) / np.sqrt(8) / skewed.mean())
    assert p_of(row) == pytest.approx(2 * stats.t.sf(reach, 7))
    assert p_of(contrast(*apart(alike, skewed))) < 0.05


def of_steps(y: Any, steps: int, start: int) -> Totals:
    """Shares of so many steps each, as clusters from a number on."""
    y = np.asarray(y, dtype=np.float64)
    return totals(y, np.full(len(y), steps), clusters=np.arange(start, start + len(y)), bounds=UNIT)


@pytest.mark.library
@pytest.mark.parametrize("turned", [False, True])
def test_few_steps_of_which_none_has_it_differ_no_surer_than_by_fishers_table(turned: bool) -> None:
    """One of ten each, which are independent: of 20 among 260 steps none lies among the 60."""
    from scipy import stats

    none = of_steps(np.full(30, 2.0 * turned), 2, 0)
    some = of_steps(np.full(20, 9.0 if turned else 1), 10, 30)
    chance = stats.hypergeom.pmf(0, 260, 20, 60)
    assert p_of(contrast(none, some)) == pytest.approx(chance)
    assert p_of(contrast(some, none)) == pytest.approx(chance)


@pytest.mark.library
def test_steps_that_resemble_each_other_tell_less_of_what_was_not_seen() -> None:
    """None of 3 steps each against .02 of 40 each, up to 3 a trajectory: arrangements give .002."""
    from scipy.special import binom

    failed = np.array([0, 0, 0, 1, 1, 2, 3, 0, 1, 0, 0, 2, 1, 0, 0, 1, 0, 0, 3, 1])
    alike = (failed.var(ddof=1) / 40 / (0.02 * 0.98) - 1) / 39
    own, other = 60 / (1 + 2 * alike), 800 / (1 + 39 * alike)
    row = contrast(of_steps(np.zeros(20), 3, 0), of_steps(failed, 40, 20))
    assert 0 < alike < 0.1
    assert p_of(row) == pytest.approx(binom(other, 0.02 * other) / binom(own + other, 0.02 * other))
    assert p_of(row) > 0.2


def test_two_against_two_and_three_against_three_decide_nothing() -> None:
    for n in (2, 3):
        row = contrast(*apart(np.arange(n) + 100.0, np.arange(n) * 1.0))
        assert (row.p_value, row.low) == (None, None)
        assert (
            row.reason == f"too few to decide: with {n} + {n} values like these, no outcome would reach .05"
        )
    row = contrast(*apart([1] + [0] * 49, [0] * 50, UNIT))
    assert row.p_value is None and "too few to decide" in str(row.reason)


@pytest.mark.parametrize("n", [4, 15])
def test_values_that_are_all_the_same_are_no_test_and_count_for_no_family(n: int) -> None:
    same = apart(np.full(n, 3.0), np.full(n, 3.0))
    paired = totals(np.full(n, 3.0), clusters=np.arange(n))
    for row, why in (
        (contrast(*same), "nothing to test: all values are the same"),
        (contrast(paired, paired), "nothing to test: no pair differs"),
    ):
        assert (row.effect, row.p_value, row.reason) == (0, None, why)
    told = apart(np.arange(n) + 100.0, np.arange(n) * 1.0)
    rows = contrast_all([same, told, same])
    assert [row.family for row in rows] == [None, 1, None]
    assert rows[1].p_adjusted == rows[1].p_value


def test_one_value_that_differs_among_24_decides_as_little_as_among_8() -> None:
    """12 against 12 have too many arrangements to look at all of them; all of them give the same |t|."""
    for n in (4, 12):
        row = contrast(*apart([7.0] + [0.0] * (n - 1), [0.0] * n))
        assert row.p_value is None and "too few to decide" in str(row.reason)
    # Two that differ lie on one side in 2·C(12, 2)/C(24, 2) = .478 of arrangements: .239 is the least p.
    assert contrast(*apart([7.0, 7.0] + [0.0] * 10, [0.0] * 12)).p_value is None


def test_runs_of_an_instance_are_exchanged_together() -> None:
    rng = np.random.default_rng(3)
    level = np.repeat(rng.normal(0, 1, 10), 20) + np.repeat([0.7, 0.0], 100)
    single = contrast(*apart(level[:100], level[100:]))
    names = np.repeat(np.arange(10), 20)
    together = contrast(totals(level[:100], clusters=names[:100]), totals(level[100:], clusters=names[100:]))
    assert p_of(single) < 0.05 < p_of(together)


def test_what_both_samples_hold_is_paired_beside_what_one_holds() -> None:
    rng = np.random.default_rng(4)
    level = rng.normal(0, 5, 60)
    first, second = level[:40] + 1 + rng.normal(0, 0.3, 40), level[20:] + rng.normal(0, 0.3, 40)
    row = contrast(totals(first, clusters=np.arange(40)), totals(second, clusters=np.arange(20, 60)))
    assert (row.pairs, row.alone, row.n, row.sizes) == (20, (20, 20), 80, (40, 40))
    assert row.effect == pytest.approx(first.mean() - second.mean()), "nothing is left out"
    assert "n=40 + 40 (20 instances paired, 20 + 20 unpaired)" in row.statement("reward", "A", "B")


@pytest.mark.slow
def test_five_standard_deviations_survive_holm_among_a_thousand_tests() -> None:
    rng = np.random.default_rng(5)
    samples = [apart(rng.normal(0, 1, 10), rng.normal(0, 1, 10)) for _ in range(999)]
    samples.append(apart(rng.normal(5, 1, 50), rng.normal(0, 1, 50)))
    rows = contrast_all(samples)
    assert rows[-1].family == 1000 and rows[-1].draws == 199_999
    assert rows[-1].p_adjusted is not None and rows[-1].p_adjusted < 0.01
    assert sum(row.p_adjusted is not None and row.p_adjusted < 0.05 for row in rows[:-1]) == 0


def test_the_interval_holds_0_wherever_no_difference_was_shown() -> None:
    rng = np.random.default_rng(6)
    for _ in range(60):
        row = contrast(*apart(rng.random(9) < 0.7, rng.random(9) < 0.3, UNIT))
        if row.low is not None and row.high is not None and (row.p_value is None or row.p_value >= 0.05):
            assert row.low <= 0 <= row.high


def test_what_cannot_be_compared_says_why() -> None:
    row = contrast(*apart([], [1.0, 2.0]))
    assert (row.effect, row.reason) == (None, "first sample: no value")


P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@pytest.mark.long
@pytest.mark.library
@settings(max_examples=40)
@given(P_VALUES, st.sampled_from(get_args(Method)))
def test_adjusted_p_values_equal_statsmodels(p_values: list[float], method: Method) -> None:
    from statsmodels.stats.multitest import multipletests

    name = {"holm": "holm", "benjamini_hochberg": "fdr_bh", "benjamini_yekutieli": "fdr_by"}[method]
    assert adjusted_p_values(p_values, method) == pytest.approx(multipletests(p_values, method=name)[1])


def test_the_family_is_of_those_that_were_tested() -> None:
    tested = Comparison("t", 1.0, 0.0, 1.0, 0.5, 1.5, 0.03, 10)
    untested = Comparison("t", None, None, None, None, None, None, 0, "a sample is empty")
    rows = adjust([tested, untested, tested])
    assert [row.p_adjusted for row in rows] == [0.06, None, 0.06]
    with pytest.raises(ValueError, match="expected one of holm"):
        adjusted_p_values([0.1], "bonferroni")  # type: ignore[arg-type]


def test_the_statement_says_also_what_was_not_shown() -> None:
    row = adjust([mcnemar(*outcomes(10, 8, 1, 10)), mcnemar(*outcomes(5, 2, 1, 5))])
    assert row[0].statement("delivery_rate", "A", "B") == (
        "delivery_rate: 0.621 (A) against 0.379 (B), difference +0.241 [0.042, 0.409], n=29, McNemar, exact, "
        "p=0.0391, adjusted for 2 tests p=0.0781: not significant at .05: no difference was shown "
        "(the interval is that of this test alone)."
    )
    alone = mcnemar(*outcomes(10, 9, 0, 10)).statement("delivery_rate", "A", "B")
    assert alone.endswith("p=0.00391: significant at .05.")
    none = contrast(*apart([], [1.0])).statement("tes", "A", "B")
    assert none == "tes: A and B can't be compared: A: no value."


def test_families_are_corrected_apart() -> None:
    tested = Comparison("t", 1.0, 0.0, 1.0, 0.5, 1.5, 0.03, 10)
    rows = adjust([tested, tested, tested], families=["a", "b", "a"])
    assert [(row.p_adjusted, row.family) for row in rows] == [(0.06, 2), (0.03, 1), (0.06, 2)]


@pytest.mark.parametrize("paired", [False, True])
def test_huge_numbers_are_tested_like_small_ones_or_not_at_all(paired: bool) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(1, 1, 9), rng.normal(0, 1, 9)

    def compared(scale: float) -> Comparison:
        one, other = first * scale, second * scale
        return contrast(totals(one), totals(other)) if paired else contrast(*apart(one, other))

    row, huge = compared(1), compared(1e154)
    assert huge.p_value == row.p_value
    assert huge.low is not None and huge.low / 1e154 == pytest.approx(row.low)
    assert len(huge.statement("a", "b", "c")) < 250
    assert compared(1e300).reason == "first sample: numbers too large to reckon with"


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("scale", [1e-140, 1e-13, 1e100])
def test_what_is_compared_has_no_unit(scale: float, paired: bool) -> None:
    """A difference of 1e-13 may be large."""
    rng = np.random.default_rng(0)
    values = rng.normal(1, 1, 9), rng.normal(0, 1, 9)
    steps = rng.integers(1, 9, (2, 9)) * 1.0
    failed = rng.binomial(steps.astype(np.int64), [[0.8], [0.2]]) * 1.0
    names = np.arange(9), np.arange(9) + 9 * (not paired)

    def compared(scale: float, *, ratio: bool) -> Comparison:
        if ratio:
            sides = zip(failed * scale, steps * scale, names, strict=True)
            return contrast(*(totals(y, x, clusters=own, bounds=UNIT) for y, x, own in sides))
        return contrast(*(totals(y * scale, clusters=own) for y, own in zip(values, names, strict=True)))

    row, same = compared(1, ratio=False), compared(scale, ratio=False)
    assert row.low is not None and same.low is not None and row.p_value is not None
    assert (same.p_value, same.low / scale) == pytest.approx((row.p_value, row.low))
    row, same = compared(1.5, ratio=True), compared(1.5 * scale, ratio=True)
    assert row.p_value is not None and row.low is not None
    assert (same.p_value, same.low, same.high) == pytest.approx((row.p_value, row.low, row.high))


def test_an_interval_that_holds_0_beside_a_difference_that_was_shown_says_so() -> None:
    alike, others = np.full(6, 5.0), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1.0])
    row = contrast(*apart(alike, others, bounds=(1.0, 5.0)))
    # In a table of 6 and 5.8, the others' m(1 - m) over their variance, no missing one is among the 6.
    assert p_of(row) == pytest.approx(0.0349, abs=1e-4)
    assert row.low is not None and row.low < 0
    assert row.statement("satisfaction", "a", "b").endswith(
        "which allows for values that were not seen, holds 0)."
    )
    lost = adjust([row, *[replace(row, p_value=0.5)] * 9])[0]
    assert lost.statement("a", "b", "c").endswith("not significant at .05: no difference was shown.")
    clear = contrast(*apart(others + 10, others))
    assert clear.statement("a", "b", "c").endswith("significant at .05.")


def test_a_difference_without_an_interval_says_why_also_where_none_was_shown() -> None:
    row = contrast(*apart(np.array([3.0, 4.0, 2.5]), np.array([1.0, 2.0, 4.0, 5.0, 2.0, 3.0])))
    assert row.low is None and p_of(row) > 0.05
    assert row.statement("score", "a", "b").endswith(
        "no difference was shown (too few for an interval: 3 independent, 4 needed)."
    )


def ratios(y: NDArray[Any], x: NDArray[Any], first: NDArray[Any]) -> tuple[Totals, Totals]:
    """Two samples of y/x, each row a cluster of its own."""
    one, other = (
        totals(y[side], x[side], clusters=np.flatnonzero(side), bounds=(0, np.inf))
        for side in (first, ~first)
    )
    return one, other


def statistic(sample: Arms, first: Totals, second: Totals) -> float:
    """The difference over its error, with the noise of the sample, which is without the values' unit."""
    unit = sample.y.sum() / sample.x.sum()
    unit /= (first.numerator.sum() + second.numerator.sum()) / (
        first.denominator.sum() + second.denominator.sum()
    )
    own = difference(first, second)
    assert own.value is not None and own.error is not None
    return float(own.value * unit / np.sqrt((own.error * unit) ** 2 + sample.noise))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_many_ratios_have_the_statistic_that_each_arrangement_has_alone(scale: float) -> None:
    rng = np.random.default_rng(1)
    for held in (rng.integers(1, 40, 900) * 1.0, rng.gamma(2, 5, 900) + 0.1, np.r_[np.ones(899), 10.0]):
        x = held * scale
        y = rng.binomial(30, 0.02, 900) * x * rng.uniform(0.5, 1.5, 900)
        sample = arms(*ratios(y, x, np.arange(900) < 400))
        labels = np.stack([rng.permutation(sample.label) for _ in range(20)])
        assert sample.terms > 1
        for label, value in zip(labels, statistics(sample, labels), strict=True):
            assert value == pytest.approx(statistic(sample, *ratios(y, x, label)), rel=1e-9)


def test_where_one_cluster_holds_much_each_arrangement_is_looked_at_alone() -> None:
    x = np.r_[np.ones(200), 30.0]
    assert arms(*ratios(x, x, np.arange(201) < 100)).terms == 0
    rng = np.random.default_rng(1)
    x = np.r_[np.full(450, 0.1), np.full(450, 1.9)]
    y = x * rng.binomial(5, 0.2, 900)
    sample = arms(*ratios(y, x, np.arange(900) % 2 == 0))
    assert sample.terms > 1
    few = np.arange(900) < 450  # all that hold little: less than a fifth of what is to be expected
    assert statistics(sample, few[None])[0] == pytest.approx(statistic(sample, *ratios(y, x, few)), rel=1e-9)


def test_arrangements_that_are_held_are_those_that_would_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics of the same clusters share them; other clusters and other seeds have their own."""
    rng = np.random.default_rng(4)
    clusters = (np.arange(20), np.arange(100, 121), np.arange(10, 31))  # the last has ten of the first
    groups = [totals(rng.normal(size=len(names)), clusters=names) for names in clusters]
    samples = [arms(groups[0], other) for other in groups[1:]]
    held = [permutation_test(sample, 999, seed) for sample in samples for seed in (0, 1)]
    assert [permutation_test(sample, 999, seed) for sample in samples for seed in (0, 1)] == held
    for bound in ("_CACHE_BITS", "_LAST_BITS"):  # then only the last are kept, then none
        monkeypatch.setattr(permutation, bound, 0)
        assert [permutation_test(sample, 999, seed) for sample in samples for seed in (0, 1)] == held
    assert len({test.p_value for test in held}) == len(held)


def test_tests_that_need_many_draws_have_those_of_the_same_clusters_drawn_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the order of the tests."""
    draws: list[int] = []

    def random_blocks(label: bytes, paired: bytes, count: int, seed: int) -> object:
        draws.append(count)
        return blocks(label, paired, count, seed)

    blocks = permutation._random_blocks
    monkeypatch.setattr(permutation, "_random_blocks", random_blocks)
    monkeypatch.setattr(permutation, "_CACHE_BITS", 2_000 * 60)
    permutation._last_blocks.cache_clear()
    rng = np.random.default_rng(6)
    names = (np.arange(30), np.arange(30, 55), np.arange(60, 82))
    base, *others = (
        [totals(rng.normal(shift, size=len(n)), clusters=n) for _ in range(60)]
        for n, shift in zip(names, (0, 3, 3), strict=True)
    )
    samples = [(one, other[place]) for place, one in enumerate(base) for other in others]
    rows = contrast_all(samples)
    assert sum(row.draws == 19_999 for row in rows) > 10
    assert sorted(draws) == [1_999, 1_999, 19_999, 19_999]


@pytest.mark.parametrize("weight", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize(
    ("pairs", "first", "second"), [(0, 1, 1), (1, 1, 0), (2, 0, 3), (15, 60, 5), (40, 1, 0)]
)
def test_single_values_some_of_them_paired_have_the_statistic_of_any_samples(
    weight: float, offset: float, pairs: int, first: int, second: int
) -> None:
    rng = np.random.default_rng(pairs)
    clusters = [np.arange(pairs + first), np.r_[np.arange(pairs), 1000 + np.arange(second)]]
    y = [offset + rng.normal(size=len(names)) for names in clusters]
    sample = arms(
        *(
            totals(values * weight, np.full(len(values), weight), clusters=names)
            for values, names in zip(y, clusters, strict=True)
        )
    )
    labels = np.concatenate(list(permutation._blocks(sample, 200, 0)))
    assert sample.single
    expected = permutation._of_arms(sample, labels.astype(np.float64))
    np.testing.assert_allclose(statistics(sample, labels), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bounds", [ANY, (0.0, np.inf), UNIT])
def test_a_single_value_is_not_tested_against_others(bounds: tuple[float, float]) -> None:
    """The most extreme of eleven had mid-p 1/22, which happens in one sample of eleven."""
    others = totals(np.linspace(0.1, 0.5, 10), clusters=np.arange(1, 11), bounds=bounds)
    row = contrast(totals(np.array([0.9]), clusters=np.array([0]), bounds=bounds), others)
    assert (row.p_value, row.reason) == (None, "too few to decide: 1 independent, 2 needed")
    assert row.effect == pytest.approx(0.6) and row.low is None
