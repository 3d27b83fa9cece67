"""The store as a DuckLake: Parquet files on a shared disk, with a catalog in SQLite or Postgres.

`store = "ducklake:sqlite:/shared/catalog.db"` or `"ducklake:postgres:dbname=... host=..."` in coaudit.toml,
and `data = "/shared/tables"` for the Parquet files (else the workspace's own `lake/`). Many processes read
and write at once; with a SQLite catalog writers take turns.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from ..errors import StoreError
from .connection import quiet

PREFIX = "ducklake:"
_CATALOGS = {"sqlite": "sqlite_scanner", "postgres": "postgres_scanner"}
"""Where the catalog lies -> the extension that opens it."""


def is_lake(url: str) -> bool:
    """Whether a store's URL is a lake's."""
    return url.startswith(PREFIX)


def takes_turns(url: str) -> bool:
    """Whether only one process may write at a time."""
    return url.startswith(f"{PREFIX}sqlite:")


def connect(url: str, data: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """A connection whose default catalog is the lake. StoreError for a URL or extension that is not there."""
    kind = url.removeprefix(PREFIX).partition(":")[0]
    if kind not in _CATALOGS:
        raise StoreError(f"{url}: the catalog must be one of {', '.join(_CATALOGS)}, got {kind!r}")
    connection = quiet(duckdb.connect(config={"python_enable_replacements": False}))
    for extension in ("ducklake", _CATALOGS[kind]):
        _load(connection, extension)
    options = ", READ_ONLY" if read_only else ""
    places = [text.replace("'", "''") for text in (url, str(data))]
    connection.execute(f"ATTACH '{places[0]}' AS lake (DATA_PATH '{places[1]}'{options})")
    connection.execute("USE lake")
    return connection


def _load(connection: duckdb.DuckDBPyConnection, extension: str) -> None:
    try:
        from duckdb_extensions import import_extension
    except ImportError as error:
        raise StoreError("a store on DuckLake needs the extra `lake`: pip install coaudit[lake]") from error
    import_extension(extension)
    connection.execute(f"LOAD {extension}")
