"""Agreement: published tables, hand calculation, and the libraries where their definitions coincide."""

import tracemalloc
import warnings
from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from coaudit.annotation.statistics import Coefficient, Ratings, coefficients, sets
from coaudit.annotation.statistics.agreement import COEFFICIENTS, Level, agreement
from coaudit.annotation.statistics.sets import set_alpha, set_distances

NAN = -1


def ratings(matrix: Any, labels: Any = ("0", "1"), **options: Any) -> Ratings:
    matrix = np.array(matrix, dtype=np.int64)
    raters = tuple("abcdefghijklmnop"[: matrix.shape[1]])
    return Ratings(matrix, tuple(labels), raters, **options)


def one(
    name: str, matrix: Any, labels: Any = ("0", "1"), resamples: int = 200, **options: Any
) -> Coefficient:
    (row,) = agreement(ratings(matrix, labels, **options), [name], resamples=resamples)
    return row


def from_table(table: Any) -> NDArray[np.int64]:
    """Two raters' units from their contingency table."""
    table = np.array(table)
    return np.repeat(np.argwhere(np.ones_like(table)), table.ravel(), axis=0)


# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section C: 4 observers, 12 units.
KRIPPENDORFF_2011 = (
    np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
            [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
        ]
    ).T
    - 1
)

# irrCAC, CAC(frame of those ratings): fleiss(), gwet(), bp(), krippendorff()["est"]["coefficient_value"].
IRRCAC = {"fleiss_kappa": 0.76117, "gwet_ac1": 0.77544, "pabak": 0.77273, "krippendorff_alpha": 0.74342}

# Fleiss (1971) as printed in Fleiss, Levin and Paik: 10 subjects, 14 raters, 5 categories (kappa .210).
FLEISS_TABLE = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_is_that_of_krippendorffs_own_example_at_every_level(level: Any, published: Any) -> None:
    row = one("krippendorff_alpha", KRIPPENDORFF_2011, "12345", level=level)
    assert row.value == pytest.approx(published, abs=5e-4)
    assert (row.n_units, row.n_ratings) == (11, 40)


def test_fleiss_kappa_is_that_of_the_published_table() -> None:
    matrix = [np.repeat(np.arange(5), counts) for counts in FLEISS_TABLE]
    assert one("fleiss_kappa", matrix, "12345").value == pytest.approx(0.2099, abs=5e-5)


def test_two_by_two_coefficients_are_those_worked_out_by_hand() -> None:
    matrix = from_table([[20, 5], [10, 15]])
    rows = {
        row.coefficient: row.value
        for row in agreement(ratings(matrix, ("yes", "no"), positive="yes"), resamples=50)
    }
    assert rows["percent_agreement"] == pytest.approx(0.7)
    assert rows["positive_agreement"] == pytest.approx(40 / 55)
    assert rows["negative_agreement"] == pytest.approx(30 / 45)
    assert rows["cohen_kappa"] == pytest.approx(0.4)  # chance .5·.6 + .5·.4
    assert rows["mean_cohen_kappa"] == rows["cohen_kappa"]
    assert rows["fleiss_kappa"] == pytest.approx((0.7 - 0.505) / 0.495)  # margins .55 and .45
    assert rows["krippendorff_alpha"] == pytest.approx(1 - 99 * 30 / (2 * 55 * 45))
    assert rows["gwet_ac1"] == pytest.approx((0.7 - 0.495) / 0.505)
    assert rows["pabak"] == pytest.approx(0.4)


def test_every_declared_coefficient_is_reported_by_its_name() -> None:
    rows = agreement(ratings(from_table([[5, 2], [1, 4]]), positive="1"), resamples=50)
    assert {row.coefficient for row in rows} == set(COEFFICIENTS)


def test_the_two_rater_fleiss_is_scotts_pi_and_not_cohens_kappa() -> None:
    matrix = from_table([[20, 5], [10, 15]])
    assert one("fleiss_kappa", matrix).value != pytest.approx(one("cohen_kappa", matrix).value, abs=1e-3)


