"""What an ingest says of what it took in: who the participants are, and results of which nothing is known."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ...schemas import JsonValue, Trajectory
from ...schemas.text import shortened
from ...schemas.trajectory import ParticipantKind
from ..systems.formats import chat, marks
from ..systems.formats.guess_roles import otherwise
from ..units import columns

NAMES = 4
"""So many participants of a kind are named."""
NAME = 60
"""With so many characters at most."""


@dataclass
class Remarks:
    """Counts over the trajectories that were stored."""

    spoken: dict[str, Counter[str]] = field(default_factory=dict)
    """Kind -> participant -> events."""
    messages: int = 0
    wordless: int = 0
    """Messages without a text."""
    answered: int = 0
    untold: int = 0
    alike: int = 0
    timed: int = 0
    undated: int = 0
    """Times that are no ISO 8601."""
    undated_as: str = ""
    """The first of them."""
    renamed: Counter[str] = field(default_factory=Counter)
    """Who is of another kind by their name than by their role in a chat, with the latter -> chats."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Who is among several people of a chat in which no agent is -> chats."""

    @classmethod
    def of(cls, trajectory: Trajectory) -> Remarks:
        """What there is to say of one trajectory."""
        remarks = cls()
        remarks.take(trajectory)
        return remarks

    def take(self, trajectory: Trajectory) -> None:
        """Count a trajectory in."""
        kinds = {person.name: person.kind for person in trajectory.participants}
        events = columns(trajectory)
        for name, count in Counter(events.actor).items():
            self.spoken.setdefault(kinds[name], Counter())[name] += count
        if trajectory.system == chat.SYSTEM:
            self._roles(kinds)
        texts = [text for kind, text in zip(events.kind, events.text, strict=True) if kind == "message"]
        self.messages += len(texts)
        self.wordless += len(texts) - sum(map(bool, texts))
        times = list(filter(None, events.time))
        undated = _undated_times(times)
        self.timed += len(times)
        self.undated += len(undated)
        self.undated_as = self.undated_as or next(iter(undated), "")
        if any(events.states):
            for place, kind in enumerate(events.kind):
                if kind in ("action", "finish") and (state := events.states[place].get("public")) is not None:
                    self._result(events.status[place], trajectory.states.get(state))

    def add(self, other: Remarks) -> None:
        """Count in what others counted."""
        for kind, counts in other.spoken.items():
            self.spoken.setdefault(kind, Counter()).update(counts)
        self.messages += other.messages
        self.wordless += other.wordless
        self.answered += other.answered
        self.untold += other.untold
        self.alike += other.alike
        self.timed += other.timed
        self.undated += other.undated
        self.undated_as = self.undated_as or other.undated_as
        self.renamed += other.renamed
        self.unanswered += other.unanswered

    def drop(self, other: Remarks) -> None:
        """Take out what was counted of a trajectory that another version replaces."""
        for kind, counts in other.spoken.items():
            self.spoken[kind] = self.spoken.get(kind, Counter()) - counts
        self.messages -= other.messages
        self.wordless -= other.wordless
        self.answered -= other.answered
        self.untold -= other.untold
        self.alike -= other.alike
        self.timed -= other.timed
        self.undated -= other.undated
        self.renamed -= other.renamed
        self.unanswered -= other.unanswered

    def _roles(self, kinds: Mapping[str, ParticipantKind]) -> None:
        """Count whom the roles of a chat may have taken for what they are not."""
        roles = {"human": "user", "agent": "assistant", "environment": "tool"}
        wrong = otherwise((None, name, roles[kind]) for name, kind in kinds.items())
        self.renamed.update(f"{name} ({kinds[name]})" for name in wrong)
        people = [name for name, kind in kinds.items() if kind == "human"]
        if len(people) > 1 and "agent" not in kinds.values():
            self.unanswered.update(people)

    def _result(self, status: str | None, state: JsonValue) -> None:
        self.answered += 1
        if status is None:
            self.untold += 1
            self.alike += isinstance(state, dict) and marks.alike(state.get("observation"))

    def notes(self) -> Iterator[str]:
        """The sentences for a person; none where nothing was stored."""
        if self.spoken:
            yield "participants: " + "; ".join(self._kind(kind) for kind in sorted(self.spoken, reverse=True))
        if self.renamed:
            yield (
                f"names say otherwise than roles who these are: {_some(self.renamed)}. [[roles]] of a "
                "mapping (--map) says it; `coaudit map` drafts one"
            )
        if self.unanswered:
            yield (
                f"the role of a user covers several names, and no agent speaks: {_some(self.unanswered)}. "
                "Where some of them are agents, [[roles]] of a mapping (--map) says so"
            )
        if self.messages and 2 * self.wordless >= self.messages:
            lacking = f"{self.wordless} of {self.messages} messages have no text"
            if self.wordless == self.messages:
                lacking = f"none of the {self.messages} messages has a text"
            yield (
                f"{lacking}: rules and judges see blanks. `text` of a mapping (--map) says where it stands"
            )
        if self.undated:
            times = "time is" if self.undated == 1 else "times are"
            yield (
                f"{self.undated} of {self.timed} {times} not ISO 8601, such as "
                f"{shortened(self.undated_as, NAME)!r}: days and durations leave them out. [constants] "
                "time_format of a mapping (--map) says how they are written"
            )
        if self.untold:
            looks = f" ({self.alike} of them read like errors)" if self.alike else ""
            yield (
                f"{self.untold} of {self.answered} results say neither success nor failure{looks}: their "
                "status is unknown and error_rate undefined. [[results]] or [constants] status of a mapping "
                "(--map) says what they mean"
            )

    def _kind(self, kind: str) -> str:
        events = sum(self.spoken[kind].values())
        return f"{kind} {_some(self.spoken[kind])} ({events} event{'s' * (events != 1)})"


def _some(counts: Counter[str]) -> str:
    """The names that come most often, and how many more there are."""
    top = counts.most_common(NAMES)
    more = len(counts) - len(top)
    names = [shortened(" ".join(name.split()), NAME) for name, _ in top]
    return ", ".join(names) + (f" and {more} more" if more else "")


def _undated_times(times: Sequence[str]) -> list[str]:
    """Those that are not ISO 8601."""
    try:
        deque(map(datetime.fromisoformat, times), maxlen=0)  # all at once, which takes half the time
    except ValueError:
        return [time for time in times if not _is_iso(time)]
    return []


def _is_iso(time: str) -> bool:
    try:
        datetime.fromisoformat(time)
    except ValueError:
        return False
    return True
