"""Two verbs at once: what one writes while the other makes the database anew is in it afterwards."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coaudit.pipeline.audit import Audit
from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.ingest import forgetting, sources
from coaudit.pipeline.ingest.ready import heed_forgotten
from coaudit.pipeline.ingest.rebuild import catch_up, rebuild
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace, disk
from coaudit.pipeline.store.ledgers.sync import ledger_offsets, note_offsets
from coaudit.pipeline.store.tables import derived
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.cogym.generate import generate
from tests.conftest import Coaudit
from tests.pipeline.stores import made
from tests.pipeline.systems.cogym.folders import AGENT, USER, Log

TABLES = ("trajectories", "participants", "events", "units", "outcomes", "sources", "measured", "counted")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Workspace(tmp_path / "w"))


def take(store: Store, folder: Path) -> None:
    ingest(store, [folder], ReadOptions())


def lacks_sources(store: Store) -> bool:
    standing = store.standing()
    assert standing is not None
    return standing.lacks_sources


def keys(store: Store) -> list[str]:
    with store.reading() as connection:
        return [r[0] for r in connection.execute("SELECT native_id FROM trajectories ORDER BY 1").fetchall()]


def content(store: Store) -> dict[str, list[Any]]:
    with store.reading() as connection:
        return {
            table: sorted(map(str, connection.execute(f"SELECT * FROM {table}").fetchall()))
            for table in TABLES
        }


@pytest.mark.long
def test_a_rebuild_derives_once_after_all_is_read(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(tmp_path / "a", 6, 1)
    take(store, tmp_path / "a")
    before = content(store)
    of: list[Collection[str] | None] = []
    refresh = derived.refresh

    def noted(connection: Any, trajectories: Collection[str] | None = None) -> None:
        of.append(trajectories)
        refresh(connection, trajectories)

    monkeypatch.setattr(derived, "refresh", noted)
    rebuild(store)
    assert of == [None]
    assert content(store) == before


@pytest.mark.long
def test_what_is_ingested_during_a_rebuild_is_there_afterwards(tmp_path: Path, store: Store) -> None:
    generate(tmp_path / "a", 6, 1)
    generate(tmp_path / "b", 4, 2)
    take(store, tmp_path / "a")

    def meanwhile(what: str, done: int, total: int) -> None:
        if done == 3:
            take(Store(store.workspace), tmp_path / "b")

    rebuild(store, meanwhile)
    assert len(keys(store)) == 10
    assert not lacks_sources(store)
    before = content(store)
    rebuild(store)
    assert content(store) == before


@pytest.mark.long
def test_a_session_that_grew_during_a_rebuild_is_there_as_it_grew(tmp_path: Path, store: Store) -> None:
    log = Log().say(AGENT, "How much?")
    log.folder(tmp_path / "a" / "env_travel_planning_0")
    log.folder(tmp_path / "a" / "env_travel_planning_1")
    take(store, tmp_path / "a")

    def meanwhile(what: str, done: int, total: int) -> None:
        if done == 1:
            log.say(USER, "Little").folder(tmp_path / "a" / "env_travel_planning_0")
            take(Store(store.workspace), tmp_path / "a")

    rebuild(store, meanwhile)
    with store.reading() as connection:
        query = "SELECT n_events FROM trajectories WHERE native_id = 'env_travel_planning_0'"
        assert connection.execute(query).fetchone() == (len(log.records) + 1,)


@pytest.mark.long
def test_a_writer_waits_while_the_new_database_takes_its_place(tmp_path: Path, store: Store) -> None:
    generate(tmp_path / "a", 2, 1)
    generate(tmp_path / "b", 1, 2)
    take(store, tmp_path / "a")
    command = [  # what a second person runs
        sys.executable,
        "-P",
        "-m",
        "coaudit.pipeline",
        "--workspace",
        str(store.workspace.path),
        "ingest",
    ]
    with store.tables.exclude_writers():
        writer = subprocess.Popen([*command, str(tmp_path / "b")], stderr=subprocess.DEVNULL)
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(8)
    assert writer.wait() == 0
    assert len(content(store)["trajectories"]) == 3


@pytest.mark.long
def test_a_source_that_only_the_ledger_knows_is_read_by_the_next_command(
    tmp_path: Path, store: Store, coaudit: Coaudit, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(tmp_path / "a", 3, 1)
    store = Store(Workspace(workspace))
    take(store, tmp_path / "a")
    assert len(keys(store)) == 3
    generate(tmp_path / "b", 2, 2)

    def killed(point: str, path: Path) -> None:
        if point == "commit":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(disk, "fault", killed)
        take(store, tmp_path / "b")
    assert lacks_sources(store)
    assert len(coaudit("trajectory", "list", "--json").json["rows"]) == 5
    assert not lacks_sources(store)


@pytest.mark.long
def test_a_database_deleted_under_a_follower_comes_back_whole(
    tmp_path: Path, coaudit: Coaudit, workspace: Path
) -> None:
    generate(tmp_path / "a", 3, 1)
    generate(tmp_path / "b", 2, 2)
    store = Store(Workspace(workspace))
    take(store, tmp_path / "a")
    store.workspace.database.unlink()
    take(store, tmp_path / "b")
    assert len(keys(store)) == 2 and lacks_sources(store)
    assert len(coaudit("trajectory", "list", "--json").json["rows"]) == 5


@pytest.mark.long
def test_catching_up_twice_changes_nothing(tmp_path: Path, store: Store) -> None:
    generate(tmp_path / "a", 3, 1)
    take(store, tmp_path / "a")
    before = content(store)
    with store.writing() as connection:
        note_offsets(connection, dict.fromkeys(ledger_offsets(connection), 0))
    assert catch_up(store).unchanged == 3
    assert content(store) == before


def test_the_ledger_of_sources_is_read_from_any_line_with_its_number(tmp_path: Path, store: Store) -> None:
    generate(tmp_path / "a", 3, 1)
    take(store, tmp_path / "a")
    (file,) = store.workspace.sources.files()
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines, b"{broken\n"]))
    assert [json.loads(line)["path"] for line in lines] == [
        s.path for s in sources.read_ledger(store.workspace)[0]
    ]
    rest, broken = sources.read_ledger(store.workspace, {file.name: len(lines[0])})
    assert [s.path for s in rest] == [json.loads(line)["path"] for line in lines[1:]]
    assert broken[0].line == len(lines) + 1


@pytest.mark.long
def test_a_log_that_was_moved_is_not_gone(tmp_path: Path, store: Store) -> None:
    take(store, Log().say(AGENT, "Hello").folder(tmp_path / "before" / "env_1"))
    take(store, Log().say(AGENT, "Bye").folder(tmp_path / "before" / "env_2"))
    (tmp_path / "before" / "env_1").rename(tmp_path / "env_1")
    (tmp_path / "before" / "env_2").rename(tmp_path / "elsewhere")
    assert len(rebuild(store).quarantined) == 2, "nothing knows where they are"
    take(store, tmp_path / "env_1")
    (named,) = rebuild(store).quarantined
    assert named.source == str(tmp_path / "before" / "env_2")
    with store.reading() as connection:
        assert connection.execute("SELECT source FROM quarantine").fetchall() == [(named.source,)]


@pytest.mark.long
def test_a_session_that_two_logs_have_stays_in_the_condition_of_the_first_after_a_rebuild(
    tmp_path: Path, store: Store
) -> None:
    log, copy = tmp_path / "logs" / "late" / "chats.jsonl", tmp_path / "logs" / "early" / "chats.jsonl"
    for path in (log, copy):
        path.parent.mkdir(parents=True)
    messages = [{"role": "user", "content": "Book a table."}, {"role": "assistant", "content": "For two?"}]
    log.write_text(json.dumps({"id": "s1", "messages": messages[:1]}) + "\n")
    take(store, tmp_path / "logs")
    log.write_text(json.dumps({"id": "s1", "messages": messages}) + "\n")
    shutil.copyfile(log, copy)
    take(store, tmp_path / "logs")
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"id": "s2", "messages": messages}) + "\n")
    ingest(store, [other], ReadOptions(condition="another"))
    log.write_text(log.read_text() + json.dumps({"id": "s3", "messages": messages}) + "\n")
    take(store, tmp_path / "logs")
    before = content(store)
    rebuild(store)
    assert before == content(store)
    with store.reading() as connection:
        query = "SELECT native_id, condition, n_events FROM trajectories ORDER BY ALL"
        rows = connection.execute(query).fetchall()
    assert rows == [("s1", "late", 2), ("s2", "another", 2), ("s3", "late", 2)]


class Logs:
    """Four logs in two arms, and what happens to them and to the workspace that has them."""

    def __init__(self, folder: Path) -> None:
        self.store = made(folder / "w")
        self.paths = [folder / "logs" / arm / f"{name}.jsonl" for arm in "ab" for name in "xy"]
        self.lengths: dict[Path, dict[int, int]] = {path: {} for path in self.paths}

    def grow(self, log: int, session: int) -> None:
        """A session of a log goes on, or one begins that no log has; it says the same in all logs."""
        lengths = self.lengths[self.paths[log]]
        if session in lengths or not any(session in other for other in self.lengths.values()):
            lengths[session] = lengths.get(session, 0) + 1
            self._write(self.paths[log])

    def copy(self, log: int, other: int) -> None:
        """A log takes the place of another, where that has nothing that it lacks."""
        one, two = (self.lengths[self.paths[number]] for number in (log, other))
        if all(one.get(session, 0) >= length for session, length in two.items()):
            two.update(one)
            self._write(self.paths[other])

    def forget(self, log: int, _: int) -> None:
        try:
            forgetting.forget(self.store, str(self.paths[log]))
        except UsageError:
            return  # it is not there, or was forgotten before
        heed_forgotten(self.store)

    def undo(self, log: int, _: int) -> None:
        try:
            forgetting.undo(self.store, str(self.paths[log]))
        except UsageError:
            return
        heed_forgotten(self.store)

    def judge(self, _: int, __: int) -> None:
        Audit(self.store.workspace).judge("initiative")

    def content(self) -> dict[str, list[Any]]:
        with self.store.reading() as connection:
            query = "SELECT path, list_sort(trajectory_ids) FROM sources ORDER BY path"
            return content(self.store) | {"sources": connection.execute(query).fetchall()}

    def _write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            json.dumps({"id": f"s{session}", "messages": [self._message(n) for n in range(length)]})
            for session, length in self.lengths[path].items()
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        take(self.store, path.parents[1])

    @staticmethod
    def _message(number: int) -> dict[str, str]:
        return {"role": ("user", "assistant")[number % 2], "content": f"Shall I go on with {number}?"}


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("grow", "grow", "grow", "copy", "copy", "judge", "forget", "undo")),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    min_size=4,
    max_size=12,
)


@pytest.mark.long
@settings(max_examples=8, derandomize=True)
@given(EVENTS)
@example([("grow", 2, 1), ("copy", 2, 1), ("grow", 2, 1)])
@example([("grow", 2, 1), ("copy", 2, 1), ("forget", 2, 0), ("undo", 2, 0)])
@example([("grow", 2, 1), ("copy", 2, 1), ("forget", 2, 0)])
def test_whatever_happened_a_rebuild_has_the_same_tables(events: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        logs = Logs(Path(folder))
        logs.grow(0, 0)
        for name, log, other in events:
            getattr(logs, name)(log, other)
        before = logs.content()
        rebuild(logs.store)
        assert before == logs.content()


def test_a_session_over_which_another_was_written_is_named_where_a_rebuild_loses_it(
    tmp_path: Path, store: Store
) -> None:
    folder = tmp_path / "logs" / "env_1"
    take(store, Log().say(AGENT, "Hello").folder(folder))
    take(store, Log(description="Again").say(AGENT, "Bye").folder(folder))
    assert keys(store) == ["env_1", "env_1"]
    (named,) = rebuild(store).quarantined
    assert named.source == str(folder)
    assert named.reason == "no longer contains 1 session that it gave before; ratings are kept"
    assert keys(store) == ["env_1"]
    with store.reading() as connection:
        assert connection.execute("SELECT source FROM quarantine").fetchall() == [(named.source,)]
    assert rebuild(store).quarantined == []


def test_a_log_that_is_gone_is_in_the_quarantine_once(tmp_path: Path, store: Store) -> None:
    folder = Log().say(AGENT, "Hello").folder(tmp_path / "logs" / "env_1")
    take(store, folder)
    ingest(store, [folder], ReadOptions(tags={"arm": "a"}))  # another line of the ledger
    shutil.rmtree(folder)
    (named,) = rebuild(store).quarantined
    with store.reading() as connection:
        assert connection.execute("SELECT source FROM quarantine").fetchall() == [(named.source,)]


@pytest.mark.long
def test_a_session_that_was_written_over_is_named_beside_a_folder_that_is_gone_and_begins_its_name(
    tmp_path: Path, store: Store
) -> None:
    gone, folder = tmp_path / "logs" / "env_1", tmp_path / "logs" / "env_10"
    take(store, Log(description="First").say(AGENT, "Hello").folder(gone))
    take(store, Log().say(AGENT, "Hello").folder(folder))
    take(store, Log(description="Again").say(AGENT, "Bye").folder(folder))
    shutil.rmtree(gone)
    assert sorted(item.source for item in rebuild(store).quarantined) == [str(gone), str(folder)]


@pytest.mark.long
def test_a_damaged_line_of_recorded_scrapes_costs_itself_alone_and_is_named_until_it_is_gone(
    store: Store, tmp_path: Path
) -> None:
    take(store, Log().say(AGENT, "Hi?").say(USER, "Yes").finish().folder(tmp_path / "logs" / "a" / "one"))
    recording = store.workspace.raw / "serving" / "a.jsonl"
    recording.parent.mkdir(parents=True)
    good = json.dumps({"time": 1, "url": "http://gpu7", "text": "vllm:num_requests_running 5"})
    damaged = ['{"time": 3, "url": ["a"]}', '{"time": 3, "url": "\\ud800"}', "[" * 200_000]
    lines = [good, "\0\0", "[1]", '{"time": 1e300}', *damaged, '{"time": 2, "url": "cut']
    recording.write_text("\n".join(lines))
    for _ in range(2):
        wrong = rebuild(store).quarantined
        assert [(item.source, item.line) for item in wrong] == [(str(recording), n) for n in range(2, 8)]
        with store.reading() as connection:
            assert connection.execute("SELECT url, running FROM serving").fetchall() == [("http://gpu7", 5.0)]
            assert connection.execute("SELECT line FROM quarantine").fetchall() == [(n,) for n in range(2, 8)]
    recording.write_text(f"{good}\n")
    assert not rebuild(store).quarantined
    with store.reading() as connection:
        assert not connection.execute("FROM quarantine").fetchall()


def test_what_was_wrong_with_a_source_that_gave_nothing_is_still_said_after_a_rebuild(
    store: Store, tmp_path: Path
) -> None:
    take(store, Log().say(AGENT, "Hi?").say(USER, "Yes").finish().folder(tmp_path / "logs" / "a" / "one"))
    bad = tmp_path / "logs" / "b" / "two"
    bad.mkdir(parents=True)
    (bad / "event_log.jsonl").write_text("{cut")
    take(store, tmp_path / "logs")

    def wrong() -> list[Any]:
        with store.reading() as connection:
            query = "SELECT source, line, reason, read_from FROM quarantine"
            return list(connection.execute(query).fetchall())

    before = wrong()
    assert before
    for _ in range(2):
        rebuild(store)
        assert wrong() == before


@pytest.mark.long
def test_a_line_of_the_ledger_that_is_being_written_is_read_once_it_is_whole(
    tmp_path: Path, store: Store
) -> None:
    """A system call that writes much is seen half done by other processes."""
    for name, seed in (("a", 1), ("b", 2)):
        generate(tmp_path / name, 1, seed)
    take(store, tmp_path / "a")
    take(Store(Workspace(tmp_path / "other")), tmp_path / "b")
    (noted,) = (tmp_path / "other" / "sources").iterdir()
    line = noted.read_text()
    own = store.workspace.sources.folder / f"9{noted.name}"
    own.write_text(f'{{"path": "/gone", "content_hash": "h", "options": {{}}, "ingested": "x"}}\n{line[:50]}')
    catch_up(store)
    assert len(keys(store)) == 1
    with own.open("a") as file:
        file.write(line[50:])
    assert lacks_sources(store)
    assert not catch_up(store).quarantined
    assert len(keys(store)) == 2 and not lacks_sources(store)


@pytest.mark.long
def test_a_damaged_line_of_the_ledger_of_sources_is_in_the_quarantine_of_tables_made_anew(
    tmp_path: Path, store: Store, coaudit: Coaudit
) -> None:
    generate(tmp_path / "a", 2, 1)
    take(store, tmp_path / "a")
    (noted,) = store.workspace.sources.files()
    lines = noted.read_bytes().splitlines(keepends=True)
    noted.write_bytes(b"".join([lines[0], b"\x00 no JSON\n", *lines[1:]]))
    wrong = {"source": str(noted), "line": 2, "reason": "a line that was cut off; what it noted is not known"}
    for _ in range(2):
        store.workspace.database.unlink()
        told = coaudit("quarantine", "list", "--json", COAUDIT_WORKSPACE=str(store.workspace.path))
        assert json.loads(told.out)["rows"] == [wrong]
        assert not catch_up(store).quarantined
    rebuild(store)
    told = coaudit("quarantine", "list", "--json", COAUDIT_WORKSPACE=str(store.workspace.path))
    assert json.loads(told.out)["rows"] == [wrong]
