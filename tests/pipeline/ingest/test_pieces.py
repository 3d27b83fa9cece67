"""Sessions that several files have a piece of: every piece counts, and an ingest says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coaudit.pipeline.store import Store
from tests.pipeline.stores import made, take

MAP = """
[trajectory]
native_id = "session"
agent_model = "model"
[event]
role = "role"
text = "text"
time = "at"
"""
NAMED = MAP.replace('native_id = "session"\n', "")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made(tmp_path / "workspace")


def logged(path: Path, minute: int, *sessions: str, model: str = "m-1") -> Path:
    """A log in which each of the sessions has a question and an answer."""
    lines = [
        {"session": name, "role": role, "text": f"{path.stem} {second}", "model": model}
        | {"at": f"2026-01-02T10:{minute:02}:{second:02}Z"}
        for name in sessions
        for second, role in enumerate(("user", "assistant"))
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_a_log_that_goes_on_with_sessions_of_another_one_is_told(tmp_path: Path, store: Store) -> None:
    first = logged(tmp_path / "app-1.jsonl", 0, "a", "b", "c")
    second = logged(tmp_path / "app-2.jsonl", 1, "b", "c", "d")
    taken = take(store, first, second, map=MAP, system="mapped")
    assert taken.trajectories == 6
    assert taken.notes == [
        f"{second}: sessions have the names of those of {first} (b and 1 more), begin after these ended, and "
        "count beside them; if they go on with them, join the files into one"
    ]
    assert take(store, first, second, map=MAP, system="mapped").notes == []


def test_runs_of_other_models_or_at_one_time_and_names_of_files_are_no_pieces(
    tmp_path: Path, store: Store
) -> None:
    first = logged(tmp_path / "1.jsonl", 0, "a")
    other = logged(tmp_path / "2.jsonl", 1, "a", model="m-2")
    beside = logged(tmp_path / "3.jsonl", 0, "a", "b")
    assert take(store, first, other, beside, map=MAP, system="mapped").notes == []
    runs = [logged(tmp_path / name / "run.jsonl", n, "x") for n, name in enumerate(("one", "two"), 5)]
    assert take(store, *runs, map=NAMED, system="mapped").notes == []


def test_a_session_that_is_called_as_its_file_hides_no_others(tmp_path: Path, store: Store) -> None:
    first = logged(tmp_path / "1.jsonl", 0, "1", "2", "3")
    second = logged(tmp_path / "2.jsonl", 1, "2", "3")
    assert [
        note.partition("(")[2][:1] for note in take(store, first, second, map=MAP, system="mapped").notes
    ] == ["3"]
