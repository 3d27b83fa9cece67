"""Records of one session that were served as files of their own, side by side in a folder.

The page saves a game several times before it knows its record's id, so a session may have records that hold
no more than the beginning of another one. One file alone cannot tell which those are.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..base import parse_json
from .export import Game, other_saves, served_game

MARK = b"actionHistory"
LARGEST = 64 * 1024 * 1024
"""Bytes; a longer file is no single game."""


def siblings(path: Path) -> list[Path]:
    """The files of the same folder whose record may be another save of the game in `path`."""
    path = path.absolute()
    try:
        mtime = path.parent.stat().st_mtime_ns
        folder = _of_folder(path.parent, mtime)
        if any(_size_and_mtime(file) != look for file, look in folder.unfinished_files.items()):
            _of_folder.cache_clear()
            folder = _of_folder(path.parent, mtime)
        return folder.siblings.get(path, [])
    except OSError:
        return []


class _Folder(NamedTuple):
    siblings: dict[Path, list[Path]]
    """File with one served record -> its siblings."""
    unfinished_files: dict[Path, tuple[int, int]]
    """Files that were still being written, with their size and mtime."""


def _size_and_mtime(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=16)
def _of_folder(folder: Path, mtime: int) -> _Folder:
    """The siblings among the files of a folder. `mtime` (ns), which changes when a file comes or goes, is
    there for the cache. That a game grows makes no difference: games that were played apart stay so."""
    games: dict[Path, Game] = {}
    unfinished_files: dict[Path, tuple[int, int]] = {}
    for file in sorted(folder.glob("*.json")):
        if not file.is_file() or (look := _size_and_mtime(file))[0] > LARGEST:
            continue
        content = file.read_bytes()
        if not content.rstrip().endswith((b"}", b"]")):
            unfinished_files[file] = look
        elif MARK in content and (game := served_game(parse_json(content, str(file), None))) is not None:
            games[file] = game
    files = list(games)
    near = {files[n]: [files[other] for other in some] for n, some in other_saves(list(games.values()))}
    return _Folder(near, unfinished_files)
