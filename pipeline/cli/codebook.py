"""Commands about what raters are: train, codebook list, show and check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...judges.llm.answers import answer_of
from ...judges.llm.prompts import rubric
from ...schemas import Code
from ...schemas.text import count_of
from .. import codebooks
from ..errors import CoauditError, UsageError
from ..judge import codebook_check
from .console import Json, emit, emit_rows, say, table, tell, workspace

app = typer.Typer(rich_markup_mode=None)

codebook_app = typer.Typer(
    help="List codebooks, show one, or check a file.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(codebook_app, name="codebook")


@codebook_app.command("list")
def list_codebooks(ctx: typer.Context, json: Json = False) -> None:
    """List all codebooks, including the workspace's own."""
    folder = workspace(ctx).codebooks
    rows = []
    for name in codebooks.names(folder):
        try:
            book = codebooks.load(name, folder)
        except codebooks.CodebookError as error:
            say(str(error))
            continue
        rows.append(
            {
                "name": book.name,
                "title": book.title,
                "unit": book.unit,
                "level": book.level,
                "labels": list(book.labels),
                "codes": len(book.codes),
                "version": book.version,
                "applies_to": book.applies_to,
                "own": (folder / f"{name}.toml").is_file(),
            }
        )
    if json:
        emit_rows(rows)
        return
    columns = ["name", "title", "unit", "level", "labels", "codes", "version"]
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    table(count_of(len(rows), "codebook", "codebooks"), columns, cells)


@codebook_app.command("show")
def show_codebook(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the codebook.")],
    prompt: Annotated[bool, typer.Option("--prompt", help="Show the prompt for a language model.")] = False,
    json: Json = False,
) -> None:
    """Show one codebook: its question, labels and codes."""
    try:
        book = codebooks.load(name, workspace(ctx).codebooks)
    except codebooks.CodebookError as error:
        raise UsageError(str(error)) from error
    if json:
        emit(book.model_dump(mode="json"))
    elif prompt:
        tell(*rubric(book, answer_of(book)).split("\n"))
    else:
        tell(f"{book.name}  {book.title}  ({book.unit}, {', '.join(book.labels)}, {book.version})")
        if book.applies_to:
            tell(f"asked of sessions with {book.scope}")
        tell(*book.question.strip().split("\n"), *book.guidance.strip().split("\n"))
        for code in book.codes:
            tell("", f"{code.code}  {code.name}", *(f"    {line}" for line in _lines(code)))


def _lines(code: Code) -> Iterator[str]:
    """What raters read of a code."""
    yield from code.definition.strip().split("\n")
    yield from (f"counts: {one}" for one in code.counts)
    yield from (f"does not count: {one}" for one in code.does_not_count)
    for example in code.examples:
        reply = "" if example.reply is None else f" → {example.reply}"
        why = "" if example.why is None else f" ({example.why})"
        yield f"{example.label}: {example.text}{reply}{why}"


@codebook_app.command("check")
def check_codebook(
    file: Annotated[Path, typer.Argument(help="A codebook as a TOML file.")],
    json: Json = False,
) -> None:
    """List everything that is wrong with a codebook, and what is expected instead."""
    problems, notes = codebook_check.check(file)
    if json:
        emit({"problems": problems, "notes": notes})
    else:
        for line in [*problems, *notes]:
            tell(line)
    if problems:
        raise CoauditError(f"{file}: {len(problems)} problem{'s' * (len(problems) > 1)}")
    if not json:
        tell(f"{file}: a codebook")


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
