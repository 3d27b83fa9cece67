"""Live and cost: running sessions, alarms, the model server, and tokens and money by judge and day."""

from __future__ import annotations

from typing import Any

import altair as alt
import streamlit as st

from ...pipeline.analyze import load as loads
from ...pipeline.report import Number, Table
from ...pipeline.report.tables import count
from ...pipeline.store import Selection
from .. import queries
from ..cache import ask
from ..drawing import figures, groups, lists, markup
from ..drawing.palette import colour, room
from ..sidebar import address


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Live and cost")
    _running(ask(queries.unfinished, only))
    _alarms(ask(queries.alarms, only))
    _serving(ask(queries.serving, only), ask(queries.under_load, only))
    rows = ask(queries.spending, only)
    figures.table(_totals(rows), links=False)
    one, two = st.columns(2, gap="large")
    with one:
        _by_day(
            rows, "cost_usd", "US$", "Cost of judging by day", "No judge that ran so far has a known price."
        )
    with two:
        empty = "No judge that ran so far reports tokens (rules need none)."
        _by_day(rows, "prompt_tokens", "Prompt tokens", "Prompt tokens by day", empty)
    _team(ask(queries.tokens, only))


def _running(rows: list[dict[str, Any]]) -> None:
    st.header("Sessions without an end")
    if not rows:
        st.info(
            "No Co-Gym session lacks its end; other logs do not say. "
            "To watch sessions while they run: `coaudit follow DIR`."
        )
        return
    st.html(lists.listed(rows, lambda row: address("trajectory", trajectory=row["id"])))
    st.html(
        markup.sentence(f"{len(rows):,} of {rows[0]['total']:,} shown, the most recently heard from first.")
    )


def _alarms(rows: list[dict[str, Any]]) -> None:
    st.header("Halts and detected failures")
    if not rows:
        st.info("None found. `coaudit judge` and `coaudit judge --rater detectors` look for them.")
        return
    st.html(lists.listed(rows, lambda row: address("trajectory", trajectory=row["id"], event=row["event"])))
    st.html(
        markup.sentence(f"{len(rows):,} of {rows[0]['total']:,} shown, from the sessions that began last.")
    )


def _serving(scrapes: list[dict[str, Any]], under_load: list[dict[str, Any]]) -> None:
    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_line()
            .encode(
                x=alt.X("utc:T", title="Time (UTC)"),
                y=alt.Y("value:Q", title="Requests; share of the KV cache"),
                color=colour("what", "Model server"),
                tooltip=["utc:T", "what:N", "value:Q"],
            )
        )

    figures.chart(
        "The model server behind the sessions",
        scrapes,
        draw,
        key="serving",
        alternative="Requests running and waiting, and KV cache in use, over time",
        empty="No server was watched: `coaudit follow ... --metrics URL` scrapes vLLM's.",
    )
    if under_load:
        figures.table(_by_load(under_load), links=False)


def _by_load(rows: list[dict[str, Any]]) -> Table:
    result = {(row["metric"], row["group"]["load"]): row for row in rows}

    def cell(metric: str, load: str) -> Number:
        row = result.get((metric, load), {"value": None, "n": 0, "missing": 0})
        why = "not observed under this load"
        return Number(row["value"], n=int(row["n"]), missing=int(row["missing"]), reason=why)

    metrics = sorted({row["metric"] for row in rows})
    return Table(
        name="under_load",
        title="Behaviour by load of the model server",
        caption="Idle: no requests. Busy: requests are running. Queue: requests are waiting.",
        columns=("Metric", *(load.capitalize() for load in loads.LOADS)),
        rows=tuple((metric, *(cell(metric, load) for load in loads.LOADS)) for metric in metrics),
    )


def _totals(rows: list[dict[str, Any]]) -> Table:
    raters = sorted({row["rater"] for row in rows})
    return Table(
        name="spending",
        title="What judging took",
        caption="All that was asked counts, repeated and replaced answers too. Cached is the share of prompt "
        "tokens that the server had in its prefix cache.",
        columns=(
            "Judge",
            "Answers",
            "Errors",
            "Prompt tokens",
            "Cached",
            "Completion tokens",
            "US$",
            "Seconds",
        ),
        rows=tuple(_total(rater, [row for row in rows if row["rater"] == rater]) for rater in raters),
        empty="No judge has rated yet: run `coaudit judge`.",
    )


def _total(rater: str, rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    def total(name: str) -> float | None:
        values = [row[name] for row in rows if row[name] is not None]
        return sum(values) if values else None

    prompt, cached = total("prompt_tokens"), total("cached_tokens")
    share = Number(cached / prompt, percent=True, plain=True) if prompt and cached is not None else "–"
    names = ("answers", "errors", "prompt_tokens", "completion_tokens", "cost_usd", "seconds")
    answers, errors, first, completion, cost, seconds = (count(total(name)) for name in names)
    return (rater, answers, errors, first, share, completion, cost, seconds)


def _by_day(rows: list[dict[str, Any]], field: str, axis: str, title: str, empty: str) -> None:
    chart_rows = [row for row in rows if row[field] is not None]

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_bar()
            .encode(
                x=alt.X("day:O", title="Day", axis=alt.Axis(labelAngle=-45)),
                y=alt.Y(f"{field}:Q", title=axis),
                color=colour("rater", "Judge", rows=chart_rows),
                tooltip=["day:O", "rater:N", f"{field}:Q", "answers:Q"],
            )
        )

    figures.chart(
        title,
        chart_rows,
        draw,
        key=field,
        legend="rater",
        alternative=f"{axis} by judge and day",
        empty=empty,
    )


def _team(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row["each"] = row["prompt_tokens"] / max(1, row["trajectories"])
        row["who"] = f"{row['party']}: {row['model']}"

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_bar()
            .encode(
                x=alt.X("each:Q", title="Prompt tokens per session"),
                y=alt.Y("who:N", title=None, axis=alt.Axis(labelLimit=room(260))),
                color=colour("condition", "Condition", groups.colours(), rows),
                yOffset="condition:N",
                tooltip=["who:N", "condition:N", "each:Q", "trajectories:Q"],
            )
        )

    figures.chart(
        "What the teams themselves used",
        rows,
        draw,
        key="tokens",
        legend="condition",
        alternative="Prompt tokens per session by model",
        note="From the sessions' own logs.",
        empty="No log says how many tokens its models used.",
    )
