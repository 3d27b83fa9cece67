"""What an ingest did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...schemas import Quarantined
from ...schemas.text import count_of, shortened
from .remarks import NAME, Remarks

KEPT = "what is stored stays, and a rebuild has only what logs and their copies still hold"
"""Of what a log told before and tells no more."""
NAMED = 5
"""So many files that lack something are named."""
Progress = Callable[[str, int, int], None]
"""Called with what is being read, how many sources are done, and of how many."""


@dataclass
class IngestResult:
    """What an ingest did. `trajectories` and `events` are new or updated, `unchanged` counts trajectories."""

    trajectories: int = 0
    events: int = 0
    unchanged: int = 0
    again: int = 0
    """Records that repeated a new trajectory; what they added or changed is part of it."""
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    remarks: Remarks = field(default_factory=Remarks)
    found: int = 0
    """Sources in which a reader recognised its system."""
    shorter: dict[tuple[str, str], tuple[str, int, int]] = field(default_factory=dict)
    """(source, trajectory) -> (its name, events that the source tells now, events that it told before)."""

    def told(self, source: str, key: str, name: str, now: int, before: int) -> None:
        """Note that a source has fewer events of a trajectory than it told before."""
        self.shorter[source, key] = (name, now, before)

    def whole(self, source: str, key: str) -> None:
        """Note that it has all of them after all: a log may tell a session again at each step."""
        self.shorter.pop((source, key), None)

    def losses(self) -> Iterator[str]:
        """The sources that tell less than they told before, a sentence for each."""
        by_source: dict[str, list[tuple[str, int, int]]] = {}
        for (source, _), one in self.shorter.items():
            by_source.setdefault(source, []).append(one)
        for source, some in list(by_source.items())[:NAMED]:
            name, now, before = some[0]
            name = shortened(name, NAME)
            more = f" and of {count_of(len(some) - 1, 'more session', 'more sessions')}" if some[1:] else ""
            yield f"{source}: holds {now} of the {before} events of {name}{more} that it held before; {KEPT}"
        if len(by_source) > NAMED:
            yield f"{len(by_source) - NAMED} more files hold less of their sessions than before"
