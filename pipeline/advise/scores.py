"""What a policy earns on questions: exact on trees, weighted on samples.

Where both choices are recorded in (nearly) every state, a policy's expected reward is exact. Where
trajectories were merely logged, an episode counts by how much likelier its choices are under the policy than
in the logs (self-normalised importance sampling, over whole episodes), and what that leaves uneven between
questions is made up for by a regression on their words (doubly robust; Robins, Rotnitzky and Zhao 1994, Dudík
et al. 2011): it is consistent if either the model of who acted or that of what a question earns is right.
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
    difference,
    estimate,
    totals,
    with_interval,
)
from ...annotation.statistics.intervals import Floats
from .behaviour import Opening, behaviour, openings
from .features import StateFeatures
from .states import HUMAN
from .trees import Forest

SAMPLED = 0.2
"""With a smaller share of states in which both choices were made, the data are samples and no trees."""
LEAST_KNOWN = 8
"""Effective number of questions from which on a policy has a value: on samples few take its choices."""
SURE = 50
"""Effective number of questions from which on intervals have their nominal coverage."""
WEIGHTED = "weighted by importance, with who acted predicted from course, words and question"
UNSEEN = (
    "reasons to step in that these do not show, or that too few questions show, bias every value, and no "
    "interval allows for that"
)
STRENGTH = 10.0
"""Strength of the ridge penalty, where a question's words predict what it earns."""


@dataclass(frozen=True, eq=False)
class Score:
    """Of each question (Q,): the weight it has, and weighted task reward, human steps and steps."""

    weight: Floats
    task_reward: Floats
    human: Floats
    steps: Floats
    clusters: Sequence[str]
    support: Floats
    """The weight of the logged episodes with the policy's choices: on trees that of the question."""

    @property
    def parts(self) -> Floats:
        """All of them as one table (5, Q)."""
        return np.stack([self.weight, self.task_reward, self.human, self.steps, self.support])

    def of(self, questions: Floats) -> Score:
        """The same with each question's weight multiplied; 0 leaves it out."""
        return score_of(self.parts * questions, self.clusters)

    def plus(self, other: Score) -> Score:
        """The sum of two scores, such as those of two sets of questions."""
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
    def human_steps(self) -> float | None:
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
        """The effective number of questions, (Σw)²/Σw² of their support (Kish 1965).

        A question counts once, in however many conditions it was asked. Importance weights sum to the number
        of episodes on average. What they lack of it is taken for one question more that was not logged: a
        policy's rarest episodes weigh most, and without them the others' weights look even.
        """
        _, positions = np.unique(np.asarray(self.clusters), return_inverse=True)
        weights = np.bincount(positions, self.support)
        lacking = max(0.0, float(self.weight.sum() - weights.sum()))
        squares = float((weights**2).sum()) + lacking**2
        return float(weights.sum() + lacking) ** 2 / squares if weights.any() else 0.0


def _estimate(sample: Totals, effective: float) -> Estimate:
    """An estimate with the degrees of freedom of `effective` questions of equal weight."""
    result = estimate(sample)
    if result.value is None or result.error is None or effective >= sample.independent - 1e-9:
        return result
    return with_interval(
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
    """A score from its parts: (4, Q), or (5, Q) where the support is not the weight."""
    weight, task_reward, human, steps = parts[:4]
    return Score(weight, task_reward, human, steps, clusters, parts[4] if len(parts) > 4 else weight)


@dataclass(frozen=True, eq=False)
class Bench:
    """A forest on which policies are tried."""

    woods: Forest
    behaviour: Floats | None = None
    """The chance (N,) that a person acted, where the data are samples."""
    openings: Sequence[Opening] = ()
    """Folds with the words that predict a question's value, where the data are samples."""

    def score(self, human: Floats) -> Score:
        """What the policy that calls a person with chance `human` (N,) earns."""
        if self.behaviour is None:
            value = self.woods.worth(human).of_question
            return score_of(np.vstack([np.ones(len(value)), value.T]), self.woods.clusters)
        return self._doubly_robust(self._importance_sums(human, self.behaviour))

    def is_thin(self, score: Score) -> bool:
        """Whether too few logged episodes took the policy's choices; never of trees, which hold them all."""
        return self.behaviour is not None and score.effective < LEAST_KNOWN - 1e-9

    def if_known(self, score: Score) -> Score:
        """The score, or an empty one where it is thin.

        A handful of episodes, weighted to sum to 1, represent only the questions they happen to be of: there
        the value of always calling a person came out as .64 where it was .45, and the interval of its
        difference covered the truth in .80 to .86 of the cases.
        """
        return score.of(np.zeros(len(score.weight))) if self.is_thin(score) else score

    def _doubly_robust(self, sums: Floats) -> Score:
        """The doubly robust value: what each question is predicted to earn, plus its weighted residual.

        V = Σ(m + δ + w/w̄ (y - m - δ))/n, where m is predicted from other questions and δ makes the weighted
        residuals sum to 0. A residual is taken as if its question were left out of δ, 1/(1 - w/Σw) times
        as large (jackknife), and what all residuals then add is subtracted.
        """
        weights, number = sums[:, 0], self.woods.leaves[self.woods.roots].sum(axis=1)
        total = float(weights.sum())
        if not total:
            return score_of(np.zeros((5, len(number))), self.woods.clusters)
        own = sums[:, 1:] / np.where(weights > 0, weights, 1.0)[:, None]
        predictions = self._predict(own, weights)
        predictions = predictions + weights @ (own - predictions) / total
        scale = weights / np.maximum(1 - weights / total, 0.5) / total
        rest = scale[:, None] * (own - predictions)
        values = number[:, None] * (predictions - rest.sum(axis=0)) + number.sum() * rest
        return score_of(np.vstack([number, values.T, weights]), self.woods.clusters)

    def _predict(self, own: Floats, weights: Floats) -> Floats:
        """Reward, human steps and steps (Q, 3) by a question's words: weighted ridge regression on others."""
        predictions = np.zeros(own.shape)
        for opening in self.openings:
            weight = np.where(opening.holdout, 0.0, weights)
            if not weight.any():
                continue
            share = weight / weight[weight > 0].mean()
            centre = share @ opening.table / share.sum()
            table, mean = opening.table - centre, share @ own / share.sum()
            square = (table * share[:, None]).T @ table + STRENGTH * np.eye(table.shape[1])
            slope = np.linalg.solve(square, (table * share[:, None]).T @ (own - mean))
            predictions[opening.holdout] = mean + table[opening.holdout] @ slope
        return predictions

    def _importance_sums(self, human: Floats, behaviour: Floats) -> Floats:
        """Of each question (Q, 4): the importance weight of its episodes, and their weighted reward, human
        steps and steps."""
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
            # A node has one parent, so it is assigned once.
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
        woods, people = self.woods, np.zeros(len(self.woods.states))
        for edges in woods.levels:
            inner = edges[woods.target[edges] >= 0]
            people[woods.target[inner]] = people[woods.source[inner]] + (woods.action[inner] == HUMAN)
        return people


def is_sampled(woods: Forest) -> bool:
    """Whether nearly all states saw one choice only."""
    return bool(woods.available.all(axis=1).mean() < SAMPLED)


def bench(woods: Forest, features: StateFeatures) -> Bench:
    """The bench of a forest; on samples with who acted, and the words that predict what questions earn."""
    if not is_sampled(woods):
        return Bench(woods)
    return Bench(woods, behaviour(woods, features), openings(woods, features))
