"""The states in which an advisor is asked: who has done what so far, from trajectories of any system.

A step is what the agent or a person did, with what the environment answered. A state is a question and the
steps so far; whether the next step is the agent's or a person's is the choice to be advised on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...schemas import Event, Trajectory
from ...schemas.text import count_of
from ...schemas.trajectory import recorded_outcome
from ..errors import CoauditError
from ..systems.rehac.dilemmas import observation
from ..units import opening_query, query_words

OUTCOMES = ("task_reward", "task_performance", "success", "delivered")
"""Outcomes between 0 and 1 that can be the reward; it is the first of those that most trajectories have."""
AGENT, HUMAN = 0, 1
_UNDONE = ("start", "note", "wait", "control")
_FAILED = re.compile(
    r"\s*(could not|couldn't|cannot|can't|no (more )?\w* ?(results?|match|hits?|answer)|nothing|"
    r"invalid|error|fail|unknown|none\b|empty|not found|timed? ?out|exception|traceback|\[\]\s*$|\{\}\s*$)"
    r"|.{0,200}?\b(not found|no results?|failed|error|exception|timed out|invalid)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the agent or of a person."""

    human: bool
    thought: str
    action: str
    argument: str
    observation: str
    failed: bool
    """By the log, or by what the environment answered."""
    seq: int

    @property
    def content(self) -> tuple[bool, str, str, str, str]:
        """What makes two steps the same."""
        return self.human, self.thought, self.action, self.argument, self.observation

    @property
    def text(self) -> str:
        """All that was said in it."""
        return " ".join(filter(None, (self.thought, self.action, self.argument, self.observation)))


@dataclass(frozen=True, slots=True)
class State:
    """A question, empty where the log holds none, and how far a path has got.

    The states of a path share its steps: a copy in each would take space in the square of its length.
    """

    question: str
    path: tuple[Step, ...]
    length: int
    """The number of its steps that were taken so far."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps so far."""
        return self.path[: self.length]

    @property
    def last(self) -> Step | None:
        """The last step; None before the first one."""
        return self.path[self.length - 1] if self.length else None


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished trajectory with its reward."""

    name: str
    experiment: str
    """The condition; paths of one experiment and question form a tree."""
    question: str
    """Key of the question: its index or instance, else what the opening query asks, else (also where more
    than half ask the same) the trajectory's id."""
    text: str
    steps: tuple[Step, ...]
    reward: float


def steps(trajectory: Trajectory) -> tuple[Step, ...]:
    """The steps of agents and people, in order, without the opening query and events known from live traffic
    alone."""
    kinds = {p.name: p.kind for p in trajectory.participants}
    opening = opening_query(trajectory)
    return tuple(
        _step(trajectory, event, human=kinds[event.actor] == "human")
        for event in trajectory.events
        if kinds.get(event.actor) in ("agent", "human")
        and event.kind not in _UNDONE
        and not event.live_only
        and event.seq != opening
    )


def _step(trajectory: Trajectory, event: Event, *, human: bool) -> Step:
    text = observation(trajectory, event)
    action = event.action
    argument = " ".join(str(value) for value in action.arguments.values()) if action else ""
    has_failed = event.status == "failed" or bool(text and _FAILED.match(text))
    name = action.name if action else event.kind
    return Step(human, event.text or "", name, argument, text, has_failed, event.seq)


def question(trajectory: Trajectory) -> str:
    """The texts of its start and of its opening query; empty where the log holds none."""
    start = next((e.text or "" for e in trajectory.events if e.kind == "start"), "").strip()
    opening = opening_query(trajectory)
    query = next((e.text or "" for e in trajectory.events if e.seq == opening), "").strip()
    return "\n".join(filter(None, (start, query)))


def state(trajectory: Trajectory) -> State:
    """The present state of a trajectory."""
    path = steps(trajectory)
    return State(question(trajectory), path, len(path))


def states(trajectory: Trajectory) -> list[State]:
    """The state before each of its steps, and the present one."""
    text, path = question(trajectory), steps(trajectory)
    return [State(text, path, n) for n in range(len(path) + 1)]


def has_ended(trajectory: Trajectory) -> bool:
    """Whether a trajectory has ended, by its log or by a known outcome: then nobody needs to step in."""
    if _in_progress(trajectory):
        return False
    if recorded_outcome(trajectory, "end_reason").text not in (None, "unfinished"):
        return True
    return any(recorded_outcome(trajectory, name).value is not None for name in OUTCOMES)


