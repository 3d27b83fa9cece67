"""From trajectories to an advisor and its file, and what it earns on questions it never saw."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coaudit.pipeline.advise import advice, advisor, evaluation, sources, states, training
from coaudit.pipeline.advise.advisor import Advisor
from coaudit.pipeline.advise.evaluation import evaluate
from coaudit.pipeline.advise.policies import Rule
from coaudit.pipeline.advise.scores import LEAST_KNOWN, Bench
from coaudit.pipeline.advise.trees import forest
from coaudit.pipeline.errors import CoauditError, SourceError, UsageError
from coaudit.pipeline.store import disk
from coaudit.schemas import Trajectory
from tests.pipeline.advise import games
from tests.pipeline.advise.test_trees import episode


def named(held: dict[str, Any], name: str) -> None:
    """Give a policy that always calls a person that name, in the document of a file."""
    held["trained"][0]["policies"][name] = {"is": "rule", "lines": [[]], "odds": 1.0}


def read(path: Path) -> list[Trajectory]:
    return sources.of_files([path])[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("games")
    for name, game in (("stuck", games.stuck), ("luck", games.luck)):
        games.write(place / f"{name}_train.jsonl", games.tree(game, 30, 4, seed=1))
        games.write(place / f"{name}_test.jsonl", games.tree(game, 30, 4, seed=2, first=100))
    return place


@pytest.fixture(scope="module")
def made(folder: Path) -> Advisor:
    return training.train(read(folder / "stuck_train.jsonl"), [0.08])


@pytest.fixture(scope="module")
def learnt(made: Advisor, folder: Path) -> Advisor:
    """Written and read again, so that all that rests on it rests on the file."""
    advisor.save(made, folder / "stuck.json")
    return advisor.load(folder / "stuck.json")


@pytest.mark.slow
def test_of_two_that_train_at_once_each_writes_a_whole_file(
    made: Advisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, points = tmp_path / "models" / "advisor.json", []

    def another(point: str, target: Path) -> None:
        points.append(point)
        monkeypatch.setattr(disk, "fault", lambda point, target: points.append(point))
        advisor.save(made, path)

    monkeypatch.setattr(disk, "fault", another)
    advisor.save(made, path)
    assert points.count("sync") == 2, "both are on disk"
    assert advisor.load(path).fingerprints == made.fingerprints
    assert list(path.parent.iterdir()) == [path]


def chosen(document: Mapping[str, Any]) -> Mapping[str, Any]:
    (row,) = [row for row in document["rows"] if row["chosen"]]
    return dict(row)


@pytest.mark.slow
def test_most_of_the_way_to_the_oracle_is_covered_where_the_log_tells_when_people_help(
    learnt: Advisor, folder: Path
) -> None:
    document = evaluate(learnt, read(folder / "stuck_test.jsonl"))
    row = chosen(document)
    assert document["share"] > 0.5
    assert row["difference_low"] > 0
    kinds = {one["kind"] for one in document["rows"]}
    assert kinds == {"baseline", "rule", "learnt", "oracle"}
    assert {one["policy"] for one in document["rows"]} >= {"agent-only", "human-only", "random", "step 3"}
    assert document["already_seen"] == 0


@pytest.mark.slow
def test_where_nothing_can_be_learned_nothing_is_lost(folder: Path) -> None:
    made = training.train(read(folder / "luck_train.jsonl"), [0.08])
    row = chosen(evaluate(made, read(folder / "luck_test.jsonl")))
    assert row["difference"] > -0.02
    assert row["human_intervention_rate"] < 0.1


@pytest.mark.slow
def test_the_file_gives_back_what_was_learnt_and_names_what_from(
    made: Advisor, learnt: Advisor, folder: Path
) -> None:
    rows = read(folder / "stuck_test.jsonl")
    one, other = (
        {row["policy"]: row for row in evaluate(advisor, rows)["rows"]} for advisor in (made, learnt)
    )
    assert one == other
    held = json.loads((folder / "stuck.json").read_text(encoding="utf-8"))
    assert held["about"]["conditions"] == ["stuck_train"]
    assert held["about"]["questions"] == 30
    assert len(held["about"]["data"]) == 32
    assert held["coaudit"]


@pytest.mark.slow
def test_questions_that_were_learnt_from_are_noticed_and_left_out(learnt: Advisor, folder: Path) -> None:
    train, test = (read(folder / f"stuck_{name}.jsonl") for name in ("train", "test"))
    both = evaluate(learnt, [*train, *test])
    assert (both["already_seen"], both["questions"]) == (30, 30)
    assert both["rows"] == evaluate(learnt, test)["rows"]
    with pytest.raises(UsageError, match="the advisor learnt from 30 of these 30 questions"):
        evaluate(learnt, train)
    kept = evaluate(learnt, train, keep_seen=True)
    assert kept["questions"] == 30
    assert "says nothing about others" in kept["notes"][0]


@pytest.mark.slow
def test_a_penalty_that_was_not_trained_is_said(learnt: Advisor, folder: Path) -> None:
    document = evaluate(learnt, read(folder / "stuck_test.jsonl"), 0.3)
    assert (document["lambda"], document["trained"]) == (0.3, 0.08)
    assert any("λ = 0.3 was not trained, only 0.08" in note for note in document["notes"])


@pytest.mark.slow
def test_advice_names_what_it_rests_on_and_ends_with_the_episode(learnt: Advisor, folder: Path) -> None:
    (whole, *_) = [t for t in read(folder / "stuck_test.jsonl") if "disagree" in str(t.states)]
    over = advice.advise(learnt, whole)
    assert over.ended
    assert not over.call
    assert not any("should gain" in line for line in advice.lines(over))
    begun = whole.model_copy(update={"outcomes": (), "events": whole.events[:3]})
    said = advice.advise(learnt, begun)
    assert (said.step, said.event) == (3, 2)
    assert said.features
    assert {reason.event for reason in said.steps} == {1, 2}
    course = advice.course(learnt, begun)
    assert [row["event"] for row in course] == [1, 2, None]
    assert course[-1]["gain"] == pytest.approx(said.gain)


@pytest.mark.slow
@pytest.mark.parametrize("calls", [True, False])
def test_advice_that_the_expected_gain_does_not_bear_out_says_so(
    learnt: Advisor, folder: Path, calls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said to let the agent go on, and beneath that a person would gain."""
    whole = read(folder / "stuck_test.jsonl")[0]
    begun = whole.model_copy(update={"outcomes": (), "events": whole.events[:2]})
    trained, _ = learnt.at(None)
    policies = dict.fromkeys(trained.policies, Rule(((),) if calls else ()))
    monkeypatch.setattr(Advisor, "at", lambda *_: (replace(trained, policies=policies), None))
    said = advice.advise(learnt, begun)
    assert said.call == calls
    assert (advice.APART in said.notes) == (calls != (said.gain > 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: held.update(kind="other"), "not an advisor's file"),
        (lambda held: held.update(format=99), "format 99, expected 1"),
        (lambda held: held.pop("view"), "damaged: KeyError"),
        (lambda held: held["view"]["columns"].pop(), "damaged"),
        (lambda held: held["view"].update(cap=10**400), "damaged"),
        (lambda held: held.update(fingerprints={}), "damaged: KeyError"),
        (lambda held: held["fingerprints"].update(texts=3), "expected a list of hashes, got 3"),
        (lambda held: held["fingerprints"].update(episodes=["abc"]), "expected a list of hashes, got 'abc'"),
        (lambda held: held["trained"][0].update(chosen="nobody"), "the policy 'nobody' is missing"),
        (lambda held: named(held, "oracle"), "the policy 'oracle' is not what is called so"),
        (lambda held: named(held, "agent-only"), "the policy 'agent-only' is not what is called so"),
        (lambda held: held["trained"][0].update(penalty=-5), "a penalty must lie between 0 and 1, got -5"),
    ],
)
@pytest.mark.slow
def test_a_file_that_is_no_advisor_is_refused_with_what_is_wrong(
    change: Any, message: str, learnt: Advisor, folder: Path, tmp_path: Path
) -> None:
    held = json.loads((folder / "stuck.json").read_text(encoding="utf-8"))
    change(held)
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(held), encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        advisor.load(bad)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"kind": NaN}', "\x80"])
def test_what_is_no_json_object_is_no_advisor(text: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"bad\.json: not an advisor's file"):
        advisor.load(bad)


