"""Who speaks in the events of a survey, and what they are called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from .....schemas.trajectory import ParticipantKind
from ..fields.mapping import ROLES
from ..fields.paths import getter
from ..fields.roles import BOTS, Role, contrary_kinds, role_of, roles_of
from .crowds import crowd_fields, names_by_talk, partner_of_all, words_of_kinds
from .names import (
    ACCOUNTS,
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
    TYPES_OF_SPEAKERS,
    fields_named,
    first_field,
    has_both_sides,
    is_sentence,
    is_speaker,
    is_turn_number,
    parent_of,
    snake_case,
    tells_messages,
)
from .records import events_of, items_in, repeats, value_at
from .result import Guess
from .sessions import is_spoken_with
from .survey import PathSummary, Survey

MOST = 0.5
"""Share of the events that must have a field for it to be who speaks, if another may be."""
TYPES = ("event", "event_type", "kind", "type")
AROUND = {"tool", "tools", "function", "environment", "env"}
"""Roles of what people and agents act upon, whatever its name."""
ALONE = 0.9
"""Share of the sessions in which an addressee's field has a single name; in the others there may be a
hand-over."""
NEARLY = 0.9
"""Share of the events that must have a field for it to be a player's; where fewer have one of who speaks, the
type of an event may say it."""
NAMED_BY_TYPE = ("speaker", "author", "from", "speaker_id", "author_id", "from_id")
"""Fields that say who speaks where another one says what they are."""
PLAIN = {*ROLES, *BOTS}
"""Types of events that name who speaks and nothing else."""
FLAGS = (("true", "false"), ("1", "0"), ("yes", "no"), ("y", "n"), ("t", "f"))
"""The values of a flag, in small letters: of what it is true of, and of all else."""
FEW = 6
"""Most different values of a field of who acts, or of how far a task is."""


class SpeakerFields(NamedTuple):
    """Fields that may say who speaks."""

    candidates: list[PathSummary]
    """Those of who speaks, the likeliest first."""
    are_types: bool
    """Whether the candidates are types of events (`user_message`), which imply who acts."""
    players: list[PathSummary]
    """Fields such as `player` or `driver`."""


def speaker_fields(survey: Survey, inside: str, names: list[PathSummary], total: int) -> SpeakerFields:
    """The fields that may say who speaks in `total` events; `names` are fields of what is done."""
    likely = (
        _fields_by_name(survey, inside, names, total)
        or _party_ids(survey, inside)
        or party_fields(survey, inside)
    )
    players = _player_fields(survey, inside, total)
    likely = likely or players
    by_type = list[PathSummary]()
    if not likely or likely[0].count < NEARLY * total:
        by_type = _fields_by_type(survey, inside, max(MOST * total, likely[0].count if likely else 0))
    return SpeakerFields(by_type or likely, bool(by_type), players)


def _fields_by_name(survey: Survey, inside: str, names: list[PathSummary], total: int) -> list[PathSummary]:
    """Fields under a usual name of who speaks, the likeliest first."""
    crowds = crowd_fields(survey, inside)
    candidates = [
        one
        for one in fields_named(survey.paths, NAMES["role"], inside)
        if (is_speaker(one) or one in crowds) and parent_of(one) not in TOOLS
    ]
    sides = max((one.count for one in candidates if has_both_sides(one)), default=0)
    is_named = any(map(partial(_names_most, total=total), candidates))
    types = {*TYPES_OF_SPEAKERS, "type"} if is_named else set[str]()
    candidates.sort(
        key=lambda one: (
            one.count < MOST * total,
            len(one.values) == 1 and sides >= one.count,
            parent_of(one) not in SPEAKERS,
            snake_case(one.key) in types and not any(map(_is_party, one.values)),
        )
    )
    candidates = [one for one in candidates if one not in names or one.key.lower() in SPEAKERS]
    candidates = [
        one for one in candidates if one.key != "type" or len(one.values) > 1 or len(candidates) == 1
    ]
    return [one for one in candidates if not is_turn_number(one)]


def _names_most(field: PathSummary, total: int) -> bool:
    """Whether a field says who speaks in most events; a `name` that some lack may be a tool's."""
    events = field.count - field.kinds["null"] - field.values[""]
    return field.key != "type" and events >= (NEARLY if field.key == "name" else MOST) * total


