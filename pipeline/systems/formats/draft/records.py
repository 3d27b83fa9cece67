"""Reads the records of a survey: their events, the value at a path, whether values repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress, groupby, pairwise
from typing import Any

from ..messages import turns
from .names import NAMES, snake_case
from .survey import PathSummary, Survey


def events_of(survey: Survey, at: str, inside: str) -> Iterator[dict[str, Any]]:
    """The events of a survey's records: the items of the list at `at`, or without `inside` the records
    themselves."""
    for record in survey.records:
        events = turns.events_in(record, at, None) if inside else [record]
        yield from (event for event in events if isinstance(event, dict)) if isinstance(events, list) else ()


def items_in(survey: Survey, path: str) -> int:
    return sum(survey.paths[path].lengths) if path in survey.paths else 0


def repeats(field: PathSummary, survey: Survey) -> bool:
    """Whether several records share a value, as those of a session share its id: nearly all have one, and
    there are clearly fewer values than records. No object or list is an id, nor is a number of events."""
    if not field.has_only("text", "number", "true or false"):
        return False
    if snake_case(field.key) in NAMES["id"] and _numbers_events(field, survey):
        return False
    return (
        field.count >= 0.9 * len(survey.records)
        and not field.has_more_values
        and len(field.values) < 0.7 * field.count
    ) or (field.has_more_values and rows_per(field, survey) > 1.3)


def _numbers_events(field: PathSummary, survey: Survey) -> bool:
    """Whether it numbers the events of each file: an integer that only rises, in each of several files."""
    files = sessions_of(survey, ())
    if not field.has_only("number") or len(files) < 2 or len(files) == len(survey.records):
        return False
    numbers = ([value_at(record, field.path) for record in records] for records in files)
    return all(
        isinstance(a, int) and isinstance(b, int) and a < b for values in numbers for a, b in pairwise(values)
    )


def in_blocks(field: PathSummary, survey: Survey) -> bool:
    """Whether there are several values, each in consecutive records only."""
    values = [value_at(record, field.path) for record in survey.records]
    return len([value for value, _ in groupby(values)]) == len(set(map(str, values))) > 1


def survey_with(path: str, survey: Survey) -> Survey:
    """The survey of only those records that have something at a path."""
    mask = [value_at(record, path) is not None for record in survey.records]
    return replace(
        survey, records=list(compress(survey.records, mask)), origins=list(compress(survey.origins, mask))
    )


def rows_per(field: PathSummary, survey: Survey) -> float:
    values = [value_at(record, field.path) for record in survey.records]
    return len(values) / max(1, len(set(map(str, values))))


def distinct_records(survey: Survey) -> list[dict[str, Any]]:
    """The records without duplicates, which are not read twice."""
    records: dict[str, dict[str, Any]] = {}
    for record in survey.records:
        records.setdefault(repr(record), record)
    return list(records.values())


def sessions_of(survey: Survey, ids: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Records that are events, grouped by session: those with the same ids in a file, or all of a file."""
    sessions: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for record, file in zip(survey.records, survey.origins, strict=True):
        session = (file, *(str(value_at(record, path)) for path in ids))
        sessions.setdefault(session, []).append(record)
    return list(sessions.values())


def value_at(record: object, path: str) -> object:
    for key in re.split(r"(?<!\\)\.", path):
        plain = key.replace("\\", "")
        record = record.get(plain) if isinstance(record, dict) else None
    return record
