"""What a task shows of a trajectory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coaudit.annotation.labelstudio import answers, config, tasks
from coaudit.pipeline import codebooks
from coaudit.pipeline.cli.sample_audit import samples
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
from coaudit.schemas import Action, Codebook, Maker, Outcome, Participant, Trajectory, Verdict
from coaudit.schemas.event import Notice
from tests.judges.teams import team


def test_people_are_no_more_told_what_a_reward_was_than_models_are(tmp_path: Path) -> None:
    store = Store(Workspace(tmp_path / "workspace"))
    ingest(store, [samples() / "rehac"], ReadOptions())
    with store.reading() as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM trajectories").fetchall()]
        logs = store.load(connection, ids, states=True)
    assert any("reward = " in json.dumps(log.states) for log in logs)
    for log in logs:
        shown = [line.text for line in tasks.lines(log)]
        assert not any("reward = " in text for text in [*shown, tasks.final_state(log)])
        observations = [s["observation"] for s in log.states.values() if isinstance(s, dict)]
        for text in (str(one).strip() for one in observations if one):
            assert "reward = " in text or any(text in line for line in shown)


def test_lines_say_how_long_after_the_start_an_event_came_and_quotations_leave_it_out() -> None:
    times = ["2026-11-21T10:00:00Z", "2026-11-21T10:00:10Z", "2026-11-21T10:05:00Z"]
    log = team(("human", "One?"), ("agent", "Two."), ("agent", "Three."))
    events = [e.model_copy(update={"time": time}) for e, time in zip(log.events[1:], times, strict=True)]
    shown = [line.text for line in tasks.lines(log.model_copy(update={"events": tuple(events)}))]
    begin = "0 s after the start (times are to the nearest half minute)"
    assert shown == [f"[1, {begin}] One?", "[2] Two.", "[3, 5 min after the start] Three."]
    book = codebooks.load("failures")
    mark = {"start": "2", "end": "2", "text": shown[2], "paragraphlabels": ["C.1 Silent start"]}
    given = [
        {"from_name": "evidence", "type": "paragraphlabels", "id": "x", "value": mark},
        {"from_name": "read", "type": "choices", "value": {"choices": [config.READ_TO_THE_END]}},
    ]
    for place, quote in ((2, "Three."), (0, "One?")):
        mark |= {"start": f"{place}", "end": f"{place}", "text": shown[place]}
        verdicts = answers.read(book, {"result": given}, [1, 2, 3]).verdicts
        assert [(one.cites, one.quote) for one in verdicts if one.code == "C.1"] == [((place + 1,), quote)]


def test_people_see_the_states_that_models_see_as_long_and_no_others() -> None:
    """People saw 700 characters of what a tool gave back, models 2,000; people the prompt of each step and
    what a simulated person alone knew, models neither; models what an action left as it was, and a call
    that nobody could read, people neither. Agreement was not of two who saw the same."""
    log = team(("agent", "SEARCH(Oslo)"), ("agent", "SEARCH(Oslo)"), ("human", "Stop."))
    states: dict[str, Any] = {
        "search": {"observation": f"BEGIN {'x' * 1800} END"},
        "own": {"results": "Flight 7", "system": "You plan.", "prompt": "Step 1"},
        "secret": {"wish": "MIDNIGHT"},
    }
    given = {1: {"public": "search", "agent": "own"}, 2: {"agent": "own"}, 3: {"human": "secret"}}
    events = [e.model_copy(update={"states": given.get(e.seq, {})}) for e in log.events]
    log = log.model_copy(update={"events": tuple(events), "states": states})
    shown = [(line.author, line.text) for line in tasks.lines(log)]
    assert shown[1:] == [
        ("Instructions", "[1] (told to Agent)\nYou plan."),
        ("Agent", "[1] ▸ SEARCH(text=Oslo)"),
        ("State", f"[1] what came back:\nBEGIN {'x' * 1800} END"),
        ("State", "[1] after it, in the state · results:\nFlight 7"),
        ("Agent", "[2] ▸ SEARCH(text=Oslo)"),
        ("State", "[2] after it, the state is as it was"),
        ("Human", "[3] Stop."),
    ]
    (last,) = [line.text for line in tasks.lines(log, "all")][-1:]
    assert last == "[3] after it, in the state · wish:\nMIDNIGHT"
    first = tasks.Log(log).lines[1]
    assert first.author == tasks.INSTRUCTIONS and first.seq == 1 and not first.is_event


def test_what_a_speaker_does_beside_the_words_is_shown_where_models_see_it() -> None:
    """Cooks say "Please cut it." and plan `request('cut(pumpkin)')`: people were asked about requests and
    saw no plan, models did."""
    log = team(("agent", "Please cut it."), ("agent", "Again."))
    beside = {"plan": "request('cut(pumpkin)')", "to": "it"}
    say = Action(name="say", arguments={**beside, "text": "Please cut it."})
    unread = Action(name="", raw="cut(pumpkin")
    events = (
        log.events[0],
        log.events[1].model_copy(update={"action": say}),
        log.events[2].model_copy(update={"kind": "action", "text": None, "action": unread}),
    )
    shown = [(line.text, line.is_event) for line in tasks.lines(log.model_copy(update={"events": events}))]
    assert shown[1:] == [
        ("[1] Please cut it.", True),
        ("[1] ▸ say(plan=request('cut(pumpkin)'), to=it)", False),
        ("[2] ▸ cut(pumpkin", True),
    ]


def test_a_call_is_shown_as_it_was_logged_with_its_backslashes_and_what_went_wrong() -> None:
    """Of `C:\\new` and `print("a\\nb")` people saw a break of the line; models saw what was written."""
    log = team(("agent", "RUN(x)"), ("agent", "I ask."))
    written: dict[str, Any] = {"path": r"C:\new", "many": [r"C:\new", "a\nb"]}
    events = (
        log.events[1].model_copy(
            update={"action": Action(name="write", arguments=written), "error": "disk is nearly full"}
        ),
        log.events[2].model_copy(update={"action": Action(name="ask", raw="ask(level=9")}),
    )
    shown = [line.text for line in tasks.lines(log.model_copy(update={"events": events}))]
    call = r"▸ write(path=C:\new, many=" + '["C:\\\\new", "a\nb"])'
    assert shown == [
        f"[1] {call}\nerror: disk is nearly full",
        "[2] I ask.",
        "[2] ▸ ask ask(level=9",
    ]


def test_names_are_told_where_the_log_calls_people_by_them_or_several_are_of_a_kind() -> None:
    """Who of three agents "Coder" is, whom a person thanks and another blames, only models were told."""
    log = team(("human", "Thanks, Coder."), ("agent", "Ask Ann."), ("env2", "Wait."))
    kinds = {"human": "human", "agent": "agent", "environment": "environment"}
    called = {
        "human": "Ann",
        "agent": "arm_a",
        "environment": "environment",
        "env2": "Coder",
        "other": "gpt-x",
    }
    people = [
        Participant.model_validate({"name": name, "kind": kinds.get(key, "agent"), "model": "gpt-x"})
        for key, name in called.items()
    ]
    events = tuple(event.model_copy(update={"actor": called[event.actor]}) for event in log.events)

    def who(*chosen: Participant) -> list[str]:
        shown = tasks.Log(log.model_copy(update={"events": events, "participants": chosen}))
        return [f"{line.author}: {line.text}" for line in shown.background_lines]

    alone = "Who is who: Human goes by the name Ann"
    assert who(*people[:3]) == [alone]
    several = "\nAgent 1 goes by the name arm_a\nAgent 2 goes by the name Coder"
    assert who(*people) == [alone + several]


@pytest.mark.parametrize(
    ("name", "model", "is_told"),
    [
        ("gpt-x", "openai/gpt-x-2026-03", False),
        ("gpt-x planner", "gpt-x", False),
        ("Claude 3.5", None, False),
        ("gpt-4o", None, False),
        ("Coder", "qwen-coder", True),
        ("Planner", "m", True),
    ],
)
def test_no_name_of_a_model_is_told_with_its_version_or_without(
    name: str, model: str | None, is_told: bool
) -> None:
    """Of "gpt-4o" with the model "openai/gpt-4o-2024-08-06" annotators were told the name."""
    people = (Participant(name=name, kind="agent", model=model), Participant(name="Boss\n2", kind="agent"))
    (line,) = tasks.Log(team().model_copy(update={"participants": people})).background_lines
    own = f"Agent 1 goes by the name {name}\n" if is_told else ""
    assert line.text == f"{own}Agent 2 goes by the name Boss 2"


def test_an_error_of_what_did_not_fail_is_shown_to_people_too() -> None:
    event = team(("agent", "SEARCH(Oslo)")).events[1].model_copy(update={"error": "Only half came."})
    assert tasks.describe(event).endswith("\nerror: Only half came.")


def test_no_name_tells_a_model_or_the_arm_or_begins_a_line_of_its_own() -> None:
    """Agents called gpt-4o_1 and claude-3, of openai/gpt-4o and claude-3-opus, were told by name."""
    models = {
        "gpt-4o_1": "openai/gpt-4o",
        "claude-3": "claude-3-opus",
        "helper treated": None,
        "Cook": "gpt-x",
    }
    agents = [Participant(name=name, kind="agent", model=model) for name, model in models.items()]
    forger = Participant(name="Ann\nAgent 4 goes by the name Eve", kind="agent")
    log = team(("human", "Hi.")).model_copy(
        update={"participants": (*agents, forger), "condition": "treated"}
    )
    (line,) = tasks.Log(log).background_lines
    assert line.text.splitlines() == [
        "Agent 4 goes by the name Cook",
        "Agent 5 goes by the name Ann Agent 4 goes by the name Eve",
    ]


def test_of_a_result_people_see_the_text_that_models_see_and_the_task() -> None:
    """People saw the library of papers beside it, and the topic in the folded log alone."""
    result = Outcome(name="result", text="A fine section [1].")
    log = team(("agent", "Done.")).model_copy(update={"outcomes": (result,)})
    text = "A fine section [1].\n\n(The task was:)\nPlan a trip."
    assert asked(codebooks.load("related_work_quality"), log)["final"] == text
    assert asked(FAILURES, log)["final"] == "A fine section [1]."


FAILURES = codebooks.load("failures")


def asked(book: Codebook, log: Trajectory, *rated: int, context: str = "transcript") -> dict[str, Any]:
    """The data of a task on these events of a kitchen's log; on all of it where none is named."""
    subject = tasks.Subject("s", log.id, rated[0] if rated else None, "h", book.name, "1")
    shown = tasks.Log(log, "0 is the human, 1 the agent. The agent chops.")
    events = [event for event in log.events if event.seq in rated]
    return dict(tasks.task(subject, shown, events, book, context)["data"])  # type: ignore[arg-type]


