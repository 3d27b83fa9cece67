"""Ratings out of the store as matrices: what each rater said of each unit under each code of a codebook.

The store gives every rating as numbers (the place of its unit, its code, rater and label), for a study has
millions of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics.audit import ERROR, UNCLEAR
from ...annotation.statistics.intervals import MISSING, Ints
from ...schemas import GOLD, Codebook
from ..store import Selection, execute
from ..store.queries.copies import IS_COPY, MAY_BE_COPY, QUESTION
from .designs import CREATE_UNITS, OF_UNIT, Design, Drawing, design, drawings, follows_samples
from .matrix import Rated
from .totals import CLUSTER

Numbers = dict[str, NDArray[Any]]
"""Columns of a query by name."""


def rated_codes(
    connection: duckdb.DuckDBPyConnection, book: Codebook, only: Selection | None = None
) -> Iterator[Rated]:
    """Each code of a codebook that has ratings, with every unit of its kind (the opening query apart).

    `only` is a domain of whatever was sampled: inclusion probabilities stay those of the draw. A code then
    has the raters that answered it there.
    """
    codes = _rated_codes(connection, book)
    yield from _within(codes, selected_ids(connection, only)) if only else codes


def selected_ids(connection: duckdb.DuckDBPyConnection, only: Selection) -> frozenset[str]:
    """The trajectories of a selection."""
    where, values = only.where()
    rows = execute(connection, f"SELECT t.id FROM trajectories t WHERE {where}", values).fetchall()
    return frozenset(key for (key,) in rows)


def _within(codes: Iterable[Rated], ids: Collection[str]) -> Iterator[Rated]:
    for code in codes:
        is_selected = np.array([key in ids for key in code.ids], dtype=bool)
        subset = code.where(is_selected[code.trajectory])
        if (subset.matrix != MISSING).any():
            yield subset.with_answers()


def _rated_codes(connection: duckdb.DuckDBPyConnection, book: Codebook) -> Iterator[Rated]:
    execute(connection, CREATE_UNITS, [book.name])
    units = connection.execute(_PLACES).fetchnumpy()
    rows = connection.execute(_INSTANCES).fetchall()
    ids, instance = tuple(key for key, _ in rows), np.array([number for _, number in rows], dtype=np.int64)
    rater_rows = execute(connection, _RATERS, [book.name]).fetchall()
    juries = {
        jury: frozenset(members)
        for jury, members in execute(connection, _JURIES, [book.name, book.name]).fetchall()
    }
    raters = sorted({rater for _, rater, *_ in rater_rows})
    codes = [code.code for code in book.codes if any(code.code == own for own, *_ in rater_rows)]
    ratings = _ratings(connection, book, codes, raters)
    has_copies = any(may_be for *_, may_be in rater_rows)
    taken_over, owners = _taken_over(connection, book, codes, raters) if has_copies else ({}, {})
    samples, is_asked = _samples(connection, book, len(units["event"]))
    people, trajectory = design(samples, is_asked), _whole(units["trajectory"])
    for number, code in enumerate(codes):
        is_own = ratings["code"] == number
        own = {name: column[is_own] for name, column in ratings.items() if name != "code"}
        present, matrix, probability = _spread(own, len(units["event"]))
        names = tuple(raters[place] for place in present)
        kinds = {rater: kind for rated_code, rater, kind, _ in rater_rows if rated_code == code}
        judges = {
            name: matrix[:, place] != MISSING
            for place, name in enumerate(names)
            if kinds[name] != "human" and name != GOLD
        }
        designs = _own_designs(samples, is_asked, judges)
        yield Rated(
            book=book,
            code=code,
            ids=ids,
            instance=instance,
            trajectory=trajectory,
            event=_whole(units["event"]),
            raters=names,
            kinds={name: kinds[name] for name in names},
            matrix=matrix,
            probability=probability,
            design=people,
            samples=tuple(samples),
            own_designs=designs,
            followers={
                name for name, one in designs.items() if follows_samples(judges[name], one, trajectory)
            },
            juries={name: members for name, members in juries.items() if name in names},
            taken_over={
                name: _is_at(places, len(units["event"]))
                for (own_number, name), places in taken_over.items()
                if own_number == number
            },
            owners=owners,
        )


def _spread(ratings: Numbers, count: int) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """The raters of a code's ratings, by their numbers, and the labels and probabilities of `count` units by
    them."""
    present, column = np.unique(ratings["rater"], return_inverse=True)
    labels = np.full((count, len(present)), MISSING, dtype=np.int64)
    probability = np.full(labels.shape, np.nan)
    labels[ratings["place"], column] = ratings["label"]
    probability[ratings["place"], column] = ratings["probability"]
    return present, labels, probability


def _own_designs(
    samples: Sequence[Drawing], is_asked: NDArray[np.bool_], judges: Mapping[str, NDArray[np.bool_]]
) -> dict[str, Design]:
    """The designs of the judges that left units without an answer: judge -> that of what it and people were
    asked, or of what it answered where people were asked nothing of that."""
    designs: dict[str, Design] = {}
    for name, has_answer in judges.items():
        if samples and not has_answer.all():
            overlap = is_asked & has_answer
            designs[name] = design(samples, overlap if overlap.any() else has_answer, has_answer)
    return designs


def _ratings(
    connection: duckdb.DuckDBPyConnection, book: Codebook, codes: Sequence[str], raters: Sequence[str]
) -> Numbers:
    parameters = [codes, raters, list(book.labels), book.name]
    numbers: Numbers = execute(connection, _RATINGS, parameters).fetchnumpy()
    return numbers


def _taken_over(
    connection: duckdb.DuckDBPyConnection, book: Codebook, codes: Sequence[str], raters: Sequence[str]
) -> tuple[dict[tuple[int, str], list[int]], dict[str, set[str]]]:
    """(Number of a code, rater) -> the places of the units on which its answer stands under another name; and
    rater -> these names."""
    places: dict[tuple[int, str], list[int]] = {}
    owners: dict[str, set[str]] = {}
    for place, code, rater, owner in execute(connection, _TAKEN_OVER, [codes, raters, book.name]).fetchall():
        places.setdefault((code, raters[rater]), []).append(place)
        owners.setdefault(raters[rater], set()).add(owner)
    return places, owners


def _is_at(places: Sequence[int], count: int) -> NDArray[np.bool_]:
    is_at = np.zeros(count, dtype=bool)
    is_at[places] = True
    return is_at


def _whole(column: NDArray[Any]) -> Ints:
    return column.astype(np.int64)


_PLACES = "SELECT trajectory, coalesce(event, -1) AS event FROM rated_units ORDER BY place"
_INSTANCES = f"""
    SELECT t.id, dense_rank() OVER (ORDER BY {CLUSTER}) - 1
    FROM trajectories t SEMI JOIN rated_units u ON u.trajectory_id = t.id ORDER BY t.id
