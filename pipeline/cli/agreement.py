"""Commands on how far to trust what raters said: agreement, rates, compare, validate."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ...annotation.statistics.comparisons import SAME
from ...annotation.statistics.crowds import rater_names
from ...schemas import Agreement, Rate
from ...schemas.text import count_of
from .. import codebooks
from ..analyze import agreement as measuring
from ..analyze import compare as comparing
from ..analyze import people
from ..analyze import rates as estimating
from ..analyze import validate as validating
from ..analyze.matrix import group_name
from ..errors import UsageError
from ..report.trust import open_answers, with_left_out
from ..store import Selection
from .console import (
    Json,
    Where,
    emit,
    emit_rows,
    interval,
    number,
    price,
    say,
    selection,
    split,
    table,
    tell,
)
from .rated import rated_store

app = typer.Typer(rich_markup_mode=None)

Codebooks = Annotated[list[str] | None, typer.Option(help="Codebook; repeatable. Default: all with ratings.")]


def _first(only: Selection | None) -> str:
    """What to run where nothing is rated, in the sessions that count."""
    options = only.options() if only else ""
    return (
        f"{' in these sessions' if only else ''} yet: `coaudit judge{options}` asks a judge, "
        f"`coaudit sample --codebook NAME{options}` draws units for people"
    )


@app.command("agreement")
def agreement(
    ctx: typer.Context,
    codebook: Codebooks = None,
    ratings: Annotated[
        Path | None, typer.Option(help="Instead of a workspace: a CSV with columns unit, rater, label.")
    ] = None,
    labels: Annotated[str, typer.Option(help="With --ratings: all labels in their order, a,b,c.")] = "",
    level: Annotated[str, typer.Option(help="With --ratings: nominal, ordinal or interval.")] = "nominal",
    margins: Annotated[
        str,
        typer.Option(
            help="Margins of joint coefficients: paired units, or all rated units (Gwet's convention)."
        ),
    ] = "paired",
    disagreements: Annotated[
        bool, typer.Option("--disagreements", help="List the units on which raters disagree.")
    ] = False,
    where: Where = None,
    json: Json = False,
) -> None:
    """How far raters agree: people with people, judges with people, judges with judges."""
    names, population = codebook or [], measuring.margins_named(margins)
    if disagreements:
        here = rated_store(ctx)
        _report_disagreements(measuring.disagreements(here, names, only=selection(here, where)), json)
        return
    if ratings is None and (labels or level != "nominal"):
        raise UsageError(
            "--labels and --level are for --ratings FILE; in a workspace, the codebooks define them"
        )
    confusions: list[dict[str, Any]] = []
    only = None
    if ratings is not None:
        if where:
            raise UsageError("--where is no option of --ratings FILE, whose units are no sessions")
        rows = measuring.of_csv(ratings, split(labels), level, population)
    else:
        here = rated_store(ctx)
        only = selection(here, where)
        rows = measuring.of_workspace(here, names, population, only=only)
        confusions = measuring.confusions(here, names, only=only) if json else []
    if json:
        emit({"rows": [row.model_dump() for row in rows], "confusions": confusions})
        return
    if not rows:
        say(f"no unit has been rated by two raters{_first(only)}")
        return
    columns = ["code", "coefficient", "raters", "value", "95 %", "units", "ratings", "note"]
    titles = codebooks.titles((row.codebook, row.code) for row in rows)
    table("Agreement", columns, [_agreement_cells(row, titles[row.codebook, row.code]) for row in rows])


@app.command("rates")
def rates(
    ctx: typer.Context,
    codebook: Codebooks = None,
    by: Annotated[str, typer.Option(help="Comma-separated groups, as in `metrics`.")] = "",
    judge: Annotated[str | None, typer.Option(help="Only this judge.")] = None,
    where: Where = None,
    estimator: Annotated[
        str | None, typer.Option(help="Estimator, in place of the one that fits the design.")
    ] = None,
    labels: Annotated[
        str,
        typer.Option(
            help="How a unit's label is formed: mean of its annotators' labels, or by an annotator model, "
            "dawid-skene, or dawid-skene-judge with the judge as one more rater."
        ),
    ] = "mean",
    json: Json = False,
) -> None:
    """How common each code is: the judge's own rate beside the one corrected by people's labels."""
    here = rated_store(ctx)
    only = selection(here, where)
    rows = estimating.rates(
        here,
        codebook or [],
        by=split(by),
        judge=judge,
        estimator=estimator,
        labels=labels,
        only=only,
    )
    if json:
        emit_rows(row.model_dump() for row in rows)
        return
    if not rows:
        names = f" with {', '.join(codebook)}" if codebook else ""
        say(f"no rating{names} counts{_first(only)}")
        return
    open_ = open_answers(rows)
    columns = ["code", "of", "judge", "judge's", "rate", "95 %", "estimator"]
    columns += ["n human", *open_, "n judged", "note"]
    titles = codebooks.titles((row.codebook, row.code) for row in rows)
    table("Rates", columns, [_rate_cells(row, titles[row.codebook, row.code], open_) for row in rows])


@app.command("compare")
def compare(
    ctx: typer.Context,
    by: Annotated[str, typer.Option(help="What defines the groups: condition, agent_model, task, a tag ...")],
    metric: Annotated[list[str] | None, typer.Option(help="Only these metrics or codes; repeatable.")] = None,
    groups: Annotated[
        str,
        typer.Option(
            help="A,B: only these two groups, as A minus B; put a name with a comma in double quotes."
        ),
    ] = "",
    rater: Annotated[str | None, typer.Option(help="Whose ratings to use; default: each rater's.")] = None,
    correction: Annotated[
        str, typer.Option(help="Correction for multiple tests: holm or benjamini_hochberg.")
    ] = "holm",
    estimator: Annotated[
        str, typer.Option(help="Estimator of corrected rates: post_stratified or ppi.")
    ] = "post_stratified",
    penalty: Annotated[float, typer.Option(help="λ of the reward T - λC.", callback=price)] = 0.08,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Count sessions with the same value of this field or tag as one observation, and pair them "
            "across groups; person: those of the same people. Default: runs of one instance."
        ),
    ] = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """Differences between groups of a system: shared instances paired, judges corrected by people."""
    here = rated_store(ctx)
    only = selection(here, where)
    rows = comparing.compare(
        here,
        by,
        metrics=metric or [],
        rater=rater,
        correction=correction,
        estimator=estimator,
        penalty=penalty,
        pair=_pair(groups),
        cluster=cluster,
        only=only,
    )
    without, every = comparing.ungrouped(here, by, only=only)
    alone = 0 if cluster is None else comparing.ungrouped(here, cluster, only=only)[0]
    people_count, name = 0, None
    if cluster in (None, comparing.PERSON):
        people_count, name = comparing.repeated_people(here, cluster=cluster, only=only)
    if json:
        counts = {"without_group": without, "without_cluster": alone, "repeated_people": people_count}
        emit({"rows": rows, **counts})
        return
    for line in _statements(rows):
        tell(line)
    if without:
        say(f"{without} of {every} trajectories have no {by}: they are in no group")
    if alone:
        say(f"{alone} of {every} trajectories have no {cluster}: each counts as one observation")
    if people_count and cluster is None:
        say(
            f"{people_count:,} people (such as {name}) took part in several sessions, which count as "
            "independent here: `--cluster person` counts those of one person as one observation"
        )
    elif people_count:
        say(
            f"{people_count:,} people (such as {name}) took part in several teams, which count as "
            "independent here: only sessions of the same people are one observation"
        )
    crowds = comparing.crowd_questions(here) if rater is None else {}
    for name, count in crowds.items():
        say(f"{name}: {count} people rated a few units each: `--rater NAME` compares by one of them")
    if not rows:
        which = "trajectories" if only is None else "these trajectories"
        say(f"nothing to compare: within each system, all {which} have one {by}; try another --by")


def _statements(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each comparison; what two groups have the same is named in one line behind them."""
    same: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if row["effect"] == 0 and row["low"] is None and SAME in (row["reason"] or ""):
            of_system = "" if row["statement"].startswith(f"{row['subject']}: ") else f"{row['system']}: "
            own = same.setdefault((of_system, *row["groups"]), [])
            own.append(f"{row['subject']} {number(row['first'])}")
        else:
            yield row["statement"]
    for (of_system, first, second), names in same.items():
        yield f"{of_system}{SAME}, the same in {first} and {second}: {', '.join(names)}"


