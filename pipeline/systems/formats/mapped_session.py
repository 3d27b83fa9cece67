"""The trajectory that the mapped events of one session amount to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from pydantic import ValidationError

from ....schemas import (
    Action,
    Event,
    JsonValue,
    Outcome,
    Participant,
    Quarantined,
    Trajectory,
    canonical_json,
    content_hash,
)
from ....schemas.trajectory import EventKind, ParticipantKind, number_in
from . import contents, marks
from .mapped_paths import HEAD, SECONDS, MappedSessions, is_name, named, seconds_of
from .mapping import ANY
from .paths import Getter, unpacked

USER = "user"
"""Who asks, where only the request is logged."""


@dataclass
class MappedSession:
    """One session on its way to a trajectory."""

    sessions: MappedSessions
    head: dict[str, Any]
    line: int | None
    events: list[Event] = field(default_factory=list)
    states: dict[str, JsonValue] = field(default_factory=dict)
    kinds: dict[str, ParticipantKind] = field(default_factory=dict)
    wrong: list[Quarantined] = field(default_factory=list)
    seen: dict[Any, list[dict[str, Any]]] = field(default_factory=dict)
    place: int = 0
    """Of the event that is being taken."""
    asked: int = 0
    """How many events there are before those of the log: 1 with a request."""
    plain: set[tuple[str, str]] = field(default_factory=set)
    """Actors with their roles about whom nothing in an event can say otherwise."""

    def take(self, place: int, event: Any, where: str, line: int | None) -> None:
        """Add an event; one that cannot be read, or says the same twice, is left out."""
        try:
            if not isinstance(event, dict):
                raise ValueError(f"expected an object, got {named(event)}")
            if not self._repeats(event):
                self._take(place, event)
        except ValidationError as error:
            first = error.errors()[0]
            self._refuse(f"{where}.{first['loc'][0]}: {first['msg']}", line)
        except ValueError as error:
            self._refuse(f"{where}: {error}" if where else str(error), line)
        except (TypeError, OverflowError, OSError) as error:  # a value of no kind that this field has
            self._refuse(f"{where}: {type(error).__name__}: {error}" if where else str(error), line)

    def ask(self, request: Any) -> None:
        """Have a user say first what the session was asked for."""
        if isinstance(request, str) and request:
            actor = self._known(USER, "human")
            self.asked = 1
            self.events.append(Event(seq=0, actor=actor, kind="message", text=request))

    def finished(self, tail: dict[str, Any]) -> Iterator[Trajectory | Quarantined]:
        """What was wrong, then the trajectory."""
        yield from self.wrong
        if len(self.events) <= self.asked:
            if not self.wrong:
                yield Quarantined(source=self.sessions.source, line=self.line, reason="no events in it")
            return
        try:
            yield self._trajectory(tail)
        except ValidationError as error:
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}, got {first['input']!r:.80}"
            yield Quarantined(source=self.sessions.source, line=self.line, reason=reason)

    def _refuse(self, reason: str, line: int | None) -> None:
        self.wrong.append(Quarantined(source=self.sessions.source, line=line, reason=reason))

    def _repeats(self, event: dict[str, Any]) -> bool:
        """Whether an event came before; ValueError where another one came under its number or id."""
        how = self.sessions
        unique = how.id or how.seq
        if unique is None and how.mapping.events_at is not None:
            return False  # a list holds what happened, and the same may well happen twice
        key = unique(event) if unique else how.time(event)
        if isinstance(key, (list, dict)):
            raise ValueError(f"expected a text or a number as its id, got {named(key)}")
        earlier = self.seen.setdefault(key, [])
        if event in earlier:
            return True
        if earlier and unique and key is not None:
            raise ValueError(f"another event came before with the same id or number {key!r}")
        earlier.append(event)
        return False

    def _take(self, place: int, event: dict[str, Any]) -> None:
        how = self.sessions
        self.place = place
        taken, kind = how.rule(event)
        if not taken:
            return
        actor = self._actor(event)
        text = _said(how.text(event))
        action = self._acted(actor, event, text)
        logged = how.status(event)
        status = self._status(logged) if logged is not None else how.result_status(event, action is not None)
        if self.kinds[actor] == "environment" and self._answers(text, kind):
            return
        self.events.append(
            Event(
                seq=self._seq(place, event),
                time=_time(how.time(event)),
                actor=actor,
                kind=kind or self._kind(actor, action),
                text=text,
                action=action,
                status=status,  # type: ignore[arg-type]
                error=self._error(event, logged) if status == "failed" else None,
                states=self._state(event),
            )
        )

    def _acted(self, actor: str, event: dict[str, Any], text: str | None) -> Action | None:
        """What an event did: as a field names it, as a command line, or as its text has it written."""
        how = self.sessions
        if name := texted(how.action(event), "action"):
            return self._action(name, event)
        if name is None and isinstance(line := how.command(event), str) and line.strip():
            return Action(name=line.split()[0][:80], arguments={"command": line})
        if name is None and how.acting and self.kinds[actor] == "agent":
            return how.written_action(event, text)
        return None

    def _answers(self, text: str | None, kind: EventKind | None) -> bool:
        """Whether a text of the environment is the result of the action before it; it then is its state."""
        how = self.sessions
        last = self.events[-1] if self.events else None
        if how.mapping.constants.results != "next" or kind not in (None, "note") or not (last and text):
            return False
        if last.kind != "action" or last.states or last.status:
            return False
        state: JsonValue = {"observation": text}
        hashed = content_hash(state)
        self.states[hashed] = state
        status = how.text_status(text, last.action.name if last.action else None)
        error = None if status != "failed" else marks.error(text) or text[:500]
        update = {"states": {"public": hashed}, "status": status, "error": error}
        self.events[-1] = last.model_copy(update=update)
        return True

    def _actor(self, event: dict[str, Any]) -> str:
        how = self.sessions
        actor, role = how.actor(event), how.role(event)
        if type(actor) is str and type(role) is str and (actor, role) in self.plain:
            return actor
        constant = how.mapping.constants.role
        if isinstance(constant, list):
            constant = constant[self.place % len(constant)]
        if rule := how.role_rule(event):
            return self._known(rule.actor or _name(actor, how), rule.kind)
        if not is_name(actor) and constant is not None:
            actor, role = constant, constant
        if not is_name(actor):
            raise ValueError(f"actor: expected a name, got {named(actor)}")
        actor, role = how.stripped(str(actor)), str(role) if isinstance(role, (int, float)) else role
        if role not in how.roles and isinstance(role, str) and how.stripped(role) in how.roles:
            role = how.stripped(role)
        if role not in how.roles and isinstance(role, str) and role.lower() in how.roles:
            role = role.lower()
        if role not in how.roles and ANY in how.roles:
            role = ANY
        if role not in how.roles:
            known = ", ".join(how.roles)
            raise ValueError(f"role: unknown role {str(role)[:80]!r}, expected one of {known}")
        text = how.text(event) if how.roles[role] == "human" else None
        if type(text) is str and marks.observed(text):
            return self._known(actor, "environment")
        if how.mapping.role_rules:
            return self._known(actor, how.roles[role])
        kind = self.kinds.setdefault(actor, how.roles[role])
        if kind != how.roles[role]:
            raise ValueError(f"role: {actor!r} was of kind {kind} before and is {how.roles[role]} here")
        if kind != "human":
            self.plain.add((actor, role))
        return actor

    def _known(self, actor: Any, kind: ParticipantKind) -> str:
        """Who a rule says it is; under a name that another kind has, the kind is added to the name."""
        name = str(actor) if isinstance(actor, (str, int)) and actor != "" else kind
        if self.kinds.get(name, kind) != kind:
            name = f"{name} ({kind})"
        self.kinds[name] = kind
        return name

    def _error(self, event: dict[str, Any], logged: Any) -> str:
        """Why it failed: the log's own error, else its status, else what came back."""
        how = self.sessions
        own = texted(how.error(event), "error")
        if own or logged is not None:
            return own or str(logged)
        result = how.result(event)
        return marks.error(result) or contents.plain(result)[:500] or "failed"

    def _kind(self, actor: str, action: Action | None) -> EventKind:
        if self.kinds[actor] == "environment":
            return "note"
        return "message" if action is None else "action"

    def _action(self, name: str, event: dict[str, Any]) -> Action:
        arguments: dict[str, JsonValue] = {}
        raw: str | None = None
        for key, at in self.sessions.arguments:
            given = at(event)
            if type(given) is str and given[:1] == "{":
                raw = given
                given = unpacked(given)
            if type(given) is dict:
                arguments.update(given)
            elif given is not None:
                arguments[key] = given
        return Action(name=name, arguments=arguments, raw=raw)

    def _status(self, logged: Any) -> str | None:
        """What a logged status means; without a table, succeeded and failed mean themselves."""
        table = self.sessions.mapping.statuses or {"succeeded": "succeeded", "failed": "failed"}
        known = str(logged).lower() if isinstance(logged, bool) else str(logged)
        if known not in table:
            raise ValueError(f"status: unknown status {known[:80]!r}, expected one of {', '.join(table)}")
        return None if table[known] == "unknown" else table[known]

    def _seq(self, place: int, event: dict[str, Any]) -> int:
        if self.sessions.seq is None:
            listed = self.sessions.mapping.events_at is not None
            return place + self.asked if listed else len(self.events)
        seq = self.sessions.seq(event)
        if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
            raise ValueError(f"seq: expected a whole number from 0 on, got {named(seq)}")
        if self.events and seq == self.events[-1].seq:
            raise ValueError(f"seq: another event has number {seq}")
        return seq

    def _state(self, event: dict[str, Any]) -> dict[str, str]:
        how = self.sessions
        if not how.tells_state:
            return {}
        state = how.state(event)
        if state is None and (result := how.result(event)) is not None:
            state = {"observation": result}
        if state is None:
            return {}
        hashed = content_hash(state)
        self.states[hashed] = state
        return {"public": hashed}

    def _trajectory(self, tail: dict[str, Any]) -> Trajectory:
        how, constants = self.sessions, self.sessions.mapping.constants
        head = {
            name: getattr(how.options, name, None)
            or texted(how.heads[name](self.head), f"trajectory.{name}")
            or getattr(constants, name)
            for name in HEAD
        }
        if how.mapping.events_at is not None:
            self.events.sort(key=lambda event: event.seq)
        first = self.events[0]
        native = how.native_id(self.head) if how.mapping.trajectory.native_id else None
        native = native or how.place(self.line)
        moment = (first.actor, first.time, first.text)
        tags = {name: tag(at(self.head)) for name, at in how.tags.items() if at(self.head) is not None}
        return Trajectory(
            id=content_hash(how.system, native, moment)[:16],
            native_id=native,
            source=how.source,
            system=how.system,
            **head,  # type: ignore[arg-type]
            tags=tags | how.options.tags,
            participants=self._participants(head),
            events=tuple(self.events),
            outcomes=tuple(_outcomes(how.outcomes, tail)),
            states=self.states,
            hidden=how.heads["hidden"](self.head),
        )

    def _participants(self, head: dict[str, Any]) -> tuple[Participant, ...]:
        simulated = head["setting"] == "simulated"
        return tuple(
            Participant(
                name=name,
                kind=kind,
                model=head["agent_model"] if kind == "agent" else None,
                simulated=simulated and kind == "human",
            )
            for name, kind in self.kinds.items()
        )


