"""The estimator behind every figure: a mean, a share or a ratio over rows with weight, stratum and cluster.

Everything is a ratio of totals Σwy/Σwx (x = 1: a mean; y in 0, 1 besides: a share). Rows of one cluster are
not independent, so all that follows works on clusters' totals:

* Variance: delete-one-cluster jackknife within strata (JKn; Rust and Rao 1996), in closed form. It is s²/n
  for a plain mean, and unlike linearisation not too small where a few clusters are large. Of a finite
  population a share f of which was drawn it is 1 − f times that: 0 for a census only.
* Degrees of freedom: (Σx)²/Σx² − strata, x being the clusters' denominators: the number of clusters less
  strata where they are even, fewer where they are not.
* Bounded on both sides: the effective size m(1 − m)/variance (Korn and Graubard 1998), the variance times
  (t/z)², in the interval of Agresti and Coull (1998), which contains Wilson's. An even sample of
  independent 0/1 rows has its own size there. Everything else (clustered or weighted shares, means, pooled
  ratios) gets ¼ of a cluster at either bound added to mean and variance: rows that are all alike tell of the
  others no more than so many clusters can. All zeros thus have the size of their clusters, weighted ones that
  of Kish's effective number of these.
* Bounded below alone (counts, times): Student's t on the log scale, for such values are skewed. The upper
  reach r = t·cv is stretched to r(1 + r/2): Cornish and Fisher's term of a gamma mean is r/6, and what the
  benchmark's times and counts need to be covered is more. Five events or fewer in all reach as low as
  Garwood's (1936) exact limit of so many, and the estimate says that they are few.
* Unbounded: Student's t.

`benchmarks/coverage_metrics.py` measures what this reaches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, isfinite, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .intervals import Floats, Ints, Z, student

Bounds = tuple[float, float]
ANY: Bounds = (-inf, inf)
UNIT: Bounds = (0.0, 1.0)
TOO_LARGE = "numbers too large to reckon with"
LEAST = 4
"""Clusters that an interval of a mean or a ratio needs: with three, t is 4.3."""
LEAST_SHARE = 2
"""Independent 0/1 values that an interval of a share needs."""
WIDEST = 10.0
"""An interval of a count that reaches beyond so many times its value is left out."""
FEW_EVENTS = 5
"""Counts that add up to no more are marked."""
_PSEUDO = 0.25  # of a cluster, at either bound
_ALIKE = 0.05  # of what is possible is the standard deviation of values that are all alike
_SHIFT = 0.05  # of what is possible: an unseen value that would move the mean by less is not worth a word
_FEW = 10
_ROUNDING = 1e-12  # of values: an error up to that is of their digits


@dataclass(frozen=True)
class Estimate:
    """`value` is None exactly where `reason` says why; the 95 % interval may lack with a reason too.

    `n` rows in `clusters` independent groups went into it; `effective` is how many independent evenly
    weighted 0/1 rows would tell as much (bounded values only). `error` is the standard error, `df` its
    degrees of freedom.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    effective: float | None = None
    error: float | None = None
    df: float | None = None
    reason: str | None = None
    note: str | None = None
    """Why the interval may be too narrow."""


@dataclass(frozen=True)
class Support:
    """What a sample rests on where clusters' values were estimated from those of which a part was rated.

    `clusters` are those with a rated unit, or all where no cluster with units lacks one. `df` are the degrees
    of freedom of the variance between clusters, `variance` is what estimating adds to it, `events` how many
    were counted among the rated units.
    """

    clusters: int
    df: float
    variance: float
    events: float