def _is_party(name: str) -> bool:
    """Whether a name is plainly a person's or an agent's."""
    role = role_of(name)
    return role.is_known and role.kind != "environment"


def _fields_by_type(survey: Survey, inside: str, least: float) -> list[PathSummary]:
    """Types of more than `least` events that all say who acts (`user_message`, `tool_call`), or of which some
    are plainly who speaks and the others what happened: `user`, `bot`, `slot`; or messages of both sides
    among others."""
    fits = list[PathSummary]()
    for one in fields_named(survey.paths, TYPES, inside, depth=0):
        roles = [role_of(name) for name in one.values]
        known_roles = [role for role in roles if role.is_known]
        plain_roles = [role for role in known_roles if role.name.lower() in PLAIN]
        if one.has_only("text") and not one.has_more_values and one.count > least:
            sides = {role.kind for role in (known_roles if len(known_roles) == len(roles) else plain_roles)}
            fits += [one] if {"human", "agent"} <= sides or tells_messages(one) else []
    return fits


def _party_ids(survey: Survey, inside: str) -> list[PathSummary]:
    """Ids that say who acts: in most lists of events there are several of them, and some come again."""
    ids = [
        survey.paths[path] for name in NAMES["id"] if inside and (path := f"{inside}{name}") in survey.paths
    ]
    few = [
        one for one in ids if one.has_only("text") and not one.has_more_values and 2 <= len(one.values) <= FEW
    ]
    most = 0.6 * len(survey.records)
    return [one for one in few if sum(_has_recurring(one, survey, r, inside) for r in survey.records) > most]


def party_fields(survey: Survey, inside: str) -> list[PathSummary]:
    """Fields of any name that hold nothing but names of people and agents, in events that hold sentences,
    too."""
    if not inside or not sentence_fields(survey, inside):
        return []
    fields = (one for one in survey.paths.values() if one.path.startswith(inside) and has_both_sides(one))
    return [one for one in fields if not re.search(r"\[\]|(?<!\\)\.", one.path[len(inside) :])]


def _player_fields(survey: Survey, inside: str, total: int) -> list[PathSummary]:
    """Fields such as `player` or `driver` of nearly all events, in which somebody is plainly a person or an
    agent."""
    fields = [
        one for one in fields_named(survey.paths, PLAYERS, inside, depth=0) if snake_case(one.key) in PLAYERS
    ]
    fields = [
        one for one in fields if one.has_only("text") and is_speaker(one) and one.count >= NEARLY * total
    ]
    return [one for one in fields if any(map(_is_party, one.values))]


def _has_recurring(one: PathSummary, survey: Survey, record: dict[str, Any], inside: str) -> bool:
    at = getter(one.path.removeprefix(inside))
    events = events_of(replace(survey, records=[record]), inside.removesuffix("[]."), inside)
    counts = Counter(str(at(event)) for event in events)
    return 1 < len(counts) < counts.total()


def sentence_fields(survey: Survey, inside: str) -> list[PathSummary]:
    """Fields of sentences that somebody may have said, whatever their name, the longest first."""
    fields = [one for one in survey.paths.values() if one.path.startswith(inside) and is_sentence(one)]
    fields = [one for one in fields if not re.search(r"\[\]|(?<!\\)\.", one.path[len(inside) :])]
    return sorted((one for one in fields if not SECRET.search(one.key)), key=lambda one: -one.mean_length)


