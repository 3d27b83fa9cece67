"""Agreement: table 5 with intervals, confusion matrices, calibration, the disagreement queue, planning."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import altair as alt
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ...annotation.statistics.crowds import rater_names
from ...annotation.statistics.planning import kappa_half_width, units_for_kappa, units_for_rate
from ...pipeline.analyze import agreement, planning, validate
from ...pipeline.analyze.agreement import is_outside_samples
from ...pipeline.report import Number, Table, progress, trust
from ...pipeline.report.tables import figure
from ...pipeline.store import Selection
from ...schemas import Agreement, Need
from ...schemas.text import count_of
from ..cache import ask
from ..drawing import choices, figures, groups, lists, markup
from ..drawing.definitions import DEFINITIONS
from ..sidebar import address

SHOWN = {
    "cohen_kappa": "Cohen's κ",
    "mean_judge_human_kappa": "Cohen's κ of judge and people (mean)",
    "fleiss_kappa": "Fleiss' κ",
    "krippendorff_alpha": "Krippendorff's α",
    "gwet_ac1": "Gwet's AC1",
    "percent_agreement": "Observed agreement",
}
"""Coefficient -> its name on the page."""
QUICK = 300_000
QUEUE = 100
DRAWN = 40
"""Lines of a chart that a reader can follow."""
LONG = 20
"""Rows of a table beyond which it is folded away."""


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Agreement")
    rows = [row for row in ask(progress.coverage, only) if row["rater"] and (row["answers"] or row["errors"])]
    books = sorted({row["codebook"] for row in rows}, key=lambda book: (*_weight(rows, book), book))
    if not books:
        where = " of what the filters leave" if only else ""
        st.info(f"Nothing{where} is rated yet: run `coaudit judge`, then label a sample in Label Studio.")
        return
    left, right = st.columns(2)
    book = choices.one(left, "Codebook", books, key="codebook")
    answers = sum(row["answers"] or 0 for row in rows if row["codebook"] == book)
    slow = f"Compute from {answers:,} ratings (minutes)"
    if answers > QUICK and not right.toggle(slow, key="go", bind="query-params"):
        st.info(
            "This codebook has many ratings; switch the computation on above, or run `coaudit agreement`."
        )
        _plan(book, None)
        return
    result = ask(agreement.of_workspace, [book], only=only)
    coefficient = choices.one(
        right, "Coefficient", list(SHOWN), key="coefficient", title_of=SHOWN.__getitem__
    )
    _forest(result, coefficient)
    _table(result)
    judges = [row["rater"] for row in rows if row["codebook"] == book and row["kind"] != "human"]
    if judges:
        _judge(book, judges, only)
    _plan(book, only)
    _queue(book, only)


def _weight(rows: list[dict[str, Any]], book: str) -> tuple[bool, int]:
    """The page opens on a codebook that several raters answered, of these on the one with most of people's
    labels."""
    own_rows = [row for row in rows if row["codebook"] == book and row["answers"]]
    labels = sum(row["answers"] for row in own_rows if row["kind"] == "human")
    return len({row["rater"] for row in own_rows}) < 2, -labels


def _on_a_scale(result: list[Agreement], coefficient: str) -> str:
    """The coefficient as the table has it: a kappa of labels with an order has quadratic weights."""
    quadratic = f"{coefficient}_quadratic"
    return quadratic if any(row.coefficient == quadratic for row in result) else coefficient


def _forest(result: list[Agreement], coefficient: str) -> None:
    name = _on_a_scale(result, coefficient)
    rows: list[dict[str, Any]] = [
        {
            "code": row.code,
            "raters": rater_names(row.raters, " · "),
            "value": row.value,
            "low": row.low,
            "high": row.high,
            "units": row.n_units,
        }
        for row in result
        if row.coefficient == name and row.value is not None and not is_outside_samples(row)
    ]
    several = len({row["code"] for row in rows}) > 1
    if several:
        sets = sorted({str(row["raters"]) for row in rows})
        with_people = {
            rater_names(row.raters, " · ") for row in result if row.coefficient == "mean_judge_human_kappa"
        }
        sets.sort(key=lambda names: (names not in with_people, names))
        raters = choices.one(st, "Raters", sets, key="among")
        rows = [row for row in rows if row["raters"] == raters]
    notes = ["0 is chance, 1 is perfect."] if coefficient != "percent_agreement" else []
    notes.append(f"n = {figures.span(row['units'] for row in rows)} units.")
    if name != coefficient:
        notes.append("Near misses on the scale count less than far ones (quadratic weights).")
    if not several and len(rows) > DRAWN:
        notes.append(f"The {DRAWN} of {len(rows)} with the most units; `coaudit agreement` prints all.")
        rows = sorted(rows, key=lambda row: row["units"], reverse=True)[:DRAWN]
    scale = alt.Scale(domain=[0 if coefficient == "percent_agreement" else -1, 1])

    def draw(data: alt.Data) -> alt.Chart:
        field = "code" if several else "raters"
        axis = groups.axis([row[field] for row in rows], pixels=360)
        y = alt.Y(f"{field}:N", title=None, sort=None, axis=axis)
        base = alt.Chart(data).encode(y=y)
        lines = base.mark_bar(height=2, color="#0072B2", aria=False).encode(
            x=alt.X("low:Q", title=f"{SHOWN[coefficient]}, with 95 % interval", scale=scale), x2="high:Q"
        )
        points = base.mark_point(filled=True, size=60, opacity=1, color="#0072B2").encode(
            x="value:Q", tooltip=["code:N", "raters:N", "value:Q", "low:Q", "high:Q", "units:Q"]
        )
        return lines + points

    figures.chart(
        "Agreement by code" if several else "Agreement by raters",
        rows,
        draw,
        key="forest",
        alternative="Agreement with intervals",
        height=100 + 22 * len(rows),
        metrics=(coefficient,) if coefficient in DEFINITIONS else (),
        note=" ".join(notes),
        empty=f"{SHOWN[coefficient]} is undefined here: the table below says why, and has the others."
        if result
        else "No unit was rated by two raters: label some in Label Studio.",
    )


def _table(rows: list[Agreement]) -> None:
    """Table 5; folded away where the codebook has many codes."""
    table = trust.agreement_table(rows)
    metrics = ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1")
    with _fold("All coefficients of every code", len(table.rows)):
        figures.table(table, metrics=metrics, links=False)


def _fold(title: str, rows: int) -> DeltaGenerator:
    """What holds a table, closed where that is long."""
    return st.container() if rows <= LONG else st.expander(f"{title} ({count_of(rows, 'row', 'rows')})")


def _judge(book: str, judges: list[str], only: Selection) -> None:
    st.header("A judge against people's labels")
    left, right = st.columns(2)
    judge = choices.one(left, "Judge", judges, key="judge")
    page = ask(validate.validate, judge, [book], only=only)
    codes = {code["code"]: code for code in page["codes"] if code["n_both"]}
    if not codes:
        st.info("People have labelled none of its units yet: `coaudit labelstudio` sends them a sample.")
        return
    code = codes[choices.one(right, "Code", list(codes), key="judged")]
    one, two = st.columns(2, gap="large")
    with one:
        _confusion(code)
    with two:
        _calibration(code)


def _confusion(code: dict[str, Any]) -> None:
    labels, counts = code["confusion"]["labels"], code["confusion"]["counts"]
    total = sum(map(sum, counts)) or 1
    both, errors, is_outside_samples = code["n_both"], code["n_errors"], code["outside_the_samples"]
    more = round(sum(map(sum, is_outside_samples["counts"]))) if is_outside_samples else 0
    table = Table(
        name="confusion",
        title="Confusion",
        caption=f"n = {both:,} unit{'s' * (both != 1)} labelled by both"
        f"{f', within the samples; {more:,} outside them are not counted here' if more else ''}"
        f"{f'; on {errors:,} more the judge failed' if errors else ''}. Units are not weighted; one that "
        "people label differently counts in part for each of their labels.",
        columns=("People", *(f"Judge: {label}" for label in labels)),
        rows=tuple(
            (label, *(Number(n / total, n=n, percent=True) for n in row))
            for label, row in zip(labels, counts, strict=True)
        ),
        shaded=True,
    )
    figures.table(table, links=False)


def _calibration(code: dict[str, Any]) -> None:
    result = code["calibration"]
    rows = [row for row in result.get("bins", []) if row["n"]]
    if not rows:
        st.header("Calibration")
        why = result.get("reason") or "this judge states no probabilities"
        st.info(f"{why[0].upper()}{why[1:]}.")
        return

    def draw(data: alt.Data) -> alt.Chart:
        ends = alt.Data(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}])
        diagonal = alt.Chart(ends).mark_line(strokeDash=[4, 4], color="#999999").encode(x="x:Q", y="y:Q")
        points = (
            alt.Chart(data)
            .mark_point(filled=True, color="#0072B2")
            .encode(
                x=alt.X("predicted:Q", title="Stated probability", scale=alt.Scale(domain=[0, 1])),
                y=alt.Y("observed:Q", title="Share that people confirm", scale=alt.Scale(domain=[0, 1])),
                size=alt.Size("n:Q", title="Units", legend=None),
            )
        )
        return diagonal + points

    figures.chart(
        "Calibration",
        rows,
        draw,
        key="calibration",
        alternative="Stated probability against confirmed share",
        metrics=("calibration",),
        note=f"n = {figure(sum(row['n'] for row in rows), whole=True)} units. Expected calibration error "
        f"{result['ece']:.3f}; by chance, correct probabilities would have {result['ece_by_chance']:.3f} on "
        "so many units. A larger point has more units.",
        empty="",
    )


def _queue(book: str, only: Selection) -> None:
    rows = ask(agreement.disagreements, [book], only=only)
    st.header("Disagreements to discuss")
    if not rows:
        st.info("No two raters disagree on a unit of this codebook.")
        return
    lines = "".join(map(_disagreement, rows[:QUEUE]))
    heads = "".join(
        f'<th scope="col" class="head">{name}</th>'
        for name in ("Code", "Between", "Trajectory", "Event", "Labels", "Settled")
    )
    frame = '<div class="ca" tabindex="0" role="group" aria-label="Disagreements to discuss">'
    st.html(f"{frame}<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>")
    flat = [{**row, "labels": ", ".join(f"{k}: {v}" for k, v in row["labels"].items())} for row in rows]
    note = f"{min(QUEUE, len(rows)):,} of {len(rows):,} shown."
    figures.below(note, f"disagreements-{book}", lambda: figures.to_csv(flat))


def _disagreement(row: dict[str, Any]) -> str:
    place = address("trajectory", trajectory=row["trajectory"], event=row["event"], code=row["code"])
    event = "whole" if row["event"] is None else str(row["event"])
    labels = ", ".join(f"{markup.name(who)}: {markup.safe(label)}" for who, label in row["labels"].items())
    cells = (
        markup.safe(row["code"]),
        row["between"],
        markup.link(place, lists.short(row["native_id"])),
        event,
        f'<div class="words">{labels}</div>',
        markup.safe(row["gold"] or "open"),
    )
    columns = "".join(f'<td class="head">{cell}</td>' for cell in cells)
    return f"<tr>{columns}</tr>"


def _plan(book: str, only: Selection | None) -> None:
    """How many units people must label: by the labels of a selection, without any or without a selection for
    a code as common as somebody expects."""
    st.header("How many more labels")
    pace = [row["seconds"] for row in ask(progress.pace) if row["codebook"] == book]
    columns = st.columns(3)
    width = columns[0].number_input("Wanted half-width", 0.01, 0.5, 0.1, 0.01, key="width")
    if only is not None and (needs := ask(planning.needs, [book], width, only=only)):
        _after_labels(needs, pace)
    else:
        _before_labels(columns, width, pace)


def _after_labels(needs: Sequence[Need], pace: list[float]) -> None:
    """How many units it takes by the labels there are; `pace` has each person's median seconds for one."""
    open_needs = [row for row in needs if row.more != 0]
    if open_needs:
        with _fold("Figures that need more", len(open_needs)):
            st.html(markup.drawn(trust.needs_table(open_needs), lambda cell: None))
    table = trust.needs_table(needs)
    enough = f"{len(needs) - len(open_needs)} of {len(needs)} figures need no more."
    note = f"{enough} {table.caption} {_pace(pace)}"
    figures.below(note, table.name, lambda: figures.to_csv(figures.records(table)))


def _before_labels(columns: Sequence[DeltaGenerator], width: float, pace: list[float]) -> None:
    """The same for a code as common as somebody expects, with hours."""
    common = columns[1].number_input("How common the code is", 0.01, 0.99, 0.2, 0.01, key="common")
    kappa = columns[2].number_input("Expected κ", 0.0, 0.99, 0.6, 0.05, key="kappa")
    both, alone = units_for_kappa(width, common, kappa), units_for_rate(width, common)
    st.text(
        f"κ ± {width:g} takes {both:,} units labelled by two raters "
        f"(100 units give ± {kappa_half_width(100, common, kappa):.2f}).\n"
        f"A rate ± {width:g} by people alone takes {alone:,} labelled units; "
        "a good judge beside them needs fewer."
    )
    if pace:
        each = median(pace)
        st.text(
            f"{_pace(pace)} That is {2 * both * each / 3600:.1f} hours for κ by two, "
            f"{alone * each / 3600:.1f} for the rate."
        )


def _pace(pace: list[float]) -> str:
    """How long people take for a unit, where that was measured."""
    if not pace:
        return ""
    return f"People take {median(pace):.0f} s per unit (median of {len(pace)}, as measured in the browser)."
