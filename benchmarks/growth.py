"""What each command takes at ten times the work: nothing may grow faster. First ten times as many sessions,
then one session ten times as long, which finds what holds each event of a log against each.

    python benchmarks/growth.py [--sessions 400] [--messages 3000] [--generator GEN.py] [--keep]

Each command is a process of its own, on the same workspace in turn; CPU seconds and memory are those of all
its processes. Its ratio is ten times what it took at N / what it took at ten times N: 1 is in step with the
work, less grows faster.
"""

from __future__ import annotations

import argparse
import itertools
import json
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
    "ratings out": ("ratings", "export", "--out", "RATINGS"),
    "ratings in": ("ratings", "import", "LABELS"),
    "agreement": ("agreement",),
    "metrics": ("metrics", "--by", "condition"),
    "metrics of each": ("metrics", "--per", "trajectory"),
    "trajectories": ("trajectory", "list"),
    "frames": (),
    "report": ("report", "--full"),
    "rates": ("rates", "--codebook", "initiative"),
    "compare": ("compare", "--by", "condition"),
    "validate": ("validate", "rules"),
    "sample": ("sample", "--codebook", "initiative", "--size", "200"),
    "all as tasks": ("sample", "--codebook", "initiative", "--size", "1000000", "--name", "all"),
    "tasks": ("labelstudio", "export", "TASKS", "--sample", "all"),
    "train": ("train", "--codebook", "initiative", "--rater", "rules"),
    "rebuild": ("rebuild",),
    "export": ("export", "OUT"),
}
"""What is run in turn; LABELS are two people's of every fifth unit that the rules rated. A task has all of
its session in it, so that those on one long session grow with its square."""
FRAMES = """
import sys, coaudit
workspace = coaudit.open(sys.argv[1])
workspace.events(), workspace.ratings(), workspace.metrics(per_trajectory=True)
"""
"""All that a workspace has as frames, in Python."""


def measured(log: Path, folder: Path) -> dict[str, Run]:
    """Each command on a workspace of its own for this log."""
    runs = {}
    places = {"LOG": log, **{name: folder / name.lower() for name in ("OUT", "RATINGS", "LABELS", "TASKS")}}
    for name, words in COMMANDS.items():
        if "LABELS" in words:
            label(places["RATINGS"], places["LABELS"])
        workspace = folder / "workspace"
        if words:
            runs[name] = Run(OURS, "--workspace", workspace, *(places.get(word, word) for word in words))
        else:
            runs[name] = Run(FRAMES, workspace)
    return runs


def label(ratings: Path, labels: Path) -> None:
    """Two people who speak of every fifth unit: one says what the rules said, the other mostly."""
    about = ("trajectory", "event", "codebook", "code")
    with ratings.open(encoding="utf-8") as lines, labels.open("w", encoding="utf-8") as out:
        for number, line in enumerate(itertools.islice(lines, 0, None, 5)):
            rating = json.loads(line)
            if rating["rater"] == "rules":
                place, said = {name: rating[name] for name in about}, rating["label"]
                other = "no" if said == "yes" else "yes"
                for rater, given in (("ann", said), ("bob", said if number % 8 else other)):
                    out.write(json.dumps({**place, "rater": rater, "label": given}) + "\n")


def table(kind: str, generator: Path, options: Sequence[tuple[str, ...]]) -> dict[str, float]:
    """Runs every command at two sizes, prints what each took, and returns the ratios by name."""
    runs = []
    with tempfile.TemporaryDirectory() as place:
        for size, words in enumerate(options):
            log = Path(place) / f"{size}.jsonl"
            command = [sys.executable, str(generator), *words, "--out", str(log)]
            subprocess.run(command, check=True, capture_output=True)
            runs.append(measured(log, Path(place) / str(size)))
    return compare_sizes(kind, [" ".join(words).replace("--", "") for words in options], *runs)


def compare_sizes(
    kind: str, heads: Sequence[str], small: dict[str, Run], large: dict[str, Run]
) -> dict[str, float]:
    """Prints what each command took at two sizes, the second ten times the first, and returns the ratios by
    name."""
    print(f"{'CPU seconds, MiB':20}{heads[0]:>26}{heads[1]:>26}{'ratio':>10}")
    for name in small:
        one, ten = small[name], large[name]
        taken = f"{one.cpu:>19.1f}{one.mib:>7.0f}{ten.cpu:>19.1f}{ten.mib:>7.0f}{ten.cpu / one.cpu:>10.1f}"
        print(f"{name:20}{taken}   {ten.wall:.1f} s by the clock")
    return {f"{kind} of {heads[0]}: {name}": 10 * small[name].cpu / large[name].cpu for name in small}


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
