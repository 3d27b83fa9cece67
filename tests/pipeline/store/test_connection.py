"""What goes through a connection."""

from __future__ import annotations

import gc
import threading
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from coaudit.pipeline.store.connection import ROW_GROUP, append, connect, insert_columns


def _leaves(before: int, most: int) -> bool:
    """Whether what Arrow holds falls below a size in bytes: the last batch may go some milliseconds late."""
    deadline = time.monotonic() + 10
    while pa.total_allocated_bytes() - before >= most:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def test_rows_leave_memory_as_they_are_stored_and_not_with_the_end_of_the_transaction() -> None:
    connection = duckdb.connect(config={"python_enable_replacements": False})
    connection.execute("CREATE TABLE said (number BIGINT, text VARCHAR, place VARCHAR)")
    connection.begin()
    gc.collect()  # what other tests left in circles goes now, and not in between
    before = pa.total_allocated_bytes()
    tables = [pa.table({"text": ["a" * 1000 + str(n)] * 500, "number": [n] * 500}) for n in range(4)]
    fields = tables[0].schema
    append(connection, "said", fields, (tables.pop().to_batches()[0] for _ in range(4)))
    assert _leaves(before, 10_000)  # of two million
    stored = "SELECT count(*), count(DISTINCT text), sum(number), count(place) FROM said"
    assert connection.execute(stored).fetchall() == [(2000, 4, 3000, 0)]
    kept = pa.table({"text": ["b"], "number": [7]})
    append(connection, "said", fields, kept.to_batches())
    append(connection, "said", fields, kept.to_batches())
    connection.commit()
    query = "SELECT count(*) FROM said WHERE text = 'b' AND number = 7 AND place IS NULL"
    assert connection.execute(query).fetchall() == [(2,)]


def test_rows_given_as_columns_leave_memory_as_they_are_stored() -> None:
    connection = duckdb.connect(config={"python_enable_replacements": False})
    connection.execute("CREATE TABLE said (number BIGINT, texts VARCHAR[])")
    connection.begin()
    gc.collect()  # what other tests left in circles goes now, and not in between
    before = pa.total_allocated_bytes()
    insert_columns(connection, "said", {"number": range(5000), "texts": [["a" * 200]] * 5000})
    # A list of many is no parameter: DuckDB takes it apart in Python, where few rows are parameters.
    insert_columns(connection, "said", {"number": [-1], "texts": [["b"] * 2000]})
    gc.collect()
    assert _leaves(before, 200_000)  # of a million
    stored = "SELECT count(*), sum(len(texts)), sum(number) FROM said"
    assert connection.execute(stored).fetchall() == [(5001, 7000, 5000 * 4999 // 2 - 1)]


def test_a_writer_waits_for_what_another_thread_of_its_process_reads(tmp_path: Path) -> None:
    """DuckDB refuses the one file in two ways at once by another error than that of another process."""
    file = str(tmp_path / "coaudit.duckdb")
    with closing(connect(file, read_only=False)) as writer:
        writer.execute("CREATE TABLE said AS SELECT 1 AS number")
    reader = connect(file, read_only=True)
    end = threading.Timer(0.3, reader.close)
    end.start()
    with closing(connect(file, read_only=False)) as writer:
        writer.execute("INSERT INTO said VALUES (2)")
        waiting = threading.Timer(0.3, writer.close)
        waiting.start()
        with closing(connect(file, read_only=False)) as other:
            assert other.execute("SELECT sum(number) FROM said").fetchone() == (3,)
    end.join()
    waiting.join()


def test_a_writer_spills_beside_its_file_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "workspace").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = tmp_path / "workspace" / "coaudit.duckdb"
    with closing(connect(str(file), read_only=False)) as writer:
        writer.execute("SET memory_limit = '30MB'")
        writer.execute("SET threads = 1")
        writer.execute("CREATE TEMP TABLE many AS SELECT range AS n, hash(range) AS h FROM range(3_000_000)")
        assert list((tmp_path / "workspace" / "coaudit.duckdb.tmp").iterdir())
        assert writer.execute("SELECT sum(n) FROM many").fetchone() == (3_000_000 * 2_999_999 // 2,)
    assert [path.name for path in (tmp_path / "workspace").iterdir()] == ["coaudit.duckdb"]
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_file_is_written_in_row_groups_that_take_half_the_memory(tmp_path: Path) -> None:
    """Whoever opens it without coaudit reads it as any other."""
    file = str(tmp_path / "it's coaudit.duckdb")
    with closing(connect(file, read_only=False)) as writer:
        writer.execute("CREATE TABLE said AS SELECT range AS number FROM range(150_000)")
    query = "SELECT max(count) FROM pragma_storage_info('said') WHERE segment_type <> 'VALIDITY'"
    with closing(duckdb.connect(file, read_only=True)) as reader:
        assert reader.execute(query).fetchone() == (ROW_GROUP,)
        assert reader.execute("SELECT sum(number) FROM said").fetchone() == (150_000 * 149_999 // 2,)
