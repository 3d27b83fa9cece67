"""The command `forget`: out with what was a mistake, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ...schemas.text import count_of
from ..ingest import forgetting
from ..ingest.rebuild import read_again
from ..ingest.result import IngestResult
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
        names = [*effect.sources, *effect.trajectories]
        result = _read_again(workspace_store, [*names, *effect.shared])
        back = result.trajectories - len(effect.shared)
        if json:
            emit({"names": names, "trajectories": back})
        else:
            tell(f"{_runs(back)} back")
        return
    effect = forgetting.forget(workspace_store, name)
    if effect.shared:
        _read_again(workspace_store, effect.shared)
    if json:
        emit({"sources": effect.sources, "trajectories": effect.trajectories, "ratings": effect.ratings})
    else:
        ratings = count_of(effect.ratings, "rating", "ratings")
        rest = f" with {ratings}, kept but not counted" if effect.ratings else ""
        tell(f"{_runs(len(effect.trajectories))} left out{rest}")
        if effect.shared:
            stays = count_of(len(effect.shared), "trajectory stays", "trajectories stay")
            say(f"{stays}: other sources have {'it' if len(effect.shared) == 1 else 'them'}, too")


def _read_again(workspace_store: Store, names: Sequence[str]) -> IngestResult:
    with progress("reading") as report:
        result = read_again(workspace_store, names, report)
    for line in complaints(result.quarantined):
        say(line)
    return result


def _runs(n: int) -> str:
    return count_of(n, "trajectory is", "trajectories are")
