"""Ratings out of the store as matrices: what each rater said of each unit under each code of a codebook.

The store gives every rating as numbers (the place of its unit, its code, rater and label), for a study has
millions of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics.audit import ERROR, UNCLEAR
from ...annotation.statistics.intervals import MISSING, Floats, Ints
from ...schemas import Codebook
from ..store import execute
from .matrix import Rated

Numbers = dict[str, NDArray[Any]]
"""Columns of a query by name."""


def rated(connection: duckdb.DuckDBPyConnection, book: Codebook) -> Iterator[Rated]:
    """Each code of a codebook that has ratings, with every unit of its kind (the opening query apart)."""
    execute(connection, f"CREATE OR REPLACE TEMP TABLE rated_units AS {_UNITS}", [book.name])
    units = connection.execute(_PLACES).fetchnumpy()
    ids = connection.execute("SELECT DISTINCT trajectory_id FROM rated_units ORDER BY 1").fetchall()
    who = execute(connection, _RATERS, [book.name]).fetchall()
    raters = sorted({rater for _, rater, _ in who})
    codes = [code.code for code in book.codes if any(code.code == own for own, _, _ in who)]
    ratings = _ratings(connection, book, codes, raters)
    inclusion, strata, framed = _design(connection, book, len(units["event"]))
    for number, code in enumerate(codes):
        own = {name: column[ratings["code"] == number] for name, column in ratings.items()}
        kinds = {rater: kind for coded, rater, kind in who if coded == code}
        present, column = np.unique(own["rater"], return_inverse=True)
        matrix = np.full((len(units["event"]), len(present)), MISSING, dtype=np.int64)
        probability = np.full(matrix.shape, np.nan)
        matrix[own["place"], column] = own["label"]
        probability[own["place"], column] = own["probability"]
        yield Rated(
            book=book,
            code=code,
            ids=tuple(key for (key,) in ids),
            trajectory=_whole(units["trajectory"]),
            event=_whole(units["event"]),
            raters=tuple(raters[place] for place in present),
            kinds={raters[place]: kinds[raters[place]] for place in present},
            matrix=matrix,
            probability=probability,
            inclusion=inclusion,
            strata=strata,
            framed=framed,
        )


def _ratings(
    connection: duckdb.DuckDBPyConnection, book: Codebook, codes: Sequence[str], raters: Sequence[str]
) -> Numbers:
    given = [codes, raters, list(book.labels), book.name]
    numbers: Numbers = execute(connection, _RATINGS, given).fetchnumpy()
    return numbers


def _whole(column: NDArray[Any]) -> Ints:
    return column.astype(np.int64)


_UNITS = """
    SELECT trajectory_id, event, row_number() OVER (ORDER BY trajectory_id, event) - 1 AS place,
        dense_rank() OVER (ORDER BY trajectory_id) - 1 AS trajectory
    FROM codebook_units WHERE codebook = ? AND NOT opening
"""
_PLACES = "SELECT trajectory, coalesce(event, -1) AS event FROM rated_units ORDER BY place"
_OF_UNIT = """
    JOIN rated_units u ON u.trajectory_id = r.trajectory_id AND u.event IS NOT DISTINCT FROM r.event
"""
_RATERS = """
    SELECT DISTINCT code, rater, rater_kind FROM counted_ratings
    WHERE codebook = ? AND NOT opening ORDER BY ALL
"""
_RATINGS = f"""
    WITH named AS (SELECT ? AS codes, ? AS raters, ? AS labels)
    SELECT u.place, list_position(codes, r.code) - 1 AS code, list_position(raters, r.rater) - 1 AS rater,
        CASE WHEN r.label IS NULL THEN {ERROR}
            ELSE coalesce(list_position(labels, r.label) - 1, {UNCLEAR}) END AS label,
        coalesce(r.probability, 'nan'::DOUBLE) AS probability
    FROM counted_ratings r CROSS JOIN named {_OF_UNIT}
    WHERE r.codebook = ? AND NOT r.opening AND list_contains(codes, r.code)
"""
_DRAWN = f"""
    SELECT r.sample, u.place, r.probability, r.stratum,
        (r.design->>'$.method') = 'stratified' AND (r.design->>'$.unit') = 'unit' AS fixed
    FROM samples r {_OF_UNIT} WHERE r.codebook = ? AND r.probability IS NOT NULL
"""
_FRAME = f"SELECT u.place, r.probability FROM frames r {_OF_UNIT} WHERE r.codebook = ? AND r.sample = ?"
_ASKED = f"""
    SELECT DISTINCT u.place FROM counted_ratings r {_OF_UNIT}
    WHERE r.codebook = ? AND r.rater_kind = 'human' AND NOT r.opening
"""


def _design(
    connection: duckdb.DuckDBPyConnection, book: Codebook, units: int
) -> tuple[Floats, Ints, NDArray[np.bool_]]:
    """(units,) inclusion probability, nan where no sample holds the unit, stratum of the design, and whether
    a sample that people have begun could take the unit.

    The stratum is −1 outside the sample, and everywhere unless one sample alone took fixed numbers of strata.
    """
    drawn: dict[str, NDArray[np.bool_]] = {}
    chance: dict[str, Floats] = {}
    strata: dict[str, Ints] = {}
    numbers: dict[str | None, int] = {}
    for sample, place, probability, stratum, fixed in execute(connection, _DRAWN, [book.name]).fetchall():
        drawn.setdefault(sample, np.zeros(units, dtype=bool))[place] = True
        chance.setdefault(sample, np.zeros(units))[place] = probability
        of_unit = strata.setdefault(sample, np.full(units, -1, dtype=np.int64))
        of_unit[place] = numbers.setdefault(stratum, len(numbers)) if fixed else -1
    frames: dict[str, NDArray[np.bool_]] = {}
    for sample in drawn:
        frame = execute(connection, _FRAME, [book.name, sample]).fetchnumpy()
        if len(frame["place"]):
            chance[sample][frame["place"]] = frame["probability"]
            frames[sample] = np.zeros(units, dtype=bool)
            frames[sample][frame["place"]] = True
    asked = np.zeros(units, dtype=bool)
    asked[execute(connection, _ASKED, [book.name]).fetchnumpy()["place"]] = True
    inclusion = joint_inclusion(list(drawn.values()), list(chance.values()), asked)
    used = [sample for sample, own in drawn.items() if (own & asked).any()]
    stratum_of = strata[used[0]] if len(used) == 1 else np.full(units, -1, dtype=np.int64)
    # A sample whose frame was not noted may have taken any unit.
    noted = bool(used) and all(sample in frames for sample in used)
    framed = np.any([frames[s] for s in used], axis=0) if noted else np.ones(units, dtype=bool)
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
