"""Overview: what is in the workspace, the paper's tables 2 and 3, and what is not yet judged or labelled."""

from __future__ import annotations

import streamlit as st

from ...pipeline.report import build, methods, progress
from ...pipeline.store import Selection
from ..cache import ask
from ..drawing import figures, markup


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Overview")
    st.html(markup.facts(ask(methods.facts, only)))
    rows = ask(progress.coverage, only)
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
    figures.table(progress.to_do(rows), links=False)
    figures.table(ask(methods.contents, only))
