"""One page on people's labels: how far those who labelled agree, code by code, over all codes, and by group.

Over all codes, the cells (unit, code) of a codebook are pooled, as MAST (Cemri et al. 2025) reports a round's
agreement: the mean of Cohen's kappas over pairs of annotators, and Fleiss' kappa of all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics import Coefficient, Ratings
from ...annotation.statistics import agreement as measuring
from ...annotation.statistics.crowds import CROWD, rater_names
from ...annotation.statistics.intervals import MISSING
from ...schemas import Agreement
from ...schemas.text import count_of
from ..errors import UsageError
from ..store import Selection, Store
from .agreement import asked_twice, joined_codes, of_codes
from .matrices import rated_codes
from .matrix import Population, Rated, chosen_books, group_name, groups, unit_groups

COEFFICIENTS = ("cohen_kappa", "mean_cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "percent_agreement")
ON_A_SCALE = ("cohen_kappa_quadratic", "mean_cohen_kappa_quadratic", "krippendorff_alpha")
"""Of labels that have an order: a near miss is less wrong than a far one."""
JOINT = ("mean_cohen_kappa", "mean_cohen_kappa_quadratic", "fleiss_kappa", "krippendorff_alpha")
"""Coefficients in the page's text: those of all people, not of each pair."""


def people(
    store: Store,
    names: Sequence[str] = (),
    by: Sequence[str] = ("condition",),
    *,
    only: Selection | None = None,
) -> dict[str, Any]:
    """The page as one document; UsageError where nobody labelled anything."""
    books = []
    for book in chosen_books(store, names):
        with store.reading() as connection:
            codes = [code for code in rated_codes(connection, book, only) if code.humans]
            group_of = groups(connection, by)
        if codes:
            rows = [row for code in codes for row in of_codes(code) if _is_peoples(row, code)]
            marks = [_counts(code) for code in codes]
            pooled = list(_joint_rows(codes, group_of)) if len(codes) > 1 else []
            books.append(
                {
                    "codebook": book.name,
                    "unit": book.unit,
                    "level": book.level,
                    "labels": list(book.labels),
                    "raters": sorted({rater for code in codes for rater in code.humans}),
                    "codes": [row.model_dump() for row in rows],
                    "counts": marks,
                    "pooled": pooled,
                }
            )
    if not books:
        raise UsageError(
            f"no labels by people on these codebooks{' in these sessions' if only else ''} (gold is not a "
            "person's); `coaudit ratings import` imports labels, `coaudit validate JUDGE` compares a judge "
            "with gold"
        )
    return {"judge": None, "people": books}


def _is_peoples(row: Agreement, code: Rated) -> bool:
    return row.coefficient in (*COEFFICIENTS, *ON_A_SCALE) and set(row.raters) <= set(code.humans)


def _counts(code: Rated) -> dict[str, Any]:
    """How often each person found the code."""
    return {
        "code": code.code,
        "positive": {rater: int((code.of(rater) == 0).sum()) for rater in code.humans},
        "n": {rater: int((code.of(rater) >= 0).sum()) for rater in code.humans},
    }


def _joint_rows(
    codes: list[Rated], group_of: Mapping[str, Mapping[str, str | None]]
) -> Iterator[dict[str, Any]]:
    raters = tuple(sorted({rater for code in codes for rater in code.humans}))
    if len(raters) < 2:
        return
    names, places = unit_groups(codes[0], (group_name(group_of.get(key, {})) for key in codes[0].ids))
    for part in joined_codes(codes).populations_of(asked_twice(codes)):
        yield from _rows(codes, raters, part, part.units, None)
        for name in sorted(names) if len(names) > 1 else ():
            yield from _rows(codes, raters, part, part.units & (places == names.index(name)), name)


