"""Selecting the part of a session that a question is about: one participant's events, or cited ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from . import pins
from .read import Replay

EVERYTHING, FINDINGS = "", "found"
"""Choices beside the participants, who are `by:NAME`."""
BY = "by:"
BESIDE = 1
"""Neighbours on either side that are shown with an event."""


def choices(replay: Replay, ratings: Iterable[dict[str, Any]]) -> dict[str, str]:
    """What can be shown of a session -> its title."""
    team = [p["name"] for p in replay.participants if p["kind"] != "environment"]
    titles = {EVERYTHING: "Everything"}
    if any(pins.is_positive(row) and (row["cites"] or row["event"] is not None) for row in ratings):
        titles[FINDINGS] = "What is found, and what is next to it"
    if len(team) > 1:
        titles |= {f"{BY}{name}": f"{name}, and what is next to it" for name in team}
    return titles


def subject_of(replay: Replay, code: str | None) -> str:
    """The choice that a code opens with: the participant of whom it is found, else everything."""
    own = (row for row in replay.ratings if row["unit"] == "participant" and row["code"] == code)
    first = next((row["event"] for row in own if pins.is_positive(row)), None)
    actor = next((event["actor"] for event in replay.events if event["seq"] == first), None)
    return f"{BY}{actor}" if actor is not None else EVERYTHING


def select_events(
    replay: Replay, ratings: Iterable[dict[str, Any]], what: str
) -> tuple[Replay, dict[int, int]]:
    """The session with only these events and their neighbours; seq -> how many are left out before it."""
    if what == EVERYTHING:
        return replay, {}
    own = [place for place, event in enumerate(replay.events) if _is_of(event, what, _cited_seqs(ratings))]
    near = {place for at in own for place in range(at - BESIDE, at + BESIDE + 1)}
    places = [place for place in range(len(replay.events)) if place in near]
    left_out, after = dict[int, int](), 0
    for place in places:
        if place > after:
            left_out[replay.events[place]["seq"]] = place - after
        after = place + 1
    return replace(replay, events=[replay.events[place] for place in places]), left_out


def _cited_seqs(ratings: Iterable[dict[str, Any]]) -> set[int]:
    rows = [row for row in ratings if pins.is_positive(row)]
    return {seq for row in rows for seq in (*(row["cites"] or ()), row["event"]) if seq is not None}


def _is_of(event: dict[str, Any], what: str, seqs: set[int]) -> bool:
    return event["seq"] in seqs if what == FINDINGS else bool(event["actor"] == what.removeprefix(BY))
