"""Process: who takes the initiative, who acts when, confirmations and halts along a session's course."""

from __future__ import annotations

from collections import Counter
from typing import Any

import altair as alt
import streamlit as st

from ...pipeline.analyze import failures, metrics
from ...pipeline.report import Number, Table
from ...pipeline.report.names import named
from ...pipeline.report.tables import of_metric
from ...pipeline.store import Selection
from .. import queries
from ..cache import ask
from ..drawing import figures
from ..drawing.palette import PARTIES, colour

GROUPS = ("condition", "task", "setting", "agent_model", "system")


SHOWN = (
    "initiative_entropy",
    "effective_confirmations",
    "halting_messages",
    "human_intervention_rate",
    "error_rate",
    "workload_balance",
)
COLOURED = 8
"""Groups that colours can tell apart; of more, the table tells."""


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Process")
    left, right = st.columns(2)
    by = left.selectbox("Compare by", GROUPS, key="by", bind="query-params")
    raters = [row["rater"] for row in ask(failures.raters, "initiative", only)]
    rater = right.selectbox("Ratings by", raters, key="rater", bind="query-params") if raters else None
    _by_group(only, by, rater)
    one, two = st.columns(2, gap="large")
    with one:
        _initiative(only, by, rater)
        _course(only)
    with two:
        _entropy(only, by, rater)
        _moments(only, rater)
    _measure(only, by, "human_intervention_rate", "Human intervention", "share of steps by the human")
    _measure(only, by, "workload_balance", "Workload balance", "balance (0: one party alone, 0.5: even)")


def _by_group(only: Selection, by: str, rater: str | None) -> None:
    """A row a group, however many there are: the numbers that `metrics` prints, with their intervals."""
    rows = ask(metrics.metrics, by=("system", by), only=only, rater=rater, names=SHOWN)
    names = [name for name in SHOWN if any(row.metric == name and row.value is not None for row in rows)]
    cells: dict[tuple[str, str], dict[str, Number]] = {}
    for row in sorted(rows, key=lambda row: row.scoring or "", reverse=True):
        if row.group and row.participant is None:
            group = (row.group["system"] or "–", str(row.group[by] or "–"))
            cells.setdefault(group, {})[row.metric] = of_metric(row)
    words = st.text_input("Search groups", key="groups", bind="query-params").strip().lower()
    lines = tuple(
        (*group, *(own.get(name, "") for name in names))
        for group, own in sorted(cells.items())
        if words in " ".join(group).lower()
    )
    figures.table(
        Table(
            name="by_group",
            title=f"How the teams worked, by {by.replace('_', ' ')}",
            caption="Means or pooled shares with 95 % intervals; a number leads to its sessions.",
            columns=("System", by.replace("_", " ").capitalize(), *map(named, names)),
            rows=lines,
            heads=2,
            empty="No group has these words." if cells else "Nothing is here yet: run `coaudit ingest PATH`.",
        )
    )


def _initiative(only: Selection, by: str, rater: str | None) -> None:
    rows = [row for row in ask(queries.initiative, only, by) if row["rater"] == rater]

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_bar()
            .encode(
                x=alt.X("initiatives:Q", title="Utterances that take the initiative", stack="normalize"),
                y=alt.Y("group:N", title=None, axis=alt.Axis(labelLimit=220)),
                color=colour("party", "Party", PARTIES),
                tooltip=["group:N", "party:N", "initiatives:Q", "utterances:Q", "trajectories:Q"],
            )
        )

    figures.chart(
        "Initiative by party",
        rows,
        draw,
        key="initiative",
        alternative="Share of initiatives by party",
        note=f"{_sum(rows, 'utterances'):,} rated utterances, by {rater}.",
        metrics=("initiative_entropy",),
        empty="No utterance is rated: run `coaudit judge --codebook initiative`.",
    )