@dataclass(frozen=True, eq=False)
class Totals:
    """What each cluster (C,) adds up to: Σwy and Σwx, its stratum, and the share of its stratum drawn.

    `names` (C,) are of any kind; the same name in two samples is the same cluster. `size` is the rows'
    effective number (Σw)²/Σw², `yes_no` whether every row is 0 or 1 with x = 1. `support` is there where not
    all clusters tell of the ratio.
    """

    numerator: Floats
    denominator: Floats
    n: int
    names: NDArray[Any]
    strata: Ints
    fraction: Floats
    size: float
    yes_no: bool
    bounds: Bounds = ANY
    support: Support | None = None

    @property
    def value(self) -> float | None:
        """Σwy/Σwx, in the bounds; None where the denominators are 0."""
        total = float(self.denominator.sum())
        if total <= 0:
            return None
        value, bounds = float(np.clip(self.numerator.sum() / total, *self.bounds)), map(float, self.bounds)
        # Weighted values that are all 5 may come to 4.999999999999999.
        return next((end for end in bounds if abs(value - end) <= _ROUNDING * abs(end) < inf), value)

    @property
    def events(self) -> float:
        """How many events were counted, of unweighted whole numbers from 0 on; else without end."""
        if self.support is not None:
            return self.support.events
        whole = self.bounds == (0.0, inf) and self.size > self.n - 1e-9
        return float(self.numerator.sum()) if whole and bool((self.numerator % 1 == 0).all()) else inf

    @property
    def independent(self) -> float:
        """(Σx)²/Σx²: how many clusters of one size would weigh as much."""
        number = effective_number(self.denominator)
        return number if self.support is None else min(number, 1 + self.support.df)

    @property
    def clusters(self) -> int:
        """How many clusters tell of the ratio."""
        return len(self.names) if self.support is None else self.support.clusters

    @property
    def even(self) -> float:
        """How many evenly weighted clusters tell as much as one of these: 1 where rows have one weight."""
        return self.independent / len(self.names) if self.size < self.n - 1e-9 else 1.0

    @property
    def extra(self) -> float:
        """The variance that is not between clusters."""
        return 0.0 if self.support is None else self.support.variance

    @property
    def df(self) -> float:
        """Degrees of freedom of the variance, at least 1."""
        strata = len(np.unique(self.strata)) if len(self.strata) else 1
        return max(1.0, self.independent - min(strata, max(1, len(self.strata) // 2)))

    @cached_property
    def influence(self) -> Floats:
        """How far each cluster (C,) moves the ratio, scaled so that the squares sum to its variance.

        The stratified jackknife: cluster c of stratum h (n_h clusters) is left out and the others of its
        stratum weigh n_h/(n_h − 1) as much. A stratum of one cluster is compared with the whole.
        """
        total, x = float(self.denominator.sum()), self.denominator
        if total <= 0:
            return np.zeros(len(x))
        residual = self.numerator - self.numerator.sum() / total * x
        sizes = np.bincount(self.strata)
        n = sizes[self.strata].astype(np.float64)
        alone = n == 1
        centre = [np.bincount(self.strata, weights=v)[self.strata] / n for v in (residual, x)]
        n = np.where(alone, np.maximum(len(x), 2), n)
        mean_x = np.where(alone, total / max(len(x), 1), centre[1])
        shifts = (residual - np.where(alone, 0.0, centre[0])) * n / (n - 1)
        rest = np.maximum(total - (x - mean_x) * n / (n - 1), 1e-300)
        pull: Floats = shifts / rest * np.sqrt((n - 1) / n * (1 - self.fraction))
        return pull

    @property
    def is_constant(self) -> bool:
        """Whether all clusters have one value, up to rounding."""
        largest = float(np.abs(self.numerator).max(initial=0.0))
        apart = self.numerator - (self.value or 0.0) * self.denominator
        return bool((np.abs(apart) <= _ROUNDING * largest).all())


def totals(
    numerator: NDArray[Any],
    denominator: NDArray[Any] | None = None,
    *,
    weights: Floats | None = None,
    strata: NDArray[Any] | None = None,
    clusters: NDArray[Any] | None = None,
    fraction: float | Floats = 0.0,
    bounds: Bounds = ANY,
) -> Totals:
    """Add up rows (n,) by cluster (each row one of its own where `clusters` is None).

    `fraction` is the share of the population's clusters that was drawn, in all or for each row's stratum: 0
    for one without end, 1 for a census. Rows with no denominator (x = 0) are left out. ValueError for what is
    not finite, a negative denominator, or a weight that is not positive.
    """
    y = np.asarray(numerator, dtype=np.float64)
    x = np.ones(len(y)) if denominator is None else np.asarray(denominator, dtype=np.float64)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(y).all() and np.isfinite(x).all() and (x >= 0).all()):
        raise ValueError("values must be finite, denominators not negative: leave missing ones out")
    if not (np.isfinite(w).all() and (w > 0).all()):
        raise ValueError("`weights` must be positive")
    is_used = x > 0
    share = np.broadcast_to(np.asarray(fraction, dtype=np.float64), y.shape)[is_used]
    y, x, w = y[is_used], x[is_used], w[is_used]
    names = np.arange(len(is_used))[is_used] if clusters is None else np.asarray(clusters)[is_used]
    unique, first, of_row = np.unique(names, return_index=True, return_inverse=True)
    of_stratum = np.zeros(len(y), dtype=np.int64)
    if strata is not None:
        of_stratum = np.unique(np.asarray(strata)[is_used], return_inverse=True)[1].astype(np.int64)
    return Totals(
        numerator=np.bincount(of_row, weights=w * y, minlength=len(unique)).astype(np.float64),
        denominator=np.bincount(of_row, weights=w * x, minlength=len(unique)).astype(np.float64),
        n=len(y),
        names=unique,
        strata=of_stratum[first],
        fraction=np.asarray(share[first], dtype=np.float64),
        size=effective_number(w),
        yes_no=bounds == UNIT and bool((x == 1).all() and np.isin(y, (0, 1)).all()),
        bounds=bounds,
    )


def effective_number(weights: Floats) -> float:
    """(Σw)²/Σw² (Kish 1965): how many even ones tell as much as those with the `weights` (n,); 0 of none."""
    largest = float(weights.max(initial=0.0))
    if largest <= 0:
        return 0.0
    shares = weights / largest  # squares of 1e160 are beyond all floats, those of 1e-170 are 0
    return float(shares.sum() ** 2 / (shares**2).sum())


@dataclass(frozen=True)
class Moments:
    """All that an interval rests on: a value with its error, and how much was seen.

    `census` says that the whole population was. `plain` rows are 0 or 1, independent and evenly weighted.
    """

    value: float
    error: float
    df: float
    n: int
    clusters: int
    size: float
    yes_no: bool
    plain: bool
    bounds: Bounds = ANY
    even: float = 1.0
    """How many evenly weighted clusters tell as much as one of these."""
    drawn: float = 0.0
    """The share of the population that was drawn."""
    events: float = inf
    """What was counted in all, where it is a count."""


def estimate(sample: Totals, error: float | None = None) -> Estimate:
    """The ratio of totals with its interval; see the module for the estimators and where they are from.

    `error` replaces the sample's own standard error where values were themselves estimated.
    """
    clusters = sample.clusters
    with np.errstate(over="ignore", invalid="ignore"):
        value = sample.value
        own = 0.0 if value is None else sqrt(float((sample.influence**2).sum()) + sample.extra)
    if value is None:
        why = "nothing to divide by" if sample.n else "no value"
        return Estimate(None, None, None, sample.n, clusters, reason=why)
    if not (isfinite(value) and isfinite(own)):
        return Estimate(None, None, None, sample.n, clusters, reason=TOO_LARGE)
    return with_interval(
        Moments(
            value=value,
            error=own if error is None else max(own, error),
            df=sample.df,
            n=sample.n,
            clusters=clusters,
            size=sample.size,
            yes_no=sample.yes_no,
            plain=_plain(sample),
            bounds=sample.bounds,
            even=sample.even,
            drawn=float(sample.fraction.mean()),
            events=sample.events,
        )
    )


def with_interval(moments: Moments) -> Estimate:
    """The value with its interval, or why there is none."""
    low, high, reason, size = _interval(moments)
    note = None if low is None or high is None else _doubt(moments, low, high)
    return Estimate(
        moments.value, low, high, moments.n, moments.clusters, size, moments.error, moments.df, reason, note
    )


def mean(
    values: NDArray[Any],
    *,
    weights: Floats | None = None,
    strata: NDArray[Any] | None = None,
    clusters: NDArray[Any] | None = None,
    fraction: float | Floats = 0.0,
    bounds: Bounds = ANY,
) -> Estimate:
    """The weighted mean of values (n,); a share where the bounds are 0 and 1 and no value lies between."""
    return estimate(
        totals(values, weights=weights, strata=strata, clusters=clusters, fraction=fraction, bounds=bounds)
    )


def share(
    yes: NDArray[Any],
    *,
    weights: Floats | None = None,
    strata: NDArray[Any] | None = None,
    clusters: NDArray[Any] | None = None,
    fraction: float | Floats = 0.0,
) -> Estimate:
    """The weighted share of rows (n,) that are 1."""
    return mean(yes, weights=weights, strata=strata, clusters=clusters, fraction=fraction, bounds=UNIT)


def ratio(
    numerator: NDArray[Any],
    denominator: NDArray[Any],
    *,
    weights: Floats | None = None,
    strata: NDArray[Any] | None = None,
    clusters: NDArray[Any] | None = None,
    fraction: float | Floats = 0.0,
    bounds: Bounds = ANY,
) -> Estimate:
    """Σwy/Σwx: the pooled ratio. `bounds` are those of y/x."""
    return estimate(
        totals(
            numerator,
            denominator,
            weights=weights,
            strata=strata,
            clusters=clusters,
            fraction=fraction,
            bounds=bounds,
        )
    )


def difference(first: Totals, second: Totals) -> Estimate:
    """The first ratio minus the second, of two samples of the same kind that may share clusters.

    A cluster in both moves both, so its two influences are subtracted before they are squared: paired where
    all clusters are shared, Welch's two samples where none is, and everything between, without leaving a row
    out. The intervals of the two samples joined where values are bounded on both sides, or on one side and
    nothing is paired (MOVER with their correlation; Newcombe 1998, Zou and Donner 2008): then no limit is
    impossible, and skewness is allowed for. Else Student's t with Satterthwaite's degrees of freedom, but
    none from a sample whose values are all alike, which has no interval either.
    """
    one, other = estimate(first), estimate(second)
    n, clusters = first.n + second.n, len(np.union1d(first.names, second.names))
    if one.value is None or other.value is None:
        place, side = ("first", one) if one.value is None else ("second", other)
        return Estimate(None, None, None, n, clusters, reason=f"{place} sample: {side.reason}")
    pulls = first.influence, second.influence
    error, df, covariance, shared = joint_error(first, second, pulls, (first.extra, second.extra))
    effect = one.value - other.value
    if not (isfinite(effect) and isfinite(error) and isfinite(df)):
        return Estimate(None, None, None, n, clusters, reason=TOO_LARGE)
    low, high, reason = None, None, _too_few(first, second)
    two_sided = isfinite(first.bounds[0]) and isfinite(first.bounds[1])
    skewed = not shared and isfinite(first.bounds[0]) and None not in (one.low, other.low)
    if reason is None and (two_sided or skewed):
        variances = [
            float((pull**2).sum()) + side.extra for pull, side in zip(pulls, (first, second), strict=True)
        ]
        alike = covariance / sqrt(_with_pseudo(variances[0], first) * _with_pseudo(variances[1], second))
        low, high = mover_limits(one, other, max(-1.0, min(1.0, alike)))
        reason = one.reason or other.reason
    elif reason is None and error <= _ROUNDING * max(map(_largest, (first, second))):
        reason = "no interval: all differences are equal"
    elif reason is None and (reason := _alike_side(one, other)) is None:
        low, high = effect - student(df) * error, effect + student(df) * error
    return Estimate(effect, low, high, n, clusters, error=error, df=df, reason=reason)


def _largest(sample: Totals) -> float:
    """How large values are, of clusters of usual size."""
    return float(np.abs(sample.numerator).max() / sample.denominator.mean())


def _alike_side(one: Estimate, other: Estimate) -> str | None:
    """Why one sample says nothing of the values that were not seen, so that no difference from it does."""
    for place, side in (("first", one), ("second", other)):
        if side.low is None and (side.error or 0.0) <= _ROUNDING * abs(side.value or 0.0):
            return f"{place} sample: {side.reason}"
    return None


class Joint(NamedTuple):
    """A difference's standard error with its degrees of freedom, the covariance of its sides, and how many
    clusters both hold."""

    error: float
    df: float
    covariance: float
    shared: int


def joint_error(
    first: Totals, second: Totals, pulls: tuple[Floats, Floats], extras: tuple[float, float]
) -> Joint:
    """What two samples' clusters, each of which moves its own side by `pulls` (C,), make of a difference;
    `extras` are the sides' variances that are not between clusters."""
    _, here, there = np.intersect1d(first.names, second.names, assume_unique=True, return_indices=True)
    # Shared clusters are subtracted before they are squared: of equal differences nothing is left.
    parts = (np.delete(pulls[0], here), np.delete(pulls[1], there), pulls[0][here] - pulls[1][there])
    with np.errstate(over="ignore"):
        covariance = float(pulls[0][here] @ pulls[1][there])
        variances = [float((part**2).sum()) for part in parts]
        variances[0] += extras[0]
        variances[1] += extras[1]
        df = _joint_df(first, second, variances, [len(part) for part in parts])
    return Joint(sqrt(sum(variances)), df, covariance, len(here))


def _too_few(first: Totals, second: Totals) -> str | None:
    for sample in (first, second):
        least = LEAST_SHARE if _plain(sample) else LEAST
        if sample.clusters < least:
            return f"too few for an interval: {sample.clusters} independent, {least} needed"
    return None


def _with_pseudo(variance: float, sample: Totals) -> float:
    """A variance with half a cluster at either bound: samples that agree throughout need not always do."""
    if not isfinite(sample.bounds[1]):
        return max(variance, 1e-300)
    return variance + 2 * _PSEUDO * ((sample.bounds[1] - sample.bounds[0]) / len(sample.names)) ** 2


def mover_limits(one: Estimate, other: Estimate, alike: float) -> tuple[float | None, float | None]:
    """MOVER: the distances to the opposite limits, joined by the law of cosines; `alike` is the correlation
    of the two values."""
    if None in (one.value, one.low, one.high, other.value, other.low, other.high):
        return None, None
    assert one.value is not None and one.low is not None and one.high is not None
    assert other.value is not None and other.low is not None and other.high is not None
    effect = one.value - other.value
    down, up = (
        (one.value - one.low, other.high - other.value),
        (one.high - one.value, other.value - other.low),
    )
    low, high = (sqrt(max(0.0, a**2 + b**2 - 2 * alike * a * b)) for a, b in (down, up))
    return effect - low, effect + high


def _joint_df(first: Totals, second: Totals, variances: list[float], sizes: list[int]) -> float:
    """Welch–Satterthwaite over the clusters of the first sample alone, of the second alone, and of both."""
    uneven = (
        first.independent / max(len(first.names), 1),
        second.independent / max(len(second.names), 1),
    )
    evenness = (uneven[0], uneven[1], min(uneven))
    total = sum(variances)
    if total <= 0:
        return max(1.0, min(first.df, second.df))
    # Shares of the variance, for squares of large variances are beyond all floats.
    spread = sum(
        (v / total) ** 2 / max(1.0, size * even - 1)
        for v, size, even in zip(variances, sizes, evenness, strict=True)
    )
    return 1 / spread


def _plain(sample: Totals) -> bool:
    """Whether the rows are 0 or 1, independent and evenly weighted."""
    return sample.yes_no and len(sample.names) == sample.n and sample.size > sample.n - 1e-9


def _interval(moments: Moments) -> tuple[float | None, float | None, str | None, float | None]:
    """Low, high, why not, and the effective size where the values are bounded."""
    value, (lowest, highest) = moments.value, moments.bounds
    if moments.drawn == 1:
        return value, value, None, None
    if moments.clusters < (least := LEAST_SHARE if moments.plain else LEAST):
        return None, None, f"too few for an interval: {moments.clusters} independent, {least} needed", None
    reach = student(moments.df) * moments.error
    if isfinite(lowest) and isfinite(highest):
        size = _effective(moments)
        low, high = agresti_coull((value - lowest) / (highest - lowest), size)
        if low <= 0 and high >= 1:
            return None, None, f"too few for an interval: {moments.clusters} leave everything possible", size
        return lowest + low * (highest - lowest), lowest + high * (highest - lowest), None, size
    if moments.error <= _ROUNDING * abs(value) or value <= lowest:
        return (
            None,
            None,
            f"no interval: all {moments.clusters}{' clusters' * (moments.clusters < moments.n)} are alike, "
            "and nothing bounds the others",
            None,
        )
    if isfinite(lowest):
        return *_log_interval(value - lowest, reach, lowest, moments.events), None
    return max(lowest, value - reach), min(highest, value + reach), None, None


def _effective(moments: Moments) -> float:
    """The effective size, for a value within finite bounds."""
    lowest, highest = moments.bounds
    if moments.plain:
        return moments.n / (1 - moments.drawn)
    m, c = (moments.value - lowest) / (highest - lowest), moments.clusters * moments.even
    pseudo = (1 - moments.drawn) * _PSEUDO * (m**2 + (1 - m) ** 2) / c**2
    shrunk = (c * m + _PSEUDO) / (c + 2 * _PSEUDO)
    quantile = student(max(moments.size - 1, moments.df)) if moments.yes_no else Z
    variance = (moments.error / (highest - lowest) * student(moments.df) / quantile) ** 2 + pseudo
    size = shrunk * (1 - shrunk) / variance
    return min(size, moments.size / (1 - moments.drawn)) if moments.yes_no else size


def agresti_coull(value: float, size: float) -> tuple[float, float]:
    """The interval of a share of `size` > 0: Wilson's centre with the spread there (1998), cut at 0 and 1.

    It contains Wilson's, and unlike it does not fall below .93 for n of 10 and more.
    """
    total = size + Z * Z
    centre = (value * size + Z * Z / 2) / total
    half = Z * sqrt(centre * (1 - centre) / total)
    return max(0.0, centre - half), min(1.0, centre + half)


def _log_interval(
    distance: float, reach: float, lowest: float, events: float
) -> tuple[float | None, float | None, str | None]:
    """The interval of a value above its bound by `distance`, on the log scale."""
    relative = reach / distance
    upward = relative * (1 + relative / 2)
    if upward > log(WIDEST):
        return None, None, f"too few for an interval: it would reach beyond {WIDEST:g} times the value"
    share = exp(-relative)
    if events <= FEW_EVENTS:
        share = min(share, _garwood(events) / events)
    return lowest + distance * share, lowest + distance * exp(upward), None


def _garwood(events: float) -> float:
    """The exact lower limit of the mean of a Poisson count."""
    from scipy import special

    return float(special.gammaincinv(events, 0.025))


def _doubt(moments: Moments, low: float, high: float) -> str | None:
    """Why the interval may be too narrow: few events, few and skewed values, or values that are so alike that
    one which was not seen would leave it.

    By the rule of three, what one in n/3 is may be missing from n (Hanley and Lippman-Hand 1983).
    """
    (lowest, highest), spread = moments.bounds, moments.error * sqrt(moments.clusters)
    if moments.events <= FEW_EVENTS:
        return f"few events: {moments.events:.0f}"
    if isfinite(lowest) and highest == inf and moments.clusters <= _FEW and spread > moments.value - lowest:
        values = "clusters" if moments.clusters < moments.n else "values"
        return f"{moments.clusters} very uneven {values}: the largest may not be among them"
    if moments.yes_no or moments.drawn == 1 or not spread < _ALIKE * (highest - lowest) < inf:
        return None
    unseen = min(1.0, 3 / moments.clusters)
    shifts = [unseen * (bound - moments.value) for bound in moments.bounds]
    if all(abs(m) < _SHIFT * (highest - lowest) or low <= moments.value + m <= high for m in shifts):
        return None
    if moments.clusters < 6:
        return f"all alike: 3 in {moments.clusters} that are not, and were not seen, would move it further"
    return f"all alike: one in {1 / unseen:.0f} that is not, and was not seen, would move it further"
