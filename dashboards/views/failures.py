"""Failures: the taxonomy, or another codebook of trajectories, as a heatmap, real beside simulated,
co-occurrence, sources, change over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import altair as alt
import streamlit as st

from ...pipeline.analyze import failures, rates
from ...pipeline.report import Number, Table, answers, modes, trust
from ...pipeline.report.tables import column_names, free_name
from ...pipeline.store import Selection, Store
from .. import queries
from ..cache import ask
from ..drawing import choices, days, figures, groups
from ..drawing.palette import COLOURS, HEAT, SETTINGS, SOURCES, colour

BOTH = "setting and condition"
MANY = 8
"""Groups up to which they stand side by side as columns; more are rows."""
LINES = len(COLOURS) + 1
"""Lines of a chart that have a colour each."""
QUICK = 300_000
"""Up to so many ratings, corrected rates are computed without being asked for."""


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Failures")
    books = ask(failures.books, only)
    if not books:
        answer = ask(answers.failure, only)
        st.info(" ".join((*answer.sentences, f"Run `{answer.further}`." if answer.further else "")))
        return
    book = failures.FAILURES
    if books != [book]:
        book = choices.one(st, "Codebook", books, key="codebook")
    if failures.FAILURES not in books:
        further = ask(answers.failure, only).further
        st.caption("Nothing is rated with failures" + (f": run `{further}`." if further else "."))
    raters = ask(failures.raters, book, only)
    left, right = st.columns(2)
    names = [row["rater"] for row in raters]
    rater = choices.one(left, "Found by", names, key="found_by")
    fields = ask(groups.fields)
    both = free_name(BOTH, {*fields})
    by = choices.one(right, "Compare by", [fields[0], both, *fields[1:]], key="by")
    row = next(row for row in raters if row["rater"] == rater)
    correct = _to_correct(row)
    keys = ("setting", "condition") if by == both else (by,)
    heatmap = ask(modes.failures, only, codebook=book, rater=rater, by=keys, correct=correct)
    _heatmap(heatmap)
    names = [str(row[0]) for row in heatmap.rows]
    category_of = {(s.code, s.category) for s in ask(failures.shares, codebook=book, only=only)}
    rated_codes = {code for code, category in category_of if category is not None}
    codes = [name for name in dict.fromkeys(names) if name in rated_codes]
    _settings(only, book, rater, codes)
    if correct and row["kind"] != "human":
        figures.table(ask(corrected, only, book, rater), metrics=("failure rate",), links=False)
    kinds = {category if category is None else bool(category) for _, category in category_of}
    part = " or ".join([*["category"] * (None in kinds), *["code"] * (False in kinds)])
    if heatmap.heads < 3:  # the codebook names no sources
        _over_time(only, book, rater, part)
    else:
        one, two = st.columns(2, gap="large")
        with one:
            _sources(only, book, rater, names, by_rule=row["kind"] == "rule")
        with two:
            _over_time(only, book, rater, part)
    _together(only, book, rater, codes)


def _heatmap(heatmap: Table) -> None:
    """A number a cell; few groups are columns, many are rows, the largest in front."""
    titles = {str(row[0]): f"{row[0]} {row[1]}" for row in heatmap.rows}
    names = column_names(heatmap)[heatmap.heads :]
    if len(names) <= MANY + 1:
        figures.table(heatmap, metrics=("failure rate",), titles=titles)
        return
    columns = {
        name: [row[heatmap.heads + column] for row in heatmap.rows] for column, name in enumerate(names)
    }
    sizes = {
        name: max((cell.n or 0) for cell in cells if isinstance(cell, Number))
        for name, cells in columns.items()
    }
    total, *rest = names
    group_names = groups.picked(sorted(rest, key=lambda name: -sizes[name]))
    lines = tuple((name, *columns[name]) for name in (total, *group_names))
    transpose = replace(
        heatmap, columns=("Group", *(str(row[0]) for row in heatmap.rows)), rows=lines, heads=1
    )
    figures.table(transpose, metrics=("failure rate",), titles=titles)


def _settings(only: Selection, book: str, rater: str, codes: list[str]) -> None:
    every = [
        share
        for share in ask(failures.shares, by=("system", "setting"), codebook=book, only=only)
        if share.rater == rater and share.category is not None and share.group[1] in SETTINGS
    ]
    by_system = [share for share in every if share.n]
    systems = _of_both(by_system)
    rows = [
        {
            "code": share.code,
            "setting": share.group[0],
            "rate": share.rate,
            "low": share.interval[0],
            "high": share.interval[1],
            "trajectories": share.n,
        }
        for both in sorted({*systems.values()}) or [()]
        for share in ask(
            failures.shares,
            by=("setting",),
            codebook=book,
            only=replace(only, system=both) if both else only,
        )
        if share.rater == rater and share.n and share.category is not None and share.group[0] in SETTINGS
        if systems.get(share.code, ()) == both
    ]
    absent = {share.code for share in by_system} - {row["code"] for row in rows}
    unanswered = f"{rater} gave no usable answer on sessions known to be real or simulated."
    unsaid = "No trajectory says whether its user was real: run `coaudit ingest PATH --setting real`."

    def draw(data: alt.Data) -> alt.Chart:
        base = alt.Chart(data).encode(
            y=alt.Y("code:N", title=None, sort=codes, axis=alt.Axis(labelOverlap=False)),
            yOffset=alt.YOffset("setting:N", scale=alt.Scale(paddingOuter=0.3)),
            color=colour("setting", "Setting", SETTINGS, rows),
        )
        lines = base.mark_bar(height=2, aria=False).encode(
            x=alt.X("low:Q", title="Share of trajectories, with 95 % interval", axis=alt.Axis(format="%")),
            x2="high:Q",
        )
        points = base.mark_point(filled=True, size=55, opacity=1).encode(
            x="rate:Q",
            tooltip=["code:N", "setting:N", alt.Tooltip("rate:Q", format=".1~%"), "trajectories:Q"],
        )
        return lines + points

    figures.chart(
        _settings_title({str(row["setting"]) for row in rows}),
        rows,
        draw,
        key="settings",
        metrics=("failure rate",),
        height=min(640, 150 + 40 * len({row["code"] for row in rows})),
        alternative="Rates of each failure mode by setting, real or simulated, with intervals",
        note=f"Found by {rater}, with 95 % intervals; runs of one instance are not taken for independent."
        f"{_sizes(rows)}{_systems(systems, rows)}{_not_drawn(absent, codes)}",
        empty=unanswered if every else unsaid,
    )


def _settings_title(settings: Collection[str]) -> str:
    """What stands beside what; of one setting alone nothing does."""
    alone = len(settings) == 1
    return f"{next(iter(settings)).capitalize()} sessions alone" if alone else "Real beside simulated"


def _of_both(shares: list[failures.Share]) -> dict[str, tuple[str, ...]]:
    """Code -> the systems in which both real and simulated sessions are rated on it: of others a difference
    would be one of systems."""
    settings: dict[tuple[str, str], set[str]] = {}
    for share in shares:
        system, setting = share.group
        settings.setdefault((share.code, system), set()).add(setting)
    systems: dict[str, tuple[str, ...]] = {}
    for (code, system), own in sorted(settings.items()):
        if own == {*SETTINGS}:
            systems[code] = (*systems.get(code, ()), system)
    return systems


def _systems(systems: dict[str, tuple[str, ...]], rows: list[dict[str, Any]]) -> str:
    """Which systems the rates are of."""
    together = {
        both: " and ".join(both) + " together" * (len(both) > 1) for both in sorted({*systems.values()})
    }
    if len(together) == 1:
        ((both, names),) = together.items()
        verb = "systems that have" if len(both) > 1 else "system that has"
        return f" Of {names}, the {verb} both."
    if together:
        parts = (
            f"of {names} ({', '.join(code for code, own in systems.items() if own == both)})"
            for both, names in together.items()
        )
        return f" Each code is of the systems that have both: {'; '.join(parts)}."
    if len({row["setting"] for row in rows}) < 2:
        return ""
    return " No system has both: a difference between settings is one between systems, too."


def _not_drawn(absent: set[str], codes: list[str]) -> str:
    """Codes that no system has in both settings, where it has others."""
    names = [code for code in codes if code in absent]
    return f" Not drawn, as no system is rated on them in both: {', '.join(names)}." if names else ""


def _sizes(rows: list[dict[str, Any]]) -> str:
    """On how many trajectories the rates of each setting rest."""
    sizes = {
        setting: [row["trajectories"] for row in rows if row["setting"] == setting] for setting in SETTINGS
    }
    parts = [f"{figures.span(own)} {setting}" for setting, own in sizes.items() if own]
    return f" n = {', '.join(parts)}." if parts else ""


def corrected(store: Store, only: Selection, book: str, rater: str) -> Table:
    """The judge's rate and the corrected one of every mode and category of the selection, with the design."""
    return trust.rate_table(rates.rates(store, [book], judge=rater, only=only))


