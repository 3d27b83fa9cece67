"""What charts show is what `metrics` says."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import altair as alt
import pytest
import vl_convert

from coaudit.dashboards import queries
from coaudit.dashboards.drawing import groups
from coaudit.dashboards.views import compare, process
from coaudit.pipeline import codebooks
from coaudit.pipeline.analyze import compare as comparing
from coaudit.pipeline.analyze.counts import CODEBOOKS
from coaudit.pipeline.analyze.metrics import metrics, trajectory_metrics
from coaudit.pipeline.report import Number
from coaudit.pipeline.report.html import interval
from coaudit.pipeline.store import Selection, Store, Workspace
from coaudit.schemas import Action, Event, Outcome, Participant, Trajectory
from tests.pipeline.stores import holding, made, rate, take, verdict
from tests.pipeline.systems.cogym.folders import AGENT, USER, Log

pytestmark = pytest.mark.slow


def test_a_course_over_days_is_what_metrics_says_of_each_day(looked: Path) -> None:
    store = Store(Workspace(looked), read_only=True)
    names = ("error_rate", "initiative_entropy", "satisfaction")
    shown = queries.over_days(store, Selection(), names)
    said = metrics(store, by=("day", "condition"), names=names)
    assert {row.metric for row in said} >= {"error_rate", "initiative_entropy"}
    given = [row for row in said if row.value is not None and row.group and row.group["day"]]
    assert [(row["value"], row["low"], row["trajectories"]) for row in shown] == [
        (row.value, row.low, row.n) for row in given
    ]


def test_a_tag_that_differs_from_session_to_session_leaves_room_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "CHOICES", 40)
    monkeypatch.setattr(queries, "GROUPS", 59)
    runs = [
        Trajectory(
            id=f"t{number:015}",
            native_id=f"t{number}",
            source="/nowhere",
            system="chat",
            task=f"task {number}",
            tags={"run": f"{number:03}", "version": f"v{number % 2}", "a=b": "c", "task": "x"},
            participants=(Participant(name="Bot", kind="agent"),),
            events=(Event(seq=0, actor="Bot", kind="message", text="Hello."),),
        )
        for number in range(60)
    ]
    store = holding(tmp_path / "workspace", runs)
    tags = queries.choices(store)["tags"]
    assert len(tags) == 40 and {"version=v0", "version=v1", "run=000"} <= set(tags)
    left = ["condition", "setting", "agent_model", "system", "version"]
    assert groups.fields(store) == left, "a run, or a task, of its own is no group"
    assert compare.comparable(store, Selection()) == ["version"]


def test_a_group_that_is_called_as_what_has_none_is_none(tmp_path: Path) -> None:
    runs = [
        Trajectory(
            id=f"t{number:015}",
            native_id=f"t{number}",
            source="/nowhere",
            system="chat",
            condition=condition,
            tags={} if condition is None else {"arm": condition},
            participants=(Participant(name="Bot", kind="agent"),),
            events=(Event(seq=0, actor="Bot", kind="message", text="Hello."),),
            outcomes=(Outcome(name="success", value=value),),
        )
        for number, (condition, value) in enumerate([("–", 1), (None, 0), (None, 0), ("a", 1)])
    ]
    store = holding(tmp_path / "workspace", runs)
    for by in ("condition", "arm"):
        said = {
            (row.group or {})[by]: (row.value, row.n) for row in metrics(store, by=(by,), names=["success"])
        }
        assert said == {None: (pytest.approx(1 / 3), 3), "a": (1, 1)}
        assert [row["group"] for row in queries.arms(store, Selection(), by)] == ["a"]


def test_groups_of_one_name_in_two_systems_are_compared_each_within_its_own(tmp_path: Path) -> None:
    """The judge's own share of group a was that of both systems, beside a corrected one of the first."""
    runs = [
        Trajectory(
            id=f"t{number:015}",
            native_id=f"t{number}",
            source="/nowhere",
            system=system,
            condition="ab"[number % 2],
            participants=(Participant(name="Bot", kind="agent"),),
            events=(Event(seq=0, actor="Bot", kind="message", text="Hello."),),
        )
        for number, system in enumerate([*["desk"] * 8, *["shop"] * 4])
    ]
    store = holding(tmp_path / "workspace", runs)
    found = [
        verdict(run.id, None, "failures", "present" if run.system == "shop" else "absent", code="C.1")
        | {"rater": "judge", "rater_kind": "llm"}
        for run in runs
    ]
    assert rate(store, found).imported == len(runs)
    own = compare.raw(store, "condition", Selection(), ["failures"])
    shares = {key[0]: value for key, value in own.items() if key[1:] == ("failures", "C.1", "judge", "a")}
    assert shares == {"desk": (0, 4), "shop": (1, 2)}
    rows = comparing.compare(store, "condition", metrics=["C.1"])
    assert [row["statement"].split(" ")[:2] for row in rows] == [["desk:", "C.1"], ["shop:", "C.1"]]
    table = compare.coded(rows, "condition", own, {("failures", "C.1"): ("Silent start", True)})
    assert table.columns[:2] == ("System", "Code") and table.heads == 4
    assert {line[3] for line in table.rows} == {f"judge, {comparing.JUDGE_ONLY}"}, "as of metrics"
    places = {line[0]: dict(line[4].of) for line in table.rows if isinstance(line[4], Number)}
    assert {name: place["system"] for name, place in places.items()} == {"desk": "desk", "shop": "shop"}
    pair = comparing.compare(store, "system", metrics=["C.1"])
    across = compare.raw(store, "system", Selection(), ["failures"])
    (line,) = compare.coded(pair, "system", across, {("failures", "C.1"): ("Silent start", True)}).rows
    assert [dict(cell.of)["system"] for cell in line[3:5] if isinstance(cell, Number)] == ["desk", "shop"]


