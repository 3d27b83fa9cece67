"""The trajectory that the mapped events of one session amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from pydantic import ValidationError

from ....schemas import (
    JsonValue,
    Outcome,
    Quarantined,
    Trajectory,
    content_hash,
)
from ....schemas.event import EventColumns, EventKind, Events
from ....schemas.trajectory import ParticipantKind, number_in
from . import contents, marks
from .mapped_paths import HEAD, Fields, MappedSessions
from .mapped_speakers import Speakers
from .mapped_values import frozen, moment, named, spoken, tag, texted
from .paths import Getter, unpacked

USER = "user"
"""Who asks, where only the request is logged."""
Done = tuple[str | None, dict[str, JsonValue] | None, str | None]
"""The name of an action with its arguments and how those were logged."""
NOTHING: Done = (None, None, None)
_AGAIN = (
    "left out as said twice: {} events that say the same as an earlier one of this session; map [event] id, "
    "seq or time if they are others"
)


class Row(NamedTuple):
    """What is told of an event."""

    seq: int
    time: str | None
    actor: str
    kind: EventKind
    text: str | None
    action: str | None
    arguments: dict[str, JsonValue] | None
    raw: str | None
    status: marks.Status | None
    error: str | None
    states: dict[str, str]


@dataclass
class MappedSession:
    """One session on its way to a trajectory."""

    sessions: MappedSessions
    head: dict[str, Any]
    line: int | None
    events: list[tuple[Any, ...]] = field(default_factory=list)
    """The fields of a `Row` of each: plain tuples are made in a fifth of the time."""
    origins: list[tuple[int, int | None]] = field(default_factory=list)
    """Of each event its place in the log's list and its line."""
    states: dict[str, JsonValue] = field(default_factory=dict)
    wrong: list[Quarantined] = field(default_factory=list)
    came: dict[Any, set[Hashable]] = field(default_factory=dict)
    """Events, frozen, by their id, number or time: most sessions that ask have none of these."""
    numbers: set[int] = field(default_factory=set)
    """The logged numbers of events: units are addressed by them."""
    others: Counter[str] = field(default_factory=Counter)
    """Logged statuses that the mapping does not name."""
    again: int = 0
    """So many events say what an earlier one does, and nothing says when or as which."""
    place: int = 0
    """Of the event that is being taken."""
    asked: int = 0
    """How many events there are before those of the log: 1 with a request."""

    def __post_init__(self) -> None:
        self.speakers = Speakers(self.sessions)

    def take(self, events: Sequence[Any], lines: Iterable[int | None]) -> None:
        """Add all events, each with its line, but those that cannot be read or say the same twice."""
        objects = [event if isinstance(event, dict) else {} for event in events]
        columns = self.sessions.seen(objects)
        differ = columns.differ
        for place, (event, line, key, fields) in enumerate(
            zip(events, lines, columns.keys, columns.fields, strict=False)
        ):
            self.place = place
            try:
                if not isinstance(event, dict):
                    raise ValueError(f"expected an object, got {named(event)}")
                if differ or not self._repeats(event, key):
                    self._take(event, line, fields)
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
            self.events.append((0, None, actor, "message", request, None, None, None, None, None, {}))
            self.origins.append((0, self.line))

    def finished(self, tail: dict[str, Any]) -> Iterator[Trajectory | Quarantined]:
        """What was wrong, then the trajectory."""
        result: Trajectory | Quarantined | None = None
        if self.sessions.seq is not None and self.sessions.mapping.events_at is not None:
            order = sorted(range(len(self.events)), key=lambda at: self.events[at][0])
            self.events = [self.events[at] for at in order]
            self.origins = [self.origins[at] for at in order]
        while result is None and len(self.events) > self.asked:
            try:
                result = self._trajectory(tail)
            except ValidationError as error:
                result = self._without_invalid(error)
        yield from self.wrong
        if self.others:
            statuses = ", ".join(f"{word!r} ({count})" for word, count in self.others.most_common(8))
            reason = f'statuses that [statuses] has no name for were taken as its "*": {statuses}'
            yield Quarantined(source=self.sessions.source, line=self.line, reason=reason)
        if self.again:
            yield Quarantined(source=self.sessions.source, line=self.line, reason=_AGAIN.format(self.again))
        if result is not None:
            yield result
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

    def _repeats(self, event: dict[str, Any], key: Any) -> bool:
        """Whether an event came before; ValueError where another one came under its number or id."""
        sessions = self.sessions
        if isinstance(key, (list, dict)):
            raise ValueError(f"expected a text or a number as its id, got {named(key)}")
        earlier = self.came.setdefault(key, set())
        same = frozen(event)
        if same in earlier:
            self.again += key is None and sessions.mapping.event.time is None
            return True
        if earlier and (sessions.id or sessions.seq) and key is not None:
            raise ValueError(f"another event came before with the same id or number {key!r}")
        earlier.add(same)
        return False

    def _take(self, event: dict[str, Any], line: int | None, fields: Fields) -> None:
        """Whatever is logged comes by here: what is not asked of most events is a call of its own."""
        sessions = self.sessions
        actor, role, content, moment_logged, (is_taken, kind, name, status_logged, status, wrong) = fields
        if not is_taken:
            return
        plain = type(actor) is str and type(role) is str
        party = self.speakers.plain.get((actor, role)) if plain else None
        if party is None or party == "human":
            actor, party = self.speakers.of(event, actor, role, content, self.place)
        text = content if type(content) is str else spoken(content)
        if wrong:
            raise ValueError(wrong)
        if sessions.open_statuses and status_logged is not None and sessions.is_other(status_logged):
            self.others[str(status_logged)[:40]] += 1
        arguments = raw = None
        if name:
            arguments, raw = self._arguments(event)
        elif name is None and sessions.tells_acts:
            name, arguments, raw = self._acted(party, event, text)
        else:
            name = None
        if status_logged is None:
            status = sessions.result_status(event, acts=name is not None)
        if party == "environment":
            if self._answers(text, kind, status if status_logged is not None else None):
                return
            kind = kind or "note"
        kind = kind or ("message" if name is None else "action")
        seq = (
            self._seq(event)
            if sessions.seq
            else self.place + self.asked
            if sessions.listed
            else len(self.events)
        )
        time = self._time(event, moment_logged, line)
        error = self._error(event, status_logged) if status == "failed" else None
        states = self._state(event) if sessions.tells_state else {}
        self.events.append((seq, time, actor, kind, text, name, arguments, raw, status, error, states))
        self.origins.append((self.place, line))

    def _time(self, event: dict[str, Any], value: Any, line: int | None) -> str | None:
        """When it was; a text that is not written as the mapping says costs the time and not the event."""
        if self.sessions.mapping.constants.time_format is not None:
            try:
                value = self.sessions.time(event)
            except ValueError as error:
                self._refuse(self.place, f"{error}: kept without it", line)
                return None
        return moment(value)

    def _acted(self, party: ParticipantKind, event: dict[str, Any], text: str | None) -> Done:
        """What an event did that names no action: as a command line, or as its text has it written."""
        sessions = self.sessions
        if isinstance(command := sessions.command(event), str) and command.strip():
            return command.split()[0][:80], {"command": command}, None
        if (
            sessions.acting
            and party == "agent"
            and (action := sessions.written_action(event, text)) is not None
        ):
            return action.name, action.arguments, action.raw
        return NOTHING

    def _answers(self, text: str | None, kind: EventKind | None, event_status: marks.Status | None) -> bool:
        """Whether a text of the environment is the result of the action before it; it then is its state, and
        the status that is logged with it is the action's."""
        sessions = self.sessions
        if sessions.mapping.constants.results != "next" or kind not in (None, "note"):
            return False
        if not (self.events and text) or marks.surroundings(text):
            return False
        last = Row(*self.events[-1])
        if last.kind != "action" or last.states or last.status:
            return False
        state: JsonValue = {"observation": text}
        state_hash = content_hash(state)
        self.states[state_hash] = state
        status = event_status or sessions.text_status(text, last.action)
        error = None if status != "failed" else marks.error(text) or text[:500]
        self.events[-1] = last._replace(states={"public": state_hash}, status=status, error=error)
        return True

    def _error(self, event: dict[str, Any], status: Any) -> str:
        """Why it failed: the log's own error, else its status, else what came back."""
        sessions = self.sessions
        error = texted(sessions.error(event), "error")
        if error or status is not None:
            return error or str(status)
        result = sessions.result(event)
        return marks.error(result) or contents.plain(result)[:500] or "failed"

    def _arguments(self, event: dict[str, Any]) -> tuple[dict[str, JsonValue], str | None]:
        """Of an action, and as they were logged where that is a text."""
        arguments: dict[str, JsonValue] = {}
        raw: str | None = None
        for key, at in self.sessions.arguments:
            value = at(event)
            if type(value) is str and value[:1] == "{":
                raw = value
                value = unpacked(value)
            if type(value) is dict:
                arguments.update(value)
            elif value is not None:
                arguments[key] = value
        return arguments, raw

    def _seq(self, event: dict[str, Any]) -> int:
        """The logged number of an event, which no other one has."""
        assert self.sessions.seq is not None
        seq = self.sessions.seq(event)
        if not isinstance(seq, int) or isinstance(seq, bool) or not 0 <= seq < 2**31:
            raise ValueError(f"seq: expected a whole number from 0 to {2**31 - 1}, got {named(seq)}")
        if seq in self.numbers:
            raise ValueError(f"seq: another event has number {seq}")
        self.numbers.add(seq)
        return seq

    def _state(self, event: dict[str, Any]) -> dict[str, str]:
        sessions = self.sessions
        state = sessions.state(event)
        if state is None and (result := sessions.result(event)) is not None:
            state = {"observation": result}
        if state is None:
            return {}
        state_hash = content_hash(state)
        self.states[state_hash] = state
        return {"public": state_hash}

    def _trajectory(self, tail: dict[str, Any]) -> Trajectory:
        sessions, constants = self.sessions, self.sessions.mapping.constants
        head = {
            name: sessions.given[name]
            or texted(sessions.heads[name](self.head), f"trajectory.{name}")
            or getattr(constants, name)
            for name in HEAD
        }
        native = sessions.native_id(self.head) if sessions.mapping.trajectory.native_id else None
        native = native or sessions.place(self.line)
        first = Row(*self.events[0])
        moment = (first.actor, first.time, first.text)
        # The id rests on the first event as it was cut out of its text.
        rows = (
            self.events if sessions.unsaid is None else [*_without_placeholders(self.events, sessions.unsaid)]
        )
        tags = {
            name: tag(value) for name, at in sessions.tags.items() if (value := at(self.head)) is not None
        }
        return Trajectory(
            id=content_hash(sessions.system, native, moment)[:16],
            native_id=native,
            source=sessions.source,
            system=sessions.system,
            **head,  # type: ignore[arg-type]
            tags=tags | sessions.options.tags,
            participants=self.speakers.participants(head),
            events=_events(rows),
            outcomes=tuple(_outcomes(sessions.outcomes, tail)),
            states=self.states,
            hidden=sessions.heads["hidden"](self.head),
        )


