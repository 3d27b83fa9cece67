"""The trajectory that the mapped events of one session amount to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from pydantic import ValidationError

from ....schemas import (
    JsonValue,
    Outcome,
    Quarantined,
    Trajectory,
    content_hash,
)
from ....schemas.trajectory import EventKind, ParticipantKind, number_in
from . import contents, marks
from .mapped_paths import HEAD, MappedSessions
from .mapped_speakers import Speakers
from .mapped_values import moment, named, spoken, tag, texted
from .paths import Getter, unpacked

USER = "user"
"""Who asks, where only the request is logged."""


@dataclass
class MappedSession:
    """One session on its way to a trajectory."""

    sessions: MappedSessions
    head: dict[str, Any]
    line: int | None
    events: list[dict[str, Any]] = field(default_factory=list)
    """The fields of each event, which become events together: one by one that takes twice as long."""
    origins: list[tuple[int, int | None]] = field(default_factory=list)
    """Of each event its place in the log's list and its line."""
    states: dict[str, JsonValue] = field(default_factory=dict)
    wrong: list[Quarantined] = field(default_factory=list)
    seen: dict[Any, list[dict[str, Any]]] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)
    """The logged numbers of events: units are addressed by them."""
    place: int = 0
    """Of the event that is being taken."""
    asked: int = 0
    """How many events there are before those of the log: 1 with a request."""

    def __post_init__(self) -> None:
        self.speakers = Speakers(self.sessions)

    def take(self, place: int, event: Any, line: int | None) -> None:
        """Add an event; one that cannot be read, or says the same twice, is left out."""
        self.place = place
        try:
            if not isinstance(event, dict):
                raise ValueError(f"expected an object, got {named(event)}")
            if not self._repeats(event):
                self._take(event, line)
        except ValueError as error:
            self._refuse(place, str(error), line)
        except (TypeError, OverflowError, OSError) as error:  # a value of no kind that this field has
            self._refuse(place, f"{type(error).__name__}: {error}", line)

    def ask(self, request: Any) -> None:
        """Have a user say first what the session was asked for."""
        if isinstance(request, str) and request:
            actor = self.speakers.known(USER, "human")
            self.asked = 1
            self.numbers.add(0)
            self.events.append({"seq": 0, "actor": actor, "kind": "message", "text": request})
            self.origins.append((0, self.line))

    def finished(self, tail: dict[str, Any]) -> Iterator[Trajectory | Quarantined]:
        """What was wrong, then the trajectory."""
        made: Trajectory | Quarantined | None = None
        if self.sessions.seq is not None and self.sessions.mapping.events_at is not None:
            order = sorted(range(len(self.events)), key=lambda at: self.events[at]["seq"])
            self.events = [self.events[at] for at in order]
            self.origins = [self.origins[at] for at in order]
        while made is None and len(self.events) > self.asked:
            try:
                made = self._trajectory(tail)
            except ValidationError as error:
                made = self._without_invalid(error)
        yield from self.wrong
        if made is not None:
            yield made
        elif not self.wrong:
            yield Quarantined(source=self.sessions.source, line=self.line, reason="no events in it")

    def _without_invalid(self, error: ValidationError) -> Quarantined | None:
        """Leave events out that are none; where it is not for them, why the session is no trajectory."""
        first = error.errors()[0]
        if first["loc"][0] != "events":
            reason = f"{_path(first['loc'])}: {first['msg']}, got {first['input']!r:.80}"
            return Quarantined(source=self.sessions.source, line=self.line, reason=reason)
        reasons = {at["loc"][1]: f"{_path(at['loc'][2:])}: {at['msg']}" for at in reversed(error.errors())}
        for index in sorted(reasons, reverse=True):
            place, line = self.origins.pop(index)
            self._refuse(place, reasons[index], line)
            del self.events[index]
        return None

    def _refuse(self, place: int, reason: str, line: int | None) -> None:
        at = self.sessions.mapping.events_at
        reason = reason if at is None else f"{at}[{place}]: {reason}"
        self.wrong.append(Quarantined(source=self.sessions.source, line=line, reason=reason))

    def _repeats(self, event: dict[str, Any]) -> bool:
        """Whether an event came before; ValueError where another one came under its number or id."""
        how = self.sessions
        unique = how.id or how.seq
        if unique is None and how.mapping.events_at is not None:
            return False  # a list holds what happened, and the same may well happen twice
        key = unique(event) if unique else how.when(event)
        if isinstance(key, (list, dict)):
            raise ValueError(f"expected a text or a number as its id, got {named(key)}")
        earlier = self.seen.get(key)
        if earlier is None:
            self.seen[key] = [event]
            return False
        if event in earlier:
            return True
        if unique and key is not None:
            raise ValueError(f"another event came before with the same id or number {key!r}")
        earlier.append(event)
        return False

    def _take(self, event: dict[str, Any], line: int | None) -> None:
        how = self.sessions
        told = how.told(event)
        if not told.taken:
            return
        actor, role = self.speakers.of(event, how.text(event), self.place)
        text = spoken(how.text(event))
        if told.wrong:
            raise ValueError(told.wrong)
        action = self._acted(told.action, role, event, text)
        status = told.status
        if told.logged is None:
            status = how.result_status(event, acts=action is not None)
        if role == "environment" and self._answers(text, told.kind):
            return
        kind = told.kind or ("note" if role == "environment" else "message" if action is None else "action")
        self.events.append(
            {
                "seq": self._seq(event),
                "time": self._time(event, line),
                "actor": actor,
                "kind": kind,
                "text": text,
                "action": action,
                "status": status,
                "error": self._error(event, told.logged) if status == "failed" else None,
                "states": self._state(event) if how.tells_state else {},
            }
        )
        self.origins.append((self.place, line))

    def _time(self, event: dict[str, Any], line: int | None) -> str | None:
        """When it was; a text that is not written as the mapping says costs the time and not the event."""
        try:
            logged = self.sessions.time(event)
        except ValueError as error:
            self._refuse(self.place, f"{error}: kept without it", line)
            return None
        return moment(logged)

    def _acted(
        self, name: str | None, role: ParticipantKind, event: dict[str, Any], text: str | None
    ) -> dict[str, Any] | None:
        """What an event did: as a field names it, as a command line, or as its text has it written."""
        how = self.sessions
        if name:
            return self._action(name, event)
        if name is None and isinstance(command := how.command(event), str) and command.strip():
            return {"name": command.split()[0][:80], "arguments": {"command": command}}
        if name is None and how.acting and role == "agent":
            written = how.written_action(event, text)
            return None if written is None else written.model_dump()
        return None

    def _answers(self, text: str | None, kind: EventKind | None) -> bool:
        """Whether a text of the environment is the result of the action before it; it then is its state."""
        how = self.sessions
        last = self.events[-1] if self.events else None
        if how.mapping.constants.results != "next" or kind not in (None, "note") or not (last and text):
            return False
        if last["kind"] != "action" or last["states"] or last["status"]:
            return False
        state: JsonValue = {"observation": text}
        hashed = content_hash(state)
        self.states[hashed] = state
        status = how.text_status(text, last["action"]["name"] if last["action"] else None)
        error = None if status != "failed" else marks.error(text) or text[:500]
        last.update(states={"public": hashed}, status=status, error=error)
        return True

    def _error(self, event: dict[str, Any], logged: Any) -> str:
        """Why it failed: the log's own error, else its status, else what came back."""
        how = self.sessions
        own = texted(how.error(event), "error")
        if own or logged is not None:
            return own or str(logged)
        result = how.result(event)
        return marks.error(result) or contents.plain(result)[:500] or "failed"

    def _action(self, name: str, event: dict[str, Any]) -> dict[str, Any]:
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
        return {"name": name, "arguments": arguments, "raw": raw}

    def _seq(self, event: dict[str, Any]) -> int:
        if self.sessions.seq is None:
            listed = self.sessions.mapping.events_at is not None
            return self.place + self.asked if listed else len(self.events)
        seq = self.sessions.seq(event)
        if not isinstance(seq, int) or isinstance(seq, bool) or not 0 <= seq < 2**31:
            raise ValueError(f"seq: expected a whole number from 0 to {2**31 - 1}, got {named(seq)}")
        if seq in self.numbers:
            raise ValueError(f"seq: another event has number {seq}")
        self.numbers.add(seq)
        return seq

    def _state(self, event: dict[str, Any]) -> dict[str, str]:
        how = self.sessions
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
        first = self.events[0]
        native = how.native_id(self.head) if how.mapping.trajectory.native_id else None
        native = native or how.place(self.line)
        moment = (first["actor"], first.get("time"), first["text"])
        tags = {name: tag(at(self.head)) for name, at in how.tags.items() if at(self.head) is not None}
        return Trajectory(
            id=content_hash(how.system, native, moment)[:16],
            native_id=native,
            source=how.source,
            system=how.system,
            **head,  # type: ignore[arg-type]
            tags=tags | how.options.tags,
            participants=self.speakers.participants(head),
            events=self.events,  # type: ignore[arg-type]
            outcomes=tuple(_outcomes(how.outcomes, tail)),
            states=self.states,
            hidden=how.heads["hidden"](self.head),
        )


def _outcomes(wanted: dict[str, Getter], record: dict[str, Any]) -> Iterator[Outcome]:
    for name, at in wanted.items():
        value = at(record)
        if isinstance(value, (bool, int, float)):
            yield Outcome(name=name, value=value)
        elif isinstance(value, str):  # tables of texts have their numbers as such
            number = number_in(value)
            known = number is not None and isfinite(number)
            yield Outcome(name=name, value=number) if known else Outcome(name=name, text=value)
        elif value is None:
            yield Outcome(name=name, reason="the log does not say")
        else:
            yield Outcome(name=name, data=value, reason="neither a number nor a text")


def _path(keys: Iterable[object]) -> str:
    """Where in a trajectory something is wrong."""
    return ".".join(str(key) for key in keys if key != "[key]")
