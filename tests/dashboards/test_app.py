"""Every page draws, on data and without any, and says what to run where there is nothing."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import threading
from collections.abc import Iterable
from html import escape, unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from coaudit.annotation.statistics.confusion import confusion
from coaudit.dashboards import cache, prefetch, queries, sidebar, triage
from coaudit.dashboards.drawing import figures, groups, lists, markup, scripts
from coaudit.dashboards.drawing.figures import records, to_csv
from coaudit.dashboards.drawing.palette import REST, colour, columns
from coaudit.dashboards.views import agreement, efficiency, failures, process, trajectory
from coaudit.dashboards.views import compare as view
from coaudit.pipeline.advise import advisor
from coaudit.pipeline.analyze import compare, metrics
from coaudit.pipeline.report import build, interventions
from coaudit.pipeline.report.answers import UNFIT
from coaudit.pipeline.report.tables import Number, Table, of_metric
from coaudit.pipeline.report.transcript.pins import disagreements
from coaudit.pipeline.store import Selection, Store, Workspace
from coaudit.pipeline.store.connection import busy_error
from coaudit.pipeline.store.queries.selection import COLUMNS, NONE
from coaudit.schemas import Agreement, Metric
from tests.conftest import ROOT
from tests.judges.teams import team
from tests.pipeline.advise import games
from tests.pipeline.analyze.test_compare import PEOPLE, studied
from tests.pipeline.stores import holding, rate, verdict

PAGES = (
    "overview",
    "process",
    "failures",
    "trajectory",
    "agreement",
    "efficiency",
    "tables",
    "compare",
    "cost",
)


def _page(name: str) -> None:
    import importlib

    from coaudit.dashboards import sidebar

    importlib.import_module(f"coaudit.dashboards.views.{name}").show(sidebar.chosen())


def _run(name: str, **parameters: str | list[str]) -> AppTest:
    test = AppTest.from_function(_page, args=(name,), default_timeout=60)
    for key, value in parameters.items():
        test.query_params[key] = value
    return test.run()


def _html(test: AppTest) -> str:
    return "".join(element.proto.body for element in test.get("html"))


def _read(page: str) -> str:
    """What a reader of a page reads: its text without its tags."""
    return unescape(re.sub(r"<[^>]+>", "", page))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_draws_without_an_error(here: Path, name: str) -> None:
    test = _run(name)
    assert not test.exception
    assert len(test.title) == 1


@pytest.mark.slow
def test_where_people_helped_leads_to_their_steps_and_follows_the_filters(here: Path) -> None:
    store = Store(Workspace(here), read_only=True)
    documents = interventions.interventions(store, 0.08, 1)
    step = next(state["human_steps"][0] for document in documents for state in document["helped"])
    address = f"trajectory?trajectory={step['trajectory']}&amp;event={step['event']}"
    assert address in _html(_run("efficiency"))
    assert address not in _html(_run("efficiency", system=["cogym"]))


@pytest.mark.slow
def test_a_page_that_was_read_ahead_reads_nothing_more(
    here: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache, "FRESH", 1000.0)
    monkeypatch.setattr(prefetch, "SLOW", 0.0)
    st.cache_data.clear()
    path = cache.place()
    _run("trajectory")
    before = cache.took(path)
    prefetch.read([efficiency.show])
    for thread in threading.enumerate():
        if thread.name == prefetch.NAME:
            thread.join()
    read = cache.took(path)
    assert read > before
    _run("efficiency")
    assert cache.took(path) == read
    prefetch.read([efficiency.show])
    assert not any(thread.name == prefetch.NAME for thread in threading.enumerate()), "nothing has changed"
    assert not [record for record in caplog.records if record.threadName == prefetch.NAME]


def test_who_reads_one_page_after_the_other_sees_what_was_written_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, looks = 0.0, 0

    def word(_: str) -> str:
        nonlocal looks
        looks += 1
        return str(looks)

    monkeypatch.setattr(cache, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: now))
    monkeypatch.setattr(cache, "_word", word)
    monkeypatch.setattr(cache, "_looks", {})
    for _ in range(10):  # pages of 5 s each, one every 20 s
        cache.state("here")
        now += 5
        cache._record_reading("here", 5.0)
        now += 15
    assert looks == 3, "a minute and what reading took after the last look there is another"
    for _ in range(36):  # two people, each reading 6 of 10 s, at once
        cache.state("here")
        now += 6
        cache._record_reading("here", 6.0)
        cache._record_reading("here", 6.0)
        now += 4
    assert looks == 5, "what is read at once takes no longer: it was never looked again"


def test_a_database_that_is_restored_is_shown_and_not_what_lay_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, database = 0.0, "ours"

    def content(_: Any, question: int) -> str:
        return f"{question}: {database}"

    monkeypatch.setattr(cache, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: now))
    monkeypatch.setattr(cache, "_word", lambda _: f"time and size of {database}")
    monkeypatch.setattr(cache, "_looks", {})
    monkeypatch.setattr(cache, "place", lambda: "here")
    monkeypatch.setattr(cache, "store", lambda _: None)
    assert cache.ask(content, 1) == "1: ours"
    database = "theirs"
    assert cache.ask(content, 1) == "1: ours", "the store is not looked at again for some seconds"
    assert cache.ask(content, 2) == "2: theirs"
    now += 100
    assert cache.ask(content, 1) == "1: theirs"
    database = "ours"
    now += 100
    assert cache.ask(content, 2) == "2: ours"


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_an_empty_workspace_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    (folder / "sources.jsonl").touch()
    Store(Workspace(folder)).sync()
    monkeypatch.setenv("COAUDIT_WORKSPACE", str(folder))
    test = _run(name)
    assert not test.exception
    assert any("`coaudit" in info.value for info in test.info)


@pytest.mark.slow
def test_the_failures_page_shows_other_codebooks_of_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had nothing to show of a public set with labels of its own."""
    store = holding(tmp_path / "workspace", [team(("human", "Hi"), ("agent", "Ho"))])
    assert rate(store, [verdict("t1", None, "mast", "present", code="1.1", rater="ann")]).imported == 1
    monkeypatch.setenv("COAUDIT_WORKSPACE", str(tmp_path / "workspace"))
    test = _run("failures")
    assert any("rated with failures: run `coaudit judge --cod" in caption.value for caption in test.caption)
    assert not test.exception and test.selectbox(key="codebook").options == ["mast"]
    assert "Disobey" in _html(test) and "100" in _html(test)


