"""Trajectories and ratings as rows of the audit tables, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from coaudit.pipeline.measure import Measure
from coaudit.pipeline.units import opening_query, spans
from coaudit.schemas.base import canonical_json, text_hash
from coaudit.schemas.codebook import UnitKind
from coaudit.schemas.rating import Rating
from coaudit.schemas.trajectory import Action, Event, Notice, Outcome, Participant, Trajectory
from coaudit.schemas.unit import said, said_hash

Row = tuple[Any, ...]
UNIT_KINDS: tuple[UnitKind, ...] = ("utterance", "question_reply", "human_message", "step", "trajectory")


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
    return (trajectory_id, given.name, given.value, given.text, given.baseline, given.reason, data, imported)


def rating(given: Rating, ledger: str, line: int) -> Row:
    """A row of `ratings`."""
    return (
        ledger,
        line,
        given.trajectory,
        given.event,
        given.unit_hash,
        given.codebook,
        given.codebook_version,
        given.code,
        given.rater,
        given.rater_kind,
        given.rater_version,
        given.label,
        given.error,
        given.retracted,
        list(given.cites),
        given.quote,
        given.error_source,
        given.rationale,
        given.probability,
        given.model,
        given.prompt_hash,
        canonical_json(given.parameters) if given.parameters else None,
        given.seed,
        given.prompt_tokens,
        given.cached_tokens,
        given.completion_tokens,
        given.cost_usd,
        given.seconds,
        given.created,
        canonical_json(given.external) if given.external else None,
    )


def measure(given: Measure) -> Row:
    """A row of `computed`."""
    return (
        given.metric,
        given.trajectory,
        given.value,
        given.weight,
        given.reason,
        given.participant,
        given.rater,
        given.scoring,
        given.definition,
    )


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
        **{
            key: row[key]
            for key in ("seq", "sub", "live_only", "time", "actor", "kind", "text", "status", "error")
        },
        action=action,
        states=json.loads(row["states"]) if row["states"] else {},
        notices=tuple(Notice(**notice) for notice in json.loads(row["notices"] or "[]")),
    )


_HEAD = (
    "id",
    "native_id",
    "source",
    "system",
    "setting",
    "condition",
    "task",
    "instance",
    "agent",
    "agent_model",
)


def _digest(given: Trajectory, words: Sequence[str]) -> str:
    head = given.model_dump(exclude={"id", "source", "condition", "states", "events"})
    beside = [
        (e.sub, e.live_only, e.time, e.status, e.error, sorted(e.states.items()), e.notices)
        for e in given.events
    ]
    return text_hash("\n".join((canonical_json(head), *words, repr(beside))))


def _trajectory(given: Trajectory, words: Sequence[str]) -> Row:
    times = [event.time for event in given.events if event.time and not event.live_only]
    return (
        *(getattr(given, key) for key in _HEAD),
        canonical_json(given.tags),
        None if given.hidden is None else canonical_json(given.hidden),
        times[0] if times else None,
        times[-1] if times else None,
        sum(not event.live_only for event in given.events),
        _digest(given, words),
    )


def _participant(trajectory_id: str, given: Participant) -> Row:
    tokens = given.tokens
    return (
        trajectory_id,
        given.name,
        given.kind,
        given.model,
        given.simulated,
        tokens.get("prompt_tokens"),
        tokens.get("completion_tokens"),
    )


def _event(trajectory_id: str, given: Event) -> Row:
    action = given.action
    return (
        trajectory_id,
        given.seq,
        given.sub,
        given.live_only,
        given.time,
        given.actor,
        given.kind,
        given.text,
        action and action.name,
        canonical_json(action.arguments) if action else None,
        action and action.raw,
        given.status,
        given.error,
        canonical_json(given.states) if given.states else None,
        canonical_json([n.model_dump() for n in given.notices]) if given.notices else None,
    )


def _units(trajectory: Trajectory, words: Sequence[str]) -> Iterator[Row]:
    opening = opening_query(trajectory)
    said_by = {id(event): word for event, word in zip(trajectory.events, words, strict=True)}
    for kind in UNIT_KINDS:
        for events in spans(trajectory, kind):
            whole = kind == "trajectory"
            yield (
                trajectory.id,
                kind,
                None if whole else events[0].seq,
                said_hash(kind, [said_by[id(event)] for event in events]),
                None if whole else events[0].actor,
                not whole and events[0].seq == opening,
            )


def _to_participant(row: dict[str, Any]) -> Participant:
    counts = {key: row[key] for key in ("prompt_tokens", "completion_tokens") if row[key] is not None}
    return Participant(
        name=row["name"], kind=row["kind"], model=row["model"], simulated=row["simulated"], tokens=counts
    )


def _to_outcome(row: dict[str, Any]) -> Outcome:
    fields = {key: row[key] for key in ("name", "value", "text", "baseline", "reason")}
    return Outcome(**fields, data=json.loads(row["data"]) if row["data"] else None)
