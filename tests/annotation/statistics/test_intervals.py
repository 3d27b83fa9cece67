"""Intervals: published values, and coverage of the pattern-count bootstrap by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaudit.annotation.statistics import Ratings, coefficients, intervals
from coaudit.annotation.statistics.agreement import Level, agreement
from coaudit.annotation.statistics.intervals import (
    MISSING,
    Floats,
    Ints,
    Patterns,
    distinct_rows,
    interval_around,
    patterns,
    wilson,
)


def drawn(sample: Patterns, resamples: int) -> Floats:
    """Draws of pattern counts (resamples, P)."""
    return np.concatenate(list(sample.draws(resamples, seed=1)))


@pytest.mark.library
@pytest.mark.parametrize(("successes", "n"), [(0, 10), (1, 30), (15, 20), (20, 20)])
def test_proportions_equal_statsmodels(successes: int, n: int) -> None:
    from statsmodels.stats.proportion import proportion_confint

    assert wilson(successes, n)[:2] == pytest.approx(proportion_confint(successes, n, method="wilson"))


def test_a_proportion_of_nothing_has_no_interval() -> None:
    assert wilson(0, 0)[:3] == (None, None, "no observation")
    with pytest.raises(ValueError, match=r"0\.\.n, got 3 of 2"):
        wilson(3, 2)


def test_undefined_resamples_are_counted_and_too_many_leave_no_interval() -> None:
    few = interval_around(0.5, np.array([0.4, np.nan, 0.6, 0.5]))
    assert few.undefined_resamples == 1 and few.low is not None
    many = interval_around(0.5, np.array([np.nan, np.nan, 0.5]))
    assert (many.low, many.reason) == (None, "2 of 3 resamples are undefined")


@pytest.mark.parametrize(("labels", "raters"), [(2, 2), (2, 3), (5, 3), (11, 3), (4, 12)])
def test_the_prior_weighs_two_units_and_half_of_it_is_unanimous(labels: int, raters: int) -> None:
    matrix = np.random.default_rng(0).integers(0, labels, (40, raters))
    found = patterns(matrix, labels)
    unanimous = (found.cells == found.cells[:, :1]).all(1)
    assert found._prior.sum() == pytest.approx(2)
    assert found._prior[unanimous].sum() == pytest.approx(1, abs=0.05)
    if labels == raters == 2:
        assert found._prior.tolist() == [0.5] * 4


@pytest.mark.parametrize(("labels", "raters"), [(3, 2), (7, 2), (7, 3), (11, 5)])
def test_on_a_scale_the_dissent_of_the_prior_is_about_as_far_apart_as_that_of_the_sample(
    labels: int, raters: int
) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, labels - 1, (200, 1)) + (rng.random((200, raters)) < 0.2)
    found = patterns(matrix, labels, ordered=True)
    apart = found.cells.max(1) - found.cells.min(1)
    assert found._prior.sum() == pytest.approx(2)
    assert found._prior[apart == 0].sum() == pytest.approx(1, abs=0.05)
    assert found._prior[apart == 1].sum() > 0.9, "raters were off by one at most"
    assert found._prior[apart == labels - 1].min() > 0, "and may be off by more"


def test_resamples_of_ordinal_alpha_lie_around_that_of_the_sample() -> None:
    rng = np.random.default_rng(1)
    near = rng.integers(0, 11, (60, 1)) + rng.choice([-1, 0, 1], (60, 3), p=[0.2, 0.6, 0.2])
    names = tuple(str(k) for k in range(11))
    (row,) = agreement(Ratings(np.clip(near, 0, 10), names, tuple("abc"), "ordinal"), ["krippendorff_alpha"])
    assert row.value is not None and row.low is not None and row.high is not None
    assert row.high - row.value > 0.4 * (row.value - row.low), "with distances of their own alone a fifth"
    assert row.high - row.low > 0.034, "with the sample's distances .029"


def test_draws_of_ordinal_alpha_have_distances_of_their_own_and_the_mean_of_those_with_the_samples() -> None:
    rng = np.random.default_rng(2)
    cells = rng.integers(0, 4, (30, 3))
    cells[:10, 2] = MISSING
    tally = coefficients.Tally(cells, 4)
    counts = rng.gamma(2, 1, (50, 30))
    ranks = coefficients.ordinal_distance(tally.by_label.sum(0))
    own = np.concatenate(
        [
            coefficients.krippendorff_alpha(
                row[None], tally, coefficients.ordinal_distance(row @ tally.by_label)
            )
            for row in counts
        ]
    )
    found = coefficients.ordinal_alpha(counts, tally, ranks)
    assert found - found.mean() == pytest.approx(own - own.mean())
    assert found.mean() == pytest.approx(coefficients.krippendorff_alpha(counts, tally, ranks).mean())
    assert coefficients.ordinal_alpha(counts[:1], tally, ranks) == pytest.approx(
        coefficients.krippendorff_alpha(counts[:1], tally, ranks)
    )


@pytest.mark.slow
@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_the_interval_of_a_scale_covers_where_raters_are_off_by_one(level: Level) -> None:
    rng, names = np.random.default_rng(5), tuple("1234567")

    def sample(n: int) -> Ratings:
        near = rng.choice([-1, 0, 1], (n, 2), p=[0.05, 0.9, 0.05])
        return Ratings(np.clip(rng.integers(0, 7, (n, 1)) + near, 0, 6), names, ("a", "b"), level)

    truth = agreement(sample(100_000), ["krippendorff_alpha"], resamples=2)[0].value or 0.0
    rows = [agreement(sample(100), ["krippendorff_alpha"], resamples=500, seed=s)[0] for s in range(200)]
    held = [row.low <= truth <= row.high for row in rows if row.low is not None and row.high is not None]
    assert len(held) == 200 and 0.92 <= np.mean(held) <= 0.99


def test_draws_are_centred_on_the_sample_and_sum_to_its_units() -> None:
    matrix = np.random.default_rng(0).integers(0, 2, (500, 2))
    for clusters in (None, np.arange(500) // 5):
        found = patterns(matrix, 2, clusters=clusters)
        draws = drawn(found, 4000)
        assert draws.sum(1) == pytest.approx(500)
        assert draws.mean(0) == pytest.approx(found.counts, abs=2.0)


def covered(labels: int, raters: int, prevalence: float, clustered: bool, samples: int = 200) -> float:
    """Coverage of Fleiss' kappa of .6: each rater sees the true label with probability √.6, else guesses."""
    rng = np.random.default_rng(5)
    rare = 0.5 ** np.arange(labels - 1)
    margins = np.r_[1 - prevalence, prevalence * rare / rare.sum()]
    names, annotators = tuple(str(k) for k in range(labels)), tuple("abc"[:raters])
    held = []
    for number in range(samples):
        n, clusters = 120, None
        if clustered:  # trajectories copy some of their units, so that these are not independent
            sizes = rng.integers(1, 6, 60)
            clusters = np.repeat(np.arange(60), sizes)
            n = len(clusters)
        true = rng.choice(labels, (n, 1), p=margins)
        guess = rng.choice(labels, (n, raters), p=margins)
        matrix = np.where(rng.random((n, raters)) < 0.6**0.5, true, guess)
        if clusters is not None:
            first = np.flatnonzero(np.diff(clusters, prepend=-1))
            copied = rng.random(n) < 0.4
            matrix[copied] = matrix[first[clusters[copied]]]
        ratings = Ratings(matrix, names, annotators, clusters=clusters)
        (row,) = agreement(ratings, ["fleiss_kappa"], resamples=500, seed=number)
        if row.low is not None and row.high is not None:
            held.append(row.low <= 0.6 <= row.high)
    return float(np.mean(held))


