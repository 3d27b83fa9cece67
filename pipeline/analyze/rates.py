"""How common each code is: the judge's own rate beside the one that people's labels correct."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics import Audit
from ...annotation.statistics.annotators import dawid_skene
from ...annotation.statistics.audit import any_mode
from ...annotation.statistics.estimators import ESTIMATORS
from ...annotation.statistics.intervals import MISSING, Floats, Interval, Ints
from ...annotation.statistics.rates import Rate as Estimated
from ...annotation.statistics.rates import rate, unanswered
from ...schemas import GOLD, Rate
from ...schemas.text import count_of
from ..errors import UsageError
from ..store import Selection, Store
from .designs import Design
from .matrices import rated_codes
from .matrix import Rated, chosen_books, groups, unit_groups
from .quantities import Quantity, quantities

MEAN, MODEL, WITH_JUDGE = "mean", "dawid-skene", "dawid-skene-judge"
LABELS = (MEAN, MODEL, WITH_JUDGE)
"""What people's label of a unit is."""
_ROUNDING = 1e-12


def rates(
    store: Store,
    names: Sequence[str] = (),
    *,
    by: Sequence[str] = (),
    judge: str | None = None,
    estimator: str | None = None,
    labels: str = MEAN,
    only: Selection | None = None,
) -> list[Rate]:
    """A row for each code of each codebook with ratings, each judge and each group: of more than two labels
    a row for each label, on a scale one for the mean.

    `only` and `by` are domains of whatever was sampled: inclusion probabilities stay those of the draw.

    A category's row is the rate of the union of its codes per trajectory, never their sum. Where no judge
    rated, people's labels stand alone. `labels` says what people's label of a unit is: the mean of its
    annotators', or the hidden class of an annotator model. UsageError for an unknown judge, group, estimator
    or kind of label.
    """
    if labels not in LABELS or (labels != MEAN and estimator is not None):
        other = ", without --estimator," if labels in LABELS else ""
        raise UsageError(f"--labels must{other} be one of {', '.join(LABELS)}, got {labels!r}")
    if estimator is not None and estimator not in ESTIMATORS:
        raise UsageError(f"unknown estimator {estimator!r}, expected one of {', '.join(ESTIMATORS)}")
    rows: list[Rate] = []
    judges: set[str] = set()
    for book in chosen_books(store, names):
        with store.reading() as connection:
            codes = list(rated_codes(connection, book, only))
            group_of = groups(connection, by)
        judges.update(name for code in codes for name in code.judges)
        for code in (*codes, *(_categories(codes) if book.binary else ())):
            for quantity in quantities(book):
                rows.extend(_group_rows(code, quantity, group_of, by, judge, estimator, labels))
    if judge is not None and judge not in judges:
        raise UsageError(f"no judge {judge!r}, expected one of {', '.join(sorted(judges)) or 'none yet'}")
    return rows


def _group_rows(
    code: Rated,
    quantity: Quantity,
    group_of: dict[str, dict[str, str | None]],
    by: Sequence[str],
    judge: str | None,
    estimator: str | None,
    labels: str,
) -> Iterator[Rate]:
    names, places = unit_groups(code, (tuple(group_of[key].values()) for key in code.ids))
    for values in sorted(names, key=str):
        subset = code.where(places == names.index(values))
        group = dict(zip(by, values, strict=True)) if by else None
        judges: list[str | None] = [name for name in subset.judges if judge in (None, name)]
        for name in judges or ([] if judge else [None]):
            row = _rate(subset, quantity, name, group, estimator, labels)
            if row is not None:
                yield row


