"""How many units to label for the precision one wants."""

from __future__ import annotations

from bisect import bisect_left
from math import ceil, sqrt

from .intervals import PRIOR_MASS, Z


def units_for_kappa(half_width: float, prevalence: float, kappa: float = 0.6) -> int:
    """Units that two raters must both label for a 95 % interval of kappa ± `half_width`, two labels.

    ValueError for a kappa that needs none or that raters with this prevalence cannot have: 1, or −p/(1 − p)
    and less, p being that of the rarer label.

    From Bloch and Kraemer's (1989) large-sample variance. Half-width .10 at kappa .6 takes 246, 296, 705,
    1347 and 3281 units at prevalence .5, .3, .1, .05 and .02: some 65–70 positives once a code is rare.
    Where raters hardly differ, or few units have the code, it takes what the interval's prior needs, where
    that is more: 23 units for .97 ± .1 at prevalence .5 show one difference at the most, and ± .16.
    """
    fewest = most = _whole(_kappa_variance(prevalence, kappa) * (Z / half_width) ** 2)
    while kappa_half_width(most, prevalence, kappa) > half_width:
        most *= 2

    def suffices(units: int) -> bool:
        return kappa_half_width(units, prevalence, kappa) <= half_width

    return fewest + bisect_left(range(fewest, most), True, key=suffices)


def kappa_half_width(units: int, prevalence: float, kappa: float = 0.6) -> float:
    """The inverse: what so many units give. Below some 25 positives believe only an interval.

    The interval's is that of the posterior of the four patterns that two raters show, each expected number
    of units with its quarter of the prior.
    """
    differing, each = 2 * prevalence * (1 - prevalence) * (1 - kappa), PRIOR_MASS / 2
    total = units + PRIOR_MASS
    shrunk = (units * prevalence + each) / total
    beyond = 1 - (units * differing + each) / total / (2 * shrunk * (1 - shrunk))
    plain = _kappa_variance(prevalence, kappa) / units
    return Z * sqrt(max(plain, _kappa_variance(shrunk, beyond) / (total + 1)))


def units_for_rate(half_width: float, prevalence: float, corpus: int | None = None) -> int:
    """Units to label for a rate ± `half_width` by people alone, from a `corpus` of so many units.

    n₀ = z²p(1 − p)/h², or what Wilson's interval of that width needs where that is more: a half-width beyond
    a rare code's prevalence would take 8 units for .02 ± .1, whose interval is ± .17. Reduced to
    n₀/(1 + (n₀ − 1)/N) by the finite corpus. A good judge needs fewer.
    """
    _check(prevalence)
    spread = prevalence * (1 - prevalence)
    infinite = max(spread * (Z / half_width) ** 2, _wilson_units(half_width, spread))
    return _whole(infinite if corpus is None else infinite / (1 + (infinite - 1) / corpus))


def units_as_before(
    n: int, half_width: float, target: float, corpus: int | None = None, between_people: float = 0.0
) -> int:
    """Units to label in all for ± `target`, where `n` of them gave ± `half_width` and more are drawn and
    rated as they were: the variance goes with 1/n, of a rate of a finite `corpus` with 1/n − (1 − ρ)/N, ρ
    being the share of it that lies `between_people`.

    So a judge, strata and clusters are in it as far as they are in the interval. Of 40 simulated pilots of 30
    to 200 units the median half-width then was .96 to 1.12 of the target one (judges of unlike quality,
    clusters, rates of .05 and .3).
    """
    rest = 0.0 if corpus is None else (1 - between_people) / corpus
    return _whole(1 / (rest + max(0.0, 1 / n - rest) * (target / half_width) ** 2)) if half_width else n


def _wilson_units(half_width: float, spread: float) -> float:
    """The n at which Wilson's interval reaches so far: h²(1 + u)² = p(1 − p)u + u²/4 for u = z²/n."""
    square = half_width**2
    if square >= 0.25:
        return 1.0
    linear = spread - 2 * square
    u = (sqrt(linear**2 + 4 * (0.25 - square) * square) - linear) / (2 * (0.25 - square))
    return Z * Z / u


def _kappa_variance(prevalence: float, kappa: float) -> float:
    _check(prevalence)
    rarer = min(prevalence, 1 - prevalence)
    least = -rarer / (1 - rarer)
    if not least < kappa < 1:
        raise ValueError(f"kappa must lie between {least:.3g} (the least there is) and 1, got {kappa:g}")
    chance = 2 * prevalence * (1 - prevalence)
    return (1 - kappa) * ((1 - kappa) * (1 - 2 * kappa) + kappa * (2 - kappa) / chance)


def _check(prevalence: float) -> None:
    if not 0 < prevalence < 1:
        raise ValueError(f"`prevalence` must lie between 0 and 1, got {prevalence:g}")


def _whole(units: float) -> int:
    return ceil(units - 1e-9)
