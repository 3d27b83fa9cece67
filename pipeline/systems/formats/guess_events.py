"""Which path is the speaker, the text, the action ... of the events of a survey."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ....schemas.trajectory import ParticipantKind
from .guess_made import Guess
from .guess_names import (
    BEGUN,
    BOTS_ARE,
    BOTS_HAVE,
    CALLED,
    CHAT,
    GROUPS,
    NAMES,
    PEOPLE,
    PLACES,
    PLAYERS,
    SECRET,
    SESSION,
    SPEAKERS,
    SPEECH,
    SUBJECTS,
    TOOL_NAMES,
    TOOLS,
    first_one,
    is_label,
    is_number,
    is_said,
    is_sentence,
    is_seq,
    is_sides,
    is_speaker,
    is_time,
    is_tool_name,
    named,
    parent_of,
    spelled,
    time_formats,
)
from .guess_records import events_of, in_blocks, items_in, repeats, sessions_of, value_at
from .guess_roles import BOTS, Role, is_call, otherwise, role_of, roles_of
from .mapped_values import iso_of, seconds_of
from .mapping import ROLES
from .paths import getter, several
from .survey import PathSeen, Survey

MOST = 0.5
"""A field that fewer events have is not who speaks, if another may be."""
TYPES = ("event", "event_type", "kind", "type")
KINDS = {"type", "subtype", "kind", "event"}
"""What the names of fields end in that say of what kind an event is."""
LABELS_OF_RESULTS = ("observation", "observation_type", "result_type")
AROUND = {"tool", "tools", "function", "environment", "env"}
"""Roles of what people and agents act upon, whatever its name."""
ALONE = 0.9
"""In so many sessions with one name, others may come for a hand-over."""
NEARLY = 0.9
"""What events are called may say who acts, where fewer of them have another field that does."""
PLAIN = {*ROLES, *BOTS}
"""What events are called that are somebody's, and nothing else."""
ALL = 0.9
"""A field that fewer events have does not number them."""
FALLING = 0.2
"""More times than that fall where numbers rise that are no numbers of events."""
FEW = 6
"""So many different values may say how far a task is."""
OWN = {*NAMES["id"], "key", "hash", "name"}
"""What the ids of anything are called: whose they are, says the object that they lie in."""
Take = Callable[[str, list[PathSeen]], PathSeen | None]
"""Notes the first candidate that is not taken yet as a field of `[event]`."""


