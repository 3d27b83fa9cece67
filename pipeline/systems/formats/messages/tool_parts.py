"""Turns parts of messages that are calls of tools, their results, and what people say to them, into parts as
Anthropic's API has them, and approvals; Vercel's AI SDK has such parts.

A question whether a call may run, and its answer, have the `approvalId` in common; in messages for a page
both stand in the call, under `approval`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..fields.contents import ASKED, DECIDED

Part = dict[str, Any]
CALL, RESULT, REQUEST, RESPONSE = (
    *("tool-call", "tool-result"),
    *("tool-approval-request", "tool-approval-response"),
)
PAYLOADS = {CALL: ("input", "args"), RESULT: ("output", "result")}
"""Fields of which a call or result has one, which tells those without an id from words."""
DENIED = "execution-denied"
"""Type of the output of a call that a person did not let run."""
OUTPUTS = ("text", "json", "content", "error-text", "error-json")
"""Types of the others, whose value is what came back."""


def is_tool_part(part: Any) -> bool:
    """Whether it is a call, a result, or an approval in a part of its own."""
    if not isinstance(part, dict):
        return False
    kind, mark = part.get("type"), part.get("toolCallId")
    if kind in (REQUEST, RESPONSE):
        return isinstance(part.get("approvalId"), str)
    if kind not in (CALL, RESULT) or mark is not None:
        return kind in (CALL, RESULT) and isinstance(mark, str)
    return isinstance(part.get("toolName"), str) and any(key in part for key in PAYLOADS[kind])


def block(part: Part) -> Part:
    """The part as a block: a call, a result, a question or an answer."""
    kind, mark = part["type"], part.get("toolCallId")
    if kind == CALL:
        arguments = part.get("input", part.get("args"))
        return {"type": "tool_use", "id": mark, "name": part.get("toolName"), "input": arguments}
    if kind == RESULT:
        return {"type": "tool_result", "tool_use_id": mark, **_result(part)}
    if kind == REQUEST:
        return {"type": ASKED, "id": part["approvalId"], "call": mark}
    return _decision(part["approvalId"], part)


def approvals(call: Part) -> Iterator[Part]:
    """The question whether a call may run, and its answer, where they stand in the call."""
    approval = call.get("approval")
    if isinstance(approval, dict) and isinstance(name := approval.get("id"), str):
        yield {"type": ASKED, "id": name, "call": call.get("toolCallId")}
        if isinstance(approval.get("approved"), bool):
            yield _decision(name, approval)


def _decision(name: str, fields: Part) -> Part:
    return {"type": DECIDED, "id": name, "approved": fields.get("approved"), "reason": fields.get("reason")}


def _result(part: Part) -> Part:
    """The content of a result, and `is_error` where it says that it failed."""
    if "output" not in part:  # before version 5, what came back as it is
        content, has_failed = part.get("result"), part.get("isError") is True
        return {"content": content, "is_error": True} if has_failed else {"content": content}
    output = part["output"]
    kind = output.get("type") if isinstance(output, dict) else None
    if isinstance(output, dict) and kind == DENIED:
        reason = output.get("reason")
        return {"content": f"The user denied this operation{f' with reason: {reason}' if reason else ''}"}
    is_typed = isinstance(output, dict) and kind in OUTPUTS and "value" in output
    content = output["value"] if is_typed else output
    return {"content": content, "is_error": True} if str(kind).startswith("error-") else {"content": content}
