"""The lexical baseline: what it is meant to catch, and what it says of what it cannot read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from coaudit.judges import JudgeError
from coaudit.judges.rules import Rules
from coaudit.judges.rules.lexical import halts, readable, settles, takes_initiative, text_array
from coaudit.pipeline import codebooks
from coaudit.pipeline.units import cut
from tests.judges.teams import team


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Let us sort the survey answers by region first.", True),
        ("Please swap the dinner on day 2 for something cheaper.", True),
        ("Would a night shift solve the staffing gap?", True),
        ("Yes, and please put the allergy list on the first page.", True),
        ("Okay, thank you!", False),
        ("Let me check the flights again.", False),
        ("Any ideas?", False),
        ("I am not sure about that.", False),
        ("Yes, go ahead. Thanks!", False),
        ("Hello! How can I assist you today?", False),
        ("The plan is complete. Please let me know if you have any questions.", False),
        ("Please let me know which dates you prefer.", True),
        ("Okay, I will search for hotels and then write the itinerary.", False),
        ("I'll book the early train, if that is fine?", True),
        ("I have drafted the section. Do you have any other questions?", False),
        ("No problem, I'll take care of it.", False),
        ("No problem, take your time.", False),
        ("It doesn't matter to me.", False),
        ("I'll write section 2 and you should write section 3.", True),
        ("I've finished the draft, please review it.", True),
        ("I'm updating the table, let's meet after.", True),
        ("I'll start now, please wait a moment.", False),
    ],
)
def test_initiative_is_a_proposal_a_request_or_a_concrete_question(text: str, expected: bool) -> None:
    assert takes_initiative(text_array([text])) == [expected]


@pytest.mark.parametrize(
    ("question", "reply", "expected"),
    [
        ("I found two duplicate records. May I merge them?", "Go ahead.", True),
        ("I found two duplicate records. May I merge them?", "Better not, those are twins.", True),
        ("I found two duplicate records. May I merge them?", "How did you find them?", False),
        ("How many children will attend?", "Twenty-three.", False),
        ("The template is ready. Is there anything else I can do for you?", "No, thank you.", False),
        ("Two translations fit the tone. Which one should I keep?", "You know this better, pick one.", True),
        ("Do you want a window seat?", "It doesn't matter.", True),
        ("Does this order work for you?", "It works.", True),
        ("May I delete the old section?", "Please wait until I have read it.", True),
    ],
)
def test_a_confirmation_needs_a_decision_asked_for_and_settled(
    question: str, reply: str, expected: bool
) -> None:
    assert settles(text_array([question]), text_array([reply])) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please stop sending reminders to the parents.", True),
        ("Hold on, I want to look at the list first.", True),
        ("Don't transfer anything yet.", True),
        ("No, the second headline doesn't sound right to me.", False),
        ("Don't use any supplier from outside the county.", False),
        ("I will wait for the bus at the bus stop.", False),
        ("I don't want to move hotels.", False),
        ("We don't have to finish today.", False),
        ("You don't need to start from scratch.", False),
        ("I don't want you to send anything.", True),
        ("The restaurants are not yet in the plan.", False),
        ("Not yet. My wife must see it first.", True),
        ("Please place the yellow block before you go to the next layer.", False),
        ("I want to read the draft before you go on.", True),
        ("Could you pause for a moment?", True),
        ("Before you send it, let me check the address.", True),
        ("Could you stop by the museum on the way?", False),
        ("Can you wait-list me for the flight?", False),
        ("Please stop over-editing my text!", True),
        ("Let's not visit the zoo now that it rains.", False),
        ("Let's not forget the sunscreen now.", False),
        ("Let's not book it now, please.", True),
        ("I'll finish the text myself.", True),
        ("Let's not book it yet.", True),
        ("Could you please not send it yet?", True),
        ("Could you please not send it as a picture?", False),
        ("Could you not find anything cheaper before we leave?", False),
        ("Would you mind not sending that until I am back?", True),
        ("Would you please not touch the table?", True),
        ("Please avoid sending anything until I confirm.", True),
        ("Let's pause here", True),
        ("Let's pause at the lake for an hour.", False),
        ("Let's stop here for a second.", True),
        ("Let's stop here for lunch.", False),
        ("Let's stop worrying about the price.", False),
        ("Let's slow down.", True),
        ("Can we pause for a moment?", True),
        ("We could pause in Florence for a night.", False),
        ("I need you to stop.", True),
        ("Put that on hold.", True),
        ("Not now, please.", True),
        ("Not now that it rains.", False),
        ("Stop at Rome on the way", False),
        ("Stop at Rome, then go on to Naples.", False),
        ("Stop at once!", True),
        ("Please stop at this point.", True),
        ("And stop at a bakery for breakfast.", False),
        ("Stop 3 is the museum.", False),
        ("Wait time is two hours.", False),
        ("Okay, wait times are fine there.", False),
        ("Stop, the wait time is wrong.", True),
        ("Stop, wait times are wrong.", True),
        ("Stop at Step 3 please.", True),
        ("Stop 2 of these runs.", True),
        ("Pause 5 minutes.", True),
        ("Can you wait for an hour?", True),
        ("Please wait for two hours before the next one.", True),
        ("When should we stop?", False),
        ("How can we halt the loss of bees?", False),
        ("Stop, what should we do first?", True),
        ("Could we slow down global warming?", False),
        ("Let's slow down the pace on day two.", False),
        ("Let's slow down a bit.", True),
        ("Avoid driving before the sun is up.", False),
        ("I would avoid visiting the museum right now.", False),
        ("Would you mind not smoking before the meeting?", False),
        ("Let's hold on to that idea.", False),
    ],
)
def test_halting_is_about_the_agents_activity(text: str, expected: bool) -> None:
    assert halts(text_array([text])) == [expected]


@pytest.mark.parametrize(
    "text", ["", "?!", "…", "请先看表格。", "לא, בבקשה תפסיק.", "Стоп, пожалуйста.", "يرجى المتابعة"]
)
def test_a_text_without_a_letter_or_in_another_script_is_unclear_and_never_a_no(text: str) -> None:
    book = codebooks.load("initiative")
    ((rating,),) = Rules(book).rate(list(cut(team(("human", text)), book)))
    assert rating.label == "unclear"
    assert rating.rater_kind == "rule"


@pytest.mark.parametrize(
    "text", ["Please stop, 小明.", "naïve café, s'il vous plaît", "12:30", "α = 0.5 was used"]
)
def test_a_text_mostly_in_the_wordings_script_is_read(text: str) -> None:
    book = codebooks.load("initiative")
    ((rating,),) = Rules(book).rate(list(cut(team(("human", text)), book)))
    assert rating.label in book.labels


@pytest.mark.parametrize("apostrophe", ["’", "‘", "ʼ", "´", "＇"])
def test_an_apostrophe_is_one_whichever_keyboard_wrote_it(apostrophe: str) -> None:
    def written(text: str) -> pa.StringArray:
        return text_array([text.replace("'", apostrophe)])

    assert halts(written("Don't send it yet.")) == [True]
    assert halts(written("I'll finish the table myself.")) == [True]
    assert takes_initiative(written("I'd like a hotel near the sea.")) == [True]
    assert takes_initiative(written("What's next?")) == [False]
    assert settles(written("Shall I book it?"), written("I'd prefer the train.")) == [True]


@pytest.mark.parametrize("mark", ["？", "؟"])
def test_a_question_mark_of_another_keyboard_asks(mark: str) -> None:
    assert takes_initiative(text_array([f"Which museum shall we visit{mark}"])) == [True]
    assert settles(text_array([f"Shall I book it{mark}"]), text_array(["Yes."])) == [True]
    assert settles(text_array(["Shall I book it?"]), text_array([f"The museum tickets{mark}"])) == [False]


def test_the_rules_refuse_a_codebook_they_have_no_patterns_for() -> None:
    with pytest.raises(JudgeError, match="only initiative, confirmation, halting"):
        Rules(codebooks.load("failures"))


def test_what_stands_beside_a_text_changes_nothing_about_it() -> None:
    texts = [
        "Stop.",
        "",
        "…\n\n",
        "Thanks! Please add a row.",
        "é stop",
        "No\nstop it",
        "a.b?c;d!",
        "Стоп. stop",
    ]
    for rule in (takes_initiative, halts, readable):
        assert rule(text_array(texts)) == [rule(text_array([text]))[0] for text in texts]


def test_time_grows_with_the_length_of_a_text_whatever_it_says() -> None:
    hostile = [
        "do you " * 20_000,
        "it is " * 20_000,
        "is this " * 20_000 + "?",
        "enough " * 20_000,
        "a" * 200_000,
    ]
    for rule in (takes_initiative, halts):
        assert len(rule(text_array(hostile))) == len(hostile)
    assert settles(text_array(hostile), text_array(hostile[::-1]))


def test_half_a_surrogate_pair_is_no_reason_to_stop() -> None:
    assert halts(text_array(["Stop \ud800 it."])) == [True]
