"""Hashes rest on canonical JSON: it is what Python's own encoder says, however it is made."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaudit.schemas import canonical_json
from coaudit.schemas.base import json_text, repeated

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def plainly(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@given(VALUES)
def test_canonical_json_is_what_json_says(value: object) -> None:
    assert canonical_json(value) == plainly(value)


@pytest.mark.parametrize("value", [1e16, 10**30, -0.0, math.nan, {1: 2, 0: 3}, {"b": (1,), "a": []}])
def test_numbers_and_keys_are_written_as_ever(value: object) -> None:
    assert canonical_json(value) == plainly(value)


@pytest.mark.long
def test_every_character_is_quoted_as_json_quotes_it() -> None:
    wrong = [code for code in range(0x110000) if json_text(chr(code)) != plainly(chr(code))]
    assert wrong == []
    assert json_text('a\ud800"') == plainly('a\ud800"')


def test_what_has_no_json_is_refused_and_spoils_nothing_after_it() -> None:
    circle: dict[str, Any] = {}
    circle["a"] = [circle]
    for value, error in (({"a": {1, 2}}, TypeError), (circle, RecursionError), ({(1,): 2}, TypeError)):
        with pytest.raises(error):
            canonical_json(value)
    circle.clear()
    assert canonical_json([circle, circle]) == "[{},{}]"


class _Name(str):
    """A name that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        type(self).comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_repeated_names_are_told_without_comparing_each_with_each() -> None:
    names = [_Name(number % 500) for number in range(501)]
    assert repeated(names) == {"0": 2}
    assert _Name.comparisons < 10 * len(names)
