"""What a policy earns on questions, in totals that estimators take: exact on trees, weighted on samples.

Where both choices are recorded in (nearly) every state, a policy's expected reward is exact. Where
trajectories were merely logged, an episode counts by how much likelier the policy takes its choices than
who logged it did (self-normalised importance sampling, over whole episodes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...annotation.statistics.estimate import ANY, Bounds, Estimate, Totals, difference, estimate, totals
from ...annotation.statistics.intervals import Floats
from .features import Seen
from .policies import standardised
from .states import HUMAN
from .trees import Forest

SAMPLED = 0.2
"""With a smaller share of states that saw both choices, the data are samples and no trees."""
LEAST_CHANCE = 0.05
"""Nobody's choice is taken to be rarer than that."""
LEAST_KNOWN = 8
"""Questions of even weight that must tell of a policy, and of agent-only: on samples few take its choices."""


@dataclass(frozen=True, eq=False)
class Score:
    """Of each question (Q,): the weight it has, and weighted task reward, human steps and steps."""

    weight: Floats
    task_reward: Floats
    human: Floats
    steps: Floats
    clusters: Sequence[str]

    @property
    def parts(self) -> Floats:
        """The four as one table (4, Q)."""
        return np.stack([self.weight, self.task_reward, self.human, self.steps])

    def of(self, questions: Floats) -> Score:
        """The same with each question's weight multiplied; 0 leaves it out."""
        return score_of(self.parts * questions, self.clusters)

    def joined(self, other: Score) -> Score:
        """Both added up: of questions that were left out of one or the other."""
        return score_of(self.parts + other.parts, self.clusters)

    def reward(self, penalty: float) -> Floats:
        """Weighted R = T - λC (Q,)."""
        return np.asarray(self.task_reward - penalty * self.human)

    def totals(self, penalty: float, bounds: Bounds = ANY) -> Totals:
        """The rewards as a ratio of totals, with questions as clusters."""
        return totals(self.reward(penalty), self.weight, clusters=np.asarray(self.clusters), bounds=bounds)

    def mean(self, penalty: float) -> float | None:
        """Expected reward; None where the policy's choices were never logged."""
        held = float(self.weight.sum())
        return float(self.reward(penalty).sum()) / held if held > 0 else None

    def estimate(self, penalty: float, cap: int) -> Estimate:
        """The expected reward with its interval."""
        return estimate(self.totals(penalty, (min(0.0, -penalty * cap), 1.0)))

    def minus(self, other: Score, penalty: float) -> Estimate:
        """The paired difference of rewards."""
        if not np.array_equal(self.weight, other.weight):
            return difference(self.totals(penalty), other.totals(penalty))
        apart = self.reward(penalty) - other.reward(penalty)
        return estimate(totals(apart, self.weight, clusters=np.asarray(self.clusters)))

    @property
    def task(self) -> float | None:
        """Expected task reward."""
        held = float(self.weight.sum())
        return float(self.task_reward.sum()) / held if held > 0 else None

    @property
    def rate(self) -> float | None:
        """Human steps of all steps, pooled."""
        taken = float(self.steps.sum())
        return float(self.human.sum()) / taken if taken > 0 else None

    @property
    def effective(self) -> float:
        """(Σw)²/Σw²: so many questions of even weight tell as much."""
        squares = float((self.weight**2).sum())
        return float(self.weight.sum()) ** 2 / squares if squares else 0.0


def score_of(parts: Floats, clusters: Sequence[str]) -> Score:
    """A score from its four parts (4, Q)."""
    weight, earned, human, steps = parts
    return Score(weight, earned, human, steps, clusters)


@dataclass(frozen=True, eq=False)
class Bench:
    """A forest as what policies are tried on."""

    woods: Forest
    behaviour: Floats | None = None
    """The chance (N,) that a person acted, where the data are samples."""

    def score(self, human: Floats) -> Score:
        """What the policy that calls a person with chance `human` (N,) earns."""
        if self.behaviour is None:
            value = self.woods.worth(human).of_question
            return score_of(np.vstack([np.ones(len(value)), value.T]), self.woods.clusters)
        return self._weighted(human, self.behaviour)

    def thin(self, score: Score) -> bool:
        """Whether too few logged episodes took the policy's choices; never of trees, which hold them all."""
        return self.behaviour is not None and score.effective < LEAST_KNOWN - 1e-9

    def known(self, score: Score) -> Score:
        """The score, or one of nothing where it is thin.

        A handful of episodes, weighted to sum to 1, tell of the questions they happened to be of: the value
        of always calling a person was .64 for .45 there, and its difference's interval held .80 to .86.
        """
        return score.of(np.zeros(len(score.weight))) if self.thin(score) else score

    def _weighted(self, human: Floats, behaviour: Floats) -> Score:
        woods, count = self.woods, len(self.woods.roots)
        ratio = np.zeros(len(woods.states))
        ratio[woods.roots] = 1.0
        sums = np.zeros((count, 4))
        for edges in woods.levels:
            source, target = woods.source[edges], woods.target[edges]
            by_human = woods.action[edges] == HUMAN
            likelier = np.where(
                by_human, human[source] / behaviour[source], (1 - human[source]) / (1 - behaviour[source])
            )
            weight = ratio[source] * likelier
            ends = target < 0
            # A node has one way in, so nothing is added up here.
            ratio[target[~ends]] = weight[~ends]
            last = source[ends]
            steps = woods.depth[last] + 1.0
            people = self.people[last] + by_human[ends]
            values = np.column_stack([np.ones(len(last)), woods.reward[edges][ends], people, steps])
            np.add.at(sums, woods.tree[last], weight[ends, None] * values)
        return score_of(sums.T, woods.clusters)

    @cached_property
    def people(self) -> Floats:
        """Human steps before each state (N,)."""
        return np.array([sum(step.human for step in state.steps) for state in self.woods.states], dtype=float)


def is_sampled(woods: Forest) -> bool:
    """Whether the states saw one choice each, as good as all."""
    return bool(woods.available.all(axis=1).mean() < SAMPLED)


def bench(woods: Forest, seen: Seen) -> Bench:
    """Trees as they are; samples with the chance of a person as it was, by logistic regression."""
    return Bench(woods, behaviour(woods, seen) if is_sampled(woods) else None)


def behaviour(woods: Forest, seen: Seen) -> Floats:
    """How likely a person acted in each state (N,), from the course so far."""
    from sklearn.linear_model import LogisticRegression

    spread = seen.process.std(axis=0)
    table = standardised(seen.process, seen.process.mean(axis=0), np.where(spread > 1e-9, spread, 1.0))
    number = woods.leaves
    design = np.vstack([table, table])
    acted = np.repeat([0, 1], len(table))
    weight = np.concatenate([number[:, 0], number[:, 1]])
    model = LogisticRegression(C=0.1, max_iter=2000).fit(
        design[weight > 0], acted[weight > 0], weight[weight > 0]
    )
    chance = np.clip(model.predict_proba(table)[:, 1], LEAST_CHANCE, 1 - LEAST_CHANCE)
    return np.asarray(chance, dtype=np.float64)
