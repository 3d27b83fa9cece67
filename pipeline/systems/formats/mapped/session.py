"""A mapped session: the events of a log on their way to a trajectory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from pydantic import ValidationError

from .....schemas import JsonValue, Outcome, Quarantined, Trajectory, content_hash
from .....schemas.event import EventColumns, EventKind, Events
from .....schemas.text import rule_of
from .....schemas.trajectory import ParticipantKind, number_in
from ..fields import contents, marks
from ..fields.paths import decode_json
from ..fields.values import (
    as_hashable,
    describe,
    expect_text,
    is_name,
    logged_time,
    tag,
    utterance,
    with_offset,
)
from .reading import HEAD, MOST_NUMBERS, Fields, MappedSessions
from .speakers import Speakers

USER = "user"
"""Who asks, where the log does not say."""
ActionFields = tuple[str | None, dict[str, JsonValue] | None, str | None]
"""(name, arguments, their text as logged) of an action."""
NO_ACTION: ActionFields = (None, None, None)
_AGAIN = (
    "left out as said twice: {} events that say the same as an earlier one of this session; map [event] id, "
    "seq or time if they are others"
)


class Row(NamedTuple):
    """An event as a row of `EventColumns`."""

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
    places: Sequence[int] = ()
    """Of each event that is added its place in the record's list, where the record has one."""
    events: list[tuple[Any, ...]] = field(default_factory=list)
    """The fields of a `Row` of each: plain tuples are made in a fifth of the time."""
    origins: list[tuple[int, int | None]] = field(default_factory=list)
    """Of each event its place among those that were added and its line."""
    states: dict[str, JsonValue] = field(default_factory=dict)
    problems: list[Quarantined] = field(default_factory=list)
    events_by_key: dict[Any, set[Hashable]] = field(default_factory=dict)
    """Id, number or time -> the hashable events that have it. It is filled only where keys repeat."""
    numbers: set[int] = field(default_factory=set)
    """The numbers of the events so far: units are addressed by them, so each is one event's."""
    unnamed_statuses: Counter[str] = field(default_factory=Counter)
    """Logged statuses that `[statuses]` does not name -> how often they occur."""
    repeat_count: int = 0
    """How many events were left out as repetitions, where no id, number or time tells them from others."""
    place: int = 0
    """The place of the event that is being added among all of them, in their order."""
    request_count: int = 0
    """How many events stand before those of the log: 1 with a request."""

    def __post_init__(self) -> None:
        self.speakers = Speakers(self.sessions)
        self.seq = self.sessions.seq

    def add_events(self, events: Sequence[Any], lines: Iterable[int | None]) -> None:
        """Add all events, each with its line. Repetitions are left out, and events that cannot be read are
        noted."""
        objects = [event if isinstance(event, dict) else {} for event in events]
        self.seq = self.sessions.numbering(objects)
        columns = self.sessions.read_batch(objects, self.seq)
        are_unique = columns.are_unique
        for place, (event, line, key, fields) in enumerate(
            zip(events, lines, columns.keys, columns.fields, strict=False)
        ):
            self.place = place
            try:
                if not isinstance(event, dict):
                    raise ValueError(f"expected an object, got {describe(event)}")
                if are_unique or not self._repeats(event, key):
                    self._add_event(event, line, fields)
            except ValueError as error:
                self._refuse(place, str(error), line)
            except (TypeError, OverflowError, OSError) as error:  # a value of no kind that this field has
                self._refuse(place, f"{type(error).__name__}: {error}", line)

    def add_request(self, request: Any) -> None:
        """Add the session's request, a text or a content in parts, as the first message of who asks."""
        if isinstance(request, list) and all(map(contents.is_message_part, request)):
            request = contents.plain_text(request)
        if isinstance(request, str) and request:
            asks = self.sessions.heads["requester"](self.head)
            name = asks if is_name(asks) else self.sessions.mapping.constants.requester or USER
            actor = self.speakers.add(self.sessions.strip_name(str(name)), "human")
            self.request_count = 1
            self.numbers.add(0)
            self.events.append((0, None, actor, "message", request, None, None, None, None, None, {}))
            self.origins.append((0, self.line))

    def add_start(self) -> None:
        """Add a start of which the log says nothing, where there is nothing else that the session begins
        with."""
        if not self.events:
            actor = self.speakers.add(None, "environment")
            self.events.append((0, None, actor, "start", None, None, None, None, None, None, {}))
            self.origins.append((0, self.line))
        self.request_count = 0

    def finish(self, tail: dict[str, Any]) -> Iterator[Trajectory | Quarantined]:
        """Yield what was wrong, then the trajectory if any events are left."""
        result: Trajectory | Quarantined | None = None
        if self.sessions.seq is not None and self.sessions.mapping.events_at is not None:
            order = sorted(range(len(self.events)), key=lambda at: self.events[at][0])
            self.events = [self.events[at] for at in order]
            self.origins = [self.origins[at] for at in order]
        while result is None and len(self.events) > self.request_count:
            try:
                result = self._trajectory(tail)
            except ValidationError as error:
                result = self._without_invalid(error)
        yield from self.problems
        if self.unnamed_statuses:
            statuses = ", ".join(
                f"{word!r} ({count})" for word, count in self.unnamed_statuses.most_common(8)
            )
            reason = f'statuses that [statuses] has no name for were taken as its "*": {statuses}'
            yield Quarantined(source=self.sessions.source, line=self.line, reason=reason)
        if self.repeat_count:
            yield Quarantined(
                source=self.sessions.source, line=self.line, reason=_AGAIN.format(self.repeat_count)
            )
        if result is not None:
            yield result
        elif not self.problems:
            yield Quarantined(source=self.sessions.source, line=self.line, reason="no events in it")

    def _without_invalid(self, error: ValidationError) -> Quarantined | None:
        """Remove the invalid events and note why; where anything else is invalid, return why there is no
        trajectory."""
        first = error.errors()[0]
        if first["loc"][0] != "events":
            reason = f"{_path(first['loc'])}: {rule_of(first)}, got {first['input']!r:.80}"
            return Quarantined(source=self.sessions.source, line=self.line, reason=reason)
        reasons = {at["loc"][1]: f"{_path(at['loc'][2:])}: {rule_of(at)}" for at in reversed(error.errors())}
        for index in sorted(reasons, reverse=True):
            place, line = self.origins.pop(index)
            self._refuse(place, reasons[index], line)
            del self.events[index]
        return None

    def _refuse(self, place: int, reason: str, line: int | None) -> None:
        at = self.sessions.mapping.events_at
        reason = reason if at is None else f"{at}[{self.places[place]}]: {reason}"
        self.problems.append(Quarantined(source=self.sessions.source, line=line, reason=reason))

    def _repeats(self, event: dict[str, Any], key: Any) -> bool:
        """Whether the same event came before; ValueError where another one came with its number or id."""
        sessions = self.sessions
        if isinstance(key, (list, dict)):
            raise ValueError(f"expected a text or a number as its id, got {describe(key)}")
        earlier = self.events_by_key.setdefault(key, set())
        same = as_hashable(event)
        if same in earlier:
            self.repeat_count += key is None and sessions.mapping.event.time is None
            return True
        if earlier and (sessions.id or sessions.seq) and key is not None:
            raise ValueError(f"another event came before with the same id or number {key!r}")
        earlier.add(same)
        return False

    def _add_event(self, event: dict[str, Any], line: int | None, fields: Fields) -> None:
        """Add an event. This runs for every event of a log, so what few of them need is in methods of its
        own."""
        sessions = self.sessions
        actor, role, content, moment_logged, (is_taken, kind, name, status_logged, status, wrong) = fields
        if not is_taken:
            return
        plain = type(actor) is str and type(role) is str
        party = self.speakers.kind_cache.get((actor, role)) if plain else None
        if party is None or party == "human":
            actor, party = self.speakers.speaker_of(event, actor, role, content, self.place)
        text = content if type(content) is str else utterance(content)
        if wrong:
            raise ValueError(wrong)
        if sessions.has_open_statuses and status_logged is not None and sessions.is_other(status_logged):
            self.unnamed_statuses[str(status_logged)[:40]] += 1
        arguments = raw = None
        if name:
            arguments, raw = self._arguments(event)
        elif name is None and sessions.has_implied_actions:
            name, arguments, raw = self._implied_action(party, event, text)
        else:
            name = None
        if status_logged is None:
            status = sessions.result_status(event, acts=name is not None)
        if party == "environment":
            if self._attach_result(text, kind, status if status_logged is not None else None):
                return
            kind = kind or "note"
        kind = kind or ("message" if name is None else "action")
        seq = (
            self._seq(event)
            if self.seq
            else self.place + self.request_count
            if sessions.has_list
            else len(self.events)
        )
        time = self._time(event, moment_logged, line)
        error = self._error(event, status_logged) if status == "failed" else None
        states = self._state(event) if sessions.has_state else {}
        self.events.append((seq, time, actor, kind, text, name, arguments, raw, status, error, states))
        self.origins.append((self.place, line))

    def _time(self, event: dict[str, Any], value: Any, line: int | None) -> str | None:
        """The event's time. A text that does not have the mapping's format is noted, and the event is kept
        without a time."""
        if self.sessions.mapping.constants.time_format is not None:
            try:
                value = self.sessions.time(event)
            except ValueError as error:
                self._refuse(self.place, f"{error}: kept without it", line)
                return None
        return logged_time(value)

    def _implied_action(
        self, party: ParticipantKind, event: dict[str, Any], text: str | None
    ) -> ActionFields:
        """What an event did that names no action: its command line, or what its text has in it by a rule."""
        sessions = self.sessions
        if isinstance(command := sessions.command(event), str) and command.strip():
            return command.split()[0][:80], {"command": command}, None
        if (
            sessions.action_patterns
            and party == "agent"
            and (action := sessions.find_action(event, text)) is not None
        ):
            return action.name, action.arguments, action.raw
        return NO_ACTION

    def _attach_result(
        self, text: str | None, kind: EventKind | None, event_status: marks.Status | None
    ) -> bool:
        """Attach a text of the environment to the action before it as its result, with the status that is
        logged with the text, where the mapping says that results follow actions; whether it was attached."""
        sessions = self.sessions
        if sessions.mapping.constants.results != "next" or kind not in (None, "note"):
            return False
        if not (self.events and text) or marks.is_surroundings(text):
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
        error = expect_text(sessions.error(event), "error")
        if error or status is not None:
            return error or str(status)
        result = sessions.result(event)
        return marks.error(result) or contents.plain_text(result)[:500] or "failed"

    def _arguments(self, event: dict[str, Any]) -> tuple[dict[str, JsonValue], str | None]:
        """The arguments of an action, and their text where they were logged as one."""
        arguments: dict[str, JsonValue] = {}
        raw: str | None = None
        for key, at in self.sessions.arguments:
            value = at(event)
            if type(value) is str and value[:1] == "{":
                raw = value
                value = decode_json(value)
            if type(value) is dict:
                arguments.update(value)
            elif value is not None:
                arguments[key] = value
        return arguments, raw

    def _seq(self, event: dict[str, Any]) -> int:
        """The logged number of an event; ValueError where it is no number, or another event has it."""
        assert self.seq is not None
        seq = self.seq(event)
        if not isinstance(seq, int) or isinstance(seq, bool) or not 0 <= seq < MOST_NUMBERS:
            raise ValueError(
                f"seq: expected a whole number from 0 to {MOST_NUMBERS - 1}, got {describe(seq)}"
            )
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
            name: sessions.overrides[name]
            or expect_text(sessions.heads[name](self.head), f"trajectory.{name}")
            or getattr(constants, name)
            for name in HEAD
        }
        native = sessions.native_id(self.head) if sessions.mapping.trajectory.native_id else None
        native = native or sessions.default_id(self.line)
        first = Row(*self.events[0])
        moment = (first.actor, first.time, first.text)
        # The id is a hash of the first event as it was cut out of its text, with placeholder and zone.
        rows = (
            self.events
            if sessions.placeholder is None
            else [*_without_placeholders(self.events, sessions.placeholder)]
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
            outcomes=tuple(_outcomes(sessions.outcome_values(tail))),
            states=self.states,
            hidden=sessions.heads["hidden"](self.head),
        )


def _without_placeholders(rows: Iterable[tuple[Any, ...]], unsaid: str) -> Iterator[tuple[Any, ...]]:
    """The rows with None in place of the placeholder for a time."""
    for seq, time, *rest in rows:
        yield (seq, None if time == unsaid else time, *rest)


def _events(rows: Sequence[tuple[Any, ...]]) -> Any:
    """The rows as `Events`, or as dictionaries where some are invalid: validating these says what is
    wrong."""
    n = len(rows)
    seq, time, actor, kind, text, *action_columns, status, error, states = zip(*rows, strict=True)
    apart: list[Any] = [actor, kind, text, *action_columns, status, error, states]
    times = [*map(with_offset, time)]
    columns = EventColumns(seq, [0] * n, [False] * n, times, *apart, [()] * n)  # type: ignore[call-arg]
    return Events(columns) if columns.are_events() else columns.dictionaries()


def _outcomes(values: dict[str, Any]) -> Iterator[Outcome]:
    for name, value in values.items():
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
    """The path in a trajectory to what is invalid."""
    return ".".join(str(key) for key in keys if key != "[key]")