def test_a_code_of_utterances_is_compared_beside_the_judges_own_share_and_leads_to_no_list_by_it(
    tmp_path: Path,
) -> None:
    """Own shares were those of trajectories alone: the page said "not rated" before the corrected rate, and
    led to sessions with a finding that no session has."""
    runs = [
        Trajectory(
            id=f"t{number:015}",
            native_id=f"t{number}",
            source="/nowhere",
            system="desk",
            condition="ab"[number % 2],
            participants=(Participant(name="Bot", kind="agent"),),
            events=(Event(seq=0, actor="Bot", kind="message", text="Hello."),),
        )
        for number in range(12)
    ]
    store = holding(tmp_path / "workspace", runs)
    kinds = {"judge": "llm", "ann": "human"}
    said = {"judge": "yyyynnynnnyn", "ann": "yyyynnnnnnyn"}
    lines = [
        verdict(run.id, 0, "initiative", {"y": "yes", "n": "no"}[label], rater=rater, rater_kind=kinds[rater])
        for rater, labels in said.items()
        for run, label in zip(runs, labels, strict=True)
    ]
    assert rate(store, lines).imported == len(lines)
    rows = comparing.compare(store, "condition", metrics=["initiative"])
    own = compare.raw(store, "condition", Selection(), ["initiative"])
    assert own == {
        ("desk", "initiative", "initiative", "judge", arm): (n / 6, 6) for arm, n in (("a", 4), ("b", 2))
    }
    (line,) = compare.coded(rows, "condition", own, compare.names(store)).rows
    cells = [cell for cell in line[3:5] if isinstance(cell, Number)]
    assert [cell.text for cell in cells] == ["67 % → 50 %", "33 % → 33 %"]
    assert dict(cells[0].of) == {"condition": "a", "system": "desk"} and line[1] == "Takes initiative"


def test_differences_of_means_come_after_those_of_shares_and_are_not_drawn() -> None:
    """A mean of labels from 0 to 100 was in front of every share, and one that is small was drawn on the
    shares' axis."""
    row: dict[str, Any] = {
        "system": "desk",
        "question": "effort",
        "rater": "judge",
        "basis": "all",
        "groups": ("a", "b"),
    }
    row |= {"first": 0.4, "second": 0.2, "sizes": (9, 9), "n": 18, "low": 0.1, "high": 0.3, "reason": None}
    row |= {"p_value": 0.2, "p_adjusted": 0.2}
    rows = [row | {"metric": "h (mean)", "effect": 0.9}, row | {"metric": "t", "effect": 0.2}]
    share, mean = compare.coded(rows, "condition", {}, {}).rows
    assert (share[0], mean[0]) == ("t", "h (mean)")
    shapes = [interval(cell) for cell in (share[-2], mean[-2])]
    assert shapes[0] and not shapes[1]


