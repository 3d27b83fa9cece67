"""What pages read: every query cached until the store changes, for all sessions of the app alike."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from ..pipeline.store import Store, Workspace

importlib.import_module("pandas")
"""Streamlit needs it; loaded before any thread reads, since the store keeps it out where it is not."""
FRESH = 3.0
"""Seconds for which the store's state is not looked at again: a busy writer must not void every cache."""
REST = 5.0
"""For each second that was spent on reading, so many are read from the cache."""
LONGEST = 60.0
"""Seconds, reading apart, after which the state is looked at again however much is read."""
R = TypeVar("R")


def workspace() -> Workspace:
    """The workspace that `coaudit dashboard` was called for."""
    return Workspace.at(None)


def place() -> str:
    """Its folder, by which caches know it."""
    return str(workspace().path.resolve())


def store(path: str) -> Store:
    """A store that never writes, up to what other machines wrote."""
    default = workspace()
    place = default if str(default.path.resolve()) == path else Workspace(Path(path))
    place.pull()
    return Store(place, read_only=True)


@dataclass
class _Look:
    """The database as it was when somebody last looked, and until when nobody looks again.

    `at` is a time of day, `since` and `until` are monotonic.
    """

    word: str
    at: float
    since: float
    until: float
    took: float = 0.0
    """Seconds since in which somebody read: what is read at once counts once."""
    read: float = 0.0
    """When the last reading ended (monotonic)."""


_looks: dict[str, _Look] = {}
_looking = threading.Lock()


def state(path: str) -> str:
    """A word that changes when the database does: at once on a small store, less often on a large one."""
    with _looking:
        look = _looks.get(path)
        if look is None or time.monotonic() >= look.until:
            now = time.monotonic()
            look = _looks[path] = _Look(_word(path), time.time(), now, now + FRESH)
        return look.word


def took(path: str) -> float:
    """Seconds that were spent on reading since the state was last looked at."""
    with _looking:
        return _looks[path].took if path in _looks else 0.0


def _spent(path: str, seconds: float) -> None:
    """What was read in the last seconds is kept in proportion to what it took."""
    now = time.monotonic()
    with _looking:
        look = _looks[path]
        alone = max(0.0, now - max(now - seconds, look.since, look.read))
        look.read = now
        look.took += alone
        look.until = min(look.until + REST * alone, look.since + look.took + LONGEST)


def _word(path: str) -> str:
    return store(path).tables.written()[0]


@st.cache_data(ttl=FRESH, show_spinner=False)
def behind(path: str, _state: str) -> bool:
    """Whether the ledgers hold what the database does not have yet."""
    return store(path).behind()


def age(path: str) -> float | None:
    """Seconds since the last write that what is shown has seen; None without a database."""
    word = state(path)
    now, last_write = store(path).tables.written()
    if last_write is None:
        return None
    as_of = last_write if word == now else _looks[path].at
    return max(0.0, time.time() - as_of)


@st.cache_data(max_entries=400, show_spinner="Reading the store …")
def _call_once(_call: Callable[[], Any], path: str, state: str, name: str, arguments: str) -> Any:
    return _call()


def ask(function: Callable[..., R], *arguments: Any, **keywords: Any) -> R:
    """`function(store, *arguments, **named)`, from the cache where the store has not changed since."""
    path = place()

    def call() -> R:
        began = time.monotonic()
        try:
            return function(store(path), *arguments, **keywords)
        finally:
            _spent(path, time.monotonic() - began)

    name = f"{function.__module__}.{function.__qualname__}"
    result: R = _call_once(call, path, state(path), name, repr((arguments, sorted(keywords.items()))))
    return result