def test_a_tree_of_a_file_whose_branches_go_in_a_circle_is_refused(tmp_path: Path) -> None:
    held = {
        "is": "boosted",
        "feature": [[0, -1]],
        "threshold": [[0.0, 0.0]],
        "left": [[0, 0]],
        "right": [[1, 0]],
        "value": [[0.0, 0.0]],
        "chosen": [],
        "intercept": 0.0,
    }
    with pytest.raises(ValueError, match="lead nowhere"):
        advisor._policy(held, {"process": 1, "last": 0, "question": 0})


def lines(path: Path, bits: list[str], earned: float | None = 1.0) -> Path:
    rows = []
    for number in range(12):
        for way in bits:
            text = "".join(
                f"<solver> {'human' if bit == '1' else 'agent'}\nThought {n}: x\nAction {n}: Look[{n}]\n"
                f"Observation {n}: y\n"
                for n, bit in enumerate(way, start=1)
            )
            row = {"idx": number, "trajectory": f"Question: what is {number}?\n{text}", "em": 0}
            rows.append(json.dumps(row | ({} if earned is None else {"f1": earned})))
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def asked(path: Path, ways: Mapping[str, float], start: str = "") -> Path:
    """A person asks, then each of `ways` takes the only step and earns so much, of twelve questions."""
    rows: list[dict[str, Any]] = []
    people = [{"name": name, "kind": name} for name in ("human", "agent", "environment")]
    for number in range(12):
        for who, earned in ways.items():
            name = f"{number}-{who}"
            rows.append({"type": "trajectory", "native_id": name, "task": "qa", "instance": str(number)})
            rows[-1]["participants"] = people
            event = {"type": "event", "trajectory": name}
            if start:
                rows.append(event | {"actor": "environment", "kind": "start", "text": start})
            rows.append(event | {"actor": "human", "kind": "message", "text": f"How deep is lake {number}?"})
            rows.append(event | {"actor": who, "kind": "action", "action": {"name": "answer"}})
            rows.append({"type": "outcome", "trajectory": name, "name": "task_reward", "value": earned})
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_what_a_person_asks_first_is_the_question_and_no_step_to_pay_for(tmp_path: Path) -> None:
    rows = read(asked(tmp_path / "a.jsonl", {"agent": 0.5, "human": 0.9}))
    assert {len(states.steps(row)) for row in rows} == {1}
    assert states.question(rows[0]) == "How deep is lake 0?"
    told = read(asked(tmp_path / "b.jsonl", {"agent": 0.5}, "Lakes of the north."))
    assert states.state(told[0]).question == "Lakes of the north.\nHow deep is lake 0?"
    document = evaluate(games.advisor(), rows)
    found = {row["policy"]: row for row in document["rows"]}
    agent, human = found["agent-only"], found["human-only"]
    assert (agent["reward"], agent["human_intervention_rate"]) == (0.5, 0)
    assert (human["reward"], human["human_intervention_rate"]) == (pytest.approx(0.82), 1)


