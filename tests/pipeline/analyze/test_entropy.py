"""Initiative entropy of sessions that are rated in part: against every completion, and a full rating."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from coaudit.annotation.statistics.comparisons import contrast
from coaudit.pipeline.analyze import entropy as module
from coaudit.pipeline.analyze.counts import standing_of
from coaudit.pipeline.analyze.entropy import entropies, entropy, entropy_bounds, expected

from .parties import counts


@pytest.mark.parametrize(
    ("units", "answered", "positives", "parties"),
    [
        ([7, 9], [3, 4], [2, 0], (False, True)),
        ([5, 0], [2, 0], [1, 0], (False, True)),
        ([4, 6, 3], [1, 6, 0], [1, 2, 0], (False, True, True)),
        ([3, 2, 4, 3], [1, 1, 0, 3], [0, 1, 0, 2], (False, False, True, True)),
    ],
)
def test_an_entropy_is_expected_over_all_that_unrated_units_may_be(
    units: list[int], answered: list[int], positives: list[int], parties: tuple[bool, ...]
) -> None:
    own = counts([units, units], [answered, units], [positives, positives], parties)
    y, x = expected(own)
    a, b = (column[0] for column in module._posterior(own, module._pooled_priors(own)))
    rest = [range(n - m + 1) for n, m in zip(units, answered, strict=True)]
    chance, h, defined = 0.0, 0.0, 0.0
    for more in itertools.product(*rest):
        p = np.prod(
            [stats.betabinom.pmf(k, len(r) - 1, *ab) for k, r, *ab in zip(more, rest, a, b, strict=True)]
        )
        value, there = entropies(np.array([positives]) + more, np.ones((1, len(parties)), dtype=bool))
        chance, h, defined = chance + p, h + p * value[0], defined + p * there[0]
    assert chance == pytest.approx(1)
    assert (y[0], x[0]) == pytest.approx((h, defined))
    assert (y[1], x[1]) == pytest.approx(
        (entropies(np.array([positives]), own.member[1:])[0][0], float(sum(positives) > 0))
    )


def test_the_note_on_few_rated_units_says_too_low_only_where_they_were_drawn_evenly() -> None:
    own = counts([[7, 9], [6, 8]] * 3, [[1, 2], [2, 1]] * 3, [[1, 1], [0, 1]] * 3)
    assert entropy(own).estimate.note == module.THIN
    uneven = own.answers * [0.5, 1.5]
    own = replace(own, standing_answers=uneven, standing_positives=np.minimum(own.positives, uneven))
    assert entropy(own).estimate.note == module.UNEVEN


def test_a_group_that_was_drawn_more_thinly_than_the_others_was_drawn_evenly_in_itself() -> None:
    own = counts([[7, 9], [6, 8]] * 3, [[1, 2], [2, 1]] * 3, [[1, 1], [0, 1]] * 3)
    thinly = replace(own, standing_answers=own.answers * 1.5, standing_positives=own.positives * 1.5)
    assert entropy(thinly).estimate.note == module.THIN


def test_who_is_no_member_changes_no_entropy() -> None:
    two = counts([[7, 9]], [[3, 4]], [[2, 1]])
    wide = counts([[7, 0, 9]], [[3, 0, 4]], [[2, 0, 1]], (False, False, True))
    filled = replace(wide, member=np.array([[True, False, True]]))
    assert np.ravel(expected(filled)) == pytest.approx(np.ravel(expected(two)))
    assert expected(wide)[0] == 0  # a member who said nothing is silent


def test_a_long_session_s_entropy_is_the_same_by_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    units = rng.integers(100, 400, (6, 2))
    answered = rng.binomial(units, 0.1)
    own = counts(units, answered, rng.binomial(answered, 0.3))
    summed = expected(own)
    monkeypatch.setattr(module, "MOST", 0)
    drawn = expected(own)
    assert drawn[0] != pytest.approx(summed[0], abs=1e-9)
    assert drawn[0] == pytest.approx(summed[0], abs=0.02)


@pytest.mark.parametrize("released", [True, False])
def test_the_error_of_many_clusters_is_that_of_leaving_each_out(
    monkeypatch: pytest.MonkeyPatch, released: bool
) -> None:
    rng = np.random.default_rng(5)
    units = rng.integers(10, 40, (80, 2))
    answered = rng.binomial(units, 0.3)
    own = counts(units, answered, rng.binomial(answered, rng.beta(2, 4, (80, 2))))
    own = replace(own, clusters=np.arange(80) // 2)
    definition = "released" if released else "paper"
    nearly = entropy(own, definition).estimate
    monkeypatch.setattr(module, "_EXACT", 40)
    exact = entropy(own, definition).estimate
    assert nearly.error == pytest.approx(exact.error, rel=0.1)
    assert nearly.value == pytest.approx(exact.value)


def test_the_error_of_few_clusters_is_no_larger_than_that_of_leaving_each_out() -> None:
    """It was that along the slopes where that was larger: a tenth, of 15 sessions."""
    rng = np.random.default_rng(3)
    units = rng.integers(5, 40, (15, 2))
    answered = rng.binomial(units, 0.2)
    own = counts(units, answered, rng.binomial(answered, rng.beta(2, 4, (15, 2))))
    rest = [expected(own.where(np.arange(15) != one))[0].mean() for one in range(15)]
    error = np.sqrt(14 / 15 * ((rest - np.mean(rest)) ** 2).sum())
    assert entropy(own).estimate.error == pytest.approx(error)


def test_groups_that_are_alike_are_not_told_apart_where_a_third_of_the_units_is_rated() -> None:
    """Their values rest on shares that were estimated, of which tests knew nothing: half of them rejected."""
    rng = np.random.default_rng(8)
    found = 0
    for _ in range(40):
        samples = []
        for place in range(2):
            units = rng.integers(3, 9, (60, 2))
            answered = rng.binomial(units, 0.3)
            own = counts(units, answered, rng.binomial(answered, rng.beta(2, 4, (60, 2))))
            result = entropy(replace(own, clusters=np.arange(60) + 60 * place))
            assert result.sample is not None and result.untested is None
            assert result.sample.value == pytest.approx(expected(own)[0][answered.sum(1) > 0].mean())
            samples.append(result.sample)
        p = contrast(samples[0], samples[1], draws=499).p_value
        found += p is not None and p < 0.05
    assert found <= 5


def test_entropy_of_which_less_than_a_fifth_is_rated_is_not_tested() -> None:
    units = np.full((30, 2), 10)
    few, enough = (entropy(counts(units, np.full((30, 2), n), np.ones((30, 2)))) for n in (1, 2))
    assert few.untested == module.UNTESTED
    assert enough.untested is None


def test_short_sessions_with_a_rated_unit_say_no_more_of_the_share_that_is_rated() -> None:
    """A tenth of the units in sessions of two to six: alike groups differed at .05 in .13 of samples."""
    units, first = np.full((40, 2), 2), (np.arange(40) % 3 == 0)[:, None]
    one = first * np.array([1, 0]) + np.roll(first, 1, axis=0) * np.array([0, 1])
    assert entropy(counts(units, one, one)).untested == module.UNTESTED
    assert entropy(counts(units, first * (np.arange(40) % 9 == 0)[:, None] * units, one * 0)).untested is None


@pytest.mark.parametrize("clusters", [12, 120])
def test_sessions_with_a_silent_party_are_no_larger_a_share_of_those_that_are_rated(clusters: int) -> None:
    """They count without a rating, as 0: with half of the others rated, the mean was a quarter too low."""
    units = np.full((120, 2), 4)
    units[::3, 1] = 0
    rated = np.where((np.arange(120) % 2 == 0)[:, None], units, 0)
    positives = np.minimum(rated, 1 + (np.arange(120) % 4 == 0)[:, None])
    part = replace(counts(units, rated, positives), clusters=np.arange(120) * clusters // 120)
    half, whole = entropy(part), entropy(part.where(rated.sum(1) > 0))
    assert half.estimate.value == pytest.approx(whole.estimate.value)
    assert (half.estimate.n, half.missing) == (80, 40)


def test_entropies_that_are_0_whatever_the_labels_are_say_nothing_of_others() -> None:
    units = [[3, 0], [0, 3], [3, 3], [2, 4]]
    found = entropy(
        counts(units, [[3, 0], [0, 3], [0, 0], [0, 0]], [[1, 0], [0, 1], [0, 0], [0, 0]])
    ).estimate
    assert (found.value, found.reason) == (None, module.UNRATED)


@pytest.mark.parametrize("definition", ["released", "paper"])
def test_sessions_of_a_sample_count_by_how_likely_it_took_them(definition: str) -> None:
    """Of 100 sessions of entropy 1 and 300 without, 20 each: they were .5 of the mean and not a quarter."""
    units = np.full((400, 2), 2)
    drawn = np.isin(np.arange(400), [*range(20), *range(100, 120)])
    rated = np.where(drawn[:, None], units, 0)
    positives = np.where((np.arange(400) < 100)[:, None], rated, rated * [1, 0])
    inclusion = np.where(np.arange(400) < 100, 0.2, 20 / 300)
    own = replace(counts(units, rated, positives), inclusion=np.where(drawn, inclusion, np.nan))
    found = entropy(own, definition).estimate
    assert found.value == pytest.approx((20 + 80) / 400)
    assert found.error == pytest.approx(np.sqrt(2 * 20 * (100 * 300 / 20 / 400) ** 2) / 400, rel=0.05)
    census = entropy(own.where(drawn), definition).estimate
    assert census.value == pytest.approx(0.5)


def test_sessions_that_need_no_rating_may_be_ones_that_no_sample_could_take() -> None:
    """A silent party makes the entropy 0, and its session was in no frame: a warning was printed."""
    own = counts(
        [[2, 2], [2, 2], [2, 2], [2, 0]], [[2, 2], [2, 2], [0, 0], [0, 0]], [[1, 1], [2, 0], [0, 0], [0, 0]]
    )
    found = entropy(replace(own, inclusion=np.array([0.5, 0.5, np.nan, 0.0]))).estimate
    assert found.value == pytest.approx((1.5 * 1 + 1.5 * 0 + 0) / 4)


def test_an_interval_does_not_hang_on_the_names_of_clusters() -> None:
    """Of one group a filter and a row of a table had intervals that differed by a third: twenty groups were
    made by the clusters' hashes."""
    rng = np.random.default_rng(6)
    units = rng.integers(10, 40, (60, 2))
    answered = rng.binomial(units, 0.3)
    own = counts(units, answered, rng.binomial(answered, rng.beta(2, 4, (60, 2))))
    one, other = (entropy(replace(own, clusters=rng.permutation(60))).estimate for _ in range(2))
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_sessions_are_worked_on_some_at_a_time_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    units = rng.integers(1, 90, (50, 2))
    answered = rng.binomial(units, 0.5)
    own = counts(units, answered, rng.binomial(answered, 0.4))
    whole = expected(own)
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    assert np.array(expected(own)) == pytest.approx(np.array(whole))


