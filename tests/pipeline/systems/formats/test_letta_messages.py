"""Messages of Letta, each with a `message_type`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.pipeline.systems.formats.files import outline
from tests.pipeline.systems.formats.shapes import as_json, sentence
from tests.pipeline.systems.formats.test_drafting import read_by_draft


def message(second: int, kind: str, **fields: Any) -> dict[str, Any]:
    date = f"2026-01-02T10:00:0{second}+00:00"
    return {"id": f"message-{second}", "date": date, "message_type": f"{kind}_message", **fields}


def call(mark: str, name: str) -> dict[str, Any]:
    return {"name": name, "arguments": '{"label": "human"}', "tool_call_id": mark}


def test_messages_are_their_types_speakers_and_thoughts_are_nobodys(tmp_path: Path) -> None:
    """A draft took the source of a thought for who speaks: all else was refused."""
    log = [
        message(0, "user", content=sentence(0)),
        message(1, "reasoning", reasoning=sentence(1), source="reasoner_model"),
        message(2, "tool_call", tool_call=call("c1", "remember")),
        message(3, "tool_return", tool_return="disk is full", status="error", tool_call_id="c1"),
        message(4, "assistant", content=sentence(2)),
        message(5, "assistant", content=sentence(3)),
    ]
    (session,) = read_by_draft(as_json(tmp_path / "a.json", {"messages": log}))
    assert outline(session.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "action", "remember"),
        ("assistant", "message", sentence(2)),
        ("assistant", "message", sentence(3)),
    ]
    action = session.events[1]
    assert action.action and action.action.arguments == {"label": "human"} and action.status == "failed"
    assert action.time == "2026-01-02T10:00:02+00:00"


def test_a_call_waits_for_a_persons_approval(tmp_path: Path) -> None:
    log = [
        message(0, "user", content=sentence(0)),
        message(1, "approval_request", tool_call=call("c1", "delete")),
        message(
            2, "approval_response", approval_request_id="message-1", approve=False, reason="Not that one."
        ),
        message(3, "assistant", content=sentence(1)),
    ]
    (session,) = read_by_draft(as_json(tmp_path / "a.json", {"messages": log}))
    assert outline(session.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "action", "delete"),
        ("assistant", "confirm_request", "delete"),
        ("user", "confirm_reject", None),
        ("user", "message", "Not that one."),
        ("assistant", "message", sentence(1)),
    ]
