"""The command `map`: what is in logs of no known format, and a mapping for them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ...schemas import Quarantined, Trajectory
from ..errors import CoauditError, SourceError
from ..ingest import run as ingesting
from ..ingest.archives import archives_below, is_archive, unpacked_folder
from ..ingest.discover import discover
from ..store import disk
from ..systems import ReadOptions
from ..systems.base import walk
from ..systems.formats.draft import drafting
from ..systems.formats.draft.unclear import open_questions, reason_unreadable
from ..systems.formats.fields.mapping import parse
from .console import Json, emit, say, write_document
from .trajectory import opening

app = typer.Typer(rich_markup_mode=None)
COMPLAINTS = 3
"""At most so many pieces that a draft cannot read are named."""


@app.command("map")
def map_logs(
    path: Annotated[Path, typer.Argument(help="A file, or a folder of files: JSON, CSV, Parquet, text.")],
    out: Annotated[Path | None, typer.Option(help="File for the draft; default: stdout.")] = None,
    paths: Annotated[
        bool, typer.Option("--paths/--no-paths", help="List the paths that the logs hold.")
    ] = True,
    json: Json = False,
) -> None:
    """Draft a mapping for logs of any format, and show the first trajectories that it yields."""
    if not path.exists():
        raise CoauditError(f"{path}: no such file or folder")
    with _log_folder(path) as folder:
        draft = drafting.draft(folder)
    if not draft.survey.records:
        raise CoauditError(f"{path}: {reason_unreadable(path, draft.survey)}")
    items = _read(path, draft)
    if out is not None:
        with disk.replace_file(out) as file:
            file.write(draft.text)
    if json:
        emit(drafting.document(draft, [item for item in items if isinstance(item, Trajectory)]))
        return
    if names := sorted({name for _, name in discover(path)}):
        say(f"coaudit ingest reads this as {', '.join(names)} without a mapping; one says more of it")
    if paths:
        say(draft.summary(), *drafting.path_lines(draft.survey), "")
    _show(draft, items)
    if out is None:
        write_document([draft.text])
    else:
        next_ = shlex.join(["coaudit", "ingest", str(path), "--map", str(out)])
        refusal = _refusal(draft.text)
        need = f", which ingest refuses until what is not understood is in it ({refusal})" if refusal else ""
        say(f"{out}: the draft{need}; next: {next_}")


@contextmanager
def _log_folder(path: Path) -> Iterator[Path]:
    """The path itself, or what an archive holds, unpacked; of a folder of archives alone, its first one."""
    if path.is_dir() and (inside := archives_below(path)) and set(_files(path)) <= set(inside):
        path = inside[0]
    if not is_archive(path):
        yield path
        return
    with unpacked_folder(path) as (folder, _):
        yield folder


def _files(folder: Path) -> list[Path]:
    return [path for path in walk(folder) if path.is_file()]


def _read(path: Path, draft: drafting.Draft) -> list[Trajectory | Quarantined]:
    if draft.guess.shape == "nothing":
        return []
    return ingesting.preview([path], ReadOptions(map=draft.text), "mapped")


def _refusal(text: str) -> str | None:
    """Why a draft cannot be used yet; None where it can."""
    try:
        parse(text, "draft")
    except SourceError as error:
        return str(error).removeprefix("draft: ")
    return None


def _show(draft: drafting.Draft, items: list[Trajectory | Quarantined]) -> None:
    trajectories = [item for item in items if isinstance(item, Trajectory)]
    wrong = [item for item in items if isinstance(item, Quarantined)]
    for trajectory in trajectories:
        say(*opening(trajectory))
    for item in wrong[:COMPLAINTS]:
        say(f"not read: {item}")
    if len(wrong) > COMPLAINTS:
        say(f"not read: {len(wrong) - COMPLAINTS} more pieces on the way to these trajectories")
    say(drafting.coverage(draft, trajectories))
    for doubt in open_questions(draft.survey, draft.guess):
        say(f"not understood: {doubt}")
