"""What the reader of OTLP/JSON traces makes of spans with the GenAI semantic conventions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.formats.fields.contents import plain_text
from coaudit.pipeline.systems.formats.traces import otlp
from tests.pipeline.systems.formats.logs import one, outline, read, write_lines

SECOND = 1_000_000_000
USER = {"role": "user", "parts": [{"type": "text", "content": "Weather in Paris?"}]}
ASKS: dict[str, Any] = {
    "role": "assistant",
    "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Paris"}}],
}
TOLD = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rain"}]}
SAYS = {"role": "assistant", "parts": [{"type": "text", "content": "It rains."}], "finish_reason": "stop"}


def attribute(value: object) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [attribute(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": attribute(v)} for k, v in value.items()]}}
    return {"stringValue": str(value)}


def attributes(given: Mapping[str, object]) -> list[dict[str, Any]]:
    return [{"key": key, "value": attribute(value)} for key, value in given.items()]


def span(number: int, operation: str, **rest: Any) -> dict[str, Any]:
    """A span that starts in second `number`; keys of `rest` are attributes below gen_ai, `__` for a dot."""
    given = {f"gen_ai.{key.replace('__', '.')}": value for key, value in rest.items() if key != "events"}
    return {
        "traceId": "t1",
        "spanId": f"s{number}",
        "parentSpanId": "",
        "name": operation,
        "startTimeUnixNano": str(number * SECOND),
        "endTimeUnixNano": str(number * SECOND + SECOND // 2),
        "attributes": attributes({"gen_ai.operation.name": operation, **given}),
        "events": rest.get("events", []),
    }


def traced(*spans: dict[str, Any]) -> dict[str, Any]:
    resource = {"attributes": attributes({"service.name": "shop"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def chats(**more: Any) -> list[dict[str, Any]]:
    """Two model calls, the second of which repeats what was said before, and the tool between them."""
    first = span(1, "chat", input__messages=json.dumps([USER]), output__messages=json.dumps([ASKS]), **more)
    tool = span(
        2, "execute_tool", tool__name="weather", tool__call__id="c1", tool__call__result="rain", **more
    )
    second = span(
        3, "chat", input__messages=[USER, ASKS, TOLD], output__messages=[SAYS], usage__input_tokens=9, **more
    )
    return [first, tool, second]


def test_no_message_comes_twice_though_every_call_repeats_the_history(tmp_path: Path) -> None:
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*reversed(chats()))))
    assert outline(found.events) == [
        ("user", "message", "Weather in Paris?"),
        ("assistant", "action", "weather"),
        ("assistant", "message", "It rains."),
    ]
    call = found.events[1]
    assert call.action and call.action.arguments == {"city": "Paris"}
    assert (call.status, found.states[call.states["public"]]) == ("succeeded", {"observation": "rain"})
    assert [e.time for e in found.events] == [
        "1970-01-01T00:00:01+00:00",
        "1970-01-01T00:00:01.500000+00:00",
        "1970-01-01T00:00:03.500000+00:00",
    ]
    assert found.native_id == "t1"
    assert found.tags == {"service": "shop"}
    assert found.participant("assistant").tokens == {"prompt_tokens": 9}


def test_people_and_agents_that_a_message_names_are_told_apart(tmp_path: Path) -> None:
    """The id is as it was when all of them were `user` and `assistant`. Other agents are users in
    the history of a model."""
    ada, plans = {**USER, "name": "Ada"}, {**SAYS, "name": "Planner"}
    bob = {"role": "user", "name": "Bob", "parts": [{"type": "text", "content": "And in Rome?"}]}
    told = {**plans, "role": "user"}
    answer = {"role": "assistant", "name": "Writer", "parts": [{"type": "text", "content": "It is dry."}]}
    spans = [
        span(1, "chat", input__messages=[ada], output__messages=[plans], request__model="m-1"),
        span(3, "chat", input__messages=[ada, told, bob], output__messages=[answer], request__model="m-2"),
    ]
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*spans)))
    assert outline(found.events) == [
        ("Ada", "message", "Weather in Paris?"),
        ("Planner", "message", "It rains."),
        ("Bob", "message", "And in Rome?"),
        ("Writer", "message", "It is dry."),
    ]
    assert [(p.name, p.kind, p.model) for p in found.participants] == [
        ("Ada", "human", None),
        ("Planner", "agent", "m-1"),
        ("Bob", "human", None),
        ("Writer", "agent", "m-2"),
    ]
    unnamed = span(1, "chat", input__messages=[USER], output__messages=[SAYS])
    assert found.id == one("otlp", write_lines(tmp_path / "b.jsonl", traced(unnamed))).id


def test_a_person_may_be_called_like_the_agent_they_talk_with(tmp_path: Path) -> None:
    """Where the agent spoke first, their words became its own, and nobody was a human."""
    says, asks = {**SAYS, "name": "Ada"}, {**USER, "name": "Ada"}
    spans = [
        span(1, "chat", output__messages=[says]),
        span(3, "chat", input__messages=[says, asks], output__messages=[{**SAYS, "name": "Ada"}]),
        span(5, "chat", input__messages=[{**says, "role": "user"}, asks], output__messages=[says]),
    ]
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*spans)))
    assert {p.name: p.kind for p in found.participants} == {"Ada": "agent", "Ada (human)": "human"}
    assert [e.text for e in found.events if e.actor == "Ada (human)"] == ["Weather in Paris?"]


@pytest.mark.parametrize("agent", [{}, {"agent__name": "writer"}])
def test_an_id_is_as_it_was_before_names_were_read(tmp_path: Path, agent: dict[str, str]) -> None:
    told = [span(1, "chat", agent__name="planner"), span(3, "chat", input__messages=[USER], **agent)]
    named = [told[0], span(3, "chat", input__messages=[{**USER, "name": "planner"}], **agent)]
    ids = {read("otlp", write_lines(tmp_path / "a.jsonl", traced(*some)))[0][0].id for some in (told, named)}
    assert len(ids) == 1


def test_a_blank_name_is_nobodys(tmp_path: Path) -> None:
    spans = [
        span(1, "chat", input__messages=[{**USER, "name": " "}], output__messages=[{**SAYS, "name": ""}])
    ]
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*spans)))
    assert [p.name for p in found.participants] == ["user", "assistant"]


def test_a_refusal_that_the_history_repeats_without_the_id_of_its_call_stands_once(tmp_path: Path) -> None:
    refusal = "The user denied this operation."
    asks = {"role": "assistant", "parts": [{"type": "tool_call", "name": "weather", "arguments": {}}]}
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "response": refusal}]}
    spans = [
        span(1, "chat", input__messages=[USER], output__messages=[asks]),
        span(2, "execute_tool", tool__name="weather", tool__call__result=refusal),
        span(3, "chat", input__messages=[USER, asks, told], output__messages=[SAYS]),
    ]
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*spans)))
    assert [event.kind for event in found.events] == ["message", "action", "confirm_reject", "message"]


def test_a_trace_takes_time_in_step_with_its_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where calls repeat no history, whether a result was told before is asked of each."""

    def looked_at(turns: int) -> int:
        spans = []
        for turn in range(turns):
            last = {"role": "tool", "parts": [{"type": "tool_call_response", "response": f"rain {turn - 1}"}]}
            asks = {
                "role": "assistant",
                "parts": [{"type": "tool_call", "name": "f", "arguments": {"n": turn}}],
            }
            said = json.dumps([last if turn else USER])
            spans += [
                span(3 * turn + 1, "chat", input__messages=said, output__messages=json.dumps([asks])),
                span(3 * turn + 2, "execute_tool", tool__name="f", tool__call__result=f"rain {turn}"),
            ]
        run = one("otlp", write_lines(tmp_path / f"{turns}.json", traced(*spans)))
        assert [event.kind for event in run.events] == ["message", *["action"] * turns]
        return counted.pop("n")

    counted = Counter[str]()

    def counting(content: Any) -> str:
        counted["n"] += 1
        return plain_text(content)

    monkeypatch.setattr(otlp, "plain_text", counting)
    assert looked_at(200) < 2.1 * looked_at(100)


