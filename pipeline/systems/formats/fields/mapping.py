"""A mapping file: which field of anybody's logs is the session, the actor, the text ...

A field is a path (paths.py). Where one record holds a whole session, its events are a list, and every
path into them goes through it: `events[].role`. Where no path has `[]`, one record is one event.
docs/formats.md is the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, FiniteFloat, Tag, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from .....schemas import Model, toml
from .....schemas.event import EventKind
from .....schemas.text import rule_of
from .....schemas.trajectory import ParticipantKind, Setting
from ....errors import SourceError
from .paths import Condition, as_list, check_pattern, expression, steps
from .values import is_encoding, is_time_format

ROLES: dict[str, ParticipantKind] = {
    **dict.fromkeys(("user", "human"), "human"),
    **dict.fromkeys(("assistant", "agent", "model", "ai"), "agent"),
    **dict.fromkeys(
        ("system", "developer", "tool", "function", "environment", "env"),
        "environment",
    ),
}
"""What roles mean unless the mapping says otherwise."""
OF_MESSAGE = {"role", "content", "name", "tool", "json"}
"""First keys of the paths of `[[roles]]` and `[[results]]` that look at a message, and not at a record."""
ANY = "*"
"""In `[roles]` and `[statuses]`, any that is not named."""


class Input(Model):
    """How files are cut into records; without it, their names and contents say it."""

    format: Literal["jsonl", "json", "csv", "tsv", "parquet", "excel", "text"] | None = None
    files: str | list[str] | None = None
    """Of a folder, the files whose names fit, such as `*.traj.json`, and no pattern that begins with `!`;
    others are passed over."""
    encoding: str | None = None
    """How texts are encoded, such as `cp1252`; without it UTF-8, or UTF-16 where a table or text says so."""
    sessions: str | list[str] | None = None
    """Path of the list of records in a JSON file that is one object; `[]` goes through a list's items."""
    numbered: str | None = Field(default=None, min_length=1)
    """Where a record's turns stand under names with numbers (`message_1`, `message_2` ...): what these begin
    with. They are read as a list under that, here `message_` (numbered.py)."""
    rounds: dict[str, str] = Field(default_factory=dict)
    """Where a record is a round of a session, with what each said in a field of its own: role -> path of the
    text, in this order. Each is read as a record with `said`, an object of `role`, `text` and `id`."""
    id: str | None = None
    """Path of the id of a record that is a round or (`joined`) a turn of a session. Of records of a session
    with one id and the same question the last counts, as where exports overlap."""
    sides: list[str] | None = Field(default=None, min_length=2)
    """Where a record holds several sessions, such as the two of a comparison: what the names of their fields
    end in (`conversation_a`, `conversation_b`). Each is read as a record of its own (sides.py)."""

    @field_validator("format", mode="before")
    @classmethod
    def _tsv_as_csv(cls, name: object) -> object:
        # What parts the cells of a table is told by the table.
        return "csv" if name == "tsv" else name

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, name: str | None) -> str | None:
        if name is not None and not is_encoding(name):
            raise PydanticCustomError("encoding", "expected one such as cp1252 or utf-16")
        return name

    @property
    def keeps_records(self) -> bool:
        """Whether records are read as they stand in the file, and not divided, gathered or decoded first."""
        return not (self.sides or self.numbered or self.encoding or self.rounds)


class Turns(Model):
    """A text that is cut into events, or a record whose fields are turns."""

    at: str = "text"
    """The text (of a text file: `text`), or the list of texts, that becomes a list of events."""
    pattern: str | list[str] | None = Field(default=None, min_length=1)
    """What begins a turn; its named groups are the event's fields (`first` where one is empty), what follows
    is its `text` unless a group is called so. Of several, the first one that a text has twice."""
    first: str = "environment"
    """Who speaks the text before the first turn, under each of the groups."""
    fields: dict[str, str | list[str]] = Field(default_factory=dict)
    """Role -> path of its text, in this order, where a record holds a question and its answer, or its paths
    round by round, or the path of a list of texts with `[]` behind it, or of a text in each item of a list
    (`rounds[].answer`); the events have `role` and `text`, and what the item has."""


