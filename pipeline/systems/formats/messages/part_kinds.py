"""Turns messages whose parts say by their `part_kind` who speaks, as Pydantic AI stores them, into messages
of a chat API.

A request holds what the model was told (instructions, a person's words, results of tools), a response what it
said and called.
"""

from __future__ import annotations

from typing import Any

from ..fields.values import utterance

Message = dict[str, Any]
KIND = "part_kind"
INSTRUCTIONS = "instructions"
"""Where a request has what the model is told each time again, and the kind of the message with it."""
SPEAKERS = {"system-prompt": "system", "user-prompt": "user"}
BUILT_IN = "builtin-"
"""Prefix of the kinds of calls and results of a tool that the model's provider runs."""


def messages(item: Message) -> list[Message] | None:
    """The messages of a request or response, [] for one in which nobody says anything; None for any other
    item."""
    parts = item.get("parts")
    if item.get("kind") not in ("request", "response") or not isinstance(parts, list):
        return None
    if "role" in item and not parts:
        return None
    if not all(isinstance(part, dict) and isinstance(part.get(KIND), str) for part in parts):
        return None
    time = item.get("timestamp")
    if item["kind"] == "request":
        words = item.get(INSTRUCTIONS)
        is_text = isinstance(words, str) and words != ""
        head = [{"role": "system", "content": words, KIND: INSTRUCTIONS}] if is_text else []
        others = (message for part in parts for message in _told(part))
        return [{"timestamp": time, **message} for message in (*head, *others)]
    blocks = [block for part in parts for block in _said(part)]
    return [{"role": "assistant", "content": blocks, "timestamp": time}] if blocks else []


def _told(part: Message) -> list[Message]:
    """The message of a part of a request."""
    kind, content = part[KIND], part.get("content")
    at = {"timestamp": part["timestamp"]} if part.get("timestamp") else {}
    if kind in SPEAKERS:
        return [{"role": SPEAKERS[kind], "content": _words(content), **at}]
    if kind not in ("tool-return", "retry-prompt"):
        return []
    if kind == "retry-prompt" and not part.get("tool_name"):  # the framework asks for another answer
        return [{"role": "system", "content": utterance(content), **at}]
    failure = {"is_error": True} if kind == "retry-prompt" else {}
    return [{"role": "tool", "tool_call_id": part.get("tool_call_id"), "content": content, **failure, **at}]


def _said(part: Message) -> list[Message]:
    """The block of a part of a response; none for reasoning."""
    kind, mark = part[KIND].removeprefix(BUILT_IN), part.get("tool_call_id")
    if kind == "text":
        return [{"type": "text", "text": part.get("content") or ""}]
    if kind == "tool-call":
        return [{"type": "tool_use", "id": mark, "name": part.get("tool_name"), "input": part.get("args")}]
    if kind == "tool-return":
        return [{"type": "tool_result", "tool_use_id": mark, "content": part.get("content")}]
    return []


def _words(content: Any) -> str | None:
    """What a person said; of a list its texts, and what else is in it by its kind."""
    if not isinstance(content, list):
        return utterance(content)
    parts = [
        one
        if isinstance(one, str)
        else f"[{one['kind']}]"
        if isinstance(one, dict) and "kind" in one
        else str(one)
        for one in content
    ]
    return "\n".join(parts)
