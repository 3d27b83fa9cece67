"""Commands that report: metrics, agreement, rates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coaudit.pipeline.commands.context import Commands, Groups, Json, emit, number, split, store, table

if TYPE_CHECKING:
    from coaudit.schemas.metric import Agreement, Rate

GROUPS = ("system", "setting", "condition", "task", "instance", "agent", "agent_model")


def metrics(
    by: Annotated[str, typer.Option(help=f"Comma-separated: {', '.join(GROUPS)}, or a tag.")] = "",
    per: Annotated[str | None, typer.Option(help="`trajectory`: one row a trajectory.")] = None,
    rater: Annotated[
        str | None, typer.Option(help="Whose ratings to use; else gold where complete, else each.")
    ] = None,
    definition: Annotated[str, typer.Option(help="released or paper, where they differ.")] = "released",
    penalty: Annotated[float, typer.Option(help="λ of the reward T - λC.")] = 0.08,
    json: Json = False,
) -> None:
    """The papers' metrics with their intervals, over all or by group."""
    from coaudit.pipeline import metrics as measuring

    rows = measuring.metrics(
        store(),
        by=split(by),
        per_trajectory=measuring.checked_per(per),
        rater=rater,
        definition=measuring.checked_definition(definition),
        penalty=penalty,
    )
    if json:
        emit({"rows": [row.model_dump(exclude_unset=True) for row in rows]})
        return
    columns = ["metric", "of", "rater", "value", "95 %", "n", "missing", "why null"]
    table("Metrics", columns, [measuring.cells(row, number) for row in rows])


def agreement(
    codebook: Annotated[
        list[str] | None, typer.Option(help="Codebook; repeatable. Else all with ratings.")
    ] = None,
    ratings: Annotated[
        Path | None, typer.Option(help="A long CSV (unit,rater,label) in place of the workspace.")
    ] = None,
    labels: Annotated[str, typer.Option(help="With --ratings: the declared labels in order, a,b,c.")] = "",
    level: Annotated[str, typer.Option(help="With --ratings: nominal, ordinal or interval.")] = "nominal",
    disagreements: Annotated[
        bool, typer.Option("--disagreements", help="List the units to discuss.")
    ] = False,
    json: Json = False,
) -> None:
    """How far raters agree: people with people, judges with people, judges with judges."""
    from coaudit.pipeline import agreement as measuring

    names = codebook or []
    if disagreements:
        _report_disagreements(measuring.disagreements(store(), names), json)
        return
    if ratings is not None:
        rows = measuring.of_csv(ratings, split(labels), level)
        confusions = []
    else:
        rows = measuring.of_workspace(store(), names)
        confusions = measuring.confusions(store(), names)
    if json:
        emit({"rows": [row.model_dump() for row in rows], "confusions": confusions})
        return
    columns = ["code", "coefficient", "raters", "value", "95 %", "units", "ratings", "note"]
    table("Agreement", columns, [_agreement_cells(row) for row in rows])


def rates(
    codebook: Annotated[
        list[str] | None, typer.Option(help="Codebook; repeatable. Else all with ratings.")
    ] = None,
    by: Annotated[str, typer.Option(help="Comma-separated groups, as in `metrics`.")] = "",
    judge: Annotated[str | None, typer.Option(help="Only this judge.")] = None,
    estimator: Annotated[str | None, typer.Option(help="In place of the one that fits the design.")] = None,
    json: Json = False,
) -> None:
    """How common each code is: the judge's own rate beside the one corrected by people's labels."""
    from coaudit.pipeline import rates as estimating

    rows = estimating.rates(store(), codebook or [], by=split(by), judge=judge, estimator=estimator)
    if json:
        emit({"rows": [row.model_dump() for row in rows]})
        return
    columns = [
        "code",
        "of",
        "judge",
        "judge's rate",
        "rate",
        "95 %",
        "estimator",
        "n human",
        "n judged",
        "note",
    ]
    table("Rates", columns, [_rate_cells(row) for row in rows])


def _report_disagreements(rows: list[dict[str, Any]], json: bool) -> None:
    if json:
        emit({"rows": rows})
        return
    cells = [
        [
            row["native_id"],
            str(row["event"] if row["event"] is not None else ""),
            row["code"],
            _said(row["labels"]),
        ]
        for row in rows
    ]
    table(f"{len(rows)} disagreements", ["trajectory", "event", "code", "labels"], cells)


def _said(labels: dict[str, str]) -> str:
    return ", ".join(f"{rater}: {label}" for rater, label in labels.items())


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None else f"{number(low)} – {number(high)}"


def _agreement_cells(row: Agreement) -> list[str]:
    counts = [str(row.n_units), str(row.n_ratings)]
    interval = _interval(row.low, row.high)
    return [
        row.code,
        row.coefficient,
        ", ".join(row.raters),
        number(row.value),
        interval,
        *counts,
        row.reason or "",
    ]


def _rate_cells(row: Rate) -> list[str]:
    group = " · ".join(str(value) for value in (row.group or {}).values())
    shown = [number(row.judge_rate), number(row.rate), _interval(row.low, row.high)]
    counts = [str(row.n_human), str(row.n_judged)]
    return [
        row.code,
        group,
        row.judge or "",
        *shown,
        row.estimator or "",
        *counts,
        row.reason or row.design or "",
    ]


COMMANDS: Commands = {"metrics": metrics, "agreement": agreement, "rates": rates}
GROUPED: Groups = {}
