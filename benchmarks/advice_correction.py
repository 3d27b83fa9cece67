"""How far `advise evaluate` allows for who acted: `python benchmarks/advice_correction.py [--samples N]`.

Logs of one path of two steps each, in which people are called more often where the question is hard and help
there alone: agents alone earn .5, and look better the less the log tells of why people stepped in. The table
is that of docs/advisor.md: mean estimate of agent-only, and the share of samples whose interval has .5 in it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from coaudit.pipeline.advise.features import view
from coaudit.pipeline.advise.scores import bench
from coaudit.pipeline.advise.trees import forest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.pipeline.advise.games import KINDS, confounded

TRUTH = 0.5
SIZES = (1500, 400, 100)
ODDS = ((0.45, 0.45), (0.6, 0.3), (0.75, 0.25))
FIVE = {
    "hard": ("knotty", "thorny", "tangled", "murky", "steep"),
    "easy": ("plain", "simple", "light", "clear", "short"),
}
WORDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "one word says it": KINDS,
    "any of five words": FIVE,
    "nothing says it": {"hard": ("new",), "easy": ("new",)},
}


def estimate(
    count: int, odds: tuple[float, float], words: Mapping[str, Sequence[str]], seed: int
) -> tuple[float | None, bool]:
    """Agent-only's estimate in one sample, and whether its interval has the truth in it; no estimate where so
    few questions support it that `evaluate` gives none."""
    woods = forest(confounded(count, dict(zip(("hard", "easy"), odds, strict=True)), seed, words))
    on = bench(woods, view(woods.states).see(woods.states))
    never = on.if_known(on.score(np.zeros(len(woods.states))))
    result = never.estimate(0.0, 2)
    holds = result.low is not None and result.high is not None and result.low <= TRUTH <= result.high
    return result.value, holds


def cell(count: int, odds: tuple[float, float], words: Mapping[str, Sequence[str]], samples: int) -> str:
    """Mean and coverage of the samples that have an estimate, and how many lack one."""
    rows = [estimate(count, odds, words, seed) for seed in range(samples)]
    values = [(value, holds) for value, holds in rows if value is not None]
    if not values:
        return "none"
    mean, coverage = np.mean([value for value, _ in values]), np.mean([holds for _, holds in values])
    lacking = f", {samples - len(values)} without" if len(values) < samples else ""
    return f"{mean:.3f} ({coverage:.2f}{lacking})".replace("0.", ".")


def main() -> None:
    """Every size, odds and way to say it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=40)
    samples = parser.parse_args().samples
    print("| logs | hard / easy |", " | ".join(WORDS), "|")
    print("|---|---|---|---|---|")
    for count in SIZES:
        for odds in ODDS:
            chances = " / ".join(f"{chance:.2f}" for chance in odds).replace("0.", ".")
            cells = [cell(count, odds, words, samples) for words in WORDS.values()]
            print(f"| {count:,} | {chances} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
