"""Soak: many sessions at a steady rate through a real Redis, followed with a judge, a dashboard beside it.

    .venv/bin/python benchmarks/live.py [--seconds 120] [--rate 500] [--sessions 20] [--large 0] [--kills 0]
    .venv/bin/python benchmarks/live.py --soak        ten minutes: 1,000 sessions, 10 MB, Redis killed twice

Measures events per second, the time from publishing an event to its being visible to a reader of the
store, failed reads, lost events, and the follower's memory over time. With `--large` a session's last message
every two seconds has so many megabytes; with `--kills` Redis is killed so often, evenly spread, and started
again two seconds later. Environments answer requests for their state, as Co-Gym's do. Of the events that
happened, `refused` ones were published while no Redis was there; `lost` are not in the store at the end.
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
from collections import deque
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis import ConnectionError as Gone
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from coaudit.pipeline.errors import CoauditError
from coaudit.pipeline.store import Store, Workspace

ROOT = Path(__file__).resolve().parents[1]
QUERY = """
    SELECT t.condition, count(*), (SELECT count(*) FROM events WHERE NOT live_only),
        (SELECT count(*) FROM current_ratings WHERE label = 'yes')
    FROM trajectories t GROUP BY 1
"""

MESSAGES = "SELECT regexp_extract(text, '^[^?]*: shall I go on[?]') FROM events WHERE kind = 'message'"
"""What a publisher calls its messages, without what makes one of them large."""
PROBES = "SELECT text FROM events WHERE kind = 'message' AND text LIKE '%0: shall I go on?'"
"""Those of every tenth step of a session, whose way to a reader is timed."""
AWAY, LARGE_EVERY = 2.0, 2.0
"""Seconds for which Redis is gone, and from one large message to the next."""


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
    refused: set[str] = field(default_factory=set)
    """Those that found no Redis."""
    larges: int = 0
    told: dict[str, int] = field(default_factory=dict)
    """The follower's own summary."""
    cut_off: int = 0
    """How often the follower was without Redis, kills included."""
    looked: Looked = field(default_factory=lambda: Looked())
    memory: list[float] = field(default_factory=list)
    """MiB of the follower and the process that listens for it, once a second."""
    stopping: float = 0.0
    """Seconds from the signal to the end."""
    missing: int = 0
    missing_accepted: int = 0
    """Of the missing ones, those that Redis had taken."""
    missing_unsaid: int = 0
    """Those of sessions in the store that nothing there says to have gaps."""
    missing_unknown: int = 0
    """Those of sessions that the store does not know."""
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
            "refused": len(self.refused),
            "large_messages": self.larges,
            "lost": self.missing,
            "lost_that_redis_took": self.missing_accepted,
            "lost_of_sessions_without_a_mark": self.missing_unsaid,
            "lost_of_sessions_never_heard": self.missing_unknown,
            "recovered": self.told["recovered"],
            "missed": self.told["missed"],
            "unsettled": self.told["unsettled"],
            "cut_off": self.cut_off,
            "quarantined": self.told["quarantined"],
            "visible_p50": round(statistics.median(lags), 3),
            "visible_p99": round(lags[int(len(lags) * 0.99)], 3),
            "visible_max": round(lags[-1], 3),
            "reads": len(reads),
            "failed_reads": len(self.looked.failed),
            "read_p50": round(statistics.median(reads), 3),
            "read_max": round(max(reads), 3),
            "seconds_to_stop": round(self.stopping, 1),
            "memory_half": round(self.memory[half]),
            "memory_end": round(self.memory[-1]),
            "memory_most": round(max(self.memory)),
            "rated": self.told["rated"],
            "follower_cpu_share": round(self.cpu / self.seconds, 2),
        }


