"""What an answer means: labels, findings, refusals, probabilities; and what is no answer."""

from __future__ import annotations

import json
import math
import time

import pytest

from coaudit.judges.clients import Reply
from coaudit.judges.clients.protocol import BadAnswer, Refused, Token
from coaudit.judges.llm.answers import Choice, Findings, answer_of
from coaudit.judges.llm.judge import united_verdict
from coaudit.pipeline import codebooks
from coaudit.schemas import Verdict
from tests.judges.teams import team

INITIATIVE = codebooks.load("initiative")
FAILURES = codebooks.load("failures")
LOG = team(
    ("human", "Please book the “Blue Room” for Friday."),
    ("agent", "BOOK(Red Room)"),
    ("agent", "All is booked.\nSee you!"),
)


def label(text: str, finish: str | None = None, refusal: str | None = None) -> str | None:
    (verdict,) = Choice(INITIATIVE).parse(Reply(text, finish=finish, refusal=refusal), ())
    return verdict.label


def findings(**said: object) -> dict[str, Verdict]:
    absent = {"answer": "absent", "events": [], "quote": "", "source": ""}
    document = {code.code: absent for code in FAILURES.codes} | {
        key.replace("_", "."): value for key, value in said.items()
    }
    verdicts = Findings(FAILURES).parse(Reply(json.dumps(document)), LOG.events)
    return {verdict.code: verdict for verdict in verdicts}


@pytest.mark.parametrize(
    "text",
    [
        *("yes", " YES\n", "Yes.", '"yes"', '{"answer": "Yes"}'),
        *("<think>no</think>yes", "It says no.\n</think>\n\nyes"),
    ],
)
def test_a_label_counts_whatever_its_case_and_surroundings(text: str) -> None:
    assert label(text) == "yes"


@pytest.mark.parametrize("name", ["n.a.", "*", "'so'"])
def test_a_label_that_ends_in_marks_is_one(name: str) -> None:
    book = INITIATIVE.model_copy(update={"labels": (name, "no")})
    for text in (name, json.dumps({"answer": name}), f"{name} ", f"**{name}**", f'"{name}".'):
        assert Choice(book).parse(Reply(text), ())[0].label == name


@pytest.mark.parametrize(
    ("text", "expected"), [("**", "**"), ('"**"', "**"), ("`*`.", "*"), ("**yes**", "yes")]
)
def test_of_labels_that_are_marks_it_is_the_longest_that_stands_there(text: str, expected: str) -> None:
    book = INITIATIVE.model_copy(update={"labels": ("*", "**", "***", "yes")})
    assert Choice(book).parse(Reply(text), ())[0].label == expected


def test_null_is_no_answer_where_a_label_is_called_none() -> None:
    book = INITIATIVE.model_copy(update={"labels": ("some", "none")})
    for codebook in (book, book.model_copy(update={"codes": (*book.codes, *FAILURES.codes[:1])})):
        said = {code.code: {"answer": None} for code in codebook.codes}
        with pytest.raises(BadAnswer):
            answer_of(codebook).parse(Reply(json.dumps({"answer": None} | said)), ())
    assert Choice(book).parse(Reply('{"answer": "None"}'), ())[0].label == "none"


@pytest.mark.parametrize(
    "text", ["```yes```", "```json\nyes\n```", '```json {"answer": "yes"}```', "``` yes\n\n```"]
)
def test_a_label_in_a_fence_counts(text: str) -> None:
    assert label(text) == "yes"


@pytest.mark.parametrize("text", ["`" * 5, "`" * 6, "```json```", "```json yes", "yes```x"])
def test_a_fence_around_nothing_or_left_open_is_malformed(text: str) -> None:
    with pytest.raises(BadAnswer):
        label(text)


