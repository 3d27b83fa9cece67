"""One Ray Data dataset that is fed while it runs.

Its source is a list of tickets: each is a small task that waits for the block of questions of its number. So
the questions need not be known before it begins, what is in flight is all that is in memory, an answer that
cannot be used is asked again of workers that have their model, and a ticket whose block is lost with its
machine fetches it again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import ray
from ray.data import Dataset
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from .rows import Row
from .tables import QUESTIONS

READERS = 2
"""Tickets that wait for a block at a time."""
Stage = Callable[[Dataset], Dataset]
"""From questions to replies."""


class Feed:
    """An actor that keeps blocks until they are answered."""

    def __init__(self) -> None:
        self.blocks: dict[int, list[Row]] = {}
        self.changed = asyncio.Event()
        self.closed = False

    async def put(self, number: int, rows: list[Row]) -> None:
        """A block, the next in line."""
        self.blocks[number] = rows
        self._wake()

    async def drop(self, number: int) -> None:
        """A block that is answered."""
        self.blocks.pop(number, None)

    async def take(self, number: int) -> list[Row]:
        """The block of a number, once it is there; [] where there will be none."""
        while number not in self.blocks and not self.closed:
            await self.changed.wait()
        return self.blocks.get(number, [])

    async def close(self) -> None:
        """No more blocks."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        event, self.changed = self.changed, asyncio.Event()
        event.set()


class Tickets(Datasource):  # type: ignore[misc]
    """The source: as many blocks as may be needed."""

    def __init__(self, feed: Any, count: int) -> None:
        self.feed = feed
        self.count = count

    def estimate_inmemory_data_size(self) -> None:
        """Not known."""

    def get_read_tasks(self, parallelism: int, **_: Any) -> list[Any]:
        """A task a ticket."""
        nothing = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(partial(_block, self.feed, number), nothing) for number in range(self.count)]


class Stream(threading.Thread):
    """Runs the dataset in a thread of its own and hands on rows as they come."""

    def __init__(
        self,
        stage: Stage,
        tickets: int,
        on_rows: Callable[[list[Row]], None],
        on_end: Callable[[Exception | None], None],
    ) -> None:
        super().__init__(name="ray stream", daemon=True)
        self.feed = ray.remote(num_cpus=0, max_concurrency=1000)(Feed).remote()
        self.tickets = tickets
        self._stage = stage
        self._arrived = on_rows
        self._ended = on_end
        self._closed = False
        self._next = 0

    @property
    def is_full(self) -> bool:
        """Whether every ticket has its block."""
        return self._next >= self.tickets

    def put(self, rows: Sequence[Row]) -> int:
        """A block of questions; its number."""
        number, self._next = self._next, self._next + 1
        self.feed.put.remote(number, list(rows))
        return number

    def drop(self, number: int) -> None:
        """Forget a block that is answered."""
        self.feed.drop.remote(number)

    def close(self) -> None:
        """End it: no more is asked, and what is in flight is given up."""
        self._closed = True
        self.feed.close.remote()

    def run(self) -> None:
        """Hand on replies until it is closed or all tickets have come back; say how it ended."""
        error = None
        try:
            self._read()
        except Exception as raised:  # whatever a worker raises comes out here
            error = raised
        if not self._closed:
            self._ended(error)

    def _read(self) -> None:
        source = ray.data.read_datasource(
            Tickets(self.feed, self.tickets),
            override_num_blocks=self.tickets,
            concurrency=READERS,
            num_cpus=0,
        )
        replies = self._stage(source)
        for block in replies.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pyarrow"):
            if self._closed:
                return
            self._arrived(block.to_pylist())


def _block(feed: Any, number: int) -> list[pa.Table]:
    rows = ray.get(feed.take.remote(number))
    return [pa.Table.from_pylist(rows, schema=QUESTIONS)]