@pytest.mark.slow
def test_the_failures_page_shows_a_codebook_with_any_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A code named like its category broke the page; each code without a dot was bold as a category is; a
    picture in a title was fetched."""
    store = holding(tmp_path / "workspace", [team(("human", "Hi"), ("agent", "Ho"))])
    codes = ["late", "rude", *(f"c{number}" for number in range(10))]
    part = ', category = "late"'
    own = [
        f'{{ code = "{code}", name = "N", definition = "d"{part if code in codes[:2] else ""} }}'
        for code in codes
    ]
    store.workspace.codebooks.mkdir(parents=True, exist_ok=True)
    (store.workspace.codebooks / "mine.toml").write_text(
        'name = "mine"\ntitle = "![i](http://x.test/i.png)"\nunit = "trajectory"\nlabels = ["yes", "no"]\n'
        'question = "?"\ncategories = [{ category = "late", name = "L", definition = "d" }]\n'
        f"codes = [{', '.join(own)}]\n"
    )
    store.sync()
    ratings = [verdict("t1", None, "mine", "yes", code=code, rater="ann") for code in codes]
    assert rate(store, ratings).imported == len(codes)
    monkeypatch.setenv("COAUDIT_WORKSPACE", str(tmp_path / "workspace"))
    test = _run("failures")
    assert not test.exception and _html(test).count('class="total"') == 1
    assert test.header[0].value.startswith(r"\!\[i\]")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_does_without_a_damaged_codebook(
    tmp_path: Path, looked: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(looked, folder)
    (folder / "codebooks").mkdir(exist_ok=True)
    (folder / "codebooks" / "mine.toml").write_text("name = 'half")
    Store(Workspace(folder)).sync()
    monkeypatch.setenv("COAUDIT_WORKSPACE", str(folder))
    assert not _run(name).exception


@pytest.mark.slow
def test_the_overview_answers_three_questions_and_says_what_is_left(here: Path) -> None:
    test = _run("overview")
    heads = [head.value for head in test.header]
    assert heads == [
        "How did the team work?",
        "Where did it fail?",
        "How far can the judge be trusted?",
        "What is left to do",
    ]
    assert _html(test).count('class="interval"') >= 5
    assert "coaudit judge --codebook failures --rater judge-large --model" in _html(test)


@pytest.mark.slow
def test_sessions_of_one_person_can_count_as_one_observation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = studied(tmp_path, PEOPLE, [5, 4, 3, 4, 3, 2, 4, 2])
    monkeypatch.setenv("COAUDIT_WORKSPACE", str(store.workspace.path))
    test = _run("compare", a="a", b="b")
    (toggle,) = (one for one in test.toggle if "one person" in one.label)
    assert "8 took part in several, such as Ada" in toggle.label
    pages = [_read(_html(test)), _read(_html(toggle.set_value(True).run()))]
    for page, cluster in zip(pages, (None, "person"), strict=True):
        rows = compare.compare(store, "condition", cluster=cluster)
        (row,) = (row for row in rows if row["metric"] == "outcome:score")
        assert f"{row['high']:.2f}, n = 24{row['p_adjusted']:.3f}" in page
    assert "People who were in both are paired." in pages[1]


@pytest.mark.slow
def test_a_against_b_has_all_codes_and_metrics_and_leads_to_the_sessions(here: Path) -> None:
    store = Store(Workspace(here), read_only=True)
    pair = ("situational_planning", "collaborative")
    test = _run("compare", a=pair[0], b=pair[1])
    rows = compare.compare(store, "condition", pair=pair)
    assert {question["groups"][0] for question in rows} == {pair[0]}
    coded = [row for row in rows if row["question"] != "metrics" and row["effect"] is not None]
    own = view.raw(store, "condition", Selection(), sorted({one["question"] for one in coded}))
    there = [
        one
        for one in coded
        if own.get(("cogym", one["question"], one["metric"], one["rater"], pair[0]), (None,))[0] is not None
    ]
    row = max(there, key=lambda one: abs(one["effect"]))
    text = _html(test)
    assert f"A: {pair[0]}" in text and "Initiative entropy (H_init)" in text
    found = {"code": row["metric"], "codebook": row["question"], "found_by": row["rater"]}
    place = urlencode({"condition": pair[0], "system": "cogym", **found})
    assert f"trajectory?{escape(place)}" in text
    assert "no test: too few" in text
    corrected = [one for one in coded if one["basis"].startswith("corrected")]
    assert corrected and " → " in text, "the judge's own share stands before the corrected one"


def test_a_compared_rate_is_a_percentage_and_leads_to_sessions_by_what_is_behind_it() -> None:
    row = {
        "by": "condition",
        "system": None,
        "groups": ["a", "b"],
        "rater": None,
        "reason": None,
        "effect": 0.5,
        "n": 8,
        "sizes": (5, 3),
        "definition": None,
    }
    row |= {"first": 0.75, "second": 0.25, "low": None, "high": None, "p_value": 0.1, "p_adjusted": 0.1}
    row["basis"] = compare.MEASURED
    names = ("success_rate", "outcome:a/b", "collab_score/automatic", "initiative_entropy")
    table = view.measured([row | {"metric": name} for name in names], "condition")
    shown = {str(line[0]): line[2] for line in table.rows}
    places = {name: dict(cell.of)["sort"] for name, cell in shown.items() if isinstance(cell, Number)}
    assert places == {
        "Success rate": "success",
        "Outcome: a/b": "outcome:a/b",
        "Collab score, automatic rating": "collab_score",
        "Initiative entropy (H_init)": "initiative_entropy",
    }
    assert [cell.n for cell in table.rows[0][2:4] if isinstance(cell, Number)] == [5, 3], "each has its own"
    percents = {name: cell.percent for name, cell in shown.items() if isinstance(cell, Number)}
    assert {name for name, percent in percents.items() if percent} == {"Success rate"}, "as on other pages"


def test_a_compared_metric_of_who_answered_some_units_alone_says_so() -> None:
    row: dict[str, Any] = {
        "metric": "halting_messages",
        "by": "condition",
        "system": None,
        "groups": ["a", "b"],
        "n": 60,
        "sizes": (30, 30),
        "definition": None,
    }
    row |= {"first": 1.2, "second": 1.0, "effect": 0.2, "low": -0.7, "high": 1.1, "reason": None}
    row |= {"p_value": 0.7, "p_adjusted": None}
    some = row | {"rater": "ann", "basis": "estimated from the units rated"}
    every = row | {"rater": "rules", "basis": compare.MEASURED}
    table = view.measured([some, every, every | {"rater": None}], "condition")
    assert [line[1] for line in table.rows] == ["ann, estimated from the units rated", "rules", ""]


def test_of_a_judges_own_share_that_people_corrected_no_reason_is_said() -> None:
    row: dict[str, Any] = {
        "metric": "C.1",
        "by": "condition",
        "system": None,
        "groups": ["a", "b"],
        "rater": "judge",
        "n": 8,
        "sizes": (4, 4),
    }
    row |= {"first": 0.25, "second": 0.5, "low": None, "high": None, "p_value": 0.1, "p_adjusted": 0.1}
    row |= {"question": "failures", "basis": "corrected by people's labels", "effect": -0.25, "reason": None}
    row["system"] = "desk"
    own = {("desk", "failures", "C.1", "judge", "a"): (0.5, 3)}
    cells = view.coded([row], "condition", own, {}).rows[0][3:5]
    assert [(cell.value, cell.reason) for cell in cells if isinstance(cell, Number)] == [
        (0.5, None),
        (None, "not rated"),
    ]


def test_a_share_that_is_there_does_not_say_why_there_is_no_test() -> None:
    row: dict[str, Any] = {
        "by": "condition",
        "system": None,
        "groups": ["a", "b"],
        "n": 4,
        "sizes": (2, 2),
        "definition": None,
        "basis": "rated",
        "rater": "judge",
    }
    row |= {"first": 1.0, "second": None, "effect": None, "low": None, "high": None}
    row |= {"p_value": None, "p_adjusted": None, "reason": "nothing to test: no pair differs"}
    (own,) = view.coded([{**row, "question": "failures", "metric": "C.1"}], "condition", {}, {}).rows
    (line,) = view.measured([{**row, "question": "metrics", "metric": "success_rate"}], "condition").rows
    for cells in (own[3:5], line[2:4]):
        reasons = [cell.reason for cell in cells if isinstance(cell, Number)]
        assert reasons == [None, "nothing to test: no pair differs"]


def test_a_compared_metric_leads_to_a_list_that_has_it_by_the_rater_it_is_of() -> None:
    row: dict[str, Any] = {"by": "condition", "system": None, "groups": ["a", "b"], "reason": None}
    row |= {"effect": 0.5, "n": 8}
    row |= {"first": 0.75, "second": 0.25, "low": None, "high": None, "p_value": 0.1, "p_adjusted": 0.1}
    row |= {"sizes": (5, 3), "definition": None}
    row["basis"] = compare.MEASURED
    asked = [("halting_messages", "ann"), ("messages of human", None), ("outcome:use of human", None)]
    asked += [("tes of agent", None)]
    rows = [row | {"metric": name, "rater": rater} for name, rater in asked]
    rows.append(row | {"metric": "reward", "rater": None, "definition": "λ = 0.08"})
    cells = {str(line[0]): line[2] for line in view.measured(rows, "condition").rows}
    places = {name: dict(cell.of) for name, cell in cells.items() if isinstance(cell, Number)}
    own = {"condition": "a"}
    assert places == {
        "Halting messages (CA−)": own | {"sort": "halting_messages", "found_by": "ann"},
        "Messages of human": own,
        "Outcome: use of human": own | {"sort": "outcome:use of human"},
        "Trajectory efficiency (TES) of agent": own,
        "Reward R = T − λC, λ = 0.08": own,
    }, "a session has no one number of its people, and no list knows λ"


def test_a_mean_on_a_scale_is_no_percentage_and_codes_of_two_codebooks_keep_their_names() -> None:
    row = {
        "by": "condition",
        "system": None,
        "groups": ["a", "b"],
        "rater": "judge",
        "reason": None,
        "effect": 1.5,
        "n": 8,
        "sizes": (5, 3),
    }
    row |= {"first": 3.5, "second": 2.0, "low": -1.2, "high": 3.1, "p_value": 0.1, "p_adjusted": 0.1}
    asked = [("failures", "C.1"), ("mine", "C.1"), ("quality", "overall (mean)"), ("kinds", "tone: rude")]
    names = {
        ("failures", "C.1"): ("Silent start", True),
        ("mine", "C.1"): ("My own", True),
        ("quality", "overall"): ("Overall quality", True),
        ("kinds", "tone"): ("Tone", True),
    }
    rows = [row | {"question": book, "metric": metric, "basis": "judge only"} for book, metric in asked]
    lines = [view.coded([one], "condition", {}, names).rows[0] for one in rows]
    assert [line[1] for line in lines] == ["Silent start", "My own", "Overall quality", "Tone"]
    cells = [(line[3], line[5]) for line in lines]
    assert [cell.n for cell, _ in cells if isinstance(cell, Number)] == [5, 5, 5, 5]
    shown = [[cell.text for cell in pair if isinstance(cell, Number)] for pair in cells]
    assert shown[2:] == [["3.50", "+1.50"], ["350 %", "+150 %"]]
    assert [dict(cell.of).get("code") for cell, _ in cells if isinstance(cell, Number)] == [
        *("C.1", "C.1", None, None)
    ], "a mean, or a label of several, is of all sessions"


def test_a_balance_of_sessions_without_a_task_has_the_colour_that_the_legend_says() -> None:
    group = {"system": "chat", "condition": None, "task": None}
    row = Metric(metric="workload_balance", group=group, scoring="actions", value=0.2, n=4)
    (line,) = efficiency._wide([row], "workload_balance")
    assert (line["condition"], line["task"]) == ("–", "–")


@pytest.mark.slow
def test_a_difference_leads_to_the_sessions_of_both_and_two_of_one_instance_beside_each_other(
    here: Path,
) -> None:
    pair = ("collaborative", "situational_planning")
    text = _html(_run("compare", a=pair[0], b=pair[1]))
    found = {"code": "C.2", "codebook": "failures", "found_by": "judge-large"}
    place = urlencode({"by": "condition", "a": pair[0], "b": pair[1], "system": "cogym", **found})
    assert f"compare?{escape(place)}" in text
    view = _run("compare", a=pair[0], b=pair[1], code="C.2", found_by="judge-large")
    assert not view.exception
    text = _html(view)
    store = Store(Workspace(here), read_only=True)
    present = triage.Present("C.2", "failures", "judge-large")
    for group in pair:
        rows, _ = triage.listed(store, Selection(condition=(group,)), present=present)
        assert all(escape(lists.short(row["native_id"])) in text for row in rows[:8]) and rows
    assert text.count('class="ca-beside"') == 1 and "Lined up by step" in text
    assert text.count('data-side="left"') == text.count('data-side="right"') > 1
    assert text.count('id="left-e0"') == text.count('id="right-e0"') == 1, "no two events share an anchor"
    first, other = (triage.listed(store, Selection(condition=(group,)))[0][0]["id"] for group in pair)
    chosen = _html(_run("compare", a=pair[0], b=pair[1], left=other, right=first))
    assert chosen.index(f"trajectory={other}") < chosen.index(f"trajectory={first}")
    assert escape(urlencode({"left": other, "right": first})) in chosen, "the address is a permalink"
    timed = _html(_run("compare", a=pair[0], b=pair[1], left=other, right=first, by_time="true"))
    assert "Lined up by time since" in timed and timed.count('class="pair"') >= chosen.count('class="pair"')


@pytest.mark.slow
def test_process_has_a_row_a_group_with_the_numbers_of_metrics_and_a_search(here: Path) -> None:
    store = Store(Workspace(here), read_only=True)
    rows = metrics.metrics(store, by=("system", "condition"), names=("human_intervention_rate",))
    (row,) = [row for row in rows if row.group and row.group["condition"] == "situational_planning"]
    text = _html(_run("process"))
    assert of_metric(row).note in _read(text) and "strategyqa_tree" in text
    _, shown = build.collaboration(store)
    own = metrics.metrics(store, rater=shown[0], names=("initiative_entropy",))
    share = f"Initiative entropy (H_init) {100 * (own[0].answered or 0):.0f} %"
    assert set(shown) == {shown[0]} and f"Ratings by {shown[0]}; " in text and share in text
    some = _html(_run("process", groups="situational"))
    assert of_metric(row).note in _read(some) and "strategyqa_tree" not in some


@pytest.mark.slow
def test_tags_are_groups_on_process_and_failures(thirty: Path) -> None:
    for name in ("process", "failures"):
        text = _html(_run(name, by="version"))
        assert escape(urlencode({"tags": "version=v1"})) in text, name
        assert "version=v2" not in _html(_run(name, by="version", groups="v1")) or name == "failures"


@pytest.mark.slow
def test_of_many_groups_the_largest_are_shown_as_rows_and_words_find_the_others(thirty: Path) -> None:
    for name in ("process", "failures"):
        first, found = _html(_run(name)), _html(_run(name, groups="arm_29"))
        assert "arm_00" in first and "arm_29" not in first, name
        assert "arm_29" in found and "arm_00" not in found, name
        assert "arm_29" in _html(_run(name, every="true")), name
    heat = _html(_run("failures"))
    assert ">All</td>" in heat and re.search(
        r'<td class="tint"[^>]* title="C.1 Silent start, All: \d+ % \(', heat
    )


@pytest.mark.slow
def test_a_condition_has_one_colour_whatever_is_filtered(thirty: Path) -> None:
    st.cache_data.clear()
    colours = groups.colours()
    assert len(colours) == 31 and len(set(colours.values())) == 8
    assert colours["–"] == REST
    scale = colour("condition", "Condition", colours).to_dict()
    assert dict(zip(scale["scale"]["domain"], scale["scale"]["range"], strict=True)) == colours
    assert len(scale["legend"]["values"]) == 7, "a legend has those with a colour of their own"
    drawn = [{"condition": name} for name in list(colours)[5:12]]
    legend = colour("condition", "Condition", colours, drawn).to_dict()["legend"]
    assert legend["values"] == list(colours)[5:8] and "'others'" in legend["labelExpr"], (
        "one for the grey ones"
    )


def test_groups_that_are_not_shown_are_one_row_with_their_counts_added_up() -> None:
    rows = [
        {"group": group, "party": party, "n": n}
        for group, party, n in (("a", "x", 1), ("b", "x", 2), ("c", "x", 3), ("c", "y", 4))
    ]
    rows.append({"group": NONE, "party": "x", "n": 7})
    assert groups.gathered(rows, ["a"], ["party"], ["n"]) == [
        {"group": "a", "party": "x", "n": 1},
        {"group": NONE, "party": "x", "n": 7},
        {"group": groups.OTHERS, "party": "x", "n": 5},
        {"group": groups.OTHERS, "party": "y", "n": 4},
    ]
    rows += [{"group": groups.OTHERS, "party": "x", "n": 9}]
    own = groups.gathered(rows, ["a", groups.OTHERS], ["party"], ["n"])
    assert {row["group"]: row["n"] for row in own if row["party"] == "x"} == {
        "a": 1,
        NONE: 7,
        groups.OTHERS: 9,
        f"{groups.OTHERS} (2)": 5,
    }, "a group that is called as all others are is not among them"
    assert groups.order(["a", groups.OTHERS], own) == ["a", groups.OTHERS, NONE, f"{groups.OTHERS} (2)"]


@pytest.mark.slow
def test_a_filter_in_the_address_that_no_choice_has_stays_as_it_is(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are more values than are offered: one written out would be another value."""

    def page() -> None:
        import streamlit as st

        from coaudit.dashboards import sidebar

        st.session_state["condition of all"] = sidebar.chosen().condition

    monkeypatch.setattr(queries, "choices", lambda _: {"condition": ["arm"]})
    st.cache_data.clear()
    test = AppTest.from_function(page, default_timeout=60)
    test.query_params["condition"] = ["arm", "arm \u202eenob"]
    said = test.run().session_state["condition of all"]
    st.cache_data.clear()
    assert said == ("arm", "arm \u202eenob") and test.query_params["condition"] == [*said]


