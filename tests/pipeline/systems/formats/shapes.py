"""Logs in shapes that public data sets have, written by us, for the tests of `coaudit map`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars

SAID = (
    "We should look at the train first, since it is cheaper than the bus and leaves on time.",
    "A table for two at eight, please, and nothing with nuts in it.",
    "That did not work; let me try the other tool before we give up on it.",
    "Done. Is there anything else that you want me to change?",
)


def sentence(n: int) -> str:
    return f"{SAID[n % len(SAID)]} ({n})"


def tau(folder: Path) -> Path:
    """Airline and retail results: one list, chat messages under `traj`, several trials of a task."""
    items = []
    for task in range(3):
        for trial in range(2):
            traj: list[dict[str, Any]] = [
                {"role": "system", "content": f"# Policy\n{sentence(0)}"},
                {"role": "user", "content": sentence(task)},
            ]
            for n, result in enumerate(("Error: user not found", '{"status": "pending"}')):
                function = {"name": "find_user", "arguments": '{"email": "a@b.c"}'}
                call = {"id": f"c{task}{trial}{n}", "type": "function", "function": function}
                traj.append({"role": "assistant", "content": None, "tool_calls": [call]})
                traj.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            traj.append({"role": "assistant", "content": sentence(n)})
            info = {"task": {"user_id": f"u{task}", "instruction": sentence(5)}, "source": "user"}
            items.append({"task_id": task, "reward": trial / 1, "info": info, "traj": traj, "trial": trial})
    return as_json(folder / "results.json", items)


def mini_swe(folder: Path) -> Path:
    """A folder of runs with shell blocks in what the assistant says, and another file beside them."""
    for run in range(2):
        messages = [{"role": "system", "content": sentence(0)}, {"role": "user", "content": sentence(1)}]
        for n in range(3):
            messages.append(
                {"role": "assistant", "content": f"THOUGHT: {sentence(n)}\n\n```bash\nls {n}\n```"}
            )
            messages.append(
                {"role": "user", "content": f"<returncode>{n % 2}</returncode>\n<output>x</output>"}
            )
        info = {"exit_status": "Submitted", "config": {"model": {"model_name": "m-1"}}}
        value = {"info": info, "messages": messages, "instance_id": f"repo-{run}"}
        as_json(folder / f"repo-{run}" / f"repo-{run}.traj.json", value)
    as_json(folder / "preds.json", {"a": {"model_patch": "x"}})
    return folder


def who(folder: Path) -> Path:
    """Two folders of one file a case: names beside a framework's roles, and roles that carry names."""
    for n in range(3):
        names = ("Excel_Expert", "Computer_terminal", "Data_Expert")
        roles = {"Computer_terminal": "user"}
        turns = [
            {"content": sentence(k), "role": roles.get(x, "assistant"), "name": x}
            for k, x in enumerate(names)
        ]
        as_json(
            folder / "Made" / f"{n}.json", {"question_ID": f"m{n}", "history": turns, "mistake_step": "1"}
        )
        spoken = ("human", "Orchestrator (thought)", "Orchestrator (-> WebSurfer)", "WebSurfer")
        turns = [{"content": sentence(k), "role": x} for k, x in enumerate(spoken)]
        as_json(
            folder / "Written" / f"{n}.json", {"question_ID": f"w{n}", "history": turns, "mistake_step": "3"}
        )
    return folder


def mast(folder: Path) -> Path:
    """Records whose trace is one long text."""
    speakers = ("Chief Executive Officer", "Programmer", "Code Reviewer", "Programmer")
    items = []
    for n in range(4):
        lines = [
            f"[2025-01-01 10:00:0{k} INFO] {name}: **go**\n{sentence(k)}" for k, name in enumerate(speakers)
        ]
        trace = {"key": "k", "index": n, "trajectory": "\n".join(lines)}
        items.append(
            {"mas_name": "ChatDev", "trace_id": n, "trace": trace, "mast_annotation": {"1.1": n % 2}}
        )
    return as_json(folder / "traces.json", items)


