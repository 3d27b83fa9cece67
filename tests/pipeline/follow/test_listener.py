"""Live traffic gives the events of the log; what only it knows is marked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.follow.listener import Listener
from coaudit.pipeline.follow.sink import Sink
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions, base
from coaudit.pipeline.systems.cogym import reader
from coaudit.pipeline.systems.cogym.messages import RawMessage, envelope
from coaudit.pipeline.systems.cogym.session import LiveSession
from coaudit.pipeline.systems.cogym.sessions import Sessions, trajectory
from coaudit.pipeline.systems.merge import join
from coaudit.schemas import Event, Trajectory
from tests.pipeline.follow.emulator import AGENT, USER, Env, play

OPTIONS = ReadOptions()


class Heard:
    """Sessions that hear what is published, at the environment's own time."""

    def __init__(self) -> None:
        self.sessions = Sessions()
        self.env: Env | None = None
        self.lost: Callable[[str], bool] = lambda channel: False

    def publish(self, channel: str, payload: str) -> None:
        time = self.env.clock if self.env else 0.0
        if not self.lost(channel):
            self.sessions.feed(RawMessage(time, channel, payload))

    def environment(self, name: str = "env_travel_planning_0", results: Path | None = None) -> Env:
        self.env = Env(name, self.publish, results)
        return self.env

    @property
    def session(self) -> LiveSession:
        (session,) = self.sessions.changed.values()
        return session

    @property
    def trajectory(self) -> Trajectory:
        return trajectory(self.session, "heard", OPTIONS)


def read(folder: Path) -> Trajectory:
    """The trajectory in a session's folder."""
    (found,) = (item for item in reader.read(folder, OPTIONS) if isinstance(item, Trajectory))
    return found


def logged(given: Trajectory) -> list[Event]:
    return [event for event in given.events if not event.live_only]


def beside(given: Trajectory) -> list[tuple[int, int, str, str]]:
    return [(e.seq, e.sub, e.actor, e.kind) for e in given.events if e.live_only]


@pytest.mark.parametrize("seed", range(60))
def test_a_session_heard_from_its_start_has_the_events_of_its_log(seed: int, tmp_path: Path) -> None:
    heard = Heard()
    env = heard.environment(results=tmp_path)
    for _ in play(env, seed, steps=25):
        pass
    log = read(tmp_path / env.name)
    assert heard.trajectory.id == log.id
    ours, theirs = logged(heard.trajectory), logged(log)
    # The final state, and what came of a last action that nobody was shown, are only in the log.
    assert ours[:-1] == theirs[:-1]
    assert ours[-1].model_copy(update={"status": None, "error": None, "states": {}}) == theirs[-1].model_copy(
        update={"status": None, "error": None, "states": {}}
    )
    assert ours[-1].status in (theirs[-1].status, None)


@pytest.mark.parametrize("seed", range(40))
def test_steps_sent_while_the_environment_is_busy_come_out_in_its_order(seed: int, tmp_path: Path) -> None:
    heard = Heard()
    env = heard.environment(results=tmp_path)
    for _ in play(env, seed, steps=25, slow=True):
        pass

    def said(given: Trajectory) -> list[tuple[object, ...]]:
        # When something that nobody was shown was handled is known to the log alone.
        return [(e.seq, e.actor, e.kind, e.text, e.action) for e in logged(given)]

    assert said(heard.trajectory) == said(read(tmp_path / env.name))


@pytest.mark.parametrize("seed", range(5))
def test_joining_adds_nothing_to_the_log_but_what_only_live_traffic_knew(seed: int, tmp_path: Path) -> None:
    heard = Heard()
    env = heard.environment(results=tmp_path)
    for _ in play(env, seed, steps=25):
        pass
    log = read(tmp_path / env.name)
    joined = join(log, heard.trajectory)
    assert joined is not None
    assert logged(joined) == list(log.events)
    assert beside(joined) == beside(heard.trajectory)
    assert joined.hidden == {"Preferences": ["Budget of $3,400"]}


def test_waits_follow_the_event_they_came_after_and_are_numbered() -> None:
    heard = Heard()
    env = heard.environment()
    env.start()
    env.step(USER, "WAIT_TEAMMATE_CONTINUE()")
    env.step(USER, "WAIT_TEAMMATE_CONTINUE()")
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Hello)")
    env.step(AGENT, "WAIT_TEAMMATE_CONTINUE()")
    assert beside(heard.trajectory) == [(1, 1, USER, "wait"), (1, 2, USER, "wait"), (2, 1, AGENT, "wait")]


