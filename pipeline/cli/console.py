"""What commands share: the workspace, one JSON document on stdout, messages and progress on stderr."""

from __future__ import annotations

import io
import itertools
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...schemas.text import one_line, shortened, visible, visible_json
from ..errors import UsageError
from ..ingest.ready import ready
from ..store import Selection, Store, Workspace
from ..store.queries.groupings import selection_of

if TYPE_CHECKING:
    from ..ingest.result import Progress

SettingOption = Annotated[
    str | None, typer.Option("--setting", help="real or simulated users, where the log does not say.")
]
ConditionOption = Annotated[
    str | None,
    typer.Option("--condition", help="Arm of the experiment; default: the name of the folder above."),
]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", help="key=value, kept with each trajectory; repeatable.")
]
MaxSteps = Annotated[
    int | None,
    typer.Option(
        min=1, help="Co-Gym's step limit; default: the configuration beside a session, else 30 or 100."
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        help="NAME=VALUE: only sessions with this field, tag, day (or FIRST..LAST) or outcome (success=0; – "
        "for none); repeatable: any value of one name, and one of each name.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")]


def workspace(ctx: typer.Context) -> Workspace:
    """The workspace of this call, which `--workspace` names."""
    place = Workspace.at(ctx.obj)
    place.pull()
    return place


def store(ctx: typer.Context, *, for_ingest: bool = False) -> Store:
    """The store of this call; a database that was deleted is first rebuilt from the ledgers."""
    return ready(workspace(ctx), say, progress, for_ingest=for_ingest)


def emit(document: Any) -> None:
    """Print one JSON document."""
    write_document([visible_json(json.dumps(document, ensure_ascii=False, default=str)), "\n"])


def emit_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print the document `{"rows": [...]}`, row by row, in any number."""
    lines = (visible_json(json.dumps(row, ensure_ascii=False, default=str)) for row in rows)
    first = list(itertools.islice(lines, 1))  # an error before any row leaves nothing on stdout
    write_document(itertools.chain(['{"rows": ['], first, (f", {row}" for row in lines), ["]}\n"]))


def write_document(parts: Iterable[str]) -> None:
    """Write a document for other programs on stdout: in UTF-8, whatever the locale's encoding is, unless a
    terminal shows it."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8", errors=sys.stdout.errors)
    sys.stdout.writelines(parts)


def tell(*lines: str) -> None:
    """Print lines for a person, on stdout.

    Line feeds and control characters are shown, not obeyed: no name of a log makes a line of its own.
    """
    print("\n".join(map(_shown, lines)))


def say(*lines: str) -> None:
    """Print a message for a person on stderr, in the same way."""
    print("\n".join(map(_shown, lines)), file=sys.stderr)


def _shown(line: str) -> str:
    return visible(one_line(line))


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A progress bar on stderr that shows itself after a second; none where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda what, count, total: None
        return
    import time

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None, visible=False)
    began = time.monotonic()

    def report(what: str, count: int, total: int) -> None:
        is_visible = time.monotonic() - began > 1
        bar.update(
            task,
            description=f"{title} {_shown(what)[-60:]}",
            completed=count,
            total=total,
            visible=is_visible,
        )

    with bar:
        yield report


PIPED = 160
"""Width of a table where stdout is no terminal and COLUMNS is not set."""
CELL = 200
"""Most characters of a cell that are shown: the name of a session in a log may be a megabyte."""
MEASURED = 1000
"""Rows from which the widths of a table's columns are taken; later rows widen them where there is room."""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout; cells are text, never markup. Rows may come one by one, in any number."""
    from rich.console import Console
    from rich.text import Text

    from .tables import Layout

    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(width=None if has_width else PIPED)
    clean_rows = ([_shown(shortened(cell, CELL)).expandtabs() for cell in row] for row in rows)
    head = list(itertools.islice(clean_rows, MEASURED))
    layout = Layout.of([columns, *head], console)
    if title:
        console.print(Text(_shown(title), style="italic"))
    console.print(Text("\n".join(layout.lines(columns)), style="bold"), soft_wrap=True)
    for row in itertools.chain(head, clean_rows):
        layout = layout.wider(row)
        sys.stdout.writelines(f"{line}\n" for line in layout.lines(row))


def number(value: float | None, digits: int = 3) -> str:
    """A number for reading; a dash where it is undefined."""
    if value is None:
        return "–"
    if abs(value) >= 1e15:
        return f"{value:.6g}"
    return str(int(value)) if value == int(value) and abs(value) >= 1 else f"{value:.{digits}f}"


def interval(low: float | None, high: float | None) -> str:
    """An interval for reading; nothing where there is none."""
    return "" if low is None else f"{number(low)} – {number(high)}"


def finite(value: float, option: str) -> float:
    """The number of an option; UsageError for NaN and infinity, which would spoil every sum."""
    if not math.isfinite(value):
        raise UsageError(f"{option} takes a finite number, got {value}")
    return value


def price(value: float) -> float:
    """λ of T - λC; UsageError below 0, where T - λC would exceed 1, the best that there is."""
    if finite(value, "--penalty") < 0:
        raise UsageError(f"--penalty is the price of a human step and at least 0, got {value}")
    return value


def allowance(value: float) -> float:
    """γ of a time limit; UsageError for 0 and below, under which nothing is in time."""
    if finite(value, "--gamma") <= 0:
        raise UsageError(f"--gamma is what a run may take over the optimal steps and above 0, got {value}")
    return value


def split(text: str) -> list[str]:
    """A comma-separated option as its parts."""
    return [part.strip() for part in text.split(",") if part.strip()]


def conditions(options: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """`--where` as (field or tag, value) pairs."""
    pairs = [(text, *text.partition("=")) for text in options or ()]
    for text, name, _, value in pairs:
        if not name.strip() or not value.strip():
            raise UsageError(f"--where must be NAME=VALUE, such as task=related_work, got {text!r}")
    return tuple((name.strip(), value.strip()) for _, name, _, value in pairs)


def selection(here: Store, where: Sequence[str] | None) -> Selection | None:
    """The sessions that `--where` names; None without it, for all of them."""
    if not where:
        return None
    with here.reading(synced=True) as connection:
        return selection_of(connection, conditions(where))


def tags(options: list[str]) -> dict[str, str]:
    """`key=value` options as a dictionary; UsageError for one without a `=`."""
    for item in options:
        if "=" not in item.strip("="):
            raise UsageError(f"expected key=value, got {item!r}")
    return {key: value for key, _, value in (item.partition("=") for item in options)}
