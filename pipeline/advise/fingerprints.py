"""Fingerprints of questions, by which an evaluation notices those that an advisor was trained on.

A question is known by the hash of its text, where the log holds one, and by the smallest hashes of its
episodes with their rewards, so that any two samples of one set are comparable (min-wise hashing; Broder
1997). No text is kept.
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
"""Episodes that a question must share with a training question of which it has only a part."""


def fingerprints(episodes: Iterable[Episode]) -> dict[str, list[Any]]:
    """Hashes of the questions' texts, and of each question the `KEPT` smallest hashes of its episodes."""
    by_question = _by_question(episodes)
    texts = sorted(_unique_texts(by_question))
    return {"texts": texts, "episodes": sorted(sorted(hashes)[:KEPT] for _, hashes in by_question.values())}


def training_questions(episodes: Iterable[Episode], training: Mapping[str, Any]) -> set[tuple[str, str]]:
    """(experiment, question) of those that `training` has, by their texts, or without one by their episodes.

    A question is a training question if at least half of the hashes kept of that are among its own; or, where
    it has only a part of the episodes, if at least half of its own (`LEAST` or more) are among the kept ones,
    not counting hashes above the largest kept.
    """
    texts = set(training["texts"])
    by_question = _by_question(episodes)
    telling = _unique_texts(by_question)
    where: dict[str, set[int]] = {}
    for place, hashes in enumerate(training["episodes"]):
        for name in hashes:
            where.setdefault(name, set()).add(place)
    return {
        key
        for key, (text, own) in by_question.items()
        if (text in texts if text in telling and texts else _is_shared(own, training["episodes"], where))
    }


def _unique_texts(by_question: Mapping[tuple[str, str], tuple[str, set[str]]]) -> set[str]:
    """The texts of one question alone: a text that several share identifies none of them."""
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
        2 * n >= min(len(episodes[place]), _expected_overlap(own, episodes[place], n))
        for place, n in number.items()
    )


def _expected_overlap(own: set[str], hashes: Sequence[str], overlap: int) -> float:
    """How many of a question's own hashes a training question would have kept if both were the same one.

    These are the hashes up to the largest kept; infinitely many below `LEAST` common ones, for one common
    episode proves nothing.
    """
    if overlap < LEAST:
        return math.inf
    return sum(name <= hashes[-1] for name in own) if len(hashes) == KEPT else len(own)


def _by_question(episodes: Iterable[Episode]) -> dict[tuple[str, str], tuple[str, set[str]]]:
    result: dict[tuple[str, str], tuple[str, set[str]]] = {}
    for episode in episodes:
        text = text_hash(" ".join(episode.text.split()))[:LENGTH] if episode.text else ""
        contents = [step.content for step in episode.steps]
        own = content_hash(contents, episode.reward)[:LENGTH]
        entry = result.setdefault((episode.experiment, episode.question), (text, set()))
        entry[1].add(own)
    return result
