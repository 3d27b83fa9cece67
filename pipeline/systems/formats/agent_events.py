"""Events of an agent's conversation as OpenHands' software agent SDK logs them, as messages of a chat API.

Told by their structure: a message under `llm_message`, a prompt under `system_prompt`, a call with its
`tool_call_id` and `thought`, and what came of it under the same id.
"""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]
NOTHING_SAID = "Event"
"""How the kind of an event ends that nobody said or did, such as a change of the conversation's state."""
SAID = ("content", "parts", "text", "message")
"""Where other logs of such kinds have what was said."""


def messages(item: Message) -> list[Message] | None:
    """The messages that an event amounts to; None where it is none of these."""
    if not isinstance(item.get("kind"), str) or not isinstance(item.get("source"), str) or "role" in item:
        return None
    time = item.get("timestamp")
    message = item.get("llm_message")
    if isinstance(message, dict) and isinstance(role := message.get("role"), str):
        # A message of the environment's has the role of a user for the model alone.
        role_for_model = "system" if item["source"] == "environment" else role
        return [{**message, "role": role_for_model, "timestamp": time}]
    if isinstance(prompt := item.get("system_prompt"), dict):
        return [{"role": "system", "content": [prompt], "timestamp": time}]
    if isinstance(item.get("tool_call_id"), str) and isinstance(item.get("tool_name"), str):
        return [{**(_call_message(item) if "thought" in item else _result_message(item)), "timestamp": time}]
    is_silent = item["kind"].endswith(NOTHING_SAID) and "id" in item and item.keys().isdisjoint(SAID)
    return [] if is_silent else None


def _call_message(item: Message) -> Message:
    """A call after what the agent says to it; what it says as it ends is an argument of the call."""
    thought, action, call = item["thought"], item.get("action"), item.get("tool_call")
    arguments = call.get("arguments") if isinstance(call, dict) else None
    fields = (
        {name: value for name, value in action.items() if name != "kind"} if isinstance(action, dict) else {}
    )
    last = fields.get("message") if item["tool_name"] == "finish" else None
    texts = [{"type": "text", "text": last}] if isinstance(last, str) and last else []
    tool_use = {
        "type": "tool_use",
        "id": item["tool_call_id"],
        "name": item["tool_name"],
        "input": arguments or fields,
    }
    return {
        "role": "assistant",
        "content": [*(thought if isinstance(thought, list) else []), *texts, tool_use],
    }


def _result_message(item: Message) -> Message:
    """What came of a call: an observation, an error of the agent's, or a person's refusal."""
    observation = item.get("observation")
    answer: Message = {"role": "tool", "tool_call_id": item["tool_call_id"], "content": item.get("error")}
    if isinstance(observation, dict):
        answer["content"] = observation.get("content")
        if isinstance(is_error := observation.get("is_error"), bool):
            answer["is_error"] = is_error
        code = observation.get("exit_code")
        if isinstance(code, int) and code > 0:
            answer["is_error"] = True
    elif isinstance(item.get("error"), str):
        answer["is_error"] = True
    elif isinstance(reason := item.get("rejection_reason"), str):
        answer["content"] = f"The user denied this operation with reason: {reason}"
    return answer
