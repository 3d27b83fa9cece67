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

    def __init__(self, code: str, *arguments: str | Path) -> None:
        command = [sys.executable, "-P", "-c", code, *map(str, arguments)]
        began, before = time.perf_counter(), os.times()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.mib = 0.0
        watch = threading.Thread(target=self._watch, args=(process,), daemon=True)
        watch.start()
        out, err = process.communicate()
        after = os.times()
        self.wall = time.perf_counter() - began
        self.cpu = sum(after[2:4]) - sum(before[2:4])
        if process.returncode:
            raise SystemExit(err.decode())
        watch.join()
        self.out = out.decode()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            self.mib = max(self.mib, sum(map(_pss, [process.pid, *_below(process.pid)])))
            time.sleep(0.05)


def _below(pid: int) -> Iterable[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from _below(child)


def _pss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
