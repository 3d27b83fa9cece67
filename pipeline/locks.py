"""One at a time: a lock that the system takes back when its holder dies."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coaudit.schemas.base import content_hash


@contextmanager
def exclusive(folder: Path, name: str, waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of that name, after whoever holds it; `waiting` is told once who that is."""
    folder.mkdir(parents=True, exist_ok=True)
    readable = re.sub(r"[^\w.-]+", "-", name)[:60]
    path = folder / f"{readable}-{content_hash(name)[:8]}.lock"
    with path.open("a+", encoding="utf-8") as file:
        told = False
        while not _taken(file.fileno()):
            if not told:
                file.seek(0)
                waiting(file.read().strip() or "unknown")
                told = True
            time.sleep(0.2)
        file.truncate(0)
        file.write(f"process {os.getpid()}\n")
        file.flush()
        yield


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
