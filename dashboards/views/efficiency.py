"""Interventions and efficiency: ReHAC's reward, Collab-Overcooked's TES, CoBlock's workload balance."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

import altair as alt
import streamlit as st

from ...pipeline.analyze import metrics
from ...pipeline.report import interventions
from ...pipeline.report.names import metric_name
from ...pipeline.store import Selection
from ...schemas import Metric
from ...schemas.text import count_of
from .. import queries
from ..cache import ask
from ..drawing import days, figures, groups
from ..drawing.palette import GREY, colour

BY = ("system", "condition", "task")
EFFICIENCY = ("tes", "progress_completeness")
OVERCOOKED = "No Collab-Overcooked runs yet: run `coaudit ingest PATH --system overcooked --reference DIR`."
TOP = 5
"""States that are shown of each kind and condition."""


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Interventions and efficiency")
    penalty = st.slider(
        "Penalty λ of a human step (ReHAC)", 0.0, 0.5, 0.08, 0.01, key="penalty", bind="query-params"
    )
    rows = ask(metrics.metrics, by=BY, only=only, penalty=penalty)
    _rehac(rows)
    figures.table(ask(interventions.table, penalty, TOP, only=only))
    one, two = st.columns(2, gap="large")
    with one:
        _capabilities(rows)
    with two:
        _tes(only, rows)
    _balance(rows)


def _group(row: Metric) -> dict[str, Any]:
    """The columns and values of a row's group; `–` stands for what a log does not say."""
    return {
        by: "–" if value is None else str(value)
        for by, value in zip(BY, (row.group or {}).values(), strict=True)
    }


def _wide(rows: list[Metric], *names: str) -> list[dict[str, Any]]:
    """A row for each group that has all the metrics, with a column for each of them."""
    by_name: dict[tuple[str, ...], dict[str, Any]] = {}
    # A system's own reading has no scoring: it comes last and stays.
    for row in sorted(rows, key=lambda row: row.scoring is None):
        if row.metric in names and row.value is not None and row.participant is None:
            group = _group(row)
            line = by_name.setdefault(tuple(group.values()), group)
            line |= {
                row.metric: row.value,
                f"{row.metric}_low": row.low,
                f"{row.metric}_high": row.high,
                f"{row.metric}_n": row.n,
            }
    return [line for line in by_name.values() if all(name in line for name in names)]


def _empty(rows: list[Metric], names: Collection[str], none: str) -> str:
    """The sentence where nothing can be drawn; `none` where no run has such a metric, even undefined."""
    there = any(row.metric in names for row in rows)
    return "Undefined in every trajectory: the page Tables says why." if there else none


def _rehac(rows: list[Metric]) -> None:
    chart_rows = _wide(rows, "human_intervention_rate", "reward")
    for row in chart_rows:
        rate = row["human_intervention_rate"]
        row["anchor"] = "agent only" if rate == 0 else "human only" if rate == 1 else "mixed"

    def draw(data: alt.Data) -> alt.Chart:
        rate = {"title": metric_name("human_intervention_rate"), "axis": alt.Axis(format="%")}
        x = partial(alt.X, **rate, scale=alt.Scale(domain=[0, 1]))
        y = partial(alt.Y, title="Reward R = T − λC")
        base = alt.Chart(data).encode(color=colour("condition", "Condition", groups.colours(), chart_rows))
        points = base.mark_point(filled=True, size=90).encode(
            x=x("human_intervention_rate:Q"),
            y=y("reward:Q"),
            shape=alt.Shape("anchor:N", title="Who acts", legend=alt.Legend(orient="top", **GREY)),
            tooltip=["condition:N", "task:N", "reward:Q", "human_intervention_rate:Q", "reward_n:Q"],
        )
        return _cross(base, x, y, "human_intervention_rate", "reward") + points

    figures.chart(
        "Reward against steps by people",
        chart_rows,
        draw,
        key="rehac",
        height=360,
        legend="condition",
        alternative="Reward against the share of steps by people, by condition",
        metrics=("reward", "human_intervention_rate", "task_reward"),
        note=f"With 95 % intervals of both. {_sizes(chart_rows, 'reward')}{groups.greys(chart_rows)} "
        "Agent-only and human-only runs are the anchors.",
        empty=_empty(
            rows, ("reward",), "No trajectory has a reward: run `coaudit ingest PATH --system rehac`."
        ),
    )


def _cross(
    base: alt.Chart, x: Callable[[str], alt.X], y: Callable[[str], alt.Y], across: str, up: str
) -> alt.LayerChart:
    """The intervals of two metrics as a cross: a line across and a line up, where there are any."""
    line = base.mark_rule(strokeWidth=2, aria=False)
    return line.encode(x=x(f"{across}:Q"), y=y(f"{up}_low:Q"), y2=f"{up}_high:Q") + line.encode(
        x=x(f"{across}_low:Q"), x2=f"{across}_high:Q", y=y(f"{up}:Q")
    )


