"""Commands for people in the loop: sample, plan, labelstudio up, push, pull, status, export, import."""

from __future__ import annotations

import os
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ...annotation.labelstudio import Server, server
from ...schemas.text import count_of
from ...schemas.url import shown_url
from ..annotate import pull as pulling
from ..annotate import push as annotating
from ..annotate import status as progressing
from ..annotate.project import coaudit_errors
from ..annotate.reconcile import PullResult
from ..errors import CoauditError, UsageError
from ..store.ledgers import samples
from .console import Json, emit, emit_rows, progress, say, store, table, tell

app = typer.Typer(rich_markup_mode=None)

URL = "http://127.0.0.1:8080"

labelstudio_app = typer.Typer(
    help="Send samples to Label Studio and fetch the labels.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(labelstudio_app, name="labelstudio")

SampleName = Annotated[str | None, typer.Option("--sample", help="Which sample; default: the only one.")]
Context = Annotated[
    str,
    typer.Option(help="What annotators see: transcript, preceding (nothing after the unit), unit (only it)."),
]


@labelstudio_app.command("up")
def up(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.", min=1, max=65535)] = 8080,
    env: Annotated[
        Path | None,
        typer.Option(help="Environment for label-studio; default: ~/.cache/coaudit/label-studio."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of its database; default: ~/.local/share/coaudit/label-studio."),
    ] = None,
) -> None:
    """Start a Label Studio of your own (installed on first use) and run it until Ctrl-C."""
    environment = env or server.default_environment()
    folder = data or Path.home() / ".local" / "share" / "coaudit" / "label-studio"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "label-studio.log"
    if server.is_healthy(f"http://{server.HOST}:{port}"):
        raise CoauditError(f"http://{server.HOST}:{port}: a server answers there already; choose --port")
    try:
        server.install(environment, say)
        with server.running_server(environment, port, folder, log) as process:
            say("starting Label Studio; the first time takes half a minute, minutes on a busy machine")
            url = server.wait(process, port, log, say=say)
            say(*_welcome(url, log))
            status = _exit_status(process)
    except server.InstallError as error:
        raise CoauditError(str(error)) from error
    if status:
        raise CoauditError(f"Label Studio ended: {server.reason(log, status)} (its log: {log})")


def _exit_status(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a process that ended by itself; 0 where we were told to end it."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        return 0


def _welcome(url: str, log: Path) -> tuple[str, ...]:
    return (
        f"Label Studio is at {url} (log: {log}); Ctrl-C ends it.",
        f"1. Sign up there: {url}/user/signup. Your token is under Account & Settings, Access Token.",
        "2. In another shell:",
        f"  export LABEL_STUDIO_URL={url}",
        "  read -rs LABEL_STUDIO_API_KEY && export LABEL_STUDIO_API_KEY",
        "  coaudit labelstudio push",
        f"3. Annotators need an account each: push prints the address where they sign up (in Label Studio: "
        f"{url}/organization, Add People). It answers on this machine only; from another one: "
        f"ssh -L {url.rsplit(':', 1)[1]}:{url.removeprefix('http://')} THIS-MACHINE",
    )


@labelstudio_app.command("push")
def push(
    ctx: typer.Context,
    sample: SampleName = None,
    context: Context = "transcript",
    with_predictions: Annotated[
        bool, typer.Option("--with-predictions", help="Show a judge's labels; people are then not blind.")
    ] = False,
    judge: Annotated[
        str | None, typer.Option(help="With --with-predictions: which judge; default: the only one.")
    ] = None,
    annotator: Annotated[
        list[str] | None,
        typer.Option(help="E-mail of an annotator, who gets a project of their own; repeatable."),
    ] = None,
    reset_config: Annotated[
        bool,
        typer.Option("--reset-config", help="Give projects the current layout, even if somebody changed it."),
    ] = False,
    json: Json = False,
) -> None:
    """Create the sample's projects, one for each annotator, and any tasks still missing.

    It is safe to repeat: nothing is created twice. In Label Studio, every member sees every project. What
    somebody answers or changes in another's project is listed by pull and status, and never counted.
    """
    workspace_store = store(ctx)
    unit_sample = samples.load(workspace_store.workspace, sample)
    if judge and not with_predictions:
        raise UsageError("--judge goes with --with-predictions")
    with _server() as server, progress("pushing") as report:
        results = annotating.push(
            workspace_store,
            server,
            unit_sample,
            context=context,
            judge=annotating.only_judge(workspace_store, unit_sample, judge) if with_predictions else None,
            people=annotator or (),
            reset_config=reset_config,
            progress=report,
        )
        invitation = annotating.invitation(server)
    if json:
        projects = [asdict(result) for result in results]
        emit({"sample": unit_sample.design.name, "projects": projects, "invitation": invitation})
    for result in results:
        for note in (*result.notes, *(f"left out: {text}" for text in result.left_out)):
            say(note)
        if not json:
            tell(
                f"{_whose(result)}: {count_of(result.sent, 'task', 'tasks')} sent, "
                f"{result.already} {'was' if result.already == 1 else 'were'} there  {result.url}"
            )
    if not json:
        tell(f"annotators sign up at {invitation}, each with their own e-mail address")


@labelstudio_app.command("pull")
def pull(ctx: typer.Context, sample: SampleName = None, json: Json = False) -> None:
    """Fetch what people labelled, changed or withdrew since the last pull."""
    workspace_store = store(ctx)
    with _server() as server:
        _report(pulling.pull(workspace_store, server, samples.load(workspace_store.workspace, sample)), json)


@labelstudio_app.command("status")
def status(ctx: typer.Context, sample: SampleName = None, json: Json = False) -> None:
    """Show how far annotation has come, by project and annotator."""
    workspace_store = store(ctx)
    with _server() as server:
        rows = progressing.status(workspace_store, server, samples.load(workspace_store.workspace, sample))
    if json:
        emit_rows(rows)
        return
    columns = [
        "project",
        "annotator",
        "codebook",
        "tasks",
        "missing",
        "annotated",
        "finished",
        "refused",
        "skipped",
        "s a task",
        "by",
        "last pull",
    ]
    table("Label Studio", columns, [_status_cells(row) for row in rows])
    for row in rows:
        for note in row["notes"]:
            say(note)


@labelstudio_app.command("export")
def export(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder for the files.", file_okay=False)],
    sample: SampleName = None,
    context: Context = "transcript",
) -> None:
    """Write tasks, configuration and instruction as files, for a Label Studio out of reach."""
    workspace_store = store(ctx)
    unit_sample = samples.load(workspace_store.workspace, sample)
    paths, left_out = annotating.export(workspace_store, unit_sample, folder, context)
    for text in left_out:
        say(f"left out: {text}")
    for path in paths:
        tell(str(path))


@labelstudio_app.command("import")
def import_export(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Label Studio's JSON export.")],
    sample: SampleName = None,
    annotator: Annotated[
        list[str] | None,
        typer.Option(help="ID=EMAIL: the person behind a numeric id in the file; repeatable."),
    ] = None,
    json: Json = False,
) -> None:
    """Read the annotations in a JSON export of Label Studio."""
    workspace_store = store(ctx)
    unit_sample = samples.load(workspace_store.workspace, sample)
    _report(pulling.import_file(workspace_store, unit_sample, file, _people(annotator or [])), json)


def _people(options: list[str]) -> dict[int, str]:
    people = {}
    for item in options:
        number, _, email = item.partition("=")
        if not number.strip().isdecimal() or not email.strip():
            raise UsageError(f"--annotator must be ID=EMAIL, got {item!r}")
        people[int(number)] = email.strip().lower()  # as Label Studio keeps it
    return people


def _report(result: PullResult, json: bool) -> None:
    if json:
        emit(asdict(result))
    else:
        tell(
            f"{count_of(result.annotations, 'annotation', 'annotations')} read: "
            f"{count_of(result.rated, 'new rating', 'new ratings')}, "
            f"{result.errors} without a label, {result.retracted} withdrawn, {result.unchanged} unchanged"
        )
    for report in result.reports:
        say(report)


def _whose(one: annotating.PushResult) -> str:
    who = f"annotator {one.annotator}" if one.annotator.isdigit() else one.annotator
    return f"{one.codebook} · {who}" if who else one.codebook


def _status_cells(row: dict[str, Any]) -> list[str]:
    by = ", ".join(f"{name} {n}" for name, n in row["annotators"].items()) or "–"
    counts = ("tasks", "missing", "annotated", "finished", "refused", "skipped")
    names = ("project", "annotator", "codebook", *counts)
    pace = "–" if row["seconds"] is None else f"{row['seconds']:.0f}"
    cells = ["–" if row[name] is None else str(row[name]) for name in names]
    return [*cells, pace, by, row["last_pull"] or "never"]


def _server() -> Server:
    """The server that the environment names; the token is never printed."""
    token = os.environ.get("LABEL_STUDIO_API_KEY", "").strip()
    if not token:
        raise UsageError("LABEL_STUDIO_API_KEY is not set: Label Studio, Account & Settings, Access Token")
    if not (token.isascii() and token.isprintable()):
        raise UsageError("LABEL_STUDIO_API_KEY must be one line of ASCII, which a header can hold")
    url = os.environ.get("LABEL_STUDIO_URL", "").strip() or URL
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"LABEL_STUDIO_URL must begin with http:// or https://, got {shown_url(url)!r}")
    if shown_url(url) != url:
        raise UsageError(
            "LABEL_STUDIO_URL must be only a host and a path, since it is written to ledgers "
            f"(LABEL_STUDIO_API_KEY says who asks), got more than {shown_url(url)!r}"
        )
    with coaudit_errors():
        return Server(url, token)