def set_roles(
    guess: Guess, survey: Survey, inside: str, role: PathSummary, actions: list[PathSummary]
) -> None:
    """Set who speaks: by their role or, where that tells more, by their name. `actions` are fields of what
    was done, which name nobody."""
    if role in crowd_fields(survey, inside):
        _set_crowd(guess, survey, inside, role)
        return
    names_beside = NAMES["actor"]
    if snake_case(role.key) in (*TYPES_OF_SPEAKERS, "speaker_role"):
        names_beside += NAMED_BY_TYPE
    candidates = [one for one in fields_named(survey.paths, names_beside, inside) if one not in actions]
    candidates = [
        one
        for one in candidates
        if one is not role
        and (is_speaker(one) or contrary_kinds(event_senders(survey, inside, one.path, role.path)))
    ]
    candidates = [one for one in candidates if parent_of(one) not in TOOLS]
    candidates = [one for one in candidates if not _is_addressee(survey, inside, one.path, role.path)]
    candidates = [one for one in candidates if not _is_account(survey, inside, one, role.path)]
    if parent_of(role) in (*SPEAKERS, *PEOPLE):
        candidates.sort(key=lambda one: one.path.rpartition(".")[0] != role.path.rpartition(".")[0])
    name = first_field([one for one in candidates if inside or not is_spoken_with(one, role.path, survey)])
    if name is None and (crowd := _crowd_beside(survey, inside, role)) is not None:
        guess.event["actor"] = [crowd.path, role.path]
    values: Counter[str] = Counter(dict(role.values))
    kinds: dict[str, ParticipantKind] = {}
    if name is not None:
        names, roles = names_and_roles(survey, inside, name.path, role.path)
        beside = _kinds_by_name(survey, inside, name.path, role.path)
        wrong = contrary_kinds(event_senders(survey, inside, name.path, role.path))
        beside = {who: kind for who, kind in beside.items() if who not in wrong}
        if wrong or (
            len(names) > len(roles) and not all(_agrees(role_of(who), beside.get(who)) for who in names)
        ):
            guess.event["role"] = [name.path, role.path]
            values = names + _nameless_roles(survey, inside, name.path, role.path)
            kinds = beside
            guess.kinds_from_names = {
                who: role_of(who).kind for who in names if who not in kinds and role_of(who).is_known
            }
        elif len(names) > 1:  # who they are, their roles tell: of names that come later, too
            guess.event["actor"] = [name.path, role.path]
            guess.kinds_from_roles = {who: beside[who] for who in names} if len(names) > len(roles) else {}
            guess.strip_names = len({_plain_name(one) for one in names}) < len(names)
    plain: Counter[str] = Counter()
    for value, count in values.items():
        plain[_plain_name(value)] += count
    alike = len(plain) < len(values)
    guess.strip_names |= alike
    guess.roles = roles_of((plain if alike else values).items())
    kinds = {_plain_name(who) if alike else who: kind for who, kind in kinds.items()}
    guess.roles = [_with_kind(one, kinds.get(one.name)) for one in guess.roles]
    if role.key.lower().startswith("agent") and not any(one.is_known for one in guess.roles):
        guess.roles = [replace(one, kind="agent") for one in guess.roles]
    if role.key.lower() in PEOPLE and "actor" not in guess.event and not _has_both_sides(guess.roles):
        guess.roles = [one if one.is_known else replace(one, kind="human") for one in guess.roles]
    _set_bots(guess, survey, inside, role)


def _set_crowd(guess: Guess, survey: Survey, inside: str, role: PathSummary) -> None:
    """Set that many speak: people, or agents where most are called so, but for those whose names say that
    they are something else."""
    talks = names_by_talk(role, survey, inside)
    names = [role_of(name, count) for name, count in sum(talks, Counter()).items()]
    agents = sum(one.is_known and one.kind == "agent" for one in names)
    guess.crowd = role.path
    guess.crowd_kind = "agent" if agents > MOST * len(names) or "agent" in role.key.lower() else "human"
    guess.roles = [one for one in names if one.is_known and one.kind != guess.crowd_kind]
    partner = partner_of_all(talks) if guess.crowd_kind == "human" and not agents else None
    guess.roles += [one for one in names if one.name == partner and not one.is_known]
    _set_words(guess, names)
    _set_bots(guess, survey, inside, role)


def _set_words(guess: Guess, names: list[Role]) -> None:
    """Set words in place of the names of a crowd that have them, for there are more than a look shows."""
    for kind in {one.kind for one in guess.roles if one.is_known}:
        names_with = words_of_kinds(names, kind)
        guess.crowd_words |= dict.fromkeys(names_with, kind)
        all_with = {name for many in names_with.values() for name in many}
        guess.roles = [one for one in guess.roles if one.name not in all_with]


def _crowd_beside(survey: Survey, inside: str, role: PathSummary) -> PathSummary | None:
    """The field with the names of many beside that of their roles."""
    crowds = [one for one in crowd_fields(survey, inside, NAMES["actor"]) if one is not role]
    crowds = [one for one in crowds if not _is_addressee(survey, inside, one.path, role.path)]
    crowds = [one for one in crowds if not _has_both_kinds(survey, inside, one.path, role.path)]
    return first_field([one for one in crowds if not _is_account(survey, inside, one, role.path)])


