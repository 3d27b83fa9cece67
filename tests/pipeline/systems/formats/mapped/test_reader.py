"""What a mapping file makes of anybody's JSON Lines."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest

from coaudit.pipeline.errors import SourceError
from coaudit.pipeline.systems.formats.fields import mapping
from coaudit.pipeline.systems.formats.messages import turns
from coaudit.schemas import content_hash
from tests.conftest import Coaudit
from tests.pipeline.systems.formats.logs import one, outline, read, write_lines

MAP = """
[constants]
system = "lab"
task = "travel"
[trajectory]
native_id = "session"
agent_model = "meta.model"
[tags]
group = "meta.group"
[outcomes]
success = "ok"
[event]
seq = "log[].n"
time = "log[].at"
role = "log[].who.role"
actor = "log[].who.name"
text = "log[].say"
action = "log[].do.name"
arguments = ["log[].do.target", "log[].do.args"]
status = "log[].do.result"
[roles]
guide = "agent"
[statuses]
done = "succeeded"
denied = "failed"
[[kinds]]
where = { "log[].do.name" = ["say", "ask"] }
kind = "message"
[filter]
skip = [{ "log[].who.role" = "heartbeat" }]
"""
FLAT = MAP.replace("log[].", "")
SPEECH = '[event]\nrole = "role"\ntext = "text"\n'


def event(n: int, role: str, actor: str, say: str | None = None, **do: Any) -> dict[str, Any]:
    at = f"2026-02-03T10:00:{n:02}Z"
    return {"n": n, "at": at, "who": {"role": role, "name": actor}, "say": say, "do": do or None}


EVENTS = [
    event(0, "system", "desk", "Plan a trip."),
    event(1, "user", "Ada", "To Ulm, please."),
    event(2, "guide", "Bot", "By train?", name="ask"),
    event(3, "guide", "Bot", name="book", target="train", args={"seats": 2}, result="denied"),
]
SESSION = {"session": "s1", "ok": True, "meta": {"model": "m", "group": "b"}, "log": EVENTS}
EXPECTED = [
    ("desk", "note", "Plan a trip."),
    ("Ada", "message", "To Ulm, please."),
    ("Bot", "message", "ask"),
    ("Bot", "action", "book"),
]


def lines(events: list[dict[str, Any]] = EVENTS, session: str = "s1") -> list[dict[str, Any]]:
    """One event a line; the model is told once, the outcome at the end."""
    found = [{"session": session, **event} for event in events]
    found[0]["meta"] = {"model": "m", "group": "b"}
    found[-1]["ok"] = True
    return found


@pytest.mark.parametrize("form", ["one session a line", "one event a line"])
def test_both_forms_give_the_same_trajectory(tmp_path: Path, form: str) -> None:
    nested = form == "one session a line"
    path = write_lines(tmp_path / "a.jsonl", *([SESSION] if nested else lines()))
    found = one("mapped", path, map=MAP if nested else FLAT)
    assert outline(found.events) == EXPECTED
    assert (found.native_id, found.system, found.task, found.agent_model) == ("s1", "lab", "travel", "m")
    assert found.tags == {"group": "b"}
    assert {p.name: p.kind for p in found.participants} == {
        "desk": "environment",
        "Ada": "human",
        "Bot": "agent",
    }
    booked = found.events[3]
    assert booked.action and booked.action.arguments == {"target": "train", "seats": 2}
    assert (booked.status, booked.error) == ("failed", "denied")
    assert [(o.name, o.value) for o in found.outcomes] == [("success", 1.0)]
    assert found.id == one("mapped", write_lines(tmp_path / "b.jsonl", SESSION), map=MAP).id


@pytest.mark.parametrize(
    ("who", "name"),
    [
        ("", "user"),
        ('requester = "user.name"\n', "Ada"),
        ('requester = "nobody"\n[constants]\nrequester = "Ada"\n', "Ada"),
    ],
)
def test_who_asks_is_who_the_mapping_says(tmp_path: Path, who: str, name: str) -> None:
    """The same person says the rest, and was two."""
    steps = [{"role": "agent", "say": "By train?"}, {"role": "user", "name": "Ada", "say": "Yes."}]
    path = write_lines(tmp_path / "a.jsonl", {"asks": "To Ulm.", "user": {"name": "Ada"}, "log": steps})
    events = '[event]\nrole = "log[].role"\nactor = "log[].name"\ntext = "log[].say"\n'
    found = one("mapped", path, map=f'[trajectory]\nrequest = "asks"\n{who}{events}')
    assert outline(found.events)[0] == (name, "message", "To Ulm.")
    assert {p.name: p.kind for p in found.participants} == {name: "human", "agent": "agent", "Ada": "human"}


EMPTY = "[outcomes]\nsuccess = 'ok'\nexit = 'exit'\n"


@pytest.mark.parametrize(
    ("fields", "actor", "kind"),
    [
        (f"{EMPTY}[messages]\nat = 'log'\n", "environment", "start"),
        (f"{EMPTY}[event]\nrole = 'log[].role'\n", "environment", "start"),
        (f"{EMPTY}[event]\nrole = 'log[].role'\n[trajectory]\nrequest = 'asks'\n", "user", "message"),
    ],
)
def test_a_session_that_failed_before_its_first_step_counts(
    tmp_path: Path, fields: str, actor: str, kind: str
) -> None:
    """It was quarantined, and so missing from the rate of success; one without an outcome still is."""
    failed = {"asks": "To Ulm.", "ok": 0, "exit": "exit_api", "log": []}
    blank: tuple[object, ...] = (None, "", {})
    silent = [{"asks": "To Ulm.", "ok": ok, "log": list[object]()} for ok in blank]
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", failed, *silent), map=fields)
    assert [(e.seq, e.actor, e.kind) for e in found[0].events] == [(0, actor, kind)]
    assert [(o.name, o.value, o.text) for o in found[0].outcomes] == [
        ("success", 0, None),
        ("exit", None, "exit_api"),
    ]
    assert [q.line for q in wrong] == [1, 2, 3, 4] and len(found) == 1
    assert wrong[0].reason == "log: empty, so that the session has nothing but its outcomes"


@pytest.mark.parametrize(
    ("said", "value"),
    [("ja", 1.0), (" Nein", 0.0), ("halb", 0.5), ("vielleicht", None), (True, 1.0), (None, None)],
)
def test_a_word_is_the_number_that_the_mapping_says(tmp_path: Path, said: Any, value: float | None) -> None:
    words = MAP + "[values.success]\nJa = 1\nnein = 0\nhalb = 0.5\n"
    (outcome,) = one("mapped", write_lines(tmp_path / "a.jsonl", SESSION | {"ok": said}), map=words).outcomes
    assert (outcome.name, outcome.value, outcome.value is None) == ("success", value, bool(outcome.reason))


@pytest.mark.parametrize("number", [float("-inf"), 10**400], ids=["-inf", "10**400"])
def test_a_session_whose_outcome_is_no_finite_number_lacks_that_alone(tmp_path: Path, number: float) -> None:
    found = one("mapped", write_lines(tmp_path / "a.jsonl", SESSION | {"ok": number}), map=MAP)
    assert [o.value for o in found.outcomes] == [None]
    assert (found.outcomes[0].reason or "").startswith("not a finite number: ")


def test_times_that_are_written_otherwise_are_read_as_the_mapping_says(tmp_path: Path) -> None:
    how = FLAT.replace('task = "travel"', 'time_format = "%d.%m.%Y %H:%M"').replace('seq = "n"', "")
    times = ("02.03.2026 10:00", "01.03.2026 11:30", "unknown", "2026-03-01")
    events = [line | {"at": at} for line, at in zip(lines(), times, strict=False)]
    found, (wrong,) = read("mapped", write_lines(tmp_path / "a.jsonl", *events), map=how)
    assert [event.time for event in found[0].events] == [
        *("2026-03-01", "2026-03-01T11:30:00", None, "2026-03-02T10:00:00"),
    ]
    assert (wrong.line, wrong.reason) == (
        3,
        "time: 'unknown' is not written as '%d.%m.%Y %H:%M': kept without it",
    )


@pytest.mark.parametrize(
    ("zone", "time"),
    [
        (" UTC", "2026-02-03 10:00:00+00:00"),
        ("+02:00 UTC", "2026-02-03 10:00:00+02:00"),
        (" +0000 UTC", "2026-02-03 10:00:00+00:00"),
        (" CET UTC", "2026-02-03 10:00:00 CET UTC"),
    ],
)
def test_a_zone_in_words_is_an_offset_and_no_part_of_what_an_id_is_a_hash_of(
    tmp_path: Path, zone: str, time: str
) -> None:
    logged = f"2026-02-03 10:00:00{zone}"
    line = {"session": "s", "role": "user", "text": "Go.", "at": logged}
    mapping = SPEECH.replace(
        "[event]", '[constants]\nsystem = "lab"\n[trajectory]\nnative_id = "session"\n[event]\ntime = "at"'
    )
    found = one("mapped", write_lines(tmp_path / "a.jsonl", line), map=mapping)
    assert [event.time for event in found.events] == [time]
    assert found.id == content_hash("lab", "s", ("user", logged, "Go."))[:16]


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), 10**400], ids=["inf", "-inf", "10**400"])
def test_a_time_without_end_is_named_and_not_counted_down(tmp_path: Path, number: float) -> None:
    path = write_lines(tmp_path / "a.jsonl", lines()[0], lines()[1] | {"at": number})
    _, (wrong,) = read("mapped", path, map=FLAT)
    assert wrong.line == 2
    assert wrong.reason.startswith("time: expected a text or a number, got ")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_nan_is_an_empty_cell_and_nobodys_name_or_outcome(tmp_path: Path, name: str) -> None:
    empty = float("nan")
    rows: list[dict[str, Any]] = [
        {"session": "s1", "role": "user", "actor": empty, "text": "To Ulm.", "ok": empty},
        {"session": "s1", "role": "assistant", "actor": empty, "text": "By train?", "ok": 1.0},
    ]
    path = tmp_path / name
    if name == "a.parquet":
        polars.DataFrame(rows).write_parquet(path)
    elif name == "a.json":
        path.write_text(json.dumps(rows))
    else:
        write_lines(path, *rows)
    names = '[trajectory]\nnative_id = "session"\n[outcomes]\nsuccess = "ok"\n'
    found = one("mapped", path, map=names + '[event]\nrole = "role"\nactor = "actor"\ntext = "text"\n')
    assert outline(found.events) == [("user", "message", "To Ulm."), ("assistant", "message", "By train?")]
    assert [outcome.value for outcome in found.outcomes] == [1]


def test_a_tool_that_is_nan_is_none_and_a_text_that_is_nan_is_not_said(tmp_path: Path) -> None:
    said = {"who": {"role": "guide", "name": "Bot"}, "n": 1, "say": float("nan"), "do": {"name": "book"}}
    told = {"who": {"role": "user", "name": "Ada"}, "n": 0, "say": "NaN?", "do": float("nan")}
    found = one("mapped", write_lines(tmp_path / "a.jsonl", SESSION | {"log": [told, said]}), map=MAP)
    assert [(e.actor, e.kind, e.text) for e in found.events] == [
        ("Ada", "message", "NaN?"),
        ("Bot", "action", None),
    ]


def test_numbers_of_an_outcome_that_is_not_mapped_are_refused() -> None:
    with pytest.raises(SourceError, match=r"values\.sucess: no such outcome, expected one of success"):
        mapping.parse(MAP + "[values.sucess]\nja = 1\n")


def test_interleaved_late_and_repeated_lines_come_out_in_order_and_once(tmp_path: Path) -> None:
    mixed = [line for name in ("s1", "s2", "s3") for line in lines(session=name)]
    mixed += random.Random(1).sample(mixed, 5)
    random.Random(2).shuffle(mixed)
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", *mixed), map=FLAT)
    assert not wrong
    assert sorted(t.native_id for t in found) == ["s1", "s2", "s3"]
    assert all(outline(t.events) == EXPECTED for t in found)


def test_a_path_beside_the_list_of_events_leads_into_the_record_where_the_event_has_no_such_field(
    tmp_path: Path,
) -> None:
    events = [{"role": "user", "text": "Ulm?"}, {"role": "agent", "text": "Yes.", "day": "2026-02-04"}]
    path = write_lines(tmp_path / "a.jsonl", {"day": "2026-02-03", "meta": {"mode": "dry"}, "log": events})
    text = """
