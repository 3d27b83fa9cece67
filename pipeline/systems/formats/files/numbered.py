"""Records whose turns stand under numbered names (`message_1`, `message_2` ...): a list under `message_`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..messages.turns import as_event

_NUMBERED = re.compile(r"(.*[^\d])(\d{1,6})")
LEAST = 3
"""Fewest numbered names that make a list; two may be sides of a comparison."""


def stem_in(records: Sequence[dict[str, Any]]) -> str | None:
    """The stem of the turns' names in most of the records; None without any."""
    counts = Counter(stem for record in records for stem in _stems(record))
    if not counts:
        return None
    stem, count = counts.most_common(1)[0]
    return stem if count > len(records) / 2 else None


def gather_turns(record: dict[str, Any], stem: str) -> dict[str, Any]:
    """The record with its turns as a list under `stem`, in the order of their numbers.

    Empty turns are left out; whose turn a text is goes by its number. A record that has `stem` as a key
    already is returned unchanged.
    """
    places = _places(record, stem)
    if not places or stem in record:
        return record
    own = {key for _, key in places}
    rest = {key: value for key, value in record.items() if key not in own}
    first = places[0][0]
    return {**rest, stem: [as_event(number - first, record[key]) for number, key in places]}


def _places(record: dict[str, Any], stem: str) -> list[tuple[int, str]]:
    """(number, name) of the turns that are not empty, by number."""
    matches = ((_NUMBERED.fullmatch(key), key) for key in record if key.startswith(stem))
    return sorted(
        (int(match[2]), key)
        for match, key in matches
        if match and match[1] == stem and record[key] not in (None, "")
    )


def _stems(record: dict[str, Any]) -> list[str]:
    """Stems of names that are numbered from 0 or 1 without a gap, over texts or objects."""
    stems = {match[1] for key in record if (match := _NUMBERED.fullmatch(key))}
    return [stem for stem in sorted(stems - record.keys()) if _is_run(record, stem)]


def _is_run(record: dict[str, Any], stem: str) -> bool:
    places = _places(record, stem)
    numbers = [number for number, _ in places]
    talk = all(isinstance(record[key], dict) or is_said(record[key]) for _, key in places)
    return (
        len(places) >= LEAST
        and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        and (talk and numbers[0] in (0, 1))
    )


def is_said(value: object) -> bool:
    """Whether a value may be a turn: a text of several words."""
    return isinstance(value, str) and len(value.split()) > 2
