"""From a case to its verdicts: asking, asking again, and giving up with an error that says why.

One bad unit never stops a run. A wrong key, an unknown model and an endpoint that is gone do, at once.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ...schemas import Verdict
from ...schemas.text import count_of
from ..clients import Complete, Question, Reply
from ..clients.protocol import (
    BadAnswer,
    ContextTooSmall,
    CutOff,
    Fatal,
    Overloaded,
    Refused,
    Rejected,
    Transient,
    Unreachable,
    counting,
)
from ..errors import JudgeError
from .context import Context
from .judge import Case, LLMJudge, Piece
from .limits import Limiter
from .prices import Price

LONGEST_ANSWER = 4096
"""The most tokens that an answer which was cut off gets when asked again, the thoughts before it included: no
chat model allows fewer."""
REJECTIONS = 20
"""Questions rejected with the same text, or given up after all repetitions, before any was answered, after
which none will be: the fault is in what they have in common."""
SETTLING = 0.05
"""Seconds between the looks of a request that waits for others to settle their cost."""
GROWTH = 4
"""The factor by which the token limit of an answer that was cut off grows."""

NOISE = 0.01
"""Share by which an endpoint may count one question otherwise the next time, as where a template names the
time; what a cache saves is more."""


class Stopped(JudgeError):
    """The run ends; what is not yet asked stays unasked."""


class OutOfBudget(Stopped):
    """The run has spent what it may."""


@dataclass(frozen=True)
class Patience:
    """How often and how long is waited."""

    malformed_repeats: int = 5
    """Times that a malformed answer is asked again."""
    transient_repeats: int = 10
    """Times that a failed request is repeated."""
    first_pause: float = 0.25
    longest_pause: float = 30.0
    """Seconds between repetitions, doubling from the first to the longest."""
    gone_after: float = 30.0
    """Seconds without any connection after which the endpoint counts as gone."""


@dataclass
class Budget:
    """What a run may spend, and what it has spent."""

    max_requests: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    requests: int = 0
    cost: float = 0.0
    reserved: float = 0.0
    in_flight: int = 0
    """Requests for which `reserved` is set aside."""

    def must_wait(self, tokens: int, most: int) -> bool:
        """Whether nothing but reservations for others stands in a request's way: these may cost less."""
        if self.max_cost is None or not self.in_flight:
            return False
        amount = self._most(tokens, most)
        return self.cost + amount <= self.max_cost < self.cost + self.reserved + amount

    def reserve(self, tokens: int, most: int) -> float:
        """Set aside what a request may cost at the most; OutOfBudget where that is too much."""
        amount = self._most(tokens, most)
        if self.max_cost is not None and self.cost + self.reserved + amount > self.max_cost:
            raise OutOfBudget(f"--max-cost {self.max_cost:g} would be passed, ${self.cost:.4f} are spent")
        self.count()
        self.reserved += amount
        self.in_flight += 1
        return amount

    def count(self) -> None:
        """Count a request that is sent next; OutOfBudget where there were as many as there may be."""
        if self.max_requests is not None and self.requests >= self.max_requests:
            raise OutOfBudget(f"--max-requests {self.max_requests} is reached")
        self.requests += 1

    def settle(self, reserved: float, reply: Reply | None) -> float | None:
        """Release a reservation; returns the cost of its request, None where it got no reply or the model has
        no price.

        An answer that does not say what it took counts as the most that it may have.
        """
        self.reserved -= reserved
        self.in_flight -= 1
        if reply is None or self.price is None:
            return None
        amount = self.price.of(reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens)
        cost = amount if reply.says_what_it_took else max(amount, reserved)
        self.cost += cost
        return cost

    def _most(self, tokens: int, most: int) -> float:
        return self.price.of(tokens, 0, most) if self.price else 0.0


@dataclass
class Outcome:
    """What became of a case, and what it took."""

    verdicts: list[Verdict] = field(default_factory=list)
    windows: int = 1
    model: str | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    left_out: tuple[str, ...] = ()
    """Parameters that the endpoint does not take."""

    def add(self, reply: Reply, cost: float | None) -> None:
        """Count a reply."""
        self.model = reply.model or self.model
        self.left_out = reply.left_out
        self.prompt_tokens += reply.prompt_tokens
        self.cached_tokens += reply.cached_tokens
        self.completion_tokens += reply.completion_tokens
        if cost is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost


@dataclass
class Asker:
    """Asks one model for one judge."""

    judge: LLMJudge
    complete: Complete
    limiter: Limiter
    budget: Budget
    context: Context
    patience: Patience = field(default_factory=Patience)
    stopping: Callable[[], bool] = lambda: False
    """Whether no more is to be asked."""
    tell: Callable[[str | None], None] = lambda trouble: None
    """Takes why the last request failed; None once one succeeds."""
    gone_since: float | None = None
    """When it was first not reached (monotonic seconds) since it last answered."""
    has_answered: bool = False
    """Whether it has answered any question, so that a rejection may concern one question alone."""
    rejections: Counter[str] = field(default_factory=Counter)
    """Questions rejected for good, by the endpoint's text."""
    failures: int = 0
    """Questions given up after all repetitions."""
    enough: int = 0
    """The most tokens that an answer had which was cut off with fewer: those after it have them at once."""
    is_cutting: bool | None = None
    """Whether the endpoint cuts questions off without a word; None until one looks so."""
    verification: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while that is found out: the others that look so wait for it."""

    async def ask(self, case: Case) -> Outcome:
        """The outcome of a case; raises Fatal and Stopped only."""
        outcome = Outcome()
        began = time.monotonic()
        outcome.verdicts = await self._verdicts(case, outcome)
        outcome.seconds = round(time.monotonic() - began, 4)
        return outcome

    async def _verdicts(self, case: Case, outcome: Outcome) -> list[Verdict]:
        last_error: ContextTooSmall | None = None
        for _ in range(8):
            try:
                pieces = list(self.judge.pieces(case, self.context))
            except ContextTooSmall as error:
                return self._error_verdicts(str(error))
            outcome.windows = len(pieces)
            answers = []
            try:
                for piece in pieces:
                    answers.append(await self._piece(piece, outcome))
            except ContextTooSmall as error:
                last_error = error
                continue
            return self.judge.unite(answers)
        return self._error_verdicts(f"the model's context is too small: {last_error}")

    async def _piece(self, piece: Piece, outcome: Outcome) -> list[Verdict]:
        most = self.context.answer(piece.question, self.enough)
        question = piece.question.within(most)
        was_cut, reason = False, ""
        try:
            for _ in range(self.patience.malformed_repeats + 1):
                reply = await self._fitting(question, piece, outcome)
                try:
                    verdicts = self.judge.parse(reply, piece)
                    self.enough = max(self.enough, most if was_cut else 0)
                    return verdicts
                except BadAnswer as error:
                    reason = str(error)
                    question = piece.question.again(reply.text, reason).within(most)
                    if isinstance(error, CutOff):
                        was_cut = True
                        most = self.context.answer(question, min(GROWTH * most, LONGEST_ANSWER))
                        question = question.within(most)
        except Rejected as error:
            self._reject(error)
            return self._error_verdicts(str(error))
        except Transient as error:
            self._give_up(error)
            return self._error_verdicts(str(error))
        except Refused as error:
            return self._error_verdicts(str(error))
        return self._error_verdicts(
            "no usable answer in "
            f"{count_of(self.patience.malformed_repeats + 1, 'attempt', 'attempts')}; the last: {reason}"
        )

    def _reject(self, error: Rejected) -> None:
        """Count a question that was rejected; Fatal where nothing else is to be had."""
        self.rejections[str(error)] += 1
        if not self.has_answered and self.rejections[str(error)] >= REJECTIONS:
            raise Fatal(f"{REJECTIONS} questions were rejected and none was answered: {error}") from error

    def _give_up(self, error: Transient) -> None:
        """Count a question that no repetition helped; Fatal where nothing else is to be had."""
        self.failures += 1
        if not self.has_answered and self.failures >= REJECTIONS:
            raise Fatal(f"{REJECTIONS} questions failed and none was answered: {error}") from error

    async def _fitting(self, question: Question, piece: Piece, outcome: Outcome) -> Reply:
        """The reply to a piece's question, or to one that asks it again; what a ContextTooSmall tells of the
        context's limit is noted before it is raised. Some servers cut a question that is too long without a
        word (Ollama, LM Studio): the answer is of another log, and what they read is the limit.

        Where the limit is not known, a repeated question tells of its own length: the piece's had fitted.
        """
        before = replace(self.context)
        try:
            reply = await self._reply(question, outcome)
            if await self._is_cut(question, reply, outcome):
                read = reply.tokens_read
                raise ContextTooSmall(f"the endpoint read {read} tokens of a longer question", read)
            return reply
        except ContextTooSmall as error:
            self.context.learn(question if before.limit is None else piece.question, error.limit, before)
            raise

    async def _is_cut(self, question: Question, reply: Reply, outcome: Outcome) -> bool:
        """Whether an endpoint cut a question off. The first that looks so is asked once more: an endpoint
        that counts only what it had not cached says another number then, and is believed from then on."""
        if self.is_cutting is False or not self.context.is_cut(question, reply.tokens_read):
            return False
        async with self.verification:
            if self.is_cutting is None:
                more = await self._reply(question, outcome)
                self.is_cutting = abs(more.tokens_read - reply.tokens_read) <= NOISE * reply.tokens_read
        return self.is_cutting

    async def _reply(self, question: Question, outcome: Outcome) -> Reply:
        failures = 0
        while True:
            try:
                reply = await self._once(question, outcome)
            except Unreachable as error:
                self.tell(str(error))
                now = time.monotonic()
                self.gone_since = now if self.gone_since is None else self.gone_since
                if now - self.gone_since > self.patience.gone_after:
                    raise Fatal(f"{error}; gone for {self.patience.gone_after:.0f} s") from error
                wait = self._pause(failures := failures + 1, None)
            except Transient as error:
                self.tell(str(error))
                self._note_contact()
                failures += 1
                if failures > self.patience.transient_repeats:
                    raise Transient(f"{failures} requests failed; the last: {error}") from error
                wait = self._pause(failures, error.after if isinstance(error, Overloaded) else None)
            else:
                self.tell(None)
                self.has_answered = True
                return reply
            await self._sleep(wait)

    async def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            if self.stopping():
                raise Stopped("the run is being ended")
            await asyncio.sleep(min(rest, 0.5))

    async def _once(self, question: Question, outcome: Outcome) -> Reply:
        while pause := self.limiter.pause:
            await self._sleep(pause)
        async with self.limiter:
            if self.stopping():
                raise Stopped("the run is being ended")
            most = question.form.max_tokens
            tokens = self.context.tokens(question) - most
            while self.budget.must_wait(tokens, most):
                await self._sleep(SETTLING)
            reserved = self.budget.reserve(tokens, most)
            consumption: Reply | None = None
            began = time.monotonic()
            try:
                with counting(self.budget.count):
                    consumption = reply = await self.complete(question)
            except Overloaded as error:
                self.limiter.note_overload(error.after, began)
                raise
            except Transient as error:
                consumption = error.consumption
                raise
            except (Rejected, Refused, ContextTooSmall):
                self._note_contact()
                raise
            finally:
                cost = self.budget.settle(reserved, consumption)
                if consumption:
                    outcome.add(consumption, cost)
            self.limiter.note_success(time.monotonic() - began)
            self._note_contact()
            return reply

    def _note_contact(self) -> None:
        self.gone_since = None

    def _pause(self, failures: int, after: float | None) -> float:
        backoff: float = min(self.patience.longest_pause, self.patience.first_pause * 2 ** (failures - 1))
        return max(after or 0.0, backoff) * random.uniform(0.9, 1.3)

    def _error_verdicts(self, reason: str) -> list[Verdict]:
        return failed(self.judge, reason)


def failed(judge: LLMJudge, reason: str) -> list[Verdict]:
    """An error for every code: never a "no"."""
    codes: Sequence[str] = [code.code for code in judge.codebook.codes]
    return [Verdict(code, error=reason[:1000]) for code in codes]
