"""What policies earn on trees of choices, by hand and against the published tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coaudit.pipeline.advise import sources
from coaudit.pipeline.advise.states import Episode, Step, episodes
from coaudit.pipeline.advise.trees import Forest, complete_paths, counts, forest
from tests.shared import shared


def step(human: bool, said: str) -> Step:
    return Step(human, said, "Look", "", "", False, 0)


def episode(bits: str, earned: float, question: str = "q", said: Sequence[str] | None = None) -> Episode:
    words = said or [f"{bits[:n]}" for n in range(1, len(bits) + 1)]
    taken = tuple(step(bit == "1", word) for bit, word in zip(bits, words, strict=True))
    return Episode(bits, "", question, "", taken, earned)


TREE = [episode("00", 0.0), episode("01", 1.0), episode("1", 0.5)]


def always(woods: Forest, chance: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.full(len(woods.states), chance)


def test_a_tree_of_three_paths_earns_what_the_hand_reckons() -> None:
    woods = forest(TREE)
    agent, human, random = (woods.worth(always(woods, p)).of_question[0].tolist() for p in (0.0, 1.0, 0.5))
    assert agent == [0, 0, 2]
    assert human == [0.5, 1, 1]
    # Paths with 1/4, 1/4, 1/2: T = 1/4 + 1/4; 3/4 human steps of 3/2.
    assert random == [0.5, 0.75, 1.5]


def test_the_oracle_weighs_the_price_and_spares_the_person_among_equals() -> None:
    woods = forest(TREE)
    earned = {p: woods.worth(woods.oracle(p)).of_question[0].tolist() for p in (0.1, 0.9, 1.0)}
    assert earned == {0.1: [1, 1, 2], 0.9: [1, 1, 2], 1.0: [0, 0, 2]}
    level = forest([episode("0", 0.5), episode("1", 0.5)])
    assert level.worth(level.oracle(0.0)).of_question[0].tolist() == [0.5, 0, 1]


def test_gains_are_those_of_a_person_now_with_the_policy_going_on() -> None:
    woods = forest(TREE)
    root, second = 0, next(i for i, s in enumerate(woods.states) if len(s.steps) == 1)
    under_agent = woods.worth(always(woods, 0.0)).gain(0.1)
    assert under_agent[[root, second]] == pytest.approx([0.4, 0.9])
    # Where a person takes the second step: 0.5 - 0.1 at once, against 1 - 0.1 after the agent.
    assert woods.worth(always(woods, 1.0)).gain(0.1)[root] == pytest.approx(-0.5)


def test_a_choice_that_was_not_recorded_is_forced_and_counted() -> None:
    woods = forest([episode("00", 0.0), episode("01", 1.0)])
    assert counts(woods) == {"questions": 1, "states": 2, "one_choice": 1, "incomplete_questions": 1}
    assert woods.worth(always(woods, 1.0)).of_question[0].tolist() == [1, 1, 2]
    assert woods.worth(woods.oracle(0.1)).of_question[0].tolist() == [1, 1, 2]


def test_a_long_subtree_weighs_no_more_than_a_short_one() -> None:
    """A coin's reward is ¼ for each of 00 and 01 and ½ for 1, not ⅓ for each episode."""
    woods = forest([episode("00", 1.0), episode("01", 1.0), episode("1", 0.0)])
    assert woods.worth(always(woods, 0.5)).of_question[0, 0] == 0.5


def test_answers_that_came_more_often_weigh_more_where_paths_were_sampled_again() -> None:
    woods = forest([episode("0", 1.0), episode("0", 1.0), episode("0", 0.0), episode("1", 0.5)])
    assert woods.worth(always(woods, 0.0)).of_question[0, 0] == pytest.approx(2 / 3)


def test_another_answer_of_the_environment_is_another_state() -> None:
    said = [episode("00", 1.0, said=["a", "b"]), episode("00", 0.0, said=["c", "d"])]
    woods = forest([*said, episode("1", 0.0)])
    assert woods.worth(always(woods, 0.0)).of_question[0].tolist() == [0.5, 0, 2]


def test_deep_and_uneven_trees_agree_with_walking_every_path() -> None:
    draw = np.random.default_rng(3)
    paths: list[tuple[str, float]] = []

    def grow(bits: str) -> None:
        for bit in "01":
            if len(bits) == 8 or (bits and draw.random() < 0.2):
                paths.append((bits + bit, float(draw.random())))
            else:
                grow(bits + bit)

    grow("")
    woods = forest([episode(bits, earned) for bits, earned in paths])
    chance = {s: float(draw.random()) for s in range(len(woods.states))}
    policy = np.array([chance[i] for i in range(len(woods.states))])
    place = {tuple(x.human for x in state.steps): i for i, state in enumerate(woods.states)}
    total = np.zeros(3)
    for bits, earned in paths:
        odds = 1.0
        for n, bit in enumerate(bits):
            p = policy[place[tuple(b == "1" for b in bits[:n])]]
            odds *= p if bit == "1" else 1 - p
        total += odds * np.array([earned, bits.count("1"), len(bits)])
    assert woods.worth(policy).of_question[0] == pytest.approx(total)
    best = max(earned - 0.05 * bits.count("1") for bits, earned in paths)
    assert woods.worth(woods.oracle(0.05)).reward(0.05)[0] == pytest.approx(best)


def test_questions_whose_choices_were_not_all_played_out_are_counted_and_left_out() -> None:
    whole = [replace(path, question="whole") for path in TREE]
    assert complete_paths([*whole, *TREE[1:]]) == (whole, 1)
    assert complete_paths([*whole, whole[0]]) == ([], 1)
    assert complete_paths([*whole, replace(whole[0], experiment="again")]) == ([], 1)
    assert complete_paths([]) == ([], 0)


def published(path: str) -> Forest:
    trajectories, _ = sources.of_files([Path(shared(path))])
    return forest(episodes(trajectories)[0])


def test_the_published_tree_gives_the_published_baselines() -> None:
    woods = published("rehac/strategyqa_tree_test100.jsonl")
    assert counts(woods) == {"questions": 100, "states": 856, "one_choice": 0, "incomplete_questions": 0}
    values = [woods.worth(always(woods, p)).reward(0.08).mean() for p in (0.0, 1.0)]
    assert [round(100 * value, 2) for value in values] == [60.00, 43.36]
    assert round(100 * woods.worth(woods.oracle(0.08)).reward(0.08).mean(), 2) == 79.84


@pytest.mark.slow
def test_the_leaves_of_the_training_file_make_whole_trees() -> None:
    woods = published("rehac/strategyqa_train.jsonl")
    assert counts(woods) == {"questions": 250, "states": 2170, "one_choice": 0, "incomplete_questions": 0}
    assert woods.leaves[woods.roots].sum() == 2420