@pytest.mark.slow
def test_a_tag_that_is_called_setting_and_condition_is_a_choice_of_its_own(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "fields", lambda _: ["condition", failures.BOTH])
    st.cache_data.clear()
    box = _run("failures").selectbox(key="by")
    st.cache_data.clear()
    assert box.options == ["condition", f"{failures.BOTH} (2)", failures.BOTH]


@pytest.mark.slow
def test_a_filter_in_the_address_holds_for_the_page(here: Path) -> None:
    everything = _html(_run("tables"))
    some = _html(_run("tables", condition=["autonomous"]))
    assert "situational_planning" in everything
    assert "situational_planning" not in some


@pytest.mark.slow
def test_filters_that_leave_no_session_are_told_on_a_page_that_says_what_to_run(here: Path) -> None:
    test = AppTest.from_file(str(ROOT / "dashboards" / "app.py"), default_timeout=60)
    test.query_params["condition"] = "gone"
    assert [one.value for one in test.run().warning] == [UNFIT]


@pytest.mark.slow
def test_an_event_that_a_session_does_not_have_is_said(here: Path) -> None:
    test = _run("trajectory", trajectory="env_tabular_analysis_8", event="999")
    assert "This session has no event 999." in [info.value for info in test.info]
    assert "ca-timeline" in _html(test)


