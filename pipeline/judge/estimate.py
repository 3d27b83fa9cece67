"""What a run will take, before it begins: counted in the store, priced by a sample of its prompts."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, replace

from ...judges.clients.protocol import ContextTooSmall
from ...judges.llm import LLMJudge
from ...judges.llm.context import Context
from ...judges.llm.prices import Price
from ...schemas import Codebook
from ...schemas.text import count_of
from ..store import Store
from ..store.queries.stream import Size
from .background import Backgrounds
from .model import Model
from .open_work import open_work
from .questions import Job, Planner
from .scope import Scope, Summary, batches
from .shown import read

SAMPLE = 100
"""Trajectories that are looked at, and questions whose tokens are counted."""
EVENTS = 20_000
"""Events from which on no further trajectory is looked at."""
TOKENS_OF_A_CHOICE = 8
TOKENS_OF_A_FINDING = 30


@dataclass(frozen=True)
class Estimate:
    """The questions that are left, and roughly what asking them takes."""

    units: int
    """Each counted as often as it is still asked about."""
    requests: int
    """A unit that is longer than the model's context takes several, units of the same prompt take one."""
    prompt_tokens: int
    completion_tokens: int
    price: Price | None
    repeats: int = 1
    """How often a unit is asked about."""

    @property
    def cost(self) -> float | None:
        """Dollars without any caching, None where the model has no price."""
        if self.price is None:
            return None
        return self.price.of(self.prompt_tokens, 0, self.completion_tokens)

    def __str__(self) -> str:
        cost = "no known price" if self.cost is None else f"about ${self.cost:.2f}"
        many = f"{count_of(self.units, 'unit', 'units')} to ask about"
        if self.repeats > 1:
            many = f"{count_of(self.units, 'answer', 'answers')} to get, {self.repeats} for each unit"
        requests = count_of(self.requests, "request", "requests")
        return (
            f"{many}: about {requests}, {self.prompt_tokens:,} prompt tokens "
            f"and {self.completion_tokens:,} completion tokens, {cost}"
        )


def estimate(store: Store, scope: Scope, model: Model) -> Estimate:
    """What is left for a model to rate under all codebooks of a scope, from the prompts of some trajectories
    and the units of all."""
    secret = store.workspace.secret()
    answers = requests = prompt = completion = 0.0
    for book in scope.books:
        work = open_work(store, model.maker(model.judge(book, scope)), scope, secret)
        groups = (work.unanswered, work.answered)
        looks = [(_look(store, book, scope, model, secret, group.sizes), group.n_units) for group in groups]
        units = sum(n_units * look.open for look, n_units in looks)
        part = 1.0 if scope.limit is None else min(1.0, scope.limit / max(units, 1))
        scope = scope.less(round(units * part))
        codes = len(book.codes)
        a_completion = TOKENS_OF_A_CHOICE if codes == 1 else TOKENS_OF_A_FINDING * codes
        for look, n_units in looks:
            number = n_units * scope.repeats * look.questions * part
            answers += number
            requests += number * look.requests
            prompt += number * look.tokens
            completion += number * look.requests * a_completion
    return Estimate(
        _count(answers), _count(requests), _count(prompt), _count(completion), model.price, scope.repeats
    )


def _count(number: float) -> int:
    """The next whole number, that of a sum of shares whatever the order of its parts."""
    return math.ceil(round(number, 6))


@dataclass(frozen=True)
class _Look:
    """What a random sample of trajectories has of questions."""

    questions: float = 0.0
    """Share of the answers that have to be asked for."""
    open: float = 0.0
    """Share of units that count to a limit: with an answer to be asked for, or to be copied from that of
    another name or version to the same prompt."""
    requests: float = 0.0
    """For an answer to be asked for; less than 1 where units share a prompt."""
    tokens: float = 0.0
    """Prompt tokens for an answer to be asked for."""


def _look(
    store: Store, book: Codebook, scope: Scope, model: Model, secret: bytes, sizes: list[Size]
) -> _Look:
    """What is open in some of these trajectories, in as many as it takes to see a question if there is any:
    nothing is asked that was not announced. A job that fits no context has no request."""
    if scope.limit == 0:
        return _Look()
    judge, summary = model.judge(book, scope), Summary()
    unlimited = replace(scope, limit=None)
    planner = Planner(judge, model.maker(judge), unlimited, secret, summary, Backgrounds(store).of)
    order = random.Random(0).sample(sizes, len(sizes))
    some_sizes = _some(order)
    some_batches = batches(store, book, read(store, some_sizes, book.views))
    rest = read(store, order[len(some_sizes) :], book.views)
    more = itertools.takewhile(lambda _: not jobs, batches(store, book, rest))
    jobs: list[Job] = []
    for batch in itertools.chain(some_batches, more):
        jobs += planner.jobs(batch.units(scope))
        planner.copies.clear()
    n_questions = sum(len(job.units) for job in jobs)
    among = n_questions + summary.rated + summary.already
    if not planner.units:
        return _Look()
    some = random.Random(0).sample(jobs, min(SAMPLE, len(jobs)))
    tokens = [_questions(judge, job, Context(model.context)) for job in some]
    n_units = max(1, sum(len(job.units) for job in some))
    return _Look(
        n_questions / among,
        planner.units * scope.repeats / among,
        sum(map(len, tokens)) / n_units,
        sum(map(sum, tokens)) / n_units,
    )


def _some(sizes: list[Size]) -> list[Size]:
    """The first trajectories: at most `SAMPLE`, and `EVENTS` events."""
    before = itertools.accumulate((events for _, events in sizes), initial=0)
    return [size for size, events in zip(sizes[:SAMPLE], before, strict=False) if events < EVENTS]


def _questions(judge: LLMJudge, job: Job, context: Context) -> list[int]:
    try:
        questions = [piece.question for piece in judge.pieces(job.case, context)]
    except ContextTooSmall:
        return []
    return [context.tokens(question) - question.form.max_tokens for question in questions]
