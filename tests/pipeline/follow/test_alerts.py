"""Alerts: a dead loop, a person left unanswered, a call to halt."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from coaudit.judges.rules.lexical import halts
from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.follow import Follower
from coaudit.pipeline.follow import alerts as module
from coaudit.pipeline.follow.alerts import Alerts, Mark, Webhook
from coaudit.pipeline.systems import merge
from coaudit.schemas import Action, Event, Outcome, Participant, Trajectory
from tests.conftest import Coaudit
from tests.pipeline.follow.conftest import Following, Server
from tests.pipeline.follow.emulator import AGENT, USER, Env

TEAM = (Participant(name="a", kind="agent"), Participant(name="h", kind="human"))


def trajectory(*events: Event, ended: bool = False) -> Trajectory:
    """A trajectory of these events, numbered."""
    numbered = tuple(e.model_copy(update={"seq": n}) for n, e in enumerate(events))
    reason = Outcome(name="end_reason", text="finished" if ended else "unfinished")
    return Trajectory(
        id="t", native_id="t", source="s", system="x", participants=TEAM, events=numbered, outcomes=(reason,)
    )


def heard(*events: Event) -> Trajectory:
    """The same of which all that is known was heard live."""
    one = trajectory(*events)
    return one.model_copy(update={"outcomes": (*one.outcomes, merge.hearing_outcome(late=False, gaps=0))})


def says(text: str, actor: str = "h") -> Event:
    return Event(seq=0, actor=actor, kind="message", text=text, status="succeeded")


def acts(name: str) -> Event:
    return Event(seq=0, actor="a", kind="action", action=Action(name=name), status="succeeded")


async def alerts(
    *looks: Trajectory, wait: float = 60.0, initial: dict[str, int] | None = None, **more: Any
) -> list[Any]:
    """The alerts that looking at these, one after the other, raises."""
    found: list[dict[str, Any]] = []
    watch = Alerts(found.append, wait, halts, initial or {}, **more)
    for look in looks:
        await watch([look])
    await asyncio.sleep(0.02)
    await watch([])
    return [(alert["alert"], alert["event"]) for alert in found]


async def test_an_agent_that_waits_is_in_no_loop() -> None:
    wait = Event(seq=0, actor="a", kind="wait", action=Action(name="null"), status="succeeded")
    assert await alerts(trajectory(wait, wait, wait)) == []
    assert await alerts(trajectory(acts("SEARCH"), acts("SEARCH"), wait, acts("SEARCH"))) == []


async def test_the_third_same_action_in_a_row_is_a_dead_loop_and_is_said_once() -> None:
    loop = [acts("SEARCH"), acts("SEARCH"), says("hm", "a"), acts("SEARCH"), acts("SEARCH")]
    assert await alerts(trajectory(*loop)) == [("dead_loop", 3)]
    assert await alerts(trajectory(acts("A"), acts("B"), acts("A"), acts("B"), acts("A"))) == []


async def test_a_call_to_halt_is_said_once_however_often_the_session_is_looked_at() -> None:
    begun = trajectory(says("Please stop editing."), acts("A"))
    grown = trajectory(says("Please stop editing."), acts("A"), acts("B"))
    assert await alerts(begun, begun, grown) == [("halting_message", 0)]


async def test_a_call_to_halt_that_was_first_seen_on_its_way_is_said_when_it_has_arrived() -> None:
    call = says("Please stop editing.")
    sent = call.model_copy(update={"status": None})
    assert await alerts(heard(sent), heard(sent, acts("A"))) == []
    looks = [heard(sent), heard(sent, acts("A")), heard(call, acts("A")), heard(call)]
    assert await alerts(*looks) == [("halting_message", 0)]
    assert await alerts(*looks, initial={"t": 0}) == [("halting_message", 0)]


async def test_a_call_to_halt_in_a_log_without_statuses_is_said_once() -> None:
    call = says("Please stop editing.").model_copy(update={"status": None})
    looks = [trajectory(call), trajectory(call, acts("A")), trajectory(call, acts("A"), call)]
    assert await alerts(*looks) == [("halting_message", 0), ("halting_message", 2)]


async def test_an_event_that_comes_late_raises_nothing_again() -> None:
    """A span that began earlier gives all later events another number."""
    call, late = says("Please stop editing."), [acts("B"), acts("C"), acts("D")]
    looks = [trajectory(*late[:n], acts("A"), call) for n in range(4)]
    assert await alerts(*looks) == [("halting_message", 1)]
    assert await alerts(*(trajectory(*late[:n], acts("A")) for n in range(4))) == [], "A came once"
    grown = trajectory(acts("B"), acts("A"), call, acts("A"), call)
    assert await alerts(*looks[:2], grown) == [("halting_message", 1), ("halting_message", 4)]


async def test_a_session_that_grows_under_another_id_raises_nothing_again() -> None:
    """A chat that names no id has a hash of what it holds for one."""
    call = says("Please stop editing.")
    looks = [trajectory(call), trajectory(call, acts("A")), trajectory(call, acts("A"), acts("B"))]
    looks = [look.model_copy(update={"id": f"t{n}"}) for n, look in enumerate(looks)]
    assert await alerts(*looks, wait=0.01) == [("halting_message", 0)], "the person was answered"
    other = trajectory(says("Hello?"), call).model_copy(update={"id": "t1"})
    assert await alerts(looks[0], other) == [("halting_message", 0), ("halting_message", 1)]


async def test_a_chat_without_an_id_whose_answer_is_written_bit_by_bit_raises_nothing_again() -> None:
    call = says("Please stop editing.")
    texts = ("Let me", "Let me see", "Let me see that.")
    looks = [trajectory(call, says(text, "a")).model_copy(update={"id": text}) for text in texts]
    assert await alerts(*looks) == [("halting_message", 0)]
    corrected = trajectory(says("Can you help?"), says("Yes.", "a")).model_copy(update={"id": "t1"})
    assert await alerts(trajectory(says("Helo?")), corrected, wait=0.01) == [], "the first is no more"


async def test_a_session_that_begins_as_the_one_whose_place_it_takes_is_another() -> None:
    """As where the newest session of a log without ids stands first."""
    call, answer = says("Please stop editing."), says("Yes.", "a")
    raised: list[dict[str, Any]] = []
    watch = Alerts(raised.append, 60.0, halts)
    await watch([trajectory(call, answer)])
    new = trajectory(call, answer, acts("A")).model_copy(update={"id": "new"})
    await watch([new, trajectory(call, answer).model_copy(update={"native_id": "t:2"})])
    assert [alert["trajectory"] for alert in raised] == ["t", "new"]


async def test_a_person_waits_still_where_another_session_of_that_native_id_comes() -> None:
    raised: list[dict[str, Any]] = []
    watch = Alerts(raised.append, 0.01, halts, ids_of={"s": ("t", "new")}.__getitem__)
    call = (says("Hello."), says("Yes.", "a"), says("Please stop editing."))
    await watch([trajectory(*call)])
    await watch([trajectory(says("Another talk."), says("Yes.", "a")).model_copy(update={"id": "new"})])
    await asyncio.sleep(0.02)
    await watch([])
    await watch([trajectory(*call, says("Done.", "a"))])
    assert [alert["alert"] for alert in raised] == ["halting_message", "unanswered"]


async def test_a_person_who_waits_does_so_since_their_message_however_events_are_numbered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    found: list[dict[str, Any]] = []
    watch = Alerts(found.append, 60.0, halts)
    for n in range(4):
        await watch([trajectory(*[acts("B"), acts("C"), acts("D")][:n], acts("A"), says("Hello?"))])
        clock[0] += 35.0
    await watch([])
    assert [(a["alert"], a["event"], a["seconds"]) for a in found] == [("unanswered", 3, 70.0)]


async def test_who_waits_is_not_looked_at_again_until_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many cost time at each look, ten times a second."""
    clock, looks = [0.0], list[float]()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    found: list[dict[str, Any]] = []

    def is_up_to_date() -> bool:
        looks.append(clock[0])
        return True

    watch = Alerts(found.append, 60.0, halts, is_up_to_date=is_up_to_date)
    await watch([trajectory(says("Hello?"))])
    for _ in range(8):
        clock[0] += 10.0
        await watch([])
    assert looks == [0.0, 60.0]
    assert [alert["seconds"] for alert in found] == [60.0]


