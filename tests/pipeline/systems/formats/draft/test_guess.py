"""What `coaudit map` drafts for logs of tools that run, watch and compare agents, used as it is."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.ingest.run import preview
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.draft.survey import survey_logs
from coaudit.pipeline.systems.formats.draft.unclear import open_questions
from coaudit.pipeline.systems.formats.messages.growing import sessions_of
from coaudit.schemas import Trajectory
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import one, outline, write_lines
from tests.pipeline.systems.formats.shapes import as_json, as_lines, as_text, sentence
from tests.pipeline.systems.formats.shapes_logs import LOGS

USER, AGENT = ("user", "human"), ("assistant", "agent")
EXPECTED: dict[str, tuple[int, list[tuple[str, str]], list[tuple[str, str, str | None]]]] = {
    "traced_runs": (
        3,
        [USER, AGENT],
        [
            ("user", "message", sentence(0)),
            ("assistant", "action", "timetable"),
            ("assistant", "message", sentence(3)),
        ],
    ),
    "observations": (
        2,
        [("environment", "environment"), USER, AGENT],
        [
            ("environment", "start", "Be brief."),
            ("user", "message", sentence(0)),
            ("assistant", "action", "search"),
            ("assistant", "message", sentence(3)),
        ],
    ),
    "typed_events": (
        3,
        [USER, AGENT],
        [
            ("user", "message", sentence(0)),
            ("assistant", "action", "bash"),
            ("assistant", "message", sentence(3)),
        ],
    ),
    "turns_of_steps": (
        3,
        [USER, AGENT, ("environment", "environment")],
        [
            ("user", "message", sentence(0)),
            ("assistant", "action", "cd"),
            ("assistant", "action", "ls"),
            ("environment", "note", "decoded"),
            ("assistant", "message", sentence(2)),
            ("user", "message", sentence(1)),
        ],
    ),
    "crew": (
        1,
        [("Senior Researcher", "agent"), ("Reporting Analyst", "agent")],
        [
            ("Senior Researcher", "note", sentence(0)),
            ("Senior Researcher", "message", f"# research\n{sentence(2)}"),
            ("Reporting Analyst", "note", sentence(1)),
        ],
    ),
    "channel": (
        2,
        [("U01", "human"), ("helper", "agent"), ("U02", "human")],
        [
            ("U01", "message", sentence(0)),
            ("helper", "message", sentence(1)),
            ("U02", "message", sentence(2)),
        ],
    ),
    "arena": (
        6,
        [USER, AGENT],
        [("user", "message", sentence(0)), ("assistant", "message", f"a: {sentence(1)}")],
    ),
    "answers_of_two": (
        8,
        [USER, AGENT],
        [("user", "message", sentence(0)), ("assistant", "message", sentence(1))],
    ),
    "model_calls": (
        2,
        [("environment", "environment"), USER, AGENT],
        [
            ("environment", "start", "You write code."),
            ("user", "message", sentence(0)),
            ("assistant", "message", "```python\nprint(apis.show(0))\n```"),
            ("assistant", "action", "python"),
            ("assistant", "message", "```python\nprint(apis.show(1))\n```"),
        ],
    ),
    "interactions": (
        2,
        [("environment", "environment"), ("python", "agent")],
        [
            ("environment", "note", f"### Environment Interaction 1\n{'-' * 60}"),
            *[("python", "action", "python")] * 3,
        ],
    ),
    "general_assistant": (
        3,
        [USER, ("agent", "agent")],
        [
            ("user", "message", sentence(0)),
            ("agent", "action", "web_search"),
            ("agent", "action", "final_answer"),
        ],
    ),
}


@pytest.mark.parametrize("shape", LOGS)
def test_a_draft_used_as_it_is_gives_the_sessions_their_speakers_and_what_they_did(
    tmp_path: Path, shape: str
) -> None:
    count, people, events = EXPECTED[shape]
    trajectories = read_by_draft(LOGS[shape](tmp_path))
    assert len(trajectories) == count and len({t.id for t in trajectories}) == count
    assert len({t.native_id for t in trajectories}) == count
    first = trajectories[0]
    assert [(p.name, p.kind) for p in first.participants] == people
    assert outline(first.events)[: len(events)] == events


def test_a_run_of_a_tool_is_the_result_of_the_call_that_a_model_made_and_fails_with_its_error(
    tmp_path: Path,
) -> None:
    runs = read_by_draft(LOGS["traced_runs"](tmp_path))
    actions = [event for run in runs for event in run.events if event.kind == "action"]
    assert [(e.action and e.action.arguments, e.status, e.error) for e in actions] == [
        ({"to": "Ulm"}, None, None),
        ({"to": "Ulm"}, "failed", "TimeoutError: no answer"),
        ({"to": "Ulm"}, None, None),
    ]
    shown = runs[0].states[actions[0].states["public"]]
    assert (shown, runs[0].agent_model) == ({"observation": "three trains"}, "m-1")


def test_calls_that_are_all_of_a_text_are_its_actions_with_the_results_that_follow(tmp_path: Path) -> None:
    run = read_by_draft(LOGS["turns_of_steps"](tmp_path))[0]
    actions = [event for event in run.events if event.kind == "action"]
    assert [(e.action and (e.action.name, e.action.arguments), e.status) for e in actions] == [
        (("cd", {"folder": "a0"}), None),
        (("ls", {}), "failed"),
        (("cd", {"folder": "a1"}), None),
        (("ls", {}), "failed"),
    ]


def test_of_two_sessions_in_a_record_each_is_one_that_won_or_did_not(tmp_path: Path) -> None:
    runs = read_by_draft(LOGS["arena"](tmp_path))
    assert [(run.native_id, run.agent_model, run.tags) for run in runs[:2]] == [
        ("q0/a", "m-1", {"side": "a"}),
        ("q0/b", "m-2", {"side": "b"}),
    ]
    won = [next(o.value for o in run.outcomes if o.name == "won") for run in runs]
    assert won == [1, 0, 0, 1, None, None]


def test_what_a_command_printed_is_no_word_of_a_human_and_a_page_tells_what_failed(tmp_path: Path) -> None:
    calls = read_by_draft(LOGS["model_calls"](tmp_path / "calls"))[0]
    assert sum(event.actor == "user" for event in calls.events) == 1
    page = read_by_draft(LOGS["interactions"](tmp_path / "pages"))[0]
    actions = [event for event in page.events if event.kind == "action"]
    assert [(e.action and e.action.arguments, e.status) for e in actions] == [
        ({"command": "print(apis.show(0, 0))"}, None),
        ({"command": "print(apis.show(0, 1))"}, "failed"),
        ({"command": "print(apis.show(0, 2))"}, "failed"),
    ]


def test_files_of_other_things_are_passed_over_by_name_and_times_in_seconds_are_times(tmp_path: Path) -> None:
    folder = LOGS["channel"](tmp_path)
    assert 'files = ["*.json", "!channels.json", "!users.json"]' in draft(folder).text
    assert [e.time for e in read_by_draft(folder)[0].events][:2] == [
        "2026-01-01T00:00:00.000100+00:00",
        "2026-01-01T00:00:30.000200+00:00",
    ]


def test_a_reference_answer_is_no_field_that_a_judge_sees(tmp_path: Path) -> None:
    text = draft(LOGS["general_assistant"](tmp_path)).text
    assert '# hidden = "Final answer"' in text and "Final answer" not in json.dumps(tomllib.loads(text))


def test_calls_of_two_sessions_that_begin_alike_are_told_apart_by_the_reply() -> None:
    def asked(text: str) -> dict[str, str]:
        return {"role": "user", "content": text}

    def back(text: str) -> dict[str, str]:
        return {"role": "assistant", "content": text}

    first, one, two = asked("Go."), back("I take the train."), back("I take the bus.")
    calls = [
        ([first], [one]),
        ([first], [two]),
        ([first, two, asked("When?")], [back("At two.")]),
        ([first, one, asked("When?")], [back("At one.")]),
    ]
    sessions = sessions_of(calls)
    assert [(s.first, s.last, s.messages[-1]["content"]) for s in sessions] == [
        (0, 3, "At one."),
        (1, 2, "At two."),
    ]


def test_checkpoints_of_which_the_latest_stands_first_are_one_session(tmp_path: Path) -> None:
    said = [
        {"type": "human", "content": sentence(0)},
        {"type": "ai", "content": "", "tool_calls": [{"name": "find", "args": {}, "id": "c1"}]},
        {"type": "tool", "content": sentence(1), "tool_call_id": "c1", "status": "success"},
        {"type": "ai", "content": sentence(2), "tool_calls": []},
    ]
    states = [
        {
            "config": {"configurable": {"thread_id": "t", "checkpoint_id": f"1e{n}"}},
            "values": {"messages": said[:n]},
        }
        for n in (4, 3, 2, 1)
    ]
    (session,) = read_by_draft(write_lines(tmp_path / "history.jsonl", *states))
    assert [(event.actor, event.kind, event.status) for event in session.events] == [
        ("user", "message", None),
        ("assistant", "action", "succeeded"),
        ("assistant", "message", None),
    ]


def test_a_draft_says_what_it_did_not_understand_and_which_line_to_change(tmp_path: Path) -> None:
    def doubts(path: Path) -> list[str]:
        made = draft(path)
        return list(open_questions(made.survey, made.guess))

    crew = doubts(LOGS["crew"](tmp_path))
    assert any("no field tells sessions apart" in one and "native_id" in one for one in crew)
    assert any("Reporting Analyst (agent)" in one and "[roles]" in one for one in crew)
    deep = [{"id": n, "choices": [{"turns": [{"a": sentence(n)}, {"a": sentence(n + 1)}]}]} for n in range(3)]
    nothing = doubts(write_lines(tmp_path / "deep.jsonl", *deep))
    assert "two lists deep" in nothing[1]
    assert (
        '[event] text = "choices[0].turns[].a" reads the first item of choices, which is its only'
        in nothing[1]
    )
    texts = [[], [{"b": [{"c": [sentence(n), sentence(n + 1)]} for n in range(2)]}]]
    deeper = [{"id": n, "a": texts[n % 2]} for n in range(4)]
    there = doubts(write_lines(tmp_path / "deeper.jsonl", *deeper))[1]
    assert "3 lists deep" in there
    assert '"a[0].b[0].c[].text" reads the first item of a and of a[].b, and leaves out all others' in there
    several = [
        {"id": n, "steps": [{"options": [{"text": sentence(n + k)}]} for k in range(5)]} for n in range(4)
    ]
    longest = doubts(write_lines(tmp_path / "longest.jsonl", *several))[1]
    assert '"steps[].options[0].text" reads the first item of steps[].options, which is its only' in longest
    talk = [{"role": "user", "content": sentence(0)}, {"role": "assistant", "content": sentence(1)}]
    mixed = [{"id": n, "prompt": talk} for n in range(4)]
    told = doubts(write_lines(tmp_path / "mixed.jsonl", {"spec": "x"}, *mixed))
    assert any(one.startswith("1 of 5 records has nothing at prompt") for one in told)
    plain = doubts(write_lines(tmp_path / "numbers.jsonl", *({"a": n} for n in range(3))))
    assert plain[-1].startswith("no path has texts")


def bots_by_a_flag(folder: Path) -> Path:
    """A channel's export in which a flag of the author says who is a bot."""
    people = (("ada", False), ("helper-x", True), ("bo", False))
    messages = [
        {"id": str(n), "timestamp": f"2026-01-01T10:0{n}:00Z", "content": sentence(n)}
        | {"author": {"id": str(n % 3), "name": people[n % 3][0], "isBot": people[n % 3][1]}}
        for n in range(6)
    ]
    return as_json(folder / "chat.json", {"channel": {"id": "1", "name": "lab"}, "messages": messages})


