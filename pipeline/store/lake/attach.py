"""Connections to a lake: extensions, catalog, the place of its files, and access to S3.

A process attaches a lake once, and each reader or writer is a cursor of that connection: unlike a file, a
lake keeps nobody out, and attaching takes longer than most queries. With a catalog in SQLite a writer waits
for readers that are in a transaction, as long as it would for a file.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from ....schemas.url import shown_url
from ...errors import StoreError
from ..connection import NO_DOWNLOADS, PATIENCE, constant, cores, first_row, hide_progress_bar
from ..locks import reason, without_password
from .extensions import load
from .postgres import with_liveness

PREFIX = "ducklake:"
_CATALOGS = {"sqlite": "sqlite_scanner", "postgres": "postgres_scanner"}
"""Where the catalog lies -> the extension that opens it."""
Settings = tuple[tuple[str, str], ...]
_attached_lakes: dict[tuple[object, ...], tuple[duckdb.DuckDBPyConnection, tuple[object, ...] | None]] = {}
"""(Process, place, read-only, settings) -> connection, and the lake's `_identity` when it was attached."""
_attaching = threading.Lock()


class NoLake(StoreError):
    """There is no lake yet."""


@dataclass(frozen=True)
class Place:
    """Where a lake lies."""

    url: str
    data: str | None
    """Where its Parquet files must lie, if that is said."""
    otherwise: str
    """Where the files of a new lake go if `data` is None, and those of a lake that moved with its workspace
    lie."""

    def __str__(self) -> str:
        return without_password(self.url)


def use(connection: duckdb.DuckDBPyConnection, schema: str) -> None:
    """Have a connection see the tables of a schema."""
    connection.execute(f"USE lake.{schema}")


def kind_of(url: str) -> tuple[str, str]:
    """The kind of a lake's catalog, and where it lies; StoreError for a kind that there is not."""
    kind, _, place = url.removeprefix(PREFIX).partition(":")
    if kind not in _CATALOGS:
        kinds = ", ".join(_CATALOGS)
        raise StoreError(f"{without_password(url)}: the catalog must be one of {kinds}, got {kind!r}")
    return kind, place


