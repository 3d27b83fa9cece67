"""The same questions through our engines and through Daft, Dask and Spark: when rows are in hand, and what a
kill costs.

    .venv/bin/python benchmarks/other_engines.py [--sessions 160] [--daft PYTHON] [--daft-ray PYTHON]
                                                 [--dask PYTHON] [--spark PYTHON] [--only local,ray]
                                                 [--kill workers all]

Each of the others is in an environment of its own, with aiohttp, whose Python is named (--daft-ray: one with
Ray as well). The endpoint is tests/judges/endpoint.py with 100 ms latency, 64 questions in flight. Ours asks
first, and its requests are what the others ask, byte for byte; theirs end as lines of a file, written and
flushed by the process that began the run, ours as ratings. Each runs thrice: undisturbed; with its workers
killed with -9 once half is answered, where there are workers (all of them, for nobody sees from outside which
one has questions in hand); with all processes killed then, and begun again. Times are by the clock, CPU
seconds and memory those of all processes. other_scans.py has what they do with tables.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from judging import ROOT, command, fill
from programs import below, pss, seconds

sys.path.insert(0, str(ROOT))
from tests.judges.endpoint import Endpoint

LATENCY = 0.1
IN_FLIGHT = 64
KILLS = ("workers", "all")
BLOCK = 32
"""Questions that are handed on at a time, where an engine hands on blocks."""
QUIET = {"DAFT_ANALYTICS_ENABLED": "0", "DO_NOT_TRACK": "true", "RAY_USAGE_STATS_ENABLED": "0"}
LOCAL = {"SPARK_LOCAL_IP": "127.0.0.1", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
ASKER = '''
import asyncio, json, os, sys
questions, ledger, workers, url, in_flight, block = sys.argv[1:7]
in_flight, block = int(in_flight), int(block)

class Asker:
    """Asks the endpoint, at most so many at a time; a worker that makes one leaves its number."""
    def __init__(self, at_once):
        self.session, self.gate = None, asyncio.Semaphore(at_once)
        open(os.path.join(workers, str(os.getpid())), "w").close()
    async def ask(self, body):
        import aiohttp
        if self.session is None:
            self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        kind = {"Content-Type": "application/json"}
        async with self.gate, self.session.post(url, data=body, headers=kind) as answer:
            return json.loads(await answer.read())["choices"][0]["message"]["content"]

def unanswered():
    with open(ledger, "a+") as lines:
        lines.seek(0)
        known = {json.loads(line)["key"] for line in lines if line.endswith("\\n")}
    with open(questions) as lines:
        return [(key, body) for key, body in enumerate(lines) if key not in known]

def write(rows):
    with open(ledger, "a") as lines:
        for key, answer in rows:
            lines.write(json.dumps({"key": key, "answer": answer}) + "\\n")
            lines.flush()
'''
DAFT = """
import daft
on_ray = sys.argv[7:] == ["ray"]
if on_ray:
    import ray
    ray.init(include_dashboard=False, log_to_driver=False)
    daft.set_runner_ray()

@daft.cls
class Judge:
    def __init__(self):
        self.asker = Asker(in_flight)
    async def __call__(self, body: str) -> str:
        return await self.asker.ask(body)

keys, bodies = map(list, zip(*unanswered()))
judge = Judge()
frame = daft.from_pydict({"key": keys, "body": bodies}).into_batches(block * (1 + on_ray))
answers = frame.select("key", judge(daft.col("body")).alias("answer"))
write((row["key"], row["answer"]) for row in answers.iter_rows())
"""
"""On Ray a worker has one batch at a time, so that it holds all that is in flight."""
DASK = """
from dask.distributed import Client, LocalCluster, as_completed

async def answered(key, body):
    global asker
    if "asker" not in globals():
        asker = Asker(in_flight)
    return key, await asker.ask(body)

def rows(futures):
    for future, row in as_completed(futures, with_results=True):
        future.release()
        yield row

