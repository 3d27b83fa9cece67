"""Charts show what their tables say: intervals of both axes, strengths and counts from 0, none of nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import pytest
import vl_convert

from coaudit.annotation.statistics.estimate import Estimate
from coaudit.dashboards.drawing import figures, groups
from coaudit.dashboards.views import agreement, efficiency, failures, process
from coaudit.pipeline.analyze.failures import Share
from coaudit.pipeline.report import Number, Table
from coaudit.pipeline.store import Selection
from coaudit.schemas import Agreement, Metric, Trajectory
from tests.pipeline import stores

Row = dict[str, Any]


@pytest.fixture
def charts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Row]:
    """Key -> the charts that were asked for: their rows, their Vega-Lite, what is said without rows."""
    asked: dict[str, Row] = {}

    def chart(title: str, rows: list[Row], draw: Callable[[alt.Data], alt.Chart], **said: Any) -> None:
        drawn = draw(alt.Data(values=rows)).to_dict() if rows else {}
        asked[said["key"]] = {**said, "title": title, "rows": rows, "drawn": drawn}

    monkeypatch.setattr(figures, "chart", chart)
    for module in (efficiency, process):
        monkeypatch.setattr(module.groups, "colours", lambda *_: {"a": "#0072B2"})
    return asked


def _asking(monkeypatch: pytest.MonkeyPatch, module: Any, rows: Sequence[Row | Metric]) -> None:
    monkeypatch.setattr(module, "ask", lambda *_, **__: rows)


def _metric(name: str, n: int) -> Metric:
    group: dict[str, str | None] = {"system": "rehac", "condition": "a", "task": "t"}
    return Metric(metric=name, group=group, value=0.5, low=0.2, high=0.9, n=n)


@pytest.mark.parametrize(
    "key, across, up",
    [
        ("rehac", "human_intervention_rate", "reward"),
        ("capabilities", "initiating_capability", "responding_capability"),
    ],
)
def test_a_point_of_two_metrics_has_the_interval_and_the_n_of_both(
    charts: dict[str, Row], key: str, across: str, up: str
) -> None:
    draw = {"rehac": efficiency._rehac, "capabilities": efficiency._capabilities}[key]
    draw([_metric(across, 8), _metric(up, 5)])
    layers = [layer["encoding"] for layer in charts[key]["drawn"]["layer"]]
    lines = {
        tuple(one[axis]["field"] for axis in ("x", "x2", "y", "y2") if axis in one) for one in layers[:-1]
    }
    assert lines == {(across, f"{up}_low", f"{up}_high"), (f"{across}_low", f"{across}_high", up)}
    (row,) = charts[key]["rows"]
    assert (row[f"{across}_n"], row[f"{up}_n"]) == (8, 5)


def test_where_nobody_took_the_initiative_that_is_said_and_no_empty_chart_drawn(
    charts: dict[str, Row],
) -> None:
    row = {"group": "a", "rater": "rules", "party": "agent", "initiatives": 0, "utterances": 1234}
    process._initiative([row | {"trajectories": 9}], "rules", ["a"])
    assert charts["initiative"]["rows"] == []
    assert charts["initiative"]["empty"] == "Nobody took the initiative in 1,234 rated utterances."
    process._initiative([], "rules", ["a"])
    assert charts["initiative"]["empty"].startswith("No utterance is rated")


def test_the_axis_of_moments_that_there_are_none_of_begins_at_0(
    charts: dict[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"codebook": "halting", "rater": "rules", "part": 1, "events": 0, "trajectories": 5, "rated": 1.0}
    _asking(monkeypatch, process, [row])
    process._moments(Selection(), "rules")
    assert charts["moments"]["drawn"]["encoding"]["y"]["scale"] == {"domain": [0, 1]}
    _asking(monkeypatch, process, [row | {"events": 3}])
    process._moments(Selection(), "rules")
    assert charts["moments"]["drawn"]["encoding"]["y"]["scale"] == {}


def test_the_least_overlap_of_two_modes_is_not_drawn_as_none(
    charts: dict[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [("C.1", "C.2", 30), ("C.1", "C.3", 20)]
    rows = [{"code": one, "other": two, "shared": n, "either": 100} for one, two, n in pairs]
    _asking(monkeypatch, failures, rows)
    failures._together(Selection(), "failures", "judge", ["C.1", "C.2", "C.3"])
    strength = charts["together"]["drawn"]["encoding"]["opacity"]
    assert strength["scale"]["domainMin"] == 0
    assert strength["legend"]["format"] == "~%", "of overlaps below 1 % its entries differ, too"


def test_the_four_kinds_of_what_is_done_are_four_strengths(
    charts: dict[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("action", "message", "note", "wait")
    rows = [{"part": 1, "party": "agent", "what": kind, "events": 5} for kind in kinds]
    _asking(monkeypatch, process, rows)
    process._course(Selection())
    svg = vl_convert.vegalite_to_svg(charts["course"]["drawn"])
    bars = re.findall(r'aria-roledescription="bar"[^>]*?opacity="([\d.]+)"', svg)
    assert sorted(map(float, bars), reverse=True) == [1, 0.7, 0.45, 0.25]


def test_a_chart_of_agreement_says_on_how_many_units_it_rests(charts: dict[str, Row]) -> None:
    rows = [
        Agreement(
            code=code,
            coefficient="cohen_kappa",
            raters=("ann", "ben"),
            value=0.5,
            n_units=units,
            n_ratings=2 * units,
        )
        for code, units in (("C.1", 1200), ("C.2", 40))
    ]
    agreement._forest(rows[:1], "cohen_kappa")
    assert "n = 1,200 units." in charts["forest"]["note"]
    agreement._forest([*rows, rows[0].model_copy(update={"raters": ("x", "y")})], "cohen_kappa")
    assert "n = 40 to 1,200 units." in charts["forest"]["note"]


def test_a_calibration_says_on_how_many_units_it_rests(charts: dict[str, Row]) -> None:
    bins = [{"n": 2.5, "predicted": 0.2, "observed": 0.1}, {"n": 38, "predicted": 0.8, "observed": 0.9}]
    agreement._calibration({"calibration": {"bins": bins, "ece": 0.1, "ece_by_chance": 0.05}})
    assert charts["calibration"]["note"].startswith("n = 40.5 units. Expected calibration error 0.100;")


def test_the_label_of_a_rater_whose_name_is_written_from_right_to_left_stays_behind_the_name() -> None:
    name = "\u0645\u0631\u064a\u0645"
    row = {"trajectory": "t", "native_id": "run", "event": 1, "code": "<c>", "between": "people"}
    html = agreement._disagreement({**row, "gold": None, "labels": {"rules": "4", name: "2", "<b>": "1"}})
    assert f"<bdi>rules</bdi>: 4, <bdi>{name}</bdi>: 2, <bdi>&lt;b&gt;</bdi>: 1" in html
    assert "&lt;c&gt;" in html


def test_of_groups_with_one_name_in_two_systems_the_table_has_those_that_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[Table] = []
    monkeypatch.setattr(figures, "table", lambda table, **_: drawn.append(table))
    pairs = (("cogym", "x"), ("rehac", "x"), ("rehac", None))
    rows = [
        Metric(metric="error_rate", group={"system": system, "condition": name}, value=0.5, n=4)
        for system, name in pairs
    ]
    _asking(monkeypatch, process, rows)
    process._by_group(Selection(), "condition", None, {("rehac", "x")})
    assert [row[:2] for row in drawn[0].rows] == [("rehac", "x"), ("rehac", "–")]
    alone = [Metric(metric="error_rate", group={"system": "rehac"}, value=0.5, n=4)]
    _asking(monkeypatch, process, alone)
    process._by_group(Selection(), "system", None, {("–", "rehac")})
    assert [row[:2] for row in drawn[1].rows] == [("rehac", "rehac")]


def test_of_groups_without_any_value_the_table_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chat's row had a system, a condition and nothing else."""
    drawn: list[Table] = []
    monkeypatch.setattr(figures, "table", lambda table, **_: drawn.append(table))
    group: dict[str, str | None] = {"system": "chat", "condition": "x"}
    why = "no steps"
    _asking(monkeypatch, process, [Metric(metric="error_rate", group=group, value=None, n=0, reason=why)])
    process._by_group(Selection(), "condition", None, {("chat", "x")})
    assert drawn[0].columns[2:] == ("Failed steps",)
    assert isinstance(cell := drawn[0].rows[0][2], Number) and cell.note == why


