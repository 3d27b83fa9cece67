"""A lake on Postgres beside a file, and a study in an object store beside a folder: the same commands.

    python benchmarks/machines.py [--sessions N] [--keep]

Postgres and moto's S3 run on this machine. Each command is timed on the file and on the lake in turn, so
that the machine's other work spoils both; ratios count (file's seconds / the other's, so 1 is as fast).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ratios import hold

sys.path.insert(0, str(Path(__file__).parents[1]))
from coaudit.pipeline.systems.cogym.generate import generate
from tests.servers import BUCKET, Machine, object_store, postgres

COMMANDS = {
    "ingest": lambda logs: ("ingest", logs, "--copy"),
    "ingest again": lambda logs: ("ingest", logs, "--copy"),
    "judge, rules": lambda logs: ("judge", "--json"),
    "metrics": lambda logs: ("metrics", "--json"),
    "report": lambda logs: ("report", "--full"),
    "rebuild": lambda logs: ("rebuild",),
}


def main() -> None:
    """Time all, print a row a command."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=1000)
    options.add_argument("--keep", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="pytest-machines-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        generate(folder / "logs", given.sessions, 1)
        with postgres(folder / "postgres") as conninfo, object_store() as s3:
            (folder / "lake").mkdir()
            settings = f'store = "ducklake:postgres:{conninfo}"\n'
            (folder / "lake" / "coaudit.toml").write_text(settings)
            machines = {
                "file": Machine(folder / "m1", str(folder / "file")),
                "lake": Machine(folder / "m1", str(folder / "lake")),
                "object store": Machine(folder / "m2", f"s3://{BUCKET}/study", s3),
            }
            ratios: dict[str, float] = {}
            for name, command in COMMANDS.items():
                took = {kind: _timed(machine, command(folder / "logs")) for kind, machine in machines.items()}
                shown = ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in took.items())
                print(f"{name}: {shown}", flush=True)
                for kind in ("lake", "object store"):
                    ratios[f"{kind}: {name} / file"] = took["file"] / took[kind]
    print(f"{given.sessions} sessions, {subprocess.check_output(['nproc'], text=True).strip()} cores")
    hold(ratios, keep=given.keep)


def _timed(machine: Machine, command: tuple[object, ...]) -> float:
    began = time.monotonic()
    machine.run(*command)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