def test_a_message_that_was_said_twice_stands_twice(tmp_path: Path) -> None:
    again = [USER, SAYS, USER]
    spans = [
        span(1, "chat", input__messages=[USER], output__messages=[SAYS]),
        span(2, "chat", input__messages=again, output__messages=[SAYS]),
    ]
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*spans)))
    assert [e.actor for e in found.events] == ["user", "assistant", "user", "assistant"]


def test_sessions_are_told_by_conversation_and_spans_without_one_by_their_trace(tmp_path: Path) -> None:
    spans = chats(conversation__id="talk 7")
    del spans[1]["attributes"][-1]  # the tool span does not name the conversation
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(spans[0]), traced(*spans[1:])))
    assert found.native_id == "talk 7"
    assert len(found.events) == 3


def test_agents_are_named_by_the_span_around_and_its_own_messages_are_not_taken_again(tmp_path: Path) -> None:
    agent = span(0, "invoke_agent", agent__name="Clerk", input__messages=[USER], output__messages=[SAYS])
    inside = [{**one, "parentSpanId": "s0"} for one in chats(request__model="m-1")]
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(agent, *inside)))
    assert [e.actor for e in found.events] == ["user", "Clerk", "Clerk"]
    assert (found.agent, found.agent_model) == ("Clerk", "m-1")


