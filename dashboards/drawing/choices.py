"""Boxes to choose others' names in, which live in the address; what turns around or hides is written out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from ...pipeline.report.tables import free_name
from ...schemas.text import visible

TitleOf = Callable[[str], str]
"""Name -> how it is shown."""
_SHOWN = "shown: "
EMPTY = "(no name)"
"""How an empty or blank name is shown: a box and an address would take it for no choice."""


def written(name: str) -> str:
    """A name as it is shown where nothing else is said."""
    return visible(name) if name.strip() else EMPTY


def one(
    place: Any,
    label: str,
    names: Sequence[str],
    *,
    key: str,
    index: int | None = 0,
    placeholder: str | None = None,
    title_of: TitleOf = written,
) -> Any:
    """The name chosen in a box drawn in `place` (a column or the page); None where none is chosen.

    `index` is that of the name chosen at first; None: no name is, and the box shows `placeholder`.
    """
    spelled = spellings(names, title_of)
    _translate(key, spelled)
    choice = place.selectbox(
        label,
        names,
        index,
        key=key,
        bind="query-params",
        placeholder=placeholder,
        format_func=spelled.__getitem__,
    )
    st.session_state[_SHOWN + key] = spelled.get(choice)
    return choice


def shown(key: str) -> str:
    """What a box or a field that was drawn shows."""
    return visible(str(st.session_state.get(_SHOWN + key) or st.session_state[key]))


def some(
    place: Any,
    label: str,
    names: Sequence[str],
    *,
    key: str,
    placeholder: str = "all",
    title_of: TitleOf = written,
) -> list[str]:
    """The names that are chosen in a box."""
    spelled = spellings(names, title_of)
    _translate(key, spelled)
    names_in_box: list[str] = place.multiselect(
        label,
        names,
        key=key,
        bind="query-params",
        placeholder=placeholder,
        format_func=spelled.__getitem__,
    )
    return names_in_box


def spellings(names: Iterable[str], title_of: TitleOf = written) -> dict[str, str]:
    """Name -> how it is shown, no two alike; one that is shown as it is has the first claim."""
    every = sorted(dict.fromkeys(names), key=lambda name: title_of(name) != name)
    spelled_names = set[str]()
    return {name: free_name(title_of(name), spelled_names) for name in every}


def _translate(key: str, spelled: Mapping[str, str]) -> None:
    """Where a link has names, put in the address how they are shown, and have the page drawn again: Streamlit
    knows a choice by that alone.
    """
    values = st.query_params.get_all(key)
    spelled_values = [spelled.get(name, name) for name in values]
    if spelled_values != values and key not in st.session_state:
        st.query_params[key] = spelled_values
        st.rerun()
