"""How the sessions of one mapped log are read: the mapping with its paths made into functions."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, cast

from .....schemas import Action, JsonValue
from .....schemas.event import EventKind
from ...base import ReadOptions, expect, json_value, python_literal, without_halves
from ..fields import marks
from ..fields.mapping import ANY, Mapping, RoleRule, is_of_message
from ..fields.paths import (
    Column,
    Condition,
    Getter,
    as_list,
    decode_json,
    expression,
    first_of,
    fits,
    getter,
    is_pattern,
    steps,
    values_at,
)
from ..fields.rules import rules
from ..fields.values import expect_text, is_name, iso_of, seconds_of
from ..files.inputs import SAID
from ..files.tables import plain_value
from ..messages.turns import Place

HEAD = ("condition", "task", "instance", "agent", "agent_model", "setting")
APART = ("hidden", "request", "requester")
"""What else holds for a whole session, and is not a field of the same name."""

PLACES = ("$file", "$folder", "$folder2", "$folder3")
"""In place of a record's path, the name of the file, of its folder, of the folder around that ..."""
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?([\s\S]*?)\n?</parameter>")
RECORD = "\0record"
"""The key at which an event in a list has what paths beside the list lead to in its record."""
MOST_NUMBERS = 2**31
"""Numbers of events are below it."""
MOST_TRAITS = 4096
"""Most different traits that are cached."""
Numbered = tuple[int | None, dict[str, Any]]
"""A line's number, or an event's place in its session, with the object that is there."""


class Traits(NamedTuple):
    """What an event says in fields that have few values, so that it can be cached."""

    is_taken: bool
    kind: EventKind | None = None
    """The one that a rule gives it."""
    action: str | None = None
    """The name of what was done."""
    logged_status: Any = None
    """Its status as the log has it."""
    status: marks.Status | None = None
    """What the logged status means."""
    problem: str | None = None
    """Why its action or its status cannot be read."""


Fields = tuple[Any, Any, Any, Any, Traits]
"""Actor, role, text and time as they are logged, and the traits."""