def _has_both_kinds(survey: Survey, inside: str, name: str, role: str) -> bool:
    """Whether somebody is of several kinds in a session, as the roles have it; no participant is."""
    senders = set(event_senders(survey, inside, name, role))
    kind_of = {
        one.name.lower(): one.kind for one in roles_of((what, 1) for what in survey.paths[role].values)
    }
    kinds = {(session, who, kind_of.get(what, "agent")) for session, who, what in senders}
    return len(kinds) > len({(session, who) for session, who, _ in kinds})


def names_and_roles(survey: Survey, inside: str, name: str, role: str) -> tuple[Counter[str], set[str]]:
    """(name -> events with it, roles of those events)."""
    names: Counter[str] = Counter()
    roles: set[str] = set()
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    for event in events_of(survey, inside.removesuffix("[]."), inside):
        value = at_name(event)
        if isinstance(value, (str, int)) and value != "":
            names[str(value)] += 1
            roles.add(str(at_role(event)))
    return names, roles


def event_senders(survey: Survey, inside: str, name: str, role: str) -> Iterator[tuple[object, str, str]]:
    """(session, name, role in small letters) of each event with a name."""
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    ids = [] if inside else fields_named(survey.paths, (*SESSION, *SUBJECTS), depth=0)
    ids = [one for one in ids if one.key != "name" and one.path not in (name, role) and repeats(one, survey)]
    for number, record in enumerate(survey.records):
        session = number if inside else value_at(record, ids[0].path) if ids else None
        for event in events_of(replace(survey, records=[record]), inside.removesuffix("[]."), inside):
            if (who := at_name(event)) not in (None, ""):
                yield session, str(who), str(at_role(event)).lower()


def _agrees(role: Role, kind: ParticipantKind | None) -> bool:
    """Whether somebody's kind is known, and the role in their name does not contradict it as an environment's
    does."""
    return kind is not None and (kind == "environment" or (role.is_known, role.kind) != (True, "environment"))


def _with_kind(role: Role, kind: ParticipantKind | None) -> Role:
    """The role with the kind that another field gives, which outweighs the name, except for an environment
    that a framework calls a user."""
    return replace(role, kind=kind, is_known=True) if kind and _agrees(role, kind) else role


def _kinds_by_name(survey: Survey, inside: str, name: str, role: str) -> dict[str, ParticipantKind]:
    """Name -> kind, for names whose roles are all of one kind.

    `user` tells nothing where it stands beside several names of a session and all roles are a chat API's:
    frameworks give it to every agent whose words a model is to read. A name is the environment's only where
    all its roles are a tool's. A column of accounts names people, whatever the framework.
    """
    roles: dict[str, set[str]] = {}
    users: dict[object, set[str]] = {}
    for session, who, what in event_senders(survey, inside, name, role):
        roles.setdefault(who, set()).add(what)
        if what == "user":
            users.setdefault(session, set()).add(who)
    kind_of = _kinds_of_roles(set[str]().union(*roles.values()))
    of_api = set().union(*roles.values()) <= {*CHAT, "none"}
    of_frameworks = of_api and snake_case(survey.paths[name].key) not in ACCOUNTS
    vague = {"user"} if of_frameworks and any(len(own) > 1 for own in users.values()) else set[str]()
    kinds: dict[str, ParticipantKind] = {}
    for who, own in roles.items():
        role_kinds = {kind_of[what] for what in own - vague if what in kind_of}
        if own <= AROUND:
            kinds[who] = "environment"
        elif not own & vague and own <= kind_of.keys() and len(role_kinds) == 1:
            kinds.update((who, kind) for kind in role_kinds - {"environment"})
    return kinds


def _kinds_of_roles(names: Iterable[str]) -> dict[str, ParticipantKind]:
    """Role -> kind, for the roles that say it, and for the only one beside a chat bot's: people's. Events
    without a role are of nobody's."""
    roles = roles_of((name, 1) for name in sorted({*names} - {"none", ""}))
    has_agent = any(role.is_known and role.kind == "agent" for role in roles)
    return {role.name: role.kind for role in roles if role.is_known or (role.kind == "human" and has_agent)}


