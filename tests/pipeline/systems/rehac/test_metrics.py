"""ReHAC's metrics against the published values, and against a sample reckoned by hand."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.rehac import metrics, reader
from coaudit.pipeline.systems.rehac.dilemmas import dilemmas
from coaudit.schemas import Action, Event, Measure, Outcome, Trajectory
from tests.shared import ROOT, shared

SAMPLES = ROOT / "data" / "rehac"


@cache
def read(path: Path) -> list[Trajectory]:
    return [t for t in reader.read(path, ReadOptions()) if isinstance(t, Trajectory)]


def means(trajectories: list[Trajectory], penalty: float = 0.08) -> dict[str, float]:
    """Each metric's mean over the trajectories, weighted as the measures say."""
    rows: dict[str, list[Measure]] = defaultdict(list)
    for trajectory in trajectories:
        for row in metrics.measures(trajectory, penalty):
            rows[row.metric].append(row)
    return {
        metric: sum((row.value or 0) * row.weight for row in found) / sum(row.weight for row in found)
        for metric, found in rows.items()
    }


def test_the_sample_gives_what_the_hand_reckons() -> None:
    found = means(read(SAMPLES / "hotpotqa_pairs.jsonl")[:4])
    # Steps 3, 2, 2, 2; human 0, 1, 1, 2; task rewards 0, 1, 4/7, 1.
    assert found["human_intervention_rate"] == pytest.approx(4 / 9)
    assert found["interventions"] == 1
    assert found["task_reward"] == pytest.approx((2 + 4 / 7) / 4)
    assert found["reward"] == pytest.approx((2 + 4 / 7) / 4 - 0.08)
    assert found["exact_match"] == 0.5


def test_the_price_of_a_human_step_may_be_any() -> None:
    found = means(read(SAMPLES / "hotpotqa_pairs.jsonl")[:4], penalty=0.5)
    assert found["reward"] == pytest.approx((2 + 4 / 7) / 4 - 0.5)


def test_states_are_shared_by_their_text_and_valued_by_what_followed() -> None:
    states = metrics.monte_carlo(read(SAMPLES / "hotpotqa_pairs.jsonl")[:4])
    root, after_agent, dead_end, after_human = states
    assert root.agent is not None and root.human is not None
    assert (root.agent.n, root.human.n, root.depth) == (2, 2, 0)
    assert root.agent.reward == pytest.approx((0 + 0.92) / 2)
    assert root.human.reward == pytest.approx((4 / 7 - 0.08 + 0.84) / 2)
    assert after_agent.advantage == pytest.approx(0.46)
    assert after_human.advantage == pytest.approx((0.84 - (4 / 7 - 0.08)) / 2)
    assert (dead_end.advantage, dead_end.reason) == (None, "only the agent acted here")


def test_where_a_person_helped_most_and_was_wasted_cites_the_steps() -> None:
    trajectories = read(SAMPLES / "hotpotqa_pairs.jsonl")
    states = metrics.monte_carlo(trajectories)
    helped, wasted = metrics.helpful_states(states), metrics.wasted_states(states)
    assert [s.advantage for s in helped] == pytest.approx([0.46, 0.46, 0.17428571, 0.10285714])
    assert helped[0].human_steps == ((trajectories[1].id, 2),)
    assert [s.advantage for s in wasted] == pytest.approx([-0.27])
    assert wasted[0].human_steps == ((trajectories[6].id, 1),)


def test_a_state_is_left_out_above_a_length_and_says_so_or_none_is() -> None:
    runs = read(SAMPLES / "hotpotqa_pairs.jsonl")[:4]
    states = metrics.monte_carlo(runs, longest=10)
    assert {s.reason for s in states} == {"longer than 10 characters", "only the agent acted here"}
    states = metrics.monte_carlo(runs, longest=None)
    assert {s.reason for s in states} == {None, "only the agent acted here"}


