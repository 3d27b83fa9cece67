"""Commands about ratings: import, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import Commands, Json, store
from .data import report_import

ratings_app = typer.Typer(
    help="Bring ratings in, or take them out.", no_args_is_help=True, rich_markup_mode=None
)

COMMANDS: Commands = {}
GROUPED = {"ratings": ratings_app}


@ratings_app.command("import")
def import_ratings(
    file: Annotated[
        Path, typer.Argument(help="JSON Lines: trajectory, event, codebook, code, rater, label ...")
    ],
    json: Json = False,
) -> None:
    """Ratings made elsewhere; each is checked against its codebook and its unit."""
    from ..ingest import imports

    report_import(imports.ratings(store(), file), json)


@ratings_app.command("export")
def export_ratings(
    out: Annotated[Path | None, typer.Option(help="File to write; else stdout.")] = None,
) -> None:
    """Every rating that holds, as JSON Lines that `ratings import` reads."""
    import sys

    from ..ingest import imports

    lines = imports.exported(store())
    if out is None:
        sys.stdout.writelines(lines)
    else:
        out.write_text("".join(lines), encoding="utf-8")