[event]
role = "log[].role"
text = "log[].text"
time = "day"
[[kinds]]
where = { "meta.mode" = "dry" }
kind = "note"
"""
    found = one("mapped", path, map=text)
    assert [(e.time, e.kind) for e in found.events] == [("2026-02-03", "note"), ("2026-02-04", "note")]


def test_a_list_or_object_is_a_tag_as_json_has_it(tmp_path: Path) -> None:
    session = {**SESSION, "meta": {"model": "m", "group": ["b", True, {"c": None}]}}
    found = one("mapped", write_lines(tmp_path / "a.jsonl", session), map=MAP)
    assert found.tags == {"group": '["b",true,{"c":null}]'}


def test_what_a_record_has_beside_its_events_is_no_part_of_an_event_that_lacks_it(tmp_path: Path) -> None:
    steps = [
        {"who": "user", "text": "Ulm?"},
        {"who": "agent", "content": "Looking.", "name": "search", "out": "Not found"},
        {"who": "agent", "name": "book"},
    ]
    record = {"id": "a", "name": "A trip", "content": "The task.", "team": "red", "steps": steps}
    path = write_lines(tmp_path / "a.jsonl", record)
    text = """
[event]
role = "steps[].who"
text = ["steps[].text", "steps[].content"]
action = "steps[].name"
result = "steps[].out"
[[results]]
where = { content = "The task." }
status = "failed"
[[kinds]]
where = { name = "A trip", team = "red" }
kind = "note"
"""
    events = one("mapped", path, map=text).events
    actions = [event.action and event.action.name for event in events]
    assert [e.text for e in events] == ["Ulm?", "Looking.", None]
    assert actions == [None, "search", "book"]
    assert [e.kind for e in events] == ["note", "action", "action"]
    assert [e.status for e in events] == [None, None, None]


def test_without_a_number_events_are_ordered_by_time(tmp_path: Path) -> None:
    late = [lines()[0], lines()[2], lines()[1], lines()[3]]
    found = one("mapped", write_lines(tmp_path / "a.jsonl", *late), map=FLAT.replace('seq = "n"', ""))
    assert outline(found.events) == EXPECTED
    assert [e.seq for e in found.events] == [0, 1, 2, 3]


def test_a_line_that_cannot_be_read_keeps_its_number_free_and_costs_nothing_else(tmp_path: Path) -> None:
    given = lines()
    path = write_lines(tmp_path / "a.jsonl", given[0], json.dumps(given[1])[:30], *given[2:], {"n": 9}, [1])
    found, wrong = read("mapped", path, map=FLAT)
    assert [e.seq for e in found[0].events] == [0, 2, 3]
    assert sorted((item.line, item.reason[:22]) for item in wrong) == [
        (2, "not JSON: EOF while pa"),
        (5, "session: there is no s"),
        (6, "expected a JSON object"),
    ]


def test_an_event_that_does_not_fit_is_named_by_line_place_and_choices(tmp_path: Path) -> None:
    wrong_role = {**SESSION, "log": [EVENTS[0], event(1, "wizard", "Z"), EVENTS[2]]}
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", wrong_role), map=MAP)
    assert [e.seq for e in found[0].events] == [0, 2]
    (item,) = wrong
    assert item.line == 1
    assert item.reason.startswith("log[1]: role: unknown role 'wizard', expected one of user, ")


def test_what_is_no_event_at_all_costs_itself_wherever_it_stands(tmp_path: Path) -> None:
    none = "{'n': %d, 'who': {'role': 'guide', 'name': 'Bot'}, 'do': {'name': 'book', 'args': {1: 2}}}"
    fine = "{'n': 1, 'who': {'role': 'user', 'name': 'Ada'}, 'say': 'To Ulm.'}"
    log = f"[{none % 0}, {fine}, {none % 2}]"
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", {**SESSION, "log": log}), map=MAP)
    assert [(e.seq, e.text) for e in found[0].events] == [(1, "To Ulm.")]
    assert sorted(item.reason[:15] for item in wrong) == ["log[0]: action.", "log[2]: action."]
    nothing, wrong = read(
        "mapped", write_lines(tmp_path / "b.jsonl", {**SESSION, "log": f"[{none % 0}]"}), map=MAP
    )
    assert not nothing
    assert [(item.line, item.reason) for item in wrong] == [
        (1, "log[0]: action.arguments.1: Input should be a valid string")
    ]


def test_a_number_of_an_event_fits_its_column(tmp_path: Path) -> None:
    far = {**SESSION, "log": [EVENTS[0], {**EVENTS[1], "n": 2**31}, EVENTS[2]]}
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", far), map=MAP)
    assert [e.seq for e in found[0].events] == [0, 2]
    assert [item.reason for item in wrong] == [
        "log[1]: seq: expected a whole number from 0 to 2147483647, got 2147483648"
    ]


COLUMNS = """
[trajectory]
native_id = "session"
[event]
role = "who"
text = "said"
seq = "n"
[roles]
bot = "agent"
"""


def test_a_cell_that_is_no_number_costs_its_own_row_alone(tmp_path: Path) -> None:
    """A column with it in is one of texts, and one with a half in is one of fractions."""
    for name, odd in (("word", "x"), ("half", "1.5"), ("below", "-1")):
        table = tmp_path / f"{name}.csv"
        table.write_text(f"session,n,who,said\na,2,bot,Done.\na,{odd},user,So?\na,1,user,To Ulm.\n")
        found, wrong = read("mapped", table, map=COLUMNS)
        assert [(e.seq, e.text) for e in found[0].events] == [(1, "To Ulm."), (2, "Done.")]
        assert [item.line for item in wrong] == [3]
        assert wrong[0].reason.startswith("seq: expected a whole number from 0 to 2147483647, got ")


def test_names_that_would_be_one_number_are_two_and_measures_stay_numbers(tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    table.write_text("session,n,who,said,did,cost\n1.1,1,bot,,buy,0.5\n1.10,1,bot,,buy,0.50\n")
    of_costs = COLUMNS.replace('seq = "n"', 'seq = "n"\naction = "did"\narguments = "cost"')
    found, wrong = read("mapped", table, map=of_costs)
    assert [one.native_id for one in found] == ["1.1", "1.10"] and not wrong
    assert [e.action and e.action.arguments for one in found for e in one.events] == [{"cost": 0.5}] * 2


@pytest.mark.parametrize(
    ("pattern", "of_times", "marks"),
    [
        (r"\[(?P<time>\S+)\] ", "", ("[2024-01-13T10:01:00] ", "[2024-01-13T10:02:00] ")),
        (
            r"(?P<time>[\d/]+, [\d:]+) - ",
            '[constants]\ntime_format = "%d/%m/%Y, %H:%M"',
            ("13/01/2024, 10:01 - ",) * 2,
        ),
    ],
)
def test_what_stands_before_the_first_turn_of_a_text_has_no_time(
    tmp_path: Path, pattern: str, of_times: str, marks: tuple[str, str]
) -> None:
    mapping = f"""
{of_times}
[event]
role = "text[].speaker"
text = "text[].text"
time = "text[].time"
[turns]
pattern = '^{pattern}(?P<speaker>User|Bot): '
[roles]
User = "human"
Bot = "agent"
"""
    path = tmp_path / "talk.txt"
    path.write_text(f"All is recorded.\n{marks[0]}User: To Ulm.\n{marks[1]}Bot: Done.\n", encoding="utf-8")
    found, wrong = read("mapped", path, map=mapping)
    assert not wrong
    assert [bool(event.time) for event in found[0].events] == [False, True, True]


@pytest.mark.parametrize(
    ("written", "cells", "times"),
    [
        ("%Y%m%d.%H%M", ("20240131.1030", "20240131.1100"), ["2024-01-31T10:30:00", "2024-01-31T11:00:00"]),
        ("%Y%m%d", ("20240131", "20240201"), ["2024-01-31T00:00:00", "2024-02-01T00:00:00"]),
        ("%Y%m%d", ("1706700000", "1706700060"), ["2024-01-31T11:20:00+00:00", "2024-01-31T11:21:00+00:00"]),
    ],
)
def test_times_in_a_format_of_their_own_may_look_like_numbers(
    tmp_path: Path, written: str, cells: tuple[str, str], times: list[str]
) -> None:
    table = tmp_path / "log.csv"
    table.write_text("session,at,who,said\n" + "".join(f"1.50,{cell},bot,Hi {cell}\n" for cell in cells))
    timed = COLUMNS.replace('seq = "n"', 'time = "at"') + (f'[constants]\ntime_format = "{written}"\n')
    found, wrong = read("mapped", table, map=timed)
    assert not wrong and found[0].native_id == "1.50"
    assert [event.time for event in found[0].events] == times


def test_a_number_is_one_events_wherever_the_other_stands(tmp_path: Path) -> None:
    named = MAP.replace('seq = "log[].n"', 'seq = "log[].n"\nid = "log[].id"')
    log = [{**event(n, "user", "Ada", f"Part {place}"), "id": place} for place, n in enumerate((2, 3, 2))]
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", {**SESSION, "log": log}), map=named)
    assert [e.seq for e in found[0].events] == [2, 3]
    assert [item.reason for item in wrong] == ["log[2]: seq: another event has number 2"]


@pytest.mark.parametrize("first", [1, True])
def test_one_and_true_are_two_values_whichever_comes_first(tmp_path: Path, first: object) -> None:
    rules = (
        MAP.split("[statuses]")[0]
        + """
