"""Recordings of a stream: one after the other, none without end, read as one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coaudit.pipeline.store.disk import AppendOnly
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.cogym import reader, recording, replay
from coaudit.pipeline.systems.cogym.messages import RawMessage, envelope
from coaudit.pipeline.systems.cogym.recording import Place, Recorder
from coaudit.pipeline.systems.cogym.sessions import Sessions
from coaudit.schemas import Quarantined, Trajectory


def message(number: int) -> RawMessage:
    return RawMessage(float(number), "env/a/obs", f"{number:0100d}")


def test_a_recording_that_grows_long_goes_on_in_the_next_and_is_read_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "LONGEST", 1000)
    recorder = Recorder(tmp_path, AppendOnly)
    places = [recorder.write(message(number)) for number in range(20)]
    recorder.note(checkpoint=[places[9].number, places[9].line])
    recorder.close()
    assert len(recording.files(tmp_path)) > 2
    assert all(file.stat().st_size <= 1000 for file in recording.files(tmp_path))
    assert places == sorted(places) and len(set(places)) == 20
    there = [item for _, _, item in recording.lines(tmp_path) if isinstance(item, RawMessage)]
    assert there == [message(number) for number in range(20)]
    since = recording.last_checkpoint(tmp_path)
    assert since == places[9]
    later = [item for _, _, item in recording.lines(tmp_path, since) if isinstance(item, RawMessage)]
    assert later == [message(number) for number in range(9, 20)]


def test_the_next_follower_goes_on_behind_the_last_recording(tmp_path: Path) -> None:
    for _ in range(2):
        recorder = Recorder(tmp_path, AppendOnly)
        assert recorder.write(message(1)) == Place(recorder.number, 1)
        recorder.close()
    assert [recording.number(file) for file in recording.files(tmp_path)] == [1, 2]


@pytest.mark.parametrize("kind", [["TextEditor"], {"a": 1}, None, 3])
def test_a_type_or_name_that_is_no_text_says_nothing(tmp_path: Path, kind: object) -> None:
    space = [{"machine_readable_identifier": kind}, {"machine_readable_identifier": "SEND_TEAMMATE_MESSAGE"}]
    start = {"task_description": "x", "team_members": ["agent", "user"], "action_space": space}
    chat = [{"role": "user", "timestamp": "2026-01-01 00:00:00", "message": "Hello"}]
    shown = {"observation": {"editor": ""}, "observation_type": {"editor": kind}, "chat_history": chat}
    said = {"action": "FINISH()", "role": "agent"}
    sent: tuple[tuple[str, object], ...] = (
        ("start", start),
        ("user/observation", shown),
        ("step", said),
        ("end", {}),
    )
    lines = [
        {"time": n, "channel": f"env_x/{name}", "payload": envelope(content)}
        for n, (name, content) in enumerate(sent)
    ]
    path = tmp_path / "000001-20260101T000000-1.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (trajectory,) = reader.read(path, ReadOptions())
    assert isinstance(trajectory, Trajectory)
    assert [event.kind for event in trajectory.events] == ["start", "message", "finish"]


def test_a_message_that_nobody_foresaw_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise TypeError("unhashable")

    monkeypatch.setattr(Sessions, "feed", fails)
    item = replay.feed(Sessions(), message(1), tmp_path, 7)
    assert isinstance(item, Quarantined) and item.line == 7
    assert item.reason.endswith("cannot be read: TypeError: unhashable")


@pytest.mark.parametrize("time", ["1e308", "-1e18", "NaN", "1e400"])
def test_a_line_whose_time_is_none_costs_only_itself(tmp_path: Path, time: str) -> None:
    start = {"task_description": "x", "team_members": ["agent", "user"]}
    line = json.dumps({"time": 0, "channel": "env_x/start", "payload": envelope(start)})
    path = tmp_path / "000001-20260101T000000-1.jsonl"
    path.write_text(f"{line}\n{line.replace('0', time, 1)}\n")
    good, bad = (item for _, _, item in recording.lines(path))
    assert isinstance(good, RawMessage)
    assert isinstance(bad, Quarantined) and (bad.line, bad.reason) == (
        2,
        "its time is not in seconds since 1970",
    )


def test_a_note_that_is_damaged_stops_nobody(tmp_path: Path) -> None:
    notes = [
        '{"time": 1.0, "note": {"checkpoint": [1, 2]}}',
        '{"time": 2.0, "note": {"session": "a", "id": "b"}}',
    ]
    damaged = [
        '{"note": {"session": 1}}',
        '{"time": 3.0, "note": {"session": "c"',
        '{"time": 4.0, "note": {"x": 1}}}',
    ]
    places = ['{"time": 5.0, "note": {"checkpoint": "1"}}', '{"time": 6.0, "note": {"session": "d"}}']
    path = tmp_path / "000001-20260101T000000-1.jsonl"
    path.write_text("".join(f"{line}\n" for line in [*notes, *damaged, *places]))
    assert recording.last_checkpoint(tmp_path) == recording.Place(1, 2)
    assert replay.folder_ids(tmp_path) == {"a": "b"}
    assert [item.line for _, _, item in recording.lines(path) if isinstance(item, Quarantined)] == [3, 4, 5]
