"""What an ingest reports of what it stored: who the participants are, chats that may be parts of one session,
and results whose status is not known."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ...schemas import JsonValue, Trajectory, content_hash
from ...schemas.event import EventColumns
from ...schemas.text import count_of, shortened
from ...schemas.trajectory import ParticipantKind
from ..systems.formats.fields import marks
from ..systems.formats.fields.roles import contrary_kinds
from ..systems.formats.messages import chat
from ..units import columns

CONTINUE = 0.3
"""The share of chats that begin as another one does, from which it is said."""
NAMES = 4
"""At most so many participants of a kind are named."""
NAME = 60
"""At most so many characters of a name are shown."""


@dataclass
class Remarks:
    """Counts over the trajectories that were stored."""

    actors: dict[str, Counter[str]] = field(default_factory=dict)
    """Kind -> participant -> events."""
    messages: int = 0
    textless: int = 0
    """Messages without a text."""
    results: int = 0
    statusless: int = 0
    error_like: int = 0
    times: int = 0
    undated_times: int = 0
    """Number of times that are not ISO 8601."""
    undated_example: str = ""
    """The first of them."""
    contrary_names: Counter[str] = field(default_factory=Counter)
    """Name, with the kind by its role -> chats in which the name tells of another kind."""
    people_alone: Counter[str] = field(default_factory=Counter)
    """Name -> chats with several people and no agent in which they are."""
    openings: Counter[str] = field(default_factory=Counter)
    """Hash of what was said up to an agent's first answer -> chats that begin with it."""
    questions: Counter[tuple[str, str]] = field(default_factory=Counter)
    """File and session's id -> chats with one message of a person's."""

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
        counts = Counter(events.actor)
        for name, count in counts.items():
            self.actors.setdefault(kinds[name], Counter())[name] += count
        if trajectory.system == chat.SYSTEM:
            self._roles(kinds)
            self.openings.update(_opening(events, kinds))
            if sum(count for name, count in counts.items() if kinds[name] == "human") == 1:
                self.questions[trajectory.source, trajectory.native_id] += 1
        texts = [text for kind, text in zip(events.kind, events.text, strict=True) if kind == "message"]
        self.messages += len(texts)
        self.textless += len(texts) - sum(map(bool, texts))
        times = list(filter(None, events.time))
        undated = _undated_times(times)
        self.times += len(times)
        self.undated_times += len(undated)
        self.undated_example = self.undated_example or next(iter(undated), "")
        if any(events.states):
            for place, kind in enumerate(events.kind):
                if kind in ("action", "finish") and (state := events.states[place].get("public")) is not None:
                    self._result(events.status[place], trajectory.states.get(state))

    def add(self, other: Remarks) -> None:
        """Count in what others counted."""
        for kind, counts in other.actors.items():
            self.actors.setdefault(kind, Counter()).update(counts)
        self.messages += other.messages
        self.textless += other.textless
        self.results += other.results
        self.statusless += other.statusless
        self.error_like += other.error_like
        self.times += other.times
        self.undated_times += other.undated_times
        self.undated_example = self.undated_example or other.undated_example
        self.contrary_names += other.contrary_names
        self.people_alone += other.people_alone
        self.openings.update(other.openings)
        self.questions.update(other.questions)

    def drop(self, other: Remarks) -> None:
        """Take out what was counted of a trajectory that another version replaces."""
        for kind, counts in other.actors.items():
            self.actors[kind] = self.actors.get(kind, Counter()) - counts
        self.messages -= other.messages
        self.textless -= other.textless
        self.results -= other.results
        self.statusless -= other.statusless
        self.error_like -= other.error_like
        self.times -= other.times
        self.undated_times -= other.undated_times
        self.contrary_names -= other.contrary_names
        self.people_alone -= other.people_alone
        self.openings -= other.openings
        self.questions -= other.questions

    def _roles(self, kinds: Mapping[str, ParticipantKind]) -> None:
        """Count those in a chat whose role may give them the wrong kind."""
        roles = {"human": "user", "agent": "assistant", "environment": "tool"}
        wrong = contrary_kinds((None, name, roles[kind]) for name, kind in kinds.items())
        self.contrary_names.update(f"{name} ({kinds[name]})" for name in wrong)
        people = [name for name, kind in kinds.items() if kind == "human"]
        if len(people) > 1 and "agent" not in kinds.values():
            self.people_alone.update(people)

    def _result(self, status: str | None, state: JsonValue) -> None:
        self.results += 1
        if status is None:
            self.statusless += 1
            self.error_like += isinstance(state, dict) and marks.reads_like_error(state.get("observation"))

    def notes(self) -> Iterator[str]:
        """The sentences for a person; none where nothing was stored."""
        if self.actors:
            yield "participants: " + "; ".join(self._kind(kind) for kind in sorted(self.actors, reverse=True))
        if self.contrary_names:
            yield (
                f"names contradict roles about who these are: {_some(self.contrary_names)}. [[roles]] of a "
                "mapping (--map) says it; `coaudit map` drafts one"
            )
        if self.people_alone:
            yield (
                f"the role of a user covers several names, and no agent speaks: {_some(self.people_alone)}. "
                "Where some of them are agents, [[roles]] of a mapping (--map) says so"
            )
        chats = self.openings.total()
        if (repetitions := chats - len(self.openings)) >= CONTINUE * chats > 0:
            yield (
                f"{repetitions} of {count_of(chats, 'chat', 'chats')} begin as another one does, the agent's "
                "first answer included. Where each is a model's call with all messages before it, `growing` "
                "in [messages] of a mapping (--map) makes sessions of them; `coaudit map` drafts one"
            )
        shared = {key: count for key, count in self.questions.items() if count > 1}
        if (alike := sum(shared.values())) >= CONTINUE * chats > 0:
            name = shortened(next(iter(shared))[1], NAME)
            yield (
                f"{alike} of {count_of(chats, 'chat', 'chats')} have one question each and share a session's "
                f"id with others, such as {name!r}. Where they are its turns, `joined` in [messages] of a "
                "mapping (--map) makes sessions of them; `coaudit map` drafts one"
            )
        if self.messages and 2 * self.textless >= self.messages:
            lacking = (
                f"{self.textless} of {count_of(self.messages, 'message', 'messages')} "
                f"{'has' if self.textless == 1 else 'have'} no text"
            )
            if self.textless == self.messages:
                lacking = f"none of the {self.messages} messages has a text"
            yield (
                f"{lacking}: rules and judges see blanks. `text` of a mapping (--map) says where it stands"
            )
        if self.undated_times:
            times = "time is" if self.undated_times == 1 else "times are"
            yield (
                f"{self.undated_times} of {self.times} {times} not ISO 8601, such as "
                f"{shortened(self.undated_example, NAME)!r}: days and durations leave them out. [constants] "
                "time_format of a mapping (--map) says how they are written"
            )
        if self.statusless:
            looks = f" ({self.error_like} of them read like errors)" if self.error_like else ""
            yield (
                f"{self.statusless} of {self.results} results say neither success nor failure{looks}: their "
                "status is unknown and error_rate undefined. [[results]] or [constants] status of a mapping "
                "(--map) says what they mean"
            )

    def _kind(self, kind: str) -> str:
        events = sum(self.actors[kind].values())
        return f"{_some(self.actors[kind])} ({kind}, {events} event{'s' * (events != 1)})"


def _opening(events: EventColumns, kinds: Mapping[str, ParticipantKind]) -> list[str]:
    """A hash of what a chat says up to an agent's first answer to a person; empty where there is none."""
    speakers = [kinds[name] for name in events.actor]
    if "human" not in speakers or "agent" not in speakers[speakers.index("human") :]:
        return []
    end = speakers.index("agent", speakers.index("human")) + 1
    return [content_hash([*events.text[:end]], events.action[end - 1], events.arguments[end - 1])]


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
