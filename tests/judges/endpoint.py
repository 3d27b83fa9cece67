"""A local endpoint that speaks OpenAI's chat protocol, with faults by rate and exact counts.

Tests run it in a thread and may pass a function of their own as its answer; benchmarks run it as a
process (`python -m tests.judges.endpoint --port 8930`). Everything is decided by the hash of the prompt
and the number of the attempt, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[dict[str, Any]], "str | web.Response"]
"""From a request's body to the content of the answer, or to a whole response."""


@dataclass
class Faults:
    """Shares of requests that go wrong."""

    too_many: float = 0.0
    broken: float = 0.0
    cut_off: float = 0.0
    malformed: float = 0.0
    retry_after: float = 0.05


@dataclass
class Endpoint:
    """What it does, and what it saw."""

    answer: Answer | None = None
    latency: float = 0.0
    faults: Faults = field(default_factory=Faults)
    models: tuple[str, ...] = ("judge",)
    context: int | None = None
    key: str | None = None
    keep: bool = True
    """Whether bodies are kept in `asked`."""
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    attempts: Counter[bytes] = field(default_factory=Counter)
    answered: Counter[bytes] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    in_flight: int = 0
    peak: int = 0
    characters: int = 0
    repeated: int = 0
    """Characters of prompts that begin like the prompt before."""
    last: str = ""

    @property
    def requests(self) -> int:
        """How often it was asked."""
        return sum(self.statuses.values())

    @property
    def asked_twice(self) -> int:
        """Answers beyond the first to the same prompt."""
        return sum(count - 1 for count in self.answered.values())

    def app(self) -> web.Application:
        """The application to serve."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._list)
        app.router.add_get("/stats", self._stats)
        return app

    async def _list(self, request: web.Request) -> web.Response:
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return _error(401, f"wrong key {request.headers.get('Authorization')}")
        entries = [{"id": name, "object": "model", "max_model_len": self.context} for name in self.models]
        return web.json_response({"object": "list", "data": entries})

    async def _stats(self, _: web.Request) -> web.Response:
        cpu = os.times()
        return web.json_response(
            {
                "requests": self.requests,
                "statuses": {str(k): v for k, v in self.statuses.items()},
                "asked_twice": self.asked_twice,
                "answered": len(self.answered),
                "peak": self.peak,
                "prefix_share": self.repeated / self.characters if self.characters else None,
                "cpu": cpu.user + cpu.system,
            }
        )

    async def _chat(self, request: web.Request) -> web.Response:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            response = await self._respond(request)
            self.statuses[response.status] += 1
            return response
        finally:
            self.in_flight -= 1

    async def _respond(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        if self.keep:
            self.asked.append(body)
            self.keys.append(request.headers.get("Authorization"))
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return _error(401, f"wrong key {request.headers.get('Authorization')}")
        prompt = "\n".join(message["content"] for message in body["messages"])
        self._measure(prompt)
        name = hashlib.blake2b(prompt.encode(), digest_size=12).digest()
        self.attempts[name] += 1
        draw = _draws(name, self.attempts[name])
        if next(draw) < self.faults.too_many:
            return _error(429, "too many", {"Retry-After": str(self.faults.retry_after)})
        if self.latency:
            await asyncio.sleep(self.latency)
        if next(draw) < self.faults.broken:
            return _error(500, "broken")
        said = self.answer(body) if self.answer else fitting(body, name)
        if isinstance(said, web.Response):
            return said
        if next(draw) < self.faults.malformed:
            said = said[: len(said) // 2] + "?"
        document = json.dumps(_document(body, prompt, said)).encode()
        if next(draw) < self.faults.cut_off:
            document = document[: len(document) // 2]
        else:
            self.answered[name] += 1
        return web.Response(body=document, content_type="application/json")

    def _measure(self, prompt: str) -> None:
        shared, over = 0, min(len(prompt), len(self.last)) + 1
        while over - shared > 1:
            middle = (shared + over) // 2
            same = prompt[shared:middle] == self.last[shared:middle]
            shared, over = (middle, over) if same else (shared, middle)
        self.characters += len(prompt)
        self.repeated += shared
        self.last = prompt

    @contextmanager
    def serving(self, port: int = 0) -> Iterator[Endpoint]:
        """Serve from a thread; `url` is where."""
        loop = asyncio.new_event_loop()
        started = threading.Event()
        stop = asyncio.Event()

        async def main() -> None:
            runner = web.AppRunner(self.app(), access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            started.set()
            await stop.wait()
            await runner.cleanup()

        thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
        thread.start()
        assert started.wait(10)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(10)
            loop.close()


def fitting(body: dict[str, Any], name: bytes) -> str:
    """An answer of the form that was asked for, chosen by the prompt's hash."""
    if choices := (body.get("structured_outputs") or {}).get("choice"):
        return str(choices[name[0] % 2])
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        return json.dumps(_fit(form["json_schema"]["schema"], name))
    return "yes" if name[0] % 2 else "no"


def _fit(schema: dict[str, Any], name: bytes) -> Any:
    if "enum" in schema:
        return schema["enum"][name[0] % len(schema["enum"])]
    if schema["type"] == "object":
        return {
            key: _fit(value, hashlib.blake2b(name + key.encode(), digest_size=12).digest())
            for key, value in schema["properties"].items()
        }
    if schema["type"] == "array":
        return [_fit(schema["items"], name)]
    return 1 if schema["type"] == "integer" else ""


def _document(body: dict[str, Any], prompt: str, said: str) -> dict[str, Any]:
    return {
        "id": "chat",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": len(prompt) // 4,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": len(prompt) // 8},
        },
    }


def _draws(name: bytes, attempt: int) -> Iterator[float]:
    digest = hashlib.blake2b(name + attempt.to_bytes(4, "big"), digest_size=32).digest()
    for start in range(0, 32, 4):
        yield int.from_bytes(digest[start : start + 4], "big") / 2**32


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status, headers=headers)


def main() -> None:
    """Serve as a process until it is ended."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--latency-ms", type=float, default=50)
    for name in ("too-many", "broken", "cut-off", "malformed"):
        options.add_argument(f"--{name}", type=float, default=0.0)
    given = options.parse_args()
    faults = Faults(given.too_many, given.broken, given.cut_off, given.malformed)
    endpoint = Endpoint(latency=given.latency_ms / 1000, faults=faults, keep=False)
    web.run_app(endpoint.app(), host="127.0.0.1", port=given.port, print=None, access_log=None, backlog=1024)


if __name__ == "__main__":
    main()
