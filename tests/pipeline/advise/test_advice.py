"""Advice on long sessions: the first step and the last ones are weighed, and few walks are made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coaudit.pipeline.advise import advice, features
from coaudit.pipeline.advise.features import View
from coaudit.pipeline.advise.policies import Linear
from coaudit.pipeline.advise.states import State, Step
from tests.pipeline.advise.games import advisor


def test_of_a_long_session_the_first_step_and_the_last_ones_are_weighed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tuple(Step(False, "", "click", "", "", n in (0, 399), n + 1) for n in range(400))
    model = Linear(np.zeros(2), np.ones(2), np.array([2.0, 1.0]))
    view = View(["first: failed", "last: failed"], 500, None, None)
    now = State("", path, len(path))
    (gain,) = model.score(view.see([now]))
    steps = 0
    add = features._Course._add

    def count(course: features._Course, step: Step) -> None:
        nonlocal steps
        steps += 1
        add(course, step)

    monkeypatch.setattr(features._Course, "_add", count)
    first, last, *others = advice._steps(replace(advisor(), view=view), model, now, float(gain))
    assert (first.event, first.weight) == (1, 2)
    assert (last.event, last.weight) == (400, 1)
    assert {one.weight for one in others} == {0}
    assert steps == 400 * (advice.WEIGHED + 1)
