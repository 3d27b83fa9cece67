"""OTLP logs with the events of the GenAI semantic conventions, as the spans of the calls that they are of.

Since conventions 1.37 an event of a call holds its messages (`gen_ai.client.inference.operation.details`);
before, each message was an event (`gen_ai.user.message` ..., `gen_ai.choice`). Events of one call share its
span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ....schemas import JsonValue, Quarantined
from ..base import expect
from .otlp_spans import Span, attributes_of, field_of, nanoseconds, part_of, plain_value

WRONG = (TypeError, ValueError, AttributeError, OverflowError)
"""What objects raise that are not as OTLP has them."""
EVENT = "gen_ai."
"""What the names of the events begin with that are read."""


def is_logs(value: Any) -> bool:
    """Whether an object of OTLP holds logs."""
    return isinstance(value, dict) and isinstance(field_of(value, "resourceLogs"), list)


def spans_of(
    values: Iterable[tuple[int | None, JsonValue]], traced: Iterable[Span], source: str
) -> Iterator[Span | Quarantined]:
    """The spans that the events of a file's objects are of; the events of those that are in its traces, too,
    are added there. An event that is not as OTLP has it is quarantined alone, and other log records are left
    out."""
    earlier = {(span.trace, span.id): span for span in traced}
    spans = dict(earlier)
    for line, value in values:
        for place, resource in enumerate(field_of(value, "resourceLogs")):
            at = f"resourceLogs[{place}]"
            try:
                records = list(_records(resource))
            except WRONG as error:
                yield Quarantined(source=source, line=line, reason=f"{at}: not as OTLP has it: {error}")
                continue
            for number, (record, service) in enumerate(records):
                try:
                    _add(record, service, spans)
                except WRONG as error:
                    reason = f"{at}, record {number}: not as OTLP has it: {error}"
                    yield Quarantined(source=source, line=line, reason=reason)
    yield from (span for key, span in spans.items() if key not in earlier)


def _records(resource: Any) -> Iterator[tuple[Any, str | None]]:
    """Each log record of a resource, with the name of the service that wrote it."""
    service = attributes_of(part_of(resource, "resource", dict)).get("service.name")
    for scope in part_of(resource, "scopeLogs", list):
        for record in part_of(scope, "logRecords", list):
            yield record, str(service) if service else None


def _add(record: Any, service: str | None, spans: dict[tuple[str, str], Span]) -> None:
    """Add an event to the span that it is of; ValueError where it names none."""
    item = expect(record, dict, "logRecords[]")
    attributes = attributes_of(item)
    name = str(field_of(item, "eventName") or attributes.get("event.name") or "")
    if not name.startswith(EVENT):
        return
    trace, mark = field_of(item, "traceId"), field_of(item, "spanId")
    conversation = attributes.get("gen_ai.conversation.id")
    if not mark or not (trace or conversation):
        raise ValueError("traceId and spanId: missing")
    body = plain_value(part_of(item, "body", dict))
    is_dated = field_of(item, "timeUnixNano") not in (None, "", "0", 0)
    time = nanoseconds(item, "timeUnixNano" if is_dated else "observedTimeUnixNano")
    key = str(trace or conversation), str(mark)
    if key not in spans:
        spans[key] = Span(*key, None, time, time, {"gen_ai.operation.name": "chat"}, [], None, service)
    span = spans[key]
    span.start, span.end = min(span.start, time), max(span.end, time)
    span.attributes |= {key: one for key, one in attributes.items() if key != "event.name"}
    span.events.append((name, {**attributes, **(body if isinstance(body, dict) else {})}))
