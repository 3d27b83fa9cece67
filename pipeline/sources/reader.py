"""What every reader is: a module that finds its system's sources below a folder and reads one.

A reader never raises for what is inside a source: it yields what it could read, and a `Quarantined`
with an address for every piece that it could not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from pydantic import ConfigDict, Field, JsonValue
from pydantic_core import from_json

from coaudit.schemas.base import Model
from coaudit.schemas.trajectory import Quarantined, Setting, Trajectory

MAX_LINE = 64 * 1024 * 1024
"""Bytes; a longer line is quarantined without being held in memory."""


class ReadOptions(Model):
    """What a person adds to what the logs say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    setting: Setting | None = None
    condition: str | None = None
    agent: str | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    map: str | None = None
    """Text of a mapping file for logs of no known system; the text, so that a rebuild needs no file."""

    def given(self) -> dict[str, object]:
        """What stands in a trajectory's head whatever its log says."""
        return self.model_dump(include={"setting", "condition", "agent", "tags"})


class Reader(Protocol):
    """A module in this folder, seen as an object."""

    SYSTEM: str
    """The system's name, as `--system` takes it."""

    def recognises(self, path: Path) -> bool:
        """Whether `path` (a file or a folder) is one of this system's sources, from a short look inside."""

    def read(self, path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
        """The trajectories of one source, and what could not be read of it."""


def walk(root: Path) -> Iterator[Path]:
    """`root` itself, then all below it in sorted order; links to folders are not followed."""
    yield root
    if not root.is_dir():
        return
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in [*folders, *sorted(files)]:
            yield Path(folder) / name


def json_lines(path: Path, *, name: str | None = None) -> Iterator[tuple[int, JsonValue | Quarantined]]:
    """Each non-empty line of a JSON Lines file as (1-based number, value or what is wrong with it).

    Lines over MAX_LINE, that are not UTF-8, not JSON, cut off, or nested too deeply are quarantined.
    """
    source = name or str(path)
    for number, line in numbered_lines(path):
        yield number, parsed(line, source, number)


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Each non-empty line of a file as (1-based number, bytes); None for one longer than MAX_LINE."""
    with path.open("rb") as file:
        for number, line in enumerate(_bounded_lines(file), start=1):
            if line is None or not line.isspace():
                yield number, line


def first_lines(path: Path, count: int) -> list[JsonValue]:
    """The values of a JSON Lines file's first lines, for a short look; empty where they are not JSON."""
    found: list[JsonValue] = []
    for _, value in json_lines(path):
        if isinstance(value, Quarantined):
            return []
        found.append(value)
        if len(found) == count:
            break
    return found


def json_file(path: Path) -> JsonValue | Quarantined:
    """The value of a whole JSON file, or what is wrong with it."""
    return parsed(path.read_bytes(), str(path), None)


def parsed(line: bytes | None, source: str, number: int | None) -> JsonValue | Quarantined:
    """The value of a line, or of a whole file (`number` None), or what is wrong with it."""
    if line is None:
        return Quarantined(source=source, line=number, reason=f"longer than {MAX_LINE // 2**20} MiB")
    try:
        value: JsonValue = from_json(line.removeprefix(b"\xef\xbb\xbf").rstrip(), allow_inf_nan=True)
    except ValueError as error:
        cut = "" if number is None or line.endswith(b"\n") else " (the last line is cut off)"
        place = str(error) if number is None else str(error).replace("at line 1 column", "at column")
        return Quarantined(source=source, line=number, reason=f"not JSON: {place}{cut}")
    return value


def _bounded_lines(file: Iterable[bytes]) -> Iterator[bytes | None]:
    """Lines with their ends; None for one that is too long, which is skipped in pieces."""
    readline = file.readline  # type: ignore[attr-defined]
    while line := readline(MAX_LINE):
        if len(line) < MAX_LINE or line.endswith(b"\n"):
            yield line
            continue
        while (rest := readline(MAX_LINE)) and not rest.endswith(b"\n"):
            pass
        yield None


def only_object(
    value: JsonValue | Quarantined, source: str, line: int | None
) -> dict[str, JsonValue] | Quarantined:
    """`value` where it is a JSON object, else what is wrong with it."""
    if isinstance(value, (dict, Quarantined)):
        return value
    kind = "null" if value is None else type(value).__name__
    return Quarantined(source=source, line=line, reason=f"expected a JSON object, got {kind}")