def test_a_chart_has_a_row_for_each_system_that_has_a_group_of_one_name(tmp_path: Path) -> None:
    """The bar of `a` was of both systems, beside a table with a row of each."""
    people = (Participant(name="Ada", kind="human"), Participant(name="Bot", kind="agent"))
    runs = [
        Trajectory(
            id=f"t{number:015}",
            native_id=f"t{number}",
            source="/nowhere",
            system=system,
            condition=condition,
            participants=people,
            events=tuple(
                Event(seq=seq, actor=actor, kind="message", text=f"{seq}")
                for seq, actor in enumerate(("Ada", "Bot", "Ada", "Bot"))
            ),
        )
        for number, (system, condition) in enumerate(
            [("desk", "a"), ("shop", "a"), ("shop", "b"), ("shop", None), ("desk", None)]
        )
    ]
    store = holding(tmp_path / "workspace", runs)
    said = [
        verdict(run.id, seq, "initiative", "yes" if run.system == "shop" or seq == 1 else "no", rater="ann")
        for run in runs
        for seq in (1, 2, 3)
    ]
    assert rate(store, said).imported == len(said)
    titles = groups.titles(queries.arms(store, Selection(), "condition"))
    names = ["desk · a", "shop · a", "b"]
    assert list(titles.values()) == names
    bars = groups.titled(queries.initiative(store, Selection(), "condition"), titles)
    own = {
        (row["group"], row["party"]): (row["initiatives"], row["utterances"])
        for row in groups.gathered(bars, names, ("party",), ("initiatives", "utterances", "trajectories"))
    }
    assert len(own) == len(bars) == 8 and own["–", "agent"] == (3, 4), "of none there is one row"
    assert (own["desk · a", "agent"], own["shop · a", "agent"]) == ((1, 2), (2, 2))
    bins = queries.distribution(store, Selection(), "condition", "initiative_entropy", 0.1, "ann")
    assert {row["group"] for row in groups.titled(bins, titles)} == {*names, "–"}


def test_of_thousands_of_groups_one_is_held_against_the_others_of_its_systems_at_once() -> None:
    arms = [{"system": "a", "group": f"g{number}"} for number in range(20_000)]
    arms += [
        {"system": "b", "group": "g7"},
        {"system": "b", "group": "of b"},
        {"system": "c", "group": "one"},
    ]
    began = time.perf_counter()
    assert len(compare._firsts(arms)) == 20_001, "c has one group alone"
    assert compare._others(arms, "of b") == ["g7"]
    assert compare._others(arms, "g7")[:2] == ["g0", "g1"] and compare._others(arms, "g7")[-1] == "of b"
    assert time.perf_counter() - began < 1


def test_a_histogram_counts_the_trajectories_of_which_metrics_tells(looked: Path) -> None:
    store = Store(Workspace(looked), read_only=True)
    for name, rater in (("human_intervention_rate", None), ("initiative_entropy", "rules")):
        rows = queries.distribution(store, Selection(), "condition", name, 0.1, rater)
        each = list(trajectory_metrics(store, rater=rater))
        defined = [row for row in each if row.metric == name and row.value is not None]
        assert sum(row["trajectories"] for row in rows) == len(defined) > 0


def test_a_game_with_several_readings_of_a_measure_counts_once_and_by_its_own(looked: Path) -> None:
    store = Store(Workspace(looked), read_only=True)
    rows = queries.distribution(store, Selection(), "system", "workload_balance", 0.1)
    each = [
        row for row in trajectory_metrics(store) if row.metric == "workload_balance" and row.value is not None
    ]
    assert len(each) > len({row.trajectory for row in each}), "some have several"
    own = {row.trajectory for row in each if row.scoring is None}
    measured = {row.trajectory for row in trajectory_metrics(store) if row.scoring is None}
    with store.reading() as connection:
        query = "SELECT id FROM trajectories WHERE system = 'coblock'"
        games = {row[0] for row in connection.execute(query).fetchall()}
    assert own <= games <= measured
    assert sum(r["trajectories"] for r in rows if r["group"] == "coblock") == len(own)
    others = {row.trajectory for row in each} - games
    assert sum(r["trajectories"] for r in rows if r["group"] != "coblock") == len(others)
    assert all(row["high"] <= 0.5 for row in rows), "an even split is in the last bin"


