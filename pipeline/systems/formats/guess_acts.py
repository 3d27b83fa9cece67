"""What an agent does, where it is written into what they say: fenced blocks, calls, and what came of them."""

from __future__ import annotations

import itertools
import re

from . import marks, turns
from .guess_made import Guess
from .guess_names import named
from .guess_records import value_at
from .guess_text import CALLS, FENCE
from .mapped_spans import FAILED, SUCCEEDED, words
from .paths import Getter, getter, several
from .survey import PathSeen, Survey

ENDINGS = ("status", "outcome", "state", "success", "succeeded", "successful", "ok", "result")
"""What a field is called that says how something ended."""
UNENDED = {
    "pending",
    "running",
    "queued",
    "started",
    "progress",
    "skipped",
    "cancelled",
    "canceled",
    "unknown",
}
"""Words for what neither succeeded nor failed, or not yet."""
TRUTH = {"true": "succeeded", "false": "failed"}


def ended(made: Guess, seen: Survey, inside: str) -> None:
    """How what was done ended, where a field of the events says so in words that are all known."""
    if not {"action", "command"} & set(made.event):
        return
    for one in named(seen.paths, ENDINGS, inside):
        meanings = {} if one.path in made.used else _meanings(one)
        if {"succeeded", "failed"} & set(meanings.values()) and (inside or _differs(one.path, made, seen)):
            made.event["status"], made.statuses = one.path, meanings
            return


def _meanings(one: PathSeen) -> dict[str, str]:
    """Word -> what it means; none where one of them means nothing that is known."""
    truths = one.only("true or false")
    if one.more or not (truths or one.only("text")):
        return {}
    said = {value.lower() if truths else value for value in one.values}
    meanings = {value: TRUTH.get(value) if truths else _meaning(value) for value in said}
    known = {value: meaning for value, meaning in sorted(meanings.items()) if meaning is not None}
    return known if len(known) == len(meanings) else {}


def _meaning(word: str) -> str | None:
    for meaning, known in (("failed", FAILED), ("succeeded", SUCCEEDED), ("unknown", UNENDED)):
        if words(word) & known and "not" not in words(word):
            return meaning
    return None


def _differs(path: str, made: Guess, seen: Survey) -> bool:
    """Whether records of one session have different values there: else it is the session's."""
    said: dict[tuple[str, ...], set[str]] = {}
    for record in seen.records:
        session = tuple(str(value_at(record, one)) for one in made.native_id)
        said.setdefault(session, set()).add(str(value_at(record, path)))
    return any(len(values) > 1 for values in said.values())


def fence(made: Guess, seen: Survey, inside: str) -> str | None:
    path = made.event.get("text", f"{inside}content")
    one = seen.paths.get(several(path)[0])
    found = [match[1] for text in (one.texts if one else []) if (match := FENCE.search(text))]
    has_tools = f"{inside}tool_calls" in seen.paths or "action" in made.event or "command" in made.event
    if has_tools or one is None or len(found) < max(2, 0.2 * len(one.texts)):
        return None
    return max(set(found), key=found.count)


def observed(made: Guess, seen: Survey) -> str | None:
    """What all of a user's turns but the first begin with, where agents act in fenced blocks."""
    if made.each or made.shape not in ("messages", "list"):
        return None
    role, text = _speech(made)
    first: list[str] = []
    later: list[str] = []
    for record in seen.records:
        many = turns.events_in(record, made.at or "", None) or []
        said = [str(text(one)) for one in many if isinstance(one, dict) and role(one) in ("user", "human")]
        first += said[:1]
        later += said[1:]
    if len(later) < 3 or all(marks.observed(one) for one in later):
        return None
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(min(later), max(later), strict=False))
    begin = "".join(sign for sign, _ in alike).splitlines()[:1]
    mark = begin[0].strip() if begin else ""
    return mark if len(mark) > 3 and not any(one.startswith(mark) for one in first) else None


def speech_paths(made: Guess) -> tuple[str, str]:
    """Where who speaks and what they say stand in an event of a list."""
    role, text = (several(made.event.get(name, name))[0] for name in ("role", "text"))
    return (role, text) if made.shape == "list" else ("role", "content")


def _speech(made: Guess) -> tuple[Getter, Getter]:
    role, text = (path.removeprefix(f"{made.at}[].") for path in speech_paths(made))
    return getter(role), getter(text)


def calls(made: Guess, seen: Survey, inside: str) -> bool:
    """Whether some of the texts are nothing but calls, and no field has them."""
    path = made.event.get("text", f"{inside}content")
    one = seen.paths.get(several(path)[0])
    if one is None or f"{inside}tool_calls" in seen.paths or {"action", "command"} & set(made.event):
        return False
    whole = re.compile(rf"\A(?:{CALLS})+\]?\s*\Z".replace("?P<action>", "").replace("?P<arguments>", ""))
    return sum(bool(whole.match(text)) for text in one.texts) >= max(2, 0.1 * len(one.texts))
