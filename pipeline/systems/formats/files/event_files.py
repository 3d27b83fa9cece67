"""Folders with a file for each event of a session, which are read like JSON Lines with an event a line.

They hold nothing but files with numbers in their names, each an event: of a framework that logs this way, or
a message with the number of its file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from ..messages import agent_events, dialects

LARGEST = 4 * 1024 * 1024
"""Bytes of a file that is looked into to tell whether it is an event."""
LOOK = 3
"""The first files, which tell: the last one may be half-written, and so may another."""
SIDES = {"user", "assistant"}
"""The roles of the first messages of a session. Files that all have one role may each be a person's own."""
_NAME = re.compile(r"(\D*)(\d{1,18})(\D.*)?\.json")


def event_files(folder: Path) -> list[Path]:
    """The files of a folder in the order of their numbers; none where it is no folder of events."""
    if not folder.is_dir():
        return []
    files = [path for path in folder.iterdir() if not path.name.startswith(".")]
    matches = [match for path in files if (match := _NAME.fullmatch(path.name))]
    if len(files) < 2 or len(matches) < len(files) or len({match[1] for match in matches}) > 1:
        return []
    numbers = {int(match[2]): path for match, path in zip(matches, files, strict=True)}
    if len(numbers) < len(files):
        return []
    first = {n: value for n in sorted(numbers)[:LOOK] if (value := _object(numbers[n])) is not None}
    are_events = bool(first) and all(map(_is_of_framework, first.values()))
    are_messages = {_role_of_message(value, n) for n, value in first.items()} == SIDES
    return [numbers[n] for n in sorted(numbers)] if are_events or are_messages else []


def _object(path: Path) -> dict[str, Any] | None:
    """The object in a file; None where it is none, or not yet."""
    try:
        value: Any = from_json(path.read_bytes()) if path.stat().st_size <= LARGEST else None
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _is_of_framework(value: dict[str, Any]) -> bool:
    """Whether it is an event of a framework, and no session, which has a list of what happened."""
    lists = (one for one in value.values() if isinstance(one, list))
    has_items = any(isinstance(item, dict) for one in lists for item in one)
    return dialects.of_framework(value) is not None or (agent_events.is_event(value) and not has_items)


def _role_of_message(value: dict[str, Any], number: int) -> Any:
    """The role of a message that has this number; None for any other object."""
    inner = value.get("message")
    role = (inner if isinstance(inner, dict) else value).get("role")
    own = any(type(one) is int and one == number for one in value.values())
    return role if own and isinstance(role, str) and dialects.messages(value) else None
