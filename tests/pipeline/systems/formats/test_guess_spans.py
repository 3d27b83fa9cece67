"""Which records and lists are taken for spans."""

from __future__ import annotations

from pathlib import Path

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
