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


def openings(woods: Forest, seen: Seen) -> list[Opening]:
    """What is known of each question before its first step, fold by fold."""
    rows, acted, earned, number = _logged(woods)
    made = []
    for held in _held(woods):
        known = rows[~held[woods.tree[rows]]]
        if not len(known):
            continue
        words = _words(seen, known, (acted, earned), number, ("question",))
        table = _standardised(words[woods.roots], np.flatnonzero(~held))
        made.append(Opening(held, table))
    return made


def behaviour(woods: Forest, seen: Seen) -> Floats:
    """How likely a person acted in each state (N,), learnt from other questions."""
    rows, acted, earned, number = _logged(woods)
    chances: Floats = np.full((len(STRENGTHS), len(number)), 0.5)
    for held in _held(woods):
        out = held[woods.tree]
        known = rows[~out[rows]]
        if not len(known):
            continue
        words = _words(seen, known, (acted, earned), number, BLOCKS[1:])
        table = _standardised(np.hstack([seen.process, words]), known)
        for place, strength in enumerate(STRENGTHS):
            chances[place, out] = _chance(table, known, woods.leaves, strength)[out]
    chances = np.clip(chances, LEAST_CHANCE, 1 - LEAST_CHANCE)
    surprise = -np.log(1 - chances) @ woods.leaves[:, 0] - np.log(chances) @ woods.leaves[:, 1]
    return np.asarray(chances[int(np.argmin(surprise))])


def _logged(woods: Forest) -> tuple[Ints, Floats, Floats, Floats]:
    """The states somebody acted in; of each state (N,) how often a person did, the mean earned, how often."""
    number = woods.leaves.sum(axis=1)
    many = np.maximum(number, 1)
    return np.flatnonzero(number), woods.leaves[:, 1] / many, woods.earned.sum(axis=1) / many, number


def _held(woods: Forest) -> list[Rows]:
    """The questions (Q,) of each fold."""
    fold = folds(woods, FOLDS, np.random.default_rng(0))
    return [np.asarray(fold == number) for number in np.unique(fold)]


def _words(
    seen: Seen, rows: Ints, targets: Sequence[Floats], weight: Floats, blocks: Sequence[str]
) -> Floats:
    """The words (N, W) of some blocks that go with any of the targets in these states."""
    columns = [np.zeros((len(seen.process), 0))]
    for block in blocks:
        words = getattr(seen, block)
        places = [telling(words, rows, target, weight, WORDS, TELLING) for target in targets]
        chosen = np.unique(np.concatenate(places))
        if len(chosen):
            columns.append(words[:, chosen].toarray())
    return np.hstack(columns)


def _standardised(table: Floats, rows: Ints) -> Floats:
    return standardised(table, *standard(table[rows]))


def _chance(table: Floats, rows: Ints, leaves: Floats, strength: float) -> Floats:
    """Logistic regression of who acted on rows of a table, for all of it."""
    from sklearn.linear_model import LogisticRegression

    taken = leaves[rows].sum(axis=0)
    if not taken.all():
        return np.full(len(table), float(taken[1] > 0))
    design = np.vstack([table[rows], table[rows]])
    weight = np.concatenate([leaves[rows, 0], leaves[rows, 1]])
    acted = np.repeat([0, 1], len(rows))
    model = LogisticRegression(C=strength, max_iter=2000)
    model.fit(design[weight > 0], acted[weight > 0], weight[weight > 0])
    return np.asarray(model.predict_proba(table)[:, 1], dtype=np.float64)
