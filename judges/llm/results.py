"""What came of events and when, as a judge is shown it: what a tool gave back, what changed in the state.

Of the views of a state a judge sees the one that the team shares and, after an agent's action, the agent's
own, where results of its searches are. What a model was told before it began is no result and stands by
itself, once; prompts that repeat what is known are left out, and what an environment answers to the end of
the work: it is a verdict (ReHAC's "reward = 1").
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from ...schemas import Event, Events, Trajectory
from ...schemas.changes import RESULT, Change, Changes, tells_verdict
from ...schemas.clock import Clock
from ...schemas.codebook import Views

HEAD, TAIL = 1500, 500
"""Characters of the beginning and the end of a long text that are shown."""
BRIEFING = "system"
"""The part of an agent's own view that holds what its model was told of its part before it began."""
PROMPTS = {"prompt", BRIEFING}
"""The parts of an agent's own view that hold what its model was told."""
PATH = 120, 40
"""The same for keys, which may be texts of a log as well."""
MOST = 8000
"""Characters that are shown of all that one event changed: a first state may have thousands of parts."""
LONG = 40
"""Characters from which a part of the state that stands in the event's words is not shown again; a shorter
one may stand there by chance."""


class PromptEvent(Event):
    """An event with what the log says of it elsewhere."""

    result: tuple[Change, ...] | None = None
    """What came of it, () where an agent's action left all that it sees as it was; None: not known."""
    after: str = ""
    """How long after the start it came, where that is said."""
    briefings: tuple[Change, ...] = ()
    """What agents were told beforehand: each agent's first, once where several were told the same."""


def with_results(trajectory: Trajectory, views: Views = "team") -> Trajectory:
    """The trajectory, each event with what came of it and that it does not say itself, and when; without
    states.

    With `all` views also what people and other agents see.
    """
    if not trajectory.states and not any(event.time for event in trajectory.events):
        return trajectory
    people = {one.name for one in trajectory.participants if one.kind == "human"}
    agents = {one.name for one in trajectory.participants if one.kind == "agent"} - people
    changes, clock = Changes(trajectory.states), Clock()
    rows = []
    unbriefed = set(agents)
    for event in trajectory.events:
        if not event.live_only:
            is_own = event.kind == "action" and event.actor in agents
            visible = {*event.states} if views == "all" else {"public", event.actor} if is_own else {"public"}
            is_known = is_own and event.states.get(event.actor) in trajectory.states
            news = changes.of(event)
            own = [one for one in news if one.view in visible]
            event = _with_result(event, own, clock.of(event), _briefings(news, unbriefed), is_known)
        rows.append(event)
    return trajectory.model_copy(update={"events": Events(rows=tuple(rows)), "states": {}})


def without_briefings(event: Event) -> Event:
    """An event without what agents were told before it, which is no part of what is rated."""
    is_briefed = isinstance(event, PromptEvent) and event.briefings
    return event.model_copy(update={"briefings": ()}) if is_briefed else event


def _briefings(changes: list[Change], unbriefed: set[str]) -> tuple[Change, ...]:
    """What agents that have not been briefed are told; they are no longer `unbriefed` then."""
    names: dict[str, list[str]] = {}
    for one in changes:
        if one.view in unbriefed and one.path.partition(".")[0] == BRIEFING:
            names.setdefault(shorten(one.text, HEAD, TAIL), []).append(one.view)
    briefings = [Change(shorten(", ".join(views), *PATH), BRIEFING, text) for text, views in names.items()]
    unbriefed.difference_update(*names.values())
    return within(briefings, MOST) if briefings else ()


def _with_result(
    event: Event, changes: list[Change], after: str, briefings: tuple[Change, ...], is_known: bool
) -> Event:
    """The event with what it changed and when; `is_known`: that it changed nothing would show, too."""
    parts = [_shown(event, one) for one in changes if not (_is_hidden(event, one) or _says(event, one))]
    result = within(parts, MOST) if parts or (is_known and not changes) else None
    if result is None and not after and not briefings:
        return event
    return PromptEvent.model_construct(**vars(event), result=result, after=after, briefings=briefings)


def _shown(event: Event, change: Change) -> Change:
    """A change within its length, with whose view it is where that is neither the team's nor the actor's."""
    path = change.path if change.view in ("public", event.actor) else f"{change.view} sees {change.path}"
    return replace(change, path=shorten(path, *PATH), text=shorten(change.text, HEAD, TAIL))


def _is_hidden(event: Event, change: Change) -> bool:
    is_prompt = change.view != "public" and change.path.partition(".")[0] in PROMPTS
    return is_prompt or tells_verdict(event, change)


def _says(event: Event, change: Change) -> bool:
    """Whether an event says a change itself. What came back is news, also where its action has the word."""
    text = change.text.strip()
    if change.path == RESULT and event.action:
        return text in (event.error or "")
    arguments = event.action.arguments.values() if event.action else ()
    words = [one for one in (event.text, event.error, *arguments) if isinstance(one, str)]
    return any(text == one.strip() or (len(text) >= LONG and text in one) for one in words)


def within(changes: Sequence[Change], most: int) -> tuple[Change, ...]:
    """The first of the changes that have so many characters together, and how many more there are."""
    totals = itertools.accumulate(len(one.path) + len(one.text) for one in changes)
    count = max(1, sum(total <= most for total in totals))
    rest = len(changes[count:])
    more = (Change("public", "other parts", f"[... {rest} left out ...]"),) if rest else ()
    return (*changes[:count], *more)


def shorten(text: str, head: int, tail: int) -> str:
    """A text, or so many characters of its beginning and its end where it has more."""
    if len(text) <= head + tail:
        return text
    return f"{text[:head]} [... {len(text) - head - tail} characters left out ...] {text[-tail:]}"
