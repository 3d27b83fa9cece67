"""Traces of frameworks that say more in ways of their own than the GenAI conventions have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.systems.formats.logs import one, outline, read, write_lines
from tests.pipeline.systems.formats.traces.test_otlp import attributes, span, traced
from tests.steps import steps

ASKED = [
    ("user", "message", "Weather in Paris?"),
    ("guide", "action", "weather"),
    ("guide", "message", "It rains."),
]
USE = [{"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Paris"}}}]
CALL = {"function_call": {"name": "weather", "args": {"city": "Paris"}}}
BACK = {"function_response": {"name": "weather", "response": {"result": "rain"}}}


def told(name: str, **fields: Any) -> dict[str, Any]:
    """An event of a span, whose lists are JSON."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in fields.items()}
    return {"name": f"gen_ai.{name}", "attributes": attributes(texts)}


def strands() -> list[dict[str, Any]]:
    """Messages are events, whose contents are parts as Bedrock's API has them, in JSON."""
    asks = told("user.message", content=[{"text": "Weather in Paris?"}])
    back = [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "rain"}]}}]
    says = told("choice", message=[{"text": "It rains."}], finish_reason="end_turn")
    ran = [told("tool.message", content={"city": "Paris"}), told("choice", message=[{"text": "rain"}])]
    history = [asks, told("assistant.message", content=USE), told("tool.message", content=back)]
    return [
        span(1, "chat", agent__name="guide", events=[asks, told("choice", message=USE)]),
        span(2, "execute_tool", agent__name="guide", tool__name="weather", tool__call__id="c1", events=ran),
        span(3, "chat", agent__name="guide", events=[*history, says]),
    ]


def kit() -> list[dict[str, Any]]:
    """Requests and responses are the Gemini API's, in attributes of its own; calls have no ids."""

    def own(one: dict[str, Any], **values: Any) -> dict[str, Any]:
        given = {f"gcp.vertex.agent.{key}": json.dumps(value) for key, value in values.items()}
        return {**one, "attributes": [*one["attributes"], *attributes(given)]}

    def call(number: int, contents: list[Any], part: dict[str, Any]) -> dict[str, Any]:
        request = {"contents": contents, "config": {"system_instruction": "Be brief."}}
        one = own(span(number, ""), llm_request=request, llm_response={"content": said("model", part)})
        return {**one, "attributes": [*attributes({"gen_ai.agent.name": "guide"}), *one["attributes"][1:]]}

    def said(role: str, part: dict[str, Any]) -> dict[str, Any]:
        return {"role": role, "parts": [part]}

    asks = said("user", {"text": "Weather in Paris?"})
    names = {"agent__name": "guide", "tool__name": "weather", "tool__call__id": "<not specified>"}
    merged = span(3, "execute_tool", tool__name="(merged tools)", tool__call__id="e1")
    return [
        call(1, [asks], CALL),
        own(
            span(2, "execute_tool", **names),
            tool_call_args={"city": "Paris"},
            tool_response={"result": "rain"},
        ),
        own(merged, tool_call_args="N/A", tool_response={"result": "rain"}),
        call(4, [asks, said("model", CALL), said("user", BACK)], {"text": "It rains."}),
    ]


def test_events_of_strands_with_parts_in_json_are_words_calls_and_results(tmp_path: Path) -> None:
    session = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*strands())))
    assert outline(session.events) == ASKED
    action = session.events[1]
    assert action.action and action.action.arguments == {"city": "Paris"} and action.status == "succeeded"
    assert session.states[action.states["public"]] == {"observation": "rain"}


def test_rows_that_a_tool_gave_back_stay_rows(tmp_path: Path) -> None:
    """Rows with one column called text became one text, as if they were parts of a message."""
    rows = [{"text": "rain"}, {"text": "wind"}]
    run = span(
        1, "execute_tool", tool__name="query", tool__call__id="c1", tool__call__result=json.dumps(rows)
    )
    session = one("otlp", write_lines(tmp_path / "a.jsonl", traced(run)))
    assert session.states[session.events[0].states["public"]] == {"observation": rows}


def test_a_run_that_strands_calls_an_error_has_failed(tmp_path: Path) -> None:
    """Its span is in order, and so it had succeeded."""
    spans = strands()
    spans[1]["attributes"] += attributes({"gen_ai.tool.status": "error"})
    action = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*spans))).events[1]
    assert (action.status, action.error) == ("failed", "rain")


def test_the_agent_development_kits_own_attributes_are_words_calls_and_results(tmp_path: Path) -> None:
    """They were lost, and nothing said so: of each trace its tools' names were left."""
    session = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*kit())))
    assert outline(session.events) == [("environment", "start", "Be brief."), *ASKED]
    action = session.events[2]
    assert action.action and action.action.arguments == {"city": "Paris"} and action.status == "succeeded"
    assert session.states[action.states["public"]] == {"observation": {"result": "rain"}}