def test_a_tool_span_that_failed_fails_its_call_even_where_no_model_call_was_recorded(tmp_path: Path) -> None:
    tool = span(2, "execute_tool", tool__name="pay", tool__call__arguments='{"eur": 3}')
    tool["status"] = {"code": 2, "message": "card declined"}
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(tool)))
    (event,) = found.events
    assert event.action and event.action.arguments == {"eur": 3}
    assert (event.status, event.error) == ("failed", "card declined")


def _with_id(call_id: str, text: str | None = None) -> dict[str, Any]:
    """The message that asks for the tool, with another id of the call, and maybe with words."""
    said = [{"type": "text", "content": text}] if text else []
    return {"role": "assistant", "parts": [*said, {**ASKS["parts"][0], "id": call_id}]}


@pytest.mark.parametrize("text", [None, "I look it up."])
def test_a_call_that_histories_tell_under_another_id_than_the_output_stands_once(
    tmp_path: Path, text: str | None
) -> None:
    # OpenLLMetry gives a call of the Responses API its item's id in the output, its call_id in histories.
    history = [USER, _with_id("c1", text), TOLD]
    spans = [
        span(1, "chat", input__messages=[USER], output__messages=[_with_id("fc_1", text)]),
        span(3, "chat", input__messages=history, output__messages=[SAYS]),
        span(5, "chat", input__messages=[*history, SAYS, USER], output__messages=[_with_id("fc_2")]),
    ]
    events = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*spans))).events
    said = ["message"] if text else []
    assert [event.kind for event in events] == [*("message", *said, "action", "message", "message", "action")]
    actions = [event for event in events if event.kind == "action"]
    assert [bool(event.states) for event in actions] == [True, False]


@pytest.mark.parametrize(
    "known", [{}, {"tool__call__id": "c1"}, {"tool__call__arguments": '{"city": "Paris"}'}]
)
def test_a_tools_span_and_a_history_tell_of_one_call_where_no_output_was_recorded(
    tmp_path: Path, known: dict[str, str]
) -> None:
    tool = span(2, "execute_tool", tool__name="weather", tool__call__result="rain", **known)
    spans = [
        span(1, "chat", input__messages=[USER]),
        tool,
        span(3, "chat", input__messages=[USER, ASKS, TOLD, SAYS]),
    ]
    events = one("otlp", write_lines(tmp_path / "a.jsonl", traced(*spans))).events
    assert [event.kind for event in events] == ["message", "action", "message"]
    assert events[1].action and events[1].action.arguments == {"city": "Paris"}
    assert events[1].status == "succeeded" and events[1].states


def test_events_a_message_as_conventions_had_them_up_to_1_36_are_read(tmp_path: Path) -> None:
    said = [("gen_ai.system.message", "Help."), ("gen_ai.user.message", "Hi"), ("gen_ai.choice", "Hello")]
    events = [{"name": name, "attributes": attributes({"content": text})} for name, text in said]
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(span(1, "chat", events=events))))
    assert outline(found.events) == [
        ("environment", "start", "Help."),
        ("user", "message", "Hi"),
        ("assistant", "message", "Hello"),
    ]


