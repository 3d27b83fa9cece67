"""Recordings of Gemini's command line in JSON Lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import one, outline, read, write_lines
from tests.steps import steps

HEAD = {"sessionId": "s1", "projectHash": "p", "startTime": "2026-02-01T10:00:00Z", "kind": "main"}


def message(mark: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"id": mark, "timestamp": f"2026-02-01T10:00:0{mark}Z", "type": kind, "content": content, **more}


def calling(**more: Any) -> dict[str, Any]:
    call = {"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}, **more}
    return message("2", "gemini", "I look.", model="m-1", toolCalls=[call])


def test_a_message_that_is_written_again_is_said_once_with_its_calls(tmp_path: Path) -> None:
    response = {"functionResponse": {"id": "c1", "response": {"output": "a.py"}}}
    lines = [
        HEAD,
        message("1", "user", [{"text": "List the files."}]),
        {"$set": {"lastUpdated": "2026-02-01T10:00:01Z"}},
        message("2", "gemini", "I look.", model="m-1"),
        calling(status="executing"),
        calling(status="success", result=[response]),
        message("3", "gemini", [{"text": "One."}], model="m-1"),
    ]
    session = one("chat", write_lines(tmp_path / "session-1.jsonl", *lines))
    assert (session.native_id, session.agent_model, session.tags) == ("s1", "m-1", {"kind": "main"})
    assert outline(session.events) == [
        ("user", "message", "List the files."),
        ("assistant", "message", "I look."),
        ("assistant", "action", "run_shell_command"),
        ("assistant", "message", "One."),
    ]
    action = session.events[2]
    assert action.status == "succeeded" and action.time == "2026-02-01T10:00:02Z"
    assert session.states[action.states["public"]] == {"observation": {"output": "a.py"}}


def test_what_was_rewound_is_left_out_and_a_broken_line_costs_itself(tmp_path: Path) -> None:
    lines = [
        HEAD,
        message("1", "user", "To Ulm."),
        message("2", "gemini", "When?"),
        message("3", "user", "Wrong."),
        message("4", "gemini", "Pardon?"),
        {"$rewindTo": "3"},
        '{"id": "5", "type": ',
        message("6", "user", "Now."),
    ]
    (session,), wrong = read("chat", write_lines(tmp_path / "session-1.jsonl", *lines))
    assert [event.text for event in session.events] == ["To Ulm.", "When?", "Now."]
    assert [item.line for item in wrong] == [7]


def test_a_context_without_messages_of_its_own_is_read(tmp_path: Path) -> None:
    context = {"$set": {"messages": [message("1", "user", "To Ulm."), message("2", "gemini", "When?")]}}
    session = one("chat", write_lines(tmp_path / "session-1.jsonl", HEAD, context))
    assert outline(session.events) == [("user", "message", "To Ulm."), ("assistant", "message", "When?")]


def test_a_head_may_have_an_empty_list_and_messages_with_such_marks_are_no_recording(tmp_path: Path) -> None:
    said = [message("1", "user", "To Ulm."), message("2", "gemini", "When?")]
    session = one("chat", write_lines(tmp_path / "session-1.jsonl", {**HEAD, "messages": []}, *said))
    assert [event.text for event in session.events] == ["To Ulm.", "When?"]
    rows = [{**HEAD, "role": "user", "content": "To Ulm."}, {**HEAD, "role": "assistant", "content": "When?"}]
    (session,) = read_by_draft(write_lines(tmp_path / "rows.jsonl", *rows))
    assert [event.text for event in session.events] == ["To Ulm.", "When?"]


def test_what_is_no_message_is_told_of_and_costs_no_other_line(tmp_path: Path) -> None:
    odd = {"id": 1, "source": {"a": 1}, "type": "user", "content": "Hi."}
    lines = [HEAD, ["a list"], {"$set": {"messages": [odd, message("1", "user", "Go on.")]}}]
    (session,), bad = read("chat", write_lines(tmp_path / "a.jsonl", *lines))
    assert [event.text for event in session.events][-1] == "Go on."
    assert (bad[0].line, bad[0].reason) == (2, "expected an object")


def test_rewinding_message_by_message_takes_time_in_step_with_them(tmp_path: Path) -> None:
    def work(count: int) -> int:
        said = [message(str(n), "user", "Hi.") for n in range(count)]
        back = [{"$rewindTo": str(n)} for n in reversed(range(1, count))]
        path = write_lines(tmp_path / f"{count}.jsonl", HEAD, *said, *back)
        return steps(lambda: read("chat", path))

    assert work(1600) < 12 * work(200)
