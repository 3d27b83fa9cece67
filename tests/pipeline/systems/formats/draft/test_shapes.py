"""Shapes that held-out data sets have: ids as speakers, lists of what was done, numbered objects."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.ingest.run import preview
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.draft import names
from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.draft.guess import guess_mapping
from coaudit.pipeline.systems.formats.draft.rounds import rounds_in
from coaudit.pipeline.systems.formats.draft.survey import survey_logs
from coaudit.pipeline.systems.formats.draft.unclear import open_questions
from coaudit.pipeline.systems.formats.fields.mapping import Turns
from coaudit.pipeline.systems.formats.files.numbered import gather_turns, stem_in
from coaudit.pipeline.systems.formats.files.sides import sides_in
from coaudit.pipeline.systems.formats.messages import dialects, part_kinds
from coaudit.pipeline.systems.formats.messages.turns import events_in
from coaudit.schemas import Action, Quarantined, Trajectory
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import one, outline, write_lines
from tests.pipeline.systems.formats.shapes import SAID, as_json, as_lines, as_text, sentence


def test_an_id_that_comes_again_in_every_list_is_who_speaks(tmp_path: Path) -> None:
    turns = [{"text": sentence(n), "data": {}, "id": f"turker_{n % 2 + 1}"} for n in range(4)]
    games = [{"dialogue_id": n, "chat_logs": turns} for n in range(3)]
    first = read_by_draft(as_json(tmp_path / "games.json", games))[0]
    assert [(p.name, p.kind) for p in first.participants] == [("turker_1", "human"), ("turker_2", "human")]
    assert outline(first.events)[:2] == [
        ("turker_1", "message", sentence(0)),
        ("turker_2", "message", sentence(1)),
    ]


def test_ids_of_messages_and_labels_of_one_session_are_nobodys_names(tmp_path: Path) -> None:
    for ids in ("abcdefghijkl", "aaaabbbbcccc"):
        own = iter(ids)
        talks = [
            {"name": n, "turns": [{"id": next(own), "text": sentence(k)} for k in range(4)]} for n in range(3)
        ]
        made = guess_mapping(survey_logs(as_json(tmp_path / "talks.json", talks)))
        assert made.is_alternating and "role" not in made.event


def test_a_list_of_what_was_done_is_no_talk_of_two(tmp_path: Path) -> None:
    acts = [
        {"uid": f"{n}", "operation": {"op": op, "value": "Ulm"}} for n, op in enumerate(("TYPE", "CLICK"))
    ]
    runs = [
        {"confirmed_task": f"Book a train to Ulm, please, {n}", "action_reprs": ["[box] TYPE", "[go] CLICK"]}
        | {"actions": acts}
        for n in range(3)
    ]
    first = read_by_draft(as_json(tmp_path / "runs.json", runs))[0]
    assert {p.name for p in first.participants} == {"user", "agent"}
    assert [e.action and e.action.name for e in first.events] == [None, "TYPE", "CLICK"]


def test_events_of_an_editor_are_what_was_done_by_whom(tmp_path: Path) -> None:
    names = ("start", "text-insert", "suggestion-get", "suggestion-open")
    rows = [
        {
            "eventName": name,
            "eventSource": "user" if n in (1, 2) else "api",
            "eventTimestamp": 1629357238000 + n,
        }
        | {"textDelta": ""}
        for n, name in enumerate(names)
    ]
    for session in ("a", "b", "c"):
        as_lines(tmp_path / f"{session}.jsonl", rows)
    first = read_by_draft(tmp_path)[0]
    assert outline(first.events) == [
        ("api", "action", "start"),
        ("user", "action", "text-insert"),
        ("user", "action", "suggestion-get"),
        ("api", "action", "suggestion-open"),
    ]


def test_numbered_messages_are_neither_two_sides_nor_one_message(tmp_path: Path) -> None:
    record = {f"message_{n}": {"role": "user", "content": f"{sentence(n)} {sentence(n)}"} for n in (1, 2, 3)}
    assert sides_in([record]) is None
    assert sides_in([{key: record[key] for key in ("message_1", "message_2")}]) == ["1", "2"]
    rows = [{"speaker": "user", "v2": {"text": sentence(n)}, "session": n % 2} for n in range(4)]
    assert guess_mapping(survey_logs(as_lines(tmp_path / "rows.jsonl", rows))).event["text"] == "v2.text"


def test_turns_under_numbered_names_are_a_list(tmp_path: Path) -> None:
    for name, count in (("a", 12), ("b", 3)):
        turns = [{"role": ("user", "assistant")[n % 2], "content": sentence(n)} for n in range(count)]
        record = {"id": name, **{f"message_{n}": turns[n - 1] for n in range(count, 0, -1)}}
        as_json(tmp_path / f"{name}.json", {**record, "num_messages": count})
    runs = read_by_draft(tmp_path)
    assert [len(run.events) for run in runs] == [12, 3]
    assert [event.text for event in runs[0].events] == [sentence(n) for n in range(12)]
    texts = [{"topic": n, "turn0": sentence(0), "turn1": sentence(1), "turn2": sentence(2)} for n in (1, 2)]
    assert [e.text for e in read_by_draft(as_lines(tmp_path / "t.jsonl", texts))[0].events] == [
        sentence(n) for n in range(3)
    ]


def test_a_turn_with_nothing_in_it_makes_nobody_another_and_no_field_is_lost(tmp_path: Path) -> None:
    first = {
        "name": 1,
        "turns": 3,
        "turn_1": sentence(0),
        "turn_2": "",
        "turn_3": sentence(2),
        "turn_4": sentence(3),
    }
    whole = {"name": 2, "turns": 4, **{f"turn_{n}": sentence(n) for n in (1, 2, 3, 4)}}
    run = read_by_draft(as_lines(tmp_path / "t.jsonl", [first, whole, {**whole, "name": 3}]))[0]
    assert [(e.actor, e.text) for e in run.events] == [
        ("first", sentence(0)),
        ("first", sentence(2)),
        ("second", sentence(3)),
    ]
    assert gather_turns({**first, "turn_": 5}, "turn_") == {**first, "turn_": 5}
    assert gather_turns(first, "turn_")["turns"] == 3


def test_numbered_measures_and_numbers_with_gaps_are_no_turns() -> None:
    scores = {f"score_{n}": n for n in (1, 2, 3)} | {f"label_{n}": "good" for n in (1, 2, 3)}
    gaps = {f"message_{n}": {"content": sentence(n)} for n in (1, 3, 4)}
    late = {f"message_{n}": {"content": sentence(n)} for n in (7, 8, 9)}
    assert [stem_in([record]) for record in (scores, gaps, late)] == [None, None, None]
    talk = {f"message_{n}": {"content": sentence(n)} for n in (1, 2, 3)}
    assert stem_in([talk, scores, scores]) is None and stem_in([talk, talk, scores]) == "message_"


def test_a_flag_of_a_tools_message_says_whether_it_failed(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for flag, status in ((True, "failed"), (False, "succeeded"), (None, None)):
        answer = {"role": "tool", "tool_call_id": "c1", "content": "a page", "error": flag}
        talk = [{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": [call]}, answer]
        run = one("chat", write_lines(tmp_path / "chat.jsonl", {"id": "s", "messages": talk}))
        assert [e.status for e in run.events if e.kind == "action"] == [status]


def test_a_question_alone_in_its_list_has_its_reply_beside_it(tmp_path: Path) -> None:
    rows = [
        {"id": f"q{n}", "messages": [{"role": "user", "content": sentence(n)}], "response": sentence(n + 1)}
        for n in range(3)
    ]
    first = read_by_draft(as_lines(tmp_path / "asked.jsonl", rows))[0]
    assert outline(first.events) == [("user", "message", sentence(0)), ("assistant", "message", sentence(1))]
    assert first.tags == {}


def test_steps_with_what_came_of_them_come_before_a_chat_that_has_it_as_a_users_words(tmp_path: Path) -> None:
    """As SWE-agent keeps both."""
    steps = [
        {
            "action": "ls -a\n",
            "observation": sentence(2),
            "response": sentence(1),
            "thought": sentence(1),
            "state": {},
        },
        {
            "action": "edit 1:2\nx",
            "observation": "Traceback (most recent call last):\nKeyError: 1",
            "response": sentence(3),
        },
        {
            "action": "submit",
            "observation": "diff",
            "response": sentence(4),
            "thought": sentence(4),
            "state": {},
        },
    ]
    chat = [
        {"role": "system", "content": sentence(5), "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": sentence(6), "agent": "main", "message_type": "demonstration"},
        {"role": "user", "content": sentence(7), "agent": "main", "message_type": "observation"},
        {
            "role": "assistant",
            "content": sentence(1),
            "thought": sentence(1),
            "action": "ls -a\n",
            "agent": "main",
        },
        {"role": "user", "content": sentence(2), "agent": "main", "message_type": "observation"},
    ]
    for number in range(2):
        run = {
            "environment": "main",
            "trajectory": steps,
            "history": chat,
            "info": {"exit_status": "submitted"},
        }
        as_json(tmp_path / f"runs/repo__{number}.traj", run)
    first = read_by_draft(tmp_path / "runs")[0]
    assert outline(first.events) == [
        ("user", "message", sentence(7)),
        ("agent", "action", "ls"),
        ("agent", "action", "edit"),
        ("agent", "action", "submit"),
    ]
    assert [event.status for event in first.events] == [None, None, "failed", None]
    assert [event.text for event in first.events[1:]] == [sentence(1), sentence(3), sentence(4)]


def test_what_was_liked_less_is_read_where_nothing_like_it_stands_beside_it(tmp_path: Path) -> None:
    chat = [{"role": ("user", "assistant")[n % 2], "content": sentence(n)} for n in range(4)]
    notes = [{"text": sentence(5)}, {"text": sentence(6)}]
    talks = [{"id": f"s{n}", "rejected": chat, "comments": notes} for n in range(3)]
    first = read_by_draft(as_lines(tmp_path / "talks.jsonl", talks))[0]
    assert [event.text for event in first.events] == [one["content"] for one in chat]


def test_what_people_say_in_a_chat_comes_before_steps_beside_it(tmp_path: Path) -> None:
    chat = [{"role": ("user", "assistant")[n % 2], "content": f"That is ok. {sentence(n)}"} for n in range(6)]
    steps = [{"action": "search", "result": "2 trains"}, {"action": "book", "result": "ok"}]
    talks = [{"id": f"s{n}", "messages": chat, "tool_log": steps} for n in range(3)]
    first = read_by_draft(as_lines(tmp_path / "talks.jsonl", talks))[0]
    assert [event.text for event in first.events] == [one["content"] for one in chat]


def test_tokens_of_a_model_call_are_counted_under_the_names_of_its_sides(tmp_path: Path) -> None:
    """As Langfuse exports traces."""
    runs = []
    for n in range(2):
        fields = {
            "id": "g1",
            "startTime": "2026-01-02T10:00:01Z",
            "usage": {"input": 10, "output": 5, "total": 15},
        }
        call = {
            "type": "GENERATION",
            "name": "llm",
            "input": [{"role": "user", "content": sentence(n)}],
            **fields,
        }
        tool = {"type": "TOOL", "id": "t1", "name": "look", "input": {"a": 1}, "output": "red", "usage": None}
        runs.append({"id": f"t{n}", "observations": [{**call, "output": sentence(9)}, tool]})
    (run, _) = read_by_draft(as_lines(tmp_path / "traces.jsonl", runs))
    (agent,) = (one for one in run.participants if one.kind == "agent")
    assert agent.tokens == {"prompt_tokens": 10, "completion_tokens": 5}


def test_commands_in_a_history_are_actions_and_what_follows_each_is_its_result(tmp_path: Path) -> None:
    """As SWE-agent keeps it, where the model has no calls."""
    seen, run = (
        {"role": "user", "message_type": "observation"},
        {"role": "assistant", "message_type": "action"},
    )
    wrong = "Traceback (most recent call last):\nValueError: no"
    history = [
        {"role": "system", "content": "Be kind.", "message_type": "system_prompt"},
        {**seen, "content": sentence(0)},
        {**run, "content": f"{sentence(1)}\n```\nls -l\n```", "thought": sentence(1), "action": "ls -l\n"},
        {**seen, "content": [{"type": "text", "text": "a.py"}]},
        {**run, "content": sentence(2), "thought": "", "action": "python a.py"},
        {**seen, "content": wrong},
        {**run, "content": sentence(3), "thought": sentence(3), "action": ""},
        {**seen, "content": sentence(4)},
    ]
    as_json(tmp_path / "i1.traj", {"history": history})
    as_json(tmp_path / "i2.traj", {"history": history[:-1]})
    first = next(one for one in read_by_draft(tmp_path) if one.source.endswith("i1.traj"))
    assert outline(first.events) == [
        ("environment", "start", "Be kind."),
        ("user", "message", sentence(0)),
        ("assistant", "message", sentence(1)),
        ("assistant", "action", "ls"),
        ("assistant", "message", sentence(2)),
        ("assistant", "action", "python"),
        ("assistant", "message", sentence(3)),
        ("user", "message", sentence(4)),
    ]
    assert first.events[3].action and first.events[3].action.arguments == {"command": "ls -l"}
    assert [*first.states.values()] == [{"observation": "a.py"}, {"observation": wrong}]
    assert first.events[5].status == "failed"


def test_commands_of_one_word_are_actions_of_a_history_and_results_of_named_calls_stay(
    tmp_path: Path,
) -> None:
    seen = {"role": "user", "message_type": "observation"}
    run = {"role": "assistant", "message_type": "action"}
    function = {"name": "look", "arguments": "{}"}
    history = [
        {**seen, "content": sentence(0)},
        {**run, "content": sentence(1), "thought": sentence(1), "action": "ls"},
        {**seen, "content": "a.py"},
        {"role": "assistant", "content": sentence(2), "tool_calls": [{"id": "c1", "function": function}]},
        {**seen, "content": sentence(3)},
        {"role": "tool", "tool_call_id": "c1", "content": "red"},
    ]
    (session,) = read_by_draft(as_json(tmp_path / "i1.traj", {"history": history}))
    assert outline(session.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "message", sentence(1)),
        ("assistant", "action", "ls"),
        ("assistant", "message", sentence(2)),
        ("assistant", "action", "look"),
        ("user", "message", sentence(3)),
    ]
    assert [*session.states.values()] == [{"observation": "a.py"}, {"observation": "red"}]


def test_a_request_in_parts_is_what_was_asked(tmp_path: Path) -> None:
    ask = [{"role": "user", "content": [{"type": "text", "text": sentence(9)}]}]
    run = {"steps": [{"action": "ls", "observation": "a.py"}], "history": ask}
    request = '[trajectory]\nrequest = "history[0].content"\n'
    mapping = f'{request}[constants]\nrole = "agent"\n[event]\naction = "steps[].action"\n'
    session = one("mapped", as_lines(tmp_path / "runs.jsonl", [run]), map=mapping)
    assert outline(session.events) == [("user", "message", sentence(9)), ("agent", "action", "ls")]


@pytest.mark.parametrize("is_bare", [False, True])
def test_actions_and_observations_are_calls_and_results_and_what_nobody_says_is_left_out(
    tmp_path: Path, is_bare: bool
) -> None:
    """As OpenHands kept its events before its software agent SDK."""
    ended = {"content": "no such file", "extras": {"metadata": {"exit_code": 1}}, "success": False}
    fields: list[dict[str, object]] = [
        {"source": "agent", "action": "system", "args": {"content": "Be kind."}},
        {"source": "user", "action": "message", "args": {"content": sentence(0)}},
        {"source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
        {"source": "user", "action": "recall", "args": {"query": sentence(0), "thought": ""}},
        {
            "source": "agent",
            "action": "run",
            "args": {"command": "ls", "thought": sentence(1), "blocking": False},
        },
        {"source": "agent", "observation": "run", "cause": 4, **ended},
        {"source": "agent", "action": "write", "args": {"path": "a.py"}},
        {"source": "agent", "observation": "user_rejected", "cause": 6, "content": "not there"},
        {
            "source": "agent",
            "action": "finish",
            "args": {"final_thought": sentence(2), "task_completed": "true"},
        },
        {"source": "agent", "action": "delegate", "args": {"agent": "BrowsingAgent"}},
    ]
    events = [
        {"id": n, "timestamp": f"2026-01-02T10:00:0{n}", "message": "", **one} for n, one in enumerate(fields)
    ]
    path = as_json(tmp_path / "run.json", events if is_bare else {"instance_id": "i1", "history": events})
    (run,) = read_by_draft(path)
    assert outline(run.events) == [
        ("environment", "start", "Be kind."),
        ("user", "message", sentence(0)),
        ("agent", "message", sentence(1)),
        ("agent", "action", "run"),
        ("agent", "action", "write"),
        ("user", "confirm_reject", None),
        ("user", "message", "not there"),
        ("agent", "message", sentence(2)),
        ("agent", "action", "finish"),
        ("agent", "action", "delegate"),
    ]
    assert run.agent != "BrowsingAgent"
    assert (run.events[3].status, run.events[3].error) == ("failed", "no such file")
    assert run.events[3].action and run.events[3].action.arguments == {"command": "ls"}
    assert not run.outcomes


@pytest.mark.parametrize("is_bare", [False, True])
def test_steps_keep_their_calls_beside_the_models_whole_answer_and_say_why_they_failed(
    tmp_path: Path, is_bare: bool
) -> None:
    """As smolagents gives all of its memory."""
    function = {"name": "python_interpreter", "arguments": "print(1)"}
    call = {"id": "c1", "type": "function", "function": function}
    answer = {"role": "assistant", "content": sentence(9), "tool_calls": None}
    told = {"role": "user", "content": [{"type": "text", "text": sentence(8)}]}
    more = {
        "model_input_messages": [told, {**told, "role": "assistant"}],
        "model_output_message": answer,
        "timing": {"end_time": 1767348005.0},
    }
    no_call = {"model_output": None, "tool_calls": None, "error": {"message": "no answer"}}
    steps = [
        {"system_prompt": sentence(7)},
        {"task": sentence(0), "task_images": None},
        {"plan": sentence(1), **more},
        {"step_number": 1, "model_output": sentence(2), "tool_calls": [call], "observations": "1", **more},
        {
            "step_number": 2,
            "model_output": sentence(3),
            "tool_calls": [call],
            "error": {"message": "no"},
            **more,
        },
        {"step_number": 3, **no_call, **more},
    ]
    path = as_json(tmp_path / "run.json", steps if is_bare else {"steps": steps})
    (run,) = read_by_draft(path)
    assert outline(run.events) == [
        ("environment", "start", sentence(7)),
        ("user", "message", sentence(0)),
        ("assistant", "message", sentence(1)),
        ("assistant", "message", sentence(2)),
        ("assistant", "action", "python_interpreter"),
        ("assistant", "message", sentence(3)),
        ("assistant", "action", "python_interpreter"),
        ("environment", "note", "no answer"),
    ]
    results = [(event.status, event.error) for event in run.events[4:7:2]]
    assert results == [(None, None), ("failed", "no")]
    assert (run.events[7].status, run.events[7].error) == ("failed", "no answer")
    assert run.events[2].time == "2026-01-02T10:00:05+00:00"


def test_a_list_of_steps_may_begin_with_what_was_asked_and_have_one_without_a_call(tmp_path: Path) -> None:
    """As smolagents keeps the steps of a run."""
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "python_interpreter", "arguments": "print(1)"},
    }
    steps = [
        {"task": sentence(0), "task_images": None},
        {"step_number": 1, "model_output": sentence(1), "tool_calls": None, "error": {"message": "no code"}},
        {"step_number": 2, "model_output": sentence(2), "tool_calls": [call], "observations": "1"},
    ]
    runs = [{"run": n, "steps": steps} for n in range(2)]
    first = read_by_draft(as_lines(tmp_path / "runs.jsonl", runs))[0]
    assert outline(first.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "message", sentence(1)),
        ("environment", "note", "no code"),
        ("assistant", "message", sentence(2)),
        ("assistant", "action", "python_interpreter"),
    ]
    assert first.events[2].status == "failed"


@pytest.mark.parametrize("cut", [False, True])
def test_a_conversation_beside_the_one_that_is_read_is_told(tmp_path: Path, cut: bool) -> None:
    def talk(answer: int) -> object:
        if cut:
            turns = (("Human", 0), ("Assistant", 1), ("Human", 2), ("Assistant", answer))
            return "".join(f"\n\n{who}: {sentence(what)}" for who, what in turns)
        return [{"role": "user", "content": sentence(0)}, {"role": "assistant", "content": sentence(answer)}]

    rows = [{"n": n, "chosen": talk(3), "rejected": talk(4)} for n in range(4)]
    seen = survey_logs(as_lines(tmp_path / "preferences.jsonl", rows))
    assert (
        "rejected holds a conversation, too, beside chosen, and is left out: a mapping of its own reads one "
        f"([{'turns' if cut else 'messages'}] at)"
    ) in open_questions(seen, guess_mapping(seen))


def _event(number: int, source: str, kind: str, **fields: object) -> dict[str, object]:
    time = f"2025-11-03T10:00:{number:02}.000100"
    return {"id": f"e{number}", "timestamp": time, "source": source, "kind": kind, **fields}


def _log() -> list[dict[str, object]]:
    """Events as OpenHands' software agent SDK keeps them."""

    def text(words: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": words}]

    def call(number: int, name: str, thought: str, **action: object) -> dict[str, object]:
        arguments = json.dumps(action)
        mark = {"tool_name": name, "tool_call_id": f"c{number}"}
        made = {"id": f"c{number}", "name": name, "arguments": arguments, "origin": "completion"}
        words = text(thought) if thought else []
        return _event(
            number,
            "agent",
            "ActionEvent",
            thought=words,
            action={"kind": "X", **action},
            tool_call=made,
            **mark,
        )

    def came(number: int, of: int, name: str, **seen: object) -> dict[str, object]:
        mark = {"tool_name": name, "tool_call_id": f"c{of}"}
        return _event(number, "environment", "ObservationEvent", observation={"kind": "X", **seen}, **mark)

    def message(number: int, source: str, role: str, words: str) -> dict[str, object]:
        return _event(number, source, "MessageEvent", llm_message={"role": role, "content": text(words)})

    denied = {"tool_name": "bash", "tool_call_id": "c8", "rejection_reason": "Not that."}
    return [
        _event(
            0, "agent", "SystemPromptEvent", system_prompt={"type": "text", "text": sentence(0)}, tools=[]
        ),
        message(1, "user", "user", sentence(1)),
        call(2, "bash", sentence(2), command="ls"),
        came(3, 2, "bash", content=text("a.py"), is_error=False, exit_code=0),
        call(4, "edit", "", path="a.py"),
        came(5, 4, "edit", content=text("No match"), is_error=True),
        call(6, "bash", "", command="false"),
        _event(7, "agent", "AgentErrorEvent", error="No such tool", tool_name="bash", tool_call_id="c6"),
        call(8, "bash", "", command="rm a.py"),
        _event(9, "environment", "UserRejectObservation", action_id="e8", **denied),
        call(10, "finish", "", message=sentence(3)),
        came(11, 10, "finish", content=text(sentence(3)), is_error=False),
        _event(12, "environment", "Condensation", forgotten_event_ids=["e2"], summary=sentence(4)),
        _event(13, "environment", "ConversationStateUpdateEvent", key="execution_status", value="finished"),
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "ChatEvent", "role": "user", "content": "Hello"},
        {"kind": "ChatEvent", "text": "Hello"},
        {"kind": "message", "tool_name": "t", "tool_call_id": "c", "role": "tool", "content": "Hello"},
    ],
)
def test_what_is_said_in_events_of_other_logs_is_kept(given: dict[str, object]) -> None:
    told = dialects.messages({"id": 1, "source": "user", **given})
    assert told and "Hello" in json.dumps(told)


