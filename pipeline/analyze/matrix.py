"""Ratings out of the store as matrices: what each rater said of each unit under one code."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics.audit import ERROR, UNCLEAR
from ...annotation.statistics.intervals import MISSING, Floats, Ints
from ...schemas import GOLD, Codebook
from .. import codebooks
from ..errors import UsageError
from ..store import Store
from ..store.queries.groupings import keys_of
from .designs import Design, Drawing, design

Unit = tuple[str, int | None]
T = TypeVar("T", bound=Hashable)
OUTSIDE = "labelled units outside the samples, unweighted"
"""The population of units that people labelled though no sample holds them."""


@dataclass(frozen=True, eq=False)
class Population:
    """Units (units,) that a figure stands for, in words, and their design weights 1/π where they differ."""

    name: str
    units: NDArray[np.bool_]
    weights: Floats | None


@dataclass(frozen=True, eq=False)
class Rated:
    """One code over the units of its codebook.

    `matrix` (units, raters) holds indices of the codebook's labels, or MISSING, UNCLEAR, ERROR. `probability`
    has the same shape and holds what a rater gave its label, nan where it gave none. A unit is the `event`
    (units,) of a `trajectory` (units,), a place in `ids`; −1 is all of a trajectory. `instance` (ids,)
    numbers what trajectories are runs of: an instance of a task, else each its own. `design` tells how units
    were drawn for people, by which `samples`, and `own_designs` by judge how those were drawn that it and
    people rated.
    `followers` are judges that were asked about units because samples held them. `juries` maps a judge that
    gives the majority of others to those, in whichever version. `taken_over` are the units (units,) on which
    a judge's answer stands under another judge or version as well, one of its `owners`: the model was asked
    once for both.
    """

    book: Codebook
    code: str
    ids: tuple[str, ...]
    instance: Ints
    trajectory: Ints
    event: Ints
    raters: tuple[str, ...]
    kinds: dict[str, str]
    matrix: Ints
    probability: Floats
    design: Design
    samples: tuple[Drawing, ...]
    own_designs: Mapping[str, Design]
    followers: Collection[str]
    juries: Mapping[str, frozenset[str]]
    taken_over: Mapping[str, NDArray[np.bool_]]
    owners: Mapping[str, Collection[str]]

    @property
    def units(self) -> tuple[Unit, ...]:
        """The id of each unit's trajectory, and the seq of its first event (None: the whole trajectory)."""
        return tuple(self.unit(place) for place in range(len(self.event)))

    def unit(self, place: int) -> Unit:
        """The unit at a place: its trajectory's id, and the seq of its first event."""
        event = int(self.event[place])
        return self.ids[self.trajectory[place]], None if event < 0 else event

    @property
    def humans(self) -> tuple[str, ...]:
        """The people, the gold rating apart."""
        return tuple(r for r in self.raters if self.kinds[r] == "human" and r != GOLD)

    @property
    def judges(self) -> tuple[str, ...]:
        """Every rater that is no person."""
        return tuple(r for r in self.raters if self.kinds[r] != "human" and r != GOLD)

    @property
    def trajectories(self) -> Ints | None:
        """The trajectory of each unit where units are smaller than one."""
        return None if self.book.unit == "trajectory" else self.trajectory

    def clusters(self, overlap: NDArray[np.bool_]) -> Ints | None:
        """The `clusters_of` all units (units,), of which those in the `overlap` are compared."""
        return clusters_of(self.book, self.trajectory, self.instance[self.trajectory], overlap)

    def of(self, rater: str) -> Ints:
        """What one rater said (units,)."""
        column: Ints = self.matrix[:, self.raters.index(rater)]
        return column

    def voices(self, rater: str) -> set[str]:
        """The rater itself and, of a jury, its members and whose answers these have, and theirs."""
        names: set[str] = set()
        queue = [rater]
        while queue:
            name = queue.pop()
            names.add(name)
            members = self.juries.get(name, frozenset())
            queue += members.union(*(self.owners.get(member, ()) for member in members)) - names
        return names

    def where(self, units: NDArray[np.bool_]) -> Rated:
        """The same for some of the units."""
        return replace(
            self,
            trajectory=self.trajectory[units],
            event=self.event[units],
            matrix=self.matrix[units],
            probability=self.probability[units],
            design=self.design.where(units),
            samples=tuple(sample.where(units) for sample in self.samples),
            own_designs={name: own.where(units) for name, own in self.own_designs.items()},
            taken_over={name: places[units] for name, places in self.taken_over.items()},
        )

    def with_answers(self) -> Rated:
        """The same without raters that answered nothing."""
        has_answer = (self.matrix != MISSING).any(0)
        names = tuple(name for name, has in zip(self.raters, has_answer, strict=True) if has)
        return replace(
            self,
            raters=names,
            kinds={name: self.kinds[name] for name in names},
            matrix=self.matrix[:, has_answer],
            probability=self.probability[:, has_answer],
            juries={name: members for name, members in self.juries.items() if name in names},
            taken_over={name: places for name, places in self.taken_over.items() if name in names},
        )

    def without_taken_over(self) -> Rated:
        """The same, each answer that judges or versions of one share under one of them alone."""
        if not self.taken_over:
            return self
        matrix = self.matrix.copy()
        for name, places in self.taken_over.items():
            matrix[places, self.raters.index(name)] = MISSING
        return replace(self, matrix=matrix)

    def seen_by(self, judge: str) -> Rated:
        """The same with the design of the units that this judge and people rated."""
        return replace(self, design=self.own_designs.get(judge, self.design))

    @property
    def is_asked(self) -> NDArray[np.bool_]:
        """(units,) whether a person or gold gave any answer, or skipped it."""
        is_asked: NDArray[np.bool_] = (self._of_people != MISSING).any(1)
        return is_asked

    @property
    def missing_labels(self) -> Ints:
        """(units,) why a unit has no label: UNCLEAR where a person said so, else ERROR, or MISSING where
        nobody was asked."""
        answers = self._of_people
        return np.where((answers == UNCLEAR).any(1), UNCLEAR, np.where(self.is_asked, ERROR, MISSING))

    @property
    def _of_people(self) -> Ints:
        """(units, people and gold) of the matrix."""
        return self.matrix[:, [self.raters.index(rater) for rater in (*self.humans, *self.gold)]]

    @property
    def gold(self) -> tuple[str, ...]:
        """The gold rating, where there is one."""
        return (GOLD,) if GOLD in self.raters else ()

    @property
    def populations(self) -> tuple[Population, ...]:
        """The units that people labelled: those of the samples, and apart from them any others."""
        return _populations(self.design, self.is_asked)

    def populations_of(
        self, units: NDArray[np.bool_], among: NDArray[np.bool_] | None = None
    ) -> tuple[Population, ...]:
        """Those of `units` (units,) that raters were asked about in common, of several samples by what each
        brought of them (`among` those that could be): who joined late has rated the last alone, and where few
        units of one were asked twice, it tells little of agreement."""
        if len(self.samples) < 2:
            return self.populations
        own = design(self.samples, units, among)
        return _populations(own, units) if own.has_answers else self.populations

    def votes(self) -> Floats:
        """(units, labels) the label of a unit: gold, else the shares of its annotators; 0 without one."""
        counts = self.counts()
        votes: Floats = counts / np.maximum(counts.sum(1), 1)[:, None]
        for rater in self.gold:
            has_gold = self.of(rater) >= 0
            votes[has_gold] = np.eye(len(self.book.labels))[self.of(rater)[has_gold]]
        return votes

    def counts(self) -> Ints:
        """(units, labels) how many annotators gave a unit each label, gold or not."""
        answers = self.matrix[:, [self.raters.index(rater) for rater in self.humans]]
        return np.stack([(answers == k).sum(1) for k in range(len(self.book.labels))], axis=1)

    def voters(self) -> Ints:
        """How many annotators' labels the label of a unit (units,) is of; 0 where gold settled it."""
        numbers: Ints = self.counts().sum(1)
        for rater in self.gold:
            numbers[self.of(rater) >= 0] = 0
        return numbers

    def consensus(self) -> Ints:
        """What people agree on (units,): gold, else their majority; a tie is UNCLEAR, no answer MISSING."""
        columns = [self.raters.index(rater) for rater in self.humans]
        answers = self.matrix[:, columns]
        counts = np.stack([(answers == k).sum(1) for k in range(len(self.book.labels))], axis=1)
        best = counts.max(1)
        tied = (counts == best[:, None]).sum(1) > 1
        has_answer = ~np.isin(answers, (MISSING, ERROR)).all(1)
        answer = np.where(tied | (best == 0), UNCLEAR, counts.argmax(1))
        answer = np.where(has_answer, answer, MISSING)
        if GOLD in self.raters:
            gold = self.of(GOLD)
            answer = np.where(gold >= 0, gold, answer)
        return answer.astype(np.int64)


