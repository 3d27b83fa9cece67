"""The command `dashboard`."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
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
    """Open the workspace in the browser, at http://127.0.0.1:PORT. It only reads; Ctrl-C ends it."""
    from importlib import resources

    place = workspace(ctx)
    if not place.exists():
        raise CoauditError(f"{place.path}: no workspace here; `coaudit ingest PATH` makes one")
    store(ctx)
    app = Path(str(resources.files("coaudit.dashboards"))).resolve() / "app.py"
    command = [sys.executable, "-P", "-m", "coaudit.dashboards", "run", str(app)]
    command += [f"--{name}={value}" for name, value in _options(port)]
    _check_free(port)
    say(f"http://127.0.0.1:{port}  (Ctrl-C ends it)")
    os.environ["COAUDIT_WORKSPACE"] = str(place.path.resolve())
    # Streamlit obeys .streamlit/ of the folder it starts in, which may be one of downloaded logs.
    os.chdir(app.parent)
    os.execv(sys.executable, command)


def _options(port: int) -> list[tuple[str, str]]:
    """Streamlit's options; those that keep others out are given even where they are Streamlit's defaults."""
    return [
        ("server.address", "127.0.0.1"),
        ("server.port", str(port)),
        ("server.allowedHosts", "127.0.0.1"),
        ("server.allowedHosts", "localhost"),
        ("server.enableCORS", "true"),
        ("server.corsAllowedOrigins", f"http://127.0.0.1:{port}"),
        ("server.enableXsrfProtection", "true"),
        ("server.enableAgentApi", "false"),
        ("server.enableStaticServing", "false"),
        ("server.headless", "true"),
        ("server.fileWatcherType", "none"),
        ("browser.serverAddress", "127.0.0.1"),
        ("browser.gatherUsageStats", "false"),
        ("client.showErrorDetails", "none"),
        ("client.toolbarMode", "minimal"),
    ]


def _check_free(port: int) -> None:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError as error:
            raise CoauditError(
                f"port {port} on 127.0.0.1 is not available: {error.strerror}; choose another with --port"
            ) from error
