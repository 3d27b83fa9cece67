"""What an advisor sees of a state: numbers about the course so far, and the words of the last step.

None of them knows a tool by name: names of actions, words, and numbers that the environment states under a
name become features where the training data have them often enough, whatever they are. What training never
saw is left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...annotation.statistics.intervals import Floats
from .states import State, Step

LEAST = 5
"""States that a feature needs to be one."""
LONGEST = 4000
"""Characters of a text that are looked at."""
MOST_WORDS = 3000
_STEPS = 12
_WORD = re.compile(r"[a-z]+")
_DOUBT = re.compile(
    r"\b(not|cannot|unclear|unknown|unsure|uncertain|maybe|perhaps|ambiguous|confus\w+|however|but|conflict\w*)\b"
)
_SEVERAL = re.compile(r"similar:|may (also )?refer to|disambiguation|multiple|several", re.IGNORECASE)
_STATED = re.compile(r"\b([A-Za-z][A-Za-z_ ]{0,30}?)\s*[:=]\s*(-?\d+(?:\.\d+)?)\b(?!\.\d)")


def process(state: State, cap: int) -> dict[str, float]:
    """The course so far in numbers; `cap` is the most steps that an episode takes.

    The question is left out: a tree file holds none, and its words are a block of their own.
    """
    steps = state.steps
    features = {
        "step": len(steps) + 1.0,
        "left": float(cap - len(steps)),
        "human steps": float(sum(step.human for step in steps)),
        "failed steps": float(sum(step.failed for step in steps)),
        "failed in a row": float(_in_a_row([step.failed for step in steps])),
        "agent steps in a row": float(_in_a_row([not step.human for step in steps])),
        "fruitful steps": float(sum(not step.failed for step in steps)),
        "repeated actions": float(len(steps) - len({_key(step) for step in steps})),
    }
    if len(steps) < _STEPS:
        place = f"step is {len(steps) + 1}"
        features[place] = 1.0
        features[f"{place}, human steps {min(3, int(features['human steps']))}"] = 1.0
        if steps:
            features[f"{place}, last {'failed' if steps[-1].failed else 'fruitful'}"] = 1.0
    return features | (_of_last(steps) if steps else {})


def _of_last(steps: Sequence[Step]) -> dict[str, float]:
    last = steps[-1]
    observation, thought = last.observation[:LONGEST], last.thought[:LONGEST]
    first_words = set(_words(steps[0].thought[:LONGEST]))
    features = {
        "last: human": float(last.human),
        "last: failed": float(last.failed),
        "last: repeated": float(_key(last) in {_key(step) for step in steps[:-1]}),
        "last: like one before": max((_alike(last, step) for step in steps[:-1]), default=0.0),
        "last: thought length": math.log1p(len(thought)),
        "last: observation length": math.log1p(len(observation)),
        "last: argument length": math.log1p(len(last.argument)),
        "last: doubt": float(len(_DOUBT.findall(thought.lower()))),
        "last: several meanings": float(bool(_SEVERAL.search(observation))),
        "last: answers the first thought": _share(first_words, set(_words(observation))),
        f"last: action {last.action[:40]}": 1.0,
        "first: failed": float(steps[0].failed),
    }
    features |= {f"done: {name[:40]}": float(n) for name, n in Counter(s.action for s in steps).items()}
    for name, value in _STATED.findall(f"{observation}\n{thought}"):
        features[f"stated: {name.strip().lower()}"] = max(-1e6, min(1e6, float(value)))
    return features


def _in_a_row(flags: Sequence[bool]) -> int:
    """The number of true flags in a row at the end."""
    return next((n for n, flag in enumerate(reversed(flags)) if not flag), len(flags))


def _key(step: Step) -> tuple[str, str]:
    return step.action, " ".join(step.argument.lower().split())


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _share(words: set[str], others: set[str]) -> float:
    return len(words & others) / len(words) if words else 0.0


def _alike(one: Step, other: Step) -> float:
    first, second = set(_words(one.argument)), set(_words(other.argument))
    return len(first & second) / len(first | second) if first | second else 0.0


def last_words(state: State) -> str:
    """The text of the last step."""
    if not state.steps:
        return ""
    last = state.steps[-1]
    return " ".join(
        (last.thought[:LONGEST], last.action, last.argument[:LONGEST], last.observation[:LONGEST])
    )


@dataclass(frozen=True, eq=False)
class StateFeatures:
    """Features of N states: `process` (N, P) by `columns`, and sparse words (N, W) of two blocks of text."""

    columns: Sequence[str]
    process: Floats
    last: Any
    question: Any

    def column(self, name: str) -> Floats:
        """One process feature (N,); zeros where nobody saw it."""
        if name not in self.columns:
            return np.zeros(len(self.process))
        return self.process[:, self.columns.index(name)]


@dataclass(frozen=True, eq=False)
class View:
    """Which features there are, learnt from training states."""

    columns: Sequence[str]
    cap: int
    last: Any
    """A fitted TfidfVectorizer of the last step's words; None where there are none."""
    question: Any

    def see(self, states: Sequence[State]) -> StateFeatures:
        """The features of states."""
        where = {name: i for i, name in enumerate(self.columns)}
        table = np.zeros((len(states), len(where)))
        for row, state in enumerate(states):
            for name, value in process(state, self.cap).items():
                if name in where:
                    table[row, where[name]] = value
        last = self.last.transform([last_words(s) for s in states]) if self.last is not None else None
        question = (
            self.question.transform([s.question for s in states]) if self.question is not None else None
        )
        return StateFeatures(self.columns, table, last, question)


def view(states: Sequence[State]) -> View:
    """The features that these states have often enough; names in alphabetical order."""
    cap = 1 + max((len(state.steps) for state in states), default=0)
    number = Counter(name for state in states for name in process(state, cap))
    columns = sorted(name for name, n in number.items() if n >= LEAST)
    questions = sorted({state.question for state in states})
    return View(columns, cap, _fit_vectorizer([last_words(s) for s in states]), _fit_vectorizer(questions))


def _fit_vectorizer(texts: Sequence[str]) -> Any:
    try:
        return vectorizer(min_df=LEAST, max_features=MOST_WORDS).fit(texts)
    except ValueError:  # no word is there often enough
        return None


def vectorizer(**settings: Any) -> Any:
    """Words and pairs of words of a text, without digits, by TF-IDF."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"[^\W\d_]+", **settings)