def audit(
    code: Rated, judge: str | None, quantity: Quantity
) -> tuple[Audit, NDArray[np.bool_], str, str] | None:
    """The audit of one quantity of a code (what a judge and people said), the units (units,) it is of, and in
    words what was assumed of the units, and of people's labels.

    None where neither the judge nor people said anything. A judge that was asked about the units of samples
    alone tells nothing of the corpus, since the samples' design decided what it saw: then people's labels
    stand alone, in all units.
    """
    human, spread = human_labels(code, quantity)
    split = spread > _ROUNDING
    answers = None if judge is None else code.of(judge)
    if answers is not None and not (answers != MISSING).any():
        return None
    if judge in code.followers:
        answers = None
    elif answers is None and not (human != MISSING).any():
        return None
    # Only units that the judge was asked about are its corpus.
    corpus = np.ones(len(human), dtype=bool) if answers is None else answers != MISSING
    unasked = int((~corpus).sum())
    unused = int(((human != MISSING) & ~corpus).sum())
    people, of_several = code.voters(), dispersion(code, quantity)
    is_open = split | ((people == 1).any() & (of_several > _ROUNDING))
    human, inclusion, assumed = _with_inclusion(human[corpus], is_open[corpus], code.design.where(corpus))
    if unasked:
        units = count_of(int(corpus.sum()), "unit", "units")
        assumed += f"; of the {units} that the judge was asked about, not of {unasked} others"
    if unused:
        units = count_of(unused, "labelled unit", "labelled units")
        assumed += f"; {units} that the judge was not asked about left out"
    if judge in code.followers:
        assumed += "; the judge was asked about units of samples alone, which tells nothing of the others"
    in_frame = code.design.framed[corpus]
    if not in_frame.all() and (human[in_frame] != MISSING).any():
        beyond = int((~in_frame).sum())
        assumed += f"; of the {int(in_frame.sum())} units that the samples could take, not of {beyond} others"
        human, inclusion = human[in_frame], None if inclusion is None else inclusion[in_frame]
        corpus[corpus] = in_frame
    is_labelled = corpus.copy()
    is_labelled[corpus] = human >= 0
    own = Audit(
        human,
        inclusion=inclusion,
        clusters=None if code.trajectories is None else code.trajectories[corpus],
        design=code.design.strata[corpus],
        spread=spread[corpus] if quantity.is_mean else None,
        people=people[corpus],
        dispersion=of_several[corpus],
    )
    if answers is not None:
        own = quantity.judged(own, answers[corpus])
    return own, corpus, assumed, _of_people(code, is_labelled, split)


def _rate(
    code: Rated,
    quantity: Quantity,
    judge: str | None,
    group: dict[str, str | None] | None,
    estimator: str | None,
    labels: str,
) -> Rate | None:
    """One row; None where neither the judge nor people said anything in this group."""
    result = audit(code, judge, quantity)
    if result is None:
        return None
    own, corpus, assumed, of_people = result
    outcome = rate(own, estimator)
    if labels != MEAN:
        outcome, of_people = _with_model(own, code.where(corpus), quantity, labels, outcome), ""
    return Rate(
        codebook=code.book.name,
        code=code.code,
        label=quantity.one_of_several,
        is_mean=quantity.is_mean,
        group=group,
        judge=judge,
        judge_rate=quantity.value(outcome.judge_rate),
        rate=quantity.value(outcome.rate),
        low=quantity.value(outcome.low),
        high=quantity.value(outcome.high),
        estimator=outcome.estimator,
        design=outcome.design + _left_open(outcome, quantity) + assumed + of_people,
        n_units=outcome.n_units,
        n_human=outcome.n_human,
        n_judged=outcome.n_judged if own.judge is not None else _answer_count(code, judge),
        n_unclear=outcome.n_unclear,
        n_skipped=outcome.n_skipped,
        n_divided=own.n_divided,
        between_people=own.between_people,
        rate_if_unclear_absent=quantity.value(outcome.rate_if_unclear_absent),
        rate_if_unclear_present=quantity.value(outcome.rate_if_unclear_present),
        reason=outcome.reason,
    )


def _answer_count(code: Rated, judge: str | None) -> int:
    return 0 if judge is None else int((code.of(judge) >= 0).sum())


def _with_model(own: Audit, code: Rated, quantity: Quantity, labels: str, estimate: Estimated) -> Estimated:
    """The row with the rate of the annotator model in place of that of the mean label."""
    columns = [code.raters.index(rater) for rater in code.humans]
    answers = np.where(own.human[:, None] == MISSING, MISSING, quantity.of(code.matrix[:, columns]))
    with_judge = labels == WITH_JUDGE
    value, interval = None, Interval(None, None, "the annotator model is of shares, not of places on a scale")
    if not own.on_scale:
        value, interval = dawid_skene(own, answers, with_judge=with_judge)
    words = unanswered(own, (value, interval)) if with_judge else ""
    return replace(
        estimate,
        estimator=labels.replace("-", "_"),
        design=f"what is so behind what people say, by an annotator model{words}",
        rate=value,
        low=interval.low,
        high=interval.high,
        reason=interval.reason,
        rate_if_unclear_absent=None,
        rate_if_unclear_present=None,
    )


def human_labels(code: Rated, quantity: Quantity) -> tuple[Floats, Floats]:
    """(units,) the place from 0 to 1 of gold's label, else the mean of the annotators', else UNCLEAR where
    one of them said so, ERROR where all skipped it, or MISSING; (units,) the variance of their labels.

    What is estimated is the label that a person of these gives on average. Dropping the units on which two
    disagree would leave out most of the positive ones where a code is rare.
    """
    votes = code.votes()
    usable = votes.sum(1) > 0
    means = votes @ quantity.places
    human = np.where(usable, np.clip(means, 0, 1), code.missing_labels)
    return human.astype(np.float64), np.maximum(0.0, votes @ quantity.places**2 - means**2)


