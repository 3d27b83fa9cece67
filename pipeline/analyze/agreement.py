"""Agreement out of the workspace or a CSV: people with people, judges with people, judges with judges."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics import Coefficient, Ratings
from ...annotation.statistics import agreement as measuring
from ...annotation.statistics import confusion as confusing
from ...annotation.statistics.agreement import COEFFICIENTS, PAIRWISE, Margins
from ...annotation.statistics.crowds import CROWD
from ...annotation.statistics.intervals import MISSING, Floats, Ints
from ...annotation.statistics.sets import set_alpha
from ...annotation.statistics.strata import typical_weights
from ...schemas import GOLD, Agreement, JsonValue, Quarantined
from ...schemas.text import bare, count_of, nfc
from ..errors import SourceError, UsageError
from ..store import Selection, Store
from ..systems.formats.fields.mapping import Input
from ..systems.formats.files import inputs
from .consistency import consistency
from .matrices import rated_codes
from .matrix import OUTSIDE, Population, Rated, chosen_books

NOMINAL = tuple(c for c in COEFFICIENTS if not c.endswith(("_linear", "_quadratic")))
JUDGE_MEAN = "mean_judge_human_kappa"
KAPPAS = ("cohen_kappa", "mean_cohen_kappa", JUDGE_MEAN)
ON_A_SCALE = tuple(f"{name}_quadratic" for name in KAPPAS)
"""Those of labels that have an order: a near miss is less wrong than a far one."""
COLUMNS = ("unit", "rater", "label")
JUDGES = "units that two judges rated"
"""The population of agreement among judges."""
PEOPLE = "units that two people labelled"
"""The population of agreement among people."""


def of_workspace(
    store: Store,
    names: Sequence[str] = (),
    margins: Margins = "paired",
    *,
    only: Selection | None = None,
) -> list[Agreement]:
    """Every coefficient for every code that has ratings: all people, each judge with them, all judges.

    A judge that was asked repeatedly has rows on how far it agrees with itself.

    Sets and means over the codes of a codebook stand under the codebook's own name.
    """
    rows: list[Agreement] = []
    for book in chosen_books(store, names):
        with store.reading() as connection:
            codes = list(rated_codes(connection, book, only))
            intra_rater = list(consistency(connection, book, only))
        coefficients = [row for code in codes for row in of_codes(code, margins)]
        rows += [*coefficients, *intra_rater]
        if len(book.codes) > 1:
            rows.extend(_over_codes(codes, coefficients))
    return rows


def of_csv(path: Path, labels: Sequence[str], level: str, margins: Margins = "paired") -> list[Agreement]:
    """Every coefficient for the ratings in a long CSV (unit,rater,label); an empty label is missing.

    `labels` are the declared ones in their order; without them those that occur, numbers in ascending order.
    A label is the same whatever its case, and a number however it is written.
    UsageError for a scale of words without an order.
    """
    if level not in ("nominal", "ordinal", "interval"):
        raise UsageError(f"--level must be nominal, ordinal or interval, got {level!r}")
    answers = _read_csv(path)
    declared = tuple(labels) or _occurring_labels(path, answers)
    if level == "ordinal" and not labels and not all(map(_is_number, declared)):
        raise UsageError(
            f"--level {level} needs --labels in their order, since these are words: {', '.join(declared)}"
        )
    if len(declared) < 2:
        number = "1" if declared[0] == "0" else "0"
        declared = (*declared, number if level == "interval" else "(no other label)")
    places = {_sense(label): place for place, label in enumerate(declared)}
    if len(places) < len(declared):
        raise UsageError(f"--labels must differ by more than their case, got {', '.join(declared)}")
    units = {unit: i for i, unit in enumerate(dict.fromkeys(unit for unit, _ in answers))}
    raters = tuple(sorted({rater for _, rater in answers}))
    matrix = np.full((len(units), len(raters)), MISSING, dtype=np.int64)
    for (unit, rater), (label, line) in answers.items():
        if label and _sense(label) not in places:
            raise SourceError(f"{path}:{line}: label must be one of {', '.join(declared)}, got {label!r}")
        if label:
            matrix[units[unit], raters.index(rater)] = places[_sense(label)]
    ratings = _valid_ratings(matrix, declared, raters, level)
    coefficients = _coefficients(level)
    return [
        _row(None, path.stem, result)
        for result in measuring.agreement(ratings, coefficients, margins=margins)
    ]


def margins_named(value: str) -> Margins:
    """`paired` or `all`; UsageError for anything else."""
    for name in get_args(Margins):
        if name == value:
            return cast("Margins", name)
    raise UsageError(f"--margins must be {' or '.join(get_args(Margins))}, got {value!r}")


BETWEEN = ("people", "judge and people", "judges")
"""Who can disagree, in the order in which it is to be discussed."""


def disagreements(
    store: Store, names: Sequence[str] = (), *, only: Selection | None = None
) -> list[dict[str, Any]]:
    """The units on which two raters gave different labels, to be discussed: who said what.

    `between` says who: people (those in front, for no judge is right where people differ), judge and people,
    or judges.
    """
    rows = []
    for book in chosen_books(store, names):
        with store.reading() as connection:
            natives = dict(connection.execute("SELECT id, native_id FROM trajectories").fetchall())
            codes = list(rated_codes(connection, book, only))
        for code in codes:
            for place, answers in enumerate(code.matrix):
                labels = {r: book.labels[k] for r, k in zip(code.raters, answers, strict=True) if k >= 0}
                if len(set(labels.values())) > 1:
                    trajectory, event = code.unit(place)
                    address = {"trajectory": trajectory, "native_id": natives[trajectory], "event": event}
                    rating = {"codebook": book.name, "code": code.code, "labels": labels}
                    between = _between(labels, code.judges)
                    rows.append({**address, **rating, "between": between, "gold": labels.get(GOLD)})
    return sorted(rows, key=lambda row: BETWEEN.index(row["between"]))


def _between(labels: Mapping[str, str], judges: Collection[str]) -> str:
    """Who differs: people among themselves, else a judge and people, else judges."""
    people = {label for rater, label in labels.items() if rater not in judges and rater != GOLD}
    if len(people) > 1:
        return BETWEEN[0]
    return BETWEEN[1] if people or GOLD in labels else BETWEEN[2]


def confusions(
    store: Store, names: Sequence[str] = (), *, only: Selection | None = None
) -> list[dict[str, Any]]:
    """Each judge against people's labels, code by code: counts and the quality of each label.

    Units outside the samples stand in a row of their own where others come from a sample.
    """
    rows: list[dict[str, Any]] = []
    for book in chosen_books(store, names):
        with store.reading() as connection:
            codes = list(rated_codes(connection, book, only))
        for code in codes:
            for judge in code.judges:
                head = {"codebook": book.name, "code": code.code, "judge": judge}
                rows.extend({**head, **result} for result in qualities(code, judge))
    return rows


def qualities(code: Rated, judge: str) -> Iterator[dict[str, Any]]:
    """How a judge errs, in each population where it and people rated the same units."""
    code = code.seen_by(judge)
    votes, answers, labels = code.votes(), code.of(judge), code.book.labels
    for part in code.populations:
        overlap = part.units & (answers >= 0) & (votes.sum(1) > 0)
        if not overlap.any():
            continue
        clusters, corpus, typical = code.clusters(overlap), None, None
        weights, from_sample = part.weights, part.name not in ("", OUTSIDE)
        if judge not in code.followers:
            is_there = (answers >= 0) & (code.design.framed if part.name != OUTSIDE else True)
            corpus = _corpus_counts(answers[is_there], _select(clusters, is_there), len(labels))
            if from_sample:
                weights = _known_weights(code, part)
                chances = code.design.chance[is_there]
                typical = typical_weights(chances, answers[is_there], overlap[is_there], len(labels))
        outcome = confusing.confusion(
            answers[part.units],
            votes[part.units],
            labels,
            _select(weights, part.units),
            _select(clusters, part.units),
            corpus,
            typical=typical,
            from_sample=from_sample,
        )
        yield {
            "population": part.name,
            "labels": list(outcome.labels),
            "counts": outcome.counts.tolist(),
            "classes": [asdict(quality) for quality in outcome.classes],
        }


def _corpus_counts(answers: Ints, clusters: Ints | None, q: int) -> Floats:
    """How often each of q labels is among answers (n,): (q,), or of each cluster (clusters, q)."""
    if clusters is None:
        return np.bincount(answers, minlength=q).astype(np.float64)
    _, of_unit = np.unique(clusters, return_inverse=True)
    cells = np.bincount(of_unit * q + answers, minlength=q * (of_unit.max(initial=-1) + 1))
    return cells.reshape(-1, q).astype(np.float64)


def _known_weights(code: Rated, part: Population) -> Floats:
    """(units,) 1/π of a sample's units, also where all that were drawn have the same."""
    if part.weights is not None:
        return part.weights
    return np.full(len(code.event), 1 / np.nanmax(code.design.inclusion))