def test_an_unknown_event_in_a_list_costs_no_call_and_is_told(tmp_path: Path) -> None:
    unknown = {"id": "e99", "source": "environment", "kind": "Weather", "rain": True}
    path = as_lines(tmp_path / "out.jsonl", [{"instance_id": "i1", "history": [*_log(), unknown]}])
    (wrong, session) = preview([path], ReadOptions(map=draft(path).text), "mapped")
    assert isinstance(wrong, Quarantined) and f"history[{len(_log())}]" in wrong.reason
    whole = as_lines(tmp_path / "whole/out.jsonl", [{"instance_id": "i1", "history": _log()}])
    (expected,) = read_by_draft(whole)
    assert isinstance(session, Trajectory) and outline(session.events) == outline(expected.events)


@pytest.mark.parametrize("lines", [False, True])
def test_events_of_an_agents_conversation_are_its_messages_calls_and_answers(
    tmp_path: Path, lines: bool
) -> None:
    if lines:
        as_lines(tmp_path / "runs/one.jsonl", _log())
        as_lines(tmp_path / "runs/two.jsonl", [{**event, "id": f"{event['id']}b"} for event in _log()])
    else:
        as_lines(tmp_path / "runs/out.jsonl", [{"instance_id": f"i{n}", "history": _log()} for n in range(2)])
    runs = read_by_draft(tmp_path / "runs")
    assert len(runs) == 2
    assert [(p.name, p.kind) for p in runs[0].participants if p.kind != "environment"] == [
        ("user", "human"),
        ("assistant", "agent"),
    ]
    assert [(e.actor, e.kind, e.action.name if e.action else e.text, e.status) for e in runs[0].events] == [
        ("environment", "start", sentence(0), None),
        ("user", "message", sentence(1), None),
        ("assistant", "message", sentence(2), None),
        ("assistant", "action", "bash", "succeeded"),
        ("assistant", "action", "edit", "failed"),
        ("assistant", "action", "bash", "failed"),
        ("assistant", "action", "bash", None),
        ("user", "confirm_reject", None, None),
        ("user", "message", "Not that.", None),
        ("assistant", "message", sentence(3), None),
        ("assistant", "action", "finish", "succeeded"),
    ]
    assert runs[0].events[2].time == "2025-11-03T10:00:02.000100"


def test_all_items_that_came_back_are_the_reply(tmp_path: Path) -> None:
    call: dict[str, object] = {"type": "function_call", "call_id": "c", "name": "timetable"}
    text = [{"type": "output_text", "text": sentence(2)}]
    sent: list[dict[str, object]] = [{"role": "user", "content": sentence(0)}]
    back: list[dict[str, object]] = [
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": text},
        call,
    ]
    came = {"type": "function_call_output", "call_id": "c", "output": "At two."}
    rows = [
        {"id": "1", "request": {"input": sent}, "response": {"output": back}},
        {"id": "2", "request": {"input": [*sent, *back, came]}, "response": {"output": back[1:]}},
    ]
    (session,) = read_by_draft(as_lines(tmp_path / "calls.jsonl", rows))
    answer = [("assistant", "message", sentence(2)), ("assistant", "action", "timetable")]
    assert outline(session.events) == [("user", "message", sentence(0)), *answer, *answer]
    (alone,) = read_by_draft(as_json(tmp_path / "call.json", {"id": "1", "input": sent, "output": back}))
    assert outline(alone.events) == [("user", "message", sentence(0)), *answer]


@pytest.mark.parametrize("told", ["Never book a train unasked. " * 99, {"parts": [{"text": "Never book."}]}])
def test_what_agents_were_told_beside_the_messages_is_their_state(tmp_path: Path, told: object) -> None:
    talk = [{"role": role, "parts": [{"text": sentence(n)}]} for n, role in enumerate(("user", "model"))]
    path = as_json(tmp_path / "run.json", {"request": {"system": told, "contents": talk}})
    (run,) = read_by_draft(path)
    assert run.states[run.events[0].states["assistant"]] == {"system": told}
    (bare,) = read_by_draft(as_json(tmp_path / "bare.json", {"request": {"contents": talk}}))
    assert [event.digest() for event in run.events] == [event.digest() for event in bare.events]


def test_the_name_of_a_system_beside_the_messages_is_not_what_it_was_told(tmp_path: Path) -> None:
    talk = [{"role": role, "content": sentence(n)} for n, role in enumerate(("user", "assistant"))]
    path = as_lines(tmp_path / "runs.jsonl", [{"system": name, "turns": talk} for name in ("red", "blue")])
    assert draft(path).guess.briefing is None


def test_a_turn_of_an_image_alone_is_a_message(tmp_path: Path) -> None:
    image = {"mimeType": "image/png", "data": "iVBORw0KGgo="}
    parts: list[tuple[str, dict[str, object]]] = [
        ("user", {"text": sentence(0)}),
        ("model", {"text": sentence(1)}),
        ("user", {"inlineData": image}),
        ("model", {"text": sentence(2)}),
        ("user", {"fileData": {"mimeType": "image/png", "fileUri": "gs://b/a.png"}}),
    ]
    log = {"contents": [{"role": role, "parts": [part]} for role, part in parts]}
    (run,) = read_by_draft(as_json(tmp_path / "run.json", log))
    assert [event.text for event in run.events] == [
        sentence(0),
        sentence(1),
        "[inlineData]",
        sentence(2),
        "[fileData]",
    ]


def test_a_reply_in_parts_is_found_where_a_response_has_several_to_choose_from(tmp_path: Path) -> None:
    def message(role: str, *parts: object) -> dict[str, object]:
        return {"role": role, "parts": parts}

    call = {"functionCall": {"name": "look", "args": {"n": 1}}}
    asked = [message("user", {"text": sentence(0)})]
    later = [
        *asked,
        message("model", {"text": "I should look first.", "thought": True}, call),
        message("user", {"functionResponse": {"response": {"ok": True}}}),
    ]
    rows = [
        {"sent": json.dumps({"contents": sent}), "back": json.dumps({"candidates": [{"content": back}]})}
        for sent, back in ((asked, later[1]), (later, message("model", {"text": sentence(1)})))
    ]
    path = as_lines(tmp_path / "calls.jsonl", rows)
    assert draft(path).guess.reply == "back.candidates[0].content"
    (session,) = read_by_draft(path)
    assert outline(session.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "action", "look"),
        ("assistant", "message", sentence(1)),
    ]


def test_a_name_of_a_role_makes_a_field_the_speakers_though_none_comes_again(tmp_path: Path) -> None:
    names = ("user", "writer", "critic")
    log = [{"source": who, "content": sentence(n), "type": "TextMessage"} for n, who in enumerate(names)]
    (first,) = read_by_draft(as_json(tmp_path / "run.json", {"messages": log}))
    assert [(p.name, p.kind) for p in first.participants] == [
        *(("user", "human"), ("writer", "agent"), ("critic", "agent")),
    ]


def test_the_session_of_messages_is_named_where_other_records_have_none(tmp_path: Path) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": sentence(0)}]}
    rows = [{"sessionId": "s1", "message": message}, {"sessionId": "s1", "message": message}]
    first = read_by_draft(as_lines(tmp_path / "a.jsonl", [{"summary": "Trains"}, *rows]))[0]
    assert first.native_id == "s1"


def test_a_number_that_each_file_begins_anew_is_its_events_and_a_file_is_a_session(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    begins = [
        {"id": 0, "speaker": "user", "text": sentence(0)},
        {"id": 1, "speaker": "assistant", "text": sentence(1)},
    ]
    ends = [
        {"id": 2, "speaker": "user", "text": sentence(2)},
        {"id": 5, "speaker": "assistant", "text": sentence(3)},
    ]
    as_lines(tmp_path / "runs" / "a.jsonl", begins)
    as_lines(tmp_path / "runs" / "b.jsonl", begins + ends)
    as_lines(tmp_path / "runs" / "c.jsonl", ends)
    assert sorted(len(run.events) for run in read_by_draft(tmp_path / "runs")) == [2, 2, 4]
    (tmp_path / "days").mkdir()
    for day, ids in (("1", (7, 9, 7, 9)), ("2", (9, 3, 3, 9))):
        lines = [
            {"id": n, "speaker": "user", "text": f"{sentence(n % 4)} {day}.{k}"} for k, n in enumerate(ids)
        ]
        as_lines(tmp_path / "days" / f"{day}.jsonl", lines)
    assert {run.native_id for run in read_by_draft(tmp_path / "days")} == {"7", "9", "3"}, (
        "its id tells a session"
    )


def test_a_number_orders_events_where_nearly_all_have_it_once_and_times_agree(tmp_path: Path) -> None:
    def seq(*numbers: int | None, down: bool = False) -> str | None:
        lines = [
            {
                "session": f"s{n}",
                "speaker": ("user", "assistant")[turn % 2],
                "text": f"{sentence(turn)} {turn}",
                "time": 1.7e9 + 60 * (-turn if down else turn),
                "turn": turn // 2,
                "range": {"index": number},
            }
            for n in range(3)
            for turn, number in enumerate(numbers)
        ]
        made = draft(as_lines(tmp_path / "log.jsonl", lines)).guess
        assert sum(len(run.events) for run in read_by_draft(tmp_path / "log.jsonl")) == len(lines)
        return str(made.event["seq"]) if "seq" in made.event else None

    assert seq(0, 1, 2, 3, 5, 8) == "range.index"
    assert seq(0, None, None, 3, 5, None) is None, "most have none"
    assert seq(0, 1, 2, 2, 3, 4) is None, "two of a session have one number"
    assert seq(4, 1, 5, 0, 2, 3) is None, "times say another order"
    assert seq(0, 1, 2, 3, 4, 5, down=True) is None, "the latest stands first"


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("epoch_ms", [1_700_000_000_000 + 1000 * n for n in range(8)]),
        ("zeit", [f"13.03.2024 14:0{n}" for n in range(8)]),
        ("moment", [f"2026-01-02T10:00:0{n}" for n in range(8)]),
    ],
)
def test_times_and_sessions_under_names_that_do_not_tell_are_told_by_their_values(
    tmp_path: Path, name: str, times: list[object]
) -> None:
    def rows(groups: str, key: str = "room_id") -> list[dict[str, object]]:
        return [
            {
                key: group,
                "speaker": ("Ada", "HelperBot")[n % 2],
                "message": f"{sentence(n % 4)} {n}",
                name: times[n],
            }
            for n, group in enumerate(groups)
        ]

    path = as_lines(tmp_path / "log.jsonl", rows("aaaabbbb"))
    first, second = read_by_draft(path)
    assert len(first.events) == len(second.events) == 4
    assert all(event.time is not None for event in (*first.events, *second.events))
    made = draft(path)
    doubts = " ".join(open_questions(made.survey, made.guess))
    assert "room_id is taken for the session" in doubts and f"{name} is taken for the time" in doubts
    assert "no field" not in doubts
    for groups, key in (("abababab", "team"), ("aaaabbbb", "phase")):
        made = draft(as_lines(tmp_path / f"{key}.jsonl", rows(groups, key)))
        assert made.guess.native_id == [], "sides of one session, or parts of it"
        assert f"if one does; {key} may (2 values)" in " ".join(open_questions(made.survey, made.guess))
    times.reverse()
    made = draft(as_lines(tmp_path / "falling.jsonl", rows("aaaabbbb")))
    assert "time" not in made.guess.event, "no clock runs backwards"


def test_sentences_without_spaces_are_what_was_said_whatever_their_field_is_called(tmp_path: Path) -> None:
    words = ("请帮我预订火车票", "好的,您要去哪里呢", "我想去北京看看", "已经为您订好了")
    talks = [
        {"对话": [{"角色": ("用户", "助手")[n % 2], "内容": f"{text}{k}"} for n, text in enumerate(words)]}
        for k in range(3)
    ]
    first = read_by_draft(as_json(tmp_path / "talks.json", talks))[0]
    assert outline(first.events)[:2] == [
        ("用户", "message", "请帮我预订火车票0"),
        ("助手", "message", "好的,您要去哪里呢0"),
    ]
    assert [(p.name, p.kind) for p in first.participants] == [("用户", "human"), ("助手", "agent")]
    alone = [{"n": k, "内容": f"{text}{k}"} for k in range(3) for text in words]
    made = draft(as_lines(tmp_path / "alone.jsonl", alone))
    assert made.guess.shape == "nothing"
    assert "if 内容 is what somebody said" in " ".join(open_questions(made.survey, made.guess))
    codes = [{"log": [{"by": "user", "x": f"A{k}{n}"} for n in range(3)]} for k in range(3)]
    assert draft(as_json(tmp_path / "codes.json", codes)).guess.shape == "nothing", "codes are no sentences"


