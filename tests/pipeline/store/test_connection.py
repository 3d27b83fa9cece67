"""What goes through a connection."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from coaudit.pipeline.store.connection import append, connect, insert_columns


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
    assert _leaves(before, 10_000)  # of a million
    stored = "SELECT count(*), sum(len(texts)), sum(number) FROM said"
    assert connection.execute(stored).fetchall() == [(5001, 7000, 5000 * 4999 // 2 - 1)]


CORES = "from coaudit.pipeline.store.connection import cores; print(cores())"


def test_a_batch_system_that_lends_one_core_is_heeded() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", CORES],
        env={**os.environ, "SLURM_CPUS_ON_NODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1\n"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no process to cores")
def test_a_process_that_is_bound_to_a_core_has_one() -> None:
    bind = f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); {CORES}"
    done = subprocess.run([sys.executable, "-P", "-c", bind], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_a_view_of_another_s_database_fetches_no_extension_and_asks_no_address(tmp_path: Path) -> None:
    file = str(tmp_path / "theirs.duckdb")
    with connect(file, read_only=False) as theirs:
        theirs.execute("CREATE TABLE kept AS SELECT 1 AS number")
    with connect(file, read_only=True) as connection:
        settings = (
            "current_setting('autoinstall_known_extensions'), current_setting('autoload_known_extensions')"
        )
        assert connection.execute(f"SELECT {settings}").fetchall() == [(False, False)]
        with pytest.raises(duckdb.Error, match="httpfs") as error:
            connection.execute("SELECT content FROM read_text('http://127.0.0.1:9/x')").fetchall()
    assert "automatically install" not in str(error.value)
