"""One page on a judge: its agreement with people beside people's own, its errors, whether it moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import numpy as np

from ...annotation.statistics.audit import ERROR, UNCLEAR
from ...annotation.statistics.confusion import calibration, confusion
from ...annotation.statistics.crowds import rater_names
from ...annotation.statistics.intervals import MISSING
from ...annotation.statistics.validation import alternative_annotator_test
from ...schemas import GOLD, Agreement
from ...schemas.text import count_of
from ..errors import UsageError
from ..store import AMONG, Selection, Store, dictionaries, texts
from . import drift, locating
from .agreement import of_codes, people_kappa, qualities, with_people
from .consistency import consistency
from .locating import accuracy_rows
from .matrices import rated_codes
from .matrix import Rated, chosen_books, groups

EXAMPLES = 5
"""Errors of a kind that are shown."""
QUALITIES = ("sensitivity", "specificity", "ppv", "npv")
EVENLY = "the labelled units count evenly: not weighted by 1/π, though the samples drew them unevenly"
"""Note on figures that are not weighted."""
TRAP = (
    "A judge that never finds a code passes this test where the code is rare: read it only together with "
    "the sensitivity beside it."
)

SHOWN = "(external->>'$.labelstudio.parent_prediction') IS NOT NULL"
"""Of a rating: whether its annotator began from a label that Label Studio showed."""
BIAS = "not blind to whoever made it, they agree with it more than others would"


def validate(
    store: Store,
    judge: str,
    names: Sequence[str] = (),
    *,
    margin: float = 0.2,
    previous: str | None = None,
    only: Selection | None = None,
) -> dict[str, Any]:
    """The page as one document, code by code; UsageError for a judge without ratings."""
    codes: list[Rated] = []
    accuracies: list[dict[str, Any]] = []
    intra_rater: list[tuple[str, Agreement]] = []
    judges: set[str] = set()
    for book in chosen_books(store, names):
        with store.reading() as connection:
            group_of = groups(connection, ("condition",))
            for code in rated_codes(connection, book, only):
                judges.update(code.judges)
                if judge in code.judges:
                    codes.append(code)
                    accuracies.extend(accuracy_rows(code, judge, group_of))
            intra_rater.extend(
                (book.name, row) for row in consistency(connection, book, only) if row.raters == (judge,)
            )
    if not codes:
        others = (
            f"there are ratings by {', '.join(sorted(judges))}" if judges else "`coaudit judge` makes them"
        )
        raise UsageError(f"no ratings by judge {judge!r} on these codebooks; {others}")
    if not 0 <= margin < 1:
        raise UsageError(f"--margin must lie in 0..1, below 1, got {margin:g}")
    errors = [_errors(code, judge) for code in codes]
    with store.reading() as connection:
        drifts = drift.drifts(connection, codes, judge, previous)
        where, values = (only or Selection()).where()
        versions = dictionaries(connection, _VERSIONS.format(where=where), [judge, judge, *values])
        labels = dictionaries(connection, _LABELS.format(where=where), values)
        _quote(connection, [example for kinds in errors for kind in kinds for example in kind["examples"]])
    return {
        "judge": judge,
        "versions": versions,
        "located": accuracies,
        "codes": [
            {
                **_code(code, judge, margin, kinds),
                **_label_counts(labels, code),
                "drift": shift and {**shift, "note": _evenly(code.seen_by(judge))},
                "consistency": [
                    row.model_dump()
                    for name, row in intra_rater
                    if (name, row.code) == (code.book.name, code.code)
                ],
            }
            for code, kinds, shift in zip(codes, errors, drifts, strict=True)
        ],
    }


def _code(code: Rated, judge: str, margin: float, errors: list[dict[str, Any]]) -> dict[str, Any]:
    answers = code.of(judge)
    coefficients = [
        row for row in of_codes(code) if judge in row.raters or set(row.raters) <= set(code.humans)
    ]
    items = list(qualities(code, judge))
    confused = items[0] if items else _no_confusion(code)
    return {
        "codebook": code.book.name,
        "code": code.code,
        "positive": code.book.positive,
        "n_judged": int((answers >= 0).sum()),
        "n_unclear": int((answers == UNCLEAR).sum()),
        "n_errors": int((answers == ERROR).sum()),
        # A unit counts in part for each label that people gave it, and once in all.
        "n_both": round(sum(map(sum, confused["counts"]))),
        "kappa": _document(with_people(coefficients, judge)),
        "kappa_of_people": _document(people_kappa(coefficients, code.humans)),
        "agreement": [row.model_dump() for row in coefficients],
        "confusion": confused,
        "outside_the_samples": items[1] if len(items) > 1 else None,
        "errors": errors,
        "calibration": _calibration(code, judge),
        "alternative_annotator_test": _alternative(code, judge, margin, confused),
    }


def _label_counts(rows: Sequence[dict[str, Any]], code: Rated) -> dict[str, int]:
    """How many labels people gave of a code, and how many of them began from one that they were shown."""
    place = (code.book.name, code.code)
    own = [row for row in rows if (row["codebook"], row["code"]) == place]
    return {name: sum(row[name] for row in own) for name in ("n_labels", "n_shown")}


def _document(row: Agreement | None) -> dict[str, Any] | None:
    return None if row is None else row.model_dump()


def _no_confusion(code: Rated) -> dict[str, Any]:
    """What `qualities` says of a judge that shares no unit with people."""
    q, labels = len(code.book.labels), code.book.labels
    nothing = confusion(np.empty(0, dtype=np.int64), np.empty((0, q)), labels)
    classes = [asdict(one) for one in nothing.classes]
    return {"population": "", "labels": list(labels), "counts": nothing.counts.tolist(), "classes": classes}


def _errors(code: Rated, judge: str) -> list[dict[str, Any]]:
    """Where the judge is wrong, by kind (people's label, judge's label), with examples; ties apart."""
    human, answers, labels = code.consensus(), code.of(judge), code.book.labels
    kinds = []
    for theirs in range(len(labels)):
        for ours in range(len(labels)):
            places = np.flatnonzero((human == theirs) & (answers == ours))
            if theirs == ours or not len(places):
                continue
            units = [code.unit(place) for place in places[:EXAMPLES]]
            examples = [{"trajectory": t, "event": e, "text": None} for t, e in units]
            kind = {"people": labels[theirs], "judge": labels[ours], "n": len(places)}
            kinds.append({**kind, "examples": examples})
    return kinds


def _quote(connection: duckdb.DuckDBPyConnection, examples: Sequence[dict[str, Any]]) -> None:
    """Add to examples the text of their message, where they are of one."""
    rows = dictionaries(connection, _TEXTS, [texts({example["trajectory"] for example in examples})])
    messages = {(row["trajectory_id"], row["event"]): row["text"] for row in rows}
    for example in examples:
        example["text"] = messages.get((example["trajectory"], example["event"]))


def _calibration(code: Rated, judge: str) -> dict[str, Any]:
    """Of the probability of the positive label; with more than two labels of that of the label given (Guo et
    al. 2017). A rater gives the probability of the label that it chose."""
    human, answers = code.consensus(), code.of(judge)
    probabilities = code.probability[:, code.raters.index(judge)]
    usable = (human >= 0) & (answers >= 0) & ~np.isnan(probabilities)
    if len(code.book.labels) == 2:
        probabilities = np.where(answers == 0, probabilities, 1 - probabilities)
        outcomes = human == 0
    else:
        outcomes = human == answers
    clusters = code.clusters(usable)
    within = None if clusters is None else clusters[usable]
    result = calibration(probabilities[usable], outcomes[usable].astype(np.int64), clusters=within)
    return {**asdict(result), "note": _evenly(code.seen_by(judge))}


def _evenly(code: Rated) -> str | None:
    """The note on figures that do not weigh units, where a sample drew these unevenly."""
    return None if all(part.weights is None for part in code.populations) else EVENLY


def _alternative(code: Rated, judge: str, margin: float, confused: dict[str, Any]) -> dict[str, Any]:
    """The test beside the sensitivity of the page; its own knows nothing of how units came to people."""
    columns = [code.raters.index(rater) for rater in code.humans]
    humans = np.where(code.matrix[:, columns] < 0, MISSING, code.matrix[:, columns])
    answers = np.where(code.of(judge) < 0, MISSING, code.of(judge))
    overlap = (answers != MISSING) & ((humans != MISSING).sum(1) > 1)
    outcome = alternative_annotator_test(
        answers, humans, code.humans, positive=0, margin=margin, clusters=code.clusters(overlap)
    )
    beside = {"sensitivity": _positive_class(code.book.positive, confused)["sensitivity"]}
    note = _evenly(code.seen_by(judge))
    return {**asdict(outcome), **beside, "margin": margin, "trap": TRAP, "note": note}


def _positive_class(positive: str, confused: dict[str, Any]) -> dict[str, Any]:
    """What `qualities` says of the positive label."""
    row: dict[str, Any] = next(one for one in confused["classes"] if one["label"] == positive)
    return row


def _calibration_line(result: dict[str, Any]) -> str:
    if result["ece"] is None:
        return f"calibration: – ({result['reason']})"
    figures = f"error {result['ece']:.3f} (by chance alone {result['ece_by_chance']:.3f})"
    note = f"; {result['note']}" if result["note"] else ""
    brier = {"value": result["brier"], "low": result["brier_low"], "high": result["brier_high"]}
    return f"calibration: {figures}, Brier {_number(brier)}, n={result['n']}{note}"


def lines(page: dict[str, Any]) -> Iterator[str]:
    """The page as text."""
    yield f"Judge {page['judge']}"
    for version in page["versions"]:
        title = f"version {version['rater_version'] or '–'}, model {version['model'] or '–'}"
        yield f"  {title}: {count_of(version['n'], 'rating', 'ratings')}"
    for code in page["codes"]:
        yield from ("", f"{code['codebook']} / {code['code']}")
        same = (code["codebook"], code["code"])
        yield from locating.lines([r for r in page["located"] if (r["codebook"], r["code"]) == same])
        counts = (f"{name} {code[f'n_{name}']}" for name in ("judged", "unclear", "errors", "both"))
        yield f"  {', '.join(counts)}"
        yield from (f"  {line}" for line in _shown_first([code]))
        for row in (*code["agreement"], *code["consistency"]):
            where = f"; {row['population']}" if row["population"] else ""
            yield f"  {row['coefficient']} ({rater_names(row['raters'], ', ')}): {_number(row)}{where}"
        if code["confusion"]["population"]:
            yield f"  errors on {code['confusion']['population']}"
        for quality in code["confusion"]["classes"]:
            figures = (f"{name} {_number(quality[name])}" for name in QUALITIES)
            yield f"  {quality['label']}: {', '.join(figures)}"
        for kind in code["errors"]:
            yield f"  people {kind['people']}, judge {kind['judge']}: {kind['n']}"
        yield f"  {_calibration_line(code['calibration'])}"
        yield from (f"  {line}" for line in drift.lines(code["drift"]))
        test = code["alternative_annotator_test"]
        verdict = test["reason"] or _verdict(test)
        sentence = f"{verdict}; {test['note']}" if test["note"] and not test["reason"] else verdict
        yield f"  alternative annotator test (ε = {test['margin']}): {sentence}. {test['trap']}"


def _verdict(test: dict[str, Any]) -> str:
    outcome = "passed" if test["passed"] else "not passed, which shows nothing where units are few"
    return f"winning rate {test['winning_rate']:.2f}, {outcome}"


@dataclass(frozen=True)
class Summary:
    """A page in short: a row a code that people labelled, the others counted."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Code, units, kappa with people, people's own, sensitivity, specificity, alternative annotator test."""
    foot: tuple[str, ...]


