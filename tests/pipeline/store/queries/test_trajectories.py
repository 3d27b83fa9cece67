"""An event on one line."""

from __future__ import annotations

from coaudit.pipeline.store.queries.trajectories import LINE, line
from coaudit.schemas import Action, Event


def test_arguments_are_shown_as_json_and_a_line_that_is_cut_says_so() -> None:
    action = Action(name="plan", arguments={"dialogue": True, "objects": ["egg"], "note": "it's", "at": None})
    event = Event(seq=3, actor="chef", kind="note", action=action)
    assert line(event).endswith('plan(dialogue=true, objects=["egg"], note=it\'s, at=null)')
    whole, cut = (line(Event(seq=3, actor="chef", kind="message", text="x" * n)) for n in (LINE, LINE + 1))
    assert whole.endswith("  " + "x" * LINE) and cut.endswith("  " + "x" * (LINE - 1) + "…")
