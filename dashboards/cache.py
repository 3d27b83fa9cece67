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
"""Seconds for which the cache is kept for each second that was spent on reading."""
LONGEST = 60.0
"""Seconds, reading apart, after which the state is looked at again however much is read."""
R = TypeVar("R")


def workspace() -> Workspace:
    """The workspace that `coaudit dashboard` was called for."""
    return Workspace.at(None)


def place() -> str:
    """The workspace's folder, the key of caches."""
    return str(workspace().path.resolve())


def store(path: str) -> Store:
    """A read-only store, brought up to what other machines wrote."""
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
    number: int = 0
    """How often the database was another one than at the last look."""
    took: float = 0.0
    """Seconds spent on reading since then; reads at the same time count once."""
    read: float = 0.0
    """When the last reading ended (monotonic)."""


_looks: dict[str, _Look] = {}
_looking = threading.Lock()


def state(path: str) -> str:
    """A word that changes when the database does: at once on a small store, less often on a large one.

    No word comes back, although a database may, with its old time and size: what was read of the next one
    before the next look is cached under the same word.
    """
    with _looking:
        look = _looks.get(path)
        if look is None or time.monotonic() >= look.until:
            now, word = time.monotonic(), _word(path)
            number = look.number + (word != look.word) if look else 0
            look = _looks[path] = _Look(word, time.time(), now, now + FRESH, number)
        return f"{look.word} {look.number}"


def took(path: str) -> float:
    """Seconds that were spent on reading since the state was last looked at."""
    with _looking:
        return _looks[path].took if path in _looks else 0.0


def _record_reading(path: str, seconds: float) -> None:
    """Count a read that took so many seconds until now; the cache is kept for longer in proportion."""
    now = time.monotonic()
    with _looking:
        look = _looks[path]
        alone = max(0.0, now - max(now - seconds, look.since, look.read))
        look.read = now
        look.took += alone
        look.until = min(look.until + REST * alone, look.since + look.took + LONGEST)


def _word(path: str) -> str:
    return store(path).tables.last_write()[0]


@st.cache_data(ttl=FRESH, show_spinner=False)
def behind(path: str, _state: str) -> bool:
    """Whether the ledgers hold what the database does not have yet."""
    return store(path).is_behind()


def age(path: str) -> float | None:
    """Age in seconds of what is shown: since the last write that it includes; None without a database."""
    state(path)
    now, last_write = store(path).tables.last_write()
    if last_write is None:
        return None
    look = _looks[path]
    as_of = last_write if look.word == now else look.at
    return max(0.0, time.time() - as_of)


@st.cache_data(max_entries=400, show_spinner="Reading the store …")
def _call_once(_call: Callable[[], Any], path: str, state: str, name: str, arguments: str) -> Any:
    return _call()


def ask(function: Callable[..., R], *arguments: Any, **keywords: Any) -> R:
    """`function(store, *arguments, **keywords)`, from the cache where the store has not changed since."""
    path = place()

    def call() -> R:
        began = time.monotonic()
        try:
            return function(store(path), *arguments, **keywords)
        finally:
            _record_reading(path, time.monotonic() - began)

    name = f"{function.__module__}.{function.__qualname__}"
    result: R = _call_once(call, path, state(path), name, repr((arguments, sorted(keywords.items()))))
    return result
