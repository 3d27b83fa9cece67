"""The command `train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..judge import scope, training
from .console import Json, emit, interval, number, say, table
from .rated import rated_store

app = typer.Typer(rich_markup_mode=None)


@app.command("train")
def train(
    ctx: typer.Context,
    codebook: Annotated[str, typer.Option(help="Codebook to learn.")],
    rater: Annotated[
        str | None,
        typer.Option(
            help="Whose ratings to learn from; default: gold if no person labelled more, else the only rater."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: models/CODEBOOK.skops in the workspace.")
    ] = None,
    json: Json = False,
) -> None:
    """Train a judge on existing ratings, and measure its agreement on what it has not seen."""
    from dataclasses import asdict

    here = rated_store(ctx, [codebook])
    (book,) = scope.load_codebooks(here, [codebook])
    result = training.train(here, book, rater, out)
    if json:
        rows = [asdict(row) for row in result.rows]
        emit({"codebook": result.codebook, "rater": result.rater, "file": str(result.file), "rows": rows})
        return
    columns = ["code", "kappa", "95 %", "n", "trajectories", "held out", "labels", "note"]
    rows_ = [
        [
            row.code,
            number(row.kappa),
            interval(row.low, row.high),
            str(row.n),
            str(row.trajectories),
            row.held_out or "",
            ", ".join(f"{label} {count}" for label, count in row.labels.items()),
            row.reason or "",
        ]
        for row in result.rows
    ]
    table(f"Learnt from {result.rater}; kappa on what was held out", columns, rows_)
    say(f"saved as {result.file}; `coaudit judge --rater trained:{result.file}` rates with it")