class Messages(Model):
    """Messages as chat APIs have them, with tool calls and answers, in place of `[event]`."""

    at: str | None = None
    """The list of messages; with `each`, the message, or nothing where it is the record itself."""
    each: bool = False
    """Whether a record is one message; records in which there is none are passed over."""
    reply: str | list[str] | None = None
    """The reply (a message, a list of them or a text), where it stands apart from the list; of several, in
    this order."""
    told: str | None = None
    """What the agents were told, where it stands apart from the list: a state that they alone see."""
    growing: bool = False
    """Whether records are calls of a model, each with all that was said before: of calls that continue each
    other the last is the session."""
    joined: bool = False
    """Whether records of one `native_id` are turns of a session, each with what was said in it; what one
    repeats of those before it is left out."""
    time: str | None = None
    """With `joined`, when a record was: turns come in this order, and messages without a time have it."""


class Spans(Model):
    """Runs of models, tools and agents, each with what went in and came out, in place of `[event]`."""

    at: str | None = None
    """The list of spans in a record; without it, a record is one."""
    joined: bool = False
    """Whether records of one `native_id` are a session, such as the traces of its turns."""
    kind: str
    """Path of the kind; words such as llm, generation, tool, agent are known."""
    input: str | list[str]
    output: str | list[str]
    id: str | None = None
    parent: str | None = None
    name: str | list[str] | None = None
    start: str | None = None
    end: str | None = None
    error: str | None = None
    status: str | None = None
    model: str | list[str] | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    kinds: dict[str, Literal["model", "tool", "agent", "other"]] = Field(default_factory=dict)
    """Word of the log -> what it is."""


class Scores(Model):
    """A list of scores in a record, each with a name of its own, as tools for watching agents have them."""

    at: str
    name: str
    """Path of the name, from a score; that of the outcome."""
    value: str | list[str]
    skip: Condition = Field(default_factory=dict)
    """Scores that fit are left out, such as those of a part of the session."""


class ActionRule(Model):
    """Actions written into what an agent says, such as a fenced shell block."""

    pattern: str
    """Its named groups are the arguments, and `action` the name."""
    name: str = Field(default="run", min_length=1)
    where: Condition = Field(default_factory=dict)


class Constants(Model):
    """What holds for every trajectory, unless a field or the command line says otherwise."""

    system: str = Field(default="mapped", min_length=1)
    setting: Setting | None = None
    condition: str | None = None
    task: str | None = None
    instance: str | None = None
    agent: str | None = None
    agent_model: str | None = None
    requester: str | None = Field(default=None, min_length=1)
    """Who says the session's request; without it `user`."""
    status: Literal["succeeded", "failed"] | None = None
    """The status of an action on whose result no field and no rule decides; without it that is unknown."""
    role: str | list[str] | None = Field(default=None, min_length=1)
    """The role of events in which no field gives it, such as an agent's steps; of several, in turn."""
    results: Literal["next"] | None = None
    """`next`: what the environment says right after an action is that action's result."""
    time_format: str | None = None
    """How times are written that are not ISO 8601, in the directives of Python's `strptime`."""


class HeadFields(Model):
    """Paths to what holds for a whole session."""

    native_id: str | list[str] | None = None
    """The session, of several paths their values joined by `/`; without it a record (or, of one event a
    record, a file) is one."""
    setting: str | None = None
    condition: str | None = None
    task: str | None = None
    instance: str | None = None
    agent: str | None = None
    agent_model: str | None = None
    hidden: str | None = None
    request: str | None = None
    """The session's request, where no event has it: it becomes the first message."""
    requester: str | None = None
    """Who says the request."""


class EventFields(Model):
    """Paths to the fields of each event, of several the first that has a value; `actor` or `role` must be
    there."""

    actor: str | list[str] | None = None
    role: str | list[str] | None = None
    text: str | list[str] | None = None
    time: str | None = None
    seq: str | None = None
    id: str | None = None
    action: str | list[str] | None = None
    command: str | None = None
    """A command line, an action whose name is its first word."""
    arguments: str | list[str] | None = None
    status: str | None = None
    error: str | None = None
    result: str | list[str] | None = None
    state: str | None = None


class KindRule(Model):
    """Events that fit `where` are of this kind; the first rule that fits decides."""

    where: Condition
    kind: EventKind


