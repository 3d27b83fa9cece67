"""What participants do: an event, and the events of a trajectory as columns.

A log has dozens of events a second and a study millions, most of which nobody looks at one by one. So a
reader may give them as columns, from which tables are made; an `Event` is made of a row when somebody asks
for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Literal, get_args, overload

from pydantic import Field, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from .base import JsonValue, Model, content_hash

EventKind = Literal[
    "start",
    "message",
    "action",
    "wait",
    "confirm_request",
    "confirm_accept",
    "confirm_reject",
    "control",
    "finish",
    "note",
]
Seq = Annotated[int, Field(ge=0, lt=2**31)]
"""A place in a log, as wide as the tables hold it."""


class Action(Model):
    """What was done to the environment or to the protocol: a name with its raw arguments."""

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    raw: str | None = None
    """The string as it was logged, where name and arguments do not say it all."""


class Notice(Model):
    """A line that the environment put into the chat by itself, such as an idle reminder."""

    time: str | None
    text: str


class Event(Model):
    """One thing that one participant did.

    `seq` numbers what the log holds, from 0. An event known only from live traffic is `live_only`
    and sits after the logged event `seq`, in the order of `sub` (1, 2, ...; 0 for logged events).
    """

    seq: Seq
    sub: Seq = 0
    live_only: bool = False
    time: str | None = None
    """ISO 8601, local time of the logging host where the log has no zone."""
    actor: str
    kind: EventKind
    text: str | None = None
    """A message byte for byte as the chat had it; a start event's task description."""
    action: Action | None = None
    status: Literal["succeeded", "failed"] | None = None
    error: str | None = None
    states: dict[str, str] = Field(default_factory=dict)
    """View (`public`, or the participant who alone sees it) -> hash of the state after this event."""
    notices: tuple[Notice, ...] = ()
    """What the environment wrote into the chat between the event before and this one."""

    def digest(self) -> str:
        """Content hash of what was logged; what only live traffic knows is left out."""
        return content_hash(
            self.seq,
            self.actor,
            self.kind,
            self.time,
            self.text,
            self.action and self.action.model_dump(),
            self.status,
            self.error,
        )


@dataclass(slots=True)
class EventColumns:
    """The fields of events, of an action three: sequences of one length, in the order of the events."""

    seq: Sequence[int]
    sub: Sequence[int]
    live_only: Sequence[bool]
    time: Sequence[str | None]
    actor: Sequence[str]
    kind: Sequence[EventKind]
    text: Sequence[str | None]
    action: Sequence[str | None]
    """The name of what was done, None where nothing was."""
    arguments: Sequence[dict[str, JsonValue] | None]
    """None where nothing was done."""
    raw: Sequence[str | None]
    status: Sequence[Literal["succeeded", "failed"] | None]
    error: Sequence[str | None]
    states: Sequence[dict[str, str]]
    notices: Sequence[tuple[Notice, ...]]

    @classmethod
    def of(cls, events: Iterable[Event]) -> EventColumns:
        """Those of events."""
        values = list(zip(*map(_FIELDS, map(vars, events)), strict=True)) or [()] * len(Event.model_fields)
        before, actions, after = values[:_ACTION], values[_ACTION], values[_ACTION + 1 :]
        action_columns = [
            [action and action.name for action in actions],
            [action and action.arguments for action in actions],
            [action and action.raw for action in actions],
        ]
        return cls(*before, *action_columns, *after)

    def __len__(self) -> int:
        return len(self.seq)

    def dictionaries(self) -> list[dict[str, Any]]:
        """The fields of each event."""
        names = list(Event.model_fields)
        columns = [getattr(self, name) for name in names]
        columns[_ACTION] = [
            None if name is None else {"name": name, "arguments": arguments, "raw": raw}
            for name, arguments, raw in zip(self.action, self.arguments, self.raw, strict=True)
        ]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def validated(self) -> tuple[Event, ...]:
        """The events themselves; ValidationError says what is wrong with which."""
        return _adapter().validate_python(self.dictionaries())

    def are_events(self) -> bool:
        """Whether each row is an event as it stands; where not, `Event` says what is wrong with which, or
        makes it one: it takes a hundred times as long to ask it of each."""
        try:
            return (
                _whole(self.seq)
                and _whole(self.sub)
                and set(map(type, self.live_only)) <= {bool}
                and set(self.kind) <= _KINDS
                and set(self.status) <= _STATUSES
                and _are_texts(self.actor)
                and all(_are_texts(getattr(self, name), optional=True) for name in _OPTIONAL)
                and _are_objects([one for one in self.arguments if one is not None])
                and set(map(type, self.states)) <= {dict}
                and (not any(self.states) or _are_states(self.states))
                and set(map(type, self.notices)) <= {tuple}
                and set(map(type, itertools.chain.from_iterable(self.notices))) <= {Notice}
            )
        except TypeError:  # a list or an object where a text belongs
            return False


