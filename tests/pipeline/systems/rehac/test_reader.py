"""What the ReHAC reader makes of trajectory files and trees."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.rehac import reader
from coaudit.pipeline.systems.rehac import text as rehac_text
from coaudit.schemas import Quarantined, Trajectory
from tests.shared import ROOT, shared

SAMPLES = ROOT / "data" / "rehac"
STEP = "<solver> agent\nThought 1: Look.\nAction 1: Search[x]\nObservation 1: There is x.\n"


def read(path: Path, **options: str) -> list[Trajectory]:
    """The trajectories of a file that has nothing wrong with it."""
    found = list(reader.read(path, ReadOptions.model_validate(options)))
    wrong = [piece for piece in found if isinstance(piece, Quarantined)]
    assert not wrong
    return [piece for piece in found if isinstance(piece, Trajectory)]


def written(folder: Path, *texts: str) -> Path:
    """A trajectory file with these texts."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps({"trajectory": text, "em": 0, "f1": 0}) + "\n" for text in texts))
    return path


def one(folder: Path, text: str) -> Trajectory:
    (trajectory,) = read(written(folder, text))
    assert reader.text(trajectory) == text
    return trajectory


@pytest.mark.parametrize("name", ["hotpotqa_pairs", "intercode_results"])
def test_the_text_of_a_trajectory_is_rebuilt_byte_for_byte(name: str) -> None:
    path = SAMPLES / f"{name}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [reader.text(t) for t in read(path)] == [json.loads(line)["trajectory"] for line in lines]


def test_the_task_is_told_from_answers_and_actions_and_not_from_the_files_name(tmp_path: Path) -> None:
    for name, task in (
        ("hotpotqa_pairs", "hotpotqa"),
        ("strategyqa_tree", "strategyqa"),
        ("intercode_results", "intercode"),
    ):
        copy = tmp_path / f"set_{len(name)}.jsonl"
        copy.write_bytes((SAMPLES / f"{name}.jsonl").read_bytes())
        assert {t.task for t in read(copy)} == {task}


def test_a_step_is_one_event_with_thought_action_and_observation(tmp_path: Path) -> None:
    trajectory = one(tmp_path, "Question: Is it x?\n" + STEP)
    start, step = trajectory.events
    assert (start.kind, start.actor, start.text) == ("start", "environment", "Question: Is it x?\n")
    assert (step.actor, step.kind, step.text, step.status) == ("agent", "action", "Look.", "succeeded")
    assert step.action is not None
    assert (step.action.name, step.action.arguments) == ("Search", {"argument": "x"})
    assert trajectory.states[step.states["public"]] == {"observation": "There is x."}


def test_two_thoughts_in_a_step_are_joined_and_the_step_is_rebuilt(tmp_path: Path) -> None:
    twice = STEP.replace("Action 1", "Thought 2: Look again.\nAction 1")
    assert one(tmp_path, "Question: Is it x?\n" + twice).events[1].text == "Look.\nLook again."


def test_an_invalid_action_is_a_failed_action_that_keeps_what_was_written(tmp_path: Path) -> None:
    cut = (
        "<solver> human\nThought 1: So.\nAction 1: Finish[\nObservation 1: Invalid action: finish[\n"
        "<solver> agent\nThought 2: So.\nAction 2: Thought[so\nObservation 2: Invalid action: thought[so\n"
        "<solver> agent\nThought 3: So.\nAction 3: Lookup[x y]\nObserv\nObservation 3: "
        "Invalid action: lookup[x y]\nObserv\n"
    )
    _, finish, unknown, garbage = one(tmp_path, "Question: Is it x?\n" + cut).events
    assert [e.status for e in (finish, unknown, garbage)] == ["failed"] * 3
    assert finish.kind == "action" and finish.error == "Invalid action: finish["
    assert finish.action is not None and unknown.action is not None and garbage.action is not None
    assert [a.name for a in (finish.action, unknown.action, garbage.action)] == [
        "Finish",
        "Thought",
        "Lookup",
    ]
    assert garbage.action.arguments == {"argument": "x y"}
    assert garbage.action.raw == "Lookup[x y]\nObserv"


def test_sql_on_several_lines_without_thoughts_is_one_action() -> None:
    first = read(SAMPLES / "intercode_results.jsonl")[0]
    step = first.events[2]
    assert step.text is None and step.action is not None
    assert step.action.name == "SQL"
    assert step.action.arguments["query"] == "SELECT count(*)\nFROM loan\nWHERE returned IS NULL"
    state = first.states[step.states["public"]]
    assert isinstance(state, dict) and state["observation"] == "[(14,)]"


