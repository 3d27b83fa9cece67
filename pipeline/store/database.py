"""The store: the only place that opens the database. Every connection is short and retried.

DuckDB admits no reader beside a writer in another process, so `reading` and `writing` open, work and
close; the database is derived from logs and ledgers and may be deleted at any time.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from ...schemas import Trajectory
from ..errors import StoreError, WriteError
from . import disk
from .claims import Claims, FolderClaims
from .connection import (
    AMONG,
    VERSION,
    Batches,
    Reading,
    append,
    constants,
    delete,
    dictionaries,
    execute,
    insert,
    is_damage,
    register_table,
    texts,
    version,
)
from .file.file import File
from .lake.lake import Lake, is_lake
from .lake.postgres import CatalogClaims, CatalogLocks
from .ledgers import sync
from .ledgers.sync import Standing, TableState
from .locks import reason
from .memory import READER, WRITER, limit_memory, run_within, spill_folder
from .tables import derived, rows
from .tables.columns import SCHEMAS, schema
from .workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

    from .tables.parcel import Parcel

RATINGS = 120_000
"""Ratings that one transaction loads from ledgers: a row group of DuckDB's, which then goes to disk at once.
"""
VIEWS = ("ratings.sql", "measures.sql", "serving.sql", "dashboard.sql")


class Store:
    """The tables of one workspace."""

    def __init__(
        self, workspace: Workspace, *, read_only: bool = False, tables: File | Lake | None = None
    ) -> None:
        is_kept = workspace.read_only or not read_only
        self.workspace = workspace if is_kept else workspace.read_only_copy()
        self.tables = tables or place_of(workspace)
        """The file or lake that has the tables."""
        self._local = threading.local()
        self._cached_state: tuple[str, TableState | None] | None = None
        self.read_only = read_only
        """Never write: what the ledgers hold beyond the database is then not seen (`is_behind` tells)."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines may have to read the logs that this one reads."""
        return self.workspace.remote is not None or isinstance(self.tables, Lake)

    def claims(self) -> Claims:
        """This process's claims on what it is going to ask."""
        if isinstance(self.tables.locks, CatalogLocks):
            return CatalogClaims(self.tables.locks.conninfo)
        if self.workspace.remote:
            from .remote.leases import ObjectClaims

            return ObjectClaims(self.workspace.remote)
        return FolderClaims(self.workspace.path / "locks")

    @property
    def only_looks(self) -> bool:
        """Whether nothing may be written: opened read-only, or a workspace without ledgers beside another's
        lake."""
        return self.read_only or not (isinstance(self.tables, File) or self.workspace.has_begun)

    @property
    def may_write(self) -> bool:
        """Whether the tables are brought up to the ledgers before they are read."""
        return not self.only_looks and self.workspace.is_writable

    @contextmanager
    def reading(self, *, synced: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection that sees every line the ledgers hold; `synced`: without looking whether it
        does."""
        snapshot: Reading | None = getattr(self._local, "reading", None)
        if snapshot is not None:
            with snapshot() as connection:
                yield connection
            return
        if not synced:
            self.workspace.pull()
        if not (synced or self.is_made):
            self.sync()
        # Where nothing is new it opens once: beside a writer, each open waits for a turn.
        with self._open(read_only=True) as connection:
            if synced or self.only_looks or not sync.lags(self.workspace, self._table_state(connection)):
                yield connection
                return
        self.sync(lags=True)
        with self._open(read_only=True) as connection:
            yield connection

    @contextmanager
    def reading_any_version(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection to the tables as they are, also to those of another coaudit."""
        with self.tables.open_connection(read_only=True, **self._limits()) as connection:
            yield connection

    def refuse_newer(self) -> None:
        """StoreError where other machines share tables that a newer coaudit made: they would lose them."""
        if isinstance(self.tables, Lake) and self.is_made:
            with self.reading_any_version() as connection:
                self._check_version(connection, older=True)

    @contextmanager
    def hold_state(self) -> Iterator[None]:
        """Keep all reads of this thread inside the block to one state; it must not write meanwhile."""
        with self.reading() as connection, self.tables.hold_state(connection) as snapshot:
            self._local.reading = snapshot
            try:
                yield
            finally:
                self._local.reading = None

    def admit_writes(self) -> None:
        """StoreError where nothing may be written: to be called before anything is begun, or paid for."""
        self.workspace.create()
        if self.only_looks and self.is_made:
            with self._open(read_only=False):
                pass  # raises if the tables are another study's

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection inside one transaction: all of it is stored, or nothing."""
        self.workspace.create()
        self._cached_state = None
        with self.tables.turn(), self._open(read_only=False) as connection:
            has_tables = version(connection) is not None
            connection.begin()
            if not has_tables:
                self._make_tables(connection)
            try:
                yield connection
                disk.fault("commit", self.workspace.database)
                connection.commit()
            except BaseException as error:
                _roll_back(connection)
                if why := self._refusal(error):
                    raise WriteError(f"{self.tables}: cannot store: {why}") from error
                raise
            self.tables.tidy(connection)

    @property
    def is_made(self) -> bool:
        """Whether the tables are there."""
        return self.tables.is_made

    def has_tables(self) -> bool:
        """Whether anything was ever stored; a kill may leave a file without tables."""
        if not self.is_made:
            return False
        with self._open(read_only=True) as connection:
            return version(connection) is not None

    def replacement(self) -> Store:
        """A new store, made to take this one's place."""
        return Store(self.workspace, tables=self.tables.replacement())

    def sync(self, *, lags: bool | None = None) -> None:
        """Load what the ledgers hold beyond the database. A read-only workspace stays as it is.

        `lags` says whether there is anything to load; None: look.
        """
        if not self.workspace.exists():
            raise StoreError(f"{self.workspace.home}: no workspace here; `coaudit ingest PATH` makes one")
        if self.only_looks:
            if not self.is_made:
                raise StoreError(f"{self.tables}: no database; `coaudit rebuild` makes one")
            return
        if not self.is_made or (self.is_behind() if lags is None else lags):
            if not self.workspace.is_writable:
                if self.is_made:
                    return
                problem = "the workspace is read-only and has no database"
                raise StoreError(f"{self.workspace.path}: {problem}; {self._remedy}")
            while not run_within(WRITER, self._catch_up):
                pass

    def _catch_up(self, memory: str | None) -> bool:
        with self.writing() as connection:
            limit_memory(connection, memory)
            return self.catch_up(connection, most=RATINGS)

    def catch_up(
        self,
        connection: duckdb.DuckDBPyConnection,
        trajectory_ids: Collection[str] = (),
        *,
        most: int | None = None,
    ) -> bool:
        """Load what the ledgers hold beyond the database and refresh what is derived from it and from
        `trajectory_ids`, within an open transaction.

        With `most`, no more ratings than that are loaded. Where there are more, nothing is derived yet and
        the result is False: another transaction is needed.
        """
        fresh = sync.load_ledgers(self.workspace, connection, most)
        ids = {*trajectory_ids, *fresh.trajectory_ids}
        if not fresh.is_complete:
            self._wait(connection, ids, time.time() + derived.OVERDUE)
            return False
        everything = sync.load_codebooks(self.workspace, connection)
        waiting = connection.execute("SELECT DISTINCT trajectory_id FROM postponed").fetchall()
        connection.execute("DELETE FROM postponed")
        ids.update(row[0] for row in waiting)
        derived.refresh(connection, None if everything else ids)
        return True

    def postpone(
        self, connection: duckdb.DuckDBPyConnection, trajectory_ids: Collection[str], until: float
    ) -> None:
        """Load what the ledgers hold; what is derived from it and from `trajectory_ids` waits for a
        `catch_up`.

        Where none has come by `until` (Unix seconds), the next reader refreshes it.
        """
        fresh = sync.load_ledgers(self.workspace, connection)
        self._wait(connection, {*trajectory_ids, *fresh.trajectory_ids}, until)

    def _wait(self, connection: duckdb.DuckDBPyConnection, late: Collection[str], until: float) -> None:
        delete(connection, "postponed", "trajectory_id", late)
        insert(connection, "postponed", [{"trajectory_id": key, "until": until} for key in late])

    def save(self, connection: duckdb.DuckDBPyConnection, parcels: Sequence[Parcel]) -> None:
        """Store tables of trajectories of which nothing is stored yet (see `removal.clear`).

        The parcels are used up: what is stored leaves memory. The caller refreshes what is derived from it.
        """
        # The largest first: it is compressed in memory, where the others wait for the end of the transaction.
        for name in sorted(SCHEMAS, key=lambda name: -sum(parcel.sizes[name] for parcel in parcels)):
            if any(parcel.rows[name] for parcel in parcels):
                rows = itertools.chain.from_iterable(parcel.drain(name) for parcel in parcels)
                if name == "states":
                    _save_states(connection, rows)
                else:
                    append(connection, name, schema(name), rows)

    def load(
        self,
        connection: duckdb.DuckDBPyConnection,
        ids: Sequence[str],
        *,
        states: bool = False,
    ) -> list[Trajectory]:
        """The trajectories of these ids, in this order; unknown ids are left out."""
        heads = _select_where(connection, "trajectories", "id", ids)
        parts = {
            table: _select_where(connection, table, "trajectory_id", ids, order)
            for table, order in (("participants", "rowid"), ("events", "seq, sub"), ("outcomes", "rowid"))
        }
        contents = _states(connection, parts["events"]) if states else {}
        return rows.to_trajectories(ids, heads, parts, contents)

    def standing(self) -> Standing | None:
        """How the tables compare with the ledgers; None where there are no tables."""
        if not self.is_made:
            return None
        with self._open(read_only=True) as connection:
            tables = self._table_state(connection)
            return sync.standing(self.workspace, connection, tables) if tables else None

    def is_behind(self) -> bool:
        """Whether the ledgers or codebooks hold what the database does not have yet."""
        with self._open(read_only=True) as connection:
            return sync.lags(self.workspace, self._table_state(connection))

    def _table_state(self, connection: duckdb.DuckDBPyConnection) -> TableState | None:
        """How far the tables came, read once as long as nothing is stored."""
        word, cache = self.tables.state_word(connection), self._cached_state
        if cache is None or cache[0] != word:
            self._cached_state = cache = word, sync.table_state(connection)
        return cache[1]

    def _limits(self) -> dict[str, str]:
        """Settings of a process that only looks: what does not fit in memory spills outside the workspace."""
        if not self.read_only:
            return {}
        return {"memory_limit": READER, "temp_directory": spill_folder()}

    @contextmanager
    def _open(self, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        with self.tables.open_connection(read_only=read_only, **self._limits()) as connection:
            self._check_version(connection)
            yield connection

    def _check_version(self, connection: duckdb.DuckDBPyConnection, *, older: bool = False) -> None:
        """StoreError for tables of another version; with `older`, for those of a newer one alone."""
        try:
            number = version(connection)
        except ValueError as error:
            if older:
                return
            problem = f"the tables' version is not a number ({error})"
            raise StoreError(f"{self.tables}: {problem}; {self._remedy}") from error
        if number is None:
            return
        if number > VERSION:
            problem = f"written by a newer coaudit (tables {number}, this one reads {VERSION})"
            raise StoreError(f"{self.tables}: {problem}; update coaudit")
        if number < VERSION and not older:
            problem = f"written by an older coaudit (tables {number})"
            raise StoreError(f"{self.tables}: {problem}; {self._remedy}")

    @property
    def _remedy(self) -> str:
        """Who makes the tables anew, and how."""
        run = "`coaudit rebuild`"
        return f"run {run}" if self.workspace.is_writable else f"who may write to the workspace runs {run}"

    def _refusal(self, error: BaseException) -> str | None:
        """Why a disk or a catalog refuses a write; None for any other error."""
        if isinstance(self.tables, File) and is_damage(error, self.tables.path):
            return None
        # A FatalException is what a checkpoint that finds the disk full ends with.
        if isinstance(error, duckdb.IOException | duckdb.TransactionException | duckdb.FatalException):
            return reason(error)
        if isinstance(error, OSError) and not error.filename:
            return error.strerror or str(error)
        return None

    def _make_tables(self, connection: duckdb.DuckDBPyConnection) -> None:
        folder = resources.files("coaudit.pipeline.store.sql")
        self.tables.make_tables(connection, [(folder / name).read_text() for name in ("tables.sql", *VIEWS)])
        insert(connection, "meta", [{"key": "version", "value": str(VERSION)}])


def place_of(workspace: Workspace) -> File | Lake:
    """Where a workspace's tables lie."""
    if is_lake(workspace.store_url):
        return Lake(workspace)
    return File(Path(workspace.store_url), workspace.path / "locks")


def _roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    with suppress(duckdb.Error):  # a commit that failed has ended the transaction already
        connection.rollback()


def _save_states(connection: duckdb.DuckDBPyConnection, rows: Iterable[pa.RecordBatch]) -> None:
    """Store each state once, whichever trajectories it is of."""
    with register_table(connection, "incoming_states", Batches(schema("states"), rows)):
        connection.execute(
            "INSERT INTO states SELECT hash, any_value(content) FROM incoming_states "
            "WHERE hash NOT IN (SELECT hash FROM states) GROUP BY hash"
        )


def _select_where(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    column: str,
    values: Sequence[str],
    order: str = "rowid",
) -> list[dict[str, Any]]:
    query = f"SELECT * FROM {table} WHERE {column} IN ({constants(values)}) ORDER BY {order}"
    return dictionaries(connection, query)


def _states(connection: duckdb.DuckDBPyConnection, events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Hash -> state, of every state that events point at."""
    query = f"SELECT hash, content FROM states WHERE hash {AMONG}"
    contents = execute(connection, query, [texts(sorted(rows.hashes_of(events)))]).fetchall()
    return {key: json.loads(content) for key, content in contents}
