"""Records of one session that were served as files of their own, side by side in a folder or each in its own.

The page saves a game several times before it knows its record's id, so a session may have records that hold
no more than the beginning of another one. One file alone cannot tell which those are.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property, lru_cache
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
        near = dict.fromkeys(_siblings_among(path, path.parent))
        if _name_counts(path.parent, path.parent.stat().st_mtime_ns)[_shape(path.name)] == 1:
            near |= dict.fromkeys(_siblings_beside(path))
        return list(near)
    except OSError:
        return []


def _siblings_among(path: Path, folder: Path) -> list[Path]:
    mtime = folder.stat().st_mtime_ns
    games = _of_folder(folder, path.suffix, mtime)
    if _is_changed(games):
        _of_folder.cache_clear()
        games = _of_folder(folder, path.suffix, mtime)
    return games.siblings.get(path, [])


def _siblings_beside(path: Path) -> list[Path]:
    above, shape = path.parent.parent, _shape(path.name)
    mtime = above.stat().st_mtime_ns
    group = _of_folders(above, mtime).get(shape) or _Group()
    if path not in group.files or not all(map(Path.is_file, group.siblings_of(path))):
        # A file that comes later than its folder, or goes, does not change the time of the one above.
        _of_folders.cache_clear()
        group = _of_folders(above, mtime).get(shape) or _Group()
    return group.siblings_of(path)


def _shape(name: str) -> str:
    """A file's name without its numbers: `record_24.json` and `record_25.json` are alike."""
    return re.sub(r"\d+", "0", name)


@lru_cache(maxsize=16)
def _name_counts(folder: Path, mtime: int) -> Counter[str]:
    """How many files of a folder have names of each shape; `mtime` as of `_of_folder`."""
    return Counter(_shape(file.name) for file in folder.iterdir())


class _Games(NamedTuple):
    siblings: dict[Path, list[Path]]
    """File with one served record -> its siblings."""
    unfinished_files: dict[Path, tuple[int, int]]
    """Files that were still being written, with their size and mtime."""


def _is_changed(games: _Games) -> bool:
    return any(_size_and_mtime(file) != look for file, look in games.unfinished_files.items())


def _size_and_mtime(file: Path) -> tuple[int, int] | None:
    """None where it is no file that can be read."""
    with contextlib.suppress(OSError):
        state = file.stat()
        return (state.st_size, state.st_mtime_ns) if file.is_file() else None
    return None


@lru_cache(maxsize=16)
def _of_folder(folder: Path, suffix: str, mtime: int) -> _Games:
    """The siblings among the files of a folder with this suffix. `mtime` (ns), which changes when a file
    comes or goes, is there for the cache. That a game grows makes no difference: games that were played apart
    stay so."""
    return _games(sorted(file for file in folder.iterdir() if file.suffix == suffix))


class _Group:
    """Files of several folders whose names are alike."""

    def __init__(self) -> None:
        self.files: set[Path] = set()

    def siblings_of(self, path: Path) -> list[Path]:
        """The siblings of a file among them."""
        if _is_changed(self._games):
            del self._games
        return self._games.siblings.get(path, [])

    @cached_property
    def _games(self) -> _Games:
        return _games(sorted(self.files))


@lru_cache(maxsize=4)
def _of_folders(above: Path, mtime: int) -> dict[str, _Group]:
    """The files of all folders in a folder by the shape of their names; `mtime` as of `_of_folder`."""
    groups: defaultdict[str, _Group] = defaultdict(_Group)
    for file in above.glob("*/*"):
        groups[_shape(file.name)].files.add(file)
    return dict(groups)


def _games(files: Sequence[Path]) -> _Games:
    games: dict[Path, Game] = {}
    unfinished_files: dict[Path, tuple[int, int]] = {}
    for file in files if len(files) > 1 else ():
        # What cannot be read is reported where it is a source itself.
        with contextlib.suppress(OSError):
            if (look := _size_and_mtime(file)) is None or look[0] > LARGEST:
                continue
            content = file.read_bytes()
            if not content.rstrip().endswith((b"}", b"]")):
                unfinished_files[file] = look
            elif MARK in content and (game := served_game(parse_json(content, str(file), None))) is not None:
                games[file] = game
    paths = list(games)
    near = {paths[n]: [paths[other] for other in some] for n, some in other_saves(list(games.values()))}
    return _Games(near, unfinished_files)