def test_one_kind_of_actor_teaches_nothing_and_is_said_to(tmp_path: Path) -> None:
    with pytest.raises(CoauditError, match="12 trajectories, all 24 steps by agents: nothing can be learned"):
        training.train(read(lines(tmp_path / "a.jsonl", ["00"])), [0.08])
    with pytest.raises(CoauditError, match="all 12 steps by people"):
        training.train(read(lines(tmp_path / "h.jsonl", ["1"])), [0.08])


def test_without_outcomes_nothing_is_learnt(tmp_path: Path) -> None:
    rows = [t.model_copy(update={"outcomes": ()}) for t in read(lines(tmp_path / "a.jsonl", ["0", "1"]))]
    with pytest.raises(CoauditError, match="24 trajectories, none with an outcome"):
        training.train(rows, [0.08])


def test_rewards_outside_0_and_1_name_their_trajectory(tmp_path: Path) -> None:
    rows = read(asked(tmp_path / "a.jsonl", {"agent": 3.0, "human": 0.9}))
    with pytest.raises(CoauditError, match=r"0-agent: task_reward must lie between 0 and 1, got 3"):
        training.train(rows, [0.08])


def test_where_no_trajectory_has_what_is_to_be_learnt_the_reason_is_told(tmp_path: Path) -> None:
    rows = read(lines(tmp_path / "a.jsonl", ["0", "1"], earned=66.7))
    told = '24 trajectories, none .*; task_reward: "f1" must be from 0 to 1, got 66.7$'
    with pytest.raises(CoauditError, match=told):
        training.train(rows, [0.08])


