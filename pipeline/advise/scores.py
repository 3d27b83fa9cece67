"""What a policy earns on questions, in totals that estimators take: exact on trees, weighted on samples.

Where both choices are recorded in (nearly) every state, a policy's expected reward is exact. Where
trajectories were merely logged, an episode counts by how much likelier the policy takes its choices than
who logged it did (self-normalised importance sampling, over whole episodes), and what that leaves uneven
between questions is made up for by a regression on their words (doubly robust; Robins, Rotnitzky and Zhao
1994, Dudík et al. 2011): right where either who acted or what a question earns is told rightly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...annotation.statistics.estimate import (
    ANY,
    Bounds,
    Estimate,
    Moments,
    Totals,
    concluded,
    difference,
    estimate,
    totals,
)
from ...annotation.statistics.intervals import Floats
from .behaviour import Opening, behaviour, openings
from .features import Seen
from .states import HUMAN
from .trees import Forest

SAMPLED = 0.2
"""With a smaller share of states that saw both choices, the data are samples and no trees."""
LEAST_KNOWN = 8
"""Questions of even weight that must tell of a policy, and of agent-only: on samples few take its choices."""
SURE = 50
"""Questions of even weight from which on intervals hold the truth as often as they say."""
WEIGHTED = "weighted by importance, with who acted as course, words and question tell"
UNSEEN = (
    "reasons to step in that these do not show, or that too few questions show to be learnt, bias every "
    "value, and no interval covers that"
)
STRENGTH = 10.0
"""Of the penalty on what a question's words say it earns."""


@dataclass(frozen=True, eq=False)
class Score:
    """Of each question (Q,): the weight it has, and weighted task reward, human steps and steps."""

    weight: Floats
    task_reward: Floats
    human: Floats
    steps: Floats
    clusters: Sequence[str]
    followed: Floats
    """How much of it was logged with the policy's choices: on trees its weight."""

    @property
    def parts(self) -> Floats:
        """All of them as one table (5, Q)."""
        return np.stack([self.weight, self.task_reward, self.human, self.steps, self.followed])

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
        total = float(self.weight.sum())
        return float(self.reward(penalty).sum()) / total if total > 0 else None

    def estimate(self, penalty: float, cap: int) -> Estimate:
        """The expected reward with its interval."""
        return _estimate(self.totals(penalty, (min(0.0, -penalty * cap), 1.0)), self.effective)

    def minus(self, other: Score, penalty: float) -> Estimate:
        """The paired difference of rewards."""
        if not np.array_equal(self.weight, other.weight):
            return difference(self.totals(penalty), other.totals(penalty))
        apart = self.reward(penalty) - other.reward(penalty)
        sample = totals(apart, self.weight, clusters=np.asarray(self.clusters))
        return _estimate(sample, min(self.effective, other.effective))

    @property
    def task(self) -> float | None:
        """Expected task reward."""
        total = float(self.weight.sum())
        return float(self.task_reward.sum()) / total if total > 0 else None

    @property
    def called(self) -> float | None:
        """C: human steps an episode."""
        total = float(self.weight.sum())
        return float(self.human.sum()) / total if total > 0 else None

    @property
    def rate(self) -> float | None:
        """The share of human steps of all steps, pooled."""
        steps = float(self.steps.sum())
        return float(self.human.sum()) / steps if steps > 0 else None

    @property
    def effective(self) -> float:
        """(Σw)²/Σw² of what was followed: so many questions of even weight tell as much.

        A question counts once, in however many conditions it was asked.
        """
        _, positions = np.unique(np.asarray(self.clusters), return_inverse=True)
        weights = np.bincount(positions, self.followed)
        squares = float((weights**2).sum())
        return float(weights.sum()) ** 2 / squares if squares else 0.0


def _estimate(sample: Totals, effective: float) -> Estimate:
    """An estimate that is as sure as `effective` questions of even weight can be."""
    result = estimate(sample)
    if result.value is None or result.error is None or effective >= sample.independent - 1e-9:
        return result
    return concluded(
        Moments(
            value=result.value,
            error=result.error,
            df=max(1.0, effective - 1),
            n=result.n,
            clusters=max(1, int(effective)),
            size=effective,
            yes_no=False,
            plain=False,
            bounds=sample.bounds,
        )
    )


