"""Process: who takes the initiative, who acts when, confirmations and halts along a session's course."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import altair as alt
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ...pipeline.analyze import metrics
from ...pipeline.analyze.counts import CODEBOOKS as RATED
from ...pipeline.report import Number, Table, build
from ...pipeline.report.names import metric_name
from ...pipeline.report.tables import figure, of_metric
from ...pipeline.store import Selection
from ...pipeline.store.queries.selection import NONE, name_of
from ...schemas import Metric
from .. import queries
from ..cache import ask
from ..drawing import choices, figures, groups
from ..drawing.palette import GREY, HEAT, PARTIES, colour
from .tables import raters

SHOWN = (
    "initiative_entropy",
    "effective_confirmations",
    "halting_messages",
    "human_intervention_rate",
    "error_rate",
    "workload_balance",
)
MEASURES = (
    ("human_intervention_rate", metric_name("human_intervention_rate"), "Share of steps by people", 1.0),
    ("workload_balance", "Workload balance", "Balance (0: one party alone, 0.5: even)", 0.5),
)
WIDTH = 0.1
"""Width of a bin of a measure."""
NOTES = 3
"""Most groups whose notes stand below a table."""
ROW = 22
"""Pixels of a group's row."""
FRAME = 150
"""Pixels of a legend, an axis and its title, which are drawn within a chart's height."""


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Process")
    left, right = st.columns(2)
    by = choices.one(left, "Compare by", ask(groups.fields), key="by")
    rater = _rater(right, only)
    arms = ask(queries.arms, only, by)
    titles = groups.titles(arms)
    names = groups.picked(list(titles.values()))
    _by_group(only, by, rater, {group for group, name in titles.items() if name in names})
    one, two = st.columns(2, gap="large")
    with one:
        rows = groups.titled(ask(queries.initiative, only, by), titles)
        _initiative([row for row in rows if row["rater"] == rater], rater, names)
        _course(only)
    with two:
        title = "Entropy (0: one party alone, 1: even)"
        rows = ask(queries.distribution, only, by, "initiative_entropy", WIDTH, rater) if rater else []
        rows = groups.titled(rows, titles)
        _spread(rows, names, "initiative_entropy", "Distribution of initiative entropy", title, 1.0)
        _moments(only, rater)
    for metric, title, axis, most in MEASURES:
        rows = groups.titled(ask(queries.distribution, only, by, metric, WIDTH), titles)
        if rows:
            _spread(rows, names, metric, title, axis, most)


def _rater(place: DeltaGenerator, only: Selection) -> str | None:
    """Whose ratings are shown: at first those that the tables and the report show."""
    names = ask(raters, only)
    if not names:
        return None
    rows = ask(metrics.metrics, by=build.AUDIT, only=only, names=tuple(RATED), every=True)
    first = build.best_rater(rows)
    index = names.index(first) if first in names else 0
    rater: str = choices.one(place, "Ratings by", names, key="rater", index=index)
    return rater


def _coverage(only: Selection, rater: str | None) -> str:
    """Who rated, and how much of what each process metric that they rated rests on."""
    if rater is None:
        return ""
    rows = ask(metrics.metrics, only=only, rater=rater, names=tuple(RATED))
    shares = {row.metric: row.answered or 0.0 for row in rows if row.rater == rater}
    listing = ", ".join(
        f"{metric_name(metric)} {Number(shares[metric], percent=True).text}"
        for metric in RATED
        if metric in shares
    )
    return f" Ratings by {rater}; share of each metric's units that are rated: {listing}." if listing else ""