def _select(values: NDArray[Any] | None, units: NDArray[np.bool_]) -> NDArray[Any] | None:
    return None if values is None else values[units]


def of_codes(code: Rated, margins: Margins = "paired") -> Iterator[Agreement]:
    """Every coefficient for one code: all people, each judge with them and with gold, all judges.

    Each row names the units it stands on: under an overlap below 1 people meet on fewer than a judge meets
    them on, and labels from outside the samples have no weight that could be theirs. A jury is compared only
    with judges that share no vote with it (`voices`): with its members it agrees by construction. So do two
    judges, or versions of one, where one has the other's answers.
    """
    yield from _people(code, margins)
    for judge in code.judges:
        judge_view = code.seen_by(judge)
        for part in _shared_populations(judge_view, judge):
            yield from _judge_and_people(judge_view, judge, part, margins)
    code = code.without_taken_over()
    single = [judge for judge in code.judges if judge not in code.juries and (code.of(judge) >= 0).any()]
    apart = tuple(judge for judge in single if judge not in code.followers)
    everything = Population(JUDGES, np.ones(len(code.event), dtype=bool), None)
    if len(apart) > 1:
        yield from _agreement(code, apart, everything, margins)
    earlier = set(apart)
    for judge in single:
        if judge in code.followers and earlier:
            raters = tuple(sorted({judge, *earlier}))
            column = raters.index(judge)
            pairs = [
                (min(column, other), max(column, other)) for other in range(len(raters)) if other != column
            ]
            yield from _agreement(code, raters, _sample_population(code, judge), margins, pairs)
        if judge in code.followers:
            earlier.add(judge)
    for one, other in itertools.combinations(code.judges, 2):
        if {one, other} & code.juries.keys() and not code.voices(one) & code.voices(other):
            followers = [judge for judge in (one, other) if judge in code.followers]
            where = _sample_population(code, followers[0]) if followers else everything
            yield from _agreement(code, (one, other), where, margins)


