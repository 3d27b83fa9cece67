"""Trajectories in a given order, in a few passes over the tables however many they are.

Their rows are sorted into files: the database is not open while somebody works on them.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb

from ....schemas import Trajectory
from ..connection import constant, register_table
from ..database import Store
from ..garbage import few_collections
from ..memory import spill_folder, write_out
from ..tables import rows
from .aside import batches

MEMORY = "128MB"
"""DuckDB's memory for the queries that sort."""
MORE = 5
"""How many times as many events each pass reads as the one before."""
AT_ONCE = 2000
"""Rows of a file that are in memory at a time."""
_OWN = "SELECT w.place, t.* EXCLUDE (trajectory_id) FROM {} t JOIN wanted w ON w.id = t.trajectory_id"
_PARTS = {
    "trajectories": "SELECT w.place, t.* FROM trajectories t JOIN wanted w USING (id)",
    **{name: _OWN.format(name) for name in ("participants", "events", "outcomes")},
    "states": """
        SELECT p.place, t.hash, t.content FROM states t JOIN (
            SELECT DISTINCT w.place, unnest(json_extract_string(e.states, '$.*')) AS hash
            FROM events e JOIN wanted w ON w.id = e.trajectory_id WHERE e.states IS NOT NULL
        ) p USING (hash)
    """,
}
"""Table -> its rows, each with the place of its trajectory."""
_ORDER = {"states": ", t.hash", "events": ", seq, sub", "participants": ", t.rowid", "outcomes": ", t.rowid"}
Size = tuple[str, int]
"""A trajectory's id, and how many events it has."""
_Groups = Iterator[tuple[int, list[dict[str, Any]]]]


def stream(
    store: Store, sizes: Sequence[Size], most: int, *, states: bool = False
) -> Iterator[list[Trajectory]]:
    """These trajectories in this order, in lists of about `most` events; unknown ids are left out.

    Each pass over the tables reads MORE times as many events as the one before: who needs only the first
    trajectories does not wait for all, and what is read is not old.
    """
    place, reach = 0, most
    while place < len(sizes):
        totals = itertools.accumulate(size for _, size in itertools.islice(sizes, place, None))
        count = max(1, sum(1 for _ in itertools.takewhile(lambda total: total <= reach, totals)))  # noqa: B023
        ids = [key for key, _ in sizes[place : place + count]]
        if reach == most:
            with store.reading(synced=True) as connection:
                some = store.load(connection, ids, states=states)
            yield some
        else:
            yield from _through_files(store, ids, most, states=states)
        place, reach = place + count, MORE * reach


def _through_files(
    store: Store, ids: Sequence[str], most: int, *, states: bool
) -> Iterator[list[Trajectory]]:
    with tempfile.TemporaryDirectory(dir=spill_folder()) as folder:
        with store.reading(synced=True) as connection:
            files = _write_files(connection, ids, Path(folder), states=states)
        trajectories = _read(files)
        while some := _next_batch(trajectories, most):
            yield some


def _write_files(
    connection: duckdb.DuckDBPyConnection, ids: Sequence[str], folder: Path, *, states: bool
) -> dict[str, Path]:
    """A file for each table, of the rows of these trajectories in their order."""
    import pyarrow as pa

    places = pa.table({"place": pa.array(range(len(ids)), "int32"), "id": pa.array(ids, "string")})
    with register_table(connection, "places", places):
        connection.execute("CREATE OR REPLACE TEMP TABLE wanted AS FROM places")
    files = {}
    for name, query in _PARTS.items():
        if name == "states" and not states:
            continue
        files[name] = folder / f"{name}.parquet"
        statement = f"{query} ORDER BY place{_ORDER.get(name, '')}"
        target = f"{constant(str(files[name]))} (FORMAT parquet, ROW_GROUP_SIZE {10 * AT_ONCE})"
        write_out(connection, f"COPY ({statement}) TO {target}", MEMORY)
    connection.execute("DROP TABLE wanted")
    return files


def _read(files: dict[str, Path]) -> Iterator[tuple[Trajectory, int]]:
    """Each trajectory with how many events it has."""
    parts = {name: _row_getter(_groups(path)) for name, path in files.items() if name != "trajectories"}
    for place, (head,) in _groups(files["trajectories"]):
        rows_by_part = {name: take(place) for name, take in parts.items()}
        contents = {row["hash"]: json.loads(row["content"]) for row in rows_by_part.pop("states", ())}
        yield rows.to_trajectory(head, **rows_by_part, states=contents), len(rows_by_part["events"])


def _next_batch(pairs: Iterator[tuple[Trajectory, int]], most: int) -> list[Trajectory]:
    some: list[Trajectory] = []
    total = 0
    with few_collections():
        while total < most and (pair := next(pairs, None)):
            some.append(pair[0])
            total += pair[1]
    return some


def _row_getter(groups: _Groups) -> Callable[[int], list[dict[str, Any]]]:
    """A function that gives the rows of a place; it must be asked for places in ascending order."""
    ahead = next(groups, None)

    def take(place: int) -> list[dict[str, Any]]:
        nonlocal ahead
        while ahead and ahead[0] < place:
            ahead = next(groups, None)
        return ahead[1] if ahead and ahead[0] == place else []

    return take


def _groups(path: Path) -> _Groups:
    records = itertools.chain.from_iterable(batch.to_pylist() for batch in batches(path, AT_ONCE))
    for place, group in itertools.groupby(records, key=itemgetter("place")):
        yield place, list(group)
