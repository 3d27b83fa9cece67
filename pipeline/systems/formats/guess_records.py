"""Looking into the records of a survey: their events, the values of a path, how often one comes again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress, groupby, pairwise
from typing import Any

from . import turns
from .guess_names import NAMES, spelled
from .survey import PathSeen, Survey


def events_of(seen: Survey, at: str, inside: str) -> Iterator[dict[str, Any]]:
    """The events of the records that were looked at."""
    for record in seen.records:
        many = turns.events_in(record, at, None) if inside else [record]
        yield from (event for event in many or [] if isinstance(event, dict))


def items_in(seen: Survey, path: str) -> int:
    return sum(seen.paths[path].lengths) if path in seen.paths else 0


def repeats(one: PathSeen, seen: Survey) -> bool:
    """Whether several records are of one session, and there are several, or all are of one: by a value that
    names it, as no object or list does."""
    if not one.only("text", "number", "true or false"):
        return False
    if spelled(one.key) in NAMES["id"] and _counts(one, seen):
        return False
    return (one.count >= 0.9 * len(seen.records) and not one.more and len(one.values) < 0.7 * one.count) or (
        one.more and rows_per(one, seen) > 1.3
    )


def _counts(one: PathSeen, seen: Survey) -> bool:
    """Whether it only rises from record to record of each file: a number of events that each file begins
    anew."""
    files = sessions_of(seen, ())
    if not one.only("number") or len(files) < 2 or len(files) == len(seen.records):
        return False
    numbers = ([value_at(record, one.path) for record in records] for records in files)
    return all(
        isinstance(a, int) and isinstance(b, int) and a < b for own in numbers for a, b in pairwise(own)
    )


def in_blocks(one: PathSeen, seen: Survey) -> bool:
    """Whether several values stand there, each in records that follow each other."""
    values = [value_at(record, one.path) for record in seen.records]
    return len([value for value, _ in groupby(values)]) == len(set(map(str, values))) > 1


def having(path: str, seen: Survey) -> Survey:
    """The survey of only those records that have something at a path."""
    there = [value_at(record, path) is not None for record in seen.records]
    return replace(
        seen, records=list(compress(seen.records, there)), origins=list(compress(seen.origins, there))
    )


def rows_per(one: PathSeen, seen: Survey) -> float:
    values = [value_at(record, one.path) for record in seen.records]
    return len(values) / max(1, len(set(map(str, values))))


def distinct(seen: Survey) -> list[dict[str, Any]]:
    """The records without those that repeat another, which are not read twice."""
    different: dict[str, dict[str, Any]] = {}
    for record in seen.records:
        different.setdefault(repr(record), record)
    return list(different.values())


def sessions_of(seen: Survey, ids: Sequence[str]) -> list[list[dict[str, Any]]]:
    """The records that are events, session by session: those of one id in a file, or all of a file."""
    sessions: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for record, file in zip(seen.records, seen.origins, strict=True):
        session = (file, *(str(value_at(record, path)) for path in ids))
        sessions.setdefault(session, []).append(record)
    return list(sessions.values())


def value_at(record: object, path: str) -> object:
    for key in re.split(r"(?<!\\)\.", path):
        plain = key.replace("\\", "")
        record = record.get(plain) if isinstance(record, dict) else None
    return record
