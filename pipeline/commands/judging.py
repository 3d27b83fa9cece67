"""Commands that rate: judge, train, codebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from coaudit.pipeline.commands.context import Commands, Groups, Json, emit, say, store
from coaudit.pipeline.errors import UsageError

if TYPE_CHECKING:
    from coaudit.pipeline.judging import Summary
    from coaudit.schemas.codebook import ContextKind


def judge(
    codebook: Annotated[
        list[str] | None, typer.Option(help="What to rate; repeatable. Else the three process codebooks.")
    ] = None,
    rater: Annotated[str | None, typer.Option(help="rules or NAME.")] = None,
    context: Annotated[
        str | None, typer.Option(help="none, preceding or transcript, in place of the codebook's own.")
    ] = None,
    include_query: Annotated[
        bool, typer.Option("--include-query", help="Rate the opening query as well.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many units in this run.")] = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Rate again what ended in an error.")
    ] = False,
    json: Json = False,
) -> None:
    """Rate units with rules or a model. What was rated in the same way before is not rated again."""
    from coaudit.judges.rules import NAME, VERSION, Rules
    from coaudit.judges.verdict import JudgeError
    from coaudit.pipeline import judging

    found = store()
    scope = judging.Scope(
        books=judging.chosen(found, codebook or []),
        context=checked_context(context),
        include_query=include_query,
        limit=limit,
        retry_errors=retry_errors,
    )
    if rater not in (None, NAME):
        raise UsageError(f"unknown rater {rater!r}, expected {NAME}")
    try:
        raters = [Rules(book) for book in scope.books]
    except JudgeError as error:
        raise UsageError(str(error)) from error
    report(judging.judge_locally(found, scope, raters, (NAME, VERSION), say), json)


def report(summary: Summary, json: bool) -> None:
    """The summary as a document, or as a line for reading."""
    if json:
        emit(summary.document())
        return
    cost = "" if summary.cost_usd is None else f", ${summary.cost_usd:.4f}"
    asked = f"; {summary.requests} requests{cost}" if summary.requests else ""
    print(
        f"{summary.rated} rated, {summary.already} already, {summary.errors} errors"
        f"{asked}; {summary.seconds:.1f} s"
    )


def checked_context(given: str | None) -> ContextKind | None:
    """none, preceding, transcript or None; UsageError for anything else."""
    from typing import get_args

    from coaudit.schemas.codebook import ContextKind

    if given is None:
        return None
    for kind in get_args(ContextKind):
        if kind == given:
            return cast("ContextKind", kind)
    raise UsageError(f"--context must be none, preceding or transcript, got {given!r}")


COMMANDS: Commands = {"judge": judge}
GROUPED: Groups = {}