def summary(page: dict[str, Any]) -> Summary:
    """What a reader needs first of `validate`'s page."""
    versions = [
        f"{row['rater_version'] or '–'} ({row['model'] or 'no model'}, "
        f"{count_of(row['n'], 'rating', 'ratings')})"
        for row in page["versions"]
    ]
    labelled = [code for code in page["codes"] if code["n_both"]]
    bare = [code["code"] for code in page["codes"] if not code["n_both"]]
    foot = [
        f"kappa: Cohen's, of the judge and {_partners(labelled)}, on a scale with quadratic weights; "
        "intervals of 95 %. All coefficients and errors: --full.",
    ]
    for label, codes in _one_of_many(labelled).items():
        foot.append(
            f"sensitivity, specificity: of the label {label} against all others where codes have more than "
            f"two ({', '.join(codes)}); of each label: --full."
        )
    foot += _undefined(labelled)
    foot += _without_answer(labelled)
    foot += _shown_first(labelled)
    if bare:
        some = f"{len(bare)} codes have no unit that" if len(bare) > 1 else "one code has no unit that"
        foot.insert(
            0, f"{some} people and the judge both labelled: {', '.join(bare)}; `coaudit sample` draws some."
        )
    tests = [code["alternative_annotator_test"] for code in labelled]
    if any(not test["passed"] and not test["reason"] for test in tests):
        foot.append(
            "may stand in: for a person, by the alternative annotator test (in brackets its winning rate, of "
            "0.5 or more where it passes); open says nothing against the judge where units are few."
        )
    if any(test["passed"] for test in tests):
        foot.append(f"may stand in: for a person, worse by less than ε. {TRAP}")
    return Summary(
        head=(f"Judge {page['judge']}: version {', '.join(versions)}", *locating.lines(page["located"])),
        rows=tuple(_summary_row(code) for code in labelled),
        foot=(*(f"{c['code']}, {line}" for c in page["codes"] for line in drift.lines(c["drift"])), *foot),
    )


