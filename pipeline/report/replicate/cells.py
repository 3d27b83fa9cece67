"""A paper's result tables as cells: the published figure beside the workspace's own estimate."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from ....schemas import JsonValue
from ....schemas.text import count_of


@dataclass(frozen=True)
class Omission:
    """Records, by native id, that belong to a cell and did not go into its value, and why."""

    reason: str
    records: tuple[str, ...]


@dataclass(frozen=True)
class Estimate:
    """The workspace's own value of a cell; `value` is None exactly where `reason` says why."""

    value: float | None
    n: int = 0
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    note: str | None = None
    left_out: tuple[Omission, ...] = ()

    def times(self, factor: float) -> Estimate:
        """The same on another scale, such as per cent."""
        value, low, high = (None if x is None else factor * x for x in (self.value, self.low, self.high))
        return replace(self, value=value, low=low, high=high)


NO_RECORD = Estimate(None, reason="no record here")


@dataclass(frozen=True)
class Cell:
    """One cell of a published table, or one that the paper does not print (`published` None)."""

    row: str
    column: str
    published: float | None
    here: Estimate
    definition: str
    defined_for: str = ""
    """The row or column that the definition is for."""

    @property
    def has_records(self) -> bool:
        """Whether the workspace has records for it, used or left out."""
        return self.here.n > 0 or self.here.value is not None or bool(self.here.left_out)

    def document(self) -> dict[str, Any]:
        """The cell as JSON; missing values are null."""
        here = self.here
        return {
            "row": self.row,
            "column": self.column,
            "published": self.published,
            "value": here.value,
            "low": here.low,
            "high": here.high,
            "n": here.n,
            "definition": self.definition,
            "reason": here.reason if here.value is None else None,
            "note": here.note,
            "left_out": [{"reason": one.reason, "records": list(one.records)} for one in here.left_out],
        }


@dataclass(frozen=True)
class PublishedTable:
    """One table as the paper prints it: rows of figures by column, None where it prints none."""

    name: str
    place: str
    about: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float | None, ...]]

    def figure(self, row: str, column: str) -> float | None:
        """The published figure; None where the paper has none."""
        if row not in self.rows or column not in self.columns:
            return None
        return self.rows[row][self.columns.index(column)]


@dataclass(frozen=True)
class Paper:
    """The content of data/papers/NAME.toml."""

    title: str
    source: str
    records: str
    """Which records are public, and which are not."""
    tables: tuple[PublishedTable, ...]
    names: Mapping[str, Mapping[str, str]]
    """Kind (models, arms ...) -> the paper's name -> pattern of its names in logs."""

    def table(self, name: str) -> PublishedTable:
        """The table of that name."""
        return next(table for table in self.tables if table.name == name)


@dataclass(frozen=True)
class ReplicatedTable:
    """One table with its cells. `printed` is False where the paper only draws it, or does not have it."""

    name: str
    place: str
    about: str
    cells: tuple[Cell, ...]
    printed: bool = True


@dataclass(frozen=True)
class Replication:
    """A paper's tables on the records of a workspace."""

    name: str
    paper: Paper
    definition: str
    rater: str | None
    tables: tuple[ReplicatedTable, ...]
    left_out: tuple[Omission, ...] = field(default=())
    """Records of the system that belong to no cell."""

    def document(self) -> dict[str, JsonValue]:
        """Everything, every published cell included, as one JSON document."""
        return {
            "paper": self.name,
            "title": self.paper.title,
            "source": self.paper.source,
            "public_records": self.paper.records,
            "definition": self.definition,
            "rater": self.rater,
            "tables": [
                {
                    "name": table.name,
                    "place": table.place,
                    "about": table.about,
                    "printed": table.printed,
                    "cells": [cell.document() for cell in table.cells],
                }
                for table in self.tables
            ],
            "left_out": [{"reason": one.reason, "records": list(one.records)} for one in self.left_out],
        }


