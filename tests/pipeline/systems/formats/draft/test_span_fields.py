"""Which records and lists are taken for spans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.shapes import as_lines, sentence


@pytest.mark.parametrize("most", [1, 2])
def test_a_trace_of_model_calls_alone_has_what_people_said(tmp_path: Path, most: int) -> None:
    """As Langfuse exports traces of a chat."""
    usage = {"input": 10, "output": 5, "total": 15}
    history = [{"role": ("user", "assistant")[n % 2], "content": sentence(n)} for n in range(2 * most)]
    traces = [
        {
            "id": f"t{trace}",
            "observations": [
                {"id": f"g{n}", "type": "GENERATION", "name": "chat", "model": "m-1", "usage": usage}
                | {"startTime": f"2026-01-02T10:0{n}:00Z", "parentObservationId": None}
                | {"input": history[: 2 * n + 1], "output": history[2 * n + 1]}
                for n in range(most)
            ],
        }
        for trace in range(3)
    ]
    runs = read_by_draft(as_lines(tmp_path / "traces.jsonl", traces))
    assert [run.native_id for run in runs] == ["t0", "t1", "t2"]
    assert [(e.actor, e.text) for e in runs[0].events] == [(e["role"], e["content"]) for e in history]
    tokens = {"prompt_tokens": 10 * most, "completion_tokens": 5 * most}
    assert runs[0].participant("assistant").tokens == tokens


def runs_of(thread: str | None, project: str = "project") -> list[dict[str, Any]]:
    """Two turns of a thread as LangSmith exports them: of each a chain and the call in it."""
    history, runs = list[dict[str, Any]](), list[dict[str, Any]]()
    for turn in range(2):
        history.append({"role": "user", "content": f"{sentence(turn)} {project}"})
        answer = {"role": "assistant", "content": sentence(turn + 2)}
        for kind in ("chain", "llm"):
            run = {
                "id": f"{kind}{turn}{project}",
                "trace_id": f"chain{turn}{project}",
                "parent_run_id": None if kind == "chain" else f"chain{turn}{project}",
                "name": kind,
                "run_type": kind,
                "start_time": f"2026-01-02T10:0{turn}:0{len(kind)}Z",
                "end_time": f"2026-01-02T10:0{turn}:09Z",
                "session_id": project,
                "extra": {"metadata": {"thread_id": thread}},
                "inputs": {"messages": list(history)},
                "outputs": {"message": answer},
            }
            runs.append(run)
        history.append(answer)
    return runs


def test_runs_of_a_thread_that_metadata_name_are_a_session_of_several_traces(tmp_path: Path) -> None:
    (talk,) = read_by_draft(as_lines(tmp_path / "runs.jsonl", runs_of("t1")))
    assert talk.native_id == "t1"
    said = [f"{sentence(0)} project", sentence(2), f"{sentence(1)} project", sentence(3)]
    assert [event.text for event in talk.events] == said


def test_threads_of_one_id_in_two_projects_are_two(tmp_path: Path) -> None:
    runs = runs_of("t1", "alpha") + runs_of("t1", "beta")
    talks = read_by_draft(as_lines(tmp_path / "runs.jsonl", sorted(runs, key=lambda one: one["start_time"])))
    assert [talk.native_id for talk in talks] == ["t1/alpha", "t1/beta"]
    for talk, project in zip(talks, ("alpha", "beta"), strict=True):
        said = [f"{sentence(0)} {project}", sentence(2), f"{sentence(1)} {project}", sentence(3)]
        assert [event.text for event in talk.events] == said


def test_runs_of_which_some_name_no_thread_are_sessions_by_their_traces(tmp_path: Path) -> None:
    runs = [*runs_of("t1", "alpha"), *runs_of("t2", "beta"), *runs_of("t3", "gamma")]
    runs += [*runs_of("t4", "delta"), *runs_of("t5", "x"), *runs_of(None, "y")]
    talks = read_by_draft(as_lines(tmp_path / "runs.jsonl", runs))
    assert [talk.native_id for talk in talks][-2:] == ["chain0y", "chain1y"]


def test_pieces_of_a_stream_are_no_spans_with_one_id(tmp_path: Path) -> None:
    """As LangGraph's `astream_events` writes what it does."""
    rows: list[dict[str, Any]] = []
    for talk in range(4):
        said = {"type": "human", "content": sentence(talk)}, {"type": "ai", "content": sentence(talk + 1)}
        pieces = [{"chunk": {"id": f"run-{talk}", "content": word}} for word in said[1]["content"].split()]
        data = [{"input": {"messages": [[said[0]]]}}, *pieces, {"output": said[1]}]
        events = ("on_chat_model_start", *["on_chat_model_stream"] * len(pieces), "on_chat_model_end")
        rows += [
            {"event": event, "run_id": f"r{talk}", "metadata": {"thread_id": f"t{talk}"}, "data": one}
            for event, one in zip(events, data, strict=True)
        ]
        rows.append(
            {"event": "on_chain_end", "run_id": "c", "metadata": {"thread_id": f"t{talk}"}, "data": {}}
        )
    runs = read_by_draft(as_lines(tmp_path / "events.jsonl", rows))
    assert [[e.text for e in run.events] for run in runs] == [
        [sentence(talk), sentence(talk + 1)] for talk in range(4)
    ]
