"""What an advisor sees of a state: numbers about the course so far, and the words of the last step.

None of them knows a tool by name: names of actions, words, and numbers that the environment states under a
name become features where the training data have them often enough, whatever they are. What training never
saw is left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...annotation.statistics.intervals import Floats
from .states import State, Step

LEAST = 5
"""States that a feature needs to be one."""
LONGEST = 4000
"""Characters of a text that are looked at."""
MOST_WORDS = 3000
LOOK_BACK = 100
"""Steps before the last one that its argument is compared with."""
_STEPS = 12
_WORD = re.compile(r"[a-z]+")
_DOUBT = re.compile(
    r"\b(not|cannot|unclear|unknown|unsure|uncertain|maybe|perhaps|ambiguous|confus\w+|however|but|conflict\w*)\b"
)
_SEVERAL = re.compile(r"similar:|may (also )?refer to|disambiguation|multiple|several", re.IGNORECASE)
_STATED = re.compile(r"\b([A-Za-z][A-Za-z_ ]{0,30}?)\s*[:=]\s*(-?\d+(?:\.\d+)?)\b(?!\.\d)")


@dataclass(eq=False)
class _Course:
    """A path in numbers, step by step: a step costs what it says, however many came before it."""

    path: Sequence[Step]
    cap: int
    """The most steps that an episode takes."""
    length: int = 0
    human: int = 0
    failed: int = 0
    failed_in_a_row: int = 0
    agent_in_a_row: int = 0
    repeated: bool = False
    keys: set[tuple[str, str]] = field(default_factory=set)
    actions: Counter[str] = field(default_factory=Counter)
    arguments: deque[frozenset[str]] = field(default_factory=lambda: deque(maxlen=LOOK_BACK + 1))
    """The words of the arguments of the last step and of those before it."""
    first_words: frozenset[str] = frozenset()
    """Those of the first step's thought."""

    def go_to(self, length: int) -> None:
        """Go on to the state after so many steps."""
        for step in self.path[self.length : length]:
            self._add(step)

    def _add(self, step: Step) -> None:
        if not self.length:
            self.first_words = _words(step.thought[:LONGEST])
        self.length += 1
        self.human += step.human
        self.failed += step.failed
        self.failed_in_a_row = self.failed_in_a_row + 1 if step.failed else 0
        self.agent_in_a_row = 0 if step.human else self.agent_in_a_row + 1
        key = step.action, " ".join(step.argument.lower().split())
        self.repeated = key in self.keys
        self.keys.add(key)
        self.actions[step.action] += 1
        self.arguments.append(_words(step.argument))

    def features(self) -> dict[str, float]:
        """The present state in numbers.

        The question is left out: a tree file holds none, and its words are a block of their own.
        """
        features = {
            "step": self.length + 1.0,
            "left": float(self.cap - self.length),
            "human steps": float(self.human),
            "failed steps": float(self.failed),
            "failed in a row": float(self.failed_in_a_row),
            "agent steps in a row": float(self.agent_in_a_row),
            "fruitful steps": float(self.length - self.failed),
            "repeated actions": float(self.length - len(self.keys)),
        }
        if self.length < _STEPS:
            place = f"step is {self.length + 1}"
            features[place] = 1.0
            features[f"{place}, human steps {min(3, self.human)}"] = 1.0
            if self.length:
                features[f"{place}, last {'failed' if self.failed_in_a_row else 'fruitful'}"] = 1.0
        return features | (self._of_last(self.path[self.length - 1]) if self.length else {})

    def _of_last(self, last: Step) -> dict[str, float]:
        observation, thought = last.observation[:LONGEST], last.thought[:LONGEST]
        *before, words = self.arguments
        features = {
            "last: human": float(last.human),
            "last: failed": float(last.failed),
            "last: repeated": float(self.repeated),
            "last: like one before": max((_likeness(words, other) for other in before), default=0.0),
            "last: thought length": math.log1p(len(thought)),
            "last: observation length": math.log1p(len(observation)),
            "last: argument length": math.log1p(len(last.argument)),
            "last: doubt": float(len(_DOUBT.findall(thought.lower()))),
            "last: several meanings": float(bool(_SEVERAL.search(observation))),
            "last: answers the first thought": _share(self.first_words, _words(observation)),
            f"last: action {last.action[:40]}": 1.0,
            "first: failed": float(self.path[0].failed),
        }
        features |= {f"done: {name[:40]}": float(n) for name, n in self.actions.items()}
        for name, value in _STATED.findall(f"{observation}\n{thought}"):
            features[f"stated: {name.strip().lower()}"] = max(-1e6, min(1e6, float(value)))
        return features


def process(states: Iterable[State], cap: int) -> Iterator[dict[str, float]]:
    """The course of each state so far in numbers; `cap` is the most steps that an episode takes.

    States that follow each other on a path take time in proportion to the path.
    """
    course = _Course((), cap)
    for state in states:
        if state.path is not course.path or state.length < course.length:
            course = _Course(state.path, cap)
        course.go_to(state.length)
        yield course.features()


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _share(words: frozenset[str], others: frozenset[str]) -> float:
    return len(words & others) / len(words) if words else 0.0


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard's coefficient of two sets of words; 0 where both are empty."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def last_words(state: State) -> str:
    """The text of the last step."""
    last = state.last
    if last is None:
        return ""
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
        for row, features in enumerate(process(states, self.cap)):
            for name, value in features.items():
                if name in where:
                    table[row, where[name]] = value
        last = self.last.transform([last_words(s) for s in states]) if self.last is not None else None
        question = (
            self.question.transform([s.question for s in states]) if self.question is not None else None
        )
        return StateFeatures(self.columns, table, last, question)


def view(states: Sequence[State]) -> View:
    """The features that these states have often enough; names in alphabetical order."""
    cap = 1 + max((state.length for state in states), default=0)
    number = Counter(name for features in process(states, cap) for name in features)
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
