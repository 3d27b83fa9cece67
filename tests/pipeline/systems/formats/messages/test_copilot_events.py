"""Events of GitHub Copilot's command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coaudit.pipeline.ingest.run import preview
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.schemas import Quarantined, Trajectory
from tests.pipeline.systems.formats.logs import outline
from tests.pipeline.systems.formats.shapes import as_lines, sentence


def test_messages_calls_and_results_are_read_and_other_events_are_told(tmp_path: Path) -> None:
    call = {"toolCallId": "c1", "name": "bash", "arguments": {"command": "ls"}, "type": "function"}
    said: list[tuple[str, dict[str, Any]]] = [
        ("session.start", {"sessionId": "s1", "producer": "copilot-agent"}),
        ("user.message", {"content": sentence(0), "attachments": []}),
        ("assistant.turn_start", {"turnId": "0"}),
        ("assistant.message", {"messageId": "m1", "content": sentence(1), "toolRequests": [call]}),
        ("tool.execution_start", {"toolCallId": "c1", "toolName": "bash"}),
        ("tool.execution_complete", {"toolCallId": "c1", "success": False, "error": {"message": "no"}}),
        ("abort", {"reason": "user initiated"}),
        ("assistant.message", {"messageId": "m2", "content": sentence(2), "toolRequests": []}),
    ]
    lines = [
        {"type": kind, "data": data, "id": f"e{n}", "parentId": f"e{n - 1}" if n else None}
        | {"timestamp": f"2026-01-02T10:00:{n:02d}Z"}
        for n, (kind, data) in enumerate(said)
    ]
    path = as_lines(tmp_path / "s1.jsonl", lines)
    items = preview([path], ReadOptions(map=draft(path).text), "mapped")
    (run,) = (item for item in items if isinstance(item, Trajectory))
    (wrong,) = (item for item in items if isinstance(item, Quarantined))
    assert outline(run.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "message", sentence(1)),
        ("assistant", "action", "bash"),
        ("assistant", "message", sentence(2)),
    ]
    assert run.events[2].action and run.events[2].action.arguments == {"command": "ls"}
    assert (run.events[2].status, run.events[2].error) == ("failed", "no")
    assert run.events[0].time == "2026-01-02T10:00:01Z"
    assert not run.outcomes
    assert "1 of type 'abort'" in wrong.reason


def events(*said: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": kind, "data": data, "id": f"e{n}", "parentId": f"e{n - 1}" if n else None}
        | {"timestamp": f"2026-01-02T10:00:{n:02d}Z"}
        for n, (kind, data) in enumerate(said)
    ]


def test_many_events_of_unknown_kinds_cost_no_others(tmp_path: Path) -> None:
    said = [("user.message", {"content": sentence(0)}), ("assistant.message", {"content": sentence(1)})]
    lines = events(*said, ("abort", {"reason": "user"}), ("session.error", {"message": "quota"}))
    path = as_lines(tmp_path / "events.jsonl", lines)
    items = preview([path], ReadOptions(map=draft(path).text), "mapped")
    (run,) = (item for item in items if isinstance(item, Trajectory))
    assert outline(run.events) == [("user", "message", sentence(0)), ("assistant", "message", sentence(1))]
    assert len(items) == 3


def test_events_that_are_framed_alike_keep_their_own_words(tmp_path: Path) -> None:
    kinds = ("user.message", "assistant.message")
    lines = events(*((kinds[n % 2], {"text": sentence(n)}) for n in range(6)))
    path = as_lines(tmp_path / "events.jsonl", lines)
    (run,) = preview([path], ReadOptions(map=draft(path).text), "mapped")
    assert isinstance(run, Trajectory)
    assert [event.text for event in run.events] == [sentence(n) for n in range(6)]