def test_units_that_are_nearly_all_rated_are_not_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Metric(metric="initiative_entropy", value=0.9, n=9, rater="rules", answered=0.996)
    _asking(monkeypatch, process, [row])
    assert process._coverage(Selection(), "rules").endswith("Initiative entropy (H_init) 99.6 %.")


def _share(code: str, group: tuple[str, ...], n: int) -> Share:
    estimate = Estimate(0.5, 0.2, 0.8, n=n, clusters=n)
    return Share(code, "C", "judge", group, present=1, n=n, missing=0, estimate=estimate)


def test_real_and_simulated_sessions_are_compared_within_the_systems_that_have_both(
    charts: dict[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_system = {"cogym": ("real", "simulated"), "rehac": ("simulated",), "chat": ("\u2013",)}
    asked: list[Selection] = []

    def ask(_: Any, *, by: tuple[str, ...], codebook: str, only: Selection) -> list[Share]:
        asked.append(only)
        groups = [(system, setting) for system, own in by_system.items() for setting in own]
        wanted = only.system or tuple(by_system)
        if by == ("system", "setting"):
            return [_share(code, group, 5) for group in groups for code in ("C.1", "C.2")]
        settings = sorted({setting for system, setting in groups if system in wanted})
        return [_share(code, (setting,), n) for setting in settings for code, n in (("C.1", 9), ("C.2", 7))]

    monkeypatch.setattr(failures, "ask", ask)
    failures._settings(Selection(task=("t",)), "failures", "judge", ["C.1", "C.2"])
    assert asked[-1] == Selection(system=("cogym",), task=("t",))
    note = charts["settings"]["note"]
    assert note.endswith("n = 7 to 9 real, 7 to 9 simulated. Of cogym, the system that has both.")
    by_system["rehac"] = ("simulated", "real")
    failures._settings(Selection(), "failures", "judge", ["C.1"])
    assert charts["settings"]["note"].endswith("Of cogym and rehac together, the systems that have both.")
    by_system |= {"rehac": ("simulated",), "cogym": ("real",)}
    failures._settings(Selection(), "failures", "judge", ["C.1"])
    assert asked[-1] == Selection()
    assert (
        "No system has both: a difference between settings is one between systems"
        in charts["settings"]["note"]
    )


def test_sessions_of_one_setting_are_beside_no_others_and_those_without_an_answer_have_a_setting(
    charts: dict[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = {2: _share("C.1", ("cogym", "simulated"), 9), 1: _share("C.1", ("simulated",), 9)}
    monkeypatch.setattr(failures, "ask", lambda _, *, by, codebook, only: [shares[len(by)]] if by else [])
    failures._settings(Selection(), "failures", "judge", ["C.1"])
    assert charts["settings"]["title"] == "Simulated sessions alone"
    legend = charts["settings"]["drawn"]["layer"][0]["encoding"]["color"]["legend"]
    assert legend["values"] == ["simulated"]
    shares[2] = replace(shares[2], n=0, missing=9)
    monkeypatch.setattr(failures, "ask", lambda _, *, by, codebook, only: [shares[2]] if len(by) == 2 else [])
    failures._settings(Selection(), "failures", "judge", ["C.1"])
    assert charts["settings"]["title"] == "Real beside simulated"
    assert (
        charts["settings"]["empty"]
        == "judge gave no usable answer on sessions known to be real or simulated."
    ), "on others it may have given some"
    monkeypatch.setattr(failures, "ask", lambda *_, **__: [])
    failures._settings(Selection(), "failures", "judge", ["C.1"])
    assert charts["settings"]["empty"].startswith("No trajectory says whether its user was real")


def test_a_code_is_of_the_systems_that_are_rated_on_it_in_both_settings(
    charts: dict[str, Row], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a second system that was rated on C.2 in real sessions alone, C.2 had those beside the first's."""
    rated = {
        ("cogym", "real"): ("C.1", "C.2"),
        ("cogym", "simulated"): ("C.1", "C.2"),
        ("mix", "real"): ("C.1", "C.2", "C.3"),
        ("mix", "simulated"): ("C.1",),
        ("chat", None): ("C.1",),
    }
    team = [{"name": "Ann", "kind": "human"}]
    events = [{"seq": 0, "actor": "Ann", "kind": "message", "text": "Hello"}]
    runs, lines = [], []
    for (system, setting), codes in rated.items():
        name = f"{system} {setting}"
        of = {"id": name, "native_id": name, "system": system, "setting": setting}
        runs.append(
            Trajectory.model_validate({**of, "source": "log", "participants": team, "events": events})
        )
        label = "present" if system == "mix" else "absent"
        lines += [
            stores.verdict(name, None, "failures", label, code=code, rater="judge", rater_kind="llm")
            for code in codes
        ]
    store = stores.holding(tmp_path / "w", runs)
    stores.rate(store, lines)
    monkeypatch.setattr(failures, "ask", lambda query, **which: query(store, **which))
    failures._settings(Selection(), "failures", "judge", ["C.1", "C.2", "C.3"])
    drawn = [
        (row["code"], row["setting"], row["rate"], row["trajectories"]) for row in charts["settings"]["rows"]
    ]
    assert sorted(drawn) == [
        ("C.1", "real", 0.5, 2),
        ("C.1", "simulated", 0.5, 2),
        ("C.2", "real", 0.0, 1),
        ("C.2", "simulated", 0.0, 1),
    ]
    assert charts["settings"]["note"].endswith(
        "Each code is of the systems that have both: of cogym (C.2); of cogym and mix together (C.1). "
        "Not drawn, as no system is rated on them in both: C.3."
    )


def test_sources_of_failures_stand_in_the_order_of_the_taxonomy(
    charts: dict[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"category": name, "code": f"{name}.1", "error_source": "both", "findings": 2} for name in ("P", "C")
    ]
    _asking(monkeypatch, failures, rows)
    failures._sources(Selection(), "failures", "judge", ["C", "C.1", "P", "P.1"], by_rule=False)
    assert charts["sources"]["drawn"]["encoding"]["y"]["sort"] == ["C", "C.1", "P", "P.1"]
    assert charts["sources"]["note"].startswith("Source as judged by judge in each finding")
    failures._sources(Selection(), "failures", "detectors", ["C", "P"], by_rule=True)
    assert charts["sources"]["note"].startswith("Each mode's usual source, by the codebook"), (
        "none was judged"
    )


def test_change_over_time_has_a_colour_for_each_code(
    charts: dict[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of codes without categories the ninth had the first one's colour."""
    rows = [
        {"week": "2026-01-05", "category": f"c{number}", "present": number, "trajectories": 20}
        for number in range(12)
    ]
    _asking(monkeypatch, failures, rows)
    failures._over_time(Selection(), "mine", "judge", "code")
    assert {row["category"] for row in charts["time"]["rows"]} == {f"c{number}" for number in range(4, 12)}
    assert charts["time"]["note"].endswith(" The 8 found most of 12.")


def test_a_balance_tells_a_condition_of_two_systems_apart_and_says_its_n(charts: dict[str, Row]) -> None:
    rows = [
        Metric(
            metric="workload_balance",
            group={"system": system, "condition": name, "task": "t"},
            value=0.2,
            n=n,
        )
        for system, name, n in (("cogym", "a", 4), ("rehac", "a", 1200), ("rehac", "b", 9))
    ]
    efficiency._balance(rows)
    assert [row["group"] for row in charts["balance"]["rows"]] == ["cogym \u00b7 a", "rehac \u00b7 a", "b"]
    assert charts["balance"]["drawn"]["layer"][0]["encoding"]["y"]["field"] == "group"
    assert charts["balance"]["note"] == "n = 4 to 1,200 trajectories a point."


def test_what_grey_means_is_said_where_several_groups_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = dict.fromkeys("ab", "#0072B2") | dict.fromkeys("yz", "#999999")
    monkeypatch.setattr(groups, "colours", lambda _: fixed)
    assert groups.greys([{"condition": name} for name in "abz"]) == ""
    assert groups.greys([{"condition": name} for name in "ayzz"]).startswith(" Grey: 2 groups beyond the 7")
