"""What an agent does, where it is written into what they say: fenced blocks, calls, and what came of them."""

from __future__ import annotations

import itertools
import re

from . import marks, turns
from .guess_made import Guess
from .guess_text import CALLS, FENCE
from .paths import several
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
    if made.shape != "messages" or made.each:
        return None
    later: list[str] = []
    first: list[str] = []
    for record in seen.records:
        many = turns.events_in(record, made.at or "", None)
        said = [
            str(one.get("content"))
            for one in many or []
            if isinstance(one, dict) and one.get("role") == "user"
        ]
        first += said[:1]
        later += said[1:]
    if len(later) < 3 or all(marks.observed(text) for text in later):
        return None
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(min(later), max(later), strict=False))
    begin = "".join(sign for sign, _ in alike).splitlines()[:1]
    mark = begin[0].strip() if begin else ""
    return mark if len(mark) > 3 and not any(text.startswith(mark) for text in first) else None


def calls(made: Guess, seen: Survey, inside: str) -> bool:
    """Whether some of the texts are nothing but calls, and no field has them."""
    path = made.event.get("text", f"{inside}content")
    one = seen.paths.get(several(path)[0])
    if one is None or f"{inside}tool_calls" in seen.paths or {"action", "command"} & set(made.event):
        return False
    whole = re.compile(rf"\A(?:{CALLS})+\]?\s*\Z".replace("?P<action>", "").replace("?P<arguments>", ""))
    return sum(bool(whole.match(text)) for text in one.texts) >= max(2, 0.1 * len(one.texts))
