"""Commands that show: the report and the dashboard."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CoauditError, UsageError
from .console import Commands, Groups, say, store, workspace

FORMATS = ("html", "md", "json", "text")


def report(
    format: Annotated[
        str | None, typer.Option(help=f"{', '.join(FORMATS)}; else by the file's ending, else text.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; else stdout.")] = None,
    rater: Annotated[
        str | None, typer.Option(help="Whose ratings the process metrics use; else gold where complete.")
    ] = None,
) -> None:
    """Tables, failure modes, agreement, rates and methods: as one HTML page, Markdown, JSON or text."""
    import shutil

    from ...schemas import canonical_json
    from ..report import build as reporting

    chosen = _format(format, out)
    made = reporting.build(store(), rater=rater)
    if chosen == "html":
        text = reporting.to_html(made)
    elif chosen == "md":
        text = reporting.to_markdown(made)
    elif chosen == "json":
        text = canonical_json(reporting.document(made)) + "\n"
    else:
        text = reporting.to_terminal(made, _width(shutil.get_terminal_size().columns))
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CoauditError(f"{out}: cannot write the report: {error.strerror}") from error
    say(f"{out}: {len(made.tables)} tables")


def _format(given: str | None, out: Path | None) -> str:
    ending = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}
    chosen = given or (ending.get(out.suffix.lower(), "text") if out else "text")
    if chosen not in FORMATS:
        raise UsageError(f"--format must be one of {', '.join(FORMATS)}, got {chosen!r}")
    return chosen


def _width(columns: int) -> int:
    return max(100, columns) if sys.stdout.isatty() else 140


def dashboard(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.", min=1, max=65535)] = 8501,
) -> None:
    """Look at the workspace in the browser, at http://127.0.0.1:PORT. It reads only; Ctrl-C ends it."""
    from importlib import resources

    found = workspace()
    if not found.exists():
        raise CoauditError(f"{found.path}: no workspace here; `coaudit ingest PATH` makes one")
    store()
    app = resources.files("coaudit.dashboards") / "app.py"
    flags = {
        "server.address": "127.0.0.1",
        "server.port": str(port),
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "client.showErrorDetails": "none",
        "client.toolbarMode": "minimal",
    }
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(app)]
    command += [part for name, value in flags.items() for part in (f"--{name}", value)]
    say(f"http://127.0.0.1:{port}  (Ctrl-C ends it)")
    os.environ["COAUDIT_WORKSPACE"] = str(found.path.resolve())
    os.execv(sys.executable, command)


COMMANDS: Commands = {"report": report, "dashboard": dashboard}
GROUPED: Groups = {}