def test_a_list_with_the_latest_first_is_read_from_its_end(tmp_path: Path) -> None:
    def spoken(role: str, n: int) -> dict[str, object]:
        part = {"type": "text", "text": sentence(n)}
        return {"role": role, "created_at": 1772359200 - 20 * n, "content": [part]}

    thread = {"data": [spoken("user", 0), spoken("assistant", 1), spoken("assistant", 1), spoken("user", 2)]}
    (first,) = read_by_draft(as_json(tmp_path / "thread.json", thread))
    assert [event.text for event in first.events] == [sentence(2), sentence(1), sentence(1), sentence(0)]
    for times in (
        ("2026-01-02", "2026-01-01", "2026-01-03"),  # in no order
        ("2026-01-02", "2026-01-01"),  # too few to tell
        ("2026-01-01T10:00:03Z", "2026-01-01T10:00:02Z", "2026-01-01T10:00:01Z"),  # clocks that are apart
        (120, 90, 60),  # what is left
    ):
        log = [{"who": "user", "text": sentence(n), "time": time} for n, time in enumerate(times)]
        mapping = '[event]\nrole = "log[].who"\ntext = "log[].text"\ntime = "log[].time"\n'
        path = as_json(tmp_path / "log.json", {"log": log})
        (session,) = preview([path], ReadOptions(map=mapping), "mapped")
        assert isinstance(session, Trajectory)
        assert [event.text for event in session.events] == [sentence(n) for n in range(len(times))]


def test_texts_of_a_list_that_say_who_speaks_are_theirs(tmp_path: Path) -> None:
    talks = [{"talk": [f"{who}: {sentence(n)}" for n, who in enumerate(names)]} for names in ("AABB", "BAB")]
    talks[0]["talk"].append("Evening: sleep\nCost: 20")
    path = as_json(tmp_path / "talks.json", talks * 3)
    path.write_text(path.read_text().replace("A: ", "Human: ").replace("B: ", "Robot: "))
    sessions = read_by_draft(path)
    assert [event.actor for event in sessions[0].events] == ["Human", "Human", "Robot", "Robot", "Evening"]
    assert outline(sessions[1].events)[0] == ("Robot", "message", sentence(0))
    assert {(p.name, p.kind) for p in sessions[1].participants} == {("Human", "human"), ("Robot", "agent")}


def test_texts_of_a_list_that_begin_with_other_words_are_what_they_were(tmp_path: Path) -> None:
    notes = [sentence(0), f"Note: {sentence(1)}", sentence(2), f"Also: {sentence(3)}", f"Note: {sentence(4)}"]
    tags = [f"{tag}: {n}" for n, tag in enumerate(("topic", "lang") * 3)]
    for name, texts in (("notes", notes), ("tags", tags)):
        lists = [{"talk": texts}] * 2
        assert len(read_by_draft(as_json(tmp_path / f"{name}.json", lists))[0].events) == len(texts)
        assert not guess_mapping(survey_logs(tmp_path / f"{name}.json")).patterns
    mapping = """
        [event]
        role = "talk[].who"
        text = "talk[].text"
        [turns]
        at = "talk"
        pattern = '^(?P<who>Bot|User): '
        first = "environment"
        [roles]
        Bot = "agent"
        User = "human"
        """
    talk = ["Begin.", "User: Go.", "Bot: A plan.\nUser: root", "and more"]
    path = as_json(tmp_path / "talk.json", {"talk": talk})
    (session,) = preview([path], ReadOptions(map=mapping), "mapped")
    assert isinstance(session, Trajectory)
    assert [(event.actor, event.text) for event in session.events] == [
        *(("environment", "Begin."), ("User", "Go."), ("Bot", "A plan.\nUser: root"), ("Bot", "and more")),
    ]


def test_a_name_within_the_author_is_the_speakers_and_no_type_of_message(tmp_path: Path) -> None:
    names = ("ann", "HelperBot", "ann", "bob")
    log = [
        {"type": ("Default", "Reply")[n % 2], "content": sentence(n)}
        | {"author": {"name": who, "isBot": who == "HelperBot"}}
        for n, who in enumerate(names)
    ]
    (first,) = read_by_draft(as_json(tmp_path / "channel.json", {"messages": log}))
    assert {p.name: p.kind for p in first.participants} == {
        "ann": "human",
        "HelperBot": "agent",
        "bob": "human",
    }


def test_a_field_that_few_events_have_is_not_who_speaks(tmp_path: Path) -> None:
    rows = [
        {"session_id": "s", "event": "user_message", "data": {"text": sentence(0)}},
        {"session_id": "s", "event": "tool_call", "data": {"name": "search"}},
        {"session_id": "s", "event": "agent_message", "data": {"text": sentence(1)}},
        {"session_id": "s", "event": "user_message", "data": {"text": sentence(2)}},
    ]
    (first,) = read_by_draft(as_lines(tmp_path / "stream.jsonl", rows))
    assert outline(first.events)[::2] == [
        ("user_message", "message", sentence(0)),
        ("agent_message", "message", sentence(1)),
    ]


def test_a_name_that_half_of_the_events_have_is_that_of_what_was_done(tmp_path: Path) -> None:
    trackers = [
        {
            "sender": f"u{n}",
            "events": [
                {"event": "action", "name": "listen"},
                {"event": "user", "text": f"{sentence(n)}, please."},
                {"event": "action", "name": "utter_day"},
                {"event": "bot", "text": sentence(n + 1)},
                *([{"event": "slot", "name": "day"}] if n == 2 else []),
            ],
        }
        for n in range(3)
    ]
    runs = read_by_draft(as_json(tmp_path / "tracker.json", trackers))
    assert outline(runs[0].events) == [
        ("bot", "action", "listen"),
        ("user", "message", f"{sentence(0)}, please."),
        ("bot", "action", "utter_day"),
        ("bot", "message", sentence(1)),
    ]
    assert {(p.name, p.kind) for p in runs[2].participants} == {
        *(("bot", "agent"), ("user", "human"), ("slot", "environment")),
    }


def test_what_an_event_is_called_is_nobodys_name_where_another_field_has_one(tmp_path: Path) -> None:
    for kind in ("event", "event_type", "kind"):
        names = ("message", "edit", "message", "message")
        rows = [
            {"session": "s", "name": ("Ada", "Bot")[n % 2], kind: name, "text": sentence(n)}
            for n, name in enumerate(names)
        ]
        (first,) = read_by_draft(as_lines(tmp_path / f"{kind}.jsonl", rows))
        assert {p.name for p in first.participants} == {"Ada", "Bot"}
        pairs = [
            {"id": n, "question": sentence(n), "answer": sentence(n + 1), kind: "ab"[n % 2]} for n in range(4)
        ]
        assert guess_mapping(survey_logs(as_lines(tmp_path / f"pairs_{kind}.jsonl", pairs))).shape == "pairs"


def test_what_came_of_an_action_is_said_by_nobody(tmp_path: Path) -> None:
    asked = {"n": 0, "source": "user", "action": "message", "args": {"content": sentence(0)}}
    done = [{"n": n, "source": "agent", "action": "run", "args": {"command": "ls"}} for n in (1, 3)]
    came = [{"n": n, "source": "agent", "observation": "run", "content": "a.py"} for n in (2, 4)]
    events = [asked, done[0], came[0], done[1], came[1]]
    (first,) = read_by_draft(as_json(tmp_path / "events.json", events))
    assert [(event.actor, event.kind) for event in first.events] == [
        *(("user", "message"), ("agent", "action"), ("agent", "action")),
    ]
    assert [first.states[event.states["public"]] for event in first.events[1:]] == [
        {"observation": "a.py"}
    ] * 2


