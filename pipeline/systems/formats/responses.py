"""Items of OpenAI's Responses API between its messages: calls of functions and of its own tools, and what
came of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....schemas import JsonValue
from ..base import field
from .contents import plain
from .conversation import Answer, Call, Said
from .dialects import first_said

CALL, OUTPUT = "_call", "_call_output"
"""How the types of calls, and of what came of them, end."""
_FUNCTION_CALLS = ("function_call", "custom_tool_call", "tool_call")
"""Calls of what has a name; others are of the tool that their type names."""
_ARGUMENTS = ("arguments", "input", "action", "operation", "code", "queries")
_RESULTS = ("output", "outputs", "results")
"""What came of a call that the API made itself: it stands in the call."""
Item = dict[str, JsonValue]


def is_exchange(value: Any) -> bool:
    """Whether an object has what went in and the items that came out."""
    items = value.get("output") if isinstance(value, dict) and "messages" not in value else None
    if not isinstance(items, list) or not isinstance(value.get("input"), (str, list)):
        return False
    kinds = [one.get("type") if isinstance(one, dict) else None for one in items]
    if not kinds:  # it failed
        return value.get("object") == "response" or "model" in value
    return all(isinstance(kind, str) for kind in kinds) and any(
        kind == "message" or str(kind).endswith((CALL, OUTPUT)) for kind in kinds
    )


def exchange(value: dict[str, Any]) -> list[Any]:
    """The items of such an object in their order."""
    request, instructions = value["input"], value.get("instructions")
    system = (
        [{"role": "system", "content": instructions}]
        if isinstance(instructions, str) and instructions
        else []
    )
    system = instructions if isinstance(instructions, list) else system
    items = [{"role": "user", "content": request}] if isinstance(request, str) else request
    return [*system, *items, *value["output"]]


def said_in(item: Item) -> Said | None:
    """A call, or what came of one; None for what is neither. ValueError for a call without a name."""
    kind = str(item.get("type"))
    if "role" in item or "content" in item or not kind.endswith((CALL, OUTPUT)):
        return None
    if kind.endswith(OUTPUT):
        has_failed = True if item.get("status") == "failed" else None
        return Said("tool", answers=[Answer(_output(item.get("output")), _call_id(item), has_failed)])
    has_name = kind in (CALL, *_FUNCTION_CALLS) or isinstance(item.get("name"), str)
    name = field(item, "name", str) if has_name else kind.removesuffix(CALL)
    call = Call(name, first_said(item, _ARGUMENTS), _call_id(item))
    return Said(
        "assistant", calls=[call], answers=[] if kind in _FUNCTION_CALLS else list(_call_answers(item))
    )


def _output(output: JsonValue) -> JsonValue:
    """The text of a list of parts, anything else as it is."""
    parts = isinstance(output, list) and all(isinstance(one, dict) and "type" in one for one in output)
    return plain(output) if parts else output


def _call_answers(item: Item) -> Iterator[Answer]:
    error, result = item.get("error"), first_said(item, _RESULTS)
    has_failed = True if error or item.get("status") == "failed" else None
    if result is not None or has_failed:
        yield Answer(error if result is None else result, _call_id(item), has_failed)


def _call_id(item: Item) -> str | None:
    mark = item.get("call_id") or item.get("id")
    return mark if isinstance(mark, str) else None