def test_words_of_an_event_follow_the_tool_that_the_models_provider_ran(tmp_path: Path) -> None:
    parts = [
        {"type": "server_tool_use", "id": "w1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "w1", "content": []},
        {"type": "text", "text": "I found it."},
    ]
    event = {"name": "gen_ai.choice", "attributes": attributes({"content": json.dumps(parts)})}
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(span(1, "chat", events=[event]))))
    assert outline(found.events) == [
        ("assistant", "action", "web_search"),
        ("assistant", "message", "I found it."),
    ]


def test_indexed_attributes_are_read(tmp_path: Path) -> None:
    given = {"prompt__0__role": "user", "prompt__0__content": "Hi", "completion__0__content": "Hello"}
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(span(1, "chat", **given))))
    assert [e.text for e in found.events] == ["Hi", "Hello"]


def test_what_is_not_as_otlp_has_it_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    broken = span(9, "chat")
    del broken["startTimeUnixNano"]
    wrong_parts = span(8, "chat", input__messages=json.dumps({"role": "user"}))
    path = write_lines(tmp_path / "a.jsonl", traced(*chats(), broken, wrong_parts), '{"resourceSpans": ')
    found, wrong = read("otlp", path)
    assert len(found[0].events) == 3
    assert [item.line for item in wrong] == [1, 2, None]
    assert "span s9" in wrong[0].reason
    assert wrong[2].reason == "span s8: gen_ai.input.messages: expected a list, got an object"


def test_a_span_without_a_trace_or_a_time_is_named_and_in_no_session(tmp_path: Path) -> None:
    """They were all in a session called None."""
    lost, late = span(8, "chat", output__messages=[SAYS]), span(9, "chat", output__messages=[SAYS])
    del lost["traceId"]
    late["startTimeUnixNano"] = "soon"
    found, wrong = read("otlp", write_lines(tmp_path / "a.jsonl", traced(*chats(), lost, late)))
    assert len(found) == 1 and found[0].native_id != "None"
    assert [item.reason for item in wrong] == [
        "span s8: not as OTLP has it: traceId: missing",
        "span s9: not as OTLP has it: startTimeUnixNano: expected nanoseconds since 1970, got 'soon'",
    ]


def test_what_is_not_as_otlp_has_it_is_named_and_costs_nothing_beside_it(tmp_path: Path) -> None:
    """A scope that was none took the other scopes of its resource with it."""
    whole = one("otlp", write_lines(tmp_path / "whole.jsonl", traced(*chats())))
    document = traced(*chats())
    (resource,) = document["resourceSpans"]
    spans = resource["scopeSpans"][0]["spans"]
    spans += [5, {**span(8, "chat"), "status": 3}, {**span(9, "chat"), "attributes": [{"key": 1}, 2]}]
    resource["scopeSpans"][:0] = [42, {"spans": 7}]
    resource["resource"] = {"attributes": "none"}
    document["resourceSpans"] += [6]
    found, wrong = read("otlp", write_lines(tmp_path / "a.jsonl", document))
    assert [outline(session.events) for session in found] == [outline(whole.events)]
    assert [item.reason for item in wrong] == [
        "resourceSpans[0]: not as OTLP has it: attributes: expected a list, got a text",
        "resourceSpans[0]: not as OTLP has it: what has spans: expected an object, got a whole number",
        "resourceSpans[0]: not as OTLP has it: spans: expected a list, got a whole number",
        "span ?: not as OTLP has it: what has attributes: expected an object, got a whole number",
        "span s8: not as OTLP has it: status: expected an object, got a whole number",
        "span s9: not as OTLP has it: attributes: expected an object, got a whole number",
        "resourceSpans[1]: not as OTLP has it: what has scopeSpans: expected an object, got a whole number",
    ]


def test_a_trace_without_messages_says_what_would_record_them(tmp_path: Path) -> None:
    found, wrong = read("otlp", write_lines(tmp_path / "a.jsonl", traced(span(1, "chat"))))
    assert not found
    assert "CAPTURE_MESSAGE_CONTENT" in wrong[0].reason


def test_half_a_character_in_the_json_of_an_attribute_costs_no_message(tmp_path: Path) -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "Cut \ud83d"}]}]
    call = span(1, "chat", input__messages=json.dumps(asked), output__messages=json.dumps([SAYS]))
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(call)))
    assert outline(found.events) == [("user", "message", "Cut \ufffd"), ("assistant", "message", "It rains.")]


