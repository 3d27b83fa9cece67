"""Where a person's step helped, under both definitions of its cost and for states of any length."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.report.interventions import interventions, lines
from coaudit.pipeline.store import Store
from tests.conftest import Coaudit
from tests.pipeline.stores import made, take
from tests.shared import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = made(tmp_path / "workspace")
    take(found, ROOT / "data/rehac/strategyqa_tree.jsonl", ROOT / "data/rehac/hotpotqa_pairs.jsonl")
    return found


def test_the_definitions_differ_in_the_cost_that_came_before_and_agree_on_what_helped(store: Store) -> None:
    found = {
        name: interventions(store, 0.08, 50, definition=name, longest=0) for name in ("released", "paper")
    }
    for released, paper in zip(found["released"], found["paper"], strict=True):
        for key in ("states", "with_both", "human_better", "ties"):
            assert released[key] == paper[key]
        assert released["mean_advantage"] == pytest.approx(paper["mean_advantage"])
        for state in (*paper["helped"], *paper["wasted"]):
            after, whole = state["cost_after"], state["whole_cost"]
            assert state["reward_human"] == after["human"]
            # The same path led to a state's steps, so that both rewards differ by the same whole number of λ.
            paid = (after["human"] - whole["human"]) / 0.08
            assert paid == pytest.approx(round(paid)) and 0 <= round(paid) <= state["depth"]
            assert (after["agent"] - whole["agent"]) / 0.08 == pytest.approx(round(paid))


def test_long_states_are_left_out_as_released_and_on_request_and_never_in_the_paper(store: Store) -> None:
    def left_out(**options: object) -> int:
        documents = interventions(store, 0.08, 1, **options)  # type: ignore[arg-type]
        return sum(n for d in documents for why, n in d["undefined"].items() if why.startswith("longer"))

    assert left_out() == left_out(definition="paper") == left_out(longest=0) == 0
    assert left_out(longest=300) == left_out(definition="paper", longest=300) > 0


def test_where_nothing_helped_nothing_is_announced(store: Store) -> None:
    (first, *_) = interventions(store, 0.08, 5)
    shown = lines({**first, "helped": [], "wasted": first["wasted"][:1]})
    assert [line for line in shown if line.endswith(":")] == ["  where a person's step was wasted:"]


def test_a_price_beyond_all_floats_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="numbers too large to reckon with"):
        interventions(store, 1.7e308, 5)


def test_a_workspace_without_rehac_has_no_rows_and_says_so(workspace: Path, coaudit: Coaudit) -> None:
    coaudit("ingest", ROOT / "data" / "coblock")
    done = coaudit("interventions", "--json")
    assert done.json == {"rows": []}
    assert done.err == "no ReHAC trajectories in the workspace; `coaudit ingest PATH` reads them\n"
    assert coaudit("interventions").out == ""