def test_an_episode_that_ends_without_an_answer_is_unfinished() -> None:
    finished = [
        next(o.value for o in t.outcomes if o.name == "finished")
        for t in read(SAMPLES / "hotpotqa_pairs.jsonl")
    ]
    assert finished == [1, 1, 1, 1, 0, 1, 1]


def test_runs_on_the_same_question_share_their_instance_across_files(tmp_path: Path) -> None:
    trajectories = read(SAMPLES / "hotpotqa_pairs.jsonl")
    again = one(tmp_path, reader.text(trajectories[0]))
    assert {t.instance for t in trajectories[:4]} == {again.instance}
    assert trajectories[4].instance != again.instance


def test_an_id_depends_on_the_content_and_the_files_name_and_not_on_its_folder(tmp_path: Path) -> None:
    path = SAMPLES / "hotpotqa_pairs.jsonl"
    (tmp_path / path.name).write_bytes(path.read_bytes())
    ids = [t.id for t in read(path)]
    assert [t.id for t in read(tmp_path / path.name)] == ids
    assert len(set(ids)) == len(ids)


def test_the_same_row_twice_is_two_trajectories(tmp_path: Path) -> None:
    first, second = read(written(tmp_path, "Question: x?\n" + STEP, "Question: x?\n" + STEP))
    assert first.id != second.id and first.native_id != second.native_id


def test_a_row_added_to_a_file_changes_no_id_before_it(tmp_path: Path) -> None:
    before = read(written(tmp_path, "Question: x?\n" + STEP))
    after = read(written(tmp_path, "Question: x?\n" + STEP, "Question: y?\n" + STEP))
    assert [t.id for t in after][:1] == [t.id for t in before]


def test_gpt4_in_the_place_of_people_is_a_simulated_setting(tmp_path: Path) -> None:
    row = written(tmp_path, "Question: x?\n" + STEP).read_bytes()
    for folder, setting in (("human", "real"), ("gpt4", "simulated"), ("elsewhere", None)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "hotpotqa.jsonl").write_bytes(row)
        (trajectory,) = read(tmp_path / folder / "hotpotqa.jsonl")
        assert trajectory.setting == setting
        assert trajectory.participant("human").simulated == (setting == "simulated")


def test_a_tree_gives_a_trajectory_for_every_end() -> None:
    trajectories = read(SAMPLES / "strategyqa_tree.jsonl")
    assert [t.native_id.partition("/")[2] for t in trajectories] == [
        "12/00", "12/01", "12/100", "12/101", "12/11", "31/00", "31/01", "31/1",
    ]  # fmt: skip
    assert [e.actor for e in trajectories[2].events] == ["environment", "human", "agent", "agent"]
    assert reader.text(trajectories[7], "Question: q\n") == (
        "Question: q\n<solver> human\nThought 1: Five metres against four: yes.\n"
        "Action 1: Finish[true]\nObservation 1: Episode finished, reward = 1\n\n"
    )


def test_bad_keys_of_a_tree_are_named_and_nothing_else_is_lost(tmp_path: Path) -> None:
    tree = json.loads((SAMPLES / "strategyqa_tree.jsonl").read_text(encoding="utf-8"))
    tree["(31, '0')"] = 7
    tree["__import__('os')"] = "x"
    tree["(40, '1')"] = "Thought 1: Cut off.\n"
    tree["(41, '1')"] = "('text', 1)"
    path = tmp_path / "tree.jsonl"
    path.write_text(json.dumps(tree))
    found = list(reader.read(path, ReadOptions()))
    reasons = [piece.reason for piece in found if isinstance(piece, Quarantined)]
    assert len(found) - len(reasons) == 6
    for said in (
        "key \"(31, '0')\": expected a text, got int",
        "key \"__import__('os')\": not a Python literal",
        "key \"(40, '1')\": the episode neither ends here nor goes on",
        "key \"(41, '1')\": expected ('text', em, f1)",
        "key \"(31, '00')\": the step before it, (31, '0'), is missing",
    ):
        assert any(said in reason for reason in reasons), said


