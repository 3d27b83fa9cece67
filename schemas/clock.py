"""How long after a log's beginning its events came, as those who rate it are told."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from .event import Event

STEP = 30
"""Seconds to which times are rounded: codebooks ask for minutes, and a session that was followed live has
times a second or two beside those of its folder; the same question would be asked of both."""
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@dataclass
class Clock:
    """Says how long after the first a trajectory's events came; it must be asked for all, in order."""

    is_running: bool
    """Whether the log has times that differ: one time, or the same for all, says nothing of its events."""
    _began: datetime | None = field(default=None, init=False)
    _last: int = field(default=0, init=False)

    @classmethod
    def of_events(cls, events: Iterable[Event]) -> Clock:
        """The clock of a log with these events."""
        times = (event.time for event in events if not event.live_only and moment(event.time))
        first = next(times, None)
        return cls(any(time != first for time in times))

    def of(self, event: Event) -> str:
        """Such as `2 min 30 s after the start`, to the nearest `STEP`; nothing where that was said before, or
        the log has no time or goes back. The first time of a log says that it has times: where no other
        follows, what happened was quick."""
        now = moment(event.time) if self.is_running else None
        if now is None:
            return ""
        if self._began is None:
            self._began = now
            return f"{duration(0)} after the start (times are to the nearest half minute)"
        seconds = math.floor((now - self._began).total_seconds() / STEP + 0.5) * STEP
        if seconds <= self._last:
            return ""
        self._last = seconds
        return f"{duration(seconds)} after the start"


def moment(time: str | None) -> datetime | None:
    """A time with its offset; one without an offset is taken for UTC."""
    try:
        local = datetime.fromisoformat(time) if time else None
    except ValueError:
        return None
    return local.replace(tzinfo=local.tzinfo or UTC) if local else None


def duration(seconds: float) -> str:
    """Seconds in the two largest units: `45 s`, `2 min 30 s`, `1 h 5 min`, `2 d 3 h`."""
    whole = int(seconds)
    for (large, name), (small, below) in pairwise(_UNITS):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large} {name}" + (f" {rest} {below}" if rest else "")
    return f"{whole} s"
