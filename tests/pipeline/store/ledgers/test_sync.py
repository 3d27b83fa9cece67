"""What the ledgers hold comes into the tables, however much there is and whoever is killed meanwhile."""

from __future__ import annotations

import time
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import duckdb
import pytest

from coaudit.pipeline import codebooks
from coaudit.pipeline.store import Store, Workspace, database, memory
from coaudit.pipeline.store.ledgers import ledger, sync
from coaudit.pipeline.store.tables import derived
from coaudit.schemas import Rating
from tests.judges.teams import team
from tests.pipeline.stores import holding, opened, rows

NAMES = [f"t{number}" for number in range(7)]
SAID = (("human", "Make a plan."), ("agent", "Shall I use blue?"), ("human", "Yes, use blue."))
TABLES = ("ratings", "counted", "processed", "measured", "quarantine", "ledgers", "postponed")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Seven conversations, and three ledgers of 21 ratings, one of a code that is not known, with a line that
    is none and one that a kill cut off."""
    made = holding(tmp_path / "w", [team(*SAID, key=name) for name in NAMES])
    units = rows(made, "SELECT trajectory_id, event, hash FROM units WHERE kind = 'utterance' ORDER BY ALL")
    for number, rater in enumerate(("ann", "bob", "gold")):
        with ledger.RatingLedger(made.workspace.ratings) as file:
            for unit in units[: 21 - number]:
                file.append([_rating(unit["trajectory_id"], unit["event"], unit["hash"], rater)])
            if rater == "bob":
                file.write_lines([b"not a rating"])
                file.append([_rating("unknown", 1, None, rater)])
        with file.path.open("a") as cut:
            cut.write('{"trajectory": "t1", "ev')
    return made


def _rating(trajectory: str, event: int, unit_hash: str | None, rater: str) -> Rating:
    return Rating(
        trajectory=trajectory,
        event=event,
        unit_hash=unit_hash,
        codebook="initiative",
        codebook_version=codebooks.load("initiative").version,
        code="initiative",
        rater=rater,
        rater_kind="human",
        label="yes",
    )


def _tables(store: Store) -> dict[str, list[str]]:
    with store.reading(synced=True) as connection:
        return {name: sorted(map(str, connection.execute(f"FROM {name}").fetchall())) for name in TABLES}


def _apart(monkeypatch: pytest.MonkeyPatch, *, batch: int, most: int) -> None:
    """Have little come in at a time."""
    monkeypatch.setattr(sync, "LEDGER_BATCH", batch)
    monkeypatch.setattr(database, "RATINGS", most)
    monkeypatch.setattr(derived, "MANY", 3)
    monkeypatch.setattr(derived, "TOGETHER", 2)
    monkeypatch.setattr(derived, "RATED_TOGETHER", 2)


@pytest.mark.long
@pytest.mark.parametrize(("batch", "most"), [(1, 1), (2, 5), (21, 21), (7, 100), (1000, 3)])
def test_what_comes_in_by_many_transactions_is_what_comes_in_by_one(
    store: Store, monkeypatch: pytest.MonkeyPatch, batch: int, most: int
) -> None:
    before = store.workspace.database.read_bytes()
    store.sync()
    whole = _tables(store)
    assert len(whole["ratings"]) == 21 + 20 + 19 + 1
    assert len(whole["counted"]) == 21 + 20 + 19
    assert len(whole["quarantine"]) == 1
    assert whole["postponed"] == []
    store.workspace.database.write_bytes(before)
    _apart(monkeypatch, batch=batch, most=most)
    store.sync()
    assert _tables(store) == whole


@pytest.mark.long
def test_lines_of_ledgers_that_are_damaged_are_named_by_every_command(store: Store) -> None:
    whole, damaged, _ = ledger.files(store.workspace.ratings)
    store.sync()
    (note,) = _notes(store)
    assert note.startswith(f"{damaged}:21: line: Invalid JSON: ")
    assert note.endswith("; set aside; once the file is mended, `coaudit rebuild` reads it again")
    whole.write_bytes(b"\n\r\n" + b"\0" * 10 + b"\n\n" + b"\0" * 9 + b"\n" + whole.read_bytes())
    store.tables.clear()
    store.sync()
    first, second = _notes(store)
    assert first.startswith(f"{whole}:3: ") and "(and 1 more line); set aside" in first
    assert second == note
    lines = rows(store, "SELECT line FROM quarantine ORDER BY line")
    assert [row["line"] for row in lines] == [3, 5, 21], "as an editor counts"


def test_damaged_lines_are_named_where_the_workspace_lies_by_now(tmp_path: Path, store: Store) -> None:
    _, damaged, _ = ledger.files(store.workspace.ratings)
    store.sync()
    place = store.workspace.path.rename(tmp_path / "moved")
    moved = Store(Workspace(place))
    (note,) = _notes(moved)
    assert note.startswith(f"{place / 'ratings' / damaged.name}:21: ")
    (place / "ratings" / damaged.name).unlink()
    assert _notes(moved) == ()


def _notes(store: Store) -> tuple[str, ...]:
    """What every command says first."""
    standing = store.standing()
    assert standing is not None
    return standing.notes


def test_a_ledger_that_an_editor_saved_in_its_own_way_says_the_same(store: Store) -> None:
    store.sync()
    before = rows(store, "SELECT * EXCLUDE ledger FROM ratings ORDER BY ALL")
    for path in ledger.files(store.workspace.ratings):
        path.write_bytes(BOM_UTF8 + path.read_bytes().replace(b"\n", b"\r\n"))
        assert next(ledger.lines(path))[1].startswith(b"{")
    store.tables.clear()
    store.sync()
    assert rows(store, "SELECT * EXCLUDE ledger FROM ratings ORDER BY ALL") == before


def test_after_a_kill_between_two_transactions_the_next_reader_brings_in_the_rest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _apart(monkeypatch, batch=2, most=8)
    with store.writing() as connection:
        assert not store.catch_up(connection, most=8)
    assert len(rows(opened(store.workspace.path), "FROM ratings")) == 61
    assert _tables(store)["postponed"] == []


@pytest.mark.long
def test_what_a_kill_left_underived_is_derived_once_it_is_overdue(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.writing() as connection:
        sync.load_ledgers(store.workspace, connection)
        store.postpone(connection, NAMES, time.time() + 0.2)
    assert not _tables(store)["counted"]
    time.sleep(0.25)
    assert len(rows(store, "FROM counted")) == len(rows(store, "FROM counting")) == 21 + 20 + 19


@pytest.mark.long
def test_what_tables_say_of_themselves_is_read_once_as_long_as_nobody_stores(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    really = sync.table_state

    def counting(connection: duckdb.DuckDBPyConnection) -> sync.TableState | None:
        looks.append(connection)
        return really(connection)

    monkeypatch.setattr(sync, "table_state", counting)
    store.sync()
    looks.clear()
    for _ in range(3):
        assert (standing := store.standing()) and not standing.lags
        with store.reading():
            pass
    assert len(looks) == 1
    with Store(store.workspace).writing() as connection:  # as another process would
        connection.execute("INSERT INTO postponed SELECT id, 0.0 FROM trajectories LIMIT 1")
    assert store.is_behind()
    with store.reading() as connection:
        assert connection.execute("SELECT * FROM postponed").fetchall() == []
    assert not store.is_behind()


def test_what_does_not_fit_in_little_memory_comes_in_with_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str | None] = []
    bounded = memory.limit_memory

    def noted(connection: Any, most: str | None) -> None:
        given.append(most)
        bounded(connection, most)
        if most:
            raise duckdb.OutOfMemoryException("too little")

    monkeypatch.setattr(database, "limit_memory", noted)
    store.sync()
    assert len(_tables(store)["counted"]) == 21 + 20 + 19
    assert given == [memory.WRITER, None]