def turns_csv(folder: Path) -> Path:
    """A table with one row a turn."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["conversation_id", "turn", "speaker", "text", "rating"])
    for talk in range(3):
        for n in range(4):
            rows.writerow([f"c{talk}", n, ("customer", "Maya")[n % 2], sentence(n), 4 if n == 3 else ""])
    return as_text(folder / "turns.csv", text.getvalue())


def sharegpt(folder: Path) -> Path:
    turns = [{"from": ("human", "gpt")[n % 2], "value": sentence(n)} for n in range(4)]
    return as_lines(folder / "share.jsonl", [{"id": f"s{n}", "conversations": turns} for n in range(3)])


def swe_agent(folder: Path) -> Path:
    """Steps without a speaker: a command line, what came back, what was thought. JSON under another name."""
    for run in range(2):
        steps = [
            {
                "action": f"find_file x{n}.py",
                "observation": "bash: not found",
                "thought": sentence(n),
                "response": "",
            }
            for n in range(3)
        ]
        as_json(folder / f"run{run}.traj", {"trajectory": steps, "info": {"exit_status": "submitted"}})
    return folder


def texts(folder: Path) -> Path:
    for talk in range(3):
        lines = [f"{('User', 'Assistant')[n % 2]}: {sentence(n)}\nand one more line" for n in range(4)]
        as_text(folder / f"chat{talk}.txt", "\n".join(lines))
    return folder


def web_arena(folder: Path) -> Path:
    steps = [
        {"url": "http://x", "action": f"click [{n}]", "observation": sentence(n), "thought": sentence(n)}
        for n in range(4)
    ]
    return as_json(folder / "w.json", [{"task_id": n, "score": n / 2, "steps": steps} for n in range(3)])


def open_hands(folder: Path) -> Path:
    """A stream of actions and, as events of their own, what came back."""
    items = []
    for n in range(2):
        history: list[dict[str, Any]] = [
            {"id": 0, "source": "user", "action": "message", "args": {"content": sentence(n)}}
        ]
        for k in range(3):
            history.append(
                {"id": 2 * k + 1, "source": "agent", "action": "run", "args": {"command": f"ls {k}"}}
            )
            history.append(
                {"id": 2 * k + 2, "source": "environment", "observation": "run", "content": sentence(k)}
            )
        items.append({"instance_id": f"i{n}", "history": history, "test_result": {"resolved": bool(n)}})
    return as_json(folder / "o.json", items)


def lang_graph(folder: Path) -> Path:
    messages = [
        {"type": "human", "content": sentence(0)},
        {"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": {"q": "x"}, "id": "c1"}]},
        {"type": "tool", "content": sentence(1), "tool_call_id": "c1", "status": "success"},
        {"type": "ai", "content": sentence(2)},
    ]
    runs = [{"thread_id": f"t{n}", "values": {"messages": messages}} for n in range(3)]
    return as_json(folder / "g.json", {"runs": runs})


def preferences(folder: Path) -> Path:
    """Dialogues as one text a field."""
    text = "".join(f"\n\n{('Human', 'Assistant')[n % 2]}: {sentence(n)}" for n in range(4))
    return as_lines(folder / "p.jsonl", [{"chosen": text, "rejected": text[: 90 + n]} for n in range(3)])


def pairs(folder: Path) -> Path:
    rows = [
        {"instruction": sentence(n), "input": "", "output": sentence(n + 1), "score": n} for n in range(4)
    ]
    return as_lines(folder / "q.jsonl", rows)


def columns(folder: Path) -> Path:
    """Turns as an object of equally long lists."""
    turns = {"speaker": [0, 1, 0, 1], "utterance": [sentence(n) for n in range(4)]}
    return as_lines(folder / "c.jsonl", [{"dialogue_id": f"d{n}", "turns": turns} for n in range(3)])


def plain_lists(folder: Path) -> Path:
    rows = [{"dialog": [sentence(n) for n in range(4)], "act": [k, 2, 1, 2]} for k in range(3)]
    return as_lines(folder / "d.jsonl", rows)


def parquet(folder: Path) -> Path:
    turns = [{"content": sentence(n), "role": ("user", "assistant")[n % 2]} for n in range(2)]
    path = folder / "w.parquet"
    polars.DataFrame({"conversation_hash": ["a", "b"], "conversation": [turns, turns]}).write_parquet(path)
    return path


def logged_messages(folder: Path) -> Path:
    """A session a file, a message a line, with calls and answers as parts of contents."""
    call = {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "no such file", "is_error": True}
    turns = [
        ("user", sentence(0)),
        ("assistant", [{"type": "text", "text": sentence(1)}, call]),
        ("user", [answer]),
    ]
    for run in range(2):
        lines: list[Any] = [{"type": "summary", "summary": "x", "sessionId": f"s{run}"}]
        for n, (role, content) in enumerate(turns):
            at = f"2026-01-02T03:04:0{n}Z"
            lines.append(
                {"sessionId": f"s{run}", "timestamp": at, "message": {"role": role, "content": content}}
            )
        as_lines(folder / f"{run}.jsonl", lines)
    return folder


def by_name(folder: Path) -> Path:
    """An object of sessions by their names, in which the system is who answers."""
    turns = [{"speaker": ("user", "system")[n % 2], "utterance": sentence(n)} for n in range(4)]
    return as_json(folder / "n.json", {f"talk-{n}": turns for n in range(3)})


def unsaid(folder: Path) -> Path:
    """Dialogues in which nothing says who speaks."""
    log = [{"text": sentence(n), "metadata": {}} for n in range(4)]
    return as_json(folder / "u.json", {f"M{n}.json": {"goal": {"x": 1}, "log": log} for n in range(3)})


def export(folder: Path) -> Path:
    """A spreadsheet's own ways: semicolons, words with spaces, times, an arm."""
    lines = ["Session ID;Timestamp;Sender;Message Body;Study Arm"]
    for talk in range(3):
        for n in range(4):
            who = ("Participant", "ChatGPT")[n % 2]
            lines.append(
                f"P{talk};2024-05-01 10:0{n}:00;{who};{sentence(n)};{'AB'[talk % 2]}".replace("; ", ", ")
            )
    return as_text(folder / "export.csv", "\n".join(lines))


