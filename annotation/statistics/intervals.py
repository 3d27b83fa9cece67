"""Intervals at 95 %: Wilson, Jeffreys, and the Dirichlet bootstrap of rating patterns.

Units with the same ratings are interchangeable, so a resample is a vector of pattern counts. Drawing that
vector from its Dirichlet posterior and computing every coefficient by matrix products replaces thousands of
passes over the units. The prior is what the percentile bootstrap lacks: where all pairs of raters happen to
agree, a plain resample can only agree too, and covers a kappa of .6 in a third of the samples at prevalence
.02 (n=60). `benchmarks/coverage.py` measures what this module reaches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Z = 1.959963984540054  # the normal's .975 quantile
PRIOR_MASS = 2.0  # in units; two raters with two labels get 1/2 in each of their four cells
_UNSEEN_CELLS = 256  # about so many unseen patterns stand for all of them
_ROWS = 2_000  # whose weights are held at a time
_DRAWN = 8_000_000  # numbers that are drawn at a time
_ANYHOW = 4.0  # units with dissent that is as far apart as may be, beside those of the sample
_ROUNDING = 1e-9  # of a weight
_NUMBERS = 2**62  # so many rows can be told apart by a number
_SPARSE = 4  # numbers for each row, beyond which they are sorted rather than counted
MISSING = -1


class Interval(NamedTuple):
    """A 95 % interval; both ends are None where it is undefined, and `reason` says why."""

    low: float | None
    high: float | None
    reason: str | None = None
    undefined_resamples: int = 0


def wilson(successes: float, n: float) -> Interval:
    """The score interval of a proportion (Wilson 1927); `n` may be an effective sample size."""
    if not 0 <= successes <= n:
        raise ValueError(f"`successes` must lie in 0..n, got {successes} of {n}")
    if n == 0:
        return Interval(None, None, "no observation")
    share, shrink = successes / n, 1 + Z * Z / n
    centre = (share + Z * Z / (2 * n)) / shrink
    half = Z / shrink * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return Interval(max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)))


def student(df: float) -> float:
    """The .975 quantile of Student's t."""
    from scipy import special

    return float(special.stdtrit(df, 0.975))


def interval_around(value: float, draws: Floats) -> Interval:
    """The central 95 % of the defined draws, stretched to hold `value`; undefined (nan) ones are counted."""
    defined = draws[np.isfinite(draws)]
    undefined = len(draws) - len(defined)
    if len(defined) < len(draws) / 2:
        return Interval(None, None, f"{undefined} of {len(draws)} resamples are undefined", undefined)
    low, high = np.quantile(defined, (0.025, 0.975))
    return Interval(min(float(low), value), max(float(high), value), None, undefined)


