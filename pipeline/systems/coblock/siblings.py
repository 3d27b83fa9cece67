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
    path = path.absolute()
    try:
        together = _of_folder(path.parent, path.parent.stat().st_mtime_ns)
    except OSError:
        return []
    return [other for other in together.get(path, ()) if other != path]


@lru_cache(maxsize=16)
def _of_folder(folder: Path, changed: int) -> dict[Path, list[Path]]:
    """Each file of a folder with one served record -> all those of its session; `changed` is when a file last
    came or went."""
    sessions: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(folder.glob("*.json")):
        if file.is_file() and file.stat().st_size <= LARGEST and MARK in file.read_bytes():
            session = session_served(json_file(file))
            if session is not None:
                sessions[session].append(file)
    return {file: files for files in sessions.values() for file in files}
