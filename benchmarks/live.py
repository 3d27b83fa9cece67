"""Soak: many sessions at a steady rate through a real Redis, followed with a judge, a dashboard beside it.

    .venv/bin/python benchmarks/live.py [--seconds 120] [--rate 500]

Measures events per second, the time from publishing an event to its being visible to a reader of the
store, failed reads, lost events, and the follower's memory over time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from redis import Redis

from coaudit.pipeline.errors import CoauditError
from coaudit.pipeline.store import Store
from coaudit.pipeline.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
QUERY = """
    SELECT t.condition, count(*), (SELECT count(*) FROM events WHERE NOT live_only),
        (SELECT count(*) FROM current_ratings WHERE label = 'yes')
    FROM trajectories t GROUP BY 1
"""


@dataclass
class Soak:
    """What was measured."""

    seconds: float
    rate: float
    published: dict[str, float] = field(default_factory=dict)
    """Text of a message -> when it was published."""
    visible: dict[str, float] = field(default_factory=dict)
    """Text of a message -> how long until a reader saw it, in seconds."""
    reads: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    """MiB of the follower, once a second."""
    missing: int = 0
    rated: int = 0
    cpu: float = 0.0
    """Seconds of processor time that the follower took."""

    def document(self) -> dict[str, float | int]:
        """The figures."""
        lags = sorted(self.visible.values())
        half = len(self.memory) // 2
        return {
            "events": len(self.published),
            "events_per_second": round(len(self.published) / self.seconds, 1),
            "lost": self.missing,
            "visible_p50": round(statistics.median(lags), 3),
            "visible_p99": round(lags[int(len(lags) * 0.99)], 3),
            "visible_max": round(lags[-1], 3),
            "reads": len(self.reads),
            "failed_reads": len(self.failed),
            "read_p50": round(statistics.median(self.reads), 3),
            "read_max": round(max(self.reads), 3),
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
        threads = [
            threading.Thread(target=_dashboard, args=(workspace, measured, done)),
            threading.Thread(target=_memory, args=(follower.pid, measured, done)),
        ]
        for thread in threads:
            thread.start()
        _publish(port, measured, length)
        _until(lambda: len(measured.visible) >= len(measured.published), 20, or_else=True)
        done.set()
        for thread in threads:
            thread.join()
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
    from tests.pipeline.live.emulator import AGENT, USER, Env

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


def _dashboard(workspace: Path, measured: Soak, done: threading.Event) -> None:
    """What a page does, over and over: a few numbers, and the newest messages."""
    store = Store(Workspace(workspace))
    while not done.is_set():
        began = time.monotonic()
        try:
            with store.reading() as connection:
                connection.execute(QUERY).fetchall()
                found = connection.execute("SELECT text FROM events WHERE kind = 'message'").fetchall()
        except CoauditError as error:
            # Before the first event there is no workspace to read.
            if measured.visible:
                measured.failed.append(str(error))
            time.sleep(0.1)
            continue
        seen = time.monotonic()
        measured.reads.append(seen - began)
        for (text,) in found:
            if text in measured.published and text not in measured.visible:
                measured.visible[text] = seen - measured.published[text]
        time.sleep(0.2)


def _memory(process: int, measured: Soak, done: threading.Event) -> None:
    while not done.wait(1.0):
        fields = Path(f"/proc/{process}/statm").read_text().split()
        measured.memory.append(int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20)
        user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
        measured.cpu = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _texts(workspace: Path) -> set[str]:
    with Store(Workspace(workspace)).reading() as connection:
        return {
            row[0] for row in connection.execute("SELECT text FROM events WHERE kind = 'message'").fetchall()
        }


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


def _until(condition: object, seconds: float = 60.0, *, or_else: bool = False) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            if or_else:
                return
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
