"""What an agent does, where it is written into what they say: fenced blocks, calls, and what came of them."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import comb, prod
from operator import itemgetter, ne
from typing import Any

from . import guess_meanings, marks, turns
from .guess_made import Guess
from .guess_meanings import ANSWERS, CODES, ENDINGS, FLAWS
from .guess_names import SPEECH, TOOLS, is_label, named, spelled
from .guess_records import events_of, sessions_of
from .guess_text import CALLS, FENCE
from .paths import Getter, getter, several
from .survey import PathSeen, Survey

READERS: tuple[tuple[tuple[str, ...], Callable[[PathSeen], dict[str, str]]], ...] = (
    (ENDINGS, guess_meanings.words),
    (ENDINGS, guess_meanings.flags),
    (FLAWS, guess_meanings.flaws),
    (CODES, guess_meanings.codes),
    (ANSWERS, guess_meanings.answers),
)
"""What a field may be called that says how something ended, and what its values mean."""
FAILED = {"succeeded": "succeeded", "failed": "failed"}
"""What is said of actions by an error that stands with them, or by none."""
NAMED = (*ENDINGS, *FLAWS, *CODES, *ANSWERS)
FEW = 30
"""So many different values may say how something ended."""
EPISODES = {"done", "terminated", "truncated", "is_terminal"}
"""Fields of steps of a game, whose `success` is the game's so far."""
BACK = 0.2
"""In so many of the sessions whose actions end differently what was said comes back: else it is what the
session has come to."""
DIFFERING = 0.05
"""In so many sessions actions end differently, else it is how the session ended."""
CHANCE = 0.05
"""What turns only one way, and would by chance as seldom as that, is what the session has come to."""
SEVERAL = 1.5
"""What is said of so many actions a session that has it, is theirs."""
NEARLY = 0.8
"""So is what is said of so many of all actions."""


def ended(made: Guess, seen: Survey, inside: str) -> None:
    """How what was done ended, where a field says so of actions, or of what came back, in words, flags or
    codes that are all known, and of nothing else; flags and codes also where nothing speaks against it."""
    done = _done(made)
    if not done:
        return
    for names, read in READERS:
        for one in _near(names, done, made, seen, inside):
            meanings = read(one)
            if not {"succeeded", "failed"} <= set(meanings.values()):
                continue
            told = _told(one, made, seen, inside)
            sure = _comes_back(told)
            flags = read is guess_meanings.flags
            if sure or (
                read is not guess_meanings.words and _may_be(told, meanings, made, seen, inside, flags=flags)
            ):
                made.event = {name: path for name, path in made.event.items() if path != one.path}
                made.event["status"], made.statuses = one.path, meanings
                made.acted = [] if sure else [one.path]
                return
    for one in _near(FLAWS[:1], done, made, seen, inside):
        told = _told(one, made, seen, inside, _failed) if guess_meanings.is_error(one) else []
        if _comes_back(told) or _may_be(told, FAILED, made, seen, inside):
            made.event["error"], made.failing = one.path, True
            return
    for one in _near(NAMED, done, made, seen, inside):
        few = (
            is_label(one)
            and len(one.values) <= FEW
            and not (one.kinds["text"] and "error" in one.key.lower())
        )
        if few and any(_told(one, made, seen, inside)):
            made.acted.append(one.path)


def is_of_actions(one: PathSeen, made: Guess, seen: Survey) -> bool:
    """Whether actions alone have it of all that happens, and several of a session, or nearly all where it is
    no flag of success: that is no outcome of the session."""
    if not _done(made):
        return False
    told = _told(one, made, seen, "")
    acts = sum(map(_acts(made, ""), seen.records))
    said = sum(map(len, told))
    flag = spelled(one.key) in guess_meanings.FLAGS
    often = said > SEVERAL * sum(map(bool, told)) or (said > NEARLY * acts and not flag)
    return bool(said) and often and _is_mixed(made, seen, "")


def _near(names: tuple[str, ...], done: str, made: Guess, seen: Survey, inside: str) -> list[PathSeen]:
    """What is called so beside what names an action, or in the event that it is of; no other field's."""
    own = done.rpartition(".")[0]
    near = {own, inside.removesuffix("."), *(f"{inside}{name}" for name in TOOLS)}
    there = [one for one in named(seen.paths, names, inside) if one.path.rpartition(".")[0] in near]
    return sorted(
        (one for one in there if one.path not in made.used - {made.event.get("error")}),
        key=lambda one: one.path.rpartition(".")[0] != own,
    )


def _word(value: object, acted: bool) -> str | None:
    return None if value in (None, "") else str(value)


