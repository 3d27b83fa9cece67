"""What the reader of Inspect's logs makes of them, with the real package where it is installed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.systems.formats.files import one, outline, read


def logged(path: Path) -> Path:
    """A log of one sample with a tool call, written by inspect_ai itself."""
    log = pytest.importorskip(
        "inspect_ai.log", reason="inspect_ai is not installed: pip install coaudit[inspect]"
    )
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageTool,
        ChatMessageUser,
        ModelUsage,
    )
    from inspect_ai.scorer import Score
    from inspect_ai.tool import ToolCall, ToolCallError

    call = ToolCall(id="c1", function="bash", arguments={"cmd": "ls"})
    messages: list[Any] = [
        ChatMessageSystem(content="Solve it."),
        ChatMessageUser(content="List files."),
        ChatMessageAssistant(content="I look.", tool_calls=[call], model="mock/m"),
        ChatMessageTool(
            content="", tool_call_id="c1", function="bash", error=ToolCallError("timeout", "too slow")
        ),
        ChatMessageAssistant(content="It is too slow.", model="mock/m"),
    ]
    sample = log.EvalSample(
        id="q1",
        epoch=2,
        input="List files.",
        target="a",
        messages=messages,
        scores={"match": Score(value="C")},
        model_usage={"mock/m": ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)},
        uuid="u-1",
    )
    spec = log.EvalSpec(
        created="2026-01-05T08:00:00+00:00",
        task="files",
        model="mock/m",
        dataset=log.EvalDataset(),
        config=log.EvalConfig(),
        solver="react",
    )
    log.write_eval_log(log.EvalLog(eval=spec, samples=[sample], status="success"), str(path))
    return path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_a_sample_is_a_trajectory_with_its_tool_calls_scores_and_tokens(tmp_path: Path, name: str) -> None:
    found = one("inspect", logged(tmp_path / name))
    assert outline(found.events) == [
        ("environment", "start", "Solve it."),
        ("user", "message", "List files."),
        ("assistant", "message", "I look."),
        ("assistant", "action", "bash"),
        ("assistant", "message", "It is too slow."),
    ]
    assert (found.events[3].status, found.events[3].error) == ("failed", "timeout: too slow")
    assert (found.native_id, found.task, found.instance, found.condition) == ("u-1", "files", "q1", "react")
    assert (found.setting, found.tags["epoch"], found.agent_model) == ("simulated", "2", "mock/m")
    assert {o.name: o.value for o in found.outcomes} == {"match": 1.0, "success": 1.0}
    assert found.participant("assistant").tokens == {"prompt_tokens": 7, "completion_tokens": 3}


def test_without_inspect_ai_the_log_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "eval": {"run_id": "r", "task_id": "t"}, "samples": []}))
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    found, wrong = read("inspect", path)
    assert not found
    assert "install inspect_ai" in wrong[0].reason


@pytest.mark.filterwarnings("ignore")
def test_a_broken_log_is_named_and_read_no_further(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    path = tmp_path / "log.json"
    path.write_text('{"version": 2, "status": "success", "eval": {"run_id": "r", "task_id": ')
    found, wrong = read("inspect", path)
    assert not found
    assert wrong[0].source == str(path)
    assert "inspect_ai cannot read it" in wrong[0].reason
