"""Policies: for each state the chance that a person is called. Rules of one line, and learnt models.

All are made of names and arrays, so that a file of one holds nothing that could run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from ...annotation.statistics.intervals import Floats, Ints
from .features import StateFeatures

Kind = Literal["baseline", "rule", "learnt", "oracle"]
FARTHEST = 4.0
EACH = 20
"""Steps that each have rules of their own."""
BLOCKS = ("process", "last", "question")
"""What a model may look at: numbers about the course, words of the last step, words of the question."""


class Policy(Protocol):
    """Says for each of N states how likely a person is called."""

    def chance(self, features: StateFeatures) -> Floats:
        """(N,), between 0 and 1."""
        ...


@dataclass(frozen=True)
class Condition:
    """A process feature, and what it must be: at least, at most, or exactly a value."""

    feature: str
    relation: Literal[">=", "<=", "="]
    value: float

    def holds(self, features: StateFeatures) -> Any:
        """(N,) of booleans."""
        column = features.column(self.feature)
        if self.relation == "=":
            return column == self.value
        return column >= self.value if self.relation == ">=" else column <= self.value

    def __str__(self) -> str:
        relation = {">=": "at least", "<=": "at most", "=": "is"}[self.relation]
        return f"{self.feature} {relation} {self.value:g}"


@dataclass(frozen=True)
class Rule:
    """A person is called with `odds` where all conditions of any line hold."""

    lines: tuple[tuple[Condition, ...], ...]
    odds: float = 1.0

    def chance(self, features: StateFeatures) -> Floats:
        """1 (or the odds) where a line holds, else 0."""
        calls = np.zeros(len(features.process), dtype=bool)
        for line in self.lines:
            holds = np.ones(len(calls), dtype=bool)
            for condition in line:
                holds &= condition.holds(features)
            calls |= holds
        return np.asarray(calls * self.odds, dtype=np.float64)

    def __str__(self) -> str:
        text = "; or ".join(" and ".join(map(str, line)) or "always" for line in self.lines) or "never"
        return text if self.odds == 1 or not self.lines else f"with a chance of {self.odds:g}: {text}"


@dataclass(frozen=True, eq=False)
class Linear:
    """A weighted sum of standardised features and of words; a person is called where it is positive."""

    mean: Floats
    scale: Floats
    process: Floats
    words: Mapping[str, Floats] = field(default_factory=dict)
    """Block (`last`, `question`) -> the weights of its words."""
    intercept: float = 0.0

    def score(self, features: StateFeatures) -> Floats:
        """(N,)."""
        total = standardise(features.process, self.mean, self.scale) @ self.process + self.intercept
        for block, weights in self.words.items():
            words = getattr(features, block)
            if words is not None:
                total = total + words @ weights
        return np.asarray(total, dtype=np.float64)

    def chance(self, features: StateFeatures) -> Floats:
        """1 where the score is positive, else 0."""
        return np.asarray(self.score(features) > 0, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """A sum of small regression trees over process features and some words, as plain arrays (T, nodes)."""

    feature: Ints
    """-1 in a leaf."""
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats
    chosen: Ints
    """Words of the last step that are looked at, by their place in its vocabulary."""
    intercept: float = 0.0

    def score(self, features: StateFeatures) -> Floats:
        """(N,)."""
        table = dense_features(features, self.chosen)
        total = np.full(len(table), self.intercept)
        rows: Ints = np.arange(len(table))
        for tree in range(len(self.feature)):
            node: Ints = np.zeros(len(table), dtype=np.int64)
            while (inner := self.feature[tree, node] >= 0).any():
                column = np.maximum(self.feature[tree, node], 0)
                # scikit-learn compares features as 32-bit floats.
                goes_left = table[rows, column].astype(np.float32) <= self.threshold[tree, node]
                step = np.where(goes_left, self.left[tree, node], self.right[tree, node])
                node = np.where(inner, step, node)
            total += self.value[tree, node]
        return np.asarray(total)

    def chance(self, features: StateFeatures) -> Floats:
        """1 where the score is positive, else 0."""
        return np.asarray(self.score(features) > 0, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The mean of several models of the gain."""

    models: tuple[Linear | BoostedTrees, ...]

    def score(self, features: StateFeatures) -> Floats:
        """(N,)."""
        return np.asarray(np.mean([model.score(features) for model in self.models], axis=0))

    def chance(self, features: StateFeatures) -> Floats:
        """1 where the score is positive, else 0."""
        return np.asarray(self.score(features) > 0, dtype=np.float64)


Model = Linear | BoostedTrees | Ensemble


def standardise(table: Floats, mean: Floats, scale: Floats) -> Floats:
    """Standardised features, clipped at ±4: what lies further out is as good as unseen."""
    result: Floats = table - mean
    result /= scale
    return np.asarray(np.clip(result, -FARTHEST, FARTHEST, out=result))


def dense_features(features: StateFeatures, indices: Ints) -> Floats:
    """Process features and some words of the last step as one dense table (N, P + W)."""
    if not len(indices) or features.last is None:
        return np.hstack([features.process, np.zeros((len(features.process), len(indices)))])
    return np.hstack([features.process, features.last[:, indices].toarray()])


ORACLE = "oracle"
"""The name of the best choice in hindsight; no policy may have it."""
NEVER = Rule(())
ALWAYS = Rule(((),))
BASELINES: Mapping[str, Rule] = {
    "agent-only": NEVER,
    "human-only": ALWAYS,
    "random": Rule(((),), odds=0.5),
}


def rules(cap: int) -> dict[str, Rule]:
    """The rules of one line for episodes of at most `cap` steps.

    Of long episodes not every step has rules of its own: the more rules are tried, the more one of them is
    best by chance.
    """

    def at_least(feature: str, value: float = 1.0) -> Condition:
        return Condition(feature, ">=", value)

    result: dict[str, Rule] = {}
    for k in _places(cap):
        result[f"step {k}"] = Rule(((Condition("step", "=", k),),))
        if k > 1:
            result[f"from step {k} on"] = Rule(((at_least("step", k),),))
        if 1 < k < cap:
            result[f"up to step {k}"] = Rule(((Condition("step", "<=", k),),))
    once = Condition("human steps", "<=", 0)
    result["after a failed step"] = Rule(((at_least("last: failed"),),))
    result["after the first failed step"] = Rule(((at_least("last: failed"), once),))
    result["after two failed steps in a row"] = Rule(((at_least("failed in a row", 2),),))
    result["once a step has failed"] = Rule(((at_least("failed steps"),),))
    result["after a repeated action"] = Rule(((at_least("last: repeated"),),))
    result["after a failed or repeated step"] = Rule(
        ((at_least("last: failed"),), (at_least("last: repeated"),))
    )
    result["every second step"] = Rule(((at_least("agent steps in a row"),),))
    return result


def _places(cap: int) -> list[int]:
    """The first `EACH` steps, and beyond them each that is about a quarter later than the one before."""
    places = list(range(1, EACH + 1))
    while places[-1] < cap:
        places.append(places[-1] * 5 // 4)
    return [place for place in places if place <= cap]


def blocks_of(policy: Policy) -> Sequence[str]:
    """The blocks of features that a policy looks at."""
    if isinstance(policy, Ensemble):
        return tuple(dict.fromkeys(block for model in policy.models for block in blocks_of(model)))
    if isinstance(policy, Linear):
        return ("process", *policy.words)
    return ("process", "last") if isinstance(policy, BoostedTrees) and len(policy.chosen) else ("process",)
