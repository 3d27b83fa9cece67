"""What came of events and when, as everybody who rates is shown it: what a tool gave back, what changed in
the state. A language model and a person see the same, or their agreement says nothing.

Of the views of a state they see the one that the team shares and, after an agent's action, the agent's
own, where results of its searches are. What a model was told before it began is no result and stands by
itself, and later what changed in it; prompts that repeat what is known are left out, and what an environment
answers to the end of the work: it is a verdict (ReHAC's "reward = 1").
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .base import JsonValue
from .changes import RESULT, Change, Changes, tells_verdict
from .clock import Clock
from .codebook import Views
from .event import Event, Events
from .trajectory import Trajectory

HEAD, TAIL = 1500, 500
"""Characters of the beginning and the end of a long text that are shown."""
BRIEFING = "system"
"""The part of an agent's own view that holds what its model was told of its part before it began."""
NEWS, GONE, AGAIN = "system, changed", "system, no longer", "system, again"
"""The paths of what is new in that later, of what it says no longer, and of the number of the event from
which on it was so before."""
PROMPTS = {"prompt", BRIEFING}
"""The parts of an agent's own view that hold what its model was told."""
PATH = 120, 40
"""The same for keys, which may be texts of a log as well."""
MOST = 8000
"""Characters that are shown of all that one event changed: a first state may have thousands of parts."""
LONG = 40
"""Characters from which a part of the state that stands in the event's words is not shown again; a shorter
one may stand there by chance."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？])")
"""Where a long line is cut for comparison."""


class FullEvent(Event):
    """An event with what the log says of it elsewhere."""

    result: tuple[Change, ...] | None = None
    """What came of it, () where an agent's action left all that it sees as it was; None: not known."""
    after: str = ""
    """How long after the start it came, where that is said."""
    briefings: tuple[Change, ...] = ()
    """What agents were told beforehand, once where several were told the same: all of an agent's first, and
    what is new in a later one."""


def with_results(
    trajectory: Trajectory, views: Views = "team", titles: Mapping[str, str] | None = None
) -> Trajectory:
    """The trajectory, each event with what came of it and that it does not say itself, and when; without
    states.

    With `all` views also what people and other agents see. Participants are called by their `titles`, else
    by their names.
    """
    if not trajectory.states and not any(event.time for event in trajectory.events):
        return trajectory
    people = {one.name for one in trajectory.participants if one.kind == "human"}
    agents = {one.name for one in trajectory.participants if one.kind == "agent"} - people
    titles = titles or {}
    changes, clock = Changes(trajectory.states), Clock.of_events(trajectory.events)
    instructions = Instructions(agents, titles)
    rows, texts = [], dict[tuple[str, str], str]()
    for event in trajectory.events:
        if not event.live_only:
            is_own = event.kind == "action" and event.actor in agents
            visible = {*event.states} if views == "all" else {"public", event.actor} if is_own else {"public"}
            is_known = is_own and event.states.get(event.actor) in trajectory.states
            news = changes.of(event)
            own_news = [
                replace(one, before=texts.get((one.view, one.path), ""))
                for one in news
                if one.view in visible
            ]
            texts.update({(one.view, one.path): one.text for one in own_news})
            result = _result(event, own_news, titles, is_known)
            event = _full(event, result, clock.of(event), instructions.of(event, news))
        rows.append(event)
    return trajectory.model_copy(update={"events": Events(rows=tuple(rows)), "states": {}})


def without_briefings(event: Event) -> Event:
    """An event without what agents were told before it, which is no part of what is rated."""
    is_briefed = isinstance(event, FullEvent) and event.briefings
    return event.model_copy(update={"briefings": ()}) if is_briefed else event


