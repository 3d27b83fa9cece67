"""Process metrics where not every unit is rated: estimated by design, with what the rest could make of it.

A session's confirmations, halts and initiatives are counted over its units. Where some have no answer (a
human sample, an error, `unclear`) those that have one stand for them: with the inclusion probability of the
sample that holds them all, else as if the answered ones were a random part of all. A session without units
has none to confirm and counts 0 whoever rates, unless its log has no messages at all: that is missing. One
whose units are all unrated is estimated like the rest.

Counts: N̄·p̂, the units a session times the weighted share of positives among answered units: the combined
ratio estimator (Cochran 1977, 6.11). Its linearised values z = p̂N + (k − p̂n)·ΣN/Σn have its mean and its
variance. Entropy is no sum (entropy.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...annotation.statistics.estimate import estimate, totals
from ...annotation.statistics.intervals import Floats
from .counts import CODEBOOKS, WORDLESS, Counts, Process, nothing, places, session_counts, shares
from .designs import Designs
from .entropy import entropy, extremes
from .totals import bounds_of


def incomplete_metrics(connection: Any) -> set[tuple[str, str]]:
    """(metric, rater) where some unit of the `selected` trajectories has no answer by that rater."""
    query = """
        SELECT codebook, rater FROM processed p JOIN selected t ON t.id = p.trajectory_id
        GROUP BY ALL HAVING sum(answered) < sum(units)
    """
    metric = {codebook: name for name, codebook in CODEBOOKS.items()}
    return {(metric[book], rater) for book, rater in connection.execute(query).fetchall() if book in metric}


def estimates(
    designs: Designs,
    metric: str,
    rater: str,
    groups: Sequence[tuple[str | None, ...]],
    *,
    definition: str | None = "released",
) -> Iterator[tuple[tuple[str | None, ...], Process]]:
    """(Key values, estimate) of each of the `groups` that `places` numbered last."""
    counts, place, _ = session_counts(designs, CODEBOOKS[metric], rater)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(groups) + 1))
    for group, start, end in zip(groups, ends, ends[1:], strict=False):
        if end > start:
            subset = counts.where(order[start:end])
            is_entropy = metric == "initiative_entropy"
            yield group, entropy(subset, definition) if is_entropy else events(subset, metric)


def ranges(designs: Designs, metric: str, rater: str) -> dict[str, tuple[float, float | None, float | None]]:
    """Id of each selected trajectory with unrated units -> share answered, and least and greatest value."""
    places(designs.connection, (), instances=False)
    counts, _, numbers = session_counts(designs, CODEBOOKS[metric], rater)
    ids = dict(designs.connection.execute("SELECT session, id FROM places").fetchall())
    rest = np.flatnonzero((counts.answers < counts.units).any(1))
    subset = counts.where(rest)
    units, answers = subset.units.sum(1), subset.answers.sum(1)
    if metric == "initiative_entropy":
        lows, highs, has_bounds = extremes(subset)
    else:
        lows, highs = subset.positives.sum(1), subset.positives.sum(1) + units - answers
        has_bounds = np.asarray(subset.human.any(1))
    limits = zip((answers / units).tolist(), lows.tolist(), highs.tolist(), has_bounds.tolist(), strict=True)
    return {
        ids[int(numbers[session])]: (share, low if is_bounded else None, high if is_bounded else None)
        for session, (share, low, high, is_bounded) in zip(rest.tolist(), limits, strict=True)
    }


def events(counts: Counts, metric: str) -> Process:
    """Positives a session: confirmations or halts. Teams without a human and logs without messages
    have neither, and are missing.
    """
    there = np.asarray(counts.human.any(1) & counts.has_messages)
    subset = counts.where(there)
    missing, n = int((~there).sum()), int(there.sum())
    share, design = shares(subset)
    if not n:
        reason = WORDLESS if counts.human.any() else "no human in the team"
        return nothing(reason, missing, share, (None, None), design)
    units, answers, positives = (float(x.sum()) for x in (subset.units, subset.answers, subset.positives))
    bounds = positives / n, (positives + units - answers) / n
    if units and not answers:
        return nothing(f"none of {units:.0f} units is rated", missing + n, share, bounds, design)
    sample = totals(linearised_values(subset), clusters=subset.clusters, bounds=bounds_of(metric))
    return Process(estimate(sample), missing, share, *bounds, design, sample)


def linearised_values(counts: Counts) -> Floats:
    """(S,) values with the mean and the variance of the combined ratio estimator of positives a session."""
    units = counts.units.sum(1)
    answers, positives = counts.weighted_answers.sum(1), counts.weighted_positives.sum(1)
    if not answers.sum():
        return np.zeros(len(units))
    share = positives.sum() / answers.sum()
    values: Floats = share * units + (positives - share * answers) * units.sum() / answers.sum()
    return values
