"""Connections to a lake: extensions, the catalog, the place of its files, and what S3 asks for.

A process attaches a lake once and each reader or writer is a connection of that: unlike a file, a lake keeps
nobody out, and attaching takes longer than most queries. A catalog in SQLite does keep writers out as long as
somebody looks, so it is left after each use, and the connection with its extensions waits for the next.
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

from ..errors import StoreError
from .connection import quiet
from .locks import reason, without_password

PREFIX = "ducklake:"
_CATALOGS = {"sqlite": "sqlite_scanner", "postgres": "postgres_scanner"}
"""Where the catalog lies -> the extension that opens it."""
Settings = tuple[tuple[str, str], ...]
_attached_lakes: dict[tuple[object, ...], duckdb.DuckDBPyConnection] = {}
_attaching = threading.Lock()
_idle: dict[tuple[object, ...], list[duckdb.DuckDBPyConnection]] = {}
"""Connections that have their extensions and no lake: to load them takes longer than most queries."""
_taking = threading.Lock()


class NoLake(StoreError):
    """There is no lake yet."""


@dataclass(frozen=True)
class Place:
    """Where a lake lies."""

    url: str
    data: str | None
    """Where its Parquet files must lie, if that is said."""
    otherwise: str
    """Where those of a new lake do, if it is not."""

    def __str__(self) -> str:
        return without_password(self.url)


def kind_of(url: str) -> tuple[str, str]:
    """The kind of a lake's catalog, and where it lies; StoreError for a kind that there is not."""
    kind, _, place = url.removeprefix(PREFIX).partition(":")
    if kind not in _CATALOGS:
        known = ", ".join(_CATALOGS)
        raise StoreError(f"{without_password(url)}: the catalog must be one of {known}, got {kind!r}")
    return kind, place


@contextmanager
def shared(
    place: Place, *, read_only: bool, create: bool, **settings: str
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a lake that this process has attached, or attaches now."""
    given = tuple(sorted(settings.items()))
    if kind_of(place.url)[0] == "sqlite":
        with opened(place, read_only=read_only, create=create, settings=given) as connection:
            yield connection
        return
    key = (os.getpid(), place, read_only, given)
    with _attaching:
        base = _attached_lakes.get(key)
        if base is None or not _answers(base):
            base = _loaded(place, given)
            _attach(base, place, read_only=read_only, create=create, settings=given)
            _attached_lakes[key] = base
        cursor = quiet(base.cursor())
    with closing(cursor):
        yield cursor


@contextmanager
def opened(
    place: Place,
    *,
    read_only: bool,
    create: bool = False,
    snapshot: int | None = None,
    settings: Settings = (),
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a lake as it is, or as it was at a snapshot, which is left afterwards.

    Made where there is none if it is to be created, else `NoLake`. StoreError for a catalog, an extension or
    a place that is not there, without any password.
    """
    base = _loaded(place, settings)
    _attach(base, place, read_only=read_only, create=create, snapshot=snapshot, settings=settings)
    try:
        with closing(quiet(base.cursor())) as connection:
            yield connection
    finally:
        _leave(base, place, settings)


def _loaded(place: Place, settings: Settings) -> duckdb.DuckDBPyConnection:
    """A connection with the extensions that a kind of lake takes: one that waits, or a new one."""
    kind, _ = kind_of(place.url)
    with _taking:
        if waiting := _idle.get((os.getpid(), kind, settings)):
            return waiting.pop()
    connection = quiet(duckdb.connect(config={"python_enable_replacements": False, **dict(settings)}))
    try:
        for extension in ("ducklake", _CATALOGS[kind]):
            _load(connection, extension)
    except BaseException:
        connection.close()
        raise
    return connection


def _leave(base: duckdb.DuckDBPyConnection, place: Place, settings: Settings) -> None:
    """Leave a lake; a connection that cannot is given up."""
    try:
        base.execute("DETACH lake")
    except duckdb.Error:
        base.close()
        return
    _wait(base, place, settings)


def _why(error: duckdb.Error) -> str:
    there = re.search(r"catalog version is (\S+), but the extension requires version (\S+)\.", str(error))
    if there is None:
        return reason(error)
    return (
        f"its catalog has DuckLake's format {there[1]}, this machine knows {there[2]}: have one version of "
        "coaudit and of its extra `lake` on all machines"
    )


def _wait(base: duckdb.DuckDBPyConnection, place: Place, settings: Settings) -> None:
    """Keep a connection that has its extensions and no lake."""
    with _taking:
        _idle.setdefault((os.getpid(), kind_of(place.url)[0], settings), []).append(base)


def _attach(
    connection: duckdb.DuckDBPyConnection,
    place: Place,
    *,
    read_only: bool,
    create: bool,
    snapshot: int | None = None,
    settings: Settings,
) -> None:
    """Attach a lake, and reach its files; the connection waits for the next where there is no lake, and is
    closed where that cannot be told.
    """
    mode = ["READ_ONLY"] if read_only else []
    mode += [] if snapshot is None else [f"SNAPSHOT_VERSION {snapshot}"]
    try:
        _attach_or_make(connection, place, mode, create=create)
        _reach(connection, _data_path(connection))
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"{place}: cannot open the lake: {_why(error)}") from error
    except NoLake:
        _wait(connection, place, settings)
        raise
    except BaseException:
        connection.close()
        raise


def _attach_or_make(
    connection: duckdb.DuckDBPyConnection, place: Place, mode: list[str], *, create: bool
) -> None:
    """A lake that is there knows where its files lie; a new one is told."""
    where = [f"DATA_PATH {_quoted(place.data)}"] if place.data else []
    if place.data:
        _reach(connection, place.data)
    try:
        _attached(connection, place.url, [*where, *mode, "CREATE_IF_NOT_EXISTS false"])
    except duckdb.Error as error:
        if not _is_missing(place.url, error):
            raise
        if not create:
            raise NoLake(f"{place}: no lake there; `coaudit ingest PATH` makes one") from error
        _reach(connection, place.data or place.otherwise)
        _attached(connection, place.url, where or [f"DATA_PATH {_quoted(place.otherwise)}"])


def _is_missing(url: str, error: duckdb.Error) -> bool:
    if "creating a new DuckLake is explicitly disabled" in str(error):
        return True
    kind, place = kind_of(url)
    return kind == "sqlite" and Path(place).parent.is_dir() and not Path(place).exists()


def _answers(base: duckdb.DuckDBPyConnection) -> bool:
    """Whether the catalog is still there; a server that was started anew is asked by a new connection."""
    try:
        base.execute("SELECT count(*) FROM __ducklake_metadata_lake.ducklake_metadata").fetchall()
    except duckdb.Error:
        return False
    return True


def _attached(connection: duckdb.DuckDBPyConnection, url: str, options: list[str]) -> None:
    connection.execute(f"ATTACH {_quoted(url)} AS lake ({', '.join(options)})")


def _data_path(connection: duckdb.DuckDBPyConnection) -> str:
    query = "SELECT value FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'data_path'"
    rows = connection.execute(query).fetchall()
    return str(rows[0][0]) if rows else ""


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
