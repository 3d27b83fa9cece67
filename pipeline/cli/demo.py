"""The command that shows the main job on the sample logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import sample_audit as running
from .console import say, tell

app = typer.Typer(rich_markup_mode=None)


@app.command("demo")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demo's workspace and report.")] = Path("demo"),
) -> None:
    """Audit the sample logs: ingest, judge with the embedded rules, three answers, the report."""
    page, text = running.run(out, say)
    tell(*text.split("\n"))
    here = f"coaudit --workspace {out / 'workspace'}"
    say(f"All tables on one page: {page}")
    say(f"All pages:              {here} dashboard")
    say(f"The sessions:           {here} trajectory list")
