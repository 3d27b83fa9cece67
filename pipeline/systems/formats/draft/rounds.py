"""Records whose fields are numbered rounds of what two say: `user_1`, `bot_1`, `user_2` ..."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..fields.roles import role_of
from ..files.numbered import is_said, stem_in

ASKS = {"prompt", "question", "query", "input", "instruction", "request", "q"}
ANSWERS = {"response", "answer", "reply", "output", "completion", "a"}
"""Last words of the names of what is asked and of what is answered."""
DIFFERENT = 0.5
"""Share of the records, or of the texts, that is most of them."""
_NUMBERED = re.compile(r"([A-Za-z][A-Za-z_-]*?)[_-]?(\d{1,3})([_-][A-Za-z][A-Za-z_-]*)?")
"""A name with one number: what stands before it, the number, what stands behind."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def rounds_in(records: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Role -> its numbered fields in order, the human's first, where a human and an agent have two or more
    each; else empty.

    Where the names say of no two that they are these, the last words may: of `GPT_1_prompt` and
    `GPT_1_answer`. Most answers are of several words, or else they may be names or marks: only `user_1` and
    `bot_1` are believed without, where no other numbered fields hold a talk.
    """
    rounds = _numbered_texts(records)
    kinds = {stem: role_of(stem).kind for stem in rounds if role_of(stem).is_known}
    if sorted(kinds.values()) == ["agent", "human"]:
        sides = {stem: rounds[stem] for stem in sorted(kinds, key=lambda stem: kinds[stem] != "human")}
        questions, replies = sides.values()
        are_plain = all(name[-1].isdigit() for name in (*questions, *replies))
        return sides if _are_said(records, replies) or (are_plain and _are_alone(records, sides)) else {}
    asks = [stem for stem in rounds if _last_word(stem) in ASKS]
    answers = [stem for stem in rounds if _last_word(stem) in ANSWERS]
    if len(asks) != 1 or len(answers) != 1:
        return {}
    sides = {"user": rounds[asks[0]], "assistant": rounds[answers[0]]}
    is_talk = _are_said(records, sides["assistant"]) and not _are_alike(records, sides["user"])
    return sides if is_talk else {}


def _numbered_texts(records: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Name without its number -> the fields with two numbers or more that hold texts, by number."""
    by_stem: dict[str, dict[int, str]] = {}
    for name in dict.fromkeys(key for record in records for key, value in record.items() if _is_text(value)):
        if match := _NUMBERED.fullmatch(name):
            by_stem.setdefault(match[1] + (match[3] or ""), {})[int(match[2])] = name
    return {stem: [own[n] for n in sorted(own)] for stem, own in by_stem.items() if len(own) > 1}


def _are_said(records: Sequence[dict[str, Any]], fields: Sequence[str]) -> bool:
    """Whether most texts in fields are of several words."""
    texts = [text for record in records for field in fields if _is_text(text := record.get(field))]
    return sum(map(is_said, texts)) >= DIFFERENT * len(texts)


def _are_alone(records: Sequence[dict[str, Any]], sides: Mapping[str, Sequence[str]]) -> bool:
    """Whether no turns stand under numbered names other than those of the two sides."""
    stem = stem_in(records)
    names = itertools.chain(*sides.values())
    return stem is None or any(name.rstrip("0123456789") == stem for name in names)


def _are_alike(records: Sequence[dict[str, Any]], fields: Sequence[str]) -> bool:
    """Whether most records begin with a question that another has, too, as those of a questionnaire do, or
    ask the same in each of their fields, as those of a comparison do."""
    questions = [{str(record.get(field)) for field in fields} for record in records]
    counts = Counter(itertools.chain(*questions))
    repeats = sum(counts[str(record.get(fields[0]))] > 1 for record in records)
    return max(repeats, sum(len(one) == 1 for one in questions)) >= DIFFERENT * len(records)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _last_word(name: str) -> str:
    *_, word = _WORD.findall(name)
    return str(word).lower()
