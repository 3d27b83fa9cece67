"""Sessions that are mapped as messages of a chat API, with what each message says beside its words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.errors import SourceError
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.fields.mapping import parse
from coaudit.pipeline.systems.formats.mapped import reader as mapped
from coaudit.schemas import Trajectory
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import one, outline, read, write_lines
from tests.pipeline.systems.formats.shapes import as_json, as_lines, sentence


def claude(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    head = {"sessionId": "s1", "isSidechain": False}
    return [
        {**head, "uuid": f"u{n}", "type": each["role"], "timestamp": f"2026-01-02T10:00:{n:02d}Z"}
        | {"message": each}
        for n, each in enumerate(messages)
    ]


def answered(name: str, *content: dict[str, Any], usage: dict[str, int]) -> dict[str, Any]:
    return {"role": "assistant", "type": "message", "id": name, "content": [*content], "usage": usage}


def test_what_a_person_answers_to_a_tool_that_asks_them_is_their_message(tmp_path: Path) -> None:
    """As Claude Code has it."""
    words = '"Which one?"="the red one, it\'s cheaper"'
    result = (
        f"User has answered your questions: {words}. You can now continue with the user's answers in mind."
    )
    asked = {"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": {"questions": []}}
    other = {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file": "a"}}
    lines = claude(
        {"role": "user", "content": sentence(0)},
        answered("m1", asked, usage={}),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}]},
        answered("m2", other, usage={}),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": result}]},
    )
    (run,) = read_by_draft(as_lines(tmp_path / "s1.jsonl", lines))
    assert outline(run.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "action", "AskUserQuestion"),
        ("user", "message", words),
        ("assistant", "action", "Read"),
    ]
    assert run.events[2].time == "2026-01-02T10:00:02Z"


def test_tokens_of_an_answer_that_is_logged_in_parts_count_once(tmp_path: Path) -> None:
    """As Claude Code has them: each part repeats the answer's usage, and the last one has all of it."""
    cached = {"cache_creation_input_tokens": 10, "cache_read_input_tokens": 20}
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
    lines = claude(
        {"role": "user", "content": sentence(0)},
        answered(
            "m1", {"type": "text", "text": "I look."}, usage={"input_tokens": 5, "output_tokens": 3, **cached}
        ),
        answered("m1", call, usage={"input_tokens": 5, "output_tokens": 9, **cached}),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "red"}]},
        answered("m2", {"type": "text", "text": "Red."}, usage={"input_tokens": 7, "output_tokens": 2}),
    )
    (run,) = read_by_draft(as_lines(tmp_path / "s1.jsonl", lines))
    assert run.participant("assistant").tokens == {"prompt_tokens": 42, "completion_tokens": 11}


def test_tokens_of_the_last_answer_alone_are_not_the_sessions(tmp_path: Path) -> None:
    """As a proxy logs the calls of a chat: what a request repeats has no usage."""
    said = [{"role": ("user", "assistant")[n % 2], "content": sentence(n)} for n in range(4)]
    calls = [
        {
            "id": f"r{n}",
            "request": {"model": "m-1", "messages": said[: 2 * n + 1]},
            "response": answered(
                f"m{n}",
                {"type": "text", "text": sentence(2 * n + 1)},
                usage={"input_tokens": 5, "output_tokens": 3},
            ),
        }
        for n in range(2)
    ]
    (run,) = read_by_draft(as_lines(tmp_path / "calls.jsonl", calls))
    assert [event.text for event in run.events] == [one["content"] for one in said]
    assert run.participant("assistant").tokens == {}


def test_a_person_who_answers_nothing_to_a_tool_that_asks_them_says_nothing(tmp_path: Path) -> None:
    result = "User has answered your questions: . You can now continue with the user's answers in mind."
    asked = {"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": {"questions": []}}
    lines = claude(
        {"role": "user", "content": sentence(0)},
        answered("m1", asked, usage={}),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}]},
    )
    (run,) = read_by_draft(as_lines(tmp_path / "s1.jsonl", lines))
    assert [event.text for event in run.events if event.kind == "message"] == [sentence(0)]