def test_what_a_judge_or_a_person_marks_is_the_event_and_not_what_stands_before_it() -> None:
    """The background and notices before the first event had its seq: a judge's evidence lay on them, and
    what a person marked in the background cited the event."""
    log = team(("human", "Chop it."), ("agent", "Done."))
    first = log.events[0].model_copy(update={"notices": (Notice(time=None, text="Welcome."),)})
    data = asked(FAILURES, log.model_copy(update={"events": (first, *log.events[1:])}))
    assert data["seqs"] == [tasks.NO_EVENT, 0, 0, 1, 2]
    rating = Maker("judge", "llm", "1", FAILURES).rating_at(
        ("t", None, "h"), Verdict("C.1", "present", cites=(0,))
    )
    marks: list[Any] = answers.prediction(FAILURES, [rating], data["transcript"], data["seqs"])
    assert [one["value"]["start"] for one in marks if one["type"] == "paragraphlabels"] == ["2"]

    def read(start: int, end: int) -> answers.AnnotationAnswers:
        value = {"start": start, "end": end, "text": "x", "paragraphlabels": ["C.1 Silent start"]}
        return answers.read(FAILURES, {"result": [{"from_name": "evidence", "value": value}]}, data["seqs"])

    assert read(0, 3).verdicts[0].cites == (0, 1) and not read(0, 3).problems
    assert read(0, 0).verdicts[0].cites == () and "cites no event" in read(0, 0).problems[0]


@pytest.mark.parametrize("name", ["initiative", "responsible_agent", "failures"])
def test_the_background_is_seen_without_a_click_and_calls_people_as_the_log_does(name: str) -> None:
    """Agent 1 of a task is player 0 of the map, of whom its legend says that it is the chef."""
    log = team(*[("human", f"message {n}") for n in range(20)], ("agent", "Done."))
    book = codebooks.load(name)
    rated = () if name == "failures" else (21,)
    data = asked(book, log, *rated)
    text = "0 is the human (Human), 1 the agent (Agent). The agent chops."
    assert data["transcript"][0] == {"author": "Background", "text": text}
    assert len(data["seqs"]) == len(data["transcript"])
    rest = [line for part in ("earlier", "later", "whole", "unit") for line in data.get(part, ())]
    assert "Background" not in {line["author"] for line in rest}
    blind = asked(book, log, *rated, context="unit")
    assert ("Background" in {line["author"] for line in blind["transcript"]}) == (not rated)
