"""Process metrics where not every unit is rated: estimated by design, with what the rest could make of it.

A session's confirmations, halts and initiatives are counted over its units. Where some have no answer (a
human sample, an error, `unclear`) those that have one stand for them: with the inclusion probability of the
sample that holds them all, else as if the answered ones were a random part of all. A session without units
has none to confirm and counts 0 whoever rates, unless its log has no messages at all: that is missing. One
whose units are all unrated is estimated like the rest.

* Counts: N̄·p̂, the units a session times the weighted share of positives among answered units: the combined
  ratio estimator (Cochran 1977, 6.11). Its linearised values z = p̂N + (k − p̂n)·ΣN/Σn have its mean and its
  variance.
* Entropy is no sum, so expanding counts would bias it to 0 (half of two against two often looks like two
  against none). Each unrated unit of a party is drawn from the beta-binomial that the answered units of all
  sessions tell of that kind of party (moments; Williams 1982), and the entropy is averaged over the draws.
  The error is the jackknife's over groups of sessions, with everything estimated anew. A session of which
  nothing is rated is missing, unless it is 0 whatever its labels are: as `released` where a party is silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics.estimate import Estimate, Totals, estimate, totals
from ...annotation.statistics.intervals import Floats, Ints
from ..store import execute
from ..store.connection import insert_columns
from .designs import CREATE_UNITS, OF_UNIT, design, drawings
from .totals import CLUSTER, SILENT, bounds_of

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
THIN = "few of the sessions' units are rated: too low, and its interval too narrow"
LEAST_RATED = 0.4
"""The share of units within sessions below which an entropy is marked as that."""
MANY = 10
"""Parties of a team, of which all ways to take what they may are tried."""
_DRAWS = 20_000
_GROUPS = 20
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Counts:
    """One codebook and rater over sessions (S,) and their parties (S, P): units, answered and positive ones.

    `weighted_answered` and `weighted_positives` are the last two by 1/π, `member` (S, P) tells parties from
    filling, `human` (S, P) people from agents. `spoken` (S,) are sessions with a message by anybody,
    `beyond` (S,) those that no sample could take.
    """

    units: Floats
    answered: Floats
    positives: Floats
    weighted_answered: Floats
    weighted_positives: Floats
    member: Bools
    human: Bools
    spoken: Bools
    clusters: NDArray[Any]
    beyond: Bools
    design: str

    def where(self, sessions: NDArray[Any]) -> Counts:
        """The same for some sessions."""
        own = {name: value[sessions] for name, value in vars(self).items() if name != "design"}
        return Counts(**own, design=self.design)


@dataclass(frozen=True)
class Process:
    """A metric of one rater over a group of sessions.

    `answered` is the share of units with an answer; the value of the sessions seen lies in `bound_low` to
    `bound_high` whatever the others are. `sample` is what `compare` needs, None where there is no value.
    """

    found: Estimate
    missing: int
    answered: float | None
    bound_low: float | None
    bound_high: float | None
    design: str
    sample: Totals | None = None


def incomplete(connection: Any) -> set[tuple[str, str]]:
    """(metric, rater) where some unit of the `selected` trajectories has no answer by that rater."""
    query = """
        SELECT codebook, rater FROM processed p JOIN selected t ON t.id = p.trajectory_id
        GROUP BY ALL HAVING sum(answered) < sum(units)
    """
    metric = {codebook: name for name, codebook in CODEBOOKS.items()}
    return {(metric[book], rater) for book, rater in connection.execute(query).fetchall() if book in metric}


def estimates(
    connection: Any,
    metric: str,
    rater: str,
    groups: Sequence[tuple[str | None, ...]],
    *,
    definition: str | None = "released",
) -> Iterator[tuple[tuple[str | None, ...], Process]]:
    """(Key values, estimate) of each of the `groups` that `places` numbered last."""
    counts, place, _ = _counts(connection, CODEBOOKS[metric], rater)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(groups) + 1))
    for group, start, end in zip(groups, ends, ends[1:], strict=False):
        if end > start:
            own = counts.where(order[start:end])
            is_entropy = metric == "initiative_entropy"
            yield group, entropy(own, definition) if is_entropy else events(own, metric)


def places(connection: Any, keys: Sequence[str], *, instances: bool) -> list[tuple[str | None, ...]]:
    """The groups' key values; the table `places` numbers `selected` trajectories, groups and clusters.

    See `totals.groups` for keys and instances.
    """
    cluster = CLUSTER if instances else "hash(t.id)"
    names = "".join(f", {expression} AS key_{i}" for i, expression in enumerate(keys))
    columns = [f"key_{i}" for i in range(len(keys))]
    same = " AND ".join(f"t.{name} IS NOT DISTINCT FROM g.{name}" for name in columns) or "true"
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE keyed AS "
        "SELECT t.id, row_number() OVER (ORDER BY t.id) - 1 AS session, "
        f"{cluster} AS cluster{names} FROM selected t"
    )
    listed = ", ".join(columns) or "0"
    rows = connection.execute(f"SELECT DISTINCT {listed} FROM keyed ORDER BY ALL").fetchall()
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE places AS SELECT t.id, t.session, t.cluster, g.place FROM keyed t "
        f"JOIN (SELECT row_number() OVER (ORDER BY {listed}) - 1 AS place, * "
        f"FROM (SELECT DISTINCT {listed} FROM keyed)) g ON {same}"
    )
    return [tuple(row) if columns else () for row in rows]


def ranges(connection: Any, metric: str, rater: str) -> dict[str, tuple[float, float | None, float | None]]:
    """Id of each selected trajectory with unrated units -> share answered, and least and greatest value."""
    places(connection, (), instances=False)
    counts, _, numbers = _counts(connection, CODEBOOKS[metric], rater)
    ids = dict(connection.execute("SELECT session, id FROM places").fetchall())
    rest = np.flatnonzero((counts.answered < counts.units).any(1))
    own = counts.where(rest)
    units, answered = own.units.sum(1), own.answered.sum(1)
    if metric == "initiative_entropy":
        lows, highs, told = _possible(own)
    else:
        lows, highs = own.positives.sum(1), own.positives.sum(1) + units - answered
        told = np.asarray(own.human.any(1))
    limits = zip((answered / units).tolist(), lows.tolist(), highs.tolist(), told.tolist(), strict=True)
    return {
        ids[int(numbers[session])]: (share, low if known else None, high if known else None)
        for session, (share, low, high, known) in zip(rest.tolist(), limits, strict=True)
    }


_COUNTS = """
    WITH wanted AS (SELECT ? AS book, ? AS who), reached AS (
        SELECT DISTINCT trajectory_id FROM rated_units JOIN drawn_with USING (place) WHERE framed
    ), drawn AS (
        SELECT c.trajectory_id, c.actor, sum(1 / i.probability) AS answered,
            coalesce(sum(1 / i.probability) FILTER (c.label = c.positive), 0) AS positives, count(*) AS units
        FROM counted_ratings c JOIN wanted ON c.codebook = book AND c.rater = who
        JOIN rated_units u ON u.trajectory_id = c.trajectory_id AND u.event IS NOT DISTINCT FROM c.event
        JOIN drawn_with i ON i.place = u.place AND NOT isnan(i.probability)
        WHERE c.label <> 'unclear' AND NOT c.opening
        GROUP BY ALL
    )
    SELECT g.session, p.seat, g.place, g.cluster, p.party = 'human' AS human,
        p.units, p.answered, p.positives, coalesce(d.answered, 0) AS weighted_answered,
        p.spoken, EXISTS (FROM drawn_with) AND f.trajectory_id IS NULL AS beyond,
        coalesce(d.positives, 0) AS weighted_positives, coalesce(d.units, 0) AS drawn
    FROM processed p JOIN wanted ON p.codebook = book AND p.rater = who
    JOIN places g ON g.id = p.trajectory_id
    LEFT JOIN drawn d ON d.trajectory_id = p.trajectory_id AND d.actor = p.participant
    LEFT JOIN reached f ON f.trajectory_id = p.trajectory_id
