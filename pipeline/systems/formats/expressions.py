"""Regular expressions of a mapping, which end on hostile texts, too.

Python's take for ever on some texts: `(\\w+\\s?)*$` on forty letters and an exclamation mark. An engine that
does not (RE2) reads other expressions, without lookahead and references. So a match may take so many seconds
of the processor; a text that needs more is an error.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

SECONDS = 10.0
"""Seconds of the processor that a match may take at first; each that takes longer halves them."""
LEAST = 1.0
Result = TypeVar("Result")


class Expression:
    """A regular expression with a limit on the time that a match takes.

    The limit holds in the main thread, where alone Python handles signals; ValueError for a text that takes
    longer.
    """

    _at_work = False

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._compiled = re.compile(pattern, flags)
        self._seconds = SECONDS
        self.pattern = pattern
        self.groupindex = self._compiled.groupindex

    def search(self, text: str) -> re.Match[str] | None:
        return self._within_limit(lambda: self._compiled.search(text), text)

    def match(self, text: str) -> re.Match[str] | None:
        return self._within_limit(lambda: self._compiled.match(text), text)

    def matches(self, text: str) -> list[re.Match[str]]:
        """All matches in a text that do not overlap."""
        return self._within_limit(lambda: list(self._compiled.finditer(text)), text)

    def sub(self, replacement: str, text: str) -> str:
        return self._within_limit(lambda: self._compiled.sub(replacement, text), text)

    def _within_limit(self, work: Callable[[], Result], text: str) -> Result:
        if threading.current_thread() is not threading.main_thread() or not _has_clock():
            return work()
        Expression._at_work = True
        signal.setitimer(signal.ITIMER_VIRTUAL, self._seconds)
        try:
            return work()
        except _TooLongError:
            reason = f"takes more than {self._seconds:g} seconds on a text of {len(text):,} characters"
            self._seconds = max(LEAST, self._seconds / 2)
            raise ValueError(f"the pattern {self.pattern[:80]!r} {reason}") from None
        finally:
            Expression._at_work = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


class _TooLongError(Exception):
    """What ends a match that takes too long."""


def _stop(*_: object) -> None:
    if Expression._at_work:
        raise _TooLongError


def _has_clock() -> bool:
    """Whether the signal of the clock is ours; a program around this one may use it itself."""
    handler = signal.getsignal(signal.SIGVTALRM)
    if handler is signal.SIG_DFL:
        signal.signal(signal.SIGVTALRM, _stop)
    return handler in (signal.SIG_DFL, _stop)
