"""Permutation tests of the difference between two samples' means or ratios, studentised.

Clusters that only one sample holds exchange their labels among each other; a cluster that both hold (an
instance that both conditions ran) exchanges its two parts. So paired samples are tested by flipping signs,
unpaired ones by two-sample permutation, and everything between by both at once. The statistic is the
difference over its standard error (`estimate.difference`), under which the test stays near its level even
where the samples differ in spread (Janssen 1997, Chung and Romano 2013).

Half of a cluster with the variance of all is added to either unpaired sample, so that a handful of equal
values is not taken for certain; where values are 0 or 1 the difference itself is the statistic, for it fixes
its error.

The p-value counts arrangements as extreme as the observed one half (mid-p; Lancaster 1961): without that,
yes/no values reject far below the level. All arrangements are looked at where there are few, or where the
values are 0 or 1 and only a count matters (Fisher's and McNemar's tables); else random ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import ceil, comb, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .estimate import UNIT, Totals
from .intervals import Floats

FEW = 20_000
"""Arrangements that are all looked at."""
_AT_ONCE = 400_000  # numbers in a block of arrangements
_TOGETHER = 8  # blocks that are drawn at once
_IN_CACHE = 16_000  # numbers of which many tables are made: larger ones are mapped and given back each time
_CACHE_BITS = 10_000_000  # bits of arrangements that are kept for other tests of the same clusters
_LAST_BITS = 40 * _CACHE_BITS  # bits of those that are kept until a test of other clusters
_SHARE, _LEAST = 0.05, 1e-16  # of a sample's sum: what one cluster may have for a power series, and its end
_TIE = 1e-9
_ROUNDING = 1e-12  # of the largest value: what differs by less may differ by rounding alone


@dataclass(frozen=True, eq=False)
class Arms:
    """Clusters (C,) of two samples: y and x (C, 2) of the part that goes with the label and of the other.

    `label` (C,) is whether the first part lies in the first sample. A cluster that only one sample holds has
    all in its first part; for one that both hold (`shared`) the label is true.
    """

    y: Floats
    x: Floats
    shared: NDArray[np.bool_]
    label: NDArray[np.bool_]
    yes_no: bool

    @property
    def alone(self) -> tuple[int, int]:
        """How many clusters only the first and only the second sample hold."""
        first = int((self.label & ~self.shared).sum())
        return first, int((~self.shared).sum()) - first

    @property
    def pairs(self) -> int:
        """How many clusters both samples hold."""
        return int(self.shared.sum())

    @property
    def table(self) -> bool:
        """Whether a table of yes and no says all: 0/1 values that are all paired, or none."""
        return self.yes_no and (not self.pairs or not sum(self.alone))

    @cached_property
    def noise(self) -> float:
        """The variance that half a cluster adds to either sample, where clusters are not all paired."""
        is_present = self.x > 0
        n = int(is_present.sum())
        if not sum(self.alone) or n < 2:
            return 0.0
        variance = float((self.residual[is_present] ** 2).sum()) / (n - 1) / (self.x.sum() / n) ** 2
        return float(variance * sum(0.5 / (count + self.pairs) ** 2 for count in self.alone))

    @cached_property
    def residual(self) -> Floats:
        """(C, 2) y less the ratio of all times x: nothing large is left to subtract."""
        rest: Floats = self.y - self.y.sum() / self.x.sum() * self.x
        return rest

    @cached_property
    def single(self) -> bool:
        """Whether each sample holds a single value of each cluster, and some clusters are in one alone: then
        `noise` is what rounding is small beside."""
        return sum(self.alone) > 0 and bool(np.isin(self.x, (0, self.x.max())).all())

    @cached_property
    def share(self) -> float:
        """What one cluster may have of a sample that has at least half of what is to be expected."""
        x, fewer = self.x[:, 0], min(self.alone)
        return 2 * float(x.max() / x.sum()) * len(x) / fewer if fewer else 1.0

    @cached_property
    def terms(self) -> int:
        """How many powers of that share 64 bits tell apart; 0 where clusters are paired or it is large."""
        return 0 if self.pairs or self.share > _SHARE else 2 + ceil(log(_LEAST) / log(self.share))

    @cached_property
    def powers(self) -> Floats:
        """(C, 3 terms) r², −2rx and x² of residuals r, times the powers of x over the largest."""
        r, x = self.residual[:, 0], self.x[:, 0]
        powers = (x[:, None] / x.max()) ** np.arange(self.terms)
        return np.hstack([part[:, None] * powers for part in (r * r, -2 * r * x, x * x)])

    @property
    def observed(self) -> float:
        """The statistic of the labels as they are, without its sign."""
        return abs(float(statistics(self, self.label[None])[0]))

    @property
    def layout(self) -> tuple[bytes, bytes]:
        """Where each cluster lies: tests of samples that lie alike draw the same arrangements."""
        return self.label.tobytes(), self.shared.tobytes()

    @property
    def arrangements(self) -> int:
        """How many ways there are to exchange labels."""
        first, second = self.alone
        return comb(first + second, first) << self.pairs


@dataclass(frozen=True)
class Test:
    """A two-sided p-value, the least that one can have, and how many arrangements were drawn (0: all)."""

    p_value: float
    least: float
    draws: int


def arms(first: Totals, second: Totals) -> Arms:
    """Join two samples by the names of their clusters."""
    names = np.union1d(first.names, second.names)
    y, x = np.zeros((len(names), 2)), np.zeros((len(names), 2))
    for column, sample in enumerate((first, second)):
        place = np.searchsorted(names, sample.names)
        y[place, column], x[place, column] = sample.numerator, sample.denominator
    label = x[:, 0] > 0
    is_paired = label & (x[:, 1] > 0)
    y[~label], x[~label] = y[~label][:, ::-1], x[~label][:, ::-1]
    one_each = bool(np.isin(x, (0, 1)).all())
    yes_no = one_each and bool(np.isin(y, (0, 1)).all()) and first.bounds == UNIT
    if not yes_no:
        return Arms(*_without_unit(y, x), is_paired, label, yes_no)
    return Arms(y, x, is_paired, label, yes_no)


def _without_unit(y: Floats, x: Floats) -> tuple[Floats, Floats]:
    """The same up to powers of 2, which change no digit: x up to 1 or so, and y as far from their ratio.

    What is studentised has no unit, but squares of 1e160 are beyond all floats, and 1e-13 is taken for 0.
    """
    x = np.ldexp(x, -_exponent(x))
    y = np.ldexp(y, -_exponent(y))
    apart = y - y.sum() / max(float(x.sum()), 1e-300) * x
    return (np.ldexp(y, -_exponent(apart)) if np.abs(apart).max(initial=0.0) > _ROUNDING else y), x


def _exponent(values: Floats) -> int:
    """Of the largest: it is 1 or more, and less than 2, times 2 to that power."""
    return int(np.frexp(np.abs(values).max(initial=0.0))[1]) - 1


def permutation_test(sample: Arms, draws: int, seed: int = 0) -> Test:
    """The test over all arrangements if they are few or a table's, else over `draws` random ones."""
    if sample.table:
        result, weights, observed = _table(sample)
        return Test(_tail(result, weights, observed), _tail(result, weights, float(result.max())), 0)
    observed = sample.observed
    if sample.arrangements > FEW:
        return _random(sample, observed, draws, seed)
    result = np.abs(statistics(sample, _every(sample)))
    weights = np.full(len(result), 1 / len(result))
    return Test(_tail(result, weights, observed), _tail(result, weights, float(result.max())), 0)


