"""A jury: the majority of several raters as a rater of its own."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from ..schemas import UNCLEAR, Verdict

FEWEST = 2
"""Members that must have given a label."""


def verdict(code: str, votes: Mapping[str, str]) -> Verdict | None:
    """The label that most members gave (`unclear` is a vote like any other); a tie is `unclear`.

    None where fewer than two members gave a label. Votes are in the rationale.
    """
    if len(votes) < FEWEST:
        return None
    counts = Counter(votes.values())
    (label, most), *others = counts.most_common()
    tied = any(count == most for _, count in others)
    ballots = ", ".join(f"{member}: {vote}" for member, vote in sorted(votes.items()))
    if tied:
        return Verdict(code, UNCLEAR, rationale=f"a tie; {ballots}")
    return Verdict(code, label, rationale=f"{most} of {len(votes)}; {ballots}")


def agreement(
    votes: Sequence[Mapping[str, str]], labels: Collection[str]
) -> dict[tuple[str, str], tuple[int, int]]:
    """For each pair of members, on how many units they agree and how many both gave one of these labels."""
    by_name: dict[tuple[str, str], tuple[int, int]] = {}
    for unit in votes:
        members = sorted(member for member, vote in unit.items() if vote in labels)
        for pair in itertools.combinations(members, 2):
            same, n = by_name.get(pair, (0, 0))
            by_name[pair] = (same + (unit[pair[0]] == unit[pair[1]]), n + 1)
    return by_name
