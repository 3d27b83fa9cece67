"""A run of a language model judge: the store feeds it, the ledger takes what it says, a person may stop it.

Everything happens in one event loop. What was answered is written at once (a kill loses only what is in
flight) and counted once it is on disk, which happens in batches. The first Ctrl-C lets what is in flight
finish, the second cuts it off.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from ...judges.clients import Complete, Parameters
from ...judges.clients.protocol import Fatal
from ...judges.llm import Asker, Budget, LLMJudge, Patience
from ...judges.llm.ask import Stopped
from ...judges.llm.context import Context
from ...judges.llm.limits import Limiter
from ...judges.llm.prices import Price
from ...schemas import Codebook, Maker, Rating, canonical_json, content_hash
from ..errors import StoreError
from ..store import Store
from ..store.ledger import RatingLedger
from .claimed import Claimed, Elsewhere
from .questions import Job, Planner
from .scope import Batch, Scope, Summary

WORKERS = 4
"""Workers for a place in flight: those that wait before they ask again hold none."""
Jobs = asyncio.Queue[Job | None]
"""What is to be asked; None sends a worker home."""


@dataclass(frozen=True)
class Model:
    """Which model rates, as whom, how it is asked and what that may take."""

    name: str
    rater: str
    parameters: Parameters
    concurrency: int = 64
    max_requests: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    context: int | None = None
    patience: Patience = field(default_factory=Patience)

    @property
    def workers(self) -> int:
        """How many ask side by side."""
        return min(WORKERS * self.concurrency, 4096)

    @property
    def waiting(self) -> int:
        """Jobs that may wait for a worker."""
        return 2 * self.concurrency

    def judge(self, book: Codebook, scope: Scope) -> LLMJudge:
        """The judge for a codebook."""
        return LLMJudge(book, scope.context or book.context)

    def maker(self, judge: LLMJudge) -> Maker:
        """Who rates; the parameters are part of what makes two questions the same."""
        parameters = {
            "model": self.name,
            "temperature": self.parameters.temperature,
            "context": judge.context,
            **self.parameters.extra,
        }
        if self.parameters.seed is not None:
            parameters["seed"] = self.parameters.seed
        version = content_hash(judge.version, judge.codebook.version, parameters)[:12]
        made = {"parameters": parameters, "seed": self.parameters.seed}
        return Maker(self.rater, "llm", version, judge.codebook, made)


@dataclass
class State:
    """How far a run is; what a progress line shows."""

    summary: Summary
    budget: Budget
    limiter: Limiter
    expected: int = 0
    answered: int = 0
    failed: int = 0
    stopping: str | None = None
    """Why no more is asked."""
    fatal: Fatal | None = None
    began: float = field(default_factory=time.monotonic)

    def start(self, expected: int, model: Model) -> None:
        """Begin the clock, with what the model may spend."""
        self.expected = expected
        self.budget = Budget(model.max_requests, model.max_cost, model.price)
        self.began = time.monotonic()

    def line(self) -> str:
        """How far it is: rate, in flight, errors, cost, time left."""
        elapsed = max(1e-9, time.monotonic() - self.began)
        rate = self.answered / elapsed
        left = max(0, self.expected - self.answered) / rate if rate else 0.0
        cost = f", ${self.budget.cost:.4f}" if self.budget.price else ""
        return (
            f"{self.answered} of {self.expected} answered, {rate:.0f}/s, {self.limiter.in_flight} in flight, "
            f"{self.failed} errors{cost}, {left:.0f} s left"
        )

    def stop(self, why: str) -> None:
        """Ask nothing more; what is in flight finishes."""
        self.stopping = self.stopping or why

    def finish(self) -> None:
        """Complete the summary."""
        self.summary.seconds = round(time.monotonic() - self.began, 3)
        self.summary.requests = self.budget.requests
        self.summary.cost_usd = round(self.budget.cost, 6) if self.budget.price else None


def askers(
    scope: Scope, model: Model, complete: Complete, state: State, context: Context
) -> dict[str, Asker]:
    """Who asks for each codebook; they share the limits."""
    return {
        book.name: Asker(
            judge=model.judge(book, scope),
            complete=complete,
            limiter=state.limiter,
            budget=state.budget,
            context=context,
            patience=model.patience,
            stopping=lambda: state.stopping is not None,
        )
        for book in scope.books
    }


async def run(store: Store, scope: Scope, model: Model, complete: Complete, state: State) -> None:
    """Judge everything in scope; what was answered is on disk when this returns or raises."""
    asked = askers(scope, model, complete, state, Context(model.context))
    jobs: Jobs = asyncio.Queue(maxsize=model.waiting)
    with store.workspace.new_ratings() as ledger, closing(store.claims()) as claims:
        claimed = Claimed(claims, Elsewhere(store, ledger), lambda: state.stopping is not None)
        sink = Sink(ledger, state, claimed)
        flushing = asyncio.create_task(sink.keep_flushing())
        try:
            with interruptible(state):
                async with asyncio.TaskGroup() as group:
                    group.create_task(_feed(store, scope, model, asked, jobs, sink))
                    for _ in range(model.workers):
                        group.create_task(work(jobs, asked, state, sink.put))
        finally:
            flushing.cancel()
            await asyncio.wait([flushing])
            sink.flush()
            state.finish()


class Sink:
    """Takes ratings: written at the end of the loop's turn, on disk and counted a little later."""

    def __init__(self, ledger: RatingLedger, state: State, claimed: Claimed) -> None:
        self.ledger = ledger
        self.state = state
        self.claimed = claimed
        self._fresh: list[Rating] = []
        self._written: list[list[Rating]] = []
        self._scheduled = False

    def put(self, units: Sequence[list[Rating]]) -> None:
        """The ratings of some units."""
        for ratings in units:
            self._fresh += ratings
            self._written.append(ratings)
            self.state.answered += 1
            self.state.failed += any(rating.error is not None for rating in ratings)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._write)

    def flush(self) -> None:
        """Have everything on disk, and count it."""
        units = self._take()
        self.ledger.flush()
        self._counted(units)

    async def keep_flushing(self) -> None:
        """Bring to disk now and then, in a thread; the loop goes on meanwhile."""
        while True:
            await asyncio.sleep(self.ledger.pause)
            if (units := self._take()) or self.claimed.is_idle:
                try:
                    await asyncio.to_thread(self.ledger.flush)
                except StoreError as error:
                    self._refused(error)
                except asyncio.CancelledError:
                    self._written = [*units, *self._written]  # the last flush counts them
                    raise
                else:
                    self._counted(units)

    def copy(self, ratings: list[Rating]) -> None:
        """Ratings that no request was needed for, counted already."""
        self.ledger.write(ratings)

    def _write(self) -> None:
        self._scheduled = False
        if self._fresh:
            fresh, self._fresh = self._fresh, []
            try:
                self.ledger.write(fresh)
            except StoreError as error:
                self._refused(error)

    def _refused(self, error: StoreError) -> None:
        """Ask no more: answers that nobody can keep are paid for nothing."""
        self.state.fatal = self.state.fatal or Fatal(str(error))
        self.state.stop(str(error))

    def _take(self) -> list[list[Rating]]:
        self._write()
        units, self._written = self._written, []
        return units

    def _counted(self, units: list[list[Rating]]) -> None:
        for ratings in units:
            self.state.summary.count(ratings)
            self.claimed.answered(ratings[0].codebook, ratings[0].trajectory)
        self.claimed.give_back()


