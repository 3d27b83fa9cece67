"""The server behind the run: scrapes of vLLM's /metrics, recorded without what nothing reads, stored beside
the events.

ingest/serving.py says how a scrape becomes a row.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...judges import JudgeError
from ...schemas.url import shown_url, without_secrets
from ..errors import UsageError, WriteError
from ..ingest.serving import row
from ..store import Workspace, insert
from .sink import Sink

TIMEOUT = 5.0
_BUCKET = re.compile(r"[\w:]+_bucket\b")


class Scraper:
    """Scrapes one server every few seconds."""

    def __init__(self, url: str, sink: Sink, say: Callable[[str], None], every: float) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise UsageError(f"--metrics must be an http(s) URL, got {shown_url(url)!r}")
        self.url = url
        self.sink = sink
        self.say = say
        self.every = every
        self._place = _new_place(sink.store.workspace, url)
        self._last_state: str | None = None

    async def run(self) -> None:
        """Scrape until cancelled; that a server does not answer is reported once, and so is its return."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                start = time.monotonic()
                self._keep(await self._scrape(session))
                await asyncio.sleep(max(0.05, self.every - (time.monotonic() - start)))

    async def _scrape(self, session: Any) -> dict[str, Any]:
        import aiohttp

        from ...judges.clients.http import body_of

        scrape: dict[str, Any] = {"time": time.time(), "url": shown_url(self.url)}
        try:
            async with session.get(self.url, allow_redirects=False) as answer:
                answer.raise_for_status()
                text = (await body_of(answer)).decode("utf-8", "replace")
            scrape["text"] = worth_keeping(text)
            if not scrape["text"]:
                scrape["error"] = "no vllm: metrics in the answer"
        except TimeoutError:
            scrape["error"] = f"no answer within {TIMEOUT:g} s"
        except (aiohttp.ClientError, OSError, JudgeError) as error:
            scrape["error"] = without_secrets(str(error), self.url) or type(error).__name__
        return scrape

    def _keep(self, scrape: dict[str, Any]) -> None:
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            with self._place.open("ab") as file:
                file.write(json.dumps(scrape).encode() + b"\n")
        except OSError as broken:
            raise WriteError(f"{self._place}: cannot record: {broken.strerror}") from broken
        result = row(scrape)
        self.sink.add_work(lambda connection: insert(connection, "serving", [result]))
        state = scrape.get("error")
        if state != self._last_state:
            self.say(f"{shown_url(self.url)}: {state or 'answers again'}")
            self._last_state = state


def worth_keeping(text: str) -> str:
    """The samples of vLLM in an answer, without the buckets of its histograms: nothing reads them, and they
    are most of the text, which is kept every few seconds as long as anybody follows."""
    return "\n".join(
        line for line in text.split("\n") if line.startswith("vllm:") and not _BUCKET.match(line)
    )


def _new_place(workspace: Workspace, url: str) -> Path:
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    server = re.sub(r"[^\w.]+", "-", urlsplit(url).netloc.rpartition("@")[2])
    return workspace.raw / "serving" / f"{moment}-{os.getpid()}-{server}.jsonl"
