"""Folders with a file for each event of a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.ingest.run import preview
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.files.event_files import event_files
from coaudit.schemas import Quarantined, Trajectory
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import outline
from tests.pipeline.systems.formats.shapes import as_json, sentence


def openhands(number: int, source: str, **fields: Any) -> dict[str, Any]:
    return {"id": number, "timestamp": f"2026-01-02T10:00:{number:02d}", "source": source, **fields}


def strands(number: int, role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    message = {"role": role, "content": list(parts)}
    return {"message": message, "message_id": number, "created_at": f"2026-01-02T10:00:{number:02d}Z"}


EVENTS = {
    "events/{}.json": [
        openhands(0, "user", action="message", args={"content": sentence(0)}),
        openhands(1, "agent", action="run", args={"command": "ls", "thought": sentence(1)}),
        openhands(2, "agent", observation="run", cause=1, content="src", extras={}),
        openhands(3, "environment", observation="agent_state_changed", content="", extras={}),
        *(openhands(n, "user", action="message", args={"content": sentence(n)}) for n in range(4, 12)),
    ],
    "agents/default/messages/message_{}.json": [
        strands(0, "user", {"text": sentence(0)}),
        strands(1, "assistant", {"text": sentence(1)}, {"toolUse": {"toolUseId": "c", "name": "run"}}),
        strands(2, "user", {"toolResult": {"toolUseId": "c", "content": [{"text": "src"}]}}),
        *(strands(n, "user", {"text": sentence(n)}) for n in range(4, 12)),
    ],
}


@pytest.mark.parametrize("names", EVENTS)
def test_a_folder_with_a_file_for_each_event_is_a_session(tmp_path: Path, names: str) -> None:
    for session in ("s1", "s2"):
        as_json(tmp_path / session / "state.json", {"id": session})
        for number, event in enumerate(EVENTS[names]):
            number = event.get("message_id", number)
            as_json(tmp_path / session / names.format(number), event)
    runs = read_by_draft(tmp_path)
    assert [run.native_id for run in runs] == ["s1", "s2"]
    for run in runs:
        user, agent = (one.name for one in run.participants)
        assert outline(run.events) == [
            (user, "message", sentence(0)),
            (agent, "message", sentence(1)),
            (agent, "action", "run"),
            *((user, "message", sentence(n)) for n in range(4, 12)),
        ]
        assert run.states[run.events[2].states["public"]] == {"observation": "src"}


def test_a_broken_file_costs_its_event_alone(tmp_path: Path) -> None:
    for number in range(3):
        said = openhands(number, "user", action="message", args={"content": sentence(number)})
        as_json(tmp_path / "events" / f"{number}.json", said)
    (tmp_path / "events" / "1.json").write_text("{")
    options = ReadOptions(map=draft(tmp_path).text)
    wrong, run = preview([tmp_path], options, "mapped")
    assert isinstance(wrong, Quarantined) and wrong.source.endswith("/1.json")
    assert isinstance(run, Trajectory)
    assert [event.text for event in run.events] == [sentence(0), sentence(2)]


def test_a_half_written_event_leaves_its_folder_a_session(tmp_path: Path) -> None:
    for session in ("s1", "s2"):
        for number in range(3):
            said = openhands(number, "user", action="message", args={"content": sentence(number)})
            as_json(tmp_path / session / f"event-{number}.json", said)
    options = ReadOptions(map=draft(tmp_path).text)
    (tmp_path / "s1" / "event-3.json").write_text('{"id": 3, "time')
    first, wrong, second = preview([tmp_path], options, "mapped")
    assert isinstance(wrong, Quarantined) and wrong.source.endswith("/event-3.json")
    assert [one.native_id for one in (first, second) if isinstance(one, Trajectory)] == ["s1", "s2"]
    for number in (1, 2, 3):
        (tmp_path / "s1" / f"event-{number}.json").unlink()
    assert len(list(preview([tmp_path], options, "mapped"))) == 1  # and an event alone is no session


@pytest.mark.parametrize("beside", ["sub/0.json", "talk.jsonl"])
def test_a_folder_with_other_logs_is_no_session_that_hides_them(tmp_path: Path, beside: str) -> None:
    for number in range(3):
        said = openhands(number, "user", action="message", args={"content": sentence(number)})
        as_json(tmp_path / f"{number}.json", said)
    as_json(tmp_path / beside, {"id": "x", "messages": [{"role": "user", "content": sentence(4)}]})
    assert not event_files(tmp_path)


def test_folders_of_events_and_files_of_lines_are_read_in_different_ways(tmp_path: Path) -> None:
    for number in range(3):
        said = openhands(number, "user", action="message", args={"content": sentence(number)})
        as_json(tmp_path / "events" / f"{number}.json", said)
    as_json(tmp_path / "talk.jsonl", {"id": "x", "messages": [{"role": "user", "content": sentence(4)}]})
    assert [one.name for one in draft(tmp_path).survey.files] == ["events"]


@pytest.mark.parametrize(
    "record",
    [
        {"id": None, "role": "user", "content": sentence(0)},
        openhands(1, "user", kind="chat", messages=[{"role": "user", "content": sentence(0)}]),
        {"id": 0, "messages": [{"role": "user", "content": sentence(0)}]},
        {"author": "Ada", "text": sentence(0)},
        {"index": 7, "role": "user", "content": sentence(0)},
    ],
)
def test_numbered_files_of_other_things_are_files_of_their_own(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    for number in range(2):
        own = number if record.get("id", "x") is None else record.get("id", "x")
        as_json(tmp_path / f"{number}.json", {**record, "id": own})
    assert not event_files(tmp_path)
    assert len(draft(tmp_path).survey.files) == 2