def text_values(folder: Path) -> Path:
    """A thread a file, as an assistants' service lists its messages: what is said is the value of a part."""
    for talk in range(2):
        data = [
            {
                "id": f"m{talk}{n}",
                "created_at": 1_700_000_000 + n,
                "thread_id": f"t{talk}",
                "role": ("user", "assistant")[n % 2],
                "content": [
                    {"type": "text", "text": {"value": sentence(n + 4 * talk * (n > 1)), "annotations": []}}
                ],
            }
            for n in range(4)
        ]
        as_json(folder / f"{talk}.json", {"object": "list", "data": data, "has_more": False})
    return folder


def tree(folder: Path) -> Path:
    """An export of chats: nodes by name, each with its message in an object of its own; one answer was
    written anew, so that the first one is on another branch."""
    chats = []
    for chat in range(3):
        nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": ["n0"]}}
        for n, (name, parent) in enumerate([("n0", "root"), ("old", "n0"), ("n1", "n0"), ("n2", "n1")]):
            author = {"role": ("user", "assistant", "assistant", "user")[n], "name": None}
            parts = [f"{sentence(0)} {chat}", "An answer that was not liked.", sentence(1), sentence(2)][n]
            content = {"content_type": "text", "parts": [parts]}
            message = {"id": name, "author": author, "create_time": 1.7e9 + n, "content": content}
            nodes[name] = {"id": name, "message": message, "parent": parent, "children": []}
        chats.append({"title": f"Chat {chat}", "mapping": nodes, "conversation_id": f"c{chat}"})
    return as_json(folder / "conversations.json", chats)


