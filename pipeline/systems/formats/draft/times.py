"""Which field says when events happened, and which one numbers them."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from ..fields.paths import as_list, getter
from ..fields.values import iso_of, seconds_of
from .names import NAMES, SECRET, fields_named, is_seq, is_time, snake_case, time_formats
from .records import events_of, sessions_of
from .result import Guess, Take
from .survey import PathSummary, Survey

NEARLY = 0.9
"""Share of the events that must have a field for it to number them or to say when they were."""
FALLING = 0.2
"""Share of the steps from event to event, or from number to number, at which times may fall."""


def set_time_field(guess: Guess, survey: Survey, inside: str, total: int, take: Take) -> None:
    """Set the field that says when each of `total` events was: one under a usual name, else any that holds
    times."""
    times = fields_named(survey.paths, NAMES["time"], inside)
    if not take("time", [one for one in times if is_time(one)]):
        _set_formatted_time(guess, times, survey, inside)
    if "time" not in guess.event and not guess.time_path:
        _set_rising_time(guess, survey, inside, total)


def _set_formatted_time(guess: Guess, times: list[PathSummary], survey: Survey, inside: str) -> None:
    """Set the first of the fields whose times are not ISO 8601 but fit a known format; where they fit
    several, only note these."""
    for one in times:
        at = getter(one.path.removeprefix(inside))
        events = events_of(survey, inside.removesuffix("[]."), inside)
        if formats := time_formats(at(event) for event in events):
            guess.time_path, guess.time_formats = one.path, formats
            if len(formats) == 1:
                guess.event["time"] = one.path
            return


def _set_rising_time(guess: Guess, survey: Survey, inside: str, total: int) -> None:
    """Set a field of any name in which nearly all events have times that hardly ever fall."""
    for one in survey.paths.values():
        is_inside = one.path.startswith(inside) and not re.search(r"\[\]|(?<!\\)\.", one.path[len(inside) :])
        is_full = one.kinds["text"] + one.kinds["number"] >= NEARLY * total and one.has_only("text", "number")
        is_varied = one.has_more_values or len(one.values) > 0.5 * total > 1
        is_id = (
            SECRET.search(one.key)
            or snake_case(one.key) in NAMES["id"]
            or snake_case(one.key).endswith("_id")
        )
        if is_id or not (is_inside and is_full and is_varied) or one.path in guess.mapped_paths:
            continue
        at = getter(one.path.removeprefix(inside))
        texts = [at(event) for event in events_of(survey, inside.removesuffix("[]."), inside)]
        formats = [] if is_time(one) else time_formats(texts)
        if not (is_time(one) or formats) or not _is_rising(one.path, formats, survey, inside):
            continue
        guess.by_values["time"] = one.path
        if formats:
            guess.time_path, guess.time_formats = one.path, formats
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
        [seconds(at(event), formats) for event in events_of(one, inside.removesuffix("[]."), inside)]
        for one in lists
    ]
    rises, falls = map(sum, zip(*(_steps(times) for times in every), strict=True))
    return bool(rises) and falls <= FALLING * rises


def set_seq_field(guess: Guess, survey: Survey) -> None:
    """Set the field that numbers the events of a table: nearly all of them, no two of a session alike, and in
    the order of their times."""
    speaks = [getter(path) for path in as_list(guess.event.get("role"))]
    turn_count = sum(any(at(record) is not None for at in speaks) for record in survey.records)
    least = NEARLY * (turn_count or len(survey.records))
    mapped_paths = guess.mapped_paths | {*guess.native_id}
    for one in fields_named(survey.paths, NAMES["seq"]):
        free = one.path not in mapped_paths and one.kinds["number"] >= least
        if free and is_seq(one) and _is_in_order(one.path, guess, survey):
            guess.event["seq"] = one.path
            return


def _is_in_order(path: str, guess: Guess, survey: Survey) -> bool:
    """Whether no two events of a session have the same number, and times hardly ever fall where numbers
    rise."""
    number, when = getter(path), getter(str(guess.event["time"])) if "time" in guess.event else None
    rises = falls = 0
    for records in sessions_of(survey, guess.native_id):
        events = {repr(record): record for record in records if number(record) is not None}.values()
        if len({number(record) for record in events}) < len(events):
            return False
        times = (
            [seconds(when(record), guess.time_formats) for record in sorted(events, key=number)]
            if when
            else []
        )
        more, fall = _steps(times)
        rises, falls = rises + more, falls + fall
    return falls <= FALLING * rises


def _steps(times: list[float | None]) -> tuple[int, int]:
    """(steps from time to time, those of them that fall)."""
    pairs = [(a, b) for a, b in pairwise(times) if a is not None and b is not None]
    return len(pairs), sum(a > b for a, b in pairs)


def seconds(value: object, formats: list[str]) -> float | None:
    """Seconds since 1970 of a time in the first of the formats, if any; None where it cannot be read."""
    with suppress(ValueError):  # a time that cannot be read tells nothing of the order
        return seconds_of(iso_of(value, formats[0]) if formats else value)
    return None