def test_columns_of_any_language_are_told_by_what_stands_in_them(tmp_path: Path) -> None:
    rows = [
        {"Gruppe": "xy"[n // 4], "Sitzung": "ABCD"[n // 2], "Wer": ("Teilnehmer", "Assistent")[n % 2]}
        | {"Was": sentence(n), "Wann": f"{13 + n}.03.2024 10:00"}
        for n in range(8)
    ]
    path = as_lines(tmp_path / "tabelle.jsonl", rows)
    sessions = read_by_draft(path)
    assert [session.native_id for session in sessions] == ["A", "B", "C", "D"]
    assert [(p.name, p.kind) for p in sessions[0].participants] == [
        *(("Teilnehmer", "human"), ("Assistent", "agent")),
    ]
    assert [(event.time, event.text) for event in sessions[3].events] == [
        *(("2024-03-19T10:00:00", sentence(6)), ("2024-03-20T10:00:00", sentence(7))),
    ]
    assert "no column's name says what it is" in draft(path).text
    for n, who in enumerate((("Teilnehmer",) * 8, "fmfmmfmf", ("pass", "fail") * 4)):  # no talk
        answers = [row | {"Wer": one} for row, one in zip(rows, who, strict=True)]
        assert (
            guess_mapping(survey_logs(as_lines(tmp_path / f"answers{n}.jsonl", answers))).shape == "nothing"
        )


def test_times_of_any_country_are_read_and_doubtful_ones_told(tmp_path: Path) -> None:
    def rows(*times: str) -> list[dict[str, str]]:
        return [{"session": "s", "role": "user", "text": sentence(n), "time": t} for n, t in enumerate(times)]

    path = as_lines(tmp_path / "us.jsonl", rows("03/31/2024 1:05 PM", "03/12/2024 9:00 AM"))
    (first,) = read_by_draft(path)
    assert [event.time for event in first.events] == ["2024-03-12T09:00:00", "2024-03-31T13:05:00"]
    assert "may be written" not in draft(path).text
    for times, formats in (
        (("03/04/2024 13:05", "03/05/2024 09:00"), "%m/%d/%Y %H:%M or as %d/%m/%Y %H:%M"),
        (("26/03/31 23:58", "26/04/01 00:01"), "%d/%m/%y %H:%M or as %y/%m/%d %H:%M"),
    ):
        path = as_lines(tmp_path / "either.jsonl", rows(*times))
        assert f"time may be written as {formats}: map it" in draft(path).text
        assert [event.time for event in read_by_draft(path)[0].events] == [None, None]


@pytest.mark.parametrize(
    ("times", "moments"),
    [
        (
            ("Monday, March 2, 2026 at 9:05:00\u202fAM UTC", "Monday, March 2, 2026 at 12:01:00\u202fPM UTC"),
            ("2026-03-02T09:05:00+00:00", "2026-03-02T12:01:00+00:00"),
        ),
        (
            ("Mon, 02 Mar 2026 09:05:00 +0100", "Mon, 02 Mar 2026 12:01:00 +0100"),
            ("2026-03-02T09:05:00+01:00", "2026-03-02T12:01:00+01:00"),
        ),
        (
            ("Mon, 02 Mar 2026 09:05:00 GMT", "Mon, 02 Mar 2026 12:01:00 GMT"),
            ("2026-03-02T09:05:00+00:00", "2026-03-02T12:01:00+00:00"),
        ),
        (
            ("Mon Mar 02 09:05:00 +0000 2026", "Mon Mar 02 12:01:00 +0000 2026"),
            ("2026-03-02T09:05:00+00:00", "2026-03-02T12:01:00+00:00"),
        ),
        (
            ("Mon Mar  2 09:05:00 2026", "Mon Mar  2 12:01:00 2026"),
            ("2026-03-02T09:05:00", "2026-03-02T12:01:00"),
        ),
    ],
    ids=["Google Chat", "mail", "HTTP", "Twitter", "C"],
)
def test_times_with_the_day_of_the_week_are_read(
    tmp_path: Path, times: tuple[str, str], moments: tuple[str, str]
) -> None:
    rows = [
        {"session": "s", "role": role, "text": sentence(n), "time": time}
        for n, (role, time) in enumerate(zip(("user", "assistant"), times, strict=True))
    ]
    (talk,) = read_by_draft(as_lines(tmp_path / "talk.jsonl", rows))
    assert tuple(event.time for event in talk.events) == moments


def test_texts_without_a_clock_are_compared_with_no_format_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def is_written(text: str, pattern: str) -> bool:
        tries.append(pattern)
        return False

    monkeypatch.setattr(names, "_is_written", is_written)
    assert names.time_formats(["s0", "1", "What now?"]) == [] == tries
    assert names.time_formats(["Mon, 02 Mar 2026 09:05:00 GMT"]) == []
    assert 0 < len(tries) < 250


def test_a_time_with_this_machines_zone_is_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    time.tzset()
    try:
        rows = [
            {"session": "s", "role": role, "text": sentence(n), "time": f"Mon, 02 Feb 2026 10:0{n}:00 EST"}
            for n, role in enumerate(("user", "assistant"))
        ]
        (talk,) = read_by_draft(as_lines(tmp_path / "talk.jsonl", rows))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [event.time for event in talk.events] == [f"2026-02-02T10:0{n}:00-05:00" for n in range(2)]


@pytest.mark.parametrize("flag", ["isSidechain", "isCompactSummary"])
def test_messages_that_may_be_no_part_of_the_talk_are_told(tmp_path: Path, flag: str) -> None:
    part = [{"type": "text", "text": sentence(0)}]
    rows = [{"message": {"role": "user", "content": part}, flag: n == 0, "n": n} for n in range(3)]
    path = as_lines(tmp_path / "a.jsonl", rows)
    text = draft(path).text
    line = f'skip = [{{ "{flag}" = true }}]'
    assert (
        f"{flag} is true of 1: if they are no part of the talk, leave them out with [filter] {line}" in text
    )
    (session,) = preview([path], ReadOptions(map=f"{text}\n[filter]\n{line}\n"), "mapped")
    assert isinstance(session, Trajectory) and len(session.events) == 2


def test_what_no_person_said_under_their_role_is_the_environments_and_each_helper_a_session(
    tmp_path: Path,
) -> None:
    """As Claude Code logs a session, and the agents at work for it in files of their own."""

    def line(number: int, role: str, content: object, **fields: object) -> dict[str, object]:
        message = {"role": role, "content": content, **({"model": "m-1"} if role == "assistant" else {})}
        return {"sessionId": "s1", "type": role, "uuid": f"u{number}", "message": message, **fields}

    result = [{"type": "tool_result", "tool_use_id": "c1", "content": "two files"}]
    call = [{"type": "tool_use", "id": "c1", "name": "Task", "input": {}}]
    words = [{"type": "text", "text": sentence(1)}]
    as_lines(
        tmp_path / "runs/s1.jsonl",
        [
            line(0, "user", sentence(0)),
            line(1, "user", sentence(2), isMeta=True),
            line(2, "assistant", call),
            line(3, "user", sentence(3), isSidechain=True),
            line(4, "user", result, isSidechain=False),
            line(5, "user", sentence(4), isCompactSummary=True),
            line(6, "assistant", words),
            line(
                7, "assistant", words, message={"role": "assistant", "content": words, "model": "<synthetic>"}
            ),
        ],
    )
    for name in "ab":
        helper = {"isSidechain": True, "agentId": name}
        rows = [line(0, "user", sentence(3), **helper), line(1, "assistant", words, **helper)]
        as_lines(tmp_path / f"runs/agent-{name}.jsonl", rows)
    sessions = {one.native_id: one for one in read_by_draft(tmp_path / "runs")}
    assert sorted(sessions) == ["agent-a", "agent-b", "s1"]
    assert outline(sessions["s1"].events) == [
        ("user", "message", sentence(0)),
        ("environment", "note", sentence(2)),
        ("assistant", "action", "Task"),
        ("environment", "note", sentence(3)),
        ("environment", "note", sentence(4)),
        *[("assistant", "message", sentence(1))] * 2,
    ]
    assert sessions["s1"].agent_model == "m-1"
    assert [*sessions["s1"].states.values()] == [{"observation": "two files"}]
    assert outline(sessions["agent-a"].events) == [
        ("environment", "start", sentence(3)),
        ("assistant", "message", sentence(1)),
    ]


@pytest.mark.parametrize("is_mixed", [False, True])
def test_sessions_keep_their_names_where_a_helpers_file_lies_beside_files_called_otherwise(
    tmp_path: Path, is_mixed: bool
) -> None:
    """A session in two files, and a file of two sessions."""

    def line(session: str, role: str, words: str, **fields: object) -> dict[str, object]:
        message = {"role": role, "content": [{"type": "text", "text": words}]}
        return {"sessionId": session, "type": role, "uuid": words, "message": message, **fields}

    talks = [
        [line(name, "user", f"{sentence(n)} {name}"), line(name, "assistant", f"{sentence(n + 1)} {name}")]
        for n, name in ((0, "s1"), (2, "s2" if is_mixed else "s1"))
    ]
    helper = {"isSidechain": True, "agentId": "a"}
    as_lines(
        tmp_path / "agent-a.jsonl",
        [line("s1", "user", sentence(4), **helper), line("s1", "assistant", sentence(5), **helper)],
    )
    files = {"all": talks[0] + talks[1]} if is_mixed else {"one": talks[0], "two": talks[1]}
    for name, rows in files.items():
        as_lines(tmp_path / f"{name}.jsonl", rows)
    sessions = [one for one in read_by_draft(tmp_path) if not one.source.endswith("agent-a.jsonl")]
    assert [one.native_id for one in sessions] == (["s1", "s2"] if is_mixed else ["s1", "s1"])
    assert [len(one.events) for one in sessions] == [2, 2]


def test_a_flag_of_a_log_that_is_not_claude_codes_takes_no_words_from_a_person(tmp_path: Path) -> None:
    roles = ("user", "assistant", "tool", "user")
    rows = [
        {"session_id": "s1", "isMeta": True, "message": {"role": role, "content": sentence(n)}}
        for n, role in enumerate(roles)
    ]
    (session,) = read_by_draft(as_lines(tmp_path / "a.jsonl", rows))
    assert [event.actor for event in session.events] == ["user", "assistant", "environment", "user"]


def test_a_cue_with_two_voices_is_a_turn_of_each(tmp_path: Path) -> None:
    path = tmp_path / "meeting.vtt"
    path.write_text(
        "WEBVTT\n\n00:00:01.000 --> 00:00:03.000\n<v Ada>Can we start?</v>\n\n"
        "00:00:03.500 --> 00:00:05.000\n<v Ada>Good.</v>\n<v Bot>Right.</v>\n\n"
        "00:00:06.000 --> 00:00:07.000\n<v Bot>Go on.</v>\n"
    )
    (meeting,) = read_by_draft(path)
    assert [(event.actor, event.text) for event in meeting.events] == [
        ("Ada", "Can we start?"),
        ("Ada", "Good."),
        ("Bot", "Right."),
        ("Bot", "Go on."),
    ]


def test_a_line_of_a_chat_with_an_invisible_mark_is_the_words_of_who_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "_chat.txt"
    path.write_text(
        "[1/2/26, 10:01:05\u202fAM] Ada von Ulm: Can you book\na train?\n3/2/26 9:00 - the talk is at: Ulm\n"
        "[1/2/26, 1:02:00\u202fPM] ~\u202fTripBot: When?\n"
        "\u200e[1/2/26, 1:03:00\u202fPM] Ada von Ulm: \u200eimage omitted\n"
        "[1/2/26, 1:03:30\u202fPM] \u200eAda von Ulm added Cem\n"
        "[1/13/26, 1:04:00\u202fPM] +49\u00a0170\u00a01234567: Done\n"
        "[1/13/26, 1:05:00\u202fPM] ~\u202fTripBot: At 9.\n",
        encoding="utf-8",
    )
    (session,) = read_by_draft(path)
    assert [(event.actor, event.time, event.text) for event in session.events] == [
        (
            "Ada von Ulm",
            "2026-01-02T10:01:05",
            "Can you book\na train?\n3/2/26 9:00 - the talk is at: Ulm",
        ),
        ("TripBot", "2026-01-02T13:02:00", "When?"),
        ("Ada von Ulm", "2026-01-02T13:03:00", "\u200eimage omitted"),
        ("environment", "2026-01-02T13:03:30", "\u200eAda von Ulm added Cem"),
        ("+49\u00a0170\u00a01234567", "2026-01-13T13:04:00", "Done"),
        ("TripBot", "2026-01-13T13:05:00", "At 9."),
    ]


def test_what_a_chat_tells_of_its_people_is_nobodys_words_and_names_may_have_pictures(tmp_path: Path) -> None:
    """As WhatsApp exports a group on Android."""
    path = tmp_path / "chat.txt"
    lines = [
        "13.3.26, 9:00 - Messages are encrypted.",
        "13.3.26, 9:01 - Ada 🙂: To Ulm?",
        "13.3.26, 9:02 - Bob: When",
        "at: nine?",
        "13.3.26, 9:03 - Bob added Cem",
        "13.3.26, 9:04 - Ada 🙂 changed the subject to “Ulm: now”",
        "13.3.26, 9:05 - Cem: At ten.",
        "13.3.26, 9:06 - Bob left",
        "13.3.26, 9:07 - Ada 🙂: Fine.",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    (session,) = read_by_draft(path)
    assert outline(session.events) == [
        ("environment", "note", "Messages are encrypted."),
        ("Ada 🙂", "message", "To Ulm?"),
        ("Bob", "message", "When\nat: nine?"),
        ("environment", "note", "Bob added Cem"),
        ("environment", "note", "Ada 🙂 changed the subject to “Ulm: now”"),
        ("Cem", "message", "At ten."),
        ("environment", "note", "Bob left"),
        ("Ada 🙂", "message", "Fine."),
    ]
    assert session.events[3].time == "2026-03-13T09:03:00"


def test_a_name_alone_behind_a_time_speaks_the_lines_below(tmp_path: Path) -> None:
    """As DiscordChatExporter writes a channel."""
    turns = [("_ada.7", "To Ulm: when?"), ("Trip Bot#0001", "At nine.\nOr: ten."), ("_ada.7", "Fine.")]
    marks = ("", "", " (pinned)")
    texts = [f"[13/03/2026 09:0{n} AM] {name}{marks[n]}\n{words}\n" for n, (name, words) in enumerate(turns)]
    path = tmp_path / "channel.txt"
    path.write_text("\n".join(["Guild: Trips", "Channel: ulm\n", *texts]), encoding="utf-8")
    (session,) = read_by_draft(path)
    assert outline(session.events)[1:] == [(name, "message", words) for name, words in turns]
    assert session.events[1].time == "2026-03-13T09:00:00"


def test_names_of_contacts_may_be_any_words(tmp_path: Path) -> None:
    names = ["Ada left Home", "42 Tom", "Tom & Jerry", "Maria José de la Cruz", "李雷 🦄"]
    turns = [(name, f"Bob left: {n}") for n, name in enumerate([*names, *names])]
    lines = [f"13/3/26, 9:{n} - {name}: {words}" for n, (name, words) in enumerate(turns, 10)]
    path = tmp_path / "chat.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    (session,) = read_by_draft(path)
    assert outline(session.events) == [(name, "message", words) for name, words in turns]


def test_lines_of_a_list_that_nobody_said_leave_its_draft(tmp_path: Path) -> None:
    said = [f"13.3.26, 9:0{n} - {('User', 'Assistant')[n % 2]}: {sentence(n)}" for n in range(6)]
    (session,) = read_by_draft(as_json(tmp_path / "a.json", {"log": ["13.3.26, 9:00 - Encrypted.", *said]}))
    assert outline(session.events)[:2] == [
        ("environment", "note", "Encrypted."),
        ("User", "message", sentence(0)),
    ]
    assert [event.actor for event in session.events[1:]] == ["User", "Assistant"] * 3


def test_a_table_of_western_windows_is_drafted_with_its_encoding(tmp_path: Path) -> None:
    rows = "".join(f"s{n // 2};{('user', 'bot')[n % 2]};Schöne Grüße {n}\n" for n in range(4))
    path = tmp_path / "a.csv"
    path.write_bytes(f"session;speaker;message\n{rows}".encode("cp1252"))
    assert [event.text for event in read_by_draft(path)[1].events] == ["Schöne Grüße 2", "Schöne Grüße 3"]
    assert "no UTF-8, and read as cp1252" in draft(path).text
    whole = f"session;speaker;message\n{rows}".encode()
    for content in (
        whole,
        whole.replace("ü".encode(), b"\xc3", 1),
        f"session;speaker;message\n{rows}".encode("cp1251", "replace"),
    ):
        path.write_bytes(content)
        assert "encoding" not in draft(path).text


def test_a_call_under_the_name_of_its_event_is_the_agents(tmp_path: Path) -> None:
    given = ("user_message", "tool_call", "tool_call_output", "assistant_message")
    fields = (
        {"content": sentence(0)},
        {"tool": "ls", "args": {"at": "."}},
        {"tool": "ls", "output": sentence(1)},
        {"content": sentence(2)},
    )
    rows = [
        {"session": f"s{n}", "at": f"2026-02-03T10:00:0{k}Z", "type": kind, **fields[k]}
        for n in range(3)
        for k, kind in enumerate(given)
    ]
    first = read_by_draft(as_lines(tmp_path / "stream.jsonl", rows))[0]
    assert [(event.actor, event.kind) for event in first.events] == [
        *(("user_message", "message"), ("assistant_message", "action"), ("assistant_message", "message")),
    ]
    assert [s["observation"] for s in first.states.values()] == [sentence(1)]  # type: ignore[index, call-overload]
    assert {p.name for p in first.participants if p.kind == "agent"} == {"assistant_message"}


def test_a_call_that_stands_beside_a_messages_role_is_not_lost(tmp_path: Path) -> None:
    call = {"content": None, "tool_name": "ls", "tool_args": {"at": "."}}
    talk: list[dict[str, object]] = [
        {"role": "user", "content": sentence(0), "tool_name": None},
        {"role": "assistant", **call},
        {"role": "tool", "content": sentence(1)},
        {"role": "assistant", "content": sentence(2)},
    ]
    rows = [{"session_id": f"s{n}", **one} for n in range(3) for one in talk]
    lists = [{"id": f"s{n}", "messages": talk} for n in range(3)]
    for path in (as_lines(tmp_path / "rows.jsonl", rows), as_json(tmp_path / "lists.json", lists)):
        first = read_by_draft(path)[0]
        assert [(event.actor, event.kind) for event in first.events] == [
            *(("user", "message"), ("assistant", "action"), ("assistant", "message")),
        ]
        assert [e.action.arguments for e in first.events if e.action] == [{"at": "."}]


def test_a_call_that_is_all_of_a_text_is_the_agents(tmp_path: Path) -> None:
    """As sets of talks with tools have it that know but a speaker and a value."""
    call = json.dumps({"name": "ls", "arguments": {"at": "."}})
    turns = (
        ("human", sentence(0)),
        ("function_call", call),
        ("observation", sentence(1)),
        ("gpt", sentence(2)),
    )
    talk = [{"from": who, "value": value} for who, value in turns]
    path = as_json(tmp_path / "talks.json", [{"id": f"s{n}", "conversations": talk} for n in range(3)])
    first = read_by_draft(path)[0]
    assert [(event.actor, event.kind) for event in first.events] == [
        *(("human", "message"), ("gpt", "action"), ("gpt", "message")),
    ]
    assert [e.action for e in first.events if e.action] == [
        Action(name="ls", arguments={"at": "."}, raw=None),
    ]


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        (["Änne: Guten Morgen", "Олег: Да", "Änne: Zwölf Uhr?", "Bot: 好的", "Олег: Хорошо"], [None] * 5),
        (["小明：你好", "机器人：你好", "小明：订票", "机器人：好的"], [None] * 4),
        (
            [
                "[12.05.23, 14:03:11] Änne: Plan",
                "[12.05.23, 14:03:40] Олег: Да",
                "[13.05.23, 9:04:02] Bot: ok",
            ],
            ["2023-05-12T14:03:11", "2023-05-12T14:03:40", "2023-05-13T09:04:02"],
        ),
        (
            ["2024-05-12 14:03 Ada: Hi", "2024-05-12 14:04 Bot: Yes", "2024-05-12 14:05 Ada: Fine"],
            ["2024-05-12 14:03", "2024-05-12 14:04", "2024-05-12 14:05"],
        ),
    ],
)
def test_turns_of_a_text_are_told_by_names_in_any_script_and_have_their_times(
    tmp_path: Path, lines: list[str], times: list[str | None]
) -> None:
    path = tmp_path / "chat.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    (session,) = read_by_draft(path)
    assert [event.time for event in session.events] == times
    assert all(event.actor in line for event, line in zip(session.events, lines, strict=True))
    assert all(line.endswith(event.text or "?") for event, line in zip(session.events, lines, strict=True))


def test_a_clock_without_a_day_is_no_time_and_the_draft_says_so(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text("[14:03] Ada: Hi\n[14:04] Bot: Yes\n[14:05] Ada: Fine\n[14:06] Bot: Good\n")
    made = draft(path)
    assert "time" not in made.guess.event
    assert any("date and time that can be read" in line for line in open_questions(made.survey, made.guess))


def test_beside_one_chat_bot_stand_people(tmp_path: Path) -> None:
    said = [("Ada", "Hi"), ("Ben", "Hello"), ("HelpBot", "What now?"), ("Ada", "A room"), ("Ben", "Yes")]
    rows = [{"session": f"s{n}", "speaker": who, "text": what} for n in range(3) for who, what in said]
    sessions = read_by_draft(write_lines(tmp_path / "chat.jsonl", *rows))
    kinds = {one.name: one.kind for one in sessions[0].participants}
    assert kinds == {"Ada": "human", "Ben": "human", "HelpBot": "agent"}


def test_a_tree_of_answers_is_read_from_its_root_along_the_way_to_which_most_was_said(tmp_path: Path) -> None:
    def turn(role: str, text: str, *replies: dict[str, object]) -> dict[str, object]:
        return {"role": role, "text": text, "tags": [], "replies": list(replies)}

    short = turn("assistant", "Ask somebody else.")
    long = turn("assistant", sentence(1), turn("prompter", sentence(2), turn("assistant", sentence(3))))
    trees = [
        {"tree": f"t{n}", "prompt": turn("prompter", f"{n} {sentence(0)}", short, long)} for n in range(3)
    ]
    path = as_json(tmp_path / "trees.json", trees)
    first = read_by_draft(path)[0]
    assert [(event.actor, event.text) for event in first.events] == [
        *(
            ("prompter", f"0 {sentence(0)}"),
            ("assistant", sentence(1)),
            ("prompter", sentence(2)),
            ("assistant", sentence(3)),
        )
    ]
    made = draft(path)
    assert [line for line in open_questions(made.survey, made.guess) if "rival answers" in line]
    for tree in trees:
        tree["prompt"] = turn("prompter", sentence(0), long)
    made = draft(as_json(tmp_path / "alone" / "trees.json", trees))
    assert not [line for line in open_questions(made.survey, made.guess) if "rival answers" in line]


@pytest.mark.parametrize("order", ["written", "backwards", "given_up_last"])
@pytest.mark.parametrize("left", ["c", None])
def test_of_a_tree_the_branch_is_read_at_which_it_was_left_whatever_the_order_of_its_keys(
    tmp_path: Path, order: str, left: str | None
) -> None:
    told = [("a", "r", "user", "Hi"), ("old", "a", "assistant", "What?"), ("b", "a", "assistant", "Hello.")]
    told.append(("c", "b", "user", "Bye"))
    nodes: dict[str, object] = {"r": {"message": None, "parent": None}}
    for n, (name, parent, role, text) in enumerate(told):
        message = {"author": {"role": role}, "create_time": 1.7e9 + n, "content": {"parts": [text]}}
        nodes[name] = {"message": message, "parent": parent}
    orders = {
        "written": [*nodes],
        "backwards": [*reversed(nodes)],
        "given_up_last": ["r", "a", "b", "c", "old"],
    }
    tree = {name: nodes[name] for name in orders[order]}
    chats = [{"id": f"c{n}", "chat": {"tree": tree, "current_node": left}} for n in range(2)]
    first = read_by_draft(as_json(tmp_path / "chats.json", chats))[0]
    assert [e.text for e in first.events] == ["Hi", "Hello.", "Bye"]


def test_a_tree_that_was_left_at_an_earlier_branch_is_read_to_there(tmp_path: Path) -> None:
    def node(parent: str | None, role: str, text: str, at: int) -> dict[str, object]:
        message = {"author": {"role": role}, "create_time": 1.7e9 + at, "content": {"parts": [text]}}
        return {"message": message, "parent": parent}

    tree = {"a": node(None, "user", "Hi", 0), "b": node("a", "assistant", "Hello.", 1)}
    chats = [
        {"id": f"c{n}", "tree": {**tree, "new": node("a", "assistant", "What?", 2)}, "current_node": "b"}
        for n in range(2)
    ]
    first = read_by_draft(as_json(tmp_path / "chats.json", chats))[0]
    assert [e.text for e in first.events] == ["Hi", "Hello."]


def test_named_agents_of_langchain_make_calls_that_fail(tmp_path: Path) -> None:
    call = {"name": "search", "args": {"q": "Ulm"}, "id": "c1", "type": "tool_call"}
    block = {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "Ulm"}}
    for content in ("", [{"type": "text", "text": sentence(1)}, block]):
        messages = [
            {"type": "human", "content": sentence(0), "name": None},
            {"type": "ai", "content": content, "name": "planner", "tool_calls": [call]},
            {"type": "tool", "content": "rate limited", "name": "search", "tool_call_id": "c1"}
            | {"status": "error"},
            {"type": "ai", "content": sentence(2), "name": "critic", "tool_calls": []},
        ]
        path = as_json(tmp_path / "state.json", {"values": {"messages": messages}})
        (found,) = read_by_draft(path)
        people = [("user", "human"), ("planner", "agent"), ("critic", "agent")]
        assert [(p.name, p.kind) for p in found.participants] == people
        (action,) = [event for event in found.events if event.action]
        assert (action.actor, action.action) == ("planner", Action(name="search", arguments={"q": "Ulm"}))
        assert (action.status, action.error) == ("failed", "rate limited")
        assert [e.text for e in found.events if e.text] == [
            sentence(0),
            *[sentence(1)][: bool(content)],
            sentence(2),
        ]


@pytest.mark.parametrize("count", [1, 3])
def test_a_request_with_the_parts_of_its_answer_is_a_turn_of_each(tmp_path: Path, count: int) -> None:
    """As an editor exports a chat: what came back are pieces of a text, names of files, and calls."""
    called = {"kind": "toolInvocationSerialized", "toolId": "read_file", "toolCallId": "t1"}
    back = [
        {"kind": "thinking", "value": "Which list?"},
        {"value": "Look into ", "supportThemeIcons": False},
        {"kind": "inlineReference", "inlineReference": {"name": "a.py"}},
        {"value": "."},
        {**called, "invocationMessage": {"value": "Reading a.py"}},
        {"kind": "functionCall", "functionCall": {"name": "write_file", "args": {}}},
        {"value": "Done."},
    ]
    requests = [
        {
            "requestId": f"r{n}",
            "message": {"text": sentence(n), "parts": [{"kind": "text", "text": sentence(n)}]},
            "response": back,
            "agent": {"id": "editor.default", "name": "Helper"},
            "timestamp": 1716200000000 + n,
        }
        for n in range(count)
    ]
    path = as_json(tmp_path / "chat.json", {"requesterUsername": "ada", "requests": requests})
    (found,) = read_by_draft(path)
    assert [(p.name, p.kind) for p in found.participants] == [("user", "human"), ("Helper", "agent")]
    assert outline(found.events[:4]) == [
        ("user", "message", sentence(0)),
        ("Helper", "message", "Look into a.py."),
        ("Helper", "action", "read_file"),
        ("Helper", "action", "write_file"),
    ]
    assert (found.events[4].text, len(found.events)) == ("Done.", 5 * count)


def test_messages_that_say_by_their_type_who_speaks_keep_their_calls_and_how_they_ended(
    tmp_path: Path,
) -> None:
    def call(name: str, status: str, response: dict[str, object] | None) -> dict[str, object]:
        back = [{"functionResponse": {"id": name, "name": name, "response": response}}]
        return {"id": name, "name": name, "args": {"n": 1}, "status": status, "result": response and back}

    calls = [
        call("look", "success", {"output": "a.txt"}),
        call("open", "error", {"error": "denied"}),
        call("save", "error", None),
        call("stop", "cancelled", {"output": "cancelled"}),
    ]
    told: list[tuple[str, str, dict[str, object]]] = [
        ("user", sentence(0), {}),
        ("gemini", sentence(1), {"thoughts": [{"subject": "Plan"}], "toolCalls": calls}),
        ("info", sentence(2), {}),
        ("gemini", "", {"toolCalls": calls[:1]}),
        ("user", sentence(3), {}),
    ]
    messages = [
        {"id": str(n), "timestamp": f"2026-01-01T09:0{n}:00Z", "type": who, "content": text, **more}
        for n, (who, text, more) in enumerate(told)
    ]
    path = as_json(tmp_path / "session.json", {"sessionId": "s1", "messages": messages})
    (session,) = read_by_draft(path)
    assert outline(session.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "message", sentence(1)),
        *(("assistant", "action", name) for name in ("look", "open", "save", "stop")),
        ("environment", "note", sentence(2)),
        ("assistant", "action", "look"),
        ("user", "message", sentence(3)),
    ]
    actions = [event for event in session.events if event.action is not None]
    assert [event.status for event in actions] == ["succeeded", "failed", "failed", None, "succeeded"]
    assert actions[1].error == "denied"
    assert session.states[actions[0].states["public"]] == {"observation": {"output": "a.txt"}}