def _pair(groups: str) -> tuple[str, str] | None:
    """Two names from one line of CSV, where a name with a comma, or without letters, is in double quotes."""
    if not groups.strip():
        return None
    names = [name.strip() for name in next(csv.reader([groups], skipinitialspace=True))]
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError(f"--groups takes two names separated by a comma, got {groups!r}")
    return names[0], names[1]


@app.command("validate")
def validate(
    ctx: typer.Context,
    judge: Annotated[
        str | None,
        typer.Argument(help="The judge to compare with people; without one, people with each other."),
    ] = None,
    codebook: Codebooks = None,
    by: Annotated[str, typer.Option(help="Without a judge: groups, as in `metrics`.")] = "condition",
    margin: Annotated[float, typer.Option(help="ε of the alternative annotator test.")] = 0.2,
    previous: Annotated[
        str | None,
        typer.Option(help="Earlier version, NAME (VERSION), or another judge, to measure drift against."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print every coefficient, class and kind of error.")
    ] = False,
    where: Where = None,
    json: Json = False,
) -> None:
    """One page on a judge: its agreement with people beside people's own, errors, calibration, drift.

    For a codebook on participants or steps: the share of runs in which it marks the one that people marked.
    Without a judge: how far those who labelled agree, by code, over all codes and by group.
    """
    if judge is None:
        if previous or full:
            raise UsageError(f"{'--previous' if previous else '--full'} needs a judge, and none is named")
        here = rated_store(ctx)
        page = people.people(here, codebook or [], split(by), only=selection(here, where))
        if json:
            emit(page)
        else:
            tell(*people.lines(page))
        return
    if by != "condition":
        raise UsageError(f"--by {by} is for `validate` without a judge, got {judge}")
    here = rated_store(ctx)
    page = validating.validate(
        here, judge, codebook or [], margin=margin, previous=previous, only=selection(here, where)
    )
    if json:
        emit(page)
    elif full:
        tell(*validating.lines(page))
    else:
        _report_judge(validating.summary(page))


def _report_judge(summary: validating.Summary) -> None:
    tell(*summary.head)
    columns = ["code", "units", "kappa", "people's own", "sensitivity", "specificity", "may stand in"]
    if summary.rows:
        table("", columns, [list(row) for row in summary.rows])
    tell(*summary.foot)


def _report_disagreements(rows: list[dict[str, Any]], json: bool) -> None:
    if json:
        emit_rows(rows)
        return
    columns = ["trajectory", "event", "code", "labels"]
    cells = [
        [row["native_id"], _event(row["event"]), row["code"], _labels_text(row["labels"])] for row in rows
    ]
    table(count_of(len(rows), "disagreement", "disagreements"), columns, cells)


def _event(seq: int | None) -> str:
    return "" if seq is None else str(seq)


def _labels_text(labels: dict[str, str]) -> str:
    return ", ".join(f"{rater}: {label}" for rater, label in labels.items())


def _agreement_cells(row: Agreement, code: str) -> list[str]:
    values = [rater_names(row.raters, ", "), number(row.value), interval(row.low, row.high)]
    where = with_left_out(row.population or "", row.n_left_out).removeprefix("; ")
    note = "; ".join(text for text in (row.reason, where) if text)
    return [code, row.coefficient, *values, str(row.n_units), str(row.n_ratings), note]


def _rate_cells(row: Rate, code: str, open_: Mapping[str, Callable[[Rate], int]]) -> list[str]:
    group = group_name(row.group or {})
    values = [number(row.judge_rate), number(row.rate), interval(row.low, row.high), row.estimator or ""]
    sizes = [row.n_human, *(units(row) for units in open_.values()), row.n_judged]
    note = row.reason or row.design or ""
    return [code + row.suffix, group, row.judge or "", *values, *map(str, sizes), note]
