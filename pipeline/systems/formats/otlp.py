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
    seen = False
    for name, many in _conversations(spans.values()).items():
        conversation = Conversation(str(path), rules(options.map), system)
        conversation.take_all(many)
        yield from conversation.wrong
        if conversation.talk.events:
            seen = True
            told = attempted(partial(conversation.trajectory, name, options), str(path))
            yield told if isinstance(told, Quarantined) else Told(told, conversation.agents_events(many))
    if not seen:
        yield Quarantined(source=str(path), reason=_nothing(list(spans.values())))


def conversation(spans: Iterable[Span], source: str, how: Rules, system: str) -> Conversation:
    """Spans that are known to be of one conversation."""
    made = Conversation(source, how, system)
    known: dict[tuple[str, str], Span] = {}
    for span in spans:
        known.setdefault((span.trace, span.id), span)
    nest(known)
    made.take_all(list(known.values()))
    return made


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
        seen = (state.get("observation") for state in states if isinstance(state, dict))
        self.known |= {
            said: None for one in (*reversed(list(seen)), *refusals) if (said := plain(one).strip())
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
        ordered = sorted(spans, key=lambda span: (span.start, -span.end))
        nested: dict[int, Span] = {}
        for span in spans:
            _add_with_outer(nested, span)
        for span in sorted(nested.values(), key=lambda span: -span.depth):
            if span.id in self.places and span.around is not None:
                outer = span.around.id
                self.places[outer] = min(self.places.get(outer, 2**31), self.places[span.id])
        for span in ordered:
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
        for said in self._new(history):
            if not self._heard(said):
                self._take(said, span, moment_of(span.start))
        actor = self.talk.known(name or "assistant", "agent", str(model) if model else None)
        for said in span.messages("output"):
            self.said[said.key()] += 1
            said.name = name
            self._take(said, span, moment_of(span.end))
        self.talk.used(actor, _tokens(span, "input", "prompt"), _tokens(span, "output", "completion"))
        if span.failed:
            failed = Answer(f"{span.operation} failed", call="", failed=True, error=span.failed)
            self.talk.answered(failed, moment_of(span.end))

    def _heard(self, said: Said) -> bool:
        """Whether an answer to no named call says what a tool's own span said already."""
        if not said.answers or any(answer.call is not None for answer in said.answers):
            return False
        if self.talk.waiting:
            return False
        self.told.look(self.talk)
        return all(plain(answer.content) in self.told for answer in said.answers)

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

    def _tool(self, span: Span) -> int:
        """Place of the call that a tool span carries out, answered."""
        given = span.attributes
        name, call = str(given.get("gen_ai.tool.name", "tool")), given.get("gen_ai.tool.call.id")
        wanted = Call(name, value_of(given.get("gen_ai.tool.call.arguments")), str(call) if call else None)
        asked = self._asked(wanted)
        if asked is None:
            asked = wanted.id = wanted.id or f"span {span.id}"
            actor = span.agents[0] if span.agents else None
            said = Said("assistant", name=actor, time=moment_of(span.start), calls=[wanted])
            self.said[said.key()] += 1
            self.talk.take(said)
        result = value_of(given.get("gen_ai.tool.call.result"))
        failed = None if span.failed is None and not span.tells else span.failed is not None
        self.talk.answered(Answer(result, asked, failed, span.failed), moment_of(span.end))
        return self.talk.calls[asked]

    def _asked(self, wanted: Call) -> str | None:
        """The id of the call that a tool span carries out, as the talk knows it.

        Where the span has none, that of the first call of the tool that still waits, one with the same
        arguments before all others.
        """
        if wanted.id is not None:
            return wanted.id if wanted.id in self.talk.calls else None
        first = None
        for known, place in self.talk.waiting.items():
            action = self.talk.events[place].action
            if action is not None and action.name == wanted.name:
                if wanted.arguments in (None, "") or _is_asked(action, wanted.arguments):
                    return known
                first = first or known
        return first


def _is_asked(action: Action, given: JsonValue) -> bool:
    """Whether a call has the arguments that a tool was given, as JSON or as Python prints it, or as the text
    that is the call's only one."""
    named, raw = arguments(loaded(given))
    if raw is None:
        return action.arguments == named
    return action.raw == raw or list(action.arguments.values()) == [given]


def _conversations(spans: Any) -> dict[str, list[Span]]:
    """Conversation -> its spans; a span that names none is of the one conversation of its trace."""
    key = "gen_ai.conversation.id"
    named: dict[str, set[str]] = {}
    for span in spans:
        if span.attributes.get(key):
            named.setdefault(span.trace, set()).add(str(span.attributes[key]))
    by_name: dict[str, list[Span]] = {}
    for span in spans:
        only = named.get(span.trace, set())
        name = span.conversation or (next(iter(only)) if len(only) == 1 else span.trace)
        by_name.setdefault(name, []).append(span)
    return by_name


def _answers(said: Said) -> bool:
    """Whether a message is the agent's or a tool's, so that a history has it only from before."""
    return ROLES.get(said.role) == "agent" or bool(said.answers)


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


def _add_with_outer(known: dict[int, Span], span: Span) -> None:
    """Add a span and those that it is in, by `id`."""
    one: Span | None = span
    while one is not None and id(one) not in known:
        known[id(one)] = one
        one = one.around


def _tokens(span: Span, name: str, old: str) -> int | None:
    usage = "gen_ai.usage.{}_tokens".format
    given = span.attributes.get(usage(name), span.attributes.get(usage(old)))
    return given if isinstance(given, int) else None
