"""One event a record, in a table whose columns' names say nothing: told by what stands in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from .guess_made import Guess
from .guess_names import NAMES, first_one, is_label, is_named, is_time, spelled, time_formats
from .guess_records import in_blocks, repeats, value_at
from .guess_roles import role_of, roles_of
from .guess_speakers import FEW
from .survey import PathSeen, Survey

LEAST = 4
"""Records from which on a table shows who takes turns."""
TURNS = 0.4
"""So many of the records have another speaker than the one before."""
SAID = 10
"""Characters on average from which on texts may be what somebody said."""


def of_columns(made: Guess, seen: Survey) -> bool:
    """The longest texts are what was said; what changes most from record to record, and names a human or an
    agent, is who says it; what comes in blocks is the session."""
    columns = [one for path, one in seen.paths.items() if "[]" not in path]
    formats = {one.path: time_formats(value_at(r, one.path) for r in seen.records) for one in columns}
    times = [one for one in columns if is_time(one) or formats[one.path]]
    said = max((one for one in columns if one not in times and _is_said(one)), key=_length, default=None)
    if said is None or len(seen.records) < LEAST:
        return False
    others = [one for one in columns if one not in times and one is not said]
    blocks = [one for one in others if repeats(one, seen) and in_blocks(one, seen)]
    # Ten digits are seconds since 1970, or a case's number.
    blocks = blocks or [one for one in times if _is_number_of_case(one, seen)]
    session = max(blocks, key=lambda one: (one.only("text"), len(one.values)), default=None)
    who = [one for one in others if one not in blocks and one.only("text") and is_label(one)]
    who = [one for one in who if 2 <= len(one.values) <= FEW and _turns(one, session, seen) >= TURNS]
    who = [one for one in who if any(_is_party(name) for name in one.values)]
    role = max(who, key=lambda one: _turns(one, session, seen), default=None)
    if role is None:
        return False
    made.shape, made.at, made.nameless = "table", None, True
    made.event = {"role": role.path, "text": said.path}
    if when := first_one([one for one in times if one is not session]):
        made.timed, made.time_formats = when.path, formats[when.path]
        if len(made.time_formats) < 2:
            made.event["time"] = when.path
    made.native_id = [session.path] if session else []
    made.roles = roles_of(role.values.items())
    return True


def _is_number_of_case(one: PathSeen, seen: Survey) -> bool:
    whole = all(value.isdigit() for value in one.values)
    unnamed = spelled(one.key) not in NAMES["time"]
    return whole and unnamed and repeats(one, seen) and in_blocks(one, seen)


def _is_party(name: str) -> bool:
    role = role_of(name)
    return role.known and role.kind != "environment"


def _length(one: PathSeen) -> float:
    return one.mean_length


def _is_said(one: PathSeen) -> bool:
    different = one.more or len(one.values) > 0.5 * one.count
    long = one.mean_length >= SAID and not is_named(one)
    return set(one.kinds) <= {"text", "null"} and different and long


def _turns(one: PathSeen, session: PathSeen | None, seen: Survey) -> float:
    """How often another one follows within a session."""
    changes = [before != after for before, after in _pairs(one, session, seen)]
    return sum(changes) / len(changes) if changes else 0.0


def _pairs(one: PathSeen, session: PathSeen | None, seen: Survey) -> Iterator[tuple[Any, Any]]:
    for before, after in itertools.pairwise(seen.records):
        if session is None or value_at(before, session.path) == value_at(after, session.path):
            yield value_at(before, one.path), value_at(after, one.path)
