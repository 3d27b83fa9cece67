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


def ready(workspace: Workspace, say: Say, progress: Shown, *, for_ingest: bool = False) -> Store:
    """The store of a workspace. A database that was deleted is made again from the ledgers first."""
    workspace.pull()
    store = Store(workspace)
    standing = store.standing()
    forgotten = standing and not store.only_looks and workspace.forgotten.exists()
    if standing is None and workspace.sources.exists():
        from .rebuild import rebuild

        say(f"{store.tables}: no database; making it anew from the ledgers")
        with progress("rebuilding") as report:
            _tell_gone(rebuild(store, report, unless_made=True), say)
    elif standing and standing.lacks_sources:
        from .rebuild import catch_up

        say(f"{store.tables}: behind {workspace.sources.folder}; reading what it lacks")
        with progress("reading") as report:
            _tell_gone(catch_up(store, report), say)
    if forgotten:
        _heed_forgotten(store)
    if standing is None or standing.lacks_sources or standing.lags or forgotten:
        if not for_ingest:
            store.sync()
        standing = store.standing()
    for line in standing.set_aside if standing else ():
        say(line)
    return store


def _tell_gone(result: Ingested, say: Say) -> None:
    """Name sessions that are missing since their logs are."""
    from .rebuild import GONE

    sources = [item.source for item in result.quarantined if item.reason == GONE]
    if sources:
        say(f"{len(sources)} logs are gone, their ratings are kept; the first: {sources[0]}")


def _heed_forgotten(store: Store) -> None:
    """Leave out what another machine had forgotten, and read again what it took back."""
    ledger = store.workspace.forgotten
    with store.reading(synced=True) as connection:
        before = reached(connection)
    if not ledger.grown(before):
        return
    from . import forgetting
    from .rebuild import read_again

    ends = ledger.ends(before)
    back = forgetting.undone(store.workspace, before)
    forgetting.enforce(store)
    if back:
        read_again(store, back)
    with store.writing() as connection:
        reach(connection, ends)
