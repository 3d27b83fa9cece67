"""Turns of the threads of one process at a DuckDB file, and then at its gate with those of other processes.

Within a process DuckDB has no reader beside a writer, and any number of writers, whose changes collide.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from ...errors import StoreError
from .. import connection
from .gate import Gate

COURTESY = 2.0
"""Seconds that a reader lets writers go first: those who read one after another would keep them out for good.
Then it goes on, for a writer may wait for the very thread that waits for this one."""

Release = Callable[[], None]
"""Called once the connection is open. Beside one that reads, others come in from then on; beside one that
writes, new readers wait at the file itself."""


class OpenCount(threading.local):
    """How many connections one thread has open, by what they do."""

    def __init__(self) -> None:
        self.count = Counter[str]()


class Turns:
    """The turns at one file; without a gate where no other process opens it."""

    def __init__(self, gate: Gate | None) -> None:
        self._gate = gate
        self._writer = threading.RLock()
        self._writing = self._written = 0
        self._open = OpenCount()

    @contextmanager
    def writing(self, path: Path) -> Iterator[Release]:
        """Write after other writers; StoreError where none of them ends in time, or where this thread is
        reading."""
        count = self._written
        with self._count_access(path, "writes", never_beside="reads"):
            while not self._writer.acquire(timeout=connection.PATIENCE):
                if self._written == count:
                    raise connection.busy_error(str(path))
                count = self._written
            gate = self._gate.close(connection.PATIENCE) if self._gate else nullcontext(_nothing)
            self._writing += 1
            try:
                with gate as release:
                    yield release
            finally:
                self._writing -= 1
                self._written += 1
                self._writer.release()

    @contextmanager
    def reading(self, path: Path) -> Iterator[Release]:
        """Read, after those who wait to write; StoreError where this thread is writing."""
        first = not self._open.count["reads"]
        with self._count_access(path, "reads", never_beside="writes"), ExitStack() as entrance:
            # A second read of this thread must not wait: writers may be waiting for its first to end.
            if first and self._writer.acquire(timeout=COURTESY):
                entrance.callback(self._writer.release)
            # A gate that a thread of this process keeps closed has been waited for above.
            if first and self._gate and not self._writing:
                self._gate.pass_through()
            yield entrance.close

    @contextmanager
    def _count_access(self, path: Path, access: str, *, never_beside: str) -> Iterator[None]:
        """Count one more connection of this thread; StoreError beside one that it would wait for itself to
        close."""
        count = self._open.count
        if count[never_beside]:
            raise StoreError(
                f"{path}: this thread {never_beside} and can do nothing else meanwhile "
                f"(`with ws.store.{_BLOCKS[never_beside]}()` ends with its block)"
            )
        count[access] += 1
        try:
            yield
        finally:
            count[access] -= 1


def _nothing() -> None: ...


_BLOCKS = {"reads": "reading", "writes": "writing"}
_turns: dict[tuple[int, str], Turns] = {}
"""By process and file: a fork has none of the threads whose turn it is in its parent."""


def turns(path: Path, gate: Path | None = None) -> Turns:
    """The turns of this process at a file; `gate` is the path at which it meets other processes."""
    return _turns.setdefault((os.getpid(), str(path.resolve())), Turns(Gate(gate) if gate else None))