def dated_lines(folder: Path) -> Path:
    """A messenger's export: a date as people write it, a name, a line."""
    lines = (f"1/{n + 1}/26, 9:1{n} PM - {('Ada', 'Coach Bot')[n % 2]}: {sentence(n)}" for n in range(6))
    return as_text(folder / "chat.txt", "\n".join(lines))


def outputs_as_turns(folder: Path) -> Path:
    """Runs in an operating system: what a command printed is a user's turn, without a scaffold's mark."""
    command = f"Think: {sentence(1)}\n\n```bash\nls\n```"
    turns = [
        ("user", sentence(0)),
        ("agent", command),
        ("user", "The output of the OS:\n\na"),
        ("agent", sentence(2)),
    ]
    history = [{"role": role, "content": text} for role, text in turns]
    return as_lines(folder / "runs.jsonl", [{"index": n, "output": {"history": history}} for n in range(4)])


def named_calls(folder: Path) -> Path:
    """Calls whose only kind is the address of what ran, and times in nanoseconds."""
    asked = {"messages": [{"role": "user", "content": sentence(0)}]}
    back = {"choices": [{"message": {"role": "assistant", "content": sentence(3)}}]}
    ops = (
        ("Team.run", {"task": sentence(0)}, sentence(3)),
        ("chat.completions", asked, back),
        ("tool.search", {"q": 1}, "x"),
    )
    rows = [
        {"id": f"{t}{n}", "op_name": f"lab:///p/op/{op}:v{n}", "trace_id": f"t{t}", "inputs": i, "output": o}
        | {"parent_id": f"{t}0" if n else None, "started_at": 1767225600000000000 + n * 10**9}
        for t in range(2)
        for n, (op, i, o) in enumerate(ops)
    ]
    return as_lines(folder / "calls.jsonl", rows)


def steps_of_a_terminal(folder: Path) -> Path:
    """Steps by source, what is said as `message`, calls and what came of them beside it."""
    call = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "ls"}}
    seen = {"results": [{"source_call_id": "c1", "content": "Error: no such folder"}]}
    steps = [
        {"step_id": 1, "source": "system", "message": "You act in a shell."},
        {"step_id": 2, "source": "user", "message": sentence(0)},
        {"step_id": 3, "source": "agent", "message": sentence(1), "tool_calls": [call], "observation": seen},
        {"step_id": 4, "source": "agent", "message": sentence(3)},
    ]
    return as_lines(folder / "runs.jsonl", [{"session_id": f"s{n}", "steps": steps} for n in range(3)])


def numbered_columns(folder: Path) -> Path:
    """A row a participant, a column for each thing that was said."""
    rows = [",".join([f"p{n}", *(f'"{sentence(k)}"' for k in range(4)), str(n)]) for n in range(4)]
    return as_text(folder / "wide.csv", "\n".join(["pid,user_1,ai_1,user_2,ai_2,score", *rows]) + "\n")


def captions(folder: Path) -> Path:
    """A call's captions: a number, a time and a name before each line."""
    lines = [
        f"{n + 1}\n00:0{n}:00.000 --> 00:0{n}:09.000\n{('Ada Lovelace', 'Coach')[n % 2]}: {sentence(n)}\n"
        for n in range(6)
    ]
    return as_text(folder / "call.vtt", "\n".join(["WEBVTT\n", *lines]))


@pytest.mark.parametrize(
    ("make", "people", "events"),
    [
        (
            bots_by_a_flag,
            [("ada", "human"), ("helper-x", "agent"), ("bo", "human")],
            [("ada", "message", sentence(0)), ("helper-x", "message", sentence(1))],
        ),
        (
            dated_lines,
            [("Ada", "human"), ("Coach Bot", "agent")],
            [("Ada", "message", sentence(0)), ("Coach Bot", "message", sentence(1))],
        ),
        (
            outputs_as_turns,
            [USER, ("agent", "agent"), ("user (environment)", "environment")],
            [
                ("user", "message", sentence(0)),
                ("agent", "action", "bash"),
                ("agent", "message", sentence(2)),
            ],
        ),
        (
            named_calls,
            [USER, AGENT],
            [
                ("user", "message", sentence(0)),
                ("assistant", "message", sentence(3)),
                ("assistant", "action", "tool.search"),
            ],
        ),
        (
            steps_of_a_terminal,
            [("environment", "environment"), USER, AGENT],
            [
                ("environment", "start", "You act in a shell."),
                ("user", "message", sentence(0)),
                ("assistant", "message", sentence(1)),
                ("assistant", "action", "bash"),
                ("assistant", "message", sentence(3)),
            ],
        ),
        (
            numbered_columns,
            [("user", "human"), ("ai", "agent")],
            [
                ("user", "message", sentence(0)),
                ("ai", "message", sentence(1)),
                ("user", "message", sentence(2)),
                ("ai", "message", sentence(3)),
            ],
        ),
        (
            captions,
            [("Ada Lovelace", "human"), ("Coach", "agent")],
            [
                ("Ada Lovelace", "message", sentence(0)),
                ("Coach", "message", sentence(1)),
            ],
        ),
    ],
)
def test_logs_for_which_no_rule_was_made_are_told_by_the_same_rules(
    tmp_path: Path,
    make: Callable[[Path], Path],
    people: list[tuple[str, str]],
    events: list[tuple[str, str, str | None]],
) -> None:
    first = read_by_draft(make(tmp_path))[0]
    assert [(person.name, person.kind) for person in first.participants] == people
    assert outline(first.events)[: len(events)] == events


def test_calls_beside_what_is_said_have_the_results_that_name_them(tmp_path: Path) -> None:
    run = read_by_draft(steps_of_a_terminal(tmp_path))[0]
    (action,) = [event for event in run.events if event.kind == "action"]
    assert action.action is not None and action.action.arguments == {"cmd": "ls"}
    assert (action.status, run.states[action.states["public"]]) == (
        "failed",
        {"observation": "Error: no such folder"},
    )


