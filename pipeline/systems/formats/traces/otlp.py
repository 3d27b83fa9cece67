"""OpenTelemetry traces as OTLP with the GenAI semantic conventions: JSON, one object or one a line, or
protobuf.

A conversation is what shares a `gen_ai.conversation.id`, else a trace. Its spans are taken in order of their
start. A model call (chat, generate_content, text_completion) says its output, and of its input whatever was
not said before, since each call repeats the history; where a call gives no history, its input is all new.
`execute_tool` spans give arguments, result and status of a tool call, `invoke_agent` spans name the agent,
and say its messages where no model call below them does.

Messages may be attributes (`gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.system_instructions`),
the same on an event of the span, or of conventions up to 1.36 events a message (`gen_ai.user.message` ...,
`gen_ai.choice`) and indexed attributes (`gen_ai.prompt.0.content`), or events in logs (otlp_logs.py). All
spans of a file are held, since those of one trace may be anywhere in it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from .....schemas import Action, JsonValue, Quarantined, Trajectory, content_hash
from .....schemas.text import count_of
from ...base import ReadOptions, ending, quarantine_failure
from ..fields.contents import arguments, plain_text
from ..fields.mapping import ROLES
from ..fields.rules import Rules, rules
from ..messages.conversation import Answer, Call, ChatMessage, Talk
from ..messages.turns import decode_value
from . import otlp_logs, otlp_protobuf
from .otlp_calls import KnownCalls
from .otlp_spans import MODEL_CALLS, Span, field_of, moment_of, nest, objects_of, spans_of

SYSTEM = "otlp"
LOOK = 64 * 1024
Tokens = tuple[int | None, int | None]
"""Of prompts and of answers."""
UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, OverflowError)
"""What malformed messages raise."""


def recognises(path: Path) -> bool:
    """A file that begins with `resourceSpans`, or one of protobuf."""
    if otlp_protobuf.recognises(path):
        return True
    if ending(path) not in (".json", ".jsonl", ".ndjson") or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(LOOK)
    has_logs = b'"resourceLogs"' in head or b'"resource_logs"' in head
    return b'"resourceSpans"' in head or b'"resource_spans"' in head or (has_logs and b'"gen_ai.' in head)


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The conversations of a file, after what could not be read of it."""
    for item in conversations(path, _spans_of_file(path), options, SYSTEM):
        yield item if isinstance(item, Quarantined) else item.trajectory


def _spans_of_file(path: Path) -> Iterator[Span | Quarantined]:
    """The spans of a file's traces, then those of the events in its logs."""
    logs: list[tuple[int | None, Any]] = []
    traced: list[Span] = []
    for line, value in objects_of(path):
        has_logs = otlp_logs.is_logs(value)
        if has_logs:
            logs.append((line, value))
        if not has_logs or isinstance(field_of(value, "resourceSpans"), list):
            for item in spans_of(value, str(path), line):
                traced += [item] if isinstance(item, Span) else []
                yield item
    yield from otlp_logs.spans_of(logs, traced, str(path))


@dataclass(frozen=True)
class PlacedTrajectory:
    """A conversation's trajectory, and where its spans are in it."""

    trajectory: Trajectory
    places: dict[str, int]
    """Span's id -> number of the agent's event that came of it."""


def conversations(
    path: Path, items: Iterable[Span | Quarantined], options: ReadOptions, system: str
) -> Iterator[PlacedTrajectory | Quarantined]:
    """The conversations that spans hold, after what could not be read of them."""
    spans: dict[tuple[str, str], Span] = {}
    for item in items:
        if isinstance(item, Quarantined):
            yield item
        else:
            spans.setdefault((item.trace, item.id), item)
    nest(spans)
    has_messages, silent = False, list[Span]()
    for name, many in _spans_by_conversation(spans.values()).items():
        conversation = Conversation(str(path), rules(options.map), system)
        conversation.add_spans(many)
        yield from conversation.problems
        silent += conversation.silent_calls()
        if conversation.talk.events:
            has_messages = True
            trajectory = quarantine_failure(partial(conversation.trajectory, name, options), str(path))
            yield (
                trajectory
                if isinstance(trajectory, Quarantined)
                else PlacedTrajectory(trajectory, conversation.event_places(many))
            )
    if not has_messages:
        yield Quarantined(source=str(path), reason=_reason_empty(list(spans.values())))
    elif silent:
        reason = (
            f"{count_of(len(silent), 'model call', 'model calls')} without messages, such as span "
            f"{silent[0].id}: what was said there was not recorded, or in a way that is not known"
        )
        yield Quarantined(source=str(path), reason=reason)


