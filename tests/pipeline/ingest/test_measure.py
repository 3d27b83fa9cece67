"""Measures of any team: the same however many are measured at once, and of a session of any length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from coaudit.pipeline.ingest import blocks, measure
from coaudit.pipeline.store.tables.columns import SCHEMAS, schema
from coaudit.pipeline.store.tables.parcel import Parcel
from coaudit.pipeline.systems.cogym.generate import generate
from tests.pipeline.stores import made, rows, take

PEOPLE = [("ann", "human"), ("bot", "agent"), ("env", "environment")]


def test_measures_are_the_same_however_many_are_measured_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(tmp_path / "logs", 12, 0)
    one, other = made(tmp_path / "one"), made(tmp_path / "other")
    take(one, tmp_path / "logs")
    monkeypatch.setattr(measure, "TOGETHER", 1)
    monkeypatch.setattr(blocks, "BLOCK_EVENTS", 1)
    take(other, tmp_path / "logs")
    computed = "SELECT * FROM computed ORDER BY ALL"
    assert rows(one, computed) == rows(other, computed) != []


def parcel(sessions: int, events: int) -> Parcel:
    """Sessions of so many events, made as columns: every third a message, the rest actions of two kinds."""
    said = f"""
        SELECT 't' || t AS trajectory_id, s::INTEGER AS seq, 0::INTEGER AS sub, false AS live_only,
            strftime(TIMESTAMP '2026-01-01' + to_seconds(s), '%Y-%m-%dT%H:%M:%S') AS time,
            CASE s % 2 WHEN 0 THEN 'ann' ELSE 'bot' END AS actor,
            CASE s % 3 WHEN 0 THEN 'message' ELSE 'action' END AS kind, 'x' AS text,
            CASE WHEN s % 3 > 0 THEN 'look' END AS action, CASE WHEN s % 3 > 0 THEN '{{}}' END AS arguments,
            CASE WHEN s % 3 > 0 THEN 'succeeded' END AS status
        FROM range({sessions}) a(t), range({events}) b(s)
    """
    heads = f"SELECT 't' || t AS id, 't' || t AS native_id, 'made' AS system FROM range({sessions}) a(t)"
    people = ", ".join(f"('{name}', '{kind}')" for name, kind in PEOPLE)
    parties = f"""
        SELECT 't' || t AS trajectory_id, name, kind
        FROM range({sessions}) a(t), (VALUES {people}) p(name, kind)
    """
    tables: dict[str, Any] = {}
    with duckdb.connect(config={"python_enable_replacements": False}) as connection:
        for name, query in (("events", said), ("trajectories", heads), ("participants", parties)):
            table = connection.sql(query).to_arrow_table()
            for field in schema(name):
                if field.name not in table.column_names:
                    table = table.append_column(field, pa.nulls(table.num_rows, field.type))
            tables[name] = table.select(list(SCHEMAS[name])).cast(schema(name))
    for name in SCHEMAS:
        tables.setdefault(name, schema(name).empty_table())
    return Parcel.of(tables)


@pytest.mark.slow
@pytest.mark.parametrize(("sessions", "events"), [(1, 600_000), (6000, 100)])
def test_as_many_events_as_there_are_can_be_measured_at_once(
    tmp_path: Path, sessions: int, events: int
) -> None:
    store = made(tmp_path / "workspace")
    with store.writing() as connection:
        measure.save_parcels(store, connection, [parcel(sessions, events)])
    said = (events + 2) // 3
    query = "SELECT metric, sum(value) AS total, count(*) AS n FROM computed GROUP BY metric"
    totals = {row["metric"]: (row["total"], row["n"]) for row in rows(store, query)}
    assert totals["messages"] == (sessions * said, 2 * sessions)
    # Of the looks of each of two actors, the first is none.
    again = (events - said - 2) / (events - said)
    assert totals["repeated_action_rate"] == (pytest.approx(sessions * again), sessions)