def test_the_end_of_a_caption_s_tag_is_nothing_that_was_said(tmp_path: Path) -> None:
    cues = [
        f"{n + 1}\n00:00:0{n}.000 --> 00:00:0{n}.900\n<v {('Ada', 'Bot')[n % 2]}>Say <b>{n}</b></v>"
        for n in range(4)
    ]
    path = tmp_path / "call.vtt"
    path.write_text("WEBVTT\n\n" + "\n\n".join(cues) + "\n", encoding="utf-8")
    (found,) = read_by_draft(path)
    said_ = [event.text for event in found.events if event.kind == "message"]
    assert said_ == [f"Say <b>{n}</b>" for n in range(4)]


def test_captions_say_neither_their_header_nor_notes_ids_and_times_and_a_cue_without_a_name_goes_on(
    tmp_path: Path,
) -> None:
    shown = [
        "<v Ada>First.</v>",
        "Then.",
        "<v Bot>Yes.</v>",
        "<v Ada>So\nbe it.</v>",
        "<v.loud Bot>Done.</v>",
    ]
    cues = [f"9f-{n}/a b\n00:00:0{n}.000 --> 00:00:0{n}.900\n{text}" for n, text in enumerate(shown)]
    blocks = ["WEBVTT - a call\nKind: captions", "NOTE language: en", *cues[:3], "NOTE\nno word", *cues[3:]]
    path = tmp_path / "call.vtt"
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    (found,) = read_by_draft(path)
    assert [(event.actor, event.text) for event in found.events] == [
        ("Ada", "First.\nThen."),
        ("Bot", "Yes."),
        ("Ada", "So\nbe it."),
        ("Bot", "Done."),
    ]
    assert "environment" not in {person.kind for person in found.participants}


def test_what_is_no_cue_of_captions_is_kept(tmp_path: Path) -> None:
    cues = [f"00:0{n}.000 --> 00:0{n}.900\n{('Ada', 'Bot')[n % 2]}: Part {n}." for n in range(4)]
    blocks = ["Before.", "WEBVTT", *cues, "A line.", "3\n00:09.000 --> 00:09.900\nAnother."]
    path = tmp_path / "call.vtt"
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    (found,) = read_by_draft(path)
    told = [event.text for event in found.events]
    assert told == ["Before.", "Part 0.", "Part 1.", "Part 2.", "Part 3.\n\nA line.\nAnother."]


def test_an_id_of_an_object_in_the_only_record_is_no_sessions(tmp_path: Path) -> None:
    turns = [{"role": ("user", "assistant")[n % 2], "content": sentence(n)} for n in range(4)]
    path = as_json(tmp_path / "chat.json", {"icon": {"id": "bot"}, "server": {"name": "Lab"}, "log": turns})
    assert "native_id" not in draft(path).guess.head
    assert not draft(path).guess.native_id
    path = as_json(tmp_path / "other.json", {"session": {"id": "s1"}, "log": turns})
    assert draft(path).guess.native_id == ["session.id"]


def _steps(session: str, *acts: dict[str, object]) -> list[dict[str, object]]:
    """A request, actions in turn, and thanks, a line each."""
    asked = {"session": session, "speaker": "user", "text": sentence(0)}
    thanked = {"session": session, "speaker": "user", "text": sentence(2)}
    done = [{"session": session, "speaker": "assistant", **act} for act in acts]
    return [{**asked}, *done, {**thanked}]


def test_a_flag_on_the_last_action_is_what_the_session_came_to_and_the_draft_says_so(tmp_path: Path) -> None:
    rows = [
        row
        for n in range(12)
        for row in _steps(
            f"s{n}", {"action": "look"}, {"action": "edit"}, {"action": "submit", "success": n % 2 == 0}
        )
    ]
    made = draft(write_lines(tmp_path / "log.jsonl", *rows))
    assert made.guess.outcomes == {"success": "success"} and "status" not in made.guess.event
    assert any(
        "taken for what the session came to" in line for line in open_questions(made.survey, made.guess)
    )


def test_sessions_of_one_name_in_two_files_are_ordered_each_by_its_own_numbers(tmp_path: Path) -> None:
    for name in "ab":
        turns = [
            {
                "session_id": n // 6 + 1,
                "turn": n % 6,
                "speaker": ("user", "bot")[n % 2],
                "text": f"{name}{n} ok",
            }
            for n in range(12)
        ]
        write_lines(tmp_path / f"{name}.jsonl", *reversed(turns))
    assert draft(tmp_path).guess.event["seq"] == "turn"
    for session in read_by_draft(tmp_path):
        assert [event.seq for event in session.events] == [0, 1, 2, 3, 4, 5]


def test_what_a_team_did_below_its_manager_are_no_rival_answers(tmp_path: Path) -> None:
    workers = [
        {"role": who, "text": sentence(n), "children": []} for n, who in enumerate(("coder", "tester"))
    ]
    runs = [
        {"run": f"r{n}", "root": {"role": "manager", "text": sentence(3), "children": workers}}
        for n in range(3)
    ]
    first = read_by_draft(as_json(tmp_path / "runs.json", runs))[0]
    assert [event.actor for event in first.events] == ["coder", "tester"]


def test_tools_beside_a_bot_are_no_people_and_where_somebody_is_no_session(tmp_path: Path) -> None:
    turns = [("Bot", "kitchen"), ("search_api", "kitchen"), ("db", "hall"), ("Bot", "hall"), ("db", "hall")]
    rows = [{"speaker": who, "room": room, "text": sentence(n)} for n, (who, room) in enumerate(turns)]
    (found,) = read_by_draft(write_lines(tmp_path / "log.jsonl", *rows))
    assert {one.kind for one in found.participants} == {"agent"}


def test_lines_with_another_colon_in_an_answer_are_no_turns(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text(
        "User: When?\nAssistant: So:\n时间：早上\n价格：十\nUser: Fine.\nAssistant: 时间：晚上\n",
        encoding="utf-8",
    )
    (session,) = read_by_draft(path)
    assert [event.actor for event in session.events] == ["User", "Assistant", "User", "Assistant"]


def test_sessions_that_a_file_divides_into_several_lists_are_all_read(tmp_path: Path) -> None:
    def session(name: str) -> dict[str, object]:
        talk = [{"role": "user", "content": sentence(0)}, {"role": "assistant", "content": sentence(1)}]
        return {"id": name, "messages": talk}

    whole = {"train": [session("a"), session("b")], "dev": [], "test": [session("c")], "notes": [{"id": "n"}]}
    path = as_json(tmp_path / "set.json", whole)
    found = read_by_draft(path)
    assert [(one.native_id, one.tags) for one in found] == [
        *(("a", {"key": "train"}), ("b", {"key": "train"}), ("c", {"key": "test"})),
    ]
    assert draft(path).survey.sessions == ["train", "test"]


def test_lists_of_sessions_with_a_gap_or_by_name_are_read_and_others_are_told(tmp_path: Path) -> None:
    turns = [{"role": side, "content": sentence(n)} for n, side in enumerate(("user", "assistant"))]
    some = [{"id": f"d{n}", "messages": turns} for n in range(6)]
    other = [{"dialogue": "x", "turns": turns, "gold": 1, "split": "t"}]
    for whole in (
        {"train": [*some[:3], None], "test": some[3:], "more": other},
        {"train": {"a": some[0], "b": some[1], "c": some[2]}, "test": {"d": some[3]}, "more": other},
    ):
        made = draft(as_json(tmp_path / "all.json", whole))
        assert made.survey.sessions == ["train", "test"]
        told = [one for one in open_questions(made.survey, made.guess) if "at more: if they" in one]
        assert len(told) == 1


def test_messages_with_parts_and_calls_are_no_sessions_of_their_own(tmp_path: Path) -> None:
    call = {"id": "c1", "function": "send", "args": {"to": "Ada"}}
    said_in = [{"type": "text", "content": sentence(0)}]
    talk = [
        {"role": "user", "content": said_in},
        {"role": "assistant", "content": said_in, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": said_in, "error": None},
    ]
    (found,) = read_by_draft(as_json(tmp_path / "run.json", {"messages": talk, "score": 0.5, "model": "m-1"}))
    assert {one.name: one.value for one in found.outcomes} == {"score": 0.5}
    assert (found.agent_model, len(found.events)) == ("m-1", 3)


def test_files_of_one_event_each_are_told(tmp_path: Path) -> None:
    for n, who in enumerate(("user", "agent", "user")):
        as_json(tmp_path / "events" / f"{n}.json", {"id": n, "source": who, "message": sentence(n)})
    made = draft(tmp_path)
    assert any("each file holds one event" in doubt for doubt in open_questions(made.survey, made.guess))


def test_answers_of_several_models_are_theirs_and_a_list_of_names_is_nothing_said(tmp_path: Path) -> None:
    rows = [
        {"instruction": sentence(n), "models": ["m-1", "m-2"]}
        | {"completions": [{"model": f"m-{m}", "response": sentence(n + m)} for m in (1, 2)]}
        for n in range(3)
    ]
    first = read_by_draft(as_lines(tmp_path / "answers.jsonl", rows))[0]
    assert [(p.name, p.kind) for p in first.participants] == [
        *(("user", "human"), ("m-1", "agent"), ("m-2", "agent")),
    ]
    assert [e.text for e in first.events] == [sentence(0), sentence(1), sentence(2)]


def test_single_words_are_said_where_their_list_says_so(tmp_path: Path) -> None:
    rows = [{"id": f"d{n}", "turns": ["Hello", "Hi", "Yes", "Goodbye"]} for n in range(3)]
    first = read_by_draft(as_lines(tmp_path / "talks.jsonl", rows))[0]
    assert [e.text for e in first.events] == ["Hello", "Hi", "Yes", "Goodbye"]


def test_the_id_of_a_message_is_nothing_said(tmp_path: Path) -> None:
    rows = [
        {"group_id": f"g{n // 3}", "message_id": f"g{n // 3}-abcdefgh-{n}", "message_type": "MESSAGE"}
        | {"original_text": ("hi", "the 2?", "yes")[n % 3]}
        for n in range(9)
    ]
    assert draft(as_lines(tmp_path / "log.jsonl", rows)).guess.event.get("text") != "message_id"


def test_records_of_a_message_each_keep_the_calls_in_their_contents(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "search", "arguments": '{"q": "Ulm"}'}
    answer = {"call_id": "c1", "name": "search", "content": "no network", "is_error": True}
    log = [
        {"source": "user", "content": sentence(0), "type": "TextMessage"},
        {"source": "surfer", "content": [call], "type": "ToolCallRequestEvent"},
        {"source": "surfer", "content": [answer], "type": "ToolCallExecutionEvent"},
        {"source": "surfer", "content": "I wonder why.", "type": "ThoughtEvent"},
        {"source": "surfer", "content": sentence(1)[:9], "type": "ModelClientStreamingChunkEvent"},
        {"source": "surfer", "content": sentence(1), "type": "TextMessage"},
        {"source": "surfer", "content": "no network", "tool_calls": [call], "type": "ToolCallSummaryMessage"},
        {"source": "coder", "result": {"exit_code": 1, "output": "no disk"}, "type": "CodeExecutionEvent"},
    ]
    (found,) = read_by_draft(path := as_lines(tmp_path / "run.jsonl", log))
    made = draft(path)
    assert [
        one
        for one in open_questions(made.survey, made.guess)
        if one.startswith("no field tells sessions apart")
    ]
    assert outline(found.events) == [
        ("user", "message", sentence(0)),
        ("surfer", "action", "search"),
        ("surfer", "message", sentence(1)),
        ("surfer", "message", "no network"),
        ("coder", "action", "code_execution"),
    ]
    assert (found.events[1].status, found.events[1].error) == ("failed", "no network")
    assert (found.events[4].status, found.events[4].error) == ("failed", "no disk")


@pytest.mark.parametrize("has_events", [False, True])
def test_a_summarys_calls_count_once_and_parallel_results_are_their_own_calls(
    tmp_path: Path, has_events: bool
) -> None:
    """As AutoGen logs a team with all its events, or only its messages."""
    calls = [{"id": f"c{n}", "name": name, "arguments": "{}"} for n, name in enumerate(("look", "find"))]
    results = [
        {"call_id": f"c{n}", "name": "x", "content": words, "is_error": n == 1}
        for n, words in ((1, "no"), (0, "red"))
    ]
    say = {"source": "user", "type": "TextMessage"}
    events = [
        {"source": "surfer", "type": "ToolCallRequestEvent", "content": calls},
        {"source": "surfer", "type": "ToolCallExecutionEvent", "content": results},
    ]
    summary = {"type": "ToolCallSummaryMessage", "tool_calls": calls, "results": results}
    log = [
        {**say, "content": sentence(0)},
        *(events if has_events else []),
        {"source": "surfer", "content": "no, red", **summary},
        {**say, "content": sentence(1)},
    ]
    (session,) = read_by_draft(as_lines(tmp_path / "run.jsonl", log))
    assert outline(session.events) == [
        ("user", "message", sentence(0)),
        ("surfer", "action", "look"),
        ("surfer", "action", "find"),
        ("surfer", "message", "no, red"),
        ("user", "message", sentence(1)),
    ]
    assert [(e.status, e.error) for e in session.events[1:3]] == [("succeeded", None), ("failed", "no")]


def test_a_model_among_the_parameters_of_every_message_is_the_sessions(tmp_path: Path) -> None:
    roles = ("user", "assistant", "tool", "user")
    rows = [
        {"role": role, "content": sentence(n), "params": {"model": "m-1"}} for n, role in enumerate(roles)
    ]
    (session,) = read_by_draft(as_lines(tmp_path / "run.jsonl", rows))
    assert session.agent_model == "m-1"


def test_a_persons_message_with_a_type_of_autogens_stays_theirs(tmp_path: Path) -> None:
    log = [
        {"role": ("user", "assistant")[n % 2], "source": "web", "type": "ToolCallSummaryMessage"}
        | {"content": [{"type": "text", "text": sentence(n)}]}
        for n in range(4)
    ]
    (session,) = read_by_draft(as_lines(tmp_path / "run.jsonl", log))
    assert [event.actor for event in session.events] == ["user", "assistant"] * 2


def test_records_of_a_message_each_that_are_a_tree_are_told(tmp_path: Path) -> None:
    def logged(*after: tuple[str, str | None, str]) -> str:
        rows = [
            {
                "message_id": own,
                "parent_id": before,
                "role": who,
                "text": sentence(n),
                "message_tree_id": "t1",
            }
            for n, (own, before, who) in enumerate(after)
        ]
        made = draft(as_lines(tmp_path / "tree.jsonl", rows))
        return " ".join(open_questions(made.survey, made.guess))

    chain = (("a", None, "prompter"), ("b", "a", "assistant"), ("c", "b", "prompter"))
    assert "rival answers" in logged(*chain, ("d", "a", "assistant"))
    assert "rival answers" not in logged(*chain, ("d", "c", "assistant"))


def test_the_id_of_a_thread_names_the_session_however_deep_it_lies(tmp_path: Path) -> None:
    talk = [{"type": "human", "content": sentence(0)}, {"type": "ai", "content": sentence(1)}]
    rows = [
        {"values": {"messages": talk}, "config": {"configurable": {"thread_id": f"t{n}"}}} for n in range(3)
    ]
    assert [one.native_id for one in read_by_draft(as_json(tmp_path / "threads.json", rows))] == [
        "t0",
        "t1",
        "t2",
    ]


def test_code_that_gemini_runs_is_an_action_with_its_result(tmp_path: Path) -> None:
    ran: dict[str, object] = {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}
    keys = ("executableCode", "codeExecutionResult"), ("executable_code", "code_execution_result")
    for code, result in keys:
        parts = [
            {"text": sentence(1)},
            {code: {"language": "PYTHON", "code": "1 / 0"}},
            {result: ran},
            {"text": sentence(2)},
        ]
        contents = [{"role": "user", "parts": [{"text": sentence(0)}]}, {"role": "model", "parts": parts}]
        (found,) = read_by_draft(as_json(tmp_path / "chat.json", {"id": "s", "contents": contents}))
        assert [event.text for event in found.events] == [sentence(0), sentence(1), None, sentence(2)]
        run = found.events[2]
        assert run.action == Action(name="code_execution", arguments={"language": "PYTHON", "code": "1 / 0"})
        assert run.status == "failed" and run.states["public"] in found.states
    for outcome in (1, None, "OUTCOME_OK"):
        ran["outcome"] = outcome
        (found,) = read_by_draft(as_json(tmp_path / "chat.json", {"id": "s", "contents": contents}))
        assert found.events[2].status != "failed"


def test_a_message_to_a_tool_is_a_call_and_no_words(tmp_path: Path) -> None:
    """As ChatGPT exports its chats: code is sent to `python`, words are sent to `all`."""

    def node(parent: str | None, role: str, content: dict[str, object], to: str = "all") -> dict[str, object]:
        message = {"author": {"role": role}, "content": content, "recipient": to}
        return {"message": message, "parent": parent}

    def words(text: str) -> dict[str, object]:
        return {"content_type": "text", "parts": [text]}

    tree = {
        "a": node(None, "user", words(sentence(0))),
        "b": node("a", "assistant", {"content_type": "code", "text": "1 + 1"}, "python"),
        "c": node("b", "tool", {"content_type": "execution_output", "text": "2"}),
        "n": node("c", "assistant", {"content_type": "code", "text": ""}, "python"),
        "d": node("n", "assistant", words(sentence(1)), "assistant"),
    }
    chats = [{"id": f"c{n}", "mapping": tree, "current_node": "d"} for n in range(2)]
    first = read_by_draft(as_json(tmp_path / "chats.json", chats))[0]
    assert outline(first.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "action", "python"),
        ("assistant", "message", sentence(1)),
    ]
    assert first.events[1].action and first.events[1].action.raw == "1 + 1"
    assert list(first.states.values()) == [{"observation": {"content_type": "execution_output", "text": "2"}}]


def test_an_image_alone_is_a_turn_and_how_long_an_agent_thought_is_none(tmp_path: Path) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "width": 1}
    contents = [
        ("user", {"content_type": "text", "parts": [sentence(0)]}),
        ("assistant", {"content_type": "thoughts", "thoughts": [{"summary": "Ulm", "content": "Hm."}]}),
        ("assistant", {"content_type": "reasoning_recap", "content": "Thought for 3s"}),
        ("assistant", {"content_type": "text", "parts": [sentence(1)]}),
        ("user", {"content_type": "multimodal_text", "parts": [image]}),
        ("assistant", {"content_type": "text", "parts": [sentence(2)]}),
        ("user", {"content_type": "multimodal_text", "parts": [image, sentence(3)]}),
    ]
    tree = {
        str(n): {
            "message": {"author": {"role": role}, "content": content},
            "parent": str(n - 1) if n else None,
        }
        for n, (role, content) in enumerate(contents)
    }
    chats = [{"id": f"c{n}", "mapping": tree, "current_node": "6"} for n in range(2)]
    first = read_by_draft(as_json(tmp_path / "chats.json", chats))[0]
    assert outline(first.events) == [
        ("user", "message", sentence(0)),
        ("assistant", "message", sentence(1)),
        ("user", "message", "[image_asset_pointer]"),
        ("assistant", "message", sentence(2)),
        ("user", "message", f"[image_asset_pointer]\n{sentence(3)}"),
    ]