def conversation(spans: Iterable[Span], source: str, how: Rules, system: str) -> Conversation:
    """The conversation of spans that are known to be of one."""
    result = Conversation(source, how, system)
    by_id: dict[tuple[str, str], Span] = {}
    for span in spans:
        by_id.setdefault((span.trace, span.id), span)
    nest(by_id)
    result.add_spans(list(by_id.values()))
    return result


def _reason_empty(spans: list[Span]) -> str:
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
    """The texts that tools returned so far, searched from the latest, which most histories repeat."""

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        self.state_count = self.refusal_count = 0

    def update(self, talk: Talk) -> None:
        """Add what came into the talk since the last call."""
        states = list(itertools.islice(reversed(talk.states.values()), len(talk.states) - self.state_count))
        refusals = talk.refusals[self.refusal_count :]
        self.state_count, self.refusal_count = (
            self.state_count + len(states),
            self.refusal_count + len(refusals),
        )
        observations = (state.get("observation") for state in states if isinstance(state, dict))
        self.texts |= {
            text: None
            for one in (*reversed(list(observations)), *refusals)
            if (text := plain_text(one).strip())
        }

    def __contains__(self, text: str) -> bool:
        """Whether a text has one of them in it."""
        return text in self.texts or any(one in text for one in reversed(self.texts))


