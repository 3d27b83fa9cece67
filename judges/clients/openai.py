"""A lean asynchronous client for endpoints that speak OpenAI's chat protocol, vLLM's server first.

aiohttp, since openai's SDK and litellm cost 5 to 15 times its CPU a call. Answers are held to their form
where the endpoint can: vLLM's `structured_outputs` for choices, `response_format` with a JSON schema else.
An endpoint that rejects one is asked without it from then on; what comes back is checked by the judge in
any case. A key is read from the environment, sent in the header and blotted out of all that comes back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import aiohttp

from ...schemas.url import is_local, shown_url
from . import dialect
from .http import Blot, blot, body_of, redirect_error, retry_after
from .protocol import (
    Fatal,
    Offer,
    Overloaded,
    Parameters,
    Question,
    Refused,
    Reply,
    Transient,
    UnknownModel,
    Unreachable,
    further_request,
)

CONNECT_SECONDS = 4.0


@dataclass(frozen=True)
class Endpoint:
    """Where and what is asked."""

    base: str
    """Such as http://127.0.0.1:8000/v1"""
    model: str
    """The name that is sent."""
    flavour: Literal["vllm", "openai"] = "openai"
    key_variable: str = "OPENAI_API_KEY"
    timeout: float = 180.0
    extra: Mapping[str, Any] = field(default_factory=dict)
    own_key: str | None = field(default=None, repr=False)
    """The key of a server of our own, made up for the run."""

    @property
    def key(self) -> str | None:
        """The key; a stranger's from the environment only."""
        return self.own_key or os.environ.get(self.key_variable, "").strip() or None

    @property
    def local(self) -> bool:
        """Whether it is on this machine."""
        return is_local(self.base)

    @property
    def shown(self) -> str:
        """Its address as messages may show it."""
        return shown_url(self.base)


class OpenAIClient:
    """`await client(question)`; use it as an asynchronous context manager."""

    def __init__(self, endpoint: Endpoint, parameters: Parameters, connections: int = 0) -> None:
        key = endpoint.key or ""
        if not (key.isascii() and key.isprintable()):
            raise Fatal(f"{endpoint.key_variable} must be one line of ASCII, which a header can hold")
        self.endpoint = endpoint
        self.dialect = dialect.Dialect(endpoint.model, endpoint.flavour, parameters)
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self._models: tuple[str, ...] = ()

    async def __aenter__(self) -> OpenAIClient:
        headers = {"User-Agent": "coaudit", "Content-Type": "application/json"}
        if key := self.endpoint.key:
            headers["Authorization"] = f"Bearer {key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, ttl_dns_cache=300),
            timeout=aiohttp.ClientTimeout(total=self.endpoint.timeout, sock_connect=CONNECT_SECONDS),
            headers=headers,
            trust_env=not self.endpoint.local,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def offer(self) -> Offer:
        """Ask for the list of models, as a sign of life. Fatal within 5 s where nothing answers."""
        timeout = aiohttp.ClientTimeout(total=CONNECT_SECONDS)
        try:
            async with self._open.get(self._url("models"), timeout=timeout, allow_redirects=False) as answer:
                body = await body_of(answer)
        except TimeoutError as error:
            raise Fatal(f"{self.endpoint.shown}: no answer within {CONNECT_SECONDS:.0f} s") from error
        except Transient as error:
            raise Fatal(f"{self.endpoint.shown}/models: {error}; does --api-base end in /v1?") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Fatal(self._unreached(error)) from error
        if answer.status in (401, 403):
            raise self._wrong_key(answer.status, body)
        if answer.status == 200 and dialect.is_page(body):
            raise Fatal(
                f"{self.endpoint.shown}: answers with a page, not with a list of models; "
                "does --api-base end in /v1?"
            )
        models = dialect.model_entries(body) if answer.status == 200 else []
        self._models = tuple(self._blot(str(entry.get("id"))) for entry in models)
        lengths = [e.get("max_model_len") for e in models if e.get("id") == self.endpoint.model]
        return Offer(self._models, next((n for n in map(dialect.token_count, lengths) if n), None))

    async def __call__(self, question: Question) -> Reply:
        """Ask, falling back to fewer demands where the endpoint rejects them."""
        first = state = self.dialect.demands(question)
        while True:
            status, headers, content = await self._post(self.dialect.body(question, state))
            if status == 200:
                self.dialect.learn(first, state)
                left_out = () if state.temperature else ("temperature",)
                return replace(dialect.reply(content, self._blot), left_out=left_out)
            less = self.dialect.weaker(state, content) if status in (400, 422) else None
            if less is None:
                raise self._failure(status, headers, content)
            further_request()
            state = less

    @cached_property
    def _blot(self) -> Blot:
        """Takes the key and the secrets of the address out of a server's text."""
        key = self.endpoint.key
        return blot([key] if key else [], self.endpoint.base)

    def _unreached(self, error: Exception) -> str:
        return f"{self.endpoint.shown}: cannot be reached: {self._blot(str(error))}"

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is used as an asynchronous context manager")
        return self._session

    def _url(self, path: str) -> str:
        return f"{self.endpoint.base.rstrip('/')}/{path}"

    async def _post(self, body: dict[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        data = json.dumps({**body, **self.endpoint.extra}, separators=(",", ":")).encode()
        try:
            async with self._open.post(
                self._url("chat/completions"), data=data, allow_redirects=False
            ) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    raise redirect_error(self._blot(answer.headers.get("Location", "")))
                return answer.status, answer.headers, await body_of(answer)
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(self._unreached(error)) from error
        except aiohttp.ConnectionTimeoutError as error:  # its queue of connections is full
            raise Overloaded(f"no connection within {CONNECT_SECONDS:.0f} s") from error
        except TimeoutError as error:
            raise Overloaded(f"no answer within {self.endpoint.timeout:.0f} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Transient(f"the connection broke: {self._blot(repr(error))}") from error

    def _failure(self, status: int, headers: Mapping[str, str], content: bytes) -> Exception:
        reason = dialect.message(content, self._blot)
        if dialect.is_out_of_credit(status, reason):
            return Fatal(f"{self.endpoint.shown}: the account is out of credit: {reason}")
        if dialect.is_too_long(status, content.decode("utf-8", "replace")):
            return dialect.rejection(status, content, reason)
        if status == 429:
            return Overloaded(f"status 429: {reason}", retry_after(headers.get("Retry-After")))
        if status >= 500 or status in (408, 409, 425):
            return Overloaded(f"status {status}: {reason}", retry_after(headers.get("Retry-After")))
        if dialect.is_moderated(status, reason):
            return Refused(f"the endpoint's moderation refused: {reason}")
        if status in (401, 403):
            return self._wrong_key(status, content)
        if status == 404 or dialect.is_unknown_model(content):
            return UnknownModel(self._not_found(reason))
        return dialect.rejection(status, content, reason)

    def _wrong_key(self, status: int, content: bytes) -> Fatal:
        state = "is not set" if self.endpoint.key is None else "was not accepted"
        reason = dialect.message(content, self._blot)
        return Fatal(
            f"{self.endpoint.shown}: status {status}, {self.endpoint.key_variable} {state}: {reason}"
        )

    def _not_found(self, reason: str) -> str:
        if self._models:
            choices = ", ".join(self._models[:20])
            return f"{self.endpoint.shown}: no model {self.endpoint.model!r}, it offers {choices}: {reason}"
        return (
            f"{self.endpoint.shown}/chat/completions: not found ({reason}); "
            f"does --api-base end in /v1, and is there a model {self.endpoint.model!r}?"
        )
