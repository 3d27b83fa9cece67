"""The trajectory that the mapped lines of one session amount to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from ....schemas import Action, Event, JsonValue, Outcome, Participant, Quarantined, Trajectory, content_hash
from ....schemas.trajectory import EventKind, ParticipantKind
from ..base import ReadOptions
from . import contents, marks
from .mapping import Condition, Getter, Mapping, RoleRule, fits, getter, is_pattern, steps

_HEAD = ("condition", "task", "instance", "agent", "agent_model", "setting")


_MILLISECONDS = 1e11
"""A time above it (the year 5138 in seconds) counts milliseconds since 1970."""


Numbered = tuple[int, dict[str, Any]]
"""A line's number, or an event's place in its session, with the object that is there."""


class MappedSessions:
    """How the sessions of one file are read: the mapping with its paths made into functions."""

    def __init__(self, mapping: Mapping, options: ReadOptions, source: str) -> None:
        self.mapping = mapping
        self.options = options
        self.source = source
        self.system = mapping.constants.system
        inside = f"{mapping.events_at}[]." if mapping.events_at is not None else ""

        def at(path: str | None) -> Getter:
            return getter(path.removeprefix(inside) if path else None)

        event = mapping.event
        self.actor, self.role = at(event.actor or event.role), at(event.role or event.actor)
        self.text, self.time, self.state = at(event.text), at(event.time), at(event.state)
        self.result = at(event.result)
        self.tells_state = bool(event.state or event.result)
        self.action, self.status, self.error = at(event.action), at(event.status), at(event.error)
        self.seq = at(event.seq) if event.seq else None
        self.id = at(event.id) if event.id else None
        paths = [event.arguments] if isinstance(event.arguments, str) else event.arguments or []
        self.arguments = [(path.rpartition(".")[2].strip("[]"), at(path)) for path in paths]
        self.roles = mapping.role_table
        self.named = getter(mapping.trajectory.native_id)
        self.heads = {name: getter(getattr(mapping.trajectory, name)) for name in (*_HEAD, "hidden")}
        self.tags = {name: getter(path) for name, path in mapping.tags.items()}
        self.outcomes = {name: getter(path) for name, path in mapping.outcomes.items()}
        conditions = [rule.where for rule in mapping.kinds] + mapping.filter.keep + mapping.filter.skip
        self.rule_paths = {path: at(path) for condition in conditions for path in condition}
        self.ruling = tuple(self.rule_paths.values())
        self.ruled: dict[tuple[Any, ...], tuple[bool, EventKind | None]] = {}
        self.recalls = not any(_has_pattern(condition) for condition in conditions)
        """Whether what rules say is kept by value: texts, which patterns look at, are too many for that."""
        more = [rule.where for rule in mapping.role_rules] + [rule.where for rule in mapping.results]
        self.where_paths = {path: at(path) for condition in more for path in condition}

    def native_id(self, record: dict[str, Any]) -> str | None:
        """Which session a line is of; a whole file is one where the mapping names no field."""
        if self.mapping.trajectory.native_id is None:
            return Path(self.source).stem
        name = self.named(record)
        return str(name) if isinstance(name, (str, int)) and name != "" else None

    def head(self, records: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """The first line with, of every field that is said once a session, the first value there is."""
        rest = iter(records)
        first = dict(next(rest))
        wanted = self.mapping.trajectory.model_dump(exclude_none=True).values()
        missing = [(path, getter(path)) for path in (*wanted, *self.mapping.tags.values())]
        missing = [(path, at) for path, at in missing if at(first) is None]
        return _completed(first, missing, rest)

    def tail(self, records: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """The last value of every outcome there is."""
        missing = [(path, getter(path)) for path in self.mapping.outcomes.values()]
        return _completed({}, missing, reversed(list(records))) if missing else {}

    def rule(self, event: dict[str, Any]) -> tuple[bool, EventKind | None]:
        """Whether to take an event, and the kind that a rule gives it."""
        values = tuple([at(event) for at in self.ruling])
        if not self.recalls:
            return self._ruled(values)
        try:
            known = self.ruled.get(values)
            if known is None:
                known = self.ruled[values] = self._ruled(values)
            return known
        except TypeError:  # a list or an object, which no rule names
            return self._ruled(values)

    def _ruled(self, values: tuple[Any, ...]) -> tuple[bool, EventKind | None]:
        at = dict(zip(self.rule_paths, values, strict=True)).__getitem__
        chosen = self.mapping.filter
        kept = not chosen.keep or any(fits(condition, at) for condition in chosen.keep)
        if not kept or any(fits(condition, at) for condition in chosen.skip):
            return False, None
        return True, next((rule.kind for rule in self.mapping.kinds if fits(rule.where, at)), None)

    def role_rule(self, event: dict[str, Any]) -> RoleRule | None:
        """The first rule on who speaks that an event fits."""
        if not self.mapping.role_rules:
            return None
        return next((rule for rule in self.mapping.role_rules if self._fits(rule.where, event)), None)

    def result_status(self, event: dict[str, Any], acts: bool) -> marks.Status | None:
        """What the rules and the shipped marks say of an event of which the log gives no status."""
        for rule in self.mapping.results:
            if self._fits(rule.where, event):
                return None if rule.status == "unknown" else rule.status
        result = self.result(event)
        marked = None if result is None else marks.status(result)
        return marked or (self.mapping.constants.status if acts else None)

    def _fits(self, where: Condition, event: dict[str, Any]) -> bool:
        return fits(where, lambda path: self.where_paths[path](event))

    def ordered(self, many: list[Numbered]) -> list[Numbered]:
        """Lines of one session in the order in which things happened."""
        if self.seq is not None:
            return sorted(many, key=self._place)
        moment = float("-inf")
        moments = []
        for _, record in many:
            moment = given if (given := _moment(self.time(record))) is not None else moment
            moments.append(moment)
        order = sorted(range(len(many)), key=moments.__getitem__)
        return [many[index] for index in order]

    def _place(self, numbered: Numbered) -> float:
        assert self.seq is not None
        seq = self.seq(numbered[1])
        return seq if isinstance(seq, (int, float)) else float("inf")


def _has_pattern(condition: Condition) -> bool:
    choices = (wanted if isinstance(wanted, list) else [wanted] for wanted in condition.values())
    return any(is_pattern(one) for many in choices for one in many)


def _completed(
    first: dict[str, Any], missing: list[tuple[str, Getter]], rest: Iterator[dict[str, Any]]
) -> dict[str, Any]:
    """`first` with what later lines say at the `missing` paths."""
    while missing and (record := next(rest, None)) is not None:
        for path, at in [(path, at) for path, at in missing if at(record) is not None]:
            first = _with(first, path, at(record))
            missing.remove((path, at))
    return first


def _with(record: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    keys = steps(path)
    inner = value
    for key in reversed(keys[1:]):
        inner = {key: inner}
    return {**record, str(keys[0]): inner}


@dataclass
class MappedSession:
    """One session on its way to a trajectory."""

    sessions: MappedSessions
    head: dict[str, Any]
    line: int
    events: list[Event] = field(default_factory=list)
    states: dict[str, JsonValue] = field(default_factory=dict)
    kinds: dict[str, ParticipantKind] = field(default_factory=dict)
    wrong: list[Quarantined] = field(default_factory=list)
    seen: dict[Any, list[dict[str, Any]]] = field(default_factory=dict)
    plain: set[tuple[str, str]] = field(default_factory=set)
    """Actors with their roles about whom nothing in an event can say otherwise."""

    def take(self, place: int, event: Any, where: str, line: int) -> None:
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

    def finished(self, tail: dict[str, Any]) -> Iterator[Trajectory | Quarantined]:
        """What was wrong, then the trajectory."""
        yield from self.wrong
        if not self.events:
            if not self.wrong:
                yield Quarantined(source=self.sessions.source, line=self.line, reason="no events in it")
            return
        try:
            yield self._trajectory(tail)
        except ValidationError as error:
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}, got {first['input']!r:.80}"
            yield Quarantined(source=self.sessions.source, line=self.line, reason=reason)

    def _refuse(self, reason: str, line: int) -> None:
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
        taken, kind = how.rule(event)
        if not taken:
            return
        actor = self._actor(event)
        name = _text(how.action(event), "action")
        logged = how.status(event)
        status = self._status(logged) if logged is not None else how.result_status(event, name is not None)
        self.events.append(
            Event(
                seq=self._seq(place, event),
                time=_time(how.time(event)),
                actor=actor,
                kind=kind or self._kind(actor, name),
                text=_text(how.text(event), "text"),
                action=None if name is None else self._action(name, event),
                status=status,  # type: ignore[arg-type]
                error=self._error(event, logged) if status == "failed" else None,
                states=self._state(event),
            )
        )

    def _actor(self, event: dict[str, Any]) -> str:
        how = self.sessions
        actor, role = how.actor(event), how.role(event)
        if type(actor) is str and type(role) is str and (actor, role) in self.plain:
            return actor
        if rule := how.role_rule(event):
            return self._known(rule.actor or actor, rule.kind)
        if not isinstance(actor, (str, int)) or actor == "":
            raise ValueError(f"actor: expected a name, got {named(actor)}")
        actor = str(actor)
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
        own = _text(how.error(event), "error")
        if own or logged is not None:
            return own or str(logged)
        result = how.result(event)
        return marks.error(result) or contents.plain(result)[:500] or "failed"

    def _kind(self, actor: str, action: str | None) -> EventKind:
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
                given = _unpacked(given)
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
            return place if self.sessions.mapping.events_at is not None else len(self.events)
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
            or _text(how.heads[name](self.head), f"trajectory.{name}")
            or getattr(constants, name)
            for name in _HEAD
        }
        if how.mapping.events_at is not None:
            self.events.sort(key=lambda event: event.seq)
        first = self.events[0]
        native = how.native_id(self.head) if how.mapping.trajectory.native_id else None
        native = native or self._place_in_file()
        moment = (first.actor, first.time, first.text)
        tags = {name: _tag(at(self.head)) for name, at in how.tags.items() if at(self.head) is not None}
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

    def _place_in_file(self) -> str:
        stem = Path(self.sessions.source).stem
        return stem if self.sessions.mapping.events_at is None else f"{stem}:{self.line}"

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
        elif isinstance(value, str):
            yield Outcome(name=name, text=value)
        elif value is None:
            yield Outcome(name=name, reason="the log does not say")
        else:
            yield Outcome(name=name, data=value, reason="neither a number nor a text")


def _text(value: Any, where: str) -> str | None:
    if value is None or type(value) is str:
        return value
    if isinstance(value, (int, float)):
        return _tag(value)
    raise ValueError(f"{where}: expected a text, got {named(value)}")


def _tag(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _time(value: Any) -> str | None:
    """ISO 8601; a number is seconds or milliseconds since 1970."""
    if value is None or type(value) is str:
        return value
    moment = _moment(value)
    if moment is None:
        raise ValueError(f"time: expected a text or a number, got {named(value)}")
    return datetime.fromtimestamp(moment, UTC).isoformat()


def _moment(value: Any) -> float | None:
    """Seconds since 1970; None where a value is no time."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value / 1000 if abs(value) > _MILLISECONDS else float(value)
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _unpacked(text: str) -> JsonValue:
    """Arguments that were logged as JSON within a text; the text itself where it is none."""
    try:
        value: JsonValue = from_json(text)
    except ValueError:
        return text
    return value


def named(value: Any) -> str:
    names = {type(None): "nothing", dict: "an object", list: "a list", bool: "true or false"}
    return names.get(type(value), repr(value)[:60])
