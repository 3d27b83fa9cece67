"""Records of one session that were served as files of their own, side by side in a folder or each in its own.

The page saves a game several times before it knows its record's id, so a session may have records that hold
no more than the beginning of another one. One file alone cannot tell which those are.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..base import parse_json
from .export import Game, other_saves, served_game

MARK = b"actionHistory"
LARGEST = 64 * 1024 * 1024
"""Bytes; a longer file is no single game."""


def siblings(path: Path) -> list[Path]:
    """The files whose record may be another save of the game in `path`: of its folder, and where that has no
    other file of such a name, files of such a name in the folders beside it."""
    path = path.absolute()
    try:
        near = dict.fromkeys(_siblings_among(path, path.parent, None))
        if _name_counts(path.parent, path.parent.stat().st_mtime_ns)[_shape(path)] == 1:
            near |= dict.fromkeys(_siblings_among(path, path.parent.parent, _shape(path)))
        return list(near)
    except OSError:
        return []


def _siblings_among(path: Path, folder: Path, shape: str | None) -> list[Path]:
    mtime = folder.stat().st_mtime_ns
    files = _of_folder(folder, path.suffix, shape, mtime)
    if any(_size_and_mtime(file) != look for file, look in files.unfinished_files.items()):
        _of_folder.cache_clear()
        files = _of_folder(folder, path.suffix, shape, mtime)
    return files.siblings.get(path, [])


def _shape(path: Path) -> str:
    """A file's name without its numbers: `record_24.json` and `record_25.json` are alike."""
    return re.sub(r"\d+", "0", path.name)


@lru_cache(maxsize=16)
def _name_counts(folder: Path, mtime: int) -> Counter[str]:
    """How many files of a folder have names of each shape; `mtime` as of `_of_folder`."""
    return Counter(map(_shape, folder.iterdir()))


class _Folder(NamedTuple):
    siblings: dict[Path, list[Path]]
    """File with one served record -> its siblings."""
    unfinished_files: dict[Path, tuple[int, int]]
    """Files that were still being written, with their size and mtime."""


def _size_and_mtime(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=16)
def _of_folder(folder: Path, suffix: str, shape: str | None, mtime: int) -> _Folder:
    """The siblings among the files of a folder with this suffix, or, where a `shape` is given, among those of
    the folders in it whose names have it. `mtime` (ns), which changes when a file or folder comes or goes, is
    there for the cache. That a game grows makes no difference: games that were played apart stay so."""
    pattern = "*" if shape is None else "*/*"
    files = [file for file in folder.glob(pattern) if file.suffix == suffix and shape in (None, _shape(file))]
    games: dict[Path, Game] = {}
    unfinished_files: dict[Path, tuple[int, int]] = {}
    for file in sorted(files) if len(files) > 1 else ():
        if not file.is_file() or (look := _size_and_mtime(file))[0] > LARGEST:
            continue
        content = file.read_bytes()
        if not content.rstrip().endswith((b"}", b"]")):
            unfinished_files[file] = look
        elif MARK in content and (game := served_game(parse_json(content, str(file), None))) is not None:
            games[file] = game
    paths = list(games)
    near = {paths[n]: [paths[other] for other in some] for n, some in other_saves(list(games.values()))}
    return _Folder(near, unfinished_files)