def _to_correct(row: dict[str, Any]) -> bool:
    """Whether a judge's rates are to be corrected: at once, or on a large store when somebody asks for it."""
    if row["kind"] == "human" or row["answers"] <= QUICK:
        return True
    name = f"Correct with people's labels ({row['answers']:,} ratings)"
    return bool(st.toggle(name, key="corrected", bind="query-params"))


def _sources(only: Selection, book: str, rater: str, codes: list[str], *, by_rule: bool) -> None:
    rows = ask(failures.sources, rater, codebook=book, only=only)
    whose = (
        "Each mode's usual source, by the codebook"
        if by_rule
        else f"Source as judged by {rater} in each finding"
    )

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_bar()
            .encode(
                x=alt.X("findings:Q", title="Findings", axis=alt.Axis(tickMinStep=1, format=",d")),
                y=alt.Y("category:N", title=None, sort=codes),
                color=colour("error_source", "Source", SOURCES, rows),
                tooltip=["code:N", "error_source:N", "findings:Q"],
            )
        )

    figures.chart(
        "Where failures come from",
        rows,
        draw,
        key="sources",
        alternative="Findings by category and source",
        note=f"{whose}: language model, scaffolding, or both.",
        empty="Nothing was found.",
    )


def _over_time(only: Selection, book: str, rater: str, part: str) -> None:
    """`part`: what a line is of, a category, or a code that has none; of many, those found most."""
    rows = ask(queries.over_time, only, rater, book)
    counts = Counter[str]()
    for row in rows:
        counts[row["category"]] += row["present"]
    lines = {name for name, _ in counts.most_common(LINES)}
    rows = [row for row in rows if row["category"] in lines]
    most = f" The {LINES} found most of {len(counts)}." if len(counts) > LINES else ""
    for row in rows:
        row["rate"] = row["present"] / row["trajectories"]
    sizes = f"n = {figures.span(row['trajectories'] for row in rows)}"

    def draw(data: alt.Data) -> alt.Chart:
        return (
            alt.Chart(data)
            .mark_line(point=True)
            .encode(
                x=days.axis("week", "Week of the session", rows),
                y=alt.Y("rate:Q", title="Share of trajectories", axis=alt.Axis(format="%")),
                color=colour("category", part.capitalize()),
                tooltip=[
                    days.tooltip("week", "Week"),
                    "category:N",
                    alt.Tooltip("rate:Q", format=".1~%"),
                    "trajectories:Q",
                ],
            )
        )

    figures.chart(
        "Change over time",
        rows,
        draw,
        key="time",
        legend="category",
        alternative=f"Rate of each {part} by week",
        metrics=("failure rate",),
        note=f"{sizes} trajectories a week and {part}, of all systems that the filters leave. "
        f"To compare versions, tag them at ingest (`--tag version=…`) and filter.{most}",
        empty="Undefined: no session with a time has an answer"
        + (" to all modes of a category." if "category" in part else "."),
    )


