"""A store that is up to its ledgers, made anew where its database was deleted.

Every command begins here, and few have anything to read: what reads is loaded only then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..store import Store, Workspace
from ..store.sync import reach, reached

if TYPE_CHECKING:
    from .result import Ingested, Progress

Say = Callable[[str], None]
Shown = Callable[[str], "AbstractContextManager[Progress]"]
"""Shows how far something is, under a title."""


def ready(workspace: Workspace, say: Say, shown: Shown, *, for_ingest: bool = False) -> Store:
    """The store of a workspace. A database that was deleted is made again from the ledgers first."""
    workspace.pull()
    opened = Store(workspace)
    standing = opened.standing()
    forgotten = standing and not opened.only_looks and workspace.forgotten.exists()
    if standing is None and workspace.sources.exists():
        from .rebuild import rebuild

        say(f"{opened.tables}: no database; making it anew from the ledgers")
        with shown("rebuilding") as report:
            _tell_gone(rebuild(opened, report, unless_made=True), say)
    elif standing and standing.lacks_sources:
        from .rebuild import catch_up

        say(f"{opened.tables}: behind {workspace.sources.folder}; reading what it lacks")
        with shown("reading") as report:
            _tell_gone(catch_up(opened, report), say)
    if forgotten:
        _heed_forgotten(opened)
    if standing is None or standing.lacks_sources or standing.lags or forgotten:
        if not for_ingest:
            opened.sync()
        standing = opened.standing()
    for line in standing.set_aside if standing else ():
        say(line)
    return opened


def _tell_gone(result: Ingested, say: Say) -> None:
    """Name sessions that are missing since their logs are."""
    from .rebuild import GONE

    gone = [item.source for item in result.quarantined if item.reason == GONE]
    if gone:
        say(f"{len(gone)} logs are gone, their ratings are kept; the first: {gone[0]}")


def _heed_forgotten(opened: Store) -> None:
    """Leave out what another machine had forgotten, and read again what it took back."""
    noted = opened.workspace.forgotten
    with opened.reading(synced=True) as connection:
        before = reached(connection)
    if not noted.grown(before):
        return
    from . import forgetting
    from .rebuild import read_again

    ends = noted.ends(before)
    back = forgetting.undone(opened.workspace, before)
    forgetting.enforce(opened)
    if back:
        read_again(opened, back)
    with opened.writing() as connection:
        reach(connection, ends)
