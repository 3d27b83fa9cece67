"""Folders that grow: what is stored is what a fresh ingest of the end state gives."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pyarrow as pa
import pytest

from coaudit.pipeline.follow import sink, stdin
from coaudit.pipeline.follow.sink import Sink
from coaudit.pipeline.follow.tail import Tail
from coaudit.pipeline.ingest import discover, sources
from coaudit.pipeline.ingest.forgetting import forget
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.ingest.sources import Place
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions, registry
from coaudit.schemas import Quarantined, Trajectory
from tests.conftest import Coaudit
from tests.hostile import CORPUS, sessions
from tests.pipeline.follow.conftest import Following
from tests.pipeline.follow.emulator import AGENT, USER, Env, play
from tests.pipeline.systems.cogym.folders import Log
from tests.shared import ROOT

NAME = "env_travel_planning_0"


def silent(channel: str, payload: str) -> None:
    """A Redis that nobody listens to."""


@pytest.fixture
def tail(workspace: Path, tmp_path: Path) -> Tail:
    (tmp_path / "results").mkdir()
    found = Tail(Sink(Store(Workspace(workspace))), ReadOptions())
    found.roots.append(tmp_path / "results")
    return found


def look(tail: Tail) -> dict[str, Trajectory]:
    """Look once, store, and read back; by native_id."""
    tail.look()
    tail.sink.flush()
    return stored(tail.sink.store)


def stored(store: Store) -> dict[str, Trajectory]:
    with store.reading() as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM trajectories ORDER BY id").fetchall()]
        return {found.id: found for found in store.load(connection, ids, states=True)}


def fresh(results: Path, other: Path) -> dict[str, Trajectory]:
    """What a first ingest of the folders gives."""
    store = Store(Workspace(other))
    ingest(store, [results], ReadOptions())
    return stored(store)


def quarantined(store: Store) -> list[tuple[str, int]]:
    with store.reading() as connection:
        return [
            (str(s), int(n)) for s, n in connection.execute("SELECT source, line FROM quarantine").fetchall()
        ]


def test_a_session_grows_in_the_store_as_its_log_does(tail: Tail, tmp_path: Path) -> None:
    results = tmp_path / "results"
    counts = []
    for _ in play(Env(NAME, silent, results), seed=1, steps=6):
        (found,) = look(tail).values()
        counts.append(len(found.events))
    assert counts == sorted(counts) and counts[-1] > counts[0]
    assert look(tail) == fresh(results, tmp_path / "other")


def test_half_a_line_waits_for_its_other_half_and_is_no_error(tail: Tail, tmp_path: Path) -> None:
    results = tmp_path / "results"
    env = Env(NAME, silent, results)
    env.start()
    log = results / NAME / "event_log.jsonl"
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Hello)")
    whole = log.read_bytes()
    log.write_bytes(whole[:-40])
    (found,) = look(tail).values()
    assert len(found.events) == 2
    log.write_bytes(whole)
    (found,) = look(tail).values()
    assert len(found.events) == 3
    assert quarantined(tail.sink.store) == []


def test_half_a_line_that_stays_half_is_quarantined_at_the_end(tail: Tail, tmp_path: Path) -> None:
    results = tmp_path / "results"
    Env(NAME, silent, results).start()
    log = results / NAME / "event_log.jsonl"
    with log.open("a") as file:
        file.write('{"role": "us')
    look(tail)
    tail.settle()
    tail.sink.flush()
    assert quarantined(tail.sink.store) == [(str(log), 2)]


def test_what_was_quarantined_is_taken_out_once_it_can_be_read(tail: Tail, tmp_path: Path) -> None:
    results = tmp_path / "results"
    env = Env(NAME, silent, results)
    env.start()
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Hello)")
    log = results / NAME / "event_log.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole[:-40])
    look(tail)
    tail.settle()
    tail.sink.flush()
    assert (quarantined(tail.sink.store), tail.sink.quarantined) == ([(str(log), 2)], 1)
    (again,) = ingest(tail.sink.store, [results], ReadOptions()).quarantined
    assert (again.source, again.line) == (str(log), 2), "it is said as long as it is so"
    log.write_bytes(whole)
    look(tail)
    tail.settle()
    tail.sink.flush()
    assert (quarantined(tail.sink.store), tail.sink.quarantined) == ([], 0)


def test_a_rerun_in_the_same_folder_is_a_trajectory_of_its_own(tail: Tail, tmp_path: Path) -> None:
    results = tmp_path / "results"
    env = Env(NAME, silent, results)
    env.start()
    env.step(USER, "FINISH()")
    assert len(look(tail)) == 1
    again = Env(NAME, silent, results, clock=env.clock + 3600)
    again.start()
    found = look(tail)
    assert sorted(len(t.events) for t in found.values()) == [2, 3]


def test_a_file_that_is_replaced_is_read_again(tail: Tail, tmp_path: Path) -> None:
    results = tmp_path / "results"
    env = Env(NAME, silent, results)
    env.start()
    look(tail)
    log = results / NAME / "event_log.jsonl"
    before = log.stat()
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Hello)")
    shutil.copy(log, log.with_suffix(".new"))
    os.replace(log.with_suffix(".new"), log)
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    (found,) = look(tail).values()
    assert len(found.events) == 3


def test_what_lies_beside_a_source_is_looked_at_too(tail: Tail, tmp_path: Path) -> None:
    whole = json.loads((ROOT / "data/coblock/record_25.json").read_text())
    first = whole | {"id": 24, "record": {**whole["record"], "actionHistory": []}}
    (tmp_path / "results/24.json").write_text(json.dumps(first))
    assert [game.copy_of for game in look(tail).values()] == [None]
    (tmp_path / "results/25.json").write_text(json.dumps(whole))
    found = look(tail)
    assert {game.native_id: game.copy_of for game in found.values()} == {"24": "25", "25": None}
    assert found == fresh(tmp_path / "results", tmp_path / "other")
    (tmp_path / "results/25.json").unlink()
    assert {game.native_id: game.copy_of for game in look(tail).values()} == {"24": None, "25": None}


def test_a_log_that_is_a_link_is_followed_as_it_grows(tail: Tail, tmp_path: Path) -> None:
    log = Log().say(USER, "Hi")
    kept = log.folder(tmp_path / "kept" / NAME) / "event_log.jsonl"
    folder = tmp_path / "results" / NAME
    folder.mkdir()
    (folder / "event_log.jsonl").symlink_to(kept)
    assert [len(one.events) for one in look(tail).values()] == [3]
    log.say(USER, "Are you there?").folder(tmp_path / "kept" / NAME)
    for watched in tail.watched_sources.values():
        watched.cost = 0.0  # what took long to read, as the first log does, is read less often
    assert [len(one.events) for one in look(tail).values()] == [4]


def test_our_own_lines_are_followed_as_they_are_appended(tail: Tail, tmp_path: Path) -> None:
    path = tmp_path / "results" / "own.jsonl"
    people = [{"name": "a", "kind": "agent"}, {"name": "h", "kind": "human"}]
    path.write_text(json.dumps({"type": "trajectory", "native_id": "x", "participants": people}) + "\n")
    look(tail)
    with path.open("a") as file:
        file.write('{"type": "event", "trajectory": "x", "actor": "h", "kind": "message", "text": "Hi"}\n')
    (found,) = look(tail).values()
    assert [e.text for e in found.events] == ["Hi"]


def talk(native: str, *texts: str, log: Path, more: bool = False) -> Path:
    """Our own lines of a session in which these texts are said."""
    people = [{"name": "a", "kind": "agent"}, {"name": "h", "kind": "human"}]
    lines: list[dict[str, object]] = []
    if not more:
        lines.append({"type": "trajectory", "native_id": native, "participants": people})
    lines += [
        {"type": "event", "trajectory": native, "actor": "ha"[n % 2], "kind": "message", "text": text}
        for n, text in enumerate(texts)
    ]
    with log.open("a" if more else "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return log


def test_a_log_that_was_mended_is_the_session_mended(tail: Tail, tmp_path: Path) -> None:
    log = talk("x", "one", "two", "three", log=tmp_path / "results" / "own.jsonl")
    look(tail)
    talk("x", "one", "2", "three", log=log)
    assert look(tail) == fresh(log, tmp_path / "other")


def test_an_event_that_comes_late_is_one_of_its_session(tail: Tail, tmp_path: Path) -> None:
    log = talk("x", log=tmp_path / "results" / "own.jsonl")
    for seq in (0, 2, 1, 3):
        line = {"type": "event", "trajectory": "x", "actor": "h", "kind": "wait", "seq": seq}
        log.write_text(f"{log.read_text()}{json.dumps(line)}\n")
        look(tail)
    assert look(tail) == fresh(log, tmp_path / "other")


@pytest.mark.parametrize("looks", ["one", "a look each", "a look a line"])
def test_two_logs_that_tell_a_session_on_in_two_ways_are_two(tail: Tail, tmp_path: Path, looks: str) -> None:
    results = tmp_path / "results"
    for name in ("a", "b"):
        log = talk("x", "one", "two", log=results / f"{name}.jsonl")
        if looks == "a look a line":
            look(tail)
        talk("x", f"three of {name}", "four", log=log, more=True)
        if looks != "one":
            look(tail)
    found = look(tail)
    assert len(found) == 2 and found == fresh(results, tmp_path / "other")
    with tail.sink.store.reading() as connection:
        given = connection.execute("SELECT trajectory_ids FROM sources ORDER BY path").fetchall()
    assert sorted(given) == sorted(([key],) for key in found), "each is known as its own file's"


def test_a_file_may_tell_two_sessions_of_one_name(tail: Tail, tmp_path: Path) -> None:
    log = talk("x", "one", "two", log=tmp_path / "results" / "own.jsonl")
    look(tail)
    again = talk("x", "another one", log=tmp_path / "again.jsonl").read_text()
    log.write_text(log.read_text() + again)
    look(tail)
    talk("x", "two", "three", log=log, more=True)
    assert look(tail) == fresh(log, tmp_path / "other")


def test_what_came_after_the_last_look_is_read_at_the_end(tail: Tail, tmp_path: Path) -> None:
    log = talk("x", "one", log=tmp_path / "results" / "own.jsonl")
    look(tail)
    tail.watched_sources[log].cost = 3600.0  # so it is looked at less often
    talk("x", "two", log=log, more=True)
    look(tail)
    tail.settle()
    tail.sink.flush()
    assert stored(tail.sink.store) == fresh(log, tmp_path / "other")


@pytest.mark.parametrize("reader", ["follow", "ingest"])
def test_what_comes_while_a_source_is_noted_is_not_known(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    log = talk("x", "one", log=tmp_path / "results" / "own.jsonl")
    look(tail)
    content = sources.content

    def late(place: Place) -> str:
        talk("x", "two", log=log, more=True)
        return content(place)

    with monkeypatch.context() as patch:
        patch.setattr(sources, "content", late)
        tail.settle()
        tail.sink.flush()
    if reader == "ingest":
        ingest(tail.sink.store, [log], ReadOptions())
    else:
        later = Tail(Sink(tail.sink.store), ReadOptions())
        later.roots.append(log)
        look(later)
    assert stored(tail.sink.store) == fresh(log, tmp_path / "other")


def test_what_comes_while_a_source_is_read_is_not_known_where_its_follower_is_killed(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tail.options = ReadOptions(condition="A")
    log = talk("x", "one", log=tmp_path / "results" / "own.jsonl")
    look(tail)
    talk("x", "two", log=log, more=True)
    read = registry.SYSTEMS["coaudit"].read

    def late(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
        yield from read(path, options)
        talk("x", "three", log=log, more=True)

    with monkeypatch.context() as patch:
        patch.setitem(registry.SYSTEMS, "coaudit", replace(registry.SYSTEMS["coaudit"], read=late))
        tail.watched_sources[log].cost = 0.0
        look(tail)
    ingest(tail.sink.store, [log], tail.options)
    (found,) = stored(tail.sink.store).values()
    assert [event.text for event in found.events] == ["one", "two", "three"]


def test_a_log_that_its_reader_fails_on_costs_only_itself(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path, options: ReadOptions) -> NoReturn:
        raise RuntimeError("nobody thought of that")

    talk("x", "one", log=tmp_path / "results" / "own.jsonl")
    Log().say(USER, "Hello").folder(tmp_path / "results" / "env_1")
    monkeypatch.setitem(registry.SYSTEMS, "coaudit", replace(registry.SYSTEMS["coaudit"], read=fails))
    assert len(look(tail)) == 1
    tail.settle()
    tail.sink.flush()
    with tail.sink.store.reading() as connection:
        (reason,) = connection.execute("SELECT reason FROM quarantine").fetchall()
    assert reason == ("its reader failed: RuntimeError: nobody thought of that",)


def test_a_place_that_cannot_be_looked_into_is_named_until_it_can(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = talk("x", "one", log=tmp_path / "results" / "own.jsonl")

    def denied(path: Path, system: str) -> str:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(discover, "recognised_system", denied)
        assert look(tail) == look(tail) == {}
    with tail.sink.store.reading() as connection:
        named = connection.execute("SELECT source, reason FROM quarantine").fetchall()
    assert named == [(str(log.parent), "cannot be read: Permission denied")]
    assert len(look(tail)) == 1


def test_a_file_that_is_replaced_by_one_of_another_system_is_read_as_that(tail: Tail, tmp_path: Path) -> None:
    log = talk("x", "one", log=tmp_path / "results" / "own.jsonl")
    look(tail)
    log.write_text(json.dumps({"messages": [{"role": "user", "content": "Hi"}]}) + "\n")
    assert {one.system for one in look(tail).values()} == {"coaudit", "chat"}


def test_logs_that_look_as_they_did_are_not_opened_again(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [tmp_path / f"results/{n}.jsonl" for n in range(3)]
    for log in logs:
        talk(log.stem, "Hello", log=log)
    (tmp_path / "results/notes.jsonl").write_text("{}\n")
    asked: list[str] = []

    def recognise(path: Path, system: str = "auto") -> str | None:
        asked.append(path.name)
        return system_of(path, system)

    system_of = discover.recognised_system
    monkeypatch.setattr(discover, "recognised_system", recognise)
    assert look(tail).keys() == fresh(tmp_path / "results", tmp_path / "other").keys()
    asked.clear()
    talk("0", "Hello", "Again", log=logs[0])
    logs[1].unlink()
    assert len(next(one for one in look(tail).values() if one.native_id == "0").events) > 1
    assert sorted(asked) == ["0.jsonl", "results"]
    talk("new", "Hello", log=tmp_path / "results/notes.jsonl")
    assert "new" in {one.native_id for one in look(tail).values()}


def test_what_is_followed_can_be_forgotten_by_its_path(tail: Tail, tmp_path: Path) -> None:
    log = talk("x", "one", "two", log=tmp_path / "results" / "own.jsonl")
    (key,) = look(tail)
    assert forget(tail.sink.store, str(log)).trajectories == [key]
    talk("x", "three", log=log, more=True)
    assert look(tail) == {}, "it is forgotten, whatever is written on"


def test_what_has_not_changed_since_the_last_time_is_not_read_again(tail: Tail, tmp_path: Path) -> None:
    results = tmp_path / "results"
    for _ in play(Env(NAME, silent, results), seed=1, steps=5):
        pass
    look(tail)
    tail.settle()
    tail.sink.flush()
    read: list[Path] = []
    later = Tail(Sink(tail.sink.store), ReadOptions(), on_read=lambda path, trajectory: read.append(path))
    later.roots.append(results)
    later.look()
    assert (read, later.sink.flush()) == ([], [])


def test_a_log_that_takes_long_to_store_is_read_less_often_and_counts_as_growing(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drip into a long session held the database for three quarters of the time."""
    log = talk("x", "one", log=tmp_path / "results" / "own.jsonl")
    monkeypatch.setattr(sink, "LONGEST_REST", 0.0)  # as if any transaction took longer than the rest after it
    before = look(tail)
    assert tail.sink.storing_seconds[str(log)] > 0
    tail.sink.storing_seconds[str(log)] = 60.0
    seen = tail.last_change
    talk("x", "two", log=log, more=True)
    assert look(tail) == before
    assert tail.last_change > seen, "else --stop-when-idle ends while it grows"
    tail.settle()
    tail.sink.flush()
    assert stored(tail.sink.store) == fresh(log, tmp_path / "other")


