"""Who speaks in the events of a survey, and what they are called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ....schemas.trajectory import ParticipantKind
from .guess_made import Guess
from .guess_names import (
    BOTS_ARE,
    BOTS_HAVE,
    CALLED,
    CHAT,
    NAMES,
    PEOPLE,
    PLAYERS,
    SECRET,
    SESSION,
    SPEAKERS,
    SUBJECTS,
    TOOLS,
    first_one,
    is_number,
    is_sentence,
    is_sides,
    is_speaker,
    named,
    parent_of,
    spelled,
)
from .guess_records import events_of, items_in, repeats, value_at
from .guess_roles import BOTS, Role, otherwise, role_of, roles_of
from .guess_sessions import is_spoken_with
from .mapping import ROLES
from .paths import getter
from .survey import PathSeen, Survey

MOST = 0.5
"""A field that fewer events have is not who speaks, if another may be."""
TYPES = ("event", "event_type", "kind", "type")
AROUND = {"tool", "tools", "function", "environment", "env"}
"""Roles of what people and agents act upon, whatever its name."""
ALONE = 0.9
"""In so many sessions with one name, others may come for a hand-over."""
NEARLY = 0.9
"""What events are called may say who acts, where fewer of them have another field that does."""
PLAIN = {*ROLES, *BOTS}
"""What events are called that are somebody's, and nothing else."""
FEW = 6
"""So many different values may say how far a task is."""


class Speaking(NamedTuple):
    """Fields that may say who speaks."""

    likely: list[PathSeen]
    """The likeliest first."""
    typed: bool
    """Whether they say of what kind an event is, and by that whose."""
    playing: list[PathSeen]
    """Those of who plays or drives."""


def speaking(survey: Survey, inside: str, names: list[PathSeen], total: int) -> Speaking:
    """Which fields of so many events may say who speaks; `names` are those of what is done."""
    likely = _likeliest(survey, inside, names, total) or _parties(survey, inside) or parties(survey, inside)
    players = _players(survey, inside, total)
    likely = likely or players
    by_type = list[PathSeen]()
    if not likely or likely[0].count < NEARLY * total:
        by_type = _speakers_by_type(survey, inside, max(MOST * total, likely[0].count if likely else 0))
    return Speaking(by_type or likely, bool(by_type), players)


def _likeliest(survey: Survey, inside: str, names: list[PathSeen], total: int) -> list[PathSeen]:
    """Fields that are called like those who speak, the likeliest first."""
    candidates = [
        one
        for one in named(survey.paths, NAMES["role"], inside)
        if is_speaker(one) and parent_of(one) not in TOOLS
    ]
    sides = max((one.count for one in candidates if is_sides(one)), default=0)
    candidates.sort(
        key=lambda one: (
            one.count < MOST * total,
            len(one.values) == 1 and sides >= one.count,
            parent_of(one) not in SPEAKERS,
        )
    )
    candidates = [one for one in candidates if one not in names or one.key.lower() in SPEAKERS]
    candidates = [
        one for one in candidates if one.key != "type" or len(one.values) > 1 or len(candidates) == 1
    ]
    return [one for one in candidates if not is_number(one)]


def _speakers_by_type(survey: Survey, inside: str, least: float) -> list[PathSeen]:
    """What more events than that are called, where it says of each whose it is (`user_message`, `tool_call`),
    or is plainly who speaks and else what happened: `user`, `bot`, `slot`."""
    fits = list[PathSeen]()
    for one in named(survey.paths, TYPES, inside, depth=0):
        roles = [role_of(name) for name in one.values]
        known_roles = [role for role in roles if role.known]
        plain_roles = [role for role in known_roles if role.name.lower() in PLAIN]
        if one.only("text") and not one.more and one.count > least:
            sides = {role.kind for role in (known_roles if len(known_roles) == len(roles) else plain_roles)}
            fits += [one] if {"human", "agent"} <= sides else []
    return fits


def _parties(survey: Survey, inside: str) -> list[PathSeen]:
    """Ids that say who acts: in most lists of events there are several, of which some come again."""
    ids = [
        survey.paths[path] for name in NAMES["id"] if inside and (path := f"{inside}{name}") in survey.paths
    ]
    few = [one for one in ids if one.only("text") and not one.more and 2 <= len(one.values) <= FEW]
    most = 0.6 * len(survey.records)
    return [one for one in few if sum(_come_again(one, survey, r, inside) for r in survey.records) > most]


def parties(survey: Survey, inside: str) -> list[PathSeen]:
    """Fields of any name in which nothing stands but names of people and agents, beside what they say."""
    if not inside or not sentences(survey, inside):
        return []
    fields = (one for one in survey.paths.values() if one.path.startswith(inside) and is_sides(one))
    return [one for one in fields if not re.search(r"\[\]|(?<!\\)\.", one.path[len(inside) :])]


