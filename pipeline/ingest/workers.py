"""Readings shared out over processes: a few at a time, and what comes of them in their own order."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future
from types import TracebackType
from typing import TYPE_CHECKING

from ...schemas import Quarantined
from ..store.columns import Columns
from ..store.connection import cores
from ..store.garbage import few_collections
from ..systems import References, Span
from ..systems.base import line_spans
from ..systems.registry import system_of
from .blocks import Block, Reading, blocks

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

WORTH = 64 * 1024 * 1024
"""Bytes from which on other processes are started, which takes them some seconds."""
SHARE = 4 * 1024 * 1024
"""Bytes of a share of the work: large enough to be handed over, small enough to be held."""
AHEAD = 3
"""Shares a process that are read, or about to be, while what came of earlier ones is stored."""

Share = tuple[Reading, ...]


def read_all(readings: Sequence[Reading], references: Mapping[str, References]) -> Iterator[Block]:
    """The blocks of all readings, in their order, read by as many processes as there are cores.

    A source that is too large for a share and has no parts is read in this process.
    """
    if not readings:
        return
    workers = cores()
    if workers < 2 or sum(reading.size for reading in readings) < WORTH:
        yield from blocks(readings, references)
        return
    with _Readers(workers, references) as readers:
        waiting: deque[tuple[Share, Future[list[Block]]]] = deque()
        for share in shares(readings):
            if share[0].size > SHARE and share[0].span is None:
                while waiting:
                    yield from readers.result(*waiting.popleft())
                yield from blocks(share, references)
                continue
            waiting.append((share, readers.submit(share)))
            while len(waiting) > AHEAD * workers:
                yield from readers.result(*waiting.popleft())
        while waiting:
            yield from readers.result(*waiting.popleft())


def shares(readings: Sequence[Reading]) -> Iterator[Share]:
    """The readings in their order: parts of large files, large sources without parts, small ones together."""
    small: list[Reading] = []
    for reading in readings:
        if reading.size <= SHARE:
            small.append(reading)
            if sum(one.size for one in small) < SHARE:
                continue
        if small:
            yield tuple(small)
            small = []
        if reading.size > SHARE:
            yield from ((part,) for part in _parts(reading))
    if small:
        yield tuple(small)


def _parts(reading: Reading) -> Iterator[Reading]:
    whole = True
    try:
        for span in _spans(reading):
            whole = False
            yield dataclasses.replace(reading, span=span, size=span.end - span.start)
    except Exception:  # whoever reads it whole says what is wrong, and it costs no other source
        whole = True
    if whole:
        yield reading


def _spans(reading: Reading) -> Iterator[Span]:
    system, path = system_of(reading.place.system), reading.place.path
    if system.read_span is None:
        return iter(())
    if system.lines_apart(path, reading.options):
        start, line = (reading.span.start, reading.span.line) if reading.span else (0, 1)
        return line_spans(path, SHARE, start, line)
    return system.sessions_apart(path, reading.options, SHARE)


class _Readers:
    """A pool of processes that read; where one dies, what it read is asked for again, each source alone."""

    def __init__(self, workers: int, references: Mapping[str, References]) -> None:
        self._workers = workers
        self._references = references
        self._pool = _pool(workers)

    def __enter__(self) -> _Readers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, kill_workers=True)

    def submit(self, share: Share) -> Future[list[Block]]:
        try:
            future: Future[list[Block]] = self._pool.submit(_read, share, self._references)
        except BrokenExecutor:
            self._pool = _pool(self._workers)
            future = self._pool.submit(_read, share, self._references)
        return future

    def result(self, share: Share, future: Future[list[Block]]) -> Iterator[Block]:
        try:
            yield from future.result()
        except BrokenExecutor:
            for reading in share:
                yield from self._alone(reading)

    def _alone(self, reading: Reading) -> list[Block]:
        with _Readers(1, self._references) as reader:
            try:
                return reader.submit((reading,)).result()
            except BrokenExecutor:
                reason = "the process that read it ended: out of memory, or killed"
                wrong = Quarantined(source=reading.place.name, reason=reason)
                return [Block(Columns().tables(), (), [(wrong, reading.source)], reading.source)]


def _pool(workers: int) -> ProcessPoolExecutor:
    """Processes that load nothing of the caller's program: it need not expect to be imported again."""
    from loky import ProcessPoolExecutor

    return ProcessPoolExecutor(workers, initializer=_begin, initargs=(os.getpid(),))


def _begin(parent: int) -> None:
    """Have this process end with the one that started it (after a kill it would wait for work for ever), and
    Arrow give memory back that it has done with: its own allocator keeps 20 MB of it."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _read(share: Share, references: Mapping[str, References]) -> list[Block]:
    with few_collections():
        return list(blocks(share, references))
