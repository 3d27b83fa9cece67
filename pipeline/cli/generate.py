"""The command `generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...schemas.text import count_of
from ..store import disk
from ..systems.cogym import generate as generating
from .console import Json, emit, progress, tell

app = typer.Typer(rich_markup_mode=None)


@app.command("generate")
def generate(
    folder: Annotated[Path, typer.Argument(help="Where to write; it must be empty or new.")],
    sessions: Annotated[int, typer.Option(min=1, help="How many sessions.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    json: Json = False,
) -> None:
    """Generate Co-Gym result folders, with the correct labels in truth.jsonl (for `ratings import`)."""
    with disk.named(folder), progress("generating") as report:
        counts = generating.generate(folder, sessions, seed, report)
    if json:
        emit(counts)
    else:
        tell(
            f"{count_of(counts['sessions'], 'session', 'sessions')} with "
            f"{count_of(counts['utterances'], 'utterance', 'utterances')} in {folder}"
        )
