"""Notes on what lies below a place and is not read."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...schemas.text import shortened
from ..systems.registry import SYSTEMS
from . import sources as provenance
from .archives import companion_files, is_archive
from .discover import Tree, is_linked_folder
from .sources import Place

NAMED = 5
"""At most so many of the files that are left out are named."""
LONGEST = 60
"""Characters of a name that are shown."""


def left_out_notes(tree: Tree, files: Sequence[Path], places: Sequence[Place]) -> Iterator[str]:
    """Notes on the files that no reader knows, hidden ones and archives aside, which are opened by
    themselves.

    Files that are read with a source are not among them; references get a hint of their own.
    """
    visible = [path for path in files if not path.name.startswith(".") and not is_archive(path)]
    if not visible:
        return
    companions = {path for place in places for path in provenance.files_beside(place)}
    companions.update(other for path in files if is_archive(path) for other in companion_files(path))
    references = [path for path in visible if any(system.is_reference(path) for system in SYSTEMS.values())]
    if references:
        folder = tree.name_of(Path(os.path.commonpath([path.parent for path in references])))
        yield (
            f"{len(references)} reference{'s and recipes' if len(references) > 1 else ''} of tasks; "
            f"`coaudit ingest {shlex.quote(tree.name)} --reference {shlex.quote(folder)}` uses them"
        )
    names = [_below(tree, path) for path in visible if path not in companions and path not in references]
    if names:
        some = "one file" if len(names) == 1 else f"{len(names)} files"
        yield (
            f"left out {some} that no known system wrote: {_some(names)}; `coaudit map FILE` drafts a mapping"
        )


def link_notes(tree: Tree, files: Sequence[Path]) -> Iterator[str]:
    """A note on links to folders outside of a place, hidden ones aside: what lies there is not read."""
    links = [path for path in files if is_linked_folder(path) and not path.name.startswith(".")]
    if links:
        some = "one link to a folder is" if len(links) == 1 else f"{len(links)} links to folders are"
        yield f"{some} not followed: {_some([_below(tree, path) for path in links])}; give its own path"


def _below(tree: Tree, path: Path) -> str:
    """The name of a path within a place."""
    return shortened(tree.name_of(path).removeprefix(tree.name).lstrip("/!"), LONGEST)


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
