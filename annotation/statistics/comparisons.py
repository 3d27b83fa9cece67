"""Differences between two conditions, paired by task instance where the design is, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .intervals import Floats, Interval, Ints, Z, around, cluster_weights, student

Method = Literal["holm", "benjamini_hochberg", "benjamini_yekutieli"]
LEVEL = 0.05
_EXACT_BELOW = 25  # discordant pairs


@dataclass(frozen=True)
class Comparison:
    """`effect` is the first mean minus the second; None with a `reason` where there is none.

    `n` counts pairs, or the values of both samples. `p_value` is two-sided; `p_adjusted` is that within its
    family, once `adjust` has seen it.
    """

    test: str
    first: float | None
    second: float | None
    effect: float | None
    low: float | None
    high: float | None
    p_value: float | None
    n: int
    reason: str | None = None
    p_adjusted: float | None = None

    @property
    def better(self) -> bool:
        """Whether the first is higher, significantly so at .05 (adjusted where that was done)."""
        p = self.p_value if self.p_adjusted is None else self.p_adjusted
        return self.effect is not None and self.effect > 0 and p is not None and p < LEVEL

    def statement(self, what: str, first: str, second: str) -> str:
        """The result in a sentence, for instance of `delivery_rate` between two conditions."""
        if self.effect is None or self.first is None or self.second is None:
            return f"{what}: {first} and {second} can't be compared: {self.reason}."
        interval = "" if self.low is None else f" [{self.low:.3f}, {self.high:.3f}]"
        found = (
            f"{what}: {self.first:.3f} ({first}) against {self.second:.3f} ({second}), "
            f"difference {self.effect:+.3f}{interval}, {self.test}, n={self.n}"
        )
        if self.p_value is None:
            return f"{found}: no test, {self.reason}."
        p = self.p_value if self.p_adjusted is None else self.p_adjusted
        shown = f"p={self.p_value:.3g}" + ("" if self.p_adjusted is None else f", adjusted {p:.3g}")
        verdict = "significant at .05" if p < LEVEL else "not significant at .05: no difference was shown"
        return f"{found}, {shown}: {verdict}."


def compare(
    first: Floats,
    second: Floats,
    *,
    instances: tuple[Sequence[str], Sequence[str]] | None = None,
    clusters: tuple[Sequence[str], Sequence[str]] | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare the means of two samples (n₁,) and (n₂,) of finite values, by the test that the design allows.

    With `instances`, the task of each value, tasks that both solved are paired (several runs of one are
    averaged): McNemar for single yes/no outcomes, else paired t. Without two shared tasks the samples are
    compared whole, by a bootstrap over `clusters` (trajectories, or tasks run several times) or else values.
    """
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("values must be finite: leave missing ones out and count them")
    if not len(first) or not len(second):
        return _none("none", len(first) + len(second), "a sample is empty")
    if instances is not None:
        pairs = _paired(first, second, instances)
        if len(pairs) >= 2:
            yes_no = bool(np.isin(pairs, (0, 1)).all())
            return mcnemar(pairs[:, 0], pairs[:, 1]) if yes_no else paired_t(pairs[:, 0], pairs[:, 1])
    return bootstrap_difference(first, second, clusters=clusters or instances, seed=seed)


def mcnemar(first: Floats, second: Floats) -> Comparison:
    """Two yes/no outcomes (n,) of the same instances: only those that differ tell (McNemar 1947).

    Binomial below 25 discordant pairs, else χ² with continuity correction. The interval adds ½ to each of the
    four cells (Agresti and Min 2005), so it holds for few pairs too.
    """
    from scipy import special

    n = len(first)
    gained, lost = int(((first == 1) & (second == 0)).sum()), int(((first == 0) & (second == 1)).sum())
    discordant = gained + lost
    if discordant < _EXACT_BELOW:
        p = min(1.0, 2 * float(special.bdtr(min(gained, lost), discordant, 0.5))) if discordant else 1.0
    else:
        p = float(special.chdtrc(1, (abs(gained - lost) - 1) ** 2 / discordant))
    more, less, total = gained + 0.5, lost + 0.5, n + 2
    centre = (more - less) / total
    half = Z * sqrt(more + less - (more - less) ** 2 / total) / total
    effect = (gained - lost) / n
    interval = Interval(max(-1.0, min(effect, centre - half)), min(1.0, max(effect, centre + half)))
    return _found("McNemar, exact" if discordant < _EXACT_BELOW else "McNemar", first, second, interval, p, n)


