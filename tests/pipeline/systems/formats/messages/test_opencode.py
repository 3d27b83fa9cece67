"""What opencode exports: `info` and `parts` of each message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import outline
from tests.pipeline.systems.formats.shapes import as_json, sentence


def message(role: str, second: int, *parts: dict[str, Any], **info: Any) -> dict[str, Any]:
    head = {"id": f"m{second}", "sessionID": "s1", "role": role, "time": {"created": 1767000000000 + second}}
    return {"info": {**head, **info}, "parts": list(parts)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(mark: str, status: str, **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": "bash", "callID": mark, "state": {"status": status, **state}}


def test_an_export_is_one_session_with_its_calls_results_and_tokens(tmp_path: Path) -> None:
    tokens = {"input": 100, "output": 20, "cache": {"read": 5, "write": 2}}
    parts = [
        {"type": "step-start"},
        {"type": "reasoning", "text": "Which?"},
        text(sentence(1)),
        call("c1", "completed", input={"command": "ls"}, output="src"),
        call("c2", "error", input={"command": "cat x"}, error="No such file"),
        {"type": "step-finish", "tokens": tokens},
    ]
    log = {
        "info": {"id": "s1", "title": "Trip", "time": {"created": 1767000000000}},
        "messages": [
            message("user", 0, text(sentence(0)), text("Called the Read tool", synthetic=True)),
            message("assistant", 1, *parts, tokens=tokens, modelID="m-1"),
            message("assistant", 2, text(sentence(3)), tokens=tokens, modelID="m-1"),
        ],
    }
    (run,) = read_by_draft(as_json(tmp_path / "s1.json", log))
    assert run.native_id == "s1"
    assert outline(run.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "message", sentence(1)),
        ("assistant", "action", "bash"),
        ("assistant", "action", "bash"),
        ("assistant", "message", sentence(3)),
    ]
    assert [(e.status, e.error) for e in run.events[2:4]] == [("succeeded", None), ("failed", "No such file")]
    agent = run.participants[1]
    assert (agent.kind, agent.tokens) == ("agent", {"prompt_tokens": 214, "completion_tokens": 40})
