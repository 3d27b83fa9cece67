"""OpenTelemetry spans out of OTLP, as JSON in its two notations or as protobuf."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from .....schemas import JsonValue, Quarantined
from ...base import T, ending, expect, json_file, json_lines, json_value
from ..fields import contents
from ..fields.values import describe
from ..messages import chat, dialects
from ..messages.conversation import Answer, Call, ChatMessage
from . import otlp_protobuf, own_attributes
from .openinference_attributes import KIND, genai_attributes

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INDEXED = re.compile(r"gen_ai\.(prompt|completion)\.(\d+)\.(.+)")
_MESSAGE = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_WRONG = (TypeError, ValueError, OverflowError)
SERVED, SERVED_BACK = "server_tool_call", "server_tool_call_response"
"""Types of the parts of a message in which the model's provider calls its own tool, and in which that
answers."""
TOOLS = ("tool", "function")
"""Roles whose name is a tool's, and nobody's who speaks."""
MODEL_CALLS = ("chat", "generate_content", "text_completion")
"""Operations that are a model's call."""
AGENTS = 64
"""Most names of nested agents that a span keeps."""


@dataclass
class Span:
    """One span of a conversation with its attributes as plain values."""

    trace: str
    id: str
    parent: str | None
    start: int
    end: int
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    failure: str | None
    """Why the operation failed, where it did."""
    service: str | None
    reports_success: bool = True
    """Whether a tool's span without a failure says that it succeeded."""
    parent_span: Span | None = None
    """The span that it is in."""
    depth: int = 0
    """The number of spans that it is in."""
    agents: list[str] = field(default_factory=list)
    """Names of the agents at work, the innermost first."""
    conversation: str | None = None
    """The id of its conversation, its own or that of the nearest span around it."""
    call_around: Span | None = None
    """The nearest span around that says it is a model's call, with no agent or tool between."""
    inner_calls: int = 0
    """The number of spans whose `call_around` it is and that say they are a model's call, too."""

    @property
    def operation(self) -> str:
        return self._operation_in_attributes or ("chat" if self.has_messages() else "")

    @property
    def _operation_in_attributes(self) -> str:
        """The operation as far as it takes no look at messages, which may be wrong."""
        name = self.attributes.get("gen_ai.operation.name")
        if name is None and "gen_ai.request.model" in self.attributes:
            return "chat"
        return str(name or "")

    def enter(self, around: Span | None) -> None:
        """Note the span that this one is in, and take over its agents and conversation; that one must have
        entered its own."""
        own, of = self.attributes.get("gen_ai.agent.name"), self.attributes.get("gen_ai.conversation.id")
        self.parent_span, self.depth = around, around.depth + 1 if around else 0
        outer = around.agents if around else []
        self.agents = list(dict.fromkeys([str(own), *outer]))[:AGENTS] if own else outer
        self.conversation = str(of) if of else around.conversation if around else None
        self._enter_call(around)

    def _enter_call(self, around: Span | None) -> None:
        operation = around._operation_in_attributes if around else ""
        if around is not None and operation not in ("invoke_agent", "execute_tool"):
            self.call_around = around if operation in MODEL_CALLS else around.call_around
        if self.call_around is not None and self._operation_in_attributes in MODEL_CALLS:
            self.call_around.inner_calls += 1

    @property
    def same_call(self) -> Span | None:
        """The span around that tells the same call of a model, as another library saw it: a framework's
        around its provider's. One around several calls tells of more than one."""
        around = self.call_around
        return around if around is not None and around.inner_calls == 1 else None

    def has_messages(self) -> bool:
        """Whether the span carries messages."""
        return any(key.startswith(("gen_ai.prompt", "gen_ai.completion")) for key in self.attributes) or any(
            part for part in (self.messages("input"), self.messages("output"))
        )

    def messages(self, side: str) -> list[ChatMessage]:
        """The messages of a side, `input` or `output`; ValueError where they are not as they should be."""
        name = f"gen_ai.{side}.messages"
        match = next((a[name] for a in (self.attributes, *(e[1] for e in self.events)) if name in a), None)
        if match is not None:
            return [message for one in expect(value_of(match), list, name) for message in _read_message(one)]
        return [
            *self._event_messages(side),
            *self._indexed_messages("prompt" if side == "input" else "completion"),
        ]

    def instructions(self) -> ChatMessage | None:
        """The system instructions, where they stand apart from the messages."""
        name = "gen_ai.system_instructions"
        match = next((a[name] for a in (self.attributes, *(e[1] for e in self.events)) if name in a), None)
        text = contents.plain_text(value_of(match)) if match is not None else ""
        return ChatMessage("system", text) if text else None

    def tool_run(self) -> tuple[Any, Any]:
        """(arguments, result) of a tool's run, out of attributes, else out of events as Strands has them."""
        events = dict(self.events)
        call, back = events.get("gen_ai.tool.message", {}), events.get("gen_ai.choice", {})
        arguments = self.attributes.get("gen_ai.tool.call.arguments", call.get("content"))
        if (result := self.attributes.get("gen_ai.tool.call.result")) is not None:
            return value_of(arguments), value_of(result)
        return value_of(arguments), _without_parts(value_of(back.get("message")))

    def _event_messages(self, side: str) -> Iterator[ChatMessage]:
        for name, attributes in self.events:
            body = attributes.get("gen_ai.event.content", attributes)
            body = value_of(body) if isinstance(body, str) else body
            if not isinstance(body, dict):
                continue
            if side == "input" and (match := _MESSAGE.fullmatch(name)):
                yield from map(chat.message, chat.split_message(_old_message(body, match[1])))
            elif side == "output" and name == "gen_ai.choice":
                inner = value_of(body.get("message", body))
                whole = inner if isinstance(inner, dict) else {**body, "content": body.get("message")}
                choice = _old_message(whole, "assistant")
                yield from map(chat.message, chat.split_message(choice))

    def _indexed_messages(self, side: str) -> Iterator[ChatMessage]:
        """OpenLLMetry's `gen_ai.prompt.0.role`, `gen_ai.prompt.0.tool_calls.0.name` ..."""
        by_name: dict[int, dict[str, Any]] = {}
        for key, value in self.attributes.items():
            if (match := _INDEXED.fullmatch(key)) and match[1] == side:
                by_name.setdefault(int(match[2]), {})[match[3]] = value
        for _, parts in sorted(by_name.items()):
            role = str(parts.get("role", "user" if side == "prompt" else "assistant"))
            calls = {key.split(".")[1] for key in parts if key.startswith("tool_calls.")}
            body = {"role": role, **{k: v for k, v in parts.items() if "." not in k}}
            body["content"] = _content_parts(body.get("content"))
            if calls:
                body["tool_calls"] = [
                    {part: parts.get(f"tool_calls.{n}.{part}") for part in ("id", "name", "arguments")}
                    for n in sorted(calls, key=int)
                ]
            yield from map(chat.message, chat.split_message(body))


