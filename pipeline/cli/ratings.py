"""Commands about ratings: import, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...schemas.text import count_of
from ..errors import SourceError
from ..ingest import imports, labels
from ..store import disk
from .console import Json, emit_rows, store, table, write_document
from .outcomes import report_import

app = typer.Typer(rich_markup_mode=None)

ratings_app = typer.Typer(help="Import or export ratings.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(ratings_app, name="ratings")


@ratings_app.command("import")
def import_ratings(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="JSON Lines: trajectory, event, codebook, code, rater, label ...")
    ],
    map: Annotated[
        Path | None, typer.Option(help="Mapping file for labels in CSV, Excel, Parquet or any JSON.")
    ] = None,
    json: Json = False,
) -> None:
    """Import ratings made elsewhere; each is checked against its codebook and its unit."""
    report_import(imports.ratings(store(ctx), file, mapping_of(map)), json)


def mapping_of(path: Path | None) -> labels.LabelMapping | None:
    """The mapping of labels in a file; SourceError says what is wrong with it."""
    if path is None:
        return None
    try:
        return labels.parse(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot read the mapping file: {error}") from error


@ratings_app.command("uncounted")
def uncounted_ratings(ctx: typer.Context, json: Json = False) -> None:
    """List ratings that are kept but do not count, and why.

    Their unit or codebook has changed, or is gone.
    """
    rows = imports.uncounted_rows(store(ctx))
    if json:
        emit_rows(rows)
        return
    columns = ["trajectory", "event", "codebook", "code", "rater", "label", "reason"]
    table(
        count_of(len(rows), "rating", "ratings"),
        columns,
        [[str(row[name] or "") for name in columns] for row in rows],
    )


@ratings_app.command("export")
def export_ratings(
    ctx: typer.Context,
    out: Annotated[Path | None, typer.Option(help="File to write; default: stdout.")] = None,
) -> None:
    """Write every current rating as JSON Lines, which `ratings import` reads."""
    lines = imports.export_lines(store(ctx))
    if out is None:
        write_document(lines)
    else:
        with disk.replace_file(out) as file:
            file.writelines(lines)
