"""How often a judge's sensitivity and the like are held by their intervals, and how often tests err, by
simulation.

    python benchmarks/validation_coverage.py [--samples 500] [--out PAGE]

Corpora of 4,000 units in trajectories of 8, whose prevalence, sensitivity (.7) and specificity (.97) vary
with an intraclass correlation of 0 or .3; 200 units are labelled: evenly, a third of them flagged ("by
judge"), by chance more where the judge flags ("uneven"), or whole trajectories. A cell is coverage / mean
width / undefined; the truth is that of the corpus.

The second table is of drift between two versions with the same rate, and of a judge that agrees with others
worse than a person does by the margin: how often each is found to differ, or to pass, at .05 (the last of
single units, as many as trajectories). The third is
of a judge asked three times that answers at random in a share of the units.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from coaudit.annotation.statistics import Ratings
from coaudit.annotation.statistics.agreement import agreement
from coaudit.annotation.statistics.confusion import confusion
from coaudit.annotation.statistics.intervals import Floats, Ints
from coaudit.annotation.statistics.validation import alternative_annotator_test, drift

sys.path.insert(0, str(Path(__file__).parent))
from tables import explained, mark, tabulate

N, SIZE, LABELLED = 4000, 8, 200
QUALITIES = ("sensitivity", "specificity", "ppv", "npv")
Found = list[tuple[bool, float] | None]


def shares(mean: float, icc: float, clusters: Ints, rng: np.random.Generator) -> Floats:
    """A probability for each unit, its trajectory's own."""
    if not icc:
        return np.full(len(clusters), mean)
    mass = 1 / icc - 1
    own: Floats = rng.beta(mean * mass, (1 - mean) * mass, int(clusters.max()) + 1)[clusters]
    return own


def flips(mean: float, icc: float, clusters: Ints, rng: np.random.Generator) -> Ints:
    return (rng.random(len(clusters)) < shares(mean, icc, clusters, rng)).astype(np.int64)


