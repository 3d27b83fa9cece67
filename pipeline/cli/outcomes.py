"""The command `outcomes import`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CoauditError
from ..ingest import imports
from ..ingest.imports import ImportResult
from .console import Json, emit, say, store, tell
from .ingest import complaints

app = typer.Typer(rich_markup_mode=None)
SHOWN = 5
"""So many contradictions are told one by one."""
outcomes_app = typer.Typer(
    help="Import outcomes that logs lack.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(outcomes_app, name="outcomes")


@outcomes_app.command("import")
def import_outcomes(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            help="JSON, CSV, Excel or Parquet with trajectory, name, value and, optionally, baseline."
        ),
    ],
    json: Json = False,
) -> None:
    """Import what people said of whole trajectories, such as satisfaction, outcome_rating or preferred."""
    report_import(imports.outcomes(store(ctx), file), json)


def report_import(result: ImportResult, json: bool) -> None:
    """What an import took in, and an error where no line could be read."""
    if json:
        quarantined = [item.model_dump() for item in result.quarantined]
        counts = {name: getattr(result, name) for name in ("imported", "changed", "unchanged")}
        emit({**counts, "contradicted": result.contradicted, "quarantined": quarantined})
    else:
        replacements = f", {result.changed} of them replacing an earlier one" if result.changed else ""
        tell(f"{result.imported} imported{replacements}; {result.unchanged} unchanged")
        say_contradictions(result.contradicted)
        for line in complaints(result.quarantined):
            say(line)
    if result.quarantined and not result.imported + result.unchanged:
        raise CoauditError("nothing could be imported")


def say_contradictions(sentences: Sequence[str]) -> None:
    """Say which lines of an import contradict others."""
    for sentence in sentences[:SHOWN]:
        say(sentence)
    if len(sentences) > SHOWN:
        say(f"{len(sentences) - SHOWN} more contradict a line before them")
