"""Which sessions are the same, what they are called, and where they may lie."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import polars
import pytest

from coaudit.pipeline.ingest.discover import discover
from coaudit.pipeline.systems.cogym import reader
from tests.pipeline.systems.cogym.folders import (
    AGENT,
    BEGAN,
    QUERY,
    USER,
    Log,
    outcome,
    performance,
    pieces,
    read,
    simulated,
)

NAME = "env_travel_planning_0"


def test_an_id_depends_neither_on_the_place_nor_on_what_was_appended_later(tmp_path: Path) -> None:
    log = Log().say(AGENT, "One")
    first = read(log.folder(tmp_path / "here" / NAME))
    grown = read(log.say(USER, "Two").finish().folder(tmp_path / "there" / "deeper" / NAME))
    assert first.id == grown.id
    assert len(grown.events) == len(first.events) + 2


def test_one_folder_name_under_two_conditions_is_two_sessions(tmp_path: Path) -> None:
    first = read(Log().folder(tmp_path / "planning" / NAME))
    second = read(Log(began=BEGAN + timedelta(seconds=1)).folder(tmp_path / "baseline" / NAME))
    assert first.id != second.id
    assert (first.native_id, first.condition) == (NAME, "planning")
    assert (second.native_id, second.condition) == (NAME, "baseline")


def test_logs_older_than_the_start_record_have_a_stable_id_too(tmp_path: Path) -> None:
    log = Log(start=False).say(AGENT, "One")
    first = read(log.folder(tmp_path / "a" / NAME))
    other = read(Log(start=False).say(AGENT, "Another").folder(tmp_path / "c" / NAME))
    assert read(log.finish().folder(tmp_path / "b" / NAME)).id == first.id != other.id


@pytest.mark.parametrize("task", ["travel_planning", "related_work", "tabular_analysis", "lesson_planning"])
def test_the_layout_of_the_experiment_scripts_gives_task_instance_and_condition(
    tmp_path: Path, task: str
) -> None:
    folder = tmp_path / "workdir" / task / "with-planning" / "results" / f"env_{task}_12"
    found = read(Log().folder(folder))
    assert (found.task, found.instance, found.condition) == (task, "12", "with-planning")


def test_results_are_told_apart_by_the_folder_above_where_the_one_of_the_task_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "model-a" / "results" / "env_travel_planning_3"
    assert read(Log().folder(folder)).condition == "model-a"


def test_a_folder_that_merely_is_called_results_is_the_condition(tmp_path: Path) -> None:
    assert read(Log().folder(tmp_path / "collab" / "results" / "env_x")).condition == "results"


@pytest.mark.parametrize(
    ("public", "task"),
    [
        ({"travel_plan_editor": ""}, "travel_planning"),
        ({"related_works_editor": "", "library": []}, "related_work"),
        ({"result_editor": "", "jupyter_history": ""}, "tabular_analysis"),
        ({}, None),
    ],
)
def test_the_task_of_a_folder_without_one_in_its_name_shows_in_the_observations(
    tmp_path: Path, public: dict[str, object], task: str | None
) -> None:
    found = read(Log(public=dict(public)).folder(tmp_path / "env_0a9d73e1-b86c"))
    assert (found.task, found.instance) == (task, None)


def test_the_task_is_taken_from_the_configuration_where_nothing_else_tells_it(tmp_path: Path) -> None:
    (tmp_path / "env_77_config.toml").write_text('env_class = "lit_survey"\n')
    assert read(Log(public={}).folder(tmp_path / "env_77")).task == "related_work"


def test_people_of_the_graphical_server_are_real_and_a_simulated_users_folder_says_simulated(
    tmp_path: Path,
) -> None:
    team = ("agent", "user_local-user")
    assert read(Log(team=team).folder(tmp_path / "env_a")).setting == "real"
    assert read(Log().folder(tmp_path / "env_b", simulated())).setting == "simulated"
    assert read(Log().folder(tmp_path / "env_c")).setting is None


def test_options_fill_in_what_the_log_does_not_say(tmp_path: Path) -> None:
    folder = Log().folder(tmp_path / "arm" / NAME)
    found = read(folder, setting="real", condition="pilot", agent="two-stage", tags={"lab": "a", "week": "3"})
    assert (found.setting, found.condition, found.agent) == ("real", "pilot", "two-stage")
    assert found.tags == {"lab": "a", "week": "3"}
    assert found.id == read(folder).id


def test_the_log_itself_may_be_given(tmp_path: Path) -> None:
    folder = Log().say(AGENT, "One").folder(tmp_path / "arm" / NAME, simulated())
    assert read(folder / "event_log.jsonl") == read(folder)


def test_the_id_of_a_released_file_is_that_of_its_log(tmp_path: Path) -> None:
    log = Log(team=("agent", "user_7")).say("agent", "Hello")
    first = read(log.released(tmp_path / "a" / "one.json", modelName="gpt-4o"))
    again = read(log.released(tmp_path / "b" / "two.json", modelName="gpt-4o", outcomeRating=3))
    other = read(log.say("user_7", "Hi").released(tmp_path / "c" / "one.json", modelName="gpt-4o"))
    assert first.id == again.id != other.id
    assert outcome(again, "outcome_rating").value == 3


def test_a_released_file_is_recognised_wherever_its_keys_stand(tmp_path: Path) -> None:
    log = Log(team=("agent", "user_7"))
    for number in range(30):
        log.say("agent", "x" * 100_000 if number == 0 else "y")
    path = tmp_path / "long.json"
    body = "[" + ", ".join(line.strip() for line in log.lines()) + "]"
    path.write_text('{"event_log": ' + body + ', "modelName": "gpt-4o"}')
    assert path.stat().st_size > 2 << 20
    assert reader.recognises(path)
    other = tmp_path / "other.json"
    other.write_text('{"event_log": [], "model": "gpt-4o"}')
    assert not reader.recognises(other)


@pytest.mark.parametrize(
    "extension, separator", [(".parquet", ""), (".csv", ","), (".csv", ";"), (".tsv", "\t")]
)
def test_a_released_trajectory_may_be_the_row_of_a_table(
    tmp_path: Path, extension: str, separator: str
) -> None:
    """Drafts of mappings lost all words of such tables."""
    log = Log(team=("agent", "user_7")).say("agent", "Hello")
    single = read(log.released(tmp_path / "a" / "one.json", modelName="gpt-4o", outcomeRating=3))
    row = {"modelName": "gpt-4o", "outcomeRating": 3, "event_log": json.dumps(log.records)}
    path = tmp_path / f"train{extension}"
    table = polars.DataFrame([row, {**row, "event_log": "[]"}])
    table.write_csv(path, separator=separator) if separator else table.write_parquet(path)
    assert list(discover(path)) == [(path, "cogym")]
    (found,), (wrong,) = pieces(path)
    assert (found.id, found.events, found.agent_model) == (single.id, single.events, "gpt-4o")
    assert outcome(found, "outcome_rating").value == 3
    assert wrong.reason == "no record of a session in it"


def test_a_column_of_records_is_refused(tmp_path: Path) -> None:
    """Each has the fields of all: a session whose result was null in them counted as not delivered."""
    log = Log(team=("agent", "user_7")).say("agent", "Hello")
    path = tmp_path / "train.parquet"
    records = [{key: record[key] for key in ("role", "action")} for record in log.records]
    polars.DataFrame([{"modelName": "gpt-4o", "event_log": records}]).write_parquet(path)
    nothing, (wrong,) = pieces(path)
    assert not nothing and wrong.reason.startswith("event_log must be the text of a JSON list")


def test_sessions_are_found_below_any_folder_and_evaluation_files_are_none(tmp_path: Path) -> None:
    places = [tmp_path / "a" / NAME, tmp_path / "a" / "b" / "results" / NAME]
    for place in places:
        Log().folder(place, simulated())
    released = Log(team=("agent", "user_7")).released(tmp_path / "c" / "real.json", modelName="gpt-4o")
    (tmp_path / "a" / "aggregated_result.json").write_text('{"delivery_rate": 1}')
    (tmp_path / "a" / "initiative_analysis_results.json").write_text("{}")
    assert list(discover(tmp_path)) == [(place, "cogym") for place in (places[1], places[0], released)]


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    Log().folder(tmp_path / "logs" / NAME)
    (tmp_path / "logs" / "again").symlink_to(tmp_path / "logs")
    assert [path for path, _ in discover(tmp_path / "logs")] == [tmp_path / "logs" / NAME]


def test_each_start_in_a_log_begins_a_run_and_the_files_beside_it_are_the_last_ones(tmp_path: Path) -> None:
    first = Log().say(AGENT, "One?").write(AGENT, "Ulm").finish()
    second = Log(began=BEGAN + timedelta(days=1)).say(USER, "Two").write(AGENT, "Bonn").finish()
    alone = [read(log.folder(tmp_path / side / NAME)) for side, log in (("a", first), ("b", second))]
    both = Log()
    both.records = [*first.records, *second.records]
    files = performance("Bonn", performance_rating=0.5)
    runs, wrong = pieces(both.folder(tmp_path / "both" / NAME, files | simulated()))
    assert not wrong
    assert [(one.id, one.events) for one in runs] == [(one.id, one.events) for one in alone]
    assert [outcome(one, "task_performance").value for one in runs] == [None, 0.5]
    assert [outcome(one, "delivered").value for one in runs] == [1, 1]
    assert [one.setting for one in runs] == [None, "simulated"]


def test_a_start_whose_chat_goes_on_resumes_the_session(tmp_path: Path) -> None:
    log = Log().say(AGENT, "One?").act(AGENT, "SEARCH()")
    before = read(log.folder(tmp_path / "a" / NAME))
    begin = log.records[0]["action"]
    resumed = log.act("environment", begin).say(USER, "Two").finish()
    (one,), wrong = pieces(resumed.folder(tmp_path / "b" / NAME))
    assert not wrong
    assert (one.id, one.events[: len(before.events)]) == (before.id, before.events)
    assert [event.seq for event in one.events] == list(range(7))
    assert [event.text for event in one.events if event.actor == USER] == [QUERY, "Two"]


@pytest.mark.parametrize("person", ["human", "human_2", "user_ada"])
def test_who_is_called_human_or_user_is_a_person(tmp_path: Path, person: str) -> None:
    log = Log(team=(person, AGENT)).say(AGENT, "When?").say(person, "In May.").finish()
    session = read(log.folder(tmp_path / NAME, simulated()))
    people = [(p.name, p.kind, p.simulated) for p in session.team()]
    assert people == [(person, "human", True), (AGENT, "agent", False)]
    assert session.agent == AGENT
    # Co-Gym asks its query in the name of a `user` alone.
    assert (session.events[1].text == QUERY) == ("user" in person)
