"""Steps and participants: units of every system."""

from __future__ import annotations

import pytest

from coaudit.pipeline import codebooks
from coaudit.pipeline.units import all_spans, cut, opening_query, spans
from coaudit.schemas import Action, Event
from tests.judges.teams import team

LOG = team(
    ("human", "To Ulm."),
    ("agent", "SEARCH(trains)"),
    ("environment", "Rain is coming."),
    ("agent", "WAIT()"),
    ("agent", "By train?"),
    ("human", "Yes."),
    ("agent", "FINISH()"),
)


def test_a_step_is_what_a_team_member_said_or_did_and_waiting_is_none() -> None:
    assert [events[0].seq for events in spans(LOG, "step")] == [1, 2, 5, 6, 7]


def test_a_participant_is_all_that_a_team_member_did_under_their_first_event() -> None:
    units = [[event.seq for event in events] for events in spans(LOG, "participant")]
    assert units == [[1, 6], [2, 4, 5, 7]]
    asked = [unit.event for unit in cut(LOG, codebooks.load("responsible_agent"))]
    assert asked == [1, 2]


def test_one_who_did_nothing_is_no_unit() -> None:
    assert [kind for kind, _ in all_spans(team(("human", "Hi.")), ("participant",))] == ["participant"]


def test_a_persons_first_message_is_an_utterance_where_it_was_an_act_in_the_game() -> None:
    said = Event(seq=1, actor="human", kind="message", text="You take red.", action=Action(name="message"))
    asked = said.model_copy(update={"action": None})
    start = team(("human", "x")).events[0]
    for first, opening in ((said, None), (asked, 1)):
        log = team(("human", "x")).model_copy(update={"events": (start, first)})
        assert opening_query(log) == opening


def test_what_a_person_answers_first_is_no_opening_query() -> None:
    asks = Event(seq=0, actor="human", kind="message", text="To Ulm.")
    greets = Event(seq=0, actor="agent", kind="message", text="Hello, how can I help?")
    for first, opening in ((asks, 0), (greets, None)):
        log = team().model_copy(update={"events": (first, asks.model_copy(update={"seq": 1}))})
        assert opening_query(log) == opening


@pytest.mark.parametrize("text", ["By train?", "坐火车去吗？", "بالقطار؟"])
def test_a_question_may_end_with_the_mark_of_its_script(text: str) -> None:
    log = team(("human", "To Ulm."), ("agent", text), ("human", "OK."))
    assert [[event.seq for event in events] for events in spans(log, "question_reply")] == [[2, 3]]
