"""Processes that tests look for and wait for, by their numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def runs(pid: int) -> bool:
    """Whether a process is there and more than an entry that nobody has collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def below(pid: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    result: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in path.read_text(encoding="utf-8").split()]
        except OSError:
            continue
        result += [more for child in children for more in (child, *below(child))]
    return result


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Whether a condition came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return bool(condition())
