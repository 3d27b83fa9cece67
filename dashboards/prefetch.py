"""Reads ahead: pages are drawn once where nobody sees them, so that going to one finds its figures cached."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence

from ..pipeline.errors import CoauditError
from ..pipeline.store import Selection
from . import cache

NAME = "coaudit-ahead"
SLOW = 1.0
"""Seconds of reading from which on it pays: a small store is read at once."""
Show = Callable[[Selection], None]

_states: set[str] = set()
_drawing = threading.Lock()


def read(pages: Sequence[Show]) -> None:
    """Draw the pages without filters in a thread, where reading is slow and not done yet for this state."""
    path = cache.place()
    if cache.took(path) < SLOW:
        return
    word = cache.state(path)
    with _drawing:
        if word in _states or any(thread.name == NAME for thread in threading.enumerate()):
            return
        _states.add(word)
    threading.Thread(target=_draw, args=(pages,), name=NAME, daemon=True).start()


def _draw(pages: Sequence[Show]) -> None:
    # No session listens to this thread, which Streamlit would say of every element.
    for name in ("scriptrunner_utils.script_run_context", "state.session_state_proxy"):
        logging.getLogger(f"streamlit.runtime.{name}").addFilter(_of_others)
    for show in pages:
        with contextlib.suppress(CoauditError):
            show(Selection())


def _of_others(record: logging.LogRecord) -> bool:
    return record.threadName != NAME
