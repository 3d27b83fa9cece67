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
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...judges.clients import Client, Complete, Parameters
from ...judges.clients.protocol import Fatal, Startable
from ...judges.llm import Asker, Budget, LLMJudge, Patience
from ...judges.llm.ask import Stopped
from ...judges.llm.context import Context
from ...judges.llm.limits import Limiter
from ...judges.llm.prices import Price
from ...schemas import Codebook, Maker, Rating, content_hash
from ..store import Store
from ..store.ledger import RatingLedger
from .questions import Job, Planner
from .scope import Batch, Scope, Summary, batches

DISK_SECONDS = 0.3
"""How often what was written is brought to disk and counted."""
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
        left = f"{max(0, self.expected - self.answered) / rate:.0f} s left" if rate else "no answer yet"
        cost = f", ${self.budget.cost:.4f}" if self.budget.price else ""
        return (
            f"{self.answered} of {self.expected} answered, {rate:.0f}/s, {self.limiter.in_flight} in flight, "
            f"{self.failed} errors{cost}, {left}"
        )

    def stop(self, why: str) -> None:
        """Ask nothing more; what is in flight finishes."""
        self.stopping = self.stopping or why

    def fail(self, error: Fatal) -> None:
        """Ask nothing more, for this reason."""
        self.fatal = self.fatal or error
        self.stop(str(error))

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


async def run(store: Store, scope: Scope, model: Model, complete: Client, state: State) -> None:
    """Judge everything in scope; what was answered is on disk when this returns or raises."""
    context = Context(model.context)
    asked = askers(scope, model, complete, state, context)
    jobs: Jobs = asyncio.Queue(maxsize=model.waiting)
    with RatingLedger(store.workspace.ratings) as ledger:
        sink = Sink(ledger, state)
        flushing = asyncio.create_task(sink.keep_flushing())
        try:
            with interruptible(state):
                async with asyncio.TaskGroup() as group:
                    group.create_task(_feed(store, scope, model, asked, jobs, sink, Start(complete, context)))
                    for _ in range(model.workers):
                        group.create_task(work(jobs, asked, state, sink.put))
        finally:
            flushing.cancel()
            sink.flush()
            state.finish()


@dataclass
class Start:
    """Has an engine begin when there is something to ask, and takes in what it says of its model."""

    complete: Client
    context: Context
    done: bool = False

    async def __call__(self, state: State) -> bool:
        """Whether there is somebody to ask by now; what went wrong is in the state."""
        if self.done or not isinstance(self.complete, Startable):
            return True
        offering = asyncio.create_task(self.complete.start(state.expected))
        while not offering.done() and not state.stopping:
            await asyncio.wait({offering}, timeout=0.2)
        if not offering.done():
            offering.cancel()
            return False
        try:
            self.context.limit = self.context.limit or offering.result().context
        except Fatal as error:
            state.fail(error)
        state.limiter.open()
        self.done = True
        return state.stopping is None


class Sink:
    """Takes ratings: written at the end of the loop's turn, on disk and counted a little later."""

    def __init__(self, ledger: RatingLedger, state: State) -> None:
        self.ledger = ledger
        self.state = state
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
            await asyncio.sleep(DISK_SECONDS)
            if units := self._take():
                try:
                    await asyncio.to_thread(self.ledger.flush)
                except OSError as error:
                    self._full(error)
                finally:
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
            except OSError as error:
                self._full(error)

    def _full(self, error: OSError) -> None:
        self.state.fail(Fatal(f"{self.ledger.path}: cannot write the ledger: {error.strerror}"))

    def _take(self) -> list[list[Rating]]:
        self._write()
        units, self._written = self._written, []
        return units

    def _counted(self, units: list[list[Rating]]) -> None:
        for ratings in units:
            self.state.summary.count(ratings)


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
    start: Start,
) -> None:
    secret = store.workspace.secret()
    left = scope
    for book in scope.books:
        judge = askers[book.name].judge
        planner = Planner(judge, model.maker(judge), left, secret, sink.state.summary)
        source = batches(store, book)
        while not sink.state.stopping and not planner.full:
            batch: Batch | None = await asyncio.to_thread(next, source, None)
            if batch is None:
                break
            for job in planner.jobs(batch.units(left)):
                if sink.state.stopping or not await start(sink.state):
                    break
                await jobs.put(job)
            sink.copy(planner.copied)
            planner.copied = []
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
            state.fail(error)
        except Stopped as error:
            state.stop(str(error))
        else:
            put(job.ratings(outcome))
