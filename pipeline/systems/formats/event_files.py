"""Folders with a file for each event of a session, which are read like JSON Lines with an event a line.

Their files have numbers in their names, and one is an event: of a framework that logs this way, or a message
with the number of its file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from . import agent_events, dialects

LARGEST = 4 * 1024 * 1024
"""Bytes of a file that is looked into to tell whether it is an event."""
_NAME = re.compile(r"(\D*)(\d{1,18})(\D.*)?\.json")


def event_files(folder: Path) -> list[Path]:
    """The files of a folder in the order of their numbers; none where it is no folder of events."""
    if not folder.is_dir():
        return []
    files = [path for path in folder.iterdir() if path.suffix == ".json" and not path.name.startswith(".")]
    matches = [_NAME.fullmatch(path.name) for path in files]
    numbers = {int(match[2]): path for match, path in zip(matches, files, strict=True) if match}
    if len(files) < 2 or len(numbers) < len(files) or len({match[1] for match in matches if match}) > 1:
        return []
    ends = min(numbers), max(numbers)
    return [numbers[n] for n in sorted(numbers)] if all(_is_event(numbers[n], n) for n in ends) else []


def _is_event(path: Path, number: int) -> bool:
    if path.stat().st_size > LARGEST:
        return False
    try:
        value: Any = from_json(path.read_bytes())
    except ValueError:
        return False
    if not isinstance(value, dict):
        return False
    if dialects.of_framework(value) is not None or agent_events.is_event(value):
        return True
    inner = value.get("message")
    has_role = "role" in (inner if isinstance(inner, dict) else value)
    own = any(type(one) is int and one == number for one in value.values())
    return has_role and own and bool(dialects.messages(value))
