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


def of_spans(guess: Guess, survey: Survey) -> bool:
    """One span a record."""
    guess.spans = guess_spans.fields_of(survey, "")
    if not guess.spans:
        return False
    guess.shape, guess.each = "spans", True
    guess.native_id = guess_spans.traces(survey, guess.spans)
    return True


def of_list(guess: Guess, survey: Survey, path: str) -> None:
    inside = f"{path}[]."
    roles = survey.paths.get(f"{inside}role") or survey.paths.get(f"{inside}type")
    has_content = f"{inside}content" in survey.paths or f"{inside}tool_calls" in survey.paths
    chat = roles is not None and has_content
    chat_count = sum(count for value, count in roles.values.items() if value in CHAT) if roles else 0
    guess.at = path
    guess.spans = guess_spans.fields_of(survey, inside)
    if guess.spans:
        guess.shape = "spans"
        return
    if (pattern := _marks(survey, path)) is not None:
        _of_marks(guess, path, *pattern)
        return
    dialect_roles = in_dialect(survey, path)
    if dialect_roles:
        guess.shape, guess.roles = "messages", roles_of(dialect_roles.items())
    elif (
        chat
        and roles
        and chat_count > 0.95 * sum(roles.values.values())
        and not _names_tell_more(survey, inside, roles)
        and not _names_contradict_roles(survey, inside, roles)
        and not _has_action_field(survey, inside)
        and not _has_party_field(survey, inside, roles)
    ):
        guess.shape = "messages"
        guess.roles = roles_of(roles.values.items())
    else:
        guess.shape = "list"
        of_events(guess, survey, inside)
        guess_acts.ended(guess, survey, inside)
    if guess.shape == "messages":
        senders = list(_message_senders(survey, path))
        guess.renamed = otherwise(senders)
        guess.told = {who: "human" for who in several_users(senders) if who not in guess.renamed}
        guess_calls.of_messages(guess, survey)
        if guess.reply and roles is not None:
            guess.roles = roles_of([*roles.values.items(), ("assistant", 0)])
    guess.fence = guess_acts.fence(guess, survey, inside)
    guess.observed = guess_acts.observed(guess, survey) if guess.fence else None
    guess.calls = guess.fence is None and guess_acts.calls(guess, survey, inside)


def _marks(survey: Survey, path: str) -> tuple[str, Counter[str]] | None:
    """What nearly all texts of lists of texts begin with, if that says who speaks; and the names in it."""
    lists: list[Any] = [value for record in survey.records if (value := value_at(record, path))]
    if not lists or not all(map(is_texts, lists)):
        return None
    texts: list[str] = list(itertools.chain(*lists))
    for pattern in PATTERNS:
        matches = (expression(pattern).match(text) for text in texts)
        names = Counter(match["speaker"] for match in matches if match)
        has_known_role = any(role_of(name).known for name in names)
        if has_known_role and 2 <= len(names) <= SPEAKERS and names.total() >= MARKED * len(texts):
            return pattern, names
    return None


def _of_marks(guess: Guess, path: str, pattern: str, names: Counter[str]) -> None:
    guess.shape, guess.at, guess.patterns = "text", path, [pattern]
    guess.event = {"role": f"{path}[].speaker", "text": f"{path}[].text"}
    guess.roles = roles_of(names.items())


def in_dialect(survey: Survey, path: str) -> Counter[str]:
    """Roles of a list's messages where they are written otherwise than a chat API's; else none."""
    items = list(itertools.islice(events_of(survey, path, f"{path}[]."), DIALECT))
    message_lists = [dialects.messages(item) for item in items]
    other = sum(not dialects.is_plain(item) for item in items)
    messages = [one for many in message_lists for one in many or []]
    alone = len(messages) <= len(items)
    if not items or None in message_lists or not other or (alone and _as_texts(survey, path)):
        return Counter()
    return Counter(one["role"] for one in messages)


