"""One policy for every request to a model: no redirects, no answer without end, and no key in what is kept.

A server may send back what it was sent, so its texts are blotted where they are read, and cut after that.
A key goes to the host that was named and to no other: a redirect would carry `x-api-key` or `api-key`
along, and the prompt with it. litellm and the SDKs under it make clients of their own, so what they send
is watched at httpx's public `send`, and only for calls made inside `watched`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import chain
from typing import Any
from urllib.request import getproxies_environment

import aiohttp

from ...schemas.url import patterns, secrets_of, shown_url, with_shown_url, without
from .protocol import Fatal, Reply, Transient

LARGEST_BODY = 8 << 20
"""Bytes of an answer; the longest that a judge asks for has a few thousand tokens."""
SHORTEST_SECRET = 6
"""Characters of a key or a password that is one: shorter ones, such as EMPTY, stand in answers by chance."""
Blot = Callable[[str], str]
"""From a text of a server's to what may be kept of it."""
_WATCHED: ContextVar[Blot | None] = ContextVar("watched", default=None)
_ENCODING_HEADERS = ("content-encoding", "content-length", "transfer-encoding")


async def body_of(answer: aiohttp.ClientResponse) -> bytes:
    """An answer's whole body; Transient where it is longer than LARGEST_BODY."""
    pieces, size = [], 0
    async for piece in answer.content.iter_chunked(1 << 16):
        size += len(piece)
        if size > LARGEST_BODY:
            raise too_long()
        pieces.append(piece)
    return b"".join(pieces)


def blot(secrets: Iterable[str], url: str) -> Blot:
    """What makes of a text of a server's one that may be kept: without secrets, those of its address and of
    proxies' too, and without halves of characters.

    It is made once for many texts: an answer has one for each token and each rival of it.
    """
    proxies = [proxy for proxy in getproxies_environment().values() if "@" in proxy]
    addresses = [url, *(proxy if "://" in proxy else f"http://{proxy}" for proxy in proxies)]
    hidden = patterns({*secrets, *chain(*map(secrets_of, addresses))}, SHORTEST_SECRET)

    def blotted(text: str) -> str:
        for address in addresses:
            text = with_shown_url(text, address)
        return without(text, hidden).encode("utf-8", "replace").decode()

    return blotted


def too_long() -> Transient:
    """What an answer beyond the limit is."""
    return Transient(f"the answer is longer than {LARGEST_BODY >> 20} MiB", Reply(""))


def retry_after(header: str | None) -> float | None:
    """Retry-After as seconds, given as a number or a date; None where it is neither."""
    try:
        return max(0.0, float(header or ""))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(header or "")
        # Without a zone (-0000) it is UTC (RFC 5322, 3.3).
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (zoned - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None


def redirected(place: str) -> Fatal:
    """What a redirect is."""
    return Fatal(
        f"the endpoint redirects to {shown_url(place) or 'another address'}; redirects are not followed, "
        "since they would carry the key along: give the final address as --api-base"
    )


@contextmanager
def watched(blot: Blot = str) -> Iterator[None]:
    """Hold every request that httpx sends in here to the policy."""
    _watch_httpx()
    token = _WATCHED.set(blot)
    try:
        yield
    finally:
        _WATCHED.reset(token)


@cache
def _watch_httpx() -> None:
    import httpx

    send = httpx.AsyncClient.send

    async def watched_send(self: httpx.AsyncClient, request: httpx.Request, **options: Any) -> httpx.Response:
        if (blot := _WATCHED.get()) is None:
            return await send(self, request, **options)
        stream = options.pop("stream", False)
        options["follow_redirects"] = False
        answer = await send(self, request, stream=True, **options)
        if answer.has_redirect_location:
            await answer.aclose()
            raise redirected(blot(answer.headers["location"]))
        return answer if stream else await _whole(answer)

    httpx.AsyncClient.send = watched_send  # type: ignore[method-assign]


async def _whole(answer: Any) -> Any:
    """A streamed answer as one that was read, or Transient where it is too long."""
    import httpx

    pieces, size = [], 0
    try:
        async for piece in answer.aiter_bytes():
            size += len(piece)
            if size > LARGEST_BODY:
                raise too_long()
            pieces.append(piece)
    finally:
        await answer.aclose()
    headers = [(name, value) for name, value in answer.headers.multi_items() if name not in _ENCODING_HEADERS]
    return httpx.Response(
        answer.status_code,
        headers=headers,
        content=b"".join(pieces),
        request=answer.request,
        extensions={k: v for k, v in answer.extensions.items() if k != "network_stream"},
    )
