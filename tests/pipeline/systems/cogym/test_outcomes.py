"""What came of a Co-Gym session: its end, its result, who played it with which models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.store.queries import trajectories
from coaudit.pipeline.systems.cogym import reader
from coaudit.schemas import Trajectory
from tests.pipeline.systems.cogym.folders import (
    AGENT,
    USER,
    Log,
    age,
    outcome,
    performance,
    pieces,
    read,
    simulated,
)


def ended(log: Log, folder: Path, files: dict[str, Any] | None = None) -> str | None:
    return outcome(read(log.folder(folder / "env_travel_planning_0", files)), "end_reason").text


def talked(messages: int, role: str = AGENT, team: tuple[str, ...] = (AGENT, USER)) -> Log:
    log = Log(team=team)
    for number in range(messages):
        log.say(role, f"Message {number}")
    return log


@pytest.mark.parametrize("role", [AGENT, USER])
def test_a_session_whose_last_act_is_a_finish_is_finished_whoever_did_it(tmp_path: Path, role: str) -> None:
    assert ended(Log().write(AGENT, "Plan").finish(role), tmp_path) == "finished"


def test_a_finish_that_failed_finishes_nothing(tmp_path: Path) -> None:
    assert ended(Log().act(AGENT, "FINISH()", "not yet"), tmp_path) == "unfinished"


@pytest.mark.parametrize("role", [AGENT, USER])
def test_the_step_limit_counts_each_partys_records(tmp_path: Path, role: str) -> None:
    assert ended(talked(30, role), tmp_path / "reached") == "step_limit"
    assert ended(talked(29, role), tmp_path / "not") == "unfinished"
    both = talked(29).say(USER, "One").say(USER, "Two")
    assert ended(both, tmp_path / "both") == "unfinished"


def test_in_the_graphical_server_the_limit_is_100(tmp_path: Path) -> None:
    team = ("agent", "user_local-user")
    assert ended(talked(99, "agent", team), tmp_path / "not") == "unfinished"
    assert ended(talked(100, "agent", team), tmp_path / "reached") == "step_limit"


@pytest.mark.parametrize(
    "place", ["env_travel_planning_0_config.toml", "../env_config_tmp/travel_planning_0.toml"]
)
def test_the_step_limit_is_read_from_the_configuration_beside_the_session(tmp_path: Path, place: str) -> None:
    config = tmp_path / "results" / place
    config.parent.mkdir(parents=True)
    config.write_text('env_class = "travel_planning"\n[env_args]\nmax_steps = 3\n')
    assert ended(talked(3), tmp_path / "results") == "step_limit"
    assert ended(talked(2), tmp_path / "results") == "unfinished"


def test_a_configuration_that_is_no_toml_is_named_and_the_session_is_read(tmp_path: Path) -> None:
    config = tmp_path / "env_x_config.toml"
    config.write_text("max_steps = = 3")
    (found,), (wrong,) = pieces(talked(2).folder(tmp_path / "env_x"))
    assert (wrong.source, wrong.reason[:8]) == (str(config), "not TOML")
    assert len(found.events) == 4


def test_a_session_that_was_evaluated_without_a_finish_or_the_limit_timed_out(tmp_path: Path) -> None:
    assert ended(talked(2), tmp_path, performance()) == "time_out"


def test_a_killed_session_is_unfinished_and_nobody_knows_whether_it_delivered(tmp_path: Path) -> None:
    found = read(Log().write(AGENT, "Plan").folder(tmp_path / "env_x"))
    assert outcome(found, "end_reason").text == "unfinished"
    assert outcome(found, "delivered").value is None
    assert outcome(found, "delivered").reason == "the session did not come to an end"


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_session_killed_at_any_point_is_read_up_to_there(tmp_path: Path, kept: int) -> None:
    log = Log().say(AGENT, "One").write(AGENT, "Plan").finish()
    log.records[kept:] = []
    (found,), (wrong,) = pieces(log.folder(tmp_path / "env_x", cut='{"role": "planning_agent", "timest'))
    assert [e.seq for e in found.events] == list(range(kept + 1))
    assert (wrong.line, wrong.reason.endswith("(the last line is cut off)")) == (kept + 1, True)


@pytest.mark.parametrize(
    ("public", "delivered"),
    [
        ({"travel_plan_editor": ""}, 0.0),
        ({"travel_plan_editor": " "}, 1.0),
        ({"result_editor": "", "jupyter_history": "x"}, 0.0),
        ({"result_editor": "0.4", "jupyter_history": ""}, 1.0),
        ({"related_works_editor": "Text", "library": []}, 0.0),
        ({"related_works_editor": " \n", "library": [{"title": "x"}]}, 0.0),
        ({"related_works_editor": "Text", "library": [{"title": "x"}]}, 1.0),
    ],
)
def test_what_counts_as_delivered_depends_on_the_task(
    tmp_path: Path, public: dict[str, Any], delivered: float
) -> None:
    found = read(Log(public=public).finish().folder(tmp_path / "env_x"))
    assert outcome(found, "delivered").value == delivered


def test_the_evaluation_beside_the_log_says_what_was_delivered_and_how_good_it_is(tmp_path: Path) -> None:
    files = performance("Plan", performance_rating=0.75, commonsense_pass_rate=0.5)
    found = read(Log().write(AGENT, "Plan").finish().folder(tmp_path / "env_x", files))
    assert outcome(found, "delivered").value == 1
    assert outcome(found, "task_performance").value == 0.75
    assert outcome(found, "task_performance").data == {"task_completion": 1, "commonsense_pass_rate": 0.5}
    assert outcome(found, "result").text == "Plan"


def test_a_related_work_whose_evaluation_found_no_score_has_none_and_says_why(tmp_path: Path) -> None:
    public = {"related_works_editor": "Text [1]", "library": [{"title": "x", "link": "y", "notes": ""}]}
    files = performance("Text [[1](y)]", pure_text="Text [1]", performance_rating="")
    found = read(Log(public=public).finish().folder(tmp_path / "env_related_work_3", files))
    assert outcome(found, "delivered").value == 1
    assert outcome(found, "task_performance").value is None
    assert outcome(found, "task_performance").reason == "its evaluation found no score"
    assert outcome(found, "result").text == "Text [[1](y)]"
    assert (found.task, found.instance) == ("related_work", "3")


@pytest.mark.parametrize("rating", ["NaN", "1e999", "true", "null", "1" + "0" * 400])
def test_a_rating_that_is_no_number_is_none_with_the_reason(tmp_path: Path, rating: str) -> None:
    text = '{"outcome": "Plan", "task_completion": 1, "performance_rating": ' + rating + "}"
    found = read(
        Log().write(AGENT, "Plan").finish().folder(tmp_path / "env_x", {"task_performance.json": text})
    )
    assert outcome(found, "delivered").value == 1
    assert outcome(found, "task_performance").value is None
    assert outcome(found, "task_performance").reason == "the log has no performance rating"


def test_lesson_planning_has_no_flag_for_delivery_and_that_is_said(tmp_path: Path) -> None:
    files = {"task_performance.json": {"outcome": "A lesson", "query": "x"}}
    log = Log(public={"lesson_editor": "A lesson"}).finish()
    found = read(log.folder(tmp_path / "env_lesson_planning_4", files))
    assert (found.task, found.instance) == ("lesson_planning", "4")
    assert outcome(found, "delivered").value is None
    assert outcome(found, "delivered").reason == "this task has no flag for delivery"


STALE = "stale: its result is not the log's last state, it belongs to an earlier run"
INFO = {"lm": "a-model", "token_usage": {"prompt_tokens": 1, "completion_tokens": 1}}


def test_an_evaluation_of_an_earlier_run_in_the_folder_is_set_aside_with_what_was_written_after_it(
    tmp_path: Path,
) -> None:
    files = performance("Old plan", performance_rating=1) | {f"{AGENT}/info.json": INFO}
    (found,), wrong = pieces(Log().write(AGENT, "New plan").folder(tmp_path / "env_x", files))
    assert [(w.source.rpartition("env_x/")[2], w.reason) for w in wrong] == [
        ("task_performance.json", STALE),
        (f"{AGENT}/info.json", "stale: task_performance.json, which is written before it, is"),
    ]
    assert outcome(found, "end_reason").text == "unfinished"
    assert outcome(found, "task_performance").value is None
    assert found.agent_model is None


@pytest.mark.parametrize(
    ("last", "known"), [("{broken\n", True), ('{"role": 3}\n', True), ('{"role": "agent', False)]
)
def test_a_last_record_that_cannot_be_read_says_nothing_against_the_evaluation_unless_it_is_cut_off(
    tmp_path: Path, last: str, known: bool
) -> None:
    """What the record did is not known, so that the state before it may not be the last one."""
    files = performance("New plan", performance_rating=0.5) | {f"{AGENT}/info.json": INFO}
    folder = Log().write(AGENT, "Old plan").folder(tmp_path / "env_x", files)
    with (folder / "event_log.jsonl").open("a") as log:
        log.write(last)
    (found,), wrong = pieces(folder)
    assert (outcome(found, "task_performance").value, found.agent_model) == (
        (0.5, "a-model") if known else (None, None)
    )
    assert outcome(found, "delivered").value == (1 if known else None)
    assert (STALE in [item.reason for item in wrong]) is not known


@pytest.mark.parametrize("older", [-1e6, -61, 0, 61, 1e6])
def test_what_belongs_together_is_told_by_content_whatever_the_clock_says(
    tmp_path: Path, older: float
) -> None:
    files = performance("Plan", performance_rating=1) | {f"{AGENT}/info.json": INFO}
    folder = Log().write(AGENT, "Plan").folder(tmp_path / "env_x", files)
    for name in files:
        age(folder / name, older)
    found = read(folder)
    assert (outcome(found, "task_performance").value, found.agent_model) == (1, "a-model")


@pytest.mark.parametrize(
    ("public", "evaluation", "stale"),
    [
        ({"travel_plan_editor": ""}, {"outcome": ""}, False),
        ({"travel_plan_editor": ""}, {"outcome": "Plan"}, True),
        ({"travel_plan_editor": "Plan"}, {"outcome": ""}, True),
        ({"result_editor": "0.4"}, {"outcome": "0.4"}, False),
        ({"related_works_editor": "A [1]"}, {"pure_text": "A [1]", "outcome": "A [[1](l)]"}, False),
        ({"related_works_editor": "A [1]"}, {"outcome": "A [[1](l)]"}, False),
        ({"related_works_editor": "B [1]"}, {"pure_text": "A [1]"}, True),
        ({"lesson_editor": "L"}, {"outcome": "M"}, False),
    ],
)
def test_an_evaluation_is_another_runs_where_its_result_is_another(
    tmp_path: Path, public: dict[str, Any], evaluation: dict[str, Any], stale: bool
) -> None:
    files = {"task_performance.json": {"task_completion": 1, **evaluation}}
    _, wrong = pieces(Log(public=public).finish().folder(tmp_path / "env_x", files))
    assert [w.reason for w in wrong] == [STALE] * stale


def test_the_step_limit_may_be_given_and_stands_before_the_configuration(tmp_path: Path) -> None:
    folder = talked(12).folder(tmp_path / "env_x", performance())
    assert outcome(read(folder), "end_reason").text == "time_out"
    given = outcome(read(folder, max_steps=12), "end_reason")
    assert (given.text, given.data) == ("step_limit", {"inferred": "12 steps of 12 (--max-steps)"})
    (tmp_path / "env_x_config.toml").write_text("[env_args]\nmax_steps = 40\n")
    configured = outcome(read(folder), "end_reason")
    assert configured.data == {"inferred": "no FINISH, and 12 steps of 40 (the configuration beside it)"}
    assert outcome(read(folder, max_steps=12), "end_reason").text == "step_limit"


def test_every_reason_but_a_finish_says_what_it_is_inferred_from(tmp_path: Path) -> None:
    def said(log: Log, name: str, files: dict[str, Any] | None = None) -> Any:
        found = read(log.folder(tmp_path / name, files))
        why = outcome(found, "end_reason").inferred
        assert trajectories.document(found)["inferred"] == ({"end_reason": why} if why else {})
        return outcome(found, "end_reason").data

    assumed = "assumed: no configuration beside it says otherwise, nor --max-steps"
    assert said(Log().finish(), "env_a") is None
    assert said(talked(30), "env_b") == {"inferred": f"30 steps of 30 ({assumed})"}
    assert said(talked(2), "env_c", performance()) == {
        "inferred": f"no FINISH, and 2 steps of 30 ({assumed})"
    }
    assert said(talked(2), "env_d") == {"inferred": "no FINISH, and no task_performance.json of this run"}


def test_models_and_tokens_of_agent_and_simulated_user_are_read(tmp_path: Path) -> None:
    info = {"lm": "agent-model", "token_usage": {"prompt_tokens": 100, "completion_tokens": 9}}
    folder = Log().folder(tmp_path / "env_x", {f"{AGENT}/info.json": info, **simulated()})
    found = read(folder)
    agent, user = found.participant(AGENT), found.participant(USER)
    assert (agent.kind, agent.model, agent.simulated) == ("agent", "agent-model", False)
    assert agent.tokens == {"prompt_tokens": 100, "completion_tokens": 9}
    assert (user.kind, user.model, user.simulated) == ("human", "user-model", True)
    assert user.tokens == {"prompt_tokens": 140, "completion_tokens": 14}
    assert (found.agent, found.agent_model, found.setting) == (AGENT, "agent-model", "simulated")
    assert found.participant("environment").kind == "environment"
    assert [p.name for p in found.team()] == [AGENT, USER]


@pytest.mark.parametrize("content", ["{", "[]", "null", '{"lm": 7, "token_usage": []}', ""])
def test_a_broken_file_beside_the_log_costs_only_itself(tmp_path: Path, content: str) -> None:
    files = {f"{AGENT}/info.json": content, "task_performance.json": content}
    (found,), _ = pieces(Log().say(AGENT, "One").folder(tmp_path / "env_x", files))
    assert found.agent_model is None
    assert found.events[-1].text == "One"


@pytest.mark.parametrize("content", ['{"task_completion": 1, "perf', "[]", ""])
def test_an_evaluation_that_cannot_be_read_still_says_that_its_session_ended(
    tmp_path: Path, content: str
) -> None:
    log = Log().say(AGENT, "One").write(AGENT, "Plan")
    (found,), _ = pieces(log.folder(tmp_path / "env_x", {"task_performance.json": content}))
    said = {outcome.name: outcome for outcome in found.outcomes}
    assert (said["end_reason"].text, said["delivered"].value) == ("time_out", 1)
    assert said["task_performance"].reason == "nothing can be read of its task_performance.json"


@pytest.mark.parametrize("name", ["../elsewhere", "a" * 5000, "with\x00nul"])
def test_a_role_never_leads_out_of_the_session_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "info.json").write_text('{"lm": "secret"}')
    found = read(Log(team=(name, USER)).say(name, "One").folder(tmp_path / "env_x"))
    assert found.agent_model is None
    assert found.events[-1].actor == name


HIDDEN = {"Preferences and constraints to stick to": ["Budget of $3,400"]}


def test_what_only_the_simulated_human_was_told_is_kept_apart(tmp_path: Path) -> None:
    found = read(Log().say(USER, "Hi").folder(tmp_path / "env_x", simulated(HIDDEN)))
    assert found.hidden == HIDDEN
    assert "3,400" not in found.model_copy(update={"hidden": None}).model_dump_json()


@pytest.mark.parametrize("told", ["no object", "{broken", "[" * 3, '{"a":' * 100_000])
def test_hidden_information_that_cannot_be_read_costs_only_itself(tmp_path: Path, told: str) -> None:
    files = simulated()
    mark = "Additional information that you know:\n"
    files["simulated_user/llm_call_history.jsonl"] = '{"prompt": ' + _text(mark + told) + "}\n"
    found = read(Log().say(USER, "Hi").folder(tmp_path / "env_x", files))
    assert found.hidden is None


def _text(value: str) -> str:
    import json

    return json.dumps(value)


def test_a_fully_autonomous_run_has_no_human_and_its_collaborative_acts_failed(tmp_path: Path) -> None:
    log = Log(team=(AGENT,), query=None)
    invalid = "'WAIT_TEAMMATE_CONTINUE()' invalid. Please strictly follow the action space specifications."
    log.act(AGENT, "WAIT_TEAMMATE_CONTINUE()", invalid)
    log.act(AGENT, "SEND_TEAMMATE_MESSAGE(message=Anyone?)", invalid).write(AGENT, "Plan").finish()
    found = read(log.folder(tmp_path / "env_x"))
    assert [p.name for p in found.team()] == [AGENT]
    assert [(e.kind, e.status) for e in found.events[1:]] == [
        ("action", "failed"),
        ("action", "failed"),
        ("action", "succeeded"),
        ("finish", "succeeded"),
    ]
    assert found.setting is None


def released(path: Path, **fields: Any) -> Trajectory:
    log = Log(team=("agent", "user_7")).say("agent", "Hello").write("agent", "Plan")
    return read(log.released(path / "session-1.json", **fields))


def test_a_released_trajectory_brings_its_peoples_ratings(tmp_path: Path) -> None:
    found = released(
        tmp_path / "cogym-real",
        modelName="gpt-4o",
        task="travel_planning",
        query="Help me",
        outcomeRating=4,
        agentRating=5,
        communicationRating=2,
        agentFeedback="It asked too much.",
    )
    assert {o.name: o.value for o in found.outcomes if o.value is not None} == {
        "delivered": 1,
        "outcome_rating": 4,
        "satisfaction": 5,
        "communication_rating": 2,
    }
    assert outcome(found, "agent_feedback").text == "It asked too much."
    assert outcome(found, "end_reason").text == "unknown"
    assert (found.native_id, found.setting, found.task) == ("session-1", "real", "travel_planning")
    assert (found.agent_model, found.participant("agent").model) == ("gpt-4o", "gpt-4o")
    assert found.condition == "cogym-real"


def test_a_released_trajectory_lacks_the_ratings_that_were_not_given(tmp_path: Path) -> None:
    found = released(tmp_path, modelName="gpt-4o", outcomeRating=None, agentRating=float("nan"))
    assert {o.name for o in found.outcomes} == {"end_reason", "delivered", "task_performance", "result"}
    assert found.task == "travel_planning"


@pytest.mark.parametrize(
    ("given", "value"), [("4,5", 4.5), (" 4 ", 4), ("4/5", None), ([4], None), (True, None), ("true", None)]
)
def test_a_persons_rating_that_is_no_number_is_none_with_the_reason(
    tmp_path: Path, given: object, value: float | None
) -> None:
    rated = outcome(released(tmp_path, modelName="gpt-4o", outcomeRating=given), "outcome_rating")
    reason = None if value else f"outcomeRating must be a number, got {given!r}"
    assert (rated.value, rated.reason) == (value, reason)


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("[]", "no record of a session in it"),
        ("null", "event_log must be a list of records"),
        ('"5"', "event_log must be a list of records"),
    ],
)
def test_a_released_file_without_a_log_says_so(tmp_path: Path, log: str, reason: str) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"modelName": "gpt-4o", "event_log": ' + log + "}")
    found, (wrong,) = pieces(path)
    assert (found, wrong.source, wrong.reason) == ([], str(path), reason)


def test_a_broken_record_of_a_released_file_is_named_by_its_index(tmp_path: Path) -> None:
    log = Log(team=("agent", "user_7")).say("agent", "Hello").say("user_7", "Hi")
    log.records[1]["role"] = None
    (found,), (wrong,) = pieces(log.released(tmp_path / "x.json", modelName="gpt-4o"))
    assert wrong.source.endswith("x.json: event_log[1]")
    assert found.events[-1].text == "Hi"


def test_several_released_trajectories_may_lie_in_one_file_as_lines_or_as_a_list(tmp_path: Path) -> None:
    logs = [Log(team=("agent", "user_7")).say("agent", text).records for text in ("Hello", "Good day")]
    rows = [{"modelName": "gpt-4o", "event_log": log} for log in logs]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "all.json").write_text(json.dumps(rows))
    for path in (tmp_path / "all.jsonl", tmp_path / "all.json"):
        assert reader.recognises(path)
        found, wrong = pieces(path)
        assert ([t.native_id for t in found], wrong) == (["all/1", "all/2"], [])
        assert [t.events[-1].text for t in found] == ["Hello", "Good day"]


def test_a_broken_line_among_released_trajectories_costs_only_itself(tmp_path: Path) -> None:
    row = json.dumps({"modelName": "gpt-4o", "event_log": Log(team=("agent", "user_7")).records})
    path = tmp_path / "all.jsonl"
    path.write_text(f'{row}\n{{"modelName": "gpt-4o", "event_log": 5}}\n{row[:-9]}')
    found, wrong = pieces(path)
    assert [t.native_id for t in found] == ["all/1"]
    assert [(one.line, one.reason[:9]) for one in wrong] == [(2, "event_log"), (3, "not JSON:")]


def test_a_released_log_may_be_the_text_of_one_and_a_rating_the_text_of_a_number(tmp_path: Path) -> None:
    log = json.dumps(Log(team=("agent", "user_7")).say("agent", "Hello").records)
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"modelName": "gpt-4o", "outcomeRating": "4", "event_log": log}))
    found = read(path)
    assert (found.events[-1].text, outcome(found, "outcome_rating").value) == ("Hello", 4)


def test_a_released_log_may_be_the_text_of_its_lines_and_a_broken_one_costs_itself(tmp_path: Path) -> None:
    records = Log(team=("agent", "user_7")).say("agent", "Hello").records
    lines = [json.dumps(record) for record in records]
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"modelName": "gpt-4o", "event_log": "\n".join([*lines, '{"role": "ag'])}))
    (found,), (wrong,) = pieces(path)
    assert found.events[-1].text == "Hello"
    assert wrong.reason.startswith("not JSON: ")
    path.write_text(json.dumps({"modelName": "gpt-4o", "event_log": records}))
    assert read(path).id == found.id


def test_a_completion_that_is_no_number_delivers_nothing(tmp_path: Path) -> None:
    files = {"task_performance.json": '{"outcome": "", "task_completion": NaN}'}
    assert outcome(read(Log().finish().folder(tmp_path / "env_x", files)), "delivered").value == 0


@pytest.mark.parametrize(
    ("said", "value"),
    [
        *(("0", 0), ("false", 0), ("True", 1), (True, 1), ("1.0", 1), ("no", None), ("nan", None)),
        *((1.0, 1), (0.5, None), (-1, None), (2, None), ("0.5", None)),
    ],
)
def test_completion_may_be_written_as_a_text_and_nothing_between_or_beyond_is_a_delivery(
    tmp_path: Path, said: object, value: float | None
) -> None:
    folder = Log().write(AGENT, "Plan").finish().folder(tmp_path / "env_x", performance("Plan"))
    (folder / "task_performance.json").write_text(json.dumps({"outcome": "Plan", "task_completion": said}))
    delivered = outcome(read(folder), "delivered")
    assert delivered.value == value
    assert delivered.reason == (
        None if value is not None else f"task_completion must be 0 or 1, got {said!r}"
    )
