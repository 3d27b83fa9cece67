"""Commands that move data: ingest, rebuild, trajectory, export, outcomes, generate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CoauditError, UsageError
from .console import (
    Commands,
    ConditionOption,
    Json,
    MaxSteps,
    SettingOption,
    TagOption,
    emit,
    number,
    progress,
    safe,
    say,
    store,
    table,
    tags,
)

if TYPE_CHECKING:
    from ...schemas import Quarantined, Trajectory
    from ...schemas.trajectory import Setting
    from ..ingest.imports import Imported

trajectory_app = typer.Typer(
    help="List trajectories, or show one.", no_args_is_help=True, rich_markup_mode=None
)
outcomes_app = typer.Typer(help="Bring in what logs lack.", no_args_is_help=True, rich_markup_mode=None)


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Log files, folders above them, or archives.")],
    system: Annotated[str, typer.Option(help="Whose logs they are; auto looks.")] = "auto",
    setting: SettingOption = None,
    condition: ConditionOption = None,
    agent: Annotated[str | None, typer.Option(help="Name of the agent's scaffolding.")] = None,
    tag: TagOption = None,
    max_steps: MaxSteps = None,
    reference: Annotated[
        Path | None, typer.Option(help="Folder of Collab-Overcooked's reference action trajectories.")
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Archive the logs under raw/ of the workspace.")
    ] = False,
    map: Annotated[
        str | None, typer.Option(help="Mapping file for any JSON Lines, or the name of a shipped one.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the first trajectories as they would be read.")
    ] = False,
    json: Json = False,
) -> None:
    """Read logs into the workspace. Running it again changes nothing; what has grown is updated."""
    from ..ingest import run as ingesting
    from ..systems import ReadOptions, system_of

    if map is not None and system == "auto":
        system = "mapped"
    if (map is None) == (system == "mapped"):
        raise UsageError(f"--map FILE and --system mapped go together, got --system {system}")
    if system != "auto":
        system_of(system)
    options = ReadOptions(
        setting=checked_setting(setting),
        condition=condition,
        agent=agent,
        tags=tags(tag or []),
        map=checked_mapping(map),
        max_steps=max_steps,
    )
    if dry_run:
        _preview(ingesting.preview(paths, options, system), json)
        return
    with progress("reading") as report:
        result = ingesting.ingest(
            store(for_ingest=True),
            paths,
            options,
            system=system,
            reference=reference,
            copy=copy,
            progress=report,
        )
    for note in result.notes:
        say(note)
    if json:
        emit(
            {
                "trajectories": result.trajectories,
                "events": result.events,
                "unchanged": result.unchanged,
                "quarantined": [q.model_dump() for q in result.quarantined],
            }
        )
    else:
        print(f"{result.trajectories} trajectories with {result.events} events; {result.unchanged} unchanged")
    if not json or not result.found:
        for item in result.quarantined:
            place = f"{item.source}:{item.line}" if item.line else item.source
            say(f"{place}: {item.reason}")
    if result.trajectories + result.unchanged == 0:
        raise CoauditError("nothing could be read")


def checked_mapping(name: str | None) -> str | None:
    """The text of a mapping file, which is sound; SourceError names the file, the key and the rule."""
    from ..systems.formats import mapping

    if name is None:
        return None
    text, place = mapping.text_of(name)
    mapping.parse(text, place)
    return text


def _preview(found: list[Trajectory | Quarantined], json: bool) -> None:
    """Trajectories as they would be read, and what would not be."""
    from ...schemas import Trajectory
    from ..store import trajectories

    shown = [item for item in found if isinstance(item, Trajectory)]
    for item in found:
        if not isinstance(item, Trajectory):
            say(f"{item.source}:{item.line}: {item.reason}" if item.line else f"{item.source}: {item.reason}")
    if json:
        emit({"trajectories": [trajectories.document(trajectory) for trajectory in shown]})
    else:
        for trajectory in shown:
            _show(trajectory)
    if not shown:
        raise CoauditError("nothing could be read")


def checked_setting(setting: str | None) -> Setting | None:
    """real, simulated or None; UsageError for anything else."""
    if setting is None or setting == "real" or setting == "simulated":
        return setting  # type: ignore[return-value]
    raise UsageError(f"--setting must be real or simulated, got {setting!r}")


def rebuild(json: Json = False) -> None:
    """Make the database anew from the ledgers and the logs they name."""
    from ..ingest import rebuild as make_anew
    from ..store import Store
    from .console import workspace

    found = Store(workspace())
    if not found.workspace.exists():
        raise CoauditError(f"{found.workspace.path}: no workspace here; `coaudit ingest PATH` makes one")
    with progress("rebuilding") as report:
        result = make_anew(found, report)
    for item in result.quarantined:
        say(f"{item.source}: {item.reason}")
    if json:
        emit({"trajectories": result.trajectories, "events": result.events})
    else:
        print(f"{result.trajectories} trajectories with {result.events} events")


def export(
    out: Annotated[Path, typer.Argument(help="Folder for parquet and csv, file for jsonl.")],
    format: Annotated[str, typer.Option(help="parquet, csv, or jsonl (what `ingest` reads).")] = "parquet",
    tables: Annotated[str | None, typer.Option(help="Comma-separated; else all.")] = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="jsonl: with what only the human knew.")] = False,
    json: Json = False,
) -> None:
    """Write the audit tables, or the trajectories, for other programs."""
    from ..store import export as exporting

    chosen = tuple(tables.split(",")) if tables else exporting.TABLES
    written = [str(path) for path in exporting.export(store(), out, format, chosen, hidden=hidden)]
    if json:
        emit({"files": written})
    else:
        print("\n".join(written))


def generate(
    folder: Annotated[Path, typer.Argument(help="Where to write; it must be empty or new.")],
    sessions: Annotated[int, typer.Option(min=1, help="How many sessions.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    json: Json = False,
) -> None:
    """Write Co-Gym result folders with planted truth (truth.jsonl, which `ratings import` reads)."""
    from ..systems.cogym import generate as generating

    with progress("generating") as report:
        written = generating.generate(folder, sessions, seed, report)
    if json:
        emit(written)
    else:
        print(f"{written['sessions']} sessions with {written['utterances']} utterances in {folder}")


COMMANDS: Commands = {"ingest": ingest, "rebuild": rebuild, "export": export, "generate": generate}
GROUPED = {"trajectory": trajectory_app, "outcomes": outcomes_app}


@trajectory_app.command("list")
def list_trajectories(json: Json = False) -> None:
    """What is in the workspace, one line each."""
    from ..store import trajectories

    found = trajectories.heads(store())
    if json:
        emit({"rows": found})
        return
    columns = ["id", "native_id", "system", "setting", "condition", "task", "agent_model", "events"]
    rows = [[str(row.get(name) if row.get(name) is not None else "–") for name in columns] for row in found]
    table(f"{len(found)} trajectories", columns, rows)


@trajectory_app.command("show")
def show_trajectory(
    id: Annotated[str, typer.Argument(help="Its id, the beginning of it, or a native_id that is unique.")],
    hidden: Annotated[bool, typer.Option("--hidden", help="With what only the human knew.")] = False,
    states: Annotated[bool, typer.Option("--states", help="With every state the events point at.")] = False,
    json: Json = False,
) -> None:
    """One trajectory with all its events."""
    from ..store import trajectories

    found = trajectories.one(store(), id, states=states)
    if json:
        emit(trajectories.document(found, hidden=hidden, states=states))
        return
    _show(found)


def _show(found: Trajectory) -> None:
    """A trajectory for reading: a line of what it is, then a line an event."""
    from ..store import trajectories

    team = ", ".join(f"{p.name} ({p.kind})" for p in found.team())
    print(safe(f"{found.native_id}  {found.id}\n{found.system} · {found.condition} · {found.task} · {team}"))
    for event in found.events:
        print(safe(trajectories.line(event)))
    for outcome in found.outcomes:
        value = outcome.text if outcome.value is None else number(outcome.value)
        print(safe(f"{outcome.name}: {outcome.reason if value is None else value}"))


@outcomes_app.command("import")
def import_outcomes(
    file: Annotated[Path, typer.Argument(help="JSON Lines: trajectory, name, value, baseline?")],
    json: Json = False,
) -> None:
    """Ratings and preferences that people gave, such as outcome_rating, satisfaction, preferred."""
    from ..ingest import imports

    report_import(imports.outcomes(store(), file), json)


def report_import(result: Imported, json: bool) -> None:
    """What an import took in, and an error where no line could be read."""
    if json:
        quarantined = [item.model_dump() for item in result.quarantined]
        emit({"imported": result.imported, "unchanged": result.unchanged, "quarantined": quarantined})
    else:
        print(f"{result.imported} imported; {result.unchanged} unchanged")
        for item in result.quarantined:
            say(f"{item.source}:{item.line}: {item.reason}")
    if result.quarantined and not result.imported + result.unchanged:
        raise CoauditError("nothing could be imported")
