"""A trajectory as detectors read it, without naming any system, and what they say of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...schemas import Event, Participant, Unit, canonical_json

_LOOK_UP = re.compile(
    r"search|look_?up|find|query|browse|fetch|retrieve|get_|read|list_|distance|wiki", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")
SAYS = ("message", "confirm_request")
"""Kinds of event that tell the human something."""


@dataclass(frozen=True)
class Finding:
    """The events that show a failure, and what they show."""

    cites: tuple[int, ...]
    why: str
    quote: str | None = None


@dataclass(frozen=True)
class Log:
    """The events of a trajectory that were logged, in order of their seq, and who took part.

    What several detectors ask for is found once: a log may be long.
    """

    events: tuple[Event, ...]
    participants: tuple[Participant, ...]

    @classmethod
    def of(cls, unit: Unit) -> Log:
        """The log of a whole trajectory."""
        return cls(tuple(e for e in unit.events if not e.live_only), unit.participants)

    @cached_property
    def agents(self) -> list[str]:
        """The names of the agents."""
        return [p.name for p in self.participants if p.kind == "agent"]

    @cached_property
    def humans(self) -> list[str]:
        """The names of the humans."""
        return [p.name for p in self.participants if p.kind == "human"]

    @cached_property
    def channel(self) -> bool:
        """Whether an agent wrote to a human at all: without any message, the setting may have no chat."""
        talks = any(e.kind in SAYS and e.actor in self.agents for e in self.events)
        return bool(self.humans) and (talks or bool(self.human_messages))

    @cached_property
    def messages(self) -> list[Event]:
        """Every message, in order."""
        return [e for e in self.events if e.kind == "message"]

    @cached_property
    def human_messages(self) -> list[Event]:
        """The humans' messages, with text."""
        return [e for e in self.messages if e.actor in self.humans and (e.text or "").strip()]

    def of_agent(self, name: str) -> list[Event]:
        """What one agent did, in order."""
        return self._by_actor.get(name, [])

    def actions(self, name: str) -> list[Event]:
        """What one agent did to the environment, in order."""
        return [e for e in self.of_agent(name) if e.kind == "action" and e.action is not None]

    def call(self, event: Event) -> str:
        """An action of this log with its arguments as one text, case and space aside."""
        if id(event) not in self._calls:
            self._calls[id(event)] = call(event)
        return self._calls[id(event)]

    @cached_property
    def _by_actor(self) -> dict[str, list[Event]]:
        by_actor: dict[str, list[Event]] = {}
        for event in self.events:
            by_actor.setdefault(event.actor, []).append(event)
        return by_actor

    @cached_property
    def _calls(self) -> dict[int, str]:
        """By the event itself: two may have one number."""
        return {}


def after(events: Sequence[Event], seq: int) -> Iterator[Event]:
    """Of events in order those behind a seq; what comes before is not looked at."""
    return (events[place] for place in range(bisect_right(events, seq, key=_seq), len(events)))


def _seq(event: Event) -> int:
    return event.seq


def action_name(event: Event) -> str | None:
    """The name of an event's action."""
    return event.action.name if event.action else None


def looks_up(event: Event) -> bool:
    """Whether an action searches or reads, going by its name."""
    return event.action is not None and bool(_LOOK_UP.search(event.action.name))


def call(event: Event) -> str:
    """An action with its arguments as one text, case and space aside."""
    assert event.action is not None
    text = f"{event.action.name} {canonical_json(event.action.arguments)} {event.action.raw or ''}"
    return " ".join(text.casefold().split())


def words(text: str) -> frozenset[str]:
    """The words of a text in lower case."""
    return frozenset(w.casefold() for w in _WORD.findall(text))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard similarity of two sets of words; 0 where both are empty."""
    union = one | other
    return len(one & other) / len(union) if union else 0.0
