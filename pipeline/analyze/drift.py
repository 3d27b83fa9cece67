"""Whether a judge has moved: two versions of it on the same units, code by code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import duckdb
import numpy as np

from ...annotation.statistics.comparisons import adjust
from ...annotation.statistics.intervals import MISSING, Ints
from ...annotation.statistics.validation import Drift, drift
from ..errors import UsageError
from ..store import execute
from ..store.queries.copies import IS_COPY
from .matrix import Rated, answer


def drifts(
    connection: duckdb.DuckDBPyConnection, codes: Sequence[Rated], judge: str, previous: str | None
) -> list[dict[str, Any] | None]:
    """A document a code, None where the earlier version has no ratings; p-values are Holm's over the codes.

    A version is all that it said, also of units that another has rated since. UsageError for an earlier
    version that has no ratings of any.
    """
    if previous is None:
        return [None] * len(codes)
    pairs = [[_answers_of(connection, code, name) for name in (previous, judge)] for code in codes]
    if previous == judge or all(old is None for old, _ in pairs):
        choices = ", ".join(sorted(set(_names(connection, codes)) - {judge, previous})) or "none yet"
        raise UsageError(f"--previous: {previous!r} is no other judge of these, expected one of {choices}")
    results = [
        None
        if old is None or new is None
        else drift(
            old, new, positive=0, human=code.consensus(), clusters=code.clusters((old >= 0) & (new >= 0))
        )
        for code, (old, new) in zip(codes, pairs, strict=True)
    ]
    rates = iter(adjust([result.rate for result in results if result]))
    accuracies = iter(adjust([result.accuracy for result in results if result and result.accuracy]))
    documents: list[dict[str, Any] | None] = []
    for code, result in zip(codes, results, strict=True):
        if result is not None:
            accuracy = result.accuracy and next(accuracies)
            result = replace(result, rate=next(rates), accuracy=accuracy)
        if result is None:
            documents.append(None)
        else:
            copies = _copies(connection, code, judge, previous)
            documents.append({**_document(code, result, judge, previous), "copies": copies})
    return documents


def lines(document: dict[str, Any] | None) -> Iterator[str]:
    """One code's document as text."""
    if document is None:
        return
    change = document["changed"]
    share = f"– ({change['reason']})" if change["value"] is None else f"{change['value']:.3f}"
    interval = "" if change["low"] is None else f" [{change['low']:.3f}, {change['high']:.3f}]"
    alone = f"{document['only_old']} labelled by the earlier alone, {document['only_new']} by the later"
    if document["copies"]:
        alone += f"; {document['copies']} have one answer for both, to the same prompt"
    note = f"; {document['note']}" if document["note"] else ""
    yield f"since {document['previous']}: changed {share}{interval}, n={document['n']}; {alone}{note}"
    yield from document["statements"]


def _answers_of(connection: duckdb.DuckDBPyConnection, code: Rated, name: str) -> Ints | None:
    """(units,) what a rater, or one version of it, said; None where it said nothing of these units."""
    rows = execute(connection, _ANSWERS, [code.book.name, code.code, name]).fetchall()
    if not rows:
        return code.of(name) if name in code.raters else None
    of_unit = {(trajectory, event): answer(code.book, label) for trajectory, event, label in rows}
    answers = np.array([of_unit.get(unit, MISSING) for unit in code.units], dtype=np.int64)
    return answers if (answers != MISSING).any() else None


def _copies(connection: duckdb.DuckDBPyConnection, code: Rated, judge: str, previous: str) -> int:
    """On how many units one of two took over what the other had answered: there, none can have changed."""
    rows = execute(connection, _COPIES, [code.book.name, code.code, judge, previous]).fetchall()
    return len(set(rows) & set(code.units))


def _names(connection: duckdb.DuckDBPyConnection, codes: Sequence[Rated]) -> Iterator[str]:
    for book in {code.book.name for code in codes}:
        names = (str(name) for (name,) in execute(connection, _VERSIONS, [book]).fetchall())
        own = [code for code in codes if code.book.name == book]
        yield from (name for name in names if any(_has_answers(connection, code, name) for code in own))


def _has_answers(connection: duckdb.DuckDBPyConnection, code: Rated, name: str) -> bool:
    return _answers_of(connection, code, name) is not None


def _document(code: Rated, one: Drift, judge: str, previous: str) -> dict[str, Any]:
    statements = [one.rate.statement(f"rate of {code.book.positive!r}", judge, previous)]
    if one.accuracy is not None:
        statements.append(one.accuracy.statement("agreement with people", judge, previous))
    return {**asdict(one), "previous": previous, "statements": statements}


_WHOLE = f"""
    WITH whole AS (
        SELECT r.trajectory_id, r.event, r.code, r.label, r.ledger, r.line, r.prompt_hash, r.parameters,
            {IS_COPY} AS is_copy, coalesce(
            n.shown, r.rater || ' (' || coalesce(r.rater_version, 'no version') || ')'
        ) AS shown
        FROM answered_ratings r
        LEFT JOIN version_names n
            ON n.codebook = r.codebook AND n.asked = r.rater
            AND n.rater_version IS NOT DISTINCT FROM r.rater_version
        WHERE r.codebook = ? AND r.rater_kind <> 'human' AND r.repeat = 0 AND NOT r.opening
    )
"""
_ANSWERS = (
    _WHOLE
    + "SELECT trajectory_id, event, label FROM whole WHERE code = ? AND shown = ? ORDER BY ledger, line"
)
_COPIES = f"""{_WHOLE}
    SELECT DISTINCT new.trajectory_id, new.event FROM whole new JOIN whole old
        ON (old.code, old.trajectory_id, old.prompt_hash, old.parameters)
            = (new.code, new.trajectory_id, new.prompt_hash, new.parameters)
        AND old.event IS NOT DISTINCT FROM new.event
    WHERE new.code = ? AND new.shown = ? AND old.shown = ? AND (new.is_copy OR old.is_copy)
"""
_VERSIONS = _WHOLE + "SELECT DISTINCT shown FROM whole"
