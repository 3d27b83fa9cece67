"""Do metrics, comparisons, corrected comparisons and process metrics keep what they promise? By simulation.

    python benchmarks/coverage_metrics.py [--samples 1000] [--out docs/statistics.md]

Each row is a setting in which the truth is known: how often 95 % intervals hold it and how wide they are, how
often tests reject where nothing differs, and how often nothing could be said. Everything runs through the
functions that `coaudit metrics` and `coaudit compare` call. With `--out` the tables replace those between the
marks in that file. Intervals are drawn ten times as often as tests, for they cost little.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import exp, inf
from pathlib import Path

import numpy as np

from coaudit.annotation.statistics.audit import Audit
from coaudit.annotation.statistics.comparisons import Comparison, contrast, contrast_all
from coaudit.annotation.statistics.corrected import corrected
from coaudit.annotation.statistics.estimate import ANY, UNIT, Bounds, Estimate, Totals, estimate, totals
from coaudit.annotation.statistics.intervals import MISSING, Floats, Ints
from coaudit.pipeline.analyze.counts import BY_SAMPLE, BY_SHARE, Counts, Process, standing_of
from coaudit.pipeline.analyze.entropy import entropy, expected
from coaudit.pipeline.analyze.process import events

sys.path.insert(0, str(Path(__file__).parent))
from tables import LEGEND, explained, mark, put

Rng = np.random.Generator
Draw = Callable[[Rng, int], Floats]
COUNT: Bounds = (0.0, inf)
DRAWS = 499
"""Arrangements a test, in place of 1,999: enough to see how often p < .05."""
LIKERT = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0.02, 0.03, 0.1, 0.35, 0.5])


def bernoulli(p: float) -> Draw:
    return lambda rng, n: np.where(rng.random(n) < p, 1.0, 0.0)


VALUES: dict[str, tuple[Draw, float, Bounds]] = {
    "0/1, .03": (bernoulli(0.03), 0.03, UNIT),
    "0/1, .1": (bernoulli(0.1), 0.1, UNIT),
    "0/1, .5": (bernoulli(0.5), 0.5, UNIT),
    "0 … 1, uniform": (lambda rng, n: rng.random(n), 0.5, UNIT),
    "0 … 1, nine in ten are 0": (lambda rng, n: (rng.random(n) < 0.1) * rng.random(n), 0.05, UNIT),
    "0 … 1, skewed (Beta(.3, 3))": (lambda rng, n: rng.beta(0.3, 3, n), 1 / 11, UNIT),
    "0 … 1, .8 ± .02, one in ten is 0": (
        lambda rng, n: np.where(rng.random(n) < 0.1, 0, np.clip(rng.normal(0.8, 0.02, n), 0, 1)),
        0.72,
        UNIT,
    ),
    "1 … 5, mostly 4 and 5": (
        lambda rng, n: rng.choice(LIKERT[0], n, p=LIKERT[1]),
        float(LIKERT[0] @ LIKERT[1]),
        (1.0, 5.0),
    ),
    "counts, Poisson .3": (lambda rng, n: rng.poisson(0.3, n).astype(np.float64), 0.3, COUNT),
    "counts, overdispersed": (
        lambda rng, n: rng.poisson(rng.gamma(0.5, 4, n)).astype(np.float64),
        2.0,
        COUNT,
    ),
    "times, exponential": (lambda rng, n: rng.exponential(1, n), 1.0, COUNT),
    "times, lognormal(1)": (lambda rng, n: rng.lognormal(0, 1, n), exp(0.5), COUNT),
    "any, normal": (lambda rng, n: rng.normal(0, 1, n), 0.0, ANY),
}
"""Name -> how values are drawn, their mean, and the bounds that the metric declares."""


WHY = {
    "0 … 1, .8 ± .02, one in ten is 0": "a sample without the rare value can't know of it, and is noted",
    "counts, Poisson .3": "few events in all: such rows are noted, and most have no interval",
    "times, lognormal(1)": "the largest times are not in a small sample: very uneven values are noted",
    "0/1, .1": "two of five exclude a share of .1, which gives them in .08 of samples",
    "effective_confirmations": "few units are rated in few sessions",
    "initiative_entropy": "unrated units are taken to be like what others did, which levels sessions: noted",
}
"""Setting -> what makes its intervals too narrow."""


def alone(values: Floats, bounds: Bounds) -> Totals:
    return totals(values, bounds=bounds)


def weighted(rng: Rng, draw: Draw, n: int, bounds: Bounds) -> Totals:
    """Design weights from 1 to 5 that have nothing to do with the values."""
    return totals(draw(rng, n), weights=rng.uniform(1, 5, n), bounds=bounds)


def repeated(rng: Rng, p: float, instances: int, runs: int = 5, alike: float = 0.6) -> Totals:
    """`runs` yes/no results of each instance, with that intraclass correlation."""
    own = rng.beta(p * (1 / alike - 1), (1 - p) * (1 / alike - 1), instances)
    names = np.repeat(np.arange(instances), runs)
    return totals((rng.random(len(names)) < own[names]) * 1.0, clusters=names, bounds=UNIT)


def repeated_counts(rng: Rng, instances: int, runs: int = 5) -> Totals:
    """Overdispersed counts of mean 2, `runs` of each instance, with a level of its own."""
    names = np.repeat(np.arange(instances), runs)
    level = rng.normal(0, 0.7, instances)[names]
    return totals(rng.poisson(2 * np.exp(level - 0.245)) * 1.0, clusters=names, bounds=COUNT)


def pooled(rng: Rng, p: float, n: int, alike: float) -> Totals:
    """Failed steps over steps: trajectories of a geometric number of steps, each with its own rate."""
    steps = rng.geometric(0.1, n)
    own = rng.beta(p * (1 / alike - 1), (1 - p) * (1 / alike - 1), n)
    return totals(rng.binomial(steps, own) * 1.0, steps * 1.0, bounds=UNIT)


def intervals(samples: int) -> Iterator[tuple[str, ...]]:
    """Rows of the first table."""
    sizes = (2, 5, 10, 20, 40)
    settings: list[tuple[str, float, Callable[[Rng, int], Totals]]] = [
        (name, mean, lambda rng, n, draw=draw, bounds=bounds: alone(draw(rng, n), bounds))  # type: ignore[misc]
        for name, (draw, mean, bounds) in VALUES.items()
    ]
    settings += [
        ("0/1, .3, weights 1 … 5", 0.3, lambda rng, n: weighted(rng, bernoulli(0.3), n, UNIT)),
        ("uniform, weights 1 … 5", 0.5, lambda rng, n: weighted(rng, VALUES["0 … 1, uniform"][0], n, UNIT)),
        ("0/1, .1, five runs an instance, ICC .6", 0.1, lambda rng, n: repeated(rng, 0.1, n)),
        ("0/1, .5, five runs an instance, ICC .6", 0.5, lambda rng, n: repeated(rng, 0.5, n)),
        ("counts, five runs an instance", 2.0, repeated_counts),
        ("pooled ratio, .1, ICC .05", 0.1, lambda rng, n: pooled(rng, 0.1, n, 0.05)),
        ("pooled ratio, .1, ICC .3", 0.1, lambda rng, n: pooled(rng, 0.1, n, 0.3)),
        ("pooled ratio, .4, ICC .3", 0.4, lambda rng, n: pooled(rng, 0.4, n, 0.3)),
    ]
    for seed, (name, mean, draw) in enumerate(settings):
        rng = np.random.default_rng(seed)
        cells = [covered((estimate(draw(rng, n)) for _ in range(10 * samples)), mean) for n in sizes]
        yield (name, *cells, explained(cells, WHY.get(name, "")))


def covered(rows: Iterable[Estimate | Comparison], truth: float) -> str:
    """Coverage and median width of those that have an interval, and the shares that have none or a note."""
    held, widths, none, noted = [], [], 0, 0
    for row in rows:
        noted += isinstance(row, Estimate) and row.note is not None
        if row.low is None or row.high is None:
            none += 1
        else:
            held.append(row.low - 1e-12 <= truth <= row.high + 1e-12)
            widths.append(row.high - row.low)
    total = none + len(held)
    without = f", none {none / total:.2f}" if none else ""
    without += f", noted {noted / total:.2f}" if noted else ""
    if not held:
        return "none"
    share = float(np.mean(held))
    return f"{share:.3f}{mark(share, len(held))} ({np.median(widths):.2f}){without}"


def two(rng: Rng, draw: Draw, n: int, bounds: Bounds, paired: bool) -> tuple[Totals, Totals]:
    """Two samples of the same distribution; paired ones share instances that have levels of their own."""
    first, second, level = draw(rng, n), draw(rng, n), draw(rng, n)
    names = np.arange(2 * n)
    samples = (first, names[:n]), (second, names[n:])
    if paired and np.isin(first, (0, 1)).all():
        samples = (first, names[:n]), (np.where(rng.random(n) < 0.5, second, first), names[:n])
    elif paired:
        samples = ((first + level) / 2, names[:n]), ((second + level) / 2, names[:n])
    one, other = (totals(values, clusters=names, bounds=bounds) for values, names in samples)
    return one, other


TESTED = (
    "any, normal",
    "times, lognormal(1)",
    "0/1, .5",
    "0/1, .1",
    "counts, overdispersed",
    "0 … 1, nine in ten are 0",
)


def tests(samples: int) -> Iterator[tuple[str, ...]]:
    """Rows of the second table."""
    sizes = (2, 3, 4, 5, 8, 12, 20, 50, 200)
    for seed, name in enumerate(TESTED):
        draw, _, bounds = VALUES[name]
        for paired in (False, True):
            rng = np.random.default_rng(100 + seed)
            rows = [
                [contrast(*two(rng, draw, n, bounds, paired), draws=DRAWS) for _ in range(samples)]
                for n in sizes
            ]
            yield (f"{name}, {'paired' if paired else 'apart'}", *map(rejected, rows))
    for name, (spread, many) in LOPSIDED.items():
        rng = np.random.default_rng(300)
        cells = [rejected([_lopsided(rng, n, spread, many) for _ in range(samples)]) for n in sizes[2:-2]]
        yield (name, "–", "–", *cells, "–", "–")
    for name, arrange in {
        "five runs an instance, apart": _runs_apart,
        "half of the instances shared": _half,
    }.items():
        rng = np.random.default_rng(200)
        cells = [rejected([arrange(rng, n) for _ in range(samples)]) for n in sizes[1:-1]]
        yield (f"0/1, .3, {name}", "–", *cells, "–")


def rejected(rows: list[Comparison]) -> str:
    """How often p < .05, and how often the data could not decide."""
    share = float(np.mean([row.p_value is not None and row.p_value < 0.05 for row in rows]))
    undecided = np.mean([row.p_value is None for row in rows])
    sign = "▲" if share > 0.07 else "▽" if share < 0.03 else ""
    return f"{share:.3f}{sign}" + (f", undecided {undecided:.2f}" if undecided else "")


LOPSIDED = {
    "any, normal, against 50 of a third of its spread": (3.0, 50),
    "any, normal, against 50 of thrice its spread": (1 / 3, 50),
    "any, normal, against as many of a third of its spread": (3.0, 0),
}
"""Name -> standard deviation of n values, beside 1 of how many (0: n) others."""


def _lopsided(rng: Rng, n: int, spread: float, many: int) -> Comparison:
    others = many or n
    first = totals(rng.normal(0, spread, n), clusters=np.arange(n))
    return contrast(first, totals(rng.normal(0, 1, others), clusters=n + np.arange(others)), draws=DRAWS)


Sampled = Callable[[Rng, int], tuple[Floats, Floats]]
"""Numerators and denominators of n values."""


def _values(draw: Draw) -> Sampled:
    return lambda rng, n: (draw(rng, n), np.ones(n))


def _steps(length: Draw, share: float = 0.2, alike: float = 0.3) -> Sampled:
    """Failed steps, this share, of trajectories of this length; `alike` is the intraclass correlation."""
    spread = 1 / alike - 1

    def drawn(rng: Rng, n: int) -> tuple[Floats, Floats]:
        steps = np.ceil(length(rng, n)).astype(np.float64)
        failed = rng.binomial(steps.astype(np.int64), rng.beta(share * spread, (1 - share) * spread, n))
        return failed.astype(np.float64), steps

    return drawn


_POISSON = _values(lambda rng, n: rng.poisson(2, n).astype(np.float64))
_OVERDISPERSED = _values(VALUES["counts, overdispersed"][0])
_EVEN_TIMES = _values(lambda rng, n: rng.gamma(8, exp(0.5) / 8, n))
_LOGNORMAL = _values(VALUES["times, lognormal(1)"][0])
_SHORT = _steps(lambda rng, n: rng.geometric(1 / 3, n).astype(np.float64))
_LONG = _steps(lambda rng, n: rng.geometric(1 / 40, n).astype(np.float64))
_RARE_OF_3 = _steps(lambda _, n: np.full(n, 3.0), 0.02, 0.05)
_RARE_OF_40 = _steps(lambda _, n: np.full(n, 40.0), 0.02, 0.05)
_UNEVEN = _steps(lambda rng, n: rng.lognormal(2, 1.2, n))
_RARE_HALVES = _values(lambda rng, n: np.where(rng.random(n) < 0.1, 0.5, 0.0))
_EVENLY_LOW = _values(lambda rng, n: rng.normal(0.05, 0.02, n).clip(0, 1))
_RARE_SIXES = _values(lambda rng, n: np.where(rng.random(n) < 0.05, 6.0, 0.0))
_RARE_POISSON = _values(VALUES["counts, Poisson .3"][0])
_FAR, _NEAR = _values(lambda rng, n: rng.beta(0.3, 0.7, n)), _values(lambda rng, n: rng.beta(9, 21, n))

UNLIKE: dict[str, tuple[Sampled, Sampled, int, Bounds]] = {
    "counts, overdispersed against as many Poisson": (_OVERDISPERSED, _POISSON, 0, COUNT),
    "counts, overdispersed against 60 Poisson": (_OVERDISPERSED, _POISSON, 60, COUNT),
    "counts, Poisson against 60 overdispersed": (_POISSON, _OVERDISPERSED, 60, COUNT),
    "counts, one in twenty is 6, against as many Poisson": (_RARE_SIXES, _RARE_POISSON, 0, COUNT),
    "times, lognormal(1) against as many gamma(8)": (_LOGNORMAL, _EVEN_TIMES, 0, COUNT),
    "times, lognormal(1) against 60 gamma(8)": (_LOGNORMAL, _EVEN_TIMES, 60, COUNT),
    "0 … 1, near the ends against as many near the mean": (_FAR, _NEAR, 0, UNIT),
    "0 … 1, near the ends against 60 near the mean": (_FAR, _NEAR, 60, UNIT),
    "0 … 1, one in ten is .5, against as many near .05": (_RARE_HALVES, _EVENLY_LOW, 0, UNIT),
    "0 … 1, one in ten is .5, against 60 near .05": (_RARE_HALVES, _EVENLY_LOW, 60, UNIT),
    "pooled ratio, .2, of some 3 steps against as many of some 40": (_SHORT, _LONG, 0, UNIT),
    "pooled ratio, .2, of some 40 steps against 60 of some 3": (_LONG, _SHORT, 60, UNIT),
    "pooled ratio, .02, of 3 steps against as many of 40": (_RARE_OF_3, _RARE_OF_40, 0, UNIT),
    "pooled ratio, .2, of very uneven lengths": (_UNEVEN, _UNEVEN, 0, UNIT),
}
"""Name -> n values and how many (0: n) others of the same mean, with their bounds."""


PARTLY = (
    "counts, overdispersed against 60 Poisson",
    "0 … 1, one in ten is .5, against as many near .05",
    "pooled ratio, .02, of 3 steps against as many of 40",
)
"""Those that are also drawn with half of the n instances, or all, in both groups."""


def unlike(samples: int) -> Iterator[tuple[str, ...]]:
    """Rows of the third table: the same mean, but not the same distribution."""
    settings = [(name, 0.0, "") for name in UNLIKE]
    settings += [(name, 0.5, ", half of the n shared") for name in PARTLY]
    settings += [(name, 1.0, ", all of the n shared") for name in PARTLY]
    for name, share, words in settings:
        draw, other, many, bounds = UNLIKE[name]
        cells = []
        for n in (4, 5, 8, 12, 20, 50, 200):
            rng, rows = np.random.default_rng(400 + n), []
            for _ in range(samples):
                first = totals(*draw(rng, n), bounds=bounds)
                second = _renamed(totals(*other(rng, many or n), bounds=bounds), n - int(share * n))
                rows.append(contrast(first, second, draws=DRAWS))
            cells.append(rejected(rows))
        yield (name + words, *cells)


def _runs_apart(rng: Rng, n: int) -> Comparison:
    first, second = repeated(rng, 0.3, n), repeated(rng, 0.3, n)
    return contrast(first, _renamed(second, 1000), draws=DRAWS)


def _half(rng: Rng, n: int) -> Comparison:
    """Two arms of n instances each, of which half are the same; runs of one instance are alike."""
    level = rng.beta(0.9, 2.1, 2 * n)
    first = totals((rng.random(n) < level[:n]) * 1.0, clusters=np.arange(n), bounds=UNIT)
    own = np.arange(n // 2, n // 2 + n)
    second = totals((rng.random(n) < level[own]) * 1.0, clusters=own, bounds=UNIT)
    return contrast(first, second, draws=DRAWS)


def _renamed(sample: Totals, by: int) -> Totals:
    return totals(sample.numerator, sample.denominator, clusters=sample.names + by, bounds=sample.bounds)


def judged(rng: Rng, n: int, labels: int, p: float, specificity: float, design: str) -> Audit:
    """A condition whose judge has sensitivity .8, and people who checked about `labels` of its n units."""
    true = rng.random(n) < p
    judge = np.where(true, rng.random(n) < 0.8, rng.random(n) > specificity).astype(np.int64)
    inclusion: Floats = np.full(n, labels / n)
    if design == "half by judge label":
        for label in (0, 1):
            inclusion[judge == label] = min(1.0, labels / 2 / max((judge == label).sum(), 1))
    elif design == "uneven":
        inclusion = np.clip(rng.uniform(0.5, 2, n) * labels / n, 0, 1)
    human = np.where(rng.random(n) < inclusion, true.astype(np.int64), MISSING)
    return Audit(human, judge, inclusion)


def corrections(samples: int) -> Iterator[tuple[str, ...]]:
    """Rows of the fifth table: specificity .95 against .80, the same true rate."""
    for n, labels in ((100, 40), (300, 60), (300, 100), (1000, 100)):
        for p in (0.05, 0.1, 0.3):
            cells: list[str] = []
            for design in ("even", "half by judge label", "uneven"):
                rng = np.random.default_rng(n + labels)
                found: dict[str, list[Comparison]] = {"post_stratified": [], "ppi": []}
                raw = []
                for _ in range(samples):
                    arms = [judged(rng, n, labels, p, specificity, design) for specificity in (0.95, 0.80)]
                    for form, rows in found.items():
                        rows.append(
                            corrected(arms[0], arms[1], (np.arange(n), np.arange(n, 2 * n)), form=form)
                        )
                    flagged = [totals(arm.strata * 1.0, bounds=UNIT) for arm in arms]
                    raw.append(contrast(flagged[0], _renamed(flagged[1], n), draws=DRAWS))
                    if len(raw) > 100:
                        raw.pop()
                cells += [rejected(rows) for rows in found.values()]
                cells += [covered(found["post_stratified"], 0.0)] if design == "even" else []
                cells += [rejected(raw)] if design == "even" else []
            yield (f"{n} units, {labels} labelled, rate {p:g}", *cells)


RATES = ((0.05, 0.05), (0.05, 0.0), (0.1, 0.02), (0.2, 0.05), (0.5, 0.5))
"""The rates of two conditions that people alone labelled."""


def labelled(rng: Rng, labels: int, p: float, size: int) -> tuple[Audit, Ints]:
    """A condition of 1,000 units, `size` to a trajectory (intraclass correlation .2 within), of which people
    labelled some, and the trajectory of each."""
    clusters = np.arange(1000) // size
    chance = np.full(1000, p) if size == 1 else (rng.beta(4 * p, 4 * (1 - p), 1000) if p else np.zeros(1000))
    true = rng.random(1000) < (chance if size == 1 else chance[clusters])
    human = np.full(1000, MISSING)
    units = rng.permutation(1000)[:labels]
    human[units] = true[units]
    return Audit(human, clusters=None if size == 1 else clusters), clusters


def unjudged(samples: int) -> Iterator[tuple[str, ...]]:
    """Rows of the sixth table: people's labels alone, rates alike or not."""
    for size in (1, 10):
        for labels in (30, 60, 100):
            rng, cells = np.random.default_rng(labels + size), list[str]()
            for one, other in RATES:
                rows = []
                for _ in range(samples):
                    (first, here), (second, there) = (labelled(rng, labels, p, size) for p in (one, other))
                    rows.append(corrected(first, second, (here, there + 1000)))
                cells.append(covered(rows, one - other))
                cells += [rejected(rows)] if one == other else []
            yield (f"{labels} labels each" + (f", {size} units to a trajectory" if size > 1 else ""), *cells)


