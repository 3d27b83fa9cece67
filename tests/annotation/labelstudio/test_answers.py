"""Label Studio without a server: configurations, tasks, answers, and samples on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from coaudit.annotation.labelstudio import answers as labelstudio_answers
from coaudit.annotation.labelstudio import client, tasks
from coaudit.annotation.labelstudio import config as label_config
from coaudit.annotation.labelstudio.tasks import NO_EVENT
from coaudit.pipeline import codebooks
from coaudit.schemas import Action, Code, Codebook, Event, Maker, Participant, Rating, Trajectory, Verdict
from tests.conftest import ROOT, Coaudit

FAILURES = codebooks.load("failures")


def small(*events: Event) -> Trajectory:
    people = (
        Participant(name="ann", kind="human"),
        Participant(name="basic_agent_gpt", kind="agent", model="gpt"),
    )
    return Trajectory(
        id="t", native_id="t", source="x", system="x", participants=people, events=events, condition="secret"
    )


def said(seq: int, text: str, actor: str = "basic_agent_gpt") -> Event:
    return Event(seq=seq, actor=actor, kind="message", text=text)


def asked(trajectory: Trajectory, event: Event, context: str = "transcript") -> dict[str, Any]:
    subject = tasks.Subject("s", "t", event.seq, "h", "initiative", "1")
    book = codebooks.load("initiative")
    return tasks.task(subject, tasks.Log(trajectory), [event], book, context)["data"]  # type: ignore[return-value]


@pytest.mark.parametrize("name", codebooks.names())
def test_every_codebook_makes_a_configuration_that_label_studio_takes(name: str) -> None:
    client.check_config(label_config.label_config(codebooks.load(name)))


@pytest.mark.parametrize("name", codebooks.names())
def test_an_adjudication_shows_what_was_answered(name: str) -> None:
    config = label_config.label_config(codebooks.load(name), adjudication=True)
    client.check_config(config)
    assert "$given" in config and "$given" not in label_config.label_config(codebooks.load(name))


def test_who_settles_one_question_need_not_answer_the_others() -> None:
    dilemmas = codebooks.load("dilemmas")
    assert len(dilemmas.codes) > 1 and not label_config.is_checklist(dilemmas)
    assert 'required="true"' in label_config.label_config(dilemmas)
    assert 'required="true"' not in label_config.label_config(dilemmas, adjudication=True)
    assert 'required="true"' in label_config.label_config(codebooks.load("initiative"), adjudication=True)


def test_a_codebook_cannot_break_out_of_the_configuration_or_name_task_data() -> None:
    evil = '"/><Choices name="x"/> $transcript <script>alert(1)</script> \x00\x1b\ufffe'
    code = Code(code="a", name=evil, definition=evil, counts=(evil,))
    book = Codebook(
        name="evil",
        title=evil,
        unit="utterance",
        labels=("yes", "no"),
        question=evil,
        guidance=evil,
        codes=(code,),
    )
    config = label_config.label_config(book)
    tree = ElementTree.fromstring(config)
    assert [e.get("name") for e in tree.iter("Choices")] == ["answer"]
    allowed = {"$transcript", "$unit", "$earlier", "$later"}
    values = [v for e in tree.iter() for k, v in e.attrib.items() if k in ("value", "hint") and "$" in v]
    assert set(values) <= allowed
    markdown = "".join(e.get("value", "") for e in tree.iter("Markdown"))
    assert "<script" not in markdown and "<script" not in label_config.instruction(book)
    client.check_config(config)


def test_annotators_see_neither_model_nor_condition_nor_names_and_messages_byte_for_byte() -> None:
    message = said(1, 'He said "<b>no</b>"\nTwice.')
    data = asked(small(said(0, "Hello?", "ann"), message), message)
    assert data["transcript"][1] == {"author": "▶ RATE THIS · Agent", "text": f"[1] {message.text}"}
    assert data["unit"] == [data["transcript"][1]]
    assert "gpt" not in json.dumps(data) and "secret" not in json.dumps(data)


def test_annotators_see_no_id_that_a_log_gave() -> None:
    message, book = said(0, "Hello?"), codebooks.load("initiative")

    def shown(key: str) -> Any:
        subject = tasks.Subject("s", key, 0, "h", "initiative", "1")
        data: Any = tasks.task(subject, tasks.Log(small(message)), [message], book, "transcript")["data"]
        return data["trajectory"]

    assert not {"gpt", "failed"} & set(shown("gpt-failed").split("-"))
    assert shown("gpt-failed") != shown("gpt-succeeded")
    assert shown("0123456789abcdef-012345") == "0123456789abcdef-012345"


def test_a_unit_stands_among_its_neighbours_and_the_rest_of_the_log_is_in_two_folds() -> None:
    events = [said(n, f"message {n}") for n in range(320)]
    data = asked(small(*events), events[200])
    lines = [data[part] for part in ("earlier", "transcript", "later")]
    assert data["seqs"] == [*range(196, 205)]
    assert [len(part) for part in lines] == [196, 9, 115]
    assert [line["text"] for part in lines for line in part] == [f"[{e.seq}] {e.text}" for e in events]
    blind = asked(small(*events), events[200], "preceding")
    assert blind["seqs"] == [*range(196, 201)] and len(blind["later"]) == 1
    assert "message 201" not in json.dumps(blind)


def test_a_checklist_has_the_whole_log_and_its_end_is_where_one_says_that_one_read_it() -> None:
    events = [said(n, f"message {n}") for n in range(320)]
    subject = tasks.Subject("s", "t", None, "h", "failures", "1")
    data = tasks.task(subject, tasks.Log(small(*events)), events, FAILURES, "transcript")["data"]
    assert data["seqs"] == [*range(320)] and "earlier" not in data  # type: ignore[index,operator,call-overload]
    tree = ElementTree.fromstring(label_config.label_config(FAILURES))
    (log,) = (view for view in tree.iter("View") if view.get("className") == "coaudit-log")
    *_, last = log.iter("Choices")
    assert last.get("name") == "read" and last.get("required") == "true"
    assert [e.get("name") for e in log.iter("Paragraphs")] == ["transcript"]


def participant_task(book: Codebook) -> dict[str, Any]:
    """What is asked about an agent that spoke at 0, 5 and 6 of ten, all else by a person."""
    own = {0, 5, 6}
    events = [said(n, f"message {n}", "basic_agent_gpt" if n in own else "ann") for n in range(10)]
    subject = tasks.Subject("s", "t", 0, "h", book.name, "1")
    rated = [event for event in events if event.seq in own]
    return dict(tasks.task(subject, tasks.Log(small(*events)), rated, book, "transcript")["data"])  # type: ignore[arg-type]


def test_of_a_participant_the_log_shows_what_they_did_and_what_was_next_to_it() -> None:
    book = codebooks.load("responsible_agent")
    data = participant_task(book)
    assert data["seqs"] == [0, 1, NO_EVENT, 4, 5, 6, 7, NO_EVENT]
    texts = [line["text"] for line in data["transcript"]]
    assert texts[2] == "… 2 lines of others, in the whole log below"
    assert texts[-1] == "… 2 lines of others, in the whole log below"
    assert [line["text"] for line in data["whole"]] == [f"[{n}] message {n}" for n in range(10)]
    config = label_config.label_config(book)
    tree = ElementTree.fromstring(config)
    (log,) = (view for view in tree.iter("View") if view.get("className") == "coaudit-log")
    assert [e.get("name") for e in log.iter("Paragraphs")] == ["transcript", "whole"]
    client.check_config(config)


def test_a_checklist_of_a_step_shows_what_is_around_it_and_asks_to_read_that() -> None:
    book = FAILURES.model_copy(update={"unit": "step", "name": "steps"})
    assert label_config.is_checklist(book)
    events = [said(n, f"message {n}") for n in range(40)]
    subject = tasks.Subject("s", "t", 20, "h", book.name, "1")
    data: Any = tasks.task(subject, tasks.Log(small(*events)), [events[20]], book, "transcript")["data"]
    assert data["seqs"] == [*range(16, 25)] and len(data["earlier"]) == 16
    tree = ElementTree.fromstring(label_config.label_config(book))
    ticks = next(e for e in tree.iter("Choices") if e.get("name") == "read")
    assert [e.get("value") for e in ticks] == [label_config.READ_THE_UNIT]


def test_instructions_are_rendered_and_words_in_backticks_set_apart() -> None:
    shown = label_config.instruction(codebooks.load("initiative"))
    assert "`" not in shown and "<code><b>yes</b></code>" in shown and "<p>• A proposal: what to do" in shown
    assert "<b>Takes initiative</b>" in shown and "initiative Takes" not in shown


def test_preceding_context_never_shows_the_future() -> None:
    events = [said(n, f"message {n}") for n in range(4)]
    for context, shown in (("transcript", [0, 1, 2, 3]), ("preceding", [0, 1]), ("unit", [1])):
        assert asked(small(*events), events[1], context)["seqs"] == shown


def test_actions_failures_and_what_they_changed_are_lines_of_their_own() -> None:
    edit = Event(
        seq=0,
        actor="basic_agent_gpt",
        kind="action",
        action=Action(name="RUN", arguments={"code": "1/0"}),
        status="failed",
        error="ZeroDivisionError",
        states={"public": "h1"},
    )
    trajectory = small(edit).model_copy(update={"states": {"h1": {"editor": "a draft", "empty": ""}}})
    lines = list(tasks.lines(trajectory))
    assert lines[0].text == "[0] ▸ RUN(code=1/0)\n✗ FAILED: ZeroDivisionError"
    assert [line.text for line in lines[1:]] == ["[0] after it, in the state · editor:\na draft"]
    assert tasks.final_state(trajectory) == "editor:\na draft\n\nempty:\n"


def test_annotators_see_what_would_hide_or_turn_text_around() -> None:
    """All that a judge's prompt takes out, such as tag characters, which spell words that nobody sees."""
    text = "ok\u202e\x00\u061c\u2028\U000e0041\ufff9"
    (line,) = tasks.lines(small(said(0, text)))
    assert line.text == r"[0] ok\u202e\u0000\u061c\u2028\U000e0041\ufff9"


