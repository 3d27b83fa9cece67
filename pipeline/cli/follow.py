"""The command that watches collaboration while it happens: follow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ...judges import JudgeError
from ...judges.clients import Parameters, select
from ...judges.rules.lexical import halts
from ...schemas import Codebook
from ..advise import Advisor
from ..advise.advisor import load
from ..errors import UsageError, WriteError
from ..follow import Follower, Plan
from ..follow.alerts import Alerts, Emit, Webhook, line
from ..follow.calls import Calls
from ..follow.marks import Marks, OpenSessions, last_seqs
from ..follow.model_judge import PATIENCE, ModelJudge
from ..follow.rule_judge import LiveJudge
from ..judge import Scope, run
from ..judge.model import Model
from ..judge.scope import load_codebooks
from ..store import Store
from ..systems import ReadOptions
from .console import (
    ConditionOption,
    Json,
    MaxSteps,
    SettingOption,
    TagOption,
    emit,
    finite,
    say,
    store,
    tags,
    workspace,
)
from .ingest import MapOption, checked_setting, read_by
from .judge import ApiBase, Concurrency, MaxCost, MaxRequests, ModelName, Yes, consent

app = typer.Typer(rich_markup_mode=None)


@dataclass(frozen=True)
class JudgingOptions:
    """Which codebooks are rated, and by whom."""

    books: Sequence[str]
    rater: str | None = None
    model: Model | None = None
    api_base: str | None = None


@app.command("follow")
def follow(
    ctx: typer.Context,
    targets: Annotated[
        list[str], typer.Argument(help="redis://host:port/db, folders whose logs grow, or - (JSON Lines).")
    ],
    results: Annotated[
        Path | None, typer.Option(help="Where Co-Gym's result folders lie on this machine.")
    ] = None,
    stop_when_idle: Annotated[
        float | None, typer.Option(min=0, help="Stop after this many seconds without anything new.")
    ] = None,
    silence: Annotated[
        float, typer.Option(min=0, help="Seconds after which a silent session counts as abandoned.")
    ] = 600.0,
    judge: Annotated[
        list[str] | None, typer.Option(help="Codebook whose units are rated as they complete; repeatable.")
    ] = None,
    rater: Annotated[
        str | None,
        typer.Option(help="rules or detectors; default: the codebook's own. With --model: the rater's name."),
    ] = None,
    model: ModelName = None,
    api_base: ApiBase = None,
    concurrency: Concurrency = 64,
    yes: Yes = False,
    max_requests: MaxRequests = None,
    max_cost: MaxCost = None,
    metrics: Annotated[
        list[str] | None, typer.Option(help="URL of a vLLM server's /metrics; repeatable.")
    ] = None,
    every: Annotated[
        float, typer.Option(min=0.05, max=60, help="Seconds between two readings of --metrics.")
    ] = 5.0,
    alerts: Annotated[
        bool, typer.Option("--alerts", help="Print each alert as a JSON line on stdout.")
    ] = False,
    webhook: Annotated[str | None, typer.Option(help="URL that alerts are POSTed to.")] = None,
    unanswered: Annotated[
        float, typer.Option(min=0, help="Seconds after which a person counts as left unanswered.")
    ] = 60.0,
    advise: Annotated[
        Path | None,
        typer.Option(
            help="File of `advise train`: an alert where a person's next step should gain more than "
            "--advise-above."
        ),
    ] = None,
    advise_above: Annotated[
        float, typer.Option(help="Reward that a person's step must be expected to gain, its price included.")
    ] = 0.0,
    patience: Annotated[float, typer.Option(min=0, help="Seconds to keep trying a lost Redis.")] = 30.0,
    system: Annotated[
        str, typer.Option(help="The system that writes the folders' logs; auto detects it.")
    ] = "auto",
    setting: SettingOption = None,
    condition: ConditionOption = None,
    tag: TagOption = None,
    max_steps: MaxSteps = None,
    map: MapOption = None,
    json: Json = False,
) -> None:
    """Follow live sessions and growing logs into the workspace until interrupted.

    What arrives over Redis is first recorded under raw/. A server's password comes from its URL or from
    REDIS_PASSWORD. Following never waits for a model: what the model has not been asked when following
    ends, `judge` asks later.
    """
    import asyncio

    text, system = read_by(map, system)
    plan = Plan(
        targets=tuple(targets),
        options=ReadOptions(
            setting=checked_setting(setting),
            condition=condition,
            tags=tags(tag or []),
            map=text,
            max_steps=max_steps,
        ),
        system=system,
        results=results,
        stop_when_idle=stop_when_idle,
        silence=silence,
        patience=patience,
        metrics=tuple(metrics or ()),
        every=every,
    )
    plan.check()
    books = judge or []
    if (model or rater) and not books:
        raise UsageError(f"{'--model' if model else '--rater'} needs --judge CODEBOOK")
    language_model = None
    if model:
        name = (rater or "").strip() or model
        language_model = Model(model, name, Parameters(), concurrency, max_requests, max_cost)
        language_model = _with_consent(run.with_price(language_model), yes=yes)
    if advise_above and not advise:
        raise UsageError("--advise-above needs --advise FILE")
    alerting = AlertOptions(alerts, webhook, unanswered, advise, finite(advise_above, "--advise-above"))
    if advise and not (alerts or webhook):
        raise UsageError("--advise raises alerts: give --alerts or --webhook too")
    try:
        counts = asyncio.run(
            _follow(ctx, plan, JudgingOptions(books, rater, language_model, api_base), alerting)
        )
    except WriteError as error:
        raise WriteError(
            f"{error}; everything before this is safe; run `coaudit follow` again to continue"
        ) from error
    if json:
        emit(counts)
    else:
        say(", ".join(f"{value} {key}" for key, value in counts.items()))


@dataclass(frozen=True)
class AlertOptions:
    """Which alerts are raised, and where they go."""

    lines: bool
    webhook: str | None
    unanswered: float
    advise: Path | None = None
    above: float = 0.0


async def _follow(
    ctx: typer.Context, plan: Any, judging: JudgingOptions, alerting: AlertOptions
) -> dict[str, float]:
    """Put the pieces together and run them."""
    advisor = load(alerting.advise) if alerting.advise else None
    is_alerting = alerting.lines or bool(alerting.webhook)
    before = last_seqs(Store(workspace(ctx))) if is_alerting else None  # what `store` reads anew is not in it
    workspace_store = store(ctx, for_ingest=True)
    follower = Follower(plan, workspace_store, say)
    webhook = Webhook(alerting.webhook, say) if alerting.webhook else None
    if webhook:
        follower.beside.append(webhook.run)
        follower.endings.append(webhook.finish)

    def raise_alert(alert: dict[str, Any]) -> None:
        if alerting.lines:
            print(line(alert), flush=True)
        if webhook:
            webhook(alert)

    async with AsyncExitStack() as stack:
        if is_alerting:  # first: an alert that waits for ratings comes late
            sessions = OpenSessions.read(workspace_store, follower.places, before)
            is_sent = webhook.is_sent if webhook else lambda trajectory: True
            await _watch(follower, raise_alert, alerting, sessions, advisor, is_sent)
        judge = await stack.enter_async_context(_judging(follower, judging)) if judging.books else None
        await follower.run()
    return follower.summary() | (judge.summary() if judge else {})


async def _watch(
    follower: Follower,
    raise_alert: Emit,
    options: AlertOptions,
    sessions: OpenSessions,
    advisor: Advisor | None,
    is_sent: Callable[[str], bool],
) -> None:
    """Have alerts raised, first about what the last follower left open."""
    alerts = Alerts(
        raise_alert,
        options.unanswered,
        halts,
        initial=sessions.seqs,
        marks=sessions.marks,
        ids_of=follower.sink.ids_of,
        is_up_to_date=lambda: follower.is_up_to_date,
    )
    follower.watchers.append(alerts)
    if advisor:
        seqs = {key: seq for key, seq in sessions.seqs.items() if seq >= 0}
        follower.watchers.append(Calls(raise_alert, advisor, options.above, seqs))
    is_alerting = partial(follower.is_watched_by, alerts)
    marks = Marks(follower.sink, alerts, sessions.marks, is_alerting=is_alerting, is_sent=is_sent)
    follower.watchers.append(marks)
    for trajectories in sessions.trajectories(follower.sink.store):
        await follower.watch(trajectories)


@asynccontextmanager
async def _judging(follower: Follower, judging: JudgingOptions) -> AsyncIterator[LiveJudge | ModelJudge]:
    """The judge that rates while following: with rules and detectors, or with a model."""
    books = load_codebooks(follower.sink.store, judging.books)
    judge: LiveJudge | ModelJudge
    async with AsyncExitStack() as stack:
        if judging.model is None:
            judge = LiveJudge(follower.sink, books, judging.rater)
        else:
            judge = await _model_judge(follower, books, judging.model, judging.api_base, stack)
            follower.beside.append(judge.run)
        stack.callback(judge.ledger.close)
        follower.watchers.append(judge)
        follower.endings.append(judge.finish)
        yield judge


async def _model_judge(
    follower: Follower, books: tuple[Codebook, ...], model: Model, api_base: str | None, stack: AsyncExitStack
) -> ModelJudge:
    """A language model as a judge, once its endpoint has answered."""
    from dataclasses import replace

    run.checked_rater(follower.sink.store, model.rater)
    try:
        client = select.client(model.name, api_base, model.parameters)
    except JudgeError as error:
        raise UsageError(str(error)) from error
    complete = await stack.enter_async_context(client)
    model = replace(await run.with_endpoint_context(complete, model), patience=PATIENCE)
    return ModelJudge(follower.sink, Scope(books), model, complete, say, follower.plan.silence)


def _with_consent(model: Model, *, yes: bool) -> Model:
    """A model that costs something needs a person's consent: nobody knows how much there will be to ask."""
    prompt, completion = (1e6 * model.price.prompt, 1e6 * model.price.completion) if model.price else (0, 0)
    if (prompt or completion) and not yes:
        consent(f"{model.name} costs ${prompt:g} and ${completion:g} per million tokens of prompt and answer")
    return model