@pytest.mark.parametrize("status", [True, False])
def test_what_an_agent_handed_over_beside_a_task_is_said_once(tmp_path: Path, status: bool) -> None:
    def said(role: str, words: str) -> dict[str, object]:
        return {"role": role, "parts": [{"kind": "text", "text": words}], "messageId": words[:3]}

    tasks = [
        {
            "id": f"t{n}",
            "status": {"state": "completed", **({"message": said("agent", sentence(3))} if status else {})},
            "history": [
                *(said("user", f"{sentence(0)} {n}"), said("agent", sentence(1)), said("user", sentence(2))),
                *([said("agent", sentence(3))] if status and n else []),
            ],
            "artifacts": [
                {"name": name, "parts": [{"kind": "text", "text": words}]}
                for name, words in (("plan", sentence(1)), ("report", sentence(5)))
            ],
        }
        for n in range(2)
    ]
    for n, run in enumerate(read_by_draft(as_json(tmp_path / "tasks.json", tasks))):
        end = [("assistant", "message", sentence(3))] if status else []
        before, last = (end, []) if n else ([], end)
        assert outline(run.events) == [
            ("user", "message", f"{sentence(0)} {n}"),
            ("assistant", "message", sentence(1)),
            ("user", "message", sentence(2)),
            *before,
            ("assistant", "message", sentence(5)),
            *last,
        ]


