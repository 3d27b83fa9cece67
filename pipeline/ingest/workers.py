"""Readings distributed over processes: a few at a time, and their results in the order of the readings."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ...schemas import Quarantined
from ..store.connection import cores
from ..store.garbage import few_collections
from ..store.memory import spare_memory, spill_folder
from ..store.tables.columns import Columns
from ..store.tables.parcel import Parcel
from ..systems import References, Span
from ..systems.base import line_spans
from ..systems.registry import system_of
from .blocks import Block, Reading, blocks
from .remarks import Remarks

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

WORTH = 32 * 1024 * 1024
"""Bytes to read from which on other processes are started, which takes some seconds."""
SHARE = 4 * 1024 * 1024
"""Bytes of a share of the work: large enough to be handed over, small enough to be held."""
MOST = 3
"""Processes that read beside this one, which stores what they read and is kept busy by so many: of 16 cores,
20,000 sessions take 23.8 s with one, 18.9 with two, 17.2 with three or with 15. Each takes 60 to 70 MiB."""
AHEAD, LEAST = 3, 24
"""Shares for each process that are read ahead while earlier ones are stored, and the least of all, as more
than one process reads meanwhile. They wait in files."""

Share = tuple[Reading, ...]


@dataclass
class _Waiting:
    """A share and its results."""

    readings: Share
    claim: Path
    """The file that its reader creates: each share is read once."""
    future: Future[list[Block] | None]
    """What another process made of it; None where this one was faster."""
    blocks: list[Block] | None = None
    """What this process made of it."""


class Readers:
    """Processes that read on other cores, once there is enough to read. Where one dies, its sources are read
    again, each alone. While the next result is not there yet, this process reads, too."""

    def __init__(self) -> None:
        self._workers = min(cores() - 1, MOST)
        self._shares = itertools.count()
        """Numbers of claims: `blocks` may be called several times."""
        self._pool: ProcessPoolExecutor | None = None
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """Where tables wait until they are stored, or this run ends."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(dir=spill_folder()))
        return self._folder

    def __enter__(self) -> Readers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _end(self) -> None:
        if self._pool:
            self._pool.shutdown(wait=True, kill_workers=True)
            self._pool = None

    def expect(self, size: int) -> None:
        """Start the processes where so many bytes are worth it, while the caller still looks for what is new
        in them."""
        if self._are_worth(size) and self._pool is None:
            self._pool = _pool(self._workers)

    def blocks(self, readings: Sequence[Reading], references: Mapping[str, References]) -> Iterator[Block]:
        """The blocks of all readings, in their order.

        A source that is too large for a share and has no parts is read in this process.
        """
        if not self._are_worth(sum(reading.size for reading in readings)):
            if readings:
                yield from blocks(readings, references)
            return
        waiting: deque[_Waiting] = deque()
        for share in shares(readings):
            if share[0].size > SHARE and share[0].span is None:
                while waiting:
                    yield from self._next(waiting, references)
                yield from blocks(share, references)
                continue
            claim = self.folder / f"share-{next(self._shares)}"
            waiting.append(_Waiting(share, claim, self._submit(share, claim, references)))
            while len(waiting) > max(AHEAD * self._workers, LEAST):
                yield from self._next(waiting, references)
        while waiting:
            yield from self._next(waiting, references)
        self._end()  # what is derived afterwards takes memory, too

    def _are_worth(self, size: int) -> bool:
        return self._workers > 0 and size >= max(1, WORTH)

    def _submit(
        self, share: Share, claim: Path, references: Mapping[str, References]
    ) -> Future[list[Block] | None]:
        self._pool = self._pool or _pool(self._workers)
        future: Future[list[Block] | None]
        try:
            future = self._pool.submit(_read_unless_claimed, share, claim, references)
        except BrokenExecutor:
            self._pool = _pool(self._workers)
            future = self._pool.submit(_read_unless_claimed, share, claim, references)
        return future

    def _next(self, waiting: deque[_Waiting], references: Mapping[str, References]) -> Iterator[Block]:
        """The blocks of the first share; until they are there, this process reads shares that no other has
        begun."""
        first = waiting[0]
        while first.blocks is None and not first.future.done():
            share = next((one for one in waiting if one.blocks is None and _claims(one.claim)), None)
            if share is None:
                break
            share.blocks = _read(share.readings, references, self.folder)
        waiting.popleft()
        if first.blocks is not None:
            yield from first.blocks
            return
        try:
            result = first.future.result()
        except BrokenExecutor:
            for reading in first.readings:
                yield from _read_in_own_process(reading, references, self.folder)
            return
        # None: a process outside this run made the claim; the share is read all the same.
        yield from _read(first.readings, references, self.folder) if result is None else result


