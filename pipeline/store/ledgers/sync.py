"""What the ledgers hold beyond the database: detected, and loaded within the caller's transaction."""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from ....schemas import Quarantined, Rating
from ....schemas.text import count_of
from ... import codebooks
from ...errors import SourceError
from ..connection import delete, execute, first_row, insert, insert_columns, version
from ..garbage import few_collections
from ..tables import rows
from ..workspace import Workspace
from . import ledger, ledger_columns, samples

CODEBOOKS = "codebooks"
LEDGER_BATCH = 5000
"""Ratings held at once: a ledger of a million must not be in memory."""
LONGEST_WAIT = 300.0
"""Seconds from now beyond which a postponed refresh is not waited for: who set that time has another clock.
"""
_Line = tuple[str, int, bytes, int]
"""The file, the number of a line, what it says, and the byte offset behind it."""
_BadLine = tuple[str, int, Quarantined]
"""The file and the line of what could not be read of a ledger."""


@dataclass(frozen=True)
class Standing:
    """How the tables compare with the ledgers."""

    lacks_sources: bool
    """Whether the ledger of sources holds more: after a kill, or where another machine has read logs."""
    lags: bool
    """Whether other ledgers, samples or codebooks hold more."""
    notes: tuple[str, ...]
    """Notes on damaged samples, codebooks and lines of ledgers, without which everything else goes on."""


@dataclass(frozen=True)
class TableState:
    """How far the tables have come."""

    offsets: dict[str, int]
    """Name of a ledger's file -> how many bytes of it they hold."""
    codebooks: str | None
    """The state of the codebooks that they were derived with (`codebooks.state`)."""
    waits: tuple[float, float] | None
    """The earliest and the latest time (Unix seconds) until which derived rows wait for whoever
    promised to refresh them."""


def table_state(connection: duckdb.DuckDBPyConnection) -> TableState | None:
    """How far the tables of a connection have come; None where there are none."""
    # A kill in the very first transaction leaves a database without tables.
    if version(connection) is None:
        return None
    query = "SELECT min(until), max(until) FROM postponed HAVING count(*) > 0"
    row = first_row(connection, query)
    waits = (row[0], row[1]) if row else None
    return TableState(ledger_offsets(connection), _loaded_codebooks(connection), waits)


def standing(workspace: Workspace, connection: duckdb.DuckDBPyConnection, tables: TableState) -> Standing:
    """How the tables of a connection compare with the ledgers."""
    sources = workspace.sources
    return Standing(
        lacks_sources=sources.exists() and sources.has_grown(tables.offsets),
        lags=lags(workspace, tables),
        notes=(*_set_aside_notes(connection), *_damage_notes(workspace, connection)),
    )


