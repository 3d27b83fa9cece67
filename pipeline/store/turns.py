"""Threads of one process take turns at a DuckDB file, and then at its gate with those of other processes.

DuckDB has no reader beside a writer there, and any number of writers, whose changes collide.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from ..errors import StoreError
from . import connection
from .gate import Gate

COURTESY = 2.0
"""Seconds that a reader lets writers go first: those who read one after another would keep them out for good.
Then it goes on, for a writer may wait for the very thread that waits for this one."""

Opened = Callable[[], None]
"""Told that the connection is there: beside one that reads, others come in from then on, and those that come
to read wait at the file itself for one that writes."""


class Open(threading.local):
    """Connections of one thread."""

    def __init__(self) -> None:
        self.count = Counter[str]()


class Turns:
    """Those of one file; without a gate where no other process comes to it."""

    def __init__(self, gate: Gate | None) -> None:
        self._gate = gate
        self._writer = threading.RLock()
        self._writing = self._written = 0
        self._open = Open()

    @contextmanager
    def writing(self, path: Path) -> Iterator[Opened]:
        """Write after whoever writes; StoreError where none of them ends, or this thread reads meanwhile."""
        count = self._written
        with self._counted(path, "writes", never_beside="reads"):
            while not self._writer.acquire(timeout=connection.PATIENCE):
                if self._written == count:
                    raise connection.busy(str(path))
                count = self._written
            gate = self._gate.closed(connection.PATIENCE) if self._gate else nullcontext(_nothing)
            self._writing += 1
            try:
                with gate as release:
                    yield release
            finally:
                self._writing -= 1
                self._written += 1
                self._writer.release()

    @contextmanager
    def reading(self, path: Path) -> Iterator[Opened]:
        """Read, after those who wait to write; StoreError where this thread writes meanwhile."""
        first = not self._open.count["reads"]
        with self._counted(path, "reads", never_beside="writes"), ExitStack() as entrance:
            # Those who wait may wait for what this thread reads already.
            if first and self._writer.acquire(timeout=COURTESY):
                entrance.callback(self._writer.release)
            # What a thread of this process keeps closed was waited for by now.
            if first and self._gate and not self._writing:
                self._gate.pass_through()
            yield entrance.close

    @contextmanager
    def _counted(self, path: Path, access: str, *, never_beside: str) -> Iterator[None]:
        """A connection more of this thread, whichever closes it: a thread would wait for itself in vain."""
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
    """Those of this process at a file, before which others meet at the gate of that path."""
    return _turns.setdefault((os.getpid(), str(path.resolve())), Turns(Gate(gate) if gate else None))
