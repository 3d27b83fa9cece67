"""Records that are turns of sessions, as tools for watching agents export a trace for each turn."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.schemas import Trajectory
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.shapes import as_lines

SESSIONS, TURNS = 4, 3
INSTRUCTIONS = {"role": "system", "content": "You help people with their trips."}
Record = dict[str, Any]


def user(session: int, turn: int) -> Record:
    return {"role": "user", "content": f"What about stop {turn} of trip {session}?"}


def answer(session: int, turn: int) -> Record:
    return {"role": "assistant", "content": f"Stop {turn} of trip {session} is by the lake."}


def time(session: int, turn: int) -> str:
    return f"2026-01-02T1{session}:0{turn}:00Z"


def exported(make: Callable[[int, int], Record]) -> list[Record]:
    """A record of each turn, the newest first, as such tools list them."""
    return [make(session, turn) for session in range(SESSIONS) for turn in range(TURNS)][::-1]


def talks(runs: list[Trajectory]) -> list[list[str | None]]:
    return [[event.text for event in run.events if event.actor != "environment"] for run in runs]


WHOLE = [
    [one(session, turn)["content"] for turn in range(TURNS) for one in (user, answer)]
    for session in reversed(range(SESSIONS))
]


def langfuse(session: int, turn: int, messages: list[Record] | str, back: Record | str) -> Record:
    return {
        "id": f"t{session}{turn}",
        "name": "chat-turn",
        "timestamp": time(session, turn),
        "sessionId": f"s{session}",
        "userId": f"u{session % 2}",
        "input": messages,
        "output": back,
        "scores": [{"name": "helpful", "value": turn}, {"name": "tone", "value": f"tone {turn}"}],
    }


def window(session: int, turn: int) -> list[Record]:
    before = [one(session, n) for n in range(turn) for one in (user, answer)]
    return [INSTRUCTIONS, *before[-2:], user(session, turn)]


@pytest.mark.parametrize(
    "messages",
    [
        lambda session, turn: [user(session, turn)],
        lambda session, turn: [INSTRUCTIONS, user(session, turn)],
        window,
    ],
    ids=["question", "instructions", "window"],
)
def test_turns_of_a_session_are_one_in_their_order_with_nothing_twice(
    tmp_path: Path, messages: Callable[[int, int], list[Record]]
) -> None:
    records = exported(
        lambda session, turn: langfuse(session, turn, messages(session, turn), answer(session, turn))
    )
    runs = read_by_draft(as_lines(tmp_path / "traces.jsonl", records))
    assert talks(runs) == WHOLE
    assert [run.native_id for run in runs] == [f"s{n}" for n in reversed(range(SESSIONS))]
    assert [event.time for event in runs[0].events if event.actor == "user"] == [
        time(3, n) for n in range(TURNS)
    ]
    for run in runs:
        instructions = [event for event in run.events if event.actor == "environment"]
        assert len(instructions) <= 1
        assert {one.name: one.text or one.value for one in run.outcomes} == {"helpful": 1.0, "tone": "tone 2"}


def by_texts(session: int, turn: int) -> Record:
    return langfuse(session, turn, user(session, turn)["content"], answer(session, turn)["content"])


def by_attributes(session: int, turn: int) -> Record:
    return {
        "id": f"t{session}{turn}",
        "created": time(session, turn),
        "input": user(session, turn)["content"],
        "output": answer(session, turn)["content"],
        "metadata": {"thread_id": f"s{session}"},
        "span_attributes": {"name": "eval", "type": "task"},
    }


def by_project(session: int, turn: int) -> Record:
    return {
        "id": f"t{session}{turn}",
        "name": "RunnableSequence",
        "run_type": "chain",
        "start_time": time(session, turn),
        "inputs": {"input": user(session, turn)["content"]},
        "outputs": {"output": answer(session, turn)["content"]},
        "extra": {"metadata": {"thread_id": f"s{session}"}},
        "session_id": f"project-{session % 2}",
    }


def by_header(session: int, turn: int) -> Record:
    return {
        "request_created_at": time(session, turn),
        "request_properties": {"Helicone-Session-Id": f"s{session}"},
        "request_body": {"messages": [user(session, turn)]},
        "response_body": {"choices": [{"message": answer(session, turn)}]},
    }


@pytest.mark.parametrize("make", [by_texts, by_attributes, by_project, by_header])
def test_a_trace_of_a_question_and_its_answer_is_a_turn_of_both(
    tmp_path: Path, make: Callable[[int, int], Record]
) -> None:
    runs = read_by_draft(as_lines(tmp_path / "traces.jsonl", exported(make)))
    assert talks(runs) == WHOLE
    assert {event.actor for run in runs for event in run.events} == {"user", "assistant"}


@pytest.mark.parametrize("form", ["turns", "rounds"])
def test_records_of_exports_that_overlap_count_once(tmp_path: Path, form: str) -> None:
    def record(session: int, turn: int) -> Record:
        ids = {"id": f"t{session}-{turn}", "session_id": f"s{session}", "timestamp": time(session, turn)}
        if form == "turns":
            said = {"input": [user(session, turn)], "output": answer(session, turn)}
        else:
            said = {name: by_texts(session, turn)[name] for name in ("input", "output")}
        return {**ids, **said, "latency": 0.5 + turn}

    first = exported(record)
    records = first + [one | {"latency": 9.5} for one in first[: len(first) // 2]]
    path = as_lines(tmp_path / "traces.jsonl", records)
    assert sorted(map(str, talks(read_by_draft(path)))) == sorted(map(str, WHOLE))
    text = draft(path).text
    assert '\nid = "id"    # of records with one id' in text


@pytest.mark.parametrize("key", ["output", "annotator"])
def test_rival_answers_and_ratings_under_one_id_are_no_exports_of_one(tmp_path: Path, key: str) -> None:
    def row(session: int, turn: int) -> Record:
        texts = by_texts(session, turn)
        said = {name: texts[name] for name in ("input", "output")}
        return {"id": f"t{session}-{turn}", "session_id": f"s{session}", "annotator": 1, **said}

    first = exported(row)
    other = {"output": "It is by the mill.", "annotator": 2}[key]
    text = draft(as_lines(tmp_path / "rows.jsonl", first + [{**one, key: other} for one in first[:4]])).text
    assert "the last counts" not in text
    assert '\nid = "id"    # of records with one id' in draft(as_lines(tmp_path / "one.jsonl", first)).text


def test_turns_without_a_time_are_told_to_be_in_the_logs_order(tmp_path: Path) -> None:
    def turn(session: int, turn: int) -> Record:
        return {"sessionId": f"s{session}", "input": [user(session, turn)], "output": answer(session, turn)}

    path = as_lines(tmp_path / "traces.jsonl", exported(turn)[::-1])
    assert talks(read_by_draft(path)) == WHOLE[::-1]
    assert "no field says when a turn was" in draft(path).text
    timed = exported(lambda session, n: turn(session, n) | {"timestamp": time(session, n)})
    assert "no field says when a turn was" not in draft(as_lines(tmp_path / "timed.jsonl", timed)).text


def test_parts_of_a_system_that_run_in_turn_are_who_speaks(tmp_path: Path) -> None:
    def step(session: int, turn: int) -> Record:
        return by_texts(session, turn) | {"name": ("Scout", "Planner", "Writer")[turn]}

    runs = read_by_draft(as_lines(tmp_path / "steps.jsonl", exported(step)))
    assert {event.actor for run in runs for event in run.events} == {"Scout", "Planner", "Writer"}


def test_scores_of_rounds_count_once_a_round(tmp_path: Path) -> None:
    records = exported(by_texts)
    records[0]["output"] = None
    runs = read_by_draft(as_lines(tmp_path / "traces.jsonl", records))
    scores = [{one.name: one.value for one in run.outcomes if one.value is not None} for run in runs]
    assert scores == [{"helpful": 1.0}] * SESSIONS


def rival(session: int, turn: int) -> Record:
    """Answers of several models to one question."""
    return {
        "conversation_id": f"c{session}",
        "model": f"m{turn}",
        "messages": [user(session, 0), answer(session, turn)],
    }


def of_two_people(session: int, turn: int) -> Record:
    """Sessions that have numbers, which are those of several people."""
    return {
        "session": session,
        "participant": f"p{turn}",
        "messages": [user(session, turn), answer(session, turn)],
    }


def of_a_project(session: int, turn: int) -> Record:
    return {
        "session_id": "all",
        "id": f"{session}{turn}",
        "messages": [user(session, turn), answer(session, turn)],
    }


def of_runs(session: int, turn: int) -> Record:
    """Runs that name their project alone, as LangSmith does."""
    return by_project(session, turn) | {"extra": {}}


def of_a_long_talk(session: int, turn: int) -> Record:
    messages = [one(session, 10 * turn + n) for n in range(3) for one in (user, answer)]
    return {"session_id": f"s{session}", "id": f"{session}{turn}", "messages": messages}


def of_a_run(session: int, turn: int) -> Record:
    """Each session is a run of the same tasks."""
    return {
        "session_id": f"run{session}",
        "task_id": f"t{turn}",
        "messages": [user(0, turn), answer(session, turn)],
    }


def of_a_conversation(session: int, turn: int) -> Record:
    return {
        "session_id": f"s{session}",
        "conversation_id": f"c{session}{turn}",
        "messages": [user(session, turn), answer(session, turn)],
    }


def of_falling_numbers(session: int, turn: int) -> Record:
    """Without a time nothing puts them in the order of their numbers."""
    return {
        "session_id": f"s{session}",
        "turn": turn,
        "messages": [user(session, turn), answer(session, turn)],
    }


def of_times_that_are_not_read(session: int, turn: int) -> Record:
    return {
        "session_id": f"s{session}",
        "timestamp": f"0{turn + 1}/0{session + 1}/2026 10:00",
        "messages": [user(session, turn), answer(session, turn)],
    }


def of_two_kinds(session: int, turn: int) -> Record:
    """A judge rates answers in the session that they are of."""
    return {
        "session_id": f"s{session}",
        "name": ("chat", "judge", "chat")[turn],
        "timestamp": time(session, turn),
        "messages": [user(session, turn), answer(session, turn)],
    }


@pytest.mark.parametrize(
    "make",
    [
        rival,
        of_two_people,
        of_a_project,
        of_runs,
        of_a_long_talk,
        of_a_run,
        of_a_conversation,
        of_falling_numbers,
        of_times_that_are_not_read,
        of_two_kinds,
    ],
)
def test_records_that_are_no_turns_are_sessions_each(
    tmp_path: Path, make: Callable[[int, int], Record]
) -> None:
    runs = read_by_draft(as_lines(tmp_path / "talks.jsonl", exported(make)))
    assert len(runs) == SESSIONS * TURNS


@pytest.mark.parametrize("when", ["0{session}/02/2026 10:0{turn}", "1{session}:0{turn}:00"])
def test_turns_with_numbers_need_no_time_that_is_read(tmp_path: Path, when: str) -> None:
    def numbered(session: int, turn: int) -> Record:
        messages = [user(session, turn), answer(session, turn)]
        time = when.format(session=session + 1, turn=turn)
        return {"session_id": f"s{session}", "timestamp": time, "turn": turn, "messages": messages}

    oldest_first = exported(numbered)[::-1]
    assert talks(read_by_draft(as_lines(tmp_path / "talks.jsonl", oldest_first))) == WHOLE[::-1]
    newest_first = exported(numbered)
    assert len(read_by_draft(as_lines(tmp_path / "newest.jsonl", newest_first))) == SESSIONS * TURNS


def test_turns_with_a_time_of_a_known_format_come_in_its_order(tmp_path: Path) -> None:
    def turn(session: int, turn: int) -> Record:
        when = f"2{session}.01.2026 10:0{turn}:00"
        return {"session_id": f"s{session}", "timestamp": when, "messages": [user(session, turn)]} | {
            "response": answer(session, turn)["content"]
        }

    runs = read_by_draft(as_lines(tmp_path / "traces.jsonl", exported(turn)))
    assert talks(runs) == WHOLE
    assert runs[0].events[2].time == "2026-01-23T10:01:00"


def calls_of(session: int, name: str, turns: int) -> list[Record]:
    """A call of each turn, with all that was said before."""
    talk: list[Record] = []
    calls: list[Record] = []
    for turn in range(turns):
        asked = {"role": "user", "content": f"{name}: {user(session, turn)['content']}"}
        back = {"role": "assistant", "content": f"{name}: {answer(session, turn)['content']}"}
        calls.append({"session_id": f"s{session}", "messages": [*talk, asked], "response": back})
        talk += [asked, back]
    return calls


def rivals(session: int) -> list[Record]:
    """Two who answer the same first question, one after the other."""
    calls = [*calls_of(session, "A", 4), *calls_of(session, "B", 4)]
    for one in calls:
        one["messages"][0] = user(session, 0)
    return calls


def by_a_tool(session: int) -> list[Record]:
    """Two agents, of which one calls the other; what their tools give back has the role of a user."""
    many = [calls_of(session, name, 5) for name in ("A", "B")]
    for one in (message for calls in many for call in calls for message in call["messages"][1:]):
        if one["role"] == "user" and isinstance(one["content"], str):
            one["content"] = [{"type": "tool_result", "tool_use_id": "t", "content": one["content"]}]
    return [*many[0][:2], *many[1], *many[0][2:]]


@pytest.mark.parametrize("make", [rivals, by_a_tool])
def test_several_that_talk_under_one_id_each_have_a_session(
    tmp_path: Path, make: Callable[[int], list[Record]]
) -> None:
    lines = [line for session in range(SESSIONS) for line in make(session)]
    runs = read_by_draft(as_lines(tmp_path / "calls.jsonl", lines))
    assert len(runs) == 2 * SESSIONS
    assert all(len({str(text)[:2] for text in talk[1:]}) == 1 for talk in talks(runs))


def test_a_talk_under_a_name_of_scores_is_read(tmp_path: Path) -> None:
    def review(session: int) -> Record:
        said = [
            {"name": name, "value": make(session, n)["content"]}
            for n in range(3)
            for name, make in (("Anna", user), ("Bot", answer))
        ]
        return {"id": session, "feedback": said}

    runs = read_by_draft(as_lines(tmp_path / "reviews.jsonl", [review(n) for n in range(SESSIONS)]))
    assert [len(run.events) for run in runs] == [6] * SESSIONS


def test_rows_in_the_order_of_a_hash_are_of_the_sessions_that_they_name(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"s{session}", "role": role, "content": f"words {turn} of {session}"}
        for turn, role in enumerate(("user", "assistant"))
        for session in range(3000)
    ]
    random.Random(1).shuffle(rows)
    log = as_lines(tmp_path / "log.jsonl", rows)
    assert "session_id hardly repeats" in draft(log).text
    runs = read_by_draft(log)
    assert len(runs) == 1000  # as many as are read
    assert {len(run.events) for run in runs} == {2}


def test_the_same_ids_in_a_table_that_was_looked_at_whole_make_no_sessions_of_one_row(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"s{n}", "role": ("user", "assistant")[n % 2], "content": f"words {n}"}
        for n in range(200)
    ]
    runs = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert len(runs) == 1


@pytest.mark.parametrize("files", [1, 120])
def test_an_id_that_each_row_has_anew_makes_no_sessions_of_one_row(files: int, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for file in range(files):
        rows = [
            {"session_id": f"{file}-{n}", "role": ("user", "assistant")[n % 2], "content": f"words {n}"}
            for n in range(3000 // files)
        ]
        as_lines(tmp_path / "logs" / f"{file}.jsonl", rows)
    runs = read_by_draft(tmp_path / "logs")
    assert [len(run.events) for run in runs] == [3000 // files] * files
