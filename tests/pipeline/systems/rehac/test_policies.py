"""What agent-only, human-only, random and an oracle earn on trees, against table 5 and by hand."""

from __future__ import annotations

import pytest

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.rehac import reader
from coaudit.pipeline.systems.rehac.policies import Path, policies, trees
from coaudit.schemas import Trajectory
from tests.shared import shared

TREE = [Path(("agent", "agent"), 0.0), Path(("agent", "human"), 1.0), Path(("human",), 0.5)]


def test_the_policies_of_a_tree_earn_what_the_hand_reckons() -> None:
    found = {p.name: p for p in policies({"q": TREE}, 0.1)}
    assert (found["Agent-only"].task_reward, found["Agent-only"].reward) == (0, 0)
    assert (found["Human-only"].task_reward, found["Human-only"].reward) == (0.5, 0.4)
    # Paths with 1/4, 1/4, 1/2: T = 1/4 + 1/4; steps 3/2 of which 1/4 + 1/2 are human.
    random = found["Random"]
    assert random.task_reward == 0.5
    assert random.human_intervention_rate == pytest.approx(0.75 / 1.5)
    assert random.reward == pytest.approx(0.5 - 0.1 * 0.75)
    assert (found["Oracle"].task_reward, found["Oracle"].human_intervention_rate) == (1, 0.5)


def test_the_oracle_takes_the_price_into_account_and_spares_the_human_among_equals() -> None:
    (oracle,) = [p for p in policies({"q": TREE}, 0.9) if p.name == "Oracle"]
    assert (oracle.task_reward, oracle.reward) == pytest.approx((1, 0.1))
    (oracle,) = [p for p in policies({"q": TREE}, 1.0) if p.name == "Oracle"]
    assert (oracle.task_reward, oracle.human_intervention_rate) == (0, 0)


def read(path: str) -> list[Trajectory]:
    return [t for t in reader.read(shared(path), ReadOptions()) if isinstance(t, Trajectory)]


def test_the_published_agent_only_and_human_only_rows_come_out_of_the_published_tree() -> None:
    whole, left_out = trees(read("rehac/strategyqa_tree_test100.jsonl"))
    assert (len(whole), left_out) == (100, 0)
    found = {p.name: (round(100 * p.task_reward, 2), round(100 * p.reward, 2)) for p in policies(whole)}
    assert found["Agent-only"] == (60.00, 60.00)
    assert found["Human-only"] == (68.00, 43.36)


def test_questions_whose_choices_were_not_all_played_out_are_counted_and_left_out() -> None:
    rows = read("rehac/strategyqa_tree_test100.jsonl")
    whole, left_out = trees(rows[1:])
    assert (len(whole), left_out) == (99, 1)
    whole, left_out = trees([*rows, rows[0].model_copy(update={"id": "again"})])
    assert (len(whole), left_out) == (99, 1)
    assert policies({}) == []
