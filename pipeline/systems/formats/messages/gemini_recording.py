"""Recordings of Gemini's command line in JSON Lines as a conversation.

The first line says whose the session is. A message is written anew, whole and with the same id, whenever its
calls or tokens change; `$rewindTo` takes out a message and all after it; `$set` changes what the first line
said, or has the model's context, which counts only where no message stands on a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import dialects

Message = dict[str, Any]
HEAD = {"sessionId", "projectHash", "startTime"}
"""Keys of the first line, beside no messages."""


def begins(first: Any) -> bool:
    """Whether a file's first line begins a recording."""
    return isinstance(first, dict) and first.keys() >= HEAD and not (first.get("messages") or "role" in first)


def conversation(lines: Iterable[Message]) -> Message:
    """The conversation of a recording, with its messages as a chat API has them."""
    head, messages = Message(), dict[str, Message]()
    for line in lines:
        if isinstance(mark := line.get("$rewindTo"), str):
            while messages and messages.popitem()[0] != mark:
                pass
        elif isinstance(mark := line.get("id"), str):
            messages[mark] = line
        else:
            changes = line.get("$set", line)
            head |= changes if isinstance(changes, dict) else {}
    context = head.get("messages")
    items = list(messages.values()) or (context if isinstance(context, list) else [])
    models = [item["model"] for item in items if isinstance(item, dict) and item.get("model")]
    turns = [one for item in items for one in _turns(item)]
    tags = {"kind": head["kind"]} if head.get("kind") else {}
    return {
        "id": head.get("sessionId"),
        "model": models[-1] if models else None,
        "tags": tags,
        "messages": turns,
    }


def _turns(item: Any) -> list[Any]:
    """The messages of an item; the item itself where it is none, for the chat's reader to say so."""
    turns = dialects.messages(item) if isinstance(item, dict) else None
    return [item] if turns is None else turns
