"""The store as a DuckLake: Parquet files on a shared disk or object store, a catalog in SQLite or Postgres.

`store = "ducklake:sqlite:/shared/catalog.db"` or `"ducklake:postgres:dbname=... host=..."` in coaudit.toml,
and `data = "/shared/tables"` or `"s3://bucket/tables"` for the Parquet files (else the workspace's own
`lake/`; once made, the catalog knows). Many processes read at once; writers take turns, by a lock in the
catalog. The tables lie in a schema of their own, which a small table beside them names: a rebuild fills
another and has it named instead.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from ..errors import StoreError
from .connection import execute, quiet
from .locks import FolderLocks, Locks, without_password
from .postgres import CatalogLocks
from .workspace import Workspace

PREFIX = "ducklake:"
NAMES = "lake.main.coaudit"
"""Key -> value: the `schema` of the tables, the `study` whose they are, the `home` of its ledgers."""
_CATALOGS = {"sqlite": "sqlite_scanner", "postgres": "postgres_scanner"}
"""Where the catalog lies -> the extension that opens it."""
_KEPT = "1 day"
"""So long what was deleted can still be read by somebody who began before."""


class _NoLake(StoreError):
    """There is no lake yet."""


class Lake:
    """The tables of a workspace in a lake, or (`aside`) those that are to take their place."""

    def __init__(self, workspace: Workspace, *, aside: bool = False) -> None:
        self.workspace = workspace
        self.url = workspace.store_url
        kind, _, place = self.url.removeprefix(PREFIX).partition(":")
        if kind not in _CATALOGS:
            known = ", ".join(_CATALOGS)
            raise StoreError(f"{shown(self.url)}: the catalog must be one of {known}, got {kind!r}")
        self.locks: Locks = CatalogLocks(place) if kind == "postgres" else FolderLocks(Path(f"{place}.locks"))
        self._extension = _CATALOGS[kind]
        self._aside = aside
        self._schema: str | None = None
        """Of tables aside, once they are made."""
        self._made = False
        self._beside = self

    def __str__(self) -> str:
        return shown(self.url)

    @property
    def is_made(self) -> bool:
        """Whether there are tables."""
        if not self._made:
            self._made = self._schema is not None if self._aside else self._is_named()
        return self._made

    def written(self) -> tuple[str, float | None]:
        """A word that changes with every write, and when the last one was (Unix seconds)."""
        query = "SELECT snapshot_id, epoch(snapshot_time) FROM lake.snapshots() ORDER BY 1 DESC LIMIT 1"
        try:
            connection = self.connect(read_only=True)
        except _NoLake:
            return "none", None
        try:
            word, at = connection.execute(query).fetchone() or ("none", None)
        finally:
            connection.close()
        return str(word), at

    def connect(self, *, read_only: bool, **settings: str) -> duckdb.DuckDBPyConnection:
        """A connection that sees the tables, if there are any. StoreError where they are another study's."""
        connection = self._connected(read_only=read_only, **settings)
        known = {} if self._aside else names(connection)
        self._check_study(known, read_only=read_only)
        if schema := known.get("schema") or self._schema:
            use(connection, schema)
        elif not self._aside:
            connection.execute("USE lake")
        return connection

    def cursor(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """What reads in the same state as a connection that is held: itself, in its transaction."""
        return connection

    @contextmanager
    def held(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Keep a connection in one state, whatever is stored meanwhile."""
        connection.begin()
        try:
            yield
        finally:
            connection.rollback()

    def make(self, connection: duckdb.DuckDBPyConnection) -> None:
        """A place for new tables, within the transaction that makes them."""
        schema = f"tables_{secrets.token_hex(6)}"
        connection.execute(f"CREATE SCHEMA lake.{schema}")
        use(connection, schema)
        if self._aside:
            self._schema = schema
        else:
            self._name(connection, schema)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Write after whoever writes, and not while a rebuild swaps."""
        if self._aside:
            with self.locks.exclusive("store", _patient):
                yield
            return
        with self.locks.shared("swap"), self.locks.exclusive("store", _patient):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every writer out, to put other tables in the place of these."""
        with self.locks.exclusive("swap", _patient):
            yield

    def beside(self) -> Lake:
        """Where tables are made that are to take the place of these; what such left behind goes."""
        connection = self.connect(read_only=False)
        try:
            for schema in _schemas(connection) - {names(connection).get("schema")}:
                connection.execute(f"DROP SCHEMA lake.{schema} CASCADE")
            _expire(connection)
        finally:
            connection.close()
        self._beside = Lake(self.workspace, aside=True)
        return self._beside

    def replace(self) -> None:
        """Have others look at the tables that were made beside these; who reads goes on with what it has."""
        connection = self._connected(read_only=False)
        try:
            connection.begin()
            for table, kind in connection.execute(_OLD).fetchall():
                connection.execute(f'DROP {kind} lake.main."{table}"')
            self._name(connection, str(self._beside._schema))
            connection.commit()
        finally:
            connection.close()

    def clear(self) -> None:
        """Throw tables aside away; those that others look at stay for who reads, until the next rebuild."""

    def _connected(self, *, read_only: bool, **settings: str) -> duckdb.DuckDBPyConnection:
        connection = quiet(duckdb.connect(config={"python_enable_replacements": False, **settings}))
        try:
            for extension in ("ducklake", self._extension):
                _load(connection, extension)
            self._attach(connection, read_only=read_only)
            _reach(connection, _data_path(connection))
        except duckdb.Error as error:
            connection.close()
            raise StoreError(f"{self}: cannot open the lake: {reason(error)}") from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _attach(self, connection: duckdb.DuckDBPyConnection, *, read_only: bool) -> None:
        """A lake that is there knows where its files lie; a new one is told. `_NoLake` if only to look at."""
        said, otherwise = self._data
        where = [f"DATA_PATH {_quoted(said)}"] if said else []
        if said:
            _reach(connection, said)
        try:
            mode = ["READ_ONLY"] if read_only else []
            _attached(connection, self.url, [*where, *mode, "CREATE_IF_NOT_EXISTS false"])
        except duckdb.Error as error:
            if not self._is_missing(error):
                raise
            if read_only:
                raise _NoLake(f"{self}: no lake there; `coaudit ingest PATH` makes one") from error
            _reach(connection, said or otherwise)
            _attached(connection, self.url, where or [f"DATA_PATH {_quoted(otherwise)}"])

    def _is_missing(self, error: duckdb.Error) -> bool:
        if "creating a new DuckLake is explicitly disabled" in str(error):
            return True
        file = Path(self.url.removeprefix(f"{PREFIX}sqlite:"))
        return self._extension == "sqlite_scanner" and file.parent.is_dir() and not file.exists()

    @property
    def _data(self) -> tuple[str | None, str]:
        """Where the files must lie, if that is said; where those of a new lake do otherwise."""
        return self.workspace.settings.get("data"), str(self.workspace.path.absolute() / "lake")

    def _is_named(self) -> bool:
        try:
            connection = self.connect(read_only=True)
        except _NoLake:
            return False
        try:
            return "schema" in names(connection)
        finally:
            connection.close()

    def _check_study(self, known: dict[str, str], *, read_only: bool) -> None:
        if not known or (read_only and not self.workspace.has_begun):
            return
        if not self.workspace.has_begun or known["study"] != self.workspace.study:
            raise StoreError(
                f"{self}: these tables are another study's, whose ledgers lie in {known['home']}: work there "
                f"(--workspace {known['home']}), or give {self.workspace.path} a catalog of its own"
            )

    def _name(self, connection: duckdb.DuckDBPyConnection, schema: str) -> None:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {NAMES} (key VARCHAR, value VARCHAR)")
        connection.execute(f"DELETE FROM {NAMES}")
        values = {"schema": schema, "study": self.workspace.study, "home": self.workspace.home}
        for pair in values.items():
            execute(connection, f"INSERT INTO {NAMES} VALUES (?, ?)", pair)


_OLD = """
    SELECT table_name, if(table_type = 'VIEW', 'VIEW', 'TABLE') AS kind FROM information_schema.tables
    WHERE table_catalog = 'lake' AND table_schema = 'main' AND table_name <> 'coaudit' ORDER BY kind DESC
"""
"""What lay in the lake before tables had a schema of their own."""


def is_lake(url: str) -> bool:
    """Whether a store's URL is a lake's."""
    return url.startswith(PREFIX)


def shown(url: str) -> str:
    """The URL as it may be printed."""
    return without_password(url)


def reason(error: duckdb.Error) -> str:
    """What DuckDB says, on one line and without any password."""
    return without_password(" ".join(str(error).split()))


def names(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """What the lake says of itself (see `NAMES`); nothing where it holds no tables of ours."""
    try:
        return dict(connection.execute(f"SELECT key, value FROM {NAMES}").fetchall())
    except duckdb.CatalogException:
        return {}


def use(connection: duckdb.DuckDBPyConnection, schema: str) -> None:
    """Have this connection see the tables of a schema."""
    connection.execute(f"USE lake.{schema}")


def _patient(holder: str) -> None:
    """A write takes seconds at most, so nobody is told who waits for whom."""


def _schemas(connection: duckdb.DuckDBPyConnection) -> set[str]:
    query = "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'lake'"
    there = {str(row[0]) for row in connection.execute(query).fetchall()}
    return {one for one in there if one.startswith("tables_")}


def _expire(connection: duckdb.DuckDBPyConnection) -> None:
    """Take away the files of tables that went long ago."""
    connection.execute(f"CALL ducklake_expire_snapshots('lake', older_than => now() - INTERVAL '{_KEPT}')")
    connection.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")


def _attached(connection: duckdb.DuckDBPyConnection, url: str, options: list[str]) -> None:
    connection.execute(f"ATTACH {_quoted(url)} AS lake ({', '.join(options)})")


def _data_path(connection: duckdb.DuckDBPyConnection) -> str:
    query = "SELECT value FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'data_path'"
    row = connection.execute(query).fetchone()
    return str(row[0]) if row else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _reach(connection: duckdb.DuckDBPyConnection, place: str) -> None:
    """What DuckDB needs to read and write there: nothing for a folder, `httpfs` and a secret for S3."""
    scheme = re.match(r"(\w+)://", place)
    if scheme is None:
        return
    if scheme[1] not in ("s3", "s3a"):
        raise StoreError(f"{place}: tables lie in a folder or in s3://, got {scheme[1]}://")
    _load(connection, "httpfs")
    connection.execute(f"CREATE OR REPLACE SECRET coaudit ({', '.join(_access())})")


def _access() -> list[str]:
    """How S3 is reached, from the environment that its other tools read."""
    given = os.environ.get
    region = given("AWS_REGION") or given("AWS_DEFAULT_REGION") or "us-east-1"
    options = ["TYPE s3", f"REGION {_quoted(region)}"]
    for option, variable in (
        ("KEY_ID", "AWS_ACCESS_KEY_ID"),
        ("SECRET", "AWS_SECRET_ACCESS_KEY"),
        ("SESSION_TOKEN", "AWS_SESSION_TOKEN"),
    ):
        if value := given(variable):
            options.append(f"{option} {_quoted(value)}")
    if endpoint := given("AWS_ENDPOINT_URL_S3") or given("AWS_ENDPOINT_URL"):
        scheme, _, host = endpoint.rstrip("/").rpartition("://")
        options += [f"ENDPOINT {_quoted(host)}", "URL_STYLE 'path'", f"USE_SSL {scheme != 'http'}"]
    return options


def _load(connection: duckdb.DuckDBPyConnection, extension: str) -> None:
    try:
        from duckdb_extensions import import_extension
    except ImportError as error:
        raise StoreError("a store on DuckLake needs the extra `lake`: pip install coaudit[lake]") from error
    package = f"duckdb-extension-{extension.replace('_', '-')}"
    try:
        import_extension(extension)
        connection.execute(f"LOAD {extension}")
    except (ImportError, OSError, duckdb.Error) as error:
        raise StoreError(
            f"DuckDB's extension {extension} cannot be loaded ({' '.join(str(error).split())[:200]}): "
            f"install {package}=={duckdb.__version__}, also from a wheel brought along "
            f"(pip download {package}=={duckdb.__version__})"
        ) from error
