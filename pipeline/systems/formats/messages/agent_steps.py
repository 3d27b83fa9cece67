"""Turns the events of OpenHands before its software agent SDK, and the actions in SWE-agent's history, into
messages of a chat API.

An event is an `action` with `args`, or an `observation` with `content` and the id of its action (`cause`). In
a history, a message with its `message_type` has its command as `action`.
"""

from __future__ import annotations

from typing import Any

from ..fields.contents import plain_text

Message = dict[str, Any]
ROLES = {"user": "user", "agent": "assistant", "environment": "system"}
SILENT = ("recall", "change_agent_state", "agent_state_changed", "condensation", "null")
"""Actions and observations that nobody says and that change nothing."""
KIND, SEEN = "message_type", "observation"
"""Where a message of a history says what it is, and its word for what came of an action."""
OF_FRAMEWORK = ("thought", "blocking", "confirmation_state", "security_risk", "hidden", "is_confirmed")
"""Arguments that are not the tool's."""


def messages(item: Message) -> list[Message] | None:
    """The messages of an event, [] for one that nobody said or did; None where it is no such event."""
    action, observation, source = item.get("action"), item.get("observation"), item.get("source")
    if item.get(KIND) == "action" and item.get("role") == "assistant" and not item.get("tool_calls"):
        return _command(item, action) if isinstance(action, str) and action.strip() else None
    if not isinstance(item.get("id"), int) or "role" in item:
        return None
    if not isinstance(source, str) or source not in ROLES:
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


def _command(item: Message, action: str) -> list[Message]:
    """The message of an agent that wrote a command: its thought, else all that it wrote, and the call."""
    text = item.get("thought") or plain_text(item.get("content"))
    call = {"type": "tool_use", "id": None, "name": action.split()[0], "input": {"command": action.strip()}}
    rest = {key: value for key, value in item.items() if key not in ("action", KIND)}
    return [{**rest, "content": [*([{"type": "text", "text": text}] if text else []), call]}]


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
