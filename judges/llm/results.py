"""What came of events, as a judge is shown it: what a tool gave back, and what changed in the state.

Of the views of a state a judge sees the one that the team shares and, after an agent's action, the agent's
own, where results of its searches are. What the log gives as told to a model (its prompt) is no result.
"""

from __future__ import annotations

from dataclasses import replace

from ...schemas import Event, Events, Trajectory
from ...schemas.changes import Change, Changes

HEAD, TAIL = 1500, 500
"""Characters of the beginning and the end of a long text that are shown."""


class EventWithResult(Event):
    """An event with what came of it."""

    result: tuple[Change, ...] = ()


def with_results(trajectory: Trajectory) -> Trajectory:
    """The trajectory, each event with what came of it and that it does not say itself; without states."""
    if not trajectory.states:
        return trajectory
    agents = {one.name for one in trajectory.participants if one.kind == "agent"}
    changes = Changes(trajectory.states)
    rows = tuple(_with_result(event, changes.of(event), agents) for event in trajectory.events)
    return trajectory.model_copy(update={"events": Events(rows=rows), "states": {}})


def _with_result(event: Event, changes: list[Change], agents: set[str]) -> Event:
    views = {"public", event.actor} if event.kind == "action" and event.actor in agents else {"public"}
    words = _words(event)
    result = [
        replace(one, text=shorten(one.text, HEAD, TAIL))
        for one in changes
        if one.view in views and one.text.strip() not in words
    ]
    return EventWithResult.model_construct(**vars(event), result=tuple(result)) if result else event


def _words(event: Event) -> str:
    """All that an event says itself."""
    arguments = event.action.arguments.values() if event.action else ()
    texts = (event.text, event.error, *(one for one in arguments if isinstance(one, str)))
    return "\n".join(text for text in texts if text)


def shorten(text: str, head: int, tail: int) -> str:
    """A text, or so many characters of its beginning and its end where it has more."""
    if len(text) <= head + tail:
        return text
    return f"{text[:head]} [... {len(text) - head - tail} characters left out ...] {text[-tail:]}"
