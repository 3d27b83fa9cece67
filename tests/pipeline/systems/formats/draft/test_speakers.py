"""Who is taken for a person, and who for an agent, where only part of a log says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.draft.unclear import open_questions
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.shapes import as_json, as_lines, as_text, sentence

PEOPLE = ("Ada", "Ben", "Cleo")


def _rows(**fields: tuple[Any, Any]) -> list[dict[str, Any]]:
    """Turns of four talks between people and Helper; `fields` have a value for people's turns and one for
    Helper's, `*` standing for the name."""
    return [
        {"talk": f"t{talk}", "text": f"{sentence(turn)} {talk}"}
        | {
            key: ("Helper" if turn % 2 else PEOPLE[(talk + turn) % 3]) if pair[0] == "*" else pair[turn % 2]
            for key, pair in fields.items()
        }
        for talk in range(4)
        for turn in range(8)
    ]


def _kinds(path: Path) -> dict[str, str]:
    return {who.name: who.kind for talk in read_by_draft(path) for who in talk.participants}


@pytest.mark.parametrize(
    "role, name", [("sender_type", "sender"), ("role", "name"), ("user_type", "user_name"), ("role", "user")]
)
@pytest.mark.parametrize("person, bot", [("member", "bot"), ("designer", "assistant"), ("user", "bot")])
def test_names_beside_the_only_other_role_than_a_bots_are_peoples(
    tmp_path: Path, role: str, name: str, person: str, bot: str
) -> None:
    rows = _rows(**{role: (person, bot), name: ("*", "*")})
    assert _kinds(as_lines(tmp_path / "log.jsonl", rows)) == {
        **dict.fromkeys(PEOPLE, "human"),
        "Helper": "agent",
    }


@pytest.mark.parametrize("no, yes", [("0", "1"), ("FALSE", "TRUE"), ("no", "yes")])
def test_a_flag_of_a_table_says_who_is_a_bot(tmp_path: Path, no: str, yes: str) -> None:
    rows = _rows(is_bot=(no, yes), speaker=("*", "*"))
    lines = ["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]
    kinds = _kinds(as_text(tmp_path / "log.tsv", "\n".join(lines)))
    assert kinds == {**dict.fromkeys(PEOPLE, "human"), "Helper": "agent"}


def test_numbers_of_turns_in_a_table_are_nobody(tmp_path: Path) -> None:
    lines = ["Turn\tUnit\tdialog", *(f"{n % 4}\t{sentence(n % 4)} {n}\td{n // 4}" for n in range(16))]
    guess = draft(as_text(tmp_path / "log.tsv", "\n".join(lines))).guess
    assert not {"0", "1", "2", "3"} & {role.name for role in guess.roles}


def test_a_text_in_runs_makes_no_agent_of_a_person(tmp_path: Path) -> None:
    texts = ["Hi bot, a train please.", ["See ", {"type": "link", "text": "http://x"}, " now"]]
    messages = [
        {"from": ("Ada", "TripBot")[n % 2], "date_unixtime": f"{1714557600 + n}", "text": texts[n % 2]}
        for n in range(4)
    ]
    path = as_json(tmp_path / "result.json", {"id": 1, "messages": messages})
    assert _kinds(path) == {"Ada": "human", "TripBot": "agent"}


def test_strangers_among_messages_with_calls_are_asked_about(tmp_path: Path) -> None:
    call = [{"id": "c", "arguments": "{}", "name": "book"}]
    back = [{"content": "done", "name": "book", "call_id": "c", "is_error": False}]
    messages = [
        {"source": "Ada", "models_usage": None, "content": sentence(0), "type": "TextMessage"},
        {"source": "planner", "models_usage": None, "content": call, "type": "ToolCallRequestEvent"},
        {"source": "planner", "models_usage": None, "content": back, "type": "ToolCallExecutionEvent"},
        {"source": "planner", "models_usage": None, "content": sentence(1), "type": "TextMessage"},
    ]
    own = draft(as_json(tmp_path / "team.json", {"messages": messages}))
    (doubt,) = (one for one in open_questions(own.survey, own.guess) if "taken for agents" in one)
    assert "agents: Ada; [[roles]]" in doubt


def test_what_a_teammate_is_told_is_a_message(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"s{n // 4}", "role": ("user", "agent")[n % 2], "text": sentence(n)}
        | {"action": ("SEND_TEAMMATE_MESSAGE", "EDITOR_UPDATE")[n % 4 == 3]}
        for n in range(8)
    ]
    (talk, _) = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert [event.kind for event in talk.events] == ["message", "message", "message", "action"]


