"""Detectors on small logs: what they find, what they leave alone, and where they have nothing to say."""

from __future__ import annotations

import time
from typing import NoReturn

import pytest

from coaudit.judges import JudgeError
from coaudit.judges.rules import Detectors
from coaudit.judges.rules.detectors import DETECTORS
from coaudit.judges.rules.log import Log
from coaudit.judges.rules.silences import long_silence
from coaudit.pipeline import codebooks
from coaudit.pipeline.units import cut
from coaudit.schemas import Event, Participant, Rating, Trajectory
from tests.judges.teams import team

BOOK = codebooks.load("failures")
SEARCH = ("agent", "SEARCH(hotels by the lake)")
EDIT = ("agent", "EDIT(a first draft of the plan)")
TALK = (("human", "Plan a weekend."), ("agent", "I start with the hotels."))


def rated(log: Trajectory) -> dict[str, Rating]:
    (ratings,) = Detectors(BOOK).rate(cut(log, BOOK))
    return {rating.code: rating for rating in ratings}


def found(log: Trajectory, code: str) -> tuple[int, ...] | None:
    """The events cited where the code is present, None where it is absent."""
    rating = rated(log)[code]
    return rating.cites if rating.label == "present" else None


def test_a_look_up_whose_result_was_at_hand_is_asked_again() -> None:
    assert found(team(*TALK, SEARCH, ("agent", "I see."), SEARCH), "SA.2") == (3, 5)


def test_a_look_up_after_it_failed_is_not_asked_again() -> None:
    assert found(team(*TALK, SEARCH, SEARCH, failing={3: "timeout"}), "SA.2") is None


def test_a_near_identical_look_up_counts_where_it_is_long() -> None:
    long = "quiet hotels by the lake with a garden a sauna a view parking and late check out for four"
    log = team(*TALK, ("agent", f"SEARCH({long})"), ("agent", f"SEARCH({long} !)"))
    assert found(log, "SA.2") == (3, 4)
    other = team(*TALK, ("agent", "SEARCH(flights to Rome)"), ("agent", "SEARCH(flights to Bonn)"))
    assert found(other, "SA.2") is None


def test_a_question_that_was_answered_is_asked_again() -> None:
    log = team(
        ("agent", "Who is the audience of this text?"),
        ("human", "Nurses in training."),
        ("agent", "Before I go on: who is the audience of this text?"),
    )
    assert found(log, "SA.2") == (1, 2, 3)


@pytest.mark.parametrize("back", ["Whom do you mean?\n", "Whom do you mean?”", "Whom do you mean？»"])
def test_a_question_that_was_asked_back_may_be_asked_again(back: str) -> None:
    asked = ("agent", "Who is the audience of this text?")
    assert found(team(asked, ("human", back), asked), "SA.2") is None


def test_the_questions_of_a_long_message_without_a_sentence_s_end_are_found_at_once() -> None:
    asked = ("agent", "Who is the audience of this text? " + "word " * 100_000)
    assert found(team(asked, ("human", "Nurses in training."), asked), "SA.2") == (1, 2, 3)


def test_a_question_that_was_never_answered_may_be_asked_again() -> None:
    log = team(("agent", "Who is the audience?"), ("agent", "Hello!"), ("agent", "Who is the audience?"))
    assert found(log, "SA.2") is None


def test_a_work_step_done_again_with_nothing_new_is_a_repeated_step() -> None:
    assert found(team(*TALK, EDIT, EDIT), "PL.2") == (3, 4)


def test_a_step_after_a_word_of_the_human_or_another_change_is_none() -> None:
    assert found(team(*TALK, EDIT, ("human", "Once more."), EDIT), "PL.2") is None
    assert found(team(*TALK, EDIT, ("agent", "EDIT(something else)"), EDIT), "PL.2") is None


def test_a_failed_step_may_be_tried_once_more_but_not_twice() -> None:
    assert found(team(*TALK, EDIT, EDIT, failing={3: "busy"}), "PL.2") is None
    thrice = team(*TALK, EDIT, EDIT, EDIT, failing={3: "busy", 4: "busy", 5: "busy"})
    assert found(thrice, "PL.2") == (4, 5)


