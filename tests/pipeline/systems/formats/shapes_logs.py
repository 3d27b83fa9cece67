"""Logs as tools for running, watching and comparing agents write them, made by us for `coaudit map`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.pipeline.systems.formats.shapes import as_json, as_lines, as_text, sentence


def _runs(trace: int) -> list[dict[str, Any]]:
    """One traced session as flat runs: the chain, two model calls with their history, a tool between them."""

    def message(kind: str, content: str, **more: Any) -> dict[str, Any]:
        name = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}[kind]
        return {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", name],
            "kwargs": {"content": content, "type": kind, **more},
        }

    def run(number: int, kind: str, name: str, inputs: Any, outputs: Any, error: str | None = None) -> Any:
        return {
            "id": f"r{trace}-{number}",
            "trace_id": f"r{trace}-0",
            "parent_run_id": None if number == 0 else f"r{trace}-0",
            "name": name,
            "run_type": kind,
            "start_time": f"2026-01-0{trace + 1}T10:00:0{number}.000000",
            "end_time": f"2026-01-0{trace + 1}T10:00:0{number}.500000",
            "inputs": inputs,
            "outputs": outputs,
            "error": error,
            "extra": {"metadata": {"ls_model_name": "m-1"}},
            "session_id": "project",
        }

    asked = message("human", sentence(trace))
    call = {"id": f"c{trace}", "name": "timetable", "args": {"to": "Ulm"}}
    calls = message("ai", "", tool_calls=[call])
    answer = message("tool", "three trains", tool_call_id=f"c{trace}")
    ends = message("ai", sentence(3))
    failed = "TimeoutError: no answer" if trace == 1 else None
    return [
        run(
            3,
            "llm",
            "ChatModel",
            {"messages": [[asked, calls, answer]]},
            {"generations": [[{"message": ends}]]},
        ),
        run(0, "chain", "AgentExecutor", {"input": sentence(trace)}, {"output": sentence(3)}),
        run(1, "llm", "ChatModel", {"messages": [[asked]]}, {"generations": [[{"message": calls}]]}),
        run(
            2,
            "tool",
            "timetable",
            {"input": "{'to': 'Ulm'}"},
            None if failed else {"output": "three trains"},
            failed,
        ),
    ]


def traced_runs(folder: Path) -> Path:
    """Runs of several traces in one file of lines, not in the order of time."""
    return as_lines(folder / "runs.jsonl", [run for trace in range(3) for run in _runs(trace)])


def observations(folder: Path) -> Path:
    """A trace a file, whose observations are a list within it, in other words than runs."""
    for trace in range(2):
        call = {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "search", "arguments": '{"q": "Ulm"}'}}
            ],
        }
        asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": sentence(trace)}]
        many: list[dict[str, Any]] = [
            {
                "id": "o1",
                "parentObservationId": None,
                "type": "SPAN",
                "name": "turn",
                "input": sentence(trace),
            },
            {
                "id": "o2",
                "parentObservationId": "o1",
                "type": "GENERATION",
                "name": "chat",
                "input": asked,
                "output": call,
            },
            {
                "id": "o3",
                "parentObservationId": "o1",
                "type": "TOOL",
                "name": "search",
                "input": {"q": "Ulm"},
                "output": "a city",
            },
            {
                "id": "o4",
                "parentObservationId": "o1",
                "type": "GENERATION",
                "name": "chat",
                "input": [*asked, call, {"role": "tool", "tool_call_id": "c", "content": "a city"}],
                "output": {"role": "assistant", "content": sentence(3)},
            },
        ]
        timed = [
            {**one, "startTime": f"2026-02-0{trace + 1}T09:00:0{n}Z", "model": "m-2", "level": "DEFAULT"}
            for n, one in enumerate(many)
        ]
        as_json(folder / f"trace{trace}.json", {"id": f"t{trace}", "userId": "u", "observations": timed})
    return folder


def turns_of_steps(folder: Path) -> Path:
    """Results of a benchmark of function calls: lists of messages by step within a list of turns."""
    lines = []
    for n in range(3):
        log: list[Any] = [[{"role": "state_info", "class_name": "Files", "content": {"root": {"a": {}}}}]]
        for turn in range(2):
            steps: dict[str, list[Any]] = {
                "begin_of_turn_query": [{"role": "user", "content": sentence(turn)}]
            }
            steps["step_0"] = [
                {"role": "assistant", "content": f"[cd(folder='a{turn}'), ls()]"},
                {"role": "handler_log", "content": "decoded", "model_response_decoded": ["cd(folder='a')"]},
                {"role": "tool", "content": '{"current_working_directory": "a"}'},
                {"role": "tool", "content": '{"error": "no such file"}'},
            ]
            steps["step_1"] = [{"role": "assistant", "content": sentence(turn + 2)}]
            log.append(steps)
        result = [[["[cd(folder='a0'), ls()]"], [sentence(2)]], [["[cd(folder='a1'), ls()]"], [sentence(3)]]]
        lines.append({"id": f"multi_turn_{n}", "result": result, "inference_log": log, "latency": [[0.5]]})
    return as_lines(folder / "BFCL_result.json", lines)


def crew(folder: Path) -> Path:
    """A crew's file of tasks: one begins and one ends a line, and nothing says which session it is."""
    team = (("research", "Senior Researcher"), ("report", "Reporting Analyst"))
    lines = []
    for n, (task, agent) in enumerate(team):
        head = {"task_name": f"{task}_task", "task": sentence(n), "agent": agent}
        lines.append({"timestamp": f"2026-01-01 10:0{2 * n}:00", **head, "status": "started"})
        done = {"status": "completed", "output": f"# {task}\n{sentence(n + 2)}"}
        lines.append({"timestamp": f"2026-01-01 10:0{2 * n + 1}:00", **head, **done})
    return as_json(folder / "crew_log.json", lines)


