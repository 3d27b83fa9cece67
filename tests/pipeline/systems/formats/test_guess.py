"""What `coaudit map` drafts for logs of tools that run, watch and compare agents, used as it is."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from coaudit.pipeline.systems.formats.drafting import draft
from coaudit.pipeline.systems.formats.growing import sessions_of
from tests.pipeline.systems.formats.files import brief
from tests.pipeline.systems.formats.shapes import said
from tests.pipeline.systems.formats.shapes_logs import LOGS
from tests.pipeline.systems.formats.test_drafting import drafted

USER, AGENT = ("user", "human"), ("assistant", "agent")
EXPECTED: dict[str, tuple[int, list[tuple[str, str]], list[tuple[str, str, str | None]]]] = {
    "traced_runs": (
        3,
        [USER, AGENT],
        [
            ("user", "message", said(0)),
            ("assistant", "action", "timetable"),
            ("assistant", "message", said(3)),
        ],
    ),
    "observations": (
        2,
        [("environment", "environment"), USER, AGENT],
        [
            ("environment", "start", "Be brief."),
            ("user", "message", said(0)),
            ("assistant", "action", "search"),
            ("assistant", "message", said(3)),
        ],
    ),
    "typed_events": (
        3,
        [USER, AGENT],
        [("user", "message", said(0)), ("assistant", "action", "bash"), ("assistant", "message", said(3))],
    ),
    "turns_of_steps": (
        3,
        [USER, AGENT, ("environment", "environment")],
        [
            ("user", "message", said(0)),
            ("assistant", "action", "cd"),
            ("assistant", "action", "ls"),
            ("environment", "note", "decoded"),
            ("assistant", "message", said(2)),
            ("user", "message", said(1)),
        ],
    ),
    "crew": (
        1,
        [("Senior Researcher", "agent"), ("Reporting Analyst", "agent")],
        [
            ("Senior Researcher", "note", said(0)),
            ("Senior Researcher", "message", f"# research\n{said(2)}"),
            ("Reporting Analyst", "note", said(1)),
        ],
    ),
    "channel": (
        2,
        [("U01", "human"), ("helper", "agent"), ("U02", "human")],
        [("U01", "message", said(0)), ("helper", "message", said(1)), ("U02", "message", said(2))],
    ),
    "arena": (6, [USER, AGENT], [("user", "message", said(0)), ("assistant", "message", f"a: {said(1)}")]),
    "answers_of_two": (8, [USER, AGENT], [("user", "message", said(0)), ("assistant", "message", said(1))]),
    "model_calls": (
        2,
        [("environment", "environment"), USER, AGENT],
        [
            ("environment", "start", "You write code."),
            ("user", "message", said(0)),
            ("assistant", "message", "```python\nprint(apis.show(0))\n```"),
            ("assistant", "action", "python"),
            ("assistant", "message", "```python\nprint(apis.show(1))\n```"),
        ],
    ),
    "interactions": (
        2,
        [("environment", "environment"), ("python", "agent")],
        [
            ("environment", "note", f"### Environment Interaction 1\n{'-' * 60}"),
            *[("python", "action", "python")] * 3,
        ],
    ),
    "general_assistant": (
        3,
        [USER, ("agent", "agent")],
        [
            ("user", "message", said(0)),
            ("agent", "action", "web_search"),
            ("agent", "action", "final_answer"),
        ],
    ),
}


@pytest.mark.parametrize("shape", LOGS)
def test_a_draft_used_as_it_is_gives_the_sessions_their_speakers_and_what_they_did(
    tmp_path: Path, shape: str
) -> None:
    count, people, events = EXPECTED[shape]
    trajectories = drafted(LOGS[shape](tmp_path))
    assert len(trajectories) == count and len({t.id for t in trajectories}) == count
    assert len({t.native_id for t in trajectories}) == count
    first = trajectories[0]
    assert [(p.name, p.kind) for p in first.participants] == people
    assert brief(first.events)[: len(events)] == events


def test_a_run_of_a_tool_is_the_result_of_the_call_that_a_model_made_and_fails_with_its_error(
    tmp_path: Path,
) -> None:
    runs = drafted(LOGS["traced_runs"](tmp_path))
    actions = [event for run in runs for event in run.events if event.kind == "action"]
    assert [(e.action and e.action.arguments, e.status, e.error) for e in actions] == [
        ({"to": "Ulm"}, None, None),
        ({"to": "Ulm"}, "failed", "TimeoutError: no answer"),
        ({"to": "Ulm"}, None, None),
    ]
    shown = runs[0].states[actions[0].states["public"]]
    assert (shown, runs[0].agent_model) == ({"observation": "three trains"}, "m-1")


def test_calls_that_are_all_of_a_text_are_its_actions_with_the_results_that_follow(tmp_path: Path) -> None:
    run = drafted(LOGS["turns_of_steps"](tmp_path))[0]
    actions = [event for event in run.events if event.kind == "action"]
    assert [(e.action and (e.action.name, e.action.arguments), e.status) for e in actions] == [
        (("cd", {"folder": "a0"}), None),
        (("ls", {}), "failed"),
        (("cd", {"folder": "a1"}), None),
        (("ls", {}), "failed"),
    ]


def test_of_two_sessions_in_a_record_each_is_one_that_won_or_did_not(tmp_path: Path) -> None:
    runs = drafted(LOGS["arena"](tmp_path))
    assert [(run.native_id, run.agent_model, run.tags) for run in runs[:2]] == [
        ("q0/a", "m-1", {"side": "a"}),
        ("q0/b", "m-2", {"side": "b"}),
    ]
    won = [next(o.value for o in run.outcomes if o.name == "won") for run in runs]
    assert won == [1, 0, 0, 1, None, None]


def test_what_a_command_printed_is_no_word_of_a_human_and_a_page_tells_what_failed(tmp_path: Path) -> None:
    calls = drafted(LOGS["model_calls"](tmp_path / "calls"))[0]
    assert sum(event.actor == "user" for event in calls.events) == 1
    page = drafted(LOGS["interactions"](tmp_path / "pages"))[0]
    actions = [event for event in page.events if event.kind == "action"]
    assert [(e.action and e.action.arguments, e.status) for e in actions] == [
        ({"command": "print(apis.show(0, 0))"}, None),
        ({"command": "print(apis.show(0, 1))"}, "failed"),
        ({"command": "print(apis.show(0, 2))"}, "failed"),
    ]


def test_files_of_other_things_are_passed_over_by_name_and_times_in_seconds_are_times(tmp_path: Path) -> None:
    folder = LOGS["channel"](tmp_path)
    assert 'files = ["*.json", "!channels.json", "!users.json"]' in draft(folder).text
    assert [e.time for e in drafted(folder)[0].events][:2] == [
        "2026-01-01T00:00:00.000100+00:00",
        "2026-01-01T00:00:30.000200+00:00",
    ]


def test_a_reference_answer_is_no_field_that_a_judge_sees(tmp_path: Path) -> None:
    text = draft(LOGS["general_assistant"](tmp_path)).text
    assert '# hidden = "Final answer"' in text and "Final answer" not in json.dumps(tomllib.loads(text))


def test_calls_of_two_sessions_that_begin_alike_are_told_apart_by_the_reply() -> None:
    def asked(text: str) -> dict[str, str]:
        return {"role": "user", "content": text}

    def back(text: str) -> dict[str, str]:
        return {"role": "assistant", "content": text}

    first, one, two = asked("Go."), back("I take the train."), back("I take the bus.")
    calls = [
        ([first], [one]),
        ([first], [two]),
        ([first, two, asked("When?")], [back("At two.")]),
        ([first, one, asked("When?")], [back("At one.")]),
    ]
    sessions = sessions_of(calls)
    assert [(s.first, s.last, s.messages[-1]["content"]) for s in sessions] == [
        (0, 3, "At one."),
        (1, 2, "At two."),
    ]
