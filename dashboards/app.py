"""The app that `coaudit dashboard` runs: seven pages over one workspace, which it never writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from coaudit.dashboards import (
    agreement_page,
    cost_page,
    efficiency_page,
    failures_page,
    overview_page,
    process_page,
    sidebar,
    trajectory_page,
)
from coaudit.pipeline.errors import CoauditError
from coaudit.pipeline.selection import Selection

PAGES = {
    "overview": ("Overview", overview_page.show),
    "process": ("Process", process_page.show),
    "failures": ("Failures", failures_page.show),
    "trajectory": ("Trajectory", trajectory_page.show),
    "agreement": ("Agreement", agreement_page.show),
    "efficiency": ("Interventions and efficiency", efficiency_page.show),
    "cost": ("Live and cost", cost_page.show),
}


def main() -> None:
    """Draw the page that the address names, with the filters beside it."""
    st.set_page_config(page_title="coaudit", layout="wide")
    st.html(Path(__file__).with_name("style.css"))
    page = st.navigation(
        [
            st.Page(_shown(show), title=title, url_path=path, default=path == "overview")
            for path, (title, show) in PAGES.items()
        ]
    )
    page.run()


def _shown(show: Callable[[Selection], None]) -> Callable[[], None]:
    def run() -> None:
        try:
            show(sidebar.chosen())
        except CoauditError as error:
            st.error("This page could not be drawn.")
            st.text(str(error))

    return run


main()