def test_a_reminder_is_a_late_note_until_the_next_record_takes_it_in() -> None:
    heard = Heard()
    env = heard.environment()
    env.start()
    env.tick(idle=True)
    assert beside(heard.trajectory) == [(1, 1, "environment", "note")]
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Hello)")
    assert beside(heard.trajectory) == []
    assert [notice.text[:4] for notice in logged(heard.trajectory)[2].notices] == ["Idle"]


def test_an_action_on_its_way_is_an_event_without_a_status() -> None:
    heard = Heard()
    env = heard.environment()
    env.start()
    heard.lost = lambda channel: channel.endswith("observation")
    env.step(AGENT, "FLIGHT_SEARCH(origin=A, destination=B, date=C)")
    action = logged(heard.trajectory)[-1]
    assert (action.seq, action.kind, action.status) == (2, "action", None)


def test_the_same_name_started_again_is_a_session_of_its_own() -> None:
    heard = Heard()
    first = heard.environment()
    first.start()
    second = heard.environment()
    second.clock += 3600
    second.start()
    found = [trajectory(s, "heard", OPTIONS) for s in heard.sessions.changed.values()]
    assert len({t.id for t in found}) == 2
    ends = [o.text for t in found for o in t.outcomes if o.name == "end_reason"]
    assert ends == ["abandoned", "unfinished"]


def test_a_message_that_was_missed_is_known_from_the_chat_and_the_gap_is_said() -> None:
    heard = Heard()
    env = heard.environment()
    env.start()
    heard.lost = lambda channel: True
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Lost)")
    heard.lost = lambda channel: False
    env.step(USER, "SEND_TEAMMATE_MESSAGE(message=Found)")
    assert [e.text for e in logged(heard.trajectory)[2:]] == ["Lost", "Found"]
    assert [o.text for o in heard.trajectory.outcomes if o.name == "heard"] == ["with gaps"]


def test_what_was_lost_while_nobody_listened_is_counted_and_the_chat_is_taken_at_once(tmp_path: Path) -> None:
    heard = Heard()
    env = heard.environment(results=tmp_path)
    env.start()
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Heard)")
    heard.lost = lambda channel: True
    for number in range(3):
        env.step(USER, f"SEND_TEAMMATE_MESSAGE(message=Lost {number})")
    env.step(AGENT, "EDITOR_UPDATE(text=Day 1)")
    env.step(AGENT, "EDITOR_UPDATE(text=Day 2)")
    env.step(AGENT, "BOOK_HOTEL(name=Quiet Room)")
    env.step(AGENT, "REQUEST_TEAMMATE_CONFIRM(request_id=r, pending_action=EDITOR_UPDATE(text=Day 3))")
    heard.lost = lambda channel: False
    heard.sessions.apply_note({"away": 2.0})
    assert told(heard.trajectory)["unsettled"], "nothing is known of the gap before the state is shown"
    env.answer(AGENT)
    assert [e.text for e in logged(heard.trajectory)[2:]] == ["Heard", "Lost 0", "Lost 1", "Lost 2"]
    # The document changed (twice, of which once shows), an action failed, a request is pending.
    assert told(heard.trajectory) == {
        "gaps": 4,
        "recovered": 3,
        "missed": 3,
        "unsettled": False,
        "joined": False,
    }
    joined = join(read(tmp_path / env.name), heard.trajectory)
    assert joined is not None and told(joined)["missed"] == 4, "the folder knows all"


@pytest.mark.parametrize("query", ["Help me plan a trip to Burbank.", "Help me plan a trip to Rome."])
def test_another_run_of_a_name_that_began_unheard_is_a_session_of_its_own(query: str, tmp_path: Path) -> None:
    heard = Heard()
    first = heard.environment(results=tmp_path / "first")
    first.start()
    first.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Old)")
    heard.lost = lambda channel: True
    first.step(USER, "FINISH()")
    second = heard.env = Env(first.name, heard.publish, tmp_path / "second", query, clock=first.clock + 60)
    second.start()
    second.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=New)")
    heard.lost = lambda channel: False
    heard.sessions.apply_note({"away": 5.0})
    second.answer(AGENT)
    second.step(USER, "SEND_TEAMMATE_MESSAGE(message=Newer)")
    second.step(USER, "FINISH()")
    old, new = (trajectory(session, "heard", OPTIONS) for session in heard.sessions.changed.values())
    assert [e.text for e in logged(old)[2:]] == ["Old"]
    assert [o.text for o in old.outcomes if o.name == "end_reason"] == ["abandoned"]
    assert [e.text for e in logged(new)[1:]] == [query, "New", "Newer", None]
    assert [o.text for o in new.outcomes if o.name == "heard"] == ["joined late"]