def _sample_population(code: Rated, judge: str) -> Population:
    """The units of the samples by which a judge was asked, weighted by 1/π where their π differ: only on
    these units can it meet other judges."""
    inclusion = code.seen_by(judge).design.inclusion
    in_sample = ~np.isnan(inclusion)
    if np.ptp(inclusion[in_sample]) < 1e-9:
        return Population(f"{JUDGES}; those of the samples", in_sample, None)
    weights = 1 / np.where(in_sample, inclusion, 1.0)
    return Population(f"{JUDGES}; those of the samples, weighted by 1/π", in_sample, weights)


def with_people(rows: Iterable[Agreement], judge: str) -> Agreement | None:
    """Of one code's rows, Cohen's kappa of a judge with people: the mean over people, but with settled labels
    where gold has more units than people labelled; on a scale the quadratic one.

    Settled labels err less than one person's: a judge that errs as people do agrees with them better than
    people with each other, so that only the mean can stand beside people's own kappa.
    """
    kappas = _kappas(row for row in rows if row.raters[:1] == (judge,))
    mean = next((row for row in kappas if row.coefficient.startswith(JUDGE_MEAN)), None)
    with_gold = next((row for row in kappas if row.raters[1:] == (GOLD,)), None)
    both = [row for row in (mean, with_gold) if row is not None]  # each of the first population
    return max(both, key=lambda row: row.n_units, default=None)


