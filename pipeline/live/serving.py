"""The server behind the run: scrapes of vLLM's /metrics, recorded as received, stored beside the events.

Every sample of a metric is summed over its labels (models, engines), so the text format needs no more
of a parser than one pattern. Counters are stored as they are; the views take differences.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb

from coaudit.pipeline.errors import StoreError, UsageError
from coaudit.pipeline.live.sink import Sink
from coaudit.pipeline.store import Store, insert
from coaudit.pipeline.workspace import Workspace

TIMEOUT = 5.0
LONGEST = 16 * 2**20
_SAMPLE = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{.*\})?[ \t]+(?P<value>\S+)", re.MULTILINE)
# Column -> vLLM's names for it, newer ones first.
COLUMNS: dict[str, tuple[str, ...]] = {
    "running": ("vllm:num_requests_running",),
    "queue": ("vllm:num_requests_waiting",),
    "preemptions": ("vllm:num_preemptions_total", "vllm:num_preemptions"),
    "kv_cache_use": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "ttft_sum": ("vllm:time_to_first_token_seconds_sum",),
    "ttft_count": ("vllm:time_to_first_token_seconds_count",),
    "prompt_tokens": ("vllm:prompt_tokens_total",),
    "generation_tokens": ("vllm:generation_tokens_total",),
}
Row = tuple[Any, ...]


def parsed(text: str) -> dict[str, float | None]:
    """The columns out of one scrape; None where the server does not say."""
    sums: dict[str, float] = {}
    for sample in _SAMPLE.finditer(text):
        if sample["name"].startswith("vllm:"):
            try:
                sums[sample["name"]] = sums.get(sample["name"], 0.0) + float(sample["value"])
            except ValueError:
                continue
    return {
        column: next((sums[name] for name in names if name in sums), None)
        for column, names in COLUMNS.items()
    }


class Scraper:
    """Scrapes one server every few seconds."""

    def __init__(self, url: str, sink: Sink, say: Callable[[str], None], every: float) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise UsageError(f"--metrics must be an http(s) URL, got {url!r}")
        self.url = url
        self.sink = sink
        self.say = say
        self.every = every
        self._place = _new_place(sink.store.workspace, url)
        self._told: str | None = None

    async def run(self) -> None:
        """Scrape until cancelled; a server that does not answer is said once, and so is its return."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                began = time.monotonic()
                self._keep(await self._scrape(session))
                await asyncio.sleep(max(0.05, self.every - (time.monotonic() - began)))

    async def _scrape(self, session: Any) -> dict[str, Any]:
        import aiohttp

        scrape: dict[str, Any] = {"time": time.time(), "url": self.url}
        try:
            async with session.get(self.url) as answer:
                answer.raise_for_status()
                text = (await answer.content.read(LONGEST)).decode("utf-8", "replace")
            scrape["text"] = "\n".join(line for line in text.splitlines() if line.startswith("vllm:"))
            if not scrape["text"]:
                scrape["error"] = "no vllm: metrics in the answer"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            scrape["error"] = str(error) or type(error).__name__
        return scrape

    def _keep(self, scrape: dict[str, Any]) -> None:
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            with self._place.open("ab") as file:
                file.write(json.dumps(scrape).encode() + b"\n")
        except OSError as broken:
            raise StoreError(f"{self._place}: cannot record: {broken.strerror}") from broken
        found = row(scrape)
        self.sink.also(lambda connection: insert(connection, "serving", [found]))
        state = scrape.get("error")
        if state != self._told:
            self.say(f"{self.url}: {state or 'answers again'}")
            self._told = state


def row(scrape: dict[str, Any]) -> Row:
    """A scrape as a row of `serving`: UTC, the same in local time (as logs without a zone have it), …"""
    moment = datetime.fromtimestamp(scrape["time"], UTC)
    local = moment.astimezone().replace(tzinfo=None)
    values = parsed(scrape.get("text", ""))
    times = (t.isoformat(timespec="milliseconds") for t in (moment.replace(tzinfo=None), local))
    return (*times, scrape["url"], scrape.get("error"), *values.values())


def recorded(workspace: Workspace) -> Iterator[Row]:
    """The rows of every scrape under raw/, for a rebuild; a last line that a kill cut off never counted."""
    for path in sorted((workspace.raw / "serving").glob("*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield row(json.loads(line))


def replay(store: Store, connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `serving` from the recorded scrapes."""
    connection.execute("DELETE FROM serving")
    insert(connection, "serving", list(recorded(store.workspace)))


def _new_place(workspace: Workspace, url: str) -> Path:
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    server = re.sub(r"[^\w.]+", "-", urlsplit(url).netloc.rpartition("@")[2])
    return workspace.raw / "serving" / f"{moment}-{os.getpid()}-{server}.jsonl"
