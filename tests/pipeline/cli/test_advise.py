"""`coaudit advise`: what it prints, its exit status, and what it says of wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coaudit.pipeline.advise import advisor
from tests.conftest import Coaudit
from tests.pipeline.advise import games
from tests.shared import shared

KEYS = {
    "policy",
    "kind",
    "chosen",
    "lambda",
    "task_reward",
    "human_intervention_rate",
    "reward",
    "low",
    "high",
}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    advisor.save(games.advisor(), tmp_path / "policy.json")
    return tmp_path / "policy.json"


@pytest.mark.slow
def test_evaluate_prints_one_document_with_exactly_one_chosen_row(
    coaudit: Coaudit, policy: Path, tmp_path: Path
) -> None:
    tree = games.write(tmp_path / "tree.jsonl", games.tree(games.stuck, 12, 4, seed=1))
    done = coaudit("advise", "evaluate", "--policy", str(policy), "--tree", str(tree), "--json")
    rows = json.loads(done.out)["rows"]
    assert all(set(row) >= KEYS for row in rows)
    assert [row["policy"] for row in rows if row["chosen"]] == ["rule"]
    assert {row["kind"] for row in rows} == {"baseline", "rule", "oracle"}
    best = max(rows, key=lambda row: row["reward"])
    assert best["policy"] == "oracle"


@pytest.mark.slow
def test_in_each_row_the_reward_is_the_task_reward_less_the_price_of_the_human_steps(
    coaudit: Coaudit, policy: Path, tmp_path: Path
) -> None:
    """The share of human steps stood under "human steps", so that no row added up."""
    tree = games.write(tmp_path / "tree.jsonl", games.tree(games.stuck, 12, 4, seed=1))
    done = coaudit("advise", "evaluate", "--policy", str(policy), "--tree", str(tree), "--json")
    document = json.loads(done.out)
    for row in [*document["rows"], *document["curve"]]:
        assert row["reward"] == pytest.approx(row["task_reward"] - row["lambda"] * row["human_steps"])
    shown = coaudit("advise", "evaluate", "--policy", str(policy), "--tree", str(tree)).out
    head, *points = shown[shown.index("Reward and interventions over") :].splitlines()[1:]
    assert "human steps (C)" in head and "share of steps" in head
    for line in filter(None, points[:9]):
        penalty, *_, task, steps, share, reward = line.split()
        assert float(reward) == pytest.approx(float(task) - float(penalty) * float(steps), abs=2e-4)
        assert float(share) <= 1


@pytest.mark.slow
def test_table_5_has_the_published_figures_beside_those_of_the_published_tree(
    coaudit: Coaudit, policy: Path
) -> None:
    tree = shared("rehac/strategyqa_tree_test100.jsonl")
    done = coaudit("advise", "evaluate", "--policy", str(policy), "--tree", str(tree), "--json")
    rows = {row["row"]: row for row in json.loads(done.out)["table_5"]}
    here = {name: round(row["here"]["reward"], 2) for name, row in rows.items() if row["here"]["reward"]}
    assert here["Agent-only"] == rows["Agent-only"]["published"]["reward"] == 60.00
    assert here["Human-only"] == rows["Human-only"]["published"]["reward"] == 43.36
    # The exact expectation; the paper's 53.8 is the mean of three runs.
    assert (here["Random"], rows["Random"]["published"]["reward"]) == (51.41, 53.8)
    assert rows["Prompt"] == {
        "row": "Prompt",
        "published": {"human_intervention_rate": 9.14, "task_reward": 61.33, "reward": 59.12},
        "here": {"human_intervention_rate": None, "task_reward": None, "reward": None},
    }


@pytest.mark.slow
def test_next_advises_on_an_unfinished_trajectory_of_the_workspace(
    coaudit: Coaudit, policy: Path, tmp_path: Path
) -> None:
    text = (
        "Question: Who?\n<solver> agent\nThought 1: I look.\nAction 1: Search[x]\n"
        "Observation 1: Could not find x. Similar: []\n"
    )
    log = tmp_path / "live.jsonl"
    log.write_text(json.dumps({"idx": 1, "trajectory": text}), encoding="utf-8")
    coaudit("ingest", str(log))
    done = coaudit("advise", "next", "live/1/0", "--policy", str(policy), "--json")
    said = json.loads(done.out)
    assert (said["call"], said["step"], said["event"], said["lambda"]) == (True, 2, 1, 0.08)
    assert said["gain"] == pytest.approx(0.4)
    assert said["features"][0] == {"what": "last: failed", "weight": 0.5, "event": None}
    assert said["steps"][0]["what"] == "agent: Search x (failed)"
    assert "call a person (step 2)" in coaudit("advise", "next", "live/1/0", "--policy", str(policy)).out


@pytest.mark.slow
def test_wrong_input_is_named_and_fails(coaudit: Coaudit, policy: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("", encoding="utf-8")
    for arguments, status, message in (
        (["train", str(empty), "--out", "x.json"], 1, "empty.jsonl: the file is empty"),
        (["train", "--out", "x.json"], 1, "no workspace here; `coaudit ingest PATH` makes one"),
        (["train", str(empty), "--penalty", "nan"], 2, "--penalty takes a finite number, got nan"),
        (["train", str(empty), "--penalty", "-0.1"], 2, "at least 0, got -0.1"),
        (["evaluate", "--policy", str(empty), "--tree", str(empty)], 2, "empty.jsonl: not an advisor's file"),
        (["evaluate", "--tree", str(empty)], 2, "advisor.json: no advisor there"),
        (["next", "nobody", "--policy", str(policy)], 1, "no workspace here"),
    ):
        done = coaudit("advise", *arguments, status=status)
        assert message in done.err
