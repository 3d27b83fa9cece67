"""What `coaudit map` drafts for logs in the shapes of public data sets, used as it is."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

from coaudit.pipeline.ingest.run import preview
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.draft.drafting import draft, toml_string
from coaudit.pipeline.systems.formats.fields.roles import role_of
from coaudit.schemas import Trajectory
from tests.conftest import Coaudit
from tests.pipeline.systems.formats.logs import outline, write_lines
from tests.pipeline.systems.formats.shapes import SHAPES, sentence, who

USER, AGENT = [("user", "human"), ("assistant", "agent")], [("agent", "agent")]
EXPECTED: dict[str, tuple[int, list[tuple[str, str]], list[tuple[str, str, str | None]]]] = {
    "tau": (
        6,
        [("environment", "environment"), *USER],
        [
            ("environment", "start", f"# Policy\n{sentence(0)}"),
            ("user", "message", sentence(0)),
            ("assistant", "action", "find_user"),
            ("assistant", "action", "find_user"),
            ("assistant", "message", sentence(1)),
        ],
    ),
    "mini_swe": (
        2,
        [("environment", "environment"), *USER],
        [
            ("environment", "start", sentence(0)),
            ("user", "message", sentence(1)),
            ("assistant", "message", f"THOUGHT: {sentence(0)}\n\n```bash\nls 0\n```"),
            ("assistant", "action", "bash"),
        ],
    ),
    "who": (
        6,
        [("Excel_Expert", "agent"), ("Computer_terminal", "environment"), ("Data_Expert", "agent")],
        [("Excel_Expert", "message", sentence(0)), ("Computer_terminal", "note", sentence(1))],
    ),
    "mast": (
        4,
        [("Chief Executive Officer", "agent"), ("Programmer", "agent"), ("Code Reviewer", "agent")],
        [("Chief Executive Officer", "message", f"**go**\n{sentence(0)}")],
    ),
    "turns_csv": (3, [("customer", "human"), ("Maya", "agent")], [("customer", "message", sentence(0))]),
    "sharegpt": (3, [("human", "human"), ("gpt", "agent")], [("human", "message", sentence(0))]),
    "swe_agent": (2, AGENT, [("agent", "action", "find_file")] * 3),
    "texts": (
        3,
        [("User", "human"), ("Assistant", "agent")],
        [("User", "message", f"{sentence(0)}\nand one more line")],
    ),
    "web_arena": (3, AGENT, [("agent", "action", "click")] * 4),
    "open_hands": (
        2,
        [("user", "human"), ("agent", "agent")],
        [("user", "message", sentence(0)), ("agent", "action", "run"), ("agent", "action", "run")],
    ),
    "lang_graph": (3, USER, [("user", "message", sentence(0)), ("assistant", "action", "search")]),
    "preferences": (3, [("Human", "human"), ("Assistant", "agent")], [("Human", "message", sentence(0))]),
    "pairs": (4, USER, [("user", "message", sentence(0)), ("assistant", "message", sentence(1))]),
    "columns": (
        3,
        [("0", "human"), ("1", "agent")],
        [("0", "message", sentence(0)), ("1", "message", sentence(1))],
    ),
    "plain_lists": (3, [("first", "human"), ("second", "agent")], [("first", "message", sentence(0))]),
    "logged_messages": (
        2,
        USER,
        [
            ("user", "message", sentence(0)),
            ("assistant", "message", sentence(1)),
            ("assistant", "action", "bash"),
        ],
    ),
    "by_name": (3, [("user", "human"), ("system", "agent")], [("user", "message", sentence(0))]),
    "unsaid": (3, USER, [("user", "message", sentence(0)), ("assistant", "message", sentence(1))]),
    "export": (
        3,
        [("Participant", "human"), ("ChatGPT", "agent")],
        [("Participant", "message", sentence(0)), ("ChatGPT", "message", sentence(1))],
    ),
    "text_values": (2, USER, [("user", "message", sentence(0)), ("assistant", "message", sentence(1))]),
    "tree": (
        3,
        USER,
        [
            ("user", "message", f"{sentence(0)} 0"),
            ("assistant", "message", sentence(1)),
            ("user", "message", sentence(2)),
        ],
    ),
    "parts": (
        3,
        USER,
        [
            ("user", "message", sentence(0)),
            ("assistant", "message", sentence(1)),
            ("assistant", "action", "weather"),
            ("assistant", "message", sentence(3)),
        ],
    ),
    "function_parts": (
        3,
        USER,
        [
            ("user", "message", sentence(0)),
            ("assistant", "action", "weather"),
            ("assistant", "message", sentence(1)),
        ],
    ),
    "sources": (
        2,
        [("user", "human"), ("planner", "agent"), ("critic", "agent")],
        [
            ("user", "message", f"{sentence(0)} 0"),
            ("planner", "action", "find_hotel"),
            ("critic", "message", sentence(1)),
        ],
    ),
    "prefixes": (
        2,
        USER,
        [
            ("user", "message", sentence(0)),
            ("assistant", "action", "search"),
            ("assistant", "message", sentence(3)),
        ],
    ),
    "calls_in_steps": (
        3,
        [("assistant", "agent")],
        [
            ("assistant", "message", sentence(0)),
            ("assistant", "action", "python"),
            ("assistant", "message", sentence(3)),
            ("assistant", "action", "final_answer"),
        ],
    ),
    "parquet": (2, USER, [("user", "message", sentence(0)), ("assistant", "message", sentence(1))]),
}


def read_by_draft(root: Path) -> list[Trajectory]:
    """The trajectories that come of a draft as it is; nothing may be quarantined."""
    items = preview([root], ReadOptions(map=draft(root).text), "mapped", count=1000)
    assert [item for item in items if not isinstance(item, Trajectory)] == []
    return [item for item in items if isinstance(item, Trajectory)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_draft_used_as_it_is_gives_the_sessions_their_speakers_and_what_they_did(
    tmp_path: Path, shape: str
) -> None:
    count, people, events = EXPECTED[shape]
    trajectories = read_by_draft(SHAPES[shape](tmp_path))
    assert len(trajectories) == count and len({t.id for t in trajectories}) == count
    first = trajectories[0]
    assert [(p.name, p.kind) for p in first.participants] == people
    assert outline(first.events)[: len(events)] == events


def test_what_a_shell_gave_back_is_the_result_of_the_block_before_it(tmp_path: Path) -> None:
    run = read_by_draft(SHAPES["mini_swe"](tmp_path))[0]
    actions = [event for event in run.events if event.kind == "action"]
    assert [(e.action and e.action.arguments, e.status) for e in actions] == [
        ({"command": "ls 0"}, "succeeded"),
        ({"command": "ls 1"}, "failed"),
        ({"command": "ls 2"}, "succeeded"),
    ]
    assert (run.agent_model, [(o.name, o.text) for o in run.outcomes]) == (
        "m-1",
        [("exit_status", "Submitted")],
    )


def test_tools_that_say_error_failed_and_others_are_unknown(tmp_path: Path) -> None:
    run = read_by_draft(SHAPES["tau"](tmp_path))[1]
    assert [e.status for e in run.events if e.kind == "action"] == ["failed", None]
    assert (run.native_id, run.instance) == ("0/1", "0")
    assert {o.name: o.value for o in run.outcomes} == {"reward": 1, "success": 1}


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize("said", [("ja", "Nein", "nein"), ("TRUE", "false", "FALSE")])
def test_words_for_success_are_numbers(tmp_path: Path, form: str, said: tuple[str, ...]) -> None:
    words = dict(zip(("s0", "s1", "s2"), said, strict=True))
    log = [{"role": "user", "text": "Help me please."}, {"role": "assistant", "text": "Here you are."}]
    lines = [json.dumps({"session": name, "solved": word, "log": log}) for name, word in words.items()]
    if form == "csv":
        cells = [(name, word, *event.values()) for name, word in words.items() for event in log]
        lines = ["session,solved,role,text", *map(",".join, cells)]
    (tmp_path / f"a.{form}").write_text("\n".join(lines), encoding="utf-8")
    runs = read_by_draft(tmp_path / f"a.{form}")
    assert [{o.name: o.value for o in run.outcomes}["success"] for run in runs] == [1.0, 0.0, 0.0]


def test_words_of_which_one_is_no_verdict_stay_texts(tmp_path: Path) -> None:
    log = [{"role": "user", "text": "Help me please."}, {"role": "assistant", "text": "Here you are."}]
    words = ("yes", "no", "partly")
    rows = [{"session": f"s-{word}", "solved": word, "log": log} for word in words]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    runs = read_by_draft(tmp_path / "a.jsonl")
    assert [[(o.name, o.text) for o in run.outcomes] for run in runs] == [
        [("solved", word)] for word in words
    ]


def test_a_name_is_told_apart_from_what_a_log_adds_to_it(tmp_path: Path) -> None:
    written_case = next(t for t in read_by_draft(who(tmp_path)) if t.native_id == "w0")
    assert [(p.name, p.kind) for p in written_case.participants] == [
        ("human", "human"),
        ("Orchestrator", "agent"),
        ("WebSurfer", "agent"),
    ]


def test_labels_are_no_field_that_a_judge_sees(tmp_path: Path) -> None:
    text = draft(who(tmp_path)).text
    mapping = tomllib.loads(text)
    assert "mistake_step" not in json.dumps(mapping) and '# hidden = "mistake_step"' in text


def test_keys_and_names_cannot_break_out_of_the_draft(tmp_path: Path) -> None:
    evil = 'a"]\n[constants]\nsystem = "evil'
    names = ("Bo\u202e\u2066\U000e0041\x1b[31m\n[x]", 'b"""\'')
    turns = [{"role": names[n % 2], "text": sentence(n), "a.b[0]\\": "x", evil: n} for n in range(4)]
    path = write_lines(
        tmp_path / "log.jsonl", *({"id": f"s{n}", "log": turns, evil: "x" * n} for n in range(3))
    )
    made = draft(path)
    assert tomllib.loads(made.text)["constants"]["system"] == "log"
    assert [p.name for p in read_by_draft(path)[0].participants] == list(names)
    assert not set("\x1b\u202e\u2066\U000e0041") & set(made.text)


