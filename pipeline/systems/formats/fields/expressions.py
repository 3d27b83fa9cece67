"""Regular expressions of a mapping, which end on hostile texts, too.

Python's `re` takes for ever on some texts: `(\\w+\\s?)*$` on forty letters and an exclamation mark. The
library `regex` reads the same expressions, finishes most such matches at once, and takes a limit for the
others. (RE2 needs none, but has neither lookahead nor references.)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import regex

SECONDS = 10.0
"""Seconds of the processor that a match may take at first; each that takes longer halves them."""
LEAST = 1.0
_BRACE = re.compile(r"\\(?:[NpP]\{[^{}]*\}|.)|\{(?:[0-9]+|[0-9]*,[0-9]*)\}|(\{)", re.DOTALL)
"""What has a brace or escapes one, and the braces that begin no quantifier."""
Match = re.Match[str]
"""A match of either library: they have the same methods."""


class Expression:
    """A regular expression with a limit on the time that a match takes; ValueError for a text that takes
    longer, and for what is no expression."""

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        try:
            self._compiled: Any = regex.compile(_as_python_reads(pattern), int(flags))
        except (regex.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{pattern!r}: no regular expression: {error}") from error
        self._seconds = SECONDS
        self.pattern = pattern
        self.groupindex: dict[str, int] = self._compiled.groupindex

    def search(self, text: str) -> Match | None:
        result: Match | None = self._within_limit(self._compiled.search, text)
        return result

    def match(self, text: str) -> Match | None:
        result: Match | None = self._within_limit(self._compiled.match, text)
        return result

    def matches(self, text: str) -> list[Match]:
        """All matches in a text that do not overlap."""
        result: list[Match] = self._within_limit(self._all, text)
        return result

    def sub(self, replacement: str, text: str) -> str:
        result: str = self._within_limit(self._compiled.sub, replacement, text)
        return result

    def _all(self, text: str, timeout: float) -> list[Match]:
        return list(self._compiled.finditer(text, timeout=timeout))

    def _within_limit(self, work: Callable[..., Any], *texts: str) -> Any:
        try:
            return work(*texts, timeout=self._seconds)
        except TimeoutError:
            reason = f"takes more than {self._seconds:g} seconds on a text of {len(texts[-1]):,} characters"
            self._seconds = max(LEAST, self._seconds / 2)
            raise ValueError(f"the pattern {self.pattern[:80]!r} {reason}") from None
        except MemoryError:
            raise ValueError(f"the pattern {self.pattern[:80]!r} takes too much memory") from None


def _as_python_reads(pattern: str) -> str:
    """A pattern whose literal braces are escaped: regex reads `{e}` and the like as matching with errors."""
    return _BRACE.sub(lambda match: r"\{" if match[1] else match[0], pattern)