if __name__ == "__main__":
    cluster = LocalCluster(n_workers=2, threads_per_worker=in_flight // 2, dashboard_address=None)
    with cluster, Client(cluster) as client:
        write(rows(client.map(answered, *zip(*unanswered()), pure=False)))
"""
SPARK = """
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession

def answered(rows):
    async def together():
        asker = Asker(in_flight // 2)
        answers = await asyncio.gather(*(asker.ask(body) for _, body in rows))
        await asker.session.close()
        return answers
    rows = list(rows)
    for (key, _), answer in zip(rows, asyncio.run(together())):
        yield key, answer

settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
spark = SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()
rows = unanswered()
parted = spark.sparkContext.parallelize(rows, -(-len(rows) // (2 * block)))
write(parted.mapPartitions(answered).toLocalIterator(prefetchPartitions=True))
"""
"""Two tasks at a time, each of a partition that comes back when its last question is answered."""


@dataclass(frozen=True)
class Engine:
    """What asks: our command line with options, or a program of another environment's Python."""

    name: str
    options: tuple[str, ...] = ()
    python: str = ""
    program: str = ""

    def command(self, folder: Path, url: str) -> list[str]:
        """How it is run over what lies in a folder."""
        if not self.program:
            return command(folder / "study", url, "--codebook", "initiative", *self.options)
        program = folder / "program.py"
        program.write_text(ASKER + self.program, encoding="utf-8")
        (folder / "workers").mkdir(exist_ok=True)
        places = [str(folder / name) for name in ("questions.jsonl", "ledger.jsonl", "workers")]
        asked = f"{url}/v1/chat/completions"
        return [self.python, str(program), *places, asked, str(IN_FLIGHT), str(BLOCK), *self.options]

    def rows(self, folder: Path) -> list[bytes]:
        """What is in hand: whole lines of the ledger."""
        ledgers = (
            [folder / "ledger.jsonl"] if self.program else (folder / "study" / "ratings").glob("*.jsonl")
        )
        return [line for path in ledgers if path.exists() for line in path.read_bytes().split(b"\n")[:-1]]

    def workers(self, folder: Path, run: int) -> list[int]:
        """The processes that ask, but for the one that began the run."""
        if self.program:
            return [int(path.name) for path in (folder / "workers").iterdir() if path.name != str(run)]
        return [pid for pid in below(run) if b"EndpointWorker" in _title(pid)]


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@dataclass
class Course:
    """How a run went: seconds since it began, and what it took."""

    asked: float = math.nan
    first: float = math.nan
    last: float = math.nan
    over: float = math.nan
    half: float = math.nan
    """When half of the questions were answered, and others in flight; then it is killed, if it is to be."""
    behind: int = 0
    """Answers given and not in hand at that time."""
    status: int = 0
    killed: int = 0
    mib: float = 0.0
    cpu: dict[int, float] = field(default_factory=dict)


def course(engine: Engine, folder: Path, endpoint: Endpoint, count: int, kill: str = "") -> Course:
    """Run it; `kill` has the workers killed, or all processes, when half is answered."""
    result, began, looked = Course(), time.monotonic(), 0.0
    url = endpoint.url.removesuffix("/v1")
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            engine.command(folder, url), env={**os.environ, **QUIET, **LOCAL}, stdout=log, stderr=log, cwd="/"
        )
    while True:
        over, now = process.poll() is not None, time.monotonic() - began
        answered, rows = len(endpoint.answered), len(engine.rows(folder))
        if endpoint.in_flight and math.isnan(result.asked):
            result.asked = now
        if rows and math.isnan(result.first):
            result.first = now
        if rows >= count and math.isnan(result.last):
            result.last = now
        if math.isnan(result.half) and answered >= count / 2 and endpoint.in_flight >= IN_FLIGHT // 2:
            result.half, result.behind = now, answered - rows
            result.killed = _end(engine, folder, process.pid, kill)
        if over:
            result.over, result.status = now, process.returncode
            return result
        if now - looked > 0.2:
            looked, there = now, [process.pid, *below(process.pid)]
            result.mib = max(result.mib, sum(map(pss, there)))
            result.cpu |= {pid: used for pid in there if (used := seconds(pid))}
        time.sleep(0.02)


def _end(engine: Engine, folder: Path, run: int, kill: str) -> int:
    """Kill whom it says; how many."""
    everything = [run, *below(run)]
    workers = [pid for pid in engine.workers(folder, run) if pid in everything]
    whom = {"workers": workers, "all": everything}.get(kill, [])
    for pid in whom:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(whom)


def told(
    engine: Engine, place: Path, questions: list[bytes], sessions: int, kills: Iterable[str]
) -> Iterator[str]:
    """A line a run."""
    for kill in ("", *kills):
        folder = place / f"{engine.name} {kill}"
        folder.mkdir()
        (folder / "questions.jsonl").write_bytes(b"".join(line + b"\n" for line in questions))
        fill(folder / "study", sessions)
        with Endpoint(latency=LATENCY, keep=False).serving() as endpoint:
            run = course(engine, folder, endpoint, len(questions), kill)
            if kill:
                yield f"{kill} killed: {_after(engine, folder, endpoint, run, len(questions))}"
            else:
                yield _whole(run, endpoint, len(questions))
        if run.status and not kill:
            yield (folder / "log").read_text(errors="replace")[-500:]


def _whole(run: Course, endpoint: Endpoint, count: int) -> str:
    ratio = count * LATENCY / IN_FLIGHT / (run.last - run.asked)
    return (
        f"first row {run.first:.1f} s, all {run.last:.1f} s, over {run.over:.1f} s; "
        f"ideal / asking {ratio:.2f}, at most {endpoint.peak} in flight; "
        f"{run.behind} answers not in hand at half; "
        f"{sum(run.cpu.values()):.1f} s CPU, {run.mib:.0f} MiB, status {run.status}"
    )


def _after(engine: Engine, folder: Path, endpoint: Endpoint, run: Course, count: int) -> str:
    how = f"{run.killed} processes; over {run.over:.1f} s, status {run.status}"
    if run.status:
        again = course(engine, folder, endpoint, count)
        how += f"; begun again {again.over:.1f} s, status {again.status}"
    return f"{how}; {endpoint.asked_twice} asked twice, {_lost_and_double(engine.rows(folder), count)}"


def _lost_and_double(rows: list[bytes], count: int) -> str:
    documents = [json.loads(row) for row in rows]
    keys = {row["key"] if "key" in row else (row["trajectory"], row["event"]) for row in documents}
    return f"{count - len(keys)} lost, {len(rows) - len(keys)} rows double"


def recorded(folder: Path, sessions: int) -> list[bytes]:
    """The requests of our own client, in the order in which they came."""
    fill(folder, sessions)
    with Endpoint().serving() as endpoint:
        run = command(folder, endpoint.url.removesuffix("/v1"), "--codebook", "initiative")
        subprocess.run(run, check=True, capture_output=True)
    return [json.dumps(body).encode() for body in endpoint.asked]


def engines(given: argparse.Namespace) -> Iterator[Engine]:
    """Those that can run; of the others it is said."""
    at_once = ("--concurrency", str(IN_FLIGHT))
    yield Engine("local", at_once)
    yield Engine("ray", ("--engine", "ray", "--workers", "2", *at_once))
    others = {"daft": DAFT, "daft-ray": DAFT, "dask": DASK, "spark": SPARK}
    for name, program in others.items():
        if python := getattr(given, name.replace("-", "_")):
            yield Engine(name, ("ray",) if name == "daft-ray" else (), python, program)
        else:
            print(f"{name}: left out, for --{name} names no Python that has it", flush=True)


def main() -> None:
    """Run each, print three lines of it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--sessions", type=int, default=160, help="of ten utterances each")
    options.add_argument("--only", default="", help="engines, parted by commas")
    options.add_argument("--kill", nargs="*", choices=KILLS, default=KILLS)
    for name in ("daft", "daft-ray", "dask", "spark"):
        options.add_argument(f"--{name}", default="", help="a Python that has it")
    given = options.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    only = set(filter(None, given.only.split(",")))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        questions = recorded(place / "recorded", given.sessions)
        print(f"{len(questions):,} questions, {LATENCY:g} s each, {IN_FLIGHT} in flight", flush=True)
        for engine in engines(given):
            if only and engine.name not in only:
                continue
            for line in told(engine, place, questions, given.sessions, given.kill):
                print(f"{engine.name:9} {line}", flush=True)


if __name__ == "__main__":
    main()
