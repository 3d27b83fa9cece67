"""Machines that write to one lake at once, of which some are killed, and others that look all the while."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.servers import Machine
from tests.studies import alone, tables

WRITERS, READERS = 4, 4

_READER = """
import contextlib, json, sys, time
from pathlib import Path
from typing import Any
from coaudit.pipeline.ingest.ready import ready
from coaudit.pipeline.store import Workspace

WRONG = '''
    SELECT 'doubled' AS what, id FROM trajectories GROUP BY id HAVING count(*) > 1
    UNION ALL SELECT 'doubled event', trajectory_id FROM events GROUP BY trajectory_id, seq, sub
        HAVING count(*) > 1
    UNION ALL SELECT 'torn', id FROM trajectories LEFT JOIN events ON trajectory_id = id
        GROUP BY id, n_events HAVING count(trajectory_id) <> n_events
    UNION ALL SELECT 'torn', id FROM trajectories WHERE id NOT IN (SELECT trajectory_id FROM computed)
    UNION ALL SELECT 'left over', trajectory_id FROM events WHERE trajectory_id NOT IN (
        SELECT id FROM trajectories)
'''
here, end = Workspace.at(None), Path(sys.argv[1])
looks, wrong, seen, longest = 0, [], [], 0.0
while not looks or not end.exists():
    began = time.monotonic()
    store = ready(here, str, lambda title: contextlib.nullcontext(lambda *so_far: None))
    with store.reading() as connection:
        wrong += connection.execute(WRONG).fetchall()
        seen += connection.execute("SELECT count(*) FROM trajectories").fetchone()
    longest = max(longest, time.monotonic() - began)
    looks += 1
    time.sleep(0.2)
print(json.dumps({"looks": looks, "wrong": wrong, "seen": seen, "longest": longest}))
raise SystemExit(0)
"""


@dataclass
class Storm:
    """What was counted of a storm; waits are in seconds."""

    ingested: int = 0
    killed: int = 0
    rebuilds: int = 0
    commits: int = 0
    looks: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    """What was lost, doubled, torn or left over, as readers saw it and in the tables at the end."""
    longest_look: float = 0.0
    longest_command: float = 0.0
    """Of those that were not killed."""


def storm(
    folder: Path,
    machines: Sequence[Machine],
    parts: Sequence[Path],
    *,
    kills: Sequence[float],
    catalog: str,
    seconds: float | None = None,
) -> Storm:
    """Four machines ingest the parts, four look, one rebuilds, until all is ingested or the time is over.

    The first two writers in turn are killed so many seconds after the beginning, in the midst of what they
    do, and do it again. At the end the tables are compared with those of one machine that read the same.
    """
    writers, readers, rebuilder = machines[:WRITERS], machines[WRITERS:-1], machines[-1]
    writers[-1].run("ingest", parts[0])  # so that readers have something to look at
    told, before, end = Storm(ingested=1), _commits(catalog), folder / "end"
    for reader in readers:
        reader.changed = _READER
    looking = [reader.start(end) for reader in readers]
    turn = _Turn(told, parts, seconds)
    try:
        with ThreadPoolExecutor(WRITERS + 1) as pool:
            targets = [kills[::2], kills[1::2], (), ()]
            tasks = zip(writers, targets, strict=True)
            writing = [pool.submit(turn.write, writer, times) for writer, times in tasks]
            rebuilding = pool.submit(turn.rebuild, rebuilder, writing)
            for task in (*writing, rebuilding):
                task.result()
    finally:
        end.touch()
        seen = [_told(reader) for reader in looking]
    for one in seen:
        told.looks += one["looks"]
        told.longest_look = max(told.longest_look, one["longest"])
        told.wrong.update(what for what, _ in one["wrong"])
        told.wrong.update("went" for a, b in zip(one["seen"], one["seen"][1:], strict=False) if b < a)
    told.commits = _commits(catalog) - before
    expected = alone(folder, turn.done)
    for machine in (writers[0], rebuilder):
        told.wrong.update(_differing(expected, tables(machine)))
    return told


class _Turn:
    """What is left to ingest, and what was."""

    def __init__(self, told: Storm, parts: Sequence[Path], seconds: float | None) -> None:
        self.done = [parts[0]]
        self._told = told
        self._left = list(parts[1:])
        self._began = time.monotonic()
        self._seconds = seconds
        self._alone = threading.Lock()

    def write(self, writer: Machine, kills: Sequence[float]) -> None:
        """Ingest one part after the other."""
        left = list(kills)
        while part := self._next():
            self._ingest(writer, part, left)

    def _ingest(self, writer: Machine, part: Path, kills: list[float]) -> None:
        """Ingest a part, as often as it takes."""
        while True:
            began = time.monotonic()
            process = writer.start("ingest", part)
            limit = self._began + kills[0] - began if kills else None
            try:
                _, complaint = process.communicate(timeout=None if limit is None else max(limit, 0.0))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
                del kills[0]
                with self._alone:
                    self._told.killed += 1
                continue
            assert process.returncode == 0, complaint
            with self._alone:
                self._told.ingested += 1
                self._told.longest_command = max(self._told.longest_command, time.monotonic() - began)
                self.done.append(part)
            return

    def rebuild(self, machine: Machine, writing: Sequence[Future[None]]) -> None:
        """Rebuild again and again while others write, and once afterwards."""
        over = False
        while not over:
            over = all(task.done() for task in writing)
            machine.run("rebuild")
            self._told.rebuilds += 1

    def _next(self) -> Path | None:
        with self._alone:
            over = self._seconds is not None and time.monotonic() - self._began > self._seconds
            return self._left.pop() if self._left and not over else None


def _told(reader: subprocess.Popen[str]) -> dict[str, Any]:
    out, complaint = reader.communicate()
    assert reader.returncode == 0, complaint
    told: dict[str, Any] = json.loads(out)
    return told


def _differing(expected: dict[str, list[str]], there: dict[str, list[str]]) -> Counter[str]:
    """Rows that are missing or there once too often."""
    wanted, got = (
        Counter((name, row) for name, rows in kept.items() for row in rows) for kept in (expected, there)
    )
    return Counter({"lost": (wanted - got).total(), "doubled or strange": (got - wanted).total()}) + Counter()


def _commits(catalog: str) -> int:
    import psycopg

    with psycopg.connect(catalog) as connection:
        there = connection.execute("SELECT to_regclass('ducklake_snapshot')").fetchone()
        if not there or there[0] is None:
            return 0
        (count,) = connection.execute("SELECT max(snapshot_id) FROM ducklake_snapshot").fetchone() or (0,)
    return int(count)
