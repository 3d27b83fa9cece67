"""Planning: the published sample sizes, and units after a pilot."""

from __future__ import annotations

import numpy as np
import pytest

from coaudit.annotation.statistics import Audit
from coaudit.annotation.statistics.agreement import Ratings, agreement
from coaudit.annotation.statistics.intervals import MISSING, Ints, wilson
from coaudit.annotation.statistics.planning import (
    kappa_half_width,
    units_as_before,
    units_for_kappa,
    units_for_rate,
)
from coaudit.annotation.statistics.rates import rate


@pytest.mark.parametrize(("kappa", "prevalence"), [(1.0, 0.5), (-0.2, 0.05), (-0.06, 0.95), (-1.0, 0.4)])
def test_a_kappa_that_raters_cannot_have_is_refused(kappa: float, prevalence: float) -> None:
    with pytest.raises(ValueError, match="kappa must lie between"):
        units_for_kappa(0.1, prevalence, kappa)


def test_units_for_kappa_are_those_of_bloch_and_kraemer() -> None:
    assert [units_for_kappa(0.1, p) for p in (0.5, 0.3, 0.1, 0.05, 0.02)] == [246, 296, 705, 1347, 3281]
    assert kappa_half_width(60, 0.5) == pytest.approx(0.20, abs=0.005)


@pytest.mark.parametrize(
    ("half_width", "prevalence", "kappa"),
    [(0.1, 0.5, 0.97), (0.1, 0.1, 0.97), (0.2, 0.3, 0.9), (0.3, 0.02, 0.0), (0.1, 0.3, 0.6)],
)
def test_units_for_kappa_give_an_interval_of_that_width_where_raters_hardly_differ(
    half_width: float, prevalence: float, kappa: float
) -> None:
    """By the large-sample variance alone the intervals were ± .16, ± .18, ± .23 and ± .38."""
    n = units_for_kappa(half_width, prevalence, kappa)
    both = prevalence * (1 - prevalence)
    shares = [prevalence**2 + kappa * both, both * (1 - kappa), both * (1 - kappa)]
    rng, found = np.random.default_rng(0), []
    for _ in range(40):
        pattern = rng.choice(4, size=n, p=[*shares, 1 - sum(shares)])
        ratings = Ratings(np.stack([pattern // 2, pattern % 2], axis=1), ("yes", "no"), ("a", "b"))
        (row,) = agreement(ratings, ["cohen_kappa"], resamples=500)
        if row.low is not None and row.high is not None:
            found.append((row.high - row.low) / 2)
    assert len(found) > 30
    assert 0.75 * half_width < np.mean(found) < 1.07 * half_width


@pytest.mark.parametrize(("prevalence", "half_width"), [(0.02, 0.1), (0.05, 0.05), (0.01, 0.02)])
def test_units_for_a_rate_give_an_interval_of_that_width_where_a_code_is_rare(
    prevalence: float, half_width: float
) -> None:
    n = units_for_rate(half_width, prevalence)
    found = wilson(n * prevalence, n)
    assert found.low is not None and found.high is not None
    assert 0.95 * half_width < (found.high - found.low) / 2 <= half_width
    assert units_for_rate(0.5, prevalence) == 1


def test_units_for_a_rate_are_fewer_in_a_small_corpus() -> None:
    assert units_for_rate(0.05, 0.5) == 385
    assert units_for_rate(0.05, 0.5, corpus=1000) == 278
    with pytest.raises(ValueError, match="between 0 and 1, got 0"):
        units_for_rate(0.05, 0)


@pytest.mark.parametrize(("is_judged", "spread"), [(True, False), (False, False), (True, True)])
def test_units_after_a_pilot_give_an_interval_of_the_wanted_width(is_judged: bool, spread: bool) -> None:
    """60 of 1,000 units in 100 trajectories, alike within these or not."""
    rng, clusters, ratios = np.random.default_rng(0), np.repeat(np.arange(100), 10), []

    def half_width(units: int, truth: Ints, judge: Ints) -> float:
        human = np.full(1000, float(MISSING))
        labelled = rng.choice(1000, units, replace=False)
        human[labelled] = truth[labelled]
        estimate = rate(Audit(human, judge=judge if is_judged else None, clusters=clusters))
        assert estimate.low is not None and estimate.high is not None
        return (estimate.high - estimate.low) / 2

    for _ in range(12):
        chances = rng.beta(1.2, 2.8, 100) if spread else np.full(100, 0.3)
        truth = (rng.random(1000) < chances[clusters]).astype(int)
        judge = np.where(rng.random(1000) < 0.85, truth, 1 - truth)
        needed = units_as_before(60, half_width(60, truth, judge), 0.06, 1000)
        assert 60 < needed < 300
        ratios.append(half_width(needed, truth, judge) / 0.06)
    assert 0.85 < np.median(ratios) < 1.15


def test_a_corpus_that_is_labelled_whole_needs_no_more() -> None:
    assert units_as_before(200, 0.0, 0.05, 200) == 200
    assert units_as_before(50, 0.1, 0.05, 200) == 115, "1/200 + (1/50 - 1/200)/4"
    assert units_as_before(50, 0.1, 0.05) == 200
    assert units_as_before(50, 0.05, 0.1, 200) == 16