def test_what_a_person_set_for_all_talks_is_no_message_of_theirs(tmp_path: Path) -> None:
    """As ChatGPT exports custom instructions: each talk began with them, as the user's words."""
    told = {"content_type": "user_editable_context", "user_profile": "", "user_instructions": sentence(9)}
    talk = [{"content_type": "text", "parts": [sentence(n)]} for n in range(3)]
    contents = zip(("user", "user", "assistant", "critic"), (told, *talk), strict=True)
    tree = {
        str(n): {
            "message": {"author": {"role": role}, "content": content},
            "parent": str(n - 1) if n else None,
        }
        for n, (role, content) in enumerate(contents)
    }
    chats = [{"id": f"c{n}", "mapping": tree, "current_node": "3"} for n in range(2)]
    first = read_by_draft(as_json(tmp_path / "chats.json", chats))[0]
    assert [(e.seq, e.actor, e.kind) for e in first.events] == [
        (0, "environment", "note"),
        (1, "user", "message"),
        (2, "assistant", "message"),
        (3, "critic", "message"),
    ]
    assert sentence(9) in (first.events[0].text or "")


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    ("user", "agent"),
    [
        *(("user_{}", "bot_{}"), ("prompt{}", "response{}"), ("chat_{}_user", "chat_{}_bot")),
        ("GPT_{}_prompt", "GPT_{}_answer"),
    ],
)
def test_rounds_have_their_number_anywhere_in_the_name(
    tmp_path: Path, user: str, agent: str, count: int
) -> None:
    """Of three rounds the answers alone were read, as what two say in turn; the second of two became a tag or
    a session of its own."""
    names = [name.format(n) for n in range(count) for name in (user, agent)]
    rows = [{"id": f"s{s}", **{name: sentence(6 * s + n) for n, name in enumerate(names)}} for s in (0, 1)]
    sessions = read_by_draft(as_lines(tmp_path / "rows.jsonl", rows))
    assert [one.native_id for one in sessions] == ["s0", "s1"]
    for number, session in enumerate(sessions):
        kinds = {p.name: p.kind for p in session.participants}
        assert [(kinds[e.actor], e.text) for e in session.events] == [
            (("human", "agent")[n % 2], sentence(6 * number + n)) for n in range(2 * count)
        ]


@pytest.mark.parametrize(
    "questions",
    [
        pytest.param([(0, 1)] * 4, id="questionnaire"),
        pytest.param([(0, 1), (2, 0), (1, 2), (2, 1)], id="questionnaire in any order"),
        pytest.param([(n, n) for n in range(4)], id="comparison"),
    ],
)
def test_a_questionnaire_and_a_comparison_are_no_rounds(questions: list[tuple[int, int]]) -> None:
    answers = {"answer_1": sentence(8), "answer_2": sentence(9)}
    rows = [{"question_1": sentence(a), "question_2": sentence(b), **answers} for a, b in questions]
    assert not rounds_in(rows)


@pytest.mark.parametrize(
    ("numbered", "talk"),
    [
        ({"user_{}_name": "Ada", "bot_{}_name": "m-1"}, [f"message_{n}" for n in range(1, 5)]),
        ({"human_{}": "Ada", "ai_{}": "m-1"}, [f"turn_{n}" for n in range(1, 5)]),
        ({"annotator_{}_question": "Is it good?", "annotator_{}_answer": "yes"}, ["prompt", "response"]),
    ],
)
def test_names_and_marks_under_numbers_are_no_rounds(
    tmp_path: Path, numbered: dict[str, str], talk: list[str]
) -> None:
    """The talk beside them was lost."""
    rows = [
        {
            **{name.format(n): f"{text} {s}{n}" for n in (1, 2) for name, text in numbered.items()},
            **{name: sentence(6 * s + n) for n, name in enumerate(talk)},
        }
        for s in range(3)
    ]
    sessions = read_by_draft(as_lines(tmp_path / "rows.jsonl", rows))
    assert [[e.text for e in one.events] for one in sessions] == [
        [sentence(6 * s + n) for n in range(len(talk))] for s in range(3)
    ]


def test_two_talks_of_which_one_won_are_no_rounds(tmp_path: Path) -> None:
    names = ("prompt_1", "response_1", "prompt_2", "response_2")
    rows = [
        {**{name: sentence(4 * s + n) for n, name in enumerate(names)}, "winner": f"model_{s + 1}"}
        for s in (0, 1)
    ]
    sessions = read_by_draft(as_lines(tmp_path / "rows.jsonl", rows))
    assert [[e.text for e in one.events] for one in sessions] == [
        [sentence(n), sentence(n + 1)] for n in (0, 2, 4, 6)
    ]


def test_rows_of_messages_in_parts_are_read(tmp_path: Path) -> None:
    """As the database of Vercel's chatbot has them: where nobody called a tool, nothing was read."""
    rows = [
        {
            "id": f"m{n}{s}",
            "chatId": f"c{s}",
            "role": ("user", "assistant")[n],
            "parts": [{"type": "text", "text": sentence(2 * s + n)}],
            "attachments": [],
            "createdAt": f"2026-01-02T03:0{n}:00Z",
        }
        for s in (0, 1)
        for n in (0, 1)
    ]
    sessions = read_by_draft(as_lines(tmp_path / "messages.jsonl", rows))
    assert [(one.native_id, outline(one.events)) for one in sessions] == [
        (f"c{s}", [("user", "message", sentence(2 * s)), ("assistant", "message", sentence(2 * s + 1))])
        for s in (0, 1)
    ]


def test_a_call_with_the_text_of_its_error_failed(tmp_path: Path) -> None:
    call = {"type": "dynamic-tool", "toolName": "book", "toolCallId": "c", "input": {"city": "Ulm"}}
    failure = {**call, "state": "output-error", "errorText": "No seats."}
    messages = [
        {"role": "user", "parts": [{"type": "text", "text": sentence(0)}]},
        {"role": "assistant", "parts": [failure, {"type": "text", "text": sentence(1)}]},
    ]
    (found,) = read_by_draft(as_json(tmp_path / "chat.json", {"chatId": "s", "messages": messages}))
    (action,) = [event for event in found.events if event.action]
    assert (action.status, action.error) == ("failed", "No seats.")


def test_parts_that_say_by_their_kind_who_speaks(tmp_path: Path) -> None:
    """Messages of Pydantic AI: a file with them, and records with a list of them."""
    at = "2026-01-02T03:04:05Z"
    call = {"part_kind": "tool-call", "tool_name": "find", "args": {"q": "Ulm"}, "tool_call_id": "c"}
    back = {"tool_name": "find", "tool_call_id": "c"}
    messages = [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": "Help."},
                {
                    "part_kind": "user-prompt",
                    "content": [sentence(0), {"kind": "image-url", "url": "x"}],
                    "timestamp": at,
                },
            ],
        },
        {
            "kind": "response",
            "timestamp": at,
            "parts": [{"part_kind": "thinking", "content": "Hidden."}, call],
        },
        {"kind": "request", "parts": [{"part_kind": "retry-prompt", "content": "No city.", **back}]},
        {"kind": "response", "parts": [{**call, "tool_call_id": "d"}]},
        {
            "kind": "request",
            "parts": [{"part_kind": "tool-return", "content": "Here.", **back, "tool_call_id": "d"}],
        },
        {"kind": "response", "parts": [{"part_kind": "text", "content": sentence(1)}]},
    ]
    for log in (messages, [{"run": f"r{n}", "all_messages": messages} for n in range(2)]):
        found = read_by_draft(as_json(tmp_path / "run.json", log))[0]
        assert outline(found.events) == [
            ("environment", "start", "Help."),
            ("user", "message", f"{sentence(0)}\n[image-url]"),
            ("assistant", "action", "find"),
            ("assistant", "action", "find"),
            ("assistant", "message", sentence(1)),
        ]
        assert [event.time for event in found.events] == [None, at, at, None, None]
        assert [(event.status, event.error) for event in found.events[2:4]] == [
            ("failed", "No city."),
            (None, None),
        ]


