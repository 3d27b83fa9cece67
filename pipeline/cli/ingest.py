"""Commands that move data: ingest, rebuild, trajectory, export, outcomes, generate."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ...schemas import Quarantined, Trajectory
from ...schemas.text import count_of
from ...schemas.trajectory import Setting
from ..errors import CoauditError, SourceError, UsageError
from ..ingest import run as ingesting
from ..ingest.rebuild import rebuild as make_anew
from ..ingest.result import IngestResult
from ..store import Store
from ..store.queries import trajectories
from ..systems import ReadOptions
from ..systems.formats.fields import mapping
from ..systems.registry import system_of
from .console import (
    ConditionOption,
    Json,
    MaxSteps,
    SettingOption,
    TagOption,
    emit,
    progress,
    say,
    store,
    tags,
    tell,
    workspace,
)
from .trajectory import show

app = typer.Typer(rich_markup_mode=None)
MapOption = Annotated[
    str | None,
    typer.Option(help="Mapping file for logs of any format, or the name of a shipped mapping."),
]
ALIKE = 3
"""Complaints beyond this number that differ in numbers alone are told as one with a count."""


@app.command("ingest")
def ingest(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Log files, folders above them, or archives.")],
    system: Annotated[str, typer.Option(help="The system that wrote the logs; auto detects it.")] = "auto",
    setting: SettingOption = None,
    condition: ConditionOption = None,
    agent: Annotated[str | None, typer.Option(help="Name of the agent's scaffolding.")] = None,
    tag: TagOption = None,
    max_steps: MaxSteps = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Folder of Collab-Overcooked's reference action trajectories and recipes."),
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Archive the logs under raw/ of the workspace.")
    ] = False,
    map: MapOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the first trajectories as they would be read.")
    ] = False,
    json: Json = False,
) -> None:
    """Read logs into the workspace. Running it again changes nothing; what has grown is updated."""
    text, system = read_by(map, system)
    options = ReadOptions(
        setting=checked_setting(setting),
        condition=condition,
        agent=agent,
        tags=tags(tag or []),
        map=text,
        max_steps=max_steps,
    )
    if dry_run:
        _preview(ingesting.preview(paths, options, system), json)
        return
    with progress("reading") as report:
        result = ingesting.ingest(
            store(ctx, for_ingest=True),
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
        tell(f"{_amount(result.trajectories, result.events)}; {result.unchanged} unchanged")
        if result.again:
            records = "one record tells" if result.again == 1 else f"{result.again} records tell"
            say(f"{records} of one of these trajectories again; they count once, as the last one has them")
    if not json or not result.found:
        for line in complaints(result.quarantined):
            say(line)
    if not json:
        for note in result.remarks.notes():
            say(note)
    if not (result.trajectories or result.unchanged or result.forgotten or result.forgotten_sources):
        raise CoauditError(f"nothing could be read{_advice(paths, system, result)}")


def _amount(runs: int, events: int) -> str:
    return f"{count_of(runs, 'trajectory', 'trajectories')} with {count_of(events, 'event', 'events')}"


def _advice(paths: list[Path], system: str, result: IngestResult) -> str:
    """What to do where logs were recognised and no trajectory came of them."""
    if not result.found:
        return ""
    place = shlex.quote(str(paths[0]))
    if system == "mapped":
        none = (
            "no file has a name that `format` and `files` of the mapping take "
            '(`files = "*.txt"` takes texts as of that format); '
        )
        none = none if not result.quarantined else ""
        return f": {none}`coaudit map {place}` shows what is in the logs"
    return f": `coaudit map {place}` shows what is in the logs and drafts a mapping for them"


def complaints(items: Sequence[Quarantined]) -> Iterator[str]:
    """A line for each piece that was not read; for many that differ in numbers alone, one with a count."""
    by_kind: dict[tuple[str, str], list[Quarantined]] = {}
    for item in items:
        by_kind.setdefault((Path(item.source).suffix, re.sub(r"\d+", "0", item.reason)), []).append(item)
    for group in by_kind.values():
        for item in group if len(group) <= ALIKE else group[:1]:
            more = f" (and {len(group) - 1} more like it)" if len(group) > ALIKE else ""
            yield f"{item}{more}"


def read_by(map: str | None, system: str) -> tuple[str | None, str]:
    """The text of a mapping file, and the system whose logs are read; UsageError where they don't fit."""
    text = checked_mapping(map)
    rules = text is not None and mapping.parse(text).has_only_rules
    if text is not None and not rules and system == "auto":
        system = "mapped"
    if (text is None or rules) == (system == "mapped"):
        raise UsageError(
            f"--map FILE with [event] and --system mapped go together, got --system {system}"
            + (" and a mapping of nothing but rules" if rules else "")
        )
    if system != "auto":
        system_of(system)
    return text, system


def checked_mapping(name: str | None) -> str | None:
    """The text of a valid mapping file; SourceError names the file, the key and the rule."""
    if name is None:
        return None
    text, place = mapping.text_of(name)
    if (reason := mapping.parse(text, place).unused_part()) is not None:
        raise SourceError(f"{place}: {reason}")
    return text


def _preview(rows: list[Trajectory | Quarantined], json: bool) -> None:
    """Trajectories as they would be read, and what would not be."""
    readable = [item for item in rows if isinstance(item, Trajectory)]
    for item in rows:
        if not isinstance(item, Trajectory):
            say(str(item))
    if json:
        emit({"trajectories": [trajectories.document(trajectory) for trajectory in readable]})
    else:
        for trajectory in readable:
            show(trajectory)
    if not readable:
        raise CoauditError("nothing could be read")


def checked_setting(setting: str | None) -> Setting | None:
    """real, simulated or None; UsageError for anything else."""
    if setting is None or setting == "real" or setting == "simulated":
        return setting  # type: ignore[return-value]
    raise UsageError(f"--setting must be real or simulated, got {setting!r}")


@app.command("rebuild")
def rebuild(ctx: typer.Context, json: Json = False) -> None:
    """Rebuild the database from the ledgers and the logs that they name."""
    store = Store(workspace(ctx))
    if not store.workspace.exists():
        raise CoauditError(f"{store.workspace.home}: no workspace here; `coaudit ingest PATH` makes one")
    with progress("rebuilding") as report:
        result = make_anew(store, report)
    for line in complaints(result.quarantined):
        say(line)
    if json:
        emit({"trajectories": result.trajectories, "events": result.events})
    else:
        tell(_amount(result.trajectories, result.events))
