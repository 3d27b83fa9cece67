"""OpenTelemetry traces as OTLP with the GenAI semantic conventions: JSON, one object or one a line, or
protobuf.

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

import itertools
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ....schemas import Action, JsonValue, Quarantined, Trajectory
from ..base import ReadOptions, attempted, ending
from . import otlp_protobuf
from .contents import arguments, plain
from .conversation import Answer, Call, Said, Talk
from .mapping import ROLES
from .otlp_spans import Span, moment_of, nest, objects_of, spans_of, value_of
from .rules import Rules, rules
from .turns import loaded

SYSTEM = "otlp"
LOOK = 64 * 1024
MODEL_CALLS = ("chat", "generate_content", "text_completion")
UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, OverflowError)
"""What is raised for messages that are not as they should be."""


def recognises(path: Path) -> bool:
    """A file that begins with `resourceSpans`, or one of protobuf."""
    if otlp_protobuf.recognises(path):
        return True
    if ending(path) not in (".json", ".jsonl", ".ndjson") or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(LOOK)
    return b'"resourceSpans"' in head or b'"resource_spans"' in head


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The conversations of a file, after what could not be read of it."""
    spans = (item for line, value in objects_of(path) for item in spans_of(value, str(path), line))
    for item in conversations(path, spans, options, SYSTEM):
        yield item if isinstance(item, Quarantined) else item.trajectory


@dataclass(frozen=True)
class Told:
    """A conversation, and where in it each of its spans stands: the event of an agent that came of it."""

    trajectory: Trajectory
    places: dict[str, int]


def conversations(
    path: Path, items: Iterable[Span | Quarantined], options: ReadOptions, system: str
) -> Iterator[Told | Quarantined]:
    """The conversations that spans hold, after what could not be read of them."""
    spans: dict[tuple[str, str], Span] = {}
    for item in items:
        if isinstance(item, Quarantined):
            yield item
        else:
            spans.setdefault((item.trace, item.id), item)
    nest(spans)
    has_messages = False
    for name, many in _conversations(spans.values()).items():
        conversation = Conversation(str(path), rules(options.map), system)
        conversation.take_all(many)
        yield from conversation.wrong
        if conversation.talk.events:
            has_messages = True
            trajectory = attempted(partial(conversation.trajectory, name, options), str(path))
            yield (
                trajectory
                if isinstance(trajectory, Quarantined)
                else Told(trajectory, conversation.agents_events(many))
            )
    if not has_messages:
        yield Quarantined(source=str(path), reason=_nothing(list(spans.values())))


def conversation(spans: Iterable[Span], source: str, how: Rules, system: str) -> Conversation:
    """Spans that are known to be of one conversation."""
    result = Conversation(source, how, system)
    by_id: dict[tuple[str, str], Span] = {}
    for span in spans:
        by_id.setdefault((span.trace, span.id), span)
    nest(by_id)
    result.take_all(list(by_id.values()))
    return result


def _nothing(spans: list[Span]) -> str:
    """Why no conversation came of spans, by what they are."""
    names = {key.partition(".")[0] for span in spans for key in span.attributes}
    if not spans:
        return "no spans in it"
    if "openinference" in names or "llm" in names:
        return (
            "no messages in its OpenInference spans; were inputs and outputs hidden "
            "(OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS)?"
        )
    if "gen_ai" in names:
        return (
            "no messages of a GenAI conversation in its spans; were they recorded "
            "(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT)?"
        )
    some = ", ".join(sorted(names)[:8])
    return f"no spans of language models (gen_ai.…, openinference.…) in it, but of {some or 'nothing'}"


class Results:
    """What tools said so far, the latest first: most histories repeat that."""

    def __init__(self) -> None:
        self.known: dict[str, None] = {}
        self.states = self.refusals = 0

    def look(self, talk: Talk) -> None:
        """Take in what came since the last look."""
        states = list(itertools.islice(reversed(talk.states.values()), len(talk.states) - self.states))
        refusals = talk.refusals[self.refusals :]
        self.states, self.refusals = self.states + len(states), self.refusals + len(refusals)
        observations = (state.get("observation") for state in states if isinstance(state, dict))
        self.known |= {
            text: None for one in (*reversed(list(observations)), *refusals) if (text := plain(one).strip())
        }

    def __contains__(self, text: str) -> bool:
        """Whether a text has one of them in it."""
        return text in self.known or any(one in text for one in reversed(self.known))


