"""Learning one code from labelled units, and what is said of each by weights that had not seen its instance.

Runs of one instance of a task are alike, and so are units of one trajectory: a judge that has seen one of
them is better at the others than it is anywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .features import Features
from .model import WORDS, Answer, Model, Weights, answers_of, table

FOLDS = 5
FEWEST = 8
"""Labelled units of a code that are needed at the least."""
TERMS = 50_000
"""How many of the most frequent terms are used."""
ANY = "word"
"""A term to stand in where no text has any."""
UNSEEN = -5.0
"""The log score of a label that a fold's examples lack."""


@dataclass(frozen=True)
class Example:
    """A unit with the label to be learnt; `unit` is what `name_of` calls it, `instance` that of which its
    trajectory is a run: where the log names none, the trajectory."""

    features: Features
    label: str
    unit: str
    trajectory: str
    instance: str


@dataclass(frozen=True, eq=False)
class Fit:
    """The model of a code, and what was said of each example while what `held_out` names was held out."""

    model: Model
    held_out: str
    answers: list[Answer]


def why_nothing(examples: Sequence[Example]) -> str | None:
    """Why nothing can be learnt from examples; None where something can."""
    labels = {example.label for example in examples}
    if len(labels) < 2:
        return f"all labels are {next(iter(labels), 'missing')}"
    if len(examples) < FEWEST:
        return f"{len(examples)} labelled units, at least {FEWEST} are needed"
    return None


def learn(examples: Sequence[Example]) -> Fit:
    """A model of one code; ValueError where examples teach nothing."""
    import numpy as np

    if reason := why_nothing(examples):
        raise ValueError(reason)
    lesson = Lesson.of(examples)
    held_out, groups = _groups(examples)
    fold_of = _folds(groups)
    fold = np.array([fold_of[group] for group in groups])
    holdouts = [fold == number for number in range(max(fold) + 1)]
    parts = [lesson.fit(np.flatnonzero(~holdout)) for holdout in holdouts]
    scores = np.zeros((len(examples), len(lesson.names)))
    for part, holdout in zip(parts, holdouts, strict=True):
        scores[holdout] = lesson.scores(part, np.flatnonzero(holdout))
    # The probabilities of a fold are fitted to the others' labels alone, too.
    parts = [
        lesson.calibrated(part, scores, np.flatnonzero(~holdout))
        for part, holdout in zip(parts, holdouts, strict=True)
    ]
    every = np.arange(len(examples))
    whole = lesson.calibrated(lesson.fit(every), scores, every)
    answers: list[Answer] = [("", None)] * len(examples)
    for part, holdout in zip(parts, holdouts, strict=True):
        rows = np.flatnonzero(holdout)
        for row, answer in zip(rows, lesson.answers(part, rows), strict=True):
            answers[row] = answer
    if held_out != "unit":  # a log may be read again with another instance
        fold_of |= {one.trajectory: fold_of[group] for one, group in zip(examples, groups, strict=True)}
    return Fit(lesson.model(whole, parts, fold_of), held_out, answers)


def _groups(examples: Sequence[Example]) -> tuple[str, list[str]]:
    """What is held out together, the widest of which there are several, and the name of each example's."""
    instances, trajectories = (
        [getattr(one, kind) for one in examples] for kind in ("instance", "trajectory")
    )
    if len(set(instances)) > 1:
        return "instance" if len(set(instances)) < len(set(trajectories)) else "trajectory", instances
    if len(set(trajectories)) > 1:
        return "trajectory", trajectories
    return "unit", [one.unit for one in examples]


def _folds(groups: Sequence[str]) -> dict[str, int]:
    """The fold of each group; groups of many examples are spread over folds."""
    from sklearn.model_selection import GroupKFold

    folds = GroupKFold(n_splits=min(FOLDS, len(set(groups)))).split(groups, groups=groups)
    return {groups[row]: number for number, (_, rows) in enumerate(folds) for row in rows}


