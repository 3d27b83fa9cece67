"""What the reader of chat-message lists makes of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from coaudit.pipeline.systems.formats.messages import chat, responses
from tests.pipeline.systems.formats.logs import call_and_answer, one, outline, read, write_lines

CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "Ulm"}'}}
MESSAGES: list[dict[str, object]] = [
    {"role": "system", "content": "Help."},
    {"role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "Find Ulm."}, {"type": "image_url", "image_url": {}}],
    },
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "A city."},
    {"role": "assistant", "content": "A city. Shall I book?"},
]


def test_what_was_said_in_a_recording_alone_is_said(tmp_path: Path) -> None:
    spoken = {"role": "assistant", "tool_calls": [], "audio": {"id": "a1", "transcript": "At two."}}
    talk = [{"role": "user", "content": "When?"}, spoken]
    run = one("chat", write_lines(tmp_path / "chat.jsonl", {"id": "s", "messages": talk}))
    assert [(event.actor, event.text) for event in run.events] == [
        ("user", "When?"),
        ("assistant", "At two."),
    ]


def test_roles_become_participants_and_tool_calls_actions_with_what_the_tool_said(tmp_path: Path) -> None:
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "model": "m", "messages": MESSAGES}))
    assert outline(found.events) == [
        ("environment", "start", "Help.\n\nBe brief."),
        ("user", "message", "Find Ulm.\n[image_url]"),
        ("assistant", "message", "I look."),
        ("assistant", "action", "search"),
        ("assistant", "message", "A city. Shall I book?"),
    ]
    assert {p.name: (p.kind, p.model) for p in found.participants} == {
        "environment": ("environment", None),
        "user": ("human", None),
        "assistant": ("agent", "m"),
    }
    call = found.events[3]
    assert call.action and call.action.arguments == {"q": "Ulm"}
    assert call.status is None
    assert found.states[call.states["public"]] == {"observation": "A city."}
    assert (found.native_id, found.agent_model) == ("s1", "m")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("The user doesn't want to proceed with this tool use. STOP what you are doing.", None),
        (
            "The user doesn't want to proceed with this tool use. The tool use was rejected. "
            "To tell you how to proceed, the user said:\nUse the map.",
            "Use the map.",
        ),
        ("[book for 'Ulm'] Result:\nThe user denied this operation.", None),
        ("The user denied this operation and said:\n<feedback>\nNot Ulm.\n</feedback>", "Not Ulm."),
        ({"error": "[Operation Cancelled] Reason: User did not allow tool call"}, None),
        ("User rejected the tool call for `book` with reason: too dear", "too dear"),
        ("Error: command rejected by user", None),
        ("Error: User denied access to tool execution", None),
        ("The user has declined to run this tool. DO NOT attempt to call this tool again.", None),
        ("The user chose to skip the tool call, they want to proceed without running it", None),
        (
            "The user rejected permission to use this specific tool call with the following feedback: Walk",
            "Walk",
        ),
    ],
)
def test_a_tool_that_a_person_did_not_let_run_is_no_failure_of_the_agents(
    tmp_path: Path, answer: object, said: str | None
) -> None:
    chat = [
        {"role": "user", "name": "Ada", "content": "To Ulm."},
        *call_and_answer("c1", answer, is_error=True),
    ]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": chat}))
    assert outline(found.events) == [
        ("Ada", "message", "To Ulm."),
        ("assistant", "action", "look"),
        ("Ada", "confirm_reject", None),
        *([("Ada", "message", said)] if said else []),
    ]
    assert (found.events[1].status, found.events[1].states) == (None, {})


@pytest.mark.parametrize(
    "answer",
    [
        "Error: permission to use the map has been denied by the policy",
        "User declined the request for a refund",
        "The user rejected our last offer, tool use goes on",
        "Booked. The user denied this operation before.",
        "Command rejected by user policy: sudo",
        "Execution of order 15 was declined by the user's bank",
        "User rejected the edit in pull request 7, and opened another",
        "The user did not approve of the colour",
        "The user denied permission 12 times, see the table",
        '[{"id": 1}] The user denied the action',
    ],
)
def test_a_result_that_tells_of_a_refusal_is_a_result(tmp_path: Path, answer: str) -> None:
    found = one(
        "chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": call_and_answer("c1", answer)})
    )
    assert [event.kind for event in found.events] == ["action"]
    assert found.events[0].states


def test_a_refusal_is_a_persons_too_where_the_call_stands_in_the_words_of_the_agent(tmp_path: Path) -> None:
    denied = "[book for 'Ulm'] Result:\nThe user denied this operation and provided the following feedback:\n"
    chat = [
        {"role": "user", "content": "To Ulm."},
        {"role": "assistant", "content": "<book>Ulm</book>"},
        {"role": "user", "content": f"{denied}<feedback>\nNo, Augsburg.\n</feedback>"},
    ]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": chat}))
    assert outline(found.events)[2:] == [
        ("user", "confirm_reject", None),
        ("user", "message", "No, Augsburg."),
    ]


@pytest.mark.parametrize("name", ["list.json", "object.json", "lists.json"])
def test_a_json_file_holds_a_list_of_messages_an_object_with_one_or_a_list_of_those(
    tmp_path: Path, name: str
) -> None:
    values = {
        "list.json": MESSAGES,
        "object.json": {"messages": MESSAGES},
        "lists.json": [{"messages": MESSAGES}],
    }
    path = tmp_path / name
    path.write_text(json.dumps(values[name], indent=2))
    assert len(one("chat", path).events) == 5


def test_the_user_is_simulated_where_the_command_line_says_so(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"messages": MESSAGES})
    assert one("chat", path, setting="simulated").participant("user").simulated
    assert not one("chat", path).participant("user").simulated


def test_a_tool_that_says_error_has_failed_and_an_answer_to_no_call_is_a_note(tmp_path: Path) -> None:
    messages = [
        *MESSAGES[2:4],
        {"role": "tool", "tool_call_id": "c1", "content": '{"error": "no network"}'},
        {"role": "tool", "tool_call_id": "lost", "content": "Who asked?"},
    ]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": messages}))
    assert (found.events[2].status, found.events[2].error) == ("failed", "no network")
    assert outline(found.events[3:]) == [("environment", "note", "Who asked?")]


def test_arguments_that_are_no_json_are_kept_as_they_were_logged(tmp_path: Path) -> None:
    call = {"id": "c1", "function": {"name": "search", "arguments": '{"q": '}}
    found = one(
        "chat", write_lines(tmp_path / "a.jsonl", {"messages": [{"role": "assistant", "tool_calls": [call]}]})
    )
    assert found.events[0].action and found.events[0].action.raw == '{"q": '


def test_a_message_that_cannot_be_read_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.jsonl", {"messages": [{"role": "wizard", "content": "?"}, *MESSAGES]}, "{cut"
    )
    found, wrong = read("chat", path)
    assert len(found[0].events) == 5
    assert [item.line for item in wrong] == [1, 2]
    assert wrong[0].reason.startswith("messages[0]: unknown role 'wizard', expected one of user, ")


@pytest.mark.parametrize(
    ("timestamp", "time"),
    [
        (1767254520000, "2026-01-01T08:02:00+00:00"),
        (1767254520, "2026-01-01T08:02:00+00:00"),
        ("1767254520000", "2026-01-01T08:02:00+00:00"),
        ("2026-01-01T08:02:00Z", "2026-01-01T08:02:00Z"),
        (float("inf"), None),
        (float("nan"), None),
        pytest.param(10**400, None, id="10**400"),
        (-(10**11), None),
        ({"day": "2026-01-01"}, None),
        ({"$date": "2026-01-01T08:02:00Z"}, "2026-01-01T08:02:00Z"),
        ({"$date": {"$numberLong": "1767254520000"}}, "2026-01-01T08:02:00+00:00"),
        ("2026-01-01 08:02:00 UTC", "2026-01-01 08:02:00+00:00"),
        ("2026-01-01 08:02:00.5 +0000 UTC", "2026-01-01 08:02:00.5+00:00"),
        ("1.1.2026 08:02:00 UTC", "1.1.2026 08:02:00 UTC"),
    ],
)
def test_a_message_keeps_its_place_whatever_its_timestamp_is(
    tmp_path: Path, timestamp: object, time: str | None
) -> None:
    said = {"role": "user", "content": "Find Ulm.", "timestamp": timestamp}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": [said, MESSAGES[3]]}))
    assert [event.time for event in found.events] == [time, None, None]


@pytest.mark.parametrize(
    ("content", "text"),
    [(404, "404"), (0, "0"), (2.5, "2.5"), (False, "false"), ({"answer": 5}, '{"answer":5}')],
)
@pytest.mark.parametrize(
    ("system", "options"), [("chat", {}), ("mapped", {"map": '[messages]\nat = "messages"'})]
)
def test_a_content_that_is_a_number_or_an_object_is_said_as_its_json(
    tmp_path: Path, system: str, options: dict[str, str], content: object, text: str
) -> None:
    messages = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": content}]
    found = one(system, write_lines(tmp_path / "a.jsonl", {"messages": messages}), **options)
    assert outline(found.events) == [("user", "message", "How many?"), ("assistant", "message", text)]


@pytest.mark.parametrize("alone", [True, False])
def test_an_object_without_a_type_is_its_json_in_a_note_and_in_a_list_of_parts(
    tmp_path: Path, alone: bool
) -> None:
    given = {"tool": "map", "found": ["Ulm", 3]}
    note = {"role": "tool", "content": given if alone else [given]}
    parts = {"role": "assistant", "content": [{"type": "text", "text": "Here:"}, given, {"type": "image"}]}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": [note, parts]}))
    shown = '{"found":["Ulm",3],"tool":"map"}'
    assert [event.text for event in found.events] == [shown, f"Here:\n{shown}\n[image]"]


def test_a_call_failed_where_an_object_in_the_list_that_came_back_says_so(tmp_path: Path) -> None:
    messages = call_and_answer("c1", [{"error": "no such town", "page": 1}])
    (event,) = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": messages})).events
    assert (event.status, event.error) == ("failed", "no such town")


@pytest.mark.parametrize("text", ["so \ud83d", "a whole \U0001f600", "C:\\ud83d"])
def test_a_long_file_is_recognised_whatever_halves_of_characters_it_begins_with(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "word " * chat.LOOK}]
    path.write_text(json.dumps({"messages": messages}))
    assert chat.recognises(path)


def test_reasoning_that_is_all_of_a_content_is_nothing_said(tmp_path: Path) -> None:
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Look it up."}]}
    messages = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": thoughts}]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": messages}))
    assert outline(found.events) == [("user", "message", "How many?")]


def test_a_call_without_a_name_costs_itself_and_no_other_of_its_message(tmp_path: Path) -> None:
    nameless = {"id": "c0", "type": "function", "function": {"arguments": "{}"}}
    asked = {"role": "assistant", "content": "I look.", "tool_calls": [nameless, CALL]}
    (found,), (wrong,) = read("chat", write_lines(tmp_path / "a.jsonl", {"messages": [asked, MESSAGES[4]]}))
    assert outline(found.events) == [
        ("assistant", "message", "I look."),
        ("assistant", "action", "search"),
    ]
    assert found.states[found.events[1].states["public"]] == {"observation": "A city."}
    assert (wrong.line, wrong.reason) == (1, "messages[0]: tool_calls[].function.name: missing")


def test_numbers_of_tokens_that_count_nothing_are_left_out(tmp_path: Path) -> None:
    usage = {"prompt_tokens": -1, "completion_tokens": 10**30}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": MESSAGES, "usage": usage}))
    assert [sum(p.tokens.values()) for p in found.participants] == [0, 0, 0]


@pytest.mark.parametrize(
    ("usage", "prompt"),
    [
        ({"input_tokens": 10, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 5}, 915),
        ({"prompt_tokens": 915, "cache_read_input_tokens": 900}, 915),
        ({"input_tokens": 915, "input_tokens_details": {"cached_tokens": 900}}, 915),
        ({"input_tokens": 915, "total_tokens": 915, "cache_read_input_tokens": 900}, 915),
    ],
    ids=["anthropic", "chat completions", "responses", "a sum without the cache"],
)
def test_tokens_from_a_cache_count_once(tmp_path: Path, usage: dict[str, object], prompt: int) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    path = write_lines(tmp_path / "a.jsonl", {"id": "s", "messages": messages, "usage": usage})
    assert one("chat", path).participants[1].tokens == {"prompt_tokens": prompt}


INVOKED = {"state": "result", "toolCallId": "c1", "toolName": "find", "args": {"to": "Ulm"}, "result": "at 9"}


@pytest.mark.parametrize(
    "beside",
    [
        {"toolInvocations": [INVOKED]},
        {
            "toolInvocations": [INVOKED],
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm", "reasoning": "hm"},
                {"type": "tool-invocation", "toolInvocation": INVOKED},
                {"type": "text", "text": "At 9."},
            ],
        },
    ],
    ids=["list", "parts"],
)
@pytest.mark.parametrize("how", ["chat", "mapped"])
def test_calls_that_stand_beside_a_text_are_called_and_answered(
    tmp_path: Path, beside: dict[str, object], how: str
) -> None:
    messages = [
        {"role": "user", "content": "To Ulm?", "createdAt": "2026-01-02T10:00:00Z"},
        {"role": "assistant", "content": "At 9.", "createdAt": "2026-01-02T10:00:05Z", **beside},
    ]
    path = write_lines(tmp_path / "a.jsonl", {"id": "s", "messages": messages})
    mapping = '[trajectory]\nnative_id = "id"\n[messages]\nat = "messages"\n'
    session = one(how, path, map=mapping if how == "mapped" else None)
    assert outline(session.events) == [
        ("user", "message", "To Ulm?"),
        ("assistant", "action", "find"),
        ("assistant", "message", "At 9."),
    ]
    assert [*session.states.values()] == [{"observation": "at 9"}]
    assert [event.time for event in session.events][::2] == ["2026-01-02T10:00:00Z", "2026-01-02T10:00:05Z"]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400], ids=["nan", "inf", "10**400"])
def test_an_outcome_that_is_no_finite_number_is_missing_and_its_session_is_not(
    tmp_path: Path, number: float
) -> None:
    results = {"success": number, "score": number, "rounds": 3}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": MESSAGES, "outcomes": results}))
    assert [(o.name, o.value) for o in found.outcomes] == [("success", None), ("score", None), ("rounds", 3)]
    assert all((o.reason or "").startswith("not a finite number: ") for o in found.outcomes[:2])


def test_half_a_character_in_the_first_line_does_not_hide_the_file(tmp_path: Path) -> None:
    half = {"role": "user", "content": "a \ud83d"}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": [half]}))
    assert outline(found.events) == [("user", "message", "a \ufffd")]


def test_a_conversation_that_grows_keeps_its_id_where_the_log_names_it(tmp_path: Path) -> None:
    short = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": MESSAGES[:3]}))
    long = one("chat", write_lines(tmp_path / "b.jsonl", {"id": "s1", "messages": MESSAGES}))
    assert short.id == long.id
    assert [e.digest() for e in short.events] == [e.digest() for e in long.events[: len(short.events)]]


def test_the_same_content_without_an_id_is_one_trajectory_wherever_it_lies(tmp_path: Path) -> None:
    found, _ = read("chat", write_lines(tmp_path / "a.jsonl", {"messages": MESSAGES}, {"messages": MESSAGES}))
    assert len({trajectory.id for trajectory in found}) == 1


def test_items_of_the_responses_api_are_read_as_well() -> None:
    asked = chat.message({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"})
    told = chat.message({"type": "function_call_output", "call_id": "c", "output": "done"})
    assert (asked.calls[0].name, asked.calls[0].id) == ("f", "c")
    assert told.answers[0].call == "c"


SPOKEN: dict[str, object] = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "It rains in Ulm.", "annotations": []}],
}
OUTPUT: list[dict[str, object]] = [
    {"type": "reasoning", "id": "rs", "summary": []},
    {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "Ulm"}},
    {"type": "mcp_call", "id": "m", "name": "log", "arguments": "{}", "output": None, "error": "refused"},
    {"type": "code_interpreter_call", "id": "i", "code": "1 + 1", "outputs": [{"type": "logs", "logs": "2"}]},
    {"type": "local_shell_call", "call_id": "l", "action": {"command": ["ls"]}},
    {"type": "local_shell_call_output", "call_id": "l", "output": "a.py"},
    {"type": "compaction"},
    {"type": "function_call", "call_id": "f", "arguments": "{}"},
    SPOKEN,
]


def test_an_exchange_of_the_responses_api_is_a_chat(tmp_path: Path) -> None:
    asked: list[object] = ["Weather in Ulm?", [{"role": "user", "content": "Weather in Ulm?"}]]
    usage = {"input_tokens": 7, "output_tokens": 5}
    objects = [
        {
            "id": f"r{n}",
            "model": "m",
            "instructions": "Be brief.",
            "input": one,
            "output": OUTPUT,
            "usage": usage,
        }
        for n, one in enumerate(asked)
    ]
    path = write_lines(tmp_path / "a.jsonl", *objects)
    assert chat.recognises(path)
    found, wrong = read("chat", path)
    assert [t.native_id for t in found] == ["r0", "r1"]
    for trajectory in found:
        assert outline(trajectory.events) == [
            ("environment", "start", "Be brief."),
            ("user", "message", "Weather in Ulm?"),
            ("assistant", "action", "web_search"),
            ("assistant", "action", "log"),
            ("assistant", "action", "code_interpreter"),
            ("assistant", "action", "local_shell"),
            ("assistant", "message", "It rains in Ulm."),
        ]
        assert [(event.status, event.error) for event in trajectory.events[2:6]] == [
            *((None, None), ("failed", "refused"), (None, None), (None, None)),
        ]
        code, shell = trajectory.events[4:6]
        assert trajectory.states[code.states["public"]] == {"observation": [{"type": "logs", "logs": "2"}]}
        assert trajectory.states[shell.states["public"]] == {"observation": "a.py"}
        assert trajectory.participant("assistant").tokens == {"prompt_tokens": 7, "completion_tokens": 5}
    assert [one.reason for one in wrong[:2]] == [
        "messages[9]: name: missing",
        "messages: no messages, and passed over: 1 of type 'compaction'",
    ]


def test_what_is_no_message_is_named_once_a_type_and_no_broken_message_is_taken_for_it(
    tmp_path: Path,
) -> None:
    others: list[dict[str, object]] = [{"type": "token_count", "n": n} for n in range(3)]
    broken: dict[str, object] = {"type": "note", "content": "Who says this?"}
    path = write_lines(tmp_path / "a.jsonl", {"messages": [*MESSAGES, *others, broken]})
    (_,), wrong = read("chat", path)
    assert [one.reason for one in wrong] == [
        "messages[9]: role: missing",
        "messages: no messages, and passed over: 3 of type 'token_count'",
    ]


def test_logs_of_other_systems_are_no_chats(tmp_path: Path) -> None:
    assert not chat.recognises(write_lines(tmp_path / "a.jsonl", {"events": [{"role": "user", "text": "x"}]}))
    assert not chat.recognises(write_lines(tmp_path / "b.jsonl", {"messages": ["just texts"]}))
    asked = {"input": "Hi", "output": "Hello", "log": [{"role": "user"}]}
    assert not chat.recognises(write_lines(tmp_path / "c.jsonl", asked))


def test_two_values_on_a_line_are_no_line_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    talk = json.dumps({"messages": [{"role": "user", "content": "Hi"}]})
    for last, cut in ((talk + talk, False), (talk[:-9], True)):
        path.write_text(f"{talk}\n{last}")
        found, wrong = read("chat", path)
        assert len(found) == 1
        assert [item.reason.endswith("(the last line is cut off)") for item in wrong] == [cut]


def test_half_a_character_in_the_json_of_a_calls_arguments_costs_no_argument(tmp_path: Path) -> None:
    function = {"name": "book", "arguments": json.dumps({"city": "Ulm \ud83d", "seats": 2})}
    call = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": [call]}))
    assert found.events[0].action is not None
    assert found.events[0].action.arguments == {"city": "Ulm \ufffd", "seats": 2}


def test_tools_that_an_api_uses_itself_are_calls_before_what_is_said_of_them(tmp_path: Path) -> None:
    content = [
        {"type": "text", "text": "I look."},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "Ulm"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
        },
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Nothing found."},
        {"type": "mcp_tool_use", "id": "m1", "name": "book", "server_name": "trips", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": False, "content": []},
    ]
    talk = [{"role": "user", "content": "Find Ulm."}, {"role": "assistant", "content": content}]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": talk}))
    assert outline(found.events) == [
        ("user", "message", "Find Ulm."),
        ("assistant", "message", "I look."),
        ("assistant", "action", "web_search"),
        ("assistant", "message", "Nothing found."),
        ("assistant", "action", "book"),
    ]
    calls = [event for event in found.events if event.action]
    assert [call.status for call in calls] == ["failed", "succeeded"]
    assert calls[0].error == "max_uses_exceeded"
    assert calls[0].action and calls[0].action.arguments == {"query": "Ulm"}


def test_calls_beside_a_content_in_pieces_are_called_once(tmp_path: Path) -> None:
    used = [
        {"type": "tool_use", "id": "t1", "name": "note", "input": {}},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "text", "text": "I book."},
        {"type": "tool_use", "id": "t2", "name": "book", "input": {}},
    ]
    calls = [
        {"id": mark, "name": name, "args": {}}
        for mark, name in (("t1", "note"), ("t2", "book"), ("t3", "pay"))
    ]
    told = {"role": "assistant", "content": used, "tool_calls": calls, "refusal": "No."}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": [told]}))
    assert outline(found.events) == [
        ("assistant", "action", "note"),
        ("assistant", "action", "web_search"),
        ("assistant", "message", "I book."),
        ("assistant", "action", "book"),
        ("assistant", "action", "pay"),
    ]


def test_a_part_that_is_null_is_no_word(tmp_path: Path) -> None:
    said = {"role": "user", "content": [None, {"type": "text", "text": "Book it."}]}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": [said]}))
    assert outline(found.events) == [("user", "message", "Book it.")]


def test_calls_in_parts_without_a_type_are_no_words(tmp_path: Path) -> None:
    call = {"toolUse": {"toolUseId": "t1", "name": "book", "input": {"city": "Ulm"}}}
    answer = {"toolResult": {"toolUseId": "t1", "content": [{"text": "full"}], "status": "error"}}
    talk = [
        {"role": "user", "content": [{"text": "To Ulm."}]},
        {"role": "assistant", "content": [{"text": "I book."}, call]},
        {"role": "user", "content": [answer]},
        {"role": "assistant", "content": [{"text": "It is full."}]},
    ]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": talk}))
    assert outline(found.events) == [
        ("user", "message", "To Ulm."),
        ("assistant", "message", "I book."),
        ("assistant", "action", "book"),
        ("assistant", "message", "It is full."),
    ]
    assert (found.events[2].status, found.events[2].error) == ("failed", "full")


def test_a_call_named_by_its_function_has_its_arguments_and_an_answer_its_error(tmp_path: Path) -> None:
    call = {"function": "book", "args": {"city": "Ulm"}, "id": "c1"}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = {"role": "tool", "tool_call_id": "c1", "content": "full"}
    for error in (why := "ValidationError: no such city", {"type": "ValidationError", "message": why}):
        talk = [asked, {**answer, "error": error}]
        event = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": talk})).events[0]
        assert event.action and event.action.arguments == {"city": "Ulm"}
        assert (event.status, event.error) == ("failed", why)


def test_what_an_agent_was_told_beside_the_messages_is_its_state_and_moves_no_event(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "To Ulm."}, {"role": "assistant", "content": "Shall I book?"}]
    bare = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": talk}))
    for told in ("Never book unasked.", [{"type": "text", "text": "Never book unasked."}]):
        path = write_lines(tmp_path / "b.jsonl", {"id": "s1", "system": told, "messages": talk})
        run = one("chat", path)
        assert run.states[run.events[0].states["assistant"]] == {"system": told}
        assert (run.id, [e.digest() for e in run.events]) == (bare.id, [e.digest() for e in bare.events])
    path = write_lines(tmp_path / "b.jsonl", {"id": "s1", "system": "Hi.", "messages": talk[:1]})
    assert ["`system`" in wrong.reason for wrong in read("chat", path)[1]] == [True]


def response(name: str, before: str | None, asked: object, *output: object) -> dict[str, object]:
    """A response of the Responses API with what was asked, at 1,700,000,000 seconds and its number."""
    return {
        "id": name,
        "model": "m",
        "created_at": 1_700_000_000 + int(name[1:]),
        "instructions": "Be brief.",
        "previous_response_id": before,
        "input": asked,
        "output": [*output],
        "usage": {"input_tokens": 7, "output_tokens": 5},
    }


FUNCTION_CALL = {"type": "function_call", "call_id": "f", "name": "look", "arguments": "{}"}
CHAIN = [
    response("r0", None, "Weather in Ulm?", FUNCTION_CALL),
    response("r1", None, "And who are you?", SPOKEN),
    response("r2", "r0", [{"type": "function_call_output", "call_id": "f", "output": "Rain."}], SPOKEN),
    response("r3", "r2", "Thanks.", SPOKEN),
    response("r4", "r0", "No, in Bonn.", SPOKEN),
    response("r5", "elsewhere", "Bye.", SPOKEN),
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_responses_that_continue_each_other_are_one_conversation(tmp_path: Path, name: str) -> None:
    path = write_lines(tmp_path / name, *(CHAIN if name == "a.jsonl" else [json.dumps(CHAIN)]))
    found, wrong = read("chat", path)
    assert not wrong
    assert [run.native_id for run in found] == ["r0", "r1", "r4", "r5"]
    assert outline(found[0].events) == [
        ("environment", "start", "Be brief."),
        ("user", "message", "Weather in Ulm?"),
        ("assistant", "action", "look"),
        ("assistant", "message", "It rains in Ulm."),
        ("user", "message", "Thanks."),
        ("assistant", "message", "It rains in Ulm."),
    ]
    assert list(found[0].states.values()) == [{"observation": "Rain."}]
    times = [event.time and event.time[17:19] for event in found[0].events]
    assert times == [None, None, "20", "22", None, "23"]
    agent = next(one for one in found[0].participants if one.kind == "agent")
    assert agent.tokens == {"prompt_tokens": 21, "completion_tokens": 15}


def test_a_conversation_that_a_response_continues_keeps_its_id(tmp_path: Path) -> None:
    alone = one("chat", write_lines(tmp_path / "alone.jsonl", CHAIN[0]))
    (longer,), _ = read("chat", write_lines(tmp_path / "longer.jsonl", CHAIN[0], CHAIN[2]))
    assert (longer.id, longer.events[:2]) == (alone.id, alone.events[:2])
    assert len(longer.events) == len(alone.events) + 1


def test_a_request_and_its_response_beside_each_other_are_an_exchange(tmp_path: Path) -> None:
    logged = [
        {
            "request": {key: one[key] for key in ("input", "previous_response_id")},
            "response": {key: value for key, value in one.items() if key != "input"},
        }
        for one in CHAIN[:3]
    ]
    found, _ = read("chat", write_lines(tmp_path / "a.jsonl", *logged))
    assert [(run.native_id, len(run.events)) for run in found] == [("r0", 4), ("r1", 3)]


def test_a_response_that_continues_another_is_noticed_across_blocks_and_without_a_map(tmp_path: Path) -> None:
    mark = b'"previous_response_id": "r0"'
    for before in (0, responses.BLOCK - 9, responses.BLOCK):
        (tmp_path / "a.jsonl").write_bytes(b" " * before + mark)
        assert responses.has_continuations(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_bytes(b"")
    assert not responses.has_continuations(tmp_path / "a.jsonl")
    assert not responses.has_continuations(Path(os.devnull))


@pytest.mark.parametrize("order", ["abab", "abb", "aba", "pab"])
def test_a_response_that_is_logged_again_counts_once(tmp_path: Path, order: str) -> None:
    first, second = response("r0", None, "Weather?", SPOKEN), response("r1", "r0", "Thanks.", SPOKEN)
    logged = {"a": first, "b": second, "p": {**first, "output": []}}
    found, wrong = read("chat", write_lines(tmp_path / "a.jsonl", *(logged[one] for one in order)))
    expected = one("chat", write_lines(tmp_path / "b.jsonl", first, second))
    assert not wrong and [(run.id, outline(run.events)) for run in found] == [
        (expected.id, outline(expected.events))
    ]


def test_what_later_responses_know_of_a_conversation_is_kept(tmp_path: Path) -> None:
    first = {**response("r0", None, "Weather?", SPOKEN), "outcomes": {"score": 0}, "tags": {}}
    second = {**response("r1", "r0", "Thanks.", SPOKEN), "task": "travel", "tags": {"lang": "en"}}
    run = one("chat", write_lines(tmp_path / "a.jsonl", first, {**second, "outcomes": {"score": 1}}))
    assert (run.native_id, run.task, run.tags) == ("r0", "travel", {"lang": "en"})
    assert [outcome.value for outcome in run.outcomes] == [1]


def test_an_input_that_repeats_the_conversation_adds_what_is_new(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "Weather?"}]
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    first = response("r0", None, asked, thought, {**FUNCTION_CALL, "id": "fc", "status": "completed"})
    result = {"type": "function_call_output", "call_id": "f", "output": "Rain."}
    again = response("r1", "r0", [*asked, FUNCTION_CALL, result], SPOKEN)
    short = response("r1", "r0", [result], SPOKEN)
    whole, rest = (
        one("chat", write_lines(tmp_path / name, first, second))
        for name, second in (("a.jsonl", again), ("b.jsonl", short))
    )
    assert whole.events == rest.events and len(whole.events) == 4
    other = response("r1", "r0", [*asked, {"role": "user", "content": "And now?"}], SPOKEN)
    assert len(one("chat", write_lines(tmp_path / "c.jsonl", first, other)).events) == 6


def test_a_time_of_an_item_comes_before_that_of_its_response(tmp_path: Path) -> None:
    spoken = {**SPOKEN, "timestamp": "2024-01-01T00:00:00Z"}
    run = one("chat", write_lines(tmp_path / "a.jsonl", response("r0", None, "Weather?", spoken)))
    assert [event.time and event.time[:4] for event in run.events][-1] == "2024"


def test_an_exchange_beside_its_raw_request_stays_as_it_is(tmp_path: Path) -> None:
    raw = {"request": {"input": "raw"}, "response": {"id": "raw", "output": [SPOKEN]}}
    run = one("chat", write_lines(tmp_path / "a.jsonl", {**response("r0", None, "Weather?", SPOKEN), **raw}))
    assert run.native_id == "r0" and run.events[1].text == "Weather?"


def test_other_data_with_an_input_and_an_empty_output_is_no_chat(tmp_path: Path) -> None:
    assert not chat.recognises(write_lines(tmp_path / "a.jsonl", {"input": "x", "output": [], "model": "m"}))


ASKED = "[ask_followup_question for 'Which train?'] Result:\n<answer>\nThe late one.\n</answer>"
DONE = (
    "[attempt_completion] Result:\nThe user has provided feedback on the results. Consider it.\n"
    "<feedback>\nToo dear.\n</feedback>\n<environment_details>\nx\n</environment_details>"
)
ALLOWED = (
    "[write_to_file for 'a'] Result:\nThe user approved this operation and provided the following context:\n"
    "<feedback>\nOnly once.\n</feedback>"
)


@pytest.mark.parametrize(
    ("turn", "words"), [(ASKED, "The late one."), (DONE, "Too dear."), (ALLOWED, "Only once.")]
)
def test_what_a_person_answered_in_a_turn_of_a_scaffold_is_their_message(
    tmp_path: Path, turn: str, words: str
) -> None:
    chat = [
        {"role": "user", "content": "To Ulm, please."},
        {"role": "assistant", "content": "Which train?"},
        {"role": "user", "content": turn},
        {"role": "user", "content": "[read_file for 'a.html'] Result:\n<answer>\nno words\n</answer>"},
    ]
    events = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": chat})).events
    assert [(e.actor, e.text) for e in events if e.kind == "message"] == [
        ("user", "To Ulm, please."),
        ("assistant", "Which train?"),
        ("user", words),
    ]


def test_what_a_person_answered_to_a_call_is_their_message(tmp_path: Path) -> None:
    function = {"name": "ask_followup_question", "arguments": '{"question": "Which train?"}'}
    call = {"id": "c", "type": "function", "function": function}
    chat = [
        {"role": "user", "content": "To Ulm, please."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "<user_message>\nThe late one.\n</user_message>"},
    ]
    events = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": chat})).events
    assert [(e.actor, e.kind) for e in events] == [
        ("user", "message"),
        ("assistant", "action"),
        ("user", "message"),
    ]
    assert events[-1].text == "The late one."


@pytest.mark.parametrize(
    "beside",
    [
        {"response": {"choices": [{"message": {"role": "assistant", "content": "Booked."}}]}},
        {
            "response": {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": "Booked."}],
            }
        },
        {"response": {"model": "m", "message": {"role": "assistant", "content": "Booked."}}},
        {"response": "Booked."},
        {"completion": "Booked."},
        {"outputs": ["Booked.", "Done."], "response": "ModelResponse(choices=[…])"},
        {"output": [{"role": "assistant", "content": "Booked."}]},
        {
            "output": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "To Ulm.", "id": "m1"},
                {"role": "assistant", "content": "Booked."},
            ]
        },
        {"outputs": [{"text": "Booked.", "reasoning_content": "A train."}]},
        {"response": '{"choices": [{"message": {"role": "assistant", "content": "Booked."}}]}'},
    ],
)
def test_what_a_model_answered_beside_the_messages_is_said(tmp_path: Path, beside: dict[str, object]) -> None:
    """As LiteLLM, Anthropic, Ollama, DSPy and home-made loggers have calls."""
    request = {"id": "s1", "messages": [{"role": "user", "content": "To Ulm."}]}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {**request, **beside}))
    assert outline(found.events) == [("user", "message", "To Ulm."), ("assistant", "message", "Booked.")]


@pytest.mark.parametrize(
    "beside",
    [{"answer": "42"}, {"response": ""}, {"response": {"status": 500}}, {"output": []}, {"output": 7}],
)
def test_what_is_no_answer_of_a_model_is_not_said(tmp_path: Path, beside: dict[str, object]) -> None:
    request = {"id": "s1", "messages": [{"role": "user", "content": "To Ulm."}]}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {**request, **beside}))
    assert outline(found.events) == [("user", "message", "To Ulm.")]


def test_an_answer_that_the_messages_have_is_said_once_and_its_tokens_count(tmp_path: Path) -> None:
    answer = {"role": "assistant", "content": "Booked."}
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    response = {"choices": [{"message": answer}], "usage": usage}
    request = [{"role": "user", "content": "To Ulm."}]
    ended = {"id": "s1", "messages": [*request, answer], "response": "Booked."}
    called = {"id": "s2", "messages": request, "response": response, "usage": None}
    (first, second), wrong = read("chat", write_lines(tmp_path / "a.jsonl", ended, called))
    assert not wrong and outline(first.events) == outline(second.events)
    assert [p.tokens for p in second.participants] == [{}, usage]


@pytest.mark.parametrize("words", [{"message": "To Ulm."}, {"items": [{"type": "text", "text": "To Ulm."}]}])
def test_who_has_an_unknown_role_is_no_agent_where_words_stand_under_another_name(
    tmp_path: Path, words: dict[str, object]
) -> None:
    """Ann became an agent, and nothing said so; with a content she is refused."""
    talk = [{"role": "user", "content": "Hi."}, {"role": "Ann", **words}]
    (found,), (wrong,) = read("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": talk}))
    assert outline(found.events) == [("user", "message", "Hi.")]
    assert "unknown role 'Ann'" in wrong.reason


def test_an_answer_to_instructions_alone_is_said(tmp_path: Path) -> None:
    called = {"id": "s1", "messages": [{"role": "system", "content": "Say hello."}], "response": "Hello."}
    found = one("chat", write_lines(tmp_path / "a.jsonl", called))
    assert outline(found.events)[1:] == [("assistant", "message", "Hello.")]


def test_a_message_without_content_says_what_is_under_another_name(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "To Ulm."}, {"role": "assistant", "text": "Booked."}]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"id": "s1", "messages": talk}))
    assert outline(found.events)[1:] == [("assistant", "message", "Booked.")]
