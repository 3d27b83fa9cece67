"""ReHAC's metrics: what the team earned, how often a person stepped in, and what each step was worth.

T is the recorded task reward, C the number of human steps, R = T - λ·C. The human intervention rate is
pooled over steps. R(s, a) is the mean over all trajectories that share the text s up to a choice and then
choose a. As released C is that of the whole trajectory; in the paper (Eq. 5) it counts from the choice on.
Both lead to the same advantages, since the trajectories of a state share what came before it.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ....schemas import Event, Measure, Trajectory
from ....schemas.trajectory import recorded_outcome
from . import reader as source

PENALTY = 0.08
MAX_STATE = 5041
"""Characters; the released code leaves out longer states, the paper does not."""
Definition = Literal["released", "paper"]
TIE = 1e-12


def steps(trajectory: Trajectory) -> tuple[Event, ...]:
    """The steps of the agent and the human, in order."""
    return tuple(event for event in trajectory.events if event.actor in ("agent", "human"))


def interventions(trajectory: Trajectory) -> int:
    """C: how many steps the human took."""
    return sum(event.actor == "human" for event in steps(trajectory))


def measures(trajectory: Trajectory, penalty: float = PENALTY) -> Iterator[Measure]:
    """Every metric of one trajectory; `penalty` is λ, the price of one human step."""
    count, human = len(steps(trajectory)), interventions(trajectory)
    share = human / count if count else None
    task_reward = recorded_outcome(trajectory, "task_reward")
    reward = None if task_reward.value is None else task_reward.value - penalty * human
    exact = recorded_outcome(trajectory, "em")
    success = recorded_outcome(trajectory, "success")
    for metric, value, reason in (
        ("task_reward", task_reward.value, task_reward.reason),
        ("reward", reward, task_reward.reason),
        ("exact_match", exact.value, exact.reason),
        ("success_rate", success.value, success.reason),
        ("interventions", float(human), None),
        ("steps", float(count), None),
    ):
        yield Measure(metric, trajectory.id, value, reason=reason)
    reason = None if count else "no steps"
    yield Measure("human_intervention_rate", trajectory.id, share, weight=float(count), reason=reason)


def normalised_answer(answer: str) -> str:
    """Lower case, without punctuation, articles and extra space."""
    bare = "".join(letter for letter in answer.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


@dataclass(frozen=True, slots=True)
class Value:
    """R(s, a) for one action in one state."""

    n: int
    task_reward: float
    reward: float
    """With the cost of the whole trajectory, as released."""
    reward_after: float
    """With the cost from this step on, as in the paper."""


@dataclass(frozen=True, slots=True)
class State:
    """A point where the next step was the agent's in some trajectories and the human's in others.

    `advantage` is the human's A(s, human) = (R(s, human) - R(s, agent)) / 2; the agent's is its negative.
    `human_steps` and `agent_steps` are the (trajectory, seq) that started from here.
    """

    key: str
    instance: str | None
    depth: int
    characters: int
    agent: Value | None
    human: Value | None
    advantage: float | None
    reason: str | None
    agent_steps: tuple[tuple[str, int], ...]
    human_steps: tuple[tuple[str, int], ...]

    @property
    def tie(self) -> bool:
        """Neither is better, up to rounding."""
        return self.advantage is not None and abs(self.advantage) <= TIE

    @property
    def human_better(self) -> bool:
        """A human step is worth more than the agent's, its price included."""
        return self.advantage is not None and self.advantage > TIE


@dataclass(frozen=True, slots=True)
class _Visit:
    trajectory: str
    seq: int
    task_reward: float
    reward: float
    reward_after: float


def monte_carlo(
    trajectories: Iterable[Trajectory], penalty: float = PENALTY, longest: int | None = MAX_STATE
) -> list[State]:
    """The value of every state that the trajectories pass through, in the order of first appearance.

    A trajectory without a recorded task reward is left out. States with one action only, or with more
    than `longest` characters, are there with a reason and without an advantage.
    """
    visits: dict[str, dict[str, list[_Visit]]] = defaultdict(lambda: {"agent": [], "human": []})
    places: dict[str, tuple[str | None, int, int]] = {}
    for trajectory in trajectories:
        task_reward = recorded_outcome(trajectory, "task_reward").value
        if task_reward is None:
            continue
        reward = task_reward - penalty * interventions(trajectory)
        before = 0
        for depth, (key, characters, event) in enumerate(_prefixes(trajectory)):
            places.setdefault(key, (trajectory.instance, depth, characters))
            after = reward + penalty * before
            visits[key][event.actor].append(_Visit(trajectory.id, event.seq, task_reward, reward, after))
            before += event.actor == "human"
    return [_state(key, *places[key], by_actor, longest) for key, by_actor in visits.items()]


def _prefixes(trajectory: Trajectory) -> Iterator[tuple[str, int, Event]]:
    """Before each step: hash and length of the text up to and including its `<solver>`."""
    preamble = next((event.text or "" for event in trajectory.events[:1]), "").lstrip()
    hasher = hashlib.blake2b(digest_size=16)
    hasher.update((preamble or _root(trajectory)).encode("utf-8", "surrogatepass"))
    characters = len(preamble) + len("<solver>")
    for number, event in enumerate(steps(trajectory), start=1):
        yield hasher.hexdigest(), characters, event
        words = source.logged_text(trajectory.states, event, number) + "<solver>"
        hasher.update(words.encode("utf-8", "surrogatepass"))
        characters += len(words)


def _root(trajectory: Trajectory) -> str:
    """What identifies the question of a tree, whose file holds none: its number is another question's in
    another file."""
    experiment, _, _ = trajectory.native_id.rpartition("/")
    return f"{trajectory.condition}/{trajectory.task}/{experiment}"


def _state(
    key: str,
    instance: str | None,
    depth: int,
    characters: int,
    by_actor: dict[str, list[_Visit]],
    longest: int | None,
) -> State:
    agent, human = _value(by_actor["agent"]), _value(by_actor["human"])
    reason = None
    if agent is None or human is None:
        reason = f"only the {'human' if agent is None else 'agent'} acted here"
    elif longest is not None and characters > longest:
        reason = f"longer than {longest} characters"
    advantage = None
    if agent is not None and human is not None and reason is None:
        advantage = (human.reward - agent.reward) / 2
    cites = [tuple((v.trajectory, v.seq) for v in by_actor[actor]) for actor in ("agent", "human")]
    return State(key, instance, depth, characters, agent, human, advantage, reason, *cites)


def _value(visits: list[_Visit]) -> Value | None:
    if not visits:
        return None
    n = len(visits)
    return Value(
        n,
        sum(v.task_reward for v in visits) / n,
        sum(v.reward for v in visits) / n,
        sum(v.reward_after for v in visits) / n,
    )


def helpful_states(states: Iterable[State]) -> list[State]:
    """States where a human step was worth more than the agent's, the greatest gain first."""
    return sorted((s for s in states if s.human_better), key=lambda s: -(s.advantage or 0.0))


def wasted_states(states: Iterable[State]) -> list[State]:
    """States where a human step was worth no more than the agent's, the greatest loss first."""
    losses = [s for s in states if s.advantage is not None and not s.human_better]
    return sorted(losses, key=lambda s: s.advantage or 0.0)
