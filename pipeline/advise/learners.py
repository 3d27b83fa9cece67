"""How policies are learnt from a forest: the paper's policy gradient, imitation, advantage regression, rules.

Sources: Eq. 5-8 of the ReHAC paper for the gradient (formats as released differ in the weight and in the
cost); the rest fits Q(s, human) - Q(s, agent), exact on trees under the policy that is followed
afterwards, and follows the policy that this gives (policy iteration).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics.intervals import Floats, Ints
from .features import StateFeatures
from .policies import (
    NEVER,
    BoostedTrees,
    Condition,
    Ensemble,
    Linear,
    Policy,
    Rule,
    dense_features,
    standardise,
)
from .trees import Forest

Rows = NDArray[np.bool_]
EPSILON = 0.3
ENTROPY = 0.1
BEHAVIOUR = 0.5
ROUNDS = 3
"""Rounds of policy iteration."""
MOST = 4000
"""States that boosted trees are grown on."""
WORDS = 40
"""Words that boosted trees and rules may look at."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is learnt from: a forest with its features, and which states (N,) may be looked at."""

    woods: Forest
    features: StateFeatures
    rows: Rows
    penalty: float
    seed: int = 0
    behaviour: Floats | None = None
    """The chance (N,) that a person acted, where the data are samples and no trees."""

    @property
    def choices(self) -> Rows:
        """States where both were recorded, which alone teach on trees."""
        return np.asarray(self.rows & ~self.woods.forced)


Learner = Callable[[Lesson], Policy]
Fit = Callable[[Lesson, Floats, Floats], Linear | BoostedTrees]
"""Features, target and weight of all states -> a model of the target."""


def policy_iteration(*fits: Fit, rounds: int = ROUNDS) -> Learner:
    """Policy iteration: fits the exact gain of a person under the policy so far, which begins as a coin toss.

    With several fits their mean is the policy.
    """

    def learn(lesson: Lesson) -> Policy:
        chance: Floats = np.full(len(lesson.rows), BEHAVIOUR)
        policy: Policy = NEVER
        for _ in range(rounds):
            lessons = gain_targets(lesson, chance)
            models = tuple(fit(lesson, *lessons) for fit in fits)
            policy = models[0] if len(models) == 1 else Ensemble(models)
            chance = policy.chance(lesson.features)
        return policy

    return learn


def gain_targets(lesson: Lesson, chance: Floats) -> tuple[Floats, Floats]:
    """The gain of a person (N,) under a policy, and weights (N,): how likely each state is reached.

    On samples both come from `residuals`.
    """
    if lesson.behaviour is not None:
        return residuals(lesson, lesson.behaviour)
    gain = lesson.woods.worth(chance).gain(lesson.penalty)
    reach = lesson.woods.reach((chance + BEHAVIOUR) / 2)
    return gain, np.where(lesson.choices, reach, 0.0)


def residuals(lesson: Lesson, behaviour: Floats) -> tuple[Floats, Floats]:
    """The gain of a person (N,) from what was logged, and weights, by Robinson's transformation.

    (G - m(s)) / (a - e(s)) with weight (a - e(s))²: G the Monte-Carlo return from the state on, m its
    expectation, e the chance that a person acted. After the step the logged behaviour goes on.
    """
    from sklearn.linear_model import Ridge

    woods = lesson.woods
    number = woods.leaves.sum(axis=1)
    returns = (woods.returns - lesson.penalty * woods.human).sum(axis=1) / np.maximum(number, 1)
    action = woods.leaves[:, 1] / np.maximum(number, 1)
    rows = np.flatnonzero(lesson.rows & (number > 0))
    mean, scale = mean_and_scale(lesson.features.process[rows])
    table = standardise(lesson.features.process, mean, scale)
    expected = Ridge(alpha=30.0).fit(table[rows], returns[rows], number[rows]).predict(table)
    apart = action - behaviour
    target = (returns - expected) / np.where(np.abs(apart) > 1e-3, apart, 1.0)
    return target, np.where(lesson.rows & (np.abs(apart) > 1e-3), number * apart**2, 0.0)