def cluster_bootstrap(table: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """(resamples, P) sums over the rows of a table (clusters, P): the Bayesian bootstrap of clusters, for few
    of them.

    Exponential weights give the variance with a divisor of C + 1 and normal tails. These have the divisor
    C − 1 and the tails' width of a t with (Σm)²/Σm² − 1 degrees of freedom, m being the clusters' sizes.
    """
    return gamma_sums(table, _cluster_shape(table), resamples, rng)


def _cluster_shape(table: Any) -> float:
    """The shape of the gamma weights of clusters (clusters, P)."""
    sizes = table.sum(1)
    effective = float(sizes.sum() ** 2 / (sizes**2).sum())
    return _small_sample(table.shape[0], effective)


def _small_sample(n: int, effective: float) -> float:
    """The shape of gamma weights of n rows that tell as much as so many even ones."""
    return (n - 1) / (n + 1) * (Z / student(max(effective - 1, 1.0))) ** 2


def gamma_sums(table: Floats, shape: float, resamples: int, rng: np.random.Generator) -> Floats:
    """(resamples, P) sums over the rows of a table, each with gamma weights of this shape and mean 1.

    Rows that are alike are drawn as one: a sum of gammas is a gamma of the sum of their shapes.
    """
    return _weighted_sums(*_alike(table), shape, resamples, rng)


def _alike(table: Any) -> tuple[Any, Ints]:
    """The distinct rows of a table, which may be sparse, and how often each occurs."""
    if isinstance(table, np.ndarray):
        return np.unique(table, axis=0, return_counts=True)
    rows = [slice(*ends) for ends in pairwise(table.indptr)]
    contents = [(table.indices[row].tobytes(), table.data[row].tobytes()) for row in rows]
    place_of = {content: place for place, content in enumerate(contents)}
    alike = Counter(contents)
    return table[[place_of[content] for content in alike]], np.fromiter(alike.values(), np.int64, len(alike))


def _weighted_sums(rows: Any, alike: Ints, shape: float, resamples: int, rng: np.random.Generator) -> Floats:
    sums = np.zeros((resamples, rows.shape[1]))
    for start in range(0, len(alike), _ROWS):
        some = slice(start, start + _ROWS)
        shapes = shape * alike[some]
        sums += rng.standard_gamma(shapes, size=(resamples, len(shapes))) / shape @ rows[some]
    return sums


@dataclass(frozen=True, eq=False)
class Patterns:
    """The distinct rating patterns of a sample, and how often each occurred.

    `cells` (P, raters) holds label indices (−1: missing); the first rows were seen, the others are unseen
    patterns that only the prior knows. `counts` (P,) are design-weighted and sum to the number of units.
    """

    cells: Ints
    counts: Floats
    _shapes: Floats  # (P,) number of units behind each row
    _scales: Floats  # (P,) design weight of each of them, 1 on average
    _prior: Floats  # (P,) prior mass, PRIOR_MASS in all
    _by_cluster: Any  # (clusters, P) design-weighted counts, sparse where there are many; None: no clusters

    @property
    def independent(self) -> int:
        """How many independent observations there are: units, or their clusters."""
        return int(self._shapes.sum()) if self._by_cluster is None else self._by_cluster.shape[0]

    @property
    def _uneven(self) -> float:
        """Kish's (1965) design effect of the weights: how many units tell as much as one of even weight."""
        sums = [float(self._shapes @ self._scales**power) for power in range(3)]
        return sums[0] * sums[2] / sums[1] ** 2

    def draws(self, resamples: int, seed: int) -> Iterator[Floats]:
        """Posterior draws (resamples, P) of the pattern counts, each row summing to the number of units; of
        many patterns in batches of `_DRAWN` numbers (12 raters of 22,000 units took 2.4 GB).

        Units of uneven weights are as few as Kish's effective number. Without that, of 300 units with 1/π of
        up to 1,000, intervals held agreement and kappa in .77 and .79 of samples.
        """
        rng = np.random.default_rng(seed)
        draw = self._draw_units if self._by_cluster is None else self._cluster_draw(self._by_cluster)
        batch = max(1, _DRAWN // len(self.cells))
        for start in range(0, resamples, batch):
            draws = draw(min(batch, resamples - start), rng)
            with np.errstate(invalid="ignore"):  # 0/0 is nan, and counted as undefined
                draws *= self.counts.sum() / draws.sum(1, keepdims=True)
            yield draws

    def _draw_units(self, resamples: int, rng: np.random.Generator) -> Floats:
        size = resamples, len(self.cells)
        if (effect := self._uneven) <= 1 + 1e-9:
            return rng.standard_gamma(self._shapes + self._prior, size=size) * self._scales
        few, all_units = self.independent / effect, self.independent
        shape = _small_sample(all_units, few) / _small_sample(all_units, all_units)
        draws = rng.standard_gamma(self._shapes * shape, size=size) / shape
        draws += rng.standard_gamma(self._prior, size=size) * effect
        draws *= self._scales
        return draws

    def _cluster_draw(self, table: Any) -> Callable[[int, np.random.Generator], Floats]:
        rows, alike = _alike(table)
        shape, prior_weight = _cluster_shape(table), _design_effect(table) * self._scales

        def draw(resamples: int, rng: np.random.Generator) -> Floats:
            draws = rng.standard_gamma(self._prior, size=(resamples, len(self.cells)))
            draws *= prior_weight
            draws += _weighted_sums(rows, alike, shape, resamples, rng)
            return draws

        return draw


def patterns(
    matrix: Ints,
    n_labels: int,
    weights: Floats | None = None,
    clusters: Ints | None = None,
    *,
    ordered: bool = False,
    seed: int = 0,
) -> Patterns:
    """Collect the patterns of `matrix` (units, raters; −1 missing) and give each its share of the prior.

    `weights` (units,) are design weights 1/π, `clusters` (units,) what to resample instead of
    units, `ordered` says that labels lie near to or far from each other. At least one rating a unit is
    expected.
    """
    n = len(matrix)
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64) * n / np.sum(weights)
    distinct, weight_codes = _distinct_weights(weights)
    weights = distinct[weight_codes]
    level, usual, often = _levels(weights)
    rows, inverse, counts = distinct_rows(np.column_stack([matrix, level, weight_codes]))
    cells, of_row, _ = distinct_rows(rows[:, :-2])
    units = np.bincount(of_row, weights=counts).astype(np.int64)
    mass, unseen, unseen_mass = _prior(cells, units, n_labels, ordered, np.random.default_rng(seed))
    occurrences = np.zeros((len(cells), len(usual)))
    np.add.at(occurrences, (of_row, rows[:, -2]), 1)
    prior = (mass[of_row] * often[rows[:, -2]]) / occurrences[of_row, rows[:, -2]]
    lacking, levels = np.nonzero(occurrences == 0)
    more = np.concatenate([cells[lacking], *[unseen] * len(usual)])
    more_mass = np.concatenate([mass[lacking] * often[levels], *[unseen_mass * share for share in often]])
    more_scale = np.concatenate([usual[levels], np.repeat(usual, len(unseen))])
    padding = np.zeros(len(more))
    scales = distinct[rows[:, -1]]
    by_cluster = None if clusters is None else _by_cluster(clusters, inverse, weights, len(rows), len(more))
    return Patterns(
        cells=np.concatenate([rows[:, :-2], more]),
        counts=np.concatenate([counts * scales, padding]),
        _shapes=np.concatenate([counts, padding]),
        _scales=np.concatenate([scales, more_scale]),
        _prior=np.concatenate([prior, more_mass]),
        _by_cluster=by_cluster,
    )


def distinct_rows(table: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct rows of a table (n, columns) in their order, which of them each row is (n,), and how often
    each occurs.

    Numbers stand for rows, and few of them are counted: NumPy's `unique` sorts the rows themselves.
    """
    low, high = table.min(0, initial=0), table.max(0, initial=0)
    spans = [int(last) - int(first) + 1 for first, last in zip(low, high, strict=True)]
    size = prod(spans)
    if size > _NUMBERS:
        rows, inverse, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
        return rows, inverse.ravel(), counts
    numbers = np.zeros(len(table), dtype=np.int64)
    whole, least = table.astype(np.int64, copy=False), low.astype(np.int64)  # bytes would overflow
    for column, first, span in zip(whole.T, least, spans, strict=True):
        numbers = numbers * span + (column - first)
    if size > _SPARSE * len(table):
        _, place, inverse, counts = np.unique(
            numbers, return_index=True, return_inverse=True, return_counts=True
        )
        return table[place], inverse, counts
    occurrences = np.bincount(numbers)
    present = np.flatnonzero(occurrences)
    place_of = np.cumsum(occurrences > 0) - 1
    columns = np.unravel_index(present, spans)
    rows = (np.stack(columns, axis=1) + least).astype(table.dtype, copy=False)
    return rows, place_of[numbers], occurrences[present]


def _distinct_weights(weights: Floats) -> tuple[Floats, Ints]:
    """The distinct ones of weights (n,) and the place (n,) of each among them. Those that only rounding parts
    are one: they may differ in the last digit though their units were drawn alike."""
    if (weights == weights[0]).all():
        return weights[:1], np.zeros(len(weights), dtype=np.int64)
    values, place = np.unique(weights, return_inverse=True)
    is_next = np.diff(values, prepend=-1.0) > _ROUNDING * values
    return values[is_next], (np.cumsum(is_next) - 1)[place]


def _levels(weights: Floats) -> tuple[Ints, Floats, Floats]:
    """The level (n,) of each unit's weight, at most seven, and each level's mean weight and share of units.

    A pattern that was not seen may have any of them: those of heavy units are what a weighted sample lacks.
    Levels part units into quarters, and their total weight, too: heavy units may be few. (With quarters of
    units alone, intervals held kappa in .68 of samples with all of what a judge marked, a tenth of the units
    rightly, and .02 of the rest; now .98 or more.)
    """
    if (weights == weights[0]).all():
        return np.zeros(len(weights), dtype=np.int64), weights[:1], np.ones(1)
    shares = (0.25, 0.5, 0.75)
    order = np.sort(weights)
    # Strata of equal total weight meet at a quarter, on either side of which rounding may put them.
    heavy = order[np.searchsorted(np.cumsum(order) / order.sum(), np.array(shares) - _ROUNDING)]
    edges = np.unique(np.concatenate([np.quantile(weights, shares, method="lower"), heavy]))
    _, level = np.unique(np.searchsorted(edges, weights, side="right"), return_inverse=True)
    sizes = np.bincount(level).astype(np.float64)
    return level.astype(np.int64), np.bincount(level, weights=weights) / sizes, sizes / len(weights)


def _design_effect(by_cluster: Any) -> float:
    """How many units of a cluster tell as much as an independent one, at least 1 (Rao and Scott 1984).

    The variance of the pattern counts (clusters, P) between clusters over that of independent units, summed
    over patterns. The prior must weigh so much more to weigh the same.
    """
    clusters, sizes = by_cluster.shape[0], by_cluster.sum(1)
    shares = by_cluster.sum(0) / sizes.sum()
    apart = (
        (by_cluster * by_cluster).sum()
        - 2 * sizes @ (by_cluster @ shares)
        + sizes @ sizes * (shares @ shares)
    )
    between = apart * clusters / (clusters - 1)
    independent = sizes.sum() * (shares * (1 - shares)).sum()
    return max(1.0, float(between / independent)) if independent > 0 else 1.0


def _by_cluster(clusters: Ints, rows: Ints, weights: Floats, n_seen: int, n_unseen: int) -> Any:
    """(clusters, P) design-weighted counts; a sparse array where a table would be large."""
    if clusters.dtype.kind not in "iu":  # names
        clusters = np.unique(clusters, return_inverse=True)[1]
    _, codes, sizes = distinct_rows(clusters[:, None])
    shape = len(sizes), n_seen + n_unseen
    if prod(shape) > _DRAWN:
        from scipy.sparse import csr_array

        return csr_array((weights, (codes, rows)), shape=shape)
    cells = np.ravel_multi_index((codes, rows), shape)
    table: Floats = np.bincount(cells, weights=weights, minlength=prod(shape)).astype(np.float64, copy=False)
    return table.reshape(shape)


def _prior(
    observed: Ints, counts: Ints, n_labels: int, ordered: bool, rng: np.random.Generator
) -> tuple[Floats, Ints, Floats]:
    """Spread PRIOR_MASS over what could have been seen: half on unanimous patterns, half on all others.

    Each set of raters who rated together gets mass by its share of the units. Spreading evenly over all K^R
    patterns, most of which are dissent, would pull three raters' kappa to 0 (coverage .77 at prevalence .05,
    n=60). Of labels in an order it is as far apart as the dissent of the sample: even mass, most of which is
    far apart, would pull coefficients that weigh distances below the truth where raters are off by one
    (coverage .88 of alpha for 7 labels, n=100, and thrice the width for 11). Returns the mass of each seen
    row, the unseen patterns, and the mass of each of those.
    """
    mass = np.zeros(len(observed))
    unseen: list[Ints] = []
    unseen_mass: list[Floats] = []
    masks, groups = np.unique(observed != MISSING, axis=0, return_inverse=True)
    n_raters = masks.sum(1)
    in_group = np.bincount(groups.ravel(), weights=counts)
    total = in_group[n_raters >= 2].sum()
    most = max(4, _UNSEEN_CELLS // len(masks))
    differing = np.bincount(_apart(observed, ordered), weights=counts, minlength=n_labels if ordered else 2)[
        1:
    ]
    for group in np.flatnonzero(n_raters >= 2):
        rows = np.flatnonzero(groups.ravel() == group)
        share = PRIOR_MASS * in_group[group] / total
        labels = observed[rows][:, masks[group]]
        cells, of_cell, occupied = np.unique(labels, axis=0, return_inverse=True, return_counts=True)
        sizes = _sizes(n_labels, int(n_raters[group]), ordered)
        target = share / 2 * np.append(1.0, _distances(sizes[1:], differing))
        apart = _apart(cells, ordered)
        per_cell = (target / sizes)[apart]
        mass[rows] = (per_cell / occupied)[of_cell.ravel()]
        rest = target - np.bincount(apart, weights=per_cell, minlength=len(sizes))
        for unanimous in (True, False):
            result = _unseen_cells(cells, n_labels, most, rng, unanimous=unanimous, ordered=ordered)
            if len(result):
                full = np.full((len(result), observed.shape[1]), MISSING, dtype=np.int64)
                full[:, masks[group]] = result
                unseen.append(full)
                ranks = _apart(result, ordered)
                each = rest[ranks] / np.bincount(ranks)[ranks]
                unseen_mass.append(each * ((rest[:1] if unanimous else rest[1:]).sum() / each.sum()))
    if not unseen:
        return mass, np.empty((0, observed.shape[1]), dtype=np.int64), np.empty(0)
    return mass, np.concatenate(unseen), np.concatenate(unseen_mass)


def _apart(cells: Ints, ordered: bool) -> Ints:
    """(P,) 0 where the raters of a pattern agree, else how many ranks they are apart, or 1 without order."""
    labels = np.where(cells == MISSING, cells.max(1, keepdims=True), cells)
    ranks: Ints = labels.max(1) - labels.min(1)
    return ranks if ordered else np.minimum(ranks, 1)


def _sizes(n_labels: int, raters: int, ordered: bool) -> Floats:
    """How many patterns there are of each that `_apart` tells: of d ranks those within d + 1 labels less
    those within d, wherever they lie."""
    if not ordered:
        return np.array([n_labels, max(float(n_labels) ** raters - n_labels, 1.0)])
    d = np.arange(1.0, n_labels)
    spread = (n_labels - d) * ((d + 1) ** raters - 2 * d**raters + (d - 1) ** raters)
    return np.append(float(n_labels), spread)


def _distances(sizes: Floats, differing: NDArray[Any]) -> Floats:
    """The share of dissent at each distance: that of the `differing` units, and of a few more that may be any
    pattern."""
    shares: Floats = (differing + _ANYHOW * sizes / sizes.sum()) / (differing.sum() + _ANYHOW)
    return shares


def _unseen_cells(
    cells: Ints, n_labels: int, most: int, rng: np.random.Generator, *, unanimous: bool, ordered: bool
) -> Ints:
    """Patterns that are not among `cells`: all of them, or a random few of all kinds to stand for many.

    A draw of so small a mass puts nearly all of it in a few patterns anyway; their mean pattern instead would
    be unlike any of them, and makes intervals too short.
    """
    raters = cells.shape[1]
    if unanimous:
        every = np.repeat(np.arange(n_labels)[:, None], raters, axis=1)
    elif float(n_labels) ** raters <= 16 * _UNSEEN_CELLS:
        every = np.stack(np.unravel_index(np.arange(n_labels**raters), (n_labels,) * raters), axis=1)
    elif ordered:
        width = rng.integers(1, n_labels, (most, 1))
        lowest = rng.integers(n_labels - width)
        every = np.unique(lowest + rng.integers(width + 1, size=(most, raters)), axis=0)
    else:
        every = np.unique(rng.integers(n_labels, size=(most, raters)), axis=0)
    every = every[(every == every[:, :1]).all(1) == unanimous]
    _, first, occurrences = np.unique(
        np.concatenate([cells, every]), axis=0, return_index=True, return_counts=True
    )
    unseen = every[first[(occurrences == 1) & (first >= len(cells))] - len(cells)]
    return unseen if len(unseen) <= most else rng.permutation(unseen)[:most]