_FIELDS = itemgetter(*Event.model_fields)
_ACTION = list(Event.model_fields).index("action")
_KINDS = frozenset(get_args(EventKind))
_STATUSES = frozenset({"succeeded", "failed", None})
_OPTIONAL = ("time", "text", "action", "raw", "error")


def _whole(numbers: Sequence[int]) -> bool:
    return set(map(type, numbers)) <= {int} and (not numbers or (min(numbers) >= 0 and max(numbers) < 2**31))


def _are_texts(values: Sequence[str | None], *, optional: bool = False) -> bool:
    """Whether all are texts without halves of characters, which no table holds."""
    if optional and values.count(None) == len(values):
        return True
    texts: list[Any] = [value for value in values if value is not None] if optional else list(values)
    if not set(map(type, texts)) <= {str}:
        return False
    try:
        "".join([text for text in texts if not text.isascii()]).encode()
    except UnicodeEncodeError:
        return False
    return True


def _are_objects(values: Sequence[Any]) -> bool:
    """Whether all are objects whose keys are texts."""
    keys = itertools.chain.from_iterable(values)
    return set(map(type, values)) <= {dict} and set(map(type, keys)) <= {str}


def _are_states(states: Sequence[dict[str, str]]) -> bool:
    return _are_objects(states) and _are_texts(list(itertools.chain.from_iterable(map(dict.values, states))))


class Events(Sequence[Event]):
    """The events of a trajectory in order: a tuple of them, as columns until one is looked at."""

    __slots__ = ("_columns", "_rows")

    def __init__(self, columns: EventColumns | None = None, rows: tuple[Event, ...] | None = None) -> None:
        """Of `columns` that `are_events`, or of events."""
        self._columns = columns
        self._rows = rows

    @classmethod
    def of(cls, events: Iterable[Event]) -> Events:
        """Of any events."""
        return events if isinstance(events, cls) else cls(rows=tuple(events))

    @property
    def columns(self) -> EventColumns:
        """Their fields."""
        if self._columns is None:
            self._columns = EventColumns.of(self._rows or ())
        return self._columns

    @property
    def rows(self) -> tuple[Event, ...]:
        """The events themselves."""
        if self._rows is None:
            self._rows = self.columns.validated()
        return self._rows

    def __len__(self) -> int:
        return len(self._columns if self._rows is None else self._rows)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.rows)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, place: int | slice) -> Event | tuple[Event, ...]:
        return self.rows[place]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Events):
            return self.rows == other.rows
        return self.rows == other if isinstance(other, tuple) else NotImplemented

    def __repr__(self) -> str:
        return repr(self.rows)

    def __add__(self, other: Events | tuple[Event, ...]) -> tuple[Event, ...]:
        return self.rows + tuple(other) if isinstance(other, (Events, tuple)) else NotImplemented

    def __radd__(self, other: tuple[Event, ...]) -> tuple[Event, ...]:
        return other + self.rows if isinstance(other, tuple) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return Events, (None, self.rows)


class _Lazily:
    """Has a field of events hold `Events`, which goes in and out as a tuple of them does."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        rows = handler(source)

        def to_events(value: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Events:
            return value if isinstance(value, Events) else Events(rows=validate(value))

        def to_tuple(value: Sequence[Event], serialize: core_schema.SerializerFunctionWrapHandler) -> Any:
            return serialize(tuple(value))

        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(
                lambda events: Events(rows=events), rows
            ),
            python_schema=core_schema.no_info_wrap_validator_function(to_events, rows),
            serialization=core_schema.wrap_serializer_function_ser_schema(to_tuple, schema=rows),
        )


EventTuple = Annotated[tuple[Event, ...], _Lazily]
"""What type checkers and whoever asks take for a tuple of events, and what is `Events`."""


@cache
def _adapter() -> TypeAdapter[tuple[Event, ...]]:
    return TypeAdapter(tuple[Event, ...])