def test_a_literal_over_the_limit_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "tree.jsonl"
    path.write_text(json.dumps({"(1, '0')": "(" * 2_000_000 + ")", "(1, '1')": "(" * 5000 + ")"}))
    long, deep = reader.read(path, ReadOptions())
    assert isinstance(long, Quarantined) and "longer than" in long.reason
    assert isinstance(deep, Quarantined) and "not a Python literal" in deep.reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"trajectory": "Question: <solver> ag', "not JSON"),
        ("[1]", "expected a JSON object, got list"),
        ('{"trajectory": 5}', '"trajectory" must be a text, got int'),
        ('{"other": 5}', '"trajectory" must be a text, got none'),
        ('{"trajectory": "Question: x"}', "no <solver> in the trajectory"),
        (
            '{"trajectory": "<solver> robot\\nAction 1: x"}',
            "step 1: solver must be agent or human, got 'robot'",
        ),
        ('{"trajectory": "<solver> agent\\n", "f1": "high"}', "\"f1\" must be a finite number, got 'high'"),
        ('{"trajectory": "<solver> agent\\n", "f1": 1e999}', '"f1" must be a finite number, got inf'),
        (f'{{"trajectory": "<solver> agent\\n", "f1": 1{"0" * 400}}}', '"f1" must be a finite number'),
        (
            '{"trajectory": "<solver> agent\\n", "idx": 1.5}',
            '"idx" must be a whole number or a text, got 1.5',
        ),
    ],
)
def test_a_bad_line_is_named_and_nothing_else_is_lost(tmp_path: Path, line: str, reason: str) -> None:
    good = json.dumps({"trajectory": "Question: x?\n" + STEP, "em": 1, "f1": 1})
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{good}\n{line}\n{good}\n")
    before, bad, after = reader.read(path, ReadOptions())
    assert isinstance(before, Trajectory) and isinstance(after, Trajectory)
    assert isinstance(bad, Quarantined)
    assert bad.line == 2 and reason in bad.reason


def test_a_score_beyond_all_numbers_costs_a_tree_no_other_episode(tmp_path: Path) -> None:
    path = tmp_path / "localgpt_dev.jsonl"
    path.write_text(json.dumps({"(1, '0')": repr((STEP, 1, 10**400)), "(1, '1')": repr((STEP, 1, 1))}))
    wrong, found = reader.read(path, ReadOptions())
    assert isinstance(found, Trajectory) and found.native_id == "localgpt_dev/1/1"
    assert isinstance(wrong, Quarantined) and "em and f1 must be finite numbers" in wrong.reason


def test_a_score_may_be_the_text_of_a_number(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"trajectory": "Question: x?\n" + STEP, "em": "1", "f1": "0.5"}))
    (found,) = reader.read(path, ReadOptions())
    assert isinstance(found, Trajectory)
    said = {outcome.name: outcome.value for outcome in found.outcomes}
    assert (said["f1"], said["success"]) == (0.5, 1)


@pytest.mark.parametrize(
    ("scores", "reason", "left"),
    [
        ({"em": 1, "f1": 66.7}, '"f1" must be from 0 to 1, got 66.7', {"em": 1, "success": 1}),
        ({"em": 2, "f1": 0.5}, '"em" must be from 0 to 1, got 2', {"f1": 0.5, "task_reward": 0.5}),
        ({"f1": -0.1}, '"f1" must be from 0 to 1, got -0.1', {}),
    ],
)
def test_a_score_that_is_no_share_is_missing_with_the_reason_and_not_cut(
    tmp_path: Path, scores: dict[str, float], reason: str, left: dict[str, float]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"trajectory": "Question: x?\n" + STEP, **scores}))
    (found,) = read(path)
    said = {o.name: o.value for o in found.outcomes if o.value is not None and o.name != "finished"}
    assert said == left
    why = {o.name: o.reason for o in found.outcomes if o.value is None}
    assert reason in why.values() and set(why) | set(left) == {"em", "f1", "task_reward", "success"}


def test_what_is_wrong_with_a_key_is_said_in_the_same_words_each_time(tmp_path: Path) -> None:
    path = tmp_path / "tree.jsonl"
    path.write_text(json.dumps({"(1, '0')": repr((STEP, 1, 1)), "__import__('os')": "x", "(1, ": "x"}))
    reasons = [piece.reason for piece in reader.read(path, ReadOptions()) if isinstance(piece, Quarantined)]
    assert reasons == [
        "key \"__import__('os')\": not a Python literal",
        "key '(1, ': not a Python literal: '(' was never closed",
    ]


def test_a_step_without_an_action_is_a_failed_one(tmp_path: Path) -> None:
    event = one(tmp_path, "Question: x?\n<solver> human\nThought 1: Only this.\n").events[1]
    assert event.action is None and (event.status, event.error) == ("failed", "the step has no action")


