"""The content of a message and the arguments of a tool call, in whichever shape they were logged."""

from __future__ import annotations

from ....schemas import JsonValue, canonical_json
from ..base import json_value

UNSAID = ("reasoning", "thinking", "thoughts", "redacted_thinking")
"""Parts that nobody else sees."""
USE, USED = PARTS = "tool_use", "tool_result"
"""How the types of parts end that are calls and answers."""
_TEXTS = ("text", "input_text", "output_text", "refusal")


def arguments(raw: JsonValue) -> tuple[dict[str, JsonValue], str | None]:
    """(arguments by name, the text as logged where it does not say just that) of a tool call."""
    if raw is None or raw == "":
        return {}, None
    if isinstance(raw, str):
        try:
            value = json_value(raw)
        except ValueError:
            return {}, raw
        return (value, None) if isinstance(value, dict) else ({"argument": value}, raw)
    return (raw, None) if isinstance(raw, dict) else ({"argument": raw}, None)


def is_part(part: JsonValue, kind: str) -> bool:
    """Whether it is a call or an answer, also of a tool that the API uses itself (`server_tool_use`)."""
    name = part.get("type") if isinstance(part, dict) else None
    return isinstance(name, str) and f"_{name}".endswith(f"_{kind}")


def is_of_message(part: JsonValue) -> bool:
    """Whether it is a part of a message as chat APIs have them, and no data with a `type`: a text, a call, an
    answer, a thought, or an image or the like, with an object under its type or as its source."""
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        return False
    if kind in _TEXTS:
        return isinstance(part.get("refusal" if kind == "refusal" else "text"), str)
    medium = isinstance(part.get(kind), dict) or isinstance(part.get("source"), dict)
    return medium or kind in UNSAID or any(is_part(part, one) for one in PARTS)


def plain(content: JsonValue) -> str:
    """The text of a content: itself, its text parts one below the other, `[type]` for any other part, of an
    object that names no type and no text its JSON."""
    if content is None:
        return ""
    if isinstance(content, list):
        items = [part for part in content if part is not None]
        parts = [p for p in items if not (isinstance(p, dict) and p.get("type") in UNSAID)]
        return "\n".join(_part(part) for part in parts)
    return content if isinstance(content, str) else _part(content)


def _part(part: JsonValue) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else str(part)
    kind = str(part.get("type", "text"))
    text = part.get(kind) if kind == "refusal" else part.get("text", part.get("content"))
    if kind in _TEXTS and isinstance(text, str):
        return text
    return f"[{kind}]" if "type" in part else canonical_json(part)
