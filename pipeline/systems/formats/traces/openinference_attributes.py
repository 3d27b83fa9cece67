"""OpenInference's attributes of a span as those of the GenAI conventions that say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..fields.paths import decode_json

KIND = "openinference.span.kind"
OPERATIONS = {"LLM": "chat", "TOOL": "execute_tool", "AGENT": "invoke_agent"}
OF_AGENT = ("agent.name", "input.", "output.", "llm.")
"""What begins an attribute that an agent's span has: that of a whole workflow is called one, too, and has
none."""
ROLES = {
    "tool-call": "assistant",
    "tool-response": "tool",
    "model": "assistant",
    "ai": "assistant",
    "human": "user",
}
"""Roles that frameworks give their messages, in the words of chat APIs."""
_MESSAGE = re.compile(r"llm\.(input|output)_messages\.(\d+)\.message\.(.+)")
_CALL = re.compile(r"tool_calls\.(\d+)\.tool_call\.(.+)")
_PART = re.compile(r"contents\.(\d+)\.message_content\.(.+)")


def genai_attributes(attributes: dict[str, Any], name: str) -> dict[str, Any]:
    """A span's attributes, and those of the GenAI conventions that say the same; `name` is the span's."""
    kind = str(attributes.get(KIND, "")).upper()
    if kind not in OPERATIONS or (
        kind == "AGENT" and not any(key.startswith(OF_AGENT) for key in attributes)
    ):
        return attributes
    translation: dict[str, Any] = {"gen_ai.operation.name": OPERATIONS[kind]}
    if "session.id" in attributes:
        translation["gen_ai.conversation.id"] = attributes["session.id"]
    if kind == "TOOL":
        translation |= _tool_attributes(attributes, name)
    else:
        translation |= _message_attributes(attributes, kind, name)
    return {**attributes, **translation}


def _message_attributes(attributes: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    """What a model call or an agent was told and said, as attributes of the GenAI conventions."""
    translation: dict[str, Any] = {}
    if kind == "AGENT":
        translation["gen_ai.agent.name"] = str(
            attributes.get("agent.name") or re.sub(r"\.run$", "", name) or "agent"
        )
    for side, fallback, role in (("input", "input.value", "user"), ("output", "output.value", "assistant")):
        messages = _messages(attributes, side) or _fallback_messages(attributes.get(fallback), role)
        if messages:
            translation[f"gen_ai.{side}.messages"] = messages
    if "llm.model_name" in attributes:
        translation["gen_ai.request.model"] = attributes["llm.model_name"]
    for ours, theirs in (("input_tokens", "prompt"), ("output_tokens", "completion")):
        if isinstance(count := attributes.get(f"llm.token_count.{theirs}"), (int, float)):
            translation[f"gen_ai.usage.{ours}"] = int(count)
    return translation


def _tool_attributes(attributes: dict[str, Any], name: str) -> dict[str, Any]:
    arguments = attributes.get("input.value", attributes.get("tool.parameters"))
    translation = {"gen_ai.tool.name": str(attributes.get("tool.name") or name or "tool")}
    if arguments is not None:
        translation["gen_ai.tool.call.arguments"] = arguments
    if "tool_call.id" in attributes:
        translation["gen_ai.tool.call.id"] = str(attributes["tool_call.id"])
    if "output.value" in attributes:
        translation["gen_ai.tool.call.result"] = attributes["output.value"]
    return translation


def _messages(attributes: dict[str, Any], side: str) -> list[dict[str, Any]]:
    """Messages that stand as numbered attributes, or as a list."""
    messages = _value(attributes.get(f"llm.{side}_messages"))
    if isinstance(messages, list):
        return [_message(_flat_attributes(one)) for one in messages if isinstance(one, dict)]
    parts: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if (match := _MESSAGE.fullmatch(key)) and match[1] == side:
            parts.setdefault(int(match[2]), {})[match[3]] = value
    return [_message(one) for _, one in sorted(parts.items())]


def _message(parts: dict[str, Any]) -> dict[str, Any]:
    """A message of a chat API from its attributes."""
    role = str(parts.get("role", "user"))
    message: dict[str, Any] = {"role": ROLES.get(role, role)}
    texts: dict[int, str] = {}
    calls: dict[int, dict[str, Any]] = {}
    for key, value in parts.items():
        if (match := _PART.fullmatch(key)) and match[2] == "text":
            texts[int(match[1])] = str(value)
        elif match := _CALL.fullmatch(key):
            calls.setdefault(int(match[1]), {})[match[2]] = value
    content = parts.get("content")
    body = content if content is not None else "\n".join(text for _, text in sorted(texts.items())) or None
    message["content"] = body.strip() if isinstance(body, str) else _value(body)
    if calls:
        message["tool_calls"] = [
            {
                "id": call.get("id"),
                "function": {
                    "name": str(call.get("function.name", "tool")),
                    "arguments": call.get("function.arguments"),
                },
            }
            for _, call in sorted(calls.items())
        ]
    if "tool_call_id" in parts:
        message["tool_call_id"] = str(parts["tool_call_id"])
    return message


def _fallback_messages(value: Any, role: str) -> list[dict[str, Any]]:
    """What stands in place of messages: a request or answer of an API, a task, or a text."""
    inside = _value(value)
    if isinstance(inside, dict):
        if isinstance(inside.get("messages"), list):
            return [one for one in inside["messages"] if isinstance(one, dict) and "role" in one]
        inside = next(
            (inside[k] for k in ("task", "input", "question", "content", "text") if inside.get(k)), inside
        )
    if inside in (None, ""):
        return []
    return [{"role": role, "content": inside.strip() if isinstance(inside, str) else str(value)}]


def _flat_attributes(message: dict[str, Any]) -> dict[str, Any]:
    """A message's attributes by their dotted names, from objects within objects; without those that are null,
    as a table has them for the attributes that other messages have."""
    leaves = _leaves(message, "")
    return {key.removeprefix("message."): value for key, value in leaves if value is not None}


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        for number, one in enumerate(value):
            yield from _leaves(one, f"{name}.{number}")
    else:
        yield name, value


def _value(value: Any) -> Any:
    """A value that may have been recorded as JSON in a text."""
    return decode_json(value) if isinstance(value, str) else value
