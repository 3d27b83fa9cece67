"""Questions whether a call may run, and people's answers, in the formats that log them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import one, outline, write_lines
from tests.pipeline.systems.formats.shapes import as_json

ASKED = [
    ("Ada", "message", "Tidy up."),
    ("assistant", "message", "I look."),
    ("assistant", "action", "list"),
    ("assistant", "action", "delete"),
    ("assistant", "confirm_request", "delete"),
]
REFUSED = [("Ada", "confirm_reject", None), ("Ada", "message", "Not that one.")]


def asked(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    calls = [
        {"type": "tool-call", "toolCallId": f"c{n}", "toolName": name, "input": {"n": n}}
        for n, name in enumerate(("list", "delete"))
    ]
    request = {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"}
    return [
        {"role": "user", "name": "Ada", "content": "Tidy up."},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *calls, request]},
        {"role": "tool", "content": [*parts]},
    ]


def result(mark: str, **output: object) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": mark, "toolName": "x", "output": output}


def answer(*, is_granted: bool, **fields: str) -> dict[str, Any]:
    return {"type": "tool-approval-response", "approvalId": "a1", "approved": is_granted, **fields}


@pytest.mark.parametrize("how", ["chat", "mapped"])
def test_a_call_that_a_person_refused_has_neither_status_nor_result(tmp_path: Path, how: str) -> None:
    """As Vercel's AI SDK has messages for a model; its output of a refused call tells of it again."""
    refusal = answer(is_granted=False, reason="Not that one.")
    denied = {"role": "tool", "content": [result("c1", type="execution-denied", reason="Not that one.")]}
    messages = [*asked(result("c0", type="error-text", value="no disk"), refusal), denied]
    path = write_lines(tmp_path / "a.jsonl", {"id": "s", "messages": messages})
    mapping = '[trajectory]\nnative_id = "id"\n[messages]\nat = "messages"\n'
    session = one(how, path, map=mapping if how == "mapped" else None)
    assert outline(session.events) == [*ASKED, *REFUSED]
    assert [(event.status, event.error) for event in session.events[2:4]] == [
        ("failed", "no disk"),
        (None, None),
    ]
    request = session.events[4].action
    assert request and request.arguments == {"n": 1} and not session.events[3].states


def test_a_call_that_a_person_let_run_has_its_result(tmp_path: Path) -> None:
    parts = [
        result("c0", type="json", value={"n": 1}),
        answer(is_granted=True),
        result("c1", type="text", value="ok"),
    ]
    path = write_lines(tmp_path / "a.jsonl", {"id": "s", "messages": asked(*parts)})
    session = one("chat", path)
    assert outline(session.events) == [*ASKED, ("Ada", "confirm_accept", None)]
    assert [*session.states.values()] == [{"observation": {"n": 1}}, {"observation": "ok"}]


def test_a_refusal_that_comes_late_or_twice_is_told_once_with_its_words(tmp_path: Path) -> None:
    late = [result("c0", type="text", value="two"), result("c1", type="text", value="gone")]
    refusal = answer(is_granted=False, reason="Not that one.")
    messages = [*asked(*late), {"role": "tool", "content": [refusal, refusal]}]
    path = write_lines(tmp_path / "a.jsonl", {"id": "s", "messages": messages})
    session = one("chat", path)
    assert outline(session.events) == [*ASKED, *REFUSED]
    assert [*session.states.values()] == [{"observation": "two"}, {"observation": "gone"}]


def test_a_result_before_version_5_is_what_came_back_as_it_is(tmp_path: Path) -> None:
    came = {"type": "error-rate", "value": 3, "unit": "%"}
    old = {"type": "tool-result", "toolCallId": "c0", "toolName": "list", "result": came}
    failed = {**old, "toolCallId": "c1", "result": "no disk", "isError": True}
    session = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s", "messages": asked(old, failed)}))
    assert [event.status for event in session.events[2:4]] == [None, "failed"]
    assert [*session.states.values()] == [{"observation": came}, {"observation": "no disk"}]


@pytest.mark.parametrize("is_bare", [False, True])
def test_approvals_that_stand_in_a_call_are_asked_and_answered_in_turn(tmp_path: Path, is_bare: bool) -> None:
    """As Vercel's AI SDK has messages for a page, which may be a file's list."""
    words = [{"type": "text", "text": "Tidy up."}]
    call: dict[str, Any] = {"type": "tool-delete", "input": {}}
    decisions: list[dict[str, Any]] = [{"approved": False, "reason": "Not that one."}, {"approved": True}, {}]
    calls = [
        {**call, "toolCallId": f"c{n}", "approval": {"id": f"a{n}", **one}} for n, one in enumerate(decisions)
    ]
    calls[1]["output"] = "gone"
    messages = [
        {"id": "m1", "role": "user", "parts": words},
        {"id": "m2", "role": "assistant", "parts": calls},
    ]
    path = as_json(tmp_path / "a.json", messages if is_bare else [{"id": "s", "messages": messages}])
    sessions = [*read_by_draft(path), one("chat", path)]
    for session in sessions:
        assert outline(session.events) == [
            ("user", "message", "Tidy up."),
            *[("assistant", "action", "delete")] * 3,
            ("assistant", "confirm_request", "delete"),
            ("user", "confirm_reject", None),
            ("user", "message", "Not that one."),
            ("assistant", "confirm_request", "delete"),
            ("user", "confirm_accept", None),
            ("assistant", "confirm_request", "delete"),
        ]
        assert [*session.states.values()] == [{"observation": "gone"}]