def test_a_draft_that_reads_nobodys_words_says_so_and_where_they_may_stand(tmp_path: Path) -> None:
    log = [
        {"role": role, "said": {"de": sentence(n)}, "tool": None if n % 2 else "look"}
        for n, role in enumerate(("user", "agent") * 3)
    ]
    path = write_lines(tmp_path / "a.jsonl", *({"id": f"s{n}", "log": log} for n in range(3)))
    made = draft(path)
    assert "text" not in made.guess.event
    assert "no field is known to hold what was said; it may be log[].said.de ([event] text)" in list(
        open_questions(made.survey, made.guess)
    )


def test_what_was_said_is_known_by_its_words_where_its_name_tells_nothing(tmp_path: Path) -> None:
    log = tmp_path / "export.csv"
    rows = [f"P{n // 4};{('H', 'AI')[n % 2]};what number {n} says;{n // 4 % 2}" for n in range(24)]
    log.write_text("\n".join(["Session;Speaker (H/AI);Wortlaut;solved?", *rows]) + "\n")
    mapping = tomllib.loads(draft(log).text)
    assert mapping["event"]["text"] == "Wortlaut"
    assert mapping["outcomes"] == {"solved?": "solved?"}


def test_a_session_that_a_log_has_twice_keeps_its_id(tmp_path: Path) -> None:
    log = tmp_path / "set.jsonl"
    turns = [{"role": "user", "content": "To Ulm?"}, {"role": "assistant", "content": "Yes."}]
    records = [{"conversation_hash": f"h{n}", "model": "m", "conversation": turns} for n in (0, 1, 2, 3, 2)]
    log.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert tomllib.loads(draft(log).text)["trajectory"]["native_id"] == "conversation_hash"


def test_a_participant_with_whom_both_sides_speak_is_the_session(tmp_path: Path) -> None:
    log = tmp_path / "chat.csv"
    rows = [f"P{n // 4},{n // 4 % 2},{n % 4 + 1},{('Person', 'AI')[n % 2]},what {n} says" for n in range(32)]
    log.write_text("\n".join(["Participant ID,condition,turn,speaker,message", *rows]) + "\n")
    mapping = tomllib.loads(draft(log).text)
    assert mapping["trajectory"] == {"native_id": "Participant ID", "condition": "condition"}
    assert mapping["event"]["role"] == "speaker"
    assert mapping["roles"] == {"Person": "human", "AI": "agent"}


def test_people_whose_words_are_left_out_are_told(tmp_path: Path) -> None:
    log = tmp_path / "trees.jsonl"
    replies = [{"text": f"It goes at {n} o'clock.", "role": "assistant"} for n in (1, 2)]
    prompt = {"text": "When does it go?", "role": "prompter", "replies": replies}
    log.write_text("".join(f"{json.dumps({'tree': f't{n}', 'prompt': prompt})}\n" for n in range(4)))
    made = draft(log)
    assert any("prompt.role says prompter" in line for line in open_questions(made.survey, made.guess))


def steps(session: int, words: tuple[object, ...]) -> list[dict[str, object]]:
    """What a person asks, what an agent does, each with how it ended, and what tools say."""
    asked: dict[str, object] = {"role": "human", "actor": "user", "text": f"{sentence(session)}, please."}
    done: list[dict[str, object]] = [
        {"role": "agent", "actor": "assistant", "action": "open_page", "text": sentence(n), "status": word}
        for n, word in enumerate(words)
    ]
    shown: list[dict[str, object]] = [
        {"role": "tool", "actor": name, "text": f"{name} on {sentence(session)}."}
        for name in ("browser", "get_user")
    ]
    return [asked, *done, *shown]


def log_file(path: Path, sessions: list[list[dict[str, object]]], *, table: bool = False) -> Path:
    """A session a record, or an event a record."""
    if table:
        return as_lines(
            path, [{"session": f"s{n}", **one} for n, many in enumerate(sessions) for one in many]
        )
    return as_lines(path, [{"session": f"s{n}", "events": many} for n, many in enumerate(sessions)])


def mapping_of(path: Path) -> dict[str, Any]:
    return tomllib.loads(draft(path).text)


OK = ("ok", "error", "ok")


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize(
    ("words", "statuses"),
    [
        (("ok", "Timed out", "cancelled"), ["succeeded", "failed", None]),
        ((True, False, True), ["succeeded", "failed", "succeeded"]),
    ],
)
def test_how_an_action_ended_is_told_by_words_that_are_all_known(
    tmp_path: Path, table: bool, words: tuple[str | bool, ...], statuses: list[str | None]
) -> None:
    first = read_by_draft(log_file(tmp_path / "log.jsonl", [steps(n, words) for n in range(4)], table=table))[
        0
    ]
    assert [event.status for event in first.events if event.kind == "action"] == statuses
    kinds = {person.name: person.kind for person in first.participants}
    tools = {"browser": "environment", "get_user": "environment"}
    assert kinds == {"user": "human", "assistant": "agent"} | tools, (
        "tools by their role, whatever their name"
    )


def rename_status(events: list[dict[str, object]], name: str) -> list[dict[str, object]]:
    """The events with their status under another name."""
    return [{name if key == "status" else key: value for key, value in event.items()} for event in events]


FLAWS: list[tuple[str, tuple[object, ...], list[str | None]]] = [
    ("error", (False, True, False), ["succeeded", "failed", "succeeded"]),
    ("isError", (False, True, False), ["succeeded", "failed", "succeeded"]),
    ("failed", (True, False, True), ["failed", "succeeded", "failed"]),
    ("exit_code", (0, 127, 0), ["succeeded", "failed", "succeeded"]),
    ("exit_code", ("1", "0", "139"), ["failed", "succeeded", "failed"]),
    ("error", (None, "No route", None), ["succeeded", "failed", "succeeded"]),
    ("error", ("", "No route", ""), ["succeeded", "failed", "succeeded"]),
]


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize(("name", "said", "statuses"), FLAWS)
def test_how_an_action_ended_is_told_by_a_flag_an_exit_code_or_an_error(
    tmp_path: Path, table: bool, name: str, said: tuple[object, ...], statuses: list[str | None]
) -> None:
    sessions = [rename_status(steps(n, said), name) for n in range(4)]
    first = read_by_draft(log_file(tmp_path / "log.jsonl", sessions, table=table))[0]
    acts = [event for event in first.events if event.kind == "action"]
    assert [event.status for event in acts] == statuses
    made = draft(tmp_path / "log.jsonl")
    doubts = " ".join(open_questions(made.survey, made.guess))
    assert (
        "is taken for a failure" in doubts
        or "any other for a failure" in doubts
        or "to have failed" in doubts
    )
    if "No route" in said:
        assert [event.error for event in acts] == [None, "No route", None]


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_error", (False, True, False)),
        ("error_handled", (False, True, False)),
        ("error_count", (0, 1, 0)),
        ("exit_code", (0, 0, 0)),
        ("exit_code", (2, 1, 2)),
        ("exit_code", ("0", "SIGKILL", "0")),
        ("exit_code", (0, -1, 0)),
        ("return_code", (0, 200, 0, 404)),
        ("exit_code", (1, 1, 0, 0)),
        ("failed", (False, True, True, True)),
        ("error", (False, False, False)),
        ("error", (False, False, True)),
        ("error", (None, "none", None)),
        ("error", (None, "No errors found.", None)),
        ("error", (None, "Exit code 0", None)),
        ("error", (None, "nan", None)),
        ("error", (None, "Warning: slow", None)),
        ("error", (None, "No route", {"code": 3})),
        ("error", ("No route", "No route", "No route")),
    ],
)
def test_a_flag_or_a_code_that_may_mean_anything_else_is_left_to_a_person(
    tmp_path: Path, table: bool, name: str, said: tuple[object, ...]
) -> None:
    """Its opposite, a number of errors, one value alone, what a session comes to, or words of all kinds."""
    sessions = [rename_status(steps(n, said), name) for n in range(4)]
    mapping = mapping_of(log_file(tmp_path / "log.jsonl", sessions, table=table))
    assert not {"status", "error"} & set(mapping["event"])
    assert not {"statuses", "results"} & set(mapping) and "status" not in mapping["constants"]