@dataclass(frozen=True, eq=False)
class Lesson:
    """Examples as numbers, counted once however many models learn from some of them."""

    terms: list[str]
    counts: Any
    """Sparse, (examples, terms): how often each stands in the text."""
    process: list[str]
    features: Any
    """Sparse, (examples, process features)."""
    labels: list[str]
    """(examples,)."""
    names: list[str]
    """The distinct labels, in order."""

    @classmethod
    def of(cls, examples: Sequence[Example]) -> Lesson:
        """Of all examples."""
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.feature_extraction.text import CountVectorizer

        words = CountVectorizer(**WORDS).fit([example.features.text for example in examples] + [ANY])
        process = DictVectorizer()
        features = process.fit_transform([example.features.process for example in examples])
        labels = [example.label for example in examples]
        return cls(
            [str(term) for term in words.get_feature_names_out()],
            words.transform(example.features.text for example in examples),
            [str(name) for name in process.feature_names_],
            features,
            labels,
            sorted(set(labels)),
        )

    def fit(self, rows: Any) -> Weights:
        """The weights that the examples in these rows teach, over all columns."""
        import numpy as np
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.linear_model import LogisticRegression

        often = np.asarray(self.counts[rows].sum(axis=0)).ravel()
        is_used = often > 0
        is_used[np.argsort(-often, kind="stable")[TERMS:]] = False
        idf = np.where(is_used, TfidfTransformer().fit(self.counts[rows]).idf_, 0.0)
        labels = [self.labels[row] for row in rows]
        if len(set(labels)) < 2:
            columns = len(self.terms) + len(self.process)
            return Weights(idf, labels[:1], np.zeros((0, columns)), np.zeros(0))
        linear = LogisticRegression(class_weight="balanced", max_iter=5000, C=4.0, solver="newton-cg")
        linear.fit(table(self.counts[rows], self.features[rows], idf), labels)
        own_labels = [str(label) for label in linear.classes_]
        return Weights(idf, own_labels, linear.coef_, linear.intercept_)

    def answers(self, weights: Weights, rows: Any) -> list[Answer]:
        """What weights say of the examples in these rows."""
        return answers_of(weights, self.counts[rows], self.features[rows])

    def scores(self, weights: Weights, rows: Any) -> Any:
        """(rows, names): the log score of each label there is."""
        import numpy as np

        scores = np.full((len(rows), len(self.names)), UNSEEN)
        columns = [self.names.index(label) for label in weights.labels]
        if len(columns) == 1:
            scores[:, columns] = 0.0
        else:
            scores[:, columns] = weights.scores(table(self.counts[rows], self.features[rows], weights.idf))
        return scores

    def calibrated(self, weights: Weights, scores: Any, rows: Any) -> Weights:
        """Weights whose probabilities fit what was said of these rows, of which the weights have the labels.

        `scores` are those of all examples, held out. A prior of weight 1 is that slopes are 1, and shifts the
        logarithms of the labels' frequencies.
        """
        import numpy as np
        from scipy.optimize import minimize
        from scipy.special import log_softmax, softmax

        count = len(weights.labels)
        if count < 2:
            return weights
        own = scores[np.ix_(rows, [self.names.index(label) for label in weights.labels])]
        is_label = np.array([[self.labels[row] == label for label in weights.labels] for row in rows])
        often = is_label.sum(axis=0) + 0.5
        prior = np.concatenate([[1.0], np.log(often / often.sum())])

        def loss(numbers: Any) -> tuple[float, Any]:
            sums = numbers[0] * own + numbers[1:]
            excess = softmax(sums, axis=1) - is_label
            slope = np.concatenate([[(excess * own).sum()], excess.sum(axis=0)]) + numbers - prior
            return -log_softmax(sums, axis=1)[is_label].sum() + ((numbers - prior) ** 2).sum() / 2, slope

        bounds = [(0.0, None)] + [(None, None)] * count
        numbers = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=bounds).x
        return replace(weights, slope=float(numbers[0]), shifts=numbers[1:])

    def model(self, whole: Weights, folds: Sequence[Weights], fold_of: dict[str, int]) -> Model:
        """The model of these weights, without terms that none of them uses."""
        import numpy as np

        is_used = np.any([one.idf > 0 for one in (whole, *folds)], axis=0)
        is_used[0] |= not is_used.any()  # a vocabulary must not be empty
        columns = np.concatenate([np.flatnonzero(is_used), len(self.terms) + np.arange(len(self.process))])

        def part(one: Weights) -> Weights:
            return replace(one, idf=one.idf[is_used], coef=one.coef[:, columns])

        terms = [term for term, is_own in zip(self.terms, is_used, strict=True) if is_own]
        return Model(terms, self.process, part(whole), tuple(map(part, folds)), fold_of)