def sessions(rng: Rng, n: int, alike: float) -> Counts:
    """Sessions of an agent and a person with 1 to 8 utterances each, all rated."""
    units = rng.integers(1, 9, (n, 2)).astype(np.float64)
    chance = np.stack(
        [rng.beta(m * (1 / alike - 1), (1 - m) * (1 / alike - 1), n) for m in (0.5, 0.3)], axis=1
    )
    positives = rng.binomial(units.astype(np.int64), chance).astype(np.float64)
    human = np.tile([False, True], (n, 1))
    member = np.ones((n, 2), dtype=bool)
    return Counts(
        units=units,
        answers=units,
        positives=positives,
        weighted_answers=units,
        weighted_positives=positives,
        standing_answers=units,
        standing_positives=positives,
        member=member,
        human=human,
        has_messages=np.ones(n, dtype=bool),
        clusters=np.arange(n),
        beyond=np.zeros(n, dtype=bool),
        inclusion=np.full(n, np.nan),
        design=BY_SHARE,
    )


HALF = "units, half by judge label"


def rated_in_part(rng: Rng, whole: Counts, share: float, what: str) -> Counts:
    """The same where only a random share of the units, or of the sessions, has an answer, or of units as many
    that a judge (sensitivity .8, specificity .9) called positive as others."""
    units, positives = whole.units.astype(np.int64), whole.positives.astype(np.int64)
    if what == HALF:
        return _half_by_judge(rng, whole, share)
    if what == "sessions":
        answered = units * (rng.random((len(units), 1)) < share)
        found = np.where(answered > 0, positives, 0)
    else:
        answered = rng.binomial(units, share)
        found = rng.hypergeometric(positives, units - positives, answered)
    kept, yes = answered.astype(np.float64), found.astype(np.float64)
    return rated(whole, kept, yes, (kept, yes))


