"""A mapping file: which field of anybody's JSON Lines is the session, the actor, the text ...

A field is a path: `user.name`, `choices[0].text`; a dot inside a key is written `\\.`. Where one line holds
a whole session, its events are a list, and every path into them goes through it: `events[].role`. Where no
path has `[]`, one line is one event. docs/formats.md is the reference.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError

from ....schemas import JsonValue, Model
from ....schemas.trajectory import EventKind, ParticipantKind, Setting
from ...errors import SourceError

Getter = Callable[[Any], Any]
Scalar = str | int | float | bool
Condition = dict[str, Scalar | list[Scalar]]
"""Path -> the value, or one of the values, that must stand there: `*` is any value but null, and a text that
begins with `~` is a regular expression, looked for in a text."""
ROLES: dict[str, ParticipantKind] = {
    **dict.fromkeys(("user", "human"), "human"),
    **dict.fromkeys(("assistant", "agent", "model", "ai"), "agent"),
    **dict.fromkeys(
        ("system", "developer", "tool", "function", "environment", "env"),
        "environment",
    ),
}
"""What roles mean unless the mapping says otherwise."""
_STEP = re.compile(r"((?:[^.\[\]\\]|\\.)+)|\[(\d*)\]")


class Constants(Model):
    """What holds for every trajectory, unless a field or the command line says otherwise."""

    system: str = Field(default="mapped", min_length=1)
    setting: Setting | None = None
    condition: str | None = None
    task: str | None = None
    instance: str | None = None
    agent: str | None = None
    agent_model: str | None = None
    status: Literal["succeeded", "failed"] | None = None
    """Of an action whose result no field and no rule speaks of; without it that is unknown."""


class HeadFields(Model):
    """Paths to what is said once a session."""

    native_id: str | None = None
    """The session; without it a line (or, of one event a line, a file) is a session."""
    setting: str | None = None
    condition: str | None = None
    task: str | None = None
    instance: str | None = None
    agent: str | None = None
    agent_model: str | None = None
    hidden: str | None = None


class EventFields(Model):
    """Paths to what is said of each event; `actor` or `role` must be there."""

    actor: str | None = None
    role: str | None = None
    text: str | None = None
    time: str | None = None
    seq: str | None = None
    id: str | None = None
    action: str | None = None
    arguments: str | list[str] | None = None
    status: str | None = None
    error: str | None = None
    result: str | None = None
    state: str | None = None


class KindRule(Model):
    """Events that fit `where` are of this kind; the first rule that fits decides."""

    where: Condition
    kind: EventKind


class RoleRule(Model):
    """Who speaks where an event fits `where`: a participant of that kind; the first that fits decides."""

    where: Condition
    kind: ParticipantKind
    actor: str | None = Field(default=None, min_length=1)
    """Their name, in place of the one that the log gives."""


class ResultRule(Model):
    """Results that fit `where` have this status; the first rule that fits decides."""

    where: Condition
    status: Literal["succeeded", "failed", "unknown"]


Roles = Annotated[
    Annotated[dict[str, ParticipantKind], Tag("table")] | Annotated[list[RoleRule], Tag("rules")],
    Discriminator(lambda given: "rules" if isinstance(given, list) else "table"),
]
"""`[roles]`, what each role means, or `[[roles]]`, rules."""


class Filter(Model):
    """Events to take: those that fit any of `keep` (all, where there is none) and none of `skip`."""

    keep: list[Condition] = Field(default_factory=list)
    skip: list[Condition] = Field(default_factory=list)


class Mapping(Model):
    """A mapping file, checked."""

    constants: Constants = Constants()
    trajectory: HeadFields = HeadFields()
    event: EventFields = EventFields()
    """Without it, the mapping only adds `roles` and `results` to what a reader of chats knows."""
    tags: dict[str, str] = Field(default_factory=dict)
    outcomes: dict[str, str] = Field(default_factory=dict)
    roles: Roles = Field(default_factory=dict)
    statuses: dict[str, str] = Field(default_factory=dict)
    kinds: list[KindRule] = Field(default_factory=list)
    results: list[ResultRule] = Field(default_factory=list)
    filter: Filter = Filter()

    @property
    def only_rules(self) -> bool:
        """Whether it says nothing of where fields are, so that it is for logs whose format is known."""
        return not self.event.model_dump(exclude_none=True)

    @cached_property
    def role_table(self) -> dict[str, ParticipantKind]:
        """Role -> kind, the known ones included."""
        return {**ROLES, **(self.roles if isinstance(self.roles, dict) else {})}

    @cached_property
    def role_rules(self) -> list[RoleRule]:
        """Rules on who speaks; none where roles are a table."""
        return self.roles if isinstance(self.roles, list) else []

    @cached_property
    def events_at(self) -> str | None:
        """Path of the list of events in a line; None where a line is an event."""
        return next((path.partition("[]")[0] for _, path in self._event_paths() if "[]" in path), None)

    def check(self) -> None:
        """ValueError for what the types alone cannot tell: `key: what is wrong`."""
        rules = self.roles or self.results or self.constants.status
        if self.event.actor is None and self.event.role is None and not (self.only_rules and rules):
            raise ValueError("event: needs actor or role")
        for key, path in (*self._head_paths(), *self._event_paths()):
            try:
                steps(path)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from error
        for key, path in self._head_paths():
            if "[]" in path:
                raise ValueError(f"{key}: a session has one value of it, {path!r} is a list")
        for key, path in self._event_paths():
            at, more, rest = path.partition("[]")
            if more and (at != self.events_at or "[]" in rest):
                raise ValueError(f"{key}: events are in {self.events_at!r}, {path!r} goes elsewhere")
        for condition in self._conditions():
            for wanted in condition.values():
                for one in wanted if isinstance(wanted, list) else [wanted]:
                    _check_pattern(one)
        for value, meaning in self.statuses.items():
            if meaning not in ("succeeded", "failed", "unknown"):
                raise ValueError(
                    f"statuses.{value}: expected one of succeeded, failed, unknown, got {meaning!r}"
                )

    def _head_paths(self) -> Iterator[tuple[str, str]]:
        for name, path in self.trajectory.model_dump(exclude_none=True).items():
            yield f"trajectory.{name}", path
        for table in ("tags", "outcomes"):
            for name, path in getattr(self, table).items():
                yield f"{table}.{name}", path

    def _event_paths(self) -> Iterator[tuple[str, str]]:
        for name, path in self.event.model_dump(exclude_none=True).items():
            for one in [path] if isinstance(path, str) else path:
                yield f"event.{name}", one
        tables: dict[str, Sequence[KindRule | RoleRule | ResultRule]]
        tables = {"kinds": self.kinds, "roles": self.role_rules, "results": self.results}
        for table, many in tables.items():
            for number, rule in enumerate(many):
                yield from ((f"{table}[{number}].where", path) for path in rule.where)
        for table in ("keep", "skip"):
            for number, condition in enumerate(getattr(self.filter, table)):
                yield from ((f"filter.{table}[{number}]", path) for path in condition)

    def _conditions(self) -> Iterator[Condition]:
        rules: list[KindRule | RoleRule | ResultRule] = [*self.kinds, *self.role_rules, *self.results]
        yield from (rule.where for rule in rules)
        yield from (*self.filter.keep, *self.filter.skip)


def text_of(name: str) -> tuple[str, str]:
    """(text, name) of a mapping file, or of the one that is shipped under that name; SourceError if none."""
    path = Path(name)
    shipped = resources.files("coaudit.data") / "maps"
    if not path.is_file() and (shipped / f"{name}.toml").is_file():
        return (shipped / f"{name}.toml").read_text("utf-8"), name
    try:
        return path.read_text("utf-8"), name
    except (OSError, UnicodeDecodeError) as error:
        ours = ", ".join(sorted(p.name.removesuffix(".toml") for p in shipped.iterdir()))
        raise SourceError(f"{name}: cannot read the mapping file: {error} (shipped ones: {ours})") from error


@lru_cache(maxsize=8)
def parse(text: str, name: str = "mapping") -> Mapping:
    """A mapping from its TOML text; SourceError names the file, the key, the rule and the value."""
    try:
        mapping = Mapping.model_validate(tomllib.loads(text))
        mapping.check()
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"{name}: not TOML: {error}") from error
    except ValidationError as error:
        raise SourceError(f"{name}: {_said(error)}") from error
    except ValueError as error:
        raise SourceError(f"{name}: {error}") from error
    return mapping


def _said(error: ValidationError) -> str:
    first = error.errors()[0]
    unions = ("str", "int", "float", "bool", "table", "rules")
    where = [part for part in first["loc"] if part not in unions]
    place = ".".join(map(str, where))
    if first["type"] == "extra_forbidden":
        model: Any = Mapping
        for part in where[:-1]:
            model = getattr(model.model_fields.get(part), "annotation", None) if model else None
        known = ", ".join(getattr(model, "model_fields", ()))
        return f"{place}: unknown key" + (f", expected one of {known}" if known else "")
    given = "" if first["type"] == "missing" else f", got {first['input']!r:.80}"
    return f"{place}: {first['msg']}{given}"


def steps(path: str) -> list[str | int]:
    """The keys and places of a path; ValueError for one that is none. `[]` is left out."""
    items: list[str | int] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or (match[1] and at and path[at - 1] != "."):
            raise ValueError(f"expected a path such as user.name or events[].text, got {path!r}")
        if match[1]:
            items.append(re.sub(r"\\(.)", r"\1", match[1]))
        elif match[2]:
            items.append(int(match[2]))
        at = match.end()
        if at < len(path) and path[at] == ".":
            at += 1
            if at == len(path):
                raise ValueError(f"a path ends in a key, got {path!r}")
    if not items:
        raise ValueError(f"expected a path such as user.name or events[].text, got {path!r}")
    return items


def getter(path: str | None) -> Getter:
    """A function from an object to what it has at `path`; None where there is nothing, or no path."""
    if path is None:
        return lambda value: None
    keys = steps(path)
    if len(keys) == 1 and isinstance(keys[0], str):
        key = keys[0]
        return lambda value: value.get(key)
    if len(keys) == 2 and isinstance(keys[0], str) and isinstance(keys[1], str):
        # Most paths are that short, and they are walked for every event.
        outer, key = keys[0], keys[1]

        def get_inner(value: Any) -> Any:
            inside = value.get(outer)
            return inside.get(key) if type(inside) is dict else None

        return get_inner

    def get(value: Any) -> Any:
        for key in keys:
            if type(value) is dict:
                value = value.get(key)
            elif type(value) is list and type(key) is int and key < len(value):
                value = value[key]
            else:
                return None
        return value

    return get


def fits(condition: Condition, value_at: Callable[[str], JsonValue]) -> bool:
    """Whether every path of a condition has one of its values."""
    return all(_fits(wanted, value_at(path)) for path, wanted in condition.items())


def _fits(wanted: Scalar | list[Scalar], result: JsonValue) -> bool:
    choices = wanted if isinstance(wanted, list) else [wanted]
    if result is None:
        return False
    return "*" in choices or any(_is(one, result) for one in choices)


def is_pattern(wanted: Scalar) -> bool:
    """Whether a value of a condition is a regular expression: a text that begins with `~`."""
    return isinstance(wanted, str) and wanted.startswith("~")


def _is(wanted: Scalar, result: JsonValue) -> bool:
    if isinstance(wanted, str) and is_pattern(wanted):
        return isinstance(result, str) and re.search(wanted[1:], result) is not None
    return result == wanted and type(result) is type(wanted)


def _check_pattern(wanted: Scalar) -> None:
    if isinstance(wanted, str) and is_pattern(wanted):
        try:
            re.compile(wanted[1:])
        except re.error as error:
            raise ValueError(f"{wanted!r}: no regular expression: {error}") from error