@pytest.mark.long
def test_the_cost_after_a_step_leaves_out_what_was_paid_before_and_the_advantages_are_the_same() -> None:
    question = "Question: Can you transport a coin along a sea of mercury?\n"
    asked = [t for t in read(shared("rehac/strategyqa_train.jsonl")) if t.events[0].text == question]
    root, *later = metrics.monte_carlo(asked, 0.08)
    assert root.agent is not None and root.agent.reward_after == pytest.approx(root.agent.reward)
    # After one human step: -.08 and .84 with the whole cost, one step of .08 more without what came before.
    (after,) = [s for s in later if s.agent and s.agent.reward == pytest.approx(-0.08) and s.depth == 1]
    assert after.human is not None and after.agent is not None
    assert (after.agent.reward_after, after.human.reward_after) == pytest.approx((0.0, 0.92))
    gain = (after.human.reward_after - after.agent.reward_after) / 2
    assert after.advantage == pytest.approx(gain) == pytest.approx(0.46)


def test_steps_without_a_state_in_coaudits_own_lines_share_states_by_what_they_did() -> None:
    def run(key: str, *actors: str) -> Trajectory:
        look = Action(name="look", arguments={"where": "here"})
        events = [Event(seq=seq, actor=actor, kind="action", action=look) for seq, actor in enumerate(actors)]
        return Trajectory.model_validate(
            {
                "id": key,
                "native_id": "a/1/0",
                "source": "here",
                "system": "rehac",
                "participants": [],
                "events": events,
                "outcomes": [Outcome(name="task_reward", value=1.0)],
            }
        )

    states = metrics.monte_carlo([run("1", "agent", "human"), run("2", "agent", "agent"), run("3")])
    assert [(s.depth, s.advantage) for s in states] == [(0, None), (1, pytest.approx(-0.04))]


def test_trees_of_two_questions_share_no_state() -> None:
    states = metrics.monte_carlo(read(SAMPLES / "strategyqa_tree.jsonl"))
    assert [(s.instance, s.depth) for s in states] == [
        ("12", 0), ("12", 1), ("12", 1), ("12", 2), ("31", 0), ("31", 1),
    ]  # fmt: skip


def test_trees_of_two_files_under_one_condition_share_no_state(tmp_path: Path) -> None:
    content = (SAMPLES / "strategyqa_tree.jsonl").read_bytes()
    trees = []
    for name in ("hotpotqa/localgpt_train", "hotpotqa/localgpt_dev", "strategyqa/localgpt_dev"):
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if name.startswith("s") else content.replace(b"[true]", b"[Paris]"))
        trees += [t for t in reader.read(path, ReadOptions(condition="tree")) if isinstance(t, Trajectory)]
    assert [s.depth for s in metrics.monte_carlo(trees)].count(0) == 3 * 2


