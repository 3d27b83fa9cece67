"""How many requests are in flight: as many as the endpoint bears, found by trying.

Slow start, then additive increase and multiplicative decrease (Chiu and Jain 1989), on the share of
recent answers that said "too many": a few refusals at random are the endpoint's way, a third is a load
that is too high. An endpoint that is overloaded and names a time is left alone until then. Where answers
take long, more requests would only wait there: no more are sent than there are, and after answers that came
too late to be of use, fewer. A hang, which ends all that are in flight together, counts once; after it, a
model that always takes long gets back as many as at the beginning.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from types import TracebackType

START = 16
RECENT = 50
FEWEST = 10
"""Answers that must be in before a share of them means anything."""
TOLERATED = 0.3
DECREASE = 0.6
LONG = 1 / 3
"""Share of the timeout from which on an answer is late, and no more requests are sent at once: when one is
seen, twice as many may be on their way."""


class Limiter:
    """`async with limiter:` holds one of the places; `note_success` and `note_overload` move their number."""

    def __init__(self, most: int, timeout: float = 180.0) -> None:
        self.most = most
        self.long = LONG * timeout
        self.places = float(min(START, most))
        self.in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._recent: deque[bool] = deque(maxlen=RECENT)
        self._slow_start = True
        self._decreased = 0.0
        self._resume = 0.0

    @property
    def pause(self) -> float:
        """Seconds for which the endpoint wants to be left alone, by whoever comes for a place."""
        return max(0.0, self._resume - time.monotonic())

    async def __aenter__(self) -> None:
        if self.in_flight < int(self.places):
            self.in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._release()

    def open(self, places: int | None) -> None:
        """As many places as fill an engine of our own, all of them where it does not say."""
        self.places = float(min(self.most, places or self.most))
        self._wake()

    def note_success(self, seconds: float) -> None:
        """An answer came, after so many seconds: allow more unless that was long; up to the number of the
        beginning also then, where all come in time."""
        self._recent.append(False)
        if self.places < self.most and (seconds < self.long or self._recovers):
            self.places = min(self.most, self.places + (1.0 if self._slow_start else 1.0 / self.places))
        self._wake()

    def note_overload(self, after: float | None, began: float = math.inf) -> None:
        """The endpoint wanted fewer, or did not answer in time: allow fewer where that is often, and pause as
        long as it asks.

        What was sent (`began`, monotonic seconds) before fewer were allowed says nothing of these.
        """
        if began < self._decreased:
            return
        self._recent.append(True)
        if len(self._recent) < FEWEST or sum(self._recent) < TOLERATED * len(self._recent):
            return
        self._slow_start = False
        self.places = max(1.0, self.places * DECREASE)
        self._recent.clear()
        self._decreased = time.monotonic()
        if after:
            self._resume = time.monotonic() + after

    @property
    def _recovers(self) -> bool:
        return self.places < START and len(self._recent) >= FEWEST and not any(self._recent)

    def _release(self) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self.in_flight < int(self.places):
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
