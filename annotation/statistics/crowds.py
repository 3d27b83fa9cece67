"""Many raters, each of few units: crowds. Coefficients that do not depend on who a rater is go by a unit's
labels alone, and of hundreds of thousands of pairs only those that share a unit are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .intervals import MISSING, Floats, Ints

CROWD = 20
"""With more raters, joint coefficients do not ask who said what."""
PAIRS = CROWD * (CROWD - 1) // 2
"""At most so many pairs have rows of their own: those that share the most units."""
FEW = 10
"""With fewer shared units a pair of a crowd has no row, and a mean of kappas no value."""
SPARSE = 0.1
"""The share of the units with two ratings below which a pair's common units are few."""
Pair = tuple[int, int]


def is_crowd(matrix: Ints, overlaps: Ints, pairs: Sequence[Pair] | None) -> bool:
    """Whether raters are many, and pairs (None: all) share few of the units (units, raters)."""
    raters = matrix.shape[1]
    several = int(((matrix != MISSING).sum(1) > 1).sum())
    n_pairs = raters * (raters - 1) // 2 if pairs is None else len(pairs)
    return raters > CROWD and int(overlaps.sum()) < SPARSE * several * n_pairs


def rater_names(raters: Sequence[str], between: str) -> str:
    """Raters by their names; of a crowd the first, and how many more there are."""
    return between.join(raters if len(raters) <= CROWD else (raters[0], f"{len(raters) - 1} more"))


def usual_overlap(overlaps: Ints) -> float:
    """How many units pairs (pairs,) usually share: the harmonic mean, for a kappa of n units lies low by
    about 1/n; 0 without pairs."""
    return 1 / float(np.mean(1 / overlaps)) if len(overlaps) else 0.0


def anonymous_cells(matrix: Ints, n_labels: int) -> Ints:
    """Ratings (units, raters) as (units, the most ratings of a unit): each unit's labels in order, without
    their raters."""
    counts = np.stack([(matrix == label).sum(1) for label in range(n_labels)], axis=1)
    sizes = counts.sum(1)
    labels = np.repeat(np.tile(np.arange(n_labels), len(matrix)), counts.ravel())
    places = np.arange(len(labels)) - np.repeat(sizes.cumsum() - sizes, sizes)
    cells = np.full((len(matrix), int(sizes.max(initial=0))), MISSING, dtype=np.int64)
    cells[np.repeat(np.arange(len(matrix)), sizes), places] = labels
    return cells


def pair_overlaps(matrix: Ints, pairs: Sequence[Pair] | None = None) -> tuple[list[Pair], Ints]:
    """The pairs of raters (by default all, each once) that share a unit, and how many each shares."""
    is_rated = _sparse(matrix != MISSING)
    overlaps = (is_rated.T @ is_rated).tocsr()
    if pairs is None:
        from scipy import sparse

        upper = sparse.triu(overlaps, k=1).tocoo()
        order = np.lexsort((upper.col, upper.row))
        one, other, units = (part[order] for part in (upper.row, upper.col, upper.data))
    else:
        one, other = _sides(pairs)
        units = _cells(overlaps, one, other)
    met = units > 0
    return list(zip(one[met].tolist(), other[met].tolist(), strict=True)), units[met].astype(np.int64)


def compared_units(matrix: Ints, pairs: Sequence[Pair]) -> NDArray[np.bool_]:
    """Which units both raters of one of the pairs have rated."""
    from scipy import sparse

    is_rated = _sparse(matrix != MISSING)
    one, other = _sides(pairs)
    partners = sparse.csr_array((np.ones(len(one)), (one, other)), shape=(matrix.shape[1],) * 2)
    met: NDArray[np.bool_] = np.asarray((is_rated @ partners).multiply(is_rated).sum(1)).ravel() > 0
    return met


def tables(matrix: Ints, n_labels: int, pairs: Sequence[Pair], weights: Floats | None) -> Floats:
    """(pairs, q, q) how many units, by weight, each pair gave each two labels."""
    one, other = _sides(pairs)
    by_label = [_sparse(matrix == label) for label in range(n_labels)]
    weighted_by_label = (
        by_label if weights is None else [part.multiply(weights[:, None]).tocsr() for part in by_label]
    )
    result = np.empty((len(one), n_labels, n_labels))
    for first in range(n_labels):
        for second in range(n_labels):
            result[:, first, second] = _cells(
                (by_label[first].T @ weighted_by_label[second]).tocsr(), one, other
            )
    return result


def closest_pairs(pairs: Sequence[Pair], units: Ints) -> list[Pair]:
    """The pairs, in their order, that have rows of their own."""
    most = np.argsort(-units, kind="stable")[:PAIRS]
    return [pairs[place] for place in np.sort(most[units[most] >= FEW])]


def _sides(pairs: Sequence[Pair]) -> tuple[Ints, Ints]:
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return one, other


def _sparse(which: Any) -> Any:
    from scipy import sparse

    return sparse.csr_array(which.astype(np.float64))


def _cells(table: Any, rows: Ints, columns: Ints) -> Floats:
    """The cells of a sparse table."""
    cells = table[rows, columns]
    values: Floats = np.asarray(cells.todense() if hasattr(cells, "todense") else cells, dtype=np.float64)
    return values.ravel()
