"""Turns the events that GitHub Copilot's command line logs into messages of a chat API.

An event has its `type`, an `id`, the `parentId` of the one before it, a `timestamp` and its `data`.
"""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]
ENVELOPE = {"type", "data", "id", "timestamp", "parentId"}
SAID = {"user.message": "user", "assistant.message": "assistant", "system.message": "system"}
RESULT = "tool.execution_complete"
SILENT = (
    *("session.start", "session.resume", "session.info", "session.model_change", "session.shutdown"),
    *("assistant.turn_start", "assistant.turn_end", "assistant.reasoning", "assistant.usage"),
    *("tool.execution_start", "hook.start", "hook.end"),
)
"""Types of events that nobody says and that change nothing; a call is told before its execution."""
AREAS = {"session", "assistant", "user", "system", "tool", "hook", "subagent", "skill", "abort"}
"""What the types of events begin with."""


def messages(item: Message) -> list[Message] | None:
    """The messages of an event, [] for one that nobody said or did; None where it is no such event."""
    kind, data = item.get("type"), item.get("data")
    if not item.keys() >= ENVELOPE or "role" in item or not isinstance(data, dict):
        return None
    if kind in SILENT:
        return []
    time = item["timestamp"]
    if kind in SAID:
        if not isinstance(data.get("content"), str) and not _calls(data):
            return None
        return [{"role": SAID[kind], "content": [*_texts(data), *_calls(data)], "timestamp": time}]
    if kind != RESULT or not isinstance(data.get("toolCallId"), str):
        return None
    result, error = data.get("result"), data.get("error")
    content = result.get("content") if isinstance(result, dict) else result
    if content is None and isinstance(error, dict):
        content = error.get("message")
    message: Message = {"role": "tool", "tool_call_id": data["toolCallId"], "content": content}
    if isinstance(data.get("success"), bool):
        message["is_error"] = not data["success"]
    return [{**message, "timestamp": time}]


def is_event(item: Message) -> bool:
    """Whether an item is such an event of a kind that is not read, with no words in it."""
    kind, data = item.get("type"), item.get("data")
    is_framed = item.keys() >= ENVELOPE and "role" not in item and isinstance(kind, str)
    return is_framed and isinstance(data, dict) and kind not in SAID and str(kind).split(".")[0] in AREAS


def _texts(data: Message) -> list[Message]:
    text = data.get("content")
    return [{"type": "text", "text": text}] if isinstance(text, str) and text else []


def _calls(data: Message) -> list[Message]:
    calls = data.get("toolRequests")
    return [
        {
            "type": "tool_use",
            "id": call.get("toolCallId"),
            "name": call["name"],
            "input": call.get("arguments"),
        }
        for call in (calls if isinstance(calls, list) else [])
        if isinstance(call, dict) and isinstance(call.get("name"), str)
    ]
