"""The command `quarantine list`."""

from __future__ import annotations

import typer

from ..store import dictionaries
from .console import Json, emit_rows, store, table

app = typer.Typer(rich_markup_mode=None)
quarantine_app = typer.Typer(
    help="List what could not be read, and why.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(quarantine_app, name="quarantine")


@quarantine_app.command("list")
def list_quarantined(ctx: typer.Context, json: Json = False) -> None:
    """List every piece of a log or ledger that could not be read, with its place and the reason."""
    with store(ctx).reading() as connection:
        rows = dictionaries(connection, "SELECT source, line, reason FROM quarantine ORDER BY ALL")
    if json:
        emit_rows(rows)
        return
    cells = [[row["source"], str(row["line"] or ""), row["reason"]] for row in rows]
    table(f"{len(rows)} in quarantine", ["source", "line", "reason"], cells)