def _as_texts(survey: Survey, path: str) -> bool:
    """Whether all that is said in a list is a plain text under a name that is read as one."""
    inside = f"{path}[]."
    texts = [one for one in named(survey.paths, NAMES["text"], inside) if is_said(one) and one.only("text")]
    has_calls = any(f"{inside}{key}" in survey.paths for key in dialects.CALLED)
    return not has_calls and any(one.count >= items_in(survey, path) for one in texts)


def _names_tell_more(survey: Survey, inside: str, role: PathSeen) -> bool:
    """Whether messages have names that tell more than their roles, which are then a framework's matter."""
    names, roles = names_and_roles(survey, inside, f"{inside}name", role.path)
    return len(names) > len(roles) and "tool" not in roles and sum(names.values()) > 0.6 * role.count


def _names_contradict_roles(survey: Survey, inside: str, role: PathSeen) -> bool:
    """Whether names say otherwise than roles of whom they are, where nothing but texts would be lost."""
    contrary_names = otherwise(named_with(survey, inside, f"{inside}name", role.path))
    return bool(contrary_names) and "tool" not in role.values and f"{inside}tool_calls" not in survey.paths


def _has_party_field(survey: Survey, inside: str, role: PathSeen) -> bool:
    """Whether all have the same role, and a field beside it tells people from agents, where nothing but texts
    would be lost."""
    beside = [one for one in named(survey.paths, NAMES["role"], inside, depth=0) if is_sides(one)]
    plain = f"{inside}tool_calls" not in survey.paths
    return plain and len(role.values) == 1 and any(one.count >= role.count for one in beside)


def _message_senders(survey: Survey, path: str) -> Iterator[tuple[int, str, str]]:
    """Of each message of a list its record, its name ("" for none) and its role."""
    for number, record in enumerate(survey.records):
        for item in events_of(replace(survey, records=[record]), path, f"{path}[]."):
            messages = dialects.messages(item)
            for one in [item] if messages is None else messages:
                yield number, str(one.get("name") or ""), str(one.get("role"))


def _has_action_field(survey: Survey, inside: str) -> bool:
    """Whether agents' messages name what was done in a field of their own, which chat APIs do not have."""
    if f"{inside}tool_calls" in survey.paths:
        return False
    names = [one for one in named(survey.paths, NAMES["action"], inside, depth=0) if one.only("text")]
    getters = [getter(one.path.removeprefix(inside)) for one in names if is_tool_name(one)]
    return any(
        role_of(str(event.get("role"))).kind == "agent" and any(at(event) for at in getters)
        for event in (events_of(survey, inside.removesuffix("[]."), inside) if getters else ())
    )


def of_text(guess: Guess, survey: Survey) -> bool:
    """Texts in which turns are marked, such as `User: ...`."""
    best: tuple[tuple[bool, float], PathSeen, str] | None = None
    for one in survey.paths.values():
        if "[]" in one.path or not one.texts or (one.mean_length < 40 and survey.format != "text"):
            continue
        pattern = pattern_of(one.texts)
        rank = (one.key not in LESSER, one.characters)
        if pattern and (best is None or rank > best[0]):
            best = (rank, one, pattern)
    if best is None:
        return _of_pages(guess, survey)
    _, one, pattern = best
    _of_marks(guess, one.path, pattern, speakers(one.texts, pattern))
    timed(guess, one.texts, pattern)
    return True


def _of_pages(guess: Guess, survey: Survey) -> bool:
    """Pages of code that was run, each block with what it printed."""
    one = next((one for one in survey.paths.values() if one.texts and fenced(one.texts)), None)
    if one is None:
        return False
    guess.shape, guess.at, guess.patterns = "text", one.path, [FENCED]
    guess.code = fenced(one.texts)
    guess.event = {"role": f"{one.path}[].speaker", "text": f"{one.path}[].text"}
    guess.roles = [
        Role(str(guess.code), "agent", True, len(one.texts)),
        Role("environment", "environment", True),
    ]
    return True


