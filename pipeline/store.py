"""The store: the only place that opens the database. Every connection is short and retried.

DuckDB admits no reader beside a writer in another process, so `reading` and `writing` open, work and
close; the database is derived from logs and ledgers and may be deleted at any time.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from coaudit.pipeline import codebooks, derived, lake, ledger, rows, samples
from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.locks import exclusive
from coaudit.pipeline.workspace import Workspace
from coaudit.schemas.trajectory import Quarantined, Trajectory

if TYPE_CHECKING:
    from coaudit.pipeline.measures.registry import References

VERSION = 2
"""Of the tables; a database of another version is rebuilt, one from a newer coaudit is refused."""
PATIENCE = 30.0
"""Seconds that an open is retried while another process writes."""
LEDGER_BATCH = 2000
FEW_ROWS = 8
"""So many are stored faster as parameters (1 ms instead of 5) than by way of a data frame."""
READER_MEMORY = "500MB"
"""For all connections of a process that only looks, such as the dashboard."""
VIEWS = ("ratings.sql", "teamwork.sql", "measures.sql", "serving.sql", "dashboard.sql")
TEAMWORK = (
    "metric, trajectory_id, value, 1, NULL, participant, NULL, NULL, NULL FROM count_measures",
    "metric, trajectory_id, value, weight, reason, participant, NULL, scoring, NULL FROM teamwork_measures",
)
_SHARED = ("human_intervention_rate", "workload_balance")
"""Measured for any team, unless its own system says it better."""
_REPLACED = "DELETE FROM computed WHERE metric = ? AND trajectory_id = ? AND scoring IS NULL"
_LOCKED = ("Could not set lock", "Conflicting lock", "being used by another process", "database is locked")


class Store:
    """The tables of one workspace."""

    def __init__(self, workspace: Workspace, *, read_only: bool = False) -> None:
        self.workspace = workspace
        self._lake_made = False
        self.read_only = read_only
        """Never write: what the ledgers hold beyond the database is then not seen (`behind` tells)."""

    @property
    def is_file(self) -> bool:
        """Whether the tables lie in the workspace's own DuckDB file."""
        return self.workspace.store_url == str(self.workspace.database)

    @contextmanager
    def reading(self, *, synced: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection that sees every line the ledgers hold; `synced` ones take that as done."""
        if not (synced or self.is_made):
            self.sync()
        # One open where nothing is new: beside a writer, each open is a turn to wait for.
        with self._open(read_only=True) as connection:
            if synced or self.read_only or not self._lags(connection):
                yield connection
                return
        self.sync(lags=True)
        with self._open(read_only=True) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection inside one transaction: all of it is stored, or nothing."""
        self.workspace.create()
        with self._turn(), self._open(read_only=False) as connection:
            connection.begin()
            _ensure(connection)
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    @property
    def is_made(self) -> bool:
        """Whether the tables are there; those of a lake are made at the first look."""
        return self.workspace.database.exists() if self.is_file else True

    def has_tables(self) -> bool:
        """Whether anything was ever stored; a kill may leave a file without tables."""
        if not self.is_made:
            return False
        with self._open(read_only=True) as connection:
            return _version(connection) is not None

    def clear(self) -> None:
        """Throw the tables away, to make them anew."""
        if self.is_file:
            for path in (self.workspace.database, self.workspace.database.with_suffix(".duckdb.wal")):
                path.unlink(missing_ok=True)
            return
        with self._turn(), self._open(read_only=False) as connection:
            query = (
                "SELECT table_name, table_type FROM information_schema.tables WHERE table_catalog = 'lake'"
            )
            for name, kind in connection.execute(query).fetchall():
                connection.execute(f'DROP {"VIEW" if kind == "VIEW" else "TABLE"} "{name}"')

    def sync(self, *, lags: bool | None = None) -> None:
        """Bring what the ledgers hold beyond the database into it. A read-only workspace stays as it is.

        Whether there is anything is looked up, unless the caller knows.
        """
        if not self.workspace.exists():
            raise StoreError(f"{self.workspace.path}: no workspace here; `coaudit ingest PATH` makes one")
        if self.read_only:
            if self.is_file and not self.workspace.database.exists():
                raise StoreError(f"{self.workspace.database}: no database; `coaudit rebuild` makes one")
            return
        if not self.is_made or (self.behind() if lags is None else lags):
            if not os.access(self.workspace.path, os.W_OK):
                if self.is_made:
                    return
                raise StoreError(f"{self.workspace.path}: the workspace is read-only and has no database")
            with self.writing() as connection:
                self.catch_up(connection)

    def catch_up(self, connection: duckdb.DuckDBPyConnection, changed: Collection[str] = ()) -> None:
        """Load what the ledgers hold beyond the database, within a transaction that is open already.

        Refreshes what is derived from that and from the `changed` trajectories.
        """
        waiting = connection.execute("SELECT DISTINCT trajectory_id FROM postponed").fetchall()
        connection.execute("DELETE FROM postponed")
        everything = self._load_codebooks(connection)
        fresh = self._load_ledgers(connection)
        touched = {*changed, *fresh, *(row[0] for row in waiting)}
        derived.refresh(connection, None if everything else touched)

    def postpone(self, connection: duckdb.DuckDBPyConnection, changed: Collection[str], until: float) -> None:
        """Load what the ledgers hold; what is derived from it and the `changed` waits for a `catch_up`.

        Should none have come by `until` (Unix seconds), the next one who reads does it.
        """
        late = {*changed, *self._load_ledgers(connection)}
        delete(connection, "postponed", "trajectory_id", list(late))
        insert(connection, "postponed", [(key, until) for key in late])

    def _load_ledgers(self, connection: duckdb.DuckDBPyConnection) -> set[str]:
        touched = set[str]()
        for path in ledger.files(self.workspace.ratings):
            touched |= self._load_ledger(connection, path.name)
        touched |= self._load_outcomes(connection)
        self._load_samples(connection)
        return touched

    def save(
        self,
        trajectories: Sequence[Trajectory],
        connection: duckdb.DuckDBPyConnection,
        *,
        refresh: bool = True,
    ) -> None:
        """Store trajectories whole, in place of what was stored under their ids.

        Without `refresh`, the caller sees to what is derived from them (`catch_up`, `postpone`).
        """
        ids = [t.id for t in trajectories]
        tables: dict[str, list[rows.Row]] = {}
        for trajectory in trajectories:
            for table, more in rows.of_trajectory(trajectory).items():
                tables.setdefault(table, []).extend(more)
        for table in ("participants", "events", "units", "computed"):
            delete(connection, table, "trajectory_id", ids)
        delete(connection, "trajectories", "id", ids)
        execute(
            connection,
            "DELETE FROM outcomes WHERE NOT imported AND trajectory_id IN (SELECT unnest(?))",
            [ids],
        )
        for table, more in tables.items():
            insert(connection, table, more)
        self._save_states(connection, trajectories)
        self._compute(connection, trajectories)
        if refresh:
            derived.refresh(connection, set(ids))

    def load(
        self, connection: duckdb.DuckDBPyConnection, ids: Sequence[str], *, states: bool = False
    ) -> list[Trajectory]:
        """The trajectories of these ids, in this order; unknown ids are left out."""
        by_id = {row["id"]: row for row in _where(connection, "trajectories", "id", ids)}
        parts = {
            table: _grouped(_where(connection, table, "trajectory_id", ids, order))
            for table, order in (("participants", "rowid"), ("events", "seq, sub"), ("outcomes", "rowid"))
        }
        contents = _states(connection, parts["events"]) if states else {}
        return [
            rows.to_trajectory(
                by_id[key],
                parts["participants"].get(key, []),
                parts["events"].get(key, []),
                parts["outcomes"].get(key, []),
                contents.get(key, {}),
            )
            for key in ids
            if key in by_id
        ]

    def save_references(
        self, connection: duckdb.DuckDBPyConnection, references: References, source: str
    ) -> list[str]:
        """Keep what Collab-Overcooked runs are measured against; the ids of runs this may concern."""
        delete(connection, "refs", "name", list(references))
        many = [("overcooked", name, one.model_dump_json(), source) for name, one in references.items()]
        insert(connection, "refs", many)
        query = "SELECT id FROM trajectories WHERE system = 'overcooked' AND task IN (SELECT unnest(?))"
        return [row[0] for row in execute(connection, query, [list(references)]).fetchall()]

    def recompute(self, connection: duckdb.DuckDBPyConnection, ids: Sequence[str]) -> None:
        """Compute the measures of stored trajectories anew."""
        delete(connection, "computed", "trajectory_id", ids)
        self._compute(connection, self.load(connection, ids, states=True))
        derived.refresh(connection, set(ids))

    def references(self, connection: duckdb.DuckDBPyConnection) -> References:
        """Order -> reference of every one that was given."""
        from coaudit.pipeline.sources.overcooked_references import Reference

        found = connection.execute("SELECT name, content FROM refs WHERE system = 'overcooked'").fetchall()
        return {name: Reference.model_validate_json(content) for name, content in found}

    def _compute(self, connection: duckdb.DuckDBPyConnection, trajectories: Sequence[Trajectory]) -> None:
        """Fill `computed`: what SQL says of any team, then what each system measures itself."""
        from coaudit.pipeline.measures.registry import measures

        ids = [t.id for t in trajectories]
        for query in TEAMWORK:
            wanted = f"INSERT INTO computed SELECT {query} WHERE trajectory_id IN (SELECT unnest(?))"
            execute(connection, wanted, [ids])
        references = self.references(connection)
        own = [rows.measure(row) for t in trajectories for row in measures(t, references)]
        for metric, trajectory, scoring in sorted({(row[0], row[1], row[7]) for row in own}, key=str):
            if scoring is None and metric in _SHARED:
                execute(connection, _REPLACED, [metric, trajectory])
        insert(connection, "computed", own)

    def _save_states(self, connection: duckdb.DuckDBPyConnection, trajectories: Iterable[Trajectory]) -> None:
        states = {h: s for t in trajectories for h, s in t.states.items()}
        hashes = list(states)
        known = {
            row[0]
            for row in execute(
                connection, "SELECT hash FROM states WHERE hash IN (SELECT unnest(?))", [hashes]
            ).fetchall()
        }
        fresh = [(h, json.dumps(states[h], ensure_ascii=False)) for h in hashes if h not in known]
        insert(connection, "states", fresh)

    def behind(self) -> bool:
        """Whether the ledgers or codebooks hold what the database does not have yet."""
        with self._open(read_only=True) as connection:
            return self._lags(connection)

    def _lags(self, connection: duckdb.DuckDBPyConnection) -> bool:
        # A kill in the very first transaction leaves a database without tables.
        if _version(connection) is None:
            return True
        stored = connection.execute("SELECT value FROM meta WHERE key = 'codebooks'").fetchone()
        loaded = dict(connection.execute("SELECT path, bytes FROM ledgers").fetchall())
        late = execute(connection, "SELECT 1 FROM postponed WHERE until < ?", [time.time()]).fetchone()
        if late or stored is None or stored[0] != self._codebook_state():
            return True
        if samples.changed(self.workspace, loaded):
            return True
        files = [*ledger.files(self.workspace.ratings), *self._outcome_ledger()]
        return any(ledger.is_left(path) and ledger.grown(path, loaded.get(path.name, 0)) for path in files)

    def _outcome_ledger(self) -> list[Path]:
        return [self.workspace.outcomes] if self.workspace.outcomes.exists() else []

    def _load_outcomes(self, connection: duckdb.DuckDBPyConnection) -> set[str]:
        """Load the imported outcomes, the last one of each name for each trajectory and baseline.

        Returns the trajectories that have any; none where the ledger is as it was.
        """
        given: list[rows.Row] = []
        for path in self._outcome_ledger():
            size = path.stat().st_size
            row = execute(connection, "SELECT bytes FROM ledgers WHERE path = ?", [path.name]).fetchone()
            if row == (size,):
                continue
            found = list(ledger.outcomes(path))
            broken = [(q.source, n, q.reason, path.name) for n, q in found if isinstance(q, Quarantined)]
            known = [o for _, o in found if not isinstance(o, Quarantined)]
            last = {(o.trajectory, o.name, o.baseline): o for o in known}
            execute(connection, "DELETE FROM quarantine WHERE read_from = ?", [path.name])
            insert(connection, "quarantine", broken)
            connection.execute("DELETE FROM outcomes WHERE imported")
            given = [rows.outcome(o.trajectory, o.outcome(), imported=True) for o in last.values()]
            insert(connection, "outcomes", given)
            execute(connection, "DELETE FROM ledgers WHERE path = ?", [path.name])
            execute(connection, "INSERT INTO ledgers VALUES (?, ?, ?)", [path.name, size, len(given)])
        return {row[0] for row in given}

    def _load_samples(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Load the samples that are new; a sample is written once, so one that changed is read whole."""
        loaded = dict(connection.execute("SELECT path, bytes FROM ledgers").fetchall())
        for path in samples.changed(self.workspace, loaded):
            size, drawn = path.stat().st_size, list(samples.rows(samples.read(path)))
            key = f"samples/{path.name}"
            execute(connection, "DELETE FROM samples WHERE sample = ?", [path.stem])
            insert(connection, "samples", drawn)
            execute(connection, "DELETE FROM ledgers WHERE path = ?", [key])
            execute(connection, "INSERT INTO ledgers VALUES (?, ?, ?)", [key, size, len(drawn)])

    def _codebook_state(self) -> str:
        own = self.workspace.codebooks
        return codebooks.state(own)

    def _load_codebooks(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Load the codebooks; whether they have changed."""
        stored = connection.execute("SELECT value FROM meta WHERE key = 'codebooks'").fetchone()
        state = self._codebook_state()
        if stored == (state,):
            return False
        own = self.workspace.codebooks
        connection.execute("DELETE FROM codebooks")
        codes: list[rows.Row] = []
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
            codes.extend(
                (*head, c.code, c.name, c.category, categories.get(c.category or "")) for c in book.codes
            )
        insert(connection, "codebooks", codes)
        connection.execute("DELETE FROM meta WHERE key = 'codebooks'")
        execute(connection, "INSERT INTO meta VALUES ('codebooks', ?)", [state])
        return True

    def _load_ledger(self, connection: duckdb.DuckDBPyConnection, name: str) -> set[str]:
        """Load what a ledger holds beyond the database; the trajectories that it is about."""
        row = execute(connection, "SELECT bytes, lines FROM ledgers WHERE path = ?", [name]).fetchone()
        offset, line = row or (0, 0)
        fresh: list[rows.Row] = []
        broken: list[rows.Row] = []
        touched: set[str] = set()
        for item, behind in ledger.ratings(self.workspace.ratings / name, offset):
            if len(fresh) >= LEDGER_BATCH:  # a ledger of a million ratings must not be held in memory
                insert(connection, "ratings", fresh)
                fresh.clear()
            line += 1
            offset = behind
            if isinstance(item, Quarantined):
                broken.append((item.source, line, item.reason, name))
            else:
                fresh.append(rows.rating(item, name, line))
                touched.add(item.trajectory)
        insert(connection, "ratings", fresh)
        insert(connection, "quarantine", broken)
        execute(connection, "DELETE FROM ledgers WHERE path = ?", [name])
        execute(connection, "INSERT INTO ledgers VALUES (?, ?, ?)", [name, offset, line])
        return touched

    def _limits(self) -> dict[str, str]:
        """Settings of a process that only looks: what does not fit in memory spills outside the workspace."""
        if not self.read_only:
            return {}
        spill = f"{tempfile.gettempdir()}/coaudit-{os.getpid()}"
        return {"memory_limit": READER_MEMORY, "temp_directory": spill}

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for other writers where the store admits one at a time and does not queue them itself."""
        if not lake.takes_turns(self.workspace.store_url):
            yield
            return
        with exclusive(self.workspace.path / "locks", "store", lambda holder: None):
            yield

    def _connected(self, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        url = self.workspace.store_url
        if not lake.is_lake(url):
            return _connect(url, read_only=read_only, **self._limits())
        data = Path(self.workspace.settings.get("data", self.workspace.path / "lake"))
        connection = lake.connect(url, data, read_only=read_only and self._lake_made)
        if not self._lake_made:
            _ensure(connection)
            self._lake_made = True
        return connection

    @contextmanager
    def _open(self, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        connection = self._connected(read_only=read_only)
        try:
            _check_version(connection, self.workspace.store_url)
            yield connection
        finally:
            connection.close()


def insert(connection: duckdb.DuckDBPyConnection, table: str, many: Sequence[rows.Row]) -> None:
    """Insert rows in the order of the table's columns."""
    if not many:
        return
    if len(many) <= FEW_ROWS:
        places = ", ".join([f"({', '.join('?' * len(many[0]))})"] * len(many))
        execute(connection, f"INSERT INTO {table} VALUES {places}", [value for row in many for value in row])
        return
    import polars as pl

    types = connection.execute(f"DESCRIBE {table}").fetchall()
    series = [
        pl.Series(name, column, dtype=_dtype(kind))
        for column, (name, kind, *_) in zip(zip(*many, strict=True), types, strict=True)
    ]
    with _without_pandas():
        connection.register("incoming", pl.DataFrame(series))
        connection.execute(f"INSERT INTO {table} SELECT * FROM incoming")
        connection.unregister("incoming")


def delete(connection: duckdb.DuckDBPyConnection, table: str, column: str, values: Sequence[str]) -> None:
    """Delete the rows whose `column` has one of the values."""
    execute(connection, f"DELETE FROM {table} WHERE {column} IN (SELECT unnest(?))", [list(values)])


def execute(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> duckdb.DuckDBPyConnection:
    """Run a query; everything that passes parameters goes through here."""
    with _without_pandas():
        return connection.execute(query, list(parameters))


@contextmanager
def _without_pandas() -> Iterator[None]:
    """Keep pandas out unless somebody has loaded it.

    DuckDB looks for pandas' types among parameters and tables, and where it is installed imports it for
    that, which takes over a second; nothing here uses it.
    """
    if "pandas" in sys.modules:
        yield
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["pandas"]


def dictionaries(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """The rows of a query as dictionaries by column."""
    cursor = execute(connection, query, parameters)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _connect(url: str, *, read_only: bool, **settings: str) -> duckdb.DuckDBPyConnection:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            # Looking for tables among Python's variables would import pandas, which takes two seconds.
            given = {"python_enable_replacements": False, **settings}
            return duckdb.connect(url, read_only=read_only, config=given)
        except duckdb.Error as error:
            if not any(mark in str(error) for mark in _LOCKED):
                reason = str(error).splitlines()[0]
                raise StoreError(
                    f"{url}: cannot open the store: {reason}; `coaudit rebuild` makes a new one"
                ) from error
            if time.monotonic() > deadline:
                raise StoreError(f"{url}: another process held the store for {PATIENCE:.0f} s") from error
        time.sleep(random.uniform(0.01, 0.06))


def _version(connection: duckdb.DuckDBPyConnection) -> int | None:
    """Of the tables that are there; None where there are none."""
    try:
        row = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    except duckdb.CatalogException:
        return None
    return int(row[0]) if row else VERSION


def _check_version(connection: duckdb.DuckDBPyConnection, url: str) -> None:
    found = _version(connection)
    if found is None:
        return
    if found > VERSION:
        raise StoreError(
            f"{url}: written by a newer coaudit (tables {found}, this one knows {VERSION}); update it"
        )
    if found < VERSION:
        raise StoreError(f"{url}: written by an older coaudit (tables {found}); run `coaudit rebuild`")


def _ensure(connection: duckdb.DuckDBPyConnection) -> None:
    if _version(connection) is not None:
        return
    folder = resources.files("coaudit.pipeline.sql")
    connection.execute((folder / "tables.sql").read_text())
    for name in VIEWS:
        connection.execute((folder / name).read_text())
    execute(connection, "INSERT INTO meta VALUES ('version', ?)", [str(VERSION)])


def _dtype(kind: str) -> Any:
    import polars as pl

    if kind.endswith("[]"):
        return pl.List(_dtype(kind[:-2]))
    return {
        "VARCHAR": pl.String,
        "INTEGER": pl.Int32,
        "BIGINT": pl.Int64,
        "DOUBLE": pl.Float64,
        "BOOLEAN": pl.Boolean,
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


def _states(
    connection: duckdb.DuckDBPyConnection, events: dict[str, list[dict[str, Any]]]
) -> dict[str, dict[str, Any]]:
    """Trajectory -> hash -> state, of every state that its events point at."""
    hashes = {
        key: {h for row in many if row["states"] for h in json.loads(row["states"]).values()}
        for key, many in events.items()
    }
    query = "SELECT hash, content FROM states WHERE hash IN (SELECT unnest(?))"
    found = dict(execute(connection, query, [sorted(set().union(*hashes.values()))]).fetchall())
    contents = {key: json.loads(content) for key, content in found.items()}
    return {key: {h: contents[h] for h in own if h in contents} for key, own in hashes.items()}
