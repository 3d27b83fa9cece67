"""How the sessions of one mapped log are read: the mapping with its paths made into functions."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ....schemas import Action, JsonValue
from ....schemas.event import EventKind
from ..base import ReadOptions, expect, without_halves
from . import marks
from .inputs import plain
from .mapped_values import is_name, iso_of, seconds_of, texted
from .mapping import ANY, Mapping, RoleRule
from .paths import (
    Column,
    Condition,
    Getter,
    expression,
    first_of,
    fits,
    getter,
    is_pattern,
    several,
    steps,
    unpacked,
    values_at,
)
from .rules import rules

HEAD = ("condition", "task", "instance", "agent", "agent_model", "setting")


PLACES = ("$file", "$folder", "$folder2", "$folder3")
"""In `native_id`, the name of the file, of its folder, of the folder around that ..."""
RECALLED = 4096
"""So many different events are remembered with what they were told as."""
Numbered = tuple[int | None, dict[str, Any]]
"""A line's number, or an event's place in its session, with the object that is there."""


class Told(NamedTuple):
    """What an event says in fields that have few values."""

    taken: bool
    kind: EventKind | None = None
    """That a rule gives it."""
    action: str | None = None
    """The name of what was done."""
    logged: Any = None
    """Its status as the log has it."""
    status: marks.Status | None = None
    """What that means."""
    wrong: str | None = None
    """Why it is none of these."""


Fields = tuple[Any, Any, Any, Any, Told]
"""Actor, role, text and time as they are logged, and what else an event says."""


class Seen(NamedTuple):
    """The fields of many events."""

    keys: Sequence[Any]
    """Their ids, numbers or times: no two that differ say the same."""
    differ: bool
    """Whether all do."""
    fields: Sequence[Fields]


class MappedSessions:
    """How the sessions of one file are read: the mapping with its paths made into functions."""

    def __init__(self, mapping: Mapping, options: ReadOptions, source: str) -> None:
        self.mapping = mapping
        self.options = options
        self.source = source
        self.stem = Path(source).stem
        self.system = mapping.constants.system
        inside = f"{mapping.events_at}[]." if mapping.events_at is not None else ""

        def at(path: str | list[str] | None) -> Getter:
            if isinstance(path, list):
                return first_of(path, inside)
            return getter(path.removeprefix(inside) if path else None)

        def column(path: str | list[str] | None) -> Column:
            if isinstance(path, list):
                one = first_of(path, inside)
                return lambda events: [one(event) for event in events]
            return values_at(path.removeprefix(inside) if path else None)

        event = mapping.event
        self.state = at(event.state)
        has_pattern = mapping.turns is not None and mapping.turns.pattern is not None
        self.unsaid = mapping.turns.first if mapping.turns and has_pattern else None
        """What stands for the time of a turn that has none, as for its speaker."""
        self.time = _time_getter(at(event.time), mapping.constants.time_format, self.unsaid)
        self.tells_state = bool(event.state or event.result)
        self.listed = mapping.events_at is not None
        """Whether a record holds a list of events."""
        self.open_statuses = mapping.statuses.get(ANY) == "unknown"
        self.tells_acts = bool(event.command or mapping.actions)
        self.result, self.command = at(event.result), at(event.command)
        self.error = at(event.error)
        self.seq = _integer_getter(at(event.seq)) if event.seq else None
        self.id = at(event.id) if event.id else None
        paths = [event.arguments] if isinstance(event.arguments, str) else event.arguments or []
        self.arguments = [(path.rpartition(".")[2].strip("[]"), at(path)) for path in paths]
        self.roles = mapping.role_table
        native_id = mapping.trajectory.native_id
        self.named = [_file_name_getter(path, source) or getter(path) for path in several(native_id)]
        self.strip = expression(mapping.names["strip"]) if "strip" in mapping.names else None
        self.acting = [(rule, expression(rule.pattern)) for rule in mapping.actions]
        self.heads = {
            name: getter(getattr(mapping.trajectory, name)) for name in (*HEAD, "hidden", "request")
        }
        self.given = {name: getattr(options, name, None) for name in HEAD}
        """What a person says of all sessions."""
        self.tags = {name: getter(path) for name, path in mapping.tags.items()}
        self.outcomes = {
            name: _number_getter(getter(path), mapping.values.get(name, {}))
            for name, path in mapping.outcomes.items()
        }
        conditions = [rule.where for rule in mapping.kinds] + mapping.filter.keep + mapping.filter.skip
        self.rule_paths = {path: at(path) for condition in conditions for path in condition}
        self.columns = [
            *map(column, (event.actor or event.role, event.role or event.actor, event.text)),
            column(None if mapping.constants.time_format else event.time),
        ]
        self.telling = [column(path) for path in (event.action, event.status, *self.rule_paths)]
        self.recalled: dict[tuple[Any, ...], Told] = {}
        self.recalls = not any(_has_pattern(condition) for condition in conditions)
        """Whether what an event is told as is kept by value: texts, which patterns look at, are too many."""
        more = [rule.where for rule in mapping.role_rules] + [rule.where for rule in mapping.results]
        more += [rule.where for rule in mapping.actions]
        self.where_paths = {path: at(path) for condition in more for path in condition}

    def native_id(self, record: dict[str, Any]) -> str | None:
        """Which session a line is of; a whole file is one where the mapping names no field."""
        if not self.named:
            return self.stem
        if len(self.named) == 1 and type(name := self.named[0](record)) is str:
            return name or None
        names = [at(record) for at in self.named]
        return "/".join(map(str, names)) if all(is_name(name) for name in names) else None

    def place(self, number: int | None) -> str:
        """What a session without a name is called: its file, and its record where that holds several."""
        whole = self.mapping.events_at is None or number is None
        return self.stem if whole else f"{self.stem}:{number}"

    def head(self, records: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """The first line with, of every field that is said once a session, the first value there is."""
        rest = iter(records)
        first = dict(next(rest))
        fields = self.mapping.trajectory.model_dump(exclude_none=True).values()
        paths = [one for path in fields for one in several(path) if one not in PLACES]
        missing = [(path, getter(path)) for path in (*paths, *self.mapping.tags.values())]
        missing = [(path, at) for path, at in missing if at(first) is None]
        return _with_later_values(first, missing, rest)

    def tail(self, records: Iterable[dict[str, Any]], head: dict[str, Any] | None = None) -> dict[str, Any]:
        """The last value of every outcome there is, in the `head` of the session."""
        missing = [(path, getter(path)) for path in self.mapping.outcomes.values()]
        return _with_later_values(head or {}, missing, reversed(list(records))) if missing else head or {}

    def seen(self, events: Sequence[dict[str, Any]]) -> Seen:
        """What stands in the fields that every event is asked for, a field at a time."""
        unique = self.id or self.seq
        keys: Sequence[Any] = ()
        differ = True
        if unique is not None:
            keys = [unique(event) for event in events]
        elif self.mapping.events_at is None:
            keys = [self.when(event) for event in events]
        # A list without ids holds what happened, and the same may well happen twice.
        if keys:
            try:
                differ = len(set(keys)) == len(keys)
            except TypeError:  # a list or an object
                differ = False
        columns = [column(events) for column in self.columns]
        fields = list(zip(*columns, self._all_told(events), strict=True))
        return Seen(keys or [None] * len(events), differ, fields)

    def _all_told(self, events: Sequence[dict[str, Any]]) -> list[Told]:
        """What each event says in the fields that rules look at, and as its action and status."""
        rows = list(zip(*[column(events) for column in self.telling], strict=True))
        try:
            results = list(map(self.recalled.get, rows))
        except TypeError:  # a list or an object, which no rule names
            return [self.told(row) for row in rows]
        return [self.told(row) if one is None else one for one, row in zip(results, rows, strict=True)]

    def told(self, values: tuple[Any, ...]) -> Told:
        """What an event says that has these values there: its action, its status, what rules look at."""
        if not self.recalls:
            return self._told(values)
        try:
            result = self.recalled.get(values)
        except TypeError:
            return self._told(values)
        if result is None:
            result = self._told(values)
            # 1, 1.0 and true are the same to a dictionary, and not to a rule.
            if all(value is None or type(value) is str for value in values):
                if len(self.recalled) == RECALLED:
                    self.recalled.clear()
                self.recalled[values] = result
        return result

    def _told(self, values: tuple[Any, ...]) -> Told:
        action, status, *ruling = values
        at = dict(zip(self.rule_paths, ruling, strict=True)).__getitem__
        if not self._takes(at):
            return Told(taken=False)
        kind = next((rule.kind for rule in self.mapping.kinds if fits(rule.where, at)), None)
        try:
            name = texted(action, "action")
            return Told(True, kind, name, status, None if status is None else self._status(status))
        except ValueError as error:
            return Told(True, kind, wrong=str(error))

    def chosen(self, many: list[Any]) -> list[Any]:
        """The messages, spans, or records that hold one, that the filter takes."""
        selection = self.mapping.filter
        conditions = [*selection.keep, *selection.skip]
        if not conditions or not all(map(self.mapping.is_inside, itertools.chain(*conditions))):
            return many
        return [one for one in many if not isinstance(one, dict) or self._takes(self._at(one))]

    def _at(self, item: dict[str, Any]) -> Callable[[str], Any]:
        return lambda path: self.rule_paths[path](item)

    def _takes(self, at: Callable[[str], Any]) -> bool:
        selection = self.mapping.filter
        is_kept = not selection.keep or any(fits(condition, at) for condition in selection.keep)
        return is_kept and not any(fits(condition, at) for condition in selection.skip)

    def _status(self, status: Any) -> marks.Status | None:
        """What a logged status means; without a table, succeeded and failed mean themselves."""
        table = self.mapping.statuses or {"succeeded": "succeeded", "failed": "failed"}
        word = _status_word(status)
        meaning: Any = table.get(word, table.get(ANY))
        if meaning is None:
            raise ValueError(f"status: unknown status {word[:80]!r}, expected one of {', '.join(table)}")
        return None if meaning == "unknown" else meaning

    def is_other(self, status: Any) -> bool:
        """Whether the mapping names a logged status only as any other."""
        return _status_word(status) not in self.mapping.statuses

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
        status = None if result is None else marks.status(result)
        return status or (self.mapping.constants.status if acts else None)

    def text_status(self, text: str, tool: str | None) -> marks.Status | None:
        """What rules and marks say of a result that is an event of its own."""
        return rules(self.options.map).status(text, tool)

    def written_action(self, event: dict[str, Any], text: str | None) -> Action | None:
        """The action that a text has in it, as the first fitting rule finds it."""
        for rule, pattern in self.acting:
            if text and (match := pattern.search(text)) and self._fits(rule.where, event):
                return written(rule.name, match)
        return None

    def stripped(self, name: str) -> str:
        """A name without what the mapping says is no part of it."""
        return (self.strip.sub("", name) or name) if self.strip else name

    def _fits(self, where: Condition, event: dict[str, Any]) -> bool:
        return fits(where, lambda path: self.where_paths[path](event))

    def ordered(self, many: list[Numbered]) -> list[Numbered]:
        """Lines of one session in the order in which things happened."""
        if self.seq is not None:
            return sorted(many, key=self._place)
        moment = float("-inf")
        moments = []
        for _, record in many:
            moment = seconds if (seconds := self.seconds(record)) is not None else moment
            moments.append(moment)
        order = sorted(range(len(many)), key=moments.__getitem__)
        return [many[index] for index in order]

    def seconds(self, event: dict[str, Any]) -> float | None:
        """When an event was, in seconds since 1970; None where that cannot be read."""
        return seconds_of(self.when(event))

    def when(self, event: dict[str, Any]) -> Any:
        """What stands there as its time; None where that is not written as the mapping says."""
        try:
            return self.time(event)
        except ValueError:
            return None

    def _place(self, numbered: Numbered) -> float:
        assert self.seq is not None
        seq = self.seq(numbered[1])
        return seq if isinstance(seq, (int, float)) else float("inf")


def written(name: str, match: re.Match[str]) -> Action:
    """An action out of a text: the groups that took part are its arguments, `action` its name."""
    groups = {key: one for key, one in match.groupdict().items() if one is not None}
    if "action" not in groups:
        return Action(name=name, arguments=dict(groups))
    action, text = groups.pop("action"), groups.get("arguments", "")
    keywords = _keywords(text)
    raw = text if keywords is None else None
    return Action(name=action, arguments=dict(groups) if keywords is None else keywords, raw=raw)


def _keywords(text: str) -> dict[str, JsonValue] | None:
    """The arguments of a call as Python writes them; None for other ones than values by their names."""
    try:
        call = ast.parse(f"f({without_halves(text)})", mode="eval").body
        assert isinstance(call, ast.Call)
        keywords = {one.arg: plain(ast.literal_eval(one.value)) for one in call.keywords if one.arg}
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return keywords if not call.args and len(keywords) == len(call.keywords) else None


def _file_name_getter(path: str, source: str) -> Getter | None:
    """The name of the file, or of a folder that it is in; None where a field is meant."""
    if path not in PLACES:
        return None
    names = [Path(source).stem, *(folder.name for folder in Path(source).absolute().parents)]
    place = PLACES.index(path)
    name = names[place] if place < len(names) else ""
    return lambda record: name


def _time_getter(at: Getter, time_format: str | None, unsaid: str | None) -> Getter:
    """The time that stands there, as ISO 8601 where the mapping says how it is written."""
    if time_format is None:
        return at

    def time(event: Any) -> Any:
        value = at(event)
        return None if value is not None and value == unsaid else iso_of(value, time_format)

    return time


def _integer_getter(at: Getter) -> Getter:
    """The whole number that stands there, also where it went through a table, or else what stands there."""

    def whole(event: Any) -> Any:
        value = at(event)
        if type(value) is not int:
            with suppress(ValueError):
                return expect(value, int, "seq")
        return value

    return whole


def _number_getter(at: Getter, values: dict[str, float]) -> Getter:
    """What stands there, with the number in place of a word that is one."""
    if not values:
        return at
    numbers = {word.strip().casefold(): number for word, number in values.items()}

    def numbered(record: Any) -> Any:
        value = at(record)
        return numbers.get(value.strip().casefold(), value) if isinstance(value, str) else value

    return numbered


def _status_word(status: Any) -> str:
    """A status as tables have it."""
    return str(status).lower() if isinstance(status, bool) else str(status)


def _has_pattern(condition: Condition) -> bool:
    choices = (value if isinstance(value, list) else [value] for value in condition.values())
    return any(is_pattern(one) for many in choices for one in many)


def _with_later_values(
    first: dict[str, Any], missing: list[tuple[str, Getter]], rest: Iterator[dict[str, Any]]
) -> dict[str, Any]:
    """`first` with what later lines say at the `missing` paths."""
    while missing and (record := next(rest, None)) is not None:
        for path, at in [(path, at) for path, at in missing if at(record) is not None]:
            first = _with(first, steps(path), at(record))
            missing.remove((path, at))
    return first


def _with(record: Any, keys: Sequence[str | int], value: Any) -> Any:
    """A record with a value at a path, beside what its objects and lists have already."""
    if not keys:
        return value
    inside = unpacked(record) if isinstance(record, str) else record
    if isinstance(inside, list):
        inside = dict(enumerate(inside))
    inside = inside if isinstance(inside, dict) else {}
    return inside | {keys[0]: _with(inside.get(keys[0]), keys[1:], value)}