@pytest.mark.library
def test_weighted_kappa_depends_on_the_declared_labels_in_their_order() -> None:
    from sklearn.metrics import cohen_kappa_score

    table = np.zeros((11, 11), dtype=int)
    table[0, 0], table[9, 10], table[10, 9], table[2, 10] = 5, 3, 2, 1
    matrix = from_table(table)
    declared = [str(k) for k in range(11)]
    for name, weights in (("cohen_kappa_linear", "linear"), ("cohen_kappa_quadratic", "quadratic")):
        expected = cohen_kappa_score(*matrix.T, labels=list(range(11)), weights=weights)
        assert one(name, matrix, declared).value == pytest.approx(expected)


def test_pabak_and_ac1_count_the_declared_labels_not_the_used_ones() -> None:
    matrix = from_table([[20, 5], [10, 15]])
    assert one("pabak", matrix, "abc").value == pytest.approx((3 * 0.7 - 1) / 2)
    chance = (0.55 * 0.45 * 2) / 2
    assert one("gwet_ac1", matrix, "abc").value == pytest.approx((0.7 - chance) / (1 - chance))


UNEVEN = [[0, 0, 1], [1, 1, NAN], [0, NAN, NAN]]


def test_margins_come_from_the_units_that_two_raters_have_seen() -> None:
    # units: 0 0 1 | 1 1 – | 0 – – ; agreement (1/3 + 1)/2 ; margin of 1: (1/3 + 1)/2
    row = one("fleiss_kappa", UNEVEN)
    chance = (2 / 3) ** 2 + (1 / 3) ** 2
    assert row.value == pytest.approx((2 / 3 - chance) / (1 - chance))
    assert (row.n_units, row.n_ratings) == (2, 5)


def test_gwets_convention_takes_margins_of_all_rated_units_and_counts_them() -> None:
    # margin of 1: (1/3 + 1 + 0)/3
    for name, chance in (("fleiss_kappa", (4 / 9) ** 2 + (5 / 9) ** 2), ("gwet_ac1", 2 * 4 / 9 * 5 / 9)):
        (row,) = agreement(ratings(UNEVEN), [name], margins="all", resamples=50)
        assert row.value == pytest.approx((2 / 3 - chance) / (1 - chance))
        assert (row.n_units, row.n_ratings) == (3, 6)
    with pytest.raises(ValueError, match="unknown margins 'some', expected one of paired, all"):
        agreement(ratings(UNEVEN), margins="some")  # type: ignore[arg-type]


def test_with_gwets_convention_the_coefficients_are_those_of_irrcac() -> None:
    found = agreement(ratings(KRIPPENDORFF_2011, "12345"), list(IRRCAC), margins="all", resamples=50)
    assert {row.coefficient: row.value for row in found} == pytest.approx(IRRCAC, abs=5e-6)


def test_units_that_a_judge_alone_has_rated_change_no_coefficient() -> None:
    rng = np.random.default_rng(4)
    truth = rng.random(1000) < 0.1
    said = np.stack(
        [np.where(rng.random(1000) < 0.9, truth, rng.random(1000) < 0.4) for _ in range(3)], axis=1
    )
    shared = said[:200].astype(np.int64)
    whole = said.astype(np.int64)
    whole[200:, 1:] = NAN  # two people on 200 units, the judge on all
    assert agreement(ratings(whole), resamples=100) == agreement(ratings(shared), resamples=100)


def test_uneven_numbers_of_raters_weigh_units_alike() -> None:
    # 1 1 | 0 0 0 | 0 1 0: agreement (1 + 1 + 1/3)/3 = 7/9, margin of 1 (1 + 0 + 1/3)/3 = 4/9
    row = one("fleiss_kappa", [[1, 1, NAN], [0, 0, 0], [0, 1, 0]])
    assert row.value == pytest.approx((7 / 9 - 41 / 81) / (40 / 81))


def test_the_mean_of_a_judges_kappas_counts_the_units_that_it_shares_with_a_person() -> None:
    matrix = [[0, 0, NAN], [1, NAN, 1], [NAN, 1, 1], [0, 1, 1], [1, NAN, NAN]]
    (row,) = agreement(ratings(matrix), ["mean_cohen_kappa"], pairs=[(0, 1), (0, 2)], resamples=50)
    assert (row.n_units, row.n_ratings) == (3, 7)


