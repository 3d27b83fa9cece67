"""Made-up tasks whose best policy is known: trees of choices as the log files of ReHAC have them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from coaudit.pipeline.advise import Advisor
from coaudit.pipeline.advise.advisor import PolicySet
from coaudit.pipeline.advise.features import View
from coaudit.pipeline.advise.policies import Condition, Linear, Rule
from coaudit.pipeline.advise.states import Episode
from tests.pipeline.advise.test_trees import episode

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "glade", "harbor", "iris", "jade", "kelp")
Game = Callable[[random.Random, float, bool, bool], tuple[float, bool]]
"""Draws, progress, whether it is stuck, whether a person acts -> progress and stuck after the step."""


def stuck(draw: random.Random, progress: float, trouble: bool, human: bool) -> tuple[float, bool]:
    """Only people get on where it is stuck, which is what the observation says."""
    if not trouble:
        return progress + 0.25, draw.random() < 0.4
    return progress + (0.3 if human else 0.0), not human


def low(draw: random.Random, progress: float, trouble: bool, human: bool) -> tuple[float, bool]:
    """A person gets on where little is covered yet, and is no better than the agent elsewhere."""
    if progress < 0.3:
        return progress + (0.3 if human else 0.04) + draw.uniform(0, 0.04), False
    return progress + 0.1, False


def luck(draw: random.Random, progress: float, trouble: bool, human: bool) -> tuple[float, bool]:
    """What comes of it is chance, whoever acts."""
    return progress + draw.uniform(0, 0.3), draw.random() < 0.4


def tree(
    game: Game, questions: int, depth: int, seed: int, first: int = 0, *, stated: bool = False
) -> dict[str, str]:
    """A tree file: key -> step, as text; rewards lie between 0 and 1. `stated`: steps say how far it is."""
    draw = random.Random(seed)
    nodes: dict[str, str] = {}

    def grow(question: int, bits: str, progress: float, trouble: bool) -> None:
        for bit in "01":
            number = len(bits) + 1
            after, now = game(draw, progress, trouble, bit == "1")
            told = "The sheets disagree about" if now else "The sheet lists"
            told = f"coverage = {after:.2f}. {told}" if stated else told
            body = (
                f"Thought {number}: I look at {draw.choice(WORDS)}.\n"
                f"Action {number}: Query[{draw.choice(WORDS)} {draw.choice(WORDS)}]\n"
                f"Observation {number}: {told} {draw.choice(WORDS)} {draw.choice(WORDS)}\n"
            )
            key = str((question, bits + bit))
            if number == depth or (number > 1 and draw.random() < 0.1):
                reward = round(min(1.0, max(0.0, after)), 3)
                nodes[key] = str((body, int(reward == 1), reward))
            else:
                nodes[key] = body
                grow(question, bits + bit, after, now)

    for question in range(first, first + questions):
        grow(question, "", 0.0, False)
    return nodes


def advisor() -> Advisor:
    """One made by hand: a person is called after a failed step, which gains .6 less .1 times its number."""
    columns = ["last: failed", "step"]
    rule = Rule(((Condition("last: failed", ">=", 1.0),),))
    gain = Linear(np.zeros(2), np.ones(2), np.array([0.5, -0.1]), {}, 0.1)
    report = {"tried": 1, "learnt": 0}
    trained = PolicySet(0.08, "rule", "rule", {"rule": rule}, {"rule": "rule"}, {"rule": gain}, report)
    return Advisor(View(columns, 5, None, None), [trained], {}, {"texts": [], "episodes": []})


def write(path: Path, nodes: dict[str, str]) -> Path:
    """The tree as a file."""
    path.write_text(json.dumps(nodes), encoding="utf-8")
    return path


KINDS: Mapping[str, Sequence[str]] = {"hard": ("hard",), "easy": ("easy",)}
"""Kind of question -> the words of which one says that it is of this kind."""


def confounded(
    count: int, odds: Mapping[str, float], seed: int = 5, words: Mapping[str, Sequence[str]] = KINDS
) -> list[Episode]:
    """One path of two steps a question: a person is called by `odds`, and helps where the question is hard.

    Agents alone earn .2 where it is hard and .8 where it is easy.
    """
    draw = np.random.default_rng(seed)
    paths = []
    for number in range(count):
        kind = ("hard", "easy")[number % 2]
        bits = "".join(str(int(draw.random() < odds[kind])) for _ in range(2))
        chance = 0.2 + 0.35 * bits.count("1") if kind == "hard" else 0.8
        path = episode(bits, float(draw.random() < chance), f"q{number}", ["a", "b"])
        word = words[kind][number // 2 % len(words[kind])]
        paths.append(replace(path, text=f"question {number}, a {word} one"))
    return paths
