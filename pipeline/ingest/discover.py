"""Where sources are: at or below a folder, each with its system."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from errno import EILSEQ
from pathlib import Path

from ...schemas import Quarantined
from ..systems.base import walk
from ..systems.registry import SYSTEMS, system_of
from .archives import is_packed
from .look import looks_like


@dataclass(frozen=True)
class Tree:
    """A place that was given: where it can be read, and what it and what is below it are called."""

    root: Path
    name: str
    archive: bool = False

    def called(self, path: Path) -> str:
        below = "" if path == self.root else ("!" if self.archive else "/") + str(path.relative_to(self.root))
        return self.name + below


def recognised(path: Path, system: str = "auto") -> str | None:
    """The system whose source `path` is; None where it is none's, or not that system's."""
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
) -> Iterator[tuple[Path, str]]:
    """Sources at or below `root` with their systems; what lies inside a source belongs to it.

    Links to folders are not followed. `refused` is told what could not be looked into, `unknown` which
    files are no source and in none, and which links lead to folders elsewhere.
    """
    waiting = [root]
    while waiting:
        path = waiting.pop()
        try:
            _checked_name(path)
            if is_linked_folder(path) and path != root:
                if unknown is not None and not path.resolve().is_relative_to(root.resolve()):
                    unknown(path)
                continue
            system_name = recognised(path, system)
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


def _checked_name(path: Path) -> None:
    """OSError for a name that could not be written into a ledger."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise OSError(EILSEQ, "its name is not UTF-8; rename it") from error


def unreadable(name: str, error: OSError) -> Quarantined:
    """What is wrong with a place of that name which could not be looked into."""
    source = name.encode("utf-8", "backslashreplace").decode()
    return Quarantined(source=source, reason=f"cannot be read: {error.strerror or error}")


def unrecognised(root: Path, system: str, name: str) -> str:
    """Why nothing was found at a place that is called `name`, and what goes on."""
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