def test_only_its_own_files_are_recognised(tmp_path: Path) -> None:
    for sample in SAMPLES.glob("*.jsonl"):
        assert reader.recognises(sample)
    for name, content in {
        "advantage.jsonl": '{"state": "Question: x?\\n<solver>", "action": 0, "reward": 0.1, "count": 2}\n',
        "gold.jsonl": '{"qid": "1", "question": "x?", "answer": true}\n',
        "tree.json": '{"(1, 2)": 3}',
        "empty.jsonl": "",
    }.items():
        (tmp_path / name).write_text(content)
        assert not reader.recognises(tmp_path / name)
    assert not reader.recognises(tmp_path)


def test_actions_are_told_apart() -> None:
    for written_as, name in (
        ("Search[x]", "Search"), ("Finish [x]", "Finish"), ("finish", "finish"), ("SHOW TABLES", "SQL"),
        ("I would search", "other"), ("execute[SELECT 1]", "execute"),
    ):  # fmt: skip
        action = rehac_text.parse_action(written_as)
        assert action.name == name and rehac_text.action_text(action) == written_as


@pytest.mark.long
def test_the_published_files_are_rebuilt_byte_for_byte() -> None:
    for name, count in (("strategyqa_train", 2420), ("strategyqa_lambda0.08", 100)):
        path = shared(f"rehac/{name}.jsonl")
        rows = [json.loads(line)["trajectory"] for line in path.read_text(encoding="utf-8").splitlines()]
        trajectories = read(path)
        assert len(trajectories) == count == len({t.id for t in trajectories})
        assert [reader.text(t) for t in trajectories] == rows


def test_every_published_result_is_a_path_of_the_tree() -> None:
    results = read(shared("rehac/strategyqa_lambda0.08.jsonl"))
    tree = read(shared("rehac/strategyqa_tree_test100.jsonl"))
    paths = {reader.text(t, "") for t in tree}
    assert all(reader.text(result, "") in paths for result in results)


@pytest.mark.parametrize("score", [math.nan, "", " "])
def test_a_score_that_is_not_a_number_is_missing_and_its_trajectory_is_read(
    tmp_path: Path, score: float | str
) -> None:
    path = tmp_path / "rows.jsonl"
    end = STEP + "<solver> agent\nAction 2: Finish[x]\nObservation 2: Episode finished, reward = 1\n\n"
    path.write_text(json.dumps({"trajectory": f"Question: x?\n{end}", "em": score, "f1": score}))
    (trajectory,) = read(path)
    assert {o.name: o.value for o in trajectory.outcomes if o.value is not None} == {"finished": 1}


def test_a_question_may_be_known_by_a_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"idx": "5a8b57", "trajectory": "Question: x?\n" + STEP}) + "\n")
    (trajectory,) = read(path)
    assert (trajectory.native_id, trajectory.tags) == ("rows/5a8b57/0", {"idx": "5a8b57"})


