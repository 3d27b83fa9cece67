"""A jury's vote, and how far its members agree."""

from __future__ import annotations

import pytest

from coaudit.judges import jury


@pytest.mark.parametrize(
    ("votes", "label"),
    [
        ("1", None),
        ("15", "unclear"),
        ("155", "5"),
        ("123", "unclear"),
        ("11223", "unclear"),
        (["unclear", "unclear", "3"], "unclear"),
        (["unclear", "3"], "unclear"),
    ],
)
def test_most_votes_count_and_a_tie_is_unclear(votes: str | list[str], label: str | None) -> None:
    verdict = jury.verdict("grade", {f"judge {number}": vote for number, vote in enumerate(votes)})
    assert (verdict and verdict.label) == label


def test_members_that_both_found_a_unit_unclear_do_not_agree_on_a_label() -> None:
    """`agreement`, to which the line points, takes it for missing: 2 of 5 there were 3 of 7 here."""
    pairs = [
        ("1", "5"),
        ("1", "3"),
        ("2", "2"),
        ("unclear", "unclear"),
        ("unclear", "4"),
        ("1", "2"),
        ("4", "4"),
    ]
    votes = [dict(zip("ab", pair, strict=True)) for pair in pairs]
    assert jury.agreement(votes, "12345") == {("a", "b"): (2, 5)}
    assert jury.agreement(votes, [*"12345", "unclear"]) == {("a", "b"): (3, 7)}