def test_entropy_is_0_where_a_party_is_silent_and_1_where_all_are_even() -> None:
    table = np.array([[2, 2, 2], [4, 0, 4], [0, 0, 0], [1, 1, 2]], dtype=float)
    h, defined = entropies(table, np.ones(table.shape, dtype=bool))
    assert h == pytest.approx([1, 0, 0, 1.5 / np.log2(3)])
    assert defined.tolist() == [True, True, False, True]


def test_the_bounds_of_an_entropy_are_those_of_every_completion() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        answered = rng.integers(0, 3, (1, 2))
        positives = rng.binomial(answered, 0.6)
        units = answered + rng.integers(0, 4, (1, 2))
        low, high = entropy_bounds(counts(units, answered, positives))
        rest = (units - answered)[0]
        every = np.array(
            [positives[0] + (a, b) for a in range(rest[0] + 1) for b in range(rest[1] + 1)], dtype=float
        )
        h, defined = entropies(every, np.ones(every.shape, dtype=bool))
        if not defined.any():
            assert (low, high) == (None, None)
        else:
            assert low is not None and high is not None
            assert low <= h[defined].min() + 1e-12 and high == pytest.approx(h[defined].max())


@pytest.mark.slow
def test_half_of_the_ratings_say_of_entropy_what_all_say() -> None:
    rng = np.random.default_rng(1)
    found, truth, held = [], [], []
    for _ in range(40):
        units = rng.integers(1, 9, (40, 2))
        chance = rng.beta(2, 2, (40, 2))
        positives = rng.binomial(units, chance)
        answered = rng.binomial(units, 0.5)
        seen = rng.hypergeometric(positives, units - positives, answered)
        half, whole = (
            entropy(counts(units, answered, seen), "paper"),
            entropy(counts(units, units, positives), "paper"),
        )
        assert half.estimate.value is not None and whole.estimate.value is not None
        assert half.estimate.low is not None and half.estimate.high is not None
        found.append(half.estimate.value)
        truth.append(whole.estimate.value)
        held.append(half.estimate.low <= whole.estimate.value <= half.estimate.high)
    assert np.mean(found) == pytest.approx(np.mean(truth), abs=0.03)
    assert np.mean(held) > 0.9


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_bounds_hold_whatever_unrated_units_are(parties: int) -> None:
    rng = np.random.default_rng(parties)
    member = np.ones((1, parties), dtype=bool)
    for _ in range(60):
        least = rng.integers(0, 5, (1, parties)).astype(float)
        most = least + rng.integers(0, 4, (1, parties)).astype(float)
        ranges = [range(int(a), int(b) + 1) for a, b in zip(least[0], most[0], strict=True)]
        counts = np.array(list(itertools.product(*ranges)), dtype=float)
        values = entropies(counts, np.repeat(member, len(counts), axis=0))[0]
        low = min(entropies(corner, member)[0][0] for corner in module._corners(least, most))
        high = module._highest(least, most, member)[0]
        assert low == pytest.approx(values.min(), abs=1e-9)
        assert high >= values.max() - 1e-9
        assert parties > 2 or high == pytest.approx(values.max(), abs=1e-9)


