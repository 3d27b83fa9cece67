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


def of_times(made: Guess, seen: Survey, inside: str, total: int, take: Take) -> None:
    """The field that says when each of so many events was."""
    times = named(seen.paths, NAMES["time"], inside)
    if not take("time", [one for one in times if is_time(one)]):
        _of_times(made, times, seen, inside)
    if "time" not in made.event and not made.timed:
        _of_moments(made, seen, inside, total)


def _of_times(made: Guess, times: list[PathSeen], seen: Survey, inside: str) -> None:
    """The first field of times that are not ISO 8601; one that may be read in two ways is only told."""
    for one in times:
        at = getter(one.path.removeprefix(inside))
        events = events_of(seen, inside.removesuffix("[]."), inside)
        if formats := time_formats(at(event) for event in events):
            made.timed, made.time_formats = one.path, formats
            if len(formats) == 1:
                made.event["time"] = one.path
            return


def _of_moments(made: Guess, seen: Survey, inside: str, total: int) -> None:
    """A field of any name in which nearly all events have times, each no earlier than the one before."""
    for one in seen.paths.values():
        own = one.path.startswith(inside) and not re.search(r"\[\]|(?<!\\)\.", one.path[len(inside) :])
        full = one.kinds["text"] + one.kinds["number"] >= NEARLY * total and one.only("text", "number")
        many = one.more or len(one.values) > 0.5 * total > 1
        names = SECRET.search(one.key) or spelled(one.key) in NAMES["id"] or spelled(one.key).endswith("_id")
        if names or not (own and full and many) or one.path in made.used:
            continue
        at = getter(one.path.removeprefix(inside))
        texts = [at(event) for event in events_of(seen, inside.removesuffix("[]."), inside)]
        formats = [] if is_time(one) else time_formats(texts)
        if not (is_time(one) or formats) or not _is_rising(one.path, formats, seen, inside):
            continue
        made.by_values["time"] = one.path
        if formats:
            made.timed, made.time_formats = one.path, formats
        if len(formats) < 2:
            made.event["time"] = one.path
        return


def _is_rising(path: str, formats: list[str], seen: Survey, inside: str) -> bool:
    """Whether times hardly ever fall from event to event of a file or list."""
    at = getter(path.removeprefix(inside))
    lists = [
        replace(seen, records=own)
        for own in ([[r] for r in seen.records] if inside else sessions_of(seen, ()))
    ]
    every = [
        [_seconds(at(event), formats) for event in events_of(one, inside.removesuffix("[]."), inside)]
        for one in lists
    ]
    rises, falls = map(sum, zip(*(_steps(times) for times in every), strict=True))
    return bool(rises) and falls <= FALLING * rises


def of_numbers(made: Guess, seen: Survey) -> None:
    """The field that numbers the events of a table: nearly all of them, no two of a session alike, and in the
    order of their times."""
    speaks = [getter(path) for path in several(made.event.get("role"))]
    spoken = sum(any(at(record) is not None for at in speaks) for record in seen.records)
    least = NEARLY * (spoken or len(seen.records))
    taken = made.used | {*made.native_id}
    for one in named(seen.paths, NAMES["seq"]):
        free = one.path not in taken and one.kinds["number"] >= least
        if free and is_seq(one) and _is_in_order(one.path, made, seen):
            made.event["seq"] = one.path
            return


def _is_in_order(path: str, made: Guess, seen: Survey) -> bool:
    """Whether each number is one event's of a session, and where numbers rise, times hardly ever fall."""
    number, when = getter(path), getter(str(made.event["time"])) if "time" in made.event else None
    rises = falls = 0
    for records in sessions_of(seen, made.native_id):
        own = {repr(record): record for record in records if number(record) is not None}.values()
        if len({number(record) for record in own}) < len(own):
            return False
        times = (
            [_seconds(when(record), made.time_formats) for record in sorted(own, key=number)] if when else []
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
