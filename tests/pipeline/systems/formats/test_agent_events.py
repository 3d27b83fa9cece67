"""Events of agent frameworks that look like others, or that nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coaudit.pipeline.ingest.run import preview
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.drafting import draft
from coaudit.schemas import Quarantined, Trajectory
from tests.pipeline.systems.formats.files import outline
from tests.pipeline.systems.formats.shapes import as_lines, sentence
from tests.pipeline.systems.formats.test_drafting import read_by_draft


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
