"""Who acted where trajectories were merely logged, by all that an advisor sees: course, last step, question.

Of thousands of words only those tell that go with who acted or with what was earned (double selection;
Belloni, Chernozhukov and Hansen 2014). All is learnt without the questions that it is said of, so that no
question explains itself (Chernozhukov et al. 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...annotation.statistics.intervals import Floats, Ints
from .features import Seen
from .learners import WORDS, Rows, standard, telling
from .policies import BLOCKS, standardised
from .trees import Forest, folds

FOLDS = 5
STRENGTHS = (0.01, 0.1, 1.0)
"""Of the penalty, inverse; whichever foretells best who acted."""
TELLING = 2.0
"""Standard errors by which a word must go with who acted, or with what was earned."""
LEAST_CHANCE = 0.05
"""Nobody's choice is taken to be rarer than that."""


@dataclass(frozen=True, eq=False)
class Opening:
    """A fold of the questions: which (Q,) are held out, and the words (Q, W) that tell of the others."""

    held: Rows
    table: Floats


def openings(woods: Forest, features: Seen) -> list[Opening]:
    """What is known of each question before its first step, fold by fold."""
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


def behaviour(woods: Forest, features: Seen) -> Floats:
    """How likely a person acted in each state (N,), learnt from other questions."""
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
    """The states somebody acted in; of each state (N,) how often a person did, the mean earned, how often."""
    number = woods.leaves.sum(axis=1)
    divisor = np.maximum(number, 1)
    return np.flatnonzero(number), woods.leaves[:, 1] / divisor, woods.earned.sum(axis=1) / divisor, number


def _holdouts(woods: Forest) -> list[Rows]:
    """The questions (Q,) of each fold."""
    fold = folds(woods, FOLDS, np.random.default_rng(0))
    return [np.asarray(fold == number) for number in np.unique(fold)]


def _words(
    features: Seen, rows: Ints, targets: Sequence[Floats], weight: Floats, blocks: Sequence[str]
) -> Floats:
    """The words (N, W) of some blocks that go with any of the targets in these states."""
    columns = [np.zeros((len(features.process), 0))]
    for block in blocks:
        words = getattr(features, block)
        places = [telling(words, rows, target, weight, WORDS, TELLING) for target in targets]
        indices = np.unique(np.concatenate(places))
        if len(indices):
            columns.append(words[:, indices].toarray())
    return np.hstack(columns)


def _standardise_by(table: Floats, rows: Ints) -> Floats:
    return standardised(table, *standard(table[rows]))


def _chance(table: Floats, rows: Ints, leaves: Floats, strength: float) -> Floats:
    """Logistic regression of who acted on rows of a table, for all of it."""
    from sklearn.linear_model import LogisticRegression

    totals = leaves[rows].sum(axis=0)
    if not totals.all():
        return np.full(len(table), float(totals[1] > 0))
    design = np.vstack([table[rows], table[rows]])
    weight = np.concatenate([leaves[rows, 0], leaves[rows, 1]])
    labels = np.repeat([0, 1], len(rows))
    model = LogisticRegression(C=strength, max_iter=2000)
    model.fit(design[weight > 0], labels[weight > 0], weight[weight > 0])
    return np.asarray(model.predict_proba(table)[:, 1], dtype=np.float64)
