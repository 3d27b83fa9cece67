"""Connections to a lake: extensions, the catalog, the place of its files, and what S3 asks for.

A process attaches a lake once and each reader or writer is a connection of that: unlike a file, a lake keeps
nobody out, and attaching takes longer than most queries. In a catalog in SQLite, who writes waits for who
looks in a transaction, as long as for a file.
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

from ...schemas.url import shown_url
from ..errors import StoreError
from .connection import PATIENCE, constant, cores, first_row, quiet
from .extensions import load
from .locks import reason, without_password

PREFIX = "ducklake:"
_CATALOGS = {"sqlite": "sqlite_scanner", "postgres": "postgres_scanner"}
"""Where the catalog lies -> the extension that opens it."""
Settings = tuple[tuple[str, str], ...]
_attached_lakes: dict[tuple[object, ...], tuple[duckdb.DuckDBPyConnection, tuple[object, ...] | None]] = {}
"""With what tells each from one that is made in its place."""
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
    """Where those of a new lake do, if it is not; beside the workspace, where `data` is relative."""

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
def shared(
    place: Place, *, read_only: bool, create: bool, **settings: str
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a lake that this process has attached, or attaches now."""
    options = tuple(sorted(settings.items()))
    key = (os.getpid(), place, read_only, options)
    with _attaching:
        base, identity = _attached_lakes.get(key, (None, None))
        if base is None or identity is None or _identity(base, place) != identity:
            base = _attached_connection(place, read_only=read_only, create=create, settings=options)
            _attached_lakes[key] = base, _identity(base, place)
        cursor = quiet(base.cursor())
    with closing(cursor):
        yield cursor


@contextmanager
def as_it_was(place: Place, snapshot: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a lake as it was at a snapshot, which is left afterwards."""
    with (
        closing(_attached_connection(place, read_only=True, snapshot=snapshot)) as base,
        closing(quiet(base.cursor())) as connection,
    ):
        yield connection


def _connection_with_extensions(kind: str, settings: Settings) -> duckdb.DuckDBPyConnection:
    """A connection with the extensions that a kind of lake takes."""
    # Threads are told from the start: to set them while others use the instance has both wait for ever.
    config = {"python_enable_replacements": False, "threads": max(1, cores() // 2), **dict(settings)}
    connection = quiet(duckdb.connect(config=config))
    try:
        for extension in ("ducklake", _CATALOGS[kind]):
            load(connection, extension)
    except BaseException:
        connection.close()
        raise
    return connection


def _why(error: duckdb.Error) -> str:
    there = re.search(r"catalog version is (\S*), but the extension requires version (\S+)\.", str(error))
    if there is None:
        return reason(error)
    # The extension offers to migrate, whichever is the newer: then no other machine could open the lake.
    if _release(there[1]) > _release(there[2]):
        return (
            f"its catalog has DuckLake's format {there[1]}, which is newer than the {there[2]} that this "
            "machine knows: update it (pip install -U 'coaudit[lake]')"
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
    """A connection that has attached a lake as it is, or as it was at a snapshot, and reaches its files.

    Made where there is none if it is to be created, else `NoLake`. StoreError for a catalog, an extension or
    a place that is not there, without any password.
    """
    kind, _ = kind_of(place.url)
    connection = _connection_with_extensions(kind, settings)
    mode = ["READ_ONLY"] if read_only else []
    mode += [] if snapshot is None else [f"SNAPSHOT_VERSION {snapshot}"]
    mode += [f"META_BUSY_TIMEOUT {PATIENCE * 1000:.0f}"] if kind == "sqlite" else []
    try:
        _attach_or_make(connection, place, mode, create=create)
        _reach(connection, _data_path(connection))
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"{place}: cannot open the lake: {_why(error)}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _attach_or_make(
    connection: duckdb.DuckDBPyConnection, place: Place, mode: list[str], *, create: bool
) -> None:
    """A lake that is there knows where its files lie; a new one is told."""
    where = [f"DATA_PATH {constant(place.data)}"] if place.data else []
    if place.data:
        _reach(connection, place.data)
    if _is_there(connection, place, mode):
        _look_where_it_lies(connection, place, where, mode)
    else:
        if not create:
            raise NoLake(f"{place}: no lake there; `coaudit ingest PATH` makes one")
        _reach(connection, place.data or place.otherwise)
        _attach(connection, place.url, [*(where or [f"DATA_PATH {constant(place.otherwise)}"]), *mode])


def _look_where_it_lies(
    connection: duckdb.DuckDBPyConnection, place: Place, where: list[str], mode: list[str]
) -> None:
    """Have a lake that was attached by its catalog alone look for its files where they are.

    One that has moved with its workspace, or that another machine mounts elsewhere, is gone from where its
    catalog says, and lies where a new one would. Else what `data` says must be what the catalog does.
    """
    lies = _data_path(connection)
    if "://" not in lies and not Path(lies).exists() and Path(place.otherwise).is_dir():
        where = [f"DATA_PATH {constant(place.otherwise)}", "OVERRIDE_DATA_PATH true"]
    elif (place.data or lies).rstrip("/") == lies.rstrip("/"):
        return
    connection.execute("DETACH lake")
    _attach(connection, place.url, [*where, *mode])


def _is_there(connection: duckdb.DuckDBPyConnection, place: Place, options: list[str]) -> bool:
    """Whether there is a lake, which is attached then."""
    if _has_no_file(place.url):  # to ask would make one
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
    """What tells the lake from one that is made in its place, or that another release has changed; None where
    the catalog no longer answers: a server that was started anew is asked by a new connection.
    """
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
    connection.execute(f"ATTACH {constant(url)} AS lake ({', '.join(options)})")


def _data_path(connection: duckdb.DuckDBPyConnection) -> str:
    query = "SELECT value FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'data_path'"
    rows = connection.execute(query).fetchall()
    return str(rows[0][0]) if rows else ""


def _reach(connection: duckdb.DuckDBPyConnection, place: str) -> None:
    """What DuckDB needs to read and write there: nothing for a folder, `httpfs` and a secret for S3."""
    scheme = re.match(r"\w+://|(?:s3|gs|az):", place)
    if scheme is None:
        return
    if scheme[0] not in ("s3://", "s3a://"):
        raise StoreError(f"{shown_url(place)}: tables lie in a folder or in s3://, got {scheme[0]}")
    if shown_url(place) != place:
        raise StoreError(
            f"{shown_url(place)}: keys come from the environment (AWS_ACCESS_KEY_ID and so on); `data` must "
            "be s3://BUCKET/NAME alone, since the catalog keeps it"
        )
    load(connection, "httpfs")
    connection.execute(f"CREATE OR REPLACE SECRET coaudit ({', '.join(_access())})")


def _access() -> list[str]:
    """How S3 is reached, from the environment that its other tools read."""
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