@pytest.mark.parametrize("text", ["```" + " " * 4_000_000 + "x", "```json" + "\n" * 4_000_000 + "x```"])
def test_an_endless_answer_is_read_in_no_time(text: str) -> None:
    began = time.monotonic()
    with pytest.raises(BadAnswer):
        label(text)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "text", ["Yes, because it proposes", "oui", "ja", "Well,", "1", '{"answer": 3}', "[]"]
)
def test_an_answer_outside_the_codebook_is_malformed_and_never_a_no(text: str) -> None:
    with pytest.raises(BadAnswer, match="label must be one of yes, no, unclear"):
        label(text)


@pytest.mark.parametrize("text", ['{"answer": "yes", "answer": "no"}', '{"answer": "no", "answer": "no"}'])
def test_an_answer_that_is_given_twice_is_malformed_and_not_the_last_one(text: str) -> None:
    with pytest.raises(BadAnswer, match="it has the key 'answer' twice"):
        label(text)


def test_a_code_that_is_found_twice_is_malformed() -> None:
    absent = json.dumps({code.code: {"answer": "absent"} for code in FAILURES.codes})
    present = '{"C.1": {"answer": "present", "events": [1], "quote": ""}, '
    with pytest.raises(BadAnswer, match=r"it has the key 'C\.1' twice"):
        Findings(FAILURES).parse(Reply(present + absent[1:]), LOG.events)


def test_an_answer_that_was_cut_off_is_malformed() -> None:
    with pytest.raises(BadAnswer, match="cut off"):
        label("no", finish="length")


@pytest.mark.parametrize(
    "text", ["I'm sorry, but I can't help with that.", "I cannot rate this.", "As an AI, no."]
)
def test_a_refusal_is_an_error_with_its_text(text: str) -> None:
    with pytest.raises(Refused) as refused:
        label(text)
    assert text[:20] in str(refused.value)


def test_a_refusal_field_is_a_refusal_although_the_text_is_empty() -> None:
    with pytest.raises(Refused, match="not this"):
        label("", refusal="not this")


def test_the_probability_is_the_labels_share_of_the_labels_mass() -> None:
    token = Token(
        "yes", math.log(0.6), (("yes", math.log(0.6)), ("no", math.log(0.2)), ("the", math.log(0.2)))
    )
    (verdict,) = Choice(INITIATIVE).parse(Reply("yes", tokens=(token,)), ())
    assert verdict.probability == pytest.approx(0.75)


def test_the_probability_is_found_inside_a_json_answer() -> None:
    tokens = (
        Token('{"answer":', 0.0),
        Token(' "', 0.0),
        Token("no", math.log(0.9), (("no", math.log(0.9)), ("yes", math.log(0.1)))),
        Token('"}', 0.0),
    )
    (verdict,) = Choice(INITIATIVE).parse(Reply('{"answer": "no"}', tokens=tokens), ())
    assert verdict.probability == pytest.approx(0.9)


def test_no_probability_is_made_up_where_the_label_begins_like_another() -> None:
    """What was answered had a probability of 0."""
    book = INITIATIVE.model_copy(update={"labels": ("likely", "unlikely")})
    tokens = (Token("un", math.log(0.9), (("likely", math.log(0.05)),)), Token("likely", 0.0))
    (verdict,) = Choice(book).parse(Reply("unlikely", tokens=tokens), ())
    assert (verdict.label, verdict.probability) == ("unlikely", None)


def probability(labels: tuple[str, ...], answer: str, **masses: float) -> float | None:
    """That of an answer of one token, with the masses of it and its rivals."""
    rivals = tuple((text.strip("_"), math.log(mass)) for text, mass in masses.items())
    token = Token(answer, dict(rivals)[answer], rivals)
    book = INITIATIVE.model_copy(update={"labels": labels})
    (verdict,) = Choice(book).parse(Reply(answer, tokens=(token,)), ())
    return verdict.probability


def test_a_rival_that_begins_several_other_labels_has_its_mass() -> None:
    """It had none: `yes` was certain whenever `no` began two labels."""
    assert probability(("yes", "no", "not said"), "yes", yes=0.6, no=0.4) == pytest.approx(0.6)


