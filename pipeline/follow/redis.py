"""The Redis client: subscribes before anything else, yields every message, and reconnects when the server
went away."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from ...schemas.url import patterns, secrets_of, with_shown_url, without
from ..errors import SourceError, UsageError
from ..systems.cogym.messages import PATTERN, RawMessage, envelope

PASSWORD = "REDIS_PASSWORD"
PATIENCE = 30.0
"""Seconds for which a server that is not there is tried again."""
LONGEST_PAUSE = 0.5
"""The most seconds between two tries: what is published meanwhile is lost."""
POLL = 1.0
CHECK = 10.0
"""Seconds of quiet after which the server is asked whether it is there, with every poll."""
SILENCE = 20.0
"""Seconds without any answer after which a connection is in doubt."""
FAREWELL = 5.0
"""Seconds for which the answer to unsubscribing is waited for while nothing else comes."""
_NO_REDIS = re.compile(r"Connection closed by server|Protocol Error|no answer")
"""What is said of a server that closes the connection, or speaks something else."""


@dataclass(frozen=True)
class Subscription:
    """From now on every message comes. `away`: seconds in which some may have been missed.

    `running` are the sessions, each with a member, that listen on the server for requests of their state.
    """

    away: float | None = None
    running: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ConnectionLoss:
    """The connection was lost while a stop waited for what had come. `away`: for how many seconds."""

    away: float


@dataclass
class Channel:
    """One Redis server and database, subscribed to Co-Gym's channels."""

    url: str
    say: Callable[[str], None]
    patience: float = PATIENCE
    pattern: str = PATTERN
    _client: Any = field(default=None, init=False)
    _pubsub: Any = field(default=None, init=False)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _stop_time: float = field(default=math.inf, init=False)

    @property
    def name(self) -> str:
        """The server without what is secret."""
        parts = _parts(self.url)
        return f"redis://{parts.hostname or 'localhost'}:{parts.port or 6379}{parts.path or '/0'}"

    async def messages(self) -> AsyncIterator[RawMessage | Subscription | ConnectionLoss]:
        """Every message as it comes, with `Subscription` before them and after each loss of the connection.

        A loss counts from the last message that came: so much may be missing at most. Ends after `stop` with
        the last message that was published before it, or with `ConnectionLoss` where the connection broke.

        Raises SourceError where the server refuses us, or stays away longer than the patience.
        """
        import redis.asyncio as redis

        gap_start: float | None = None
        last = start = time.monotonic()
        pause, is_reported = 0.1, False
        while not self._stopping.is_set():
            try:
                async with redis.Redis(**_settings(self.url)) as client, client.pubsub() as pubsub:
                    await self._subscribe(pubsub)
                    self._client, self._pubsub = client, pubsub
                    if self._stopping.is_set():  # while it subscribed, when there was nothing to end yet
                        await self.stop()
                    away = None if gap_start is None else time.monotonic() - gap_start
                    yield Subscription(away, await _running(client))
                    gap_start, pause, is_reported = None, 0.1, False
                    last = time.monotonic()
                    async for message in self._listen(pubsub):
                        last = time.monotonic()
                        yield message
            except redis.AuthenticationError as error:
                why = f"{self.name}: the server wants a password, or another one; give it in {PASSWORD}"
                raise SourceError(why) from error
            except (redis.RedisError, OSError) as error:
                if isinstance(error, redis.ResponseError) and not _is_busy(error):
                    raise SourceError(f"{self.name}: {_plain(error, self.url)}") from error
                if self._client is not None:
                    # A server that cut us off did so some time before it shows: what came since the last
                    # message may be lost.
                    self._client, gap_start, start = None, last, time.monotonic()
                if not self._stopping.is_set():
                    await self._wait(error, start, pause, is_reported)
                pause, is_reported = min(pause * 2, LONGEST_PAUSE), True
            else:
                return
        if gap_start is not None:
            yield ConnectionLoss(time.monotonic() - gap_start)

    async def _listen(self, pubsub: Any) -> AsyncIterator[RawMessage]:
        """The messages of one connection, until it is unsubscribed.

        Raises redis.ConnectionError where nothing comes though the server answers others, or once the
        patience with it is at an end. A server that stands still for less loses nothing: what is published
        when it goes on comes over the same connection.
        """
        import redis.asyncio as redis

        is_doubted = is_reported = False
        start = time.monotonic()
        while True:
            try:
                message = await pubsub.get_message(timeout=POLL)
            except redis.ResponseError as error:
                if not _is_busy(error):
                    raise
                message = None
            if message is not None and message["type"] == "punsubscribe":
                return
            if message is not None and message["type"] == "pmessage":
                # Bytes that are no UTF-8 survive in the recording.
                texts = (message[key].decode("utf-8", "surrogateescape") for key in ("channel", "data"))
                yield RawMessage(time.time(), *texts)
                start = time.monotonic()
            # While whoever takes the messages is slow, more of them wait unread: that is no silence.
            silence = min(_silence(pubsub), time.monotonic() - start)
            if min(silence, time.monotonic() - self._stop_time) > FAREWELL:
                self.say(f"{self.name}: no answer; what was published last may be missing")
                raise redis.ConnectionError("no answer")
            if silence <= SILENCE:
                is_doubted = is_reported = False
                continue
            answers_others = await self._answers_others()
            if (answers_others and is_doubted) or silence > max(SILENCE, self.patience):
                raise redis.ConnectionError(f"no answer for {silence:.0f} s")
            is_doubted = answers_others  # what comes at this moment is read first
            if not (answers_others or is_reported):
                self.say(f"{self.name}: no answer for {silence:.0f} s; waiting for {self.patience:.0f} s")
                is_reported = True

    async def _answers_others(self) -> bool:
        """Whether the server answers over another connection."""
        import redis.asyncio as redis

        try:
            async with redis.Redis(**_settings(self.url), socket_timeout=POLL) as client:
                await client.ping()
        except (redis.RedisError, OSError):
            return False
        return True

    async def stop(self) -> None:
        """Have `messages` end: the answer to unsubscribing comes behind all that was published before it."""
        import redis.asyncio as redis

        self._stop_time = time.monotonic()
        self._stopping.set()
        if self._client is not None:
            with contextlib.suppress(redis.RedisError, OSError):
                await self._pubsub.punsubscribe(self.pattern)

    async def _subscribe(self, pubsub: Any) -> None:
        import redis.asyncio as redis

        await pubsub.psubscribe(self.pattern)
        answer = await pubsub.get_message(timeout=5.0)
        if answer is None or answer["type"] != "psubscribe":
            raise redis.ConnectionError("no answer to PSUBSCRIBE")

    async def _wait(self, error: Exception, start: float, pause: float, is_reported: bool) -> None:
        why = _plain(error, self.url)
        if time.monotonic() - start > self.patience:
            for_so_long = f"no Redis answered for {self.patience:.0f} s (--patience)"
            raise SourceError(
                f"{self.name}: {for_so_long}: {why}{_hint(error, self.url)}; once it answers, run "
                "`coaudit follow` again to continue"
            ) from error
        if not is_reported:
            self.say(f"{self.name}: {why}; trying again for {self.patience:.0f} s")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), pause)

    async def ask(self, session: str, role: str) -> None:
        """Ask the environment for a session's state; the answer comes as a message."""
        import redis.asyncio as redis

        if self._client is None:
            return
        try:
            await self._client.publish(f"{session}/{role}/request_state", envelope({}))
        except (redis.RedisError, OSError) as error:
            self.say(f"{self.name}: cannot ask for the state of {session}: {_plain(error, self.url)}")


