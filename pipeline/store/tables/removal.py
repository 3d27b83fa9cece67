"""Trajectories out of the tables. Ledgers keep what was said of them."""

from __future__ import annotations

from collections.abc import Collection

import duckdb

from ..connection import ALERTS, AMONG, delete, execute, texts
from . import derived

TABLES = ("participants", "events", "units", "computed")


def remove(connection: duckdb.DuckDBPyConnection, ids: Collection[str]) -> None:
    """Remove trajectories, within the caller's transaction. Imported outcomes wait for their return."""
    clear(connection, ids)
    if ids:
        delete(connection, "meta", "key", [ALERTS + key for key in ids])
    derived.refresh(connection, set(ids))


def clear(connection: duckdb.DuckDBPyConnection, ids: Collection[str]) -> None:
    """Remove trajectories for other rows to take their place; the caller refreshes what is derived."""
    if not ids:
        return
    for table in TABLES:
        delete(connection, table, "trajectory_id", list(ids))
    delete(connection, "trajectories", "id", list(ids))
    query = f"DELETE FROM outcomes WHERE NOT imported AND trajectory_id {AMONG}"
    execute(connection, query, [texts(ids)])
