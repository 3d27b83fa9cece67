"""Which units people are asked about, and with what probability: without it no rate is valid.

A design is the inclusion probability of every unit; `draw` carries any design out. So a simple random sample,
a stratified one and one that serves 26 codes differ only in the probabilities, and a seed repeats each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import Floats, Ints

Counts = Ints | Floats
"""Of units, which count in part where people differ."""


@dataclass(frozen=True, eq=False)
class Sample:
    """`units` (n,) drawn, in the order in which to ask, and `inclusion` (N,) of every unit drawn or not."""

    units: Ints
    inclusion: Floats
    seed: int


def draw(inclusion: Floats, seed: int, *, strata: Ints | None = None, clusters: Ints | None = None) -> Sample:
    """Draw units with exactly these probabilities (N,), as many as they sum to (rounded by chance).

    Systematic sampling in random order (Madow 1949): with even probabilities that is a simple random sample;
    with `strata` (N,) whose probabilities sum to whole numbers it takes just that many of each. With
    `clusters` (N,) whole trajectories are drawn, each with the largest probability that one of its units has;
    strata are then of trajectories. ValueError where units of one trajectory lie in several.
    """
    if not np.all((inclusion >= 0) & (inclusion <= 1)):
        raise ValueError("`inclusion` must lie in 0..1")
    rng = np.random.default_rng(seed)
    if clusters is not None:
        _, of_unit = np.unique(clusters, return_inverse=True)
        chances = np.zeros(int(of_unit.max(initial=-1)) + 1)
        np.maximum.at(chances, of_unit, inclusion)
        cluster_strata = None if strata is None else _of_clusters(strata, of_unit)
        selection = rng.permutation(_systematic(chances, cluster_strata, rng))
        place = np.full(len(chances), -1)
        place[selection] = np.arange(len(selection))
        units = np.flatnonzero(place[of_unit] >= 0)
        return Sample(units[np.argsort(place[of_unit][units], kind="stable")], chances[of_unit], seed)
    return Sample(rng.permutation(_systematic(inclusion, strata, rng)), inclusion.astype(np.float64), seed)


def simple_random(n_units: int, size: int, seed: int, *, clusters: Ints | None = None) -> Sample:
    """`size` units with equal probability; with `clusters`, whole trajectories of about `size` units."""
    return draw(np.full(n_units, _share(size, n_units)), seed, clusters=clusters)


def stratified(strata: Ints, sizes: dict[int, int], seed: int, *, clusters: Ints | None = None) -> Sample:
    """As many units of each stratum as `sizes` says, evenly within the stratum.

    With `clusters` (N,) they are numbers of whole trajectories.
    """
    names, of_unit = np.unique(strata, return_inverse=True)
    each = of_unit if clusters is None else _of_clusters(of_unit, np.unique(clusters, return_inverse=True)[1])
    populations = np.bincount(each)
    if unknown := set(names.tolist()) - set(sizes):
        raise ValueError(f"`sizes` lacks stratum {min(unknown)}: its units could never be drawn")
    share = np.array([_share(sizes[int(name)], int(n)) for name, n in zip(names, populations, strict=True)])
    return draw(share[of_unit], seed, strata=strata, clusters=clusters)


def neyman(populations: Ints, present: Counts, labelled: Counts, size: int, *, least: int = 2) -> Ints:
    """Sizes (H,) of strata that make the rate most precise: n_h ∝ N_h·√(p_h(1 − p_h)).

    `held` (H,) is N_h; a pilot found the code `present` in so many of `labelled` units of each stratum, and
    p_h = (present + ½)/(labelled + 1). Each stratum gets `least` units (two, for a variance) or all it holds.
    Taking more of the judge's positives than this makes rate and kappa worse.
    """
    p = (present + 0.5) / (labelled + 1)
    wish = (populations * np.sqrt(p * (1 - p))).astype(np.float64)
    low, high = np.minimum(least, populations).astype(np.float64), populations.astype(np.float64)
    return _round(_scale(wish, low, high, float(size)), populations)


def for_codes(wishes: Floats, size: int, *, floor: float) -> Floats:
    """Inclusion (N,) of one sample for several codes, from what each wants of each unit (N, codes).

    A unit's probability is the largest that any code wants, times the factor that makes them sum to `size`,
    and at least `floor`, so that what no judge noticed can be found.
    """
    n = len(wishes)
    if not 0 < floor <= 1 or floor * n > size + 1e-9:
        raise ValueError(f"`floor` must lie in 0..{size / n:.3g} ({size} of {n} units), got {floor:g}")
    return _scale(wishes.max(1), np.full(n, floor), np.ones(n), size)


def neyman_wishes(strata: Ints, present: Counts, labelled: Counts, size: int) -> Floats:
    """What one code wants of each unit (N,): n_h/N_h of Neyman's allocation over strata numbered 0..H−1."""
    populations = np.bincount(strata, minlength=len(present))
    share = neyman(populations, present, labelled, size) / np.maximum(populations, 1)
    wishes: Floats = share[strata]
    return wishes