def ridge(strength: float, blocks: Sequence[str] = ()) -> Fit:
    """Weighted least squares, penalised by `strength`, on standardised features and the words of blocks."""

    def fit(lesson: Lesson, target: Floats, weight: Floats) -> Linear:
        from scipy.sparse import csr_matrix, hstack
        from sklearn.linear_model import Ridge

        rows = np.flatnonzero(weight > 0)
        mean, scale = mean_and_scale(lesson.features.process[rows])
        table = standardise(lesson.features.process[rows], mean, scale)
        present = [block for block in blocks if getattr(lesson.features, block) is not None]
        # A word's TF-IDF is at most 1; times 3, the penalty weighs on it as on a standardised number.
        words = [3 * getattr(lesson.features, block)[rows] for block in present]
        design = hstack([csr_matrix(table), *words]).tocsr() if words else table
        share = weight[rows] / weight[rows].mean()
        model = Ridge(alpha=strength, solver="lsqr" if words else "cholesky")
        model.fit(design, target[rows], sample_weight=share)
        coefficients = np.asarray(model.coef_, dtype=np.float64)
        start, by_block = len(mean), {}
        for block, block_words in zip(present, words, strict=True):
            by_block[block] = 3 * coefficients[start : start + block_words.shape[1]]
            start += block_words.shape[1]
        return Linear(mean, scale, coefficients[: len(mean)], by_block, float(model.intercept_))

    return fit


def boosting(
    trees: int = 30, leaf: float = 0.02, rate: float = 0.15, words: int = WORDS, depth: int = 3
) -> Fit:
    """Gradient boosting of small trees; a leaf holds at least the share `leaf` of the weight."""

    def fit(lesson: Lesson, target: Floats, weight: Floats) -> BoostedTrees:
        from sklearn.ensemble import GradientBoostingRegressor

        rows = _sample_rows(weight, lesson.seed)
        indices = select_words(lesson.features.last, rows, target, weight, words)
        table = dense_features(lesson.features, indices)[rows]
        model = GradientBoostingRegressor(
            n_estimators=trees,
            learning_rate=rate,
            max_depth=depth,
            min_samples_leaf=max(5, int(leaf * len(rows))),
            subsample=0.7,
            max_features=0.5,
            random_state=lesson.seed,
        )
        share = weight[rows] / weight[rows].mean()
        model.fit(table, target[rows], sample_weight=share)
        return _as_arrays(model, indices, rate)

    return fit


def _sample_rows(weight: Floats, seed: int) -> Ints:
    """The states with weight, or `MOST` drawn from them."""
    rows = np.flatnonzero(weight > 0)
    if len(rows) <= MOST:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, MOST, replace=False))


def select_words(
    words: Any, rows: Ints, target: Floats, weight: Floats, most: int, least: float = 0.0
) -> Ints:
    """Columns of the words (N, W) that covary most with the target, weighted, in standard errors.

    At most `most` of them, and none below `least` standard errors.
    """
    if words is None or not most:
        return np.zeros(0, dtype=np.int64)
    own = words[rows]
    share = weight[rows] / weight[rows].sum()
    apart = target[rows] - share @ target[rows]
    together = np.asarray(own.T @ (apart * share)).ravel()
    spread = np.sqrt(np.asarray(own.multiply(own).T @ share**2).ravel())
    strength = np.abs(together) / np.maximum(spread, 1e-12)
    best = np.argsort(-strength, kind="stable")[:most]
    enough = strength[best] >= least * np.sqrt(share @ apart**2)
    return np.sort(best[enough]).astype(np.int64)


def _as_arrays(model: Any, indices: Ints, rate: float) -> BoostedTrees:
    trees = [tree.tree_ for tree in model.estimators_[:, 0]]
    most = max(tree.node_count for tree in trees)

    def padded(values: Sequence[Any], fill: float, kind: type) -> Any:
        table = np.full((len(values), most), fill, dtype=kind)
        for row, line in enumerate(values):
            table[row, : len(line)] = line
        return table

    return BoostedTrees(
        feature=padded([tree.feature for tree in trees], -1, np.int64),
        threshold=padded([tree.threshold for tree in trees], 0.0, np.float64),
        left=padded([tree.children_left for tree in trees], 0, np.int64),
        right=padded([tree.children_right for tree in trees], 0, np.int64),
        value=padded([rate * tree.value[:, 0, 0] for tree in trees], 0.0, np.float64),
        chosen=indices,
        intercept=float(model.init_.constant_[0, 0]),
    )


def mean_and_scale(table: Floats) -> tuple[Floats, Floats]:
    spread = table.std(axis=0)
    return table.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)


def advantages(lesson: Lesson) -> tuple[Floats, Floats, Floats]:
    """The paper's A(s, human) (N,) from plain means over episodes, and the episodes of each choice (N,).

    A(s, a) = R(s, a) - the mean over both, with the cost from here on (Eq. 5, 6); with that of the whole
    episode, as released, it is the same.
    """
    woods = lesson.woods
    mean = (woods.returns - lesson.penalty * woods.human) / np.maximum(woods.leaves, 1)
    return (mean[:, 1] - mean[:, 0]) / 2, woods.leaves[:, 0], woods.leaves[:, 1]