def test_artifacts_beside_messages_of_another_protocol_are_not_the_agents_words(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": sentence(0)}, {"role": "assistant", "content": sentence(1)}]
    slides = {"title": "slides", "by": "user", "parts": [{"type": "text", "text": sentence(2)}]}
    rows = [{"id": n, "messages": messages, "artifacts": [slides]} for n in range(2)]
    for run in read_by_draft(as_json(tmp_path / "a.json", rows)):
        assert [event.text for event in run.events] == [sentence(0), sentence(1)]


CALLS = '[trajectory]\nnative_id = "id"\n[messages]\nat = "in"\nreply = "out"\ngrowing = true\n'


def test_calls_of_another_session_continue_none_though_they_begin_alike(tmp_path: Path) -> None:
    hello, more = {"role": "user", "content": "Hello"}, {"role": "user", "content": "To Ulm?"}
    calls = [
        {"id": "a", "in": [hello], "out": "Hi!"},
        {"id": "b", "in": [hello], "out": "Hi!"},
        {"id": "b", "in": [hello, {"role": "assistant", "content": "Hi!"}, more], "out": "Yes."},
    ]
    path = write_lines(tmp_path / "calls.jsonl", *calls)
    talks, wrong = read("mapped", path, map=CALLS)
    assert not wrong
    assert [(talk.native_id, [event.text for event in talk.events]) for talk in talks] == [
        ("a", ["Hello", "Hi!"]),
        ("b", ["Hello", "Hi!", "To Ulm?", "Yes."]),
    ]


def test_calls_continue_each_other_where_each_has_an_id_of_its_own(tmp_path: Path) -> None:
    hello = {"role": "user", "content": "Hello"}
    longer = [hello, {"role": "assistant", "content": "Hi!"}, {"role": "user", "content": "To Ulm?"}]
    calls = [{"id": "c1", "in": [hello], "out": "Hi!"}, {"id": "c2", "in": longer, "out": "Yes."}]
    talk = one("mapped", write_lines(tmp_path / "calls.jsonl", *calls), map=CALLS)
    assert [event.text for event in talk.events] == ["Hello", "Hi!", "To Ulm?", "Yes."]


def test_a_call_that_was_tried_again_under_its_id_divides_no_session(tmp_path: Path) -> None:
    hello = {"role": "user", "content": "Hello"}
    longer = [hello, {"role": "assistant", "content": "Hi!"}, {"role": "user", "content": "To Ulm?"}]
    calls = [
        {"id": "c1", "in": [hello], "out": "Error"},
        {"id": "c1", "in": [hello], "out": "Hi!"},
        {"id": "c2", "in": longer, "out": "Yes."},
    ]
    path = write_lines(tmp_path / "calls.jsonl", *calls)
    talks, wrong = read("mapped", path, map=CALLS)
    assert not wrong
    assert [[event.text for event in talk.events] for talk in talks] == [
        ["Hello", "Error"],
        ["Hello", "Hi!", "To Ulm?", "Yes."],
    ]


TURNS = '[trajectory]\nnative_id = "talk"\n[messages]\nat = "in"\nreply = "out"\njoined = true\n'


def test_turns_are_joined_though_one_of_them_lacks_its_session_or_its_time(tmp_path: Path) -> None:
    def turn(talk: str | None, at: str | None, n: int) -> dict[str, Any]:
        return {"talk": talk, "at": at, "in": [{"role": "user", "content": f"Go {n}"}], "out": f"Gone {n}"}

    lines = [
        turn("a", "2026-01-02T10:05:00Z", 2),
        turn("a", None, 3),
        turn(None, "2026-01-02T10:00:00Z", 0),
        turn("a", "2026-01-02T10:01:00Z", 1),
    ]
    path = write_lines(tmp_path / "turns.jsonl", *lines)
    talks, wrong = read("mapped", path, map=f'{TURNS}time = "at"\n')
    assert not wrong
    assert [[event.text for event in talk.events] for talk in talks] == [
        ["Go 0", "Gone 0"],
        ["Go 1", "Gone 1", "Go 2", "Gone 2", "Go 3", "Gone 3"],
    ]
    assert [event.time for event in talks[1].events][1:5:3] == ["2026-01-02T10:01:00Z", None]


def test_turns_of_several_sessions_that_alternate_are_the_same_in_parts_as_in_one_piece(
    tmp_path: Path,
) -> None:
    lines: list[Any] = [
        {
            "talk": f"t{n % 7}",
            "at": 1_700_000_000 + n,
            "in": [{"role": "user", "content": f"Go {n}"}],
            "out": "Yes",
        }
        for n in range(60)
    ]
    path = write_lines(tmp_path / "turns.jsonl", *lines[:30], "{", *lines[30:], lines[-1])
    options = ReadOptions(map=f'{TURNS}time = "at"\n')
    whole = list(mapped.read(path, options))
    parts = list(mapped.sessions_apart(path, options, 400))
    read_in_parts = [item for part in parts for item in mapped.read_span(path, options, part)]
    assert len(parts) > 2 and len(whole) == 8
    assert sorted(map(repr, read_in_parts)) == sorted(map(repr, whole))
    assert sum(len(item.events) for item in whole if isinstance(item, Trajectory)) == 2 * len(lines)


def test_what_is_said_twice_in_a_talk_is_kept_unless_a_turn_repeats_the_end_of_the_talk(
    tmp_path: Path,
) -> None:
    def said(*texts: str) -> list[dict[str, str]]:
        return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]

    lines: list[dict[str, Any]] = [
        {"talk": "a", "in": said("Yes"), "out": "Next?"},
        {"talk": "a", "in": said("Yes"), "out": "Next?"},
        {"talk": "a", "in": said("Yes", "Next?", "No"), "out": "Done."},
    ]
    lines[1]["n"] = 2  # else it is a line that repeats another one
    talk = one("mapped", write_lines(tmp_path / "turns.jsonl", *lines), map=TURNS)
    assert [event.text for event in talk.events] == ["Yes", "Next?", "Yes", "Next?", "No", "Done."]


def test_a_turn_that_is_exported_again_counts_once_as_it_was_last(tmp_path: Path) -> None:
    def turn(key: str | None, question: str, answer: str, score: int) -> dict[str, Any]:
        own = {"key": key, "scores": [{"name": "useful", "value": score}]}
        return {"talk": "a", "in": [{"role": "user", "content": question}], "out": answer} | own

    lines = [
        turn("1", "Where?", "Here.", 5),
        turn("2", "When?", "Now.", 4),
        turn("1", "Where?", "There.", 1),
        turn("2", "Who?", "I.", 4),  # another question
        turn(None, "Why?", "So.", 3),
        turn("", "Why?", "So.", 2),
        turn("", "Why?", "So.", 3),
    ]
    path = write_lines(tmp_path / "turns.jsonl", *lines)
    scores = '[scores]\nat = "scores"\nname = "name"\nvalue = "value"\n'
    talk = one("mapped", path, map=f'{TURNS}{scores}[input]\nid = "key"\n')
    assert [event.text for event in talk.events] == (
        ["Where?", "There.", "When?", "Now.", "Who?", "I.", *["Why?", "So."] * 3]
    )
    assert {outcome.name: outcome.value for outcome in talk.outcomes} == {"useful": 17 / 6}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TURNS.replace("joined = true", '[input]\nid = "key"'), "only with rounds in [input] or joined"),
        (TURNS + "growing = true\n", "give joined or growing"),
        (TURNS.replace('at = "in"', "each = true"), "give joined or each"),
        (TURNS.replace('native_id = "talk"', ""), "needs trajectory.native_id"),
        (TURNS.replace("joined = true", 'time = "at"'), "only with joined = true, got 'at'"),
    ],
)
def test_a_mapping_says_one_thing_of_what_a_record_is(text: str, reason: str) -> None:
    with pytest.raises(SourceError, match=re.escape(reason)):
        parse(text)


