"""One session heard and logged is one trajectory, in whatever order and company its readings come."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems import ReadOptions, merge
from coaudit.pipeline.systems.cogym import reader
from coaudit.pipeline.systems.cogym.messages import RawMessage
from coaudit.pipeline.systems.cogym.sessions import Sessions, trajectory
from coaudit.schemas import Trajectory
from tests.pipeline.follow.emulator import AGENT, USER, Env


class Story:
    """A session that is heard, then not, then heard again, and its log at several moments."""

    def __init__(self, folder: Path) -> None:
        self.sessions = Sessions()
        self.listening = True
        self.env = Env("env_travel_planning_0", self._publish, folder)
        self.env.start()

    def _publish(self, channel: str, payload: str) -> None:
        if self.listening:
            self.sessions.feed(RawMessage(self.env.clock, channel, payload))

    def say(self, text: str) -> None:
        self.env.step(USER, "WAIT_TEAMMATE_CONTINUE()")
        self.env.step(AGENT, f"SEND_TEAMMATE_MESSAGE(message={text})")

    def act(self, text: str) -> None:
        self.env.step(AGENT, f"EDITOR_UPDATE(text={text})")

    def back(self) -> None:
        self.listening = True
        self.sessions.apply_note({"away": 2.0})

    @property
    def heard(self) -> Trajectory:
        (session,) = self.sessions.changed.values()
        return trajectory(session, "heard", ReadOptions())

    @property
    def log(self) -> Trajectory:
        assert self.env.folder
        (only,) = (t for t in reader.read(self.env.folder, ReadOptions()) if isinstance(t, Trajectory))
        return only


def told(item: Trajectory) -> tuple[str | None, Any]:
    """How well the session was heard, and which events only the hearing knows."""
    (outcome,) = (o for o in item.outcomes if o.name == "heard")
    assert isinstance(outcome.data, dict)
    beside = [(e.seq, e.sub, e.kind) for e in item.events if e.live_only]
    return outcome.text, (outcome.data["gaps"], outcome.data["missed"], beside)


def with_a_gap(folder: Path) -> tuple[Trajectory, Trajectory, Trajectory]:
    """A hearing before a gap in which two updates were lost, one after it, and the log."""
    story = Story(folder)
    story.say("Before")
    first = story.heard
    story.listening = False
    story.act("Day 1")
    story.act("Day 2")
    story.back()
    story.say("After")
    return first, story.heard, story.log


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("together", [False, True])
def test_of_two_hearings_the_one_that_heard_more_holds_in_every_order(
    order: tuple[int, ...], together: bool, tmp_path: Path
) -> None:
    """`together`: the last two wait as one until they are stored, as in one transaction of a follower."""
    readings = with_a_gap(tmp_path)
    one, two, three = (readings[n] for n in order)
    if together:
        waiting = merge.combine_readings(two, three)
        assert waiting is not None
        result = merge.combine_readings(one, waiting)
    else:
        stored = merge.combine_readings(one, two)
        assert stored is not None
        result = merge.combine_readings(stored, three)
    assert result is not None
    # Start, query, Before, two lost updates, After; a wait after the last event heard before each message.
    assert [e.kind for e in result.events if not e.live_only][1:] == ["message"] * 2 + ["action"] * 2 + [
        "message"
    ]
    assert told(result) == ("with gaps", (1, 2, [(1, 1, "wait"), (2, 1, "wait")]))


def test_what_a_log_gains_after_the_last_hearing_was_missed(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.say("Heard")
    joined = merge.combine_readings(story.heard, story.log)
    assert joined is not None and told(joined)[1][1] == 0
    story.listening = False
    story.act("Day 1")
    story.say("Not heard")
    grown = merge.combine_readings(joined, story.log)
    assert grown is not None and told(grown)[1][1] == 2


def test_a_log_that_lags_behind_what_was_heard_has_nothing_missed_when_it_catches_up(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.say("One")
    behind = story.log
    story.say("Two")
    story.say("Three")
    joined = merge.combine_readings(behind, story.heard)
    assert joined is not None and told(joined)[1][1] == 0
    caught_up = merge.combine_readings(joined, story.log)
    assert caught_up is not None and told(caught_up)[1][1] == 0
    story.listening = False
    story.say("Not heard")
    grown = merge.combine_readings(caught_up, story.log)
    assert grown is not None and told(grown)[1][1] == 1


def test_an_older_copy_of_a_log_that_was_heard_takes_nothing_away(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.say("One")
    older = story.log
    story.say("Two")
    joined = merge.combine_readings(story.heard, story.log)
    assert joined is not None
    again = merge.combine_readings(joined, older)
    assert again is not None
    assert again.events == joined.events


def test_a_second_log_that_shares_half_of_what_was_heard_does_not_replace_the_first(tmp_path: Path) -> None:
    """Two environments of one name on one server: what was heard is a mixture that fits both logs."""
    story, other = Story(tmp_path / "one"), Story(tmp_path / "other")
    for text in ("One", "Two"):
        story.say(text)
        other.say(text)
    story.act("Rome")
    other.act("Oslo")
    joined = merge.combine_readings(story.heard, story.log)
    assert joined is not None
    assert merge.combine_readings(joined, other.log) is None


def test_what_was_heard_ahead_of_a_log_stands_where_the_whole_log_has_it(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.say("First")
    logs = [story.log]
    for text in ("Second", "Third"):
        story.say(text)
        logs.append(story.log)
    whole = merge.combine_readings(story.heard, logs[-1])
    growing: Trajectory | None = story.heard
    for log in logs:
        assert growing
        growing = merge.combine_readings(growing, log)
    assert whole
    assert growing
    assert [(e.seq, e.sub, e.kind) for e in growing.events] == [(e.seq, e.sub, e.kind) for e in whole.events]
