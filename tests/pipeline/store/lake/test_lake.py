"""The store on DuckLake, where the extra is installed."""

from __future__ import annotations

import socket
import sqlite3
from pathlib import Path

import duckdb
import pytest

from coaudit.pipeline import codebooks
from coaudit.pipeline.analyze.metrics import metrics
from coaudit.pipeline.cli.sample_audit import samples
from coaudit.pipeline.errors import StoreError, WriteError
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace, insert
from coaudit.pipeline.store import connection as storing
from coaudit.pipeline.store.lake import attach
from coaudit.pipeline.store.lake import lake as tables_of_a_lake
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.cogym.generate import generate
from coaudit.schemas import Rating


def _store(folder: Path, url: str | None = None) -> Store:
    folder.mkdir()
    if url is not None:
        (folder / "coaudit.toml").write_text(f'store = "{url}"\n', encoding="utf-8")
    return Store(Workspace(folder))


def _numbers(store: Store) -> list[tuple[object, ...]]:
    return [
        (m.metric, m.participant, m.scoring, m.n, m.missing, None if m.value is None else round(m.value, 12))
        for m in metrics(store)
    ]


def test_a_catalog_of_an_unknown_kind_names_the_choices(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="one of sqlite, postgres, got 'mysql'"):
        _store(tmp_path / "w", "ducklake:mysql:host")


@pytest.mark.long
@pytest.mark.parametrize("write", [False, True])
def test_a_catalog_that_fails_in_the_midst_of_something_is_named(tmp_path: Path, write: bool) -> None:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    store = _store(tmp_path / "w", "ducklake:sqlite:catalog.db")
    with store.writing():
        pass
    catalog = tmp_path / "w" / "catalog.db"
    with (
        pytest.raises(StoreError, match=f"^ducklake:sqlite:{catalog}: its catalog has failed; what was comm"),
        store.writing() if write else store.reading(synced=True) as connection,
    ):
        catalog.write_bytes(b"no catalog" * 10_000)
        connection.execute("SELECT * FROM trajectories")


@pytest.mark.long
def test_tables_of_a_lake_that_are_cut_off_keep_a_write_out_with_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    store = _store(tmp_path / "w", "ducklake:sqlite:catalog.db")
    with store.writing():
        pass
    cut = duckdb.IOException('IO Error: Could not read enough bytes from file "/data/coaudit.duckdb"')
    with pytest.raises(WriteError, match=": cannot store: IO Error: Could not read"), store.writing():
        raise cut


@pytest.mark.slow
@pytest.mark.parametrize("data", ["", "data = 'ta bles'\n"])
def test_a_lake_that_was_moved_with_its_workspace_is_read_written_and_rebuilt_where_it_lies(
    tmp_path: Path, data: str
) -> None:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "coaudit.toml").write_text(f"store = 'ducklake:sqlite:catalog.db'\n{data}")
    store = Store(Workspace(tmp_path / "w"))
    assert ingest(store, [samples() / "coblock"], ReadOptions()).trajectories
    before = _numbers(store)
    moved = Store(Workspace((tmp_path / "w").rename(tmp_path / "w ü 2")))
    assert _numbers(moved) == before
    generate(tmp_path / "logs", 1, 1)
    assert ingest(moved, [tmp_path / "logs"], ReadOptions()).trajectories == 1
    before = _numbers(moved)
    rebuild(moved)
    assert _numbers(moved) == before
    assert not (tmp_path / "w").exists()


@pytest.mark.slow
def test_a_lake_gives_the_numbers_of_a_file_and_can_be_rebuilt(tmp_path: Path) -> None:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    file = _store(tmp_path / "file")
    lake = _store(tmp_path / "lake", f"ducklake:sqlite:{tmp_path / 'catalog.db'}")
    for store in (file, lake):
        assert ingest(store, [samples() / "coblock"], ReadOptions()).trajectories
        assert ingest(store, [samples() / "coblock"], ReadOptions()).trajectories == 0
    assert _numbers(lake) == _numbers(file)
    rebuild(lake)
    assert _numbers(lake) == _numbers(file)
    assert list((tmp_path / "lake" / "lake").rglob("*.parquet"))


@pytest.mark.slow
def test_a_lake_of_an_older_coaudit_is_rebuilt_and_one_of_a_newer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    lake = _store(tmp_path / "lake", f"ducklake:sqlite:{tmp_path / 'catalog.db'}")
    ingest(lake, [samples() / "coblock"], ReadOptions())
    before = _numbers(lake)
    scrape = {"time": "2026-01-01T00:00:00.000", "url": "http://gpu7"}
    with lake.writing() as connection:
        insert(connection, "serving", [scrape])
    _be_of_version(lake, storing.VERSION - 1, monkeypatch)
    with pytest.raises(StoreError, match=r"written by an older coaudit .*; run `coaudit rebuild`"):
        _numbers(lake)
    rebuild(lake)
    assert _numbers(lake) == before
    with lake.reading() as connection:
        assert connection.execute("SELECT time, url FROM serving").fetchall() == [tuple(scrape.values())]
    _be_of_version(lake, storing.VERSION + 1, monkeypatch)
    with pytest.raises(StoreError, match="written by a newer coaudit"):
        rebuild(lake)