def test_one_heavy_unit_beside_many_light_ones_tells_little() -> None:
    light = np.tile([[0, 0], [1, 1], [0, 1], [1, 0]], (10, 1))
    weights = np.append(np.ones(40), 1e5)
    ratings = Ratings(np.vstack([light, [[1, 1]]]), ("p", "n"), ("ann", "bob"), weights=weights)
    (row,) = agreement(ratings, ["percent_agreement"], resamples=1000)
    assert row.value == pytest.approx(1.0, abs=0.001)
    assert row.low is not None and row.low < 0.1


def test_strata_of_equal_total_weight_have_the_same_levels_whatever_the_last_digit() -> None:
    sizes = (2, 4, 5, 12)
    weights = np.repeat(1 / np.array(sizes), sizes)
    matrix = np.random.default_rng(4).integers(0, 2, (len(weights), 2))
    levels = set()
    for seed in range(40):
        digits = np.random.default_rng(seed).integers(-2, 3, len(weights))
        found = patterns(matrix, 2, weights=weights * (1 + digits * 2.0**-52))
        levels.add((len(found.cells), drawn(found, 5).round(6).tobytes()))
    assert len(levels) == 1


def test_weights_that_only_rounding_parts_are_one() -> None:
    rng = np.random.default_rng(4)
    matrix = rng.integers(0, 2, (60, 2))
    weights = np.repeat([1 / 0.3, 1 / 0.7], 30)
    rounded = weights * (1 + rng.integers(-2, 3, 60) * 2.0**-52)
    assert len(np.unique(rounded)) > 4
    first, second = (patterns(matrix, 2, weights=one) for one in (weights, rounded))
    assert len(first.cells) == len(second.cells)
    assert drawn(second, 200) == pytest.approx(drawn(first, 200), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "raters", "prevalence", "clustered"),
    [
        (2, 2, 0.05, False),
        (2, 2, 0.5, True),
        (2, 3, 0.05, True),
        (2, 3, 0.5, False),
        (5, 2, 0.05, True),
        (5, 2, 0.5, False),
        (5, 3, 0.05, False),
        (5, 3, 0.5, True),
    ],
)
def test_the_interval_of_kappa_covers_95_of_100(
    labels: int, raters: int, prevalence: float, clustered: bool
) -> None:
    assert 0.92 <= covered(labels, raters, prevalence, clustered) <= 0.98


