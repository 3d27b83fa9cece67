"""How often the 95 % intervals of agreement hold the truth on a scale, by simulation.

    python benchmarks/coverage_scales.py [--samples 300] [--resamples 600] [--only near] [--out PAGE]

Labels are ordinal. A rater sees the true one with probability √.6 and else is off by one (`near`: of labels
that are equally frequent), or answers from the margins (`anywhere`: of labels of which each is half as
frequent as the one before). A cell is coverage / mean width / bias. A setting in which any coefficient covers
less than .93 is drawn four times as often.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from coaudit.annotation.statistics import Ratings
from coaudit.annotation.statistics import coefficients as formula
from coaudit.annotation.statistics.coefficients import Tally
from coaudit.annotation.statistics.intervals import Floats, Ints

sys.path.insert(0, str(Path(__file__).parent))
from coverage import KAPPA, WANTED, Setting, coverage, options_of, pattern_probabilities
from tables import LEGEND, explained, put

WHY = {"near": "ordinal alpha lies low in few units", "anywhere": "few units have the farthest labels"}
RARE = 0.5
"""Share of all labels but the first where errors lie anywhere."""


class Scale(Setting):
    """Independent units on a scale, all rated by all raters."""

    def __init__(self, labels: int, raters: int, units: int, errors: str):
        super().__init__(labels, raters, RARE, units)
        if errors == "near":
            self.base = np.full(labels, 1 / labels)
            self.mean = _near(self.cells, labels)
        else:
            self.mean = pattern_probabilities(self.cells, self.base, self.base[None], np.array([KAPPA]))[0]
        tally, counts = Tally(self.cells, labels), self.mean[None] * 1e9
        squares = formula.distance(np.arange(labels, dtype=float), 2)
        ranks = formula.ordinal_distance(counts[0] @ tally.by_label)
        self.truth = {
            "percent_agreement": formula.percent_agreement(counts, tally)[0],
            "cohen_kappa": formula.cohen_kappa(
                counts, tally, (0, 1), formula.distance(np.arange(labels, dtype=float), 0)
            )[0],
            "cohen_kappa_quadratic": formula.cohen_kappa(counts, tally, (0, 1), squares)[0],
            "fleiss_kappa": formula.fleiss_kappa(counts, tally)[0],
            "krippendorff_alpha": formula.krippendorff_alpha(counts, tally, ranks)[0],
            "gwet_ac1": formula.gwet_ac1(counts, tally)[0],
        }

    def sample(self, rng: np.random.Generator) -> Ratings:
        names, raters = tuple(map(str, range(self.labels))), tuple("abc"[: self.raters])
        rows = rng.choice(len(self.cells), self.units, p=self.mean / self.mean.sum())
        return Ratings(self.cells[rows], names, raters, "ordinal")


def _near(cells: Ints, labels: int) -> Floats:
    """(patterns,) of raters who are off by one, to either side that there is."""
    sees = np.sqrt(KAPPA)
    said = np.zeros((labels, labels))
    for label in range(labels):
        beside = [other for other in (label - 1, label + 1) if 0 <= other < labels]
        said[label, label] = sees
        said[label, beside] = (1 - sees) / len(beside)
    chances: Floats = (said[:, cells].prod(2) / labels).sum(0)
    return chances


def settings() -> Iterator[tuple[int, int, int, str]]:
    """Labels, raters, units, errors."""
    for (labels, units), raters, errors in product(
        ((5, 25), (5, 60), (7, 100), (11, 60)), (2, 3), ("near", "anywhere")
    ):
        yield labels, raters, units, errors


def rows(samples: int, resamples: int, only: str) -> Iterator[str]:
    """The table, line by line."""
    yield f"| labels | raters | units | errors | {' | '.join(WANTED)} | too narrow because |"
    yield "|---|---|---|---|" + "---|" * (len(WANTED) + 1)
    for labels, raters, units, errors in settings():
        shown = f"{labels} | {raters} | {units} | {errors}"
        if only not in shown:
            continue
        result = coverage(Scale(labels, raters, units, errors), samples, resamples, 1)
        cells = [result.get(name, "undefined") for name in WANTED]
        why = explained(cells, WHY[errors])
        yield f"| {shown} | {' | '.join(cells)} | {why} |"


def main() -> None:
    options = options_of(__doc__ or "", samples=300, resamples=600)
    lines = []
    for line in rows(options.samples, options.resamples, options.only):
        lines.append(line)
        print(line, flush=True)
    if options.out:
        command = f"python benchmarks/coverage_scales.py --samples {options.samples}"
        put(options.out, f"{command} --resamples {options.resamples}", "\n".join(lines), LEGEND)


if __name__ == "__main__":
    main()
