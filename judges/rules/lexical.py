"""`rules`: a lexical baseline for initiative, confirmation and halting. It is one, and no more.

It looks for English wordings, sentence by sentence, and understands nothing: irony, other languages,
typing errors and everything that the pattern lists do not hold go wrong. It costs nothing, needs no
network and gives every judge something to beat. The patterns are our own, written after the codebooks'
definitions. A text without a letter or digit, or mostly in another script than Latin, is `unclear`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...schemas import UNCLEAR, Codebook, Rating, Unit, Verdict, content_hash
from ...schemas.codebook import UnitKind
from ...schemas.no_pandas import without_pandas
from ...schemas.rating import Maker
from ..errors import JudgeError
from . import wordings as words

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "rules"
_ENDS = "([.!?;]+)"
_READABLE = r"[\p{L}\p{N}]"
_LETTER = r"\p{L}"
_LATIN = "[A-Za-z\u00c0-\u024f]"
_AROUND = " \t\"'“”-*"
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


@dataclass(frozen=True)
class Rules:
    """Applies the rules of one codebook; its version changes with the patterns."""

    codebook: Codebook

    def __post_init__(self) -> None:
        if self.codebook.name not in CODEBOOKS:
            raise JudgeError(
                f"rater {NAME!r} cannot rate codebook {self.codebook.name!r}, only {', '.join(CODEBOOKS)}"
            )
        if self.codebook.unit not in UNITS[self.codebook.name]:
            units = " or ".join(UNITS[self.codebook.name])
            raise JudgeError(
                f"rater {NAME!r} rates {self.codebook.name!r} by {units}, got unit {self.codebook.unit!r}"
            )

    @cached_property
    def maker(self) -> Maker:
        """The rater, at the version of its patterns."""
        return Maker(NAME, "rule", VERSION, self.codebook)

    def rate(self, units: Sequence[Unit]) -> Iterator[list[Rating]]:
        """The one rating of each unit."""
        texts = [[event.text or "" for event in unit.events] for unit in units]
        labels = self.labels([text_array(column) for column in zip(*texts, strict=True)])
        for unit, label in zip(units, labels, strict=True):
            cites = tuple(event.seq for event in unit.events)
            yield [self.maker.rating(unit, Verdict(self.codebook.codes[0].code, label, cites=cites))]

    @without_pandas()
    def labels(self, columns: Sequence[pa.StringArray]) -> list[str]:
        """Units as columns, their first events' texts, their second events' -> the label of each unit."""
        if not columns:
            return []
        yes, no = self.codebook.labels[:2]
        answers = CODEBOOKS[self.codebook.name](*columns)
        legible = zip(*map(readable, columns), strict=True)
        return [
            (yes if answer else no) if all(all_of_it) else UNCLEAR
            for answer, all_of_it in zip(answers, legible, strict=True)
        ]


@without_pandas()
def text_array(texts: Iterable[str]) -> pa.StringArray:
    """Texts as an array; half of a surrogate pair, which UTF-8 cannot say, becomes a question mark."""
    import pyarrow as pa

    return pa.array([text.encode("utf-8", "replace").decode() for text in texts], "string")


def readable(texts: pa.StringArray) -> list[bool]:
    """Whether there is something to read, and most of its letters are of the wordings' script."""
    import pyarrow.compute as pc

    legible, foreign = _legible(texts), _foreign(texts)
    others = texts.filter(foreign)
    if len(others):
        latin, letters = (pc.count_substring_regex(others, kind) for kind in (_LATIN, _LETTER))
        mostly = pc.greater_equal(pc.multiply(latin, 2), letters)
        legible = pc.replace_with_mask(legible, foreign, pc.and_(legible.filter(foreign), mostly))
    result: list[bool] = legible.to_pylist()
    return result


def _foreign(texts: pa.StringArray) -> pa.BooleanArray:
    """Whether letters must be counted to tell a text's script: not where its ASCII letters, counted in fours,
    are at least as many as the bytes beyond one that its other characters take."""
    import pyarrow.compute as pc

    foreign = pc.invert(pc.string_is_ascii(texts))
    some = texts.filter(foreign)
    fours = pc.count_substring_regex(some, "[A-Za-z]{4}")
    beyond = pc.subtract(pc.binary_length(some), pc.utf8_length(some))
    return pc.replace_with_mask(foreign, foreign, pc.less(pc.multiply(fours, 4), beyond))


def takes_initiative(texts: pa.StringArray) -> list[bool]:
    """Whether a sentence proposes, requests, limits, informs or asks something concrete."""
    parts, owners = sentences(plain(texts))
    return _any_sentence(len(texts), owners, _steers(parts))


def settles(questions: pa.StringArray, replies: pa.StringArray) -> list[bool]:
    """Whether each message asks for a decision that the reply to it gives."""
    import pyarrow.compute as pc

    questions, replies = plain(questions), plain(replies)
    question_sentences, owners = sentences(questions)
    asks = pc.and_(pc.match_substring(question_sentences, "?"), _has(question_sentences, words.DECISION))
    decisions = _any_sentence(
        len(questions), owners, pc.and_not(asks, _has(question_sentences, words.COURTESY_QUESTION))
    )
    reply_sentences, owners = sentences(replies)
    states = _any_sentence(len(replies), owners, pc.invert(pc.match_substring(reply_sentences, "?")))
    answers = _any_of(replies, words.ACCEPTS, words.REFUSES, words.DELEGATES).to_pylist()
    chooses = _has(replies, words.CHOOSES).to_pylist()
    open_still = _has(replies, words.UNDECIDED).to_pylist()
    return [
        decisions[i]
        and not open_still[i]
        and (
            answers[i]
            or (
                states[i]
                and (chooses[i] or bool(content(questions[i].as_py()) & content(replies[i].as_py())))
            )
        )
        for i in range(len(questions))
    ]


