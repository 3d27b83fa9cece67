"""A program that holds another one, and ends it with all that came of it when its own caller is gone.

`python guard.py COMMAND…` with a pipe as stdin, whose other end the caller keeps: it closes when the caller
ends, whatever ended it, `kill -9` too. Then, or when the command ends by itself, the guard ends every
process below it. On Linux it is the subreaper of all of them, so that none escapes by losing its parent;
elsewhere it ends its process group. Nothing but the standard library: it starts in hundredths of a second.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

GRACE = 10.0
"""Seconds that the command has to end by itself."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LINUX = sys.platform.startswith("linux")


ENDING_SECONDS = 30.0


FOLDER = "COAUDIT_GUARD_FOLDER"
"""Environment variable: a folder that is deleted when all is ended."""


def hold(
    command: list[str], log: Path, environment: dict[str, str], folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """A command under a guard that writes into a file; in a session of its own, since Ctrl-C is not for it.

    What it left in `folder` is deleted after it. Raises OSError where the log cannot be written.
    """
    environment = environment | ({FOLDER: str(folder)} if folder else {})
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-I", __file__, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={**os.environ, **environment},
            start_new_session=True,
        )


def release(process: subprocess.Popen[bytes]) -> None:
    """End what a guard holds."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a file."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "(no log)"
    return "\n".join(line[:300] for line in text.splitlines()[-lines:])


def main(command: list[str]) -> int:
    """Run a command until stdin closes; its status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if LINUX:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_begin)
    while child.poll() is None and not _is_closed(0.2):
        pass
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    _end_all(child)
    if folder := os.environ.get(FOLDER):
        shutil.rmtree(folder, ignore_errors=True)
    status = child.returncode or 0
    return status if status >= 0 else 128 - status


def _begin() -> None:
    """In the new process, before the command."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if LINUX:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _is_closed(seconds: float) -> bool:
    """Whether the caller is gone, waited for so long."""
    readable, _, _ = select.select([0], [], [], seconds)
    return bool(readable) and not os.read(0, 4096)


def _end_all(child: subprocess.Popen[bytes]) -> None:
    """Every process below this one; those that turn up meanwhile too."""
    if not LINUX:
        if child.poll() is None:
            child.kill()
        os.killpg(os.getpgrp(), signal.SIGKILL)
        return
    deadline = time.monotonic() + GRACE
    while (below := _below(os.getpid())) and time.monotonic() < deadline:
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
        child.poll()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _below(pid: int) -> list[int]:
    """Children of a process, their children, and so on."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    result, new = [], [pid]
    while new:
        new = [child for parent in new for child in children.get(parent, ())]
        result += new
    return result


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