def end_of(first: Env, heard: Heard) -> None:
    first.step(USER, "FINISH()")


def silence_of(first: Env, heard: Heard) -> None:
    heard.sessions.apply_note({"closed": first.name})


@pytest.mark.parametrize("before", [end_of, silence_of])
@pytest.mark.parametrize("step_first", [False, True])
def test_another_run_that_began_unheard_has_nothing_of_one_that_ended_or_fell_silent(
    before: Callable[[Env, Heard], None], step_first: bool, tmp_path: Path
) -> None:
    heard = Heard()
    first = heard.environment(results=tmp_path / "first")
    first.start()
    first.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Old)")
    before(first, heard)
    whole = [e.text for e in heard.trajectory.events]
    heard.lost = lambda channel: True
    second = heard.env = Env(first.name, heard.publish, tmp_path / "second", clock=first.clock + 60)
    second.start()
    heard.lost = lambda channel: False
    heard.sessions.apply_note({"away": 5.0})
    if step_first:
        second.step(USER, "WAIT_TEAMMATE_CONTINUE()")
        second.step(USER, "SEND_TEAMMATE_MESSAGE(message=Newer)")
    second.answer(AGENT)
    second.step(USER, "SEND_TEAMMATE_MESSAGE(message=Newest)")
    old, new = (trajectory(session, "heard", OPTIONS) for session in heard.sessions.changed.values())
    assert [e.text for e in old.events] == whole
    newer = ["Newer", "Newest"] if step_first else ["Newest"]
    assert [e.text for e in logged(new)[2:]] == newer
    assert [o.text for o in new.outcomes if o.name == "heard"] == ["joined late"]


def test_a_step_before_the_state_of_another_run_is_none_of_the_run_before(tmp_path: Path) -> None:
    heard = Heard()
    first = heard.environment(results=tmp_path / "first")
    first.start()
    heard.lost = lambda channel: True
    second = heard.env = Env(first.name, heard.publish, tmp_path / "second", clock=first.clock + 60)
    second.start()
    heard.lost = lambda channel: False
    heard.sessions.apply_note({"away": 5.0})
    second.step(USER, "WAIT_TEAMMATE_CONTINUE()")
    second.step(USER, "SEND_TEAMMATE_MESSAGE(message=New)")
    assert [event.kind for event in heard.trajectory.events] == ["start", "message"]
    second.answer(AGENT)
    new = trajectory(heard.sessions.open[first.name], "heard", OPTIONS)
    assert [e.text for e in logged(new)[1:]] == [second.query, "New"]


def test_what_was_heard_whole_has_missed_nothing_even_after_a_pause() -> None:
    heard = Heard()
    env = heard.environment()
    env.start()
    env.step(AGENT, "EDITOR_UPDATE(text=Day 1)")
    heard.sessions.apply_note({"away": 2.0})
    env.busy = True
    env.step(AGENT, "EDITOR_UPDATE(text=Day 2)")
    env.step(USER, "PUT_AGENT_ASLEEP()")
    env.handle()
    counts = {"gaps": 1, "recovered": 0, "missed": 0, "unsettled": False, "joined": False}
    assert told(heard.trajectory) == counts


def test_a_session_that_ended_while_nobody_listened_says_that_its_gap_is_not_counted() -> None:
    heard = Heard()
    env = heard.environment()
    env.start()
    heard.lost = lambda channel: not channel.endswith("/end")
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Lost)")
    heard.sessions.apply_note({"away": 2.0})
    env.step(USER, "FINISH()")
    counts = {"gaps": 1, "recovered": 0, "missed": 0, "unsettled": True, "joined": False}
    assert told(heard.trajectory) == counts


def told(trajectory: Trajectory) -> dict[str, Any]:
    """How well the session was heard."""
    (data,) = (o.data for o in trajectory.outcomes if o.name == "heard")
    assert isinstance(data, dict)
    return data


def test_a_session_joined_late_has_what_was_said_before_and_is_marked() -> None:
    heard = Heard()
    env = heard.environment()
    heard.lost = lambda channel: True
    env.start()
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Before)")
    heard.lost = lambda channel: False
    env.step(AGENT, "FLIGHT_SEARCH(origin=A, destination=B, date=C)")
    assert heard.sessions.strangers == {env.name: AGENT}
    env.answer(AGENT)
    env.step(USER, "SEND_TEAMMATE_MESSAGE(message=After)")
    assert [e.text for e in logged(heard.trajectory)[1:]] == [env.query, "Before", "After"]
    assert [o.text for o in heard.trajectory.outcomes if o.name == "heard"] == ["joined late"]


