"""Chat messages collected into a trajectory; chat, OTLP and Inspect share it.

A user is a human, an assistant an agent; system, developer and tool are the environment, and so is a user's
turn that a scaffold fills with the output of a command (rules.py). System messages before anything else are
the start. A message's text is one event, each tool call after it an action. A tool's answer is the public
state after its action, and gives its status where the log or a rule says one; an answer to no known call is a
note of the environment.

The id is a hash of system, native id and first message where the log names the conversation, so that it may
grow; else of the messages as they were logged, whatever rules make of them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .....schemas import Action, Event, JsonValue, Outcome, Participant, Trajectory, content_hash
from .....schemas.trajectory import ParticipantKind, Setting
from ...base import ReadOptions, folder_of
from ..fields.contents import arguments, plain_text
from ..fields.marks import answered_words, is_surroundings, spoken_words, veto
from ..fields.marks import error as error_of
from ..fields.rules import Rules

ENVIRONMENT = "environment"
UNNAMED = "#"
"""Begins the ids of calls to which the log gives none."""
MOST_TOKENS = 2**40
"""Tokens that no call uses; a log that says more is wrong."""


@dataclass
class Call:
    """A tool call as an assistant asked for it."""

    name: str
    arguments: JsonValue = None
    id: str | None = None
    parse_error: str | None = None


@dataclass
class Answer:
    """What a tool said; `has_failed` as the log itself says it, None where it does not."""

    content: JsonValue
    call: str | None = None
    has_failed: bool | None = None
    error: str | None = None


@dataclass
class Approval:
    """The question whether a call may run; with `is_granted`, a person's answer to it."""

    id: str | None
    """What question and answer have in common."""
    call_id: str | None = None
    call: Call | None = None
    """What is to run, where the log has no call before."""
    is_granted: bool | None = None
    comment: str | None = None


@dataclass
class ChatMessage:
    """One message: a text, tool calls, answers of tools, approvals, or several of these."""

    role: str
    text: str | None = None
    name: str | None = None
    time: str | None = None
    model: str | None = None
    calls: list[Call] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    approvals: list[Approval] = field(default_factory=list)
    is_observation: bool = False
    """Whether its text is what came of a call, if one without an id of the log's is pending."""
    is_repeated: bool = False
    """Whether calls of ids that the log had before, and their results, are no new ones."""
    call_errors: list[str] = field(default_factory=list)
    """What is wrong with the calls that could not be read, which are left out."""
    id_name: str | None = None
    """The name in the session's id, which stays as it was before the log's own name was read."""

    id_text: str | None = None
    """The text in the session's id, which stays as it was before images beside words were named."""

    def key(self) -> str:
        """A hash that is the same for a message and its repetition in a later history, which has no names and
        times."""
        calls = [(call.name, arguments(call.arguments)[0], call.id) for call in self.calls]
        approvals = [[(a.id, a.is_granted) for a in self.approvals]] if self.approvals else []
        return content_hash(
            self.role,
            self.id_text or self.text,
            calls,
            [(a.call, a.content) for a in self.answers],
            *approvals,
        )


