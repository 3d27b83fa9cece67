"""The chance that a person acted in a state, where trajectories were merely logged (a propensity score).

It is estimated from all that an advisor sees: course, last step, question. Of thousands of words only those
that go with who acted or with what was earned are used (double selection; Belloni, Chernozhukov and Hansen
2014). No estimate is learnt from the questions that it is for (cross-fitting; Chernozhukov et al. 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...annotation.statistics.intervals import Floats, Ints
from .features import StateFeatures
from .learners import WORDS, Rows, mean_and_scale, select_words
from .policies import BLOCKS, standardise
from .states import AGENT, HUMAN
from .trees import Forest, folds

FOLDS = 5
STRENGTHS = (0.01, 0.1, 1.0)
"""Inverse strengths of the penalty; the one that predicts best who acted is used."""
TELLING = 2.0
"""Standard errors by which a word must covary with who acted, or with what was earned."""
LEAST_CHANCE = 0.05
"""Estimated chances of either choice are no smaller."""


@dataclass(frozen=True, eq=False)
class Opening:
    """A fold: which questions (Q,) are held out, and the question words (Q, W) selected on the others."""

    holdout: Rows
    table: Floats


def openings(woods: Forest, features: StateFeatures) -> list[Opening]:
    """The folds of the questions, with the standardised words that tell of each before its first step."""
    rows, share, reward, number = _log_statistics(woods)
    result = []
    for holdout in _holdouts(woods):
        train_rows = rows[~holdout[woods.tree[rows]]]
        if not len(train_rows):
            continue
        words = _words(features, train_rows, (share, reward), number, ("question",))
        table = _standardise_by(words[woods.roots], np.flatnonzero(~holdout))
        result.append(Opening(holdout, table))
    return result


def behaviour(woods: Forest, features: StateFeatures) -> Floats:
    """The chance (N,) that a person acted in each state, learnt from other questions."""
    rows, share, reward, number = _log_statistics(woods)
    chances: Floats = np.full((len(STRENGTHS), len(number)), 0.5)
    for holdout in _holdouts(woods):
        out = holdout[woods.tree]
        train_rows = rows[~out[rows]]
        if not len(train_rows):
            continue
        words = _words(features, train_rows, (share, reward), number, BLOCKS[1:])
        table = _standardise_by(np.hstack([features.process, words]), train_rows)
        for place, strength in enumerate(STRENGTHS):
            chances[place, out] = _chance(table, train_rows, woods.leaves, strength)[out]
    chances = np.clip(chances, LEAST_CHANCE, 1 - LEAST_CHANCE)
    surprise = -np.log(1 - chances) @ woods.leaves[:, 0] - np.log(chances) @ woods.leaves[:, 1]
    return np.asarray(chances[int(np.argmin(surprise))])


def _log_statistics(woods: Forest) -> tuple[Ints, Floats, Floats, Floats]:
    """Indices of the states somebody acted in; of each state (N,) the share of a person's actions, the mean
    reward and the number of actions."""
    number = woods.leaves.sum(axis=1)
    divisor = np.maximum(number, 1)
    return np.flatnonzero(number), woods.leaves[:, 1] / divisor, woods.returns.sum(axis=1) / divisor, number


def _holdouts(woods: Forest) -> list[Rows]:
    """The questions (Q,) of each fold."""
    fold = folds(woods, FOLDS, np.random.default_rng(0))
    return [np.asarray(fold == number) for number in np.unique(fold)]


def _words(
    features: StateFeatures, rows: Ints, targets: Sequence[Floats], weight: Floats, blocks: Sequence[str]
) -> Floats:
    """The words (N, W) of some blocks that go with any of the targets in these states."""
    columns = [np.zeros((len(features.process), 0))]
    for block in blocks:
        words = getattr(features, block)
        places = [select_words(words, rows, target, weight, WORDS, TELLING) for target in targets]
        indices = np.unique(np.concatenate(places))
        if len(indices):
            columns.append(words[:, indices].toarray())
    return np.hstack(columns)


def _standardise_by(table: Floats, rows: Ints) -> Floats:
    return standardise(table, *mean_and_scale(table[rows]))


def _chance(table: Floats, rows: Ints, leaves: Floats, strength: float) -> Floats:
    """The chance (N,) of a person by logistic regression on some rows of a table (N, P)."""
    from sklearn.linear_model import LogisticRegression

    totals = leaves[rows].sum(axis=0)
    if not totals.all():
        return np.full(len(table), float(totals[1] > 0))
    agent, human = (rows[leaves[rows, actor] > 0] for actor in (AGENT, HUMAN))
    design = table[np.concatenate([agent, human])]
    weight = np.concatenate([leaves[agent, AGENT], leaves[human, HUMAN]])
    labels = np.repeat([AGENT, HUMAN], [len(agent), len(human)])
    model = LogisticRegression(C=strength, max_iter=2000)
    model.fit(design, labels, weight)
    return np.asarray(model.predict_proba(table)[:, 1], dtype=np.float64)