def test_the_mean_of_pairwise_kappas_is_over_the_defined_pairs() -> None:
    matrix = [[0, 0, 0], [1, 1, NAN], [0, 1, 0], [1, 1, NAN], [0, 0, 0]]
    kappa = one("mean_cohen_kappa", matrix)
    pairs = agreement(ratings(matrix), ["cohen_kappa"], resamples=50)
    assert [row.raters for row in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert pairs[1].value is None and pairs[1].reason == "one label only"
    defined = [row.value for row in pairs if row.value is not None]
    assert kappa.value == pytest.approx(sum(defined) / 2)


def test_weights_of_an_interval_scale_are_of_its_values_and_of_an_ordinal_one_of_ranks() -> None:
    said = [[0, 0, 1, 1, 2, 2, 3, 3, 0, 1, 2, 3], [0, 1, 1, 0, 2, 3, 3, 2, 0, 1, 3, 2]]
    kappas: dict[str, set[float]] = {}
    for level in ("interval", "ordinal"):
        scale = ratings(np.array(said).T, ("0", "1", "5", "10"), level=level)
        for row in agreement(scale, ["cohen_kappa_quadratic", "mean_cohen_kappa_quadratic"], resamples=50):
            kappas.setdefault(level, set()).add(round(row.value or 0, 5))
    # Quadratic weights of 0, 1, 5, 10: irrCAC says .72581 (conger); of ranks, scikit-learn says .8.
    assert kappas == {"interval": {0.72581}, "ordinal": {0.8}}


def test_specific_agreement_of_several_raters_weighs_pairs() -> None:
    matrix = np.array([[0, 0, NAN], [0, 1, 1]])
    some = Ratings(matrix, ("present", "absent"), ("a", "b", "c"), positive="present")
    rows = agreement(some, ["positive_agreement", "negative_agreement"], resamples=50)
    # Present: 2 of the ordered pairs 2·1 + 1·2; absent: 2 of 2·2.
    assert [row.value for row in rows] == [0.5, 0.5]


def test_the_mean_of_kappas_of_few_units_each_has_no_interval() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((90, 1)) < 0.3
    whole = np.where(rng.random((90, 10)) < 0.8, truth, rng.random((90, 10)) < 0.3).astype(int)
    few = np.where(np.argsort(rng.random(whole.shape), axis=1) < 3, whole, NAN)
    row = agreement(ratings(few), ["mean_cohen_kappa"], resamples=200)[0]
    assert row.value is not None and (row.low, row.high) == (None, None)
    assert (
        row.reason is not None
        and "of 90 units, 1.34 of them with a rarer label, and kappas of few" in row.reason
    )
    assert agreement(ratings(few), ["fleiss_kappa"], resamples=200)[0].low is not None
    unit, rater = np.arange(120)[:, None], np.arange(3)
    rare = np.where(unit % 3 == rater, NAN, (unit < 12) & ((unit != 4) | (rater != 2)))
    row = agreement(ratings(rare), ["mean_cohen_kappa"], resamples=200)[0]
    assert row.reason is not None and "40 of 120 units, 3.83 of them with a rarer label" in row.reason
    for enough in (whole, few[:, :2], whole[:4, :2]):
        assert agreement(ratings(enough), ["mean_cohen_kappa"], resamples=200)[0].low is not None


def test_pairs_may_be_limited_to_the_judge_and_each_human() -> None:
    matrix = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 0, 1]])
    rows = agreement(
        ratings(matrix), ["cohen_kappa", "mean_cohen_kappa"], pairs=[(0, 2), (1, 2)], resamples=50
    )
    assert [row.raters for row in rows] == [("a", "c"), ("b", "c"), ("a", "b", "c")]
    pairs = [row.value for row in rows[:2] if row.value is not None]
    assert rows[2].value == pytest.approx(sum(pairs) / 2)


@pytest.mark.parametrize("name", ["cohen_kappa", "mean_cohen_kappa", "fleiss_kappa", "krippendorff_alpha"])
def test_constant_data_leave_kappa_and_alpha_undefined(name: Any) -> None:
    row = one(name, [[0, 0], [0, 0], [0, 0]])
    assert (row.value, row.low, row.high, row.reason) == (None, None, None, "one label only")


