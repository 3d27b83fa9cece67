"""`coaudit follow redis://…` against a real server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis import Redis, ResponseError

from coaudit.pipeline.errors import SourceError, UsageError
from coaudit.pipeline.follow import redis as redis_module
from coaudit.pipeline.follow.redis import PASSWORD, Channel, ConnectionLoss, Subscription, _plain, _settings
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.cogym.messages import RawMessage
from coaudit.schemas import Event, Outcome, Trajectory
from tests.pipeline.follow.conftest import Following, Server, until
from tests.pipeline.follow.emulator import AGENT, USER, Env, play

pytestmark = pytest.mark.slow
Follow = Callable[..., Following]
IGNORED = {"source", "outcomes", "tags", "events"}


def shown(workspace: Path) -> dict[str, Trajectory]:
    """Every trajectory of a workspace by id."""
    store = Store(Workspace(workspace))
    with store.reading() as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM trajectories ORDER BY id").fetchall()]
        return {found.id: found for found in store.load(connection, ids, states=True)}


def rebuilt(workspace: Path) -> dict[str, Trajectory]:
    """The same after a rebuild."""
    rebuild(Store(Workspace(workspace)))
    return shown(workspace)


def logged(trajectory: Trajectory) -> list[Event]:
    return [event for event in trajectory.events if not event.live_only]


def beside(trajectory: Trajectory) -> list[Event]:
    return [event for event in trajectory.events if event.live_only]


def outcome(trajectory: Trajectory) -> dict[str, Outcome]:
    return {found.name: found for found in trajectory.outcomes}


def ingested(results: Path, other: Path) -> dict[str, Trajectory]:
    """The same folders read by `ingest` into a workspace of their own."""
    ingest(Store(Workspace(other)), [results], ReadOptions())
    return shown(other)


def equal(followed: dict[str, Trajectory], read: dict[str, Trajectory]) -> None:
    """Followed sessions are the ingested folders once live_only events are set aside."""
    for key, expected in read.items():
        assert logged(followed[key]) == list(expected.events)
        assert followed[key].model_dump(exclude=IGNORED | {"hidden"}) == expected.model_dump(
            exclude=IGNORED | {"hidden"}
        )
        ours, theirs = outcome(followed[key]), outcome(expected)
        heard = ours["end_reason"].data
        if isinstance(heard, dict) and "heard" in heard:  # a folder can only imply it
            theirs["end_reason"] = ours["end_reason"]
        assert {**ours, "heard": None} == {**theirs, "heard": None}


def perform(server: Server, results: Path, sessions: int, first: int = 0, pause: float = 0.0) -> list[Env]:
    """Sessions side by side, as fast as they go, numbered from the first."""
    with Redis(port=server.port) as client:
        envs = [
            Env(f"env_travel_planning_{n}", lambda c, p: client.publish(c, p.encode()), results, f"Trip {n}")
            for n in range(first, first + sessions)
        ]
        running = [play(env, n, steps=15) for n, env in enumerate(envs, first)]
        while running:
            running = [one for one in running if next(one, "over") != "over"]
            time.sleep(pause)
    return envs


def replay(server: Server, recording: Path, speed: float) -> None:
    """Publish recorded traffic as fast as `speed` times the way it was."""
    messages = [json.loads(line) for line in recording.read_text().splitlines()]
    began = time.time()
    with Redis(port=server.port) as client:
        for message in messages:
            ahead = (message["time"] - messages[0]["time"]) / speed - (time.time() - began)
            time.sleep(max(0.0, ahead))
            client.publish(message["channel"], message["payload"])


def test_followed_sessions_equal_the_ingested_folders(
    redis: Server, follow: Follow, tmp_path: Path, workspace: Path
) -> None:
    results = tmp_path / "results"
    follower = follow(redis.url, "--results", results, "--stop-when-idle", "3").ready(redis)
    perform(redis, results, sessions=8)
    follower.finish()
    followed, read = shown(workspace), ingested(results, tmp_path / "other")
    assert len(read) == 8
    equal(followed, read)
    assert set(followed) == set(read)
    waits = [e for t in followed.values() for e in t.events if e.kind == "wait"]
    assert waits and all(e.live_only for e in waits)
    assert rebuilt(workspace) == followed


def test_recorded_sessions_at_a_hundred_times_their_speed_equal_their_folders(
    redis: Server, follow: Follow, tmp_path: Path, shared: Path, workspace: Path
) -> None:
    results = shared / "data/cogym/results"
    follower = follow(redis.url, "--results", results, "--stop-when-idle", "3").ready(redis)
    recordings = sorted((shared / "data/cogym/redis").glob("*.jsonl"))
    threads = [threading.Thread(target=replay, args=(redis, path, 100.0)) for path in recordings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    follower.finish()
    followed, read = shown(workspace), ingested(results, tmp_path / "other")
    equal(followed, read)
    # What was heard of session 6 belongs to an earlier run than the one in its folder.
    assert len(set(followed) - set(read)) == 1


def test_malformed_payloads_between_good_ones_are_quarantined_and_nothing_else_is_lost(
    redis: Server, follow: Follow, tmp_path: Path, workspace: Path
) -> None:
    results = tmp_path / "results"
    follower = follow(redis.url, "--results", results, "--stop-when-idle", "3").ready(redis)
    bad = [
        "",
        "null",
        '{"data": 5}',
        '{"data": {"object": {"role": 5, "action": "x"}}}',
        "\udcff\udcfe",
        "[" * 9999,
    ]
    with Redis(port=redis.port) as client:

        def publish(channel: str, payload: str) -> None:
            client.publish(channel, payload.encode())
            redis.publish("env_travel_planning_0/step", bad[len(channel) % len(bad)])
            redis.publish("news/step", "of something else")

        for _ in play(Env("env_travel_planning_0", publish, results), 3, steps=8):
            pass
    summary = json.loads(follower.finish())
    equal(shown(workspace), ingested(results, tmp_path / "other"))
    assert summary["quarantined"] > 5


def test_bytes_that_are_no_text_are_read_as_a_rebuild_reads_them(
    redis: Server, follow: Follow, workspace: Path
) -> None:
    follower = follow(redis.url, "--stop-when-idle", "3").ready(redis)
    with Redis(port=redis.port) as client:

        def publish(channel: str, payload: str) -> None:
            client.publish(*(text.encode("utf-8", "surrogateescape") for text in (channel, payload)))

        publish("env_\udcfe/step", "\udcff")
        env = Env("env_\udcff", publish)
        env.start()
        env.step(USER, "SEND_TEAMMATE_MESSAGE(message=a caf\udce9)")
    summary = json.loads(follower.finish())
    followed = shown(workspace)
    (session,) = followed.values()
    assert session.native_id == "env_\ufffd"
    assert [e.text for e in session.events if e.kind == "message"][-1] == "a caf\ufffd"
    assert summary["quarantined"] == 1
    assert rebuilt(workspace) == followed


async def test_a_stop_while_it_subscribes_ends_it(redis: Server) -> None:
    class Hasty(Channel):
        async def _subscribe(self, pubsub: Any) -> None:
            await super()._subscribe(pubsub)
            await self.stop()

    async with asyncio.timeout(30):
        items = [item async for item in Hasty(redis.url, print).messages()]
    assert items == [Subscription()]


def hurry(monkeypatch: pytest.MonkeyPatch, poll: float) -> None:
    """Have a follower look for a server's answer every tenth of a second, and doubt it after three."""
    for name, seconds in {"CHECK": 0.1, "POLL": poll, "SILENCE": 0.3, "FAREWELL": 0.3}.items():
        monkeypatch.setattr(redis_module, name, seconds)