FEW: list[tuple[str, list[tuple[object, ...]], str]] = [
    ("exit_code", [(2, 0), (0, 1), (0, 0), (1, 2)], "FS SF SS FF"),
    ("exit_code", [(0,), (3,), (0,)], "S F S"),
    ("success", [(False, True), (True, False), (True, True)], "FS SF SS"),
    ("success", [(0, 1), (1, 0), (1, 1)], "FS SF SS"),
    ("ok", [("FALSE", "TRUE"), ("TRUE", "FALSE"), ("TRUE", "TRUE")], "FS SF SS"),
    ("is_error", [(True, False), (False, True), (False, False)], "FS SF SS"),
    ("status_code", [(200, 404), (500, 302), (204, 200)], "SF FS SS"),
    ("httpStatus", [(200, 404, 200)], "SFS"),
]


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize(("name", "said", "statuses"), FEW)
def test_a_flag_or_a_code_of_actions_alone_is_theirs_however_few_a_session_has(
    tmp_path: Path, table: bool, name: str, said: list[tuple[object, ...]], statuses: str
) -> None:
    sessions = [rename_status(steps(n, words), name) for n, words in enumerate(said)]
    runs = read_by_draft(log_file(tmp_path / "log.jsonl", sessions, table=table))
    acts = [[event.status for event in run.events if event.kind == "action"] for run in runs]
    assert acts == [[{"S": "succeeded", "F": "failed"}[c] for c in own] for own in statuses.split()]
    assert not any(outcome.name == "success" for run in runs for outcome in run.outcomes)
    made = draft(tmp_path / "log.jsonl")
    assert any(
        "is taken for" in doubt or "are taken for" in doubt
        for doubt in open_questions(made.survey, made.guess)
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("success", [(False, True)] * 8),
        ("success", [(False, False), (True, True), (False, False)]),
        ("outcome", [("success", "success"), ("failure", "success")]),
        ("status", [("accepted", "rejected"), ("accepted", "accepted")]),
        ("exit_code", [(0, -1), (0, 0), (-1, 0)]),
        ("exit_code", [(0, 0), (0, 0)]),
    ],
)
def test_what_actions_alone_have_is_no_outcome_and_told_where_it_is_not_certain(
    tmp_path: Path, name: str, said: list[tuple[object, ...]]
) -> None:
    """What turns only one way, is the same throughout a session, or may mean anything."""
    sessions = [rename_status(steps(n, words), name) for n, words in enumerate(said)]
    made = draft(log_file(tmp_path / "log.jsonl", sessions, table=True))
    mapping = tomllib.loads(made.text)
    assert "outcomes" not in mapping and "status" not in mapping["event"]
    assert any(
        doubt.startswith(f"{name} stands with actions alone")
        for doubt in open_questions(made.survey, made.guess)
    )


def test_what_only_the_last_action_of_a_session_has_is_its_outcome(tmp_path: Path) -> None:
    sessions = [rename_status(steps(n, (None, None, n % 2)), "reward") for n in range(4)]
    path = log_file(tmp_path / "log.jsonl", sessions, table=True)
    assert mapping_of(path)["outcomes"] == {"reward": "reward", "success": "reward"}


def test_a_flag_of_what_came_back_under_the_agents_name_is_the_action_s(tmp_path: Path) -> None:
    """And what the environment says of itself stands beside that."""
    done = [
        {"source": "agent", "action": "run", "args": {"command": command}, "content": f"I call {command}."}
        for command in ("ls", "pytest")
    ]
    came = [
        {
            "source": "agent",
            "observation": "run",
            "content": f"It says {sentence(turn)}.",
            "success": turn == 0,
        }
        for turn in range(2)
    ]
    events = [
        {"source": "user", "content": f"{sentence(2)}, please."},
        {"source": "environment", "observation": "state_changed", "content": "The agent runs."},
        *(event for pair in zip(done, came, strict=True) for event in pair),
        {"source": "agent", "content": "That is all that there is."},
    ]
    (run,) = read_by_draft(as_lines(tmp_path / "log.jsonl", events))
    assert [event.status for event in run.events if event.kind == "action"] == ["succeeded", "failed"]
    assert run.outcomes == ()


def test_an_error_of_steps_that_say_none_makes_no_failure(tmp_path: Path) -> None:
    steps_ = [
        {
            "session": f"s{s}",
            "step": n,
            "thought": "I look.",
            "action": "search",
            "observation": "out",
            "error": word,
        }
        for s in range(3)
        for n, word in enumerate(("None", "None", "boom" if s == 1 else "None", "None"))
    ]
    runs = read_by_draft(as_lines(tmp_path / "log.jsonl", steps_))
    assert {event.status for run in runs for event in run.events} == {None}


@pytest.mark.parametrize("none", [None, ""])
def test_an_error_of_steps_fails_the_step_that_it_stands_with(tmp_path: Path, none: str | None) -> None:
    runs = [
        {
            "goal": f"{sentence(n)}, please.",
            "trajectory": [
                {"action_type": name, "observation": f"page {turn} of {n}", "error": word}
                for turn, (name, word) in enumerate(
                    zip(("click", "type") * 2, (none, "Element not found", none, none), strict=True)
                )
            ],
        }
        for n in range(3)
    ]
    first = read_by_draft(as_json(tmp_path / "runs.json", runs))[0]
    acts = [event for event in first.events if event.kind == "action"]
    assert [event.status for event in acts] == ["succeeded", "failed", "succeeded", "succeeded"]
    assert [event.error or None for event in acts] == [None, "Element not found", None, None]


def test_an_error_of_messages_too_is_none_of_actions(tmp_path: Path) -> None:
    sessions = [
        [
            event | {"error": "not heard"} if event["role"] == "human" else event
            for event in rename_status(steps(n, (None, "No route", None)), "error")
        ]
        for n in range(4)
    ]
    assert "error" not in mapping_of(log_file(tmp_path / "log.jsonl", sessions))["event"]


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize(
    "sessions",
    [
        [("ok", "sent", "error")] * 4,
        [("not done", "ok", "error")] * 4,
        [("no error", "ok", "error")] * 4,
        [("ok after error", "ok", "error")] * 4,
        [("running", "ok", "error")] * 4,
        [("ok",) * 3] * 4,
        [("ok",) * 3, ("failed",) * 3] * 20,
        [("ok",) * 3, ("failed",) * 3] * 20 + [("ok", "failed", "ok")],
        [("ok", "ok", "failed")] * 4,
        [("ok", "failed")] * 4,
    ],
)
def test_a_status_that_may_mean_anything_else_is_left_to_a_person(
    tmp_path: Path, table: bool, sessions: list[tuple[str, ...]]
) -> None:
    """A word that is not known, one word alone, how the session ended, or how far it is."""
    mapping = mapping_of(
        log_file(tmp_path / "log.jsonl", [steps(n, words) for n, words in enumerate(sessions)], table=table)
    )
    assert "status" not in mapping["event"] and "statuses" not in mapping


@pytest.mark.parametrize(("name", "values"), [("exit_code", (0, 1, 0)), ("status", ("ok", "error", "ok"))])
def test_a_status_that_is_empty_beside_actions_is_as_one_that_is_not_there(
    tmp_path: Path, name: str, values: tuple[object, ...]
) -> None:
    sessions = [[{name: "", **event} for event in rename_status(steps(n, values), name)] for n in range(4)]
    first = read_by_draft(log_file(tmp_path / "log.jsonl", sessions))[0]
    statuses = [event.status for event in first.events if event.kind == "action"]
    assert statuses == ["succeeded", "failed", "succeeded"]


def test_a_status_of_messages_too_is_none_of_actions(tmp_path: Path) -> None:
    sessions = [[event | {"status": event.get("status", "ok")} for event in steps(n, OK)] for n in range(4)]
    assert "status" not in mapping_of(log_file(tmp_path / "log.jsonl", sessions))["event"]


@pytest.mark.parametrize("beside", ["done", "isTerminal", None])
def test_a_success_that_the_session_has_too_or_a_game_so_far_is_none_of_actions(
    tmp_path: Path, beside: str | None
) -> None:
    sessions = []
    for n in range(4):
        events = [
            {"success" if key == "status" else key: value for key, value in event.items()}
            for event in steps(n, (False, True, False))
        ]
        sessions.append([{**event, beside: False} for event in events] if beside else events)
    records = [
        {"id": n, "events": many, **({} if beside else {"success": True})} for n, many in enumerate(sessions)
    ]
    assert "status" not in mapping_of(as_lines(tmp_path / "log.jsonl", records))["event"]


def test_of_two_statuses_the_action_has_its_own(tmp_path: Path) -> None:
    def nested(event: dict[str, object]) -> dict[str, object]:
        tool = {"name": event.get("action"), "status": event.get("status")}
        rest = {key: value for key, value in event.items() if key not in ("action", "status")}
        approval = {"status": "ok" if event["actor"] == "assistant" else None}
        return {**rest, "approval": approval} | ({"tool": tool} if event.get("action") else {})

    sessions = [[nested(event) for event in steps(n, OK)] for n in range(4)]
    event = mapping_of(log_file(tmp_path / "log.jsonl", sessions))["event"]
    assert event["status"] == "events[].tool.status"
    assert "tool.name" not in str(event.get("role")), "what was done is nobody's name"


@pytest.mark.parametrize("table", [False, True])
def test_a_status_on_what_came_back_is_the_action_s(tmp_path: Path, table: bool) -> None:
    def came(turn: int, word: str) -> list[dict[str, object]]:
        return [
            {"role": "agent", "actor": "assistant", "action": "open_page", "text": f"I open page {turn}."},
            {"role": "tool", "actor": "browser", "text": f"It says {sentence(turn)}.", "status": word},
        ]

    sessions = [[*steps(n, ())[:1], *came(1, "ok"), *came(2, "error"), *came(3, "ok")] for n in range(4)]
    first = read_by_draft(log_file(tmp_path / "log.jsonl", sessions, table=table))[0]
    assert [event.status for event in first.events if event.kind == "action"] == [
        "succeeded",
        "failed",
        "succeeded",
    ]


