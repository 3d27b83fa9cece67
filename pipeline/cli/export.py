"""The command `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from ..store.queries import export as exporting
from .console import Json, emit, split, store, tell

app = typer.Typer(rich_markup_mode=None)


@app.command("export")
def export(
    ctx: typer.Context,
    out: Annotated[Path, typer.Argument(help="Folder for parquet and csv, file for jsonl.")],
    format: Annotated[str, typer.Option(help="parquet, csv, or jsonl (what `ingest` reads).")] = "parquet",
    tables: Annotated[str | None, typer.Option(help="Tables, comma-separated; default: all.")] = None,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="jsonl: include what only the human knew.")
    ] = False,
    json: Json = False,
) -> None:
    """Write the audit tables, or the trajectories, for other programs."""
    if str(out) == "-":
        raise UsageError("export writes files, not to stdout: name a folder, or a file for jsonl")
    names = tuple(split(tables)) if tables is not None else exporting.TABLES
    if not names:
        raise UsageError("--tables names no table")
    files = [str(path) for path in exporting.export(store(ctx), out, format, names, hidden=hidden)]
    if json:
        emit({"files": files})
    else:
        tell(*files)
