"""How much is judged and labelled, and the commands for what is left."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence, Set
from typing import Any

from ...annotation.statistics.crowds import rater_names
from ...judges.rules import lexical
from .. import codebooks
from ..store import Selection, Store, dictionaries, execute
from .tables import Cell, Table, count

Row = dict[str, Any]
WHOLE = lexical.NAME
"""The embedded rater that answers every unit; detectors answer only what a log can show."""
FORMER = re.compile(r" \(.+\)$")
"""Ends the name of an earlier version of a rater, which nobody asks any more."""
_RATERS = """
    WITH s AS (SELECT id FROM trajectories t WHERE {where}),
    books AS (SELECT name, title, unit, count(*) AS codes FROM codebooks GROUP BY ALL),
    all_units AS (
        SELECT codebook, count(*) AS units FROM codebook_units u SEMI JOIN s ON s.id = u.trajectory_id
        WHERE NOT opening GROUP BY codebook
    ),
    raters AS (
        SELECT codebook, rater, any_value(rater_kind) AS kind, any_value(model) AS model,
            count(label) AS answers, count(error) AS errors
        FROM counted_ratings c SEMI JOIN s ON s.id = c.trajectory_id WHERE NOT opening GROUP BY ALL
    )
    SELECT b.name AS codebook, b.title, u.units * b.codes AS questions, r.rater, r.kind, r.model, r.answers,
        r.errors
    FROM books b JOIN all_units u ON u.codebook = b.name LEFT JOIN raters r ON r.codebook = b.name
    ORDER BY b.name, r.answers DESC, r.rater
"""
_SAMPLED = """
    WITH s AS (SELECT id FROM trajectories t WHERE {where}),
    drawn AS (
        SELECT x.codebook, x.trajectory_id, x.event, b.code, x.probability IS NULL AS settles,
            max(x.overlap) AS labels
        FROM samples x SEMI JOIN s ON s.id = x.trajectory_id
        JOIN codebooks b ON b.name = x.codebook AND (x.code IS NULL OR x.code = b.code)
        GROUP BY ALL
    ),
    labelled AS (
        SELECT r.codebook, r.trajectory_id, r.event, r.code,
            count(DISTINCT r.rater) FILTER (r.rater <> 'gold') AS people,
            count(DISTINCT r.rater) FILTER (r.rater = 'gold') AS gold,
            count(DISTINCT r.label) FILTER (r.rater <> 'gold' AND list_contains(b.labels, r.label)) > 1
                AS in_dispute
        FROM counted_ratings r JOIN codebooks b ON b.name = r.codebook AND b.code = r.code
        WHERE r.rater_kind = 'human' AND r.label IS NOT NULL GROUP BY ALL
    )
    SELECT d.codebook, sum(d.labels)::BIGINT AS drawn,
        sum(
            least(d.labels, coalesce(CASE WHEN d.settles THEN l.gold ELSE greatest(l.people, l.gold) END, 0))
        )::BIGINT AS labelled
    FROM drawn d LEFT JOIN labelled l ON l.codebook = d.codebook AND l.code = d.code
        AND l.trajectory_id = d.trajectory_id AND l.event IS NOT DISTINCT FROM d.event
    WHERE NOT d.settles OR l.in_dispute
    GROUP BY ALL
"""


_PACE = """
    WITH tasks AS (
        SELECT codebook, rater, max(seconds) AS seconds FROM counted_ratings
        WHERE rater_kind = 'human' AND seconds IS NOT NULL GROUP BY codebook, rater, trajectory_id, event
    )
    SELECT codebook, rater, count(*) AS units, median(seconds) AS seconds FROM tasks GROUP BY ALL ORDER BY ALL