def test_a_checklist_that_was_not_read_to_its_end_says_nothing_about_what_is_not_marked() -> None:
    read = labelstudio_answers.read(FAILURES, {"result": []}, [0])
    assert {answer.label for answer in read.verdicts} == {None}
    assert {answer.error for answer in read.verdicts} == {labelstudio_answers.UNREAD}


def test_a_code_is_not_absent_where_a_label_was_marked_that_was_made_of_it_by_hand() -> None:
    book = codebooks.load("failures")
    ticked = [["C Communication", "C.4 Renamed"], ["P Personalization", "Tone"], ["X New", "X.1 New"]]
    area = next(c for c in book.categories if c.category == "P")
    ticked[1][0] = f"{area.category} {area.name}"
    taxonomy = {"from_name": "present", "to_name": "transcript", "type": "taxonomy"}
    read_to_end = {
        "from_name": "read",
        "to_name": "transcript",
        "type": "choices",
        "value": {"choices": ["x"]},
    }
    marked = {"from_name": "evidence", "to_name": "transcript", "type": "paragraphlabels"}
    passage = {"start": "0", "end": "0", "text": "Hi", "paragraphlabels": ["C.1 Late start"]}
    result = [{**taxonomy, "value": {"taxonomy": ticked}}, read_to_end, {**marked, "value": passage}]
    read = labelstudio_answers.read(book, {"result": result}, [0])
    labels = {verdict.code: verdict.label or verdict.error for verdict in read.verdicts}
    doubtful = {code for code, label in labels.items() if label == labelstudio_answers.UNKNOWN}
    assert doubtful == {"C.1", "C.4", *(code.code for code in book.codes if code.category == "P")}
    assert {label for code, label in labels.items() if code not in doubtful} == {"absent"}
    assert len(read.problems) == 4 and "label 'C.4 Renamed' is not in the codebook" in read.problems


