"""The messages in a span's input or output, wherever they are in it, else the text that it is."""

from __future__ import annotations

from typing import Any

from .....schemas import canonical_json
from ..fields.contents import UNSAID
from ..messages import dialects, responses, turns

DEPTH = 6
TEXTS = (
    *("input", "question", "query", "prompt", "prompts", "task", "user_input", "request"),
    *("output", "answer", "response", "completion", "result", "text", "content", "value"),
)
"""Where an object has what was said, the likeliest first."""
Message = dict[str, Any]


def messages_in(value: Any, role: str) -> list[Message]:
    """The messages of a chat API in a value; where there are none, its text as one of that role."""
    value = turns.decode_value(value)
    if messages := _messages(value, 0):
        return messages
    text = _text(value)
    return [{"role": role, "content": text}] if text else []


def arguments_in(value: Any) -> Any:
    """A tool's arguments: an object, maybe as its text, or alone within another one."""
    inside = turns.decode_value(value)
    if isinstance(inside, dict) and len(inside) == 1:
        only = turns.decode_value(next(iter(inside.values())))
        if isinstance(only, dict):
            return only
    return inside


def _messages(value: Any, depth: int) -> list[Message]:
    """The longest list of messages in a value."""
    if depth > DEPTH:
        return []
    if (one := _message(value)) is not None:
        return one
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        each = [_message(one) for one in value]
        if all(one is not None for one in each):
            return [message for one in each for message in one or []]
    if isinstance(value, (list, dict)):
        inner = value.values() if isinstance(value, dict) else value
        some = [
            _messages(turns.decode_value(one), depth + 1)
            for one in inner
            if isinstance(one, (dict, list, str))
        ]
        return max(some, key=len, default=[])
    return []


def _message(value: Any) -> list[Message] | None:
    """One message as those of a chat API; None for what is none. Items of the Responses API stay as they
    are."""
    if not isinstance(value, dict):
        return None
    if responses.is_item(value):
        return [] if value["type"] in UNSAID else [value]
    return dialects.messages(value)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return "\n\n".join(value)
    if isinstance(value, dict):
        inner = next((value[key] for key in TEXTS if value.get(key) not in (None, "", [], {})), None)
        if inner is None and len(value) == 1:
            inner = next(iter(value.values()))
        if inner is not None:
            return _text(inner)
    return canonical_json(value) if value else None