def load(name: str) -> Paper:
    """The published figures of a paper."""
    text = (resources.files("coaudit.data") / "papers" / f"{name}.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    names = {key: value for key, value in document.items() if isinstance(value, dict)}
    tables = tuple(_published_table(table) for table in document["tables"])
    return Paper(document["paper"], document["source"], document["records"], tables, names)


def _published_table(table: Mapping[str, Any]) -> PublishedTable:
    rows = {
        name: tuple(None if math.isnan(value) else float(value) for value in values)
        for name, values in table["rows"].items()
    }
    return PublishedTable(table["name"], table["place"], table["about"], tuple(table["columns"]), rows)


def cells_of(
    table: PublishedTable, here: Mapping[tuple[str, str], Estimate], definition: Mapping[str, str]
) -> tuple[Cell, ...]:
    """Every published cell, then cells that only the workspace has; `definition` is by column or row."""
    places = [(row, column) for row in table.rows for column in table.columns]
    places += [place for place in here if place not in set(places)]
    return tuple(
        _cell(row, column, table.figure(row, column), here.get((row, column), NO_RECORD), definition)
        for row, column in places
    )


def _cell(
    row: str, column: str, published: float | None, here: Estimate, definition: Mapping[str, str]
) -> Cell:
    name = next((name for name in (column.rpartition(" · ")[2], row) if name in definition), "")
    return Cell(row, column, published, here, definition.get(name, ""), name)


def replicate_table(
    table: PublishedTable, here: Mapping[tuple[str, str], Estimate], definition: Mapping[str, str]
) -> ReplicatedTable:
    """A published table with the workspace's own estimates."""
    return ReplicatedTable(table.name, table.place, table.about, cells_of(table, here, definition))


def unpublished_table(
    name: str, about: str, here: Mapping[tuple[str, str], Estimate], definition: Mapping[str, str]
) -> ReplicatedTable:
    """Cells that belong to the paper but are printed in none of its tables."""
    table = PublishedTable(name, "not printed as figures", about, (), {})
    return ReplicatedTable(name, table.place, about, cells_of(table, here, definition), printed=False)


COLUMNS = ("row", "column", "published", "here", "95 %", "n", "left out", "remark")


def lines(table: ReplicatedTable) -> list[list[str]]:
    """The cells that have a value here, as the rows of a table for reading."""
    return [_line(cell) for cell in table.cells if cell.here.value is not None]


def _line(cell: Cell) -> list[str]:
    here = cell.here
    interval = "" if here.low is None or here.high is None else f"{_number(here.low)} – {_number(here.high)}"
    return [
        cell.row,
        cell.column,
        _number(cell.published),
        _number(here.value),
        interval,
        str(here.n),
        _omission_text(here),
        here.note or "",
    ]


def _omission_text(here: Estimate) -> str:
    return "; ".join(f"{len(one.records)}: {one.reason}" for one in here.left_out)


def remarks(table: ReplicatedTable) -> list[str]:
    """Remarks below a table: definitions, cells without a value and why, figures without records."""
    with_records = [cell for cell in table.cells if cell.has_records]
    meanings = {cell.definition: cell.defined_for for cell in reversed(with_records) if cell.definition}
    sentences = [f"{name}: {words}." for words, name in reversed(meanings.items())]
    reasons = Counter(
        _omission_text(c.here) or c.here.reason or "" for c in with_records if c.here.value is None
    )
    for reason, count in reasons.items():
        cells = "1 cell has" if count == 1 else f"{count} cells have"
        sentences.append(f"{cells} records but no value ({reason}).")
    figures = [cell for cell in table.cells if cell.published is not None]
    bare = sum(not cell.has_records for cell in figures)
    return sentences + (
        [
            f"{bare} of its {count_of(len(figures), 'figure', 'figures')} "
            f"{'has' if bare == 1 else 'have'} no record here."
        ]
        if bare
        else []
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def by_reason(pairs: Iterable[tuple[str, str]]) -> tuple[Omission, ...]:
    """(Record, why) pairs, gathered by reason."""
    by_name: dict[str, list[str]] = {}
    for record, reason in pairs:
        by_name.setdefault(reason, []).append(record)
    return tuple(Omission(reason, tuple(records)) for reason, records in by_name.items())


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of no values."""
    return sum(values) / len(values) if values else None