def of_events(made: Guess, seen: Survey, inside: str) -> None:
    """The fields of `[event]`."""
    paths, taken = seen.paths, set[str]()

    def take(name: str, candidates: list[PathSeen]) -> PathSeen | None:
        one = first_one([c for c in candidates if c.path not in taken])
        if one is not None:
            made.event[name] = one.path
            taken.add(one.path)
        return one

    actions = [one for one in named(paths, NAMES["action"], inside) if one.only("text")]
    actions += [
        one for one in named(paths, TOOL_NAMES, inside) if parent_of(one) in TOOLS and one.only("text")
    ]
    names = [one for one in actions if is_tool_name(one)]
    lines = [one for one in actions if one not in names]
    who = [
        one for one in named(paths, NAMES["role"], inside) if is_speaker(one) and parent_of(one) not in TOOLS
    ]
    total = items_in(seen, inside.removesuffix("[].")) if inside else len(seen.records)
    sides = max((one.count for one in who if is_sides(one)), default=0)
    who.sort(
        key=lambda one: (
            one.count < MOST * total,
            len(one.values) == 1 and sides >= one.count,
            parent_of(one) not in SPEAKERS,
        )
    )
    speakers_ = [one for one in who if one not in names or one.key.lower() in SPEAKERS]
    speakers_ = [one for one in speakers_ if one.key != "type" or len(one.values) > 1 or len(speakers_) == 1]
    chosen = (
        [one for one in speakers_ if not is_number(one)] or _parties(seen, inside) or parties(seen, inside)
    )
    players = _players(seen, inside, total)
    chosen = chosen or players
    typed = list[PathSeen]()
    if not chosen or chosen[0].count < NEARLY * total:
        typed = _typed(seen, inside, max(MOST * total, chosen[0].count if chosen else 0))
    role = take("role", typed or chosen)
    text = [one for one in named(paths, NAMES["text"], inside) if is_said(one) and one not in lines]
    text = [one for one in text if parent_of(one) not in {*TOOLS, *NAMES["result"]}] or (
        [] if actions else text
    )
    if role is None:
        made.constant_role = "agent"
        _of_steps(made, seen, inside, names, lines, take)
        first = take("text", [one for one in text if one.path not in taken])
        if first and not {"action", "command", "result"} & set(made.event) and inside:
            made.constant_role = None
            made.turns_about = True
            made.roles = roles_of((side, 0) for side in ("user", "assistant"))
    else:
        called = _of_types(seen, inside, role, text) if typed else []
        _named_roles(made, seen, inside, role, called)
        if typed and any(one.known for one in made.roles):
            made.roles = [
                one if one.known or one.name not in role.values else replace(one, kind="environment")
                for one in made.roles
            ]
        take("action", [*names, *called])
        if role in players and not text:
            _of_moves(made, seen, inside, take)
        first = take("text", text or _sentences(seen, inside))
        if first and "action" not in made.event:
            _of_texts(made, seen, inside, role.path, first.path)
        elif first:
            rest = [one for one in text if one.path not in taken]
            made.event["text"] = [first.path, *(one.path for one in rest[:1])] if rest else first.path
        if first and "action" not in made.event:
            begun = not inside and _instead(made, seen, first, taken)
            _silent(made, seen, inside, first, begun)
        if "action" in made.event:
            done = seen.paths[str(made.event["action"])].values
            made.speech = [name for name in done if name.lower() in SPEECH]
            if "arguments" not in made.event:
                take("arguments", named(paths, NAMES["arguments"], inside))
            made.came = _came(made, seen, inside, role.path)
            _of_calls(made, seen, inside, role.path)
    times = named(paths, NAMES["time"], inside)
    if not take("time", [one for one in times if is_time(one)]):
        _of_times(made, times, seen, inside)
    if "time" not in made.event and not made.timed:
        _of_moments(made, seen, inside, total)


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


def _steps(times: list[float | None]) -> tuple[int, int]:
    """Steps from time to time, and those of them that fall."""
    pairs = [(a, b) for a, b in pairwise(times) if a is not None and b is not None]
    return len(pairs), sum(a > b for a, b in pairs)


def of_groups(made: Guess, seen: Survey) -> list[PathSeen]:
    """What groups of records are called that follow each other, where several speak in most: sessions."""
    role = made.event.get("role")
    some = [one for one in named(seen.paths, GROUPS, depth=0) if spelled(one.key) in {*GROUPS} - {*PLACES}]
    some = [one for one in some if one.path not in made.used and repeats(one, seen) and in_blocks(one, seen)]
    some = [one for one in some if not isinstance(role, str) or stands_with_several(one, role, seen)]
    if some:
        made.by_values["native_id"] = some[0].path
    return some[:1]


def of_numbers(made: Guess, seen: Survey) -> None:
    """The field that numbers the events of a table: nearly all of them, no two of a session alike, and in the
    order of their times."""
    speaks = [getter(path) for path in several(made.event.get("role"))]
    spoken = sum(any(at(record) is not None for at in speaks) for record in seen.records)
    least = ALL * (spoken or len(seen.records))
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


def _seconds(value: object, formats: list[str]) -> float | None:
    with suppress(ValueError):  # a time that cannot be read tells nothing of the order
        return seconds_of(iso_of(value, formats[0]) if formats else value)
    return None


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


def _of_texts(made: Guess, seen: Survey, inside: str, role: str, text: str) -> None:
    """Calls that are written as JSON in the texts of those who are called so: `function_call`."""
    name, given = seen.paths.get(f"{text}.name"), seen.paths.get(f"{text}.arguments")
    if name and given and is_tool_name(name) and all(map(is_call, _acting(seen, inside, role, name.path))):
        made.event |= {"action": name.path, "arguments": given.path}


def _acting(seen: Survey, inside: str, role: str, action: str) -> set[str]:
    """Who does something."""
    done, who = (getter(path.removeprefix(inside)) for path in (action, role))
    return {str(who(event)) for event in events_of(seen, inside.removesuffix("[]."), inside) if done(event)}


