"""Ratings, outcomes and measures as rows of the audit tables, and trajectories back from theirs.

On their way in, trajectories are columns (columns.py).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from ....schemas import (
    Codebook,
    Event,
    Measure,
    Model,
    Outcome,
    Participant,
    Rating,
    Trajectory,
    canonical_json,
)
from ....schemas.event import EventColumns, Events, Notice
from ..connection import Row


def event_digests(events: Iterable[Event]) -> list[str]:
    """Content hash of each logged event, by which two copies of one log are compared."""
    return [event.digest() for event in events if not event.live_only]


def outcome(trajectory_id: str, record: Outcome, *, imported: bool) -> Row:
    """A row of `outcomes`; `imported` ones come from `outcomes import` and outlive a new ingest."""
    data = None if record.data is None else canonical_json(record.data)
    return {
        "trajectory_id": trajectory_id,
        **fields_of(record, _OUTCOME),
        "data": data,
        "imported": imported,
    }


def ratings(
    records: Sequence[Rating], ledgers: Sequence[str], lines: Sequence[int]
) -> dict[str, Sequence[Any]]:
    """The columns of `ratings`, given the ledger file and the line of each."""
    values = zip(*map(_RATING_VALUES, records), strict=True)
    columns: dict[str, Sequence[Any]] = dict(zip(_RATING, values, strict=True))
    for name in ("parameters", "external"):
        columns[name] = [canonical_json(value) if value else None for value in columns[name]]
    return {
        "ledger": ledgers,
        "line": lines,
        "trajectory_id": columns.pop("trajectory"),
        **columns,
    }


def to_rating(row: dict[str, Any]) -> Rating:
    """A rating from its row, which was validated when it came in."""
    fields = {name: row[name] for name in _RATING if name in row}
    fields |= {name: json.loads(row[name]) if row[name] else {} for name in ("parameters", "external")}
    return Rating.model_construct(
        **{**fields, "trajectory": row["trajectory_id"], "cites": tuple(row["cites"] or ())}
    )


def codes(book: Codebook) -> list[Row]:
    """The rows of `codebooks`: one for each code."""
    categories = {category.category: category.name for category in book.categories}
    head = {
        **fields_of(book, ("name", "version", "title", "unit", "level", "positive")),
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


def scopes(book: Codebook) -> list[Row]:
    """The rows of `codebook_scopes`: one for each field that must have a certain value in a trajectory."""
    return [
        {"codebook": book.name, "field": field, "value": value} for field, value in book.applies_to.items()
    ]


def measure(record: Measure) -> Row:
    """A row of `computed`."""
    return {"trajectory_id": record.trajectory, **fields_of(record, MEASURE)}


def to_trajectories(
    ids: Sequence[str],
    heads: Iterable[dict[str, Any]],
    parts: Mapping[str, Iterable[dict[str, Any]]],
    states: Mapping[str, Any],
) -> list[Trajectory]:
    """The trajectories of these ids, in this order, from the rows of all; unknown ids are left out."""
    by_id = {row["id"]: row for row in heads}
    groups = {name: _by_trajectory(rows) for name, rows in parts.items()}
    items = []
    for key in ids:
        if key in by_id:
            rows_by_part = {
                name: groups[name].get(key, []) for name in ("participants", "events", "outcomes")
            }
            contents = {h: states[h] for h in sorted(hashes_of(rows_by_part["events"])) if h in states}
            items.append(to_trajectory(by_id[key], **rows_by_part, states=contents))
    return items


def hashes_of(events: Iterable[dict[str, Any]]) -> set[str]:
    """The hashes of all states that rows of events point at."""
    return {h for row in events if row["states"] for h in json.loads(row["states"]).values()}


def _by_trajectory(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["trajectory_id"], []).append(row)
    return groups


def to_trajectory(
    head: dict[str, Any],
    participants: Iterable[dict[str, Any]],
    events: Sequence[dict[str, Any]],
    outcomes: Iterable[dict[str, Any]],
    states: dict[str, Any],
) -> Trajectory:
    """A trajectory from its rows (as dictionaries by column)."""
    return Trajectory(
        **{key: head[key] for key in _HEAD},
        tags=json.loads(head["tags"] or "{}"),
        hidden=json.loads(head["hidden"]) if head["hidden"] else None,
        participants=tuple(_to_participant(row) for row in participants),
        events=to_events(events),  # type: ignore[arg-type]
        outcomes=tuple(_to_outcome(row) for row in outcomes),
        states=states,
    )


def to_events(rows: Sequence[dict[str, Any]]) -> Events:
    """Events from their rows (dictionaries by column)."""
    values = {name: [row[name] for row in rows] for name in _EVENT}
    values["arguments"] = [
        None if name is None else {} if text in (None, "{}") else json.loads(text)
        for name, text in zip(values["action"], values["arguments"], strict=True)
    ]
    values["states"] = [json.loads(text) if text else {} for text in values["states"]]
    values["notices"] = [
        tuple(Notice(**notice) for notice in json.loads(text)) if text else () for text in values["notices"]
    ]
    columns = EventColumns(**values)
    return Events(columns) if columns.are_events() else Events(rows=columns.validate())


def fields_beside(model: type[Model], *others: str) -> tuple[str, ...]:
    """The fields of a type but these."""
    return tuple(name for name in model.model_fields if name not in others)


_HEAD = fields_beside(Trajectory, "tags", "participants", "events", "outcomes", "states", "hidden")
_PARTICIPANT = fields_beside(Participant, "tokens")
_EVENT = tuple(field.name for field in dataclasses.fields(EventColumns))
_OUTCOME = fields_beside(Outcome, "data")
_RATING = tuple(Rating.model_fields)
_RATING_VALUES = attrgetter(*_RATING)
TOKENS = ("prompt_tokens", "completion_tokens")
MEASURE = tuple(field.name for field in dataclasses.fields(Measure) if field.name != "trajectory")


def fields_of(record: object, names: Iterable[str]) -> dict[str, Any]:
    """These fields of an object, by name."""
    return {name: getattr(record, name) for name in names}


def _to_participant(row: dict[str, Any]) -> Participant:
    tokens = {name: row[name] for name in TOKENS if row[name] is not None}
    return Participant(**{name: row[name] for name in _PARTICIPANT}, tokens=tokens)


def _to_outcome(row: dict[str, Any]) -> Outcome:
    data = json.loads(row["data"]) if row["data"] else None
    return Outcome(**{name: row[name] for name in _OUTCOME}, data=data)
