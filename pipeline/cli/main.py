"""The command line: every command parses, calls a library function and reports.

Commands live in pipeline/commands/; they import what is heavy when they run, so that --help answers at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CoauditError, UsageError
from . import agreement, annotate, codebooks, data, demo, follow, judge, metrics, ratings, show
from .console import remember

DEBUG = "COAUDIT_DEBUG"
app = typer.Typer(
    name="coaudit",
    help="How did the team of people and agents work, where did it fail, how far can the judge be trusted?",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def common(
    workspace: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the workspace; else COAUDIT_WORKSPACE, else ./workspace.", file_okay=False
        ),
    ] = None,
) -> None:
    """What stands before every command."""
    remember(workspace)


for module in (
    data,
    follow,
    codebooks,
    judge,
    annotate,
    ratings,
    metrics,
    agreement,
    show,
    demo,
):
    for name, function in module.COMMANDS.items():
        app.command(name)(function)
    for name, group in module.GROUPED.items():
        app.add_typer(group, name=name)


def main() -> None:
    """Run the command; an expected error is one message on stderr and exit status 1 (2 for wrong use)."""
    try:
        app()
    except UsageError as error:
        print(f"coaudit: {error}", file=sys.stderr)
        sys.exit(2)
    except CoauditError as error:
        print(f"coaudit: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        print(f"coaudit: {explained(error)}", file=sys.stderr)
        sys.exit(1)


def explained(error: Exception) -> str:
    """One message for an error that nobody foresaw; those of files and databases speak for themselves."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = (str(error).strip() or "no message").splitlines()[0]
    if type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb", "sqlite3"):
        return f"the database: {text}"
    return f"unexpected {type(error).__name__}: {text} ({DEBUG}=1 shows where)"