def _of_calls(made: Guess, seen: Survey, inside: str, role: str) -> None:
    """Events that are called `tool_call` or `action` and do something are the agent's own."""
    acting = _acting(seen, inside, role, str(made.event["action"]))
    made.calling = [
        one.name
        for one in made.roles
        if one.name in acting
        and (is_call(one.name) if one.kind == "environment" else one.name.lower() in TOOLS)
    ]
    made.roles = [replace(one, kind="agent") if one.name in made.calling else one for one in made.roles]


def _came(made: Guess, seen: Survey, inside: str, role: str) -> str | None:
    """A label that results have, and no event in which something is done; who acts, or the environment,
    bears them."""
    action = str(made.event["action"])
    done, who = (getter(path.removeprefix(inside)) for path in (action, role))
    events = list(events_of(seen, inside.removesuffix("[]."), inside))
    acting = _acting(seen, inside, role, action)
    around = {one.name for one in made.roles if one.kind == "environment"}
    for one in named(seen.paths, LABELS_OF_RESULTS, inside, depth=0):
        at = getter(one.path.removeprefix(inside))
        labelled = [event for event in events if at(event) is not None]
        apart = not any(done(event) is not None for event in labelled)
        bearing = {str(who(event)) for event in labelled} - around
        if is_label(one) and one.only("text") and apart and bearing and bearing <= acting:
            return one.path
    return None


def _sentences(seen: Survey, inside: str) -> list[PathSeen]:
    """What somebody may have said under a name that does not tell, the longest first."""
    own = [one for one in seen.paths.values() if one.path.startswith(inside) and is_sentence(one)]
    own = [one for one in own if not re.search(r"\[\]|(?<!\\)\.", one.path[len(inside) :])]
    return sorted((one for one in own if not SECRET.search(one.key)), key=lambda one: -one.mean_length)


def _typed(seen: Survey, inside: str, least: float) -> list[PathSeen]:
    """What more events than that are called, where it says of each whose it is (`user_message`, `tool_call`),
    or is plainly who speaks and else what happened: `user`, `bot`, `slot`."""
    fits = list[PathSeen]()
    for one in named(seen.paths, TYPES, inside, depth=0):
        kinds = [role_of(name) for name in one.values]
        known = [role for role in kinds if role.known]
        plain = [role for role in known if role.name.lower() in PLAIN]
        if one.only("text") and not one.more and one.count > least:
            sides = {role.kind for role in (known if len(known) == len(kinds) else plain)}
            fits += [one] if {"human", "agent"} <= sides else []
    return fits


def _of_types(seen: Survey, inside: str, role: PathSeen, text: list[PathSeen]) -> list[PathSeen]:
    """The name of what was done, where events are called `action` or the like, and none has a name in which
    somebody speaks."""
    one = seen.paths.get(f"{inside}name")
    if one is None or not text or not is_tool_name(one):
        return []
    done, said = (getter(path.removeprefix(inside)) for path in (one.path, text[0].path))
    events = events_of(seen, inside.removesuffix("[]."), inside)
    spoken = any(done(event) and said(event) for event in events)
    acts = any(who.lower() in TOOLS or is_call(who) for who in _acting(seen, inside, role.path, one.path))
    return [one] if acts and not spoken else []


def _parties(seen: Survey, inside: str) -> list[PathSeen]:
    """Ids that say who acts: in most lists of events there are several, of which some come again."""
    ids = [seen.paths[path] for name in NAMES["id"] if inside and (path := f"{inside}{name}") in seen.paths]
    few = [one for one in ids if one.only("text") and not one.more and 2 <= len(one.values) <= FEW]
    most = 0.6 * len(seen.records)
    return [one for one in few if sum(_come_again(one, seen, r, inside) for r in seen.records) > most]


def parties(seen: Survey, inside: str) -> list[PathSeen]:
    """Fields of any name in which nothing stands but names of people and agents, beside what they say."""
    if not inside or not _sentences(seen, inside):
        return []
    own = (one for one in seen.paths.values() if one.path.startswith(inside) and is_sides(one))
    return [one for one in own if not re.search(r"\[\]|(?<!\\)\.", one.path[len(inside) :])]


def _players(seen: Survey, inside: str, total: int) -> list[PathSeen]:
    """Fields such as `player` or `driver` of nearly all events, in which somebody is plainly a person or an
    agent."""
    some = [one for one in named(seen.paths, PLAYERS, inside, depth=0) if spelled(one.key) in PLAYERS]
    some = [one for one in some if one.only("text") and is_speaker(one) and one.count >= NEARLY * total]
    return [
        one
        for one in some
        if any(role.known and role.kind != "environment" for role in map(role_of, one.values))
    ]


