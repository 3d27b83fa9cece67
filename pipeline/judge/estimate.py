"""What a run will take, before it begins: counted in the store, priced by a sample of its prompts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ...judges.clients.protocol import ContextTooSmall
from ...judges.llm import LLMJudge
from ...judges.llm.context import Context
from ...judges.llm.prices import Price
from ...schemas import Codebook, canonical_json
from ...schemas.text import count_of
from ..store import Store, first_row
from .model import Model
from .open_work import open_work
from .questions import Job, Planner
from .scope import Scope, Summary, batches

SAMPLE = 100
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
    """What is left for a model to rate under all codebooks of a scope."""
    answers = requests = prompt = completion = 0
    for book in scope.books:
        units, pending = _pending_counts(store, book, scope, model)
        if scope.limit is not None and units > scope.limit:
            units, pending = scope.limit, round(pending * scope.limit / units)
        sample_size, tokens = _sample(store, book, scope, model) if pending > 0 else (0, [])
        scope = scope.less(units)
        a_unit = pending / sample_size if sample_size else 0
        questions = round(a_unit * sum(map(len, tokens)))
        answers += pending
        requests += questions
        prompt += int(a_unit * sum(map(sum, tokens)))
        codes = len(book.codes)
        completion += questions * (TOKENS_OF_A_CHOICE if codes == 1 else TOKENS_OF_A_FINDING * codes)
    return Estimate(answers, requests, prompt, completion, model.price, scope.repeats)


def _pending_counts(store: Store, book: Codebook, scope: Scope, model: Model) -> tuple[int, int]:
    """How many units this rater has still to rate with these parameters, and how many answers that takes.

    What the same judge answered under another name is copied, not asked; where errors are retried it is
    counted all the same, so that the numbers are a little too high.
    """
    query = """
        SELECT count(DISTINCT (u.trajectory_id, u.event)), count(*)
        FROM codebook_units u, range(?) AS repeats(repeat)
        WHERE u.codebook = ? AND (? OR NOT u.opening)
            AND (? IS NULL OR EXISTS (
                SELECT 1 FROM samples s
                WHERE s.sample = ? AND s.codebook = ? AND s.trajectory_id = u.trajectory_id
                    AND s.event IS NOT DISTINCT FROM u.event
            ))
            AND NOT EXISTS (
                SELECT 1 FROM current_ratings r
                WHERE r.trajectory_id = u.trajectory_id AND r.event IS NOT DISTINCT FROM u.event
                    AND r.unit_hash = u.hash AND r.codebook = ? AND r.codebook_version = ?
                    AND r.parameters = ? AND r.repeat = repeats.repeat
                    AND (r.error IS NULL OR NOT ?)
                    AND (r.rater = ? OR r.rater_version = ? AND r.error IS NULL AND r.repeat = 0 AND NOT ?)
            )
    """
    where = [scope.repeats, book.name, scope.include_query, scope.sample, scope.sample, book.name]
    maker = model.maker(model.judge(book, scope))
    parameters = canonical_json(maker.extra_fields["parameters"])
    again = scope.retry_errors
    values = [*where, book.name, book.version, parameters, again, model.rater, maker.version, again]
    with store.reading(synced=True) as connection:
        row = first_row(connection, query, values)
    return (int(row[0]), int(row[1])) if row else (0, 0)


def _sample(store: Store, book: Codebook, scope: Scope, model: Model) -> tuple[int, list[list[int]]]:
    """Up to `SAMPLE` open jobs: how many units they answer, and of each the prompt tokens of its questions.

    A job that fits no context has no question.
    """
    judge = model.judge(book, scope)
    planner = Planner(judge, model.maker(judge), scope, b"", Summary())
    context = Context(model.context)
    sizes = open_work(store, planner.maker, scope, b"").unanswered_sizes
    read = itertools.takewhile(lambda _: not planner.is_full, batches(store, book, sizes))
    jobs = (job for batch in read for job in planner.jobs(batch.units(scope)))
    some = list(itertools.islice(jobs, SAMPLE))
    return sum(len(job.units) for job in some), [_questions(judge, job, context) for job in some]


def _questions(judge: LLMJudge, job: Job, context: Context) -> list[int]:
    try:
        questions = [piece.question for piece in judge.pieces(job.case, context)]
    except ContextTooSmall:
        return []
    return [context.tokens(question) - question.form.max_tokens for question in questions]
