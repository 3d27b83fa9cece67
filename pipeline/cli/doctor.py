"""The command `doctor`: what is installed and answers, and which commands lack something."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata, util
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import typer

from ...schemas.extras import pip_command
from ...schemas.text import count_of
from ..errors import CoauditError, UsageError
from ..store import Store, Workspace, first_row
from .console import Json, emit_rows, table, workspace

app = typer.Typer(rich_markup_mode=None)

NEEDED = ("coaudit", "duckdb", "pyarrow", "polars", "litellm", "streamlit", "label-studio-sdk")
"""Packages without which nothing works."""
OPTIONAL = {
    "ray": ("judge --engine ray", pip_command("ray")),
    "inspect_ai": ("ingest of Inspect's .eval files", pip_command("inspect")),
    "duckdb_extension_ducklake": ("a store on DuckLake", pip_command("lake")),
    "obstore": ("a workspace in an object store", pip_command("remote")),
}
"""Module -> what needs it, and what brings it."""
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LABEL_STUDIO_API_KEY")
TIMEOUT = 1.0
"""Seconds a server has to answer."""
LITTLE = 2 * 1024**3
"""Bytes of disk below which an ingest may not fit."""


class Finding(NamedTuple):
    """One thing that was checked. `state` is ok, missing, or failed where nothing works without it."""

    what: str
    state: str
    detail: str
    needed_for: str


@app.command("doctor")
def doctor(
    ctx: typer.Context,
    redis: Annotated[
        str, typer.Option(help="URL of the Redis that live sessions come from.")
    ] = "redis://127.0.0.1:6379/0",
    label_studio: Annotated[
        str | None,
        typer.Option(help="URL of Label Studio; default: LABEL_STUDIO_URL, else http://127.0.0.1:8080."),
    ] = None,
    api_base: Annotated[str | None, typer.Option(help="Endpoint of a model to try as well.")] = None,
    json: Json = False,
) -> None:
    """Check what is installed and reachable, and what commands still need. Exit 1 if the core is broken."""
    studio = label_studio or os.environ.get("LABEL_STUDIO_URL") or "http://127.0.0.1:8080"
    servers = [("Redis", redis, "follow"), ("Label Studio", studio, "labelstudio push, pull")]
    servers += [("model", api_base, "judge --model")] if api_base else []
    findings = [
        *_packages(),
        *_workspace(Store(workspace(ctx), read_only=True)),
        *_extras(),
        *(_server(*one) for one in servers),
        *_keys(),
    ]
    if json:
        emit_rows(finding._asdict() for finding in findings)
    else:
        table("", ["what", "state", "detail", "needed for"], [list(finding) for finding in findings])
    if any(finding.state == "failed" for finding in findings):
        raise typer.Exit(1)


def _packages() -> Iterator[Finding]:
    yield Finding("Python", "ok", ".".join(map(str, sys.version_info[:3])), "everything")
    for name in NEEDED:
        try:
            yield Finding(name, "ok", metadata.version(name), "everything")
        except metadata.PackageNotFoundError:
            yield Finding(name, "failed", "not installed: install coaudit again", "everything")


def _workspace(here: Store) -> Iterator[Finding]:
    path, home, name = here.workspace.path, here.workspace.home, "workspace"
    if not here.workspace.exists():
        yield Finding(name, "missing", f"{home}: none yet; `coaudit ingest PATH` makes one", "every command")
    else:
        try:
            with here.reading() as connection:
                row = first_row(connection, "SELECT count(*) FROM trajectories")
            content = count_of(row[0] if row else 0, "trajectory", "trajectories")
            yield Finding(name, "ok", f"{home}: {content}", "every command")
        except CoauditError as error:
            yield Finding(name, "failed", str(error), "every command")
    above = next(folder for folder in (path.resolve(), *path.resolve().parents) if folder.exists())
    if not os.access(above, os.W_OK):
        yield Finding("writing", "missing", f"{above}: read-only for you", "ingest, judge, sample")
    free = shutil.disk_usage(above).free
    state = "ok" if free > LITTLE else "missing"
    yield Finding("disk", state, f"{free / 1024**3:.0f} GiB free", "ingest, rebuild")
    if sizes := [f"{name} {size / 1024**2:,.0f} MiB" for name, size in _recordings(here.workspace)]:
        yield Finding("recordings", "ok", ", ".join(sizes), "rebuild of what was followed")


def _recordings(here: Workspace) -> Iterator[tuple[str, int]]:
    """The folders that grow as long as somebody follows, with their bytes."""
    for name in ("live", "serving", "stdin"):
        sizes = [path.stat().st_size for path in (here.raw / name).rglob("*") if path.is_file()]
        if sizes:
            yield f"raw/{name}", sum(sizes)


def _extras() -> Iterator[Finding]:
    yield _vllm()
    for module, (use, hint) in OPTIONAL.items():
        is_installed = util.find_spec(module) is not None
        yield Finding(module, "ok" if is_installed else "missing", "installed" if is_installed else hint, use)
    yield _label_studio()


def _label_studio() -> Finding:
    """Whether Label Studio is in its own environment, which the command that needs it creates."""
    from ...annotation.labelstudio import server

    place = server.program(server.default_environment())
    detail = (
        str(place) if place.exists() else f"not yet in {place.parent.parent}; installed when first needed"
    )
    return Finding("label-studio", "ok", detail, "labelstudio up")


def _vllm() -> Finding:
    """vLLM in this environment, or in that of the Python that a variable names, which is asked for it."""
    from ...judges.clients.served import PYTHON

    name, use, python = "vllm", "judge --engine vllm", os.environ.get(PYTHON)
    if not python:
        is_installed = util.find_spec(name) is not None
        hint = f"{pip_command('vllm')}, or have {PYTHON} name the Python of an environment that has it"
        return Finding(name, "ok" if is_installed else "missing", "installed" if is_installed else hint, use)
    where = f"{PYTHON}={python}"
    try:
        process = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, timeout=_SLOW)
    except OSError as error:
        return Finding(name, "missing", f"{where}: cannot be run: {error.strerror}", use)
    except subprocess.TimeoutExpired:
        return Finding(name, "missing", f"{where}: does not answer within {_SLOW:.0f} s", use)
    if process.returncode == 0:
        return Finding(name, "ok", f"{process.stdout.strip()[:40]} at {where}", use)
    reason = (process.stderr.strip().splitlines() or [f"exit {process.returncode}"])[-1][:200]
    return Finding(name, "missing", f"{where}: no vllm there ({reason})", use)


_VERSION = "from importlib.metadata import version; print(version('vllm'))"
_SLOW = 10.0
"""Seconds that a Python may take to start."""


def _server(name: str, url: str, use: str) -> Finding:
    """Whether something listens at a URL, whose user and password are not shown."""
    parts = urlsplit(url)
    standard = {"redis": 6379, "rediss": 6379, "https": 443}.get(parts.scheme, 80)
    try:
        port = parts.port or standard
    except ValueError as error:
        raise UsageError(f"{name}: no address: {error}") from error
    where = f"{parts.hostname or '127.0.0.1'}:{port}"
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", port), timeout=TIMEOUT):
            return Finding(name, "ok", f"{where} answers", use)
    except OSError as error:
        return Finding(name, "missing", f"{where}: {error.strerror or error}", use)


def _keys() -> Iterator[Finding]:
    for name in KEYS:
        is_set = bool(os.environ.get(name, "").strip())
        use = "labelstudio push, pull" if name.startswith("LABEL") else "judge --model"
        yield Finding(name, "ok" if is_set else "missing", "set" if is_set else "not set", use)
