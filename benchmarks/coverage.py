"""How often the 95 % intervals of agreement hold the truth, by simulation.

    python benchmarks/coverage.py [--samples 500] [--resamples 1000] [--only weighted] [--out PAGE]

A unit's true label is drawn from margins with the given prevalence (five labels: halving from one rare
label to the next); each rater sees it with probability √kappa and else answers from the margins, so that
Cohen's kappa is .6 for every pair. In clustered samples a trajectory has its own margins (Dirichlet,
intraclass correlation .15), its own kappa (Beta, mean .6) and a geometric number of units. The truth is the
coefficient of the pattern distribution itself.

Ratings may lack: with "overlap" each unit is rated by two of the raters, with "alone" the last one has
rated four times as many units by itself; "weighted" samples hold all units that the last rater flags and a
fifth of the others, with weights 1/π; of "uneven" ones π lies anywhere from .01 to 1. A cell is coverage /
mean width / bias. A setting in which any coefficient covers less than .93 is drawn four times as often, so
that chance is not taken for a fault.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from coaudit.annotation.statistics import Ratings
from coaudit.annotation.statistics import coefficients as formula
from coaudit.annotation.statistics.agreement import agreement
from coaudit.annotation.statistics.coefficients import Tally
from coaudit.annotation.statistics.intervals import MISSING, Floats, Ints

sys.path.insert(0, str(Path(__file__).parent))
from tables import LEGEND, LOWEST, explained, mark, put

KAPPA, INTRACLASS = 0.6, 0.15
AGAIN = 4
"""How often more samples are drawn where one coefficient covers less than it should."""
WANTED = (
    "percent_agreement",
    "cohen_kappa",
    "cohen_kappa_quadratic",
    "fleiss_kappa",
    "krippendorff_alpha",
    "gwet_ac1",
)


def margins(labels: int, prevalence: float) -> Floats:
    rare = 0.5 ** np.arange(labels - 1)
    return np.concatenate([[1 - prevalence], prevalence * rare / rare.sum()])


def pattern_probabilities(cells: Ints, base: Floats, own: Floats, kappa: Floats) -> Floats:
    """(trajectories, patterns), for each trajectory's margins `own` (trajectories, labels) and `kappa`."""
    sees = np.sqrt(kappa)[:, None]
    total = np.zeros((len(kappa), len(cells)))
    for label in range(len(base)):
        likelihood = own[:, label][:, None] * np.ones((1, len(cells)))
        for answers in cells.T:
            likelihood = likelihood * (sees * (answers == label) + (1 - sees) * base[answers])
        total += likelihood
    return total


def truth(cells: Ints, probabilities: Floats, labels: int) -> dict[str, float]:
    tally = Tally(cells, labels)
    counts = probabilities[None] * 1e9
    formulas = {
        "percent_agreement": formula.percent_agreement(counts, tally),
        "cohen_kappa": formula.cohen_kappa(
            counts, tally, (0, 1), formula.distance(np.arange(labels, dtype=float), 0)
        ),
        "cohen_kappa_quadratic": formula.cohen_kappa(
            counts, tally, (0, 1), formula.distance(np.arange(labels, dtype=float), 2)
        ),
        "fleiss_kappa": formula.fleiss_kappa(counts, tally),
        "krippendorff_alpha": formula.krippendorff_alpha(
            counts, tally, formula.distance(np.arange(labels, dtype=float), 0)
        ),
        "gwet_ac1": formula.gwet_ac1(counts, tally),
    }
    return {name: float(value[0]) for name, value in formulas.items()}


class Setting:
    """Where samples come from: `units` independent ones, or about as many in `trajectories`."""

    def __init__(
        self,
        labels: int,
        raters: int,
        prevalence: float,
        units: int,
        trajectories: int | None = None,
        design: str = "",
    ):
        self.labels, self.raters, self.units, self.trajectories = labels, raters, units, trajectories
        self.design = design
        self.prevalence = prevalence
        self.base = margins(labels, prevalence)
        self.cells = np.array(list(product(range(labels), repeat=raters)))
        if trajectories is None:
            self.mean = pattern_probabilities(self.cells, self.base, self.base[None], np.array([KAPPA]))[0]
        else:
            self.mean = self._own(200_000, np.random.default_rng(0)).mean(0)
        self.truth = truth(self.cells, self.mean, labels)

    def sample(self, rng: np.random.Generator) -> Ratings:
        names = tuple(str(k) for k in range(self.labels))
        raters = tuple("abc"[: self.raters])
        if self.design == "uneven":
            rows = rng.choice(len(self.cells), self.units, p=self.mean / self.mean.sum())
            return Ratings(self.cells[rows], names, raters, weights=1 / rng.uniform(0.01, 1, self.units))
        if self.design == "weighted":
            drawn = np.where(self.cells[:, -1] > 0, 1.0, 0.2)
            chance = self.mean * drawn
            rows = rng.choice(len(self.cells), self.units, p=chance / chance.sum())
            return Ratings(self.cells[rows], names, raters, weights=1 / drawn[rows])
        if self.design:
            alone = 4 * self.units if self.design == "alone" else 0
            rows = rng.choice(len(self.cells), self.units + alone, p=self.mean / self.mean.sum())
            matrix = self.cells[rows].copy()
            matrix[self.units :, :-1] = MISSING
            if self.design == "overlap":
                matrix[np.arange(self.units), rng.integers(self.raters, size=self.units)] = MISSING
            return Ratings(matrix, names, raters)
        if self.trajectories is None:
            rows = rng.choice(len(self.cells), self.units, p=self.mean / self.mean.sum())
            return Ratings(self.cells[rows], names, raters)
        sizes = rng.geometric(self.trajectories / self.units, self.trajectories)
        own = self._own(self.trajectories, rng)
        rows = np.concatenate([rng.choice(len(p), m, p=p / p.sum()) for p, m in zip(own, sizes, strict=True)])
        return Ratings(self.cells[rows], names, raters, clusters=np.repeat(np.arange(len(sizes)), sizes))

    def _own(self, trajectories: int, rng: np.random.Generator) -> Floats:
        own = rng.dirichlet(self.base * (1 / INTRACLASS - 1), trajectories)
        return pattern_probabilities(
            self.cells, self.base, own, rng.beta(8 * KAPPA, 8 - 8 * KAPPA, trajectories)
        )


