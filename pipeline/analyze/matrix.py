"""Ratings out of the store as matrices: what each rater said of each unit under one code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics.audit import ERROR, UNCLEAR
from ...annotation.statistics.intervals import MISSING, Floats, Ints
from ...schemas import GOLD, Codebook
from .. import codebooks
from ..errors import UsageError
from ..store import Selection, Store, dictionaries, execute

GROUPS = ("system", "setting", "condition", "task", "instance", "agent", "agent_model")
"""Columns of `trajectories` that `--by` takes, beside any tag."""
Unit = tuple[str, int | None]


@dataclass(frozen=True, eq=False)
class Rated:
    """One code over the units of its codebook.

    `matrix` (units, raters) holds indices of the codebook's labels, or MISSING, UNCLEAR, ERROR.
    `probability` has the same shape and holds what a rater gave its label, nan where it gave none.
    `inclusion` (units,) is the probability with which a unit was drawn for people, nan where no sample
    holds it. `trajectory` (units,) numbers the trajectories.
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
        )

    def settled(self) -> Ints:
        """What people said (units,): gold, else their majority; a tie is UNCLEAR, no answer MISSING."""
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
        found = connection.execute("SELECT DISTINCT codebook FROM counted_ratings ORDER BY 1").fetchall()
    return [codebooks.load(name, own) for (name,) in found if name in known]


def rated(connection: duckdb.DuckDBPyConnection, book: Codebook) -> Iterator[Rated]:
    """Each code of a codebook that has ratings, with every unit of its kind (the opening query apart)."""
    units = execute(connection, _UNITS, [book.unit]).fetchall()
    index = {(row[0], row[1]): place for place, row in enumerate(units)}
    inclusion = _inclusion(connection, book, index)
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
        found = tuple((row[0], row[1]) for row in units)
        yield Rated(book, code, found, raters, kinds, matrix, probability, inclusion, trajectory)


def groups(
    connection: duckdb.DuckDBPyConnection, by: Sequence[str], only: Selection | None = None
) -> dict[str, dict[str, str | None]]:
    """Id of each selected trajectory -> its group; UsageError for a name that is no column and no tag."""
    keys = keys_of(connection, by)
    columns = "".join(f", {expression}" for _, expression in keys)
    names = [name for name, _ in keys]
    wanted, values = (only or Selection()).where()
    query = f"SELECT t.id{columns} FROM trajectories t WHERE {wanted}"
    found = execute(connection, query, values).fetchall()
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in found}


def keys_of(connection: duckdb.DuckDBPyConnection, by: Sequence[str]) -> list[tuple[str, str]]:
    """(name, SQL expression over `trajectories t`) of each grouping; a name that is no column is a tag."""
    query = "SELECT DISTINCT unnest(json_keys(tags)) FROM trajectories"
    tags = {row[0] for row in connection.execute(query).fetchall()}
    keys = []
    for name in by:
        if name in GROUPS:
            keys.append((name, f"t.{name}"))
        elif name in tags:
            path = name.replace('"', '\\"').replace("'", "''")
            keys.append((name, f"json_extract_string(t.tags, '$.\"{path}\"')"))
        else:
            raise UsageError(f"cannot group by {name!r}, expected {', '.join([*GROUPS, *sorted(tags)])}")
    return keys


_UNITS = """
    SELECT trajectory_id, event FROM units WHERE kind = ? AND NOT opening ORDER BY trajectory_id, event
"""
_RATINGS = """
    SELECT trajectory_id, event, code, rater, rater_kind, label, probability
    FROM counted_ratings WHERE codebook = ? AND NOT opening
"""
_INCLUSION = """
    SELECT trajectory_id, event, max(probability) FROM samples
    WHERE codebook = ? AND probability IS NOT NULL GROUP BY ALL
"""


def _inclusion(connection: duckdb.DuckDBPyConnection, book: Codebook, index: dict[Unit, int]) -> Floats:
    inclusion = np.full(len(index), np.nan)
    for trajectory, event, probability in execute(connection, _INCLUSION, [book.name]).fetchall():
        if (trajectory, event) in index:
            inclusion[index[trajectory, event]] = probability
    return inclusion


def _said(book: Codebook, label: str | None) -> int:
    if label is None:
        return ERROR
    return book.labels.index(label) if label in book.labels else UNCLEAR
