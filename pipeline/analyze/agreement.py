"""Agreement out of the workspace or a CSV: people with people, judges with people, judges with judges."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ...annotation.statistics import Coefficient, Ratings
from ...annotation.statistics import agreement as measuring
from ...annotation.statistics import confusion as confusing
from ...annotation.statistics.agreement import COEFFICIENTS
from ...annotation.statistics.intervals import MISSING, Floats
from ...annotation.statistics.sets import set_alpha
from ...schemas import GOLD, Agreement
from ..errors import SourceError, UsageError
from ..store import Store
from .matrix import Rated, chosen_books, rated

NOMINAL = tuple(c for c in COEFFICIENTS if c not in ("cohen_kappa_linear", "cohen_kappa_quadratic"))
COLUMNS = ("unit", "rater", "label")


def of_workspace(store: Store, names: Sequence[str] = ()) -> list[Agreement]:
    """Every coefficient for every code that has ratings: all people, each judge with them, all judges.

    Sets and means over the codes of a codebook stand under the codebook's own name.
    """
    rows: list[Agreement] = []
    for book in chosen_books(store, names):
        with store.reading() as connection:
            codes = list(rated(connection, book))
        for code in codes:
            rows.extend(of_codes(code))
        if len(book.codes) > 1:
            rows.extend(_over_codes(codes, rows))
    return rows


def of_csv(path: Path, labels: Sequence[str], level: str) -> list[Agreement]:
    """Every coefficient for the ratings in a long CSV (unit,rater,label); an empty label is missing.

    `labels` are the declared ones in their order; without them those that occur, numbers in ascending order.
    """
    said = _read_csv(path)
    declared = tuple(labels) or _occurring(said)
    if level not in ("nominal", "ordinal", "interval"):
        raise UsageError(f"--level must be nominal, ordinal or interval, got {level!r}")
    if len(declared) < 2:
        declared = (*declared, "(no other label)")
    units = {unit: i for i, unit in enumerate(dict.fromkeys(unit for unit, _ in said))}
    raters = tuple(sorted({rater for _, rater in said}))
    matrix = np.full((len(units), len(raters)), MISSING, dtype=np.int64)
    for (unit, rater), (label, line) in said.items():
        if label and label not in declared:
            raise SourceError(f"{path}:{line}: label must be one of {', '.join(declared)}, got {label!r}")
        if label:
            matrix[units[unit], raters.index(rater)] = declared.index(label)
    ratings = _checked(matrix, declared, raters, level)
    return [_row(path.stem, found) for found in measuring.agreement(ratings)]


def disagreements(store: Store, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The units on which two raters gave different labels, to be discussed: who said what."""
    rows = []
    for book in chosen_books(store, names):
        with store.reading() as connection:
            natives = dict(connection.execute("SELECT id, native_id FROM trajectories").fetchall())
            codes = list(rated(connection, book))
        for code in codes:
            for place, said in enumerate(code.matrix):
                given = {r: book.labels[k] for r, k in zip(code.raters, said, strict=True) if k >= 0}
                if len(set(given.values())) > 1:
                    trajectory, event = code.units[place]
                    address = {"trajectory": trajectory, "native_id": natives[trajectory], "event": event}
                    said_of = {"codebook": book.name, "code": code.code, "labels": given}
                    rows.append({**address, **said_of, "gold": given.get(GOLD)})
    return rows


