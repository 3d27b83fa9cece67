"""The command `judge`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, cast

import typer

from ...judges import JudgeError
from ...judges.clients import Parameters
from ...judges.clients.arguments import arguments
from ...judges.clients.engine import IN_FLIGHT, Engine
from ...schemas.codebook import ContextKind
from ...schemas.text import count_of, visible
from .. import codebooks
from ..errors import CoauditError, UsageError
from ..judge import Scope, Summary, embedded, jury, run
from ..judge import scope as judging
from ..judge.estimate import Estimate
from ..judge.model import Model, State
from ..store import Store
from ..store.connection import cores
from .console import Json, Where, conditions, emit, say, split, store, tell

app = typer.Typer(rich_markup_mode=None)

Codebooks = Annotated[
    list[str] | None,
    typer.Option("--codebook", help="What to rate; repeatable. Default: all that the rater can rate."),
]
Rater = Annotated[
    str | None,
    typer.Option(help="rules, detectors, jury or trained:FILE. With --model: the rater's name."),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="hosted_vllm/NAME or openai/NAME (with --api-base), or any model name that litellm knows.",
    ),
]
ApiBase = Annotated[str | None, typer.Option(help="URL of the endpoint, up to /v1.")]
Concurrency = Annotated[int, typer.Option(min=1, help="Most requests in flight at the same time.")]
EngineName = Annotated[
    str,
    typer.Option(
        help="local: an endpoint that is running; vllm: a server started for the run; ray: a cluster."
    ),
]
EngineArgs = Annotated[
    list[str] | None,
    typer.Option(help="Options for vLLM: name=value, a JSON object, or a .toml or .json file; repeatable."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Workers of engine ray; default: as many as there are GPUs or CPUs for."),
]
_IN_FLIGHT = ", ".join(f"{name} {most}" for name, most in IN_FLIGHT.items())
Yes = Annotated[bool, typer.Option("--yes", help="Start without confirmation, whatever it costs.")]
MaxRequests = Annotated[int | None, typer.Option(min=0, help="Most requests to send.")]
MaxCost = Annotated[float | None, typer.Option(min=0, help="Most dollars to spend.")]


@app.command("judge")
def judge(
    ctx: typer.Context,
    codebook: Codebooks = None,
    rater: Rater = None,
    model: ModelName = None,
    api_base: ApiBase = None,
    members: Annotated[str, typer.Option(help="The members of a jury, comma-separated.")] = "",
    engine: EngineName = "local",
    engine_args: EngineArgs = None,
    workers: Workers = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help=f"Most requests in flight at the same time. [default: {_IN_FLIGHT}]"),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="What the judge sees beside a unit: none, preceding or transcript; default: the codebook's."
        ),
    ] = None,
    include_query: Annotated[
        bool, typer.Option("--include-query", help="Rate the opening query as well.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Most units to rate in this run.")] = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Ask again where the last answer was an error.")
    ] = False,
    yes: Yes = False,
    max_requests: MaxRequests = None,
    max_cost: MaxCost = None,
    temperature: Annotated[float, typer.Option(min=0, help="Sampling temperature of the model.")] = 0.0,
    seed: Annotated[int | None, typer.Option(help="Seed for the model, if it accepts one.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for an answer.")] = 180.0,
    context_tokens: Annotated[
        int | None,
        typer.Option(min=256, help="Length of the model's context; default: what the endpoint says."),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(min=1, help="Times to ask each question, to see how far the model agrees with itself."),
    ] = 1,
    sample: Annotated[str | None, typer.Option(help="Only the units of this sample.")] = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """Rate units with rules or a model. Units already rated in the same way are not rated again."""
    workspace_store, rater = store(ctx), (rater or "").strip()
    scope = judging.Scope((), checked_context(context), include_query, limit, retry_errors, repeats)
    scope = scope.of_sample(workspace_store, sample).of_sessions(workspace_store, conditions(where))
    if model is None:
        if repeats > 1:
            raise UsageError("--repeats asks a model again: give --model; the other raters never vary")
        _check_no_model_options(
            {
                "--api-base": api_base,
                "--engine": engine != "local",
                "--engine-args": engine_args,
                "--workers": workers,
                "--temperature": temperature,
                "--seed": seed is not None,
                "--context-tokens": context_tokens,
            }
        )
        if members and not _is_jury(rater):
            raise UsageError(f"--members is for --rater jury, got {members!r}")
        report(_without_model(workspace_store, rater or "rules", codebook or [], members, scope), json)
        return
    answering = _engine(workspace_store, engine, api_base, timeout, engine_args or [], workers)
    language_model = Model(
        name=model,
        rater=rater or model,
        parameters=Parameters(temperature=temperature, seed=seed),
        concurrency=concurrency or IN_FLIGHT[engine],
        max_requests=max_requests,
        max_cost=max_cost,
        context=context_tokens,
        timeout=timeout,
    )
    books = judging.load_codebooks(workspace_store, codebook or [])
    _with_model(workspace_store, scope.on(books), language_model, answering, yes=yes, json=json)


def approve(estimate: Estimate, *, yes: bool) -> None:
    """Say what a run will take, and ask a person where money is at stake."""
    say(str(estimate))
    if estimate.cost and not yes:
        consent(f"this costs about ${estimate.cost:.4f}")


def consent(costs: str) -> None:
    """Ask a person whether to go on with what costs money; UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError(f"{costs}: give --yes to go on")
    if not typer.confirm("Go on?", err=True):
        raise CoauditError("not begun")