def test_what_a_page_shows_of_a_name_in_other_characters_reads_back_as_the_code() -> None:
    odd = FAILURES.codes[0].model_copy(update={"name": "Asks for  $5 more"})
    book = FAILURES.model_copy(update={"codes": (odd, *FAILURES.codes[1:])})
    marks = labelstudio_answers.prediction(
        book,
        [Maker("judge", "llm", "1", book).rating_at(("t", None, "h"), Verdict("C.1", "present"))],
        [],
        [],
    )
    assert "C.1 Asks for ＄5 more" in str(marks) and "C.1 Asks for ＄5 more" in label_config.label_config(
        book
    )
    read = labelstudio_answers.read(book, {"result": marks}, [])
    assert (read.verdicts[0].label, read.problems) == ("present", [])
    price = codebooks.load("confirmation").model_copy(update={"labels": ("over $5", "under  $5")})
    chosen = {"from_name": "answer", "type": "choices", "value": {"choices": ["under ＄5"]}}
    assert labelstudio_answers.read(price, {"result": [chosen]}, [0]).verdicts[0].label == "under  $5"


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        ("C.4: Renamed", {"C.4"}),
        ("c.4 Renamed", {"C.4"}),
        ("C.4\u00a0Renamed", {"C.4"}),
        ("\uff23.\uff14 Renamed", {"C.4"}),
        ("Renamed (C.4)", {"C.4"}),
        ("(C.4) Renamed", {"C.4"}),
        ("Not C.4, but P.1", {"C.4", "P.1"}),
        ("C.4, not P.1", {"C.4"}),
        ("C.40 Renamed", set()),
        ("C.4.1 Renamed", set()),
        ("SEC.4 Renamed", set()),
        ("A.C.4 Renamed", set()),
        ("", set()),
    ],
)
def test_an_unknown_label_stands_for_the_code_that_it_names_however_it_is_written(
    label: str, meant: set[str]
) -> None:
    passage = {"start": "0", "end": "0", "text": "Hi", "paragraphlabels": [label]}
    result = [
        {"from_name": "evidence", "type": "paragraphlabels", "value": passage},
        {"from_name": "read", "type": "choices", "value": {"choices": ["x"]}},
    ]
    read = labelstudio_answers.read(FAILURES, {"result": result}, [0])
    assert {verdict.code for verdict in read.verdicts if verdict.label is None} == meant