def overlap(
    n_units: int,
    annotators: Sequence[str],
    share: float,
    seed: int,
    *,
    each: int = 2,
    clusters: Ints | None = None,
) -> NDArray[np.bool_]:
    """Who labels what (units, annotators): a random `share` of units `each` annotators, the others one.

    Loads differ by one unit at most (by one trajectory with `clusters` (N,), which go whole to an annotator).
    """
    if not 0 <= share <= 1 or not 1 <= each <= len(annotators):
        raise ValueError(
            f"`share` must lie in 0..1 and `each` in 1..{len(annotators)}, got {share:g} and {each}"
        )
    rng = np.random.default_rng(seed)
    _, group = np.unique(np.arange(n_units) if clusters is None else clusters, return_inverse=True)
    n = int(group.max(initial=-1)) + 1
    is_shared = np.zeros(n, dtype=bool)
    is_shared[rng.permutation(n)[: round(share * n)]] = True
    load, table = np.zeros(len(annotators)), np.zeros((n, len(annotators)), dtype=bool)
    for unit in np.argsort(~is_shared, kind="stable"):  # shared ones first: single ones even out the rest
        assignees = np.lexsort([rng.random(len(load)), load])[: each if is_shared[unit] else 1]
        table[unit, assignees] = True
        load[assignees] += 1
    return table[group]


def _of_clusters(strata: Ints, of_unit: Ints) -> Ints:
    """The stratum (K,) of each of the clusters that units (N,) are of."""
    own = np.zeros(int(of_unit.max(initial=-1)) + 1, dtype=np.int64)
    own[of_unit] = strata
    if (own[of_unit] != strata).any():
        raise ValueError("`strata` must be the same for all units of a trajectory that is drawn whole")
    return own


def _systematic(inclusion: Floats, strata: Ints | None, rng: np.random.Generator) -> Ints:
    keys = rng.random(len(inclusion))
    order = np.argsort(keys) if strata is None else np.lexsort([keys, strata])
    ticks = np.floor(np.concatenate([[0.0], np.cumsum(inclusion[order])]) + rng.random())
    return order[np.diff(ticks) > 0]


def _scale(wish: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """clip(factor·wish, low, high) with the factor for which it sums to `total`, or as near as possible."""
    below, above = 0.0, 1.0
    while np.clip(above * wish, low, high).sum() < min(total, np.where(wish > 0, high, low).sum()) - 1e-9:
        above *= 2
    for _ in range(100):
        factor = (below + above) / 2
        below, above = (factor, above) if np.clip(factor * wish, low, high).sum() < total else (below, factor)
    return np.clip(above * wish, low, high)


def _round(sizes: Floats, populations: Ints) -> Ints:
    """Whole numbers of the same sum, by largest remainder."""
    whole = np.floor(sizes + 1e-9).astype(np.int64)
    spare = min(round(float(sizes.sum())), int(populations.sum())) - int(whole.sum())
    whole[np.argsort(whole - sizes, kind="stable")[:spare]] += 1
    return whole


def _share(size: int, n: int) -> float:
    if not 0 <= size <= n:
        raise ValueError(f"can't draw {size} of {n} units")
    return size / n if n else 0.0
