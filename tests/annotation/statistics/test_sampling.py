"""Sampling: exact inclusion probabilities, determinism."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaudit.annotation.statistics.sampling import (
    draw,
    for_codes,
    neyman,
    neyman_wishes,
    overlap,
    simple_random,
    stratified,
)

STRATA = np.repeat([0, 1], [180, 20])


def test_the_same_seed_draws_the_same_units_and_another_seed_others() -> None:
    first, again, other = (simple_random(100, 10, seed).units.tolist() for seed in (7, 7, 8))
    assert first == again != other


def test_a_simple_random_sample_has_its_size_and_one_probability() -> None:
    sample = simple_random(100, 10, 0)
    assert len(set(sample.units.tolist())) == 10
    assert set(sample.inclusion.tolist()) == {0.1}
    assert sample.seed == 0


def test_a_stratified_sample_takes_just_so_many_of_each_stratum() -> None:
    sample = stratified(STRATA, {0: 7, 1: 5}, seed=3)
    assert np.bincount(STRATA[sample.units]).tolist() == [7, 5]
    assert sample.inclusion[0] == pytest.approx(7 / 180) and sample.inclusion[-1] == 0.25


def test_units_are_drawn_as_often_as_their_inclusion_says() -> None:
    inclusion = np.array([0.9, 0.5, 0.5, 0.3, 0.3, 0.3, 0.1, 0.1])
    drawn = np.zeros(8)
    for seed in range(4000):
        drawn[draw(inclusion, seed).units] += 1
    assert drawn / 4000 == pytest.approx(inclusion, abs=0.03)


@settings(max_examples=50)
@given(st.integers(1, 60), st.data())
def test_a_sample_is_never_larger_than_its_probabilities_sum_to(n: int, data: Any) -> None:
    inclusion = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    units = draw(inclusion, data.draw(st.integers(0, 99))).units
    assert np.floor(inclusion.sum() - 1e-6) <= len(units) <= np.ceil(inclusion.sum() + 1e-6)
    assert len(set(units.tolist())) == len(units)


def test_trajectories_are_drawn_whole_and_their_units_share_a_probability() -> None:
    clusters = np.repeat(np.arange(20), 5)
    sample = simple_random(100, 20, 1, clusters=clusters)
    drawn = clusters[sample.units]
    assert len(sample.units) == 20 and np.bincount(drawn)[np.unique(drawn)].tolist() == [5] * 4
    assert (np.diff(drawn) != 0).sum() == 3  # asked about one trajectory after the other
    uneven = draw(np.where(np.arange(100) == 2, 0.5, 0.1), 1, clusters=clusters)
    assert uneven.inclusion[:5].tolist() == [0.5] * 5


def test_whole_trajectories_of_strata_are_drawn_in_the_numbers_asked_for() -> None:
    clusters = np.repeat(np.arange(20), np.arange(1, 21))
    strata = (clusters % 2).astype(np.int64)
    for seed in range(20):
        sample = stratified(strata, {0: 3, 1: 5}, seed, clusters=clusters)
        drawn = np.unique(clusters[sample.units])
        assert np.bincount(drawn % 2).tolist() == [3, 5]
    assert sample.inclusion[strata == 0] == pytest.approx(0.3)
    with pytest.raises(ValueError, match="the same for all units of a trajectory"):
        stratified(np.arange(210) % 2, {0: 3, 1: 5}, 0, clusters=clusters)


def test_whole_trajectories_of_strata_are_asked_about_in_random_order() -> None:
    """People see no stratum by its place, and those who have answered half have answered for each."""
    clusters = np.repeat(np.arange(20), 3)
    strata = (clusters % 2).astype(np.int64)
    orders = {
        tuple(strata[stratified(strata, {0: 4, 1: 4}, seed, clusters=clusters).units[::3]].tolist())
        for seed in range(9)
    }
    assert len(orders) > 5


def test_neyman_takes_more_where_the_code_is_uncertain() -> None:
    # smoothed p: (1+½)/(30+1) and (15+½)/(30+1), so wishes 900·.2143 and 100·.5
    sizes = neyman(np.array([900, 100]), np.array([1, 15]), np.array([30, 30]), 120)
    ratio = 900 * np.sqrt(1.5 / 31 * 29.5 / 31) / (100 * 0.5)
    assert sizes.sum() == 120
    assert sizes[0] / sizes[1] == pytest.approx(ratio, rel=0.03)


def test_neyman_gives_each_stratum_two_units_and_never_more_than_it_holds() -> None:
    sizes = neyman(np.array([1000, 1, 40]), np.array([0, 0, 20]), np.array([500, 0, 40]), 100)
    assert sizes[1] == 1 and sizes[2] <= 40 and sizes.sum() == 100
    rare = neyman(np.array([10_000, 3]), np.array([500, 0]), np.array([1000, 1000]), 50)
    assert rare.tolist() == [48, 2]


def test_one_sample_for_several_codes_gives_each_unit_the_largest_wish_and_a_floor() -> None:
    first = neyman_wishes(STRATA, np.array([1, 5]), np.array([20, 10]), 30)
    second = neyman_wishes(1 - STRATA, np.array([1, 5]), np.array([20, 10]), 30)
    inclusion = for_codes(np.stack([first, second], axis=1), 40, floor=0.05)
    assert inclusion.sum() == pytest.approx(40)
    assert inclusion.min() >= 0.05 and inclusion.max() <= 1
    largest = np.maximum(first, second)
    free = (inclusion > 0.05 + 1e-9) & (inclusion < 1)
    assert np.ptp(inclusion[free] / largest[free]) < 1e-9


def test_a_share_of_units_is_labelled_twice_and_loads_are_even() -> None:
    table = overlap(100, ("a", "b", "c"), 0.3, seed=5)
    assert sorted(np.bincount(table.sum(1)).tolist()) == [0, 30, 70]
    assert np.ptp(table.sum(0)) <= 1
    assert (overlap(100, ("a", "b", "c"), 0.3, seed=5) == table).all()
    clusters = np.repeat(np.arange(10), 10)
    whole = overlap(100, ("a", "b"), 0.5, seed=5, clusters=clusters)
    assert all((whole[clusters == k] == whole[k * 10]).all() for k in range(10))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simple_random(5, 6, 0), "can't draw 6 of 5"),
        (lambda: draw(np.array([1.5]), 0), r"in 0\.\.1"),
        (lambda: stratified(STRATA, {0: 5}, 0), "lacks stratum 1"),
        (lambda: for_codes(np.ones((10, 1)), 2, floor=0.5), r"in 0\.\.0\.2"),
        (lambda: overlap(5, ("a",), 0.5, 0), r"in 1\.\.1"),
    ],
)
def test_a_design_that_cannot_be_carried_out_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