def _outcomes(wanted: dict[str, Getter], record: dict[str, Any]) -> Iterator[Outcome]:
    for name, at in wanted.items():
        value = at(record)
        if isinstance(value, (bool, int, float)):
            yield Outcome(name=name, value=float(value))
        elif isinstance(value, str):  # tables of texts have their numbers as such
            number = number_in(value)
            known = number is not None and isfinite(number)
            yield Outcome(name=name, value=number) if known else Outcome(name=name, text=value)
        elif value is None:
            yield Outcome(name=name, reason="the log does not say")
        else:
            yield Outcome(name=name, data=value, reason="neither a number nor a text")


def _name(actor: Any, how: MappedSessions) -> Any:
    return how.stripped(actor) if isinstance(actor, str) else actor


def _said(value: Any) -> str | None:
    """What was said: a text, the texts of a list of parts, or whatever else as its JSON."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, list):
        return contents.plain(value)
    return canonical_json(value) if isinstance(value, dict) else texted(value, "text")


def texted(value: Any, where: str) -> str | None:
    if value is None or type(value) is str:
        return value
    if isinstance(value, (int, float)):
        return tag(value)
    raise ValueError(f"{where}: expected a text, got {named(value)}")


def tag(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _time(value: Any) -> str | None:
    """ISO 8601; a number is seconds or milliseconds since 1970."""
    if value is None or (type(value) is str and not SECONDS.fullmatch(value)):
        return value
    moment = seconds_of(value)
    if moment is None:
        raise ValueError(f"time: expected a text or a number, got {named(value)}")
    return datetime.fromtimestamp(moment, UTC).isoformat()
