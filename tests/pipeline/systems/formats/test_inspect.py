"""What the reader of Inspect's logs makes of them, with the real package where it is installed."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.systems.formats.logs import one, outline, read

pytestmark = pytest.mark.filterwarnings("ignore")


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


def test_a_broken_log_is_named_and_read_no_further(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    path = tmp_path / "log.json"
    path.write_text('{"version": 2, "status": "success", "eval": {"run_id": "r", "task_id": ')
    found, wrong = read("inspect", path)
    assert not found
    assert wrong[0].source == str(path)
    assert "inspect_ai cannot read it" in wrong[0].reason


def written(path: Path, *samples: dict[str, Any], **spec: Any) -> Path:
    """A log of samples of these fields, written by inspect_ai itself."""
    log = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    head = {"created": "2026-01-05T08:00:00+00:00", "task": "files", "model": "openai/m", **spec}
    own = [{"id": 1, "epoch": 1, "input": "", "target": "", **fields} for fields in samples]
    content = {"eval": {"dataset": {}, "config": {}, **head}, "samples": own, "status": "success"}
    log.write_eval_log(log.EvalLog.model_validate(content), str(path))
    return path


def user(text: str) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": text, "id": f"u-{text[:9]}"}


def assistant(text: str, *calls: str) -> dict[str, Any]:
    """A message of the agent, under the name that its provider gives the model, with calls of `bash`."""
    tools = [{"id": call, "function": "bash", "arguments": {}, "type": "function"} for call in calls]
    return {"role": "assistant", "content": text, "id": f"a-{text}", "model": "m-2026", "tool_calls": tools}


def test_an_agent_whose_provider_gives_its_model_another_name_has_its_tokens_with_those_from_the_cache(
    tmp_path: Path,
) -> None:
    usage = {
        "openai/m": {
            "input_tokens": 100,
            "output_tokens": 10,
            "input_tokens_cache_read": 900,
            "input_tokens_cache_write": 50,
        },
        "anthropic/grader": {"input_tokens": 5, "output_tokens": 5},
    }
    sample = {"messages": [user("Hi"), assistant("Hello")], "model_usage": usage}
    only = one("inspect", written(tmp_path / "log.json", sample))
    assert only.participant("assistant").tokens == {"prompt_tokens": 1050, "completion_tokens": 10}


def test_tokens_from_the_cache_that_old_logs_have_among_the_input_count_once(tmp_path: Path) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 10, "total_tokens": 1010, "input_tokens_cache_read": 900}
    sample = {"messages": [user("Hi"), assistant("Hello")], "model_usage": {"openai/m": usage}}
    only = one("inspect", written(tmp_path / "log.json", sample))
    assert only.participant("assistant").tokens == {"prompt_tokens": 1000, "completion_tokens": 10}


def test_a_sample_that_ended_before_its_model_answered_belongs_to_that_model(tmp_path: Path) -> None:
    error = {"message": "boom", "traceback": "", "traceback_ansi": ""}
    only = one("inspect", written(tmp_path / "log.json", {"messages": [user("Hi")], "error": error}))
    assert (only.agent_model, only.tags["error"]) == ("openai/m", "boom")


@pytest.mark.parametrize(
    "text",
    [
        "Please proceed to the next step using your best judgement.",
        "\nPlease proceed to the next step using your best judgement. If you believe you have completed the "
        "task, please call the `submit()` tool with your final answer.\n",
        "The researcher agent has completed its work.",
    ],
)
def test_what_inspects_agents_tell_a_model_under_the_users_role_is_no_message_of_a_person(
    tmp_path: Path, text: str
) -> None:
    messages = [user("Hi"), assistant("Hm"), user(text), user(f"{text} Then call me.")]
    only = one("inspect", written(tmp_path / "log.json", {"messages": messages}))
    assert [(e.actor, e.kind) for e in only.events] == [
        ("user", "message"),
        ("assistant", "message"),
        ("environment", "note"),
        ("user", "message"),
    ]


def model_call(asked: list[dict[str, Any]], answer: dict[str, Any]) -> dict[str, Any]:
    """The event of a model's answer."""
    return {
        "event": "model",
        "timestamp": "2026-01-05T08:00:01+00:00",
        "completed": "2026-01-05T08:00:04+00:00",
        "model": "openai/m",
        "input": asked,
        "tools": [],
        "tool_choice": "auto",
        "config": {},
        "output": {"model": "m", "choices": [{"message": answer, "stop_reason": "stop"}]},
    }