def _without_parts(result: Any) -> Any:
    """A result that is a list of texts, as Bedrock's API has them, as one text; another as it is."""
    parts = result if isinstance(result, list) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and [*part] == ["text"]]
    return contents.plain_text(parts) if texts and len(texts) == len(parts) else result


def _content_parts(content: Any) -> Any:
    """A content whose parts were recorded as JSON in a text, as these parts."""
    inside = value_of(content)
    return (
        inside
        if isinstance(inside, list) and inside and all(map(contents.is_message_part, inside))
        else content
    )


def nest(spans: Mapping[tuple[str, str], Span]) -> None:
    """Enter each span, by (trace, id), into the span that it is in. A circle is opened somewhere."""
    nested: set[int] = set()
    for span in spans.values():
        chain: dict[int, Span] = {}
        one: Span | None = span
        while one is not None and id(one) not in nested and id(one) not in chain:
            chain[id(one)] = one
            one = spans.get((one.trace, one.parent)) if one.parent else None
        around = one if one is not None and id(one) in nested else None
        for inner in reversed(chain.values()):
            inner.enter(around)
            around = inner
        nested.update(chain)


def objects_of(path: Path) -> Iterator[tuple[int | None, JsonValue | Quarantined]]:
    """Each object of a file as (line or number of the message, value or what is wrong with it)."""
    if otlp_protobuf.recognises(path):
        yield from otlp_protobuf.objects_of(path)
        return
    whole = json_file(path) if ending(path) == ".json" else None
    if whole is None or isinstance(whole, Quarantined):
        yield from json_lines(path)
        return
    for one in whole if isinstance(whole, list) else [whole]:
        yield None, one


