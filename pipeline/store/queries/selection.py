"""Which trajectories are looked at: what pages filter by and `--where` names."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ....schemas import FIELDS
from ..connection import AMONG, texts

COLUMNS = ("system", "setting", "condition", "task", "agent", "agent_model")
"""Columns of `trajectories` that pages filter by; a selection can name values of any of FIELDS."""
SPAN = ".."
"""Stands between the first and the last day of several."""
LAST_DAY = "9999-12-31"
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
    """Values for each field (none: all), days, tags and outcomes as `key=value`; any of one name may hold.

    `–` (NONE) stands for trajectories without such a value. A day is an ISO date, or a `span` of days: two
    with `..` between them, either of which may lack; the last is included. Trajectories without a time are
    left out where a day is asked for. Outcomes that are numbers are compared as numbers (`success=0`).
    """

    system: tuple[str, ...] = ()
    setting: tuple[str, ...] = ()
    condition: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    instance: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    agent_model: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    def where(self, table: str = "t") -> tuple[str, list[Any]]:
        """A condition on `trajectories` named `table`, with its parameters."""
        terms: list[tuple[str, list[Any]]] = [
            (among(f"{table}.{column}", choices), [texts(choices)])
            for column in FIELDS
            if (choices := getattr(self, column))
        ]
        day = day_of(f"{table}.started")
        if self.days:
            terms.append(_on_days(day, self.days))
        if self.ids:
            terms.append((f"{table}.id {AMONG}", [texts(self.ids)]))
        for key, some in _values_by_key(self.tags).items():
            tag = f"json_extract_string({table}.tags, ?)"
            terms.append((among(tag, some), [tag_path(key), texts(some)]))
        for key, some in _values_by_key(self.outcomes).items():
            spellings = texts({*some, *map(_as_number, some)})
            terms.append((among(OUTCOME.format(table=table), some), [key, spellings]))
        condition = " AND ".join(term for term, _ in terms) or "true"
        return condition, [parameter for _, parameters in terms for parameter in parameters]

    def words(self) -> str:
        """The selection as a text: `condition = collab or solo, success = 0`; empty for everything."""
        values = self._values() | {"day": list(map(_days, self.days)), "id": list(self.ids)}
        parts = [f"{name} = {' or '.join(some)}" for name, some in values.items() if some]
        return ", ".join(parts)

    def options(self) -> str:
        """The selection as the options of a command: ` --where system=cogym`; empty for everything.

        Ids are no such option and are left out.
        """
        pairs = (f"{name}={value}" for name, some in self._values().items() for value in some)
        return "".join(f" --where {shlex.quote(pair)}" for pair in pairs)

    def _values(self) -> dict[str, list[str]]:
        values = {name: list(getattr(self, name)) for name in FIELDS}
        values |= _values_by_key(self.tags) | _values_by_key(self.outcomes)
        values |= {"day": list(self.days)}
        return {name: list(dict.fromkeys(some)) for name, some in values.items()}

    def __bool__(self) -> bool:
        """Whether it leaves anything out."""
        return self != Selection()


def span(first: str | None, last: str | None) -> str:
    """Days from the first to the last one, as one choice of days; None: without end."""
    return f"{first or ''}{SPAN}{last or ''}"


def _days(choice: str) -> str:
    """A choice of days in words."""
    first, dots, last = choice.partition(SPAN)
    if not dots:
        return choice
    return f"{first} to {last}" if first and last else f"from {first}" if first else f"until {last}"


def _on_days(day: str, choices: Sequence[str]) -> tuple[str, list[Any]]:
    """SQL: whether a day is one of the choices or within one of their spans, with its parameters."""
    single = [choice for choice in choices if SPAN not in choice]
    spans = [choice.partition(SPAN) for choice in choices if SPAN in choice]
    terms = [f"{day} BETWEEN ? AND ?" for _ in spans] + [among(day, single)] * bool(single)
    bounds: list[Any] = [bound for first, _, last in spans for bound in (first, last or LAST_DAY)]
    return f"({' OR '.join(terms)})", bounds + [texts(single)] * bool(single)


def among(value: str, choices: Collection[str]) -> str:
    """SQL: whether a value is one of a parameter's."""
    return f"coalesce({value}, '{NONE}') {AMONG}" if NONE in choices else f"{value} {AMONG}"


OUTCOME = """(
    SELECT any_value(coalesce(o.found.text, o.found.value::VARCHAR)) FROM outcome_values o
    WHERE o.trajectory_id = {table}.id AND o.name = ? AND o.baseline IS NULL
)"""
"""SQL: the outcome of a name, as a text; `table` is that of the trajectories."""


def _values_by_key(pairs: Iterable[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        values.setdefault(key, []).append(value)
    return values


def _as_number(value: str) -> str:
    """A number as DuckDB writes it, of `true` and `false` 1 and 0, and any other text as it is."""
    value = {"true": "1", "false": "0"}.get(value.lower(), value)
    try:
        return repr(float(value))
    except ValueError:
        return value
