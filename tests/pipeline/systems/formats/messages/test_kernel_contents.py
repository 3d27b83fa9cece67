"""Messages of Semantic Kernel, Agent Framework and Extensions.AI, whose parts stand under `items` or
`contents`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import one, outline
from tests.pipeline.systems.formats.shapes import as_json, sentence

Message = dict[str, Any]
SAID = [
    ("user", "message", "Light on."),
    ("Lamp", "action", "Lights-turn_on"),
    ("Lamp", "message", "It is on."),
]


def kernel() -> list[Message]:
    """Semantic Kernel in Python."""
    names = {"name": "Lights-turn_on", "function_name": "turn_on", "plugin_name": "Lights"}
    call = {"content_type": "function_call", "id": "c1", **names, "arguments": '{"id": 3}'}
    result = {"content_type": "function_result", "id": "c1", **names, "result": "on"}
    contents = (
        ("user", None, {"content_type": "text", "text": "Light on."}),
        ("assistant", "Lamp", call),
        ("tool", None, result),
        ("assistant", "Lamp", {"content_type": "text", "text": "It is on."}),
    )
    head = {"metadata": {}, "content_type": "message"}
    return [{**head, "role": role, "name": name, "items": [part]} for role, name, part in contents]


def extensions() -> list[Message]:
    """Extensions.AI, of which Agent Framework stores messages in .NET."""
    call = {"$type": "functionCall", "callId": "c1", "name": "Lights-turn_on", "arguments": {"id": 3}}
    usage = {"$type": "usage", "details": {"inputTokenCount": 9}}
    return [
        {"role": "user", "contents": [{"$type": "text", "text": "Light on."}]},
        {"role": "assistant", "authorName": "Lamp", "contents": [{"$type": "reasoning", "text": "?"}, call]},
        {"role": "tool", "contents": [{"$type": "functionResult", "callId": "c1", "result": "on"}]},
        {
            "role": "assistant",
            "authorName": "Lamp",
            "contents": [{"$type": "text", "text": "It is on."}, usage],
        },
    ]


def kernel_net() -> list[Message]:
    """Semantic Kernel in .NET."""
    names = {"PluginName": "Lights", "FunctionName": "turn_on"}
    call = {"$type": "FunctionCallContent", "Id": "c1", **names, "Arguments": {"id": 3}}
    result = {"$type": "FunctionResultContent", "CallId": "c1", **names, "Result": "on"}
    lamp = {"AuthorName": "Lamp", "Role": {"Label": "assistant"}}
    return [
        {"Role": {"Label": "user"}, "Items": [{"$type": "TextContent", "Text": "Light on."}]},
        {**lamp, "Items": [call]},
        {"Role": {"Label": "tool"}, "Items": [result]},
        {**lamp, "Items": [{"$type": "TextContent", "Text": "It is on."}]},
    ]


def framework() -> list[Message]:
    """Agent Framework in Python, before its roles were texts."""
    call = {"type": "function_call", "call_id": "c1", "name": "Lights-turn_on", "arguments": '{"id": 3}'}
    result = {"type": "function_result", "call_id": "c1", "result": "on"}
    contents = (
        ("user", {"type": "text", "text": "Light on."}),
        ("assistant", call),
        ("tool", result),
        ("assistant", {"type": "text", "text": "It is on."}),
    )
    return [
        {
            "type": "chat_message",
            "role": {"type": "role", "value": role},
            "author_name": "Lamp" if role == "assistant" else None,
            "contents": [part],
        }
        for role, part in contents
    ]


@pytest.mark.parametrize("messages", [kernel(), extensions(), kernel_net(), framework()])
def test_parts_under_items_or_contents_are_said_and_called(tmp_path: Path, messages: list[Message]) -> None:
    (session,) = read_by_draft(as_json(tmp_path / "a.json", {"messages": messages}))
    assert outline(session.events) == SAID
    action = session.events[1].action
    assert action and action.arguments == {"id": 3}
    assert session.states[session.events[1].states["public"]] == {"observation": "on"}


@pytest.mark.parametrize("messages", [kernel(), extensions()])
def test_they_are_chats_where_their_roles_are_texts(tmp_path: Path, messages: list[Message]) -> None:
    """As chats they lost every word, and nothing said so."""
    session = one("chat", as_json(tmp_path / "a.json", {"messages": messages}))
    assert outline(session.events) == SAID


def test_a_function_that_a_person_refused_has_no_status_and_one_that_raised_has_failed(
    tmp_path: Path,
) -> None:
    calls = [
        {"type": "function_call", "call_id": f"c{n}", "name": "delete", "arguments": {"n": n}} for n in "12"
    ]
    contents = (
        ("user", {"type": "text", "text": "Tidy up."}),
        ("assistant", {"type": "function_approval_request", "id": "a1", "function_call": calls[0]}),
        ("user", {"type": "function_approval_response", "id": "a1", "approved": False}),
        ("assistant", calls[1]),
        ("tool", {"type": "function_result", "call_id": "c2", "result": None, "exception": "no disk"}),
    )
    messages = [{"role": role, "contents": [part]} for role, part in contents]
    session = one("chat", as_json(tmp_path / "a.json", {"messages": messages}))
    assert outline(session.events) == [
        ("user", "message", "Tidy up."),
        ("assistant", "action", "delete"),
        ("assistant", "confirm_request", "delete"),
        ("user", "confirm_reject", None),
        ("assistant", "action", "delete"),
    ]
    assert [event.status for event in session.events] == [None, None, None, None, "failed"]


@pytest.mark.parametrize("words", ["text", "message", "utterance", "said", "comment"])
@pytest.mark.parametrize("goods", [[{"type": "shoe", "size": 43}], [{"type": "image", "sku": 1}], []])
def test_words_beside_goods_are_what_is_said(tmp_path: Path, words: str, goods: list[Message]) -> None:
    """A list of what is in somebody's basket took the place of their words."""
    messages = [
        {"role": who, words: sentence(n), "items": goods} for n, who in enumerate(("user", "agent") * 2)
    ]
    (session,) = read_by_draft(as_json(tmp_path / "a.json", {"messages": messages}))
    assert [event.text for event in session.events] == [sentence(n) for n in range(4)]


def test_a_call_that_stands_beside_the_request_to_approve_it_is_called_once(tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "delete", "arguments": {}}
    asks = {"type": "function_approval_request", "id": "a1", "function_call": call}
    messages = [
        {"role": "user", "contents": [{"type": "text", "text": "Tidy up."}]},
        {"role": "assistant", "content": None, "contents": [call, asks]},
    ]
    session = one("chat", as_json(tmp_path / "a.json", {"messages": messages}))
    assert [event.kind for event in session.events] == ["message", "action", "confirm_request"]
