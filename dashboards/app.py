"""The app that `coaudit dashboard` runs: nine pages over one workspace, which it never writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st

from coaudit.dashboards import prefetch, sidebar
from coaudit.dashboards.cache import ask
from coaudit.dashboards.views import (
    agreement,
    compare,
    cost,
    efficiency,
    failures,
    overview,
    process,
    tables,
    trajectory,
)
from coaudit.pipeline.errors import CoauditError
from coaudit.pipeline.report import methods
from coaudit.pipeline.report.answers import UNFIT
from coaudit.pipeline.report.transcript import draw
from coaudit.pipeline.store import Selection
from coaudit.schemas.text import visible

Show = Callable[[Selection], None]
PAGES: dict[str, tuple[str, Show]] = {
    "overview": ("Overview", overview.show),
    "process": ("Process", process.show),
    "failures": ("Failures", failures.show),
    "compare": ("Compare", compare.show),
    "trajectory": ("Trajectory", trajectory.show),
    "agreement": ("Agreement", agreement.show),
    "efficiency": ("Interventions and efficiency", efficiency.show),
    "tables": ("Tables", tables.show),
    "cost": ("Live and cost", cost.show),
}


def main() -> None:
    """Draw the page that the address names, with the filters, which are the same on all, beside it."""
    st.set_page_config(page_title="coaudit", layout="wide")
    st.html(f"<style>{_style()}</style>")
    pages = {
        path: st.Page(partial(_nothing, path), title=title, url_path=path, default=path == "overview")
        for path, (title, _) in PAGES.items()
    }
    current = st.navigation(list(pages.values()))
    _, show = PAGES[next(path for path, page in pages.items() if page == current)]
    query = {name: st.query_params.get_all(name) for name in st.query_params}
    place = st.empty()
    try:
        selection = sidebar.chosen()
        if selection and dict(ask(methods.facts, selection))["Trajectories"] == "0":
            st.warning(UNFIT)
        show(selection)
        if refused := sidebar.refused(query):
            place.warning(refused)
        prefetch.read([page for _, page in PAGES.values()])
    except CoauditError as error:
        st.error("This page could not be drawn.")
        st.text(visible(str(error)))


def _style() -> str:
    """What pages look like: their own style and that of transcripts, which reports have too."""
    own = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return own + draw.style()


def _nothing(_: str) -> None:
    """Pages are drawn by `main`, so that the filters are one set of widgets for all of them."""


main()
