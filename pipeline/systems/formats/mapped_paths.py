"""How the sessions of one mapped log are read: the mapping with its paths made into functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ....schemas import Action, JsonValue
from ....schemas.trajectory import EventKind
from ..base import ReadOptions
from . import marks
from .inputs import plain
from .mapping import Mapping, RoleRule
from .paths import Condition, Getter, expression, first_of, fits, getter, is_pattern, several, steps
from .rules import rules

HEAD = ("condition", "task", "instance", "agent", "agent_model", "setting")


SECONDS = re.compile(r"\d{9,10}(?:\.\d+)?|\d{12,13}")
"""A text that is a time in seconds or milliseconds since 1970."""
PLACES = ("$file", "$folder", "$folder2", "$folder3")
"""In `native_id`, the name of the file, of its folder, of the folder around that ..."""
MILLISECONDS = 1e11
"""A time above it (the year 5138 in seconds) counts milliseconds since 1970, or micro- or nanoseconds."""


Numbered = tuple[int | None, dict[str, Any]]
"""A line's number, or an event's place in its session, with the object that is there."""


class MappedSessions:
    """How the sessions of one file are read: the mapping with its paths made into functions."""

    def __init__(self, mapping: Mapping, options: ReadOptions, source: str) -> None:
        self.mapping = mapping
        self.options = options
        self.source = source
        self.system = mapping.constants.system
        inside = f"{mapping.events_at}[]." if mapping.events_at is not None else ""

        def at(path: str | list[str] | None) -> Getter:
            if isinstance(path, list):
                return first_of(path, inside)
            return getter(path.removeprefix(inside) if path else None)

        event = mapping.event
        self.actor, self.role = at(event.actor or event.role), at(event.role or event.actor)
        self.text, self.time, self.state = at(event.text), at(event.time), at(event.state)
        self.tells_state = bool(event.state or event.result)
        self.result, self.command = at(event.result), at(event.command)
        self.action, self.status, self.error = at(event.action), at(event.status), at(event.error)
        self.seq = at(event.seq) if event.seq else None
        self.id = at(event.id) if event.id else None
        paths = [event.arguments] if isinstance(event.arguments, str) else event.arguments or []
        self.arguments = [(path.rpartition(".")[2].strip("[]"), at(path)) for path in paths]
        self.roles = mapping.role_table
        given = mapping.trajectory.native_id
        self.named = [_of_file(path, source) or getter(path) for path in several(given)]
        self.strip = expression(mapping.names["strip"]) if "strip" in mapping.names else None
        self.acting = [(rule, expression(rule.pattern)) for rule in mapping.actions]
        self.heads = {
            name: getter(getattr(mapping.trajectory, name)) for name in (*HEAD, "hidden", "request")
        }
        self.tags = {name: getter(path) for name, path in mapping.tags.items()}
        self.outcomes = {name: getter(path) for name, path in mapping.outcomes.items()}
        conditions = [rule.where for rule in mapping.kinds] + mapping.filter.keep + mapping.filter.skip
        self.rule_paths = {path: at(path) for condition in conditions for path in condition}
        self.ruling = tuple(self.rule_paths.values())
        self.ruled: dict[tuple[Any, ...], tuple[bool, EventKind | None]] = {}
        self.recalls = not any(_has_pattern(condition) for condition in conditions)
        """Whether what rules say is kept by value: texts, which patterns look at, are too many for that."""
        more = [rule.where for rule in mapping.role_rules] + [rule.where for rule in mapping.results]
        more += [rule.where for rule in mapping.actions]
        self.where_paths = {path: at(path) for condition in more for path in condition}

    def native_id(self, record: dict[str, Any]) -> str | None:
        """Which session a line is of; a whole file is one where the mapping names no field."""
        if self.mapping.trajectory.native_id is None:
            return Path(self.source).stem
        names = [at(record) for at in self.named]
        return "/".join(map(str, names)) if all(is_name(name) for name in names) else None

    def place(self, number: int | None) -> str:
        """What a session without a name is called: its file, and its record where that holds several."""
        stem = Path(self.source).stem
        return stem if self.mapping.events_at is None or number is None else f"{stem}:{number}"

    def head(self, records: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """The first line with, of every field that is said once a session, the first value there is."""
        rest = iter(records)
        first = dict(next(rest))
        given = self.mapping.trajectory.model_dump(exclude_none=True).values()
        wanted = [one for path in given for one in several(path) if one not in PLACES]
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
            moment = given if (given := seconds_of(self.time(record))) is not None else moment
            moments.append(moment)
        order = sorted(range(len(many)), key=moments.__getitem__)
        return [many[index] for index in order]

    def _place(self, numbered: Numbered) -> float:
        assert self.seq is not None
        seq = self.seq(numbered[1])
        return seq if isinstance(seq, (int, float)) else float("inf")


def written(name: str, match: re.Match[str]) -> Action:
    """An action out of a text: the groups that took part are its arguments, `action` its name."""
    said = {key: one for key, one in match.groupdict().items() if one is not None}
    if "action" not in said:
        return Action(name=name, arguments=dict(said))
    done, written_as = said.pop("action"), said.get("arguments", "")
    keywords = _keywords(written_as)
    raw = written_as if keywords is None else None
    return Action(name=done, arguments=dict(said) if keywords is None else keywords, raw=raw)


def _keywords(text: str) -> dict[str, JsonValue] | None:
    """The arguments of a call as Python writes them; None for other ones than values by their names."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        named = {one.arg: plain(ast.literal_eval(one.value)) for one in call.keywords if one.arg}
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return named if not call.args and len(named) == len(call.keywords) else None


def is_name(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and value != ""


def _of_file(path: str, source: str) -> Getter | None:
    """The name of the file, or of a folder that it is in; None where a field is meant."""
    if path not in PLACES:
        return None
    names = [Path(source).stem, *(folder.name for folder in Path(source).absolute().parents)]
    place = PLACES.index(path)
    name = names[place] if place < len(names) else ""
    return lambda record: name


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


def seconds_of(value: Any) -> float | None:
    """Seconds since 1970; None where a value is no time."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        while abs(value) > MILLISECONDS:
            value /= 1000
        return float(value)
    if isinstance(value, str) and SECONDS.fullmatch(value):
        return seconds_of(float(value))
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def named(value: Any) -> str:
    names = {type(None): "nothing", dict: "an object", list: "a list", bool: "true or false"}
    return names.get(type(value), repr(value)[:60])
