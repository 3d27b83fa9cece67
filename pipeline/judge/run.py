"""`judge --model`: find the client, see that it answers, say what it will take, run, and sum up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace

from ...judges import JudgeError
from ...judges.clients import Client, Message, Question
from ...judges.clients.protocol import Fatal, Form, UnknownModel
from ...judges.llm import Budget
from ...judges.llm.limits import Limiter
from ...judges.llm.prices import price_of
from ..errors import INTERRUPTED, CoauditError, UsageError
from ..store import Store, dictionaries
from . import feed
from .estimate import Estimate, estimate
from .model import Model, State
from .scope import Say, Scope, Summary, wait_notice

RESERVED = ("rules", "detectors", "jury", "gold")
"""Names that a language model's ratings never go by."""
BEGINNINGS = ("trained:", "jury:", "ls:")
"""Prefixes of the names of other raters: trained judges, juries, people who answered in Label Studio."""
Approve = Callable[[Estimate], None]
"""Says what a run will take, and raises where it must not begin."""
Show = Callable[[State], None]


def with_price(model: Model) -> Model:
    """The model with price and context from the local list; UsageError where cost is capped and the price not
    known."""
    price = None if model.name.startswith("hosted_vllm/") else price_of(model.name)
    if price is None and model.max_cost is not None:
        raise UsageError(f"--max-cost cannot be kept: the price of {model.name!r} is not known")
    return replace(model, price=price, context=model.context or (price.context if price else None))


def checked_rater(store: Store, rater: str) -> str:
    """The rater's name; UsageError where it is reserved or has ratings of another kind of rater."""
    if rater in RESERVED or rater.startswith(BEGINNINGS):
        raise UsageError(f"a model cannot rate as {rater!r}, which names another rater; choose another name")
    if not store.has_tables():
        return rater
    query = "SELECT DISTINCT rater_kind FROM ratings WHERE rater = ? AND rater_kind <> 'llm'"
    with store.reading(synced=True) as connection:
        others = dictionaries(connection, query, [rater])
    if others:
        raise UsageError(
            f"rater {rater!r} has ratings of kind {others[0]['rater_kind']}; choose another name"
        )
    return rater


def judge(
    store: Store,
    scope: Scope,
    model: Model,
    client: AbstractAsyncContextManager[Client],
    *,
    approve: Approve,
    show: Show,
    say: Say,
) -> Summary:
    """Rate everything in scope with a model; `Incomplete` where the run could not go to its end.

    What was answered is in the ledger by then. The database takes it in when it is next read: loading
    100,000 ratings needs more memory than judging them.
    """
    store.admit_writes()
    name = checked_rater(store, model.rater)
    with store.tables.locks.shared(f"judge {name}", wait_notice(name, say)):
        store.sync()  # what a run before us wrote while we waited
        state = State(Summary(), Budget(), Limiter(model.concurrency, model.timeout))
        try:
            with _readable_errors():
                asyncio.run(_judge(store, scope, model, client, state, approve, show))
        except asyncio.CancelledError:
            state.stop("interrupted")
    if state.stopping and state.stopping != "interrupted" and not state.fatal:
        say(f"stopped: {state.stopping}")
    if isinstance(state.fatal, UnknownModel) and not state.answered:
        raise UsageError(str(state.fatal))
    if state.fatal or state.stopping == "interrupted":
        raise Incomplete(state)
    return state.summary


async def with_endpoint_context(complete: Client, model: Model) -> Model:
    """The model with the context that its endpoint names; CoauditError where it cannot be asked.

    An endpoint may take names that it does not list: one that is not listed is tried with a question.
    """
    with _readable_errors():
        offer = await complete.offer()
        if offer.models and not any(f"/{model.name}".endswith(f"/{name}") for name in offer.models):
            try:
                await complete(_TRIAL)
            except Fatal:
                raise
            except JudgeError:
                pass  # an error about the question: the model itself is known
    return replace(model, context=model.context or offer.context)


_TRIAL = Question((Message("user", "Answer yes."),), Form(("yes", "no")))


@contextmanager
def _readable_errors() -> Iterator[None]:
    try:
        yield
    except UnknownModel as error:
        raise UsageError(str(error)) from error
    except Fatal as error:
        raise CoauditError(str(error)) from error


class Incomplete(CoauditError):
    """A run that was broken off; what it did is in `summary`."""

    def __init__(self, state: State) -> None:
        hint = f"{state.summary.rated} rated in this run are kept; run it again to go on"
        super().__init__(f"{state.fatal or state.stopping} ({hint})")
        if not state.fatal:
            self.status = INTERRUPTED
        self.summary = state.summary


async def _judge(
    store: Store,
    scope: Scope,
    model: Model,
    client: AbstractAsyncContextManager[Client],
    state: State,
    approve: Approve,
    show: Show,
) -> None:
    async with client as complete:
        offer = await complete.offer()
        model = replace(model, context=model.context or offer.context)
        forecast = estimate(store, scope, model)
        approve(forecast)
        state.start(forecast.units, model)
        watching = asyncio.create_task(_watch(state, show))
        try:
            await feed.run(store, scope, model, complete, state)
        finally:
            watching.cancel()


async def _watch(state: State, show: Show) -> None:
    while True:
        await asyncio.sleep(1)
        show(state)
