"""A stop or a kill loses no alert, and a stop repeats none."""

from __future__ import annotations

import asyncio
import errno
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from coaudit.pipeline.follow.alerts import Alerts, Mark, Webhook
from coaudit.pipeline.follow.marks import Marks
from coaudit.pipeline.follow.sink import Sink
from coaudit.pipeline.store import ALERTS, Store, Workspace, disk, execute
from coaudit.schemas import Event, Participant, Trajectory
from tests.conftest import Coaudit
from tests.pipeline.follow.conftest import Following, Server
from tests.pipeline.follow.emulator import AGENT, USER, Env

HEAD = {
    "type": "trajectory",
    "native_id": "s",
    "participants": [{"name": "ann", "kind": "human"}, {"name": "bot", "kind": "agent"}],
}


def write(log: Path, *talk: tuple[str, str]) -> Path:
    """A log in which these say something."""
    events = [
        {"type": "event", "trajectory": "s", "actor": actor, "kind": "message", "text": text}
        for actor, text in talk
    ]
    log.parent.mkdir(exist_ok=True)
    log.write_text("".join(json.dumps(line) + "\n" for line in (HEAD, *events)))
    return log.parent


def alerts(coaudit: Coaudit, folder: Path, unanswered: float) -> list[tuple[str, int]]:
    """What a follower raises until it is idle: alert and event."""
    seconds = f"--unanswered={unanswered}"
    out = coaudit("follow", folder, "--alerts", seconds, "--stop-when-idle", "0.5").out
    return [(one["alert"], one["event"]) for one in map(json.loads, out.splitlines())]


def marks(workspace: Path) -> list[str]:
    """The keys of the marks that the store has."""
    with Store(Workspace(workspace)).reading() as connection:
        keys = [key for (key,) in connection.execute("SELECT key FROM meta").fetchall()]
    assert keys
    return [key for key in keys if key.startswith(ALERTS)]


def test_who_waits_when_following_ends_is_told_of_by_the_next_follower_once(
    coaudit: Coaudit, tmp_path: Path
) -> None:
    folder = write(tmp_path / "logs" / "s.jsonl", ("ann", "Hello"), ("bot", "Hi"), ("ann", "Where is it?"))
    assert alerts(coaudit, folder, 60) == []
    assert alerts(coaudit, folder, 60) == []
    assert alerts(coaudit, folder, 0) == [("unanswered", 2)]
    assert alerts(coaudit, folder, 0) == []