"""
_RATERS = f"""
    SELECT code, rater, rater_kind, bool_or({MAY_BE_COPY}) FROM counted_ratings
    WHERE codebook = ? AND NOT opening GROUP BY ALL ORDER BY ALL
"""
_JURIES = """
    WITH juries AS (
        SELECT DISTINCT rater, unnest(TRY_CAST(parameters->'$.members' AS VARCHAR[])) AS member
        FROM counted_ratings
        WHERE codebook = ? AND rater_kind <> 'human' AND contains(parameters, '"members"')
    ),
    judges AS (SELECT DISTINCT rater, asked FROM counted_ratings WHERE codebook = ? AND rater_kind <> 'human')
    SELECT j.rater, list(DISTINCT r.rater) FROM juries j JOIN judges r ON j.member IN (r.rater, r.asked)
    GROUP BY j.rater
"""
_RATINGS = f"""
    WITH named AS (SELECT ? AS codes, ? AS raters, ? AS labels)
    SELECT u.place, list_position(codes, r.code) - 1 AS code, list_position(raters, r.rater) - 1 AS rater,
        CASE WHEN r.label IS NULL THEN {ERROR}
            ELSE coalesce(list_position(labels, r.label) - 1, {UNCLEAR}) END AS label,
        coalesce(r.probability, 'nan'::DOUBLE) AS probability
    FROM counted_ratings r CROSS JOIN named {OF_UNIT}
    WHERE r.codebook = ? AND NOT r.opening AND list_contains(codes, r.code)
"""
# Of the names that a copied answer goes by, one keeps it: the last version of a judge that asked for it.
_TAKEN_OVER = f"""
    WITH named AS (SELECT ? AS codes, ? AS raters),
    answers AS (
        SELECT {QUESTION}, asked, rater, is_last, {IS_COPY} AS is_copy FROM counted_ratings
        WHERE codebook = ? AND NOT opening
    ),
    shared AS (
        SELECT *, bool_and(is_copy) OVER (PARTITION BY {QUESTION}, asked) AS never_asked,
            row_number() OVER (PARTITION BY {QUESTION}, asked ORDER BY is_last DESC, rater) AS version
        FROM answers QUALIFY bool_or(is_copy) OVER (PARTITION BY {QUESTION})
    ),
    owners AS (
        SELECT *, dense_rank() OVER (PARTITION BY {QUESTION} ORDER BY never_asked, asked) AS place,
            first_value(rater) OVER (PARTITION BY {QUESTION} ORDER BY never_asked, asked, version) AS owner
        FROM shared
    )
    SELECT u.place, list_position(codes, r.code) - 1 AS code, list_position(raters, r.rater) - 1 AS rater,
        r.owner
    FROM owners r CROSS JOIN named {OF_UNIT}
    WHERE (version > 1 OR never_asked AND r.place > 1) AND list_contains(codes, r.code)
"""
_QUESTIONS = f"""
    SELECT DISTINCT u.place FROM counted_ratings r {OF_UNIT}
    WHERE r.codebook = ? AND r.rater_kind = 'human' AND NOT r.opening
"""


def _samples(
    connection: duckdb.DuckDBPyConnection, book: Codebook, units: int
) -> tuple[list[Drawing], NDArray[np.bool_]]:
    """The samples of a codebook, and whether a person was asked about each unit."""
    is_asked = np.zeros(units, dtype=bool)
    is_asked[execute(connection, _QUESTIONS, [book.name]).fetchnumpy()["place"]] = True
    return drawings(connection, book.name, units), is_asked
