"""How units came to people: with what probability the samples of a codebook took each.

A rater may have seen the units of some samples alone, so that raters' designs may differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics.intervals import Floats, Ints
from ...schemas import FIELDS
from ..store import dictionaries, execute

Bools = NDArray[np.bool_]
Way = frozenset[int]
"""Places of samples that together brought a unit to somebody."""
BOUND = 3.0
"""A rater follows the samples where it was asked about drawn units more often than chance would have it, by
more than so many standard errors."""
CREATE_UNITS = """
    CREATE OR REPLACE TEMP TABLE rated_units AS
    SELECT trajectory_id, event, row_number() OVER (ORDER BY trajectory_id, event) - 1 AS place,
        dense_rank() OVER (ORDER BY trajectory_id) - 1 AS trajectory
    FROM codebook_units WHERE codebook = ? AND NOT opening
"""
"""Numbers the units of a codebook, the opening query apart; samples and ratings are looked up in it."""
OF_UNIT = """
    JOIN rated_units u ON u.trajectory_id = r.trajectory_id AND u.event IS NOT DISTINCT FROM r.event
"""


@dataclass(frozen=True, eq=False)
class Drawing:
    """One sample over the units (units,) of its codebook.

    `in_sample` says which it took, `chance` with what probability it could take each (0: not at all), `frame`
    which it could take (None: not noted, so it may have been any), `strata` numbers those that it took fixed
    numbers of, −1 where it has none or where they are not known of every unit that it could take.
    """

    in_sample: Bools
    chance: Floats
    frame: Bools | None
    strata: Ints

    def where(self, units: Bools) -> Drawing:
        """The same for some of the units."""
        frame = None if self.frame is None else self.frame[units]
        return Drawing(self.in_sample[units], self.chance[units], frame, self.strata[units])


@dataclass(frozen=True, eq=False)
class Design:
    """The samples that count for somebody's labels, over units (units,).

    `inclusion` is the probability with which one of them took a unit, nan where none did, `chance` that with
    which one could, 0 where it is not known, `strata` numbers those of the design, −1 where it has none, and
    `framed` says what the samples could take: nothing is known of sessions that came later, or that `sample
    --where` left out. `has_answers` tells whether any unit that they took was answered.
    """

    inclusion: Floats
    chance: Floats
    strata: Ints
    framed: Bools
    has_answers: bool

    def where(self, units: Bools) -> Design:
        """The same for some of the units."""
        return Design(
            self.inclusion[units],
            self.chance[units],
            self.strata[units],
            self.framed[units],
            self.has_answers,
        )


def drawings(connection: duckdb.DuckDBPyConnection, codebook: str, units: int) -> list[Drawing]:
    """The samples of a codebook that have probabilities, over the units that `CREATE_UNITS` numbered."""
    heads = dictionaries(connection, _SAMPLES, [codebook])
    return [_drawing(connection, codebook, units, head) for head in heads]


def design(drawings: Sequence[Drawing], is_asked: Bools, among: Bools | None = None) -> Design:
    """The design of the units that a rater, or each of two raters, was asked about (`is_asked`, (units,)).

    Samples are independent: 1 − Π(1 − π), for two π₁ + π₂ − π₁π₂. Of several, one that is not finished counts
    by the share that was asked of what it alone drew, for people are asked in random order; one that nobody
    has begun does not count, unless none is begun. The share is taken `among` the units (units,) that both
    raters could be asked about. Others that were asked lie in several samples, as where each of two raters
    was asked what one sample drew: the fewest samples that hold such are a way to be asked, too, by Π π.
    """
    n = len(is_asked)
    none, everywhere = np.full(n, -1, dtype=np.int64), np.ones(n, dtype=bool)
    nowhere = Design(np.full(n, np.nan), np.zeros(n), none, everywhere, has_answers=False)
    if not drawings:
        return nowhere
    shares = [_share(drawings, number, is_asked, among) for number in range(len(drawings))]
    ways: dict[Way, float] = {frozenset({k}): share for k, share in enumerate(shares) if share > 0}
    ways |= _joint_ways(drawings, is_asked, among, ways)
    active = [drawings[number] for number in sorted(frozenset().union(*ways))]
    ways = ways or {frozenset({number}): 1.0 for number in range(len(drawings))}
    chance = _chance(drawings, ways if len(ways) > 1 else dict.fromkeys(ways, 1.0))
    in_sample = np.any([_holds(drawings, way) for way in ways], axis=0)
    samples = active or list(drawings)
    frames = [one.frame for one in active if one.frame is not None]
    return Design(
        inclusion=np.where(in_sample, chance, np.nan),
        chance=chance,
        strata=samples[0].strata if len(samples) == 1 else nowhere.strata,
        framed=np.any(frames, axis=0) if active and len(frames) == len(active) else nowhere.framed,
        has_answers=bool((is_asked & in_sample).any()),
    )


class Designs:
    """The designs of what raters were asked, within one reading of a store. The units of a codebook are
    numbered, and its samples read, once for all its raters that are asked for in turn."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._codebook: str | None = None
        self._drawings: list[Drawing] = []
        self._units = 0

    def of(self, codebook: str, rater: str) -> tuple[Design, Bools] | None:
        """The design of what a rater was asked by a codebook, and which units that was; None without samples
        that have probabilities. It leaves the units in `rated_units`."""
        if codebook != self._codebook:
            self._codebook, self._drawings = codebook, self._read(codebook)
        if not self._drawings:
            return None
        is_asked = np.zeros(self._units, dtype=bool)
        is_asked[execute(self.connection, _QUESTIONS, [codebook, rater]).fetchnumpy()["place"]] = True
        return design(self._drawings, is_asked), is_asked

    def _read(self, codebook: str) -> list[Drawing]:
        if not dictionaries(self.connection, _SAMPLES, [codebook]):
            return []
        execute(self.connection, CREATE_UNITS, [codebook])
        ((self._units,),) = self.connection.execute("SELECT count(*) FROM rated_units").fetchall()
        return drawings(self.connection, codebook, self._units) if self._units else []