async def test_a_person_is_left_unanswered_when_no_agent_did_anything_in_time() -> None:
    assert await alerts(trajectory(says("Hello?")), wait=0.01) == [("unanswered", 0)]
    assert await alerts(trajectory(says("Hello?"), acts("A")), wait=0.01) == []
    pause = Event(seq=0, actor="a", kind="wait", action=Action(name="DO_NOTHING"), status="succeeded")
    assert await alerts(trajectory(says("Hello?"), pause), wait=0.01) == [("unanswered", 0)]
    assert await alerts(trajectory(says("Hello?"), pause, acts("A")), wait=0.01) == []
    assert await alerts(trajectory(says("Bye."), ended=True), wait=0.01) == []


async def test_what_was_there_before_raises_no_alert_but_what_comes_then_does() -> None:
    old = trajectory(says("Please stop editing."))
    new = trajectory(says("Please stop editing."), says("Stop, wait!"))
    assert await alerts(old, new, initial={"t": 0}) == [("halting_message", 1)]
    assert await alerts(old, wait=0.0, initial={"t": 0}) == []
    assert await alerts(old, new, wait=0.0, initial={"t": 0}) == [
        ("halting_message", 1),
        ("unanswered", 1),
    ]


async def test_what_came_to_a_session_that_was_there_before_the_first_look_at_it_raises_alerts() -> None:
    """After a kill the first look shows what was stored and what came meanwhile."""
    grown = trajectory(says("Please stop editing."), says("Stop, wait!"))
    expected = [("halting_message", 1), ("unanswered", 1)]
    assert await alerts(grown, wait=0.0, initial={"t": 0}) == expected
    looped = trajectory(acts("A"), acts("A"), acts("A"))
    assert await alerts(looped, initial={"t": 1}) == [("dead_loop", 2)]
    assert await alerts(looped, initial={"t": 2}) == []


