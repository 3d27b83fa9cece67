"""The command line: every command parses, calls a library function and reports.

A command's module is imported when the command runs, so that `coaudit --help` answers at once.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from ...schemas.text import is_utf8, json_escapes, visible
from ..errors import INTERRUPTED, CoauditError, UsageError

DEBUG = "COAUDIT_DEBUG"
ESCAPES = "coaudit.escapes"
"""Name of the error handler of the streams."""
COMMANDS = {
    "ingest": ("ingest", "Read logs into the workspace."),
    "map": ("map", "Draft a mapping for logs of any format, for `ingest --map`."),
    "import": ("sets", "Import a public data set with its labels: mast, whowhen or trail."),
    "forget": ("forget", "Leave a source or a trajectory out of every figure, or bring it back."),
    "rebuild": ("ingest", "Rebuild the database from the ledgers and the logs that they name."),
    "export": ("export", "Write the audit tables, or the trajectories, for other programs."),
    "generate": ("generate", "Generate Co-Gym result folders whose correct labels are known."),
    "follow": ("follow", "Follow live sessions and growing logs into the workspace until interrupted."),
    "judge": ("judge", "Rate units with rules or a model."),
    "train": ("train", "Train a judge on existing ratings."),
    "advise": ("advise", "Learn when a person should step in, evaluate that, and get advice."),
    "sample": ("sample", "Draw units for people to label, with their inclusion probabilities."),
    "plan": ("sample", "How many units people must label for an interval of the wanted width."),
    "metrics": ("metrics", "The papers' metrics with their intervals, over all or by group."),
    "interventions": ("metrics", "ReHAC: where a person's step helped most and where it was wasted."),
    "agreement": ("agreement", "How far raters agree."),
    "rates": ("agreement", "How common each code is: the judge's own rate beside the corrected one."),
    "compare": ("agreement", "Differences between groups with intervals."),
    "validate": ("agreement", "One page on how far a judge can be trusted."),
    "replicate": ("replicate", "A paper's result tables: every published cell beside the workspace's own."),
    "report": ("report", "How the team worked, where it failed, how far the judge can be trusted."),
    "dashboard": ("dashboard", "Open the workspace in the browser."),
    "doctor": ("doctor", "Check what is installed and reachable, and what commands still need."),
    "demo": (
        "demo",
        "Audit the sample logs: ingest, judge with the embedded rules, three answers, the report.",
    ),
    "trajectory": ("trajectory", "List trajectories, or show one."),
    "quarantine": ("quarantine", "List what could not be read, and why."),
    "outcomes": ("outcomes", "Import outcomes that logs lack."),
    "study": ("study", "What the machines of a study share: show it, or add settings and codebooks."),
    "codebook": ("codebook", "List codebooks, show one, or check a file."),
    "labelstudio": ("labelstudio", "Send samples to Label Studio and fetch the labels."),
    "ratings": ("ratings", "Import or export ratings."),
}
"""Command -> its module here, and what `coaudit --help` says of it."""


class Commands(Mapping[str, Any]):
    """Name -> command, its module imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        module = import_module(f".{COMMANDS[name][0]}", __package__)
        return typer.main.get_group(module.app).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class LazyGroup(typer.core.TyperGroup):
    """A group whose help loads none of its commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands()  # type: ignore[assignment]  # nothing is added to them

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is left for the command."""
        return super().parse_args(ctx, _workspace_first(args))

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """A line a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(
    name="coaudit",
    cls=LazyGroup,
    help="How did people and agents work together, where did it fail, how far can the judge be trusted?",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        print(f"coaudit {version('coaudit')}")
        raise typer.Exit


@app.callback()
def common(
    ctx: typer.Context,
    workspace: Annotated[
        str | None,
        typer.Option(
            help="Folder of the workspace, or s3://bucket/study; default: COAUDIT_WORKSPACE or ./workspace."
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """What stands before every command."""
    ctx.obj = workspace


def main() -> None:
    """Run the command; an expected error is one message on stderr and its exit status."""
    _prepare_streams()
    try:
        _check_arguments()
        app()
    except CoauditError as error:
        _print_message(str(error))
        sys.exit(error.status)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        if _is_interrupt(error):
            sys.exit(INTERRUPTED)
        if os.environ.get(DEBUG):
            raise
        _print_message(unexpected_message(error))
        sys.exit(1)


def _prepare_streams() -> None:
    """Have each character that a stream's encoding lacks written as an escape that JSON has, too.

    A stream that is closed writes and reads nothing. Its number is taken, also in programs that are started:
    a database must not become the place where something else is printed.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # until the end
    codecs.register_error(ESCAPES, _escapes)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # until the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ESCAPES)


def _escapes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json_escapes(error.object[error.start : error.end]), error.end


def _workspace_first(args: list[str]) -> list[str]:
    """The arguments with the workspace before the command, where some write it behind; the last one counts.

    One without a value stands alone, so that no command is taken for it.
    """
    end = args.index("--") if "--" in args else len(args)
    front: list[str] = []
    rest: list[str] = []
    words = iter(args[:end])
    for word in words:
        if word != "--workspace":
            (front if word.startswith("--workspace=") else rest).append(word)
        elif (value := next(words, None)) is None:
            return [word]
        else:
            front += [word, value]
    return [*front, *rest, *args[end:]]


def _check_arguments() -> None:
    """UsageError for an argument that is not UTF-8, which no database holds; of files it is said later."""
    for word in sys.argv[1:]:
        if not is_utf8(word) and not os.path.lexists(word):
            raise UsageError(f"an argument must be UTF-8, got {word!r}")


def _is_interrupt(error: Exception) -> bool:
    """Whether somebody pressed Ctrl-C, for which DuckDB raises an error of its own during a query, and a
    module in C an ImportError while it is loaded."""
    if isinstance(error.__cause__, KeyboardInterrupt):
        return True
    return type(error).__name__ == "InterruptException" or (
        isinstance(error, RuntimeError) and str(error) == "Query interrupted"
    )


def _print_message(message: str) -> None:
    print(visible(f"coaudit: {message}"), file=sys.stderr)


def unexpected_message(error: Exception) -> str:
    """One message for an error that nobody foresaw; those of files and databases speak for themselves."""
    if isinstance(error, OSError) and error.strerror:
        if not error.filename:
            return error.strerror
        from ..store import disk

        whose = disk.foreign(Path(str(error.filename)), error)
        return f"{error.filename}: {error.strerror}" + (f"; {whose}" if whose else "")
    text = (str(error).strip() or "no message").splitlines()[0]
    if type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb", "sqlite3"):
        return f"the database: {text}"
    return f"unexpected {type(error).__name__}: {text} ({DEBUG}=1 shows where)"
