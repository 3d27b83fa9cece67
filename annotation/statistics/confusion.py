"""How a judge errs against people: confusion by class, and calibration where it gives probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import Floats, Ints, wilson


@dataclass(frozen=True)
class Share:
    """A proportion of `n` units with its Wilson interval (of Kish's effective n where weighted)."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class ClassQuality:
    """One label against all others: of the human's, how many the judge found, and the reverse."""

    label: str
    sensitivity: Share
    specificity: Share
    ppv: Share
    npv: Share


@dataclass(frozen=True, eq=False)
class Confusion:
    """`counts` (q, q) of units by human label (rows) and judge label (columns); `weighted` by 1/π."""

    labels: tuple[str, ...]
    counts: Ints
    weighted: Floats
    classes: tuple[ClassQuality, ...]


@dataclass(frozen=True)
class Bin:
    """Units whose probability lies in (low, high]; the first bin takes 0 too."""

    low: float
    high: float
    n: int
    predicted: float | None
    observed: float | None


@dataclass(frozen=True)
class Calibration:
    """Expected calibration error, Brier score and the bins behind; None with a reason without units."""

    ece: float | None
    brier: float | None
    bins: tuple[Bin, ...]
    n: int
    reason: str | None = None


def confusion(judge: Ints, human: Ints, labels: Sequence[str], weights: Floats | None = None) -> Confusion:
    """Compare two raters' label indices (n,) where both are usable (not negative).

    On a sample that looked at the judge (stratified by its label) sensitivity and specificity are wrong
    without `weights` (n,) 1/π; the predictive values are not.
    """
    usable = (judge >= 0) & (human >= 0)
    judge, human = judge[usable], human[usable]
    weights = np.ones(len(judge)) if weights is None else weights[usable]
    q = len(labels)
    cell = human * q + judge
    return Confusion(
        labels=tuple(labels),
        counts=np.bincount(cell, minlength=q * q).reshape(q, q),
        weighted=_sums(cell, weights, q * q).reshape(q, q),
        classes=tuple(_quality(name, judge == k, human == k, weights) for k, name in enumerate(labels)),
    )


def calibration(
    probability: Floats, outcome: Ints, *, bins: int = 10, weights: Floats | None = None
) -> Calibration:
    """How far a judge's probabilities (n,) of 1 are from the human 0/1 outcomes (n,), in equal-width bins.

    ECE is the weighted mean of |observed − predicted| over bins (Naeini et al. 2015), Brier the mean squared
    error. ECE is biased upwards in small samples, the more so the more bins.
    """
    if not np.all((probability >= 0) & (probability <= 1)):
        raise ValueError("`probability` must lie in 0..1")
    n = len(probability)
    if n == 0:
        return Calibration(None, None, (), 0, "no unit with a probability and a human label")
    weights = np.ones(n) if weights is None else weights
    edges = np.linspace(0, 1, bins + 1)
    of_unit = np.clip(np.searchsorted(edges, probability, side="left") - 1, 0, bins - 1)
    held = _sums(of_unit, weights, bins)
    filled = held > 0
    predicted = _ratio(_sums(of_unit, weights * probability, bins), held)
    observed = _ratio(_sums(of_unit, weights * outcome, bins), held)
    numbers = np.bincount(of_unit, minlength=bins)
    rows = [
        Bin(float(low), float(high), int(k), float(p) if k else None, float(o) if k else None)
        for low, high, k, p, o in zip(edges, edges[1:], numbers, predicted, observed, strict=False)
    ]
    gap = np.abs(observed - predicted)[filled]
    ece = float(held[filled] @ gap / weights.sum())
    brier = float(weights @ (probability - outcome) ** 2 / weights.sum())
    return Calibration(ece, brier, tuple(rows), n)


def _quality(label: str, judged: NDArray[np.bool_], true: NDArray[np.bool_], weights: Floats) -> ClassQuality:
    return ClassQuality(
        label,
        sensitivity=_share(judged, true, weights, f"no human label {label!r}"),
        specificity=_share(~judged, ~true, weights, f"no human label other than {label!r}"),
        ppv=_share(true, judged, weights, f"no judge label {label!r}"),
        npv=_share(~true, ~judged, weights, f"no judge label other than {label!r}"),
    )


def _share(of: NDArray[np.bool_], among: NDArray[np.bool_], weights: Floats, reason: str) -> Share:
    own = weights[among]
    if not len(own):
        return Share(None, None, None, 0, reason)
    value = float(own @ of[among] / own.sum())
    effective = float(own.sum() ** 2 / (own**2).sum())
    low, high, _, _ = wilson(min(value, 1.0) * effective, effective)
    return Share(value, low, high, len(own))


def _sums(index: Ints, weights: Floats, size: int) -> Floats:
    return np.bincount(index, weights=weights, minlength=size).astype(np.float64)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.full_like(denominator, np.nan), where=denominator > 0)