def test_spans_in_a_circle_and_spans_in_each_other_as_many_as_there_are_are_read(tmp_path: Path) -> None:
    many = [span(n, "invoke_agent", agent__name=f"a{n}") | {"parentSpanId": f"s{n - 1}"} for n in range(4000)]
    many[0]["parentSpanId"] = "s3999"
    asks = {"input__messages": json.dumps([USER]), "output__messages": json.dumps([SAYS])}
    many.append(span(4000, "chat", **asks) | {"parentSpanId": "s3999"})
    trajectory = one("otlp", write_lines(tmp_path / "log.jsonl", traced(*many)))
    assert outline(trajectory.events) == [
        ("a3998", "message", "Weather in Paris?"),
        ("a3999", "message", "It rains."),
    ]


def test_an_agents_own_words_count_where_no_model_call_in_it_has_any(tmp_path: Path) -> None:
    said = {"input__messages": json.dumps([USER]), "output__messages": json.dumps([SAYS])}
    agent, silent = span(1, "invoke_agent", agent__name="guide", **said), span(2, "chat")
    silent["parentSpanId"] = "s1"
    trajectory = one("otlp", write_lines(tmp_path / "silent.jsonl", traced(agent, silent)))
    assert [event.text for event in trajectory.events] == ["Weather in Paris?", "It rains."]
    unreadable = span(3, "chat", input__messages=json.dumps("no list")) | {"parentSpanId": "s1"}
    (trajectory,), wrong = read("otlp", write_lines(tmp_path / "wrong.jsonl", traced(agent, unreadable)))
    assert len(trajectory.events) == 2
    assert [item.reason.partition(":")[0] for item in wrong] == ["span s3"]


def test_a_tool_that_the_models_provider_runs_is_called_before_what_is_said_of_it(tmp_path: Path) -> None:
    asked = {"type": "web_search", "arguments": {"q": "Paris"}}
    came = {"type": "web_search", "response": {"error": "no network"}}
    searched = {
        "role": "assistant",
        "parts": [
            {"type": "server_tool_call", "id": "w1", "name": "web_search", "server_tool_call": asked},
            {"type": "server_tool_call_response", "id": "w1", "server_tool_call_response": came},
            {"type": "text", "content": "I found nothing."},
        ],
    }
    again = span(3, "chat", input__messages=[USER, searched, USER], output__messages=[SAYS])
    first = span(1, "chat", input__messages=[USER], output__messages=[searched])
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(first, again)))
    assert outline(found.events) == [
        ("user", "message", "Weather in Paris?"),
        ("assistant", "action", "web_search"),
        ("assistant", "message", "I found nothing."),
        ("user", "message", "Weather in Paris?"),
        ("assistant", "message", "It rains."),
    ]
    call = found.events[1]
    assert call.action and call.action.arguments == {"q": "Paris"}
    assert (call.status, call.error) == ("failed", "no network")


def test_indexed_contents_whose_parts_are_json_in_a_text_are_no_words(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}}
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": "rain", "is_error": False}
    given = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": json.dumps([{"type": "text", "text": "Weather in Paris?"}]),
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.content": json.dumps([call]),
        "gen_ai.prompt.2.role": "user",
        "gen_ai.prompt.2.content": json.dumps([answer]),
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "It rains.",
    }
    one_span = {**span(1, "chat"), "attributes": attributes({"gen_ai.operation.name": "chat", **given})}
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(one_span)))
    assert outline(found.events) == [
        ("user", "message", "Weather in Paris?"),
        ("assistant", "action", "weather"),
        ("assistant", "message", "It rains."),
    ]
    assert found.events[1].status == "succeeded"


def test_data_in_an_indexed_content_that_names_types_stays_as_it_was_written(tmp_path: Path) -> None:
    bugs, files = [{"type": "bug", "title": "It crashes."}], [{"type": "file", "name": "a.txt"}]
    given = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": json.dumps(bugs),
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.id": "c1",
        "gen_ai.prompt.1.tool_calls.0.name": "ls",
        "gen_ai.prompt.1.tool_calls.0.arguments": "{}",
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.prompt.2.content": json.dumps(files),
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "One file.",
    }
    one_span = {**span(1, "chat"), "attributes": attributes({"gen_ai.operation.name": "chat", **given})}
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(one_span)))
    assert found.events[0].text == json.dumps(bugs)
    assert found.states[found.events[1].states["public"]] == {"observation": json.dumps(files)}


