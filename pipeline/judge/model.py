"""A language model as a rater: how it is asked, how far a run of it is, and who asks.

The first Ctrl-C lets what is in flight finish, the second cuts it off.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...judges.clients import Complete, Parameters
from ...judges.clients.protocol import Fatal
from ...judges.llm import Asker, Budget, LLMJudge, Patience
from ...judges.llm.ask import Stopped
from ...judges.llm.context import Context
from ...judges.llm.limits import Limiter
from ...judges.llm.prices import Price
from ...schemas import Codebook, Maker, Rating, content_hash
from ...schemas.text import count_of, shortened
from .questions import Job
from .scope import Scope, Summary

TROUBLE = 100
"""Characters of why a request failed, in a progress line."""
WORKERS = 4
"""Workers per request in flight: one that waits before a retry has no request in flight."""
Jobs = asyncio.Queue[Job | None]
"""The queue of questions; None ends a worker."""


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
    timeout: float = 180.0
    """Seconds until an answer is given up."""

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
        fields = {"parameters": parameters, "seed": self.parameters.seed}
        return Maker(self.rater, "llm", version, judge.codebook, fields)


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
    trouble: str | None = None
    """Why the last request failed, if it did."""
    fatal: Fatal | None = None
    began: float = field(default_factory=time.monotonic)
    first: float | None = None
    """When the first answer came: a model that is loaded for the run takes a minute before."""
    together: int = 0
    """Units in flight when the first answer came: they waited with it, so they say nothing about the rate."""

    def start(self, expected: int, model: Model) -> None:
        """Start the clock and set the budget."""
        self.expected = expected
        self.budget = Budget(model.max_requests, model.max_cost, model.price)
        self.began = time.monotonic()

    def count(self) -> None:
        """Count an answered unit."""
        self.answered += 1
        if self.first is None:
            self.first, self.together = time.monotonic(), self.budget.in_flight + 1

    def rate(self) -> float:
        """Units answered a second: since the first answer, once there are others than those asked with it."""
        now, later = time.monotonic(), self.answered - self.together
        if self.first is not None and later > 0:
            return later / max(1.0, now - self.first)
        return self.answered / max(1.0, now - self.began)

    def line(self) -> str:
        """How far it is: rate, in flight, errors, cost, time left; of a run that stops: what it waits for."""
        if self.stopping and self.budget.in_flight:
            answers = count_of(self.budget.in_flight, "answer", "answers")
            why = shortened(self.stopping, TROUBLE)
            return f"{why}; waiting for {answers} in flight, Ctrl-C gives them up"
        rate = self.rate()
        time_left = f"{max(0, self.expected - self.answered) / rate:.0f} s left" if rate else "no answer yet"
        cost = f", ${self.budget.cost:.4f}" if self.budget.price else ""
        trouble = f"; asked again: {shortened(self.trouble, TROUBLE)}" if self.trouble else ""
        trouble += "; Ctrl-C ends the run" if trouble and self.answered == self.failed else ""
        return (
            f"{self.answered} of {self.expected} answered, {rate:.0f}/s, {self.budget.in_flight} in flight, "
            f"{count_of(self.failed, 'error', 'errors')}{cost}, {time_left}{trouble}"
        )

    def tell(self, trouble: str | None) -> None:
        """Record why the last request failed; None where it succeeded."""
        self.trouble = trouble

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
            tell=state.tell,
            has_answered=scope.retry_errors,  # what is asked again may all be rejected
        )
        for book in scope.books
    }


@contextmanager
def interruptible(state: State) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) stops asking, the second cuts off what is in flight."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def interrupt() -> None:
        if state.stopping and task is not None:
            task.cancel()
        state.stop("interrupted")

    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def work(
    jobs: Jobs, askers: dict[str, Asker], state: State, put: Callable[[list[list[Rating]]], None]
) -> None:
    """A worker: asks one job after the other until the queue ends; a fatal error stops all workers."""
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
