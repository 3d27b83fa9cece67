"""The command `dashboard`."""

from __future__ import annotations

import os
import socket
import sys
from typing import Annotated

import typer

from ..errors import CoauditError
from .console import say, store, workspace

app = typer.Typer(rich_markup_mode=None)


@app.command("dashboard")
def dashboard(
    ctx: typer.Context,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.", min=1, max=65535)] = 8501,
) -> None:
    """Look at the workspace in the browser, at http://127.0.0.1:PORT. It reads only; Ctrl-C ends it."""
    from importlib import resources

    place = workspace(ctx)
    if not place.exists():
        raise CoauditError(f"{place.path}: no workspace here; `coaudit ingest PATH` makes one")
    store(ctx)
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
    _check_free(port)
    say(f"http://127.0.0.1:{port}  (Ctrl-C ends it)")
    os.environ["COAUDIT_WORKSPACE"] = str(place.path.resolve())
    os.execv(sys.executable, command)


def _check_free(port: int) -> None:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError as error:
            raise CoauditError(
                f"port {port} of 127.0.0.1 cannot be had: {error.strerror}; --port N"
            ) from error
