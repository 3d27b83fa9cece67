"""The store as a DuckLake: Parquet files on a shared disk or object store, a catalog in SQLite or Postgres.

`store = "ducklake:sqlite:/shared/catalog.db"` or `"ducklake:postgres:dbname=... host=..."` in coaudit.toml,
and `data = "/shared/tables"` or `"s3://bucket/tables"` for the Parquet files (else the workspace's own
`lake/`; once made, the catalog knows). Many processes read at once; writers take turns, by a lock in the
catalog. The tables lie in a schema of their own, which a small table beside them names: a rebuild fills
another and has it named instead.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

import duckdb

from ...errors import StoreError
from ..connection import OWN_SCHEMA, Reading, execute, first_row
from ..locks import FolderLocks, Locks, reason, without_password
from ..workspace import Workspace
from .attach import PREFIX, NoLake, Place, kind_of, lake_connection, use
from .postgres import CatalogLocks
from .state import State

SNAPSHOTS = "__ducklake_metadata_lake.ducklake_snapshot"
NAMES = "lake.main.coaudit"
"""Key -> value: the `schema` of the tables, the `study` whose they are, the `home` of its ledgers."""
_KEPT = "1 day"
"""How long what was deleted can still be read by somebody who began before."""
MANY_FILES = 64
"""With more small files than this a table is merged: each commit leaves one, and a read opens all."""
_SMALL = 64 * 1024 * 1024
"""Bytes below which a file is one of those."""


_CATALOG_FAILS = ("DuckLake", "Unable to connect", "server closed", "unsuccessful query", "been invalidated")
"""Parts of DuckDB's errors where an attached catalog does not answer, whatever was being done."""


