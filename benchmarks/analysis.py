"""What each question to a workspace of many trajectories takes: python benchmarks/analysis.py
[--trajectories 10000] [--keep].

The workspace is made by synthetic.py, at that size and at ten times it (4 million events, 8.4 million ratings
by default), with a sample drawn of one codebook. Ratios and what is measured are as in growth.py.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import synthetic
from growth import compare_sizes
from programs import OURS, Run
from ratios import hold

COMMANDS: dict[str, tuple[str, ...]] = {
    "sample": ("sample", "--codebook", "initiative", "--size", "400"),
    "metrics": ("metrics",),
    "metrics by condition": ("metrics", "--by", "condition"),
    "agreement": ("agreement",),
    "rates": ("rates",),
    "compare": ("compare", "--by", "condition"),
    "validate": ("validate", "rules"),
    "one trajectory": ("trajectory", "show", synthetic.LONG),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trajectories", type=int, default=10_000)
    parser.add_argument("--keep", action="store_true", help="Make the ratios of this run the baseline.")
    options = parser.parse_args()
    runs = []
    sizes = [options.trajectories, 10 * options.trajectories]
    with tempfile.TemporaryDirectory() as place:
        for size in sizes:
            folder = Path(place) / str(size)
            synthetic.make(folder, size)
            runs.append({name: Run(OURS, "--workspace", folder, *words) for name, words in COMMANDS.items()})
    heads = [f"{size} trajectories" for size in sizes]
    hold(compare_sizes("analysis", heads, *runs), keep=options.keep)


if __name__ == "__main__":
    main()