def channel(folder: Path) -> Path:
    """A workplace's channel, a file a day: people by ids, a bot, a thread, other files."""
    for day in range(2):
        at = 1767225600 + 86400 * day
        messages = [
            {
                "type": "message",
                "user": "U01",
                "text": sentence(0),
                "ts": f"{at}.000100",
                "thread_ts": f"{at}.000100",
                "reply_count": 1,
            },
            {
                "type": "message",
                "subtype": "bot_message",
                "bot_id": "B07",
                "username": "helper",
                "text": sentence(1),
                "ts": f"{at + 30}.000200",
                "thread_ts": f"{at}.000100",
            },
            {"type": "message", "user": "U02", "text": sentence(2), "ts": f"{at + 60}.000300"},
            {"type": "message", "user": "U01", "text": sentence(3), "ts": f"{at + 90}.000400"},
        ]
        as_json(folder / "general" / f"2026-01-0{day + 1}.json", messages)
    as_json(
        folder / "users.json", [{"id": "U01", "name": "ada", "deleted": False, "profile": {"title": "x"}}]
    )
    as_json(folder / "channels.json", [{"id": "C01", "name": "general", "members": ["U01", "U02"]}])
    return folder


def arena(folder: Path) -> Path:
    """Two conversations a record, and which of them was liked more."""
    rows = []
    for n, winner in enumerate(("model_a", "model_b", "tie")):
        both = {
            f"conversation_{side}": [
                {"role": "user", "content": sentence(n)},
                {"role": "assistant", "content": f"{side}: {sentence(n + 1)}"},
            ]
            for side in "ab"
        }
        rows.append(
            {"question_id": f"q{n}", "model_a": "m-1", "model_b": "m-2", "winner": winner, **both, "turn": 1}
        )
    return as_lines(folder / "battles.jsonl", rows)


def answers_of_two(folder: Path) -> Path:
    """A prompt with two models' answers a row."""
    rows = [
        {
            "id": f"p{n}",
            "prompt": sentence(n),
            "response_a": sentence(n + 1),
            "response_b": sentence(n + 2),
            "winner": "ab"[n % 2],
        }
        for n in range(4)
    ]
    return as_lines(folder / "pairs.jsonl", rows)


