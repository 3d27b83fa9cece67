"""Fields that name who speaks where more people do than a survey counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from ..fields.paths import getter
from .names import NAME_LENGTH, NAMES, SPEAKERS, fields_named, is_speaker, is_time, parent_of, snake_case
from .records import events_of, sessions_of
from .sessions import session_ids
from .survey import PathSummary, Survey

NOBODY = {"role", "type", "user_type", "by", "turn", "0", "direction", "name", "source", "who"}
"""Names of fields that may say who speaks, but hold no names of many."""
MOST = 0.6
"""Share of the talks in which several must speak."""


def crowd_fields(survey: Survey, inside: str, names: tuple[str, ...] = NAMES["role"]) -> list[PathSummary]:
    """Fields that name too many for a list of roles, the likeliest first: those that are called after who
    speaks, and have several names in most talks, of which others than an author's or sender's come again."""
    fields = fields_named(survey.paths, names, inside)
    return [one for one in fields if _has_names(one, names) and _is_of_talks(one, survey, inside)]


def _has_names(field: PathSummary, names: tuple[str, ...]) -> bool:
    key = snake_case(field.key)
    is_called_so = _is_speakers(field) or key in names
    is_short = field.has_only("text", "number") and field.mean_length <= NAME_LENGTH
    return is_called_so and is_short and not (is_speaker(field) or is_time(field) or key in NOBODY)


def _is_speakers(field: PathSummary) -> bool:
    """Whether the first word of a name is that of who speaks, as in `speaker_idx`, or its object's is."""
    return snake_case(field.key).split("_")[0] in SPEAKERS or parent_of(field) in SPEAKERS


def _is_of_talks(field: PathSummary, survey: Survey, inside: str) -> bool:
    at = getter(field.path.removeprefix(inside))
    names_of = (map(at, events) for events in _talks(field, survey, inside))
    talks = [Counter(str(name) for name in names if name not in (None, "")) for names in names_of]
    long = [names for names in talks if names.total() > 1 + (not _is_speakers(field))]
    again = [len(names) > 1 and (_is_speakers(field) or len(names) < names.total()) for names in long]
    return sum(again) > MOST * len(long)


def _talks(field: PathSummary, survey: Survey, inside: str) -> list[list[dict[str, Any]]]:
    """The events of each list, or of each session of a table."""
    if inside:
        at = inside.removesuffix("[].")
        return [[*events_of(replace(survey, records=[record]), at, inside)] for record in survey.records]
    ids = [one.path for one in session_ids(survey, field.path) if one is not field]
    return sessions_of(survey, ids[:1])