_QUESTIONS = f"""
    SELECT DISTINCT u.place FROM counted_ratings r {OF_UNIT}
    WHERE r.codebook = ? AND r.rater = ? AND NOT r.opening
"""


def follows_samples(has_answer: Bools, sample_design: Design, clusters: Ints) -> bool:
    """Whether a rater answered units (units,) because samples held them: it knows nothing of the others then.

    So it is where it answered no others, or where the drawn ones, by 1/π, would stand for many more units
    than it answered. `clusters` (units,) are trajectories.
    """
    within = has_answer & sample_design.framed
    in_sample = within & ~np.isnan(sample_design.inclusion)
    if not in_sample.any() or within.sum() == sample_design.framed.sum():
        return False
    weights = 1 / sample_design.inclusion[in_sample]
    more = float(weights.sum() - within.sum())
    if not (within & ~in_sample).any():
        return more > 1e-9 * len(has_answer)  # else the samples took all, whoever spoke of what
    sums = np.bincount(clusters[in_sample], weights=weights)
    variances = np.bincount(clusters[in_sample], weights=weights * (1 - sample_design.inclusion[in_sample]))
    error = sqrt(float(sums @ variances))
    return more > BOUND * error > 0


def _joint_ways(
    drawings: Sequence[Drawing], is_asked: Bools, among: Bools | None, ways: Collection[Way]
) -> dict[Way, float]:
    """The least sets of samples that hold units that were asked (units,) beside the `ways`, with the share
    asked of what just these drew."""
    in_sample = np.array([one.in_sample for one in drawings])
    rest = is_asked & in_sample.any(0) & ~np.any([_holds(drawings, way) for way in ways], axis=0)
    patterns = {frozenset(np.flatnonzero(own).tolist()) for own in np.unique(in_sample[:, rest].T, axis=0)}
    joint: dict[Way, float] = {}
    for way in patterns:
        if not any(other < way for other in patterns):
            just_these = (in_sample == np.isin(range(len(drawings)), list(way))[:, None]).all(0)
            joint[way] = float(is_asked[just_these if among is None else just_these & among].mean())
    return joint


def _holds(drawings: Sequence[Drawing], way: Way) -> Bools:
    """(units,) whether all samples of a way took a unit."""
    has_all: Bools = np.all([drawings[number].in_sample for number in way], axis=0)
    return has_all


def _chance(drawings: Sequence[Drawing], ways: Mapping[Way, float]) -> Floats:
    """(units,) the chance of one of the ways, each by the share that was asked of what it brought."""
    chances = [one.chance for one in drawings]
    chances += [np.full(len(chances[0]), share) for share in ways.values()]
    return _any_open(frozenset(way | {len(drawings) + k} for k, way in enumerate(ways)), chances)


