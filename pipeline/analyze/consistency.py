"""How far a judge agrees with itself: the same questions asked again, by the same version of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import duckdb
import numpy as np

from ...annotation.statistics import Coefficient, Ratings
from ...annotation.statistics.agreement import agreement
from ...annotation.statistics.intervals import MISSING
from ...schemas import Agreement, Codebook
from ..store import Selection, dictionaries, first_row
from .matrix import clusters_of
from .totals import CLUSTER

FEW = 2
"""Up to so many units with different answers, an interval is not reliable."""
Answers = dict[tuple[str, int | None], dict[int, str]]
"""Unit -> repeat -> label."""


def consistency(
    connection: duckdb.DuckDBPyConnection, book: Codebook, only: Selection | None = None
) -> Iterator[Agreement]:
    """Alpha between a rater's repeats and how often two of its answers differ, code by code.

    Each version of a rater has rows of its own. Answers that are unclear or failed are missing.
    """
    if first_row(connection, _ANY, [book.name]) is None:
        return
    answers: dict[tuple[str, str, str], Answers] = {}
    where, values = (only or Selection()).where()
    for row in dictionaries(connection, _REPEATS.format(where=where), [*values, book.name, book.name]):
        if row["label"] in book.labels:
            key = (row["code"], row["rater"], row["rater_version"] or "–")
            unit = (row["trajectory_id"], row["event"])
            answers.setdefault(key, {}).setdefault(unit, {})[row["repeat"]] = row["label"]
    instances = dict(connection.execute(f"SELECT t.id, {CLUSTER} FROM trajectories t").fetchall())
    for (code, rater, version), units in sorted(answers.items()):
        yield from _rows(book, code, rater, version, units, instances)


def _rows(
    book: Codebook, code: str, rater: str, version: str, units: Answers, instances: Mapping[str, int]
) -> Iterator[Agreement]:
    times = max(map(len, units.values()))
    matrix = np.full((len(units), times), MISSING, dtype=np.int64)
    for place, answers in enumerate(units.values()):
        for column, repeat in enumerate(sorted(answers)):  # a log may number them as it likes
            matrix[place, column] = book.labels.index(answers[repeat])
    trajectories, runs_of = (
        np.unique(names, return_inverse=True)[1].astype(np.int64)
        for names in ([key for key, _ in units], [instances[key] for key, _ in units])
    )
    ratings = Ratings(
        matrix=matrix,
        labels=book.labels,
        raters=tuple(str(number + 1) for number in range(times)),
        level=book.level,
        clusters=clusters_of(book, trajectories, runs_of, (matrix != MISSING).sum(1) > 1),
    )
    alpha, same = agreement(ratings, ["krippendorff_alpha", "percent_agreement"])
    where = f"units that version {version} was asked about up to {times} times"
    if (flips := sum(len(set(answers.values())) > 1 for answers in units.values())) <= FEW:
        where += f"; {flips} of them got different answers, too few for a good interval"
    yield _row(book.name, code, rater, "intra_rater_alpha", alpha, where)
    yield _row(book.name, code, rater, "flip_rate", same, where, is_complement=True)


def _row(
    book: str,
    code: str,
    rater: str,
    name: str,
    result: Coefficient,
    where: str,
    *,
    is_complement: bool = False,
) -> Agreement:
    """A coefficient under its name for one rater; with `is_complement` the share of answers that differ."""
    value, low, high = result.value, result.low, result.high
    if is_complement:
        value, low, high = (None if v is None else 1 - v for v in (value, high, low))
    return Agreement(
        codebook=book,
        code=code,
        coefficient=name,
        raters=(rater,),
        value=value,
        low=low,
        high=high,
        n_units=result.n_units,
        n_ratings=result.n_ratings,
        population=where,
        reason=result.reason,
    )


_ANY = "SELECT 1 FROM ratings WHERE codebook = ? AND repeat > 0 LIMIT 1"
_REPEATS = """
    WITH sessions AS (SELECT t.id FROM trajectories t WHERE {where})
    SELECT trajectory_id, event, code, rater, rater_version, repeat, label
    FROM answered_ratings
    WHERE codebook = ? AND NOT opening AND label IS NOT NULL
        AND (rater, rater_version, code) IN (
            SELECT (rater, rater_version, code) FROM current_ratings
            WHERE codebook = ? AND repeat > 0 AND NOT retracted AND trajectory_id IN (FROM sessions)
        )
        AND trajectory_id IN (FROM sessions)
    ORDER BY trajectory_id, event
"""