@pytest.mark.parametrize("parallel", [True, False])
def test_a_status_of_calls_and_of_what_came_back_is_whose_nobody_knows(
    tmp_path: Path, parallel: bool
) -> None:
    def turn(number: int, word: str) -> list[dict[str, object]]:
        call: dict[str, object] = {
            "role": "agent",
            "actor": "assistant",
            "action": "open_page",
            "text": f"I open {number}.",
        }
        came: dict[str, object] = {
            "role": "tool",
            "actor": "browser",
            "text": f"It says {sentence(number)}.",
            "status": word,
        }
        if parallel:
            return [
                call,
                {**call, "text": f"And {number}."},
                came,
                {**came, "text": f"And {sentence(number)}."},
            ]
        return [{**call, "status": "ok"}, came]

    words = ("ok", "error", "ok", "error")
    sessions = [
        [*steps(n, ())[:1], *(one for number, word in enumerate(words) for one in turn(number, word))]
        for n in range(4)
    ]
    assert "status" not in mapping_of(log_file(tmp_path / "log.jsonl", sessions))["event"]


def test_what_each_row_says_otherwise_is_no_outcome_of_a_session(tmp_path: Path) -> None:
    sessions = [
        [
            {**event, "solved": place % 2, "score": n, "passed": place == 4 or None}
            for place, event in enumerate(steps(n, OK))
        ]
        for n in range(4)
    ]
    path = log_file(tmp_path / "log.jsonl", sessions, table=True)
    assert mapping_of(path)["outcomes"] == {"score": "score", "passed": "passed"}


def test_people_are_told_by_a_role_that_tells_them_those_who_come_later_too(tmp_path: Path) -> None:
    names = ("tom", "kim", "lena", "ria")
    sessions: list[list[dict[str, object]]] = [
        [{"role": role, "name": name, "text": sentence(place)} for place, (role, name) in enumerate(pairs)]
        for pairs in ([("user", one), ("assistant", "Pepper")] * 2 for one in names)
    ]
    event = mapping_of(log_file(tmp_path / "log.jsonl", sessions))["event"]
    assert (event["role"], event["actor"]) == ("events[].role", ["events[].name", "events[].role"])
    sessions[0] += [{"role": "user", "name": "Critic", "text": sentence(1)}]
    event = mapping_of(log_file(tmp_path / "other.jsonl", sessions))["event"]
    assert event["role"] == ["events[].name", "events[].role"], "frameworks call other agents users"


def test_a_name_of_whom_a_session_is_with_is_nobody_s_who_speaks_in_it(tmp_path: Path) -> None:
    sessions: list[list[dict[str, object]]] = [
        [
            {"agent": ("orion", "vega", "lyra")[n % 3], "role": role, "text": sentence(n)}
            for role in ("user", "assistant")
        ]
        for n in range(12)
    ]
    assert mapping_of(log_file(tmp_path / "log.jsonl", sessions))["event"]["role"] == "events[].role"


def test_nobody_is_human_for_want_of_knowledge_where_all_are_called_agents(tmp_path: Path) -> None:
    sessions: list[list[dict[str, object]]] = [
        [{"agent": name, "text": sentence(n)} for name in ("Navigator", "Buyer")] for n in range(6)
    ]
    assert set(mapping_of(log_file(tmp_path / "log.jsonl", sessions))["roles"].values()) == {"agent"}


@pytest.mark.parametrize(
    ("name", "value", "is_success"),
    [
        ("outcome", ("SUCCESS", "FAILED"), True),
        ("status", ("resolved", "unresolved"), True),
        ("status", (0, 1), False),
        ("upload", ({"status": "success"}, {"status": "failed"}), False),
    ],
)
def test_an_outcome_in_words_is_a_success_where_it_is_the_session_s(
    tmp_path: Path, name: str, value: tuple[object, object], is_success: bool
) -> None:
    records = [{"session": f"s{n}", "events": steps(n, OK), name: value[n % 2]} for n in range(6)]
    outcomes = mapping_of(as_lines(tmp_path / "log.jsonl", records))["outcomes"]
    assert (outcomes.get("success") == name) is is_success and outcomes.get("success") != "upload.status"


def test_people_whose_names_sound_like_bots_are_people(tmp_path: Path) -> None:
    records = [
        {"session": f"s{n}", "role": role, "name": name, "text": sentence(n + turn)}
        for n in range(6)
        for turn, (role, name) in enumerate(
            (("teacher", "Ms Abbot"), ("student", "Tim Talbot"), ("tutor bot", "Kit"))
        )
    ]
    first = read_by_draft(as_lines(tmp_path / "log.jsonl", records))[0]
    assert {person.name: person.kind for person in first.participants} == {
        "Ms Abbot": "human",
        "Tim Talbot": "human",
        "Kit": "agent",
    }


def test_speakers_are_no_sessions_and_who_is_told_by_a_role_is_said(tmp_path: Path) -> None:
    """As AutoGen has them: whoever is heard is a user."""
    turns = [("Engineer", "user"), ("Admin", "assistant"), ("Critic", "user"), ("Admin", "user")]
    records = [
        {"name": name, "role": role, "content": sentence(n * 4 + turn)}
        for n in range(6)
        for turn, (name, role) in enumerate(turns)
    ]
    made = draft(as_lines(tmp_path / "log.jsonl", records))
    mapping = tomllib.loads(made.text)
    assert "native_id" not in mapping.get("trajectory", {})
    assert mapping["event"]["role"] == ["name", "role"]
    sessions: list[list[dict[str, object]]] = [
        [
            {"role": role, "name": who, "text": sentence(n)}
            for role, who in (("user", name), ("assistant", "Pepper")) * 2
        ]
        for n, name in enumerate(("tom", "kim", "lena"))
    ]
    told = draft(log_file(tmp_path / "told.jsonl", sessions))
    doubts = " ".join(open_questions(told.survey, told.guess))
    assert "only roles say who these are: tom, kim, lena (human); Pepper (agent)" in doubts


def test_tokens_are_no_words_of_a_run(tmp_path: Path) -> None:
    path = LOGS["traced_runs"](tmp_path)
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    counted = [
        {**run, "outputs": run.get("outputs"), "prompt_tokens": 20, "completion_tokens": 10} for run in runs
    ]
    made = draft(as_lines(tmp_path / "counted" / "runs.jsonl", counted)).guess.spans
    assert (made["output"], made["output_tokens"]) == ("outputs", "completion_tokens")
    assert (made["input"], made["input_tokens"]) == ("inputs", "prompt_tokens")


@pytest.mark.parametrize("holder", ["usage", "usageDetails", "latency"])
def test_counts_under_the_names_of_words_are_no_words_of_a_run_without_an_answer(
    tmp_path: Path, holder: str
) -> None:
    def run(number: int, kind: str, answer: str | None) -> dict[str, object]:
        asking = [{"role": "user", "content": sentence(number)}]
        counts = {"input": 9, "output": 7 + number}
        return {"id": f"{kind}{number}", "kind": kind, "input": asking, "output": answer, holder: counts}

    answers = [None, sentence(5)]
    sessions = [
        {"id": f"s{n}", "runs": [run(n, "llm", text), run(n, "chain", None)]}
        for n, text in enumerate(answers)
    ]
    path = as_json(tmp_path / "runs.json", sessions)
    made = draft(path).guess.spans
    assert (made["input"], made["output"]) == ("runs[].input", "runs[].output")
    assert [[e.text for e in one.events] for one in read_by_draft(path)] == [
        [sentence(0)],
        [sentence(1), sentence(5)],
    ]


def doubts_of(path: Path) -> str:
    made = draft(path)
    return " ".join(open_questions(made.survey, made.guess))


def test_names_that_say_otherwise_than_roles_say_who_people_and_agents_are(tmp_path: Path) -> None:
    """As AutoGen keeps a chat of two: whoever began it is the assistant."""
    told = [
        ("assistant", "User_proxy", sentence(0)),
        ("user", "Coder", "```python\nprint(1)\n```"),
        ("assistant", "User_proxy", "exitcode: 1 (execution failed)\nCode output: NameError"),
        ("user", "Coder", "```python\nprint(2)\n```"),
        ("assistant", "User_proxy", "exitcode: 0 (execution succeeded)\nCode output: 2"),
    ]
    history = [{"role": role, "name": name, "content": text} for role, name, text in told]
    path = as_json(tmp_path / "chats.json", [{"chat_id": n, "chat_history": history} for n in range(2)])
    first = read_by_draft(path)[0]
    kinds = {person.name: person.kind for person in first.participants}
    assert (kinds["User_proxy"], kinds["Coder"]) == ("human", "agent")
    assert outline(first.events) == [
        ("User_proxy", "message", sentence(0)),
        ("Coder", "action", "python"),
        ("Coder", "action", "python"),
    ]
    assert [event.status for event in first.events] == [None, "failed", "succeeded"]
    assert "their names say who they are: User_proxy (human); Coder (agent)" in doubts_of(path)


