"""The store: derived from ledgers, short connections, honest about what it cannot do."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from coaudit.pipeline import codebooks
from coaudit.pipeline.errors import StoreError, WriteError
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store import connection as storing
from coaudit.pipeline.store.connection import Reading
from coaudit.pipeline.store.file import gate as gates
from coaudit.pipeline.store.file import turns as taking
from coaudit.pipeline.store.file.file import GATE
from coaudit.pipeline.store.file.gate import Gate
from coaudit.pipeline.store.file.turns import Turns, turns
from coaudit.pipeline.store.ledgers import ledger
from coaudit.schemas import Rating
from tests.conftest import Coaudit
from tests.pipeline.stores import copied, document, made, opened, rate, rows, take, verdict
from tests.pipeline.systems.cogym.folders import AGENT, USER, Log

NAME = "env_travel_planning_0"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A session with one agent's question (2), a human's answer (3), and a statement (4)."""
    folder = tmp_path_factory.mktemp("original")
    log = Log().say(AGENT, "May I book?").say(USER, "Yes").say(AGENT, "Done")
    found = opened(folder / "workspace")
    take(found, log.folder(folder / "logs" / NAME))
    found.sync()
    return found


@pytest.fixture
def store(original: Store, workspace: Path) -> Store:
    """A copy of the session's workspace."""
    return copied(original, workspace)


def test_a_state_that_all_sessions_show_is_stored_once(tmp_path: Path, store: Store) -> None:
    take(store, Log(description="Another").say(AGENT, "x").folder(tmp_path / "logs" / "env_b"))
    assert rows(store, "SELECT count(*) AS n FROM states") == [{"n": 1}]
    assert rows(store, "SELECT count(*) AS n FROM events WHERE states IS NOT NULL") == [{"n": 6}]


@pytest.mark.long
def test_ratings_of_a_unit_that_has_changed_are_reported_and_not_counted(
    tmp_path: Path, store: Store
) -> None:
    assert rate(store, [verdict(NAME, seq, "initiative", "yes") for seq in (2, 3)]).imported == 2
    ((key,),) = [tuple(row.values()) for row in rows(store, "SELECT id FROM trajectories")]
    version = codebooks.load("initiative").version
    late = [
        Rating.model_validate({**verdict(key, 4, "initiative", "no"), "rater_kind": "human", **changed})
        for changed in (
            {"unit_hash": "0" * 16, "codebook_version": version},
            {"rater": "old", "codebook_version": "000000000000"},
        )
    ]
    with ledger.RatingLedger(store.workspace.ratings) as file:
        file.append(late)
    assert rows(store, "SELECT event FROM counted_ratings ORDER BY 1") == [{"event": 2}, {"event": 3}]
    assert rows(store, "SELECT event, rater, reason FROM uncounted_ratings ORDER BY rater") == [
        {"event": 4, "rater": "ann", "reason": "its unit has changed since, or is none of this codebook"},
        {"event": 4, "rater": "old", "reason": "its codebook has changed since"},
    ]


@pytest.mark.long
def test_a_codebook_of_the_workspace_that_changes_leaves_its_ratings_uncounted(store: Store) -> None:
    own = store.workspace.codebooks
    own.mkdir()
    book = 'name = "tone"\ntitle = "Tone"\nunit = "utterance"\nlabels = ["kind", "rude"]\nquestion = "{}"\n'
    book += '[[codes]]\ncode = "tone"\nname = "Tone"\ndefinition = "How it is said."\n'
    (own / "tone.toml").write_text(book.format("Kind?"))
    assert rate(store, [verdict(NAME, 2, "tone", "kind")]).imported == 1
    assert rows(store, "SELECT reason FROM uncounted_ratings") == []
    (own / "tone.toml").write_text(book.format("Is it kind?"))
    assert rows(store, "SELECT reason FROM uncounted_ratings") == [
        {"reason": "its codebook has changed since"}
    ]
    (own / "tone.toml").unlink()
    assert rows(store, "SELECT reason FROM uncounted_ratings") == [{"reason": "its codebook is not known"}]


