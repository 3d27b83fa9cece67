"""What pages read: every query cached until the store changes, for all sessions of the app alike."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from coaudit.pipeline.store import Store
from coaudit.pipeline.workspace import Workspace

FRESH = 3
"""Seconds for which the store's state is not looked at again: a busy writer must not void every cache."""
R = TypeVar("R")


def workspace() -> Workspace:
    """The workspace that `coaudit dashboard` was called for."""
    return Workspace.at(None)


def store(path: str) -> Store:
    """A store that never writes."""
    return Store(Workspace(Path(path)), read_only=True)


@st.cache_data(ttl=FRESH, show_spinner=False)
def state(path: str) -> str:
    """A word that changes when the database does."""
    found = Workspace(Path(path))
    marks = []
    for file in (found.database, found.database.with_suffix(".duckdb.wal")):
        try:
            status = os.stat(file)
            marks.append(f"{status.st_mtime_ns}-{status.st_size}")
        except FileNotFoundError:
            marks.append("none")
    return " ".join(marks)


@st.cache_data(ttl=FRESH, show_spinner=False)
def behind(path: str, _state: str) -> bool:
    """Whether the ledgers hold what the database does not have yet."""
    return store(path).behind()


def age(path: str) -> float | None:
    """Seconds since the database was last written; None where there is none."""
    try:
        return max(0.0, time.time() - Workspace(Path(path)).database.stat().st_mtime)
    except FileNotFoundError:
        return None


@st.cache_data(max_entries=400, show_spinner="Reading the store …")
def _cached(_call: Callable[[], Any], path: str, state: str, name: str, arguments: str) -> Any:
    return _call()


def ask(function: Callable[..., R], *arguments: Any, **named: Any) -> R:
    """`function(store, *arguments, **named)`, from the cache where the store has not changed since."""
    path = str(workspace().path.resolve())

    def call() -> R:
        return function(store(path), *arguments, **named)

    name = f"{function.__module__}.{function.__qualname__}"
    found: R = _cached(call, path, state(path), name, repr((arguments, sorted(named.items()))))
    return found
