"""Agreement on sets of labels: which of 26 failure modes a trajectory shows, rated as one."""

from __future__ import annotations

from itertools import combinations
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .agreement import Coefficient, Formula, measure
from .coefficients import Tally, alpha_of, krippendorff_alpha
from .intervals import MISSING, Floats, Ints, distinct_rows

SetDistance = Literal["masi", "jaccard"]
Bools = NDArray[np.bool_]
_TABLE = 2_000
"""Sets up to which all distances are held in a table."""
_AT_ONCE = 2**19
"""Distances that are held at a time, else."""
_SOME = 200
"""Sets that tell how alike the others are, then."""
_ROUNDING = 1e-9


def set_alpha(
    labels: Bools,
    is_rated: Bools,
    raters: tuple[str, ...],
    distance: SetDistance = "masi",
    *,
    weights: Floats | None = None,
    clusters: Ints | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Coefficient:
    """Krippendorff's alpha of label sets, named `krippendorff_alpha_masi` or `krippendorff_alpha_jaccard`.

    `labels` (units, raters, labels) says which labels a rater gave, `is_rated` (units, raters) whether the
    rater answered at all: an empty set is an answer. Rare modes make the empty set the commonest, so the two
    rules matter: both empty is distance 0, one empty is distance 1. Distances are not squared (Passonneau
    2006).
    """
    if distance not in get_args(SetDistance):
        raise ValueError(f"unknown distance {distance!r}, expected one of {', '.join(get_args(SetDistance))}")
    # A unit that one rater alone has seen, such as most of a judge's corpus, compares its set with no other.
    paired = is_rated & (is_rated.sum(1) >= 2)[:, None]
    sets, index, _ = distinct_rows(labels[paired].astype(np.int64))
    matrix = np.where(is_rated, 0, MISSING)
    matrix[paired] = index
    name = f"krippendorff_alpha_{distance}"
    of_unit = np.ones(len(labels)) if weights is None else weights
    shares = np.bincount(index, weights=of_unit[np.nonzero(paired)[0]], minlength=len(sets))
    formulas = {name: _alpha(sets > 0, shares / shares.sum(), distance)}
    return measure(matrix, len(sets), raters, formulas, weights, clusters, resamples=resamples, seed=seed)[
        name
    ]


def _alpha(sets: Bools, shares: Floats, distance: SetDistance) -> Formula:
    """Krippendorff's alpha of `sets` (n, labels) with these shares (n,) of the sample's ratings.

    Of many sets the table of distances is beyond all memory: 20,000 units that four raters rated by 26 codes
    have 47,000 sets. What chance would give in a resample is then twice the distance of its sets from the
    sample's, less that of the sample's from each other, less how alike those are that it has more of. Only
    the last is approximate, told by `_SOME` of the sets: both ends of an interval are too high by .01 to .03
    of its width for Jaccard, for MASI by .02 for 800 units, .06 for 15 clusters and up to .14 for 5 (without
    it by .02 to .04 for units, up to .15 for 15 clusters and .45 for 5).
    """
    if len(sets) <= _TABLE:
        apart = set_distances(sets, distance)
        return lambda counts, tally: krippendorff_alpha(counts, tally, apart)
    typical, likeness = _compared(sets, shares, distance)

    def alpha(counts: Floats, tally: Tally) -> Floats:
        n = counts @ (tally.rated * tally.paired)
        from_sample = counts @ _summed(typical[:, None], tally)[:, 0]
        more = counts @ _summed(likeness, tally) - n[:, None] * (shares @ likeness)
        observed = counts @ (_apart(tally.cells, sets, distance) / np.maximum(tally.rated - 1, 1))
        return alpha_of(observed, n * (2 * from_sample - n * (shares @ typical)) - (more**2).sum(1), n)

    return alpha


def _compared(sets: Bools, shares: Floats, distance: SetDistance) -> tuple[Floats, Floats]:
    """(n,) the mean distance of each set from those of the sample; (n, m) numbers of each whose products are
    1 less the distances, nearly (Nyström's method; Williams and Seeger 2001)."""
    members, sizes, at_once = sets.astype(np.float64), sets.sum(1), max(1, _AT_ONCE // len(sets))
    some_shares = (np.arange(_SOME) + 0.5) / _SOME
    some = np.unique(np.searchsorted(shares.cumsum() / shares.sum(), some_shares - _ROUNDING))
    values, vectors = np.linalg.eigh(1 - set_distances(sets[some], distance))
    is_large = values > _ROUNDING * values[-1]
    scaled = vectors[:, is_large] / np.sqrt(values[is_large])
    typical, likeness = np.zeros(len(sets)), np.zeros((len(sets), scaled.shape[1]))
    for start in range(0, len(sets), at_once):
        part = slice(start, start + at_once)
        apart = _distances(members[part] @ members.T, sizes[part, None], sizes, distance)
        typical[part], likeness[part] = apart @ shares, (1 - apart[:, some]) @ scaled
    return typical, likeness


def _summed(numbers: Floats, tally: Tally) -> Floats:
    """(P, m) the numbers (n, m) of a unit's sets, summed; 0 of a unit with one rating."""
    result = np.zeros((len(tally.cells), numbers.shape[1]))
    for cells in tally.cells.T:
        rows = np.flatnonzero((cells != MISSING) & (tally.rated >= 2))
        result[rows] += numbers[cells[rows]]
    return result


def _apart(cells: Ints, sets: Bools, distance: SetDistance) -> Floats:
    """(P,) the distances of all ordered pairs of a unit's sets, summed."""
    apart = np.zeros(len(cells))
    for one, other in combinations(cells.T, 2):
        both = np.flatnonzero((one != MISSING) & (other != MISSING))
        first, second = sets[one[both]], sets[other[both]]
        shared = (first & second).sum(1).astype(np.float64)
        apart[both] += 2 * _distances(shared, first.sum(1), second.sum(1), distance)
    return apart


def set_distances(sets: Bools, distance: SetDistance) -> Floats:
    """Distances (n, n) in 0..1 between the rows of `sets` (n, labels).

    Jaccard: 1 − |A∩B|/|A∪B|. MASI: 1 − that ratio times 1 for equal sets, ⅔ for one within the other, ⅓ for
    sets that overlap, 0 for disjoint ones (Passonneau 2006).
    """
    members, sizes = sets.astype(np.float64), sets.sum(1)
    return _distances(members @ members.T, sizes[:, None], sizes, distance)


def _distances(shared: Floats, sizes: Ints, other_sizes: Ints, distance: SetDistance) -> Floats:
    """Distances of sets of these sizes with so many shared labels."""
    union = sizes + other_sizes - shared
    jaccard = np.divide(shared, union, out=np.ones_like(union), where=union > 0)
    if distance == "jaccard":
        kinship = np.ones_like(jaccard)
    else:
        equal = (shared == sizes) & (shared == other_sizes)
        nested = (shared == np.minimum(sizes, other_sizes)) & (shared > 0)
        kinship = np.select([equal, nested, shared > 0], [1.0, 2 / 3, 1 / 3], 0.0)
    apart: Floats = 1 - jaccard * kinship
    return apart
