"""What each line of a Co-Gym log becomes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coaudit.pipeline.systems.cogym.actions import parse
from coaudit.schemas import Event, Trajectory
from tests.pipeline.systems.cogym.folders import AGENT, IDLE, QUERY, USER, Log, pieces, read


def session(folder: Path, log: Log) -> Trajectory:
    return read(log.folder(folder / "arm" / "env_travel_planning_0"))


def last(folder: Path, log: Log) -> Event:
    return session(folder, log).events[-1]


@pytest.mark.parametrize(
    ("description", "query"),
    [
        ("Plan, with (all) the parentheses, commas, and = signs.", "Go to Rome (Italy), please"),
        ("Never write ', query=' yourself, query=none.", "Two days"),
        ("Several\nlines\n\nof text.", "One\ntwo)"),
        ("Plain", "ends with a parenthesis)"),
        ("Plain", ""),
    ],
)
def test_the_query_of_a_start_begins_at_the_last_mark_and_loses_one_parenthesis(
    tmp_path: Path, description: str, query: str
) -> None:
    start, opening = session(tmp_path, Log(description=description, query=query)).events
    assert (start.seq, start.actor, start.kind) == (0, "environment", "start")
    assert start.text == description
    assert start.action and start.action.arguments == {"task_description": description, "query": query}
    assert (opening.seq, opening.actor, opening.kind, opening.text) == (1, USER, "message", query)
    assert opening.status is None


def test_an_environment_without_a_query_has_no_opening_message(tmp_path: Path) -> None:
    found = session(tmp_path, Log(query=None).say(AGENT, "Hello"))
    assert [(e.seq, e.kind) for e in found.events] == [(0, "start"), (1, "message")]
    assert found.events[0].action and "query" not in found.events[0].action.arguments


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        '"Hello there."',
        "two\nlines\n",
        "smile :) and (more)",
        ")",
        'message=SEND_TEAMMATE_MESSAGE(message=no), query="x"',
        "Grüße, 北京 \u0000 \u202e",
        "FINISH()",
        "\\n is two characters",
    ],
)
def test_a_message_is_kept_byte_for_byte(tmp_path: Path, text: str) -> None:
    found = last(tmp_path, Log().say(AGENT, text))
    assert (found.kind, found.text, found.status, found.action) == ("message", text, "succeeded", None)


def test_seq_is_the_place_in_the_log_with_the_opening_query_as_number_one(tmp_path: Path) -> None:
    log = Log().say(AGENT, "One").write(AGENT, "Plan").say(USER, "Two").finish()
    found = session(tmp_path, log)
    assert [(e.seq, e.kind) for e in found.events] == [
        (0, "start"),
        (1, "message"),
        (2, "message"),
        (3, "action"),
        (4, "message"),
        (5, "finish"),
    ]
    assert found.events[0].time == "2026-11-21T06:30:00"
    assert found.events[2].time == "2026-11-21T06:30:01"


def test_a_confirmation_is_asked_for_and_answered_and_its_action_belongs_to_who_asked(tmp_path: Path) -> None:
    pending = "EDITOR_UPDATE(text=Day 1 (Rome), request_id=x)"
    log = Log()
    for answer in ("REJECT", "ACCEPT"):
        asked = f"REQUEST_TEAMMATE_CONFIRM(request_id=editor_update, pending_action={pending})"
        log.collaborate(AGENT, asked).collaborate(USER, f"{answer}_CONFIRMATION(request_id=editor_update)")
    log.act(AGENT, pending, travel_plan_editor="Day 1 (Rome), request_id=x")
    events = session(tmp_path, log).events[2:]
    assert [(e.actor, e.kind) for e in events] == [
        (AGENT, "confirm_request"),
        (USER, "confirm_reject"),
        (AGENT, "confirm_request"),
        (USER, "confirm_accept"),
        (AGENT, "action"),
    ]
    assert events[0].action and events[0].action.arguments == {
        "request_id": "editor_update",
        "pending_action": pending,
    }
    assert events[3].action and events[3].action.arguments == {"request_id": "editor_update"}
    assert events[4].action and events[4].action.arguments == {"text": "Day 1 (Rome), request_id=x"}


def test_an_accepted_action_that_failed_is_a_failed_one_although_co_gym_logs_a_success(
    tmp_path: Path,
) -> None:
    log = Log().collaborate(USER, "ACCEPT_CONFIRMATION(request_id=editor_update)")
    log.hear("environment", f"[{AGENT}] takes an action but fails: no such city")
    log.act(AGENT, "EDITOR_UPDATE(text=x)")
    found = last(tmp_path, log)
    assert (found.status, found.error, found.notices) == ("failed", "no such city", ())


def test_a_status_that_co_gym_does_not_have_says_nothing_of_success_or_failure(tmp_path: Path) -> None:
    log = Log().act(AGENT, "EDITOR_UPDATE(text=x)")
    log.records[-1]["action_status"] = "pending"
    found = last(tmp_path, log)
    assert (found.kind, found.status, found.error) == ("action", None, None)


@pytest.mark.parametrize("act", ["PUT_AGENT_ASLEEP()", "WAKE_AGENT_UP()"])
def test_putting_the_agent_asleep_and_waking_it_are_control_events(tmp_path: Path, act: str) -> None:
    assert last(tmp_path, Log().collaborate(USER, act)).kind == "control"


def test_a_failed_action_keeps_its_error_and_the_chat_line_about_it_is_no_notice(tmp_path: Path) -> None:
    error = "'BOOK(name=Inn (old))' invalid. Please strictly follow the action space specifications."
    found = last(tmp_path, Log().act(AGENT, "BOOK(name=Inn (old))", error))
    assert (found.kind, found.status, found.error, found.notices) == ("action", "failed", error, ())
    assert found.action and (found.action.name, found.action.arguments) == ("BOOK", {"name": "Inn (old)"})


def test_a_failure_without_an_error_text_is_still_a_failure(tmp_path: Path) -> None:
    log = Log().act(AGENT, "SCREENSHOT()")
    log.records[-1]["action_status"] = "failed"
    found = last(tmp_path, log)
    assert (found.status, found.error) == ("failed", None)


def test_idle_reminders_are_notices_of_the_event_after_them(tmp_path: Path) -> None:
    log = Log().hear("environment", IDLE).say(AGENT, "Sorry").hear("environment", IDLE)
    log.hear("environment", IDLE).say(USER, "Fine")
    sorry, fine = session(tmp_path, log).events[2:]
    assert [notice.text for notice in sorry.notices] == [IDLE]
    assert [notice.text for notice in fine.notices] == [IDLE, IDLE]
    assert fine.notices[0].time == "2026-11-21T06:30:02"


def test_states_are_kept_once_public_and_private_apart(tmp_path: Path) -> None:
    log = Log(private={AGENT: {"search_output": {"query": "x", "output": "y"}}})
    log.say(AGENT, "One").say(USER, "Two").write(AGENT, "Plan").say(USER, "Three")
    found = session(tmp_path, log)
    first, written = found.events[2], found.events[-1]
    assert set(first.states) == {"public", AGENT}
    assert first.states["public"] != written.states["public"]
    assert first.states[AGENT] == written.states[AGENT]
    assert sorted(map(str, found.states.values())) == [
        "{'search_output': {'query': 'x', 'output': 'y'}}",
        "{'travel_plan_editor': ''}",
        "{'travel_plan_editor': 'Plan'}",
    ]


@pytest.mark.parametrize(
    ("logged", "name", "arguments"),
    [
        ("EDITOR_UPDATE(text=a)", "EDITOR_UPDATE", {"text": "a"}),
        ("FLIGHT_SEARCH(origin=A, destination=B, date=C)", "FLIGHT_SEARCH", "origin destination date"),
        (
            "DISTANCE_MATRIX(origins=A, destinations=B, mode=C)",
            "DISTANCE_MATRIX",
            "origins destinations mode",
        ),
        ("DISTANCE_MATRIX(origins=A, destinations=B)", "DISTANCE_MATRIX", "origins destinations"),
        ("BUSINESS_SEARCH(term=A, location=B, limit=C)", "BUSINESS_SEARCH", "term location limit"),
        ("ADD_PAPER_TO_LIBRARY(titles=A, links=B)", "ADD_PAPER_TO_LIBRARY", "titles links"),
        ("CLICK(x=A, y=B, button=C)", "CLICK", "x y button"),
        ("CLICK(x=A, y=B)", "CLICK", "x y"),
    ],
)
def test_an_action_string_has_a_name_and_raw_arguments(
    logged: str, name: str, arguments: dict[str, str] | str
) -> None:
    expected = dict(zip(arguments.split(), "ABC", strict=False)) if isinstance(arguments, str) else arguments
    found = parse(logged)
    assert (found.name, found.arguments, found.raw) == (name, expected, None)


@pytest.mark.parametrize(
    "logged",
    [
        "  EDITOR_UPDATE(text=Day 1 \\(Rome))",
        "Action: EDITOR_UPDATE(text=Day 1 (Rome))",
        "EDITOR_UPDATE(text=Day 1 (Rome))\nThought: done (I think)",
        "EDITOR_UPDATE(text=Day 1 (Rome)) ",
    ],
)
def test_a_sloppy_action_is_understood_as_the_environment_understands_it_and_kept_as_it_was(
    logged: str,
) -> None:
    found = parse(logged)
    assert (found.name, found.arguments, found.raw) == ("EDITOR_UPDATE", {"text": "Day 1 (Rome)"}, logged)


@pytest.mark.parametrize(
    ("logged", "name", "arguments", "raw"),
    [
        ("BOOK()", "BOOK", {}, False),
        ("BOOK(the inn)", "BOOK", {}, True),
        ("BOOK(name=Inn, nights=2)", "BOOK", {"name": "Inn", "nights": "2"}, False),
        ("FINISH(now)", "FINISH", {}, True),
        ("EDITOR_UPDATE(", "EDITOR_UPDATE", {}, True),
        ("EDITOR_UPDATE(txt=a)", "EDITOR_UPDATE", {"txt": "a"}, False),
    ],
)
def test_an_action_that_co_gym_does_not_know_keeps_its_name_and_what_can_be_told_of_it(
    logged: str, name: str, arguments: dict[str, str], raw: bool
) -> None:
    found = parse(logged)
    assert (found.name, found.arguments, found.raw) == (name, arguments, logged if raw else None)


@pytest.mark.parametrize("logged", ["", "I will wait.", "()", "42", "="])
def test_a_string_without_a_call_is_kept_as_it_was(logged: str) -> None:
    assert (parse(logged).name, parse(logged).raw) == ("UNPARSED", logged)


def test_a_message_with_trailing_space_went_to_the_environment_and_is_no_message(tmp_path: Path) -> None:
    logged = "SEND_TEAMMATE_MESSAGE(message=Hi)\n"
    found = last(tmp_path, Log().act(AGENT, logged, "invalid"))
    assert (found.kind, found.status) == ("action", "failed")
    assert found.action and found.action.raw == logged


def test_a_log_older_than_the_start_record_begins_with_the_query(tmp_path: Path) -> None:
    log = Log(start=False).say(AGENT, "Hello").say(USER, "Hi")
    found = session(tmp_path, log)
    assert [(e.seq, e.actor, e.text) for e in found.events] == [
        (0, USER, QUERY),
        (1, AGENT, "Hello"),
        (2, USER, "Hi"),
    ]


def test_a_record_that_cannot_be_read_keeps_its_number_free(tmp_path: Path) -> None:
    log = Log().say(AGENT, "One").say(AGENT, "Two").say(AGENT, "Three")
    whole = [e.seq for e in session(tmp_path, log).events]
    folder = tmp_path / "broken" / "env_travel_planning_0"
    for bad in range(4):
        lines = log.lines()
        lines[bad] = "{half\n"
        log.folder(folder)
        (folder / "event_log.jsonl").write_text("".join(lines))
        (found,), (wrong,) = pieces(folder)
        assert wrong.line == bad + 1
        assert wrong.source == str(folder / "event_log.jsonl")
        assert "not JSON" in wrong.reason
        missing = 0 if bad == 0 else bad + 1
        assert [e.seq for e in found.events] == [seq for seq in whole if seq != missing]


def test_a_teammates_first_message_is_not_taken_for_the_query(tmp_path: Path) -> None:
    log = Log(query=None).say(AGENT, "One").say(USER, "Two")
    folder = log.folder(tmp_path / "env_x")
    lines = log.lines()
    lines[0] = lines[1] = "{half\n"
    (folder / "event_log.jsonl").write_text("".join(lines))
    (found,), _ = pieces(folder)
    assert [(e.seq, e.text) for e in found.events] == [(2, "Two")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"role": "stranger"}, "unknown role 'stranger', expected one of planning_agent, user, environment"),
        ({"role": 7}, "role: Input should be a valid string"),
        ({"action": None}, "action: Input should be a valid string"),
        ({"current_chat_history": {}}, "current_chat_history: Input should be a valid list"),
        (
            {"current_observation": {"public": [], "private": {}}},
            "current_observation.public: Input should be",
        ),
    ],
)
def test_a_record_with_something_wrong_is_named_with_its_line_and_the_rest_is_read(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    log = Log().say(AGENT, "One").say(USER, "Two")
    log.records[1] |= change
    (found,), (wrong,) = pieces(log.folder(tmp_path / "env_x"))
    assert (wrong.line, wrong.reason[: len(reason)]) == (2, reason)
    assert [e.text for e in found.events][1:] == [QUERY, "Two"]


def test_a_line_that_is_no_object_is_named(tmp_path: Path) -> None:
    folder = Log().folder(tmp_path / "env_x")
    with (folder / "event_log.jsonl").open("a") as file:
        file.write("[]\nnull\n" + json.dumps(Log().say(AGENT, "One").records[-1]) + "\n")
    (found,), wrong = pieces(folder)
    assert [one.line for one in wrong] == [2, 3]
    assert found.events[-1].text == "One"


SNAPSHOTS = ("current_chat_history", "current_observation")
SLIM = (*SNAPSHOTS, "timestamp", "action_status", "action_type")


@pytest.mark.parametrize("gone", [*((key,) for key in SLIM), SNAPSHOTS, SLIM])
@pytest.mark.parametrize("null", [False, True])
def test_a_copy_of_a_log_keeps_who_did_what_though_the_rest_was_left_out(
    tmp_path: Path, gone: tuple[str, ...], null: bool
) -> None:
    log = Log().say(AGENT, "Shall I?").say(USER, "Yes").write(AGENT, "Plan").finish(USER)
    for record in log.records:
        for key in gone:
            record.pop(key)
            record.update({key: None} if null else {})
    found = session(tmp_path, log)
    kinds = [(e.actor, e.kind, e.text) for e in found.events if e.text != QUERY]
    assert kinds[1:] == [
        (AGENT, "message", "Shall I?"),
        (USER, "message", "Yes"),
        (AGENT, "action", None),
        (USER, "finish", None),
    ]
    assert {p.name for p in found.team()} == {AGENT, USER}
    assert found.agent == AGENT


def test_of_what_is_told_to_be_no_message_only_what_did_not_fail_is_one(tmp_path: Path) -> None:
    log = Log().act(AGENT, "SEND_TEAMMATE_MESSAGE(message=Hello)", error="no action of this environment")
    for record in log.records:
        del record["action_type"]
    assert last(tmp_path, log).kind == "action"


def test_reminders_are_heard_once_where_a_record_between_lacks_the_chat(tmp_path: Path) -> None:
    log = Log().hear("environment", IDLE).say(AGENT, "One").say(USER, "Two").say(AGENT, "Three")
    del log.records[2]["current_chat_history"]
    heard = [notice.text for event in session(tmp_path, log).events for notice in event.notices]
    assert heard == [IDLE]


def test_without_any_state_delivery_is_unknown_for_that_reason(tmp_path: Path) -> None:
    log = Log().write(AGENT, "Plan").finish()
    for record in log.records:
        del record["current_observation"]
    outcomes = {outcome.name: outcome for outcome in session(tmp_path, log).outcomes}
    assert (outcomes["delivered"].value, outcomes["delivered"].reason) == (None, "the log shows no state")


def test_a_person_whose_roles_lost_their_id_is_the_one_that_the_views_name(tmp_path: Path) -> None:
    log = Log(team=("agent", "user_17")).say("agent", "Shall I?").say("user_17", "Yes")
    log.records[2]["role"] = log.records[0]["current_chat_history"][0]["role"] = "user"
    found = session(tmp_path, log)
    said = [(event.actor, event.text) for event in found.events if event.actor != "agent"]
    assert said[1:] == [("user_17", QUERY), ("user_17", "Yes")]
    assert {p.name for p in found.team()} == {"agent", "user_17"}


def test_a_role_that_may_be_two_members_is_named(tmp_path: Path) -> None:
    log = Log(team=("agent", "user_1", "user_2")).say("user_1", "Yes").say("agent", "Good")
    log.records[1]["role"] = "user"
    _, (wrong,) = pieces(log.folder(tmp_path / "env_x"))
    assert wrong.reason == "unknown role 'user', expected one of agent, user_1, user_2, environment"
