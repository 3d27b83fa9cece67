"""The content of a message and the arguments of a tool call, in whichever shape they were logged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from .....schemas import JsonValue, canonical_json
from ...base import json_value

UNSAID = ("reasoning", "thinking", "thoughts", "redacted_thinking", "reasoning_recap")
"""Types of parts that nobody but the model sees."""
USE, USED = PARTS = "tool_use", "tool_result"
"""Suffixes of the types of parts that are calls and answers."""
ASKED, DECIDED = APPROVALS = "approval_request", "approval_response"
"""Suffixes of the types of questions whether a call may run, and of people's answers."""
RUNNER = "code_execution"
"""The name of the tool that runs code, where the log names none."""
_TEXTS = ("text", "input_text", "output_text", "refusal")
_RUNS = {
    *("plain", "bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "blockquote"),
    *("link", "text_link", "mention", "mention_name", "hashtag", "cashtag", "bot_command"),
    *("email", "phone", "bank_card", "custom_emoji"),
}
"""Types of the runs into which Telegram cuts a text wherever its look changes."""


def arguments(raw: JsonValue) -> tuple[dict[str, JsonValue], str | None]:
    """(arguments by name, the logged text where it is no JSON object) of a tool call; a value that is no
    object is the argument `argument`."""
    if raw is None or raw == "":
        return {}, None
    if isinstance(raw, str):
        try:
            value = json_value(raw)
        except ValueError:
            return {}, raw
        return (value, None) if isinstance(value, dict) else ({"argument": value}, raw)
    return (raw, None) if isinstance(raw, dict) else ({"argument": raw}, None)


def is_part(part: JsonValue, *kinds: str) -> bool:
    """Whether a part's type ends in one of `kinds`, as `server_tool_use` (of a tool that the API runs itself)
    ends in `tool_use`."""
    name = part.get("type") if isinstance(part, dict) else None
    return isinstance(name, str) and (name in kinds or name.endswith(_endings(kinds)))


@cache
def _endings(kinds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"_{kind}" for kind in kinds)


def is_message_part(part: JsonValue) -> bool:
    """Whether it is a part of a chat API's message, and not other data with a `type`: a text, a call, an
    answer, reasoning, or an image or the like, with an object under its type or as its `source`."""
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        return False
    if kind in _TEXTS:
        return isinstance(part.get("refusal" if kind == "refusal" else "text"), str)
    medium = isinstance(part.get(kind), dict) or isinstance(part.get("source"), dict)
    return medium or kind in UNSAID or is_part(part, *PARTS, *APPROVALS)


def plain_text(content: JsonValue) -> str:
    """A content as text: its text parts one a line, or joined where they are runs of one text; `[type]` for
    any other part, JSON for an object without a type and a text. Reasoning is left out."""
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list) else [content]
    parts = [p for p in items if p is not None and not (isinstance(p, dict) and p.get("type") in UNSAID)]
    return ("" if are_runs(parts) else "\n").join(_part(part) for part in parts)


def are_runs(parts: Sequence[JsonValue]) -> bool:
    """Whether parts are the runs of one text."""
    # The first part of nearly every content says that it is none.
    if not parts or not (isinstance(parts[0], str) or _is_run(parts[0])):
        return False
    return any(map(_is_run, parts)) and all(isinstance(part, str) or _is_run(part) for part in parts)


def _is_run(part: JsonValue) -> bool:
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        return False
    return kind in _RUNS and isinstance(part.get("text"), str)


def _part(part: JsonValue) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else str(part)
    kind = str(part.get("type", "text"))
    text = part.get(kind) if kind == "refusal" else part.get("text", part.get("content"))
    if isinstance(text, str) and (kind in _TEXTS or _is_run(part)):
        return text
    return f"[{kind}]" if "type" in part else canonical_json(part)
