"""How often the 95 % intervals of corrected rates hold the corpus rate, by simulation.

    python benchmarks/rates_coverage.py [--samples 500]

Corpora of 2,000 units and a judge of the sensitivity and specificity shown; about n units are drawn for
people: evenly ("even"), by the judge's label and another code's wishes ("uneven"), evenly from trajectories
of 8 ("clustered", intraclass correlation .2), whole trajectories ("whole"), or unevenly from them.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

from coaudit.annotation.statistics import Audit
from coaudit.annotation.statistics.estimators import ESTIMATORS
from coaudit.annotation.statistics.intervals import MISSING
from coaudit.annotation.statistics.rates import choose

N, SIZE = 2000, 8
SETTINGS = ((0.02, 0.7, 0.98), (0.05, 0.7, 0.97), (0.05, 0.95, 0.995), (0.2, 0.8, 0.9), (0.5, 0.8, 0.8))
DESIGNS = ("even", "uneven", "clustered", "whole", "clustered uneven")
CHOSEN = [(design, None) for design in DESIGNS]
OTHERS = [("even", "ppi"), ("even", "rogan_gladen"), ("even", "human_only"), ("uneven", "hajek")]


def corpus(design: str, prevalence: float, se: float, sp: float, n: int, rng: np.random.Generator) -> Audit:
    """An audit whose `score` carries the true labels."""
    clustered = design != "even" and design != "uneven"
    clusters = np.arange(N) // SIZE if clustered else None
    chance = rng.beta(prevalence * 4, (1 - prevalence) * 4, N // SIZE)[np.arange(N) // SIZE]
    truth = (rng.random(N) < (chance if clustered else prevalence)).astype(np.int64)
    judge = (rng.random(N) < np.where(truth == 1, se, 1 - sp)).astype(np.int64)
    inclusion = np.full(N, n / N)
    if "uneven" in design:
        other = np.where(rng.random(N) > 0.8, np.where(truth == 1, 0.3, 0.21), 0)
        wish = np.where(judge == 1, 0.6, 0.08) + other
        inclusion = np.minimum(1, wish * n / wish.sum())
        drawn = rng.random(N) < inclusion
    elif design == "whole":
        drawn = np.isin(np.arange(N) // SIZE, rng.permutation(N // SIZE)[: n // SIZE])
    else:
        drawn = np.isin(np.arange(N), rng.permutation(N)[:n])
    return Audit(np.where(drawn, truth, MISSING), judge, inclusion, clusters, truth.astype(np.float64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=500)
    samples = parser.parse_args().samples
    print("| sample | estimator | prevalence | Se, Sp | n | coverage | width | defined |")
    print("|---|---|---|---|---|---|---|---|")
    for (design, asked), (prevalence, se, sp), n in product([*CHOSEN, *OTHERS], SETTINGS, (80, 200)):
        rng = np.random.default_rng(1)
        held, widths, name = [], [], ""
        for number in range(samples):
            audit = corpus(design, prevalence, se, sp, n, rng)
            assert audit.score is not None
            truth = float(audit.score.mean())
            blind = Audit(audit.human, audit.judge, audit.inclusion, audit.clusters)
            name = asked or choose(blind)[0]
            _, interval = ESTIMATORS[name](blind, 1000, number)
            if interval.low is not None and interval.high is not None:
                held.append(interval.low - 1e-9 <= truth <= interval.high + 1e-9)
                widths.append(interval.high - interval.low)
        shown = f"{np.mean(held):.3f} | {np.mean(widths):.3f} | {len(held) / samples:.2f}"
        print(f"| {design} | {name} | {prevalence} | {se}, {sp} | {n} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
