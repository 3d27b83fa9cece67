"""What each command takes at ten times the work: nothing may grow faster. First ten times as many sessions,
then one session ten times as long, which finds what holds each event of a log against each.

    python benchmarks/growth.py [--sessions 400] [--messages 3000] [--generator GEN.py] [--keep]

Each command is a process of its own, on the same workspace in turn; CPU seconds and memory are those of all
its processes. Its ratio is ten times what it took at N / what it took at ten times N: 1 is in step with the
work, less grows faster.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from programs import OURS, Run
from ratios import hold

ROOT = Path(__file__).resolve().parents[1]
COMMANDS: dict[str, tuple[str, ...]] = {
    "ingest": ("ingest", "LOG", "--system", "mapped", "--map", "bench_sessions"),
    "judge, rules": ("judge",),
    "judge again": ("judge",),
    "judge, detectors": ("judge", "--rater", "detectors"),
    "metrics": ("metrics", "--by", "condition"),
    "report": ("report", "--full"),
    "sample": ("sample", "--codebook", "initiative", "--size", "200"),
    "rebuild": ("rebuild",),
    "export": ("export", "OUT"),
}


def measured(log: Path, folder: Path) -> dict[str, Run]:
    """Each command on a workspace of its own for this log."""
    runs = {}
    for name, words in COMMANDS.items():
        words = tuple({"LOG": str(log), "OUT": str(folder / "export")}.get(word, word) for word in words)
        runs[name] = Run(OURS, "--workspace", folder / "workspace", *words)
    return runs


def table(kind: str, generator: Path, options: Sequence[tuple[str, ...]]) -> dict[str, float]:
    """Runs every command at two sizes, prints what each took, and returns the ratios by name."""
    runs = []
    with tempfile.TemporaryDirectory() as place:
        for size, words in enumerate(options):
            log = Path(place) / f"{size}.jsonl"
            command = [sys.executable, str(generator), *words, "--out", str(log)]
            subprocess.run(command, check=True, capture_output=True)
            runs.append(measured(log, Path(place) / str(size)))
    heads = [" ".join(words).replace("--", "") for words in options]
    print(f"{'CPU seconds, MiB':20}{heads[0]:>26}{heads[1]:>26}{'ratio':>10}")
    small, large = runs
    for name in COMMANDS:
        one, ten = small[name], large[name]
        taken = f"{one.cpu:>19.1f}{one.mib:>7.0f}{ten.cpu:>19.1f}{ten.mib:>7.0f}{ten.cpu / one.cpu:>10.1f}"
        print(f"{name:20}{taken}   {ten.wall:.1f} s by the clock")
    return {f"{kind} of {heads[0]}: {name}": 10 * small[name].cpu / large[name].cpu for name in COMMANDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=400)
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--generator", type=Path, default=ROOT.parent / "shared" / "bench" / "gen.py")
    parser.add_argument("--keep", action="store_true", help="Make the ratios of this run the baseline.")
    options = parser.parse_args()
    many = [("--sessions", str(factor * options.sessions)) for factor in (1, 10)]
    long = [("--sessions", "1", "--messages", str(factor * options.messages)) for factor in (1, 10)]
    ratios = table("growth", options.generator, many) | table("length", options.generator, long)
    hold(ratios, keep=options.keep)


if __name__ == "__main__":
    main()