def _populations(design: Design, is_asked: NDArray[np.bool_]) -> tuple[Population, ...]:
    """The units that were asked about (units,): those of the samples, and apart from them any others."""
    in_sample, everything = ~np.isnan(design.inclusion), np.ones(len(is_asked), dtype=bool)
    if not (is_asked & in_sample).any():
        return (Population("", everything, None),)
    beyond = is_asked & ~in_sample
    if np.ptp(design.inclusion[in_sample]) > 1e-9:
        weights = 1 / np.where(in_sample, design.inclusion, 1.0)
        within = Population("units of the samples, weighted by 1/π", in_sample, weights)
    else:
        within = Population("units of the samples", ~beyond, None)
    return (within, Population(OUTSIDE, beyond, None)) if beyond.any() else (within,)


def clusters_of(
    book: Codebook, trajectories: Ints, instances: Ints, overlap: NDArray[np.bool_]
) -> Ints | None:
    """What units (units,) have in common with others: the instance of which their trajectory is a run, for
    what is hard in one run is so in the next; if all in the `overlap` (units,) of those who are compared
    are of one instance, the trajectory. None where each of these stands alone."""
    several = np.unique(instances[overlap]).size > 1
    names = instances if several else trajectories
    is_alone = book.unit == "trajectory" and len(np.unique(names[overlap])) == overlap.sum()
    return None if is_alone else names