def _rows(
    codes: list[Rated],
    raters: tuple[str, ...],
    part: Population,
    units: NDArray[np.bool_],
    group: str | None,
) -> Iterator[dict[str, Any]]:
    cells = np.concatenate([_cells(code, raters)[units] for code in codes])
    some = (cells != MISSING).sum(1) > 1
    if not some.any():
        return
    own = codes[0].where(units)
    instances = own.clusters(some.reshape(len(codes), -1).any(0))
    clusters = np.tile(own.trajectory if instances is None else instances, len(codes))[some]
    weights = None if part.weights is None else np.tile(part.weights[units], len(codes))[some]
    book = codes[0].book
    ratings = Ratings(
        matrix=cells[some],
        labels=book.labels,
        raters=raters,
        level=book.level,
        weights=weights,
        clusters=clusters,
    )
    coefficients = (
        ("cohen_kappa", "mean_cohen_kappa", "fleiss_kappa") if book.level == "nominal" else ON_A_SCALE
    )
    n_traces = len(np.unique(np.tile(own.trajectory, len(codes))[some]))
    for coefficient in measuring.agreement(ratings, coefficients):
        size = {"n_traces": n_traces, "population": part.name or None}
        yield {"group": group, **size, **_row(coefficient)}


def _row(coefficient: Coefficient) -> dict[str, Any]:
    names = ("coefficient", "raters", "value", "low", "high", "n_units", "reason")
    return {name: getattr(coefficient, name) for name in names}


def _cells(code: Rated, raters: tuple[str, ...]) -> NDArray[np.int64]:
    columns = [
        np.where(code.of(rater) < 0, MISSING, code.of(rater))
        if rater in code.raters
        else np.full(len(code.event), MISSING, dtype=np.int64)
        for rater in raters
    ]
    cells: NDArray[np.int64] = np.stack(columns, axis=1)
    return cells


def lines(page: dict[str, Any]) -> Iterator[str]:
    """The page as text: a line a code, and a line for all codes in each group."""
    for book in page["people"]:
        yield f"People on {book['codebook']}: {rater_names(book['raters'], ', ')}"
        to_find = book["level"] == "nominal" and len(book["labels"]) == 2
        all_raters = set(book["raters"])
        for count in book["counts"]:
            rows = [row for row in book["codes"] if row["code"] == count["code"]]
            names = ("mean_cohen_kappa", "fleiss_kappa") if book["level"] == "nominal" else ON_A_SCALE
            selection = [row for row in rows if row["coefficient"] in names and row["coefficient"] in JOINT]
            selection = selection or [row for row in rows if row["coefficient"] == "cohen_kappa"]
            figures = map(_coefficient_text, selection) if selection else ["one person labelled it"]
            left_out = max((row["n_left_out"] for row in rows), default=0)
            omission = [f"{left_out:,} more left out: unclear, or no answer"] if left_out else []
            texts = [*figures, _count_text(count, to_find, all_raters), *omission]
            yield f"  {count['code']}: {'; '.join(texts)}"
        joint = [row for row in book["pooled"] if row["coefficient"] in JOINT]
        for row in joint or book["pooled"]:
            parts = (row["group"], count_of(row["n_traces"], "trajectory", "trajectories"), row["population"])
            where = ", ".join(text for text in parts if text)
            yield f"  over all codes ({where}): {_coefficient_text(row)}"


def _count_text(count: dict[str, Any], to_find: bool, raters: Collection[str]) -> str:
    """How often each found the code, or how many units each labelled where labels are not yes and no: in the
    order of the `raters`, by name where not all of these labelled it; of a crowd, the totals."""
    if len(count["n"]) > CROWD:
        labels = f"{sum(count['n'].values())} labels by {len(count['n'])} people"
        return f"found in {sum(count['positive'].values())} of {labels}" if to_find else labels
    names = sorted(count["n"])
    titles = {name: "" if set(names) == set(raters) else f"{name} " for name in names}
    if to_find:
        return "found " + ", ".join(f"{titles[r]}{count['positive'][r]} of {count['n'][r]}" for r in names)
    return "labelled " + ", ".join(f"{titles[r]}{count['n'][r]}" for r in names)


def _coefficient_text(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return f"{row['coefficient']} – ({row['reason']})"
    reason = f" ({row['reason']})" if row["reason"] else ""
    interval = reason if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['coefficient']} {row['value']:.3f}{interval}"