def test_a_meetings_transcript_has_its_speakers_before_the_times(tmp_path: Path) -> None:
    turns = (f"{('Ada Lovelace', 'Meeting Bot')[n % 2]}   0:{n:02d}\n{sentence(n)}\n" for n in range(4))
    (talk,) = read_by_draft(as_text(tmp_path / "meeting.txt", "\n".join(turns)))
    assert {p.name: p.kind for p in talk.participants} == {"Ada Lovelace": "human", "Meeting Bot": "agent"}
    assert [event.text for event in talk.events] == [sentence(n) for n in range(4)]


@pytest.mark.parametrize(
    "role, name", [("speaker_type", "speaker"), ("author_type", "author"), ("sender_type", "from")]
)
def test_who_speaks_stands_beside_the_type_of_speaker(tmp_path: Path, role: str, name: str) -> None:
    rows = _rows(**{name: ("*", "*"), role: ("human", "agent")})
    people = {**dict.fromkeys(PEOPLE, "human"), "Helper": "agent"}
    assert _kinds(as_lines(tmp_path / "log.jsonl", rows)) == people


def test_how_somebody_spoke_is_not_who_they_are(tmp_path: Path) -> None:
    rows = _rows(speaker=("user", "assistant"), speaker_type=("voice", "text"))
    assert _kinds(as_lines(tmp_path / "log.jsonl", rows)) == {"user": "human", "assistant": "agent"}


def test_accounts_of_people_beside_a_chat_apis_roles_are_peoples(tmp_path: Path) -> None:
    rows = [
        {**row, "user": None} if row["role"] == "assistant" else row
        for row in _rows(role=("user", "assistant"), user=("*", "*"))
    ]
    people = {**dict.fromkeys(PEOPLE, "human"), "assistant": "agent"}
    assert _kinds(as_lines(tmp_path / "log.jsonl", rows)) == people


@pytest.mark.parametrize("session", ["talk", "text"])
def test_an_account_beside_questions_and_answers_alike_speaks_for_nobody(
    tmp_path: Path, session: str
) -> None:
    rows = _rows(role=("user", "assistant"))
    rows = [{session: row[session], **row, "user": PEOPLE[place // 2 % 3]} for place, row in enumerate(rows)]
    rows = [{key: row[key] for key in (session, "text", "role", "user")} for row in rows]
    assert _kinds(as_lines(tmp_path / "log.jsonl", rows)) == {"user": "human", "assistant": "agent"}


def test_messages_without_a_role_beside_an_assistants_are_read(tmp_path: Path) -> None:
    rows = _rows(role=("assistant", None))
    rows = [{**row, "name": ("Planner", "search", "Writer", "browser")[n % 4]} for n, row in enumerate(rows)]
    talks = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert sum(len(talk.events) for talk in talks) == 32
    assert {who.kind for talk in talks for who in talk.participants} == {"agent"}


def test_what_no_bot_says_is_no_persons_where_its_role_is_a_tools(tmp_path: Path) -> None:
    roles = ("system", "user", "assistant", "tool")
    rows = [{**row, "role": roles[n % 4], "is_bot": int(n % 4 == 2)} for n, row in enumerate(_rows())]
    assert _kinds(as_lines(tmp_path / "log.jsonl", rows)) == {
        "system": "environment",
        "tool": "environment",
        "user": "human",
        "assistant": "agent",
    }


def test_a_tools_name_that_some_events_have_is_nobody(tmp_path: Path) -> None:
    rows = _rows(type=("thought", "act"), name=(None, "search"))
    rows = [{**row, "type": "obs", "name": "look"} if n % 4 == 2 else row for n, row in enumerate(rows)]
    talks = read_by_draft(as_lines(tmp_path / "log.jsonl", rows))
    assert sum(len(talk.events) for talk in talks) == 32


def test_names_of_tools_and_of_whom_a_type_calls_an_agent_are_no_strangers(tmp_path: Path) -> None:
    call = {"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}
    messages = [
        {"type": "human", "content": sentence(0)},
        {"type": "ai", "content": "", "tool_calls": [call]},
        {"type": "tool", "content": "3", "tool_call_id": "c1", "name": "add"},
        {"type": "ai", "content": sentence(1), "name": "supervisor"},
    ]
    own = draft(as_json(tmp_path / "thread.json", {"thread_id": "t", "messages": messages}))
    assert not [one for one in open_questions(own.survey, own.guess) if "taken for agents" in one]


def test_a_human_agent_is_a_person(tmp_path: Path) -> None:
    """Staff of a help desk, beside its bot."""
    names = ("customer", "bot", "human_agent")
    rows = [
        {"session_id": talk, "author": names[n % 3], "text": sentence(n)}
        for talk in range(3)
        for n in range(6)
    ]
    assert _kinds(as_lines(tmp_path / "log.jsonl", rows)) == {
        "customer": "human",
        "bot": "agent",
        "human_agent": "human",
    }
