"""Where sources are: at or below a folder, each with its system."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from errno import EILSEQ, EINVAL
from pathlib import Path

from ...schemas import Quarantined
from ...schemas.text import as_utf8
from ..systems.base import walk
from ..systems.registry import SYSTEMS, system_of
from .archives import is_packed
from .look import looks_like

ENDLESS = ("kmsg", "trace_pipe", "trace_pipe_raw")
"""Files of the kernel that wait for more at their end."""


@dataclass(frozen=True)
class Tree:
    """A place that was given: where it can be read, and how it and what lies below it are called."""

    root: Path
    name: str
    archive: bool = False

    def name_of(self, path: Path) -> str:
        below = "" if path == self.root else ("!" if self.archive else "/") + str(path.relative_to(self.root))
        return self.name + below


def recognised_system(path: Path, system: str = "auto") -> str | None:
    """The system whose source `path` is; None where no system recognises it, or not the one asked for."""
    if is_packed(path):
        return None
    systems = SYSTEMS.values() if system == "auto" else [system_of(system)]
    candidates = (one for one in systems if system != "auto" or not one.on_request)
    return next((one.name for one in candidates if one.recognises(path)), None)


def discover(
    root: Path,
    system: str = "auto",
    refused: Callable[[Path, OSError], None] | None = None,
    unknown: Callable[[Path], None] | None = None,
    recognise: Callable[[Path, str], str | None] = recognised_system,
) -> Iterator[tuple[Path, str]]:
    """Sources at or below `root` with their systems; what lies inside a source belongs to it.

    Links to folders are not followed. `refused` is called with paths that cannot be read, `unknown` with
    files that are no source and part of none, and with links to folders outside of `root`. `recognise` is
    asked for the system of each path, as `recognised_system` is.
    """
    waiting = [root]
    while waiting:
        path = waiting.pop()
        try:
            _check_name(path)
            if path != root:
                _check_place(path)
            if is_linked_folder(path) and path != root:
                if unknown is not None and not path.resolve().is_relative_to(root.resolve()):
                    unknown(path)
                continue
            system_name = recognise(path, system)
            if not system_name and path.is_dir():
                waiting.extend(sorted(path.iterdir(), reverse=True))
        except OSError as error:
            if refused is not None:
                refused(path, error)
            continue
        if system_name:
            yield path, system_name
        elif unknown is not None and path.is_file():
            unknown(path)


def is_linked_folder(path: Path) -> bool:
    """Whether a path is a link to a folder, which is not followed."""
    return path.is_symlink() and path.is_dir()


def _check_name(path: Path) -> None:
    """OSError for a name that could not be written into a ledger."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise OSError(EILSEQ, "its name is not UTF-8; rename it") from error


def _check_place(path: Path) -> None:
    """OSError for a link to a file of the kernel's that has no end: who reads it waits for ever."""
    if path.is_symlink() and path.is_file():
        place = Path(os.path.realpath(path))
        if place.name in ENDLESS and place.parts[1:2] in (("proc",), ("sys",)):
            raise OSError(EINVAL, f"a link to {place}, which has no end")


def unreadable_item(name: str, error: OSError) -> Quarantined:
    """The quarantine entry of a place called `name` that could not be read."""
    return Quarantined(source=as_utf8(name), reason=f"cannot be read: {error.strerror or error}")


def unrecognised_reason(root: Path, system: str, name: str) -> str:
    """Why no source was found in a place that is called `name`, and which command helps."""
    if system != "auto" and (by_name := {name for _, name in discover(root)}):
        return f"no logs of {system} in it; it looks like {', '.join(sorted(by_name))}"
    if root.is_file() and not root.stat().st_size:
        return "the file is empty"
    if root.is_dir() and not any(path.is_file() for path in walk(root)):
        links = any(is_linked_folder(path) for path in walk(root) if path != root)
        return f"the folder {'has only links to folders, which are not followed' if links else 'is empty'}"
    choices = f"known are {', '.join(SYSTEMS)}"
    if system != "auto":
        return f"no logs of a known system in it ({choices})"
    return f"no logs of a known system in it: {looks_like(root, name)} ({choices})"
