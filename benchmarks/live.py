"""Soak: many sessions at a steady rate through a real Redis, followed with a judge, a dashboard beside it.

    .venv/bin/python benchmarks/live.py [--seconds 120] [--rate 500]

Measures events per second, the time from publishing an event to its being visible to a reader of the
store, failed reads, lost events, and the follower's memory over time.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from redis import Redis

from coaudit.pipeline.errors import CoauditError
from coaudit.pipeline.store import Store, Workspace

ROOT = Path(__file__).resolve().parents[1]
QUERY = """
    SELECT t.condition, count(*), (SELECT count(*) FROM events WHERE NOT live_only),
        (SELECT count(*) FROM current_ratings WHERE label = 'yes')
    FROM trajectories t GROUP BY 1
"""

MESSAGES = "SELECT text FROM events WHERE kind = 'message' AND text LIKE '%: shall I go on?'"


@dataclass
class Looked:
    """What a reader in a process of its own saw."""

    seen: dict[str, float] = field(default_factory=dict)
    """Text of a message -> when it was first seen."""
    reads: list[float] = field(default_factory=list)
    """How long each read took, waiting included, in seconds."""
    failed: list[str] = field(default_factory=list)


@dataclass
class Soak:
    """What was measured."""

    seconds: float
    rate: float
    published: dict[str, float] = field(default_factory=dict)
    """Text of a message -> when it was published."""
    looked: Looked = field(default_factory=lambda: Looked())
    memory: list[float] = field(default_factory=list)
    """MiB of the follower, once a second."""
    missing: int = 0
    rated: int = 0
    cpu: float = 0.0
    """Seconds of processor time that the follower took."""

    def document(self) -> dict[str, float | int]:
        """The figures."""
        reads, seen = self.looked.reads, self.looked.seen
        lags = sorted(seen[text] - at for text, at in self.published.items() if text in seen)
        half = len(self.memory) // 2
        return {
            "events": len(self.published),
            "events_per_second": round(len(self.published) / self.seconds, 1),
            "lost": self.missing,
            "visible_p50": round(statistics.median(lags), 3),
            "visible_p99": round(lags[int(len(lags) * 0.99)], 3),
            "visible_max": round(lags[-1], 3),
            "reads": len(reads),
            "failed_reads": len(self.looked.failed),
            "read_p50": round(statistics.median(reads), 3),
            "read_max": round(max(reads), 3),
            "memory_half": round(self.memory[half]),
            "memory_end": round(self.memory[-1]),
            "rated": self.rated,
            "follower_cpu_share": round(self.cpu / self.seconds, 2),
        }


def soak(seconds: float, rate: float, workspace: Path, *, length: int = 40) -> Soak:
    """Run it: a Redis, a follower with a judge, a publisher, and a reader as a dashboard would be."""
    measured = Soak(seconds, rate)
    server, port = _redis(workspace.parent)
    follower = _follower(workspace, port)
    try:
        _until(lambda: Redis(port=port).pubsub_numpat() > 0)
        done = threading.Event()
        watching = threading.Thread(target=_memory, args=(follower.pid, measured, done))
        watching.start()
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as reader:
            looking = reader.submit(_dashboard, workspace)
            _publish(port, measured, length)
            expected = workspace.parent / "expected"
            expected.with_suffix(".new").write_text(str(len(measured.published)))
            expected.with_suffix(".new").rename(expected)
            measured.looked = looking.result()
        done.set()
        watching.join()
        follower.send_signal(signal.SIGTERM)
        out, _ = follower.communicate(timeout=60)
        measured.rated = json.loads(out)["rated"]
    finally:
        follower.kill()
        server.kill()
        server.wait()
    measured.missing = len(set(measured.published) - _texts(workspace))
    return measured


def _publish(port: int, measured: Soak, length: int) -> None:
    """Sessions of `length` messages, 20 at a time, at a steady rate of messages."""
    sys.path.insert(0, str(ROOT))
    from tests.pipeline.follow.emulator import AGENT, USER, Env

    began, sent, number = time.monotonic(), 0, 0
    with Redis(port=port) as client:

        def publish(channel: str, payload: str) -> None:
            client.publish(channel, payload.encode())

        running: list[tuple[Env, int]] = []
        while time.monotonic() - began < measured.seconds:
            while len(running) < 20:
                env = Env(f"env_travel_planning_{number}", publish, query=f"Trip {number}", max_steps=10**6)
                env.clock = time.time()
                env.start()
                running.append((env, 0))
                number += 1
            for place, (env, step) in enumerate(running):
                text = f"{env.name} {step}: shall I go on?"
                measured.published[text] = time.monotonic()
                env.clock = time.time()
                env.step((AGENT, USER)[step % 2], f"SEND_TEAMMATE_MESSAGE(message={text})")
                running[place] = (env, step + 1)
                sent += 1
                time.sleep(max(0.0, began + sent / measured.rate - time.monotonic()))
            for env, _ in (one for one in running if one[1] >= length):
                env.step(USER, "FINISH()")
            running = [one for one in running if one[1] < length]


def _dashboard(workspace: Path) -> Looked:
    """What a page does, over and over: a few numbers, and the newest messages; until all are seen."""
    store, looked, stop_at = Store(Workspace(workspace)), Looked(), math.inf
    expected = workspace.parent / "expected"
    while time.monotonic() < stop_at:
        began = time.monotonic()
        try:
            with store.reading() as connection:
                connection.execute(QUERY).fetchall()
                found = connection.execute(MESSAGES).fetchall()
        except CoauditError as error:
            # Before the first event there is no workspace to read.
            if looked.seen:
                looked.failed.append(str(error))
            time.sleep(0.1)
            continue
        at = time.monotonic()
        looked.reads.append(at - began)
        for (text,) in found:
            looked.seen.setdefault(text, at)
        if expected.exists():
            stop_at = min(stop_at, at + 20)
            if len(looked.seen) >= int(expected.read_text()):
                break
        time.sleep(0.2)
    return looked


def _memory(process: int, measured: Soak, done: threading.Event) -> None:
    while not done.wait(1.0):
        fields = Path(f"/proc/{process}/statm").read_text().split()
        measured.memory.append(int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20)
        user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
        measured.cpu = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _texts(workspace: Path) -> set[str]:
    with Store(Workspace(workspace)).reading() as connection:
        return {row[0] for row in connection.execute(MESSAGES).fetchall()}


def _redis(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _until(lambda: _answers(port))
    return process, port


def _answers(port: int) -> bool:
    try:
        return bool(Redis(port=port).ping())
    except OSError:
        return False
    except Exception:  # redis.ConnectionError is no OSError
        return False


def _follower(workspace: Path, port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "--workspace", str(workspace), "follow"]
    target = [f"redis://127.0.0.1:{port}/0", "--judge", "initiative", "--judge", "halting", "--json"]
    return subprocess.Popen([*command, *target], stdout=subprocess.PIPE, text=True)


def _until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not so after {seconds} s")
        time.sleep(0.05)


def main() -> None:
    """Print the figures as one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--rate", type=float, default=500.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = soak(given.seconds, given.rate, Path(folder) / "workspace")
    print(json.dumps(measured.document(), indent=2))


if __name__ == "__main__":
    main()
