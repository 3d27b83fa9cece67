"""When a unit is complete: a question once it has its reply, a message once it was said, a trajectory once it
has ended. One whose log does not tell its end is taken to have ended once it has been still for a while."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...schemas import Codebook, Event, Trajectory, Unit
from ..units import cut


def says_ended(trajectory: Trajectory) -> bool | None:
    """Whether a trajectory has ended, by its log; None where the log tells nothing of that."""
    reasons = [o.text for o in trajectory.outcomes if o.name == "end_reason"]
    return reasons[0] != "unfinished" if reasons else None


def complete_units(trajectory: Trajectory, book: Codebook, *, is_over: bool) -> Iterator[Unit]:
    """The units that will not change any more, with all that a judge sees of them."""
    if not is_over and (book.unit in ("trajectory", "participant") or book.context == "transcript"):
        return
    live = says_ended(trajectory) is False
    first = min((e.seq for e in trajectory.events if live and _is_pending(e)), default=math.inf)
    for unit in cut(trajectory, book):
        if unit.event is None or unit.events[-1].seq < first:
            yield unit


def awaits_result(trajectory: Trajectory, unit: Unit) -> bool:
    """Whether a unit is one of the actions at the end of a log, whose results may still come: a model is
    shown them, and would be asked again."""
    for event in reversed(trajectory.events):
        if event.kind != "action" or event.status is not None or event.states:
            return False
        if event == unit.events[-1]:
            return True
    return False


def _is_pending(event: Event) -> bool:
    """Whether an event may still be left out of the log, so that those behind it would get other numbers."""
    return event.kind != "message" and event.status is None and not event.live_only


@dataclass
class Stillness:
    """Knows which trajectories have ended, also those whose logs do not tell."""

    seconds: float
    _change_times: dict[str, float] = field(default_factory=dict)
    _still_ids: set[str] = field(default_factory=set)

    def note(self, trajectories: Sequence[Trajectory]) -> None:
        """These have just changed."""
        for trajectory in trajectories:
            self._still_ids.discard(trajectory.id)
            self._change_times.pop(trajectory.id, None)
            if says_ended(trajectory) is None:
                self._change_times[trajectory.id] = time.monotonic()

    def take(self, *, everything: bool = False) -> list[str]:
        """The ids of those that have just been still for long enough; `everything`: of all that were not
        still yet."""
        before = time.monotonic() - self.seconds
        # The oldest change comes first.
        due = []
        for key, moment in self._change_times.items():
            if moment > before and not everything:
                break
            due.append(key)
        for key in due:
            del self._change_times[key]
        self._still_ids.update(due)
        return due

    def has_ended(self, trajectory: Trajectory) -> bool:
        """Whether a trajectory has ended."""
        answer = says_ended(trajectory)
        return trajectory.id in self._still_ids if answer is None else answer