def score_of(parts: Floats, clusters: Sequence[str]) -> Score:
    """A score from its parts: four (4, Q), or five where what was followed is not the weight."""
    weight, task_reward, human, steps = parts[:4]
    return Score(weight, task_reward, human, steps, clusters, parts[4] if len(parts) > 4 else weight)


@dataclass(frozen=True, eq=False)
class Bench:
    """A forest as what policies are tried on."""

    woods: Forest
    behaviour: Floats | None = None
    """The chance (N,) that a person acted, where the data are samples."""
    openings: Sequence[Opening] = ()
    """By what questions' values are told apart, where the data are samples."""

    def score(self, human: Floats) -> Score:
        """What the policy that calls a person with chance `human` (N,) earns."""
        if self.behaviour is None:
            value = self.woods.worth(human).of_question
            return score_of(np.vstack([np.ones(len(value)), value.T]), self.woods.clusters)
        return self._robust(self._weighted(human, self.behaviour))

    def thin(self, score: Score) -> bool:
        """Whether too few logged episodes took the policy's choices; never of trees, which hold them all."""
        return self.behaviour is not None and score.effective < LEAST_KNOWN - 1e-9

    def known(self, score: Score) -> Score:
        """The score, or one of nothing where it is thin.

        A handful of episodes, weighted to sum to 1, tell of the questions they happened to be of: the value
        of always calling a person was .64 for .45 there, and its difference's interval held .80 to .86.
        """
        return score.of(np.zeros(len(score.weight))) if self.thin(score) else score

    def _robust(self, sums: Floats) -> Score:
        """What each question should earn, and how much more those did whose choices were the policy's.

        V = Σ(m + δ + w/w̄ (y - m - δ))/n: what is said of each, moved so that the weighted rest is 0. A rest
        counts as without its question, 1/(1 - w/Σw) as much (jackknife), and what all that adds is taken off.
        """
        weights, number = sums[:, 0], self.woods.leaves[self.woods.roots].sum(axis=1)
        total = float(weights.sum())
        if not total:
            return score_of(np.zeros((5, len(number))), self.woods.clusters)
        own = sums[:, 1:] / np.where(weights > 0, weights, 1.0)[:, None]
        predictions = self._said(own, weights)
        predictions = predictions + weights @ (own - predictions) / total
        scale = weights / np.maximum(1 - weights / total, 0.5) / total
        rest = scale[:, None] * (own - predictions)
        values = number[:, None] * (predictions - rest.sum(axis=0)) + number.sum() * rest
        return score_of(np.vstack([number, values.T, weights]), self.woods.clusters)

    def _said(self, own: Floats, weights: Floats) -> Floats:
        """What the words of each question (Q, 3) say of it, by other questions; weighted ridge regression."""
        predictions = np.zeros(own.shape)
        for opening in self.openings:
            weight = np.where(opening.held, 0.0, weights)
            if not weight.any():
                continue
            share = weight / weight[weight > 0].mean()
            centre = share @ opening.table / share.sum()
            table, mean = opening.table - centre, share @ own / share.sum()
            square = (table * share[:, None]).T @ table + STRENGTH * np.eye(table.shape[1])
            slope = np.linalg.solve(square, (table * share[:, None]).T @ (own - mean))
            predictions[opening.held] = mean + table[opening.held] @ slope
        return predictions

    def _weighted(self, human: Floats, behaviour: Floats) -> Floats:
        """Of each question (Q, 4): the weight of its episodes, and their weighted earnings, people, steps."""
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
        return sums

    @cached_property
    def people(self) -> Floats:
        """Human steps before each state (N,)."""
        return np.array([sum(step.human for step in state.steps) for state in self.woods.states], dtype=float)


def is_sampled(woods: Forest) -> bool:
    """Whether the states saw one choice each, as good as all."""
    return bool(woods.available.all(axis=1).mean() < SAMPLED)


def bench(woods: Forest, features: Seen) -> Bench:
    """Trees as they are; samples with who acted, and what questions earned, as their features tell."""
    if not is_sampled(woods):
        return Bench(woods)
    return Bench(woods, behaviour(woods, features), openings(woods, features))
