"""Who speaks and what failed, by the shipped marks and by a mapping's rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.pipeline.errors import SourceError
from coaudit.pipeline.ingest import run as ingesting
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.fields import marks
from coaudit.pipeline.systems.formats.fields.mapping import parse
from coaudit.pipeline.systems.formats.fields.rules import rules
from tests.pipeline.systems.formats.logs import call_and_answer, one, outline, write_lines

TASK = {"role": "user", "content": "Mend the test."}
RAISED = "Traceback (most recent call last):\n  File 'a.py'\nKeyError: 'x'"


@pytest.mark.parametrize(
    "content",
    [
        "Error: no such user",
        "Error executing tool look: timeout",
        "ValueError: seven",
        RAISED,
        f"reading\n{RAISED}",
        "<returncode>1</returncode>\n<output></output>",
        "exitcode: 1 (execution failed)\nCode output: ",
        "Chunk ID: 1a\nWall time: 0.05 seconds\nProcess exited with code 2\nOutput:\nls: no such place\n0\n",
        "out\n[The command completed with exit code 2.]",
        {"error": "no network"},
        '{"success": false, "error": null}',
        '{"exit_code": 2, "output": "fine"}',
        '{"output": "fine", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}',
        [{"type": "text", "text": "Error: no such user"}],
    ],
)
def test_a_result_that_says_so_has_failed(content: object) -> None:
    assert marks.status(content) == "failed"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        "<returncode>0</returncode>\n<output>Error: is only quoted</output>",
        "out\n[The command completed with exit code 0.]",
        '{"error": null, "result": 3}',
        {"isError": False, "content": "Error: is only quoted"},
    ],
)
def test_a_result_that_says_so_has_succeeded(content: object) -> None:
    assert marks.status(content) == "succeeded"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        "A city.",
        "",
        None,
        "Errors found: 0",
        "Error handling in Python",
        "Terror: a film of 1978",
        "return code 5 is what the manual calls it",
        f"line 1 of a log\n{RAISED}\nline 9: all is well",
        {"id": 3},
    ],
)
def test_of_any_other_result_nothing_is_known(content: object) -> None:
    assert marks.status(content) is None  # type: ignore[arg-type]


def test_what_the_log_itself_says_of_a_tool_comes_before_any_mark(tmp_path: Path) -> None:
    told = [
        TASK,
        *call_and_answer("a", "Error: quoted", status="success"),
        *call_and_answer("b", "fine", is_error=True),
    ]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": told}))
    calls = [event for event in found.events if event.kind == "action"]
    assert [(call.status, call.error) for call in calls] == [("succeeded", None), ("failed", "fine")]


def test_calls_and_answers_as_parts_of_a_content_are_no_words_of_a_human(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {"q": "Ulm"}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "gone", "is_error": True}
    told = [
        TASK,
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
        {"role": "user", "content": [answer]},
    ]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": told}))
    assert outline(found.events) == [
        ("user", "message", "Mend the test."),
        ("assistant", "message", "I look."),
        ("assistant", "action", "look"),
    ]
    assert (found.events[2].status, found.events[2].error) == ("failed", "gone")


@pytest.mark.parametrize(
    "output",
    [
        "<returncode>0</returncode>\n<output>3 passed</output>",
        "OBSERVATION:\n3 passed",
        "exitcode: 0 (execution succeeded)\nCode output: 3 passed",
        "[execute_command for 'pytest'] Result:\n3 passed",
    ],
)
def test_the_output_of_a_command_under_the_role_of_the_user_is_the_environments(
    tmp_path: Path, output: str
) -> None:
    told = [TASK, {"role": "assistant", "content": "pytest"}, {"role": "user", "content": output}]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": told}))
    assert [(e.actor, e.kind) for e in found.events] == [
        ("user", "message"),
        ("assistant", "message"),
        ("environment", "note"),
    ]


def test_a_humans_word_that_only_quotes_an_output_stays_a_humans(tmp_path: Path) -> None:
    quoting = {"role": "user", "content": "It says <returncode>1</returncode>, why? Observation: odd."}
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": [quoting]}))
    assert outline(found.events)[0][:2] == ("user", "message")


def test_a_rule_of_the_mapping_comes_before_the_shipped_ones(tmp_path: Path) -> None:
    told = [{"role": "user", "content": "Observation: it is odd."}, *call_and_answer("a", "Error: quoted")]
    rules = """
        [[roles]]
        where = { role = "user" }
        kind = "human"
        [[results]]
        where = { tool = "look" }
        status = "unknown"
    """
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": told}), map=rules)
    assert outline(found.events)[0][:2] == ("user", "message")
    assert found.events[1].status is None


def test_an_id_of_a_conversation_without_a_name_stays_whatever_rules_say(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"messages": [TASK, *call_and_answer("a", "fine")]})
    assert one("chat", path).id == one("chat", path, map='[constants]\nstatus = "succeeded"').id


def test_in_a_mapped_log_one_name_may_speak_as_two_kinds_where_a_rule_says_so(tmp_path: Path) -> None:
    rules = """
        [event]
        role = "log[].role"
        text = "log[].text"
        [[roles]]
        where = { "log[].text" = "~^ls: " }
        kind = "environment"
    """
    log = [{"role": "user", "text": "Go."}, {"role": "user", "text": "ls: no such file"}]
    found = one("mapped", write_lines(tmp_path / "a.jsonl", {"log": log}), map=rules)
    assert [(e.actor, e.kind) for e in found.events] == [("user", "message"), ("user (environment)", "note")]


def test_in_a_mapped_log_what_came_back_gives_status_error_and_state(tmp_path: Path) -> None:
    rules = """
        [event]
        role = "log[].role"
        action = "log[].tool"
        result = "log[].out"
        [[results]]
        where = { "log[].out" = "~^denied" }
        status = "failed"
    """
    outs = ["denied: you", "Error: no", "fine", "exit code: 0"]
    log = [{"role": "agent", "tool": "look", "out": out} for out in outs]
    found = one("mapped", write_lines(tmp_path / "a.jsonl", {"log": log}), map=rules)
    assert [e.status for e in found.events] == ["failed", "failed", None, "succeeded"]
    assert found.events[0].error == "denied: you"
    assert found.states[found.events[2].states["public"]] == {"observation": "fine"}


@pytest.mark.parametrize(
    "text, said",
    [
        ('[[results]]\nwhere = { content = "~(" }\nstatus = "failed"', "no regular expression"),
        ('[[results]]\nwhere = { content = "~a{99999999999}" }\nstatus = "failed"', "no regular expression"),
        ('[[roles]]\nwhere = { role = "x" }\nkind = "robot"', "roles.0.kind"),
        ("", "event: needs actor or role"),
        ('[constants]\nrequester = "Ada"\n[event]\nrole = "a"', "requester: only with `request`"),
    ],
)
def test_a_rule_that_is_none_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        parse(text)


@pytest.mark.long
def test_errors_and_their_rate_are_told_where_all_is_known_and_else_undefined(tmp_path: Path) -> None:
    told = [
        TASK,
        *call_and_answer("a", "Error: no"),
        *call_and_answer("b", "fine"),
        *call_and_answer("c", "fine"),
        *call_and_answer("d", "fine"),
    ]
    told.append(call_and_answer("e", "")[0])  # a call that nothing answered is no try
    path = write_lines(tmp_path / "a.jsonl", {"id": "s", "messages": told})
    rates = {}
    errors = {}
    for name, text in (("bare", None), ("ruled", '[constants]\nstatus = "succeeded"')):
        store = Store(Workspace(tmp_path / name))
        result = ingesting.ingest(store, [path], ReadOptions(map=text))
        notes = "\n".join(result.remarks.notes())
        assert ("3 of 4 results say neither success nor failure" in notes) == (name == "bare")
        query = "SELECT value, weight, reason FROM computed WHERE metric = 'error_rate'"
        with store.reading() as connection:
            rates[name] = connection.execute(query).fetchone()
            query = "SELECT participant, value, reason FROM computed WHERE metric = 'errors'"
            errors[name] = set(connection.execute(query).fetchall())
    untold = "the log does not say whether 3 of 5 steps failed"
    assert errors["bare"] == {("user", 0.0, None), ("assistant", None, untold)}
    assert errors["ruled"] == {("user", 0.0, None), ("assistant", 1.0, None)}
    assert rates["bare"][0] is None
    assert rates["bare"][2] == "the log does not say whether 3 of 5 steps failed"
    assert rates["ruled"] == (0.25, 4.0, None)


def test_ingest_says_whom_it_met_as_what_and_what_reads_like_an_error(tmp_path: Path) -> None:
    told = [TASK, *call_and_answer("a", "No such file"), {"role": "user", "content": "OBSERVATION:\nfine"}]
    path = write_lines(tmp_path / "a.jsonl", {"id": "s", "messages": told})
    result = ingesting.ingest(Store(Workspace(tmp_path / "w")), [path], ReadOptions())
    met, unknown = result.remarks.notes()
    assert met == (
        "participants: user (human, 1 event); environment (environment, 1 event); assistant (agent, 1 event)"
    )
    assert "1 of 1 results say neither success nor failure (1 of them read like errors)" in unknown


@pytest.mark.parametrize(
    ("speakers", "told"),
    [
        ([("assistant", "User_proxy"), ("user", "Coder")], ["User_proxy (agent), Coder (human)", None]),
        ([("user", "Ada"), ("user", "Critic")], ["Critic (human)", "Ada, Critic"]),
        ([("user", "Ada"), ("user", "Bo")], [None, "Ada, Bo"]),
        ([("user", "Ada"), ("assistant", "Tutor")], [None, None]),
        ([("user", "Claude"), ("assistant", "Bot")], [None, None]),
    ],
)
def test_ingest_says_where_names_of_a_chat_say_otherwise_than_its_roles(
    tmp_path: Path, speakers: list[tuple[str, str]], told: list[str | None]
) -> None:
    messages = [{"role": role, "name": name, "content": f"I am {name}."} for role, name in speakers]
    path = write_lines(tmp_path / "a.jsonl", {"id": "s", "messages": messages})
    result = ingesting.ingest(Store(Workspace(tmp_path / "w")), [path], ReadOptions())
    beginnings = ("names contradict roles about who these are: ", "the role of a user covers several names")
    for begin, names in zip(beginnings, told, strict=True):
        notes = [note for note in result.remarks.notes() if note.startswith(begin)]
        assert len(notes) == (names is not None) and all(str(names) in note for note in notes)


@pytest.mark.parametrize("how", ["chat", "mapped"])
def test_what_a_run_came_to_is_no_word_of_the_person_under_whose_role_it_is_repeated(
    tmp_path: Path, how: str
) -> None:
    patch = "diff --git a/x b/x\n"
    said = [TASK, {"role": "assistant", "content": "Done."}, {"role": "user", "content": patch}]
    path = write_lines(tmp_path / "a.jsonl", {"info": {"submission": patch}, "messages": said})
    mapping = '[messages]\nat = "messages"\n' if how == "mapped" else None
    assert [event.actor for event in one(how, path, map=mapping).events] == [
        "user",
        "assistant",
        "environment",
    ]


CONTINUED = "This session is being continued from a previous conversation that ran out of context."


@pytest.mark.parametrize(
    ("text", "is_scaffolds"),
    [
        ("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>", True),
        (
            "# AGENTS.md instructions\n<INSTRUCTIONS>a</INSTRUCTIONS>\n<turn_aborted>b</turn_aborted>",
            True,
        ),
        ("<turn_aborted>\n  <reason>interrupted</reason>\n</turn_aborted>", True),
        ("<local-command-stdout>Total cost: $1</local-command-stdout>", True),
        ("<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>", True),
        ("<system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>\n", True),
        (f"{CONTINUED} The conversation is summarized below:\nA plan.", True),
        (f"{CONTINUED} The summary below covers the earlier portion of the conversation.", True),
        (f"{CONTINUED} Why do I see this?", False),
        ("<system-reminder>a</system-reminder>\nUse tabs.\n<system-reminder>b</system-reminder>", False),
        ("Use tabs. <system-reminder>a</system-reminder>", False),
        ("<system-reminder>a", False),
        ("<command-name>/init</command-name>", False),
        ("# AGENTS.md instructions\nWrite some.", False),
        ("[Request interrupted by user]", False),
        ("", False),
    ],
)
def test_what_a_scaffold_alone_tells_the_model_is_told_from_a_persons_words(
    text: str, is_scaffolds: bool
) -> None:
    assert marks.is_surroundings(text) == is_scaffolds
    assert rules(None).speaker({"role": "user", "content": text})[0] == (
        "environment" if is_scaffolds else "human"
    )


def test_what_a_scaffold_says_of_where_it_runs_is_neither_a_humans_nor_a_result(tmp_path: Path) -> None:
    where = "<environment_context>\n  <cwd>/p</cwd>\n</environment_context>"
    quoted = f"What is {where}?"
    users: list[dict[str, object]] = [
        {"role": "user", "content": text} for text in (where, "Go.", where, quoted)
    ]
    messages = [*users[:2], call_and_answer("a", "")[0], *users[2:]]
    found = one("chat", write_lines(tmp_path / "a.jsonl", {"messages": messages}))
    assert outline(found.events) == [
        ("environment", "start", where),
        ("user", "message", "Go."),
        ("assistant", "action", "look"),
        ("environment", "note", where),
        ("user", "message", quoted),
    ]
    assert found.events[2].status is None and not found.events[2].states