def test_a_judges_ratings_as_a_prediction_read_back_as_the_same_ratings() -> None:
    lines = [{"author": "Agent", "text": f"[{n}] line {n}"} for n in range(4)]
    seqs = [0, 1, 1, 2]
    labels = {"C.1": "present", "P.3": "unclear", "SA.2": "absent"}
    given = [
        Rating(
            trajectory="t",
            codebook="failures",
            code=code,
            rater="j",
            rater_kind="llm",
            label=label,
            cites=(1,),
        )
        for code, label in labels.items()
    ]
    result = labelstudio_answers.prediction(FAILURES, given, lines, seqs)
    client.check_config(label_config.label_config(FAILURES), [result])
    done = {"from_name": "read", "to_name": "transcript", "type": "choices"}
    ticked = {**done, "value": {"choices": [label_config.READ_TO_THE_END]}}
    read = labelstudio_answers.read(FAILURES, {"result": [*result, ticked]}, seqs)
    answers = {answer.code: answer for answer in read.verdicts}
    assert {code: answers[code].label for code in labels} == labels
    assert (answers["C.1"].cites, answers["C.1"].quote, read.problems) == ((1,), "line 1", [])


@pytest.mark.parametrize(
    "result",
    [
        [None, 7, {"from_name": "answer"}, {"from_name": "answer", "value": "yes"}],
        [{"from_name": "answer", "value": {"choices": ["yes", "no"]}}],
        [{"from_name": "answer", "value": {"choices": [["yes"]]}}],
        [{"from_name": ["answer"], "value": {"choices": ["yes"]}}],
        {"answer": "yes"},
        7,
    ],
)
def test_a_result_of_another_shape_is_an_error_and_never_a_no(result: Any) -> None:
    (answer,) = labelstudio_answers.read(codebooks.load("halting"), {"result": result}, []).verdicts
    assert answer.label is None and answer.error


def test_a_passage_of_another_shape_cites_nothing() -> None:
    marked = {"start": 1e400, "end": 0, "paragraphlabels": [label_config.code_title(FAILURES.codes[0])]}
    passage = {"from_name": "evidence", "id": ["x"], "value": marked}
    result: list[Any] = [passage, {**passage, "from_name": "error_source"}]
    result.append({"from_name": "present", "value": {"taxonomy": 7}})
    read = labelstudio_answers.read(FAILURES, {"result": result}, [0, 1])
    assert read.verdicts[0].label == "present" and read.verdicts[0].cites == ()
    assert "cites no event" in read.problems[0]


@pytest.mark.parametrize(
    ("first", "last", "offset", "text", "quote"),
    [
        (1, 1, 0, "[4, 2 min after the start] So it is.", "So it is."),
        (1, 1, 4, "[3] I quote", "[3] I quote"),
        (1, 2, 0, "[4] So it is.\n[5, 30 s after the start] Then\n[5] g", "So it is. … Then\n[5] g"),
        (0, 1, 0, "Agent 1\n[4] So it", "Agent 1 … So it"),
        (1, 1, 0, "[4] one\n[5] two", "one\n[5] two"),
        (1, 2, 9, "is.\n[5] ", "is."),
    ],
)
def test_a_quotation_has_the_words_of_the_log_and_no_number_that_a_line_begins_with(
    first: int, last: int, offset: int, text: str, quote: str
) -> None:
    mark = {"start": str(first), "end": str(last), "startOffset": offset, "endOffset": 9, "text": text}
    value = {**mark, "paragraphlabels": [label_config.code_title(FAILURES.codes[0])]}
    given = {"result": [{"from_name": "evidence", "value": value}]}
    read = labelstudio_answers.read(FAILURES, given, [NO_EVENT, 4, 5])
    assert [one.quote for one in read.verdicts if one.label == "present"] == [quote]


