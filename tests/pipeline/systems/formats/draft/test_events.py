"""What happened in the events of a log, where a platform writes under people's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.ingest.run import preview
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.draft.unclear import open_questions
from coaudit.schemas import Trajectory
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


def test_messages_that_were_deleted_are_asked_about(tmp_path: Path) -> None:
    day = _day({}, {"type": "message"})
    day[3] |= {"deletedDateTime": "2024-01-01T10:00:00Z", "text": ""}
    own = draft(as_json(tmp_path / "chat.json", day))
    (doubt,) = (one for one in open_questions(own.survey, own.guess) if "deleted" in one)
    assert "deletedDateTime says of 1" in doubt
    skip = own.text + '\n[filter]\nskip = [{ "deletedDateTime" = "*" }]\n'
    (session,) = preview([tmp_path], ReadOptions(map=skip), "mapped")
    assert isinstance(session, Trajectory) and len(session.events) == 5


def test_a_time_of_deletion_that_is_zero_says_nothing(tmp_path: Path) -> None:
    day = [{**row, "delete_at": 0} for row in _day({}, {"type": "message"})]
    own = draft(as_json(tmp_path / "all.json", day))
    assert not [one for one in open_questions(own.survey, own.guess) if "deleted" in one]
    day[3] |= {"delete_at": 1704100009, "text": ""}
    own = draft(as_json(tmp_path / "one.json", day))
    (doubt,) = (one for one in open_questions(own.survey, own.guess) if "deleted" in one)
    assert "delete_at says of 1" in doubt
    rule = doubt.partition("[filter] ")[2].removesuffix(" leaves them out")
    skip = f"{own.text}\n[filter]\n{rule}\n"
    (session,) = preview([tmp_path / "one.json"], ReadOptions(map=skip), "mapped")
    assert isinstance(session, Trajectory) and len(session.events) == 5
