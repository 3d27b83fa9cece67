"""Lists of scores that have names of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.draft.unclear import open_questions
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.shapes import as_json, as_lines, sentence


def trace(number: int, **more: Any) -> dict[str, Any]:
    """A trace as Langfuse exports it, of one model call."""
    call = {
        "id": f"o{number}",
        "traceId": f"t{number}",
        "type": "GENERATION",
        "name": "llm",
        "startTime": "2026-01-02T10:00:01Z",
        "endTime": "2026-01-02T10:00:02Z",
        "parentObservationId": None,
        "input": [{"role": "user", "content": sentence(number)}],
        "output": {"role": "assistant", "content": sentence(3)},
    }
    return {"id": f"t{number}", "sessionId": f"s{number}", "observations": [call], **more}


def langfuse(number: int) -> list[dict[str, Any]]:
    values: list[tuple[str, Any, str | None, str | None]] = [
        ("satisfaction", 2 + number, None, None),
        ("success", 1.0, "True", None),
        ("tone", None, "friendly", None),
        ("hallucination", 0.1, None, f"o{number}"),
    ]
    return [
        {"name": name, "value": value, "stringValue": text, "observationId": part, "source": "ANNOTATION"}
        for name, value, text, part in values
    ]


@pytest.mark.parametrize("count", [1, 3])
def test_scores_of_a_trace_are_its_outcomes_and_those_of_its_parts_are_not(
    tmp_path: Path, count: int
) -> None:
    traces = [trace(number, scores=langfuse(number)) for number in range(count)]
    runs = read_by_draft(as_json(tmp_path / "traces.json", traces if count > 1 else traces[0]))
    assert [run.native_id for run in runs] == [f"s{number}" for number in range(count)]
    for number, run in enumerate(runs):
        assert {one.name: one.text if one.value is None else one.value for one in run.outcomes} == {
            "satisfaction": 2 + number,
            "success": 1.0,
            "tone": "friendly",
        }


def test_scores_of_a_list_of_turns_are_found_under_other_names(tmp_path: Path) -> None:
    records = [
        {
            "id": f"s{number}",
            "turns": [{"role": "user", "text": sentence(0)}, {"role": "assistant", "text": sentence(3)}],
            "info": {"assessments": [{"assessment_name": "correct", "feedback": {"value": bool(number)}}]},
        }
        for number in range(2)
    ]
    runs = read_by_draft(as_json(tmp_path / "runs.json", records))
    assert [[(one.name, one.value) for one in run.outcomes] for run in runs] == [
        [("correct", 0.0)],
        [("correct", 1.0)],
    ]


@pytest.mark.parametrize("sessions", [2, 70])
def test_traces_of_the_turns_of_a_session_are_one_and_nothing_is_said_twice(
    tmp_path: Path, sessions: int
) -> None:
    traces = []
    for session in range(sessions):
        history: list[dict[str, Any]] = []
        for turn in range(2):
            history.append({"role": "user", "content": f"{sentence(turn)} {session}"})
            one = trace(2 * session + turn, scores=[{"name": "liked", "value": turn}])
            one["sessionId"], (call,) = f"s{session}", one["observations"]
            call["input"], call["startTime"] = list(history), f"2026-01-02T10:00:{10 * turn:02d}Z"
            history.append({"role": "assistant", "content": sentence(3)})
            traces.append(one)
    lone = {**trace(999), "sessionId": None}
    runs = read_by_draft(as_json(tmp_path / "traces.json", [*traces, lone]))
    assert [run.native_id for run in runs[:-1]] == [f"s{n}" for n in range(sessions)]
    for number, run in enumerate(runs[:-1]):
        assert [event.text for event in run.events] == [
            f"{sentence(0)} {number}",
            sentence(3),
            f"{sentence(1)} {number}",
            sentence(3),
        ]
        assert [(one.name, one.value) for one in run.outcomes] == [("liked", 0.5)], "a score of each turn"


def turns_of(session: str, project: str = "p") -> list[dict[str, Any]]:
    """Three traces of one session, with a question and an answer each."""
    traces = [trace(n, id=f"{project}{session}{n}", sessionId=session, projectId=project) for n in range(3)]
    for number, one in enumerate(traces):
        (call,) = one["observations"]
        call["id"] = f"{project}{session}{number}"
        call["input"] = [{"role": "user", "content": f"{sentence(number)} {session} {project}"}]
        call["startTime"] = f"2026-01-02T10:0{number}:00Z"
    return traces


def asked(path: Path) -> dict[str | None, list[str | None]]:
    runs = read_by_draft(path)
    assert len({run.native_id for run in runs}) == len(runs)
    return {run.native_id: [event.text for event in run.events if event.actor == "user"] for run in runs}


def test_sessions_of_one_id_in_two_projects_are_two(tmp_path: Path) -> None:
    traces = [one for many in zip(turns_of("s", "p"), turns_of("s", "q"), strict=True) for one in many]
    questions = {f"s/{one}": [f"{sentence(n)} s {one}" for n in range(3)] for one in ("p", "q")}
    assert asked(as_json(tmp_path / "traces.json", traces)) == questions


def test_traces_whose_spans_have_ids_of_their_own_alone_are_sessions_each(tmp_path: Path) -> None:
    traces = turns_of("s")
    for one in traces:
        one["observations"][0]["id"] = "1"
    questions = {f"ps{n}": [f"{sentence(n)} s p"] for n in range(3)}
    assert asked(as_json(tmp_path / "traces.json", traces)) == questions


def test_traces_in_files_of_their_own_are_sessions_each(tmp_path: Path) -> None:
    for number, one in enumerate(turns_of("s")):
        as_json(tmp_path / f"{number}.json", one)
    assert asked(tmp_path) == {f"ps{n}": [f"{sentence(n)} s p"] for n in range(3)}


def test_an_export_of_one_talk_that_names_its_trace_is_that_talk(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": sentence(0)}, {"role": "assistant", "content": sentence(1)}]
    talk = {"id": "a", "trace_id": "t1", "messages": messages}
    path = as_json(tmp_path / "a.json", {"exported": "2026", "conversations": [talk]})
    assert [[event.text for event in run.events] for run in read_by_draft(path)] == [
        [sentence(0), sentence(1)]
    ]


def test_scores_of_several_raters_are_named_by_what_they_are_of_and_told(tmp_path: Path) -> None:
    scores = [{"name": who, "metric": "helpful", "value": n} for n, who in enumerate(("Ada", "Bob"), start=3)]
    scores += [{"name": "Ada", "metric": "safe", "value": 1}]
    path = as_json(tmp_path / "a.json", [trace(number, scores=scores) for number in range(2)])
    for run in read_by_draft(path):
        assert [(one.name, one.value) for one in run.outcomes] == [("helpful", 4), ("safe", 1)]
    result = draft(path)
    doubts = "\n".join(open_questions(result.survey, result.guess))
    assert "several scores of a session under helpful, and the last counts" in doubts and "safe" not in doubts


def test_what_differs_between_the_traces_of_a_session_is_no_tag_of_it(tmp_path: Path) -> None:
    traces = [
        {**one, "userId": f"u{session}", "totalCost": 0.5 * number, "task": f"task {number}"}
        for session in range(2)
        for number, one in enumerate(turns_of(f"s{session}"))
    ]
    runs = read_by_draft(as_json(tmp_path / "traces.json", traces))
    assert [(run.tags, run.task) for run in runs] == [({"userId": f"u{n}"}, None) for n in range(2)]


def test_scores_that_are_comments_alone_are_no_talk(tmp_path: Path) -> None:
    """What is said is the question and its answer beside them."""

    def row(n: int) -> dict[str, Any]:
        scores = [{"name": name, "value": f"The {name} of {sentence(n)}"} for name in ("reason", "advice")]
        return {"id": f"r{n}", "input": sentence(n), "output": sentence(n + 10), "scores": scores}

    runs = read_by_draft(as_lines(tmp_path / "traces.jsonl", [row(n) for n in range(6)]))
    assert [[event.text for event in run.events] for run in runs] == [
        [sentence(n), sentence(n + 10)] for n in range(6)
    ]
