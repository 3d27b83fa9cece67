"""Ratings out of the store as matrices: what each rater said of each unit under one code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics.audit import ERROR, UNCLEAR
from ...annotation.statistics.intervals import MISSING, Floats, Ints
from ...schemas import FIELDS, GOLD, Codebook
from .. import codebooks
from ..errors import UsageError
from ..store import Selection, Store, dictionaries, execute

DAY = "day"
"""The day on which a trajectory began."""
Unit = tuple[str, int | None]
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

    `matrix` (units, raters) holds indices of the codebook's labels, or MISSING, UNCLEAR, ERROR.
    `probability` has the same shape and holds what a rater gave its label, nan where it gave none.
    `inclusion` (units,) is the probability with which a unit was drawn for people, nan where no sample
    holds it. `trajectory` (units,) numbers the trajectories, `strata` (units,) those of the sample's design,
    −1 where it has none. `framed` (units,) says what the samples could take: nothing is known of sessions
    that came later, or that `sample --where` left out.
    """

    book: Codebook
    code: str
    units: tuple[Unit, ...]
    raters: tuple[str, ...]
    kinds: dict[str, str]
    matrix: Ints
    probability: Floats
    inclusion: Floats
    trajectory: Ints
    strata: Ints
    framed: NDArray[np.bool_]

    @property
    def humans(self) -> tuple[str, ...]:
        """The people, the gold rating apart."""
        return tuple(r for r in self.raters if self.kinds[r] == "human" and r != GOLD)

    @property
    def judges(self) -> tuple[str, ...]:
        """Every rater that is no person."""
        return tuple(r for r in self.raters if self.kinds[r] != "human" and r != GOLD)

    @property
    def clusters(self) -> Ints | None:
        """The trajectory of each unit where units are smaller than one."""
        return None if self.book.unit == "trajectory" else self.trajectory

    def of(self, rater: str) -> Ints:
        """What one rater said (units,)."""
        column: Ints = self.matrix[:, self.raters.index(rater)]
        return column

    def where(self, units: NDArray[np.bool_]) -> Rated:
        """The same for some of the units."""
        return replace(
            self,
            units=tuple(unit for unit, kept in zip(self.units, units, strict=True) if kept),
            matrix=self.matrix[units],
            probability=self.probability[units],
            inclusion=self.inclusion[units],
            trajectory=self.trajectory[units],
            strata=self.strata[units],
            framed=self.framed[units],
        )

    @property
    def asked(self) -> NDArray[np.bool_]:
        """(units,) whether a person or gold gave any answer."""
        columns = [self.raters.index(rater) for rater in (*self.humans, *self.gold)]
        asked: NDArray[np.bool_] = (self.matrix[:, columns] != MISSING).any(1)
        return asked

    @property
    def gold(self) -> tuple[str, ...]:
        """The gold rating, where there is one."""
        return (GOLD,) if GOLD in self.raters else ()

    @property
    def populations(self) -> tuple[Population, ...]:
        """The units that people labelled: those of the samples, and apart from them any others."""
        drawn, everything = ~np.isnan(self.inclusion), np.ones(len(self.units), dtype=bool)
        if not (self.asked & drawn).any():
            return (Population("", everything, None),)
        beyond = self.asked & ~drawn
        if np.ptp(self.inclusion[self.asked & drawn]) > 1e-9:
            weights = 1 / np.where(drawn, self.inclusion, 1.0)
            within = Population("units of the samples, weighted by 1/π", drawn, weights)
        else:
            within = Population("units of the samples", ~beyond, None)
        return (within, Population(OUTSIDE, beyond, None)) if beyond.any() else (within,)

    def votes(self) -> Floats:
        """(units, labels) the label of a unit: gold, else the shares of its annotators; 0 without one."""
        said = self.matrix[:, [self.raters.index(rater) for rater in self.humans]]
        counts = np.stack([(said == k).sum(1) for k in range(len(self.book.labels))], axis=1)
        votes: Floats = counts / np.maximum(counts.sum(1), 1)[:, None]
        for rater in self.gold:
            settled = self.of(rater) >= 0
            votes[settled] = np.eye(len(self.book.labels))[self.of(rater)[settled]]
        return votes

    def settled(self) -> Ints:
        """What people agree on (units,): gold, else their majority; a tie is UNCLEAR, no answer MISSING."""
        columns = [self.raters.index(rater) for rater in self.humans]
        said = self.matrix[:, columns]
        counts = np.stack([(said == k).sum(1) for k in range(len(self.book.labels))], axis=1)
        best = counts.max(1)
        tied = (counts == best[:, None]).sum(1) > 1
        asked = (said != MISSING).any(1) if columns else np.zeros(len(said), dtype=bool)
        answer = np.where(tied | (best == 0), UNCLEAR, counts.argmax(1))
        answer = np.where(asked & ~(said == ERROR).all(1) if columns else asked, answer, MISSING)
        if GOLD in self.raters:
            gold = self.of(GOLD)
            answer = np.where(gold >= 0, gold, answer)
        return answer.astype(np.int64)


