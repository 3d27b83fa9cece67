"""Ratings as matrices: of some sessions only, what was said of others counts nowhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coaudit.pipeline.analyze import agreement, compare, metrics, people, rates, validate
from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.store import Selection, Store
from tests.judges.teams import team
from tests.pipeline.stores import holding, rate, verdict

SEEN = ("s0", "s1", "s2", "s3", "s4", "s5")
RATERS = {"ann": "human", "bob": "human", "eva": "human", "judge": "llm"}
HALVES = Selection(condition=("in",))


def _sessions(names: Sequence[str], condition: str) -> list[Any]:
    talk = team(("human", "Hi"), ("agent", "Ho"), ("human", "So?"))
    shared = {"condition": condition, "system": "own"}
    return [talk.model_copy(update={"id": name, "native_id": name, **shared}) for name in names]


def _lines(names: Sequence[str], raters: Sequence[str]) -> list[dict[str, Any]]:
    chance = np.random.default_rng(len(names))
    lines = [
        verdict(name, None, "failures", "present" if chance.random() < 0.4 else "absent", code=code)
        | {"rater": rater, "rater_kind": RATERS[rater]}
        for name in names
        for code in ("C.1", "C.2")
        for rater in raters
    ]
    again = {**lines[-1], "rater": "judge", "rater_kind": "llm", "rater_version": "1"}
    return [*lines, *({**again, "repeat": repeat} for repeat in (0, 1))]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Store]:
    """A study whose sessions are in and out, and one of those that are in; eva labelled only outside."""
    others = tuple(f"o{number}" for number in range(9))
    whole = holding(
        tmp_path_factory.mktemp("whole") / "ws", [*_sessions(SEEN, "in"), *_sessions(others, "out")]
    )
    part = holding(tmp_path_factory.mktemp("part") / "ws", _sessions(SEEN, "in"))
    inside = _lines(SEEN, ("ann", "bob", "judge"))
    assert rate(part, inside).imported == rate(whole, inside).imported > 30
    rate(whole, _lines(others, ("ann", "bob", "eva", "judge")))
    return whole, part


def _drop_times(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "versions"}


@pytest.mark.parametrize(
    "figures",
    [
        lambda store, only: agreement.of_workspace(store, only=only),
        lambda store, only: agreement.disagreements(store, only=only),
        lambda store, only: agreement.confusions(store, only=only),
        lambda store, only: rates.rates(store, only=only),
        lambda store, only: _drop_times(validate.validate(store, "judge", only=only)),
        lambda store, only: people.people(store, only=only),
        lambda store, only: metrics.metrics(store, by=("condition",), only=only),
        lambda store, only: list(metrics.trajectory_metrics(store, only=only)),
        lambda store, only: compare.ungrouped(store, "task", only=only),
    ],
)
def test_figures_of_some_sessions_are_those_of_a_study_that_has_no_others(
    stores: tuple[Store, Store], figures: Callable[[Store, Selection | None], object]
) -> None:
    whole, part = stores
    assert figures(whole, HALVES) == figures(part, None) != figures(whole, None)


def test_a_selection_in_which_nobody_rated_has_no_figures(tmp_path: Path) -> None:
    store = holding(tmp_path / "ws", [*_sessions(SEEN, "in"), *_sessions(("o1",), "out")])
    rate(store, _lines(SEEN, ("ann", "bob")))
    alone = Selection(condition=("out",))
    assert not agreement.of_workspace(store, only=alone) and not rates.rates(store, only=alone)


def test_repeats_and_versions_elsewhere_are_not_those_of_a_selection(tmp_path: Path) -> None:
    """The judge was asked again only outside, and its first version only there: within there were rows of
    agreement with itself over one answer, copies that lay outside, and drift over no unit."""
    store = holding(tmp_path / "ws", [*_sessions(SEEN, "in"), *_sessions(("o1", "o2"), "out")])
    judge = {"rater": "judge", "rater_kind": "llm", "code": "C.1"}
    said = [verdict(name, None, "failures", "absent", **judge) for name in (*SEEN, "o1", "o2")]
    outside = [line for line in said if line["trajectory"] in ("o1", "o2")]
    rate(store, [{**line, "rater_version": "1"} for line in outside])
    rate(store, [{**line, "rater_version": "2"} for line in said])
    rate(store, [{**line, "rater_version": "2", "repeat": 1} for line in outside])
    whole = [row.coefficient for row in agreement.of_workspace(store)]
    within = [row.coefficient for row in agreement.of_workspace(store, only=HALVES)]
    assert "flip_rate" in whole and "flip_rate" not in within
    assert validate.validate(store, "judge", previous="judge (1)")["codes"][0]["drift"]["n"] == 2
    with pytest.raises(UsageError, match="is no other judge of these, expected one of none yet"):
        validate.validate(store, "judge", previous="judge (1)", only=HALVES)