def test_of_one_list_in_which_all_are_users_speakers_are_no_sessions(tmp_path: Path) -> None:
    for names in (
        "Admin Engineer Critic Planner Engineer Critic Planner",
        "Admin Coder Critic Ada Coder Ada",
    ):
        messages = [
            {"content": sentence(n), "role": "user", "name": name} for n, name in enumerate(names.split())
        ]
        path = as_json(tmp_path / "group.json", messages)
        (found,) = read_by_draft(path)
        kinds = {person.name: person.kind for person in found.participants}
        assert (kinds["Admin"], kinds["Critic"], len(kinds)) == ("human", "agent", 4)
        assert "Admin (human)" in doubts_of(path)


def test_agents_that_messages_with_calls_have_as_users_are_agents_by_name(tmp_path: Path) -> None:
    call = {"name": "search", "args": {"q": "Ulm"}, "id": "c1"}
    messages = [
        {"type": "human", "content": sentence(0)},
        {"type": "ai", "content": "", "tool_calls": [call]},
        {"type": "tool", "content": "Ulm is a town.", "tool_call_id": "c1"},
        {"type": "human", "name": "Researcher", "content": sentence(1)},
        {"type": "human", "name": "Ada", "content": sentence(2)},
    ]
    path = as_lines(tmp_path / "state.jsonl", [{"id": f"t{n}", "messages": messages} for n in range(2)])
    first = read_by_draft(path)[0]
    kinds = {person.name: person.kind for person in first.participants}
    assert kinds == {"user": "human", "assistant": "agent", "Researcher": "agent", "Ada": "human"}
    assert "their names say who they are: Researcher (agent)" in doubts_of(path)
    assert "only roles say who these are: Ada (human)" in doubts_of(path)


def bot_records() -> list[dict[str, Any]]:
    """One message each of two conversations, whose id lies in an object."""
    return [
        {
            "from": {"id": who, "name": name, "role": role},
            "conversation": {"id": f"c{n}"},
            "text": sentence(n),
        }
        for n in range(2)
        for who, name, role in (("u1", "Ada", "user"), ("b1", "Pepper", "bot"))
    ]


def test_an_object_that_bears_a_session_s_name_is_no_key_of_one(tmp_path: Path) -> None:
    event = mapping_of(as_json(tmp_path / "log.json", bot_records()))["event"]
    assert (event["role"], event["actor"]) == ("from.role", ["from.name", "from.role"])


def test_an_id_of_a_conversation_is_the_session_and_none_of_who_speaks_or_hears(tmp_path: Path) -> None:
    records = [one | {"recipient": {"id": f"to {one['from']['id']}"}} for one in bot_records()]
    records[1]["suggested"] = {
        "actions": [{"type": "press", "value": "Yes"}, {"type": "press", "value": "No"}]
    }
    records = [one | {"name": "typing"} if n == 3 else one for n, one in enumerate(records)]
    mapping = mapping_of(as_json(tmp_path / "log.json", records))
    assert mapping["trajectory"]["native_id"] == "conversation.id"
    assert (mapping["event"]["text"], mapping["event"]["actor"][0]) == ("text", "from.name")


@pytest.mark.parametrize("nested", [True, False])
def test_an_id_of_who_speaks_is_no_session_and_people_are_told_by_the_kind_of_their_account(
    tmp_path: Path, nested: bool
) -> None:
    people = (("tom", 1, "User"), ("pepper", 2, "Bot"), ("kim", 3, "User"), ("tom", 1, "User"))
    records = [
        ({"user": {"login": who, "id": own, "type": kind}} if nested else {"uid": own, "author": who})
        | {"issue_url": f"https://example.org/issues/{n}", "body": sentence(4 * n + turn)}
        for n in range(3)
        for turn, (who, own, kind) in enumerate(people)
    ]
    file = as_json(tmp_path / "log.json", records)
    assert mapping_of(file)["trajectory"]["native_id"] == "issue_url"
    if nested:
        assert {(one.name, one.kind) for one in read_by_draft(file)[0].participants} == {
            ("tom", "human"),
            ("kim", "human"),
            ("pepper", "agent"),
        }


PAIRED = [
    ("question", "answer"),
    ("user_message", "bot_response"),
    ("user_message", "agent_message"),
    ("user_utterance", "system_response"),
    ("Customer", "Agent"),
]


@pytest.mark.parametrize(("asked", "told"), PAIRED)
def test_rows_of_one_session_that_have_a_question_and_its_answer_are_one(
    tmp_path: Path, asked: str, told: str
) -> None:
    rows = [
        {
            "session_id": f"s{n}",
            "turn": m,
            asked: sentence(n + m),
            told: sentence(m) if m else sentence(n + m + 1),
        }
        | {"at": f"2026-01-02T10:0{n}:0{m}Z", "rating": n}
        for n in range(4)
        for m in range(3)
    ]
    found = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert [one.native_id for one in found] == ["s0", "s1", "s2", "s3"]
    assert [(e.actor, e.text, e.time) for e in found[1].events] == [
        (who, text, f"2026-01-02T10:01:0{m}Z")
        for m in range(3)
        for who, text in (("user", sentence(1 + m)), ("assistant", sentence(m) if m else sentence(2)))
    ]
    assert {o.name: o.value for o in found[1].outcomes} == {"rating": 1}


def test_a_text_by_a_person_is_no_agents_where_nothing_says_who_acts(tmp_path: Path) -> None:
    rows = [{"session_id": f"s{n // 3}", "user_message": sentence(n)} for n in range(9)]
    assert {
        p.kind for one in read_by_draft(as_lines(tmp_path / "log.jsonl", rows)) for p in one.participants
    } == {"human"}


def test_sentences_that_tell_of_agents_are_no_names(tmp_path: Path) -> None:
    rows = [
        {
            "session_id": f"s{n // 3}",
            "user_message": f"The user says {n}",
            "agent_message": f"My agent did {n}",
        }
        for n in range(9)
    ]
    (first, *_) = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert [(p.name, p.kind) for p in first.participants] == [("user", "human"), ("assistant", "agent")]


def test_rows_of_several_raters_are_no_rounds_where_only_some_have_several(tmp_path: Path) -> None:
    rows = [
        {
            "session_id": f"s{n}",
            "turn": m,
            "question": sentence(n + m),
            "answer": sentence(n + m + 1),
            "score": rater,
        }
        for n in range(4)
        for m in range(4)
        for rater in range(1 + m % 2)
    ]
    found = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert [{o.name: o.value for o in one.outcomes}["score"] for one in found[:3]] == [0, 0, 1]


def test_prompts_with_all_that_was_said_before_are_no_rounds(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"s{n}", "prompt": " ".join(map(sentence, range(m + 1))), "response": sentence(n + m)}
        for n in range(3)
        for m in range(3)
    ]
    assert not draft(as_lines(tmp_path / "log.jsonl", rows)).guess.has_rounds


def test_what_is_said_of_each_row_of_a_session_is_told_to_be_left_out(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"s{n}", "turn": m, "question": sentence(n + m), "answer": sentence(n + m + 1)}
        | {"rating": m, "arm": n, "tool": "look" if m else None}
        for n in range(4)
        for m in range(3)
    ]
    made = draft(as_lines(tmp_path / "log.jsonl", rows))
    (told,) = [one for one in open_questions(made.survey, made.guess) if "each row" in one]
    assert told.endswith("each row: rating, tool")


@pytest.mark.parametrize(("asked", "told"), [("question", "answer"), ("user_message", "bot_response")])
def test_rows_of_one_session_that_are_read_as_sessions_are_told(
    tmp_path: Path, asked: str, told: str
) -> None:
    """Each with one question, and two answers to it."""
    rows = [
        {"session_id": f"s{n}", asked: sentence(n), told: sentence(n + m + 1)}
        for n in range(4)
        for m in (0, 2)
    ]
    made = draft(as_lines(tmp_path / "log.jsonl", rows))
    mapping = tomllib.loads(made.text)
    assert list(mapping["turns"]["fields"].items()) == [("user", asked), ("assistant", told)]
    assert [one for one in open_questions(made.survey, made.guess) if one.startswith("session_id repeats")]
    alone = draft(as_lines(tmp_path / "other.jsonl", rows[::2]))
    assert not [one for one in open_questions(alone.survey, alone.guess) if "repeats" in one]


def test_who_speaks_is_told_by_a_field_beside_a_role_that_all_have(tmp_path: Path) -> None:
    people = (("Buyer", "USER"), ("Clerk", "ASSISTANT")) * 2
    records = [
        {"id": n}
        | {
            f"message_{turn}": {
                "role_name": who,
                "role_type": kind,
                "role": "user",
                "content": sentence(n + turn),
            }
            for turn, (who, kind) in enumerate(people, 1)
        }
        for n in range(3)
    ]
    first = read_by_draft(as_lines(tmp_path / "log.jsonl", records))[0]
    assert [(one.name, one.kind) for one in first.participants] == [("Buyer", "human"), ("Clerk", "agent")]


