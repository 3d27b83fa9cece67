"""Process metrics where not every unit is rated: estimated by design, with what the rest could make of it.

A session's confirmations, halts and initiatives are counted over its units. Where some have no answer (a
human sample, an error, `unclear`) those that have one stand for them: with the inclusion probability of the
sample that holds them all, else as if the answered ones were a random part of all. A session without units
has none to confirm and counts 0 whoever rates, unless its log has no messages at all: that is missing. One
whose units are all unrated is estimated like the rest.

Counts: N̄·p̂, the units a session times the weighted share of positives among answered units: the combined
ratio estimator (Cochran 1977, 6.11). Its linearised values z = p̂N + (k − p̂n)·ΣN/Σn have its mean and its
variance. Only clusters with an answered unit tell of p̂, all of N̄ (`_support`): with all taken to tell of
both, groups that are alike differed at .05 in .38 of samples where people had read 2 of 20 sessions. Entropy
is no sum (entropy.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from ...annotation.statistics.estimate import (
    LEAST,
    Bounds,
    Support,
    Totals,
    effective_number,
    estimate,
    totals,
)
from ...annotation.statistics.intervals import Floats
from .counts import CODEBOOKS, WORDLESS, Counts, Process, nothing, places, session_counts, shares
from .designs import Designs
from .entropy import entropy, extremes
from .totals import bounds_of

_PSEUDO = 0.5  # of an answer, of either kind


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
    places(designs.connection, (), cluster=None)
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
    sample = linearised_totals(subset, bounds_of(metric))
    few = sample.support is not None and sample.clusters < LEAST
    why = f"too few sessions have a rated unit: {sample.clusters} independent, {LEAST} needed"
    return Process(estimate(sample), missing, share, *bounds, design, sample, why if few else None)


def linearised_totals(counts: Counts, bounds: Bounds) -> Totals:
    """Values with the mean and the variance of the combined ratio estimator of positives a session.

    Residuals of the share are of clusters with an answer, of which there may be fewer than clusters.
    """
    units = counts.units.sum(1)
    answers, positives = counts.weighted_answers.sum(1), counts.weighted_positives.sum(1)
    if not answers.sum():
        return totals(np.zeros(len(units)), clusters=counts.clusters, bounds=bounds)
    share = positives.sum() / answers.sum()
    expected, residual = share * units, (positives - share * answers) * units.sum() / answers.sum()
    if counts.answers.sum() == counts.units.sum():
        return totals(expected + residual, clusters=counts.clusters, bounds=bounds)
    _, cluster = np.unique(counts.clusters, return_inverse=True)
    in_cluster = np.bincount(cluster, answers).astype(np.float64)
    informative, every = int((in_cluster > 0).sum()), len(in_cluster)
    if informative > 1:
        residual *= sqrt(informative / (informative - 1) * (every - 1) / every)
    sample = totals(expected + residual, clusters=counts.clusters, bounds=bounds)
    spreads = [float(np.var(np.bincount(cluster, part))) for part in (expected, residual)]
    is_unread = (in_cluster == 0) & (np.bincount(cluster, units) > 0)
    telling = informative if is_unread.any() else every
    return replace(sample, support=_support(counts, share, spreads, in_cluster, telling))


def _support(counts: Counts, share: float, spreads: list[float], in_cluster: Floats, telling: int) -> Support:
    """What the values rest on: Satterthwaite's degrees of freedom of the variances (2,) between clusters by
    their units and by the share of positives, which those with an answer (C,) alone tell of.

    Half an answer of either kind is added to the variance of the share, as of Jeffreys' interval: units
    that are alike throughout say little of the others.
    """
    total, n, units = sum(spreads), float(counts.answers.sum()), float(counts.units.sum())
    freedom = [max(1.0, number - 1) for number in (len(in_cluster), effective_number(in_cluster))]
    parts = [(spread / total) ** 2 / df for spread, df in zip(spreads, freedom, strict=True) if spread]
    smooth = (share * n + _PSEUDO) / (n + 2 * _PSEUDO)
    more = max(0.0, smooth * (1 - smooth) / max(n - 1, 1) - share * (1 - share) / n)
    return Support(
        clusters=telling,
        df=1 / sum(parts) if parts else min(freedom),
        variance=more * (1 - n / units) * (units / len(counts.units)) ** 2,
        events=float(counts.positives.sum()),
    )
