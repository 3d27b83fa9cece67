"""The shapes that logs have: lists of messages or events, spans, texts, pairs, tables."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from . import agent_events, dialects, guess_acts, guess_calls, guess_spans
from .contents import USE, is_part
from .guess_events import of_events
from .guess_made import Guess
from .guess_names import (
    CHAT,
    LESSER,
    NAMES,
    PAIRS,
    SESSION,
    SUBJECTS,
    first_one,
    is_label,
    is_said,
    is_sentence,
    is_sides,
    is_speaker,
    is_time,
    is_tool_name,
    named,
    spelled,
)
from .guess_records import events_of, having, items_in, repeats, value_at
from .guess_roles import Role, otherwise, role_of, roles_of, several_users
from .guess_sessions import is_spoken_with, of_groups, session_ids, session_of_rounds, stands_with_several
from .guess_speakers import named_with, names_and_roles
from .guess_text import FENCED, PATTERNS, SPEAKERS, fenced, pattern_of, speakers, timed
from .guess_times import of_numbers
from .paths import expression, getter, several
from .survey import PathSeen, Survey
from .turns import is_texts

MARKED = 0.8
"""So many texts of a list must say who speaks."""
DIALECT = 200
"""So many messages are looked at to tell how they are written."""
UTTERED = {
    *("message", "msg", "text", "utterance", "turn", "query", "question", "input", "prompt", "request"),
    *("response", "answer", "reply", "output"),
}
"""What is said, in names that say by whom: `user_message`."""
ANSWERED = {"response", "answer", "reply", "output", "utterance", "turn"}
"""What a system says that answers people."""


def of_spans(made: Guess, seen: Survey) -> bool:
    """One span a record."""
    made.spans = guess_spans.fields_of(seen, "")
    if not made.spans:
        return False
    made.shape, made.each = "spans", True
    made.native_id = guess_spans.traces(seen, made.spans)
    return True


def of_list(made: Guess, seen: Survey, path: str) -> None:
    inside = f"{path}[]."
    roles = seen.paths.get(f"{inside}role") or seen.paths.get(f"{inside}type")
    said = f"{inside}content" in seen.paths or f"{inside}tool_calls" in seen.paths
    chat = roles is not None and said
    known = sum(count for value, count in roles.values.items() if value in CHAT) if roles else 0
    made.at = path
    made.spans = guess_spans.fields_of(seen, inside)
    if made.spans:
        made.shape = "spans"
        return
    if (pattern := _marks(seen, path)) is not None:
        _of_marks(made, path, *pattern)
        return
    written = in_dialect(seen, path)
    if written:
        made.shape, made.roles = "messages", roles_of(written.items())
    elif (
        chat
        and roles
        and known > 0.95 * sum(roles.values.values())
        and not _telling_names(seen, inside, roles)
        and not _turned_round(seen, inside, roles)
        and not _calls_aside(seen, inside)
        and not _is_told_beside(seen, inside, roles)
    ):
        made.shape = "messages"
        made.roles = roles_of(roles.values.items())
    else:
        made.shape = "list"
        of_events(made, seen, inside)
        guess_acts.ended(made, seen, inside)
    if made.shape == "messages":
        spoken = list(_said_by(seen, path))
        made.renamed = otherwise(spoken)
        made.told = {who: "human" for who in several_users(spoken) if who not in made.renamed}
        guess_calls.of_messages(made, seen)
        if made.reply and roles is not None:
            made.roles = roles_of([*roles.values.items(), ("assistant", 0)])
    made.fence = guess_acts.fence(made, seen, inside)
    made.observed = guess_acts.observed(made, seen) if made.fence else None
    made.calls = made.fence is None and guess_acts.calls(made, seen, inside)


def _marks(seen: Survey, path: str) -> tuple[str, Counter[str]] | None:
    """What nearly all texts of lists of texts begin with, if that says who speaks; and the names in it."""
    lists: list[Any] = [value for record in seen.records if (value := value_at(record, path))]
    if not lists or not all(map(is_texts, lists)):
        return None
    texts: list[str] = list(itertools.chain(*lists))
    for pattern in PATTERNS:
        begun = (expression(pattern).match(text) for text in texts)
        names = Counter(match["speaker"] for match in begun if match)
        known = any(role_of(name).known for name in names)
        if known and 2 <= len(names) <= SPEAKERS and names.total() >= MARKED * len(texts):
            return pattern, names
    return None


def _of_marks(made: Guess, path: str, pattern: str, names: Counter[str]) -> None:
    made.shape, made.at, made.patterns = "text", path, [pattern]
    made.event = {"role": f"{path}[].speaker", "text": f"{path}[].text"}
    made.roles = roles_of(names.items())


def in_dialect(seen: Survey, path: str) -> Counter[str]:
    """Roles of a list's messages where they are written otherwise than a chat API's; else none."""
    items = list(itertools.islice(events_of(seen, path, f"{path}[]."), DIALECT))
    told = [dialects.messages(item) for item in items]
    other = sum(not dialects.is_plain(item) for item in items)
    spoken = [one for many in told for one in many or []]
    alone = len(spoken) <= len(items)
    if not items or None in told or not other or (alone and _as_texts(seen, path)):
        return Counter()
    return Counter(one["role"] for one in spoken)


def _as_texts(seen: Survey, path: str) -> bool:
    """Whether all that is said in a list is a plain text under a name that is read as one."""
    inside = f"{path}[]."
    texts = [one for one in named(seen.paths, NAMES["text"], inside) if is_said(one) and one.only("text")]
    called = any(f"{inside}{key}" in seen.paths for key in dialects.CALLED)
    return not called and any(one.count >= items_in(seen, path) for one in texts)


def _telling_names(seen: Survey, inside: str, role: PathSeen) -> bool:
    """Whether messages have names that tell more than their roles, which are then a framework's matter."""
    names, roles = names_and_roles(seen, inside, f"{inside}name", role.path)
    return len(names) > len(roles) and "tool" not in roles and sum(names.values()) > 0.6 * role.count


