"""By what sessions are grouped and chosen: fields, tags and the day, and for a choice outcomes, too."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

import duckdb

from ....schemas import FIELDS
from ...errors import UsageError
from ..connection import constant, texts
from .selection import NONE, among, day_of, tag_path

DAY = "day"
"""The day on which a trajectory began."""


@dataclass(frozen=True)
class Condition:
    """SQL on `trajectories t`, with its parameters."""

    sql: str = "true"
    parameters: tuple[Any, ...] = ()

    def __bool__(self) -> bool:
        """Whether it leaves anything out."""
        return self != Condition()


def keys_of(connection: duckdb.DuckDBPyConnection, by: Iterable[str]) -> list[tuple[str, str]]:
    """(name, SQL expression over `trajectories t`) of each grouping; a name that is no column is a tag.

    A value that only stands for a missing one (NONE), in a log too, is null.
    """
    tags = _tags(connection)
    keys = []
    for name in by:
        expression = _expression(name, tags)
        if expression is None:
            choices = ", ".join([*FIELDS, DAY, *sorted(tags)])
            raise UsageError(f"no trajectory has a field or a tag {name!r}, expected one of {choices}")
        keys.append((name, expression))
    return keys


def condition_of(connection: duckdb.DuckDBPyConnection, wishes: Iterable[tuple[str, str]]) -> Condition:
    """Sessions with one of the values asked for under each name: of a field, a tag, the day or an outcome.

    NONE asks for those without one. Outcomes that are numbers are compared as numbers (`success=0`).
    UsageError for a name that no session has.
    """
    values: dict[str, list[str]] = {}
    for name, value in wishes:
        values.setdefault(name, []).append(value)
    tags = _tags(connection)
    terms: list[str] = []
    parameters: list[Any] = []
    for name, some in values.items():
        if expression := _expression(name, tags):
            terms.append(among(expression, some))
            parameters.append(texts(some))
        elif name in (outcomes := _outcomes(connection)):
            terms.append(among(_OUTCOME, some))
            parameters += [name, texts({*some, *map(_as_number, some)})]
        else:
            choices = ", ".join([*FIELDS, DAY, *sorted(tags | outcomes)])
            raise UsageError(
                f"no trajectory has a field, a tag or an outcome {name!r}, expected one of {choices}"
            )
    return Condition(" AND ".join(terms) or "true", tuple(parameters))


_OUTCOME = """(
    SELECT any_value(coalesce(o.found.text, o.found.value::VARCHAR)) FROM outcome_values o
    WHERE o.trajectory_id = t.id AND o.name = ? AND o.baseline IS NULL
)"""


def _expression(name: str, tags: Container[str]) -> str | None:
    """SQL over `trajectories t`: a field, the day or a tag; None where it is none of these."""
    if name in FIELDS:
        return f"nullif(t.{name}, '{NONE}')"
    if name in tags:
        return f"nullif(json_extract_string(t.tags, {constant(tag_path(name))}), '{NONE}')"
    return day_of("t.started") if name == DAY else None


def _tags(connection: duckdb.DuckDBPyConnection) -> set[str]:
    query = "SELECT DISTINCT unnest(json_keys(tags)) FROM trajectories"
    return {row[0] for row in connection.execute(query).fetchall()}


def _outcomes(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT DISTINCT name FROM outcomes").fetchall()}


def _as_number(value: str) -> str:
    """A number as DuckDB writes it, and any other text as it is."""
    try:
        return repr(float(value))
    except ValueError:
        return value
