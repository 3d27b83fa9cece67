"""Spans with OpenInference's attributes, in the three shapes in which they are passed on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from coaudit.pipeline.systems.formats.traces import openinference
from tests.pipeline.systems.formats.logs import one, outline, read, write_lines

KIND = "openinference.span.kind"
ASKED = {
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Help.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.type": "text",
    "llm.input_messages.1.message.contents.0.message_content.text": "To Ulm, please.",
}
CALLED = {
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "book",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"city": "Ulm"}',
    "llm.model_name": "m-1",
    "llm.token_count.prompt": 7,
    "llm.token_count.completion": 3,
}
ANSWERED = {
    "llm.input_messages.2.message.role": "tool-response",
    "llm.input_messages.2.message.content": "Observation:\nBooked.",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "Done. ",
}
SPANS: list[tuple[str, str, str | None, dict[str, Any]]] = [
    (
        "a",
        "CodeAgent.run",
        None,
        {KIND: "AGENT", "input.value": '{"task": "To Ulm, please."}', "output.value": "Done."},
    ),
    ("b", "LLM.call", "a", {KIND: "LLM", **ASKED, **CALLED}),
    (
        "c",
        "book",
        "a",
        {KIND: "TOOL", "tool.name": "book", "input.value": '{"city": "Ulm"}', "output.value": "Booked."},
    ),
    ("d", "LLM.call", "a", {KIND: "LLM", **ASKED, **ANSWERED}),
]
EXPECTED = [
    ("environment", "start", "Help."),
    ("user", "message", "To Ulm, please."),
    ("CodeAgent", "action", "book"),
    ("CodeAgent", "message", "Done."),
]


def nested(spans: list[tuple[str, str, str | None, dict[str, Any]]] = SPANS, **more: Any) -> dict[str, Any]:
    """One trace whose spans hold each other."""
    made = {
        name: {
            "trace_id": "t1",
            "span_id": name,
            "parent_span_id": parent,
            "span_name": title,
            "timestamp": f"2026-01-02T03:04:0{n}.000Z",
            "duration": "PT1.5S",
            "status_code": "Unset",
            "status_message": "",
            "span_attributes": attributes,
            "events": [],
            "child_spans": [],
            **more.get(name, {}),
        }
        for n, (name, title, parent, attributes) in enumerate(spans)
    }
    for name, _, parent, _ in spans:
        if parent:
            made[parent]["child_spans"].append(made[name])
    return {"trace_id": "t1", "spans": [made[name] for name, _, parent, _ in spans if not parent]}


def flat() -> list[dict[str, Any]]:
    """As Phoenix exports them, one a line."""
    return [
        {
            "name": title,
            "context": {"trace_id": "t1", "span_id": name},
            "span_kind": attributes[KIND],
            "parent_id": parent,
            "start_time": f"2026-01-02T03:04:0{n}Z",
            "end_time": f"2026-01-02T03:04:0{n}Z",
            "status_code": "OK",
            "attributes": attributes,
        }
        for n, (name, title, parent, attributes) in enumerate(SPANS)
    ]


def otlp() -> dict[str, Any]:
    spans = [
        {
            "traceId": "t1",
            "spanId": name,
            "parentSpanId": parent or "",
            "name": title,
            "startTimeUnixNano": str(n * 10**9),
            "endTimeUnixNano": str(n * 10**9),
            "attributes": [
                {
                    "key": key,
                    "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
                }
                for key, value in attributes.items()
            ],
        }
        for n, (name, title, parent, attributes) in enumerate(SPANS)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def exported() -> list[dict[str, Any]]:
    """As an exporter of OpenTelemetry prints them: their kind is an attribute alone."""
    spans = [
        {key: value for key, value in one.items() if key not in ("span_kind", "status_code")}
        for one in flat()
    ]
    return [{**one, "status": {"status_code": "OK"}} for one in spans]


@pytest.mark.parametrize("named", ["openinference.span.kind", "openinference"])
def test_a_chat_about_spans_is_none_of_them(tmp_path: Path, named: str) -> None:
    quoted = json.dumps({"attributes": {named: "LLM"}, "context": {"trace_id": 1}})
    said = [{"role": "user", "content": f"Why is {quoted} no call?"}, {"role": "assistant", "content": "No."}]
    log = write_lines(tmp_path / "chat.jsonl", {"messages": said, "attributes": {"by": "openinference-ui"}})
    assert not openinference.recognises(log)


@pytest.mark.parametrize("shape", ["nested", "flat", "exported", "otlp"])
def test_a_trace_is_a_conversation_in_each_of_its_shapes(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "trace.jsonl"
    values = {"nested": [nested()], "flat": flat(), "exported": exported(), "otlp": [otlp()]}[shape]
    log = write_lines(path, *values)
    assert openinference.recognises(log) == (shape != "otlp")
    run = one("otlp" if shape == "otlp" else "openinference", log)
    assert outline(run.events) == EXPECTED
    booked = run.events[2]
    assert booked.action and booked.action.arguments == {"city": "Ulm"}
    assert run.states[booked.states["public"]] == {"observation": "Booked."}
    agent = run.participant("CodeAgent")
    assert (agent.model, agent.tokens) == ("m-1", {"prompt_tokens": 7, "completion_tokens": 3})


def test_a_tool_that_says_nothing_of_success_is_unknown_and_a_span_in_error_failed(tmp_path: Path) -> None:
    quiet = one("openinference", write_lines(tmp_path / "a.json", nested()))
    failed = {"status_code": "Error", "status_message": "no seats"}
    loud = one("openinference", write_lines(tmp_path / "b.json", nested(c=failed)))
    assert [(e.status, e.error) for e in (quiet.events[2], loud.events[2])] == [
        (None, None),
        ("failed", "no seats"),
    ]


def test_an_agent_without_model_calls_says_what_its_span_says(tmp_path: Path) -> None:
    run = one("openinference", write_lines(tmp_path / "a.json", nested(SPANS[:1])))
    assert outline(run.events) == [("user", "message", "To Ulm, please."), ("CodeAgent", "message", "Done.")]


def test_the_span_of_a_workflow_that_is_called_an_agent_says_no_persons_words(tmp_path: Path) -> None:
    inner = [(name, title, parent or "w", values) for name, title, parent, values in SPANS]
    value = nested([("w", "Agent workflow", None, {KIND: "AGENT"}), *inner])
    run = one("openinference", write_lines(tmp_path / "a.json", value))
    assert [(event.actor, event.kind) for event in run.events] == [(who, kind) for who, kind, _ in EXPECTED]
    assert run.agent == "CodeAgent"


@pytest.mark.parametrize(
    ("attributes", "advice"),
    [
        ({KIND: "LLM", "llm.model_name": "m"}, "OPENINFERENCE_HIDE_INPUTS"),
        ({"http.method": "GET", "db.system": "x"}, "no spans of language models"),
    ],
)
def test_the_advice_fits_the_kind_of_spans(tmp_path: Path, attributes: dict[str, Any], advice: str) -> None:
    value = nested([("a", "x", None, attributes)])
    trajectories, wrong = read("openinference", write_lines(tmp_path / "a.json", value))
    assert trajectories == [] and advice in wrong[-1].reason


def test_a_span_that_is_none_costs_only_itself(tmp_path: Path) -> None:
    value = nested(c={"timestamp": "never"})
    trajectories, wrong = read("openinference", write_lines(tmp_path / "a.json", value))
    assert [item.reason.partition(":")[0] for item in wrong] == ["span c"]
    assert outline(trajectories[0].events) == EXPECTED


def test_a_span_that_names_no_trace_is_of_the_one_it_stands_in_and_else_of_none(tmp_path: Path) -> None:
    """Those of all traces were one session without a name."""
    spans = json.loads(json.dumps(nested()["spans"]).replace('"trace_id": "t1", ', ""))
    found, wrong = read(
        "openinference", write_lines(tmp_path / "a.jsonl", {"trace_id": "t7", "spans": spans})
    )
    assert ([one.native_id for one in found], wrong) == (["t7"], [])
    *rows, last = flat()
    lost = {**last, "context": {"span_id": "z"}}
    found, wrong = read("openinference", write_lines(tmp_path / "b.jsonl", *rows, lost))
    assert [one.native_id for one in found] == ["t1"]
    assert [item.reason for item in wrong] == ["span ?: not as OpenInference has it: trace_id: missing"]


def test_a_span_that_is_none_does_not_cost_those_in_it(tmp_path: Path) -> None:
    value = nested(a={"timestamp": "never"})
    trajectories, wrong = read("openinference", write_lines(tmp_path / "a.json", value))
    assert [item.reason.partition(":")[0] for item in wrong] == ["span a"]
    assert [(kind, what) for _, kind, what in outline(trajectories[0].events)] == [e[1:] for e in EXPECTED]


@pytest.mark.parametrize("empty", [None, float("nan")])
def test_empty_cells_of_a_table_of_spans_say_nothing(tmp_path: Path, empty: float | None) -> None:
    columns = {f"attributes.{key}" for _, _, _, attributes in SPANS for key in attributes}
    columns |= {"parent_id", "attributes.session.id", "status_message", "events"}
    rows = []
    for span in flat():
        own = {f"attributes.{key}": value for key, value in span["attributes"].items()}
        ids = {f"context.{key}": value for key, value in span["context"].items()}
        said = {key: value for key, value in span.items() if key not in ("attributes", "context")}
        rows.append(dict.fromkeys(columns, empty) | own | ids | {k: v for k, v in said.items() if v})
    found = one("openinference", write_lines(tmp_path / "a.jsonl", *rows))
    assert (found.native_id, outline(found.events)) == ("t1", EXPECTED)


def test_spans_of_a_parquet_file_are_those_of_json_lines(tmp_path: Path) -> None:
    """As a frame of Phoenix is saved: messages are lists of objects, and all objects of a column have the
    same keys, null where a message has no such attribute."""
    call = {"message.tool_calls": [{"tool_call.id": "c", "tool_call.function.name": "find"}]}
    asked = {"message.role": "user", "message.content": "To Ulm, please."}
    called = {"message.role": "assistant", **call}
    back = {"message.role": "tool", "message.tool_call_id": "c", "message.content": "A train."}
    answer = {"message.role": "assistant", "message.content": "There is a train."}
    calls = [([asked], [called]), ([asked, called, back], [answer])]
    spans = [
        {
            "context.trace_id": "t",
            "context.span_id": f"s{n}",
            "span_kind": "LLM",
            "start_time": f"2026-01-02T03:04:0{n}+00:00",
            "attributes.llm.input_messages": told,
            "attributes.llm.output_messages": said,
        }
        for n, (told, said) in enumerate(calls)
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(spans), tmp_path / "spans.parquet")
    run = one("openinference", tmp_path / "spans.parquet")
    assert outline(run.events) == [
        ("user", "message", "To Ulm, please."),
        ("assistant", "action", "find"),
        ("assistant", "message", "There is a train."),
    ]
    assert list(run.states.values()) == [{"observation": "A train."}]
    assert run == one("openinference", write_lines(tmp_path / "spans.jsonl", *spans)).model_copy(
        update={"source": run.source}
    )


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 9])
def test_a_damaged_parquet_file_is_no_table_of_spans(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "spans.parquet"
    path.write_bytes(content)
    assert not openinference.recognises(path)


def test_hostile_spans_are_no_reason_to_fail(tmp_path: Path) -> None:
    odd = [
        {"span_id": 1, "span_attributes": [], "child_spans": 5},
        {"spans": [None, 3]},
        {"span_attributes": {KIND: 7}},
    ]
    path = write_lines(tmp_path / "a.jsonl", *(json.dumps(one) for one in odd))
    trajectories, wrong = read("openinference", path)
    assert trajectories == [] and wrong


@pytest.mark.parametrize("given", ['{{"city":"{}"}}', "{{'city': '{}'}}", "{}"])
def test_runs_of_one_tool_at_a_time_answer_the_calls_with_their_arguments(tmp_path: Path, given: str) -> None:
    call = "llm.output_messages.0.message.tool_calls.{}.tool_call.{}".format
    asked = dict(ASKED)
    for n, city in enumerate(("Ulm", "Bonn")):
        asked |= {call(n, "id"): f"c{n}", call(n, "function.name"): "book"}
        asked[call(n, "function.arguments")] = json.dumps({"city": city})
    ran = [
        {KIND: "TOOL", "tool.name": "book", "input.value": given.format(city), "output.value": city}
        for city in ("Bonn", "Ulm")
    ]
    spans: list[tuple[str, str, str | None, dict[str, Any]]] = [
        ("b", "LLM.call", None, {KIND: "LLM", "llm.output_messages.0.message.role": "assistant", **asked}),
        ("c", "book", None, ran[0]),
        ("d", "book", None, ran[1]),
    ]
    failed = {"c": {"status_code": "Error", "status_message": "full"}}
    run = one("openinference", write_lines(tmp_path / "trace.jsonl", nested(spans, **failed)))
    done = {event.action.arguments["city"]: event for event in run.events if event.action}
    assert (done["Bonn"].status, done["Bonn"].error) == ("failed", "full")
    assert done["Ulm"].status is None
    said = {city: run.states[event.states["public"]] for city, event in done.items()}
    assert said == {city: {"observation": city} for city in done}


def test_runs_whose_arguments_were_not_recorded_answer_in_the_order_of_the_calls(tmp_path: Path) -> None:
    call = "llm.output_messages.0.message.tool_calls.{}.tool_call.{}".format
    asked = dict(ASKED)
    for n, arguments in enumerate(('{"city": "Ulm"}', "{}")):
        asked |= {call(n, "function.name"): "book", call(n, "function.arguments"): arguments}
    said = {KIND: "LLM", "llm.output_messages.0.message.role": "assistant", **asked}
    ran = [("c", "first"), ("d", "second")]
    tools = [
        (key, "book", None, {KIND: "TOOL", "tool.name": "book", "output.value": out}) for key, out in ran
    ]
    run = one(
        "openinference", write_lines(tmp_path / "trace.jsonl", nested([("b", "LLM", None, said), *tools]))
    )
    done = [run.states[event.states["public"]] for event in run.events if event.action]
    assert done == [{"observation": "first"}, {"observation": "second"}]


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_a_time_is_the_same_in_whatever_unit_it_is_counted(
    tmp_path: Path, unit: int, kind: type[int] | type[str]
) -> None:
    span = {
        "context": {"trace_id": "t", "span_id": "a"},
        "name": "LLM.call",
        "start_time": kind(1_700_000_000 * unit),
        "end_time": kind(1_700_000_001 * unit),
        "attributes": {KIND: "LLM", "input.value": "Go.", "output.value": "Gone."},
    }
    found = one("openinference", write_lines(tmp_path / "a.jsonl", span))
    assert [event.time for event in found.events] == [
        "2023-11-14T22:13:20+00:00",
        "2023-11-14T22:13:21+00:00",
    ]