def _half_by_judge(rng: Rng, whole: Counts, share: float) -> Counts:
    cell = np.repeat(np.arange(whole.units.size), whole.units.ravel().astype(np.int64))
    first = np.cumsum(whole.units.ravel()) - whole.units.ravel()
    true = np.arange(len(cell)) - first[cell] < whole.positives.ravel()[cell]
    judge = rng.random(len(cell)) < np.where(true, 0.8, 0.1)
    half = share * len(cell) / 2
    chance = np.where(judge, half / max(judge.sum(), 1), half / max((~judge).sum(), 1)).clip(0, 1)
    took = rng.random(len(cell)) < chance

    def added(values: Floats) -> Floats:
        sums = np.bincount(cell, np.where(took, values, 0.0), whole.units.size)
        return sums.reshape(whole.units.shape).astype(np.float64)

    one, yes = np.ones(len(cell)), true.astype(np.float64)
    own = rated(whole, added(one), added(yes), (added(1 / chance), added(yes / chance)))
    session = cell // whole.units.shape[1]
    none = np.bincount(session, np.log1p(-np.minimum(chance, 1 - 1e-12)), len(whole.units))
    return replace(own, inclusion=-np.expm1(none), design=BY_SAMPLE)


def rated(whole: Counts, answered: Floats, positives: Floats, weighted: tuple[Floats, Floats]) -> Counts:
    """The same of which so many units are answered; `weighted` has Σ1/π, and that of positive ones."""
    standing = standing_of(float(whole.units.sum()), answered, positives, weighted)
    return replace(
        whole,
        answers=answered,
        positives=positives,
        weighted_answers=weighted[0],
        weighted_positives=weighted[1],
        standing_answers=standing[0],
        standing_positives=standing[1],
    )


