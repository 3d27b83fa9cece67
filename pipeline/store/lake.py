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

from ..errors import StoreError
from .attach import PREFIX, NoLake, Place, kind_of, shared, use
from .connection import OWN_SCHEMA, Reading, execute, first_row
from .locks import FolderLocks, Locks, reason, without_password
from .postgres import CatalogLocks
from .state import State
from .workspace import Workspace

SNAPSHOTS = "__ducklake_metadata_lake.ducklake_snapshot"
NAMES = "lake.main.coaudit"
"""Key -> value: the `schema` of the tables, the `study` whose they are, the `home` of its ledgers."""
_KEPT = "1 day"
"""So long what was deleted can still be read by somebody who began before."""
MANY_FILES = 64
"""So many small files a table has before they are merged: each commit leaves one, and a read opens all."""
_SMALL = 64 * 1024 * 1024
"""Bytes below which a file is one of those."""


_CATALOG_FAILS = ("DuckLake", "Unable to connect", "server closed", "unsuccessful query", "been invalidated")
"""Of what DuckDB says where a catalog that was attached does not answer, in whatever it does just then."""


class Lake:
    """The tables of a workspace in a lake, or (`aside`) those that are to take their place."""

    def __init__(self, workspace: Workspace, *, aside: bool = False) -> None:
        self.workspace = workspace
        self.url = workspace.store_url
        kind, place = kind_of(self.url)
        self.locks: Locks = CatalogLocks(place) if kind == "postgres" else FolderLocks(Path(f"{place}.locks"))
        self._aside = aside
        self._schema: str | None = None
        """Of tables aside, once they are made."""
        self._made = False
        self._said: tuple[str, dict[str, str]] = ("", {})
        """What the lake said of itself last, and at which snapshot."""
        self._beside = self

    def __str__(self) -> str:
        return without_password(self.url)

    @property
    def is_made(self) -> bool:
        """Whether there are tables."""
        if not self._made:
            self._made = self._schema is not None if self._aside else self._is_named()
        return self._made

    def written(self) -> tuple[str, float | None]:
        """A word that changes with every write, and when the last one was (Unix seconds)."""
        query = "SELECT max(epoch(snapshot_time)) FROM lake.snapshots()"
        try:
            with self.connected(read_only=True) as connection:
                (time,) = first_row(connection, query) or (None,)
                return self.word(connection), time
        except NoLake:
            return "none", None

    def word(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The same for a connection that is there; no number alone, to which a lake made anew comes again."""
        row = first_row(connection, f"SELECT max(snapshot_id), max(snapshot_time)::VARCHAR FROM {SNAPSHOTS}")
        return str(row)

    @contextmanager
    def connected(self, *, read_only: bool, **settings: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that sees the tables, if there are any. StoreError where they are another study's, or
        where the catalog fails meanwhile: what DuckDB says of that may hold its password.
        """
        with self._named(), self._opened(read_only=read_only, **settings) as connection:
            labels = {} if self._aside else self._names(connection)
            self._check_study(labels, read_only=read_only)
            if schema := labels.get("schema") or self._schema:
                use(connection, schema)
            elif not self._aside:
                connection.execute("USE lake")
            yield connection

    @contextmanager
    def held(self, connection: duckdb.DuckDBPyConnection) -> Iterator[Reading]:
        """What opens connections that all see one state, whatever is stored meanwhile."""
        with closing(State(connection, self._place)) as state:
            yield state.reading

    def make(self, connection: duckdb.DuckDBPyConnection, statements: Iterable[str]) -> None:
        """New tables in a place of their own, by the statements that make them."""
        schema = f"{OWN_SCHEMA}{secrets.token_hex(6)}"
        connection.execute(f"CREATE SCHEMA lake.{schema}")
        use(connection, schema)
        if self._aside:
            self._schema = schema
        else:
            self._name(connection, schema)
        for statement in statements:
            connection.execute(statement)
        _have_statistics(connection)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Write after whoever writes, and not while a rebuild swaps."""
        if self._aside:
            with self.locks.exclusive("store", _patient):
                yield
            return
        with self.locks.shared("swap"), self.locks.exclusive("store", _patient):
            yield

    def tidy(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Merge what many small commits have left in many files; who reads goes on with what it has."""
        tables = execute(connection, _SCATTERED, [_SMALL, MANY_FILES]).fetchall()
        for schema, table in tables:
            place = f"'lake', '{table}', schema => '{schema}'"
            with suppress(duckdb.Error):  # what was committed is there; the next one tries again
                connection.execute(f"CALL ducklake_rewrite_data_files({place}, delete_threshold => 0.1)")
                connection.execute(f"CALL ducklake_merge_adjacent_files({place}, max_file_size => {_SMALL})")
        if tables:
            _expire(connection)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every writer out, to put other tables in the place of these."""
        with self.locks.exclusive("swap", _patient):
            yield

    def beside(self) -> Lake:
        """Where tables are made that are to take the place of these; what such left behind goes."""
        with self.connected(read_only=False) as connection:
            for schema in _schemas(connection) - {self._names(connection).get("schema")}:
                connection.execute(f"DROP SCHEMA lake.{schema} CASCADE")
            _expire(connection)
        self._beside = Lake(self.workspace, aside=True)
        return self._beside

    def replace(self) -> None:
        """Have others look at the tables that were made beside these; who reads goes on with what it has."""
        with self._opened(read_only=False) as connection:
            connection.begin()
            for table, kind in connection.execute(_OLD).fetchall():
                connection.execute(f'DROP {kind} lake.main."{table}"')
            self._name(connection, str(self._beside._schema))
            connection.commit()

    def clear(self) -> None:
        """Throw tables aside away; those that others look at stay for who reads, until the next rebuild."""

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            if not any(sign in str(error) for sign in _CATALOG_FAILS):
                raise
            raise StoreError(
                f"{self}: its catalog has failed; what was committed is there, run it again: {reason(error)}"
            ) from error

    @property
    def _place(self) -> Place:
        beside, location = self.workspace.beside, str(self.workspace.settings.get("data") or "")
        moves = not location.startswith("/") and "://" not in location
        return Place(
            self.url,
            beside(location) if location else None,
            beside(location if location and moves else "lake"),
        )

    def _opened(
        self, *, read_only: bool, **settings: str
    ) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """A connection of its own; those who only look never make or change anything."""
        writable = self.workspace.has_begun or not read_only
        return shared(self._place, read_only=not writable, create=not read_only, **settings)

    def _names(self, connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
        """`names`, which are read from a file: only where something was stored since they were."""
        word = self.word(connection)
        if word != self._said[0]:
            self._said = word, names(connection)
        return self._said[1]

    def _is_named(self) -> bool:
        try:
            with self.connected(read_only=True) as connection:
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
                f"{self}: these tables are another study's, whose ledgers lie in {labels['home']}: work there "
                f"(--workspace {labels['home']}), or give {self.workspace.path} a catalog of its own"
            )

    def _name(self, connection: duckdb.DuckDBPyConnection, schema: str) -> None:
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
    """What the lake says of itself (see `NAMES`); nothing where it holds no tables of ours."""
    try:
        return dict(connection.execute(f"SELECT key, value FROM {NAMES}").fetchall())
    except duckdb.CatalogException:
        return {}


def _have_statistics(connection: duckdb.DuckDBPyConnection) -> None:
    """Give empty tables statistics: of those without any, each query asks the catalog anew for each column,
    which takes 12 to 45 ms instead of 2.
    """
    for table, columns in connection.execute(_EMPTY).fetchall():
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join(['NULL'] * columns)})")
        connection.execute(f"DELETE FROM {table}")


_EMPTY = """
    SELECT table_name, column_count FROM duckdb_tables()
    WHERE database_name = 'lake' AND schema_name = current_schema()
"""


def _patient(holder: str) -> None:
    """A write takes seconds at most, so nobody is told who waits for whom."""


def _schemas(connection: duckdb.DuckDBPyConnection) -> set[str]:
    query = "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'lake'"
    schemas = {str(row[0]) for row in connection.execute(query).fetchall()}
    return {one for one in schemas if one.startswith(OWN_SCHEMA)}


def _expire(connection: duckdb.DuckDBPyConnection) -> None:
    """Take away files that nobody has needed for long."""
    for procedure in ("expire_snapshots", "cleanup_old_files"):
        connection.execute(f"CALL ducklake_{procedure}('lake', older_than => now() - INTERVAL '{_KEPT}')")