def chatgpt(parts: list[Any], *models: str, default: str = "auto") -> dict[str, Any]:
    """A talk as ChatGPT exports it: a request in parts, and an answer of each model."""
    people = {"author": {"role": "user"}, "content": {"content_type": "multimodal_text", "parts": parts}}
    tree: dict[str, Any] = {"0": {"message": people, "parent": None}}
    for n, model in enumerate(models, 1):
        content = {"content_type": "text", "parts": [sentence(n)]}
        answer = {"author": {"role": "assistant"}, "content": content, "metadata": {"model_slug": model}}
        tree[str(n)] = {"message": answer, "parent": str(n - 1)}
    return {"id": "c", "mapping": tree, "current_node": str(len(models)), "default_model_slug": default}


def test_messages_say_which_models_wrote_them(tmp_path: Path) -> None:
    switched = chatgpt([sentence(0)], "gpt-4o", "gpt-4o", "o3")
    path = as_json(tmp_path / "conversations.json", [switched, {**switched, "id": "d"}])
    assert [talk.agent_model for talk in read_by_draft(path)] == ["gpt-4o, o3"] * 2

    usage = {"input_tokens": 1, "output_tokens": 1}
    answers = [
        {**answered(f"m{n}", {"type": "text", "text": sentence(n)}, usage=usage), "model": model}
        for n, model in enumerate(("sonnet-4", "<synthetic>"))
    ]
    log = as_lines(tmp_path / "s.jsonl", claude({"role": "user", "content": sentence(2)}, *answers))
    assert [talk.agent_model for talk in read_by_draft(log)] == ["sonnet-4"]


def test_an_image_beside_words_is_named_and_leaves_the_sessions_id(tmp_path: Path) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    plain, pictured = (
        read_by_draft(
            as_json(tmp_path / name / "c.json", [talk := chatgpt(parts, "m-1", "m-1"), {**talk, "id": "d"}])
        )
        for name, parts in (("plain", [sentence(0)]), ("image", [image, sentence(0)]))
    )
    assert [talk.events[0].text for talk in pictured] == [f"[image_asset_pointer]\n{sentence(0)}"] * 2
    assert [talk.id for talk in pictured] == [talk.id for talk in plain]


@pytest.mark.parametrize("key", ["parts", "content"])
def test_parts_that_a_column_holds_as_json_are_parts(tmp_path: Path, key: str) -> None:
    rows = [
        {
            "chat_id": f"c{n // 2}",
            "role": ("user", "assistant")[n % 2],
            "created_at": f"2026-01-02T10:00:0{n}Z",
        }
        | {key: json.dumps([{"type": "text", "text": sentence(n)}])}
        for n in range(4)
    ]
    talks = read_by_draft(as_lines(tmp_path / "messages.jsonl", rows))
    assert [talk.native_id for talk in talks] == ["c0", "c1"]
    assert [event.text for talk in talks for event in talk.events] == [sentence(n) for n in range(4)]


def test_json_that_a_person_wrote_is_their_text(tmp_path: Path) -> None:
    words = json.dumps([{"type": "train", "to": "Ulm"}])
    call = {"type": "function", "id": "c1", "function": {"name": "book", "arguments": "{}"}}
    rows = [
        {"chat_id": "c", "role": "user", "content": words},
        {"chat_id": "c", "role": "assistant", "content": sentence(0), "tool_calls": json.dumps([call])},
        {"chat_id": "c", "role": "tool", "content": sentence(1), "tool_call_id": "c1"},
    ]
    (talk,) = read_by_draft(as_lines(tmp_path / "messages.jsonl", rows))
    assert outline(talk.events) == [
        ("user", "message", words),
        ("assistant", "message", sentence(0)),
        ("assistant", "action", "book"),
    ]


