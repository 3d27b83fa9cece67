"""Spans with OpenInference's attributes (Phoenix, smolagents, TRAIL) as those of the GenAI conventions.

OTLP with such attributes is read by otlp.py. Read here are spans as JSON that hold each other
(`child_spans` with `span_attributes`, as TRAIL has them), and flat ones with a `context`, as Phoenix
exports them, one a line, in a list, or a row of Parquet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .....schemas import JsonValue, Quarantined, Trajectory
from ...base import ReadOptions, ending, json_file, json_lines
from ..files import parquet
from .openinference_attributes import KIND, OPERATIONS, genai_attributes
from .otlp import conversations
from .otlp_spans import Span

SYSTEM = "openinference"
LOOK = 64 * 1024
PARQUET = (".parquet", ".pq")
IDS = ("span_id", "id", "context.span_id")
UNITS = (1e17, 1), (1e14, 10**3), (1e11, 10**6)
"""(number above which a time is counted in a unit smaller than seconds, nanoseconds of that unit)."""
_KIND_MARK = re.compile(rb'"(?:span_kind"|openinference(?:\.span\.kind)?"\s*:)')
"""Where a span says its kind; in a text about spans the quotation marks are escaped."""
_COUNT = re.compile(r"\d{9,19}(?:\.\d+)?")
"""A text that is a time in seconds since 1970, or in a smaller unit."""
_PERIOD = re.compile(r"P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?")


def recognises(path: Path) -> bool:
    """A JSON file that begins with spans of this kind, or a table of them."""
    if ending(path) in PARQUET and path.is_file():
        return _is_table(path)
    if ending(path) not in (".json", ".jsonl", ".ndjson") or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(LOOK)
    if b'"resourceSpans"' in head or b'"resource_spans"' in head:
        return False
    nested = b'"span_attributes"' in head and (b'"child_spans"' in head or b'"openinference' in head)
    return nested or (b'"attributes' in head and b"context" in head and _KIND_MARK.search(head) is not None)


def _is_table(path: Path) -> bool:
    """Whether a Parquet file has the columns of such spans."""
    from pyarrow import ArrowException  # a tenth of a second
    from pyarrow import parquet as arrow

    try:
        names = set(arrow.read_schema(path).names)
    except (ArrowException, OSError, ValueError):
        return False
    return "context.span_id" in names and not names.isdisjoint(("span_kind", f"attributes.{KIND}"))


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The conversations of a file, after what could not be read of it."""
    for item in conversations(path, spans_of_file(path), options, SYSTEM):
        yield item if isinstance(item, Quarantined) else item.trajectory


def spans_of_file(path: Path) -> Iterator[Span | Quarantined]:
    """Every span of a file."""
    if ending(path) in PARQUET:
        for number, value in parquet.rows(path):
            yield from spans_of(value, str(path), number)
        return
    whole = json_file(path) if ending(path) == ".json" else None
    if whole is None or isinstance(whole, Quarantined):
        for number, value in json_lines(path):
            yield from spans_of(value, str(path), number)
        return
    yield from spans_of(whole, str(path), None)


def spans_of(
    value: JsonValue | Quarantined, source: str, line: int | None, trace: str | None = None
) -> Iterator[Span | Quarantined]:
    """The spans of a value: a trace with `spans`, a span with those in it, or a list of either.

    `trace` is the one that they stand in, for spans that do not name theirs.
    """
    if isinstance(value, Quarantined):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from spans_of(one, source, line, trace)
    elif isinstance(value, dict) and isinstance(value.get("spans"), list):
        yield from spans_of(value["spans"], source, line, _trace(value) or trace)
    elif isinstance(value, dict):
        yield from _tree(value, None, source, line, trace)
    else:
        yield Quarantined(source=source, line=line, reason="expected a span")


def _tree(
    record: dict[str, Any], parent: str | None, source: str, line: int | None, trace: str | None
) -> Iterator[Span | Quarantined]:
    """A span, then the spans in it; where it cannot be read, these are in the span above."""
    record = _without_empty(record)
    above = parent
    try:
        trace = _trace(record) or trace
        span = _span(record, parent, trace)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        name = next((record[key] for key in IDS if key in record), "?")
        yield Quarantined(
            source=source, line=line, reason=f"span {name}: not as OpenInference has it: {error}"
        )
    else:
        above = span.id
        yield span
    inner = record.get("child_spans")
    for child in inner if isinstance(inner, list) else []:
        if isinstance(child, dict):
            yield from _tree(child, above, source, line, trace)


def _without_empty(record: dict[str, Any]) -> dict[str, Any]:
    """A record without its empty fields: a table of spans has a column for every field, null or NaN where a
    span has none."""
    return {key: value for key, value in record.items() if value is not None and value == value}


def _trace(record: dict[str, Any]) -> str | None:
    """The id of the trace that a span names, wherever it does."""
    context = record.get("context") or {}
    trace_id = record.get("trace_id") or context.get("trace_id") or record.get("context.trace_id")
    return str(trace_id) if trace_id else None


def _span(record: dict[str, Any], parent: str | None, trace: str | None) -> Span:
    if trace is None:
        raise ValueError("trace_id: missing")
    context = record.get("context") or {}
    name = str(record.get("span_name", record.get("name", "")))
    attributes = record.get("span_attributes", record.get("attributes")) or {}
    flat = {
        key.removeprefix("attributes."): value
        for key, value in record.items()
        if key.startswith("attributes.")
    }
    flat |= _without_empty(
        dict(attributes if all("." in key for key in attributes) else _flatten(attributes))
    )
    if record.get("span_kind") in (*OPERATIONS, "CHAIN"):
        flat.setdefault(KIND, record["span_kind"])
    if (moment := record.get("timestamp", record.get("start_time"))) is None:
        raise ValueError("timestamp: missing")
    start = _nanoseconds(moment)
    status = record.get("status") or {}
    code = str(record.get("status_code", status.get("code", status.get("status_code", "")))).upper()
    reason = record.get("status_message") or status.get("description") or code
    events = [
        (str(e.get("Name", e.get("name"))), e) for e in record.get("events") or [] if isinstance(e, dict)
    ]
    return Span(
        trace=trace,
        id=str(record.get("span_id") or context.get("span_id") or record["context.span_id"]),
        parent=str(p) if (p := record.get("parent_span_id") or record.get("parent_id") or parent) else None,
        start=start,
        end=_nanoseconds(record["end_time"])
        if record.get("end_time")
        else start + _duration(record.get("duration")),
        attributes=genai_attributes(flat, name),
        events=events,
        failure=str(reason) if "ERROR" in code else None,
        service=record.get("service_name"),
        reports_success=KIND not in flat,
    )


def _flatten(attributes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Nested attributes by their dotted names; lists of messages stay lists."""
    for key, value in attributes.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", one) for inner, one in _flatten(value))
        else:
            yield key, value


def _nanoseconds(moment: Any) -> int:
    if isinstance(moment, str) and _COUNT.fullmatch(moment):
        moment = float(moment) if "." in moment else int(moment)
    if isinstance(moment, (int, float)) and not isinstance(moment, bool):
        return int(moment * next((unit for least, unit in UNITS if moment > least), 10**9))
    time = datetime.fromisoformat(str(moment))
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def _duration(period: Any) -> int:
    """Nanoseconds of an ISO 8601 period; 0 where there is none."""
    match = _PERIOD.fullmatch(str(period)) if period else None
    if match is None:
        return 0
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return int(((days * 24 + hours) * 60 + minutes) * 60e9 + seconds * 1e9)