def sdk() -> list[dict[str, Any]]:
    """Vercel's AI SDK: messages and calls are JSON; a span around the calls repeats them."""

    def own(number: int, **values: Any) -> dict[str, Any]:
        given = {f"ai.{key.replace('__', '.')}": text(value) for key, value in values.items()}
        return {**span(number, ""), "attributes": attributes(given)}

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    asks = {"role": "user", "content": [{"type": "text", "text": "Weather in Paris?"}]}
    call = {"toolCallId": "c1", "toolName": "weather", "input": {"city": "Paris"}}
    back = {"toolCallId": "c1", "toolName": "weather", "output": {"type": "text", "value": "rain"}}
    history = [
        asks,
        {"role": "assistant", "content": [{"type": "tool-call", **call}]},
        {"role": "tool", "content": [{"type": "tool-result", **back}]},
    ]
    asked = [{**call, "input": json.dumps(call["input"])}]
    return [
        own(1, prompt={"messages": [asks]}, response__text="It rains."),
        own(2, prompt__messages=[asks], response__toolCalls=asked),
        own(
            3,
            toolCall__name="weather",
            toolCall__id="c1",
            toolCall__args={"city": "Paris"},
            toolCall__result="rain",
        ),
        own(4, prompt__messages=history, response__text="It rains."),
    ]


def test_attributes_of_vercels_ai_sdk_are_words_calls_and_results(tmp_path: Path) -> None:
    session = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*sdk())))
    assert outline(session.events) == [
        ("user", "message", "Weather in Paris?"),
        ("assistant", "action", "weather"),
        ("assistant", "message", "It rains."),
    ]
    action = session.events[1]
    assert action.action and action.action.arguments == {"city": "Paris"}
    assert session.states[action.states["public"]] == {"observation": "rain"}


def test_events_that_pydantic_ai_keeps_in_an_attribute_are_read(tmp_path: Path) -> None:
    asks = {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather in Paris?"}
    function = {"name": "weather", "arguments": {"city": "Paris"}}
    calls = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    back = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": "rain"}
    says = {"role": "assistant", "content": "It rains."}
    told = [asks, {"event.name": "gen_ai.assistant.message", **calls}, back]
    spans = [span(number, "chat", agent__name="guide") for number in (1, 2)]
    for one_span, events in zip(
        spans,
        (
            [asks, {"event.name": "gen_ai.choice", "index": 0, "message": calls}],
            [*told, {"event.name": "gen_ai.choice", "index": 0, "message": says}],
        ),
        strict=True,
    ):
        one_span["attributes"] += attributes({"events": json.dumps(events)})
    session = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*spans)))
    assert outline(session.events) == ASKED
    assert session.states[session.events[1].states["public"]] == {"observation": "rain"}


def doubled(mark: str, history: bool) -> list[dict[str, Any]]:
    """The kit's spans, and in each of its calls one of the model's library, which gives calls ids."""
    asks = {"role": "user", "parts": [{"type": "text", "content": "Weather in Paris?"}]}
    part = {"type": "tool_call", "id": mark, "name": "weather", "arguments": {"city": "Paris"}}
    back = {"type": "tool_call_response", "id": mark, "response": {"result": "rain"}}
    call, says = (
        {"role": "assistant", "parts": [p]} for p in (part, {"type": "text", "content": "It rains."})
    )
    counts = attributes({"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 4})
    spans = kit()
    requests = ([asks], [asks, call, {"role": "tool", "parts": [back]}])
    for outer, request, answer in zip((spans[0], spans[3]), requests, (call, says), strict=True):
        outer["attributes"] += counts[:1]
        told = {"input__messages": request} if history else {}
        inner = span(int(outer["spanId"][1:]), "generate_content", output__messages=[answer], **told)
        inner |= {"spanId": f"{outer['spanId']}i", "parentSpanId": outer["spanId"]}
        spans.append({**inner, "attributes": [*inner["attributes"], *counts]})
    return spans


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("mark", ["c1", "weather_0"])
def test_a_call_that_the_kit_and_the_models_library_tell_is_one(
    tmp_path: Path, mark: str, history: bool
) -> None:
    """In traces with both, each answer and call came twice, and twice its tokens."""
    session = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*doubled(mark, history))))
    assert outline(session.events) == [("environment", "start", "Be brief."), *ASKED]
    assert session.participant("guide").tokens == {"prompt_tokens": 18, "completion_tokens": 8}


def chat(number: int, within: int | None, words: str, **rest: Any) -> dict[str, Any]:
    """A model's call that says something, in another one's span."""
    output = [{"role": "assistant", "parts": [{"type": "text", "content": words}]}] if words else []
    made = span(number, "chat", output__messages=output, **rest)
    return made if within is None else {**made, "parentSpanId": span(within, "chat")["spanId"]}


def test_a_span_around_several_calls_hides_nothing_that_they_say(tmp_path: Path) -> None:
    spans = [chat(1, None, "Done."), chat(2, 1, "I look."), chat(3, 1, "Done.")]
    session = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*spans)))
    assert [event.text for event in session.events][-2:] == ["I look.", "Done."]


def test_a_span_around_whose_messages_cannot_be_read_costs_no_call_in_it_its_answer(tmp_path: Path) -> None:
    outer = {**span(1, "x"), "attributes": attributes({"gen_ai.input.messages": "Hi?"})}
    path = write_lines(tmp_path / "a.jsonl", traced(outer, chat(2, 1, "I look.")))
    (session,), _ = read("otlp", path)
    assert [event.text for event in session.events][-1] == "I look."


def test_calls_within_calls_take_work_in_step_with_their_number(tmp_path: Path) -> None:
    def work(depth: int) -> int:
        spans = [chat(n, n - 1 if n > 1 else None, "") for n in range(1, depth + 1)]
        path = write_lines(tmp_path / f"{depth}.jsonl", traced(*spans, chat(depth + 1, depth, "Hi.")))
        return steps(lambda: read("otlp", path))

    assert work(800) < 12 * work(100)