@pytest.mark.slow
@pytest.mark.parametrize("event", ["abc", "-1", "1.5", "\u0663", "9" * 30])
def test_an_event_that_is_no_number_is_said_and_none_is_opened(here: Path, event: str) -> None:
    test = _run("trajectory", trajectory="env_tabular_analysis_8", event=event)
    assert [text.value for text in test.text if text.value.startswith(f"event={event[:20]}")]
    assert not [one.label for one in test.expander if one.label.startswith("Event 0")]


@pytest.mark.slow
def test_a_link_that_sorts_by_a_metric_keeps_it_and_one_that_no_session_has_is_told(here: Path) -> None:
    test = _run("trajectory", sort="initiative_entropy")
    assert "Initiative entropy (H_init)" in test.query_params["sort"]
    heads = re.findall(r'<th scope="col" class="head">([^<]*)</th>', _html(test))
    assert heads[:2] == ["Trajectory", "Initiative entropy (H_init)"]
    test.text_input(key="search").set_value("env").run()
    assert test.selectbox(key="sort").value == "initiative_entropy", "a search sorts as before"
    assert _run("trajectory", sort="nonsense").selectbox(key="sort").value == "most findings"


@pytest.mark.slow
def test_a_page_beyond_the_last_is_the_last(here: Path) -> None:
    assert _html(_run("trajectory", first="5000")).count("<tr>") > 1
    assert "ca-timeline" in _html(_run("trajectory", trajectory="env_tabular_analysis_8", first="5000"))