def judge_kappas(rows: Sequence[Agreement]) -> dict[tuple[str, str, str], Agreement]:
    """(Codebook, code, judge) -> its kappa with people, of each judge that rated what they labelled."""
    places = dict.fromkeys(
        (row.codebook or "", row.code, row.raters[0])
        for row in rows
        if row.n_units and (row.coefficient.startswith(JUDGE_MEAN) or row.raters[1:] == (GOLD,))
    )
    kappas = {}
    for codebook, code, judge in places:
        code_rows = (row for row in rows if (row.codebook, row.code) == (codebook, code))
        if kappa := with_people(code_rows, judge):
            kappas[codebook, code, judge] = kappa
    return kappas


def people_kappa(rows: Iterable[Agreement], people: Collection[str]) -> Agreement | None:
    """Of one code's rows Cohen's kappa of people with each other, the mean where there are more than two.

    On a scale it is the quadratic one.
    """
    kappas = _kappas(row for row in rows if set(row.raters) <= set(people))
    return max(kappas, key=lambda row: len(row.raters), default=None)


def _kappas(rows: Iterable[Agreement]) -> list[Agreement]:
    own = [row for row in rows if row.coefficient in (*KAPPAS, *ON_A_SCALE)]
    return [row for row in own if row.coefficient in ON_A_SCALE] or own


def _people(code: Rated, margins: Margins) -> Iterator[Agreement]:
    if len(code.humans) > 1 or (code.humans and not code.judges):
        parts = code.populations if margins == "all" else code.populations_of(asked_twice([code]))
        for part in parts:
            yield from _agreement(code, code.humans, _with_units(part, PEOPLE), margins, apart=True)


def asked_twice(codes: Sequence[Rated]) -> NDArray[np.bool_]:
    """(units,) whether two people were asked about the same code."""
    columns = ([code.raters.index(rater) for rater in code.humans] for code in codes)
    counts = [(code.matrix[:, own] != MISSING).sum(1) for code, own in zip(codes, columns, strict=True)]
    is_twice: NDArray[np.bool_] = np.stack(counts).max(0) > 1
    return is_twice


def _shared_populations(code: Rated, judge: str, people: Rated | None = None) -> Iterator[Population]:
    """The populations of the units that `people` labelled (by default those of this code).

    The one outside the samples only where the judge rated some of it.
    """
    has_answer = code.of(judge) != MISSING
    for part in (people or code).populations:
        if part.name != OUTSIDE or has_answer[part.units].any():
            yield part


def _judge_and_people(code: Rated, judge: str, part: Population, margins: Margins) -> Iterator[Agreement]:
    if code.humans:
        pairs = [(0, place) for place in range(1, len(code.humans) + 1)]
        where = _with_units(
            part, "units that two of the judge and people rated; kappas: the judge and a person"
        )
        for row in _agreement(code, (judge, *code.humans), where, margins, pairs, apart=True):
            coefficient = row.coefficient.replace("mean_cohen_kappa", JUDGE_MEAN)
            yield row.model_copy(update={"coefficient": coefficient})
    if code.gold:
        where, n_disputed = _settled_units(code, part)
        for row in _agreement(_with_settled(code), (judge, GOLD), where, margins):
            yield row.model_copy(update={"n_disputed": n_disputed})


def _with_units(part: Population, units: str) -> Population:
    return replace(part, name="; ".join(name for name in (units, part.name) if name))


def _with_settled(code: Rated) -> Rated:
    """The code with gold filled up by what people agree on, nothing where that is not settled: gold itself
    holds only what was disputed."""
    matrix = code.matrix.copy()
    matrix[:, code.raters.index(GOLD)] = np.maximum(code.consensus(), MISSING)
    return replace(code, matrix=matrix)


