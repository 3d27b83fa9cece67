"""When a unit is complete: a question when its reply came, a message when it was said, a trajectory when it
ended. Of a trajectory that does not say whether it has, being still for a while is taken as its end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...schemas import Codebook, Event, Trajectory, Unit
from ..units import cut


def says_ended(trajectory: Trajectory) -> bool | None:
    """Whether no more is expected of it, as its log says; None where the system says nothing of that."""
    reasons = [o.text for o in trajectory.outcomes if o.name == "end_reason"]
    return reasons[0] != "unfinished" if reasons else None


def complete(trajectory: Trajectory, book: Codebook, *, is_over: bool) -> Iterator[Unit]:
    """The units that will stay as they are, with all that a judge sees of them."""
    if not is_over and (book.unit in ("trajectory", "participant") or book.context == "transcript"):
        return
    live = says_ended(trajectory) is False
    first = min((e.seq for e in trajectory.events if live and _is_pending(e)), default=math.inf)
    for unit in cut(trajectory, book):
        if unit.event is None or unit.events[-1].seq < first:
            yield unit


def _is_pending(event: Event) -> bool:
    """Whether an event may turn out not to be logged at all: those behind it are numbered anew then."""
    return event.kind != "message" and event.status is None and not event.live_only


@dataclass
class Stillness:
    """Knows which trajectories have ended, also those that do not say so."""

    seconds: float
    _changed: dict[str, float] = field(default_factory=dict)
    _still: set[str] = field(default_factory=set)

    def note(self, trajectories: Sequence[Trajectory]) -> None:
        """These have just changed."""
        for trajectory in trajectories:
            self._still.discard(trajectory.id)
            self._changed.pop(trajectory.id, None)
            if says_ended(trajectory) is None:
                self._changed[trajectory.id] = time.monotonic()

    def take(self, *, everything: bool = False) -> list[str]:
        """Those that have been still for long enough since; `everything`: that have not changed again."""
        before = time.monotonic() - self.seconds
        # The oldest change comes first.
        due = []
        for key, moment in self._changed.items():
            if moment > before and not everything:
                break
            due.append(key)
        for key in due:
            del self._changed[key]
        self._still.update(due)
        return due

    def ended(self, trajectory: Trajectory) -> bool:
        """Whether no more is expected of it."""
        answer = says_ended(trajectory)
        return trajectory.id in self._still if answer is None else answer
