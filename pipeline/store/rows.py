"""Trajectories and ratings as rows of the audit tables, and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...schemas import (
    Action,
    Codebook,
    Event,
    Measure,
    Model,
    Outcome,
    Participant,
    Rating,
    Trajectory,
    canonical_json,
    text_hash,
)
from ...schemas.codebook import UnitKind
from ...schemas.trajectory import Notice
from ...schemas.unit import said, said_hash
from ..units import opening_query, spans
from .connection import Row

UNIT_KINDS: tuple[UnitKind, ...] = (
    *("utterance", "question_reply", "human_message", "step", "participant", "trajectory"),
)


def of_trajectory(trajectory: Trajectory) -> dict[str, list[Row]]:
    """The rows of every table that a trajectory fills, states aside."""
    words = [said(event) for event in trajectory.events]
    return {
        "trajectories": [_trajectory(trajectory, words)],
        "participants": [_participant(trajectory.id, p) for p in trajectory.participants],
        "events": [_event(trajectory.id, e) for e in trajectory.events],
        "outcomes": [outcome(trajectory.id, o, imported=False) for o in trajectory.outcomes],
        "units": list(_units(trajectory, words)),
    }


def digest(trajectory: Trajectory) -> str:
    """Hash of what a log says, without where it was read."""
    return _digest(trajectory, [said(event) for event in trajectory.events])


def event_digests(events: Iterable[Event]) -> list[str]:
    """Content hash of each logged event, by which two copies of one log are compared."""
    return [event.digest() for event in events if not event.live_only]


def outcome(trajectory_id: str, given: Outcome, *, imported: bool) -> Row:
    """A row of `outcomes`; `imported` ones come from `outcomes import` and outlive a new ingest."""
    data = None if given.data is None else canonical_json(given.data)
    return {
        "trajectory_id": trajectory_id,
        **_fields(given, _OUTCOME),
        "data": data,
        "imported": imported,
    }


def rating(given: Rating, ledger: str, line: int) -> Row:
    """A row of `ratings`."""
    return {
        "ledger": ledger,
        "line": line,
        "trajectory_id": given.trajectory,
        **_fields(given, _RATING),
        "cites": list(given.cites),
        "parameters": canonical_json(given.parameters) if given.parameters else None,
        "external": canonical_json(given.external) if given.external else None,
    }


def codes(book: Codebook) -> list[Row]:
    """The rows of `codebooks`: one for each code."""
    categories = {category.category: category.name for category in book.categories}
    head = {
        **_fields(book, ("name", "version", "title", "unit", "level", "positive")),
        "labels": list(book.labels),
    }
    return [
        {
            **head,
            "code": code.code,
            "code_name": code.name,
            "category": code.category,
            "category_name": categories.get(code.category or ""),
        }
        for code in book.codes
    ]


def measure(given: Measure) -> Row:
    """A row of `computed`."""
    return {"trajectory_id": given.trajectory, **_fields(given, _MEASURE)}


def to_trajectory(
    head: dict[str, Any],
    participants: Iterable[dict[str, Any]],
    events: Iterable[dict[str, Any]],
    outcomes: Iterable[dict[str, Any]],
    states: dict[str, Any],
) -> Trajectory:
    """A trajectory from its rows (as dictionaries by column)."""
    return Trajectory(
        **{key: head[key] for key in _HEAD},
        tags=json.loads(head["tags"] or "{}"),
        hidden=json.loads(head["hidden"]) if head["hidden"] else None,
        participants=tuple(_to_participant(row) for row in participants),
        events=tuple(to_event(row) for row in events),
        outcomes=tuple(_to_outcome(row) for row in outcomes),
        states=states,
    )


def to_event(row: dict[str, Any]) -> Event:
    """An event from its row (a dictionary by column)."""
    action = None
    if row["action"] is not None:
        action = Action(name=row["action"], arguments=json.loads(row["arguments"] or "{}"), raw=row["raw"])
    return Event(
        **{name: row[name] for name in _EVENT},
        action=action,
        states=json.loads(row["states"]) if row["states"] else {},
        notices=tuple(Notice(**notice) for notice in json.loads(row["notices"] or "[]")),
    )


def _columns(model: type[Model], *others: str) -> tuple[str, ...]:
    """The fields of a type that are columns as they are."""
    return tuple(name for name in model.model_fields if name not in others)


_HEAD = _columns(Trajectory, "tags", "participants", "events", "outcomes", "states", "hidden")
_PARTICIPANT = _columns(Participant, "tokens")
_EVENT = _columns(Event, "action", "states", "notices")
_OUTCOME = _columns(Outcome, "data")
_RATING = _columns(Rating, "trajectory", "cites", "parameters", "external")
_TOKENS = ("prompt_tokens", "completion_tokens")
_MEASURE = tuple(field.name for field in dataclasses.fields(Measure) if field.name != "trajectory")


def _fields(given: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(given, name) for name in names}


def _digest(given: Trajectory, words: Sequence[str]) -> str:
    head = given.model_dump(exclude={"id", "source", "condition", "states", "events"})
    beside = [
        (e.sub, e.live_only, e.time, e.status, e.error, sorted(e.states.items()), e.notices)
        for e in given.events
    ]
    return text_hash("\n".join((canonical_json(head), *words, repr(beside))))


def _trajectory(given: Trajectory, words: Sequence[str]) -> Row:
    times = [event.time for event in given.events if event.time and not event.live_only]
    return {
        **_fields(given, _HEAD),
        "tags": canonical_json(given.tags),
        "hidden": None if given.hidden is None else canonical_json(given.hidden),
        "started": times[0] if times else None,
        "ended": times[-1] if times else None,
        "n_events": sum(not event.live_only for event in given.events),
        "digest": _digest(given, words),
    }


def _participant(trajectory_id: str, given: Participant) -> Row:
    counts = {name: given.tokens.get(name) for name in _TOKENS}
    return {"trajectory_id": trajectory_id, **_fields(given, _PARTICIPANT), **counts}


def _event(trajectory_id: str, given: Event) -> Row:
    action = given.action
    return {
        "trajectory_id": trajectory_id,
        **_fields(given, _EVENT),
        "action": action and action.name,
        "arguments": canonical_json(action.arguments) if action else None,
        "raw": action and action.raw,
        "states": canonical_json(given.states) if given.states else None,
        "notices": canonical_json([n.model_dump() for n in given.notices]) if given.notices else None,
    }


def _units(trajectory: Trajectory, words: Sequence[str]) -> Iterator[Row]:
    opening = opening_query(trajectory)
    said_by = {id(event): word for event, word in zip(trajectory.events, words, strict=True)}
    for kind in UNIT_KINDS:
        for events in spans(trajectory, kind):
            whole = kind == "trajectory"
            yield {
                "trajectory_id": trajectory.id,
                "kind": kind,
                "event": None if whole else events[0].seq,
                "hash": said_hash(kind, [said_by[id(event)] for event in events]),
                "actor": None if whole else events[0].actor,
                "opening": kind not in ("participant", "trajectory") and events[0].seq == opening,
            }


def _to_participant(row: dict[str, Any]) -> Participant:
    tokens = {name: row[name] for name in _TOKENS if row[name] is not None}
    return Participant(**{name: row[name] for name in _PARTICIPANT}, tokens=tokens)


def _to_outcome(row: dict[str, Any]) -> Outcome:
    data = json.loads(row["data"]) if row["data"] else None
    return Outcome(**{name: row[name] for name in _OUTCOME}, data=data)
