"""Commands about a study that several machines share: what it holds, and what people put into it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ...schemas import content_hash, toml
from .. import codebooks
from ..errors import SourceError, UsageError
from ..store import Workspace, disk
from ..store.ledgers import ledger
from ..store.locks import FolderLocks
from .console import Json, emit, table, tell, workspace

app = typer.Typer(rich_markup_mode=None)
study_app = typer.Typer(
    help="What the machines of a study share: show it, or add settings and codebooks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(study_app, name="study")
SETTINGS = "coaudit.toml"


@study_app.command("show")
def show(ctx: typer.Context, json: Json = False) -> None:
    """Show where the ledgers and tables are, and how much each machine wrote."""
    place = workspace(ctx)
    ledgers = {
        "ratings": ledger.files(place.ratings),
        "sources": place.sources.files(),
        "outcomes": place.outcomes.files(),
        "forgotten": place.forgotten.files(),
        "samples": ledger.files(place.samples),
    }
    writers = Counter(_machine(path) for paths in ledgers.values() for path in paths)
    rows = [
        {"ledger": name, "files": len(paths), "bytes": sum(path.stat().st_size for path in paths)}
        for name, paths in ledgers.items()
    ]
    document = {
        "home": place.home,
        "study": place.study if (place.path / "secret").exists() else None,
        "store": place.shown_store,
        "machines": dict(sorted(writers.items())),
        "rows": rows,
    }
    if json:
        emit(document)
        return
    study = document["study"] or "not begun"
    tell(f"ledgers: {place.home}", f"tables:  {place.shown_store}", f"study:   {study}")
    table("", ["ledger", "files", "bytes"], [[str(value) for value in row.values()] for row in rows])
    table("", ["machine", "files"], [[name, str(count)] for name, count in sorted(writers.items())])


@study_app.command("put")
def put(
    ctx: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="coaudit.toml, or codebook files.", dir_okay=False)],
    replace: Annotated[
        list[str] | None,
        typer.Option(metavar="VERSION", help="The version to replace, as printed when the file was refused."),
    ] = None,
) -> None:
    """Give settings or codebooks to every machine of the study.

    An existing file is only replaced with --replace and its version.
    """
    place = workspace(ctx)
    for file in files:
        name, content = _name(file), file.read_bytes()
        _put(place, name, content, replace or [])
        place.pull(at_once=True)
        tell(f"{place.home}/{name}: version {_version(content)} is there")


def _put(place: Workspace, name: str, content: bytes, versions: Sequence[str]) -> None:
    """Put a file into the study; one that is there is replaced only if its version is among `versions`."""
    home, target = f"{place.home}/{name}", place.path / name
    place.create()
    with FolderLocks(place.path / "locks").exclusive(f"put {name}", lambda holder: None):
        current = place.remote.read(name) if place.remote else _content(target)
        if current == content:
            return
        if current is not None and _version(current) not in versions:
            version = _version(current)
            raise UsageError(
                f"{home}: another one is there, version {version}. Look at it ({target}), take over what you "
                f"need, and put yours in its place with --replace {version}"
            )
        if not place.remote:
            target.parent.mkdir(exist_ok=True)
            disk.put(target, content)
        elif not (place.remote.create(name, content) or place.remote.replace(name, content, current or b"")):
            raise UsageError(f"{home}: another version has just been put there; try again to see which")


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _version(content: bytes) -> str:
    return content_hash(content.decode("utf-8", "replace"))[:12]


def _name(file: Path) -> str:
    """The path of a file in the study; a codebook is checked first, so that no machine gets a broken one."""
    if not file.is_file():
        raise SourceError(f"{file}: no such file")
    if file.name == SETTINGS:
        try:
            toml.parse(file.read_bytes())
        except ValueError as error:
            raise SourceError(f"{file}: {error}") from error
        return SETTINGS
    return f"codebooks/{codebooks.read(file).name}.toml"


def _machine(path: Path) -> str:
    """The machine that wrote a file, according to the file's name; a sample's name is a person's."""
    match = _WRITTEN.match(path.name)
    return match[1] if match else "unknown"


_WRITTEN = re.compile(r"\d{8}T[\d~]+-(\w+)-\d+-[0-9a-f]{8}\.")
"""How `ledger.new_name` begins a name."""