def test_a_trajectory_without_a_score_is_missing_and_not_zero(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    step = "<solver> agent\\nAction 1: Finish[x]\\nObservation 1: Episode finished, reward = 0\\n\\n"
    path.write_text(f'{{"trajectory": "Question: x?\\n{step}"}}\n')
    (trajectory,) = read(path)
    rows = {row.metric: row for row in metrics.measures(trajectory)}
    assert rows["task_reward"].value is None and rows["task_reward"].reason == "not logged"
    assert rows["reward"].value is None
    assert rows["human_intervention_rate"].value == 0
    assert metrics.monte_carlo([trajectory]) == []


def test_the_three_dilemmas_are_found_with_the_steps_that_show_them() -> None:
    pairs = read(SAMPLES / "hotpotqa_pairs.jsonl")
    assert [(f.code, f.cites) for f in dilemmas(pairs[0])] == [("ambiguity", (3,))]
    assert [(f.code, f.cites) for f in dilemmas(pairs[4])] == [
        ("dead_loop", (1, 2, 3, 4, 5, 6)),
        ("dead_loop", (1, 2, 3, 4, 5, 6, 7)),
    ]
    assert not any(list(dilemmas(pairs[n])) for n in (1, 2, 3, 5, 6))


def test_different_searches_in_vain_are_missing_information(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    steps = "".join(
        f"<solver> agent\\nThought {n}: t\\nAction {n}: Search[{word}]\\n"
        f"Observation {n}: Could not find {word}. Similar: [].\\n"
        for n, word in enumerate(("mill owner", "river"), start=1)
    )
    path.write_text(f'{{"trajectory": "Question: x?\\n{steps}", "em": 0, "f1": 0}}\n')
    (trajectory,) = read(path)
    assert [(f.code, f.cites) for f in dilemmas(trajectory)] == [("missing_information", (1, 2))]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "count", "steps", "hir", "reward", "at"),
    [
        ("strategyqa_train.jsonl", 2420, 3.570661, 0.519037, 0.535124, (0.423926, 0.386860, 0.349793)),
        ("strategyqa_lambda0.08.jsonl", 100, 2.98, 0.204698, 0.66, (0.6234, 0.6112, 0.5990)),
        ("strategyqa_tree_test100.jsonl", 956, 3.524059, 0.528347, 0.595188, (0.483473, 0.446234, 0.408996)),
    ],
)
def test_the_published_table_is_reproduced(
    name: str, count: int, steps: float, hir: float, reward: float, at: tuple[float, ...]
) -> None:
    trajectories = read(shared(f"rehac/{name}"))
    found = means(trajectories)
    assert len(trajectories) == count
    assert found["steps"] == pytest.approx(steps, abs=5e-7)
    assert found["human_intervention_rate"] == pytest.approx(hir, abs=5e-7)
    assert found["task_reward"] == pytest.approx(reward, abs=5e-7)
    for penalty, value in zip((0.06, 0.08, 0.10), at, strict=True):
        assert means(trajectories, penalty)["reward"] == pytest.approx(value, abs=5e-7)


@pytest.mark.long
@pytest.mark.parametrize(
    ("penalty", "better", "ties", "mean", "total"),
    [
        (0.06, 461, 7, 0.00548509, 553.126347),
        (0.08, 457, 8, -0.00515581, 579.441205),
        (0.10, 454, 7, -0.01579672, 605.961951),
    ],
)
def test_the_published_advantages_are_reproduced(
    penalty: float, better: int, ties: int, mean: float, total: float
) -> None:
    states = metrics.monte_carlo(read(shared("rehac/strategyqa_train.jsonl")), penalty)
    defined = [s.advantage for s in states if s.advantage is not None]
    assert (len(states), len(defined)) == (2172, 2169)
    assert {s.reason for s in states if s.advantage is None} <= {
        "only the agent acted here",
        "only the human acted here",
    }
    assert (sum(s.human_better for s in states), sum(s.tie for s in states)) == (better, ties)
    assert sum(defined) / len(defined) == pytest.approx(mean, abs=5e-9)
    # The released file has a line for either action, so each advantage counts twice.
    assert 2 * sum(map(abs, defined)) == pytest.approx(total, abs=5e-7)
    assert (
        sum(s.agent.n + s.human.n for s in states if s.advantage is not None and s.agent and s.human) == 8638
    )


@pytest.mark.parametrize(
    ("question", "n", "rewards", "advantage"),
    [
        ("Can you transport a coin along a sea of mercury?", (4, 2), (0.67, 0.38), -0.145),
        ("Is Lionel Richie related to Sheila E?", (4, 4), (0.92, 0.84), -0.04),
        ("Would it be safe to have a jackfruit thrown at your head?", (1, 2), (1.0, 0.88), -0.06),
    ],
)
def test_the_published_examples_of_states_are_reproduced(
    question: str, n: tuple[int, int], rewards: tuple[float, float], advantage: float
) -> None:
    trajectories = read(shared("rehac/strategyqa_train.jsonl"))
    asked = [t for t in trajectories if t.events[0].text == f"Question: {question}\n"]
    root, *later = metrics.monte_carlo(asked)
    assert root.agent is not None and root.human is not None
    assert (root.agent.n, root.human.n) == n
    assert (root.agent.reward, root.human.reward) == pytest.approx(rewards)
    assert root.advantage == pytest.approx(advantage)
    if question.startswith("Can you transport"):
        assert sum(s.advantage == pytest.approx(0.46) for s in later) >= 2
