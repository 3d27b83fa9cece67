"""How often the 95 % intervals of corrected rates hold the corpus rate, by simulation.

    python benchmarks/rates_coverage.py [--samples 500] [--out PAGE]

Corpora of 2,000 units and a judge of the sensitivity and specificity shown; about n units are drawn for
people: evenly ("even"), by the judge's label ("by judge"), by that and another code's wishes ("uneven";
"unclear" where the judge finds .08 of the units so, "few unclear" where .02, of which half have the code),
evenly from trajectories of 8 ("clustered", intraclass correlation .2), whole trajectories ("whole";
"alike": intraclass correlation .8), or unevenly from them; a pilot and a second sample by the judge's label
("two samples"); ten of each of twenty tasks and no judge ("strata"), or by something that nearly tells the
code ("telling strata": .9 of the units that have it lie in one of two), of which .6 are labelled so far
("unfinished"), or of which half is asked about ("of a group"); half of them all the units of a part in which
the code is ten times as likely, the others evenly from the rest ("part whole").
The first table's people see what is so.

In the second table two people of sensitivity .7 and specificity .97 label; of a share of the units
(overlap) both do, of the others one. The truth is the label that they give on average, 0.7·p + 0.03·(1 −
p); where gold settles what they dispute, it is what is then settled; for the annotator model ("model": with
the judge, a third rater) it is what is so. Bias is relative to the truth; undefined is the share of samples
that give no interval. A setting that covers less than .93 is drawn four times as often, so that chance is
not taken for a fault.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np

from coaudit.annotation.statistics import Audit
from coaudit.annotation.statistics.annotators import dawid_skene
from coaudit.annotation.statistics.audit import UNCLEAR
from coaudit.annotation.statistics.estimators import ESTIMATORS
from coaudit.annotation.statistics.intervals import MISSING, Floats, Interval, Ints
from coaudit.annotation.statistics.rates import choose
from coaudit.pipeline.analyze.designs import Drawing
from coaudit.pipeline.analyze.designs import design as design_of

sys.path.insert(0, str(Path(__file__).parent))
from tables import LOWEST, explained, mark, tabulate

AGAIN = 4
N, SIZE = 2000, 8
SETTINGS = ((0.02, 0.7, 0.98), (0.05, 0.7, 0.97), (0.05, 0.95, 0.995), (0.2, 0.8, 0.9), (0.5, 0.8, 0.8))
DESIGNS = (
    *(
        "even",
        "by judge",
        "uneven",
        "uneven, unclear",
        "even, few unclear",
        "by judge, few unclear",
        "uneven, few unclear",
        "clustered, few unclear",
        "whole, few unclear",
        "two samples",
        "clustered",
        "whole",
        "whole, alike",
        "clustered uneven",
        "strata",
        "part whole",
    ),
    *("telling strata", "telling strata, unfinished", "telling strata, of a group"),
)
OTHERS = (
    *(("even", "ppi"), ("even", "rogan_gladen"), ("even", "human_only")),
    *(("by judge", "rogan_gladen"), ("uneven", "rogan_gladen")),
    *(("uneven", "hajek"), ("whole, alike", "hajek")),
)
Result = tuple[float, float | None, Interval]
"""The truth, the estimate and its interval."""


def corpus(
    prevalence: float, se: float, sp: float, correlation: float | None, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """What is so of each unit, and what the judge says; `correlation` is that of units of a trajectory."""
    like = 4.0 if correlation is None else 1 / correlation - 1
    chance = rng.beta(prevalence * like, (1 - prevalence) * like, N // SIZE)[np.arange(N) // SIZE]
    truth = (rng.random(N) < (prevalence if correlation is None else chance)).astype(np.int64)
    return truth, (rng.random(N) < np.where(truth == 1, se, 1 - sp)).astype(np.int64)


def drawn(
    design: str, truth: Ints, judge: Ints, n: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Ints]:
    """Which units, with what probability, from which strata."""
    inclusion: Floats = np.full(N, n / N)
    strata: Ints = np.zeros(N, dtype=np.int64)
    if "uneven" in design:
        other = np.where(rng.random(N) > 0.8, np.where(truth == 1, 0.3, 0.21), 0)
        wish = np.where(judge == 1, 0.6, 0.08) + other
        inclusion = np.minimum(1, wish * n / wish.sum())
        return (rng.random(N) < inclusion).astype(np.float64), inclusion, strata
    if design == "part whole":
        odds = np.where(truth == 1, 10.0, 1.0)
        inclusion = np.full(N, n / (2 * N - n))
        inclusion[rng.choice(N, n // 2, replace=False, p=odds / odds.sum())] = 1
        return (rng.random(N) < inclusion).astype(np.float64), inclusion, strata
    if design.startswith("whole"):
        units = np.isin(np.arange(N) // SIZE, rng.permutation(N // SIZE)[: n // SIZE])
        return units.astype(np.float64), inclusion, strata
    if design == "two samples":
        first, chance, _ = drawn("even", truth, judge, n // 2, rng)
        second, more, _ = drawn("by judge", truth, judge, n // 2, rng)
        everyone = np.ones(N, dtype=bool)
        both = [Drawing(one > 0, c, everyone, strata) for one, c in ((first, chance), (second, more))]
        joint = design_of(both, everyone).inclusion
        return ((first + second) > 0).astype(np.float64), np.where(np.isnan(joint), 1.0, joint), strata
    if design.startswith("telling strata"):
        strata = np.where(rng.random(N) < 0.9, truth, 1 - truth)
        taken = np.zeros(N)
        for stratum in (0, 1):
            own = np.flatnonzero(strata == stratum)
            size = min(len(own), max(2, round(n * len(own) / N)))
            taken[rng.permutation(own)[:size]] = 1
            inclusion[own] = size / len(own)
        if "unfinished" in design:
            taken[rng.random(N) < 0.4] = 0
        return taken, inclusion, strata
    if design == "strata" or design.startswith("by judge"):
        strata = (judge == 1).astype(np.int64) if design.startswith("by judge") else np.arange(N) % 20
        taken = np.zeros(N)
        for stratum in np.unique(strata):
            own = np.flatnonzero(strata == stratum)
            size = min(len(own), n // 3 if stratum else n - n // 3) if design != "strata" else n // 20
            taken[rng.permutation(own)[:size]] = 1
            inclusion[own] = size / len(own)
        return taken, inclusion, strata
    return np.isin(np.arange(N), rng.permutation(N)[:n]).astype(np.float64), inclusion, strata


def plain(
    design: str, asked: str | None, setting: tuple[float, float, float], n: int
) -> Callable[[int], Result]:
    """People who see what is so."""
    clustered = "clustered" in design or design.startswith("whole")
    correlation = (0.8 if "alike" in design else 0.2) if clustered else None
    rng = np.random.default_rng(1)

    def once(seed: int) -> Result:
        truth, judge = corpus(*setting, correlation, rng)
        if "few unclear" in design:
            half = np.where(truth == 1, 0.01 / truth.mean(), 0.01 / (1 - truth.mean()))
            judge[rng.random(N) < half] = UNCLEAR
        elif "unclear" in design:
            judge[rng.random(N) < 0.08] = UNCLEAR
        units, inclusion, strata = drawn(design, truth, judge, n, rng)
        some = rng.random(N) < (0.5 if "of a group" in design else 1)
        audit = Audit(
            np.where(units > 0, truth, MISSING)[some],
            None if "strata" in design else judge[some],
            inclusion[some],
            (np.arange(N) // SIZE)[some] if clustered else None,
            design=strata[some] if "strata" in design else None,
        )
        value, interval = ESTIMATORS[asked or choose(audit)[0]](audit, 1000, seed)
        return float(truth[some].mean()), value, interval

    return once


def labelled(design: str, kind: str, prevalence: float, overlap: float, n: int) -> Callable[[int], Result]:
    """Two people who err; `kind` is mean, adjudicated or model."""
    clustered, rng = "clustered" in design, np.random.default_rng(2)

    def once(seed: int) -> Result:
        so, judge = corpus(prevalence, 0.7, 0.97, 0.2 if clustered else None, rng)
        units, inclusion, _ = drawn(design, so, judge, n, rng)
        said = (rng.random((N, 2)) < np.where(so == 1, 0.7, 0.03)[:, None]).astype(np.int64)
        alone = rng.random(N) >= overlap
        said[alone, rng.integers(2, size=N)[alone]] = MISSING
        said[units == 0] = MISSING
        people = (said >= 0).sum(1)
        label = np.where(said >= 0, said, 0).sum(1) / np.maximum(people, 1)
        truth = float(np.where(so == 1, 0.7, 0.03).mean())
        if kind == "adjudicated":
            label, people = np.where(label == 0.5, so, label), np.where(label == 0.5, 0, people)
            truth = float(np.where(so == 1, 0.7**2 + 2 * 0.7 * 0.3, 0.03**2).mean())
        clusters = np.arange(N) // SIZE if clustered else None
        audit = Audit(np.where(units > 0, label, MISSING), judge, inclusion, clusters, people=people)
        if kind == "model":
            value, interval = dawid_skene(audit, said, with_judge=True, resamples=300, seed=seed)
            return float(so.mean()), value, interval
        value, interval = ESTIMATORS[choose(audit)[0]](audit, 1000, seed)
        return truth, value, interval

    return once


def line(once: Callable[[int], Result], samples: int, why: str) -> str:
    results = [once(number) for number in range(samples)]
    if (held := _held(results)) is not None and held < LOWEST:
        results += [once(number) for number in range(samples, AGAIN * samples)]
    told = _told(results)
    held = _held(results)
    if held is None:
        return "– | – | – | 1.00 | "
    truth, value, low, high = np.array(told, dtype=np.float64).T
    bias = float((value.mean() - truth.mean()) / truth.mean())
    shown = f"{held:.3f}{mark(held, len(told))}"
    cells = f"{shown} | {(high - low).mean():.3f} | {bias:+.3f} | {1 - len(told) / len(results):.2f}"
    return f"{cells} | {explained([shown], why)}"


def _told(results: list[Result]) -> list[tuple[float, float, float, float]]:
    return [
        (t, v, i.low, i.high)
        for t, v, i in results
        if v is not None and i.low is not None and i.high is not None
    ]


def _held(results: list[Result]) -> float | None:
    told = _told(results)
    return float(np.mean([low - 1e-9 <= t <= high + 1e-9 for t, _, low, high in told])) if told else None


WHY = {
    "ppi": "a normal interval, for comparison only: never chosen by itself",
    "rogan_gladen": "a normal interval, for comparison only: never chosen by itself",
    "model": "the samples that identify the model at all are those that happened to hold many",
    "whole": "few whole trajectories with a positive: a ratio of few clusters lies low",
    "whole, alike": "few whole trajectories with a positive: a ratio of few clusters lies low",
    "whole, few unclear": "few whole trajectories with a positive: a ratio of few clusters lies low",
    "clustered uneven": "few trajectories with a positive behind large weights",
    "two samples": "the pilot's rare positives weigh much more than the others",
    "uneven": "few positives behind large weights",
    "strata": "twenty small strata share one prior",
}


def _why(*of: str | None) -> str:
    known = (WHY[name] for name in of if name in WHY)
    return next(known, "few positives: the interval is of counts, which are coarse")


def rows(samples: int) -> Iterator[str]:
    head = "sample | estimator | prevalence | Se, Sp | n | coverage | width | bias | undefined"
    yield f"| {head} | too narrow because |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    chosen = [(design, None) for design in DESIGNS]
    for (design, asked), setting, n in product([*chosen, *OTHERS], SETTINGS, (80, 200)):
        shown = f"{design} | {asked or 'by design'} | {setting[0]} | {setting[1]}, {setting[2]} | {n}"
        yield f"| {shown} | {line(plain(design, asked, setting, n), samples, _why(asked, design))} |"
    for setting, n in product(((0.005, 0.7, 0.98), (0.02, 0.7, 0.98)), (20, 40)):
        for design in ("even", "by judge"):
            shown = f"{design}, few | by design | {setting[0]} | {setting[1]}, {setting[2]} | {n}"
            yield f"| {shown} | {line(plain(design, None, setting, n), samples, _why(design))} |"
    yield ""
    head = "sample | people's label | prevalence | overlap | n | coverage | width | bias | undefined"
    yield f"| {head} | too narrow because |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    kinds = [
        *product(
            ("even", "by judge", "uneven", "clustered"),
            ("mean",),
            (0.02, 0.05, 0.2),
            (0.0, 0.25, 0.5, 1.0),
            (200,),
        ),
        *product(("even", "clustered"), ("mean",), (0.02, 0.05, 0.2), (0.25, 1.0), (1000, N)),
        *product(("even", "by judge"), ("adjudicated",), (0.02, 0.05, 0.2), (1.0,), (200,)),
        *product(("even",), ("model",), (0.02, 0.05, 0.2), (0.5, 1.0), (200, 600)),
    ]
    for design, kind, prevalence, overlap, n in kinds:
        shown = f"{design} | {kind} | {prevalence} | {overlap} | {n}"
        once = labelled(design, kind, prevalence, overlap, n)
        yield f"| {shown} | {line(once, samples, _why(kind, design))} |"


if __name__ == "__main__":
    tabulate(__doc__, "benchmarks/rates_coverage.py", rows)
