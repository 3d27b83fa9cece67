"""Groups whose names mean something to the programs that draw them."""

from __future__ import annotations

import json
import re
from typing import Any

import altair as alt
import pytest
import vl_convert

from coaudit.dashboards.drawing import figures, groups
from coaudit.dashboards.drawing.palette import colour
from coaudit.pipeline.report import Number, Table
from coaudit.pipeline.report import figures as printed


@pytest.mark.parametrize("name", ["constructor", "__proto__", "toString", "__lookupGetter__"])
def test_a_group_that_is_called_as_what_each_object_has_is_drawn_like_any_other(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    drawn: list[alt.Chart] = []
    monkeypatch.setattr("streamlit.altair_chart", lambda chart, **_: drawn.append(chart))
    rows = [{"group": group, "party": party, "n": 2} for group in (name, "b") for party in ("human", "agent")]

    def bars(data: alt.Data) -> alt.Chart:
        y = alt.Y("group:N", sort=groups.order([name, "b"], []))
        hue = colour("group", "Group", {name: "#000001", "b": "#000002"}, rows)
        return alt.Chart(data).mark_bar().encode(x=alt.X("n:Q", stack="normalize"), y=y, color=hue)

    figures.chart("", rows, bars, key="k", alternative="", empty="")
    svg = vl_convert.vegalite_to_svg(json.dumps(drawn[0].to_dict()))
    assert svg.count('aria-roledescription="bar"') == 4
    assert [svg.count(f'fill="{hue}"') > 1 for hue in ("#000001", "#000002")] == [True, True]
    words = re.findall(r">([\w​]+)</text>", svg)
    assert [word.strip("\u200b") for word in words if word.strip("\u200b") in (name, "b")][:2] == [name, "b"]


@pytest.mark.parametrize("name", ["constructor", "toString"])
def test_a_report_draws_such_a_group(name: str) -> None:
    rows: tuple[tuple[Any, ...], ...] = ((name, Number(0.5, 0.2, 0.8, 8)), ("b", Number(0.4, 0.2, 0.8, 8)))
    table = Table("t", "", "", ("Condition", "Rate"), rows)
    for figure in (printed.intervals(table), printed.heatmap(table)):
        assert figure and name in printed.svg(figure)


def test_a_share_of_0_leads_to_no_list_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr("streamlit.html", drawn.append)
    monkeypatch.setattr("streamlit.header", lambda _: None)
    monkeypatch.setattr(figures, "below", lambda *_: None)
    monkeypatch.setattr(figures, "address", lambda page, **of: f"{page}?{of}")
    of = (("condition", "a"), ("code", "C.1"))
    cells = (Number(0.0, n=4, of=of), Number(0.5, n=4, of=of), Number(0.0, n=4, of=of[:1]))
    figures.table(Table("t", "", "", ("Code", *"abc"), (("C.1", *cells),)))
    assert re.findall(r"(<a [^>]*>)?0\.\d00", drawn[0])[0] == ""
    assert drawn[0].count("<a ") == 2