def spans_of(value: JsonValue | Quarantined, source: str, line: int | None) -> Iterator[Span | Quarantined]:
    """The spans of an object of OTLP; what is not as OTLP has it is quarantined."""
    if isinstance(value, Quarantined):
        yield value
        return
    if not isinstance(value, dict) or not isinstance(field_of(value, "resourceSpans"), list):
        yield Quarantined(source=source, line=line, reason="expected an object with a list resourceSpans")
        return
    for number, resource in enumerate(field_of(value, "resourceSpans")):
        yield from _spans_below(resource, f"resourceSpans[{number}]", source, line)


def _spans_below(resource: Any, where: str, source: str, line: int | None) -> Iterator[Span | Quarantined]:
    """The spans of a resource; what is not as OTLP has it is quarantined alone."""

    def quarantine(error: Exception) -> Quarantined:
        return Quarantined(source=source, line=line, reason=f"{where}: not as OTLP has it: {error}")

    try:
        scopes = part_of(resource, "scopeSpans", list)
    except ValueError as error:
        yield quarantine(error)
        return
    service: Any = None
    try:
        service = attributes_of(part_of(resource, "resource", dict)).get("service.name")
    except _WRONG as error:
        yield quarantine(error)
    for scope in scopes:
        try:
            spans = part_of(scope, "spans", list)
        except ValueError as error:
            yield quarantine(error)
        else:
            yield from (_span(record, service, source, line) for record in spans)


def _span(record: Any, service: Any, source: str, line: int | None) -> Span | Quarantined:
    try:
        attributes = genai_attributes(attributes_of(record), str(record.get("name", "")))
        attributes = own_attributes.genai_attributes(attributes)
        status = part_of(record, "status", dict)
        has_failed = status.get("code") in (2, "STATUS_CODE_ERROR") or "error.type" in attributes
        reason = status.get("message") or attributes.get("error.type") or "error"
        return Span(
            trace=str(_required_field(record, "traceId")),
            id=str(_required_field(record, "spanId")),
            parent=field_of(record, "parentSpanId") or None,
            start=nanoseconds(record, "startTimeUnixNano"),
            end=nanoseconds(
                record, "endTimeUnixNano" if field_of(record, "endTimeUnixNano") else "startTimeUnixNano"
            ),
            attributes=attributes,
            events=[*_events_in(attributes), *_events_of(record)],
            failure=str(reason) if has_failed else None,
            service=str(service) if service else None,
            reports_success=KIND not in attributes,
        )
    except _WRONG as error:
        name = record.get("spanId", "?") if isinstance(record, dict) else "?"
        return Quarantined(source=source, line=line, reason=f"span {name}: not as OTLP has it: {error}")