"""
_ASKED = f"""
    SELECT DISTINCT u.place FROM counted_ratings r {OF_UNIT}
    WHERE r.codebook = ? AND r.rater = ? AND NOT r.opening
"""


def _weigh(connection: Any, codebook: str, rater: str) -> None:
    """Have `drawn_with` hold with what probability the samples that a rater has begun took a unit (nan: they
    did not), and whether they could; nothing where there is no sample.
    """
    execute(connection, CREATE_UNITS, [codebook])
    ((units,),) = connection.execute("SELECT count(*) FROM rated_units").fetchall()
    asked = np.zeros(units, dtype=bool)
    asked[execute(connection, _ASKED, [codebook, rater]).fetchnumpy()["place"]] = True
    samples = drawings(connection, codebook, units)
    own = design(samples, asked)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE drawn_with (place INTEGER, probability DOUBLE, framed BOOLEAN)"
    )
    columns = {"place": np.arange(units), "probability": own.inclusion, "framed": own.framed}
    if samples and units:
        insert_columns(connection, "drawn_with", {name: own.tolist() for name, own in columns.items()})


def _counts(connection: Any, codebook: str, rater: str) -> tuple[Counts, Ints, NDArray[Any]]:
    """The counts of every session in `places`, the place of its group, and its number."""
    _weigh(connection, codebook, rater)
    rows = execute(connection, _COUNTS, [codebook, rater]).fetchnumpy()
    # Numbers of sessions that have units; others are in no row.
    numbers, session = np.unique(rows["session"], return_inverse=True)
    column = rows["seat"].astype(np.int64)
    shape = (len(numbers), int(column.max(initial=0)) + 1)

    def wide(name: str) -> Floats:
        table = np.zeros(shape)
        table[session, column] = rows[name].astype(np.float64)
        return table

    answered = wide("answered")
    sampled = bool((wide("drawn") == answered).all())
    weighted = ("weighted_answered", "weighted_positives") if sampled else ("answered", "positives")
    member = np.zeros(shape, dtype=bool)
    member[session, column] = True
    place, clusters = np.zeros(shape[0], dtype=np.int64), np.zeros(shape[0], dtype=np.uint64)
    place[session], clusters[session] = rows["place"], rows["cluster"]
    beyond, spoken = np.zeros((2, shape[0]), dtype=bool)
    spoken[session] = rows["spoken"]
    if sampled:
        beyond[session] = rows["beyond"]
        beyond &= wide("units").sum(1) > 0  # a session without units is in no frame
    counts = Counts(
        units=wide("units"),
        answered=answered,
        positives=wide("positives"),
        weighted_answered=wide(weighted[0]),
        weighted_positives=wide(weighted[1]),
        member=member,
        human=wide("human") > 0,
        spoken=spoken,
        clusters=clusters,
        beyond=beyond,
        design=BY_SAMPLE if sampled else BY_SHARE,
    )
    return counts, place, numbers


def events(counts: Counts, metric: str) -> Process:
    """Positives a session: confirmations or halts. Teams without a human and logs without messages
    have neither, and are missing.
    """
    there = np.asarray(counts.human.any(1) & counts.spoken)
    own = counts.where(there)
    missing, n = int((~there).sum()), int(there.sum())
    share, design = _answered(own)
    if not n:
        reason = WORDLESS if counts.human.any() else "no human in the team"
        return _nothing(reason, missing, share, (None, None), design)
    units, answered, positives = (float(x.sum()) for x in (own.units, own.answered, own.positives))
    bounds = positives / n, (positives + units - answered) / n
    if units and not answered:
        return _nothing(f"none of {units:.0f} units is rated", missing + n, share, bounds, design)
    sample = totals(expanded(own), clusters=own.clusters, bounds=bounds_of(metric))
    return Process(estimate(sample), missing, share, *bounds, design, sample)


def _nothing(
    reason: str, missing: int, share: float | None, bounds: tuple[float | None, float | None], design: str
) -> Process:
    return Process(Estimate(None, None, None, 0, 0, reason=reason), missing, share, *bounds, design)


def expanded(counts: Counts) -> Floats:
    """(S,) values with the mean and the variance of the combined ratio estimator of positives a session."""
    units = counts.units.sum(1)
    answered, positives = counts.weighted_answered.sum(1), counts.weighted_positives.sum(1)
    if not answered.sum():
        return np.zeros(len(units))
    share = positives.sum() / answered.sum()
    values: Floats = share * units + (positives - share * answered) * units.sum() / answered.sum()
    return values


def _answered(counts: Counts) -> tuple[float | None, str]:
    units, answered = float(counts.units.sum()), float(counts.answered.sum())
    share = answered / units if units else None
    if share in (None, 1.0):
        return share, EVERY
    beyond = int(counts.beyond.sum())
    words = f"; {beyond} sessions that no sample could take are taken for such ones" if beyond else ""
    return share, counts.design + words


def entropy(counts: Counts, definition: str | None = "released") -> Process:
    """The mean initiative entropy of the sessions with a rated unit and a team of two or more.

    Sessions in which nobody took the initiative count 0 as `released`, and are left out on `paper`. So a
    silent party, which makes 0 of all else, needs no rating as `released`; on `paper` it does.
    """
    released = definition == "released"
    share, design = _answered(counts)
    if released:
        counts = _open(counts)
    team = np.asarray((counts.member.sum(1) > 1) & counts.spoken)
    bounds = possible(counts.where(team), released)
    own = counts.where(team & ((counts.answered.sum(1) > 0) | (counts.units.sum(1) == 0)))
    if reason := _untold(counts, team):
        return _nothing(reason, len(team), share, bounds, design)
    y, x = _terms(own, released)
    if not x.sum():
        return _nothing(SILENT, len(team), share, bounds, design)
    sample = totals(y, x, clusters=own.clusters, bounds=bounds_of("initiative_entropy"))
    missing = len(team) - int((x > 0).sum())
    result = estimate(sample, _jackknifed(own, released))
    if own.answered.sum() < LEAST_RATED * own.units.sum():
        result = replace(result, note=THIN)
    return Process(result, missing, share, *bounds, design, sample)


def _open(counts: Counts) -> Counts:
    """Without unrated units that decide nothing: a member of their session surely took no initiative."""
    idle = (counts.member & (counts.positives + counts.units == counts.answered)).any(1)
    return replace(counts, units=np.where(idle[:, None], counts.answered, counts.units))


def _terms(counts: Counts, released: bool) -> tuple[Floats, Floats]:
    """(S,) numerators and denominators of the mean."""
    y, x = expected(counts)
    return y, np.ones(len(x)) if released else x


def _untold(counts: Counts, team: Bools) -> str | None:
    """Why no entropy can be estimated."""
    if not team.any():
        return WORDLESS if (counts.member.sum(1) > 1).any() else "a team of one has no initiative to share"
    for human, kind in ((True, "human"), (False, "agent")):
        own = counts.member & (counts.human == human) & team[:, None]
        if (units := float(counts.units[own].sum())) and not counts.answered[own].sum():
            return f"none of {units:.0f} utterances of {kind}s is rated"
    return None


def entropies(counts: Floats, member: Bools) -> tuple[Floats, Bools]:
    """Co-Gym's Eq. 2 of initiatives (..., P), and whether anybody took one; 0 where a member took none."""
    total = counts.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(counts > 0, counts * np.log(counts), 0.0).sum(-1)
        h = (np.log(total) - logs / total) / np.log(member.sum(-1))
    silent = ((counts == 0) & member).any(-1)
    return np.where((total > 0) & ~silent, h, 0.0), total > 0


