"""Records of one session that were served as files of their own, beside each other in a folder.

The page saves a game several times before it knows the number of its record, so that a session may have
records that hold no more than the beginning of another one. Which those are, one file alone can't tell.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from pathlib import Path

from ..base import json_file
from .export import session_served

MARK = b"actionHistory"
LARGEST = 64 * 1024 * 1024
"""Bytes; a longer file is no single game."""


def siblings(path: Path) -> list[Path]:
    """The files of the same folder with a record of the session whose record a file holds, without itself."""
    folder = path.absolute().parent
    try:
        files = _of_folder(folder, folder.stat().st_mtime_ns)
    except OSError:
        return []
    own = next((session for session, paths in files.items() if path.absolute() in paths), None)
    return [other for other in files.get(own, ()) if other != path.absolute()]


@lru_cache(maxsize=16)
def _of_folder(folder: Path, changed: int) -> dict[str | None, list[Path]]:
    """Session -> the files of a folder with one record of it; `changed` is when a file last came or went."""
    found: dict[str | None, list[Path]] = defaultdict(list)
    for file in sorted(folder.glob("*.json")):
        if file.is_file() and file.stat().st_size <= LARGEST and MARK in file.read_bytes():
            session = session_served(json_file(file))
            if session is not None:
                found[session].append(file)
    return found
