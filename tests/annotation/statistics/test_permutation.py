"""Random arrangements are as likely as one another, whatever the sizes of the samples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from coaudit.annotation.statistics import permutation
from coaudit.annotation.statistics.permutation import _coins, _random_blocks, _subsets


@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 1), (7, 5), (8, 4), (3, 0), (3, 3)])
def test_all_choices_of_some_among_a_few_are_as_likely(n: int, k: int) -> None:
    rows = _subsets(np.random.default_rng(1), 60_000, n, k)
    _, counts = np.unique(rows @ (1 << np.arange(n)), return_counts=True)
    assert len(counts) == len(list(combinations(range(n), k)))
    assert stats.chisquare(counts).pvalue > 0.001 or len(counts) == 1


@pytest.mark.parametrize(("n", "k"), [(400, 200), (700, 150), (500, 3), (900, 893)])
def test_each_of_many_is_as_likely_alone_and_beside_its_neighbour(n: int, k: int) -> None:
    draws = 20_000
    rows = _subsets(np.random.default_rng(2), draws, n, k)
    assert (rows.sum(1) == k).all()
    apart = ((rows.sum(0) - draws * k / n) ** 2).sum() / (draws * k / n * (1 - k / n))
    assert 0.001 < stats.chi2.sf(apart * (n - 1) / n, n - 1) < 0.999
    beside = (rows[:, :-1] & rows[:, 1:]).sum()
    expected = draws * (n - 1) * k * (k - 1) / n / (n - 1)
    assert abs(beside - expected) < 5 * np.sqrt(expected)


def test_a_cluster_of_both_samples_keeps_its_side_in_half_of_the_arrangements() -> None:
    sides = _coins(np.random.default_rng(3), 40_000, 13)
    assert sides.shape == (40_000, 13)
    assert np.abs(sides.mean(0) - 0.5).max() < 0.015
    assert np.abs(np.corrcoef(sides.T) - np.eye(13)).max() < 0.03


def test_blocks_hold_as_many_arrangements_as_are_drawn_and_no_cluster_changes_its_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(permutation, "_AT_ONCE", 100)
    label = np.array([True, True, False, False, True, True, False])
    both = np.array([False, False, False, False, True, True, False])
    blocks = list(_random_blocks(label.tobytes(), both.tobytes(), 1_003, 4))
    rows = np.unpackbits(np.concatenate(blocks), axis=1, count=7).view(np.bool_)
    assert len(rows) == 1_003 and max(map(len, blocks)) == 100 // 7
    assert (rows[:, ~both].sum(1) == 2).all()
    assert 0.4 < rows[:, both].mean() < 0.6