class RoleRule(Model):
    """Who speaks where an event fits `where`: a participant of that kind; the first rule that fits
    decides."""

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
    Discriminator(lambda value: "rules" if isinstance(value, list) else "table"),
]
"""`[roles]`, what each role means, or `[[roles]]`, rules."""


class Filter(Model):
    """The events, messages or spans that are read: those that fit any of `keep` (all, where there is none)
    and none of `skip`. Where a record has one message, it is the record that is looked at."""

    keep: list[Condition] = Field(default_factory=list)
    skip: list[Condition] = Field(default_factory=list)


class Mapping(Model):
    """A mapping file, checked."""

    input: Input = Input()
    constants: Constants = Constants()
    trajectory: HeadFields = HeadFields()
    event: EventFields = EventFields()
    """Without it and `messages`, the mapping only adds `roles` and `results` to what a reader of chats
    knows."""
    messages: Messages | None = None
    spans: Spans | None = None
    turns: Turns | None = None
    names: dict[Literal["strip"], str] = Field(default_factory=dict)
    """`strip`: a regular expression of what is no part of a name, such as ` \\(.*\\)$`."""
    actions: list[ActionRule] = Field(default_factory=list)
    tags: dict[str, str] = Field(default_factory=dict)
    outcomes: dict[str, str] = Field(default_factory=dict)
    scores: Scores | None = None
    values: dict[str, dict[str, FiniteFloat]] = Field(default_factory=dict)
    """Outcome -> word of the log -> the number that it is, such as `passed` -> 1."""
    roles: Roles = Field(default_factory=dict)
    statuses: dict[str, str] = Field(default_factory=dict)
    kinds: list[KindRule] = Field(default_factory=list)
    results: list[ResultRule] = Field(default_factory=list)
    filter: Filter = Filter()

    @property
    def has_only_rules(self) -> bool:
        """Whether it has only rules, and no fields, so that it is for logs whose format is known."""
        return self.messages is None and self.spans is None and not self.event.model_dump(exclude_none=True)

    @cached_property
    def role_table(self) -> dict[str, ParticipantKind]:
        """Role -> kind, the known ones included."""
        return {**ROLES, **(self.roles if isinstance(self.roles, dict) else {})}

    @cached_property
    def role_rules(self) -> list[RoleRule]:
        """Rules on who speaks; none where roles are a table."""
        return self.roles if isinstance(self.roles, list) else []

    @property
    def is_joined(self) -> bool:
        """Whether records of one `native_id`, each with a list of messages or spans, are a session."""
        parts = (self.messages, self.spans)
        return self.events_at is not None and any(part is not None and part.joined for part in parts)

    @cached_property
    def events_at(self) -> str | None:
        """Path of the list of events in a record; None where a record is an event."""
        if self.messages is not None:
            return None if self.messages.each else self.messages.at
        if self.spans is not None:
            return self.spans.at
        return next((path.partition("[]")[0] for _, path in self.event_paths() if "[]" in path), None)

    @cached_property
    def record_keys(self) -> set[str]:
        """Keys of a record that paths in `[event]` begin with, beside the list of events."""
        paths = {path for key, path in self.event_paths() if not is_of_message(key, path)}
        return {str(steps(path)[0]) for path in paths if self.is_beside(path)}

    @property
    def columns_of_names(self) -> set[str]:
        """Columns of a table that hold names and no amounts: of the session, its condition, who acts; and
        times, where they have a format of their own."""
        heads = self.trajectory.model_dump(exclude_none=True, exclude={"hidden", "request"})
        fields = {"actor", "role", "id"} | ({"time"} if self.constants.time_format else set())
        event_fields = self.event.model_dump(exclude_none=True, include=fields)
        paths = (one for path in (*heads.values(), *event_fields.values()) for one in as_list(path))
        return {str(steps(path)[0]) for path in paths}

    def check(self) -> None:
        """ValueError for what the types alone cannot tell: `key: what is wrong`."""
        self._check_parts()
        for key, path in (*self.head_paths(), *self.score_paths(), *self.event_paths()):
            try:
                steps(path)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from error
        for key, path in (*self.head_paths(), *self.score_paths()):
            if "[]" in path:
                raise ValueError(f"{key}: a session has one value here, but {path!r} is a list")
        for key, path in self.event_paths():
            at, more, rest = path.partition("[]")
            if more and (at != self.events_at or "[]" in rest):
                raise ValueError(f"{key}: events are in {self.events_at!r}, but {path!r} leads elsewhere")
        for condition in self._conditions():
            for entry in condition.values():
                for one in entry if isinstance(entry, list) else [entry]:
                    check_pattern(one)
        for pattern in self._patterns():
            expression(pattern)
        for name in self.values:
            if name not in self.outcomes and self.scores is None:
                names = ", ".join(self.outcomes) or "those of [outcomes], which has none"
                raise ValueError(f"values.{name}: no such outcome, expected one of {names}")
        if (time_format := self.constants.time_format) is not None and not is_time_format(time_format):
            raise ValueError(
                f"constants.time_format: expected directives such as %d.%m.%Y %H:%M, got {time_format!r}"
            )
        for value, meaning in self.statuses.items():
            if meaning not in ("succeeded", "failed", "unknown"):
                raise ValueError(
                    f"statuses.{value}: expected one of succeeded, failed, unknown, got {meaning!r}"
                )

    def unused_part(self) -> str | None:
        """Why a new mapping is refused for a part of it that has no effect; None where there is none. A
        mapping that is noted with a source may have one."""
        if self.messages is None and self.spans is None:
            return None
        if self.kinds or self.statuses:
            name = "kinds" if self.kinds else "statuses"
            return f"{name}: only with [event]; messages and spans say it themselves"
        if self.actions and self.spans is not None:
            return "actions: only with [event] or [messages]; spans say themselves what was done"
        if any(rule.where for rule in self.actions):
            return (
                "actions: `where` only with [event]; with [messages], a rule applies to all that agents say"
            )
        for table in ("keep", "skip"):
            for condition in getattr(self.filter, table):
                if other := next((path for path in condition if not self.is_inside(path)), None):
                    return f"filter.{table}: paths must lead into {self.events_at!r}, got {other!r}"
        return None

    def is_inside(self, path: str) -> bool:
        """Whether a path leads into an event, and not elsewhere in its record."""
        return self.events_at is None or path.startswith(f"{self.events_at}[]")

    def is_beside(self, path: str) -> bool:
        """Whether a path in `[event]` leads into the record where the event has nothing there."""
        has_list = self.events_at is not None and self.messages is None and self.spans is None
        return has_list and not self.is_inside(path)

    def _check_parts(self) -> None:
        has_fields = bool(self.event.model_dump(exclude_none=True))
        if self.messages is not None and self.messages.at is None and not self.messages.each:
            raise ValueError("messages: needs `at`, the path of the list of messages, or each = true")
        if self.messages is not None:
            self._check_turns(self.messages)
        if self.input.id and not self.input.rounds and not (self.messages and self.messages.joined):
            needs = "rounds in [input] or joined = true in [messages]"
            raise ValueError(f"input.id: only with {needs}, got {self.input.id!r}")
        if (self.messages is not None) + (self.spans is not None) + has_fields > 1:
            raise ValueError("event, messages, spans: give only one of them; each says where the events are")
        rules = self.roles or self.results or self.constants.status
        speaker = self.event.actor or self.event.role or (has_fields and self.constants.role)
        if (
            not speaker
            and self.messages is None
            and self.spans is None
            and not (self.has_only_rules and rules)
        ):
            raise ValueError("event: needs actor or role")
        if self.trajectory.request and (not has_fields or self.events_at is None):
            raise ValueError("trajectory.request: only if one record holds a list of events")
        if not self.trajectory.request and (self.trajectory.requester or self.constants.requester):
            raise ValueError("requester: only with `request` in [trajectory]")
        if self.turns is not None and self.turns.at != self.events_at:
            place = "no list" if self.events_at is None else repr(self.events_at)
            paths = f"paths to them begin with '{self.turns.at}[].'"
            raise ValueError(f"turns.at: events are in {place}, got {self.turns.at!r}, where {paths}")

    def _check_turns(self, messages: Messages) -> None:
        """ValueError where messages say something of joined records that cannot be."""
        if messages.joined and (messages.growing or messages.each):
            other = "growing" if messages.growing else "each"
            raise ValueError(f"messages: give joined or {other}; each says otherwise what a record is")
        if messages.joined and not self.trajectory.native_id:
            raise ValueError("messages.joined: needs trajectory.native_id, which says whose turn a record is")
        if messages.time and not messages.joined:
            raise ValueError(f"messages.time: only with joined = true, got {messages.time!r}")

    def _patterns(self) -> Iterator[str]:
        yield from self.names.values()
        yield from (rule.pattern for rule in self.actions)
        patterns = self.turns.pattern if self.turns else None
        yield from [patterns] if isinstance(patterns, str) else patterns or []

    def head_paths(self) -> Iterator[tuple[str, str]]:
        """(key, path) of what holds for a whole session."""
        for name, path in self.trajectory.model_dump(exclude_none=True).items():
            yield from ((f"trajectory.{name}", one) for one in as_list(path))
        if self.messages is not None:
            yield from (("messages.reply", path) for path in as_list(self.messages.reply))
            yield from (("messages.told", path) for path in as_list(self.messages.told))
            yield from (("messages.time", path) for path in as_list(self.messages.time))
        if self.input.id:
            yield "input.id", self.input.id
        for table in ("tags", "outcomes"):
            for name, path in getattr(self, table).items():
                yield f"{table}.{name}", path
        if self.scores is not None:
            yield "scores.at", self.scores.at

    def score_paths(self) -> Iterator[tuple[str, str]]:
        """(key, path) of what is looked for in a score."""
        if self.scores is not None:
            yield "scores.name", self.scores.name
            yield from (("scores.value", path) for path in as_list(self.scores.value))
            yield from (("scores.skip", path) for path in self.scores.skip)

    def event_paths(self) -> Iterator[tuple[str, str]]:
        """(key, path) of what is looked for in an event or span, and of what rules look at."""
        for name, path in self.event.model_dump(exclude_none=True).items():
            yield from ((f"event.{name}", one) for one in as_list(path))
        if self.spans is not None:
            span_paths = self.spans.model_dump(exclude_none=True, exclude={"at", "joined", "kinds"})
            yield from ((f"spans.{name}", one) for name, path in span_paths.items() for one in as_list(path))
        tables: dict[str, Sequence[KindRule | RoleRule | ResultRule | ActionRule]]
        tables = {"kinds": self.kinds, "roles": self.role_rules}
        tables |= {"results": self.results, "actions": self.actions}
        for table, rules in tables.items():
            for number, rule in enumerate(rules):
                yield from ((f"{table}[{number}].where", path) for path in rule.where)
        for table in ("keep", "skip"):
            for number, condition in enumerate(getattr(self.filter, table)):
                yield from ((f"filter.{table}[{number}]", path) for path in condition)

    def _conditions(self) -> Iterator[Condition]:
        rules: list[KindRule | RoleRule | ResultRule | ActionRule]
        rules = [*self.kinds, *self.role_rules, *self.results, *self.actions]
        yield from (rule.where for rule in rules)
        yield from (*self.filter.keep, *self.filter.skip)
        yield from [] if self.scores is None else [self.scores.skip]


