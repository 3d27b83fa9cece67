"""Turns the events of OpenHands before its software agent SDK into messages of a chat API.

An event is an `action` with `args`, or an `observation` with `content` and the id of its action (`cause`).
"""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]
ROLES = {"user": "user", "agent": "assistant", "environment": "system"}
SILENT = ("recall", "change_agent_state", "agent_state_changed", "condensation", "null")
"""Actions and observations that nobody says and that change nothing."""
OF_FRAMEWORK = ("thought", "blocking", "confirmation_state", "security_risk", "hidden", "is_confirmed")
"""Arguments that are not the tool's."""


def messages(item: Message) -> list[Message] | None:
    """The messages of an event, [] for one that nobody said or did; None where it is no such event."""
    action, observation, source = item.get("action"), item.get("observation"), item.get("source")
    if not isinstance(item.get("id"), int) or source not in ROLES or "role" in item:
        return None
    time = item.get("timestamp")
    if isinstance(observation, str) and "content" in item and action is None:
        return [] if observation in SILENT else [{**_result(item), "timestamp": time}]
    arguments = item.get("args")
    if not isinstance(action, str) or not isinstance(arguments, dict):
        return None
    if action in SILENT:
        return []
    if action in ("message", "system"):
        who = {"role": "system"} if action == "system" else {"role": ROLES[source], "name": source}
        return [{**who, "content": arguments.get("content") or "", "timestamp": time}]
    calls = _call(item, action, arguments)
    return [{"role": ROLES[source], "name": source, "content": calls, "timestamp": time}]


def _call(item: Message, action: str, arguments: Message) -> list[Message]:
    """The thought, the last words (of `finish`), and the call."""
    texts = [arguments.get("thought"), arguments.get("final_thought")]
    values = {key: value for key, value in arguments.items() if key not in OF_FRAMEWORK}
    call = {"type": "tool_use", "id": str(item["id"]), "name": action, "input": values}
    return [*({"type": "text", "text": text} for text in texts if isinstance(text, str) and text), call]


def _result(item: Message) -> Message:
    """The result of the action that caused it; a note where none did."""
    content, extras = item["content"], item.get("extras")
    metadata = extras.get("metadata") if isinstance(extras, dict) else None
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    if item["observation"] == "user_rejected":
        content = f"The user denied this operation with reason: {content}"
    result: Message = {"role": "tool", "content": content}
    if isinstance(cause := item.get("cause"), int):
        result["tool_call_id"] = str(cause)
    if item["observation"] == "error" or item.get("success") is False or (isinstance(code, int) and code > 0):
        result["is_error"] = True
    elif item.get("success") is True:
        result["is_error"] = False
    return result