def halts(texts: pa.StringArray) -> list[bool]:
    """Whether a sentence tells the agent to stop, wait, refrain or hand over."""
    import pyarrow.compute as pc

    parts, owners = sentences(plain(texts))
    has_halt = _has(parts, words.HALT)
    return _any_sentence(len(texts), owners, pc.and_not(has_halt, _has_of(parts, has_halt, words.NO_HALT)))


def plain(texts: pa.StringArray) -> pa.StringArray:
    """Texts with the apostrophes and question marks of the wordings, whichever their keyboards have."""
    import pyarrow.compute as pc

    foreign = pc.invert(pc.string_is_ascii(texts))
    some = pc.replace_substring_regex(texts.filter(foreign), f"[{words.APOSTROPHES}]", "'")
    return pc.replace_with_mask(
        texts, foreign, pc.replace_substring_regex(some, f"[{words.QUESTION_MARKS}]", "?")
    )


def sentences(texts: pa.StringArray) -> tuple[pa.StringArray, pa.IntegerArray]:
    """The sentences of all texts, by their end marks and lines, without quotes around them, and of each the
    place of its text."""
    import pyarrow.compute as pc

    lines = pc.split_pattern(pc.replace_substring_regex(texts, _ENDS, "\\1\n"), "\n")
    parts, owners = pc.utf8_trim(pc.list_flatten(lines), _AROUND), pc.list_parent_indices(lines)
    legible = _legible(parts)
    return parts.filter(legible), owners.filter(legible)


def content(text: str) -> set[str]:
    """The words of a text that carry meaning, in lower case."""
    return set(_content(text))


def _content(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = match[0].casefold()
        if len(word) > 3 and word not in words.EMPTY:
            yield word


def _says(text: str, least: int) -> bool:
    """Whether a text has `least` words that carry meaning; it is read no further than that takes."""
    distinct = set()
    for word in _content(text):
        distinct.add(word)
        if len(distinct) >= least:
            return True
    return False


def _steers(sentences: pa.StringArray) -> pa.BooleanArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    rest = pc.utf8_trim(pc.replace_substring_regex(sentences, f"(?i){words.OPENERS}", ""), " ,.!")
    reasons = _has(rest, words.REASON)
    status = _has_of(rest, pc.invert(reasons), f"^{words.STATUS}")
    status = pc.and_not(status, _has_of(rest, status, words.OTHERS))
    idle = pc.or_(status, _any_of(rest, f"^{words.COURTESY}$", f"^{words.REPEATS}", "^$"))
    asks = pc.match_substring(rest, "?")
    demands = pc.or_(reasons, _has_of(rest, pc.invert(pc.or_(reasons, idle)), words.REQUEST))
    says = pc.and_not(pc.invert(pc.or_(demands, asks)), idle)
    wonders = pc.and_not(asks, idle)
    concrete = pc.and_not(wonders, _has_of(rest, wonders, words.OPEN_CALL))
    open_still = pc.or_(concrete, _has_of(rest, says, words.INFORMS))
    minimum = pc.if_else(asks, 1, 2)
    result = pc.and_not(pc.and_not(demands, asks), idle)
    enough = [
        _says(text, least)
        for text, least in zip(
            rest.filter(open_still).to_pylist(), minimum.filter(open_still).to_pylist(), strict=True
        )
    ]
    return pc.replace_with_mask(result, open_still, pa.array(enough, "bool"))


def _legible(texts: pa.StringArray) -> pa.BooleanArray:
    """Whether there is a letter or a digit. The pattern for all scripts is used only where it is needed:
    making it costs more than applying it to a thousand texts."""
    import pyarrow.compute as pc

    plain = _has(texts, "[A-Za-z0-9]")
    others = pc.and_not(pc.invert(plain), pc.string_is_ascii(texts))
    if not pc.any(others).as_py():
        return plain
    return pc.replace_with_mask(plain, others, _has(texts.filter(others), _READABLE))


def _has(texts: pa.StringArray, pattern: str) -> pa.BooleanArray:
    import pyarrow.compute as pc

    return pc.match_substring_regex(texts, pattern, ignore_case=True)


def _has_of(texts: pa.StringArray, among: pa.BooleanArray, pattern: str) -> pa.BooleanArray:
    """Which of the texts `among` have a pattern: to look for one takes longer than to leave a text out."""
    import pyarrow.compute as pc

    return pc.replace_with_mask(among, among, _has(texts.filter(among), pattern))


def _any_of(texts: pa.StringArray, *patterns: str) -> pa.BooleanArray:
    return _has(texts, "|".join(f"(?:{pattern})" for pattern in patterns))


def _any_sentence(count: int, of: pa.IntegerArray, true: pa.BooleanArray) -> list[bool]:
    """For each of `count` texts, whether something is `true` of one of its sentences; `of` is the place of
    the text that each sentence is from."""
    places = set(of.filter(true).to_pylist())
    return [place in places for place in range(count)]


CODEBOOKS: dict[str, Callable[..., list[bool]]] = {
    "initiative": takes_initiative,
    "confirmation": settles,
    "halting": halts,
}
"""Codebook -> whether the texts of each unit have its first label."""
_MESSAGE: tuple[UnitKind, ...] = ("utterance", "human_message")
UNITS: dict[str, tuple[UnitKind, ...]] = {
    "initiative": _MESSAGE,
    "confirmation": ("question_reply",),
    "halting": _MESSAGE,
}
"""Codebook -> the units that its rules can be asked of."""
VERSION = content_hash("rules 5", words.fingerprint())[:12]
