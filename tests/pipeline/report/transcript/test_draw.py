"""A transcript that is read: outputs folded, findings listed, changes in place, all escaped."""

from __future__ import annotations

import json
from typing import Any

from coaudit.pipeline.report.transcript import draw, pins
from coaudit.pipeline.report.transcript.read import LONGEST, Replay

EVIL = "<img src=x onerror=alert(1)> </details><script>1</script>"


def event(seq: int, **given: Any) -> dict[str, Any]:
    base = {
        "seq": seq, "sub": 0, "live_only": False, "time": None, "actor": "bot", "party": "agent",
        "kind": "message", "text": None, "bytes": 0, "action": None, "arguments": None, "status": None,
        "error": None, "states": None, "notices": None,
    }  # fmt: skip
    return {**base, **given}


def rating(seq: int | None, label: str, **given: Any) -> dict[str, Any]:
    base = {
        "event": seq, "codebook": "failures", "code": "C.1", "code_name": "Silent start", "rater": "m",
        "rater_kind": "llm", "label": label, "error": None, "positive": "present", "cites": None,
        "quote": None, "rationale": None, "probability": None, "error_source": None, "external": None,
    }  # fmt: skip
    return {**base, **given}


def shown(*events: dict[str, Any], changes: dict[int, dict[str, list[str]]] | None = None) -> Replay:
    return Replay({}, [], [], list(events), 0, [], changes or {})


def drawn(replay: Replay, *ratings: dict[str, Any], **wish: Any) -> str:
    wanted = {"aim": None, "code": None, **wish}
    return draw.timeline(replay, list(ratings), target=lambda seq: f"?event={seq}", **wanted)


def test_a_long_output_is_folded_and_what_people_say_is_not() -> None:
    output = event(0, kind="observation", party="environment", text="x" * 500)
    talk = event(1, text="y" * 500)
    essay = event(2, text="z" * 3000)
    text = drawn(shown(output, talk, essay))
    assert text.count("<details>") == 2
    assert f"<pre>{'y' * 500}</pre></div>" in text and "500 characters" in text and "3,000 characters" in text


def test_a_text_says_that_there_is_more_only_where_there_is() -> None:
    whole, longer = (event(seq, text="y" * n, bytes=n) for seq, n in enumerate((LONGEST, LONGEST + 1)))
    text = drawn(shown(whole, longer))
    assert text.count("open the event for the rest") == 1
    assert f"{LONGEST + 1:,} bytes in all" in text and "y" * (LONGEST + 1) not in text


def test_words_are_marked_where_they_stand_and_unfold_what_hides_them() -> None:
    text = drawn(shown(event(0, text="a" * 2000 + " <B>Train</B>")), words="<b>t")
    assert "<details open>" in text and "<mark>&lt;B&gt;T</mark>rain" in text


def test_a_name_that_turns_what_follows_around_is_written_out() -> None:
    turned, told = "\u202etob", r"\u202etob"
    noted = [rating(0, "present", rater=turned, quote="q"), rating(0, turned, rater="b", codebook="mine")]
    text = drawn(shown(event(0, actor=turned, states='{"\u202etob": "h"}'), changes={0: {}}), *noted)
    assert turned not in text and text.count(told) == 7
    assert turned not in str(pins.outline(shown(event(0)), noted))


def test_nothing_of_a_log_becomes_markup() -> None:
    wild = event(
        0, kind="action", text=EVIL * 40, action=EVIL, arguments=EVIL, status="failed", error=EVIL,
        actor=EVIL, states='{"<b>": "h"}', notices='[{"text": "<i>"}]', time="<u>",
    )  # fmt: skip
    noted = rating(0, "present", code=EVIL, code_name=EVIL, rater=EVIL, quote=EVIL, cites=[0])
    lines = ["+" + EVIL, "-" + EVIL]
    page = shown(wild, changes={0: {"<b>": lines}})
    for text in (drawn(page, noted, words="img"), pins.outline(page, [noted], "img")):
        assert not any(tag in text for tag in ("<img", "<script", "<b></b>", "<i>", "<u>", "<b>:"))


def test_a_rating_that_was_pulled_leads_to_its_task_in_label_studio() -> None:
    def link(origin: dict[str, Any]) -> str:
        external = json.dumps({"labelstudio": {"server": "https://ls.example", "project": 3, **origin}})
        return drawn(shown(event(0)), rating(0, "present", rater_kind="human", cites=[0], external=external))

    assert '<a href="https://ls.example/projects/3/data?task=7"' in link({"task": 7})
    assert "task ↗" not in link({"task": "7&x=1"}) + link({"task": 7, "server": "javascript:alert(1)//"})
    assert "task ↗" in link({"task": 7, "server": "http://[no-address"}), (
        "whatever an import brings, it is drawn"
    )


def test_only_what_somebody_found_is_drawn_with_all_that_was_said_of_it() -> None:
    yes, no = rating(None, "present", cites=[0]), rating(None, "absent", rater="eva")
    other = rating(None, "absent", code="C.2")
    scale = rating(None, "4", code="quality", positive=None)
    assert pins.present_ratings([yes, no, other, scale]) == [yes, no, scale]


def test_the_outline_leads_to_each_finding_and_tells_where_raters_differ() -> None:
    page = shown(event(0), event(1, text="the ferry"), event(2))
    yes, no = rating(None, "present", cites=[2]), rating(None, "absent", rater="eva", cites=[2])
    took = rating(1, "yes", codebook="initiative", code="initiative", positive="yes")
    elsewhere = rating(None, "present", code="C.9", cites=[70])
    text = pins.outline(page, [yes, no, took, elsewhere])
    assert text.count("<li>") == 1, "taking the initiative is no finding, and event 70 is not shown"
    assert '<a href="#e2">event 2</a> <b>C.1</b>' in text and "m · raters differ" in text
    assert '<a href="#e1">' in pins.outline(page, [yes], "FERRY")
    assert pins.outline(page, [took]) == ""
    page_text = drawn(page, yes, took)
    assert 'id="e2"' in page_text and page_text.count("event agent found") == 1
    assert page_text.count('class="pin yes"') == 1, "the initiative is no alarm"


def test_what_a_step_changed_stands_in_place() -> None:
    step = event(3, states='{"editor": "h", "plan": "h", "large": "h"}')
    text = drawn(shown(step, changes={3: {"editor": ["@@", "-old", "+new", "+more"], "plan": []}}))
    assert "changed editor: 2 lines in, 1 out" in text and '<span class="plus">+new</span>' in text
    assert "plan" not in text, "nothing changed there"
    assert "changed: large" in text, "too large for its place"


def test_the_gutter_tells_the_time_since_the_session_began() -> None:
    events = event(0, time="2026-06-01T10:00:00"), event(1, time="2026-06-01T10:12:05"), event(2, time="noon")
    text = drawn(shown(*events))
    assert "+0:00" in text and "+12:05" in text