def soak(
    seconds: float,
    rate: float,
    workspace: Path,
    *,
    length: int = 40,
    sessions: int = 20,
    large: float = 0.0,
    kills: int = 0,
) -> Soak:
    """Run it: a Redis, a follower with a judge, a publisher, and a reader as a dashboard would be.

    `sessions` at once of `length` messages each; `large` in megabytes.
    """
    measured = Soak(seconds, rate)
    server = Server(workspace.parent)
    follower = _follower(workspace, server.port)
    try:
        _until(lambda: server.answers() and Redis(port=server.port).pubsub_numpat() > 0)
        done = threading.Event()
        watching = threading.Thread(target=_memory, args=(follower.pid, measured, done))
        watching.start()
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as reader:
            looking = reader.submit(_dashboard, workspace)
            publisher = Publisher(server, measured, length, sessions, large, kills)
            publisher.run()
            expected = workspace.parent / "expected"
            probes = [text for text in measured.published if text.endswith("0: shall I go on?")]
            expected.with_suffix(".new").write_text(str(len(probes)))
            expected.with_suffix(".new").rename(expected)
            while not looking.done():
                publisher.answer()
                time.sleep(0.05)
            measured.looked = looking.result()
        done.set()
        watching.join()
        follower.send_signal(signal.SIGTERM)
        told = time.monotonic()
        out, _ = follower.communicate(timeout=900)
        measured.stopping = time.monotonic() - told
        measured.told = json.loads(out)
    finally:
        follower.kill()
        server.kill()
    measured.cut_off = _away(workspace)
    missing = set(measured.published) - _texts(workspace)
    measured.missing, measured.missing_accepted = len(missing), len(missing - measured.refused)
    heard = _heard(workspace)
    marks = [heard.get(text.partition(" ")[0]) for text in missing]
    measured.missing_unsaid, measured.missing_unknown = marks.count("whole"), marks.count(None)
    return measured


