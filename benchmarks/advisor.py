"""What an advisor reaches on tasks whose room is known: `python benchmarks/advisor.py [--runs N]`.

Made-up tasks with up to seven steps and rewards between 0 and 1, learnt from 60 questions and evaluated on
100 others: `stuck` (a person helps where the log says that sources disagree), `low` (where a number that the
environment states is small), `luck` (nobody helps anything). The share is that of the way from agent-only to
the oracle; the oracle sees how chance will fall, so that 1 is out of reach.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from coaudit.pipeline.advise import sources, training
from coaudit.pipeline.advise.evaluation import evaluate
from coaudit.schemas import Trajectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.pipeline.advise import games

GAMES = {"stuck": games.stuck, "low": games.low, "luck": games.luck}
TRAIN, TEST, STEPS, PENALTY = 60, 100, 7, 0.05


def read(folder: Path, name: str, questions: int, seed: int) -> list[Trajectory]:
    """The trajectories of one made-up tree file."""
    nodes = games.tree(GAMES[name], questions, STEPS, seed, first=1000 * seed, stated=name == "low")
    return sources.of_files([games.write(folder / f"{name}_{seed}.jsonl", nodes)])[0]


def run(folder: Path, name: str, seed: int) -> tuple[dict[str, Any], float]:
    """The evaluation of one run, and the CPU seconds that training took."""
    train = read(folder, name, TRAIN, 2 * seed + 1)
    began = time.process_time()
    advisor = training.train(train, [PENALTY], seed=seed)
    seconds = time.process_time() - began
    return evaluate(advisor, read(folder, name, TEST, 2 * seed + 2)), seconds


def line(name: str, seed: int, document: dict[str, Any], seconds: float) -> str:
    """One run as a row of a table."""
    rows = {row["policy"]: row for row in document["rows"]}
    chosen = next(row for row in document["rows"] if row["chosen"])
    low, high = chosen["difference_low"], chosen["difference_high"]
    between = "" if low is None else f" ({low:+.3f} to {high:+.3f})"
    values = [
        name,
        str(seed),
        chosen["policy"],
        *(f"{rows[one]['reward']:.3f}" for one in ("agent-only", "human-only", "oracle")),
        f"{chosen['reward']:.3f}",
        f"{chosen['difference']:+.3f}{between}",
        f"{document['share']:.2f}",
        f"{seconds:.0f}",
    ]
    return f"| {' | '.join(values)} |"


def main() -> None:
    """Every task, so many times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    print("| task | run | chosen | agent-only | human-only | oracle | chosen earns | gain | share | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in GAMES:
            for seed in range(runs):
                print(line(name, seed, *run(Path(folder), name, seed)), flush=True)


if __name__ == "__main__":
    main()
