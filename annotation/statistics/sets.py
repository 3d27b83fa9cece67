"""Agreement on sets of labels: which of 26 failure modes a trajectory shows, rated as one."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .agreement import Coefficient, measure
from .coefficients import krippendorff_alpha
from .intervals import MISSING, Floats, Ints, distinct_rows

SetDistance = Literal["masi", "jaccard"]
Bools = NDArray[np.bool_]


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
    apart = set_distances(sets > 0, distance)
    name = f"krippendorff_alpha_{distance}"
    formulas = {name: lambda counts, tally: krippendorff_alpha(counts, tally, apart)}
    return measure(matrix, len(sets), raters, formulas, weights, clusters, resamples=resamples, seed=seed)[
        name
    ]


def set_distances(sets: Bools, distance: SetDistance) -> Floats:
    """Distances (n, n) in 0..1 between the rows of `sets` (n, labels).

    Jaccard: 1 − |A∩B|/|A∪B|. MASI: 1 − that ratio times 1 for equal sets, ⅔ for one within the other, ⅓ for
    sets that overlap, 0 for disjoint ones (Passonneau 2006).
    """
    members = sets.astype(np.float64)
    intersection, sizes = members @ members.T, members.sum(1)
    union = sizes[:, None] + sizes - intersection
    jaccard = np.divide(intersection, union, out=np.ones_like(union), where=union > 0)
    if distance == "jaccard":
        kinship = np.ones_like(jaccard)
    else:
        equal = (intersection == sizes[:, None]) & (intersection == sizes)
        nested = (intersection == np.minimum(sizes[:, None], sizes)) & (intersection > 0)
        kinship = np.select([equal, nested, intersection > 0], [1.0, 2 / 3, 1 / 3], 0.0)
    apart: Floats = 1 - jaccard * kinship
    return apart