def _together(only: Selection, book: str, rater: str, codes: list[str]) -> None:
    rows = ask(failures.code_pairs, rater, codebook=book, only=only)
    for row in rows:
        if codes.index(row["code"]) > codes.index(row["other"]):
            row["code"], row["other"] = row["other"], row["code"]
        row["overlap"] = row["shared"] / row["either"]

    def draw(data: alt.Data) -> alt.Chart:
        across, down = alt.Axis(labelAngle=-90, labelOverlap=False), alt.Axis(labelOverlap=False)
        return (
            alt.Chart(data)
            .mark_rect(color=HEAT)
            .encode(
                x=alt.X("other:N", title=None, sort=codes, axis=across),
                y=alt.Y("code:N", title=None, sort=codes, axis=down),
                opacity=alt.Opacity(
                    "overlap:Q",
                    title="Overlap",
                    scale=alt.Scale(domainMin=0, range=[0.05, 1]),
                    legend=alt.Legend(format="~%"),
                ),
                tooltip=[
                    *("code:N", "other:N", "shared:Q", "either:Q"),
                    alt.Tooltip("overlap:Q", format=".2~p"),
                ],
            )
        )

    figures.chart(
        "What occurs together",
        rows,
        draw,
        key="together",
        height=min(520, 120 + 40 * len({row["code"] for row in rows})),
        alternative="Overlap of each pair of failure modes",
        note="Of the trajectories with either mode, the share with both (Jaccard).",
        empty="No trajectory has two failures.",
    )