def ledger_offsets(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many bytes of each file of a ledger the database holds."""
    return dict(connection.execute("SELECT path, bytes FROM ledgers").fetchall())


def note_offsets(connection: duckdb.DuckDBPyConnection, offsets: Mapping[str, int]) -> None:
    """Note that the database holds files of a ledger up to these bytes."""
    _note(connection, {path: (end, 0) for path, end in offsets.items()})


def lags(workspace: Workspace, tables: TableState | None) -> bool:
    """Whether the ledgers, samples or codebooks hold what the tables do not have yet."""
    if tables is None or tables.codebooks != codebooks.state(workspace.codebooks):
        return True
    now = time.time()
    if tables.waits and (tables.waits[0] < now or tables.waits[1] > now + LONGEST_WAIT):
        return True
    if samples.changed_files(workspace, tables.offsets):
        return True
    if workspace.outcomes.has_grown(tables.offsets):
        return True
    offsets = tables.offsets
    paths = ledger.changed_files(workspace.ratings, offsets)
    return any(
        ledger.is_unattended(path) and ledger.has_grown(path, offsets.get(path.name, 0)) for path in paths
    )


@dataclass(frozen=True)
class LoadResult:
    """What was loaded from the ledgers."""

    trajectory_ids: set[str]
    """Ids of the trajectories that it is about."""
    is_complete: bool
    """Whether that is all there was."""


@few_collections()
def load_ledgers(
    workspace: Workspace, connection: duckdb.DuckDBPyConnection, most: int | None = None
) -> LoadResult:
    """Load the ratings, outcomes and samples that the database lacks; with `most`, no more than so many
    ratings, and the rest only once there are no more of them."""
    result = _load_ratings(workspace, connection, most)
    if not result.is_complete:
        return result
    trajectory_ids = result.trajectory_ids | _load_outcomes(workspace, connection)
    _load_samples(workspace, connection)
    return LoadResult(trajectory_ids, is_complete=True)


def load_codebooks(workspace: Workspace, connection: duckdb.DuckDBPyConnection) -> bool:
    """Load the codebooks if they have changed; whether they had."""
    folder = workspace.codebooks
    state = codebooks.state(folder)
    if _loaded_codebooks(connection) == state:
        return False
    books = []
    connection.execute("DELETE FROM codebooks")
    execute(connection, "DELETE FROM quarantine WHERE read_from = ?", [CODEBOOKS])
    for name in codebooks.names(folder):
        try:
            books.append(codebooks.load(name, folder))
        except codebooks.CodebookError as error:
            _set_aside(connection, CODEBOOKS, folder / f"{name}.toml", str(error))
    insert(connection, "codebooks", [row for book in books for row in rows.codes(book)])
    connection.execute("DELETE FROM codebook_scopes")
    insert(connection, "codebook_scopes", [row for book in books for row in rows.scopes(book)])
    connection.execute("DELETE FROM meta WHERE key = 'codebooks'")
    insert(connection, "meta", [{"key": "codebooks", "value": state}])
    return True


def _loaded_codebooks(connection: duckdb.DuckDBPyConnection) -> str | None:
    row = first_row(connection, "SELECT value FROM meta WHERE key = 'codebooks'")
    return row[0] if row else None


def _load_ratings(
    workspace: Workspace, connection: duckdb.DuckDBPyConnection, most: int | None
) -> LoadResult:
    """Load ratings thousands at a time, whatever file they are in: many short runs leave many short files."""
    query = "SELECT path, bytes, lines FROM ledgers"
    positions = {path: (end, lines) for path, end, lines in connection.execute(query).fetchall()}
    paths = ledger.changed_files(workspace.ratings, {path: end for path, (end, _) in positions.items()})
    pending = itertools.chain.from_iterable(_lines(path, *positions.get(path.name, (0, 0))) for path in paths)
    trajectory_ids: set[str] = set()
    bad_lines: list[_BadLine] = []
    ends: dict[str, tuple[int, int]] = {}
    rest = sys.maxsize if most is None else most
    while batch := list(itertools.islice(pending, min(rest, LEDGER_BATCH))):
        rest -= len(batch)
        ends.update((name, (behind, number)) for name, number, _, behind in batch)
        columns = ledger_columns.columns([line for *_, line, _ in batch], *_places(batch))
        if columns is None:
            columns, wrong = _one_by_one(batch, workspace.ratings)
            bad_lines += wrong
        if columns:
            insert_columns(connection, "ratings", columns)
            trajectory_ids.update(columns["trajectory_id"])
    _quarantine(connection, bad_lines)
    _note(connection, ends)
    return LoadResult(trajectory_ids, is_complete=next(pending, None) is None)


def _lines(path: Path, offset: int, line: int) -> Iterator[_Line]:
    name = path.name
    for number, content, behind in ledger.whole_lines(path, offset):
        yield name, line + number, content, behind


def _places(lines: Sequence[_Line]) -> tuple[list[str], list[int]]:
    return [name for name, *_ in lines], [number for _, number, *_ in lines]


def _one_by_one(batch: Sequence[_Line], folder: Path) -> tuple[ledger_columns.Columns, list[_BadLine]]:
    """The ratings among some lines, and what is wrong with the others."""
    items = [(line, ledger.rating(line[2], folder / line[0])) for line in batch]
    bad_lines = [(*line[:2], item) for line, item in items if isinstance(item, Quarantined)]
    good = [(line, item) for line, item in items if isinstance(item, Rating)]
    if not good:
        return {}, bad_lines
    return rows.ratings([item for _, item in good], *_places([line for line, _ in good])), bad_lines


def _load_outcomes(workspace: Workspace, connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Load imported outcomes, if the ledger has changed: of a trajectory, name and baseline the last one
    counts."""
    sizes = workspace.outcomes.sizes()
    offsets = ledger_offsets(connection)
    if all(offsets.get(name) == size for name, size in sizes.items()):
        return set()
    items = list(ledger.outcomes(workspace.outcomes))
    last = {(o.trajectory, o.name, o.baseline): o for _, _, o in items if not isinstance(o, Quarantined)}
    delete(connection, "quarantine", "read_from", list(sizes))
    _quarantine(
        connection, [(path.name, n, item) for path, n, item in items if isinstance(item, Quarantined)]
    )
    lines = Counter(path.name for path, _, _ in items)
    _note(connection, {name: (size, lines[name]) for name, size in sizes.items()})
    connection.execute("DELETE FROM outcomes WHERE imported")
    outcome_rows = [rows.outcome(o.trajectory, o.outcome(), imported=True) for o in last.values()]
    insert(connection, "outcomes", outcome_rows)
    return {o.trajectory for o in last.values()}


def _load_samples(workspace: Workspace, connection: duckdb.DuckDBPyConnection) -> None:
    """A sample is written once, so one that changed is read whole."""
    offsets = ledger_offsets(connection)
    for path in samples.changed_files(workspace, offsets):
        name, size = f"samples/{path.name}", path.stat().st_size
        for table in ("samples", "frames"):
            execute(connection, f"DELETE FROM {table} WHERE sample = ?", [path.stem])
        execute(connection, "DELETE FROM quarantine WHERE read_from = ?", [name])
        try:
            sample = samples.read(path)
        except SourceError as error:
            _set_aside(connection, name, path, str(error))
            _note(connection, {name: (size, 0)})
            continue
        sample_rows = list(samples.rows(sample))
        insert(connection, "samples", sample_rows)
        insert_columns(connection, "frames", samples.frame_columns(sample))
        _note(connection, {name: (size, len(sample_rows))})


def _set_aside_notes(connection: duckdb.DuckDBPyConnection) -> list[str]:
    query = f"""
        SELECT source, reason FROM quarantine
        WHERE read_from LIKE 'samples/%' OR read_from = '{CODEBOOKS}'
    """
    rows = connection.execute(query).fetchall()
    return [
        f"{reason}; set aside, everything else goes on" for source, reason in rows if Path(source).exists()
    ]


def _damage_notes(workspace: Workspace, connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Notes on ledgers with lines that could not be read, wherever the workspace lies by now."""
    query = """
        SELECT read_from, count(*), min(line), arg_min(reason, line)
        FROM quarantine SEMI JOIN ledgers ON ledgers.path = read_from
        WHERE line IS NOT NULL GROUP BY read_from ORDER BY read_from
    """
    damage = connection.execute(query).fetchall()
    paths = [*ledger.files(workspace.ratings), *workspace.outcomes.files()] if damage else []
    places = {path.name: path for path in paths}
    notes = list[str]()
    for name, count, line, reason in damage:
        if place := places.get(name):
            rest = f" (and {count_of(count - 1, 'more line', 'more lines')})" if count > 1 else ""
            remedy = "set aside; once the file is mended, `coaudit rebuild` reads it again"
            notes.append(f"{place}:{line}: {reason}{rest}; {remedy}")
    return notes


def _set_aside(connection: duckdb.DuckDBPyConnection, name: str, path: Path, reason: str) -> None:
    insert(
        connection, "quarantine", [{"source": str(path), "line": None, "reason": reason, "read_from": name}]
    )


def _quarantine(connection: duckdb.DuckDBPyConnection, bad_lines: Sequence[_BadLine]) -> None:
    insert(
        connection,
        "quarantine",
        [
            {"source": item.source, "line": line, "reason": item.reason, "read_from": name}
            for name, line, item in bad_lines
        ],
    )


def _note(connection: duckdb.DuckDBPyConnection, ends: Mapping[str, tuple[int, int]]) -> None:
    """Note how far files were read: name -> (bytes, lines)."""
    delete(connection, "ledgers", "path", list(ends))
    insert(
        connection, "ledgers", [{"path": p, "bytes": end, "lines": lines} for p, (end, lines) in ends.items()]
    )