def _turned_round(seen: Survey, inside: str, role: PathSeen) -> bool:
    """Whether names say otherwise than roles of whom they are, where nothing but texts would be lost."""
    named = otherwise(named_with(seen, inside, f"{inside}name", role.path))
    return bool(named) and "tool" not in role.values and f"{inside}tool_calls" not in seen.paths


def _is_told_beside(seen: Survey, inside: str, role: PathSeen) -> bool:
    """Whether all have the same role, and a field beside it tells people from agents, where nothing but texts
    would be lost."""
    beside = [one for one in named(seen.paths, NAMES["role"], inside, depth=0) if is_sides(one)]
    plain = f"{inside}tool_calls" not in seen.paths
    return plain and len(role.values) == 1 and any(one.count >= role.count for one in beside)


def _said_by(seen: Survey, path: str) -> Iterator[tuple[int, str, str]]:
    """Of each message of a list its record, its name ("" for none) and its role."""
    for number, record in enumerate(seen.records):
        for item in events_of(replace(seen, records=[record]), path, f"{path}[]."):
            told = dialects.messages(item)
            for one in [item] if told is None else told:
                yield number, str(one.get("name") or ""), str(one.get("role"))


def _calls_aside(seen: Survey, inside: str) -> bool:
    """Whether agents' messages name what was done in a field of their own, which chat APIs do not have."""
    if f"{inside}tool_calls" in seen.paths:
        return False
    names = [one for one in named(seen.paths, NAMES["action"], inside, depth=0) if one.only("text")]
    done = [getter(one.path.removeprefix(inside)) for one in names if is_tool_name(one)]
    return any(
        role_of(str(event.get("role"))).kind == "agent" and any(at(event) for at in done)
        for event in (events_of(seen, inside.removesuffix("[]."), inside) if done else ())
    )


