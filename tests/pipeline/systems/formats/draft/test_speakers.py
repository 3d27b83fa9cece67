"""Who is taken for a person, and who for an agent, where only part of a log says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.formats.draft.drafting import draft
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
    "role, name", [("sender_type", "sender"), ("role", "name"), ("user_type", "user_name")]
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
