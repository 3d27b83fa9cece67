"""Comparisons: textbook tables and the libraries; what was not shown is said."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaudit.annotation.statistics import Comparison
from coaudit.annotation.statistics.comparisons import (
    Method,
    adjust,
    adjusted_p_values,
    bootstrap_difference,
    compare,
    mcnemar,
    paired_t,
)


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


def test_outcomes_that_never_differ_are_no_evidence_of_a_difference() -> None:
    row = mcnemar(*outcomes(5, 0, 0, 5))
    assert (row.effect, row.p_value) == (0, 1)
    assert row.low is not None and row.high is not None and row.low < 0 < row.high


@pytest.mark.library
def test_paired_means_are_compared_by_students_t() -> None:
    from scipy import stats

    rng = np.random.default_rng(0)
    first, second = rng.normal(1, 1, 20), rng.normal(0.5, 1, 20)
    row, expected = paired_t(first, second), stats.ttest_rel(first, second)
    interval = expected.confidence_interval()
    assert row.p_value == pytest.approx(expected.pvalue)
    assert [row.low, row.high] == pytest.approx([interval.low, interval.high])


def test_differences_that_are_all_equal_have_no_test() -> None:
    row = paired_t(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    assert (row.effect, row.p_value, row.reason) == (1.0, None, "all differences are equal")


def test_shared_instances_are_paired_whatever_their_order_and_runs_are_averaged() -> None:
    row = compare(
        np.array([1.0, 0.0, 3.0, 9.0]),
        np.array([1.0, 2.0, 4.0]),
        instances=(["x", "x", "y", "only"], ["y", "x", "other"]),
    )
    assert (row.test, row.n, row.effect) == ("paired t", 2, (0.5 + 3) / 2 - 1.5)


def test_yes_no_outcomes_of_shared_instances_go_to_mcnemar() -> None:
    names = [str(k) for k in range(10)]
    row = compare(*outcomes(4, 3, 1, 2), instances=(names, names))
    assert (row.test, row.n) == ("McNemar, exact", 10)


@pytest.mark.library
def test_samples_without_shared_instances_are_compared_by_bootstrap() -> None:
    from scipy import stats

    rng = np.random.default_rng(1)
    first, second = rng.normal(0.6, 1, 150), rng.normal(0, 1, 100)
    row = compare(first, second)
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    assert row.test == "bootstrap"
    assert [row.low, row.high] == pytest.approx([expected.low, expected.high], abs=0.03)


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(2)
    first, second = np.repeat(rng.normal(0, 1, 20), 10), np.repeat(rng.normal(0, 1, 20), 10)
    names = [str(k // 10) for k in range(200)]
    single, clustered = compare(first, second), compare(first, second, clusters=(names, names))
    assert clustered.test == "cluster bootstrap"
    assert clustered.high is not None and clustered.low is not None
    assert single.high is not None and single.low is not None
    assert clustered.high - clustered.low > 2.5 * (single.high - single.low)


def test_two_samples_of_zeros_leave_room_for_a_difference() -> None:
    row = bootstrap_difference(np.zeros(20), np.zeros(20))
    assert row.low is not None and row.high is not None
    assert row.effect == 0 and row.low < -0.02 and row.high > 0.02
    assert row.p_value is not None and row.p_value > 0.5


def test_what_cannot_be_compared_says_why() -> None:
    assert compare(np.array([]), np.array([1.0])).reason == "a sample is empty"
    assert compare(np.array([1.0]), np.array([1.0])).reason == "a sample has a single independent value"
    with pytest.raises(ValueError, match="must be finite"):
        compare(np.array([np.nan]), np.array([1.0]))


P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@pytest.mark.library
@settings(max_examples=40, deadline=None)
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
        "delivery_rate: 0.621 (A) against 0.379 (B), difference +0.241 [0.042, 0.409], McNemar, exact, n=29, "
        "p=0.0391, adjusted 0.0781: not significant at .05: no difference was shown."
    )
    alone = mcnemar(*outcomes(10, 9, 0, 10)).statement("delivery_rate", "A", "B")
    assert alone.endswith("p=0.00391: significant at .05.")
    none = compare(np.array([]), np.array([1.0])).statement("tes", "A", "B")
    assert none == "tes: A and B can't be compared: a sample is empty."
