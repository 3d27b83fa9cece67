"""Reader for coaudit's own JSON Lines: what `export --format jsonl` writes, and anybody may write.

Each line has a `type`:

* `trajectory`: the head (`native_id` and `participants` at least); it may hold its `events`, `outcomes`
  and `states` right away,
* `event`, `outcome`: one of them, with `trajectory` naming the head's `id` (or `native_id`),
* `state`: `hash` and `content`.

Lines of several trajectories may be interleaved, so a live log only appends. A head without an `id` gets
one from its system, native_id and team; events without a `seq` are numbered in their order. A large file is
read in parts that have whole trajectories (native_parts.py), so that it need not be in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from ....schemas import Event, Outcome, Participant, Quarantined, Trajectory
from ....schemas.text import rule_of
from ..base import ReadOptions, Span, ending, first_lines, json_lines, only_object, quarantine_failure
from . import native_parts
from .fields.values import moment
from .native_parts import identity

SYSTEM = native_parts.SYSTEM
LARGE = 4 * 1024 * 1024
"""Bytes of a file from which on it is read in parts of that size."""
TYPES = ("trajectory", "event", "outcome", "state")
_HEAD = tuple(
    name for name in Trajectory.model_fields if name not in ("participants", "events", "outcomes", "states")
)
_PARTS: dict[str, type] = {"participants": list, "events": list, "outcomes": list, "states": dict}


@dataclass
class _PartialTrajectory:
    """A trajectory whose lines are still coming in."""

    head: dict[str, Any]
    participants: tuple[Participant, ...]
    events: list[Event] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    places: set[tuple[int, int]] = field(default_factory=set)
    names: dict[str, None] = field(init=False)
    """Of the participants, in their order."""

    def __post_init__(self) -> None:
        self.names = dict.fromkeys(person.name for person in self.participants)

    def add_event(self, record: dict[str, Any]) -> None:
        if "seq" not in record:
            record = {**record, "seq": self.events[-1].seq + 1 if self.events else 0}
        if isinstance(time := record.get("time"), (int, float)):
            record = {**record, "time": moment(time)}
        event = Event.model_validate(record)
        if event.actor not in self.names:
            raise ValueError(f"unknown actor {event.actor[:80]!r}, expected one of {', '.join(self.names)}")
        if (event.seq, event.sub) in self.places:
            raise ValueError(f"event {event.seq} is there already")
        self.places.add((event.seq, event.sub))
        self.events.append(event)

    def trajectory(self, states: dict[str, JsonValue]) -> Trajectory:
        """The trajectory; of several outcomes of a name the last holds, for such a log only grows."""
        hashes = {key for event in self.events for key in event.states.values()}
        return Trajectory(
            **self.head,
            participants=self.participants,
            events=tuple(sorted(self.events, key=lambda event: (event.seq, event.sub))),
            outcomes=tuple({(one.name, one.baseline): one for one in self.outcomes}.values()),
            states={key: states[key] for key in hashes if key in states},
        )


def recognises(path: Path) -> bool:
    """A .jsonl file whose first line is one of ours."""
    if ending(path) not in (".jsonl", ".ndjson") or not path.is_file():
        return False
    return any(
        isinstance(line, dict)
        and line.get("type") in TYPES
        and not {"native_id", "trajectory", "hash"}.isdisjoint(line)
        for line in first_lines(path, 1)
    )


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The trajectories of one file, after what could not be read of it or of a part of it."""
    parts = sessions_apart(path, options, LARGE) if path.stat().st_size > LARGE else (None,)
    for span in parts:
        yield from read_span(path, options, span)


def sessions_apart(path: Path, options: ReadOptions, size: int) -> Iterator[Span]:
    """Parts of a file that have whole trajectories in them."""
    return native_parts.spans(path, size)


def read_span(path: Path, options: ReadOptions, span: Span | None) -> Iterator[Trajectory | Quarantined]:
    """The trajectories of a file, or of a part of it; what does not fit is quarantined with its line."""
    source = str(path)
    growing: dict[str, _PartialTrajectory] = {}
    trajectories: list[_PartialTrajectory] = []
    states: dict[str, JsonValue] = {}
    for number, value in json_lines(path, span=span):
        line = only_object(value, source, number)
        if isinstance(line, Quarantined):
            yield line
            continue
        try:
            one = _add_line(line, growing, states, source, options)
            trajectories += [one] if one else []
        except (ValueError, ValidationError, TypeError, AttributeError) as error:
            yield Quarantined(source=source, line=number, reason=_reason(error))
    for one in trajectories:
        yield quarantine_failure(partial(one.trajectory, states), source)


def _add_line(
    line: dict[str, Any],
    growing: dict[str, _PartialTrajectory],
    states: dict[str, JsonValue],
    source: str,
    options: ReadOptions,
) -> _PartialTrajectory | None:
    """Add what a line says; for a head, return its new trajectory, to which the lines that follow belong.

    An earlier trajectory of the same id is kept beside it: which of the two continues the other is known at
    the end.
    """
    rest = dict(line)
    kind = rest.pop("type", None)
    if kind == "trajectory":
        one = _new_trajectory(rest, states, source, options)
        growing[one.head["id"]] = growing[one.head["native_id"]] = one
        return one
    if kind == "state":
        if not isinstance(rest.get("hash"), str):
            raise ValueError("a state needs a hash")
        states[rest["hash"]] = rest.get("content")
    elif kind in ("event", "outcome"):
        name = rest.pop("trajectory", None)
        if not isinstance(name, str) or name not in growing:
            raise ValueError(
                f"{kind} of trajectory {name!r}, whose head is on no line before that could be read"
            )
        if kind == "event":
            growing[name].add_event(rest)
        else:
            growing[name].outcomes.append(Outcome.model_validate(rest))
    else:
        raise ValueError(f"type must be one of {', '.join(TYPES)}, got {str(kind)[:80]!r}")
    return None


def _new_trajectory(
    record: dict[str, Any], states: dict[str, JsonValue], source: str, options: ReadOptions
) -> _PartialTrajectory:
    for key, kind in _PARTS.items():
        if not isinstance(record.get(key, kind()), kind):
            raise ValueError(f"{key} must be {'an object' if kind is dict else 'a list'}")
    participants = tuple(Participant.model_validate(p) for p in record.get("participants", ()))
    head = {key: record[key] for key in _HEAD if key in record}
    unknown = sorted(set(record) - set(_HEAD) - {"participants", "events", "outcomes", "states"})
    if unknown:
        raise ValueError(f"a trajectory has no {', '.join(unknown)}")
    if not isinstance(head.get("native_id"), str):
        raise ValueError("a trajectory needs a native_id")
    head.setdefault("system", SYSTEM)
    head.setdefault("source", source)
    head.setdefault("id", identity(head, [p.name for p in participants]))
    fields = {key: value for key, value in options.head_fields().items() if value}
    if isinstance(tags := head.get("tags"), dict) and options.tags:
        fields["tags"] = tags | options.tags
    head |= fields
    Trajectory(**head, participants=participants, events=())  # says what does not fit while its line is known
    trajectory = _PartialTrajectory(head, participants)
    for event in record.get("events", ()):
        trajectory.add_event(event)
    trajectory.outcomes.extend(Outcome.model_validate(outcome) for outcome in record.get("outcomes", ()))
    states.update(record.get("states", {}))
    return trajectory


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'line'}: {rule_of(first)}"
    return str(error)
