"""How often the 95 % intervals of means and of shares of five labels hold the corpus value, by simulation.

    python benchmarks/coverage_labels.py [--samples 300] [--out PAGE]

Corpora of 2,000 units with the labels 1 to 5, even (a fifth each), high (.02, .03, .1, .25, .6), middle (.05,
.2, .5, .2, .05) or falling (.8, .1, .05, .03, .02); a judge that is right of .7 of the units and else one
label off, or mild: right of .5, and mostly above. About n units are drawn for people: evenly ("even"; "few
unclear" where the judge finds .02 of the units so), as many of each of the judge's labels ("by judge"), with
chances from .02 to 1 ("uneven"), evenly from trajectories of 8 ("clustered", intraclass correlation .2) or
whole trajectories; "alone" is without a judge. People see the label, or two of them ("two people") say
another one in a fifth of the units each: then the truth is what they give on average. Values are on the scale
divided by its length; bias is relative to the truth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np

from coaudit.annotation.statistics import Audit
from coaudit.annotation.statistics.audit import UNCLEAR
from coaudit.annotation.statistics.estimators import ESTIMATORS
from coaudit.annotation.statistics.intervals import MISSING, Floats, Ints
from coaudit.annotation.statistics.rates import choose
from coaudit.pipeline.analyze.quantities import Quantity
from coaudit.schemas import Codebook

sys.path.insert(0, str(Path(__file__).parent))
from rates_coverage import SIZE, N, Result, line
from tables import tabulate

MARGINS = {
    "even": (0.2, 0.2, 0.2, 0.2, 0.2),
    "high": (0.02, 0.03, 0.1, 0.25, 0.6),
    "middle": (0.05, 0.2, 0.5, 0.2, 0.05),
    "falling": (0.8, 0.1, 0.05, 0.03, 0.02),
}
JUDGES = {"right": (0.7, 0.5), "mild": (0.5, 0.9)}
"""How often a judge is right, and of its errors the share above the truth."""
DESIGNS = (
    *("even", "even, few unclear", "by judge", "uneven", "clustered", "clustered, whole"),
    *("even, alone", "uneven, alone", "clustered, alone", "even, two people", "clustered, two people"),
)
WHY = "few units behind large weights, or few of the label: the interval is of counts, which are coarse"


def quantity(what: str) -> Quantity:
    """The mean of five labels, or the share of one."""
    level = "ordinal" if what == "mean" else "nominal"
    code = {"code": "c", "name": "c", "definition": "d"}
    content = {"name": "five", "title": "Five", "unit": "utterance", "level": level, "question": "Which?"}
    book = Codebook.model_validate({**content, "labels": list("12345"), "codes": [code]})
    return Quantity(book, None if what == "mean" else what)


def corpus(margins: Floats, clustered: bool, rng: np.random.Generator) -> Ints:
    chances = rng.dirichlet(4 * margins, N // SIZE) if clustered else np.tile(margins, (N // SIZE, 1))
    reached = rng.random(N)[:, None] > np.cumsum(chances, axis=1)[np.arange(N) // SIZE]
    labels: Ints = np.minimum(reached.sum(1), 4)
    return labels


def drawn(design: str, judge: Ints, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Which units (N,), and with what probability."""
    inclusion: Floats = np.full(N, n / N)
    if design == "by judge":
        taken, labels = np.zeros(N), np.unique(judge)
        for label in labels:
            own = np.flatnonzero(judge == label)
            size = min(len(own), n // len(labels))
            taken[rng.permutation(own)[:size]] = 1
            inclusion[own] = size / len(own)
        return taken, inclusion
    if design.startswith("uneven"):
        wish = np.exp(rng.uniform(np.log(0.02), 0, N))
        inclusion = np.minimum(1, wish * n / wish.sum())
        return (rng.random(N) < inclusion).astype(np.float64), inclusion
    if "whole" in design:
        units = np.isin(np.arange(N) // SIZE, rng.permutation(N // SIZE)[: n // SIZE])
    else:
        units = np.isin(np.arange(N), rng.permutation(N)[:n])
    return units.astype(np.float64), inclusion


def once(what: str, design: str, margins: str, judge: str, n: int) -> Callable[[int], Result]:
    of, chances, rng = quantity(what), np.array(MARGINS[margins]), np.random.default_rng(1)
    right, above = JUDGES[judge]

    def sample(seed: int) -> Result:
        truth = corpus(chances, "clustered" in design, rng)
        off = np.where(rng.random(N) < above, 1, -1)
        answers = np.clip(np.where(rng.random(N) < right, truth, truth + off), 0, 4)
        if "unclear" in design:
            answers[rng.random(N) < 0.02] = UNCLEAR
        units, inclusion = drawn(design, answers, n, rng)
        said, value = truth[None], of.places[truth]
        if "two people" in design:
            said = np.where(rng.random((2, N)) < 0.8, truth, rng.integers(5, size=(2, N)))
            value = 0.8 * of.places[truth] + 0.2 * of.places.mean()
        places = of.places[said]
        audit = Audit(
            np.where(units > 0, places.mean(0), MISSING),
            inclusion=inclusion,
            clusters=np.arange(N) // SIZE if "clustered" in design else None,
            spread=places.var(0) if of.is_mean else None,
        )
        if "alone" not in design:
            audit = of.judged(audit, answers)
        estimate, interval = ESTIMATORS[choose(audit)[0]](audit, 1000, seed)
        return float(value.mean()), estimate, interval

    return sample


def rows(samples: int) -> Iterator[str]:
    yield "| what | sample | labels | judge | n | coverage | width | bias | undefined | too narrow because |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for what, design, margins, judge in product(("mean", "2"), DESIGNS, MARGINS, JUDGES):
        if "alone" in design and judge != "right":
            continue
        large = (1000, N) if "two people" in design and judge == "right" else ()
        for n in (24, 80, 200, *large):
            shown = f"{what} | {design} | {margins} | {'–' if 'alone' in design else judge} | {n}"
            yield f"| {shown} | {line(once(what, design, margins, judge, n), samples, WHY)} |"


if __name__ == "__main__":
    tabulate(__doc__, "benchmarks/coverage_labels.py", rows)