class Lake:
    """The tables of a workspace in a lake; `aside`: those that a rebuild makes to take their place."""

    def __init__(self, workspace: Workspace, *, aside: bool = False) -> None:
        self.workspace = workspace
        self.url = workspace.store_url
        kind, place = kind_of(self.url)
        self.locks: Locks = CatalogLocks(place) if kind == "postgres" else FolderLocks(Path(f"{place}.locks"))
        self._is_aside = aside
        self._schema: str | None = None
        """The schema of tables `aside`, once they are made."""
        self._has_tables = False
        self._cached_names: tuple[str, dict[str, str]] = ("", {})
        """The snapshot at which the lake was last asked what it says of itself (`names`), and the answer."""
        self._replacement = self

    def __str__(self) -> str:
        return without_password(self.url)

    @property
    def is_made(self) -> bool:
        """Whether there are tables."""
        if not self._has_tables:
            self._has_tables = self._schema is not None if self._is_aside else self._is_named()
        return self._has_tables

    def last_write(self) -> tuple[str, float | None]:
        """A text that changes with every write, and when the last one was (Unix seconds)."""
        query = "SELECT max(epoch(snapshot_time)) FROM lake.snapshots()"
        try:
            with self.open_connection(read_only=True) as connection:
                (time,) = first_row(connection, query) or (None,)
                return self.state_word(connection), time
        except NoLake:
            return "none", None

    def state_word(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The same text, by way of an open connection; not the snapshot's number alone, which a lake made
        anew reaches again."""
        row = first_row(connection, f"SELECT max(snapshot_id), max(snapshot_time)::VARCHAR FROM {SNAPSHOTS}")
        return str(row)

    @contextmanager
    def open_connection(self, *, read_only: bool, **settings: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that sees the tables, if there are any.

        StoreError where they are another study's, or where the catalog fails meanwhile: DuckDB's own error
        may hold its password.
        """
        with self._explain_failures(), self._open(read_only=read_only, **settings) as connection:
            labels = {} if self._is_aside else self._names(connection)
            self._check_study(labels, read_only=read_only)
            if schema := labels.get("schema") or self._schema:
                use(connection, schema)
            elif not self._is_aside:
                connection.execute("USE lake")
            yield connection

    @contextmanager
    def hold_state(self, connection: duckdb.DuckDBPyConnection) -> Iterator[Reading]:
        """A function that opens connections to one state, whatever is stored meanwhile."""
        with closing(State(connection, self._place)) as state:
            yield state.reading

    def make_tables(self, connection: duckdb.DuckDBPyConnection, statements: Iterable[str]) -> None:
        """Make new tables in a schema of their own, by these statements."""
        schema = f"{OWN_SCHEMA}{secrets.token_hex(6)}"
        connection.execute(f"CREATE SCHEMA lake.{schema}")
        use(connection, schema)
        if self._is_aside:
            self._schema = schema
        else:
            self._write_names(connection, schema)
        for statement in statements:
            connection.execute(statement)
        _have_statistics(connection)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Write after other writers, and not while a rebuild swaps the tables."""
        if self._is_aside:
            with self.locks.exclusive("store", _wait_silently):
                yield
            return
        with self.locks.shared("swap"), self.locks.exclusive("store", _wait_silently):
            yield

    def tidy(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Merge the many files that many small commits have left; readers go on with those they have."""
        tables = execute(connection, _SCATTERED, [_SMALL, MANY_FILES]).fetchall()
        for schema, table in tables:
            place = f"'lake', '{table}', schema => '{schema}'"
            with suppress(duckdb.Error):  # what was committed is there; the next one tries again
                connection.execute(f"CALL ducklake_rewrite_data_files({place}, delete_threshold => 0.1)")
                connection.execute(f"CALL ducklake_merge_adjacent_files({place}, max_file_size => {_SMALL})")
        if tables:
            _expire(connection)

    @contextmanager
    def exclude_writers(self) -> Iterator[None]:
        """Keep every writer out while other tables take the place of these."""
        with self.locks.exclusive("swap", _wait_silently):
            yield

    def replacement(self) -> Lake:
        """A lake for new tables that are to take the place of these; what earlier rebuilds left behind is
        removed."""
        with self.open_connection(read_only=False) as connection:
            for schema in _schemas(connection) - {self._names(connection).get("schema")}:
                connection.execute(f"DROP SCHEMA lake.{schema} CASCADE")
            _expire(connection)
        self._replacement = Lake(self.workspace, aside=True)
        return self._replacement

    def replace(self) -> None:
        """Put the tables that were made beside these in their place; readers go on with those they have."""
        with self._open(read_only=False) as connection:
            connection.begin()
            for table, kind in connection.execute(_OLD).fetchall():
                connection.execute(f'DROP {kind} lake.main."{table}"')
            self._write_names(connection, str(self._replacement._schema))
            connection.commit()

    def clear(self) -> None:
        """Nothing: readers may use these tables; unused ones go with the next rebuild (`replacement`)."""

    @contextmanager
    def _explain_failures(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            if not any(sign in str(error) for sign in _CATALOG_FAILS):
                raise
            raise StoreError(
                f"{self}: its catalog has failed; what was committed is kept, run the command again: "
                f"{reason(error)}"
            ) from error

    @property
    def _place(self) -> Place:
        beside, location = self.workspace.resolve_path, str(self.workspace.settings.get("data") or "")
        moves = not location.startswith("/") and "://" not in location
        return Place(
            self.url,
            beside(location) if location else None,
            beside(location if location and moves else "lake"),
        )

    def _open(self, *, read_only: bool, **settings: str) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """A connection to the lake. Only a writer makes one, and who has no ledgers and only reads attaches
        it read-only."""
        writable = self.workspace.has_begun or not read_only
        return lake_connection(self._place, read_only=not writable, create=not read_only, **settings)

    def _names(self, connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
        """`names`, kept until something is stored: they are read from a file."""
        word = self.state_word(connection)
        if word != self._cached_names[0]:
            self._cached_names = word, names(connection)
        return self._cached_names[1]

    def _is_named(self) -> bool:
        try:
            with self.open_connection(read_only=True) as connection:
                return "schema" in self._names(connection)
        except NoLake:
            return False

    def _check_study(self, labels: dict[str, str], *, read_only: bool) -> None:
        if not labels or (read_only and not self.workspace.has_begun):
            return
        if not self.workspace.has_begun:
            # Another machine may have begun the study since this one looked.
            self.workspace.pull(at_once=True)
        if not self.workspace.has_begun or labels["study"] != self.workspace.study:
            raise StoreError(
                f"{self}: these tables belong to another study, whose ledgers are in {labels['home']}: "
                f"work there (--workspace {labels['home']}), or give {self.workspace.path} a catalog of its "
                "own"
            )

    def _write_names(self, connection: duckdb.DuckDBPyConnection, schema: str) -> None:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {NAMES} (key VARCHAR, value VARCHAR)")
        connection.execute(f"DELETE FROM {NAMES}")
        values = {"schema": schema, "study": self.workspace.study, "home": self.workspace.home}
        for pair in values.items():
            execute(connection, f"INSERT INTO {NAMES} VALUES (?, ?)", pair)


_SCATTERED = """
    SELECT s.schema_name, t.table_name
    FROM __ducklake_metadata_lake.ducklake_data_file f
    JOIN __ducklake_metadata_lake.ducklake_table t ON t.table_id = f.table_id AND t.end_snapshot IS NULL
    JOIN __ducklake_metadata_lake.ducklake_schema s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
    WHERE s.schema_name = current_schema() AND f.end_snapshot IS NULL AND f.file_size_bytes < ?
    GROUP BY ALL HAVING count(*) > ?
"""
_OLD = """
    SELECT table_name, if(table_type = 'VIEW', 'VIEW', 'TABLE') AS kind FROM information_schema.tables
    WHERE table_catalog = 'lake' AND table_schema = 'main' AND table_name <> 'coaudit' ORDER BY kind DESC
"""
"""What lay in the lake before tables had a schema of their own."""


def is_lake(url: str) -> bool:
    """Whether a store's URL is a lake's."""
    return url.startswith(PREFIX)


def names(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """What the lake says of itself (see `NAMES`); {} where it holds no tables of coaudit."""
    try:
        return dict(connection.execute(f"SELECT key, value FROM {NAMES}").fetchall())
    except duckdb.CatalogException:
        return {}


def _have_statistics(connection: duckdb.DuckDBPyConnection) -> None:
    """Give empty tables statistics: without any, each query asks the catalog for each column, which takes 12
    to 45 ms instead of 2."""
    for table, columns in connection.execute(_EMPTY).fetchall():
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join(['NULL'] * columns)})")
        connection.execute(f"DELETE FROM {table}")


_EMPTY = """
    SELECT table_name, column_count FROM duckdb_tables()
    WHERE database_name = 'lake' AND schema_name = current_schema()
"""


def _wait_silently(holder: str) -> None:
    """Tell nobody who is waited for: a write takes seconds at most."""


def _schemas(connection: duckdb.DuckDBPyConnection) -> set[str]:
    query = "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'lake'"
    schemas = {str(row[0]) for row in connection.execute(query).fetchall()}
    return {one for one in schemas if one.startswith(OWN_SCHEMA)}


def _expire(connection: duckdb.DuckDBPyConnection) -> None:
    """Delete the files that nobody has needed for a day."""
    for procedure in ("expire_snapshots", "cleanup_old_files"):
        connection.execute(f"CALL ducklake_{procedure}('lake', older_than => now() - INTERVAL '{_KEPT}')")