def test_answers_to_a_survey_are_told_apart_by_the_response_and_else_by_the_person(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": sentence(0)}, {"role": "assistant", "content": sentence(1)}]
    rows = [{"ResponseId": f"R_{n}", "PROLIFIC_PID": f"5f{n}", "chat_log": chat} for n in range(3)]
    found = read_by_draft(as_lines(tmp_path / "survey.jsonl", rows))
    assert [run.native_id for run in found] == ["R_0", "R_1", "R_2"]
    for row in rows:
        del row["ResponseId"]
    found = read_by_draft(as_lines(tmp_path / "survey.jsonl", rows))
    assert [run.native_id for run in found] == ["5f0", "5f1", "5f2"]


def test_the_only_session_of_a_list_of_them_is_found(tmp_path: Path) -> None:
    """As a benchmark writes the results of one task, with that task beside them."""
    talk = [{"role": "user", "content": sentence(0)}, {"role": "assistant", "content": sentence(1)}]
    simulation = {"id": "sim-1", "task_id": "t1", "messages": talk, "reward_info": {"reward": 1.0}}
    log = {"info": {"model": "m"}, "tasks": [{"id": "t1", "purpose": "Help."}], "simulations": [simulation]}
    (found,) = read_by_draft(as_json(tmp_path / "results.json", log))
    assert (found.native_id, [event.text for event in found.events]) == ("sim-1", [sentence(0), sentence(1)])
    assert ("reward", 1.0) in [(one.name, one.value) for one in found.outcomes]


def test_runs_of_an_agent_with_calls_of_the_responses_api(tmp_path: Path) -> None:
    """As OpenAI's Agents SDK writes its traces, with what the calls were asked and gave back."""

    def run(n: int, mark: str, **data: object) -> dict[str, object]:
        at = {"started_at": f"2026-01-02T03:04:0{n}+00:00", "ended_at": f"2026-01-02T03:04:0{n}+00:00"}
        ids = {"object": "trace.span", "id": f"span_{mark}", "trace_id": "trace_1", "parent_id": "span_a"}
        return {**ids, **at, "error": None, "span_data": data}

    call = {"type": "function_call", "call_id": "c", "name": "book", "arguments": '{"city": "Ulm"}'}
    back = {"type": "function_call_output", "call_id": "c", "output": "Booked."}
    text = [{"type": "output_text", "text": sentence(1)}]
    words = {"type": "message", "role": "assistant", "content": text}
    question = {"role": "user", "content": sentence(0)}
    reasoning = {"type": "reasoning", "id": "rs", "summary": []}
    log = [
        run(1, "r1", type="response", input=[question], response={"id": "r1", "output": [reasoning, call]}),
        run(2, "f", type="function", name="book", input='{"city": "Ulm"}', output="Booked."),
        run(3, "r2", type="response", input=[question, call, back], response={"id": "r2", "output": [words]}),
        {**run(0, "a", type="agent", name="Triage"), "parent_id": None},
    ]
    (trace,) = read_by_draft(as_lines(tmp_path / "trace.jsonl", log))
    assert outline(trace.events) == [
        ("user", "message", sentence(0)),
        ("Triage", "action", "book"),
        ("Triage", "message", sentence(1)),
    ]
    assert list(trace.states.values()) == [{"observation": "Booked."}]


def test_instructions_of_requests_are_told_where_they_change(tmp_path: Path) -> None:
    def request(number: int, instructions: str | None) -> dict[str, Any]:
        part = {"part_kind": "user-prompt", "content": sentence(number)}
        return {"kind": "request", "parts": [part], "instructions": instructions}

    messages = [request(0, "Help."), request(1, "Help."), request(2, None), request(3, "Stop.")]
    answer = {"kind": "response", "parts": [{"part_kind": "text", "content": "Yes."}]}
    found = read_by_draft(as_json(tmp_path / "run.json", [one for m in messages for one in (m, answer)]))[0]
    assert [text for _, _, text in outline(found.events) if text != "Yes."] == [
        *("Help.", sentence(0), sentence(1), sentence(2), "Stop.", sentence(3))
    ]


def test_a_message_with_a_role_is_no_part_of_pydantic_ai(tmp_path: Path) -> None:
    item = {"role": "user", "kind": "request", "content": "Go.", "parts": []}
    assert part_kinds.messages(item) is None


def test_a_list_of_names_is_no_session_where_people_speak_in_lists_within_lists(tmp_path: Path) -> None:
    for n in range(3):
        said = [{"agent": 0, "action": 1, "utterance": sentence(one)} for one in range(2)]
        actions = [{"action_id": n, "action_name": name} for n, name in enumerate(("Text", "Left", "Right"))]
        game = {"definitions": {"actions": actions}, "tasks": [{"episodes": [{"interactions": said}]}]}
        as_json(tmp_path / f"g{n}.json", game)
    result = draft(tmp_path)
    assert (result.survey.sessions, result.guess.at) == ("tasks[].episodes", "interactions")


def test_senders_in_objects_by_their_kind_are_people_and_bots(tmp_path: Path) -> None:
    def message(n: int, *senders: str) -> dict[str, Any]:
        sender = {"user": None, "application": None, "device": None} | {
            kind: {"id": f"i-{name}", "displayName": name}
            for kind, name in zip(*2 * [iter(senders)], strict=True)
        }
        time = f"2026-01-02T10:00:{n:02d}Z"
        body = {"contentType": "text", "content": sentence(n)}
        return {"id": str(n), "createdDateTime": time, "from": sender, "body": body}

    said = [
        *(("user", "Ada L"), ("application", "Helper"), ("device", "Lamp")),
        *(("application", "Helper", "user", "Bob K"), ("user", "Ada L")),
    ]
    log = {"value": [message(n, *who) for n, who in enumerate(said)]}
    (run,) = read_by_draft(as_json(tmp_path / "chat.json", log))
    assert outline(run.events) == [(who[-1], "message", sentence(n)) for n, who in enumerate(said)]
    kinds = {one.name: one.kind for one in run.participants}
    assert kinds == {"Ada L": "human", "Helper": "agent", "Lamp": "agent", "Bob K": "human"}


def test_names_alone_in_bold_begin_turns(tmp_path: Path) -> None:
    said = [("User", sentence(0)), ("Cursor", sentence(1)), ("User", sentence(2)), ("Cursor", sentence(3))]
    turns = "".join(f"\n---\n\n**{name}**\n\n{words}\n" for name, words in said)
    (run,) = read_by_draft(as_text(tmp_path / "chat.md", f"# A trip\n_Exported_\n{turns}"))
    assert [(e.actor, e.text) for e in run.events if e.kind == "message"] == said


@pytest.mark.parametrize("mark", ["{}:", "## {}\n", "\n---\n\n**{}**\n", "\n---\n\n_**{}**_\n"])
@pytest.mark.parametrize("rule", ["", "---\n\n"])
def test_headings_in_bold_are_part_of_what_an_agent_says(tmp_path: Path, mark: str, rule: str) -> None:
    answer = (
        f"Sure.\n\n**Summary**\n\n{sentence(1)}\n\n**Steps**\n\n{sentence(2)}\n\n{rule}**Caveats**\n\nNone."
    )
    who = ("User", "Assistant")
    answer = answer if "---" not in mark else answer.replace(rule, "")
    said = [(who[n % 2], answer if n % 2 else sentence(n)) for n in range(8)]
    text = "".join(f"{mark.format(name)} {words}\n\n" for name, words in said)
    (run,) = read_by_draft(as_text(tmp_path / "chat.md", text))
    assert [(e.actor, e.text) for e in run.events] == said


def test_a_page_with_headings_in_bold_is_no_talk(tmp_path: Path) -> None:
    page = "".join(f"---\n\n**{name}**\n\n{sentence(0)}\n\n" for name in ("Method", "Results") * 3)
    assert draft(as_text(tmp_path / "page.md", page)).guess.shape == "nothing"


def test_words_as_they_were_said_come_before_cleaned_ones(tmp_path: Path) -> None:
    rows = [
        {
            "room": f"r{n // 4}",
            "speaker": ("Ada", "Bob")[n % 2],
            "clean_text": "x y z",
            "original_text": words,
        }
        for n, words in enumerate(map(sentence, range(8)))
    ]
    texts = [
        event.text for run in read_by_draft(as_lines(tmp_path / "a.jsonl", rows)) for event in run.events
    ]
    assert texts == [sentence(n) for n in range(8)]


def test_cleaned_words_come_before_what_else_stands_in_a_row(tmp_path: Path) -> None:
    row = {"message_summary": "A short note on what it is about."}
    rows = [
        {"room": f"r{n // 4}", "speaker": ("Ada", "Bob")[n % 2], "cleaned_message": sentence(n), **row}
        for n in range(8)
    ]
    texts = [
        event.text for run in read_by_draft(as_lines(tmp_path / "a.jsonl", rows)) for event in run.events
    ]
    assert texts == [sentence(n) for n in range(8)]


def test_who_plays_is_told_by_an_object_with_a_kind_for_each(tmp_path: Path) -> None:
    records = [
        {
            "uuid": f"C{n}",
            "agents": {"0": "human", "1": "bot"},
            "events": [{"action": "message", "agent": one % 2, "data": sentence(one)} for one in range(4)],
        }
        for n in range(2)
    ]
    for run in read_by_draft(as_json(tmp_path / "a.json", records)):
        assert {one.name: one.kind for one in run.participants} == {"0": "human", "1": "agent"}


def test_a_table_of_pages_is_no_session_where_talks_stand_in_lists_within_them(tmp_path: Path) -> None:
    talk = {"Conversations": [{"Prompt": sentence(0), "Answer": sentence(1)}]}
    pages = [{"Author": name, "Body": sentence(2), "Sharing": [talk]} for name in ("ada", "ada", "bob")]
    result = draft(as_json(tmp_path / "a.json", {"Sources": pages}))
    assert result.guess.shape == "nothing"
    assert "Sharing[0].Conversations[].Prompt" in "".join(open_questions(result.survey, result.guess))


@pytest.mark.parametrize("encode", [json.dumps, list])
def test_a_list_of_questions_beside_the_list_of_answers_is_a_talk(tmp_path: Path, encode: Any) -> None:
    questions, answers = [sentence(0), sentence(1), sentence(2)], [sentence(3), None, sentence(5)]
    rows = [{"id": n, "prompt": encode(questions[:n]), "response": encode(answers[:n])} for n in (1, 3, 2)]
    said = [
        *(("user", "message", sentence(0)), ("assistant", "message", sentence(3))),
        *(("user", "message", sentence(1)), ("user", "message", sentence(2))),
        ("assistant", "message", sentence(5)),
    ]
    runs = read_by_draft(as_lines(tmp_path / "a.jsonl", rows))
    assert [outline(run.events) for run in runs] == [said[:2], said, said[:3]]


def test_a_talk_comes_before_lists_of_questions_and_answers_beside_it(tmp_path: Path) -> None:
    said = [("user", sentence(0)), ("assistant", sentence(1))]
    messages = [{"role": role, "content": words} for role, words in said]
    survey = {"question": [sentence(2), sentence(3), sentence(4)], "answer": [sentence(5), "Yes.", "No."]}
    rows = [{"id": f"s{n}", "messages": messages, **survey} for n in range(3)]
    for run in read_by_draft(as_lines(tmp_path / "a.jsonl", rows)):
        assert outline(run.events) == [(role, "message", words) for role, words in said]


def test_the_same_questions_in_all_records_are_a_questionnaire_that_nobody_knows_who_answered(
    tmp_path: Path,
) -> None:
    rows = [{"id": n, "question": [sentence(0), "Why?"], "answer": [sentence(n), "So."]} for n in (1, 2, 3)]
    result = draft(as_lines(tmp_path / "a.jsonl", rows))
    assert result.guess.shape == "nothing"
    hints = "\n".join(open_questions(result.survey, result.guess))
    assert 'fields = { user = "question[]", assistant = "answer[]" }' in hints


def test_a_list_that_somebody_typed_is_one_turn() -> None:
    record = {"prompt": '["dog", "cat"]', "response": '["Hund", "Katze"]'}
    whole = Turns(fields={"user": "prompt", "assistant": "response"})
    assert [event["text"] for event in events_in(record, "turns", whole)] == [*record.values()]
    apart = Turns(fields={"user": "prompt[]", "assistant": "response[]"})
    assert [event["text"] for event in events_in(record, "turns", apart)] == ["dog", "Hund", "cat", "Katze"]


def test_several_answers_to_a_question_are_no_talk_of_two(tmp_path: Path) -> None:
    rows = [{"id": n, "prompt": sentence(n), "response": [sentence(3), sentence(4)]} for n in range(3)]
    result = draft(as_lines(tmp_path / "a.jsonl", rows))
    assert result.guess.shape == "nothing"
    assert "response[].text" in "\n".join(open_questions(result.survey, result.guess))


def test_a_kind_beside_one_name_alone_makes_nobody_an_agent(tmp_path: Path) -> None:
    records = [
        {
            "id": n,
            "assigned": {"Ada": "agent"},
            "events": [{"speaker": ("Ada", "Bob")[one % 2], "text": sentence(one)} for one in range(4)],
        }
        for n in range(2)
    ]
    for run in read_by_draft(as_json(tmp_path / "a.json", records)):
        assert "human" in {one.kind for one in run.participants}


def test_a_list_of_texts_under_the_names_of_both_is_a_talk_of_two(tmp_path: Path) -> None:
    rows = [{"id": n, "human_ai_conversation": [sentence(one) for one in range(4)]} for n in range(3)]
    for run in read_by_draft(as_lines(tmp_path / "a.jsonl", rows)):
        assert [event.text for event in run.events] == [sentence(one) for one in range(4)]


def test_people_whose_messages_hold_data_are_no_agents(tmp_path: Path) -> None:
    """As Element exports rooms of Matrix: everybody was an agent who spoke JSON, and nothing said so."""
    said = [("@ada:x.org", "m.text"), ("@bot:x.org", "m.notice"), ("@ada:x.org", "m.text")]
    messages = [
        {
            "type": "m.room.message",
            "sender": who,
            "event_id": f"${n}",
            "origin_server_ts": 1714550000000 + n,
            "content": {"msgtype": kind, "body": sentence(n)},
        }
        for n, (who, kind) in enumerate(said)
    ]
    (room,) = read_by_draft(as_json(tmp_path / "room.json", {"room_name": "Lab", "messages": messages}))
    assert [(event.actor, event.text) for event in room.events] == [
        (who, sentence(n)) for n, (who, _) in enumerate(said)
    ]
    assert {person.name: person.kind for person in room.participants} == {
        "@ada:x.org": "human",
        "@bot:x.org": "agent",
    }
    assert all(event.time for event in room.events)


def matrix(said: list[tuple[str, str | None]]) -> dict[str, Any]:
    """A room as Element exports it; of a message that was taken back nothing is left."""
    messages = [
        {
            "type": "m.room.message",
            "sender": who,
            "origin_server_ts": 1714550000000 + n,
            "content": {"msgtype": "m.text", "body": text} if text else {},
        }
        for n, (who, text) in enumerate(said)
    ]
    return {"room_name": "Lab", "messages": messages}


def test_a_message_that_was_taken_back_leaves_the_others_their_words(tmp_path: Path) -> None:
    said = [("@ada:x.org", sentence(0)), ("@bot:x.org", sentence(1)), ("@ada:x.org", None)]
    (room,) = read_by_draft(as_json(tmp_path / "room.json", matrix(said)))
    assert [event.text for event in room.events] == [sentence(0), sentence(1), None]


def test_several_accounts_beside_a_bot_are_people(tmp_path: Path) -> None:
    """In a room of three, everybody was an agent."""
    names = ("@ada:x.org", "@bot:x.org", "@bob:x.org")
    (room,) = read_by_draft(as_json(tmp_path / "room.json", matrix([(who, sentence(0)) for who in names])))
    kinds = {person.name: person.kind for person in room.participants}
    assert kinds == dict(zip(names, ("human", "agent", "human"), strict=True))


def test_data_that_a_user_and_an_assistant_exchange_is_what_they_say(tmp_path: Path) -> None:
    """A draft of such messages named nobody who speaks, and could not be used."""
    for key in ("role", "sender"):
        messages = [
            {key: ("user", "assistant")[n % 2], "content": {"intent": f"ask {n}", "slots": {"n": n}}}
            for n in range(4)
        ]
        (session,) = read_by_draft(as_json(tmp_path / f"{key}.json", {"messages": messages}))
        assert [event.text for event in session.events] == [
            f'{{"intent":"ask {n}","slots":{{"n":{n}}}}}' for n in range(4)
        ]
        assert [person.kind for person in session.participants] == ["human", "agent"]


def test_sessions_by_name_may_hold_their_messages_by_name(tmp_path: Path) -> None:
    sessions = {
        f"-N{s}": {
            "participant": f"P{s}",
            "messages": {
                f"-M{n}": {
                    "sender": ("user", "bot")[n % 2],
                    "text": sentence(n + s),
                    "timestamp": 1767348000 + n,
                }
                for n in range(3)
            },
        }
        for s in range(2)
    }
    runs = read_by_draft(as_json(tmp_path / "export.json", {"sessions": sessions}))
    assert [run.native_id for run in runs] == ["-N0", "-N1"]
    assert [[e.text for e in run.events] for run in runs] == [
        [sentence(n + s) for n in range(3)] for s in range(2)
    ]


def test_steps_that_repeat_the_conversation_beside_them_are_no_sessions(tmp_path: Path) -> None:
    talk = [
        {"role": "system", "content": "Help with trips."},
        {"role": "user", "content": sentence(0)},
        {"role": "assistant", "content": sentence(1)},
        {"role": "user", "content": "OBSERVATION:\nsrc"},
        {"role": "assistant", "content": sentence(3)},
    ]
    steps = [{"query": talk[:n], "response": talk[n]["content"], "action": "ls"} for n in (2, 4)]
    for n in range(2):
        run = {"trajectory": steps, "history": talk, "info": {"exit_status": "submitted"}}
        as_json(tmp_path / f"run{n}" / f"run{n}.traj", run)
    first, second = read_by_draft(tmp_path)
    assert (first.native_id, second.native_id) == ("run0", "run1")
    assert first.events[-1].text == second.events[-1].text == sentence(3)
    assert [outcome.text for outcome in first.outcomes] == ["submitted"]


def test_sessions_may_begin_as_a_template_beside_them(tmp_path: Path) -> None:
    template = [{"role": "system", "content": "Help with trips."}, {"role": "user", "content": sentence(0)}]
    sessions = [
        {"id": f"s{n}", "messages": [*template, {"role": "assistant", "content": f"{sentence(k)} {n}"}]}
        for n, k in enumerate((1, 2, 3) * 4)
    ]
    log = {"template": template, "sessions": sessions}
    runs = read_by_draft(as_json(tmp_path / "log.json", log))
    assert [run.native_id for run in runs] == [f"s{n}" for n in range(12)]


def test_spans_under_one_root_are_a_session(tmp_path: Path) -> None:
    spans = [
        {"id": f"{s}{kind}", "root_span_id": f"r{s}", "created": f"2026-01-02T10:0{s}:0{at}Z", "input": words}
        | {"output": {"role": "assistant", "content": sentence(s)}, "span_attributes": {"type": kind}}
        | {"metrics": {"start": 1767348000 + 60 * s + at, "end": 1767348005 + 60 * s}}
        for s in range(2)
        for at, (kind, words) in enumerate(
            (("task", "go"), ("llm", [{"role": "user", "content": f"Go {s}!"}]))
        )
    ]
    runs = read_by_draft(as_lines(tmp_path / "spans.jsonl", spans))
    assert [run.native_id for run in runs] == ["r0", "r1"]


def test_a_second_sheet_does_not_join_the_sessions_of_the_first(tmp_path: Path) -> None:
    rows = [
        {"session_id": s, "speaker": ("user", "assistant")[n % 2], "message": f"{sentence(n)} {s}"}
        for s in range(2)
        for n in range(4)
    ]
    notes = [{"sheet": "notes", "item": "study", "remark": "This was a pilot."}] * 2
    path = as_lines(tmp_path / "log.jsonl", [*rows, *notes])
    assert draft(path).guess.native_id == ["session_id"]


def test_a_text_in_runs_is_one_text(tmp_path: Path) -> None:
    runs = ["To ", {"type": "bold", "text": "Ulm"}, ", see ", {"type": "link", "text": "db.de"}, ""]
    whole = [{"type": "italic", "text": "Done."}]
    messages = [
        {"id": n, "type": "message", "date": f"2026-01-02T10:00:0{n}", "date_unixtime": f"{1767348000 + n}"}
        | {"from": ("Ada", "HelperBot")[n % 2], "text": text}
        for n, text in enumerate((runs, whole, sentence(2), sentence(3)))
    ]
    (chat,) = read_by_draft(as_json(tmp_path / "result.json", {"name": "Trips", "messages": messages}))
    assert [e.text for e in chat.events] == ["To Ulm, see db.de", "Done.", sentence(2), sentence(3)]
    assert chat.events[0].time == "2026-01-02T10:00:00+00:00"


def test_of_a_tree_with_parents_by_id_the_current_branch_is_read(tmp_path: Path) -> None:
    def node(own: str, parent: str | None, *children: str, text: str) -> dict[str, Any]:
        role = "user" if len(children) > 1 or parent == "b" else "assistant"
        return {"id": own, "parentId": parent, "childrenIds": [*children], "role": role, "content": text}

    tree = {
        "a": node("a", None, "x", "b", text=sentence(0)),
        "x": node("x", "a", text="A rival answer."),
        "b": node("b", "a", "c", "y", text=sentence(1)) | {"role": "assistant"},
        "c": node("c", "b", text=sentence(2)),
        "y": node("y", "b", text="Another question?"),
    }
    chats = [
        {"id": f"c{n}", "chat": {"history": {"messages": tree, "currentId": "c"}, "messages": []}}
        for n in range(2)
    ]
    for chat in read_by_draft(as_json(tmp_path / "chats.json", chats)):
        assert [e.text for e in chat.events] == [sentence(0), sentence(1), sentence(2)]


def test_answers_in_a_thread_are_all_read(tmp_path: Path) -> None:
    thread = {
        f"m{n}": {
            "id": f"m{n}",
            "parentId": "m0",
            "role": ("user", "assistant")[n % 2],
            "content": sentence(n),
        }
        for n in range(4)
    }
    forum = {
        f"m{n}": {"parentId": "m0" if n else None, "childrenIds": [] if n else ["m1", "m2", "m3"]}
        | {"author": ("ann", "bot", "zoe", "bot")[n], "text": sentence(n)}
        for n in range(4)
    }
    talks = [{"id": f"t{n}", "messages": thread} for n in range(2)]
    posts = [{"id": f"t{n}", "thread": forum} for n in range(2)]
    for log in (talks, posts):
        for talk in read_by_draft(as_json(tmp_path / "talks.json", log)):
            assert [e.text for e in talk.events] == [sentence(n) for n in range(4)]


def test_what_is_copied_from_a_page_of_a_chat_has_turns(tmp_path: Path) -> None:
    turns = "\n".join(f"{('You', 'ChatGPT')[n % 2]} said:\n{sentence(n)}\nAlso: this one." for n in range(4))
    (chat,) = read_by_draft(as_text(tmp_path / "chat.txt", turns))
    assert [(p.name, p.kind) for p in chat.participants] == [("You", "human"), ("ChatGPT", "agent")]
    assert [e.text for e in chat.events] == [f"{sentence(n)}\nAlso: this one." for n in range(4)]


def test_german_columns_say_who_speaks_and_what(tmp_path: Path) -> None:
    rows = [
        {"Sitzung": s, "Sprecher": ("Nutzer", "Assistent")[n % 2], "Nachricht": f"{sentence(n)} {s}"}
        for s in "ab"
        for n in range(4)
    ]
    talks = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert [talk.native_id for talk in talks] == ["a", "b"]
    assert {(p.name, p.kind) for p in talks[0].participants} == {("Nutzer", "human"), ("Assistent", "agent")}


def test_nicknames_and_directions_do_not_hide_a_name_with_a_flag_and_a_role(tmp_path: Path) -> None:
    people = (("ada", "Ada", False), ("clyde", "Clyde", True), ("max", "Max", False))
    authors = [{"name": name, "nickname": nickname, "isBot": is_bot} for name, nickname, is_bot in people]
    messages = [{"content": sentence(n), "author": authors[n % 3]} for n in range(9)]
    talk = read_by_draft(as_json(tmp_path / "a" / "general.json", {"messages": messages}))[0]
    kinds = {(one.name, one.kind) for one in talk.participants}
    assert kinds == {("ada", "human"), ("clyde", "agent"), ("max", "human")}

    rows = [
        {"session_id": "s", "type": ("user", "bot")[n % 2], "text": sentence(n), "direction": way}
        for n, way in enumerate(("outgoing", "incoming") * 4)
    ]
    talk = read_by_draft(as_lines(tmp_path / "b" / "log.jsonl", rows))[0]
    assert {(one.name, one.kind) for one in talk.participants} == {("user", "human"), ("bot", "agent")}


def said_of(runs: list[Trajectory]) -> list[list[tuple[str, str | None]]]:
    """(kind of who speaks, what was said) of each event of each run."""
    kinds = [{p.name: p.kind for p in run.participants} for run in runs]
    return [[(kind[e.actor], e.text) for e in run.events] for kind, run in zip(kinds, runs, strict=True)]


ASKED = [("human" if n % 2 == 0 else "agent", sentence(n)) for n in range(4)]


@pytest.mark.parametrize("name", ["participant_id", "user"])
def test_rows_of_a_prompt_and_a_response_are_a_talk_of_whoever_asked(tmp_path: Path, name: str) -> None:
    rows = [
        {name: f"P{s}", "time": f"2026-01-02T1{s}:0{n}:00", "prompt": sentence(2 * n), "model": "m-1"}
        | {"response": sentence(2 * n + 1), "count": n + s}
        for s in range(2)
        for n in range(2)
    ]
    runs = read_by_draft(as_lines(tmp_path / "log.jsonl", rows[:2]))
    assert said_of(runs) == [ASKED]
    rows = [row | {"prompt": f"{row['prompt']} {row[name]}"} for row in rows]
    runs = read_by_draft(as_lines(tmp_path / "both.jsonl", rows))
    assert [run.native_id for run in runs] == ["P0", "P1"]
    assert [e.time for e in runs[1].events] == ["2026-01-02T11:00:00"] * 2 + ["2026-01-02T11:01:00"] * 2


def test_rows_with_a_session_of_their_own_are_no_talk_of_whoever_asked(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"s{n}", "user_id": f"u{n % 2}", "time": f"2026-01-0{n + 1}T10:00:00"}
        | {"prompt": f"{sentence(n)} {n}", "response": sentence(n + 1)}
        for n in range(6)
    ]
    runs = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert [run.native_id for run in runs] == [f"s{n}" for n in range(6)]


def test_a_questionnaire_in_rows_is_answered_by_people(tmp_path: Path) -> None:
    rows = [
        {"participant_id": f"P{s}", "time": f"2026-01-02T1{s}:0{n}:00", "question": sentence(n)}
        | {"answer": f"{sentence(n + 2)} {s}"}
        for s in range(4)
        for n in range(2)
    ]
    runs = read_by_draft(as_lines(tmp_path / "survey.jsonl", rows))
    assert {kind for run in said_of(runs) for kind, _ in run} == {"human"}


