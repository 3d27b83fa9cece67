"""Charts show what their tables say: intervals of both axes, strengths and counts from 0, none of nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import pytest

from coaudit.dashboards.drawing import figures
from coaudit.dashboards.views import efficiency, failures, process
from coaudit.pipeline.store import Selection
from coaudit.schemas import Metric

Row = dict[str, Any]


@pytest.fixture
def charts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Row]:
    """Key -> the charts that were asked for: their rows, their Vega-Lite, what is said without rows."""
    asked: dict[str, Row] = {}

    def chart(title: str, rows: list[Row], draw: Callable[[alt.Data], alt.Chart], **said: Any) -> None:
        drawn = draw(alt.Data(values=rows)).to_dict() if rows else {}
        asked[said["key"]] = {**said, "rows": rows, "drawn": drawn}

    monkeypatch.setattr(figures, "chart", chart)
    for module in (efficiency, process):
        monkeypatch.setattr(module.groups, "colours", lambda *_: {"a": "#0072B2"})
    return asked


def _asking(monkeypatch: pytest.MonkeyPatch, module: Any, rows: list[Row]) -> None:
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
    failures._together(Selection(), "judge", ["C.1", "C.2", "C.3"])
    strength = charts["together"]["drawn"]["encoding"]["opacity"]
    assert strength["scale"]["domainMin"] == 0
    assert strength["legend"]["format"] == "~%", "of overlaps below 1 % its entries differ, too"