def _by_group(only: Selection, by: str, rater: str | None, choice: Collection[tuple[str, str]]) -> None:
    """A row a group, of those in `choice` by system and name: the numbers that `metrics` prints, with their
    intervals."""
    every = ask(metrics.metrics, by=("system", by), only=only, rater=rater, names=SHOWN)
    rows_by_group: dict[tuple[str, str], list[Metric]] = {}
    for row in every:
        if row.group:
            group = (name_of(row.group["system"]), name_of(row.group[by]))
            if group[1] == NONE or (NONE if by == "system" else group[0], group[1]) in choice:
                rows_by_group.setdefault(group, []).append(row)
    rows = [row for own in rows_by_group.values() for row in own]
    with_value = {row.metric for row in rows if row.value is not None}
    # Where no group has a value, the cells say why.
    names = [name for name in SHOWN if name in (with_value or {row.metric for row in rows})]
    lines = tuple((*group, *_numbers(own, names)) for group, own in sorted(rows_by_group.items()))
    figures.table(
        Table(
            name="by_group",
            title="How the teams worked",
            caption="Means or pooled shares with 95 % intervals; click a number for its sessions."
            + _coverage(only, rater)
            + _notes(rows),
            columns=("System", by.replace("_", " ").capitalize(), *map(metric_name, names)),
            rows=lines,
            heads=2,
            empty="No group matches." if every else "No trajectories yet: run `coaudit ingest PATH`.",
        )
    )


def _numbers(rows: list[Metric], names: list[str]) -> list[Number | str]:
    """A group's numbers, one a metric: a system's own reading, else the first of several."""
    own = [row for row in rows if row.participant is None]
    cells = {
        row.metric: of_metric(row) for row in sorted(own, key=lambda row: row.scoring or "", reverse=True)
    }
    return [cells.get(name, "") for name in names]


def _notes(rows: list[Metric]) -> str:
    """Remarks of `metrics` on numbers that rest on part of the units, or that have a note."""
    notes = [
        f"{metric_name(row.metric)}, {' · '.join(map(name_of, (row.group or {}).values()))}: "
        f"{metrics.remark(row, figure)}"
        for row in rows
        if row.metric in RATED and (row.note or (row.answered is not None and row.answered < 1))
    ]
    more = f"; and {len(notes) - NOTES} more" if len(notes) > NOTES else ""
    return f" {'; '.join(notes[:NOTES])}{more}." if notes else ""


def _initiative(rater_rows: list[dict[str, Any]], rater: str | None, group_names: list[str]) -> None:
    rows = groups.gathered(rater_rows, group_names, ("party",), ("initiatives", "utterances", "trajectories"))
    order = groups.order(group_names, rows)
    total = f"{_sum(rows, 'utterances'):,} rated utterances"
    chart_rows = rows if _sum(rows, "initiatives") else []
    none = "No utterance is rated: run `coaudit judge --codebook initiative`."

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_bar()
            .encode(
                x=alt.X("initiatives:Q", title="Utterances that take the initiative", stack="normalize"),
                y=alt.Y("group:N", title=None, sort=order, axis=groups.axis(order)),
                color=colour("party", "Party", PARTIES),
                tooltip=["group:N", "party:N", "initiatives:Q", "utterances:Q", "trajectories:Q"],
            )
        )

    figures.chart(
        "Initiative by party",
        chart_rows,
        draw,
        key="initiative",
        height=FRAME + ROW * len({row["group"] for row in rows}),
        alternative="Share of initiatives by party",
        note=f"{total}, by {rater}.",
        metrics=("initiative_entropy",),
        empty=f"Nobody took the initiative in {total}." if rows else none,
    )