def test_a_sample_drawn_half_by_a_judge_s_label_tells_of_the_rest_by_what_its_units_stand_for() -> None:
    """Such a sample has more initiatives than the rest: of 200 sessions, entropies lay an eighth too high."""
    rng = np.random.default_rng(9)
    errors = []
    for _ in range(12):
        units = rng.integers(2, 9, (300, 2))
        true = rng.binomial(units, rng.beta(1.5, 3.5, (300, 2)))
        hits, alarms = rng.binomial(true, 0.8), rng.binomial(units - true, 0.1)  # which the judge calls one
        flagged = (hits + alarms).sum()
        chance = 0.25 * units.sum() / flagged, 0.25 * units.sum() / (units.sum() - flagged)
        yes, no = rng.binomial(hits, chance[0]), rng.binomial(alarms, chance[0])
        more_yes = rng.binomial(true - hits, chance[1])
        more_no = rng.binomial(units - true - alarms, chance[1])
        answered, positives = (yes + no + more_yes + more_no).astype(float), (yes + more_yes).astype(float)
        inverse = (yes + no) / chance[0] + (more_yes + more_no) / chance[1]
        weighted = inverse, yes / chance[0] + more_yes / chance[1]
        standing = standing_of(float(units.sum()), answered, positives, weighted)
        own = replace(
            counts(units, answered, positives),
            standing_answers=standing[0],
            standing_positives=standing[1],
        )
        found, truth = entropy(own).estimate.value, entropy(counts(units, units, true)).estimate.value
        assert found is not None and truth is not None
        errors.append(found / truth - 1)
    assert abs(np.mean(errors)) < 0.05


def test_units_that_were_taken_for_sure_stand_for_none_that_is_unrated() -> None:
    """By hand: two units of either party are rated, of the agent's for sure, of the person's one in four."""
    answered, positives = np.array([[2.0, 2.0]]), np.array([[2.0, 1.0]])
    weighted = np.array([[2.0, 8.0]]), np.array([[2.0, 4.0]])
    standing = standing_of(10.0, answered, positives, weighted)
    assert [part.tolist() for part in standing] == [[[0, 4]], [[0, 2]]]
    own = replace(
        counts([[5, 5]], answered, positives),
        standing_answers=standing[0],
        standing_positives=standing[1],
    )
    posterior = module._posterior(own, np.array([[0.2, 3.0], [0.4, 5.0]]))
    assert np.stack(posterior) == pytest.approx(np.array([[[0.6, 3.0]], [[2.4, 4.0]]]))