@pytest.mark.parametrize(
    ("beside", "name", "path"),
    [
        ({"rating": {"agent_1": "Good", "agent_2": "Poor"}}, "agent", None),
        ({"talkRating": {"agent": "Good"}}, "agent", None),
        ({"agent_1": "Good"}, "agent", None),
        ({"task_completion": "1"}, "task", None),
        ({"lead_agent": "rover"}, "agent", "lead_agent"),
        ({"agentId": "rover"}, "agent", "agentId"),
        ({"task_id": "t1"}, "instance", "task_id"),
    ],
)
def test_what_is_said_once_stands_under_its_own_name_and_in_no_object_of_ratings(
    tmp_path: Path, beside: dict[str, object], name: str, path: str | None
) -> None:
    talk = [{"speaker": f"agent_{n % 2 + 1}", "text": sentence(n)} for n in range(4)]
    records = [{"session": f"s{n}", "turns": talk, **beside} for n in range(3)]
    assert mapping_of(as_lines(tmp_path / "log.jsonl", records))["trajectory"].get(name) == path


@pytest.mark.parametrize(
    ("who", "people", "did"),
    [
        ("player", ("human", "AI_bot"), "action_type"),
        ("driver", ("human", "autonomy"), "event"),
        ("control_source", ("operator", "robot"), "event"),
    ],
)
def test_who_plays_or_drives_acts_where_it_is_plainly_a_person_or_an_agent(
    tmp_path: Path, who: str, people: tuple[str, str], did: str
) -> None:
    records = [
        {"run": f"r{n}", who: people[turn % 2], did: ("turn", "brake", "wait")[turn % 3], "speed": turn}
        for n in range(3)
        for turn in range(6)
    ]
    file = as_lines(tmp_path / "log.jsonl", records)
    first = read_by_draft(file)[0]
    assert {(one.name, one.kind) for one in first.participants} == {
        (people[0], "human"),
        (people[1], "agent"),
    }
    assert {event.kind for event in first.events} == {"action"}
    made = draft(file)
    assert any("taken for what was done" in one for one in open_questions(made.survey, made.guess)) is (
        did == "event"
    )


