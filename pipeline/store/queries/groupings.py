"""By what sessions are grouped and chosen: fields, tags and the day, and for a choice outcomes, too."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from datetime import date
from typing import Any

import duckdb

from ....schemas import FIELDS
from ....schemas.text import shortened
from ...errors import UsageError
from ..connection import constant, execute, first_row
from .selection import NONE, OUTCOME, SPAN, Selection, day_of, tag_path

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

    NONE asks for those without one. UsageError for a name or a value that no session has, or where no session
    has all that is asked for.
    """
    tags, outcomes = _tags(connection), _outcomes(connection)
    for name, value in wishes:
        if name == DAY and DAY not in tags and SPAN in value:
            _check_span(value)
        if name not in (*FIELDS, DAY, *tags, *outcomes):
            choices = ", ".join([*FIELDS, DAY, *sorted(tags | outcomes)])
            raise UsageError(
                f"no trajectory has a field, a tag or an outcome {name!r}, expected one of {choices}"
            )
        if not _any(connection, _selection([(name, value)], tags)):
            values = _values(connection, name, tags)
            raise UsageError(f"no session has {name}={value}, expected one of {values}")
    only = _selection(wishes, tags)
    if not _any(connection, only):
        wish = " and ".join(f"{name}={value}" for name, value in wishes)
        raise UsageError(f"no session has {wish}, though each of these some have")
    return only


def _check_span(days: str) -> None:
    """UsageError for a span of days without a date, or with an end that is none."""
    ends = [end for end in days.split(SPAN, 1) if end]
    try:
        dates = [date.fromisoformat(end).isoformat() for end in ends]
    except ValueError:
        dates = []
    if not ends or dates != ends:
        raise UsageError(f"day must be a date or two with {SPAN} between them (2026-03-01..), got {days!r}")


def _selection(wishes: Iterable[tuple[str, str]], tags: Container[str]) -> Selection:
    """A field comes before a tag of its name, and this before the day or an outcome."""
    values: dict[str, list[str]] = {}
    for name, value in wishes:
        if name in FIELDS:
            values.setdefault(name, []).append(value)
        elif name in tags:
            values.setdefault("tags", []).append(f"{name}={value}")
        elif name == DAY:
            values.setdefault("days", []).append(value)
        else:
            values.setdefault("outcomes", []).append(f"{name}={value}")
    choices: dict[str, Any] = {name: tuple(dict.fromkeys(some)) for name, some in values.items()}
    return Selection(**choices)


def _any(connection: duckdb.DuckDBPyConnection, only: Selection) -> bool:
    where, parameters = only.where()
    query = f"SELECT 1 FROM trajectories t WHERE {where} LIMIT 1"
    return first_row(connection, query, parameters) is not None


VALUES = 10
"""Most values of a name that an error lists: those of most sessions."""


def _values(connection: duckdb.DuckDBPyConnection, name: str, tags: Container[str]) -> str:
    """What sessions have under a name, the commonest in front."""
    expression = _expression(name, tags)
    parameters = [] if expression else [name]
    expression = expression or OUTCOME.format(table="t")
    query = (
        f"SELECT {expression} FROM trajectories t GROUP BY ALL ORDER BY count(*) DESC, 1 LIMIT {VALUES + 1}"
    )
    rows = execute(connection, query, parameters).fetchall()
    values = [NONE if value is None else shortened(value, 80) for (value,) in rows]
    return ", ".join(values if len(values) <= VALUES else [*values[:VALUES], "…"])


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
