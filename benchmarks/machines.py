"""Lakes on Postgres and SQLite beside a file, and a study in an object store beside a folder: the same
commands.

    python benchmarks/machines.py [--sessions N] [--storm SECONDS] [--keep]

Postgres and moto's S3 run on this machine. First four writers, of which two are killed again and again, four
readers and one that rebuilds work on a lake for a minute; what they did and saw is counted. Then each
command is timed on the file and on the others in turn, so that the machine's other work spoils both; ratios
count (file's seconds / the other's, so 1 is as fast).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ratios import hold

sys.path.insert(0, str(Path(__file__).parents[1]))
from coaudit.pipeline.systems.cogym.generate import generate
from tests.servers import BUCKET, Machine, object_store, postgres
from tests.storm import storm
from tests.studies import logs, study

COMMANDS: dict[str, Callable[[Path], tuple[object, ...]]] = {
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
    options.add_argument("--storm", type=float, default=60.0, help="seconds; 0 leaves it out")
    options.add_argument("--keep", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="pytest-machines-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        generate(folder / "logs", given.sessions, 1)
        if given.storm and not _weathered(folder / "storm", given.storm):
            sys.exit(1)
        with postgres(folder / "postgres") as conninfo, object_store() as s3:
            catalogs = {"lake": f"postgres:{conninfo}", "lake on SQLite": f"sqlite:{folder / 'catalog.db'}"}
            for kind, catalog in catalogs.items():
                (folder / kind).mkdir()
                (folder / kind / "coaudit.toml").write_text(f'store = "ducklake:{catalog}"\n')
            machines = {
                "file": Machine(folder / "m1", str(folder / "file")),
                **{kind: Machine(folder / "m1", str(folder / kind)) for kind in catalogs},
                "object store": Machine(folder / "m2", f"s3://{BUCKET}/study", s3),
            }
            ratios: dict[str, float] = {}
            for name, command in COMMANDS.items():
                took = {kind: _timed(machine, command(folder / "logs")) for kind, machine in machines.items()}
                shown = ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in took.items())
                print(f"{name}: {shown}", flush=True)
                for kind in (*catalogs, "object store"):
                    ratios[f"{kind}: {name} / file"] = took["file"] / took[kind]
    print(f"{given.sessions} sessions, {subprocess.check_output(['nproc'], text=True).strip()} cores")
    hold(ratios, keep=given.keep)


def _weathered(folder: Path, seconds: float) -> bool:
    """Whether a storm has done no harm; what was counted is printed."""
    folder.mkdir()
    with postgres(folder / "postgres") as conninfo, object_store() as s3:
        lake = {"store": f"ducklake:postgres:{conninfo}", "data": str(folder / "tables")}
        machines = study(folder, s3, 9, **lake)
        parts = logs(folder / "logs", parts=80, sessions=8)
        kills = [seconds * share / 10 for share in (2, 3, 6, 7)]
        told = storm(folder, machines, parts, kills=kills, catalog=conninfo, seconds=seconds)
    print(
        f"storm: {told.ingested} ingests of 8 sessions, {told.killed} killed, {told.rebuilds} rebuilds, "
        f"{told.commits} commits, {told.looks} whole looks; longest wait {told.longest_command:.1f} s for an "
        f"ingest, {told.longest_look:.1f} s for a look; wrong: {dict(told.wrong) or 'nothing'}",
        flush=True,
    )
    return not told.wrong


def _timed(machine: Machine, command: tuple[object, ...]) -> float:
    began = time.monotonic()
    machine.run(*command)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
