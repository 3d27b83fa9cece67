"""What a question is known by, so that one that was learnt from is noticed where a policy is evaluated.

By the hash of its text, where the log holds one, and by hashes of a few of its episodes with what they
earned (of all the smallest, so that any two samples of one set are comparable; Broder 1997). No text is
kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...schemas import content_hash, text_hash
from .states import Episode

KEPT = 32
LENGTH = 16
LEAST = 2
"""Episodes of a question that must be a training question's where it has a part of them."""


def fingerprints(episodes: Iterable[Episode]) -> dict[str, list[Any]]:
    """Hashes of the questions' texts, and of each question's episodes the smallest."""
    by_question = _by_question(episodes)
    texts = sorted(_telling(by_question))
    return {"texts": texts, "episodes": [sorted(hashes)[:KEPT] for _, hashes in by_question.values()]}


def already_seen(episodes: Iterable[Episode], training: Mapping[str, Any]) -> set[tuple[str, str]]:
    """(experiment, question) of those that `known` has: with the same text, else with the same episodes.

    Without a text at least half of the kept episodes of one training question must be among its own; or,
    where it has a part of them, half of its own, two at the least, among the kept, as far as these reach.
    """
    texts = set(training["texts"])
    by_question = _by_question(episodes)
    telling = _telling(by_question)
    where: dict[str, set[int]] = {}
    for place, hashes in enumerate(training["episodes"]):
        for name in hashes:
            where.setdefault(name, set()).add(place)
    return {
        key
        for key, (text, own) in by_question.items()
        if (text in texts if text in telling and texts else _is_shared(own, training["episodes"], where))
    }


def _telling(by_question: Mapping[tuple[str, str], tuple[str, set[str]]]) -> set[str]:
    """The texts that are one question's alone: a text that many share tells none of them."""
    names: dict[str, set[str]] = {}
    for (_, question), (text, _) in by_question.items():
        if text:
            names.setdefault(text, set()).add(question)
    return {text for text, of in names.items() if len(of) == 1}


def _is_shared(own: set[str], episodes: Any, where: Mapping[str, set[int]]) -> bool:
    number: dict[int, int] = {}
    for name in own:
        for place in where.get(name, ()):
            number[place] = number.get(place, 0) + 1
    return any(
        2 * n >= min(len(episodes[place]), _within(own, episodes[place], n)) for place, n in number.items()
    )


def _within(own: set[str], hashes: Sequence[str], overlap: int) -> float:
    """How many of its own a training question would have kept if all were its: those up to the last kept.

    One episode alone that is there, too, tells of nothing.
    """
    if overlap < LEAST:
        return math.inf
    return sum(name <= hashes[-1] for name in own) if len(hashes) == KEPT else len(own)


def _by_question(episodes: Iterable[Episode]) -> dict[tuple[str, str], tuple[str, set[str]]]:
    result: dict[tuple[str, str], tuple[str, set[str]]] = {}
    for episode in episodes:
        text = text_hash(" ".join(episode.text.split()))[:LENGTH] if episode.text else ""
        contents = [step.content for step in episode.steps]
        own = content_hash(contents, episode.earned)[:LENGTH]
        entry = result.setdefault((episode.experiment, episode.question), (text, set()))
        entry[1].add(own)
    return result
