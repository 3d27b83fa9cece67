"""What events change in the states of a trajectory: the parts of a view that are not as they were before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .base import JsonValue
from .event import Event

RESULT = "observation"
"""The part of a state that holds what came back from one action, and is no lasting state: it is new each
time, also where the same came back twice."""
LOGGED = "logged"
"""The part of a state that holds a step of ReHAC as it was logged, where it is irregular: what the event and
its result say, and the reward."""


@dataclass(frozen=True)
class Change:
    """A part of a view's state (`public`, or the participant who alone sees it) after an event."""

    view: str
    path: str
    """Keys joined by dots; `state` where the state is one value."""
    text: str
    before: str = ""
    """What stood there before, as far as who is told of the change knows."""

    @property
    def growth(self) -> str | None:
        """What was added to the end of a text or list that stood there before; None where that is not all."""
        start = self.before if self.text.startswith(self.before) else f"{self.before.removesuffix(']')}, "
        return self.text[len(start) :] if self.before and self.text.startswith(start) else None


@dataclass
class Changes:
    """Gives what each of a trajectory's events changed; it must be asked for all of them, in order."""

    states: Mapping[str, JsonValue]
    indent: int | None = None
    """Of lists: None writes them on one line, which takes fewest tokens."""
    _before: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict, init=False)
    """View -> the hash and the parts of its last state."""

    def of(self, event: Event) -> list[Change]:
        """The parts with a text that were not so before; states that the log does not hold change nothing."""
        changes = []
        for view, digest in event.states.items():
            if digest not in self.states:
                continue
            last, before = self._before.get(view, (None, {}))
            now = before if digest == last else dict(leaves(self.states[digest], self.indent))
            self._before[view] = digest, now
            changes += [
                Change(view, path, text)
                for path, text in now.items()
                if text.strip() and (before.get(path) != text or path.partition(".")[0] == RESULT)
            ]
        return changes


def tells_verdict(event: Event, change: Change) -> bool:
    """Whether a change is no part of the work but what was thought of it: what an environment answers to the
    end of the work (ReHAC's "reward = 1"), or a logged step, which has the reward. Who rates is not told."""
    part = change.path.partition(".")[0]
    return change.view == "public" and (part == LOGGED or (part == RESULT and event.kind == "finish"))


def leaves(state: JsonValue, indent: int | None, path: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of a state as text, by their path."""
    if isinstance(state, dict):
        for key, value in state.items():
            yield from leaves(value, indent, f"{path}.{key}" if path else key)
    elif state is not None and state != []:
        text = state if isinstance(state, str) else json.dumps(state, ensure_ascii=False, indent=indent)
        yield path or "state", text