@pytest.mark.parametrize("name", ["gwet_ac1", "pabak"])
def test_constant_data_give_ac1_and_pabak_of_one_with_a_warning(name: Any) -> None:
    row = one(name, [[0, 0]] * 20)
    assert (row.value, row.high, row.reason) == (1.0, 1.0, "one label only")
    assert row.low is not None and row.low < 1


def test_constant_but_different_raters_are_defined() -> None:
    matrix = [[0, 1]] * 10
    assert one("cohen_kappa", matrix).value == pytest.approx(0)
    assert one("fleiss_kappa", matrix).value == pytest.approx(-1)
    assert one("krippendorff_alpha", matrix).value == pytest.approx(1 - 19 * 20 / 200)


@pytest.mark.parametrize("name", ["cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "percent_agreement"])
def test_perfect_agreement_on_two_labels_is_one_with_an_interval_of_some_width(name: Any) -> None:
    row = one(name, [[0, 0]] * 10 + [[1, 1]] * 10)
    assert row.value == pytest.approx(1)
    assert row.high == pytest.approx(1)
    assert row.low is not None and row.low < 0.95


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        (np.empty((0, 2)), "no rating"),
        ([[NAN, NAN]], "no rating"),
        ([[0, NAN], [1, NAN]], "a single rater"),
        ([[0], [1]], "a single rater"),
        ([[0, NAN], [NAN, 1]], "no unit with two ratings"),
    ],
)
def test_what_cannot_be_compared_is_null_with_the_reason(matrix: Any, reason: Any) -> None:
    for row in agreement(ratings(matrix), resamples=50):
        assert (row.value, row.low, row.high, row.reason) == (None, None, None, reason)
        assert row.n_units == row.n_ratings == 0
    assert {"cohen_kappa", "mean_cohen_kappa"} <= {
        row.coefficient for row in agreement(ratings(matrix), resamples=50)
    }


def test_units_of_a_single_trajectory_have_no_interval() -> None:
    row = one("cohen_kappa", [[0, 0], [1, 1], [0, 1]], clusters=np.zeros(3, dtype=np.int64))
    assert row.value is not None
    assert (row.low, row.reason) == (None, "no interval: a single unit or cluster")


def test_design_weights_restore_what_uneven_sampling_distorted() -> None:
    population = from_table([[900, 20], [60, 20]])
    judged_yes = population[:, 1] == 1
    kept = judged_yes | (np.arange(len(population)) % 10 == 0)
    weights = np.where(judged_yes, 1.0, 10.0)[kept]
    truth = one("cohen_kappa", population).value
    assert one("cohen_kappa", population[kept], weights=weights).value == pytest.approx(truth, abs=0.01)
    assert one("cohen_kappa", population[kept]).value != pytest.approx(truth, abs=0.1)


def test_equal_weights_change_nothing_and_the_scale_of_weights_does_not_matter() -> None:
    matrix = from_table([[20, 5], [10, 15]])
    assert one("fleiss_kappa", matrix, weights=np.full(50, 7.0)) == one("fleiss_kappa", matrix)


def test_the_same_seed_gives_the_same_interval() -> None:
    assert one("fleiss_kappa", KRIPPENDORFF_2011, "12345") == one("fleiss_kappa", KRIPPENDORFF_2011, "12345")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": ("a",)}, "two or more"),
        ({"labels": ("a", "a")}, "two or more"),
        ({"level": "ratio"}, "nominal, ordinal, interval"),
        ({"level": "interval", "labels": ("lo", "hi")}, "must be numbers"),
        ({"level": "interval", "labels": ("1", "nan")}, "must be numbers"),
        ({"level": "interval", "labels": ("1", "inf")}, "must be numbers"),
        ({"matrix": np.array([[0, 2]])}, "below 2"),
        ({"weights": np.array([0.0])}, "positive numbers"),
        ({"clusters": np.array([0, 1])}, "each of 1 units"),
        ({"positive": "maybe"}, "one of a, b"),
        ({"raters": ("x",)}, "2 columns for 1 raters"),
    ],
)
def test_wrong_input_is_refused_with_the_rule_and_the_value(change: Any, message: Any) -> None:
    valid = {"matrix": np.array([[0, 1]]), "labels": ("a", "b"), "raters": ("x", "y")}
    with pytest.raises(ValueError, match=message):
        Ratings(**(valid | change))


