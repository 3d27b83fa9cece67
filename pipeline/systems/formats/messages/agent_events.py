"""Turns the events that OpenHands' software agent SDK logs into messages of a chat API, and passes over those
of AutoGen that nobody hears.

Events are recognised by their structure: a message under `llm_message`, a prompt under `system_prompt`, a
call with its `tool_call_id` and `thought`, and its result under the same id.
"""

from __future__ import annotations

from typing import Any

from ..fields.contents import RUNNER

Message = dict[str, Any]
NOTHING_SAID = ("Event", "Condensation", "CondensationRequest")
"""Suffixes of the kinds of events that nobody said or did, such as a change of the conversation's state."""
SUMMARY, RUN = "ToolCallSummaryMessage", "CodeExecutionEvent"
"""Types of AutoGen's: a message that repeats calls beside its text, and code that was run."""
REPEATED = "is_repeated"
"""Where a message of calls says that they count only where they were not told before."""
UNHEARD = (
    *("ThoughtEvent", "ModelClientStreamingChunkEvent", "MemoryQueryEvent", "UserInputRequestedEvent"),
    *("SelectSpeakerEvent", "SelectorEvent"),
)
"""Types of AutoGen's events that are no message to the team: reasoning, pieces of a message that follows
whole, what the framework asks itself."""
SOURCES = ("agent", "user", "environment", "hook")
"""Who events of OpenHands come from."""
KINDS = ("action", "observation", "kind")
"""Fields of which an event of OpenHands has one, with its kind."""
SAID = ("content", "parts", "text", "message")
"""Fields in which other logs with events of such kinds have what was said."""


def messages(item: Message) -> list[Message] | None:
    """The messages of an event, [] for one that nobody said or did; None where it is no such event."""
    if item.get("type") in UNHEARD and isinstance(item.get("source"), str):
        return []
    if item.get("type") in (SUMMARY, RUN) and isinstance(item.get("source"), str) and "role" not in item:
        return _messages_of_autogen(item)
    if not isinstance(item.get("kind"), str) or not isinstance(item.get("source"), str) or "role" in item:
        return None
    time = item.get("timestamp")
    message = item.get("llm_message")
    if isinstance(message, dict) and isinstance(role := message.get("role"), str):
        # The environment's messages have the role of a user for the model alone.
        role_for_model = "system" if item["source"] == "environment" else role
        return [{**message, "role": role_for_model, "timestamp": time}]
    if isinstance(prompt := item.get("system_prompt"), dict):
        return [{"role": "system", "content": [prompt], "timestamp": time}]
    if isinstance(item.get("tool_call_id"), str) and isinstance(item.get("tool_name"), str):
        return [{**(_call_message(item) if "thought" in item else _result_message(item)), "timestamp": time}]
    is_silent = item["kind"].endswith(NOTHING_SAID) and "id" in item and item.keys().isdisjoint(SAID)
    return [] if is_silent else None


def is_event(item: Message) -> bool:
    """Whether an item is an event of OpenHands, known or not: with an id, a time, who it came from and what
    kind it is, and no role."""
    has_mark = isinstance(item.get("id"), (str, int)) and isinstance(item.get("timestamp"), str)
    has_kind = any(isinstance(item.get(key), str) for key in KINDS)
    return has_mark and has_kind and item.get("source") in SOURCES and "role" not in item


def _messages_of_autogen(item: Message) -> list[Message]:
    """A summary's calls and results, which were told before as a rule, and its message; or the run of an
    agent's code as a call with its result."""
    head = {"role": "assistant", "name": item["source"], "timestamp": item.get("created_at")}
    if item["type"] == SUMMARY:
        calls, results = (_objects(item.get(key)) for key in ("tool_calls", "results"))
        blocks: list[Message] = [
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call.get("arguments")}
            for call in calls
            if isinstance(call.get("id"), str) and isinstance(call.get("name"), str)
        ]
        names = {block["id"] for block in blocks}
        blocks += [
            {"type": "tool_result", "tool_use_id": one["call_id"], "content": one.get("content")}
            | ({"is_error": one["is_error"]} if isinstance(one.get("is_error"), bool) else {})
            for one in results
            if isinstance(one.get("call_id"), str) and one["call_id"] in names
        ]
        repetition = [{**head, REPEATED: True, "content": blocks}] if blocks else []
        return [*repetition, {**head, "content": item.get("content")}]
    result = item.get("result")
    output = result if isinstance(result, dict) else {"output": item.get("content")}
    code = output.get("exit_code")
    answer: Message = {"type": "tool_result", "tool_use_id": None, "content": output.get("output")}
    if isinstance(code, int):
        answer["is_error"] = code != 0
    return [{**head, "content": [{"type": "tool_use", "id": None, "name": RUNNER, "input": {}}, answer]}]


def _objects(value: Any) -> list[Message]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _call_message(item: Message) -> Message:
    """The assistant's message of a call: the thought, the last words (an argument of `finish`), the call."""
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
    """The tool's message of a call's result: an observation, an error of the agent's, or a person's
    refusal."""
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
