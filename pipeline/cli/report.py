"""Commands that show: the report and the dashboard."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...schemas import canonical_json
from ...schemas.text import count_of, visible_json
from ..errors import CoauditError, UsageError
from ..report import Report, answers, methods
from ..report import build as reporting
from ..report import figures as drawing
from ..report.html import html
from ..report.latex import latex, writable
from ..report.text import brief, markdown, terminal
from ..store import disk
from .console import Where, price, say, selection, store, write_document

app = typer.Typer(rich_markup_mode=None)

FORMATS = ("html", "md", "tex", "json", "text")


@app.command("report")
def report(
    ctx: typer.Context,
    format: Annotated[
        str | None, typer.Option(help=f"{', '.join(FORMATS)}; else by the file's ending, else text.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; default: stdout.")] = None,
    rater: Annotated[
        str | None,
        typer.Option(
            help="Whose ratings the process metrics use; default: who rated most of them, gold first."
        ),
    ] = None,
    penalty: Annotated[float, typer.Option(help="λ of the reward T - λC.", callback=price)] = 0.08,
    figures: Annotated[Path | None, typer.Option(help="Folder for the figures, as SVG and PDF.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="With text: all tables in place of the three answers.")
    ] = False,
    where: Where = None,
) -> None:
    """How the team worked, where it failed, how far the judge can be trusted; or all tables.

    All tables are printed with --full, or written to --out FILE: one HTML page, Markdown, LaTeX or JSON,
    depending on its ending. --figures writes the figures into a folder; LaTeX includes them from there.
    """
    import shutil

    kind = _format(format, out)
    if kind == "text" and not full and not figures:
        _check_used(ctx)
        here = store(ctx)
        only = selection(here, where)
        facts = methods.facts_of_report(here, only)
        text = brief(answers.answers(here, only), facts, shutil.get_terminal_size().columns)
        _put(text, out, for_people=True)
        return
    here = store(ctx)
    document = reporting.build(here, only=selection(here, where), rater=rater, penalty=penalty)
    if kind == "html":
        text = html(document)
    elif kind == "md":
        text = markdown(document)
    elif kind == "tex":
        text = latex(document, None if figures is None else _figure_folder(out, figures))
    elif kind == "json":
        text = visible_json(canonical_json(reporting.document(document))) + "\n"
    else:
        text = terminal(document, shutil.get_terminal_size().columns)
    if figures:
        say(f"{figures}: {_figures_text(_write_figures(document, figures))}, each as SVG and PDF")
    if kind == "tex" and not figures and document.figures:
        say(f"without its {_figures_text(len(document.figures))}; --figures FOLDER writes and includes them")
    if out or format or not figures:
        _put(text, out, for_people=kind == "text")
    if out:
        say(f"{out}: {count_of(len(document.tables), 'table', 'tables')}")


def _check_used(ctx: typer.Context) -> None:
    """UsageError for options that the three answers do not use."""
    for name in ("rater", "penalty"):
        source = ctx.get_parameter_source(name)
        if source and source.name == "COMMANDLINE":
            raise UsageError(f"--{name} is for the tables: --full, or --out FILE, shows them")


def _figure_folder(out: Path | None, figures: Path) -> str:
    """The folder of the figures as the LaTeX file sees it; UsageError for a name that LaTeX cannot take."""
    import os

    here = out.absolute().parent if out else Path.cwd()
    folder = Path(os.path.relpath(figures.absolute(), here)).as_posix()
    if not writable(folder):
        raise UsageError(f"--figures: LaTeX cannot take the path {folder!r}; use letters, digits, - and _")
    return folder


def _figures_text(figures: int) -> str:
    return f"{figures} figure{'s' * (figures != 1)}"


def _write_figures(document: Report, folder: Path) -> int:
    """Write the figures under their numbers and names; how many."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in drawing.with_file_names(document.figures):
            (folder / f"{name}.svg").write_text(drawing.svg(figure), encoding="utf-8")
            (folder / f"{name}.pdf").write_bytes(drawing.pdf(figure))
    except OSError as error:
        raise CoauditError(f"{folder}: cannot write the figures: {error.strerror}") from error
    return len(document.figures)


def _put(text: str, out: Path | None, *, for_people: bool) -> None:
    if out is None:
        sys.stdout.write(text) if for_people else write_document([text])
        return
    try:
        with disk.replace_file(out) as file:
            file.write(text)
    except OSError as error:
        raise CoauditError(f"{out}: cannot write the report: {error.strerror}") from error


def _format(name: str | None, out: Path | None) -> str:
    ending = {".html": "html", ".htm": "html", ".md": "md", ".tex": "tex", ".json": "json"}
    ending |= {"": "text", ".txt": "text"}
    if out and not name and out.suffix.lower() not in ending:
        raise UsageError(
            f"--out {out}: no report has the ending {out.suffix}; print the .html, or name a --format"
        )
    kind = name or (ending[out.suffix.lower()] if out else "text")
    if kind not in FORMATS:
        raise UsageError(f"--format must be one of {', '.join(FORMATS)}, got {kind!r}")
    return kind
