"""What Google's Agent Development Kit says in attributes of its own, as those of the GenAI conventions.

A model's call has its request and response as the Gemini API has them, a tool's run its arguments and what
came back. A span of merged tools repeats the runs of several.
"""

from __future__ import annotations

from typing import Any

from . import dialects
from .contents import plain_text
from .paths import decode_json

OWN = "gcp.vertex.agent."
NO_ID = "<not specified>"
MERGED = "(merged tools)"


def genai_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """A span's attributes, and those of the GenAI conventions that say the same."""
    own = {key[len(OWN) :]: _value(one) for key, one in attributes.items() if key.startswith(OWN)}
    if not own:
        return attributes
    if attributes.get("gen_ai.tool.name") == MERGED:
        return {**attributes, "gen_ai.operation.name": "merge"}
    if attributes.get("gen_ai.operation.name") == "execute_tool":
        run = {"gen_ai.tool.call.arguments": own.get("tool_call_args")}
        run["gen_ai.tool.call.result"] = own.get("tool_response")
        mark = attributes.get("gen_ai.tool.call.id")
        return {**run, **attributes, "gen_ai.tool.call.id": None if mark == NO_ID else mark}
    return {**_of_call(own), **attributes}


def _of_call(own: dict[str, Any]) -> dict[str, Any]:
    """The messages of a model's call; none where contents were not recorded."""
    request, response = own.get("llm_request"), own.get("llm_response")
    if not isinstance(request, dict) or not isinstance(items := request.get("contents"), list):
        return {}
    answer = response.get("content") if isinstance(response, dict) else None
    config = request.get("config")
    instruction = config.get("system_instruction") if isinstance(config, dict) else None
    parts = instruction.get("parts", instruction) if isinstance(instruction, dict) else instruction
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": [message for item in items for message in dialects.messages(item) or []],
        "gen_ai.output.messages": (dialects.messages(answer) or []) if answer else [],
        **({"gen_ai.system_instructions": plain_text(parts)} if parts else {}),
        **({"gen_ai.conversation.id": own["session_id"]} if own.get("session_id") else {}),
    }


def _value(value: Any) -> Any:
    """A value that was recorded as JSON in a text."""
    return decode_json(value) if isinstance(value, str) else value
