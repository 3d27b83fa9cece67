"""What `coaudit map` drafts for logs of tools that run, watch and compare agents, used as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

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
}


@pytest.mark.parametrize("shape", EXPECTED)
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