def test_a_session_joined_late_is_one_with_its_folder(tmp_path: Path) -> None:
    heard = Heard()
    env = heard.environment(results=tmp_path)
    heard.lost = lambda channel: True
    env.start()
    env.step(AGENT, "FLIGHT_SEARCH(origin=A, destination=B, date=C)")
    heard.lost = lambda channel: False
    env.answer(USER)
    env.step(USER, "WAIT_TEAMMATE_CONTINUE()")
    env.step(USER, "SEND_TEAMMATE_MESSAGE(message=After)")
    env.step(USER, "WAIT_TEAMMATE_CONTINUE()")
    log = read(tmp_path / env.name)
    joined = join(log, heard.trajectory)
    assert joined is not None
    assert logged(joined) == list(log.events)
    assert beside(joined) == [(1, 1, USER, "wait"), (3, 1, USER, "wait")]


def test_an_abandoned_session_that_speaks_again_goes_on() -> None:
    heard = Heard()
    env = heard.environment()
    env.start()
    heard.sessions.close(env.name)
    assert [o.text for o in heard.trajectory.outcomes if o.name == "end_reason"] == ["abandoned"]
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Still here)")
    assert [o.text for o in heard.trajectory.outcomes if o.name == "end_reason"] == ["unfinished"]
    assert logged(heard.trajectory)[-1].text == "Still here"


def test_after_its_end_a_session_is_not_taken_for_one_joined_late() -> None:
    heard = Heard()
    env = heard.environment()
    env.start()
    env.step(USER, "FINISH()")
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Too late)")
    assert heard.sessions.strangers == {}
    assert len(heard.sessions.changed) == 1


def test_clocks_that_go_backwards_do_not_change_the_order() -> None:
    heard = Heard()
    env = heard.environment()
    env.start()
    for text in ("one", "two", "three"):
        env.clock -= 50
        env.step(AGENT, f"SEND_TEAMMATE_MESSAGE(message={text})")
    assert [e.text for e in logged(heard.trajectory)[2:]] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ("not JSON", "not JSON"),
        ("[1]", "payload must be"),
        ('{"data": {"object": {"action": 1, "role": "user"}}}', "action"),
        ('{"data": {"object": {"action": "FINISH()"}}}', "role"),
        ("\udcff", "not JSON"),
    ],
)
def test_a_payload_that_is_not_ours_says_what_is_wrong_with_it(payload: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Sessions().feed(RawMessage(0.0, "env_1/step", payload))


def test_half_a_character_in_a_payload_costs_no_message() -> None:
    sessions = Sessions()
    start = {"task_description": "Plan \ud83d", "team_members": [AGENT, USER], "action_space": []}
    sessions.feed(RawMessage(0.0, "env_1/start", json.dumps({"data": {"object": start}})))
    assert sessions.open["env_1"].description == "Plan \ufffd"


@pytest.mark.parametrize("channel", ["news", "env_1/heartbeat", "other/step", "env_1"])
def test_channels_of_something_else_are_counted_and_left_alone(channel: str) -> None:
    sessions = Sessions()
    assert sessions.feed(RawMessage(0.0, channel, "whatever")) is None
    assert sessions.foreign == 1


def test_real_sessions_heard_equal_their_folders(shared: Path) -> None:
    for recording in sorted((shared / "data/cogym/redis").glob("collab__*.jsonl")):
        sessions = Sessions()
        for line in recording.read_text().splitlines():
            sessions.feed(RawMessage(**json.loads(line)))
        (session,) = sessions.changed.values()
        found = trajectory(session, "heard", OPTIONS)
        log = read(shared / "data/cogym/results/collab" / session.name)
        assert found.id == log.id
        assert logged(found)[:-1] == list(log.events)[:-1]
        assert found.hidden == log.hidden


@dataclass
class Following:
    """A follower's listener and sink, without the server."""

    store: Store

    def __post_init__(self) -> None:
        stream = self.store.workspace.raw / "live" / "here"
        self.listener = Listener(stream, "redis://here", Sink(self.store), OPTIONS, 600.0, lambda text: None)
        self.listener.open()

    def publish(self, channel: str, payload: str) -> None:
        self.listener.take(RawMessage(1.0, channel, payload))

    def flush(self) -> list[str | None]:
        """Store what has changed; the messages that are stored now."""
        self.listener.hand_over()
        self.listener.sink.flush()
        self.listener.forget_stored()
        with self.store.reading() as connection:
            query = "SELECT text FROM events WHERE kind = 'message' ORDER BY seq"
            return [row[0] for row in connection.execute(query).fetchall()][1:]


@pytest.fixture
def store(workspace: Path) -> Store:
    return Store(Workspace(workspace))


@pytest.mark.long
def test_what_a_stop_left_recorded_only_is_taken_in_by_the_next_follower(store: Store) -> None:
    first = Following(store)
    env = Env("env_travel_planning_0", first.publish)
    env.start()
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Taken in)")
    assert first.flush() == ["Taken in"]
    first.listener.only_record = True
    env.step(USER, "SEND_TEAMMATE_MESSAGE(message=Recorded)")
    env.step(AGENT, "FINISH()")
    assert first.listener.left_count == 4 and first.flush() == ["Taken in"]
    first.listener.close()
    assert Following(store).flush() == ["Taken in", "Recorded"]