async def test_a_server_that_stands_still_is_told_and_loses_nothing(
    redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was said of it, however long, and a stop waited two minutes for its answer."""
    hurry(monkeypatch, poll=0.1)
    said: list[str] = []
    channel = Channel(redis.url, said.append)
    stream = channel.messages()
    assert await anext(stream) == Subscription()
    redis.freeze()
    redis.thaw_when(lambda: said)
    with Redis(port=redis.port, socket_timeout=60) as client:
        publishing = asyncio.to_thread(client.publish, "env_s/start", "{}")
        message, _ = await asyncio.gather(anext(stream), publishing)
    assert isinstance(message, RawMessage) and message.channel == "env_s/start"
    assert len(said) == 1 and "no answer for" in said[0]
    redis.freeze()
    await channel.stop()
    try:
        assert [type(one) async for one in stream] == [ConnectionLoss]
    finally:
        redis.thaw()
    assert "what was published last may be missing" in said[-1]


async def test_whoever_takes_messages_slowly_loses_none_also_after_a_stop(
    redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time until the next was read was taken for the server's silence, and what waited was dropped."""
    hurry(monkeypatch, poll=0.2)
    said: list[str] = []
    channel = Channel(redis.url, said.append, patience=0.3)
    stream = channel.messages()
    assert await anext(stream) == Subscription()
    for n in range(3):
        redis.publish(f"env_s{n}/start", "{}")
    items = [await anext(stream)]
    await asyncio.sleep(1)
    items.append(await anext(stream))
    await channel.stop()
    await asyncio.sleep(1)
    items += [one async for one in stream]
    assert [getattr(one, "channel", one) for one in items] == [f"env_s{n}/start" for n in range(3)]
    assert said == []


async def test_a_server_that_a_script_keeps_busy_is_waited_for(
    redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers pings with an error, which ended the following."""
    for name, seconds in {"CHECK": 0.1, "POLL": 0.1}.items():
        monkeypatch.setattr(redis_module, name, seconds)
    channels = [Channel(redis.url, lambda text: None) for _ in range(2)]
    streams = [channel.messages() for channel in channels]
    assert await anext(streams[0]) == Subscription()
    with Redis(port=redis.port) as client, Redis(port=redis.port) as other:
        client.config_set("lua-time-limit", 50)
        script = asyncio.create_task(asyncio.to_thread(_loop, other))
        while not await asyncio.to_thread(_is_busy, client):
            await asyncio.sleep(0.05)
        firsts = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0.5)
        client.script_kill()
        await script
        assert await firsts[1] == Subscription()
        client.publish("env_s/start", "{}")
        message = await firsts[0]
    assert isinstance(message, RawMessage) and message.channel == "env_s/start"
    for channel, stream in zip(channels, streams, strict=True):
        await channel.stop()
        assert {type(one) async for one in stream} <= {RawMessage}


def _loop(client: Redis) -> None:
    with contextlib.suppress(ResponseError):
        client.eval("while true do end", 0)


def _is_busy(client: Redis) -> bool:
    try:
        return not client.ping()
    except ResponseError:
        return True


async def test_a_connection_that_is_dead_is_made_anew_where_the_server_answers_others(
    redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in {"CHECK": 0.1, "POLL": 0.1, "SILENCE": 0.3}.items():
        monkeypatch.setattr(redis_module, name, seconds)
    channel = Channel(redis.url, lambda text: None)
    stream = channel.messages()
    assert await anext(stream) == Subscription()
    monkeypatch.setattr(redis_module, "_silence", lambda pubsub: 9.0)
    again = await anext(stream)
    assert isinstance(again, Subscription) and again.away is not None
    monkeypatch.undo()
    await channel.stop()
    assert [one async for one in stream] == []


def test_redis_restarted_in_the_middle_loses_nothing_that_the_folder_has(
    redis: Server, follow: Follow, tmp_path: Path, workspace: Path
) -> None:
    results = tmp_path / "results"
    follower = follow(redis.url, "--results", results, "--stop-when-idle", "4").ready(redis)

    def publish(channel: str, payload: str) -> None:
        if redis.process:
            redis.publish(channel, payload)

    env = Env("env_travel_planning_0", publish, results)
    for number, _ in enumerate(play(env, 5, steps=20)):
        if number == 6:
            redis.stop()
        if number == 12:
            redis.start()
            until(redis.subscribers)
    follower.finish()
    assert "trying again" in follower.said and "back after" in follower.said
    followed = shown(workspace)
    equal(followed, ingested(results, tmp_path / "other"))
    (only,) = followed.values()
    assert outcome(only)["heard"].text == "with gaps"


def test_a_follower_killed_and_started_again_goes_on_with_its_sessions(
    redis: Server, follow: Follow, tmp_path: Path, workspace: Path
) -> None:
    follower = follow(redis.url).ready(redis)
    env = Env("env_travel_planning_0", redis.publish)
    env.start()
    env.step(USER, "WAIT_TEAMMATE_CONTINUE()")
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Before)")
    # What Redis had not handed over yet when the follower dies is lost with it: there is no history.
    recorded = workspace / "raw" / "live"
    until(lambda: any("=Before)" in path.read_text() for path in recorded.rglob("*.jsonl")))
    follower.kill()
    until(lambda: not redis.subscribers())
    follower = follow(redis.url, "--stop-when-idle", "2").ready(redis)
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=After)")
    env.step(USER, "FINISH()")
    follower.finish()
    assert "continuing 1 session of" in follower.said
    (only,) = shown(workspace).values()
    assert [e.text for e in logged(only)][1:4] == [env.query, "Before", "After"]
    assert [e.kind for e in beside(only)] == ["wait"]
    assert list(rebuilt(workspace).values()) == [only]


def test_a_session_that_runs_already_is_asked_for_its_state_once(
    redis: Server, follow: Follow, tmp_path: Path, workspace: Path
) -> None:
    results = tmp_path / "results"
    env = Env("env_travel_planning_0", redis.publish, results)
    env.start()
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Before)")
    with Redis(port=redis.port) as client, client.pubsub() as asked:
        asked.psubscribe("*/request_state")
        asked.get_message(timeout=5)
        until(lambda: redis.subscribers() == 1)
        follower = follow(redis.url, "--results", results, "--stop-when-idle", "3")
        until(lambda: redis.subscribers() == 2)
        for _ in range(3):
            env.step(AGENT, "FLIGHT_SEARCH(origin=A, destination=B, date=C)")
        request = asked.get_message(timeout=5)
        assert request and request["channel"] == f"{env.name}/{AGENT}/request_state".encode()
        env.answer(AGENT)
        assert asked.get_message(timeout=0.5) is None
    env.step(USER, "WAIT_TEAMMATE_CONTINUE()")
    env.step(USER, "FINISH()")
    follower.finish()
    assert "joined late" in follower.said
    followed = shown(workspace)
    equal(followed, ingested(results, tmp_path / "other"))
    (only,) = followed.values()
    assert outcome(only)["heard"].text == "joined late"
    assert rebuilt(workspace) == followed


def test_a_session_that_began_while_redis_was_away_is_asked_for_its_state_before_it_speaks(
    redis: Server, follow: Follow, workspace: Path
) -> None:
    follower = follow(redis.url, "--stop-when-idle", "4", "--json").ready(redis)
    redis.stop()
    redis.start()
    env = Env("env_travel_planning_0", lambda channel, payload: None)
    env.start()
    for number in range(20):
        env.step(AGENT, f"SEND_TEAMMATE_MESSAGE(message=Lost {number})")
    with Redis(port=redis.port) as client, client.pubsub() as asked:
        asked.subscribe(f"{env.name}/{AGENT}/request_state")
        asked.get_message(timeout=5)
        until(redis.subscribers)
        request = asked.get_message(timeout=5)
        assert request and request["channel"] == f"{env.name}/{AGENT}/request_state".encode()
        env.publish = redis.publish
        env.answer(AGENT)
        follower.finish()
    (only,) = shown(workspace).values()
    assert [e.text for e in logged(only)][2:] == [f"Lost {number}" for number in range(20)]


def test_a_silent_session_is_closed_as_abandoned_and_a_rebuild_knows_it(
    redis: Server, follow: Follow, workspace: Path
) -> None:
    follower = follow(redis.url, "--silence", "0.5", "--stop-when-idle", "2.5").ready(redis)
    Env("env_travel_planning_0", redis.publish).start()
    follower.finish()
    (only,) = shown(workspace).values()
    assert outcome(only)["end_reason"].text == "abandoned"
    assert list(rebuilt(workspace).values()) == [only]


def test_a_session_that_ended_unheard_is_told_at_the_end_until_its_folder_is_read(
    redis: Server, follow: Follow, tmp_path: Path, workspace: Path
) -> None:
    results = tmp_path / "results"
    first = follow(redis.url).ready(redis)
    env = Env("env_travel_planning_0", redis.publish, results)
    env.start()
    first.stop()
    env.step(AGENT, "EDITOR_UPDATE(text=Day 1)")
    env.step(USER, "FINISH()")
    second = follow(redis.url, "--stop-when-idle", "1")
    assert json.loads(second.finish())["unsettled"] == 1
    assert "1 session has shown nothing since nobody listened" in second.said
    third = follow(redis.url, results, "--stop-when-idle", "1")
    assert json.loads(third.finish())["unsettled"] == 0
    assert "shown nothing" not in third.said
    (only,) = shown(workspace).values()
    assert outcome(only)["end_reason"].text == "finished"


def test_a_second_follower_of_one_server_waits_and_takes_over(
    redis: Server, follow: Follow, workspace: Path
) -> None:
    first = follow(redis.url).ready(redis)
    second = follow(redis.url, "--stop-when-idle", "3")
    until(lambda: "waiting to take over" in second.said)
    env = Env("env_travel_planning_0", redis.publish)
    env.start()
    first.stop()
    until(lambda: "continuing 1 session of" in second.said and redis.subscribers())
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Hello)")
    second.finish()
    (only,) = shown(workspace).values()
    assert logged(only)[-1].text == "Hello"


def test_two_followers_of_two_servers_fill_one_workspace_side_by_side(
    redis_at: Callable[..., Server], follow: Follow, tmp_path: Path, workspace: Path
) -> None:
    servers = [redis_at(), redis_at()]
    folders = [tmp_path / "results" / name for name in ("one", "other")]
    options = ("--judge", "halting", "--stop-when-idle", "8")
    followers = [follow(s.url, "--results", f, *options) for s, f in zip(servers, folders, strict=True)]
    for follower, server in zip(followers, servers, strict=True):
        follower.ready(server)
    threads = [
        threading.Thread(target=perform, args=(server, folder, 4, first, 0.05))
        for server, folder, first in zip(servers, folders, (0, 4), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    summaries = [json.loads(follower.finish()) for follower in followers]
    followed, read = shown(workspace), ingested(tmp_path / "results", tmp_path / "alone")
    assert len(read) == 8 and [summary["trajectories"] for summary in summaries] == [4, 4]
    equal(followed, read)
    assert set(followed) == set(read)
    equal(rebuilt(workspace), read)


def test_a_server_that_is_not_there_is_tried_for_a_while_and_named(follow: Follow, workspace: Path) -> None:
    follower = follow("redis://127.0.0.1:1/0", "--patience", "1")
    follower.finish(status=1)
    assert "redis://127.0.0.1:1/0: no Redis answered for 1 s (--patience)" in follower.said
    assert "once it answers, run `coaudit follow` again to continue" in follower.said
    assert "TLS" not in follower.said


@pytest.mark.parametrize(("given", "right"), [("redis", "rediss:// (TLS)"), ("rediss", "redis:// (no TLS)")])
@pytest.mark.parametrize(
    "answer", [b"", b"\x15\x03\x03\x00\x02\x02\x46", b"HTTP/1.1 400 Bad Request\r\n\r\n"]
)
def test_a_server_that_listens_and_does_not_answer_may_want_the_other_scheme(
    given: str, right: str, answer: bytes
) -> None:
    with pytest.raises(SourceError, match=re.escape(f"is it {right}?")):
        asyncio.run(listen(given, answer))


@pytest.mark.parametrize(
    "answer",
    [b"-LOADING Redis is loading the dataset in memory\r\n", b"-ERR max number of clients reached\r\n"],
)
def test_a_redis_that_says_why_it_does_not_serve_speaks_the_right_scheme(answer: bytes) -> None:
    with pytest.raises(SourceError, match=r"loading|max number") as error:
        asyncio.run(listen("redis", answer))
    assert "TLS" not in str(error.value)


async def listen(scheme: str, answer: bytes) -> None:
    """Listen, without patience, to a server that answers this and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async for _ in Channel(f"{scheme}://127.0.0.1:{port}/0", lambda text: None, 0.0).messages():
            pass


def test_a_password_is_asked_for_taken_from_the_environment_and_never_shown(
    redis_at: Callable[..., Server], follow: Follow, workspace: Path
) -> None:
    server = redis_at("--requirepass", "hunter2")
    refused = follow(server.url)
    refused.finish(status=1)
    assert "REDIS_PASSWORD" in refused.said
    wrong = follow(server.url.replace("//", "//:hunter3@"))
    wrong.finish(status=1)
    assert "the server wants a password, or another one" in wrong.said
    taken = follow(server.url, "--stop-when-idle", "1", REDIS_PASSWORD="hunter2")
    taken.finish()
    inside = follow(server.url.replace("//", "//:hunter2@"), "--stop-when-idle", "1")
    inside.finish()
    assert "hunter" not in refused.said + wrong.said + taken.said + inside.said
    assert not [p for p in workspace.rglob("*.jsonl") if "hunter" in p.read_text()]


@pytest.mark.parametrize("url", ["redis://host:port/0", "redis://host/x", "http://host/"])
def test_an_address_that_is_none_is_wrong_use(url: str, follow: Follow, workspace: Path) -> None:
    assert follow(url).finish(status=2) == ""


def test_a_full_disk_stops_the_follower_which_says_so_and_goes_on_later(
    redis: Server, follow: Follow, tmp_path: Path, workspace: Path
) -> None:
    results = tmp_path / "results"
    follower = follow(redis.url).ready(redis)
    env = Env("env_travel_planning_0", redis.publish, results)
    steps = play(env, 7, steps=25)
    next(steps)
    until(lambda: list((workspace / "raw/live").rglob("0*.jsonl")))
    size = max(path.stat().st_size for path in (workspace / "raw/live").rglob("0*.jsonl"))
    # To a process, a file that may not grow looks like a disk that is full.
    resource.prlimit(follower.process.pid, resource.RLIMIT_FSIZE, (size + 5000, size + 5000))
    while follower.process.poll() is None and next(steps, "over") != "over":
        time.sleep(0.05)
    follower.finish(status=1)
    assert "cannot" in follower.said and "again" in follower.said
    again = follow(redis.url, results, "--stop-when-idle", "3").ready(redis)
    for _ in steps:
        pass
    again.finish()
    equal(shown(workspace), ingested(results, tmp_path / "other"))


@pytest.mark.parametrize("database", ["\u00b2", "\u0663", "x"])
def test_a_database_is_a_number_in_digits(database: str) -> None:
    with pytest.raises(UsageError, match="with the db a number"):
        _settings(f"redis://h/{database}")


def test_a_password_is_hidden_as_the_url_writes_it_and_as_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "hunter2")
    error = OSError("refused: p@s, p%40s and hunter2")
    assert _plain(error, "redis://:p%40s@h/0") == "refused: ***, *** and ***"