@dataclass
class Talk:
    """A conversation so far: its messages, and the events, states and participants they became."""

    rules: Rules
    submission: str | None = None
    """What the run came to, which mini-swe-agent repeats under the role of the user."""
    messages: list[ChatMessage] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    states: dict[str, JsonValue] = field(default_factory=dict)
    kinds: dict[str, ParticipantKind] = field(default_factory=dict)
    id_names: dict[str, str] = field(default_factory=dict)
    """Participant -> the name in the session's id, where that is another."""
    models: dict[str, list[str]] = field(default_factory=dict)
    """Participant -> the models that answered under the name, in the order of their first answers."""
    tokens: dict[str, dict[str, int]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    """Call id -> place of its event."""
    pending_calls: dict[str, int] = field(default_factory=dict)
    """Those of `calls` that have no answer yet, in the order of their places."""
    latest_calls: deque[str] = field(default_factory=deque)
    """The calls asked for last, in one or more messages in a row: an answer that names no call is to the
    first of these that is pending."""
    refusals: list[JsonValue] = field(default_factory=list)
    """Results that became a person's rejection, and are in no state."""
    approvals: dict[str, str | None] = field(default_factory=dict)
    """Question whether a call may run -> the call's id."""
    refused_calls: set[str | None] = field(default_factory=set)
    """Ids of the calls that a person did not let run, so that what tells of it again counts once."""

    def add_message(self, message: ChatMessage) -> None:
        """Add a message; ValueError for an unknown role, and for calls that could not be read once the rest
        is in."""
        kind, actor = self.rules.speaker(
            {"role": message.role, "content": message.text, "name": message.name},
            has_agent="agent" in self.kinds.values(),
        )
        if message.is_repeated:
            message.calls = [call for call in message.calls if call.id not in self.calls]
            if not message.calls:
                for answer in message.answers:
                    self.add_answer(answer, message.time)
                return
        self.messages.append(message)
        if kind == "human" and message.text and message.text == self.submission:
            kind = "environment"
        if message.is_observation and str(self._call_of(None)).startswith(UNNAMED):
            kind = "environment"
        if kind == "environment":
            self._add_environment(message, actor or ENVIRONMENT)
        elif (
            message.text or message.calls or not (message.answers or message.call_errors or message.approvals)
        ):
            id_name = None if actor else message.id_name
            actor = self.add_participant(actor or message.name or message.role, kind, message.model)
            self.id_names.setdefault(actor, id_name or actor)
            if message.text:
                self._add_event(actor, "message", message.time, text=message.text)
            if message.calls and not (len(self.messages) > 1 and self.messages[-2].calls):
                self.latest_calls.clear()
            for call in message.calls:
                self._add_call(actor, call, message.time)
        for approval in message.approvals:
            self._add_approval(approval, actor or message.name or message.role, message.time)
        for answer in message.answers:
            self.add_answer(answer, message.time)
        if message.call_errors:
            raise ValueError("; ".join(message.call_errors))

    def add_participant(self, name: str, kind: ParticipantKind, model: str | None = None) -> str:
        """Note a participant and return the name, with the kind added where one of another kind has it."""
        if self.kinds.get(name, kind) != kind:
            name = f"{name} ({kind})"
        self.kinds[name] = kind
        if model and kind == "agent" and model not in self.models.setdefault(name, []):
            self.models[name].append(model)
        return name

    def add_briefing(self, state: JsonValue) -> bool:
        """Give the agents a state that they alone see from the first event on; False where there are none."""
        agents = [name for name, kind in self.kinds.items() if kind == "agent"]
        key = content_hash(state)
        if agents:
            first = self.events[0]
            self.states[key] = state
            states = {**first.states, **dict.fromkeys(agents, key)}
            self.events[0] = first.model_copy(update={"states": states})
        return bool(agents)

    def add_tokens(self, name: str, prompt: int | None, completion: int | None) -> None:
        """Add to a participant's token counts; None is unknown, not 0, and so is what can be no count (below
        0, or from MOST_TOKENS on)."""
        tokens = self.tokens.setdefault(name, {})
        for kind, count in (("prompt_tokens", prompt), ("completion_tokens", completion)):
            if count is not None and 0 <= count < MOST_TOKENS:
                tokens[kind] = tokens.get(kind, 0) + count

    def add_answer(self, answer: Answer, time: str | None = None, by: str = ENVIRONMENT) -> None:
        """Set result and status of the call that an answer is to, where it is the first one; an answer to no
        known call is a note, a person's refusal a rejection."""
        call_id = self._call_of(answer.call)
        if call_id is not None and call_id not in self.pending_calls:
            return
        place = None if call_id is None else self.pending_calls.pop(call_id)
        if (refusal := veto(answer.content)) is not None:
            self.refusals.append(answer.content)
            self.refused_calls.add(call_id)
            self._add_decision("confirm_reject", refusal.comment, time)
            return
        state: JsonValue = {"observation": answer.content}
        state_hash = content_hash(state)
        self.states[state_hash] = state
        if place is None:
            verdict = self._verdict(answer, None)
            failure = verdict if verdict["status"] == "failed" else {}
            actor = self.add_participant(by, "environment")
            self._add_event(
                actor, "note", time, text=plain_text(answer.content), states={"public": state_hash}, **failure
            )
        else:
            event = self.events[place]
            tool = event.action.name if event.action else None
            verdict = self._verdict(answer, tool)
            update = {**verdict, "states": {"public": state_hash}}
            self.events[place] = event.model_copy(update=update)
            if words := answered_words(answer.content, tool):
                self._add_event(self._person(), "message", time, text=words)

    def _add_approval(self, approval: Approval, asker: str, time: str | None) -> None:
        """Add the question whether a call may run, or the person's answer: a call that may not has neither
        status nor result."""
        if approval.is_granted is None:
            place = self.calls.get(approval.call_id or "")
            action = _action(approval.call) if approval.call else None
            action = self.events[place].action if place is not None else action
            actor = self.add_participant(asker, "agent")
            self._add_event(actor, "confirm_request", time, action=action)
            self.approvals[approval.id or ""] = approval.call_id
            return
        call_id = approval.call_id or self.approvals.get(approval.id or "")
        if approval.is_granted:
            self._add_decision("confirm_accept", approval.comment, time)
        elif call_id is None or call_id not in self.refused_calls:
            self.refused_calls.add(call_id)
            self.pending_calls.pop(call_id or "", None)
            self._add_decision("confirm_reject", approval.comment, time)

    def _add_decision(self, kind: Any, comment: str | None, time: str | None) -> None:
        """Add that a person let a call run or not, with their words."""
        actor = self._person()
        self._add_event(actor, kind, time)
        if comment:
            self._add_event(actor, "message", time, text=comment)

    def _person(self) -> str:
        """The person who spoke last, else the user."""
        humans = (event.actor for event in reversed(self.events) if self.kinds.get(event.actor) == "human")
        return next(humans, None) or self.add_participant("user", "human")

    def _verdict(self, answer: Answer, tool: str | None) -> dict[str, str | None]:
        """Status and error of an answer: as the log has them, else as a rule says, else unknown."""
        if answer.has_failed is None:
            status = self.rules.status(answer.content, tool)
        else:
            status = "failed" if answer.has_failed else "succeeded"
        if status != "failed":
            return {"status": status, "error": None}
        error = answer.error or error_of(answer.content) or plain_text(answer.content)[:500]
        return {"status": status, "error": error}

    def trajectory(
        self,
        native_id: str,
        source: str,
        options: ReadOptions,
        *,
        system: str,
        has_native_id: bool = True,
        setting: Setting | None = None,
        condition: str | None = None,
        task: str | None = None,
        instance: str | None = None,
        agent: str | None = None,
        agent_model: str | None = None,
        tags: dict[str, str] | None = None,
        outcomes: tuple[Outcome, ...] = (),
    ) -> Trajectory:
        """The trajectory; `has_native_id` says whether the log itself gave the id."""
        first = self.events[0]
        actor = self.id_names.get(first.actor, first.actor)
        text = self.messages[0].id_text if first.text == self.messages[0].text else None
        mark: object = (native_id, actor, first.kind, text or first.text)
        if not has_native_id:
            mark = [message.key() for message in self.messages]
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
            agent_model=next((p.model for p in agents if p.model), agent_model),
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
                model=", ".join(self.models.get(name, ())) or (agent_model if kind == "agent" else None),
                simulated=kind == "human" and simulated,
                tokens=self.tokens.get(name, {}),
            )
            for name, kind in self.kinds.items()
        )

    def _add_environment(self, message: ChatMessage, name: str) -> None:
        """Add a text of the environment: to the start, as a note, or as the answer to a pending call."""
        if message.text is None:
            return
        kind = self.rules.mapping.role_table.get(message.role)
        if kind != "environment" and not is_surroundings(message.text):
            # Under another role it is the output of a command, and answers a pending call.
            self.add_answer(Answer(message.text), message.time, name)
            for words in spoken_words(message.text):
                self._add_event(self._person(), "message", message.time, text=words)
            return
        actor = self.add_participant(name, "environment")
        if self.events and [e.kind for e in self.events] == ["start"]:
            text = f"{self.events[0].text}\n\n{message.text}"
            self.events[0] = self.events[0].model_copy(update={"text": text})
        else:
            self._add_event(actor, "note" if self.events else "start", message.time, text=message.text)

    def _add_call(self, actor: str, call: Call, time: str | None) -> None:
        failure = {"status": "failed", "error": call.parse_error} if call.parse_error else {}
        self._add_event(actor, "action", time, action=_action(call), **failure)
        call_id = call.id or f"{UNNAMED}{len(self.events)}"
        self.refused_calls.discard(call_id)
        self.calls[call_id] = len(self.events) - 1
        self.latest_calls.append(call_id)
        self.pending_calls.pop(call_id, None)
        if not failure:
            self.pending_calls[call_id] = self.calls[call_id]

    def _call_of(self, call: str | None) -> str | None:
        """The id of the call that an answer is to; without one, the first of the latest calls that is
        pending."""
        if call is not None:
            return call if call in self.calls else None
        while self.latest_calls and self.latest_calls[0] not in self.pending_calls:
            self.latest_calls.popleft()
        return self.latest_calls[0] if self.latest_calls else None

    def _add_event(self, actor: str, kind: Any, time: str | None, **rest: Any) -> None:
        self.events.append(Event(seq=len(self.events), actor=actor, kind=kind, time=time, **rest))


def _action(call: Call) -> Action:
    values, raw = arguments(call.arguments)
    return Action(name=call.name, arguments=values, raw=raw)


def submission_of(head: dict[str, Any]) -> str | None:
    """What a run came to, as SWE-agent and mini-swe-agent write it beside the messages."""
    info = head.get("info")
    submission = info.get("submission") if isinstance(info, dict) else None
    return submission if isinstance(submission, str) else None


def outcomes(values: dict[str, Any]) -> tuple[Outcome, ...]:
    """Outcomes by name from numbers, texts and whatever else a log holds there."""
    return tuple(_outcome(name, value) for name, value in values.items())


def _outcome(name: str, value: Any) -> Outcome:
    if isinstance(value, (bool, int, float)):
        return Outcome(name=name, value=value)
    if isinstance(value, str) or value is None:
        return Outcome(name=name, text=value, reason="the log does not say" if value is None else None)
    return Outcome(name=name, data=value, reason="neither a number nor a text")
