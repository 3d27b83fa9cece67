"""Documents that are generated from the code: docs/commands.md, docs/codebooks.md and schemas/json.

The first comes from --help, the others from the types.
`make docs` writes them into the folder it is called from; tests keep them in step.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main
from pydantic import BaseModel

from ...schemas import Agreement, Codebook, Metric, Quarantined, Rate, Rating, Trajectory, Unit
from ...schemas.codebook import Category, Code, Example
from ...schemas.trajectory import GivenOutcome
from .main import app

WIDTH = 100
"""Columns of the help texts, so that they look the same in every terminal."""
MODELS: dict[str, type[BaseModel]] = {
    "agreement": Agreement,
    "codebook": Codebook,
    "metric": Metric,
    "outcome": GivenOutcome,
    "quarantined": Quarantined,
    "rate": Rate,
    "rating": Rating,
    "trajectory": Trajectory,
    "unit": Unit,
}
"""File under schemas/json -> the type it describes."""
_HEAD = """# Commands

All commands and options, as `coaudit --help` prints them. `--workspace DIR` may stand
before the command, `coaudit --workspace DIR metrics`, or behind it. (`make docs` writes this page.)
"""


_FIELDS = """# Codebooks and ratings

A codebook is a TOML file that says what raters look for. Put your own into `WORKSPACE/codebooks/NAME.toml`;
the shipped ones in [schemas/codebooks](../schemas/codebooks) are examples to copy.
`coaudit codebook check FILE` lists what is wrong with a codebook, and `coaudit codebook show NAME` prints
what raters read.

Ratings are JSON Lines, one rating per line, for `coaudit ratings import FILE`. Without a `rater_kind`, a
rating counts as a `human`'s. For labels in other formats, see [labels.md](labels.md).

(`make docs` writes this page from the types.)
"""


def documents() -> dict[str, str]:
    """Path from the repository's root -> text of each generated document."""
    by_name = {f"schemas/json/{name}.json": _schema(model) for name, model in MODELS.items()}
    return {"docs/commands.md": commands(), "docs/codebooks.md": fields(), **by_name}


def commands() -> str:
    """The reference of all commands, in the order of `coaudit --help`."""
    return "\n".join([_HEAD, *_helps()])


def _helps() -> Iterator[str]:
    def walk(command: Any, context: Any, depth: int) -> Iterator[str]:
        text = command.get_help(context)
        plain = "\n".join(line.rstrip() for line in text.splitlines())
        yield f"{'#' * depth} {context.command_path}\n\n```text\n{plain}\n```\n"
        inside: Mapping[str, Any] = getattr(command, "commands", {})
        for name in inside:
            inner = inside[name]
            yield from walk(inner, _context(inner, name, context), depth + 1)

    root = typer.main.get_command(app)
    yield from walk(root, _context(root, "coaudit", None), 2)


def fields() -> str:
    """What a codebook's file and a rating may hold, from the types that read them."""
    parts = [_FIELDS]
    for title, model in (
        ("A codebook", Codebook),
        ("`[[codes]]`", Code),
        ("`[[codes.examples]]`", Example),
        ("`[[categories]]`", Category),
        ("A rating", Rating),
    ):
        descriptions = _attribute_docstrings(model)
        parts += [f"## {title}\n", "| field | type | needed | what it says |", "|---|---|---|---|"]
        for name, field in model.model_fields.items():
            kind = str(model.__annotations__[name]).replace("|", "or")
            need = "yes" if field.is_required() else ""
            parts.append(f"| `{name}` | {kind} | {need} | {' '.join(descriptions.get(name, '').split())} |")
        parts.append("")
    return "\n".join(parts)


def _attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Field -> the text that stands behind it in the source."""
    (body,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: text.value.value
        for field, text in zip(body.body, body.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(text.value.value, str)
    }


def _context(command: Any, name: str, parent: Any) -> Any:
    return command.context_class(
        command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    )


def _schema(model: type[BaseModel]) -> str:
    schema = model.model_json_schema(mode="validation")
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"


def write(root: Path) -> None:
    """Write every document below `root`."""
    for name, text in documents().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write(Path.cwd())