def _capabilities(rows: list[Metric]) -> None:
    chart_rows = _wide(rows, "initiating_capability", "responding_capability")

    def draw(data: alt.Data) -> alt.Chart:
        x = partial(alt.X, title=metric_name("initiating_capability"), scale=alt.Scale(domain=[0, 1]))
        y = partial(alt.Y, title=metric_name("responding_capability"), scale=alt.Scale(domain=[0, 1]))
        base = alt.Chart(data).encode(color=colour("condition", "Condition", groups.colours(), chart_rows))
        points = base.mark_point(filled=True, size=90).encode(
            x=x("initiating_capability:Q"),
            y=y("responding_capability:Q"),
            tooltip=["condition:N", "task:N", "initiating_capability_n:Q", "responding_capability_n:Q"],
        )
        return _cross(base, x, y, "initiating_capability", "responding_capability") + points

    figures.chart(
        "Asking for help against answering",
        chart_rows,
        draw,
        key="capabilities",
        legend="condition",
        alternative="Asking for help against answering requests, by condition",
        metrics=("initiating_capability", "responding_capability"),
        note=f"With 95 % intervals of both, where there are enough runs. "
        f"{_sizes(chart_rows, 'initiating_capability', 'responding_capability')}{groups.greys(chart_rows)}",
        empty=_empty(rows, ("initiating_capability", "responding_capability"), OVERCOOKED),
    )


def _tes(only: Selection, metric_rows: list[Metric]) -> None:
    rows = ask(queries.over_days, only, EFFICIENCY)
    timeless = [row for row in metric_rows if row.metric in EFFICIENCY and row.value is not None]
    if timeless and not rows:
        _without_days(timeless)
        return

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_line(point=True)
            .encode(
                x=days.axis("day", "Day", rows),
                y=alt.Y("value:Q", title="Score", scale=alt.Scale(domain=[0, 1])),
                color=colour("condition", "Condition", groups.colours(), rows),
                strokeDash=alt.StrokeDash(
                    "metric:N", title="Metric", legend=alt.Legend(orient="top", **GREY)
                ),
                detail="participant:N",
                tooltip=[
                    days.tooltip("day", "Day"),
                    "condition:N",
                    "participant:N",
                    "metric:N",
                    "value:Q",
                    "trajectories:Q",
                ],
            )
        )

    figures.chart(
        "Trajectory efficiency over time",
        rows,
        draw,
        key="tes",
        legend="condition",
        alternative="TES by day and condition",
        metrics=EFFICIENCY,
        empty=_empty(metric_rows, EFFICIENCY, OVERCOOKED),
    )


def _without_days(rows: list[Metric]) -> None:
    """Efficiency by condition, of logs that say nothing of when."""
    chart_rows = [
        {
            **_group(row),
            "measure": metric_name(row.metric, row.scoring, row.participant),
            "value": row.value,
            "low": row.low,
            "high": row.high,
            "n": row.n,
        }
        for row in rows
    ]

    def draw(data: alt.Data) -> alt.Chart:
        base = alt.Chart(data).encode(
            y=alt.Y(
                "condition:N", title=None, axis=groups.axis([str(row["condition"]) for row in chart_rows])
            ),
            yOffset=alt.YOffset("measure:N", scale=alt.Scale(paddingOuter=0.3)),
            color=colour("measure", "Measure", rows=chart_rows),
        )
        lines = base.mark_rule(strokeWidth=2, aria=False).encode(
            x=alt.X("low:Q", title="Score, with 95 % interval", scale=alt.Scale(domain=[0, 1])), x2="high:Q"
        )
        return lines + base.mark_point(filled=True, size=80).encode(
            x="value:Q", tooltip=["measure:N", "task:N", "value:Q", "n:Q"]
        )

    figures.chart(
        "Trajectory efficiency",
        chart_rows,
        draw,
        key="tes",
        legend="measure",
        height=200 + 24 * len({row["condition"] for row in chart_rows}),
        alternative="TES and progress completeness by condition",
        metrics=EFFICIENCY,
        note="These logs have no times; each point is a task. "
        f"n = {_trajectories(row.n for row in rows)} a point.",
        empty="",
    )


def _sizes(rows: list[dict[str, Any]], *metrics: str) -> str:
    sizes = [row[f"{metric}_n"] for row in rows for metric in metrics]
    return f"n = {_trajectories(sizes)} a point."


def _trajectories(sizes: Iterable[int]) -> str:
    return count_of(figures.span(sizes), "trajectory", "trajectories")


def _balance(rows: list[Metric]) -> None:
    chart_rows = _wide(rows, "workload_balance")
    pairs = dict.fromkeys((row["system"], row["condition"]) for row in chart_rows)
    titles = groups.titles([{"system": system, "group": name} for system, name in pairs])
    for row in chart_rows:
        row["group"] = titles[row["system"], row["condition"]]

    def draw(data: alt.Data) -> alt.Chart:
        base = alt.Chart(data).encode(
            y=alt.Y("group:N", title=None, axis=groups.axis([row["group"] for row in chart_rows])),
            yOffset=alt.YOffset("task:N", scale=alt.Scale(paddingOuter=0.3)),
            color=colour("task", "Task", groups.colours("task"), chart_rows),
        )
        lines = base.mark_rule(strokeWidth=2, aria=False).encode(
            x=alt.X("workload_balance_low:Q", title="Workload balance, with 95 % interval"),
            x2="workload_balance_high:Q",
        )
        return lines + base.mark_point(filled=True, size=80).encode(
            x="workload_balance:Q", tooltip=["group:N", "task:N", "workload_balance_n:Q"]
        )

    figures.chart(
        "Workload balance",
        chart_rows,
        draw,
        key="balance",
        legend="task",
        height=150 + 24 * len({(row["group"], row["task"]) for row in chart_rows}),
        alternative="Workload balance by condition and task",
        metrics=("workload_balance",),
        note=_sizes(chart_rows, "workload_balance"),
        empty=_empty(rows, ("workload_balance",), "No trajectories yet: run `coaudit ingest PATH`."),
    )