def test_what_a_tool_of_the_models_provider_is_asked_may_stand_beside_its_name(tmp_path: Path) -> None:
    parts = [
        {"type": "server_tool_call", "id": "w1", "name": "run", "arguments": {"code": "1+1"}},
        {"type": "server_tool_call_response", "id": "w1", "response": "2"},
    ]
    told = span(1, "chat", input__messages=[USER], output__messages=[{"role": "assistant", "parts": parts}])
    found = one("otlp", write_lines(tmp_path / "a.jsonl", traced(told)))
    event = found.events[1]
    assert event.action and event.action.arguments == {"code": "1+1"}
    assert found.states[event.states["public"]] == {"observation": "2"}


@pytest.mark.parametrize("kind", ["reasoning", "thinking"])
def test_reasoning_is_no_text_alone_as_in_a_list(kind: str) -> None:
    part: dict[str, Any] = {"type": kind, kind: "They might be wrong.", "text": "They might be wrong."}
    assert (plain_text(part), plain_text([part, "Go."])) == ("", "Go.")


def logged(name: str, span: str, body: object = None, **more: object) -> dict[str, Any]:
    """A log record with an event of a span."""
    of = {"traceId": "t1", "spanId": span, "timeUnixNano": str(10**18 + int(span, 36) * 10**9)}
    record: dict[str, Any] = {**of, "eventName": name, "attributes": attributes(more)}
    return record if body is None else {**record, "body": attribute(body)}


def logs(*records: object) -> dict[str, Any]:
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [*records]}]}]}


DETAILS = "gen_ai.client.inference.operation.details"
REQUEST = [{"role": "user", "parts": [{"type": "text", "content": "To Ulm, please."}]}]
REPLY = [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]


def test_events_in_logs_are_calls_of_the_spans_that_they_name(tmp_path: Path) -> None:
    details = {
        "gen_ai.input.messages": REQUEST,
        "gen_ai.output.messages": REPLY,
        "gen_ai.request.model": "m-1",
    }
    newest = [logged(DETAILS, "a", None, **details), logged("http.request", "b"), {"body": {}}]
    older = [
        logged("gen_ai.user.message", "a", {"content": "To Ulm, please."}),
        logged("gen_ai.choice", "a", {"index": 0, "message": {"role": "assistant", "content": "Done."}}),
    ]
    for records in (newest, older):
        for objects in ([logs(*records)], [logs(record) for record in records]):
            run = one("otlp", write_lines(tmp_path / "logs.jsonl", *objects))
            assert outline(run.events) == [
                ("user", "message", "To Ulm, please."),
                ("assistant", "message", "Done."),
            ]
            assert run.agent_model == ("m-1" if records is newest else None)


def test_an_event_in_logs_says_what_its_span_in_traces_does_not(tmp_path: Path) -> None:
    call = span(1, "chat", request__model="m-1")
    event = logged(DETAILS, call["spanId"], None, **{"gen_ai.input.messages": REQUEST})
    event |= {"traceId": call["traceId"]}
    run = one("otlp", write_lines(tmp_path / "all.jsonl", logs(event), traced(call)))
    assert (run.agent_model, outline(run.events)) == ("m-1", [("user", "message", "To Ulm, please.")])