@pytest.mark.parametrize(
    "rounds",
    [
        [[sentence(0), sentence(1)], [sentence(2), sentence(3)]],
        [
            [{"id": "local_human", "text": sentence(n)}, {"id": "Net", "text": sentence(n + 1)}]
            for n in (0, 2)
        ],
        [{"user": sentence(n), "assistant": sentence(n + 1), "rating": 4} for n in (0, 2)],
        [{"query": sentence(n), "answer": sentence(n + 1), "feedback": {"rating": "like"}} for n in (0, 2)],
    ],
)
def test_each_item_of_a_list_may_be_a_question_and_its_answer(tmp_path: Path, rounds: list[Any]) -> None:
    talks = [{"pid": f"P{n}", "history": rounds} for n in range(2)]
    assert said_of(read_by_draft(as_json(tmp_path / "talks.json", talks))) == [ASKED, ASKED]


@pytest.mark.parametrize("first", ["2026-01-02T10:00:0{n}.000Z", "participant (human player) {n}", "{n:036}"])
def test_a_time_a_name_or_an_id_before_a_text_is_no_question(tmp_path: Path, first: str) -> None:
    rounds = [[first.format(n=n % 2), sentence(n)] for n in range(4)]
    talks = [{"pid": f"P{n}", "history": rounds} for n in range(2)]
    run, _ = read_by_draft(as_json(tmp_path / "talks.json", talks))
    assert [e.text for e in run.events] == [sentence(n) for n in range(4)]


def test_an_agents_message_may_be_the_first_of_two(tmp_path: Path) -> None:
    rounds = [
        [{"id": "model", "text": sentence(n)}, {"id": "human", "text": sentence(n + 1)}] for n in (0, 2)
    ]
    talks = [{"pid": f"P{n}", "dialog": rounds} for n in range(2)]
    run, _ = said_of(read_by_draft(as_json(tmp_path / "log.json", talks)))
    assert run == [("agent" if n % 2 == 0 else "human", sentence(n)) for n in range(4)]


@pytest.mark.parametrize("keys", [("speaker", "text"), ("role", "content")])
@pytest.mark.parametrize("mark", ["", " {n}"])
def test_a_talk_comes_before_questions_and_answers_beside_it(
    tmp_path: Path, keys: tuple[str, str], mark: str
) -> None:
    def record(n: int) -> dict[str, Any]:
        questions = [
            {"question": f"{sentence(k)}{mark.format(n=n)}", "answer": f"Rather so. {n} {k}"}
            for k in range(12)
        ]
        talk = [dict(zip(keys, (("user", "bot")[k % 2], sentence(k)), strict=True)) for k in range(4)]
        return {"pid": f"P{n}", "exit": questions, "log_of_chat": talk}

    runs = read_by_draft(as_json(tmp_path / "log.json", [record(n) for n in range(3)]))
    assert said_of(runs) == [ASKED] * 3


def test_the_same_questions_in_every_list_are_a_questionnaire(tmp_path: Path) -> None:
    answers = [
        [{"question": sentence(k), "answer": f"Rather so. {n} {k}"} for k in range(4)] for n in range(3)
    ]
    records = [{"pid": f"P{n}", "answers": one} for n, one in enumerate(answers)]
    assert draft(as_json(tmp_path / "log.json", records)).guess.shape == "nothing"


def test_rounds_in_a_list_have_the_times_of_their_items(tmp_path: Path) -> None:
    rounds = [[None, sentence(0)], [sentence(1), sentence(2)]]
    talks = [{"pid": f"P{n}", "history": rounds} for n in range(2)]
    first, _ = said_of(read_by_draft(as_json(tmp_path / "greeted.json", talks)))
    assert first == [("agent", sentence(0)), ("human", sentence(1)), ("agent", sentence(2))]
    timed = [
        {"prompt": sentence(n), "response": sentence(n + 1), "created_at": 1767348000 + n} for n in (0, 2)
    ]
    talks = [{"pid": f"P{n}", "turns": timed} for n in range(2)]
    run, _ = read_by_draft(as_json(tmp_path / "timed.json", talks))
    assert [e.time for e in run.events] == [f"2026-01-02T10:00:0{n}+00:00" for n in (0, 0, 2, 2)]


def test_steps_with_a_tool_and_its_input_are_no_rounds(tmp_path: Path) -> None:
    steps = [{"tool": "search", "input": sentence(n), "output": sentence(n + 1)} for n in range(3)]
    run, _ = read_by_draft(as_json(tmp_path / "runs.json", [{"id": n, "steps": steps} for n in range(2)]))
    assert [e.action and e.action.arguments for e in run.events] == [{"input": sentence(n)} for n in range(3)]


def test_messages_of_both_sides_among_other_events_are_no_runs_of_models(tmp_path: Path) -> None:
    events = [
        {"type": "session_start", "data": {"condition": "a"}},
        {"type": "user_message", "data": {"text": sentence(0)}},
        {"type": "model_call", "data": {"args": {"top": 1}, "output": {"ms": 12}}},
        {"type": "assistant_message", "data": {"text": sentence(1)}},
        {"type": "rating", "data": {"value": 4}},
    ]
    rows = [
        {"session_id": f"s{s}", "ts": 1767348000 + n, **e} for s in range(2) for n, e in enumerate(events)
    ]
    for run in said_of(read_by_draft(as_lines(tmp_path / "log.jsonl", rows))):
        assert [one for one in run if one[1]] == ASKED[:2]


def test_calls_of_langchain_may_stand_under_data(tmp_path: Path) -> None:
    call = {"name": "book", "args": {"city": "Ulm"}, "id": "c1", "type": "tool_call"}
    messages = [
        {"type": "human", "data": {"content": sentence(0), "type": "human"}},
        {"type": "ai", "data": {"content": "", "type": "ai", "tool_calls": [call]}},
        {"type": "tool", "data": {"content": "Booked.", "type": "tool", "tool_call_id": "c1"}},
        {"type": "ai", "data": {"content": sentence(1), "type": "ai"}},
    ]
    run, _ = read_by_draft(
        as_lines(tmp_path / "log.jsonl", [{"session_id": f"s{n}", "messages": messages} for n in range(2)])
    )
    assert run.events[1].action == Action(name="book", arguments={"city": "Ulm"})
    assert run.states[run.events[1].states["public"]] == {"observation": "Booked."}


def test_records_that_tell_a_talk_as_far_as_it_went_are_one_session(tmp_path: Path) -> None:
    def record(talk: str, *said: int) -> dict[str, Any]:
        turns = [[("USER", "ASSISTANT")[n % 2], f"{sentence(n)} {talk}"] for n in said]
        return {"type": "chat", "state": {"conv_id": talk, "messages": turns}}

    whole = [record(talk, *range(n)) for talk in "ab" for n in (2, 4, 4)]
    path = as_lines(tmp_path / "log.jsonl", whole)
    assert draft(path).guess.native_id == ["state.conv_id"]
    assert len({run.id for run in read_by_draft(path)}) == 2
    others = [record(talk, n, n + 1) for talk in "ab" for n in (0, 2)]
    assert draft(as_lines(tmp_path / "others.jsonl", others)).guess.native_id == []


def test_rival_answers_in_a_list_are_told(tmp_path: Path) -> None:
    def doubts(path: Path) -> str:
        made = draft(path)
        return " ".join(open_questions(made.survey, made.guess))

    def message(own: str, parent: str, **more: object) -> dict[str, object]:
        return {"messageId": own, "parentMessageId": parent, "sender": more.pop("by", "GPT"), **more}

    def talks(*last: str) -> list[dict[str, Any]]:
        asked = message("1", "0", by="User", text=sentence(0))
        many = [asked, *(message(own, "1", text=f"{sentence(1)} {own}") for own in last)]
        return [
            {"conversationId": f"c{n}", "messages": [*many, message("9", last[-1], by="User", text="Ok.")]}
            for n in range(2)
        ]

    assert "messages[].parentMessageId says" in doubts(as_json(tmp_path / "tree.json", talks("2", "3")))
    assert "rival" not in doubts(as_json(tmp_path / "chain.json", talks("2")))
    turns: list[dict[str, Any]] = [{"role": "user", "content": sentence(0), "if_chosen": None}]
    turns += [{"role": "model", "content": sentence(n), "if_chosen": n == 1} for n in (1, 2)]
    said = doubts(as_json(tmp_path / "prism.json", [{"id": n, "turns": turns} for n in range(2)]))
    assert 'skip = [{ "turns[].if_chosen" = false }]' in said


def test_incoming_messages_are_a_persons_and_directions_of_moves_nobodys(tmp_path: Path) -> None:
    rows = [
        {"conversationId": s, "direction": ("incoming", "outgoing")[n % 2], "type": "text"}
        | {"payload": {"text": sentence(n)}, "createdAt": f"2026-01-02T10:0{n}:00Z"}
        for s in "ab"
        for n in range(4)
    ]
    assert said_of(read_by_draft(as_lines(tmp_path / "bot.jsonl", rows))) == [ASKED, ASKED]
    moves = [
        {"action": "go", "direction": ("up", "down")[n % 2], "observation": sentence(n)} for n in range(4)
    ]
    run = read_by_draft(as_json(tmp_path / "moves.json", [{"id": n, "steps": moves} for n in range(2)]))[0]
    assert [p.name for p in run.participants] == ["agent"]


def test_directions_of_trips_say_nothing_of_who_speaks(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"s{n // 4}", "user": ("Ann", "TravelBot")[n % 2], "message": sentence(n)}
        | {"direction": ("outbound", "inbound")[n // 4 % 2]}
        for n in range(12)
    ]
    run = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))[0]
    assert [p.name for p in run.participants] == ["Ann", "TravelBot"]


def test_a_nickname_is_who_speaks_where_nothing_else_says_so(tmp_path: Path) -> None:
    rows = [
        {"session": f"s{n // 4}", "user": ("u1", "bot")[n % 2], "text": sentence(n)}
        | {"nick": ("fox", "owl", "elk")[n // 4]}
        for n in range(12)
    ]
    run = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))[0]
    assert [p.name for p in run.participants] == ["u1", "bot"]


def test_what_a_bot_utters_is_a_message_and_not_an_action(tmp_path: Path) -> None:
    events = [
        {"event": "action", "name": "action_listen", "timestamp": 1767348000.5},
        {"event": "user", "text": sentence(0), "timestamp": 1767348001.5, "metadata": {}},
        {"event": "action", "name": "utter_answer", "timestamp": 1767348002.5},
        {"event": "bot", "text": sentence(1), "metadata": {"utter_action": "utter_answer"}},
        {"event": "user", "text": sentence(2), "timestamp": 1767348004.5, "metadata": {}},
        {"event": "bot", "text": sentence(3), "timestamp": 1767348005.5, "metadata": {}},
    ]
    for n in range(2):
        as_json(tmp_path / f"{n}.json", {"sender_id": f"u{n}", "events": events})
    for run in read_by_draft(tmp_path):
        assert [e.text for e in run.events if e.kind == "message"] == [sentence(n) for n in range(4)]
        assert [e.action.name for e in run.events if e.action] == ["action_listen", "utter_answer"]


def test_sessions_beside_examples_that_begin_as_they_do_are_sessions(tmp_path: Path) -> None:
    def talk(*said: str) -> list[dict[str, str]]:
        return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]

    episodes = [{"id": f"e{n}", "messages": talk(SAID[0], sentence(n), SAID[2])} for n in range(4)]
    log = {"examples": talk(SAID[0], SAID[3]), "episodes": episodes}
    runs = read_by_draft(as_json(tmp_path / "log.json", log))
    assert [(run.native_id, len(run.events)) for run in runs] == [(f"e{n}", 3) for n in range(4)]


def test_ratings_of_a_talk_by_several_are_no_talk_that_grew(tmp_path: Path) -> None:
    rows = [
        {
            "conversation_id": c,
            "rater": f"r{n}",
            "rating": n,
            "talk": [["user", SAID[0]], ["bot", f"{SAID[1]} {c}"]],
        }
        for c in "ab"
        for n in range(3)
    ]
    runs = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert len({run.id for run in runs}) == 6


@pytest.mark.parametrize(
    "firsts",
    [
        ("Professor Ada Lovelace of London", "The Assistant of the laboratory"),
        [f"2026-03-01T10:00:0{n}.123456+00:00" for n in range(4)],
    ],
    ids=["names", "times"],
)
def test_a_name_or_a_time_before_a_text_is_nothing_said(tmp_path: Path, firsts: Sequence[str]) -> None:
    rows = [
        {"id": f"c{c}", "talk": [[firsts[n % len(firsts)], f"{sentence(n)} {c}"] for n in range(4)]}
        for c in range(3)
    ]
    runs = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert [len(run.events) for run in runs] == [4, 4, 4]


def test_steps_with_a_prompt_an_answer_and_an_observation_keep_the_observation(tmp_path: Path) -> None:
    steps = [
        {"prompt": sentence(n), "response": sentence(n + 1), "observation": f"Seen {n}"} for n in range(4)
    ]
    runs = read_by_draft(
        as_lines(tmp_path / "log.jsonl", [{"id": f"c{c}", "steps": steps} for c in range(3)])
    )
    assert all(f"Seen {n}" in str(run) for run in runs for n in range(4))

    counted = [
        {"prompt": sentence(n), "response": sentence(n + 1), "output_tokens": 7, "search_results": 3}
        for n in (0, 2)
    ]
    talks = [{"id": f"c{c}", "steps": counted} for c in range(3)]
    assert said_of(read_by_draft(as_lines(tmp_path / "counted" / "log.jsonl", talks))) == [ASKED] * 3


def test_tokens_of_an_input_are_no_arguments(tmp_path: Path) -> None:
    steps = [
        {"thought": sentence(n), "action": "search", "input_tokens": 12 + n, "observation": sentence(n + 2)}
        for n in range(3)
    ]
    runs = read_by_draft(
        as_lines(tmp_path / "log.jsonl", [{"id": f"c{c}", "steps": steps} for c in range(3)])
    )
    assert {str(event.action.arguments) for run in runs for event in run.events if event.action} == {"{}"}


def test_parts_of_a_step_are_no_rival_answers(tmp_path: Path) -> None:
    kinds = ("user_message", "run", "tool", "tool", "assistant_message")
    steps = [
        {
            "id": f"i{n}",
            "parentId": None if n == 0 else f"i{min(n - 1, 1)}",
            "type": kind,
            "output": sentence(n),
        }
        for n, kind in enumerate(kinds)
    ]
    log = as_json(tmp_path / "log.json", [{"id": f"t{t}", "steps": steps} for t in range(2)])
    assert "rival" not in draft(log).text


def test_turns_in_one_line_with_a_mark_between_them_are_apart(tmp_path: Path) -> None:
    """As MathDial has them; what stands behind a colon within a turn is said in it."""
    said = (
        "Teacher: (generic)Hi, what is the sum",
        "Ayisha: I get this: four",
        "Teacher: Why?",
        "Ayisha: Since.",
    )
    rows = [{"qid": n, "conversation": "|EOM|".join((*said[:3], f"{said[3]} {n}"))} for n in range(3)]
    talks = read_by_draft(as_lines(tmp_path / "talks.jsonl", rows))
    assert [[(event.actor, event.text) for event in talk.events[:3]] for talk in talks] == [
        [("Teacher", "(generic)Hi, what is the sum"), ("Ayisha", "I get this: four"), ("Teacher", "Why?")]
    ] * 3
    assert [talk.events[3].text for talk in talks] == [f"Since. {n}" for n in range(3)]


def test_each_line_of_turns_with_a_mark_between_them_begins_with_who_speaks(tmp_path: Path) -> None:
    lines = (
        "|EOM|".join((f"Teacher: Why {n}?", f"Ayisha: Since {n}.", f"Teacher: Well {n}.")) for n in range(3)
    )
    (talk,) = read_by_draft(as_text(tmp_path / "talks.txt", "Talks\n" + "\n".join(lines)))
    said = [event.text for event in talk.events if event.actor == "Teacher"]
    assert said == [text for n in range(3) for text in (f"Why {n}?", f"Well {n}.")]


def test_keys_with_a_colon_below_headings_are_said_there(tmp_path: Path) -> None:
    turns = [(name, sentence(n)) for n in range(4) for name in ("Human", "AI")]
    text = "".join(f"=== {name} ===\n{said}\nimport:json\nfrom:os\n" for name, said in turns)
    (talk,) = read_by_draft(as_text(tmp_path / "talk.txt", text))
    assert [event.actor for event in talk.events] == [name for name, _ in turns]


def test_lines_of_several_turns_each_are_said_to_be_read_as_one_session(tmp_path: Path) -> None:
    """Deal or No Deal, as it was released: a dialogue a line."""
    talks = [
        f"<input> 1 {n} 4 </input> YOU: {sentence(n)} <eos> THEM: {sentence(1)} <eos> YOU: <selection>"
        for n in range(6)
    ]
    for text, told in (("\n".join(talks), ["6 lines hold several turns each"]), (talks[0], [])):
        made = draft(as_text(tmp_path / "train.txt", f"{text}\n"))
        questions = open_questions(made.survey, made.guess)
        assert [one.partition(",")[0] for one in questions if "several turns each" in one] == told
    records = [{"text": one} for one in talks]
    assert len(read_by_draft(as_lines(tmp_path / "train.jsonl", records))) == 6


def test_a_file_of_sessions_beside_one_of_messages_is_said_to_be_lost(tmp_path: Path) -> None:
    messages = [
        {
            "dialogue_id": d,
            "sender_role": ("participant", "assistant")[n % 2],
            "content": f"{sentence(n)} {d}",
        }
        for d in range(6)
        for n in range(4)
    ]
    as_lines(tmp_path / "messages.jsonl", messages)
    as_lines(tmp_path / "dialogues.jsonl", [{"dialogue_id": d, "arm": "ab"[d % 2]} for d in range(6)])
    made = draft(tmp_path)
    (told,) = [one for one in open_questions(made.survey, made.guess) if "says who speaks" in one]
    assert told.startswith("no record of dialogues.jsonl that was looked at") and '"!dialogues.jsonl"' in told
    (tmp_path / "dialogues.jsonl").unlink()
    alone = draft(tmp_path)
    assert not [one for one in open_questions(alone.survey, alone.guess) if "says who speaks" in one]
