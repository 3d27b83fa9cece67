"""What a run could not even open, in the quarantine until a run over the same folder or archive opens it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ...schemas import Quarantined
from ..store import Store, execute, insert

_Row = tuple[str, str, str]
"""The place that was looked through, what could not be opened there, and why."""
_END = "/"
"""How the name of such a place ends in the quarantine: no source's name does."""


class Refusals:
    """What could not be opened in the folders and archives of one run."""

    def __init__(self) -> None:
        self._places: set[str] = set()
        self._rows: set[_Row] = set()

    def take(self, place: str, items: Iterable[Quarantined]) -> None:
        """Note that a folder or archive was looked through, and what in it could not be opened."""
        self._places.add(place + _END)
        self._rows |= {(place + _END, item.source, item.reason) for item in items}

    def take_below(self, folder: str, items: Iterable[Quarantined]) -> None:
        """The same of a folder with all that lie in it: each item belongs to the one that it stands in."""
        self.take(folder, ())
        for item in items:
            self.take(folder if item.source == folder else os.path.dirname(item.source), [item])

    def keep(self, store: Store) -> None:
        """Have the quarantine show these, in place of what an earlier run could not open in these places."""
        if not store.has_tables():
            return
        with store.reading(synced=True) as connection:
            query = "SELECT read_from, source, reason FROM quarantine WHERE ends_with(read_from, ?)"
            rows = execute(connection, query, [_END]).fetchall()
        before = {row for row in rows if row[0].startswith(tuple(self._places))}
        if before == self._rows:
            return
        with store.writing() as connection:
            for row in before - self._rows:
                rule = "DELETE FROM quarantine WHERE read_from = ? AND source = ? AND reason = ?"
                execute(connection, rule, row)
            names = ("read_from", "source", "reason")
            insert(
                connection,
                "quarantine",
                [{**dict(zip(names, row, strict=True)), "line": None} for row in sorted(self._rows - before)],
            )
