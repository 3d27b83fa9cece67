"""Commands about what raters are: train, codebook list, show and check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import CoauditError, UsageError
from .console import Commands, Groups, Json, emit, number, safe, say, store, table, workspace

codebook_app = typer.Typer(
    help="What is rated: list codebooks, show one, check a file.", no_args_is_help=True, rich_markup_mode=None
)


def train(
    codebook: Annotated[str, typer.Option(help="What is to be learnt.")],
    rater: Annotated[
        str | None, typer.Option(help="Whose ratings teach; else gold, or the only rater there is.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; else models/CODEBOOK.skops of the workspace.")
    ] = None,
    json: Json = False,
) -> None:
    """Train a judge on existing ratings; its agreement is that on trajectories which it had not seen."""
    from dataclasses import asdict

    from ..judge import scope, training

    found = store()
    (book,) = scope.chosen(found, [codebook])
    done = training.train(found, book, rater, out)
    if json:
        rows = [asdict(row) for row in done.rows]
        emit({"codebook": done.codebook, "rater": done.rater, "file": str(done.file), "rows": rows})
        return
    columns = ["code", "kappa", "n", "trajectories", "labels", "why null"]
    rows_ = [
        [
            row.code,
            number(row.kappa),
            str(row.n),
            str(row.trajectories),
            ", ".join(f"{label} {count}" for label, count in sorted(row.labels.items())),
            row.reason or "",
        ]
        for row in done.rows
    ]
    table(f"Learnt from {done.rater}, cross-validated by trajectory", columns, rows_)
    say(f"saved as {done.file}; `coaudit judge --rater trained:{done.file}` rates with it")


@codebook_app.command("list")
def list_codebooks(json: Json = False) -> None:
    """The codebooks there are, the workspace's own included."""
    from .. import codebooks

    own = workspace().codebooks
    rows = []
    for name in codebooks.names(own):
        try:
            book = codebooks.load(name, own)
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
                "own": (own / f"{name}.toml").is_file(),
            }
        )
    if json:
        emit({"rows": rows})
        return
    columns = ["name", "title", "unit", "level", "labels", "codes", "version"]
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    table(f"{len(rows)} codebooks", columns, cells)


@codebook_app.command("show")
def show_codebook(
    name: Annotated[str, typer.Argument(help="Its name.")],
    prompt: Annotated[bool, typer.Option("--prompt", help="What a language model is told.")] = False,
    json: Json = False,
) -> None:
    """One codebook: its question, labels and codes."""
    from ...judges.llm.answers import answer_of
    from ...judges.llm.prompts import rubric
    from .. import codebooks

    try:
        book = codebooks.load(name, workspace().codebooks)
    except codebooks.CodebookError as error:
        raise UsageError(str(error)) from error
    if json:
        emit(book.model_dump(mode="json"))
    elif prompt:
        print(safe(rubric(book, answer_of(book))))
    else:
        print(safe(f"{book.name}  {book.title}  ({book.unit}, {', '.join(book.labels)}, {book.version})"))
        print(safe(f"{book.question}\n{book.guidance.strip()}"))
        for code in book.codes:
            print(safe(f"\n{code.code}  {code.name}\n    {code.definition}"))


@codebook_app.command("check")
def check_codebook(
    file: Annotated[Path, typer.Argument(help="A TOML file.")],
    json: Json = False,
) -> None:
    """Say everything that is wrong with a codebook, and what would be right."""
    from ..judge import codebook_check

    problems, notes = codebook_check.check(file)
    if json:
        emit({"problems": problems, "notes": notes})
    else:
        for line in [*problems, *notes]:
            print(safe(line))
    if problems:
        raise CoauditError(f"{file}: {len(problems)} problem{'s' * (len(problems) > 1)}")
    if not json:
        print(f"{file}: a codebook")


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


COMMANDS: Commands = {"train": train}
GROUPED: Groups = {"codebook": codebook_app}
