"""By what sessions are grouped and chosen: fields, tags and the day, and for a choice outcomes, too."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from typing import Any

import duckdb

from ....schemas import FIELDS
from ...errors import UsageError
from ..connection import constant, first_row
from .selection import NONE, Selection, day_of, tag_path

DAY = "day"
"""The day on which a trajectory began."""


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


def selection_of(connection: duckdb.DuckDBPyConnection, wishes: Collection[tuple[str, str]]) -> Selection:
    """Sessions with one of the values asked for under each name: of a field, a tag, the day or an outcome.

    NONE asks for those without one. UsageError for a name that no session has, or where no session has all
    that is asked for.
    """
    tags, outcomes = _tags(connection), _outcomes(connection)
    values: dict[str, list[str]] = {}
    for name, value in wishes:
        if name in FIELDS:
            values.setdefault(name, []).append(value)
        elif name in tags:
            values.setdefault("tags", []).append(f"{name}={value}")
        elif name == DAY:
            values.setdefault("days", []).append(value)
        elif name in outcomes:
            values.setdefault("outcomes", []).append(f"{name}={value}")
        else:
            choices = ", ".join([*FIELDS, DAY, *sorted(tags | outcomes)])
            raise UsageError(
                f"no trajectory has a field, a tag or an outcome {name!r}, expected one of {choices}"
            )
    choices_by_field: dict[str, Any] = {name: tuple(some) for name, some in values.items()}
    only = Selection(**choices_by_field)
    where, parameters = only.where()
    if first_row(connection, f"SELECT 1 FROM trajectories t WHERE {where} LIMIT 1", parameters) is None:
        wish = " and ".join(f"{name}={value}" for name, value in wishes)
        raise UsageError(f"no session has {wish}, expected values that the logs have")
    return only


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