@pytest.mark.parametrize(
    "text", ["", "plain", 'a"b\\c\n\t\r', "\x00\x1f\x7f\u2028\u202e\u2066\U000e0041", "ä€😀", "'''\"\"\""]
)
def test_a_quoted_text_is_that_text_in_toml(text: str) -> None:
    assert tomllib.loads(f"a = {toml_string(text)}")["a"] == text


def test_a_name_that_says_nothing_is_an_agent_and_said_to_be_unknown() -> None:
    kinds = {
        name: (role_of(name).kind, role_of(name).is_known)
        for name in ("Zoltan", "WebSurfer", "Computer_terminal")
    }
    assert kinds == {
        "Zoltan": ("agent", False),
        "WebSurfer": ("agent", True),
        "Computer_terminal": ("environment", True),
    }


def test_what_holds_no_turns_is_listed_and_not_guessed(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "numbers.jsonl", *({"a": n, "b": n * 2} for n in range(5)))
    made = draft(path)
    assert made.guess.shape == "nothing" and tomllib.loads(made.text) == {}


def test_two_commands_bring_logs_of_any_shape_into_a_workspace(tmp_path: Path, coaudit: Coaudit) -> None:
    logs = SHAPES["tau"](tmp_path / "logs")
    unread = coaudit("ingest", str(logs), status=1)
    assert f"coaudit map {logs}" in unread.err
    assert len(unread.err.splitlines()) < 5
    mapping = tmp_path / "map.toml"
    coaudit("map", str(logs), "--out", str(mapping))
    coaudit("ingest", str(logs), "--map", str(mapping))
    rows = json.loads(coaudit("trajectory", "list", "--json").out)["rows"]
    assert len(rows) == 6