def test_a_prediction_outside_the_codebook_is_refused_before_it_is_sent() -> None:
    wrong = {
        "from_name": "answer",
        "to_name": "transcript",
        "type": "choices",
        "value": {"choices": ["maybe"]},
    }
    with pytest.raises(client.LabelStudioError, match="prediction does not fit"):
        client.check_config(label_config.label_config(codebooks.load("halting")), [[wrong]])


def test_a_sample_keeps_probabilities_and_seed_and_is_never_overwritten(
    coaudit: Coaudit, workspace: Path
) -> None:
    coaudit("ingest", ROOT / "data" / "cogym")
    options = ("sample", "--codebook", "initiative", "--size", "20", "--overlap", "0.25", "--json")
    drawn = coaudit(*options, "--seed", "7").json
    path = workspace / "samples" / "sample.jsonl"
    design, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    units = [line for line in lines if "frame" not in line]
    assert (design["seed"], design["method"], drawn["rows"][0]["units"]) == (7, "simple", 20)
    assert {unit["probability"] for unit in units} == {20 / drawn["rows"][0]["of"]}
    assert sum(unit["overlap"] == 2 for unit in units) == 5
    assert "exists" in coaudit(*options, status=2).err
    before = path.read_text().splitlines()[1:]
    coaudit(*options, "--name", "again", "--seed", "7")
    again = path.with_name("again.jsonl").read_text().splitlines()[1:]
    assert again != before, "samples of two names are independent, so that their probabilities multiply"
    path.unlink()
    coaudit(*options, "--seed", "7")
    assert path.read_text().splitlines()[1:] == before


@pytest.mark.long
def test_more_units_than_were_asked_for_are_told(coaudit: Coaudit) -> None:
    coaudit("ingest", ROOT / "data" / "cogym")
    sample = ("sample", "--codebook", "initiative", "--method", "stratified", "--by", "task", "--size", "2")
    assert "2 units were asked for, 6 were drawn: two of each stratum" in coaudit(*sample).err
    one = coaudit(*sample[:-1], "1", "--name", "one").err
    assert "1 unit was asked for, 6 were drawn" in one
    whole = coaudit(*sample, "--unit", "trajectory", "--name", "whole").err
    assert "2 trajectories were asked for, 6 were drawn" in whole


def test_wrong_options_name_the_right_ones(coaudit: Coaudit) -> None:
    coaudit("ingest", ROOT / "data" / "cogym")
    sample = ("sample", "--codebook", "initiative")
    assert "simple, stratified, neyman" in coaudit(*sample, "--method", "best", status=2).err
    assert "needs --pilot" in coaudit(*sample, "--method", "neyman", status=2).err
    alone = ("--annotators", "1", "--overlap", "0.7")
    assert "--overlap 0.7 is for two people or more" in coaudit(*sample, *alone, status=2).err
    assert "--pilot early is for --method neyman" in coaudit(*sample, "--pilot", "early", status=2).err
    assert "coaudit judge" in coaudit(*sample, "--method", "stratified", status=2).err
    assert "coaudit sample" in coaudit("labelstudio", "push", status=2, LABEL_STUDIO_API_KEY="x").err
    coaudit(*sample)
    odd = coaudit("labelstudio", "push", status=2, LABEL_STUDIO_API_KEY="tok-“en”").err
    assert "LABEL_STUDIO_API_KEY must be one line of ASCII" in odd and "tok-" not in odd
    assert (
        "LABEL_STUDIO_API_KEY is not set"
        in coaudit("labelstudio", "push", status=2, LABEL_STUDIO_API_KEY="").err
    )


def test_the_plan_is_the_published_one(coaudit: Coaudit) -> None:
    rows = coaudit("plan", "--half-width", "0.1", "--kappa", "0.6", "--json").json["rows"]
    assert [row["units_for_kappa"] for row in rows] == [246, 296, 705, 1347, 3281]
    assert "1312155" in coaudit("plan", "--half-width", "0.005", "--prevalence", "0.02").out


def test_words_that_look_like_instructions_are_where_evidence_is_placed() -> None:
    before = {"author": "Instructions", "text": "[1] (told to Agent)\nYou plan."}
    lines = [
        before,
        {"author": "Agent", "text": "[1] (told to Bob) Hi."},
        {"author": "State", "text": "[1] x"},
    ]
    assert labelstudio_answers._place(1, lines, [1, 1, 1]) == 1