def test_events_give_the_messages_their_times(tmp_path: Path) -> None:
    messages = [user("Hi"), assistant("Hello", "c1"), user("Thanks")]
    call = model_call(messages[:1], messages[1])
    only = one("inspect", written(tmp_path / "log.json", {"messages": messages, "events": [call]}))
    assert [(e.kind, e.time) for e in only.events] == [
        ("message", "2026-01-05T08:00:01+00:00"),
        ("message", "2026-01-05T08:00:04+00:00"),
        ("action", "2026-01-05T08:00:04+00:00"),
        ("message", None),
    ]


def test_messages_without_ids_share_no_time(tmp_path: Path) -> None:
    messages = [user("Hi"), assistant("Hello"), user("Thanks")]
    path = written(
        tmp_path / "log.json", {"messages": messages, "events": [model_call(messages[:1], messages[1])]}
    )
    log = json.loads(path.read_text())
    sample = log["samples"][0]
    call = sample["events"][0]
    answers = [choice["message"] for choice in call["output"]["choices"]]
    for message in (*sample["messages"], *call["input"], *answers):
        del message["id"]
    path.write_text(json.dumps(log))
    only = one("inspect", path)
    assert [(e.text, e.time) for e in only.events] == [("Hi", None), ("Hello", None), ("Thanks", None)]


def test_a_command_that_failed_without_an_error_of_its_tool_has_failed(tmp_path: Path) -> None:
    printed = {"c1": "exit code 1", "c2": "files", "c3": "Traceback (most recent call last):\nKeyError: 1"}
    answers = [{"role": "tool", "content": text, "tool_call_id": key} for key, text in printed.items()]
    messages = [user("Hi"), assistant("", "c1", "c2", "c3"), *answers]
    only = one("inspect", written(tmp_path / "log.json", {"messages": messages}))
    assert [e.status for e in only.events[1:]] == ["failed", "succeeded", "failed"]


def test_scores_have_the_numbers_of_inspects_own_metrics_and_each_value_of_several_is_an_outcome(
    tmp_path: Path,
) -> None:
    values: dict[str, Any] = {
        "whole": {"style": 0.5, "fact": "C"},
        "yes": "Yes",
        "text": "0.25",
        "words": "inf",
    }
    scores = {name: {"value": value} for name, value in values.items()}
    only = one("inspect", written(tmp_path / "log.json", {"messages": [user("Hi")], "scores": scores}))
    assert {o.name: o.text if o.value is None else o.value for o in only.outcomes} == {
        "whole/style": 0.5,
        "whole/fact": 1.0,
        "yes": 1.0,
        "text": 0.25,
        "words": "inf",
    }


def test_a_broken_sample_costs_itself_alone(tmp_path: Path) -> None:
    path = written(
        tmp_path / "log.eval", *({"id": name, "messages": [user(name)], "uuid": name} for name in "abc")
    )
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("samples/b_epoch_1.json")
    with path.open("r+b") as file:
        file.seek(member.header_offset + 30 + len(member.filename))
        file.write(b"\0" * member.compress_size)
    sessions, wrong = read("inspect", path)
    assert [session.native_id for session in sessions] == ["a", "c"]
    assert [one.reason.partition(":")[0] for one in wrong] == ["sample b, epoch 1"]


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_a_log_without_samples_is_named(tmp_path: Path, name: str) -> None:
    sessions, wrong = read("inspect", written(tmp_path / name))
    assert not sessions
    assert [one.reason for one in wrong] == ["no samples in it (its status is 'success')"]


def test_a_broken_sample_of_a_json_log_costs_itself_alone(tmp_path: Path) -> None:
    path = logged(tmp_path / "log.json")
    log = json.loads(path.read_text(encoding="utf-8"))
    (sample,) = log["samples"]
    wizard = {**sample, "id": "q2", "uuid": "u-2", "messages": [{"role": "wizard", "content": "x"}]}
    log["samples"] = [sample, wizard, {**sample, "id": "q3", "uuid": "u-3"}]
    path.write_text(json.dumps(log), encoding="utf-8")
    runs, wrong = read("inspect", path)
    assert [run.native_id for run in runs] == ["u-1", "u-3"]
    assert [(item.source, item.reason[:10]) for item in wrong] == [(str(path), "sample q2:")]
