"""The commands `trajectory list` and `trajectory show`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...schemas import Trajectory
from ..store import trajectories
from .console import Json, emit, number, store, table, tell

app = typer.Typer(rich_markup_mode=None)
trajectory_app = typer.Typer(
    help="List trajectories, or show one.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(trajectory_app, name="trajectory")


@trajectory_app.command("list")
def list_trajectories(ctx: typer.Context, json: Json = False) -> None:
    """What is in the workspace, one line each."""
    heads = trajectories.heads(store(ctx))
    if json:
        emit({"rows": heads})
        return
    columns = ["id", "native_id", "system", "setting", "condition", "task", "agent_model", "events"]
    rows = [[str(row.get(name) if row.get(name) is not None else "–") for name in columns] for row in heads]
    table(f"{len(heads)} trajectories", columns, rows)


@trajectory_app.command("show")
def show_trajectory(
    ctx: typer.Context,
    id: Annotated[str, typer.Argument(help="Its id, the beginning of it, or a native_id that is unique.")],
    hidden: Annotated[bool, typer.Option("--hidden", help="With what only the human knew.")] = False,
    states: Annotated[bool, typer.Option("--states", help="With every state the events point at.")] = False,
    json: Json = False,
) -> None:
    """One trajectory with all its events."""
    trajectory = trajectories.one(store(ctx), id, states=states or not json)
    if json:
        emit(trajectories.document(trajectory, hidden=hidden, states=states))
        return
    show(trajectory)


def show(trajectory: Trajectory) -> None:
    """A trajectory for reading: a line of what it is, then a line an event."""
    team = ", ".join(f"{p.name} ({p.kind})" for p in trajectory.team())
    head = (trajectory.system, trajectory.condition, trajectory.task, team)
    tell(f"{trajectory.native_id}  {trajectory.id}\n{' · '.join(map(str, head))}")
    for event in trajectory.events:
        tell(trajectories.line(event))
        if result := trajectories.result(trajectory, event):
            tell(f"{'':>6}→ {result}")
    for outcome in trajectory.outcomes:
        value = outcome.text if outcome.value is None else number(outcome.value)
        why = f" (inferred: {outcome.inferred})" if outcome.inferred else ""
        tell(f"{outcome.name}: {outcome.reason if value is None else value}{why}")