def test_an_unknown_coefficient_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown coefficient 'kappa', expected one of percent_agreement"):
        agreement(ratings([[0, 1]]), ["kappa"])


MATRICES = arrays(np.int64, st.tuples(st.integers(2, 25), st.integers(2, 4)), elements=st.integers(-1, 3))


@settings(max_examples=60)
@given(MATRICES, st.sampled_from(["nominal", "ordinal", "interval"]))
def test_alpha_equals_the_krippendorff_package(matrix: Any, level: Any) -> None:
    row = one("krippendorff_alpha", matrix, "0123", level=level, resamples=20)
    paired = matrix[(matrix != NAN).sum(1) >= 2]
    if len(np.unique(paired[paired != NAN])) < 2:
        assert row.value is None and row.reason
        return
    data = np.where(matrix == NAN, np.nan, matrix).T
    expected = krippendorff.alpha(data, value_domain=[0, 1, 2, 3], level_of_measurement=level)
    assert row.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.library
@settings(max_examples=40)
@given(arrays(np.int64, st.tuples(st.integers(1, 25), st.integers(2, 4)), elements=st.integers(0, 3)))
def test_fleiss_kappa_equals_statsmodels_on_complete_ratings(matrix: Any) -> None:
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    row = one("fleiss_kappa", matrix, "0123", resamples=20)
    if len(np.unique(matrix)) == 1:
        assert row.value is None
        return
    counts, _ = aggregate_raters(matrix, 4)
    assert row.value == pytest.approx(fleiss_kappa(counts))


@pytest.mark.long
@pytest.mark.library
@settings(max_examples=40)
@given(arrays(np.int64, st.tuples(st.integers(1, 25), st.just(2)), elements=st.integers(0, 3)))
def test_cohens_kappas_equal_scikit_learn(matrix: Any) -> None:
    from sklearn.metrics import cohen_kappa_score

    weights = {"cohen_kappa": None, "cohen_kappa_linear": "linear", "cohen_kappa_quadratic": "quadratic"}
    for name, weight in weights.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = cohen_kappa_score(*matrix.T, labels=[0, 1, 2, 3], weights=weight)
        row = one(name, matrix, "0123", resamples=20)
        assert row.value == (None if np.isnan(expected) else pytest.approx(expected))


@settings(max_examples=60)
@given(MATRICES, st.booleans())
def test_an_interval_holds_the_value_and_has_some_width(matrix: Any, clustered: Any) -> None:
    clusters = np.arange(len(matrix)) // 2 if clustered else None
    for row in agreement(ratings(matrix, "0123", clusters=clusters), resamples=200):
        if row.value is None or row.low is None or row.high is None:
            assert row.reason and row.low is None and row.high is None
        else:
            assert row.low <= row.value <= row.high
            assert row.low < row.high


def test_set_distances_follow_the_published_rule_and_that_of_the_empty_set() -> None:
    few = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    masi = set_distances(few, "masi")
    assert masi[0].tolist() == pytest.approx([0, 1 - 1 / 2 * 2 / 3, 1 - 1 / 3 * 1 / 3, 1, 1])
    jaccard = set_distances(few, "jaccard")
    assert jaccard[0].tolist() == pytest.approx([0, 1 / 2, 2 / 3, 1, 1])
    assert masi[4, 4] == jaccard[4, 4] == 0


def test_set_alpha_is_that_worked_out_by_hand() -> None:
    # two units; {1} and {1}, then {} and {1}: one pair apart in four values, three {1} and one {}
    chosen = np.array([[[1, 0], [1, 0]], [[0, 0], [1, 0]]], dtype=bool)
    row = set_alpha(chosen, np.ones((2, 2), dtype=bool), ("a", "b"), "jaccard", resamples=100)
    assert row.coefficient == "krippendorff_alpha_jaccard"
    assert row.value == pytest.approx(1 - 3 * 2 / (2 * 3 * 1))


