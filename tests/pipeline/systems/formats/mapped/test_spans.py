"""What a mapping makes of spans: their ids, names, times and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.fields import mapping
from tests.pipeline.systems.formats.logs import one, outline, read, write_lines
from tests.pipeline.systems.formats.shapes import sentence

FIELDS = {"kind": "kind", "input": "in", "output": "out", "id": "id", "parent": "up", "name": "name"}
MAP = "".join(
    [
        '[spans]\nat = "s"\n',
        *(f'{name} = "s[].{field}"\n' for name, field in (FIELDS | {"start": "at"}).items()),
    ]
)


def call(said: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "llm", "in": said, "out": f"To {said}", **more}


def tool(name: str, given: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "tool", "name": name, "in": given, "out": "done", **more}


def test_a_span_of_number_0_is_no_other_span_and_holds_its_own(tmp_path: Path) -> None:
    bot = {"kind": "agent", "name": "Bot", "id": 0, "in": "Go.", "out": "Gone."}
    spans = [call("Go.", id=1), bot, tool("look", {"at": 1}, id=2, up=0)]
    found = one("mapped", write_lines(tmp_path / "a.jsonl", {"s": spans}), map=MAP)
    assert outline(found.events) == [
        ("user", "message", "Go."),
        ("assistant", "message", "To Go."),
        ("Bot", "message", "Gone."),
        ("Bot", "action", "look"),
    ]


def test_a_span_without_an_id_takes_nobodys(tmp_path: Path) -> None:
    spans = [call("Go.", id=1), call("Stop."), call("Wait.", id=2)]
    found = one("mapped", write_lines(tmp_path / "a.jsonl", {"s": spans}), map=MAP)
    assert [event.text for event in found.events if event.actor == "user"] == ["Go.", "Stop.", "Wait."]


@pytest.mark.parametrize(
    ("logged", "name"),
    [
        ("github:create_issue", "github:create_issue"),
        ("search:v12", "search"),
        ("lab:///project/op/search:v12", "search"),
        ("lab:///project/op/search:3f2aB", "search"),
    ],
)
def test_a_name_loses_its_version_and_nothing_else(tmp_path: Path, logged: str, name: str) -> None:
    spans = [call("Go."), tool(logged, {"at": 1})]
    found = one("mapped", write_lines(tmp_path / "a.jsonl", {"s": spans}), map=MAP)
    assert [event.action.name for event in found.events if event.action] == [name]


@pytest.mark.parametrize("printed", ["{'a', 'b'}", "['a', b'x']", "['a', 1j]", "['a', ...]"])
def test_what_json_has_not_is_said_and_given_as_its_text(tmp_path: Path, printed: str) -> None:
    spans = [call(printed), tool("look", printed)]
    found = one("mapped", write_lines(tmp_path / "a.jsonl", {"s": spans}), map=MAP)
    assert found.events[0].text == printed
    action = found.events[2].action
    assert action and (action.arguments, action.raw) == ({}, printed)


@pytest.mark.parametrize("unit", [10**6, 10**9], ids=["microseconds", "nanoseconds"])
def test_times_in_small_units_order_spans_as_texts_too(tmp_path: Path, unit: int) -> None:
    spans = [call(f"Turn {n}.", at=str((1_700_000_000 + n) * unit)) for n in (2, 0, 1)]
    found = one("mapped", write_lines(tmp_path / "a.jsonl", {"s": spans}), map=MAP)
    assert [(event.text, event.time) for event in found.events if event.actor == "user"] == [
        (f"Turn {n}.", f"2023-11-14T22:13:2{n}+00:00") for n in range(3)
    ]


def test_a_draft_finds_times_in_nanoseconds_as_texts(tmp_path: Path) -> None:
    spans = [
        {
            "id": f"{trace}{n}",
            "trace_id": trace,
            "kind": kind,
            "name": kind,
            "input": f"Go {n}.",
            "output": "Gone.",
        }
        | {"start_time": str((1_700_000_000 + n) * 10**9)}
        for trace in "ab"
        for n, kind in enumerate(("agent", "llm", "tool"))
    ]
    assert '\nstart = "start_time"' in draft(write_lines(tmp_path / "a.jsonl", *spans)).text


def test_a_reason_names_the_place_of_a_span_in_the_record(tmp_path: Path) -> None:
    spans = [call("Wait.", name="aside"), call("Go."), 5]
    how = MAP + '[filter]\nskip = [{ "s[].name" = "aside" }]\n'
    _, (wrong,) = read("mapped", write_lines(tmp_path / "a.jsonl", {"s": spans}), map=how)
    assert wrong.reason == "span 2: expected an object, got int"


def test_actions_in_texts_are_refused_where_spans_say_what_was_done() -> None:
    how = mapping.parse(MAP + "[[actions]]\npattern = 'Go'\n")
    assert (how.unused_part() or "").startswith("actions: only with [event] or [messages]; spans say")


def test_a_call_of_a_tool_keeps_its_arguments_and_its_name_wherever_they_stand(tmp_path: Path) -> None:
    flat = {"type": "tool_call", "id": "c", "name": "look", "args": {"at": 1}}
    deep = {"type": "tool_call", "id": "c", "function": {"name": "look", "arguments": '{"at":1}'}}
    for back in (flat, deep):
        spans = [{"kind": "llm", "id": 1, "in": "Go.", "out": [back]}]
        found = one("mapped", write_lines(tmp_path / "a.jsonl", {"s": spans}), map=MAP)
        assert [event.actor for event in found.events] == ["user", "assistant"]
        last = found.events[-1]
        assert last.action is None if back is deep else last.action and last.action.arguments == {"at": 1}
        assert back is flat or "look" in str(last.text)


def test_of_two_different_spans_with_one_id_the_second_is_told(tmp_path: Path) -> None:
    def call(words: str) -> dict[str, object]:
        times = {"start": "2026-01-02T10:00:01Z", "end": "2026-01-02T10:00:02Z"}
        return {"id": "a", "kind": "llm", **times, "input": words, "output": sentence(3)}

    how = (
        '[trajectory]\nnative_id = "session"\n[spans]\nat = "spans"\njoined = true\nkind = "spans[].kind"\n'
        'id = "spans[].id"\nstart = "spans[].start"\ninput = "spans[].input"\noutput = "spans[].output"\n'
    )
    lines = [{"session": "s", "spans": [call(sentence(n))]} for n in (0, 1, 1)]
    run, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", *lines), map=how)
    assert [event.text for event in run[0].events] == [sentence(0), sentence(3)]
    assert [one.reason for one in wrong] == ["span 1: another span has the id 'a'"]
