"""`rules`: a lexical baseline for initiative, confirmation and halting. It is one, and no more.

It looks for English wordings, sentence by sentence, and understands nothing: irony, other languages,
typing errors and everything that the pattern lists do not hold go wrong. It costs nothing, needs no
network and gives every judge something to beat. The patterns are our own, written after the codebooks'
definitions. A text without a letter or digit, or mostly in another script than Latin, is `unclear`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ...schemas import UNCLEAR, Codebook, Rating, Unit, Verdict, content_hash
from ...schemas.rating import Maker
from ..errors import JudgeError
from . import wordings as words

NAME = "rules"
_SENTENCE = re.compile(r"[^.!?;\n]+[.!?;]*")
_READABLE = re.compile(r"[^\W_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


@dataclass(frozen=True)
class Rules:
    """Applies the rules of one codebook; its version changes with the patterns."""

    codebook: Codebook

    def __post_init__(self) -> None:
        if self.codebook.name not in CODEBOOKS:
            raise JudgeError(
                f"rater {NAME!r} cannot rate codebook {self.codebook.name!r}, only {', '.join(CODEBOOKS)}"
            )

    @cached_property
    def maker(self) -> Maker:
        """The rater, at the version of its patterns."""
        return Maker(NAME, "rule", VERSION, self.codebook)

    def rate(self, unit: Unit) -> Iterator[Rating]:
        """The one rating of a unit."""
        texts = [event.text or "" for event in unit.events]
        if all(map(readable, texts)):
            label = self.codebook.labels[0 if CODEBOOKS[self.codebook.name](*texts) else 1]
        else:
            label = UNCLEAR
        cites = tuple(event.seq for event in unit.events)
        yield self.maker.rating(unit, Verdict(self.codebook.codes[0].code, label, cites=cites))


def readable(text: str) -> bool:
    """Whether there is something to read, and most of its letters are of the wordings' script."""
    if not _READABLE.search(text):
        return False
    return text.isascii() or 2 * len(_LATIN.findall(text)) >= sum(map(str.isalpha, text))


def takes_initiative(text: str) -> bool:
    """Whether a sentence proposes, requests, limits, informs or asks something concrete."""
    return any(_steers(sentence) for sentence in sentences(text))


def settles(question: str, reply: str) -> bool:
    """Whether the message asks for a decision that the reply gives."""
    asked = [s for s in sentences(question) if "?" in s and words.DECISION.search(s)]
    asked = [s for s in asked if not words.COURTESY_QUESTION.search(s)]
    if not asked:
        return False
    if words.ACCEPTS.search(reply) or words.REFUSES.search(reply) or words.DELEGATES.search(reply):
        return not words.UNDECIDED.search(reply)
    if words.UNDECIDED.search(reply) or all("?" in s for s in sentences(reply)):
        return False
    return bool(words.CHOOSES.search(reply)) or bool(content(question) & content(reply))


def halts(text: str) -> bool:
    """Whether a sentence tells the agent to stop, wait, refrain or hand over."""
    return any(words.HALT.search(s) and not words.NO_HALT.search(s) for s in sentences(text))


def sentences(text: str) -> list[str]:
    """The sentences of a text, by their end marks and lines, without quotes around them."""
    return [s for result in _SENTENCE.findall(text) if _READABLE.search(s := result.strip(" \t\"'“”‘’-*"))]


def content(text: str) -> set[str]:
    """The words of a text that carry meaning, in lower case."""
    return {w for w in (m.casefold() for m in _WORD.findall(text)) if len(w) > 3 and w not in words.EMPTY}


def _steers(sentence: str) -> bool:
    rest = words.OPENERS.sub("", sentence).strip(" ,.!")
    if not rest or words.COURTESY.fullmatch(rest) or words.REPEATS.match(rest):
        return False
    if words.STATUS.match(rest) and not words.REASON.search(rest):
        return False
    if "?" in rest:
        return not words.OPEN_CALL.search(rest) and len(content(rest)) > 0
    if words.REQUEST.search(rest) or words.REASON.search(rest):
        return True
    return bool(words.INFORMS.search(rest)) and len(content(rest)) > 1


CODEBOOKS: dict[str, Callable[..., bool]] = {
    "initiative": takes_initiative,
    "confirmation": settles,
    "halting": halts,
}
"""Codebook -> whether the texts of a unit have its first label."""
VERSION = content_hash("rules 2", words.fingerprint())[:12]