"""


def pace(store: Store) -> list[Row]:
    """How long people take for a unit, as Label Studio measures it in the browser: by codebook and person.

    `seconds` is the median over `units`; a unit with several codes is answered in one go and counts once.
    """
    with store.reading() as connection:
        return dictionaries(connection, _PACE)


def coverage(store: Store, only: Selection | None = None) -> list[Row]:
    """How far each rater got with the units of each codebook: questions, model, answers, errors.

    `drawn` and `labelled` are of the codebook: the labels that samples want of people, several of a question
    that several are to answer, and those of them that there are. What people dispute wants gold besides,
    on the codes in dispute alone: no other is settled. A codebook that was made for other systems is in it
    once somebody has used it.
    """
    where, values = (only or Selection()).where()
    with store.reading() as connection:
        raters = dictionaries(connection, _RATERS.replace("{where}", where), values)
        samples = dictionaries(connection, _SAMPLED.replace("{where}", where), values)
        query = f"SELECT DISTINCT system FROM trajectories t WHERE {where}"
        systems = {system for (system,) in execute(connection, query, values).fetchall()}
    by_codebook = {row["codebook"]: row for row in samples}
    nothing = {"drawn": 0, "labelled": 0}
    rows = [{**nothing, **by_codebook.get(row["codebook"], {}), **row} for row in raters]
    return [row for row in rows if row["rater"] or row["drawn"] or _is_for(store, row["codebook"], systems)]


def _is_for(store: Store, codebook: str, systems: Set[str]) -> bool:
    try:
        made_for = codebooks.load(codebook, store.workspace.codebooks).made_for
    except (
        codebooks.CodebookError
    ):  # its file has changed since it was loaded, and is told of when loaded again
        return True
    return not made_for or not systems.isdisjoint(made_for)


def to_do(rows: Sequence[Row], only: Selection | None = None) -> Table:
    """A line for each codebook and judge, and one for its people, with the command for what is left.

    Of a selection, commands ask about its sessions alone, as the numbers do.
    """
    options = only.options() if only else ""
    books: dict[str, list[Row]] = {}
    for row in rows:
        books.setdefault(row["codebook"], []).append(row)
    lines = [line for book in sorted(books.values(), key=_is_untouched) for line in _book(book, options)]
    return Table(
        name="to_do",
        title="What is left to do",
        caption="A question is one code of one unit; the opening query is not a unit. Detectors answer "
        "only what a log can show. People are asked about a sample, never about all units; where several are "
        "to label a unit, as many labels are left.",
        columns=("Codebook", "Rater", "Kind", "Answered", "Errors", "Left", "What to run"),
        rows=tuple(lines),
        heads=3,
        empty="Nothing to rate yet: `coaudit ingest PATH`.",
    )


def _is_untouched(book: Sequence[Row]) -> bool:
    return all(row["rater"] is None for row in book)


def _book(rows: Sequence[Row], options: str) -> list[tuple[Cell, ...]]:
    judges = [row for row in rows if row["rater"] and row["kind"] != "human"]
    people = [row for row in rows if row["kind"] == "human"]
    first = rows[0]
    lines = [_judge(row, options) for row in judges] or [_nobody(first, options)]
    return lines if _is_untouched(rows) and not first["drawn"] else [*lines, _people(first, people, options)]


def _nobody(row: Row, options: str) -> tuple[Cell, ...]:
    model = "" if row["codebook"] in lexical.CODEBOOKS else " --model MODEL"
    command = f"coaudit judge --codebook {row['codebook']}{model}{options}"
    return (row["title"], "no judge yet", "–", count(0), count(0), count(row["questions"]), command)


def _judge(row: Row, options: str) -> tuple[Cell, ...]:
    open_count = row["questions"] - row["answers"] - row["errors"]
    partial = (row["kind"] == "rule" and row["rater"] != WHOLE) or bool(FORMER.search(row["rater"]))
    again = bool(row["errors"]) and not FORMER.search(row["rater"])
    what = "" if (open_count <= 0 or partial) and not again else _command(row, options, again=again)
    rest: Cell = "" if partial else count(max(0, open_count))
    return (row["title"], row["rater"], row["kind"], count(row["answers"]), count(row["errors"]), rest, what)


def _command(row: Row, options: str, *, again: bool) -> str:
    """The command that continues a rater's work, under its name and with its model."""
    rater, model = row["rater"], row["model"]
    rater_option = "" if model and model == rater else f" --rater {shlex.quote(rater)}"
    model_option = f" --model {shlex.quote(model) if model else 'MODEL'}" if row["kind"] == "llm" else ""
    # A jury takes no --where: it rates whatever its members have rated.
    rest = f" --members RATERS{model_option}" if rater == "jury" else f"{model_option}{options}"
    retry = " --retry-errors" * again
    return f"coaudit judge --codebook {row['codebook']}{rater_option}{rest}{retry}"


def _people(book: Row, people: Sequence[Row], options: str) -> tuple[Cell, ...]:
    open_count = book["drawn"] - book["labelled"]
    what = ""
    if open_count:
        what = "label in Label Studio, then coaudit labelstudio pull"
        what = what if people else f"coaudit labelstudio push, {what}"
    elif not people:
        what = f"coaudit sample --codebook {book['codebook']}{options}"
    names = rater_names([row["rater"] for row in people], ", ") if people else "nobody yet"
    answers = sum(row["answers"] for row in people)
    return (
        book["title"],
        names,
        "people",
        count(answers),
        count(0),
        count(open_count) if book["drawn"] else "",
        what,
    )
