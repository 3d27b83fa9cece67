"""Records of one session that were served as files of their own, beside each other in a folder.

The page saves a game several times before it knows the number of its record, so that a session may have
records that hold no more than the beginning of another one. Which those are, one file alone can't tell.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ..base import parsed
from .export import Game, beginning, related

MARK = b"actionHistory"
LARGEST = 64 * 1024 * 1024
"""Bytes; a longer file is no single game."""


def siblings(path: Path) -> list[Path]:
    """The files of the same folder whose record may be the same game as that of a file, saved anew."""
    path = path.absolute()
    try:
        return _of_folder(path.parent, path.parent.stat().st_mtime_ns).get(path, [])
    except OSError:
        return []


@lru_cache(maxsize=16)
def _of_folder(folder: Path, changed: int) -> dict[Path, list[Path]]:
    """Each file of a folder with one served record -> its siblings; `changed` is when a file last came or
    went. That a file grows makes no difference: games that were played apart stay so."""
    games: dict[Path, Game] = {}
    for file in sorted(folder.glob("*.json")):
        if file.is_file() and file.stat().st_size <= LARGEST and MARK in (content := file.read_bytes()):
            game = beginning(parsed(content, str(file), None))
            if game is not None:
                games[file] = game
    files = list(games)
    return {files[n]: [files[other] for other in near] for n, near in related(list(games.values()))}
