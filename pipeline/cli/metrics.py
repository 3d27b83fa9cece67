"""Commands that measure: metrics, interventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import typer

from ...schemas import FIELDS, Metric
from ..analyze import compare as comparing
from ..analyze import load
from ..analyze import metrics as measuring
from ..errors import UsageError
from ..report import interventions as finding
from ..systems import TimeLimit
from .console import (
    Json,
    Where,
    allowance,
    emit_rows,
    number,
    price,
    say,
    selection,
    split,
    store,
    table,
    tags,
    tell,
)

app = typer.Typer(rich_markup_mode=None)
NAMED = 3
"""Most groups that a message names."""


@app.command("metrics")
def metrics(
    ctx: typer.Context,
    by: Annotated[str, typer.Option(help=f"Comma-separated: {', '.join(FIELDS)}, day, or a tag.")] = "",
    per: Annotated[str | None, typer.Option(help="`trajectory`: one row per trajectory.")] = None,
    where: Where = None,
    rater: Annotated[
        str | None,
        typer.Option(help="Whose ratings to use; default: gold where complete, else each rater's."),
    ] = None,
    definition: Annotated[str, typer.Option(help="released or paper, where they differ.")] = "released",
    penalty: Annotated[float, typer.Option(help="λ of the reward T - λC.", callback=price)] = 0.08,
    serving: Annotated[
        bool, typer.Option("--serving", help="Instead: answers and failures by the load of the model server.")
    ] = False,
    gamma: Annotated[
        float,
        typer.Option(
            help="Collab-Overcooked's time limit, as a multiple of the optimal time.", callback=allowance
        ),
    ] = 1.5,
    optimal: Annotated[
        list[str] | None,
        typer.Option(help="order=STEPS: optimal steps of an order, in place of its level's; repeatable."),
    ] = None,
    json: Json = False,
) -> None:
    """The papers' metrics with their intervals, over all or by group."""
    if serving:
        if where:
            raise UsageError("--where is no option of --serving, which is of all sessions that were watched")
        report_serving(ctx, json)
        return
    here = store(ctx)
    basis: measuring.Basis = {
        "only": selection(here, where),
        "rater": rater,
        "definition": measuring.checked_definition(definition),
        "penalty": penalty,
        "limit": TimeLimit(gamma, measuring.checked_steps(tags(optimal or []))),
    }
    if measuring.checked_per(per):
        if by:
            raise UsageError(
                "--per trajectory has a row for each trajectory and no groups, so leave out --by"
            )
        rows: Iterable[Metric] = measuring.trajectory_metrics(here, **basis)
    else:
        rows = measuring.metrics(here, by=split(by), **basis)
        say_systems(measuring.several_systems(here, split(by), basis["only"]), by)
        say_people(*comparing.repeated_people(here, split(by), only=basis["only"]))
    if json:
        emit_rows(row.model_dump(exclude_unset=True) for row in rows)
        return
    columns = ["metric", "of", "rater", "value", "95 %", "n", "missing", "remark"]
    table("Metrics", columns, (measuring.cells(row, number) for row in rows))


def say_systems(groups: Mapping[str, Sequence[str]], by: str) -> None:
    """Say which groups are of several systems, whose numbers an author would not report together."""
    names = [f"{name} ({', '.join(systems)})" for name, systems in groups.items()]
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    if names:
        apart = f"--by system,{by} sets them apart"
        say(f"of several systems together: {'; '.join(names[:NAMED])}{more}; {apart}")


def say_people(number: int, name: str | None) -> None:
    """Say that people took part in several sessions, since no interval allows for that."""
    if number:
        say(
            f"{number:,} people (such as {name}) took part in several sessions, which count as independent "
            "here: if those of one person are alike, intervals are too narrow"
        )


@app.command("interventions")
def interventions(
    ctx: typer.Context,
    penalty: Annotated[float, typer.Option(help="λ, the price of one human step.", callback=price)] = 0.08,
    top: Annotated[int, typer.Option(min=1, help="Number of states to show.")] = 5,
    where: Where = None,
    definition: Annotated[
        str,
        typer.Option(
            help="released: the cost of the whole run; paper: of the rest of the run from the step on."
        ),
    ] = "released",
    longest_state: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Longest state in characters; 0: no limit. Default: 5041 (released) or no limit (paper).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """ReHAC: where a person's step helped most and where it was wasted."""
    here = store(ctx)
    only = selection(here, where)
    documents = finding.interventions(
        here,
        penalty,
        top,
        definition=measuring.checked_definition(definition),
        longest=longest_state,
        only=only,
    )
    if not documents:
        whole = "no ReHAC trajectories in the workspace; `coaudit ingest PATH` reads them"
        say("none of these sessions is of ReHAC" if only else whole)
    if json:
        emit_rows(documents)
        return
    for document in documents:
        tell(*finding.lines(document))


def report_serving(ctx: typer.Context, json: bool) -> None:
    """What people and agents did while the model server was idle, busy, or had a queue."""
    rows = load.measures(store(ctx))
    if json:
        emit_rows(rows)
        return
    columns = ["metric", "load", "value", "n", "missing", "why null"]
    cells = [
        [
            row["metric"],
            row["group"]["load"],
            number(row["value"]),
            str(row["n"]),
            str(row["missing"]),
            row.get("reason", ""),
        ]
        for row in rows
    ]
    table("Metrics by load of the model server", columns, cells)
