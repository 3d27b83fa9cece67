"""Permutation tests of 1,200 clusters, by where these lie: python benchmarks/permutations.py [--keep].

Nanoseconds of processor time for a cluster of a random arrangement, drawn anew and drawn before, and ratios
to the quickest: values of clusters that one sample alone holds (Welch's t). Many clusters of two conditions
are in both in part: a task that both ran, beside tasks that one of them ran.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray
from ratios import hold

from coaudit.annotation.statistics import permutation
from coaudit.annotation.statistics.estimate import Totals, totals
from coaudit.annotation.statistics.permutation import Arms, arms, permutation_test

CLUSTERS, DRAWS = 1_200, 19_999
ROUNDS = 3


def sample(pairs: int, *, ratio: bool) -> Arms:
    """Two samples that share so many clusters, of values or of ratios of up to nine units."""
    rng = np.random.default_rng(pairs)
    alone = (CLUSTERS - pairs) // 2
    names = np.arange(pairs + alone), np.r_[np.arange(pairs), CLUSTERS + np.arange(alone)]

    def side(clusters: NDArray[np.int64]) -> Totals:
        x = rng.integers(1, 10, len(clusters)) if ratio else np.ones(len(clusters))
        return totals(rng.normal(x), x, clusters=clusters)

    return arms(side(names[0]), side(names[1]))


def cost(one: Arms, *, anew: bool) -> float:
    """Nanoseconds of processor time for a cluster of an arrangement, the least of some rounds."""
    rounds = []
    permutation_test(one, DRAWS)
    for _ in range(ROUNDS):
        if anew:
            permutation._last_blocks.cache_clear()
        began = time.process_time()
        permutation_test(one, DRAWS)
        rounds.append(time.process_time() - began)
    return min(rounds) / CLUSTERS / DRAWS * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="Make the ratios of this run the baseline.")
    options = parser.parse_args()
    costs = {}
    for shape, pairs in (("alone", 0), ("paired", CLUSTERS), ("partly paired", CLUSTERS // 4)):
        for kind in ("values", "ratios"):
            one = sample(pairs, ratio=kind == "ratios")
            known, anew = cost(one, anew=False), cost(one, anew=True)
            costs[f"{kind}, {shape}"] = known
            print(f"{kind}, {shape}: {known:.2f} ns, {anew:.2f} where arrangements are drawn anew")
    least = costs["values, alone"]
    hold({f"permutations: {name}": least / value for name, value in costs.items()}, keep=options.keep)


if __name__ == "__main__":
    main()
