"""What an event changes in a state is told once, what came back each time."""

from __future__ import annotations

from coaudit.schemas import Event
from coaudit.schemas.changes import Change, Changes

STATES = {
    "one": {"editor": "Day 1", "library": [], "search": {"query": "Oslo"}},
    "two": {"editor": "Day 1, 2", "library": ["a"], "search": {"query": "Oslo"}},
    "none": {"observation": "Nothing found."},
    "flat": "ready",
}


def told(*hashes: dict[str, str]) -> list[list[tuple[str, str]]]:
    """(path, text) of what each of some events changed, by the hashes of its views."""
    changes = Changes(STATES)  # type: ignore[arg-type]
    events = [Event(seq=i, actor="a", kind="action", states=one) for i, one in enumerate(hashes)]
    return [[(one.path, one.text) for one in changes.of(event)] for event in events]


def test_a_part_of_a_state_is_told_where_it_changes_and_not_again() -> None:
    one, two, again = told({"public": "one"}, {"public": "two"}, {"public": "two"})
    assert one == [("editor", "Day 1"), ("search.query", "Oslo")]
    assert two == [("editor", "Day 1, 2"), ("library", '["a"]')]
    assert again == []


def test_what_came_back_is_told_each_time() -> None:
    """The same search that finds nothing twice is a loop, which cannot be seen where one result is hidden."""
    assert told({"public": "none"}, {"public": "none"}) == [[("observation", "Nothing found.")]] * 2


def test_views_are_kept_apart_and_a_state_that_is_not_held_changes_nothing() -> None:
    changes = Changes(STATES)  # type: ignore[arg-type]
    event = Event(seq=0, actor="a", kind="action", states={"public": "flat", "a": "flat", "b": "gone"})
    assert changes.of(event) == [Change("public", "state", "ready"), Change("a", "state", "ready")]
