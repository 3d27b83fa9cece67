"""Shares of labels within strata of a sample, as posterior draws: what rates and a judge's errors rest on.

A label is a number from 0 to 1: what one person said, or the mean of what several said of the unit. In each
stratum the share has a Beta posterior on its effective size. A Wald interval instead would be empty where the
sample shows no error of the judge, and below its nominal coverage where it shows few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import Floats, Ints, Z, student

LEAST_LABELS = 5
"""Units that people labelled in a stratum of a judge with several labels: fewer tell little of its errors."""
_ALIKE = 0.5  # of a cluster


@dataclass(frozen=True, eq=False)
class Shares:
    """`means` (G,) weighted shares by stratum, of `counts` (G,) units that tell as much as `even` (G,) ones
    of one weight (Kish 1965); the posteriors' `centres` and `sizes`, and what share of their variance is
    `between` (G,) people."""

    means: Floats
    counts: Ints
    even: Floats
    centres: Floats
    sizes: Floats
    between: Floats

    def draws(self, resamples: int, rng: np.random.Generator) -> Floats:
        """(G, resamples) from the strata's Beta posteriors."""
        present, absent = self.centres * self.sizes, (1 - self.centres) * self.sizes
        return rng.beta(present[:, None], absent[:, None], size=(len(self.means), resamples))


def shares(
    labels: Floats,
    weights: Floats,
    strata: Ints,
    clusters: Ints | None,
    whole: Floats,
    prior: Floats | float = 1.0,
    *,
    every: int | None = None,
    typical: Floats | None = None,
    on_scale: bool = False,
    open_variance: Floats | None = None,
) -> Shares:
    """Shares of `labels` (n,) in strata numbered 0..G−1, each with a unit; `whole` (G,) their true weights.

    To the data comes half a unit of each kind, labelled by one person, of the stratum's usual weight (times
    `prior`): with 0/1 labels of one weight that is Jeffreys' Beta(y + ½, n − y + ½). A stratum's usual weight
    is at least `typical` (G,), the `typical_weights` of all its units, drawn or not: by the sample's alone,
    one that holds no more than units drawn for certain would speak for those that it lacks. The size of the
    Beta is p(1 − p)/variance of all this, no more than Kish's (Σw)²/Σw² allows, for the sample may lack rare
    heavy units; places `on_scale` vary less than labels of 0 and 1, and may have more. Without the prior's
    units, labels that are means of several would vary less than what was not seen. The data's part is divided
    by the design effect of `clusters` (n,), which are trajectories, of so many as `every`, and the ratio of t
    to normal tails. For what lies in other trajectories half a unit of each kind is half an independent one,
    so many units as the design effect: else none positive in 60 units of six of 60 trajectories would have
    the share below .11, though .25 gives such a sample one time in six where the units of a trajectory are
    alike.

    `open_variance` (n,) is how far each label might vary had others given it, as `Audit` has it.
    """
    sums, squared = np.bincount(strata, weights=weights), np.bincount(strata, weights=weights**2)
    means = np.clip(np.bincount(strata, weights=weights * labels) / sums, 0, 1)
    weight = squared / sums if typical is None else np.maximum(squared / sums, typical)
    usual = weight * prior
    centres = (sums * means + usual / 2) / (sums + usual)
    units = np.bincount(strata, weights=(weights * (labels - centres[strata])) ** 2)
    spread = units + usual * weight * (centres**2 + (1 - centres) ** 2) / 2
    effective = centres * (1 - centres) * (sums + usual) ** 2 / spread
    most = np.inf if on_scale else sums**2 / squared * _people_per_unit(labels, strata) + prior
    alike = design_effect((weights * (whole / sums)[strata]) * (labels - means[strata]), clusters, every)
    effect = alike * _few(clusters)
    independent = usual * (1 + (alike - 1) * _elsewhere(clusters, every))
    centres = (sums * means + independent / 2) / (sums + independent)
    counts = np.bincount(strata)
    # A Beta of size m has the variance p(1 − p)/(m + 1): it takes n − 2 where no prior adds to them.
    unbiased = np.maximum(0.0, 1 - 2 * (1 - np.minimum(prior, 1.0)) / counts)
    sizes = (np.minimum(effective, most) - prior) * unbiased / effect + prior
    open_part = np.zeros(len(labels)) if open_variance is None else weights**2 * open_variance
    between = np.minimum(1.0, np.bincount(strata, weights=open_part) / spread)
    return Shares(means, counts, sums**2 / squared, centres, np.maximum(sizes, prior), between)


