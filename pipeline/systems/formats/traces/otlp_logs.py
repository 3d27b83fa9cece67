"""OTLP logs with the events of the GenAI semantic conventions, as the spans of the calls that they are of.

Since conventions 1.37 an event of a call holds its messages (`gen_ai.client.inference.operation.details`);
before, each message was an event (`gen_ai.user.message` ..., `gen_ai.choice`). Events of one call share its
span. What the span itself says in a trace comes before what its events in logs say.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

from .....schemas import JsonValue, Quarantined
from ...base import expect
from .otlp_spans import Span, attributes_of, field_of, nanoseconds, part_of, plain_value

WRONG = (TypeError, ValueError, AttributeError, KeyError, OverflowError)
"""What objects raise that are not as OTLP has them."""
EVENTS = re.compile(
    r"gen_ai\.(client\.inference\.operation\.details|choice|(system|user|assistant|tool)\.message)"
)
"""The names of the events that hold messages; others, such as evaluations, are no part of a call."""
SIDES = {
    "input": ("gen_ai.input.messages", "gen_ai.system_instructions"),
    "output": ("gen_ai.output.messages",),
}
"""Side of a call -> the attributes that hold its messages."""
OF_MODEL = ("gen_ai.request.", "gen_ai.response.", "gen_ai.usage.")
"""What begins the attributes that name the model and its tokens."""
_Key = tuple[str, str]


def is_logs(value: Any) -> bool:
    """Whether an object of OTLP holds logs."""
    return isinstance(value, dict) and isinstance(field_of(value, "resourceLogs"), list)


def spans_of(
    values: Iterable[tuple[int | None, JsonValue]], traced: Iterable[Span], source: str
) -> Iterator[Span | Quarantined]:
    """The spans that the events of a file's objects are of; the events of those that are in its traces, too,
    are added there. An event that is not as OTLP has it is quarantined alone, and other log records are left
    out."""
    calls = _Calls(traced)
    for line, value in values:
        calls.begin_export()
        for place, resource in enumerate(field_of(value, "resourceLogs")):
            at = f"resourceLogs[{place}]"
            try:
                records = list(_records(resource))
            except WRONG as error:
                yield Quarantined(source=source, line=line, reason=f"{at}: not as OTLP has it: {error}")
                continue
            for number, (record, service) in enumerate(records):
                try:
                    calls.add(record, service)
                except WRONG as error:
                    reason = f"{at}, record {number}: not as OTLP has it: {error}"
                    yield Quarantined(source=source, line=line, reason=reason)
    yield from calls.logged.values()


def _records(resource: Any) -> Iterator[tuple[Any, str | None]]:
    """Each log record of a resource, with the name of the service that wrote it."""
    service = attributes_of(part_of(resource, "resource", dict)).get("service.name")
    for scope in part_of(resource, "scopeLogs", list):
        for record in part_of(scope, "logRecords", list):
            yield record, str(service) if service else None


class _Calls:
    """The spans that events are of."""

    def __init__(self, traced: Iterable[Span]) -> None:
        self.logged: dict[_Key, Span] = {}
        """Those that no trace has."""
        self._traced: dict[_Key, Span] = {}
        for span in traced:
            self._traced.setdefault((span.trace, span.id), span)
        self._silent: dict[_Key, set[str]] = {}
        self._digests = set[bytes]()
        self._repeats = Counter[str]()
        """How often each event stands in the export that is being read."""

    def begin_export(self) -> None:
        """Note that another object of the file begins: what it repeats of earlier ones was sent again."""
        self._repeats.clear()

    def add(self, record: Any, service: str | None) -> None:
        """Add an event to the span that it is of, once; ValueError where it names none."""
        item = expect(record, dict, "logRecords[]")
        attributes = attributes_of(item)
        name = str(field_of(item, "eventName") or attributes.get("event.name") or "")
        if not EVENTS.fullmatch(name):
            return
        trace, mark = field_of(item, "traceId"), field_of(item, "spanId")
        conversation = attributes.get("gen_ai.conversation.id")
        if not mark or not (trace or conversation):
            raise ValueError("traceId and spanId: missing")
        body = plain_value(part_of(item, "body", dict))
        is_dated = field_of(item, "timeUnixNano") not in (None, "", "0", 0)
        time = nanoseconds(item, "timeUnixNano" if is_dated else "observedTimeUnixNano")
        key = str(trace or conversation), str(mark)
        event = {**attributes, **(body if isinstance(body, dict) else {})}
        if not self._is_new(json.dumps([*key, time, name, event], sort_keys=True, default=str)):
            return
        if key in self._traced:
            self._add_to_traced(key, name, event)
            return
        if key not in self.logged:
            self.logged[key] = Span(*key, None, time, time, {}, [], None, service)
        span = self.logged[key]
        span.start, span.end = min(span.start, time), max(span.end, time)
        of_call = {key: one for key, one in attributes.items() if key != "event.name"}
        span.attributes = {"gen_ai.operation.name": "chat", **of_call, **span.attributes}
        span.events.append((name, event))

    def _is_new(self, text: str) -> bool:
        """Whether an event comes for the first time: exporters that try again write all of an export twice.
        What stands twice in one export was said twice."""
        self._repeats[text] += 1
        text = f"{self._repeats[text]} {text}"
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        is_new = digest not in self._digests
        self._digests.add(digest)
        return is_new

    def _add_to_traced(self, key: _Key, name: str, event: dict[str, Any]) -> None:
        """Add what an event says to a span whose trace does not say it."""
        span = self._traced[key]
        if key not in self._silent:
            self._silent[key] = {side for side in SIDES if _is_silent(span, side)}
        silent = self._silent[key]
        if name.endswith(".details"):
            fields = {field for side in SIDES.keys() - silent for field in SIDES[side]}
            event = {field: one for field, one in event.items() if field not in fields}
            of_model = {field: one for field, one in event.items() if field.startswith(OF_MODEL)}
            span.attributes = {**of_model, **span.attributes}
        elif ("output" if name == "gen_ai.choice" else "input") not in silent:
            return
        span.events.append((name, event))


def _is_silent(span: Span, side: str) -> bool:
    try:
        return not span.messages(side)
    except WRONG:  # it is noted when the span is added
        return False
