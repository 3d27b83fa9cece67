"""The Redis socket in a process of its own, so that nothing here keeps Redis waiting for long.

Redis holds in memory what a subscriber has not read, and cuts it off after 32 MB (its setting
`client-output-buffer-limit pubsub`). While a process rates a message of 10 MB, none of its threads reads: so
another process does nothing but read, and holds what has come until it is taken. Both ends of the pipes
between them are ours; a frame is a length and a pickled object. Where this process dies, the other one ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import struct
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import CoauditError, SourceError
from ..systems.cogym.messages import RawMessage
from .redis import PATIENCE, Channel, ConnectionLoss, Subscription

OUTLET = f"{__package__}.outlet"
LENGTH = struct.Struct("<Q")
CHUNK = 16 << 20


@dataclass(frozen=True)
class Settings:
    """What to listen to, and for how long a missing server is tried."""

    url: str
    patience: float


@dataclass(frozen=True)
class Ask:
    """Ask a session for its state, as one of its members."""

    session: str
    role: str


@dataclass(frozen=True)
class Stop:
    """Pass on what was published until now, and end."""


@dataclass(frozen=True)
class UserNotice:
    """A sentence for the user."""

    text: str


@dataclass(frozen=True)
class Failure:
    """Why there will be no more messages."""

    error: CoauditError


@dataclass
class Pump:
    """A Redis server, listened to by a process of its own."""

    url: str
    say: Callable[[str], None]
    patience: float = PATIENCE
    _process: asyncio.subprocess.Process | None = None
    _is_stopping: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once all that came was passed on."""

    @property
    def name(self) -> str:
        """The server without what is secret."""
        return Channel(self.url, self.say).name

    async def messages(self) -> AsyncIterator[RawMessage | Subscription | ConnectionLoss]:
        """As `Channel.messages`, with its errors; ends after `stop`."""
        pipe = asyncio.subprocess.PIPE
        command = [sys.executable, "-P", "-m", OUTLET]
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, limit=CHUNK, start_new_session=True
        )
        try:
            assert self._process.stdout is not None
            self._order(Settings(self.url, self.patience))
            if self._is_stopping:
                self._order(Stop())
            while (item := await read_object(self._process.stdout)) is not None:
                if isinstance(item, Failure):
                    raise item.error
                if isinstance(item, UserNotice):
                    self.say(item.text)
                else:
                    yield item
            if not self._is_stopping:
                raise SourceError(f"{self.name}: the process that listens there has ended; follow again")
            self.ended.set()
        finally:
            # Not its own kill(), which looks first whether it has ended and so takes the status from asyncio.
            with contextlib.suppress(ProcessLookupError):
                if self._process.returncode is None:
                    os.kill(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    async def ask(self, session: str, role: str) -> None:
        """Ask the environment for a session's state; the answer comes as a message."""
        self._order(Ask(session, role))

    def stop(self) -> None:
        """Have `messages` end after what was published until now."""
        self._is_stopping = True
        self._order(Stop())

    def _order(self, order: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(frame(order))


async def read_object(stream: asyncio.StreamReader) -> Any:
    """The next object of a pipe; None at its end."""
    try:
        (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
        return pickle.loads(await stream.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def frame(item: object) -> bytes:
    """An object as it goes through a pipe."""
    data = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data
