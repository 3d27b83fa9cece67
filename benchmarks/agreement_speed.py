"""Seconds for the agreement of 26 failure modes, 2,000 units and 3 raters, with intervals (B=2000).

python benchmarks/agreement_speed.py
"""

from __future__ import annotations

import time

import numpy as np

from coaudit.annotation.statistics import Ratings
from coaudit.annotation.statistics.agreement import COEFFICIENTS, agreement

MODES, UNITS, RATERS = 26, 2000, 3
FEW = ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha")


def modes(clustered: bool, labels: int) -> list[Ratings]:
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(UNITS // 10), 10) if clustered else None
    names = tuple(str(k) for k in range(labels))
    found = []
    for prevalence in np.linspace(0.02, 0.5, MODES):
        margins = np.r_[1 - prevalence, np.full(labels - 1, prevalence / (labels - 1))]
        true = rng.choice(labels, (UNITS, 1), p=margins)
        guess = rng.choice(labels, (UNITS, RATERS), p=margins)
        matrix = np.where(rng.random((UNITS, RATERS)) < 0.8, true, guess)
        found.append(Ratings(matrix, names, ("a", "b", "c"), clusters=clusters))
    return found


def main() -> None:
    for labels in (2, 5):
        for clustered in (False, True):
            for wanted in (FEW, COEFFICIENTS):
                sample = modes(clustered, labels)
                started = time.perf_counter()
                for ratings in sample:
                    agreement(ratings, wanted)
                seconds = time.perf_counter() - started
                units = "200 trajectories" if clustered else "independent units"
                print(f"{labels} labels, {units}, {len(wanted)} coefficients: {seconds:.2f} s")


if __name__ == "__main__":
    main()