def expected(counts: Counts, seed: int = 0) -> tuple[Floats, Floats]:
    """(S,) the entropy expected where it is defined, and the chance that it is, given the units rated."""
    whole = (counts.answered == counts.units).all(1)
    y, defined = entropies(counts.positives, counts.member)
    x = defined.astype(np.float64)
    if whole.all():
        return y, x
    rest = counts.where(~whole)
    rng = np.random.default_rng(seed)
    draws = int(np.clip(_DRAWS // len(rest.units), 8, 1000))
    a, b = np.ones(rest.units.shape), np.ones(rest.units.shape)
    for human in (False, True):
        own, ours = counts.member & (counts.human == human), rest.member & (rest.human == human)
        share, mass = _prior(counts, own)
        a[ours], b[ours] = mass * share, mass * (1 - share)
    unrated = rest.units - rest.answered
    chance = rng.beta(a + rest.positives, b + rest.answered - rest.positives, size=(draws, *a.shape))
    drawn = rest.positives + rng.binomial(unrated.astype(np.int64), chance)
    h, some = entropies(drawn, np.broadcast_to(rest.member, drawn.shape))
    y[~whole], x[~whole] = h.mean(0), some.mean(0)
    return y, x


def _prior(counts: Counts, own: Bools) -> tuple[float, float]:
    """The share of positives among a party's answered units, and the mass of its beta-binomial (Williams)."""
    weighted = counts.weighted_answered[own].sum()
    share = (counts.weighted_positives[own].sum() + 0.5) / (weighted + 1)
    n, k = counts.answered[own], counts.positives[own]
    n, k = n[n > 0], k[n > 0]
    total = n.sum()
    if len(n) < 2 or total <= len(n):
        return float(share), 2.0
    own_share = k / n
    between = float((n * (own_share - k.sum() / total) ** 2).sum()) / (len(n) - 1)
    within = float((n * own_share * (1 - own_share)).sum()) / (total - len(n))
    size = (total - (n**2).sum() / total) / (len(n) - 1)
    spread = between + (size - 1) * within
    alike = (between - within) / spread if spread > 0 else 0.0
    return float(share), 1 / float(np.clip(alike, 0.02, 0.9)) - 1


def _jackknifed(counts: Counts, released: bool) -> float | None:
    """The standard error over groups of clusters; None where all units are rated, or one cluster is there."""
    if bool((counts.answered == counts.units).all()):
        return None
    _, cluster = np.unique(counts.clusters, return_inverse=True)
    number = min(_GROUPS, int(cluster.max(initial=-1)) + 1)
    if number < 2:
        return None
    values = []
    for group in range(number):
        y, x = _terms(counts.where(cluster % number != group), released)
        if x.sum():
            values.append(y.sum() / x.sum())
    n = len(values)
    return sqrt((n - 1) / n * float(((np.array(values) - np.mean(values)) ** 2).sum())) if n > 1 else None


def possible(counts: Counts, released: bool = False) -> tuple[float | None, float | None]:
    """The least and the greatest mean entropy that unrated units allow; None where nobody can have any."""
    lows, highs, may = _possible(counts)
    if released and len(may):
        return float(np.where(counts.positives.sum(1) > 0, lows, 0).mean()), float(highs.mean())
    sure = counts.positives.sum(1) > 0
    if not may.any():
        return None, None
    held, n = float(highs[sure].sum()), int(sure.sum())
    for value in np.sort(highs[may & ~sure])[::-1]:  # a session in which nobody did need not count
        if n and value <= held / n:
            break
        held, n = held + float(value), n + 1
    return float(np.where(sure, lows, 0.0)[may].mean()), held / n


def _possible(counts: Counts) -> tuple[Floats, Floats, Bools]:
    """(S,) the least and the greatest entropy of each session, and whether it can have any."""
    least, most = counts.positives, counts.positives + counts.units - counts.answered
    lows = [entropies(corner, counts.member)[0] for corner in _corners(least, most)]
    return np.min(lows, axis=0), _highest(least, most, counts.member), np.asarray(most.sum(1) > 0)


def _corners(least: Floats, most: Floats) -> Iterator[Floats]:
    """Counts (S, P) at which every party took all that it may have or no more than it surely did.

    Entropy is quasi-concave in counts, so that it is least at one of these. Of more than MANY parties only
    those at which one took all.
    """
    parties = least.shape[1]
    chosen = product((False, True), repeat=parties) if parties <= MANY else np.eye(parties, dtype=bool)
    for took in chosen:
        yield np.where(np.asarray(took), most, least)


def _highest(least: Floats, most: Floats, member: Bools) -> Floats:
    """(S,) the greatest entropy that counts, whole or not, can have: every party as near to one level as it
    can be.

    Between two of the parties' ends the best level is exp(L/T), T being the sum of the counts c that are held
    at an end, and L that of c·ln c.
    """
    ends = np.sort(np.concatenate([least, most, np.ones((len(least), 1))], axis=1), axis=1)
    levels = [ends]
    for level in ((ends[:, 1:] + ends[:, :-1]) / 2).T[:, :, None]:
        held = np.where((least < level) & (level < most), 0.0, np.clip(level, least, most))
        logs = np.where(held > 0, held * np.log(np.maximum(held, 1.0)), 0.0).sum(1)
        levels.append(np.exp(logs / np.maximum(held.sum(1), 1.0))[:, None])
    tried = [entropies(np.clip(level[:, None], least, most), member)[0] for level in np.hstack(levels).T]
    best: Floats = np.max(tried, axis=0)
    return best
