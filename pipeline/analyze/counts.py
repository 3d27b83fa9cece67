"""The units of sessions and their parties, how many of them are answered, and how many positive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics.estimate import Estimate, Totals
from ...annotation.statistics.intervals import Floats, Ints
from ...schemas.text import count_of
from ..store import execute
from ..store.connection import insert_columns
from .designs import Designs

CODEBOOKS = {
    "initiative_entropy": "initiative",
    "effective_confirmations": "confirmation",
    "halting_messages": "halting",
}
"""Metrics that rest on ratings -> their codebook."""
EVERY = "every unit rated"
BY_SAMPLE = "units weighted by the sample's inclusion probability"
BY_SHARE = "units weighted by the share answered"
WORDLESS = "no messages"
_ROUNDING = 1e-9
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Counts:
    """One codebook and rater over sessions (S,) and their parties (S, P): numbers of units, of answers and of
    positives.

    `weighted_answers` and `weighted_positives` sum 1/π over the last two. `standing_answers` and
    `standing_positives` sum how many unanswered units each stands for, scaled to as many as were answered.
    `member` (S, P) tells parties from filling, `human` (S, P) people from agents. `has_messages` (S,) are
    sessions with a message by anybody, `beyond` (S,) those that no sample could take, and `inclusion` (S,) is
    the probability with which samples took a session or some unit of it, nan where that is not known.
    """

    units: Floats
    answers: Floats
    positives: Floats
    weighted_answers: Floats
    weighted_positives: Floats
    standing_answers: Floats
    standing_positives: Floats
    member: Bools
    human: Bools
    has_messages: Bools
    clusters: NDArray[Any]
    beyond: Bools
    inclusion: Floats
    design: str

    def where(self, sessions: NDArray[Any]) -> Counts:
        """The same for some sessions."""
        columns = {name: value[sessions] for name, value in vars(self).items() if name != "design"}
        return Counts(**columns, design=self.design)


@dataclass(frozen=True)
class Process:
    """A metric of one rater over a group of sessions.

    `answered` is the share of units with an answer; the value of the sessions seen lies in `bound_low` to
    `bound_high` whatever the others are. `sample` is what `compare` needs, None where there is no value, and
    `untested` why there is no test of it.
    """

    estimate: Estimate
    missing: int
    answered: float | None
    bound_low: float | None
    bound_high: float | None
    design: str
    sample: Totals | None = None
    untested: str | None = None


def places(connection: Any, keys: Sequence[str], *, cluster: str | None) -> list[tuple[str | None, ...]]:
    """The groups' key values; the table `places` numbers `selected` trajectories, groups and clusters.

    See `totals.groups` for keys and clusters.
    """
    cluster = cluster or "hash(t.id)"
    names = "".join(f", {expression} AS key_{i}" for i, expression in enumerate(keys))
    columns = [f"key_{i}" for i in range(len(keys))]
    same = " AND ".join(f"t.{name} IS NOT DISTINCT FROM g.{name}" for name in columns) or "true"
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE keyed AS "
        "SELECT t.id, row_number() OVER (ORDER BY t.id) - 1 AS session, "
        f"{cluster} AS cluster{names} FROM selected t"
    )
    key_list = ", ".join(columns) or "0"
    rows = connection.execute(f"SELECT DISTINCT {key_list} FROM keyed ORDER BY ALL").fetchall()
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE places AS SELECT t.id, t.session, t.cluster, g.place FROM keyed t "
        f"JOIN (SELECT row_number() OVER (ORDER BY {key_list}) - 1 AS place, * "
        f"FROM (SELECT DISTINCT {key_list} FROM keyed)) g ON {same}"
    )
    return [tuple(row) if columns else () for row in rows]


_COUNTS = """
    WITH wanted AS (SELECT ? AS book, ? AS who), reached AS (
        SELECT trajectory_id, bool_or(framed) AS framed, min(probability) AS whole,
            bool_or(isnan(probability)) AS rest, bool_or(framed AND chance = 0) AS untold,
            1 - exp(sum(ln(1 - least(chance, 1 - 1e-12)))) AS some
        FROM drawn_with GROUP BY ALL
    ), wholly AS (SELECT bool_and(NOT rest) AS wholly FROM reached WHERE NOT isnan(whole)), drawn AS (
        SELECT c.trajectory_id, c.actor, sum(1 / i.probability) AS answered,
            coalesce(sum(1 / i.probability) FILTER (c.label = c.positive), 0) AS positives, count(*) AS units
        FROM counted_ratings c JOIN wanted ON c.codebook = book AND c.rater = who
        JOIN drawn_with i ON i.trajectory_id = c.trajectory_id AND i.event IS NOT DISTINCT FROM c.event
            AND NOT isnan(i.probability)
        WHERE c.label <> 'unclear' AND NOT c.opening
        GROUP BY ALL
    )
    SELECT g.session, p.seat, g.place, g.cluster, p.party = 'human' AS human,
        p.units, p.answered, p.positives, coalesce(d.answered, 0) AS weighted_answered,
        p.spoken, EXISTS (FROM drawn_with) AND NOT coalesce(f.framed, false) AS beyond,
        coalesce(d.positives, 0) AS weighted_positives, coalesce(d.units, 0) AS drawn,
        CASE WHEN wholly THEN coalesce(f.whole, 'nan') WHEN NOT f.untold THEN f.some ELSE 'nan'
            END AS inclusion
    FROM processed p JOIN wanted ON p.codebook = book AND p.rater = who
    JOIN places g ON g.id = p.trajectory_id CROSS JOIN wholly
    LEFT JOIN drawn d ON d.trajectory_id = p.trajectory_id AND d.actor = p.participant
    LEFT JOIN reached f ON f.trajectory_id = p.trajectory_id
