"""One at a time: a lock that the system takes back when its holder dies."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ...schemas import content_hash


@contextmanager
def exclusive(folder: Path, name: str, waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of that name, after whoever holds it; `waiting` is told once who that is."""
    with _opened(folder, name) as file:
        told = False
        while holder := _taken(file):
            if not told:
                waiting(holder)
                told = True
            time.sleep(0.2)
        yield


@contextmanager
def shared(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock of that name beside others who share it, after whoever has it alone."""
    with _opened(folder, name) as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_SH)
        yield


@contextmanager
def attempt(folder: Path, name: str) -> Iterator[str | None]:
    """Hold the lock of that name where nobody does (None); else who holds it."""
    with _opened(folder, name) as file:
        yield _taken(file)


def _opened(folder: Path, name: str) -> TextIO:
    folder.mkdir(parents=True, exist_ok=True)
    readable = re.sub(r"[^\w.-]+", "-", name)[:60]
    return (folder / f"{readable}-{content_hash(name)[:8]}.lock").open("a+", encoding="utf-8")


def _taken(file: TextIO) -> str | None:
    """Take the lock; who holds it where that cannot be."""
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        return file.read().strip() or "unknown"
    file.truncate(0)
    file.write(f"process {os.getpid()}\n")
    file.flush()
    return None
