"""Commands that show: the report and the dashboard."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...schemas import canonical_json
from ..errors import CoauditError, UsageError
from ..report import answers, methods
from ..report import build as reporting
from ..report.html import html
from ..report.latex import latex
from ..report.text import brief, markdown, terminal
from .console import say, store

app = typer.Typer(rich_markup_mode=None)

FORMATS = ("html", "md", "tex", "json", "text")


@app.command("report")
def report(
    ctx: typer.Context,
    format: Annotated[
        str | None, typer.Option(help=f"{', '.join(FORMATS)}; else by the file's ending, else text.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; else stdout.")] = None,
    rater: Annotated[
        str | None, typer.Option(help="Whose ratings the process metrics use; else gold where complete.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="As text, all tables in place of the three answers.")
    ] = False,
) -> None:
    """How the team worked, where it failed, how far the judge is right; all tables with --full or as a file.

    Files are one HTML page, Markdown, LaTeX tables or JSON, by their ending.
    """
    import shutil

    chosen = _format(format, out)
    if chosen == "text" and not full:
        here = store(ctx)
        _put(brief(answers.answers(here), methods.facts(here), shutil.get_terminal_size().columns), out)
        return
    made = reporting.build(store(ctx), rater=rater)
    if chosen == "html":
        text = html(made)
    elif chosen == "md":
        text = markdown(made)
    elif chosen == "tex":
        text = latex(made)
    elif chosen == "json":
        text = canonical_json(reporting.document(made)) + "\n"
    else:
        text = terminal(made, shutil.get_terminal_size().columns)
    _put(text, out)
    if out:
        say(f"{out}: {len(made.tables)} tables")


def _put(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CoauditError(f"{out}: cannot write the report: {error.strerror}") from error


def _format(given: str | None, out: Path | None) -> str:
    ending = {".html": "html", ".htm": "html", ".md": "md", ".tex": "tex", ".json": "json"}
    chosen = given or (ending.get(out.suffix.lower(), "text") if out else "text")
    if chosen not in FORMATS:
        raise UsageError(f"--format must be one of {', '.join(FORMATS)}, got {chosen!r}")
    return chosen