def _come_again(one: PathSeen, seen: Survey, record: dict[str, Any], inside: str) -> bool:
    at = getter(one.path.removeprefix(inside))
    events = events_of(replace(seen, records=[record]), inside.removesuffix("[]."), inside)
    there = Counter(str(at(event)) for event in events)
    return 1 < len(there) < there.total()


def _instead(made: Guess, seen: Survey, text: PathSeen, taken: set[str]) -> bool:
    """Note what stands where records have no text, such as the task that is begun; whether it does."""
    empty = any(value_at(record, text.path) in (None, "") for record in seen.records)
    other = [one for one in named(seen.paths, BEGUN) if one.path not in taken and is_said(one)]
    if empty and other:
        made.event["text"] = [text.path, other[0].path]
    return empty and bool(other)


def _silent(made: Guess, seen: Survey, inside: str, text: PathSeen, begun: bool) -> None:
    """Events without a text are notes, where a field that says of what kind they are, or any where another
    text says what is begun, says of them what it says of no other, and that is no call."""
    events = list(events_of(seen, inside.removesuffix("[]."), inside))
    said = getter(text.path.removeprefix(inside))
    empty = [event for event in events if said(event) in (None, "")]
    others = [event for event in events if said(event) not in (None, "")]
    for path, one in seen.paths.items() if empty else ():
        own = path.startswith(inside) and "[]" not in path[len(inside) :] and path not in made.used
        own = own and (begun or spelled(one.key).rpartition("_")[2] in KINDS)
        if not own or not one.only("text") or not is_label(one) or len(one.values) > FEW or is_time(one):
            continue
        at = getter(path.removeprefix(inside))
        without, spoken = ({str(at(event)) for event in many} for many in (empty, others))
        if not without & {*spoken, *TOOLS, "None"}:
            made.notes = path, sorted(without)
            return


def _of_steps(
    made: Guess, seen: Survey, inside: str, names: list[PathSeen], lines: list[PathSeen], take: Take
) -> None:
    """Steps that are all the agent's: what was done, and what came back."""
    if names:
        done = take("action", names)
        if not take("arguments", named(seen.paths, NAMES["arguments"], inside)) and done:
            _beside(made, seen, done)
    elif lines:
        take("command", lines)
    take("result", named(seen.paths, NAMES["result"], inside))
    take("error", [one for one in named(seen.paths, NAMES["error"], inside) if one.only("text")])


def _of_moves(made: Guess, seen: Survey, inside: str, take: Take) -> None:
    """What players and drivers did, if only what events are called says it, and what came of it."""
    happened = [one for one in named(seen.paths, TYPES, inside, depth=0) if is_tool_name(one)]
    if "action" not in made.event and (move := take("action", happened)):
        made.by_values["action"] = move.path
    take("result", named(seen.paths, NAMES["result"], inside))


def _beside(made: Guess, seen: Survey, action: PathSeen) -> None:
    """What stands beside an action's name in the action's own object are its arguments."""
    within = action.path.rpartition(".")[0]
    if parent_of(action) in TOOLS:
        beside = [path for path in seen.paths if path.rpartition(".")[0] == within and path != action.path]
        if beside:
            made.event["arguments"] = sorted(beside)