def _entropy(only: Selection, by: str, rater: str | None) -> None:
    rows = ask(queries.distribution, only, by, "initiative_entropy", 0.1, rater) if rater else []
    rows = _few(rows)

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_bar()
            .encode(
                x=alt.X("low:Q", title="Initiative entropy (0: one party alone, 1: even)").bin(
                    binned=True, step=0.1
                ),
                x2="high:Q",
                y=alt.Y("trajectories:Q", title="Trajectories"),
                color=colour("group", by.replace("_", " ").capitalize()),
                tooltip=["group:N", "low:Q", "trajectories:Q"],
            )
        )

    figures.chart(
        "Distribution of initiative entropy",
        rows,
        draw,
        key="entropy",
        alternative="Histogram of initiative entropy",
        metrics=("initiative_entropy",),
        note=f"n = {_sum(rows, 'trajectories'):,} trajectories in which it is defined, by {rater}.",
        empty="Undefined everywhere so far: run `coaudit judge --codebook initiative`.",
    )


def _course(only: Selection) -> None:
    rows = ask(queries.course, only)

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_bar()
            .encode(
                x=alt.X("part:O", title="Tenth of the session", axis=alt.Axis(labelAngle=0)),
                y=alt.Y("events:Q", title="Events"),
                color=colour("party", "Party", PARTIES),
                opacity=alt.Opacity(
                    "what:N",
                    title="Kind",
                    scale=alt.Scale(domain=["action", "message", "wait"], range=[1, 0.6, 0.3]),
                    legend=alt.Legend(orient="top"),
                ),
                tooltip=["part:O", "party:N", "what:N", "events:Q"],
            )
        )

    figures.chart(
        "Who acts when",
        rows,
        draw,
        key="course",
        alternative="Events by party along the session",
        note=f"{_sum(rows, 'events'):,} events; a session's events are cut into ten parts of equal length.",
        empty="No events yet: run `coaudit ingest PATH`.",
    )


def _moments(only: Selection, rater: str | None) -> None:
    rows = [row for row in ask(queries.moments, only) if row["rater"] == rater]
    for row in rows:
        row["rate"] = 100 * row["events"] / max(1, row["trajectories"])

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_line(point=True)
            .encode(
                x=alt.X("part:O", title="Tenth of the session", axis=alt.Axis(labelAngle=0)),
                y=alt.Y("rate:Q", title="Per 100 sessions"),
                color=colour("codebook", "What", {"confirmation": "#009E73", "halting": "#D55E00"}),
                strokeDash=alt.StrokeDash("codebook:N", legend=None),
                tooltip=["codebook:N", "part:O", "events:Q"],
            )
        )

    figures.chart(
        "Confirmations and halts along the session",
        rows,
        draw,
        key="moments",
        alternative="Confirmations and halts per hundred sessions along the session",
        note=f"{_sum(rows, 'events'):,} confirmations and halts, by {rater}.",
        metrics=("effective_confirmations", "halting_messages"),
        empty="Nothing is rated: run `coaudit judge --codebook confirmation --codebook halting`.",
    )


def _measure(only: Selection, by: str, metric: str, title: str, axis: str) -> None:
    rows = _few(ask(queries.distribution, only, by, metric, 0.1))
    if not rows:
        return

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_bar()
            .encode(
                x=alt.X("low:Q", title=axis).bin(binned=True, step=0.1),
                x2="high:Q",
                y=alt.Y("trajectories:Q", title="Trajectories"),
                color=colour("group", by.capitalize()),
            )
        )

    figures.chart(
        title,
        rows,
        draw,
        key=metric,
        alternative=f"Histogram of {metric}",
        metrics=(metric,),
        empty="",
        note=f"n = {_sum(rows, 'trajectories'):,} trajectories.",
    )


def _few(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The largest groups by themselves, the rest as one."""
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row["group"]] += row["trajectories"]
    if len(sizes) <= COLOURED:
        return rows
    large = {name for name, _ in sizes.most_common(COLOURED - 1)}
    kept = [row for row in rows if row["group"] in large]
    rest: dict[float, dict[str, Any]] = {}
    for row in (row for row in rows if row["group"] not in large):
        one = rest.setdefault(row["low"], {**row, "group": "all others", "trajectories": 0})
        one["trajectories"] += row["trajectories"]
    return [*kept, *rest.values()]


def _sum(rows: list[dict[str, Any]], name: str) -> int:
    return sum(row[name] for row in rows)
