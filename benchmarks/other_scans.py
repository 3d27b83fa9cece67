"""One question to the tables of a study, through DuckDB, Postgres, Daft, Dask and Spark.

    .venv/bin/python benchmarks/other_scans.py [--times 50] [--daft PYTHON] [--dask PYTHON] [--spark PYTHON]

What a study of 2,000 generated sessions holds is exported as Parquet, so many times over under other names
(50: 100,000 sessions); of each session the share of its busiest participant and the length of what was said
are asked, and their means by task. All have the same SQL, but for Dask, which has none. Each is a process
of its own, in turn, three times; the median counts. `first` and `again` are the seconds of the question alone
in that process. All must say what DuckDB says. Postgres, started for this, holds the same rows as tables; of
its server only the clock's seconds are known.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import psycopg
from judging import ROOT
from other_engines import LOCAL, QUIET
from programs import Run

from coaudit.pipeline.store.lake.extensions import load
from coaudit.pipeline.systems.cogym.generate import generate
from tests.servers import postgres

SESSIONS = 2000
ROUNDS = 3
QUESTION = """
WITH shares AS (
    SELECT trajectory_id, actor, count(*) AS events, sum(length(text)) AS characters
    FROM events WHERE kind IN ('message', 'action') GROUP BY trajectory_id, actor
), sessions AS (
    SELECT trajectory_id, max(events) * 1.0 / sum(events) AS busiest, sum(characters) AS characters
    FROM shares GROUP BY trajectory_id
)
SELECT trajectories.task AS task, count(*) AS sessions, avg(busiest) AS busiest,
    avg(characters) AS characters
FROM sessions JOIN trajectories ON trajectories.id = sessions.trajectory_id
GROUP BY trajectories.task ORDER BY trajectories.task
"""
ASKED = f'''
import json, sys, time
QUESTION = """{QUESTION}"""
events, trajectories = (f"{{sys.argv[1]}}/{{name}}/*.parquet" for name in ("events", "trajectories"))

def told(ask):
    took = []
    for _ in range(2):
        began = time.perf_counter()
        rows = [[str(row[0]), int(row[1]), round(float(row[2]), 6), round(float(row[3]), 3)] for row in ask()]
        took.append(time.perf_counter() - began)
    print(json.dumps({{"rows": sorted(rows), "first": took[0], "again": took[1]}}))
'''
DUCKDB = """
import duckdb
connection = duckdb.connect()
for name, files in (("events", events), ("trajectories", trajectories)):
    connection.execute(f"CREATE VIEW {name} AS FROM '{files}'")
told(lambda: connection.execute(QUESTION).fetchall())
"""
POSTGRES = """
import psycopg
connection = psycopg.connect(sys.argv[2])
connection.execute("SET work_mem = '256MB'")
told(lambda: connection.execute(QUESTION).fetchall())
"""
DAFT = """
import daft
def ask():
    tables = {"events": daft.read_parquet(events), "trajectories": daft.read_parquet(trajectories)}
    return [list(row.values()) for row in daft.sql(QUESTION, **tables).to_pylist()]
told(ask)
"""
DASK = """
import dask.dataframe as dd
from dask.distributed import Client, LocalCluster
def ask():
    said = dd.read_parquet(events, columns=["trajectory_id", "actor", "kind", "text"])
    said = said[said.kind.isin(["message", "action"])]
    said = said.assign(characters=said.text.str.len())
    shares = said.groupby(["trajectory_id", "actor"]).agg({"kind": "count", "characters": "sum"})
    shares = shares.reset_index()
    sessions = shares.groupby("trajectory_id").agg({"kind": ["max", "sum"], "characters": "sum"})
    sessions.columns = ["most", "events", "characters"]
    sessions = sessions.assign(busiest=sessions.most / sessions.events).reset_index()
    known = dd.read_parquet(trajectories, columns=["id", "task"])
    joined = sessions.merge(known, left_on="trajectory_id", right_on="id")
    by = joined.groupby("task").agg({"id": "count", "busiest": "mean", "characters": "mean"})
    return by.compute().reset_index().values.tolist()
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster):
            told(ask)
"""
SPARK = """
from pyspark.sql import SparkSession
settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.memory": "4g"}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
for name, files in (("events", events), ("trajectories", trajectories)):
    spark.read.parquet(files).createOrReplaceTempView(name)
