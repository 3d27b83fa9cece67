"""A conversation in the roles of chat models, on its way to a trajectory; chat, OTLP and Inspect share it.

A user is a human, an assistant an agent; system, developer and tool are the environment, and so is a user's
turn that a scaffold fills with the output of a command (rules.py). System messages before anything else are
the start. A message's text is one event, each tool call after it an action; what the tool answered is the
public state after that action, and its status where the log or a rule tells it. An answer to no known call is
a note of the environment.

Identity: of system, native id and first message where the log names the conversation, so that it may grow;
else of the messages as they were logged, whatever rules make of them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....schemas import Action, Event, JsonValue, Outcome, Participant, Trajectory, content_hash
from ....schemas.trajectory import ParticipantKind, Setting
from ..base import ReadOptions, folder_of
from .contents import arguments, plain
from .marks import Veto, surroundings, veto
from .marks import error as error_of
from .rules import Rules

ENVIRONMENT = "environment"
MOST_TOKENS = 2**40
"""What no call uses; a log that says more is wrong."""


@dataclass
class Call:
    """A tool call as an assistant asked for it."""

    name: str
    arguments: JsonValue = None
    id: str | None = None
    parse_error: str | None = None


@dataclass
class Answer:
    """What a tool said; `failed` as the log itself has it, None where it does not say."""

    content: JsonValue
    call: str | None = None
    failed: bool | None = None
    error: str | None = None


@dataclass
class Said:
    """One message: a text, tool calls, answers of tools, or several of these."""

    role: str
    text: str | None = None
    name: str | None = None
    time: str | None = None
    model: str | None = None
    calls: list[Call] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    spoilt: list[str] = field(default_factory=list)
    """What is wrong with the calls that could not be read, which are left out."""

    def key(self) -> str:
        """Equal for a message and its repetition in a later history; a history has no names and times."""
        calls = [(call.name, arguments(call.arguments)[0], call.id) for call in self.calls]
        return content_hash(self.role, self.text, calls, [(a.call, a.content) for a in self.answers])


@dataclass
class Talk:
    """The messages taken in so far, as events."""

    rules: Rules
    messages: list[Said] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    states: dict[str, JsonValue] = field(default_factory=dict)
    kinds: dict[str, ParticipantKind] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, dict[str, int]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    """Call id -> place of its event."""
    waiting: dict[str, int] = field(default_factory=dict)
    """Those of them that nothing answered yet, in the order of their places."""
    latest: deque[str] = field(default_factory=deque)
    """The calls that were asked for last: what names no call answers the first of these that waits."""
    refusals: list[JsonValue] = field(default_factory=list)
    """Results that stand as a person's rejections, and in no state."""

    def take(self, message: Said) -> None:
        """Add a message; ValueError for an unknown role, and for a spoilt call once the rest is in."""
        kind, actor = self.rules.speaker(
            {"role": message.role, "content": message.text, "name": message.name}
        )
        self.messages.append(message)
        if kind == "environment":
            self._surroundings(message, actor or ENVIRONMENT)
        elif message.text or message.calls or not (message.answers or message.spoilt):
            actor = self.known(actor or message.name or message.role, kind, message.model)
            if message.text:
                self._add(actor, "message", message.time, text=message.text)
            if message.calls and not (len(self.messages) > 1 and self.messages[-2].calls):
                self.latest.clear()
            for call in message.calls:
                self._call(actor, call, message.time)
        for answer in message.answers:
            self.answered(answer, message.time)
        if message.spoilt:
            raise ValueError("; ".join(message.spoilt))

    def known(self, name: str, kind: ParticipantKind, model: str | None = None) -> str:
        """The name, noted as a participant; one that somebody of another kind has gets the kind added."""
        if self.kinds.get(name, kind) != kind:
            name = f"{name} ({kind})"
        self.kinds[name] = kind
        if model:
            self.models.setdefault(name, model)
        return name

    def used(self, name: str, prompt: int | None, completion: int | None) -> None:
        """Count tokens of a participant; None is not known, and no 0, and so is what can be no count (-1, or
        beyond all tables)."""
        tokens = self.tokens.setdefault(name, {})
        for kind, count in (("prompt_tokens", prompt), ("completion_tokens", completion)):
            if count is not None and 0 <= count < MOST_TOKENS:
                tokens[kind] = tokens.get(kind, 0) + count

    def answered(self, answer: Answer, time: str | None = None, by: str = ENVIRONMENT) -> None:
        """Note what a tool said after the call that it answers, with the first answer standing."""
        call_id = self._asked(answer.call)
        if call_id is not None and call_id not in self.waiting:
            return
        place = None if call_id is None else self.waiting.pop(call_id)
        if (refusal := veto(answer.content)) is not None:
            self.refusals.append(answer.content)
            self._refused(refusal, time)
            return
        state: JsonValue = {"observation": answer.content}
        state_hash = content_hash(state)
        self.states[state_hash] = state
        if place is None:
            verdict = self._verdict(answer, None)
            failure = verdict if verdict["status"] == "failed" else {}
            actor = self.known(by, "environment")
            self._add(
                actor, "note", time, text=plain(answer.content), states={"public": state_hash}, **failure
            )
        else:
            event = self.events[place]
            verdict = self._verdict(answer, event.action.name if event.action else None)
            update = {**verdict, "states": {"public": state_hash}}
            self.events[place] = event.model_copy(update=update)

    def _refused(self, refusal: Veto, time: str | None) -> None:
        """Note that a person did not let a call run, which has no status and no result then."""
        humans = (event.actor for event in reversed(self.events) if self.kinds.get(event.actor) == "human")
        actor = next(humans, None) or self.known("user", "human")
        self._add(actor, "confirm_reject", time)
        if refusal.said:
            self._add(actor, "message", time, text=refusal.said)

    def _verdict(self, answer: Answer, tool: str | None) -> dict[str, str | None]:
        """Status and error of an answer: as the log has them, else as a rule says, else unknown."""
        if answer.failed is None:
            status = self.rules.status(answer.content, tool)
        else:
            status = "failed" if answer.failed else "succeeded"
        if status != "failed":
            return {"status": status, "error": None}
        error = answer.error or error_of(answer.content) or plain(answer.content)[:500]
        return {"status": status, "error": error}

    def trajectory(
        self,
        native_id: str,
        source: str,
        options: ReadOptions,
        *,
        system: str,
        named: bool = True,
        setting: Setting | None = None,
        condition: str | None = None,
        task: str | None = None,
        instance: str | None = None,
        agent: str | None = None,
        agent_model: str | None = None,
        tags: dict[str, str] | None = None,
        outcomes: tuple[Outcome, ...] = (),
    ) -> Trajectory:
        """The trajectory; `named` says whether the log itself gave the id."""
        first = self.events[0]
        mark: object = [message.key() for message in self.messages]
        if named:
            mark = (native_id, first.actor, first.kind, first.text)
        setting = options.setting or setting
        participants = self._participants(agent_model, simulated=setting == "simulated")
        agents = [p for p in participants if p.kind == "agent"]
        return Trajectory(
            id=content_hash(system, mark)[:16],
            native_id=native_id,
            source=source,
            system=system,
            setting=setting,
            condition=options.condition or condition or folder_of(Path(source)).name or None,
            task=task,
            instance=instance,
            agent=options.agent or agent or (agents[0].name if len(agents) == 1 else None),
            agent_model=next((p.model for p in agents if p.model), None),
            tags=(tags or {}) | options.tags,
            participants=participants,
            events=tuple(self.events),
            outcomes=outcomes,
            states=self.states,
        )

    def _participants(self, agent_model: str | None, *, simulated: bool) -> tuple[Participant, ...]:
        return tuple(
            Participant(
                name=name,
                kind=kind,
                model=self.models.get(name, agent_model if kind == "agent" else None),
                simulated=kind == "human" and simulated,
                tokens=self.tokens.get(name, {}),
            )
            for name, kind in self.kinds.items()
        )

    def _surroundings(self, message: Said, name: str) -> None:
        if message.text is None:
            return
        kind = self.rules.mapping.role_table.get(message.role)
        if kind != "environment" and not surroundings(message.text):
            # Under another role it is what came of a command, and answers a call that still waits for it.
            self.answered(Answer(message.text), message.time, name)
            return
        actor = self.known(name, "environment")
        if self.events and [e.kind for e in self.events] == ["start"]:
            text = f"{self.events[0].text}\n\n{message.text}"
            self.events[0] = self.events[0].model_copy(update={"text": text})
        else:
            self._add(actor, "note" if self.events else "start", message.time, text=message.text)

    def _call(self, actor: str, call: Call, time: str | None) -> None:
        values, raw = arguments(call.arguments)
        failure = {"status": "failed", "error": call.parse_error} if call.parse_error else {}
        self._add(actor, "action", time, action=Action(name=call.name, arguments=values, raw=raw), **failure)
        call_id = call.id or f"#{len(self.events)}"
        self.calls[call_id] = len(self.events) - 1
        self.latest.append(call_id)
        self.waiting.pop(call_id, None)
        if not failure:
            self.waiting[call_id] = self.calls[call_id]

    def _asked(self, call: str | None) -> str | None:
        """The call that an answer is to; without an id, the first of the last ones that still waits."""
        if call is not None:
            return call if call in self.calls else None
        while self.latest and self.latest[0] not in self.waiting:
            self.latest.popleft()
        return self.latest[0] if self.latest else None

    def _add(self, actor: str, kind: Any, time: str | None, **rest: Any) -> None:
        self.events.append(Event(seq=len(self.events), actor=actor, kind=kind, time=time, **rest))


def outcomes(values: dict[str, Any]) -> tuple[Outcome, ...]:
    """Outcomes by name from numbers, texts and whatever else a log holds there."""
    return tuple(_outcome(name, value) for name, value in values.items())


def _outcome(name: str, value: Any) -> Outcome:
    if isinstance(value, (bool, int, float)):
        return Outcome(name=name, value=value)
    if isinstance(value, str) or value is None:
        return Outcome(name=name, text=value, reason="the log does not say" if value is None else None)
    return Outcome(name=name, data=value, reason="neither a number nor a text")