async def _running(client: Any) -> tuple[tuple[str, str], ...]:
    """Sessions whose environment is subscribed; none where the server does not let us ask."""
    import redis.asyncio as redis

    try:
        channels = await client.pubsub_channels(f"{PATTERN}/request_state")
    except redis.ResponseError:
        return ()
    members: dict[str, str] = {}
    for channel in sorted(channels):
        session, _, rest = channel.decode("utf-8", "replace").partition("/")
        members.setdefault(session, rest.rpartition("/")[0])
    return tuple(members.items())


def _silence(pubsub: Any) -> float:
    """Seconds since the server last said anything; up to `CHECK` and a little more it need not."""
    last: float = pubsub.connection.next_health_check - CHECK
    return asyncio.get_running_loop().time() - last


def _is_busy(error: Exception) -> bool:
    """Whether a server only refuses to answer, pings too, until a script of somebody's has ended."""
    return str(error).startswith("BUSY ")


def _settings(url: str) -> dict[str, Any]:
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    parts = _parts(url)
    password = unquote(parts.password) if parts.password else os.environ.get(PASSWORD)
    return {
        "host": parts.hostname or "localhost",
        "port": parts.port or 6379,
        "db": int(parts.path.strip("/") or 0),
        "username": unquote(parts.username) if parts.username else None,
        "password": password or None,
        "ssl": parts.scheme == "rediss",
        "socket_connect_timeout": 5.0,
        "health_check_interval": CHECK,
        # With retries the client would reconnect silently, and nobody would know that messages were missed.
        "retry": Retry(NoBackoff(), 0),
    }


def _parts(url: str) -> Any:
    try:
        parts = urlsplit(url)
        database = parts.path.strip("/") or "0"
        valid = parts.scheme in ("redis", "rediss") and database.isascii() and database.isdecimal()
        _ = parts.port
    except ValueError:
        valid = False
    if not valid:
        raise UsageError("a Redis server is given as redis://host:port/db, with the db a number")
    return parts


def _hint(error: Exception, url: str) -> str:
    """What to try where what listens is silent, or speaks as no Redis does: with TLS, or without."""
    why = error.__context__ or error
    is_cut = isinstance(why, ConnectionResetError | ssl.SSLError) or _NO_REDIS.match(str(why))
    if not is_cut or isinstance(why, ssl.SSLCertVerificationError):
        return ""
    return "; is it redis:// (no TLS)?" if url.startswith("rediss://") else "; is it rediss:// (TLS)?"


def _plain(error: Exception, url: str) -> str:
    """What went wrong, without a password that a library might have put into it."""
    text = with_shown_url(str(error) or type(error).__name__, url)
    return without(text, patterns({os.environ.get(PASSWORD, ""), *secrets_of(url)}, 1))