def test_no_probability_is_made_up_where_much_of_the_mass_may_be_the_labels_or_anothers() -> None:
    assert probability(("1", "5", "10"), "10", _10=0.6, _1=0.35, _5=0.05) is None
    assert probability(("1", "5", "10"), "10", _10=0.6, _1=0.005, _5=0.2) == pytest.approx(0.75)


def test_no_probability_is_made_up_where_only_other_spellings_of_the_label_are_told() -> None:
    """The others may share the .2 that are not told."""
    assert probability(("yes", "no"), "yes", yes=0.5, Yes=0.3) is None
    assert probability(("yes", "no"), "yes", yes=0.6, Yes=0.39) == 1
    assert probability(("yes", "no"), "yes", yes=0.1, so=0.86) is None, "no may have .04 of .14"
    assert probability(("yes", "no"), "yes", yes=0.5, Yes=0.3, no=0.1) == pytest.approx(8 / 9)


def test_no_probability_is_made_up_where_the_endpoint_offers_none() -> None:
    (verdict,) = Choice(INITIATIVE).parse(Reply("yes"), ())
    assert verdict.probability is None


@pytest.mark.parametrize("rivals", [(), (("yes", math.log(0.6)),)])
def test_no_probability_is_made_up_where_no_rival_of_the_label_is_told(
    rivals: tuple[tuple[str, float], ...],
) -> None:
    """Its share of the masses that are told would be 1, whatever its own is."""
    (verdict,) = Choice(INITIATIVE).parse(Reply("yes", tokens=(Token("yes", math.log(0.6), rivals),)), ())
    assert verdict.probability is None


def test_a_finding_keeps_its_events_quote_and_source() -> None:
    said = {"answer": "present", "events": [1, "[3]"], "quote": "all is BOOKED. See you", "source": "model"}
    found = findings(C_5=said)["C.5"]
    assert (found.label, found.cites, found.error_source) == ("present", (1, 3), "model")


def test_the_end_of_a_thought_in_a_quotation_ends_none() -> None:
    log = team(("human", "Stop at </think>, please."))
    found = {"answer": "present", "events": [log.events[-1].seq], "quote": "Stop at </think>", "source": ""}
    absent = {code.code: {"answer": "absent"} for code in FAILURES.codes}
    reply = Reply(json.dumps({**absent, "C.1": found}))
    assert Findings(FAILURES).parse(reply, log.events)[0].label == "present"


def test_a_quotation_may_skip_with_dots_and_straighten_quotation_marks() -> None:
    said = {"answer": "present", "events": [1], "quote": 'book the "Blue Room" ... Friday', "source": ""}
    assert findings(C_5=said)["C.5"].label == "present"


@pytest.mark.parametrize("quote", ["...", " … ", "'. ...'", "[ ]"])
def test_a_quotation_of_nothing_is_none(quote: str) -> None:
    found = findings(C_5={"answer": "present", "events": [1], "quote": quote, "source": ""})["C.5"]
    assert (found.label, found.quote) == ("present", None)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"events": [99], "quote": ""}, "cites event 99"),
        ({"events": [], "quote": ""}, "cites no event"),
        ({"events": [3], "quote": "Blue Room"}, "in none of the events that it cites"),
        ({"events": [1], "quote": "never said"}, "in none of the events"),
    ],
)
def test_a_finding_without_support_is_an_error_and_the_others_hold(
    said: dict[str, object], problem: str
) -> None:
    found = findings(SA_5={"answer": "present", "source": "both", **said})
    assert found["SA.5"].label is None
    assert problem in str(found["SA.5"].error)
    assert found["PL.1"].label == "absent"


def test_an_action_can_be_quoted_as_it_is_shown() -> None:
    said = {"answer": "present", "events": [2], "quote": "text=Red Room", "source": ""}
    assert findings(SA_1=said)["SA.1"].label == "present"