def _in_progress(trajectory: Trajectory) -> bool:
    """Whether an episode has neither answer nor score: it may go on, though ReHAC's reader gives it 0."""
    has_answer = recorded_outcome(trajectory, "finished").value != 0
    return not has_answer and recorded_outcome(trajectory, "f1").value is None


def outcome_of(trajectories: Iterable[Trajectory]) -> str | None:
    """The outcome that most of them have; None where none has any."""
    counts = dict.fromkeys(OUTCOMES, 0)
    for trajectory in trajectories:
        for name in OUTCOMES:
            counts[name] += recorded_outcome(trajectory, name).value is not None
    best = max(OUTCOMES, key=lambda name: counts[name])
    return best if counts[best] else None


def episodes(trajectories: Sequence[Trajectory], outcome: str | None = None) -> tuple[list[Episode], int]:
    """Trajectories as episodes, and how many are left out since they have no outcome or no step.

    CoauditError where none is left, or an outcome does not lie between 0 and 1.
    """
    name = outcome or outcome_of(trajectories)
    if name is None:
        names = ", ".join(OUTCOMES)
        raise CoauditError(
            f"{count_of(len(trajectories), 'trajectory', 'trajectories')}, none with an outcome "
            f"({names}): without one nothing can be "
            "learned; `coaudit outcomes import FILE` brings outcomes in"
        )
    result = rewarded_episodes(trajectories, name)
    if not result:
        why = "".join(
            f"; {reason}" for reason in [*_reasons(trajectories), *_other_outcomes(trajectories, name)]
        )
        raise CoauditError(
            f"{count_of(len(trajectories), 'trajectory', 'trajectories')}, none with steps and a "
            f"value of {name!r}{why}"
        )
    return result, len(trajectories) - len(result)


def rewarded_episodes(trajectories: Iterable[Trajectory], outcome: str) -> list[Episode]:
    """The episodes of those with steps and a value of that outcome, which may be none.

    CoauditError where a value does not lie between 0 and 1.
    """
    candidates = ((_episode(trajectory, outcome), _key_by_words(trajectory)) for trajectory in trajectories)
    pairs = [(episode, key) for episode, key in candidates if episode is not None]
    often = Counter(key for _, key in pairs if key)
    return [
        replace(episode, question=key) if key and 2 * often[key] <= often.total() else episode
        for episode, key in pairs
    ]


def _reasons(trajectories: Iterable[Trajectory]) -> list[str]:
    """Why outcomes that logs have are missing, the most frequent reasons first."""
    missing = (one for trajectory in trajectories for one in trajectory.outcomes if one.value is None)
    counts = Counter(f"{one.name}: {one.reason}" for one in missing if one.name in OUTCOMES and one.reason)
    return [reason for reason, _ in counts.most_common(3)]


def _other_outcomes(trajectories: Iterable[Trajectory], name: str) -> list[str]:
    """Which outcomes there are instead, where no trajectory has one of that name."""
    every = [one for trajectory in trajectories for one in trajectory.outcomes]
    if any(one.name == name for one in every):
        return []
    names = sorted({one.name for one in every if one.value is not None})
    return [f"there are values of {', '.join(names)}"] if names else []


def _episode(trajectory: Trajectory, name: str) -> Episode | None:
    reward, path = recorded_outcome(trajectory, name).value, steps(trajectory)
    if reward is None or not path or _in_progress(trajectory):
        return None
    if not 0 <= reward <= 1:
        raise CoauditError(f"{trajectory.native_id}: {name} must lie between 0 and 1, got {reward:g}")
    key = _key(trajectory, _name(trajectory) or trajectory.id)
    return Episode(trajectory.native_id, trajectory.condition or "", key, question(trajectory), path, reward)


def _name(trajectory: Trajectory) -> str | None:
    """What the log calls its question."""
    return trajectory.tags.get("idx") or trajectory.instance


def _key_by_words(trajectory: Trajectory) -> str | None:
    """Key of a question that the log asks and does not name."""
    words = None if _name(trajectory) else query_words(trajectory)
    return words and _key(trajectory, words)


def _key(trajectory: Trajectory, which: str) -> str:
    return f"{trajectory.task or ''}/{which}"