def model_calls(folder: Path) -> Path:
    """What was sent to a model and what it gave back, a line a call, the history growing; a folder a task."""
    for task in range(2):
        sent = [{"role": "system", "content": "You write code."}, {"role": "user", "content": sentence(task)}]
        lines = []
        for n in range(3):
            back = {"role": "assistant", "content": f"```python\nprint(apis.show({n}))\n```"}
            reply = {"choices": [{"index": 0, "message": back, "finish_reason": "stop"}], "model": "m-1"}
            lines.append(
                {"id": f"{task}{n}", "input": {"model": "m-1", "messages": list(sent)}, "output": reply}
            )
            sent += [back, {"role": "user", "content": f"Output:\n```\n[{n}]\n```"}]
        as_lines(folder / f"task{task}" / "logs" / "lm_calls.jsonl", lines)
    return folder


def interactions(folder: Path) -> Path:
    """A page a task: under each heading the code that ran, and what it printed; all files have one name."""
    for task in range(2):
        parts = [
            f"\n### Environment Interaction {n + 1}\n{'-' * 60}\n"
            f"```python\nprint(apis.show({task}, {n}))\n```\n\n"
            f"```\n{'Execution failed. Traceback:' if n else '[1, 2]'}\n```\n"
            for n in range(3)
        ]
        as_text(folder / f"task{task}" / "logs" / "environment_io.md", "".join(parts))
    return folder


def typed_events(folder: Path) -> Path:
    """A sample a line, its events of kinds of their own: model calls, tools, scores."""
    lines = []
    for n in range(3):
        asked = [{"role": "user", "content": sentence(n)}]
        call = {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "function": "bash", "arguments": {"cmd": "ls"}}],
        }
        back = {"role": "tool", "tool_call_id": "c", "content": "a.txt"}
        ends = {"role": "assistant", "content": sentence(3)}
        events = [
            {"event": "sample_init", "timestamp": "2026-01-01T10:00:00Z", "sample": {"input": sentence(n)}},
            {
                "event": "model",
                "timestamp": "2026-01-01T10:00:01Z",
                "model": "m-1",
                "input": asked,
                "output": {"model": "m-1", "choices": [{"message": call, "stop_reason": "tool_calls"}]},
            },
            {
                "event": "tool",
                "timestamp": "2026-01-01T10:00:02Z",
                "function": "bash",
                "id": "c",
                "arguments": {"cmd": "ls"},
                "result": "a.txt",
            },
            {
                "event": "model",
                "timestamp": "2026-01-01T10:00:03Z",
                "model": "m-1",
                "input": [*asked, call, back],
                "output": {"model": "m-1", "choices": [{"message": ends, "stop_reason": "stop"}]},
            },
            {"event": "score", "timestamp": "2026-01-01T10:00:04Z", "score": {"value": "C"}},
        ]
        lines.append(
            {"id": n, "epoch": 1, "target": "42", "scores": {"match": {"value": "C"}}, "events": events}
        )
    return as_lines(folder / "samples.jsonl", lines)


def general_assistant(folder: Path) -> Path:
    """Answers to questions of a benchmark: the question, steps as what was thought, done and seen."""
    lines = []
    for n in range(3):
        steps = [
            {
                "step": 1,
                "thought": sentence(n),
                "tool": "web_search",
                "tool_input": {"query": "Ulm"},
                "observation": "a city",
            },
            {
                "step": 2,
                "thought": sentence(n + 1),
                "tool": "final_answer",
                "tool_input": {"answer": "42"},
                "observation": "42",
            },
        ]
        lines.append(
            {
                "task_id": f"g{n}",
                "Question": sentence(n),
                "Level": 1,
                "model_answer": "42",
                "Final answer": "42",
                "is_correct": n != 1,
                "steps": steps,
            }
        )
    return as_lines(folder / "gaia.jsonl", lines)


LOGS = {
    one.__name__: one
    for one in (
        *(traced_runs, observations, turns_of_steps, crew, channel, arena, answers_of_two, model_calls),
        *(interactions, typed_events, general_assistant),
    )
}