def constant_test(first: Totals, second: Totals) -> tuple[str, Test]:
    """The test of thousands of clusters where those of one sample have one value, and what it is called.

    Arrangements of so many take seconds, and the error of one sample is 0. The larger p-value counts of
    Student's t with the variance of both samples together, and of Fisher's table of how many clusters have
    another value than that one.
    """
    from scipy import special

    sample = arms(first, second)
    sides = [
        (sample.residual[sample.label, 0], sample.x[sample.label, 0]),
        (
            np.concatenate([sample.residual[~sample.label, 0], sample.residual[sample.shared, 1]]),
            np.concatenate([sample.x[~sample.label, 0], sample.x[sample.shared, 1]]),
        ),
    ]
    places = [float(rest.sum() / x.sum()) for rest, x in sides]
    same = places[0] if first.is_constant else places[1]
    unlike = [int((np.abs(rest - same * x) > _TIE * np.abs(x)).sum()) for rest, x in sides]
    if not any(unlike):
        return "Fisher, mid-p", Test(0.5, 0.5, 0)
    sizes = [len(x) for _, x in sides]
    table = _fisher_table(sizes[0], sizes[1], sum(unlike), unlike[0])
    fisher, least = _tail(*table), _tail(*table[:2], float(table[0].max()))
    df = sum(sizes) - 2
    variance = sum(float((rest**2).sum()) for rest, _ in sides) / (df + 1)
    error = sqrt(variance * sum(len(x) / float(x.sum()) ** 2 for _, x in sides))
    t = 2 * float(special.stdtr(df, -abs(places[0] - places[1]) / error))
    return ("Fisher, mid-p", Test(fisher, least, 0)) if fisher >= t else ("Student's t", Test(t, least, 0))