def parts(folder: Path) -> Path:
    """Chats of a web page's library: a call with its answer between two texts of one message."""
    call = {"toolCallId": "1", "toolName": "weather", "args": {"city": "Rome"}, "result": "20 degrees"}
    answer: list[dict[str, Any]] = [{"type": "step-start"}, {"type": "text", "text": sentence(1)}]
    answer += [{"type": "tool-invocation", "toolInvocation": call}, {"type": "text", "text": sentence(3)}]
    chats = [
        {
            "id": f"c{n}",
            "messages": [
                {"id": "1", "role": "user", "parts": [{"type": "text", "text": sentence(0)}]},
                {"id": "2", "role": "assistant", "parts": answer},
            ],
        }
        for n in range(3)
    ]
    return as_lines(folder / "chats.jsonl", chats)


def function_parts(folder: Path) -> Path:
    """Contents with the roles user and model, calls and answers as parts in objects of their own."""
    call = {"functionCall": {"name": "weather", "args": {"city": "Rome"}}}
    answer = {"functionResponse": {"name": "weather", "response": {"celsius": 20}}}
    talk = [
        ("user", {"text": sentence(0)}),
        ("model", call),
        ("user", answer),
        ("model", {"text": sentence(1)}),
    ]
    contents = [{"role": role, "parts": [part]} for role, part in talk]
    return as_lines(folder / "g.jsonl", [{"id": f"r{n}", "contents": contents} for n in range(3)])


def sources(folder: Path) -> Path:
    """A team's run a file: names for roles, calls and their answers as lists of their own."""
    call = [{"id": "1", "name": "find_hotel", "arguments": '{"city": "Rome"}'}]
    answer = [{"call_id": "1", "name": "find_hotel", "content": "no room", "is_error": True}]
    for run in range(2):
        turns = [
            ("user", f"{sentence(0)} {run}"),
            ("planner", call),
            ("planner", answer),
            ("critic", sentence(1)),
        ]
        as_json(
            folder / f"{run}.json", {"messages": [{"source": who, "content": what} for who, what in turns]}
        )
    return folder


def prefixes(folder: Path) -> Path:
    """Answers with the messages of each step, of which the last has all."""
    call = {"role": "assistant", "content": "", "function_call": {"name": "search", "arguments": '{"q": 1}'}}
    turns = [{"role": "user", "content": sentence(0)}, call]
    turns += [{"role": "function", "name": "search", "content": sentence(2)}]
    for run in range(2):
        whole = [*turns, {"role": "assistant", "content": sentence(3 + 4 * run)}]
        inside = {"query": f"Q{run}", "train_messages": [turns[:2], whole], "finish_type": "give_answer"}
        as_json(folder / f"{run}.json", {"win": bool(run), "answer_generation": inside})
    return folder


def calls_in_steps(folder: Path) -> Path:
    """Steps without a speaker: what the model wrote, its calls, what was seen."""
    runs = []
    for run in range(3):
        function = {"name": "python", "arguments": f"search({run})"}
        step = {
            "step_number": 1,
            "model_output": sentence(run),
            "tool_calls": [{"id": "1", "function": function}],
        }
        last = {
            "model_output": sentence(3),
            "tool_calls": [{"id": "2", "function": {"name": "final_answer"}}],
        }
        steps = [{**step, "observations": sentence(2)}, {**last, "step_number": 2, "observations": "42"}]
        runs.append({"task_id": f"t{run}", "prediction": "42", "intermediate_steps": steps})
    return as_lines(folder / "runs.jsonl", runs)


SHAPES: dict[str, Callable[[Path], Path]] = {
    one.__name__: one
    for one in (
        *(tau, mini_swe, who, mast, turns_csv, sharegpt, swe_agent, texts, web_arena, open_hands, lang_graph),
        *(preferences, pairs, columns, plain_lists, parquet, logged_messages, by_name, unsaid, export),
        *(text_values, tree, parts, function_parts, sources, prefixes, calls_in_steps),
    )
}


def as_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def as_json(path: Path, value: object) -> Path:
    return as_text(path, json.dumps(value, indent=1))


def as_lines(path: Path, values: list[Any]) -> Path:
    return as_text(path, "".join(f"{json.dumps(value)}\n" for value in values))
