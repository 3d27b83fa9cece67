"""Messages of Letta, each with a `message_type`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import outline
from tests.pipeline.systems.formats.shapes import as_json, sentence


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


def test_answers_to_several_calls_are_told_apart(tmp_path: Path) -> None:
    """As Letta writes them since it runs calls side by side: the second result was lost, and each refusal."""
    calls = [call("c1", "delete"), call("c2", "list")]
    returns = [
        {"tool_call_id": "c2", "tool_return": sentence(2), "status": "success", "type": "tool"},
        {"tool_call_id": "c3", "tool_return": "no disk", "status": "error", "type": "tool"},
    ]
    log = [
        message(0, "user", content=sentence(0)),
        message(1, "approval_request", tool_call=calls[0], tool_calls=[*calls, call("c3", "copy")]),
        message(
            2,
            "approval_response",
            approve=None,
            approvals=[
                {"type": "approval", "approve": False, "tool_call_id": "c1", "reason": "Not that one."}
            ],
        ),
        message(3, "tool_return", tool_return=sentence(2), tool_call_id="c2", tool_returns=returns),
    ]
    (session,) = read_by_draft(as_json(tmp_path / "a.json", {"messages": log}))
    assert [(event.action and event.action.name, event.status) for event in session.events[1:4]] == [
        ("delete", None),
        ("list", "succeeded"),
        ("copy", "failed"),
    ]
    assert outline(session.events)[-2:] == [
        ("user", "confirm_reject", None),
        ("user", "message", "Not that one."),
    ]


def test_messages_of_others_keep_their_senders(tmp_path: Path) -> None:
    """Of any export with a `message_type` the names and times were lost, and what was called an event."""
    kinds = ("user_message", "event")
    log = [
        {
            "id": str(n),
            "message_type": kinds[n % 2],
            "sender": ("Ann", "helper-bot")[n % 2],
            "content": sentence(n),
            "created_at": f"2026-01-02T10:00:0{n}+00:00",
        }
        for n in range(4)
    ]
    (session,) = read_by_draft(as_json(tmp_path / "a.json", {"messages": log}))
    assert [(event.actor, event.text) for event in session.events] == [
        (("Ann", "helper-bot")[n % 2], sentence(n)) for n in range(4)
    ]
    assert all(event.time for event in session.events)


def test_messages_that_the_server_lists_newest_first_are_in_order(tmp_path: Path) -> None:
    """As its API lists them unless told otherwise: a session ended with what a person asked first."""
    log = [
        {**message(0, kind, content=sentence(n)), "date": f"2026-01-02T10:0{n}:00+00:00"}
        for n, kind in enumerate(("user", "assistant", "user", "assistant"))
    ]
    (session,) = read_by_draft(as_json(tmp_path / "a.json", {"messages": log[::-1]}))
    assert [event.text for event in session.events] == [sentence(n) for n in range(4)]