def _settled_units(code: Rated, part: Population) -> tuple[Population, int]:
    """The units of a population that are settled, and how many of the others people dispute."""
    subset = code.where(part.units)
    consensus, gold = subset.consensus(), subset.of(GOLD) >= 0
    answers = subset.matrix[:, [subset.raters.index(rater) for rater in subset.humans]]
    labels = (answers >= 0).sum(1)
    alike = ((answers == consensus[:, None]) & (answers >= 0)).sum(1)
    is_undecided = (consensus < 0) & (consensus != MISSING)
    counts = {
        "by gold": gold,
        "on which people agree": ~gold & (alike > 1) & (alike == labels),
        "by most of three or more people": ~gold & (alike > 0) & (alike < labels),
        "by one person alone": ~gold & (alike == 1) & (labels == 1),
    }
    parts = [f"{int(units.sum())} {basis}" for basis, units in counts.items() if units.any()]
    omissions = {"disputed": is_undecided & (labels > 0), "unclear": is_undecided & (labels == 0)}
    exceptions = [f"{int(units.sum())} {kind}" for kind, units in omissions.items() if units.any()]
    name = f"settled units: {', '.join(parts) or 'none'}"
    name += f" ({' and '.join(exceptions)} ones left out)" if exceptions else ""
    return _with_units(part, name), int(omissions["disputed"].sum())


def _agreement(
    code: Rated,
    raters: tuple[str, ...],
    part: Population,
    margins: Margins,
    pairs: list[tuple[int, int]] | None = None,
    *,
    apart: bool = False,
) -> list[Agreement]:
    """The rows of `raters` in a population; `apart` gives each pair's kappas the weights of what it rated."""
    columns = [code.raters.index(rater) for rater in raters]
    matrix = np.where(code.matrix[:, columns] < 0, MISSING, code.matrix[:, columns])
    numbers = (matrix != MISSING).sum(1)
    some = (numbers > 0) & part.units
    clusters = code.clusters(some if margins == "all" else (numbers > 1) & part.units)
    ratings = Ratings(
        matrix=matrix[some],
        labels=code.book.labels,
        raters=raters,
        level=code.book.level,
        weights=_select(part.weights, some),
        clusters=_select(clusters, some),
        positive=code.book.positive if code.book.binary else None,
    )
    outcome = measuring.agreement(ratings, _coefficients(code.book.level), pairs=pairs, margins=margins)
    rows = [
        _row(code.book.name, code.code, one, part.name, _left_out(code, one.raters, part)) for one in outcome
    ]
    if apart and len(code.samples) > 1 and not part.name.endswith(OUTSIDE) and len(raters) <= CROWD:
        return _pairs_apart(code, raters, part, margins, rows)
    return rows


def _left_out(code: Rated, raters: Sequence[str], part: Population) -> int:
    """The units of a population that two of the raters were asked about and fewer than two gave a label."""
    answers = code.matrix[:, [code.raters.index(rater) for rater in raters]]
    return int((((answers != MISSING).sum(1) > 1) & ((answers >= 0).sum(1) < 2) & part.units).sum())


def _pairs_apart(
    code: Rated, raters: tuple[str, ...], part: Population, margins: Margins, rows: list[Agreement]
) -> list[Agreement]:
    """The rows with each pair's kappas on the weights of the samples that it rated, where these are not those
    of the population; the mean of such kappas has no interval."""
    among = code.of(raters[0]) != MISSING if raters[0] in code.judges else None
    own: dict[tuple[str, ...], dict[str, Agreement]] = {}
    for one, other in {row.raters for row in rows if row.coefficient in PAIRWISE}:
        both = (code.of(one) != MISSING) & (code.of(other) != MISSING)
        population = code.populations_of(both, among)[0]
        if not _weighs_alike(population, part, both):
            where = _with_units(population, part.name.partition("; units of the samples")[0])
            pair_rows = _agreement(code, (one, other), where, margins)
            own[one, other] = {row.coefficient: row for row in pair_rows if row.coefficient in PAIRWISE}
    rows = [own.get(row.raters, {}).get(row.coefficient, row) for row in rows]
    if not own:
        return rows
    means = {f"mean_{name}": name for name in PAIRWISE}
    return [
        _mean_apart(row, [r for r in rows if r.coefficient == means[row.coefficient]])
        if row.coefficient in means
        else row
        for row in rows
    ]