@pytest.mark.slow
def test_who_reads_while_another_process_writes_is_told_what_to_do(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(*_: object) -> None:
        raise busy_error("here")

    monkeypatch.setattr(queries, "choices", held)
    st.cache_data.clear()
    test = AppTest.from_file(str(ROOT / "dashboards" / "app.py"), default_timeout=60).run()
    st.cache_data.clear()
    assert "Reload the page" in test.warning[0].value and not test.error
    assert "`" not in test.text[-1].value, "nothing of Python"


@pytest.mark.slow
def test_what_an_address_asks_for_in_vain_is_said_and_never_drawn_as_markdown(here: Path) -> None:
    for day, said in {
        "[x](http://evil.example)`": ["`since=[x](http://evil.example)`"],
        "2026-01-01": [],
    }.items():
        test = AppTest.from_file(str(ROOT / "dashboards" / "app.py"), default_timeout=60)
        test.query_params["since"] = day
        assert [one.value.partition(": ")[2].rstrip(".") for one in test.run().warning] == said
        assert not test.run().warning


@pytest.mark.slow
def test_a_value_that_no_choice_has_is_a_filter_all_the_same(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any("No trajectory matches" in info.value for info in _run("trajectory", task=["gone"]).info)
    assert any("No trajectory matches" in info.value for info in _run("trajectory", tags=["a=b"]).info)
    every = _html(_run("trajectory"))
    monkeypatch.setattr(queries, "choices", lambda store: {name: [] for name in sidebar.LABELS})
    st.cache_data.clear()
    some = _html(_run("trajectory", condition=["autonomous"]))
    st.cache_data.clear()
    assert "situational_planning" in every and "situational_planning" not in some


@pytest.mark.slow
def test_an_agent_that_compare_names_is_a_filter(here: Path) -> None:
    assert set(COLUMNS) <= set(sidebar.LABELS)
    assert any("No trajectory matches" in info.value for info in _run("trajectory", agent=["gone"]).info)


@pytest.mark.slow
def test_a_number_by_a_tag_leads_to_sessions_that_fit_the_other_tags_too(thirty: Path) -> None:
    shown = _html(_run("process", by="version", tags=["version=v1"]))
    assert escape(urlencode({"tags": "version=v1"})) in shown
    assert escape(urlencode([("tags", "version=v1"), ("tags", "version=v1")])) not in shown

    def linked() -> None:
        import streamlit as st

        from coaudit.dashboards.sidebar import address

        st.query_params["tags"] = ["lang=en"]
        st.text(address("trajectory", tags="version=v1"))

    (place,) = AppTest.from_function(linked).run().text
    assert place.value == f"trajectory?{urlencode([('tags', 'version=v1'), ('tags', 'lang=en')])}"


@pytest.mark.slow
def test_the_trajectory_page_shows_only_disagreements_where_asked(here: Path) -> None:
    whole = _html(_run("trajectory", trajectory="env_tabular_analysis_8", all="true"))
    found = _html(_run("trajectory", trajectory="env_tabular_analysis_8"))
    differ = _html(_run("trajectory", trajectory="env_tabular_analysis_8", differ="true"))
    assert differ.count('class="pin') < whole.count('class="pin')
    assert found.count('class="pin') < whole.count('class="pin'), "a no is not drawn"


@pytest.mark.slow
def test_the_trajectory_page_shows_the_advice_before_each_step_where_there_is_an_advisor(here: Path) -> None:
    store = Store(Workspace(here), read_only=True)
    with store.reading() as connection:
        query = "SELECT id FROM trajectories WHERE system = 'rehac' ORDER BY id LIMIT 1"
        (key,) = connection.execute(query).fetchall()[0]
    file = advisor.default(Workspace(here))
    assert "Advice" not in _html(_run("trajectory", trajectory=key))
    try:
        advisor.save(games.advisor(), file)
        assert "<b>Advice</b> the agent goes on, gain +0.000" in _html(_run("trajectory", trajectory=key))
        file.write_text("[]", encoding="utf-8")
        damaged = _run("trajectory", trajectory=key)
        assert not damaged.exception
        assert any("not an advisor's file" in text.value for text in damaged.text)
    finally:
        file.unlink()


@pytest.mark.slow
def test_an_unknown_trajectory_is_said_and_no_error(here: Path) -> None:
    test = _run("trajectory", trajectory="nothing<b>")
    assert not test.exception
    assert any("no trajectory 'nothing<b>'" in text.value for text in test.text)


@pytest.mark.slow
def test_a_workspace_that_is_looked_at_stays_as_it_is(here: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in here.rglob("*")}
    for name in PAGES:
        _run(name)
    assert {path: path.stat().st_mtime_ns for path in here.rglob("*")} == before


@pytest.mark.slow
def test_every_text_of_a_hostile_session_is_escaped(here: Path) -> None:
    for name, parameters in (
        ("trajectory", {"trajectory": "hostile0000000001", "event": "1"}),
        ("trajectory", {}),
        ("overview", {}),
        ("failures", {}),
        ("compare", {"left": "hostile0000000001", "right": "hostile0000000001", "code": "C.2"}),
    ):
        html = _without_our_scripts(_html(_run(name, **parameters)))
        assert "<script" not in html and "<img" not in html and "javascript:" not in html
        assert "<i>arm" not in html and "<b>model" not in html


def _without_our_scripts(html: str) -> str:
    for script in (scripts.KEYS, scripts.ROWS, scripts.SCROLL, scripts.WITHIN):
        html = html.replace(script, "")
    return html


def test_a_group_that_is_called_like_a_code_is_told_as_a_group() -> None:
    titles = {"C": "C Communication (any)", "C.1": "C.1 Silent start"}
    cell = Number(0.5, percent=True)
    codes = Table("t", "", "", ("Code", "Mode", "Source", "C"), (("C.1", "", "", cell),), heads=3)
    html = markup.grid(codes, lambda cell: None, titles)
    assert 'title="C, C.1 Silent start: 50 %"' in html and '<th scope="col" title="C">' in html
    turned = Table("t", "", "", ("Group", "C", "C.1"), (("C", cell, cell),))
    html = markup.grid(turned, lambda cell: None, titles)
    assert 'title="C Communication (any), C: 50 %"' in html and 'class="total"' not in html


def test_of_a_metric_without_units_no_share_is_said_to_be_rated(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        Metric(metric="initiative_entropy", group={}, rater="rules", value=0.0, n=5, answered=1.0),
        Metric(metric="halting_messages", group={}, value=None, n=0, missing=5, reason="no human"),
    ]
    monkeypatch.setattr(process, "ask", lambda *_, **__: rows)
    said = process._coverage(Selection(), "rules")
    assert said.startswith(" Ratings by rules; share of each metric's units that are rated: ")
    assert said.endswith(": Initiative entropy (H_init) 100 %.")


def test_a_confusion_of_one_unit_is_told_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Table] = []
    monkeypatch.setattr(figures, "table", lambda table, **_: drawn.append(table))
    counts = {"labels": ["yes", "no"], "counts": [[1, 0], [0, 0]]}
    alone = {"confusion": counts, "outside_the_samples": None}
    agreement._confusion({**alone, "n_both": 1, "n_errors": 1})
    agreement._confusion({**alone, "n_both": 1200, "n_errors": 0})
    agreement._confusion(
        {"confusion": counts, "outside_the_samples": {"counts": [[3, 0], [1, 68]]}}
        | {"n_both": 16, "n_errors": 0}
    )
    assert [table.caption.partition(". ")[0] for table in drawn] == [
        "n = 1 unit labelled by both; on 1 more the judge failed",
        "n = 1,200 units labelled by both",
        "n = 16 units labelled by both, within the samples; 72 outside them are not counted here",
    ]


def test_a_confusion_has_what_people_said_as_rows_and_what_the_judge_said_as_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    votes = np.array([[1, 0], [1, 0], [1, 0], [0.5, 0.5]])  # three say yes; of one unit people say both
    confused = confusion(np.array([0, 1, 1, 1]), votes, ("yes", "no"))
    code = {"confusion": {"labels": confused.labels, "counts": confused.counts.tolist()}}
    drawn: list[Table] = []
    monkeypatch.setattr(figures, "table", lambda table, **_: drawn.append(table))
    agreement._confusion(code | {"outside_the_samples": None, "n_both": 4, "n_errors": 0})
    cells = {
        (column, f"People: {row[0]}"): cell.note
        for row in drawn[0].rows
        for column, cell in zip(drawn[0].columns, row, strict=True)
        if isinstance(cell, Number)
    }
    assert cells == {
        ("Judge: yes", "People: yes"): "n = 1",
        ("Judge: no", "People: yes"): "n = 2.5",
        ("Judge: yes", "People: no"): "n = 0",
        ("Judge: no", "People: no"): "n = 0.5",
    }


def test_of_hundreds_of_pairs_of_raters_those_with_most_units_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[list[dict[str, Any]]] = []
    notes: list[str] = []

    def chart(title: str, rows: list[dict[str, Any]], draw: Any, *, note: str, **_: Any) -> None:
        drawn.append(rows)
        notes.append(note)

    monkeypatch.setattr(figures, "chart", chart)
    pairs = [
        Agreement(
            code="c",
            coefficient="cohen_kappa",
            raters=("ann", f"rater {i}"),
            value=0.5,
            n_units=i,
            n_ratings=2 * i,
        )
        for i in range(780)
    ]
    agreement._forest(pairs, "cohen_kappa")
    assert [row["units"] for row in drawn[0]] == list(range(779, 739, -1))
    assert "40 of 780 with the most units" in notes[0]


def test_the_chart_of_a_scale_shows_the_kappas_that_the_table_below_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[float] = []
    monkeypatch.setattr(figures, "chart", lambda _, rows, *__, **___: drawn.extend(r["value"] for r in rows))
    values = {"cohen_kappa": 0.27, "cohen_kappa_quadratic": 0.81, "fleiss_kappa": 0.36}
    rows = [
        Agreement(
            code="overall", coefficient=name, raters=("ann", "ben"), value=value, n_units=50, n_ratings=100
        )
        for name, value in values.items()
    ]
    for name in ("cohen_kappa", "fleiss_kappa"):
        agreement._forest(rows, name)
    agreement._forest(rows[:1], "cohen_kappa")
    assert drawn == [0.81, 0.36, 0.27], "labels without an order have one kappa"


def test_the_parts_of_a_note_may_stand_below_each_other() -> None:
    cell = Number(0.5, 0.2, 0.8, 8, 1, percent=True)
    html = markup.drawn(Table("t", "", "", ("Metric", "a"), (("Rate", cell),)), lambda cell: None)
    assert "<small><span>20 % – 80 %</span>, <span>n = 8</span>, <span>1 missing</span></small>" in html


@pytest.mark.slow
def test_a_chart_is_fitted_again_where_its_legend_takes_more_lines_than_at_first(here: Path) -> None:
    charts = [json.loads(chart.proto.spec) for chart in _run("efficiency").get("vega_lite_chart")]
    assert charts and all(chart["autosize"]["resize"] for chart in charts)


def test_a_legend_has_as_many_columns_as_its_chart_has_room_for() -> None:
    def at(width: int, names: Iterable[str]) -> int:
        wide, _, narrow = columns(names).expr.replace("width", str(width)).partition(" ? 0 : ")
        return 0 if eval(wide) else eval(narrow, {"max": max, "floor": math.floor})

    assert [at(400, names) for names in ([], ["human", "agent"], ["x" * 20] * 9)] == [0, 0, 0]
    long = ["progress_completeness, team", "tes, assistant", "tes, chef"]
    assert [at(width, long) for width in (250, 450, 460)] == [1, 2, 0]
    assert [at(width, [f"condition {n}" for n in range(7)]) for width in (250, 400, 800)] == [2, 3, 0]
    rows = [{"measure": name} for name in long]
    assert colour("measure", "Measure", rows=rows).to_dict()["legend"]["columns"] == columns(long).to_dict()


def test_a_span_of_time_is_told_in_words() -> None:
    spans = {40: "40 s", 700: "12 min", 10_000: "3 h", 90_000: "1 day", 400_000: "5 days"}
    assert {seconds: sidebar.spoken(seconds) for seconds in spans} == spans


@pytest.mark.slow
def test_a_list_of_the_latest_says_how_many_there_are(here: Path) -> None:
    store = Store(Workspace(here), read_only=True)
    rows = queries.alarms(store, Selection())
    assert len(rows) < rows[0]["total"]
    assert f"{len(rows):,} of {rows[0]['total']:,} shown, from the sessions that began last." in _html(
        _run("cost")
    )


@pytest.mark.slow
def test_a_note_is_as_dark_as_all_others(here: Path) -> None:
    """Streamlit's own captions are letters at 60 %, of a contrast of 3.9 on white."""
    page = _run("agreement")
    assert not page.caption and re.search("[0-9,]+ of [0-9,]+ shown", _html(page))


@pytest.mark.slow
def test_labels_that_are_left_are_planned_by_those_there_are(here: Path) -> None:
    """The page asked how common the code is and what kappa will be, of a codebook that has both."""
    page = _run("agreement")
    assert "figures need no more." in _html(page) and not [n for n in page.number_input if n.key == "common"]
    counts = [_needed(page.number_input(key="width").set_value(width).run()) for width in (0.5, 0.02)]
    assert counts[0] < counts[1] > 0
    folded = [one.label for one in page.expander if one.label.startswith("Figures that need more")]
    assert bool(folded) == (counts[1] > 20), "of 26 codes they pushed what is to be discussed out of sight"


def _needed(page: AppTest) -> int:
    """How many figures need more labels."""
    match = re.search(r"(\d+) of (\d+) figures need no more", _html(page))
    assert match
    return int(match[2]) - int(match[1])


def test_in_a_csv_a_group_that_is_called_as_a_limit_of_another_has_columns_of_its_own() -> None:
    cells = (Number(0.5, 0.25, 0.75, 8), Number(0.1, 0.0, 0.2, 9))
    (line,) = records(Table("t", "T", "", ("Metric", "effort", "effort low"), (("success", *cells),)))
    assert (line["effort"], line["effort low"], line["effort high"], line["effort n"]) == (0.5, 0.25, 0.75, 8)
    assert (line["effort low (2)"], line["effort low (2) low"], line["effort low (2) n"]) == (0.1, 0.0, 9)


def test_a_csv_never_carries_a_formula() -> None:
    text = to_csv([{"a": "=HYPERLINK(1)", "b": "+1", "c": -1.5, "d": "@x", "e": "\t=1", "f": "plain"}])
    assert text.splitlines()[1] == "'=HYPERLINK(1),'+1,-1.5,'@x,'\t=1,plain"


def test_the_csv_of_a_table_says_why_a_number_is_null_and_what_is_missing() -> None:
    rows: tuple[tuple[str | Number, ...], ...] = (
        ("C.1", Number(0.5, 0.2, 0.8, 4, mark=" → 40 %"), Number(None, n=0, missing=3, reason="not rated")),
        ("C.2", Number(0.25, 0.1, 0.6, 4), Number(0.5, n=2)),
    )
    shown = Table("shares", "Shares", "", ("Code", "A", "B"), rows)
    first, second = csv.DictReader(io.StringIO(to_csv(records(shown))))
    assert (first["A mark"], second["A mark"]) == ("40 %", "")
    assert (first["B"], first["B n"], first["B missing"], first["B reason"]) == ("", "0", "3", "not rated")
    assert not {"A missing", "A reason", "B mark"} & first.keys(), "what no number has is no column"


def test_raters_differ_where_labels_do_and_an_error_is_no_label() -> None:
    def rating(event: int, label: str | None) -> dict[str, Any]:
        return {"codebook": "initiative", "code": "initiative", "event": event, "label": label}

    ratings = [rating(1, "yes"), rating(1, "no"), rating(2, "yes"), rating(2, None), rating(3, "no")]
    assert disagreements(ratings) == ratings[:2]


def test_a_result_of_a_session_that_is_a_whole_number_has_no_decimals() -> None:
    values = (1.0, 23.0, 0.9375, 1234.0, 0.99999, 999.96)
    shown = [trajectory._result({"value": value}) for value in values]
    assert shown == ["1", "23", "0.938", "1,234", "1.000", "999.96"], "what is rounded to one has decimals"
    assert trajectory._result({"value": -0.0}) == "0"


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["cohen_kappa", "Cohen's κ", "gwet_ac1"])
def test_what_is_asked_for_by_its_name_or_as_it_is_shown_is_no_wrong_choice(here: Path, asked: str) -> None:
    def page() -> None:
        import streamlit as st

        from coaudit.dashboards import sidebar
        from coaudit.dashboards.views import agreement

        given = {name: st.query_params.get_all(name) for name in st.query_params}
        agreement.show(sidebar.chosen())
        st.warning(f"[{sidebar.refused(given)}]")

    test = AppTest.from_function(page, default_timeout=60)
    test.query_params["coefficient"] = asked
    assert [one.value for one in test.run().warning] == ["[]"]
    assert test.selectbox(key="coefficient").value == ("gwet_ac1" if asked == "gwet_ac1" else "cohen_kappa")
