"""Turns messages of Letta, each with a `message_type`, into messages of a chat API.

What a message holds stands under a name of its type: `content` of what somebody says, `tool_call` or
`tool_calls`, which may wait for a person's approval, `tool_return`. Others, such as `reasoning_message`,
nobody says.
"""

from __future__ import annotations

from typing import Any

from ..fields.contents import ASKED, DECIDED

Message = dict[str, Any]
KIND, END = "message_type", "_message"
MARKS = {KIND, "id", "date"}
"""Fields that each message has, of which one by another framework lacks one."""
OTHER = {"role", "sender", "author"}
"""Fields for who speaks, of which no message has any."""
SPEAKERS = {"system_message": "system", "user_message": "user", "assistant_message": "assistant"}
OTHERS = ("reasoning", "hidden_reasoning", "event", "summary")
CALL, RETURN = "tool_call_message", "tool_return_message"
REQUEST, RESPONSE = "approval_request_message", "approval_response_message"


def messages(item: Message) -> list[Message] | None:
    """The message, [] for one that nobody says; None where it is none of Letta's."""
    kind = item.get(KIND)
    if not isinstance(kind, str) or not item.keys() >= MARKS or not item.keys().isdisjoint(OTHER):
        return None
    head = {"timestamp": item["date"], "name": item.get("name") or None}
    if kind in SPEAKERS and "content" in item:
        return [{"role": SPEAKERS[kind], **head, "content": item["content"]}]
    if kind in (CALL, REQUEST):
        calls = item.get("tool_calls") or [item.get("tool_call")]
        blocks = [_call(one) for one in calls if isinstance(one, dict)] if isinstance(calls, list) else []
        if kind == REQUEST:
            blocks += [{"type": ASKED, "id": item["id"], "call": one["id"]} for one in blocks]
        return [{"role": "assistant", **head, "content": blocks}]
    if kind == RESPONSE:
        blocks = [
            _result(one) if "tool_return" in one else _decision(one) for one in _each(item, "approvals")
        ]
        return [{"role": "user", **head, "content": blocks}]
    if kind == RETURN:
        results = [_result(one) for one in _each(item, "tool_returns")]
        return [{"role": "user", "timestamp": item["date"], "content": results}]
    return [] if kind.endswith(END) and kind.removesuffix(END) in OTHERS else None


def _each(item: Message, name: str) -> list[Message]:
    """Several answers of a message under that name, or the one that the message itself is."""
    several = item.get(name)
    return (
        [one for one in several if isinstance(one, dict)] if several and isinstance(several, list) else [item]
    )


def _decision(answer: Message) -> Message:
    mark, call = answer.get("approval_request_id"), answer.get("tool_call_id")
    fields = {"approved": answer.get("approve"), "reason": answer.get("reason")}
    return {"type": DECIDED, "id": mark, "call": call, **fields}


def _result(answer: Message) -> Message:
    result = {"type": "tool_result", "tool_use_id": answer.get("tool_call_id")}
    return result | {"content": answer.get("tool_return"), "status": answer.get("status")}


def _call(call: Message) -> Message:
    mark, keywords = call.get("tool_call_id"), call.get("arguments")
    return {"type": "tool_use", "id": mark, "name": call.get("name"), "input": keywords}
