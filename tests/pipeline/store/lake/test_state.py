"""One state of a lake whose catalog lies in SQLite; test_machines.py has those in Postgres."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.cogym.generate import generate

pytestmark = pytest.mark.slow
SQLITE_WAITS = 5.0
"""Seconds after which a writer gives up, where nobody tells SQLite otherwise."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    generate(tmp_path / "logs", 2, 1)
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "coaudit.toml").write_text(f'store = "ducklake:sqlite:{tmp_path / "catalog.db"}"\n')
    made = Store(Workspace(folder))
    ingest(made, [tmp_path / "logs"], ReadOptions())
    yield made


def trajectories(store: Store) -> int:
    with store.reading() as connection:
        (count,) = connection.execute("SELECT count(*) FROM trajectories").fetchall()[0]
    return int(count)


def forget_all(store: Store) -> None:
    """As another machine does it, with a connection of its own."""
    with Store(Workspace(store.workspace.path)).writing() as connection:
        connection.execute("DELETE FROM trajectories")


def test_a_state_stays_what_it_was_and_keeps_no_writer_out(store: Store) -> None:
    with store.hold_state():
        assert trajectories(store) == 2
        forget_all(store)
        assert [trajectories(store), trajectories(store)] == [2, 2]
    assert trajectories(store) == 0


def test_a_lake_that_is_made_anew_is_another_to_a_process_that_lives_on(store: Store, tmp_path: Path) -> None:
    assert trajectories(store) == 2
    (tmp_path / "catalog.db").unlink()
    shutil.rmtree(store.workspace.path / "lake")
    assert not Store(store.workspace).has_tables()
    assert not (tmp_path / "catalog.db").exists(), "whoever looks makes no catalog"
    generate(tmp_path / "others", 3, 2)
    ingest(Store(store.workspace), [tmp_path / "others"], ReadOptions())
    assert trajectories(store) == 3


def test_a_writer_waits_until_a_long_look_at_a_state_ends(store: Store) -> None:
    looking, done = threading.Event(), threading.Event()

    def look() -> None:
        with store.hold_state(), store.reading() as connection:
            connection.execute("FROM trajectories").fetchall()
            looking.set()
            done.wait(SQLITE_WAITS + 1)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        assert looking.wait(60)
        forget_all(store)
    finally:
        done.set()
        reader.join()
    assert trajectories(store) == 0


def test_threads_of_one_process_look_at_once(store: Store) -> None:
    looks: list[int] = []

    def look() -> None:
        looks.extend(trajectories(Store(store.workspace)) for _ in range(5))

    threads = [threading.Thread(target=look, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "each waits for the other"
    assert looks == [2] * 20