def test_the_last_word_of_a_rater_holds_and_a_rating_taken_back_is_gone(store: Store) -> None:
    rate(store, [verdict(NAME, 2, "initiative", "no", created="2026-01-01T00:00:00Z")])
    rate(store, [verdict(NAME, 2, "initiative", "yes", created="2026-01-02T00:00:00Z")])
    assert rows(store, "SELECT label FROM counted_ratings") == [{"label": "yes"}]
    back = verdict(NAME, 2, "initiative", "", created="2026-01-03T00:00:00Z", retracted=True)
    del back["label"]
    rate(store, [back])
    assert rows(store, "SELECT label FROM counted_ratings") == []


def _rating(event: int) -> Rating:
    return Rating(
        trajectory="t", event=event, codebook="initiative", code="c", rater="r", rater_kind="llm", label="yes"
    )


def test_a_rating_that_was_cut_off_by_a_kill_never_counted_and_costs_only_itself(store: Store) -> None:
    rate(store, [verdict(NAME, 2, "initiative", "no")])
    with ledger.RatingLedger(store.workspace.ratings) as file:
        file.append([_rating(1)])
    with file.path.open("a") as cut:
        cut.write('{"trajectory": "t", "event": 2, "codebo')
    assert rows(store, "SELECT count(*) AS n FROM ratings") == [{"n": 2}]
    assert not store.is_behind(), "half a line is nothing to wait for"
    with file.path.open("a") as cut:
        cut.write("\n" + _rating(3).model_dump_json() + "\n")
    assert rows(store, "SELECT count(*) AS n FROM ratings") == [{"n": 3}]
    (broken,) = rows(store, "SELECT line, reason, read_from FROM quarantine")
    assert (broken["line"], broken["read_from"]) == (2, file.path.name)


def test_a_blank_line_at_the_end_of_a_ledger_is_nothing_to_wait_for(store: Store) -> None:
    with ledger.RatingLedger(store.workspace.ratings) as file:
        file.append([_rating(1)])
        file.write_lines([b"", b"  "])
    assert rows(store, "SELECT count(*) AS n FROM ratings") == [{"n": 1}]
    assert not store.is_behind()


