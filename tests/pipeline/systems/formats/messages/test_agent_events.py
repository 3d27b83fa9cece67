"""Events of agent frameworks that look like others, or that nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coaudit.pipeline.ingest.run import preview
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.schemas import Quarantined, Trajectory
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import outline
from tests.pipeline.systems.formats.shapes import as_lines, sentence


def test_agents_that_are_called_by_a_word_for_a_role_are_not_one(tmp_path: Path) -> None:
    """As AutoGen names them: `bot`, whose summary has its name, and `ai`."""
    call = {"id": "c1", "name": "look", "arguments": "{}"}
    result = {"call_id": "c1", "name": "look", "content": "red", "is_error": False}
    said: list[dict[str, Any]] = [
        {"source": "user", "type": "TextMessage", "content": sentence(0)},
        {"source": "bot", "type": "ToolCallRequestEvent", "content": [call]},
        {"source": "bot", "type": "ToolCallExecutionEvent", "content": [result]},
        {"source": "bot", "type": "ToolCallSummaryMessage", "content": "red"}
        | {"tool_calls": [call], "results": [result]},
        {"source": "ai", "type": "TextMessage", "content": sentence(1)},
    ]
    lines = [{"id": f"{n}", "models_usage": None, "metadata": {}, **each} for n, each in enumerate(said)]
    (team,) = read_by_draft(as_lines(tmp_path / "team.jsonl", lines))
    assert outline(team.events) == [
        ("user", "message", sentence(0)),
        ("bot", "action", "look"),
        ("bot", "message", "red"),
        ("ai", "message", sentence(1)),
    ]
    assert {p.name: p.kind for p in team.team()} == {"user": "human", "bot": "agent", "ai": "agent"}


def test_events_of_unknown_kinds_are_named_and_cost_no_others(tmp_path: Path) -> None:
    """As a log of OpenHands may be full of them."""
    mark = {"tool_name": "bash", "tool_call_id": "c1"}
    said: list[dict[str, Any]] = [
        {"source": "user", "kind": "MessageEvent", "llm_message": {"role": "user", "content": sentence(0)}},
        {"source": "agent", "kind": "ActionEvent", "thought": [], "action": {"command": "ls"}, **mark},
        {"source": "environment", "kind": "ObservationEvent", "observation": {"content": "a.py"}, **mark},
    ]
    said[1:1] = [{"source": "environment", "kind": "Heartbeat", "load": {"cpu": n}} for n in range(4)]
    lines = [{"id": f"e{n}", "timestamp": f"2026-01-02T10:00:{n:02d}", **each} for n, each in enumerate(said)]
    path = as_lines(tmp_path / "events.jsonl", lines)
    items = preview([path], ReadOptions(map=draft(path).text), "mapped")
    (run,) = (item for item in items if isinstance(item, Trajectory))
    (wrong,) = (item for item in items if isinstance(item, Quarantined))
    assert outline(run.events) == [("user", "message", sentence(0)), ("assistant", "action", "bash")]
    assert run.states[run.events[1].states["public"]] == {"observation": "a.py"}
    assert (wrong.line, "4 records" in wrong.reason) == (2, True)


def test_a_chat_with_a_source_and_one_call_is_read_as_a_chat(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"id": n, "timestamp": f"2026-01-02T10:00:{n:02d}", "source": ("user", "agent")[n % 2]}
        | {"utterance": sentence(n)}
        for n in range(8)
    ]
    lines.append({**lines[-1], "id": 9, "action": "run", "args": {"command": "ls"}})
    del lines[-1]["utterance"]
    (run,) = read_by_draft(as_lines(tmp_path / "chat.jsonl", lines))
    assert [event.text for event in run.events if event.text] == [sentence(n) for n in range(8)]
