"""The store: the only place that opens the database. Every connection is short and retried.

DuckDB admits no reader beside a writer in another process, so `reading` and `writing` open, work and
close; the database is derived from logs and ledgers and may be deleted at any time.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb

from coaudit.pipeline import codebooks, ledger, rows, samples
from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.workspace import Workspace
from coaudit.schemas.trajectory import Quarantined, Trajectory

VERSION = 1
"""Of the tables; a database of another version is rebuilt, one from a newer coaudit is refused."""
PATIENCE = 30.0
"""Seconds that an open is retried while another process writes."""
VIEWS = ("ratings.sql", "measures.sql")
_LOCKED = ("Could not set lock", "Conflicting lock", "being used by another process", "database is locked")


class Store:
    """The tables of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    @property
    def is_file(self) -> bool:
        """Whether the tables lie in the workspace's own DuckDB file."""
        return self.workspace.store_url == str(self.workspace.database)

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection that sees every line the ledgers hold."""
        self.sync()
        with self._open(read_only=True) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection inside one transaction: all of it is stored, or nothing."""
        self.workspace.create()
        with self._open(read_only=False) as connection:
            connection.begin()
            _ensure(connection)
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def sync(self) -> None:
        """Bring what the ledgers hold beyond the database into it. A read-only workspace stays as it is."""
        if not self.workspace.exists():
            raise StoreError(f"{self.workspace.path}: no workspace here; `coaudit ingest PATH` makes one")
        if not self.workspace.database.exists() or self._behind():
            if not os.access(self.workspace.path, os.W_OK):
                if self.workspace.database.exists():
                    return
                raise StoreError(f"{self.workspace.path}: the workspace is read-only and has no database")
            with self.writing() as connection:
                self._load_codebooks(connection)
                for path in ledger.files(self.workspace.ratings):
                    self._load_ledger(connection, path.name)
                self._load_outcomes(connection)
                self._load_samples(connection)

    def save(self, trajectories: Sequence[Trajectory], connection: duckdb.DuckDBPyConnection) -> None:
        """Store trajectories whole, in place of what was stored under their ids."""
        ids = [t.id for t in trajectories]
        tables: dict[str, list[rows.Row]] = {}
        for trajectory in trajectories:
            for table, more in rows.of_trajectory(trajectory).items():
                tables.setdefault(table, []).extend(more)
        for table in ("participants", "events", "units", "computed"):
            delete(connection, table, "trajectory_id", ids)
        delete(connection, "trajectories", "id", ids)
        connection.execute(
            "DELETE FROM outcomes WHERE NOT imported AND trajectory_id IN (SELECT unnest(?))", [ids]
        )
        for table, more in tables.items():
            insert(connection, table, more)
        self._save_states(connection, trajectories)

    def load(
        self, connection: duckdb.DuckDBPyConnection, ids: Sequence[str], *, states: bool = False
    ) -> list[Trajectory]:
        """The trajectories of these ids, in this order; unknown ids are left out."""
        by_id = {row["id"]: row for row in _where(connection, "trajectories", "id", ids)}
        parts = {
            table: _grouped(_where(connection, table, "trajectory_id", ids, order))
            for table, order in (("participants", "rowid"), ("events", "seq, sub"), ("outcomes", "rowid"))
        }
        found = []
        for key in (i for i in ids if i in by_id):
            events = parts["events"].get(key, [])
            found.append(
                rows.to_trajectory(
                    by_id[key],
                    parts["participants"].get(key, []),
                    events,
                    parts["outcomes"].get(key, []),
                    _states(connection, events) if states else {},
                )
            )
        return found

    def _save_states(self, connection: duckdb.DuckDBPyConnection, trajectories: Iterable[Trajectory]) -> None:
        states = {h: s for t in trajectories for h, s in t.states.items()}
        hashes = list(states)
        known = {
            row[0]
            for row in connection.execute(
                "SELECT hash FROM states WHERE hash IN (SELECT unnest(?))", [hashes]
            ).fetchall()
        }
        fresh = [(h, json.dumps(states[h], ensure_ascii=False)) for h in hashes if h not in known]
        insert(connection, "states", fresh)

    def _behind(self) -> bool:
        with self._open(read_only=True) as connection:
            stored = connection.execute("SELECT value FROM meta WHERE key = 'codebooks'").fetchone()
            loaded = dict(connection.execute("SELECT path, bytes FROM ledgers").fetchall())
        if stored is None or stored[0] != self._codebook_state() or samples.changed(self.workspace, loaded):
            return True
        return any(
            path.stat().st_size > loaded.get(path.name, 0) for path in ledger.files(self.workspace.ratings)
        )

    def _outcome_ledger(self) -> list[Path]:
        return [self.workspace.outcomes] if self.workspace.outcomes.exists() else []

    def _load_outcomes(self, connection: duckdb.DuckDBPyConnection) -> None:
        """The imported outcomes, the last one of each name for each trajectory and baseline."""
        for path in self._outcome_ledger():
            size = path.stat().st_size
            last = {(o.trajectory, o.name, o.baseline): o for o in ledger.outcomes(path)}
            connection.execute("DELETE FROM outcomes WHERE imported")
            given = [rows.outcome(o.trajectory, o.outcome(), imported=True) for o in last.values()]
            insert(connection, "outcomes", given)
            connection.execute("DELETE FROM ledgers WHERE path = ?", [path.name])
            connection.execute("INSERT INTO ledgers VALUES (?, ?, ?)", [path.name, size, len(given)])

    def _load_samples(self, connection: duckdb.DuckDBPyConnection) -> None:
        loaded = dict(connection.execute("SELECT path, bytes FROM ledgers").fetchall())
        for path in samples.changed(self.workspace, loaded):
            size, drawn = path.stat().st_size, list(samples.rows(samples.read(path)))
            connection.execute("DELETE FROM samples WHERE sample = ?", [path.stem])
            insert(connection, "samples", drawn)
            connection.execute("DELETE FROM ledgers WHERE path = ?", [f"samples/{path.name}"])
            connection.execute(
                "INSERT INTO ledgers VALUES (?, ?, ?)", [f"samples/{path.name}", size, len(drawn)]
            )

    def _codebook_state(self) -> str:
        own = self.workspace.codebooks
        return ",".join(f"{name}@{codebooks.load(name, own).version}" for name in codebooks.names(own))

    def _load_codebooks(self, connection: duckdb.DuckDBPyConnection) -> None:
        own = self.workspace.codebooks
        connection.execute("DELETE FROM codebooks")
        for book in (codebooks.load(name, own) for name in codebooks.names(own)):
            categories = {c.category: c.name for c in book.categories}
            head = (
                book.name,
                book.version,
                book.title,
                book.unit,
                book.level,
                book.positive,
                list(book.labels),
            )
            codes = [
                (*head, c.code, c.name, c.category, categories.get(c.category or "")) for c in book.codes
            ]
            insert(connection, "codebooks", codes)
        connection.execute("DELETE FROM meta WHERE key = 'codebooks'")
        connection.execute("INSERT INTO meta VALUES ('codebooks', ?)", [self._codebook_state()])

    def _load_ledger(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        row = connection.execute("SELECT bytes, lines FROM ledgers WHERE path = ?", [name]).fetchone()
        offset, line = row or (0, 0)
        fresh: list[rows.Row] = []
        broken: list[rows.Row] = []
        for item, behind in ledger.ratings(self.workspace.ratings / name, offset):
            line += 1
            offset = behind
            if isinstance(item, Quarantined):
                broken.append((item.source, line, item.reason, name))
            else:
                fresh.append(rows.rating(item, name, line))
        insert(connection, "ratings", fresh)
        insert(connection, "quarantine", broken)
        connection.execute("DELETE FROM ledgers WHERE path = ?", [name])
        connection.execute("INSERT INTO ledgers VALUES (?, ?, ?)", [name, offset, line])

    @contextmanager
    def _open(self, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        connection = _connect(self.workspace.store_url, read_only=read_only)
        try:
            _check_version(connection, self.workspace.store_url)
            yield connection
        finally:
            connection.close()


def insert(connection: duckdb.DuckDBPyConnection, table: str, many: Sequence[rows.Row]) -> None:
    """Insert rows in the order of the table's columns."""
    if not many:
        return
    import pyarrow as pa

    types = connection.execute(f"DESCRIBE {table}").fetchall()
    columns = [
        pa.array(column, _arrow(kind))
        for column, (_, kind, *_) in zip(zip(*many, strict=True), types, strict=True)
    ]
    batch = pa.Table.from_arrays(columns, names=[name for name, *_ in types])
    connection.register("incoming", batch)
    connection.execute(f"INSERT INTO {table} SELECT * FROM incoming")
    connection.unregister("incoming")


def delete(connection: duckdb.DuckDBPyConnection, table: str, column: str, values: Sequence[str]) -> None:
    """Delete the rows whose `column` has one of the values."""
    connection.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT unnest(?))", [list(values)])


def dictionaries(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """The rows of a query as dictionaries by column."""
    cursor = connection.execute(query, list(parameters))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _connect(url: str, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return duckdb.connect(url, read_only=read_only)
        except duckdb.Error as error:
            if not any(mark in str(error) for mark in _LOCKED):
                raise StoreError(f"{url}: cannot open the store: {error}") from error
            if time.monotonic() > deadline:
                raise StoreError(f"{url}: another process held the store for {PATIENCE:.0f} s") from error
        time.sleep(random.uniform(0.01, 0.06))


def _check_version(connection: duckdb.DuckDBPyConnection, url: str) -> None:
    tables = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'meta'").fetchone()
    row = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() if tables else None
    found = int(row[0]) if row else VERSION
    if found > VERSION:
        raise StoreError(
            f"{url}: written by a newer coaudit (tables {found}, this one knows {VERSION}); update it"
        )
    if found < VERSION:
        raise StoreError(f"{url}: written by an older coaudit (tables {found}); run `coaudit rebuild`")


def _ensure(connection: duckdb.DuckDBPyConnection) -> None:
    exists = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'meta'").fetchone()
    if exists:
        return
    folder = resources.files("coaudit.pipeline.sql")
    connection.execute((folder / "tables.sql").read_text())
    for name in VIEWS:
        connection.execute((folder / name).read_text())
    connection.execute("INSERT INTO meta VALUES ('version', ?)", [str(VERSION)])


def _arrow(kind: str) -> Any:
    import pyarrow as pa

    if kind.endswith("[]"):
        return pa.list_(_arrow(kind[:-2]))
    return {
        "VARCHAR": pa.string(),
        "INTEGER": pa.int32(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(),
    }[kind]


def _where(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    column: str,
    values: Sequence[str],
    order: str = "rowid",
) -> list[dict[str, Any]]:
    query = f"SELECT * FROM {table} WHERE {column} IN (SELECT unnest(?)) ORDER BY {order}"
    return dictionaries(connection, query, [list(values)])


def _grouped(many: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in many:
        groups.setdefault(row["trajectory_id"], []).append(row)
    return groups


def _states(connection: duckdb.DuckDBPyConnection, events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    hashes = {h for event in events if event["states"] for h in json.loads(event["states"]).values()}
    found = connection.execute(
        "SELECT hash, content FROM states WHERE hash IN (SELECT unnest(?))", [sorted(hashes)]
    ).fetchall()
    return {key: json.loads(content) for key, content in found}
