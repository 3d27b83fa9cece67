"""The command `forget`: out with what was a mistake, and back."""

from __future__ import annotations

from typing import Annotated

import typer

from ...schemas.text import count_of
from ..ingest import forgetting
from ..ingest.ready import heed_forgotten
from ..store import Store
from .console import Json, emit, progress, say, store, tell
from .ingest import complaints

app = typer.Typer(rich_markup_mode=None)


@app.command("forget")
def forget(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="A source's path, a folder above several, or a trajectory.")],
    undo: Annotated[bool, typer.Option("--undo", help="Bring it back: its log is read again.")] = False,
    json: Json = False,
) -> None:
    """Leave a source or a trajectory out, also of rebuilds. Its ratings are kept but do not count."""
    workspace_store = store(ctx)
    if undo:
        effect = forgetting.undo(workspace_store, name)
        ids = [*effect.trajectories, *effect.shared]
        before = forgetting.stored(workspace_store, ids)
        _read_again(workspace_store)
        back = forgetting.stored(workspace_store, ids) - before
        if json:
            emit({"names": [*effect.sources, *effect.trajectories], "trajectories": back})
        else:
            tell(f"{_runs(back)} back")
            if before:
                say(count_of(before, "trajectory had stayed", "trajectories had stayed"))
        return
    effect = forgetting.forget(workspace_store, name)
    _read_again(workspace_store)
    if json:
        emit({"sources": effect.sources, "trajectories": effect.trajectories, "ratings": effect.ratings})
    else:
        ratings = count_of(effect.ratings, "rating", "ratings")
        rest = f" with {ratings}, kept but not counted" if effect.ratings else ""
        tell(f"{_runs(len(effect.trajectories))} left out{rest}")
        if n := forgetting.stored(workspace_store, effect.shared):
            stays = count_of(n, "trajectory stays", "trajectories stay")
            say(f"{stays}: other sources have {'it' if n == 1 else 'them'}, too")


def _read_again(workspace_store: Store) -> None:
    with progress("reading") as report:
        result = heed_forgotten(workspace_store, report)
    for line in complaints(result.quarantined) if result else ():
        say(line)


def _runs(n: int) -> str:
    return count_of(n, "trajectory is", "trajectories are")