def unit_groups(code: Rated, groups: Iterable[T]) -> tuple[list[T], Ints]:
    """The distinct ones of `groups`, one a trajectory in the order of `code.ids`, that have units, and the
    place (units,) of each unit's among them."""
    of_trajectory = list(groups)
    with_units = np.unique(code.trajectory)
    place_of = {g: place for place, g in enumerate(dict.fromkeys(of_trajectory[k] for k in with_units))}
    places = np.array([place_of.get(group, -1) for group in of_trajectory], dtype=np.int64)
    return list(place_of), places[code.trajectory]


def chosen_books(store: Store, names: Sequence[str]) -> list[Codebook]:
    """The codebooks of these names, or all that have ratings; UsageError names the choices."""
    custom = store.workspace.codebooks
    choices = codebooks.names(custom)
    for name in names:
        if name not in choices:
            raise UsageError(f"unknown codebook {name!r}, expected one of {', '.join(choices)}")
    if names:
        return [codebooks.load(name, custom) for name in dict.fromkeys(names)]
    with store.reading() as connection:
        rows = connection.execute("SELECT DISTINCT codebook FROM counted_ratings ORDER BY 1").fetchall()
    return [codebooks.load(name, custom) for (name,) in rows if name in choices]


def answer(book: Codebook, label: str | None) -> int:
    """The index of a label; ERROR of no answer, UNCLEAR of any other."""
    if label is None:
        return ERROR
    return book.labels.index(label) if label in book.labels else UNCLEAR


def groups(connection: duckdb.DuckDBPyConnection, by: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """Id of each trajectory -> its group; UsageError for a name that is no column and no tag."""
    keys = keys_of(connection, by)
    columns = "".join(f", {expression}" for _, expression in keys)
    names = [name for name, _ in keys]
    rows = connection.execute(f"SELECT t.id{columns} FROM trajectories t").fetchall()
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in rows}


def group_name(group: Mapping[str, str | None]) -> str:
    """A group in words; sessions without one are a group too."""
    return " · ".join(f"no {key}" if value is None else value for key, value in group.items())