def typical_weights(chances: Floats, strata: Ints, in_sample: NDArray[np.bool_], size: int) -> Floats:
    """(size,) the mean of 1/π over the units (N,) of each stratum whose π is known (above 0), for `shares`.

    Weights above all that the sample has of the stratum count for no more than there are such units, for it
    lacks no others: one unit that was hardly ever drawn is no more than one.
    """
    is_known = chances > 0  # NaN is not
    weights, strata = 1 / chances[is_known], strata[is_known]
    heaviest = np.zeros(size)
    np.maximum.at(heaviest, strata[in_sample[is_known]], weights[in_sample[is_known]])
    counts = np.bincount(strata, minlength=size)
    heavier = np.bincount(strata, weights=weights > heaviest[strata] * (1 + 1e-9), minlength=size)
    least, means = (
        np.bincount(strata, weights=values, minlength=size) / np.maximum(counts, 1)
        for values in (np.minimum(weights, heaviest[strata]), weights)
    )
    typical: Floats = np.maximum(least, np.minimum(means, heavier))
    return typical


def joined_labels(answers: Ints, labelled: NDArray[np.bool_], size: int, *, on_scale: bool) -> Ints:
    """(N,) strata of a judge's `answers` (N,), each with LEAST_LABELS units that are `labelled` (N,); answers
    that are none of the `size` labels stay as they are.

    Labels that have fewer are joined with the next, the last with the one before: on a scale, whose labels
    ascend, with neighbours, else the rare ones.
    """
    counts = np.bincount(answers[labelled & (answers >= 0)], minlength=size)
    stratum, inside, of_label = 0, 0, np.zeros(size, dtype=np.int64)
    for label in range(size) if on_scale else np.argsort(counts, kind="stable"):
        if inside >= LEAST_LABELS:
            stratum, inside = stratum + 1, 0
        of_label[label] = stratum
        inside += int(counts[label])
    if inside < LEAST_LABELS and stratum:
        of_label[of_label == stratum] = stratum - 1
    return np.where(answers >= 0, of_label[np.maximum(answers, 0)], answers).astype(np.int64)


def design_effect(residuals: Floats, clusters: Ints | None, every: int | None = None) -> float:
    """Variance of a sum of residuals by cluster over that by unit (≥ 1).

    Half a cluster whose units are all alike is added: a few clusters may lack the rare ones that are so.
    Where there are `every` clusters in all, it is that half times the share of them that is not in the
    sample.
    """
    if clusters is None:
        return 1.0
    _, codes = np.unique(clusters, return_inverse=True)
    n = len(np.bincount(codes))
    if n < 2:
        return float(len(residuals))
    sizes = np.bincount(codes).astype(np.float64)
    by_cluster = float((np.bincount(codes, weights=residuals) ** 2).sum()) * n / (n - 1)
    by_unit = float((residuals**2).sum())
    ratio = by_cluster / by_unit if by_unit > 0 else len(residuals) / n
    alike = float((sizes**2).sum() / sizes.sum())
    extra = _ALIKE * (1.0 if every is None else 1 - n / every)
    ratio = (n * ratio + extra * alike) / (n + extra)
    return max(1.0, ratio)


def _few(clusters: Ints | None) -> float:
    """(t/z)² for the number of clusters, uneven ones being fewer, and one no more than two."""
    if clusters is None:
        return 1.0
    sizes = np.unique(clusters, return_counts=True)[1].astype(np.float64)
    return (student(max(float(sizes.sum() ** 2 / (sizes**2).sum()) - 1, 1.0)) / Z) ** 2


def _elsewhere(clusters: Ints | None, every: int | None) -> float:
    """The share of clusters that are not in the sample; 0 where it is not known how many there are."""
    return 0.0 if clusters is None or every is None else 1 - len(np.unique(clusters)) / every


def _people_per_unit(labels: Floats, strata: Ints) -> Floats:
    """(G,) up to how many people a unit counts for: 1 where every label is 0 or 1, else 2."""
    is_divided = np.bincount(strata, weights=(labels > 0) & (labels < 1)) > 0
    counts: Floats = np.where(is_divided, 2.0, 1.0)
    return counts