def chosen_books(store: Store, names: Sequence[str]) -> list[Codebook]:
    """The codebooks of these names, or all that have ratings; UsageError names the choices."""
    own = store.workspace.codebooks
    known = codebooks.names(own)
    for name in names:
        if name not in known:
            raise UsageError(f"unknown codebook {name!r}, expected one of {', '.join(known)}")
    if names:
        return [codebooks.load(name, own) for name in names]
    with store.reading() as connection:
        rows = connection.execute("SELECT DISTINCT codebook FROM counted_ratings ORDER BY 1").fetchall()
    return [codebooks.load(name, own) for (name,) in rows if name in known]


def rated(connection: duckdb.DuckDBPyConnection, book: Codebook) -> Iterator[Rated]:
    """Each code of a codebook that has ratings, with every unit of its kind (the opening query apart)."""
    units = execute(connection, _UNITS, [book.name]).fetchall()
    index = {(row[0], row[1]): place for place, row in enumerate(units)}
    design = _design(connection, book, index)
    numbers: dict[str, int] = {}
    trajectory = np.array([numbers.setdefault(row[0], len(numbers)) for row in units], dtype=np.int64)
    by_code: dict[str, list[dict[str, Any]]] = {}
    for row in dictionaries(connection, _RATINGS, [book.name]):
        by_code.setdefault(row["code"], []).append(row)
    for code in (c.code for c in book.codes if c.code in by_code):
        rows = [row for row in by_code[code] if (row["trajectory_id"], row["event"]) in index]
        kinds = {row["rater"]: row["rater_kind"] for row in rows}
        raters = tuple(sorted(kinds))
        matrix = np.full((len(units), len(raters)), MISSING, dtype=np.int64)
        probability = np.full(matrix.shape, np.nan)
        for row in rows:
            place = index[row["trajectory_id"], row["event"]], raters.index(row["rater"])
            matrix[place] = _said(book, row["label"])
            if row["probability"] is not None:
                probability[place] = row["probability"]
        result = tuple((row[0], row[1]) for row in units)
        inclusion, strata, framed = design
        yield Rated(
            book, code, result, raters, kinds, matrix, probability, inclusion, trajectory, strata, framed
        )


def groups(
    connection: duckdb.DuckDBPyConnection, by: Sequence[str], only: Selection | None = None
) -> dict[str, dict[str, str | None]]:
    """Id of each selected trajectory -> its group; UsageError for a name that is no column and no tag."""
    keys = keys_of(connection, by)
    columns = "".join(f", {expression}" for _, expression in keys)
    names = [name for name, _ in keys]
    wanted, values = (only or Selection()).where()
    query = f"SELECT t.id{columns} FROM trajectories t WHERE {wanted}"
    rows = execute(connection, query, values).fetchall()
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in rows}


def group_name(group: Mapping[str, str | None]) -> str:
    """A group in words; sessions without one are a group too."""
    return " · ".join(f"no {key}" if value is None else value for key, value in group.items())


def keys_of(connection: duckdb.DuckDBPyConnection, by: Sequence[str]) -> list[tuple[str, str]]:
    """(name, SQL expression over `trajectories t`) of each grouping; a name that is no column is a tag."""
    query = "SELECT DISTINCT unnest(json_keys(tags)) FROM trajectories"
    tags = {row[0] for row in connection.execute(query).fetchall()}
    keys = []
    for name in by:
        if name in FIELDS:
            keys.append((name, f"t.{name}"))
        elif name == DAY and name not in tags:
            keys.append((name, "left(t.started, 10)"))
        elif name in tags:
            path = name.replace('"', '\\"').replace("'", "''")
            keys.append((name, f"json_extract_string(t.tags, '$.\"{path}\"')"))
        else:
            raise UsageError(f"cannot group by {name!r}, expected {', '.join([*FIELDS, DAY, *sorted(tags)])}")
    return keys


