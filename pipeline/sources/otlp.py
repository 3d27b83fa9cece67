"""OpenTelemetry traces as OTLP/JSON with the GenAI semantic conventions: one object, or one a line.

A conversation is what shares a `gen_ai.conversation.id`, else a trace. Its spans are taken in order of their
start. A model call (chat, generate_content, text_completion) says its output, and of its input whatever was
not said before, since each call repeats the history; where a call gives no history, its input is all new.
`execute_tool` spans give arguments, result and status of a tool call, `invoke_agent` spans name the agent,
and say its messages where no model call below them does.

Messages may be attributes (`gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.system_instructions`),
the same on an event of the span, or of conventions up to 1.36 events a message (`gen_ai.user.message` ...,
`gen_ai.choice`) and indexed attributes (`gen_ai.prompt.0.content`). All spans of a file are held, since those
of one trace may be anywhere in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from coaudit.pipeline.sources import chat, talk
from coaudit.pipeline.sources.fields import expect
from coaudit.pipeline.sources.reader import ReadOptions, json_file, json_lines
from coaudit.pipeline.sources.talk import ROLES, Answer, Call, Said, Talk
from coaudit.schemas.base import JsonValue
from coaudit.schemas.trajectory import Quarantined, Trajectory

SYSTEM = "otlp"
LOOK = 64 * 1024
MODEL_CALLS = ("chat", "generate_content", "text_completion")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INDEXED = re.compile(r"gen_ai\.(prompt|completion)\.(\d+)\.(.+)")
_MESSAGE = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")


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
    failed: str | None
    """Why the operation failed, where it did."""
    service: str | None
    above: list[Span] = field(default_factory=list)
    """The spans around it, the nearest first."""

    @property
    def operation(self) -> str:
        named = self.attributes.get("gen_ai.operation.name")
        if named is None and ("gen_ai.request.model" in self.attributes or self.said_any()):
            return "chat"
        return str(named or "")

    @property
    def agents(self) -> list[str]:
        """Names of the agents at work, the innermost first."""
        named = [span.attributes.get("gen_ai.agent.name") for span in (self, *self.above)]
        return list(dict.fromkeys(str(name) for name in named if name))

    def said_any(self) -> bool:
        """Whether the span carries messages."""
        return any(key.startswith(("gen_ai.prompt", "gen_ai.completion")) for key in self.attributes) or any(
            part for part in (self.messages("input"), self.messages("output"))
        )

    def messages(self, side: str) -> list[Said]:
        """The messages of a side, `input` or `output`; ValueError where they are not as they should be."""
        name = f"gen_ai.{side}.messages"
        found = next((a[name] for a in (self.attributes, *(e[1] for e in self.events)) if name in a), None)
        if found is not None:
            return [_message(one) for one in expect(_value(found), list, name)]
        return [*self._old_events(side), *self._indexed("prompt" if side == "input" else "completion")]

    def instructions(self) -> Said | None:
        """What the model was told apart from the chat."""
        name = "gen_ai.system_instructions"
        found = next((a[name] for a in (self.attributes, *(e[1] for e in self.events)) if name in a), None)
        text = talk.plain(_value(found)) if found is not None else ""
        return Said("system", text) if text else None

    def _old_events(self, side: str) -> Iterator[Said]:
        for name, given in self.events:
            body = given.get("gen_ai.event.content", given)
            body = _value(body) if isinstance(body, str) else body
            if not isinstance(body, dict):
                continue
            if side == "input" and (match := _MESSAGE.fullmatch(name)):
                yield chat.message(_old(body, match[1]))
            elif side == "output" and name == "gen_ai.choice":
                inner = _value(body.get("message", body))
                yield chat.message(_old(inner if isinstance(inner, dict) else body, "assistant"))

    def _indexed(self, side: str) -> Iterator[Said]:
        """OpenLLMetry's `gen_ai.prompt.0.role`, `gen_ai.prompt.0.tool_calls.0.name` ..."""
        found: dict[int, dict[str, Any]] = {}
        for key, value in self.attributes.items():
            if (match := _INDEXED.fullmatch(key)) and match[1] == side:
                found.setdefault(int(match[2]), {})[match[3]] = value
        for _, parts in sorted(found.items()):
            role = str(parts.get("role", "user" if side == "prompt" else "assistant"))
            calls = {key.split(".")[1] for key in parts if key.startswith("tool_calls.")}
            body = {"role": role, **{k: v for k, v in parts.items() if "." not in k}}
            if calls:
                body["tool_calls"] = [
                    {part: parts.get(f"tool_calls.{n}.{part}") for part in ("id", "name", "arguments")}
                    for n in sorted(calls, key=int)
                ]
            yield chat.message(body)


