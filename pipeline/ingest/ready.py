"""The store of a workspace, brought up to its ledgers, or made anew where its database was deleted.

Every command begins here, and few have anything to read: what reads is loaded only then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ...schemas.text import count_of
from ..errors import WriteError
from ..store import Store, Workspace
from ..store.ledgers.sync import Standing, ledger_offsets, note_offsets

if TYPE_CHECKING:
    from .result import IngestResult, Progress

_LATE = "the tables could not be brought up to the ledgers"
Say = Callable[[str], None]
ShowProgress = Callable[[str], "AbstractContextManager[Progress]"]
"""Shows how far something is, under a title."""


def ready(workspace: Workspace, say: Say, progress: ShowProgress, *, for_ingest: bool = False) -> Store:
    """The store of a workspace. A database that was deleted is made again from the ledgers first.

    Where what the ledgers hold beyond it cannot be written, the store only shows what it has.
    """
    workspace.pull()
    store = Store(workspace)
    standing = store.standing()
    if not workspace.is_writable:
        if not for_ingest:  # which is refused where it begins to write
            _show_as_it_is(store, standing, say)
        return store
    try:
        _bring_up(store, standing, say, progress, for_ingest=for_ingest)
    except WriteError as error:
        if standing is None or for_ingest:
            raise
        say(
            f"{error}; until that is mended, nothing is written, and figures are without what the ledgers "
            "hold beyond the tables"
        )
        return Store(workspace.read_only_copy(_LATE), read_only=True)
    return store


def _bring_up(
    store: Store, standing: Standing | None, say: Say, progress: ShowProgress, *, for_ingest: bool
) -> None:
    """Have the tables hold what the ledgers do, and report what in these is damaged."""
    workspace = store.workspace
    forgotten = standing and not store.only_looks and workspace.forgotten.exists()
    if standing is None and workspace.sources.exists():
        from .rebuild import rebuild

        say(f"{store.tables}: no database; rebuilding it from the ledgers")
        with progress("rebuilding") as report:
            _tell_gone(rebuild(store, report, unless_made=True), say)
    elif standing and standing.lacks_sources:
        from .rebuild import catch_up

        say(f"{store.tables}: behind {workspace.sources.folder}; reading what is missing")
        with progress("reading") as report:
            _tell_gone(catch_up(store, report), say)
    if forgotten:
        heed_forgotten(store)
    if standing is None or standing.lacks_sources or standing.lags or forgotten:
        if not for_ingest:
            store.sync()
        standing = store.standing()
    for line in standing.notes if standing else ():
        say(line)


def _show_as_it_is(store: Store, standing: Standing | None, say: Say) -> None:
    """Say what figures lack where this process may not write; StoreError where there is nothing to read."""
    if standing is None:
        store.sync()  # raises
        return
    if standing.lacks_sources or standing.lags or _has_new_exclusions(store):
        say(
            f"{store.tables}: behind the ledgers, and read-only for you: figures are without what the "
            "ledgers hold beyond it, until somebody who may write runs a command"
        )
    for line in standing.notes:
        say(line)


def _has_new_exclusions(store: Store) -> bool:
    """Whether the tables still have what was forgotten, or lack what was restored."""
    with store.reading(synced=True) as connection:
        return store.workspace.forgotten.has_grown(ledger_offsets(connection))


def _tell_gone(result: IngestResult, say: Say) -> None:
    """Report the logs that are gone, and their sessions with them."""
    from .rebuild import GONE

    sources = [item.source for item in result.quarantined if item.reason == GONE]
    if sources:
        say(
            f"{count_of(len(sources), 'log is', 'logs are')} gone, their ratings are kept; the "
            f"first: {sources[0]}"
        )


def heed_forgotten(store: Store, progress: Progress | None = None) -> IngestResult | None:
    """Leave out what was forgotten here or on another machine, and read again what was restored and what
    other sources have too; None where nothing was read. What a kill interrupts, the next command does."""
    ledger = store.workspace.forgotten
    with store.reading(synced=True) as connection:
        before = ledger_offsets(connection)
    if not ledger.has_grown(before):
        return None
    from . import forgetting
    from .rebuild import read_again

    ends = ledger.ends(before)
    names = forgetting.heed(store, before)
    result = read_again(store, names, progress) if names else None
    with store.writing() as connection:
        note_offsets(connection, ends)
    return result