def _be_of_version(store: Store, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.writing() as connection:
        connection.execute(f"UPDATE meta SET value = '{number}' WHERE key = 'version'")
    monkeypatch.setattr(storing, "_versions", {})


@pytest.mark.slow
def test_tables_that_hold_nothing_have_statistics_or_the_catalog_is_asked_for_each_column_anew(
    tmp_path: Path,
) -> None:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    lake = _store(tmp_path / "lake", f"ducklake:sqlite:{tmp_path / 'catalog.db'}")
    with lake.writing():
        pass
    with lake.reading(synced=True) as connection:
        (own,) = connection.execute("SELECT current_schema()").fetchone() or ("",)
        catalog = "__ducklake_metadata_lake"
        without = connection.execute(f"""
            SELECT t.table_name
            FROM {catalog}.ducklake_table t JOIN {catalog}.ducklake_schema s USING (schema_id)
            WHERE s.schema_name = '{own}' AND t.table_id NOT IN (
                SELECT table_id FROM {catalog}.ducklake_table_stats)
        """).fetchall()
        assert without == []
        tables = [
            name
            for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            if name in ("samples", "frames", "serving", "events", "measured")
        ]
        assert len(set(tables)) == 5
        for table in tables:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


@pytest.mark.slow
def test_what_many_small_commits_leave_is_merged_and_nobody_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    monkeypatch.setattr(tables_of_a_lake, "MANY_FILES", 3)
    generate(tmp_path / "logs", 4, 1)
    file = _store(tmp_path / "file")
    lake = _store(tmp_path / "lake", f"ducklake:sqlite:{tmp_path / 'catalog.db'}")
    for store in (file, lake):
        ingest(store, [tmp_path / "logs"], ReadOptions())
        for number in range(7):
            _rate(store, number)
            with store.reading():
                pass
    kept = ("ratings", "counted", "processed", "measured", "events", "participants")
    wanted, there = ({table: _rows(store, table) for table in kept} for store in (file, lake))
    assert there == wanted
    with lake.reading() as connection:
        query = """
            SELECT table_name, count(*) FROM __ducklake_metadata_lake.ducklake_data_file f
            JOIN __ducklake_metadata_lake.ducklake_table USING (table_id)
            WHERE f.end_snapshot IS NULL GROUP BY ALL
        """
        files = dict(connection.execute(query).fetchall())
    assert 1 <= files["ratings"] <= 4 and files["counted"] <= 4 and files["measured"] <= 4


def _rate(store: Store, number: int) -> None:
    """Rate the utterances of two trajectories as somebody new."""
    with store.reading(synced=True) as connection:
        units = connection.execute(
            "SELECT trajectory_id, event, hash FROM units WHERE kind = 'utterance' AND trajectory_id IN "
            "(SELECT id FROM trajectories ORDER BY id LIMIT 2) ORDER BY ALL"
        ).fetchall()
    assert len(units) > 10, "fewer rows lie in the catalog and in no file"
    folder = store.workspace.ratings
    folder.mkdir(exist_ok=True)
    version = codebooks.load("initiative", None).version
    ratings = [
        Rating(
            trajectory=trajectory,
            event=event,
            unit_hash=unit,
            codebook="initiative",
            codebook_version=version,
            code="initiative",
            rater=f"rater {number}",
            rater_kind="human",
            label="yes",
        )
        for trajectory, event, unit in units
    ]
    (folder / f"2026{number}.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in ratings))


def _rows(store: Store, table: str) -> list[str]:
    with store.reading() as connection:
        return sorted(map(str, connection.execute(f"FROM {table}").fetchall()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "told"),
    [
        (
            "99.1",
            r"format 99\.1, which is newer than .*: install the coaudit here that the others have",
        ),
        ("0.3", r"format 0\.3 and this machine writes .*name a new catalog .*`coaudit rebuild` fills it"),
        ("", "name a new catalog"),
    ],
)
def test_a_catalog_of_another_format_of_ducklake_is_one_sentence_and_stays_as_it_is(
    tmp_path: Path, version: str, told: str
) -> None:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    catalog = tmp_path / "catalog.db"
    lake = _store(tmp_path / "lake", f"ducklake:sqlite:{catalog}")
    with lake.writing():
        pass
    with sqlite3.connect(catalog) as connection:
        connection.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'version'", [version])
    before = catalog.read_bytes()
    for verb in (lambda: Store(lake.workspace).sync(), lambda: rebuild(Store(lake.workspace))):
        with pytest.raises(StoreError, match=told) as error:
            verb()
        assert "MIGRATION" not in str(error.value)
    assert catalog.read_bytes() == before


def test_a_catalog_that_stands_still_is_an_error_and_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb_extension_postgres_scanner", reason="the extra `lake` is not installed")
    monkeypatch.setattr(attach, "PATIENCE", 2.0)  # the least that libpq takes
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "")
    monkeypatch.delenv("PGCONNECT_TIMEOUT")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"ducklake:postgres:host=127.0.0.1 port={silent.getsockname()[1]} user=u dbname=d"
        place = attach.Place(url, None, str(tmp_path))
        with pytest.raises(StoreError, match="timeout expired"):
            attach._attached_connection(place, read_only=True)
