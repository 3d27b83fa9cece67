"""Collaboration against the load of the model server: the rows of `metrics --serving`."""

from __future__ import annotations

from typing import Any

from ..store import Store, dictionaries

LOADS = ("idle", "busy", "queue")
"""No request in work; some; some waiting."""


def measures(store: Store) -> list[dict[str, Any]]:
    """One row a metric and load: value, n, missing, and why the value is null."""
    query = "SELECT metric, load, value, n, missing FROM serving_measures ORDER BY metric, load"
    with store.reading() as connection:
        if not connection.execute("SELECT 1 FROM serving LIMIT 1").fetchall():
            return []
        rows = dictionaries(connection, query)
    return [_row(row) for row in rows]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    document = {"metric": row["metric"], "group": {"load": row["load"]}, "value": row["value"]}
    document |= {"n": int(row["n"]), "missing": int(row["missing"]), "low": None, "high": None}
    if row["value"] is None:
        document["reason"] = "never seen under this load"
    return document