def coverage(setting: Setting, samples: int, resamples: int, seed: int) -> dict[str, str]:
    """Of the samples that define a coefficient: how often the interval holds it, its width, the bias."""
    rng = np.random.default_rng(seed)
    held: dict[str, list[tuple[bool, float, float]]] = {name: [] for name in WANTED}
    for number in range(AGAIN * samples):
        if number == samples and not _doubtful(held):
            break
        rows = agreement(setting.sample(rng), WANTED, pairs=[(0, 1)], resamples=resamples, seed=number)
        for row in rows:
            if row.low is not None and row.high is not None:
                truth, value = setting.truth[row.coefficient], row.value or 0.0
                inside = row.low - 1e-9 <= truth <= row.high + 1e-9
                held[row.coefficient].append((inside, row.high - row.low, value - truth))
    return {name: _cell(values) for name, values in held.items() if values}


def _doubtful(held: dict[str, list[tuple[bool, float, float]]]) -> bool:
    return any(np.mean([one[0] for one in values]) < LOWEST for values in held.values() if values)


def _cell(values: list[tuple[bool, float, float]]) -> str:
    hit, width, bias = np.mean(values, axis=0)
    return f"{hit:.3f}{mark(hit, len(values))} / {width:.2f} / {bias:+.3f}"


def _why(setting: Setting) -> str:
    """What makes intervals of a setting too narrow, where they are."""
    if setting.trajectories and setting.trajectories <= 20:
        return "20 trajectories: their spread is known badly"
    if setting.units <= 100:
        return f"{setting.units} units: the draws lie too close around a skewed coefficient"
    return "few units with dissent under a rare label"


def settings() -> Iterator[tuple[Setting, str]]:
    """Every setting, and where its sample is from."""
    sizes = ((60, None, ""), (200, None, ""), (200, 20, ""), (300, 60, ""))
    lacking = (
        *((100, None, design) for design in ("overlap", "alone")),
        *((200, None, design) for design in ("weighted", "uneven")),
        (15, None, ""),
    )
    for labels, raters, prevalence, (units, trajectories, design) in (
        *product((2, 5), (2, 3), (0.05, 0.1, 0.3, 0.5), sizes),
        *product((2, 5), (3,), (0.05, 0.2), lacking),
    ):
        where = f"{units} units" + (f" in {trajectories} trajectories" if trajectories else "")
        where += f", {design}" if design else ""
        yield Setting(labels, raters, prevalence, units, trajectories, design), where


def rows(samples: int, resamples: int, only: str) -> Iterator[str]:
    """The table, line by line."""
    yield f"| labels | raters | prevalence | sample | {' | '.join(WANTED)} | too narrow because |"
    yield "|---|---|---|---|---|" + "---|" * len(WANTED)
    for setting, where in settings():
        if only in where:
            result = coverage(setting, samples, resamples, 1)
            cells = [result.get(name, "undefined") for name in WANTED]
            shown = f"{setting.labels} | {setting.raters} | {setting.prevalence} | {where}"
            yield f"| {shown} | {' | '.join(cells)} | {explained(cells, _why(setting))} |"


def options_of(description: str, *, samples: int, resamples: int) -> argparse.Namespace:
    """What a benchmark of intervals is run with."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=samples)
    parser.add_argument("--resamples", type=int, default=resamples)
    parser.add_argument("--only", default="", help="settings of which a row names this")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def main() -> None:
    options = options_of(__doc__ or "", samples=500, resamples=1000)
    lines = []
    for line in rows(options.samples, options.resamples, options.only):
        lines.append(line)
        print(line, flush=True)
    if options.out:
        command = f"python benchmarks/coverage.py --samples {options.samples}"
        put(options.out, f"{command} --resamples {options.resamples}", "\n".join(lines), LEGEND)


if __name__ == "__main__":
    main()