def of_pairs(guess: Guess, survey: Survey) -> bool:
    """A record that is a question with its answer."""
    table = [one for one in named(survey.paths, NAMES["role"]) if is_speaker(one)]
    guess.fields = _rounds(survey)
    rounds = bool(guess.fields)
    for names, role in () if rounds else PAIRS:
        text_field = first_one(
            [one for one in named(survey.paths, names) if one.kinds["text"] > 0 and is_said(one)]
        )
        if text_field is not None:
            guess.fields[role] = text_field.path
    if not rounds and not {"user", "assistant"} <= set(guess.fields):
        system, pair = guess.fields.get("system"), _pair_fields(survey)
        guess.fields = {**({"system": system} if system and system not in pair.values() else {}), **pair}
    if not rounds and (table or not {"user", "assistant"} <= set(guess.fields)):
        guess.fields = {}
        return False
    guess.roles = roles_of((role, len(survey.records)) for role in guess.fields)
    session = None if rounds else session_of_rounds(survey, str(guess.fields["user"]))
    if session is None:
        guess.shape, guess.at = "pairs", "turns"
        guess.event = {"role": "turns[].role", "text": "turns[].text"}
        return True
    guess.shape, guess.rounds, guess.native_id = "table", True, [session.path]
    guess.event = {"role": "said.role", "text": "said.text", "id": "said.id"}
    when = first_one([one for one in named(survey.paths, NAMES["time"], depth=0) if is_time(one)])
    if when is not None:
        guess.event["time"] = when.path
    guess.tags = _constant_columns(survey, guess.native_id, guess.used)
    return True


def _pair_fields(survey: Survey) -> dict[str, str]:
    """The one field of what a person said and the one of what an agent did, by names such as `user_message`
    and `bot_response`, or `Customer` and `Agent` over sentences; else none."""
    candidates = list[tuple[str, str]]()
    for path, one in survey.paths.items():
        who, _, what = spelled(path).partition("_")
        role = role_of(who)
        says = what in UTTERED or (not what and is_sentence(one))
        if says and role.known and one.kinds["text"] and is_said(one):
            answers = who == "system" and what in ANSWERED
            candidates.append(("agent" if answers else role.kind, path))
    kinds = sorted(kind for kind, _ in candidates)
    paths = dict(candidates)
    return {"user": paths["human"], "assistant": paths["agent"]} if kinds == ["agent", "human"] else {}


def _rounds(survey: Survey) -> dict[str, str | list[str]]:
    """Role -> its numbered fields, where a human and an agent have two or more each; else none."""
    by_stem: dict[str, dict[int, str]] = {}
    for path, one in survey.paths.items():
        match = re.fullmatch(r"([A-Za-z][A-Za-z_-]*?)[_-]?(\d{1,3})", path)
        if match and one.kinds["text"] and role_of(match[1]).known:
            by_stem.setdefault(match[1], {})[int(match[2])] = path
    rounds = {stem: [own[n] for n in sorted(own)] for stem, own in by_stem.items() if len(own) > 1}
    kinds = {stem: role_of(stem).kind for stem in rounds}
    if sorted(kinds.values()) != ["agent", "human"]:
        return {}
    return {stem: rounds[stem] for stem in sorted(rounds, key=lambda stem: kinds[stem] != "human")}