def _failed(value: object, acted: bool) -> str | None:
    """Of an error: what failed has one."""
    if value in (None, ""):
        return "succeeded" if acted else None
    return "failed"


def _told(
    one: PathSeen,
    made: Guess,
    seen: Survey,
    inside: str,
    said: Callable[[object, bool], str | None] = _word,
) -> list[list[str]]:
    """What it says of actions, session by session; nothing where anything else than they and the environment
    has it, the session has it as well, or it is of a game so far."""
    siblings = {path.removeprefix(inside) for path in seen.paths if path.startswith(inside)}
    if inside and (one.key in seen.paths or EPISODES & siblings):
        return []
    sessions = [[record] for record in seen.records] if inside else sessions_of(seen, made.native_id)
    told = list[list[str]]()
    for own in sessions:
        words = list(_words_of_actions(one, made, replace(seen, records=own), inside, said))
        told.append([word for word in words if word is not None])
        if None in words:
            return []
    return told


def _comes_back(told: list[list[str]]) -> bool:
    """Whether what was said of an action is said again after something else, and not seldom: that is no
    state of the session."""
    many = [words for words in told if len(words) > 1]
    differ = [words for words in many if len(set(words)) > 1]
    back = sum(_changes(words) > 1 for words in differ)
    return back > BACK * len(differ) and len(differ) >= DIFFERING * len(many)


def _changes(words: list[str]) -> int:
    return sum(map(ne, words, words[1:]))


def _may_be(
    told: list[list[str]],
    meanings: dict[str, str],
    made: Guess,
    seen: Survey,
    inside: str,
    *,
    flags: bool = False,
) -> bool:
    """Whether nothing says that a flag or code is of the session: other events have none, it is no game's,
    and it neither is the same throughout sessions nor turns only one way oftener than by chance. A flag of
    success that stands once a session is the session's."""
    if (
        not any(told)
        or not _is_mixed(made, seen, inside)
        or EPISODES & {one.key for one in seen.paths.values()}
    ):
        return False
    meant = [
        [meanings.get(word.lower(), meanings.get(word, meanings.get("*", ""))) for word in words]
        for words in told
    ]
    many = [words for words in meant if len(words) > 1]
    differ = [words for words in many if len(set(words)) > 1]
    ways = Counter(words[0] for words in differ if _changes(words) == 1)
    way, most = max(ways.items(), key=itemgetter(1), default=("", 0))
    one_way = [words for words in differ if _changes(words) == 1 and words[0] == way]
    chance = 2 * prod(1 / comb(len(words), words.count(way)) for words in one_way)
    sticks = most > (1 - BACK) * len(differ) and chance < CHANCE
    return not sticks and len(differ) >= DIFFERING * len(many) and bool(differ or not (many or flags))


def _is_mixed(made: Guess, seen: Survey, inside: str) -> bool:
    """Whether some events are neither actions nor what the environment says."""
    acts, around = _acts(made, inside), _around(made, inside)
    return any(
        not acts(event) and not around(event) for event in events_of(seen, inside.removesuffix("[]."), inside)
    )


def _words_of_actions(
    one: PathSeen, made: Guess, seen: Survey, inside: str, said: Callable[[object, bool], str | None]
) -> Iterator[str | None]:
    """What stands there where something is done, or else where something comes back, right behind an action;
    None where it is of anything else, or of both."""
    ended, done = (getter(path.removeprefix(inside)) for path in (one.path, _done(made)))
    around = _around(made, inside)
    acted = False
    kinds = set[bool]()
    for event in events_of(seen, inside.removesuffix("[]."), inside):
        before, acted = acted, bool(done(event))
        word = said(ended(event), acted)
        if word is None or str(done(event)).lower() in SPEECH:
            continue
        kinds.add(acted)
        yield word if (acted or (before and around(event))) and len(kinds) == 1 else None


def _acts(made: Guess, inside: str) -> Callable[[dict[str, Any]], bool]:
    """Whether something is done in an event, more than something is said."""
    done = getter(_done(made).removeprefix(inside))
    return lambda event: bool(done(event)) and str(done(event)).lower() not in SPEECH


def _around(made: Guess, inside: str) -> Callable[[dict[str, Any]], bool]:
    """Whether an event is the environment's, or says what came of an action."""
    names = {role.name for role in made.roles if role.kind == "environment"}
    speaks = [getter(path.removeprefix(inside)) for path in several(made.event.get("role"))]
    came = getter(made.came.removeprefix(inside)) if made.came else None
    return lambda event: (
        any(str(at(event)) in names for at in speaks) or bool(came and came(event) is not None)
    )


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
