"""A store that is up to its ledgers, made anew where its database was deleted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from ..store import Store, Workspace
from .rebuild import catch_up, rebuild
from .result import Progress
from .sources import behind

Say = Callable[[str], None]
Shown = Callable[[str], AbstractContextManager[Progress]]
"""Shows how far something is, under a title."""


def ready(workspace: Workspace, say: Say, shown: Shown, *, for_ingest: bool = False) -> Store:
    """The store of a workspace. A database that was deleted is made again from the ledgers first."""
    workspace.pull()
    opened = Store(workspace)
    if opened.workspace.sources.exists() and not opened.has_tables():
        say(f"{opened.tables}: no database; making it anew from the ledgers")
        with shown("rebuilding") as report:
            rebuild(opened, report, unless_made=True)
    elif opened.is_made and behind(opened):
        say(f"{opened.tables}: behind {opened.workspace.sources.folder}; reading what it lacks")
        with shown("reading") as report:
            catch_up(opened, report)
    if not for_ingest:
        opened.sync()
    for line in opened.set_aside():
        say(line)
    return opened