class Server:
    """A redis-server that is killed and started again on its port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.start()

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--save", "", "--bind", "127.0.0.1"]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def answers(self) -> bool:
        try:
            return bool(Redis(port=self.port).ping())
        except (OSError, Gone):
            return False


class Publisher:
    """Sessions of `length` messages, so many at once, at a steady rate; it kills Redis as well."""

    def __init__(
        self, server: Server, measured: Soak, length: int, sessions: int, large: float, kills: int
    ) -> None:
        sys.path.insert(0, str(ROOT))
        from tests.pipeline.follow.emulator import AGENT, USER, Env

        self.team, self.make = (AGENT, USER), Env
        self.server, self.measured, self.length, self.sessions = server, measured, length, sessions
        self.padding = "x" * int(large * 1e6)
        self.kills = deque(measured.seconds * (n + 1) / (kills + 1) for n in range(kills))
        self.client = Redis(port=server.port, retry=Retry(NoBackoff(), 0))
        self.running: dict[str, tuple[Any, int]] = {}
        self.asked: deque[str] = deque()
        self.number, self.back, self.larges_from = 0, math.inf, LARGE_EVERY
        self.refusing = False
        threading.Thread(target=self._listen, daemon=True).start()

    def run(self) -> None:
        began, sent = time.monotonic(), 0
        while time.monotonic() - began < self.measured.seconds:
            self._fill()
            for name in list(self.running):
                self._redis(time.monotonic() - began)
                self._say(name, time.monotonic() - began)
                self.answer()
                sent += 1
                time.sleep(max(0.0, began + sent / self.measured.rate - time.monotonic()))
                if time.monotonic() - began > self.measured.seconds:
                    break

    def answer(self) -> None:
        """Tell the state of the sessions that were asked."""
        while self.asked:
            env, _ = self.running.get(self.asked.popleft(), (None, 0))
            if env is not None:
                env.answer(self.team[0])

    def _fill(self) -> None:
        while len(self.running) < self.sessions:
            name = f"env_travel_planning_{self.number}"
            env = self.make(name, self._publish, query=f"Trip {self.number}", max_steps=10**6)
            env.clock = time.time()
            env.start()
            # Sessions end one after the other, not all at once.
            self.running[name] = env, (self.number % self.length if self.number < self.sessions else 0)
            self.number += 1

    def _say(self, name: str, at: float) -> None:
        env, step = self.running[name]
        text = f"{name} {step}: shall I go on?"
        whole, env.clock, self.refusing = text, time.time(), False
        if step == self.length - 1 and self.padding and at > self.larges_from:
            whole, self.larges_from = f"{text} {self.padding}", at + LARGE_EVERY
            self.measured.larges += 1
        self.measured.published[text] = time.monotonic()
        env.step(self.team[step % 2], f"SEND_TEAMMATE_MESSAGE(message={whole})")
        if self.refusing:
            self.measured.refused.add(text)
        self.running[name] = env, step + 1
        if step + 1 >= self.length:
            env.step(self.team[1], "FINISH()")
            del self.running[name]

    def _publish(self, channel: str, payload: str) -> None:
        try:
            self.client.publish(channel, payload.encode())
        except (OSError, Gone):
            self.refusing = True

    def _redis(self, at: float) -> None:
        if self.kills and at > self.kills[0]:
            self.kills.popleft()
            self.server.kill()
            self.back = at + AWAY
        if at > self.back:
            self.back = math.inf
            self.server.start()

    def _listen(self) -> None:
        while True:
            try:
                with Redis(port=self.server.port) as client, client.pubsub() as requests:
                    requests.psubscribe("env_*/*/request_state")
                    for message in requests.listen():
                        if message["type"] == "pmessage":
                            self.asked.append(message["channel"].decode().partition("/")[0])
            except (OSError, Gone):
                time.sleep(0.1)


def _dashboard(workspace: Path) -> Looked:
    """What a page does, over and over: a few numbers, and the newest messages; until all are seen."""
    store, looked, stop_at = Store(Workspace(workspace)), Looked(), math.inf
    expected = workspace.parent / "expected"
    while time.monotonic() < stop_at:
        began = time.monotonic()
        try:
            with store.reading() as connection:
                connection.execute(QUERY).fetchall()
                found = connection.execute(PROBES).fetchall()
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
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        pages = ticks = 0
        for one in (process, *children):
            with suppress(OSError):
                pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
                ticks += sum(
                    map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13])
                )
        measured.memory.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
        measured.cpu = ticks / os.sysconf("SC_CLK_TCK")


def _texts(workspace: Path) -> set[str]:
    with Store(Workspace(workspace)).reading() as connection:
        return {row[0] for row in connection.execute(MESSAGES).fetchall()}


def _heard(workspace: Path) -> dict[str, str]:
    """Session -> how well it was heard, as the store has it."""
    query = (
        "SELECT native_id, text FROM outcomes JOIN trajectories ON id = trajectory_id WHERE name = 'heard'"
    )
    with Store(Workspace(workspace)).reading() as connection:
        return dict(connection.execute(query).fetchall())


def _away(workspace: Path) -> int:
    """How often the follower noted that it had been away."""
    away = 0
    for path in (workspace / "raw" / "live").rglob("*.jsonl"):
        with path.open() as lines:
            away += sum('"note": {"away"' in line[:200] for line in lines)
    return away


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
    parser.add_argument("--sessions", type=int, default=20, help="at once")
    parser.add_argument("--large", type=float, default=0.0, help="megabytes of a message every two seconds")
    parser.add_argument("--kills", type=int, default=0, help="of Redis")
    parser.add_argument("--soak", action="store_true", help="600 s, 1,000 sessions, 10 MB, two kills")
    given = parser.parse_args()
    if given.soak:
        given.seconds, given.sessions, given.large, given.kills = 600.0, 1000, 10.0, 2
    with tempfile.TemporaryDirectory() as folder:
        measured = soak(
            given.seconds,
            given.rate,
            Path(folder) / "workspace",
            sessions=given.sessions,
            large=given.large,
            kills=given.kills,
        )
    print(json.dumps(measured.document(), indent=2))


if __name__ == "__main__":
    main()