def _without_placeholders(rows: Iterable[tuple[Any, ...]], unsaid: str) -> Iterator[tuple[Any, ...]]:
    """Events without what stands for a time in those that have none."""
    for seq, time, *rest in rows:
        yield (seq, None if time == unsaid else time, *rest)


def _events(rows: Sequence[tuple[Any, ...]]) -> Any:
    """Events, or what is none and is told so by its type."""
    n = len(rows)
    seq, time, actor, kind, text, *action_columns, status, error, states = zip(*rows, strict=True)
    apart: list[Any] = [actor, kind, text, *action_columns, status, error, states]
    columns = EventColumns(seq, [0] * n, [False] * n, time, *apart, [()] * n)  # type: ignore[call-arg]
    return Events(columns) if columns.are_events() else columns.dictionaries()


def _outcomes(getters: dict[str, Getter], record: dict[str, Any]) -> Iterator[Outcome]:
    for name, at in getters.items():
        value = at(record)
        if isinstance(value, (bool, int, float)):
            yield Outcome(name=name, value=value)
        elif isinstance(value, str):  # tables of texts have their numbers as such
            number = number_in(value)
            is_finite = number is not None and isfinite(number)
            yield Outcome(name=name, value=number) if is_finite else Outcome(name=name, text=value)
        elif value is None:
            yield Outcome(name=name, reason="the log does not say")
        else:
            yield Outcome(name=name, data=value, reason="neither a number nor a text")


def _path(keys: Iterable[object]) -> str:
    """Where in a trajectory something is wrong."""
    return ".".join(str(key) for key in keys if key != "[key]")