@contextmanager
def interruptible(state: State) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) stops asking, the second cuts off what is in flight."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def interrupted() -> None:
        if state.stopping and task is not None:
            task.cancel()
        state.stop("interrupted")

    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def _feed(
    store: Store,
    scope: Scope,
    model: Model,
    askers: dict[str, Asker],
    jobs: Jobs,
    sink: Sink,
) -> None:
    secret = store.workspace.secret()
    left = scope
    for book in scope.books:
        judge = askers[book.name].judge
        planner = Planner(judge, model.maker(judge), left, secret, sink.state.summary)
        source = sink.claimed.batches(store, book, canonical_json(planner.maker.made["parameters"]))
        while not sink.state.stopping and not planner.full:
            batch: Batch | None = await asyncio.to_thread(next, source, None)
            if batch is None:
                break
            for job in planner.jobs(batch.units(left)):
                if sink.state.stopping:
                    break
                sink.claimed.asked(book.name, job.units[0].trajectory_id, len(job.units))
                await jobs.put(job)
            sink.copy(planner.copied)
            planner.copied = []
            sink.claimed.planned(batch)
        left = left.less(planner.queued)
    for _ in range(model.workers):
        await jobs.put(None)


async def work(
    jobs: Jobs, askers: dict[str, Asker], state: State, put: Callable[[list[list[Rating]]], None]
) -> None:
    """Ask one after the other until there is no more; what fails for good stops all."""
    while (job := await jobs.get()) is not None:
        if state.stopping:
            continue
        try:
            outcome = await askers[job.judge.codebook.name].ask(job.case)
        except Fatal as error:
            state.fatal = state.fatal or error
            state.stop(str(error))
        except Stopped as error:
            state.stop(str(error))
        else:
            put(job.ratings(outcome))