class Conversation:
    """The spans of one conversation on their way to a trajectory."""

    def __init__(self, source: str, how: Rules, system: str) -> None:
        self.source = source
        self.system = system
        self.places: dict[str, int] = {}
        self.talk = Talk(how)
        self.said: Counter[str] = Counter()
        self.told = Results()
        self.first: str | None = None
        self.wrong: list[Quarantined] = []
        self.services: list[str] = []
        self.agent: str | None = None

    def take_all(self, spans: list[Span]) -> None:
        """Add all spans in order of their start."""
        speak = _with_speaking(spans)
        for span in sorted(spans, key=lambda span: (span.start, -span.end)):
            self.take(span, is_heard=id(span) not in speak)

    def take(self, span: Span, *, is_heard: bool) -> None:
        """Add what a span says, an agent's where it `is_heard`; what cannot be read is noted with its id."""
        if span.service and span.service not in self.services:
            self.services.append(span.service)
        before = len(self.talk.events)
        try:
            if span.operation == "execute_tool":
                self.places[span.id] = self._tool(span)
            elif span.operation in MODEL_CALLS or (span.operation == "invoke_agent" and is_heard):
                self._model_call(span)
        except UNREADABLE as error:
            self.wrong.append(Quarantined(source=self.source, reason=f"span {span.id}: {error}"))
        for event in self.talk.events[before:]:
            if self.talk.kinds.get(event.actor) == "agent":
                self.places.setdefault(span.id, event.seq)

    def agents_events(self, spans: list[Span]) -> dict[str, int]:
        """Span -> the agent's event that came of it, of one in it, or of the one before it."""
        last = next((e.seq for e in self.talk.events if self.talk.kinds.get(e.actor) == "agent"), None)
        by_start = sorted(spans, key=lambda span: (span.start, -span.end))
        nested: dict[int, Span] = {}
        for span in spans:
            _add_with_outer(nested, span)
        for span in sorted(nested.values(), key=lambda span: -span.depth):
            if span.id in self.places and span.around is not None:
                outer = span.around.id
                self.places[outer] = min(self.places.get(outer, 2**31), self.places[span.id])
        for span in by_start:
            last = self.places.get(span.id, last)
            if last is not None:
                self.places.setdefault(span.id, last)
        return self.places

    def trajectory(self, name: str, options: ReadOptions) -> Trajectory:
        """What was taken."""
        tags = {"service": ", ".join(self.services)} if self.services else {}
        return self.talk.trajectory(
            name, self.source, options, system=self.system, agent=self.agent, tags=tags
        )

    def _model_call(self, span: Span) -> None:
        name = span.agents[0] if span.agents else None
        self.agent = self.agent or (span.agents[-1] if span.agents else None)
        model = span.attributes.get("gen_ai.response.model") or span.attributes.get("gen_ai.request.model")
        instructions = span.instructions()
        history = ([instructions] if instructions else []) + span.messages("input")
        for message in self._new(history):
            if not self._heard(message):
                self._take(message, span, moment_of(span.start))
        actor = self.talk.known(name or "assistant", "agent", str(model) if model else None)
        for message in span.messages("output"):
            self.said[message.key()] += 1
            message.name = name
            self._take(message, span, moment_of(span.end))
        self.talk.used(actor, _tokens(span, "input", "prompt"), _tokens(span, "output", "completion"))
        if span.failed:
            failure = Answer(f"{span.operation} failed", call="", failed=True, error=span.failed)
            self.talk.answered(failure, moment_of(span.end))

    def _heard(self, message: Said) -> bool:
        """Whether an answer to no named call says what a tool's own span said already."""
        if not message.answers or any(answer.call is not None for answer in message.answers):
            return False
        if self.talk.waiting:
            return False
        self.told.look(self.talk)
        return all(plain(answer.content) in self.told for answer in message.answers)

    def _take(self, message: Said, span: Span, time: str) -> None:
        message.time = message.time or time
        if ROLES.get(message.role) == "human" and len(span.agents) > 1:
            # Inside an agent that another one called, the "user" is the one that called.
            message.role, message.name = "assistant", span.agents[1]
        elif ROLES.get(message.role) == "agent" and message.name is None and span.agents:
            message.name = span.agents[0]
        self.talk.take(message)

    def _new(self, history: list[Said]) -> Iterator[Said]:
        """Those of a history that were not said before."""
        keys = [message.key() for message in history]
        human_keys = [
            key for key, message in zip(keys, history, strict=True) if ROLES.get(message.role) == "human"
        ]
        agent_keys = [key for key, message in zip(keys, history, strict=True) if _answers(message)]
        repeats = self.first in human_keys[:1] or any(self.said[key] for key in agent_keys)
        self.first = self.first or next(iter(human_keys), None)
        counts: Counter[str] = Counter()
        for key, message in zip(keys, history, strict=True):
            counts[key] += 1
            is_repetition = self.said[key] >= (
                counts[key] if repeats or message.role == "system" else self.said[key] + 1
            )
            if not is_repetition:
                self.said[key] += 1
                yield message

    def _tool(self, span: Span) -> int:
        """Place of the call that a tool span carries out, answered."""
        attributes = span.attributes
        name, own_id = str(attributes.get("gen_ai.tool.name", "tool")), attributes.get("gen_ai.tool.call.id")
        call = Call(
            name, value_of(attributes.get("gen_ai.tool.call.arguments")), str(own_id) if own_id else None
        )
        call_id = self._asked(call)
        if call_id is None:
            call_id = call.id = call.id or f"span {span.id}"
            actor = span.agents[0] if span.agents else None
            message = Said("assistant", name=actor, time=moment_of(span.start), calls=[call])
            self.said[message.key()] += 1
            self.talk.take(message)
        result = value_of(attributes.get("gen_ai.tool.call.result"))
        has_failed = None if span.failed is None and not span.tells else span.failed is not None
        self.talk.answered(Answer(result, call_id, has_failed, span.failed), moment_of(span.end))
        return self.talk.calls[call_id]

    def _asked(self, call: Call) -> str | None:
        """The id of the call that a tool span carries out, as the talk knows it.

        Where the span has none, that of the first call of the tool that still waits, one with the same
        arguments before all others.
        """
        if call.id is not None:
            return call.id if call.id in self.talk.calls else None
        first = None
        for call_id, place in self.talk.waiting.items():
            action = self.talk.events[place].action
            if action is not None and action.name == call.name:
                if call.arguments in (None, "") or _is_asked(action, call.arguments):
                    return call_id
                first = first or call_id
        return first