def _partners(codes: Sequence[dict[str, Any]]) -> str:
    """With what the kappas of the short page compare the judge."""
    by_gold = [code["code"] for code in codes if code["kappa"] and GOLD in code["kappa"]["raters"]]
    people = "a person (the mean over people)"
    if not by_gold:
        return people
    labels = "settled labels (gold has more units than people labelled; not comparable with people's own)"
    return labels if len(by_gold) == len(codes) else f"{people}, of {', '.join(by_gold)} {labels}"


def _undefined(codes: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Why figures of the short page have no value, the codes of each reason together."""
    errors = [_positive_class(code["positive"], code["confusion"]) for code in codes]
    for name, figures in (
        ("kappa", [code["kappa"] for code in codes]),
        ("people's own", [code["kappa_of_people"] for code in codes]),
        *((name, [one[name] for one in errors]) for name in ("sensitivity", "specificity")),
    ):
        lacking: dict[str, list[str]] = {}
        for code, row in zip(codes, figures, strict=True):
            if row is None or row["value"] is None:
                lacking.setdefault(row["reason"] if row else "no two people labelled", []).append(
                    code["code"]
                )
        for reason, names in lacking.items():
            yield f"{name} – ({', '.join(names)}): {reason}"


def _without_answer(codes: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How often the judge gave no label, which all other figures leave out."""
    lacking = {code["code"]: (code["n_unclear"] + code["n_errors"], code["n_judged"]) for code in codes}
    parts = [f"{code} {n:,} of {n + others:,}" for code, (n, others) in lacking.items() if n]
    if parts:
        yield (
            f"units that the judge found unclear or failed on: {', '.join(parts)}; all figures are of the "
            "others, and hold for these only if they are alike."
        )


def _shown_first(codes: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How many labels of people began from one that they were shown."""
    parts = [f"{code['code']} {code['n_shown']} of {code['n_labels']}" for code in codes if code["n_shown"]]
    if parts:
        yield f"labels that people began from a judge's, which they were shown: {', '.join(parts)}; {BIAS}."


def _one_of_many(codes: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Label -> the codes with more than two labels of which the short page shows this one alone."""
    by_label: dict[str, list[str]] = {}
    for code in codes:
        if len(code["confusion"]["labels"]) > 2:
            by_label.setdefault(code["positive"], []).append(code["code"])
    return by_label


def _summary_row(code: dict[str, Any]) -> tuple[str, ...]:
    positive = _positive_class(code["positive"], code["confusion"])
    test = code["alternative_annotator_test"]
    return (
        code["code"],
        str(code["n_both"]),
        _short_number(code["kappa"]),
        _short_number(code["kappa_of_people"]),
        _short_number(positive["sensitivity"]),
        _short_number(positive["specificity"]),
        "–" if test["reason"] else f"{'yes' if test['passed'] else 'open'} ({test['winning_rate']:.2f})",
    )


def _short_number(row: dict[str, Any] | None) -> str:
    if row is None or row["value"] is None:
        return "–"
    if row["low"] is None:
        return f"{row['value']:.2f}"
    return f"{row['value']:.2f} [{row['low']:.2f}–{row['high']:.2f}]"


def _number(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return f"– ({row['reason']})"
    interval = "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['value']:.3f}{interval}"


_VERSIONS = """
    SELECT rater_version, model, count(*) AS n, min(created) AS first, max(created) AS last
    FROM counted_ratings
    WHERE (asked = ? OR rater = ?) AND trajectory_id IN (SELECT t.id FROM trajectories t WHERE {where})
    GROUP BY ALL ORDER BY first
"""
_ANSWER = "(trajectory_id, event, coalesce(external->>'$.labelstudio', rater))"
"""What tells a person's labels apart: an annotation that is marked as gold is a rating of both."""
_LABELS = f"""
    SELECT codebook, code, count(DISTINCT {_ANSWER}) AS n_labels,
        count(DISTINCT {_ANSWER}) FILTER (WHERE {SHOWN}) AS n_shown
    FROM counted_ratings
    WHERE rater_kind = 'human' AND label IS NOT NULL
        AND trajectory_id IN (SELECT t.id FROM trajectories t WHERE {{where}})
    GROUP BY ALL
"""
_TEXTS = f"""
    SELECT trajectory_id, seq AS event, left(text, 400) AS text FROM events
    WHERE kind = 'message' AND trajectory_id {AMONG}
"""
