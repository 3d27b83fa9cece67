"""How one of many candidates is chosen, and what policies earn on samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coaudit.pipeline.advise.behaviour import behaviour
from coaudit.pipeline.advise.choice import REFERENCE, Candidate, Trial, _trial, best
from coaudit.pipeline.advise.evaluation import _weight_notes
from coaudit.pipeline.advise.features import view
from coaudit.pipeline.advise.policies import NEVER
from coaudit.pipeline.advise.scores import Bench, Score, bench, is_sampled, score_of
from coaudit.pipeline.advise.states import Episode
from coaudit.pipeline.advise.trees import Forest, counts, forest
from tests.pipeline.advise.games import confounded
from tests.pipeline.advise.test_trees import episode


def score(rewards: list[float]) -> Score:
    count = len(rewards)
    parts = np.stack([np.ones(count), np.array(rewards), np.zeros(count), np.ones(count)])
    return score_of(parts, [f"q{n}" for n in range(count)])


def trials(**rewards: list[float]) -> dict[str, Trial]:
    scores = {REFERENCE: score([0.5] * 100)} | {name: score(values) for name, values in rewards.items()}
    return {
        name: Trial(Candidate("rule", NEVER), one, one.minus(scores[REFERENCE], 0.0), np.sqrt(0.5) / 100)
        for name, one in scores.items()
    }


def test_the_largest_gain_less_a_standard_error_is_chosen() -> None:
    """sure: +.2 throughout; bold: +.23 on the average with an error of .045."""
    sure, bold = [0.7] * 100, [1.0] * 73 + [0.0] * 27
    many = trials(sure=sure, bold=bold)
    assert many["bold"].gain.error == pytest.approx(np.sqrt(0.73 * 0.27 / 99))
    assert best(many) == "sure"


def test_what_gains_in_a_few_questions_alone_is_not_followed() -> None:
    """Two of 100 gain .1, all others are alike: .002 less an error of .0014 would be positive."""
    few = trials(few=[0.6] * 2 + [0.5] * 98)["few"]
    assert few.gain.value == pytest.approx(0.002)
    assert few.gain.value is not None
    assert few.gain.error is not None
    assert few.gain.value - few.gain.error > 0
    assert few.cautious < 0
    assert best(trials(few=[0.6] * 2 + [0.5] * 98)) == REFERENCE


def test_among_equals_the_earlier_is_chosen_and_agent_only_where_nothing_gains() -> None:
    assert best(trials(first=[0.7] * 100, second=[0.7] * 100)) == "first"
    assert best(trials(worse=[0.4] * 100)) == REFERENCE


def samples() -> Forest:
    """One episode a question: as often 0 and 1 first, and 00, 01 of those that go on."""
    paths: list[Episode] = []
    for number in range(40):
        bits, earned = [("00", 0.0), ("01", 1.0), ("1", 0.5), ("1", 0.5)][number % 4]
        paths.append(episode(bits, earned, f"q{number}"))
    return forest(paths)


def test_samples_are_weighted_by_how_much_likelier_a_policy_takes_their_choices() -> None:
    woods = samples()
    assert is_sampled(woods)
    on = Bench(woods, np.full(len(woods.states), 0.5))
    never, coin, second = (
        on.score(chance)
        for chance in (
            np.zeros(len(woods.states)),
            np.full(len(woods.states), 0.5),
            (woods.depth == 1).astype(np.float64),
        )
    )
    assert (never.mean(0.1), never.rate, never.effective) == (0.0, 0.0, 10)
    assert coin.mean(0.1) == pytest.approx((0 + 0.9 + 0.4 + 0.4) / 4)
    assert second.mean(0.1) == pytest.approx(0.9)
    assert on.if_known(never) is never
    always = on.score(np.ones(len(woods.states)))
    assert always.mean(0.1) == pytest.approx(0.4)
    assert always.rate == 1.0


def test_a_policy_that_few_episodes_tell_of_is_not_followed() -> None:
    """Seven questions took its choices and gained everything: that is no evidence on samples."""
    reference = score([0.0] * 40)
    for number, chosen in ((7, False), (9, True)):
        known = score([1.0] * 40).of(np.array([1.0] * number + [0.0] * (40 - number)))
        trial = _trial(Candidate("rule", NEVER), known, reference, 0.0)
        assert (trial.cautious > 0) is chosen


def test_a_policy_whose_choices_were_never_logged_has_no_value() -> None:
    woods = forest([episode("01", 1.0, f"q{n}") for n in range(5)])
    on = Bench(woods, np.full(len(woods.states), 0.5))
    result = on.score(np.ones(len(woods.states)))
    assert (result.mean(0.1), result.rate, result.task) == (None, None, None)
    assert result.estimate(0.1, 2).reason == "no value"


def test_a_policy_that_hardly_any_episode_followed_has_no_value_on_samples() -> None:
    paths = [episode("11" if number < 3 else "00", float(number < 3), f"q{number}") for number in range(40)]
    woods = forest(paths)
    on = Bench(woods, np.full(len(woods.states), 0.5))
    always, never = (on.score(np.full(len(woods.states), chance)) for chance in (1.0, 0.0))
    assert (always.mean(0.0), on.is_thin(always)) == (1.0, True)
    assert always.effective == pytest.approx(40**2 / (3 * 4**2 + (40 - 12) ** 2))
    assert on.if_known(always).mean(0.0) is None and on.if_known(always).rate is None
    assert on.if_known(always).minus(never, 0.0).value is None
    assert on.if_known(never) is never
    exact = Bench(woods)
    assert not exact.is_thin(always) and exact.if_known(always) is always, "of a tree nothing is unknown"


def test_even_weights_of_a_part_of_a_policys_ways_are_no_support() -> None:
    """Of twelve of sixty questions, each for two: the ways that weigh most were not logged. What a person
    earns who takes all but the first step came out as .16 in such logs, where it was .38."""
    on = Bench(samples(), np.full(1, 0.5))
    support = np.repeat([2.0, 0.0], [12, 48])
    part = score_of(np.vstack([np.ones(60), np.zeros((3, 60)), support]), [str(n) for n in range(60)])
    assert part.effective == pytest.approx(60**2 / (12 * 2**2 + (60 - 24) ** 2)) and on.is_thin(part)
    every = score_of(np.vstack([part.parts[:4], 2.5 * support]), part.clusters)
    assert every.effective == pytest.approx(12) and not on.is_thin(every)


def test_a_question_that_several_conditions_asked_is_one() -> None:
    paths = [
        replace(episode("11" if number < 3 else "00", 1.0, f"q{number}"), experiment=condition)
        for number in range(40)
        for condition in ("a", "b", "c")
    ]
    woods = forest(paths)
    on = Bench(woods, np.full(len(woods.states), 0.5))
    always = on.score(np.ones(len(woods.states)))
    assert always.effective == pytest.approx(120**2 / (3 * 12**2 + (120 - 36) ** 2)) and on.is_thin(always)
    assert counts(woods)["questions"] == counts(woods)["incomplete_questions"] == 40


@pytest.mark.parametrize(("hard", "easy"), [(0.45, 0.45), (0.75, 0.25)])
def test_that_people_step_in_where_the_question_says_it_is_hard_does_not_flatter_agents(
    hard: float, easy: float
) -> None:
    """Agent-only is worth .5, human-only gains .15 at λ = .1; weighted by the course alone .74 and -.05."""
    woods = forest(confounded(800, {"hard": hard, "easy": easy}))
    on = bench(woods, view(woods.states).see(woods.states))
    never, always = (on.score(np.full(len(woods.states), chance)) for chance in (0.0, 1.0))
    result, gain = never.estimate(0.1, 2), always.minus(never, 0.1)
    assert result.low is not None and result.high is not None
    assert gain.low is not None and gain.high is not None
    assert result.low < 0.5 < result.high < 0.62
    assert 0 < gain.low < 0.15 < gain.high


def test_who_acted_is_told_by_other_questions() -> None:
    """Of words that say nothing no question learns its own choice."""
    woods = forest(confounded(200, {"hard": 0.5, "easy": 0.5}))
    chance = behaviour(woods, view(woods.states).see(woods.states))
    acted = woods.leaves[:, 1] / woods.leaves.sum(axis=1)
    assert np.abs(np.corrcoef(chance, acted)[0, 1]) < 0.2
    assert np.abs(chance - 0.5).max() < 0.2


def test_of_one_kind_of_actor_and_of_one_question_nothing_fails() -> None:
    for count, odds in ((30, 0.0), (1, 0.5)):
        woods = forest(confounded(count, {"hard": odds, "easy": odds}))
        on = bench(woods, view(woods.states).see(woods.states))
        assert on.score(np.ones(len(woods.states))).effective <= 1


def test_extreme_weights_are_said() -> None:
    woods = forest(confounded(100, {"hard": 0.75, "easy": 0.25}))
    on = bench(woods, view(woods.states).see(woods.states))
    never = on.score(np.zeros(len(woods.states)))
    (note,) = _weight_notes(on, {REFERENCE: never})
    assert note.startswith(
        "extreme weights: of 100 questions, the equivalent of fewer than 50 supports agent-only"
    )
    assert _weight_notes(on, {"coin": score([0.5] * 50)}) == []
    sure = replace(on, behaviour=np.full(len(woods.states), 0.05))
    assert _weight_notes(sure, {})[0].startswith("who acts was almost certain in 200 of 200 states")
    assert _weight_notes(Bench(woods), {REFERENCE: never}) == []
