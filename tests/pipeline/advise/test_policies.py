"""Rules of one line: each of the first steps has its own, later ones only some."""

from __future__ import annotations

import pytest

from coaudit.pipeline.advise.policies import EACH, rules


@pytest.mark.parametrize("cap", [0, 1, 2, 5, EACH])
def test_each_step_of_a_short_episode_has_rules_of_its_own(cap: int) -> None:
    names = rules(cap).keys()
    assert [f"step {k}" in names for k in range(1, cap + 2)] == [True] * cap + [False]
    assert sum(name.startswith("from step") for name in names) == max(0, cap - 1)
    assert sum(name.startswith("up to step") for name in names) == max(0, cap - 2)


def test_of_a_long_episode_some_later_steps_have_rules() -> None:
    places = [int(name.removeprefix("step ")) for name in rules(1000) if name.startswith("step ")]
    assert places[: EACH + 3] == [*range(1, EACH + 1), 25, 31, 38]
    assert 800 < places[-1] <= 1000
    assert len(rules(10_000)) < 200
