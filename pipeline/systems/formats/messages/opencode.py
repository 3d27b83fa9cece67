"""Turns the messages that opencode exports into messages of a chat API.

A message is its `info` (who, when, with how many tokens) beside its `parts`: texts, and calls of tools, each
with what came back in its `state`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]
STATUSES = {"completed": "success", "error": "error"}
"""How a call ended -> the status of its result."""


def messages(item: Message) -> list[Message] | None:
    """The message, split before each text behind a call; None where it is none of opencode's."""
    info, parts = item.get("info"), item.get("parts")
    if not isinstance(info, dict) or not isinstance(parts, list) or "role" in item:
        return None
    if info.get("role") not in ("user", "assistant") or not isinstance(info.get("sessionID"), str):
        return None
    time = info.get("time")
    created = time.get("created") if isinstance(time, dict) else None
    head = {"role": info["role"], "timestamp": created}
    runs: list[list[Message]] = [[]]
    for block in (block for part in parts if isinstance(part, dict) for block in _blocks(part)):
        if block["type"] == "text" and runs[-1] and runs[-1][-1]["type"] != "text":
            runs.append([])
        runs[-1].append(block)
    return [{**head, "content": run} for run in runs if run]


def usage(item: Any) -> Message | None:
    """The tokens of an answer as Anthropic's API counts them; None where it is no answer of opencode's."""
    info = item.get("info") if isinstance(item, dict) else None
    tokens = info.get("tokens") if isinstance(info, dict) else None
    if not isinstance(tokens, dict) or messages(item) is None:
        return None
    cache = tokens.get("cache")
    reads, writes = (cache.get("read"), cache.get("write")) if isinstance(cache, dict) else (None, None)
    beside = {"cache_read_input_tokens": reads, "cache_creation_input_tokens": writes}
    return {"input_tokens": tokens.get("input"), "output_tokens": tokens.get("output"), **beside}


def _blocks(part: Message) -> Iterator[Message]:
    """A part as blocks; none for what nobody said, such as a text that opencode wrote itself."""
    kind, text, state = part.get("type"), part.get("text"), part.get("state")
    if kind == "text" and isinstance(text, str) and text and not part.get("synthetic"):
        yield {"type": "text", "text": text}
    elif kind == "file":
        yield {"type": "text", "text": "[file]"}
    elif kind == "tool" and isinstance(part.get("tool"), str) and isinstance(state, dict):
        mark = part.get("callID")
        yield {"type": "tool_use", "id": mark, "name": part["tool"], "input": state.get("input")}
        if (status := STATUSES.get(str(state.get("status")))) is not None:
            content = state.get("output", state.get("error"))
            yield {"type": "tool_result", "tool_use_id": mark, "content": content, "status": status}
