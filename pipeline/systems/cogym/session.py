"""A Co-Gym session as it is heard: channel messages become the records that its log will hold.

Steps wait in a queue, in the order in which the environment handles them, until something later shows their
outcome: the chat that of a message, the actor's next observation that of an action. So the records, and with
them seq, come out as in event_log.jsonl; what the log never holds (waits, late reminders) is live_only.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ....schemas import Action, Event
from ....schemas.event import EventKind
from . import records
from .actions import COLLABORATIVE, parse
from .messages import ChatLine, Start, StateMessage
from .missed import FAILED, PriorState, count_missed

PRIVATE_VIEWS = {"TravelSearchInterface", "DistanceMatrix", "PaperSearchInterface"}
"""Observation types that only the actor sees."""
UNKNOWN = "unknown"
_ANSWERS = ("confirm_accept", "confirm_reject")
_CONTROLS = {"PUT_AGENT_ASLEEP": True, "WAKE_AGENT_UP": False}


@dataclass(frozen=True, slots=True)
class QueuedStep:
    """A step whose outcome is not known yet. `hint` is its result as it was shown to a teammate."""

    time: float
    role: str
    logged: str
    kind: EventKind
    action: Action
    hint: StateMessage | None = None
    after_gap: bool = False
    """Whether nothing was shown between the last gap and this step: another run may have begun by then."""

    @property
    def text(self) -> str:
        return str(self.action.arguments.get("message"))

    @property
    def request(self) -> str:
        return str(self.action.arguments.get("request_id"))

    @property
    def for_environment(self) -> bool:
        return self.kind in ("action", "finish")


@dataclass(frozen=True, slots=True)
class Proof:
    """What shows that a step was handled: the length of the chat before it, when, and with what result."""

    chat: int
    timestamp: str | None = None
    result: str = "succeeded"


@dataclass
class LiveSession:
    """What was heard of one session since its start, or since it was joined late."""

    name: str
    opened: float
    team: list[str] = field(default_factory=list)
    description: str = ""
    hidden: Any = None
    collaborative: bool = True
    late: bool = False
    gaps: int = 0
    """How often nobody listened for a while, or the chat showed a message that nobody heard being sent."""
    recovered: int = 0
    """Messages that nobody heard and the chat brought back."""
    missed: int = 0
    """Other events, at least, that nobody heard."""
    doubtful: bool = False
    """Whether something may have been missed since the state was last shown."""
    silent_in_gap: bool = False
    """Whether nobody listened for a while since this session fell silent."""
    ended: str | None = None
    """Why no more is expected: `end` or `abandoned`."""
    result_dir: str | None = None
    cut_short: bool = False
    """Whether the end came right after a step."""
    log: records.Session = field(default_factory=records.Session)
    chat: list[ChatLine] = field(default_factory=list)
    queue: deque[QueuedStep] = field(default_factory=deque)
    asides: list[tuple[int, float, Event]] = field(default_factory=list)
    """(seq after which, place in the chat, event) of each event that only live traffic knows."""
    pending: dict[str, Any] = field(default_factory=dict)
    asleep: bool = False
    _public: dict[str, Any] = field(default_factory=dict)
    _private: dict[str, Any] = field(default_factory=dict)
    _chat_matched: int = 0
    _chat_shown: list[ChatLine] = field(default_factory=list)
    """The chat as it was shown last, to which lines are only added."""
    _clock_offset: float | None = None
    _last_result: tuple[dict[str, Any], set[str | None]] = field(default_factory=lambda: ({}, set()))
    _next: int = 0
    _shown_at: float = 0.0

    @classmethod
    def from_start(cls, name: str, time: float, start: Start) -> LiveSession:
        """A session heard from its start."""
        return cls(
            name,
            time,
            team=list(start.team_members),
            description=start.task_description,
            hidden=start.additional_task_info or None,
            collaborative=start.collaborative,
        )

    @classmethod
    def from_state(cls, name: str, time: float, role: str | None, state: StateMessage) -> LiveSession:
        """A session that was already running when first heard of; the chat tells what was said before."""
        session = cls(name, time, description=state.task_description or "", late=True)
        roles = (line["role"] for line in state.chat_history)
        members = dict.fromkeys([*roles, *([role] if role else [])])
        session.team = [m for m in members if m != records.ENVIRONMENT]
        session.take_state(time, role, state)
        return session

    @property
    def key(self) -> str:
        """Identifies this session among all of one recording."""
        return f"{self.name}@{self.opened!r}"

    @property
    def anonymous(self) -> bool:
        """Whether the id of its folder cannot be computed from what was heard."""
        return self.late or self.log.opening is None

    @property
    def last_seq(self) -> int:
        """seq of the last event that the log holds so far."""
        return self.log.events[-1].seq if self.log.events else 0

    def step(self, time: float, role: str, text: str) -> None:
        """A member sent a step."""
        self._meet(role)
        action = parse(text)
        kind: EventKind = "finish" if action.name == "FINISH" else "action"
        # Co-Gym takes a collaborative act only where the whole string is one.
        if self.collaborative and action.raw is None and action.name in COLLABORATIVE:
            kind = COLLABORATIVE[action.name]
        self.queue.append(QueuedStep(time, role, text, kind, action, after_gap=self.doubtful))
        self._drain()

    def note_gap(self) -> None:
        """Nobody listened for a while."""
        self.gaps += 1
        self.doubtful = True

    def is_another_run(self, state: StateMessage) -> bool:
        """Whether a state that is shown after a gap cannot be one of this session."""
        return self.doubtful and state.chat_history[: len(self._chat_shown)] != self._chat_shown

    def leave_to_another_run(self) -> None:
        """Drop the steps since the last gap: they were another run's, which began in it."""
        self.queue = deque(step for step in self.queue if not step.after_gap)

    def take_state(self, time: float, role: str | None, state: StateMessage) -> None:
        """A member was shown the state: after a step, after a tick, or on request."""
        if role:
            self._meet(role)
        self._shown_at = time
        self._set_clock(time, state.chat_history)
        if not self.log.records:
            self._learn(role, state)
            self._open(state)
        if self.doubtful:
            self.missed += count_missed(self._prior_state(), state, _public(state))
            self.doubtful = False
        chat_length, self.chat, self._chat_shown = len(self.chat), state.chat_history, state.chat_history
        self._settle(role, state, chat_length)
        self._learn(role, state)
        self.pending, self.asleep = state.pending_confirmations, state.agent_asleep
        self._drain()

    def end(self, time: float, result_dir: str | None, max_steps: int) -> None:
        """The environment closed the session; the outcome of what it handled last is shown to nobody."""
        self.ended, self.result_dir = "end", result_dir
        # After the last step of a limit nothing is shown; a time-out leaves nothing unanswered.
        self.cut_short = bool(self.queue)
        if not self.log.records:
            self._open(StateMessage(observation={}, chat_history=[]))
        while self.queue:
            step = self.queue.popleft()
            self._complete(step, self._last_proof(step))
            if step.kind == "finish" or self.steps() >= max_steps:
                break
        while self.queue:
            step = self.queue.popleft()
            self._add_aside(step.time, step.role, step.kind, step.action)

    def steps(self) -> int:
        """Records of the party that has most, as Co-Gym counts them against its limit."""
        actors = [e.actor for e in self.log.events if e.kind != "start" and e.status is not None]
        return max(sum("agent" in a for a in actors), sum("user" in a for a in actors))

    def events(self) -> tuple[Event, ...]:
        """Every event so far, live_only ones after the logged event that they follow."""
        events = [*self.log.events, *self._queued_events()]
        late = [(self.last_seq, float(place), note) for place, note in self._reminders()]
        beside = sorted([*self.asides, *late], key=lambda aside: aside[:2])
        asides = []
        for seq, group in itertools.groupby(beside, key=lambda aside: aside[0]):
            for sub, (_, _, event) in enumerate(group, start=1):
                asides.append(event.model_copy(update={"seq": seq, "sub": sub}))
        return tuple(sorted([*events, *asides], key=lambda event: (event.seq, event.sub)))

    def moment(self, time: float, *, exact: bool = False) -> str:
        """A time of receipt (Unix seconds) by the environment's clock, as its log writes it; `exact`: in ISO
        8601 with milliseconds."""
        local = self._clock_offset if self._clock_offset is not None else _zone(time)
        local_time = datetime.fromtimestamp(time + local, UTC).replace(tzinfo=None)
        return local_time.isoformat(
            sep="T" if exact else " ", timespec="milliseconds" if exact else "seconds"
        )

    def _prior_state(self) -> PriorState:
        steps = [step for step in self.queue if step.kind == "confirm_request" or step.kind in _ANSWERS]
        return PriorState(
            public=self._public,
            chat=self.chat,
            pending=self.pending,
            asleep=self.asleep,
            acting=sum(step.for_environment or step.kind == "confirm_accept" for step in self.queue),
            requests=[step.request for step in steps],
            controls=sum(step.kind == "control" for step in self.queue),
        )

    def _meet(self, role: str) -> None:
        if role not in self.team and role != records.ENVIRONMENT:
            self.team.append(role)

    def _open(self, state: StateMessage) -> None:
        """Add the START record and, after a late join, what was said before it."""
        chat = state.chat_history
        opening = chat[:1] if chat and chat[0]["role"] != records.ENVIRONMENT else []
        query = f", query={opening[0]['message']}" if opening else ""
        time = opening[0]["timestamp"] if opening else self.moment(self.opened)
        action = f"START(task_description={self.description}{query})"
        now = self._public, self._private
        if self.late:
            self._public, self._private = {}, {}
        self._chat_matched = len(opening)
        self._record(records.ENVIRONMENT, time, action, "succeeded", "environment", list(opening))
        for place, line in enumerate(chat) if self.late else ():
            if place >= self._chat_matched and line["role"] != records.ENVIRONMENT:
                self._say(line, chat[:place])
                self._chat_matched = place + 1
        self._public, self._private = now

    def _say(self, line: ChatLine, before: list[ChatLine]) -> None:
        action = f"SEND_TEAMMATE_MESSAGE(message={line['message']})"
        self._record(line["role"], line["timestamp"], action, "succeeded", "collaborative", before)

    def _settle(self, role: str | None, state: StateMessage, chat_length: int) -> None:
        """Complete every step that this message proves to be handled, and those queued before it."""
        proofs = self._proofs_in_chat(state.chat_history)
        self._add_result_proof(role, state, proofs)
        for place, step in enumerate(self.queue):
            if place in proofs:
                continue
            if not self._is_visible(step, state):
                break
            # Chat lines that are new in this state came after the step: each is shown to somebody at once.
            proofs[place] = Proof(min(chat_length, len(state.chat_history)))
            self._last_result = (state.info, {role})
        for place in range(max(proofs, default=-1) + 1):
            step = self.queue.popleft()
            self._complete(step, proofs.get(place) or self._inferred_proof(step, state), (role, state))

    def _proofs_in_chat(self, chat: list[ChatLine]) -> dict[int, Proof]:
        """Proofs of the queued messages that stand in the chat, by place in the queue; a message that nobody
        was heard sending is put into the queue."""
        proofs: dict[int, Proof] = {}
        after = 0
        for place in range(self._chat_matched, len(chat)):
            line = chat[place]
            if line["role"] == records.ENVIRONMENT:
                continue
            position = self._sender(line, after)
            if position is None:
                position = after
                self.gaps += 1
                self.recovered += 1
                self.queue.insert(position, self._unheard_message(line))
            proofs[position] = Proof(place, line["timestamp"])
            after = position + 1
            self._chat_matched = place + 1
        return proofs

    def _sender(self, line: ChatLine, after: int) -> int | None:
        for place, step in enumerate(self.queue):
            same = step.kind == "message" and step.role == line["role"] and step.text == line["message"]
            if place >= after and same:
                return place
        return None

    def _unheard_message(self, line: ChatLine) -> QueuedStep:
        action = f"SEND_TEAMMATE_MESSAGE(message={line['message']})"
        return QueuedStep(self.opened, line["role"], action, "message", parse(action))

    def _add_result_proof(self, role: str | None, state: StateMessage, proofs: dict[int, Proof]) -> None:
        if not state.has_result:
            return
        place = next((n for n, step in enumerate(self.queue) if _fits(step, state)), None)
        if self._is_copy(role, state, None if place is None else self.queue[place]) or place is None:
            return
        step = self.queue[place]
        # While the agent sleeps, only its teammates are shown what came of its shared action.
        if step.role == role or (self.asleep and "agent" in step.role):
            proofs[place] = Proof(len(state.chat_history), result=state.result)
            self._last_result = (state.info, {role})
        else:
            self.queue[place] = replace(step, hint=state)

    def _is_copy(self, role: str | None, state: StateMessage, step: QueuedStep | None) -> bool:
        """Whether a teammate is shown a result that was already taken in."""
        info, receivers = self._last_result
        if info != state.info or role in receivers:
            return False
        # The same error made by another member; a success would have a time of its own.
        if step is not None and step.role == role and "action_start_time" not in info:
            return False
        receivers.add(role)
        return True

    def _is_visible(self, step: QueuedStep, state: StateMessage) -> bool:
        name = step.action.name
        if step.kind == "confirm_request":
            result = state.pending_confirmations.get(step.request)
            action = step.action.arguments.get("pending_action")
            if step.request not in state.pending_confirmations:
                return any(s.request == step.request for s in self.queue if s.kind in _ANSWERS)
            return isinstance(result, dict) and result.get("pending_action") == action
        if step.kind in _ANSWERS:
            return step.request not in state.pending_confirmations
        return step.kind == "control" and state.agent_asleep == _CONTROLS.get(name)

    def _inferred_proof(self, step: QueuedStep, state: StateMessage) -> Proof:
        """The proof of a step whose outcome was never shown, but that a later step shows to be handled."""
        if step.hint:
            return Proof(len(step.hint.chat_history), result=step.hint.result)
        return Proof(min(self.log.chat_seen, len(state.chat_history)), result=self._unseen_result(step))

    def _last_proof(self, step: QueuedStep) -> Proof:
        return Proof(
            len(self.chat), result="succeeded" if step.kind == "finish" else self._unseen_result(step)
        )

    @staticmethod
    def _unseen_result(step: QueuedStep) -> str:
        return UNKNOWN if step.for_environment else "succeeded"

    def _drain(self) -> None:
        """Complete the steps at the head of the queue whose outcome is shown to nobody."""
        while self.log.records and self.queue and not self.doubtful and self._is_silent(self.queue[0]):
            step = self.queue.popleft()
            self._complete(step, Proof(len(self.chat)))
            if step.kind == "message":
                time = self.moment(max(step.time, self._shown_at))
                self.chat = [*self.chat, ChatLine(role=step.role, timestamp=time, message=step.text)]
                self._chat_matched = len(self.chat)

    def _is_silent(self, step: QueuedStep) -> bool:
        if step.kind in _ANSWERS:
            return step.request not in self.pending
        if step.kind in ("message", "confirm_request"):
            awake = (m for m in self.team if not (self.asleep and "agent" in m))
            return all(member == step.role for member in awake)
        return step.kind == "wait" or self._is_idle_control(step)

    def _is_idle_control(self, step: QueuedStep) -> bool:
        return step.kind == "control" and _CONTROLS.get(step.action.name) == self.asleep

    def _complete(
        self, step: QueuedStep, proof: Proof, after: tuple[str | None, StateMessage] | None = None
    ) -> None:
        """Make a step's record; `after` is the state that was shown when it was done, which only actions
        change."""
        if step.kind == "wait" or self._is_idle_control(step):
            self._add_aside(step.time, step.role, step.kind, step.action)
            return
        chat = self.chat[: proof.chat]
        # It was handled after it was sent, and after the steps before it.
        time = proof.timestamp or self.moment(max(step.time, self._shown_at))
        kind = "environment" if step.for_environment else "collaborative"
        if after and step.for_environment:
            self._learn(*after)
        self._record(step.role, time, step.logged, proof.result, kind, chat)
        if step.kind == "confirm_accept" and step.request in self.pending:
            pending = self.pending[step.request]
            if isinstance(pending, dict):
                action = str(pending.get("pending_action"))
                if after:
                    self._learn(*after)
                # The log says so even where the action failed.
                self._record(str(pending.get("requester")), time, action, "succeeded", "environment", chat)
        if step.kind == "confirm_request":
            request = {"requester": step.role, "pending_action": step.action.arguments.get("pending_action")}
            self.pending = {**self.pending, step.request: request}
        elif step.kind in _ANSWERS:
            self.pending = {k: v for k, v in self.pending.items() if k != step.request}
        elif step.kind == "control":
            self.asleep = _CONTROLS[step.action.name]

    def _record(
        self, role: str, time: str, action: str, result: str, kind: str, chat: list[ChatLine]
    ) -> None:
        record = records.Record(
            role=role,
            timestamp=time,
            action=action,
            action_status=result,
            action_type=kind,
            current_chat_history=list(chat),
            current_observation=records.Observation(
                public=self._public, private={m: self._private.get(m, {}) for m in self.team}
            ),
        )
        self.log.add(self._next, record)
        self._next += 1
        if result == UNKNOWN:
            self.log.events[-1] = self.log.events[-1].model_copy(update={"status": None, "error": None})
        # The chat of every record but the first and last would make memory grow with its square.
        del self.log.records[1:-1]

    def _add_aside(self, time: float, role: str, kind: EventKind, action: Action | None) -> None:
        moment = self.moment(time, exact=True)
        event = Event(seq=0, live_only=True, time=moment, actor=role, kind=kind, action=action)
        self.asides.append((self.last_seq, len(self.chat) - 0.5, event))

    def _queued_events(self) -> list[Event]:
        """The events of the steps in the queue: their place in the log is known, their outcome is not."""
        events = []
        seq = self.last_seq
        for step in self.queue if self.log.records else ():
            if step.kind == "wait":
                continue
            seq += 1
            message = step.kind == "message"
            events.append(
                Event(
                    seq=seq,
                    time=self.moment(step.time).replace(" ", "T"),
                    actor=step.role,
                    kind=step.kind,
                    text=step.text if message else None,
                    action=None if message else step.action,
                )
            )
        return events

    def _reminders(self) -> list[tuple[int, Event]]:
        """(place in the chat, note) of what the environment wrote since the last record: part of the next
        record, should there be one."""
        items = []
        for place, line in enumerate(self.chat[self.log.chat_seen :], start=self.log.chat_seen):
            if line["role"] == records.ENVIRONMENT and FAILED not in line["message"]:
                time = line["timestamp"].replace(" ", "T", 1)
                text = line["message"]
                note = Event(seq=0, live_only=True, time=time, actor=line["role"], kind="note", text=text)
                items.append((place, note))
        return items

    def _learn(self, role: str | None, state: StateMessage) -> None:
        """Split what a member is shown into what all see and what only they see."""
        private = {k: v for k, v in state.observation.items() if _is_private(state, k)}
        self._public = _public(state)
        if role is None:
            return
        if not self.log.records:
            # At the start all members see the same.
            self._private = {member: self._private.get(member, private) for member in self.team}
        self._private[role] = private

    def _set_clock(self, time: float, chat: list[ChatLine]) -> None:
        """Set how far the environment's clock is from ours, from a line that was just written."""
        if len(chat) <= len(self.chat) or (self.late and not self.chat):
            return
        try:
            clock = datetime.fromisoformat(chat[-1]["timestamp"]).replace(tzinfo=UTC).timestamp()
        except ValueError:
            return
        zone = round((clock - time) / 900) * 900
        self._clock_offset = zone if abs(clock - time - zone) < 30 else clock - time


def _public(state: StateMessage) -> dict[str, Any]:
    return {k: v for k, v in state.observation.items() if not _is_private(state, k)}


def _fits(step: QueuedStep, state: StateMessage) -> bool:
    """Whether a result can be that of a step: it names the action, or its error quotes it."""
    if not step.for_environment:
        return False
    name, error = state.info.get("action"), state.info.get("action_error")
    if isinstance(name, str):
        return name == step.action.name
    return not isinstance(error, str) or step.logged in error or repr(step.logged)[1:-1] in error


def _is_private(state: StateMessage, view: str) -> bool:
    kind = state.observation_type.get(view)
    return isinstance(kind, str) and kind in PRIVATE_VIEWS


def _zone(time: float) -> float:
    offset = datetime.fromtimestamp(time).astimezone().utcoffset()
    return offset.total_seconds() if offset else 0.0
