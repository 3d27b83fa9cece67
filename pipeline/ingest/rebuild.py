"""The database made anew from logs and ledgers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ...schemas import Quarantined
from ..store import Store, Workspace
from ..store.locks import exclusive
from . import serving
from . import sources as provenance
from .measure import read_references
from .result import Ingested
from .run import Batch, Progress
from .sources import Source


def rebuild(store: Store, progress: Progress | None = None) -> Ingested:
    """Make the database anew from the ledgers; a log that is gone is named, and its ratings are kept.

    A database file is made beside the old one and takes its place once it is whole.
    """
    sources, broken = provenance.noted(store.workspace)
    if not store.is_file:
        store.clear()
        result = _filled(store, sources, progress)
    else:
        store.workspace.create()
        with exclusive(store.workspace.path / "locks", "rebuild", lambda holder: None):
            for leftover in store.workspace.path.glob("rebuilding-*.duckdb*"):
                leftover.unlink()
            aside = Store(Workspace(store.workspace.path, database=f"rebuilding-{os.getpid()}.duckdb"))
            try:
                result = _filled(aside, sources, progress)
                store.clear()
                aside.workspace.database.rename(store.workspace.database)
            finally:
                aside.clear()
    result.quarantined.extend(broken)
    return result


def _filled(store: Store, sources: Sequence[Source], progress: Progress | None) -> Ingested:
    """Read every source into an empty store, and the ledgers of ratings and outcomes after them."""
    result = Ingested()
    batch = Batch(store, result)
    for source in (one for one in sources if one.reference):
        if Path(source.path).exists():
            result.quarantined.extend(read_references(store, Path(source.path)))
        else:
            batch.quarantined.append(Quarantined(source=source.path, reason="the references are gone"))
    sources = [source for source in sources if not source.reference]
    for done, source in enumerate(sources):
        if progress:
            progress(source.path, done, len(sources))
        place = provenance.found_again(store.workspace, source)
        if place is None:
            reason = "the log is gone; its ratings are kept"
            batch.quarantined.append(Quarantined(source=source.path, reason=reason))
        else:
            batch.add(source, place, fresh=False)
    batch.flush()
    with store.writing() as connection:
        serving.replay(store, connection)
        store.catch_up(connection)
    return result