def recognises(path: Path) -> bool:
    """A file that begins with `resourceSpans`."""
    if path.suffix not in (".json", ".jsonl", ".ndjson") or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(LOOK)
    return b'"resourceSpans"' in head or b'"resource_spans"' in head


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The conversations of a file, after what could not be read of it."""
    spans: dict[tuple[str, str], Span] = {}
    for line, value in _objects(path):
        for item in _spans(value, str(path), line):
            if isinstance(item, Quarantined):
                yield item
            else:
                spans.setdefault((item.trace, item.id), item)
    for span in spans.values():
        span.above = _above(span, spans)
    found = False
    for name, many in _conversations(spans.values()).items():
        conversation = _Conversation(str(path))
        for span in sorted(many, key=lambda span: (span.start, -span.end)):
            conversation.take(span, many)
        yield from conversation.wrong
        if conversation.talk.events:
            found = True
            yield conversation.trajectory(name, options)
    if not found:
        reason = (
            "no messages of a GenAI conversation in its spans; were they recorded "
            "(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT)?"
        )
        yield Quarantined(source=str(path), reason=reason)


class _Conversation:
    """The spans of one conversation on their way to a trajectory."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.talk = Talk()
        self.said: Counter[str] = Counter()
        self.first: str | None = None
        self.wrong: list[Quarantined] = []
        self.services: list[str] = []
        self.agent: str | None = None

    def take(self, span: Span, others: list[Span]) -> None:
        """Add what a span says; what cannot be read is noted with the span's id."""
        if span.service and span.service not in self.services:
            self.services.append(span.service)
        try:
            if span.operation == "execute_tool":
                self._tool(span)
            elif _speaks(span, others):
                self._model_call(span)
        except ValueError as error:
            self.wrong.append(Quarantined(source=self.source, reason=f"span {span.id}: {error}"))

    def trajectory(self, name: str, options: ReadOptions) -> Trajectory:
        """What was taken."""
        tags = {"service": ", ".join(self.services)} if self.services else {}
        return self.talk.trajectory(name, self.source, options, system=SYSTEM, agent=self.agent, tags=tags)

    def _model_call(self, span: Span) -> None:
        name = span.agents[0] if span.agents else None
        self.agent = self.agent or (span.agents[-1] if span.agents else None)
        model = span.attributes.get("gen_ai.response.model") or span.attributes.get("gen_ai.request.model")
        instructions = span.instructions()
        history = ([instructions] if instructions else []) + span.messages("input")
        for said in self._new(history):
            self._take(said, span, _moment(span.start))
        actor = self.talk.known(name or "assistant", "agent", str(model) if model else None)
        for said in span.messages("output"):
            self.said[said.key()] += 1
            said.name = name
            self._take(said, span, _moment(span.end))
        self.talk.used(actor, _tokens(span, "input", "prompt"), _tokens(span, "output", "completion"))
        if span.failed:
            failed = Answer(f"{span.operation} failed", call="", failed=True, error=span.failed)
            self.talk.answered(failed, _moment(span.end))

    def _take(self, said: Said, span: Span, time: str) -> None:
        said.time = said.time or time
        if ROLES.get(said.role) == "human" and len(span.agents) > 1:
            # Inside an agent that another one called, the "user" is the one that called.
            said.role, said.name = "assistant", span.agents[1]
        elif ROLES.get(said.role) == "agent" and said.name is None and span.agents:
            said.name = span.agents[0]
        self.talk.take(said)

    def _new(self, history: list[Said]) -> Iterator[Said]:
        """Those of a history that were not said before."""
        keys = [said.key() for said in history]
        spoken = [key for key, said in zip(keys, history, strict=True) if ROLES.get(said.role) == "human"]
        theirs = [key for key, said in zip(keys, history, strict=True) if _answers(said)]
        repeats = self.first in spoken[:1] or any(self.said[key] for key in theirs)
        self.first = self.first or next(iter(spoken), None)
        here: Counter[str] = Counter()
        for key, said in zip(keys, history, strict=True):
            here[key] += 1
            known = self.said[key] >= (here[key] if repeats or said.role == "system" else self.said[key] + 1)
            if not known:
                self.said[key] += 1
                yield said

    def _tool(self, span: Span) -> None:
        given = span.attributes
        name, call = str(given.get("gen_ai.tool.name", "tool")), given.get("gen_ai.tool.call.id")
        asked = self._asked(str(call) if call else None, name)
        if asked is None:
            asked = str(call) if call else f"span {span.id}"
            wanted = Call(name, _value(given.get("gen_ai.tool.call.arguments")), asked)
            actor = span.agents[0] if span.agents else None
            said = Said("assistant", name=actor, time=_moment(span.start), calls=[wanted])
            self.said[said.key()] += 1
            self.talk.take(said)
        result = _value(given.get("gen_ai.tool.call.result"))
        self.talk.answered(Answer(result, asked, span.failed is not None, span.failed), _moment(span.end))

    def _asked(self, call: str | None, name: str) -> str | None:
        """The id of the call that a tool span carries out, as the talk knows it."""
        if call is not None:
            return call if call in self.talk.calls else None
        for known, place in self.talk.calls.items():
            event = self.talk.events[place]
            if event.status is None and event.action and event.action.name == name:
                return known
        return None