def _players(survey: Survey, inside: str, total: int) -> list[PathSeen]:
    """Fields such as `player` or `driver` of nearly all events, in which somebody is plainly a person or an
    agent."""
    fields = [one for one in named(survey.paths, PLAYERS, inside, depth=0) if spelled(one.key) in PLAYERS]
    fields = [one for one in fields if one.only("text") and is_speaker(one) and one.count >= NEARLY * total]
    return [
        one
        for one in fields
        if any(role.known and role.kind != "environment" for role in map(role_of, one.values))
    ]


def _come_again(one: PathSeen, survey: Survey, record: dict[str, Any], inside: str) -> bool:
    at = getter(one.path.removeprefix(inside))
    events = events_of(replace(survey, records=[record]), inside.removesuffix("[]."), inside)
    counts = Counter(str(at(event)) for event in events)
    return 1 < len(counts) < counts.total()


def sentences(survey: Survey, inside: str) -> list[PathSeen]:
    """What somebody may have said under a name that does not tell, the longest first."""
    fields = [one for one in survey.paths.values() if one.path.startswith(inside) and is_sentence(one)]
    fields = [one for one in fields if not re.search(r"\[\]|(?<!\\)\.", one.path[len(inside) :])]
    return sorted((one for one in fields if not SECRET.search(one.key)), key=lambda one: -one.mean_length)


def named_roles(guess: Guess, survey: Survey, inside: str, role: PathSeen, actions: list[PathSeen]) -> None:
    """Who speaks: by their role or, where it tells more, by their name, that of nothing that was done."""
    candidates = [one for one in named(survey.paths, NAMES["actor"], inside) if one not in actions]
    candidates = [
        one
        for one in candidates
        if one is not role and (is_speaker(one) or otherwise(named_with(survey, inside, one.path, role.path)))
    ]
    candidates = [one for one in candidates if parent_of(one) not in TOOLS]
    candidates = [one for one in candidates if not _is_addressee(survey, inside, one.path, role.path)]
    if parent_of(role) in (*SPEAKERS, *PEOPLE):
        candidates.sort(key=lambda one: one.path.rpartition(".")[0] != role.path.rpartition(".")[0])
    name = first_one([one for one in candidates if inside or not is_spoken_with(one, role.path, survey)])
    values: Counter[str] = Counter(dict(role.values))
    kinds: dict[str, ParticipantKind] = {}
    if name is not None:
        names, roles = names_and_roles(survey, inside, name.path, role.path)
        beside = _kinds_by_name(survey, inside, name.path, role.path)
        wrong = otherwise(named_with(survey, inside, name.path, role.path))
        beside = {who: kind for who, kind in beside.items() if who not in wrong}
        if wrong or (
            len(names) > len(roles) and not all(_agrees(role_of(who), beside.get(who)) for who in names)
        ):
            guess.event["role"] = [name.path, role.path]
            values = names + _nameless_roles(survey, inside, name.path, role.path)
            kinds = beside
            guess.renamed = {
                who: role_of(who).kind for who in names if who not in kinds and role_of(who).known
            }
        elif len(names) > 1:  # who they are, their roles tell: of names that come later, too
            guess.event["actor"] = [name.path, role.path]
            guess.told = {who: beside[who] for who in names} if len(names) > len(roles) else {}
            guess.strip = len({_plain_name(one) for one in names}) < len(names)
    plain: Counter[str] = Counter()
    for value, count in values.items():
        plain[_plain_name(value)] += count
    alike = len(plain) < len(values)
    guess.strip |= alike
    guess.roles = roles_of((plain if alike else values).items())
    kinds = {_plain_name(who) if alike else who: kind for who, kind in kinds.items()}
    guess.roles = [_with_kind(one, kinds.get(one.name)) for one in guess.roles]
    if role.key.lower().startswith("agent") and not any(one.known for one in guess.roles):
        guess.roles = [replace(one, kind="agent") for one in guess.roles]
    if role.key.lower() in PEOPLE and "actor" not in guess.event and not _two_sides(guess.roles):
        guess.roles = [one if one.known else replace(one, kind="human") for one in guess.roles]
    _with_bots(guess, survey, inside, role)


def names_and_roles(survey: Survey, inside: str, name: str, role: str) -> tuple[Counter[str], set[str]]:
    """Names of the events that have one, and the roles of those events."""
    names: Counter[str] = Counter()
    roles: set[str] = set()
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    for event in events_of(survey, inside.removesuffix("[]."), inside):
        value = at_name(event)
        if isinstance(value, (str, int)) and value != "":
            names[str(value)] += 1
            roles.add(str(at_role(event)))
    return names, roles


