"""Which records and lists are taken for spans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.systems.formats.shapes import as_lines, sentence
from tests.pipeline.systems.formats.test_drafting import read_by_draft


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


def test_runs_of_a_thread_that_metadata_name_are_a_session_of_several_traces(tmp_path: Path) -> None:
    history = list[dict[str, Any]]()

    def run(turn: int, kind: str, answer: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": f"{kind}{turn}",
            "trace_id": f"chain{turn}",
            "parent_run_id": None if kind == "chain" else f"chain{turn}",
            "name": kind,
            "run_type": kind,
            "start_time": f"2026-01-02T10:0{turn}:0{len(kind)}Z",
            "end_time": f"2026-01-02T10:0{turn}:09Z",
            "session_id": "project",
            "extra": {"metadata": {"thread_id": "t1"}},
            "inputs": {"messages": list(history)},
            "outputs": {"message": answer},
        }

    runs = list[dict[str, Any]]()
    for turn in range(2):
        history.append({"role": "user", "content": sentence(turn)})
        answer = {"role": "assistant", "content": sentence(turn + 2)}
        runs += [run(turn, kind, answer) for kind in ("chain", "llm")]
        history.append(answer)
    (talk,) = read_by_draft(as_lines(tmp_path / "runs.jsonl", runs))
    assert talk.native_id == "t1"
    assert [event.text for event in talk.events] == [sentence(n) for n in (0, 2, 1, 3)]