def test_approvals_of_the_responses_api_are_confirmations(tmp_path: Path) -> None:
    request = {
        "type": "mcp_approval_request",
        "name": "pay",
        "arguments": '{"sum": 2}',
        "server_label": "bank",
    }
    decision = {"type": "mcp_approval_response", "approval_request_id": "q1"}
    call = {"type": "mcp_call", "id": "c1", "name": "pay", "arguments": '{"sum": 2}', "output": "paid"}
    first = {
        "id": "r1",
        "model": "m-1",
        "input": "Pay both.",
        "output": [{**request, "id": f"q{n}"} for n in (1, 2)],
    }
    answers = [{**decision, "approve": True}, {**decision, "approval_request_id": "q2", "approve": False}]
    second = {"id": "r2", "model": "m-1", "previous_response_id": "r1", "input": answers, "output": [call]}
    session = one("chat", write_lines(tmp_path / "a.jsonl", first, second))
    assert outline(session.events) == [
        ("user", "message", "Pay both."),
        *[("assistant", "confirm_request", "pay")] * 2,
        ("user", "confirm_accept", None),
        ("user", "confirm_reject", None),
        ("assistant", "action", "pay"),
    ]


def test_calls_beside_a_text_are_read_whatever_else_has_a_role(tmp_path: Path) -> None:
    """As Vercel's AI SDK had a role for data."""
    invocation = {"state": "result", "toolCallId": "c1", "toolName": "find", "args": {}, "result": "at 9"}
    chats = [
        {
            "chatId": f"s{n}",
            "messages": [
                {"role": "user", "content": f"To Ulm? {n}"},
                {"role": "data", "content": "x"},
                {"role": "assistant", "content": "At 9.", "toolInvocations": [invocation]},
            ],
        }
        for n in range(2)
    ]
    session = read_by_draft(write_lines(tmp_path / "a.jsonl", *chats))[0]
    assert outline(session.events)[2:] == [("assistant", "action", "find"), ("assistant", "message", "At 9.")]


def test_words_in_parts_beside_an_empty_content_are_read(tmp_path: Path) -> None:
    words = [("user", [{"text": "To Ulm?"}]), ("assistant", [{"type": "text", "text": "At 9."}])]
    messages = [{"role": role, "content": None, "parts": parts} for role, parts in words]
    path = write_lines(tmp_path / "a.jsonl", {"id": "s", "messages": messages})
    for session in (*read_by_draft(path), one("chat", path)):
        assert [event.text for event in session.events] == ["To Ulm?", "At 9."]


PAGE = [
    {"id": "1", "role": "user", "parts": [{"type": "text", "text": "How warm is Ulm?"}]},
    {
        "id": "2",
        "role": "assistant",
        "parts": [
            {"type": "tool-weather", "state": "output-available", "input": {"city": "Ulm"}, "output": "3"},
            {"type": "text", "text": "3 degrees."},
        ],
    },
]
MODEL = [
    {"role": "user", "content": [{"type": "text", "text": "How warm is Ulm?"}]},
    {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolName": "weather", "input": {"city": "Ulm"}}],
    },
    {
        "role": "tool",
        "content": [{"type": "tool-result", "toolName": "weather", "output": {"type": "text", "value": "3"}}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "3 degrees."}]},
]


@pytest.mark.parametrize("messages", [PAGE, MODEL], ids=["for a page", "for a model"])
def test_a_call_without_an_id_is_a_call_with_its_result(
    tmp_path: Path, messages: list[dict[str, Any]]
) -> None:
    """As some providers of Vercel's AI SDK leave it out."""
    chat = one("chat", as_json(tmp_path / "chat.json", messages))
    assert outline(chat.events) == [
        ("user", "message", "How warm is Ulm?"),
        ("assistant", "action", "weather"),
        ("assistant", "message", "3 degrees."),
    ]
    action = chat.events[1]
    assert action.action and action.action.arguments == {"city": "Ulm"}
    assert chat.states[action.states["public"]] == {"observation": "3"}


def test_words_in_a_part_called_a_result_stay_words(tmp_path: Path) -> None:
    said = {"type": "tool-result", "toolName": "look", "text": "At 9."}
    messages = [{"role": "user", "parts": [{"type": "text", "text": "When?"}]}]
    messages += [{"role": "assistant", "parts": [said, {"type": ["no", "text"]}]}]
    chat = one("chat", as_json(tmp_path / "chat.json", messages))
    assert [event.text for event in chat.events] == ["When?", "At 9."]