def dispersion(code: Rated, quantity: Quantity) -> Floats:
    """(units,) s² of the places from 0 to 1 that annotators gave it, gold or not; NaN of one or none."""
    counts = code.counts()
    people = counts.sum(1)
    sums, squares = counts @ quantity.places, counts @ quantity.places**2
    deviations = np.maximum(0.0, squares - sums**2 / np.maximum(people, 1))
    return np.where(people > 1, deviations / np.maximum(people - 1, 1), np.nan)


def _of_people(code: Rated, is_labelled: NDArray[np.bool_], split: NDArray[np.bool_]) -> str:
    """What the labels of the units that count are, in words."""
    gold_count = int((code.of(GOLD) >= 0)[is_labelled].sum()) if code.gold else 0
    words = f"; {count_of(gold_count, 'unit', 'units')} as settled by gold" if gold_count else ""
    if split_count := int(split[is_labelled].sum()):
        words += f"; {split_count} on which people differ count as the mean of their labels"
    return words


def _left_open(estimate: Estimated, quantity: Quantity) -> str:
    """The units that people were asked about and that have no label, in words, with the rates that the
    unclear ones could make of it: who finds a unit unclear may do so for what it is."""
    skipped = f"; {estimate.n_skipped:,} that people skipped left out" if estimate.n_skipped else ""
    if not estimate.n_unclear:
        return skipped
    words = f"; {estimate.n_unclear:,} that people found unclear left out"
    ends = quantity.value(estimate.rate_if_unclear_absent), quantity.value(estimate.rate_if_unclear_present)
    if ends[0] is not None and ends[1] is not None:
        none, each = "none of them has it", "all have it"
        if quantity.is_mean:
            none, each = "all are the least label", "all are the greatest"
        words += f" ({ends[0]:.3f} if {none}, {ends[1]:.3f} if {each})"
    return words + skipped


def _with_inclusion(
    human: Floats, is_open: NDArray[np.bool_], design: Design
) -> tuple[Floats, Floats | None, str]:
    """The labels that have a design, what is known of the inclusion probabilities, and in words what was
    assumed.

    How units outside the samples were chosen is not known: their labels are left out beside labels of sampled
    units, and count only where every unit was asked about or no sample is begun.
    """
    is_asked, in_sample = human != MISSING, ~np.isnan(design.inclusion)
    if not is_asked.any():
        return human, None, ""
    if not (is_asked & in_sample).any():
        if is_asked.all():
            if not (human >= 0).all():
                return human, None, "; every unit was asked about"
            return human, None, f"; every unit was labelled{_DIVIDED if is_open.any() else ''}"
        if not design.has_answers:
            return human, None, f"; {_NO_SAMPLE}"
    beyond = int((is_asked & ~in_sample).sum())
    units = count_of(beyond, "labelled unit", "labelled units")
    words = f"; {units} outside the samples left out" if beyond else ""
    return np.where(in_sample, human, MISSING), np.where(in_sample, design.inclusion, design.chance), words


_DIVIDED = ", and of what people differ on others may say something else: hence an interval"
_NO_SAMPLE = "no sample on record, taken as a simple random one"


def _categories(codes: list[Rated]) -> Iterator[Rated]:
    """Each category of two-label codes as a code of its own: the union of its codes, for every rater."""
    if not codes:
        return
    (quantity,) = quantities(codes[0].book)
    for category in codes[0].book.categories:
        members = {c.code for c in codes[0].book.codes if c.category == category.category}
        member_codes = [code for code in codes if code.code in members]
        if len(member_codes) == len(members):
            yield _union(category.category, member_codes, quantity)


def _union(name: str, codes: list[Rated], quantity: Quantity) -> Rated:
    raters = tuple(r for r in codes[0].raters if all(r in code.raters for code in codes))
    columns = []
    for rater in raters:
        answers = [code.of(rater) for code in codes]
        if codes[0].kinds[rater] == "human" and rater != GOLD:
            answers = [_with_gold(code, column) for code, column in zip(codes, answers, strict=True)]
        present = any_mode(np.stack([quantity.of(column) for column in answers], axis=1))
        # Back to label indices, of which 0 is the positive one.
        columns.append(np.where(present >= 0, 1 - present, present))
    matrix = np.stack(columns, axis=1) if columns else np.empty((len(codes[0].event), 0), dtype=np.int64)
    return replace(
        codes[0],
        code=name,
        raters=raters,
        kinds={rater: codes[0].kinds[rater] for rater in raters},
        matrix=matrix,
        probability=np.full(matrix.shape, np.nan),
    )


def _with_gold(code: Rated, answers: Ints) -> Ints:
    """What a person said of a code, or gold where that has settled it."""
    if not code.gold:
        return answers
    gold = code.of(GOLD)
    return np.where((gold >= 0) & (answers != MISSING), gold, answers)