def test_what_was_handed_over_and_not_stored_is_taken_in_by_the_next_follower(store: Store) -> None:
    first = Following(store)
    first.flush()
    env = Env("env_travel_planning_0", first.publish)
    env.start()
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Handed over)")
    first.publish("env_travel_planning_0/step", "not JSON")
    env.step(AGENT, "FINISH()")
    first.listener.hand_over()
    first.listener.close()  # as where the transaction met a full disk
    second = Following(store)
    assert second.flush() == ["Handed over"]
    with store.reading() as connection:
        (reason,) = connection.execute("SELECT reason FROM quarantine").fetchall()
    assert "not JSON" in reason[0]
    second.listener.close()
    assert not Following(store).listener.sessions.changed, "what is stored needs no replay"


def test_a_message_too_long_to_be_replayed_is_refused_as_it_comes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "MAX_LINE", 1 << 20)
    following = Following(store)
    env = Env("env_travel_planning_0", following.publish)
    env.start()
    env.step(USER, "SEND_TEAMMATE_MESSAGE(message=Short)")
    step = {"role": USER, "action": f"SEND_TEAMMATE_MESSAGE(message={'long' * (1 << 18)})"}
    following.publish(f"{env.name}/step", envelope(step))
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Later)")
    assert following.flush() == ["Short", "Later"]
    following.listener.close()

    def tables() -> list[Any]:
        with store.reading() as connection:
            queries = (
                "SELECT seq, actor, text FROM events ORDER BY seq",
                "SELECT line, reason FROM quarantine",
            )
            return [connection.execute(query).fetchall() for query in queries]

    before = tables()
    assert before[1] == [(before[1][0][0], "longer than 1 MiB")]
    rebuild(store)
    assert tables() == before


@pytest.mark.long
def test_an_abandoned_session_that_speaks_to_the_next_follower_is_whole(store: Store) -> None:
    first = Following(store)
    env = Env("env_travel_planning_0", first.publish)
    env.start()
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Before)")
    first.listener.silence = 0.0
    first.listener.close_silent()
    assert first.flush() == ["Before"]
    first.listener.close()
    second = Following(store)
    env.publish = second.publish
    env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=After)")
    assert second.flush() == ["Before", "After"]


def test_an_end_that_names_what_can_be_no_path_ends_its_session_and_not_the_follower(store: Store) -> None:
    following = Following(store)
    for number, place in enumerate(("a" * 5000, "a/" * 5000, "\0")):
        env = Env(f"env_travel_planning_{number}", following.publish)
        env.start()
        env.step(AGENT, f"SEND_TEAMMATE_MESSAGE(message=Session {number})")
        following.publish(f"{env.name}/end", envelope({"result_dir": f"/x/{place}/{env.name}"}))
    assert not following.listener.sessions.open
    assert {"Session 0", "Session 1", "Session 2"} <= set(following.flush())


def test_a_name_that_was_asked_is_asked_again_after_a_gap(tmp_path: Path) -> None:
    following = Following(Store(Workspace(tmp_path)))
    listener = following.listener
    env = Env("env_travel_planning_0", following.publish)
    env.step(USER, "SEND_TEAMMATE_MESSAGE(message=Unheard until now)")
    assert listener.sessions_to_ask() == [(env.name, USER)]
    assert listener.sessions_to_ask() == []
    assert listener.mark_gap(5.0) == [(env.name, USER)]
    listener.close()