@given(
    st.sampled_from([(-1, 1), (0, 6), (5, 90), (-(2**40), 2**40), (-(2**63), 2**63 - 1)]),
    st.integers(0, 40),
    st.integers(1, 4),
    st.integers(0, 2**32),
)
def test_distinct_rows_are_those_of_numpy_whatever_numbers_they_hold(
    ends: tuple[int, int], n: int, columns: int, seed: int
) -> None:
    """Few numbers are counted, many sorted, and where no number can stand for a row the rows are."""
    rng = np.random.default_rng(seed)
    table = rng.integers(*ends, size=(n, columns), endpoint=True)
    table = table[rng.integers(n, size=2 * n)] if n else table
    rows, inverse, counts = distinct_rows(table)
    expected, _, occurrences = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    assert np.array_equal(rows, expected)
    assert np.array_equal(counts, occurrences)
    assert np.array_equal(rows[inverse], table)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64, np.bool_])
def test_distinct_rows_of_few_bytes_or_without_a_sign_are_those_of_numpy(kind: type) -> None:
    ends = (0, 2) if kind is np.bool_ else (0, 200) if kind is np.uint64 else (-100, 101)
    table: Ints = np.random.default_rng(0).integers(*ends, size=(300, 2)).astype(kind)
    apart: Ints = np.array([[2**60], [1], [2**60 + 1], [1]]).astype(kind)
    for one in (table, table[:5], *([apart] if kind is np.uint64 else [])):
        rows, inverse, _ = distinct_rows(one)
        assert np.array_equal(rows, np.unique(one, axis=0)) and rows.dtype == one.dtype
        assert np.array_equal(rows[inverse], one)


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.str_, np.float64])
def test_trajectories_may_be_named_by_anything_that_can_be_sorted(kind: type) -> None:
    """Codes of a frame's categories are bytes, hashes have no sign, and ids are texts."""
    rng = np.random.default_rng(1)
    matrix, clusters = rng.integers(0, 2, (400, 2)), rng.integers(-100, 100, 400)
    if kind is np.uint64:
        clusters += 100
    expected = patterns(matrix, 2, clusters=clusters)
    names = patterns(matrix, 2, clusters=clusters.astype(kind))
    assert names.independent == expected.independent == len(np.unique(clusters))
    if kind is not np.str_:  # which have another order
        assert np.array_equal(drawn(names, 5), drawn(expected, 5))


def test_a_unit_without_weight_does_not_count() -> None:
    matrix = np.array([[0, 0]] * 6 + [[0, 1]] * 4)
    found = patterns(matrix, 2, weights=np.repeat([1.0, 0.0, 2.0], [3, 3, 4]))
    assert found.counts[found.cells[:, 1] == 0].sum() == pytest.approx(10 * 3 / 11)


@pytest.mark.parametrize("clustered", [False, True])
def test_many_patterns_are_drawn_in_batches_with_the_same_interval(
    clustered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    labels = np.where(rng.random((200, 8)) < 0.8, rng.integers(0, 2, (200, 1)), rng.integers(0, 2, (200, 8)))
    ratings = Ratings(
        labels, ("no", "yes"), tuple("abcdefgh"), clusters=np.arange(200) // 4 if clustered else None
    )
    (at_once,) = agreement(ratings, ["krippendorff_alpha"])
    monkeypatch.setattr(intervals, "_DRAWN", 10_000)
    sample = patterns(labels, 2, clusters=ratings.clusters)
    assert clustered == hasattr(sample._by_cluster, "tocsr")
    sizes = [len(batch) for batch in sample.draws(2000, seed=1)]
    assert len(sizes) > 20 and sum(sizes) == 2000 and max(sizes) * len(sample.cells) <= 10_000
    (in_batches,) = agreement(ratings, ["krippendorff_alpha"])
    assert in_batches.value == at_once.value
    assert in_batches.low == pytest.approx(at_once.low, abs=0.01)
    assert in_batches.high == pytest.approx(at_once.high, abs=0.01)


def test_the_design_effect_of_a_sparse_table_is_that_of_the_whole_one() -> None:
    from scipy.sparse import csr_array

    rng = np.random.default_rng(7)
    table = rng.poisson(0.2, (40, 30)) * rng.choice([1.0, 2.5], 30)
    sizes, shares = table.sum(1), table.sum(0) / table.sum()
    between = ((table - sizes[:, None] * shares) ** 2).sum() * 40 / 39
    effect = between / (sizes.sum() * (shares * (1 - shares)).sum())
    assert effect > 1
    assert intervals._design_effect(table) == pytest.approx(effect)
    assert intervals._design_effect(csr_array(table)) == pytest.approx(effect)


def test_clusters_that_are_alike_are_drawn_as_one_in_a_sparse_table_too() -> None:
    from scipy.sparse import csr_array

    table = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0], [1.0, 0.0, 0.0]])
    rows, alike = intervals._alike(csr_array(table))
    assert sorted(zip(rows.toarray().tolist(), alike.tolist(), strict=True)) == [
        ([0.0, 1.0, 2.0], 1),
        ([0.0, 2.0, 1.0], 2),
        ([1.0, 0.0, 0.0], 2),
    ]