[statuses]
1 = "failed"
true = "succeeded"
[[kinds]]
where = { "log[].do.result" = true }
kind = "finish"
"""
    )
    second = True if first == 1 and first is not True else 1
    log = [event(n, "guide", "Bot", name="book", result=value) for n, value in enumerate([first, second])]
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", {**SESSION, "log": log}), map=rules)
    told = {True: ("finish", "succeeded"), False: ("action", "failed")}
    assert not wrong
    assert [(e.kind, e.status) for e in found[0].events] == [told[v is True] for v in (first, second)]


def test_a_name_that_was_made_up_for_a_second_kind_is_nobody_elses(tmp_path: Path) -> None:
    log = [
        event(0, "user", "Ada (environment)", "Hello"),
        event(1, "user", "Ada", "Hello"),
        event(2, "user", "Ada", "OBSERVATION: a file"),
        event(3, "user", "Ada (environment)", "Still here"),
    ]
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", {**SESSION, "log": log}), map=MAP)
    assert not wrong
    kinds = {person.name: person.kind for person in found[0].participants}
    assert [(e.actor, kinds[e.actor]) for e in found[0].events] == [
        ("Ada (environment)", "human"),
        ("Ada", "human"),
        ("Ada (environment) (environment)", "environment"),
        ("Ada (environment)", "human"),
    ]


def test_an_unknown_status_is_an_error_and_never_a_success(tmp_path: Path) -> None:
    odd = {**SESSION, "log": [*EVENTS[:3], event(3, "guide", "Bot", name="book", result="maybe")]}
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", odd), map=MAP)
    assert len(found[0].events) == 3
    assert wrong[0].reason == "log[3]: status: unknown status 'maybe', expected one of done, denied"


def test_what_is_left_out_as_said_twice_is_counted_where_nothing_tells_when(tmp_path: Path) -> None:
    """Of a dialogue without times, `Yes.` comes again and again."""
    mapping = '[event]\nrole = "role"\ntext = "text"\n'
    said = [
        {"role": role, "text": text} for text in ("Now?", "Yes.", "Yes.") for role in ("user", "assistant")
    ]
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", *said), map=mapping)
    assert len(found[0].events) == 4
    assert [(one.line, one.reason.partition(";")[0]) for one in wrong] == [
        (1, "left out as said twice: 2 events that say the same as an earlier one of this session")
    ]
    timed = write_lines(tmp_path / "b.jsonl", *({**one, "at": 5} for one in said))
    assert read("mapped", timed, map=f'{mapping}time = "at"\n')[1] == []


def test_objects_and_lists_in_an_event_are_held_against_those_of_others(tmp_path: Path) -> None:
    mapping = '[event]\nrole = "role"\ntext = "text"\naction = "do"\narguments = "given"\n'
    given: list[object] = [{"at": [1, 2]}, {"at": [2, 1]}, {"at": [1.0, 2]}, {}]
    done = [{"role": "agent", "do": "go", "given": one} for one in given]
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", *done), map=mapping)
    assert [event.action and event.action.arguments for event in found[0].events] == [
        {"at": [1, 2]},
        {"at": [2, 1]},
        {},
    ]
    assert "1 events that say the same" in wrong[0].reason


def test_any_other_status_may_be_given_a_meaning(tmp_path: Path) -> None:
    odd = {**SESSION, "log": [*EVENTS[:3], event(3, "guide", "Bot", name="book", result="maybe")]}
    path = write_lines(tmp_path / "a.jsonl", odd)
    session = one("mapped", path, map=MAP.replace("[statuses]", '[statuses]\n"*" = "failed"'))
    assert session.events[3].status == "failed"
    found, wrong = read("mapped", path, map=MAP.replace("[statuses]", '[statuses]\n"*" = "unknown"'))
    assert found[0].events[3].status is None
    assert [item.reason for item in wrong] == [
        "statuses that [statuses] has no name for were taken as its \"*\": 'maybe' (1)"
    ]


def test_what_a_filter_skips_is_neither_an_event_nor_an_error(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {**SESSION, "log": [*EVENTS, event(4, "heartbeat", "x")]})
    assert len(one("mapped", path, map=MAP).events) == 4


@pytest.mark.slow
def test_a_log_that_grows_is_one_trajectory(coaudit: Coaudit, tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(FLAT)
    path = write_lines(tmp_path / "a.jsonl", *lines()[:3])
    assert coaudit("ingest", path, "--map", tmp_path / "map.toml", "--json").json["events"] == 3
    write_lines(path, *lines())
    assert coaudit("ingest", path, "--map", tmp_path / "map.toml", "--json").json["trajectories"] == 1
    assert coaudit("ingest", path, "--map", tmp_path / "map.toml", "--json").json["unchanged"] == 1
    (tmp_path / "map.toml").unlink()
    assert (
        coaudit("rebuild", "--json").json
        == {"trajectories": 1, "events": 4} | coaudit("rebuild", "--json").json
    )
    (row,) = coaudit("trajectory", "list", "--json").json["rows"]
    assert row["events"] == 4


def test_a_dry_run_shows_trajectories_and_stores_nothing(
    coaudit: Coaudit, tmp_path: Path, workspace: Path
) -> None:
    (tmp_path / "map.toml").write_text(MAP)
    path = write_lines(tmp_path / "a.jsonl", SESSION, "{cut")
    done = coaudit("ingest", "--dry-run", path, "--map", tmp_path / "map.toml", "--json")
    (shown,) = done.json["trajectories"]
    assert [e["actor"] for e in shown["events"]] == ["desk", "Ada", "Bot", "Bot"]
    assert "a.jsonl:2: not JSON" in done.err
    assert "Ada" in coaudit("ingest", "--dry-run", path, "--map", tmp_path / "map.toml").out
    assert not workspace.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('role = "log[].who.role"', 'rôle = "x"'), "not TOML"),
        (('role = "log[].who.role"', 'rolle = "x"'), "event.rolle: unknown key, expected one of actor"),
        (
            ('guide = "agent"', 'guide = "robot"'),
            "roles.guide: Input should be 'human', 'agent'",
        ),
        (('task = "travel"', "task = 3"), "constants.task: Input should be a valid string, got 3"),
        (
            ('"log[].say"', '"other[].say"'),
            "event.text: events are in 'log', but 'other[].say' leads elsewhere",
        ),
        (('"meta.group"', '"log[].group"'), "tags.group: a session has one value here"),
        (
            ('task = "travel"', 'time_format = "%H:%M"'),
            "constants.time_format: expected directives such as %d.%m.%Y %H:%M, got '%H:%M'",
        ),
        (
            ('task = "travel"', 'time_format = "%d.%m.%Y %d"'),
            "constants.time_format: expected directives such as %d.%m.%Y %H:%M, got '%d.%m.%Y %d'",
        ),
        (
            ("[constants]", '[input]\nencoding = "western"\n[constants]'),
            "input.encoding: expected one such as cp1252 or utf-16, got 'western'",
        ),
        (('"log[].at"', '"log[]..at"'), "event.time: expected a path such as user.name"),
        (
            ('done = "succeeded"', 'done = "good"'),
            "statuses.done: expected one of succeeded, failed",
        ),
        (('kind = "message"', 'kind = "talk"'), "kinds.0.kind: Input should be 'start', 'message'"),
        (
            ("[filter]", '[turns]\nat = "log"\npattern = []\n[filter]'),
            "turns.pattern: Value should have at least 1 item after validation, not 0, got []",
        ),
    ],
)
def test_a_mapping_that_is_wrong_names_file_key_rule_and_value(change: tuple[str, str], said: str) -> None:
    with pytest.raises(SourceError) as error:
        mapping.parse(MAP.replace(*change), "lab.toml")
    assert str(error.value).startswith("lab.toml: ")
    assert said in str(error.value)


@pytest.mark.parametrize("key", ["reply", "told"])
def test_what_stands_beside_the_messages_has_a_path_that_can_be_read(key: str) -> None:
    with pytest.raises(SourceError, match=rf"messages\.{key}: expected a path such as user.name"):
        mapping.parse(f'[messages]\nat = "log"\n{key} = "a..b"', "lab.toml")


@pytest.mark.parametrize(
    ("how", "at"), [('at = "log"', "log[]."), ("each = true", ""), ('at = "m"\neach = true', "")]
)
def test_messages_are_filtered_as_events_are(tmp_path: Path, how: str, at: str) -> None:
    told = [{"role": "user", "content": f"Go {n}.", "side": n % 2 == 1} for n in range(4)]
    many: list[dict[str, Any]] = [{"log": told}] if at else told
    if "m" in how.split('"'):
        many = [{"m": one, "side": one["side"]} for one in told]
    path = write_lines(tmp_path / "a.jsonl", *many)
    (found,), wrong = read(
        "mapped", path, map=f'[messages]\n{how}\n[filter]\nskip = [{{ "{at}side" = true }}]\n'
    )
    assert ([event.text for event in found.events], wrong) == (["Go 0.", "Go 2."], [])


def test_spans_are_filtered_as_events_are(tmp_path: Path) -> None:
    spans = [{"kind": "llm", "in": f"Go {n}.", "out": "I go.", "side": n == 0} for n in range(2)]
    how = '[spans]\nat = "s"\nkind = "s[].kind"\ninput = "s[].in"\noutput = "s[].out"\n'
    path = write_lines(tmp_path / "a.jsonl", {"s": spans})
    (found,), _ = read("mapped", path, map=how + '[filter]\nkeep = [{ "s[].side" = false }]\n')
    assert [event.text for event in found.events if event.actor == "user"] == ["Go 1."]


@pytest.mark.parametrize("beside", [True, False])
def test_an_outermost_run_asks_for_a_person_where_no_model_call_stands_beside_it(
    tmp_path: Path, beside: bool
) -> None:
    search: dict[str, Any] = {"kind": "span", "in": {"query": "trains"}, "out": ["p. 4"]}
    model: dict[str, Any] = {"kind": "llm", "in": "When is the train?", "out": "At 9."}
    how = '[spans]\nat = "s"\nkind = "s[].kind"\ninput = "s[].in"\noutput = "s[].out"\n'
    path = write_lines(tmp_path / "a.jsonl", {"s": [search, model] if beside else [search]})
    (found,), _ = read("mapped", path, map=how + '[spans.kinds]\nspan = "other"\n')
    told = ["When is the train?", "At 9."] if beside else ["trains", "p. 4"]
    assert [(event.actor, event.text) for event in found.events] == [
        ("user", told[0]),
        ("assistant", told[1]),
    ]


def test_what_is_called_a_model_and_holds_models_says_nothing_and_one_that_called_a_tool_does(
    tmp_path: Path,
) -> None:
    def run(name: str, parent: str | None, kind: str, asked: str, told: str) -> dict[str, Any]:
        return {"id": name, "parent": parent, "kind": kind, "in": asked, "out": told}

    spans = [
        run("a", None, "Bot.chat", "When is the train?", "At 9."),
        run("b", "a", "Bot.answer", "When is the train?", "At 9."),
        run("c", "b", "api.chat.create", "The person asks: when is the train?", "It is at 9."),
        run("d", "c", "tool", "trains", "p. 4"),
        run("e", "d", "api.chat.create", "Shorten p. 4.", "9 h"),
    ]
    fields = ("id", "parent", "kind", "in", "out")
    names = ("id", "parent", "kind", "input", "output")
    paths = "".join(f'{name} = "s[].{field}"\n' for name, field in zip(names, fields, strict=True))
    path = write_lines(tmp_path / "a.jsonl", {"s": spans})
    (found,), wrong = read("mapped", path, map=f'[spans]\nat = "s"\n{paths}')
    assert ([event.text for event in found.events if event.kind == "message"], wrong) == (
        ["The person asks: when is the train?", "It is at 9.", "Shorten p. 4.", "9 h"],
        [],
    )


def test_rules_that_messages_have_no_use_for_are_refused_where_they_are_new(
    coaudit: Coaudit, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"log": [{"role": "user", "content": "Go."}], "draft": True})
    for table, said in (
        ('[[kinds]]\nwhere = { "a" = "b" }\nkind = "note"', "kinds: only with [event]; messages and spans"),
        ('[statuses]\na = "failed"', "statuses: only with [event]; messages and spans"),
        (
            '[filter]\nkeep = [{ "draft" = false }]',
            "filter.keep: paths must lead into 'log', got 'draft'",
        ),
        (
            '[[actions]]\npattern = \'Go\'\nwhere = { "log[].name" = "Bob" }',
            "actions: `where` only with [event]; with [messages], a rule applies to all that agents say",
        ),
    ):
        how = f'[messages]\nat = "log"\n{table}\n'
        (tmp_path / "m.toml").write_text(how)
        assert said in coaudit("ingest", path, "--map", tmp_path / "m.toml", status=1).err
        (found,), wrong = read("mapped", path, map=how)  # as a mapping that is noted with a source
        assert (len(found.events), wrong) == (1, [])


def test_map_and_system_go_together(coaudit: Coaudit, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", SESSION)
    assert "--map FILE" in coaudit("ingest", path, "--system", "mapped", status=2).err
    assert (
        "shipped ones: bench_events, bench_sessions" in coaudit("ingest", path, "--map", "none", status=1).err
    )


@pytest.mark.long
@pytest.mark.parametrize("form", ["sessions", "events"])
def test_the_shipped_mappings_read_every_event_of_dirty_synthetic_sessions(
    shared: Path, tmp_path: Path, form: str
) -> None:
    generator = shared / "bench" / "gen.py"
    dirt = ["--dup", "0.05", "--corrupt", "0.02", *(["--late", "0.1"] if form == "events" else [])]
    command = [sys.executable, str(generator), "--sessions", "60", "--format", form, "--out"]
    for name, options in (("clean", []), ("dirty", dirt)):
        subprocess.run([*command, str(tmp_path / f"{name}.jsonl"), *options], check=True, capture_output=True)
    text, _ = mapping.text_of(f"bench_{form}")
    clean, wrong = read("mapped", tmp_path / "clean.jsonl", map=text)
    assert len(clean) == 60 and not wrong
    dirty, wrong = read("mapped", tmp_path / "dirty.jsonl", map=text)
    assert all(item.line and item.reason.startswith("not JSON") for item in wrong)
    whole = {(t.native_id, e.seq): e for t in clean for e in t.events}
    read_again = [((t.native_id, e.seq), e) for t in dirty for e in t.events]
    assert len(read_again) == len({key for key, _ in read_again})
    assert all(whole[key] == event for key, event in read_again)
    lost = len(whole) - len(read_again)
    assert lost <= len(wrong) * (1 if form == "events" else 80)


def test_both_shipped_mappings_give_the_same_events(shared: Path, tmp_path: Path) -> None:
    found = []
    for form in ("sessions", "events"):
        path = tmp_path / f"{form}.jsonl"
        command = [sys.executable, str(shared / "bench" / "gen.py"), "--sessions", "8", "--format", form]
        subprocess.run([*command, "--out", str(path)], check=True, capture_output=True)
        read_in, _ = read("mapped", path, map=mapping.text_of(f"bench_{form}")[0])
        found.append(
            {t.id: (t.native_id, t.condition, t.agent_model, t.participants, t.events) for t in read_in}
        )
    assert found[0] == found[1]


@pytest.mark.parametrize("printed", [json.dumps, repr])
def test_half_a_character_in_a_text_that_holds_a_list_costs_no_session(
    printed: Callable[[object], str], tmp_path: Path
) -> None:
    log = [{"role": "user", "text": "Cut \ud83d"}, {"role": "agent", "text": "As it was: \\\\ud83d 🙂"}]
    path = write_lines(tmp_path / "a.jsonl", {"log": printed(log)})
    way = '[event]\nrole = "log[].role"\ntext = "log[].text"\n'
    found = one("mapped", path, map=way)
    assert [event.text for event in found.events] == ["Cut \ufffd", "As it was: \\\\ud83d 🙂"]


def test_what_is_said_once_is_kept_beside_what_other_lines_say_in_the_same_object(tmp_path: Path) -> None:
    names = '[trajectory]\nnative_id = "session"\n[tags]\ngroup = "meta.group"\nroom = "meta.room.name"\n'
    ends = '[outcomes]\nscore = "meta.scores[1]"\nturns = "meta.end.turns"\nwon = "meta.end.won"\n'
    text = f'{names}{ends}[event]\nrole = "role"\ntext = "text"\n'
    lines = [
        {"session": "s", "role": "user", "text": "Go.", "meta": {"group": "b", "scores": [1, 2]}},
        {"session": "s", "role": "agent", "text": "On.", "meta": json.dumps({"room": {"name": "red"}})},
        {"session": "s", "role": "user", "text": "Done.", "meta": {"end": {"turns": 3, "won": True}}},
    ]
    found = one("mapped", write_lines(tmp_path / "a.jsonl", *lines), map=text)
    assert found.tags == {"group": "b", "room": "red"}
    assert {o.name: o.value for o in found.outcomes} == {"score": 2, "turns": 3, "won": 1}


@pytest.mark.parametrize(
    ("said", "arguments", "raw"),
    [
        ("RUN look /etc", {"path": "/etc"}, None),
        ("RUN put /x (size=1)", {"path": "/x", "size": 1}, None),
        ("RUN put /x (one, two)", {"path": "/x", "arguments": "one, two"}, "one, two"),
    ],
)
def test_all_groups_of_a_pattern_that_names_actions_are_arguments(
    tmp_path: Path, said: str, arguments: dict[str, Any], raw: str | None
) -> None:
    pattern = r"RUN (?P<action>\w+) (?P<path>\S+)(?: \((?P<arguments>.*)\))?"
    how = f"{SPEECH}[[actions]]\npattern = '{pattern}'\n"
    found = one("mapped", write_lines(tmp_path / "a.jsonl", {"role": "agent", "text": said}), map=how)
    (action,) = [event.action for event in found.events]
    assert action and (action.name, action.arguments, action.raw) == (said.split()[1], arguments, raw)


def test_a_set_among_the_arguments_of_a_call_is_the_same_in_every_run(tmp_path: Path) -> None:
    how = f"{SPEECH}[[actions]]\npattern = '(?P<action>\\w+)\\((?P<arguments>.*)\\)'\n"
    path = write_lines(tmp_path / "a.jsonl", {"role": "agent", "text": "buy(what={'c', 'a', 'b', 'd'})"})
    (event,) = one("mapped", path, map=how).events
    assert event.action and event.action.arguments == {"what": ["a", "b", "c", "d"]}


@pytest.mark.parametrize(
    "text",
    [
        "buy(what={{'a': 1}})",
        "buy(what=1) + sell(what=2)",
        f"buy(what=0x{'f' * 6000})",
        f"buy(what={'-' * 5000}1)",
        "buy(**{})",
    ],
)
def test_arguments_that_python_reads_and_cannot_hold_stay_as_they_were_said(
    tmp_path: Path, text: str
) -> None:
    """Each ended the command, or cost all sessions of its file."""
    how = f"{SPEECH}[[actions]]\npattern = '^(?P<action>\\w+)\\((?P<arguments>.*)\\)$'\n"
    path = write_lines(tmp_path / "a.jsonl", {"role": "agent", "text": text})
    (event,) = one("mapped", path, map=how).events
    assert event.action and event.action.name == "buy"
    assert (event.action.arguments, event.action.raw) == ({"arguments": text[4:-1]}, text[4:-1])


@pytest.mark.parametrize("text", ['{{"name": "Ann"}}', "[{{}}]", "{'a': {[]: 1}}", f"['a', 0x{'f' * 6000}]"])
def test_a_text_that_python_reads_and_cannot_hold_stays_a_text(text: str) -> None:
    """Of `{{"name": "Ann"}}`, as templates have it, `ingest` and `map` ended with an error."""
    assert turns.decode_value(text) == text


@pytest.mark.parametrize("log", ["{'a', 'b'}", "['a', b'x']", "['a', 1j]"])
def test_a_text_with_what_json_has_not_stays_a_text(tmp_path: Path, log: str) -> None:
    way = '[event]\nrole = "log[].role"\ntext = "log[].text"\n'
    _, (wrong,) = read("mapped", write_lines(tmp_path / "a.jsonl", {"log": log}), map=way)
    assert wrong.reason == f"log: expected a list of events, got {log!r}"


def test_a_tuple_that_python_printed_is_a_list() -> None:
    assert turns.decode_value("{'a': ('b', (1, None))}") == {"a": ["b", [1, None]]}


def test_whole_numbers_of_a_column_with_an_empty_cell_are_the_days_that_they_were(tmp_path: Path) -> None:
    table = polars.DataFrame({"role": ["user"] * 2, "text": ["Go.", "Stop."], "at": [20240131.0, None]})
    table.write_parquet(tmp_path / "a.parquet")
    how = f'{SPEECH}time = "at"\n[constants]\ntime_format = "%Y%m%d"\n'
    found = one("mapped", tmp_path / "a.parquet", map=how)
    assert [event.time for event in found.events] == ["2024-01-31T00:00:00", None]


def test_milliseconds_with_a_fraction_are_a_time_beside_a_format(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"role": "user", "text": "Go.", "at": 1_700_000_000_123.5})
    found = one("mapped", path, map=f'{SPEECH}time = "at"\n[constants]\ntime_format = "%Y%m%d"\n')
    assert str(found.events[0].time).startswith("2023-11-14T22:13:20.123")


@pytest.mark.parametrize("day", [20241331, 5, 20241331.0])
def test_a_number_that_is_no_time_in_the_format_is_told_and_no_day_of_1970(
    tmp_path: Path, day: float
) -> None:
    path = write_lines(
        tmp_path / "a.jsonl",
        *({"role": "user", "text": str(at), "at": at} for at in (1_700_000_000, 20240131, day)),
    )
    how = f'{SPEECH}time = "at"\n[constants]\ntime_format = "%Y%m%d"\n'
    (session,), wrong = read("mapped", path, map=how)
    assert [told.reason for told in wrong] == [f"time: {day} is not written as '%Y%m%d': kept without it"]
    times = [event.time for event in session.events]
    assert times == ["2023-11-14T22:13:20+00:00", "2024-01-31T00:00:00", None]


def dated(role: str, minute: int) -> dict[str, Any]:
    at = f"2026-02-03T10:{minute:02}:00Z"
    return {"role": role, "content": f"At {minute}.", "timestamp": at, "aside": minute == 9}


@pytest.mark.parametrize(
    "how",
    [
        '[event]\nrole = "messages[].role"\ntext = "messages[].content"\ntime = "messages[].timestamp"\n',
        '[messages]\nat = "messages"\n[filter]\nskip = [{ "messages[].aside" = true }]\n',
        '[messages]\nat = "messages"\ngrowing = true\n[filter]\nskip = [{ "messages[].aside" = true }]\n',
        '[trajectory]\nnative_id = "s"\n[messages]\nat = "messages"\njoined = true\n'
        '[filter]\nskip = [{ "messages[].aside" = true }]\n',
        "[messages]\neach = true\n[filter]\nskip = [{ aside = true }]\n",
        None,
    ],
    ids=["event", "messages", "growing", "joined", "each", "chat"],
)
def test_a_reason_names_the_place_in_the_record_whatever_was_left_out_or_turned_round(
    tmp_path: Path, how: str | None
) -> None:
    log = [dated("alien" if minute == 8 else "user", minute) for minute in (9, 8, 7, 6, 5)]
    path = write_lines(tmp_path / "a.jsonl", *(log if how and "each" in how else [{"messages": log}]))
    _, (wrong,) = read("mapped" if how else "chat", path, map=how)
    assert wrong.reason.startswith("messages[1]: ")


def test_a_value_that_is_no_list_of_messages_costs_its_own_call_alone(tmp_path: Path) -> None:
    calls = [{"log": 5}, {"log": [{"role": "user", "content": "Go."}]}]
    way = '[messages]\nat = "log"\ngrowing = true\n'
    found, wrong = read("mapped", write_lines(tmp_path / "a.jsonl", *calls), map=way)
    assert [event.text for session in found for event in session.events] == ["Go."]
    assert wrong[0].reason == "log[0]: message: expected an object, got a whole number"


@pytest.mark.parametrize(
    "layout",
    [
        '[input]\nrounds = {user = "question", assistant = "answer"}\n'
        '[event]\nrole = "said.role"\ntext = "said.text"\nseq = "n"\n',
        '[input]\nrounds = {user = "question", assistant = "answer"}\n'
        '[event]\nrole = "said.role"\ntext = "said.text"\nid = "said.id"\nseq = "n"\n',
    ],
)
def test_a_number_of_a_round_orders_all_who_speak_in_it(tmp_path: Path, layout: str) -> None:
    rows = [
        {"s": "a", "n": 2, "question": "By when?", "answer": "At noon."},
        {"s": "a", "n": 1, "question": "To Ulm?", "answer": "Yes."},
    ]
    path = write_lines(tmp_path / "rounds.jsonl", *rows)
    talk = one("mapped", path, map=f'[trajectory]\nnative_id = "s"\n{layout}')
    assert [event.text for event in talk.events] == ["To Ulm?", "Yes.", "By when?", "At noon."]


def test_a_number_in_a_list_of_rounds_orders_question_and_answer(tmp_path: Path) -> None:
    rounds = [{"n": n, "q": f"Question {n}", "a": f"Answer {n}"} for n in (1, 0)]
    path = write_lines(tmp_path / "rounds.jsonl", {"rounds": rounds})
    layout = (
        '[event]\nrole = "turns[].role"\ntext = "turns[].text"\nseq = "turns[].n"\n[turns]\nat = "turns"\n'
    )
    layout += '[turns.fields]\nuser = "rounds[].q"\nassistant = "rounds[].a"\n'
    talk = one("mapped", path, map=layout)
    assert [event.text for event in talk.events] == ["Question 0", "Answer 0", "Question 1", "Answer 1"]


ROUNDS = '[trajectory]\nnative_id = "s"\n[input]\nrounds = {user = "question", assistant = "answer"}\n'
ROUNDS += '[event]\nrole = "said.role"\ntext = "said.text"\nseq = "n"\n'


def test_numbers_that_no_two_speakers_share_are_those_of_the_log(tmp_path: Path) -> None:
    rows = [
        {"s": "a", "n": 1, "question": "To Ulm?"},
        {"s": "a", "n": 2, "answer": "Yes."},
        {"s": "b", "n": 1, "question": "To Ulm?", "answer": "No."},
        {"s": "a", "n": 5, "question": "By when?"},
    ]
    talks, wrong = read("mapped", write_lines(tmp_path / "rounds.jsonl", *rows), map=ROUNDS)
    assert not wrong
    assert {talk.native_id: [event.seq for event in talk.events] for talk in talks} == {
        "a": [1, 2, 5],
        "b": [2, 3],
    }


def test_a_round_that_is_exported_again_counts_once_as_it_was_last(tmp_path: Path) -> None:
    rows = [
        {"s": "a", "n": 1, "key": 1, "question": "Where?", "answer": "Here.", "stars": 5},
        {"s": "a", "n": 2, "key": 2, "question": "When?", "answer": "Now.", "stars": 4},
        {"s": "b", "n": 1, "key": 1, "question": "Where?", "answer": "Away.", "stars": 3},
        {"s": "a", "n": 1, "key": 1, "question": "Where?", "answer": "There.", "stars": 1},
    ]
    layout = ROUNDS.replace("[input]", '[input]\nid = "key"')
    talks, wrong = read("mapped", write_lines(tmp_path / "rounds.jsonl", *rows), map=layout)
    assert not wrong
    assert sorted([event.text for event in talk.events] for talk in talks) == [
        ["Where?", "Away."],
        ["Where?", "There.", "When?", "Now."],
    ]


def test_a_rounds_number_may_be_its_time(tmp_path: Path) -> None:
    rows = [{"s": "a", "n": 1_700_000_000 + n, "question": f"Q{n}", "answer": f"A{n}"} for n in (5, 0)]
    talk = one("mapped", write_lines(tmp_path / "rounds.jsonl", *rows), map=ROUNDS)
    assert [(event.seq, event.text) for event in talk.events] == [
        (0, "Q0"),
        (1, "A0"),
        (10, "Q5"),
        (11, "A5"),
    ]


def test_each_side_may_have_its_own_numbered_turns(tmp_path: Path) -> None:
    record = {"id": 1, "m1_a": "To Ulm?", "m2_a": "Yes.", "m1_b": "To Ulm?", "m2_b": "No.", "m3_b": "Why?"}
    path = write_lines(tmp_path / "sides.jsonl", record | {"m3_a": None})
    layout = '[input]\nsides = ["a", "b"]\nnumbered = "m"\n[trajectory]\nnative_id = ["id", "side"]\n'
    layout += '[constants]\nrole = ["user", "agent"]\n[event]\ntext = "m[].text"\n'
    talks, wrong = read("mapped", path, map=layout)
    assert not wrong
    assert [outline(talk.events) for talk in talks] == [
        [("user", "message", "To Ulm?"), ("agent", "message", "Yes.")],
        [("user", "message", "To Ulm?"), ("agent", "message", "No."), ("user", "message", "Why?")],
    ]


def test_a_record_without_sides_is_told_and_not_read_twice(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "To Ulm?"}]
    rows = [{"id": 1, "talk_a": talk, "talk_b": talk}, {"id": 2, "talk": talk}, {"id": 3, "talk_a": talk}]
    path = write_lines(tmp_path / "sides.jsonl", *rows)
    layout = (
        '[input]\nsides = ["a", "b"]\n[trajectory]\nnative_id = ["id", "side"]\n[messages]\nat = "talk"\n'
    )
    talks, wrong = read("mapped", path, map=layout)
    assert [talk.native_id for talk in talks] == ["1/a", "1/b"]
    assert [(one.line, one.reason) for one in wrong] == [
        (line, "input.sides: no fields differ only in that they end in a or b") for line in (2, 3)
    ]


CUT = '[event]\nrole = "text[].who"\ntext = "text[].text"\n[roles]\n"*" = "human"\n[turns]\nat = "text"\n'


def test_a_pattern_that_fits_nowhere_is_told(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "talks.jsonl", {"text": "Ada: hi"}, {"text": ["Ada: hi", "Cy: yo"]})
    talks, wrong = read("mapped", path, map=f"{CUT}pattern = '^(?P<who>Ben): '\n")
    assert [len(talk.events) for talk in talks] == [1, 2]
    reason = "text: turns.pattern fits nowhere in it, so that all of it is said by 'environment'"
    assert [(one.line, one.reason) for one in wrong] == [(1, reason), (2, reason)]
    assert read("mapped", path, map=f"{CUT}pattern = '^(?P<who>Ada): '\n")[1] == []


def test_of_several_patterns_one_that_is_not_used_fits_nowhere(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "talks.jsonl", {"text": "Ada: hi"}, {"text": "Ada: hi\nBen: yo"})
    talks, (wrong,) = read("mapped", path, map=f"{CUT}pattern = ['^<(?P<who>\\w+)>', '^(?P<who>\\w+): ']\n")
    assert [[event.text for event in talk.events] for talk in talks] == [["Ada: hi"], ["hi", "yo"]]
    assert wrong.line == 1
    assert "the first one fits nowhere in it, and no other one twice, so that all" in wrong.reason


def test_lines_behind_the_group_text_of_a_turn_are_told(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "talks.jsonl", {"text": "Ada: hi\nthere\n\nBen: yo\n"})
    (talk,), (wrong,) = read("mapped", path, map=f"{CUT}pattern = '^(?P<who>\\w+): (?P<text>.*)$'\n")
    assert [event.text for event in talk.events] == ["hi", "yo"]
    assert wrong.reason.startswith("text: turns.pattern: 'there' stands behind the group `text` of its turn")
    (talk,), () = read("mapped", path, map=f"{CUT}pattern = '^(?P<who>\\w+): '\n")
    assert [event.text for event in talk.events] == ["hi\nthere", "yo"]


def test_of_a_list_of_texts_the_group_text_and_what_follows_are_read(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "talks.jsonl", {"text": ["Ada: hi\nthere", "Ben: yo"]})
    talk = one("mapped", path, map=f"{CUT}pattern = '^(?P<who>\\w+): (?P<text>.*)'\n")
    assert [event.text for event in talk.events] == ["hi\nthere", "yo"]
    talk = one("mapped", path, map=f"{CUT}pattern = '^(?P<who>\\w+): (?P<text>\\w)'\n")
    assert [event.text for event in talk.events] == ["hi\nthere", "yo"]


@pytest.mark.parametrize("lists", [True, False])
def test_the_arm_a_tag_and_an_outcome_may_be_names_of_folders(tmp_path: Path, lists: bool) -> None:
    folder = tmp_path / "helpful" / "passed"
    folder.mkdir(parents=True)
    turns = [{"role": "user", "text": "To Ulm?"}, {"role": "agent", "text": "Yes."}]
    path = write_lines(folder / "s1.jsonl", *([{"log": turns}] if lists else turns))
    inside = "log[]." if lists else ""
    layout = '[trajectory]\ncondition = "$folder2"\ntask = "$file"\n[tags]\nplace = "$folder"\n[outcomes]\n'
    layout += 'success = "$folder"\n[values.success]\npassed = 1\n[event]\n'
    talk = one("mapped", path, map=f'{layout}role = "{inside}role"\ntext = "{inside}text"\n')
    assert (talk.condition, talk.task, talk.tags) == ("helpful", "s1", {"place": "passed"})
    assert [(outcome.name, outcome.value) for outcome in talk.outcomes] == [("success", 1.0)]


@pytest.mark.parametrize(("table", "status"), [("", "failed"), ('"" = "succeeded"\n', "succeeded")])
def test_an_empty_status_is_none_unless_the_table_has_it(tmp_path: Path, table: str, status: str) -> None:
    record = {"log": [{"role": "agent", "do": "run", "how": "", "out": "exit code 1"}]}
    layout = '[event]\nrole = "log[].role"\naction = "log[].do"\nstatus = "log[].how"\nresult = "log[].out"\n'
    talk = one(
        "mapped",
        write_lines(tmp_path / "a.jsonl", record),
        map=f'{layout}[statuses]\nok = "succeeded"\n{table}',
    )
    assert [event.status for event in talk.events] == [status]


def test_an_empty_status_is_any_other_where_the_table_has_a_star(tmp_path: Path) -> None:
    record = {"log": [{"role": "agent", "do": "run", "how": ""}]}
    layout = '[event]\nrole = "log[].role"\naction = "log[].do"\nstatus = "log[].how"\n'
    layout += '[statuses]\nok = "succeeded"\n"*" = "failed"\n'
    talk = one("mapped", write_lines(tmp_path / "a.jsonl", record), map=layout)
    assert [event.status for event in talk.events] == ["failed"]


def test_the_name_of_a_folder_is_no_content_of_a_record(tmp_path: Path) -> None:
    rows = [{"role": "user", "content": "To Ulm?"}, {"note": "lost"}]
    path = write_lines(tmp_path / "a.jsonl", *rows)
    layout = '[trajectory]\nnative_id = "$file"\ncondition = "$folder"\n[messages]\neach = true\n'
    _, wrong = read("mapped", path, map=layout)
    assert [one.line for one in wrong] == [2]
