"""Differences between two samples: effect, interval, p-value, and what is corrected for in a family of tests.

The effect and its interval are those of `estimate.difference`: what is said of the two samples apart, minus
each other, clusters that both hold being paired. The test is `permutation.permuted`. Where no arrangement of
the data could reach the level nothing is tested, and nothing counts for the family (Tarone 1990).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from math import exp, isfinite, log, sqrt
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .estimate import LEAST_SHARE, UNIT, Estimate, Totals, difference, joint_error
from .intervals import Floats, Interval, Z
from .permutation import Arms, Test, arms, constant_test, permutation_test

Method = Literal["holm", "benjamini_hochberg", "benjamini_yekutieli"]
LEVEL = 0.05
SAME = "nothing to test"
"""What a reason has where no arrangement of two samples gives a difference."""
DRAWS = (1_999, 19_999, 199_999)
"""Random arrangements: the first for every test, the next ones where a decision hangs on more."""
_MANY, _ENOUGH = 5_000, 200  # clusters in all and in the smaller sample from which Student's t will do
_FEW = 5  # clusters below which arrangements of two samples tell little of how their spreads differ
_CLUSTERS = {"instance": ("instance", "instances"), "person": ("person", "people")}
_EXACT_BELOW = 25  # discordant pairs


@dataclass(frozen=True)
class Comparison:
    """`effect` is the first value minus the second; None with a `reason` where there is none.

    `test` is the one whose p-value counts. `n` counts the values of both samples (of corrected rates
    people's labels), `sizes` those of each (None where both are of the same units), `left_out` the units that
    people found unclear or skipped in each, `pairs` the clusters (instances) that both hold and `alone` those
    that only the first and only the second does. `p_value` is two-sided, None with a `reason` where the data
    can't decide; `p_adjusted` is that within its family of `family` tests, once `adjust` has seen it.
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
    pairs: int = 0
    alone: tuple[int, int] = (0, 0)
    sizes: tuple[int, int] | None = None
    family: int | None = None
    draws: int = 0
    """Random arrangements that were looked at, also where another test's p-value is larger and counts."""
    left_out: tuple[int, int] = (0, 0)

    @property
    def better(self) -> bool:
        """Whether the first is higher, significantly so at .05 (adjusted where that was done)."""
        p = self.p_value if self.p_adjusted is None else self.p_adjusted
        return self.effect is not None and self.effect > 0 and p is not None and p < LEVEL

    def named(self, first: str, second: str) -> Comparison:
        """The same with a `reason` that calls the two samples by their names."""
        if self.reason is None:
            return self
        names = {"first": first, "second": second}
        reason = re.sub(r"\b(first|second) sample(?=:)", lambda place: names[place[1]], self.reason)
        return replace(self, reason=reason)

    def statement(
        self, what: str, first: str, second: str, *, noun: str = "", cluster: str = "instance"
    ) -> str:
        """The result in a sentence, for instance of `delivery_rate` between two conditions; `noun` says
        what n counts, if not values, and `cluster` what is paired."""
        reason = self.named(first, second).reason or ""
        if self.effect is None or self.first is None or self.second is None:
            return f"{what}: {first} and {second} can't be compared: {reason}."
        interval = ""
        if self.low is not None and self.high is not None:
            interval = f" [{_number(self.low)}, {_number(self.high)}]"
        n = self.n if self.sizes is None else f"{self.sizes[0]} + {self.sizes[1]}"
        result = (
            f"{what}: {_number(self.first)} ({first}) against {_number(self.second)} ({second}), "
            f"difference {_number(self.effect, '+')}{interval}, n={n}{noun and f' {noun}'}{self._omission}"
            f"{self._design(cluster)}"
        )
        if self.p_value is None:
            return f"{result}: no test, {reason}."
        result += f", {self.test}"
        p = self.p_value if self.p_adjusted is None else self.p_adjusted
        scope = "" if self.family is None else f" for {self.family} {'test' if self.family == 1 else 'tests'}"
        significance = f"p={self.p_value:.3g}" + (
            "" if self.p_adjusted is None else f", adjusted{scope} p={p:.3g}"
        )
        verdict = "significant at .05" if p < LEVEL else "not significant at .05: no difference was shown"
        if self._interval_holds_zero:
            unseen = " (the interval, which allows for values that were not seen, holds 0)"
            verdict += unseen if p < LEVEL else ""
        elif self.low is None and reason:
            verdict += f" ({reason})"
        elif self.low is not None and self.p_value < LEVEL <= p:
            verdict += " (the interval is that of this test alone)"
        return f"{result}, {significance}: {verdict}."

    @property
    def _interval_holds_zero(self) -> bool:
        """Whether the interval holds 0 though the test, before any correction, shows a difference."""
        if self.p_value is None or self.low is None or self.high is None:
            return False
        return self.p_value < LEVEL and self.low <= 0 <= self.high

    @property
    def _omission(self) -> str:
        if not any(self.left_out):
            return ""
        return f" ({self.left_out[0]:,} + {self.left_out[1]:,} unclear or skipped left out)"

    def _design(self, cluster: str) -> str:
        one, several = _CLUSTERS.get(cluster, (f"value of {cluster}", f"values of {cluster}"))
        if not self.pairs and cluster != "instance" and sum(self.alone) < self.n:
            return f" (of {self.alone[0]} + {self.alone[1]} {several})"
        if not self.pairs:
            return ""
        rest = f", {self.alone[0]} + {self.alone[1]} unpaired" if sum(self.alone) else ""
        return f" ({self.pairs} {several if self.pairs > 1 else one} paired{rest})"


def contrast(first: Totals, second: Totals, *, draws: int = DRAWS[0], seed: int = 0) -> Comparison:
    """Compare two samples of the same kind, paired in the clusters that both hold.

    The interval holds 0 wherever the test shows no difference; where samples are all alike it may hold 0
    beside a test that shows one, for it allows for values that were not seen: the statement says so.
    """
    delta = difference(first, second)
    if delta.value is None:
        return replace(_none("none", delta.n, delta.reason or "no value"), sizes=(first.n, second.n))
    sample = arms(first, second)
    test, result = _run_test(sample, first, second, delta, draws, seed)
    row = Comparison(
        test=test,
        first=first.value,
        second=second.value,
        effect=delta.value,
        low=delta.low,
        high=delta.high,
        p_value=result.p_value,
        n=delta.n,
        reason=delta.reason,
        pairs=sample.pairs,
        alone=sample.alone,
        sizes=(first.n, second.n),
        draws=result.draws,
    )
    if result.least >= LEVEL:
        row = replace(row, p_value=None, reason=_undecided_reason(sample, result.least))
    elif min(count + sample.pairs for count in sample.alone) < LEAST_SHARE:
        # One value against ten is the most extreme, and mid-p .045, in one sample of eleven.
        row = replace(row, p_value=None, reason=f"too few to decide: 1 independent, {LEAST_SHARE} needed")
    if row.low is None or row.high is None or (row.p_value is not None and row.p_value < LEVEL):
        return row
    return replace(row, low=min(row.low, 0.0), high=max(row.high, 0.0))


def untested_comparison(first: Totals, second: Totals, reason: str) -> Comparison:
    """The two values and their difference, and why there is no test of it."""
    n, sizes = first.n + second.n, (first.n, second.n)
    if first.value is None or second.value is None:
        return replace(_none("none", n, reason), sizes=sizes)
    effect = first.value - second.value
    return Comparison("none", first.value, second.value, effect, None, None, None, n, reason, sizes=sizes)


def _run_test(
    sample: Arms, first: Totals, second: Totals, delta: Estimate, draws: int, seed: int
) -> tuple[str, Test]:
    """What the p-value that counts is of, and the test.

    Arrangements are as if the values of both samples were spread alike. Where they need not be, the larger
    of their p-value and Welch's t's counts: of lopsided samples (5 normal values against 50 with a third of
    their standard deviation: .09 without, .05 with it), and where values were estimated from a part of the
    units, for arrangements take all clusters to tell of them. Of values with a bound it is that of
    `_on_scale`, of shares at theirs `_at_bound`.
    """
    effect, error, df = delta.value or 0.0, delta.error or 0.0, delta.df or 1.0
    smaller = min(count + sample.pairs for count in sample.alone)
    guards: list[tuple[float, str]] = []
    if not sample.yes_no and (on_scale := _on_scale(first, second)) is not None:
        guards = [(on_scale, f"Welch's t of {'logits' if isfinite(first.bounds[1]) else 'logs'}")]
    elif not sample.yes_no:
        few = _is_lopsided(sample) or first.support is not None or second.support is not None
        unequal = _welch(effect, error, df) if few and error > 0 else 0.0
        guards = [(unequal, "Welch's t"), (_at_bound(first, second), "Fisher, effective sizes")]
    if len(sample.label) > _MANY and smaller >= _ENOUGH and not sample.table:
        if first.is_constant or second.is_constant:
            name, outcome = constant_test(first, second)
        else:
            name, outcome = "Student's t", Test(_welch(effect, error, df), 0.0, 0)
    else:
        outcome = permutation_test(sample, draws, seed)
        exact = (
            ("McNemar, mid-p" if sample.pairs else "Fisher, mid-p") if sample.table else "permutation, exact"
        )
        name = f"permutation ({outcome.draws:,} draws)" if outcome.draws else exact
    p, name = max([(outcome.p_value, name), *guards], key=lambda one: one[0])
    return name, replace(outcome, p_value=p)


def _is_lopsided(sample: Arms) -> bool:
    """Whether two samples are of fewer than 5, or one of half as many again as the other."""
    few, many = sorted(count + sample.pairs for count in sample.alone)
    return few < _FEW or 2 * many >= 3 * few


def _on_scale(first: Totals, second: Totals) -> float | None:
    """The p-value of Welch's t on the log or logit scale (delta method); None without a bound, or at one.

    Of skewed values the mean goes with its error, so that t is far off where one sample is skewed and the
    other is not: 12 overdispersed counts against 60 of Poisson, of the same mean, differ at .05 in .13 of
    samples by arrangements and by t, in .06 on this scale. Where samples are alike little changes.
    """
    places, pulls, extras = [], [], []
    for sample in (first, second):
        value, (lowest, highest) = sample.value, sample.bounds
        if value is None or not isfinite(lowest) or not lowest < value < highest:
            return None
        below, above = value - lowest, highest - value
        places.append(log(below) - (log(above) if isfinite(above) else 0.0))
        slope = 1 / below + 1 / above
        pulls.append(sample.influence * slope)
        extras.append(sample.extra * slope**2)
    joint = joint_error(first, second, (pulls[0], pulls[1]), (extras[0], extras[1]))
    return _welch(places[0] - places[1], joint.error, joint.df) if joint.error > 0 else None


def _at_bound(first: Totals, second: Totals) -> float:
    """The chance that of what both samples have the one has none, where its mean lies at one of two bounds:
    that of Fisher's table of effective sizes. 0 elsewhere.

    Arrangements are as if clusters were spread alike. Of a share of .02 in both, 20 of 3 steps and 20 of 40
    differ at .05 in .28 of samples by arrangements: whenever the few steps hold none. So do eight values of
    which one in ten is .5 and eight that all are near .05, in .44. Steps of a pooled share have the other's
    intraclass correlation; of other values each tells as much as a yes or no, for one that was not seen may
    lie at the other bound.
    """
    from scipy import special

    if not all(map(isfinite, first.bounds)) or first.value is None or second.value is None:
        return 0.0
    lowest, highest = first.bounds
    shares = [(value - lowest) / (highest - lowest) for value in (first.value, second.value)]
    sides = zip(shares, (first, second), strict=True)
    (end, here), (place, there) = sorted(sides, key=lambda side: side[0] not in UNIT)
    if end not in UNIT or end == place:
        return 0.0
    own, other = _effective_sizes(here, there, place, highest - lowest)
    away = abs(place - end)
    if other > _MANY * own:  # where rounding would be all that is left of the table
        return float((1 - away) ** own)
    rest = other * (1 - away)
    return min(1.0, exp(float(special.betaln(other + 1, own) - special.betaln(rest + 1, own))))


def _effective_sizes(here: Totals, there: Totals, place: float, width: float) -> tuple[float, float]:
    """How many independent yes or no tell as much as a sample at a bound, and as the other, whose share is
    `place`."""
    spread, variance = place * (1 - place), float((there.influence**2).sum()) / width**2
    denominators = np.concatenate([here.denominator, there.denominator])
    counts = np.concatenate([here.numerator, there.numerator, denominators])
    if here.bounds != UNIT or denominators.max() <= 1 or (counts % 1).any():
        return here.independent, spread / variance if variance > 0 else there.independent
    rows = [float(side.denominator.sum()) for side in (here, there)]
    sizes = [n / side.independent for side, n in zip((here, there), rows, strict=True)]
    alike = 1.0
    if spread > 0 and sizes[1] > 1:
        alike = min(1.0, max(0.0, (variance * rows[1] / spread - 1) / (sizes[1] - 1)))
    own, other = (n / (1 + (size - 1) * alike) for n, size in zip(rows, sizes, strict=True))
    return own, other


def _welch(effect: float, error: float, df: float) -> float:
    from scipy import special

    return 2 * float(special.stdtr(df, -abs(effect) / error))


def _undecided_reason(sample: Arms, least: float) -> str:
    if least > 0.5 - 1e-9 and sample.observed == 0:
        return f"{SAME}: {'all values are the same' if any(sample.alone) else 'no pair differs'}"
    pairs = f"{sample.pairs} pair{'s' * (sample.pairs != 1)}"
    alone = f"{' + '.join(map(str, sample.alone))} {'unpaired ' if sample.pairs else ''}values"
    sizes = " and ".join([*([pairs] if sample.pairs else []), *([alone] if sum(sample.alone) else [])])
    return f"too few to decide: with {sizes} like these, no outcome would reach .05"


def contrast_all(
    samples: Sequence[tuple[Totals, Totals]],
    families: Sequence[Hashable] | None = None,
    method: Method = "holm",
    precomputed: Sequence[Comparison | None] | None = None,
) -> list[Comparison]:
    """Compare each pair of samples, corrected within its family (one for all where none is named).

    Tests whose decision hangs on the coarseness of a resampled p-value are drawn again with more.
    `precomputed` has rows that were tested otherwise and belong to the families as they are.
    """
    results = list(precomputed) if precomputed is not None else [None] * len(samples)
    members = list(families) if families is not None else [None] * len(samples)
    rows = [row or contrast(*pair) for row, pair in zip(results, samples, strict=True)]
    for draws in DRAWS[1:]:
        # One after the other where clusters lie alike, so that their arrangements are drawn once.
        for place in sorted(_open(rows, members, method), key=lambda place: arms(*samples[place]).layout):
            rows[place] = contrast(*samples[place], draws=draws)
    return adjust(rows, method, members)


def _open(rows: Sequence[Comparison], families: Sequence[Hashable], method: Method) -> list[int]:
    """The resampled tests whose threshold lies within three standard errors of their p-value."""
    items = []
    for name in dict.fromkeys(families):
        places = [place for place, family in enumerate(families) if family == name]
        ranking = sorted((rows[place].p_value, place) for place in places if rows[place].p_value is not None)
        for rank, (p, place) in enumerate(ranking):
            draws = rows[place].draws
            threshold = (
                LEVEL / (len(ranking) - rank) if method == "holm" else LEVEL * (rank + 1) / len(ranking)
            )
            if draws and p is not None:
                reach = 3 * sqrt(p * (1 - p) / draws) + 1 / draws
                if p - reach < threshold < p + reach:
                    items.append(place)
    return items


def mcnemar(first: Floats, second: Floats) -> Comparison:
    """Two yes/no outcomes (n,) of the same instances: only those that differ tell (McNemar 1947).

    Binomial below 25 discordant pairs, else χ² with continuity correction. The interval adds ½ to each of the
    four cells (Agresti and Min 2005), so it holds for few pairs too.
    """
    from scipy import special

    n = len(first)
    gains, losses = int(((first == 1) & (second == 0)).sum()), int(((first == 0) & (second == 1)).sum())
    discordant = gains + losses
    if discordant < _EXACT_BELOW:
        p = min(1.0, 2 * float(special.bdtr(min(gains, losses), discordant, 0.5))) if discordant else 1.0
    else:
        p = float(special.chdtrc(1, max(0, abs(gains - losses) - 1) ** 2 / discordant))
    more, less, total = gains + 0.5, losses + 0.5, n + 2
    centre = (more - less) / total
    half = Z * sqrt(more + less - (more - less) ** 2 / total) / total
    effect = (gains - losses) / n
    interval = Interval(max(-1.0, min(effect, centre - half)), min(1.0, max(effect, centre + half)))
    return _comparison(
        "McNemar, exact" if discordant < _EXACT_BELOW else "McNemar", first, second, interval, p, n
    )


def adjust(
    rows: Sequence[Comparison], method: Method = "holm", families: Sequence[Hashable] | None = None
) -> list[Comparison]:
    """The same rows with p-values adjusted within their families (one where none is named).

    Rows without a p-value are no part of a family.
    """
    members = list(families) if families is not None else [None] * len(rows)
    adjusted = list(rows)
    for name in dict.fromkeys(members):
        family = [
            (place, row.p_value)
            for place, row in enumerate(rows)
            if members[place] == name and row.p_value is not None
        ]
        values = adjusted_p_values([p for _, p in family], method)
        for (place, _), p in zip(family, values, strict=True):
            adjusted[place] = replace(rows[place], p_adjusted=p, family=len(family))
    return adjusted


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


def _comparison(
    test: str, first: NDArray[np.float64], second: Floats, interval: Interval, p: float, n: int
) -> Comparison:
    one, other = float(first.mean()), float(second.mean())
    return Comparison(test, one, other, one - other, interval.low, interval.high, p, n, interval.reason)


def _number(value: float, sign: str = "") -> str:
    """A number with three digits; one beyond 1e15, whose digits mean nothing, by its power of ten."""
    return f"{value:{sign}.6g}" if abs(value) >= 1e15 else f"{value:{sign}.3f}"


def _none(test: str, n: int, reason: str) -> Comparison:
    return Comparison(test, None, None, None, None, None, None, n, reason)
