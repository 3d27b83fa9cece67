"""Scrapes of a model server's /metrics as rows: recorded under raw/, stored beside the events.

Every sample of a metric is summed over its labels (models, engines), so the text format needs no more
of a parser than one pattern. Counters are stored as they are; the views take differences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb

from ..store import Row, Store, Workspace, insert

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


def parse(text: str) -> dict[str, float | None]:
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


def row(scrape: dict[str, Any]) -> Row:
    """A scrape as a row of `serving`: UTC, the same in local time (as logs without a zone have it), …"""
    moment = datetime.fromtimestamp(scrape["time"], UTC)
    local = moment.astimezone().replace(tzinfo=None)
    values = parse(scrape.get("text", ""))
    return {
        "time": moment.replace(tzinfo=None).isoformat(timespec="milliseconds"),
        "local": local.isoformat(timespec="milliseconds"),
        "url": scrape["url"],
        "error": scrape.get("error"),
        **values,
    }


def recorded_rows(workspace: Workspace) -> Iterator[Row]:
    """The rows of every scrape under raw/, for a rebuild; a last line that a kill cut off never counted."""
    for path in sorted((workspace.raw / "serving").glob("*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield row(json.loads(line))


def replay(store: Store, connection: duckdb.DuckDBPyConnection) -> None:
    """Add the recorded scrapes of this machine to `serving`; those of others stay."""
    keep(connection, list(recorded_rows(store.workspace)))


def keep(connection: duckdb.DuckDBPyConnection, scrapes: Sequence[Row]) -> None:
    """Store the scrapes that are not there yet."""
    there = set(connection.execute("SELECT time, url FROM serving").fetchall())
    insert(connection, "serving", [one for one in scrapes if (one["time"], one["url"]) not in there])