def _is_addressee(survey: Survey, inside: str, name: str, role: str) -> bool:
    """Whether a field names who is spoken with and not who speaks: one name a session, beside humans and
    agents alike."""
    names: dict[object, set[str]] = {}
    kinds: dict[object, set[str]] = {}
    senders = list(event_senders(survey, inside, name, role))
    kind_of = _kinds_of_roles({what for _, _, what in senders})
    for session, who, what in senders:
        names.setdefault(session, set()).add(who)
        kinds.setdefault(session, set()).add(kind_of.get(what, "agent"))
    both = sum({"human", "agent"} <= own for own in kinds.values())
    alone = sum(len(own) == 1 for own in names.values())
    return both > MOST * len(kinds) and alone > ALONE * len(names)


def _is_account(survey: Survey, inside: str, field: PathSummary, role: str) -> bool:
    """Whether a field says with whose account all was said: most of its names stand beside what people and
    what agents say."""
    if snake_case(field.key) not in ACCOUNTS:
        return False
    senders = list(event_senders(survey, inside, field.path, role))
    kind_of = _kinds_of_roles({what for _, _, what in senders})
    kinds: dict[str, set[str]] = {}
    for _, who, what in senders:
        kinds.setdefault(who, set()).add(kind_of.get(what, "agent"))
    return sum({"human", "agent"} <= own for own in kinds.values()) > MOST * len(kinds)


def _nameless_roles(survey: Survey, inside: str, name: str, role: str) -> Counter[str]:
    """Role -> events with it that have no name."""
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    events = events_of(survey, inside.removesuffix("[]."), inside)
    return Counter(str(at_role(event)) for event in events if at_name(event) in (None, "") and at_role(event))


def _plain_name(name: str) -> str:
    return re.sub(r"\s*\(.*\)$", "", name) or name


def _has_both_sides(roles: list[Role]) -> bool:
    """Whether a human and an agent are there already."""
    return {"human", "agent"} <= {one.kind for one in roles if one.is_known}


def set_senders_of_kinds(guess: Guess, survey: Survey, inside: str) -> bool:
    """Set who speaks where a sender is one of several objects by its kind, as in `from.user.displayName` of
    Teams; False where there is none."""
    names = rf"(?:{'|'.join(SPEAKERS)})\.(\w+)\.(?:displayName|display_name|name)"
    pattern = re.compile(re.escape(inside) + names)
    senders = {
        match[1]: one
        for path, one in survey.paths.items()
        if (match := pattern.fullmatch(path)) and one.kinds["text"]
    }
    roles = {kind: role_of(kind) for kind in senders}
    kinds = {kind: role.kind for kind, role in roles.items()}
    if "human" not in kinds.values():
        return False
    # Where a person sends through a program, both are named, and the person speaks.
    senders = dict(sorted(senders.items(), key=lambda item: kinds[item[0]] != "human"))
    guess.event["role"] = [one.path for one in senders.values()]
    guess.kinds_from_paths = {one.path: kinds[kind] for kind, one in senders.items()}
    guess.roles = [
        replace(role, kind=kinds[kind], is_known=roles[kind].is_known)
        for kind, one in senders.items()
        for role in roles_of(one.values.items())
    ]
    return True


def _set_bots(guess: Guess, survey: Survey, inside: str, role: PathSummary) -> None:
    """Set the field that says who is a bot: a flag, or one that only bots have; then other fields name those
    who speak, too."""
    total = items_in(survey, inside.removesuffix("[].")) if inside else len(survey.records)
    marks = [one for one in fields_named(survey.paths, BOTS_HAVE, inside) if 0 < one.kinds["text"] < total]
    marks = [one for one in marks if one.key.lower() in BOTS_HAVE]
    flags = [one for one in fields_named(survey.paths, BOTS_ARE, inside) if _flag_of_bots(one)]
    if flags and "actor" not in guess.event:
        guess.bot_path, guess.bot_flag = flags[0].path, _flag_of_bots(flags[0])
    if not marks or "actor" in guess.event or flags:
        return
    guess.bot_path = marks[0].path
    others = [
        one for one in fields_named(survey.paths, CALLED, inside) if is_speaker(one) and one.path != role.path
    ]
    names = sorted([role, *others], key=lambda one: -one.count)
    guess.event["role"] = [one.path for one in (*names, marks[0])]


def _flag_of_bots(field: PathSummary) -> str | None:
    """The value that a flag has of bots, as TOML has it; None for a field that is none with both values."""
    words = {word.lower(): word for word in field.values}
    bots = next((words[yes] for yes, no in FLAGS if words.keys() == {yes, no}), None)
    if bots is None or not field.has_only("text"):
        return bots and bots.lower()
    return f'"{bots}"'
