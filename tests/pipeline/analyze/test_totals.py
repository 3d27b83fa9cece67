"""Outcomes of any name, and who is in a mean: what a group's trajectories add up to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.analyze.metrics import cells, metrics
from coaudit.schemas import Metric
from tests.pipeline.stores import give, made, metric, take, write_lines
from tests.pipeline.systems.cogym.folders import AGENT, Log, performance


def own(name: str, *lines: dict[str, Any], team: str = "Bot") -> list[dict[str, Any]]:
    """A session in coaudit's own JSON Lines whose first participant says one thing."""
    who = [{"name": one, "kind": "agent"} for one in team.split()]
    said = {"type": "event", "trajectory": name, "actor": who[0]["name"], "kind": "message", "text": "hello"}
    return [
        {"type": "trajectory", "native_id": name, "participants": who},
        said,
        *({"trajectory": name, **line} for line in lines),
    ]


def outcome(name: str, value: float | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "outcome", "name": name, **({} if value is None else {"value": value}), **more}


def test_an_outcome_of_any_name_is_a_metric(tmp_path: Path) -> None:
    lines = [
        *own("s0", outcome("helpful", 2), outcome("escalated", 1), outcome("answer", text="17")),
        *own("s1", outcome("helpful", 5), outcome("escalated", 0)),
        *own("s2", outcome("helpful", reason="the form was lost"), outcome("escalated", 0)),
        *own("s3", outcome("escalated", 0)),
    ]
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    give(store, [{"trajectory": "s3", "name": "helpful", "value": 11}])
    found = [row for row in metrics(store) if row.metric.startswith("outcome:")]
    assert [(row.metric, row.value, row.n, row.missing) for row in found] == [
        ("outcome:escalated", 0.25, 4, 0),
        ("outcome:helpful", 6, 3, 1),
    ]
    # All values are 0 or 1: a share of 4. Agresti and Coull's interval around Wilson's centre, by hand.
    z = 1.959964
    centre = (1 + z * z / 2) / (4 + z * z)
    half = z * (centre * (1 - centre) / (4 + z * z)) ** 0.5
    assert (found[0].low, found[0].high) == pytest.approx((centre - half, centre + half), abs=1e-5)


@pytest.mark.long
def test_of_reasons_that_are_as_frequent_the_first_is_named_in_whatever_order_logs_came(
    tmp_path: Path,
) -> None:
    reasons = ["unreadable", "lost", "unreadable", "late", "lost", "late"]
    said = []
    for turn in range(len(reasons)):
        order = reasons[turn:] + reasons[:turn]
        lines = [own(f"s{n}", outcome("helpful", reason=reason)) for n, reason in enumerate(order)]
        store = made(tmp_path / str(turn))
        take(store, write_lines(tmp_path / f"{turn}.jsonl", [line for one in lines for line in one]))
        said.append(metric(metrics(store), "outcome:helpful").reason)
    assert said == ["late"] * len(reasons)


def test_a_group_called_none_stands_before_what_is_in_no_group(tmp_path: Path) -> None:
    groups = [{"wave": "a"}, {"wave": "None"}, {}]
    lines = []
    for number, tags in enumerate(groups):
        head, *events = own(f"s{number}", *([] if number else [outcome("helpful", 3)]))
        lines += [{**head, "tags": tags}, *events]
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    rows = [row for row in metrics(store, by=["wave"]) if row.metric == "outcome:helpful"]
    assert [(row.group or {})["wave"] for row in rows] == ["None", None, "a"]


def test_the_reason_is_that_of_most_sessions_not_of_most_tasks(tmp_path: Path) -> None:
    """Three runs of one task lost their form, one run of each of two others came late."""
    runs = [("one", "lost"), ("one", "lost"), ("one", "lost"), ("two", "late"), ("three", "late")]
    lines = []
    for number, (instance, reason) in enumerate(runs):
        head, *events = own(f"s{number}", outcome("helpful", reason=reason))
        lines += [{**head, "task": "travel", "instance": instance}, *events]
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    row = metric(metrics(store), "outcome:helpful")
    assert (row.missing, row.reason) == (5, "lost")


def test_sessions_without_an_outcome_that_others_of_their_system_have_are_missing(tmp_path: Path) -> None:
    lines = [
        *own("s0", outcome("success", 1), outcome("helpful", 2)),
        *own("s1", outcome("success", 0)),
        *own("s2"),
        {**own("o0")[0], "system": "other"},
    ]
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    found = metrics(store)
    assert [
        (metric(found, name).n, metric(found, name).missing) for name in ("success_rate", "outcome:helpful")
    ] == [
        (2, 1),
        (1, 2),
    ]


@pytest.mark.long
def test_what_a_system_logs_itself_is_no_outcome_of_another_name(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    log = Log()
    log.write(AGENT, "Plan")
    log.finish()
    take(store, log.folder(tmp_path / "logs" / "env_0", performance("Plan", performance_rating=0.5)))
    assert metric(metrics(store), "task_performance").value == 0.5
    assert not [row for row in metrics(store) if row.metric.startswith("outcome:")]
    give(store, [{"trajectory": "env_0", "name": "helpful", "value": 3}])
    assert metric(metrics(store), "outcome:helpful").value == 3


def test_of_several_outcomes_of_a_name_in_one_log_the_last_holds(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    said = [outcome("success", 0), outcome("helpful", 1), outcome("success", 1), outcome("helpful", 4)]
    take(store, write_lines(tmp_path / "log.jsonl", own("s0", *said)))
    found = metrics(store)
    assert (metric(found, "success_rate").value, metric(found, "outcome:helpful").value) == (1, 4)


@pytest.mark.long
def test_a_preference_over_one_of_two_others_is_half_a_win(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", own("s0")))
    give(
        store,
        [
            {"trajectory": "s0", "name": "preferred", "value": won, "baseline": against}
            for against, won in (("solo", 1), ("human", 0))
        ],
    )
    assert metric(metrics(store), "win_rate").value == 0.5


def test_a_mean_over_some_sessions_says_that_the_others_do_not_name_the_participant(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    lines = [*own("s0", team="Bot Cy"), *own("s1"), *own("s2")]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    found = metrics(store)
    assert metric(found, "messages", participant="Bot").note is None
    row = metric(found, "messages", participant="Cy")
    assert (row.value, row.n) == (0, 1)
    assert row.note == "in 1 of 3 sessions: Cy is not named in the others"


def test_a_number_that_a_table_has_as_text_is_an_outcomes_number(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    log = tmp_path / "log.csv"
    log.write_text(
        "id,role,text,score,solved,answer\na,user,hi,3.5,true,x\nb,user,hi,4.5,False,nan\nc,user,hi,,,y\n"
    )
    mapping = (
        '[trajectory]\nnative_id = "id"\n[outcomes]\nscore = "score"\nsolved = "solved"\nanswer = "answer"\n'
        '[event]\nrole = "role"\ntext = "text"\n'
    )
    take(store, log, map=mapping, system="mapped")
    found = {row.metric: (row.value, row.n) for row in metrics(store) if row.metric.startswith("outcome:")}
    assert found == {"outcome:score": (4, 2), "outcome:solved": (0.5, 2)}


def test_no_group_is_not_written_like_a_group_of_that_name() -> None:
    rows = [Metric(metric="steps", group={"condition": name}, value=1, n=1) for name in ("None", None)]
    assert [cells(row, str)[1] for row in rows] == ["None", "no condition"]