_UNITS = """
    SELECT trajectory_id, event FROM codebook_units
    WHERE codebook = ? AND NOT opening ORDER BY trajectory_id, event
"""
_RATINGS = """
    SELECT trajectory_id, event, code, rater, rater_kind, label, probability
    FROM counted_ratings WHERE codebook = ? AND NOT opening
"""
_DRAWN = """
    SELECT sample, trajectory_id, event, probability, stratum,
        (design->>'$.method') = 'stratified' AND (design->>'$.unit') = 'unit' AS fixed
    FROM samples WHERE codebook = ? AND probability IS NOT NULL
"""
_FRAMES = "SELECT sample, trajectory_id, event, probability FROM frames WHERE codebook = ?"
_ASKED = """
    SELECT DISTINCT trajectory_id, event FROM counted_ratings
    WHERE codebook = ? AND rater_kind = 'human' AND NOT opening
"""


def _design(
    connection: duckdb.DuckDBPyConnection, book: Codebook, index: dict[Unit, int]
) -> tuple[Floats, Ints, NDArray[np.bool_]]:
    """(units,) inclusion probability, nan where no sample holds the unit, stratum of the design, and whether
    a sample that people have begun could take the unit.

    The stratum is −1 outside the sample, and everywhere unless one sample alone took fixed numbers of strata.
    """
    drawn: dict[str, NDArray[np.bool_]] = {}
    chance: dict[str, Floats] = {}
    strata: dict[str, Ints] = {}
    numbers: dict[str | None, int] = {}
    rows = execute(connection, _DRAWN, [book.name]).fetchall()
    for sample, trajectory, event, probability, stratum, fixed in rows:
        place = index.get((trajectory, event))
        if place is not None:
            drawn.setdefault(sample, np.zeros(len(index), dtype=bool))[place] = True
            chance.setdefault(sample, np.zeros(len(index)))[place] = probability
            of_unit = strata.setdefault(sample, np.full(len(index), -1, dtype=np.int64))
            of_unit[place] = numbers.setdefault(stratum, len(numbers)) if fixed else -1
    frames: dict[str, NDArray[np.bool_]] = {}
    for sample, trajectory, event, probability in execute(connection, _FRAMES, [book.name]).fetchall():
        if (trajectory, event) in index and sample in chance:
            chance[sample][index[trajectory, event]] = probability
            frame = frames.setdefault(sample, np.zeros(len(index), dtype=bool))
            frame[index[trajectory, event]] = True
    asked = np.zeros(len(index), dtype=bool)
    asked[[index[u] for u in execute(connection, _ASKED, [book.name]).fetchall() if u in index]] = True
    inclusion = joint_inclusion(list(drawn.values()), list(chance.values()), asked)
    used = [sample for sample, units in drawn.items() if (units & asked).any()]
    stratum_of = strata[used[0]] if len(used) == 1 else np.full(len(index), -1, dtype=np.int64)
    # A sample whose frame was not noted may have taken any unit.
    noted = bool(used) and all(sample in frames for sample in used)
    framed = np.any([frames[s] for s in used], axis=0) if noted else np.ones(len(index), dtype=bool)
    return inclusion, stratum_of, framed


def joint_inclusion(drawn: list[NDArray[np.bool_]], chance: list[Floats], asked: NDArray[np.bool_]) -> Floats:
    """The probability (units,) that any of several independent samples takes a unit, nan where none did.

    `drawn` and `chance` (units,) are of each sample, 0 where it could not take a unit. 1 − Π(1 − π): for two,
    π₁ + π₂ − π₁π₂. A sample that people have not finished counts by the share `asked` of what it alone drew,
    for they are asked in random order; one that nobody has begun not at all.
    """
    if not drawn:
        return np.full(len(asked), np.nan)
    answered = []
    for number, units in enumerate(drawn):
        alone = units & ~np.any([other for k, other in enumerate(drawn) if k != number] or [~units], axis=0)
        among = alone if alone.any() else units
        answered.append(float(asked[among].mean()))
    begun = [place for place, share in enumerate(answered) if share > 0]
    if len(begun) < 2:
        begun = begun or list(range(len(drawn)))
        answered = [1.0] * len(drawn)
    missed = np.prod([1 - chance[place] * answered[place] for place in begun], axis=0)
    held = np.any([drawn[place] for place in begun], axis=0)
    inclusion: Floats = np.where(held, 1 - missed, np.nan)
    return inclusion


def _said(book: Codebook, label: str | None) -> int:
    if label is None:
        return ERROR
    return book.labels.index(label) if label in book.labels else UNCLEAR
