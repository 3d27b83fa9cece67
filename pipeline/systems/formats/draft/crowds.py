"""Fields that name who speaks where more people do than a survey counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .....schemas.trajectory import ParticipantKind
from ..fields.paths import getter
from ..fields.roles import Role, role_of
from .names import NAME_LENGTH, NAMES, SPEAKERS, fields_named, is_speaker, is_time, parent_of, snake_case
from .records import events_of, sessions_of
from .sessions import session_ids
from .survey import PathSummary, Survey

NOBODY = {"role", "type", "user_type", "by", "turn", "0", "direction", "name", "source", "who"}
"""Names of fields that may say who speaks, but hold no names of many."""
IDS = {"id", "idx", "index", "name", "nick", "nickname", "login", "user", "username", "uid", "uuid", "key"}
IDS |= {"no", "nr", "num", "number", "email", "address", "handle", "hash", "account", "person"}
"""Words behind that of who speaks that leave it a name: `speaker_idx`; an `author_country` is none."""
MOST = 0.6
"""Share of the talks in which several must speak."""
ROUND = 2
"""Events of a talk in which each may have spoken once."""
OWN = 0.9
"""Share of the events with an id of their own from which it is no name."""
NEARLY = 0.9
"""Share of the talks in which whoever talks with all of a crowd speaks."""
FEWEST = 10
"""The fewest talks that tell who does."""


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
    """Whether a name is that of who speaks, maybe with IDS behind it, as in `speaker_idx`, or its object's
    is."""
    first, *rest = snake_case(field.key).split("_")
    return (first in SPEAKERS and IDS.issuperset(rest)) or (
        parent_of(field) in SPEAKERS and not IDS.isdisjoint((first, *rest))
    )


def _is_of_talks(field: PathSummary, survey: Survey, inside: str) -> bool:
    talks = names_by_talk(field, survey, inside)
    long = [names for names in talks if names.total() > 1 + (not _is_speakers(field))]
    again = [len(names) > 1 and (_is_speakers(field) or len(names) < names.total()) for names in long]
    return sum(again) > MOST * len(long) and (snake_case(field.key) in SPEAKERS or not _are_of_events(talks))


def _are_of_events(talks: list[Counter[str]]) -> bool:
    """Whether nearly every event has an id of its own, where talks are long enough for a name to come
    again."""
    ids = Counter(name for names in talks if names.total() > ROUND for name in names.elements())
    return ids.total() > 0 and len(ids) > OWN * ids.total()


def names_by_talk(field: PathSummary, survey: Survey, inside: str) -> list[Counter[str]]:
    """The names in each list, or in each session of a table, with how often they speak."""
    at = getter(field.path.removeprefix(inside))
    names_of = (map(at, events) for events in _talks(field, survey, inside))
    return [Counter(str(name) for name in names if name not in (None, "")) for names in names_of]


def _talks(field: PathSummary, survey: Survey, inside: str) -> list[list[dict[str, Any]]]:
    """The events of each list, or of each session of a table."""
    if inside:
        at = inside.removesuffix("[].")
        return [[*events_of(replace(survey, records=[record]), at, inside)] for record in survey.records]
    ids = [one.path for one in session_ids(survey, field.path) if one is not field]
    return sessions_of(survey, ids[:1])


def partner_of_all(talks: list[Counter[str]]) -> str | None:
    """The one who speaks in nearly all of many talks, whoever else does; None where nobody or several do."""
    if len(talks) < FEWEST:
        return None
    everywhere = Counter(name for names in talks for name in names)
    often = [name for name, count in everywhere.items() if count > NEARLY * len(talks)]
    return often[0] if len(often) == 1 else None


def words_of_kinds(names: Iterable[Role], kind: ParticipantKind) -> dict[str, list[str]]:
    """Word -> the names of a kind that share it and are of it by it, as `bot_1` and `bot_2` do, where no
    other name has it."""
    by_word: dict[str, list[str]] = {}
    others = set[str]()
    for role in names:
        words = re.findall(r"[^\W\d_]+", role.name)
        if not role.is_known or role.kind != kind:
            others.update(words)
        elif says := [word for word in words if _says(word, kind)]:
            by_word.setdefault(says[-1], []).append(role.name)
    return {word: own for word, own in by_word.items() if len(own) > 1 and word not in others}


def _says(word: str, kind: ParticipantKind) -> bool:
    role = role_of(word)
    return role.is_known and role.kind == kind