def named_with(survey: Survey, inside: str, name: str, role: str) -> Iterator[tuple[object, str, str]]:
    """Of each event with a name its session, the name and the role."""
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    ids = [] if inside else named(survey.paths, (*SESSION, *SUBJECTS), depth=0)
    ids = [one for one in ids if one.key != "name" and one.path not in (name, role) and repeats(one, survey)]
    for number, record in enumerate(survey.records):
        session = number if inside else value_at(record, ids[0].path) if ids else None
        for event in events_of(replace(survey, records=[record]), inside.removesuffix("[]."), inside):
            if (who := at_name(event)) not in (None, ""):
                yield session, str(who), str(at_role(event)).lower()


def _agrees(role: Role, kind: ParticipantKind | None) -> bool:
    """Whether a role tells who somebody is, and their name says nothing else."""
    return kind is not None and (kind == "environment" or (role.known, role.kind) != (True, "environment"))


def _with_kind(role: Role, kind: ParticipantKind | None) -> Role:
    """A role as another field tells it: that counts more than what a name has in it, but for the terminal
    that a framework calls a user."""
    return replace(role, kind=kind, known=True) if kind and _agrees(role, kind) else role


def _kinds_by_name(survey: Survey, inside: str, name: str, role: str) -> dict[str, ParticipantKind]:
    """Names beside which roles of one kind stand, with that kind.

    `user` tells nothing where it stands beside several names of a session and all roles are a chat API's:
    frameworks call all agents so that a model hears. Of the environment is only what bears a tool's role.
    """
    roles: dict[str, set[str]] = {}
    users: dict[object, set[str]] = {}
    for session, who, what in named_with(survey, inside, name, role):
        roles.setdefault(who, set()).add(what)
        if what == "user":
            users.setdefault(session, set()).add(who)
    of_api = set().union(*roles.values()) <= {*CHAT, "none"}
    vague = {"user"} if of_api and any(len(names) > 1 for names in users.values()) else set[str]()
    kinds: dict[str, ParticipantKind] = {}
    for who, own in roles.items():
        role_kinds = {one.kind for one in map(role_of, own - vague) if one.known}
        if own <= AROUND:
            kinds[who] = "environment"
        elif not own & vague and all(role_of(what).known for what in own) and len(role_kinds) == 1:
            kinds.update((who, kind) for kind in role_kinds - {"environment"})
    return kinds


def _is_addressee(survey: Survey, inside: str, name: str, role: str) -> bool:
    """Whether a name is of who is spoken with: one a session, beside humans and agents alike."""
    names: dict[object, set[str]] = {}
    kinds: dict[object, set[str]] = {}
    for session, who, what in named_with(survey, inside, name, role):
        names.setdefault(session, set()).add(who)
        kinds.setdefault(session, set()).add(role_of(what).kind)
    both = sum({"human", "agent"} <= own for own in kinds.values())
    alone = sum(len(own) == 1 for own in names.values())
    return both > MOST * len(kinds) and alone > ALONE * len(names)


def _nameless_roles(survey: Survey, inside: str, name: str, role: str) -> Counter[str]:
    """Roles of the events that have no name."""
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    events = events_of(survey, inside.removesuffix("[]."), inside)
    return Counter(str(at_role(event)) for event in events if at_name(event) in (None, "") and at_role(event))


def _plain_name(name: str) -> str:
    return re.sub(r"\s*\(.*\)$", "", name) or name


def _two_sides(roles: list[Role]) -> bool:
    """Whether a human and an agent are there already."""
    return {"human", "agent"} <= {one.kind for one in roles if one.known}


def _with_bots(guess: Guess, survey: Survey, inside: str, role: PathSeen) -> None:
    """Where only bots have a field, that says who is one, and another field what they are called."""
    total = items_in(survey, inside.removesuffix("[].")) if inside else len(survey.records)
    marks = [one for one in named(survey.paths, BOTS_HAVE, inside) if 0 < one.kinds["text"] < total]
    marks = [one for one in marks if one.key.lower() in BOTS_HAVE]
    flags = [one for one in named(survey.paths, BOTS_ARE, inside) if {"True", "False"} == set(one.values)]
    if flags and "actor" not in guess.event:
        guess.bots, guess.bots_are = flags[0].path, True
    if not marks or "actor" in guess.event or flags:
        return
    guess.bots = marks[0].path
    others = [one for one in named(survey.paths, CALLED, inside) if is_speaker(one) and one.path != role.path]
    names = sorted([role, *others], key=lambda one: -one.count)
    guess.event["role"] = [one.path for one in (*names, marks[0])]