def _is_asked(action: Action, value: JsonValue) -> bool:
    """Whether a call has the arguments that a tool was given, as JSON or as Python prints it, or as the text
    that is the call's only one."""
    keywords, raw = arguments(loaded(value))
    if raw is None:
        return action.arguments == keywords
    return action.raw == raw or list(action.arguments.values()) == [value]


def _conversations(spans: Any) -> dict[str, list[Span]]:
    """Conversation -> its spans; a span that names none is of the one conversation of its trace."""
    key = "gen_ai.conversation.id"
    names: dict[str, set[str]] = {}
    for span in spans:
        if span.attributes.get(key):
            names.setdefault(span.trace, set()).add(str(span.attributes[key]))
    by_name: dict[str, list[Span]] = {}
    for span in spans:
        only = names.get(span.trace, set())
        name = span.conversation or (next(iter(only)) if len(only) == 1 else span.trace)
        by_name.setdefault(name, []).append(span)
    return by_name


def _answers(message: Said) -> bool:
    """Whether a message is the agent's or a tool's, so that a history has it only from before."""
    return ROLES.get(message.role) == "agent" or bool(message.answers)


def _with_speaking(spans: list[Span]) -> Container[int]:
    """The `id` of each span in which a model call has messages: an agent's own count where none does."""
    speak: dict[int, Span] = {}
    for span in spans:
        if span.around is None or id(span.around) in speak:
            continue
        with suppress(*UNREADABLE):  # it is told when it is taken
            if span.operation in MODEL_CALLS and span.said_any():
                _add_with_outer(speak, span.around)
    return speak


def _add_with_outer(spans: dict[int, Span], span: Span) -> None:
    """Add a span and those that it is in, by `id`."""
    one: Span | None = span
    while one is not None and id(one) not in spans:
        spans[id(one)] = one
        one = one.around


def _tokens(span: Span, name: str, old: str) -> int | None:
    usage = "gen_ai.usage.{}_tokens".format
    count = span.attributes.get(usage(name), span.attributes.get(usage(old)))
    return count if isinstance(count, int) else None
