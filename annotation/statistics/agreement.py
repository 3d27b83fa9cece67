"""How far raters agree on one code, with intervals, and null with a reason where that is undefined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from . import coefficients as formula
from .coefficients import Tally
from .crowds import (
    FEW,
    PAIRS,
    anonymous_cells,
    closest_pairs,
    compared_units,
    is_crowd,
    pair_overlaps,
    tables,
    usual_overlap,
)
from .intervals import MISSING, Floats, Interval, Ints, interval_around, patterns

Level = Literal["nominal", "ordinal", "interval"]
Margins = Literal["paired", "all"]
"""Where joint coefficients take their margins from: units with two ratings, or all (Gwet's convention)."""
Pair = tuple[int, int]
Formula = Callable[[Floats, Tally], Floats]

PAIRWISE = {
    "cohen_kappa": 0,
    "cohen_kappa_linear": 1,
    "cohen_kappa_quadratic": 2,
}  # power of the distance: of ranks, or of values at level interval
MEANS = {"mean_cohen_kappa": 0, "mean_cohen_kappa_quadratic": 2}
COEFFICIENTS = (
    "percent_agreement",
    "positive_agreement",
    "negative_agreement",
    *PAIRWISE,
    *MEANS,
    "fleiss_kappa",
    "krippendorff_alpha",
    "gwet_ac1",
    "pabak",
)
_DEFINED_ON_ONE_LABEL = {"percent_agreement", "positive_agreement", "negative_agreement", "gwet_ac1", "pabak"}
_OF_MARGINS = {"fleiss_kappa", "gwet_ac1"}
"""What rests on the margins, which may be those of units that one rater alone has seen."""
_ONE_LABEL = "one label only"
RESAMPLES = 2000
"""Draws behind an interval."""
_THIN = 5
"""The least that the square of a pair's units may be, of all units, for an interval of the mean of kappas."""
_RARE = 15
"""Likewise the least of a pair's units that have another label than the commonest."""
_NO_INTERVAL = Interval(None, None, "no interval: a single unit or cluster")


@dataclass(frozen=True, eq=False)
class Ratings:
    """What raters said about the same units under one code.

    `matrix` (units, raters) holds indices into `labels`, −1 where a rating is missing. `labels` are all that
    were declared, in their order: weighted kappa, AC1 and PABAK depend on them. Interval data need labels
    that are numbers. `weights` (units,) are design weights 1/π of a sample that was not drawn evenly:
    unweighted kappa on one stratified by the judge is badly off. `clusters` (units,) names the trajectory of
    each unit, or the instance of which that is a run, for these are not independent.
    """

    matrix: Ints
    labels: tuple[str, ...]
    raters: tuple[str, ...]
    level: Level = "nominal"
    weights: Floats | None = None
    clusters: Ints | None = None
    positive: str | None = None

    def __post_init__(self) -> None:
        n, raters = self.matrix.shape
        if self.level not in get_args(Level):
            raise ValueError(f"unknown level {self.level!r}, expected one of {', '.join(get_args(Level))}")
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise ValueError(f"`labels` must be two or more different ones, got {self.labels}")
        if raters != len(self.raters):
            raise ValueError(f"`matrix` has {raters} columns for {len(self.raters)} raters")
        if n and not (self.matrix.min() >= MISSING and self.matrix.max() < len(self.labels)):
            raise ValueError(f"`matrix` must hold -1 or indices below {len(self.labels)}")
        if (w := self.weights) is not None and not (len(w) == n and np.all((w > 0) & np.isfinite(w))):
            raise ValueError(f"`weights` must be {n} positive numbers, 1/π of each unit")
        if self.clusters is not None and len(self.clusters) != n:
            raise ValueError(f"`clusters` must name one for each of {n} units")
        if self.positive is not None and self.positive not in self.labels:
            raise ValueError(f"`positive` must be one of {', '.join(self.labels)}, got {self.positive!r}")
        self.places()

    def places(self) -> Floats:
        """Where labels (q,) lie: their values, for interval data, in their range, else their ranks.

        Squares of values of 1e-7 are taken for 0, and those of 1e200 are beyond all floats.
        """
        if self.level != "interval":
            return np.arange(len(self.labels), dtype=np.float64)
        wrong = f"interval labels must be numbers, got {', '.join(self.labels)}"
        try:
            values = np.array([float(label) for label in self.labels])
        except ValueError as error:
            raise ValueError(wrong) from error
        if not np.isfinite(values).all():
            raise ValueError(wrong)
        spread = values / np.abs(values).max(initial=0.0) if values.any() else values
        return spread / np.ptp(spread) if np.ptp(spread) > 0 else spread


@dataclass(frozen=True)
class Coefficient:
    """One row of a report.

    `n_units` counts the units that `value` compares raters on: with two ratings, of the pair for Cohen's
    kappa and of one of the pairs for their mean; `n_ratings` counts theirs. With margins of all units Fleiss'
    kappa and AC1 count those too. `value` is None where it is undefined, with the `reason`; AC1 and PABAK
    carry one also where they are 1 because only one label was used, and so does Fleiss' kappa where margins
    of all units hold others. The interval covers 95 %;
    `undefined_resamples` of the draws had no value.
    """

    coefficient: str
    raters: tuple[str, ...]
    value: float | None
    low: float | None
    high: float | None
    n_units: int
    n_ratings: int
    reason: str | None = None
    undefined_resamples: int = 0


def agreement(
    ratings: Ratings,
    coefficients: Iterable[str] = COEFFICIENTS,
    *,
    pairs: Sequence[Pair] | None = None,
    margins: Margins = "paired",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Coefficient]:
    """Each of the `coefficients`, in their order; Cohen's kappas once for each pair of raters.

    `margins` of Fleiss' kappa, AC1 and the others of all raters come from the units with two ratings or
    more: units that one rater alone has seen, such as a judge's whole corpus, are another population and say
    nothing of agreement by chance on these. "all" takes them from every rated unit (Gwet 2014, and irrCAC).

    `pairs` (column indices; default: all) are those of Cohen's kappas and their mean, for instance only the
    judge with each human. Positive and negative agreement are there for two labels with `positive` declared.
    """
    names = list(coefficients)
    if margins not in get_args(Margins):
        raise ValueError(f"unknown margins {margins!r}, expected one of {', '.join(get_args(Margins))}")
    if unknown := set(names) - set(COEFFICIENTS):
        raise ValueError(
            f"unknown coefficient {sorted(unknown)[0]!r}, expected one of {', '.join(COEFFICIENTS)}"
        )
    joint_pairs, overlaps = pair_overlaps(ratings.matrix, pairs)
    if crowd := is_crowd(ratings.matrix, overlaps, pairs):
        selection = joint_pairs
    else:
        selection = list(combinations(range(len(ratings.raters)), 2)) if pairs is None else list(pairs)
    joint = _joint_formulas(ratings, selection)
    of_all = {name: joint[name] for name in names if name in joint and not (crowd and name in MEANS)}
    overall = _whole(ratings, of_all, "paired", resamples, seed, crowd=crowd)
    resting = {name: joint for name, joint in of_all.items() if name in _OF_MARGINS}
    if margins == "all" and resting:  # the others are the same whatever the margins are
        overall |= _whole(ratings, resting, margins, resamples, seed, crowd=crowd)
    if crowd:
        overall |= {
            name: _mean_of_many(name, ratings, joint_pairs, overlaps) for name in names if name in MEANS
        }
    for name in MEANS.keys() & overall.keys():
        complete = len(joint_pairs) == len(selection)
        overall[name] = _of_pairs(overall[name], ratings.matrix, joint_pairs, overlaps, complete=complete)
    places = ratings.places()
    kappas = {name: _cohen(formula.distance(places, PAIRWISE[name])) for name in names if name in PAIRWISE}
    kappa_pairs = closest_pairs(joint_pairs, overlaps) if crowd or len(selection) > PAIRS else selection
    results = [overall, *(_measure(ratings, pair, kappas, "paired", resamples, seed) for pair in kappa_pairs)]
    return [result[name] for name in names for result in results if name in result]


def _whole(
    ratings: Ratings,
    formulas: dict[str, Formula],
    margins: Margins,
    resamples: int,
    seed: int,
    *,
    crowd: bool,
) -> dict[str, Coefficient]:
    """Coefficients of all raters."""
    if not crowd:
        return _measure(ratings, range(len(ratings.raters)), formulas, margins, resamples, seed)
    cells = anonymous_cells(ratings.matrix, len(ratings.labels))
    seats = replace(ratings, matrix=cells, raters=tuple(map(str, range(cells.shape[1]))))
    rows = _measure(seats, range(cells.shape[1]), formulas, margins, resamples, seed)
    return {name: replace(row, raters=ratings.raters) for name, row in rows.items()}


def _mean_of_many(name: str, ratings: Ratings, pairs: list[Pair], overlaps: Ints) -> Coefficient:
    """The mean of the kappas of a crowd's pairs, whose counts `_of_pairs` adds; None where pairs share so few
    units that it says more of how few than of agreement (of 80 raters .29, of 500 .05 where alpha is .46 and
    .45)."""
    disagreement = formula.distance(ratings.places(), MEANS[name])
    counts = tables(ratings.matrix, len(ratings.labels), pairs, ratings.weights)
    kappas = formula.kappas_of(counts, disagreement)
    defined = kappas[np.isfinite(kappas)]
    each = usual_overlap(overlaps)
    n_kappas = len(closest_pairs(pairs, overlaps))
    units = "1 unit" if f"{each:.3g}" == "1" else f"{each:.3g} units"
    why = f"{len(pairs)} pairs of {len(ratings.raters)} raters share {units} each"
    if n_kappas < len(pairs):
        why += f"; {n_kappas} of them, which share the most, have kappas of their own"
    value, reason = float(defined.mean()) if len(defined) else None, f"no interval: {why}"
    if each < FEW:
        value, reason = None, f"kappas of few units lie low: {why}"
    elif value is None:
        reason = _ONE_LABEL
    return Coefficient(name, ratings.raters, value, None, None, 0, 0, reason)


def _of_pairs(
    row: Coefficient, matrix: Ints, pairs: Sequence[Pair], overlaps: Ints, *, complete: bool
) -> Coefficient:
    """The mean of kappas with the counts of what it compares: units that one of its pairs has rated.
    `overlaps` (pairs,) are how many units each pair shares, of pairs that share any; all pairs are there if
    `complete`.

    A kappa lies low by about 1/n of its pair's n units, the mean's error falls with the root of all: where
    each unit is rated by few of many raters, intervals of the mean held it in .13 to .89 of samples. Where a
    pair's units with a rarer label are fewer than _RARE, in .87 to .93; in .92 to .95 from there on.
    """
    is_rated, units = matrix != MISSING, compared_units(matrix, pairs)
    row = replace(row, n_units=int(units.sum()), n_ratings=int(is_rated[units].sum()))
    if not units.any():
        return row if row.reason in _NOT_COMPARABLE.values() else replace(row, reason=_NOT_COMPARABLE[2])
    each = usual_overlap(overlaps)
    labels = matrix[units][is_rated[units]]
    rarer = each * (1 - float(np.bincount(labels).max()) / len(labels))
    enough = each**2 >= _THIN * row.n_units and rarer >= _RARE
    if row.low is None or enough or (complete and (overlaps == row.n_units).all()):
        return row
    reason = (
        f"no interval: pairs share {each:.3g} of {row.n_units} units, {rarer:.3g} of them with a rarer label,"
        " and kappas of few lie low"
    )
    return replace(row, low=None, high=None, reason=reason)


def _joint_formulas(ratings: Ratings, pairs: list[Pair]) -> dict[str, Formula]:
    q = len(ratings.labels)
    formulas: dict[str, Formula] = {
        "percent_agreement": formula.percent_agreement,
        "fleiss_kappa": formula.fleiss_kappa,
        "krippendorff_alpha": _alpha(ratings),
        "gwet_ac1": formula.gwet_ac1,
        "pabak": formula.pabak,
    }
    if len(ratings.raters) < 2:  # never evaluated: their rows say "a single rater"
        formulas |= dict.fromkeys((*PAIRWISE, *MEANS), formula.percent_agreement)
    elif pairs:
        for name, power in MEANS.items():
            formulas[name] = _mean_cohen(pairs, formula.distance(ratings.places(), power))
    if q == 2 and ratings.positive is not None:
        index = ratings.labels.index(ratings.positive)
        formulas["positive_agreement"] = _specific(index)
        formulas["negative_agreement"] = _specific(1 - index)
    return formulas


def _alpha(ratings: Ratings) -> Formula:
    if ratings.level == "ordinal":
        tally = Tally(ratings.matrix, len(ratings.labels))
        weights = np.ones(len(ratings.matrix)) if ratings.weights is None else ratings.weights
        ranks = formula.ordinal_distance((weights * tally.paired) @ tally.by_label)
        return lambda counts, tally: formula.ordinal_alpha(counts, tally, ranks)
    distance = formula.distance(ratings.places(), 2 if ratings.level == "interval" else 0)
    return lambda counts, tally: formula.krippendorff_alpha(counts, tally, distance)


def _measure(
    ratings: Ratings,
    raters: Sequence[int],
    formulas: dict[str, Formula],
    margins: Margins,
    resamples: int,
    seed: int,
) -> dict[str, Coefficient]:
    return measure(
        ratings.matrix[:, list(raters)],
        len(ratings.labels),
        tuple(ratings.raters[rater] for rater in raters),
        formulas,
        ratings.weights,
        ratings.clusters,
        ordered=ratings.level != "nominal",
        margins=margins,
        resamples=resamples,
        seed=seed,
    )


def _mean_cohen(pairs: list[Pair], disagreement: Floats) -> Formula:
    return lambda counts, tally: formula.mean_cohen_kappa(counts, tally, pairs, disagreement)


def _specific(label: int) -> Formula:
    return lambda counts, tally: formula.specific_agreement(counts, tally, label)


def _cohen(disagreement: Floats) -> Formula:
    return lambda counts, tally: formula.cohen_kappa(counts, tally, (0, 1), disagreement)


def measure(
    matrix: Ints,
    n_labels: int,
    raters: tuple[str, ...],
    formulas: Mapping[str, Formula],
    weights: Floats | None = None,
    clusters: Ints | None = None,
    *,
    ordered: bool = False,
    margins: Margins = "paired",
    resamples: int,
    seed: int,
) -> dict[str, Coefficient]:
    """Evaluate all formulas on the sample and on the same draws of its pattern counts."""
    per_unit = (matrix != MISSING).sum(1)
    paired = per_unit >= 2
    is_used = paired if margins == "paired" else per_unit > 0

    def row(name: str, value: float | None, interval: Interval, reason: str | None) -> Coefficient:
        low, high, _, undefined = interval
        is_counted = is_used if paired.any() else paired
        n_units, n_ratings = int(is_counted.sum()), int(per_unit[is_counted].sum())
        return Coefficient(name, raters, value, low, high, n_units, n_ratings, reason, undefined)

    if not paired.any():
        return {name: row(name, None, Interval(None, None), _not_comparable(matrix)) for name in formulas}
    units = matrix[is_used], n_labels, _select(weights, is_used), _select(clusters, is_used)
    result = patterns(*units, ordered=ordered, seed=seed)
    tally = Tally(result.cells, n_labels)
    is_constant = _is_constant(matrix[is_used])
    elsewhere = "" if is_constant else " on units with two ratings"  # margins of all units hold others
    one_label = _ONE_LABEL + elsewhere if _is_constant(matrix[paired]) else None
    values = {name: float(compute(result.counts[None], tally)[0]) for name, compute in formulas.items()}
    defined = [
        name
        for name, value in values.items()
        if np.isfinite(value) and (not is_constant or name in _DEFINED_ON_ONE_LABEL)
    ]
    draws: dict[str, list[Floats]] = {name: [] for name in defined}
    if defined and result.independent > 1:
        for batch in result.draws(resamples, seed):
            for name in defined:
                draws[name].append(formulas[name](batch, tally))
    rows = {}
    for name, value in values.items():
        if name not in draws:
            rows[name] = row(name, None, Interval(None, None), one_label or "nothing to compare")
        else:
            several = draws[name]
            interval = interval_around(value, np.concatenate(several)) if several else _NO_INTERVAL
            rows[name] = row(name, value, interval, one_label or interval.reason)
    return rows


def _is_constant(matrix: Ints) -> bool:
    return len(np.setdiff1d(matrix, MISSING)) == 1


def _select(values: NDArray[Any] | None, units: NDArray[np.bool_]) -> NDArray[Any] | None:
    return None if values is None else values[units]


_NOT_COMPARABLE = {0: "no rating", 1: "a single rater", 2: "no unit with two ratings"}
"""By the number of raters, where no unit has two ratings."""


def _not_comparable(matrix: Ints) -> str:
    return _NOT_COMPARABLE[min(int((matrix != MISSING).any(0).sum()), 2)]