def _tail(result: Floats, weights: Floats, observed: float) -> float:
    tie = result >= observed * (1 - _TIE) - 1e-12 if np.isfinite(observed) else np.isinf(result)
    beyond = tie & (result > observed * (1 + _TIE) + 1e-12) if np.isfinite(observed) else tie & False
    return float(weights[beyond].sum() + weights[tie & ~beyond].sum() / 2)


def _random(sample: Arms, observed: float, draws: int, seed: int) -> Test:
    """The observed arrangement counts as one of those drawn, so no p-value is 0.

    The least p-value is that of the most extreme arrangement drawn: where few values differ it may be common.
    """
    blocks = _blocks(sample, draws, seed)
    values = np.concatenate([np.abs(statistics(sample, labels)) for labels in blocks])
    pool = np.append(values, observed)
    least = _tail(pool, np.full(len(pool), 1 / len(pool)), float(pool.max()))
    return Test(min(1.0, (_tail(values, np.ones(draws), observed) + 1) / (draws + 1)), least, draws)


def statistics(sample: Arms, labels: NDArray[np.bool_]) -> Floats:
    """(B,) the difference over its standard error under each arrangement of labels (B, C); 0/0 is 0."""
    s = labels.astype(np.float64)
    if (sample.x[:, 0] == 1).all() and not sample.pairs:
        return _of_means(s, sample.y[:, 0] - sample.y[:, 0].mean(), sample.noise)
    if (sample.x == 1).all():
        return _of_signs(s, sample.y[:, 0] - sample.y[:, 1])
    if sample.single:
        return _of_singles(sample, s)
    if sample.terms and (ratios := _of_ratios(sample, s)) is not None:
        return ratios
    rows = max(1, _IN_CACHE // s.shape[1])
    return np.concatenate([_of_arms(sample, s[row : row + rows]) for row in range(0, len(s), rows)])


def _of_arms(sample: Arms, s: Floats) -> Floats:
    """The same for any two samples."""
    parts = [(values[:, 0], values[:, 1]) for values in (sample.y, sample.x)]
    y1, x1 = (other + s * (one - other) for one, other in parts)
    y2, x2 = (one + other - first for (one, other), first in zip(parts, (y1, x1), strict=True))
    effect, pull = np.zeros(len(s)), np.zeros_like(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        for sign, y, x in ((1, y1, x1), (-1, y2, x2)):
            sizes, clusters = x.sum(1), (x > 0).sum(1)
            ratio = y.sum(1) / sizes
            effect += sign * ratio
            scale = sign * np.sqrt(np.maximum(clusters - 1, 0) / clusters)
            pull += scale[:, None] * (y - ratio[:, None] * x) / np.maximum(sizes[:, None] - x, 1e-300)
    return _studentise(effect, (pull**2).sum(1) + sample.noise)


def _of_singles(sample: Arms, s: Floats) -> Floats:
    """The same where each sample holds one value of a cluster, by matrix products alone.

    A cluster that both hold pulls at both: the sum of (a - b)² is that of a², of b² and of -2 a b.
    """
    (y, other), both = (sample.residual / sample.x.max()).T, sample.shared.astype(np.float64)
    gains = s @ np.column_stack([1 - both, y - other, y**2 - other**2, both * (y - other)])
    first = np.array([sample.pairs, other.sum(), (other**2).sum(), (both * other).sum()]) + gains
    second = np.array([len(y), y.sum(), (y**2).sum(), (both * y).sum()]) - gains
    n, total, squares, shared = np.moveaxis(np.stack([first, second]), 2, 0)
    mean = total / n
    weight = np.where(n > 1, 1 / np.sqrt(n * np.maximum(n - 1, 1)), 0.0)
    product_sum = (both * y * other).sum() - (mean * shared[::-1]).sum(0) + sample.pairs * mean.prod(0)
    variance = (weight**2 * (squares - n * mean**2)).sum(0) - 2 * weight.prod(0) * product_sum
    return _studentise(mean[0] - mean[1], np.maximum(variance, 0) + sample.noise)


def _of_means(s: Floats, y: Floats, noise: float) -> Floats:
    """The same for two samples of single values (C,), by matrix products alone: Welch's t."""
    first, n = s.sum(1), s.shape[1]
    sums, squares = s @ y, s @ y**2
    effect, variance = np.zeros(len(s)), np.zeros(len(s))
    for sign, sizes, total, square in (
        (1, first, sums, squares),
        (-1, n - first, y.sum() - sums, (y**2).sum() - squares),
    ):
        effect += sign * total / sizes
        variance += (square - total**2 / sizes) / np.maximum(sizes - 1, 1) / sizes
    return _studentise(effect, np.maximum(variance, 0) + noise)


def _of_ratios(sample: Arms, s: Floats) -> Floats | None:
    """The same for two samples of ratios, by matrix products alone; None where one cluster has too much.

    The jackknife divides by (X − x)², X being the sum of a sample: that is Σ (k + 1) xᵏ/Xᵏ⁺².
    """
    r, x, k = sample.residual[:, 0], sample.x[:, 0], np.arange(sample.terms)
    sizes = s @ x
    if x.max() > sample.share * np.minimum(sizes, x.sum() - sizes).min():
        return None
    first, above, squares = s.sum(1), s @ r, s @ sample.powers
    effect, variance = np.zeros(len(s)), np.zeros(len(s))
    for sign, n, below, top, sums in (
        (1, first, sizes, above, squares),
        (-1, len(x) - first, x.sum() - sizes, r.sum() - above, sample.powers.sum(0) - squares),
    ):
        ratio = top / below
        effect += sign * ratio
        series = (k + 1) * (x.max() / below[:, None]) ** k
        of_r, of_both, of_x = ((part * series).sum(1) for part in np.split(sums, 3, axis=1))
        variance += (of_r + ratio * of_both + ratio**2 * of_x) / below**2 * (n - 1) / n
    return _studentise(effect, np.maximum(variance, 0) + sample.noise)


def _of_signs(s: Floats, differences: Floats) -> Floats:
    """The same for pairs of single values that differ by `differences` (C,): the paired t."""
    n = len(differences)
    effect = (2 * (s @ differences) - differences.sum()) / n
    variance = ((differences**2).sum() / n - effect**2) / max(n - 1, 1)
    return _studentise(effect, np.maximum(variance, 0))


def _studentise(effect: Floats, variance: Floats) -> Floats:
    small = np.abs(effect) < 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        result = effect / np.where(variance > 1e-24 * (1 + effect**2), np.sqrt(variance), 0.0)
    return np.where(small, 0.0, result)


def _every(sample: Arms) -> NDArray[np.bool_]:
    first, second = sample.alone
    swaps = np.array(list(product((True, False), repeat=sample.pairs)), dtype=bool).reshape(
        2**sample.pairs, -1
    )
    places = np.array(list(combinations(range(first + second), first)), dtype=np.int64)
    places = places.reshape(comb(first + second, first), first)
    apart = np.zeros((len(places), first + second), dtype=bool)
    np.put_along_axis(apart, places, True, axis=1)
    labels = np.zeros((len(swaps) * len(apart), len(sample.label)), dtype=bool)
    labels[:, sample.shared] = np.repeat(swaps, len(apart), axis=0)
    labels[:, ~sample.shared] = np.tile(apart, (len(swaps), 1))
    return labels


def _table(sample: Arms) -> tuple[Floats, Floats, float]:
    """How far apart samples are in each table with the same margins, the tables' chances, and how far in this
    one."""
    from scipy import special

    if sample.pairs:
        n, gains = (int((sample.y[:, 0] * sign > sample.y[:, 1] * sign).sum()) for sign in (-1, 1))
        n += gains
        k = np.arange(n + 1)
        chances = np.exp(-special.betaln(k + 1, n - k + 1) - log(n + 1) - n * log(2))
        return np.abs(2.0 * k - n), chances, abs(2.0 * gains - n)
    ones, own = int(sample.y[:, 0].sum()), int(sample.y[sample.label, 0].sum())
    first, second = sample.alone
    return _fisher_table(first, second, ones, own)


def _fisher_table(first: int, second: int, ones: int, own: int) -> tuple[Floats, Floats, float]:
    """The same of `ones` among two samples of so many, the first of which has `own`."""
    from scipy import special

    def log_choose(n: Any, k: Any) -> Any:
        return -special.betaln(k + 1, n - k + 1) - np.log(n + 1)

    k = np.arange(max(0, ones - second), min(first, ones) + 1)
    apart = np.abs(k / first - (ones - k) / second)
    ways = log_choose(first, k) + log_choose(second, ones - k)
    return apart, np.exp(ways - log_choose(first + second, ones)), float(apart[own - k[0]])


def _blocks(sample: Arms, draws: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    count = len(sample.label)
    bits = draws * count
    draw = _random_blocks if bits > _LAST_BITS else _last_blocks if bits > _CACHE_BITS else _cached_blocks
    for packed in draw(*sample.layout, draws, seed):
        yield np.unpackbits(packed, axis=1, count=count).view(np.bool_)


def _random_blocks(label: bytes, paired: bytes, draws: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Blocks (B, C / 8) of random arrangements, a bit a cluster."""
    arrangement, both = (np.frombuffer(one, dtype=np.bool_) for one in (label, paired))
    rng, first = np.random.default_rng(seed), int(arrangement[~both].sum())
    rows = max(1, _AT_ONCE // len(arrangement))
    for start in range(0, draws, _TOGETHER * rows):
        size = min(_TOGETHER * rows, draws - start)
        labels = np.empty((size, len(arrangement)), dtype=bool)
        labels[:, both] = _coins(rng, size, int(both.sum()))
        labels[:, ~both] = _subsets(rng, size, int((~both).sum()), first)
        packed = np.packbits(labels, axis=1)
        yield from (packed[row : row + rows] for row in range(0, size, rows))


def _coins(rng: np.random.Generator, size: int, n: int) -> NDArray[np.uint8]:
    """(B, n) of 0 and 1, either as likely."""
    width = (n + 7) // 8
    return np.unpackbits(_bytes(rng, size, width), axis=1, count=n)


def _subsets(rng: np.random.Generator, size: int, n: int, k: int) -> NDArray[np.bool_]:
    """(B, n) random choices of k among n, all as likely; in a fourth of the time of a shuffle.

    Each of n is chosen by itself first. Of those that are too many, or of the others where they are too few,
    random ones change sides until k are chosen: no step prefers one of n, so no choice is preferred.
    """
    labels = _bytes(rng, size, n) < round(256 * k / max(n, 1))
    excess = labels.sum(1, dtype=np.int64) - k
    rows = np.flatnonzero(excess)
    while len(rows):
        place = rng.integers(n, size=len(rows))
        is_surplus = labels[rows, place] == (excess[rows] > 0)
        changing, place = rows[is_surplus], place[is_surplus]
        labels[changing, place] ^= True
        excess[changing] -= np.sign(excess[changing])
        rows = rows[excess[rows] != 0]
    return labels


def _bytes(rng: np.random.Generator, size: int, n: int) -> NDArray[np.uint8]:
    """(B, n) random bytes."""
    return np.frombuffer(rng.bytes(size * n), dtype=np.uint8).reshape(size, n)


@lru_cache(maxsize=48)
def _cached_blocks(label: bytes, paired: bytes, draws: int, seed: int) -> tuple[NDArray[np.uint8], ...]:
    """The same, kept in a cache: most metrics of two groups are of the same clusters, and drawing takes ten
    times as long as what is computed from it.
    """
    return tuple(_random_blocks(label, paired, draws, seed))


@lru_cache(maxsize=1)
def _last_blocks(label: bytes, paired: bytes, draws: int, seed: int) -> tuple[NDArray[np.uint8], ...]:
    """The same of many draws: kept for the next test, which `contrast_all` has of the same clusters."""
    return tuple(_random_blocks(label, paired, draws, seed))
