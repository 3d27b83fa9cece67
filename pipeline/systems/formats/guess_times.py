"""Which field says when events of a survey were, and in which order they come."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from .guess_made import Guess, Take
from .guess_names import (
    NAMES,
    SECRET,
    is_seq,
    is_time,
    named,
    spelled,
    time_formats,
)
from .guess_records import events_of, sessions_of
from .mapped_values import iso_of, seconds_of
from .paths import getter, several
from .survey import PathSeen, Survey

NEARLY = 0.9
"""A field that fewer events have neither numbers them nor says when they were."""
FALLING = 0.2
"""More times than that fall where numbers rise that are no numbers of events."""


def of_times(guess: Guess, survey: Survey, inside: str, total: int, take: Take) -> None:
    """The field that says when each of so many events was."""
    times = named(survey.paths, NAMES["time"], inside)
    if not take("time", [one for one in times if is_time(one)]):
        _of_times(guess, times, survey, inside)
    if "time" not in guess.event and not guess.timed:
        _of_moments(guess, survey, inside, total)


def _of_times(guess: Guess, times: list[PathSeen], survey: Survey, inside: str) -> None:
    """The first field of times that are not ISO 8601; one that may be read in two ways is only told."""
    for one in times:
        at = getter(one.path.removeprefix(inside))
        events = events_of(survey, inside.removesuffix("[]."), inside)
        if formats := time_formats(at(event) for event in events):
            guess.timed, guess.time_formats = one.path, formats
            if len(formats) == 1:
                guess.event["time"] = one.path
            return


def _of_moments(guess: Guess, survey: Survey, inside: str, total: int) -> None:
    """A field of any name in which nearly all events have times, each no earlier than the one before."""
    for one in survey.paths.values():
        is_inside = one.path.startswith(inside) and not re.search(r"\[\]|(?<!\\)\.", one.path[len(inside) :])
        is_full = one.kinds["text"] + one.kinds["number"] >= NEARLY * total and one.only("text", "number")
        is_varied = one.more or len(one.values) > 0.5 * total > 1
        is_id = SECRET.search(one.key) or spelled(one.key) in NAMES["id"] or spelled(one.key).endswith("_id")
        if is_id or not (is_inside and is_full and is_varied) or one.path in guess.used:
            continue
        at = getter(one.path.removeprefix(inside))
        texts = [at(event) for event in events_of(survey, inside.removesuffix("[]."), inside)]
        formats = [] if is_time(one) else time_formats(texts)
        if not (is_time(one) or formats) or not _is_rising(one.path, formats, survey, inside):
            continue
        guess.by_values["time"] = one.path
        if formats:
            guess.timed, guess.time_formats = one.path, formats
        if len(formats) < 2:
            guess.event["time"] = one.path
        return


def _is_rising(path: str, formats: list[str], survey: Survey, inside: str) -> bool:
    """Whether times hardly ever fall from event to event of a file or list."""
    at = getter(path.removeprefix(inside))
    lists = [
        replace(survey, records=own)
        for own in ([[r] for r in survey.records] if inside else sessions_of(survey, ()))
    ]
    every = [
        [_seconds(at(event), formats) for event in events_of(one, inside.removesuffix("[]."), inside)]
        for one in lists
    ]
    rises, falls = map(sum, zip(*(_steps(times) for times in every), strict=True))
    return bool(rises) and falls <= FALLING * rises


def of_numbers(guess: Guess, survey: Survey) -> None:
    """The field that numbers the events of a table: nearly all of them, no two of a session alike, and in the
    order of their times."""
    speaks = [getter(path) for path in several(guess.event.get("role"))]
    turn_count = sum(any(at(record) is not None for at in speaks) for record in survey.records)
    least = NEARLY * (turn_count or len(survey.records))
    mapped_paths = guess.used | {*guess.native_id}
    for one in named(survey.paths, NAMES["seq"]):
        free = one.path not in mapped_paths and one.kinds["number"] >= least
        if free and is_seq(one) and _is_in_order(one.path, guess, survey):
            guess.event["seq"] = one.path
            return


def _is_in_order(path: str, guess: Guess, survey: Survey) -> bool:
    """Whether each number is one event's of a session, and where numbers rise, times hardly ever fall."""
    number, when = getter(path), getter(str(guess.event["time"])) if "time" in guess.event else None
    rises = falls = 0
    for records in sessions_of(survey, guess.native_id):
        events = {repr(record): record for record in records if number(record) is not None}.values()
        if len({number(record) for record in events}) < len(events):
            return False
        times = (
            [_seconds(when(record), guess.time_formats) for record in sorted(events, key=number)]
            if when
            else []
        )
        more, fall = _steps(times)
        rises, falls = rises + more, falls + fall
    return falls <= FALLING * rises


def _steps(times: list[float | None]) -> tuple[int, int]:
    """Steps from time to time, and those of them that fall."""
    pairs = [(a, b) for a, b in pairwise(times) if a is not None and b is not None]
    return len(pairs), sum(a > b for a, b in pairs)


def _seconds(value: object, formats: list[str]) -> float | None:
    with suppress(ValueError):  # a time that cannot be read tells nothing of the order
        return seconds_of(iso_of(value, formats[0]) if formats else value)
    return None
