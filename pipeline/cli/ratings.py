"""Commands about ratings: import, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..ingest import imports
from .console import Json, store
from .outcomes import report_import

app = typer.Typer(rich_markup_mode=None)

ratings_app = typer.Typer(
    help="Bring ratings in, or take them out.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(ratings_app, name="ratings")


@ratings_app.command("import")
def import_ratings(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="JSON Lines: trajectory, event, codebook, code, rater, label ...")
    ],
    json: Json = False,
) -> None:
    """Ratings made elsewhere; each is checked against its codebook and its unit."""
    report_import(imports.ratings(store(ctx), file), json)


@ratings_app.command("export")
def export_ratings(
    ctx: typer.Context,
    out: Annotated[Path | None, typer.Option(help="File to write; else stdout.")] = None,
) -> None:
    """Every rating that holds, as JSON Lines that `ratings import` reads."""
    import sys

    lines = imports.exported(store(ctx))
    if out is None:
        sys.stdout.writelines(lines)
    else:
        out.write_text("".join(lines), encoding="utf-8")