def _named_roles(made: Guess, seen: Survey, inside: str, role: PathSeen, done: list[PathSeen]) -> None:
    """Who speaks: by their role or, where it tells more, by their name, that of nothing that was done."""
    candidates = [one for one in named(seen.paths, NAMES["actor"], inside) if one not in done]
    candidates = [
        one
        for one in candidates
        if one is not role and (is_speaker(one) or otherwise(named_with(seen, inside, one.path, role.path)))
    ]
    candidates = [one for one in candidates if parent_of(one) not in TOOLS]
    candidates = [one for one in candidates if not _is_with(seen, inside, one.path, role.path)]
    if parent_of(role) in (*SPEAKERS, *PEOPLE):
        candidates.sort(key=lambda one: one.path.rpartition(".")[0] != role.path.rpartition(".")[0])
    name = first_one([one for one in candidates if inside or not is_spoken_with(one, role.path, seen)])
    values: Counter[str] = Counter(dict(role.values))
    kinds: dict[str, ParticipantKind] = {}
    if name is not None:
        names, roles = names_and_roles(seen, inside, name.path, role.path)
        beside = _beside_names(seen, inside, name.path, role.path)
        wrong = otherwise(named_with(seen, inside, name.path, role.path))
        beside = {who: kind for who, kind in beside.items() if who not in wrong}
        if wrong or (
            len(names) > len(roles) and not all(_agrees(role_of(who), beside.get(who)) for who in names)
        ):
            made.event["role"] = [name.path, role.path]
            values = names + _unnamed(seen, inside, name.path, role.path)
            kinds = beside
            made.renamed = {
                who: role_of(who).kind for who in names if who not in kinds and role_of(who).known
            }
        elif len(names) > 1:  # who they are, their roles tell: of names that come later, too
            made.event["actor"] = [name.path, role.path]
            made.told = {who: beside[who] for who in names} if len(names) > len(roles) else {}
            made.strip = len({_stripped(one) for one in names}) < len(names)
    plain: Counter[str] = Counter()
    for value, count in values.items():
        plain[_stripped(value)] += count
    alike = len(plain) < len(values)
    made.strip |= alike
    made.roles = roles_of((plain if alike else values).items())
    kinds = {_stripped(who) if alike else who: kind for who, kind in kinds.items()}
    made.roles = [_as_told(one, kinds.get(one.name)) for one in made.roles]
    if role.key.lower().startswith("agent") and not any(one.known for one in made.roles):
        made.roles = [replace(one, kind="agent") for one in made.roles]
    if role.key.lower() in PEOPLE and "actor" not in made.event and not _two_sides(made.roles):
        made.roles = [one if one.known else replace(one, kind="human") for one in made.roles]
    _with_bots(made, seen, inside, role)


def is_spoken_with(one: PathSeen, role: str, seen: Survey) -> bool:
    """Whether a column of a table is of people, and beside most of them stand several speakers: with them,
    and not only by them, is spoken."""
    return one in named(seen.paths, SUBJECTS, depth=0) and stands_with_several(one, role, seen)


def session_ids(seen: Survey, role: str | list[str] | None, depth: int = 1) -> list[PathSeen]:
    """Fields of a table that say which session a record is of, the likeliest first: no id of who speaks."""
    some = [one for one in named(seen.paths, SESSION, depth=depth) if repeats(one, seen)]
    some = [one for one in some if not any(_is_speakers(one, path, seen) for path in several(role)[:1])]
    return sorted(some, key=lambda one: spelled(one.key) in OWN and spelled(parent_of(one)) not in SESSION)


def _is_speakers(one: PathSeen, role: str, seen: Survey) -> bool:
    """Whether an id is of who speaks: it lies in the object that says who does, or one speaker alone stands
    beside each of its values."""
    if spelled(one.key) not in OWN:
        return False
    within = role.rpartition(".")[0]
    alone = len(seen.paths[role].values) > 1 and not stands_with_several(one, role, seen, most=0)
    return (within != "" and one.path.rpartition(".")[0] == within) or alone


def stands_with_several(one: PathSeen, role: str, seen: Survey, most: float = 0.6) -> bool:
    """Whether several speakers stand beside most values of a column of a table."""
    beside: dict[str, set[str]] = {}
    for record in seen.records:
        if (who := value_at(record, one.path)) and (speaker := value_at(record, role)):
            beside.setdefault(str(who), set()).add(str(speaker))
    return sum(len(speakers) > 1 for speakers in beside.values()) > most * len(beside)


def _two_sides(roles: list[Role]) -> bool:
    """Whether a human and an agent are there already."""
    return {"human", "agent"} <= {one.kind for one in roles if one.known}


def _with_bots(made: Guess, seen: Survey, inside: str, role: PathSeen) -> None:
    """Where only bots have a field, that says who is one, and another field what they are called."""
    total = items_in(seen, inside.removesuffix("[].")) if inside else len(seen.records)
    marks = [one for one in named(seen.paths, BOTS_HAVE, inside) if 0 < one.kinds["text"] < total]
    marks = [one for one in marks if one.key.lower() in BOTS_HAVE]
    flags = [one for one in named(seen.paths, BOTS_ARE, inside) if {"True", "False"} == set(one.values)]
    if flags and "actor" not in made.event:
        made.bots, made.bots_are = flags[0].path, True
    if not marks or "actor" in made.event or flags:
        return
    made.bots = marks[0].path
    others = [one for one in named(seen.paths, CALLED, inside) if is_speaker(one) and one.path != role.path]
    names = sorted([role, *others], key=lambda one: -one.count)
    made.event["role"] = [one.path for one in (*names, marks[0])]


