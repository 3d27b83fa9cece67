"""Guesses the columns of a table of events by their values, where their names say nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ..fields.roles import role_of, roles_of
from .names import NAMES, first_field, is_label, is_one_word, is_time, snake_case, time_formats
from .records import in_blocks, repeats, value_at
from .result import Guess
from .speakers import FEW
from .survey import PathSummary, Survey

LEAST = 4
"""The least number of records of a table that show who takes turns."""
TURNS = 0.4
"""The least share of records with another speaker than the record before."""
SAID = 10
"""The least mean length, in characters, of texts that may be what somebody said."""


def set_column_shape(guess: Guess, survey: Survey) -> bool:
    """Set the columns of a table, if it has a text and a speaker: the longest texts are what is said, the
    names that change most from record to record, a human or an agent among them, are who says it, and values
    that come in blocks are the session."""
    columns = [field for path, field in survey.paths.items() if "[]" not in path]
    formats = {field.path: time_formats(value_at(r, field.path) for r in survey.records) for field in columns}
    times = [field for field in columns if is_time(field) or formats[field.path]]
    text = max(
        (field for field in columns if field not in times and _is_utterance(field)), key=_length, default=None
    )
    if text is None or len(survey.records) < LEAST:
        return False
    others = [field for field in columns if field not in times and field is not text]
    blocks = [field for field in others if repeats(field, survey) and in_blocks(field, survey)]
    # A number of ten digits may be seconds since 1970, or that of a case.
    blocks = blocks or [field for field in times if _is_number_of_case(field, survey)]
    session = max(blocks, key=lambda field: (field.has_only("text"), len(field.values)), default=None)
    speakers = [
        field for field in others if field not in blocks and field.has_only("text") and is_label(field)
    ]
    speakers = [
        field
        for field in speakers
        if 2 <= len(field.values) <= FEW and _turns(field, session, survey) >= TURNS
    ]
    speakers = [field for field in speakers if any(_is_party(name) for name in field.values)]
    role = max(speakers, key=lambda field: _turns(field, session, survey), default=None)
    if role is None:
        return False
    guess.shape, guess.at, guess.has_opaque_names = "table", None, True
    guess.event = {"role": role.path, "text": text.path}
    if time := first_field([field for field in times if field is not session]):
        guess.time_path, guess.time_formats = time.path, formats[time.path]
        if len(guess.time_formats) < 2:
            guess.event["time"] = time.path
    guess.native_id = [session.path] if session else []
    guess.roles = roles_of(role.values.items())
    return True


def _is_number_of_case(field: PathSummary, survey: Survey) -> bool:
    is_integer = all(value.isdigit() for value in field.values)
    has_other_name = snake_case(field.key) not in NAMES["time"]
    return is_integer and has_other_name and repeats(field, survey) and in_blocks(field, survey)


def _is_party(name: str) -> bool:
    role = role_of(name)
    return role.is_known and role.kind != "environment"


def _length(field: PathSummary) -> float:
    return field.mean_length


def _is_utterance(field: PathSummary) -> bool:
    different = field.has_more_values or len(field.values) > 0.5 * field.count
    long = field.mean_length >= SAID and not is_one_word(field)
    return set(field.kinds) <= {"text", "null"} and different and long


def _turns(field: PathSummary, session: PathSummary | None, survey: Survey) -> float:
    """The share of records with another value than the record before, within a session."""
    changes = [before != after for before, after in _pairs(field, session, survey)]
    return sum(changes) / len(changes) if changes else 0.0


def _pairs(field: PathSummary, session: PathSummary | None, survey: Survey) -> Iterator[tuple[Any, Any]]:
    for before, after in itertools.pairwise(survey.records):
        if session is None or value_at(before, session.path) == value_at(after, session.path):
            yield value_at(before, field.path), value_at(after, field.path)
