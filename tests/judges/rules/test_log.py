"""A log of thousands of events takes work in step with its length, whatever is in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from coaudit.judges.rules import Detectors, Rules
from coaudit.judges.rules.log import Log
from coaudit.judges.rules.repetitions import step_repeated
from coaudit.judges.trained.features import features
from coaudit.pipeline import codebooks
from coaudit.pipeline.units import cut
from coaudit.schemas import Action, Event, Participant, Trajectory, Unit
from tests.judges.teams import team
from tests.steps import steps

TALK = [("human", "Please check item {i}."), ("agent", "Which of the {i} lists do you mean by that, sir?")]
WORK = [*TALK, ("agent", "SEARCH(item {j})"), ("agent", "EDIT(item {j})"), ("human", "Go on?")]
ASKS = [("agent", "ASK(to send {i})"), ("human", "REJECT()"), ("agent", "SEND(letter {j})"), *TALK]
SAME = [("agent", "Who is the audience of this very text?"), ("human", "Nurses."), ("agent", "EDIT(it)")]
ALONE = [("agent", "EDIT(line {i})"), ("agent", "ASK(to send {j})")]
SHAPES = {"talk": TALK, "work": WORK, "asks": ASKS, "same": SAME, "alone": ALONE}


def log(shape: str, length: int) -> Trajectory:
    """So many events that repeat a few lines, with numbers that come once and such that come back."""
    lines = SHAPES[shape]
    said = [
        (actor, text.format(i=place, j=place % 97))
        for place in range(length)
        for actor, text in [lines[place % len(lines)]]
    ]
    return team(*said)


def detect(given: Trajectory) -> None:
    list(Detectors(FAILURES).rate(cut(given, FAILURES)))


def look(given: Trajectory) -> None:
    for unit in cut(given, INITIATIVE.model_copy(update={"context": "transcript"}), include_query=True):
        features(unit)


def rule(given: Trajectory) -> None:
    units: Sequence[Unit] = list(cut(given, INITIATIVE.model_copy(update={"context": "preceding"})))
    list(Rules(INITIATIVE).rate(units))


FAILURES, INITIATIVE = codebooks.load("failures"), codebooks.load("initiative")


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("judge", [detect, look, rule])
def test_work_grows_with_the_length(judge: Callable[[Trajectory], None], shape: str) -> None:
    short, long = log(shape, 250), log(shape, 2000)
    for one in (short, long):
        judge(one)  # what is loaded once is loaded, and what is kept of each log is there
    # Eight times the events: 64 times the steps where each is held against each.
    assert steps(lambda: judge(long)) < 12 * steps(lambda: judge(short))


def test_units_of_a_log_share_its_transcript() -> None:
    given = log("talk", 50)
    units = list(cut(given, INITIATIVE.model_copy(update={"context": "transcript"})))
    assert len(units) > 40
    assert all(unit.transcript is given.events for unit in units)


def test_two_actions_of_one_number_are_two_calls() -> None:
    def edit(seq: int, line: str) -> Event:
        action = Action(name="edit", arguments={"line": line})
        return Event(seq=seq, actor="bot", kind="action", action=action, status="succeeded")

    people = (Participant(name="ann", kind="human"), Participant(name="bot", kind="agent"))
    asked = Event(seq=1, actor="ann", kind="message", text="Edit it.")
    given = Log((asked, edit(2, "alpha"), edit(2, "delta"), edit(3, "gamma")), people)
    assert len({given.call(event) for event in given.events[1:]}) == 3
    assert not step_repeated(given)
