"""What is estimated of a code: of two labels the share of the first, of several each one's, on a scale the
mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...annotation.statistics import Audit
from ...annotation.statistics.intervals import Floats, Ints
from ...annotation.statistics.strata import joined_labels
from ...schemas import Codebook
from ...schemas.metric import suffix


@dataclass(frozen=True)
class Quantity:
    """The share of the units that have a `label`, or without one the mean of a scale."""

    book: Codebook
    label: str | None

    @property
    def suffix(self) -> str:
        """Ends the name of a code whose quantity this is."""
        return suffix(self.one_of_several, is_mean=self.is_mean)

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of a scale."""
        return self.label is None

    @property
    def one_of_several(self) -> str | None:
        """The label, where there are more than two."""
        return None if self.book.binary else self.label

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value."""
        if not self.is_mean:
            return 0.0, 1.0
        numbers = [float(label) for label in self.book.labels]
        return min(numbers), max(numbers)

    @cached_property
    def places(self) -> Floats:
        """(labels,) the place of each label from 0 to 1."""
        if not self.is_mean:
            return np.array([float(label == self.label) for label in self.book.labels])
        return (np.array([float(label) for label in self.book.labels]) - self.bounds[0]) / self.reach

    @property
    def reach(self) -> float:
        """How far the bounds are apart."""
        low, high = self.bounds
        return high - low

    def value(self, place: float | None) -> float | None:
        """The value at a place from 0 to 1; None of None."""
        return None if place is None else self.bounds[0] + place * self.reach

    def of(self, answers: Ints) -> Ints:
        """Answers (...) as an audit has them: 1 for the label, 0 for others, negative ones as they are; on a
        scale the labels' own numbers."""
        if self.label is None:  # a scale
            return answers
        is_label = (answers == self.book.labels.index(self.label)).astype(np.int64)
        return np.where(answers >= 0, is_label, answers)

    def judged(self, audit: Audit, answers: Ints) -> Audit:
        """The audit with what a judge answered (N,).

        A judge of several labels is corrected by strata that are the same for each label of a code, so that
        its shares add up to 1.
        """
        if self.book.binary:
            return replace(audit, judge=self.of(answers))
        groups = joined_labels(answers, audit.labelled, len(self.places), on_scale=self.is_mean)
        score = np.where(answers >= 0, self.places[np.maximum(answers, 0)], np.nan) if self.is_mean else None
        return replace(audit, judge=self.of(answers), groups=groups, score=score)


def quantities(book: Codebook) -> tuple[Quantity, ...]:
    """What is estimated of each code of a codebook."""
    if book.binary:
        return (Quantity(book, book.positive),)
    if book.level != "nominal":
        return (Quantity(book, None),)
    return tuple(Quantity(book, label) for label in book.labels)
