"""Questions as trees of choices, and what a policy earns on them exactly, by dynamic programming.

A node is a state; in each the next step is the agent's or a person's. Paths with the same steps so far
share their nodes. Where an environment answered the same step in several ways, those are weighed: by how
often they came where paths were sampled again, by ½ per later step where each path was logged once. Where
only one of the two was recorded, it is forced, and counted. Depth and size are free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics.intervals import Floats, Ints
from .states import HUMAN, Episode, State

Choices = NDArray[np.bool_]
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Forest:
    """Q questions with N nodes and E edges; an edge without target (-1) ends an episode and earns something.

    `states` (N); `tree`, `depth` (N,) say whose and how deep; `available` (N, 2) whether the agent, a
    person was seen to act there. `leaves`, `returns`, `human` (N, 2): episodes through a choice, the sum of
    their rewards and of the human steps from there on. `names`, `clusters` (Q): a question, and what is
    not independent of it.
    """

    states: Sequence[State]
    tree: Ints
    depth: Ints
    available: Choices
    source: Ints
    action: Ints
    target: Ints
    reward: Floats
    weight: Floats
    roots: Ints
    names: Sequence[str]
    clusters: Sequence[str]
    leaves: Floats
    returns: Floats
    human: Floats
    levels: Sequence[Ints] = field(default_factory=tuple)
    """Edges by depth, the shallowest first."""

    @property
    def forced(self) -> Choices:
        """(N,): states with one choice recorded."""
        return np.asarray(~self.available.all(axis=1))

    @property
    def whole(self) -> Choices:
        """(Q,): questions of which every choice was played out."""
        incomplete = np.bincount(self.tree, weights=self.forced, minlength=len(self.roots))
        return np.asarray(incomplete == 0)

    def restrict(self, human: Floats) -> Floats:
        """The chance of a person (N,), 0 or 1 where only one choice was recorded."""
        chance = np.where(self.available[:, 0], human, 1.0)
        return np.asarray(np.where(self.available[:, 1], chance, 0.0), dtype=np.float64)

    def worth(self, human: Floats) -> Worth:
        """What the policy that calls a person with chance `human` (N,) earns from each state on."""
        chance = self.restrict(human)
        return self._backward(lambda nodes, of_choice: chance[nodes])

    def oracle(self, penalty: float) -> Floats:
        """The best choice (N,) in hindsight; among equals that of fewer human steps, then of fewer steps."""
        best = np.zeros(len(self.states))

        def choose(nodes: Ints, of_choice: Floats) -> Floats:
            agent, human = of_choice[nodes, 0], of_choice[nodes, 1]
            gain = _reward(human, penalty) - _reward(agent, penalty)
            fewer = agent[:, 1:] - human[:, 1:]
            tie = np.where(np.abs(fewer[:, 0]) > TIE, fewer[:, 0], fewer[:, 1])
            better = np.where(np.abs(gain) > TIE, gain, tie) > TIE
            best[nodes] = np.where(self.available[nodes].all(axis=1), better, self.available[nodes, HUMAN])
            return best[nodes]

        self._backward(choose)
        return best

    def reach(self, human: Floats) -> Floats:
        """The chance (N,) that a policy comes through a state."""
        chance = self.restrict(human)
        reach = np.zeros(len(self.states))
        reach[self.roots] = 1.0
        for edges in self.levels:
            inner = edges[self.target[edges] >= 0]
            source, action = self.source[inner], self.action[inner]
            probability = np.where(action == HUMAN, chance[source], 1 - chance[source])
            np.add.at(reach, self.target[inner], reach[source] * probability * self.weight[inner])
        return reach

    def _backward(self, chance: object) -> Worth:
        count = len(self.states)
        of_choice = np.zeros((count, 2, 3))
        of_state = np.zeros((count, 3))
        for edges in reversed(self.levels):
            source, action, target = self.source[edges], self.action[edges], self.target[edges]
            ends = np.zeros((len(edges), 3))
            ends[:, 0] = self.reward[edges]
            after = np.where((target < 0)[:, None], ends, of_state[target])
            after[:, 1] += action
            after[:, 2] += 1
            np.add.at(of_choice, (source, action), self.weight[edges, None] * after)
            nodes = np.unique(source)
            human = chance(nodes, of_choice)[:, None]  # type: ignore[operator]
            of_state[nodes] = (1 - human) * of_choice[nodes, 0] + human * of_choice[nodes, 1]
        return Worth(of_state[self.roots], of_choice)


@dataclass(frozen=True, eq=False)
class Worth:
    """Task reward, human steps and steps: `of_question` (Q, 3) from the root, `of_choice` (N, 2, 3)."""

    of_question: Floats
    of_choice: Floats

    def reward(self, penalty: float) -> Floats:
        """R = T - λC of each question (Q,)."""
        return _reward(self.of_question, penalty)

    def gain(self, penalty: float) -> Floats:
        """Q(s, human) - Q(s, agent) (N,), the policy being followed afterwards."""
        return _reward(self.of_choice[:, 1], penalty) - _reward(self.of_choice[:, 0], penalty)


def _reward(values: Floats, penalty: float) -> Floats:
    return np.asarray(values[:, 0] - penalty * values[:, 1])


def forest(episodes: Iterable[Episode]) -> Forest:
    """Lay the paths of each question of an experiment together."""
    by_question: dict[tuple[str, str], list[Episode]] = {}
    for episode in episodes:
        by_question.setdefault((episode.experiment, episode.question), []).append(episode)
    growing = _Builder()
    for (_, question), paths in by_question.items():
        growing.plant(question, paths)
    return growing.build()


class _Builder:
    """Collects nodes and edges."""

    def __init__(self) -> None:
        self.states: list[State] = []
        self.tree: list[int] = []
        self.edges: list[tuple[int, int, int, float, float]] = []
        self.roots: list[int] = []
        self.names: list[str] = []
        self.through: dict[tuple[int, int], list[float]] = {}

    def plant(self, question: str, paths: Sequence[Episode]) -> None:
        """Add a question with all its paths."""
        sequences = [tuple(step.human for step in path.steps) for path in paths]
        each_once = len(set(sequences)) == len(sequences)
        root = self._node(State(max((p.text for p in paths), key=len), (), 0))
        self.roots.append(root)
        self.names.append(question)
        children: dict[tuple[int, object], int] = {}
        inner: dict[tuple[int, int, int], float] = {}
        for path in paths:
            node = root
            people = sum(step.human for step in path.steps)
            for number, step in enumerate(path.steps, start=1):
                remaining = len(path.steps) - number
                weight = 2.0**-remaining if each_once else 1.0
                self._count(node, int(step.human), path.reward, people)
                people -= step.human
                if not remaining:
                    self.edges.append((node, int(step.human), -1, path.reward, weight))
                    break
                key = (node, step.content)
                if key not in children:
                    children[key] = self._node(State(self.states[root].question, path.steps, number))
                edge = (node, int(step.human), children[key])
                inner[edge] = inner.get(edge, 0.0) + weight
                node = children[key]
        self.edges += [(*edge, 0.0, weight) for edge, weight in inner.items()]

    def _node(self, state: State) -> int:
        self.states.append(state)
        self.tree.append(len(self.roots) - bool(state.length))
        return len(self.states) - 1

    def _count(self, node: int, choice: int, reward: float, people: int) -> None:
        """Count an episode through a choice, with its reward and the human steps from there on."""
        totals = self.through.setdefault((node, choice), [0.0, 0.0, 0.0])
        totals[0] += 1
        totals[1] += reward
        totals[2] += people

    def build(self) -> Forest:
        """The forest of all questions added."""
        depth = np.array([state.length for state in self.states], dtype=np.int64)
        source, action, target = (np.array([e[i] for e in self.edges], dtype=np.int64) for i in range(3))
        reward, weight = (np.array([e[i] for e in self.edges], dtype=np.float64) for i in (3, 4))
        total = np.zeros((len(depth), 2))
        np.add.at(total, (source, action), weight)
        through = np.zeros((len(depth), 2, 3))
        for (node, choice), totals in self.through.items():
            through[node, choice] = totals
        levels = [np.flatnonzero(depth[source] == d) for d in range(int(depth.max(initial=-1)) + 1)]
        return Forest(
            states=self.states,
            tree=np.array(self.tree, dtype=np.int64),
            depth=depth,
            available=total > 0,
            source=source,
            action=action,
            target=target,
            reward=reward,
            weight=weight / total[source, action],
            roots=np.array(self.roots, dtype=np.int64),
            names=self.names,
            clusters=self.names,
            leaves=through[:, :, 0],
            returns=through[:, :, 1],
            human=through[:, :, 2],
            levels=levels,
        )


def folds(woods: Forest, number: int, draw: np.random.Generator) -> Ints:
    """The fold of each question (Q,), `number` of them at most; clusters are not split."""
    _, cluster = np.unique(np.asarray(woods.clusters), return_inverse=True)
    count = int(cluster.max()) + 1
    return np.asarray((draw.permutation(count) % min(number, count))[cluster])


def complete_paths(paths: Sequence[Episode]) -> tuple[list[Episode], int]:
    """The paths of questions of which each choice was played out once, and how many questions are left out.

    Paths of one question belong together whatever their experiment, so that a tree read twice is not whole.
    """
    by_question: dict[str, list[Episode]] = {}
    for path in paths:
        by_question.setdefault(path.question, []).append(path)
    whole = [own for own in by_question.values() if _is_whole(own)]
    return [path for own in whole for path in own], len(by_question) - len(whole)


def _is_whole(paths: Sequence[Episode]) -> bool:
    """Whether fair coin tosses always lead to exactly one of the paths (Kraft's equality)."""
    ways = {tuple(step.human for step in path.steps) for path in paths}
    prefixes = {way[:n] for way in ways for n in range(len(way))}
    return len(ways) == len(paths) and not ways & prefixes and sum(2.0 ** -len(way) for way in ways) == 1


def counts(woods: Forest) -> Mapping[str, int]:
    """How much was recorded: questions, each once whatever its conditions, states, and what is missing."""
    return {
        "questions": len(set(woods.clusters)),
        "states": len(woods.states),
        "one_choice": int(woods.forced.sum()),
        "incomplete_questions": len(set(np.asarray(woods.clusters)[~woods.whole])),
    }
