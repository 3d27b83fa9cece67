"""What an agent does, where it is written into what they say: fenced blocks, calls, and what came of them."""

from __future__ import annotations

import itertools
import re

from . import marks, turns
from .guess_made import Guess
from .guess_text import CALLS, FENCE
from .paths import Getter, getter, several
from .survey import Survey


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