async def test_who_began_to_wait_after_the_start_is_told_of_before_all_logs_were_looked_at() -> None:
    """Of whom a mark tells, it is not known yet whether an answer has come."""
    talk = trajectory(says("Where is it?"))
    early: dict[str, Any] = {"wait": 0.0, "is_up_to_date": lambda: False}
    assert await alerts(talk, **early) == [("unanswered", 0)]
    assert await alerts(talk, initial={"t": 0}, marks={"t": Mark(0, waiting=0)}, **early) == []


@pytest.mark.long
async def test_a_webhook_that_hangs_never_holds_anybody_up() -> None:
    received: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        received.append(await request.json())
        if len(received) == 1:
            await asyncio.sleep(1.0)
        return web.Response()

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    said: list[str] = []
    hook = Webhook(f"http://127.0.0.1:{runner.addresses[0][1]}/", said.append, timeout=0.2)
    task = asyncio.create_task(hook.run())
    hook({"alert": "one"})
    hook({"alert": "two"})
    assert (received, said) == ([], [])  # neither call waited until it was answered or given up
    await asyncio.sleep(0.6)
    await hook.finish()
    task.cancel()
    await asyncio.wait([task])
    await runner.cleanup()
    assert [alert["alert"] for alert in received] == ["one", "two"]
    assert len(said) == 1 and "could not be sent" in said[0]


@pytest.mark.long
@pytest.mark.parametrize("status", [307, 500, None])
async def test_an_alert_that_does_not_arrive_is_told_without_the_path_that_is_a_webhooks_secret(
    status: int | None,
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status or 200, headers={"Location": f"http://127.0.0.1:1{request.path}"})

    runner = web.AppRunner(web.Application(), shutdown_timeout=0.1)
    runner.app.router.add_post("/services/T0/S3CRET", answer)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = f"http://127.0.0.1:{runner.addresses[0][1] if status else 1}"
    said: list[str] = []
    hook = Webhook(f"{server}/services/T0/S3CRET", said.append)
    task = asyncio.create_task(hook.run())
    hook({"alert": "one"})
    deadline = time.monotonic() + 10
    while not said and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    await runner.cleanup()
    assert len(said) == 1 and said[0].startswith(f"{server}: ") and "S3CRET" not in said[0]
    assert str(status) in said[0] if status else "could not be sent" in said[0]


@pytest.mark.parametrize(
    "place",
    [
        *("", "ftp://host/S3CRET", "hooks.example/S3CRET", "http:///S3CRET", "http://[::1/S3CRET"),
        *("http://host:x/S3CRET", "http://host:99999/S3CRET", f"https://{'a' * 64}.example/S3CRET"),
    ],
)
def test_a_webhook_that_nobody_can_ask_is_refused_at_the_start_and_not_shown(place: str) -> None:
    with pytest.raises(UsageError, match="--webhook must be") as error:
        Webhook(place, lambda text: None)
    assert "S3CRET" not in str(error.value)


async def test_alerts_that_a_stop_leaves_unsent_are_counted_with_the_one_in_flight() -> None:
    arrived = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    notices: list[str] = []
    hook = Webhook(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", notices.append, timeout=60.0)
    task = asyncio.create_task(hook.run())
    for number in range(50):
        hook({"alert": number})
    await arrived.wait()
    hook.timeout = 0.1
    await hook.finish()
    task.cancel()
    await asyncio.wait([task], timeout=30)
    server.close()
    assert task.cancelled()
    assert [notice.partition(": ")[2] for notice in notices] == ["stopped before 50 alerts could be sent"]


@pytest.mark.slow
def test_alerts_are_json_lines_on_stdout_while_the_session_runs(
    redis: Server, follow: Callable[..., Following], tmp_path: Path
) -> None:
    follower = follow(redis.url, "--alerts", "--unanswered", "0.5").ready(redis)
    env = Env("env_travel_planning_0", redis.publish)
    env.start()
    for _ in range(3):
        env.step(AGENT, "FLIGHT_SEARCH(origin=A, destination=B, date=C)")
    env.step(USER, "SEND_TEAMMATE_MESSAGE(message=Please stop searching.)")
    assert follower.process.stdout is not None
    kinds = [json.loads(follower.process.stdout.readline())["alert"] for _ in range(3)]
    assert kinds == ["dead_loop", "halting_message", "unanswered"]
    follower.stop()


def test_alerts_do_not_wait_for_ratings(
    coaudit: Coaudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    async def run(self: Follower) -> None:
        order.extend(type(watcher).__name__ for watcher in self.watchers)

    monkeypatch.setattr(Follower, "run", run)
    coaudit("follow", tmp_path, "--alerts", "--judge", "halting")
    assert order == ["Alerts", "Marks", "LiveJudge"]