@pytest.mark.parametrize("events", ["\ud83d", ["\ud83d"]])
def test_half_a_character_in_an_escape_is_in_nothing_that_is_kept(events: object) -> None:
    said = {"answer": "present", "events": events, "quote": "", "source": ""}
    with pytest.raises(BadAnswer) as bad:
        findings(C_1=said)
    assert str(bad.value).encode()
    quoted = findings(C_1={**said, "events": [1], "quote": "Blue Room ... \ud83d"})["C.1"]
    assert f"{quoted.quote}{quoted.error}".encode()


def test_missing_codes_are_asked_for_again() -> None:
    with pytest.raises(BadAnswer, match=r"these codes are missing: C\.2"):
        Findings(FAILURES).parse(Reply('{"C.1": {"answer": "absent"}}'), LOG.events)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"C.1": ', "none", "[]"])
def test_broken_json_is_malformed(text: str) -> None:
    with pytest.raises(BadAnswer):
        Findings(FAILURES).parse(Reply(text), LOG.events)


def test_present_in_one_window_is_present_with_all_citations() -> None:
    windows = [
        Verdict("C.1", "absent"),
        Verdict("C.1", "present", cites=(2, 3)),
        Verdict("C.1", "present", cites=(3, 4)),
    ]
    assert united_verdict(windows, "present").cites == (2, 3, 4)


def test_an_error_in_one_window_is_not_an_absent_in_all() -> None:
    assert (
        united_verdict([Verdict("C.1", "absent"), Verdict("C.1", error="broken")], "present").error
        == "broken"
    )
    assert united_verdict([Verdict("C.1", "absent"), Verdict("C.1", "unclear")], "present").label == "unclear"


def test_labels_of_a_scale_that_differ_between_windows_make_no_label_of_the_whole() -> None:
    low, high = Verdict("clear", "1"), Verdict("clear", "4", cites=(2,))
    assert united_verdict([high, Verdict("clear", "4")], None) == high
    assert united_verdict([high, low], None).error == (
        "too long for one question: its 2 windows were given 4, 1, which make no one label"
    )
    assert united_verdict([high, Verdict("clear", error="broken")], None).error == "broken"
    unclear = Verdict("clear", "unclear")
    assert united_verdict([high, unclear], None) == unclear
    assert united_verdict([high, unclear, low], None).error


def test_the_probability_of_one_window_is_not_that_of_the_whole() -> None:
    sure, torn = Verdict("clear", "no", probability=0.99), Verdict("clear", "no", probability=0.51)
    assert united_verdict([sure, torn], "yes") == Verdict("clear", "no")


def scale_verdict(**finding: object) -> Verdict:
    codes = [code.model_copy(update={"code": name}) for code in FAILURES.codes[:1] for name in "ab"]
    book = FAILURES.model_copy(
        update={"level": "ordinal", "labels": ("1", "2", "3"), "codes": tuple(codes), "categories": ()}
    )
    form = Findings(book)
    assert "needs at least one" not in form.instruction and "scaffolding" not in form.instruction
    answer = json.dumps({"a": {"answer": "2"}, "b": finding})
    return form.parse(Reply(answer), LOG.events)[1]


@pytest.mark.parametrize("label", ["1", "2", "3"])
def test_no_label_of_a_scale_needs_evidence_more_than_another(label: str) -> None:
    assert scale_verdict(answer=label, events=[]) == Verdict("b", label)
    assert scale_verdict(answer=label, events=[3], quote="See you").cites == (3,)
    assert scale_verdict(answer=label, events=[9]).error is not None


def test_unclear_on_a_scale_needs_no_evidence() -> None:
    assert scale_verdict(answer="unclear", events=[9]) == Verdict("b", "unclear")


def test_one_code_is_a_choice_and_several_are_findings() -> None:
    assert isinstance(answer_of(INITIATIVE), Choice)
    assert isinstance(answer_of(FAILURES), Findings)
