"""Excerpts of a report: the cited words, whole and marked, with what came before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coaudit.pipeline.report.transcript.excerpts import Excerpt, around, caption, excerpts, timeline
from coaudit.pipeline.store import Selection, Store
from coaudit.schemas import Action, Event, Participant, Trajectory
from tests.pipeline.stores import holding, rate, verdict

EVIL = "<script>1</script><img src=x onerror=1>"


def session(name: str, condition: str = "arm") -> Trajectory:
    return Trajectory(
        id=name,
        native_id=f"run {name} {EVIL}",
        source="log",
        system="cogym",
        condition=condition,
        participants=(Participant(name="Ann", kind="human"), Participant(name=f"Bot {EVIL}", kind="agent")),
        events=(
            Event(seq=0, actor="Ann", kind="message", text="Please ask before you book."),
            Event(
                seq=1, actor=f"Bot {EVIL}", kind="message", text=f"{'x' * 3000} I have **booked** it. {EVIL}"
            ),
            Event(
                seq=2,
                actor=f"Bot {EVIL}",
                kind="action",
                action=Action(name="BOOK", arguments={"what": EVIL}),
            ),
        ),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = holding(tmp_path / "workspace", [session("aa"), session("bb"), session("cc", "other")])

    def found(name: str, rater: str = "m", kind: str = "llm", **more: object) -> dict[str, object]:
        given = {"cites": [1], "quote": "I have **BOOKED** it", "rationale": f"No question. {EVIL}", **more}
        return verdict(name, None, "failures", "present", code="C.2", rater=rater, rater_kind=kind, **given)

    rate(
        store,
        [
            found("aa", quote=None),
            found("bb"),
            found("cc", cites=[2, 2], quote=None),
            found("bb", rater="eva", kind="human"),
            verdict("aa", None, "failures", "absent", code="C.1", rater="m", rater_kind="llm"),
            verdict("aa", None, "failures", "present", code="C.4", rater="m", rater_kind="llm"),
        ],
    )
    return store


def test_findings_that_people_share_come_first_and_of_a_mode_two_are_shown(store: Store) -> None:
    shown = excerpts(store, ["C.2"], "m")
    assert [(one.trajectory, one.raters) for one in shown] == [("aa", ("m",)), ("bb", ("m", "eva"))]
    assert excerpts(store, ["C.1", "C.4"], "m") == (), "not found; found without a place"
    assert excerpts(store, ["C.2"], "nobody") == ()


def test_an_excerpt_has_the_event_before_and_only_sessions_that_are_asked_for(store: Store) -> None:
    (one,) = excerpts(store, ["C.2"], "m", Selection(condition=("other",)))
    assert [row["seq"] for row in one.events] == [1, 2] and one.cited_events == (2,)


def test_cited_words_are_marked_whole_wherever_they_stand_in_a_long_text(store: Store) -> None:
    one = next(one for one in excerpts(store, ["C.2"], "m") if one.trajectory == "bb")
    text = timeline(one)
    assert "<mark>I have **booked** it</mark>" in text, "as it was said, and in whatever case"
    assert "Please ask before you book." in text and text.count("x") < 1000


def test_no_word_of_a_session_or_a_rater_is_more_than_text(store: Store) -> None:
    for one in excerpts(store, ["C.2"], "m"):
        assert "<script" not in timeline(one) and "<img" not in timeline(one)
        assert EVIL in caption(one), "text, which a format escapes"


def test_a_caption_says_what_is_seen_where_and_by_whom() -> None:
    event = {"seq": 3, "cited": True}
    one = Excerpt("C.2", "Silent", "id", "run 1", "arm", ("m", "eva"), None, "It never said so.", (event,))
    assert caption(one) == "C.2 Silent. run 1 (arm), event 3; found by m, eva: It never said so."
    crowd = replace(one, raters=("m", *(f"w{n}" for n in range(30))), rationale=None)
    assert caption(crowd) == "C.2 Silent. run 1 (arm), event 3; found by m, 30 more."
    assert "events 3, 5; found" in caption(replace(one, events=(event, {"seq": 5, "cited": True})))
    assert caption(replace(one, rationale="long " * 90)).endswith("…"), "what was cut says so"


def test_a_text_is_cut_around_the_words() -> None:
    assert around("a" * 50 + "WORD" + "b" * 50, "word", 10) == "… aaaWORDbbb …"
    assert around("WORD" + "b" * 50, "word", 10) == "WORDbbbbbb …"
    assert around("b" * 50 + "WORD", "word", 10) == "… bbbbbbWORD"
    assert around("b" * 50, "elsewhere", 10) == "bbbbbbbbbb …"
    assert around("short", "word", 10) == "short"