class Conversation:
    """The spans of one conversation on their way to a trajectory."""

    def __init__(self, source: str, how: Rules, system: str) -> None:
        self.source = source
        self.system = system
        self.places: dict[str, int] = {}
        self.talk = Talk(how)
        self.message_counts: Counter[str] = Counter()
        self.results = Results()
        self.calls = KnownCalls(self.talk)
        self.first_request: str | None = None
        self.problems: list[Quarantined] = []
        self.speaking: dict[int, Span] = {}
        self.mute: list[Span] = []
        self.answers: dict[int, set[str]] = {}
        """A span's id() -> a hash of each text and call that its model answered."""
        self.tokens: dict[int, Tokens] = {}
        """A span's id() -> the tokens of its model's call that were counted."""
        self.services: list[str] = []
        self.agent: str | None = None

    def add_spans(self, spans: list[Span]) -> None:
        """Add all spans in order of their start."""
        speak = _speaking_spans(spans)
        for span in sorted(spans, key=lambda span: (span.start, -span.end)):
            self.add_span(span, is_heard=id(span) not in speak)

    def add_span(self, span: Span, *, is_heard: bool) -> None:
        """Add what a span says; an agent's own messages only where it `is_heard`, for no model call in it has
        any. What cannot be read is noted with the span's id."""
        if span.service and span.service not in self.services:
            self.services.append(span.service)
        before = len(self.talk.events)
        try:
            if span.operation == "execute_tool":
                self.places[span.id] = self._add_tool_result(span)
            elif span.operation in MODEL_CALLS or (span.operation == "invoke_agent" and is_heard):
                self._add_model_call(span)
        except UNREADABLE as error:
            self.problems.append(Quarantined(source=self.source, reason=f"span {span.id}: {error}"))
        for event in self.talk.events[before:]:
            if self.talk.kinds.get(event.actor) == "agent":
                self.places.setdefault(span.id, event.seq)

    def event_places(self, spans: list[Span]) -> dict[str, int]:
        """Span's id -> number of the agent's event that came of it, else of the first in a span below it,
        else of the one before it."""
        last = next((e.seq for e in self.talk.events if self.talk.kinds.get(e.actor) == "agent"), None)
        by_start = sorted(spans, key=lambda span: (span.start, -span.end))
        nested: dict[int, Span] = {}
        for span in spans:
            _add_with_ancestors(nested, span)
        for span in sorted(nested.values(), key=lambda span: -span.depth):
            if span.id in self.places and span.parent_span is not None:
                outer = span.parent_span.id
                self.places[outer] = min(self.places.get(outer, 2**31), self.places[span.id])
        for span in by_start:
            last = self.places.get(span.id, last)
            if last is not None:
                self.places.setdefault(span.id, last)
        return self.places

    def trajectory(self, name: str, options: ReadOptions) -> Trajectory:
        """The trajectory of what was added."""
        tags = {"service": ", ".join(self.services)} if self.services else {}
        return self.talk.trajectory(
            name, self.source, options, system=self.system, agent=self.agent, tags=tags
        )

    def silent_calls(self) -> list[Span]:
        """The model calls without messages that did not fail, where no span around or within one has any."""
        around: dict[int, Span] = {}
        for span in self.speaking.values():
            _add_with_ancestors(around, span)
        is_in_speech: dict[int, bool] = {}

        def in_speech(span: Span) -> bool:
            chain: list[Span] = []
            one: Span | None = span
            while one is not None and id(one) not in is_in_speech and id(one) not in self.speaking:
                chain.append(one)
                one = one.parent_span
            result = one is not None and is_in_speech.get(id(one), True)
            is_in_speech.update((id(each), result) for each in chain)
            return result

        return [span for span in self.mute if id(span) not in around and not in_speech(span)]

    def _add_model_call(self, span: Span) -> None:
        self.agent = self.agent or (span.agents[-1] if span.agents else None)
        model = span.attributes.get("gen_ai.response.model") or span.attributes.get("gen_ai.request.model")
        instructions = span.instructions()
        history = ([instructions] if instructions else []) + span.messages("input")
        answers = span.messages("output")
        name = span.agents[0] if span.agents else next((one.name for one in answers if one.name), None)
        for message in history:
            if self._is_from_agent(message, name):
                message.role = "assistant"
        self.calls.note_history(history)
        for message in self._new_messages(history):
            fresh = self.calls.without_known(message)
            if fresh is not None and not self._is_repeated_answer(fresh):
                self._add_message(fresh, span, moment_of(span.start))
        actor = self.talk.add_participant(name or "assistant", "agent", str(model) if model else None)
        if history or answers:
            self.speaking[id(span)] = span
        elif span.operation in MODEL_CALLS and not span.failure:
            self.mute.append(span)
        self._add_answers(answers, span, name)
        self._add_tokens(span, actor)
        if span.failure:
            failure = Answer(f"{span.operation} failed", call="", has_failed=True, error=span.failure)
            self.talk.add_answer(failure, moment_of(span.end))

    def _is_from_agent(self, message: ChatMessage, own: str | None) -> bool:
        """Whether a user in the history of the model called `own` is an agent: another one, or that with what
        it answered. With other words it is a person of its name."""
        if ROLES.get(message.role) != "human" or self.talk.kinds.get(message.name or "") != "agent":
            return False
        return message.name != own or replace(message, role="assistant").key() in self.message_counts

    def _add_answers(self, answers: list[ChatMessage], span: Span, name: str | None) -> None:
        """Add what a model answered, but for what another library's span told of the same call."""
        outer = self.answers.get(id(span.same_call), set())
        self.answers[id(span)] = {piece for message in answers for piece in _pieces(message)} or outer
        for message in answers:
            pieces = _pieces(message)
            if pieces and pieces <= outer and not message.answers:
                self.calls.note_same(message)
                self.message_counts[message.key()] = max(1, self.message_counts[message.key()])
                continue
            self.message_counts[message.key()] += 1
            message.name, message.id_name = name, span.agents[0] if span.agents else message.role
            self._add_message(message, span, moment_of(span.end))
            self.calls.note_output(message)

    def _add_tokens(self, span: Span, actor: str) -> None:
        """Add what a model's call took, but for what another library's span told of the same call."""
        outer = self.tokens.get(id(span.same_call), (None, None))
        own = _tokens(span, "input", "prompt"), _tokens(span, "output", "completion")
        self.talk.add_tokens(
            actor, *(n if other is None else None for n, other in zip(own, outer, strict=True))
        )
        prompt, completion = (n if other is None else other for n, other in zip(own, outer, strict=True))
        self.tokens[id(span)] = prompt, completion

    def _is_repeated_answer(self, message: ChatMessage) -> bool:
        """Whether a message only repeats what tools' own spans said: it answers no named call, and no call
        waits for an answer."""
        if not message.answers or any(answer.call is not None for answer in message.answers):
            return False
        if self.talk.pending_calls:
            return False
        self.results.update(self.talk)
        return all(plain_text(answer.content) in self.results for answer in message.answers)

    def _add_message(self, message: ChatMessage, span: Span, time: str) -> None:
        message.time = message.time or time
        if ROLES.get(message.role) == "human" and len(span.agents) > 1:
            # Inside an agent that another one called, the "user" is the one that called.
            message.role, message.name, message.id_name = "assistant", span.agents[1], None
        elif ROLES.get(message.role) == "agent" and span.agents:
            message.name = message.name or span.agents[0]
            message.id_name = span.agents[0] if message.id_name == message.role else message.id_name
        self.talk.add_message(message)

    def _new_messages(self, history: list[ChatMessage]) -> Iterator[ChatMessage]:
        """The messages of a history that were not said before.

        A history repeats earlier ones if it begins with the same human message, or has an agent's message
        that was said: then only what goes beyond them is new. In any other history all is new but a system
        message that was said.
        """
        keys = [message.key() for message in history]
        human_keys = [
            key for key, message in zip(keys, history, strict=True) if ROLES.get(message.role) == "human"
        ]
        agent_keys = [key for key, message in zip(keys, history, strict=True) if _is_from_agent(message)]
        repeats = self.first_request in human_keys[:1] or any(self.message_counts[key] for key in agent_keys)
        self.first_request = self.first_request or next(iter(human_keys), None)
        counts: Counter[str] = Counter()
        for key, message in zip(keys, history, strict=True):
            counts[key] += 1
            is_repetition = self.message_counts[key] >= (
                counts[key] if repeats or message.role == "system" else self.message_counts[key] + 1
            )
            if not is_repetition:
                self.message_counts[key] += 1
                yield message

    def _add_tool_result(self, span: Span) -> int:
        """Add a tool span's result to the call that it carries out, or to a new one where nobody asked for
        it; the place of the call's event."""
        attributes = span.attributes
        name, own_id = str(attributes.get("gen_ai.tool.name", "tool")), attributes.get("gen_ai.tool.call.id")
        keywords, result = span.tool_run()
        call = Call(name, keywords, str(own_id) if own_id else None)
        call_id = self._matching_call(call)
        if call_id is None:
            call_id = call.id = call.id or f"span {span.id}"
            actor = span.agents[0] if span.agents else None
            message = ChatMessage("assistant", name=actor, time=moment_of(span.start), calls=[call])
            self.message_counts[message.key()] += 1
            self.talk.add_message(message)
            self.calls.note_tool(call_id)
        is_failure = span.failure is not None or attributes.get("gen_ai.tool.status") == "error"
        has_failed = is_failure if is_failure or span.reports_success else None
        self.talk.add_answer(Answer(result, call_id, has_failed, span.failure), moment_of(span.end))
        return self.talk.calls[call_id]

    def _matching_call(self, call: Call) -> str | None:
        """The id of the call that a tool span carries out, as the talk knows it.

        Without an id in the span, that of the first call of the tool that still waits, one with the same
        arguments before all others.
        """
        if call.id is not None:
            own_id = self.calls.own_id(call.id)
            return own_id if own_id in self.talk.calls else None
        first = None
        for call_id, place in self.talk.pending_calls.items():
            action = self.talk.events[place].action
            if action is not None and action.name == call.name:
                if call.arguments in (None, "") or _has_arguments(action, call.arguments):
                    return call_id
                first = first or call_id
        return first


