"""Actions that agents write into their texts, in rows of public data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.messages import chat
from coaudit.schemas import Trajectory
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import outline
from tests.pipeline.systems.formats.shapes import as_json, as_lines, sentence

PROMPT = "(Open file: n/a)\n(Current directory: /repo)\nbash-$"


def results(run: Trajectory) -> list[Any]:
    actions = [event for event in run.events if event.kind == "action"]
    return [run.states[event.states["public"]] for event in actions if event.states]


HEADINGS = [
    f"ISSUE:\n{sentence(9)}",
    f"CHALLENGE DESCRIPTION: {sentence(9)}",
    f"INSTRUCTIONS:\n{sentence(9)}",
    sentence(9),
]


@pytest.mark.parametrize("head", HEADINGS)
def test_rows_of_swe_agent_have_its_commands_and_their_outputs_are_nobodys_words(
    tmp_path: Path, head: str
) -> None:
    def row(number: int) -> dict[str, Any]:
        chat = [
            ("system", None),
            ("user", f"{sentence(number)}\n{head}\nGo on.\n{PROMPT}"),
            ("ai", f"{sentence(1)}\n\n```\nls src\n```"),
            ("user", f"setup.py\n{PROMPT}"),
            ("ai", f"{sentence(2)}\n```\nedit 1:1\nx = 1\nend_of_edit\n```"),
            ("user", f"[File updated]\n{PROMPT}"),
        ]
        turns = [{"role": role, "text": text, "mask": role == "ai"} for role, text in chat]
        return {"instance_id": f"i{number}", "model_name": "m-1", "trajectory": turns}

    runs = read_by_draft(as_lines(tmp_path / "rows.jsonl", [row(number) for number in range(3)]))
    for run in runs:
        assert [e.text for e in run.events if e.actor == "user"] == [
            f"{sentence(runs.index(run))}\n{head}\nGo on.\n{PROMPT}"
        ]
        commands = [event.action.arguments for event in run.events if event.action]
        assert commands == [{"command": "ls src"}, {"command": "edit 1:1\nx = 1\nend_of_edit"}]
        assert results(run) == [
            {"observation": f"setup.py\n{PROMPT}"},
            {"observation": f"[File updated]\n{PROMPT}"},
        ]


def test_what_a_person_says_first_is_no_output_whatever_it_ends_with(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": sentence(8)},
        {"role": "user", "content": f"{sentence(0)}\n{PROMPT}"},
        {"role": "assistant", "content": sentence(1)},
        {"role": "user", "content": f"src\n{PROMPT}"},
    ]
    path = as_json(tmp_path / "a.json", {"id": "s", "messages": messages})
    (run,) = chat.read(path, ReadOptions())
    assert isinstance(run, Trajectory)
    kinds = [(run.participant(event.actor).kind, event.text) for event in run.events[1:]]
    assert kinds == [
        ("human", f"{sentence(0)}\n{PROMPT}"),
        ("agent", sentence(1)),
        ("environment", f"src\n{PROMPT}"),
    ]


def test_unmarked_code_that_nobody_ran_is_said(tmp_path: Path) -> None:
    chat = [("user", sentence(0)), ("assistant", f"{sentence(1)}\n```\nls src\n```"), ("user", sentence(2))]
    turns = [{"role": role, "text": text} for role, text in chat]
    runs = read_by_draft(as_json(tmp_path / "a.json", [{"id": n, "turns": turns} for n in range(3)]))
    assert {event.kind for run in runs for event in run.events} == {"message"}


XML = "<function=edit>\n<parameter=command>view</parameter><parameter=path>\na.py\n</parameter>\n</function>"
JSON = '<tool_call>\n{"name": "edit", "arguments": {"command": "view", "path": "a.py"}}\n</tool_call>'
PYTHON = "<tool_call>\n{'arguments': {'command': 'view', 'path': 'a.py'}, 'name': 'edit'}\n</tool_call>"


@pytest.mark.parametrize("call", [XML, JSON, PYTHON])
def test_calls_in_tags_are_actions_with_their_results(tmp_path: Path, call: str) -> None:
    chat = [
        {"role": "user", "content": sentence(0)},
        {"role": "assistant", "content": f"{sentence(1)}\n\n{call}"},
        {"role": "user", "content": "OBSERVATION:\nx = 1"},
        {"role": "assistant", "content": sentence(3)},
    ]
    (run, _) = read_by_draft(as_json(tmp_path / "a.json", [{"id": n, "messages": chat} for n in range(2)]))
    assert outline(run.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "message", f"{sentence(1)}\n\n{call}"),
        ("assistant", "action", "edit"),
        ("assistant", "message", sentence(3)),
    ]
    (action,) = (event.action for event in run.events if event.action)
    assert action.arguments == {"command": "view", "path": "a.py"}
    assert results(run) == [{"observation": "OBSERVATION:\nx = 1"}]


@pytest.mark.parametrize("call", [XML, JSON, PYTHON])
@pytest.mark.parametrize("end", ["", "\nThe server then runs it."])
def test_calls_that_are_only_spoken_of_are_said(tmp_path: Path, call: str, end: str) -> None:
    chat = [
        {"role": "user", "content": f"{sentence(0)} What does {call} do?"},
        {"role": "assistant", "content": f"You write it like this:\n{call}{end}"},
        {"role": "user", "content": sentence(2)},
        {"role": "assistant", "content": sentence(3)},
    ]
    runs = read_by_draft(as_json(tmp_path / "a.json", [{"id": n, "messages": chat} for n in range(2)]))
    for run in runs:
        assert outline(run.events) == [(one["role"], "message", one["content"]) for one in chat]


@pytest.mark.parametrize("role", ["tool", "user"])
def test_calls_in_tags_of_hermes_are_actions(tmp_path: Path, role: str) -> None:
    chat = [
        ("system", f"You have <tools>[]</tools>. Write {JSON} to call one."),
        ("human", sentence(0)),
        ("gpt", JSON),
        (role, '<tool_response>\n{"content": "x = 1"}\n</tool_response>'),
        ("gpt", sentence(3)),
    ]
    turns = [{"from": who, "value": words} for who, words in chat]
    runs = read_by_draft(as_json(tmp_path / "a.json", [{"id": n, "conversations": turns} for n in range(2)]))
    for run in runs:
        assert [event.action.name for event in run.events if event.action] == ["edit"]