def _spread(
    rows: list[dict[str, Any]], group_names: list[str], metric: str, title: str, axis: str, most: float
) -> None:
    """How the trajectories of each group spread over a measure of 0 to `most`: a row a group."""
    bins = groups.gathered(rows, group_names, ("low", "high"), ("trajectories",))
    sizes = Counter[str]()
    for row in bins:
        sizes[row["group"]] += row["trajectories"]
    for row in bins:
        row["share"] = row["trajectories"] / sizes[row["group"]]
    order = groups.order([name for name in group_names if name in sizes], bins)

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_rect(color=HEAT)
            .encode(
                x=alt.X("low:Q", title=axis, scale=alt.Scale(domain=[0, most])).bin(binned=True, step=WIDTH),
                x2="high:Q",
                y=alt.Y("group:N", title=None, sort=order, axis=groups.axis(order)),
                opacity=alt.Opacity(
                    "share:Q",
                    title="Share of the group",
                    scale=alt.Scale(domain=[0, 1], range=[0.05, 1]),
                    legend=alt.Legend(orient="top", values=[0.2, 0.6, 1], format=".0%"),
                ),
                tooltip=["group:N", "low:Q", "trajectories:Q", alt.Tooltip("share:Q", format=".0%")],
            )
        )

    figures.chart(
        title,
        bins,
        draw,
        key=metric,
        height=FRAME + ROW * len(sizes),
        alternative=f"For each group the share of trajectories in each tenth of {metric}",
        metrics=(metric,),
        note=f"n = {_sum(bins, 'trajectories'):,} trajectories in which it is defined.",
        empty="Undefined everywhere so far: run `coaudit judge --codebook initiative`.",
    )


def _course(only: Selection) -> None:
    rows = ask(queries.course, only)

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_bar()
            .encode(
                x=_tenths(),
                y=alt.Y("events:Q", title="Events"),
                color=colour("party", "Party", PARTIES),
                opacity=alt.Opacity(
                    "what:N",
                    title="Kind",
                    # Of another scale only the first two strengths are the ends of its range.
                    scale=alt.Scale(
                        type="ordinal",
                        domain=["action", "message", "note", "wait"],
                        range=[1, 0.7, 0.45, 0.25],
                    ),
                    legend=alt.Legend(orient="top", **GREY),
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
        note=f"{_sum(rows, 'events'):,} events; each session is cut into ten equal parts.",
        empty="No events yet: run `coaudit ingest PATH`.",
    )


def _moments(only: Selection, rater: str | None) -> None:
    rows = with_quiet_parts([row for row in ask(queries.moments, only) if row["rater"] == rater])
    for row in rows:
        row["rate"] = 100 * row["events"] / row["trajectories"] / row["rated"]
    sessions = max((row["trajectories"] for row in rows), default=0)
    partly = any(row["rated"] < 1 for row in rows)
    most = {} if any(row["rate"] for row in rows) else {"domain": [0, 1]}
    more = "; unrated units are assumed to be like the others" if partly else ""

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_line(point=True)
            .encode(
                x=_tenths(),
                y=alt.Y("rate:Q", title="Per 100 sessions", scale=alt.Scale(**most)),
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
        note=f"{_sum(rows, 'events'):,} confirmations and halts, by {rater}, of {sessions:,} "
        f"session{'s' * (sessions != 1)} with messages and a human{more}.",
        metrics=("effective_confirmations", "halting_messages"),
        empty="Nothing is rated: run `coaudit judge --codebook confirmation --codebook halting`.",
    )


def _tenths() -> alt.X:
    """Every tenth of a session, those in which nothing happens too."""
    every = alt.Scale(domain=list(range(1, queries.PARTS + 1)))
    return alt.X("part:O", title="Tenth of the session", scale=every, axis=alt.Axis(labelAngle=0))


def with_quiet_parts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, and one of no events for each tenth of a session in which a codebook has none."""
    there = {(row["codebook"], row["part"]) for row in rows}
    first = {row["codebook"]: row for row in reversed(rows)}
    quiet = [
        {**row, "part": part, "events": 0}
        for codebook, row in first.items()
        for part in range(1, queries.PARTS + 1)
        if (codebook, part) not in there
    ]
    return sorted([*rows, *quiet], key=lambda row: (row["codebook"], row["part"]))


def _sum(rows: list[dict[str, Any]], name: str) -> int:
    return sum(row[name] for row in rows)