def test_work_before_the_first_word_is_a_silent_start() -> None:
    log = team(("human", "Plan a weekend."), SEARCH, EDIT, ("agent", "BOOK(x)"), ("agent", "Done it all."))
    assert found(log, "C.1") == (2, 3, 4)
    assert found(team(*TALK, SEARCH, EDIT, ("agent", "BOOK(x)")), "C.1") is None


def test_six_actions_without_a_word_are_a_missing_update() -> None:
    actions = [("agent", f"EDIT(part {i})") for i in range(6)]
    assert found(team(*TALK, *actions, ("agent", "All parts are in.")), "C.3") == (3, 4, 5, 6, 7, 8)
    assert found(team(*TALK, *actions[:5], ("agent", "Five parts are in.")), "C.3") is None


def test_long_silences_of_many_agents_are_each_ones_own_and_cost_no_more_than_the_log() -> None:
    many = [f"agent {n}" for n in range(20_000)]
    people = (*(Participant(name=name, kind="agent") for name in many), Participant(name="h", kind="human"))
    words = [("h", "Go"), *((name, "Here") for name in many)]
    acts = [(name, None) for _ in range(6) for name in many[:2]]
    events = [
        Event(seq=seq, actor=actor, kind="message" if text else "action", text=text)
        for seq, (actor, text) in enumerate([*words, *acts[:6], (many[1], "Wait"), *acts[6:], ("h", "?")])
    ]
    start = time.process_time()
    findings = long_silence(Log(tuple(events), people))
    assert time.process_time() - start < 5
    assert [one.cites for one in findings or []] == [(20_001, 20_003, 20_005, 20_008, 20_010, 20_012)]


def test_a_question_of_the_human_that_nobody_answers_is_found() -> None:
    log = team(*TALK, ("human", "Is the pool heated?"), SEARCH, ("human", "Hello?"), ("agent", "Yes, it is."))
    assert found(log, "C.3") == (3,)


def test_a_message_to_which_agents_only_wait_is_found() -> None:
    log = team(*TALK, ("human", "Make it four days."), ("agent", "WAIT()"), ("human", "Fine."), EDIT)
    assert found(log, "C.3") == (3,)


def test_questions_and_reports_are_known_by_the_marks_of_any_keyboard() -> None:
    assert found(team(*TALK, ("human", "Est-ce prêt？"), EDIT), "C.3") == (3,)
    assert found(team(*TALK, EDIT, ("agent", "It’s done.")), "C.5") == (3, 4)
    asked = ("agent", "Who is the audience of this text？")
    assert found(team(asked, ("human", "Nurses in training."), asked), "SA.2") == (1, 2, 3)


def test_an_end_without_a_word_on_the_work_is_found() -> None:
    assert found(team(*TALK, EDIT, ("agent", "FINISH()")), "C.3") == (3, 4)
    assert (
        found(team(*TALK, EDIT, ("agent", "The plan has three days."), ("agent", "FINISH()")), "C.3") is None
    )
    assert found(team(*TALK, EDIT, ("human", "FINISH()")), "C.3") is None


def test_a_report_that_only_says_done_is_an_inadequate_summary() -> None:
    assert found(team(*TALK, EDIT, ("agent", "The work is done.")), "C.5") == (3, 4)
    assert found(team(*TALK, EDIT, ("agent", "Done: three days by the lake.")), "C.5") is None


def test_an_action_that_the_environment_does_not_have_is_found() -> None:
    log = team(*TALK, ("agent", "TELEPHONE(hotel)"), failing={3: "Unknown action: TELEPHONE"})
    assert found(log, "EA.2") == (3,)
    assert found(team(*TALK, EDIT, failing={3: "the editor is busy"}), "EA.2") is None


def test_of_calls_outside_co_gyms_action_space_only_those_that_never_work_are_of_no_action() -> None:
    error = "'{}' invalid. Please strictly follow the action space specifications."
    phones, edits = ("agent", "TELEPHONE(hotel)"), ("agent", "EDIT(draft")
    failing = {3: error.format("TELEPHONE(hotel)"), 4: error.format("EDIT(draft")}
    assert found(team(*TALK, phones, edits, EDIT, failing=failing), "EA.2") == (3,)