def test_a_short_log_pays_neither_for_waiting_nor_for_what_is_derived_of_others(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that held the database for 10 s, or a long session, kept short logs unread for 40 s."""
    monkeypatch.setattr(sink, "LONGEST_REST", 0.0)
    monkeypatch.setattr(sink, "DERIVE", 0.0)
    store, writing = tail.sink.store, tail.sink.store.writing
    short, long = (tmp_path / "results" / name for name in ("short.jsonl", "long.jsonl"))
    talk("long", *["one"] * 99, log=long)
    look(tail)

    @contextmanager
    def late_writing() -> Iterator[duckdb.DuckDBPyConnection]:
        time.sleep(0.5)
        with writing() as connection:
            yield connection

    monkeypatch.setattr(store, "writing", late_writing)
    talk("short", "one", log=short)
    tail.look()
    start = time.monotonic()
    tail.sink.flush()
    seconds = time.monotonic() - start - 0.5
    assert 0 < tail.sink.storing_seconds[str(short)] <= seconds / 50


def test_a_log_pays_for_all_of_a_transaction_that_stores_it_alone_and_derives_nothing(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two long logs that grow in turn each paid for a half, and was read again so much sooner."""
    monkeypatch.setattr(sink, "LONGEST_REST", 0.0)
    monkeypatch.setattr(sink, "DERIVE", 60.0)
    store, postpone = tail.sink.store, tail.sink.store.postpone

    def late_postpone(*values: Any) -> None:
        time.sleep(0.3)
        postpone(*values)

    monkeypatch.setattr(store, "postpone", late_postpone)
    logs = [tmp_path / "results" / f"{name}.jsonl" for name in ("a", "b")]
    for log in logs:
        talk(log.stem, *["one"] * 50, log=log)
        tail.look()
        tail.sink.flush()
    assert tail.sink.storing_seconds[str(logs[1])] >= 0.3


def test_a_rebuild_gives_what_was_followed(tail: Tail, tmp_path: Path) -> None:
    results = tmp_path / "results"
    for _ in play(Env(NAME, silent, results), seed=2, steps=8):
        look(tail)
    before = look(tail)
    rebuild(tail.sink.store)
    assert stored(tail.sink.store) == before


@pytest.mark.slow
def test_a_follower_killed_at_twenty_random_moments_ends_where_a_fresh_ingest_does(
    follow: Callable[..., Following], workspace: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    done = threading.Event()

    def grow() -> None:
        running = [play(Env(f"env_travel_planning_{n}", silent, results), n, steps=30) for n in range(200)]
        while running and not done.is_set():
            running[:4] = [one for one in running[:4] if next(one, "over") != "over"]
            time.sleep(0.05)

    writer = threading.Thread(target=grow)
    writer.start()
    chance = random.Random(6)
    try:
        for _ in range(20):
            follower = follow(results, "--judge", "halting")
            follower.began()
            time.sleep(chance.uniform(0.0, 0.7))
            follower.kill()
    finally:
        done.set()
        writer.join()
    follow(results, "--stop-when-idle", "2").finish(timeout=120)
    found = stored(Store(Workspace(workspace)))
    expected = fresh(results, tmp_path / "other")
    assert {k: t.events for k, t in found.items()} == {k: t.events for k, t in expected.items()}
    rebuild(Store(Workspace(workspace)))
    assert stored(Store(Workspace(workspace))) == found


@pytest.mark.slow
def test_lines_on_standard_input_are_recorded_and_stored(workspace: Path) -> None:
    people = [{"name": "a", "kind": "agent"}, {"name": "h", "kind": "human"}]
    lines = [
        {"type": "trajectory", "native_id": "x", "participants": people},
        {"type": "event", "trajectory": "x", "actor": "h", "kind": "message", "text": "Hi"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "--workspace", str(workspace), "follow", "-"]
    subprocess.run(command, input=text, text=True, check=True, capture_output=True)
    store = Store(Workspace(workspace))
    (found,) = stored(store).values()
    assert [e.text for e in found.events] == ["Hi"]
    rebuild(store)
    assert list(stored(store).values()) == [found]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["file", "pipe"])
@pytest.mark.parametrize("options", [(), ("--stop-when-idle", "0.5")])
def test_what_is_on_standard_input_already_is_taken_in_before_it_stops(
    tmp_path: Path, way: str, options: tuple[str, ...]
) -> None:
    log = sessions(tmp_path / "log.jsonl")
    workspace = tmp_path / "workspace"
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "--workspace", str(workspace), "follow", "-"]
    with log.open("rb") as file, subprocess.Popen(["cat", log], stdout=subprocess.PIPE) as piped:
        source = file if way == "file" else piped.stdout
        done = subprocess.run(
            [*command, *options], stdin=source, capture_output=True, timeout=120, check=True
        )
    assert f"{len(CORPUS)} trajectories".encode() in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.long
def test_what_was_recorded_of_standard_input_just_before_a_kill_is_in_a_rebuild(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    """The ledger knew of the recording only once it had been looked into, a second later."""
    workspace = tmp_path / "workspace"
    log = talk("x", "one", log=tmp_path / "own.jsonl")
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "--workspace", str(workspace), "follow", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as follower:
        assert follower.stdin
        follower.stdin.write(log.read_bytes())
        follower.stdin.flush()
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size for path in (workspace / "raw").rglob("*.jsonl")):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        follower.kill()
    coaudit("--workspace", workspace, "rebuild")
    (row,) = coaudit("--workspace", workspace, "trajectory", "list", "--json").json["rows"]
    assert (row["native_id"], row["events"]) == ("x", 1)


@pytest.mark.long
def test_what_is_on_standard_input_and_no_log_is_named_and_stands_in_the_quarantine(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    workspace = tmp_path / "workspace"
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "--workspace", str(workspace), "follow", "-"]
    done = subprocess.run(command, input=b"no log\n{}\n", capture_output=True, timeout=120, check=True)
    assert b"no logs of a known system in it" in done.stderr and b"1 quarantined" in done.stderr
    (row,) = coaudit("--workspace", workspace, "quarantine", "list", "--json").json["rows"]
    assert Path(row["source"]).parent == workspace / "raw" / "stdin"


@pytest.mark.long
def test_archives_are_not_followed_and_are_named(tmp_path: Path, coaudit: Coaudit) -> None:
    (tmp_path / "logs").mkdir()
    log = talk("x", "one", log=tmp_path / "logs" / "own.jsonl")
    (tmp_path / "logs" / "old.jsonl.gz").write_bytes(gzip.compress(log.read_bytes()))
    said = coaudit("follow", tmp_path / "logs", "--stop-when-idle", "0.1").err
    assert f"one archive is not followed, the first {tmp_path}/logs/old.jsonl.gz" in said


def test_a_log_that_gets_shorter_or_goes_while_it_is_followed_is_named_once(
    tail: Tail, tmp_path: Path
) -> None:
    logs = [talk(one, "a", "b", "c", log=tmp_path / "results" / f"{one}.jsonl") for one in ("x", "y", "z")]
    look(tail)
    assert tail.sink.notes == []
    talk("x", "a", log=logs[0])
    logs[1].unlink()
    logs[2].rename(logs[2].with_name("of-yesterday.jsonl"))
    assert sorted(len(one.events) for one in look(tail).values()) == [3, 3, 3]
    said = [note.partition("; ")[0] for note in tail.sink.notes]
    assert said == [
        f"{logs[0]}: shorter than when read",
        f"{logs[1]}: gone",
        f"{logs[0]}: holds 1 of the 3 events of x that it held before",
    ]
    talk("x", "a", "b", log=logs[0])
    look(tail)
    assert len(tail.sink.notes) == 3


def test_a_rotation_that_copies_a_log_and_empties_it_loses_nothing(tail: Tail, tmp_path: Path) -> None:
    log = talk("x", "a", "b", log=tmp_path / "results" / "own.jsonl")
    look(tail)
    talk("x", "c", log=log, more=True)
    shutil.copy(log, log.with_name("own.jsonl.1"))
    talk("y", "a", log=log)
    assert {one.native_id: len(one.events) for one in look(tail).values()} == {"x": 3, "y": 1}
    assert tail.sink.notes == []


def test_a_log_that_was_compressed_as_it_was_rotated_is_read_to_its_end(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaudit.pipeline.follow.tail.STILL", 0.0)
    log = talk("x", "a", log=tmp_path / "results" / "own.jsonl")
    other = talk("other", "a", log=tmp_path / "other.jsonl")
    (tmp_path / "results" / "own.jsonl.0.gz").write_bytes(gzip.compress(other.read_bytes()))
    look(tail)
    log.with_name("theirs.jsonl.gz").write_bytes(gzip.compress(other.read_bytes()))
    talk("last", "b", "c", log=log, more=False)
    packed = log.with_name("own.jsonl.1.gz")
    packed.write_bytes(gzip.compress(log.read_bytes())[:-20])
    log.unlink()
    look(tail)
    talk("after", "d", log=log)
    packed.write_bytes(gzip.compress(talk("last", "b", "c", log=tmp_path / "last.jsonl").read_bytes()))
    look(tail)
    assert {one.native_id for one in look(tail).values()} == {"x", "last", "after"}
    notes = len(tail.sink.notes)
    packed.rename(packed.with_name("own.jsonl.2.gz"))
    look(tail)
    log.unlink()
    look(tail)
    rebuild(tail.sink.store)
    assert {one.native_id for one in stored(tail.sink.store).values()} == {"last"}
    assert not [note for note in tail.sink.notes[notes:] if "rotated; read" in note]


def test_a_rotated_log_for_which_there_is_no_room_is_read_when_there_is(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(workspace: Workspace, place: Place, content: str) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("coaudit.pipeline.follow.tail.STILL", 0.0)
    log = talk("x", "a", log=tmp_path / "results" / "own.jsonl")
    look(tail)
    talk("x", "b", log=log, more=True)
    log.with_name("own.jsonl.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(sources, "copy_source", full)
        look(tail)
        look(tail)
    with tail.sink.store.reading() as connection:
        wrong = connection.execute("SELECT source, reason FROM quarantine").fetchall()
    assert wrong == [(f"{log}.1.gz", "cannot be read: No space left on device")]
    look(tail)
    (found,) = look(tail).values()
    assert [event.text for event in found.events] == ["a", "b"]
    with tail.sink.store.reading() as connection:
        assert connection.execute("SELECT count(*) FROM quarantine").fetchone() == (0,)


def test_a_log_that_was_rotated_while_nobody_followed_is_read_to_its_end(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaudit.pipeline.follow.tail.STILL", -1.0)
    log = talk("x", "a", log=tmp_path / "results" / "own.jsonl")
    older = log.with_name("own.jsonl.0.gz")
    before = talk("before", "a", log=tmp_path / "before.jsonl")
    older.write_bytes(gzip.compress(before.read_bytes()))
    os.utime(older, (1.0, 1.0))
    look(tail)
    look(tail)
    talk("x", "b", log=log, more=True)
    log.with_name("own.jsonl.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    talk("after", "c", log=log)
    for read in (1, 0):
        later = Tail(Sink(tail.sink.store), ReadOptions())
        later.roots.append(tmp_path / "results")
        found = look(later)
        assert {one.native_id: len(one.events) for one in found.values()} == {"x": 2, "after": 1}
        assert sum("read to its end" in note for note in later.sink.notes) == read


def test_a_rotated_log_that_was_read_before_it_was_whole_is_read_by_who_follows_next(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaudit.pipeline.follow.tail.STILL", -1.0)
    log = talk("x", "a", log=tmp_path / "results" / "own.jsonl")
    look(tail)
    packed = log.with_name("own.jsonl.1.gz")
    whole = gzip.compress(talk("last", "b", "c", log=tmp_path / "last.jsonl").read_bytes())
    for held, said in ((whole[:-20], "broken archive"), (whole, "read to its end"), (whole, "")):
        packed.write_bytes(held)
        os.utime(packed, (1.0, 1.0))  # gzip gives it the time of what it compressed
        tail = Tail(tail.sink, ReadOptions()) if said != "broken archive" else tail
        tail.roots[:] = [tmp_path / "results"]
        tail.sink.notes.clear()
        found = look(tail)
        notes = [note.partition("rotated; ")[2] for note in tail.sink.notes]
        assert [note[: len(said)] for note in notes] == [said] * bool(said)
    assert {one.native_id: len(one.events) for one in found.values()} == {"x": 1, "last": 2}


@pytest.mark.parametrize(
    ("name", "log", "is_its"),
    [
        ("own.jsonl.1.gz", "own.jsonl", True),
        ("own.jsonl-20260131.zst", "own.jsonl", True),
        ("own-20260131.jsonl.gz", "own.jsonl", True),
        ("own.jsonl.gz", "own.jsonl", True),
        ("own.2.jsonl.gz", "own.jsonl", True),
        ("owner.jsonl.gz", "own.jsonl", False),
        ("10.jsonl.gz", "1.jsonl", False),
        ("1.jsonl.10.gz", "1.jsonl", True),
        ("own.csv.gz", "own.jsonl", False),
    ],
)
def test_a_compressed_file_is_that_of_the_log_whose_name_it_bears(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, log: str, is_its: bool
) -> None:
    monkeypatch.setattr("coaudit.pipeline.follow.tail.STILL", -1.0)
    followed = talk("x", "a", log=tmp_path / "results" / log)
    look(tail)
    other = talk("last", "b", log=tmp_path / "last.jsonl").read_bytes()
    packed = pa.compress(other, codec="zstd", asbytes=True) if name.endswith("zst") else gzip.compress(other)
    followed.with_name(name).write_bytes(packed)
    look(tail)
    assert len([note for note in tail.sink.notes if "rotated; read to its end" in note]) == is_its


def test_a_rotated_log_under_the_number_of_an_older_one_is_read(
    tail: Tail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaudit.pipeline.follow.tail.STILL", -1.0)
    log = talk("x", "a", log=tmp_path / "results" / "own.jsonl")
    packed = log.with_name("own.jsonl.1.gz")
    look(tail)
    for name in ("one", "two"):
        with packed.open("wb") as file:  # written over, so that its number stays
            file.write(gzip.compress(talk(name, name, log=tmp_path / "more.jsonl").read_bytes()))
        found = look(tail)
    assert {one.native_id for one in found.values()} == {"x", "one", "two"}


@pytest.mark.parametrize("rotated", ["own.jsonl.1", "own.jsonl-20260131", "own.jsonl.2026-01-31_12-00-00"])
def test_what_came_to_a_log_just_before_it_was_rotated_is_read(
    tail: Tail, tmp_path: Path, rotated: str
) -> None:
    log = talk("before", "one", log=tmp_path / "results" / "own.jsonl")
    look(tail)
    with log.open("a") as more:
        more.write(talk("last", "two", log=tmp_path / "other.jsonl").read_text())
    log.rename(log.with_name(rotated))
    talk("after", "three", log=log)
    found = {one.native_id: len(one.events) for one in look(tail).values()}
    assert found == {"before": 1, "last": 1, "after": 1}


def test_logs_of_any_shape_are_followed_by_a_mapping(tmp_path: Path, coaudit: Coaudit) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "theirs.jsonl").write_text('{"who": "user", "what": "Hello"}\n')
    (tmp_path / "map.toml").write_text('[event]\nrole = "who"\ntext = "what"\n')
    done = ("--stop-when-idle", "0.1", "--json")
    found = coaudit("follow", tmp_path / "logs", "--map", tmp_path / "map.toml", *done).json
    assert (found["trajectories"], found["quarantined"]) == (1, 0)
    again = coaudit("ingest", tmp_path / "logs", "--map", tmp_path / "map.toml", "--json").json
    assert (again["trajectories"], again["unchanged"]) == (0, 1)


def test_logs_that_go_on_with_or_repeat_another_one_are_told_as_ingest_does(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    said = {"session": "s", "who": "user", "text": "so"}
    mapping = '[trajectory]\nnative_id = "session"\n[event]\nrole = "who"\ntext = "text"\ntime = "at"\n'
    (tmp_path / "map.toml").write_text(mapping)
    (tmp_path / "logs").mkdir()
    for name, hours in (("app.jsonl.1", (8, 9)), ("app.jsonl", (10, 11))):
        lines = [json.dumps({**said, "at": f"2026-01-02T{hour:02}:00:00Z"}) for hour in hours]
        (tmp_path / "logs" / name).write_text("\n".join(lines) + "\n")
    arguments = (tmp_path / "logs", "--map", tmp_path / "map.toml")
    told = coaudit("follow", *arguments, "--stop-when-idle", 0.2).err
    assert told.count("app.jsonl: sessions have the names of those of") == 1
    shutil.copy(tmp_path / "logs" / "app.jsonl", tmp_path / "logs" / "backup.jsonl")
    (tmp_path / "map.toml").write_text(mapping.removeprefix('[trajectory]\nnative_id = "session"\n'))
    other = {"COAUDIT_WORKSPACE": str(tmp_path / "other")}
    told = coaudit("follow", *arguments, "--stop-when-idle", 0.2, **other).err
    assert f"backup.jsonl: says to the word what {tmp_path / 'logs' / 'app.jsonl'} says" in told


def test_files_of_a_folder_that_are_no_logs_are_named_once(tmp_path: Path, coaudit: Coaudit) -> None:
    (tmp_path / "logs").mkdir()
    talk("x", "one", log=tmp_path / "logs" / "own.jsonl")
    (tmp_path / "logs" / "theirs.jsonl").write_text('{"who": "Ada", "what": "Hello"}\n')
    said = coaudit("follow", tmp_path / "logs", "--stop-when-idle", "0.1").err
    assert said.count("left out one file that no known system wrote: theirs.jsonl") == 1


@pytest.mark.long
@pytest.mark.parametrize("again", ["follow", "ingest"])
def test_a_folder_that_is_followed_by_a_relative_path_is_the_source_that_ingest_knows(
    tmp_path: Path, coaudit: Coaudit, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    log = Log().say(USER, "Hello").folder(tmp_path / "logs" / "env_1") / "event_log.jsonl"
    log.write_text(log.read_text() + "{cut")
    monkeypatch.chdir(tmp_path)
    coaudit("follow", "logs", "--stop-when-idle", "0.1")
    coaudit("ingest", "logs")
    (trajectory,) = coaudit("trajectory", "list", "--json").json["rows"]
    assert trajectory["source"] == str(tmp_path / "logs" / "env_1")
    (wrong,) = coaudit("quarantine", "list", "--json").json["rows"]
    assert wrong["source"] == str(log)
    log.write_text(log.read_text().removesuffix("{cut"))
    coaudit(again, "logs", *(("--stop-when-idle", "0.1") if again == "follow" else ()))
    assert coaudit("quarantine", "list", "--json").json["rows"] == [], "it was mended"


@pytest.mark.long
def test_what_came_on_standard_input_is_found_again_in_a_workspace_that_was_moved(
    tail: Tail, workspace: Path, tmp_path: Path
) -> None:
    recording = stdin.place(tail.sink.store.workspace)
    recording.parent.mkdir(parents=True)
    sessions(recording)
    tail.roots[:] = [recording]
    before = look(tail)
    assert before
    moved = Store(Workspace(workspace.rename(tmp_path / "moved to another place")))
    assert not rebuild(moved).quarantined
    assert stored(moved) == before


CHAT = """
[event]
role = "text[].who"
text = "text[].text"
[roles]
Ada = "human"
Bot = "agent"
[turns]
at = "text"
pattern = '^(?P<who>Ada|Bot): '
"""


@pytest.mark.parametrize("name", ["chat.txt", "chat.log"])
def test_half_a_turn_of_a_text_is_no_session_of_its_own(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    log = tmp_path / "logs" / name
    log.parent.mkdir()
    tail = Tail(Sink(Store(Workspace(workspace))), ReadOptions(map=CHAT), "mapped")
    tail.roots.append(log.parent)
    lines = "Ada: To Ulm, please.\nBot: Done.\n"
    for cut in (9, 22):
        log.write_text(lines[:cut], encoding="utf-8")
        tail.look()
    log.write_text(lines, encoding="utf-8")
    (found,) = look(tail).values()
    assert [event.text for event in found.events] == ["To Ulm, please.", "Done."]
    log.write_text(f"{lines}Ada: Thanks", encoding="utf-8")
    (found,) = look(tail).values()
    assert len(found.events) == 2
    monkeypatch.setattr("coaudit.pipeline.follow.tail.STILL", -1.0)
    (found,) = look(tail).values()
    assert [event.text for event in found.events] == ["To Ulm, please.", "Done.", "Thanks"]


def test_a_text_that_never_ends_with_a_line_break_is_read_while_it_grows(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As loggers have it that put the line break first."""
    log = tmp_path / "logs" / "chat.txt"
    log.parent.mkdir()
    tail = Tail(Sink(Store(Workspace(workspace))), ReadOptions(map=CHAT), "mapped")
    tail.roots.append(log.parent)
    reads: list[int] = []
    tail.on_read = lambda _, trajectory: reads.append(len(trajectory.events))
    clock = iter(range(10_000))
    monkeypatch.setattr("coaudit.pipeline.follow.tail.time.monotonic", lambda: next(clock) / 10)
    for turn in range(200):
        with log.open("a", encoding="utf-8") as file:
            file.write(f"\nAda: Turn {turn}.")
        tail.look()
    assert len(reads) > 3
    assert reads == sorted(reads)


def test_a_text_of_which_a_line_is_whole_is_read_at_once_also_as_utf_16(
    workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "chat.txt"
    log.parent.mkdir()
    tail = Tail(Sink(Store(Workspace(workspace))), ReadOptions(map=CHAT), "mapped")
    tail.roots.append(log.parent)
    log.write_bytes(b"\xff\xfe" + "Ada: To Ulm, please.\nBot: Done.\n".encode("utf-16-le"))
    (one,) = look(tail).values()
    assert len(one.events) == 2


def test_a_half_text_that_goes_before_it_was_read_is_named(workspace: Path, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "chat.txt"
    log.parent.mkdir()
    tail = Tail(Sink(Store(Workspace(workspace))), ReadOptions(map=CHAT), "mapped")
    tail.roots.append(log.parent)
    log.write_text("Ada: To Ulm", encoding="utf-8")
    for _ in range(2):
        tail.look()
    assert not tail.sink.notes
    other = log.rename(log.with_name("other.txt"))
    tail.look()
    assert not tail.sink.notes
    other.unlink()
    tail.look()
    (note,) = tail.sink.notes
    assert note.startswith(f"{other}: gone; what came since the last look was not read")
