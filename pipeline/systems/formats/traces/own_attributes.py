"""What frameworks say in attributes of their own, as those of the GenAI conventions: Google's Agent
Development Kit and Vercel's AI SDK.

The kit has a model's request and response as the Gemini API has them, and a tool's arguments and what came
back; a span of merged tools repeats the runs of several. The SDK has the messages that went to a model's
provider, the text and the calls that came back, and a span for each run of a tool.
"""

from __future__ import annotations

from typing import Any

from ..fields.contents import plain_text
from ..fields.paths import decode_json
from ..messages import dialects
from ..messages.tool_parts import CALL

KIT, SDK = "gcp.vertex.agent.", "ai."
NO_ID = "<not specified>"
MERGED = "(merged tools)"
Attributes = dict[str, Any]


def genai_attributes(attributes: Attributes) -> Attributes:
    """A span's attributes, and those of the GenAI conventions that say the same."""
    kit, sdk = _below(attributes, KIT), _below(attributes, SDK)
    if kit:
        return {**_of_kit(kit, attributes), **attributes} | _without_id(attributes)
    return {**_of_sdk(sdk, attributes), **attributes} if sdk else attributes


def _below(attributes: Attributes, begin: str) -> Attributes:
    """The attributes whose names begin so, without that; those that are JSON in a text decoded."""
    own = {key[len(begin) :]: one for key, one in attributes.items() if key.startswith(begin)}
    return {key: decode_json(one) if isinstance(one, str) else one for key, one in own.items()}


def _without_id(attributes: Attributes) -> Attributes:
    """What the kit's attributes say otherwise than they mean."""
    if attributes.get("gen_ai.tool.name") == MERGED:
        return {"gen_ai.operation.name": "merge"}
    return {"gen_ai.tool.call.id": None} if attributes.get("gen_ai.tool.call.id") == NO_ID else {}


def _of_kit(own: Attributes, attributes: Attributes) -> Attributes:
    """A tool's run or a model's call; nothing where contents were not recorded."""
    if attributes.get("gen_ai.operation.name") == "execute_tool":
        return _of_tool(own.get("tool_call_args"), own.get("tool_response"))
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


def _of_sdk(own: Attributes, attributes: Attributes) -> Attributes:
    """A tool's run or a model's call; nothing for a span around these."""
    if isinstance(name := own.get("toolCall.name"), str):
        run = _of_tool(own.get("toolCall.args"), own.get("toolCall.result"))
        mark = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": own.get("toolCall.id")}
        return {"gen_ai.operation.name": "execute_tool", **mark, **run}
    if not isinstance(messages := own.get("prompt.messages"), list):
        return {}
    text = attributes.get(f"{SDK}response.text") or attributes.get(f"{SDK}response.object")
    calls = own.get("response.toolCalls")
    words = [{"type": "text", "text": plain_text(text)}] if text else []
    blocks = [{**call, "type": CALL} for call in calls or [] if isinstance(call, dict)]
    content = [*words, *blocks]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages,
        "gen_ai.output.messages": [{"role": "assistant", "content": content}] if content else [],
    }


def _of_tool(arguments: Any, result: Any) -> Attributes:
    return {"gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": result}
