"""A conversation in the roles of chat models, on its way to a trajectory; chat, OTLP and Inspect share it.

A user is a human, an assistant an agent; system, developer and tool are the environment. System messages
before anything else are the start. A message's text is one event, each tool call after it an action; what
the tool answered is the public state after that action, and its status. An answer to no known call is a
note of the environment.

Identity: of system, native id and first message where the log names the conversation, so that it may grow;
else of the content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from ....schemas import Action, Event, JsonValue, Outcome, Participant, Trajectory, content_hash
from ....schemas.trajectory import ParticipantKind, Setting
from ..base import ReadOptions

ENVIRONMENT = "environment"
ROLES: dict[str, ParticipantKind] = {
    "user": "human",
    "human": "human",
    "assistant": "agent",
    "model": "agent",
    "system": "environment",
    "developer": "environment",
    "tool": "environment",
    "function": "environment",
}
UNSAID = ("reasoning", "thinking")
"""Parts that nobody else sees."""
_TEXTS = ("text", "input_text", "output_text", "refusal")


@dataclass
class Call:
    """A tool call as an assistant asked for it."""

    name: str
    arguments: JsonValue = None
    id: str | None = None
    parse_error: str | None = None


@dataclass
class Answer:
    """What a tool said; `failed` where the log says so."""

    content: JsonValue
    call: str | None = None
    failed: bool = False
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

    def key(self) -> str:
        """Equal for a message and its repetition in a later history; a history has no names and times."""
        calls = [(call.name, arguments(call.arguments)[0], call.id) for call in self.calls]
        return content_hash(self.role, self.text, calls, [(a.call, a.content) for a in self.answers])


@dataclass
class Talk:
    """The messages taken in so far, as events."""

    events: list[Event] = field(default_factory=list)
    states: dict[str, JsonValue] = field(default_factory=dict)
    kinds: dict[str, ParticipantKind] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, dict[str, int]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    """Call id -> place of its event."""

    def take(self, said: Said) -> None:
        """Add a message; ValueError for a role that there is not."""
        if said.role not in ROLES:
            raise ValueError(f"unknown role {said.role[:80]!r}, expected one of {', '.join(ROLES)}")
        if ROLES[said.role] == "environment":
            self._surroundings(said)
        else:
            actor = self.known(said.name or said.role, ROLES[said.role], said.model)
            if said.text:
                self._add(actor, "message", said.time, text=said.text)
            for call in said.calls:
                self._call(actor, call, said.time)
        for answer in said.answers:
            self.answered(answer, said.time)

    def known(self, name: str, kind: ParticipantKind, model: str | None = None) -> str:
        """The name, noted as a participant; one that somebody of another kind has gets the kind added."""
        if self.kinds.get(name, kind) != kind:
            name = f"{name} ({kind})"
        self.kinds[name] = kind
        if model:
            self.models.setdefault(name, model)
        return name

    def used(self, name: str, prompt: int, completion: int) -> None:
        """Count tokens of a participant."""
        tokens = self.tokens.setdefault(name, {"prompt_tokens": 0, "completion_tokens": 0})
        tokens["prompt_tokens"] += prompt
        tokens["completion_tokens"] += completion

    def answered(self, answer: Answer, time: str | None = None) -> None:
        """Note what a tool said after the call that it answers, with the first answer standing."""
        state: JsonValue = {"observation": answer.content}
        hashed = content_hash(state)
        place = self._asked(answer.call)
        if place is None:
            self.states[hashed] = state
            failed = {"status": "failed", "error": answer.error} if answer.failed else {}
            actor = self.known(ENVIRONMENT, "environment")
            self._add(actor, "note", time, text=plain(answer.content), states={"public": hashed}, **failed)
        elif self.events[place].status is None:
            self.states[hashed] = state
            error = answer.error or plain(answer.content)[:500] if answer.failed else None
            self.events[place] = self.events[place].model_copy(
                update={
                    "status": "failed" if answer.failed else "succeeded",
                    "error": error,
                    "states": {"public": hashed},
                }
            )

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
        mark: object = [event.digest() for event in self.events]
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
            condition=options.condition or condition or Path(source).absolute().parent.name or None,
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

    def _surroundings(self, said: Said) -> None:
        if said.text is None:
            return
        actor = self.known(ENVIRONMENT, "environment")
        if self.events and [e.kind for e in self.events] == ["start"]:
            both = f"{self.events[0].text}\n\n{said.text}"
            self.events[0] = self.events[0].model_copy(update={"text": both})
        else:
            self._add(actor, "note" if self.events else "start", said.time, text=said.text)

    def _call(self, actor: str, call: Call, time: str | None) -> None:
        parsed, raw = arguments(call.arguments)
        failed = {"status": "failed", "error": call.parse_error} if call.parse_error else {}
        self._add(actor, "action", time, action=Action(name=call.name, arguments=parsed, raw=raw), **failed)
        self.calls[call.id or f"#{len(self.events)}"] = len(self.events) - 1

    def _asked(self, call: str | None) -> int | None:
        """Place of the call that an answer is to; without an id, the first one without an answer."""
        if call is not None:
            return self.calls.get(call)
        return next((at for at in self.calls.values() if self.events[at].status is None), None)

    def _add(self, actor: str, kind: Any, time: str | None, **rest: Any) -> None:
        self.events.append(Event(seq=len(self.events), actor=actor, kind=kind, time=time, **rest))


def arguments(given: JsonValue) -> tuple[dict[str, JsonValue], str | None]:
    """(arguments by name, the text as logged where it does not say just that) of a tool call."""
    if given is None or given == "":
        return {}, None
    if isinstance(given, str):
        try:
            parsed = from_json(given)
        except ValueError:
            return {}, given
        return (parsed, None) if isinstance(parsed, dict) else ({"argument": parsed}, given)
    return (given, None) if isinstance(given, dict) else ({"argument": given}, None)


def plain(content: JsonValue) -> str:
    """The text of a content: itself, its text parts one below the other, `[type]` for any other part."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = [p for p in content if not (isinstance(p, dict) and p.get("type") in UNSAID)]
        return "\n".join(_part(part) for part in parts)
    return content if isinstance(content, str) else _part(content)


def _part(part: JsonValue) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else str(part)
    kind = str(part.get("type", "text"))
    text = part.get(kind) if kind == "refusal" else part.get("text", part.get("content"))
    return text if kind in _TEXTS and isinstance(text, str) else f"[{kind}]"


def outcomes(values: dict[str, Any]) -> tuple[Outcome, ...]:
    """Outcomes by name from numbers, texts and whatever else a log holds there."""
    return tuple(_outcome(name, value) for name, value in values.items())


def _outcome(name: str, value: Any) -> Outcome:
    if isinstance(value, (bool, int, float)):
        return Outcome(name=name, value=float(value))
    if isinstance(value, str) or value is None:
        return Outcome(name=name, text=value, reason="the log does not say" if value is None else None)
    return Outcome(name=name, data=value, reason="neither a number nor a text")