def test_an_event_in_logs_names_the_model_and_tokens_that_its_span_does_not(tmp_path: Path) -> None:
    call = span(1, "chat")
    about = {"gen_ai.request.model": "m-1", "gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 7}
    event = logged(DETAILS, call["spanId"], None, **{"gen_ai.output.messages": REPLY}, **about)
    event |= {"traceId": call["traceId"]}
    run = one("otlp", write_lines(tmp_path / "all.jsonl", logs(event), traced(call)))
    assert run.agent_model == "m-1"
    assert {7} <= {count for participant in run.participants for count in participant.tokens.values()}


def test_what_one_export_has_twice_was_said_twice(tmp_path: Path) -> None:
    words = [logged("gen_ai.user.message", "a", {"content": text}) for text in ("Yes.", "Now.", "Yes.")]
    run = one("otlp", write_lines(tmp_path / "logs.jsonl", logs(*words), logs(*words)))
    assert [event.text for event in run.events] == ["Yes.", "Now.", "Yes."]


def test_an_event_in_logs_that_is_not_as_otlp_has_it_costs_itself_alone(tmp_path: Path) -> None:
    whole = logged(DETAILS, "a", None, **{"gen_ai.input.messages": REQUEST})
    lacking = {key: value for key, value in whole.items() if key != "spanId"}
    value = logs(lacking, whole, 5)
    value["resourceLogs"] += [7, {"scopeLogs": "x"}, {"resource": 5, "scopeLogs": [{"logRecords": [whole]}]}]
    (run,), wrong = read("otlp", write_lines(tmp_path / "logs.jsonl", value))
    assert len(run.events) == 1
    assert [told.reason.partition(": ")[0] for told in wrong] == [
        "resourceLogs[0], record 0",
        "resourceLogs[0], record 2",
        "resourceLogs[1]",
        "resourceLogs[2]",
        "resourceLogs[3]",
    ]


def test_an_object_with_logs_has_its_spans_too(tmp_path: Path) -> None:
    for records in (logs(), logs() | {"resourceLogs": []}):
        assert one("otlp", write_lines(tmp_path / "all.jsonl", traced(*chats()) | records)).events


@pytest.mark.parametrize("form", ["attributes", "events"])
def test_events_in_logs_change_nothing_that_the_trace_says(tmp_path: Path, form: str) -> None:
    call = span(
        1,
        "chat",
        agent__name="Planner",
        input__messages=json.dumps(REQUEST),
        output__messages=json.dumps(REPLY),
    )
    old = ("gen_ai.user.message", {"content": "To Ulm, please."}), ("gen_ai.choice", {"content": "Done."})
    if form == "events":
        content: list[tuple[str, dict[str, object]]] = [
            (name, {"gen_ai.event.content": json.dumps(body)}) for name, body in old
        ]
        events = [{"name": name, "attributes": attributes(more)} for name, more in content]
        call = span(1, "chat", agent__name="Planner", events=events)
    details = {"gen_ai.input.messages": REQUEST, "gen_ai.output.messages": REPLY}
    judged = {"gen_ai.agent.name": "Judge", "gen_ai.operation.name": "evaluate", "error.type": "x"}
    records = [
        logged("gen_ai.evaluation.result", "s1", None, **judged),
        logged(DETAILS, "s1", None, **details, **{"gen_ai.conversation.id": "c9"}),
        *(logged(name, "s1", body) for name, body in old),
    ]
    alone = one("otlp", write_lines(tmp_path / "all.jsonl", traced(call)))
    assert outline(alone.events) == [("user", "message", "To Ulm, please."), ("Planner", "message", "Done.")]
    assert one("otlp", write_lines(tmp_path / "all.jsonl", traced(call), logs(*records))) == alone


def test_an_event_that_was_exported_twice_counts_once_and_the_first_ones_attributes_stay(
    tmp_path: Path,
) -> None:
    request = logged("gen_ai.user.message", "a", {"content": "Yes."}, **{"gen_ai.request.model": "m-1"})
    again = request | {"timeUnixNano": str(10**18), "attributes": attributes({"gen_ai.request.model": "m-2"})}
    run = one("otlp", write_lines(tmp_path / "logs.jsonl", logs(request), logs(request, again)))
    assert outline(run.events) == [("user", "message", "Yes.")] * 2 and run.agent_model == "m-1"


def test_model_calls_without_messages_are_told_of_beside_others(tmp_path: Path) -> None:
    """Half of a trace was lost without a word where only some of its calls record what was said."""
    silent, failed = span(4, "chat"), {**span(5, "chat"), "status": {"code": 2, "message": "quota"}}
    (session,), wrong = read("otlp", write_lines(tmp_path / "a.jsonl", traced(*chats(), silent, failed)))
    assert [event.text for event in session.events if event.kind == "message"] == [
        "Weather in Paris?",
        "It rains.",
    ]
    assert [item.reason.partition(":")[0] for item in wrong] == [
        "1 model call without messages, such as span s4"
    ]
