"""The filters, in the sidebar of every page; they live in the address, so that a view can be shared."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st

from ..pipeline.store import Selection
from ..pipeline.store.queries.selection import span
from ..schemas.text import visible
from . import queries
from .cache import age, ask, behind, place, state
from .drawing import choices

LABELS = {
    "system": "System",
    "setting": "Setting",
    "condition": "Condition",
    "task": "Task",
    "agent": "Agent",
    "agent_model": "Agent model",
    "tags": "Tag",
}
KEPT = (*LABELS, "since", "until")
CHOICES = {
    *("since", "until", "penalty", "by", "a", "b", "sort", "part"),
    *("rater", "found_by", "codebook", "coefficient", "judge", "judged", "among"),
}
"""What an address may ask for in vain: one of several choices, a day or a number."""


def chosen() -> Selection:
    """Draw the filters; what they select."""
    values_of = ask(queries.choices)
    with st.sidebar:
        values = {name: _many(name, values_of.get(name, [])) for name in LABELS}
        left, right = st.columns(2)
        since = left.date_input("From", value=None, key="since", bind="query-params")
        until = right.date_input("Until", value=None, key="until", bind="query-params")
        _freshness()
    first, last = (day.isoformat() if day else None for day in (since, until))
    return Selection(**values, days=(span(first, last),) if first or last else ())


def refused(query: Mapping[str, list[str]]) -> str:
    """What the address asks for that a page has no choice of, once all is drawn; nothing later on.

    Streamlit takes such a value, as one that is shown anyway, out of the address without a word.
    """
    first = not st.session_state.get("opened")
    st.session_state["opened"] = True
    parameters = [
        f"`{name}={' '.join(visible(value).replace('`', ' ').split())[:80]}`"
        for name, values in query.items()
        if first and name in CHOICES and name in st.session_state and name not in st.query_params
        for value in values
        if visible(value) != choices.shown(name)
    ]
    return f"Not available here, so something else is shown: {', '.join(parameters)}." if parameters else ""


def _many(name: str, options: list[str]) -> tuple[str, ...]:
    """What is picked of a column; a value that the address names counts, though no choice has it."""
    existing = {*options, *choices.spellings(options).values()}
    extra = [value for value in st.query_params.get_all(name) if value not in existing]
    if not options and not extra:
        return ()

    def called(value: str) -> str:
        """How a value is shown; one of the address alone as it is: written out it would be another one."""
        return value if value.strip() and value in extra else choices.written(value)

    every = [*options, *dict.fromkeys(extra)]
    return tuple(choices.some(st, LABELS[name], every, key=name, title_of=called))


def _freshness() -> None:
    path = place()
    seconds = age(path)
    st.text(f"Data as of {spoken(seconds)} ago" if seconds is not None else "No database yet")
    if seconds is not None and behind(path, state(path)):
        st.info("The ledgers have ratings that the database lacks: run `coaudit metrics`.")


def spoken(seconds: float) -> str:
    """A span of time in words: 40 s, 12 min, 3 h, 1 day, 5 days."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}" if round(seconds / 86400) != 1 or size < 86400 else "1 day"
    return f"{seconds:.0f} s"


def address(page: str, **parameters: str | int | None) -> str:
    """A link to a page that keeps the filters; a parameter of a filter's name takes its place.

    A tag stands beside those of other keys: all of them must fit.
    """
    pairs = [(name, str(value)) for name, value in parameters.items() if value is not None]
    names = {name for name, _ in pairs} - {"tags"}
    filters = [(name, value) for name in KEPT if name not in names for value in st.query_params.get_all(name)]
    return f"{page}?{urlencode(list(dict.fromkeys([*pairs, *filters])))}"
