"""Turns messages of Letta, each with a `message_type`, into messages of a chat API.

What a message holds stands under a name of its type: `content` of what somebody says, `tool_call` or
`tool_calls`, which may wait for a person's approval, `tool_return`. Others, such as `reasoning_message`,
nobody says.
"""

from __future__ import annotations

from typing import Any

from .contents import ASKED, DECIDED

Message = dict[str, Any]
KIND, END = "message_type", "_message"
SPEAKERS = {"system_message": "system", "user_message": "user", "assistant_message": "assistant"}
OTHERS = ("reasoning", "hidden_reasoning", "event", "summary")
CALL, RETURN = "tool_call_message", "tool_return_message"
REQUEST, RESPONSE = "approval_request_message", "approval_response_message"


def messages(item: Message) -> list[Message] | None:
    """The message, [] for one that nobody says; None where it is none of Letta's."""
    kind = item.get(KIND)
    if not isinstance(kind, str) or "role" in item or not isinstance(item.get("id"), str):
        return None
    head = {"timestamp": item.get("date"), "name": item.get("name") or None}
    if kind in SPEAKERS and "content" in item:
        return [{"role": SPEAKERS[kind], **head, "content": item["content"]}]
    if kind in (CALL, REQUEST):
        calls = item.get("tool_calls") or [item.get("tool_call")]
        blocks = [_call(one) for one in calls if isinstance(one, dict)] if isinstance(calls, list) else []
        if kind == REQUEST:
            blocks += [{"type": ASKED, "id": item["id"], "call": one["id"]} for one in blocks]
        return [{"role": "assistant", **head, "content": blocks}]
    if kind == RESPONSE:
        answer = {"id": item.get("approval_request_id"), "approved": item.get("approve")}
        block = {"type": DECIDED, **answer, "reason": item.get("reason")}
        return [{"role": "user", **head, "content": [block]}]
    if kind == RETURN:
        result = {"type": "tool_result", "tool_use_id": item.get("tool_call_id")}
        result |= {"content": item.get("tool_return"), "is_error": item.get("status") == "error"}
        return [{"role": "user", "timestamp": item.get("date"), "content": [result]}]
    return [] if kind.removesuffix(END) in OTHERS else None


def _call(call: Message) -> Message:
    mark, keywords = call.get("tool_call_id"), call.get("arguments")
    return {"type": "tool_use", "id": mark, "name": call.get("name"), "input": keywords}
