"""The command that holds the workspace against the papers: replicate."""

from __future__ import annotations

from typing import Annotated

import typer

from ..analyze.metrics import checked_definition
from ..report import replicate as replication
from .console import Json, emit, store, table, tell

app = typer.Typer(rich_markup_mode=None)


@app.command("replicate")
def replicate(
    ctx: typer.Context,
    paper: Annotated[str, typer.Argument(help=", ".join(replication.PAPERS) + ".")],
    definition: Annotated[str, typer.Option(help="released or paper, where they differ.")] = "released",
    rater: Annotated[
        str | None, typer.Option(help="Whose ratings to use; default: whoever rated most.")
    ] = None,
    json: Json = False,
) -> None:
    """A paper's result tables: every published cell beside what the workspace's records give."""
    result = replication.replicate(store(ctx), paper, definition=checked_definition(definition), rater=rater)
    if json:
        emit(result.document())
        return
    tell(f"{result.paper.title}. {result.paper.source}.")
    for part in result.tables:
        tell("", f"{part.name} ({part.place}): {part.about}.")
        if rows := replication.lines(part):
            table("", list(replication.COLUMNS), rows)
        for remark in replication.remarks(part):
            tell(remark)
    for group in result.left_out:
        tell("", f"In no cell, {group.reason}: {len(group.records)} of the records.")
    tell("", result.paper.records)
