"""Boxes to choose others' names in, which live in the address; what turns around or hides is written out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from ...pipeline.report.tables import free
from ...schemas.text import visible


def one(
    place: Any,
    label: str,
    names: Sequence[str],
    *,
    key: str,
    index: int | None = 0,
    placeholder: str | None = None,
) -> Any:
    """The name that is chosen in a box that `place`, a column or the page, has; None where none is.

    `index` is of the name that is chosen at first, None of none, which `placeholder` stands for.
    """
    spelled, asked = spellings(names), st.query_params.get(key)
    if asked is not None and key not in st.session_state and spelled.get(asked, asked) != asked:
        # Streamlit knows a choice by how it is shown; whoever links to it, by its name.
        st.session_state[key], index = asked, index and 0
    return place.selectbox(
        label,
        names,
        index,
        key=key,
        bind="query-params",
        placeholder=placeholder,
        format_func=spelled.__getitem__,
    )


def some(place: Any, label: str, names: Sequence[str], *, key: str, placeholder: str = "all") -> list[str]:
    """The names that are chosen in a box."""
    spelled, asked = spellings(names), st.query_params.get_all(key)
    if key not in st.session_state and any(spelled.get(name, name) != name for name in asked):
        own = {shown: name for name, shown in spelled.items()} | {name: name for name in names}
        st.session_state[key] = [own[name] for name in dict.fromkeys(asked) if name in own]
    chosen: list[str] = place.multiselect(
        label,
        names,
        key=key,
        bind="query-params",
        placeholder=placeholder,
        format_func=spelled.__getitem__,
    )
    return chosen


def spellings(names: Iterable[str]) -> dict[str, str]:
    """Name -> how it is shown, no two alike; one that is shown as it is has the first claim."""
    every = sorted(dict.fromkeys(names), key=lambda name: visible(name) != name)
    taken = set[str]()
    return {name: free(visible(name), taken) for name in every}
