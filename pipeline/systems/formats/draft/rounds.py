"""Records whose fields are numbered rounds of what two say: `user_1`, `bot_1`, `user_2` ..."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..fields.roles import role_of

ASKS = {"prompt", "question", "query", "input", "instruction", "request", "q"}
ANSWERS = {"response", "answer", "reply", "output", "completion", "a"}
"""Last words of the names of what is asked and of what is answered."""
DIFFERENT = 0.5
"""Share of the records that is most of them."""
_NUMBERED = re.compile(r"([A-Za-z][A-Za-z_-]*?)[_-]?(\d{1,3})([_-][A-Za-z][A-Za-z_-]*)?")
"""A name with one number: what stands before it, the number, what stands behind."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def rounds_in(records: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Role -> its numbered fields in order, the human's first, where a human and an agent have two or more
    each; else empty.

    Where the names say of no two that they are these, the last words may: of `GPT_1_prompt` and
    `GPT_1_answer`.
    """
    rounds = _numbered_texts(records)
    kinds = {stem: role_of(stem).kind for stem in rounds if role_of(stem).is_known}
    if sorted(kinds.values()) == ["agent", "human"]:
        return {stem: rounds[stem] for stem in sorted(kinds, key=lambda stem: kinds[stem] != "human")}
    asks = [stem for stem in rounds if _last_word(stem) in ASKS]
    answers = [stem for stem in rounds if _last_word(stem) in ANSWERS]
    if len(asks) != 1 or len(answers) != 1:
        return {}
    if _are_alike(records, rounds[asks[0]]):
        return {}
    return {"user": rounds[asks[0]], "assistant": rounds[answers[0]]}


def _numbered_texts(records: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Name without its number -> the fields with two numbers or more that hold texts, by number."""
    by_stem: dict[str, dict[int, str]] = {}
    for name in dict.fromkeys(key for record in records for key, value in record.items() if _is_text(value)):
        if match := _NUMBERED.fullmatch(name):
            by_stem.setdefault(match[1] + (match[3] or ""), {})[int(match[2])] = name
    return {stem: [own[n] for n in sorted(own)] for stem, own in by_stem.items() if len(own) > 1}


def _are_alike(records: Sequence[dict[str, Any]], fields: Sequence[str]) -> bool:
    """Whether most records ask the same as others, as those of a questionnaire do, or in each of their
    fields, as those of a comparison do."""
    first = {str(record.get(fields[0])) for record in records}
    comparisons = sum(len({str(record.get(field)) for field in fields}) == 1 for record in records)
    return len(first) <= DIFFERENT * len(records) or comparisons >= DIFFERENT * len(records)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _last_word(name: str) -> str:
    *_, word = _WORD.findall(name)
    return str(word).lower()