@dataclass
class Instructions:
    """Says what agents are told of their part; it must be asked for all events, in order."""

    agents: Collection[str]
    titles: Mapping[str, str]
    _texts: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict, init=False)
    """Agent and path -> its texts, the last one last, with the seq of the event that had it first."""

    def of(self, event: Event, changes: Iterable[Change]) -> tuple[Change, ...]:
        """What agents are told with an event and were not told just before."""
        titles: dict[tuple[str, str], list[str]] = {}
        for one in changes:
            if one.view in self.agents and one.path.partition(".")[0] == BRIEFING:
                for news in self._news(event, one):
                    titles.setdefault(news, []).append(self.titles.get(one.view, one.view))
        briefings = [
            Change(shorten(", ".join(own), *PATH), path, shorten(text, HEAD, TAIL))
            for (path, text), own in titles.items()
        ]
        return within(briefings, MOST) if briefings else ()

    def _news(self, event: Event, change: Change) -> list[tuple[str, str]]:
        """What of an agent's text is shown, each under its path."""
        texts = self._texts.setdefault((change.view, change.path), {})
        last = next(reversed(texts), None)
        before = None if last is None else texts[last]
        seq = texts.pop(change.text, None)
        if last is None:
            news = [(BRIEFING, change.text)]
        elif seq is None:
            parts = zip((NEWS, GONE), difference(last, change.text), strict=True)
            news = [(path, text) for path, text in parts if text.strip()]
        else:
            news = [] if change.text == last else [(AGAIN, f"{seq}")]
        if seq is None:  # of a text with the same lines in another order nothing is shown
            seq = event.seq if news or before is None else before
        texts[change.text] = seq
        return news


def difference(before: str, now: str) -> tuple[str, str]:
    """The lines that a text has now and had not before, and both ends of those that it has no longer; of long
    lines their sentences."""
    old, new = list(_pieces(before)), list(_pieces(now))
    both = {*old} & {*new}
    ends = [shorten(piece, *PATH) for piece in old if piece.strip() and piece not in both]
    return "\n".join(piece for piece in new if piece not in both), "\n".join(ends)


def _pieces(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from [line] if len(line) <= sum(PATH) else _SENTENCE.split(line)


def _full(
    event: Event, result: tuple[Change, ...] | None, after: str, briefings: tuple[Change, ...]
) -> Event:
    if result is None and not after and not briefings:
        return event
    return FullEvent.model_construct(**vars(event), result=result, after=after, briefings=briefings)


def _result(
    event: Event, changes: list[Change], titles: Mapping[str, str], is_known: bool
) -> tuple[Change, ...] | None:
    """What an event changed; `is_known`: that it changed nothing would show, too."""
    news = [one for one in changes if not (_is_hidden(event, one) or _says(event, one))]
    parts = [_shown(event, one, titles) for one in news]
    return within(parts, MOST) if parts or (is_known and not changes) else None


def _shown(event: Event, change: Change, titles: Mapping[str, str]) -> Change:
    """A change within its length, with whose view it is where that is neither the team's nor the actor's.

    Of a text that is too long, and was there before but for its end, the end: in the history of a notebook
    what came of the last cell stands behind all others.
    """
    is_clear = change.view in ("public", event.actor)
    path = change.path if is_clear else f"{titles.get(change.view, change.view)} sees {change.path}"
    path, text = shorten(path, *PATH), change.text
    if len(text) > HEAD + TAIL and change.growth:
        path, text = f"{path}, continued", change.growth.lstrip("\n")
    return replace(change, path=path, text=shorten(text, HEAD, TAIL))


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


def beside(event: Event) -> dict[str, JsonValue]:
    """The arguments of an event's action that its words do not hold: short ones may by chance."""
    arguments, words = event.action.arguments.items() if event.action else (), event.text or ""
    return {
        key: one
        for key, one in arguments
        if not (isinstance(one, str) and (one == words or (len(one) >= LONG and one in words)))
    }


def task_of(events: Iterable[Event], name: str | None) -> str:
    """What a team was asked to do, as its log's start says it, else the task's name."""
    start = next((event for event in events if event.kind == "start" and event.text), None)
    if start is None:
        return name or "(not in the log)"
    return "\n".join([start.text or "", *(f"{key}: {value}" for key, value in beside(start).items())])


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