@contextmanager
def lake_connection(
    place: Place, *, read_only: bool, create: bool, **settings: str
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a lake, which this process attaches once."""
    options = tuple(sorted(settings.items()))
    key = (os.getpid(), place, read_only, options)
    with _attaching:
        base, identity = _attached_lakes.get(key, (None, None))
        if base is None or identity is None or _identity(base, place) != identity:
            base = _attached_connection(place, read_only=read_only, create=create, settings=options)
            _attached_lakes[key] = base, _identity(base, place)
        cursor = hide_progress_bar(base.cursor())
    with closing(cursor):
        yield cursor


@contextmanager
def snapshot_connection(place: Place, snapshot: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a lake as it was at a snapshot, detached afterwards."""
    with (
        closing(_attached_connection(place, read_only=True, snapshot=snapshot)) as base,
        closing(hide_progress_bar(base.cursor())) as connection,
    ):
        yield connection


def _connection_with_extensions(kind: str, settings: Settings) -> duckdb.DuckDBPyConnection:
    """A connection with the extensions that this kind of lake needs."""
    # Threads are set from the start: setting them while others use the instance makes both wait for ever.
    threads = max(1, cores() // 2)
    config = {"python_enable_replacements": False, "threads": threads, **NO_DOWNLOADS, **dict(settings)}
    connection = hide_progress_bar(duckdb.connect(config=config))
    try:
        for extension in ("ducklake", _CATALOGS[kind]):
            load(connection, extension)
    except BaseException:
        connection.close()
        raise
    return connection


def _open_failure(error: duckdb.Error) -> str:
    there = re.search(r"catalog version is (\S*), but the extension requires version (\S+)\.", str(error))
    if there is None:
        return reason(error)
    # The extension offers to migrate, whichever is the newer: then no other machine could open the lake.
    if _release(there[1]) > _release(there[2]):
        return (
            f"its catalog has DuckLake's format {there[1]}, which is newer than the {there[2]} that this "
            "machine knows: install the coaudit here that the others have"
        )
    return (
        f"its catalog has DuckLake's format {there[1]} and this machine writes {there[2]}: have all machines "
        "on one version of coaudit, name a new catalog in coaudit.toml, and `coaudit rebuild` fills it"
    )


def _release(version: str) -> tuple[int, ...]:
    """1.0-dev2 -> (1, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0]))


def _attached_connection(
    place: Place,
    *,
    read_only: bool,
    create: bool = False,
    snapshot: int | None = None,
    settings: Settings = (),
) -> duckdb.DuckDBPyConnection:
    """A connection that has attached a lake, as it is or as it was at a snapshot, and has access to its
    files.

    Where there is no lake one is made if `create`, else `NoLake`. StoreError, without any password, for a
    catalog, an extension or a place that is not there.
    """
    kind, _ = kind_of(place.url)
    # libpq, which DuckDB asks by a text that may be a URL, waits for ever for a server that stands still.
    os.environ.setdefault("PGCONNECT_TIMEOUT", f"{PATIENCE:.0f}")
    connection = _connection_with_extensions(kind, settings)
    mode = ["READ_ONLY"] if read_only else []
    mode += [] if snapshot is None else [f"SNAPSHOT_VERSION {snapshot}"]
    mode += [f"META_BUSY_TIMEOUT {PATIENCE * 1000:.0f}"] if kind == "sqlite" else []
    try:
        _attach_or_make(connection, place, mode, create=create)
        _grant_access(connection, _data_path(connection))
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"{place}: cannot open the lake: {_open_failure(error)}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _attach_or_make(
    connection: duckdb.DuckDBPyConnection, place: Place, mode: list[str], *, create: bool
) -> None:
    """Attach the lake, whose catalog knows where its files lie; where there is none, make it if `create`."""
    where = [f"DATA_PATH {constant(place.data)}"] if place.data else []
    if place.data:
        _grant_access(connection, place.data)
    if _is_there(connection, place, mode):
        _reattach_if_moved(connection, place, where, mode)
    else:
        if not create:
            raise NoLake(f"{place}: no lake there; `coaudit ingest PATH` makes one")
        _grant_access(connection, place.data or place.otherwise)
        _attach(connection, place.url, [*(where or [f"DATA_PATH {constant(place.otherwise)}"]), *mode])


def _reattach_if_moved(
    connection: duckdb.DuckDBPyConnection, place: Place, where: list[str], mode: list[str]
) -> None:
    """Attach again with a data path where that of the catalog no longer holds.

    A lake that moved with its workspace, or that another machine mounts elsewhere, lies where a new one
    would. Else `data`, if it is set, must be what the catalog says: DuckLake refuses to attach where it is
    not.
    """
    lies = _data_path(connection)
    if "://" not in lies and not Path(lies).exists() and Path(place.otherwise).is_dir():
        where = [f"DATA_PATH {constant(place.otherwise)}", "OVERRIDE_DATA_PATH true"]
    elif (place.data or lies).rstrip("/") == lies.rstrip("/"):
        return
    connection.execute("DETACH lake")
    _attach(connection, place.url, [*where, *mode])


def _is_there(connection: duckdb.DuckDBPyConnection, place: Place, options: list[str]) -> bool:
    """Attach the lake if there is one; whether there is."""
    if _has_no_file(place.url):  # attaching would make one
        return False
    try:
        _attach(connection, place.url, [*options, "CREATE_IF_NOT_EXISTS false"])
    except duckdb.Error as error:
        if "creating a new DuckLake is explicitly disabled" not in str(error):
            raise
        return False
    return True


def _has_no_file(url: str) -> bool:
    kind, place = kind_of(url)
    return kind == "sqlite" and Path(place).parent.is_dir() and not Path(place).exists()


def _identity(base: duckdb.DuckDBPyConnection, place: Place) -> tuple[object, ...] | None:
    """What changes where another lake is made in its place, or another release changes it. None where the
    catalog no longer answers: after a restart its server must be asked by a new connection."""
    if _has_no_file(place.url):
        return None
    kind, path = kind_of(place.url)
    try:
        file = os.stat(path) if kind == "sqlite" else None
        return *(first_row(base, _IDENTITY) or ()), file and (file.st_dev, file.st_ino)
    except (duckdb.Error, OSError):
        return None


_IDENTITY = """
    SELECT schema_uuid::VARCHAR, value
    FROM __ducklake_metadata_lake.ducklake_schema, __ducklake_metadata_lake.ducklake_metadata
    WHERE schema_id = 0 AND key = 'version'
"""


def _attach(connection: duckdb.DuckDBPyConnection, url: str, options: list[str]) -> None:
    kind, place = kind_of(url)
    if kind == "postgres":
        url = f"{PREFIX}{kind}:{with_liveness(place)}"
    connection.execute(f"ATTACH {constant(url)} AS lake ({', '.join(options)})")


def _data_path(connection: duckdb.DuckDBPyConnection) -> str:
    query = "SELECT value FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'data_path'"
    rows = connection.execute(query).fetchall()
    return str(rows[0][0]) if rows else ""


def _grant_access(connection: duckdb.DuckDBPyConnection, place: str) -> None:
    """Give DuckDB access to a place: nothing for a folder, `httpfs` and a secret for S3. StoreError for other
    schemes."""
    scheme = re.match(r"\w+://|(?:s3|gs|az):", place)
    if scheme is None:
        return
    if scheme[0] not in ("s3://", "s3a://"):
        raise StoreError(f"{shown_url(place)}: tables must be in a folder or in s3://, got {scheme[0]}")
    if shown_url(place) != place:
        raise StoreError(
            f"{shown_url(place)}: keys come from the environment (AWS_ACCESS_KEY_ID and so on); `data` must "
            "be s3://BUCKET/NAME alone, since the catalog keeps it"
        )
    load(connection, "httpfs")
    connection.execute(f"CREATE OR REPLACE SECRET coaudit ({', '.join(_s3_options())})")


def _s3_options() -> list[str]:
    """The options of S3's secret, from the environment variables that its other tools read."""
    variable_of = os.environ.get
    region = variable_of("AWS_REGION") or variable_of("AWS_DEFAULT_REGION") or "us-east-1"
    options = ["TYPE s3", f"REGION {constant(region)}"]
    for option, variable in (
        ("KEY_ID", "AWS_ACCESS_KEY_ID"),
        ("SECRET", "AWS_SECRET_ACCESS_KEY"),
        ("SESSION_TOKEN", "AWS_SESSION_TOKEN"),
    ):
        if value := variable_of(variable):
            options.append(f"{option} {constant(value)}")
    if endpoint := variable_of("AWS_ENDPOINT_URL_S3") or variable_of("AWS_ENDPOINT_URL"):
        scheme, _, host = endpoint.rstrip("/").rpartition("://")
        options += [f"ENDPOINT {constant(host)}", "URL_STYLE 'path'", f"USE_SSL {scheme != 'http'}"]
    return options
