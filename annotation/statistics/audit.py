"""One code over one corpus: what the judge said of all units, and what people said of some."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .intervals import MISSING, Floats, Ints

UNCLEAR = -2  # was asked, and answered that it can't be told
ERROR = -3  # was asked, and gave no answer: a judge that failed, a person who skipped
FEW = 0.1
"""The share of units without an answer of the judge up to which a rate needs no human label among them."""
_ROUNDING = 1e-12  # of a variance
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Audit:
    """One code over N units: what is estimated is the share of 1, or the mean place on a scale.

    `human` (N,) is the label from 0 to 1 that people give a unit (the mean of its annotators' labels where
    there are several), UNCLEAR, ERROR where all who were asked skipped it, or MISSING where nobody was.
    `judge` (N,) is 1 for the code, another non-negative number for each other label, and UNCLEAR, ERROR or
    MISSING, each a stratum of its own; None where no judge ran. `inclusion` (N,) are the probabilities with
    which units were drawn for people, or could have been (None: equal; 0 or nan where that is not known of
    one that was not drawn), `clusters` (N,) their trajectories where units are smaller, `score` (N,) the
    judge's probability of 1 where it gives one (for PPI), `design` (N,) the strata that the sample took
    fixed numbers of, negative where they are not known.

    `groups` (N,) are strata to correct the judge by in place of its labels, the same where these are
    negative: `strata.joined_labels` of a judge with several labels. On a scale a label is its place from the
    least (0) to the greatest (1), for people and in `score`, and `spread` (N,) is the variance of the labels
    that a unit has from several people; None where labels are 0 or 1.

    `people` (N,) are how many people's labels a unit's is the mean of, 0 where that is settled; None: two's.
    `dispersion` (N,) is s² of what several people said of a unit, whether that has been settled since or not,
    NaN where there are no several; None: of the labels that are not settled.
    """

    human: Floats | Ints
    judge: Ints | None = None
    inclusion: Floats | None = None
    clusters: Ints | None = None
    score: Floats | None = None
    design: Ints | None = None
    groups: Ints | None = None
    spread: Floats | None = None
    people: Ints | None = None
    dispersion: Floats | None = None

    def __post_init__(self) -> None:
        n = len(self.human)
        for name in (field.name for field in fields(self)):
            values = getattr(self, name)
            if values is not None and len(values) != n:
                raise ValueError(f"`{name}` must have one value for each of {n} units, got {len(values)}")
        usable = (self.human >= 0) & (self.human <= 1)
        if not (usable | np.isin(self.human, (MISSING, UNCLEAR, ERROR))).all():
            raise ValueError("`human` must be in 0..1, MISSING (-1), UNCLEAR (-2) or ERROR (-3)")
        chances = self.drawn_with
        if chances is not None and not np.all((chances > 0) & (chances <= 1)):
            raise ValueError("`inclusion` must be probabilities above 0: a unit never drawn has no weight")

    @property
    def drawn_with(self) -> Floats | None:
        """(asked,) the inclusion probability of each unit that a person was asked about."""
        return None if self.inclusion is None else self.inclusion[self.human != MISSING]

    @property
    def labelled(self) -> Bools:
        """(N,) whether a person gave a usable label."""
        return self.human >= 0

    @property
    def labels(self) -> Floats:
        """(labelled,) what people say of the units that they labelled."""
        return self.human[self.labelled].astype(np.float64)

    @property
    def n_divided(self) -> int:
        """Labelled units on which people differ, so that one's label is not all there is to know of them."""
        return int((self._spreads > _ROUNDING).sum())

    @property
    def divided(self) -> bool:
        """Whether people differ on any unit."""
        return self.n_divided > 0

    @property
    def open_variance(self) -> Floats:
        """(labelled,) how far each label might vary had others of these people given it: s²/m of m people's.

        A single label has the mean s² of units with several that have the judge's same label, or where there
        are none of all; a settled one has none. Units that were settled since count for that mean: they are
        those on which people differed.
        """
        one, strata, people = self._dispersion, self.strata[self.labelled], self._people
        several = ~np.isnan(one)
        if not several.any():
            return np.zeros(len(people))
        one = np.where(several, one, 0.0)
        sums, weights = one * self.weights, several * self.weights
        _, of_unit = np.unique(strata, return_inverse=True)
        totals = np.bincount(of_unit, weights=weights)
        means = np.full(len(totals), sums.sum() / weights.sum())
        np.divide(np.bincount(of_unit, weights=sums), totals, out=means, where=totals > 0)
        result: Floats = np.where(people > 1, one, means[of_unit] * (people == 1)) / np.maximum(people, 1)
        return result

    @property
    def is_open(self) -> bool:
        """Whether others of these people might have given any unit another label."""
        return bool((self.open_variance > _ROUNDING).any())

    @property
    def between_people(self) -> float:
        """The share of the labels' variance that lies between people, not between units: labels of more
        units settle the rest of a corpus."""
        if not self.is_open:
            return 0.0
        strata, weights = self.sized_strata
        of_unit = strata[self.labelled]
        means = np.bincount(of_unit, weights * self.labels)[of_unit] / np.bincount(of_unit, weights)[of_unit]
        spread = float(((weights * (self.labels - means)) ** 2).sum())
        between = float((weights**2 * self.open_variance).sum())
        return between / max(between, spread)

    @property
    def _people(self) -> Ints:
        """(labelled,) how many people's labels each is the mean of."""
        return np.full(len(self.labels), 2) if self.people is None else self.people[self.labelled]

    @property
    def _spreads(self) -> Floats:
        """(labelled,) the variance of the labels that a unit has."""
        labels = self.labels
        return labels * (1 - labels) if self.spread is None else self.spread[self.labelled]

    @property
    def _dispersion(self) -> Floats:
        """(labelled,) s² of what several people said of a unit, NaN where there are no several."""
        if self.dispersion is not None:
            return self.dispersion[self.labelled]
        spreads, people = self._spreads, self._people
        result: Floats = np.where(people > 1, spreads * people / np.maximum(people - 1, 1), np.nan)
        return result

    @property
    def predicted(self) -> Floats:
        """(N,) what the judge says: its score, else 1 for the code and 0 for all else, a missing answer too.
        All 0 where no judge ran.

        A missing score is the mean of the others: labels correct the judge whatever number stands there."""
        if self.score is not None:
            is_known = ~np.isnan(self.score)
            return np.where(is_known, self.score, self.score[is_known].mean() if is_known.any() else 0.0)
        if self.judge is None:
            return np.zeros(len(self.human))
        is_one: Floats = (self.judge == 1).astype(np.float64)
        return is_one

    @property
    def on_scale(self) -> bool:
        """Whether a label is a place on a scale."""
        return self.spread is not None

    @property
    def strata(self) -> Ints:
        """(N,) the judge's label, or the group of its labels; all the same where no judge ran."""
        if self.judge is None:
            return np.zeros(len(self.human), dtype=np.int64)
        return self.judge if self.groups is None else self.groups

    @property
    def weights(self) -> Floats:
        """(labelled,) design weights 1/π."""
        labelled = self.labelled
        return np.ones(int(labelled.sum())) if self.inclusion is None else 1 / self.inclusion[labelled]

    @property
    def clustered(self) -> bool:
        """Whether units lie within several trajectories. Of one alone there is no other to be unlike it."""
        return self.clusters is not None and 1 < len(np.unique(self.clusters)) < len(self.clusters)

    @property
    def stratified(self) -> bool:
        """Whether the sample took fixed numbers of several strata, all known, with a label in each.

        Where one has none, or where it is not known how many units it holds, the strata tell nothing.
        """
        if self.design is None or not (self.design >= 0).all():
            return False
        strata = np.unique(self.design)
        return len(strata) > 1 and np.array_equal(strata, np.unique(self.design[self.labelled]))

    @property
    def sized_strata(self) -> tuple[Ints, Floats]:
        """(N,) strata of known sizes, numbered from 0, and (labelled,) weights within them: the judge's
        labels, or without a judge those that the sample took fixed numbers of.

        One label tells nothing of how units of a stratum differ: strata with no more of several units are
        joined (Cochran 1977, 5A.12), a single such with that of the fewest labels, and count as apart by
        their weights.
        """
        labelled, weights = self.labelled, self.weights
        if self.judge is not None or self.design is None or not self.stratified:
            return np.unique(self.strata, return_inverse=True)[1], weights
        _, strata, sizes = np.unique(self.design, return_inverse=True, return_counts=True)
        of_unit = strata[labelled]
        counts = np.bincount(of_unit)
        few = (counts == 1) & (sizes > 1)
        if few.sum() == 1:
            few[np.argmin(np.where(few, len(self.human), counts))] = True
        expanded = weights * (sizes / np.bincount(of_unit, weights=weights))[of_unit]
        _, joined = np.unique(np.where(few[strata], -1, strata), return_inverse=True)
        return joined, np.where(few[of_unit], expanded, weights)

    @property
    def even_within_strata(self) -> bool:
        """Whether units with the same judge label were equally likely to be drawn, so far as that is known of
        them: those that were drawn may be equally likely by chance."""
        if self.inclusion is None:
            return True
        is_known = self.inclusion > 0  # NaN is not
        chance, strata = self.inclusion[is_known], self.strata[is_known]
        return all(np.ptp(chance[strata == stratum]) < 1e-9 for stratum in np.unique(strata))

    @property
    def unchecked(self) -> Bools:
        """(N,) units that the judge found unclear or failed on, of a kind that no person labelled; none where
        they are more than FEW of all, or where nothing else was labelled."""
        lacking = [kind for kind in (UNCLEAR, ERROR) if not (self.labelled & (self.strata == kind)).any()]
        units: Bools = np.isin(self.strata, lacking)
        return units & bool(self.labelled.any() and units.sum() <= FEW * len(units))

    def where(self, units: Bools) -> Audit:
        """The same for some of the units."""

        def some(values: Any) -> Any:
            return None if values is None else values[units]

        return Audit(*(some(getattr(self, field.name)) for field in fields(self)))

    @property
    def empty_stratum(self) -> str | None:
        """Why nothing can be said of a judge label that no person checked."""
        if not self.labelled.any():
            return "no human label"
        for stratum in np.unique(self.strata):
            units = self.strata == stratum
            if not self.labelled[units].any():
                n = int(units.sum())
                which = _STRATA[int(stratum)] if self.groups is None or stratum < 0 else _LABELLED
                return f"no human label {'on' if n == 1 else 'among'} the {_units(n)} {which}"
        return None


_STRATA = {
    1: "that the judge marked",
    0: "that the judge did not mark",
    UNCLEAR: "that the judge found unclear",
    ERROR: "on which the judge failed",
    MISSING: "without an answer of the judge",
}
_LABELLED = "that the judge labelled"


def _units(n: int) -> str:
    return "one unit" if n == 1 else f"{n:,} units"


def any_mode(labels: Ints) -> Ints:
    """The label (units,) of a category from those of its modes (units, modes): 1 where any mode is present.

    A category's rate is the rate of this union, never a sum. A unit counts only where all its modes were
    answered, else it is what it lacks: UNCLEAR, ERROR or MISSING, in this order. Were one present mode
    enough, units that show the category would be counted and those that do not be left out.
    """
    lacking = [(labels == code).any(1) for code in (UNCLEAR, ERROR, MISSING)]
    result = (labels == 1).any(1).astype(np.int64)
    return np.select(lacking, [UNCLEAR, ERROR, MISSING], result).astype(np.int64)
