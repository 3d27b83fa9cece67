"""Many lines of a ledger at once: what is taken is what each line says by itself, and doubt takes none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.store.ledgers import ledger
from coaudit.pipeline.store.ledgers.ledger_columns import Columns, columns
from coaudit.pipeline.store.tables import rows
from coaudit.schemas import Rating

LEAST = {"trajectory": "t", "codebook": "b", "code": "c", "rater": "ann", "rater_kind": "human", "label": "x"}


def line(**said: Any) -> bytes:
    """A line of a ledger; None takes a field out."""
    given = {name: value for name, value in {**LEAST, **said}.items() if value is not None}
    return json.dumps(given, ensure_ascii=False).encode() + b"\n"


def of(*lines: bytes) -> Columns | None:
    """These lines at once."""
    return columns(lines, ["l"] * len(lines), list(range(1, len(lines) + 1)))


def each(lines: Sequence[bytes]) -> dict[str, list[Any]]:
    """The same lines, one by one."""
    items = [ledger.rating(one, Path("l")) for one in lines]
    ratings = [item for item in items if isinstance(item, Rating)]
    assert len(ratings) == len(lines)
    made = rows.ratings(ratings, ["l"] * len(lines), list(range(1, len(lines) + 1)))
    return {name: list(values) for name, values in made.items()}


def test_lines_at_once_say_what_each_says_by_itself() -> None:
    lines = [
        line(),
        line(event=3, unit_hash="0a", cites=[3, 4], repeat=1, probability=1, seconds=0.5),
        line(label=None, error="no answer", rater="m", rater_kind="llm", parameters={"b": 1.0, "a": [None]}),
        line(label=None, retracted=True, external={"ä": "\u2028"}, quote='"\\', event="12", seed=-(2**63)),
        line(rater="gold", rationale=" \n", prompt_tokens=2**62, created="2026-01-01"),
        b"  " + line(rater="trained:x", rater_kind="model"),
    ]
    at_once = of(*lines)
    assert at_once is not None
    one_by_one = each(lines)
    assert {name: list(values) for name, values in at_once.items()} == {
        name: one_by_one[name] for name in at_once
    }
    left_out = set(one_by_one) - set(at_once)
    assert left_out == {"codebook_version", "rater_version", "error_source", "model", "prompt_hash"} | {
        *("cached_tokens", "completion_tokens", "cost_usd")
    }
    assert all(value is None for name in left_out for value in one_by_one[name])


@pytest.mark.parametrize(
    "wrong",
    [
        b"not a rating\n",
        b'{"trajectory": "t"\n',
        line(trajectory=None),
        line(label=None),
        line(error="no answer"),
        line(retracted=True),
        line(rater=" "),
        line(rater="gold", rater_kind="llm"),
        line(rater="trained:x"),
        line(rater_kind="robot"),
        line(event=-1),
        line(event=2**31),
        line(event=1.5),
        line(seed=2**63),
        line(probability=1.1),
        line(label=1),
        line(note="unknown"),
        line().rstrip() + b"," + line(),
        b"[" + line().rstrip() + b"]\n",
    ],
)
def test_lines_of_which_one_may_be_no_rating_are_not_taken_at_once(wrong: bytes) -> None:
    assert of(line(), line()) is not None
    assert of(line(), wrong) is None
    assert of(wrong, line()) is None


def test_a_line_that_ends_where_the_next_begins_is_none() -> None:
    whole = line(label=None, external={"note": "y"}, retracted=True)
    first, second = whole[:20] + b"\n", whole[20:]
    assert of(first, second) is None


def test_lines_that_are_ratings_only_together_are_taken_for_none() -> None:
    whole = line().strip()
    halves = whole.split(b", ", 3)
    head, tail = b", ".join(halves[:3]), halves[3]
    assert of(head + b"\n", tail + b"\n", whole + b"," + whole + b"\n") is None
