"""How fast, cheap, small and safe judging is, against a local endpoint; one command prints a table.

    .venv/bin/python benchmarks/judging.py [--quick] [--mock ../shared/bench/mock_llm.py]

The endpoint is tests/judges/endpoint.py as a process of its own (with --mock, that program beside it).
Every figure is of the command line as it is used: one `coaudit judge` process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.store import Store, Workspace
from coaudit.schemas import Action, Event, Participant, Trajectory, content_hash

ROOT = Path(__file__).resolve().parents[1]
PORT = 8930
TEAM = (Participant(name="human", kind="human"), Participant(name="agent", kind="agent"))
_CHATTER = "the plan of a trip with hotel flight budget day museum dinner please change keep write list"
WORDS = _CHATTER.split()


@dataclass(frozen=True)
class Run:
    """A finished `coaudit judge`: its summary, wall and CPU seconds, and peak memory in MB."""

    summary: dict[str, Any]
    wall: float
    cpu: float
    peak: float

    @property
    def rate(self) -> float:
        """Ratings a second while the endpoint was asked."""
        return float(self.summary["rated"]) / float(self.summary["seconds"])


def fill(folder: Path, sessions: int, utterances: int = 10, words: int = 12) -> None:
    """A workspace with sessions of made-up chatter, no two utterances the same."""
    store = Store(Workspace(folder))
    chance = random.Random(7)
    for start in range(0, sessions, 500):
        many = [_session(i, utterances, words, chance) for i in range(start, min(sessions, start + 500))]
        with store.writing() as connection:
            save(store, many, connection)
    store.sync()


def _session(number: int, utterances: int, words: int, chance: random.Random) -> Trajectory:
    events = [Event(seq=0, actor="agent", kind="action", action=Action(name="OPEN"), status="succeeded")]
    for seq in range(1, utterances + 1):
        text = f"{number}-{seq}: {' '.join(chance.choices(WORDS, k=words))}?"
        actor = TEAM[seq % 2].name
        events.append(Event(seq=seq, actor=actor, kind="message", text=text, status="succeeded"))
    key = content_hash(number)[:16]
    return Trajectory(
        id=key,
        native_id=f"session {number}",
        source="made up",
        system="bench",
        participants=TEAM,
        events=tuple(events),
    )


@contextmanager
def endpoint(*options: str, program: tuple[str, ...] = ("-m", "tests.judges.endpoint")) -> Iterator[str]:
    """A serving process; its URL up to /v1."""
    command = [sys.executable, *program, "--port", str(PORT), *options]
    server = subprocess.Popen(command, cwd=ROOT)
    url = f"http://127.0.0.1:{PORT}"
    try:
        for _ in range(100):
            try:
                stats(url)
                break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()


def stats(url: str) -> dict[str, Any]:
    """What the endpoint counted."""
    with urllib.request.urlopen(f"{url}/stats") as answer:
        counts: dict[str, Any] = json.load(answer)
    return counts


def command(folder: Path, url: str, *options: str) -> list[str]:
    """The command line of a judge run."""
    start = [sys.executable, "-P", "-m", "coaudit.pipeline", "--workspace", str(folder), "judge", "--json"]
    return [*start, "--model", "hosted_vllm/judge", "--api-base", f"{url}/v1", *options]


def judge(folder: Path, url: str, *options: str) -> Run:
    """Run it to its end, and measure."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen(
        command(folder, url, *options), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, _peak(process.pid))
        time.sleep(0.05)
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.stdout is not None
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(json.loads(process.stdout.read()), wall, cpu, peak)


def _peak(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if "VmHWM" in line), 0.0)


def speed(folder: Path, url: str, units: int) -> list[tuple[str, str, str]]:
    """Ratings a second, CPU a rating and memory."""
    idle = _startup(folder, url)
    run = judge(folder, url, "--codebook", "initiative")
    assert run.summary["rated"] == units and run.summary["errors"] == 0, run.summary
    return [
        (f"ratings/s, {units:,} units, 50 ms, 64 in flight", f"{run.rate:.0f}", ">= 1000"),
        ("CPU ms a rating, ledger and database included", f"{run.cpu * 1000 / units:.2f}", "<= 1"),
        ("the same without start-up", f"{(run.cpu - idle) * 1000 / units:.2f}", ""),
        ("peak RSS, MB", f"{run.peak:.0f}", "< 250"),
    ]