def confusions(store: Store, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Each judge against what people settled on, code by code: counts and the quality of each label."""
    rows = []
    for book in chosen_books(store, names):
        with store.reading() as connection:
            codes = list(rated(connection, book))
        for code in codes:
            human = code.settled()
            for judge in code.judges:
                if not ((code.of(judge) >= 0) & (human >= 0)).any():
                    continue
                found = confusing.confusion(code.of(judge), human, book.labels, design_weights(code))
                head = {"codebook": book.name, "code": code.code, "judge": judge}
                counts = {"labels": list(found.labels), "counts": found.counts.tolist()}
                classes = [asdict(quality) for quality in found.classes]
                rows.append({**head, **counts, "classes": classes})
    return rows


def design_weights(code: Rated) -> Floats | None:
    """1/π of each unit where the sample was not drawn evenly and covers all that people rated; else None."""
    asked = (code.matrix[:, [code.raters.index(r) for r in (*code.humans, *_gold(code))]] != MISSING).any(1)
    drawn = code.inclusion[asked]
    if not len(drawn) or np.isnan(drawn).any() or np.ptp(drawn) < 1e-9:
        return None
    weights: Floats = 1 / np.where(np.isnan(code.inclusion), 1.0, code.inclusion)
    return weights


def _gold(code: Rated) -> tuple[str, ...]:
    return (GOLD,) if GOLD in code.raters else ()


def of_codes(code: Rated) -> Iterator[Agreement]:
    """Every coefficient for one code: all people, each judge with them and with gold, all judges."""
    weights = design_weights(code)
    if len(code.humans) > 1 or (code.humans and not code.judges):
        yield from _agreement(code, code.humans, weights)
    for judge in code.judges:
        if code.humans:
            pairs = [(0, place) for place in range(1, len(code.humans) + 1)]
            for row in _agreement(code, (judge, *code.humans), weights, pairs):
                name = row.coefficient
                renamed = "mean_judge_human_kappa" if name == "mean_cohen_kappa" else name
                yield row.model_copy(update={"coefficient": renamed})
        if GOLD in code.raters:
            yield from _agreement(code, (judge, GOLD), weights)
    if len(code.judges) > 1:
        yield from _agreement(code, code.judges, None)


def _agreement(
    code: Rated, raters: tuple[str, ...], weights: Floats | None, pairs: list[tuple[int, int]] | None = None
) -> list[Agreement]:
    columns = [code.raters.index(rater) for rater in raters]
    matrix = np.where(code.matrix[:, columns] < 0, MISSING, code.matrix[:, columns])
    some = (matrix != MISSING).sum(1) > 0
    ratings = Ratings(
        matrix=matrix[some],
        labels=code.book.labels,
        raters=raters,
        level=code.book.level,
        weights=None if weights is None else weights[some],
        clusters=None if code.clusters is None else code.clusters[some],
        positive=code.book.positive if code.book.binary else None,
    )
    wanted = NOMINAL if code.book.level == "nominal" else COEFFICIENTS
    return [_row(code.code, found) for found in measuring.agreement(ratings, wanted, pairs=pairs)]


def _row(code: str, found: Coefficient) -> Agreement:
    fields = ("coefficient", "raters", "value", "low", "high", "n_units", "n_ratings", "reason")
    return Agreement(code=code, **{name: getattr(found, name) for name in fields})


def _over_codes(codes: list[Rated], rows: list[Agreement]) -> Iterator[Agreement]:
    """The codebook as a whole: alpha of the sets of codes, and the mean of the defined kappas."""
    if not codes:
        return
    book = codes[0].book
    everyone = [codes[0].humans] if len(codes[0].humans) > 1 else []
    everyone += [(judge, *codes[0].humans) for judge in codes[0].judges if codes[0].humans]
    for raters in everyone:
        complete = [code for code in codes if set(raters) <= set(code.raters)]
        said = np.stack([code.matrix[:, [code.raters.index(r) for r in raters]] for code in complete], axis=2)
        answered = np.asarray((said >= 0).any(axis=2), dtype=np.bool_)
        yield _row(book.name, set_alpha(said == 0, answered, raters))
    names = {code.code for code in codes}
    for pair in sorted({r.raters for r in rows if r.coefficient == "cohen_kappa" and r.code in names}):
        own = [r for r in rows if r.coefficient == "cohen_kappa" and r.raters == pair and r.code in names]
        defined = [row.value for row in own if row.value is not None]
        yield Agreement(
            code=book.name,
            coefficient="macro_cohen_kappa",
            raters=pair,
            value=sum(defined) / len(defined) if defined else None,
            n_units=max(row.n_units for row in own),
            n_ratings=max(row.n_ratings for row in own),
            reason=f"mean over the {len(defined)} of {len(book.codes)} codes where kappa is defined",
        )


def _read_csv(path: Path) -> dict[tuple[str, str], tuple[str, int]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _said(path, csv.DictReader(file))
    except OSError as error:
        raise SourceError(f"{path}: cannot read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8: {error}") from error


def _said(path: Path, reader: csv.DictReader[str]) -> dict[tuple[str, str], tuple[str, int]]:
    found = [name.strip() for name in reader.fieldnames or ()]
    if lacking := [name for name in COLUMNS if name not in found]:
        raise SourceError(
            f"{path}:1: columns must be {','.join(COLUMNS)}; {lacking[0]!r} is missing in {','.join(found)}"
        )
    said: dict[tuple[str, str], tuple[str, int]] = {}
    for row in reader:
        key = (row["unit"], row["rater"])
        if None in key or row["label"] is None:
            raise SourceError(f"{path}:{reader.line_num}: fewer cells than columns")
        if key in said:
            raise SourceError(
                f"{path}:{reader.line_num}: {key[1]!r} rated {key[0]!r} before, in line {said[key][1]}"
            )
        said[key] = (row["label"].strip(), reader.line_num)
    return said


def _occurring(said: dict[tuple[str, str], tuple[str, int]]) -> tuple[str, ...]:
    labels = sorted({label for label, _ in said.values() if label})
    try:
        return tuple(sorted(labels, key=float))
    except ValueError:
        return tuple(labels)


def _checked(matrix: Any, labels: tuple[str, ...], raters: tuple[str, ...], level: Any) -> Ratings:
    try:
        return Ratings(matrix=matrix, labels=labels, raters=raters, level=level)
    except ValueError as error:
        raise UsageError(str(error)) from error