def test_an_image_beside_a_call_or_an_answer_is_no_message_and_leaves_the_sessions_id(tmp_path: Path) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "QQ=="}}
    call = {"functionCall": {"name": "draw", "args": {"x": 1}}}
    answer = {"functionResponse": {"name": "draw", "response": {"ok": 1}}}

    def talk(name: str, *media: dict[str, Any]) -> Trajectory:
        contents = [
            {"role": "user", "parts": [{"text": sentence(0)}]},
            {"role": "model", "parts": [*media, call]},
            {"role": "user", "parts": [answer, *media]},
            {"role": "model", "parts": [{"text": sentence(1)}]},
        ]
        (made,) = read_by_draft(as_json(tmp_path / name / "c.json", {"contents": contents}))
        return made

    assert outline(talk("image", image).events) == [
        ("user", "message", sentence(0)),
        ("assistant", "action", "draw"),
        ("assistant", "message", sentence(1)),
    ]
    assert talk("image", image).id == talk("plain").id


@pytest.mark.parametrize("none", ["[]", "", "null"])
def test_a_column_of_calls_that_holds_none_is_read(tmp_path: Path, none: str) -> None:
    call = {"type": "function", "id": "c1", "function": {"name": "book", "arguments": "{}"}}
    rows = [
        {"chat_id": "c", "role": "user", "content": sentence(0), "tool_calls": none},
        {"chat_id": "c", "role": "assistant", "content": sentence(1), "tool_calls": json.dumps([call])},
        {"chat_id": "c", "role": "assistant", "content": sentence(2), "tool_calls": none},
    ]
    (talk,) = read_by_draft(as_lines(tmp_path / "messages.jsonl", rows))
    assert [event.kind for event in talk.events] == ["message", "message", "action", "message"]


def test_scores_that_are_json_in_a_field_count_once_a_turn(tmp_path: Path) -> None:
    def turn(n: int) -> dict[str, Any]:
        scores = json.dumps({"scores": [{"name": "helpful", "value": n}]})
        return {
            "talk": "a",
            "in": [{"role": "user", "content": f"Go {n}"}],
            "out": f"Gone {n}",
            "meta": scores,
        }

    path = write_lines(tmp_path / "turns.jsonl", *map(turn, range(4)))
    talk = one("mapped", path, map=f'[scores]\nat = "meta.scores"\nname = "name"\nvalue = "value"\n{TURNS}')
    assert {outcome.name: outcome.value for outcome in talk.outcomes} == {"helpful": 1.5}


def test_history_behind_instructions_that_change_is_read_once(tmp_path: Path) -> None:
    def turn(n: int) -> dict[str, Any]:
        talk = [{"role": ("user", "assistant")[n % 2], "content": f"Say {n}"} for n in range(2 * n + 1)]
        told = {"role": "system", "content": f"Help. It is {10 + min(n, 2)} o'clock."}
        return {"talk": "a", "in": [told, *talk], "out": f"Say {2 * n + 1}"}

    talk = one("mapped", write_lines(tmp_path / "turns.jsonl", *map(turn, range(4))), map=TURNS)
    texts = [event.text for event in talk.events]
    assert [text for text in texts if text and "Say" in text] == [f"Say {n}" for n in range(8)]
    assert [place for place, text in enumerate(texts) if text and "Help" in text] == [0, 3, 6]


def test_a_turn_that_says_what_the_one_before_it_does_is_one(tmp_path: Path) -> None:
    def turn(n: int, *texts: str) -> dict[str, Any]:
        said = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
        return {"talk": "a", "n": n, "in": said}

    lines = [turn(0, "Mow", "Mown."), turn(1, "More", "Ok."), turn(2, "More", "Ok."), turn(3, "Stop", "Ok.")]
    talk = one(
        "mapped", write_lines(tmp_path / "turns.jsonl", *lines), map=TURNS.replace('reply = "out"\n', "")
    )
    assert [event.text for event in talk.events][2:6] == ["More", "Ok.", "More", "Ok."]