def test_ratings_written_by_several_at_once_are_all_there(store: Store) -> None:
    def write(first: int) -> None:
        with ledger.RatingLedger(store.workspace.ratings) as file:
            for event in range(first, first + 50):
                file.append([_rating(event)])

    threads = [threading.Thread(target=write, args=(100 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(store, "SELECT count(DISTINCT event) AS n FROM ratings") == [{"n": 200}]


@pytest.mark.long
def test_many_short_files_are_brought_in_by_the_statements_of_a_few_and_each_line_keeps_its_place(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store.workspace.ratings
    folder.mkdir(exist_ok=True)
    asked: list[str] = []

    def counted(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()) -> Any:
        asked.append(query)
        return execute(connection, query, parameters)

    def bring(numbers: Iterable[int]) -> int:
        for number in numbers:
            lines = [
                _rating(10 * number).model_dump_json(),
                "no rating",
                _rating(10 * number + 2).model_dump_json(),
            ]
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"2026{number:04d}.jsonl").write_text(text + '{"cut": ')
        asked.clear()
        rows(store, "SELECT 1 FROM ratings")
        return len(asked)

    execute = storing.execute
    monkeypatch.setattr(storing, "execute", counted)
    assert bring(range(100, 300)) <= bring(range(10)) + 5
    with (folder / "20260007.jsonl").open("a") as file:
        file.write("}\n" + _rating(79).model_dump_json() + "\n")
    wanted = [
        (f"2026{n:04d}.jsonl", line, 10 * n + line - 1)
        for n in (*range(10), *range(100, 300))
        for line in (1, 3)
    ]
    wanted.append(("20260007.jsonl", 5, 79))
    stored = rows(store, "SELECT ledger, line, event FROM ratings ORDER BY ALL")
    assert [tuple(row.values()) for row in stored] == sorted(wanted)
    broken = rows(store, "SELECT read_from, line FROM quarantine ORDER BY ALL")
    lines = [(name, 2) for name, line, _ in wanted if line == 1] + [("20260007.jsonl", 4)]
    assert [tuple(row.values()) for row in broken] == sorted(lines)


def test_a_ledger_to_which_nothing_was_written_leaves_no_file(store: Store) -> None:
    with ledger.RatingLedger(store.workspace.ratings) as file:
        pass
    assert not file.path.exists()


HOLD = """
import sys, time
from pathlib import Path
from coaudit.pipeline.store.database import Store
from coaudit.pipeline.store.workspace import Workspace
with Store(Workspace(Path(sys.argv[1]))).writing() as connection:
    connection.execute("DELETE FROM states")
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def _held(store: Store, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-c", HOLD, str(store.workspace.path), str(seconds)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holder.stdout and holder.stdout.readline() == "held\n"
    return holder


@pytest.mark.long
def test_a_reader_waits_for_a_writer_in_another_process(store: Store) -> None:
    with _held(store, 0.5):
        assert rows(store, "SELECT count(*) AS n FROM states") == [{"n": 0}]


def test_threads_of_one_process_wait_for_each_other(store: Store) -> None:
    writing = threading.Event()

    def write(state: str) -> None:
        with store.writing() as connection:
            connection.execute("INSERT INTO states VALUES (?, '{}')", [state])
            writing.set()
            time.sleep(0.2)

    before = rows(store, "SELECT count(*) AS n FROM states")[0]["n"]
    with ThreadPoolExecutor() as pool:
        done = [pool.submit(write, state) for state in ("one", "two")]
        writing.wait()
        read = pool.submit(rows, store, "SELECT count(*) AS n FROM states")
        assert read.result()[0]["n"] > before
        assert [one.result() for one in done] == [None, None]
    assert rows(store, "SELECT count(*) AS n FROM states")[0]["n"] == before + 2


@pytest.mark.parametrize("held", ["reading", "writing"])
def test_a_connection_of_this_process_that_stays_open_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    """A thread that waited for what another one wrote, which waited for it, waited for good."""
    monkeypatch.setattr(storing, "PATIENCE", 0.2)

    def write() -> None:
        with store.writing():
            pass

    said = "A connection of this process may be open"
    with ThreadPoolExecutor() as pool, getattr(store, held)(), pytest.raises(StoreError, match=said):
        pool.submit(write).result(timeout=5)


def test_a_thread_writes_among_others_that_read_all_the_time(store: Store) -> None:
    """Of two that read one after another it never had a turn, and failed after half a minute."""
    over = threading.Event()
    began = threading.Barrier(3)

    def read() -> None:
        began.wait()
        while not over.is_set():
            with store.reading():
                time.sleep(0.05)

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read) for _ in range(2)]
        began.wait()
        began_at = time.monotonic()
        try:
            for _ in range(3):
                with store.writing():
                    pass
                assert time.monotonic() - began_at < 5
        finally:
            over.set()
        assert [one.result() for one in readers] == [None, None]


READ = """
import sys, time
from pathlib import Path
from coaudit.pipeline.store.database import Store
from coaudit.pipeline.store.workspace import Workspace
store = Store(Workspace(Path(sys.argv[1])))
while True:
    with store.reading():
        print("reads", flush=True)
        time.sleep(0.3)
"""


def test_a_process_writes_among_others_that_read_all_the_time(store: Store) -> None:
    """Of four that read one after another it wrote once in 14 s, and failed after half a minute."""
    command = [sys.executable, "-P", "-c", READ, str(store.workspace.path)]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    try:
        for reader in readers:
            assert reader.stdout and reader.stdout.readline() == "reads\n"
        began = time.monotonic()
        for _ in range(4):
            with store.writing() as connection:
                connection.execute("DELETE FROM states")
        assert time.monotonic() - began < 8
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()


def test_who_waits_to_write_and_is_killed_keeps_nobody_out(store: Store) -> None:
    with store.reading(), ThreadPoolExecutor() as pool, _waiting_to_write(store) as waiting:
        reading = pool.submit(rows, store, "SELECT count(*) AS n FROM states")
        time.sleep(0.5)
        assert not reading.done()
        waiting.kill()
        waiting.wait()
        assert reading.result(timeout=2) == [{"n": 1}]


def test_who_let_a_writer_go_first_in_vain_does_not_wait_anew_at_each_open(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a long report that a writer waited for, each open of a dashboard's page took ten seconds."""
    monkeypatch.setattr(gates, "COURTESY", 1.0)
    with store.reading(), _waiting_to_write(store), ThreadPoolExecutor() as pool:
        began = time.monotonic()
        for _ in range(4):
            pool.submit(rows, store, "SELECT 1").result()
        assert 1 <= time.monotonic() - began < 2


def test_a_thread_waits_once_for_another_that_waits_to_write_and_not_at_the_gate_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited two seconds for the other thread, and ten more at the gate that this one kept closed."""
    monkeypatch.setattr(taking, "COURTESY", 0.2)
    path = store.workspace.path / "locks" / GATE

    def write() -> None:
        with store.writing():
            pass

    with ThreadPoolExecutor() as pool:
        with store.reading():
            writer = pool.submit(write)
            _until(lambda: _is_closed(Gate(path)))
            began = time.monotonic()
            pool.submit(rows, store, "SELECT 1").result()
            assert time.monotonic() - began < 2
        writer.result()


def test_a_gate_is_there_for_whoever_may_write_and_where_it_cannot_be_all_is_written_without(
    store: Store,
) -> None:
    """Its file was its maker's alone, and nobody else of a group that shares a workspace could write."""
    with store.writing():
        pass
    (gate, *others) = sorted((store.workspace.path / "locks").iterdir(), key=lambda path: path.name != GATE)
    assert {gate.stat().st_mode} == {path.stat().st_mode for path in others}
    gate.unlink()
    gate.mkdir()
    with store.writing() as connection:
        connection.execute("DELETE FROM states")
    assert rows(store, "SELECT count(*) AS n FROM states") == [{"n": 0}]


def _until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def _waiting_to_write(store: Store) -> Iterator[subprocess.Popen[str]]:
    """Another process that waits until it may write."""
    command = [sys.executable, "-P", "-c", HOLD, str(store.workspace.path), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        try:
            _until(lambda: _is_closed(Gate(store.workspace.path / "locks" / GATE)))
            yield waiting
        finally:
            waiting.kill()


def _is_closed(gate: Gate) -> bool:
    if not gate.path.exists():
        return False
    with gate.path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_thread_that_reads_may_read_more_while_another_waits_to_write(store: Store) -> None:
    def write() -> None:
        with store.writing():
            pass

    with ThreadPoolExecutor() as pool, store.reading():
        waiting = pool.submit(write)
        time.sleep(0.2)
        began = time.monotonic()
        assert rows(store, "SELECT count(*) AS n FROM states") == [{"n": 1}]
        assert time.monotonic() - began < 1
        assert not waiting.done()
    assert waiting.result() is None


@pytest.mark.parametrize(("first", "then"), [("reading", "writing"), ("writing", "reading")])
def test_a_thread_does_not_wait_for_itself(store: Store, first: str, then: str) -> None:
    began = time.monotonic()
    with getattr(store, first)(), pytest.raises(StoreError, match=rf"this thread .*{first}"):
        getattr(store, then)().__enter__()
    assert time.monotonic() - began < 2
    with getattr(store, then)():
        pass


FORKED = """
import os, signal, sys, threading
from pathlib import Path
from coaudit.pipeline.store.database import Store
from coaudit.pipeline.store.file.turns import turns
from coaudit.pipeline.store.workspace import Workspace
store = Store(Workspace(Path(sys.argv[1])))
held, over = threading.Event(), threading.Event()
def hold():
    with turns(store.tables.path).writing(store.tables.path):
        held.set()
        over.wait()
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(5)
    with store.writing():
        os._exit(7)
over.set()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.long
def test_a_fork_waits_for_no_thread_of_its_parent(store: Store) -> None:
    """It has none of them, and what one of them held would never be given back."""
    command = [sys.executable, "-P", "-W", "ignore", "-c", FORKED, str(store.workspace.path)]
    assert subprocess.run(command, check=False).returncode == 7


def test_threads_that_come_first_to_a_file_share_its_turns(tmp_path: Path) -> None:
    """Of a hundred times that eight came at once, three had several locks."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for number in range(200):
                together = threading.Barrier(8)
                path = tmp_path / f"{number}.duckdb"

                def first(together: threading.Barrier = together, path: Path = path) -> Turns:
                    together.wait()
                    return turns(path)

                assert len({one.result() for one in [pool.submit(first) for _ in range(8)]}) == 1
    finally:
        sys.setswitchinterval(interval)


def test_a_store_that_is_held_for_too_long_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "PATIENCE", 0.2)
    with _held(store, 60) as holder:
        try:
            with pytest.raises(StoreError, match="another process held the store"):
                rows(store, "SELECT 1")
        finally:
            holder.kill()


def test_what_fails_within_a_transaction_is_not_stored_at_all(store: Store) -> None:
    before = document(store)
    with pytest.raises(ValueError, match="halfway"), store.writing() as connection:
        connection.execute("DELETE FROM trajectories")
        raise ValueError("halfway")
    assert document(store) == before


def test_a_database_of_a_newer_coaudit_is_refused_with_what_to_do(store: Store, coaudit: Coaudit) -> None:
    with store.writing() as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    with pytest.raises(StoreError, match=r"written by a newer coaudit \(tables 99, this one reads \d+\)"):
        rows(store, "SELECT 1")
    done = coaudit("metrics", "--json", status=1)
    assert (done.out, done.err.count("\n")) == ("", 1)


def test_tables_whose_version_is_damaged_name_it_and_are_made_anew(store: Store, coaudit: Coaudit) -> None:
    before = document(store)
    with store.writing() as connection:
        connection.execute("UPDATE meta SET value = 'abc' WHERE key = 'version'")
    done = coaudit("metrics", status=1)
    assert "coaudit.duckdb: the tables' version is not a number" in done.err
    assert "'abc'); run `coaudit rebuild`" in done.err
    coaudit("rebuild")
    assert document(store) == before


def test_the_oldest_and_the_newest_duckdb_that_are_admitted_make_one_kind_of_file(store: Store) -> None:
    """With DuckDB 2 alone it would be of another kind, which 1.5 cannot open: see `make test-newest`."""
    (kind,) = rows(
        store, "SELECT tags['storage_version'] AS of FROM duckdb_databases() WHERE path IS NOT NULL"
    )
    assert kind == {"of": "v1.3.0+"}


def test_a_source_ledger_of_a_newer_coaudit_is_refused_by_line(store: Store) -> None:
    with store.workspace.sources.files()[-1].open("a") as file:
        file.write('{"path": "/x", "content_hash": "0", "options": {}, "ingested": "now", "colour": "red"}\n')
    with pytest.raises(StoreError, match=r"sources/.*\.jsonl:2: written by a newer coaudit"):
        rebuild(store)


@pytest.mark.long
@pytest.mark.parametrize("content", [b"", b"this is no database" * 100])
def test_a_database_that_is_none_is_named_and_a_rebuild_makes_a_new_one(store: Store, content: bytes) -> None:
    before = document(store)
    store.workspace.database.write_bytes(content)
    if content:
        with pytest.raises(StoreError, match=r"cannot open the store.*`coaudit rebuild`"):
            rows(store, "SELECT 1")
    rebuild(store)
    assert document(store) == before


def test_what_the_system_refuses_no_rebuild_would_mend(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"new\.duckdb: cannot open the store: .*: File too large$"):
            storing.connect(str(tmp_path / "new.duckdb"), read_only=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_database_with_a_damaged_block_is_named_and_a_rebuild_makes_a_new_one(
    tmp_path: Path, store: Store
) -> None:
    text = Random(0).randbytes(400_000).hex()
    take(store, Log().say(AGENT, text).folder(tmp_path / "logs" / "env_long"))
    path, before = store.workspace.database, document(store)
    whole, refusals = path.read_bytes(), set[str]()
    for block in range(3 * 4096, len(whole), 1 << 18):
        path.write_bytes(whole[: block + 5000] + bytes(64) + whole[block + 5064 :])
        for open_connection in (store.reading, store.writing):
            refusals.add(_refusal(open_connection))
    assert refusals - {""} == {
        f"{path}: cannot open the store: …; `coaudit rebuild` makes a new one",
        f"{path}: the database is damaged: …; `coaudit rebuild` makes a new one",
    }
    rebuild(store)
    assert document(store) == before


def test_a_checkpoint_that_finds_the_disk_full_is_a_write_that_is_refused(store: Store) -> None:
    full = duckdb.FatalException("FATAL Error: Failed to create checkpoint: No space left on device")
    with pytest.raises(WriteError, match=r"coaudit\.duckdb: cannot store: .*No space left"), store.writing():
        raise full


def test_another_file_that_is_cut_off_does_not_make_the_database_damaged(
    tmp_path: Path, store: Store
) -> None:
    """A query of one's own may name any Parquet file; a rebuild would not mend it."""
    path = tmp_path / "labels.parquet"
    with store.reading() as connection:
        connection.execute(f"COPY (SELECT random()::VARCHAR FROM range(20000)) TO '{path}'")
    path.write_bytes(path.read_bytes()[:1000] + path.read_bytes()[-500:])
    for open_connection in (store.reading, store.writing):
        with pytest.raises((duckdb.Error, WriteError)) as refusal, open_connection() as connection:
            connection.execute(f"SELECT * FROM '{path}'").fetchall()
        assert "labels.parquet" in str(refusal.value) and "rebuild" not in str(refusal.value)


def _refusal(open_connection: Reading) -> str:
    """Why not all tables can be read, without DuckDB's checksums; empty where they can."""
    try:
        with open_connection() as connection:
            for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                connection.execute(f"FROM {table}").fetchall()
    except StoreError as error:
        return re.sub(r"(IO Error: )?Corrupt database file.*(?=;)", "…", str(error))
    return ""


def test_a_database_from_before_its_first_transaction_is_filled(store: Store) -> None:
    store.workspace.database.unlink()
    duckdb.connect(str(store.workspace.database)).close()
    assert not store.has_tables()
    assert rows(store, "SELECT count(*) AS n FROM trajectories") == [{"n": 0}]
    assert store.has_tables()


@pytest.mark.long
def test_a_command_makes_a_database_anew_that_was_deleted_or_never_filled(
    store: Store, coaudit: Coaudit
) -> None:
    for remains in (False, True):
        store.workspace.database.unlink()
        if remains:
            duckdb.connect(str(store.workspace.database)).close()
        done = coaudit("trajectory", "list", "--json")
        assert [row["native_id"] for row in done.json["rows"]] == [NAME]
        assert "rebuilding it from the ledgers" in done.err


def test_a_place_without_a_workspace_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no workspace here; `coaudit ingest PATH` makes one"):
        rows(opened(tmp_path / "nowhere"), "SELECT 1")
    assert not (tmp_path / "nowhere").exists()


def test_a_workspace_where_a_file_lies_or_cannot_be_made_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = Log().folder(tmp_path / NAME)
    for place in (tmp_path / "file", tmp_path / "file" / "workspace"):
        with pytest.raises(StoreError, match="cannot make the workspace"):
            take(opened(place), folder)


READ_ONLY = "mount --bind {0} {0} && mount -o remount,ro,bind {0} && exec {1} -P -m coaudit.pipeline {2}"


def _read_only(store: Store, arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the workspace on a read-only mount, which binds root as well."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount anything here")
    script = READ_ONLY.format(store.workspace.path, sys.executable, arguments)
    environment = {**os.environ, "COAUDIT_WORKSPACE": str(store.workspace.path)}
    command = ["unshare", "-rm", "sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.long
def test_a_read_only_workspace_can_be_read_and_says_that_it_cannot_be_written(
    tmp_path: Path, store: Store
) -> None:
    other = Log(description="Another").folder(tmp_path / "logs" / "env_b")
    done = _read_only(store, "trajectory list --json")
    assert (done.returncode, NAME in done.stdout) == (0, True), done.stderr
    done = _read_only(store, f"ingest {other}")
    assert (done.returncode, done.stderr) == (
        1,
        f"coaudit: {store.workspace.path}: the workspace is read-only\n",
    )
    store.workspace.database.unlink()
    done = _read_only(store, "metrics")
    assert (done.returncode, "read-only" in done.stderr, "Traceback" in done.stderr) == (1, True, False)
    empty = opened(tmp_path / "empty")
    empty.workspace.path.mkdir()
    done = _read_only(empty, f"ingest {other}")
    assert (done.returncode, done.stderr) == (
        1,
        f"coaudit: {empty.workspace.path}: the workspace is read-only\n",
    )


@pytest.mark.long
def test_a_read_only_workspace_whose_ledgers_hold_more_says_so_and_shows_what_it_has(
    tmp_path: Path, store: Store
) -> None:
    """Its figures were told without a word, or, where a source was missing, no figures at all."""
    behind = f"{store.tables}: behind the ledgers, and read-only for you"
    assert _read_only(store, "metrics --json").stderr == ""
    with store.workspace.new_ratings() as ledger:
        ledger.append([_rating(event=2)])
    done = _read_only(store, "metrics --json")
    assert (done.returncode, done.stderr.count(behind)) == (0, 1), done.stderr
    store.sync()
    assert _read_only(store, "metrics --json").stderr == ""
    other = made(tmp_path / "other")
    take(other, Log(description="Another").folder(tmp_path / "logs" / "env_b"))
    (added,) = other.workspace.sources.folder.iterdir()
    added.rename(store.workspace.sources.folder / added.name)
    done = _read_only(store, "trajectory list --json")
    assert (done.returncode, done.stderr.count(behind), NAME in done.stdout) == (0, 1, True), done.stderr


def test_a_damaged_sample_or_codebook_is_named_and_everything_else_goes_on(
    coaudit: Coaudit, original: Store, workspace: Path
) -> None:
    store = copied(original, workspace)
    (workspace / "codebooks").mkdir()
    (workspace / "codebooks" / "mine.toml").write_text("name = 'half")
    (workspace / "samples").mkdir()
    (workspace / "samples" / "cut.jsonl").write_text('{"name": "cu')
    done = coaudit("metrics", "--json")
    assert done.json["rows"]
    for name in ("mine.toml", "cut.jsonl:1"):
        assert f"{name}: " in done.err and "set aside" in done.err
    assert len(coaudit("quarantine", "list", "--json").json["rows"]) == 2
    (workspace / "codebooks" / "mine.toml").unlink()
    (workspace / "samples" / "cut.jsonl").unlink()
    assert (there := store.standing()) and there.notes == ()


def test_what_is_read_while_the_store_is_held_is_of_one_state(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    with store.hold_state():
        for _ in range(2):  # each reading has temporary tables of its own
            with store.reading() as connection:
                connection.execute("CREATE TEMP TABLE mine AS SELECT 1 AS x")
        with pytest.raises(StoreError), store.writing():
            pass
    with store.writing() as connection:
        assert connection.execute("SELECT count(*) FROM trajectories").fetchone() == (0,)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_in_place_of_the_database_is_named_and_not_waited_for(
    workspace: Path, make: Callable[[Path], None]
) -> None:
    workspace.mkdir()
    make(workspace / "coaudit.duckdb")
    store = Store(Workspace(workspace))
    for connect in (store.reading, store.writing):
        with pytest.raises(StoreError, match=r"coaudit\.duckdb: no file, but a folder, pipe or"), connect():
            pass


def test_who_may_not_write_is_told_who_makes_old_or_missing_tables_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were told to run a command that they can't."""
    with store.writing() as connection:
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'version'")
    with pytest.raises(StoreError, match=r"\(tables 1\); run `coaudit rebuild`"), store.reading():
        pass
    monkeypatch.setattr(Workspace, "is_writable", False)
    other = r"who may write to the workspace runs `coaudit rebuild`"
    with pytest.raises(StoreError, match=rf"\(tables 1\); {other}"), store.reading():
        pass
    store.workspace.database.unlink()
    with pytest.raises(StoreError, match=rf"has no database; {other}"):
        store.sync()