def is_of_message(key: str, path: str) -> bool:
    """Whether a path at a key of the mapping is a rule's that looks at a message, and not at a record."""
    return key.startswith(("roles", "results")) and steps(path)[0] in OF_MESSAGE


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
        mapping = Mapping.model_validate(toml.parse(text))
        mapping.check()
    except ValidationError as error:
        raise SourceError(f"{name}: {explanation(error, Mapping)}") from error
    except ValueError as error:
        raise SourceError(f"{name}: {error}") from error
    return mapping


def explanation(error: ValidationError, mapping: type[Model]) -> str:
    """The first error in a mapping of that kind: key, rule and value."""
    first = error.errors()[0]
    unions = ("str", "int", "float", "bool", "table", "rules", "list[str]")
    where = [part for part in first["loc"] if part not in unions]
    place = ".".join(map(str, where))
    if first["type"] == "extra_forbidden":
        model: Any = mapping
        for part in where[:-1]:
            model = getattr(model.model_fields.get(part), "annotation", None) if model else None
        keys = ", ".join(getattr(model, "model_fields", ()))
        return f"{place}: unknown key" + (f", expected one of {keys}" if keys else "")
    suffix = "" if first["type"] == "missing" else f", got {first['input']!r:.80}"
    return f"{place}: {rule_of(first)}{suffix}"
