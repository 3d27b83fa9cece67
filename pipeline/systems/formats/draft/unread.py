"""Sentences of a conversation that a drafted mapping does not read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .names import LISTS, SAID, SECRET, is_sentence, snake_case
from .records import value_at
from .result import Guess
from .survey import PathSummary, Survey

TEXTS = {
    *("response", "reply", "answer", "completion", "output", "context", "history", "prompt", "question"),
    *("query", "user_input", "user_message", "dialogue", "dialog", "conversation", *SAID),
}
"""Names of what may be said in a conversation."""
OF_MANY = {*LISTS, "answers", "questions", "responses", "replies", "completions"} - {
    "actions",
    "trace",
    "log",
}
"""Names of lists of it."""
NAMED = 8
LOOK = 100
"""Records that are looked at."""
LEAST = 0.3
"""The least share of records that must have such sentences."""


def unread_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    """The doubt that sentences which are called after a conversation, and stand beside the one that is read,
    are left out; not where they stand in it, too."""
    if guess.shape not in ("list", "text") or guess.at is None or survey.format == "text":
        return
    read = {*guess.mapped_paths, *guess.head.values(), *guess.tags.values(), *guess.outcomes.values()}
    paths = [
        one.path
        for one in survey.paths.values()
        if _is_beside(one, guess.at) and one.path not in read and is_sentence(one)
    ]
    records = survey.records[:LOOK]
    paths = [path for path in paths if _count_unread(path, guess.at, records) >= LEAST * len(records)]
    if names := list(dict.fromkeys(path.partition("[]")[0] for path in paths)):
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield (
            f"sentences beside {guess.at} are left out, at {', '.join(names[:NAMED])}{more}: if they "
            "belong to the conversation, it lacks them"
        )


def _is_beside(field: PathSummary, at: str) -> bool:
    """Whether a field is called after what is said, or lies in a list that is."""
    around, _, inside = field.path.partition("[]")
    if field.path.startswith(f"{at}[") or around == at or SECRET.search(field.path) or "[]" in inside:
        return False
    key = around.rpartition(".")[2] if inside else field.key
    return snake_case(key) in (OF_MANY if inside else TEXTS)


def _count_unread(path: str, at: str, records: Sequence[dict[str, Any]]) -> int:
    """How many records have a text there that is nowhere in the list that is read."""
    around, _, inside = path.partition("[].")
    count = 0
    for record in records:
        value: Any = value_at(record, around)
        items = value if isinstance(value, list) else [value]
        texts = [value_at(item, inside) if inside else item for item in items]
        talk = _plain(value_at(record, at))
        count += any(isinstance(text, str) and text.strip() and _plain(text) not in talk for text in texts)
    return count


def _plain(value: Any) -> str:
    """A value as a text without anything but letters and digits, as which texts compare."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return "".join(filter(str.isalnum, text.replace("\\n", " ").replace("\\t", " ")))
