"""Conversations that several records tell, such as those that several people rated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from .....schemas.text import count_of
from ..fields.paths import as_list
from ..messages.turns import decode_value
from .names import SESSION, fields_named
from .records import distinct_records, value_at
from .result import Guess
from .survey import Survey

SHARE = 0.1
"""The share of records that tell what another one does, from which it is said."""
FEWEST = 10
"""The fewest records of which it is said."""
OPENING = 2
"""The least turns of a conversation that another one may continue; many begin with one greeting."""


def repeat_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    """The doubt that records which tell one conversation are a session each."""
    if guess.each or guess.joined or guess.growing or guess.has_rounds or guess.shape in ("table", "spans"):
        return
    records = _last_of_each_session(distinct_records(survey), guess.native_id)
    talks = [_turns_of(record, guess) for record in records]
    again = _count_told_again(talks)
    if len(talks) < FEWEST or again < SHARE * len(talks):
        return
    is_rated = len({tuple(talk) for talk in talks}) < len(talks)
    fields = fields_named(survey.paths, (*SESSION, "item_id", "item"), depth=3) if is_rated else []
    own_side = ["side"] if survey.sides else []
    ids = ([one.path, *own_side] for one in fields if one.has_only("text", "number"))
    path = next((paths for paths in ids if _tell_apart(paths, records, talks)), None)
    what = "tell word for word what another one tells" + ("" if is_rated else ", as far as it went")
    yield (
        f"{again} of {count_of(len(talks), 'record', 'records')} {what}, and each is a session of its own; "
        "if they are ratings or copies of one conversation, "
        + (
            f"[trajectory] native_id = {json.dumps(path, ensure_ascii=False)} makes a session of each, as "
            "its last record has it, and `coaudit ratings import` reads what each person said of it"
            if path
            else "it counts several times: leave out all but one ([filter]), or give [trajectory] native_id "
            "what they share"
        )
    )


def _last_of_each_session(records: Sequence[dict[str, Any]], ids: Sequence[str]) -> list[dict[str, Any]]:
    """Records, of those with one id the last, which is the one that counts."""
    if not ids:
        return list(records)
    return list({tuple(str(value_at(record, path)) for path in ids): record for record in records}.values())


def _turns_of(record: dict[str, Any], guess: Guess) -> list[str]:
    """What a record tells, turn by turn, as texts that compare."""
    if guess.shape == "pairs":
        paths = [one.partition("[]")[0] for path in guess.fields.values() for one in as_list(path)]
        texts = [value_at(record, path) for path in paths]
        return [repr(text) for text in texts] if any(texts) else []
    value = decode_value(value_at(record, guess.at or ""))
    if isinstance(value, str):
        return [value] if value else []
    return [repr(one) for one in value] if isinstance(value, list) else []


def _count_told_again(talks: Sequence[Sequence[str]]) -> int:
    """How many talks are another one's, or its beginning."""
    wholes: Counter[int] = Counter()
    beginnings = set[int]()
    for talk in talks:
        key = 0
        for place, turn in enumerate(talk, start=1):
            key = hash((key, turn))
            if OPENING <= place < len(talk):
                beginnings.add(key)
        wholes[key] += bool(talk)
    return sum(count if key in beginnings else count - 1 for key, count in wholes.items() if count)


def _tell_apart(
    paths: Sequence[str], records: Sequence[dict[str, Any]], talks: Sequence[Sequence[str]]
) -> bool:
    """Whether fields have values of their own for each conversation."""
    ids = [tuple(str(value_at(record, path)) for path in paths) for record in records]
    wholes = [tuple(talk) for talk in talks]
    return 1 < len(set(ids)) == len(set(wholes)) == len({*zip(ids, wholes, strict=True)})
