"""What commands share: the workspace, one JSON document on stdout, messages and progress on stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from ..errors import UsageError
from ..ingest import rebuild
from ..ingest.run import Progress
from ..store import Store, Workspace

SettingOption = Annotated[
    str | None, typer.Option("--setting", help="real or simulated, where the log does not say.")
]
ConditionOption = Annotated[
    str | None, typer.Option("--condition", help="The experiment's arm; else the folder above.")
]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", help="key=value, kept with each trajectory; repeatable.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")
]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def workspace(ctx: typer.Context) -> Workspace:
    """The workspace of this call, which `--workspace` names."""
    return Workspace.at(ctx.obj)


def store(ctx: typer.Context, *, for_ingest: bool = False) -> Store:
    """The store of this call. A database that was deleted is made again from the ledgers first."""
    opened = Store(workspace(ctx))
    if opened.workspace.sources.exists() and opened.is_file and not opened.has_tables():
        say(f"{opened.workspace.database}: no database; making it anew from the ledgers")
        with progress("rebuilding") as report:
            rebuild(opened, report)
    elif not for_ingest:
        opened.sync()
    return opened


def emit(document: Any) -> None:
    """Print one JSON document."""
    json.dump(document, sys.stdout, ensure_ascii=False, default=str)
    sys.stdout.write("\n")


def say(message: str) -> None:
    """A message to the person, on stderr; control characters from logs are made harmless."""
    print(safe(message), file=sys.stderr)


def safe(text: str) -> str:
    """Text from a log with control and direction characters shown as escapes, for a terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A progress bar on stderr that shows itself after a second; none where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    import time

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None, visible=False)
    began = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        visible = time.monotonic() - began > 1
        bar.update(
            task, description=f"{title} {safe(what)[-60:]}", completed=done, total=total, visible=visible
        )

    with bar:
        yield report


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """A table on stdout; cells are text, never markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=Text(title), title_justify="left", pad_edge=False, box=None)
    for name in columns:
        drawn.add_column(Text(name), overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(safe(cell)) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(drawn)


def number(value: float | None, digits: int = 3) -> str:
    """A number for reading; a dash where it is undefined."""
    if value is None:
        return "–"
    return str(int(value)) if value == int(value) and abs(value) >= 1 else f"{value:.{digits}f}"


def split(given: str) -> list[str]:
    """A comma-separated option as its parts."""
    return [part.strip() for part in given.split(",") if part.strip()]


def tags(given: list[str]) -> dict[str, str]:
    """`key=value` options as a dictionary; UsageError for one without a `=`."""
    for item in given:
        if "=" not in item.strip("="):
            raise UsageError(f"expected key=value, got {item!r}")
    return {key: value for key, _, value in (item.partition("=") for item in given)}
