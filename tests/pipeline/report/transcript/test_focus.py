"""What of a session is shown for a question about a part of it."""

from __future__ import annotations

from typing import Any

from coaudit.pipeline.report.transcript import draw
from coaudit.pipeline.report.transcript.focus import EVERYTHING, choices, select_events, subject_of
from coaudit.pipeline.report.transcript.read import Replay

KINDS = {"ada": "human", "bot": "agent", "env": "environment"}
TEAM = [{"name": name, "kind": kind} for name, kind in KINDS.items()]


def rating(**more: Any) -> dict[str, Any]:
    said: dict[str, Any] = {
        "codebook": "b",
        "code": "c",
        "label": "yes",
        "positive": "yes",
        "event": None,
        "cites": [],
    }
    return {**said, "rater": "j", "rater_kind": "llm", "error": None, "unit": "trajectory", **more}


def session(*ratings: dict[str, Any]) -> Replay:
    """Ten events; the bot acts at 3 and 4, ada at all others."""
    events = [
        {"seq": n, "sub": 0, "actor": "bot" if n in (3, 4) else "ada", "party": "human", "kind": "message"}
        | {"time": None, "text": f"words {n}", "bytes": 7, "action": None, "arguments": None, "status": None}
        | {"error": None, "states": None, "notices": None, "live_only": False}
        for n in range(10)
    ]
    return Replay({}, TEAM, [], events, 0, list(ratings), {})


def test_what_one_did_stands_with_its_neighbours_and_what_is_left_out_is_counted() -> None:
    part, left_out = select_events(session(), [], "by:bot")
    assert [event["seq"] for event in part.events] == [2, 3, 4, 5] and left_out == {2: 2}
    assert select_events(session(), [], EVERYTHING)[1] == {}


def test_what_is_found_is_what_is_cited_or_rated_itself() -> None:
    ratings = [rating(cites=[0]), rating(event=9), rating(event=5, label="no")]
    part, left_out = select_events(session(*ratings), ratings, "found")
    assert [event["seq"] for event in part.events] == [0, 1, 8, 9] and left_out == {8: 6}
    html = draw.timeline(part, [], aim=None, code=None, target=str, left_out=left_out)
    assert html.count("… 6 events not shown") == 1 and html.index("not shown") < html.index("words 8")


def test_a_code_of_a_participant_shows_that_participant_at_first() -> None:
    found = rating(unit="participant", event=3, code="who")
    assert subject_of(session(found), "who") == "by:bot"
    assert subject_of(session(found), "c") == subject_of(session(rating(cites=[3])), "c") == EVERYTHING
    assert list(choices(session(), [])) == [EVERYTHING, "by:ada", "by:bot"]
    assert "found" in choices(session(), [found])