def of_text(made: Guess, seen: Survey) -> bool:
    """Texts in which turns are marked, such as `User: ...`."""
    best: tuple[tuple[bool, float], PathSeen, str] | None = None
    for one in seen.paths.values():
        if "[]" in one.path or not one.texts or (one.mean_length < 40 and seen.format != "text"):
            continue
        pattern = pattern_of(one.texts)
        rank = (one.key not in LESSER, one.characters)
        if pattern and (best is None or rank > best[0]):
            best = (rank, one, pattern)
    if best is None:
        return _of_pages(made, seen)
    _, one, pattern = best
    _of_marks(made, one.path, pattern, speakers(one.texts, pattern))
    timed(made, one.texts, pattern)
    return True


def _of_pages(made: Guess, seen: Survey) -> bool:
    """Pages of code that was run, each block with what it printed."""
    one = next((one for one in seen.paths.values() if one.texts and fenced(one.texts)), None)
    if one is None:
        return False
    made.shape, made.at, made.patterns = "text", one.path, [FENCED]
    made.code = fenced(one.texts)
    made.event = {"role": f"{one.path}[].speaker", "text": f"{one.path}[].text"}
    made.roles = [
        Role(str(made.code), "agent", True, len(one.texts)),
        Role("environment", "environment", True),
    ]
    return True


def of_pairs(made: Guess, seen: Survey) -> bool:
    """A record that is a question with its answer."""
    table = [one for one in named(seen.paths, NAMES["role"]) if is_speaker(one)]
    made.fields = _rounds(seen)
    rounds = bool(made.fields)
    for names, role in () if rounds else PAIRS:
        said = first_one([one for one in named(seen.paths, names) if one.kinds["text"] > 0 and is_said(one)])
        if said is not None:
            made.fields[role] = said.path
    if not rounds and not {"user", "assistant"} <= set(made.fields):
        system, asked = made.fields.get("system"), _asked(seen)
        made.fields = {**({"system": system} if system and system not in asked.values() else {}), **asked}
    if not rounds and (table or not {"user", "assistant"} <= set(made.fields)):
        made.fields = {}
        return False
    made.roles = roles_of((role, len(seen.records)) for role in made.fields)
    session = None if rounds else session_of_rounds(seen, str(made.fields["user"]))
    if session is None:
        made.shape, made.at = "pairs", "turns"
        made.event = {"role": "turns[].role", "text": "turns[].text"}
        return True
    made.shape, made.rounds, made.native_id = "table", True, [session.path]
    made.event = {"role": "said.role", "text": "said.text", "id": "said.id"}
    when = first_one([one for one in named(seen.paths, NAMES["time"], depth=0) if is_time(one)])
    if when is not None:
        made.event["time"] = when.path
    made.tags = _constant(seen, made.native_id, made.used)
    return True


def _asked(seen: Survey) -> dict[str, str]:
    """The one field of what a person said and the one of what an agent did, by names such as `user_message`
    and `bot_response`, or `Customer` and `Agent` over sentences; else none."""
    found = list[tuple[str, str]]()
    for path, one in seen.paths.items():
        who, _, what = spelled(path).partition("_")
        role = role_of(who)
        says = what in UTTERED or (not what and is_sentence(one))
        if says and role.known and one.kinds["text"] and is_said(one):
            answers = who == "system" and what in ANSWERED
            found.append(("agent" if answers else role.kind, path))
    kinds = sorted(kind for kind, _ in found)
    said = dict(found)
    return {"user": said["human"], "assistant": said["agent"]} if kinds == ["agent", "human"] else {}


def _rounds(seen: Survey) -> dict[str, str | list[str]]:
    """Role -> its numbered fields, where a human and an agent have two or more each; else none."""
    numbered: dict[str, dict[int, str]] = {}
    for path, one in seen.paths.items():
        match = re.fullmatch(r"([A-Za-z][A-Za-z_-]*?)[_-]?(\d{1,3})", path)
        if match and one.kinds["text"] and role_of(match[1]).known:
            numbered.setdefault(match[1], {})[int(match[2])] = path
    many = {stem: [own[n] for n in sorted(own)] for stem, own in numbered.items() if len(own) > 1}
    kinds = {stem: role_of(stem).kind for stem in many}
    if sorted(kinds.values()) != ["agent", "human"]:
        return {}
    return {stem: many[stem] for stem in sorted(many, key=lambda stem: kinds[stem] != "human")}