def _objects(path: Path) -> Iterator[tuple[int | None, JsonValue | Quarantined]]:
    whole = json_file(path) if path.suffix == ".json" else None
    if whole is None or isinstance(whole, Quarantined):
        yield from json_lines(path)
        return
    for one in whole if isinstance(whole, list) else [whole]:
        yield None, one


def _spans(value: JsonValue | Quarantined, source: str, line: int | None) -> Iterator[Span | Quarantined]:
    if isinstance(value, Quarantined):
        yield value
        return
    if not isinstance(value, dict) or not isinstance(_either(value, "resourceSpans"), list):
        yield Quarantined(source=source, line=line, reason="expected an object with a list resourceSpans")
        return
    for resource in _either(value, "resourceSpans"):
        try:
            service = _attributes(resource.get("resource", {})).get("service.name")
            for scope in _either(resource, "scopeSpans") or []:
                for given in scope.get("spans") or []:
                    yield _span(given, service, source, line)
        except (AttributeError, TypeError) as error:
            yield Quarantined(source=source, line=line, reason=f"resourceSpans: not as OTLP has it: {error}")


def _span(given: Any, service: Any, source: str, line: int | None) -> Span | Quarantined:
    try:
        attributes = _attributes(given)
        status = given.get("status") or {}
        failed = status.get("code") in (2, "STATUS_CODE_ERROR") or "error.type" in attributes
        why = status.get("message") or attributes.get("error.type") or "error"
        return Span(
            trace=str(_either(given, "traceId")),
            id=str(_either(given, "spanId")),
            parent=_either(given, "parentSpanId") or None,
            start=int(_either(given, "startTimeUnixNano")),
            end=int(_either(given, "endTimeUnixNano") or _either(given, "startTimeUnixNano")),
            attributes=attributes,
            events=[(str(e.get("name")), _attributes(e)) for e in given.get("events") or []],
            failed=str(why) if failed else None,
            service=str(service) if service else None,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        name = given.get("spanId", "?") if isinstance(given, dict) else "?"
        return Quarantined(source=source, line=line, reason=f"span {name}: not as OTLP has it: {error!r}")


def _either(given: Any, key: str) -> Any:
    """A field in lowerCamelCase, as OTLP wants it, or in the snake_case that some write."""
    return given.get(key, given.get(re.sub("([A-Z])", r"_\1", key).lower()))


def _attributes(given: dict[str, Any]) -> dict[str, Any]:
    return {item["key"]: _any(item.get("value", {})) for item in given.get("attributes") or []}


def _any(value: dict[str, Any]) -> Any:
    """OTLP's AnyValue as a plain one."""
    inner: Any
    kind, inner = next(iter(value.items()), ("", None))
    match kind:
        case "intValue":
            return int(inner)
        case "arrayValue":
            return [_any(one) for one in inner.get("values", [])]
        case "kvlistValue":
            return {item["key"]: _any(item.get("value", {})) for item in inner.get("values", [])}
    return inner


def _value(given: Any) -> Any:
    """A value that may have been recorded as JSON in a text."""
    if isinstance(given, str) and given[:1] in ("[", "{"):
        try:
            return from_json(given)
        except ValueError:
            return given
    return given


def _message(given: JsonValue) -> Said:
    """One message of the current conventions: a role and parts."""
    item = expect(given, dict, "message")
    if "parts" not in item:
        return chat.message(item)
    said = Said(str(item.get("role", "user")))
    texts = []
    for part in expect(item["parts"], list, "parts"):
        inner = expect(part, dict, "parts[]")
        match inner.get("type"):
            case "tool_call" | "function_call":
                call = inner.get("id")
                wanted = Call(str(inner.get("name")), _value(inner.get("arguments")), call and str(call))
                said.calls.append(wanted)
            case "tool_call_response":
                call = inner.get("id")
                content = inner.get("response", inner.get("result"))
                said.answers.append(Answer(content, str(call).strip() if call else None))
            case _:
                texts.append(part)
    said.text = talk.plain(texts) or None
    return said


def _old(body: dict[str, Any], role: str) -> dict[str, Any]:
    """A message event of conventions up to 1.36 as the API's message that it was made of."""
    message = {**body, "role": body.get("role") or role, "content": _value(body.get("content"))}
    if isinstance(message["content"], dict):
        message["content"] = str(body["content"])
    if role == "tool":
        message["tool_call_id"] = body.get("id")
    if "tool_calls" in body:
        message["tool_calls"] = _value(body["tool_calls"])
    return {key: value for key, value in message.items() if value is not None and key != "name"}


def _above(span: Span, spans: dict[tuple[str, str], Span]) -> list[Span]:
    found: list[Span] = []
    parent = span.parent
    while parent and (one := spans.get((span.trace, parent))) and one not in found and one is not span:
        found.append(one)
        parent = one.parent
    return found


def _conversations(spans: Any) -> dict[str, list[Span]]:
    """Conversation -> its spans; a span that names none is of the one conversation of its trace."""
    key = "gen_ai.conversation.id"
    named: dict[str, set[str]] = {}
    for span in spans:
        if span.attributes.get(key):
            named.setdefault(span.trace, set()).add(str(span.attributes[key]))
    found: dict[str, list[Span]] = {}
    for span in spans:
        own = span.attributes.get(key) or next(
            (s.attributes[key] for s in span.above if s.attributes.get(key)), None
        )
        only = named.get(span.trace, set())
        name = str(own) if own else next(iter(only)) if len(only) == 1 else span.trace
        found.setdefault(name, []).append(span)
    return found


def _answers(said: Said) -> bool:
    """Whether a message is the agent's or a tool's, so that a history has it only from before."""
    return ROLES.get(said.role) == "agent" or bool(said.answers)


def _speaks(span: Span, others: list[Span]) -> bool:
    """Whether a span's messages count: a model call's, or an agent's where no model call below has any."""
    if span.operation != "invoke_agent":
        return span.operation in MODEL_CALLS
    below = (one for one in others if any(span is above for above in one.above))
    return not any(one.operation in MODEL_CALLS and one.said_any() for one in below)


def _tokens(span: Span, name: str, old: str) -> int:
    usage = "gen_ai.usage.{}_tokens".format
    given = span.attributes.get(usage(name), span.attributes.get(usage(old)))
    return given if isinstance(given, int) else 0


def _moment(nanoseconds: int) -> str:
    return (_EPOCH + timedelta(microseconds=nanoseconds // 1000)).isoformat()
