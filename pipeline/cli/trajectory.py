"""The commands `trajectory list` and `trajectory show`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...schemas import Trajectory
from ...schemas.text import count_of
from ..store.queries import trajectories
from .console import Json, Where, emit, emit_rows, number, selection, store, table, tell

app = typer.Typer(rich_markup_mode=None)
trajectory_app = typer.Typer(
    help="List trajectories, or show one.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(trajectory_app, name="trajectory")


@trajectory_app.command("list")
def list_trajectories(ctx: typer.Context, where: Where = None, json: Json = False) -> None:
    """List the trajectories in the workspace, one per line."""
    here = store(ctx)
    heads = trajectories.heads(here, selection(here, where))
    if json:
        emit_rows(heads)
        return
    columns = ["id", "native_id", "system", "setting", "condition", "task", "agent_model", "events"]
    rows = [[str(row.get(name) if row.get(name) is not None else "–") for name in columns] for row in heads]
    table(count_of(len(heads), "trajectory", "trajectories"), columns, rows)


@trajectory_app.command("show")
def show_trajectory(
    ctx: typer.Context,
    id: Annotated[str, typer.Argument(help="Its id, the beginning of its id, or a unique native_id.")],
    hidden: Annotated[bool, typer.Option("--hidden", help="Include what only the human knew.")] = False,
    states: Annotated[
        bool, typer.Option("--states", help="Include every state that events refer to.")
    ] = False,
    json: Json = False,
) -> None:
    """Show one trajectory with all its events."""
    trajectory = trajectories.one(store(ctx), id, states=states or not json)
    if json:
        emit(trajectories.document(trajectory, hidden=hidden, states=states))
        return
    show(trajectory)


def opening(trajectory: Trajectory, events: int = 6) -> list[str]:
    """The head of a trajectory and its first events, for a look at whether it was read as meant."""
    lines = [" ".join(trajectories.line(event).splitlines())[:110] for event in trajectory.events[:events]]
    more = len(trajectory.events) - events
    team = ", ".join(f"{p.name} ({p.kind})" for p in trajectory.participants[:8])
    results = ", ".join(
        f"{o.name} {(o.text or '–') if o.value is None else number(o.value)}" for o in trajectory.outcomes
    )
    head = [f"{trajectory.native_id}: {team}", *([f"outcomes: {results}"] if results else [])]
    return [*head, *lines, *([f"      … {more} more event{'s' * (more != 1)}"] if more > 0 else [])]


def show(trajectory: Trajectory) -> None:
    """A trajectory for reading: a line of what it is, then a line an event."""
    team = ", ".join(f"{p.name} ({p.kind})" for p in trajectory.team())
    head = (trajectory.system, trajectory.condition, trajectory.task, team)
    tell(f"{trajectory.native_id}  {trajectory.id}", " · ".join(str(part or "–") for part in head))
    for event in trajectory.events:
        tell(trajectories.line(event))
        if result := trajectories.result(trajectory, event):
            tell(f"{'':>6}→ {result}")
    for outcome in trajectory.outcomes:
        value = outcome.text if outcome.value is None else number(outcome.value)
        remark = f" (inferred: {outcome.inferred})" if outcome.inferred else ""
        tell(f"{outcome.name}: {outcome.reason if value is None else value}{remark}")
