"""An annotator model: what is so behind what people say, where they err each in their own way.

Dawid and Skene (1979), fitted by EM: a unit has the code or not, and each annotator has a sensitivity and a
specificity, with errors that are independent given which. The judge may be one more rater: then the share
that has the code differs between its labels, which says the same of it without a further parameter. What is
estimated is the share of this hidden class, not the label that a person gives on average.
"""

from __future__ import annotations

import numpy as np

from .audit import Audit
from .estimators import with_unanswered
from .intervals import (
    MISSING,
    Floats,
    Interval,
    Ints,
    cluster_bootstrap,
    distinct_rows,
    gamma_sums,
    interval_around,
)

Bools = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
FEWEST_RATERS = 3
FEWEST = 20
"""Units of three raters of which two annotators both say that they have the code, and as many that they
don't: with fewer the model mistakes chance for misses, and finds twice what there is."""
_PSEUDO = 0.05
_STEPS, _SETTLED = 5_000, 1e-6
_ALONE = "no interval: all labels are of one trajectory of several"


def dawid_skene(
    audit: Audit, answers: Ints, *, with_judge: bool, resamples: int = 400, seed: int = 0
) -> tuple[float | None, Interval]:
    """The share of the corpus that has the code, by the model, with a bootstrap interval over units.

    `answers` (N, annotators) are 1, 0 or negative where an annotator gave no label. With the judge, Σ W_h·π_h
    over its labels; without it, of the annotators alone with weights 1/π. Null with the reason where fewer
    than three raters meet, or too few units of either kind are agreed on to tell misses from false alarms.
    """
    if with_judge and (unchecked := audit.unchecked).any():
        rest = audit.where(~unchecked), answers[~unchecked]
        estimate = dawid_skene(*rest, with_judge=True, resamples=resamples, seed=seed)
        return with_unanswered(estimate, float(unchecked.mean()))
    is_rated = (answers >= 0).any(1)
    labels = np.where(answers[is_rated] >= 0, answers[is_rated], MISSING)
    if reason := _why_unidentified(audit, labels, with_judge):
        return None, Interval(None, None, reason)
    strata = audit.strata if with_judge else np.zeros(len(answers), dtype=np.int64)
    names, of_unit, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    lacking = np.setdiff1d(np.arange(len(names)), of_unit[is_rated])
    if len(lacking):
        return None, Interval(None, None, audit.empty_stratum or "a judge label that nobody checked")
    weights = np.ones(int(is_rated.sum())) if audit.inclusion is None else 1 / audit.inclusion[is_rated]
    cells, of_row, _ = distinct_rows(np.column_stack([of_unit[is_rated], labels]))
    table = (weights / weights.mean())[:, None] * np.eye(len(cells))[of_row]
    clusters = audit.clusters[is_rated] if audit.clusters is not None and audit.clustered else None
    alone = clusters is not None and len(np.unique(clusters)) < 2
    draws = _draws(table, clusters, 0 if alone else resamples, np.random.default_rng(seed))
    counts = np.concatenate([table.sum(0, keepdims=True), draws])
    present, sound = fit(counts, cells[:, 1:], cells[:, 0])
    if not sound[0]:
        return None, Interval(None, None, "an annotator no better than chance")
    share = sizes / sizes.sum()
    each = [share[g] * _mean(counts, present, cells[:, 0] == g) for g in range(len(names))]
    rates = np.where(sound, sum(each), np.nan)
    value = float(rates[0])
    return value, Interval(None, None, _ALONE) if alone else interval_around(value, rates[1:])


def fit(counts: Floats, patterns: Ints, strata: Ints) -> tuple[Floats, Bools]:
    """EM for many weightings `counts` (B, P) of the `patterns` (P, raters) in `strata` (P,) at once.

    Returns the probability (B, P) that a pattern comes from a unit with the code, and (B,) whether every
    annotator does better than chance. A twentieth of an answer of either kind is added to an annotator's own,
    and the start is the share of a pattern's raters who say so.
    """
    answers, yes = (patterns >= 0).astype(np.float64), (patterns == 1).astype(np.float64)
    groups = np.eye(int(strata.max()) + 1)[strata]
    present = np.clip(yes.sum(1) / answers.sum(1), 0.05, 0.95) * np.ones_like(counts)
    before: Floats = np.zeros((len(counts), groups.shape[1]))
    for _ in range(_STEPS):
        positives, negatives = counts * present, counts * (1 - present)
        hit = (positives @ yes + _PSEUDO) / (positives @ answers + 2 * _PSEUDO)
        alarm = (negatives @ yes + _PSEUDO) / (negatives @ answers + 2 * _PSEUDO)
        common = (positives @ groups + _PSEUDO) / (counts @ groups + 2 * _PSEUDO)
        odds = np.log(common / (1 - common)) @ groups.T
        odds += np.log(hit / alarm) @ yes.T + np.log((1 - hit) / (1 - alarm)) @ (answers - yes).T
        present = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
        if np.abs(common - before).max() < _SETTLED:
            break
        before = common
    return present, (hit > alarm).all(1)


def _mean(counts: Floats, present: Floats, cells: Bools) -> Floats:
    means: Floats = (counts * present)[:, cells].sum(1) / counts[:, cells].sum(1)
    return means


def _draws(table: Floats, clusters: Ints | None, resamples: int, rng: np.random.Generator) -> Floats:
    """(resamples, P) sums over a table (units, P), with random weights, the same within a trajectory."""
    if clusters is None:
        return gamma_sums(table, 1.0, resamples, rng)
    _, codes = np.unique(clusters, return_inverse=True)
    together = np.zeros((int(codes.max()) + 1, table.shape[1]))
    np.add.at(together, codes, table)
    return cluster_bootstrap(together, resamples, rng)


def _why_unidentified(audit: Audit, labels: Ints, with_judge: bool) -> str | None:
    if with_judge and audit.judge is None:
        return "no judge to be one more rater"
    meet = int((labels >= 0).sum(1).max(initial=0)) + with_judge
    if meet < FEWEST_RATERS:
        more = "" if with_judge else "; the judge may be one more"
        return f"an annotator model needs {FEWEST_RATERS} raters of the same units, got {meet}{more}"
    # Pairs alone leave the model free: of three raters they tell six figures, and it has seven.
    joint = labels[(labels >= 0).sum(1) + with_judge >= FEWEST_RATERS]
    agreements = [int(((joint == label).sum(1) >= 2).sum()) for label in (1, 0)]
    if min(agreements) < FEWEST:
        kind = "have" if agreements[0] <= agreements[1] else "lack"
        where = f"of {len(joint)} units that {FEWEST_RATERS} raters share"
        finding = f"two annotators agree that {min(agreements)} units {kind} it, {where}"
        return f"{finding}: too few to tell misses from false alarms, which takes {FEWEST}"
    return None
