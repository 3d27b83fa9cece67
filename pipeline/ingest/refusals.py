"""What a run could not even open, in the quarantine until a run over it, or a folder around it, opens it."""

from __future__ import annotations

from collections.abc import Iterable

from ...schemas import Quarantined
from ...schemas.text import as_utf8
from ..store import Store, execute, insert

_NAMES = ("read_from", "source", "reason")
_THIS = " AND ".join(f"{name} = ?" for name in _NAMES)
_Row = tuple[str, ...]
_END = "/"
"""How the quarantine marks what was read from a refusal: no source's name ends so."""


def refusal_of(source: str) -> str:
    """What the quarantine calls `read_from` where a source could not be opened."""
    return source + _END


def opened(read_from: str) -> str:
    """The source that an entry of the quarantine is of, whether it could be opened or not."""
    return read_from.removesuffix(_END)


class Refusals:
    """What could not be opened in the folders, files and archives of one run."""

    def __init__(self) -> None:
        self._places: set[str] = set()
        self._rows: set[_Row] = set()

    def look(self, place: str) -> None:
        """Note that all of a folder or archive, or a file, is looked through."""
        self._places.update(as_utf8(place) + end for end in (_END, "!"))

    def take(self, items: Iterable[Quarantined]) -> None:
        """Note what could not be opened."""
        for item in items:
            source = as_utf8(item.source)
            self._rows.add((refusal_of(source), source, as_utf8(item.reason)))

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
                execute(connection, f"DELETE FROM quarantine WHERE {_THIS}", row)
            new = sorted(self._rows - before)
            for _, source, reason in new:  # which another command met when it read what it knows
                execute(
                    connection,
                    f"DELETE FROM quarantine WHERE line IS NULL AND {_THIS}",
                    (source, source, reason),
                )
            rows_by_name = [{**dict(zip(_NAMES, row, strict=True)), "line": None} for row in new]
            insert(connection, "quarantine", rows_by_name)