def _weighs_alike(one: Population, other: Population, units: NDArray[np.bool_]) -> bool:
    """Whether two populations hold the same of the units (units,), with the same weights up to a factor."""
    if (one.units[units] != other.units[units]).any():
        return False
    weights = [np.ones(len(units)) if part.weights is None else part.weights for part in (one, other)]
    ratio = (weights[0] / weights[1])[units & one.units]
    return bool(len(ratio) == 0 or np.ptp(ratio) <= 1e-9 * ratio.max())


def _mean_apart(row: Agreement, kappas: Sequence[Agreement]) -> Agreement:
    defined = [kappa.value for kappa in kappas if kappa.value is not None]
    if row.value is None or not defined:
        return row
    reason = "no interval: pairs rated units of different samples"
    return row.model_copy(
        update={"value": sum(defined) / len(defined), "low": None, "high": None, "reason": reason}
    )


def _row(
    codebook: str | None, code: str, result: Coefficient, population: str | None = None, n_left_out: int = 0
) -> Agreement:
    fields = ("coefficient", "raters", "value", "low", "high", "n_units", "n_ratings", "reason")
    values = {name: getattr(result, name) for name in fields}
    place = population or None
    return Agreement(codebook=codebook, code=code, population=place, n_left_out=n_left_out, **values)


def _over_codes(codes: list[Rated], rows: list[Agreement]) -> Iterator[Agreement]:
    """The codebook as a whole: alpha of the sets of codes, and the mean of the defined kappas."""
    if not codes:
        return
    book = codes[0].book
    if book.binary and (people := _rating_most(codes, least=2)):
        for part in joined_codes(codes).populations_of(asked_twice(codes)):
            yield _sets(codes, people, part)
    for judge in sorted({judge for code in codes for judge in code.judges}) if book.binary else ():
        own_codes = [code for code in codes if judge in code.judges]
        if people := _rating_most(own_codes, least=1):
            for part in _shared_populations(
                own_codes[0].seen_by(judge), judge, joined_codes(own_codes).seen_by(judge)
            ):
                yield _sets(own_codes, (judge, *people), part)
    kappas = [r for r in rows if r.coefficient == "cohen_kappa"]
    for pair, is_outside in sorted({(r.raters, is_outside_samples(r)) for r in kappas}):
        pair_rows = [r for r in kappas if (r.raters, is_outside_samples(r)) == (pair, is_outside)]
        values = [row.value for row in pair_rows if row.value is not None]
        yield Agreement(
            codebook=book.name,
            code=book.name,
            coefficient="macro_cohen_kappa",
            raters=pair,
            value=sum(values) / len(values) if values else None,
            n_units=max(row.n_units for row in pair_rows),
            n_ratings=max(row.n_ratings for row in pair_rows),
            n_left_out=max(row.n_left_out for row in pair_rows),
            population=pair_rows[0].population
            if GOLD not in pair
            else _uncounted(pair_rows[0].population or ""),
            reason=f"mean over the {len(values)} of {len(book.codes)} codes where kappa is defined",
        )


def _uncounted(population: str) -> str:
    """A population of settled units without the counts, which are those of one code."""
    return "; ".join(("settled units", *population.split("; ")[1:]))


def _rating_most(codes: Sequence[Rated], least: int) -> tuple[str, ...]:
    """The people of one code, at `least` so many, who rated the most codes together; of several such groups
    the largest."""
    groups = sorted({code.humans for code in codes if len(code.humans) >= least})

    def reach(people: tuple[str, ...]) -> tuple[int, int]:
        return sum(set(people) <= set(code.humans) for code in codes), len(people)

    return max(groups, key=reach, default=())


def is_outside_samples(row: Agreement) -> bool:
    """Whether a row stands on labels from outside the samples."""
    return (row.population or "").endswith(OUTSIDE)


def joined_codes(codes: list[Rated]) -> Rated:
    """All codes side by side, a column for each rater of each: it tells which units people were asked about
    at all."""
    raters = tuple(f"{code.code} {rater}" for code in codes for rater in code.humans)
    columns = [code.matrix[:, [code.raters.index(r) for r in code.humans]] for code in codes]
    kinds = dict.fromkeys(raters, "human")
    return replace(codes[0], raters=raters, kinds=kinds, matrix=np.concatenate(columns, axis=1))


