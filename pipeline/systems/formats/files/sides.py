"""Records that hold several sessions to be compared, in fields whose names end differently: `conversation_a`,
`conversation_b`.

A side's record has the fields that all share, its own without the end (`conversation`), which `side` it is,
the number of the `record`, and `won`, where a field says whose session was liked more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..fields.roles import role_of

ENDS = (("a", "b"), ("A", "B"), ("1", "2"), ("0", "1"), ("left", "right"))
"""Pairs of endings by which fields of two sides differ."""
WINNERS = (
    "winner",
    "preferred",
    "preference",
    "choice",
    "vote",
    "better",
    "chosen",
    "label",
    "overall_preference",
)
"""Fields that say which side's session was liked more."""
Record = dict[str, Any]


def sides_in(records: Sequence[Record]) -> list[str] | None:
    """The ends with which most records have the same fields, each with something long in it; None where there
    are none."""
    for ends in ENDS:
        count = sum(any(_is_long(one[f"{stem}{ends[0]}"]) for stem in _stems(one, ends)) for one in records)
        if records and count > 0.6 * len(records) and not _are_turns(records[0], ends):
            return list(ends)
    return None


def name_winners(records: Sequence[Record], sides: Sequence[str]) -> bool:
    """Whether most records say which of their sides was liked more."""
    return sum(_has_won(record, sides[0], sides) is not None for record in records) > len(records) / 2


def split_sides(record: Record, sides: Sequence[str], number: int | None) -> Iterator[Record]:
    """A record for each side; none of a record that has no sides."""
    stems = _stems(record, sides)
    own = {f"{stem}{side}" for stem in stems for side in sides}
    rest = {key: value for key, value in record.items() if key not in own}
    for side in sides if stems else ():
        fields = {stem.rstrip("_-. ") or side: record[f"{stem}{side}"] for stem in stems}
        session = {**rest, **fields, "side": side, "record": number}
        yield {**session, "won": won} if (won := _has_won(record, side, sides)) is not None else session


def _stems(record: Iterable[str], sides: Sequence[str]) -> list[str]:
    """What the names of the fields begin with that every side has."""
    first = sides[0]
    stems = [key[: -len(first)] for key in record if key.endswith(first) and len(key) > len(first)]
    return [
        stem
        for stem in stems
        if all(f"{stem}{side}" in record for side in sides) and (stem[-1] in "_-. " or not first.islower())
    ]


def _are_turns(record: Record, ends: Sequence[str]) -> bool:
    """Whether the ends number turns, not sides: a third one follows, or a human's and an agent's fields have
    them."""
    third = chr(ord(ends[1]) + 1) if len(ends[1]) == 1 else None
    if third and any(f"{stem}{third}" in record for stem in _stems(record, ends)):
        return True
    kinds = {
        role_of(stem.strip("_-. ")).kind
        for stem in _stems(record, ends)
        if role_of(stem.strip("_-. ")).is_known
    }
    return {"human", "agent"} <= kinds


def _is_long(value: Any) -> bool:
    return isinstance(value, (list, dict)) or (isinstance(value, str) and len(value) > 40)


def _has_won(record: Record, side: str, sides: Sequence[str]) -> bool | None:
    """Whether a record names the side, alone, as the one that was liked more."""
    winner = next((record[key] for key in WINNERS if isinstance(record.get(key), str)), "")
    matches = {
        one for one in sides if re.search(rf"(?:^|[^A-Za-z0-9]){re.escape(one)}$", winner, re.IGNORECASE)
    }
    return side in matches if len(matches) == 1 else None
