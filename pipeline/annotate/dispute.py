"""Disagreements between annotators, with their answers, for whoever settles them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ...annotation.labelstudio.config import code_title
from ...annotation.labelstudio.tasks import clean
from ...schemas import GOLD, Codebook
from ..store import Store, dictionaries

Place = tuple[str, int | None]


@dataclass(frozen=True)
class Dispute:
    """The codes that people labelled differently, and each person's answers to them as lines of a dialogue.

    Annotators are numbered and not named: who settles it weighs the words, and may be one of them.
    """

    codes: tuple[str, ...]
    answers: tuple[dict[str, str], ...]


def disputes(store: Store, book: Codebook) -> dict[Place, Dispute]:
    """(Trajectory, event) -> the dispute there, where there is one; a missing or unclear answer disputes
    nothing, as in the draw of a sample."""
    query = """
        SELECT trajectory_id, event, code, rater, label, rationale, quote
        FROM counted_ratings
        WHERE codebook = ? AND rater_kind = 'human' AND rater <> ? AND label IS NOT NULL
        ORDER BY trajectory_id, event, rater, code
    """
    with store.reading() as connection:
        rows = dictionaries(connection, query, [book.name, GOLD])
    places = groupby(rows, key=lambda row: (row["trajectory_id"], row["event"]))
    by_place = {place: _dispute(book, list(group)) for place, group in places}
    return {place: dispute for place, dispute in by_place.items() if dispute.codes}


def _dispute(book: Codebook, rows: list[dict[str, Any]]) -> Dispute:
    by_code: dict[str, set[str]] = {}
    for row in rows:
        by_code.setdefault(row["code"], set()).update({row["label"]} & {*book.labels})
    people = sorted({row["rater"] for row in rows})
    answers = (
        {"author": f"Annotator {people.index(row['rater']) + 1}", "text": _answer_text(book, row)}
        for row in rows
        if len(by_code[row["code"]]) > 1
    )
    return Dispute(tuple(code for code, labels in by_code.items() if len(labels) > 1), tuple(answers))


def _answer_text(book: Codebook, row: dict[str, Any]) -> str:
    prefix = f"{code_title(book.code(row['code']))}: " if len(book.codes) > 1 else ""
    quote = [f"“{row['quote']}”"] if row["quote"] else []
    return clean(
        "\n".join([prefix + row["label"], *quote, *([row["rationale"]] if row["rationale"] else [])])
    )
