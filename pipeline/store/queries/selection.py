"""Which trajectories are looked at: the filters that dashboard pages and reports share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..connection import AMONG, texts

COLUMNS = ("system", "setting", "condition", "task", "agent", "agent_model")
"""Columns of `trajectories` that a selection can name values of."""
NONE = "–"
"""Name of the group of those whose logs do not say what is grouped by; also asked for by it."""


def name_of(group: str | None) -> str:
    """A group's name, which may be empty; NONE where the logs do not say it."""
    return NONE if group is None else group


def day_of(time: str) -> str:
    """SQL: the day of a column of times; NULL where a log's own words for it are no date (30 February)."""
    day = rf"regexp_extract({time}, '^\d\d\d\d-\d\d-\d\d')"
    return f"CASE WHEN try_cast({day} AS DATE) >= DATE '0001-01-01' THEN {day} END"


def tag_path(key: str) -> str:
    """A tag as a JSON pointer (RFC 6901): in a path with `$`, a tag called `*` would mean every tag."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


@dataclass(frozen=True)
class Selection:
    """Values for each column (none: all), a span of days, and tags as `key=value`, of which any of one key
    may hold.

    `–` (NONE) stands for trajectories without a value of the column or tag. A day is an ISO date; `until` is
    included. Trajectories without a time are left out where a day is asked for.
    """

    system: tuple[str, ...] = ()
    setting: tuple[str, ...] = ()
    condition: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    agent_model: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None

    def where(self, table: str = "t") -> tuple[str, list[Any]]:
        """A condition on `trajectories` named `table`, with its parameters."""
        terms: list[tuple[str, list[Any]]] = [
            (among(f"{table}.{column}", choices), [texts(choices)])
            for column in COLUMNS
            if (choices := getattr(self, column))
        ]
        if self.ids:
            terms.append((f"{table}.id {AMONG}", [texts(self.ids)]))
        if self.since:
            terms.append((f"{day_of(f'{table}.started')} >= ?", [self.since]))
        if self.until:
            terms.append((f"{day_of(f'{table}.started')} <= ?", [self.until]))
        values: dict[str, list[str]] = {}
        for tag in self.tags:
            key, _, value = tag.partition("=")
            values.setdefault(key, []).append(value)
        for key, some in values.items():
            tag = f"json_extract_string({table}.tags, ?)"
            terms.append((among(tag, some), [tag_path(key), texts(some)]))
        condition = " AND ".join(term for term, _ in terms) or "true"
        return condition, [parameter for _, parameters in terms for parameter in parameters]

    def __bool__(self) -> bool:
        """Whether it leaves anything out."""
        return self != Selection()


def among(value: str, choices: Collection[str]) -> str:
    """SQL: whether a value is one of a parameter's."""
    return f"coalesce({value}, '{NONE}') {AMONG}" if NONE in choices else f"{value} {AMONG}"