def _any_open(ways: frozenset[Way], chances: Sequence[Floats]) -> Floats:
    """(units,) the chance that all members of one of the ways are open, each of which is so by its own:
    Shannon's expansion by a member that several of them share. Each has one of its own: its share."""
    counts = Counter(member for way in ways for member in way)
    shared = [member for member, count in counts.items() if count > 1]
    if not shared:
        closed = [1 - np.prod([chances[member] for member in way], axis=0) for way in ways]
        result: Floats = 1 - np.prod(closed, axis=0)
        return result
    member = min(shared)
    without = frozenset(way for way in ways if member not in way)
    within = frozenset(way - {member} for way in ways)
    own = chances[member]
    return own * _any_open(within, chances) + (1 - own) * _any_open(without, chances)


def _share(drawings: Sequence[Drawing], number: int, is_asked: Bools, among: Bools | None) -> float:
    """The share asked of what a sample alone drew, or of all its units where it drew none alone."""
    sample_units = drawings[number].in_sample
    others = [one.in_sample for place, one in enumerate(drawings) if place != number]
    alone = sample_units & ~np.any(others, axis=0) if others else sample_units
    units = alone if alone.any() else sample_units
    if among is not None:
        units = units & among
    return float(is_asked[units].mean()) if units.any() else 0.0


def _drawing(
    connection: duckdb.DuckDBPyConnection, codebook: str, units: int, head: dict[str, Any]
) -> Drawing:
    key = [codebook, head["sample"]]
    sample_units = execute(connection, _SAMPLE_UNITS, key).fetchnumpy()
    in_sample, chance = np.zeros(units, dtype=bool), np.zeros(units)
    in_sample[sample_units["place"]], chance[sample_units["place"]] = True, sample_units["probability"]
    frame = None
    frame_units = execute(connection, _FRAME, key).fetchnumpy()
    if len(frame_units["place"]):
        chance[frame_units["place"]] = frame_units["probability"]
        frame = np.zeros(units, dtype=bool)
        frame[frame_units["place"]] = True
    strata: Ints = np.full(units, -1, dtype=np.int64)
    if head["fixed"] and frame is not None and set(head["strata"]) <= set(FIELDS):
        strata = _strata(connection, key, head["strata"], in_sample, frame)
    return Drawing(in_sample, chance, frame, strata)


def _strata(
    connection: duckdb.DuckDBPyConnection,
    key: list[str],
    names: Sequence[str],
    in_sample: Bools,
    frame: Bools,
) -> Ints:
    """The stratum of every unit that a sample could take; −1 for all where a session has moved to another
    since."""
    nothing = np.full(len(in_sample), -1, dtype=np.int64)
    texts = " || ' | ' || ".join(f"'{name}=' || coalesce(t.{name}, 'None')" for name in names)
    query = f"""
        SELECT u.place, dense_rank() OVER (ORDER BY {texts}) - 1 AS number, {texts} AS stratum
        FROM rated_units u JOIN trajectories t ON t.id = u.trajectory_id
    """
    units = connection.execute(query).fetchnumpy()
    strata = np.full(len(in_sample), None, dtype=object)
    strata[units["place"]] = units["stratum"]
    sample_units = execute(connection, _SAMPLE_UNITS, key).fetchnumpy()
    if (strata[sample_units["place"]] != sample_units["stratum"]).any():
        return nothing
    numbers = nothing.copy()
    numbers[units["place"]] = units["number"]
    return np.where(frame | in_sample, numbers, -1)


_SAMPLES = """
    SELECT sample, CAST(any_value(design->'$.strata') AS VARCHAR[]) AS strata,
        any_value(design->>'$.method') = 'stratified' AND any_value(design->>'$.unit') = 'unit' AS fixed
    FROM samples WHERE codebook = ? AND probability IS NOT NULL GROUP BY sample ORDER BY sample
"""
_SAMPLE_UNITS = f"""
    SELECT u.place, r.probability, r.stratum FROM samples r {OF_UNIT}
    WHERE r.codebook = ? AND r.sample = ? AND r.probability IS NOT NULL
"""
_FRAME = f"SELECT u.place, r.probability FROM frames r {OF_UNIT} WHERE r.codebook = ? AND r.sample = ?"
