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


def of_columns(guess: Guess, survey: Survey) -> bool:
    """The longest texts are what was said; what changes most from record to record, and names a human or an
    agent, is who says it; what comes in blocks is the session."""
    columns = [field for path, field in survey.paths.items() if "[]" not in path]
    formats = {field.path: time_formats(value_at(r, field.path) for r in survey.records) for field in columns}
    times = [field for field in columns if is_time(field) or formats[field.path]]
    text = max(
        (field for field in columns if field not in times and _is_said(field)), key=_length, default=None
    )
    if text is None or len(survey.records) < LEAST:
        return False
    others = [field for field in columns if field not in times and field is not text]
    blocks = [field for field in others if repeats(field, survey) and in_blocks(field, survey)]
    # Ten digits are seconds since 1970, or a case's number.
    blocks = blocks or [field for field in times if _is_number_of_case(field, survey)]
    session = max(blocks, key=lambda field: (field.only("text"), len(field.values)), default=None)
    speakers = [field for field in others if field not in blocks and field.only("text") and is_label(field)]
    speakers = [
        field
        for field in speakers
        if 2 <= len(field.values) <= FEW and _turns(field, session, survey) >= TURNS
    ]
    speakers = [field for field in speakers if any(_is_party(name) for name in field.values)]
    role = max(speakers, key=lambda field: _turns(field, session, survey), default=None)
    if role is None:
        return False
    guess.shape, guess.at, guess.nameless = "table", None, True
    guess.event = {"role": role.path, "text": text.path}
    if time := first_one([field for field in times if field is not session]):
        guess.timed, guess.time_formats = time.path, formats[time.path]
        if len(guess.time_formats) < 2:
            guess.event["time"] = time.path
    guess.native_id = [session.path] if session else []
    guess.roles = roles_of(role.values.items())
    return True


def _is_number_of_case(field: PathSeen, survey: Survey) -> bool:
    is_integer = all(value.isdigit() for value in field.values)
    has_other_name = spelled(field.key) not in NAMES["time"]
    return is_integer and has_other_name and repeats(field, survey) and in_blocks(field, survey)


def _is_party(name: str) -> bool:
    role = role_of(name)
    return role.known and role.kind != "environment"


def _length(field: PathSeen) -> float:
    return field.mean_length


def _is_said(field: PathSeen) -> bool:
    different = field.more or len(field.values) > 0.5 * field.count
    long = field.mean_length >= SAID and not is_named(field)
    return set(field.kinds) <= {"text", "null"} and different and long


def _turns(field: PathSeen, session: PathSeen | None, survey: Survey) -> float:
    """How often another one follows within a session."""
    changes = [before != after for before, after in _pairs(field, session, survey)]
    return sum(changes) / len(changes) if changes else 0.0


def _pairs(field: PathSeen, session: PathSeen | None, survey: Survey) -> Iterator[tuple[Any, Any]]:
    for before, after in itertools.pairwise(survey.records):
        if session is None or value_at(before, session.path) == value_at(after, session.path):
            yield value_at(before, field.path), value_at(after, field.path)
