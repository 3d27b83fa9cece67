"""Which field of a table says of which session a record is."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from .guess_made import Guess
from .guess_names import (
    GROUPS,
    NAMES,
    PLACES,
    SESSION,
    SUBJECTS,
    first_one,
    named,
    parent_of,
    spelled,
)
from .guess_records import in_blocks, repeats, value_at
from .paths import several
from .survey import PathSeen, Survey

TALKS = SESSION[: SESSION.index("trajectory_id")]
"""What sessions are called in which several talk in turn."""
DIFFERENT = 0.5
"""More of the questions of a session than that are different."""
AGAIN = 0.1
"""Fewer of them follow on themselves."""
OWN = {*NAMES["id"], "key", "hash", "name"}
"""What the ids of anything are called: whose they are, says the object that they lie in."""


def session_ids(survey: Survey, role: str | list[str] | None, depth: int = 1) -> list[PathSeen]:
    """Fields of a table that say which session a record is of, the likeliest first: no id of who speaks."""
    candidates = [one for one in named(survey.paths, SESSION, depth=depth) if repeats(one, survey)]
    candidates = [
        one for one in candidates if not any(_is_speakers(one, path, survey) for path in several(role)[:1])
    ]
    return sorted(
        candidates, key=lambda one: spelled(one.key) in OWN and spelled(parent_of(one)) not in SESSION
    )


def of_groups(guess: Guess, survey: Survey) -> list[PathSeen]:
    """What groups of records are called that follow each other, where several speak in most: sessions."""
    role = guess.event.get("role")
    candidates = [
        one for one in named(survey.paths, GROUPS, depth=0) if spelled(one.key) in {*GROUPS} - {*PLACES}
    ]
    candidates = [
        one
        for one in candidates
        if one.path not in guess.used and repeats(one, survey) and in_blocks(one, survey)
    ]
    candidates = [
        one for one in candidates if not isinstance(role, str) or stands_with_several(one, role, survey)
    ]
    if candidates:
        guess.by_values["native_id"] = candidates[0].path
    return candidates[:1]


def is_spoken_with(field: PathSeen, role: str, survey: Survey) -> bool:
    """Whether a column of a table is of people, and beside most of them stand several speakers: with them,
    and not only by them, is spoken."""
    return field in named(survey.paths, SUBJECTS, depth=0) and stands_with_several(field, role, survey)


def stands_with_several(field: PathSeen, role: str, survey: Survey, most: float = 0.6) -> bool:
    """Whether several speakers stand beside most values of a column of a table."""
    beside: dict[str, set[str]] = {}
    for record in survey.records:
        if (value := value_at(record, field.path)) and (speaker := value_at(record, role)):
            beside.setdefault(str(value), set()).add(str(speaker))
    return sum(len(speakers) > 1 for speakers in beside.values()) > most * len(beside)


def _is_speakers(field: PathSeen, role: str, survey: Survey) -> bool:
    """Whether an id is of who speaks: it lies in the object that says who does, or one speaker alone stands
    beside each of its values."""
    if spelled(field.key) not in OWN:
        return False
    parent = role.rpartition(".")[0]
    alone = len(survey.paths[role].values) > 1 and not stands_with_several(field, role, survey, most=0)
    return (parent != "" and field.path.rpartition(".")[0] == parent) or alone


def session_of_rounds(survey: Survey, question: str) -> PathSeen | None:
    """What says of which session a record is that has a question, at `asked`, and its answer: sessions have
    several, in their order, and hardly a question twice, above all not behind itself under one number, as
    rival answers to it stand, or what several raters say of one, nor with all that was asked before."""
    candidates = [one for one in named(survey.paths, TALKS, depth=0) if spelled(one.key) in TALKS]
    session = first_one([one for one in candidates if repeats(one, survey)])
    if session is None:
        return None
    numbers = [one.path for one in named(survey.paths, NAMES["seq"], depth=0) if one.only("number")]
    sessions: dict[str, list[dict[str, Any]]] = {}
    for record in survey.records:
        sessions.setdefault(str(value_at(record, session.path)), []).append(record)
    questions = sum(
        len({str(value_at(record, question)) for record in records}) for records in sessions.values()
    )
    is_ordered = all(
        _rises([value_at(record, path) for record in records])
        for records in sessions.values()
        for path in numbers
    )
    pairs = [pair for records in sessions.values() for pair in pairwise(records)]
    repetitions = sum(
        all(value_at(a, path) == value_at(b, path) for path in (question, *numbers))
        or _goes_on(value_at(a, question), value_at(b, question))
        for a, b in pairs
    )
    is_dialogue = questions > DIFFERENT * len(survey.records) and repetitions < AGAIN * len(survey.records)
    return session if is_ordered and is_dialogue else None


def _goes_on(before: Any, after: Any) -> bool:
    """Whether a question begins with the one before it, and has more."""
    texts = isinstance(before, str) and isinstance(after, str) and bool(before.strip())
    return texts and len(after) > len(before) and after.startswith(before.strip())


def _rises(values: list[Any]) -> bool:
    numbers = [value for value in values if isinstance(value, (int, float))]
    return all(a <= b for a, b in pairwise(numbers))