def progress_line() -> Callable[[State], None]:
    """A progress line on stderr: rewritten each second on a terminal, one every 10 s elsewhere."""
    turns = 0

    def show(state: State) -> None:
        nonlocal turns
        turns += 1
        if sys.stderr.isatty():
            print(f"\r\x1b[K{visible(state.line())}", end="", file=sys.stderr, flush=True)
        elif turns % 10 == 0:
            say(state.line())

    return show


def report(summary: Summary, json: bool) -> None:
    """The summary as a document, or as a line for reading."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    if summary.reason is not None:
        say(f"why units failed, most often ({summary.reasons[summary.reason]}): {summary.reason}")
    for rater, n in summary.copies.items():
        units = count_of(n, "unit has", "units have")
        say(
            f"{units} the answer of {rater}, for whom a model of this name was asked the same; "
            "another model must be served under another name"
        )
    if json:
        emit(summary.document())
        return
    cost = "" if summary.cost_usd is None else f", ${summary.cost_usd:.4f}"
    usage = f"; {count_of(summary.requests, 'request', 'requests')}{cost}" if summary.requests else ""
    tell(
        f"{count_of(summary.rated, 'unit', 'units')} rated, {summary.already} rated before, "
        f"{count_of(summary.errors, 'error', 'errors')}"
        f"{usage}; {summary.seconds:.1f} s"
    )


def checked_context(value: str | None) -> ContextKind | None:
    """none, preceding, transcript or None; UsageError for anything else."""
    from typing import get_args

    if value is None:
        return None
    for kind in get_args(ContextKind):
        if kind == value:
            return cast("ContextKind", kind)
    raise UsageError(f"--context must be none, preceding or transcript, got {value!r}")


def _with_model(store: Store, scope: Scope, model: Model, engine: Engine, *, yes: bool, json: bool) -> None:
    from ...judges.clients import (
        engines,  # whose HTTP takes longer to load than rules to rate a hundred units
    )

    model = run.with_price(model)
    try:
        client = engines.client(engine, model.name, model.parameters)
    except JudgeError as error:
        raise UsageError(str(error)) from error
    try:
        summary = run.judge(
            store, scope, model, client, approve=lambda e: approve(e, yes=yes), show=progress_line(), say=say
        )
    except run.Incomplete as error:
        report(error.summary, json)
        raise
    if not (summary.rated or summary.already or summary.errors):
        for book in scope.books:
            if not judging.has_units(store, book):
                say(codebooks.without_units(book))
    report(summary, json)


def _engine(
    store: Store, name: str, api_base: str | None, timeout: float, items: list[str], workers: int | None
) -> Engine:
    try:
        options = arguments(items)
        here = 1 if name == "local" else cores()
        return Engine(name, api_base, timeout, options, workers, here, store.workspace.path / "logs", say)
    except JudgeError as error:
        raise UsageError(str(error)) from error


def _check_no_model_options(options: dict[str, object]) -> None:
    """UsageError for options on how a model is asked where none is named: rules would rate in its place."""
    for option, value in options.items():
        if value:
            raise UsageError(f"{option} is for asking a model: give --model")


def _is_jury(rater: str) -> bool:
    return rater == jury.NAME or rater.startswith(f"{jury.NAME}:")


def _without_model(store: Store, rater: str, names: list[str], members: str, scope: Scope) -> Summary:
    if not _is_jury(rater):
        return embedded.judge(store, rater, names, scope, say)
    if scope.sample:
        raise UsageError("--sample is no option of a jury, which rates whatever its members have rated")
    if scope.only:
        raise UsageError("--where is no option of a jury, which rates whatever its members have rated")
    raters = split(members)
    books = judging.load_codebooks(store, names, jury.rated_codebooks(store, raters, rater))
    result = jury.judge(store, scope.on(books), raters, rater)
    for (one, other), (same, n) in result.agreement.items():
        say(f"{one} and {other} agree on {same} of {n} ({same / n:.0%}); `coaudit agreement` says more")
    for pupil, teacher in result.pupils:
        say(
            f"{pupil} was trained on labels of {teacher}: it errs as they do, theirs are no independent votes"
        )
    if result.shared:
        copies = f"{result.shared} labels are copies of another member's"
        say(f"{copies} (same model, same prompt): one vote for both")
    return result.summary