def tickets(kinds: tuple[str, ...] = ("comment", "assignment", "comment", "close")) -> list[dict[str, Any]]:
    """Talks of help desks: what the customer wrote first stands beside the list of the answers."""
    return [
        {
            "id": f"t{n}",
            "source": {"body": sentence(n), "author": {"type": "user", "name": "Kim"}},
            "parts": [
                {
                    "part_type": kind,
                    "body": sentence(n + turn) if kind == "comment" else None,
                    "author": {"type": ("bot", "admin")[turn // 2], "name": ("Pepper", "Tom")[turn // 2]},
                }
                for turn, kind in enumerate(kinds)
            ],
        }
        for n in range(3)
    ]


def test_what_a_person_says_beside_the_list_of_what_is_said_is_told(tmp_path: Path) -> None:
    made = draft(as_json(tmp_path / "log.json", tickets()))
    assert any(
        '[trajectory] request = "source.body"' in one for one in open_questions(made.survey, made.guess)
    )
    chats = [
        one | {"parts": [{"role": "assistant", "content": sentence(n)}] * 2}
        for n, one in enumerate(tickets())
    ]
    told = draft(as_json(tmp_path / "chats.json", chats))
    assert [
        one
        for one in open_questions(told.survey, told.guess)
        if one.startswith("source.body") and "request" not in one
    ]
    others = [one | {"source": {"body": "x", "author": {"type": "bot"}}} for one in tickets()]
    made = draft(as_json(tmp_path / "other.json", others))
    assert not any("request" in one for one in open_questions(made.survey, made.guess))


@pytest.mark.parametrize("kinds", [("comment", "assignment", "comment", "close"), ("comment", "command") * 2])
def test_what_is_of_a_kind_that_has_no_text_is_a_note_and_no_message(
    tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    first = read_by_draft(as_json(tmp_path / "log.json", tickets(kinds)))[0]
    quiet = "message" if "command" in kinds else "note"
    assert [event.kind for event in first.events] == ["message", quiet] * 2, "a command may be done"


def test_heads_of_traces_make_no_one_session_of_all(tmp_path: Path) -> None:
    runs = [json.loads(line) for line in LOGS["traced_runs"](tmp_path).read_text().splitlines()]
    trace = draft(tmp_path / "runs.jsonl").guess.native_id
    heads = [{"object": "trace", "id": f"t{n}", "workflow_name": "All"} for n in range(2)]
    path = as_lines(tmp_path / "headed" / "runs.jsonl", [*heads, *runs])
    assert draft(path).guess.native_id == trace != []


def test_the_code_of_a_runs_status_says_how_it_ended_and_no_label_is_what_went_in_or_out(
    tmp_path: Path,
) -> None:
    def run(number: int, kind: str, given: object, came: object, code: str) -> dict[str, object]:
        told = {"span_type": kind, "span_inputs": given, "output_type": "str", "trace_request_id": "r1"}
        told |= {"span_outputs": came} if came is not None else {}
        status = {"code": f"STATUS_CODE_{code}", "message": ""}
        parent = "s0" if number else None
        return {"trace_id": "t1", "span_id": f"s{number}", "parent_span_id": parent, "name": "add"} | {
            "start_time_unix_nano": 1_750_000_000_000_000_000 + number, "status": status, "attributes": told
        }  # fmt: skip

    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    asked = [{"role": "user", "content": sentence(0)}]
    spans = [
        run(0, "AGENT", None, None, "OK"),
        run(1, "CHAT_MODEL", asked, {"role": "assistant", "content": None, "tool_calls": [call]}, "OK"),
        run(2, "TOOL", {"a": 1}, "2", "ERROR"),
    ]
    (found,) = read_by_draft(as_json(tmp_path / "trace.json", {"info": {"state": "OK"}, "spans": spans}))
    assert [(e.kind, e.text, e.status) for e in found.events] == [
        ("message", sentence(0), None),
        ("action", None, "failed"),
    ]


def test_a_score_is_the_mean_in_its_object_and_not_their_count(tmp_path: Path) -> None:
    rows = [
        {"id": f"s{n}", "feedback_stats": {"correctness": {"n": 1, "avg": n / 2}}}
        | {
            "messages": [
                {"role": "user", "content": sentence(n)},
                {"role": "assistant", "content": sentence(n + 1)},
            ]
        }
        for n in range(3)
    ]
    found = read_by_draft(as_lines(tmp_path / "runs.jsonl", rows))
    assert [{o.name: o.value for o in one.outcomes} for one in found] == [
        *({"correctness": value} for value in (0, 0.5, 1)),
    ]


def test_runs_below_runs_are_no_rival_answers(tmp_path: Path) -> None:
    made = draft(named_calls(tmp_path))
    assert made.guess.shape == "spans"
    assert "rival answers" not in " ".join(open_questions(made.survey, made.guess))


def test_measures_beside_a_score_in_one_object_are_outcomes_too(tmp_path: Path) -> None:
    turns = [{"role": side, "text": sentence(n)} for n, side in enumerate(("user", "assistant"))]
    rows = [
        {"id": f"s{n}", "turns": turns}
        | {"evaluation": {"judge": {"score": n / 2, "accuracy": n / 4, "won": n > 1, "count": 3}}}
        for n in range(4)
    ]
    first = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))[2]
    values = {o.name: o.value for o in first.outcomes}
    assert values == {"judge": 1, "accuracy": 0.5, "won": True, "success": True}


def test_replies_in_cells_are_the_messages_of_which_they_are_the_json(tmp_path: Path) -> None:
    asked, again = {"role": "user", "content": sentence(0)}, {"role": "user", "content": sentence(1)}
    back = {"role": "assistant", "content": '{"seats": 2}'}
    calls = [([asked], back), ([asked, back, again], {"role": "assistant", "content": "Yes."})]
    rows = [[f"t{n}", json.dumps(many), json.dumps(one)] for n, (many, one) in enumerate(calls)]
    path = tmp_path / "calls.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "input", "output"], *rows])
    made = draft(path)
    assert not made.guess.tags
    run = one("mapped", path, map=made.text)
    assert [event.text for event in run.events] == [sentence(0), '{"seats": 2}', sentence(1), "Yes."]


def test_texts_that_count_seconds_are_times_and_other_digits_are_none(tmp_path: Path) -> None:
    def time_of(values: list[str]) -> str | list[str] | None:
        rows = [
            {"conv": "a", "from": ("user", "bot")[n % 2], "body": sentence(n), "ts": value}
            for n, value in enumerate(values)
        ]
        return draft(write_lines(tmp_path / "log.jsonl", *rows)).guess.event.get("time")

    assert time_of(["1767322800", "1767322810", "1767322820", "1767322830"]) == "ts"
    assert time_of(["1767322800123", "1767322810123"] * 2) == "ts"
    assert time_of(["9999999990", "9999999991", "9999999992", "9999999993"]) is None


@pytest.mark.parametrize("case", [str, int])
def test_numbers_of_cases_that_could_be_seconds_are_sessions_and_no_times(
    tmp_path: Path, case: Callable[[int], str | int]
) -> None:
    def drafted_of(key: str) -> tuple[list[str], str | list[str] | None]:
        rows = [
            {key: case(1000234567 + n // 2), "wer": ("Kunde", "Bot")[n % 2], "was": sentence(n)}
            for n in range(8)
        ]
        made = draft(write_lines(tmp_path / "log.jsonl", *rows)).guess
        return made.native_id, made.event.get("time")

    assert drafted_of("fall") == (["fall"], None)
    assert drafted_of("ts") == ([], "ts")


def test_an_answer_in_json_that_names_a_role_is_what_was_said(tmp_path: Path) -> None:
    mapping = '[trajectory]\nnative_id = "id"\n[messages]\nat = "messages"\nreply = "output"\n'
    answers = [
        '{"role": "CEO", "name": "Ann"}',
        '[{"role": "agent", "name": "Ann"}, {"role": "model", "name": "Bob"}]',
        '{"role": "user", "content": "Write a poem about trains."}',
        '{"role": "system", "content": "You write poems."}',
    ]
    for answer in answers:
        record = {"id": "s", "messages": [{"role": "user", "content": sentence(0)}], "output": answer}
        run = one("mapped", write_lines(tmp_path / "log.jsonl", record), map=mapping)
        assert [(event.actor, event.text) for event in run.events] == [
            ("user", sentence(0)),
            ("assistant", answer),
        ]


def test_runs_that_ended_at_once_change_nothing_of_the_others_draft(tmp_path: Path) -> None:
    """Where half of the runs were empty, no command was an action; where one was, or no thoughts stood beside
    the chat, nobody had asked."""

    def run(steps: int) -> dict[str, object]:
        did = [
            {"action": f"ls {n}", "observation": f"a{n}.py", "response": f"{sentence(n)}\nls {n}"}
            for n in range(steps)
        ]
        turns = [turn for step in did for turn in (("assistant", "response"), ("user", "observation"))]
        said = [{"role": role, "content": did[n // 2][key]} for n, (role, key) in enumerate(turns)]
        opening = [
            {"role": "system", "content": "SETTING"},
            {"role": "user", "content": f"ISSUE: {sentence(3)}"},
        ]
        return {
            "trajectory": did,
            "history": opening + said if steps else [],
            "info": {"exit_status": "early_exit"},
        }

    for name, runs in (("half", [2, 0]), ("one", [2, 2, 2, 0])):
        for number, steps in enumerate(runs):
            as_json(tmp_path / name / f"{number}.traj", run(steps))
        items = preview([tmp_path / name], ReadOptions(map=draft(tmp_path / name).text), "mapped", count=9)
        talks = [item for item in items if isinstance(item, Trajectory)]
        kinds = [[event.kind for event in talk.events] for talk in talks if len(talk.events) > 1]
        assert kinds == [["message", "action", "action"]] * (len(runs) - 1)
        assert len(talks) == len(runs)


def test_a_list_that_few_messages_have_filled_is_not_what_is_read(tmp_path: Path) -> None:
    quotes = [{"user": "U1", "text": sentence(n)} for n in range(4)]
    rows = [
        {
            "ts": f"{1704100000 + n}.1",
            "user": f"U{n % 3}",
            "text": sentence(n),
            "quotes": quotes if n == 4 else [],
        }
        for n in range(24)
    ]
    (talk,) = read_by_draft(as_json(tmp_path / "channel.json", rows))
    assert [event.text for event in talk.events] == [sentence(n) for n in range(24)]


def test_a_hidden_file_is_looked_into_where_somebody_names_it(tmp_path: Path) -> None:
    rows = [
        {"session": "s", "role": role, "text": sentence(n)} for n, role in enumerate(("user", "assistant"))
    ]
    path = as_lines(tmp_path / ".history.jsonl", rows)
    (talk,) = read_by_draft(path)
    assert [event.text for event in talk.events] == [sentence(0), sentence(1)]
    assert not survey_logs(tmp_path).files


def played(game: int) -> dict[str, Any]:
    """A game as TEACh logs it: names of actions in a list, and what happened three lists deep."""
    episodes = [
        {
            "episode_id": f"{game}{part}",
            "interactions": [
                {"agent_id": n % 2, "action_id": 100, "utterance": f"{sentence(n)} {game}{part}"}
                for n in range(4)
            ],
        }
        for part in range(2)
    ]
    return {
        "definitions": {
            "agents": [{"agent_id": n, "agent_name": name} for n, name in enumerate(("Commander", "Driver"))],
            "actions": [{"action_id": n, "action_name": name} for n, name in enumerate(("Forward", "Turn"))],
        },
        "tasks": [{"task_name": "coffee", "episodes": episodes}],
    }


def test_talks_that_are_shared_in_lists_of_sources_are_sessions(tmp_path: Path) -> None:
    """As DevGPT has them, with names in capitals."""
    sources = [
        {
            "Type": "issue",
            "ChatgptSharing": [
                {
                    "URL": f"c{issue}{talk}",
                    "Conversations": [
                        {
                            "Prompt": f"{sentence(n)} {issue}{talk}",
                            "Answer": f"{sentence(n + 2)} {issue}{talk}",
                        }
                        for n in range(2)
                    ],
                }
                for talk in range(2)
            ],
        }
        for issue in range(3)
    ]
    talks = read_by_draft(as_json(tmp_path / "snapshot.json", {"Sources": sources}))
    assert len(talks) == 6
    assert [event.text for event in talks[0].events] == [f"{sentence(n)} 00" for n in (0, 2, 1, 3)]


def test_definitions_are_no_turns_where_people_speak_in_lists_within_lists(tmp_path: Path) -> None:
    for game in range(2):
        as_json(tmp_path / "games" / f"{game}.json", played(game))
    assert [run.native_id for run in read_by_draft(tmp_path / "games")] == ["00", "01", "10", "11"]
    assert "each item of tasks[].episodes is taken for a session" in draft(tmp_path / "games").text
    way = (
        '[input]\nsessions = "tasks[].episodes"\n[trajectory]\nnative_id = "episode_id"\n'
        '[event]\nrole = "interactions[].agent_id"\ntext = "interactions[].utterance"\n'
        '[roles]\n0 = "human"\n1 = "agent"\n'
    )
    sessions = list(preview([tmp_path / "games" / "1.json"], ReadOptions(map=way), "mapped"))
    assert [one.native_id for one in sessions if isinstance(one, Trajectory)] == ["10", "11"]
    (wrong,) = preview(
        [tmp_path / "games" / "0.json"], ReadOptions(map=way.replace("tasks[]", "n[]")), "mapped"
    )
    assert not isinstance(wrong, Trajectory) and wrong.reason == "input.sessions: no list at 'n[].episodes'"


@pytest.mark.parametrize("key", ["session_id", "langfuse_session_id"])
def test_traces_with_the_id_of_their_session_are_joined_whoever_it_is_named_after(
    tmp_path: Path, key: str
) -> None:
    def span(turn: int, place: int, kind: str) -> dict[str, Any]:
        parent = f"{turn}:0" if place else None
        start = f"2026-01-01T00:0{turn}:0{place}Z"
        own = {"id": f"{turn}:{place}", "type": kind, "parent_id": parent, "start_time": start, "name": kind}
        said = [{"role": "user", "content": f"What is {turn} and one?"}]
        return {**own, "input": said, "output": {"role": "assistant", "content": f"It is {turn + 1}."}}

    traces = [
        {
            "id": f"t{turn}",
            "metadata": {key: f"s{turn // 3}"},
            "observations": [span(turn, 0, "span"), span(turn, 1, "generation")],
        }
        for turn in range(9)
    ]
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(traces))
    guess = draft(path).guess
    assert (guess.native_id, guess.joined) == ([f"metadata.{key}"], True)


def test_what_few_steps_have_is_not_read_where_all_have_sentences_below(tmp_path: Path) -> None:
    """PRM800K: a person's step in place of a model's, in one of ten; the draft read these alone."""
    person = {"text": sentence(3), "source": "human"}
    steps = [
        {"completions": [{"text": sentence(n), "rating": 1}], "human_completion": person if n == 9 else None}
        for n in range(10)
    ]
    rows = [{"question": {"problem": sentence(n)}, "label": {"steps": steps}} for n in range(4)]
    made = draft(as_lines(tmp_path / "steps.jsonl", rows))
    assert made.guess.shape == "nothing"
    assert any("label.steps[].completions[].text" in one for one in open_questions(made.survey, made.guess))
