"""Overview: what is in the workspace, the paper's tables 2 and 3, and what is not yet judged or labelled."""

from __future__ import annotations

from typing import Any

import streamlit as st

from ...pipeline.report import Table, build, methods
from ...pipeline.report.tables import count
from ...pipeline.store import Selection
from .. import queries
from ..cache import ask
from ..drawing import figures, markup


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Overview")
    st.html(markup.facts(ask(methods.facts, only)))
    rows = ask(queries.coverage, only)
    raters = sorted({row["rater"] for row in rows if row["rater"] and row["codebook"] in methods.PROCESS})
    rater = st.selectbox(
        "Process metrics by",
        raters,
        index=None,
        key="rater",
        bind="query-params",
        placeholder="gold where complete, else who rated most",
    )
    (simulated, real, elsewhere), _ = ask(build.collaboration, only, rater)
    figures.table(simulated, metrics=tuple(build.TABLE_2))
    figures.table(real, metrics=("collab_score", "win_rate", "initiative_entropy", "satisfaction"))
    if elsewhere.rows:
        figures.table(elsewhere)
    figures.table(to_do(rows), links=False)
    figures.table(ask(methods.contents, only))


def to_do(rows: list[dict[str, Any]]) -> Table:
    """How much of each codebook is judged and labelled, and the command that does the rest."""
    lines = []
    for row in rows:
        done = (row["answers"] or 0) + (row["errors"] or 0)
        left = row["questions"] - done
        lines.append(
            (
                row["title"],
                row["rater"] or "nobody yet",
                row["kind"] or "–",
                count(row["answers"] or 0),
                count(row["errors"] or 0),
                count(left),
                "" if left <= 0 else _command(row),
            )
        )
    return Table(
        name="to_do",
        title="Judged and labelled",
        caption="Questions are units times codes; the opening query is no unit. Errors are asked again with "
        "`--retry-errors`.",
        columns=("Codebook", "Rater", "Kind", "Answered", "Errors", "Left", "What to run"),
        rows=tuple(lines),
        heads=3,
        empty="Nothing to rate yet: `coaudit ingest PATH`.",
    )


def _command(row: dict[str, Any]) -> str:
    if row["kind"] == "human":
        return "label in Label Studio"
    return f"coaudit judge --codebook {row['codebook']}"
