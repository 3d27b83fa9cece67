"""What a pump listens to is heard whole, however busy whoever takes it is."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable

import pytest
from redis import Redis

from coaudit.pipeline.follow.pump import Pump
from coaudit.pipeline.follow.redis import Subscription
from coaudit.pipeline.systems.cogym.messages import RawMessage
from tests.pipeline.follow.conftest import Server

pytestmark = pytest.mark.slow
MESSAGES, SIZE = 400, 100_000


def publish(server: Server) -> None:
    with Redis(port=server.port) as client:
        for number in range(MESSAGES):
            client.publish("env_1/step", f"{number} ".ljust(SIZE, "x"))
            time.sleep(0.004)


async def heard(server: Server, busy: float) -> list[RawMessage | object]:
    """All that comes until the pump stops; for so many seconds from the first message nothing is taken."""
    pump = Pump(server.url, lambda text: None)
    items: list[RawMessage | object] = []
    publisher = threading.Thread(target=publish, args=(server,))
    async for item in pump.messages():
        items.append(item)
        if len(items) == 1:
            publisher.start()
        if len(items) == 2:
            time.sleep(busy)
            publisher.join()
            pump.stop()
    return items


def test_a_follower_that_is_busy_for_long_is_not_cut_off(redis_at: Callable[..., Server]) -> None:
    # 40 MB come while nobody takes any; the server holds 8 MB for a subscriber.
    server = redis_at("--client-output-buffer-limit", "pubsub 8mb 8mb 1")
    first, *rest = asyncio.run(heard(server, busy=3.0))
    assert isinstance(first, Subscription) and first.away is None
    numbers = [int(item.payload.split()[0]) for item in rest if isinstance(item, RawMessage)]
    assert numbers == list(range(MESSAGES)), "all that was published before the stop, once, in its order"
    assert len(rest) == MESSAGES


def test_the_end_of_the_process_that_listens_is_no_message(
    redis_at: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server, waitpid = redis_at(), os.waitpid

    def late(pid: int, options: int) -> tuple[int, int]:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        time.sleep(0.5)  # so that whoever else asks for its status is faster
        return waitpid(pid, options)

    async def follow() -> None:
        pump = Pump(server.url, lambda text: None)
        async for item in pump.messages():
            if isinstance(item, Subscription):
                pump.stop()
        await asyncio.sleep(0.1)

    monkeypatch.setattr(os, "waitpid", late)
    asyncio.run(follow())
    assert not caplog.records
