"""How fast logs come into the store, and in how much memory; one command prints a table.

    python benchmarks/ingest.py [--sessions 2000] [--folders 500] [--generator ../shared/bench/gen.py]

Each load is ingested by a process of its own: synthetic sessions one a line and one event a line, through
the shipped mappings, and Co-Gym folders as `coaudit generate` writes them. Wall time counts the machine's
other work as well, so CPU seconds (all threads, imports included) stand beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ONE = """
import json, resource, sys, time
from pathlib import Path
from coaudit.pipeline.ingest import ingest
from coaudit.pipeline.systems.formats import mapping
from coaudit.pipeline.systems.base import ReadOptions
from coaudit.pipeline.store import Store
from coaudit.pipeline.store.workspace import Workspace
source, name, place = sys.argv[1:]
options = ReadOptions(map=mapping.text_of(name)[0] if name else None)
began, used = time.perf_counter(), time.process_time()
done = ingest(Store(Workspace(Path(place))), [Path(source)], options, system="mapped" if name else "auto")
print(json.dumps({
    "events": done.events, "trajectories": done.trajectories, "wall": time.perf_counter() - began,
    "cpu": time.process_time() - used,
    "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


def measured(source: Path, mapping: str, folder: Path) -> dict[str, float]:
    """What one ingest into a workspace of its own took."""
    workspace = folder / f"workspace-{source.name}"
    command = [sys.executable, "-P", "-c", ONE, str(source), mapping, str(workspace)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def loads(options: argparse.Namespace, folder: Path) -> list[tuple[str, Path, str]]:
    """(what, where, mapping) of each load, freshly written."""
    found = []
    for form in ("sessions", "events"):
        path = folder / f"{form}.jsonl"
        count = ["--sessions", str(options.sessions), "--format", form, "--out", str(path)]
        subprocess.run([sys.executable, str(options.generator), *count], check=True, capture_output=True)
        found.append((f"one {form[:-1]} a line", path, f"bench_{form}"))
    path = folder / "cogym"
    coaudit = [sys.executable, "-P", "-m", "coaudit.pipeline", "generate", str(path)]
    subprocess.run([*coaudit, "--sessions", str(options.folders)], check=True, capture_output=True)
    return [*found, ("Co-Gym folders", path, "")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--folders", type=int, default=500)
    parser.add_argument("--generator", type=Path, default=ROOT.parent / "shared" / "bench" / "gen.py")
    options = parser.parse_args()
    heads = ("events", "wall s", "events/s", "CPU s", "events/CPU s", "peak MiB")
    print(f"{'load':22}" + "".join(f"{head:>14}" for head in heads))
    with tempfile.TemporaryDirectory() as place:
        for what, path, mapping in loads(options, Path(place)):
            row = measured(path, mapping, Path(place))
            speed, work = row["events"] / row["wall"], row["events"] / row["cpu"]
            cells = (row["events"], row["wall"], speed, row["cpu"], work, row["mib"])
            print(f"{what:22}" + "".join(f"{cell:>14,.{2 if cell < 100 else 0}f}" for cell in cells))


if __name__ == "__main__":
    main()
