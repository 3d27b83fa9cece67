"""Two transcripts beside each other, their events lined up by step or by time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Literal

from ....schemas.clock import moment

Order = Literal["step", "time"]
Pair = tuple[int | None, int | None]
"""Indices of the two events in a row; None where a side has none."""
TOGETHER = 1.0
"""Seconds within which two events count as simultaneous."""


def pairs(left: Sequence[dict[str, Any]], right: Sequence[dict[str, Any]], order: Order) -> list[Pair]:
    """The rows of two sessions' events.

    By step, the n-th event stands beside the n-th. By time, events stand in order of the time since their
    session's first one, and those within a second of each other in one row; ValueError where a session has
    no times.
    """
    if order == "step":
        return list(zip_longest(range(len(left)), range(len(right))))
    times = [elapsed(left), elapsed(right)]
    if not all(times):
        raise ValueError("both sessions need times")
    rows: list[Pair] = []
    one, two = 0, 0
    while one < len(left) or two < len(right):
        first = times[0][one] if one < len(left) else float("inf")
        second = times[1][two] if two < len(right) else float("inf")
        takes = first <= second + TOGETHER, second <= first + TOGETHER
        rows.append((one if takes[0] else None, two if takes[1] else None))
        one, two = one + takes[0], two + takes[1]
    return rows


def elapsed(events: Sequence[dict[str, Any]]) -> list[float]:
    """Seconds of each event since the first with a time, never decreasing; empty where none has a time."""
    moments = [moment(event["time"]) for event in events]
    began = next(filter(None, moments), None)
    if began is None:
        return []
    seconds, last = [], 0.0
    for now in moments:
        last = last if now is None else max(last, (now - began).total_seconds())
        seconds.append(last)
    return seconds


def side_by_side(left: Sequence[str], right: Sequence[str], rows: Sequence[Pair]) -> str:
    """The drawn events of two sessions, a row a pair."""
    cells = []
    for pair in rows:
        sides = zip(("left", "right"), (left, right), pair, strict=True)
        columns = "".join(
            f'<div class="ca-timeline" data-side="{side}">{"" if place is None else events[place]}</div>'
            for side, events, place in sides
        )
        cells.append(f'<div class="pair">{columns}</div>')
    return f'<div class="ca ca-transcript ca-pairs">{"".join(cells)}</div>'