def sampled(design: str, judge: Ints, clusters: Ints, rng: np.random.Generator) -> tuple[Ints, Floats | None]:
    """The units drawn, and their weights where they differ."""
    if design == "whole":
        return np.flatnonzero(np.isin(clusters, rng.permutation(N // SIZE)[: LABELLED // SIZE])), None
    if design == "even":
        return rng.permutation(N)[:LABELLED], None
    if design == "by judge":
        flagged, others = (rng.permutation(np.flatnonzero(judge == label)) for label in (1, 0))
        some = min(len(flagged), LABELLED // 3)
        units = np.concatenate([flagged[:some], others[: LABELLED - some]])
        weight = np.where(judge == 1, len(flagged) / some, len(others) / (LABELLED - some))
        return units, weight[units]
    wish = np.where(judge == 1, 0.5, 0.1) * (1 + rng.random(N))
    inclusion = np.minimum(1, wish * LABELLED / wish.sum())
    units = np.flatnonzero(rng.random(N) < inclusion)
    return units, 1 / inclusion[units]


def qualities(design: str, prevalence: float, icc: float, samples: int) -> str:
    rng, clusters = np.random.default_rng(1), np.arange(N) // SIZE
    found: dict[str, Found] = {name: [] for name in QUALITIES}
    for _ in range(samples):
        truth = flips(prevalence, icc, clusters, rng)
        hit, alarm = flips(0.7, icc, clusters, rng), flips(0.03, icc, clusters, rng)
        judge = np.where(truth == 1, hit, alarm)
        units, weights = sampled(design, judge, clusters, rng)
        corpus = np.bincount(judge, minlength=2).astype(np.float64)
        within = clusters[units] if icc else None
        rows = confusion(judge[units], truth[units], ("no", "yes"), weights, within, corpus).classes[1]
        real = (
            judge[truth == 1].mean(),
            1 - judge[truth == 0].mean(),
            truth[judge == 1].mean(),
            1 - truth[judge == 0].mean(),
        )
        for name, value in zip(QUALITIES, real, strict=True):
            row = getattr(rows, name)
            inside = None if row.low is None else (bool(row.low <= value <= row.high), row.high - row.low)
            found[name].append(inside)
    cells = [cell(found[name]) for name in QUALITIES]
    return " | ".join([*cells, explained(cells, "few units of that kind are in the sample")])


def cell(found: Found) -> str:
    told = [one for one in found if one is not None]
    if not told:
        return "– / – / 1.00"
    held, width = np.mean(told, axis=0)
    shown = f"{held:.3f}{mark(float(held), len(told))}"
    return f"{shown} / {width:.2f} / {1 - len(told) / len(found):.2f}"


def drift_error(rate: float, icc: float, trajectories: int, size: int, samples: int) -> float:
    rng, clusters = np.random.default_rng(2), np.repeat(np.arange(trajectories), size)
    p_values = [
        drift(
            *(flips(rate, icc, clusters, rng) for _ in range(2)), positive=1, clusters=clusters
        ).rate.p_value
        for _ in range(samples)
    ]
    return float(np.mean([p is not None and p < 0.05 for p in p_values]))


def passing_error(icc: float, trajectories: int, size: int, samples: int) -> float:
    """People err in .1 of the units, a judge in .35: they agree with a third by .2 more often, the margin."""
    rng, clusters = np.random.default_rng(3), np.repeat(np.arange(trajectories), size)
    passed = []
    for _ in range(samples):
        truth = flips(0.3, icc, clusters, rng)
        people = np.stack([truth ^ flips(0.1, icc, clusters, rng) for _ in range(3)], axis=1)
        judge = truth ^ flips(0.35, icc, clusters, rng)
        found = alternative_annotator_test(judge, people, ("a", "b", "c"), positive=1, clusters=clusters)
        passed.append(found.annotators[0].p_value < 0.05)
    return float(np.mean(passed))


def never_better(units: int, samples: int) -> float:
    """Single units; in a tenth, the margin, the judge alone is wrong: differences at their most skewed."""
    rng, humans, passed = np.random.default_rng(5), np.zeros((units, 3), dtype=np.int64), []
    for _ in range(samples):
        judge = flips(0.1, 0, np.arange(units), rng)
        found = alternative_annotator_test(judge, humans, ("a", "b", "c"), positive=1, margin=0.1)
        passed.append(found.annotators[0].p_value < 0.05)
    return float(np.mean(passed))


def repeats(noise: float, prevalence: float, units: int, samples: int) -> str:
    """Flip rate: two answers differ where either is at random, 2pq of such pairs."""
    rng, found = np.random.default_rng(4), []
    pair = 1 - (1 - noise) ** 2
    truth = 1 - pair * 2 * prevalence * (1 - prevalence)
    for number in range(samples):
        base = rng.random((units, 1)) < prevalence
        answers = np.where(rng.random((units, 3)) < noise, rng.random((units, 3)) < prevalence, base).astype(
            np.int64
        )
        ratings = Ratings(answers, ("no", "yes"), ("1", "2", "3"))
        (row,) = agreement(ratings, ["percent_agreement"], resamples=1000, seed=number)
        found.append(
            (row.low <= truth <= row.high, row.high - row.low)
            if row.low is not None and row.high is not None
            else None
        )
    return cell(found)


def lines(samples: int) -> Iterator[str]:
    yield f"| sample | ICC | prevalence | {' | '.join(QUALITIES)} | too narrow because |"
    yield "|---|---|---|---|" + "---|" * len(QUALITIES)
    for design, icc, prevalence in product(
        ("even", "by judge", "uneven", "whole"), (0.0, 0.3), (0.02, 0.05, 0.2)
    ):
        yield f"| {design} | {icc} | {prevalence} | {qualities(design, prevalence, icc, samples)} |"
    yield ""
    tests = "alternative annotator test | judge never better, trajectories as units, margin .1"
    yield f"| ICC | trajectories | units in each | drift, rate .05 | rate .3 | {tests} |"
    yield "|---|---|---|---|---|---|---|"
    for icc, (trajectories, size) in product((0.0, 0.3), ((12, 10), (25, 8), (60, 5), (200, 4))):
        errors = [drift_error(rate, icc, trajectories, size, 4 * samples) for rate in (0.05, 0.3)]
        errors.append(passing_error(icc, trajectories, size, 4 * samples))
        errors.append(never_better(trajectories, 4 * samples))
        yield f"| {icc} | {trajectories} | {size} | {' | '.join(f'{error:.3f}' for error in errors)} |"
    yield ""
    yield "| units asked three times | answered at random | prevalence | flip rate | too narrow because |"
    yield "|---|---|---|---|---|"
    for units, noise, prevalence in product((40, 200), (0.02, 0.2), (0.05, 0.3)):
        shown = repeats(noise, prevalence, units, 3 * samples)
        why = explained([shown], "a flip or two in all; rows of so few say it")
        yield f"| {units} | {noise} | {prevalence} | {shown} | {why} |"


if __name__ == "__main__":
    tabulate(__doc__, "benchmarks/validation_coverage.py", lines)
