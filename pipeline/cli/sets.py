"""The command `import`: public data sets with labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...schemas.text import count_of
from ..errors import CoauditError
from ..ingest import sets
from ..systems import ReadOptions
from .console import Json, SettingOption, TagOption, emit, progress, say, store, tags, tell
from .ingest import checked_setting, complaints
from .outcomes import say_contradictions

app = typer.Typer(rich_markup_mode=None)


@app.command("import")
def import_set(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help=f"Which set: {', '.join(sets.SETS)}.")],
    folder: Annotated[Path, typer.Argument(help="Folder with its files as published.")],
    setting: SettingOption = None,
    tag: TagOption = None,
    json: Json = False,
) -> None:
    """Import a public data set: its logs and their labels. Running it again changes nothing."""
    options = ReadOptions(setting=checked_setting(setting), tags=tags(tag or []))
    with progress("reading") as report:
        result = sets.bring(store(ctx, for_ingest=True), name, folder, options, report)
    wrong = [*result.logs.quarantined, *result.labels.quarantined]
    if json:
        counts = {"trajectories": result.logs.trajectories, "unchanged": result.logs.unchanged}
        labels = {"imported": result.labels.imported, "unchanged": result.labels.unchanged}
        more = {"contradicted": result.labels.contradicted}
        emit({**counts, "labels": labels, **more, "quarantined": [item.model_dump() for item in wrong]})
    else:
        tell(
            f"{count_of(result.logs.trajectories, 'trajectory', 'trajectories')}, "
            f"{result.logs.unchanged} unchanged"
        )
        tell(
            f"{count_of(result.labels.imported, 'label', 'labels')} imported, "
            f"{result.labels.unchanged} unchanged"
        )
        say_contradictions(result.labels.contradicted)
        for line in complaints(wrong):
            say(line)
        for note in result.logs.remarks.notes():
            say(note)
        tell("next: coaudit validate")
    if not result.logs.trajectories + result.logs.unchanged:
        raise CoauditError("nothing could be read")
