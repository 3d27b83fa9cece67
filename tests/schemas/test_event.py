"""Events as columns: the same as one by one, and told apart from what is none."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from coaudit.schemas import Action, Event, Participant, Trajectory
from coaudit.schemas.event import EventColumns, Events, Notice
from coaudit.schemas.unit import arguments_json, event_contents

EVENTS = (
    Event(seq=0, actor="env", kind="start", text="Ümlaut"),
    Event(seq=1, actor="ann", kind="message", text="", time="2026-01-01", states={"public": "a" * 32}),
    Event(
        seq=2,
        sub=1,
        live_only=True,
        actor="bot",
        kind="action",
        status="failed",
        action=Action(name="look", arguments={"b": [1, 2.5, None], "a": "x"}, raw='look("x")'),
        error="no",
        notices=(Notice(time=None, text="idle"),),
    ),
    Event(seq=3, actor="bot", kind="finish", action=Action(name="")),
)


def trajectory(events: Any) -> Trajectory:
    people = (Participant(name="ann", kind="human"), Participant(name="bot", kind="agent"))
    return Trajectory(id="t", native_id="t", source="s", system="made", participants=people, events=events)


def test_columns_hold_what_events_do_and_give_them_back() -> None:
    columns = EventColumns.of(EVENTS)
    assert columns.are_events() and len(columns) == len(EVENTS)
    assert columns.action == [None, None, "look", ""]
    one, other = trajectory(Events(columns)), trajectory(EVENTS)
    assert one == other and one.events == EVENTS and tuple(one.events) == EVENTS
    assert one.events[1:3] == EVENTS[1:3] and one.events[-1] == EVENTS[-1] and EVENTS[1] in one.events
    assert one.events + EVENTS == EVENTS + one.events == EVENTS * 2
    assert (one.model_dump(), one.model_dump_json()) == (other.model_dump(), other.model_dump_json())
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(one, protocol)) == other
    for strict in (False, True):
        assert Trajectory.model_validate_json(one.model_dump_json(), strict=strict) == other
    for no_tuple in ([EVENTS[0]], EVENTS[0]):
        with pytest.raises(TypeError):
            operator.add(one.events, no_tuple)
        with pytest.raises(TypeError):
            operator.add(no_tuple, one.events)


def test_no_event_is_made_for_who_looks_at_columns_alone() -> None:
    events = Events(EventColumns.of(EVENTS))
    assert len(trajectory(events).events) == 4
    assert id(trajectory(events).events) == id(events) and events._rows is None


def test_a_trajectory_without_events_has_columns() -> None:
    columns = Events.of(()).columns
    assert len(columns) == 0 and columns.are_events() and Events(columns).rows == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("seq", -1), ("seq", 2**31), ("seq", True), ("seq", "1"), ("sub", -1), ("live_only", 1)],
        *[
            ("actor", None),
            ("actor", 3),
            ("actor", "\ud83d"),
            ("kind", "spoke"),
            ("kind", None),
            ("kind", []),
        ],
        *[("text", 3), ("text", b"x"), ("text", "half \udc00"), ("time", 1.0), ("error", ["no"])],
        *[
            ("status", "ok"),
            ("status", {}),
            ("raw", 1),
            ("action", 1),
            ("arguments", {1: 2}),
            ("arguments", [1]),
        ],
        *[("states", {"public": None}), ("states", {1: "a"}), ("states", None), ("notices", [])],
        *[("kind", None), ("arguments", [1])],
        ("notices", ({"time": None, "text": "x"},)),
    ],
)
def test_what_is_no_event_as_it_stands_is_found_in_whichever_column(field: str, value: Any) -> None:
    columns = EventColumns.of(EVENTS)
    column: Sequence[Any] = getattr(columns, field)
    assert not replace(columns, **{field: [*column[:2], value, *column[3:]]}).are_events()


def test_what_is_wrong_with_an_event_is_said_by_its_type() -> None:
    kinds: Any = ["start", "message", "spoke", "finish"]
    columns = replace(EventColumns.of(EVENTS), kind=kinds)
    with pytest.raises(ValidationError) as error:
        trajectory(columns.dictionaries())
    assert error.value.errors()[0]["loc"] == ("events", 2, "kind")
    assert trajectory(EventColumns.of(EVENTS).dictionaries()).events == EVENTS


def said(event: Event) -> bytes:
    columns = EventColumns.of([event])
    return event_contents(columns, arguments_json(columns))[0]


def test_what_is_said_is_the_same_of_all_events_and_of_each_alone() -> None:
    half = EVENTS[0].model_copy(update={"text": "half \ud83d"})
    for events in (EVENTS, (half, *EVENTS[1:])):
        columns = EventColumns.of(events)
        assert event_contents(columns, arguments_json(columns)) == [said(event) for event in events]
    assert said(EVENTS[2]) == (
        b'[2,"bot","action",null,{"arguments":{"a":"x","b":[1,2.5,null]},"name":"look","raw":"look(\\"x\\")"}]'
    )
    assert said(half) == '[0,"env","start","half \ud83d",null]'.encode("utf-8", "surrogatepass")
