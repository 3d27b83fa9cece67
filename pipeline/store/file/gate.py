"""Turns of processes at a DuckDB file: a process that waits to write goes before those that come to read.

DuckDB admits a reader beside other readers: those who come one after another would keep a writer out for
good. The gate is a lock on a file beside the database, which the system takes back when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

COURTESY = 10.0
"""Seconds that a reader lets writers go first. Then it goes on, for a writer may wait for the very process
that waits for this one; and for as long again no reader of its process waits: a page of a dashboard opens the
file several times, each time beside the long report that a writer waits for."""


class Gate:
    """The gate of one file, by the path of its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open_until = 0.0
        """When (monotonic seconds) the readers of this process have to wait again for writers."""

    @contextmanager
    def close(self, patience: float) -> Iterator[Callable[[], None]]:
        """Keep new readers out until the yielded function is called, from when on the file itself keeps them
        out.

        Without effect where another writer keeps the gate closed for longer than `patience` seconds, and
        where it cannot be locked.
        """
        with ExitStack() as stack:
            with suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(_open_file(self.path, os.O_RDWR | os.O_CREAT))
                _try_lock(file, fcntl.LOCK_EX, patience)
                # A process that was forked meanwhile has the file open, too.
                stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
            yield stack.close

    def pass_through(self) -> None:
        """Return once nobody waits to write, or after COURTESY seconds; at once where nobody ever wrote."""
        if time.monotonic() < self._open_until:
            return
        with suppress(OSError), _open_file(self.path, os.O_RDONLY) as file:
            if not _try_lock(file, fcntl.LOCK_SH, COURTESY):
                self._open_until = time.monotonic() + COURTESY
            fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def _open_file(path: Path, flags: int) -> Iterator[int]:
    with closing(os.fdopen(os.open(path, flags | os.O_NOFOLLOW, 0o666))) as file:
        yield file.fileno()


def _try_lock(file: int, operation: int, patience: float) -> bool:
    """Take a lock within `patience` seconds; whether it was to be had."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(random.uniform(0.01, 0.06))
        else:
            return True
