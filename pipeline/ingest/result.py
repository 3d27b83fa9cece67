"""What an ingest did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ...schemas import Quarantined
from ...schemas.text import count_of, shortened
from .remarks import NAME, Remarks

KEPT = "what is stored stays, and a rebuild has only what logs and their copies still hold"
"""What happens to what a log held before and does not hold any more."""
FORGOTTEN = "forgotten; `coaudit forget --undo` brings {} back"
NAMED = 5
"""At most so many files, or pairs of them, are named in notes of one kind."""
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
    stored: tuple[int, int] = (0, 0)
    """How many of these trajectories and events have been committed so far."""
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    remarks: Remarks = field(default_factory=Remarks)
    found: int = 0
    """Sources in which a reader recognised its system."""
    left: set[str] = field(default_factory=set)
    """Ids of the unchanged trajectories, in sources that were read again or not."""
    forgotten: set[str] = field(default_factory=set)
    """Ids of trajectories that were read, or are in an unchanged source, and are left out as `forget` was
    told."""
    forgotten_sources: list[str] = field(default_factory=list)
    """Sources that were not read for the same reason."""
    shorter: dict[tuple[str, str], tuple[str, int, int]] = field(default_factory=dict)
    """(source, trajectory) -> (its name, number of events that the source holds now, number that it held
    before)."""

    def leave(self, ids: Iterable[str]) -> None:
        """Count trajectories as unchanged, each once, however many sources have it."""
        new = {*ids} - self.left
        self.unchanged += len(new)
        self.left |= new

    def note_shorter(self, source: str, key: str, name: str, now: int, before: int) -> None:
        """Note that a source holds fewer events of a trajectory than it did before."""
        self.shorter[source, key] = (name, now, before)

    def note_whole(self, source: str, key: str) -> None:
        """Note that a source holds all events of a trajectory after all: a log may repeat a session at each
        step."""
        self.shorter.pop((source, key), None)

    def losses(self) -> Iterator[str]:
        """A sentence for each source that holds less than before; of more than NAMED, one for the rest."""
        by_source: dict[str, list[tuple[str, int, int]]] = {}
        for (source, _), one in self.shorter.items():
            by_source.setdefault(source, []).append(one)
        for source, some in list(by_source.items())[:NAMED]:
            name, now, before = some[0]
            name = shortened(name, NAME)
            more = f" and of {count_of(len(some) - 1, 'more session', 'more sessions')}" if some[1:] else ""
            yield f"{source}: holds {now} of the {before} events of {name}{more} that it held before; {KEPT}"
        if len(by_source) > NAMED:
            yield (
                f"{count_of(len(by_source) - NAMED, 'more file holds', 'more files hold')} less "
                "of their sessions than before"
            )

    def exclusions(self) -> Iterator[str]:
        """A sentence for each source that is forgotten, and one for the trajectories; of more than NAMED
        sources, one for the rest."""
        sources = list(dict.fromkeys(self.forgotten_sources))
        for source in sources[:NAMED]:
            yield f"{source}: {FORGOTTEN.format('it')}"
        if more := len(sources[NAMED:]):
            yield f"{count_of(more, 'more source', 'more sources')}: {FORGOTTEN.format('them')}"
        if self.forgotten:
            what = count_of(len(self.forgotten), "trajectory", "trajectories")
            yield f"{what}: {FORGOTTEN.format('it' if len(self.forgotten) == 1 else 'them')}"