told(lambda: spark.sql(QUESTION).collect())
"""


@dataclass(frozen=True)
class Engine:
    """What answers: a program and its Python."""

    name: str
    program: str
    python: str = sys.executable
    more: tuple[str, ...] = ()

    def answered(self, tables: Path, place: Path) -> tuple[Run, dict[str, Any]]:
        """One run, and what it printed."""
        program = place / f"{self.name}.py"
        program.write_text(ASKED + self.program, encoding="utf-8")
        started = f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')"
        run = Run(started, tables, *self.more, python=self.python)
        return run, json.loads(run.out.splitlines()[-1])


def tables(place: Path, times: int) -> Path:
    """Parquet of a study so many times over, in eight files a table; where."""
    generate(place / "logs", SESSIONS, 1)
    ours = [sys.executable, "-P", "-m", "coaudit.pipeline", "--workspace", str(place / "study")]
    for words in (("ingest", place / "logs"), ("export", place / "once", "--tables", "events,trajectories")):
        subprocess.run([*ours, *map(str, words)], check=True, capture_output=True)
    result = place / "tables"
    for name, key in (("events", "trajectory_id"), ("trajectories", "id")):
        (result / name).mkdir(parents=True)
        for part in range(8):
            duckdb.execute(
                f"COPY (SELECT * REPLACE ({key} || '-' || n AS {key}) FROM '{place}/once/{name}.parquet', "
                f"range({times}) AS numbers(n) WHERE n % 8 = {part}) "
                f"TO '{result}/{name}/{part}.parquet' (COMPRESSION zstd)"
            )
    return result


def loaded(tables: Path, conninfo: str) -> str:
    """Bring the tables into Postgres; what that took."""
    began = time.perf_counter()
    with duckdb.connect() as connection:
        load(connection, "postgres_scanner")
        connection.execute(f"ATTACH '{conninfo}' AS there (TYPE postgres)")
        for name in ("events", "trajectories"):
            connection.execute(f"CREATE TABLE there.{name} AS FROM '{tables}/{name}/*.parquet'")
    took = time.perf_counter() - began
    with psycopg.connect(conninfo, autocommit=True) as connected:
        connected.execute("VACUUM ANALYZE")
        size = connected.execute("SELECT pg_database_size(current_database())").fetchone()
    assert size
    return f"postgres  loaded in {took:.0f} s, {size[0] >> 20:,} MiB on disk"


def engines(given: argparse.Namespace, conninfo: str) -> Iterator[Engine]:
    """Those that can run; of the others it is said."""
    yield Engine("duckdb", DUCKDB)
    if conninfo:
        yield Engine("postgres", POSTGRES, more=(conninfo,))
    for name, program in {"daft": DAFT, "dask": DASK, "spark": SPARK}.items():
        if python := getattr(given, name):
            yield Engine(name, program, python)
        else:
            print(f"{name}: left out, for --{name} names no Python that has it", flush=True)


def main() -> None:
    """Ask each in turn, print the medians."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--times", type=int, default=50, help="so often the 2,000 sessions")
    for name in ("daft", "dask", "spark"):
        options.add_argument(f"--{name}", default="", help="a Python that has it")
    given = options.parse_args()
    os.environ.update({"PYTHONPATH": str(ROOT), **QUIET, **LOCAL})
    with tempfile.TemporaryDirectory(prefix="pytest-scans-") as name, ExitStack() as stack:
        place = Path(name)
        place.chmod(0o755)
        held = tables(place, given.times)
        size = sum(path.stat().st_size for path in held.rglob("*.parquet"))
        print(f"{SESSIONS * given.times:,} sessions, {size >> 20:,} MiB of Parquet", flush=True)
        conninfo = stack.enter_context(postgres(place / "postgres"))
        print(loaded(held, conninfo), flush=True)
        asked = list(engines(given, conninfo))
        runs: dict[str, list[tuple[Run, dict[str, Any]]]] = {engine.name: [] for engine in asked}
        for _ in range(ROUNDS):
            for engine in asked:
                runs[engine.name].append(engine.answered(held, place))
    wanted = runs["duckdb"][0][1]["rows"]
    for engine in asked:
        print(_told(engine.name, runs[engine.name], wanted))


def _told(name: str, runs: list[tuple[Run, dict[str, Any]]], wanted: object) -> str:
    first, again = (median(said[what] for _, said in runs) for what in ("first", "again"))
    wall, cpu = median(run.wall for run, _ in runs), median(run.cpu for run, _ in runs)
    right = all(said["rows"] == wanted for _, said in runs)
    return (
        f"{name:9} first {first:.2f} s, again {again:.2f} s; the process {wall:.1f} s, {cpu:.1f} s CPU, "
        f"{max(run.mib for run, _ in runs):.0f} MiB{'' if right else '; SAYS SOMETHING ELSE'}"
    )


if __name__ == "__main__":
    main()