def names_and_roles(seen: Survey, inside: str, name: str, role: str) -> tuple[Counter[str], set[str]]:
    """Names of the events that have one, and the roles of those events."""
    names: Counter[str] = Counter()
    roles: set[str] = set()
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    for event in events_of(seen, inside.removesuffix("[]."), inside):
        said = at_name(event)
        if isinstance(said, (str, int)) and said != "":
            names[str(said)] += 1
            roles.add(str(at_role(event)))
    return names, roles


def _agrees(named: Role, told: ParticipantKind | None) -> bool:
    """Whether a role tells who somebody is, and their name says nothing else."""
    return told is not None and (told == "environment" or (named.known, named.kind) != (True, "environment"))


def _as_told(role: Role, kind: ParticipantKind | None) -> Role:
    """A role as another field tells it: that counts more than what a name has in it, but for the terminal
    that a framework calls a user."""
    return replace(role, kind=kind, known=True) if kind and _agrees(role, kind) else role


def _beside_names(seen: Survey, inside: str, name: str, role: str) -> dict[str, ParticipantKind]:
    """Names beside which roles of one kind stand, with that kind.

    `user` tells nothing where it stands beside several names of a session and all roles are a chat API's:
    frameworks call all agents so that a model hears. Of the environment is only what bears a tool's role.
    """
    roles: dict[str, set[str]] = {}
    users: dict[object, set[str]] = {}
    for session, who, what in named_with(seen, inside, name, role):
        roles.setdefault(who, set()).add(what)
        if what == "user":
            users.setdefault(session, set()).add(who)
    of_api = set().union(*roles.values()) <= {*CHAT, "none"}
    vague = {"user"} if of_api and any(len(names) > 1 for names in users.values()) else set[str]()
    kinds: dict[str, ParticipantKind] = {}
    for who, own in roles.items():
        told = {one.kind for one in map(role_of, own - vague) if one.known}
        if own <= AROUND:
            kinds[who] = "environment"
        elif not own & vague and all(role_of(what).known for what in own) and len(told) == 1:
            kinds.update((who, kind) for kind in told - {"environment"})
    return kinds


def _is_with(seen: Survey, inside: str, name: str, role: str) -> bool:
    """Whether a name is of who is spoken with: one a session, beside humans and agents alike."""
    names: dict[object, set[str]] = {}
    kinds: dict[object, set[str]] = {}
    for session, who, what in named_with(seen, inside, name, role):
        names.setdefault(session, set()).add(who)
        kinds.setdefault(session, set()).add(role_of(what).kind)
    both = sum({"human", "agent"} <= own for own in kinds.values())
    alone = sum(len(own) == 1 for own in names.values())
    return both > MOST * len(kinds) and alone > ALONE * len(names)


def named_with(seen: Survey, inside: str, name: str, role: str) -> Iterator[tuple[object, str, str]]:
    """Of each event with a name its session, the name and the role."""
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    ids = [] if inside else named(seen.paths, (*SESSION, *SUBJECTS), depth=0)
    ids = [one for one in ids if one.key != "name" and one.path not in (name, role) and repeats(one, seen)]
    for number, record in enumerate(seen.records):
        session = number if inside else value_at(record, ids[0].path) if ids else None
        for event in events_of(replace(seen, records=[record]), inside.removesuffix("[]."), inside):
            if (who := at_name(event)) not in (None, ""):
                yield session, str(who), str(at_role(event)).lower()


def _unnamed(seen: Survey, inside: str, name: str, role: str) -> Counter[str]:
    """Roles of the events that have no name."""
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    events = events_of(seen, inside.removesuffix("[]."), inside)
    return Counter(str(at_role(event)) for event in events if at_name(event) in (None, "") and at_role(event))


def _stripped(name: str) -> str:
    return re.sub(r"\s*\(.*\)$", "", name) or name