def test_a_command_that_is_shown_can_be_run_as_it_stands(tmp_path: Path, coaudit: Coaudit) -> None:
    logs = SHAPES["tau"](tmp_path / "old logs (März)")
    (hint,) = re.findall("`coaudit (map [^`]*)`", coaudit("ingest", str(logs), status=1).err.splitlines()[0])
    mapping = tmp_path / "my map.toml"
    said = coaudit(*shlex.split(hint)[:-1], str(mapping)).err
    coaudit(*shlex.split(said.rpartition("next: coaudit ")[2], posix=True), "--dry-run")
    coaudit("ingest", str(logs), "--map", str(mapping))
    shown = coaudit(
        "trajectory", "show", json.loads(coaudit("trajectory", "list", "--json").out)["rows"][0]["id"]
    )
    assert "None" not in shown.out.splitlines()[1]


def test_an_archive_is_looked_into_and_read_with_what_is_drafted_for_it(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    SHAPES["mini_swe"](tmp_path / "logs")
    archive = Path(shutil.make_archive(str(tmp_path / "logs"), "zip", tmp_path / "logs"))
    coaudit("map", archive, "--out", tmp_path / "map.toml")
    coaudit("ingest", archive, "--map", tmp_path / "map.toml")
    assert len(coaudit("trajectory", "list", "--json").json["rows"]) == 2


@pytest.mark.parametrize(
    "names",
    [
        ("app.jsonl", "app.jsonl.1", "app.jsonl.2"),
        ("app.jsonl.1", "app.jsonl.2", "app.jsonl.3"),
        ("a.jsonl", "b.jsonl-20260131", "c.ndjson"),
        ("a.csv", "a.csv.1", "a.tsv"),
        ("app.log", "app.log-20260131", "app.log.1"),
        ("app.log.1",),
    ],
)
def test_a_draft_reads_all_the_files_that_it_was_made_of(
    names: tuple[str, ...], tmp_path: Path, coaudit: Coaudit
) -> None:
    """Of logs that were rotated it read the first file alone, and said that none was passed over."""
    (tmp_path / "logs").mkdir()
    for name in names:
        rows = [(name, speaker, f"words {n}") for n, speaker in enumerate(("user", "assistant"))]
        mark = "\t" if ".tsv" in name else ","
        lines = [mark.join(row) for row in [("session_id", "role", "text"), *rows]]
        if ".csv" not in name and ".tsv" not in name:
            keys = ("session_id", "role", "text")
            lines = [json.dumps(dict(zip(keys, row, strict=True))) for row in rows]
        (tmp_path / "logs" / name).write_text("\n".join(lines) + "\n")
    coaudit("map", tmp_path / "logs", "--out", tmp_path / "map.toml")
    coaudit("ingest", tmp_path / "logs", "--map", tmp_path / "map.toml")
    rows = coaudit("trajectory", "list", "--json").json["rows"]
    assert sorted((row["native_id"], row["events"]) for row in rows) == [(name, 2) for name in names]


def test_pages_beside_the_logs_are_passed_over(tmp_path: Path, coaudit: Coaudit) -> None:
    logs = SHAPES["sharegpt"](tmp_path).parent
    (logs / "README.md").write_text("# Logs\nUser: this is no log.\n", encoding="utf-8")
    mapping = tmp_path / "map.toml"
    mapping.write_text('[event]\nrole = "conversations[].from"\n[roles]\ngpt = "agent"\n', encoding="utf-8")
    document = coaudit("ingest", logs / "share.jsonl", logs / "README.md", "--map", mapping, "--json").json
    assert (document["trajectories"], document["quarantined"]) == (3, [])


def test_an_action_that_is_an_object_is_what_was_done_and_what_was_seen_is_its_result(tmp_path: Path) -> None:
    """Steps of a browser or a game: nobody speaks, and `type` is no role."""
    log = tmp_path / "web.jsonl"
    steps = [
        {"observation": {"url": "u1", "text": "page"}, "action": {"type": "click", "element": "#1"}},
        {
            "observation": {"url": "u2", "text": "page"},
            "action": {"type": "type", "element": "#2", "value": "a"},
        },
    ]
    tasks = [{"task": {"task_id": n}, "outcome": {"success": n % 2 == 0}, "steps": steps} for n in range(5)]
    log.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    made = draft(log)
    read = preview([log], ReadOptions(map=made.text), "mapped", count=9)
    runs = [one for one in read if isinstance(one, Trajectory)]
    assert len(runs) == 5
    assert [(e.actor, e.kind, e.action and e.action.name) for e in runs[0].events] == [
        ("agent", "action", "click"),
        ("agent", "action", "type"),
    ]
    second = runs[0].events[1].action
    assert second and second.arguments == {"element": "#2", "value": "a"}
    state = runs[0].states[runs[0].events[0].states["public"]]
    assert state == {"observation": {"url": "u1", "text": "page"}}


@pytest.mark.parametrize("number", [7, 0.5, True])
def test_a_number_where_other_records_have_a_list_stops_no_draft(tmp_path: Path, number: float) -> None:
    turns = [{"role": role, "content": f"{role} says"} for role in ("user", "assistant") * 2]
    write_lines(tmp_path / "a.jsonl", {"messages": turns}, {"messages": number}, {"messages": turns})
    assert "1 of 3 records has nothing at messages" in draft(tmp_path / "a.jsonl").text


def test_a_number_in_place_of_calls_stops_no_draft(tmp_path: Path) -> None:
    steps = [{"step_number": n, "content": f"step {n}", "tool_calls": 7} for n in range(3)]
    assert 'text = "content"' in draft(write_lines(tmp_path / "a.jsonl", *steps)).text
