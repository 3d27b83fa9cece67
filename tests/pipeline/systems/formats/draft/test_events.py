"""What happened in the events of a log, where a platform writes under people's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.draft.unclear import open_questions
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.shapes import as_json, sentence


def _day(joined: dict[str, str], talk: dict[str, str]) -> list[dict[str, Any]]:
    """Messages of two people and a bot, the first of which says that somebody joined."""
    who = ({"user": "U1"}, {"user": "U2"}, {"bot_id": "B1", "username": "TripBot"})
    rows = [{"ts": f"{1704100000 + n}.0001", "text": sentence(n), **talk, **who[n % 3]} for n in range(6)]
    return [{**rows[0], "text": "<@U1> has joined the channel", **joined}, *rows[1:]]


@pytest.mark.parametrize(
    "joined, talk",
    [
        ({"subtype": "channel_join"}, {"type": "message"}),
        ({"type": "GuildMemberJoin"}, {"type": "Default"}),
        ({"type": "system_join_channel"}, {"type": ""}),
    ],
)
def test_what_a_platform_writes_under_a_persons_name_is_a_note(
    tmp_path: Path, joined: dict[str, str], talk: dict[str, str]
) -> None:
    (session,) = read_by_draft(as_json(tmp_path / "general.json", _day(joined, talk)))
    assert [event.kind for event in session.events] == ["note", *["message"] * 5]
    assert {p.name: p.kind for p in session.participants} == {
        "U1": "human",
        "U2": "human",
        "TripBot": "agent",
    }


def test_files_that_are_called_by_days_are_asked_about(tmp_path: Path) -> None:
    for name in ("2024-01-01", "2024-01-02"):
        as_json(tmp_path / "general" / f"{name}.json", _day({"subtype": "channel_join"}, {"type": "message"}))
    own = draft(tmp_path / "general")
    assert any("called by days" in doubt for doubt in open_questions(own.survey, own.guess))
    one = draft(tmp_path / "general" / "2024-01-01.json")
    assert not any("called by days" in doubt for doubt in open_questions(one.survey, one.guess))
