"""Scrapes of a model server's /metrics as rows: recorded under raw/, stored beside the events.

Every sample of a metric is summed over its labels (models, engines), but for shares, of which the largest
counts; so the text format needs no more of a parser than one pattern. Counters are stored as they are; the
views take differences.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from ...schemas import Quarantined
from ..store import Row, Store, Workspace, delete, insert

_TEXT = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_LABELS = rf'\{{[^"}}\n]*(?:{_TEXT}[^"}}\n]*)*\}}'
"""A label's text may hold a brace, and behind the number another pair of braces may stand: its example."""
_SAMPLE = re.compile(rf"^(?P<name>[A-Za-z_:][\w:]*)(?:[ \t]*{_LABELS})?[ \t]+(?P<value>\S+)", re.MULTILINE)


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
SHARES = {"kv_cache_use"}
"""Columns of shares, from 0 to 1."""


def parse(text: str) -> dict[str, float | None]:
    """The columns out of one scrape; None where the server does not say."""
    samples: dict[str, list[float]] = {}
    for sample in _SAMPLE.finditer(text):
        if sample["name"].startswith("vllm:"):
            with suppress(ValueError):
                value = float(sample["value"])
                samples.setdefault(sample["name"], []).append(value)
    return {
        column: next((_total(column, samples[name]) for name in names if name in samples), None)
        for column, names in COLUMNS.items()
    }


def _total(column: str, values: list[float]) -> float | None:
    """Of all engines together: a share is that of the fullest one. None for what is no number."""
    # In a fixed order: rounded otherwise, a counter that stood still would have fallen, as at a restart.
    if not math.isfinite(total := sum(sorted(values))):
        return None
    return max(values) if column in SHARES else total


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


def recorded(workspace: Workspace) -> Iterator[tuple[Path, Row | Quarantined]]:
    """Every scrape under raw/ with its file, for a rebuild; a last line that a kill cut off never counted."""
    for path in sorted((workspace.raw / "serving").glob("*.jsonl")):
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield path, _row_of(line, path, number)


def _row_of(line: bytes, path: Path, number: int) -> Row | Quarantined:
    try:
        result = row(json.loads(line))
        for text in (result["url"], result["error"] or ""):
            text.encode()  # neither another value nor half a character fits into its column
        return result
    except (
        *(ValueError, TypeError, KeyError, AttributeError),
        *(OverflowError, OSError, RecursionError),
    ) as error:
        reason = f"no scrape of a model server: {type(error).__name__}"
        return Quarantined(source=str(path), line=number, reason=reason)


def replay(store: Store, connection: duckdb.DuckDBPyConnection) -> list[Quarantined]:
    """Add the recorded scrapes of this machine to `serving`; those of others stay. Returns the lines that are
    none, which are in the quarantine from now on."""
    items = list(recorded(store.workspace))
    keep(connection, [item for _, item in items if not isinstance(item, Quarantined)])
    damaged = [(f"raw/serving/{path.name}", item) for path, item in items if isinstance(item, Quarantined)]
    delete(connection, "quarantine", "read_from", sorted({f"raw/serving/{path.name}" for path, _ in items}))
    insert(connection, "quarantine", [{**item.model_dump(), "read_from": name} for name, item in damaged])
    return [item for _, item in damaged]


def keep(connection: duckdb.DuckDBPyConnection, scrapes: Sequence[Row]) -> None:
    """Store the scrapes that are not there yet, as far as today's table has their columns."""
    there = set(connection.execute("SELECT time, url FROM serving").fetchall())
    columns = {name for name, *_ in connection.execute("DESCRIBE serving").fetchall()}
    fresh = [one for one in scrapes if (one["time"], one["url"]) not in there]
    rows = [{name: value for name, value in one.items() if name in columns} for one in fresh]
    insert(connection, "serving", rows)