def _sets(codes: list[Rated], raters: tuple[str, ...], part: Population) -> Agreement:
    """Alpha of the sets of codes that raters found; a set with an unclear, failed or missing answer is left
    out."""
    complete = [code for code in codes if set(raters) <= set(code.raters)]
    answers = np.stack([code.matrix[:, [code.raters.index(r) for r in raters]] for code in complete], axis=2)
    answers = answers[part.units]
    is_complete = np.asarray((answers >= 0).all(axis=2), dtype=np.bool_)
    partial = int(((answers != MISSING).any(axis=2) & ~is_complete).sum())
    clusters = codes[0].where(part.units).clusters(is_complete.sum(1) > 1)
    weights = _select(part.weights, part.units)
    sets = count_of(partial, "set", "sets")
    omission = f"{sets} with an unclear, failed or missing answer left out" if partial else ""
    book = codes[0].book
    fewer = len(complete) < len(book.codes)
    coverage = (
        f"sets of the {len(complete)} of {len(book.codes)} codes that all of them rated" if fewer else ""
    )
    name = "; ".join(text for text in (part.name, coverage, omission) if text)
    alpha = set_alpha(answers == 0, is_complete, raters, weights=weights, clusters=clusters)
    return _row(book.name, book.name, alpha, name)


def _read_csv(path: Path) -> dict[tuple[str, str], tuple[str, int]]:
    """Unit and rater -> the label, empty where there is none, and its line."""
    answers: dict[tuple[str, str], tuple[str, int]] = {}
    try:
        for number, row in inputs.records(path, Input(format="csv"), as_written=True):
            if isinstance(row, dict) and number is not None:
                _add(answers, path, number, row)
            elif isinstance(row, Quarantined):
                raise SourceError(str(row))
    except OSError as error:
        raise SourceError(f"{path}: cannot read: {error.strerror}") from error
    return answers


def _add(
    answers: dict[tuple[str, str], tuple[str, int]], path: Path, line: int, row: Mapping[str, JsonValue]
) -> None:
    cells = {name.strip(): "" if value is None else nfc(str(value).strip()) for name, value in row.items()}
    if lacking := [name for name in COLUMNS if name not in cells]:
        have = ",".join(cells)
        raise SourceError(
            f"{path}:1: columns must be {','.join(COLUMNS)}; {lacking[0]!r} is missing in {have}"
        )
    unit, rater, label = (cells[name] for name in COLUMNS)
    if (unit, rater) in answers:
        raise SourceError(
            f"{path}:{line}: {rater!r} rated {unit!r} before, in line {answers[unit, rater][1]}"
        )
    answers[unit, rater] = label, line


def _coefficients(level: str) -> tuple[str, ...]:
    """The coefficients of a level: weighted kappas suppose an order."""
    return NOMINAL if level == "nominal" else COEFFICIENTS


def _occurring_labels(path: Path, answers: dict[tuple[str, str], tuple[str, int]]) -> tuple[str, ...]:
    """The labels that occur, each as it is written shortest."""
    spellings = sorted(
        {label for label, _ in answers.values() if label}, key=lambda label: (-len(label), label)
    )
    if not spellings:
        raise SourceError(f"{path}: no row has a label")
    labels = sorted({_sense(label): label for label in spellings}.values())
    return tuple(sorted(labels, key=float) if all(map(_is_number, labels)) else labels)


def _sense(label: str) -> str | float:
    """What a label says, however it is written: 1.0 is 1, and Yes is yes, as in a codebook."""
    return float(label) if _is_number(label) else bare(label)


def _is_number(label: str) -> bool:
    try:
        return isfinite(float(label))
    except ValueError:
        return False


def _valid_ratings(matrix: Any, labels: tuple[str, ...], raters: tuple[str, ...], level: Any) -> Ratings:
    try:
        return Ratings(matrix=matrix, labels=labels, raters=raters, level=level)
    except ValueError as error:
        raise UsageError(str(error)) from error