"""


_CHANCES = "(place INTEGER, probability DOUBLE, chance DOUBLE, framed BOOLEAN)"
_CREATE_DRAWN = """
    CREATE OR REPLACE TEMP TABLE drawn_with AS
    SELECT u.trajectory_id, u.event, c.* EXCLUDE (place) FROM rated_units u JOIN chances c USING (place)
"""
_CREATE_NONE_DRAWN = """
    CREATE OR REPLACE TEMP TABLE drawn_with
    (trajectory_id VARCHAR, event INTEGER, probability DOUBLE, chance DOUBLE, framed BOOLEAN)
"""


def _weigh(designs: Designs, codebook: str, rater: str) -> None:
    """Fill `drawn_with`: with what probability the samples that a rater has begun took a unit (nan: they did
    not), with what they could have, and whether they could. It is empty where there is no sample."""
    of_rater = designs.of(codebook, rater)
    if of_rater is None:
        designs.connection.execute(_CREATE_NONE_DRAWN)
        return
    sample_design, _ = of_rater
    columns = {
        "probability": sample_design.inclusion,
        "chance": sample_design.chance,
        "framed": sample_design.framed,
    }
    columns = {"place": np.arange(len(sample_design.inclusion)), **columns}
    designs.connection.execute(f"CREATE OR REPLACE TEMP TABLE chances {_CHANCES}")
    values = {name: column.tolist() for name, column in columns.items()}
    insert_columns(designs.connection, "chances", values)
    designs.connection.execute(_CREATE_DRAWN)


def session_counts(designs: Designs, codebook: str, rater: str) -> tuple[Counts, Ints, NDArray[Any]]:
    """The counts of every session in `places`, the place of its group, and its number."""
    _weigh(designs, codebook, rater)
    rows = execute(designs.connection, _COUNTS, [codebook, rater]).fetchnumpy()
    # Numbers of sessions that have units; others are in no row.
    numbers, session = np.unique(rows["session"], return_inverse=True)
    column = rows["seat"].astype(np.int64)
    shape = (len(numbers), int(column.max(initial=0)) + 1)

    def wide(name: str) -> Floats:
        table = np.zeros(shape)
        table[session, column] = rows[name].astype(np.float64)
        return table

    units, answers, positives = wide("units"), wide("answered"), wide("positives")
    is_sampled = bool((wide("drawn") == answers).all())
    weighted_sums = answers, positives
    if is_sampled:
        weighted_sums = wide("weighted_answered"), wide("weighted_positives")
    member = np.zeros(shape, dtype=bool)
    member[session, column] = True
    place, clusters = np.zeros(shape[0], dtype=np.int64), np.zeros(shape[0], dtype=np.uint64)
    place[session], clusters[session] = rows["place"], rows["cluster"]
    beyond, has_messages = np.zeros((2, shape[0]), dtype=bool)
    has_messages[session] = rows["spoken"]
    inclusion = np.full(shape[0], np.nan)
    if is_sampled:
        inclusion[session] = rows["inclusion"]
        beyond[session] = rows["beyond"]
        beyond &= units.sum(1) > 0  # a session without units is in no frame
    standing = standing_of(units[~beyond].sum(), answers, positives, weighted_sums)
    counts = Counts(
        units=units,
        answers=answers,
        positives=positives,
        weighted_answers=weighted_sums[0],
        weighted_positives=weighted_sums[1],
        standing_answers=standing[0],
        standing_positives=standing[1],
        member=member,
        human=wide("human") > 0,
        has_messages=has_messages,
        clusters=clusters,
        beyond=beyond,
        inclusion=inclusion,
        design=BY_SAMPLE if is_sampled else BY_SHARE,
    )
    return counts, place, numbers


def standing_of(
    units: float, answers: Floats, positives: Floats, weighted_sums: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """(S, P) each: how many of the `units` without an answer the answered ones and the positive ones stand
    for, both scaled to sum to the answers.

    Each answer stands for 1/πr − 1 units, r being the share of those drawn that were answered: a sample drawn
    half by a judge's label holds more positive units than there are among the rest. `weighted_sums` are those
    of 1/π over answered and over positive units.
    """
    inverse, inverse_positives = weighted_sums
    total = float(inverse.sum())
    more = max(1.0, units / total) if total else 1.0
    stands, yes = more * inverse - answers, more * inverse_positives - positives
    if stands.sum() <= _ROUNDING * answers.sum():  # all units have an answer
        return answers, positives
    scale = answers.sum() / stands.sum()
    is_there = stands > _ROUNDING * answers
    return np.where(is_there, stands * scale, 0.0), np.where(is_there, yes * scale, 0.0)


def nothing(
    reason: str, missing: int, share: float | None, bounds: tuple[float | None, float | None], design: str
) -> Process:
    """No value, and why."""
    return Process(Estimate(None, None, None, 0, 0, reason=reason), missing, share, *bounds, design)


def shares(counts: Counts) -> tuple[float | None, str]:
    """The share of units with an answer, and in words how these stand for the others."""
    units, answers = float(counts.units.sum()), float(counts.answers.sum())
    share = answers / units if units else None
    if share in (None, 1.0):
        return share, EVERY
    beyond = int(counts.beyond.sum())
    words = (
        f"; {count_of(beyond, 'session', 'sessions')} that no sample could take "
        f"{'is taken for such a one' if beyond == 1 else 'are taken for such ones'}"
        if beyond
        else ""
    )
    return share, counts.design + words
