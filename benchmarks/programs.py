"""Programs run and measured: time by the clock and the processors, and memory of all their processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

OURS = "from coaudit.pipeline.cli.main import main; main()"
"""The command line, as `Run` takes a program."""


class Run:
    """What one program took: wall and CPU seconds, and the most memory of all its processes (PSS, MiB)."""

    def __init__(self, code: str, *arguments: str | Path, python: str | Path = sys.executable) -> None:
        command = [str(python), "-P", "-c", code, *map(str, arguments)]
        began, before = time.perf_counter(), os.times()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.mib = 0.0
        self._seen: dict[int, float] = {}
        watch = threading.Thread(target=self._watch, args=(process,), daemon=True)
        watch.start()
        out, err = process.communicate()
        after = os.times()
        self.wall = time.perf_counter() - began
        waited_for = sum(after[2:4]) - sum(before[2:4])
        if process.returncode:
            raise SystemExit(err.decode())
        watch.join()
        self.cpu = max(waited_for, sum(self._seen.values()))  # Spark's JVM is waited for by nobody
        self.out = out.decode()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            there = [process.pid, *below(process.pid)]
            self.mib = max(self.mib, sum(map(pss, there)))
            self._seen |= {pid: used for pid in there if (used := seconds(pid))}
            time.sleep(0.05)


def below(pid: int) -> Iterable[int]:
    """The processes that one started, in whichever of its threads, and those that they did."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return  # it is gone
    for thread in threads:
        try:
            children = Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from below(child)


def pss(pid: int) -> float:
    """A process's memory in MiB, what it shares counted in part; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def seconds(pid: int) -> float:
    """CPU seconds of a process so far; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