def of_messages(guess: Guess, survey: Survey) -> bool:
    """One message of a chat API a record, maybe within an object of it, or one event of an agent's."""
    events = [agent_events.messages(record) for record in survey.records]
    if any(events) and None not in events:
        guess.shape, guess.each = "messages", True
        guess.native_id = _sessions_of_messages(survey)
        guess.roles = roles_of(Counter(str(one["role"]) for many in events for one in many or []).items())
        return True
    for inside in ("", *(f"{path}." for path in survey.paths if "[]" not in path and path.count(".") < 2)):
        role = survey.paths.get(f"{inside}role")
        content = survey.paths.get(f"{inside}content")
        if role is None or content is None or not set(role.values) <= CHAT or not role.values:
            continue
        if _is_numbered(role, survey) or (not inside and _has_action_field(survey, inside)):
            continue
        if content.kinds["list"] or f"{inside}tool_calls" in survey.paths or "tool" in role.values:
            guess.shape, guess.at, guess.each = "messages", inside.removesuffix(".") or None, True
            guess.roles = roles_of(role.values.items())
            guess.native_id = _sessions_of_messages(having(role.path, survey))
            return True
    if _call_in_parts(survey):
        guess.shape, guess.each = "messages", True
        guess.native_id = _sessions_of_messages(survey)
        return True
    return False


def _sessions_of_messages(survey: Survey) -> list[str]:
    return [one.path for one in named(survey.paths, SESSION, depth=0) if repeats(one, survey)][:1]


def _call_in_parts(survey: Survey) -> bool:
    """Whether each record is a message in a framework's own fields, and some have calls as parts."""
    some = [dialects.messages(record) for record in survey.records[:DIALECT]]
    parts = [part for many in some for one in many or [] for part in dialects.parts(one.get("content"))]
    return bool(some) and all(some) and any(is_part(part, USE) for part in parts)


def _is_numbered(one: PathSeen, survey: Survey) -> bool:
    """Whether it stands in one of several objects of a record that are numbered."""
    match = re.match(r"(.*?)\d+(\.[^\d]*)$", one.path)
    if match is None:
        return False
    alike = re.compile(re.escape(match[1]) + r"\d+" + re.escape(match[2]))
    return sum(alike.fullmatch(path) is not None for path in survey.paths) > 1


def of_table(guess: Guess, survey: Survey) -> bool:
    """One event a record."""
    of_events(guess, survey, "")
    content_paths = [
        path for name in ("text", "action", "command") for path in several(guess.event.get(name))
    ]
    if not content_paths or _is_numbered(survey.paths[content_paths[0]], survey):
        guess.event, guess.constant_role = {}, None
        return False
    guess.shape = "table"
    role = guess.event.get("role")
    event_paths = {one for path in guess.event.values() for one in several(path)}
    sessions = [one for one in session_ids(survey, role) if one.path not in event_paths]
    if isinstance(role, str):  # else who speaks is called so
        sessions = [one for one in sessions if one.key != "name" or stands_with_several(one, role, survey)]
    if not sessions and isinstance(role, str):
        whose = [one for one in named(survey.paths, SUBJECTS, depth=0) if one.path not in event_paths]
        sessions = [one for one in whose if repeats(one, survey) and is_spoken_with(one, role, survey)]
    sessions = sessions or of_groups(guess, survey)
    guess.native_id = [sessions[0].path] if sessions else []
    guess.at = None
    of_numbers(guess, survey)
    guess_acts.ended(guess, survey, "")
    guess.tags = _constant_columns(survey, guess.native_id, event_paths)
    return role is not None or guess.constant_role is not None


def _constant_columns(survey: Survey, session: list[str], event_paths: set[str]) -> dict[str, str]:
    """Columns that say the same in all records of a session, and not in all sessions."""
    if not session:
        return {}
    tags = {}
    for path, one in survey.paths.items():
        if path in event_paths or path in session or "[]" in path or not is_label(one) or len(one.values) < 2:
            continue
        values_by_session: dict[str, set[str]] = {}
        for record in survey.records:
            values_by_session.setdefault(str(value_at(record, session[0])), set()).add(
                str(value_at(record, path))
            )
        if all(len(values) == 1 for values in values_by_session.values()) and len(values_by_session) > len(
            one.values
        ):
            tags[one.key] = path
    return tags