def paired_t(first: Floats, second: Floats) -> Comparison:
    """The mean of the differences (n,) with Student's t."""
    from scipy import special

    n = len(first)
    if n < 2:
        return _none("paired t", n, f"a paired test needs two pairs, got {n}")
    differences = first - second
    error = float(differences.std(ddof=1)) / sqrt(n)
    mean = float(differences.mean())
    if error < 1e-12:
        row = _found("paired t", first, second, Interval(None, None), 1.0, n)
        return replace(row, p_value=None, reason="all differences are equal")
    p = 2 * float(special.stdtr(n - 1, -abs(mean / error)))
    half = student(n - 1) * error
    return _found("paired t", first, second, Interval(mean - half, mean + half), p, n)


def bootstrap_difference(
    first: Floats,
    second: Floats,
    *,
    clusters: tuple[Sequence[str], Sequence[str]] | None = None,
    resamples: int = 4000,
    seed: int = 0,
) -> Comparison:
    """Two independent samples: a Bayesian bootstrap of each, over clusters where values are not independent.

    Yes/no values get half an observation of each kind, so that "never" is not taken for certain. The p-value
    is twice the share of draws beyond 0, so never below 2/(resamples + 1).
    """
    test, n = ("cluster bootstrap" if clusters else "bootstrap"), len(first) + len(second)
    yes_no = bool(np.isin(first, (0, 1)).all() and np.isin(second, (0, 1)).all())
    draws = []
    for number, values in enumerate((first, second)):
        _, codes = np.unique(clusters[number] if clusters else np.arange(len(values)), return_inverse=True)
        if int(codes.max()) < 1:
            return _none(test, n, "a sample has a single independent value")
        draws.append(_means(values, codes, yes_no, resamples, seed + number))
    difference = draws[0] - draws[1]
    interval = around(float(first.mean() - second.mean()), difference)
    beyond = min(int((difference <= 0).sum()), int((difference >= 0).sum()))
    p = min(1.0, 2 * (beyond + 1) / (resamples + 1))
    return _found(test, first, second, interval, p, n)


def adjust(rows: Sequence[Comparison], method: Method = "holm") -> list[Comparison]:
    """The same rows with p-values adjusted for their number; rows without one are no part of the family."""
    tested = [row.p_value for row in rows if row.p_value is not None]
    adjusted = iter(adjusted_p_values(tested, method))
    return [row if row.p_value is None else replace(row, p_adjusted=next(adjusted)) for row in rows]


def adjusted_p_values(p_values: Sequence[float], method: Method = "holm") -> list[float]:
    """Holm (1979) bounds the chance of any false finding, Benjamini–Hochberg (1995) their expected share,
    Benjamini–Yekutieli (2001) the same under any dependence."""
    if method not in get_args(Method):
        raise ValueError(f"unknown method {method!r}, expected one of {', '.join(get_args(Method))}")
    p = np.asarray(p_values, dtype=np.float64)
    m = len(p)
    order = np.argsort(p)
    ranks = np.arange(1, m + 1)
    if method == "holm":
        stepped = np.maximum.accumulate(p[order] * (m - ranks + 1))
    else:
        dependence = float((1 / ranks).sum()) if method == "benjamini_yekutieli" else 1.0
        stepped = np.minimum.accumulate((p[order] * m / ranks * dependence)[::-1])[::-1]
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(stepped, 1)
    return [float(value) for value in adjusted]


def _paired(first: Floats, second: Floats, instances: tuple[Sequence[str], Sequence[str]]) -> Floats:
    """(pairs, 2) mean values of the instances that both samples have."""
    means = []
    for values, names in zip((first, second), instances, strict=True):
        unique, codes = np.unique(np.asarray(names), return_inverse=True)
        means.append(dict(zip(unique.tolist(), np.bincount(codes, values) / np.bincount(codes), strict=True)))
    shared = sorted(means[0].keys() & means[1].keys())
    return np.array([[means[0][name], means[1][name]] for name in shared], dtype=np.float64).reshape(-1, 2)


def _means(values: Floats, codes: Ints, yes_no: bool, resamples: int, seed: int) -> Floats:
    sizes = np.bincount(codes).astype(np.float64)
    weights = cluster_weights(sizes, resamples, seed)
    held, total = weights @ np.bincount(codes, weights=values), weights @ sizes
    if yes_no:
        prior = np.random.default_rng(seed).standard_gamma(0.5, size=(2, resamples))
        held, total = held + prior[0], total + prior.sum(0)
    means: Floats = held / total
    return means


def _found(
    test: str, first: NDArray[np.float64], second: Floats, interval: Interval, p: float, n: int
) -> Comparison:
    one, other = float(first.mean()), float(second.mean())
    return Comparison(test, one, other, one - other, interval.low, interval.high, p, n, interval.reason)


def _none(test: str, n: int, reason: str) -> Comparison:
    return Comparison(test, None, None, None, None, None, None, n, reason)
