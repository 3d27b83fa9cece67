"""Features of states: those of a path in one walk are those of each state alone, and take its length."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from coaudit.pipeline.advise import features
from coaudit.pipeline.advise.features import LOOK_BACK, process, view
from coaudit.pipeline.advise.states import Episode, State, Step
from coaudit.pipeline.advise.trees import forest

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord")


def step(draw: random.Random, number: int) -> Step:
    """A step of few words, so that many are alike or the same."""
    words = " ".join(draw.choices(WORDS, k=draw.randint(0, 3)))
    observation = draw.choice(["", f"coverage = {draw.random():.2f}", "no results", *WORDS])
    action = draw.choice(["click", "type", "message"])
    return Step(draw.random() < 0.3, words, action, words.title(), observation, draw.random() < 0.2, number)


def episodes(draw: random.Random, length: int, questions: int = 12) -> list[Episode]:
    """Two paths a question, which part after some steps."""
    result = []
    for question in range(questions):
        path = tuple(step(draw, number) for number in range(length))
        other = (*path[: length // 3], *(step(draw, number) for number in range(length // 3, length)))
        name = f"q{question}"
        result += [Episode(f"{name}{i}", "", name, name, p, 0.5) for i, p in enumerate((path, other))]
    return result


def test_features_of_a_path_in_one_walk_are_those_of_each_state_alone() -> None:
    draw = random.Random(3)
    states = list(forest(episodes(draw, 30)).states)
    draw.shuffle(states)
    in_order = sorted(states, key=lambda state: (id(state.path), state.length))
    for order in (states, in_order):
        alone = [next(iter(process([state], 31))) for state in order]
        cut = [next(iter(process([State(s.question, s.steps, s.length)], 31))) for s in order]
        assert list(process(order, 31)) == alone == cut


def test_what_a_state_has_seen_is_counted_over_the_steps_so_far() -> None:
    path = (
        Step(False, "birch", "click", "Amber  cedar", "no results", True, 1),
        Step(False, "", "click", "amber cedar", "the birch", False, 2),
        Step(True, "", "message", "amber", "", False, 3),
    )
    first, second, third, fourth = process([State("q", path, n) for n in range(4)], 4)
    assert (first["step"], first["left"], first["step is 1"]) == (1, 4, 1)
    assert (second["failed in a row"], second["agent steps in a row"]) == (1, 1)
    assert (third["failed in a row"], third["agent steps in a row"], third["last: repeated"]) == (0, 2, 1)
    assert third["last: answers the first thought"] == third["last: like one before"] == 1
    assert (fourth["repeated actions"], fourth["last: repeated"], fourth["last: like one before"]) == (
        1,
        0,
        0.5,
    )
    assert (fourth["human steps"], fourth["done: click"], fourth["done: message"]) == (1, 2, 1)


def test_a_long_path_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    woods = forest(episodes(random.Random(4), 300, questions=1))
    assert len({id(state.path) for state in woods.states}) == 3  # the root's, and two episodes'
    number: Counter[str] = Counter()
    add, likeness = features._Course._add, features._likeness

    def count_step(course: features._Course, one: Step) -> None:
        number["steps"] += 1
        add(course, one)

    def count_pair(one: frozenset[str], other: frozenset[str]) -> float:
        number["pairs"] += 1
        return likeness(one, other)

    monkeypatch.setattr(features._Course, "_add", count_step)
    monkeypatch.setattr(features, "_likeness", count_pair)
    view(woods.states)
    assert number["steps"] == 2 * 299  # nobody is asked after the last step
    assert number["pairs"] <= LOOK_BACK * 600