def gradient(
    variant: Literal["paper", "released"] = "paper",
    entropy: float = ENTROPY,
    rounds: int = 300,
    rate: float = 0.05,
    decay: float = 1e-3,
) -> Learner:
    """Offline policy gradient of a logistic policy (Eq. 7, 8), by Adam over all states at once.

    w = clip(π/π_beh, 1 ± ε), as released clip(π/π_beh · n, 1 ± ε); no gradient through it.
    """

    def learn(lesson: Lesson) -> Policy:
        rows = np.flatnonzero(lesson.choices)
        value, *numbers = (column[rows] for column in advantages(lesson))
        mean, scale = mean_and_scale(lesson.features.process[rows])
        table = np.column_stack([np.ones(len(rows)), standardise(lesson.features.process[rows], mean, scale)])
        theta: Floats = np.zeros(table.shape[1])
        first: Floats = np.zeros(len(theta))
        second: Floats = np.zeros(len(theta))
        counts = [n if variant == "released" else np.ones(len(rows)) for n in numbers]
        for t in range(1, rounds + 1):
            pull = table.T @ slope(table @ theta, value, (counts[0], counts[1]), entropy) / len(rows)
            pull[1:] -= decay * theta[1:]
            first, second = 0.9 * first + 0.1 * pull, 0.999 * second + 0.001 * pull**2
            theta = theta + rate * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
        return Linear(mean, scale, theta[1:], {}, float(theta[0]))

    return learn


def slope(score: Floats, advantage: Floats, counts: tuple[Floats, Floats], entropy: float) -> Floats:
    """The derivative of Eq. 8 by the policy's log odds (N,), summed over both actions of a state."""
    human = 1 / (1 + np.exp(-np.clip(score, -30, 30)))
    weight = [
        np.clip(chance / BEHAVIOUR * n, 1 - EPSILON, 1 + EPSILON)
        for chance, n in zip((1 - human, human), counts, strict=True)
    ]
    # d log π(human) = 1 - π(human), d log π(agent) = -π(human); A(agent) = -A(human).
    derivative = weight[1] * advantage * (1 - human) + weight[0] * advantage * human
    return np.asarray(derivative - entropy * human * (1 - human) * np.clip(score, -30, 30))


def imitation(strength: float = 10.0) -> Learner:
    """Logistic regression on the better action of each state by plain means; ties are the agent's.

    `strength` divided by the number of states is scikit-learn's C. At 1 the penalty drowns twenty trees:
    made-up tasks of three seeds are solved to .02, .81 and .58 of the way, at 10 to .61, .74 and .80.
    """

    def learn(lesson: Lesson) -> Policy:
        from sklearn.linear_model import LogisticRegression

        rows = np.flatnonzero(lesson.choices)
        better = advantages(lesson)[0][rows] > 1e-12
        mean, scale = mean_and_scale(lesson.features.process[rows])
        if better.all() or not better.any():
            return Linear(mean, scale, np.zeros(len(mean)), {}, 1.0 if better.all() else -1.0)
        model = LogisticRegression(C=strength / len(rows), max_iter=1000)
        model.fit(standardise(lesson.features.process[rows], mean, scale), better)
        return Linear(mean, scale, np.asarray(model.coef_[0]), {}, float(model.intercept_[0]))

    return learn


def rule_list(lines: int = 2, conditions: int = 2) -> Learner:
    """Lines of conditions, added greedily by the reward on the training trees, until none adds any."""

    def learn(lesson: Lesson) -> Policy:
        options = _candidate_conditions(lesson)
        rule, best = NEVER, _mean_reward(lesson, NEVER)
        for _ in range(lines):
            line: tuple[Condition, ...] = ()
            longest, most = rule, best
            for _ in range(conditions):
                extensions = [Rule((*rule.lines, (*line, one))) for one in options if one not in line]
                values = [_mean_reward(lesson, one) for one in extensions]
                if not values or max(values) <= most + 1e-9:
                    break
                most, longest = max(values), extensions[int(np.argmax(values))]
                line = longest.lines[-1]
            if longest is rule:
                break
            rule, best = longest, most
        return rule

    return learn


def _mean_reward(lesson: Lesson, policy: Policy) -> float:
    trees = np.unique(lesson.woods.tree[lesson.rows])
    return float(lesson.woods.worth(policy.chance(lesson.features)).reward(lesson.penalty)[trees].mean())


def _candidate_conditions(lesson: Lesson) -> list[Condition]:
    """Conditions on process features: at least or at most a value between their quantiles."""
    options: list[Condition] = []
    for name in lesson.features.columns:
        values = np.unique(lesson.features.column(name)[lesson.choices])
        cuts = values if len(values) <= 8 else np.quantile(values, (0.2, 0.4, 0.6, 0.8))
        for low, high in pairwise(cuts):
            middle = float((low + high) / 2)
            options += [Condition(name, ">=", middle), Condition(name, "<=", middle)]
    return options