def shares(readings: Sequence[Reading]) -> Iterator[Share]:
    """The readings in their order, as shares: parts of large files, large sources without parts, small ones
    together."""
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
    """The parts of a large source; the source itself where it has none.

    Where looking for them fails midway, all that lies behind the last one is a part: whoever reads it says
    what is wrong, and it costs no other source.
    """
    last: Span | None = None
    try:
        for span in _spans(reading):
            yield _part(reading, span)
            last = span
    except Exception:
        if last is not None:
            yield _part(reading, _rest(reading.place.path, last))
    if last is None:
        yield reading


def _part(reading: Reading, span: Span) -> Reading:
    return dataclasses.replace(reading, span=span, size=span.end - span.start)


def _rest(path: Path, last: Span) -> Span:
    """All that lies behind a part of whole lines; nothing where the file is gone, as its reader says."""
    try:
        with path.open("rb") as file:
            file.seek(last.start)
            lines = file.read(last.end - last.start).count(b"\n")
        return Span(last.end, max(last.end, path.stat().st_size), last.line + lines)
    except OSError:
        return Span(last.end, last.end, last.line)


def _spans(reading: Reading) -> Iterator[Span]:
    system, path = system_of(reading.place.system), reading.place.path
    if system.read_span is None:
        return iter(())
    if system.lines_apart(path, reading.options):
        start, line = (reading.span.start, reading.span.line) if reading.span else (0, 1)
        return line_spans(path, SHARE, start, line)
    return system.sessions_apart(path, reading.options, SHARE)


def _read_in_own_process(reading: Reading, references: Mapping[str, References], folder: Path) -> list[Block]:
    """The blocks of a source, read in a process of its own: it may die of it."""
    pool = _pool(1)
    try:
        result: list[Block] = pool.submit(_read, (reading,), references, folder).result()
    except BrokenExecutor:
        reason = "the process that read it ended: out of memory, or killed"
        wrong = Quarantined(source=reading.place.name, reason=reason)
        result = [
            Block(Parcel.of(Columns().tables()), (), [(wrong, reading.source)], reading.source, Remarks())
        ]
    finally:
        pool.shutdown(wait=True, kill_workers=True)
    return result


def _pool(workers: int) -> ProcessPoolExecutor:
    """Processes that load nothing of the caller's program, so that it need not be safe to import again.

    NumPy, which comes with Arrow, would start a thread a core in each. Ctrl-C is blocked in them from the
    very start: their parent ends them.
    """
    from multiprocessing import resource_tracker

    from loky import ProcessPoolExecutor

    spare_memory()  # what they read comes back in large pieces
    resource_tracker.ensure_running()  # which would unblock the signal, were it started below
    env = {"OPENBLAS_NUM_THREADS": "1"}
    pool = ProcessPoolExecutor(workers, initializer=_begin, initargs=(os.getpid(),), env=env)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which they inherit
    try:
        pool.submit(int)  # with the first task they start
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return pool


def _begin(parent: int) -> None:
    """Have this process end with the one that started it: after a kill it would wait for work for ever."""
    spare_memory()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _claims(claim: Path) -> bool:
    """Claim a share for this process; False where another has begun it, or the claim cannot be written."""
    try:
        claim.touch(mode=0o600, exist_ok=False)
    except OSError:
        return False
    return True


def _read_unless_claimed(
    share: Share, claim: Path, references: Mapping[str, References]
) -> list[Block] | None:
    """The blocks of a share; None where the process that stores has begun to read it itself.

    Its calls are not cancelled instead: loky fails to end a pool in which a cancelled call waits.
    """
    if not _claims(claim) and claim.exists():
        return None
    return _read(share, references, claim.parent)


def _read(share: Share, references: Mapping[str, References], folder: Path) -> list[Block]:
    """The blocks of a share, whose tables are in files of the folder."""
    with few_collections():
        return [block.set_aside(folder) for block in blocks(share, references)]
