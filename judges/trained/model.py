"""What was learnt of one code: a linear model on words and process features, and those of the folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .features import Features

WORDS: dict[str, Any] = {"ngram_range": (1, 2), "token_pattern": r"\w+|\?|!"}
"""How texts are cut into words."""
Answer = tuple[str, float | None]
"""A label with its probability."""


@dataclass(frozen=True, eq=False)
class Weights:
    """What some examples teach; columns are terms, then process features. One label alone has no weights.

    A label is chosen as if all were equally frequent, else nobody would ever hear of a rare one. Its
    probability is that of units like the examples: softmax(slope · log score + shifts), fitted to what was
    said of examples that were held out (Platt 1999).
    """

    idf: Any
    """(terms,), 0 for a term that the examples lack."""
    labels: list[str]
    coef: Any
    """(labels, columns); of two labels a single row, for the second."""
    intercept: Any
    """(labels,) or (1,)."""
    slope: float = 1.0
    shifts: Any = 0.0
    """(labels,), or one for all."""

    def scores(self, table: Any) -> Any:
        """(n, labels), the logarithms of scores that sum to 1, for more than one label."""
        import numpy as np
        from scipy.special import log_softmax

        sums = table @ self.coef.T + self.intercept
        if len(self.labels) == 2:
            sums = np.hstack([np.zeros_like(sums), sums])
        return log_softmax(sums, axis=1)

    def answers(self, scores: Any) -> list[Answer]:
        """The label with the highest score, and its probability."""
        from scipy.special import softmax

        best, chances = scores.argmax(axis=1), softmax(self.slope * scores + self.shifts, axis=1)
        return [(self.labels[place], float(row[place])) for place, row in zip(best, chances, strict=True)]


@dataclass(frozen=True, eq=False)
class Model:
    """The weights of all examples, and for each fold those of the others, over the same columns."""

    terms: list[str]
    process: list[str]
    whole: Weights
    folds: tuple[Weights, ...]
    fold_of: Mapping[str, int]
    """What was held out together (an instance, a trajectory or a unit) -> the fold that has not seen it."""

    def predict(self, inputs: Sequence[Features], names: Sequence[Sequence[str]] = ()) -> list[Answer]:
        """The label of each unit with its probability, by weights that have not seen any of its `names`."""
        if not inputs:
            return []
        counts = self._words.transform([one.text for one in inputs])
        process = self._process.transform([one.process for one in inputs])
        folds = [self._fold(own) for own in names] or [None] * len(inputs)
        answers: list[Answer] = [("", None)] * len(inputs)
        for fold in set(folds):
            rows = [row for row, own in enumerate(folds) if own == fold]
            weights = self.whole if fold is None else self.folds[fold]
            for row, answer in zip(rows, answers_of(weights, counts[rows], process[rows]), strict=True):
                answers[row] = answer
        return answers

    def _fold(self, names: Sequence[str]) -> int | None:
        return next((self.fold_of[name] for name in names if name in self.fold_of), None)

    @cached_property
    def _words(self) -> Any:
        from sklearn.feature_extraction.text import CountVectorizer

        return CountVectorizer(**WORDS, vocabulary={term: place for place, term in enumerate(self.terms)})

    @cached_property
    def _process(self) -> Any:
        from sklearn.feature_extraction import DictVectorizer

        vectorizer = DictVectorizer()
        vectorizer.feature_names_ = self.process
        vectorizer.vocabulary_ = {name: place for place, name in enumerate(self.process)}
        return vectorizer


def answers_of(weights: Weights, counts: Any, process: Any) -> list[Answer]:
    """What weights say of units, given how often each term stands in them and their process features."""
    if len(weights.labels) == 1:
        return [(weights.labels[0], None)] * counts.shape[0]
    return weights.answers(weights.scores(table(counts, process, weights.idf)))


def table(counts: Any, process: Any, idf: Any) -> Any:
    """Sparse (n, columns): TF-IDF with sublinear counts, of length 1, beside process features."""
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfTransformer

    transformer = TfidfTransformer(sublinear_tf=True)
    transformer.idf_ = idf
    words = transformer.transform(counts)
    words.eliminate_zeros()
    return hstack([words, process]).tocsr()
