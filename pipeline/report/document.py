"""A report as data: what the formats draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # each takes its time to load, and a document only holds them
    from .figures import Figure
    from .tables import Answer, Table
    from .transcript.excerpts import Excerpt


@dataclass(frozen=True)
class Report:
    """The report of a workspace at one moment."""

    created: str
    workspace: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    methods: tuple[str, ...]
    answers: tuple[Answer, ...] = ()
    figures: tuple[Figure, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()

    @property
    def main(self) -> tuple[Table, ...]:
        """The tables before the methods."""
        return tuple(table for table in self.tables if not table.appendix)

    @property
    def appendix(self) -> tuple[Table, ...]:
        """The tables behind the methods."""
        return tuple(table for table in self.tables if table.appendix)

    def table(self, name: str) -> Table:
        """The table of that name; KeyError names the ones there are."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(f"no table {name!r}, expected one of {', '.join(t.name for t in self.tables)}")