def test_who_was_answered_while_nobody_followed_waits_no_more(coaudit: Coaudit, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "s.jsonl"
    assert alerts(coaudit, write(log, ("ann", "Where is it?")), 60) == []
    assert alerts(coaudit, write(log, ("ann", "Where is it?"), ("bot", "Here.")), 0) == []


def test_a_follower_of_other_logs_does_not_tell_of_who_waits(coaudit: Coaudit, tmp_path: Path) -> None:
    folder = write(tmp_path / "logs" / "s.jsonl", ("ann", "Where is it?"))
    assert alerts(coaudit, folder, 60) == []
    other = tmp_path / "other"
    other.mkdir()
    assert alerts(coaudit, other, 0) == []
    assert alerts(coaudit, folder, 0) == [("unanswered", 0)]


def test_who_waits_is_told_of_by_a_follower_of_a_link_to_the_folder(coaudit: Coaudit, tmp_path: Path) -> None:
    folder = write(tmp_path / "logs" / "s.jsonl", ("ann", "Where is it?"))
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert alerts(coaudit, folder, 60) == []
    assert alerts(coaudit, link, 0) == [("unanswered", 0)]
    assert alerts(coaudit, folder, 0) == []


def test_who_waits_is_told_of_however_many_sessions_a_follower_takes_up_at_a_time(
    coaudit: Coaudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaudit.pipeline.follow.marks.BATCH", 1)
    for name in "abc":
        folder = write(tmp_path / "logs" / f"{name}.jsonl", ("ann", f"Where is {name}?"))
    assert alerts(coaudit, folder, 60) == []
    assert alerts(coaudit, folder, 60) == []
    assert alerts(coaudit, folder, 0) == [("unanswered", 0)] * 3


def test_who_waits_in_sessions_with_one_id_is_told_of_however_many_are_taken_up_at_a_time(
    coaudit: Coaudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaudit.pipeline.follow.marks.BATCH", 1)
    chats = [{"id": "same", "messages": [{"role": "user", "content": f"Where is {n}?"}]} for n in range(3)]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    assert alerts(coaudit, tmp_path / "logs", 60) == []
    assert alerts(coaudit, tmp_path / "logs", 0) == [("unanswered", 0)] * 3


async def test_a_mark_is_not_looked_at_again_until_its_session_is() -> None:
    """Each of many cost time at each look, ten times a second."""
    looks = []

    class Spy(Alerts):
        def waiting_marks(self, ids: Iterable[str]) -> dict[str, Mark]:
            looks.append(sorted(ids))
            return super().waiting_marks(ids)

    spy = Spy(lambda alert: None, 60.0, lambda texts: [False] * len(texts))
    watch = Marks(cast(Sink, SimpleNamespace(companions=[])), spy, {"t": Mark(0, 0), "u": Mark(0, 0)})
    event = Event(seq=0, actor="ann", kind="message", text="Where is it?")
    ann = Participant(name="ann", kind="human")
    one = Trajectory(id="t", native_id="t", source="s", system="x", participants=(ann,), events=(event,))
    for some in ([], [one], []):
        await spy(some)
        await watch(some)
    assert looks == [[], ["t"], []]
    assert watch.marks.keys() == {"t", "u"}


def test_what_a_kill_kept_from_the_tables_raises_alerts(
    coaudit: Coaudit, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger knows of a log before the tables do, so the next command reads it before it follows."""
    log = tmp_path / "logs" / "s.jsonl"
    log.parent.mkdir()
    assert alerts(coaudit, log.parent, 60) == []
    folder = write(log, ("ann", "Stop, wait!"), ("bot", "Sorry."))

    def fail(point: str, path: Path) -> None:
        sources = (workspace / "sources").glob("*")
        if point == "commit" and any("s.jsonl" in one.read_text() for one in sources):
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "fault", fail)
        assert coaudit("follow", folder, "--alerts", "--stop-when-idle", "0.5", status=1).out == ""
    assert alerts(coaudit, folder, 60) == [("halting_message", 0)]
    assert alerts(coaudit, folder, 60) == []


def test_what_was_raised_and_answered_leaves_no_mark(
    coaudit: Coaudit, workspace: Path, tmp_path: Path
) -> None:
    folder = write(tmp_path / "logs" / "s.jsonl", ("ann", "Stop, wait!"), ("bot", "Sorry."))
    assert alerts(coaudit, folder, 60) == [("halting_message", 0)]
    assert not marks(workspace)


def test_a_chat_without_an_id_that_grew_while_nobody_followed_raises_nothing_again(
    coaudit: Coaudit, tmp_path: Path
) -> None:
    """Its id is another one then."""
    chat = tmp_path / "logs" / "chat.jsonl"
    chat.parent.mkdir()
    messages = [{"role": "user", "content": "Stop, wait!"}, {"role": "assistant", "content": "Sorry."}]
    chat.write_text(json.dumps({"messages": messages}) + "\n")
    coaudit("ingest", chat.parent)
    for event in (2, 4):
        messages += [{"role": "user", "content": "Stop it!"}, {"role": "assistant", "content": "Sorry."}]
        chat.write_text(json.dumps({"messages": messages}) + "\n")
        assert alerts(coaudit, chat.parent, 60) == [("halting_message", event)]
        assert alerts(coaudit, chat.parent, 60) == []
    chat.write_text(json.dumps({"messages": messages[2:4]}) + "\n")
    assert alerts(coaudit, chat.parent, 60) == [("halting_message", 0)]


def test_what_is_forgotten_leaves_no_mark(coaudit: Coaudit, workspace: Path, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "s.jsonl"
    assert alerts(coaudit, write(log, ("ann", "Where is it?")), 60) == []
    coaudit("forget", log)
    assert not marks(workspace)


def test_a_rebuild_keeps_who_waits(coaudit: Coaudit, tmp_path: Path) -> None:
    folder = write(tmp_path / "logs" / "s.jsonl", ("ann", "Where is it?"))
    assert alerts(coaudit, folder, 60) == []
    coaudit("rebuild")
    assert alerts(coaudit, folder, 0) == [("unanswered", 0)]


def test_what_was_stored_after_alerts_failed_is_told_of_by_the_next_follower(
    coaudit: Coaudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the reader of the lines is gone."""
    for name in "ab":
        folder = write(tmp_path / "logs" / f"{name}.jsonl", ("ann", f"Stop it, {name}!"), ("bot", "Sorry."))

    def fail(alert: dict[str, object]) -> str:
        raise BrokenPipeError

    with monkeypatch.context() as patch:
        patch.setattr("coaudit.pipeline.cli.follow.line", fail)
        assert alerts(coaudit, folder, 60) == []
    assert alerts(coaudit, folder, 60) == [("halting_message", 0)] * 2


@pytest.mark.slow
def test_an_alert_that_a_webhook_has_not_taken_is_raised_by_the_next_follower(
    coaudit: Coaudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "logs" / "s.jsonl", ("ann", "Stop, wait!"), ("bot", "Sorry."))

    async def hang(self: Webhook, session: object, alert: object) -> None:
        await asyncio.Event().wait()

    options = ("--webhook", "http://127.0.0.1:1/", "--stop-when-idle", "0.5")
    with monkeypatch.context() as patch:
        patch.setattr(Webhook, "_send", hang)
        assert "stopped before 1 alert could be sent" in coaudit("follow", folder, *options).err
    assert alerts(coaudit, folder, 60) == [("halting_message", 0)]
    assert alerts(coaudit, folder, 60) == []


@pytest.mark.slow
def test_an_alert_that_a_webhook_has_not_taken_is_raised_again_though_its_chat_has_another_id(
    coaudit: Coaudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chat without an id gets one anew as it grows."""
    chat = tmp_path / "logs" / "chat.jsonl"
    chat.parent.mkdir()
    messages = [{"role": "user", "content": "Stop, wait!"}, {"role": "assistant", "content": "Sorry."}]
    chat.write_text(json.dumps({"messages": messages}) + "\n")

    async def grow(self: Webhook, session: object, alert: object) -> None:
        more = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Yes."}]
        chat.write_text(json.dumps({"messages": [*messages, *more]}) + "\n")
        await asyncio.Event().wait()

    options = ("--webhook", "http://127.0.0.1:1/", "--stop-when-idle", "2")
    with monkeypatch.context() as patch:
        patch.setattr(Webhook, "_send", grow)
        assert "stopped before 1 alert could be sent" in coaudit("follow", chat.parent, *options).err
    assert alerts(coaudit, chat.parent, 60) == [("halting_message", 0)]
    assert alerts(coaudit, chat.parent, 60) == []


@pytest.mark.slow
def test_who_waits_in_a_live_session_is_not_told_of_before_its_server_answers(
    redis: Server, follow: Callable[..., Following]
) -> None:
    env = Env("env_travel_planning_0", redis.publish)
    follower = follow(redis.url, "--alerts", "--unanswered", "60").ready(redis)
    env.start()
    env.step(USER, "SEND_TEAMMATE_MESSAGE(message=Where is it?)")
    time.sleep(2.0)
    follower.stop()
    redis.stop()
    follower = follow(redis.url, "--alerts", "--unanswered", "1")
    time.sleep(5.0)
    assert follower.stop().count('"unanswered"') == 0


@pytest.mark.slow
def test_who_waits_in_a_live_session_is_told_of_across_a_kill_once(
    redis: Server, follow: Callable[..., Following]
) -> None:
    env = Env("env_travel_planning_0", redis.publish)
    follower = follow(redis.url, "--alerts", "--unanswered", "60").ready(redis)
    env.start()
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Hello.)")
    env.step(USER, "SEND_TEAMMATE_MESSAGE(message=Where is it?)")
    time.sleep(2.0)
    follower.kill()
    follower = follow(redis.url, "--alerts", "--unanswered", "1").ready(redis)
    assert follower.process.stdout is not None
    alert = json.loads(follower.process.stdout.readline())
    assert alert["alert"] == "unanswered" and alert["text"] == "Where is it?" and alert["seconds"] > 2
    follower.stop()
    follower = follow(redis.url, "--alerts", "--unanswered", "1").ready(redis)
    time.sleep(4.0)
    assert follower.stop().count('"unanswered"') == 0


def test_a_session_without_events_that_a_kill_left_marked_is_taken_up(
    coaudit: Coaudit, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "s.jsonl"
    folder = write(log)
    assert alerts(coaudit, folder, 60) == []
    with Store(Workspace(workspace)).writing() as connection:
        mark = "INSERT INTO meta (key, value) SELECT ? || id, ? FROM trajectories"
        execute(connection, mark, [ALERTS, '{"seq": -1, "waiting": null, "since": 0.0}'])
    write(log, ("ann", "Where is it?"))
    assert alerts(coaudit, folder, 0) == [("unanswered", 0)]