@pytest.mark.parametrize(("name", "mistyped"), [("SERCH", True), ("SEARCHS", True), ("SEND", False)])
def test_a_name_with_a_letter_too_many_or_too_few_was_mistyped(name: str, mistyped: bool) -> None:
    log = team(*TALK, ("agent", f"{name}(hotels)"), SEARCH, failing={3: f"Unknown action: {name}"})
    assert found(log, "EA.2") == (None if mistyped else (3,))


REQUEST = ("agent", "ASK(SEND(the draft to the landlord))")
SEND = ("agent", "SEND(the draft to the landlord)")


def test_a_change_after_its_refusal_or_before_the_answer_is_found() -> None:
    assert found(team(*TALK, REQUEST, ("human", "REJECT()"), SEND), "SA.5") == (3, 4, 5)
    assert found(team(*TALK, REQUEST, SEND, ("human", "ACCEPT()")), "SA.5") == (3, 4)


def test_a_confirmed_change_is_none() -> None:
    assert found(team(*TALK, REQUEST, ("human", "ACCEPT()"), SEND), "SA.5") is None
    again = team(*TALK, REQUEST, ("human", "REJECT()"), REQUEST, ("human", "ACCEPT()"), SEND)
    assert found(again, "SA.5") is None


def test_a_request_that_does_not_say_what_for_asked_for_nothing() -> None:
    log = team(*TALK, REQUEST, SEND)
    bare = [event.model_copy(update={"action": None}) if event.seq == 3 else event for event in log.events]
    assert found(log.model_copy(update={"events": tuple(bare)}), "SA.5") is None
    nameless = [
        event.model_copy(update={"action": None}) if event.seq == 4 else event for event in log.events
    ]
    assert found(log.model_copy(update={"events": tuple(nameless)}), "SA.5") is None


def test_codes_that_no_detector_speaks_to_get_no_rating_at_all() -> None:
    everything = team(*TALK, REQUEST, ("human", "ACCEPT()"), SEND, EDIT, SEARCH, ("agent", "FINISH()"))
    assert set(rated(everything)) <= set(DETECTORS)
    assert "P.1" not in rated(everything)


def test_a_log_without_what_a_detector_looks_at_gets_no_fake_absent() -> None:
    codes = rated(team(("human", "Hello."), ("agent", "Hi, what can I do?")))
    assert "SA.5" not in codes and "PL.2" not in codes


def test_agents_among_themselves_are_not_silent_towards_a_human() -> None:
    log = team(*[("agent", f"PUT(onion {i})") for i in range(9)])
    agents = (Participant(name="agent", kind="agent"), Participant(name="environment", kind="environment"))
    codes = rated(log.model_copy(update={"participants": agents}))
    assert not {"C.1", "C.3"} & set(codes)


def test_a_finding_says_why_and_where_it_usually_comes_from() -> None:
    rating = rated(team(*TALK, EDIT, EDIT))["PL.2"]
    assert rating.rationale == "the step at 3 again, with nothing new between"
    assert (rating.rater, rating.rater_kind, rating.error_source) == ("detectors", "rule", "both")


def test_detectors_refuse_another_codebook() -> None:
    with pytest.raises(JudgeError, match="only failures"):
        Detectors(codebooks.load("halting"))


def test_a_detector_that_fails_costs_its_own_code_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(log: Log) -> NoReturn:
        raise KeyError("step")

    log = team(*TALK, SEARCH, SEARCH)
    whole = rated(log)
    monkeypatch.setitem(DETECTORS, "PL.2", (fails,))
    rest = rated(log)
    assert {code: one.error for code, one in rest.items() if one.error} == {
        "PL.2": "its rules failed: KeyError: 'step'"
    }
    labels = {code: one.label for code, one in rest.items() if code != "PL.2"}
    assert labels == {code: one.label for code, one in whole.items() if code != "PL.2"}