def _startup(folder: Path, url: str) -> float:
    return judge(folder, url, "--codebook", "initiative", "--limit", "1", "--seed", "5").cpu


def faults(folder: Path, units: int) -> list[tuple[str, str, str]]:
    """Every unit ends rated although the endpoint misbehaves."""
    wrong = ("--too-many", "0.1", "--broken", "0.02", "--cut-off", "0.02", "--malformed", "0.05")
    with endpoint(*wrong) as url:
        run = judge(folder, url, "--codebook", "initiative", "--seed", "2")
        counts = stats(url)
    assert run.summary["rated"] == units and run.summary["errors"] == 0, run.summary
    asked = f"{run.summary['rated']:,} of {units:,} in {counts['requests']:,} requests, {run.rate:.0f}/s"
    return [("10 % 429, 2 % 500, 2 % cut off, 5 % malformed: rated", asked, "all")]


def kills(folder: Path, units: int, times: int) -> list[tuple[str, str, str]]:
    """Kill the run at random moments; count what is lost or asked twice."""
    chance = random.Random(1)
    with endpoint() as url:
        for _ in range(times):
            process = subprocess.Popen(
                command(folder, url, "--codebook", "initiative", "--seed", "3"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            before = stats(url)["requests"]
            while process.poll() is None and stats(url)["requests"] == before:
                time.sleep(0.01)
            time.sleep(chance.uniform(0.0, 0.8 * units / 1000 / times))
            process.send_signal(signal.SIGKILL)
            process.wait()
        last = judge(folder, url, "--codebook", "initiative", "--seed", "3")
        counts = stats(url)
    done = last.summary["rated"] + last.summary["already"]
    assert done == units, last.summary
    twice = counts["asked_twice"]
    return [
        (f"{times} kills: rated in the end", f"{done:,} of {units:,}", "all"),
        ("asked twice in all (in flight at a kill)", f"{twice} ({twice / units:.2%})", f"<= {64 * times}"),
    ]


def prefixes(folder: Path) -> list[tuple[str, str, str]]:
    """The share of prompt characters that repeat the request before."""
    rows = []
    for name, options in (
        ("failures", ("--codebook", "failures")),
        ("initiative with transcript", ("--codebook", "initiative", "--context", "transcript")),
        ("initiative alone", ("--codebook", "initiative")),
    ):
        with endpoint() as url:
            judge(folder, url, *options, "--concurrency", "8")
            rows.append((f"repeated prefix, {name}", f"{stats(url)['prefix_share']:.1%}", ">= 80 %"))
    return rows


def main() -> None:
    """Measure all of it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a tenth of the units, 5 kills")
    options.add_argument(
        "--mock", type=Path, help="another program with mock_llm.py's options, for its speed"
    )
    given = options.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    sessions, times = (1_000, 5) if given.quick else (10_000, 20)
    rows: list[tuple[str, str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        large, small, few = (Path(name) / part for part in ("large", "small", "few"))
        fill(large, sessions)
        fill(small, sessions // 10)
        fill(few, 40, utterances=30, words=20)
        with endpoint() as url:
            rows += speed(large, url, sessions * 10)
        if given.mock:
            with endpoint("--latency-ms", "50", program=(str(given.mock),)) as url:
                run = judge(large, url, "--codebook", "initiative", "--seed", "4", "--limit", "20000")
            rows.append((f"ratings/s against {given.mock.name}", f"{run.rate:.0f}", ">= 1000"))
        rows += faults(small, sessions)
        rows += kills(small, sessions, times)
        rows += prefixes(few)
    for what, value, wanted in rows:
        print(f"{what:58} {value:>40}  {wanted}")


if __name__ == "__main__":
    main()