def _has_arguments(action: Action, value: JsonValue) -> bool:
    """Whether a call's arguments are those of a tool's span: an object, as JSON or as Python prints it, or a
    text that is the call's only argument."""
    keywords, raw = arguments(decode_value(value))
    if raw is None:
        return action.arguments == keywords
    return action.raw == raw or list(action.arguments.values()) == [value]


def _spans_by_conversation(spans: Any) -> dict[str, list[Span]]:
    """Conversation -> its spans; a span that names none belongs to the only conversation of its trace, else
    to one named as the trace."""
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


def _is_from_agent(message: ChatMessage) -> bool:
    """Whether a message is an agent's or a tool's, which a history can only have from earlier calls."""
    return ROLES.get(message.role) == "agent" or bool(message.answers)


def _speaking_spans(spans: list[Span]) -> Container[int]:
    """`id()` of each span with a model call somewhere in it that has messages: an agent's own messages do not
    count there."""
    speak: dict[int, Span] = {}
    for span in spans:
        if span.parent_span is None or id(span.parent_span) in speak:
            continue
        with suppress(*UNREADABLE):  # it is noted when it is added
            if span.operation in MODEL_CALLS and span.has_messages():
                _add_with_ancestors(speak, span.parent_span)
    return speak


def _add_with_ancestors(spans: dict[int, Span], span: Span) -> None:
    """Add a span and all that it is in, by `id()`."""
    one: Span | None = span
    while one is not None and id(one) not in spans:
        spans[id(one)] = one
        one = one.parent_span


def _pieces(message: ChatMessage) -> set[str]:
    """A hash of each text and call of an answer, whatever their ids."""
    calls = [content_hash(call.name, *arguments(call.arguments)) for call in message.calls]
    return {*calls, *([content_hash(message.text)] if message.text else [])}


def _tokens(span: Span, name: str, old: str) -> int | None:
    usage = "gen_ai.usage.{}_tokens".format
    count = span.attributes.get(usage(name), span.attributes.get(usage(old)))
    return count if isinstance(count, int) and count >= 0 else None