def test_set_alpha_of_single_labels_is_the_nominal_alpha() -> None:
    matrix = np.random.default_rng(0).integers(0, 4, (30, 3))
    row = set_alpha(
        np.eye(4, dtype=bool)[matrix], np.ones((30, 3), dtype=bool), ("a", "b", "c"), resamples=50
    )
    assert row.value == pytest.approx(one("krippendorff_alpha", matrix, "0123").value)


def test_set_alpha_without_variation_or_second_rating_is_null() -> None:
    empty = np.zeros((4, 2, 3), dtype=bool)
    assert set_alpha(empty, np.ones((4, 2), dtype=bool), ("a", "b")).reason == "one label only"
    alone = np.array([[True, False]] * 4)
    assert set_alpha(empty, alone, ("a", "b")).reason == "a single rater"


def test_sets_that_a_judge_alone_gave_are_compared_with_none_and_take_no_memory() -> None:
    rng = np.random.default_rng(2)
    chosen = rng.random((3000, 2, 26)) < 0.2
    rated = np.ones((3000, 2), dtype=bool)
    rated[40:, 1] = False
    tracemalloc.start()
    row = set_alpha(chosen, rated, ("judge", "a"), resamples=50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24, "distances of the 3,000 sets of the judge's corpus alone are 72 MB"
    own = set_alpha(chosen[:40], rated[:40], ("judge", "a"), resamples=50)
    assert row.value == pytest.approx(own.value)
    assert row.n_units == 40


@pytest.mark.parametrize("distance", ["masi", "jaccard"])
def test_alpha_of_many_sets_is_that_with_all_distances_in_a_table(
    distance: sets.SetDistance, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    chosen = (rng.random((300, 1, 8)) < 0.3) ^ (rng.random((300, 3, 8)) < 0.1)
    rated, weights = rng.random((300, 3)) < 0.8, rng.choice([1.0, 4.0], 300)
    table = set_alpha(chosen, rated, ("a", "b", "c"), distance, weights=weights)
    monkeypatch.setattr(sets, "_TABLE", 2)
    other = set_alpha(chosen, rated, ("a", "b", "c"), distance, weights=weights)
    assert table.value and table.low and table.high
    assert other.value == pytest.approx(table.value)
    assert (other.n_units, other.n_ratings) == (table.n_units, table.n_ratings)
    assert other.low == pytest.approx(table.low, abs=(table.high - table.low) / 20)
    assert other.high == pytest.approx(table.high, abs=(table.high - table.low) / 20)


@pytest.mark.parametrize("distance", ["masi", "jaccard"])
@pytest.mark.parametrize("n_clusters", [5, 15])
def test_intervals_of_few_clusters_with_many_sets_are_those_with_all_distances_in_a_table(
    n_clusters: int, distance: sets.SetDistance, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    clusters = np.arange(400) % n_clusters
    shares = 1 / (1 + np.exp(1.4 - rng.normal(0, 1, (n_clusters, 10))))
    chosen = (rng.random((400, 10)) < shares[clusters])[:, None] ^ (rng.random((400, 3, 10)) < 0.1)
    rated = np.ones((400, 3), dtype=bool)
    table = set_alpha(chosen, rated, ("a", "b", "c"), distance, clusters=clusters)
    monkeypatch.setattr(sets, "_TABLE", 2)
    other = set_alpha(chosen, rated, ("a", "b", "c"), distance, clusters=clusters)
    assert table.low and table.high
    assert other.low == pytest.approx(table.low, abs=(table.high - table.low) / 30)
    assert other.high == pytest.approx(table.high, abs=(table.high - table.low) / 30)


def test_many_sets_take_little_memory() -> None:
    rng = np.random.default_rng(4)
    chosen = rng.random((3000, 2, 26)) < 0.2
    tracemalloc.start()
    row = set_alpha(chosen, np.ones((3000, 2), dtype=bool), ("a", "b"), resamples=50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**26, "distances of 5,700 sets are 260 MB"
    assert row.value == pytest.approx(0, abs=0.01)


def test_design_weights_restore_the_alpha_of_sets_too() -> None:
    rng = np.random.default_rng(5)
    rare = rng.random(4000) < 0.1
    chosen = (rng.random((4000, 2, 3)) < np.where(rare, 0.7, 0.02)[:, None, None]) & True
    everyone = np.ones((4000, 2), dtype=bool)
    kept = rare | (rng.random(4000) < 0.2)
    weights = np.where(rare, 1.0, 5.0)[kept]
    whole = set_alpha(chosen, everyone, ("a", "b"), resamples=20).value
    weighted = set_alpha(chosen[kept], everyone[kept], ("a", "b"), weights=weights, resamples=20).value
    plain = set_alpha(chosen[kept], everyone[kept], ("a", "b"), resamples=20).value
    assert weighted == pytest.approx(whole, abs=0.05)
    assert plain != pytest.approx(whole, abs=0.05)


def test_a_sample_of_very_uneven_weights_knows_little() -> None:
    """Of 300 units with 1/π of up to 1,000 intervals held the share of agreement in .77 of samples."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(60):
        first = rng.integers(2, size=300)
        matrix = np.stack([first, np.where(rng.random(300) < 0.8, first, 1 - first)], axis=1)
        weights = 1 / rng.uniform(0.001, 1, 300)
        row = one("percent_agreement", matrix, weights=weights, resamples=400)
        assert row.low is not None and row.high is not None
        held += row.low <= 0.8 <= row.high
    assert held >= 55


def test_what_a_weighted_sample_lacks_may_be_heavy() -> None:
    # nobody disagrees on 30 units of weight 1 and 30 of weight 9: the next who would may be on one of these
    matrix = from_table([[30, 0], [0, 30]])
    even = one("percent_agreement", matrix, resamples=2000)
    heavy = one("percent_agreement", matrix, weights=np.repeat([1.0, 9.0], 30), resamples=2000)
    assert even.low is not None and heavy.low is not None and heavy.low < even.low - 0.008


@pytest.mark.parametrize(("name", "value"), [("gwet_ac1", 1), ("pabak", 1), ("fleiss_kappa", None)])
def test_constant_data_says_so_also_where_ratings_lack(name: str, value: float | None) -> None:
    row = one(name, [[1, 1, NAN], [1, NAN, 1], [NAN, 1, 1], [1, 1, 1], [0, NAN, NAN]])
    assert (row.value, row.reason, row.n_units) == (value, "one label only", 4)


def test_no_interval_of_alpha_on_a_scale_reaches_beyond_perfect_agreement() -> None:
    """Draws are moved to where those with the sample's ranks lie: 12 grades, of which two differ by one, had
    alpha up to 1.02."""
    grades = np.array([0, 1, 2, 2, 3, 3, 1, 0, 4, 4, 2, 1])
    matrix = np.stack([grades, grades + np.isin(np.arange(12), (1, 2))], axis=1)
    own = Ratings(matrix, ("1", "2", "3", "4", "5"), ("a", "b"), "ordinal", clusters=np.arange(12) // 4)
    (row,) = agreement(own, ["krippendorff_alpha"])
    assert row.value is not None and row.high is not None and row.value < row.high <= 1


def test_gwets_convention_defines_kappa_where_units_that_one_rater_has_seen_have_another_label() -> None:
    """10 units on which both say yes, 5 of one's no: chance is (2/3)² + (1/3)², and 1 − 0/(4/9) is 1."""
    own = Ratings(np.array([[0, 0]] * 10 + [[1, -1]] * 5), ("yes", "no"), ("a", "b"))
    (paired,) = agreement(own, ["fleiss_kappa"])
    assert (paired.value, paired.reason) == (None, "one label only")
    (row,) = agreement(own, ["fleiss_kappa"], margins="all")
    assert (row.value, row.reason) == (1, "one label only on units with two ratings")
    assert row.low is not None and row.low < 0.7 and row.n_units == 15
    constant = Ratings(np.zeros((10, 2), dtype=np.int64), ("yes", "no"), ("a", "b"))
    (row,) = agreement(constant, ["fleiss_kappa"], margins="all")
    assert (row.value, row.reason) == (None, "one label only")


def test_margins_change_nothing_that_does_not_rest_on_them() -> None:
    """Four units of weight 1 labelled twice, sixty of weight 20 labelled once: alpha was 2.35."""
    matrix = [[0, 0], [0, 1], [1, 1], [1, 0], *[[0, NAN]] * 60]
    weighted = ratings(matrix, weights=np.r_[np.ones(4), np.full(60, 20.0)], positive="0")
    paired, everything = (
        {row.coefficient: row for row in agreement(weighted, margins=margins, resamples=50)}
        for margins in ("paired", "all")
    )
    assert everything["krippendorff_alpha"].value == pytest.approx(1 - 7 / 8)  # 1 − (8 − 1)·4/(2·4·4)
    assert {name for name in paired if paired[name] != everything[name]} == {"fleiss_kappa", "gwet_ac1"}


def test_with_margins_of_all_units_only_what_rests_on_margins_counts_them_all() -> None:
    matrix = [[0, 0], [1, 1], [0, 1], [0, NAN], [NAN, 1]]
    rows = {row.coefficient: row for row in agreement(ratings(matrix), margins="all", resamples=50)}
    counts = {name: (row.n_units, row.n_ratings) for name, row in rows.items()}
    assert counts["fleiss_kappa"] == counts["gwet_ac1"] == (5, 8)
    assert counts["krippendorff_alpha"] == counts["pabak"] == counts["percent_agreement"] == (3, 6)


def test_on_a_scale_the_mean_of_kappas_has_quadratic_weights_too() -> None:
    matrix = [[0, 0, 1], [1, 2, 1], [2, 2, 2], [3, 3, 1], [0, 1, 0], [3, 2, NAN]]
    names = ["cohen_kappa_quadratic", "mean_cohen_kappa_quadratic"]
    said = ratings(matrix, "0123", level="ordinal")
    *pairs, mean = agreement(said, names, pairs=[(0, 1), (0, 2)], resamples=50)
    assert mean.value == pytest.approx(sum(row.value or 0.0 for row in pairs) / 2)
    assert (mean.n_units, mean.n_ratings) == (6, 17)


@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_a_scale_of_hundreds_of_labels_takes_no_table_of_them_a_resample(level: Level) -> None:
    rng = np.random.default_rng(0)
    matrix = np.clip(rng.integers(0, 300, (300, 1)) + rng.integers(-9, 10, (300, 2)), 0, 299)
    said = ratings(matrix, map(str, range(300)), level=level)
    tracemalloc.start()
    rows = agreement(said, ["cohen_kappa_quadratic", "krippendorff_alpha"])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert all(row.low is not None and row.low > 0.9 for row in rows)
    assert most < 300e6, "2,000 tables of 300 by 300 are 1.4 GB"


def test_pairs_that_share_few_units_are_computed_on_their_own_and_have_the_same_kappas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """200 raters of three each took minutes: a pair's sums ran over the units of all."""
    rng = np.random.default_rng(1)
    matrix = np.full((40, 12), -1, dtype=np.int64)
    for unit in range(40):
        matrix[unit, rng.choice(12, 3, replace=False)] = rng.integers(3, size=3)
    matrix[:, 11] = -1
    matrix[0, :2], matrix[0, 11] = -1, 1  # of one unit, which neither of the first two rated
    crowd, found = ratings(matrix, ("1", "2", "3"), level="ordinal"), []
    for share in (0.0, 1.01):
        monkeypatch.setattr(coefficients, "_SPARSE", share)
        found.append(agreement(crowd, ["mean_cohen_kappa_quadratic", "cohen_kappa"], resamples=50))
    values = [[row.value for row in rows] for rows in found]
    assert None in values[0] and values[0][0] is not None
    assert values[0] == values[1]


@pytest.mark.parametrize("unit", [1e-9, 1e200])
def test_values_on_a_scale_agree_alike_in_any_unit(unit: float) -> None:
    """Squares of 1e-9 were taken for 0, "nothing to compare", and those of 1e200 are no floats."""
    matrix = np.array([[0, 0], [0, 1], [1, 1], [2, 1], [2, 2], [0, 2]])
    names = ("krippendorff_alpha", "cohen_kappa_linear", "cohen_kappa_quadratic")
    one, other = (
        agreement(
            Ratings(matrix, tuple(repr(x * size) for x in (1.0, 2.0, 5.0)), ("a", "b"), "interval"),
            names,
            resamples=50,
        )
        for size in (1.0, unit)
    )
    assert [row.value for row in other] == pytest.approx([row.value for row in one])