class EventBatch(NamedTuple):
    """The fields of many events, and what tells the events apart."""

    keys: Sequence[Any]
    """Their ids, numbers or times (None for each where there are none); events with different keys are never
    repetitions."""
    are_unique: bool
    """Whether all keys differ, so that no event can be a repetition."""
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

        def at_one(path: str | None) -> Getter:
            one = getter(path.removeprefix(inside) if path else None)
            return _getter_beside(one) if path and mapping.is_beside(path) else one

        def at(path: str | list[str] | None) -> Getter:
            return first_of(map(at_one, path)) if isinstance(path, list) else at_one(path)

        def column(path: str | list[str] | None) -> Column:
            if isinstance(path, list) or (path and mapping.is_beside(path)):
                one = at(path)
                return lambda events: [one(event) for event in events]
            return values_at(path.removeprefix(inside) if path else None)

        event = mapping.event
        self.state = at(event.state)
        has_pattern = mapping.turns is not None and mapping.turns.pattern is not None
        self.placeholder = mapping.turns.first if mapping.turns and has_pattern else None
        """What stands for the time of a turn without one: `turns.first`, as for its speaker."""
        when = mapping.messages.time if mapping.messages else event.time
        self.time = _time_getter(at(when), mapping.constants.time_format, self.placeholder)
        self.has_state = bool(event.state or event.result)
        self.has_list = mapping.events_at is not None
        """Whether a record holds a list of events."""
        self.has_open_statuses = mapping.statuses.get(ANY) == "unknown"
        self.has_implied_actions = bool(event.command or mapping.actions)
        self.result, self.command = at(event.result), at(event.command)
        self.error = at(event.error)
        self.seq = _integer_getter(at(event.seq)) if event.seq else None
        speakers = mapping.input.rounds or (mapping.turns.fields if mapping.turns else {})
        self.places_in_round = {role: place for place, role in enumerate(speakers)}
        self.role_in_round = getter(f"{SAID}.role" if mapping.input.rounds else "role")
        self.id = at(event.id) if event.id else None
        self.record_id = getter(mapping.input.id) if mapping.input.id else None
        asks = next(iter(mapping.input.rounds.values()), None)
        self.question = getter(asks or (mapping.messages.at if mapping.messages else None))
        paths = [event.arguments] if isinstance(event.arguments, str) else event.arguments or []
        self.arguments = [(path.rpartition(".")[2].strip("[]"), at(path)) for path in paths]
        self.roles = mapping.role_table
        native_id = mapping.trajectory.native_id

        def at_record(path: str | None) -> Getter:
            return _file_name_getter(path, source) or getter(path)

        self.id_getters = [at_record(path) for path in as_list(native_id)]
        self.strip = expression(mapping.names["strip"]) if "strip" in mapping.names else None
        self.action_patterns = [(rule, expression(rule.pattern)) for rule in mapping.actions]
        self.heads = {name: at_record(getattr(mapping.trajectory, name)) for name in (*HEAD, *APART)}
        self.overrides = {name: getattr(options, name, None) for name in HEAD}
        """Fields of the head that the command line sets for all sessions."""
        self.tags = {name: at_record(path) for name, path in mapping.tags.items()}
        self.outcomes = {
            name: _number_getter(at_record(path), mapping.values.get(name, {}))
            for name, path in mapping.outcomes.items()
        }
        self.scores = _scores_getter(mapping)
        fields = mapping.trajectory.model_dump(exclude_none=True, exclude={"native_id"})
        self.head_paths = _record_paths([*fields.values(), *mapping.tags.values()])
        """Where records have the head and the tags, the session's name apart; of outcomes below."""
        self.outcome_paths = _record_paths(mapping.outcomes.values())
        conditions = [rule.where for rule in mapping.kinds] + mapping.filter.keep + mapping.filter.skip
        self.rule_paths = {path: at(path) for condition in conditions for path in condition}
        self.columns = [
            *map(column, (event.actor or event.role, event.role or event.actor, event.text)),
            column(None if mapping.constants.time_format else event.time),
        ]
        self.trait_columns = [column(path) for path in (event.action, event.status, *self.rule_paths)]
        self.trait_cache: dict[tuple[Any, ...], Traits] = {}
        self.caches_traits = not any(_has_pattern(condition) for condition in conditions)
        """Whether traits are cached by the values that they come from. Patterns look at texts, of which there
        are too many."""
        more = [rule.where for rule in mapping.role_rules] + [rule.where for rule in mapping.results]
        more += [rule.where for rule in mapping.actions]
        self.where_paths = {path: at(path) for condition in more for path in condition}
        of_messages = {path for key, path in mapping.event_paths() if is_of_message(key, path)}
        self.where_paths |= {path: getter(path) for path in of_messages}

    def outcome_values(self, record: dict[str, Any]) -> dict[str, Any]:
        """Outcome -> its value in a record; of several scores of a name the last one's."""
        return {**{name: at(record) for name, at in self.outcomes.items()}, **self.scores(record)}

    def with_mean_scores(self, records: Sequence[dict[str, Any]], whole: dict[str, Any]) -> dict[str, Any]:
        """The record of a session of several `records` that has of each score of theirs that is a number the
        mean, and of any other the last, in place of its scores."""
        scores = self.mapping.scores
        if scores is None or len(records) < 2:
            return whole
        at, values = getter(scores.at), dict[str, list[Any]]()
        # The two that speak in a round have the same list. All lists are held, as an id is free again without
        # its object, and one that is decoded is a new one each time.
        lists = [at(record) for record in records]
        for record in {id(one): record for one, record in zip(lists, records, strict=True)}.values():
            for name, value in self.scores(record).items():
                values.setdefault(name, []).append(value)
        means = {
            name: fmean(many) if all(isinstance(one, (int, float)) for one in many) else many[-1]
            for name, many in values.items()
        }
        paths = (steps(scores.name), steps(as_list(scores.value)[0]))
        items = [_with(_with({}, paths[0], name), paths[1], value) for name, value in means.items()]
        return cast(dict[str, Any], _with(whole, steps(scores.at), items))

    def latest(self, many: list[Numbered]) -> list[Numbered]:
        """A session's records; of those that have one `input.id`, the same question, and in a round the same
        speaker, the last, in the place of the first."""
        if self.record_id is None:
            return many
        latest: dict[Any, Numbered] = {}
        for place, (_, record) in enumerate(many):
            key = self.record_id(record)
            version = (str(key), repr(self.question(record)), self.role_in_round(record))
            latest[place if key in (None, "") else version] = many[place]
        return list(latest.values())

    def says_outcome(self, record: dict[str, Any]) -> bool:
        """Whether a record says how its session ended."""
        return any(value not in (None, "", [], {}) for value in self.outcome_values(record).values())

    def native_id(self, record: dict[str, Any]) -> str | None:
        """The session of a record: the value of the mapping's field, None where the record has none; without
        such a field the file's name."""
        if not self.id_getters:
            return self.stem
        if len(self.id_getters) == 1 and type(name := self.id_getters[0](record)) is str:
            return name or None
        names = [at(record) for at in self.id_getters]
        return "/".join(map(str, names)) if all(is_name(name) for name in names) else None

    def default_id(self, number: int | None) -> str:
        """The id of a session without one: its file's name, with its record's number where the file holds
        several."""
        whole = self.mapping.events_at is None or number is None
        return self.stem if whole else f"{self.stem}:{number}"

    def head(self, records: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """The first record; what it lacks of the head and the tags is filled in from later ones."""
        rest = iter(records)
        first = dict(next(rest))
        paths = {**_record_paths(as_list(self.mapping.trajectory.native_id)), **self.head_paths}
        missing = [(path, at) for path, at in paths.items() if at(first) is None]
        return _with_later_values(first, missing, rest)

    def tail(self, records: Iterable[dict[str, Any]], head: dict[str, Any] | None = None) -> dict[str, Any]:
        """The session's `head` with the last value that its records have for each outcome."""
        missing = list(self.outcome_paths.items())
        return _with_later_values(head or {}, missing, reversed(list(records))) if missing else head or {}

    def numbering(self, events: Sequence[dict[str, Any]]) -> Getter | None:
        """The getter of a session's numbers, None without `seq`: as they are logged, or, where several who
        speak in a round have one number, such that it tells them apart."""
        seq, places = self.seq, self.places_in_round
        if seq is None or not places:
            return seq
        numbers = {(number, self._place_in_round(one)) for one in events if type(number := seq(one)) is int}
        values = {number for number, _ in numbers}
        if len(values) == len(numbers):
            return seq
        # Seconds since 1970 would be too large as they are.
        least = min(values) if max(values) * len(places) >= MOST_NUMBERS else 0

        def get_integer(event: Any) -> Any:
            number = seq(event)
            is_number = type(number) is int
            return (number - least) * len(places) + self._place_in_round(event) if is_number else number

        return get_integer

    def _place_in_round(self, event: dict[str, Any]) -> int:
        return self.places_in_round.get(self.role_in_round(event), 0) if self.places_in_round else 0

    def read_batch(self, events: Sequence[dict[str, Any]], seq: Getter | None) -> EventBatch:
        """The fields that every event is asked for, read column by column; `seq` is their `numbering`."""
        unique = self.id or seq
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
        fields = list(zip(*columns, self._all_traits(events), strict=True))
        return EventBatch(keys or [None] * len(events), differ, fields)

    def _all_traits(self, events: Sequence[dict[str, Any]]) -> list[Traits]:
        """The traits of each event."""
        rows = list(zip(*[column(events) for column in self.trait_columns], strict=True))
        try:
            results = list(map(self.trait_cache.get, rows))
        except TypeError:  # a list or an object, which no rule names
            return [self.traits(row) for row in rows]
        return [self.traits(row) if one is None else one for one, row in zip(results, rows, strict=True)]

    def traits(self, values: tuple[Any, ...]) -> Traits:
        """The traits of an event with these values: its action, its status, then what rules look at."""
        if not self.caches_traits:
            return self._make_traits(values)
        try:
            result = self.trait_cache.get(values)
        except TypeError:
            return self._make_traits(values)
        if result is None:
            result = self._make_traits(values)
            # 1, 1.0 and true are the same to a dictionary, and not to a rule.
            if all(value is None or type(value) is str for value in values):
                if len(self.trait_cache) == MOST_TRAITS:
                    self.trait_cache.clear()
                self.trait_cache[values] = result
        return result

    def _make_traits(self, values: tuple[Any, ...]) -> Traits:
        action, status, *ruling = values
        if status == "" and self.mapping.statuses.keys().isdisjoint(("", ANY)):
            status = None  # a table's empty cell
        at = dict(zip(self.rule_paths, ruling, strict=True)).__getitem__
        if not self._takes(at):
            return Traits(is_taken=False)
        kind = next((rule.kind for rule in self.mapping.kinds if fits(rule.where, at)), None)
        try:
            name = expect_text(action, "action")
            return Traits(True, kind, name, status, None if status is None else self._status(status))
        except ValueError as error:
            return Traits(True, kind, problem=str(error))

    def select(self, many: list[Place]) -> list[Place]:
        """The items (messages, spans, or records that hold one) that the filter keeps, with their places;
        all of them where it looks outside of the items."""
        selection = self.mapping.filter
        conditions = [*selection.keep, *selection.skip]
        if not conditions or not all(map(self.mapping.is_inside, itertools.chain(*conditions))):
            return many
        return [(at, one) for at, one in many if not isinstance(one, dict) or self._takes(self._at(one))]

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
        """Whether the mapping covers a logged status only by its `*`; an empty one says nothing."""
        word = _status_word(status)
        return bool(word) and word not in self.mapping.statuses

    def role_rule(self, event: dict[str, Any]) -> RoleRule | None:
        """The first rule on who speaks that an event fits."""
        if not self.mapping.role_rules:
            return None
        return next((rule for rule in self.mapping.role_rules if self._fits(rule.where, event)), None)

    def result_status(self, event: dict[str, Any], acts: bool) -> marks.Status | None:
        """The status that rules and shipped marks give an event for which the log gives none."""
        for rule in self.mapping.results:
            if self._fits(rule.where, event):
                return None if rule.status == "unknown" else rule.status
        result = self.result(event)
        status = None if result is None else marks.status(result)
        return status or (self.mapping.constants.status if acts else None)

    def text_status(self, text: str, tool: str | None) -> marks.Status | None:
        """The status that rules and marks give a result which is an event of its own."""
        return rules(self.options.map).status(text, tool)

    def find_action(self, event: dict[str, Any], text: str | None) -> Action | None:
        """The action that a text has in it, as the first fitting rule finds it."""
        for rule, pattern in self.action_patterns:
            if text and (match := pattern.search(text)) and self._fits(rule.where, event):
                return action_of(rule.name, match)
        return None

    def strip_name(self, name: str) -> str:
        """A name without what the mapping says is no part of it."""
        return (self.strip.sub("", name) or name) if self.strip else name

    def _fits(self, where: Condition, event: dict[str, Any]) -> bool:
        return fits(where, lambda path: self.where_paths[path](event))

    def sort(self, many: list[Numbered]) -> list[Numbered]:
        """The records of a session in the order of `seq`, else of time; those without a time stay after the
        record before them."""
        if self.seq is not None:
            return sorted(many, key=self._sort_key)
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
        """The logged time of an event; None where it is not written as the mapping says."""
        try:
            return self.time(event)
        except ValueError:
            return None

    def _sort_key(self, numbered: Numbered) -> tuple[float, int]:
        assert self.seq is not None
        seq = self.seq(numbered[1])
        return seq if isinstance(seq, (int, float)) else float("inf"), self._place_in_round(numbered[1])


def action_of(name: str, match: re.Match[str]) -> Action:
    """The action that a pattern found: its name is the group `action`, else `name`.

    Its arguments are the groups. Of a pattern with `action`, those that the group `arguments` holds (as
    Python writes a call's, as an object, or in tags) stand in its place; where that is anything else, it is
    kept as `raw`, too.
    """
    groups: dict[str, JsonValue] = {key: one for key, one in match.groupdict().items() if one is not None}
    if "action" not in groups:
        return Action(name=name, arguments=groups)
    action, text = str(groups.pop("action")), str(groups.get("arguments", ""))
    keywords = _keywords(text)
    keywords = _object(text) if keywords is None else keywords
    if keywords is None:
        return Action(name=action, arguments=groups, raw=text)
    groups.pop("arguments", None)
    return Action(name=action, arguments=groups | keywords)


def _keywords(text: str) -> dict[str, JsonValue] | None:
    """Keyword arguments as Python writes them; None where one is positional or no literal."""
    try:
        call = ast.parse(f"f({without_halves(text)})", mode="eval").body
        if not isinstance(call, ast.Call):  # as of `x=1) + g(y=2`
            return None
        keywords = {one.arg: plain_value(python_literal(one.value)) for one in call.keywords if one.arg}
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return keywords if not call.args and len(keywords) == len(call.keywords) else None


def _object(text: str) -> dict[str, JsonValue] | None:
    """The object that a text is, in JSON or as Python writes one, or whose values stand in tags with their
    names; None for any other text."""
    try:
        value = json_value(text)
    except ValueError:
        try:
            value = plain_value(python_literal(text.strip()))
        except ValueError:
            value = {match[1]: match[2] for match in _PARAMETER.finditer(text)}
            return value if value and not _PARAMETER.sub("", text).strip() else None
    return value if isinstance(value, dict) else None


def _file_name_getter(path: str | None, source: str) -> Getter | None:
    """A getter of the file's name, or of a folder's that it is in; None where `path` is a field's."""
    if path not in PLACES:
        return None
    names = [Path(source).stem, *(folder.name for folder in Path(source).absolute().parents)]
    place = PLACES.index(path)
    name = names[place] if place < len(names) else ""
    return lambda record: name


def _record_paths(paths: Iterable[str]) -> dict[str, Getter]:
    """Path -> its getter, of those that lead into records: the name of a file or folder holds for all."""
    return {path: getter(path) for path in paths if path not in PLACES}


def _getter_beside(at: Getter) -> Getter:
    """A getter of a path beside the list of events: what the event has there, else what its record has."""

    def get(event: Any) -> Any:
        value = at(event)
        return at(event.get(RECORD, {})) if value is None else value

    return get


def _scores_getter(mapping: Mapping) -> Callable[[Any], dict[str, Any]]:
    """A getter of the scores in a record, by name, without those of no value."""
    scores = mapping.scores
    if scores is None:
        return lambda record: {}
    at, name, value = getter(scores.at), getter(scores.name), first_of(map(getter, as_list(scores.value)))
    paths = {path: getter(path) for path in scores.skip}

    def is_read(item: Any) -> bool:
        return not paths or not fits(scores.skip, lambda path: paths[path](item))

    def get_scores(record: Any) -> dict[str, Any]:
        items = at(record)
        values = dict[str, Any]()
        for item in filter(is_read, items if isinstance(items, list) else ()):
            if isinstance(key := name(item), str) and (score := value(item)) is not None:
                values[key] = _number_getter(lambda one: one, mapping.values.get(key, {}))(score)
        return values

    return get_scores


def _time_getter(at: Getter, time_format: str | None, unsaid: str | None) -> Getter:
    """A getter of times as logged; where the mapping gives their format, as ISO 8601, with None for the
    placeholder `unsaid`."""
    if time_format is None:
        return at

    def get_time(event: Any) -> Any:
        value = at(event)
        return None if value is not None and value == unsaid else iso_of(value, time_format)

    return get_time


def _integer_getter(at: Getter) -> Getter:
    """A getter of whole numbers, also of 3.0 and "3", which tables have; any other value is returned
    unchanged."""

    def get_integer(event: Any) -> Any:
        value = at(event)
        if type(value) is not int:
            with suppress(ValueError):
                return expect(value, int, "seq")
        return value

    return get_integer


def _number_getter(at: Getter, values: dict[str, float]) -> Getter:
    """A getter that replaces the words for which the mapping has numbers."""
    if not values:
        return at
    numbers = {word.strip().casefold(): number for word, number in values.items()}

    def get_number(record: Any) -> Any:
        value = at(record)
        return numbers.get(value.strip().casefold(), value) if isinstance(value, str) else value

    return get_number


def _status_word(status: Any) -> str:
    """A logged status as the keys of `[statuses]` are written."""
    return str(status).lower() if isinstance(status, bool) else str(status)


def _has_pattern(condition: Condition) -> bool:
    choices = (value if isinstance(value, list) else [value] for value in condition.values())
    return any(is_pattern(one) for many in choices for one in many)


def _with_later_values(
    first: dict[str, Any], missing: list[tuple[str, Getter]], rest: Iterator[dict[str, Any]]
) -> dict[str, Any]:
    """`first` with the values that later records have at the `missing` paths."""
    while missing and (record := next(rest, None)) is not None:
        for path, at in [(path, at) for path, at in missing if at(record) is not None]:
            first = _with(first, steps(path), at(record))
            missing.remove((path, at))
    return first


def _with(record: Any, keys: Sequence[str | int], value: Any) -> Any:
    """A copy of a record with a value at a path, beside what its objects and lists have already."""
    if not keys:
        return value
    inside = decode_json(record) if isinstance(record, str) else record
    if isinstance(inside, list):
        inside = dict(enumerate(inside))
    inside = inside if isinstance(inside, dict) else {}
    return inside | {keys[0]: _with(inside.get(keys[0]), keys[1:], value)}