def _events_of(record: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for event in part_of(record, "events", list):
        yield str(event.get("name")), attributes_of(event)


def _events_in(attributes: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events that Pydantic AI keeps as JSON in an attribute."""
    events = value_of(attributes.get("events"))
    for event in events if isinstance(events, list) else []:
        if isinstance(event, dict) and isinstance(event.get("event.name"), str):
            yield event["event.name"], event


def field_of(record: Any, key: str) -> Any:
    """A field in lowerCamelCase, as OTLP wants it, or in the snake_case that some write."""
    return record[key] if key in record else record.get(_snake_case(key))


@cache
def _snake_case(key: str) -> str:
    return re.sub("([A-Z])", r"_\1", key).lower()


def part_of(record: Any, key: str, kind: type[T]) -> T:
    """A field of an object, empty where it is missing; ValueError where either is of another kind."""
    value = field_of(expect(record, dict, f"what has {key}"), key)
    return expect(value, kind, key) if value else kind()


def _required_field(record: Any, key: str) -> Any:
    """A field that every span has; ValueError where it is missing."""
    value = field_of(record, key)
    if value in (None, ""):
        raise ValueError(f"{key}: missing")
    return value


def nanoseconds(record: Any, key: str) -> int:
    """A field with a time; ValueError where there is none."""
    value = _required_field(record, key)
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{key}: expected nanoseconds since 1970, got {describe(value)}") from None


def attributes_of(record: Any) -> dict[str, Any]:
    return _pairs(part_of(record, "attributes", list))


def _pairs(items: list[Any]) -> dict[str, Any]:
    """OTLP's list of keys and values as an object; ValueError for one that is none."""
    whole = [expect(one, dict, "attributes") for one in items]
    return {expect(one.get("key"), str, "key"): plain_value(part_of(one, "value", dict)) for one in whole}


def plain_value(value: dict[str, Any]) -> Any:
    """OTLP's AnyValue as a plain one."""
    inner: Any
    kind, inner = next(iter(value.items()), ("", None))
    match kind:
        case "intValue":
            return int(inner)
        case "arrayValue":
            return [plain_value(expect(one, dict, "values")) for one in part_of(inner, "values", list)]
        case "kvlistValue":
            return _pairs(part_of(inner, "values", list))
    return inner


def value_of(value: Any) -> Any:
    """A value that may have been recorded as JSON in a text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json_value(value)
        except ValueError:
            return value
    return value


def _read_message(value: JsonValue) -> Iterator[ChatMessage]:
    """One message of the current conventions, a role and parts; what is said after the answer of a tool that
    the model's provider runs is a message apart."""
    item = expect(value, dict, "message")
    if "parts" not in item:
        yield from map(chat.message, chat.split_message(item))
        return
    role = str(item.get("role", "user"))
    head: dict[str, Any] = {"role": role}
    if role not in TOOLS and isinstance(name := item.get("name"), str) and name.strip():
        head |= {"name": name, "id_name": role}
    message, texts, is_server_answer = ChatMessage(**head), list[JsonValue](), False
    for part in expect(item["parts"], list, "parts"):
        inner = expect(part, dict, "parts[]")
        kind, call = inner.get("type"), inner.get("id")
        if kind in ("tool_call", "function_call", SERVED):
            arguments = (
                _server_value(inner, "arguments", "input") if kind == SERVED else inner.get("arguments")
            )
            message.calls.append(Call(str(inner.get("name")), value_of(arguments), call and str(call)))
        elif kind in ("tool_call_response", SERVED_BACK):
            is_server_answer = kind == SERVED_BACK
            value = _server_value(inner, "response", "result", "content") if is_server_answer else None
            content = value if is_server_answer else inner.get("response", inner.get("result"))
            message.answers.append(Answer(content, str(call).strip() if call else None))
        else:
            if is_server_answer:
                message.text = contents.plain_text(texts) or None
                yield message
                message, texts, is_server_answer = ChatMessage(**head), [], False
            texts.append(part)
    message.text = contents.plain_text(texts) or None
    yield message


def _server_value(part: dict[str, Any], *names: str) -> JsonValue:
    """What a tool of the model's provider was asked or gave back, without the type of the tool."""
    whole: JsonValue = value_of(part.get(str(part["type"])))
    if not isinstance(whole, dict):
        beside: JsonValue = next((part[name] for name in names if name in part), whole)
        return beside
    content = next((whole[name] for name in names if name in whole), None)
    return {key: value for key, value in whole.items() if key != "type"} if content is None else content


def _old_message(body: dict[str, Any], role: str) -> dict[str, Any]:
    """A message event of conventions up to 1.36 as the API's message that it was made of."""
    message = {**body, "role": body.get("role") or role, "content": value_of(body.get("content"))}
    if isinstance(message["content"], dict):
        message["content"] = str(body["content"])
    if role == "tool" and isinstance(parts := message["content"], list) and dialects.untyped_calls(parts):
        message["role"] = "user"  # as Bedrock's API has results
    elif role == "tool":
        message["tool_call_id"] = body.get("id")
    if "tool_calls" in body:
        message["tool_calls"] = value_of(body["tool_calls"])
    return {key: value for key, value in message.items() if value is not None and key != "name"}


def moment_of(nanoseconds: int) -> str:
    """ISO 8601 of a time in nanoseconds since 1970."""
    return (_EPOCH + timedelta(microseconds=nanoseconds // 1000)).isoformat()
