"""Sessions that stand in two logs count twice: an ingest says so."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from coaudit.pipeline.ingest.copies import repetitions
from coaudit.pipeline.store import Store
from tests.pipeline.stores import made, take

TOLD = "if they are copies, `coaudit forget` takes a log or a session out"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made(tmp_path / "workspace")


def session(name: str, text: str, time: str | None = None) -> str:
    team = [{"name": "Ada", "kind": "human"}, {"name": "Bot", "kind": "agent"}]
    lines: list[dict[str, Any]] = [
        {"type": "trajectory", "native_id": name, "participants": team},
        {"type": "event", "trajectory": name, "actor": "Ada", "kind": "message", "text": text, "time": time},
        {
            "type": "event",
            "trajectory": name,
            "actor": "Bot",
            "kind": "message",
            "text": "Yes.",
            "time": time,
        },
    ]
    return "".join(json.dumps({k: v for k, v in line.items() if v is not None}) + "\n" for line in lines)


def written(path: Path, *sessions: str) -> Path:
    path.write_text("".join(sessions), encoding="utf-8")
    return path


def test_sessions_of_several_logs_that_a_merged_one_has_too_are_told(tmp_path: Path, store: Store) -> None:
    morning, noon, night = (f"2026-01-02T{hour:02}:00:00" for hour in (8, 12, 22))
    first = written(tmp_path / "a1.jsonl", session("a1", "Go.", morning))
    other = written(tmp_path / "a2.jsonl", session("a2", "Go.", noon))
    texts = (session("m1", "Go.", morning), session("m2", "Go.", noon), session("m3", "Go.", night))
    merged = written(tmp_path / "merged.jsonl", *texts)
    taken = take(store, first, other, merged)
    told = (
        f"{merged}: 2 sessions of it say to the word, at the same times, what those of {first} and 1 other "
        f"log say, and count beside them; {TOLD}"
    )
    assert (taken.trajectories, taken.notes) == (5, [told])
    undated = written(tmp_path / "undated.jsonl", session("u1", "Go."))
    more = written(tmp_path / "undated too.jsonl", session("u2", "Go."), session("u3", "Stop."))
    assert take(store, undated, more).notes == [], "without times they may be other runs of the same"
    day = "2026-01-03T00:00:00"
    one_day = written(tmp_path / "day a.jsonl", session("da", "Go.", day))
    same_day = written(tmp_path / "day b.jsonl", session("db", "Go.", day), session("dc", "Stop."))
    assert take(store, one_day, same_day).notes == [], "a day alone tells no runs apart"
    alone = written(tmp_path / "z.jsonl", session("z1", "Go.", night), session("z2", "Wait.", night))
    assert take(store, alone, condition="another arm").notes == []


def test_of_many_logs_with_repeated_sessions_some_are_named(tmp_path: Path, store: Store) -> None:
    time = "2026-01-02T08:00:00"
    (tmp_path / "logs").mkdir()
    for n in range(8):
        written(
            tmp_path / "logs" / f"{n}.jsonl", session(f"{n}", "Go.", time), session(f"x{n}", f"{n}", time)
        )
    notes = take(store, tmp_path / "logs").notes
    assert len(notes) == 6 and "1 session of it says to the word" in notes[0]
    assert notes[-1] == "2 more files have sessions that say to the word what those of others say"


def test_that_many_logs_have_one_session_takes_time_as_their_number_does() -> None:
    connection, number = duckdb.connect(), 4000
    connection.execute(
        f"""
        CREATE TABLE trajectories AS SELECT n::VARCHAR AS id, n::VARCHAR AS source, 'x' AS system,
            NULL::VARCHAR AS condition, '2026' AS started, '2026' AS ended FROM range({number}) r(n);
        CREATE TABLE units AS SELECT id AS trajectory_id, 'trajectory' AS kind, 'h' AS hash FROM trajectories;
        CREATE TABLE events AS SELECT id AS trajectory_id, 1 AS seq, 0 AS sub, 'succeeded' AS status,
            NULL::VARCHAR AS error, NULL::VARCHAR AS states FROM trajectories;
        """
    )
    start = time.process_time()
    rows = repetitions(connection, [str(n) for n in range(number)])
    assert (len(rows), {one.other for one in rows}) == (number - 1, {"0"})
    assert time.process_time() - start < 4, "0.04 s, and 8 s as pairs"
