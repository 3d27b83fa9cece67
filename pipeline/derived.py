"""What is computed from the tables and kept beside them, so that looking at it takes no time.

`counted` holds the ratings that count, `measured` every measure of every trajectory. Both are refreshed in
the transaction that changed what they rest on, for the trajectories that it touched.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

KEPT = {"counted": "counting", "measured": "measuring"}
"""Table -> the view that computes it, in this order: measures rest on the ratings that count."""
MANY = 2000
"""From so many trajectories on, everything is computed anew: a list that long filters too slowly."""


def refresh(connection: Any, trajectories: Collection[str] | None = None) -> None:
    """Compute anew what is kept of these trajectories, or of all (None)."""
    if trajectories is not None and not trajectories:
        return
    for table, view in KEPT.items():
        if trajectories is None or len(trajectories) >= MANY:
            connection.execute(f"DELETE FROM {table}")
            connection.execute(f"INSERT INTO {table} FROM {view}")
        else:
            # Constants, since only they are pushed below the views' windows and groups.
            listed = ", ".join("'" + name.replace("'", "''") + "'" for name in sorted(trajectories))
            connection.execute(f"DELETE FROM {table} WHERE trajectory_id IN ({listed})")
            connection.execute(f"INSERT INTO {table} FROM {view} WHERE trajectory_id IN ({listed})")
