"""Tables: Tables 2 and 3 of the Co-Gym paper, the metrics of other systems, and what was audited."""

from __future__ import annotations

import streamlit as st

from ...pipeline.analyze import failures
from ...pipeline.codebooks import PROCESS
from ...pipeline.report import build, methods
from ...pipeline.store import Selection, Store
from ..cache import ask
from ..drawing import choices, figures


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Tables")
    best = "who rated most of the metrics, gold first"
    rater = choices.one(
        st, "Process metrics by", ask(raters, only), key="rater", index=None, placeholder=best
    )
    (simulated, real, elsewhere), _ = ask(build.collaboration, only, rater)
    figures.table(simulated, metrics=tuple(build.TABLE_2))
    figures.table(real, metrics=("collab_score", "win_rate", "initiative_entropy", "satisfaction"))
    if elsewhere.rows:
        figures.table(elsewhere)
    figures.table(ask(methods.contents, only))


def raters(store: Store, only: Selection) -> list[str]:
    """Who rated on a codebook of the process metrics."""
    return sorted({row["rater"] for book in PROCESS for row in failures.raters(store, book, only)})