@pytest.mark.parametrize("penalty", [float("nan"), -0.1, 2.0])
def test_a_penalty_lies_between_0_and_1(penalty: float) -> None:
    with pytest.raises(UsageError, match="--penalty must lie between 0 and 1"):
        training.train([], [penalty])


@pytest.mark.parametrize("penalty", [float("nan"), -0.1, 2.0])
def test_only_what_a_human_step_can_cost_is_asked_for(penalty: float) -> None:
    """`advise next --penalty -5` answered by the policy for another λ."""
    with pytest.raises(UsageError, match="--penalty must lie between 0 and 1"):
        games.advisor().at(penalty)


def test_an_outcome_that_no_trajectory_has_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    rows = read(lines(tmp_path / "a.jsonl", ["0", "1"]))
    with pytest.raises(CoauditError, match="'score'; there are values of em, f1, finished, success, task_r"):
        training.train(rows, [0.08], outcome="score")


def test_training_says_no_value_of_a_policy_that_hardly_a_question_tells_of(tmp_path: Path) -> None:
    """Agent-only was worth 1.43 of 1 in the table, by the one question in which agents acted alone."""
    alone = [t for t in read(lines(tmp_path / "a.jsonl", ["000"])) if t.tags["idx"] in ("1", "2")]
    with_people = read(lines(tmp_path / "a.jsonl", ["011"], earned=0.3))
    (row,) = training.documents(training.train([*alone, *with_people], [0.08]))["rows"]
    few = [one for one in row["candidates"] if one["effective"] < LEAST_KNOWN]
    assert {"agent-only", "human-only"} <= {one["policy"] for one in few}
    assert {one[name] for one in few for name in ("reward", "human_steps", "difference")} == {None}
    # A gain over what has no value was .19, where four of five folds happened to tell of eight questions.
    worth = row["procedure"]
    assert worth["difference"] is None and worth["reason"].startswith("agent-only's choices were logged in")


def test_few_questions_are_too_few_to_hold_some_out(tmp_path: Path) -> None:
    rows = [t for t in read(lines(tmp_path / "a.jsonl", ["0", "1"])) if t.tags["idx"] in ("1", "2")]
    with pytest.raises(CoauditError, match="2 questions; at least 10 are needed"):
        training.train(rows, [0.08])


@pytest.mark.parametrize("text", ["", "[1, 2]", '{"a": 1}', "null"])
def test_a_file_that_is_no_log_is_named(text: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=r"bad\.jsonl"):
        sources.of_files([bad])


def test_the_curve_has_every_baseline_at_every_penalty() -> None:
    assert evaluation.CURVE[0] == 0
    assert {0.06, 0.08, 0.1} < set(evaluation.CURVE)


def test_the_check_of_the_gain_holds_a_question_out_under_all_its_conditions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = [
        replace(episode("01", 1.0, f"q{n}"), experiment=condition) for n in range(20) for condition in "ab"
    ]
    woods = forest(paths)
    size = len(woods.states)
    clusters = np.asarray(woods.clusters)[woods.tree]
    weights = list[Any]()

    def ridge(strength: float, blocks: object) -> Any:
        def fit(lesson: object, target: object, weight: Any) -> Any:
            weights.append(weight)
            return SimpleNamespace(score=lambda features: np.zeros(size))

        return fit

    monkeypatch.setattr(training, "ridge", ridge)
    monkeypatch.setattr(training, "blocks_of", lambda policy: ())
    monkeypatch.setattr(training, "gain_targets", lambda lesson, chance: (np.zeros(size), np.ones(size)))
    features: Any = None
    policy: Any = SimpleNamespace(chance=lambda features: np.zeros(size))
    training._gain(Bench(woods, np.full(size, 0.5)), features, 0.1, policy, 0)
    *held, every = weights
    assert every.all() and sum(weight == 0 for weight in held).tolist() == [1] * size
    for weight in held:
        assert not set(clusters[weight == 0]) & set(clusters[weight > 0])
