"""What annotators answered, for whoever settles their disagreement."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ...annotation.labelstudio.config import code_title
from ...annotation.labelstudio.tasks import clean
from ...schemas import GOLD, Codebook
from ..store import Store, dictionaries

Place = tuple[str, int | None]


def answers_given(store: Store, book: Codebook) -> dict[Place, list[dict[str, str]]]:
    """Trajectory and event -> lines of a dialogue: each person's answers to the codes that are disputed.

    Annotators are numbered and not named: who settles it weighs the words, and may be one of them.
    """
    query = """
        SELECT trajectory_id, event, code, rater, coalesce(label, error) AS said, rationale, quote
        FROM counted_ratings WHERE codebook = ? AND rater_kind = 'human' AND rater <> ?
        ORDER BY trajectory_id, event, rater, code
    """
    with store.reading() as connection:
        rows = dictionaries(connection, query, [book.name, GOLD])
    places = groupby(rows, key=lambda row: (row["trajectory_id"], row["event"]))
    return {place: _lines(book, list(group)) for place, group in places}


def _lines(book: Codebook, rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    said: dict[str, set[str]] = {}
    for row in rows:
        said.setdefault(row["code"], set()).add(row["said"])
    people = sorted({row["rater"] for row in rows})
    return [
        {"author": f"Annotator {people.index(row['rater']) + 1}", "text": _told(book, row)}
        for row in rows
        if len(said[row["code"]]) > 1
    ]


def _told(book: Codebook, row: dict[str, Any]) -> str:
    asked = f"{code_title(book.code(row['code']))}: " if len(book.codes) > 1 else ""
    why = [f"“{row['quote']}”"] if row["quote"] else []
    return clean("\n".join([asked + row["said"], *why, *([row["rationale"]] if row["rationale"] else [])]))
