"""Ingesting: twice, grown, moved, copied, killed, and what comes back after a rebuild."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.errors import WriteError
from coaudit.pipeline.ingest import blocks, intake
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, disk
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.cogym.generate import generate
from coaudit.schemas import Quarantined, Trajectory
from tests.conftest import Coaudit
from tests.pipeline.stores import counts, document, give, made, opened, rate, rows, take, verdict
from tests.pipeline.systems.cogym.folders import AGENT, BEGAN, USER, Log, performance, simulated
from tests.shared import ROOT

NAME = "env_travel_planning_0"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made(tmp_path / "workspace")


def session(path: Path, log: Log | None = None) -> Path:
    if log is None:
        log = Log().say(AGENT, "May I book?").say(USER, "Yes").write(AGENT, "Plan").finish()
    text = str(log.public["travel_plan_editor"])
    return log.folder(path, {**performance(text, performance_rating=0.5), **simulated()})


def everything(store: Store) -> list[dict[str, object]]:
    return rows(store, "SELECT * FROM trajectories ORDER BY id")


@pytest.mark.long
def test_conversations_that_say_the_same_are_one_trajectory(tmp_path: Path, store: Store) -> None:
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good morning"}]
    file = tmp_path / "chats.jsonl"
    file.write_text(f"{json.dumps({'messages': turns})}\n" * 4)
    for _ in range(2):
        take(store, file)
        assert rows(store, "SELECT count(*) AS n FROM trajectories") == [{"n": 1}]
        assert rows(store, "SELECT count(*) AS n FROM events") == [{"n": 2}]


@pytest.mark.long
def test_ingesting_twice_changes_nothing(tmp_path: Path, store: Store) -> None:
    generate(tmp_path / "logs", 6, 0)
    assert counts(take(store, tmp_path / "logs")) == (6, 0, 0)
    before, ledger = document(store), list(store.workspace.sources.lines())
    assert counts(take(store, tmp_path / "logs")) == (0, 6, 0)
    assert counts(take(store, tmp_path)) == (0, 6, 0)
    assert document(store) == before
    assert list(store.workspace.sources.lines()) == ledger


def test_a_trajectory_of_several_sources_is_unchanged_once(tmp_path: Path, store: Store) -> None:
    """A second run spoke of more unchanged trajectories than there are."""
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good morning"}]
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    take(store, tmp_path)
    assert counts(take(store, tmp_path)) == (0, 1, 0)


def test_events_are_counted_as_the_log_has_them(tmp_path: Path, store: Store) -> None:
    session(tmp_path / "logs" / NAME)
    assert take(store, tmp_path / "logs").events == 6


@pytest.mark.long
def test_a_session_that_has_grown_is_updated_also_where_it_was_moved(tmp_path: Path, store: Store) -> None:
    log = Log().say(AGENT, "May I book?")
    take(store, log.folder(tmp_path / "logs" / NAME))
    log.say(USER, "Yes")
    assert counts(take(store, log.folder(tmp_path / "logs" / NAME))) == (1, 0, 0)
    log.finish(USER)
    assert counts(take(store, log.folder(tmp_path / "elsewhere" / NAME))) == (1, 0, 0)
    (found,) = everything(store)
    assert found["n_events"] == 5
    assert (found["source"], found["condition"]) == (str(tmp_path / "logs" / NAME), "logs")


def test_of_two_exports_of_one_session_the_last_counts_also_where_their_folder_was_renamed(
    tmp_path: Path, store: Store
) -> None:
    (tmp_path / "before").mkdir()
    head = {"type": "trajectory", "native_id": "s1", "participants": [{"name": "Ada", "kind": "human"}]}
    said = {"type": "event", "trajectory": "s1", "actor": "Ada", "kind": "message", "text": "Done."}
    for name, model in (("a", None), ("b", "m-1")):
        lines = [{**head, "agent_model": model}, said]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (tmp_path / "before" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    take(store, tmp_path / "before")
    first = rows(store, "SELECT id, agent_model FROM trajectories")
    (tmp_path / "before").rename(tmp_path / "after")
    take(store, tmp_path / "after")
    assert rows(store, "SELECT id, agent_model FROM trajectories") == first
    assert first[0]["agent_model"] == "m-1"


def test_an_ingest_that_the_store_ends_says_what_it_had_stored(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(tmp_path / "a" / NAME)
    session(tmp_path / "b" / NAME)
    commits: list[object] = []

    def fault(what: str, *_: object) -> None:
        commits.extend([what] * (what == "commit"))
        if len(commits) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "fault", fault)
    with pytest.raises(WriteError, match=r"No space .*; this run had stored 1 trajectory with \d+ events"):
        take(store, tmp_path / "a", tmp_path / "b")


def test_an_older_copy_of_a_session_takes_nothing_away(tmp_path: Path, store: Store) -> None:
    log = Log().say(AGENT, "One")
    log.folder(tmp_path / "old" / NAME)
    take(store, log.say(USER, "Two").folder(tmp_path / "new" / NAME))
    assert counts(take(store, tmp_path / "old")) == (0, 1, 0)
    assert everything(store)[0]["n_events"] == 4


def test_the_same_words_at_two_times_are_two_trajectories_that_share_no_event(
    tmp_path: Path, store: Store
) -> None:
    """Talks without an id: `same session up to event 0` was said of them."""
    for day in (1, 2):
        said = [{"role": "user", "content": "Run the tests.", "timestamp": f"2026-02-0{day}T10:00:00Z"}]
        (tmp_path / f"{day}.json").write_text(json.dumps({"messages": said}))
    result = take(store, tmp_path / "1.json", tmp_path / "2.json")
    assert result.trajectories == 2
    (note,) = result.notes
    assert note.startswith(f"{tmp_path / '2.json'}: has the id of a session of {tmp_path / '1.json'} whose")


@pytest.mark.long
def test_a_log_that_was_mended_is_one_session_before_and_after_a_rebuild(
    tmp_path: Path, store: Store
) -> None:
    folder = Log().say(AGENT, "One").say(USER, "Two").say(AGENT, "Three").folder(tmp_path / "a" / NAME)
    log = folder / "event_log.jsonl"
    whole = log.read_text()
    lines = whole.splitlines(keepends=True)
    log.write_text("".join([*lines[:2], "broken" + lines[2], *lines[3:]]))
    assert len(take(store, tmp_path / "a").quarantined) == 1
    (broken,) = everything(store)
    assert rate(store, [verdict(NAME, 2, "initiative", "yes")]).imported == 1
    log.write_text(whole)
    result = take(store, tmp_path / "a")
    assert (counts(result), result.quarantined) == ((1, 0, 0), [])
    assert result.notes == [f"{folder}: from event 3 on, differs from what was stored"]
    (mended,) = everything(store)
    assert (mended["id"], broken["n_events"], mended["n_events"]) == (broken["id"], 4, 5)
    assert rows(store, "SELECT reason FROM uncounted_ratings") == []
    before = document(store)
    assert counts(take(store, tmp_path / "a")) == (0, 1, 0)
    assert rebuild(store).quarantined == []
    assert document(store) == before


@pytest.mark.long
def test_two_sessions_of_one_id_in_one_file_stay_two_when_one_is_mended_or_they_change_places(
    tmp_path: Path, store: Store
) -> None:
    def said(*texts: str) -> str:
        turns = [{"role": "user", "content": text} for text in ("Hello", *texts)]
        return json.dumps({"id": "s1", "messages": turns}) + "\n"

    file = tmp_path / "chats.jsonl"
    for lines in ((said("a"), said("b")), (said("b"), said("a")), (said("b", "c"), said("a"))):
        file.write_text("".join(lines))
        take(store, file)
        assert len(everything(store)) == 2
    file.write_text(said("a", "d") + said("b", "c"))
    take(store, file)
    assert len(everything(store)) == 2


@pytest.mark.long
@pytest.mark.parametrize("copy", [True, False])
def test_a_run_that_was_written_over_one_of_another_condition_stands_beside_it(
    tmp_path: Path, store: Store, copy: bool
) -> None:
    file = tmp_path / "chats.jsonl"
    for condition, text in (("first", "a"), ("second", "b")):
        turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": text}]
        file.write_text(json.dumps({"id": "s1", "messages": turns}) + "\n")
        take(store, file, condition=condition, copy=copy)

    def told() -> list[tuple[object, ...]]:
        query = "SELECT condition, text FROM events JOIN trajectories t ON t.id = trajectory_id WHERE seq = 1"
        return sorted(tuple(row.values()) for row in rows(store, query))

    assert told() == [("first", "a"), ("second", "b")]
    lost = rebuild(store).quarantined
    assert told() == [("first", "a"), ("second", "b")][not copy :]
    assert [item.source for item in lost] == [str(file)] * (not copy)


@pytest.mark.long
def test_two_logs_with_one_beginning_that_part_are_two_trajectories(tmp_path: Path, store: Store) -> None:
    Log().say(AGENT, "One").say(USER, "Two").folder(tmp_path / "a" / NAME)
    Log().say(AGENT, "One").say(USER, "Three").folder(tmp_path / "b" / NAME)
    result = take(store, tmp_path / "a", tmp_path / "b")
    assert counts(result) == (2, 0, 0)
    assert "up to event 3, then another; kept as a trajectory of its own" in result.notes[0]
    first, second = (str(row["id"]) for row in everything(store))
    assert second.startswith(f"{first}-")
    before = document(store)
    assert counts(take(store, tmp_path / "b", tmp_path / "a")) == (0, 2, 0)
    rebuild(store)
    assert document(store) == before


@pytest.mark.long
def test_one_folder_name_under_two_conditions_is_two_trajectories(tmp_path: Path, store: Store) -> None:
    session(tmp_path / "planning" / NAME)
    session(tmp_path / "baseline" / NAME, Log(began=BEGAN + timedelta(hours=1)).finish())
    assert counts(take(store, tmp_path / "planning", tmp_path / "baseline"))[0] == 2
    assert {row["condition"] for row in everything(store)} == {"planning", "baseline"}


@pytest.mark.long
def test_options_fill_in_and_other_options_update(tmp_path: Path, store: Store) -> None:
    folder = Log().say(AGENT, "One").folder(tmp_path / "logs" / NAME)
    take(store, folder)
    given: dict[str, Any] = {
        "setting": "real",
        "condition": "pilot",
        "agent": "two-stage",
        "tags": {"lab": "a"},
    }
    assert counts(take(store, folder, **given)) == (1, 0, 0)
    (found,) = everything(store)
    assert [found[key] for key in given] == ["real", "pilot", "two-stage", '{"lab":"a"}']
    assert counts(take(store, folder, **given)) == (0, 1, 0)
    assert counts(take(store, folder)) == (0, 1, 0), "nothing new is said, so all that was said holds"
    assert everything(store) == [found]
    assert counts(take(store, folder, condition="main")) == (1, 0, 0)
    (found,) = everything(store)
    assert [found[key] for key in given] == ["real", "main", "two-stage", '{"lab":"a"}']
    rebuild(store)
    assert everything(store) == [found]


@pytest.mark.long
def test_the_last_of_several_options_holds_after_a_rebuild_too(tmp_path: Path, store: Store) -> None:
    folder = Log().folder(tmp_path / "logs" / NAME)
    for condition in ("x", "y", "x"):
        take(store, folder, condition=condition)
    assert everything(store)[0]["condition"] == "x"
    rebuild(store)
    assert everything(store)[0]["condition"] == "x"


def rated(store: Store, tmp_path: Path) -> str:
    generate(tmp_path / "logs", 6, 3)
    take(store, tmp_path / "logs")
    truth = [json.loads(line) for line in (tmp_path / "logs" / "truth.jsonl").read_text().splitlines()]
    assert not rate(store, truth).quarantined
    give(store, [{"trajectory": truth[0]["trajectory"], "name": "satisfaction", "value": 4}])
    return document(store, by=["condition", "task"])


@pytest.mark.slow
def test_a_deleted_database_comes_back_with_the_same_numbers(tmp_path: Path, store: Store) -> None:
    before = rated(store, tmp_path)
    store.workspace.database.unlink()
    rebuild(store)
    assert document(store, by=["condition", "task"]) == before
    rebuild(store)
    assert document(store, by=["condition", "task"]) == before


@pytest.mark.slow
def test_a_rebuild_that_is_killed_leaves_the_old_database(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rated(store, tmp_path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Store, "catch_up", _interrupted)
        rebuild(store)
    assert document(store, by=["condition", "task"]) == before
    assert not list(store.workspace.path.glob("rebuilding-*"))


def _interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.long
def test_a_log_that_is_gone_is_named_and_its_ratings_are_kept(tmp_path: Path, store: Store) -> None:
    gone = session(tmp_path / "logs" / NAME)
    session(tmp_path / "logs" / "env_travel_planning_1", Log(began=BEGAN + timedelta(hours=1)).finish())
    take(store, tmp_path / "logs")
    assert rate(store, [verdict(NAME, 2, "initiative", "yes")]).imported == 1
    shutil.rmtree(gone)
    (named,) = rebuild(store).quarantined
    assert (named.source, named.reason) == (str(gone), "the log is gone; its ratings are kept")
    assert [row["native_id"] for row in everything(store)] == ["env_travel_planning_1"]
    (kept,) = rows(store, "SELECT label, reason FROM uncounted_ratings")
    assert kept == {"label": "yes", "reason": "its trajectory is not in the store"}
    session(gone)
    take(store, tmp_path / "logs")
    assert rows(store, "SELECT label FROM counted_ratings") == [{"label": "yes"}]


@pytest.mark.long
@pytest.mark.parametrize("where", ["logs/pilot", "travel_planning/tag/results"])
def test_what_was_copied_is_read_again_as_it_was_after_the_source_is_gone(
    tmp_path: Path, store: Store, where: str
) -> None:
    folder = session(tmp_path / where / NAME, Log().say(AGENT, "One"))
    (folder / "task_performance.json").unlink()
    config = folder.parent.parent / "env_config_tmp" / "travel_planning_0.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[env_args]\nmax_steps = 1\n")
    (folder / "link").symlink_to("/etc")
    take(store, tmp_path, copy=True)
    before, head = document(store), everything(store)
    assert rows(store, "SELECT text FROM outcomes WHERE name = 'end_reason'") == [{"text": "step_limit"}]
    for below in ("logs", "travel_planning"):
        shutil.rmtree(tmp_path / below, ignore_errors=True)
    assert not rebuild(store).quarantined
    assert everything(store) == head
    assert document(store) == before
    assert not list(store.workspace.raw.rglob("link"))


def test_a_copy_that_finds_the_disk_full_ends_the_run_and_leaves_the_room_that_it_took(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = session(tmp_path / "logs" / NAME, Log().say(AGENT, "One").finish())
    (folder / "notes.txt").write_text("beside the log")

    def full(point: str, path: Path) -> None:
        if path.name == "notes.txt":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk, "fault", full)
    with pytest.raises(WriteError, match=r"raw/copied/.*notes\.txt: cannot write: No space left on device"):
        take(store, tmp_path, copy=True)
    assert not list((store.workspace.raw / "copied").iterdir())
    monkeypatch.undo()
    assert take(store, tmp_path, copy=True).trajectories == 1


@pytest.mark.long
def test_a_copy_that_was_never_finished_goes_a_day_later(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(tmp_path / "logs" / NAME, Log().say(AGENT, "One").finish())
    left = store.workspace.raw / "copied" / "0123.7.89ab.part" / "logs"
    left.mkdir(parents=True)
    (left / "chat.json").write_text("[")
    take(store, tmp_path, copy=True)
    assert left.exists(), "another process may be at it"
    session(tmp_path / "more" / NAME, Log().say(AGENT, "Two").finish())
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 25 * 3600)
    take(store, tmp_path, copy=True)
    assert not left.parent.exists()
    assert len(list((store.workspace.raw / "copied").iterdir())) == 2


@pytest.mark.long
def test_every_copy_of_a_folder_that_was_run_again_comes_back(tmp_path: Path, store: Store) -> None:
    folder = tmp_path / "logs" / NAME
    for hour in range(2):
        shutil.rmtree(folder, ignore_errors=True)
        session(folder, Log(began=BEGAN + timedelta(hours=hour)).say(AGENT, f"Run {hour}").finish())
        take(store, tmp_path / "logs", copy=True)
    before = everything(store)
    assert len(before) == 2
    rebuild(store)
    assert everything(store) == before


@pytest.mark.long
def test_a_rebuild_from_several_copies_of_a_log_says_what_is_wrong_with_the_last_one_once(
    tmp_path: Path, store: Store
) -> None:
    log = session(tmp_path / "logs" / NAME, Log().say(AGENT, "One").finish()) / "event_log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    for cut in (2, 3):
        log.write_text("".join([lines[0], "no JSON\n", *lines[1:cut]]))
        take(store, tmp_path / "logs", copy=True)
    query = "SELECT source, line, reason FROM quarantine ORDER BY ALL"
    before = rows(store, query)
    assert before
    assert [one.model_dump() for one in rebuild(store).quarantined] == before
    assert rows(store, query) == before


@pytest.mark.long
def test_an_archive_is_read_by_the_names_inside_it_and_kept(tmp_path: Path, store: Store) -> None:
    session(tmp_path / "logs" / "pilot" / NAME)
    archive = tmp_path / "logs.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted((tmp_path / "logs").rglob("*")):
            file.write(path, path.relative_to(tmp_path / "logs"))
    assert counts(take(store, archive)) == (1, 0, 0)
    before = everything(store)
    assert (before[0]["source"], before[0]["condition"]) == (f"{archive}!pilot/{NAME}", "pilot")
    ledger = list(store.workspace.sources.lines())
    assert counts(take(store, archive)) == (0, 1, 0)
    assert list(store.workspace.sources.lines()) == ledger
    archive.unlink()
    assert not rebuild(store).quarantined
    assert everything(store) == before


@pytest.mark.long
def test_a_copy_has_the_folders_that_say_whose_runs_they_are(tmp_path: Path, store: Store) -> None:
    model = tmp_path / "src" / "data" / "lab" / "model"
    run = ROOT / "data/overcooked/logs/model_a/poached_pear"
    shutil.copytree(run, model / "poached_pear")
    take(store, model, copy=True)
    before = everything(store)
    assert {row["condition"] for row in before} == {"lab/model"}
    shutil.rmtree(model)
    rebuild(store)
    assert everything(store) == before


def test_a_source_that_gave_nothing_says_why_every_time(tmp_path: Path, store: Store) -> None:
    folder = tmp_path / "logs" / NAME
    folder.mkdir(parents=True)
    (folder / "event_log.jsonl").write_text("{}\n")
    first, second = take(store, folder), take(store, folder)
    assert [q.reason for q in second.quarantined] == [q.reason for q in first.quarantined]
    assert counts(second) == (0, 0, 2)


@pytest.mark.long
def test_a_line_of_the_source_ledger_that_was_cut_off_costs_only_itself(tmp_path: Path, store: Store) -> None:
    take(store, session(tmp_path / "logs" / NAME))
    (path,) = store.workspace.sources.files()
    with path.open("a") as file:
        file.write('{"path": "/half')
    assert not rebuild(store).quarantined, "a last line without its end never counted"
    other = session(tmp_path / "logs" / "env_b", Log(began=BEGAN + timedelta(hours=1)).finish())
    assert counts(take(store, other)) == (1, 0, 0)
    (named,) = rebuild(store).quarantined
    assert (named.source, named.line) == (str(path), 2)
    assert len(everything(store)) == 2


@pytest.mark.long
def test_a_kill_between_ledger_and_database_is_made_good_by_the_next_ingest(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = session(tmp_path / "logs" / NAME)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("coaudit.pipeline.store.ledgers.ledger.Ledger.append", _killed)
        take(store, folder)
    assert counts(take(store, folder)) == (1, 0, 0)
    before = document(store)
    store.workspace.database.unlink()
    rebuild(store)
    assert document(store) == before


@pytest.mark.long
def test_what_a_killed_ingest_left_underived_is_derived_by_the_next_one_at_once(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(tmp_path / "logs", 6, 1)
    whole = opened(tmp_path / "whole")
    take(whole, tmp_path / "logs")
    flush = intake.Intake._flush
    killed = iter([False, True])

    def dying(self: intake.Intake, reached: int | None) -> None:
        if next(killed):
            raise KeyboardInterrupt
        flush(self, reached)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(intake, "FLUSH_ROWS", 1)
        patch.setattr("coaudit.pipeline.ingest.blocks.BLOCK_EVENTS", 1)
        patch.setattr(intake.Intake, "_flush", dying)
        take(store, tmp_path / "logs")
    assert rows(store, "SELECT count(*) AS n FROM postponed") == [{"n": 1}]
    take(store, tmp_path / "logs")
    assert document(store) == document(whole)


def _killed(ledger: object, lines: list[str]) -> None:
    raise KeyboardInterrupt


def test_what_a_reader_did_not_foresee_costs_only_its_source(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coaudit.pipeline.systems import registry
    from coaudit.pipeline.systems.cogym import reader

    good = session(tmp_path / "logs" / NAME)
    bad = session(tmp_path / "logs" / "env_bad")
    read = reader.read
    system = dataclasses.replace(registry.SYSTEMS["cogym"], read=lambda path, options: fails(path, options))

    def fails(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
        if path == bad:
            raise ZeroDivisionError("unforeseen")
        return read(path, options)

    monkeypatch.setitem(registry.SYSTEMS, "cogym", system)
    result = take(store, tmp_path / "logs")
    assert counts(result) == (1, 0, 1)
    assert everything(store)[0]["source"] == str(good)
    assert result.quarantined[0].reason == "its reader failed: ZeroDivisionError: unforeseen"


def test_files_of_a_folder_that_no_reader_knows_are_named(tmp_path: Path, store: Store) -> None:
    chat = json.dumps({"messages": [{"role": "user", "content": "Hello"}]})
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "chats.jsonl").write_text(f"{chat}\n")
    (tmp_path / "logs" / "second.jsonl").write_text(f"# exported in 2026\n{chat}\n")
    (tmp_path / "logs" / ".hidden").write_text("x")
    session(tmp_path / "logs" / NAME)
    result = take(store, tmp_path / "logs")
    assert (result.trajectories, result.again) == (2, 0)
    (note,) = result.notes
    assert note.startswith("left out one file that no known system wrote: second.jsonl; ")


def test_a_log_behind_a_link_is_read_again_where_it_has_grown_and_its_copy_has_it(
    tmp_path: Path, store: Store
) -> None:
    """As snapshots of data sets have their files."""
    log = Log().say(AGENT, "One")
    blobs = session(tmp_path / "blobs" / NAME, log)
    folder = tmp_path / "snapshot" / NAME
    folder.mkdir(parents=True)
    for name in ("event_log.jsonl", "task_performance.json"):
        (folder / name).symlink_to(blobs / name)
    (folder / "passwd").symlink_to("/etc/passwd")
    assert take(store, folder).trajectories == 1
    session(blobs, log.say(USER, "Two"))
    result = take(store, folder, copy=True)
    assert (result.trajectories, result.unchanged) == (1, 0)
    before = document(store)
    shutil.rmtree(tmp_path / "blobs")
    shutil.rmtree(tmp_path / "snapshot")
    assert not rebuild(store).quarantined
    assert document(store) == before
    assert not list(store.workspace.raw.rglob("passwd"))


def test_links_to_folders_elsewhere_are_named_since_they_are_not_followed(
    tmp_path: Path, store: Store
) -> None:
    session(tmp_path / "elsewhere" / NAME)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "pilot").symlink_to(tmp_path / "elsewhere")
    (refused,) = take(store, logs).quarantined
    assert refused.reason == "the folder has only links to folders, which are not followed"
    session(logs / "runs" / NAME)
    (logs / "latest").symlink_to(logs / "runs")  # which is read anyway
    (logs / ".cache").symlink_to(tmp_path)
    result = take(store, logs)
    assert result.trajectories == 1
    assert result.notes[0] == "one link to a folder is not followed: pilot; give its own path"


@pytest.mark.parametrize("logs", [0, 1])
def test_a_folder_with_files_about_it_is_looked_into(tmp_path: Path, store: Store, logs: int) -> None:
    for name in ("README.md", "LICENSE"):
        (tmp_path / name).write_text("These logs are free.\n")
    for number in range(logs):
        (tmp_path / f"{number}.txt").write_text("User: May I?\nBot: You may.\n")
    (wrong,) = take(store, tmp_path).quarantined
    assert wrong.reason.startswith("no logs of a known system in it: ")


def test_what_is_read_beside_a_session_is_not_left_out_and_references_are_a_hint(
    tmp_path: Path, store: Store
) -> None:
    logs = tmp_path / "logs"
    session(logs / NAME)
    (logs / f"{NAME}_config.toml").write_text("[env_args]\nmax_steps = 40\n")
    (logs / "env_other_config.toml").write_text("[env_args]\nmax_steps = 40\n")
    (logs / "2_notes.txt").write_text("Nothing of a recipe\n")
    for name in ("reference", "recipe"):
        shutil.copytree(ROOT / "data" / "overcooked" / name, logs / "prompts" / name)
    hint, left = take(store, logs).notes
    folder = logs / "prompts"
    told = f"4 references and recipes of tasks; `coaudit ingest {logs} --reference {folder}` uses them"
    assert hint == told
    names = "2_notes.txt, env_other_config.toml"
    assert left.startswith(f"left out 2 files that no known system wrote: {names}; ")
    ingest(store, [logs], ReadOptions(), reference=folder)
    assert take(store, logs).notes == [left], "once they are used, nobody need be told how to"


def test_two_versions_of_a_trajectory_in_one_run_are_counted_as_one(tmp_path: Path, store: Store) -> None:
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good morning"}]
    file = tmp_path / "chats.jsonl"
    lines = [{"id": "one", "messages": turns[:1]}, {"id": "one", "messages": turns}, {"messages": turns[:1]}]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    result = take(store, file)
    assert (result.trajectories, result.events, result.again) == (2, 3, 1)
    assert result.remarks.actors == {"human": {"user": 2}, "agent": {"assistant": 1}}
    assert result.remarks.messages == 3
    assert rows(store, "SELECT count(*) AS n FROM events") == [{"n": 3}]


def test_chats_that_repeat_the_beginning_of_another_are_told_of_as_a_models_calls(
    tmp_path: Path, store: Store
) -> None:
    """As a proxy logs calls, each line has all messages before it: one session counted as three."""
    said = ["To Ulm.", "When?", "Now.", "Booked.", "Bye.", "Bye."]
    talk = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]
    calls = [{"id": f"c{end}", "messages": talk[:end]} for end in (2, 4, 6)]
    file = tmp_path / "calls.jsonl"
    file.write_text("".join(f"{json.dumps(call)}\n" for call in calls))
    notes = [note for note in take(store, file).remarks.notes() if "begin as another" in note]
    assert [note.partition(",")[0] for note in notes] == ["2 of 3 chats begin as another one does"]
    greetings = [{"messages": [{"role": "user", "content": str(n)}, talk[1]]} for n in range(3)]
    file.write_text("".join(f"{json.dumps(chat)}\n" for chat in greetings))
    assert not [note for note in take(store, file).remarks.notes() if "begin as another" in note]


def test_chats_of_one_question_that_share_a_sessions_id_are_told_of_as_its_turns(
    tmp_path: Path, store: Store
) -> None:
    def turn(name: str, text: str) -> dict[str, object]:
        said = [{"role": "user", "content": text}, {"role": "assistant", "content": f"Yes, {text}"}]
        return {"id": name, "messages": said}

    def notes(*turns: dict[str, object]) -> list[str]:
        file = tmp_path / "turns.jsonl"
        file.write_text("".join(f"{json.dumps(one)}\n" for one in turns))
        return [note for note in take(store, file).remarks.notes() if "share a session's id" in note]

    (note,) = notes(turn("s1", "To Ulm?"), turn("s1", "Now?"), turn("s2", "To Bonn?"))
    assert note.startswith("2 of 3 chats have one question each")
    assert note.partition("such as ")[2].startswith("'s1'")
    assert not notes(turn("s1", "To Ulm?"), turn("s2", "Now?"), turn("s3", "To Bonn?"))


def test_times_that_no_date_can_be_read_from_are_remarked_on(tmp_path: Path, store: Store) -> None:
    file = tmp_path / "log.csv"
    file.write_text(
        "session,role,said,when\n1,user,Hello,2026-02-03T10:00:00Z\n1,agent,Hi,2026-02-03 10:00\n"
        "2,user,Hello,10:00\n2,agent,Hi,about noon\n"
    )
    mapping = """
        [trajectory]
        native_id = "session"
        [event]
        role = "role"
        text = "said"
        time = "when"
    """
    result = take(store, file, system="mapped", map=mapping)
    assert (result.trajectories, result.quarantined) == (2, [])
    assert [note for note in result.remarks.notes() if "ISO" in note] == [
        "2 of 4 times are not ISO 8601, such as '10:00': days and durations leave them out. [constants] "
        "time_format of a mapping (--map) says how they are written"
    ]


def test_messages_without_any_text_are_remarked_on(tmp_path: Path, store: Store) -> None:
    file = tmp_path / "log.csv"
    file.write_text("session,who,what\n1,user,Hello\n1,bot,Hi\n")
    mapping = """
        [trajectory]
        native_id = "session"
        [event]
        role = "who"
        text = "what"
        [roles]
        user = "human"
        bot = "agent"
    """
    wrong = mapping.replace('"what"', '"waht"')
    assert not any("text" in note for note in take(store, file, system="mapped", map=mapping).remarks.notes())
    notes = list(take(store, file, system="mapped", map=wrong).remarks.notes())
    assert any(note.startswith("none of the 2 messages has a text") for note in notes)
    half = mapping.replace('"what"', '"why"')
    file.write_text("session,who,what,why\n1,user,Hello,Hm\n1,bot,Hi,\n")
    notes = list(take(store, file, system="mapped", map=half).remarks.notes())
    assert any(note.startswith("1 of 2 messages has no text") for note in notes)


@pytest.mark.long
def test_an_ingest_leaves_nothing_for_the_next_command_to_derive(tmp_path: Path) -> None:
    fresh = opened(tmp_path / "workspace")
    take(fresh, session(tmp_path / NAME))
    standing = fresh.standing()
    assert standing is not None and not standing.lags
    own = fresh.workspace.codebooks
    own.mkdir()
    shipped = (ROOT / "schemas" / "codebooks" / "initiative.toml").read_text()
    (own / "own.toml").write_text(shipped.replace('"initiative"', '"own"', 1))
    standing = fresh.standing()
    assert standing is not None and standing.lags
    take(fresh, session(tmp_path / "more" / NAME, Log().say(AGENT, "May I?").finish()))
    standing = fresh.standing()
    assert standing is not None and not standing.lags
    rated = rows(fresh, "SELECT DISTINCT codebook FROM codebook_units WHERE codebook = 'own'")
    assert rated == [{"codebook": "own"}]


def test_the_hidden_information_reaches_neither_units_nor_what_is_shown(tmp_path: Path, store: Store) -> None:
    from coaudit.pipeline import codebooks
    from coaudit.pipeline.store.queries import trajectories
    from coaudit.pipeline.units import cut

    hidden = {"Preferences": ["Budget of $3,400"]}
    log = Log().say(AGENT, "How much?").say(USER, "Little")
    take(store, log.folder(tmp_path / NAME, simulated(hidden)))
    found = trajectories.one(store, NAME, states=True)
    assert trajectories.document(found, hidden=True)["hidden"] == hidden
    assert "3,400" not in json.dumps(trajectories.document(found, states=True))
    for name in codebooks.names():
        for unit in cut(found, codebooks.load(name), include_query=True):
            assert "3,400" not in unit.model_dump_json()


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    generate(tmp_path / "logs", 300, 1)
    whole = opened(tmp_path / "whole")
    take(whole, tmp_path / "logs")
    killed = opened(tmp_path / "killed")
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "ingest", str(tmp_path / "logs")]
    environment = {**os.environ, "COAUDIT_WORKSPACE": str(killed.workspace.path)}
    stopped = 0
    for wait in (0.7, 1.0, 1.3, 1.6, 2.0, 2.5):
        running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        time.sleep(wait)
        stopped += running.poll() is None
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert stopped >= 2
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    assert document(killed) == document(whole)
    killed.workspace.database.unlink()
    rebuild(killed)
    assert document(killed) == document(whole)


@pytest.mark.long
def test_what_is_in_quarantine_is_said_again_as_long_as_it_is_so(
    tmp_path: Path, coaudit: Coaudit, workspace: Path
) -> None:
    log = Log().say(AGENT, "Hi").say(USER, "Hello").folder(tmp_path / "logs" / NAME) / "event_log.jsonl"
    whole = log.read_text()
    log.write_text(whole.replace("\n", "\nbroken\n", 1))
    said = [coaudit("ingest", tmp_path / "logs", "--json").json for _ in range(3)]
    assert [(d["trajectories"], d["unchanged"], len(d["quarantined"])) for d in said] == [
        (1, 0, 1),
        (0, 1, 1),
        (0, 1, 1),
    ]
    listed = coaudit("quarantine", "list", "--json").json["rows"]
    assert listed == said[2]["quarantined"] and listed[0]["line"] == 2
    assert f"{log}" in coaudit("quarantine", "list").out.replace("\n", "")
    log.write_text(whole)
    assert coaudit("ingest", tmp_path / "logs", "--json").json["quarantined"] == []
    assert coaudit("quarantine", "list", "--json").json == {"rows": []}


def test_a_name_that_is_not_utf_8_costs_only_its_own_session(tmp_path: Path, coaudit: Coaudit) -> None:
    Log().say(AGENT, "Hi").folder(tmp_path / "logs" / "a" / NAME)
    other = Log().say(AGENT, "Ho").folder(tmp_path / "logs" / "b" / NAME)
    os.rename(os.fsencode(other), os.fsencode(other.parent) + b"/env_\xff_0")
    done = coaudit("ingest", tmp_path / "logs", "--json").json
    assert done["trajectories"] == 1
    assert [("\\udcff" in q["source"], "not UTF-8" in q["reason"]) for q in done["quarantined"]] == [
        (True, True)
    ]


@pytest.mark.long
def test_what_a_source_has_in_quarantine_outlives_the_transactions_that_its_reading_takes(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_EVENTS", 1)
    monkeypatch.setattr(intake, "FLUSH_ROWS", 1)
    chats = [json.dumps({"messages": [{"role": "user", "content": f"Hi {n}"}]}) for n in range(4)]
    log = tmp_path / "chats.jsonl"
    log.write_text("\n".join([chats[0], "broken", *chats[1:], "broken too"]) + "\n")
    assert len(take(store, log).quarantined) == 2
    assert [row["line"] for row in rows(store, "SELECT line FROM quarantine ORDER BY 1")] == [2, 6]


@pytest.mark.long
def test_references_given_later_are_said_with_what_they_measure_and_a_folder_without_any_is_refused(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    logs, references = ROOT / "data/overcooked/logs", ROOT / "data/overcooked/reference"
    stored = coaudit("ingest", logs, "--json").json["trajectories"]
    (tmp_path / "empty").mkdir()
    refused = coaudit("ingest", logs, "--reference", tmp_path / "empty", status=1)
    assert "empty: has neither reference action trajectories nor recipes" in refused.err
    taken = coaudit("ingest", logs, "--reference", references)
    tasks = len(list(references.iterdir()))
    measured = f"references of {tasks} tasks, by which {stored} stored trajectories are measured anew"
    assert f"{references}: {measured}" in taken.err


@pytest.mark.long
def test_a_game_is_known_for_a_copy_when_the_record_that_goes_on_from_it_comes(
    tmp_path: Path, store: Store
) -> None:
    whole = json.loads((ROOT / "data/coblock/record_25.json").read_text())
    first = whole | {"id": 24, "record": {**whole["record"], "actionHistory": []}}
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "24.json").write_text(json.dumps(first))
    take(store, folder, tags={"site": "lab"})
    (folder / "25.json").write_text(json.dumps(whole))
    take(store, folder)
    games = (
        "SELECT json_extract_string(tags, ['site', 'copy_of']) AS tags FROM trajectories ORDER BY native_id"
    )
    assert [row["tags"] for row in rows(store, games)] == [["lab", "25"], [None, None]]
    before = document(store)
    # Nothing that is said or done in it counts once more: neither in the metrics of any team, nor as a unit.
    found = [row for row in json.loads(before)[0] if row["metric"] in ("success_rate", "messages", "errors")]
    assert {(row["n"], row["missing"]) for row in found} == {(1, 1)}
    assert rows(store, "SELECT DISTINCT trajectory_id FROM units") == rows(
        store, "SELECT id AS trajectory_id FROM trajectories WHERE native_id = '25'"
    )
    rebuild(store)
    assert document(store) == before


@pytest.mark.long
@pytest.mark.parametrize("change", ["went on in another way", "the other is gone", "a third is longer"])
def test_a_game_that_is_no_copy_any_more_counts_and_one_of_another_record_says_so(
    tmp_path: Path, store: Store, change: str
) -> None:
    whole = json.loads((ROOT / "data/coblock/record_25.json").read_text())
    history = whole["record"]["actionHistory"]
    folder = tmp_path / "served"
    folder.mkdir()

    def save(number: int, actions: list[object]) -> Path:
        path = folder / f"{number}.json"
        path.write_text(json.dumps(whole | {"id": number, "record": {"actionHistory": actions, **turns}}))
        return path

    turns = {key: whole["record"][key] for key in whole["record"] if key != "actionHistory"}
    save(24, history[:1])
    other = save(25, history[:5])
    take(store, folder, tags={"site": "lab"})
    if change == "went on in another way":
        save(24, [history[0], *history[2:]])
    elif change == "the other is gone":
        other.unlink()
    else:
        other.unlink()
        save(26, history)
    take(store, folder)
    games = """
        SELECT json_extract_string(tags, ['site', 'copy_of']) AS tags FROM trajectories
        WHERE native_id = '24'
    """
    expected = "26" if change == "a third is longer" else None
    assert [row["tags"] for row in rows(store, games)] == [["lab", expected]]
    found = rows(store, "SELECT DISTINCT native_id FROM units JOIN trajectories ON id = trajectory_id")
    assert ("24" in {row["native_id"] for row in found}) == (expected is None)


def test_what_is_said_of_a_run_is_of_what_it_stored_alone(tmp_path: Path, store: Store) -> None:
    """A file holds a session that is known and a new one: nothing of the known one is told again."""
    mapping = """
        [trajectory]
        native_id = "session"
        [event]
        role = "log[].role"
        text = "log[].text"
        time = "log[].at"
    """
    known = {
        "session": "1",
        "log": [{"role": "agent", "text": "b", "at": "then"}, {"role": "tool", "text": "x"}],
    }
    new = {
        "session": "2",
        "log": [
            {"role": "user", "text": "a"},
            {"role": "assistant", "text": "q", "at": "today"},
            {"role": "agent", "text": "q"},
        ],
    }
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text(json.dumps(known) + "\n")
    second.write_text(json.dumps(known) + "\n" + json.dumps(new) + "\n")
    take(store, first, map=mapping, system="mapped")
    said = list(take(store, second, map=mapping, system="mapped").remarks.notes())
    assert said[0] == "participants: user (human, 1 event); assistant, agent (agent, 2 events)"
    assert "1 of 1 time is not ISO 8601, such as 'today'" in said[1]
