"""Records of one session that were served as files of their own, beside each other in a folder.

The page saves a game several times before it knows the number of its record, so that a session may have
records that hold no more than the beginning of another one. Which those are, one file alone can't tell.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..base import parsed
from .export import Game, beginning, related

MARK = b"actionHistory"
LARGEST = 64 * 1024 * 1024
"""Bytes; a longer file is no single game."""


def siblings(path: Path) -> list[Path]:
    """The files of the same folder whose record may be the same game as that of a file, saved anew."""
    path = path.absolute()
    try:
        mtime = path.parent.stat().st_mtime_ns
        folder = _of_folder(path.parent, mtime)
        if any(_look(file) != look for file, look in folder.half.items()):
            _of_folder.cache_clear()
            folder = _of_folder(path.parent, mtime)
        return folder.siblings.get(path, [])
    except OSError:
        return []


class _Folder(NamedTuple):
    siblings: dict[Path, list[Path]]
    """Of each file with one served record."""
    half: dict[Path, tuple[int, int]]
    """Files that were being written, and how they looked."""


def _look(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=16)
def _of_folder(folder: Path, mtime: int) -> _Folder:
    """What the files of a folder are; `changed` is when a file last came or went. That a game grows makes no
    difference: those that were played apart stay so."""
    games: dict[Path, Game] = {}
    half: dict[Path, tuple[int, int]] = {}
    for file in sorted(folder.glob("*.json")):
        if not file.is_file() or (look := _look(file))[0] > LARGEST:
            continue
        content = file.read_bytes()
        if not content.rstrip().endswith((b"}", b"]")):
            half[file] = look
        elif MARK in content and (game := beginning(parsed(content, str(file), None))) is not None:
            games[file] = game
    files = list(games)
    near = {files[n]: [files[other] for other in some] for n, some in related(list(games.values()))}
    return _Folder(near, half)
