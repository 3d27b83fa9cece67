"""The other end of a pump: reads a Redis socket, holds what has come, and passes it on. See `pump`."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque

from ..errors import CoauditError
from .pump import CHUNK, Ask, Failure, Settings, Stop, UserNotice, frame, read_object
from .redis import Channel

HELD = 512 << 20
"""Bytes that may wait to be read; with more, the socket is not read either, and Redis may cut us off."""


class Outlet:
    """Frames on their way out, written by a thread so that the event loop never waits for their reader."""

    def __init__(self, descriptor: int) -> None:
        self.waiting = 0
        """Bytes that are not written yet."""
        self._descriptor = descriptor
        self._frames: deque[bytes] = deque()
        self._more = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def put(self, item: object) -> None:
        """Have an object written."""
        data = frame(item)
        with self._more:
            self.waiting += len(data)
            self._frames.append(data)
            self._more.notify()

    def close(self) -> None:
        """Wait until all is written."""
        with self._more:
            self._closed = True
            self._more.notify()
        self._thread.join()

    def _write(self) -> None:
        """Once a write has failed the reader is lost: what comes then is dropped, and waits for nobody."""
        has_reader = True
        while True:
            with self._more:
                self._more.wait_for(lambda: self._frames or self._closed)
                if not self._frames:
                    return
                data = self._frames.popleft()
            rest = memoryview(data)
            try:
                while rest and has_reader:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                has_reader = False
            with self._more:
                self.waiting -= len(data)


async def _pump(orders: asyncio.StreamReader, out: Outlet) -> None:
    settings = await read_object(orders)
    assert isinstance(settings, Settings)
    channel = Channel(settings.url, lambda text: out.put(UserNotice(text)), settings.patience)
    works = [asyncio.create_task(_hear(channel, out)), asyncio.create_task(_obey(channel, orders))]
    await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
    for work in works:
        work.cancel()


async def _hear(channel: Channel, out: Outlet) -> None:
    try:
        async for message in channel.messages():
            out.put(message)
            while out.waiting > HELD:
                await asyncio.sleep(0.01)
    except CoauditError as error:
        out.put(Failure(error))


async def _obey(channel: Channel, orders: asyncio.StreamReader) -> None:
    """Carry out orders until their sender is gone."""
    while (order := await read_object(orders)) is not None:
        if isinstance(order, Ask):
            await channel.ask(order.session, order.role)
        elif isinstance(order, Stop):
            await channel.stop()


async def _main() -> None:
    # What a library might print must not come between the frames.
    out = Outlet(os.dup(sys.stdout.fileno()))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    orders = asyncio.StreamReader(limit=CHUNK)
    protocol = asyncio.StreamReaderProtocol(orders)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    await _pump(orders, out)
    out.close()


if __name__ == "__main__":
    asyncio.run(_main())