def of_messages(made: Guess, seen: Survey) -> bool:
    """One message of a chat API a record, maybe within an object of it, or one event of an agent's."""
    events = [agent_events.messages(record) for record in seen.records]
    if any(events) and None not in events:
        made.shape, made.each = "messages", True
        made.native_id = _sessions_of_messages(seen)
        made.roles = roles_of(Counter(str(one["role"]) for many in events for one in many or []).items())
        return True
    for inside in ("", *(f"{path}." for path in seen.paths if "[]" not in path and path.count(".") < 2)):
        role = seen.paths.get(f"{inside}role")
        content = seen.paths.get(f"{inside}content")
        if role is None or content is None or not set(role.values) <= CHAT or not role.values:
            continue
        if _is_numbered(role, seen) or (not inside and _calls_aside(seen, inside)):
            continue
        if content.kinds["list"] or f"{inside}tool_calls" in seen.paths or "tool" in role.values:
            made.shape, made.at, made.each = "messages", inside.removesuffix(".") or None, True
            made.roles = roles_of(role.values.items())
            made.native_id = _sessions_of_messages(having(role.path, seen))
            return True
    if _call_in_parts(seen):
        made.shape, made.each = "messages", True
        made.native_id = _sessions_of_messages(seen)
        return True
    return False


def _sessions_of_messages(seen: Survey) -> list[str]:
    return [one.path for one in named(seen.paths, SESSION, depth=0) if repeats(one, seen)][:1]


def _call_in_parts(seen: Survey) -> bool:
    """Whether each record is a message in a framework's own fields, and some have calls as parts."""
    some = [dialects.messages(record) for record in seen.records[:DIALECT]]
    parts = [part for many in some for one in many or [] for part in dialects.parts(one.get("content"))]
    return bool(some) and all(some) and any(is_part(part, USE) for part in parts)


def _is_numbered(one: PathSeen, seen: Survey) -> bool:
    """Whether it stands in one of several objects of a record that are numbered."""
    numbered = re.match(r"(.*?)\d+(\.[^\d]*)$", one.path)
    if numbered is None:
        return False
    alike = re.compile(re.escape(numbered[1]) + r"\d+" + re.escape(numbered[2]))
    return sum(alike.fullmatch(path) is not None for path in seen.paths) > 1


def of_table(made: Guess, seen: Survey) -> bool:
    """One event a record."""
    of_events(made, seen, "")
    told = [path for name in ("text", "action", "command") for path in several(made.event.get(name))]
    if not told or _is_numbered(seen.paths[told[0]], seen):
        made.event, made.constant_role = {}, None
        return False
    made.shape = "table"
    role = made.event.get("role")
    used = {one for path in made.event.values() for one in several(path)}
    sessions = [one for one in session_ids(seen, role) if one.path not in used]
    if isinstance(role, str):  # else who speaks is called so
        sessions = [one for one in sessions if one.key != "name" or stands_with_several(one, role, seen)]
    if not sessions and isinstance(role, str):
        whose = [one for one in named(seen.paths, SUBJECTS, depth=0) if one.path not in used]
        sessions = [one for one in whose if repeats(one, seen) and is_spoken_with(one, role, seen)]
    sessions = sessions or of_groups(made, seen)
    made.native_id = [sessions[0].path] if sessions else []
    made.at = None
    of_numbers(made, seen)
    guess_acts.ended(made, seen, "")
    made.tags = _constant(seen, made.native_id, used)
    return role is not None or made.constant_role is not None


def _constant(seen: Survey, session: list[str], used: set[str]) -> dict[str, str]:
    """Columns that say the same in all records of a session, and not in all sessions."""
    if not session:
        return {}
    kept = {}
    for path, one in seen.paths.items():
        if path in used or path in session or "[]" in path or not is_label(one) or len(one.values) < 2:
            continue
        said: dict[str, set[str]] = {}
        for record in seen.records:
            said.setdefault(str(value_at(record, session[0])), set()).add(str(value_at(record, path)))
        if all(len(values) == 1 for values in said.values()) and len(said) > len(one.values):
            kept[one.key] = path
    return kept