def measured(metric: str, counts: Counts, definition: str = "paper") -> Process:
    return entropy(counts, definition) if metric == "initiative_entropy" else events(counts, metric)


def incomplete(samples: int) -> Iterator[tuple[str, ...]]:
    """Rows of the sixth table: the mean of infinitely many sessions is the truth."""
    many = sessions(np.random.default_rng(0), 200_000, 0.2)
    y, x = expected(many)
    truths = {
        "effective_confirmations": float(many.positives.sum(1).mean()),
        "initiative_entropy": y.sum() / x.sum(),
    }
    shares = [(share, "units") for share in (1.0, 0.95, 0.5, 0.2)]
    for share, what in (*shares, (0.5, "sessions"), (0.1, "sessions"), (0.5, HALF), (0.25, HALF)):
        where = f"{100 * share:.0f} % of the {what} rated"
        for metric, truth in truths.items():
            cells = []
            for n in (10, 20, 40, 200):
                rng = np.random.default_rng(n)
                rows = [
                    measured(metric, rated_in_part(rng, sessions(rng, n, 0.2), share, what)).estimate
                    for _ in range(samples // 2)
                ]
                bias = np.mean([row.value for row in rows if row.value is not None]) / truth - 1
                cells.append(f"{covered(rows, truth)}, bias {100 * bias:+.1f} %")
            yield (metric, where, *cells, explained(cells, WHY[metric]))


def tests_in_part(samples: int) -> Iterator[tuple[str, ...]]:
    """Rows of the seventh table: two groups that are alike, of which a rater went through these shares."""
    for metric in ("effective_confirmations", "initiative_entropy"):
        for first, second, what in (
            *((share, share, "units") for share in (1.0, 0.8, 0.5, 0.3, 0.2, 0.1)),
            (1.0, 0.5, "units"),
            (1.0, 0.25, "units"),
            (0.5, 0.5, "sessions"),
            (0.1, 0.1, "sessions"),
            (0.5, 0.5, HALF),
        ):
            cells = []
            for n in (20, 50, 200):
                rng = np.random.default_rng(n)
                rows = [_alike(rng, metric, n, (first, second), what) for _ in range(samples)]
                cells.append(rejected(rows))
            shares = f"{100 * first:.0f} % of the {what}"
            if second != first:
                shares += f", {100 * second:.0f} % of the other's"
            yield (metric, shares, *cells)


def _alike(rng: Rng, metric: str, n: int, shares: tuple[float, float], what: str) -> Comparison:
    rows = []
    for place, share in enumerate(shares):
        whole = sessions(rng, n, 0.2)
        own = rated_in_part(rng, replace(whole, clusters=whole.clusters + place * n), share, what)
        rows.append(measured(metric, own, "released"))
    one, other = (row.sample for row in rows)
    if one is None or other is None or any(row.untested for row in rows):
        return Comparison("none", None, None, None, None, None, None, 2 * n, "not tested")
    return contrast(one, other, draws=DRAWS)


def large_family(samples: int) -> Iterator[tuple[str, ...]]:
    """One difference of 5 standard deviations between 50 and 50, among tests of which no other has one."""
    for tests_ in (120, 1000):
        found, false = 0, 0
        repeats = max(3, samples // 200)
        for number in range(repeats):
            rng = np.random.default_rng(number)
            pairs = [two(rng, VALUES["any, normal"][0], 20, ANY, False) for _ in range(tests_ - 1)]
            pairs.append((totals(rng.normal(5, 1, 50)), _renamed(totals(rng.normal(0, 1, 50)), 50)))
            rows = contrast_all(pairs)
            significant = [row.p_adjusted is not None and row.p_adjusted < 0.05 for row in rows]
            found += significant[-1]
            false += any(significant[:-1])
        yield (str(tests_), f"{found} of {repeats}", f"{false} of {repeats}")


TABLES: tuple[tuple[str, str, tuple[str, ...], Callable[[int], Iterator[tuple[str, ...]]]], ...] = (
    (
        "Intervals of metrics",
        "Coverage of the 95 % interval, its median width, how often there is none, and how often the row has "
        "a note that it may be too narrow, by the number of trajectories, or of instances where these have "
        "several runs.",
        ("values", "n = 2", "5", "10", "20", "40", "too narrow because"),
        intervals,
    ),
    (
        "Type I error of compare",
        "How often p < .05 where both groups have the same distribution, by the number of values (or "
        "instances) in each, and how often the data could not decide.",
        ("values", "n = 2", "3", "4", "5", "8", "12", "20", "50", "200"),
        tests,
    ),
    (
        "Type I error of compare where groups are not alike",
        "The same with the same mean and another distribution.",
        ("values", "n = 4", "5", "8", "12", "20", "50", "200"),
        unlike,
    ),
    (
        "A large family",
        "A difference of 5 standard deviations between 50 and 50 among tests without one, after Holm.",
        ("tests", "it is found", "something else is"),
        large_family,
    ),
    (
        "Type I error of corrected comparisons",
        "The judge's specificity is .95 in one arm and .80 in the other, its sensitivity .8; the true rates "
        "are equal. Raw is how often comparing the judge's labels rejects.",
        (
            "arm",
            "even sample: post-stratified",
            "ppi",
            "coverage (width)",
            "raw",
            "half by judge label: post-stratified",
            "ppi",
            "uneven: post-stratified",
            "ppi",
        ),
        corrections,
    ),
    (
        "Comparisons of rates by people's labels alone",
        "Coverage of the 95 % interval of a difference (median width), and how often p < .05 where there is "
        "none, by the rates of the two groups.",
        ("labels", ".05, .05", "p < .05", ".05, 0", ".1, .02", ".2, .05", ".5, .5", "p < .05"),
        unjudged,
    ),
    (
        "Process metrics that are rated in part",
        "Coverage of the 95 % interval (median width) and bias of the value, by the number of sessions.",
        ("metric", "rated", "n = 10", "20", "40", "200", "too narrow because"),
        incomplete,
    ),
    (
        "Type I error of comparisons of process metrics that are rated in part",
        "How often p < .05 where two groups are alike, by the number of sessions in each.",
        ("metric", "rated", "n = 20", "50", "200"),
        tests_in_part,
    ),
)
MARKED = (
    "Of a rejection rate, ▲ marks more than .07 and ▽ less than .03: a cautious test. The standard error of "
    "a coverage of .95 is .0034 in the first table, .015 in the last, of a rejection rate of .05 .011."
)


def markdown(samples: int) -> str:
    parts = []
    for title, caption, columns, rows in TABLES:
        parts += [f"### {title}", "", caption, ""]
        parts += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        for row in rows(samples):
            parts.append("| " + " | ".join(row) + " |")
            print(parts[-1], flush=True)
        parts.append("")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    tables = markdown(options.samples)
    if options.out:
        command = f"python benchmarks/coverage_metrics.py --samples {options.samples}"
        put(options.out, command, tables, f"{LEGEND} {MARKED}")


if __name__ == "__main__":
    main()