def test_confirmations_and_halts_along_the_session_add_up_to_what_metrics_says_of_it(looked: Path) -> None:
    store = Store(Workspace(looked), read_only=True)
    names = {CODEBOOKS[name]: name for name in ("effective_confirmations", "halting_messages")}
    shown: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in queries.moments(store, Selection()):
        share = row["events"] / row["trajectories"] / row["rated"]
        shown[names[row["codebook"]], row["rater"]] += share
    said = metrics(store, names=tuple(names.values()))
    expected = {(row.metric, str(row.rater)): row.value for row in said if row.value is not None}
    assert dict(shown) == pytest.approx(expected)
    assert {row.missing > 0 for row in said} == {True}, "sessions without messages are none of them"


def test_lists_tell_the_setting_and_the_system_apart(looked: Path) -> None:
    store = Store(Workspace(looked), read_only=True)
    rows = [*queries.unfinished(store, Selection()), *queries.alarms(store, Selection())]
    assert {row["system"] for row in rows} <= {"cogym", "rehac", "overcooked", "coblock"}
    assert {row["setting"] for row in rows} <= {"real", "simulated", None}


def test_halts_of_which_none_was_found_are_rated_all_the_same(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    log = Log().say(AGENT, "One").say(USER, "Go on").say(AGENT, "Two").say(USER, "Fine")
    take(store, log.folder(tmp_path / "env_x"))
    asked = verdict("env_x", 5, "halting", "no", rater="silent") | {"error": "no answer"}
    del asked["label"]
    rate(store, [verdict("env_x", event, "halting", "no") for event in (3, 5)] + [asked])
    (row,) = queries.moments(store, Selection())
    assert (row["rater"], row["codebook"], row["events"]) == ("ann", "halting", 0)
    assert (row["trajectories"], row["rated"]) == (1, 1.0)
    assert [one["part"] for one in process.with_quiet_parts([row])] == list(range(1, queries.PARTS + 1))


def test_a_message_that_several_found_is_one_row_with_who_said_so_and_people_detect_nothing(
    tmp_path: Path,
) -> None:
    store = made(tmp_path / "workspace")
    log = Log().say(AGENT, "One").say(USER, "Stop").say(AGENT, "Two").say(USER, "Halt")
    take(store, log.folder(tmp_path / "env_x"))
    said = {"judge": (3, "llm"), "another": (3, "llm"), "ann": (5, "human")}
    rate(
        store,
        [
            verdict("env_x", event, "halting", "yes", rater=rater, rater_kind=kind, rationale=f"by {rater}")
            for rater, (event, kind) in said.items()
        ],
    )
    (row,) = queries.alarms(store, Selection())
    assert row["total"] == 1
    assert (row["event"], row["said_by"], row["rationale"]) == (3, "another, judge", "halting: by another")


def test_a_session_without_a_time_has_no_day(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(
        '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}\n'
    )
    store = made(tmp_path / "workspace")
    take(store, path)
    assert {row.group["day"] for row in metrics(store, by=("day",)) if row.group} == {None}
    assert queries.over_days(store, Selection(), ("events",)) == []


def test_a_time_that_is_no_date_has_no_day_and_stops_no_page(tmp_path: Path) -> None:
    times = {"good": "2026-02-27T23:30:00-05:00", "bad": "2026-02-30T10:00:00", "none": "0000-01-01T00:00:00"}
    chats = [
        {"id": name, "messages": [{"role": "user", "content": name, "created_at": time}]}
        for name, time in times.items()
    ]
    (tmp_path / "chats.jsonl").write_text("".join(f"{json.dumps(chat)}\n" for chat in chats))
    store = made(tmp_path / "workspace")
    take(store, tmp_path / "chats.jsonl")
    with store.reading() as connection:
        ids = dict(connection.execute("SELECT native_id, id FROM trajectories").fetchall())
    answers = [
        verdict(key, None, "failures", "present", code=code.code, rater="judge")
        for key in ids.values()
        for code in codebooks.load("failures").codes
    ]
    rate(store, answers)
    assert {row.group["day"] for row in metrics(store, by=("day",)) if row.group} == {"2026-02-27", None}
    weeks = {row["week"] for row in queries.over_time(store, Selection(), "judge", "failures")}
    assert weeks == {"2026-02-23"}


def test_a_note_is_no_action_of_who_acts_when(tmp_path: Path) -> None:
    events = (
        Event(seq=0, actor="Bot", kind="message", text="I plan."),
        Event(seq=1, actor="Bot", kind="note", text="pickup(egg)"),
        Event(seq=2, actor="Bot", kind="note", text="cook(pot)"),
        Event(seq=3, actor="Bot", kind="action", action=Action(name="pickup")),
        Event(seq=4, actor="Bot", kind="finish"),
    )
    team = (Participant(name="Bot", kind="agent"),)
    run = Trajectory(id="s", native_id="s", source="log", system="lab", participants=team, events=events)
    rows = queries.course(holding(tmp_path / "workspace", [run]), Selection())
    shown: dict[str, int] = defaultdict(int)
    for row in rows:
        shown[row["what"]] += row["events"]
    assert shown == {"message": 1, "note": 2, "action": 2}, "a step is an action or the finish"


def test_a_tenth_of_a_session_without_a_confirmation_is_drawn_as_none() -> None:
    row = {"codebook": "confirmation", "rater": "rules", "part": 3, "events": 7, "trajectories": 20}
    parts = [(one["part"], one["events"]) for one in process.with_quiet_parts([row])]
    assert parts == [(part, 7 if part == 3 else 0) for part in range(1, 11)]
    assert process.with_quiet_parts([]) == []
    assert process._tenths().to_dict()["scale"] == {"domain": list(range(1, 11))}, "nor is one left out"


def _labels(names: list[str], pixels: int) -> set[str]:
    """The names beside a chart of which each is a row."""
    y = alt.Y("name:N", axis=groups.axis(names, pixels))
    chart = alt.Chart(alt.Data(values=[{"name": name} for name in names])).mark_bar().encode(y=y)
    return {*re.findall(r">([^<>]+)</text>", vl_convert.vegalite_to_svg(chart.to_dict()))} - {"name"}


def test_long_names_are_told_apart_beside_a_chart() -> None:
    alike = [f"gpt-4o-2024-11-20/temperature=0.7/system-prompt-v{n}/with-a-planner" for n in (1, 2)]
    assert _labels(["short", *alike], 220) == {"short", *(f"…pt-v{n}/with-a-planner" for n in (1, 2))}
    # One long name that several rows have is no name that begins like another: both of its ends stay.
    for one in ([alike[0]], [alike[0]] * 3):
        assert _labels(["short", *one], 220) == {"short", "gpt-4o-2024-11-2…1/with-a-planner"}
    long = "annotator with a very long name who gave her whole affiliation (University of Somewhere)"
    names = [f"{long} · ann", f"{long} · ben", f"judge-large · {long}", "ann · ben"]
    labels = _labels(names, 360)
    assert {label[-5:] for label in labels} == {"· ann", "· ben", "here)"}
    assert len(labels) == 4 and max(map(len, labels)) <= 55


@pytest.mark.parametrize("pixels, most", [(90, 13), (130, 20), (220, 33), (360, 55)])
def test_names_that_differ_in_the_middle_alone_are_told_apart_beside_a_chart(pixels: int, most: int) -> None:
    """Conditions of two factors, of which the model stands in front, looked alike by pairs."""
    models = ("gpt-4o-2024-11-20", 'claude-3-5-sonnet "20241022"')
    names = [
        f"{model}/temperature=0.7/prompt-{n}/with-a-planner-and-a-memory" for model in models for n in "12"
    ]
    many = [
        f"{system} · {name}, seed={seed} of 8"
        for system in ("chat", "cogym")
        for name in names
        for seed in "12"
    ]
    for own in (names, many):
        labels = _labels([*own, "constructor"], pixels)
        assert "constructor" in labels, "what every object has is no label"
        assert len(labels) == len(own) + 1 and max(map(len, labels)) <= most


def test_a_label_of_names_that_differ_in_more_places_than_it_has_letters_is_no_longer_than_them() -> None:
    names = ["ab" * i + "x" * (90 - 2 * i) for i in range(40)]
    labels = groups._apart({name: name for name in names}, 12)
    assert labels and all(0 < len(label) <= 12 for label in labels.values())