def test_files_named_by_their_epoch_alone_are_experiments_of_their_folders(tmp_path: Path) -> None:
    text = "Question: x?\n" + STEP
    found = []
    for folder in ("delta0.06_dev100_log", "delta0.08_dev100_log"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "epoch1.5.jsonl"
        path.write_text(json.dumps({"trajectory": text}) + "\n")
        found += read(path)
    assert [t.condition for t in found] == ["delta0.06_dev100_log/epoch1.5", "delta0.08_dev100_log/epoch1.5"]
    assert [t.tags for t in found] == [
        {"lambda": "0.06", "epoch": "1.5"},
        {"lambda": "0.08", "epoch": "1.5"},
    ]
    assert found[0].id != found[1].id
    unpacked = tmp_path / "delta0.08_dev100_log" / "epoch1.5.jsonl.gz"  # as a compressed one is read
    unpacked.mkdir()
    (again,) = read(path.rename(unpacked / path.name))
    assert (again.id, again.tags) == (found[1].id, found[1].tags)


def test_a_files_name_tells_the_penalty_that_its_policy_was_trained_with(tmp_path: Path) -> None:
    for name, tags in (("strategyqa_lambda0.1", {"lambda": "0.1"}), ("lambda_calculus", {}), ("gpt4", {})):
        file = tmp_path / f"{name}.jsonl"
        file.write_text(json.dumps({"trajectory": "Question: x?\n" + STEP}) + "\n")
        assert [t.tags for t in read(file)] == [tags]


@pytest.mark.parametrize("indent", [None, 4])
def test_records_may_be_a_list_and_trajectories_an_object_by_question(
    tmp_path: Path, indent: int | None
) -> None:
    first, second = 'Question: "x"?\n' + STEP, "Question: y?\n" + STEP + STEP
    for name, value, natives in (
        ("list", [{"trajectory": first}, {"trajectory": second}], ["list/row 1/0", "list/row 2/00"]),
        ("traj_solver_100", {"3": first, "17": second}, ["traj_solver_100/3/0", "traj_solver_100/17/00"]),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(value, indent=indent))
        assert reader.recognises(path)
        found = read(path)
        assert [t.native_id for t in found] == natives
        assert [reader.text(t) for t in found] == [first, second]


def test_line_ends_of_windows_and_capitals_change_no_action_and_are_kept(tmp_path: Path) -> None:
    text = ("Question: x?\n" + STEP).replace("agent", "Agent").replace("\n", "\r\n")
    event = one(tmp_path, text).events[1]
    assert event.action and (event.actor, event.text) == ("agent", "Look.")
    assert event.action.model_dump(exclude_none=True) == {"name": "Search", "arguments": {"argument": "x"}}


def test_yes_and_no_are_answers_of_strategyqa(tmp_path: Path) -> None:
    ends = (f"Action 2: Finish[{answer}]\nObservation 2: Episode finished\n" for answer in ("yes", "no"))
    texts = [f"Question: x?\n{STEP}<solver> human\n{end}" for end in ends]
    assert {t.task for t in read(written(tmp_path, *texts))} == {"strategyqa"}


def test_a_few_answers_say_less_of_the_task_than_the_files_name_but_its_actions_say_more(
    tmp_path: Path,
) -> None:
    end = "Action 2: Finish[yes]\nObservation 2: Episode finished\n"
    few = written(tmp_path, f"Question: x?\n{STEP}<solver> human\n{end}")
    sql = json.dumps({"trajectory": "SQL\n<solver> agent\nAction 1: SHOW TABLES\nObservation 1: []\n"})
    for name, content, task in (
        ("hotpotqa_lambda0.08", few.read_text(), "hotpotqa"),
        ("intercode_lambda0.08", few.read_text(), "strategyqa"),
        ("hotpotqa", sql, "intercode"),
    ):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(content)
        assert [t.task for t in read(path)] == [task]


@pytest.mark.parametrize(("reward", "finished"), [("1", 1), ("1.0", 1), ("0.5", 0), ("0", 0)])
def test_a_whole_reward_of_intercode_is_an_end_however_it_is_written(
    tmp_path: Path, reward: str, finished: int
) -> None:
    step = "<solver> agent\nAction 1: SELECT* FROM a\nObservation 1: [(1,)]\n"
    trajectory = one(tmp_path, f"SQL\n{step}reward = {reward}\n\n")
    assert next(o.value for o in trajectory.outcomes if o.name == "finished") == finished
    assert trajectory.task == "intercode"


@pytest.mark.parametrize(
    ("answer", "reward", "em", "earned"),
    [("true", "1", 1, 1), ("false", "0", 0, 0), ("Ulm", "1", 1, 1), ("Ulm", "0", 0, None)],
)
def test_of_trajectories_as_they_were_collected_the_text_tells_the_score(
    tmp_path: Path, answer: str, reward: str, em: float, earned: float | None
) -> None:
    path = tmp_path / "traj_solver_100.json"
    end = (
        f"<solver> human\nAction 2: Finish[{answer}]\nObservation 2: Episode finished, reward = {reward}\n\n"
    )
    path.write_text(json.dumps({"3": "Question: x?\n" + STEP + end, "4": "Question: x?\n" + STEP}))
    finished, unfinished = ({o.name: o.value for o in t.outcomes} for t in read(path))
    assert (finished["em"], finished["success"], finished["task_reward"]) == (em, em, earned)
    assert (unfinished["em"], unfinished["success"], unfinished["task_reward"]) == (0, 0, 0)


def test_an_interactive_coding_episode_tells_its_score_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        f"Question: x?\n<solver> agent\nAction 1: SELECT 1\nObservation 1: [(1,)]\nreward = {r}\n\n"
        for r in "10"
    ]
    path.write_text("".join(json.dumps({"trajectory": row}) + "\n" for row in rows))
    scores = [{o.name: o.value for o in t.outcomes} for t in read(path)]
    assert [(score["em"], score["task_reward"]) for score in scores] == [(1, 1), (0, 0)]


def test_the_number_of_a_question_may_be_written_as_a_fraction(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"idx": idx, "trajectory": "Question: x?\n" + STEP} for idx in (3, 3.0, math.nan)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [t.tags.get("idx") for t in read(path)] == ["3", "3", None]
