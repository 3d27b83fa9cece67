"""What an agent does, where it is written into what they say: fenced blocks, calls, and what came of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import ne
from typing import Any

from . import marks, turns
from .guess_made import Guess
from .guess_names import SPEECH, TOOLS, named, spelled
from .guess_records import events_of, session_of
from .guess_text import CALLS, FENCE
from .paths import Getter, getter, several
from .survey import PathSeen, Survey

ENDINGS = ("status", "outcome", "state", "success", "ok", "result")
"""What a field is called that says how something ended."""
MEANINGS: dict[str, str] = {
    **dict.fromkeys(("ok", "okay", "success", "successful", "succeeded"), "succeeded"),
    **dict.fromkeys(("completed", "done", "passed"), "succeeded"),
    **dict.fromkeys(("error", "errored", "fail", "failed", "failure", "exception"), "failed"),
    **dict.fromkeys(("timeout", "timed out", "crashed", "aborted", "invalid"), "failed"),
    **dict.fromkeys(("skipped", "cancelled", "canceled", "unknown", "n a", "partial"), "unknown"),
}
"""What is said of how something ended, and nothing else: `no error` and `running` are no words of these."""
TRUTH = {"true": "succeeded", "false": "failed"}
FLAWS = ("error", "is_error", "has_error", "failed", "errored")
"""What a flag is called that is true where something failed; or `error` is a text, and null elsewhere."""
FLAWED = {"true": "failed", "false": "succeeded"}
CODES = ("exit_code", "exitcode", "return_code", "returncode", "exit_status")
"""What the number is called with which a program ends: 0 where nothing failed."""
EXITS = {"0": "succeeded", "*": "failed"}
MOST = 255
"""The greatest exit code; a negative one may stand for none."""
_HARMLESS = re.compile(
    r"(none|no|nothing|null|nil|nan|n/?a|undefined|unknown|ok(ay)?|true|false)\W*$|\W*$|.*\b0\W*$|success|warn"
    r"|(no|0|without)( \w+)? (error|issue|problem|warning|failure|exception)",
    re.IGNORECASE,
)
"""How a text of an error begins that may say that there was none: `no route` says that there was one."""
EPISODES = {"done", "terminated", "truncated", "is_terminal"}
"""Fields of steps of a game, whose `success` is the game's so far."""
BACK = 0.2
"""In so many of the sessions whose actions end differently what was said comes back: else it is what the
session has come to."""
DIFFERING = 0.05
"""In so many sessions actions end differently, else it is how the session ended."""


def ended(made: Guess, seen: Survey, inside: str) -> None:
    """How what was done ended, where a field says so of actions, or of what came back, in words that are all
    known, and of nothing else."""
    done = _done(made)
    if not done or (not inside and not made.native_id and len(seen.files) > 1):
        return
    for names, read in ((ENDINGS, _meanings), (FLAWS, _flaws), (CODES, _codes)):
        for one in _near(names, done, made, seen, inside):
            meanings = read(one)
            if {"succeeded", "failed"} <= set(meanings.values()) and _is_of_actions(one, made, seen, inside):
                made.event["status"], made.statuses = one.path, meanings
                return
    for one in _near(FLAWS[:1], done, made, seen, inside):
        if _is_error(one) and _is_of_actions(one, made, seen, inside, _failed):
            made.event["error"], made.failing = one.path, True
            return


def _near(names: tuple[str, ...], done: str, made: Guess, seen: Survey, inside: str) -> list[PathSeen]:
    """What is called so beside what names an action, or in the event that it is of; no other field's."""
    own = done.rpartition(".")[0]
    near = {own, inside.removesuffix("."), *(f"{inside}{name}" for name in TOOLS)}
    there = [one for one in named(seen.paths, names, inside) if one.path.rpartition(".")[0] in near]
    return sorted(
        (one for one in there if one.path not in made.used),
        key=lambda one: one.path.rpartition(".")[0] != own,
    )


def _flaws(one: PathSeen) -> dict[str, str]:
    return FLAWED if one.only("true or false") and spelled(one.key) in FLAWS else {}


def _codes(one: PathSeen) -> dict[str, str]:
    if one.more or spelled(one.key) not in CODES or not one.only("number", "text"):
        return {}
    exits = all(value.isdecimal() and int(value) <= MOST for value in one.values)
    return EXITS if exits and "0" in one.values else {}


def _is_error(one: PathSeen) -> bool:
    """Whether it says what went wrong, and null or nothing elsewhere."""
    if one.more or spelled(one.key) != FLAWS[0] or not one.only("text"):
        return False
    return not any(_HARMLESS.match(value.strip()) for value in one.values if value)


def _meanings(one: PathSeen) -> dict[str, str]:
    """Word -> what it means; none where one of them means nothing that is known."""
    truths = one.only("true or false")
    if one.more or not (truths or one.only("text")):
        return {}
    said = {value.lower() if truths else value for value in one.values}
    known = TRUTH if truths else MEANINGS
    meanings = {value: known.get(" ".join(re.findall(r"[a-z]+", value.lower()))) for value in sorted(said)}
    return (
        {value: meaning for value, meaning in meanings.items() if meaning} if all(meanings.values()) else {}
    )


def _word(value: object, acted: bool) -> str | None:
    return None if value in (None, "") else str(value)


def _failed(value: object, acted: bool) -> str | None:
    """Of an error: what failed has one."""
    if value in (None, ""):
        return "succeeded" if acted else None
    return "failed"


def _is_of_actions(
    one: PathSeen,
    made: Guess,
    seen: Survey,
    inside: str,
    said: Callable[[object, bool], str | None] = _word,
) -> bool:
    """Whether only actions and the environment have it, and it is said of each and not of their session."""
    siblings = {path.removeprefix(inside) for path in seen.paths if path.startswith(inside)}
    if inside and (one.key in seen.paths or EPISODES & siblings):
        return False
    sessions: dict[object, list[dict[str, Any]]] = {}
    for number, record in enumerate(seen.records):
        session = number if inside else session_of(record, made.native_id)
        sessions.setdefault(session, []).append(record)
    told = [
        list(_words_of_actions(one, made, replace(seen, records=own), inside, said))
        for own in sessions.values()
    ]
    if any(None in words for words in told):
        return False
    many = [words for words in told if len(words) > 1]
    differ = [words for words in many if len(set(words)) > 1]
    back = sum(sum(map(ne, words, words[1:])) > 1 for words in differ)
    return back > BACK * len(differ) and len(differ) >= DIFFERING * len(many)


def _words_of_actions(
    one: PathSeen, made: Guess, seen: Survey, inside: str, said: Callable[[object, bool], str | None]
) -> Iterator[str | None]:
    """What stands there where something is done, or else where something comes back, right behind an action;
    None where it is of anything else, or of both."""
    around = {role.name for role in made.roles if role.kind == "environment"}
    ended, acts = (getter(path.removeprefix(inside)) for path in (one.path, _done(made)))
    speaks = [getter(path.removeprefix(inside)) for path in several(made.event.get("role"))]
    acted = False
    kinds = set[bool]()
    for event in events_of(seen, inside.removesuffix("[]."), inside):
        before, acted = acted, bool(acts(event))
        word = said(ended(event), acted)
        if word is None or str(acts(event)).lower() in SPEECH:
            continue
        came = before and any(str(at(event)) in around for at in speaks)
        kinds.add(acted)
        yield word if (acted or came) and len(kinds) == 1 else None


def _done(made: Guess) -> str:
    """Where an event names what was done; "" where none does."""
    return several(made.event.get("action", made.event.get("command")) or [""])[0]


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
